"""Asks agent.py, a child process without descriptor N, for all items at once, and scores its answers."""

import json
import os
import subprocess
import sys

words = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
out = int(words["--out-fd"])


def say(event, **fields):
    os.write(out, json.dumps({"event": event, **fields}).encode() + b"\n")


with open(words["--request"], encoding="utf-8") as stream:
    request = json.load(stream)
with open(request["dataset"], encoding="utf-8") as stream:
    cases = {case["id"]: case for case in map(json.loads, stream)}
items = request["items"]
say("start", total=len(items), separation="own_process")
texts = json.dumps([cases[item["id"]]["input"] for item in items])
done = subprocess.run([sys.executable, "-S", "agent.py"], input=texts, capture_output=True, encoding="utf-8", timeout=60, check=True)
for item, answer in zip(items, json.loads(done.stdout), strict=True):
    expected = cases[item["id"]]["expected"]
    right = answer == expected
    feedback = {} if right else {"feedback": f"{cases[item['id']]['input']} means {expected}"}
    say("item", id=item["id"], trial=item["trial"], status="ok", score=int(right), output=answer, **feedback)
say("end")

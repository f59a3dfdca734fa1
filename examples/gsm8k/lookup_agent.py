"""An agent that answers with what a model once answered: python lookup_agent.py answers/6b_finetuning.jsonl

It shows the runner protocol in its shortest form: a JSON request a line on standard input, a
JSON answer a line on standard output; one of them, or with --persistent many. With --plain
behind the file it prints the bare text for the case that its environment names. With
--made-up-price USD behind it each answer costs that much for a thousand characters, and says that nobody paid it.
"""

import json
import os
import sys

with open(sys.argv[1], encoding="utf-8") as lines:
    answers = {record["case_id"]: record["output"] for record in map(json.loads, lines)}

if sys.argv[2:] == ["--plain"]:
    sys.stdout.buffer.write(answers[os.environ["KAIZEN_CASE_ID"]].encode() + b"\n")
else:
    for line in sys.stdin.buffer:
        request = json.loads(line)
        output = answers.get(request["case"]["id"])
        found = {"error": {"type": "unknown_case", "message": "no recorded answer"}} if output is None else {"output": output}
        if output is not None and sys.argv[2:3] == ["--made-up-price"]:
            cost = {"total_usd": round(len(output) / 1000 * float(sys.argv[3]), 9)}
            found.update(cost=cost, metadata={"cost": "made up"})
        print(json.dumps({"request": request.get("request"), **found}), flush=True)

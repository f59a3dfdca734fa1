"""What a run of the lab costs an item, beside the bare eval."""

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

EVAL = """\
import json, os, sys
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
request = json.load(open(words["--request"]))
with os.fdopen(int(words["--out-fd"]), "w", buffering=1) as out:
    for item in request["items"]:
        event = {"event": "item", "id": item["id"], "trial": 1, "status": "ok", "score": 1, "output": "x" * 200, "latency_ms": 1.5}
        print(json.dumps(event), file=out)
    print('{"event": "end"}', file=out)
"""
BARE = """\
import os, subprocess, sys
reader, writer = os.pipe()
child = subprocess.Popen([sys.executable, "-I", sys.argv[1], "--out-fd", str(writer), "--request", sys.argv[2]], pass_fds=[writer])
os.close(writer)
while os.read(reader, 65536):
    pass
sys.exit(child.wait())
"""


def lab_overhead(folder: Path, kaizen: list[str], count: int = 5000) -> tuple[float, float, float]:
    """(seconds of a run of *count* items, seconds of the bare eval, milliseconds an item more): medians of five."""

    def call(*command: str) -> float:
        began = time.monotonic()
        subprocess.run(command, cwd=folder, capture_output=True, check=True)
        return time.monotonic() - began

    system = folder / "kaizen/systems/bench"
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.invalid"]
    for command in ([*git, "init", "-q"], [*kaizen, "init"], [*kaizen, "create", "system", "bench"]):
        call(*command)
    (system / "eval.py").write_text(EVAL, encoding="utf-8")
    (system / "items.jsonl").write_text("".join(json.dumps({"id": f"i{n}", "input": n}) + "\n" for n in range(count)), encoding="utf-8")
    (folder / "bare.py").write_text(BARE, encoding="utf-8")
    (folder / "request.json").write_text(json.dumps({"items": [{"id": f"i{n}", "trial": 1, "seed": n} for n in range(count)]}))
    call(*git, "add", "-A")
    call(*git, "commit", "-qm", "bench")
    pairs = []
    for _ in range(5):  # in turn, so that a drift of the machine meets both
        bare = call(sys.executable, "-I", "bare.py", str(system / "eval.py"), "request.json")
        pairs.append((call(*kaizen, "run", "--system", "bench", "--variant", "v"), bare))
    return median(ran for ran, _ in pairs), median(bare for _, bare in pairs), median((ran - bare) / count * 1000 for ran, bare in pairs)

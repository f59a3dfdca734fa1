"""An agent that answers with what a model once answered: python lookup_agent.py answers/6b_finetuning.jsonl

It shows the runner protocol in its shortest form: one JSON request on standard input, one
JSON answer on standard output.
"""

import json
import sys

case_id = json.load(sys.stdin)["case"]["id"]
with open(sys.argv[1], encoding="utf-8") as lines:
    for line in lines:
        record = json.loads(line)
        if record["case_id"] == case_id:
            print(json.dumps({"output": record["output"]}))
            break
    else:
        print(json.dumps({"error": {"type": "unknown_case", "message": "no recorded answer"}}))

"""The eval of this system: asks it for an answer to each item, scores the answer, reports it.

`kaizen run` starts it in the variant's tree as: eval.py --out-fd N --request FILE
The system is a child process that does not get descriptor N, so it cannot report about itself.
"""

import argparse
import json
import os
import subprocess
import sys
import time

COMMAND = [sys.executable, "kaizen/systems/SYSTEM/agent.py"]


def score(output, expected):
    """From 0 to 1: how good *output* is."""
    return 1 if output == expected else 0


def answer(case, seed, seconds):
    """The fields of the event about one item."""
    began = time.monotonic()
    try:
        request = json.dumps({"input": case["input"], "seed": seed})
        done = subprocess.run(COMMAND, input=request, capture_output=True, encoding="utf-8", timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"status": "timeout"}
    except OSError as error:  # the system could not be started at all: not its answer
        return {"status": "infra_error", "feedback": str(error)}
    latency = round(1000 * (time.monotonic() - began), 3)
    try:
        output = json.loads(done.stdout)["output"] if done.returncode == 0 else None
    except (ValueError, KeyError, TypeError):
        output = None
    if output is None:  # it crashed, or printed something else than an answer
        return {"status": "fail_error", "latency_ms": latency, "feedback": done.stderr[-2000:]}
    return {"status": "ok", "score": score(output, case.get("expected")), "output": output, "latency_ms": latency}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out-fd", type=int, required=True)
    parser.add_argument("--request", required=True)
    args = parser.parse_args()
    os.set_inheritable(args.out_fd, False)
    with open(args.request, encoding="utf-8") as stream:
        request = json.load(stream)
    with open(request["dataset"], encoding="utf-8") as stream:
        cases = {case["id"]: case for case in map(json.loads, stream)}
    with open(args.out_fd, "w", encoding="utf-8", buffering=1) as out:

        def report(event, **fields):
            print(json.dumps({"event": event, **fields}), file=out)

        report("start", total=len(request["items"]), separation="own_process")
        for item in request["items"]:
            found = answer(cases[item["id"]], item["seed"], request["item_timeout_seconds"])
            report("item", id=item["id"], trial=item["trial"], **found)
        report("end")


main()

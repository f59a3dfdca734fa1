"""A runner in Python: put your agent in place of `agent`. Once for each trial, or with --persistent for many.

    kaizen run NAME --stage baseline -- python examples/runners/runner.py
"""

import contextlib
import json
import sys


def agent(case, run):
    return {"output": f"You said: {case['input']}"}


def answer(request):
    try:
        with contextlib.redirect_stdout(sys.stderr):  # whatever the agent prints is for people
            found = agent(request["case"], request["run"])
    except Exception as error:
        found = {"error": {"type": type(error).__name__, "message": str(error)}}
    return json.dumps({"request": request.get("request"), **found})


if __name__ == "__main__":
    for line in sys.stdin.buffer:
        print(answer(json.loads(line)), flush=True)

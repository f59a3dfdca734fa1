"""A fake agent that ends in every way an agent can end: copy it to see how a runner is written.

    kaizen run execution-bridge --stage baseline --timeout 2 -- python examples/runners/fake_agent.py

`case.input.behave` says what it does. Exactly one JSON object goes to standard output;
whatever is for a person's eyes goes to standard error.
"""

import json
import os
import signal
import sys
import time


def main():
    request = json.load(sys.stdin)
    wanted = request["case"]["input"]
    behave = wanted["behave"]
    print(f"working on trial {request['run']['trial']}", file=sys.stderr)

    if behave == "answer":
        measured = {"usage": {"input_tokens": 12, "output_tokens": 3}, "cost": {"total_usd": 0.0002}}
        show({"output": wanted["say"], **measured, "finish_reason": "stop"})
    elif behave == "call_tool":
        call = {"kind": "tool", "name": "search", "args": {"query": wanted["say"]}, "status": "ok", "result": "3 hits"}
        said = {"kind": "message", "role": "assistant", "text": f"found 3 hits for {wanted['say']}"}
        show({"output": said["text"], "steps": [call, said]})
    elif behave == "log_first":
        print("loading the index …")  # an earlier line of standard output is kept as `log`
        show({"output": wanted["say"]})
    elif behave == "say_error":
        show({"error": {"type": "quota", "message": "the model's quota is used up", "class": "environment"}})
    elif behave == "garbage":
        print("I would rather talk than answer in JSON.")
    elif behave == "nothing":
        pass
    elif behave == "exit_3":
        sys.exit(3)
    elif behave == "be_killed":
        show({"output": wanted["say"]})
        os.kill(os.getpid(), signal.SIGKILL)
    elif behave == "hang":
        time.sleep(60)
    elif behave == "use_workdir":
        with open(os.path.join(os.environ["KAIZEN_WORKDIR"], "note.txt"), "w", encoding="utf-8") as note:
            note.write(wanted["say"])
        show({"output": sorted(os.listdir(os.environ["KAIZEN_WORKDIR"]))})
    elif behave == "echo_seed":
        show({"output": request["run"]["seed"] == int(os.environ["KAIZEN_SEED"])})


def show(answer):
    """Prints the one answer."""
    json.dump(answer, sys.stdout)
    sys.stdout.write("\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

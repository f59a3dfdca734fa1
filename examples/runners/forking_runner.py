"""The same, with a process of its own for each trial: what `runner` imports is imported once, then forked.

    kaizen run NAME --stage baseline --persistent -- python examples/runners/forking_runner.py
"""

import json
import os
import sys

from runner import answer

for line in sys.stdin.buffer:
    request = json.loads(line)
    child = os.fork()
    if not child:
        print(answer(request), flush=True)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:  # it has not answered
        error = {"type": "died", "message": f"the trial's process ended with {status}"}
        print(json.dumps({"request": request.get("request"), "error": error}), flush=True)

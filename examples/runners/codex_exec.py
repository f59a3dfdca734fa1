"""Codex as the agent: `codex exec --json` is given the case, and its stream of events becomes the answer.

    kaizen run NAME --stage baseline --timeout 600 -- python examples/runners/codex_exec.py -s workspace-write -m gpt-5

Words after the file's name go to `codex exec`: say there what it may do; without `-s` it may only read. It works in
KAIZEN_WORKDIR, an empty folder, or with `--workspace DIR` a copy of DIR, where it finds that folder's AGENTS.md and skills; your
own config.toml counts too, unless you add `--ignore-user-config`.
AGENT_SECONDS (290) is how long it may take: keep it below kaizen's --timeout, or what it did is lost with it.

What becomes what: a command line that was executed, a step of kind `command`; a patch, a tool server's call and a search on the web, steps
too; a text of the agent, a message, the last one the output. A command that fails at once because the sandbox refused it is not among
the events: it is looked up in the session's file; with `--ephemeral` there is none, and a warning in `metadata` says so. Codex
tells tokens and no price, so there is no cost here, and `--max-cost` has nothing to count.
"""

import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

COMMAND = ["codex", "exec", "--json", "--skip-git-repo-check"]
SECONDS = float(os.environ.get("AGENT_SECONDS", "290"))
HOME = os.environ.get("CODEX_HOME")
STATUS = {"completed": "ok", "failed": "error", "declined": "denied"}
USAGE = ("input_tokens", "output_tokens", "cached_input_tokens")  # the first with those that came from a cache
IS_NO_DEED = ("reasoning", "todo_list", "plan", "error")  # thoughts, plans, and warnings to the user


def prompt_of(case):
    """What the agent is told: a text as it is, anything else as JSON. Put your own words here."""
    given = [case["input"]] if case.get("context") is None else [case["input"], case["context"]]
    return "\n\n".join(part if isinstance(part, str) else json.dumps(part, ensure_ascii=False) for part in given)


def run_client(command, prompt, folder):
    """(the events, the exit code, whether the time was over). Standard error goes where ours goes: kaizen keeps its end."""
    with tempfile.TemporaryFile() as words:  # not an argument: it may be long, or begin with a minus
        words.write(prompt.encode("utf-8"))
        words.seek(0)
        client = subprocess.Popen(command, stdin=words, stdout=subprocess.PIPE, cwd=folder)
    is_over = threading.Event()

    def stop():
        is_over.set()
        client.terminate()
        try:
            client.wait(5)
        except subprocess.TimeoutExpired:
            client.kill()

    timer = threading.Timer(SECONDS, stop)
    timer.start()
    events = []
    for line in client.stdout:
        try:
            events.append(json.loads(line))
        except ValueError:  # not an event, or one that was cut off
            sys.stderr.buffer.write(line)
    code = client.wait()
    timer.cancel()
    client.stdout.close()
    return [event for event in events if isinstance(event, dict)], code, is_over.is_set()


def command_line(text):
    """What the agent asked for, out of the shell that Codex puts around it: `/bin/bash -lc 'ls'` is `ls`."""
    try:
        words = shlex.split(text)
    except ValueError:
        return text
    return words[2] if len(words) == 3 and words[1] in ("-lc", "-c") else text


def step_of(item):
    """The step of one item, or None where it is none."""
    kind = item.get("type")
    if kind in IS_NO_DEED:
        return None
    if kind == "agent_message":
        return {"kind": "message", "role": "assistant", "text": item["text"]}
    step = {"id": item["id"], **({"status": STATUS[item["status"]]} if item.get("status") in STATUS else {})}
    if kind == "command_execution":
        done = {"result": item.get("aggregated_output"), "exit_code": item["exit_code"]} if item.get("exit_code") is not None else {}
        return {"kind": "command", "name": "shell", "args": {"command": command_line(item["command"])}, **step, **done}
    if kind == "file_change":
        return {"kind": "tool", "name": "apply_patch", "args": {"changes": item["changes"]}, **step}
    if kind == "mcp_tool_call":
        given = item.get("error") or item.get("result")
        step |= {"result": given} if given else {}
        return {"kind": "tool", "name": f"{item['server']}.{item['tool']}", "args": item.get("arguments"), **step}
    if kind == "web_search":
        return {"kind": "retrieval", "name": "web_search", "args": {"query": item.get("query")}, **step}
    rest = {key: value for key, value in item.items() if key not in ("id", "type", "status", "tool")}
    return {"kind": "tool", "name": item.get("tool") or kind, "args": rest, **step}  # a kind that is newer than this file


def session_of(thread):
    """What the session's file says was said and executed, in order: ("message", text, None) or ("command", line, what it printed)."""
    home = HOME or os.path.expanduser("~/.codex")
    files = glob.glob(f"{glob.escape(home)}/sessions/*/*/*/rollout-*-{thread}.jsonl") if thread else []
    if not files:
        return None
    with open(files[-1], encoding="utf-8") as lines:
        items = [record["payload"] for record in map(json.loads, lines) if record.get("type") == "response_item"]
    printed = {item["call_id"]: item.get("output") for item in items if item["type"] == "function_call_output"}
    entries = []
    for item in items:
        if item["type"] == "message" and item["role"] == "assistant":
            entries.append(("message", "".join(part.get("text", "") for part in item["content"]), None))
        elif item["type"] == "function_call" and item["name"] in ("exec_command", "shell_command"):
            given = json.loads(item["arguments"])
            entries.append(("command", given.get("cmd") or given.get("command"), printed.get(item["call_id"])))
    return entries


def with_refused(steps, entries):
    """*steps* with the commands that only the session's file knows, each where it was given."""
    steps, place = list(steps), 0
    for kind, words, printed in entries:
        said = [(step["kind"], step.get("text") or step.get("args", {}).get("command")) for step in steps[place:]]
        found = place + said.index((kind, words)) if (kind, words) in said else None
        if found is None and kind == "command" and printed is not None:
            result = str(printed).rpartition("\nOutput:\n")[2]
            steps.insert(place, {"kind": "command", "name": "shell", "args": {"command": words}, "status": "error", "result": result})
            found = place
        place = place if found is None else found + 1
    return steps


def answer_of(events, code, is_over, prompt):
    """The answer in the words of the runner protocol."""
    items = {}  # the last word on each, in the order in which they began
    for event in events:
        if str(event.get("type")).startswith("item.") and isinstance(event.get("item"), dict):
            items[event["item"].get("id")] = event["item"]
    steps = [step for step in map(step_of, items.values()) if step]
    about = {event["type"]: event for event in events if event.get("type")}
    warnings = [item.get("message") for item in items.values() if item["type"] == "error"]
    thread = about.get("thread.started", {}).get("thread_id")
    entries = session_of(thread)
    if entries is None:
        warnings.append("there is no session file: commands that the sandbox refused may be missing from the steps")
    steps = with_refused(steps, entries or [])
    metadata = {"thread_id": thread, **({"warnings": warnings} if warnings else {})}
    answer = {"steps": [{"kind": "message", "role": "user", "text": prompt}, *steps], "metadata": metadata}
    used = [event["usage"] for event in events if event.get("type") == "turn.completed" and event.get("usage")]
    if used:
        answer["usage"] = {name: sum(each[name] for each in used) for name in USAGE if all(name in each for each in used)}
    if is_over:
        return {"error": {"type": "timeout", "message": f"not finished after {SECONDS:g} s", "class": "agent"}, **answer}
    failed = about.get("turn.failed", {}).get("error") or ("turn.completed" not in about and about.get("error"))
    if failed:  # told in words only: the model's service, a quota, the network; or that the agent has read too much
        message = failed.get("message") or "no reason was given"
        blame = "agent" if "context window" in message else "environment"
        return {"error": {"type": "turn_failed", "message": message, "class": blame}, **answer}
    if "turn.completed" not in about:  # it never began, such as for an option that it does not know: not the agent's failure
        sys.exit(f"codex ended with {code} and without a result")
    texts = [step["text"] for step in steps if step["kind"] == "message"]
    return {"output": texts[-1] if texts else "", "finish_reason": "stop", **answer}


def main():
    if not shutil.which(COMMAND[0]):
        sys.exit(f"{COMMAND[0]} is not on PATH")
    for line in sys.stdin.buffer:
        request = json.loads(line)
        workdir = os.environ.get("KAIZEN_WORKDIR")
        if "request" in request:  # --persistent: the folder outlasts the trial, so each gets one of its own in it
            workdir = tempfile.mkdtemp(dir=workdir)
        prompt = prompt_of(request["case"])
        ran = run_client([*COMMAND, *sys.argv[1:], "-"], prompt, workdir)
        print(json.dumps({"request": request.get("request"), **answer_of(*ran, prompt)}), flush=True)


if __name__ == "__main__":
    main()

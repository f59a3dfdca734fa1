"""Claude Code as the agent: `claude -p` is given the case, and its stream of events becomes the answer.

    kaizen run NAME --stage baseline --timeout 600 -- python examples/runners/claude_code.py --model sonnet --max-turns 20

Words after the file's name go to `claude`: say there what it may do (`--allowedTools "Bash(npm test)" Edit`), since what
nobody allows is denied. It works in KAIZEN_WORKDIR, an empty folder, or with `--workspace DIR` a copy of DIR, where it finds that
folder's CLAUDE.md and skills; your own settings count too, unless you add `--setting-sources project --strict-mcp-config`.
AGENT_SECONDS (290) is how long it may take: keep it below kaizen's --timeout, or what it did is lost with it.

What becomes what: a tool call and its result, paired by id, one step (a permission that was refused is `denied`); a text of the
assistant, a message; a sub-agent's steps have the call that started it as `parent`. The price is the one that Claude Code reckons
from list prices; for a model whose price it does not know it makes one up and says so, and then there is none here.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

COMMAND = ["claude", "-p", "--output-format", "stream-json", "--verbose"]
SECONDS = float(os.environ.get("AGENT_SECONDS", "290"))
# A limit was reached: an answer, which was not finished. Anything else of this kind is an error.
LIMITS = {"error_max_turns": "max_steps", "error_max_budget_usd": "max_cost"}
FINISHED = {"end_turn": "stop", "stop_sequence": "stop"}
# Claude Code tells these to the shells it starts; one that it started itself is to begin as one from a terminal does.
OF_ANOTHER_SESSION = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PID")


def prompt_of(case):
    """What the agent is told: a text as it is, anything else as JSON. Put your own words here."""
    given = [case["input"]] if case.get("context") is None else [case["input"], case["context"]]
    return "\n\n".join(part if isinstance(part, str) else json.dumps(part, ensure_ascii=False) for part in given)


def run_client(command, prompt, folder):
    """(the events, the exit code, whether the time was over). Standard error goes where ours goes: kaizen keeps its end."""
    with tempfile.TemporaryFile() as words:  # not an argument: it may be long, or begin with a minus
        words.write(prompt.encode("utf-8"))
        words.seek(0)
        env = {name: value for name, value in os.environ.items() if name not in OF_ANOTHER_SESSION}
        client = subprocess.Popen(command, stdin=words, stdout=subprocess.PIPE, cwd=folder, env=env)
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


def result_text(content):
    """(what a tool gave back, whether something was left out of it): a text where it is nothing but text, images without their bytes."""
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        return content, False
    if all(block.get("type") == "text" for block in content):
        return "\n".join(block["text"] for block in content), False
    kept = [{key: value for key, value in block.items() if key != "source"} for block in content]
    return kept, kept != content


def steps_of(events, prompt):
    """What was done, in the order in which it began."""
    steps, calls = [{"kind": "message", "role": "user", "text": prompt}], {}
    denied = {event.get("tool_use_id") for event in events if event.get("subtype") == "permission_denied"}
    denied |= {each.get("tool_use_id") for event in events for each in event.get("permission_denials") or []}
    for event in events:
        message = event.get("message") if event.get("type") in ("assistant", "user") else None
        content = message.get("content") if isinstance(message, dict) else None
        above = calls.get(event.get("parent_tool_use_id"))
        belongs = {"parent": above["id"], "agent": str(above["args"].get("subagent_type") or above["name"])} if above else {}
        for block in content if isinstance(content, list) and not event.get("is_api_error_message") else []:
            kind = block.get("type")
            if kind == "text" and event["type"] == "assistant":
                steps.append({"kind": "message", "role": "assistant", "text": block["text"], **belongs})
            elif kind == "tool_use":
                call = {"kind": "tool", "name": block["name"], "args": block["input"], "id": block["id"], "batch": message["id"], **belongs}
                calls[block["id"]] = call
                steps.append(call)
            elif kind == "tool_result" and block["tool_use_id"] in calls:
                call = calls[block["tool_use_id"]]
                call["result"], is_cut = result_text(block.get("content"))
                call["status"] = "denied" if call["id"] in denied else "error" if block.get("is_error") else "ok"
                call.update({"truncated": ["result"]} if is_cut else {})
    return steps


def measured(result):
    """`usage` and `cost`, as far as they were reported: of all models, sub-agents' too, and input with what came from a cache."""
    models = list((result.get("modelUsage") or {}).values())
    if not models:  # no model answered: the zeros beside it say nothing
        return {}
    read = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    told = {
        "input_tokens": sum(model[key] for model in models for key in read),
        "output_tokens": sum(model["outputTokens"] for model in models),
        "cached_input_tokens": sum(model["cacheReadInputTokens"] for model in models),
    }
    is_priced = result.get("total_cost_usd") is not None and all(model.get("costBasis") != "unknown" for model in models)
    return {"usage": told, **({"cost": {"total_usd": result["total_cost_usd"]}} if is_priced else {})}


def answer_of(events, code, is_over, prompt):
    """The answer in the words of the runner protocol."""
    start = next((event for event in events if event.get("subtype") == "init"), {})
    result = next((event for event in reversed(events) if event.get("type") == "result"), None)
    failed = next((event for event in reversed(events) if event.get("is_api_error_message") or event.get("subtype") == "api_retry"), None)
    names = {"session_id": "session_id", "model": "model", "claude_code_version": "version", "permissionMode": "permission_mode"}
    about = {ours: start[theirs] for theirs, ours in names.items() if start.get(theirs)}
    retries = sum(event.get("subtype") == "api_retry" for event in events)
    answer = {"steps": steps_of(events, prompt), "metadata": {**about, **({"api_retries": retries} if retries else {})}}
    if result is None:
        if not is_over:  # it never began, such as for an option that it does not know: not the agent's failure
            sys.exit(f"claude ended with {code} and without a result")
        waited = failed is not None and events[-1] is failed
        reason = f"; it was trying again after {failed.get('error')} ({failed.get('error_status')})" if waited else ""
        message = f"not finished after {SECONDS:g} s{reason}"
        return {"error": {"type": "timeout", "message": message, "class": "environment" if waited else "agent"}, **answer}
    answer |= measured(result)
    kind, said = result.get("subtype"), result.get("result") or "; ".join(map(str, result.get("errors") or [])) or "no reason was given"
    if kind in LIMITS:
        texts = [step["text"] for step in answer["steps"][1:] if step["kind"] == "message" and "parent" not in step]
        return {"output": texts[-1] if texts else "", "finish_reason": LIMITS[kind], **answer}
    if failed and failed.get("is_api_error_message") and result.get("is_error"):
        return {"error": {"type": failed.get("error") or "api_error", "message": said, "class": "environment"}, **answer}
    if result.get("is_error") or kind != "success":
        return {"error": {"type": str(kind), "message": said}, **answer}
    stop = result.get("stop_reason")
    output = result["structured_output"] if "structured_output" in result else result.get("result")
    return {"output": output, **({"finish_reason": FINISHED.get(stop, stop)} if stop else {}), **answer}


def main():
    if not shutil.which(COMMAND[0]):
        sys.exit(f"{COMMAND[0]} is not on PATH")
    for line in sys.stdin.buffer:
        request = json.loads(line)
        workdir = os.environ.get("KAIZEN_WORKDIR")
        if "request" in request:  # --persistent: the folder outlasts the trial, so each gets one of its own in it
            workdir = tempfile.mkdtemp(dir=workdir)
        prompt = prompt_of(request["case"])
        ran = run_client([*COMMAND, *sys.argv[1:]], prompt, workdir)
        print(json.dumps({"request": request.get("request"), **answer_of(*ran, prompt)}), flush=True)


if __name__ == "__main__":
    main()

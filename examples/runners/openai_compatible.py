"""A model behind any chat-completions URL, with tools: asked, its calls carried out, asked again, until it answers.

    export OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_API_KEY=… OPENAI_MODEL=…
    kaizen run NAME --stage baseline --persistent -- python examples/runners/openai_compatible.py

Standard library only. Put your own instructions into SYSTEM and your own functions into TOOLS. A reply of 429 or 5xx, and a
connection that fails, is tried again, as the service asks with Retry-After; what then still fails is an error of class
`environment`, which says nothing about the agent: `kaizen run … --only errors` repeats it. The key is sent to the
service and written nowhere. Tokens and price are passed on if every reply told them, else they are absent: a sum of some is wrong.
"""

import ast
import email.utils
import json
import operator
import os
import sys
import time
import urllib.error
import urllib.request

SYSTEM = "You answer the customers of a shop. Answer in one sentence."
MAX_STEPS = 10  # rounds with the model
TRIES = 4
LONGEST_WAIT = 60  # seconds between two tries; a service that asks for more is not waited for
SECONDS = 120  # for one reply
MORE = {}  # what else each request says, such as {"temperature": 0}
NAMES = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens", "cost": "total_usd"}  # theirs: ours
OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def calculate(expression):
    """An example of a tool: the value of a sum of numbers. An exception is told to the model and makes the step an error."""

    def value(node):
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
            return OPERATIONS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        raise ValueError("only numbers and + - * / ( ) are understood")

    return value(ast.parse(expression, mode="eval").body)


# By name: the function, what the model is told of it, and the JSON Schema of its arguments.
TOOLS = {
    "calculate": (
        calculate,
        "Calculates with + - * / and parentheses.",
        {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
    ),
}


class ServiceError(Exception):
    """The service gave no usable reply: a type in one word, and a message."""


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Another address would be sent the key too."""

    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(NoRedirect)


def ask(messages):
    """The reply of the model's service to *messages*. Raises ServiceError."""
    declared = [{"name": name, "description": told, "parameters": schema} for name, (_, told, schema) in TOOLS.items()]
    tools = {"tools": [{"type": "function", "function": each} for each in declared]} if declared else {}
    body = json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": messages, **tools, **MORE}).encode()
    url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/") + "/chat/completions"
    key = os.environ.get("OPENAI_API_KEY", "")
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    for left in reversed(range(TRIES)):
        asked = 0.0
        try:
            with OPENER.open(urllib.request.Request(url, body, headers), timeout=SECONDS) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            with error:  # some services repeat the key that they refuse
                said = error.read(500).decode("utf-8", "replace").replace(key or "\0", "…")
            problem = ServiceError(f"http_{error.code}", f"the service answered {error.code}: {said}")
            asked = seconds_to_wait(error.headers.get("Retry-After"))
            if error.code != 429 and error.code < 500:
                raise problem from None
        except OSError as error:  # refused, reset, timed out, no such host
            problem = ServiceError("connection", f"the service could not be reached: {getattr(error, 'reason', error)}")
        except ValueError:
            problem = ServiceError("not_json", "the service's reply is not JSON")
        wait = asked or 2.0 ** (TRIES - 1 - left) / 2
        if not left or wait > LONGEST_WAIT:
            raise problem
        print(f"{problem.args[0]}: trying again in {wait:.1f} s", file=sys.stderr)
        time.sleep(wait)


def seconds_to_wait(retry_after):
    """The seconds of a Retry-After header, which are a number or a date; 0.0 if there is none that can be read."""
    try:
        return max(0.0, float(retry_after))
    except (TypeError, ValueError):
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0


def carry_out(call, batch):
    """The step of one call."""
    function, step = call["function"], {"kind": "tool", "name": call["function"]["name"], "id": call["id"], "batch": batch}
    try:
        step["args"] = json.loads(function["arguments"] or "{}")
        step["result"] = TOOLS[function["name"]][0](**step["args"])
        step["status"] = "ok"
    except Exception as error:  # no such tool, arguments that are no JSON or do not fit, or the tool's own
        step.setdefault("args", function["arguments"])
        step.update(result=f"{type(error).__name__}: {error}", status="error")
    return step


def answer(case):
    """The answer to one case, in the words of the runner protocol."""
    given = [case["input"]] if case.get("context") is None else [case["input"], case["context"]]
    prompt = "\n\n".join(part if isinstance(part, str) else json.dumps(part, ensure_ascii=False) for part in given)
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]
    steps, replies, output, finish = [{"kind": "message", "role": "user", "text": prompt}], [], "", "max_steps"
    try:
        while len(replies) < MAX_STEPS:
            replies.append(ask(messages))
            choice = replies[-1]["choices"][0]
            message, calls = choice["message"], choice["message"].get("tool_calls") or []
            messages.append(message)
            output = message.get("content") or ""
            if output and isinstance(output, str):
                steps.append({"kind": "message", "role": "assistant", "text": output})
            if not calls:
                finish = choice.get("finish_reason") or ("refusal" if message.get("refusal") else "stop")
                break
            for call in calls:
                steps.append(carry_out(call, len(replies)))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(steps[-1]["result"], default=str)})
        found = {"output": output, "finish_reason": finish}
    except ServiceError as error:
        found = {"error": {"type": error.args[0], "message": error.args[1], "class": "environment"}}
    except (KeyError, IndexError, TypeError) as error:
        found = {"error": {"type": "not_a_completion", "message": f"the service's reply has no {error}", "class": "environment"}}
    return {**found, "steps": steps, **measured(replies), "metadata": {"model": replies[-1].get("model")} if replies else {}}


def measured(replies):
    """`usage` and `cost` of all replies together; each number only if every reply told it."""
    told = [reply.get("usage") or {} for reply in replies if isinstance(reply, dict)]
    sums = {name: sum(each[name] for each in told) for name in NAMES if told and all(each.get(name) is not None for each in told)}
    usage = {NAMES[name]: value for name, value in sums.items() if name != "cost"}
    return {**({"usage": usage} if usage else {}), **({"cost": {"total_usd": sums["cost"]}} if "cost" in sums else {})}


if __name__ == "__main__":
    if "OPENAI_MODEL" not in os.environ:
        sys.exit("say in OPENAI_MODEL which model is asked")
    for line in sys.stdin.buffer:
        request = json.loads(line)
        print(json.dumps({"request": request.get("request"), **answer(request["case"])}, default=str), flush=True)

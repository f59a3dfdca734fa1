"""A scripted model behind the real APIs of both clients, on the loopback interface.

    def script(conversation):
        results = yield conversation.shell("python3 -m unittest")   # a call; `results` are the texts that its tools gave
        yield "It passes." if printed(results[0]).endswith("OK") else "It fails."   # a text ends the turn

    with ModelStub(script) as stub:
        environment = surroundings(home, stub.environment(home))    # both clients now talk to the script
        …
    stub.check()                                                    # raises what a script raised

Spoken are Anthropic's Messages (`POST /v1/messages`, a stream of events) for Claude Code, and OpenAI's Responses
(`POST /v1/responses`, a stream of events) for Codex. A script yields a text, a Call, a Refusal, or a list of texts and
Calls; it is sent the texts of the results of its calls, in their order. It is run anew for every request, with the results that
the request brings along: so it must be a function of them, and needs to know nothing of repeated or concurrent requests.
Every reply says that it used INPUT_TOKENS and OUTPUT_TOKENS, so that totals can be counted by hand.
"""

import http.server
import json
import re
import threading
import traceback
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

INPUT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS = 1000, 200, 50  # of each reply; cached ones come on top for Anthropic, are part for OpenAI
KEY = "sk-stub-0123456789abcdef"
MODEL = {"claude": "claude-sonnet-4-5", "codex": "stub-model"}
CODEX_CONFIG = """model = "{model}" # of the stub
model_provider = "stub" # of the stub
model_providers.stub = {{ name = "stub", base_url = "{url}/v1", wire_api = "responses", env_key = "STUB_KEY", request_max_retries = 0, stream_max_retries = 0 }} # of the stub
"""


class Call(NamedTuple):
    """A call of one of the client's tools."""

    name: str
    arguments: dict[str, Any]


class Refusal(NamedTuple):
    """An answer of the API that is none."""

    status: int
    kind: str
    message: str


class Asked(NamedTuple):
    """One request that came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Conversation(NamedTuple):
    """What a script can know of the client."""

    client: str  # claude | codex
    texts: list[str]  # all that the model was told before its first reply, in order; the user's words are the last
    tools: list[str]  # names of the tools that the client offers
    results: dict[str, str]  # texts by id of the call

    @property
    def mark(self) -> str:
        """What makes the ids of this conversation differ from those of another, such as a sub-agent's."""
        return f"{zlib.crc32(self.prompt.encode()):08x}"

    @property
    def prompt(self) -> str:
        """The user's words."""
        return self.texts[-1]

    def shell(self, command: str, folder: str = "") -> Call:
        """The call that runs a command line in either client, in *folder* (Codex) or where the last `cd` led (Claude Code)."""
        if self.client == "claude":
            return Call("Bash", {"command": command, "description": "run a command"})
        return Call("exec_command", {"cmd": command, "yield_time_ms": 30000, **({"workdir": folder} if folder else {})})

    def run(self, command: str, folder: str = "") -> Generator["Reply", list[str], str]:
        """For `yield from`: runs a command line, waits for its end, and gives what it printed."""
        result = (yield self.shell(command, folder))[0]
        text = printed(result)
        while self.client == "codex" and (running := re.search(r"^Process running with session ID (\d+)$", result, re.MULTILINE)):
            result = (yield Call("write_stdin", {"session_id": int(running[1]), "chars": "", "yield_time_ms": 30000}))[0]
            text += printed(result)
        return text


def printed(result: str) -> str:
    """What a command printed, out of the result of `Conversation.shell` in either client, which say more around it."""
    return result.partition("\n\n<system-reminder>")[0].rpartition("\nOutput:\n")[2].rstrip("\n")


Reply = str | Call | Refusal | list[str | Call]
Script = Callable[[Conversation], Generator[Reply, list[str], None]]


class ModelStub:
    """A server on a free port, for the time of a `with`."""

    def __init__(self, script: Script) -> None:
        self.script, self.asked, self.raised = script, [], []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        self.server.stub = self
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> "ModelStub":
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def environment(self, home: Path) -> dict[str, str]:
        """Puts the stub at the head of Codex's config.toml below *home*; the variables that bring both clients here."""
        config = home / ".codex" / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        before = config.read_text().splitlines(keepends=True) if config.exists() else []
        others = [line for line in before if not line.endswith("# of the stub\n")]
        config.write_text(CODEX_CONFIG.format(model=MODEL["codex"], url=self.url) + "".join(others))
        return {"ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_MODEL": MODEL["claude"], "STUB_KEY": KEY}

    def check(self) -> None:
        """Raises if a script raised, or if nothing was asked."""
        if self.raised or not self.asked:
            raise AssertionError("\n".join(self.raised) or "the client asked the model nothing")

    def reply(self, conversation: Conversation) -> tuple[str, Reply]:
        """The name of the round that is asked for, and what the script says in it."""
        running, sent, number = self.script(conversation), None, 0
        while True:
            said = running.send(sent) if sent is not None else next(running)
            name = f"{conversation.mark}_{number}"
            ids = [call_id(name, place) for place, part in enumerate(parts(said)) if isinstance(part, Call)]
            if not ids or not all(each in conversation.results for each in ids):
                return name, said
            sent, number = [conversation.results[each] for each in ids], number + 1


class Service(http.server.BaseHTTPRequestHandler):
    """Answers requests of both APIs."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        stub = self.server.stub
        path = self.path.partition("?")[0]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        stub.asked.append(Asked(path, {name.lower(): value for name, value in self.headers.items()}, body))
        if path not in APIS:
            return self.refuse(Refusal(404, "not_found_error", f"the stub has no {path}"))
        read, stream = APIS[path]
        try:
            name, said = stub.reply(read(body))
        except Exception:  # shown by check(); the client gets a refusal that it does not repeat
            stub.raised.append(traceback.format_exc())
            said = Refusal(400, "invalid_request_error", "the script raised")
        if isinstance(said, Refusal):
            return self.refuse(said)
        lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in stream(name, parts(said), body["model"]))
        return self.answer(200, "text/event-stream", lines.encode())

    def refuse(self, refusal: Refusal) -> None:
        error = {"type": refusal.kind, "message": refusal.message}
        self.answer(refusal.status, "application/json", json.dumps({"type": "error", "error": error}).encode())

    def answer(self, status: int, kind: str, raw: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)
        except OSError:  # the client has gone
            self.close_connection = True

    def log_message(self, *arguments: object) -> None:
        pass


def parts(said: Reply) -> list[str | Call]:
    """What was said as a list."""
    return list(said) if isinstance(said, list) else [] if isinstance(said, Refusal) else [said]


def call_id(name: str, place: int) -> str:
    """The id of the call at *place* of the reply of a round."""
    return f"call_{name}_{place}"


def text_of(content: object) -> str:
    """The text of a content, which is a text or a list of blocks."""
    blocks = [{"text": content}] if isinstance(content, str) else content if isinstance(content, list) else []
    return "\n".join(str(block.get("text", "")) for block in blocks)


# --- Anthropic's Messages --------------------------------------------------------------


def read_messages(body: dict[str, Any]) -> Conversation:
    """What a request of the Messages API says."""
    texts, results, replied = [text_of(body.get("system", ""))], {}, False
    for message in body["messages"]:
        content = message["content"]
        replied = replied or message["role"] == "assistant"
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_result":
                results[block["tool_use_id"]] = text_of(block.get("content", ""))
            elif block["type"] == "text" and not replied:
                texts.append(block["text"])
    return Conversation("claude", texts, [tool["name"] for tool in body.get("tools", [])], results)


def stream_messages(name: str, said: list[str | Call], model: str) -> Iterator[dict[str, Any]]:
    """The events of one reply."""
    used = {"input_tokens": INPUT_TOKENS, "cache_creation_input_tokens": 0, "cache_read_input_tokens": CACHED_TOKENS, "output_tokens": 1}
    message = {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": {**message, "stop_sequence": None, "usage": used}}
    for place, part in enumerate(said):
        if isinstance(part, Call):
            block = {"type": "tool_use", "id": call_id(name, place), "name": part.name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(part.arguments)}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": part}
        yield {"type": "content_block_start", "index": place, "content_block": block}
        yield {"type": "content_block_delta", "index": place, "delta": delta}
        yield {"type": "content_block_stop", "index": place}
    reason = "tool_use" if any(isinstance(part, Call) for part in said) else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": OUTPUT_TOKENS}}
    yield {"type": "message_stop"}


# --- OpenAI's Responses ----------------------------------------------------------------


def read_responses(body: dict[str, Any]) -> Conversation:
    """What a request of the Responses API says."""
    texts, results, replied = [body.get("instructions") or ""], {}, False
    for item in body["input"]:
        kind = item.get("type")
        replied = replied or item.get("role") == "assistant" or kind == "function_call"
        if kind == "function_call_output":
            results[item["call_id"]] = text_of(item["output"])
        elif kind == "message" and not replied:
            texts.append(text_of(item["content"]))
    return Conversation("codex", texts, [tool.get("name", tool["type"]) for tool in body.get("tools", [])], results)


def stream_responses(name: str, said: list[str | Call], model: str) -> Iterator[dict[str, Any]]:
    """The events of one reply."""
    answer = {"id": f"resp_{name}", "object": "response", "model": model}
    yield {"type": "response.created", "response": {**answer, "status": "in_progress", "output": []}}
    items = []
    for place, part in enumerate(said):
        if isinstance(part, Call):
            arguments = json.dumps(part.arguments)
            item = {"type": "function_call", "id": f"fc_{name}_{place}", "call_id": call_id(name, place), "name": part.name, "arguments": arguments}
        else:
            item = {"type": "message", "id": f"msg_{name}_{place}", "role": "assistant", "content": [{"type": "output_text", "text": part}]}
        items.append({**item, "status": "completed"})
        yield {"type": "response.output_item.done", "output_index": place, "item": items[-1]}
    usage = {
        "input_tokens": INPUT_TOKENS, "input_tokens_details": {"cached_tokens": CACHED_TOKENS}, "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }  # fmt: skip
    yield {"type": "response.completed", "response": {**answer, "status": "completed", "output": items, "usage": usage}}


APIS = {"/v1/messages": (read_messages, stream_messages), "/v1/responses": (read_responses, stream_responses)}

"""Runner protocol 1.2: the request a runner gets, and what counts as its answer.

    request  {"protocol": "1.2", "case": {"id": "refund-1", "input": …, "context": null},
              "run": {"stage": "candidate", "trial": 1, "repetitions": 5, "attempt": 1, "seed": 4242}}
    answer   {"output": …}  with steps, usage, cost … as it likes, or {"error": {"type", "message", "class"}}

The answer is one JSON object: all of standard output, or its last line that is not
blank; earlier lines are kept as `log`. Nothing of a case but id, input and context is
sent. What a runner says about having passed is kept in `metadata.claimed` and ignored.
"""

import re
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from kaizen.cases.case import Case
from kaizen.foundation.jsonio import JsonError, JsonObject, encode_compact, json_type, parse_json, pointer_token
from kaizen.foundation.shapes import (
    ANY_TEXT,
    ANYTHING,
    COUNT,
    OBJECT,
    Kind,
    check_fields,
    check_value,
    is_number,
    list_of,
    one_of,
)
from kaizen.foundation.text import listed, nearest, quoted, visible
from kaizen.runs.cuts import cut_head, cut_tail
from kaizen.runs.observation import error_document

PROTOCOL = "1.2"
STDOUT_LIMIT = 8 << 20  # bytes
STDERR_LIMIT = 64 << 10  # bytes kept of the end of standard error, and of the log lines
MESSAGE_LIMIT = 4000  # characters kept of an error message

# Each escape of a JSON text as one match; group 1 is half of a surrogate pair without its other half.
JSON_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)

CLAIMS = ("passed", "pass", "success", "correct", "score", "grade", "verdict", "outcome")
IGNORED = ("protocol", "request")

LABEL = Kind(lambda value: isinstance(value, str) or is_number(value), "a text or a number")
AMOUNT = Kind(lambda value: is_number(value) and value >= 0, "a number, 0 or more", shows_value=True)
STEP_FIELDS = {
    **dict.fromkeys(("kind", "name", "role", "text", "agent"), ANY_TEXT),
    **dict.fromkeys(("id", "parent", "batch", "started_at"), LABEL),
    "status": one_of("ok", "error", "denied", "timeout"),
    "turn": COUNT,
    "duration_ms": AMOUNT,
    "truncated": list_of(ANY_TEXT, "names of fields"),
}
FILE_FIELDS = {
    "change": one_of("added", "modified", "deleted", "unchanged"),
    **dict.fromkeys(("sha256", "text"), ANY_TEXT),
    **dict.fromkeys(("bytes", "added_lines", "removed_lines"), COUNT),
}
ERROR_FIELDS = {"type": ANY_TEXT, "message": ANY_TEXT, "class": one_of("agent", "environment")}
ANSWER_FIELDS = {
    "output": ANYTHING,
    **dict.fromkeys(("steps", "tool_calls"), list_of(OBJECT, "objects")),
    "agents": list_of(ANY_TEXT, "names"),
    **dict.fromkeys(("usage", "cost", "state", "files", "evidence", "metadata", "error"), OBJECT),
    "finish_reason": ANY_TEXT,
}
# Fields of an answer that are objects of their own, with their kinds and what must be there.
INNER_FIELDS: tuple[tuple[str, dict[str, Kind], tuple[str, ...]], ...] = (
    ("usage", dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), AMOUNT), ()),
    ("cost", {"total_usd": AMOUNT}, ()),
    ("error", ERROR_FIELDS, ("message",)),
)


class TrialRequest(NamedTuple):
    """One attempt at one trial, as a worker gets it."""

    case: Case
    stage: str
    trial: int
    repetitions: int
    attempt: int
    seed: int


class ProtocolError(Exception):
    """An answer that cannot be used: its type in one word, and a message."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.message = message


def request_document(request: TrialRequest) -> JsonObject:
    """What the runner gets to see of *request*."""
    document = request.case.document
    return {
        "protocol": PROTOCOL,
        "case": {"id": request.case.id, "input": document["input"], "context": document.get("context")},
        "run": {
            "stage": request.stage,
            "trial": request.trial,
            "repetitions": request.repetitions,
            "attempt": request.attempt,
            "seed": request.seed,
        },
    }


def request_line(request: TrialRequest) -> bytes:
    """The request as one line of JSON."""
    return encode_compact(request_document(request)).encode("utf-8") + b"\n"


def read_answer(stdout: bytes) -> tuple[JsonObject, JsonObject | None]:
    """(the fields to record, the runner's own `error` or None) of what a runner printed. Raises ProtocolError."""
    return recorded_answer(*answer_value(stdout))


def recorded_answer(value: JsonObject, log: bytes, is_repaired: bool) -> tuple[JsonObject, JsonObject | None]:
    """What `read_answer` gives for the answer *value* with the lines *log* before it. Raises ProtocolError."""
    fields, error = answer_fields(value)
    if log:
        fields["log"], hits = cut_tail(log, STDERR_LIMIT, 0, "standard output", "/log")
        fields.update({"redacted": hits} if hits else {})
    if is_repaired:
        fields.setdefault("notes", []).append("half of a surrogate pair in the answer was replaced by U+FFFD")
    return fields, error


def answer_value(stdout: bytes) -> tuple[JsonObject, bytes, bool]:
    """(the answer's object, the lines before it, whether a lone surrogate was replaced). Raises ProtocolError."""
    body = stdout.rstrip()
    if not body:
        raise ProtocolError("no_answer", "nothing was printed on standard output; one JSON object is expected there")
    start = body.rfind(b"\n") + 1
    if start and body.lstrip().startswith(b"{"):  # perhaps an object over several lines
        try:
            value, is_repaired = parse_answer(body, 0)
            if isinstance(value, dict):
                return value, b"", is_repaired
        except ProtocolError:
            if not body[start:].strip(b"]} \t"):  # an object over several lines, but a broken one
                raise
    value, is_repaired = parse_answer(body, start)
    if not isinstance(value, dict):
        raise ProtocolError("not_an_object", f"the last line on standard output is a JSON {json_type(value)}, not an object")
    return value, body[:start].strip(), is_repaired


def parse_answer(stdout: bytes, start: int) -> tuple[Any, bool]:
    """(the JSON value of *stdout* from byte *start*, whether a lone surrogate was replaced). Raises ProtocolError."""
    try:
        text = stdout[start:].decode("utf-8").lstrip("\ufeff")
    except UnicodeDecodeError as error:
        raise ProtocolError("not_utf8", f"the answer is not UTF-8 (byte {start + error.start} of standard output)") from None
    try:
        return parse_json(text), False
    except JsonError as error:
        repaired = JSON_ESCAPE.sub(lambda match: "\\ufffd" if match[1] else match[0], text)
        if repaired != text:
            try:
                return parse_json(repaired), True
            except JsonError:
                pass
        where = "the last line on " if start else ""
        raise ProtocolError("not_json", f"{where}standard output is not one JSON object: {error.message}") from None


def answer_fields(answer: JsonObject) -> tuple[JsonObject, JsonObject | None]:
    """(the fields of *answer* to record, its `error` or None), null fields left out. Raises ProtocolError for a wrong shape."""
    given = present(answer)
    check_answer(given)
    fields = {key: value for key, value in given.items() if key in ANSWER_FIELDS}
    if "output" in answer:
        fields["output"] = answer["output"]
    error = fields.pop("error", None)
    if "output" not in fields and error is None:
        found = f"; it has {listed(map(quoted, answer), 5)}" if answer else ""
        raise ProtocolError("no_output", f"the answer has neither 'output' nor 'error'{found}")
    if "tool_calls" in fields and "steps" not in fields:
        fields["steps"] = [{"kind": "tool", **call} for call in fields.pop("tool_calls")]
    claims = {key: value for key, value in given.items() if key in CLAIMS and key not in ANSWER_FIELDS}
    if claims:
        metadata = fields.get("metadata", {})
        known = metadata.get("claimed")
        fields["metadata"] = {**metadata, "claimed": {**(known if isinstance(known, dict) else {}), **claims}}
    unknown = [key for key in answer if key not in ANSWER_FIELDS and key not in CLAIMS and key not in IGNORED]
    if unknown:
        fields["notes"] = [unknown_field_note(key) for key in unknown[:5]]
    return fields, error


def reported_error(error: JsonObject, kind: str) -> JsonObject:
    """The observation's `error` for one that the runner reported, of class *kind* unless it says otherwise."""
    kind = error.get("class") or kind
    name, hits = cut_head(error.get("type") or "reported", MESSAGE_LIMIT, "/error/type")
    message, more = cut_head(error["message"], MESSAGE_LIMIT, "/error/message")
    return {**error_document(kind, name, message), **({"redacted": hits + more} if hits or more else {})}


def present(document: JsonObject) -> JsonObject:
    """*document* without the fields that are null, which count as absent."""
    return {key: value for key, value in document.items() if value is not None}


def check_answer(answer: JsonObject) -> None:
    """Raises ProtocolError that names the first field of *answer* which is not as the protocol says."""
    check_fields(answer, ANSWER_FIELDS, "", refuse_shape)
    for name, kinds, required in INNER_FIELDS:
        if name in answer:
            check_fields(present(answer[name]), kinds, f"/{name}", refuse_shape, required)
    for name, required in (("steps", ("kind",)), ("tool_calls", ("name",))):
        for index, item in enumerate(answer.get(name, ())):
            check_fields(present(item), STEP_FIELDS, f"/{name}/{index}", refuse_shape, required)
    for path, item in answer.get("files", {}).items():
        place = "/files" + pointer_token(path)
        check_value(item, OBJECT, place, refuse_shape)
        check_fields(present(item), FILE_FIELDS, place, refuse_shape, ("change",))


def refuse_shape(pointer: str, message: str, hint: str) -> NoReturn:
    """Raises ProtocolError for what stands at *pointer* in the answer."""
    raise ProtocolError("wrong_shape", f"answer#{visible(pointer)} {message}" + (f" ({hint})" if hint else ""))


@lru_cache(64)
def unknown_field_note(key: str) -> str:
    """What is noted about a field of an answer that is not in the protocol."""
    near = nearest(key, ANSWER_FIELDS)
    return f"field {quoted(key)} is not in the protocol and was left out" + (f" (did you mean '{near}'?)" if near else "")

"""The path language of evaluators: a root, then a JSON Pointer in which * is all.

    output.text                  the output if it is a string, else its compact JSON
    output.json/items/*/price    the output if it is not a string, else its text parsed whole
    messages.assistant           all texts of those messages, in order
    state/after/refunds          any field of the observation, or `input` and `context` of the case

JSON held in text (tool arguments, results) is parsed when a pointer goes into it. Elements
of a wildcard that lack what follows it are left out.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from kaizen.foundation.jsonio import JsonError, JsonObject, encode_compact, parse_json, pointer_token
from kaizen.foundation.text import did_you_mean, quoted

OBSERVATION_ROOTS = (
    "output", "steps", "tool_calls", "agents", "usage", "cost", "state", "files", "evidence", "finish_reason", "metadata",
    "execution", "log", "status",
)  # fmt: skip
CASE_ROOTS = ("input", "context")
LIST_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,8})\Z")  # RFC 6901: no leading zeros


class Selected(NamedTuple):
    """What a path leads to. `found` False: absent, and `reason` says what; a wildcard or message root gives a list."""

    found: bool
    value: Any = None
    reason: str = ""
    agent_fault: bool = False  # absent in an output that is there: the agent's doing, not a missing measurement


class PathExpression(NamedTuple):
    """A parsed path: its root, its tokens ('*' is a wildcard), the text it was read from, what reads its root."""

    root: str
    tokens: tuple[str, ...]
    text: str
    read: Callable[[JsonObject, JsonObject], Selected]


def parse_path(text: str) -> PathExpression:
    """The path that *text* writes. Raises ValueError that says what is wrong."""
    root, slash, rest = text.partition("/")
    if root not in ROOT_READERS:
        near = did_you_mean(root, ROOT_READERS) if root else "a path begins with a root, such as output.json, not with '/'"
        raise ValueError(f"unknown root {quoted(root)}; {near}")
    tokens = tuple(part.replace("~1", "/").replace("~0", "~") for part in rest.split("/")) if slash else ()
    return PathExpression(root, tokens, text, ROOT_READERS[root])


def select_path(path: PathExpression, observation: JsonObject, case: JsonObject, memo: JsonObject | None = None) -> Selected:
    """What *path* leads to in *observation* or *case*; a list when the path holds a wildcard.

    *memo* keeps what the roots of this observation hold, so that its text is parsed once for all evaluators.
    """
    root: Selected | None = None if memo is None else memo.get(path.root)
    if root is None:
        root = path.read(observation, case)
        if memo is not None:
            memo[path.root] = root
    if not path.tokens or not root.found:
        return root
    pairs = values_at(root.value, path.tokens)
    if pairs is None:
        return Selected(False, None, f"there is nothing at {path.text}", path.root.startswith("output"))
    if "*" in path.tokens:
        return Selected(True, [value for _, value in pairs])
    return Selected(True, pairs[0][1])


def values_at(value: Any, tokens: tuple[str, ...] | list[str], pointer: str = "") -> list[tuple[str, Any]] | None:
    """[(pointer, value)] for all that *tokens* lead to below *value*; None when a step without wildcard leads nowhere."""
    for index, token in enumerate(tokens):
        if isinstance(value, str):
            try:
                value = parse_json(value)
            except JsonError:
                return None
        if token == "*" and isinstance(value, (list, dict)):
            pairs = enumerate(value) if isinstance(value, list) else value.items()
            found = [values_at(item, tokens[index + 1 :], pointer + pointer_token(key)) for key, item in pairs]
            return [pair for part in found if part is not None for pair in part]
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and LIST_INDEX.match(token) and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
        pointer += pointer_token(token)
    return [(pointer, value)]


# --- Roots -----------------------------------------------------------------------------


def output_text(output: Any) -> str:
    """The output as text: itself if it is a string, else its compact JSON."""
    return output if isinstance(output, str) else encode_compact(output)


def read_output(observation: JsonObject, case: JsonObject) -> Selected:
    """The output as it is; null is no output."""
    output = observation.get("output")
    return Selected(False, None, "there is no output") if output is None else Selected(True, output)


def read_output_text(observation: JsonObject, case: JsonObject) -> Selected:
    """The output as text."""
    output = observation.get("output")
    return read_output(observation, case) if output is None else Selected(True, output_text(output))


def read_output_json(observation: JsonObject, case: JsonObject) -> Selected:
    """The output if it is not a string, else the value that its whole text holds."""
    output = observation.get("output")
    if not isinstance(output, str):
        return read_output(observation, case)
    try:
        return Selected(True, parse_json(output))
    except JsonError as error:
        return Selected(False, None, f"the output is not JSON: {error.message}", True)


def message_texts(observation: JsonObject, role: str) -> list[str] | None:
    """Texts of all messages of *role* in the recorded steps, in order; None when no steps were recorded."""
    steps = observation.get("steps")
    if not isinstance(steps, list):
        return None
    messages = [step for step in steps if step.get("kind") == "message" and step.get("role") == role]
    return [step["text"] for step in messages if isinstance(step.get("text"), str)]


def messages_reader(role: str) -> Callable[[JsonObject, JsonObject], Selected]:
    """Reads the texts of all messages of *role*."""

    def read(observation: JsonObject, case: JsonObject) -> Selected:
        texts = message_texts(observation, role)
        return Selected(False, None, "no steps were recorded") if texts is None else Selected(True, texts)

    return read


def field_reader(name: str) -> Callable[[JsonObject, JsonObject], Selected]:
    """Reads the field *name* of the observation; null is absent."""

    def read(observation: JsonObject, case: JsonObject) -> Selected:
        value = observation.get(name)
        return Selected(False, None, f"the observation has no {name}") if value is None else Selected(True, value)

    return read


def case_reader(name: str) -> Callable[[JsonObject, JsonObject], Selected]:
    """Reads the field *name* of the case."""

    def read(observation: JsonObject, case: JsonObject) -> Selected:
        return Selected(True, case[name]) if name in case else Selected(False, None, f"the case has no {name}")

    return read


ROOT_READERS: dict[str, Callable[[JsonObject, JsonObject], Selected]] = {
    "output.text": read_output_text,
    "output.json": read_output_json,
    "messages.assistant": messages_reader("assistant"),
    "messages.user": messages_reader("user"),
    **{name: field_reader(name) for name in OBSERVATION_ROOTS},
    **{name: case_reader(name) for name in CASE_ROOTS},
    "output": read_output,
}

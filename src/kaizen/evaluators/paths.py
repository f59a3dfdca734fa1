"""The one path language of evaluators: a root, then a JSON Pointer in which * is every element.

    output.text                  the output if it is a string, else its compact JSON
    output.json/items/*/price    the output if it is not a string, else its text parsed whole
    messages.assistant           all texts of those messages, in order
    state/after/refunds          any field of the observation, or `input` and `context` of the case

JSON held in text (tool arguments, results) is parsed when a pointer goes into it.
"""

from typing import Any, NamedTuple

from kaizen.foundation.jsonio import JsonError, JsonObject, encode_compact, parse_json, pointer_token

CASE_ROOTS = ("input", "context")
MESSAGE_ROOTS = {"messages.assistant": "assistant", "messages.user": "user"}
OBSERVATION_ROOTS = (
    "output", "steps", "tool_calls", "agents", "usage", "cost", "state", "files", "evidence", "finish_reason", "metadata",
    "execution", "log", "status",
)  # fmt: skip
ROOTS = ("output.text", "output.json", *MESSAGE_ROOTS, *OBSERVATION_ROOTS, *CASE_ROOTS)


class PathExpression(NamedTuple):
    """A parsed path: its root, its tokens ('*' is a wildcard), and the text it was read from."""

    root: str
    tokens: tuple[str, ...]
    text: str


class Selected(NamedTuple):
    """What a path leads to. `found` False: absent, and `reason` says what; a wildcard or message root gives a list."""

    found: bool
    value: Any = None
    reason: str = ""
    agent_fault: bool = False  # absent below output.json: the agent's doing, not a missing measurement


def parse_path(text: str) -> PathExpression:
    """The path that *text* writes. Raises ValueError that says what is wrong."""
    root, _, rest = text.partition("/")
    if root not in ROOTS:
        raise ValueError(f"unknown root '{root}'; a path begins with one of {', '.join(ROOTS)}")
    tokens = tuple(part.replace("~1", "/").replace("~0", "~") for part in rest.split("/")) if "/" in text else ()
    return PathExpression(root, tokens, text)


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
        elif isinstance(value, list) and token.isascii() and token.isdigit() and len(token) < 10 and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
        pointer += pointer_token(token)
    return [(pointer, value)]


def output_text(output: Any) -> str:
    """The output as text: itself if it is a string, else its compact JSON."""
    return output if isinstance(output, str) else encode_compact(output)


def message_texts(observation: JsonObject, role: str) -> list[str] | None:
    """Texts of all messages of *role* in the recorded steps, in order; None when no steps were recorded."""
    steps = observation.get("steps")
    if not isinstance(steps, list):
        return None
    return [str(step["text"]) for step in steps if step.get("kind") == "message" and step.get("role") == role and step.get("text") is not None]


def path_root_value(path: PathExpression, observation: JsonObject, case: JsonObject) -> Selected:
    """What the root of *path* holds, before its pointer is followed."""
    root = path.root
    if root in CASE_ROOTS:
        return Selected(True, case[root]) if root in case else Selected(False, None, f"the case has no {root}")
    if root in MESSAGE_ROOTS:
        texts = message_texts(observation, MESSAGE_ROOTS[root])
        return Selected(False, None, "no steps were recorded") if texts is None else Selected(True, texts)
    if root.startswith("output"):
        output = observation.get("output")
        if output is None:
            return Selected(False, None, "there is no output")
        if root == "output.text":
            return Selected(True, output_text(output))
        if root == "output.json" and isinstance(output, str):
            try:
                return Selected(True, parse_json(output))
            except JsonError as error:
                return Selected(False, None, f"the output is not JSON: {error.message}", True)
        return Selected(True, output)
    value = observation.get(root)
    return Selected(False, None, f"the observation has no {root}") if value is None else Selected(True, value)


def select_path(path: PathExpression, observation: JsonObject, case: JsonObject) -> Selected:
    """What *path* leads to in *observation* or *case*; a list when the path holds a wildcard."""
    root = path_root_value(path, observation, case)
    if not root.found or not path.tokens:
        return root
    pairs = values_at(root.value, path.tokens)
    if pairs is None:
        return Selected(False, None, f"nothing at {path.text}", path.root == "output.json")
    if "*" in path.tokens:
        return Selected(True, [value for _, value in pairs])
    return Selected(True, pairs[0][1])

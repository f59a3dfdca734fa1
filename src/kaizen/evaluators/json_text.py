"""JSON in the text of an answer: the whole text, the first value, or a code fence.

The parser is strict and repairs nothing. Where JSON is looked for, the first text that begins
like JSON decides: if it is broken, what comes behind it is not taken in its place, and no part
of it is, because neither is what the agent meant to answer.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from kaizen.evaluators.transforms import fenced_blocks
from kaizen.foundation.jsonio import JsonError, parse_json, parse_json_at

# An object with a key; a list of objects, lists or texts.
JSON_BEGINS = re.compile(r'\{\s*"|\[\s*[\[{"]')
# What in prose is more often a footnote [1], a check box [ ] or a placeholder {}.
LESS_LIKELY_BEGINS = re.compile(r"\{\s*\}|\[\s*(?:\]|-?[0-9]|(?:true|false|null)\b)")


class JsonInText(NamedTuple):
    """The value that was found and where it stands, or (`reason` set) why there is none."""

    value: Any = None
    start: int = 0
    end: int = 0
    reason: str = ""


def broken_json(error: JsonError) -> str:
    """'not JSON: …' for *error*."""
    return error.message if error.message.startswith("not JSON") else f"not JSON: {error.message}"


def json_whole(text: str) -> JsonInText:
    """The value that the whole of *text* holds."""
    if not text.strip():
        return JsonInText(reason="there is no text")
    try:
        return JsonInText(parse_json(text), 0, len(text))
    except JsonError as error:
        return JsonInText(reason=broken_json(error))


def json_block(text: str) -> str | None:
    """The content of the first code fence of *text* that is marked json; without one, of the first fence; None without any."""
    blocks = fenced_blocks(text)
    return next((content for language, content in blocks if language == "json"), blocks[0][1] if blocks else None)


def json_fenced(text: str) -> JsonInText:
    """The value in the code fence."""
    block = json_block(text)
    if block is None:
        return JsonInText(reason="there is no code fence")
    found = json_whole(block)
    if found.reason:
        return JsonInText(reason=f"in the code fence: {found.reason}")
    start = text.find(block)
    return JsonInText(found.value, start, start + len(block))


def json_first(text: str) -> JsonInText:
    """The first object or list in *text*; an empty one, or a list of bare numbers, only if there is nothing else."""
    match = JSON_BEGINS.search(text) or LESS_LIKELY_BEGINS.search(text)
    if match is None:
        return JsonInText(reason="there is no JSON object or list in the text")
    try:
        value, end = parse_json_at(text, match.start())
    except JsonError as error:
        return JsonInText(reason=f"what begins like JSON at character {match.start()} is {broken_json(error)}")
    return JsonInText(value, match.start(), end)


def json_anywhere(text: str) -> JsonInText:
    """The whole text if it is JSON, else the fence that holds JSON, else the first value in it."""
    whole = json_whole(text)
    if not whole.reason:
        return whole
    block = json_block(text)
    is_marked = any(language == "json" for language, _ in fenced_blocks(text))
    if block is not None and (is_marked or JSON_BEGINS.match(block.lstrip())):
        return json_fenced(text)
    return json_first(text)


JSON_EXTRACTS: dict[str, Callable[[str], JsonInText]] = {
    "whole": json_whole,
    "first": json_first,
    "fenced": json_fenced,
    "any": json_anywhere,
}

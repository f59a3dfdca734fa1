"""Transforms: named, pure steps between what an entry selects and what its check sees.

    "transform": ["strip_markdown", "last_line", {"regex_capture": ["A: (.*)", 1]}]

Those of TEXT_TRANSFORMS change every string inside the value and also serve `normalize`; the
others take something out of it. One that finds nothing raises NotMeasurable.
"""

import re
from collections.abc import Callable
from typing import Any

from kaizen.evaluators.decimals import json_number, last_number
from kaizen.evaluators.outcomes import ConfigurationError, NotMeasurable
from kaizen.evaluators.paths import values_at
from kaizen.evaluators.regex_timer import compile_pattern, timed_match
from kaizen.foundation.jsonio import JsonError, encode_compact, json_type, parse_json, pointer_tokens
from kaizen.foundation.text import counted, did_you_mean, quoted

Transform = Callable[[Any], Any]

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^\n`]*\Z")  # CommonMark 0.31, section 4.5
# Bounded repeats keep each of these linear on a hostile text.
MARKDOWN = (
    (re.compile(r"^ {0,3}(?:`{3,}|~{3,})[^\n]*\n?", re.MULTILINE), ""),
    (re.compile(r"^ {0,3}(?:#{1,6} {1,9}|>{1,9} ?)", re.MULTILINE), ""),
    (re.compile(r"^([ \t]{0,99})[-*+] {1,9}", re.MULTILINE), r"\1"),
    (re.compile(r"!?\[([^\]\[\n]{0,999})\]\([^()\s]{0,2000}(?: [^()\n]{0,999})?\)"), r"\1"),
    (re.compile(r"\*\*|~~|`"), ""),
    (re.compile(r"(?<!\w)__(?=\S)|(?<=\S)__(?!\w)|(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)"), ""),
    (re.compile(r"(?<!\w)_(\S(?:[^_\n]{0,999}\S)?)_(?!\w)"), r"\1"),
)


def text_of(value: Any) -> str:
    """*value* as one text: itself, the texts of a list joined by line feeds, else compact JSON. Raises NotMeasurable for null."""
    if isinstance(value, str):
        return value
    if value is None:
        raise NotMeasurable("there is null where a text is looked for", True)
    if isinstance(value, list):
        return "\n".join(item if isinstance(item, str) else encode_compact(item) for item in value)
    return encode_compact(value)


def in_every_text(function: Callable[[str], str]) -> Transform:
    """Applies *function* to a string, and to every string inside a list or object."""

    def apply(value: Any) -> Any:
        if isinstance(value, str):
            return function(value)
        if isinstance(value, list):
            return [apply(item) for item in value]
        if isinstance(value, dict):
            return {key: apply(item) for key, item in value.items()}
        return value

    return apply


def canonical_form(text: str) -> str:
    """*text* in the Unicode form NFC: é as one character."""
    import unicodedata

    return unicodedata.normalize("NFC", text)


def compatible_form(text: str) -> str:
    """*text* in the Unicode form NFKC: also full-width letters, ligatures and no-break spaces as plain ones."""
    import unicodedata

    return unicodedata.normalize("NFKC", text)


def collapse_space(text: str) -> str:
    """*text* with each run of white space, also no-break spaces, as one space, and none at its ends."""
    return " ".join(text.split())


def strip_markdown(text: str) -> str:
    """*text* without the marks of headings, lists, quotes, links, emphasis and code; the words stay."""
    for pattern, replacement in MARKDOWN:
        text = pattern.sub(replacement, text)
    return text


def line_from(text: str, last: bool) -> str:
    """The first or last line of *text* that is not blank, without the space around it."""
    for line in reversed(text.split("\n")) if last else text.split("\n"):
        if line.strip():
            return line.strip()
    raise NotMeasurable("there is no line that is not blank")


def fenced_blocks(text: str) -> list[tuple[str, str]]:
    """(language in lower case, content) of each fenced code block of *text*, as CommonMark reads them."""
    blocks: list[tuple[str, str]] = []
    content: list[str] = []
    fence, language = "", ""
    for line in text.split("\n"):
        match = FENCE.match(line.rstrip("\r"))
        if fence and match and match[1].startswith(fence) and not line.strip(" \t\r" + fence[0]):
            blocks.append((language, "\n".join(content)))
            fence = ""
        elif fence:
            content.append(line)
        elif match:
            fence, language, content = match[1], match[2].lower(), []
    return [*blocks, (language, "\n".join(content))] if fence else blocks


def fenced_block(text: str, language: str) -> str:
    """The first fenced block of *language* ('' for any)."""
    for name, content in fenced_blocks(text):
        if language in ("", name):
            return content
    raise NotMeasurable(f"there is no fenced block{f' of {quoted(language)}' if language else ''}")


def parsed_json(value: Any) -> Any:
    """The JSON value that a text holds; what is not text already is one."""
    try:
        return parse_json(value) if isinstance(value, str) else value
    except JsonError as error:
        raise NotMeasurable(f"the text is not JSON: {error.message}", True) from None


def csv_rows(text: str) -> list[dict[str, str]]:
    """The rows of a CSV text as objects under the names of its first row."""
    import csv

    try:
        rows = [row for row in csv.reader((line + "\n" for line in text.split("\n")), strict=True) if row]
    except csv.Error as error:
        raise NotMeasurable(f"the text is not CSV: {error}", True) from None
    if not rows:
        raise NotMeasurable("there are no CSV rows")
    header = rows[0]
    if len(set(header)) < len(header):
        raise NotMeasurable("two CSV columns have the same name", True)
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise NotMeasurable(f"CSV row {number} has {counted(len(row), 'cell')}, the header {len(header)}", True)
    return [dict(zip(header, row, strict=True)) for row in rows[1:]]


def number_in(text: str) -> int | float:
    """The last number of *text*."""
    found = last_number(text)
    if found is None or found.value is None:
        raise NotMeasurable("there is no number" if found is None else "the number has too many digits")
    return json_number(found.value)


def pointer_transform(arguments: list[Any], pointer: str) -> Transform:
    """Follows a JSON Pointer, in which * is every element."""
    text = transform_text(arguments[0], pointer)
    try:
        tokens = pointer_tokens(text)
    except ValueError as error:
        raise ConfigurationError(pointer, str(error)) from None

    def follow(value: Any) -> Any:
        found = values_at(value, tokens)
        if found is None:
            raise NotMeasurable(f"there is nothing at {text}", True)
        return [each for _, each in found] if "*" in tokens else found[0][1]

    return follow


def capture_transform(arguments: list[Any], pointer: str) -> Transform:
    """Takes what a group (a number or name; the first if there is one) of the first match captured."""
    pattern = compile_pattern(transform_text(arguments[0], pointer), 0, pointer)
    group = pattern_group(pattern, arguments[1] if len(arguments) > 1 else min(pattern.groups, 1), pointer)

    def capture(value: Any) -> Any:
        match = timed_match(pattern, text_of(value))
        if match is None or match[group] is None:
            raise NotMeasurable(f"pattern {quoted(pattern.pattern, 60)} finds nothing")
        return match[group]

    return capture


def pattern_group(pattern: "re.Pattern[str]", group: Any, pointer: str) -> int | str:
    """*group* when *pattern* has a group of that number or name. Raises ConfigurationError."""
    if isinstance(group, int) and not isinstance(group, bool) and 0 <= group <= pattern.groups:
        return group
    if isinstance(group, str) and group in pattern.groupindex:
        return group
    known = f"{counted(pattern.groups, 'group')}{', named ' + ', '.join(pattern.groupindex) if pattern.groupindex else ''}"
    raise ConfigurationError(pointer, f"the pattern has no group {quoted(str(group))}", f"it has {known}")


def transform_text(argument: Any, pointer: str) -> str:
    """*argument* when it is a text. Raises ConfigurationError."""
    if isinstance(argument, str):
        return argument
    raise ConfigurationError(pointer, f"an argument is a JSON {json_type(argument)}, not a string")


def fenced_transform(arguments: list[Any], pointer: str) -> Transform:
    """Takes the first fenced block, of one language when one is named."""
    language = transform_text(arguments[0], pointer).lower() if arguments else ""
    return lambda value: fenced_block(text_of(value), language)


TEXT_TRANSFORMS: dict[str, Transform] = {
    "strip": in_every_text(str.strip),
    "lower": in_every_text(str.lower),
    "casefold": in_every_text(str.casefold),
    "nfc": in_every_text(canonical_form),
    "nfkc": in_every_text(compatible_form),
    "collapse_space": in_every_text(collapse_space),
    "strip_markdown": in_every_text(strip_markdown),
}
PLAIN_TRANSFORMS: dict[str, Transform] = {
    **TEXT_TRANSFORMS,
    "first_line": lambda value: line_from(text_of(value), False),
    "last_line": lambda value: line_from(text_of(value), True),
    "number": lambda value: value if json_type(value) == "number" else number_in(text_of(value)),
    "json": parsed_json,
    "csv": lambda value: csv_rows(text_of(value)),
}
# name: (fewest arguments, most arguments, what makes the transform of them)
TRANSFORMS_WITH_ARGUMENTS: dict[str, tuple[int, int, Callable[[list[Any], str], Transform]]] = {
    "fenced": (0, 1, fenced_transform),
    "pointer": (1, 1, pointer_transform),
    "regex_capture": (1, 2, capture_transform),
}


def compile_transforms(steps: list[Any], pointer: str) -> list[Transform]:
    """The functions that *steps* name, in order. Raises ConfigurationError below *pointer*."""
    return [compile_transform(step, f"{pointer}/{index}") for index, step in enumerate(steps)]


def compile_transform(step: Any, pointer: str) -> Transform:
    """The function of one step, a name or {name: [arguments]}."""
    if isinstance(step, dict) and len(step) == 1:
        ((name, arguments),) = step.items()
        if not isinstance(arguments, list):
            raise ConfigurationError(pointer, f"the arguments of {quoted(name)} are no list", f'write {{"{name}": [argument, …]}}')
    else:
        name, arguments = step, []
    if not isinstance(name, str):
        raise ConfigurationError(pointer, "is neither a name nor an object with one name")
    fewest, most, make = TRANSFORMS_WITH_ARGUMENTS.get(name, (0, 0, None))
    if make is None and name not in PLAIN_TRANSFORMS:
        known = [*PLAIN_TRANSFORMS, *TRANSFORMS_WITH_ARGUMENTS]
        raise ConfigurationError(pointer, f"transform {quoted(name)} is unknown", did_you_mean(name, known))
    if not fewest <= len(arguments) <= most:
        wanted = counted(fewest, "argument") if fewest == most else f"{fewest} to {most} arguments"
        raise ConfigurationError(pointer, f"transform {quoted(name)} takes {wanted}, not {len(arguments)}")
    return PLAIN_TRANSFORMS[name] if make is None else make(arguments, pointer)


def compile_normalizer(names: list[Any], pointer: str = "/normalize") -> Transform:
    """The function that applies the text transforms *names*, in order, to every string of a value."""
    for index, name in enumerate(names):
        if name not in TEXT_TRANSFORMS:
            hint = did_you_mean(str(name), TEXT_TRANSFORMS)
            raise ConfigurationError(f"{pointer}/{index}", f"{quoted(str(name))} changes no text, so it cannot normalise", hint)
    functions = [TEXT_TRANSFORMS[name] for name in names]

    def normalise(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value

    return normalise


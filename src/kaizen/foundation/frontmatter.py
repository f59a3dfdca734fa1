"""Block-style YAML, the small part of it that people and this program both write.

    # a comment on a line of its own
    status: accepted           # or behind a blank
    rationale: "text with ': ' or ' #' in it, and \\n for a line end"
    note: 'it''s quoted'
    conditions:
      - first condition
      - "second: condition"
    empty_list: []

Every value is text or a list of texts; a key without a value is "". A '#' without a
blank before it belongs to the word. What YAML would read in another way (nested keys,
[a, b], {…}, |, >, &, *, !, ---, continued lines, a key twice) is refused with its line,
so a file means the same to this program as to its other readers.
"""

import re
from typing import Any

from kaizen.foundation.errors import Breaches
from kaizen.foundation.jsonio import SURROGATE, JsonError, JsonObject, encode_compact, parse_json
from kaizen.foundation.text import UNSAFE, quoted

YAML_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):(?=\s|\Z)")
YAML_ITEM = re.compile(r"\s*-(?=\s|\Z)")
# A value, then nothing or a comment: in double quotes, in single quotes, or plain.
YAML_VALUE = re.compile(
    r"""\s*(?:(?P<double>"(?:[^"\\]|\\.)*")|'(?P<single>(?:[^']|'')*)'|(?P<plain>[^"'\s\#]\S*(?:\s+[^\#\s]\S*)*))?"""
    r"""(?P<comment>\s+\#.*|\s*)\Z"""
)
YAML_SPECIAL = re.compile(r"[\[\]{}|>&*!%@`,?]|-(?:\s|\Z)|.*:(?:\s|\Z)")
YAML_PLAIN_WORD = r"(?!(?i:true|false|yes|no|on|off|null|y|n)\Z)[A-Za-z][A-Za-z0-9_:./@+-]*(?<!:)\Z"
ONE_LINE = "write the text on one line in double quotes, with \\n for a line end"
REFUSED_LINES = (
    (r"---|\.\.\.|%", "document marks are not read", "remove the line"),
    (r"\s*-", "a list item needs a key without a value above it", "write 'key:' on the line above"),
    (r"\s", "is indented, and neither nested keys nor continued lines are read", ONE_LINE),
    (r"[\w-]+:\S", "has no blank behind the colon", "write 'key: value'"),
    (r"", "is neither 'key: value' nor '- item'", "put a '#' in front of a comment"),
)


def parse_block_yaml(text: str, path: str) -> JsonObject:
    """The values of *text* by key, each a text or a list of texts. Raises BreachesError that names *path* and lines."""
    return parse_block_lines(text, path)[0]


def parse_block_lines(text: str, path: str) -> tuple[JsonObject, dict[str, tuple[int, int]]]:
    """The values of *text* by key, and the lines (from 1: first and last) on which each key stands."""
    breaches = Breaches()
    values: JsonObject = {}
    spans: dict[str, tuple[int, int]] = {}
    key = ""
    items: list[str] | None = None  # the list of the last key, as long as lines may add to it
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found, item = YAML_KEY.match(line), YAML_ITEM.match(line)
        if found:
            key = found.group(1)
            if key in values:
                breaches.add(path, number, f"/{key}", f"key {quoted(key)} occurs twice", "keep one of the two")
            value = block_value(line[found.end() :], path, number, breaches)
            items = [] if value is None else None
            values[key] = "" if value is None else value
            spans[key] = (number, number)
        elif item and items is not None:
            value = block_value(line[item.end() :], path, number, breaches)
            items.append(value if isinstance(value, str) else "")
            values[key] = items
            spans[key] = (spans[key][0], number)
        else:
            message, hint = next((message, hint) for pattern, message, hint in REFUSED_LINES if re.match(pattern, line))
            breaches.add(path, number, "", message, hint)
    breaches.raise_if_any()
    return values, spans


def block_value(text: str, path: str, number: int, breaches: Breaches) -> str | list[str] | None:
    """What *text*, the rest of line *number* behind a key or '-', says; None for nothing."""
    found = YAML_VALUE.match(text)
    if found is None or re.search("[\x00-\x08\x0b-\x1f\x7f]", text):
        breaches.add(path, number, "", "holds a quote that does not end on its line, text behind a quote, or a control character", ONE_LINE)
        return ""
    plain, single, double = found.group("plain", "single", "double")
    if double is not None:
        try:
            return str(parse_json(double))
        except JsonError:
            breaches.add(path, number, "", "holds an escape that is not known", 'known: \\n \\t \\" \\\\ \\u00e9')
            return ""
    if single is not None:
        return single.replace("''", "'")
    if plain == "[]":
        return []
    if plain is not None and YAML_SPECIAL.match(plain):
        breaches.add(path, number, "", f"YAML gives {quoted(plain, 40)} another meaning than a text", "put it in double quotes")
    return plain


def block_scalar(text: str) -> str:
    """*text* as a value: as it is when every YAML reader takes it for that word, else in double quotes."""
    if re.match(YAML_PLAIN_WORD, text):
        return text
    return re.sub(UNSAFE, lambda match: f"\\u{ord(match.group()):04x}", encode_compact(SURROGATE.sub("\ufffd", text)))


def block_entry(key: str, value: Any, comment: str = "") -> str:
    """The lines of *key*: 'key: value', or 'key:' with an item a line for a list that is not empty."""
    if isinstance(value, list) and value:
        return "\n".join([f"{key}:{comment}", *(f"  - {block_scalar(item)}" for item in value)])
    return f"{key}: {'[]' if isinstance(value, list) else block_scalar(value)}{comment}"


def write_block_yaml(values: JsonObject) -> str:
    """*values*, each a text or a list of texts, as `parse_block_yaml` reads them back."""
    return "".join(block_entry(key, value) + "\n" for key, value in values.items())


def update_block_yaml(text: str, values: JsonObject, path: str) -> str:
    """*text* with *values* in it: lines whose value stays, comments and other keys are kept, new keys come last.

    Raises BreachesError when *text* cannot be read.
    """
    before, spans = parse_block_lines(text, path)
    lines: list[str | None] = [*text.rstrip("\n").split("\n")] if text.strip() else []
    for key, value in values.items():
        if key not in before:
            lines.append(block_entry(key, value))
        elif before[key] != value:
            first, last = spans[key]
            found = YAML_VALUE.match((lines[first - 1] or "").partition(":")[2])
            comment = found.group("comment").strip() if found else ""
            lines[first - 1 : last] = [block_entry(key, value, f"  {comment}" if comment else ""), *[None] * (last - first)]
    return "".join(line + "\n" for line in lines if line is not None)

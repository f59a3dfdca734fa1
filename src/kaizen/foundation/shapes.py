"""What the fields of a document may hold: kinds, and the check against a table of them.

    SOURCE_FIELDS = {"kind": one_of("production", "synthetic"), "redacted": BOOLEAN}
    check_fields(document["source"], SOURCE_FIELDS, "/source", report)

`report(pointer, message, hint)` is called for each breach. Messages name types; a value is
shown only where it is a number asked for or one word of a list, never a text of the user's.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Optional

from kaizen.foundation.jsonio import JsonObject, encode_compact, json_type, pointer_token
from kaizen.foundation.text import did_you_mean, listed, nearest, quoted, visible

Report = Callable[[str, str, str], None]


class Kind(NamedTuple):
    """What a field may hold: a test, its words in a message, the words to choose among, the kind of a list's elements."""

    accepts: Callable[[Any], bool]
    words: str
    choices: tuple[str, ...] = ()
    shows_value: bool = False
    of: Optional["Kind"] = None


def is_number(value: Any) -> bool:
    """True for a JSON number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """True for a JSON number without a fraction: 3 and 3.0."""
    return isinstance(value, int) and not isinstance(value, bool) or isinstance(value, float) and value.is_integer()


ANYTHING = Kind(lambda value: True, "any JSON value")
TEXT = Kind(lambda value: isinstance(value, str) and value != "", "a text that is not empty")
ANY_TEXT = Kind(lambda value: isinstance(value, str), "a text")
BOOLEAN = Kind(lambda value: isinstance(value, bool), "true or false")
OBJECT = Kind(lambda value: isinstance(value, dict), "an object, {…}")
COUNT = Kind(lambda value: is_whole(value) and value >= 0, "a whole number, 0 or more", shows_value=True)
POSITIVE_COUNT = Kind(lambda value: is_whole(value) and value >= 1, "a whole number, 1 or more", shows_value=True)
RATE = Kind(lambda value: is_number(value) and 0 <= value <= 1, "a number from 0 to 1", shows_value=True)
OPEN_RATE = Kind(lambda value: is_number(value) and 0 < value <= 0.999999999, "a number above 0, at most 0.999999999", shows_value=True)
RATIO = Kind(lambda value: is_number(value) and value > 0, "a number above 0", shows_value=True)
DIFFERENCE = Kind(lambda value: is_number(value) and -1 <= value <= 1, "a number from -1 to 1", shows_value=True)


def one_of(*choices: str) -> Kind:
    """The kind of a field that holds one of the words *choices*."""
    return Kind(lambda value: isinstance(value, str) and value in choices, f"one of {listed(choices, last='or')}", choices, True)


def or_null(kind: Kind) -> Kind:
    """*kind*, or null."""
    return Kind(lambda value: value is None or kind.accepts(value), f"{kind.words}, or null", kind.choices, kind.shows_value)


def list_of(kind: Kind, words: str) -> Kind:
    """The kind of a list, called *words*, whose elements are of *kind*."""
    return Kind(lambda value: isinstance(value, list), f"a list of {words}, […]", of=kind)


def check_value(value: Any, kind: Kind, pointer: str, report: Report) -> None:
    """Reports *value* when it is not of *kind*, or each of its elements that is not."""
    if not kind.accepts(value):
        near = nearest(value, kind.choices) if kind.choices and isinstance(value, str) else None
        report(pointer, f"must be {kind.words}, not {told_value(value, kind)}", f"did you mean '{near}'?" if near else "")
    elif kind.of is not None:
        for index, item in enumerate(value):
            if not kind.of.accepts(item):
                check_value(item, kind.of, f"{pointer}/{index}", report)


def told_value(value: Any, kind: Kind) -> str:
    """*value* as a message may name it: itself where *kind* shows values, else its type."""
    if kind.shows_value and (is_number(value) or isinstance(value, bool)):
        return visible(encode_compact(value), 40)
    if kind.choices and isinstance(value, str):
        return quoted(value, 40)
    if isinstance(value, str) and kind.words.startswith("a text"):
        return "an empty one" if value == "" else "this one"
    kinds = {"null": "null", "array": "an array", "object": "an object", "string": "a text"}
    return kinds.get(json_type(value), f"a {json_type(value)}")


def check_fields(document: JsonObject, kinds: dict[str, Kind], pointer: str, report: Report, required: Iterable[str] = ()) -> None:
    """Reports each field of *document* that is not of its kind in *kinds*, and each *required* one that is absent."""
    for name in required:
        if name not in document:
            report(pointer, f"has no {quoted(name)}", f'write "{name}": {kinds[name].words}')
    for name, value in document.items():
        kind = kinds.get(name)
        if kind is not None and (kind.of is not None or not kind.accepts(value)):
            check_value(value, kind, pointer + pointer_token(name), report)


def check_no_others(document: JsonObject, known: Iterable[str], pointer: str, report: Report, what: str = "key") -> None:
    """Reports each key of *document* that is not *known*, with the nearest one that is."""
    names = set(known)
    for name in document:
        if name not in names:
            report(pointer + pointer_token(name), f"unknown {what} {quoted(name)}", did_you_mean(name, names))

"""Strict JSON and JSON Lines: what is accepted, how it is written, fingerprints, pointers.

Refused on reading: NaN and Infinity, numbers that overflow, duplicate keys, lone
surrogates, text behind the value, more than 200 levels. Canonical JSON has sorted keys, no blanks, UTF-8
unescaped, and an integral number below 2^53 has no fraction; fingerprints are SHA-256
of it. Lines end at LF alone: U+2028 and U+0085 may stand inside a string.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kaizen.foundation.errors import Breaches, InputError
from kaizen.foundation.files import BYTE_ORDER_MARK, open_for_reading, read_bytes, shown_path, write_file
from kaizen.foundation.text import quoted, visible

JsonObject = dict[str, Any]

LINE_BLANKS = b" \t\r\n"
LARGEST_EXACT_INTEGER = 2**53
SURROGATE = re.compile("[\ud800-\udfff]")
MAX_DEPTH = 200  # what a function that recurses with four frames a level can follow; CPython's own limit differs by version
TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
NOT_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[^\[\]{}"]+', re.DOTALL)
EMPTY_BRACKETS = re.compile(r"\[\]|\{\}")
JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)

encode_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
encode_sorted = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True).encode
encode_readable = json.JSONEncoder(ensure_ascii=False, indent=2, allow_nan=False).encode


class JsonError(ValueError):
    """Text that is not acceptable JSON; `line` is counted from 1 inside the text, 0 when unknown; `hint` says what to do."""

    def __init__(self, message: str, line: int = 0, column: int = 0, hint: str = "", token: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint
        self.token = token  # what was refused, as it stands in the text


MAX_WHOLE = int(1.7976931348623157e308)  # the largest double


def unique_pairs(pairs: list[tuple[str, Any]]) -> JsonObject:
    """The object of *pairs*. Raises JsonError when a key comes twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonError(f"key {quoted(key)} occurs twice in one object", hint="keep one of the two")
            seen.add(key)
    return found


def refuse_constant(name: str) -> Any:
    """Raises JsonError: NaN, Infinity and -Infinity are not JSON."""
    raise JsonError(f"{name} is not a JSON number", hint="write null, or leave the field out, where nothing was measured", token=name)


def finite_float(text: str) -> float:
    """The number that *text* writes. Raises JsonError when it overflows to infinity."""
    value = float(text)
    if value - value != 0.0:
        raise JsonError(f"number {visible(text, 40)} is too large", hint="write it as a string", token=text)
    return value


def bounded_int(text: str) -> int:
    """The whole number that *text* writes. Raises JsonError when no double holds it: what is measured is counted in doubles."""
    value = int(text)
    if len(text) > 300 and abs(value) > MAX_WHOLE:
        raise JsonError(f"number {visible(text, 40)} is too large", hint="write it as a string", token=text)
    return value


STRICT_DECODER = json.JSONDecoder(
    object_pairs_hook=unique_pairs, parse_constant=refuse_constant, parse_float=finite_float, parse_int=bounded_int
)
decode_strict = STRICT_DECODER.decode
decode_strict_at = STRICT_DECODER.raw_decode


def parse_json(text: str) -> Any:
    """The value that *text* holds. Raises JsonError for anything that is not strict JSON."""
    value = decoded(decode_strict, text)
    refuse_deep_or_broken(text, value)
    return value


def parse_json_at(text: str, start: int) -> tuple[Any, int]:
    """(the value that begins at *start* of *text*, where it ends), whatever follows it. Raises JsonError."""
    value, end = decoded(decode_strict_at, text, start)
    refuse_deep_or_broken(text[start:end], value)
    return value, end


def decoded(decode: Callable[..., Any], text: str, *start: int) -> Any:
    """What *decode* makes of *text*. Raises JsonError in the same words on every Python."""
    try:
        return decode(text, *start)
    except json.JSONDecodeError as error:
        raise json_error(error.msg, text, error.pos, *start) from None
    except RecursionError:
        raise JsonError(TOO_DEEP) from None
    except ValueError as error:
        if bracket_depth(text) > MAX_DEPTH:  # where another Python would have given up before
            raise JsonError(TOO_DEEP) from None
        if isinstance(error, JsonError):
            raise
        # The only other one is CPython's limit on the digits of an integer.
        raise JsonError("an integer with too many digits", hint="write it as a string") from None


def json_error(message: str, text: str, position: int, start: int = 0) -> JsonError:
    """The JsonError for what json found wrong at *position*.

    Python 3.13 has a message for a comma before a closing bracket, older ones do not; and how deep a text may be
    before json gives up differs as well.
    """
    if bracket_depth(text[start:position]) > MAX_DEPTH:
        return JsonError(TOO_DEEP)
    before = text[:position].rstrip(" \t\r\n")
    closing = {"Expecting value": "]", "Expecting property name enclosed in double quotes": "}"}.get(message)
    if message.startswith("Illegal trailing comma") or before.endswith(",") and text[position : position + 1] == closing:
        message, position = "a comma before the closing bracket", position if text[position] == "," else len(before) - 1
    column = position - text.rfind("\n", 0, position)
    return JsonError(f"not JSON: {message} (column {column})", text.count("\n", 0, position) + 1, column)


def bracket_depth(text: str) -> int:
    """How deep the brackets of *text* nest at the deepest place; what stands in strings does not count."""
    depth = deepest = 0
    for bracket in NOT_BRACKETS.sub("", text) if text.count("[") + text.count("{") > MAX_DEPTH else "":
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def refuse_deep_or_broken(text: str, value: Any) -> None:
    """Raises JsonError when the JSON *text*, which holds *value*, nests too deeply or holds a lone surrogate."""
    if text.count("[") + text.count("{") > MAX_DEPTH and is_too_deep(text):
        raise JsonError(TOO_DEEP)
    if ("\\u" in text and has_surrogate(value)) or not text.isascii() and SURROGATE.search(text):
        raise JsonError("holds half of a surrogate pair (\\ud800 to \\udfff alone)", hint="write the whole character or U+FFFD")


def is_too_deep(text: str) -> bool:
    """True when the JSON *text* nests arrays and objects more than MAX_DEPTH levels deep."""
    brackets = NOT_BRACKETS.sub("", text)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return False
        brackets = EMPTY_BRACKETS.sub("", brackets)  # takes away the innermost level
    return brackets != ""


def has_surrogate(value: Any) -> bool:
    """True when a string or key anywhere in *value* holds a lone surrogate."""
    return SURROGATE.search(encode_compact(value)) is not None


def without_surrogates(value: Any) -> Any:
    """*value* with each lone surrogate, in strings and keys, replaced by U+FFFD."""
    if isinstance(value, str):
        return SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {SURROGATE.sub("\ufffd", key): without_surrogates(item) for key, item in value.items()}
    return value


def canonical_json(value: Any) -> str:
    """*value* as canonical JSON (see the head of this module); equal values give equal text.

    >>> canonical_json({"b": 1.0, "a": [True, None, 0.5]})
    '{"a":[true,null,0.5],"b":1}'
    """
    text = encode_sorted(value)
    # Every integral float below 2^53 is written with ".0"; most documents hold none.
    return encode_sorted(integral_as_int(value)) if ".0" in text else text


def float_or_none(value: Any) -> float | None:
    """The number *value* (of any kind) as a float that JSON can hold; None when it is beyond one.

    >>> float_or_none(0.5), float_or_none(10**400), float_or_none(1e308 * 10)
    (0.5, None, None)
    """
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if abs(number) != float("inf") else None


def integral_as_int(value: Any) -> Any:
    """*value* with each float of integral value below 2^53 as an int."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < LARGEST_EXACT_INTEGER else value
    if isinstance(value, list):
        return [integral_as_int(item) for item in value]
    if isinstance(value, dict):
        return {key: integral_as_int(item) for key, item in value.items()}
    return value


def rounded_floats(value: Any) -> Any:
    """*value* with every float at nine digits: the last ones may differ between machines, the file may not."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded_floats(item) for key, item in value.items()}
    return [rounded_floats(item) for item in value] if isinstance(value, list) else value


def sha256_hex(data: str | bytes) -> str:
    """SHA-256 of *data* (text as UTF-8) in hexadecimal."""
    return hashlib.sha256(data.encode("utf-8") if isinstance(data, str) else data).hexdigest()


def fingerprint(value: Any) -> str:
    """'sha256:' and the SHA-256 of the canonical JSON of *value*."""
    return "sha256:" + sha256_hex(canonical_json(value))


class Line(NamedTuple):
    """One line of a JSON Lines file: its number from 1, its bytes without the line end, its value."""

    number: int
    raw: bytes
    value: JsonObject


def decode_line(raw: bytes) -> JsonObject:
    """The object on one line of bytes. Raises JsonError."""
    try:
        value = parse_json(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise JsonError(f"is not UTF-8 (byte {error.start} of the line)", hint="save the file as UTF-8") from None
    if not isinstance(value, dict):
        raise JsonError(f"is a JSON {json_type(value)}, not an object")
    return value


def parse_line(raw: bytes, place: str) -> JsonObject:
    """The object on one line of bytes. Raises InputError that begins with *place*."""
    try:
        return decode_line(raw)
    except JsonError as error:
        raise InputError(f"{place}: {error.message}", error.hint or "each line is one JSON object, {…}") from None


def raw_lines(path: str, hint: str = "") -> Iterator[tuple[int, bytes]]:
    """(number from 1, bytes without BOM and line end) for each line of *path* that is not blank."""
    with open_for_reading(path, hint) as stream:
        for number, raw in enumerate(stream, 1):
            line = (raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw).strip(LINE_BLANKS)
            if line:
                yield number, line


def read_json_lines(path: str, hint: str = "") -> Iterator[Line]:
    """Each object of the JSON Lines file *path*, in order, read as it is asked for. Raises InputError."""
    shown = shown_path(path)
    for number, raw in raw_lines(path, hint):
        yield Line(number, raw, parse_line(raw, f"{shown}:{number}"))


def checked_lines(path: str, breaches: Breaches, hint: str = "", secret: bytes | None = None) -> Iterator[Line]:
    """Each good line of the JSON Lines file *path*; each bad one goes to *breaches*, a BOM and CRLF as warnings.

    Of a bad line that holds the word *secret* nothing is told but that it is bad. Raises InputError with *hint* when the
    file cannot be read at all.
    """
    shown = shown_path(path)
    has_crlf = False
    with open_for_reading(path, hint) as stream:
        for number, raw in enumerate(stream, 1):
            if number == 1 and raw.startswith(BYTE_ORDER_MARK):
                breaches.warn(shown, 1, "", "begins with a byte-order mark, which is skipped", "save the file as UTF-8 without BOM")
            if not has_crlf and raw.endswith(b"\r\n"):
                has_crlf = True
                breaches.warn(shown, number, "", "lines end in CRLF, which counts as LF", "save the file with LF line ends")
            line = (raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw).strip(LINE_BLANKS)
            if line:
                try:
                    yield Line(number, line, decode_line(line))
                except JsonError as error:
                    if secret is not None and secret in line:
                        breaches.conceal(shown, number)
                    breaches.add(shown, number, "", error.message, error.hint or "each line is one JSON object, {…}")


def checked_object(path: str, breaches: Breaches, hint: str = "") -> tuple[str, JsonObject] | None:
    """(text, object) of the JSON file *path*; None, and the reason in *breaches*, when it holds no acceptable object.

    Raises InputError with *hint* when the file cannot be read at all.
    """
    shown = shown_path(path)
    data = read_bytes(path, hint)
    try:
        text = data.decode("utf-8-sig")
        value = parse_json(text)
    except UnicodeDecodeError as error:
        breaches.add(shown, data.count(b"\n", 0, error.start) + 1, "", f"is not UTF-8 (byte {error.start})", "save the file as UTF-8")
    except JsonError as error:
        breaches.add(shown, refused_line(text, error), "", error.message, error.hint)
    else:
        if isinstance(value, dict):
            return text, value
        breaches.add(shown, None, "", f"is a JSON {json_type(value)}, not an object", "the file is one JSON object, {…}")
    return None


def read_json_object(path: str, hint: str = "") -> JsonObject:
    """The one object in the JSON file *path*. Raises InputError with path and line."""
    breaches = Breaches()
    found = checked_object(path, breaches, hint)
    breaches.raise_if_any()
    return found[1] if found else {}


def write_json(path: str, value: Any) -> None:
    """Writes *value* as the JSON file *path*, indented for people; for small documents."""
    write_file(path, encode_readable(value) + "\n")


def json_type(value: Any) -> str:
    """The name JSON gives to the type of *value*: null, boolean, number, string, array, object."""
    names = ((type(None), "null"), (bool, "boolean"), ((int, float), "number"), (str, "string"), (list, "array"))
    return next((name for kind, name in names if isinstance(value, kind)), "object")


def json_equal(left: Any, right: Any) -> bool:
    """True when both are the same JSON value: true is not 1, "7" is not 7, but 1 is 1.0; key order is free."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(json_equal(item, right[key]) for key, item in left.items())
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(json_equal, left, right))
    return bool(left == right)


def json_key(value: Any) -> Any:
    """A hashable stand-in for *value*: two are equal exactly when `json_equal` says so of their values."""
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, list):
        return (list, *map(json_key, value))
    if isinstance(value, dict):
        return (dict, frozenset((key, json_key(item)) for key, item in value.items()))
    return value


# --- JSON Pointer (RFC 6901) ---------------------------------------------------------


def pointer_tokens(pointer: str) -> list[str]:
    """The reference tokens of *pointer*: '/a~1b/0' gives ['a/b', '0'], '' gives [].

    Raises ValueError when it is neither empty nor begins with a slash.
    """
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"a JSON Pointer begins with '/': {quoted(pointer)}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def pointer_token(key: str | int) -> str:
    """*key* as one token of a JSON Pointer, with the slash in front: 'a/b' gives '/a~1b'."""
    return "/" + str(key).replace("~", "~0").replace("/", "~1")


def follow_pointer(value: Any, tokens: list[str]) -> tuple[bool, Any]:
    """(True, what stands at *tokens* in *value*), or (False, None) when nothing does."""
    for token in tokens:
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and token.isascii() and token.isdigit() and str(int(token[:20])) == token and int(token) < len(value):
            value = value[int(token)]
        else:
            return False, None
    return True, value


def json_places(text: str) -> Iterator[tuple[list[str | int], int]]:
    """(path, offset) of each member's key and each element of the JSON *text*, in order; the list is used again.

    Walks the tokens only, so it also answers for documents that break a format's rules.
    """
    path: list[str | int] = []  # the key or index at each open bracket
    expect_key = expect_element = False
    for match in JSON_TOKEN.finditer(text):
        token = match.group()
        if token in "]}":
            del path[-1:]
            expect_key = expect_element = False
        elif token == ",":
            expect_element = bool(path) and isinstance(path[-1], int)
            expect_key = bool(path) and not expect_element
            if expect_element:
                path[-1] += 1  # type: ignore[operator]
        elif token != ":":
            if expect_key:
                path[-1] = json.loads(token) if token.startswith('"') else token
            if expect_key or expect_element:
                yield path, match.start()
            expect_key = expect_element = False
            if token in "{[":
                path.append("" if token == "{" else 0)
                expect_key, expect_element = token == "{", token == "["


def pointer_line(text: str, pointer: str) -> int | None:
    """The line (from 1) on which the key or element at *pointer* begins in the JSON *text*; None if it is not there."""
    wanted = pointer_tokens(pointer)
    if not wanted:
        return 1
    for path, start in json_places(text):
        if len(path) == len(wanted) and [str(part) for part in path] == wanted:
            return text.count("\n", 0, start) + 1
    return None


def refused_line(text: str, error: JsonError) -> int | None:
    """The line (from 1) of what *error* refused in the JSON *text*: a bad token, or the second of two equal keys."""
    if error.line:
        return error.line
    tokens = (match.start() for match in JSON_TOKEN.finditer(text) if match.group() == error.token)
    starts: Iterator[int] = tokens if error.token else repeated_keys(text)
    return next((text.count("\n", 0, start) + 1 for start in starts), None)


def repeated_keys(text: str) -> Iterator[int]:
    """The offset of each key in the JSON *text* that came before in its object."""
    seen: set[tuple[str | int, ...]] = set()
    for path, start in json_places(text):
        if tuple(path) in seen:
            yield start
        seen.add(tuple(path))

"""Strict JSON and JSON Lines: what is accepted, how it is written, fingerprints, pointers.

Refused on reading: NaN and Infinity, numbers that overflow, duplicate keys, lone
surrogates, text behind the value. Canonical JSON has sorted keys, no blanks, UTF-8
unescaped, and an integral number below 2^53 has no fraction; fingerprints are SHA-256
of it. Lines end at LF alone: U+2028 and U+0085 may stand inside a string.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from kaizen.foundation.errors import InputError
from kaizen.foundation.files import BYTE_ORDER_MARK, open_for_reading, read_bytes, shown_path, write_file
from kaizen.foundation.text import quoted, visible

JsonObject = dict[str, Any]

LARGEST_EXACT_INTEGER = 2**53
SURROGATE = re.compile("[\ud800-\udfff]")
STRING_OR_PUNCTUATION = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]', re.DOTALL)

encode_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
encode_sorted = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True).encode
encode_readable = json.JSONEncoder(ensure_ascii=False, indent=2, allow_nan=False).encode


class JsonError(ValueError):
    """Text that is not acceptable JSON; `line` is counted from 1 inside the text, 0 when unknown."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


def unique_pairs(pairs: list[tuple[str, Any]]) -> JsonObject:
    """The object of *pairs*. Raises JsonError when a key comes twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonError(f"key {quoted(key)} occurs twice in one object")
            seen.add(key)
    return found


def refuse_constant(name: str) -> Any:
    """Raises JsonError: NaN, Infinity and -Infinity are not JSON."""
    raise JsonError(f"{name} is not a JSON number")


def finite_float(text: str) -> float:
    """The number that *text* writes. Raises JsonError when it overflows to infinity."""
    value = float(text)
    if value - value != 0.0:
        raise JsonError(f"number {visible(text, 40)} is too large")
    return value


decode_strict = json.JSONDecoder(object_pairs_hook=unique_pairs, parse_constant=refuse_constant, parse_float=finite_float).decode


def parse_json(text: str) -> Any:
    """The value that *text* holds. Raises JsonError for anything that is not strict JSON."""
    try:
        value = decode_strict(text)
    except json.JSONDecodeError as error:
        raise JsonError(f"not JSON: {error.msg} (column {error.colno})", error.lineno, error.colno) from None
    except RecursionError:
        raise JsonError("nested too deeply") from None
    except JsonError:
        raise
    except ValueError:  # CPython's limit on the digits of an integer
        raise JsonError("an integer with too many digits") from None
    if ("\\u" in text and has_surrogate(value)) or SURROGATE.search(text):
        raise JsonError("holds half of a surrogate pair (\\ud800 to \\udfff alone)")
    return value


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


def integral_as_int(value: Any) -> Any:
    """*value* with each float of integral value below 2^53 as an int."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < LARGEST_EXACT_INTEGER else value
    if isinstance(value, list):
        return [integral_as_int(item) for item in value]
    if isinstance(value, dict):
        return {key: integral_as_int(item) for key, item in value.items()}
    return value


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


def parse_line(raw: bytes, place: str) -> JsonObject:
    """The object on one line of bytes. Raises InputError that begins with *place*."""
    try:
        value = parse_json(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{place}: is not UTF-8 (byte {error.start} of the line)", "save the file as UTF-8") from None
    except JsonError as error:
        raise InputError(f"{place}: {error.message}", "each line is one JSON object") from None
    if not isinstance(value, dict):
        raise InputError(f"{place}: is a JSON {json_type(value)}, not an object", "each line is one JSON object, {…}")
    return value


def raw_lines(path: str, hint: str = "") -> Iterator[tuple[int, bytes]]:
    """(number from 1, bytes without BOM and line end) for each line of *path* that is not blank."""
    with open_for_reading(path, hint) as stream:
        for number, raw in enumerate(stream, 1):
            if number == 1 and raw.startswith(BYTE_ORDER_MARK):
                raw = raw[len(BYTE_ORDER_MARK) :]
            raw = raw.strip(b" \t\r\n")
            if raw:
                yield number, raw


def read_json_lines(path: str, hint: str = "") -> Iterator[Line]:
    """Each object of the JSON Lines file *path*, in order, read as it is asked for. Raises InputError."""
    shown = shown_path(path)
    for number, raw in raw_lines(path, hint):
        yield Line(number, raw, parse_line(raw, f"{shown}:{number}"))


def read_json_object(path: str, hint: str = "") -> JsonObject:
    """The one object in the JSON file *path*. Raises InputError with path and line."""
    shown = shown_path(path)
    data = read_bytes(path, hint)
    try:
        value = parse_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{shown}: is not UTF-8 (byte {error.start})", "save the file as UTF-8") from None
    except JsonError as error:
        line = f":{error.line}" if error.line else ""
        raise InputError(f"{shown}{line}: {error.message}", reason="invalid_file") from None
    if not isinstance(value, dict):
        raise InputError(f"{shown}: is a JSON {json_type(value)}, not an object", reason="invalid_file")
    return value


def write_json(path: str, value: Any) -> None:
    """Writes *value* as the JSON file *path*, indented for people; for small documents."""
    write_file(path, encode_readable(value) + "\n")


def json_type(value: Any) -> str:
    """The name JSON gives to the type of *value*: null, boolean, number, string, array, object."""
    names = ((type(None), "null"), (bool, "boolean"), ((int, float), "number"), (str, "string"), (list, "array"))
    return next((name for kind, name in names if isinstance(value, kind)), "object")  # type: ignore[arg-type]


def json_equal(left: Any, right: Any) -> bool:
    """True when both are the same JSON value: true is not 1, "7" is not 7, but 1 is 1.0; key order is free."""
    if isinstance(left, bool) or isinstance(right, bool) or left is None or right is None:
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(json_equal(item, right[key]) for key, item in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(json_equal, left, right))
    return json_type(left) == json_type(right) and bool(left == right)


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


def pointer_line(text: str, pointer: str) -> int | None:
    """The line (from 1) on which the value or key at *pointer* begins in the JSON *text*; None if not found.

    Walks the punctuation only, so it also answers for documents that break a format's rules.
    """
    wanted = pointer_tokens(pointer)
    if not wanted:
        return 1
    path: list[str | int] = []  # the key or index at each open bracket
    key, expect_key = "", False
    for match in STRING_OR_PUNCTUATION.finditer(text):
        token = match.group()
        if token == "{" or token == "[":
            path.append("" if token == "{" else 0)
            expect_key = token == "{"
        elif token == "}" or token == "]":
            path.pop()
            expect_key = False
        elif token == ",":
            if path and isinstance(path[-1], int):
                path[-1] += 1
            expect_key = bool(path) and isinstance(path[-1], str)
        elif token != ":" and expect_key:
            key, expect_key = json.loads(token), False
            path[-1] = key
        else:
            continue
        if [str(part) for part in path] == wanted and token not in "}]":
            return text.count("\n", 0, match.start()) + 1
    return None

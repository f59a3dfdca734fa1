"""The evaluator `parses`: the text is JSON, CSV, XML and the like.

Nothing that the text says is carried out: XML with a document type is refused, because its entities
can expand without end, and Python is parsed, never compiled to code. A text that is too large or too
deeply nested to be read is an error, neither pass nor fail.
"""

import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from kaizen.evaluators.dates import DATE_IN_TEXT, matched_date
from kaizen.evaluators.html_form import FormFlaw, check_html
from kaizen.evaluators.json_text import json_whole
from kaizen.evaluators.outcomes import ConfigurationError, Outcome, decided, errored
from kaizen.evaluators.registry import REQUIRED, Check, Parameter, View, evaluator
from kaizen.evaluators.transforms import text_of
from kaizen.foundation.jsonio import JsonError, JsonObject, parse_json
from kaizen.foundation.schema_formats import is_date_time, is_email, is_uri, is_uuid
from kaizen.foundation.text import counted, visible

PYTHON_BOUND = 100_000  # characters; CPython 3.10 crashes on an expression of twice as many parts
TOML_KEY_PARTS = 100  # of one dotted key: the standard library's reader takes quadratic time for it
URL_BOUND = 100_000
CSV_PLAIN_CELL = r'[^",\r\n]*(,|\r?\n|\Z)'
CSV_CELL_ENDS = r"(,|\r?\n|\Z)"
URL_AUTHORITY = r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#]*@)?(?![:@])[^/?#@]+(?:[/?#]|\Z)"


class Reading(NamedTuple):
    """What became of reading a text: `reason` why it is not in the form ('' when it is), where, and what was found."""

    reason: str = ""
    place: int | None = None
    value: Any = None


class Unreadable(Exception):
    """Raised when a text cannot be read to its end, so that nothing is known; `args[0]` says why."""


def read_as_json(text: str) -> Reading:
    """One JSON value, RFC 8259, without NaN, duplicate keys or lone surrogates."""
    return Reading(json_whole(text).reason.replace("not JSON: ", "", 1))


def read_as_jsonl(text: str) -> Reading:
    """A JSON value on each line; the last line may lack its end, no line is blank."""
    lines = (text[:-1] if text.endswith("\n") else text).split("\n")
    place = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            return Reading(f"line {number} is blank", place)
        try:
            parse_json(line)
        except JsonError as error:
            return Reading(f"line {number}: {error.message.replace('not JSON: ', '', 1)}", place)
        place += len(line) + 1
    return Reading(value={"lines": len(lines)})


def read_as_csv(text: str) -> Reading:
    """Rows of equally many cells, RFC 4180: a cell with a quote, comma or line end is quoted, quotes in it are doubled."""
    match_plain, match_end = re.compile(CSV_PLAIN_CELL).match, re.compile(CSV_CELL_ENDS).match
    place = start = rows = cells = width = 0
    while place < len(text) or cells:
        ends = match_plain(text, place) or match_end(text, end_of_quoted_cell(text, place))
        if ends is None:
            return Reading(f"row {rows + 1}, cell {cells + 1}: a quote or carriage return stands where none can", place)
        place, cells = ends.end(), cells + 1
        if ends[1] == ",":
            continue
        rows += 1
        width = width or cells
        if cells != width:
            return Reading(f"row {rows} has {counted(cells, 'cell')}, the first has {width:,}", start)
        start, cells = place, 0
    return Reading(value={"rows": rows, "columns": width})


def end_of_quoted_cell(text: str, place: int) -> int:
    """Where the quoted cell ends that begins at *place*; *place* itself when there is none or its quote is never closed."""
    if text.startswith('"', place):
        for quotes in re.compile('"+').finditer(text, place + 1):
            if len(quotes[0]) % 2:  # the others are doubled, which means one in the content
                return quotes.end()
    return place


def read_as_xml(text: str) -> Reading:
    """A well-formed XML 1.0 document without a document type."""
    from xml.parsers.expat import ExpatError, ParserCreate

    def refuse_doctype(*_: Any) -> None:
        raise FormFlaw("it has a document type (DTD), which is refused: its entities can expand without end", parser.CurrentByteIndex)

    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        return Reading("it holds half a surrogate pair", error.start)
    parser = ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = refuse_doctype
    try:
        parser.Parse(data, True)
    except (FormFlaw, ExpatError) as error:
        place = error.place if isinstance(error, FormFlaw) else parser.ErrorByteIndex
        return Reading(str(error), len(data[: max(place, 0)].decode("utf-8", "ignore")))
    return Reading()


def read_as_html(text: str) -> Reading:
    """Well-formed HTML, a document or a part of one, with at least one element."""
    try:
        return Reading(value={"elements": check_html(text)})
    except FormFlaw as flaw:
        return Reading(flaw.reason, flaw.place)


def read_as_toml(text: str) -> Reading:
    """TOML 1.0."""
    import tomllib  # type: ignore[import-not-found]  # Python 3.11 and newer; `evaluate_parses` sees to it

    if any(part.count(".") > TOML_KEY_PARTS for part in re.split(r"[^\w.\"' \t-]+", text)):
        raise Unreadable(f"more than {TOML_KEY_PARTS} dotted parts stand in a row")
    try:
        tomllib.loads(text)
    except ValueError as error:
        return Reading(str(error))
    return Reading()


def read_as_python(text: str) -> Reading:
    """A module that the running Python can parse."""
    import ast
    import warnings

    if len(text) > PYTHON_BOUND:
        raise Unreadable(f"it has {len(text):,} characters, and Python is read up to {PYTHON_BOUND:,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return Reading(f"{error.msg} at line {error.lineno or 1}")
    except ValueError:
        return Reading("it holds a null character or half a surrogate pair")
    except (RecursionError, MemoryError):
        raise Unreadable("it is too deeply nested for Python's parser") from None
    return Reading()


def read_as_url(text: str) -> Reading:
    """An absolute URI with a host, RFC 3986."""
    if len(text) > URL_BOUND:
        raise Unreadable(f"it has {len(text):,} characters, and URLs are read up to {URL_BOUND:,}")
    if re.match(URL_AUTHORITY, text) is None:
        return Reading("it does not begin with a scheme, '://' and a host")
    return Reading("" if is_uri(text) else "it holds a character that a URL has to write as %XX, or a broken host")


def read_as_date(text: str) -> Reading:
    """One date, or a date-time of RFC 3339; one that can be read two ways is none."""
    if is_date_time(text):
        return Reading(value=text[:10])
    match = re.fullmatch(DATE_IN_TEXT, text, re.VERBOSE | re.IGNORECASE | re.ASCII)
    if match is None:
        return Reading("it is not one date and nothing else")
    date = matched_date(match)
    return Reading(value=str(date)) if date else Reading("it can be read two ways, or the calendar does not have it")


def one_reading(is_one: Callable[[str], bool], reason: str) -> Callable[[str], Reading]:
    """A reader that knows yes and no only."""
    return lambda text: Reading("" if is_one(text) else reason)


# form: (how a reason calls it, what reads it)
TEXT_FORMS: dict[str, tuple[str, Callable[[str], Reading]]] = {
    "json": ("JSON", read_as_json),
    "jsonl": ("JSON Lines", read_as_jsonl),
    "csv": ("CSV", read_as_csv),
    "xml": ("well-formed XML", read_as_xml),
    "html": ("well-formed HTML", read_as_html),
    "toml": ("TOML", read_as_toml),
    "python": ("Python", read_as_python),
    "url": ("a URL", read_as_url),
    "email": ("an email address", one_reading(is_email, "it is no mailbox of RFC 5321")),
    "date": ("a date", read_as_date),
    "uuid": ("a UUID", one_reading(is_uuid, "it is not of the form 8-4-4-4-12 hexadecimal digits")),
}


@evaluator(
    "parses",
    1,
    "The text is in a form that programs read: JSON, CSV, XML, HTML, TOML, Python, a URL, a date and the like.",
    [Parameter("as", "choice", REQUIRED, "the form; docs/text-metrics.md says what each accepts", tuple(TEXT_FORMS))],
    example={
        "entry": {"id": "rows", "type": "parses", "as": "csv"},
        "observation": {"output": 'sku,name\nA-7,"Lamp, white"'},
        "outcome": "pass",
    },
)
def evaluate_parses(settings: JsonObject) -> Check:
    """The whole text has to be in the form; `transform` takes it out of a fence or strips the space around it. Nothing is repaired or run.
    TOML needs Python 3.11 or newer; Python is what the running Python reads."""
    called, read = TEXT_FORMS[settings["as"]]
    if settings["as"] == "toml" and sys.version_info < (3, 11):
        raise ConfigurationError("/as", "toml needs Python 3.11 or newer", f"this is Python {sys.version_info[0]}.{sys.version_info[1]}")

    def check(view: View) -> Outcome:
        text = text_of(view.value)
        if not text.strip():
            return decided(False, f"is not {called}: there is no text")
        try:
            found = read(text)
        except Unreadable as limit:
            return errored(f"whether it is {called} is not known: {limit}")
        if not found.reason:
            return decided(True, f"is {called}", found.value)
        place = () if found.place is None else ({"start": found.place, "end": min(found.place + 1, len(text))},)
        return decided(False, f"is not {called}: {visible(found.reason)}", None, place)

    return check

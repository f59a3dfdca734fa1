"""Evaluators over text and plain values: equals, contains, matches, length."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from kaizen.evaluators.decimals import exact_value, within_tolerance
from kaizen.evaluators.outcomes import ConfigurationError, NotMeasurable, Outcome, decided
from kaizen.evaluators.regex_timer import compile_pattern, timed_match
from kaizen.evaluators.registry import ABSENT, REQUIRED, Check, Parameter, View, evaluator, is_json_number, listed_texts
from kaizen.evaluators.transforms import TEXT_TRANSFORMS, compile_normalizer, pattern_group, text_of
from kaizen.foundation.jsonio import JsonError, JsonObject, encode_compact, json_equal, json_type, parse_json, pointer_token
from kaizen.foundation.text import counted, listed, quoted, visible

VALUE_SHOWN = 60  # characters of a value in a reason
EVIDENCE_RANGES = 20
PATTERN_FLAGS = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
SENTENCE_STOP = re.compile(r"[.!?\u2026]['\")\]\u00bb\u201d\u2019]{0,9}(?=\s+[^\sa-z]|\s*\Z)|[\u3002\uff01\uff1f]")


def shown_value(value: Any) -> str:
    """*value* as a reason shows it: a text in quotes, else its JSON, cut."""
    return quoted(value, VALUE_SHOWN) if isinstance(value, str) else visible(encode_compact(value), VALUE_SHOWN)


# --- equals ------------------------------------------------------------------------------


def first_difference(expected: Any, actual: Any, is_near: Callable[[Any, Any], bool], pointer: str = "") -> tuple[str, str] | None:
    """(pointer, what differs there) of the first place where *actual* is not *expected*; None when they are the same JSON value."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected:
            if key not in actual:
                return pointer + pointer_token(key), "is missing"
        for key in actual:
            if key not in expected:
                return pointer + pointer_token(key), "is not expected"
        pairs = [(key, item, actual[key]) for key, item in expected.items()]
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = [(index, item, actual[index]) for index, item in enumerate(expected)]
    elif isinstance(expected, list) and isinstance(actual, list):
        return pointer, f"has {counted(len(actual), 'element')}, not {len(expected)}"
    elif is_json_number(expected) and is_json_number(actual):
        return None if is_near(expected, actual) else (pointer, f"is {actual!r}, not {expected!r}")
    else:
        return None if json_equal(expected, actual) else (pointer, differing_values(expected, actual))
    return next(filter(None, (first_difference(item, other, is_near, pointer + pointer_token(key)) for key, item, other in pairs)), None)


def differing_values(expected: Any, actual: Any) -> str:
    """'is X, not Y'; the types where they differ, the code points where two texts may print alike."""
    if json_type(expected) != json_type(actual):
        return f"is the {json_type(actual)} {shown_value(actual)}, not the {json_type(expected)} {shown_value(expected)}"
    told = f"is {shown_value(actual)}, not {shown_value(expected)}"
    if not isinstance(expected, str):
        return told
    place = text_difference(expected, actual)
    found, wanted = actual[place : place + 1], expected[place : place + 1]
    if is_plain(found) and is_plain(wanted) and place < VALUE_SHOWN:
        return told
    return f"{told}; character {place + 1} is {code_point(found)}, not {code_point(wanted)}"


def text_difference(expected: str, actual: str) -> int:
    """The index of the first character in which two texts differ."""
    low, high = 0, min(len(expected), len(actual))
    while low < high:  # halving compares at C speed; a loop over characters would take a second for a long text
        middle = (low + high) // 2
        if expected[low : middle + 1] == actual[low : middle + 1]:
            low = middle + 1
        else:
            high = middle
    return low


def is_plain(character: str) -> bool:
    """True for a character that nobody takes for another, and for the end of a text."""
    return character == "" or "!" <= character <= "~"


def code_point(character: str) -> str:
    """'U+00E9', or 'the end of the text' for the empty string."""
    return f"U+{ord(character):04X}" if character else "the end of the text"


def equality_rule(settings: JsonObject) -> Callable[[Any, Any], bool]:
    """Whether two JSON numbers are equal within the tolerances of *settings*, exactly in decimal terms."""
    abs_tol, rel_tol = settings["abs_tol"], settings["rel_tol"]
    for name in ("abs_tol", "rel_tol"):
        if settings[name] < 0:
            raise ConfigurationError(f"/{name}", f"{name} is negative")
    if not abs_tol and not rel_tol:
        return lambda expected, actual: bool(expected == actual)
    return lambda expected, actual: within_tolerance(exact_value(actual), exact_value(expected), abs_tol, rel_tol)


@evaluator(
    "equals",
    1,
    "The value is the expected one, or one of several; JSON types stay apart, objects and lists are compared deeply.",
    [
        Parameter("value", "any", ABSENT, "the expected value; this or any_of"),
        Parameter("any_of", "list", None, "expected values of which one is enough"),
        Parameter("normalize", "texts", [], f"done to the texts of both sides: {', '.join(TEXT_TRANSFORMS)}", may_be_empty=True),
        Parameter("abs_tol", "number", 0, "numbers may differ by this much, the bound included"),
        Parameter("rel_tol", "number", 0, "numbers may differ by this share of the expected one"),
    ],
    example={
        "entry": {"id": "state", "type": "equals", "select": "output.json/status", "value": {"$case": "/expected/status"}},
        "observation": {"output": '{"status": "shipped", "days": 2}'},
        "case": {"id": "c1", "input": "Where is it?", "expected": {"status": "shipped"}},
        "outcome": "pass",
    },
    default_select="output",
)
def evaluate_equals(settings: JsonObject) -> Check:
    """Looks at the output as it is (a text or JSON) unless `select` says otherwise; nothing is stripped or folded unasked."""
    if (settings["any_of"] is None) == (settings["value"] is ABSENT):
        raise ConfigurationError("", "give either value or any_of")
    normalise = compile_normalizer(listed_texts(settings["normalize"]))
    is_near = equality_rule(settings)
    expected = [normalise(value) for value in (settings["any_of"] if settings["any_of"] is not None else [settings["value"]])]

    def check(view: View) -> Outcome:
        actual = normalise(view.value)
        differences = []
        for value in expected:
            difference = first_difference(value, actual, is_near)
            if difference is None:
                return decided(True, f"is {shown_value(value)}")
            differences.append(difference)
        pointer, told = differences[0]
        more = f" (nor one of {len(expected) - 1} others)" if len(expected) > 1 else ""
        return decided(False, f"{pointer + ' ' if pointer else ''}{told}{more}", None, ({"pointer": pointer},) if pointer else ())

    return check


# --- contains ----------------------------------------------------------------------------


def is_word_character(character: str) -> bool:
    """True for a letter, digit or underscore."""
    return character.isalnum() or character == "_"


def is_whole_word(text: str, start: int, end: int) -> bool:
    """True when text[start:end] does not go on as a word on either side."""
    if start > 0 and is_word_character(text[start]) and is_word_character(text[start - 1]):
        return False
    return not (end < len(text) and is_word_character(text[end - 1]) and is_word_character(text[end]))


def occurrences(text: str, needle: str, whole_word: bool, at: str) -> Iterator[int]:
    """Where *needle* stands in *text*, from the left, without overlaps; `at` start or end allows one place only."""
    if at == "anywhere":
        start = text.find(needle)
    else:
        start = (0 if text.startswith(needle) else -1) if at == "start" else (len(text) - len(needle) if text.endswith(needle) else -1)
    while start >= 0:
        is_one = not whole_word or is_whole_word(text, start, start + len(needle))
        if is_one:
            yield start
        if at != "anywhere":
            return
        start = text.find(needle, start + (len(needle) if is_one else 1))


def unfolded_range(text: str, start: int, end: int) -> tuple[int, int]:
    """The range of *text* whose case-folded form holds characters *start* to *end* of the folded text ('ß' folds to 'ss')."""
    position, first = 0, len(text)
    for index, character in enumerate(text):
        position += len(character.casefold())
        if position > start and first == len(text):
            first = index
        if position >= end:
            return first, index + 1
    return first, len(text)


def needle_bounds(settings: JsonObject) -> tuple[int, int | None]:
    """(fewest, most) occurrences that count as holding: 1 and no bound; 0 when only max_count is given. Raises ConfigurationError."""
    fewest, most = settings["min_count"], settings["max_count"]
    if fewest is None:
        fewest = 1 if most is None else 0
    for name in ("min_count", "max_count"):
        if settings[name] is not None and settings[name] < 0:
            raise ConfigurationError(f"/{name}", f"{name} is negative")
    if most is None and fewest == 0:
        raise ConfigurationError("/min_count", "min_count 0 without max_count asks nothing")
    if most is not None and most < fewest:
        raise ConfigurationError("/max_count", f"max_count {most} is less than {fewest}")
    return fewest, most


@evaluator(
    "contains",
    1,
    "The text holds the given values: all of them, any, or none.",
    [
        Parameter("values", "texts", REQUIRED, "what to look for; a text that is empty is refused"),
        Parameter("mode", "choice", "all", "how many of the values have to occur", ("all", "any", "none")),
        Parameter("min_count", "integer", None, "a value occurs when it is found this often; default 1, or 0 when only max_count is given"),
        Parameter("max_count", "integer", None, "and at most this often"),
        Parameter("ignore_case", "boolean", False, "compare after full case folding ('STRASSE' holds 'straße')"),
        Parameter("whole_word", "boolean", False, "no letter, digit or underscore goes on before or behind it"),
        Parameter("at", "choice", "anywhere", "where it has to stand", ("anywhere", "start", "end")),
    ],
    example={
        "entry": {"id": "names_order", "type": "contains", "values": {"$case": "/expected/mentions"}, "ignore_case": True},
        "observation": {"output": "Your ORDER A-17 is on its way."},
        "case": {"id": "c1", "input": "Where is it?", "expected": {"mentions": ["order", "A-17"]}},
        "outcome": "pass",
    },
)
def evaluate_contains(settings: JsonObject) -> Check:
    """The score is the share of the values that occur in mode all, else 1 or 0."""
    needles = listed_texts(settings["values"])
    if "" in needles:
        raise ConfigurationError("/values", "holds an empty text, which every text contains", "write what is to be found")
    fewest, most = needle_bounds(settings)
    mode, at, whole_word, ignore_case = settings["mode"], settings["at"], settings["whole_word"], settings["ignore_case"]
    folded = [(needle, needle.casefold() if ignore_case else needle) for needle in needles]
    enough = fewest if most is None else most + 1

    def check(view: View) -> Outcome:
        text = text_of(view.value)
        searched = text.casefold() if ignore_case else text
        held: list[str] = []
        lacking: list[str] = []
        evidence: list[JsonObject] = []
        for needle, sought in folded:
            places = []
            for place in occurrences(searched, sought, whole_word, at):
                places.append(place)
                if len(places) == enough:
                    break
            (held if len(places) >= fewest and (most is None or len(places) <= most) else lacking).append(needle)
            for start in places[: EVIDENCE_RANGES - len(evidence)]:
                end = start + len(sought)
                start, end = (start, end) if len(searched) == len(text) else unfolded_range(text, start, end)
                evidence.append({"start": start, "end": end})
        return contains_outcome(mode, held, lacking, tuple(evidence))

    return check


def contains_outcome(mode: str, held: list[str], lacking: list[str], evidence: tuple[JsonObject, ...]) -> Outcome:
    """The outcome when the needles *held* occur as asked and those *lacking* do not."""
    found, absent = (listed((quoted(needle, VALUE_SHOWN) for needle in needles), 3) for needles in (held, lacking))
    told = {True: f"contains {found}", False: f"does not contain {absent}"}
    if mode != "all":
        return decided(bool(held) is (mode == "any"), told[bool(held)], None, evidence)
    outcome = decided(not lacking, told[not lacking], None, evidence)
    return outcome if not lacking or not held else outcome._replace(score=len(held) / (len(held) + len(lacking)))


# --- matches -----------------------------------------------------------------------------


def pattern_flags(letters: str) -> int:
    """The flags of re that *letters* name. Raises ConfigurationError."""
    flags = 0
    for letter in letters:
        if letter not in PATTERN_FLAGS:
            raise ConfigurationError("/flags", f"flag {quoted(letter)} is unknown", f"flags are letters of '{''.join(PATTERN_FLAGS)}'")
        flags |= PATTERN_FLAGS[letter]
    return flags


@evaluator(
    "matches",
    1,
    "A regular expression finds something in the text, or what it captures is the given value.",
    [
        Parameter("pattern", "text", REQUIRED, "a regular expression of Python 3.10; it is stopped after 1 s, which is an error"),
        Parameter("mode", "choice", "search", "search: anywhere; full: the whole text; prefix: at its start", ("search", "full", "prefix")),
        Parameter("flags", "text", "", "letters: i ignore case, m ^ and $ at each line, s . takes line ends, x comments, a ASCII"),
        Parameter("capture", "any", None, "number or name of the group that is compared with value"),
        Parameter("value", "text", None, "what the group has to hold, exactly, in the first match"),
    ],
    example={
        "entry": {"id": "ticket", "type": "matches", "pattern": "ticket (T-\\d+)", "capture": 1, "value": "T-204"},
        "observation": {"output": "I opened ticket T-204 for you."},
        "outcome": "pass",
    },
)
def evaluate_matches(settings: JsonObject) -> Check:
    """An error, neither pass nor fail, when the pattern takes too long."""
    pattern = compile_pattern(settings["pattern"], pattern_flags(settings["flags"]))
    if (settings["capture"] is None) != (settings["value"] is None):
        raise ConfigurationError("", "capture and value are given together or not at all")
    group = 0 if settings["capture"] is None else pattern_group(pattern, settings["capture"], "/capture")
    mode, wanted = settings["mode"], settings["value"]
    shown = f"pattern {quoted(settings['pattern'], VALUE_SHOWN)}"

    def check(view: View) -> Outcome:
        match = timed_match(pattern, text_of(view.value), mode)
        if match is None:
            return decided(False, f"{shown} does not match")
        start, end = match.span(group)
        evidence = ({"start": start, "end": end},) if start >= 0 else ()
        if wanted is None:
            return decided(True, f"{shown} matches", None, evidence)
        captured = match[group]
        told = "captures nothing" if captured is None else f"captures {shown_value(captured)}"
        return decided(captured == wanted, told if captured == wanted else f"{told}, not {shown_value(wanted)}", None, evidence)

    return check


# --- length ------------------------------------------------------------------------------


def lines_in(text: str) -> int:
    """Lines of *text*; a line end at its end begins no further one."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def sentences_in(text: str) -> int:
    """Sentences of *text*: one ends in . ! ? or … before a space and no small letter, or in 。！？; so "3.5" and "p.m. on" end none."""
    ends = [match.end() for match in SENTENCE_STOP.finditer(text)]
    starts = [0, *ends]
    return sum(1 for start, end in zip(starts, [*ends, len(text)], strict=True) if any(map(str.isalnum, text[start:end])))


def paragraphs_in(text: str) -> int:
    """Parts of *text* between blank lines that are not blank."""
    return sum(1 for part in re.split(r"\n[ \t\r]*(?=\n)", text) if part.strip())


LENGTH_UNITS: dict[str, Callable[[str], int]] = {
    "chars": len,
    "words": lambda text: len(text.split()),
    "lines": lines_in,
    "sentences": sentences_in,
    "paragraphs": paragraphs_in,
    "bytes": lambda text: len(text.encode("utf-8", "surrogatepass")),
}


def items_in(value: Any) -> int:
    """Elements of a list, or keys of an object; JSON held in a text is parsed. Raises NotMeasurable."""
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except JsonError:
            raise NotMeasurable("the text is no JSON list or object", True) from None
    if not isinstance(value, (list, dict)):
        raise NotMeasurable(f"a JSON {json_type(value)} has no items", True)
    return len(value)


@evaluator(
    "length",
    1,
    "The length of the text, or the number of items, lies within bounds.",
    [
        Parameter("unit", "choice", "chars", "what is counted; items: of a list, or keys of an object", (*LENGTH_UNITS, "items")),
        Parameter("min", "integer", None, "the least"),
        Parameter("max", "integer", None, "the most"),
        Parameter("exact", "integer", None, "exactly this many"),
    ],
    example={
        "entry": {"id": "brief", "type": "length", "unit": "sentences", "max": 2},
        "observation": {"output": "It was shipped. It arrives at 3.30 p.m. on Friday."},
        "outcome": "pass",
    },
)
def evaluate_length(settings: JsonObject) -> Check:
    """chars are code points, words stand between white space, bytes are of UTF-8."""
    low, high, exact = settings["min"], settings["max"], settings["exact"]
    if low is None and high is None and exact is None:
        raise ConfigurationError("", "has neither min, max nor exact")
    if exact is not None and (low is not None or high is not None):
        raise ConfigurationError("/exact", "exact stands alone, without min and max")
    for name in ("min", "max", "exact"):
        if settings[name] is not None and settings[name] < 0:
            raise ConfigurationError(f"/{name}", f"{name} is negative")
    if low is not None and high is not None and low > high:
        raise ConfigurationError("/min", f"min {low} is greater than max {high}")
    unit = settings["unit"]
    low, high = (low, high) if exact is None else (exact, exact)
    count: Callable[[Any], int] = items_in if unit == "items" else lambda value: LENGTH_UNITS[unit](text_of(value))
    named = (("exactly", exact),) if exact is not None else (("at least", low), ("at most", high))
    bounds = listed([f"{word} {bound}" for word, bound in named if bound is not None])

    def check(view: View) -> Outcome:
        number = count(view.value)
        is_met = (low is None or number >= low) and (high is None or number <= high)
        return decided(is_met, f"has {number:,} {unit}{'' if is_met else ', not'}{':' if is_met else ''} {bounds}", number)

    return check

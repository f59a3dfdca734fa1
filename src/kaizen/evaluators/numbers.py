"""The evaluator `number`: which number a text says, and whether it is the right one.

Numbers are read as decimals.py says and compared exactly: 29.00 is 29, and a tolerance
includes its bound. A text without the number asked for is no 0: it follows `on_missing`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kaizen.evaluators.decimals import (
    DECIMAL_MARKS,
    exact_value,
    find_numbers,
    first_number,
    json_number,
    last_number,
    only_number,
    within_tolerance,
)
from kaizen.evaluators.outcomes import ConfigurationError, NotMeasurable, Outcome, decided
from kaizen.evaluators.regex_timer import compile_pattern, timed
from kaizen.evaluators.registry import Check, Parameter, View, evaluator, is_json_number
from kaizen.evaluators.transforms import pointer_transform, text_of
from kaizen.foundation.jsonio import JsonObject, json_type
from kaizen.foundation.text import counted, listed, quoted

if TYPE_CHECKING:
    import re
    from fractions import Fraction

EXTRACTS = ("last", "first", "only", "any", "regex", "pointer")

NumberTest = Callable[["int | Fraction"], str]  # '' when a number is right, else what is wrong with it


def required_amount(value: Any, mark: str, pointer: str) -> "int | Fraction":
    """The exact value of a parameter, a number or a text that holds one ('$1,250'). Raises ConfigurationError."""
    if is_json_number(value):
        return exact_value(value)
    amount = only_number(value, mark) if isinstance(value, str) else None
    if amount is None:
        raise ConfigurationError(pointer, "does not hold exactly one number", "write a number, or a text with one number in it")
    return amount


def told_amount(value: "int | Fraction") -> str:
    """How a reason shows a number."""
    return str(json_number(value))


def number_test(settings: JsonObject, mark: str) -> NumberTest | None:
    """What is asked of the number: equals within its tolerances, min, max; None when nothing is. Raises ConfigurationError."""
    wanted, low, high = (
        None if settings[name] is None else required_amount(settings[name], mark, f"/{name}") for name in ("equals", "min", "max")
    )
    abs_tol, rel_tol = settings["abs_tol"], settings["rel_tol"]
    if abs_tol < 0 or rel_tol < 0:
        raise ConfigurationError("/abs_tol" if abs_tol < 0 else "/rel_tol", "a tolerance is negative")
    if low is not None and high is not None and low > high:
        raise ConfigurationError("/min", "min is greater than max")
    if wanted is None and low is None and high is None:
        return None

    def test(number: "int | Fraction") -> str:
        if wanted is not None and not within_tolerance(number, wanted, abs_tol, rel_tol):
            return f"is not {told_amount(wanted)}"
        if low is not None and number < low:
            return f"is below {told_amount(low)}"
        return f"is above {told_amount(high)}" if high is not None and number > high else ""

    return test


class ReadNumber(NamedTuple):
    """A number that was read, and the range of the text where it stands; -1 when it is no text."""

    value: "int | Fraction"
    start: int = -1
    end: int = -1

    def evidence(self) -> tuple[JsonObject, ...]:
        """The range as evidence of an outcome."""
        return ({"start": self.start, "end": self.end},) if self.start >= 0 else ()


def chosen_number(text: str, mark: str, extract: str) -> ReadNumber:
    """The number of *text* that *extract* means: last, first, only. Raises NotMeasurable when it is not there."""
    found = last_number(text, mark) if extract == "last" else first_number(text, mark)
    if found is None:
        raise NotMeasurable("there is no number")
    if found.value is None:
        raise NotMeasurable("the number has too many digits")
    if extract == "only" and only_number(text, mark) is None:
        raise NotMeasurable("there are several numbers where one was asked for")
    return ReadNumber(found.value, found.start, found.end)


def number_reader(settings: JsonObject, mark: str) -> Callable[[Any], ReadNumber]:
    """What reads the one number that `extract` asks for out of a value. Raises ConfigurationError."""
    extract = settings["extract"]
    for name, needed_by in (("pattern", "regex"), ("pointer", "pointer")):
        if (settings[name] is not None) != (extract == needed_by):
            raise ConfigurationError(f"/{name}" if settings[name] is not None else "", f"{name} and extract {needed_by} go together")
    if extract == "pointer":
        if "*" in settings["pointer"].split("/"):
            raise ConfigurationError("/pointer", "leads to several values; one number is asked for")
        follow = pointer_transform([settings["pointer"]], "/pointer")
        return lambda value: ReadNumber(read_value(follow(value), lambda text: chosen_number(text, mark, "only")).value)
    if extract == "regex":
        pattern = compile_pattern(settings["pattern"])
        group = min(pattern.groups, 1)

        def find(text: str) -> ReadNumber:
            match = last_match(pattern, text)
            if match is None or match[group] is None:
                raise NotMeasurable(f"pattern {quoted(settings['pattern'], 60)} finds nothing")
            value, start, end = chosen_number(match[group], mark, "first")
            return ReadNumber(value, start + match.start(group), end + match.start(group))

        return lambda value: read_value(value, find)
    return lambda value: read_value(value, lambda text: chosen_number(text, mark, extract))


def read_value(value: Any, read_text: Callable[[str], ReadNumber]) -> ReadNumber:
    """A JSON number as it is, else what *read_text* finds in the text of *value*. Raises NotMeasurable."""
    if is_json_number(value):
        return ReadNumber(exact_value(value))
    if isinstance(value, (bool, dict)):
        raise NotMeasurable(f"a JSON {json_type(value)} is no number", True)
    return read_text(text_of(value))


def last_match(pattern: "re.Pattern[str]", text: str) -> "re.Match[str] | None":
    """The last of the matches of *pattern* in *text*, from the left, without overlaps. Raises PatternTimeout."""

    def find() -> "re.Match[str] | None":
        last = None
        for match in pattern.finditer(text):
            last = match
        return last

    return timed(find)


@evaluator(
    "number",
    1,
    "A number in the text is the expected one, or lies within bounds; thousands separators do not change it.",
    [
        Parameter("extract", "choice", "last", "which number of the text; or by regex or pointer", EXTRACTS),
        Parameter("pattern", "text", None, "for extract regex: the first number in the first group (else all) of its last match"),
        Parameter("pointer", "text", None, "for extract pointer: where the number stands in the JSON looked at"),
        Parameter("equals", "amount", None, 'the expected number, such as 1250 or "$1,250"'),
        Parameter("abs_tol", "number", 0, "it may differ by this much, the bound included"),
        Parameter("rel_tol", "number", 0, "it may differ by this share of the expected one"),
        Parameter("min", "amount", None, "the least"),
        Parameter("max", "amount", None, "the most"),
        Parameter("include", "list", None, "numbers each of which occurs somewhere in the text"),
        Parameter("decimal_mark", "choice", ".", "in text and parameters; the other one of . and , separates thousands", DECIMAL_MARKS),
    ],
    example={
        "entry": {"id": "total", "type": "number", "equals": {"$case": "/expected/total"}},
        "observation": {"output": "2 nights at $625 make $1,250.00."},
        "case": {"id": "c1", "input": "What do two nights cost?", "expected": {"total": 1250}},
        "outcome": "pass",
    },
)
def evaluate_number(settings: JsonObject) -> Check:
    """The value is the number read; currency signs, percent signs and units around it do not count."""
    mark = settings["decimal_mark"]
    test = number_test(settings, mark)
    if (test is None) == (settings["include"] is None):
        raise ConfigurationError("", "give equals, min or max, or else include")
    read = number_reader(settings, mark)
    if test is None:
        return include_check(settings, mark)
    if settings["extract"] == "any":
        return any_check(test, mark)

    def check(view: View) -> Outcome:
        number = read(view.value)
        wrong = test(number.value)
        told = f"reads {told_amount(number.value)}{', which ' + wrong if wrong else ''}"
        return decided(not wrong, told, json_number(number.value), number.evidence())

    return check


def numbers_of(value: Any, mark: str) -> list[ReadNumber]:
    """All numbers of a value: itself if it is one, else those in its text (without what has too many digits to be one)."""
    if is_json_number(value):
        return [ReadNumber(exact_value(value))]
    return [ReadNumber(number, start, end) for number, start, end in find_numbers(text_of(value), mark) if number is not None]


def any_check(test: NumberTest, mark: str) -> Check:
    """Passes when one of the numbers of the text does."""

    def check(view: View) -> Outcome:
        found = numbers_of(view.value, mark)
        if not found:
            raise NotMeasurable("there is no number")
        for number in found:
            if not test(number.value):
                return decided(True, f"reads {told_amount(number.value)}", json_number(number.value), number.evidence())
        wrong = [f"{told_amount(number.value)} {test(number.value)}" for number in found[:4]]
        return decided(False, f"of {counted(len(found), 'number')} none is right: {listed(wrong, 3)}")

    return check


def include_check(settings: JsonObject, mark: str) -> Check:
    """Passes when each number of `include` occurs; the score is the share of those that do."""
    wanted = [required_amount(value, mark, f"/include/{index}") for index, value in enumerate(settings["include"])]
    abs_tol, rel_tol = settings["abs_tol"], settings["rel_tol"]

    def check(view: View) -> Outcome:
        found = numbers_of(view.value, mark)
        lacking: list[str] = []
        evidence: list[JsonObject] = []
        for value in wanted:
            near = next((number for number in found if within_tolerance(number.value, value, abs_tol, rel_tol)), None)
            if near is None:
                lacking.append(told_amount(value))
            else:
                evidence += near.evidence()
        reason = f"does not say {listed(lacking, 5)}" if lacking else f"says {listed(map(told_amount, wanted), 5)}"
        return decided(not lacking, reason, None, tuple(evidence))._replace(score=(len(wanted) - len(lacking)) / len(wanted))

    return check

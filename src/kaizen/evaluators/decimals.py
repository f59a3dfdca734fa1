"""Numbers as people write them, kept exact: 0.1 is a tenth, $1,250.00 is 1250.

Values are int or Fraction, so neither binary rounding nor the order of summation can move
a score across its threshold. A float counts as the decimal that its shortest form shows.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kaizen.foundation.jsonio import LARGEST_EXACT_INTEGER

if TYPE_CHECKING:
    from fractions import Fraction

MAX_NUMBER_DIGITS = 300  # what has more digits or a greater exponent is no quantity; it also keeps the arithmetic cheap
DECIMAL_MARKS = (".", ",")


def decimal_value(text: str) -> "int | Fraction":
    """The exact value of *text*, digits with an optional sign, point and exponent: '-3.50' is -7/2.

    >>> decimal_value("29.00"), decimal_value("1e3"), str(decimal_value("-3.50"))
    (29, 1000, '-7/2')
    """
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, decimals = mantissa.partition(".")
    power = int(exponent or 0) - len(decimals)
    number = int(whole + decimals)
    if power >= 0:
        return int(number * 10**power)
    if number % 10**-power == 0:
        return int(number // 10**-power)
    from fractions import Fraction

    return Fraction(number, 10**-power)


def exact_value(number: float) -> "int | Fraction":
    """The decimal that *number* shows, exactly: 0.1 is 1/10."""
    if isinstance(number, int):
        return number
    return int(number) if number.is_integer() and -LARGEST_EXACT_INTEGER < number < LARGEST_EXACT_INTEGER else decimal_value(repr(number))


def exact_mean(pairs: Iterable[tuple[float, float]]) -> float | None:
    """The mean of (score, weight) pairs, rounded once; None when the weights sum to 0.

    >>> exact_mean([(0.7, 1), (0.8, 1), (0.9, 1)]), exact_mean([(1.0, 0.1)] * 10), exact_mean([])
    (0.8, 1.0, None)
    """
    weights: int | Fraction = 0
    total: int | Fraction = 0
    for score, weight in pairs:
        exact_weight = weight if isinstance(weight, int) else exact_value(weight)
        weights += exact_weight
        if score == 1:
            total += exact_weight
        elif score:
            total += exact_weight * exact_value(score)
    return float(total / weights) if weights else None


def exact_complement(score: float) -> float:
    """1 − *score*, exact in decimal terms: 0.7 gives 0.3."""
    return float(1 - exact_value(score))


def within_tolerance(actual: "int | Fraction", expected: "int | Fraction", abs_tol: float = 0, rel_tol: float = 0) -> bool:
    """True when *actual* is at most *abs_tol*, or *rel_tol* times |*expected*|, away from *expected*; the bounds count as met."""
    distance = actual - expected if actual >= expected else expected - actual
    size = expected if expected >= 0 else -expected
    return distance <= exact_value(abs_tol) or (rel_tol > 0 and distance <= exact_value(rel_tol) * size)


def json_number(value: "int | Fraction") -> int | float:
    """*value* as a JSON number: an integer stays one."""
    return value if isinstance(value, int) else float(value)


# --- Numbers in prose --------------------------------------------------------------------


class FoundNumber(NamedTuple):
    """A number found in a text: its value (None when it has too many digits to be one), and where it stands."""

    value: "int | Fraction | None"
    start: int
    end: int


def number_pattern(mark: str) -> "re.Pattern[str]":
    """The pattern of a number whose decimal mark is *mark*. Two numbers never overlap, and it runs in linear time.

    A sign counts only where nothing stands before it that it could subtract from ("16-3" holds 16 and 3). Digits inside a
    word ("x2", "gsm8k") and parts of versions ("1.5.2") are no numbers. LaTeX writes 9,500 as 9{,}500 or 9\\,500.
    """
    other = re.escape("," if mark == "." else ".")
    point = re.escape(mark)
    return re.compile(
        rf"""
        (?:(?<![\w.)\]%])(?P<sign>[-+\u2212\u2013\uff0d\ufe63]))?
        (?:\\?[$\u20ac\u00a3\u00a5\u20b9\u20a9\u20bd]\ ?)?
        (?:(?<=[$\u20ac\u00a3\u00a5\u20b9\u20a9\u20bd])(?P<inner>[-\u2212]))?
        (?<!\w)(?<![0-9]{point})
        (?P<digits>
          (?:
             [1-9][0-9]{{0,2}}(?P<group>{other}|\{{{other}\}}|\\,|['\u2019\u00a0\u202f\u2009_])[0-9]{{3}}(?:(?P=group)[0-9]{{3}}){{0,99}}(?![0-9])
           | [1-9][0-9]?(?:{other}[0-9]{{2}}){{1,99}}{other}[0-9]{{3}}(?![0-9])
           | [0-9]+
          )(?:{point}[0-9]+)?
        | (?<![\w.,]){point}[0-9]+
        )
        (?:[eE](?P<exponent>[-+\u2212]?[0-9]{{1,9}})(?!\w)
         | \s?(?:\u00d7|x|\*|\u00b7|\\times|\\cdot)\s?10(?:\^|\*\*)\{{?(?P<power>[-\u2212]?[0-9]{{1,9}})\}}?)?
        (?![0-9]|{point}[0-9])
        """,
        re.VERBOSE,
    )


NUMBER_PATTERNS: dict[str, "re.Pattern[str]"] = {}


def number_matches(text: str, mark: str) -> Iterator["re.Match[str]"]:
    """The matches of `number_pattern` in *text*, found as they are asked for."""
    pattern = NUMBER_PATTERNS.get(mark)
    if pattern is None:
        pattern = NUMBER_PATTERNS[mark] = number_pattern(mark)
    return pattern.finditer(text)


def find_numbers(text: str, mark: str = ".") -> list[FoundNumber]:
    """Every number in *text* whose decimal mark is *mark*, in order: '$8,000' is 8000, '−3.50 %' is -3.5."""
    return [found_number(match, mark) for match in number_matches(text, mark)]


def first_number(text: str, mark: str = ".") -> FoundNumber | None:
    """The first number in *text*; None when there is none."""
    match = next(number_matches(text, mark), None)
    return None if match is None else found_number(match, mark)


def last_number(text: str, mark: str = ".") -> FoundNumber | None:
    """The last number in *text*; None when there is none. Only that one is worked out, so a long text costs its search alone."""
    last = None
    for match in number_matches(text, mark):
        last = match
    return None if last is None else found_number(last, mark)


def found_number(match: "re.Match[str]", mark: str) -> FoundNumber:
    """A match of `number_pattern` as a number."""
    return FoundNumber(matched_value(match, mark), match.start(), match.end())


def matched_value(match: "re.Match[str]", mark: str) -> "int | Fraction | None":
    """The value of a match of `number_pattern`; None when it has too many digits."""
    exponent = (match["exponent"] or match["power"] or "0").replace("\u2212", "-")
    digits = "".join(mark_or_digit for mark_or_digit in match["digits"] if mark_or_digit in "0123456789" or mark_or_digit == mark)
    if len(digits) > MAX_NUMBER_DIGITS or abs(int(exponent)) > MAX_NUMBER_DIGITS // 2:
        return None
    whole, _, decimals = digits.partition(mark)
    value = decimal_value(f"{whole or '0'}.{decimals}e{exponent}")
    return -value if (match["sign"] or match["inner"] or "+") != "+" else value


def only_number(text: str, mark: str = ".") -> "int | Fraction | None":
    """The number that *text* holds, whatever stands around it; None when it holds none or several."""
    matches = number_matches(text, mark)
    only = next(matches, None)
    return None if only is None or next(matches, None) is not None else matched_value(only, mark)

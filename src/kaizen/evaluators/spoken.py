"""Whether a value was said in messages, in the forms in which people write it.

Case, _ - and spaces do not matter ("extend_rental" and "Extend rental", "K-20" and "k20"), nor do currency
signs and thousands separators (1250 and "$1,250.00"), nor the written form of ISO dates ("2026-03-05" and
"March 5th", "5 March 2026", "05/03/2026", "3/5/2026"; a year that is said has to be the right one, and
the time of a date with time is said too). Numbers are compared as exact values, texts as whole words.
"""

import re
from typing import Any

from kaizen.evaluators.decimals import exact_value, find_numbers
from kaizen.foundation.jsonio import encode_compact

SPOKEN_SEPARATORS = re.compile(r"[\s_\-\u2010-\u2015\u2212$€£¥₹₩₽₺₫₴₪฿₱₦]+")
SPOKEN_CURRENCY = " \t\u00a0\u202f$€£¥₹₩₽₺₫₴₪฿₱₦"
SPOKEN_BREAK = " \x00 "  # no value holds it
SPOKEN_ISO_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
SPOKEN_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
SPOKEN_MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
SPOKEN_DAY = re.compile(
    rf"""
      (?<!\d)(?P<day_before>\d{{1,2}})(?:st|nd|rd|th|\.)?\ (?:of\ )?(?P<month_after>{SPOKEN_MONTH})\b
        (?:\.?,?\ (?P<year_after>\d{{4}})(?!\d))?
    | \b(?P<month_before>{SPOKEN_MONTH})\.?\ (?:the\ )?(?P<day_after>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])
        (?:,?\ (?P<year_before>\d{{4}})(?!\d))?
    | (?<!\d)(?P<one>\d{{4}}|\d{{1,2}})[-/.](?P<two>\d{{1,2}})[-/.](?P<three>\d{{4}}|\d{{1,2}})(?!\d)""",
    re.VERBOSE | re.ASCII,
)


class Spoken:
    """The texts of messages, prepared once for several questions."""

    def __init__(self, texts: list[str]) -> None:
        self.text = SPOKEN_BREAK.join(texts)
        self.numbers: set[Any] | None = None
        self.compact = ""
        self.breaks: set[int] | None = None
        self.days: set[tuple[int | None, int, int]] | None = None

    def says(self, value: Any) -> bool:
        """Whether *value*, and of a list or object each value in it, was said; null and empty texts need not be."""
        if isinstance(value, (list, dict)):
            return all(self.says(item) for item in (value.values() if isinstance(value, dict) else value))
        if value is None:
            return True
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return abs(exact_value(value)) in self.said_numbers()
        text = value if isinstance(value, str) else encode_compact(value)
        date = SPOKEN_ISO_DATE.fullmatch(text.strip())
        if date:
            return self.says_date(date)
        number = whole_number(text)
        return (number is not None and abs(number) in self.said_numbers()) or self.says_words(text)

    def said_numbers(self) -> set[Any]:
        """The numbers in the texts, without their signs, whichever of . and , is their decimal mark."""
        if self.numbers is None:
            found = [number for mark in (".", ",") for number in find_numbers(self.text, mark)]
            self.numbers = {abs(each.value) for each in found if each.value is not None and stands_alone(self.text, each.start, each.end)}
        return self.numbers

    def says_words(self, text: str) -> bool:
        """Whether the words of *text* were said, separators aside and not inside another word."""
        wanted = "".join(SPOKEN_SEPARATORS.split(folded_text(text)))
        if self.breaks is None:
            pieces = SPOKEN_SEPARATORS.split(folded_text(self.text))
            self.compact, self.breaks, length = "".join(pieces), set(), 0
            for piece in pieces:
                length += len(piece)
                self.breaks.add(length)
        start = self.compact.find(wanted)
        while start >= 0:
            if self.is_edge(start) and self.is_edge(start + len(wanted)):
                return True
            start = self.compact.find(wanted, start + 1)
        return False

    def is_edge(self, place: int) -> bool:
        """Whether a word begins or ends at *place* of the compact text."""
        if place in (0, len(self.compact)) or place in (self.breaks or ()):
            return True
        return not (self.compact[place - 1].isalnum() and self.compact[place].isalnum())

    def says_date(self, date: "re.Match[str]") -> bool:
        """Whether an ISO date was said in one of its written forms, with the time when it has one."""
        text = " ".join(self.text.casefold().split())
        if self.days is None:
            self.days = {day for match in SPOKEN_DAY.finditer(text) for day in spoken_days(match)}
        year, month, day = (int(part) for part in date.groups()[:3])
        if (year, month, day) not in self.days and (None, month, day) not in self.days:
            return False
        return date[4] is None or re.search(time_form(int(date[4]), date[5]), text) is not None


def spoken_days(match: "re.Match[str]") -> list[tuple[int | None, int, int]]:
    """The (year, month, day) that a match of SPOKEN_DAY can mean; the year is None where none was said."""
    name = match["month_after"] or match["month_before"]
    if name:
        year = match["year_after"] or match["year_before"]
        day = match["day_before"] or match["day_after"]
        return [(int(year) if year else None, SPOKEN_MONTHS.index(name[:3]) + 1, int(day))]
    one, two, three = int(match["one"]), int(match["two"]), int(match["three"])
    if len(match["one"]) == 4:
        return [(one, two, three)]
    years = [three] if len(match["three"]) == 4 else [1900 + three, 2000 + three]
    return [(year, *pair) for year in years for pair in ((one, two), (two, one))]


def folded_text(text: str) -> str:
    """*text* after nfkc and full case folding, apostrophes straight."""
    import unicodedata

    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'")


def stands_alone(text: str, start: int, end: int) -> bool:
    """Whether the number between *start* and *end* is no part of a name (K-20) or of a longer number (2.5, 1.2.3)."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    is_named = before[:1].isalpha() and before[1:] in ("-", "_")
    is_longer = (before[:1].isdigit() and before[1:] in (".", ",")) or (after[1:].isdigit() and after[:1] in (".", ","))
    return not (is_named or is_longer)


def whole_number(text: str) -> Any:
    """The number that all of *text* writes, currency signs aside; None for anything else."""
    plain = text.strip(SPOKEN_CURRENCY)
    found = find_numbers(plain)
    return found[0].value if len(found) == 1 and (found[0].start, found[0].end) == (0, len(plain)) else None


def time_form(hour: int, minute: str) -> str:
    """The pattern of a time of day, with 24 or 12 hours, for lower-case text."""
    half = hour % 12 or 12
    minutes = rf"(?:[:.]{minute})" + ("?" if minute == "00" else "")
    return rf"(?<![\d:])0?{hour}[:.h]{minute}(?!\d)|(?<![\d:])0?{half}{minutes} ?{'p' if hour >= 12 else 'a'}\.?m\b"

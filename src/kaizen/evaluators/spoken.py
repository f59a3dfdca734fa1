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

SEPARATORS = re.compile(r"[\s_\-\u2010-\u2015\u2212$€£¥₹₩₽₺₫₴₪฿₱₦]+")
CURRENCY_MARKS = " \t\u00a0\u202f$€£¥₹₩₽₺₫₴₪฿₱₦"
MESSAGE_BREAK = " \x00 "  # no value holds it
ISO_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
MONTHS = "january february march april may june july august september october november december".split()


class Spoken:
    """The texts of messages, prepared once for several questions."""

    def __init__(self, texts: list[str]) -> None:
        self.text = MESSAGE_BREAK.join(texts)
        self.numbers: set[Any] | None = None
        self.compact = ""
        self.breaks: set[int] | None = None

    def says(self, value: Any) -> bool:
        """Whether *value*, and of a list or object each value in it, was said; null and empty texts need not be."""
        if isinstance(value, (list, dict)):
            return all(self.says(item) for item in (value.values() if isinstance(value, dict) else value))
        if value is None:
            return True
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return abs(exact_value(value)) in self.said_numbers()
        text = value if isinstance(value, str) else encode_compact(value)
        date = ISO_DATE.fullmatch(text.strip())
        if date:
            return self.says_date(date)
        number = whole_number(text)
        return (number is not None and abs(number) in self.said_numbers()) or self.says_words(text)

    def said_numbers(self) -> set[Any]:
        """The numbers in the texts, without their signs, whichever of . and , is their decimal mark."""
        if self.numbers is None:
            found = [
                number for mark in (".", ",") for number in find_numbers(self.text, mark) if not is_after_letter(self.text, number.start)
            ]
            self.numbers = {abs(number.value) for number in found if number.value is not None}
        return self.numbers

    def says_words(self, text: str) -> bool:
        """Whether the words of *text* were said, separators aside and not inside another word."""
        wanted = "".join(SEPARATORS.split(folded_text(text)))
        if self.breaks is None:
            pieces = SEPARATORS.split(folded_text(self.text))
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
        year, month, day = (int(part) for part in date.groups()[:3])
        if not 1 <= month <= len(MONTHS) or not any(
            found.groupdict().get("year") in (None, str(year)) for form in date_forms(year, month, day) for found in re.finditer(form, text)
        ):
            return False
        return date[4] is None or re.search(time_form(int(date[4]), date[5]), text) is not None


def folded_text(text: str) -> str:
    """*text* after nfkc and full case folding, apostrophes straight."""
    import unicodedata

    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'")


def is_after_letter(text: str, start: int) -> bool:
    """Whether the number at *start* belongs to a name such as K-20."""
    return start >= 2 and text[start - 1] in "-_" and text[start - 2].isalpha()


def whole_number(text: str) -> Any:
    """The number that all of *text* writes, currency signs aside; None for anything else."""
    plain = text.strip(CURRENCY_MARKS)
    found = find_numbers(plain)
    return found[0].value if len(found) == 1 and (found[0].start, found[0].end) == (0, len(plain)) else None


def date_forms(year: int, month: int, day: int) -> list[str]:
    """Patterns of the written forms of a date, for lower-case text; the group `year` is the year that was said, if any."""
    name = MONTHS[month - 1]
    word = rf"(?:{name}|{name[:4] if name == 'september' else name[:3]}\.?|{name[:3]}\.?)"
    number = rf"(?<!\d)0?{day}(?:st|nd|rd|th|\.)?"
    said_year = r"(?:,? (?P<year>\d{4})(?!\d))?"
    short = rf"(?:{year}|{year % 100:02d})"
    return [
        rf"\b{word} (?:the )?0?{day}(?:st|nd|rd|th)?(?![\d:]){said_year}",
        rf"{number} (?:of )?{word}(?!\w){said_year}",
        rf"(?<!\d){year}[-/.]0?{month}[-/.]0?{day}(?!\d)",
        rf"(?<!\d)0?{day}[-/.]0?{month}[-/.]{short}(?!\d)",
        rf"(?<!\d)0?{month}[-/.]0?{day}[-/.]{short}(?!\d)",
    ]


def time_form(hour: int, minute: str) -> str:
    """The pattern of a time of day, with 24 or 12 hours, for lower-case text."""
    half = hour % 12 or 12
    minutes = rf"(?:[:.]{minute})" + ("?" if minute == "00" else "")
    return rf"(?<![\d:])0?{hour}[:.h]{minute}(?!\d)|(?<![\d:])0?{half}{minutes} ?{'p' if hour >= 12 else 'a'}\.?m\b"

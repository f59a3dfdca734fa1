"""Dates as people write them: 2026-03-05, 5 March 2026, 05.03.2026, 3/25/2026.

Only the day counts: of a date with a time, the part before it, as it stands. 3/4/2026 can be
read two ways, so it is no date that could be compared; 31.02.2026 is none either. Years have
four digits, names of months are English.
"""

import re
from typing import Any, NamedTuple

from kaizen.foundation.schema_formats import is_calendar_date

MONTH_STEMS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
LONG_MONTHS = "jan(?:uary)? feb(?:ruary)? mar(?:ch)? apr(?:il)? may june? july? aug(?:ust)? sept?(?:ember)?"
MONTH_NAME = "|".join([*LONG_MONTHS.split(), "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?"])
NTH = "(?:st|nd|rd|th)?"
# Compiled when it is first used.
DATE_IN_TEXT = rf"""
    (?<![0-9A-Za-z./-])(?:
        (?P<year>[0-9]{{4}})(?P<mark>[-/.])(?P<month>[0-9]{{1,2}})(?P=mark)(?P<day>[0-9]{{1,2}})(?![0-9/-])
      | (?P<dot_day>[0-9]{{1,2}})\.\ ?(?P<dot_month>[0-9]{{1,2}})\.\ ?(?P<dot_year>[0-9]{{4}})(?![0-9/-])
      | (?P<one>[0-9]{{1,2}})(?P<slash>[/-])(?P<two>[0-9]{{1,2}})(?P=slash)(?P<slash_year>[0-9]{{4}})(?![0-9/-])
      | (?P<first_day>[0-9]{{1,2}}){NTH}\.?[\s-](?:of\s)?(?P<name_after>{MONTH_NAME})\.?,?[\s-](?P<after_year>[0-9]{{4}})(?![0-9])
      | (?P<name_before>{MONTH_NAME})\.?\s(?P<later_day>[0-9]{{1,2}}){NTH},?\s(?P<before_year>[0-9]{{4}})(?![0-9])
    )
    """


class Date(NamedTuple):
    """A day of the Gregorian calendar."""

    year: int
    month: int
    day: int

    def __str__(self) -> str:
        return f"{self.year:04d}-{self.month:02d}-{self.day:02d}"


def find_dates(text: str) -> list[Date | None]:
    """The dates in *text*, in order; None for one that can be read two ways or that the calendar does not have."""
    return [matched_date(match) for match in re.finditer(DATE_IN_TEXT, text, re.VERBOSE | re.IGNORECASE | re.ASCII)]


def matched_date(match: "re.Match[str]") -> Date | None:
    """The date of a match of DATE_IN_TEXT."""
    if match["one"]:
        one, two = int(match["one"]), int(match["two"])
        if one <= 12 and two <= 12 and one != two:
            return None
        year, month, day = int(match["slash_year"]), min(one, two) if max(one, two) > 12 else one, max(one, two)
    else:
        name = match["name_after"] or match["name_before"]
        year = int(match["year"] or match["dot_year"] or match["after_year"] or match["before_year"])
        month = MONTH_STEMS.index(name[:3].lower()) + 1 if name else int(match["month"] or match["dot_month"])
        day = int(match["day"] or match["dot_day"] or match["first_day"] or match["later_day"])
    return Date(year, month, day) if year and is_calendar_date(year, month, day) else None


def read_date(value: Any) -> tuple[Date | None, str]:
    """(the one date that the text *value* holds, ''), or (None, why there is none)."""
    if not isinstance(value, str):
        return None, "is no text, so it holds no date"
    found = set(find_dates(value))
    if len(found) != 1:
        return None, "holds several dates" if found else "holds no date"
    date = found.pop()
    return date, "" if date else "holds a date that can be read two ways, or that the calendar does not have"


def days_apart(one: Date, other: Date) -> int:
    """How many days lie between two dates from year 1 on."""
    import datetime

    return abs((datetime.date(*one) - datetime.date(*other)).days)

"""Formats of JSON Schema that are checked: date, email, uri and the like, each by its RFC.

The names and documents are those of JSON Schema 2020-12, section 7.3. Where a format is
read more widely than its document says, the function says so. All patterns are linear in
the length of the text, since the text comes from an agent. They are compiled when they are
first used, which most runs never do.
"""

import re
from collections.abc import Callable

MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

FULL_DATE = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
FULL_TIME = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
DURATION_FORM = (
    r"P(?:[0-9]+W|(?=[0-9T])(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?"
    r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?)"
)
UUID_FORM = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
IPV4_FORM = r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!\Z)|\Z)){4}"
IPV6_GROUP = r"[0-9A-Fa-f]{1,4}"
HOSTNAME_FORM = r"(?=.{1,253}\Z)(?!-)[A-Za-z0-9-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*"
MAIL_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
MAIL_LOCAL_PART = rf'(?=.{{1,64}}\Z)(?:{MAIL_ATOM}(?:\.{MAIL_ATOM})*|"(?:[ !#-\[\]-~]|\\[ -~])*")'
URI_CHARACTER = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})"
URI_FORM = (
    r"[A-Za-z][A-Za-z0-9+.-]*:"
    r"(?://(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*@)?"
    r"(?:\[([^\]]*)\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?(?:/" + URI_CHARACTER + r"*)?"
    r"|(?!//)" + URI_CHARACTER + r"*)"
    r"(?:\?(?:" + URI_CHARACTER + r"|\?)*)?(?:#(?:" + URI_CHARACTER + r"|\?)*)?"
)
IP_FUTURE = r"[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+"


def days_in_month(year: int, month: int) -> int:
    """How many days *month* (1 to 12) of *year* has in the Gregorian calendar."""
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and is_leap else MONTH_DAYS[month - 1]


def is_calendar_date(year: int, month: int, day: int) -> bool:
    """True when there is such a day in the Gregorian calendar."""
    return 1 <= month <= 12 and 1 <= day <= days_in_month(year, month)


def is_full_date(text: str) -> bool:
    """True for a full-date of RFC 3339: 2026-02-28."""
    match = re.fullmatch(FULL_DATE, text)
    return match is not None and is_calendar_date(*map(int, match.groups()))


def is_full_time(text: str) -> bool:
    """True for a full-time of RFC 3339, which has an offset: 08:30:06Z; second 60 only where UTC ends a day."""
    match = re.fullmatch(FULL_TIME, text)
    if match is None:
        return False
    hour, minute, second = int(match[1]), int(match[2]), int(match[3])
    offset_hour, offset_minute = int(match[5] or 0), int(match[6] or 0)
    if hour > 23 or minute > 59 or offset_hour > 23 or offset_minute > 59:
        return False
    offset = (offset_hour * 60 + offset_minute) * (-1 if match[4] == "-" else 1)
    return second < 60 or second == 60 and (hour * 60 + minute - offset) % 1440 == 1439


def is_date_time(text: str) -> bool:
    """True for a date-time of RFC 3339: 2026-02-28T08:30:06.5+01:00."""
    return text[10:11] in ("T", "t") and is_full_date(text[:10]) and is_full_time(text[11:])


def is_duration(text: str) -> bool:
    """True for a duration of ISO 8601, wider than RFC 3339: designators may be left out between others, seconds have fractions."""
    return re.fullmatch(DURATION_FORM, text) is not None


def is_ipv4(text: str) -> bool:
    """True for a dotted quad of RFC 2673, without leading zeros."""
    return re.fullmatch(IPV4_FORM, text) is not None


def is_ipv6(text: str) -> bool:
    """True for an address of RFC 4291, section 2.2, without a zone."""
    head, gap, tail = text.partition("::")
    groups = [group for part in (head, tail) if part for group in part.split(":")]
    width = len(groups)
    if groups and not text.endswith("::") and is_ipv4(groups[-1]):
        groups.pop()
        width += 1
    return (width <= 7 if gap else width == 8) and all(re.fullmatch(IPV6_GROUP, group) for group in groups)


def is_hostname(text: str) -> bool:
    """True for a name of RFC 1123, section 2.1: labels of 1 to 63 letters, digits and inner hyphens, 253 characters in all."""
    return re.fullmatch(HOSTNAME_FORM, text) is not None


def is_email(text: str) -> bool:
    """True for a Mailbox of RFC 5321, section 4.1.2: ASCII, the part before the last @ may be quoted."""
    local, at, domain = text.rpartition("@")
    if not at or re.fullmatch(MAIL_LOCAL_PART, local) is None:
        return False
    if domain.startswith("[") and domain.endswith("]"):
        literal = domain[1:-1]
        return is_ipv6(literal[5:]) if literal[:5].lower() == "ipv6:" else is_ipv4(literal)
    return is_hostname(domain)


def is_uri(text: str) -> bool:
    """True for a URI of RFC 3986, which has a scheme; a relative reference is none."""
    match = re.fullmatch(URI_FORM, text)
    if match is None:
        return False
    return match[1] is None or is_ipv6(match[1]) or re.fullmatch(IP_FUTURE, match[1]) is not None


def is_uuid(text: str) -> bool:
    """True for a UUID of RFC 4122 in its 8-4-4-4-12 form, in either case."""
    return re.fullmatch(UUID_FORM, text) is not None


# "regex" is the compiler's own: it knows how patterns are read.
SCHEMA_FORMATS: dict[str, Callable[[str], bool]] = {
    "date": is_full_date,
    "time": is_full_time,
    "date-time": is_date_time,
    "duration": is_duration,
    "email": is_email,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "uri": is_uri,
    "uuid": is_uuid,
}

"""Text for people: safe to print, cut with a note, counted, slugged, nearest name."""

import hashlib
import re
from collections.abc import Iterable
from typing import Any

# C0 and C1 controls, line and paragraph separators, and the marks that reorder or hide text. Kept as text: `re` compiles
# it when it is first used, which not every command does.
UNSAFE = "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
LARGEST_AMOUNT = 1e12  # of dollars or seconds; above, digits say nothing that the power of ten does not
ESCAPED_CONTROLS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, limit: int | None = 120) -> str:
    """*text* on one line with control, bidirectional and zero-width characters written as escapes.

    Longer texts are cut to *limit* characters with the number left out; None does not cut.
    """
    shown, left_out = (text, 0) if limit is None or len(text) <= limit else (text[:limit], len(text) - limit)
    if not (shown.isascii() and shown.isprintable()):
        shown = re.sub(UNSAFE, escaped_character, shown)
    return f"{shown}… ({left_out} more characters)" if left_out else shown


def escaped_character(match: "re.Match[str]") -> str:
    """The escape of the one character that *match* holds: \\n, \\x1b, \\u202e."""
    character = match.group()
    return ESCAPED_CONTROLS.get(character) or (f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}")


def visible_lines(text: str) -> str:
    """*text* made safe like `visible`, but with its line ends and tabs kept and nothing cut."""
    return re.sub(r"[^\n\t]+", lambda match: re.sub(UNSAFE, escaped_character, match.group()), text)


def quoted(text: str, limit: int = 120) -> str:
    """*text* as `visible` shows it, in single quotes."""
    return f"'{visible(text, limit)}'"


def counted(number: int, noun: str, plural: str = "") -> str:
    """'1 case', '2 cases', '0 cases'; thousands are separated by a comma."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(words: Iterable[str], limit: int = 10, last: str = "and") -> str:
    """'a, b and c'; beyond *limit* words the rest is counted: 'a, b and 7 more'."""
    known = list(words)
    if len(known) > limit:
        known = [*known[:limit], f"{len(known) - limit} more"]
    return known[0] if len(known) == 1 else f"{', '.join(known[:-1])} {last} {known[-1]}" if known else ""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The word of *known* that *word* is most likely a misspelling of; None when nothing is near."""
    from difflib import get_close_matches

    lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), lower, 1, 0.6)
    return lower[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """'did you mean X?' for a misspelt *word*, else the list of *known* words."""
    names = list(known)
    near = nearest(word, names)
    return f"did you mean '{near}'?" if near else f"known: {listed(sorted(names), 40)}" if names else ""


def slug(text: str) -> str:
    """A file name for any *text*: at most 40 safe characters, then a short hash that keeps it unique."""
    import unicodedata

    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-")
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{words}-{digest}" if words else digest


def percent(numerator: int, denominator: int, digits: int = 2) -> str:
    """The share as a percentage that is 100 or 0 only if it is exactly that; 'not measured' for 0 of 0.

    Cut off towards 50 % near the ends instead of rounded: 1999 of 2000 is '99.95 %', 199999 of 200000 is '99.99 %'.
    """
    if denominator <= 0:
        return "not measured"
    scale = 10**digits
    scaled = (numerator * 100 * scale * 2 + denominator) // (denominator * 2)
    if numerator < denominator and scaled >= 100 * scale:
        scaled = 100 * scale - 1
    if numerator > 0 and scaled <= 0:
        return f"< {1 / scale:.{digits}f} %"
    whole, part = divmod(abs(scaled), scale)
    decimals = f".{part:0{digits}d}".rstrip("0").rstrip(".") if digits else ""
    return f"{'-' if scaled < 0 else ''}{whole}{decimals} %"


def share_percent(value: float) -> str:
    """A float in [0, 1] as a percentage with one decimal that is 0 or 100 only if it is exactly that."""
    return percent(round(value * 10**9), 10**9, 1) if 0 < value < 1 else percent(int(value), 1, 1)


def money(amount: Any) -> str:
    """US dollars, a number of any kind, with as many decimals as a small price needs and no more digits than a price has.

    >>> [money(amount) for amount in (1234.5, 0.5, 0.0021, 0.0000004, 0, 1e308)]
    ['1,234.50', '0.50', '0.0021', '4e-07', '0.00', '1e+308']
    """
    if abs(amount) >= LARGEST_AMOUNT:
        return f"{amount:.3g}".lower()
    if not 0 < abs(amount) < 1:
        return f"{amount:,.2f}"
    return f"{float(amount):.2g}" if abs(amount) < 0.000001 else f"{amount:.6f}".rstrip("0").ljust(4, "0")


def dollars(amount: Any) -> str:
    """`money` with its sign in front: '$1.25'."""
    return f"${money(amount)}"


def duration(seconds: float) -> str:
    """'850 ms', '12.3 s', '4 min 05 s', '2 h 03 min', '1.2e+20 h'."""
    if seconds >= LARGEST_AMOUNT:
        return f"{seconds / 3600:.2g} h"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"

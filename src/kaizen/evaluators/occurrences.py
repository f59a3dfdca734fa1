"""What a text states that can be looked up: ids, numbers, dates, addresses, quotes.

Each is found once: what belongs to a url is no e-mail, a date no number, a part of an id no number either. An id holds a digit and
a letter, of three characters or more, or is a number with # in front, or has eight digits; 3rd, 10am, 5kg and
5-star are none. Numbers are read with . and with , as decimal mark, without their sign; those at the start of a line that
number a list are left out. A date has a day and a month, named where the year is missing. A quote stands in double
quotation marks and has three words or more; an ellipsis splits it in two.

Two occurrences agree when they share a key, so "$1,250.00" agrees with 1250, "5 March 2026" with 2026-03-05, K-20 with k20.
All patterns run in linear time.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kaizen.evaluators.decimals import DECIMAL_MARKS, matched_value, number_matches
from kaizen.evaluators.spoken import SPOKEN_DAY, spoken_days, stands_alone
from kaizen.foundation.schema_formats import is_calendar_date

CURRENCY_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|KRW|SGD|HKD|TRY"
CURRENCY_SIGNS = "$€£¥₹₩₽₺₴₪₫₱฿"

OCCURRENCE_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"'`|\\^{}\[\]“”«»]+", re.IGNORECASE)
OCCURRENCE_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
OCCURRENCE_ID = re.compile(rf"(?<![\w{re.escape(CURRENCY_SIGNS)}])#?[^\W_]+(?:[-_/][^\W_]+)*")
SOURCE_ID = re.compile(r"[^\W_]+(?:[-_/][^\W_]+)*")
NO_ID = re.compile(
    rf"[0-9]+[^\W\d_]{{1,3}}|[0-9]+(?:-[^\W\d_]+)+|[0-9]{{1,2}}h[0-9]{{2}}|(?:{CURRENCY_CODES})-?[0-9]+|[0-9]+(?:st|nd|rd|th)?-[0-9]+[^\W\d_]{{1,3}}",
    re.IGNORECASE,
)
NUMBER_IN_NUMBER = re.compile(r"[.,][0-9]|\s?(?:[%°]|[" + re.escape(CURRENCY_SIGNS) + "])")
LIST_NUMBER = re.compile(r"^[ \t]{0,20}[0-9]{1,3}[.)](?=\s)", re.MULTILINE)
CURRENCY_BEFORE = re.compile(rf"(?:[{re.escape(CURRENCY_SIGNS)}]|\b(?:{CURRENCY_CODES}))\s?-?\Z", re.IGNORECASE)
CURRENCY_AFTER = re.compile(
    rf"\s?(?:[{re.escape(CURRENCY_SIGNS)}]|(?:{CURRENCY_CODES}|dollars?|euros?|pounds?|yen|francs?|rupees?)\b)", re.IGNORECASE
)
OCCURRENCE_TIME = re.compile(r"[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?")
QUOTATION = re.compile(r'"([^"\n]{1,4000})"|“([^“”]{1,4000})”|„([^„“”]{1,4000})[“”]|«([^«»]{1,4000})»|»([^«»]{1,4000})«')
ELLIPSIS = re.compile(r"\[?(?:…|\.\.\.)\]?")
PHRASE_TOKEN = re.compile(r"\w+|[^\w\s]")
STRAIGHT_QUOTES = str.maketrans("‘’‚‛ʼ“”„‟«»", '\'\'\'\'\'""""""')
LEAST_QUOTE_WORDS = 3


class Occurrence(NamedTuple):
    """A thing that a text states: its kind, what it agrees by (any key will do), and where it stands."""

    kind: str
    keys: tuple[Any, ...]
    start: int
    end: int


# --- Finding in a text -------------------------------------------------------------------


def find_occurrences(text: str, kinds: "frozenset[str]") -> list[Occurrence]:
    """What *text* states of these *kinds*, in order."""
    found = quote_occurrences(text) if "quotes" in kinds else []
    rest = text
    for places, (names, find) in enumerate(OCCURRENCE_FINDERS):
        if kinds.isdisjoint(name for later, _ in OCCURRENCE_FINDERS[places:] for name in later):
            break
        hits = find(rest)
        found += [hit for hit in hits if hit.kind in kinds or (hit.kind == "amounts" and "numbers" in kinds)]
        if names != ("numbers", "amounts"):
            rest = blanked(rest, hits)
    return sorted(found, key=lambda hit: (hit.start, hit.end))


def blanked(text: str, hits: list[Occurrence]) -> str:
    """*text* with a blank for each character of *hits*."""
    parts, start = [], 0
    for hit in hits:
        parts += [text[start : hit.start], " " * (hit.end - hit.start)]
        start = hit.end
    return "".join([*parts, text[start:]]) if hits else text


def url_occurrences(text: str) -> list[Occurrence]:
    """The addresses in *text*, without the punctuation behind them."""
    found = []
    for match in OCCURRENCE_URL.finditer(text):
        address = match.group().rstrip(".,;:!?*_~" if "(" in match.group() else ".,;:!?*_~)")
        found.append(Occurrence("urls", (url_key(address),), match.start(), match.start() + len(address)))
    return found


def url_key(address: str) -> str:
    """*address* without scheme, www and the slash at its end, its host in lower case."""
    host, slash, path = re.sub(r"^(?:https?://)?(?:www\.)?", "", address, flags=re.IGNORECASE).partition("/")
    return (host.lower() + slash + path).rstrip("/")


def email_occurrences(text: str) -> list[Occurrence]:
    """The e-mail addresses in *text*."""
    return [Occurrence("emails", (match.group().casefold(),), match.start(), match.end()) for match in OCCURRENCE_EMAIL.finditer(text)]


def plain_length_kept(text: str) -> str:
    """*text* with small ASCII letters and plain spaces, as long as before."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = re.sub("[A-Z]+", lambda match: match.group().lower(), text)
    return re.sub(r"\s", " ", lower)


def date_occurrences(text: str) -> list[Occurrence]:
    """The dates in *text*. One with a year agrees with the same day of that year, or of no year; one without with any year's."""
    found = []
    for match in SPOKEN_DAY.finditer(plain_length_kept(text) if re.search("[0-9]", text) else ""):
        if match["one"] and len(match["one"]) != 4 and len(match["three"]) != 4:
            continue  # 1.2.3 is a version more often than a day
        keys: list[Any] = []
        for year, month, day in real_days(match):
            keys += [("any", month, day)] if year is None else [(year, month, day), (None, month, day)]
        if keys:
            time = OCCURRENCE_TIME.match(text, match.end())
            found.append(Occurrence("dates", tuple(keys), match.start(), time.end() if time else match.end()))
    return found


def real_days(match: "re.Match[str]") -> list[tuple[int | None, int, int]]:
    """The days that a match of SPOKEN_DAY can mean and that the calendar has."""
    return [day for day in spoken_days(match) if is_calendar_date(2000 if day[0] is None else day[0], day[1], day[2])]


def id_occurrences(text: str) -> list[Occurrence]:
    """The ids in *text*."""
    found = []
    for match in OCCURRENCE_ID.finditer(text):
        token = match.group()
        if is_identifier(token) and not (token.isdigit() and is_within_number(text, match.start(), match.end())):
            found.append(Occurrence("ids", (id_key(token),), match.start(), match.end()))
    return found


def is_identifier(token: str) -> bool:
    """Whether *token* looks like an id."""
    digits = sum(map(str.isdigit, token))
    if digits == 0 or len(token) < 3:
        return False
    if not any(map(str.isalpha, token)):
        return digits >= 8 or token.startswith("#")
    return NO_ID.fullmatch(token) is None


def is_within_number(text: str, start: int, end: int) -> bool:
    """Whether the digits between *start* and *end* are a part of a longer number or an amount."""
    return NUMBER_IN_NUMBER.match(text, end) is not None or (start > 1 and text[start - 1] in ".," and text[start - 2].isdigit())


def id_key(token: str) -> str:
    """*token* in small letters without marks."""
    return re.sub("[-_/#]", "", token).casefold()


def keyed_numbers(text: str, mark: str) -> list[tuple[int, int, Any]]:
    """(start, -end, key) of each number in *text*: its size, or its digits where there are too many of them."""
    keys: dict[str, Any] = {}  # by what is written; most numbers come again
    found = []
    for match in number_matches(text, mark):
        written = match.group()
        if written not in keys:
            value = matched_value(match, mark)
            keys[written] = written if value is None else abs(value)
        found.append((match.start(), -match.end(), keys[written]))
    return found


def number_occurrences(text: str) -> list[Occurrence]:
    """The numbers in *text*; those beside a currency are amounts. Both readings of 1,250 are keys, parts of versions are none."""
    if not re.search("[0-9]", text):
        return []
    text = LIST_NUMBER.sub(lambda match: " " * len(match.group()), text)
    found: list[Occurrence] = []
    reach = 0
    for start, minus_end, key in sorted([*keyed_numbers(text, "."), *keyed_numbers(text, ",")], key=lambda each: each[:2]):
        end = -minus_end
        if start >= reach:
            reach = end
            if stands_alone(text, start, end):
                found.append(Occurrence("amounts" if is_amount(text, start, end) else "numbers", (key,), start, end))
        elif found and (start, end) == (found[-1].start, found[-1].end) and key not in found[-1].keys:
            found[-1] = found[-1]._replace(keys=(*found[-1].keys, key))
    return found


def is_amount(text: str, start: int, end: int) -> bool:
    """Whether the number between *start* and *end* stands beside a currency."""
    if text[start] in CURRENCY_SIGNS or CURRENCY_AFTER.match(text, end):
        return True
    return CURRENCY_BEFORE.search(text[max(0, start - 5) : start]) is not None


def quote_occurrences(text: str) -> list[Occurrence]:
    """The quotes in *text*; keys are their words and marks, without a comma, full stop or colon at the end."""
    found = []
    for match in QUOTATION.finditer(text):
        group = match.lastindex or 0
        start = match.start(group)
        parts = [(start + before, start + after) for before, after in ellipsis_parts(match[group])]
        for begin, end in parts:
            begin += len(text[begin:end]) - len(text[begin:end].lstrip())
            words = text[begin:end].rstrip().rstrip(",.;:")
            if sum(any(map(str.isalnum, word)) for word in words.split()) >= LEAST_QUOTE_WORDS:
                found.append(Occurrence("quotes", (phrase_tokens(words),), begin, begin + len(words)))
    return found


def ellipsis_parts(text: str) -> list[tuple[int, int]]:
    """(start, end) of the parts of *text* between its ellipses."""
    edges = [0, *(edge for match in ELLIPSIS.finditer(text) for edge in match.span()), len(text)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def phrase_tokens(text: str) -> tuple[str, ...]:
    """The words and marks of *text* after nfkc, with straight quotes; space does not count."""
    import unicodedata

    return tuple(PHRASE_TOKEN.findall(unicodedata.normalize("NFKC", text).translate(STRAIGHT_QUOTES)))


OCCURRENCE_FINDERS: tuple[tuple[tuple[str, ...], Callable[[str], list[Occurrence]]], ...] = (
    (("urls",), url_occurrences),
    (("emails",), email_occurrences),
    (("dates",), date_occurrences),
    (("ids",), id_occurrences),
    (("numbers", "amounts"), number_occurrences),
)


# --- Keys of a source --------------------------------------------------------------------


def source_ids(text: str) -> Iterator[Any]:
    """The keys of all that could be an id in *text*; of a/b and a_b also of the parts."""
    for token in SOURCE_ID.findall(text):
        yield id_key(token)
        if "/" in token or "_" in token:
            yield from map(id_key, re.split("[/_]", token))


def source_numbers(text: str) -> Iterator[Any]:
    """The keys of all numbers in *text*."""
    return (key for mark in DECIMAL_MARKS for _, _, key in keyed_numbers(text, mark))


def source_dates(text: str) -> Iterator[Any]:
    """The keys of all dates in *text*."""
    for match in SPOKEN_DAY.finditer(plain_length_kept(text)):
        for year, month, day in real_days(match):
            yield (year, month, day)
            yield ("any", month, day)


SOURCE_KEYS: dict[str, Callable[[str], Iterator[Any]]] = {
    "ids": source_ids,
    "numbers": source_numbers,
    "dates": source_dates,
    "urls": lambda text: (hit.keys[0] for hit in url_occurrences(text)),
    "emails": lambda text: (hit.keys[0] for hit in email_occurrences(text)),
}


# --- Many phrases in one pass --------------------------------------------------------------


class PhraseSearch:
    """Finds where each of many phrases (tuples of tokens) first stands, in one pass over the tokens.

    Aho and Corasick, "Efficient string matching", CACM 18 (1975), on tokens. A state whose phrases were all noted is not
    walked again, so the time is linear in the tokens however the phrases overlap.
    """

    def __init__(self, phrases: "set[tuple[str, ...]]") -> None:
        self.moves: list[dict[str, int]] = [{}]
        self.ends: list[tuple[str, ...] | None] = [None]
        for phrase in sorted(phrases):
            state = 0
            for token in phrase:
                if token not in self.moves[state]:
                    self.moves[state][token] = len(self.moves)
                    self.moves.append({})
                    self.ends.append(None)
                state = self.moves[state][token]
            self.ends[state] = phrase
        self.fallback = [0] * len(self.moves)
        self.is_noted = [False] * len(self.moves)
        queue = list(self.moves[0].values())
        for state in queue:
            for token, following in self.moves[state].items():
                queue.append(following)
                self.fallback[following] = self.step(self.fallback[state], token)

    def step(self, state: int, token: str) -> int:
        """The state after *token*."""
        while state and token not in self.moves[state]:
            state = self.fallback[state]
        return self.moves[state].get(token, 0)

    def scan(self, tokens: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The phrases in *tokens* that no earlier scan found."""
        found = []
        state = 0
        for token in tokens:
            state = self.step(state, token)
            at = state
            while at and not self.is_noted[at]:
                self.is_noted[at] = True
                phrase = self.ends[at]
                found += [] if phrase is None else [phrase]
                at = self.fallback[at]
        return found

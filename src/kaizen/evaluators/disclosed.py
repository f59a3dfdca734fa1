"""Where texts stand in evidence, and what is found in them: for `leak` and `integrity`.

Neither a reason nor a pointer repeats what was found: the name of a field that holds it is written as ***.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kaizen.evaluators.outcomes import ConfigurationError
from kaizen.foundation.jsonio import JsonObject, pointer_token
from kaizen.foundation.redact import redact_text
from kaizen.foundation.text import counted, listed, visible

HIDDEN_NAME = "***"
SHORTEST_CANARY = 6
FINDINGS_TOLD = 3
FINDINGS_EVIDENCE = 20
LONG_NUMBER = 10**11  # from which on a number may be that of a card or an account

Finder = Callable[[str], Iterator[tuple[int, int]]]


class Finding(NamedTuple):
    """Something that must not be there: its kind, its words in a reason, where it stands, how many; characters where that is known."""

    kind: str
    words: str
    pointer: str
    number: int = 1
    start: int | None = None
    end: int | None = None

    @property
    def evidence(self) -> JsonObject:
        """The evidence that points at it."""
        span = {} if self.start is None else {"start": self.start, "end": self.end}
        return {"pointer": self.pointer, "kind": self.kind, **span, **({"count": self.number} if self.number > 1 else {})}

    @property
    def place(self) -> str:
        """Where it stands, in a reason."""
        return f"{visible(self.pointer, 80)}{'' if self.start is None else f' (characters {self.start} to {self.end})'}"


def evidence_texts(value: Any, tokens: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str, bool]]:
    """(tokens, text, whether it is the name of the field) for each text and long whole number in *value*, which stands at *tokens*."""
    pending: list[tuple[tuple[str | int, ...], Any]] = [(tokens, value)]
    while pending:
        place, item = pending.pop()
        if isinstance(item, str):
            yield place, item, False
        elif isinstance(item, list):
            pending += [((*place, index), element) for index, element in reversed(list(enumerate(item)))]
        elif isinstance(item, dict):
            for key in item:
                yield (*place, key), key, True
            pending += [((*place, key), element) for key, element in reversed(list(item.items()))]
        elif isinstance(item, int) and not isinstance(item, bool) and abs(item) >= LONG_NUMBER:
            yield place, str(item), False


def findings_in(value: Any, tokens: tuple[str | int, ...], finders: list[tuple[str, str, Finder]]) -> Iterator[tuple[Finding, str]]:
    """(finding, what was found) for all that *finders*, (kind, words, finder), find in *value*, which stands at *tokens*."""

    for place, text, is_name in evidence_texts(value, tokens):
        pointer = ""
        for kind, words, find in finders:
            for start, end in find(text):
                pointer = pointer or "".join(pointer_token(hidden_name(token, finders)) for token in place)
                span = (None, None) if is_name else (start, end)
                yield Finding(kind, words, pointer, 1, *span), text[start:end]


def hidden_name(token: str | int, finders: list[tuple[str, str, Finder]]) -> str | int:
    """*token*, or HIDDEN_NAME when *finders* find something in it."""
    is_plain = isinstance(token, int) or not any(next(iter(find(token)), None) for _, _, find in finders)
    return token if is_plain else HIDDEN_NAME


def canary_finder(canaries: list[str], pointer: str, reads_masks: bool) -> tuple[str, str, Finder]:
    """What finds *canaries*, whatever the case of their letters. Raises ConfigurationError for one that cannot be found.

    With *reads_masks* what was masked as a secret counts as found, so that a canary may look like one.
    """
    for index, canary in enumerate(canaries):
        place = f"{pointer}/{index}"
        if len(canary.strip()) < SHORTEST_CANARY:
            raise ConfigurationError(place, f"is shorter than {SHORTEST_CANARY} characters, which stand anywhere by chance")
        families = redact_text(canary)[1]
        if families and not reads_masks:
            message = f"looks like a secret ({listed(families)}), which is masked before evidence is written, so it is never found"
            raise ConfigurationError(place, message, "plant words that look like nothing else, such as 'blue-heron-4711'")
    patterns = [re.compile(re.escape(canary.strip()), re.IGNORECASE) for canary in canaries]

    def find(text: str) -> Iterator[tuple[int, int]]:
        for pattern in patterns:
            yield from (match.span() for match in pattern.finditer(text))

    return "canary", "planted string", find


def findings_told(findings: list[Finding]) -> str:
    """'2 email addresses: /output (characters 3 to 15) and /steps/4/args; 1 secret (jwt): /log'."""
    by_words: dict[str, list[Finding]] = {}
    for finding in findings:
        by_words.setdefault(finding.words, []).append(finding)
    parts = []
    for words, found in by_words.items():
        number = sum(finding.number for finding in found)
        plural = f"{words}es" if words.endswith("ss") else re.sub(r"( \(|$)", r"s\1", words, count=1)
        parts.append(f"{counted(number, words, plural)}: {listed(dict.fromkeys(finding.place for finding in found), FINDINGS_TOLD)}")
    return "; ".join(parts)


def kinds_counted(findings: list[Finding]) -> JsonObject:
    """{kind: how many}."""
    counts: JsonObject = {}
    for finding in findings:
        counts[finding.kind] = counts.get(finding.kind, 0) + finding.number
    return counts

"""Regular expressions of the user: compiled with care, run for one second at most.

A pattern such as ^(a+)+$ can take longer than the age of the universe, and a thread cannot
interrupt it. An alarm signal can: CPython's matcher looks for signals as it goes. Alarms reach
the main thread only, so anywhere else, and on Windows, which has none, a pattern is not run
at all: `timed` says so, and the evaluator answers error.
"""

import re
from collections.abc import Callable
from typing import Any, TypeVar

from kaizen.evaluators.outcomes import ConfigurationError
from kaizen.foundation.text import counted, quoted

PATTERN_SECONDS = 1.0
# Escapes, sets and comments in one piece, then what is looked for: atomic groups, possessive repeats, flags in the middle.
PATTERN_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?#[^)]*\)"
    r"|(?P<newer>\(\?>|(?:[*+?]|\{(?:[0-9]+(?:,[0-9]*)?|,[0-9]*)\})\+)|(?P<flags>\(\?[aiLmsux]+\))|.",
    re.DOTALL,
)
FLAGS_IN_FRONT = re.compile(r"(?:\(\?[aiLmsux]+\))*")
SET_THAT_WARNS = re.compile(r"\[\[|--|&&|~~|\|\|")
EMPTY_PATTERN = re.compile(r"(?:\(\?:|[()|])*\Z")

Result = TypeVar("Result")


class PatternTimeout(Exception):
    """A pattern was stopped after PATTERN_SECONDS, or could not be given a limit; `reason` says which."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def compile_pattern(pattern: str, flags: int = 0, pointer: str = "/pattern") -> "re.Pattern[str]":
    """*pattern* compiled with the *flags* of re.

    Raises ConfigurationError at *pointer*: it is invalid, empty, or means something else on another supported Python.
    """
    newer = newer_syntax(pattern, flags)
    if newer:
        raise ConfigurationError(pointer, "is in a syntax that not every supported Python reads alike", newer)
    try:
        compiled = compile_quietly(pattern, flags) if SET_THAT_WARNS.search(pattern) else re.compile(pattern, flags)
    except re.error as error:
        place = "" if error.pos is None else f" at character {error.pos + 1}"
        raise ConfigurationError(pointer, f"is not a regular expression: {error.msg}{place}") from None
    except (RecursionError, OverflowError):
        raise ConfigurationError(pointer, "is too deeply nested or repeats too often for a regular expression") from None
    if EMPTY_PATTERN.match(pattern):
        raise ConfigurationError(pointer, "is an empty pattern, which every text matches", "write what is to be found")
    return compiled


def compile_quietly(pattern: str, flags: int) -> "re.Pattern[str]":
    """*pattern* compiled without the warning that a set such as [[a] may mean something else one day."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(pattern, flags)


def newer_syntax(pattern: str, flags: int) -> str:
    """What in *pattern* Python 3.10 and its successors do not read alike, and what to do; '' when nothing."""
    if flags & re.VERBOSE or "x" in FLAGS_IN_FRONT.match(pattern)[0]:  # type: ignore[index]
        pattern = re.sub(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|#[^\n]*", r"\1", pattern, flags=re.DOTALL)
    in_front = True
    for token in PATTERN_TOKEN.finditer(pattern):
        if token["newer"]:
            return f"{quoted(token['newer'])} at character {token.start() + 1} is read by Python 3.11 and newer only"
        if token["flags"] and not in_front:
            return f"put the flags {quoted(token['flags'])} in front, or into `flags`"
        in_front = in_front and token["flags"] is not None
    return ""


def timed_match(pattern: "re.Pattern[str]", text: str, mode: str = "search") -> "re.Match[str] | None":
    """What *pattern* finds in *text*: somewhere ('search'), all of it ('full'), at its start ('prefix'). Raises PatternTimeout."""
    find = pattern.search if mode == "search" else pattern.fullmatch if mode == "full" else pattern.match
    try:
        return timed(lambda: find(text))
    except PatternTimeout as timeout:
        raise PatternTimeout(f"pattern {quoted(pattern.pattern, 60)} on {counted(len(text), 'character')}: {timeout.reason}") from None


# --- The timer -------------------------------------------------------------------------


class PatternClock:
    """Whether a limit is running; the handler of the alarm asks, so that a late alarm does nothing."""

    is_running = False


def stop_pattern(number: int, frame: Any) -> None:
    """The handler of SIGALRM: ends the pattern that is running."""
    if PatternClock.is_running:
        raise PatternTimeout(f"stopped after {PATTERN_SECONDS:g} s")


def timed(function: Callable[[], Result], seconds: float = 0) -> Result:
    """What *function* returns. Raises PatternTimeout after *seconds* (0: PATTERN_SECONDS), or at once where no limit can be set.

    Costs 2.5 µs (measured on 3.10 to 3.13). The handler and the timer of whoever used SIGALRM before are put back.
    Inside another `timed` the outer limit counts.
    """
    try:
        import _signal  # type: ignore[import-not-found]  # `signal` without its Python half, which triples the price of a call

        former = _signal.signal(_signal.SIGALRM, stop_pattern)
    except (ImportError, AttributeError, ValueError):  # no such module, no SIGALRM (Windows), not the main thread
        raise PatternTimeout("a pattern can be time-limited in the main thread only, and not on Windows, so it was not run") from None
    if PatternClock.is_running:
        return function()
    PatternClock.is_running = True
    remaining, interval = _signal.setitimer(_signal.ITIMER_REAL, seconds or PATTERN_SECONDS)
    try:
        return function()
    finally:
        PatternClock.is_running = False
        _signal.setitimer(_signal.ITIMER_REAL, remaining, interval)
        _signal.signal(_signal.SIGALRM, _signal.SIG_DFL if former is None else former)

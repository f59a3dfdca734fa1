"""What an evaluator answers: pass, fail, error or not_applicable, and why."""

from typing import Any, NamedTuple

PASS = "pass"
FAIL = "fail"
ERROR = "error"
NOT_APPLICABLE = "not_applicable"


class Outcome(NamedTuple):
    """The answer of one evaluator about one observation.

    `score` is in [0, 1] or None when there is none; `value` is the raw measurement; `reason` is one
    sentence a person understands; `evidence` points at what was looked at: {"step": 3},
    {"start": 10, "end": 14} (characters of the text looked at), {"pointer": "/items/0"} (below `select`).
    """

    status: str
    score: float | None
    reason: str
    value: Any = None
    evidence: tuple[Any, ...] = ()


class NotMeasurable(Exception):
    """Raised by a check whose evidence is absent; the entry's `on_missing` decides what follows.

    `agent_fault`: the output is there but is not what was asked for, so the default is fail, not error.
    """

    def __init__(self, reason: str, agent_fault: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.agent_fault = agent_fault


class ConfigurationError(Exception):
    """Raised while an entry is prepared: `pointer` (inside the entry) is what is wrong, `hint` what to do."""

    def __init__(self, pointer: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer
        self.message = message
        self.hint = hint


class NothingAsked(Exception):
    """Raised while an entry is prepared for a case that asks nothing of it: the answer is not_applicable."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class EmptyFromCase(list[Any]):
    """The empty list that `$case` found in a case; one written in the file is a plain list."""


def refuse_empty(values: list[Any], pointer: str) -> None:
    """Raises when *values* is empty: NothingAsked if a case brought it, else ConfigurationError at *pointer*."""
    if isinstance(values, EmptyFromCase):
        raise NothingAsked(f"the case brings an empty list for {pointer.lstrip('/')}")
    if not values:
        raise ConfigurationError(pointer, "is an empty list, which asks nothing", "name at least one, or take the entry out")


def decided(is_met: bool, reason: str, value: Any = None, evidence: tuple[Any, ...] = ()) -> Outcome:
    """A pass with score 1 when *is_met*, else a fail with score 0."""
    return Outcome(PASS if is_met else FAIL, 1.0 if is_met else 0.0, reason, value, evidence)


def errored(reason: str) -> Outcome:
    """An error: there is no usable evidence for an answer."""
    return Outcome(ERROR, None, reason)


def not_applicable(reason: str) -> Outcome:
    """Not applicable: the question does not arise for this observation."""
    return Outcome(NOT_APPLICABLE, None, reason)

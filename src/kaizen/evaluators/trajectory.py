"""How many steps were taken, and what holds of them: the evaluator `steps`."""

from typing import Any, NamedTuple

from kaizen.evaluators.matcher import Matcher, compile_matcher
from kaizen.evaluators.outcomes import FAIL, PASS, ConfigurationError, NotMeasurable, Outcome, decided, not_applicable
from kaizen.evaluators.registry import REQUIRED, Check, Parameter, View, evaluator
from kaizen.evaluators.trail import Trail, call_text, settled, step_evidence, step_text, view_trail
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed

DUTY_WHICH = ("all", "any", "none", "first", "last")

STEPS_PARAMETERS = [
    Parameter("match", "matcher", REQUIRED, "The steps that are meant; {} means every step."),
    Parameter("min", "integer", None, "At least so many; 1, or 0 when only `max` is given."),
    Parameter("max", "integer", None, "At most so many."),
    Parameter("must", "matcher", None, "A second matcher that the steps meant have to satisfy; none meant and `min` 0 is not applicable."),
    Parameter("which", "any", "all", "Which of them `must` is asked of: all, any, none, first, last, or a number n for the n-th."),
]
STEPS_EXAMPLE = {
    "entry": {"id": "one_small", "type": "steps", "match": {"name": "issue_refund"}, "max": 1, "must": {"args": {"amount": {"$le": 50}}}},
    "observation": {"steps": [{"kind": "tool", "name": "issue_refund", "args": {"amount": 12.5}, "status": "ok"}]},
    "case": {"id": "refund", "input": "Refund my lamp."},
    "outcome": PASS,
}


@evaluator("steps", 1, "So many steps were taken, and they are as they must be.", STEPS_PARAMETERS, STEPS_EXAMPLE, selects=False)
def evaluate_steps(settings: JsonObject) -> Check:
    """Counts the steps meant, and asks `must` of `which` of them."""
    match, must = compile_matcher(settings["match"], "/match"), settings["must"]
    duty = None if must is None else compile_matcher(must, "/must")
    low, high = steps_bounds(settings)
    wanted, which = call_text(settings["match"]), settings["which"]
    is_place = isinstance(which, int) and not isinstance(which, bool) and which >= 1
    if not is_place and which not in DUTY_WHICH:
        raise ConfigurationError("/which", f"which is one of {', '.join(DUTY_WHICH)}, or a number from 1")

    def check(view: View) -> Outcome:
        trail = view_trail(view)
        meant = match.decisions(trail)
        outcome = count_outcome(trail, match, meant, low, high, wanted)
        if duty is None or outcome.status == FAIL:
            return outcome
        if not any(answer is not False for answer in meant):
            return not_applicable(f"no step matches {wanted}, so nothing is asked of it")
        return duty_outcome(trail, match, meant, duty, which)

    return check


def steps_bounds(settings: JsonObject) -> tuple[int, int | None]:
    """(min, max) of `steps`. Raises ConfigurationError for negative or crossed bounds."""
    low, high = settings["min"], settings["max"]
    for name, bound in (("min", low), ("max", high)):
        if bound is not None and bound < 0:
            raise ConfigurationError(f"/{name}", f"{name} is less than 0")
    low = (1 if high is None else 0) if low is None else low
    if high is not None and low > high:
        raise ConfigurationError("/min", f"min {low} is greater than max {high}")
    return low, high


def count_outcome(trail: Trail, match: Matcher, meant: list[bool | None], low: int, high: int | None, wanted: str) -> Outcome:
    """Whether the number of steps meant, called *wanted*, lies in the bounds. Raises NotMeasurable when that hangs on unclear steps."""
    sure = [index for index, answer in enumerate(meant) if answer]
    open_ones = [index for index, answer in enumerate(meant) if answer is None]
    most = len(sure) + len(open_ones)
    bounds = listed([*([f"at least {low}"] if low else []), *([f"at most {high}"] if high is not None else [])]) or "any number"
    named = f": {listed([step_text(trail, index) for index in sure], 5)}" if sure else f" of {counted(len(meant), 'recorded step')}"
    reason = f"{counted(len(sure), 'step')} matching {wanted} ({bounds}){named}"
    if (high is not None and len(sure) > high) or most < low:
        return decided(False, reason, len(sure), step_evidence(sure))
    if len(sure) < low or (high is not None and most > high):
        raise NotMeasurable(match.unknown(trail, open_ones[0]))
    return decided(True, reason, len(sure), step_evidence(sure))


class DutyCandidate(NamedTuple):
    """A step that is or may be meant: its place, whether it is meant, whether it satisfies `must`."""

    place: int
    is_meant: bool | None
    answer: bool | None


def duty_outcome(trail: Trail, match: Matcher, meant: list[bool | None], duty: Matcher, which: Any) -> Outcome:
    """Whether the duty holds of *which* of the steps meant. Raises NotMeasurable when that is not clear."""
    asked = [DutyCandidate(index, is_meant, duty.decide(trail, index)) for index, is_meant in enumerate(meant) if is_meant is not False]
    number = sum(1 for one in asked if one.is_meant)
    phrase = f"{'' if isinstance(which, str) else 'number '}{which} of {counted(number, 'step')} meant"
    if isinstance(which, int) and len(asked) < which:
        return decided(False, f"there is no {phrase}", number, step_evidence(one.place for one in asked))
    met = duty_answer(asked, which)
    if met is None:
        unclear = next((one.place for one in asked if one.answer is None), None)
        raise NotMeasurable(match.unknown(trail, meant.index(None)) if unclear is None else duty.unknown(trail, unclear))
    places = [one.place for one in duty_culprits(asked, which)]
    if met:
        return decided(True, f"must holds of {phrase}", number, step_evidence(one.place for one in asked))
    verb = "satisfies must" if which == "none" else "does not satisfy must"
    reason = f"{listed([step_text(trail, index) for index in places], 5)} {verb}, asked of {phrase}"
    return decided(False, reason, number, step_evidence(places))


def duty_answer(asked: list[DutyCandidate], which: Any) -> bool | None:
    """Whether `must` holds of *which* of the candidates; None when that hangs on what was not recorded."""
    if which == "all":
        answers = [one.answer if one.is_meant or one.answer else None for one in asked]
        return False if False in answers else None if None in answers else True
    if which in ("any", "none"):
        answers = [one.answer and one.is_meant for one in asked]
        found = True if True in answers else None if None in answers else False
        return found if which == "any" or found is None else not found
    if isinstance(which, int):
        if any(one.is_meant is None for one in asked[:which]):
            return None
        return asked[which - 1].answer
    return settled([(one.is_meant, one.answer) for one in (asked if which == "first" else reversed(asked))], None)


def duty_culprits(asked: list[DutyCandidate], which: Any) -> list[DutyCandidate]:
    """The candidates that a failed `must` is about."""
    if which in ("first", "last"):
        return [asked[0 if which == "first" else -1]]
    if isinstance(which, int):
        return [asked[which - 1]]
    return [one for one in asked if one.is_meant and bool(one.answer) is (which == "none")]

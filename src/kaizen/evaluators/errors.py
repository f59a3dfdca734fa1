"""What went wrong in a run and what the agent made of it: the evaluator `errors`.

An error is a step that ended in error, denial or time-out, or is of kind `error`. Steps that can fail are tools,
commands, skills and retrievals, and whatever else has a status; the others are not counted. One of the former with
neither status nor result is not known to have failed, and not known to have worked.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from kaizen.evaluators.admission import admission_pattern, admits_failure, told_texts
from kaizen.evaluators.decimals import exact_value
from kaizen.evaluators.demands import Demand, demands_outcome, least_number, shortened, told_steps
from kaizen.evaluators.matcher import Matcher, compile_matcher
from kaizen.evaluators.outcomes import PASS, ConfigurationError, Outcome, not_applicable
from kaizen.evaluators.predicates import MISSING
from kaizen.evaluators.registry import Check, Parameter, View, evaluator
from kaizen.evaluators.trail import Trail, is_action, is_cut, step_text, view_trail
from kaizen.foundation.jsonio import JsonObject, encode_compact
from kaizen.foundation.text import counted, listed, quoted

ERRORS_BOUNDS = ("max_errors", "max_rate", "max_consecutive")
ERRORS_FLAGS = ("must_recover", "must_report", "no_reuse")

ERRORS_PARAMETERS = [
    Parameter("match", "matcher", None, "Which steps are looked at; without it all."),
    Parameter("max_errors", "integer", None, "At most so many errors; 0 when nothing else is asked."),
    Parameter("max_rate", "number", None, "At most this share of the steps that can fail."),
    Parameter("max_consecutive", "integer", None, "At most so many errors in a row among the steps that can fail."),
    Parameter("must_recover", "boolean", False, "After each error a step of the same name goes well."),
    Parameter("must_report", "boolean", False, "After an error that nothing recovers, a message of the agent or the output admits it."),
    Parameter("admits", "texts", None, "Further phrases that admit an error; the built-in ones are English."),
    Parameter(
        "no_reuse",
        "boolean",
        False,
        "No id, address or long number that only a failed result told stands in the arguments of a later step.",
    ),
]
ERRORS_EXAMPLE = {
    "entry": {"id": "errors_handled", "type": "errors", "max_consecutive": 1, "must_report": True},
    "observation": {
        "output": "I could not refund your lamp: the payment service did not answer.",
        "steps": [
            {"kind": "tool", "name": "get_order", "args": {"order": "A-7"}, "status": "ok", "result": {"total": 12.5}},
            {"kind": "tool", "name": "issue_refund", "args": {"order": "A-7"}, "status": "timeout"},
        ],
    },
    "case": {"id": "refund", "input": "Refund order A-7."},
    "outcome": PASS,
}
# Something that was looked up, not made up: letters or digits, joined by marks.
REUSED_TOKEN = re.compile(r"[^\W_](?:[\w.@:/+#%=-]*\w)?")


@evaluator("errors", 1, "Few steps fail, and the agent deals with those that do.", ERRORS_PARAMETERS, ERRORS_EXAMPLE, selects=False)
def evaluate_errors(settings: JsonObject) -> Check:
    """All that is asked must hold. With `match` and no step that matches, nothing is asked; without, no steps are no errors."""
    match = compile_matcher(settings["match"] or {}, "/match")
    for name in ERRORS_BOUNDS:
        least_number(settings, name, 0)
    if settings["max_rate"] is not None and settings["max_rate"] > 1:
        raise ConfigurationError("/max_rate", "max_rate is a share, from 0 to 1")
    if settings["admits"] is not None and not settings["must_report"]:
        raise ConfigurationError("/admits", "admits without must_report asks nothing")
    further = settings["admits"] or []
    further = further if isinstance(further, list) else [further]
    if not all(phrase.strip() for phrase in further):
        raise ConfigurationError("/admits", "holds an empty phrase, which every sentence has")
    phrases = admission_pattern(further)
    is_bare = all(settings[name] is None for name in ERRORS_BOUNDS) and not any(settings[name] for name in ERRORS_FLAGS)
    bounds = {"max_errors": 0} if is_bare else {name: settings[name] for name in ERRORS_BOUNDS if settings[name] is not None}

    def check(view: View) -> Outcome:
        record = ErrorRecord(view_trail(view), match)
        if settings["match"] is not None and not record.asked:
            return not_applicable("no step matches that could fail, so nothing is asked of it")
        demands = [bound_demand(record, name, bound) for name, bound in bounds.items()]
        if settings["must_recover"] or settings["must_report"]:
            recovered = recoveries(record)
            if settings["must_recover"]:
                demands += recovery_demands(record, recovered)
            if settings["must_report"]:
                demands += report_demands(record, recovered, view, phrases)
        if settings["no_reuse"]:
            demands += reuse_demands(record, view)
        failed = record.failed
        value = {"errors": len(failed), "steps": len(record.asked), "consecutive": longest_run(record.sequence(False))}
        told = f": {told_steps(record.trail, failed)}" if failed else ""
        fine = f"{counted(len(failed), 'error')} in {counted(len(record.asked), 'step')} that can fail{told}"
        return demands_outcome(demands, fine, value, failed)

    return check


class ErrorStep(NamedTuple):
    """A step that can fail: its place, whether it is meant, whether it failed."""

    place: int
    is_meant: bool | None
    has_failed: bool | None


class ErrorRecord:
    """The steps of a trail that are meant and can fail."""

    def __init__(self, trail: Trail, match: Matcher) -> None:
        self.trail = trail
        self.match = match
        meant = match.decisions(trail)
        self.asked = [
            ErrorStep(place, meant[place], step_failed(trail, place)) for place in error_places(trail) if meant[place] is not False
        ]
        self.failed = [one.place for one in self.asked if one.is_meant and one.has_failed]

    def sequence(self, at_worst: bool) -> list[bool]:
        """Whether each step failed, if all that is open is for the best, or *at_worst* for the worst."""
        told = []
        for one in self.asked:
            failed = at_worst if one.has_failed is None else one.has_failed
            if one.is_meant or failed is at_worst:
                told.append(failed)
        return told

    def unknown(self) -> str:
        """Why it is not known which steps failed."""
        for one in self.asked:
            if one.is_meant is None:
                return self.match.unknown(self.trail, one.place)
            if one.has_failed is None:
                return f"whether {step_text(self.trail, one.place)} failed is not known: it has neither status nor result"
        return "which steps failed is not known"


def error_places(trail: Trail) -> Iterator[int]:
    """The places of the steps that can fail."""
    for place, step in enumerate(trail.steps):
        kind = step.get("kind")
        if kind == "error" or isinstance(step.get("status"), str) or (is_action(step) and kind != "handoff"):
            yield place


def step_failed(trail: Trail, place: int) -> bool | None:
    """Whether a step that can fail did; None when it has neither status nor result."""
    step = trail.steps[place]
    if step.get("kind") == "error" or trail.has_failed(place):
        return True
    return None if not isinstance(step.get("status"), str) and step.get("result") is None else False


# --- Bounds ----------------------------------------------------------------------------


def longest_run(sequence: list[bool]) -> int:
    """The most errors in a row."""
    longest = run = 0
    for failed in sequence:
        run = run + 1 if failed else 0
        longest = max(longest, run)
    return longest


def is_within(sequence: list[bool], name: str, bound: Any) -> bool:
    """Whether the errors of *sequence* are within the *bound* called *name*."""
    if name == "max_consecutive":
        return bool(longest_run(sequence) <= bound)
    return bool(sum(sequence) <= (bound if name == "max_errors" else exact_value(bound) * len(sequence)))


def bound_demand(record: ErrorRecord, name: str, bound: Any) -> Demand:
    """The demand that *bound* is kept."""
    best = record.sequence(False)
    if not is_within(best, name, bound):
        many = longest_run(best) if name == "max_consecutive" else len(record.failed)
        how = {
            "max_errors": f"at most {bound}",
            "max_rate": f"of {counted(len(best), 'step')}, at most a share of {bound}",
            "max_consecutive": f"in a row, at most {bound}",
        }[name]
        return Demand(False, f"{counted(many, 'error')} ({how}): {told_steps(record.trail, record.failed)}", tuple(record.failed))
    return Demand(True) if is_within(record.sequence(True), name, bound) else Demand(None, record.unknown())


# --- What the agent made of it ---------------------------------------------------------


def recoveries(record: ErrorRecord) -> dict[int, bool | None]:
    """For each step that failed or may have, whether a later step of the same name went well; a step without name has none."""
    trail = record.trail
    last: dict[str, dict[bool | None, int]] = {}  # by name the last step that failed, did not, or may have
    for place in error_places(trail):
        name = trail.steps[place].get("name")
        if isinstance(name, str):
            last.setdefault(name, {})[step_failed(trail, place)] = place
    found: dict[int, bool | None] = {}
    for one in record.asked:
        if one.has_failed is not False:
            name = trail.steps[one.place].get("name")
            later = last.get(name, {}) if isinstance(name, str) else {}
            if trail.comes_before(one.place, later.get(False, -1)):
                found[one.place] = True
            else:
                found[one.place] = None if later.get(None, -1) > one.place else False
    return found


def handled_demand(record: ErrorRecord, one: ErrorStep, is_handled: bool | None, words: str) -> Demand:
    """The demand that the error of *one*, if it is one, was handled; *words* say that it was not."""
    if is_handled:
        return Demand(True)
    if is_handled is False and one.is_meant and one.has_failed:
        return Demand(False, f"{step_text(record.trail, one.place)} {words}", (one.place,))
    is_open = not (one.is_meant and one.has_failed)
    return Demand(None, record.unknown() if is_open else f"whether {step_text(record.trail, one.place)} {words} is not known")


def recovery_demands(record: ErrorRecord, recovered: dict[int, bool | None]) -> list[Demand]:
    """The demand of each error that a later step of the same name goes well."""
    words = "failed, and no later step of this name went well"
    return shortened([handled_demand(record, one, recovered[one.place], words) for one in record.asked if one.place in recovered])


def report_demands(record: ErrorRecord, recovered: dict[int, bool | None], view: View, phrases: "re.Pattern[str]") -> list[Demand]:
    """The demand of each error without recovery that a text after it admits it."""
    trail = record.trail
    told = told_texts(trail, view.observation)
    admitted = next((place for place, text in reversed(told) if admits_failure(text, phrases)), -1)
    cut = [place for place, _ in told if place < len(trail.steps) and is_cut(trail.steps[place], "text")]
    demands = []
    for one in record.asked:
        if one.place in recovered:
            is_handled: bool | None = recovered[one.place] or admitted > one.place
            if not is_handled and (recovered[one.place] is None or (cut and cut[-1] > one.place) or not told):
                is_handled = None
            demands.append(handled_demand(record, one, is_handled, "failed, and nothing that was told after it admits it"))
    return shortened(demands)


def reused_tokens(*values: Any) -> set[str]:
    """What in *values* was looked up somewhere: ids, addresses, numbers of four digits or more, in lower case."""
    text = " ".join(
        value if isinstance(value, str) else encode_compact(value) for value in values if value is not MISSING and value is not None
    )
    found = (token.casefold() for token in REUSED_TOKEN.findall(text))
    return {token for token in found if len(token) > 2 and ("@" in token or "://" in token or is_reference(token))}


def is_reference(token: str) -> bool:
    """Whether *token* has a digit, and letters or at least four digits."""
    digits = sum(map(str.isdigit, token))
    return digits > 3 or (digits > 0 and any(map(str.isalpha, token)))


def reuse_demands(record: ErrorRecord, view: View) -> list[Demand]:
    """The demand of each later action that nothing in its arguments comes from a failed result alone."""
    trail = record.trail
    known = reused_tokens(view.case.get("input"), view.case.get("context"))
    tainted: dict[str, ErrorStep] = {}
    failed = {one.place: one for one in record.asked if one.has_failed}
    demands: list[Demand] = []
    is_open = False  # a failed result was cut short
    is_cleared_by_cut = False
    for place, step in enumerate(trail.steps):
        if is_action(step):
            used = sorted(reused_tokens(trail.content(place, "args")) & tainted.keys())
            for one in [tainted[token] for token in used][:1]:
                source = step_text(trail, one.place)
                words = f"{step_text(trail, place)} uses {listed(map(quoted, used), 3)}, which only the failed {source} told"
                demands.append(Demand(False if one.is_meant and not is_cleared_by_cut else None, words, (one.place, place)))
            if not used and is_open:
                words = "uses what a failed step told is not known: a result was cut short"
                demands.append(Demand(None, f"whether {step_text(trail, place)} {words}"))
        if place in failed:
            is_open = is_open or is_cut(step, "result")
            fresh = reused_tokens(trail.content(place, "result")) - reused_tokens(trail.content(place, "args")) - known
            tainted.update((token, failed[place]) for token in fresh if token not in tainted)
        else:
            told = reused_tokens(step.get("text"), trail.content(place, "result")) if told_to_agent(step) else set()
            is_cleared_by_cut = is_cleared_by_cut or (told_to_agent(step) and (is_cut(step, "result") or is_cut(step, "text")))
            known |= told
            for token in told & tainted.keys():
                del tainted[token]
    return shortened(demands)


def told_to_agent(step: JsonObject) -> bool:
    """Whether *step* brings the agent what it did not say itself."""
    return not (step.get("kind") == "message" and step.get("role") == "assistant")

"""Combinators: all, any, none, at_least of several entries, in three-valued logic.

A definite answer wins, otherwise an error is contagious. Entries that do not apply are left
out; when none applies, neither does the combinator.
"""

from kaizen.evaluators.envelope import PreparedEntry
from kaizen.evaluators.outcomes import ERROR, FAIL, NOT_APPLICABLE, PASS, ConfigurationError, Outcome, not_applicable
from kaizen.evaluators.registry import REQUIRED, Check, Parameter, View, evaluator
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import listed

OF = Parameter("of", "entries", REQUIRED, "entries without id, severity, weight and metric; each may have the rest of the envelope")
COMBINED_REASONS = 3
COMBINED_EVIDENCE = 20


def combined_status(passed: int, errors: int, total: int, needed: int) -> str:
    """pass, fail or error when *needed* of *total* have to pass, *passed* do, and *errors* could not be told."""
    if passed >= needed:
        return PASS
    return FAIL if passed + errors < needed else ERROR


def look_at_each(children: list[PreparedEntry], view: View) -> list[tuple[str, Outcome]]:
    """(name, outcome) of each child that applies."""
    named = [(child.id or child.type.name, child.evaluate(view.observation, view.case, view.memo)) for child in children]
    return [(name, outcome) for name, outcome in named if outcome.status != NOT_APPLICABLE]


def combined_outcome(found: list[tuple[str, Outcome]], status: str, score: float | None, telling: str) -> Outcome:
    """The outcome with how many passed, and the reasons and evidence of those whose status is *telling*."""
    passed = sum(1 for _, outcome in found if outcome.status == PASS)
    chosen = [(name, outcome) for name, outcome in found if outcome.status == telling]
    reasons = listed([f"{name} ({outcome.reason})" for name, outcome in chosen], COMBINED_REASONS)
    verb = {PASS: "passed", FAIL: "failed", ERROR: "could not be told"}[telling]
    reason = f"{passed} of {len(found)} passed" + (f"; {verb}: {reasons}" if reasons else "")
    evidence = [{**each, "entry": name} for name, outcome in chosen for each in outcome.evidence if isinstance(each, dict)]
    return Outcome(status, score, reason, passed, tuple(evidence[:COMBINED_EVIDENCE]))


def combinator(settings: JsonObject, needed: int | None, is_negative: bool = False, is_share: bool = False) -> Check:
    """The check that asks *needed* (None: all) of `of` to pass, or with *is_negative* that this is not so.

    The score is 1 or 0, or with *is_share* the share of the entries that passed, of *needed* when fewer apply.
    """
    children: list[PreparedEntry] = settings["of"]

    def check(view: View) -> Outcome:
        found = look_at_each(children, view)
        if not found:
            return not_applicable("none of its entries applies")
        statuses = [outcome.status for _, outcome in found]
        passed, errors = statuses.count(PASS), statuses.count(ERROR)
        status = combined_status(passed, errors, len(found), len(found) if needed is None else needed)
        if is_negative and status != ERROR:
            status = FAIL if status == PASS else PASS
        telling = ERROR if status == ERROR else (PASS if is_negative or needed is not None and status == PASS else FAIL)
        score = None if status == ERROR else passed / max(len(found), needed or 1) if is_share else float(status == PASS)
        return combined_outcome(found, status, score, telling)

    return check


@evaluator(
    "all",
    1,
    "Every one of several entries passes.",
    [OF],
    example={
        "entry": {"id": "polite", "type": "all", "of": [{"type": "contains", "values": "Hello"}, {"type": "length", "max": 80}]},
        "observation": {"output": "Hello, your order is on its way."},
        "outcome": "pass",
    },
    selects=False,
)
def evaluate_all(settings: JsonObject) -> Check:
    """A fail if any fails, else an error if any is one, else a pass."""
    return combinator(settings, None)


@evaluator(
    "any",
    1,
    "At least one of several entries passes.",
    [OF],
    example={
        "entry": {
            "id": "no_false_claim",
            "type": "any",
            "of": [
                {"type": "matches", "pattern": "(?i)ticket (was|has been) opened", "negate": True},
                {"type": "contains", "values": "T-", "at": "start"},
            ],
        },
        "observation": {"output": "The ticket was opened."},
        "outcome": "fail",
    },
    selects=False,
)
def evaluate_any(settings: JsonObject) -> Check:
    """A pass if any passes, else an error if any is one, else a fail."""
    return combinator(settings, 1)


@evaluator(
    "none",
    1,
    "Not one of several entries passes.",
    [OF],
    example={
        "entry": {"id": "no_excuse", "type": "none", "of": [{"type": "contains", "values": "no"}, {"type": "matches", "pattern": "can"}]},
        "observation": {"output": "It is done."},
        "outcome": "pass",
    },
    selects=False,
)
def evaluate_none(settings: JsonObject) -> Check:
    """A fail if any passes, else an error if any is one, else a pass."""
    return combinator(settings, 1, is_negative=True)


@evaluator(
    "at_least",
    1,
    "At least n of several entries pass; the score is the share of those that do.",
    [Parameter("n", "integer", REQUIRED, "how many have to pass, from 1 to the number of entries"), OF],
    example={
        "entry": {
            "id": "two_of_three",
            "type": "at_least",
            "n": 2,
            "of": [{"type": "contains", "values": "order"}, {"type": "contains", "values": "T-"}, {"type": "length", "max": 80}],
        },
        "observation": {"output": "The refund for your order is on its way."},
        "outcome": "pass",
    },
    selects=False,
)
def evaluate_at_least(settings: JsonObject) -> Check:
    """A pass if n pass, a fail if they cannot even with those that are errors, else an error."""
    needed = settings["n"]
    if not 1 <= needed <= len(settings["of"]):
        raise ConfigurationError("/n", f"n is not between 1 and the {len(settings['of'])} entries of `of`")
    return combinator(settings, needed, is_share=True)

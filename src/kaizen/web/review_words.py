"""What a review says in words and numbers, the same on the page and in review.md.

A value that was not measured is "not measured", never 0; a rate stands with its n, its
interval and the counts of planned trials it rests on.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, dollars, duration, percent, share_percent
from kaizen.policy.derived import basis_text_of, derived_delta_text, derived_text

NOT_MEASURED = "not measured"
VERDICTS = {"eligible": "Eligible", "rejected": "Rejected", "manual_review": "Manual review", None: "One stage measured"}
CHANGE_WORDS = {
    "regressed": "regressed", "weakened": "weakened", "not_comparable": "not comparable", "improved": "improved",
    "strengthened": "strengthened", "unchanged": "unchanged", None: "no comparison",
}  # fmt: skip
RULE_WORDS = {
    "stale_results": "the evidence is stale: it was evaluated before something changed",
    "invalid_evidence": "the evidence is not usable",
    "incomparable_dataset": "the two sides were evaluated with different cases",
    "incomparable_evaluators": "the two sides were graded by different evaluators",
}


class Group(NamedTuple):
    """A group of cases: key, title, tone of its colour and sign, what it means; collapsed groups open on demand."""

    key: str
    title: str
    tone: str
    text: str
    is_collapsed: bool = False


GROUPS = (
    Group("hard_regressed", "Hard regressions", "bad", "Worse than before, and a hard evaluator or a critical case fails: one rejects."),
    Group("hard", "Hard failures", "bad", "A hard evaluator or a critical case fails in a case that is not listed as worse: one rejects."),
    Group("regressed", "Regressions", "bad", "Passed in every trial before, in none now."),
    Group("newly_flaky", "Newly flaky", "warn", "Passed in every trial before, only in some now."),
    Group("weakened", "Weakened", "warn", "Pass less often than before."),
    Group("not_comparable", "Not comparable", "odd", "Too little evidence on one side to say anything."),
    Group("improved", "Improved", "good", "Pass now in most trials, before in at most half."),
    Group("strengthened", "Strengthened", "good", "Pass more often than before."),
    Group("unchanged", "Unchanged", "calm", "The same share of trials passes on both sides.", True),
    Group("failed", "Failed", "bad", "No trial passed."),
    Group("flaky", "Flaky", "warn", "Some trials passed and some failed."),
    Group("no_verdict", "No verdict", "odd", "No trial has usable evidence."),
    Group("passed", "Passed", "good", "Every trial with usable evidence passed.", True),
)
GAINED_GROUPS = ("improved", "strengthened")
LOST_GROUPS = ("hard_regressed", "hard", "regressed", "newly_flaky", "weakened")


def is_hard(row: JsonObject, is_critical: bool) -> bool:
    """True when the candidate's row fails a hard evaluator, or any trial of a critical case fails."""
    return bool(row.get("hard")) or (is_critical and row["candidate"]["fail"] > 0)


def group_of(row: JsonObject, is_critical: bool) -> str:
    """The key of the group in which a row of comparison.json stands on the page."""
    change, side = row.get("change"), row["candidate"]
    if is_hard(row, is_critical):
        return "hard_regressed" if change in ("regressed", "weakened") else "hard"
    if change is not None:
        return "newly_flaky" if row.get("newly_flaky") else str(change)
    if not side["pass"] + side["fail"]:
        return "no_verdict"
    return "flaky" if side["pass"] and side["fail"] else "passed" if side["pass"] else "failed"


def sentence_end(text: str) -> str:
    """*text* with a full stop, unless it ends a sentence already."""
    return text if text.endswith((".", "!", "?")) else text + "."


def capitalised(text: str) -> str:
    """*text* with its first letter as a capital."""
    return text[:1].upper() + text[1:]


def headline_parts(comparison: JsonObject) -> tuple[str, str]:
    """(verdict, the reason that decided), e.g. ('Rejected', '2 regressions (at most 0).')."""
    recommendation, reasons = comparison["recommendation"], comparison["reasons"]
    if recommendation is None:
        rates = comparison["rates"]["candidate"]
        return VERDICTS[None], f"{rates['passed']:,} of {counted(rates['planned'], 'planned trial')} passed."
    improved = counted(comparison["counts"]["improved"], "improvement")
    because = reasons[0]["text"] if reasons else f"{improved}, no regression, every threshold met"
    return VERDICTS[recommendation], sentence_end(because)


def change_sentence(comparison: JsonObject) -> str:
    """'Of 200 cases 14 regressed, 34 improved and 152 did not change.' with the changes that occur."""
    counts = comparison["counts"]
    if comparison["recommendation"] is None:
        return f"{counted(counts['cases'], 'case')}, and no baseline to compare with."
    parts = [f"{counts['regressed']:,} regressed"]
    parts += [f"{counts['weakened']:,} weakened"] if counts["weakened"] else []
    parts.append(f"{counts['improved']:,} improved")
    parts += [f"{counts['strengthened']:,} strengthened"] if counts["strengthened"] else []
    parts += [f"{counts['not_comparable']:,} could not be compared"] if counts["not_comparable"] else []
    parts.append(f"{counts['unchanged']:,} did not change")
    return f"Of {counted(counts['cases'], 'case')} {', '.join(parts[:-1])} and {parts[-1]}."


def rate_percent(rate: JsonObject | None) -> str:
    """An exact rate as a percentage; 'not measured' for none."""
    return NOT_MEASURED if rate is None else percent(rate["numerator"], rate["denominator"], 2)


def interval_text(rates: JsonObject) -> str:
    """'95 % interval 17.3 % to 28.8 %'; '' when there is none."""
    if rates.get("low") is None or rates.get("high") is None:
        return ""
    return f"95 % interval {share_percent(rates['low'])} to {share_percent(rates['high'])}"


def basis_text(rates: JsonObject) -> str:
    """'n = 200 of 200 cases' and, where trials are repeated, how many independent ones they are worth."""
    text = f"n = {rates['cases_measured']:,} of {counted(rates['cases'], 'case')}"
    n_eff = rates.get("n_eff")
    is_repeated = n_eff is not None and rates["passed"] + rates["failed"] > rates["cases_measured"]
    return text + (f", {rates['passed'] + rates['failed']:,} trials worth {n_eff:.1f} independent ones" if is_repeated else "")


def covered(value: str, rates: JsonObject, key: str, word: str) -> tuple[str, str]:
    """(value, '600 of 600 trials priced'); the coverage is '' when comparison.json does not count it."""
    return value, f"{rates[key]:,} of {counted(rates['planned'], 'trial')} {word}" if rates.get(key) is not None else ""


def number_rows(rates: JsonObject) -> list[tuple[str, str, str]]:
    """(label, value, small print) of one stage, the same labels in the same order for every stage."""
    planned = f"of {counted(rates['planned'], 'planned trial')}"
    cost, time, score = rates.get("mean_cost_usd"), rates.get("median_duration_ms"), rates.get("mean_score")
    small = ", ".join(part for part in (interval_text(rates), basis_text(rates)) if part)
    return [
        ("Pass rate", rate_percent(rates["rate"]), small),
        ("Passed", f"{rates['passed']:,}", planned),
        ("Failed", f"{rates['failed']:,}", planned),
        ("Errors, no verdict", f"{rates['errors']:,}", planned),
        ("Not run", f"{rates['not_run']:,}", planned),
        ("Mean score", *covered(NOT_MEASURED if score is None else f"{score:.3f}", rates, "scored", "scored")),
        ("Mean cost of a trial", *covered(NOT_MEASURED if cost is None else dollars(cost), rates, "priced", "priced")),
        ("Median duration", *covered(NOT_MEASURED if time is None else duration(time / 1000), rates, "timed", "timed")),
    ]


def derived_rows(comparison: JsonObject, roles: list[str]) -> list[tuple[str, str, list[tuple[str, str]], str]]:
    """(name, expression, (value, small print) by role, change or '') of each derived metric."""
    found = []
    for entry in comparison["metrics"]:
        sides = [(derived_text(entry[role]), basis_text_of(entry[role])) for role in roles]
        found.append((entry["name"], entry["expression"], sides, derived_delta_text(entry) if len(roles) > 1 else ""))
    return found


def delta_text(comparison: JsonObject) -> str:
    """'+10 percentage points'; when there is none, 'not measured' and why."""
    delta = comparison.get("delta")
    if delta is None:
        why = str(comparison.get("delta_reason") or "no baseline").replace("_", " ")
        return f"{NOT_MEASURED} ({why})"
    size = percent(abs(delta["numerator"]), delta["denominator"]).removesuffix(" %")
    sign = "+" if delta["numerator"] > 0 else "−" if delta["numerator"] < 0 else ""
    return f"{sign}{size} percentage points"


def row_reason(row: JsonObject) -> str:
    """Why a case is not comparable, as words; '' when it is."""
    reason = row.get("reason")
    return "" if reason is None else RULE_WORDS.get(str(reason), str(reason).replace("_", " "))


def side_text(side: JsonObject) -> str:
    """'2 of 3 passed, 1 error': what the trials of a case came to, with those that gave no verdict."""
    parts = [f"{side['pass']} of {side['planned']} passed"]
    parts += [counted(side["error"], "error")] if side["error"] else []
    not_run = side["planned"] - side["pass"] - side["fail"] - side["error"]
    return ", ".join(parts + ([f"{not_run} not run"] if not_run > 0 else []))


def decision_sentence(decision: Any, evidence: str) -> str:
    """One sentence on the state of *decision* (a Decision or None): who, when, through what, and whether it is stale."""
    if decision is None or decision.status == "pending":
        return "No decision is recorded yet."
    words = decision.status.replace("_", " ")
    via = f", recorded from inside {decision.via}" if decision.via else ""
    stale = "" if decision.evidence == evidence else " It is stale: it was made about other evidence than this, and counts for nothing."
    return f"{capitalised(words)} by {decision.decided_by or 'nobody named'} on {decision.decided_at or 'an unknown day'}{via}.{stale}"


def hidden_sentence(count: int, opened: int) -> str:
    """What is said of holdout cases that are counted but not shown, and of how often the holdout was opened."""
    parts = [f"{counted(count, 'holdout case')} {'is' if count == 1 else 'are'} counted in these numbers and not shown."] if count else []
    if opened:
        parts.append(f"The holdout has been opened {'once' if opened == 1 else f'{opened} times'} so far.")
    return " ".join(parts)


def hidden_count(case_ids: Iterable[str], holdout: frozenset[str]) -> int:
    """How many of *case_ids* must not be shown."""
    return sum(1 for case_id in case_ids if case_id in holdout)

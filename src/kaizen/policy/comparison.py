"""Baseline against candidate, case by case: shares, changes, rates.

A trial is valid when its outcome is pass or fail. The case is the unit: its share is the
passed part of its valid trials. A case is not comparable when on either side fewer than
half of the planned trials are valid; nothing is assumed about the missing ones.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kaizen.foundation.jsonio import JsonObject, read_json_lines
from kaizen.foundation.text import counted
from kaizen.runs.observation import NOT_RUN
from kaizen.stats.aggregates import case_weighted_rate, mean, median
from kaizen.stats.intervals import effective_sample_size, wilson_interval

if TYPE_CHECKING:
    from fractions import Fraction

CHANGES = ("improved", "strengthened", "unchanged", "weakened", "regressed", "not_comparable")


class AnswerTally:
    """What the entries of one metric said of the trials of one case: counts of answers, and the scores there are."""

    __slots__ = ("errors", "failed", "not_applicable", "passed", "scores")

    def __init__(self) -> None:
        self.passed = self.failed = self.errors = self.not_applicable = 0
        self.scores: list[float] = []

    def measured(self) -> int:
        """Answers that passed or failed."""
        return self.passed + self.failed

    def total(self) -> int:
        """All answers."""
        return self.passed + self.failed + self.errors + self.not_applicable

    def add(self, entry: JsonObject) -> None:
        """Counts one of the `evaluations` of a result."""
        name = {"pass": "passed", "fail": "failed", "error": "errors"}.get(entry["status"], "not_applicable")
        setattr(self, name, getattr(self, name) + 1)
        if entry["score"] is not None:
            self.scores.append(entry["score"])


class CaseTally:
    """What the trials of one case came to in one stage; `answers` by metric, of those that derived metrics ask for."""

    __slots__ = ("answers", "costs", "durations", "errors", "failed", "hard", "passed", "scores")

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0
        self.errors = 0
        self.hard = 0  # trials in which a hard evaluator failed
        self.scores: list[float] = []
        self.costs: list[float] = []
        self.durations: list[float] = []
        self.answers: dict[str, AnswerTally] = {}

    def valid(self) -> int:
        """Trials that passed or failed."""
        return self.passed + self.failed

    def add(self, result: JsonObject, metrics: dict[str, str] | None = None) -> None:
        """Counts one result line; *metrics* is {entry id: metric} of what derived metrics ask for."""
        for entry in result["evaluations"] if metrics else ():
            metric = (metrics or {}).get(entry["id"])
            if metric is not None:
                self.answers.setdefault(metric, AnswerTally()).add(entry)
        outcome = result["outcome"]
        if outcome == "pass":
            self.passed += 1
        elif outcome == "fail":
            self.failed += 1
        elif result["status"] != NOT_RUN:  # which is missing from the planned trials like one without a line
            self.errors += 1
        if any(entry["status"] == "fail" and entry["severity"] == "hard" for entry in result["evaluations"]):
            self.hard += 1
        for values, key in ((self.scores, "score"), (self.costs, "cost_usd"), (self.durations, "duration_ms")):
            if result.get(key) is not None:
                values.append(result[key])


class StageTally(NamedTuple):
    """One stage: its name, planned trials a case, tallies by case id, ids with results that no case has."""

    stage: str
    repetitions: int
    cases: dict[str, CaseTally]
    unknown: list[str]

    def tally(self, case_id: str) -> CaseTally:
        """The tally of *case_id*; an empty one when it has no result."""
        return self.cases.get(case_id) or CaseTally()


def tally_stage(
    stage: str,
    path: str,
    repetitions: int,
    case_ids: "dict[str, object] | set[str]",
    metrics_of: Callable[[str], dict[str, str]] | None = None,
) -> StageTally:
    """Reads the results file *path* once and counts; results of ids that are not in *case_ids* are left out and named.

    *metrics_of* gives for a case id what `CaseTally.add` takes.
    """
    cases: dict[str, CaseTally] = {}
    unknown: dict[str, None] = {}
    for line in read_json_lines(path):
        case_id = line.value["case_id"]
        if case_id not in case_ids:
            unknown[case_id] = None
            continue
        tally = cases.get(case_id)
        if tally is None:
            tally = cases[case_id] = CaseTally()
        tally.add(line.value, metrics_of(case_id) if metrics_of else None)
    return StageTally(stage, repetitions, cases, list(unknown))


def measured_too_little(tally: CaseTally, planned: int) -> bool:
    """True when fewer than half of the *planned* trials are valid."""
    return tally.valid() * 2 < planned


def not_comparable_reason(baseline: CaseTally, candidate: CaseTally, before: StageTally, after: StageTally) -> str | None:
    """Why the case cannot be compared, naming the side and its counts; None when it can."""
    parts = []
    for tally, stage in ((baseline, before), (candidate, after)):
        if measured_too_little(tally, stage.repetitions):
            missing = stage.repetitions - tally.valid() - tally.errors
            detail = [counted(tally.errors, "error")] if tally.errors else []
            detail += [f"{missing} not run"] if missing > 0 else []
            parts.append(f"{stage.stage}: {tally.valid()} of {stage.repetitions} planned trials measured ({', '.join(detail)})")
    return "; ".join(parts) or None


def case_change(baseline: CaseTally, candidate: CaseTally) -> tuple[str, bool]:
    """(change, newly flaky) of a comparable case, by formats.md 1.5.

    regressed: all valid trials passed before and none passes now. improved: at most half passed before and
    more than half pass now. Any other gain or loss is strengthened or weakened.
    """
    before, after = baseline.passed * candidate.valid(), candidate.passed * baseline.valid()  # over one denominator
    if before == after:
        return "unchanged", False
    if after > before:
        gained = baseline.passed * 2 <= baseline.valid() and candidate.passed * 2 > candidate.valid()
        return ("improved" if gained else "strengthened"), False
    passed_before = baseline.passed == baseline.valid()
    if passed_before and candidate.passed == 0:
        return "regressed", False
    return "weakened", passed_before


def is_flaky(tally: CaseTally) -> bool:
    """True when its valid trials hold a pass and a fail."""
    return tally.passed > 0 and tally.failed > 0


def compare_cases(case_ids: list[str], before: StageTally, after: StageTally) -> list[JsonObject]:
    """The `cases` list of comparison.json, in the order of *case_ids*."""
    rows: list[JsonObject] = []
    for case_id in case_ids:
        baseline, candidate = before.tally(case_id), after.tally(case_id)
        reason = not_comparable_reason(baseline, candidate, before, after)
        change, newly_flaky = ("not_comparable", False) if reason else case_change(baseline, candidate)
        row: JsonObject = {"id": case_id, "change": change, "reason": reason, "newly_flaky": newly_flaky}
        row["hard"] = candidate.hard > 0
        row["baseline"] = tally_document(baseline, before.repetitions)
        row["candidate"] = tally_document(candidate, after.repetitions)
        rows.append(row)
    return rows


def tally_document(tally: CaseTally, planned: int) -> JsonObject:
    """One side of a case in comparison.json; `share` is [passed, valid], null when no trial is valid."""
    share = [tally.passed, tally.valid()] if tally.valid() else None
    return {"share": share, "pass": tally.passed, "fail": tally.failed, "error": tally.errors, "planned": planned}


def stage_rates(case_ids: list[str], stage: StageTally) -> JsonObject:
    """The entry of `rates` in comparison.json: counts of planned, exact rate with Wilson interval, means with their n."""
    tallies = [stage.tally(case_id) for case_id in case_ids]
    planned = len(tallies) * stage.repetitions
    passed, failed, errors = (sum(getattr(tally, name) for tally in tallies) for name in ("passed", "failed", "errors"))
    values = [(tally.passed, tally.valid()) for tally in tallies]
    rate, n_eff = case_weighted_rate(values), effective_sample_size(values)
    interval = None if rate is None or n_eff is None else wilson_interval(float(rate) * n_eff, n_eff)
    costs = [cost for tally in tallies for cost in tally.costs]
    durations = [duration for tally in tallies for duration in tally.durations]
    scores = [score for tally in tallies for score in tally.scores]
    return {
        "passed": passed,
        "failed": failed,
        "errors": errors,
        "planned": planned,
        "not_run": max(0, planned - passed - failed - errors),
        "cases": len(tallies),
        "cases_measured": sum(1 for _, valid in values if valid),
        "rate": fraction_document(rate),
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "n_eff": n_eff,
        "mean_score": mean(scores),
        "scored": len(scores),
        "mean_cost_usd": mean(costs),
        "priced": len(costs),
        "median_duration_ms": median(durations),
        "timed": len(durations),
    }


def fraction_document(value: "Fraction | None") -> JsonObject | None:
    """An exact fraction as {"numerator", "denominator", "value"}; None stays None."""
    return None if value is None else {"numerator": value.numerator, "denominator": value.denominator, "value": float(value)}


def paired_delta(rows: list[JsonObject]) -> "Fraction | None":
    """The mean over comparable cases of candidate share minus baseline share, exact; None for no comparable case."""
    pairs = [(row["candidate"]["share"], row["baseline"]["share"]) for row in rows if row["change"] != "not_comparable"]
    after = case_weighted_rate([(share[0], share[1]) for share, _ in pairs])
    before = case_weighted_rate([(share[0], share[1]) for _, share in pairs])
    return None if after is None or before is None else after - before


def missingness_decides(rows: list[JsonObject]) -> bool:
    """True when the sign of the delta hangs on how the excluded trials would have come out (statistics.md 1)."""

    def bound(row: JsonObject, side: str, excluded_pass: bool) -> "tuple[int, int]":
        tally = row[side]
        return (tally["planned"] - tally["fail"] if excluded_pass else tally["pass"]), tally["planned"]

    signs = []
    for candidate_pass in (False, True):
        after = case_weighted_rate([bound(row, "candidate", candidate_pass) for row in rows])
        before = case_weighted_rate([bound(row, "baseline", not candidate_pass) for row in rows])
        delta = 0 if after is None or before is None else after - before
        signs.append((delta > 0) - (delta < 0))
    return signs[0] != signs[1]


def split_rates(rows: list[JsonObject], splits: dict[str, str]) -> JsonObject:
    """{split: {"cases", "baseline", "candidate"}} with exact rates; cases without a split count as 'none'."""
    groups: dict[str, list[JsonObject]] = {}
    for row in rows:
        groups.setdefault(splits.get(row["id"], "none"), []).append(row)
    found: JsonObject = {}
    for split in sorted(groups):
        found[split] = {"cases": len(groups[split])}
        for side in ("baseline", "candidate"):
            values = [(row[side]["pass"], row[side]["pass"] + row[side]["fail"]) for row in groups[split]]
            found[split][side] = fraction_document(case_weighted_rate(values))
        found[split]["changes"] = change_counts(groups[split])
    return found


def change_counts(rows: list[JsonObject]) -> dict[str, int]:
    """{"cases", each change, "newly_flaky"} as counts over *rows*."""
    counts = {"cases": len(rows), **dict.fromkeys(CHANGES, 0), "newly_flaky": 0}
    for row in rows:
        counts[row["change"]] += 1
        counts["newly_flaky"] += row["newly_flaky"]
    return counts

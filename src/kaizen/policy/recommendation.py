"""The recommendation and its reasons, by a list of precedence.

The document is comparison.json (formats.md 1.5). The first rule that fires decides, all
that fire are listed. Nothing here reads a clock or writes a file.
"""

from typing import TYPE_CHECKING

from kaizen.cases.case import Case
from kaizen.cases.evaluation_file import Evaluation
from kaizen.evaluators.standing import not_gating_notes
from kaizen.foundation.jsonio import JsonObject, fingerprint
from kaizen.foundation.text import counted
from kaizen.policy.acceptance import Missed, missed_pass_k, missed_ratios, missed_thresholds
from kaizen.policy.comparison import (
    StageTally,
    change_counts,
    compare_cases,
    fraction_document,
    is_flaky,
    missingness_decides,
    paired_delta,
    split_rates,
    stage_rates,
    tally_document,
)
from kaizen.policy.derived import NO_METRICS, DerivedMetrics, Figures, derived_figures, missed_metrics
from kaizen.policy.reliability import Compared, clusters_of, gate_codes, judge_family, reliability_entry
from kaizen.policy.reliability_words import obstacle_text

if TYPE_CHECKING:
    from fractions import Fraction

EXCLUDED_LIMIT = (1, 20)  # formats.md 1.5 rule 5: more than 5 % of the planned trials
ELIGIBLE, REJECTED, MANUAL_REVIEW = "eligible", "rejected", "manual_review"


def reason(rule: int, code: str, text: str, cases: list[str] | None = None) -> JsonObject:
    """One entry of `reasons`."""
    return {"code": code, "rule": rule, "text": text, "cases": cases or []}


def comparison_document(
    evaluation: Evaluation,
    cases: dict[str, Case],
    stages: dict[str, tuple[StageTally, JsonObject]],
    fingerprints: tuple[str, str],
    problems: list[tuple[str, str]],
    derived: DerivedMetrics = NO_METRICS,
) -> JsonObject:
    """The document of comparison.json.

    *stages* holds for 'baseline' and 'candidate' the tally and the results meta; *fingerprints* are those of
    the dataset and the evaluators now; *problems* are (reason code, sentence) that make the evidence
    unusable (rule 1): then every case is not comparable. *derived* is what `metrics` asks for.
    """
    (before, before_meta), (after, after_meta) = stages["baseline"], stages["candidate"]
    case_ids = list(cases)
    rows = compare_cases(case_ids, before, after)
    if problems:
        for row in rows:
            row.update(change="not_comparable", reason=problems[0][0], newly_flaky=False)
    delta = paired_delta(rows)
    figures = derived_figures(derived, case_ids, {"baseline": before, "candidate": after})
    reasons = [reason(1, code, text) for code, text in problems]
    reasons += [] if problems else fired_rules(evaluation, cases, rows, (before, after), delta, figures)
    reasons.sort(key=lambda entry: int(entry["rule"]))
    flaky = [row["id"] for row in rows if is_flaky(after.tally(row["id"]))]
    return {
        "version": 1,
        "baseline": stage_document(before, before_meta),
        "candidate": stage_document(after, after_meta),
        "evidence": evidence_digest(before_meta, after_meta, fingerprints, evaluation, derived),
        "dataset_fingerprint": fingerprints[0],
        "evaluator_fingerprint": fingerprints[1],
        "recommendation": recommendation_of(reasons),
        "reasons": reasons,
        "notes": [*notes_of(rows, before, after, delta), *dict.fromkeys(not_gating_notes(after_meta) + not_gating_notes(before_meta))],
        "counts": change_counts(rows),
        "rates": {"baseline": stage_rates(case_ids, before), "candidate": stage_rates(case_ids, after)},
        "delta": fraction_document(delta),
        "delta_reason": None if delta is not None else "no_comparable_cases",
        "metrics": [entry.document for entry in figures],
        "flaky": flaky,
        "newly_flaky": [row["id"] for row in rows if row["newly_flaky"]],
        "splits": split_rates(rows, {case_id: case.document["split"] for case_id, case in cases.items() if "split" in case.document}),
        "cases": rows,
    }


def single_stage_document(case_ids: list[str], stage: StageTally, meta: JsonObject, derived: DerivedMetrics = NO_METRICS) -> JsonObject:
    """The document that a page shows when there is no baseline: rates, metrics and cases of one stage, nothing about a change."""
    rows: list[JsonObject] = []
    for case_id in case_ids:
        tally = stage.tally(case_id)
        row = {"id": case_id, "change": None, "reason": None, "newly_flaky": False, "hard": tally.hard > 0}
        rows.append({**row, "candidate": tally_document(tally, stage.repetitions)})
    return {
        "version": 1,
        "candidate": stage_document(stage, meta),
        "recommendation": None,
        "reasons": [],
        "notes": ["There is no baseline, so nothing can be said about a change.", *not_gating_notes(meta)],
        "counts": {"cases": len(rows)},
        "rates": {"candidate": stage_rates(case_ids, stage)},
        "delta": None,
        "delta_reason": "no_baseline",
        "metrics": [entry.document for entry in derived_figures(derived, case_ids, {"candidate": stage})],
        "flaky": [case_id for case_id in case_ids if is_flaky(stage.tally(case_id))],
        "newly_flaky": [],
        "splits": {},
        "cases": rows,
    }


def stage_document(stage: StageTally, meta: JsonObject) -> JsonObject:
    """The entry of a stage in comparison.json: its name, digests and repetitions."""
    return {
        "stage": stage.stage,
        "observations_sha256": meta.get("observations_sha256"),
        "results_sha256": meta.get("results_sha256"),
        "repetitions": stage.repetitions,
    }


def evidence_digest(
    before: JsonObject, after: JsonObject, fingerprints: tuple[str, str], evaluation: Evaluation, derived: DerivedMetrics
) -> str:
    """What a decision is about: the digest of both stages' observations and results, both fingerprints, the policy, derived metrics."""
    digests = [[meta.get("observations_sha256"), meta.get("results_sha256")] for meta in (before, after)]
    metrics = [{name: expression.text for name, expression in derived.expressions.items()}] if derived.expressions else []
    return fingerprint([digests, list(fingerprints), evaluation.acceptance, evaluation.reliability, *metrics])


def recommendation_of(reasons: list[JsonObject]) -> str:
    """The recommendation of the first rule that fired; eligible when none did. *reasons* are in the order of rules."""
    if not reasons:
        return ELIGIBLE
    return REJECTED if reasons[0]["rule"] in (2, 3, 4) or reasons[0]["code"] == "reliability_worse" else MANUAL_REVIEW


def fired_rules(
    evaluation: Evaluation,
    cases: dict[str, Case],
    rows: list[JsonObject],
    stages: tuple[StageTally, StageTally],
    delta: "Fraction | None",
    figures: list[Figures],
) -> list[JsonObject]:
    """The reasons of rules 2 to 6 that fire."""
    (before, after), acceptance = stages, evaluation.acceptance
    case_ids = list(cases)
    missing = missing_evidence(acceptance, rows, before, after)
    comparable = [row["id"] for row in rows if row["change"] != "not_comparable"]
    ratios = missed_ratios(acceptance, before, after, comparable)
    pass_k = missed_pass_k(acceptance, after, case_ids)
    measured = [*missed_thresholds(acceptance, change_counts(rows), delta, stages, case_ids), *ratios, *([pass_k] if pass_k else [])]
    measured += missed_metrics(acceptance["metrics"], figures)
    found, unmeasured = veto_rules(acceptance, cases, rows, after), []
    for item in measured:
        if not isinstance(item, Missed):
            unmeasured.append(reason(5, item.code, item.text))
        elif item.is_certain or not missing:  # that another quantity was not measured excuses nothing
            found.append(reason(4, item.code, item.text))
    found += [*missing, *unmeasured]
    return found + unmet_reliability(evaluation, cases, rows, before, after)


def unmet_reliability(
    evaluation: Evaluation, cases: dict[str, Case], rows: list[JsonObject], before: StageTally, after: StageTally
) -> list[JsonObject]:
    """The reasons of rule 6: what keeps the `reliability` block from being met; [] when it is, or there is none."""
    settings = evaluation.reliability
    if settings is None:
        return []
    compared = Compared(rows, cases, clusters_of(cases), frozenset(), {"baseline": before, "candidate": after})
    entry = reliability_entry(compared, settings)
    judge_family([entry], settings)
    return [reason(6, f"reliability_{code}", obstacle_text(code, entry, settings)) for code in gate_codes(entry, settings)]


def veto_rules(acceptance: JsonObject, cases: dict[str, Case], rows: list[JsonObject], after: StageTally) -> list[JsonObject]:
    """The reasons of rules 2 and 3: hard and critical failures, regressions."""
    found = []
    hard = [row["id"] for row in rows if row["hard"]]
    if hard:
        found.append(reason(2, "hard_failure", f"a hard evaluator fails in {counted(len(hard), 'case')} of the candidate", hard))
    critical = [row["id"] for row in rows if cases[row["id"]].document.get("critical") and after.tally(row["id"]).failed]
    if critical:
        found.append(reason(2, "critical_failure", f"{counted(len(critical), 'critical case')} failed in the candidate", critical))
    regressed = [row["id"] for row in rows if row["change"] == "regressed"]
    limit = acceptance["maximum_regressions"]
    if limit is not None and len(regressed) > limit:
        found.append(reason(3, "regressions", f"{counted(len(regressed), 'regression')} (at most {limit})", regressed))
    return found


def missing_evidence(acceptance: JsonObject, rows: list[JsonObject], before: StageTally, after: StageTally) -> list[JsonObject]:
    """The reasons of rule 5 that hang on missing trials."""
    found = []
    unmeasured = [row["id"] for row in rows if row["change"] == "not_comparable"]
    limit = acceptance["maximum_not_comparable"]
    if limit is not None and len(unmeasured) > limit:
        why = next(row["reason"] for row in rows if row["change"] == "not_comparable")
        text = f"{counted(len(unmeasured), 'case')} not comparable (at most {limit}); the first: {why}"
        found.append(reason(5, "not_comparable", text, unmeasured))
    for stage in (before, after):
        planned = len(rows) * stage.repetitions
        excluded = planned - sum(stage.tally(row["id"]).valid() for row in rows)
        if excluded * EXCLUDED_LIMIT[1] > planned * EXCLUDED_LIMIT[0]:
            text = f"{stage.stage}: {excluded:,} of {planned:,} planned trials have no usable evidence (at most 5 %)"
            found.append(reason(5, "excluded_trials", text))
    if missingness_decides(rows):
        text = "whether the candidate is better or worse hangs on how the trials without evidence would have come out"
        found.append(reason(5, "missingness_decides", text))
    return found


def notes_of(rows: list[JsonObject], before: StageTally, after: StageTally, delta: "Fraction | None") -> list[str]:
    """Whole sentences about what is not known."""
    notes = []
    regressed = sum(1 for row in rows if row["change"] == "regressed")
    if before.repetitions == 1 and after.repetitions == 1:
        some = f"some of the {counted(regressed, 'regression')} may be noise" if regressed > 1 else "a change may be noise"
        notes.append(f"Each case ran once on each side, so {some}; run both stages with --repetitions 5 to tell.")
    for stage in (before, after):
        errors = sum(stage.tally(row["id"]).errors for row in rows)
        missing = len(rows) * stage.repetitions - errors - sum(stage.tally(row["id"]).valid() for row in rows)
        if errors or missing > 0:
            lost = f"{counted(errors, 'trial')} ended in an error and {missing:,} did not run"
            notes.append(f"{stage.stage}: {lost}; they count neither as pass nor as fail.")
        if stage.unknown:
            notes.append(f"{stage.stage}: results of {counted(len(stage.unknown), 'case')} that the dataset no longer holds were left out.")
    if delta is None:
        notes.append("There is no change of the pass rate to report: no case could be compared.")
    return notes

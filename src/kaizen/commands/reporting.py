"""What several commands tell of a comparison: the lines, the page, the pending decision."""

import os

from kaizen.cases.decision import PENDING, Decision, write_decision
from kaizen.cases.improvement import Improvement
from kaizen.commands.context import Assessment, Project, decision_of
from kaizen.commands.openings import holdout_openings
from kaizen.commands.table import Argument
from kaizen.commands.verdicts import verdict_view
from kaizen.evaluators.stage_results import RESULTS
from kaizen.foundation.files import write_file
from kaizen.foundation.jsonio import JsonObject, encode_compact, encode_readable, read_json_object
from kaizen.foundation.text import counted, listed, percent, share_percent, visible
from kaizen.policy.derived import derived_lines
from kaizen.policy.reliability import Compared, clusters_of, default_reliability, detailed_entry, judge_family
from kaizen.web.review import ReviewData, StageView, review_markdown, write_review_page

BASELINE = Argument("--baseline", "S", "stage that stands for before (baseline), or run:ID", {"default": "baseline"})
CANDIDATE = Argument("--candidate", "S", "stage that stands for after (candidate), or run:ID", {"default": "candidate"})
SHOWN_CASES = 10


def write_review(project: Project, assessment: Assessment, is_open: bool = False) -> dict[str, str]:
    """Writes comparison.json, a pending decision.yaml, review.html and review.md; returns their shown paths by kind."""
    improvement = project.improvement
    # Compact rows: an indented document of 10,000 cases would be four times the size and slower to write.
    write_file(improvement.path("comparison.json"), comparison_text(assessment.comparison))
    decision = bring_decision_up_to_date(improvement, assessment.comparison["evidence"])
    review = review_data(project, assessment, decision, is_open)
    write_review_page(improvement.path("review.html"), review)
    write_file(improvement.path("review.md"), review_markdown(review))
    names = {"html": "review.html", "markdown": "review.md", "comparison": "comparison.json", "decision": "decision.yaml"}
    return {kind: improvement.shown(name) for kind, name in names.items()}


def write_single_review(project: Project, assessment: Assessment) -> str:
    """Writes review.html and review.md of one stage alone, and nothing to decide about; returns the page's shown path."""
    review = review_data(project, assessment, None, False)
    write_review_page(project.improvement.path("review.html"), review)
    write_file(project.improvement.path("review.md"), review_markdown(review))
    return project.improvement.shown("review.html")


def comparison_text(comparison: JsonObject) -> str:
    """comparison.json: readable, but with one line a case."""
    head = encode_readable({**comparison, "cases": []})
    rows = ",\n    ".join(encode_compact(row) for row in comparison["cases"])
    return head.replace('"cases": []\n}', f'"cases": [\n    {rows}\n  ]\n}}' if rows else '"cases": []\n}') + "\n"


def review_data(project: Project, assessment: Assessment, decision: Decision | None, is_open: bool) -> ReviewData:
    """What the page shows."""
    improvement = project.improvement
    stages = {}
    for role, state in assessment.states.items():
        stage = assessment.comparison[role]["stage"]
        meta_path = improvement.stage_file(stage, ".meta.json")
        meta = read_json_object(meta_path) if os.path.exists(meta_path) else {}
        stages[role] = StageView(role, stage, improvement.stage_file(stage), improvement.stage_file(stage, RESULTS), meta, state.meta)
    return ReviewData(
        comparison=assessment.comparison,
        name=improvement.name,
        shown_folder=improvement.shown(),
        stages=stages,
        cases=project.dataset.cases,
        holdout=frozenset() if is_open else project.dataset.holdout,
        holdout_opened=holdout_openings(improvement),
        decision=decision,
        decide_command=decide_command(improvement),
        reliability=judged_entry(project, assessment) if assessment.tallies else None,
        verdicts=verdict_view(project, {role: assessment.comparison[role]["stage"] for role in assessment.states}, assessment),
    )


def assessed_entry(project: Project, assessment: Assessment) -> JsonObject:
    """How sure the change of *assessment* is, by the settings of the improvement; `judge_family` adds the verdict."""
    cases = project.dataset.cases
    compared = Compared(assessment.comparison["cases"], cases, clusters_of(cases), project.dataset.holdout, assessment.tallies)
    return detailed_entry(compared, project.evaluation.reliability or default_reliability())


def judged_entry(project: Project, assessment: Assessment) -> JsonObject:
    """`assessed_entry` of a candidate that stands alone, with its verdict and the settings that gave it."""
    entry, settings = assessed_entry(project, assessment), project.evaluation.reliability or default_reliability()
    judge_family([entry], settings)
    return {**entry, "settings": settings, "gates": project.evaluation.reliability is not None}


def decide_command(improvement: Improvement) -> str:
    """The command that records the decision, to be completed by the person who decides."""
    return f"kaizen decide {improvement.argument()} --status accepted --by NAME --because TEXT"


def bring_decision_up_to_date(improvement: Improvement, evidence: str) -> Decision:
    """The decision of *improvement*; a pending or absent one is written anew for *evidence*, a decided one is never touched."""
    decision = decision_of(improvement)
    if decision is not None and decision.status != PENDING:
        return decision
    pending = decision or Decision(PENDING, "", "", "", "", [], "", improvement.path("decision.yaml"))
    pending = pending._replace(status=PENDING, evidence=evidence)  # what a person has typed so far stays
    if pending != decision:
        write_decision(pending)
    return pending


def headline(comparison: JsonObject) -> str:
    """'rejected: 2 regressions (at most 0)': the recommendation and the reason that decided."""
    reasons = comparison["reasons"]
    because = (
        reasons[0]["text"] if reasons else f"{counted(comparison['counts']['improved'], 'improvement')}, no regression, every threshold met"
    )
    return f"{comparison['recommendation']}: {because}"


def shown_reasons(comparison: JsonObject, hidden: frozenset[str]) -> list[JsonObject]:
    """The reasons with their case ids; ids in *hidden* are left out and counted."""
    shown = []
    for entry in comparison["reasons"]:
        cases = [case_id for case_id in entry["cases"] if case_id not in hidden]
        shown.append({**entry, "cases": cases, "holdout_cases": len(entry["cases"]) - len(cases)})
    return shown


def rate_text(rates: JsonObject) -> str:
    """'9 of 10 planned trials passed, 1 error; 90 % (60 % to 98 %) over 10 cases'."""
    rate = rates["rate"]
    counts = f"{rates['passed']:,} passed, {rates['failed']:,} failed, {counted(rates['errors'], 'error')}"
    counts += f", {rates['not_run']:,} not run" if rates["not_run"] else ""
    if rate is None:
        return f"{counts} of {counted(rates['planned'], 'planned trial')}; pass rate not measured"
    limits = " to ".join(share_percent(rates[name]) for name in ("low", "high"))
    measured = f"{rates['cases_measured']:,} of {counted(rates['cases'], 'case')}"
    shown = percent(rate["numerator"], rate["denominator"])
    return f"{counts} of {counted(rates['planned'], 'planned trial')}; pass rate {shown} ({limits}) over {measured}"


def stage_names(comparison: JsonObject) -> dict[str, str]:
    """The stage names by role of *comparison*."""
    return {role: comparison[role]["stage"] for role in ("baseline", "candidate") if role in comparison}


def recommendation_lines(comparison: JsonObject, hidden: frozenset[str]) -> list[str]:
    """The recommendation for a terminal: headline, rates, counts, further reasons, regressions first, notes."""
    lines = [headline(comparison)]
    width = max(len(comparison[role]["stage"]) for role in ("baseline", "candidate"))
    lines += [f"  {comparison[role]['stage']:<{width}}  {rate_text(comparison['rates'][role])}" for role in ("baseline", "candidate")]
    lines += [f"  {line}" for line in derived_lines(comparison["metrics"], stage_names(comparison))]
    counts = comparison["counts"]
    order = ("regressed", "weakened", "not_comparable", "improved", "strengthened", "unchanged")
    lines.append(
        "  " + ", ".join(f"{counts[key]:,} {key.replace('_', ' ')}" for key in order if counts[key] or key in ("regressed", "improved"))
    )
    lines += [f"  also: {entry['text']}" for entry in comparison["reasons"][1:]]
    for change in ("regressed", "weakened", "not_comparable", "improved"):
        ids = [row["id"] for row in comparison["cases"] if row["change"] == change]
        shown = [visible(case_id) for case_id in ids if case_id not in hidden]
        if ids:
            secret = f"{counted(len(ids) - len(shown), 'holdout case')}" if len(ids) > len(shown) else ""
            lines.append(
                f"  {change.replace('_', ' ')}: "
                + listed(
                    [
                        *shown[:SHOWN_CASES],
                        *([f"{len(shown) - SHOWN_CASES} more"] if len(shown) > SHOWN_CASES else []),
                        *([secret] if secret else []),
                    ],
                    SHOWN_CASES + 2,
                )
            )
    return lines + [f"  note: {note}" for note in comparison["notes"]]

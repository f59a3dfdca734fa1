"""What `judge`, `agreement` and the review share: the results of a stage as written."""

from collections.abc import Iterator, Mapping

from kaizen.cases.judge_block import INSUFFICIENT, verdict_names
from kaizen.commands.context import Assessment, Project, require_stage
from kaizen.evaluators.stage_results import RESULTS, has_results, stage_state
from kaizen.evaluators.standing import OUTDATED, STANDING_WORDS, agreement_records, standing_now
from kaizen.foundation.errors import InputError, RefusedError
from kaizen.foundation.jsonio import JsonObject, read_json_lines
from kaizen.foundation.text import visible
from kaizen.policy.agreement_words import level_sentence, rate_sentence, subject_text
from kaizen.policy.verdict import Verdicts
from kaizen.web.verdict_section import VerdictView


def checked_results(project: Project, stage: str, ignoring_standing: bool = False) -> tuple[JsonObject, list[tuple[str, str]]]:
    """(results meta of *stage*, what makes the results stale). With *ignoring_standing* what gates may have changed since.

    Raises InputError when there are none, RefusedError when they are not the ones that evaluate wrote.
    """
    improvement = project.improvement
    require_stage(improvement, stage)
    hint = f"run: kaizen evaluate {improvement.argument()} --stage {stage}"
    if not has_results(improvement, stage):
        raise InputError(f"{improvement.shown(stage + RESULTS)}: stage '{stage}' has no results yet", hint, "missing_results")
    state = stage_state(improvement, stage, project.dataset, project.suite, ignoring_standing)
    for code, text in state.problems:
        if code == "invalid_evidence":
            raise RefusedError(text, hint, code)
    return state.meta, state.problems


def results_of(project: Project, stage: str) -> Iterator[JsonObject]:
    """The result lines of *stage* whose case is still there, in their order."""
    cases = project.dataset.cases
    for line in read_json_lines(project.improvement.stage_file(stage, RESULTS)):
        if line.value["case_id"] in cases:
            yield line.value


def first_verdicts(project: Project, stage: str) -> dict[str, str]:
    """The verdict on the first trial of each case of *stage*, by the `judge` block."""
    verdicts = Verdicts(project.evaluation.judge or {})
    trials: dict[str, tuple[int, str]] = {}
    for result in results_of(project, stage):
        if result["trial"] <= trials.get(result["case_id"], (result["trial"], ""))[0]:
            trials[result["case_id"]] = (result["trial"], str(verdicts.verdict(result)["verdict"]))
    return {case_id: verdict for case_id, (_, verdict) in trials.items()}


def verdict_view(project: Project, stages: dict[str, str], assessment: Assessment) -> VerdictView | None:
    """What a review of *stages* (by role) says of verdicts and judges; None when there is neither. Unusable evidence gives no verdict."""
    block, suite = project.evaluation.judge, project.suite
    sentences = []
    for record in agreement_records(project.evaluation):
        standing = standing_now(project.evaluation, suite.entries, suite.entry_fingerprints, record)
        if standing == OUTDATED:
            sentences.append(f"{subject_text(record).capitalize()}: {STANDING_WORDS[OUTDATED]}.")
            continue
        shown = [rate for rate in record["rates"] if rate["stage"] in stages.values()]
        now = {state.meta.get("results_sha256") for state in assessment.states.values()}
        rates = [rate_sentence(rate, record["positive"]) for rate in shown if rate["results_sha256"] in now]
        sentences += [level_sentence(record), *[f"{text}." for text in rates]]
    if block is None:
        return VerdictView("", [], {}, sentences) if sentences else None
    usable = {} if any(code == "invalid_evidence" for code, _ in assessment.problems) else stages
    by_role = {role: first_verdicts(project, stage) for role, stage in usable.items()}
    return VerdictView(f"{block['name']} {block['version']}".rstrip(), [*verdict_names(block), INSUFFICIENT], by_role, sentences)


def counts_text(counts: Mapping[str, int], order: list[str]) -> str:
    """'12 approve, 3 reject': *counts* in *order*, what is not there left out."""
    return ", ".join(f"{counts[name]:,} {visible(name, 60)}" for name in order if counts.get(name)) or "none"

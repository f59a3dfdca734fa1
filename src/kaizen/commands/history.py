"""`kaizen history init`, `record`, `promote`: what is kept, and how."""

import os
from argparse import Namespace
from collections.abc import Callable
from typing import NamedTuple

from kaizen.cases.case import Case
from kaizen.cases.dataset import EVALUATION_FILE, is_inside
from kaizen.cases.decision import Decision
from kaizen.cases.improvement import RUN_PREFIX, Improvement, check_stage_name, find_improvement
from kaizen.cases.labels import AGREEMENT_FILE, LABELS_FILE
from kaizen.commands.context import Assessment, Project, assess, decision_of, load_project, refuse_stale, tallied_stage
from kaizen.commands.reporting import comparison_text, decide_command, headline, rate_text
from kaizen.commands.table import IMPROVEMENT, OR_RUNS, Answer, Argument, command
from kaizen.evaluators.stage_results import RESULTS, RESULTS_META, StageState
from kaizen.foundation.errors import InputError, RefusedError, UsageError
from kaizen.foundation.files import read_bytes, shown_path
from kaizen.foundation.jsonio import JsonObject, encode_compact
from kaizen.foundation.text import quoted
from kaizen.history.archive import Source, object_bytes
from kaizen.history.ledger import ANCHOR, RECORD, anchor_digest
from kaizen.history.promotion import promotion_obstacle, stated_decision
from kaizen.history.reading import (
    CASES_ARCHIVED,
    COMPARISON_ARCHIVED,
    HISTORY_FOLDER,
    OUTCOMES_ARCHIVED,
    History,
    HistoryRun,
    cohort_id,
    find_history,
    find_run,
    load_history,
    outcomes_document,
    run_row,
)
from kaizen.history.recording import RunDraft, record_promotion, record_run
from kaizen.policy.recommendation import single_stage_document
from kaizen.runs.observation import file_digest

HISTORY = Argument("--history", "DIR", "the history (default: the nearest kaizen-history/ from here upwards)")
RUN = Argument("run", "RUN", "a run: its id or the beginning of it, its number, its label, or 'champion'")
RUN_LABEL = Argument("--label", "L", "a name for people (default: the improvement's)", {"default": ""})
AGENT_VERSION = Argument(
    "--agent-version", "V", "the version of the agent that the stage ran, such as a tag or a commit", {"required": True}
)
STAGE_SUFFIXES = (".jsonl", ".meta.json", RESULTS, RESULTS_META, ".judgements.jsonl")
LONGEST_NAME = 200
CheckFields = Callable[[History, JsonObject], None]


class Recorded(NamedTuple):
    """What is about to be recorded: the project, the comparison (or the one stage's document), the state of each role's stage."""

    project: Project
    comparison: JsonObject
    states: dict[str, StageState]


@command(
    "history init",
    "Begins a cohort in kaizen-history/: archives a stage as the anchor that later candidates are compared with.",
    [IMPROVEMENT, Argument("--stage", "S", "stage to archive (baseline)", {"default": "baseline"}), RUN_LABEL, AGENT_VERSION, HISTORY],
    "kaizen history init refund --label 'before the rewrite' --agent-version v1",
    group="history",
)
def command_history_init(args: Namespace) -> Answer:
    """Archives the anchor."""
    if args.improvement.startswith(RUN_PREFIX):
        args.stage = args.improvement[len(RUN_PREFIX) :]
    recorded = one_stage(load_project(args.improvement), args.stage)

    def check(history: History, fields: JsonObject) -> None:
        cohort = cohort_id(fields["cohort"])
        anchor = history.anchor(cohort)
        if anchor:
            name = recorded.project.improvement.argument()
            hint = f"record in it: kaizen history record {name} --agent-version V; with --stage {args.stage} for this stage"
            if name.startswith(RUN_PREFIX):
                hint = f"record in it: kaizen history record --run {args.stage} --agent-version V"
            raise RefusedError(f"{cohort}: this cohort has an anchor already, {anchor.id}", hint, "cohort_exists")

    history, run = recorded_run(args, ANCHOR, recorded, check)
    champion = history.champion()
    lines = [f"{run.id}: anchor of cohort {run.cohort()}, agent version {quoted(args.agent_version)}"]
    lines.append(f"  {args.stage}  {rate_text(recorded.comparison['rates']['candidate'])}")
    if champion and champion.manifest["agent_version"] != args.agent_version:
        version = quoted(champion.manifest["agent_version"])
        lines.append(
            f"  note: the champion is version {version} ({champion.id}); a candidate must be compared with that one to be promoted"
        )
    name, is_run = recorded.project.improvement.argument(), args.improvement.startswith(RUN_PREFIX)
    what = f"--run ID --baseline {name}" if is_run else name
    following = f"kaizen history record {what} --agent-version V, when there is a candidate"
    return Answer(0, "anchored", lines[0], lines, history_answer(history, run), following)


@command(
    "history record",
    "Archives a candidate: its evidence and the baseline's, results, cases, evaluation, comparison and decision. Runs no agent.",
    [
        OR_RUNS,
        Argument("--stage", "S", "stage to archive (candidate)", {"default": "candidate"}),
        Argument("--baseline", "S", "stage or run:ID that it is compared with (baseline, when there is one)"),
        Argument("--run", "ID", "a run of the lab, in place of IMPROVEMENT and --stage", {"default": ""}),
        RUN_LABEL,
        AGENT_VERSION,
        HISTORY,
    ],
    "kaizen history record refund --label 'asks before it acts' --agent-version v2",
    group="history",
)
def command_history_record(args: Namespace) -> Answer:
    """Archives a candidate, or one stage alone when it is the baseline or there is none."""
    project = recorded_project(args)
    baseline = args.baseline or "baseline"
    is_there = args.baseline is not None or os.path.exists(project.improvement.stage_file(baseline))
    is_compared = args.stage != check_stage_name(baseline) and is_there
    recorded = compared_stages(project, baseline, args.stage) if is_compared else one_stage(project, args.stage)

    def check(history: History, fields: JsonObject) -> None:
        wanted = identity_of_run(fields)
        same = [run for run in history.runs.values() if run.manifest and identity_of_run(run.manifest) == wanted]
        if same:
            raise RefusedError(f"{same[-1].id}: is this very run; nothing was added", "there is nothing to do", "already_recorded")

    history, run = recorded_run(args, RECORD, recorded, check)
    comparison, decision = recorded.comparison, run.manifest["decision"]
    lines = [f"{run.id}: recorded in cohort {run.cohort()}, agent version {quoted(args.agent_version)}"]
    lines += [
        f"  {comparison[role]['stage']}  {rate_text(comparison['rates'][role])}" for role in ("baseline", "candidate") if role in comparison
    ]
    lines.append(f"  {headline(comparison)}" if is_compared else "  recorded alone: it can be compared with, not promoted")
    if history.anchor(run.cohort()) is None:
        name = RUN_PREFIX + (baseline if is_compared else args.stage) if args.run else project.improvement.argument()
        lines.append(f"  note: the cohort has no anchor yet: kaizen history init {name} --agent-version V")
    lines += [f"  decision: {decision['status'] if decision else 'none'}"] if is_compared else []
    status = decision["status"] if decision else ""
    following = f"kaizen history promote {run.id}" if status.startswith("accepted") else decide_command(project.improvement)
    following = "" if status == "rejected" or not is_compared else following
    return Answer(0, "recorded", lines[0], lines, history_answer(history, run), following)


def recorded_project(args: Namespace) -> Project:
    """The improvement, or the evidence of the run, that *args* name; then `stage` and `baseline` are ids of runs."""
    if (args.improvement is None) != bool(args.run):
        raise UsageError("name an improvement, or a run with --run ID", "one of them, not both")
    if args.run:
        args.stage = args.run
        if args.baseline and args.baseline.startswith(RUN_PREFIX):
            from kaizen.lab.engine_eval import run_evidence

            run_evidence(args.baseline)
            args.baseline = args.baseline.removeprefix(RUN_PREFIX)
    return load_project(RUN_PREFIX + args.run if args.run else args.improvement)


@command(
    "history promote",
    "Makes a recorded run the champion, when a person has accepted exactly its evidence and every rule holds.",
    [RUN, HISTORY],
    "kaizen history promote 2",
    group="history",
)
def command_history_promote(args: Namespace) -> Answer:
    """Appends the promotion, with the decision it rests on."""
    folder = required_history(args.history)
    run = find_run(load_history(folder), args.run)
    if not run.manifest:
        raise RefusedError(run.problem, "run: kaizen history validate", "hash_mismatch")
    improvement = improvement_of_run(folder, run)
    stale = "" if improvement is None else moved_on(improvement, run)
    decision, source = deciding_file(folder, run, improvement)

    def check(history: History) -> None:
        obstacle = promotion_obstacle(history, history.runs[run.id], decision, stale)
        if obstacle:
            raise RefusedError(obstacle.text, obstacle.hint, obstacle.code)

    before = load_history(folder)
    stated = stated_decision(decision) or {}
    history = record_promotion(folder, run.id, source, stated, check)
    former = before.champion()
    lines = [f"{run.id} is champion: agent version {quoted(run.manifest['agent_version'])}, accepted by {quoted(stated['decided_by'])}"]
    lines += [f"  it replaces {former.id}, agent version {quoted(former.manifest['agent_version'])}"] if former else []
    lines.append(f"  anchor digest, to be kept outside the history: {anchor_digest(history.entries)}")
    data = {**history_answer(history, history.runs[run.id]), "replaces": former.id if former else None}
    return Answer(0, "promoted", lines[0], lines, data, "commit kaizen-history/, with the anchor digest in the commit message")


def required_history(argument: str | None) -> str:
    """The folder of the history. Raises InputError when there is none."""
    folder = find_history(argument)
    if folder is None:
        hint = "begin one with: kaizen history init IMPROVEMENT --agent-version V; or name it with --history DIR"
        raise InputError(f"no {HISTORY_FOLDER}/ here or in a folder above", hint, "no_history")
    return folder


def history_answer(history: History, run: HistoryRun) -> JsonObject:
    """What --json says of *run*."""
    return {"run": run_row(history, run), "history": shown_path(history.folder), "anchor": anchor_digest(history.entries)}


# --- What is archived ------------------------------------------------------------------


def one_stage(project: Project, stage: str) -> Recorded:
    """*stage* alone, to be archived. Raises RefusedError when its results are stale or broken."""
    tally, state = tallied_stage(project, stage)
    document = single_stage_document(list(project.dataset.cases), tally, state.meta, project.derived)
    refuse_stale(Assessment(document, {"candidate": state}, state.problems), project.improvement, "record")
    return Recorded(project, document, {"candidate": state})


def compared_stages(project: Project, baseline: str, candidate: str) -> Recorded:
    """Two stages and their comparison, to be archived. Raises RefusedError when something is stale."""
    assessment = assess(project, baseline, candidate)
    refuse_stale(assessment, project.improvement, "record")
    return Recorded(project, assessment.comparison, assessment.states)


def recorded_run(args: Namespace, kind: str, recorded: Recorded, check: CheckFields) -> tuple[History, HistoryRun]:
    """The history with *recorded* appended as a run of *kind*, and that run."""
    improvement = recorded.project.improvement
    label = args.label or improvement.name
    for name, value in (("--label", label), ("--agent-version", args.agent_version)):
        if not value.strip() or len(value) > LONGEST_NAME:
            raise UsageError(f"{name} must have 1 to {LONGEST_NAME} characters", "give it a short name")
    folder = find_history(args.history, improvement.outer_folder()) or os.path.join(improvement.outer_folder(), HISTORY_FOLDER)
    decision, source = decision_file(improvement)
    if decision is None or decision.evidence != recorded.comparison.get("evidence"):
        decision = None  # there is none about what is recorded here

    def check_all(history: History) -> None:
        check(history, {"label": label, **fields})
        refuse_changed_stages(recorded)

    fields = run_fields(recorded, args.agent_version, path_from(os.path.dirname(folder), improvement), decision)
    return record_run(folder, RunDraft(kind, label, fields, [*run_sources(recorded), *([source] if decision else [])]), check_all)


def path_from(folder: str, improvement: Improvement) -> str:
    """The improvement's folder as seen from *folder*, '/' between the parts; '' when it does not lie inside."""
    return os.path.relpath(improvement.folder, folder).replace(os.sep, "/") if is_inside(folder, improvement.folder) else ""


def cohort_fields(project: Project) -> JsonObject:
    """The cohort of *project*, as a manifest has it."""
    return {
        "dataset_fingerprint": project.dataset.fingerprint,
        "evaluator_fingerprint": project.suite.fingerprint,
        "evaluators": project.suite.entry_fingerprints,
        "cases": len(project.dataset.cases),
        "holdout": len(project.dataset.holdout),
    }


def run_fields(recorded: Recorded, agent_version: str, path: str, decision: Decision | None) -> JsonObject:
    """The manifest of *recorded*, but for id, time and files; it names no case."""
    comparison = recorded.comparison
    reasons = [{key: reason[key] for key in ("code", "rule", "text")} for reason in comparison["reasons"]]
    return {
        "agent_version": agent_version,
        "improvement": {"name": recorded.project.improvement.name, "path": path},
        "cohort": cohort_fields(recorded.project),
        "stages": {role: comparison[role] for role in ("baseline", "candidate") if role in comparison},
        "evidence": comparison.get("evidence"),
        "recommendation": comparison["recommendation"],
        "reasons": reasons,
        **{key: comparison[key] for key in ("counts", "rates", "delta", "delta_reason", "metrics")},
        "decision": stated_decision(decision),
    }


def identity_of_run(fields: JsonObject) -> list[object]:
    """What makes two records the same run, when all of it is equal."""
    return [fields.get(key) for key in ("label", "agent_version", "cohort", "stages", "evidence", "decision")]


def run_sources(recorded: Recorded) -> list[Source]:
    """The files to archive of *recorded* but for the decision, each under its name in the manifest."""
    improvement, dataset = recorded.project.improvement, recorded.project.dataset
    found = [Source(CASES_ARCHIVED, content=archived_case_lines(list(dataset.cases.values())))]
    outcomes = encode_compact(outcomes_document(recorded.comparison["cases"], dataset.holdout)) + "\n"
    found.append(Source(OUTCOMES_ARCHIVED, content=outcomes.encode("utf-8")))
    found.append(Source(COMPARISON_ARCHIVED, content=comparison_text(recorded.comparison).encode("utf-8")))
    names = [EVALUATION_FILE, "issue.md", LABELS_FILE, AGREEMENT_FILE]
    for role in recorded.states:
        names += [recorded.comparison[role]["stage"] + suffix for suffix in STAGE_SUFFIXES]
    found += [Source(name, improvement.path(name)) for name in names if os.path.isfile(improvement.path(name))]
    references = sorted(recorded.project.evaluation.file_hashes)
    return found + [Source(f"$file/{name}", os.path.normpath(improvement.path(name))) for name in references]


def archived_case_lines(cases: list[Case]) -> bytes:
    """All cases, those of included files too, one a line."""
    return "".join(encode_compact(case.document) + "\n" for case in cases).encode("utf-8")


def refuse_changed_stages(recorded: Recorded) -> None:
    """Raises RefusedError when a stage is no longer the one that was assessed."""
    improvement = recorded.project.improvement
    for role, state in recorded.states.items():
        stage = recorded.comparison[role]["stage"]
        for key, suffix in (("observations_sha256", ".jsonl"), ("results_sha256", RESULTS)):
            if file_digest(improvement.stage_file(stage, suffix)) != state.meta[key]:
                message = f"{improvement.shown(stage + suffix)}: changed while it was recorded; nothing was recorded"
                raise RefusedError(message, "wait until nobody writes it, then record again", "changed_while_recorded")


# --- What a promotion rests on ---------------------------------------------------------


def improvement_of_run(folder: str, run: HistoryRun) -> Improvement | None:
    """The improvement that *run* was recorded from; None when it is gone: then the archive alone counts."""
    place, root = run.manifest["improvement"], os.path.dirname(folder)
    path = os.path.normpath(os.path.join(root, *str(place.get("path", "")).split("/")))
    try:
        if place.get("path"):
            return find_improvement(path) if is_inside(root, path) else None
        return find_improvement(os.path.basename(str(place.get("name", ""))) or "?")
    except InputError:
        return None


def moved_on(improvement: Improvement, run: HistoryRun) -> str:
    """How the files of *improvement* differ from what *run* recorded; '' when they do not."""
    stages = run.manifest["stages"]
    if "baseline" not in stages:
        return ""
    try:
        now = assess(load_project(improvement.folder), stages["baseline"]["stage"], stages["candidate"]["stage"])
    except InputError as error:
        return error.message
    if now.problems:
        return now.problems[0][1]
    cohort, comparison = run.manifest["cohort"], now.comparison
    for what, key in (("cases", "dataset_fingerprint"), ("evaluators", "evaluator_fingerprint")):
        if comparison[key] != cohort[key]:
            return f"the {what} in {improvement.shown()} have changed since it was recorded"
    for role in ("baseline", "candidate"):
        if comparison[role] != stages[role]:
            return f"stage '{stages[role]['stage']}' in {improvement.shown()} has changed since it was recorded"
    same = comparison["evidence"] == run.manifest["evidence"]
    return "" if same else f"the policy in {improvement.shown(EVALUATION_FILE)} has changed since it was recorded"


def deciding_file(folder: str, run: HistoryRun, improvement: Improvement | None) -> tuple[Decision | None, Source]:
    """The decision that counts for *run*, and its file: the improvement's, or the archived one when the improvement is gone."""
    if improvement is not None:
        return decision_file(improvement)
    entry = run.file("decision.yaml")
    content = object_bytes(folder, entry) if entry else b""
    stated = run.manifest["decision"]
    return (Decision(**stated, path="") if entry and stated else None), Source("decision.yaml", content=content)


def decision_file(improvement: Improvement) -> tuple[Decision | None, Source]:
    """The decision of *improvement* and the very file that it was read from. Raises RefusedError when that changes meanwhile."""
    path = improvement.path("decision.yaml")
    if not os.path.exists(path):
        return None, Source("decision.yaml")
    content, decision = read_bytes(path), decision_of(improvement)
    if read_bytes(path) != content:
        raise RefusedError(f"{shown_path(path)}: changed while it was read", "try again", "changed_while_recorded")
    return decision, Source("decision.yaml", content=content)

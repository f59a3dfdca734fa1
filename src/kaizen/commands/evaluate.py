"""`kaizen evaluate`: what the evaluators say of every trial of a stage."""

from argparse import Namespace

from kaizen.commands.context import Project, evaluating_command, load_project, require_stage, tallied_stage
from kaizen.commands.judging import LEAVE_ARGUMENTS, judging_data, judging_lines, leave_of, unanswered_questions
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.evaluators.label import label_lines
from kaizen.evaluators.stage_results import RESULTS, RESULTS_META, evaluate_stage, repetitions_of
from kaizen.evaluators.standing import not_gating_notes
from kaizen.evaluators.suite import PROGRAM_TYPES
from kaizen.foundation.errors import EXIT_INCOMPLETE, InputError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.progress import Progress
from kaizen.foundation.text import counted, listed, percent
from kaizen.policy.derived import derived_figures, derived_lines


@command(
    "evaluate",
    "Evaluates every trial of a stage, or of every stage there is, and writes the results beside them.",
    [
        IMPROVEMENT,
        Argument("--stage", "S", "this stage only (repeatable)", {"action": "append", "default": []}),
        Argument("--trials", "", "accepted for compatibility: every trial is always evaluated"),
        *LEAVE_ARGUMENTS,
        Argument("--progress", "KIND", "auto, plain or none", {"choices": ["auto", "plain", "none"], "default": "auto"}),
    ],
    "kaizen evaluate refund\nkaizen evaluate refund --stage candidate --json\nkaizen evaluate refund --jobs 4 -- python judge.py",
    rest="JUDGE [ARG…]",
)
def command_evaluate(args: Namespace) -> Answer:
    """Writes results and meta file of each stage asked for; exit 4 when a judge has not answered for some trial."""
    project = load_project(args.improvement)
    leave = leave_of(args, project)
    improvement = project.improvement
    stages = list(dict.fromkeys(args.stage)) or improvement.stages()
    if not stages:
        hint = f"run: kaizen run {improvement.argument()} --stage baseline -- COMMAND"
        raise InputError(f"{improvement.shown()}: no stage has been run yet", hint, "missing_stage")
    for stage in stages:
        require_stage(improvement, stage)
    metas: list[JsonObject] = []
    for stage in stages:
        planned = len(project.dataset.cases) * (repetitions_of(improvement, stage) or 1)
        with Progress(f"evaluate {stage}", planned, args.progress) as progress:
            metas.append(evaluate_stage(improvement, stage, project.dataset, project.suite, progress.report, leave))
    open_names = project.suite.names_outside(project.dataset)
    for meta in metas:
        for part in {"by_evaluator", "labels"} & meta.keys():
            meta[part] = {name: row for name, row in meta[part].items() if name in open_names}
    lines, derived = [], {stage: stage_metrics(project, stage) for stage in stages}
    for stage, meta in zip(stages, metas, strict=True):
        lines += evaluated_lines(stage, meta, shown_path(improvement.stage_file(stage, RESULTS)))
        derived_rows = [f"  {line}" for line in derived_lines(derived[stage], {"candidate": stage})]
        lines[-1:-1] = [*judging_lines(stage, meta), *derived_rows]
    message = "; ".join(counts_sentence(stage, meta) for stage, meta in zip(stages, metas, strict=True))
    files = [shown_path(improvement.stage_file(stage, suffix)) for stage in stages for suffix in (RESULTS, RESULTS_META)]
    data: JsonObject = {
        "stages": {
            stage: {
                **{key: meta[key] for key in ("counts", "planned", "by_evaluator", "labels") if key in meta},
                **judging_data(meta),
                "metrics": derived[stage],
                "notes": not_gating_notes(meta),
            }
            for stage, meta in zip(stages, metas, strict=True)
        }
    }
    following = f"kaizen review {improvement.argument()}" if len(improvement.stages()) > 1 else ""
    missing = sum(map(unanswered_questions, metas))
    if missing:
        message += f"; {counted(missing, 'question')} to the judge not answered"
        return Answer(EXIT_INCOMPLETE, "judge_not_answered", message, lines, {**data, "files": files}, evaluating_command(project))
    if not (leave.allow_programs or project.suite.types_used.isdisjoint(PROGRAM_TYPES)):
        following = f"{evaluating_command(project)}, to let {listed(sorted(project.suite.types_used & {*PROGRAM_TYPES}))} start programs"
    return Answer(0, "evaluated", message, lines, {**data, "files": files}, following)


def stage_metrics(project: Project, stage: str) -> list[JsonObject]:
    """The derived metrics of *stage*, whose results are there; each value stands under 'candidate'."""
    if not project.evaluation.metrics:
        return []
    tally, _ = tallied_stage(project, stage)
    return [entry.document for entry in derived_figures(project.derived, list(project.dataset.cases), {"candidate": tally})]


def counts_sentence(stage: str, meta: JsonObject) -> str:
    """'candidate: 65 passed, 135 failed, 0 errors of 200 planned trials'."""
    counts = meta["counts"]
    known = f"{counts['pass']:,} passed, {counts['fail']:,} failed, {counted(counts['error'], 'error')}"
    return f"{stage}: {known} of {counted(meta['planned'], 'planned trial')}"


def evaluated_lines(stage: str, meta: JsonObject, path: str) -> list[str]:
    """Lines for people about one stage: counts, then a row an evaluator."""
    valid = meta["counts"]["pass"] + meta["counts"]["fail"]
    lines = [f"{counts_sentence(stage, meta)} ({percent(meta['counts']['pass'], valid)} of {counted(valid, 'measured trial')})"]
    width = max([len(name) for name in meta["by_evaluator"]], default=0)
    for name, counts in meta["by_evaluator"].items():
        shown = ", ".join(
            f"{counts[key]:,} {word}"
            for key, word in (("pass", "pass"), ("fail", "fail"), ("error", "error"), ("not_applicable", "not applicable"))
            if counts[key]
        )
        lines.append(f"  {name:<{width}}  {shown}")
        lines += [f"    {line}" for line in label_lines(meta.get("labels", {}).get(name))]
    return [*lines, *[f"  note: {note}" for note in not_gating_notes(meta)], f"  written to {path}"]

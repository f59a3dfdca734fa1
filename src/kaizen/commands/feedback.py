"""`kaizen feedback`: what an optimizer may learn; of the holdout only a count."""

import os
from argparse import Namespace
from collections.abc import Iterator

from kaizen.commands.context import Project, load_project, require_stage
from kaizen.commands.openings import holdout_events, log_holdout_event
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.evaluators.stage_results import RESULTS, has_results, stage_state
from kaizen.foundation.errors import InputError, RefusedError
from kaizen.foundation.files import replacing
from kaizen.foundation.jsonio import JsonObject, read_json_lines
from kaizen.foundation.locks import FileLock
from kaizen.foundation.text import counted
from kaizen.policy.feedback import feedback_pieces
from kaizen.policy.holdout import holdout_seal, refuse_open_dataset, seal_breach
from kaizen.runs.observation import iter_observations

FEEDBACK_FILE = "feedback.json"
SEALED = "feedback_exported"
RESEALED = "holdout_resealed"
STAGE_SHOWN = Argument("--stage", "S", "the stage to learn from (candidate; baseline when there is no candidate)")
RESEAL = Argument("--reseal", "TEXT", "the holdout was changed on purpose, for this reason; it is recorded and shown from then on")


@command(
    "feedback",
    "Writes feedback.json: what went wrong in every trial of a stage but those of the holdout, which is only counted.",
    [IMPROVEMENT, STAGE_SHOWN, RESEAL],
    "kaizen feedback refund\nkaizen feedback refund --stage baseline --json",
    group="further questions",
)
def command_feedback(args: Namespace) -> Answer:
    """Writes feedback.json and appends a seal of the holdout to the log."""
    project = load_project(args.improvement)
    stage = stage_to_learn_from(project, args.stage)
    lines = export_feedback(project, stage, args.reseal)
    shown = project.improvement.shown(FEEDBACK_FILE)
    held = counted(len(project.dataset.holdout), "holdout case")
    open_cases = len(project.dataset.cases) - len(project.dataset.holdout)
    message = f"feedback on {counted(open_cases, 'case')} of stage '{stage}'; {held} kept back"
    data: JsonObject = {"stage": stage, "cases": open_cases, "holdout_cases": len(project.dataset.holdout), "files": {"feedback": shown}}
    following = f"kaizen optimize {project.improvement.argument()} -- COMMAND"
    return Answer(0, "exported", message, [message, *lines, f"  written to {shown}"], data, following)


def stage_to_learn_from(project: Project, named: str | None) -> str:
    """The stage *named*, else candidate, else baseline. Raises InputError when it has not been run."""
    has_candidate = os.path.exists(project.improvement.stage_file("candidate"))
    stage = named or ("candidate" if has_candidate else "baseline")
    require_stage(project.improvement, stage)
    return stage


def export_feedback(project: Project, stage: str, reason: str | None = None) -> list[str]:
    """Writes feedback.json of *stage* after the holdout has been found as it was sealed; lines that tell what was noted.

    Raises RefusedError for a dataset that keeps nothing back, a holdout that changed (unless *reason* says why), stale results.
    """
    improvement, dataset = project.improvement, project.dataset
    refuse_open_dataset(dataset)
    again = f"run: kaizen evaluate {improvement.argument()} --stage {stage}"
    if not has_results(improvement, stage):
        raise InputError(f"stage '{stage}' has not been evaluated", again, "missing_results")
    state = stage_state(improvement, stage, dataset, project.suite)
    if state.problems:
        raise RefusedError(f"cannot give feedback: {state.problems[0][1]}", again, state.problems[0][0])
    with FileLock(improvement.path(".feedback.lock"), "the feedback"):
        lines = check_seal(project, reason)
        head: JsonObject = {
            "version": 1,
            "stage": stage,
            "dataset_fingerprint": dataset.fingerprint,
            "evaluator_fingerprint": state.meta["evaluator_fingerprint"],
            "results_sha256": state.meta["results_sha256"],
        }
        with replacing(improvement.path(FEEDBACK_FILE)) as stream:
            for piece in feedback_pieces(head, dataset, stage_trials(project, stage)):
                stream.write(piece.encode("utf-8"))
            log_holdout_event(
                improvement, SEALED, {"stage": stage, "results_sha256": head["results_sha256"], "seal": holdout_seal(dataset)}
            )
    return lines


def check_seal(project: Project, reason: str | None) -> list[str]:
    """Lines about earlier changes of the holdout. Raises RefusedError when it is not as it was sealed and no *reason* is given."""
    improvement = project.improvement
    seals = [event["seal"] for event in holdout_events(improvement, SEALED) if isinstance(event.get("seal"), dict)]
    breach = seal_breach(project.dataset, seals[-1]) if seals else None
    if breach is not None:
        changed = f"{counted(breach.lost, 'case')} of it changed or gone, {counted(breach.new, 'case')} in it new or changed"
        if not (reason or "").strip():
            raise RefusedError(
                f"the holdout is not what it was at the last export: {changed}",
                "put it back as it was; if it was changed on purpose, say why: --reseal TEXT",
                "holdout_changed",
            )
        log_holdout_event(improvement, RESEALED, {"reason": reason, "lost": breach.lost, "new": breach.new})
    times = sum(1 for _ in holdout_events(improvement, RESEALED))
    return [f"  note: the holdout has been changed and sealed anew {counted(times, 'time')}"] if times else []


def stage_trials(project: Project, stage: str) -> Iterator[tuple[JsonObject, JsonObject]]:
    """(observation, result) of each trial of *stage*. Raises InputError when the two files do not belong together."""
    improvement = project.improvement
    observed = iter_observations(improvement.stage_file(stage))
    for line, result in zip(observed, read_json_lines(improvement.stage_file(stage, RESULTS)), strict=True):
        yield line.value, result.value

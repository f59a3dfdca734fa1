"""`kaizen run`: has a runner answer the cases of an improvement and records what it did."""

import os
from argparse import ArgumentTypeError, Namespace

from kaizen.commands.context import Project, diagnose, load_project
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.foundation.errors import EXIT_DONE, EXIT_INCOMPLETE, EXIT_INTERRUPTED, UsageError
from kaizen.foundation.files import shown_path
from kaizen.foundation.progress import PROGRESS_MODES
from kaizen.foundation.redact import environment_secrets, redact_arguments
from kaizen.foundation.text import counted, duration, quoted, visible
from kaizen.runs.bridge import RunRequest, RunSummary, run_stage
from kaizen.runs.journal import ONLY_ERRORS, OVERWRITE, REFUSE, RESUME, RESUME_OVERWRITE
from kaizen.runs.observation import COMPLETED

SPLITS_ON_COMMAND_LINE = ["development", "regression", "challenge", "holdout"]


def count_argument(text: str) -> int:
    """*text* as a whole number from 1 to 1,000, which is also what threads a system can be trusted to give. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or len(text) > 4 or not 1 <= int(text) <= 1000:
        raise ArgumentTypeError(f"{quoted(text)} is not a whole number from 1 to 1,000")
    return int(text)


def positive_seconds(text: str) -> float:
    """*text* as a number of seconds above 0. Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e7:
        raise ArgumentTypeError(f"{quoted(text)} is not a number of seconds above 0")
    return value


# What `run` and `test` have in common.
RUN_ARGUMENTS = [
    Argument("--repetitions", "N", "trials of each case (default: 1, or as the stage has them)", {"type": count_argument, "default": 0}),
    Argument("--jobs", "N", "trials at the same time (default: 1)", {"type": count_argument, "default": 1}),
    Argument("--timeout", "S", "seconds for one trial (default: 300)", {"type": positive_seconds, "default": 300.0}),
    Argument("--id", "ID", "only this case (repeatable)", {"action": "append", "default": []}),
    Argument("--tag", "TAG", "only cases with this tag (repeatable)", {"action": "append", "default": []}),
    Argument(
        "--split", "SPLIT", "only cases of this split (repeatable)", {"action": "append", "default": [], "choices": SPLITS_ON_COMMAND_LINE}
    ),
    Argument("--cwd", "DIR", "folder in which the command is started (default: the current one)", {"default": ""}),
    Argument("--replay", "FILE", "recorded answers in place of a command", {"default": ""}),
    Argument("--progress", "KIND", "auto, plain or none", {"choices": list(PROGRESS_MODES), "default": "auto"}),
]


@command(
    "run",
    "Runs a command once for each trial of each case, and records what it answers as a stage.",
    [
        IMPROVEMENT,
        Argument("--stage", "S", "name of the stage: baseline, candidate, or any other", {"required": True}),
        *RUN_ARGUMENTS,
        Argument("--resume", "", "run what is missing of a stage that is there"),
        Argument("--overwrite", "", "run everything anew; the old files stay until the last trial has ended"),
        Argument("--only", "WHAT", "errors: run again the trials without usable evidence", {"choices": ["errors"], "default": ""}),
    ],
    "kaizen run refund --stage baseline -- ./agent\nkaizen run refund --stage candidate --repetitions 5 --jobs 4 -- python agent.py",
    rest="COMMAND [ARG…]",
)
def command_run(args: Namespace) -> Answer:
    """Runs the stage; exit 4 when trials have no usable evidence, 130 when interrupted."""
    if args.only and (args.resume or args.overwrite):
        raise UsageError("--only errors goes with neither --resume nor --overwrite", "it adds to the stage that is there")
    existing = RESUME_OVERWRITE if args.resume and args.overwrite else RESUME if args.resume else OVERWRITE if args.overwrite else REFUSE
    project = load_project(args.improvement)
    summary = run_stage(run_request(args, project, args.stage, ONLY_ERRORS if args.only else existing))
    return run_answer(args, summary)


def run_request(args: Namespace, project: Project, stage: str, existing: str) -> RunRequest:
    """The request that RUN_ARGUMENTS and the command behind `--` ask for. Raises UsageError unless there is one."""
    if args.replay and args.rest:
        raise UsageError("--replay takes the place of a command; both were given", "leave out one of them")
    if not args.replay and not args.rest:
        raise UsageError(
            "there is no command to run", f"write it behind '--': … {args.improvement} --stage {stage} -- COMMAND [ARG…]", "no_command"
        )
    return RunRequest(
        improvement=project.improvement,
        stage=stage,
        dataset=project.dataset,
        seed=project.evaluation.seed,
        command=args.rest or [],
        cwd=args.cwd,
        replay=args.replay,
        repetitions=args.repetitions,
        jobs=args.jobs,
        timeout_seconds=args.timeout,
        existing=existing,
        ids=tuple(args.id),
        tags=tuple(args.tag),
        splits=tuple(args.split),
        progress=args.progress,
    )


def run_answer(args: Namespace, summary: RunSummary) -> Answer:
    """The answer of `kaizen run` for what came of it."""
    for note in summary.notes:
        diagnose(f"note: {note}")
    completed = summary.counts.get(COMPLETED, 0)
    message = f"{summary.stage}: {completed:,} of {counted(summary.selected, 'trial')} completed"
    failed = [f"{number:,} {status}" for status, number in summary.counts.items() if status != COMPLETED]
    following = after_run(args.improvement, summary)
    code, reason = EXIT_DONE, "completed"
    if summary.is_interrupted:
        code, reason = EXIT_INTERRUPTED, "interrupted"
        message = f"{summary.stage}: interrupted; {counted(sum(summary.counts.values()), 'trial')} of {summary.selected:,} saved"
        following = run_again(args, ["--overwrite", "--resume"] if summary.is_beside else ["--resume"])
    elif summary.unusable:
        code, reason = EXIT_INCOMPLETE, "unusable_trials"
        message += f", {summary.unusable:,} without usable evidence ({', '.join(failed)})"
        following = run_again(args, ["--only", "errors"])
    if summary.selected < summary.planned:
        message += f"; a selection of {summary.planned:,} planned"
    lines = [f"{message}, {duration(summary.seconds)}"]
    lines += [f"  {line}" for line in summary.examples]
    files = [shown_path(summary.path)] if os.path.exists(summary.path) else []  # interrupted before the first answer
    lines += [f"  written to {name}" for name in files]
    data = {
        "stage": summary.stage,
        "planned": summary.planned,
        "selected": summary.selected,
        "ran": summary.ran,
        "counts": summary.counts,
        "unusable": summary.unusable,
        "errors": summary.examples,
        "notes": summary.notes,
        "files": files,
    }
    return Answer(code, reason, message, lines, data, following)


def after_run(improvement: str, summary: RunSummary) -> str:
    """What the main flow does after this stage: the candidate after the baseline, then the review."""
    from shlex import quote

    improvement = quote(improvement)
    if summary.stage == "baseline" and not os.path.exists(os.path.join(os.path.dirname(summary.path), "candidate.jsonl")):
        return f"change the agent, then: kaizen run {improvement} --stage candidate -- COMMAND"
    compares = summary.stage in ("baseline", "candidate")
    return f"kaizen review {improvement}" if compares else f"kaizen evaluate {improvement} --stage {summary.stage}"


def run_again(args: Namespace, options: list[str]) -> str:
    """The command line that goes on with the run of *args*, with *options* for the stage that is there."""
    from shlex import quote

    words = ["kaizen", "run", args.improvement, "--stage", args.stage]
    for name, default in (("repetitions", 0), ("jobs", 1), ("timeout", 300.0), ("cwd", ""), ("replay", ""), ("progress", "auto")):
        value = getattr(args, name)
        if value != default:
            words += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
    for name in ("id", "tag", "split"):
        words += [word for value in getattr(args, name) for word in (f"--{name}", value)]
    words += options
    if args.rest:
        words += ["--", *redact_arguments(args.rest, environment_secrets(os.environ))]
    return visible(" ".join(map(quote, words)), None)

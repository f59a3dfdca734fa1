"""`kaizen run`: has a runner answer the cases of an improvement and records what it did."""

import os
import re
from argparse import ArgumentTypeError, Namespace

from kaizen.commands.arguments import SYSTEM_ARGUMENTS, count_argument, positive_number
from kaizen.commands.context import Project, diagnose, load_project
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.foundation.errors import EXIT_DONE, EXIT_INCOMPLETE, EXIT_INTERRUPTED, UsageError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import float_or_none
from kaizen.foundation.progress import PROGRESS_MODES
from kaizen.foundation.redact import environment_secrets, redact_arguments
from kaizen.foundation.text import counted, duration, listed, money, quoted, visible
from kaizen.runs.bridge import PERSISTENT, PLAIN, PROCESS, REPLAY, RunRequest, RunSummary, run_stage
from kaizen.runs.budget import RETRY_REASONS, Budget
from kaizen.runs.estimate import Estimate, done_trials, estimate_run
from kaizen.runs.journal import ONLY_ERRORS, OVERWRITE, REFUSE, RESUME, RESUME_OVERWRITE, UNFINISHED
from kaizen.runs.observation import COMPLETED
from kaizen.runs.plan import select_cases
from kaizen.runs.shards import is_in_shard, parse_shard, shard_stage
from kaizen.runs.tally import RunTally

NOTABLE_MS = 1000.0  # below which nobody asks for the slowest case
SPLITS_ON_COMMAND_LINE = ["development", "regression", "challenge", "holdout"]


def retry_reasons(text: str) -> tuple[str, ...]:
    """The comma-separated words of *text*, each timeout, protocol, environment or exit:N. Raises ArgumentTypeError."""
    words = tuple(word.strip() for word in text.split(","))
    for word in words:
        if word not in RETRY_REASONS and not re.fullmatch(r"exit:([1-9]\d?|1\d\d|2[0-4]\d|25[0-5])", word, re.ASCII):
            raise ArgumentTypeError(f"{quoted(word)} is none of timeout, protocol, environment and exit:N (N from 1 to 255)")
    return words


def descriptor_argument(text: str) -> int:
    """*text* as a file descriptor beyond standard output. Raises ArgumentTypeError."""
    if not re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII) or text == "1":
        raise ArgumentTypeError(f"{quoted(text)} is not the number of a file descriptor from 2")
    return int(text)


REPEATED = {"action": "append", "default": []}
# What `run` and `test` have in common.
RUN_ARGUMENTS = [
    Argument("--repetitions", "N", "trials of each case (default: 1, or as the stage has them)", {"type": count_argument, "default": 0}),
    Argument("--jobs", "N", "trials at the same time (default: 1)", {"type": count_argument, "default": 1}),
    Argument("--timeout", "S", "seconds for one trial (default: 300)", {"type": positive_number("seconds"), "default": 300.0}),
    Argument("--retries", "N", "further attempts at a trial that ends as --retry-on says", {"type": count_argument, "default": 0}),
    Argument(
        "--retry-on",
        "LIST",
        f"with commas (default: {','.join(RETRY_REASONS)}); exit:N is any code",
        {"type": retry_reasons, "default": RETRY_REASONS},
    ),
    Argument("--id", "ID", "only this case (repeatable)", REPEATED),
    Argument("--tag", "TAG", "only cases with this tag (repeatable)", REPEATED),
    Argument("--split", "SPLIT", "only cases of this split (repeatable)", {**REPEATED, "choices": SPLITS_ON_COMMAND_LINE}),
    Argument("--cwd", "DIR", "folder in which the command is started (default: the current one)", {"default": ""}),
    Argument("--persistent", "", "one process per job answers many trials, a line each way"),
    Argument("--plain", "", "the input as text on standard input, or as {input} or {input_file} in ARG; standard output is the output"),
    Argument("--replay", "FILE", "recorded answers in place of a command", {"default": ""}),
    Argument("--env", "NAME", "pass on only this variable and PATH, HOME, TMPDIR, LANG, LC_* (repeatable)", REPEATED),
    Argument("--workspace", "DIR", "copy DIR into the work folder before each trial", {"default": ""}),
    Argument("--keep", "GLOB", "measure and keep these files of the work folder after each trial (repeatable)", REPEATED),
    Argument("--keep-unmasked", "", "keep these files with the secrets in them, for programs that run on them"),
    Argument("--max-cost", "USD", "begin no further trial beyond this cost, or if it is unknown", {"type": positive_number("US dollars")}),
    Argument("--max-minutes", "M", "begin no further trial after this time", {"type": positive_number("minutes")}),
    Argument("--fail-fast", "", "begin no further trial after the first without usable evidence"),
    Argument("--events", "FD", "write JSON events to this file descriptor", {"type": descriptor_argument, "default": 0}),
    Argument("--progress", "KIND", "auto, plain or none", {"choices": list(PROGRESS_MODES), "default": "auto"}),
]
SHARD = Argument("--shard", "I/N", "run only part I of N of the cases; auto, auto/N: as the CI system or cluster says", {"default": ""})

STAGE_ARGUMENTS = [
    Argument("--stage", "S", "name of the stage: baseline, candidate, or any other", {"default": ""}),
    *RUN_ARGUMENTS,
    SHARD,
    Argument("--check", "", "try one case, show what goes in and out, say what is wrong; write nothing"),
    Argument("--estimate", "", "run nothing; say what it will take and cost, from earlier evidence"),
    Argument("--resume", "", "run what is missing of a stage that is there"),
    Argument("--overwrite", "", "run everything anew; the old files stay until the last trial has ended"),
    Argument("--only", "WHAT", "errors: run again the trials without usable evidence", {"choices": ["errors"], "default": ""}),
]


@command(
    "run",
    "Runs a command once for each trial of each case, and records what it answers as a stage; or a run of a system of the lab.",
    [
        IMPROVEMENT._replace(options={"nargs": "?"}),
        *STAGE_ARGUMENTS,
        *SYSTEM_ARGUMENTS,
    ],
    "kaizen run refund --stage baseline -- ./agent\nkaizen run refund --stage candidate --repetitions 5 --jobs 4 -- python agent.py\n"
    "kaizen run --system refunds --variant shorter-prompt",
    rest="COMMAND [ARG…]",
)
def command_run(args: Namespace) -> Answer:
    """Runs the stage; exit 4 when trials have no usable evidence, 130 when interrupted."""
    if args.system:
        from kaizen.commands.run_system import run_of_system

        return run_of_system(args, improvement_options(args))
    beyond = [argument.name for argument in SYSTEM_ARGUMENTS if getattr(args, argument.name[2:].replace("-", "_"))]
    if beyond:
        raise UsageError(f"{listed(beyond)} without --system", "they are about a run of a system: kaizen run --system ID --variant NAME")
    if args.improvement is None:
        raise UsageError("there is nothing to run", "name an improvement, or a system with --system ID")
    if args.only and (args.resume or args.overwrite):
        raise UsageError("--only errors goes with neither --resume nor --overwrite", "it adds to the stage that is there")
    beside = [f"--{name}" for name in ("estimate", "resume", "overwrite", "only", "shard") if args.check and getattr(args, name)]
    if beside:
        raise UsageError(f"--check tries one case and writes nothing; {listed(beside)} cannot go with it", "leave out one of them")
    if not args.stage and not args.check:
        raise UsageError("--stage S is missing", "it names what is recorded: baseline, candidate, or any other")
    existing = RESUME_OVERWRITE if args.resume and args.overwrite else RESUME if args.resume else OVERWRITE if args.overwrite else REFUSE
    project = load_project(args.improvement)
    if args.shard:
        args.shard = "{}/{}".format(*parse_shard(args.shard, os.environ))
    if args.check:
        from kaizen.commands.check_runner import checked_runner

        return checked_runner(run_request(args, project, args.stage or "check", REFUSE))
    if args.estimate:
        return estimate_answer(args, project)
    summary = run_stage(run_request(args, project, args.stage, ONLY_ERRORS if args.only else existing))
    return run_answer(args, summary)


def improvement_options(args: Namespace) -> list[str]:
    """What *args* hold that is for improvements only, as it was written."""
    found = [] if args.improvement is None else [quoted(args.improvement)]
    for argument in STAGE_ARGUMENTS:
        value = getattr(args, argument.name[2:].replace("-", "_"))
        if value and value != argument.options.get("default"):
            found.append(argument.name)
    return found + (["-- COMMAND"] if args.rest else [])


def run_request(args: Namespace, project: Project, stage: str, existing: str) -> RunRequest:
    """The request that RUN_ARGUMENTS and the command behind `--` ask for. Raises UsageError unless there is one."""
    given = [f"--{name}" for name in (PERSISTENT, PLAIN, REPLAY) if getattr(args, name)]
    if len(given) > 1:
        raise UsageError(f"{listed(given)} exclude each other", "choose one way to run")
    if args.replay and args.rest:
        raise UsageError("--replay takes the place of a command; both were given", "leave out one of them")
    if not args.replay and not args.rest:
        raise UsageError(
            "there is no command to run", f"write it behind '--': … {args.improvement} --stage {stage} -- COMMAND [ARG…]", "no_command"
        )
    refuse_unfit_options(args)
    return RunRequest(
        improvement=project.improvement,
        stage=stage,
        dataset=project.dataset,
        seed=project.evaluation.seed,
        command=args.rest or [],
        cwd=args.cwd,
        replay=args.replay,
        mode=PERSISTENT if args.persistent else PLAIN if args.plain else PROCESS,
        repetitions=args.repetitions,
        jobs=args.jobs,
        timeout_seconds=args.timeout,
        existing=existing,
        ids=tuple(args.id),
        tags=tuple(args.tag),
        splits=tuple(args.split),
        progress=args.progress,
        retries=args.retries,
        retry_on=args.retry_on,
        environment=tuple(args.env),
        workspace=args.workspace,
        keep=tuple(args.keep),
        keeps_secrets=args.keep_unmasked,
        budget=Budget(args.max_cost, args.max_minutes, args.fail_fast),
        events=args.events,
        shard=parse_shard(args.shard, os.environ) if getattr(args, "shard", "") else None,
    )


def refuse_unfit_options(args: Namespace) -> None:
    """Raises UsageError for options that do not go with the way to run."""
    ways = ((REPLAY, ("retries", "env", "workspace", "keep", "max_cost")), (PERSISTENT, ("workspace", "keep")))
    for way, names in ways:
        unfit = [f"--{name.replace('_', '-')}" for name in names if getattr(args, way) and getattr(args, name)]
        if unfit:
            raise UsageError(f"{listed(unfit)} cannot go with --{way}", "leave it out" if len(unfit) == 1 else "leave them out")
    if args.keep_unmasked and not args.keep:
        raise UsageError("--keep-unmasked without --keep: there is nothing to keep", "name the files with --keep GLOB")
    for name in args.env:
        if not name or "=" in name or "\0" in name:
            raise UsageError(f"--env {quoted(name)} is no name of a variable; values are never given here")


def run_answer(args: Namespace, summary: RunSummary) -> Answer:
    """The answer of `kaizen run` for what came of it."""
    for note in summary.notes:
        diagnose(f"note: {note}")
    completed = summary.counts.get(COMPLETED, 0)
    message = f"{summary.stage}: {completed:,} of {counted(summary.selected, 'trial')} completed"
    failed = [f"{number:,} {status}" for status, number in summary.counts.items() if status != COMPLETED]
    following = after_run(args, summary)
    code, reason = EXIT_DONE, "completed"
    goes_on = ["--overwrite", "--resume"] if summary.is_beside else ["--resume"]
    if summary.is_interrupted:
        code, reason = EXIT_INTERRUPTED, "interrupted"
        message = f"{summary.stage}: interrupted; {counted(sum(summary.counts.values()), 'trial')} of {summary.selected:,} saved"
        following = run_again(args, goes_on)
    elif summary.unusable:
        code, reason = EXIT_INCOMPLETE, "unusable_trials"
        message += f", {summary.unusable:,} without usable evidence ({', '.join(failed)})"
        following = run_again(args, goes_on if summary.is_beside else ["--only", "errors"])
    if summary.stopped:
        code, reason = EXIT_INCOMPLETE, summary.stopped[0]
        message += f"; stopped: {summary.stopped[1]}"
        following = run_again(args, goes_on if summary.is_beside or not summary.tally.errors else ["--only", "errors"])
    if summary.selected < summary.planned:
        message += f"; a selection of {summary.planned:,} planned"
    lines = [f"{message}, {duration(summary.seconds)}"]
    lines += [f"  {line}" for line in [*summary.examples, *tally_lines(summary.tally)]]
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
        "error_classes": summary.tally.classes,
        "slowest": [{"case_id": name, "trial": trial, "duration_ms": round(-ms, 3)} for ms, name, trial in summary.tally.slowest],
        "cost_usd": float_or_none(summary.tally.cost) if summary.tally.priced else None,
        "priced": summary.tally.priced,
        "notes": summary.notes,
        "files": files,
    }
    return Answer(code, reason, message, lines, data, following)


def tally_lines(tally: RunTally) -> list[str]:
    """What the end of a run says of the trials it ran: errors by class, cost with its coverage, the slowest cases."""
    lines = []
    if len(tally.classes) > 1:
        lines.append(f"errors by class: {listed([f'{number:,} {name}' for name, number in sorted(tally.classes.items())])}")
    if tally.priced:
        lines.append(f"cost {money(tally.cost)} USD, {tally.priced:,} of {counted(tally.ran, 'trial')} priced")
    slow = [f"{quoted(name, 40)} {duration(-ms / 1000)}" for ms, name, _ in tally.slowest if -ms >= NOTABLE_MS]
    if slow and tally.ran > len(slow):
        lines.append(f"slowest: {listed(slow)}")
    return lines


def estimate_answer(args: Namespace, project: Project) -> Answer:
    """What the run that *args* describe will take and cost, as far as earlier evidence tells."""
    cases = select_cases(project.dataset, args.id, args.tag, args.split)
    shard = parse_shard(args.shard, os.environ) if args.shard else None
    cases = [case for case in cases if shard is None or is_in_shard(case.id, shard)]
    stage, suffix = shard_stage(args.stage, shard) if shard else args.stage, UNFINISHED if args.overwrite else ""
    files = [project.improvement.stage_file(stage, kind) + suffix for kind in (".jsonl", ".meta.json")]
    goes_on = bool(args.resume or args.only) and os.path.exists(files[0])
    done, known = done_trials(files[0], files[1], {case.id: case for case in cases}, bool(args.only)) if goes_on else (set(), 1)
    repetitions = args.repetitions or known
    trials = [case for trial in range(1, repetitions + 1) for case in cases if (case.id, trial) not in done]
    kept = len(cases) * repetitions - len(trials)
    found = estimate_run(project.improvement, args.stage, trials)
    lines = [f"{args.stage}: {counted(found.trials, 'trial')} would be run" + (f", {kept:,} are there" if kept else "")]
    lines += [f"  {line}" for line in estimate_lines(found, args.jobs)] if trials else []
    data = {**found._asdict(), "stage": args.stage, "jobs": args.jobs, "done": kept}
    return Answer(EXIT_DONE, "estimated", ", ".join(line.strip() for line in lines), lines, data)


def estimate_lines(found: Estimate, jobs: int) -> list[str]:
    """Time and cost of the estimate, each with the share it rests on."""
    if found.seconds is None and found.cost_usd is None:
        return ["time and cost are not known: no earlier trial of these cases was measured"]
    time, cost = "time not known", f"cost {'too large to add up' if found.priced else 'not known: none of them is priced'}"
    if found.seconds is not None:
        seconds = duration(found.seconds / min(jobs, found.timed))
        time = f"time about {seconds} with --jobs {jobs}, {found.timed:,} of {found.trials:,} measured"
    if found.cost_usd is not None:
        cost = f"cost about {money(found.cost_usd)} USD, {found.priced:,} of {found.trials:,} priced"
    return [time, cost, f"as it went in {listed([quoted(stage) for stage in found.stages])}; what is not measured is not in the sums"]


def after_run(args: Namespace, summary: RunSummary) -> str:
    """What the main flow does after this stage: the candidate after the baseline, then the review; all shards are merged first."""
    from shlex import quote

    improvement = quote(args.improvement)
    if getattr(args, "shard", ""):
        return f"kaizen merge {improvement} --stage {summary.stage}, when all {args.shard.partition('/')[2]} shards are there"
    if summary.stage == "baseline" and not os.path.exists(os.path.join(os.path.dirname(summary.path), "candidate.jsonl")):
        return f"change the agent, then: kaizen run {improvement} --stage candidate -- COMMAND"
    compares = summary.stage in ("baseline", "candidate")
    return f"kaizen review {improvement}" if compares else f"kaizen evaluate {improvement} --stage {summary.stage}"


def run_again(args: Namespace, options: list[str]) -> str:
    """The command line that goes on with the run of *args*, with *options* for the stage that is there."""
    from shlex import quote

    words = ["kaizen", "run", args.improvement, "--stage", args.stage]
    for argument in [*RUN_ARGUMENTS, SHARD]:
        value = getattr(args, argument.name[2:].replace("-", "_"), None)
        if not value or value == argument.options.get("default") or argument.name == "--events":
            continue
        if value is True:
            words.append(argument.name)
        elif isinstance(value, list):
            words += [word for each in value for word in (argument.name, each)]
        else:
            shown = f"{value:g}" if isinstance(value, float) else ",".join(value) if isinstance(value, tuple) else str(value)
            words += [argument.name, shown]
    words += options
    if args.rest:
        words += ["--", *redact_arguments(args.rest, environment_secrets(os.environ))]
    return visible(" ".join(map(quote, words)), None)

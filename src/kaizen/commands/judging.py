"""What commands that evaluate have in common: leave for judges and programs."""

import os
from argparse import Namespace

from kaizen.commands.arguments import count_argument, positive_number
from kaizen.commands.context import Project
from kaizen.commands.table import Argument
from kaizen.evaluators.judge import JUDGE
from kaizen.evaluators.outside import Leave, judge_counts, judge_name, mixed_judges
from kaizen.foundation.errors import UsageError
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, dollars, listed, visible
from kaizen.runs.judges import JudgeCommand

SHOWN_JUDGE_FAILURES = 3
ALLOW_PROGRAMS = Argument("--allow-programs", "", "let evaluators of type command and program start programs")
REJUDGE = Argument("--rejudge", "", "ask the judge anew, also where an answer is kept")
LEAVE_ARGUMENTS = [
    ALLOW_PROGRAMS,
    Argument("--jobs", "N", "judges and programs at the same time (default: 1)", {"type": count_argument, "default": 1}),
    Argument("--persistent", "", "one judge process per job answers many questions, a line each way"),
    Argument("--timeout", "S", "seconds for one answer of a judge (default: 120)", {"type": positive_number("seconds"), "default": 120.0}),
    Argument("--retries", "N", "further attempts where a judge gives no usable answer", {"type": count_argument, "default": 0}),
    REJUDGE,
]


def leave_of(args: Namespace, project: Project) -> Leave:
    """What the command line lets evaluating start; the judge is what stands behind `--`. Raises UsageError."""
    if args.allow_programs and os.name == "nt":
        raise UsageError("--allow-programs starts programs in a way that needs Linux or macOS", "use it inside WSL")
    types = project.suite.types_used
    command: list[str] | None = args.rest
    if not command:
        given = [f"--{name}" for name in ("persistent", "rejudge") if getattr(args, name)]
        if given or command is not None:
            what = f" with {listed(given)}" if given else ""
            raise UsageError(f"there is no judge to ask{what}", "write its command behind '--': -- JUDGE [ARG…]")
        return Leave(None, False, args.allow_programs, args.jobs)
    if JUDGE not in types:
        raise UsageError("no evaluator is of type judge, so there is nothing to ask one", "see: kaizen evaluators judge")
    from kaizen.runs.bridge import check_runner

    cwd = os.getcwd()
    check_runner(command, cwd)
    return Leave(JudgeCommand(command, cwd, args.persistent, args.timeout, args.retries), args.rejudge, args.allow_programs, args.jobs)


def judging_lines(stage: str, meta: JsonObject) -> list[str]:
    """What judges have said of *stage*, what it cost apart from the agent, and what they did not say."""
    judging = meta.get("judging")
    if not judging:
        return []
    lines = []
    for name, rubric in shown_judges(meta).items():
        cost = f", {dollars(rubric['cost_usd'])} for {rubric['priced']:,} of them" if rubric["priced"] else ""
        tokens = ", ".join(f"{number:,} {kind.replace('_', ' ')}" for kind, number in rubric["usage"].items())
        one = len(rubric["judges"]) == 1
        who = f" by {judge_name(rubric['judges'][0]) if one else judge_counts(rubric['judges'])}" if rubric["judges"] else ""
        missing = f"; {rubric['unanswered']:,} not answered" if rubric["unanswered"] else ""
        answers = counted(rubric["answers"], "answer")
        lines.append(f"  judged {visible(name, 60)}: {answers}{who}{cost}{', ' if tokens else ''}{tokens}{missing}")
    lines.append(f"  {counted(judging['asked'], 'question')} asked now")
    failures = sorted(judging["failures"].items(), key=lambda each: (-each[1], each[0]))
    lines += [f"  {number:,} × {visible(reason, 300)}" for reason, number in failures[:SHOWN_JUDGE_FAILURES]]
    return [*lines, *(f"  warning: {sentence}" for sentence in mixed_judges(stage, shown_judges(meta)))]


def shown_judges(meta: JsonObject) -> JsonObject:
    """What `judges` of *meta* says of rubrics that are not only in holdout cases."""
    return {name: rubric for name, rubric in meta["judges"].items() if name in meta["judging"]["shown"]}


def judging_data(meta: JsonObject) -> JsonObject:
    """What --json says of judges; {} without any."""
    return {"judges": shown_judges(meta), "questions_asked": meta["judging"]["asked"]} if "judging" in meta else {}


def unanswered_questions(meta: JsonObject) -> int:
    """How many questions about a stage no judge has answered."""
    return sum(int(rubric["unanswered"]) for rubric in meta.get("judges", {}).values())

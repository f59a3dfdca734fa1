"""`kaizen noise`: the unchanged agent, or the leader of a campaign, against itself."""

import os
from argparse import Namespace

from kaizen.cases.improvement import check_stage_name
from kaizen.commands.arguments import count_argument
from kaizen.commands.context import Project, load_project, require_stage
from kaizen.commands.judging import ALLOW_PROGRAMS, leave_of, unanswered_questions
from kaizen.commands.run import RUN_ARGUMENTS, run_answer, run_request
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.evaluators.judge import JUDGE
from kaizen.evaluators.judgements import JUDGEMENTS
from kaizen.evaluators.outside import NO_LEAVE, Leave
from kaizen.evaluators.rejudging import Rejudging
from kaizen.evaluators.stage_results import RESULTS, evaluate_stage
from kaizen.evaluators.standing import not_gating_notes
from kaizen.foundation.errors import EXIT_INCOMPLETE, RefusedError, UsageError
from kaizen.foundation.jsonio import JsonObject, read_json_lines
from kaizen.foundation.text import counted, listed, visible
from kaizen.policy.noise import PassResults, noise_document
from kaizen.policy.reliability_words import limits_text
from kaizen.runs.bridge import run_stage
from kaizen.runs.journal import OVERWRITE

SHOWN_UNSTABLE = 10
NOISE_STAGE = "noise"  # replaced by each call


@command(
    "noise",
    "Runs the unchanged agent several times and says how often its verdicts flip, and whose noise that is.",
    [
        IMPROVEMENT._replace(options={"nargs": "?"}),
        Argument("--system", "ID", "passes of the leader of the campaign of this system, in place of IMPROVEMENT", {"default": ""}),
        Argument("--campaign", "C", "with --system: which campaign (the one that is open)", {"default": ""}),
        Argument("--accept", "TEXT", "with --system: who accepts a floor that is too high, and why", {"default": ""}),
        Argument("--stage", "S", "stage that holds the passes (noise)", {"default": NOISE_STAGE}),
        Argument("--passes", "N", "how often each case runs, or the judge is asked (default: 3)", {"type": count_argument, "default": 3}),
        Argument("--rejudge", "", "run no agent; the command is the judge, asked --passes times about the evidence of the stage"),
        ALLOW_PROGRAMS,
        *[argument for argument in RUN_ARGUMENTS if argument.name != "--repetitions"],
    ],
    "kaizen noise refund --passes 3 -- ./agent\nkaizen noise --system refunds\nkaizen noise refund --stage baseline\n"
    "kaizen noise refund --rejudge -- python judge.py",
    group="surer",
    rest="COMMAND [ARG…]",
)
def command_noise(args: Namespace) -> Answer:
    """Runs, evaluates and counts flips; exits as `run` when trials lack evidence, and 4 when a judge has not answered."""
    if args.system:
        from kaizen.commands.system_noise import noise_of_system

        return noise_of_system(args)
    if args.improvement is None:
        raise UsageError("there is nothing to run", "name an improvement, or a system with --system ID")
    project = load_project(args.improvement)
    improvement, code = project.improvement, 0
    check_stage_name(args.stage)
    args.repetitions = args.passes
    leave = Leave(allow_programs=args.allow_programs, jobs=args.jobs)
    if args.rejudge:
        leave = judge_leave(args, project)
    elif args.rest or args.replay:
        refuse_evidence(project, args.stage)
        summary = run_stage(run_request(args, project, args.stage, OVERWRITE))
        ran = run_answer(args, summary)
        if summary.is_interrupted or summary.is_beside:
            return ran
        code = ran.code
    require_stage(improvement, args.stage)
    meta = evaluate_stage(improvement, args.stage, project.dataset, project.suite, leave=leave)
    rejudging = asked_again(args, project, leave)
    results = PassResults()
    for line in read_json_lines(improvement.stage_file(args.stage, RESULTS)):
        if line.value["case_id"] in project.dataset.cases:
            results.add(line.value)
    hidden = project.dataset.holdout
    document = noise_document(results, list(project.dataset.cases), meta["repetitions"], hidden, rejudging.verdicts)
    lines = [*noise_lines(document), *[f"  note: {note}" for note in not_gating_notes(meta)]]
    again = f"that is no noise of one judge (further rounds are the lines with \"again\" in {improvement.shown(args.stage + JUDGEMENTS)})"
    lines += [f"  warning: {sentence}; {again}" for sentence in rejudging.mixed]
    reason = "measured" if document["flip_rate"] is not None else "not_measured"
    missing = unanswered_questions(meta) + (rejudging.unanswered if args.rejudge else 0)
    if missing:
        code, reason = EXIT_INCOMPLETE, "judge_not_answered"
        lines.append(f"  {counted(missing, 'question')} to the judge not answered")
    asked = meta.get("judging", {}).get("asked", 0) + rejudging.asked
    lines += [f"  {counted(asked, 'question')} to the judge asked now"] if args.rejudge else []
    following = ""
    if JUDGE in project.suite.types_used and (missing or not rejudging.verdicts):
        command = f"kaizen noise {improvement.argument()} --stage {args.stage} --rejudge -- JUDGE [ARG…]"
        following = f"{command}, to tell the judge's noise from the agent's"
    return Answer(code, reason, lines[0], lines, {"stage": args.stage, **document, "mixed_judges": rejudging.mixed}, following)


def judge_leave(args: Namespace, project: Project) -> Leave:
    """Leave to ask the judge that is the command. Raises UsageError for options that belong to an agent."""
    unfit = [f"--{name}" for name in ("replay", "plain", "workspace", "keep", "env", "id", "tag", "split") if getattr(args, name)]
    if unfit:
        raise UsageError(f"{listed(unfit)} cannot go with --rejudge, which runs no agent", "leave it out")
    leave = leave_of(args, project)
    return leave._replace(rejudge=False)  # what was asked already is a round as well


def asked_again(args: Namespace, project: Project, leave: Leave) -> Rejudging:
    """What the judge said in all rounds: those that are kept, and with --rejudge as many as there are passes."""
    found = Rejudging(project.improvement, args.stage, project.dataset, project.suite)
    if JUDGE not in project.suite.types_used:
        return found
    kept = found.add_round(NO_LEAVE)
    found.unanswered = 0  # which evaluating has counted
    rounds = max(kept, args.passes) if args.rejudge else kept
    for again in range(2, rounds + 1):
        found.add_round(leave._replace(again=again))
    found.settle()
    if rounds == 1:
        found.verdicts.clear()
    return found


def refuse_evidence(project: Project, stage: str) -> None:
    """Raises RefusedError for a *stage* that is there, unless it is the one that only this command writes."""
    if stage != NOISE_STAGE and os.path.lexists(project.improvement.stage_file(stage)):
        hint = "leave out the command to count the flips in it, or --stage to run beside it"
        raise RefusedError(f"{project.improvement.shown(stage + '.jsonl')}: is there already; nothing was run", hint, "existing_stage")


def noise_lines(document: JsonObject) -> list[str]:
    """The document for a terminal."""
    measured = f"{document['cases_measured']:,} of {counted(document['cases'], 'case')}"
    if document["flip_rate"] is None:
        return ["flip rate not measured: no case has verdicts of two passes", *evaluator_noise_lines(document)]
    limits = f" ({limits_text(document['interval'], is_rate=True)})" if document["interval"] else ""
    lines = [f"two passes of the unchanged agent disagree on {100 * document['flip_rate']:.1f} % of the cases{limits}, over {measured}"]
    expected, kinds = document["expected_changes"], document["stability"]
    lines.append(f"  one run against another would show about {expected:.1f} regressions and as many improvements, though nothing changed")
    stable = f"{kinds['stable_pass']:,} always pass, {kinds['stable_fail']:,} always fail"
    lines.append(f"  {kinds['flaky']:,} flaky, {stable}, {kinds['unknown']:,} unknown")
    for entry in document["by_pass"]:
        counts = f"{entry['passed']:,} passed, {entry['failed']:,} failed, {entry['no_verdict']:,} without a verdict"
        lines.append(f"  pass {entry['pass']}: {counts}")
    names = [f"{visible(entry['id'])} {entry['passed']}/{entry['passed'] + entry['failed']}" for entry in document["unstable"]]
    names += [counted(document["holdout_cases"], "holdout case")] if document["holdout_cases"] else []
    lines.append(f"  flip: {listed(names, SHOWN_UNSTABLE) or 'none'}")
    return [*lines, *evaluator_noise_lines(document)]


def evaluator_noise_lines(document: JsonObject) -> list[str]:
    """A line for each evaluator with whose noise it is; where the judge was asked again, another with its part."""
    lines = []
    for entry in document["by_evaluator"]:
        rate = rate_words(entry["flip_rate"])
        lines.append(f"  by {visible(entry['id'])} ({entry['type']}): {rate} of {counted(entry['cases'], 'case')}, owner: {entry['owner']}")
        if "judge" in entry:
            limits = f" ({limits_text(entry['judge']['interval'], is_rate=True)})" if entry["judge"]["interval"] else ""
            own = f"{rate_words(entry['judge']['flip_rate'])}{limits} of {counted(entry['judge']['cases'], 'case')}"
            lines.append(f"    the judge about the same evidence {own}; the agent beyond that {rate_words(entry['agent_flip_rate'])}")
    return lines


def rate_words(rate: float | None) -> str:
    """'12.5 %', 'not measured'."""
    return "not measured" if rate is None else f"{100 * rate:.1f} %"

"""`kaizen judge`: the verdict on one case, or on every trial of a stage."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator

from kaizen.cases.judge_block import INSUFFICIENT, verdict_names
from kaizen.commands.context import Project, load_project
from kaizen.commands.openings import record_opening
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.commands.verdicts import checked_results, counts_text, results_of
from kaizen.evaluators.outcomes import ERROR, FAIL, NOT_APPLICABLE, PASS
from kaizen.foundation.errors import InputError, RefusedError, UsageError
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, did_you_mean, listed, quoted, visible
from kaizen.policy.verdict import REASON_WORDS, Verdicts

STATUS_WORDS = {PASS: "pass", FAIL: "fail", ERROR: "not measured", NOT_APPLICABLE: "does not apply"}
SHOWN_TRIALS = 10


@command(
    "judge",
    "Says the verdict on one case, or on every trial of a stage, by mapping its results through the judge block.",
    [
        IMPROVEMENT,
        Argument("--case-id", "ID", "the case to judge"),
        Argument("--all", "", "every trial of the stage in place of one case"),
        Argument("--stage", "S", "stage to judge (candidate)", {"default": "candidate"}),
        Argument("--trial", "N", "trial to judge (one case: 1, with a line for trials that come out otherwise)", {"type": int}),
        Argument("--open-holdout", "", "show holdout cases; the opening is recorded and shown from then on"),
    ],
    "kaizen judge refund --case-id refund-001\nkaizen judge refund --all --stage candidate --json",
    group="further questions",
)
def command_judge(args: Namespace) -> Answer:
    """Runs no evaluator; exits 0 whatever the verdict."""
    if args.all == (args.case_id is not None):
        raise UsageError("name one case with --case-id, or ask for --all", "see: kaizen judge --help")
    if args.trial is not None and args.trial < 1:
        raise UsageError("--trial counts from 1")
    project = load_project(args.improvement)
    if project.evaluation.judge is None:
        hint = "write what its verdicts are made of: docs/verdicts.md"
        raise InputError(f"{project.evaluation.path}: has no 'judge' block, so there is no verdict", hint, "no_judge_block")
    if args.case_id is not None:
        check_may_be_judged(project, args.case_id, args.open_holdout)
    _, problems = checked_results(project, args.stage)
    if args.open_holdout:
        record_opening(project.improvement, "judge")
    notes = [f"{text} ({code})" for code, text in problems]
    return all_answer(project, args, notes) if args.all else case_answer(project, args, notes)


def check_may_be_judged(project: Project, case_id: str, is_open: bool) -> None:
    """Raises InputError for a case that is not there, RefusedError for one of the holdout that was not opened."""
    dataset = project.dataset
    if case_id not in dataset.cases:
        known = [name for name in dataset.cases if name not in dataset.holdout]
        hint = did_you_mean(case_id, known) if len(known) <= 2000 else ""
        raise InputError(f"there is no case {quoted(case_id)}", hint, "unknown_case")
    if case_id in dataset.holdout and not is_open:
        raise RefusedError("this case belongs to the holdout", "--open-holdout shows it; the opening is recorded", "holdout")


def case_answer(project: Project, args: Namespace, notes: list[str]) -> Answer:
    """The verdict on one trial of one case."""
    verdicts = Verdicts(project.evaluation.judge or {})
    found = {result["trial"]: verdicts.verdict(result) for result in results_of(project, args.stage) if result["case_id"] == args.case_id}
    trial = args.trial or min(found, default=1)
    if trial not in found:
        known = f"; there is {listed([f'trial {each}' for each in sorted(found)])}" if found else ""
        hint = f"run: kaizen run {project.improvement.argument()} --stage {args.stage} --resume -- COMMAND"
        raise InputError(f"stage '{args.stage}' has no result of trial {trial} of this case{known}", hint, "missing_trial")
    verdict = found[trial]
    others = [each for number, each in sorted(found.items()) if each["verdict"] != verdict["verdict"]] if args.trial is None else []
    other_trials = [{"trial": each["trial"], "verdict": each["verdict"]} for each in others]
    if others:
        said = listed([f"trial {each['trial']} ({each['verdict']})" for each in others], SHOWN_TRIALS)
        notes.append(f"{len(others)} of {counted(len(found), 'trial')} {'comes' if len(others) == 1 else 'come'} out otherwise: {said}")
    message = f"{verdict['verdict']}: {visible(args.case_id)} ({args.stage}, trial {trial})"
    data = {**verdict, "stage": args.stage, "trials": len(found), "other_trials": other_trials, "notes": notes}
    return Answer(0, verdict["verdict"], message, [*verdict_lines(verdict, args.stage), *[f"note: {note}" for note in notes]], data)


def verdict_lines(verdict: JsonObject, stage: str) -> list[str]:
    """A verdict for a terminal, in the order of the document."""
    judge = f"{visible(verdict['judge']['name'])} {visible(verdict['judge']['version'])}".rstrip()
    lines = [
        f"case        {visible(verdict['case_id'])} ({stage}, trial {verdict['trial']})",
        f"judge       {judge}",
        f"verdict     {verdict['verdict']}, {REASON_WORDS[verdict['because']]}",
        f"score       {share_text(verdict['score'])}",
        f"confidence  {share_text(verdict['confidence'])} of the weight could be measured",
        "criteria",
    ]
    width = max((len(visible(item["id"], 60)) for item in verdict["criteria"]), default=0)
    for item in verdict["criteria"]:
        lines.append(f"  {visible(item['id'], 60):<{width}}  weight {item['weight']:g}  {STATUS_WORDS[item['status']]}")
        told = [entry for entry in item["evaluators"] if entry["status"] in (FAIL, ERROR)]
        lines += [f"    {visible(entry['id'], 60)}: {visible(entry['reason'], 300)}" for entry in told]
    for title, key in (("violated", "critical_violations"), ("unchecked", "unchecked_rules")):
        for rule in verdict[key]:
            lines.append(f"{title:<11} {visible(rule['id'], 60)}: {visible(rule['message'], 300)} ({visible(rule['reason'], 300)})")
    return [*lines, f"action      {visible(verdict['recommended_action'] or 'none')}"]


def share_text(value: float | None) -> str:
    """'0.75', or 'not measured'."""
    return "not measured" if value is None else f"{value:.4g}"


def all_answer(project: Project, args: Namespace, notes: list[str]) -> Answer:
    """Verdicts on all trials of the stage: counted in a first pass, printed in a second, none kept."""
    hidden = frozenset() if args.open_holdout else project.dataset.holdout
    block = project.evaluation.judge or {}
    counts: Counter[str] = Counter()
    secret: Counter[str] = Counter()
    for verdict in stage_verdicts(project, args):
        counts[verdict["verdict"]] += 1
        secret[verdict["verdict"]] += verdict["case_id"] in hidden
    order = [*verdict_names(block), INSUFFICIENT]
    total = sum(counts.values())
    message = f"{args.stage}: {counted(total, 'trial')} judged by {visible(block['name'])}: {counts_text(counts, order)}"
    if sum(secret.values()):
        notes.append(f"{counted(sum(secret.values()), 'trial')} of holdout cases: {counts_text(secret, order)}; counted, not shown")
    data: JsonObject = {
        "judge": {"name": block["name"], "version": block["version"]},
        "stage": args.stage,
        "counts": {name: counts[name] for name in order},
        "holdout": {name: secret[name] for name in order},
        "notes": notes,
        "verdicts": [],
    }
    shown = (verdict for verdict in stage_verdicts(project, args) if verdict["case_id"] not in hidden)
    if args.json:
        return Answer(0, "judged", message, [], data, rows=shown)
    lines = [row_line(verdict) for verdict in shown]
    return Answer(0, "judged", message, [message, *lines, *[f"note: {note}" for note in notes]], data)


def stage_verdicts(project: Project, args: Namespace) -> Iterator[JsonObject]:
    """The verdict on each trial that was asked for, in the order of the results."""
    verdicts = Verdicts(project.evaluation.judge or {})
    for result in results_of(project, args.stage):
        if args.trial in (None, result["trial"]):
            yield verdicts.verdict(result)


def row_line(verdict: JsonObject) -> str:
    """One verdict in one line."""
    shown = f"{visible(verdict['case_id'], 60)} trial {verdict['trial']}"
    action = f", action {visible(verdict['recommended_action'])}" if verdict["recommended_action"] else ""
    scores = f"score {share_text(verdict['score'])}, confidence {share_text(verdict['confidence'])}"
    return f"  {shown}: {verdict['verdict']}, {REASON_WORDS[verdict['because']]} ({scores}{action})"

"""`kaizen test`: the daily call: run, evaluate, review and gate in one process."""

import os
from argparse import Namespace

from kaizen.cases.evaluation_file import exact_fraction
from kaizen.commands.context import Assessment, Project, assess, evaluating_command, load_project
from kaizen.commands.gate import GATE_EXITS, JUNIT, SUMMARY, write_gate_files
from kaizen.commands.judging import ALLOW_PROGRAMS
from kaizen.commands.reporting import (
    BASELINE,
    headline,
    rate_text,
    recommendation_lines,
    shown_reasons,
    stage_names,
    write_review,
    write_single_review,
)
from kaizen.commands.run import RUN_ARGUMENTS, run_answer, run_request
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.evaluators.judge import JUDGE
from kaizen.evaluators.outside import Leave
from kaizen.evaluators.stage_results import RESULTS, evaluate_stage, stage_state
from kaizen.evaluators.standing import not_gating_notes
from kaizen.foundation.errors import EXIT_DONE, EXIT_NO, UsageError
from kaizen.foundation.jsonio import JsonObject, read_json_lines
from kaizen.foundation.text import counted, percent, visible
from kaizen.policy.acceptance import exact_percent
from kaizen.policy.comparison import tally_stage
from kaizen.policy.derived import derived_lines
from kaizen.policy.recommendation import single_stage_document
from kaizen.runs.bridge import run_stage
from kaizen.runs.journal import OVERWRITE
from kaizen.runs.plan import select_cases

SHOWN_FAILURES = 10


@command(
    "test",
    "Runs the candidate, evaluates, reviews and gates in one go: the daily call.",
    [
        IMPROVEMENT,
        Argument("--stage", "S", "stage to run (candidate); what it held before is replaced", {"default": "candidate"}),
        BASELINE,
        *RUN_ARGUMENTS,
        ALLOW_PROGRAMS,
        JUNIT,
        SUMMARY,
    ],
    "kaizen test refund -- ./agent\nkaizen test refund --repetitions 5 --jobs 4 --junit report.xml -- python agent.py",
    rest="COMMAND [ARG…]",
)
def command_test(args: Namespace) -> Answer:
    """Exit as gate; without a baseline 0 or 1 by the stage's own pass rate."""
    project = load_project(args.improvement)
    improvement = project.improvement
    has_baseline = os.path.exists(improvement.stage_file(args.baseline))
    if args.stage == args.baseline:
        raise UsageError(f"--stage {args.stage} is the baseline itself", "test runs what is compared with it: leave --stage out")
    if not has_baseline and (args.junit or args.summary):
        raise UsageError(
            "--junit and --summary need a baseline to compare with",
            f"run: kaizen run {improvement.argument()} --stage {args.baseline} -- COMMAND",
        )
    summary = run_stage(run_request(args, project, args.stage, OVERWRITE))
    ran = run_answer(args, summary)
    if summary.is_interrupted or summary.is_beside:
        return ran
    leave = Leave(allow_programs=args.allow_programs, jobs=args.jobs)
    evaluate_stage(improvement, args.stage, project.dataset, project.suite, leave=leave)
    failures = failed_lines(project, args.stage)
    return compared(args, project, ran, failures) if has_baseline else alone(args, project, ran, failures)


def compared(args: Namespace, project: Project, ran: Answer, failures: list[str]) -> Answer:
    """The answer when there is a baseline: that of gate, with the failures and the page."""
    assessment = assess(project, args.baseline, args.stage)
    paths = write_review(project, assessment)
    write_gate_files(project, assessment, args.junit, args.summary)
    comparison = assessment.comparison
    lines = [*recommendation_lines(comparison, project.dataset.holdout), *failures, f"page: {paths['html']}"]
    data: JsonObject = {key: comparison[key] for key in ("recommendation", "counts", "rates", "delta", "metrics", "evidence", "notes")}
    data["reasons"] = shown_reasons(comparison, project.dataset.holdout)
    code = GATE_EXITS[comparison["recommendation"]]
    following = evaluating_command(project, args.stage) if JUDGE in project.suite.types_used else ""
    return Answer(code, comparison["recommendation"], headline(comparison), lines, {**data, "run": ran.data, "files": paths}, following)


def alone(args: Namespace, project: Project, ran: Answer, failures: list[str]) -> Answer:
    """The answer without a baseline: the stage's pass rate against `minimum_pass_rate`, every trial of which must be measured."""
    improvement = project.improvement
    asked = [case.id for case in select_cases(project.dataset, args.id, args.tag, args.split)]
    results, metrics_of = improvement.stage_file(args.stage, RESULTS), project.derived.metrics_of()
    tally = tally_stage(args.stage, results, max(args.repetitions, 1), set(asked), metrics_of)
    state = stage_state(improvement, args.stage, project.dataset, project.suite)
    document = single_stage_document(asked, tally, state.meta, project.derived)
    rates = document["rates"]["candidate"]
    page = write_single_review(project, Assessment(document, {"candidate": state}, []))
    wanted = project.evaluation.acceptance["minimum_pass_rate"]
    limit = exact_fraction(1 if wanted is None else wanted)
    rate = rates["rate"]
    # Trials without evidence must not lift the rate: each counts against it here.
    is_met = rate is not None and rates["passed"] >= limit * rates["planned"]
    needed = exact_percent(limit, limit)[1]
    shown = "not measured" if rate is None else percent(rate["numerator"], rate["denominator"])
    verdict = (
        f"{'met' if is_met else 'missed'}: {rates['passed']:,} of {counted(rates['planned'], 'planned trial')} passed (at least {needed})"
    )
    notes = [f"  note: {note}" for note in not_gating_notes(state.meta)]
    lines = [verdict, f"  {args.stage}  {rate_text(rates)}"]
    lines += [f"  {line}" for line in derived_lines(document["metrics"], stage_names(document))]
    lines += [*failures, "  there is no baseline, so nothing was compared", *notes, f"page: {page}"]
    following = f"kaizen run {improvement.argument()} --stage {args.baseline} -- COMMAND, to compare with the agent as it was"
    if JUDGE in project.suite.types_used:
        following = evaluating_command(project, args.stage)
    data: JsonObject = {"pass_rate": rate, "shown_pass_rate": shown, "rates": rates, "metrics": document["metrics"]}
    data |= {"run": ran.data, "files": {"html": page}}
    return Answer(EXIT_DONE if is_met else EXIT_NO, "passed" if is_met else "failed", verdict, lines, data, following)


def failed_lines(project: Project, stage: str) -> list[str]:
    """The first ten trials that failed or errored, each with the reason that decided; holdout cases are only counted."""
    lines: list[str] = []
    failed = hidden = 0
    for line in read_json_lines(project.improvement.stage_file(stage, RESULTS)):
        result = line.value
        if result["outcome"] == "pass" or result["case_id"] not in project.dataset.cases:
            continue
        failed += 1
        if result["case_id"] in project.dataset.holdout:
            hidden += 1
        elif len(lines) < SHOWN_FAILURES:
            lines.append(f"  {failed_line(result)}")
    more = failed - hidden - len(lines)
    lines += [f"  and {more:,} more"] if more > 0 else []
    return lines + ([f"  and {counted(hidden, 'trial')} of holdout cases"] if hidden else [])


def failed_line(result: JsonObject) -> str:
    """'fail  refund-1  asked_first: no consent before step 3'."""
    deciding = [entry for entry in result["evaluations"] if entry["status"] == result["outcome"] and entry["severity"] in ("hard", "gate")]
    first = deciding[0] if deciding else {"id": "outcome", "reason": "nothing was checked"}
    trial = f" (trial {result['trial']})" if result["trial"] > 1 else ""
    return f"{result['outcome']:<5} {visible(result['case_id'], 60)}{trial}  {visible(first['id'], 40)}: {visible(first['reason'], 160)}"

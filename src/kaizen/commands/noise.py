"""`kaizen noise`: the unchanged agent against itself."""

import os
from argparse import Namespace

from kaizen.cases.improvement import check_stage_name
from kaizen.commands.context import Project, load_project, require_stage
from kaizen.commands.run import RUN_ARGUMENTS, count_argument, run_answer, run_request
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.evaluators.stage_results import RESULTS, evaluate_stage
from kaizen.evaluators.standing import not_gating_notes
from kaizen.foundation.errors import RefusedError
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
    "Runs the unchanged agent several times and says how often its verdicts flip; without a command, of a stage that is there.",
    [
        IMPROVEMENT,
        Argument("--stage", "S", "stage that holds the passes (noise)", {"default": NOISE_STAGE}),
        Argument("--passes", "N", "how often each case runs (default: 3)", {"type": count_argument, "default": 3}),
        *[argument for argument in RUN_ARGUMENTS if argument.name != "--repetitions"],
    ],
    "kaizen noise refund --passes 3 -- ./agent\nkaizen noise refund --stage baseline",
    group="surer",
    rest="COMMAND [ARG…]",
)
def command_noise(args: Namespace) -> Answer:
    """Runs, evaluates and counts flips; exits as `run` when trials lack evidence."""
    project = load_project(args.improvement)
    improvement, code = project.improvement, 0
    check_stage_name(args.stage)
    args.repetitions = args.passes
    if args.rest or args.replay:
        refuse_evidence(project, args.stage)
        summary = run_stage(run_request(args, project, args.stage, OVERWRITE))
        ran = run_answer(args, summary)
        if summary.is_interrupted or summary.is_beside:
            return ran
        code = ran.code
    require_stage(improvement, args.stage)
    meta = evaluate_stage(improvement, args.stage, project.dataset, project.suite)
    results = PassResults()
    for line in read_json_lines(improvement.stage_file(args.stage, RESULTS)):
        if line.value["case_id"] in project.dataset.cases:
            results.add(line.value)
    document = noise_document(results, list(project.dataset.cases), meta["repetitions"], project.dataset.holdout)
    lines = [*noise_lines(document), *[f"  note: {note}" for note in not_gating_notes(meta)]]
    reason = "measured" if document["flip_rate"] is not None else "not_measured"
    return Answer(code, reason, lines[0], lines, {"stage": args.stage, **document})


def refuse_evidence(project: Project, stage: str) -> None:
    """Raises RefusedError for a *stage* that is there, unless it is the one that only this command writes."""
    if stage != NOISE_STAGE and os.path.lexists(project.improvement.stage_file(stage)):
        hint = "leave out the command to count the flips in it, or --stage to run beside it"
        raise RefusedError(f"{project.improvement.shown(stage + '.jsonl')}: is there already; nothing was run", hint, "existing_stage")


def noise_lines(document: JsonObject) -> list[str]:
    """The document for a terminal."""
    measured = f"{document['cases_measured']:,} of {counted(document['cases'], 'case')}"
    if document["flip_rate"] is None:
        return ["flip rate not measured: no case has verdicts of two passes"]
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
    for entry in document["by_evaluator"]:
        rate = "not measured" if entry["flip_rate"] is None else f"{100 * entry['flip_rate']:.1f} %"
        lines.append(f"  by {visible(entry['id'])} ({entry['type']}): {rate} of {counted(entry['cases'], 'case')}, owner: {entry['owner']}")
    return lines

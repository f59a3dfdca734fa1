"""`kaizen promote`: the fixed cases become permanent regression tests."""

import os
from argparse import Namespace

from kaizen.cases.case import Case, case_input_fingerprint
from kaizen.cases.evaluation_file import case_entries
from kaizen.commands.context import Assessment, Project, assess_reviewed, decision_of, load_project, refuse_stale
from kaizen.commands.table import IMPROVEMENT, Answer, command
from kaizen.foundation.errors import Breaches, RefusedError
from kaizen.foundation.files import make_folder, read_bytes, replacing, shown_path
from kaizen.foundation.jsonio import JsonObject, encode_compact, read_json_lines
from kaizen.foundation.locks import FileLock
from kaizen.foundation.text import counted, quoted

ACCEPTED = ("accepted", "accepted_with_conditions")


@command(
    "promote",
    "Appends the improved cases of an accepted improvement to datasets/regression.jsonl, once each.",
    [IMPROVEMENT],
    "kaizen promote refund",
)
def command_promote(args: Namespace) -> Answer:
    """Promotes what an accepted decision about exactly this evidence allows."""
    project = load_project(args.improvement)
    improvement = project.improvement
    decision = decision_of(improvement)
    if decision is None or decision.status not in ACCEPTED:
        status = "there is no decision yet" if decision is None else f"the decision is {quoted(decision.status)}"
        hint = f"run: kaizen decide {improvement.argument()} --status accepted --by NAME --because TEXT"
        raise RefusedError(f"{improvement.shown('decision.yaml')}: {status}", hint, "no_decision" if decision is None else decision.status)
    _, assessment = assess_reviewed(project)
    refuse_stale(assessment, improvement, "promote")
    if decision.evidence != assessment.comparison["evidence"]:
        hint = f"run: {improvement.review_command()}, then decide about what it shows"
        raise RefusedError(
            f"{improvement.shown('decision.yaml')}: the decision is about other evidence than the current one", hint, "stale_decision"
        )
    return promote_cases(project, assessment)


def promote_cases(project: Project, assessment: Assessment) -> Answer:
    """Appends the cases and says what was left out and why."""
    improved = [row for row in assessment.comparison["cases"] if row["change"] == "improved"]
    holdout = [row for row in improved if row["id"] in project.dataset.holdout]
    shaky = [
        row
        for row in improved
        if row not in holdout
        and (row["candidate"]["fail"] or row["candidate"]["error"] or row["candidate"]["pass"] < row["candidate"]["planned"])
    ]
    chosen = [project.dataset.cases[row["id"]] for row in improved if row not in holdout and row not in shaky]
    folder = os.path.join(project.improvement.outer_folder(), "datasets")
    path = os.path.join(folder, "regression.jsonl")
    make_folder(folder)
    with FileLock(os.path.join(folder, "regression.lock"), "the regression dataset"):
        known = known_inputs(path)
        fresh = [case for case in chosen if not is_known(case, known, path)]
        if fresh:
            append_cases(path, [regression_case(project, case) for case in fresh])
    left_out = [counted(len(holdout), "holdout case")] if holdout else []
    if shaky:
        left_out.append(f"{counted(len(shaky), 'case')} that did not pass every planned trial")
    lines = [f"{counted(len(fresh), 'case')} added to {shown_path(path)}"]
    lines += [f"  already there: {counted(len(chosen) - len(fresh), 'case')}"] if len(chosen) > len(fresh) else []
    lines += [f"  left out: {', '.join(left_out)}"] if left_out else []
    data: JsonObject = {
        "added": [case.id for case in fresh],
        "already_there": len(chosen) - len(fresh),
        "left_out_holdout": len(holdout),
        "left_out_unstable": len(shaky),
        "file": shown_path(path),
    }
    following = (
        'add "include": ["../../datasets/regression.jsonl"] to the evaluation.json of the next improvement (kaizen init does)'
        if fresh
        else ""
    )
    return Answer(0, "promoted", lines[0], lines, data, following)


def known_inputs(path: str) -> dict[str, str]:
    """{case id: input fingerprint} of the dataset *path*; empty when it does not exist."""
    if not os.path.exists(path):
        return {}
    return {str(line.value.get("id")): case_input_fingerprint(line.value) for line in read_json_lines(path)}


def is_known(case: Case, known: dict[str, str], path: str) -> bool:
    """True when the dataset holds *case* already. Raises RefusedError when its id stands there with another input."""
    if case.id in known and known[case.id] != case.input_fingerprint:
        raise RefusedError(
            f"{shown_path(path)}: case {quoted(case.id)} is already there with another input; nothing was added",
            "rename the case in the improvement, or correct the dataset",
            "id_conflict",
        )
    return case.id in known


def regression_case(project: Project, case: Case) -> JsonObject:
    """The case as it goes into the regression dataset: with the evaluators that applied to it."""
    own = {entry["id"]: entry for entry in case_entries(case, project.evaluation, Breaches())}
    entries = {entry["id"]: entry for entry in project.evaluation.evaluators}
    source = {**case.document.get("source", {}), "kind": "regression"}
    return {**case.document, "split": "regression", "source": source, "evaluators": list({**entries, **own}.values())}


def append_cases(path: str, cases: list[JsonObject]) -> None:
    """Writes the dataset anew with *cases* behind what it holds, whole or not at all."""
    before = read_bytes(path) if os.path.exists(path) else b""
    with replacing(path) as stream:
        stream.write(before + (b"\n" if before and not before.endswith(b"\n") else b""))
        for case in cases:
            stream.write(encode_compact(case).encode("utf-8") + b"\n")

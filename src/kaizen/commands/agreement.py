"""`kaizen agreement`: does the judge decide like the experts."""

import os
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Container
from typing import NamedTuple

from kaizen.cases.judge_block import INSUFFICIENT
from kaizen.cases.labels import AGREEMENT_FILE, LABELS_FILE, Labels, output_fingerprint, read_labels
from kaizen.commands.context import Project, load_project
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.commands.verdicts import checked_results, results_of
from kaizen.evaluators.outcomes import FAIL, PASS
from kaizen.evaluators.stage_results import has_results
from kaizen.evaluators.standing import AT_HUMAN_LEVEL, VERDICT, default_subject, holds_judge, judge_makers, subject_labels
from kaizen.foundation.errors import Breaches, InputError, RefusedError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonObject, fingerprint, read_json_object, rounded_floats, write_json
from kaizen.foundation.text import did_you_mean, quoted
from kaizen.policy.agreement import LabelledCase, Settings, agreement_numbers, rate_document
from kaizen.policy.agreement_words import agreement_lines, level_sentence
from kaizen.policy.verdict import REASON_WORDS, Verdicts
from kaizen.runs.observation import iter_observations

Said = Callable[[JsonObject], tuple[str | None, str]]
OF_EVALUATOR = Argument("--of", "EVALUATOR", "the evaluator the labels are about (the judge block, else the only judge)")
LABELS_OPTION = Argument("--labels", "FILE", f"file of labels ({LABELS_FILE} of the improvement)")


class Subject(NamedTuple):
    """What agreement is about: an evaluator's id or '' for the verdict, what may be said of it, and what a result line says."""

    name: str
    default: str | None
    labels: list[str]
    said: Said


@command(
    "agreement",
    "Compares a judge with experts who labelled the same cases, like with like, and records its standing.",
    [
        IMPROVEMENT,
        LABELS_OPTION,
        Argument("--stage", "S", "stage that was labelled (candidate)", {"default": "candidate"}),
        OF_EVALUATOR,
    ],
    "kaizen agreement refund\nkaizen agreement refund --of tone --labels experts.jsonl --json",
    group="further questions",
)
def command_agreement(args: Namespace) -> Answer:
    """Writes agreement.json; exits 0 whatever the standing."""
    project = load_project(args.improvement)
    subject = subject_of(project, args.of)
    document = rounded_floats(agreement_document(project, subject, args.stage, labels_path(project, args.labels)))
    path = project.improvement.path(AGREEMENT_FILE)
    record_agreement(path, document)
    shown = project.improvement.shown(AGREEMENT_FILE)
    of = f" --of {subject.name}" if subject.name else ""
    needs = document["standing"] != AT_HUMAN_LEVEL
    following = f"kaizen label {project.improvement.argument()} --rater NAME --stage {args.stage}{of}" if needs else ""
    lines = [*agreement_lines(document), f"written to {shown}"]
    return Answer(0, document["standing"], level_sentence(document), lines, {**document, "files": {"agreement": shown}}, following)


def labels_path(project: Project, given: str | None) -> str:
    """The path of the file of labels."""
    return os.path.abspath(given) if given else project.improvement.path(LABELS_FILE)


def subject_of(project: Project, named: str | None) -> Subject:
    """What labels are about: *named*, or what there is only one of. Raises InputError."""
    evaluation, suite = project.evaluation, project.suite
    names = suite.names_outside(project.dataset)
    default = default_subject(evaluation, suite.entries)
    if named is not None and named not in names:
        raise InputError(f"there is no evaluator {quoted(named)}", did_you_mean(named, names), "unknown_evaluator")
    name = default if named is None else named
    if name is None:
        hint = f"name one with --of; {did_you_mean('', names)}"
        raise InputError(f"{evaluation.path}: has no 'judge' block and not just one judge among its evaluators", hint, "no_judge")
    said = verdict_said(Verdicts(evaluation.judge)) if name == VERDICT and evaluation.judge is not None else entry_said(name)
    return Subject(name, default, subject_labels(evaluation, name), said)


def entry_said(name: str) -> Said:
    """What a result line says of the evaluator *name*: (pass or fail, ''), or (None, why it said neither)."""

    def said(result: JsonObject) -> tuple[str | None, str]:
        entry = next((each for each in result["evaluations"] if each["id"] == name), None)
        if entry is None:
            return None, "it did not look at this case"
        return (entry["status"], "") if entry["status"] in (PASS, FAIL) else (None, str(entry["reason"]))

    return said


def verdict_said(verdicts: Verdicts) -> Said:
    """What a result line comes to by the `judge` block: (verdict, ''), or (None, why the evidence is insufficient)."""

    def said(result: JsonObject) -> tuple[str | None, str]:
        found = verdicts.verdict(result)
        return (found["verdict"], "") if found["verdict"] != INSUFFICIENT else (None, REASON_WORDS[found["because"]])

    return said


def agreement_document(project: Project, subject: Subject, stage: str, path: str) -> JsonObject:
    """The entry of agreement.json about *subject*, measured on the first trial of *stage*; it names no holdout case."""
    improvement, dataset, evaluation = project.improvement, project.dataset, project.evaluation
    meta, problems = checked_results(project, stage, True)
    if problems:
        code, text = problems[0]
        raise RefusedError(f"cannot measure agreement: {text}", f"run: kaizen evaluate {improvement.argument()} --stage {stage}", code)
    labels, other_output = usable_labels(project, subject, stage, path)
    first: dict[str, tuple[str | None, str]] = {}
    for result in results_of(project, stage):
        if result["trial"] == 1 and result["case_id"] in labels.by_case:
            first[result["case_id"]] = subject.said(result)
    missing = (None, "it has no first trial in this stage")
    labelled = [case_id for case_id in dataset.cases if case_id in labels.by_case]
    judged = [LabelledCase(case_id, *first.get(case_id, missing), labels.by_case[case_id]) for case_id in labelled]
    settings = Settings(subject.labels, evaluation.agreement["weights"], evaluation.seed)
    numbers = agreement_numbers(judged, labels.raters(), settings)
    hidden = {key: sum(entry["case_id"] in dataset.holdout for entry in numbers[key]) for key in ("contested", "abstained")}
    for key in hidden:
        numbers[key] = [entry for entry in numbers[key] if entry["case_id"] not in dataset.holdout]
    block = evaluation.judge if not subject.name else None
    makers = judge_makers(meta)
    is_judge = any(holds_judge(entry) for entry in project.suite.entries if entry.id == subject.name)
    return {
        "of": subject.name or None,
        "judge": block and block["name"],
        "standing": numbers.pop("standing"),
        "standing_reason": numbers.pop("standing_reason"),
        "entry": project.suite.entry_fingerprints.get(subject.name) if subject.name else fingerprint(block),
        "judges": makers if subject.name not in makers else {subject.name: makers[subject.name]},
        "stage": stage,
        "trial": 1,
        "results_sha256": meta["results_sha256"],
        "labels": {
            "file": os.path.relpath(path, improvement.folder).replace(os.sep, "/"),
            "fingerprint": labels.fingerprint if os.path.exists(path) else None,
            "raters": labels.raters(),
        },
        "weights": settings.weights,
        "positive": subject.labels[0],
        "cases": len(dataset.cases),
        **numbers,
        "holdout": hidden,
        "rates": stage_rates_of(project, subject, numbers["error"]),
        "notes": agreement_notes(project, labels, other_output, numbers["band"]["pairs_left_out"], is_judge),
    }


def usable_labels(project: Project, subject: Subject, stage: str, path: str) -> tuple[Labels, int]:
    """(labels about *subject*, how many more there are of another output than the first trial of *stage* has)."""
    if not os.path.exists(path):
        if path != project.improvement.path(LABELS_FILE):
            raise InputError(f"{shown_path(path)}: does not exist", "name a file of labels, a line a label", "missing_labels")
        return Labels({}, 0, 0, ""), 0
    breaches, dataset = Breaches(), project.dataset
    labels = read_labels(path, subject.name, subject.default, subject.labels, dataset.cases, breaches, dataset.holdout)
    breaches.raise_if_any()
    if not any(given.output for row in labels.by_case.values() for given in row.values()):
        return labels, 0
    outputs = first_outputs(project, stage, labels.by_case)
    kept = {
        case_id: {rater: given for rater, given in row.items() if given.output in ("", outputs.get(case_id))}
        for case_id, row in labels.by_case.items()
    }
    dropped = sum(len(row) - len(kept[case_id]) for case_id, row in labels.by_case.items())
    return labels._replace(by_case={case_id: row for case_id, row in kept.items() if row}), dropped


def first_outputs(project: Project, stage: str, wanted: Container[str]) -> dict[str, str]:
    """Fingerprint of the output of the first trial of each *wanted* case."""
    lines = (line.value for line in iter_observations(project.improvement.stage_file(stage)))
    return {each["case_id"]: output_fingerprint(each) for each in lines if each["trial"] == 1 and each["case_id"] in wanted}


def stage_rates_of(project: Project, subject: Subject, error: JsonObject) -> list[JsonObject]:
    """The rate of the first label in each stage with results that are up to date, as said and corrected by *error*."""
    improvement, found = project.improvement, []
    for stage in improvement.stages():
        if not has_results(improvement, stage):
            continue
        meta, problems = checked_results(project, stage, True)
        if problems:
            continue
        cases: dict[str, Counter[bool]] = {}
        for result in results_of(project, stage):
            label = subject.said(result)[0]
            if label is not None:
                cases.setdefault(result["case_id"], Counter())[label == subject.labels[0]] += 1
        found.append({**rate_document(stage, cases, error), "results_sha256": meta["results_sha256"]})
    return found


def agreement_notes(project: Project, labels: Labels, other_output: int, rare_pairs: int, is_judge: bool) -> list[str]:
    """Whole sentences about labels that did not count, and about what hangs on the standing."""
    counts = (
        (labels.about_others, "label is about something else", "labels are about something else"),
        (labels.replaced, "label was replaced by a later one of its rater", "labels were replaced by later ones of their raters"),
        (other_output, "label is of another output than this stage has", "labels are of other outputs than this stage has"),
        (rare_pairs, "pair has not 20 cases in common and is in no mean", "pairs have not 20 cases in common and are in no mean"),
    )
    notes = [f"{number:,} {one if number == 1 else more}" for number, one, more in counts if number]
    if is_judge:
        required = project.evaluation.agreement["required"]
        notes.append(
            "evaluation.json requires agreement: unless it is at human level, the judge informs and does not gate"
            if required
            else "no gate hangs on this: evaluation.json does not require agreement"
        )
    return notes


def record_agreement(path: str, document: JsonObject) -> None:
    """Writes *document* into agreement.json, in the place of the one about the same subject."""
    old = read_json_object(path).get("measured") if os.path.exists(path) else []
    kept = [item for item in old if isinstance(item, dict) and item.get("of") != document["of"]] if isinstance(old, list) else []
    write_json(path, {"version": 1, "measured": sorted([*kept, document], key=lambda item: str(item.get("of") or ""))})

"""`kaizen validate`: every file of an improvement checked, every breach with its place."""

from argparse import Namespace
from collections import Counter
from typing import NamedTuple

from kaizen.cases.case import SOURCE_KINDS, SPLITS
from kaizen.cases.dataset import CASES_FILE, Dataset, load_dataset
from kaizen.cases.evaluation_file import Evaluation, load_evaluation
from kaizen.cases.improvement import Improvement, find_improvement
from kaizen.commands.improvement_files import check_other_files
from kaizen.commands.table import IMPROVEMENT, Answer, command
from kaizen.evaluators.stage_results import RESULTS, has_results, stage_state
from kaizen.evaluators.suite import Suite, build_suite
from kaizen.foundation.errors import EXIT_DONE, EXIT_NO, MAX_BREACHES_SHOWN, Breach, Breaches, InputError
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed, visible

SHOWN_TAGS = 20
SHOWN_IDS = 10


@command(
    "validate",
    "Checks every file of an improvement and reports every breach with file, line and what to do; exits 1 when there is one.",
    [IMPROVEMENT],
    "kaizen validate refund\nkaizen validate refund --json",
)
def command_validate(args: Namespace) -> Answer:
    """Reports breaches, then warnings, then what the improvement holds."""
    return validation_answer(validate_improvement(find_improvement(args.improvement)))


class Validation(NamedTuple):
    """What was checked, and what came of it; None for what could not be read."""

    improvement: Improvement
    evaluation: Evaluation | None
    dataset: Dataset
    suite: Suite | None
    files: list[str]
    breaches: Breaches


def validate_improvement(improvement: Improvement) -> Validation:
    """Checks every file of *improvement* in one pass."""
    breaches = Breaches()
    evaluation = load_evaluation(improvement, breaches)
    dataset = load_dataset(improvement, evaluation.include if evaluation else [], breaches)
    suite = checked_suite(evaluation, dataset, breaches)
    warn_about_cases(improvement, dataset, breaches)
    if evaluation is not None and evaluation.document.get("evaluators") == []:
        message = "is empty: nothing is checked but by evaluators of a case's own"
        breaches.warn(evaluation.path, evaluation.line("/evaluators"), "/evaluators", message, "kaizen evaluators lists the types")
    files = check_other_files(improvement, dataset, breaches)
    if suite is not None and not breaches.errors:
        check_results_fit(improvement, dataset, suite, breaches)
    return Validation(improvement, evaluation, dataset, suite, files, breaches)


def checked_suite(evaluation: Evaluation | None, dataset: Dataset, breaches: Breaches) -> Suite | None:
    """The suite, prepared so that its breaches are known; None when its entries could not even be read."""
    if evaluation is None:
        return None
    before = len(breaches.errors)
    if any(error.path == evaluation.path and error.pointer.startswith(("/evaluators", "/define")) for error in breaches.errors):
        return None
    suite = build_suite(evaluation, dataset, breaches)
    return suite if len(breaches.errors) == before else None


def warn_about_cases(improvement: Improvement, dataset: Dataset, breaches: Breaches) -> None:
    """Warns of cases without a source, by file, and of cases without a split beside others that have one."""
    lacking: dict[str, list[str]] = {}
    hidden: Counter[str] = Counter()
    for case in dataset.cases.values():
        if "source" not in case.document:
            names = lacking.setdefault(case.path, [])
            if case.id in dataset.holdout:
                hidden[case.path] += 1
            else:
                names.append(visible(case.id, 40))
    for path, names in lacking.items():
        more = [f"{len(names) - SHOWN_IDS} more"] if len(names) > SHOWN_IDS else []
        more += [counted(hidden[path], "holdout case")] if hidden[path] else []
        message = f"{counted(len(names) + hidden[path], 'case')} without a source: {listed([*names[:SHOWN_IDS], *more], SHOWN_IDS + 2)}"
        breaches.warn(path, None, "", message, f'write "source": {{"kind": "{"|".join(SOURCE_KINDS)}"}}')
    unsplit = sum("split" not in case.document for case in dataset.cases.values())
    if 0 < unsplit < len(dataset.cases):
        message = f"{counted(unsplit, 'case')} without a split, while others have one"
        breaches.warn(improvement.shown(CASES_FILE), None, "", message, f"use one of {listed(SPLITS, last='or')}")


def check_results_fit(improvement: Improvement, dataset: Dataset, suite: Suite, breaches: Breaches) -> None:
    """Reports results that nobody but evaluate should have written, and warns of stale ones."""
    for stage in filter(lambda name: has_results(improvement, name), improvement.stages()):
        shown = improvement.shown(stage + RESULTS)
        try:
            problems = stage_state(improvement, stage, dataset, suite).problems
        except InputError as error:
            problems = [("invalid_evidence", error.message)]
        for code, sentence in problems:
            note = breaches.add if code == "invalid_evidence" else breaches.warn
            note(shown, None, "", sentence, f"run: kaizen evaluate {improvement.argument()}")


def validation_answer(found: Validation) -> Answer:
    """Breaches, warnings, counts and fingerprints, for people and for programs."""
    improvement, evaluation, dataset, suite, files, breaches = found
    errors, warnings = in_file_order(breaches.errors), in_file_order(breaches.warnings)
    evaluators = len(evaluation.evaluators) if evaluation else 0
    if errors:
        message = f"{improvement.shown()}: {counted(len(errors), 'breach', 'breaches')}"
    else:
        message = f"{improvement.shown()} is valid: {counted(len(dataset.cases), 'case')}, {counted(evaluators, 'evaluator')}"
    holds = dataset_counts(dataset)
    lines = [message, *shown_breaches(errors)]
    if warnings:
        lines += [f"{counted(len(warnings), 'warning')}:", *shown_breaches(warnings)]
    lines += dataset_count_lines(holds)
    if not errors:
        lines += [f"  dataset     {dataset.fingerprint}", f"  evaluators  {suite.fingerprint if suite else 'not known'}"]
    data: JsonObject = {
        "valid": not errors,
        "breach_count": len(errors),
        "breaches": [breach_document(breach) for breach in errors[:MAX_BREACHES_SHOWN]],
        "warning_count": len(warnings),
        "warnings": [breach_document(breach) for breach in warnings[:MAX_BREACHES_SHOWN]],
        "cases": holds,
        "evaluators": evaluators,
        "files": files,
        "dataset_fingerprint": None if errors else dataset.fingerprint,
        "evaluator_fingerprint": suite.fingerprint if suite and not errors else None,
    }
    return Answer(EXIT_NO if errors else EXIT_DONE, "invalid" if errors else "valid", message, lines, data)


def in_file_order(breaches: list[Breach]) -> list[Breach]:
    """*breaches* by file, in the order in which the files were checked, then by line."""
    places = {path: index for index, path in enumerate(dict.fromkeys(breach.path for breach in breaches))}
    return sorted(breaches, key=lambda breach: (places[breach.path], breach.line or 0))


def shown_breaches(breaches: list[Breach]) -> list[str]:
    """A line for each of *breaches*, at most 50, then a count of the rest."""
    hidden = len(breaches) - MAX_BREACHES_SHOWN
    lines = [f"  {breach.text()}" for breach in breaches[:MAX_BREACHES_SHOWN]]
    return [*lines, f"  and {hidden} more"] if hidden > 0 else lines


def breach_document(breach: Breach) -> JsonObject:
    """*breach* as --json shows it."""
    return {"path": breach.path, "line": breach.line, "pointer": breach.pointer, "message": breach.message, "hint": breach.hint}


def dataset_counts(dataset: Dataset) -> JsonObject:
    """How many cases there are, by split and tag, and how many are critical; tags are those of cases that may be shown."""
    documents = [case.document for case in dataset.cases.values()]
    splits = Counter(document.get("split", "none") for document in documents)
    tags = Counter(tag for case in dataset.cases.values() if case.id not in dataset.holdout for tag in case.document.get("tags", []))
    return {
        "count": len(documents),
        "splits": {name: splits[name] for name in (*SPLITS, "none") if splits[name]},
        "tags": dict(sorted(tags.items(), key=lambda item: (-item[1], item[0]))),
        "critical": sum(document.get("critical", False) for document in documents),
        "without_source": sum("source" not in document for document in documents),
    }


def dataset_count_lines(holds: JsonObject) -> list[str]:
    """The counts of `dataset_counts` for people."""
    splits = [f"{number:,} {'without a split' if name == 'none' else name}" for name, number in holds["splits"].items()]
    lines = [f"  cases       {holds['count']:,}" + (f": {listed(splits)}" if splits else "") + f"; {holds['critical']:,} critical"]
    tags = [f"{visible(tag, 40)} {number:,}" for tag, number in holds["tags"].items()]
    return [*lines, *([f"  tags        {listed(tags, SHOWN_TAGS)}"] if tags else [])]

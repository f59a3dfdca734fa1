"""What `kaizen validate` asks of each file beside the cases and evaluation.json."""

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from kaizen.cases.dataset import CASES_FILE, Dataset, note_unreadable
from kaizen.cases.decision import PENDING, read_decision
from kaizen.cases.evaluation_file import nearest_line
from kaizen.cases.improvement import Improvement
from kaizen.cases.labels import check_label
from kaizen.evaluators.judgements import checked_key
from kaizen.evaluators.outcomes import ERROR, FAIL, NOT_APPLICABLE, PASS
from kaizen.foundation.errors import Breaches, BreachesError, InputError
from kaizen.foundation.files import shown_path
from kaizen.foundation.journals import torn_tail
from kaizen.foundation.jsonio import JsonError, Line, checked_lines, checked_object, decode_line
from kaizen.foundation.shapes import (
    ANY_TEXT,
    BOOLEAN,
    COUNT,
    OBJECT,
    RATE,
    TEXT,
    Kind,
    Report,
    check_fields,
    is_whole,
    list_of,
    one_of,
    or_null,
)
from kaizen.foundation.text import counted, listed
from kaizen.runs.observation import MAX_TRIALS, STATUSES, check_observation

VERSION_1 = Kind(lambda value: is_whole(value) and value == 1, "1, the version this program reads", shows_value=True)
TRIAL_COUNT = Kind(lambda value: is_whole(value) and 1 <= value <= MAX_TRIALS, f"a whole number from 1 to {MAX_TRIALS:,}", shows_value=True)
STAGE_META_FIELDS = {
    "version": VERSION_1,
    "stage": TEXT,
    "repetitions": TRIAL_COUNT,
    "planned": COUNT,
    "selected": COUNT,
    "complete": BOOLEAN,
    "command": or_null(list_of(ANY_TEXT, "texts")),
    "counts": OBJECT,
    "observations": or_null(OBJECT),
}
RESULTS_META_FIELDS = {
    "version": VERSION_1,
    "stage": TEXT,
    "repetitions": TRIAL_COUNT,
    **dict.fromkeys(("observations_sha256", "results_sha256", "dataset_fingerprint", "evaluator_fingerprint"), TEXT),
    "evaluators": OBJECT,
    "counts": OBJECT,
}
RESULT_FIELDS = {
    "case_id": TEXT,
    "trial": TRIAL_COUNT,
    "status": one_of(*STATUSES),
    "outcome": one_of(PASS, FAIL, ERROR),
    "score": or_null(RATE),
    "coverage": or_null(RATE),
    "evaluations": list_of(OBJECT, "objects"),
}
ENTRY_FIELDS = {"id": TEXT, "type": TEXT, "status": one_of(PASS, FAIL, ERROR, NOT_APPLICABLE), "score": or_null(RATE), "reason": ANY_TEXT}


class FileCheck(NamedTuple):
    """The file to check, as path and as shown, the dataset it speaks of, and where breaches go."""

    path: str
    shown: str
    dataset: Dataset
    breaches: Breaches

    def report(self, line: int | None, pointer: str, message: str, hint: str = "") -> None:
        """Notes a breach in this file."""
        self.breaches.add(self.shown, line, pointer, message, hint)

    def at(self, line: Line) -> Report:
        """Notes breaches on *line*."""
        return lambda pointer, message, hint: self.report(line.number, pointer, message, hint)


def check_observations(check: FileCheck) -> None:
    """Observations: case, trial and status of each line, each trial once; counts those that no longer fit the cases."""
    seen: dict[tuple[str, int], int] = {}
    unknown = changed = 0
    for line in checked_lines(check.path, check.breaches):
        place = f"{check.shown}:{line.number}"
        try:
            value = check_observation(line.value, place)
        except InputError as error:
            check.report(line.number, "", error.message.removeprefix(f"{place}: "), error.hint)
            continue
        first = seen.setdefault((value["case_id"], value["trial"]), line.number)
        if first != line.number:
            check.report(line.number, "", f"is the same case and trial as line {first}", "remove one, or run the stage with --overwrite")
        case = check.dataset.cases.get(value["case_id"])
        unknown += case is None
        changed += case is not None and value.get("input_fingerprint", case.input_fingerprint) != case.input_fingerprint
    if is_cut_off(torn_tail(check.path)[1].strip()):
        errors = check.breaches.errors  # the last of which is about this line
        errors[-1] = errors[-1]._replace(message="is cut off: a run was stopped while it wrote it", hint="run the stage with --resume")
    if unknown:
        check.breaches.warn(check.shown, None, "", f"{counted(unknown, 'observation')} of cases that are not there (any more)")
    if changed:
        hint = "run those cases again: kaizen run … --resume"
        check.breaches.warn(check.shown, None, "", f"{counted(changed, 'observation')} made from another input than the case has", hint)


def is_cut_off(tail: bytes) -> bool:
    """True when *tail*, what stands behind the last line end, is the beginning of a line."""
    try:
        return bool(tail) and not decode_line(tail)
    except JsonError:
        return True


def check_earlier_observations(check: FileCheck) -> None:
    """Observations that newer ones replaced: the shape of each line."""
    for line in checked_lines(check.path, check.breaches):
        check_fields(
            line.value,
            {"case_id": TEXT, "trial": TRIAL_COUNT, "status": one_of(*STATUSES)},
            "",
            check.at(line),
            ("case_id", "trial", "status"),
        )


def check_results(check: FileCheck) -> None:
    """Results: the shape of each line and of what each evaluator said."""
    for line in checked_lines(check.path, check.breaches):
        check_fields(line.value, RESULT_FIELDS, "", check.at(line), ("case_id", "trial", "status", "outcome", "evaluations"))
        entries = line.value.get("evaluations")
        for index, entry in enumerate(entries if isinstance(entries, list) else []):
            if isinstance(entry, dict):
                check_fields(entry, ENTRY_FIELDS, f"/evaluations/{index}", check.at(line), ("id", "status"))


def check_labels(check: FileCheck) -> None:
    """Expert labels: the shape of each line, about a case that is there."""
    for line in checked_lines(check.path, check.breaches):
        case_id = line.value.get("case_id")
        if isinstance(case_id, str) and case_id in check.dataset.holdout:
            check.breaches.conceal(check.shown, line.number)
        check_label(line.value, check.dataset.cases, check.at(line))


def check_judgements(check: FileCheck) -> None:
    """Answers of judges: the shape of each line."""
    for line in checked_lines(check.path, check.breaches):
        try:
            checked_key(line.value, "")
        except InputError as error:
            check.report(line.number, "", error.message.removeprefix(": "), error.hint)


def check_json_lines(check: FileCheck) -> None:
    """Strict JSON, one object a line."""
    for _ in checked_lines(check.path, check.breaches):
        pass


def check_json(check: FileCheck) -> None:
    """One strict JSON object."""
    checked_object(check.path, check.breaches)


def meta_check(kinds: dict[str, Kind], required: tuple[str, ...]) -> Callable[[FileCheck], None]:
    """The check of a meta file with the fields *kinds*."""

    def check_meta(check: FileCheck) -> None:
        found = checked_object(check.path, check.breaches)
        if found:
            check_fields(found[1], kinds, "", lambda *breach: check.report(nearest_line(found[0], breach[0]), *breach), required)

    return check_meta


def check_decision(check: FileCheck) -> None:
    """The decision; one that lacks who, why or its conditions is a warning."""
    decision = read_decision(check.path)
    lacking = [name for name, value in (("decided_by", decision.decided_by), ("rationale", decision.rationale)) if not value.strip()]
    if decision.status == "accepted_with_conditions" and not decision.conditions:
        lacking.append("conditions")
    if decision.status != PENDING and lacking:
        message = f"is {decision.status}, but lacks {listed(lacking)}"
        check.breaches.warn(check.shown, None, "", message, "write it with: kaizen decide")


# What a file is called, and its check; the first that fits counts.
FILE_CHECKS: tuple[tuple[str, Callable[[FileCheck], None]], ...] = (
    (r"labels\.jsonl", check_labels),
    (r"optimizer-log\.jsonl", check_json_lines),
    (r"(comparison|reliability|agreement|feedback|pareto)\.json", check_json),
    (r"decision\.yaml", check_decision),
    (r"[\w-]{1,64}(\.shard-\d+-of-\d+)?\.jsonl", check_observations),
    (r"[\w-]{1,64}(\.shard-\d+-of-\d+)?\.meta\.json", meta_check(STAGE_META_FIELDS, ("version", "stage", "repetitions"))),
    (r"[\w-]{1,64}\.evaluated\.jsonl", check_results),
    (r"[\w-]{1,64}\.evaluated\.meta\.json", meta_check(RESULTS_META_FIELDS, tuple(RESULTS_META_FIELDS))),
    (r"[\w-]{1,64}(\.shard-\d+-of-\d+)?\.superseded\.jsonl", check_earlier_observations),
    (r"[\w-]{1,64}\.judgements\.jsonl", check_judgements),
)


def check_other_files(improvement: Improvement, dataset: Dataset, breaches: Breaches) -> list[str]:
    """Checks every further file of *improvement* that Kaizen knows; returns their names. Unknown files are left alone."""
    checked = []
    for name in sorted(os.listdir(improvement.folder)):
        check = next((check for pattern, check in FILE_CHECKS if re.fullmatch(pattern, name, re.ASCII)), None)
        path = improvement.path(name)
        if check is None or name == CASES_FILE or not os.path.isfile(path):
            continue
        checked.append(name)
        shown = shown_path(path)
        try:
            check(FileCheck(path, shown, dataset, breaches))
        except BreachesError as error:
            breaches.errors += error.breaches
        except InputError as error:
            note_unreadable(shown, error, breaches)
    return checked

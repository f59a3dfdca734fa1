"""All cases of an improvement: its own test_cases.jsonl, then the files that it includes.

Every breach of every line is reported in one pass. A case that comes again from another
file with the same input is one case, and the first (the improvement's own) wins; the same id
twice in one file, or with two inputs, is an error that names both places.
"""

import hashlib
import os
from typing import Any, NamedTuple

from kaizen.cases.case import CASE_FIELDS, HOLDOUT, Case, case_fingerprint_document, case_input_fingerprint, check_case, is_holdout
from kaizen.cases.improvement import Improvement
from kaizen.foundation.errors import Breaches, InputError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import canonical_json, checked_lines
from kaizen.foundation.shapes import Report
from kaizen.foundation.text import counted, did_you_mean, quoted

CASES_FILE = "test_cases.jsonl"
EVALUATION_FILE = "evaluation.json"


class Dataset(NamedTuple):
    """The cases by id, own ones first; the fingerprint of all in id order; whether no own case has a split; holdout ids."""

    cases: dict[str, Case]
    fingerprint: str
    is_legacy: bool
    holdout: frozenset[str]


def load_dataset(improvement: Improvement, include: list[str], breaches: Breaches) -> Dataset:
    """The cases of *improvement* and of the files *include* of its evaluation.json.

    What is wrong goes to *breaches*; the dataset then holds the cases that could be read, and the caller raises.
    """
    cases: dict[str, Case] = {}
    before = len(breaches.errors)
    add_cases(improvement.path(CASES_FILE), cases, breaches, "start an improvement with: kaizen init NAME")
    own = len(cases)
    if not own and len(breaches.errors) == before:
        breaches.add(improvement.shown(CASES_FILE), None, "", "holds no case", 'write one case a line: {"id": "…", "input": …}')
    shown = improvement.shown(EVALUATION_FILE)
    for name in checked_includes(improvement, include, lambda pointer, *text: breaches.add(shown, None, pointer, *text)):
        add_cases(included_path(improvement, name), cases, breaches)
    return Dataset(
        cases,
        dataset_fingerprint(cases),
        not any("split" in case.document for case in list(cases.values())[:own]),
        frozenset(case.id for case in cases.values() if is_holdout(case.document)),
    )


def dataset_fingerprint(cases: dict[str, Case]) -> str:
    """'sha256:' and the SHA-256 of the canonical JSON of the list of all cases in id order, without source, notes, owner."""
    digest = hashlib.sha256(b"[")
    for index, name in enumerate(sorted(cases)):
        text = canonical_json(case_fingerprint_document(cases[name].document))
        digest.update(("," + text if index else text).encode("utf-8"))
    digest.update(b"]")
    return "sha256:" + digest.hexdigest()


def add_cases(path: str, cases: dict[str, Case], breaches: Breaches, hint: str = "") -> None:
    """Adds the cases of the file *path* to *cases*; breaches and warnings go to *breaches*."""
    shown = shown_path(path)
    seen: dict[str, Case] = {}
    unknown: dict[str, list[int]] = {}
    try:
        for number, _, document in checked_lines(path, breaches, hint, f'"{HOLDOUT}"'.encode()):
            if is_holdout(document):
                breaches.conceal(shown, number)
            for name in document.keys() - CASE_FIELDS.keys():
                unknown.setdefault(name, []).append(number)
            if check_case(document, shown, number, breaches):
                case = Case(document["id"], document, shown, number, case_input_fingerprint(document))
                if case.id in seen:
                    refuse_repeated_case(case, seen[case.id], "comes twice", breaches)
                else:
                    seen[case.id] = case
    except InputError as error:
        note_unreadable(shown, error, breaches)
    for name, lines in sorted(unknown.items()):
        further = f", also on {counted(len(lines) - 1, 'further line')}" if len(lines) > 1 else ""
        breaches.warn(shown, lines[0], "", f"unknown field {quoted(name)}{further}", did_you_mean(name, CASE_FIELDS))
    for case in seen.values():
        first = cases.setdefault(case.id, case)
        if first.input_fingerprint != case.input_fingerprint:
            refuse_repeated_case(case, first, "has another input", breaches)


def note_unreadable(shown: str, error: InputError, breaches: Breaches) -> None:
    """Adds *error*, about the file *shown*, to *breaches*."""
    breaches.add(shown, None, "", error.message.removeprefix(f"{shown}: "), error.hint)


def refuse_repeated_case(case: Case, first: Case, what: str, breaches: Breaches) -> None:
    """Adds the breach of an id that stands in two places; the id of a holdout case is not said."""
    hidden = is_holdout(case.document) or is_holdout(first.document)
    name = "the id of a holdout case" if hidden else f"id {quoted(case.id)}"
    message = f"{name} {what} (first at {first.path}:{first.line})"
    breaches.add(case.path, case.line, "/id", message, "remove one of the two, or give it an id of its own")


# --- Included files --------------------------------------------------------------------


def checked_includes(improvement: Improvement, include: list[Any], report: Report) -> list[str]:
    """The names in *include* that are relative paths to files inside the repository; the others are reported."""
    root = repository_root(improvement)
    good = []
    for index, name in enumerate(include):
        if not isinstance(name, str):
            continue  # its type is checked where the file is read
        path = included_path(improvement, name)
        if os.path.isabs(name):
            problem, hint = "is not relative", "write the path from the improvement's folder"
        elif not is_inside(root, path):
            problem, hint = "leads out of the repository", "put a copy of the file into the repository"
        elif not os.path.isfile(path):
            problem, hint = "does not exist", "put the file there, or take it out of the list"
        else:
            good.append(name)
            continue
        report(f"/include/{index}", f"included file {quoted(name)} {problem}", hint)
    return good


def included_path(improvement: Improvement, name: str) -> str:
    """The absolute path of the included file *name*."""
    return os.path.normpath(improvement.path(name))


def repository_root(improvement: Improvement) -> str:
    """The nearest folder at or above the improvement that holds `.git`; without one, the folder two levels up."""
    folder = improvement.folder
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return improvement.outer_folder()
        folder = above
    return folder


def is_inside(folder: str, path: str) -> bool:
    """True when *path*, all symbolic links followed, is *folder* or lies below it."""
    try:
        return os.path.join(os.path.realpath(path), "").startswith(os.path.join(os.path.realpath(folder), ""))
    except ValueError:  # a NUL in the path
        return False

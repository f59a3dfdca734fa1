"""Writes what was gathered: a new improvement, or more cases for one that is there."""

import os
from typing import NamedTuple

from kaizen.cases.case import check_case, is_holdout
from kaizen.cases.dataset import CASES_FILE, EVALUATION_FILE, load_dataset
from kaizen.cases.evaluation_file import load_evaluation
from kaizen.cases.improvement import IMPROVEMENTS_FOLDER, Improvement, check_stage_name
from kaizen.cases.scaffold import INIT_ISSUE, check_new_improvement, scaffold_improvement
from kaizen.foundation.errors import Breaches, InputError, RefusedError
from kaizen.foundation.files import create_file, read_bytes, write_file
from kaizen.foundation.jsonio import JsonObject, encode_compact, encode_readable
from kaizen.foundation.redact import redact_evidence, redact_text
from kaizen.foundation.text import counted, listed, quoted, visible
from kaizen.importers.gathered import Gathered, lift_shared, named_entries
from kaizen.importers.tables import same_case

RECORDED_SUFFIX = ".recorded.jsonl"
IMPORTED_FROM = """
## Where the cases come from

{count} imported from {file} ({format}). `kaizen import` printed what is mapped, approximated and dropped.
{background}"""


class Destination(NamedTuple):
    """Where cases go: the improvement, whether it is there already, its cases, the ids of its evaluators."""

    improvement: Improvement
    is_new: bool
    cases: dict[str, JsonObject]
    entry_ids: list[str]


def find_destination(name: str) -> Destination:
    """The improvement *name*, a path or a name under improvements/. Raises UsageError, RefusedError, BreachesError."""
    for place in [name] if os.path.dirname(name) else [name, os.path.join(IMPROVEMENTS_FOLDER, name)]:
        improvement = Improvement(place)
        if os.path.isfile(improvement.path(CASES_FILE)) and os.path.isfile(improvement.path(EVALUATION_FILE)):
            breaches = Breaches()
            evaluation = load_evaluation(improvement, breaches)
            dataset = load_dataset(improvement, evaluation.include if evaluation else [], breaches)
            breaches.raise_if_any()
            entries = evaluation.evaluators if evaluation else []
            ids = [entry["id"] for entry in entries if isinstance(entry.get("id"), str)]
            return Destination(improvement, False, {name: case.document for name, case in dataset.cases.items()}, ids)
    return Destination(check_new_improvement(name, "--into"), True, {}, [])


def check_gathered(gathered: Gathered, shown: str) -> None:
    """Raises BreachesError for cases that `validate` would refuse, InputError when there is none."""
    breaches = Breaches()
    first: dict[str, int | None] = {}
    for case, line in zip(gathered.cases, gathered.lines, strict=True):
        if is_holdout(case) and line:
            breaches.conceal(shown, line)
        if check_case(case, shown, line or 0, breaches) and case["id"] in first:
            breaches.add(shown, line, "/id", f"id {quoted(case['id'])} comes twice", "give each case an id of its own")
        first.setdefault(str(case.get("id")), line)
    breaches.raise_if_any()
    if not gathered.cases:
        raise InputError(f"{shown}: holds no test", "nothing was imported", "no_cases")


def new_cases(gathered: Gathered, destination: Destination) -> list[JsonObject]:
    """The cases that *destination* does not have yet. Raises RefusedError when an id there belongs to another case."""
    added, taken = [], []
    for case in gathered.cases:
        before = destination.cases.get(case["id"])
        if before is None:
            added.append(case)
        elif not same_case(before, case):
            taken.append("a holdout case" if is_holdout(before) or is_holdout(case) else visible(case["id"]))
    if taken:
        phrase = "that id" if len(taken) == 1 else "those ids"
        raise RefusedError(
            f"{destination.improvement.shown(CASES_FILE)}: has other cases with {phrase}: {listed(taken)}",
            "nothing was changed; import into a new improvement, or give the cases other ids",
            "id_collision",
        )
    return added


def prepare_cases(gathered: Gathered, destination: Destination) -> list[JsonObject]:
    """The entries for evaluation.json of a new improvement; in one that is there the cases keep all, under ids that are free."""
    if destination.is_new:
        return lift_shared(gathered.cases)
    for case in gathered.cases:
        own = case.get("evaluators", [])
        if own:
            case["evaluators"] = named_entries(
                [(entry["id"], {key: value for key, value in entry.items() if key != "id"}) for entry in own], destination.entry_ids
            )
    return []


def masked_answer(answer: JsonObject) -> JsonObject:
    """*answer* with its secrets masked, as evidence is before it is written; `redacted` says where."""
    evidence, hits = redact_evidence({key: value for key, value in answer.items() if key not in ("case_id", "trial")})
    return {**answer, **evidence, **({"redacted": hits} if hits else {})}


def write_import(gathered: Gathered, destination: Destination, shared: list[JsonObject], origin: tuple[str, str], stage: str) -> list[str]:
    """Writes the files and returns the names of those that are new or longer; *origin* is (name of the file, format)."""
    improvement = destination.improvement
    added = new_cases(gathered, destination)
    lines = "".join(encode_compact(case) + "\n" for case in added)
    recorded = stage + RECORDED_SUFFIX
    if stage:
        check_stage_name(stage)
        if os.path.lexists(improvement.path(recorded)):
            message = f"{improvement.shown(recorded)}: is there already; nothing was changed"
            raise RefusedError(message, "choose another stage", "existing_file")
    if destination.is_new:
        evaluation = encode_readable({"version": 1, "evaluators": shared}) + "\n"
        background = "".join(f"{line}\n" for line in ["", *gathered.background]) if gathered.background else ""
        origin_text = IMPORTED_FROM.format(count=counted(len(added), "case"), file=origin[0], format=origin[1], background=background)
        issue = INIT_ISSUE.replace("IMPROVEMENT", improvement.name) + redact_text(origin_text)[0]
        written = scaffold_improvement(improvement.name, {"issue.md": issue, CASES_FILE: lines, EVALUATION_FILE: evaluation})[1]
    else:
        before = read_bytes(improvement.path(CASES_FILE))
        joint = b"" if not before or before.endswith(b"\n") else b"\n"
        if added:
            write_file(improvement.path(CASES_FILE), before + joint + lines.encode("utf-8"))
        written = [CASES_FILE] if added else []
    if stage:
        create_file(improvement.path(recorded), "".join(encode_compact(masked_answer(answer)) + "\n" for answer in gathered.answers))
        written.append(recorded)
    return written

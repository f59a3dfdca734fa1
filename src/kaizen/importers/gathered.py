"""What an importer finds in a file: cases, checks, answers, what became of each part."""

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from kaizen.cases.case import is_holdout
from kaizen.evaluators.envelope import prepare_entry
from kaizen.evaluators.outcomes import ConfigurationError
from kaizen.foundation.errors import InputError, RefusedError
from kaizen.foundation.files import read_text, shown_path
from kaizen.foundation.jsonio import JsonError, JsonObject, json_equal, parse_json, refused_line
from kaizen.foundation.text import quoted, slug, visible

MAPPED, APPROXIMATED, DROPPED = "mapped", "approximated", "dropped"
MAX_IMPORT_BYTES = 64 << 20
MAX_IMPORT_CASES = 100_000
PLACES_KEPT = 3
REFERENCE_KEYS = ("$case", "$use", "$file", "$literal")


class ImportDropped(Exception):
    """A part of the file that has no counterpart here; the text says why."""


class ImportNote(NamedTuple):
    """What became of a part: `kind` of the three, what it was and is now, and the difference or the reason."""

    kind: str
    subject: str
    text: str


class Gathered:
    """Cases with their entries in `evaluators`, recorded answers, notes with count and first places, lines for issue.md."""

    def __init__(self) -> None:
        self.cases: list[JsonObject] = []
        self.lines: list[int | None] = []  # where in the file each case stands, when it has lines
        self.answers: list[JsonObject] = []
        self.notes: dict[ImportNote, tuple[int, list[str]]] = {}
        self.background: list[str] = []
        self.names: set[str] = set()

    def note(self, kind: str, subject: str, place: str, text: str = "") -> None:
        """Counts a part that stood at *place*."""
        key = ImportNote(kind, visible(subject, 80), visible(text, 300))
        count, places = self.notes.get(key, (0, []))
        self.notes[key] = (count + 1, places if len(places) == PLACES_KEPT or place in places else [*places, place])

    def name_for(self, text: str) -> str:
        """An id made from *text* that no case before it has."""
        name, number = slug(text), 1
        while (made := name if number == 1 else f"{name}-{number}") in self.names:
            number += 1
        return made

    def add(self, case: JsonObject, line: int | None = None) -> None:
        """Takes a case. Raises InputError when there are too many."""
        if len(self.cases) >= MAX_IMPORT_CASES:
            raise InputError(f"makes more than {MAX_IMPORT_CASES:,} cases", "lists in vars multiply; import a part of them")
        self.names.add(str(case.get("id")))
        self.cases.append(case)
        self.lines.append(line)


def named_entries(entries: Iterable[tuple[str, JsonObject]], taken: Iterable[str] = ()) -> list[JsonObject]:
    """*entries*, each with a name, with that name as `id`; one that is *taken* or comes again gets a number."""
    used, made = set(taken), []
    for name, entry in entries:
        number, identity = 1, name
        while identity in used:
            number += 1
            identity = f"{name}-{number}"
        used.add(identity)
        made.append({"id": identity, **entry})
    return made


def checked_entry(entry: JsonObject) -> JsonObject:
    """*entry*, when it is one that `validate` accepts and that takes nothing from elsewhere. Raises ImportDropped."""
    key = reference_key(entry)
    if key:
        raise ImportDropped(f"holds the key {key}, which has a meaning of its own here")
    try:
        prepare_entry({"id": "check", **entry}, is_nested=True)
    except ConfigurationError as error:
        raise ImportDropped(f"{error.pointer + ': ' if error.pointer else ''}{error.message}") from None
    return entry


def reference_key(value: Any) -> str:
    """The first key in *value* that would refer to something else; '' when none does."""
    if isinstance(value, dict):
        return next((key for key in value if key in REFERENCE_KEYS), "") or next(filter(None, map(reference_key, value.values())), "")
    return next(filter(None, map(reference_key, value)), "") if isinstance(value, list) else ""


def lift_shared(cases: list[JsonObject]) -> list[JsonObject]:
    """The entries that every one of *cases* has alike; they are taken out of the cases."""
    own = [{entry["id"]: entry for entry in case.get("evaluators", ())} for case in cases]
    shared = [entry for name, entry in own[0].items() if all(json_equal(entry, other.get(name)) for other in own)] if own else []
    names = {entry["id"] for entry in shared}
    for case in cases:
        rest = [entry for entry in case.pop("evaluators", ()) if entry["id"] not in names]
        if rest:
            case["evaluators"] = rest
    return shared


def count_holdout(cases: Iterable[JsonObject]) -> int:
    """How many of *cases* nothing may be shown of."""
    return sum(map(is_holdout, cases))


# --- Files -----------------------------------------------------------------------------


def import_text(path: str) -> str:
    """The text of the file *path*, of bounded size. Raises InputError."""
    size = os.path.getsize(path) if os.path.isfile(path) else 0
    if size > MAX_IMPORT_BYTES:
        raise InputError(f"{shown_path(path)}: is larger than {MAX_IMPORT_BYTES >> 20} MiB", "split it into several files")
    return read_text(path)


def import_json(text: str, shown: str) -> Any:
    """The value of the JSON *text*. Raises InputError that begins with *shown* and the line."""
    try:
        return parse_json(text)
    except JsonError as error:
        raise InputError(f"{shown}:{refused_line(text, error) or 1}: {error.message}", error.hint, "invalid_file") from None


def file_inside(folder: str, name: str) -> str:
    """The path of the file *name* below *folder*. Raises RefusedError when it lies elsewhere, also by way of a link."""
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, name))
    if os.path.isabs(name) or "://" in name or "\0" in name or os.path.commonpath([root, path]) != root:
        raise RefusedError(
            f"{quoted(name)} lies outside the folder of the file that names it, and is not read",
            "put a copy of it into that folder, and name the copy",
            "outside_folder",
        )
    return path

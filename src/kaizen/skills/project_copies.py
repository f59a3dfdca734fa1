"""Copies of the skill folders in a repository: `.agents/skills`, `.claude/skills`.

A copy holds a note, `kaizen-copy.json`: the version it is of, and the digest of each file as it
was copied. A copy whose files are no longer those has been changed by somebody, and is never
overwritten or removed; a folder without a note is not ours.
"""

import os

from kaizen.foundation.errors import InputError, KaizenError
from kaizen.foundation.files import copy_file, discard_unfinished, make_folder, remove_folder
from kaizen.foundation.identity import VERSION
from kaizen.foundation.jsonio import JsonObject, read_json_object, write_json
from kaizen.foundation.text import counted, listed, visible
from kaizen.skills.bundle import differing_files, folder_digests
from kaizen.skills.clients import CURRENT, DIFFERENT, FAILED, INSTALLED, NOT_INSTALLED, REFRESHED, REMOVED, ClientOutcome, is_same_folder

COPY_NOTE = "kaizen-copy.json"
COPY_PLACES = (os.path.join(".agents", "skills"), os.path.join(".claude", "skills"))
EDITED, FOREIGN, ORIGINAL = "changed_by_you", "not_ours", "original"


def copy_folders(project: str, names: "list[str] | dict[str, str]") -> list[tuple[str, str]]:
    """[(name of a skill, where its copy lies in *project*)], all places."""
    return [(name, os.path.join(project, place, name)) for place in COPY_PLACES for name in names]


def copied_skills(project: str) -> list[str]:
    """The names of the skills of which *project* has a copy with our note."""
    found = set()
    for place in COPY_PLACES:
        folder = os.path.join(project, place)
        names = os.listdir(folder) if os.path.isdir(folder) else []
        found |= {name for name in names if os.path.isfile(os.path.join(folder, name, COPY_NOTE))}
    return sorted(found)


def copy_note(folder: str) -> JsonObject | None:
    """The note of the copy *folder*; None when it has none that can be read."""
    try:
        note = read_json_object(os.path.join(folder, COPY_NOTE))
    except InputError:
        return None
    return note if isinstance(note.get("files"), dict) and isinstance(note.get("version"), str) else None


def copy_outcome(folder: str, source: dict[str, str] | None) -> tuple[ClientOutcome, list[str]]:
    """(what the copy *folder* is, compared with the digests *source*; the files that somebody changed). None: nothing to compare with."""
    if not os.path.lexists(folder):
        return ClientOutcome(NOT_INSTALLED, "not there"), []
    note, found = copy_note(folder), folder_digests(folder)
    found.pop(COPY_NOTE, None)
    if found == source:
        return ClientOutcome(CURRENT if note and note["files"] == source else DIFFERENT, f"{VERSION}, up to date", VERSION), []
    if note is None:
        return ClientOutcome(FOREIGN, "is there already and not made by Kaizen; left alone: move it away to have ours"), []
    edited = differing_files(found, note["files"])
    shown = visible(note["version"])
    if edited:
        told = f"{shown}, changed by you and left alone ({listed(map(visible, edited), 3)}); remove the folder to have ours"
        return ClientOutcome(EDITED, told, note["version"]), edited
    if source is None and note["version"] == VERSION:
        return ClientOutcome(CURRENT, f"{shown}, unchanged", note["version"]), []
    return ClientOutcome(DIFFERENT, f"{shown}, not what this program ({VERSION}) brings", note["version"]), []


def install_copy(origin: str, folder: str) -> ClientOutcome:
    """Makes *folder* a copy of the skill *origin*, unless somebody changed it. Raises InputError or RefusedError."""
    if is_same_folder(origin, folder):
        return ClientOutcome(ORIGINAL, "is the skill itself")
    source = folder_digests(origin)
    outcome, _ = copy_outcome(folder, source)
    if outcome.status in (EDITED, FOREIGN, CURRENT):
        return outcome
    before = copy_note(folder) or {"files": {}, "version": ""}
    present = folder_digests(folder)
    replaced = [path for path in {**before["files"], **source} if present.get(path) != source.get(path)]
    for path in replaced:
        target = os.path.join(folder, path)
        discard_unfinished(target)  # ours, and unchanged: copy_outcome has looked
        if path in source:
            make_folder(os.path.dirname(target))
            copy_file(os.path.join(origin, path), target)
    write_json(os.path.join(folder, COPY_NOTE), {"version": VERSION, "files": source})
    if not before["version"]:
        return ClientOutcome(INSTALLED, f"installed {VERSION} ({counted(len(source), 'file')})", VERSION)
    was = f", was {visible(before['version'])}" if before["version"] != VERSION else ""
    return ClientOutcome(REFRESHED, f"refreshed {VERSION} ({counted(len(replaced), 'file')}{was})", VERSION)


def remove_copy(folder: str) -> ClientOutcome:
    """Removes the copy *folder*, unless somebody changed it. Raises InputError."""
    outcome, _ = copy_outcome(folder, None)
    if outcome.status in (EDITED, FOREIGN, NOT_INSTALLED):
        return outcome
    remove_folder(folder)
    return ClientOutcome(REMOVED, "removed")


def failed_copy(error: KaizenError) -> ClientOutcome:
    """The outcome of a copy that could not be written."""
    return ClientOutcome(FAILED, f"failed: {error.message}")

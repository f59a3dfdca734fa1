"""Adding to a history: one writer at a time, whole or not at all.

Under the lock: what a stopped recording left is cleared away, `unfinished.json` says what is
going to be written, then objects, manifest, ledger and champion.json are, in that order, and
`unfinished.json` goes. The moment at which something counts is the renaming of the ledger.
"""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from kaizen.foundation.clock import utc_now
from kaizen.foundation.errors import KaizenError, RefusedError
from kaizen.foundation.files import (
    create_file,
    discard_unfinished,
    list_folder,
    make_folder,
    read_text,
    refuse_link_out,
    remove_folder,
    shown_path,
    write_file,
)
from kaizen.foundation.identity import VERSION
from kaizen.foundation.jsonio import JsonObject, encode_readable, read_json_object, sha256_hex, write_json
from kaizen.foundation.locks import FileLock
from kaizen.foundation.text import listed, quoted, slug
from kaizen.history.archive import OBJECTS_FOLDER, MeasuredSource, Source, entry_object, measured_source, refuse_leaving, store_object
from kaizen.history.ledger import (
    CHAMPION_FILE,
    FORK_HINT,
    HEX_DIGEST,
    HISTORY_VERSION,
    LEDGER_FILE,
    PROMOTION,
    RUN_ID,
    RUNS_FOLDER,
    UNFINISHED_FILE,
    champion_text,
    known_runs,
    refuse_lost_ledger,
    sealed_entry,
    write_ledger,
)
from kaizen.history.reading import History, HistoryRun, load_history, manifest_path

ATTRIBUTES_FILE, LOCK_FILE = ".gitattributes", "history.lock"
ATTRIBUTES = "# The files here are known by their hashes: git must not convert their line ends.\n* -text\n"
RECORDING_PATIENCE = 10.0  # how long a second recording waits for the first
OBJECT_NAME = rf"{OBJECTS_FOLDER}/[0-9a-f]{{2}}/{HEX_DIGEST}(\.gz)?"
HALF_WRITTEN = r"\.[\w.-]{1,200}\.\d+\.tmp"


class RunDraft(NamedTuple):
    """A run about to be recorded: what its manifest says beside id, time and files; the files; the name its id is made from."""

    kind: str
    label: str
    fields: JsonObject
    sources: list[Source]


HistoryCheck = Callable[[History], None]


def record_run(folder: str, draft: RunDraft, check: HistoryCheck, patience: float = RECORDING_PATIENCE) -> tuple[History, HistoryRun]:
    """The history in *folder* with the run of *draft* appended, and that run; *check* refuses by raising, under the lock.

    A history is begun when there is none. Raises RefusedError or InputError; the ledger is then the old one.
    """
    refuse_link_out(folder)
    make_folder(folder)
    with FileLock(os.path.join(folder, LOCK_FILE), "the history", patience):
        history = history_for_writing(folder)
        check(history)
        items = [measured_source(source) for source in draft.sources]
        run_id = f"{len(history.entries) + 1:04d}-{slug(draft.label)}"
        with UnfinishedWriting(history, items, run_id):
            if not history.entries:
                create_file(os.path.join(folder, ATTRIBUTES_FILE), ATTRIBUTES)
            files = [store_object(folder, item) for item in items]
            at = utc_now()
            manifest = {
                "version": HISTORY_VERSION,
                "id": run_id,
                "kind": draft.kind,
                "label": draft.label,
                "recorded_at": at,
                "engine": VERSION,
            }
            text = encode_readable({**manifest, **draft.fields, "files": files}) + "\n"
            path = manifest_path(folder, run_id)
            make_folder(os.path.dirname(path))
            write_file(path, text)
            entry = sealed_entry(history.entries, at, draft.kind, run_id, manifest=sha256_hex(text))
            write_ledger(folder, [*history.entries, entry])
    after = load_history(folder)
    return after, after.runs[run_id]


def record_promotion(folder: str, run_id: str, decision: Source, stated: JsonObject, check: HistoryCheck) -> History:
    """The history in *folder* with a promotion of *run_id* appended that rests on the file *decision*; *check* as above."""
    with FileLock(os.path.join(folder, LOCK_FILE), "the history", RECORDING_PATIENCE):
        history = history_for_writing(folder)
        check(history)
        item = measured_source(decision)
        champion = history.champion()
        with UnfinishedWriting(history, [item], ""):
            fields = {"file": store_object(folder, item), "stated": stated}
            replaces = champion.id if champion else None
            entry = sealed_entry(history.entries, utc_now(), PROMOTION, run_id, decision=fields, replaces=replaces)
            write_ledger(folder, [*history.entries, entry])
    return load_history(folder)


def history_for_writing(folder: str) -> History:
    """The history in *folder*, mended after a recording that was stopped; an empty one when there is no ledger yet.

    Raises RefusedError when it is not whole: nothing is appended to a history that cannot be trusted.
    """
    if not os.path.lexists(os.path.join(folder, LEDGER_FILE)):
        refuse_other_folder(folder)
    for name in (RUNS_FOLDER, OBJECTS_FOLDER):
        refuse_leaving(folder, os.path.join(folder, name))
    sweep_half_written(folder)
    clear_unfinished(folder)
    if not os.path.lexists(os.path.join(folder, LEDGER_FILE)):
        refuse_lost_ledger(folder)
        return History(folder, [], {})
    history = load_history(folder)
    broken = next((run for run in history.runs.values() if run.problem), None)
    if broken:
        raise RefusedError(broken.problem, "run: kaizen history validate", "hash_mismatch")
    strangers = [name for name in known_runs(folder) if name not in history.runs]
    if strangers:
        message = (
            f"{shown_path(os.path.join(folder, RUNS_FOLDER))}: holds runs that are not in the ledger: {listed(map(quoted, strangers), 5)}"
        )
        hint = f"when they come from another branch, {FORK_HINT}; when not, the end of the ledger is gone"
        raise RefusedError(message, hint, "unknown_runs")
    refuse_other_champion(history)
    return history


def refuse_other_folder(folder: str) -> None:
    """Raises RefusedError when *folder*, which holds no ledger, holds anything that no recording has begun."""
    ours = (ATTRIBUTES_FILE, LOCK_FILE, UNFINISHED_FILE, CHAMPION_FILE, RUNS_FOLDER, OBJECTS_FOLDER)
    others = [name for name in list_folder(folder) if name not in ours and not re.fullmatch(HALF_WRITTEN, name)]
    if others:
        message = f"{shown_path(folder)}: is no history, it holds {listed(map(quoted, others), 3)}; nothing was written"
        raise RefusedError(message, "name an empty or new folder with --history", "no_history")


def refuse_other_champion(history: History) -> None:
    """Raises RefusedError when champion.json is not what the ledger says: then the ledger may have lost its last entries."""
    path = os.path.join(history.folder, CHAMPION_FILE)
    if not os.path.isfile(path) or read_text(path) != champion_text(history.entries):
        message = f"{shown_path(path)}: does not agree with the ledger of {len(history.entries)} entries"
        raise RefusedError(message, "run: kaizen history validate", "champion_mismatch")


# --- What a stopped recording leaves ---------------------------------------------------


class UnfinishedWriting:
    """Context manager: says beforehand what is going to be written, and clears it away when that did not come to its end."""

    def __init__(self, history: History, items: list[MeasuredSource], run_id: str) -> None:
        self.folder = history.folder
        self.path = os.path.join(history.folder, UNFINISHED_FILE)
        fresh = sorted({item.object_name() for item in items} - kept_objects(history))
        self.document = {"version": HISTORY_VERSION, "entries": len(history.entries), "run": run_id, "objects": fresh}

    def __enter__(self) -> None:
        write_json(self.path, self.document)

    def __exit__(self, kind: type[BaseException] | None, *others: object) -> None:
        if kind is None:
            discard_unfinished(self.path)
        else:
            with suppress(KaizenError):  # the next recording does it
                clear_unfinished(self.folder)


def kept_objects(history: History) -> set[str]:
    """Names of the objects that the runs and promotions of *history* rest on."""
    files = [entry for run in history.runs.values() for entry in run.manifest.get("files", [])]
    files += [entry["decision"]["file"] for entry in history.entries if entry["kind"] == PROMOTION]
    return set(map(entry_object, files))


def clear_unfinished(folder: str) -> None:
    """Takes away what a stopped recording left in *folder*, or finishes it where the ledger has its entry already."""
    path = os.path.join(folder, UNFINISHED_FILE)
    if not os.path.lexists(path):
        return
    document = read_json_object(path)
    objects, run_id, number = document.get("objects"), document.get("run"), document.get("entries")
    if not isinstance(objects, list) or not isinstance(run_id, str) or not isinstance(number, int):
        raise RefusedError(f"{shown_path(path)}: is not what a recording writes", "look at it, then remove it", "invalid_file")
    has_ledger = os.path.lexists(os.path.join(folder, LEDGER_FILE))
    history = load_history(folder) if has_ledger else History(folder, [], {})
    if has_ledger and number + 1 == len(history.entries):
        write_file(os.path.join(folder, CHAMPION_FILE), champion_text(history.entries))
    kept = kept_objects(history)
    for name in objects:
        if isinstance(name, str) and re.fullmatch(OBJECT_NAME, name) and name not in kept:
            refuse_leaving(folder, os.path.join(folder, name))
            discard_unfinished(os.path.join(folder, *name.split("/")))
            sweep_half_written(os.path.join(folder, os.path.dirname(name)))
    if re.fullmatch(RUN_ID, run_id):
        place = os.path.join(folder, RUNS_FOLDER, run_id)
        refuse_leaving(folder, place)
        if run_id in history.runs:
            sweep_half_written(place)
        elif os.path.isdir(place) and int(run_id.split("-")[0]) > len(history.entries):
            remove_folder(place)
    discard_unfinished(path)


def sweep_half_written(folder: str) -> None:
    """Removes the half-written files in *folder*; the caller holds the history's lock."""
    if not os.path.isdir(folder):
        return
    for name in list_folder(folder):
        if re.fullmatch(HALF_WRITTEN, name) and not name.startswith(".dashboard."):
            discard_unfinished(os.path.join(folder, name))

"""The store of runs: one small interface, and its implementation in files.

    runs/<run>/run.json        what the run is, its state and result; written anew beside its place and renamed
    runs/<run>/items.jsonl     a line for each answer to an (item, trial, pass), appended, synced at most 200 ms later
    runs/<run>/events.jsonl    what happened to the run, each line with the hash of the one before, synced at once
    runs/<run>/out.log err.log what the eval printed, capped
    runs/<run>/attempt-N/      what these files were before the run was restarted

Nobody else knows these paths. A run that is recorded as planned or running, but that no process
holds, was interrupted: `read` says so.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kaizen.foundation.chain import ChainLog, mend_torn_line, read_chain
from kaizen.foundation.errors import InputError
from kaizen.foundation.files import copy_file, list_folder, make_folder, make_new_folder, open_for_reading, shown_path
from kaizen.foundation.journals import AppendLog, torn_tail
from kaizen.foundation.jsonio import JsonObject, parse_line, read_json_object, write_json
from kaizen.foundation.locks import FileLock, is_locked
from kaizen.foundation.text import did_you_mean, quoted
from kaizen.lab.workspace import Workspace, make_store
from kaizen.runs.journal import move_file

PLANNED, RUNNING, DONE, INCOMPLETE = "planned", "running", "completed", "incomplete"
CRASHED, TIMED_OUT, BROKEN_OFF, TAINTED = "crashed", "timed_out", "interrupted", "tainted"
RUN_STATES = (PLANNED, RUNNING, DONE, INCOMPLETE, CRASHED, TIMED_OUT, BROKEN_OFF, TAINTED)
ANSWERED = ("ok", "fail_error")  # statuses that are a measurement
RUN_NAME = re.compile(r"r\d{4,9}\Z")
RUN_DOCUMENT, ITEMS_FILE, EVENTS_FILE = "run.json", "items.jsonl", "events.jsonl"
RUN_LOCK = "lock"
# What a run has only once it has been started, and no longer when it is restarted.
RUN_RESULT_FIELDS = ("started_at", "ended_at", "counts", "result", "cost_usd", "reason", "pid", "metrics", "seconds")
Key = tuple[str, int, int]  # item, trial, pass


def item_key(line: JsonObject) -> Key:
    """(item, trial, pass) of a line of items.jsonl."""
    return line["item"], line["trial"], line["pass"]


class RunWriter:
    """Writes one run, for the one process that holds it."""

    notes: list[str]  # what was mended when the run was opened

    def document(self) -> JsonObject:
        """run.json as it is."""
        raise NotImplementedError

    def update(self, **fields: Any) -> None:
        """Changes fields of run.json."""
        raise NotImplementedError

    def event(self, kind: str, **body: Any) -> None:
        """Appends an event, on disk at once."""
        raise NotImplementedError

    def item(self, line: JsonObject) -> None:
        """Appends an answer, on disk at most 200 ms later when `sync_if_due` is called every 100 ms."""
        raise NotImplementedError

    def sync_if_due(self) -> None:
        """Brings answers that have waited 200 ms to the disk."""
        raise NotImplementedError

    def file(self, name: str) -> str:
        """Path of a file beside the journals, for logs and the eval's material."""
        raise NotImplementedError

    def finish(self, state: str, **fields: Any) -> None:
        """Syncs all answers, appends the event `ended`, and makes *state* the state of the run."""
        raise NotImplementedError


class RunStore:
    """All runs of a workspace."""

    def ids(self) -> list[str]:
        """The ids of all runs, oldest first."""
        raise NotImplementedError

    def create(self, document: JsonObject) -> str:
        """Records a planned run of *document*, without its id; returns the new id, which no other process can have got."""
        raise NotImplementedError

    def read(self, run: str) -> JsonObject:
        """run.json, its state `interrupted` when nobody is at it any more. Raises InputError (`no_run`)."""
        raise NotImplementedError

    def items(self, run: str) -> Iterator[JsonObject]:
        """The lines of items.jsonl, in the order written; a torn last line is left out. Raises InputError."""
        raise NotImplementedError

    def events(self, run: str) -> list[JsonObject]:
        """The events. Raises RefusedError (`broken_chain`)."""
        raise NotImplementedError

    def writing(self, run: str) -> Any:
        """Context manager: a RunWriter. Raises RefusedError when another process holds the run, or its journal is broken."""
        raise NotImplementedError

    def file(self, run: str, name: str) -> str:
        """Path of the file *name* beside the journals of *run*, to read or, for whoever holds the run, to write."""
        raise NotImplementedError

    def restart(self, run: str) -> None:
        """Moves the journals of *run* to `attempt-N` and makes it planned again; nothing is deleted."""
        raise NotImplementedError


class FolderWriter(RunWriter):
    """Writes a run into its folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.chain = ChainLog(self.file(EVENTS_FILE))
        self.notes = [note for note in (self.chain.mended, mend_torn_line(self.file(ITEMS_FILE))) if note]
        self.answers = AppendLog(self.file(ITEMS_FILE))
        self.fields = read_json_object(self.file(RUN_DOCUMENT))

    def document(self) -> JsonObject:
        return self.fields

    def update(self, **fields: Any) -> None:
        self.fields = {**self.fields, **fields}
        write_json(self.file(RUN_DOCUMENT), self.fields)

    def event(self, kind: str, **body: Any) -> None:
        self.chain.append(kind, body)

    def item(self, line: JsonObject) -> None:
        self.answers.append(line)

    def sync_if_due(self) -> None:
        self.answers.sync_if_due()

    def file(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def finish(self, state: str, **fields: Any) -> None:
        self.answers.sync()
        self.event("ended", state=state, reason=fields.get("reason"))
        self.update(state=state, pid=None, **fields)

    def close(self) -> None:
        """Closes the journals."""
        self.chain.close()
        self.answers.close()


class FolderStore(RunStore):
    """Runs in the folder of the workspace's store."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.runs = os.path.join(workspace.store_folder, "runs")

    def folder(self, run: str) -> str:
        """The folder of *run*. Raises InputError (`no_run`) when there is no such run."""
        path = os.path.join(self.runs, run)
        if not RUN_NAME.match(run) or not os.path.isfile(os.path.join(path, RUN_DOCUMENT)):
            raise InputError(f"there is no run {quoted(run)}", did_you_mean(run, self.ids()) or "kaizen log lists the runs", "no_run")
        return path

    def ids(self) -> list[str]:
        names = list_folder(self.runs) if os.path.isdir(self.runs) else []
        known = [name for name in names if RUN_NAME.match(name) and os.path.isfile(os.path.join(self.runs, name, RUN_DOCUMENT))]
        return sorted(known, key=lambda name: int(name[1:]))

    def create(self, document: JsonObject) -> str:
        make_store(self.workspace)
        make_folder(self.runs)
        number = max((int(name[1:]) for name in list_folder(self.runs) if RUN_NAME.match(name)), default=0) + 1
        while not make_new_folder(os.path.join(self.runs, f"r{number:04d}")):
            number += 1
        run = f"r{number:04d}"
        write_json(os.path.join(self.runs, run, RUN_DOCUMENT), {"version": 1, "id": run, **document, "state": PLANNED, "attempt": 1})
        return run

    def read(self, run: str) -> JsonObject:
        folder = self.folder(run)
        found = read_json_object(os.path.join(folder, RUN_DOCUMENT))
        if found.get("state") in (PLANNED, RUNNING) and not is_locked(os.path.join(folder, RUN_LOCK)):
            found["state"] = BROKEN_OFF
        return found

    def items(self, run: str) -> Iterator[JsonObject]:
        path = os.path.join(self.folder(run), ITEMS_FILE)
        if not os.path.exists(path):
            return
        left, shown = torn_tail(path)[0], shown_path(path)
        with open_for_reading(path) as stream:
            for number, raw in enumerate(stream, 1):
                left -= len(raw)
                if left < 0:
                    return
                yield parse_line(raw, f"{shown}:{number}")

    def events(self, run: str) -> list[JsonObject]:
        return read_chain(os.path.join(self.folder(run), EVENTS_FILE))

    def file(self, run: str, name: str) -> str:
        return os.path.join(self.folder(run), name)

    @contextmanager
    def writing(self, run: str) -> Iterator[RunWriter]:
        folder = self.folder(run)
        with FileLock(os.path.join(folder, RUN_LOCK), f"run {run}"):
            writer = FolderWriter(folder)
            try:
                yield writer
            finally:
                writer.close()

    def restart(self, run: str) -> None:
        folder = self.folder(run)
        with FileLock(os.path.join(folder, RUN_LOCK), f"run {run}"):
            document = read_json_object(os.path.join(folder, RUN_DOCUMENT))
            attempt = int(document["attempt"])
            old = os.path.join(folder, f"attempt-{attempt}")
            make_new_folder(old)  # it is there when a crash broke off an earlier restart, which goes on here
            if not os.path.exists(os.path.join(old, RUN_DOCUMENT)):
                copy_file(os.path.join(folder, RUN_DOCUMENT), os.path.join(old, RUN_DOCUMENT))
            for name in list_folder(folder):
                if name not in (RUN_DOCUMENT, RUN_LOCK) and not name.startswith(("attempt-", ".")):
                    move_file(os.path.join(folder, name), os.path.join(old, name))
            kept = {key: value for key, value in document.items() if key not in RUN_RESULT_FIELDS}
            write_json(os.path.join(folder, RUN_DOCUMENT), {**kept, "state": PLANNED, "attempt": attempt + 1})


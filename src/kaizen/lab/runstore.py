"""The store of runs: one small interface, and its implementation in files.

    runs/<run>/run.json        what the run is, its state and result; written anew beside its place and renamed
    runs/<run>/items.jsonl     a line for each answer to an (item, trial, pass), appended, synced at most 200 ms later
    runs/<run>/events.jsonl    what happened to the run, each line with the hash of the one before, synced at once
    runs/<run>/out.log err.log what the eval printed, capped
    runs/<run>/attempt-N/      what these files were before the run was restarted

Nobody else knows these paths. A run that is recorded as planned or running, but that no process
holds, was interrupted: `read` says so.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kaizen.foundation.chain import ChainLog, last_event, mend_torn_line, read_chain
from kaizen.foundation.errors import InputError, RefusedError
from kaizen.foundation.files import copy_file, list_folder, make_folder, make_new_folder, open_for_reading, shown_path
from kaizen.foundation.journals import AppendLog, torn_tail
from kaizen.foundation.jsonio import JsonObject, canonical_json, parse_line, read_json_object, sha256_hex, write_json
from kaizen.foundation.locks import FileLock, is_locked
from kaizen.foundation.shapes import (
    ANY_TEXT,
    BOOLEAN,
    COUNT,
    OBJECT,
    POSITIVE_COUNT,
    TEXT,
    Kind,
    check_fields,
    list_of,
    one_of,
    or_null,
)
from kaizen.foundation.text import counted, did_you_mean, quoted, visible
from kaizen.lab.workspace import Workspace, make_store
from kaizen.runs.journal import move_file

PLANNED, RUNNING, DONE, INCOMPLETE = "planned", "running", "completed", "incomplete"
CRASHED, TIMED_OUT, BROKEN_OFF, TAINTED = "crashed", "timed_out", "interrupted", "tainted"
RUN_STATES = (PLANNED, RUNNING, DONE, INCOMPLETE, CRASHED, TIMED_OUT, BROKEN_OFF, TAINTED)
ITEM_STATUSES = ("ok", "fail_error", "infra_error", "timeout")
ANSWERED = ITEM_STATUSES[:2]  # statuses that are a measurement
RUN_NAME = re.compile(r"r\d{4,9}\Z")
RUN_DOCUMENT, ITEMS_FILE, EVENTS_FILE = "run.json", "items.jsonl", "events.jsonl"
RUN_LOCK = "lock"
OWN_FILE_HINT = "only Kaizen writes this file: put back the one that it wrote"
# What a run has only once it has been started, and no longer when it is restarted.
RUN_RESULT_FIELDS = ("started_at", "ended_at", "counts", "result", "cost_usd", "reason", "pid", "metrics", "seconds", "items")
Key = tuple[str, int, int]  # item, trial, pass
MEASURED = Kind(lambda value: isinstance(value, (int, float)) and not isinstance(value, bool), "a number")
RUN_FIELDS = {
    **dict.fromkeys(("id", "system", "variant", "created_at", "verdict", "separation"), TEXT),
    **dict.fromkeys(("title", "description", "hypothesis", "message"), ANY_TEXT),
    **dict.fromkeys(("diagnostic", "limited"), BOOLEAN),
    **dict.fromkeys(("commit", "hashes", "population", "metric"), OBJECT),
    **dict.fromkeys(("counts", "result", "items", "metrics", "pid"), or_null(OBJECT)),
    **dict.fromkeys(("seconds", "cost_usd"), or_null(MEASURED)),
    **dict.fromkeys(("passes", "attempt"), POSITIVE_COUNT),
    "state": one_of(*RUN_STATES),
    "reason": or_null(TEXT),
    "started_at": or_null(TEXT),
    "tree": TEXT,
    "mark": TEXT,
    "seed": COUNT,
    "campaign": OBJECT,
}
REQUIRED_RUN_FIELDS = (
    *("id", "system", "variant", "created_at", "verdict", "separation", "title", "description", "hypothesis", "diagnostic", "limited"),
    *("commit", "hashes", "population", "metric", "passes", "attempt", "state", "tree", "mark", "seed"),
)
WHOLE = Kind(lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0, "a whole number, 0 or more")
RUN_PARTS = {
    "commit": {"hash": TEXT, "branch": or_null(TEXT)},
    "hashes": {"dataset": TEXT, "eval": TEXT, "system": TEXT, "locked": OBJECT},
    "population": {"selected_item_ids": list_of(TEXT, "ids")},
    "metric": {"name": TEXT, "aggregation": TEXT, "direction": one_of("higher", "lower"), "percentile": MEASURED},
    "result": {"status": one_of("available", "unavailable"), "n": WHOLE, "planned": WHOLE, "value": MEASURED, "reason": TEXT},
    "items": {"lines": WHOLE, "sha256": ANY_TEXT},
}
ITEM_FIELDS = {
    "item": TEXT,
    "status": one_of(*ITEM_STATUSES),
    **dict.fromkeys(("trial", "pass", "attempt"), POSITIVE_COUNT),
    **dict.fromkeys(("score", "cost_usd", "latency_ms"), or_null(MEASURED)),
    "metrics": OBJECT,
    "reason": TEXT,
}
REQUIRED_ITEM_FIELDS = ("item", "trial", "pass", "attempt", "status", "score", "metrics", "cost_usd", "latency_ms")


def run_passes(document: JsonObject) -> range:
    """The numbers of the passes of a run: from 1, or in a campaign from where an earlier run ended."""
    first = int(document.get("campaign", {}).get("pass_from", 1))
    return range(first, first + int(document["passes"]))


def ended_hash(document: JsonObject) -> str:
    """SHA-256 of what run.json says once the run has ended, but for who was at it and the verdict."""
    return sha256_hex(canonical_json({key: value for key, value in document.items() if key not in ("pid", "verdict")}))


def item_key(line: JsonObject) -> Key:
    """(item, trial, pass) of a line of items.jsonl."""
    return line["item"], line["trial"], line["pass"]


def other_answers(shown: str, what: str) -> RefusedError:
    """The refusal of answers that are not those which were recorded when the run ended."""
    hint = "put back the file that Kaizen wrote, or run that commit anew"
    return RefusedError(f"{shown}: is not what it was when the run ended: {what}", hint, "journal_changed")


def check_run_document(document: JsonObject, run: str, shown: str) -> None:
    """Raises InputError, with *shown* in front, unless *document* has the fields of run.json that *run* must have."""

    def report(pointer: str, message: str, hint: str) -> None:
        raise InputError(f"{shown}#{visible(pointer, 80)}: {message}", OWN_FILE_HINT, "unfit_run")

    check_fields(document, RUN_FIELDS, "", report, REQUIRED_RUN_FIELDS)
    for name, fields in RUN_PARTS.items():
        if name in document and document[name] is not None:
            required = [key for key in fields if key not in ("value", "reason", "percentile")]
            check_fields(document[name], fields, "/" + name, report, required)
    result = document.get("result")
    if result is not None and result.get({"available": "value"}.get(result["status"], "reason")) is None:
        report("/result", "has neither a value nor a reason", "")
    if document["state"] == DONE and document.get("items") is None:
        report("/items", "is missing, although the run is completed", "")
    if document["id"] != run:
        report("/id", f"names another run than its folder, {run}", "")


def checked_item(line: JsonObject, place: str) -> JsonObject:
    """*line* of items.jsonl. Raises InputError, with *place* in front, unless it has the fields of an answer."""

    def report(pointer: str, message: str, hint: str) -> None:
        raise InputError(f"{place}: {visible(pointer, 80)} {message}", OWN_FILE_HINT, "unfit_run")

    check_fields(line, ITEM_FIELDS, "", report, REQUIRED_ITEM_FIELDS)
    return line


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

    def sealed_items(self) -> JsonObject | None:
        """{lines, sha256} of all answers, as they were written and are; None when they are something else."""
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


def digested_lines(path: str) -> "tuple[int, hashlib._Hash]":
    """(how many lines, SHA-256) of the file *path*. Raises InputError."""
    digest, count = hashlib.sha256(), 0
    with open_for_reading(path) as stream:
        for line in stream:
            digest.update(line)
            count += 1
    return count, digest


class FolderWriter(RunWriter):
    """Writes a run into its folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.chain = ChainLog(self.file(EVENTS_FILE))
        self.notes = [note for note in (self.chain.mended, mend_torn_line(self.file(ITEMS_FILE))) if note]
        self.answers = AppendLog(self.file(ITEMS_FILE))
        self.lines, self.digest = digested_lines(self.file(ITEMS_FILE))
        self.fields = read_json_object(self.file(RUN_DOCUMENT))

    def document(self) -> JsonObject:
        return self.fields

    def update(self, **fields: Any) -> None:
        self.fields = {**self.fields, **fields}
        write_json(self.file(RUN_DOCUMENT), self.fields)

    def event(self, kind: str, **body: Any) -> None:
        self.chain.append(kind, body)

    def item(self, line: JsonObject) -> None:
        self.digest.update(self.answers.append(line))
        self.lines += 1

    def sync_if_due(self) -> None:
        self.answers.sync_if_due()

    def file(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def sealed_items(self) -> JsonObject | None:
        seal = {"lines": self.lines, "sha256": self.digest.hexdigest()}
        try:
            lines, digest = digested_lines(self.file(ITEMS_FILE))
        except InputError:
            return None
        return seal if seal == {"lines": lines, "sha256": digest.hexdigest()} else None

    def finish(self, state: str, **fields: Any) -> None:
        self.answers.sync()
        ended = {**self.fields, "state": state, "pid": None, **fields}
        self.event("ended", state=state, reason=fields.get("reason"), sha256=ended_hash(ended))
        self.update(**ended)

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
        path = os.path.join(folder, RUN_DOCUMENT)
        found = read_json_object(path)
        check_run_document(found, run, shown_path(path))
        if found["state"] not in (PLANNED, RUNNING):
            self.check_end(found, shown_path(path))
        elif not is_locked(os.path.join(folder, RUN_LOCK)):
            found["state"] = BROKEN_OFF
        return found

    def check_end(self, document: JsonObject, shown: str) -> None:
        """Raises RefusedError (`result_changed`) unless the run ended as its run.json, called *shown*, says."""
        folder = self.folder(document["id"])
        events = os.path.join(folder, EVENTS_FILE)
        moved = os.path.join(folder, f"attempt-{document['attempt']}")
        if document["state"] != DONE and not os.path.exists(events) and os.path.isdir(moved):
            return  # a restart that was broken off
        last = last_event(events)
        if last and last["type"] != "ended" and document["state"] != DONE:  # whoever went on with it has not said so yet
            last = next((event for event in reversed(read_chain(events)) if event["type"] == "ended"), None)
        if last is None or last["type"] != "ended" or last["body"].get("sha256") != ended_hash(document):
            message = f"{shown}: does not say what {EVENTS_FILE} recorded when the run ended"
            raise RefusedError(message, OWN_FILE_HINT, "result_changed")

    def items(self, run: str) -> Iterator[JsonObject]:
        path, document = os.path.join(self.folder(run), ITEMS_FILE), self.read(run)
        seal = document.get("items") or {"lines": 0}
        left, shown, number, digest = (torn_tail(path)[0] if os.path.exists(path) else 0), shown_path(path), 0, hashlib.sha256()
        if left:
            with open_for_reading(path) as stream:
                for raw in stream:
                    left -= len(raw)
                    if left < 0:
                        break
                    number += 1
                    digest.update(raw)
                    if number == seal["lines"] and digest.hexdigest() != seal["sha256"]:
                        raise other_answers(shown, f"up to line {number:,}")
                    yield checked_item(parse_line(raw, f"{shown}:{number}"), f"{shown}:{number}")
        if number < seal["lines"] or number > seal["lines"] and document["state"] == DONE:
            raise other_answers(shown, f"has {counted(number, 'line')}, and had {seal['lines']:,}")

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


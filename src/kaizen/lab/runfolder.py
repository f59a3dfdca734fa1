"""The store of runs in files of the workspace.

    runs/<run>/run.json        what the run is, its state and result; written anew beside its place and renamed
    runs/<run>/items.jsonl     a line for each answer to an (item, trial, pass), appended, synced at most 200 ms later
    runs/<run>/events.jsonl    what happened to the run, each line with the hash of the one before, synced at once
    runs/<run>/out.log err.log what the eval printed, capped
    runs/<run>/attempt-N/      what these files were before the run was restarted

Nobody else knows these paths; programs that need files get folders of their own (`locked_folder`,
`material`, `evidence_folder`). A run that is recorded as planned or running, but that no process
holds, was interrupted: `read` says so. The event `ended` has what the run ended with and the hash
of run.json: `read` refuses a run.json that says something else.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kaizen.foundation.chain import ChainLog, last_event, mend_torn_line, read_chain
from kaizen.foundation.errors import InputError, RefusedError
from kaizen.foundation.files import (
    copy_file,
    list_folder,
    make_folder,
    make_new_folder,
    open_for_appending,
    open_for_reading,
    read_bytes,
    shown_path,
    write_all,
    write_file,
)
from kaizen.foundation.journals import AppendLog, torn_tail
from kaizen.foundation.jsonio import (
    JsonError,
    JsonObject,
    decode_line,
    encode_readable,
    parse_line,
    read_json_object,
    sha256_hex,
    write_json,
)
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
from kaizen.lab.runstore import (
    BROKEN_OFF,
    DONE,
    ITEM_STATUSES,
    PLANNED,
    RUN_RESULT_FIELDS,
    RUN_STATES,
    RUNNING,
    TAINTED,
    LogSink,
    RunStore,
    RunWriter,
)
from kaizen.lab.workspace import Workspace, make_store
from kaizen.runs.journal import move_file

RUN_NAME = re.compile(r"r[0-9]{4,}\Z")
RUN_DOCUMENT, ITEMS_FILE, EVENTS_FILE = "run.json", "items.jsonl", "events.jsonl"
RUN_LOCK, LOCKED = "lock", "locked"
ENDED, UNENDED = "ended", (PLANNED, RUNNING)
OWN_FILE_HINT = "only Kaizen writes this file: put back the one that it wrote"
RUN_RESULT_FIELDS_TOLD = {"counts", "result", "items", "metrics", "cost_usd"}
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


def other_answers(shown: str, what: str) -> RefusedError:
    """The refusal of answers that are not those which were recorded when the run ended."""
    hint = "put back the file that Kaizen wrote, or run that commit anew"
    return RefusedError(f"{shown}: is not what it was when the run ended: {what}", hint, "journal_changed")


def check_run_document(document: JsonObject, run: str, path: str) -> None:
    """Raises InputError, naming *path*, unless *document* has the fields of run.json that *run* must have."""

    def report(pointer: str, message: str, hint: str) -> None:
        raise InputError(f"{shown_path(path)}#{visible(pointer, 80)}: {message}", OWN_FILE_HINT, "unfit_run")

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


def refuse_other_record(document: JsonObject, record: str, ended: JsonObject | None, path: str) -> None:
    """Raises RefusedError, naming *path*, unless *document*, of a run that has ended, is what the event *ended* tells.

    *record* is the SHA-256 of it as it stands there. A restart that a crash broke off has taken the result away already: nothing is
    claimed, and only the state counts.
    """
    told = ended["body"] if ended else {"state": document["state"]}
    if told.get("record") == record:
        return
    claims_nothing = document["state"] != DONE and not RUN_RESULT_FIELDS_TOLD & document.keys()
    if claims_nothing and told.get("state") == document["state"]:
        return
    differing = sorted(key for key in told if key != "record" and document.get(key) != told[key]) or ["what was planned"]
    what = f"other {', '.join(differing)} than when the run ended" if ended else "there is no event that the run ended"
    raise RefusedError(f"{shown_path(path)}: is not what Kaizen wrote: {what}", OWN_FILE_HINT, "record_changed")


class FileSink(LogSink):
    """Appends to the file *path*."""

    def __init__(self, path: str) -> None:
        self.path, self.descriptor = path, open_for_appending(path)

    def write(self, data: bytes) -> None:
        write_all(self.descriptor, data, self.path)

    def close(self) -> None:
        os.close(self.descriptor)


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
        """Path of a file of the run."""
        return os.path.join(self.folder, name)

    def log(self, name: str) -> LogSink:
        return FileSink(self.file(name))

    def keep_patch(self, patch: str) -> None:
        write_file(self.file("diff.patch"), patch.encode("utf-8", "surrogateescape"))

    def locked_folder(self) -> str:
        return self.file(LOCKED)

    def material(self, name: str) -> str:
        make_folder(self.file(name))
        return self.file(name)

    def shown(self, name: str) -> str:
        return shown_path(self.file(name))

    def sealed_items(self) -> JsonObject | None:
        seal = {"lines": self.lines, "sha256": self.digest.hexdigest()}
        try:
            lines, digest = digested_lines(self.file(ITEMS_FILE))
        except InputError:
            return None
        return seal if seal == {"lines": lines, "sha256": digest.hexdigest()} else None

    def finish(self, state: str, **fields: Any) -> None:
        self.answers.sync()
        told = {"state": state, "reason": None, **fields}
        self.event(ENDED, **told, record=sha256_hex(encode_readable({**self.fields, "pid": None, **told}) + "\n"))
        self.update(pid=None, **told)

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
            meant = did_you_mean(run, self.ids()) if run[:1] == "r" else ""
            raise InputError(f"there is no run {quoted(run)}", meant or "kaizen log lists the runs", "no_run")
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
        data = read_bytes(path)
        try:
            found = decode_line(data)
        except JsonError:
            found = read_json_object(path)  # says where
        check_run_document(found, run, path)
        ended, is_last = last_event(os.path.join(folder, EVENTS_FILE), ENDED)
        is_open = found["state"] in UNENDED
        try:
            if not is_open:
                refuse_other_record(found, sha256_hex(data), ended, path)
        except RefusedError:
            is_open = True
            if not is_locked(os.path.join(folder, RUN_LOCK)):
                raise
        if is_open and not is_locked(os.path.join(folder, RUN_LOCK)):
            found["state"] = TAINTED if ended and is_last and ended["body"].get("state") == TAINTED else BROKEN_OFF
        return {key: value for key, value in found.items() if key not in ("result", "counts")} if is_open else found

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

    def locked_folder(self, run: str) -> str:
        return os.path.join(self.folder(run), LOCKED)

    def evidence_folder(self, run: str) -> str:
        return self.folder(run)

    @contextmanager
    def writing(self, run: str) -> Iterator[RunWriter]:
        folder = self.folder(run)
        with FileLock(os.path.join(folder, RUN_LOCK), f"run {run}"):
            writer = FolderWriter(folder)
            try:
                yield writer
            except (InputError, OSError):
                if os.path.isfile(writer.file(RUN_DOCUMENT)):
                    raise
                message = f"{shown_path(folder)}: somebody removed the folder of {run} while the run was at work: nothing of it is left"
                raise RefusedError(message, "start another run; an eval must leave kaizen/.kaizen alone", "run_removed") from None
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
            kept = {key: value for key, value in document.items() if key not in RUN_RESULT_FIELDS}
            write_json(os.path.join(folder, RUN_DOCUMENT), kept)  # claims nothing from here on, wherever a crash breaks this off
            for name in list_folder(folder):
                if name not in (RUN_DOCUMENT, RUN_LOCK) and not name.startswith(("attempt-", ".")):
                    move_file(os.path.join(folder, name), os.path.join(old, name))
            write_json(os.path.join(folder, RUN_DOCUMENT), {**kept, "state": PLANNED, "attempt": attempt + 1})


def run_store(workspace: Workspace) -> RunStore:
    """The store of the runs of *workspace*."""
    return FolderStore(workspace)

"""The store of runs as the lab sees it: an interface, behind which runs may lie anywhere.

A run is a document (run.json), answers, chained events, logs, a patch, and folders for programs that need files: the locked copy,
material, the engine's evidence. lab/runfolder.py keeps them in files.
"""

from collections.abc import Iterator
from typing import Any

from kaizen.foundation.jsonio import JsonObject

PLANNED, RUNNING, DONE, INCOMPLETE = "planned", "running", "completed", "incomplete"
CRASHED, TIMED_OUT, BROKEN_OFF, TAINTED = "crashed", "timed_out", "interrupted", "tainted"
RUN_STATES = (PLANNED, RUNNING, DONE, INCOMPLETE, CRASHED, TIMED_OUT, BROKEN_OFF, TAINTED)
ITEM_STATUSES = ("ok", "fail_error", "infra_error", "timeout")
ANSWERED = ITEM_STATUSES[:2]  # statuses that are a measurement
# What a run has only once it has been started, and no longer when it is restarted.
RUN_RESULT_FIELDS = ("started_at", "ended_at", "counts", "result", "cost_usd", "reason", "pid", "metrics", "seconds", "items")
Key = tuple[str, int, int]  # item, trial, pass


def run_passes(document: JsonObject) -> range:
    """The numbers of the passes of a run: from 1, or in a campaign from where an earlier run ended."""
    first = int(document.get("campaign", {}).get("pass_from", 1))
    return range(first, first + int(document["passes"]))


def item_key(line: JsonObject) -> Key:
    """(item, trial, pass) of a line of items.jsonl."""
    return line["item"], line["trial"], line["pass"]


class LogSink:
    """Where what a program printed is kept; `write` returns when it is handed to the system."""

    def write(self, data: bytes) -> None:
        """Appends *data*."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends it."""
        raise NotImplementedError


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

    def log(self, name: str) -> LogSink:
        """The log *name* of the run (out.log, err.log), to append to."""
        raise NotImplementedError

    def keep_patch(self, patch: str) -> None:
        """Keeps the text of what the variant changes; bytes that are not UTF-8 are surrogates in it."""
        raise NotImplementedError

    def locked_folder(self) -> str:
        """Absolute path of the local folder for the locked copy, which may not be there yet.

        Programs run from it while the run is held, so that it is always the same folder of this machine's file system.
        """
        raise NotImplementedError

    def material(self, name: str) -> str:
        """Absolute path of the local folder *name* of the run, made when it is not there, for files that programs read while it is held."""
        raise NotImplementedError

    def shown(self, name: str) -> str:
        """Where a person finds the log *name*, in words."""
        raise NotImplementedError

    def sealed_items(self) -> JsonObject | None:
        """{lines, sha256} of all answers, as they were written and are; None when they are something else."""
        raise NotImplementedError

    def finish(self, state: str, **fields: Any) -> None:
        """Syncs all answers, appends the event `ended` with *state*, *fields* and the hash of run.json, and makes both the run's."""
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
        """run.json, its state `interrupted` when nobody is at it any more; a run that has not ended has no result.

        Raises InputError (`no_run`, `unfit_run`), RefusedError (`record_changed`) when it is not what the run ended with.
        """
        raise NotImplementedError

    def read_whole(self, run: str) -> JsonObject:
        """run.json as `read` has it, after a look through all events: for what is made of the run. Raises InputError, RefusedError."""
        self.events(run)
        return self.read(run)

    def items(self, run: str) -> Iterator[JsonObject]:
        """The lines of items.jsonl, in the order written; a torn last line is left out. Raises InputError."""
        raise NotImplementedError

    def events(self, run: str) -> list[JsonObject]:
        """The events. Raises RefusedError (`broken_chain`)."""
        raise NotImplementedError

    def writing(self, run: str) -> Any:
        """Context manager: a RunWriter. Raises RefusedError when another process holds the run, or its journal is broken."""
        raise NotImplementedError

    def locked_folder(self, run: str) -> str:
        """Absolute path of the local folder with the locked copy of *run*, to read. Raises InputError."""
        raise NotImplementedError

    def evidence_folder(self, run: str) -> str:
        """Absolute path of the local folder of the engine's evidence of *run*: observations, results and what is computed from them.

        Files in it are named after the run (`r0042.jsonl`, …), and are read and written by path: by whoever holds the run, and
        afterwards by commands that keep their findings beside it. Raises InputError.
        """
        raise NotImplementedError

    def restart(self, run: str) -> None:
        """Moves the journals of *run* to `attempt-N` and makes it planned again; nothing is deleted."""
        raise NotImplementedError

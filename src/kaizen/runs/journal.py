"""The files of a stage while it is run: observations, meta file, what was superseded.

Each finished trial is appended in one write. A line that no longer counts (its case has
another input or is gone, it never ran, or it is to be run again) goes to
`<stage>.superseded.jsonl` before the first new one is written. When everything asked for is there, the
lines stand in the order (trial, place of the case). An overwrite is written beside the old
files, as `<stage>.jsonl.unfinished`, and takes their place at the end; so do files kept of its trials.

    <stage>.meta.json: {"version": 1, "stage", "command", "mode", "cwd", "repetitions", "selection", "seed", "cases",
    "planned", "selected", "dataset_fingerprint", "commit", "timeout_seconds", "jobs", "started_at", "finished_at",
    "engine", "complete", "counts": {status: n}, "observations": {"lines", "sha256"}, "replayed_from",
    "retries", "retry_on", "env", "workspace", "keep", "keep_unmasked", "shard", "stopped"}
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from kaizen.cases.case import Case
from kaizen.cases.dataset import Dataset
from kaizen.cases.improvement import Improvement
from kaizen.foundation.clock import utc_now
from kaizen.foundation.errors import InputError, RefusedError
from kaizen.foundation.files import (
    BYTE_ORDER_MARK,
    discard_unfinished,
    open_for_reading,
    refuse_writing,
    remove_folder,
    replacing,
    shown_path,
    sweep_unfinished,
    truncate_file,
)
from kaizen.foundation.journals import AppendLog, torn_tail
from kaizen.foundation.jsonio import JsonObject, encode_compact, parse_line, read_json_object, write_json
from kaizen.foundation.text import counted, listed, visible
from kaizen.runs.kept_files import kept_folder
from kaizen.runs.observation import CANCELLED, COMPLETED, MAX_TRIALS, NOT_RUN, STATUSES, check_observation, lines_digest

STAGE_META = ".meta.json"
SUPERSEDED = ".superseded.jsonl"
TWICE = "of trials that are there twice"
UNFINISHED = ".unfinished"
FILES = ".files"

# What is to become of a stage that is there already.
REFUSE, RESUME, OVERWRITE, RESUME_OVERWRITE, ONLY_ERRORS = "refuse", "resume", "overwrite", "resume_overwrite", "only_errors"
# What must be the same for evidence to be added to: {key of the meta file: words}.
SAME_RUN = {
    "mode": "way of running",
    "command": "command",
    "cwd": "working directory",
    "seed": "seed",
    "commit": "commit",
    "replayed_from": "file",
    "workspace": "workspace",
    "keep": "patterns of files to keep",
    "keep_unmasked": "masking of kept files",
    "env": "variables that are passed on",
}
HASHED_SETTINGS = {"commit": "hash", "replayed_from": "sha256", "workspace": "sha256"}  # of which only this key counts


def read_stage_meta(improvement: Improvement, stage: str) -> JsonObject:
    """The document `<stage>.meta.json`: how the stage was made. Raises InputError when it is absent or broken."""
    return read_json_object(improvement.stage_file(stage, STAGE_META), "it is written by `kaizen run`")


def checked_repetitions(meta: JsonObject, shown: str) -> int:
    """The repetitions that the meta file *shown* tells. Raises InputError when that is no number of trials."""
    value = meta.get("repetitions")
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_TRIALS:
        return value
    message = f"{shown}#/repetitions: must be a whole number from 1 to {MAX_TRIALS:,}"
    raise InputError(message, "put back the file that Kaizen wrote", "invalid_file")


def stage_lines(path: str) -> Iterator[tuple[int, bytes, JsonObject]]:
    """(byte offset, bytes without line end, observation) of each line of the stage file *path*. Raises InputError."""
    shown = shown_path(path)
    with open_for_reading(path) as stream:
        offset = 0
        for number, line in enumerate(stream, 1):
            raw = bare_line(line)
            if raw:
                place = f"{shown}:{number}"
                yield offset, raw, check_observation(parse_line(raw, place), place)
            offset += len(line)


def bare_line(line: bytes) -> bytes:
    """*line* without its line end, blanks around it, and a byte-order mark."""
    return line.removeprefix(BYTE_ORDER_MARK).strip(b" \t\r\n")


def mend_last_line(path: str, check: Callable[[JsonObject, str], JsonObject] = check_observation) -> str:
    """Cuts off a last line that was not written to its end, or ends one that lacks only its line end; a sentence about it or ''.

    A line is whole when it holds an object at which *check* raises no InputError.
    """
    size, tail = torn_tail(path)
    if not bare_line(tail):
        return ""
    try:
        check(parse_line(bare_line(tail), ""), "")
    except InputError:
        truncate_file(path, size)
        cut = counted(len(tail), "byte")
        return f"1 unfinished record was set aside: the last line of {shown_path(path)} ended in the middle ({cut} cut off)"
    append_lines(path, [b""])
    return ""


def append_lines(path: str, lines: "list[bytes] | Iterator[bytes]") -> int:
    """Appends *lines* to the file *path*, synced; returns how many. Raises InputError."""
    log = AppendLog(path)
    try:
        written = 0
        for line in lines:
            log.append_bytes(line + b"\n")
            written += 1
    finally:
        log.close()
    return written


def line_fault(value: JsonObject, case: Case, drops_errors: bool) -> str:
    """Why the observation *value* of *case* does not count when the run goes on; '' when it does."""
    if value.get("input_fingerprint", case.input_fingerprint) != case.input_fingerprint:
        return "made from another input"
    if value["status"] in (NOT_RUN, CANCELLED):
        return "of trials that never ran"
    return "without usable evidence" if drops_errors and value["status"] != COMPLETED else ""


def move_file(path: str, target: str) -> None:
    """Puts the file *path* in the place of *target*, at once. Raises InputError."""
    try:
        os.replace(path, target)
    except OSError as error:
        refuse_writing(target, error)


def discard_folder(path: str) -> None:
    """Removes the folder *path* if it is there; a link is removed, not followed."""
    if os.path.islink(path):
        discard_unfinished(path)
    elif os.path.isdir(path):
        remove_folder(path)


def differing_settings(before: JsonObject, after: JsonObject, then: str = "then", now: str = "now") -> list[str]:
    """What keeps the runs of two meta documents from being one, such as 'seed (7 then, 8 now)'."""
    differing = []
    for key, words in SAME_RUN.items():
        old, new = (side.get(key) or None if key in ("keep", "keep_unmasked", "env") else side.get(key) for side in (before, after))
        if key in HASHED_SETTINGS:
            old, new = (side.get(HASHED_SETTINGS[key]) if isinstance(side, dict) else None for side in (old, new))
        if old != new:
            differing.append(f"{words} ({visible(told_setting(old))} {then}, {visible(told_setting(new))} {now})")
    return differing


def refuse_other_run(shown: str, before: JsonObject, after: JsonObject) -> None:
    """Raises RefusedError, naming what differs, unless both meta documents are of one run that was interrupted."""
    differing = differing_settings(before, after)
    if differing:
        raise RefusedError(
            f"{shown}: cannot be added to, it was made otherwise: {listed(differing)}",
            "go back to what it was made with, or use --overwrite to begin anew",
            "different_run",
        )


def told_setting(value: Any) -> str:
    """A setting of a run as a message names it."""
    return "none" if value is None else value if isinstance(value, str) else encode_compact(value)


class StageIndex:
    """Where the line of each trial stands in a stage file, by slot: (trial - 1) × cases + place of the case."""

    def __init__(self, case_ids: "list[str] | dict[str, Case]", repetitions: int) -> None:
        from array import array

        self.places = {name: place for place, name in enumerate(case_ids)}
        slots = len(self.places) * repetitions
        self.offsets: array[int] = array("q", [-1]) * slots
        self.statuses = bytearray(slots)  # 0: no line, else 1 + index into STATUSES
        self.last_slot = -1
        self.is_ordered = True

    def slot(self, case_id: str, trial: int) -> int:
        """The slot of a trial; -1 when it is not planned."""
        place = self.places.get(case_id, -1)
        slot = (trial - 1) * len(self.places) + place
        return slot if place >= 0 and slot < len(self.statuses) else -1

    def note(self, slot: int, status: str, offset: int) -> None:
        """Notes that the line at *offset* is the one of *slot*."""
        self.offsets[slot] = offset
        self.statuses[slot] = 1 + STATUSES.index(status)
        self.is_ordered = self.is_ordered and slot > self.last_slot
        self.last_slot = slot

    def status(self, case_id: str, trial: int) -> str:
        """The status of a trial; '' when it has no line."""
        code = self.statuses[self.slot(case_id, trial)]
        return STATUSES[code - 1] if code else ""

    def counts(self) -> dict[str, int]:
        """{status: number of lines}, statuses that occur only."""
        found = {name: self.statuses.count(1 + index) for index, name in enumerate(STATUSES)}
        return {name: count for name, count in found.items() if count}

    def ordered_offsets(self) -> Iterator[int]:
        """Offsets of the lines in the order (trial, place of the case)."""
        return (offset for offset in self.offsets if offset >= 0)


class StageWriter:
    """Writes the files of one stage; its caller holds the stage's lock and calls it from one thread at a time.

    *meta* describes the run and is completed here; *existing* says what becomes of a stage that is there;
    *cases* are those that the run is about. `notes` holds what the user should know.
    Raises RefusedError when *existing* does not go together with what is there.
    """

    def __init__(
        self,
        improvement: Improvement,
        stage: str,
        dataset: Dataset,
        cases: list[Case],
        meta: JsonObject,
        *,
        existing: str,
        repetitions: int = 0,
    ) -> None:
        self.improvement, self.stage, self.dataset, self.cases, self.meta = improvement, stage, dataset, cases, meta
        self.target = improvement.stage_file(stage)
        self.is_beside = existing in (OVERWRITE, RESUME_OVERWRITE)
        suffix = UNFINISHED if self.is_beside else ""
        self.path, self.meta_path = self.target + suffix, improvement.stage_file(stage, STAGE_META) + suffix
        self.files_path = improvement.stage_file(stage, suffix + FILES)
        self.log: AppendLog | None = None
        self.size = 0
        self.superseded: dict[int, str] = {}  # offset of a line that no longer counts: why
        self.notes: list[str] = []
        self.refuse_existing(existing)
        self.sweep(existing == OVERWRITE)
        has_file = os.path.exists(self.path)
        if has_file:
            self.notes += filter(None, [mend_last_line(self.path)])
        if not has_file and os.path.lexists(self.files_path):
            discard_folder(self.files_path)
            self.notes.append(f"{shown_path(self.files_path)}: removed, it was kept of trials that no line tells of")
        before = read_json_object(self.meta_path) if has_file and os.path.exists(self.meta_path) else None
        self.repetitions = self.settled_repetitions(repetitions, before, has_file)
        self.index = StageIndex(dataset.cases, self.repetitions)
        if not self.is_beside and os.path.exists(self.target + UNFINISHED):
            self.notes.append(f"{shown_path(self.target + UNFINISHED)}: an overwrite was interrupted; --overwrite --resume goes on with it")
        if has_file:
            if before is not None:
                refuse_other_run(shown_path(self.target), before, meta)
                meta["started_at"] = before.get("started_at", meta["started_at"])
            else:
                self.notes.append(f"{shown_path(self.meta_path)} is missing, so what made the lines that are there is not known")
            self.take_over(existing == ONLY_ERRORS)

    def refuse_existing(self, existing: str) -> None:
        """Raises RefusedError when the stage is there and nobody said what to do with it, or the other way round."""
        shown = shown_path(self.target)
        is_there = os.path.lexists(self.target)
        if existing == REFUSE and is_there:
            raise RefusedError(
                f"{shown}: is there already; nothing was run",
                "--resume runs what is missing, --only errors what has no usable evidence, --overwrite everything anew",
                "existing_stage",
            )
        if existing == ONLY_ERRORS and not is_there:
            raise RefusedError(f"{shown}: is not there, so it has no errors to run again", "leave out --only errors", "missing_stage")

    def sweep(self, begins_anew: bool) -> None:
        """Removes half-written files of a run that was killed and, when an overwrite *begins_anew*, those of an earlier one."""
        for suffix in (".jsonl", STAGE_META):
            sweep_unfinished(self.improvement.stage_file(self.stage, suffix))
        beside = self.improvement.stage_file(self.stage, STAGE_META) + UNFINISHED
        if os.path.exists(beside) and not os.path.exists(self.target + UNFINISHED) and read_json_object(beside).get("complete"):
            self.replace_others()  # killed between the renames at the end of an overwrite
        if begins_anew:
            self.discard_beside()

    def discard_beside(self) -> None:
        """Removes what an overwrite has written beside the old files."""
        if self.is_beside:
            discard_unfinished(self.path)
            discard_unfinished(self.meta_path)
            discard_folder(self.files_path)

    def settled_repetitions(self, asked: int, before: JsonObject | None, has_file: bool) -> int:
        """Repetitions of the stage: as *asked*, or for 0 as before, else 1. Raises RefusedError when they would become fewer."""
        if not has_file:
            return asked or 1
        if before and before.get("repetitions") is not None:
            known = checked_repetitions(before, shown_path(self.meta_path))
        else:
            known = max((value["trial"] for _, _, value in stage_lines(self.path)), default=1)
        if asked and asked < known:
            raise RefusedError(
                f"{shown_path(self.target)}: has {counted(known, 'repetition')}; with {asked} some trials would be lost",
                f"use --repetitions {known} or more, or --overwrite",
                "fewer_repetitions",
            )
        return asked or known

    def take_over(self, drops_errors: bool) -> None:
        """Indexes the lines that count and notes the others, which are moved before the first new line is written."""
        selected = {case.id for case in self.cases} if drops_errors else set()
        for offset, _, value in stage_lines(self.path):
            slot = self.index.slot(value["case_id"], value["trial"])
            reason = self.superseded_reason(value, slot, selected)
            if reason:
                self.superseded[offset] = reason
            else:
                self.index.note(slot, value["status"], offset)

    def move_superseded(self) -> None:
        """Moves the lines that no longer count to their file."""
        if not self.superseded:
            return
        path = self.improvement.stage_file(self.stage, SUPERSEDED)
        append_lines(path, self.lines_at(list(self.superseded)))
        self.discard_kept_files()
        with replacing(self.path) as stream:
            for offset, raw, _ in stage_lines(self.path):
                if offset not in self.superseded:
                    stream.write(raw + b"\n")
        self.index = StageIndex(self.dataset.cases, self.repetitions)
        for offset, _, value in stage_lines(self.path):
            self.index.note(self.index.slot(value["case_id"], value["trial"]), value["status"], offset)
        reasons = list(self.superseded.values())
        why = listed(f"{reasons.count(reason):,} {reason}" for reason in dict.fromkeys(reasons))
        self.notes.append(f"{counted(len(reasons), 'line')} moved to {shown_path(path)}: {why}")
        self.superseded = {}

    def discard_kept_files(self) -> None:
        """Removes what was kept of trials that no longer count; of those that this run repeats it goes when they are kept anew."""
        if os.path.isdir(self.files_path):
            repeated = {case.id for case in self.cases}
            for offset, _, value in stage_lines(self.path):
                if self.superseded.get(offset, TWICE) != TWICE and value["case_id"] not in repeated:
                    discard_folder(kept_folder(self.files_path, value["case_id"], value["trial"]))

    def superseded_reason(self, value: JsonObject, slot: int, selected: set[str]) -> str:
        """Why the line *value* no longer counts; '' when it does."""
        case = self.dataset.cases.get(value["case_id"])
        if case is None or slot < 0:
            return "of cases that are gone"
        return (TWICE if self.index.statuses[slot] else "") or line_fault(value, case, case.id in selected)

    def lines_at(self, offsets: "list[int] | Iterator[int]") -> Iterator[bytes]:
        """The lines of the file at *offsets*, without their line ends."""
        with open_for_reading(self.path) as stream:
            position = 0
            for offset in offsets:
                if offset != position:
                    stream.seek(offset)
                line = stream.readline()
                position = offset + len(line)
                yield bare_line(line)

    def is_done(self, case_id: str, trial: int) -> bool:
        """True when the trial has a line."""
        return self.index.statuses[self.index.slot(case_id, trial)] != 0

    def selected_trials(self) -> Iterator[tuple[Case, int]]:
        """(case, trial) of what the run is about: trial 1 of every case, then trial 2."""
        return ((case, trial) for trial in range(1, self.repetitions + 1) for case in self.cases)

    def record(self, case_id: str, trial: int, status: str, line: bytes) -> None:
        """Appends the observation *line* (with its line end). Raises InputError when the disk says no."""
        if self.log is None:
            self.log = self.begin()
        self.log.append_bytes(line)
        self.index.note(self.index.slot(case_id, trial), status, self.size)
        self.size += len(line)

    def begin(self) -> AppendLog:
        """Writes what stands before the first new line, and opens the file for it."""
        self.move_superseded()
        self.complete_meta(False)
        write_json(self.meta_path, self.meta)
        log = AppendLog(self.path)
        self.size = os.path.getsize(self.path)
        return log

    def begin_if_new(self) -> None:
        """Makes the files of a stage that is not there yet, without a line."""
        if self.log is None and not os.path.exists(self.path):
            self.log = self.begin()

    def sync_if_due(self) -> None:
        """Syncs the lines that are 200 ms old; to be called at least every 100 ms."""
        if self.log is not None:
            self.log.sync_if_due()

    def complete_meta(self, is_complete: bool) -> None:
        """Fills in what only the lines tell; `selection` is null once every planned trial has been asked for."""
        known = bytearray(self.index.statuses)
        for case, trial in self.selected_trials():
            known[self.index.slot(case.id, trial)] = 1
        planned, selected = len(known), len(known) - known.count(0)
        self.meta.update(repetitions=self.repetitions, cases=len(self.dataset.cases), planned=planned, selected=selected)
        self.meta.update(complete=is_complete, counts=self.index.counts())
        if selected == planned:
            self.meta["selection"] = None

    def finish(self, is_complete: bool) -> None:
        """Brings the lines into order, takes the old files' place after an overwrite, and writes the meta file.

        When the run is not complete the lines stay as and where they are, to be gone on with.
        """
        size = os.path.getsize(self.path) if os.path.exists(self.path) else -1
        if self.log is not None:
            self.log.close()
            if size != self.size:
                raise InputError(f"{shown_path(self.path)}: was changed by another program meanwhile", "run it anew: --overwrite")
        elif size < 0:
            return
        if is_complete:
            self.move_superseded()
        if is_complete and not self.index.is_ordered:
            with replacing(self.path) as stream:
                for line in self.lines_at(self.index.ordered_offsets()):
                    stream.write(line + b"\n")
        self.complete_meta(is_complete)
        digest = lines_digest(self.path)
        self.meta.update(finished_at=utc_now(), observations={"lines": digest.lines, "sha256": digest.hexdigest()})
        write_json(self.meta_path, self.meta)
        if is_complete and self.is_beside:
            move_file(self.path, self.target)
            self.replace_others()
            discard_unfinished(self.improvement.stage_file(self.stage, SUPERSEDED))

    def replace_others(self) -> None:
        """Puts kept files and meta file of an overwrite in the place of the old ones, the observations being there already."""
        old, new = (self.improvement.stage_file(self.stage, suffix + FILES) for suffix in ("", UNFINISHED))
        discard_folder(old)
        if os.path.isdir(new):
            move_file(new, old)
        meta = self.improvement.stage_file(self.stage, STAGE_META)
        move_file(meta + UNFINISHED, meta)

    def abandon(self, error: BaseException) -> None:
        """Closes the files after *error*; when the disk was full, what an overwrite has written beside the old files is removed."""
        if self.log is not None:
            with suppress(InputError):  # the failure that led here is told already
                self.log.close()
        if isinstance(error, InputError) and error.reason == "cannot_write":
            self.discard_beside()

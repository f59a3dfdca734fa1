"""Chained journals: an event a line, each with the hash of the line before and its own.

    {"seq": 1, "time": "…Z", "type": "planned", "body": {…}, "prev": null, "sha": "9f…"}

`sha` is the SHA-256 of the canonical JSON of the line without it, `prev` that of the line
before. An event is on disk before `append` returns. A last line without a line end was torn
by a crash: it never counted, is cut off by the next writer, and is reported. Any other
break (a line changed, removed, added, moved) is refused with file and line.
"""

import os
from typing import Any

from kaizen.foundation.clock import utc_now
from kaizen.foundation.errors import RefusedError
from kaizen.foundation.files import open_for_reading, shown_path, truncate_file
from kaizen.foundation.journals import AppendLog, torn_tail
from kaizen.foundation.jsonio import JsonError, JsonObject, canonical_json, decode_line, encode_compact, raw_lines, sha256_hex
from kaizen.foundation.text import counted

CHAIN_TAIL = 1 << 14  # bytes at the end of a journal in which its last events are looked for
CHAIN_KEYS = {"seq", "time", "type", "body", "prev", "sha"}


def chain_hash(event: JsonObject) -> str:
    """SHA-256 of the canonical JSON of *event* without its `sha`."""
    return sha256_hex(canonical_json({key: value for key, value in event.items() if key != "sha"}))


def read_chain(path: str) -> list[JsonObject]:
    """The events of the journal *path*, a torn last line left out; none for no file. Raises RefusedError for a broken chain."""
    if not os.path.exists(path):
        return []
    whole, _ = torn_tail(path)
    events: list[JsonObject] = []
    place = 0
    for number, raw in raw_lines(path):
        place += len(raw) + 1
        if place > whole:
            break
        try:
            event = decode_line(raw)
        except JsonError as error:
            raise broken_chain(path, number, error.message) from None
        before = events[-1] if events else None
        if event.keys() != CHAIN_KEYS or event["sha"] != chain_hash(event):
            raise broken_chain(path, number, "is not the line that was written")
        if event["seq"] != len(events) + 1 or event["prev"] != (before["sha"] if before else None):
            raise broken_chain(path, number, "does not follow the line before it: lines are missing, added or in another order")
        events.append(event)
    return events


def last_event(path: str, kind: str) -> tuple[JsonObject | None, bool]:
    """(the last event of type *kind* in the journal *path*, whether it is the last of all); (None, False) when there is none.

    Only the end of the file is read: that each event follows the one before it is what `read_chain` looks at. Raises RefusedError.
    """
    found: list[JsonObject] = []
    if os.path.exists(path):
        with open_for_reading(path) as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - CHAIN_TAIL))
            lines = stream.read(CHAIN_TAIL).split(b"\n")
        mark = b'"type":' + encode_compact(kind).encode()
        for number, raw in enumerate(reversed(lines[1 if size > CHAIN_TAIL else 0 : -1])):
            if mark in raw:
                try:
                    event = decode_line(raw)
                except JsonError:
                    event = {}
                if event.keys() != CHAIN_KEYS or event["sha"] != chain_hash(event):
                    read_chain(path)  # says which line it is
                if event["type"] == kind:
                    return event, number == 0
        found = read_chain(path) if size > CHAIN_TAIL else []
    last = next((event for event in reversed(found) if event["type"] == kind), None)
    return last, bool(last) and last is found[-1]


def broken_chain(path: str, number: int, what: str) -> RefusedError:
    """The refusal that names file and line."""
    hint = "nothing is written on top of it: put back the file that Kaizen wrote, or begin again with another run"
    return RefusedError(f"{shown_path(path)}:{number}: {what}", hint, "broken_chain")


class ChainLog:
    """Appends events to the journal *path*; `mended` says in a sentence what a crash had torn, else ''.

    Raises RefusedError when the journal is broken. One writer at a time: the caller holds a lock.
    """

    def __init__(self, path: str) -> None:
        self.mended = mend_torn_line(path)
        events = read_chain(path)
        self.seq, self.head = len(events), events[-1]["sha"] if events else None
        self.log = AppendLog(path)

    def append(self, kind: str, body: JsonObject) -> JsonObject:
        """Writes an event of type *kind*, synced, and returns it. Raises InputError when the disk says no."""
        event: dict[str, Any] = {"seq": self.seq + 1, "time": utc_now(), "type": kind, "body": body, "prev": self.head}
        event["sha"] = chain_hash(event)
        self.log.append(event)
        self.log.sync()
        self.seq, self.head = event["seq"], event["sha"]
        return event

    def close(self) -> None:
        """Closes the journal; closing twice is fine."""
        self.log.close()


def mend_torn_line(path: str) -> str:
    """Cuts off a last line of *path* that has no line end; a sentence about it, or ''."""
    if not os.path.exists(path):
        return ""
    size, tail = torn_tail(path)
    if not tail:
        return ""
    truncate_file(path, size)
    return f"the last line of {shown_path(path)} was cut short by a crash; {counted(len(tail), 'byte')} cut off"

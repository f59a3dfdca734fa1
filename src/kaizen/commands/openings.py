"""The log of what touches the holdout: openings, exports and seals, proposals."""

import os
from collections.abc import Iterator

from kaizen.cases.improvement import Improvement
from kaizen.foundation.clock import utc_now
from kaizen.foundation.journals import AppendLog
from kaizen.foundation.jsonio import JsonObject, read_json_lines

OPTIMIZER_LOG = "optimizer-log.jsonl"
OPENING = "holdout_opened"


def log_holdout_event(improvement: Improvement, event: str, fields: JsonObject) -> None:
    """Appends *event* to the log, on disk before anything follows from it. Raises InputError when that cannot be written."""
    log = AppendLog(improvement.path(OPTIMIZER_LOG))
    try:
        log.append({"event": event, **fields, "at": utc_now()})
    finally:
        log.close()


def holdout_events(improvement: Improvement, event: str) -> Iterator[JsonObject]:
    """Each *event* of the log, in order. Raises InputError for a line that is none: what happened is not known then."""
    path = improvement.path(OPTIMIZER_LOG)
    lines = read_json_lines(path) if os.path.exists(path) else ()
    return (line.value for line in lines if line.value.get("event") == event)


def record_opening(improvement: Improvement, by_command: str) -> None:
    """Logs the opening before anything is shown. Raises InputError when that cannot be written."""
    log_holdout_event(improvement, OPENING, {"command": by_command})


def holdout_openings(improvement: Improvement) -> int:
    """How often the holdout was opened so far."""
    return sum(1 for _ in holdout_events(improvement, OPENING))

"""Openings of the holdout: a named act that leaves a mark (formats.md 1.7)."""

import os

from kaizen.cases.improvement import Improvement
from kaizen.foundation.clock import utc_now
from kaizen.foundation.journals import AppendLog
from kaizen.foundation.jsonio import read_json_lines

OPENING = "holdout_opened"


def record_opening(improvement: Improvement, by_command: str) -> None:
    """Appends the opening to the log before anything is shown. Raises InputError when that cannot be written."""
    log = AppendLog(improvement.path("optimizer-log.jsonl"))
    try:
        log.append({"event": OPENING, "command": by_command, "at": utc_now()})
    finally:
        log.close()


def holdout_openings(improvement: Improvement) -> int:
    """How often the holdout was opened so far."""
    path = improvement.path("optimizer-log.jsonl")
    return sum(line.value.get("event") == OPENING for line in read_json_lines(path)) if os.path.exists(path) else 0

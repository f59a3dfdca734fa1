"""Events of a run for programs: JSON lines on a file descriptor that the caller opened.

    {"event": "start", "stage": "candidate", "pid": 4711, "planned": 200, "selected": 200, "pending": 200, "at": "…Z"}
    {"event": "trial", "case_id": "refund-1", "trial": 1, "status": "completed", "error_class": null, "duration_ms": 412.7,
     "attempts": 1, "cost_usd": 0.002, "done": 1, "pending": 200, "at": "…Z"}
    {"event": "end", "reason": "completed", "ran": 200, "counts": {"completed": 200}, "at": "…Z"}

The case id of a holdout case is null. A reader that has gone away ends the events, never
the run; one that does not read for a second loses events, and the next says how many
(`lost`).
"""

import os
from typing import Any

from kaizen.cases.case import Case
from kaizen.foundation.clock import utc_now
from kaizen.foundation.errors import UsageError
from kaizen.foundation.jsonio import encode_compact
from kaizen.runs.observation import Attempt
from kaizen.runs.tally import RunTally

PATIENCE_SECONDS = 1.0


class EventStream:
    """Writes events to *descriptor* (0: to nobody). Raises UsageError when nothing can be written there."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.lost = 0
        if descriptor:
            import fcntl

            try:
                is_writable = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
            except OSError:
                is_writable = False
            if not is_writable:
                message = f"--events {descriptor}: no file is open there for writing; nothing was run"
                raise UsageError(message, "open one: kaizen run … --events 3 3>events.jsonl")

    def trial(self, case: Case, trial: int, attempt: Attempt, attempts: int, cost: float | None, tally: RunTally, pending: int) -> None:
        """Writes that a trial of *case* has ended with *attempt*."""
        self.send(
            "trial",
            case_id=None if case.id in tally.holdout else case.id,
            trial=trial,
            status=attempt.status,
            error_class=attempt.error["class"] if attempt.error else None,
            duration_ms=attempt.duration_ms and round(attempt.duration_ms, 3),
            attempts=attempts,
            cost_usd=cost,
            done=tally.ran,
            pending=pending,
        )

    def send(self, event: str, **fields: Any) -> None:
        """Writes an event with *fields*, or counts it as lost when the reader has fallen behind."""
        if not self.descriptor:
            return
        import select

        document = {"event": event, **fields, "at": utc_now(), **({"lost": self.lost} if self.lost else {})}
        line = encode_compact(document).encode("utf-8") + b"\n"
        poll = select.poll()
        poll.register(self.descriptor, select.POLLOUT)
        # A pipe that can be written to takes a line of up to PIPE_BUF bytes whole and at once (POSIX, write).
        if not poll.poll(0 if self.lost else PATIENCE_SECONDS * 1000):
            self.lost += 1
            return
        try:
            while line:
                line = line[os.write(self.descriptor, line) :]
            self.lost = 0
        except BlockingIOError:
            self.lost += 1
        except OSError:
            self.descriptor = 0

"""Progress on standard error: a changing line on a terminal, else a line per 10 %.

    run candidate: 37 of 100, 4.2/s, 15.0 s left, 2 errors
"""

import os
import sys
from typing import TextIO

from kaizen.foundation.clock import monotonic_seconds
from kaizen.foundation.text import counted, duration

PROGRESS_MODES = ("auto", "plain", "none")
REDRAW_SECONDS = 0.1


class Progress:
    """Shows how far *total* things are; a context manager whose `report` may be called as often as one likes.

    *mode* is auto (a changing line if *stream* is a terminal, else plain), plain or none. Text is ASCII.
    """

    def __init__(self, label: str, total: int, mode: str = "auto", stream: TextIO | None = None) -> None:
        self.label = label
        self.total = total
        self.stream = stream or sys.stderr
        self.is_live = mode == "auto" and self.stream.isatty()
        self.is_shown = mode != "none" and total > 0
        self.started = monotonic_seconds()
        self.drawn_at = 0.0
        self.tenths = 0

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if self.is_live and self.drawn_at:
            self.write("\r\x1b[K")

    def report(self, done: int, errors: int = 0) -> None:
        """Shows that *done* are done, *errors* of them with an error, if it is time to."""
        if not self.is_shown:
            return
        self.total = max(self.total, done)
        if not self.is_live:
            if done * 10 // self.total > self.tenths:
                self.tenths = done * 10 // self.total
                self.write(self.text(done, errors) + "\n")
        elif monotonic_seconds() - self.drawn_at >= REDRAW_SECONDS:
            self.drawn_at = monotonic_seconds()
            self.write(f"\r{self.text(done, errors)[: self.columns() - 1]}\x1b[K")

    def note(self, text: str) -> None:
        """Shows 'note: *text*' as a line of its own."""
        if self.is_shown:
            self.write(("\r\x1b[K" if self.is_live else "") + f"note: {text}\n")

    def text(self, done: int, errors: int) -> str:
        """'run candidate: 37 of 100, 4.2/s, 15.0 s left, 2 errors'; what cannot be known or is nought is left out."""
        seconds = monotonic_seconds() - self.started
        parts = [f"{self.label}: {done:,} of {self.total:,}"]
        if done and seconds > 0:
            parts.append(f"{done / seconds:.1f}/s")
            if done < self.total:
                parts.append(f"{duration((self.total - done) * seconds / done)} left")
        return ", ".join([*parts, counted(errors, "error")] if errors else parts)

    def columns(self) -> int:
        """Width of the terminal; 80 when it does not say."""
        try:
            return os.get_terminal_size(self.stream.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    def write(self, text: str) -> None:
        """Writes *text*; a closed terminal ends the showing, never the work."""
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            self.is_shown = False

"""Append-only logs: an object a line, on disk at once, mended after a crash."""

import os

from kaizen.foundation.clock import monotonic_seconds
from kaizen.foundation.files import BLOCK, open_for_appending, open_for_reading, refuse_writing, write_all
from kaizen.foundation.jsonio import encode_compact

SYNC_SECONDS = 0.2  # formats.md 1.2: fsynced at most 200 ms later; a sync a line would cost 10,000 cases up to 40 s


class AppendLog:
    """Appends JSON objects to the file *path*; `sync_if_due` is to be called at least every 100 ms while open."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = open_for_appending(path)
        self.unsynced_since: float | None = None

    def append(self, value: object) -> bytes:
        """Writes *value* as one line in one call and returns its bytes. Raises InputError when the disk says no."""
        line = encode_compact(value).encode("utf-8") + b"\n"
        self.append_bytes(line)
        return line

    def append_bytes(self, line: bytes) -> None:
        """Writes *line* (with its line end). After a failed write the part that got through is cut off again."""
        before = os.fstat(self.descriptor).st_size
        try:
            write_all(self.descriptor, line, self.path)
        except BaseException:
            os.ftruncate(self.descriptor, before)
            raise
        if self.unsynced_since is None:
            self.unsynced_since = monotonic_seconds()
        self.sync_if_due()

    def sync_if_due(self) -> None:
        """Syncs when the oldest line that is not synced is 200 ms old."""
        if self.unsynced_since is not None and monotonic_seconds() - self.unsynced_since >= SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Syncs what was appended to the disk."""
        try:
            os.fsync(self.descriptor)
        except OSError as error:
            refuse_writing(self.path, error)
        self.unsynced_since = None

    def close(self) -> None:
        """Syncs and closes; closing twice is fine."""
        if self.descriptor >= 0:
            try:
                self.sync()
            finally:
                os.close(self.descriptor)
                self.descriptor = -1


def torn_tail(path: str) -> tuple[int, bytes]:
    """(size of the part of *path* that ends in a line end, the bytes behind it)."""
    with open_for_reading(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        tail = b""
        while len(tail) < size:
            start = max(0, size - len(tail) - BLOCK)
            stream.seek(start)
            tail = stream.read(size - len(tail) - start) + tail
            cut = tail.rfind(b"\n")
            if cut >= 0:
                return size - len(tail) + cut + 1, tail[cut + 1 :]
    return 0, tail

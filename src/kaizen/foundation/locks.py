"""Locks: one writer at a time; the kernel lets go when the owner dies.

The lock file holds the pid and start time of its owner, for the message. The lock
itself is the kernel's (flock), so a killed owner never leaves one behind.
"""

import os
import time
from contextlib import suppress
from types import TracebackType

from kaizen.foundation.clock import monotonic_seconds, utc_now
from kaizen.foundation.errors import RefusedError
from kaizen.foundation.files import open_for_locking, shown_path
from kaizen.foundation.jsonio import JsonError, encode_compact, parse_json


class FileLock:
    """Context manager: holds the lock file *path*. Raises RefusedError, naming the owner, when another process has it.

    It is asked for again for *patience* seconds: a program that a killed owner was just starting holds the lock until it runs.
    """

    def __init__(self, path: str, what: str, patience: float = 0.1) -> None:
        self.path = path
        self.what = what
        self.patience = patience
        self.descriptor = -1

    def __enter__(self) -> "FileLock":
        while True:
            self.descriptor = open_for_locking(self.path)
            if not lock_descriptor(self.descriptor) and not locked_soon(self.descriptor, self.patience):
                owner = lock_owner(self.descriptor)
                os.close(self.descriptor)
                raise RefusedError(
                    f"{shown_path(self.path)}: {self.what} is being written by another process{owner}",
                    "wait until it has finished, or stop it",
                    "lock_held",
                )
            if is_same_file(self.descriptor, self.path):
                break
            os.close(self.descriptor)  # its former owner removed it between our open and our lock
        with suppress(OSError):  # without room for it the lock holds all the same, and does not say whose it is
            os.ftruncate(self.descriptor, 0)
            os.write(self.descriptor, encode_compact({"pid": os.getpid(), "started_at": utc_now()}).encode("utf-8") + b"\n")
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(OSError):  # the lock goes with the descriptor, with or without the file
            os.unlink(self.path)
        os.close(self.descriptor)


def lock_descriptor(descriptor: int) -> bool:
    """True when the kernel gave us the lock on *descriptor* at once. Windows has no flock: there the first byte is locked."""
    try:
        try:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True


def locked_soon(descriptor: int, patience: float) -> bool:
    """True when the lock on *descriptor* becomes free, and ours, within *patience* seconds."""
    deadline = monotonic_seconds() + patience
    while monotonic_seconds() < deadline:
        time.sleep(0.01)
        if lock_descriptor(descriptor):
            return True
    return False


def is_locked(path: str) -> bool:
    """True while a process holds the lock file *path*; nothing is written."""
    if not os.path.exists(path):
        return False
    descriptor = open_for_locking(path)
    try:
        return not lock_descriptor(descriptor)
    finally:
        os.close(descriptor)


def lock_owner(descriptor: int) -> str:
    """' (pid 12, since …)' as the lock file says; '' when it does not say."""
    try:
        owner = parse_json(os.read(descriptor, 4096).decode("utf-8", "replace"))
        return f" (pid {int(owner['pid'])}, since {str(owner['started_at'])[:40]})"
    except (OSError, JsonError, ValueError, TypeError, KeyError):
        return ""


def is_same_file(descriptor: int, path: str) -> bool:
    """True when *path* still names the file that *descriptor* has open."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False

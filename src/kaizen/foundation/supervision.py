"""Supervising a program that speaks on a descriptor of its own and runs while it may.

What it prints is handed on block by block and kept by nobody here; whether it may go on is
asked at least every 100 ms. It and its process group are ended as in foundation/process.py.
"""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kaizen.foundation.clock import monotonic_seconds
from kaizen.foundation.process import CALLED_OFF, EXITED, GRACE_SECONDS, STOPPED, Child, Ended, StopSwitch, kill_marked

POLL_SECONDS = 0.1  # between two questions whether the program may go on


class Sinks(NamedTuple):
    """Who gets what a supervised program prints, block by block: standard output, standard error, and its own channel."""

    stdout: Callable[[bytes], None]
    stderr: Callable[[bytes], None]
    channel: Callable[[bytes], None]


class SupervisedChild(Child):
    """A running program with a third pipe; what comes from any of them goes to its sink."""

    def attach(self, reader: int, sinks: Sinks) -> None:
        """From now on *sinks* get what is printed, and what comes from *reader*."""
        import select

        self.open[reader] = os.fdopen(reader, "rb", 0)
        self.poll.register(reader, select.POLLIN)
        self.sinks = dict(zip(self.open, (sinks.stdout, sinks.stderr, sinks.channel), strict=True))

    def take(self, descriptor: int, data: bytes) -> None:
        self.sinks[descriptor](data)


def supervise_program(
    command: Callable[[int], Sequence[str]],
    sinks: Sinks,
    may_go_on: Callable[[], bool],
    *,
    cwd: str,
    environment: "dict[bytes, bytes]",
    stop: StopSwitch,
    mark: bytes,
) -> Ended:
    """What became of a program that speaks on a descriptor of its own, which *command* makes its words of.

    *may_go_on* is asked at least every 100 ms; on False the process group is ended. *mark* as in `run_program`. Raises CannotStart.
    """
    reader, writer = os.pipe()
    try:
        child = SupervisedChild(command(writer), b"", cwd, environment, limits=(0, 0), stop=stop, pass_fds=(writer,))
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    child.attach(reader, sinks)
    end = EXITED
    try:
        while child.wait(monotonic_seconds() + POLL_SECONDS) != STOPPED:
            if not may_go_on():
                end = CALLED_OFF
                break
            if child.is_done() or child.exited_at is not None and monotonic_seconds() >= child.exited_at + GRACE_SECONDS:
                break
        else:
            end = STOPPED
        seconds = (child.exited_at or monotonic_seconds()) - child.started
        is_clean = child.is_done()
        child.end_group()
        if not is_clean:
            kill_marked(mark)
    except BaseException:
        child.abandon()
        raise
    finally:
        child.close()
    return Ended(end, child.process.returncode if end == EXITED else None, b"", b"", 0, seconds)

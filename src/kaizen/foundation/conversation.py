"""A conversation with a program that goes on running: lines in, lines out.

It is started, bounded and ended like any other (process.py); only its input stays open. What
it prints is cut into lines as it comes; a line that is longer than allowed, or too much
without an answer, is an overflow.
"""

import os
from collections import deque
from collections.abc import Sequence

from kaizen.foundation.clock import monotonic_seconds
from kaizen.foundation.process import (
    EXITED,
    GRACE_SECONDS,
    OVERFLOW,
    PIPE_BLOCK,
    STOPPED,
    TERM_SECONDS,
    TIMEOUT,
    Child,
    StopSwitch,
    kill_marked,
)


class Conversation(Child):
    """A running program and the `lines` it has printed that nobody has taken yet; `stdout_size` counts bytes since `answered`."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: str,
        environment: dict[bytes, bytes],
        *,
        limits: tuple[int, int],
        stop: StopSwitch,
        mark: bytes,
    ) -> None:
        self.lines: deque[bytes] = deque()
        self.mark = mark
        self.sent = self.written = 0  # bytes given to `send`, and bytes the pipe has taken
        self.is_finishing = self.is_ended = False
        self.stdin_descriptor = -1
        self.over_at: float | None = None  # since when no line can come, but for the rest in the pipe
        super().__init__(command, b"", cwd, environment, limits=limits, stop=stop)
        if self.stdin:
            self.stdin_descriptor = self.stdin.fileno()
            os.set_blocking(self.stdin_descriptor, False)
            self.poll.modify(self.stdin_descriptor, 0)  # tells when the other side is closed
        assert self.process.stderr is not None
        os.set_blocking(self.process.stderr.fileno(), False)

    def send(self, data: bytes) -> int:
        """Sends *data* as soon as the program takes it; returns the number of bytes sent so far, with these."""
        self.sent += len(data)
        self.pending = memoryview(bytes(self.pending) + data if self.pending else data)
        self.feed()
        return self.sent

    def feed(self) -> None:
        """Writes what the program takes; its input is closed only when it has closed it itself, or after `finish`."""
        if self.stdin is None or self.stdin_descriptor < 0:
            return
        import select

        try:
            while self.pending:
                taken = os.write(self.stdin_descriptor, self.pending)
                self.written += taken
                self.pending = self.pending[taken:]
            self.poll.modify(self.stdin_descriptor, 0)
        except BlockingIOError:
            self.poll.modify(self.stdin_descriptor, select.POLLOUT)
            return
        except OSError:  # EPIPE: it does not want to know
            self.is_finishing = True
        if self.is_finishing:
            self.close_input()

    def close_input(self) -> None:
        """Closes the program's standard input; what was not written is lost."""
        if self.stdin is not None:
            self.poll.unregister(self.stdin_descriptor)
            self.stdin.close()
            self.stdin = None

    def serve(self, descriptor: int) -> None:
        """Does what *descriptor* is ready for."""
        if descriptor != self.stdin_descriptor:
            super().serve(descriptor)
        elif self.pending:
            self.feed()
        else:
            self.close_input()

    def keep_output(self, data: bytes) -> None:
        """Cuts *data* into lines, unless more than allowed has come since the last answer."""
        self.stdout_size += len(data)
        if self.stdout_size > self.stdout_limit:
            return
        first, *others = data.split(b"\n")
        self.chunks.append(first)
        if others:
            self.lines.append(self.unfinished())
            self.lines.extend(others[:-1])
            self.chunks = others[-1:]

    def unfinished(self) -> bytes:
        """What was printed behind the last line end."""
        return b"".join(self.chunks)

    def answered(self) -> None:
        """Begins to count anew how much is printed."""
        self.stdout_size = sum(map(len, self.chunks))

    def listen(self, deadline: float, needed: int) -> str:
        """'' as soon as there are lines, else why there are none: exited, overflow, stopped, timeout.

        A program that closed its output, or its input before it had *needed* bytes, has said all it will.
        """
        while not self.lines:
            now = monotonic_seconds()
            is_deaf = self.stdin is None and self.written < needed
            if self.over_at is None and (is_deaf or self.exited_at is not None or self.stdout_descriptor not in self.open):
                self.over_at = now
            if self.is_done() or self.over_at is not None and now >= self.over_at + GRACE_SECONDS:
                return EXITED
            if self.stdout_size > self.stdout_limit:
                return OVERFLOW
            if self.stop and self.stop.is_requested:
                return STOPPED
            left = min(deadline, deadline if self.over_at is None else self.over_at + GRACE_SECONDS) - now
            if left <= 0:
                return TIMEOUT
            if self.pidfd < 0:
                left = min(left, 0.05)
                self.look_for_exit()
            ready = [descriptor for descriptor, _ in self.poll.poll(min(left, 3600) * 1000 + 0.5)]
            for descriptor in sorted(ready, key=lambda each: each == self.stdout_descriptor):  # what it said before the answer
                self.serve(descriptor)
        return ""

    def take_errors(self) -> tuple[bytes, int]:
        """(the last bytes of standard error, how many were cut off before them) since this was last asked."""
        stream = self.process.stderr
        while stream is not None and not stream.closed and stream.fileno() in self.open:
            try:
                data = os.read(stream.fileno(), PIPE_BLOCK)
            except BlockingIOError:
                break
            if not data:
                break  # its end is noticed by the next poll
            self.keep_error(data)
        taken = self.stderr_tail()
        self.errors, self.stderr_size, self.stderr_kept = [], 0, 0
        return taken

    def finish(self) -> int | None:
        """Closes the input, gives the program two seconds to end, and ends it; its exit code as `end` gives it."""
        self.is_finishing = True
        self.feed()
        self.stdout_size = 0
        self.wait(monotonic_seconds() + TERM_SECONDS)
        return self.end()

    def end(self) -> int | None:
        """Ends the program and whatever it started; its exit code, None unless it had ended by itself. Ending it twice is fine."""
        if self.is_ended:
            return None
        self.is_ended = True
        has_exited, is_clean = self.exited_at is not None, self.is_done()
        try:
            self.end_group()
            if not is_clean:
                kill_marked(self.mark)
        except BaseException:
            self.abandon()
            raise
        finally:
            self.close()
        return self.process.returncode if has_exited else None

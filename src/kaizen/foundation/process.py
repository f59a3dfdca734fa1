"""Starting programs and heeding signals: the only door to processes.

A program is started without a shell, in a session of its own, so that it and whatever it
starts can be ended together. Its request is written while its output is read, so neither
side ever waits for the other. What is kept of its output is bounded. When it takes too
long, prints too much, or the user stops the run: TERM to its process group, two seconds,
KILL. Whoever is left of the group after a good end is ended the same way.

Limit: a process that leaves the group (setsid) is out of reach of a group signal. Those
that still carry the environment entry *mark* are looked for in /proc after a program had
to be ended; elsewhere than on Linux they stay.
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, NamedTuple

from kaizen.foundation.clock import monotonic_seconds
from kaizen.foundation.errors import InputError
from kaizen.foundation.files import open_for_reading, read_bytes

TERM_SECONDS = 2.0  # between TERM and KILL
GRACE_SECONDS = 0.5  # for the end of the output after the program itself has ended
LOOK_SECONDS = 0.02  # between two looks at a group that is ending
KILLED_SECONDS = 5.0  # for the kernel to end what was killed; more only in uninterruptible waits
PIPE_BLOCK = 1 << 16  # what a pipe holds; larger reads allocate in vain

EXITED = "exited"
TIMEOUT = "timeout"
STOPPED = "stopped"
OVERFLOW = "overflow"
CALLED_OFF = "called_off"


class CannotStart(Exception):
    """The program could not be started at all; the text says why."""


class Ended(NamedTuple):
    """How a program ended and what it printed.

    `end` is exited, timeout, stopped (by the user), overflow (it printed more than allowed) or called_off (by whoever supervises it).
    `exit_code` is negative for a signal. `stderr` is the last part, `stderr_cut` the bytes before it.
    `seconds` is the time until it ended or had to be ended. `unread` are the bytes of its input that it did
    not read; None when nobody asked, or nobody knows.
    """

    end: str
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    stderr_cut: int
    seconds: float
    unread: int | None = None


class StopSwitch:
    """Ends running programs from another thread or a signal handler: `request` gently, `kill` at once."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()  # readable for ever after the request, so that every poll wakes up
        self.is_requested = False
        self.running: set[int] = set()  # process groups

    def request(self) -> None:
        """Asks every program that runs to end, and those started later."""
        if not self.is_requested:
            self.is_requested = True
            os.write(self.writer, b"!")

    def kill(self) -> None:
        """Kills every program that runs."""
        import signal

        self.request()
        for group in list(self.running):
            signal_group(group, signal.SIGKILL)

    def close(self) -> None:
        """Gives the descriptors back."""
        os.close(self.reader)
        os.close(self.writer)


def signal_group(group: int, number: int) -> bool:
    """Sends signal *number* (0: none, only looks) to a process group; False when nobody is in it."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody who changed the user
        pass
    return True


def is_group_alive(group: int) -> bool:
    """True when a process of the group runs.

    One that has ended but that nobody has reaped does not count: an orphan is the init process's to reap, and
    those of containers take seconds over it, or never do it. Only /proc tells; elsewhere it counts.
    """
    if not signal_group(group, 0):
        return False
    states = [fields[0] for fields in process_fields() if fields[2] == b"%d" % group]
    return any(state not in (b"Z", b"X") for state in states) or not os.path.exists("/proc/self/stat")


def process_fields() -> Iterator[list[bytes]]:
    """[state, parent, group, …] of each process that /proc shows (proc(5), stat after the name)."""
    for name in process_numbers():
        with suppress(InputError):  # it has ended meanwhile
            yield read_bytes(f"/proc/{name}/stat").rpartition(b")")[2].split()


def process_numbers() -> list[str]:
    """The numbers of all processes; none where there is no /proc."""
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


@contextmanager
def heeding_signals(stop: StopSwitch) -> Iterator[None]:
    """While the block runs, the first SIGINT, SIGTERM or SIGHUP requests *stop* and the second kills.

    A signal that is ignored (nohup, a background job) stays ignored. Off the main thread nothing changes.
    """
    import signal
    import threading

    def on_signal(number: int, frame: object) -> None:
        if stop.is_requested:
            stop.kill()
        else:
            stop.request()

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            if signal.getsignal(number) is not signal.SIG_IGN:
                before.setdefault(number, signal.signal(number, on_signal))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def find_program(word: str, cwd: str) -> str | None:
    """The file that *word* starts from the folder *cwd*: by its path if it has one, else along PATH; None if there is none."""
    folders = [""] if "/" in word else os.get_exec_path()
    for folder in folders:
        path = os.path.join(cwd, folder, word)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def signal_name(number: int) -> str:
    """'signal 9 (SIGKILL)'."""
    import signal

    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal
        return f"signal {number}"


def run_program(
    command: Sequence[str],
    stdin: bytes = b"",
    *,
    cwd: str | None = None,
    environment: "dict[bytes, bytes] | None" = None,
    timeout_seconds: float = 60,
    stdout_limit: int = 1 << 20,
    stderr_limit: int = 1 << 16,
    stop: StopSwitch | None = None,
    mark: bytes = b"",
    watches_input: bool = False,
) -> Ended:
    """What became of *command*, which got *stdin* and ran until it ended or had to be ended.

    *mark* is an entry NAME=value of *environment* that no other program has. Raises CannotStart.
    """
    child = Child(command, stdin, cwd, environment, limits=(stdout_limit, stderr_limit), stop=stop)
    watched = open_input(child.pid) if watches_input else None
    try:
        end = child.wait(child.started + timeout_seconds)
        seconds = (child.exited_at or monotonic_seconds()) - child.started
        is_clean = child.is_done()
        child.end_group()
        if mark and not is_clean:
            kill_marked(mark)
    except BaseException:  # an interrupt, where nobody heeds signals
        child.abandon()
        raise
    finally:
        child.close()
    code = child.process.returncode if end == EXITED else None
    stderr, cut = child.stderr_tail()
    unread = None if watched is None else unread_bytes(watched) + len(child.pending)
    return Ended(end, code, b"".join(child.chunks)[:stdout_limit], stderr, cut, seconds, unread)


class Child:
    """One running program, its three pipes, and what was read of them so far."""

    def __init__(
        self,
        command: Sequence[str],
        stdin: bytes,
        cwd: str | None,
        environment: "dict[bytes, bytes] | None",
        *,
        limits: tuple[int, int],
        stop: StopSwitch | None,
        pass_fds: tuple[int, ...] = (),
    ) -> None:
        import select
        import subprocess

        pipe = subprocess.PIPE
        self.started = monotonic_seconds()
        try:
            self.process = subprocess.Popen(
                command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                bufsize=0,
                cwd=cwd,
                env=environment,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        except (OSError, ValueError) as error:
            raise CannotStart(getattr(error, "strerror", None) or str(error)) from None
        self.pid = self.process.pid
        self.stop = stop
        self.stdout_limit, self.stderr_limit = limits
        self.chunks: list[bytes] = []
        self.stdout_size = 0
        self.errors: list[bytes] = []  # the last chunks of standard error, from the left dropped
        self.stderr_size = 0
        self.stderr_kept = 0
        self.exited_at: float | None = None
        self.pending = memoryview(stdin)
        self.poll = select.poll()
        self.open: dict[int, IO[bytes]] = {}  # output pipes that have not ended
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            self.open[stream.fileno()] = stream
            self.poll.register(stream.fileno(), select.POLLIN)
        self.stdout_descriptor = next(iter(self.open))
        self.pidfd = open_pidfd(self.pid)
        if self.pidfd >= 0:
            self.poll.register(self.pidfd, select.POLLIN)
        if stop:
            stop.running.add(self.pid)
            self.poll.register(stop.reader, select.POLLIN)
        self.stdin: IO[bytes] | None = self.process.stdin
        self.feed()
        if self.stdin:
            self.poll.register(self.stdin.fileno(), select.POLLOUT)

    def is_done(self) -> bool:
        """True when the program has ended and so has its output."""
        return self.exited_at is not None and not self.open

    def wait(self, deadline: float, is_ending: bool = False) -> str:
        """Serves the pipes until the program and its output have ended, or something forces an end; says which."""
        while not self.is_done():
            limit = deadline
            if self.exited_at is not None and not is_ending:
                limit = min(deadline, self.exited_at + GRACE_SECONDS)
            left = min(limit - monotonic_seconds(), 3600)  # poll counts milliseconds in 32 bits
            if left <= 0:
                return TIMEOUT if self.exited_at is None else EXITED
            if self.pidfd < 0:
                left = min(left, 0.05 if self.open else 0.002)
            for descriptor, _ in self.poll.poll(left * 1000 + 0.5):
                self.serve(descriptor)
            if self.pidfd < 0:
                self.look_for_exit()
            if not is_ending and self.stdout_size > self.stdout_limit:
                return OVERFLOW
            if not is_ending and self.stop and self.stop.is_requested:
                return STOPPED
        return EXITED

    def serve(self, descriptor: int) -> None:
        """Does what *descriptor* is ready for."""
        if descriptor in self.open:
            data = os.read(descriptor, PIPE_BLOCK)
            if not data:
                self.poll.unregister(descriptor)
                self.open.pop(descriptor).close()
            else:
                self.take(descriptor, data)
        elif descriptor == self.pidfd:
            self.exited_at = monotonic_seconds()
            self.poll.unregister(descriptor)
        elif self.stop and descriptor == self.stop.reader:
            self.poll.unregister(descriptor)
        else:
            self.feed()
            if not self.stdin:
                self.poll.unregister(descriptor)

    def take(self, descriptor: int, data: bytes) -> None:
        """Keeps *data*, which came from *descriptor*."""
        if descriptor == self.stdout_descriptor:
            self.keep_output(data)
        else:
            self.keep_error(data)

    def feed(self) -> None:
        """Writes what the program takes of its request; closes its standard input after the last byte, or when it has closed it."""
        if self.stdin is None:
            return
        descriptor = self.stdin.fileno()
        os.set_blocking(descriptor, False)
        try:
            while self.pending:
                self.pending = self.pending[os.write(descriptor, self.pending) :]
        except BlockingIOError:
            return
        except OSError:  # EPIPE: it does not want to know
            pass
        self.stdin.close()
        self.stdin = None

    def keep_output(self, data: bytes) -> None:
        """Keeps *data* unless the limit has been passed already."""
        if self.stdout_size <= self.stdout_limit:
            self.chunks.append(data)
            self.stdout_size += len(data)

    def keep_error(self, data: bytes) -> None:
        """Keeps *data* and drops the oldest chunks that the tail does not need."""
        self.errors.append(data)
        self.stderr_size += len(data)
        self.stderr_kept += len(data)
        while self.stderr_kept - len(self.errors[0]) >= self.stderr_limit:
            self.stderr_kept -= len(self.errors.pop(0))

    def stderr_tail(self) -> tuple[bytes, int]:
        """(the last bytes of standard error, how many were cut off before them)."""
        tail = b"".join(self.errors)[-self.stderr_limit :]
        return tail, self.stderr_size - len(tail)

    def look_for_exit(self) -> None:
        """Notes the exit where the kernel has no descriptor for it; leaves the process unreaped where that is possible."""
        if self.exited_at is None:
            if hasattr(os, "waitid"):
                has_exited = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            else:
                has_exited = self.process.poll() is not None
            self.exited_at = monotonic_seconds() if has_exited else None

    def end_group(self) -> None:
        """Leaves nobody of the process group alive: TERM, two seconds, KILL.

        The first signal is sent before the leader is reaped, since its number is nobody else's until then.
        """
        import signal

        signal_group(self.pid, signal.SIGTERM)
        deadline = monotonic_seconds() + TERM_SECONDS
        while monotonic_seconds() < deadline:
            self.wait(min(deadline, monotonic_seconds() + LOOK_SECONDS), is_ending=True)
            if self.reap() and not is_group_alive(self.pid):
                return
            if self.is_done():
                time.sleep(LOOK_SECONDS)
        signal_group(self.pid, signal.SIGKILL)
        self.wait(monotonic_seconds() + (KILLED_SECONDS if self.exited_at is None else LOOK_SECONDS), is_ending=True)
        self.reap()

    def abandon(self) -> None:
        """Kills the process group at once."""
        import signal

        signal_group(self.pid, signal.SIGKILL)
        self.process.wait()

    def reap(self) -> bool:
        """Takes the exit status of the program; False while it has not ended."""
        if self.exited_at is None:
            return False
        if self.stop:
            self.stop.running.discard(self.pid)
        self.process.wait()
        return True

    def close(self) -> None:
        """Closes what is still open."""
        for stream in (*self.open.values(), self.stdin):
            if stream is not None:
                stream.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
        if self.stop:
            self.stop.running.discard(self.pid)


def open_pidfd(pid: int) -> int:
    """A descriptor that becomes readable when process *pid* ends; -1 where there is no such thing (not Linux, or before 5.3)."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def open_input(pid: int) -> IO[bytes] | None:
    """The pipe that is the standard input of process *pid*; None where /proc does not have it."""
    try:
        return open_for_reading(f"/proc/{pid}/fd/0")
    except InputError:
        return None


def unread_bytes(stream: IO[bytes]) -> int:
    """How many bytes wait in the pipe *stream*, which is closed."""
    import fcntl
    import termios

    with stream:
        return int.from_bytes(fcntl.ioctl(stream.fileno(), termios.FIONREAD, bytes(4)), sys.byteorder)


def kill_marked(mark: bytes) -> None:
    """Kills each process of this user whose environment holds the entry *mark*; only where there is /proc."""
    import signal

    pinned: Any = getattr(signal, "pidfd_send_signal", None)
    for name in process_numbers() if pinned else ():
        pidfd = open_pidfd(int(name))  # first, so that what is killed is what was looked at
        if pidfd < 0:
            continue
        try:
            if int(name) != os.getpid() and mark in read_bytes(f"/proc/{name}/environ").split(b"\0"):
                pinned(pidfd, signal.SIGKILL)
        except (InputError, OSError):
            pass  # another user's, or gone
        finally:
            os.close(pidfd)

"""Workers: who answers trials. The bridge knows their interface only.

A worker answers one trial at a time from one thread. ProcessWorker starts the command anew
for each trial, in a private work folder that is gone afterwards; ReplayWorker looks the
answer up in a recording.
"""

import itertools
import os
from contextlib import suppress

from kaizen.foundation.clock import utc_now
from kaizen.foundation.errors import InputError, RefusedError, UsageError
from kaizen.foundation.files import open_for_reading, refuse_writing, remove_tree, shown_path
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.locks import FileLock
from kaizen.foundation.process import OVERFLOW, STOPPED, TIMEOUT, Ended, StopSwitch, find_program, run_program, signal_name
from kaizen.foundation.redact import environment_secrets, redact_arguments
from kaizen.foundation.text import quoted, visible
from kaizen.runs.cuts import CUT_MARGIN, cut_middle, cut_tail
from kaizen.runs.observation import CANCELLED, COMPLETED, Attempt, error_document
from kaizen.runs.protocol import (
    STDERR_LIMIT,
    STDOUT_LIMIT,
    ProtocolError,
    TrialRequest,
    read_answer,
    reported_error,
    request_line,
)
from kaizen.runs.replay import Recording

WORK_PREFIX = "kaizen-work-"
COMPLETED_STDERR_LIMIT = 4 << 10  # bytes kept of the end of standard error when the trial completed


class Worker:
    """Answers trials one after the other; `close` ends what it holds."""

    def answer(self, request: TrialRequest) -> Attempt:
        """What came of *request*; status cancelled when the run was stopped meanwhile. Raises CannotStart."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends what the worker holds; nothing by itself."""


class ReplayWorker(Worker):
    """Answers from a recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def answer(self, request: TrialRequest) -> Attempt:
        return self.recording.attempt(request.case.id, request.trial)

    def close(self) -> None:
        self.recording.close()


class WorkFolders:
    """Private folders for trials, inside one folder of the run; use as a context manager, nothing stays behind.

    A run that was killed could not clean up. Its folder is known by its lock, which the kernel
    released with the process, and is removed by the next run of the same user.
    """

    def __init__(self) -> None:
        import tempfile

        try:
            parent = tempfile.gettempdir()
        except OSError as error:
            refuse_writing("temporary folder", error)
        sweep_work_folders(parent)
        self.path = os.path.join(parent, f"{WORK_PREFIX}{os.urandom(8).hex()}")
        self.lock = FileLock(self.path + ".lock", "the work folder")
        self.numbers = itertools.count(1)

    def __enter__(self) -> "WorkFolders":
        self.lock.__enter__()  # before the folder is made, so that no other run takes it for one left behind
        make_private_folder(self.path)
        return self

    def __exit__(self, *error: object) -> None:
        remove_work_folder(self.path)
        self.lock.__exit__(None, None, None)

    def make(self) -> str:
        """A new empty folder."""
        path = os.path.join(self.path, str(next(self.numbers)))
        make_private_folder(path)
        return path


def make_private_folder(path: str) -> None:
    """Makes the folder *path*, for this user only. Raises InputError."""
    try:
        os.mkdir(path, 0o700)
    except OSError as error:
        refuse_writing(path, error)


def remove_work_folder(path: str) -> None:
    """Removes the folder *path*, also one that was made read-only; links are removed, not followed. What cannot be removed stays."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return
    except OSError:
        with suppress(OSError):
            remove_tree(path)


def sweep_work_folders(parent: str) -> None:
    """Removes work folders of this user in *parent* whose run is no longer alive."""
    try:
        names = os.listdir(parent)
    except OSError:
        return
    for path in {os.path.join(parent, name.removesuffix(".lock")) for name in names if name.startswith(WORK_PREFIX)}:
        try:
            if all(os.lstat(each).st_uid == os.getuid() for each in (path, path + ".lock") if os.path.lexists(each)):
                with FileLock(path + ".lock", "the work folder", patience=0):
                    remove_work_folder(path)
        except (OSError, InputError, RefusedError):
            pass  # in use, or gone meanwhile


class ProcessWorker(Worker):
    """Starts the command once for each trial; raises CannotStart when that is impossible."""

    def __init__(self, command: list[str], cwd: str, timeout_seconds: float, folders: WorkFolders, stop: StopSwitch) -> None:
        self.command, self.cwd, self.timeout_seconds, self.folders, self.stop = command, cwd, timeout_seconds, folders, stop
        self.environment = dict(os.environb)

    def answer(self, request: TrialRequest) -> Attempt:
        folder = self.folders.make()
        mark = b"KAIZEN_WORKDIR=" + os.fsencode(folder)
        started_at = utc_now()
        try:
            ended = run_program(
                self.command,
                request_line(request),
                cwd=self.cwd,
                environment={**self.environment, **trial_environment(request), b"KAIZEN_WORKDIR": os.fsencode(folder)},
                timeout_seconds=self.timeout_seconds,
                stdout_limit=STDOUT_LIMIT,
                stderr_limit=STDERR_LIMIT + CUT_MARGIN,
                stop=self.stop,
                mark=mark,
            )
        finally:
            remove_work_folder(folder)
        return process_attempt(ended, started_at, self.timeout_seconds)


def trial_environment(request: TrialRequest) -> dict[bytes, bytes]:
    """What a runner's environment says of its trial, as UTF-8 whatever the locale."""
    return {
        b"KAIZEN_CASE_ID": request.case.id.encode("utf-8"),
        b"KAIZEN_STAGE": request.stage.encode("utf-8"),
        b"KAIZEN_TRIAL": b"%d" % request.trial,
        b"KAIZEN_SEED": b"%d" % request.seed,
    }


def process_attempt(ended: Ended, started_at: str, timeout_seconds: float) -> Attempt:
    """The attempt that a runner which *ended* like this has made."""
    status, fields, error = judged_end(ended, timeout_seconds)
    limit = COMPLETED_STDERR_LIMIT if error is None else STDERR_LIMIT
    pointer = "/execution/stderr_tail" if error is None else "/error/stderr_tail"
    stderr, hits = cut_tail(ended.stderr, limit, ended.stderr_cut, "standard error", pointer)
    if hits:
        fields = {**fields, "redacted": [*fields.get("redacted", ()), *hits]}
    return Attempt(status, fields, error, started_at, ended.seconds * 1000, ended.exit_code, stderr)


def judged_end(ended: Ended, timeout_seconds: float) -> tuple[str, JsonObject, JsonObject | None]:
    """(status, fields, error) of a trial whose runner *ended* like this."""
    if ended.end == STOPPED:
        return CANCELLED, {}, error_document("cancelled", "interrupted", "the run was interrupted")
    if ended.end == TIMEOUT:
        return "timeout", {}, error_document("timeout", "timeout", f"no end within {timeout_seconds:g} s; the runner was ended")
    if ended.end == OVERFLOW:
        message = f"standard output is larger than the limit of {STDOUT_LIMIT >> 20} MiB ({STDOUT_LIMIT} bytes)"
        return "protocol_error", {}, with_excerpt(error_document("protocol", "too_much_output", message), ended.stdout)
    code = ended.exit_code
    if code:
        what = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        error = error_document("runner", "signal" if code < 0 else "exit", f"the runner {what}")
        return "error", {}, with_excerpt(error, ended.stdout)
    try:
        fields, reported = read_answer(ended.stdout)
    except ProtocolError as problem:
        return "protocol_error", {}, with_excerpt(error_document("protocol", problem.error_type, problem.message), ended.stdout)
    return (COMPLETED, fields, None) if reported is None else ("error", fields, reported_error(reported, "agent"))


def with_excerpt(error: JsonObject, stdout: bytes) -> JsonObject:
    """*error* with the beginning and end of what was printed, if anything was."""
    shown, hits = cut_middle(stdout, "/error/stdout_excerpt")
    return {**error, **({"stdout_excerpt": shown} if shown else {}), **({"redacted": hits} if hits else {})}


def check_command(command: list[str], cwd: str) -> list[str]:
    """Notes about a *command* that can be started from *cwd*. Raises UsageError when its first word starts nothing."""
    word = command[0]
    path = find_program(word, cwd)
    if path is None:
        raise no_such_program(word, cwd)
    if os.path.basename(os.path.dirname(path)) == "shims" and is_script(path):
        cost = "which costs time at every start; the real path of the program is faster"
        return [f"{shown_word(word)} is the shim of a version manager, {cost}"]
    return []


def no_such_program(word: str, cwd: str) -> UsageError:
    """The error for a first word that starts nothing from the folder *cwd*, with what the user may have meant."""
    place = os.path.join(cwd, word)
    what = f"there is no program {shown_word(word)} " + (f"in {shown_path(cwd)}" if "/" in word else "on PATH")
    if os.path.isdir(place) and "/" in word:
        what, hint = f"{shown_word(word)} is a folder", "name the program in it"
    elif os.path.isfile(place) and not os.access(place, os.X_OK):
        what = f"{shown_word(word)} is not executable" if "/" in word else what
        hint = "make it executable (chmod +x), or name its interpreter: python agent.py"
    elif "/" not in word:
        hint = f"did you mean ./{word}?" if os.path.isfile(place) else "is it installed? one of your own is given by its path, ./agent"
    else:
        hint = "the command is started in the folder that --cwd names" if os.path.exists(word) else "check the path"
    return UsageError(f"{what}; nothing was run", visible(hint), "no_such_program")


def shown_word(word: str) -> str:
    """The first word of a command as a message names it: people write `API_KEY=… ./agent`, which only a shell understands."""
    return quoted(redact_arguments([word], environment_secrets(os.environ))[0])


def is_script(path: str) -> bool:
    """True when the file *path* begins with '#!'."""
    try:
        with open_for_reading(path) as stream:
            return stream.read(2) == b"#!"
    except InputError:
        return False

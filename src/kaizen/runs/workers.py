"""Workers: who answers trials. The bridge knows their interface only.

A worker answers one trial at a time from one thread. ProcessWorker starts the command anew
for each trial, in a private work folder that is gone afterwards; ReplayWorker looks the
answer up in a recording.
"""

import itertools
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kaizen.foundation.clock import utc_now
from kaizen.foundation.errors import InputError, RefusedError, UsageError
from kaizen.foundation.files import open_for_reading, refuse_writing, remove_tree, shown_path
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.locks import FileLock
from kaizen.foundation.process import OVERFLOW, STOPPED, TIMEOUT, Ended, StopSwitch, find_program, run_program, signal_name
from kaizen.foundation.redact import environment_secrets, redact_arguments
from kaizen.foundation.text import quoted, visible
from kaizen.runs.cuts import CUT_MARGIN, cut_middle, cut_tail
from kaizen.runs.kept_files import WorkFiles
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

TOO_MUCH_OUTPUT = f"standard output is larger than the limit of {STDOUT_LIMIT >> 20} MiB ({STDOUT_LIMIT} bytes)"
WORK_PREFIX = "kaizen-work-"
BASIC_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "LANG")  # and LC_*
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
    """Starts the command once for each trial; raises CannotStart when that is impossible.

    `environment` and `files` may be set by whoever makes it: what the runner gets, and what its work folder begins with and is kept of it.
    `ended` is how the last program ended; with `watches_input` also how much it did not read.
    """

    watches_input = False
    ended: Ended | None = None

    def __init__(self, command: list[str], cwd: str, timeout_seconds: float, folders: WorkFolders, stop: StopSwitch) -> None:
        self.command, self.cwd, self.timeout_seconds, self.folders, self.stop = command, cwd, timeout_seconds, folders, stop
        self.environment = dict(os.environb)
        self.files: WorkFiles | None = None

    def answer(self, request: TrialRequest) -> Attempt:
        folder = self.folders.make()
        mark = b"KAIZEN_WORKDIR=" + os.fsencode(folder)
        try:
            if self.files:
                self.files.prepare(folder)
            started_at = utc_now()
            command, stdin = self.asked(request, folder)
            self.ended = ended = run_program(
                command,
                stdin,
                cwd=self.cwd,
                environment={**self.environment, **trial_environment(request), b"KAIZEN_WORKDIR": os.fsencode(folder)},
                timeout_seconds=self.timeout_seconds,
                stdout_limit=STDOUT_LIMIT,
                stderr_limit=STDERR_LIMIT + CUT_MARGIN,
                stop=self.stop,
                mark=mark,
                watches_input=self.watches_input,
            )
            return self.with_files(process_attempt(ended, started_at, self.timeout_seconds, self.read), folder, request)
        finally:
            remove_work_folder(folder)

    def with_files(self, attempt: Attempt, folder: str, request: TrialRequest) -> Attempt:
        """*attempt* with the files that are to be kept of it, as measured, in place of what the runner said of them."""
        if self.files is None or not self.files.keeps_any or attempt.status == CANCELLED:
            return attempt
        files, notes, hits = self.files.collect(folder, request.case.id, request.trial)
        fields = {**attempt.fields, "files": files}
        if hits:
            fields["redacted"] = [*fields.get("redacted", ()), *hits]
        if notes:
            fields["notes"] = [*fields.get("notes", []), *notes]
        return attempt._replace(fields=fields)

    def asked(self, request: TrialRequest, folder: str) -> tuple[list[Any], bytes]:
        """(the command, what goes to its standard input) for a trial with the work folder *folder*."""
        return self.command, request_line(request)

    def read(self, stdout: bytes) -> tuple[JsonObject, JsonObject | None]:
        """(the fields to record, the runner's own error or None) of what was printed. Raises ProtocolError."""
        return read_answer(stdout)


ReadOutput = Callable[[bytes], tuple[JsonObject, "JsonObject | None"]]


def passed_environment(names: tuple[str, ...]) -> dict[bytes, bytes]:
    """What of this process's environment a runner gets: everything when *names* is empty, else those and BASIC_ENVIRONMENT."""
    wanted = {*BASIC_ENVIRONMENT, *names}
    kept = ((name, value) for name, value in os.environb.items() if os.fsdecode(name) in wanted or name.startswith(b"LC_"))
    return dict(kept) if names else dict(os.environb)


def trial_environment(request: TrialRequest) -> dict[bytes, bytes]:
    """What a runner's environment says of its trial, as UTF-8 whatever the locale."""
    return {
        b"KAIZEN_CASE_ID": request.case.id.encode("utf-8"),
        b"KAIZEN_STAGE": request.stage.encode("utf-8"),
        b"KAIZEN_TRIAL": b"%d" % request.trial,
        b"KAIZEN_SEED": b"%d" % request.seed,
    }


def process_attempt(ended: Ended, started_at: str, timeout_seconds: float, read: ReadOutput = read_answer) -> Attempt:
    """The attempt that a runner which *ended* like this has made; *read* makes fields of what it printed."""
    status, fields, error = judged_end(ended, timeout_seconds, read)
    fields, stderr = kept_errors(fields, ended.stderr, ended.stderr_cut, error is None)
    return Attempt(status, fields, error, started_at, ended.seconds * 1000, ended.exit_code, stderr)


def kept_errors(fields: JsonObject, stderr: bytes, cut: int, is_completed: bool) -> tuple[JsonObject, str]:
    """(*fields* with what was masked, what is kept) of the tail *stderr* of standard error, before which *cut* bytes are gone already."""
    limit, place = (COMPLETED_STDERR_LIMIT, "execution") if is_completed else (STDERR_LIMIT, "error")
    text, hits = cut_tail(stderr, limit, cut, "standard error", f"/{place}/stderr_tail")
    return {**fields, "redacted": [*fields.get("redacted", ()), *hits]} if hits else fields, text


def judged_end(ended: Ended, timeout_seconds: float, read: ReadOutput) -> tuple[str, JsonObject, JsonObject | None]:
    """(status, fields, error) of a trial whose runner *ended* like this."""
    if ended.end == STOPPED:
        return CANCELLED, {}, error_document("cancelled", "interrupted", "the run was interrupted")
    if ended.end == TIMEOUT:
        return "timeout", {}, error_document("timeout", "timeout", f"no end within {timeout_seconds:g} s; the runner was ended")
    if ended.end == OVERFLOW:
        return "protocol_error", {}, with_excerpt(error_document("protocol", "too_much_output", TOO_MUCH_OUTPUT), ended.stdout)
    if ended.exit_code:
        return "error", {}, with_excerpt(exit_error(ended.exit_code), ended.stdout)
    try:
        fields, reported = read(ended.stdout)
    except ProtocolError as problem:
        return "protocol_error", {}, with_excerpt(error_document("protocol", problem.error_type, problem.message), ended.stdout)
    return (COMPLETED, fields, None) if reported is None else ("error", fields, reported_error(reported, "agent"))


def exit_error(code: int) -> JsonObject:
    """The error of a runner that ended with exit code *code*, negative for a signal."""
    what = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
    return error_document("runner", "signal" if code < 0 else "exit", f"the runner {what}")


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

"""Asking judges: a process for each question, or one that answers many, a line each way.

A judge that takes too long, ends badly or breaks the protocol is ended and, with retries,
asked again. What it wrote to standard error is told, never read.
"""

import os
from typing import NamedTuple

from kaizen.foundation.clock import monotonic_seconds, utc_now
from kaizen.foundation.conversation import Conversation
from kaizen.foundation.jsonio import JsonObject, encode_compact
from kaizen.foundation.process import EXITED, OVERFLOW, STOPPED, TIMEOUT, CannotStart, run_program, signal_name
from kaizen.foundation.redact import environment_secrets, redact_text
from kaizen.foundation.text import visible
from kaizen.runs.crew import Toolbox
from kaizen.runs.judge_protocol import JUDGE_STDOUT_LIMIT, JudgeFailure, read_judgement
from kaizen.runs.workers import remove_work_folder

JUDGE_STDERR_LIMIT = 8 << 10  # bytes kept of the end of a judge's standard error


class JudgeCommand(NamedTuple):
    """How judges are run: the *command* in the folder *cwd*, each answer within *timeout_seconds*, *retries* further attempts."""

    command: list[str]
    cwd: str
    is_persistent: bool = False
    timeout_seconds: float = 120
    retries: int = 0


class Judged(NamedTuple):
    """What came of a question: the fields of the answer, else a code and a sentence in `failure`; how it was measured."""

    answer: JsonObject | None
    failure: tuple[str, str] | None
    asked_at: str
    duration_ms: float
    attempts: int


class JudgeStopped(Exception):
    """The user ended the run before the judge answered."""


class Judge:
    """Asks one question after the other with the tools of its thread."""

    def __init__(self, how: JudgeCommand, tools: Toolbox) -> None:
        self.how, self.tools = how, tools
        self.talk: Conversation | None = None
        self.folder = ""
        self.number = 0

    def ask(self, request: JsonObject) -> Judged:
        """What the judge makes of *request*. Raises JudgeStopped."""
        asked_at, started = utc_now(), monotonic_seconds()
        answer, failure, attempts = None, None, 0
        while answer is None and attempts <= self.how.retries:
            attempts += 1
            try:
                answer = self.persistent_answer(request) if self.how.is_persistent else self.single_answer(request)
            except JudgeFailure as problem:
                failure = (problem.code, problem.message)
            except CannotStart as error:
                failure = ("judge_failed", f"the judge cannot be started: {error}")
        return Judged(answer, None if answer else failure, asked_at, round(1000 * (monotonic_seconds() - started), 3), attempts)

    def surroundings(self) -> tuple[dict[bytes, bytes], bytes]:
        """(environment of a judge with a new private folder, the entry in it by which it is known)."""
        self.folder = self.tools.folders.make()
        environment = {**self.tools.environment, b"KAIZEN_WORKDIR": os.fsencode(self.folder)}
        return environment, b"KAIZEN_WORKDIR=" + os.fsencode(self.folder)

    def single_answer(self, request: JsonObject) -> JsonObject:
        """The answer of a process of its own. Raises JudgeFailure, CannotStart, JudgeStopped."""
        environment, mark = self.surroundings()
        try:
            ended = run_program(
                self.how.command,
                encode_compact(request).encode("utf-8") + b"\n",
                cwd=self.how.cwd,
                environment=environment,
                timeout_seconds=self.how.timeout_seconds,
                stdout_limit=JUDGE_STDOUT_LIMIT,
                stderr_limit=JUDGE_STDERR_LIMIT,
                stop=self.tools.stop,
                mark=mark,
            )
        finally:
            remove_work_folder(self.folder)
        if ended.end != EXITED or ended.exit_code:
            raise self.failure_of(ended.end, ended.exit_code, ended.stderr)
        return read_judgement(ended.stdout)

    def persistent_answer(self, request: JsonObject) -> JsonObject:
        """The answer of the process that goes on; it is ended when it does not give one. Raises as `single_answer`."""
        self.number += 1
        line = encode_compact({**request, "request": self.number}).encode("utf-8") + b"\n"
        was_running = self.talk is not None
        end = self.exchange(line)
        if end == EXITED and was_running:  # it ended between two questions, which is no answer to this one
            self.close()
            end = self.exchange(line)
        talk = self.talk
        assert talk is not None
        lines, rest = list(talk.lines), talk.unfinished()
        talk.lines.clear()
        try:
            if end:
                code, stderr = (talk.end() if end == EXITED else None), talk.take_errors()[0]
                raise self.failure_of(end, code, stderr)
            if len(lines) > 1 or rest.strip():
                raise JudgeFailure("judge_protocol", "the judge printed more than one line for one question")
            answer = read_judgement(lines[0], self.number)
        except JudgeFailure:
            self.close()
            raise
        talk.answered()
        talk.take_errors()
        return answer

    def exchange(self, line: bytes) -> str:
        """'' when the judge said something to *line*, else why not."""
        if self.talk is None:
            environment, mark = self.surroundings()
            try:
                limits = (JUDGE_STDOUT_LIMIT, JUDGE_STDERR_LIMIT)
                self.talk = Conversation(self.how.command, self.how.cwd, environment, limits=limits, stop=self.tools.stop, mark=mark)
            except BaseException:
                remove_work_folder(self.folder)
                raise
        sent = self.talk.send(line)
        return self.talk.listen(monotonic_seconds() + self.how.timeout_seconds, sent)

    def failure_of(self, end: str, code: int | None, stderr: bytes) -> Exception:
        """Why a judge that came to this *end* gave no answer, with the last line of its standard error."""
        if end == STOPPED:
            return JudgeStopped()
        if end == TIMEOUT:
            hint = " (persistent judges read a line and answer with a line)" if self.how.is_persistent else ""
            return JudgeFailure("judge_timeout", f"no answer within {self.how.timeout_seconds:g} s; the judge was ended{hint}")
        if end == OVERFLOW:
            return JudgeFailure("judge_protocol", f"the judge printed more than {JUDGE_STDOUT_LIMIT >> 20} MiB")
        what = f"was killed by {signal_name(-code)}" if code and code < 0 else f"ended with exit code {code or 0}"
        return JudgeFailure("judge_failed", f"the judge {what} without an answer{last_words(stderr)}")

    def close(self) -> None:
        """Ends the process that goes on, if there is one."""
        talk, self.talk = self.talk, None
        if talk is not None:
            try:
                talk.end()
            finally:
                remove_work_folder(self.folder)


def last_words(stderr: bytes) -> str:
    """': …' with the last line of *stderr* that is not blank, masked; '' when there is none."""
    lines = stderr.decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {visible(redact_text(last, environment_secrets(os.environ))[0], 300)}" if last else ""

"""Persistent runners: one process answers many trials, a JSON object a line each way.

    {"protocol": "1.2", "case": {…}, "run": {…}, "request": 7}      to its standard input
    {"request": 7, "output": …}                                     from its standard output

Requests are numbered; answers may come in any order. While answers come fast a few requests
wait in the pipe, so that neither side waits for the other; a runner that takes its time, or
prints log lines, gets one at a time, so that time, log and blame belong to one trial.

A process that takes too long, ends, or breaks the protocol is ended. The oldest trial it has
not answered gets the error; the others are sent again to the next process, as if never sent.
"""

import os
import re
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from kaizen.foundation.clock import monotonic_seconds, utc_now
from kaizen.foundation.conversation import Conversation
from kaizen.foundation.jsonio import JsonObject, encode_compact
from kaizen.foundation.process import OVERFLOW, STOPPED, TIMEOUT, CannotStart
from kaizen.foundation.text import quoted
from kaizen.runs.cuts import CUT_MARGIN
from kaizen.runs.observation import COMPLETED, Attempt, error_document
from kaizen.runs.protocol import (
    STDERR_LIMIT,
    STDOUT_LIMIT,
    ProtocolError,
    TrialRequest,
    parse_answer,
    recorded_answer,
    reported_error,
    request_document,
)
from kaizen.runs.workers import (
    TOO_MUCH_OUTPUT,
    ProcessWorker,
    exit_error,
    kept_errors,
    remove_work_folder,
    with_excerpt,
)

WINDOW = 8  # requests in flight while answers come fast; measured: 4 to 16 are alike, 1 is much slower
FAST_SECONDS = 0.01  # what an answer may take for the next requests to be sent ahead
SILENT_STARTS = 5  # processes in a row that end by themselves without an answer, until the worker gives up
TRIAL_VARIABLES = (b"KAIZEN_CASE_ID", b"KAIZEN_TRIAL", b"KAIZEN_SEED")
NAMED_REQUEST = re.compile(rb'"request"\s*:\s*(\d{1,15})\b')


class Flight(NamedTuple):
    """A request on its way: when it was sent, and the bytes that had then been sent to the process."""

    request: TrialRequest
    sent_at: float
    started_at: str
    end: int


class PersistentWorker(ProcessWorker):
    """Has one process after the other answer trials; *notes* gets what belongs to no trial."""

    def __init__(self, *setting: Any, notes: list[str]) -> None:
        super().__init__(*setting)
        self.notes = notes
        self.talk: Conversation | None = None
        self.folder = ""
        self.number = 0  # of the last request
        self.flights: dict[int, Flight] = {}  # unanswered, in the order of sending
        self.again: deque[TrialRequest] = deque()  # sent to a process that is no more
        self.log: list[bytes] = []  # lines since the last answer that are none
        self.is_chatty = self.is_crowded = self.is_fast = self.has_answered = False
        self.silent_starts = 0
        self.share = 0.0  # of the time that fast answers took
        self.heard_at = self.oldest_at = 0.0  # of the last answer; since when the oldest flight is the oldest

    def answer_all(
        self,
        take: Callable[[bool], TrialRequest | None],
        settle: Callable[[TrialRequest, Attempt], None],
        cannot_start: Callable[[CannotStart], Attempt],
    ) -> list[TrialRequest]:
        """Has the trials that *take* gives answered, hands each to *settle*, and returns those it gave up.

        *take* is told whether it may wait for a trial that others hold up: only while none is unanswered here.
        *cannot_start* gives the attempt for a process that cannot be started, or raises what ends the run.
        """
        self.settle = settle
        while self.silent_starts < SILENT_STARTS and not self.stop.is_requested:
            try:
                self.send_some(take)
            except CannotStart as error:
                self.silent_starts += 1
                self.settle(self.again.popleft(), cannot_start(error))
                continue
            if self.talk is None or self.talk.stdin and not self.flights:
                break
            self.hear(self.talk)
        return list(self.again)

    def send_some(self, take: Callable[[bool], TrialRequest | None]) -> None:
        """Sends as many requests as may be in flight; several at a time, which saves both sides half of their calls."""
        room = WINDOW if self.is_fast and not self.is_chatty else 1
        if len(self.flights) > room // 2 or self.talk and not self.talk.stdin:
            return
        requests: list[TrialRequest] = []
        while len(self.flights) + len(requests) < room:
            request = self.again.popleft() if self.again else take(not self.flights and not requests)
            if request is None:
                break
            requests.append(request)
        if not requests:
            return
        if self.talk is None:
            self.again.extendleft(reversed(requests))
            self.talk = self.start()
            requests = [self.again.popleft() for _ in requests]
        now, started_at, lines, end = monotonic_seconds(), utc_now(), b"", self.talk.sent
        for request in requests:
            self.number += 1
            document = request_document(request)
            document["request"] = self.number
            lines += encode_compact(document).encode("utf-8") + b"\n"
            self.oldest_at = self.oldest_at if self.flights else now
            self.flights[self.number] = Flight(request, now, started_at, end + len(lines))
        if len(self.flights) > 1:
            self.is_crowded = True  # whose standard error it is cannot be told until one has the process to itself again
        elif self.is_crowded:
            self.is_crowded = False
            self.talk.take_errors()
        self.talk.send(lines)

    def start(self) -> Conversation:
        """A new process, in an environment that names no case. Raises CannotStart."""
        self.folder = self.folders.make()
        self.is_fast = self.has_answered = False
        environment = {name: value for name, value in self.environment.items() if name not in TRIAL_VARIABLES}
        environment[b"KAIZEN_STAGE"] = self.again[0].stage.encode("utf-8")
        environment[b"KAIZEN_WORKDIR"] = os.fsencode(self.folder)
        limits, mark = (STDOUT_LIMIT, STDERR_LIMIT + CUT_MARGIN), b"KAIZEN_WORKDIR=" + os.fsencode(self.folder)
        try:
            return Conversation(self.command, self.cwd, environment, limits=limits, stop=self.stop, mark=mark)
        except BaseException:
            remove_work_folder(self.folder)
            raise

    def hear(self, talk: Conversation) -> None:
        """Waits for lines and settles what they answer, or settles the oldest trial with the reason why there are none."""
        oldest = next(iter(self.flights.values()), None)  # None: the process has closed its input
        end = talk.listen(self.oldest_at + self.timeout_seconds, oldest.end if oldest else talk.sent + 1)
        if not end:
            self.hear_lines(talk, max(self.heard_at, oldest.sent_at if oldest else 0))
        elif end == TIMEOUT:
            message = f"no answer within {self.timeout_seconds:g} s; the runner was ended"
            self.blame("timeout", error_document("timeout", "timeout", message))
        elif end == OVERFLOW:
            self.blame("protocol_error", error_document("protocol", "too_much_output", TOO_MUCH_OUTPUT))
        elif end != STOPPED:
            self.hear_end(talk)

    def hear_lines(self, talk: Conversation, since: float) -> None:
        """Settles the trials that the lines answer; what no process may say ends it, with the oldest trial to blame.

        Fast answers that are read together share the time *since* then; a longer time is the first one's.
        """
        lines, now = list(talk.lines), monotonic_seconds()
        talk.lines.clear()
        share = (now - since) / len(lines)
        self.share = share if now - since < FAST_SECONDS else min(share, self.share)
        for place, line in enumerate(lines, 1):
            heard_at = now - (len(lines) - place) * self.share
            try:
                number, answer, is_repaired = addressed_answer(line)
                if number and number not in self.flights:
                    raise ProtocolError(*unasked_answer(number, self.number))
            except ProtocolError as problem:
                self.log.append(line)
                self.blame("protocol_error", protocol_document(problem))
                return
            if number:
                self.settle_answer(talk, number, line, answer, is_repaired, heard_at)
            elif line.strip() or self.log:
                self.log.append(line)
                self.is_chatty = True

    def settle_answer(self, talk: Conversation, number: int, line: bytes, answer: Any, is_repaired: bool, heard_at: float) -> None:
        """Settles request *number* with its *answer*, or what is wrong with it.

        Log lines and standard error go with it when no other trial can have made them.
        """
        is_only, is_oldest = len(self.flights) == 1, number == next(iter(self.flights))
        flight = self.flights.pop(number)
        seconds = max(heard_at - max(flight.sent_at, self.heard_at), 0.0)
        self.heard_at, self.has_answered, self.silent_starts = heard_at, True, 0
        self.oldest_at = heard_at if is_oldest else self.oldest_at
        self.is_fast = seconds < FAST_SECONDS
        talk.answered()
        log, self.log = b"\n".join(self.log).strip(), []
        if log and not is_only:
            self.note("lines on standard output that belong to no single trial were not kept")
            log = b""
        fields: JsonObject = {}
        try:
            if isinstance(answer, ProtocolError):
                raise answer
            fields, reported = recorded_answer(answer, log, is_repaired)
            status, error = (COMPLETED, None) if reported is None else ("error", reported_error(reported, "agent"))
        except ProtocolError as problem:
            status, error = "protocol_error", with_excerpt(protocol_document(problem), line)
        stderr = ""
        if is_only and not self.is_crowded:
            fields, stderr = kept_errors(fields, *talk.take_errors(), error is None)
        self.settle(flight.request, Attempt(status, fields, error, flight.started_at, seconds * 1000, None, stderr))

    def hear_end(self, talk: Conversation) -> None:
        """Settles the oldest trial with how the process ended, unless it had answered others and never got this one."""
        rest = talk.unfinished()
        with suppress(ProtocolError):
            number, answer, is_repaired = addressed_answer(rest)
            if number in self.flights and not isinstance(answer, ProtocolError):
                talk.chunks = []
                self.settle_answer(talk, number, rest, answer, is_repaired, monotonic_seconds())
        self.silent_starts += not self.has_answered
        code = talk.end()
        is_asked = any(talk.written >= flight.end for flight in self.flights.values())
        if code is None:
            error = error_document("runner", "closed", f"the runner closed its standard {'output' if is_asked else 'input'}")
        else:
            error = exit_error(code)
        if is_asked or not self.has_answered:
            error["message"] += " before it answered"
            self.blame("error", error)
        else:
            self.again.extendleft(flight.request for flight in reversed(self.flights.values()))
            self.flights.clear()
            self.note(f"{error['message']} between two trials, and was started anew")
            self.end()

    def blame(self, status: str, error: JsonObject) -> None:
        """Ends the process and settles the oldest trial with *error*; the others are to be sent again."""
        talk, seconds = self.talk, monotonic_seconds() - self.oldest_at
        self.end()
        flights = list(self.flights.values())
        self.flights.clear()
        self.again.extendleft(flight.request for flight in reversed(flights[1:]))
        printed = b"\n".join([*self.log, talk.unfinished() if talk else b""])
        self.log = []
        if not talk or not flights:
            self.note(f"{error['message']}, and was started anew")
            return
        fields, stderr = kept_errors({}, *talk.take_errors(), False)
        code = talk.process.returncode if error["type"] in ("exit", "signal") else None
        attempt = Attempt(status, fields, with_excerpt(error, printed), flights[0].started_at, seconds * 1000, code, stderr)
        self.settle(flights[0].request, attempt)

    def end(self) -> None:
        """Ends the process, if there is one, and removes its work folder."""
        talk, self.talk = self.talk, None
        if talk is not None:
            try:
                talk.end()
            finally:
                remove_work_folder(self.folder)

    def close(self) -> None:
        """Lets the process end by itself, now that its input ends, and notes when it does so badly."""
        if self.talk is not None and not self.flights:
            code = self.talk.finish()
            if code:
                self.note(f"{exit_error(code)['message']} after its last answer")
            if any(NAMED_REQUEST.search(line) for line in self.talk.lines):
                self.note("the runner answered again after its last answer")
        self.end()

    def note(self, text: str) -> None:
        """Adds *text* to the notes of the run, once."""
        if text not in self.notes:
            self.notes.append(text)


def addressed_answer(line: bytes) -> tuple[int, Any, bool]:
    """(request number, answer or the ProtocolError that it is, whether it was repaired) of *line*; number 0 for a line of log.

    Raises ProtocolError for an answer to no request.
    """
    line = line.strip()
    if not line.startswith(b"{"):
        return 0, None, False
    try:
        answer, is_repaired = parse_answer(line, 0)
    except ProtocolError as problem:
        named = NAMED_REQUEST.search(line)
        return int(named[1]) if named else 0, problem, False
    number = answer.get("request")
    if isinstance(number, int) and number > 0 and number is not True:
        return number, answer, is_repaired
    if "output" not in answer and not isinstance(answer.get("error"), dict):
        return 0, None, False
    if number is None:
        raise ProtocolError("no_request", 'the runner answered without the "request" number of what it answers')
    raise ProtocolError("unknown_request", f"the runner answered request {quoted(encode_compact(number))}, which was never sent")


def unasked_answer(number: int, last: int) -> tuple[str, str]:
    """(type, message) of the error for an answer to request *number*, when none up to *last* waits for it."""
    if number <= last:
        return "duplicate_answer", f"the runner answered request {number} twice"
    return "unknown_request", f"the runner answered request {number}, which was never sent"


def protocol_document(problem: ProtocolError) -> JsonObject:
    """The `error` of an observation for *problem*."""
    return error_document("protocol", problem.error_type, problem.message)

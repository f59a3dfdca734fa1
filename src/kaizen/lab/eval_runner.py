"""The eval script: started in the variant's tree, its code from the locked copy.

It is heard on a descriptor of its own, and called with `--out-fd N --request FILE`. The request names a JSONL file that holds just
the cases of the items asked for, in the case format. What it prints goes into capped files.
"""

import os

from kaizen.foundation.files import list_folder, replacing, write_file
from kaizen.foundation.jsonio import JsonObject, encode_compact
from kaizen.foundation.process import CALLED_OFF, STOPPED, CannotStart, Ended, signal_name
from kaizen.foundation.supervision import Sinks, supervise_program
from kaizen.foundation.text import visible
from kaizen.lab.runstore import BROKEN_OFF, CRASHED
from kaizen.lab.session import (
    ENDED_WELL,
    MAX_EVENT_BYTES,
    AskedItem,
    EvalFault,
    ItemEvaluator,
    RunEnd,
    RunSession,
    decode_event,
)
from kaizen.lab.system import System
from kaizen.lab.workspace import Workspace

LAB_PROTOCOL = "1.0"
RUN_MARK = b"KAIZEN_RUN_MARK"


class EvalScript(ItemEvaluator):
    """Answers items by the command in `eval`."""

    def __init__(self, workspace: Workspace, system: System) -> None:
        self.command = system.command

    def answer(self, asked: list[AskedItem], session: RunSession) -> RunEnd:
        request = write_request(asked, session)
        words = [locked_word(word, session) for word in self.command]
        return supervised(words, ["--request", request], session)


def locked_word(word: str, session: RunSession) -> str:
    """*word* of a command; one that names a locked file is led to the locked copy."""
    path = os.path.normpath(word)
    return os.path.join(session.locked_folder, path) if path in session.locked else word


def write_request(asked: list[AskedItem], session: RunSession) -> str:
    """The path of a new request file about *asked*, which names a file with their cases."""
    folder = session.writer.material("requests")
    number = sum(name.endswith(".json") for name in list_folder(folder)) + 1
    path, cases = (os.path.join(folder, f"{number}{suffix}") for suffix in (".json", ".items.jsonl"))
    with replacing(cases) as stream:
        for document in {each.item: each.case.document for each in asked}.values():
            stream.write(encode_compact(document).encode("utf-8") + b"\n")
    request: JsonObject = {
        "protocol": LAB_PROTOCOL,
        "run": session.run,
        "system": session.system.id,
        "variant": session.variant,
        "pass": asked[0].pass_number,
        "item_timeout_seconds": session.limits.item_seconds,
        "dataset": cases,
        "items": [{"id": each.item, "trial": each.trial, "seed": each.seed} for each in asked],
    }
    write_file(path, encode_compact(request) + "\n")
    return path


class EventLines:
    """Cuts what comes from the eval into lines and hands each event on; the first fault is kept, and what follows it dropped."""

    def __init__(self, session: RunSession) -> None:
        self.session = session
        self.rest = b""
        self.fault: EvalFault | None = None

    def write(self, data: bytes) -> None:
        """Takes the next block."""
        if self.fault:
            return
        *lines, self.rest = (self.rest + data if self.rest else data).split(b"\n")
        try:
            for line in lines:
                self.take(line)
            if len(self.rest) > MAX_EVENT_BYTES:
                raise EvalFault("event_too_large", f"event {self.session.events + 1:,} is longer than {MAX_EVENT_BYTES >> 20} MiB")
        except EvalFault as fault:
            self.fault, self.rest = fault, b""

    def take(self, line: bytes) -> None:
        """Hands on the event on *line*, if there is one."""
        if line.strip():
            self.session.take(decode_event(line, self.session.events + 1))

    def close(self) -> None:
        """Takes a last line that has no line end."""
        self.write(b"\n")


def supervised(command: list[str], further: list[str], session: RunSession) -> RunEnd:
    """How *command* ended, which was started in the variant's tree with `--out-fd N` and *further* behind it and spoke to *session*."""
    lines = EventLines(session)
    called: list[RunEnd] = []

    def may_go_on() -> bool:
        end = lines.fault.end() if lines.fault else session.poll()
        called.extend([end] if end else [])
        return end is None

    try:
        ended = supervise_program(
            lambda descriptor: [*command, "--out-fd", str(descriptor), *further],
            Sinks(session.out.write, session.err.write, lines.write),
            may_go_on,
            cwd=session.tree,
            environment=session.environment,
            stop=session.stop,
            mark=RUN_MARK + b"=" + session.environment[RUN_MARK],
        )
    except CannotStart as error:
        return RunEnd(CRASHED, "cannot_start", f"the eval {visible(command[0])} cannot be started: {error}")
    if called and ended.end == CALLED_OFF:
        return called[0]
    if ended.end == STOPPED:
        return RunEnd(BROKEN_OFF, "stopped", "stopped by a signal")
    lines.close()
    return lines.fault.end() if lines.fault else end_of(ended, session)


def end_of(ended: Ended, session: RunSession) -> RunEnd:
    """The end of a run whose eval *ended* by itself: well only with exit code 0 and the event `end`."""
    code = ended.exit_code or 0
    if code < 0:
        return RunEnd(CRASHED, "signal", f"the eval was ended by {signal_name(-code)}")
    if code:
        return RunEnd(CRASHED, "exit_code", f"the eval ended with exit code {code}")
    if not session.has_ended:
        return RunEnd(CRASHED, "no_end", "the eval stopped without the event end: it may have stopped anywhere")
    return ENDED_WELL

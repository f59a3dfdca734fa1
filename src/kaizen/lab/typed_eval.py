"""A typed system as its own eval: a process for the runner, one for the grader.

What passes between the two passes through here. The runner's works in the variant's tree and gets inputs only. The grader's works in an
empty folder, finds modules of the locked copy alone, and has loaded them before the runner's is
started. An answer counts when it repeats the number of the request, which nobody else was told.
What either says is checked against the schemas of the locked copy.

Limit: both run as one user. A runner that attacks other processes is kept out by another user
or a container, not by this.
"""

import os
from contextlib import suppress
from typing import Any

from kaizen.foundation.clock import monotonic_seconds
from kaizen.foundation.conversation import Conversation
from kaizen.foundation.errors import KaizenError
from kaizen.foundation.jsonio import JsonError, JsonObject, decode_line, encode_compact
from kaizen.foundation.process import OVERFLOW, STOPPED, TIMEOUT, CannotStart
from kaizen.foundation.text import quoted, visible
from kaizen.lab.definition import DEBUG_HINT, NUMBER_METRIC, Definition, host_command, load_definition
from kaizen.lab.runstore import CRASHED
from kaizen.lab.session import (
    ENDED_WELL,
    MAX_EVENT_BYTES,
    AskedItem,
    EvalFault,
    ItemEvaluator,
    RunEnd,
    RunSession,
    changed_copy,
    tree_changed,
)
from kaizen.lab.system import SYSTEM_PROGRAM, System
from kaizen.lab.workspace import Workspace
from kaizen.runs.workers import WorkFolders

READY_SECONDS = 60.0
ERROR_LIMIT = 1 << 16
UNASKED = "unasked"
ENDINGS = {TIMEOUT: "took too long", OVERFLOW: "said too much", UNASKED: "answered what nobody asked"}  # any other: ended


class HostEnded(Exception):
    """A host that is no more: how it ended, as process.py says it."""


class AskingEnded(Exception):
    """The run must come to an end, which the exception holds."""

    def __init__(self, end: RunEnd) -> None:
        super().__init__(end.message)
        self.end = end


class SystemHost:
    """The process of one half of the definition: `run` or `grade`. Raises AskingEnded when it cannot be made ready."""

    def __init__(self, mode: str, root: str, session: RunSession, folder: str) -> None:
        self.mode, self.session = mode, session
        home = os.path.join(root, os.path.relpath(session.system.folder, session.workspace.root))
        environment = {**session.environment, b"KAIZEN_WORKDIR": os.fsencode(folder), b"TMPDIR": os.fsencode(folder)}
        command = host_command(mode, os.path.join(home, SYSTEM_PROGRAM), [home, root])
        cwd, limits = root if mode == "run" else folder, (MAX_EVENT_BYTES, ERROR_LIMIT)
        mark = b"KAIZEN_WORKDIR=" + os.fsencode(folder)
        try:
            self.talk = Conversation(command, cwd, environment, limits=limits, stop=session.stop, mark=mark)
        except CannotStart as error:
            raise AskingEnded(RunEnd(CRASHED, "cannot_start", f"the Python of the {self.name()} cannot be started: {error}")) from None
        try:
            ready = self.heard(0, READY_SECONDS, 0)
        except HostEnded as ended:
            self.end()
            why = ENDINGS.get(str(ended), "ended")
            raise AskingEnded(
                RunEnd(CRASHED, "cannot_load", f"the Python of the {self.name()} {why} while it loaded; {DEBUG_HINT}")
            ) from None
        except BaseException:
            self.end()
            raise
        if "fault" in ready:
            self.end()
            raise AskingEnded(RunEnd(CRASHED, "cannot_load", f"{session.system.id}: {fault_words(self.name(), ready)}; {DEBUG_HINT}"))

    def name(self) -> str:
        """'runner' or 'grader'."""
        return "runner" if self.mode == "run" else "grader"

    def ask(self, asked: AskedItem, *arguments: Any) -> JsonObject:
        """The answer to *arguments*: it has a `value`, or a `fault`. Raises HostEnded, AskingEnded."""
        number = os.urandom(8).hex()
        context = asked.case.document.get("context")
        request = {"request": number, "arguments": arguments, "context": context, "seed": asked.seed}
        needed = self.talk.send(encode_compact(request).encode("utf-8") + b"\n")
        return self.heard(number, self.session.limits.item_seconds, needed)

    def heard(self, number: "str | int", seconds: float, needed: int) -> JsonObject:
        """The answer to request *number*. Raises HostEnded when none comes within *seconds*, AskingEnded."""
        deadline = monotonic_seconds() + seconds
        while True:
            now = monotonic_seconds()
            end = self.talk.listen(min(deadline, now + 0.1), needed)
            self.pass_errors()
            while self.talk.lines:
                answer: JsonObject = {}
                with suppress(JsonError):
                    answer = decode_line(self.talk.lines.popleft())
                if answer.get("request") == number and answer.keys() & {"value", "fault"}:
                    self.talk.answered()
                    return answer
                if self.mode == "run":  # nobody but its host has this channel; others might write into the grader's
                    raise HostEnded(UNASKED)
            if end not in ("", TIMEOUT, STOPPED) or end == TIMEOUT and monotonic_seconds() >= deadline:
                raise HostEnded(end)
            self.session.heard_at = monotonic_seconds()  # an item has a limit of its own
            stopped = self.session.poll()
            if stopped:
                raise AskingEnded(stopped)

    def pass_errors(self) -> None:
        """Hands on what the system has printed."""
        printed, cut = self.talk.take_errors()
        if cut:
            self.session.err.write(f"\n[kaizen: {cut:,} bytes left out]\n".encode())
        if printed:
            self.session.err.write(printed)

    def end(self) -> None:
        """Ends the process and whatever it started."""
        with suppress(OSError, ValueError):
            self.pass_errors()
        self.talk.end()


class TypedEvaluator(ItemEvaluator):
    """Answers items by the runner and the grader of `system.py`."""

    separation = "own_process"

    def __init__(self, workspace: Workspace, system: System) -> None:
        self.hosts: dict[str, SystemHost] = {}
        self.definition: Definition | None = None

    def answer(self, asked: list[AskedItem], session: RunSession) -> RunEnd:
        with WorkFolders() as folders:
            try:
                definition = self.definition = self.definition or locked_definition(session)
                for each in asked:
                    refuse_unfit_item(definition, each, session.system)
                session.take({"event": "start", "total": len(asked)})
                for each in asked:
                    session.take(
                        {"event": "item", "id": each.item, "trial": each.trial, **self.answer_item(definition, each, session, folders)}
                    )
                session.take({"event": "end"})
                refuse_changed_copy(session)
                return ENDED_WELL
            except AskingEnded as ending:
                return ending.end
            except EvalFault as fault:
                return fault.end()
            finally:
                self.end_hosts("run", "grade")

    def host(self, mode: str, session: RunSession, folders: WorkFolders) -> SystemHost:
        """The host of *mode*, started if it is not there; the grader's is there before the runner's."""
        if mode not in self.hosts:
            if mode == "grade":
                refuse_changed_copy(session)
            root = session.tree if mode == "run" else session.locked_folder
            self.hosts[mode] = SystemHost(mode, root, session, folders.make())
        return self.hosts[mode]

    def end_hosts(self, *modes: str) -> None:
        """Ends the hosts of *modes* that are there."""
        for mode in modes:
            if mode in self.hosts:
                self.hosts.pop(mode).end()

    def answer_item(self, definition: Definition, asked: AskedItem, session: RunSession, folders: WorkFolders) -> JsonObject:
        """What is to be told of *asked*: status, metrics, score, output, latency, and what was wrong."""
        grader = self.host("grade", session, folders)
        runner = self.host("run", session, folders)
        document = asked.case.document
        began = monotonic_seconds()
        try:
            ran = runner.ask(asked, document["input"])
        except HostEnded as ended:
            self.end_hosts("run")
            how = str(ended)
            return {"status": "timeout" if how == TIMEOUT else "fail_error", "feedback": f"the runner {ENDINGS.get(how, 'ended')}"}
        told: JsonObject = {"latency_ms": round((monotonic_seconds() - began) * 1000, 3)}
        if "fault" in ran:
            return {**told, "status": "fail_error", "feedback": fault_words("runner", ran)}
        output = ran["value"]
        misfit = definition.misfit("output", output)
        if misfit is not None:
            return {**told, "status": "fail_error", "output": output, "feedback": misfit_words("output", misfit)}
        told["output"] = output
        try:
            graded = grader.ask(asked, document["input"], output, document.get("expected"))
        except HostEnded as ended:
            self.end_hosts("run", "grade")
            return {**told, "status": "infra_error", "feedback": f"the grader {ENDINGS.get(str(ended), 'ended')}"}
        return {**told, **graded_item(definition, graded)}


def graded_item(definition: Definition, graded: JsonObject) -> JsonObject:
    """Status, metrics and score of an answer of the grader; what it cannot grade is no fault of the system, and not measured."""
    if "fault" in graded:
        return {"status": "infra_error", "feedback": fault_words("grader", graded)}
    metrics, name = graded["value"], definition.metric.name
    misfit = definition.misfit("metrics", metrics)
    if misfit is None and name not in metrics:
        misfit = "/" + name
    if misfit is not None:
        return {"status": "infra_error", "feedback": misfit_words("metrics", misfit)}
    score = metrics[name] if definition.metrics[name] == NUMBER_METRIC else None
    return {"status": "ok", "metrics": metrics, "score": score}


def fault_words(name: str, answer: JsonObject) -> str:
    """'the runner raised ValueError', of an *answer* with a fault."""
    path = f" (#{visible(str(answer['path']), 80)})" if answer.get("path") else ""
    return f"the {name} {visible(str(answer['fault']), 200)}{path}"


def misfit_words(name: str, pointer: str) -> str:
    """'output#/amount does not fit its schema'."""
    return f"{name}#{visible(pointer, 200)} does not fit its schema"


def locked_definition(session: RunSession) -> Definition:
    """The definition in the locked copy. Raises AskingEnded when it cannot be loaded, or has another metric than the run."""
    home = os.path.join(session.locked_folder, os.path.relpath(session.system.folder, session.workspace.root))
    try:
        definition = load_definition(session.locked_folder, home, session.system.id)
    except KaizenError as error:
        hint = 'only locked files are found there: import the variant\'s modules inside the runner, or name it "module:name"'
        raise AskingEnded(RunEnd(CRASHED, "cannot_load", f"in the locked copy {error.message} ({hint})")) from None
    if definition.metric != session.system.metric:
        message = "the locked copy of system.py describes another metric than that in the tree: its imports reach files that are not locked"
        raise AskingEnded(RunEnd(CRASHED, "other_definition", message))
    return definition


def refuse_unfit_item(definition: Definition, asked: AskedItem, system: System) -> None:
    """Raises AskingEnded when input or reference of *asked* do not fit; an absent reference is null."""
    document = asked.case.document
    for name, value in (("input", document["input"]), ("reference", document.get("expected"))):
        misfit = definition.misfit(name, value)
        if misfit is not None:
            is_absent = name == "reference" and "expected" not in document
            words = "reference: is absent, and its schema does not accept null" if is_absent else misfit_words(name, misfit)
            raise AskingEnded(RunEnd(CRASHED, "unfit_item", f"{system.id}: item {quoted(asked.item, 60)}: {words}"))


def refuse_changed_copy(session: RunSession) -> None:
    """Raises AskingEnded when a file of the locked copy is no longer what was locked."""
    changed = changed_copy(session)
    if changed:
        raise AskingEnded(tree_changed(changed))

"""One session of a run: what is asked, what comes back, and whether it may go on.

An evaluator of items gets `AskedItem`s and hands each event of lab.md section 3 to
`RunSession.take`, which checks, masks and journals it; it calls `RunSession.poll` at least
every 100 ms and ends when that says so. How the answers come about (an eval script, a typed
system, an improvement) is its own affair.

    {"event": "start", "total": 50, "separation": "own_process"}
    {"event": "item", "id": "d12", "trial": 1, "status": "ok", "score": 1, "metrics": {}, "output": "…", "cost_usd": 0.002}
    {"event": "metric", "name": "accuracy", "value": 0.9}     {"event": "log", "message": "…"}     {"event": "end"}
"""

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from kaizen.cases.case import Case
from kaizen.foundation.clock import monotonic_seconds
from kaizen.foundation.errors import KaizenError
from kaizen.foundation.jsonio import MAX_DEPTH, JsonError, JsonObject, bracket_depth, decode_line, unique_pairs, without_surrogates
from kaizen.foundation.process import StopSwitch
from kaizen.foundation.redact import redact_evidence, redact_text
from kaizen.foundation.shapes import (
    ANY_TEXT,
    ANYTHING,
    OBJECT,
    POSITIVE_COUNT,
    TEXT,
    Kind,
    check_fields,
    is_number,
    is_whole,
    one_of,
    or_null,
)
from kaizen.foundation.text import counted, duration, quoted, visible, visible_lines
from kaizen.lab.runstore import ANSWERED, BROKEN_OFF, CRASHED, ITEM_STATUSES, TAINTED, TIMED_OUT, Key, LogSink, RunWriter, item_key
from kaizen.lab.system import COUNT_AGGREGATIONS, Metric, System
from kaizen.lab.watch import Watch, content_sha256
from kaizen.lab.workspace import Workspace
from kaizen.runs.masked_copies import CopyMasker

SEPARATIONS = ("own_process", "in_process", "engine")
MAX_ATTEMPTS = 3  # an infra_error or timeout is asked for again twice
MAX_EVENT_BYTES = 8 << 20
MAX_METRICS = 100
LOG_LIMIT = 8 << 20
ANY_NUMBER = Kind(lambda value: isinstance(value, (int, float)) and not isinstance(value, bool), "a number")
MEASURED_AMOUNT = Kind(lambda value: ANY_NUMBER.accepts(value) and not value < 0, "a number, 0 or more")
EVENT_FIELDS: dict[str, dict[str, Kind]] = {
    "start": {"total": POSITIVE_COUNT, "separation": one_of(*SEPARATIONS)},
    "item": {
        "id": TEXT,
        "trial": POSITIVE_COUNT,
        "status": one_of(*ITEM_STATUSES),
        "score": or_null(ANY_NUMBER),
        "metrics": or_null(OBJECT),
        "output": ANYTHING,
        "cost_usd": or_null(MEASURED_AMOUNT),
        "latency_ms": or_null(MEASURED_AMOUNT),
        "trace_id": or_null(ANY_TEXT),
        "feedback": ANYTHING,
    },
    "metric": {"name": TEXT, "value": or_null(ANY_NUMBER)},
    "log": {"message": ANY_TEXT},
    "end": {},
}
REQUIRED_FIELDS = {"item": ("id", "status"), "metric": ("name", "value"), "log": ("message",)}
KEPT_FIELDS = ("output", "trace_id", "feedback")
NOT_FINITE = "not_finite"
lenient_decode = json.JSONDecoder(object_pairs_hook=unique_pairs).decode


class AskedItem(NamedTuple):
    """One answer that is asked for: item, trial and pass, its seed, the attempt from 1, and its case with the reference."""

    item: str
    trial: int
    pass_number: int
    seed: int
    attempt: int
    case: Case

    def key(self) -> Key:
        """(item, trial, pass)."""
        return self.item, self.trial, self.pass_number


class RunEnd(NamedTuple):
    """How asking ended: the state that the run gets ('' when all went well), a reason code, one sentence."""

    state: str
    reason: str
    message: str


ENDED_WELL = RunEnd("", "", "")


class EvalFault(Exception):
    """An event that breaks the protocol: a reason code and one sentence; the run is crashed."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message

    def end(self) -> RunEnd:
        """The end that it makes."""
        return RunEnd(CRASHED, self.reason, self.message)


class Limits(NamedTuple):
    """Seconds without an event, for the whole run (None: no limit), and for one item."""

    silence_seconds: float
    run_seconds: float | None
    item_seconds: float


def decode_event(raw: bytes, number: int) -> JsonObject:
    """The event on one line; what is no finite number is kept as it is, half a surrogate pair is U+FFFD. Raises EvalFault."""
    try:
        return decode_line(raw)
    except JsonError as error:
        problem = error.message
    with suppress(ValueError, RecursionError):
        text = raw.decode("utf-8")
        value = lenient_decode(text) if bracket_depth(text) <= MAX_DEPTH else None
        if isinstance(value, dict):
            return without_surrogates(value)  # type: ignore[no-any-return]
    raise EvalFault("protocol", f"event {number:,} cannot be read: {problem}")


def is_finite(value: Any) -> bool:
    """True unless *value* holds a NaN, an infinity or a whole number beyond every float somewhere."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (int, float)) and not abs(each) <= sys.float_info.max:
            return False
        if isinstance(each, (list, dict)):
            waiting += each.values() if isinstance(each, dict) else each
    return True


def item_line(event: JsonObject, asked: AskedItem, metric: Metric, exact: Sequence[str]) -> JsonObject:
    """The line of items.jsonl for an item *event*. Raises EvalFault when it says ok and gives no score."""
    status, reason = event["status"], ""
    kept = {name: event[name] for name in KEPT_FIELDS if event.get(name) is not None}
    metrics = event.get("metrics") or {}
    if not is_finite(event):
        status, reason = ("fail_error", NOT_FINITE) if status == "ok" else (status, NOT_FINITE)
        kept = {name: value for name, value in kept.items() if is_finite(value)}
        metrics = {name: value for name, value in metrics.items() if is_finite(value)}
    check_item_metrics(metrics)
    score = measured_score(event, metrics, metric) if status == "ok" else None
    if score is not None and not metric.holds(score):
        status, reason = "fail_error", "out_of_range"
    if status == "fail_error":
        score = metric.worst
    masked, hits = redact_evidence({"metrics": metrics, **kept}, exact)
    amounts = {name: event.get(name) if is_finite(event.get(name)) else None for name in ("cost_usd", "latency_ms")}
    line = {"item": asked.item, "trial": asked.trial, "pass": asked.pass_number, "attempt": asked.attempt, "status": status, "score": score}
    return {**line, **({"reason": reason} if reason else {}), **masked, **amounts, **({"redacted": hits} if hits else {})}


def check_item_metrics(metrics: JsonObject) -> None:
    """Raises EvalFault unless each of *metrics* is a number or counts {tp, fp, fn}."""
    for name, value in metrics.items():
        is_counts = isinstance(value, dict) and value.keys() == {"tp", "fp", "fn"} and all(is_whole(n) and n >= 0 for n in value.values())
        if not is_counts and not is_number(value):
            raise EvalFault("protocol", f"metric {quoted(name, 40)} of an item is neither a number nor counts {{tp, fp, fn}}")


def measured_score(event: JsonObject, metrics: JsonObject, metric: Metric) -> float | None:
    """The score of an item that is ok: `score`, else the metric of the system's name; None where counts are what counts."""
    value = metrics.get(metric.name)
    if metric.aggregation in COUNT_AGGREGATIONS:
        if not isinstance(value, dict):
            raise EvalFault("protocol", f"an item with status ok has no counts {{tp, fp, fn}} in metrics {quoted(metric.name, 40)}")
        return event.get("score")
    score = value if event.get("score") is None else event["score"]
    if not is_number(score):
        raise EvalFault("protocol", f"an item with status ok has neither a score nor a number as metric {quoted(metric.name, 40)}")
    return float(score) if isinstance(score, float) else score


class CappedLog:
    """Hands on at most 8 MiB to *sink*, secrets masked; `write` takes blocks of bytes."""

    def __init__(self, sink: LogSink, exact: Sequence[str]) -> None:
        self.sink = sink
        self.masker = CopyMasker(exact)
        self.left, self.lost = LOG_LIMIT, 0

    def write(self, data: bytes) -> None:
        """Keeps what there is room for; what is left out is counted."""
        self.lost += max(0, len(data) - self.left)
        data = data[: self.left]
        self.left -= len(data)
        if data:
            self.sink.write(self.masker(data))

    def close(self) -> None:
        """Writes what is held, and how much was left out."""
        with suppress(Exception):
            self.sink.write(self.masker(b""))
            if self.lost:
                self.sink.write(f"\n[kaizen: {counted(self.lost, 'byte')} more left out]\n".encode())
        self.sink.close()


class RunSession:
    """The one asking of items of a run by this process; `begin` opens a round of it.

    *workspace* holds the locked files; the variant works in *tree*, which is that workspace unless it is named.
    """

    def __init__(
        self,
        workspace: Workspace,
        system: System,
        writer: RunWriter,
        watch: Watch,
        stop: StopSwitch,
        limits: Limits,
        environment: dict[bytes, bytes],
        exact: Sequence[str],
        tree: str = "",
    ) -> None:
        document = writer.document()
        self.workspace, self.system, self.writer, self.watch, self.stop = workspace, system, writer, watch, stop
        self.run, self.variant, self.tree = str(document["id"]), str(document["variant"]), tree or workspace.root
        self.locked_folder = writer.locked_folder()
        self.limits, self.environment, self.exact = limits, environment, exact
        self.locked: dict[str, str] = document["hashes"]["locked"]
        self.out, self.err = CappedLog(writer.log("out.log"), exact), CappedLog(writer.log("err.log"), exact)
        self.asked: dict[Key, AskedItem] = {}
        self.last: dict[Key, JsonObject] = {}  # the line that counts, by key
        self.costs: list[float | None] = []
        self.metrics: JsonObject = {}
        self.separation = ""
        self.events = 0
        self.has_ended = False
        self.started = self.heard_at = monotonic_seconds()
        self.open: set[Key] = set()  # asked in this round and not answered
        self.gives_up: Callable[[], RunEnd | None] | None = None  # of a race: an end before all is answered

    def go_on_from(self, lines: Iterable[JsonObject]) -> None:
        """Takes over the answers that the run has already."""
        for line in lines:
            self.keep(line)

    def keep(self, line: JsonObject) -> None:
        """Makes *line* the one that counts of its item, trial and pass; what it cost counts whatever comes later."""
        self.last[item_key(line)] = line
        self.costs.append(line["cost_usd"])

    def cost(self) -> float | None:
        """What all answers cost in US dollars, also those asked for again; None when one has no price, or there is none."""
        known = [cost for cost in self.costs if cost is not None]
        with suppress(OverflowError):  # more than a float holds is not known either
            return math.fsum(known) if known and len(known) == len(self.costs) else None
        return None

    def begin(self, asked: list[AskedItem]) -> None:
        """Opens a round in which *asked*, and nothing else, may be answered once each."""
        self.asked = {each.key(): each for each in asked}
        self.open = set(self.asked)
        self.has_ended, self.events = False, 0
        self.heard_at = monotonic_seconds()

    def take(self, event: JsonObject) -> None:
        """Checks and keeps one *event*. Raises EvalFault when it breaks the protocol."""
        self.events += 1
        self.heard_at = monotonic_seconds()
        kind = event.get("event")
        fields = EVENT_FIELDS.get(kind) if isinstance(kind, str) else None
        if fields is None or not isinstance(kind, str):
            raise EvalFault("protocol", f"event {self.events:,} has no `event` of {', '.join(EVENT_FIELDS)}")
        if self.has_ended:
            raise EvalFault("protocol", f"event {self.events:,} comes after the end")

        def report(pointer: str, message: str, hint: str) -> None:
            raise EvalFault("protocol", f"event {self.events:,} ({kind}){pointer and ' ' + visible(pointer, 80)}: {message}")

        check_fields(event, fields, "", report, REQUIRED_FIELDS.get(kind, ()))
        if kind == "item":
            self.take_item(event)
        elif kind == "metric":
            self.take_metric(event["name"], event["value"])
        elif kind == "log":
            self.log(event["message"])
        elif kind == "start":
            self.separation = event.get("separation", self.separation)
        else:
            self.has_ended = True

    def take_item(self, event: JsonObject) -> None:
        """Journals the answer in *event*. Raises EvalFault when it was not asked for, or comes twice."""
        asked = self.asked.get((event["id"], event.get("trial", 1), self.pass_number()))
        if asked is None:
            raise EvalFault("unasked_item", f"event {self.events:,} is about an item and trial that were not asked for")
        key = asked.key()
        if key not in self.open:
            raise EvalFault("repeated_item", f"event {self.events:,} answers item {quoted(asked.item, 40)} a second time")
        line = item_line(event, asked, self.system.metric, self.exact)
        self.writer.item(line)
        self.open.discard(key)
        self.keep(line)

    def pass_number(self) -> int:
        """The pass of this round."""
        return next(iter(self.asked))[2] if self.asked else 1

    def take_metric(self, name: str, value: Any) -> None:
        """Keeps a metric of the whole run; one that is not finite is null. Raises EvalFault beyond 100 names."""
        if name not in self.metrics and len(self.metrics) >= MAX_METRICS:
            raise EvalFault("protocol", f"more than {MAX_METRICS} metrics")
        self.metrics[redact_text(name, self.exact)[0][:200]] = value if is_finite(value) else None

    def log(self, message: str) -> None:
        """Writes *message*, made safe, into out.log."""
        self.out.write(visible_lines(message).encode("utf-8", "replace") + b"\n")

    def poll(self) -> RunEnd | None:
        """Syncs what is due; the end that the run must come to now, or None. To be called at least every 100 ms."""
        self.writer.sync_if_due()
        if self.stop.is_requested:
            return RunEnd(BROKEN_OFF, "stopped", "stopped by a signal")
        now = monotonic_seconds()
        if now - self.heard_at > self.limits.silence_seconds:
            return RunEnd(TIMED_OUT, "silence", f"no event for {duration(self.limits.silence_seconds)}")
        if self.limits.run_seconds is not None and now - self.started > self.limits.run_seconds:
            return RunEnd(TIMED_OUT, "run_timeout", f"not done after {duration(self.limits.run_seconds)}")
        changed = self.watch.poll()
        return tree_changed(changed) if changed else self.gives_up() if self.gives_up else None

    def close(self) -> None:
        """Closes the logs."""
        self.out.close()
        self.err.close()


def tree_changed(what: str) -> RunEnd:
    """The end of a run whose tree changed, which is *what* in a sentence."""
    return RunEnd(TAINTED, "tree_changed", what)


class ItemEvaluator:
    """Answers items; `separation` is own_process, in_process, engine, or '' where only its answers say."""

    separation = ""

    def answer(self, asked: list[AskedItem], session: RunSession) -> RunEnd:
        """Has *asked* answered through `session.take`; how that ended."""
        raise NotImplementedError


MakeEvaluator = Callable[[Workspace, System], ItemEvaluator]


def final_answers(lines: Iterable[JsonObject]) -> dict[Key, JsonObject]:
    """The line that counts of each (item, trial, pass): the last; in the order of their first."""
    found: dict[Key, JsonObject] = {}
    for line in lines:
        found[item_key(line)] = line
    return found


def changed_copy(session: RunSession) -> str | None:
    """One sentence on a file of the locked copy that is no longer what was locked; None when all are."""
    for path, digest in session.locked.items():
        try:
            is_same = content_sha256(os.path.join(session.locked_folder, path)) == digest
        except (KaizenError, OSError):
            is_same = False
        if not is_same:
            return f"the locked copy of {visible(path)} changed"
    return None


def is_answered(line: JsonObject | None) -> bool:
    """True when *line* is a measurement."""
    return line is not None and line["status"] in ANSWERED

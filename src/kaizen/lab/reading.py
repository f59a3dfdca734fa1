"""Runs as they are read: rows, ranks, the worst answers, what can be resumed.

A limited, diagnostic, failed, tainted or unfinished run is shown and never ranked, nor is one that was scored on other
items or by another eval than the newest run that can be ranked. What is not known is unavailable, with its reason.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from kaizen.foundation.errors import KaizenError
from kaizen.foundation.jsonio import JsonObject, encode_compact
from kaizen.foundation.text import visible
from kaizen.lab.aggregation import LINE_METRICS, is_counts, line_value, summarized
from kaizen.lab.runstore import DONE, PLANNED, RUNNING, TAINTED, Key, RunStore, run_passes
from kaizen.lab.session import final_answers, is_answered
from kaizen.lab.system import COUNT_AGGREGATIONS, load_system
from kaizen.lab.workspace import Workspace

RACE_STOPPED = "race_stopped"  # why a screen was given up: it has said what it can
UNREADABLE = "unreadable"  # in place of a state, for a run.json that cannot be read
SHOWN_FIELDS = ("item", "trial", "pass", "status", "score", "reason", "latency_ms", "trace_id")
RESUMED_RUNS = ("baseline", "diagnostic", "screen")  # of a campaign: each a measurement of its own
PART_SHOWN = 1000  # characters of what an item said
# (key of `hashes`, code of a run that differs there, what that is)
COMPARABLE_HASHES = (
    ("dataset", "other_dataset", "dataset"),
    ("eval", "other_eval", "eval and locked files"),
    ("system", "other_metric", "metric"),
)


class Choice(NamedTuple):
    """A metric chosen by a reader; None stands for what the run itself was scored by."""

    metric: str | None = None
    aggregation: str | None = None
    percentile: float | None = None
    direction: str | None = None

    def is_own(self, document: JsonObject) -> bool:
        """True when this is just what the run of *document* was scored by."""
        own = document["metric"]
        same_percentile = self.percentile is None or self.percentile == own.get("percentile")
        return self.metric in (None, own["name"]) and self.aggregation in (None, own["aggregation"]) and same_percentile


OWN_METRIC = Choice()


def read_runs(store: RunStore, system: str = "", variant: str = "") -> list[JsonObject]:
    """run.json of all runs, oldest first, of *system* and *variant* where those are given; the state of one that cannot be read says so."""
    found = []
    for run in store.ids():
        try:
            document = store.read(run)
        except KaizenError as error:
            document = {"id": run, "system": system, "variant": variant, "state": UNREADABLE, "message": error.message}
        if system in ("", document["system"]) and variant in ("", document["variant"]):
            found.append(document)
    return found


# --- One number a run ------------------------------------------------------------------


def planned_answers(document: JsonObject) -> int:
    """How many answers the run asks for."""
    return len(document["population"]["selected_item_ids"]) * int(document["passes"])


def measured(store: RunStore, document: JsonObject, choice: Choice) -> JsonObject:
    """{status, value or reason, n, planned, metric, aggregation, direction} of the run, by *choice*.

    A metric that the eval itself told of the whole run is taken as it is when no aggregation is chosen. Else the items are read.
    """
    own = document["metric"]
    name, is_own = choice.metric or own["name"], choice.metric in (None, own["name"])
    found: JsonObject = {"metric": name, "aggregation": choice.aggregation or (own["aggregation"] if is_own else "mean")}
    of_counts = found["aggregation"] in COUNT_AGGREGATIONS
    usual = "higher" if of_counts else own["direction"] if is_own else "lower" if name in LINE_METRICS else "higher"
    found["direction"] = choice.direction or usual
    planned = planned_answers(document)
    if choice.is_own(document) and "result" in document:
        return {**document["result"], **found}
    if choice.aggregation is None and name in document.get("metrics", {}):
        value = document["metrics"][name]
        known = {"status": "available", "value": value} if value is not None else {"status": "unavailable", "reason": "not_finite"}
        return {**known, "n": planned, "planned": planned, **found, "aggregation": "told by the eval"}
    values = [line_value(line, name, own["name"], of_counts) for line in answered_lines(store, document)]
    return {**summarized(values, found["aggregation"], choice.percentile or own.get("percentile"), planned), **found}


def answered_lines(store: RunStore, document: JsonObject) -> list[JsonObject]:
    """The measurements of the run, the counting one of each (item, trial, pass)."""
    return [line for line in final_answers(store.items(document["id"])).values() if is_answered(line)]


def log_row(store: RunStore, document: JsonObject, choice: Choice) -> JsonObject:
    """What `kaizen log` tells of one run; `rank` and `unranked` are set by `rank_rows`."""
    row: JsonObject = {key: document.get(key) for key in ("id", "system", "variant", "title", "state")}
    if row["state"] == UNREADABLE:
        return {**row, "message": document["message"], "result": None, "rank": None, "unranked": UNREADABLE}
    copied = ("reason", "diagnostic", "limited", "verdict", "attempt", "created_at", "seconds", "cost_usd", "counts", "separation")
    row |= {key: document.get(key) for key in copied}
    try:
        row |= {"commit": document["commit"]["hash"], "result": measured(store, document, choice), "rank": None}
    except KaizenError as error:
        return {**row, "state": UNREADABLE, "message": error.message, "result": None, "rank": None, "unranked": UNREADABLE}
    return {**row, "unranked": unranked_reason(row)}


def unranked_reason(row: JsonObject) -> str | None:
    """The code of what keeps the run of *row* from being ranked: its state, diagnostic, limited, no number; None when nothing does."""
    if row["state"] != DONE:
        return str(row["state"])
    kind = next((word for word in ("diagnostic", "limited") if row[word]), None)
    return kind or (None if row["result"]["status"] == "available" else str(row["result"]["reason"]))


def rank_rows(rows: list[JsonObject], documents: list[JsonObject], choice: Choice) -> list[JsonObject]:
    """*rows* with their ranks, best first, equal ones sharing a rank; then those that have none, in their order, with the reason."""
    able = [number for number, row in enumerate(rows) if row["unranked"] is None]
    if able:
        newest = documents[able[-1]]
        for number in able:
            code = next((code for code, *_ in differing_hashes(newest, documents[number], choice)), None)
            rows[number]["unranked"] = code
    ranked = [row for row in rows if row["unranked"] is None]
    sign = -1 if ranked and ranked[-1]["result"]["direction"] == "higher" else 1
    ranked.sort(key=lambda row: sign * row["result"]["value"])
    for number, row in enumerate(ranked):
        above = ranked[number - 1] if number else None
        row["rank"] = above["rank"] if above and above["result"]["value"] == row["result"]["value"] else number + 1
    return ranked + [row for row in rows if row["unranked"] is not None]


def differing_hashes(a: JsonObject, b: JsonObject, choice: Choice = OWN_METRIC) -> list[tuple[str, str, str]]:
    """(code, what, key) of each hash in which two runs differ, so that their numbers mean different things.

    The definition of the metric counts only where the runs' own metric is asked for.
    """
    known = COMPARABLE_HASHES if choice.is_own(a) else COMPARABLE_HASHES[:-1]
    return [(code, what, key) for key, code, what in known if a["hashes"][key] != b["hashes"][key]]


# --- The items of a run ----------------------------------------------------------------


class OpenItems(NamedTuple):
    """What the dataset at hand says of the items: their clusters when it is the run's own, and which may still be named (None: all)."""

    clusters: dict[str, str]
    named: frozenset[str] | None

    def may_name(self, item: str) -> bool:
        """False for an item that is not among the open ones any more: it may have moved into the holdout."""
        return self.named is None or item in self.named


def open_items(workspace: Workspace, document: JsonObject) -> OpenItems:
    """The open items of the run's system as they are now; nothing is known where they cannot be read."""
    from kaizen.lab.execution import load_items

    try:
        items = load_items(workspace, load_system(workspace, document["system"]))
    except KaizenError:
        return OpenItems({}, None)
    if items.fingerprint != document["hashes"]["dataset"]:
        return OpenItems({}, frozenset(items.cases))
    return OpenItems({name: case.document["cluster"] for name, case in items.cases.items() if case.document.get("cluster")}, None)


def badness(line: JsonObject, document: JsonObject) -> float:
    """How bad an answer is, to order by: the score against its direction; for counts the false positives and negatives."""
    metric = document["metric"]
    if metric["aggregation"] in COUNT_AGGREGATIONS:
        counts = line["metrics"].get(metric["name"])
        return float(counts["fp"] + counts["fn"]) if is_counts(counts) else 0.0
    return float(line["score"] if metric["direction"] == "lower" else -line["score"]) if line["score"] is not None else 0.0


def worst_answers(store: RunStore, document: JsonObject, good: float | None) -> list[JsonObject]:
    """The answers to look at, worst first: missing ones, failures, then by score; none whose score is *good*, the best there can be.

    For aggregations of counts those without a false positive and without a false negative are left out.
    """
    answers = final_answers(store.items(document["id"]))
    of_counts = document["metric"]["aggregation"] in COUNT_AGGREGATIONS
    found: list[tuple[int, float, int, JsonObject]] = []
    for order, key in enumerate(planned_keys(document, answers)):
        line = answers.get(key)
        if line is None:
            found.append((1, 0.0, order, {"item": key[0], "trial": key[1], "pass": key[2], "status": "missing"}))
        elif line["status"] != "ok":
            found.append((0 if line["status"] == "fail_error" else 1, 0.0, order, line))
        elif not (badness(line, document) == 0 if of_counts else line["score"] == good):
            found.append((2, -badness(line, document), order, line))
    return [line for *_, line in sorted(found, key=lambda each: each[:3])]


def planned_keys(document: JsonObject, answers: Iterable[Key]) -> list[Key]:
    """The (item, trial, pass) that were asked for, in order, and those that were answered beyond trial 1."""
    planned = [(name, 1, number) for number in run_passes(document) for name in document["population"]["selected_item_ids"]]
    known = set(planned)
    return planned + [key for key in answers if key not in known]


def shown_answer(line: JsonObject, may_name: bool, limit: int = PART_SHOWN) -> JsonObject:
    """What is told of an answer: output and feedback as at most *limit* characters; of one that is not to be named its status."""
    if not may_name:
        return {"item": None, "status": line["status"]}
    kept: JsonObject = {key: line[key] for key in SHOWN_FIELDS if key in line}
    texts = {key: answer_text(line[key], limit) for key in ("feedback", "output") if line.get(key) is not None}
    return {**kept, **({"metrics": line["metrics"]} if line.get("metrics") else {}), **texts}


def answer_text(value: Any, limit: int) -> str:
    """*value* as visible text."""
    return visible(value if isinstance(value, str) else encode_compact(value), limit)


# --- What is going on ------------------------------------------------------------------


def live_runs(store: RunStore, documents: list[JsonObject]) -> list[JsonObject]:
    """The runs at work, with their process and how many of their answers are there: None, with the `problem`, when they cannot be read."""
    found = []
    for document in documents:
        if document["state"] in (PLANNED, RUNNING):
            answered, problem = None, None
            try:
                answered = len(answered_lines(store, document))
            except KaizenError as error:
                problem = error.message
            kept = {key: document.get(key) for key in ("id", "system", "variant", "state", "pid", "started_at")}
            found.append({**kept, "answered": answered, "planned": planned_answers(document), "problem": problem})
    return found


def resumable_runs(documents: list[JsonObject], head: str | None) -> list[JsonObject]:
    """The runs that can be gone on with or begun anew, newest first, unless a later run of the same variant has completed."""
    found: list[JsonObject] = []
    settled: set[tuple[str, str]] = set()
    for document in reversed(documents):
        key, state = (document["system"], document["variant"]), document["state"]
        if state == DONE:
            settled.add(key)
        elif state not in (PLANNED, RUNNING, UNREADABLE) and document.get("reason") != RACE_STOPPED and key not in settled:
            command = f"kaizen resume {document['id']}" + (" --restart" if state == TAINTED else "")
            if document.get("campaign", {}).get("purpose", "screen") not in RESUMED_RUNS:
                command = "kaizen next"  # a part of a measurement, with which its own command goes on
            kept = {name: document.get(name) for name in ("id", "system", "variant", "state", "reason")}
            commit = document["commit"]["hash"]
            found.append({**kept, "commit": commit, "is_here": commit == head, "command": command})
    return found

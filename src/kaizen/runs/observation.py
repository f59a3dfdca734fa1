"""Observations: the raw evidence of one trial each, a line of `<stage>.jsonl`.

    {"case_id": "refund-1", "trial": 1, "input_fingerprint": "sha256:…", "status": "completed",
     "output": "…", "steps": […], "execution": {"duration_ms": 412.7, "exit_code": 0, "attempts": [],
     "started_at": "2026-01-02T03:04:05.678Z", "worker": 1}}

A field that the runner did not report is absent, never null (but for `output`, which may be
null). `error` {"class", "type", "message", "stderr_tail"} is there unless the status is
completed; of a completed trial the end of standard error stands in `execution`. Two runs
of a deterministic agent differ in `execution` and `stderr_tail` alone. Secrets are masked
in everything but the fields that name the trial; `redacted` [{"pointer", "family", "count"}]
lists them where there were any.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kaizen.foundation.errors import InputError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonObject, Line, encode_compact, follow_pointer, pointer_tokens, raw_lines, read_json_lines
from kaizen.foundation.redact import redact_evidence
from kaizen.foundation.text import quoted

COMPLETED = "completed"
NOT_RUN = "not_run"
CANCELLED = "cancelled"
STATUSES = (COMPLETED, "error", "timeout", "protocol_error", CANCELLED, NOT_RUN)
ERROR_CLASSES = ("agent", "runner", "timeout", "protocol", "environment", "cancelled")
MAX_TRIALS = 1000  # repetitions of a case; a stage file that claims more would make every table as long as it says
# What a runner may report, in the order in which it is written.
REPORTED_FIELDS = (
    "output", "steps", "tool_calls", "agents", "usage", "cost", "state", "files", "evidence", "finish_reason", "metadata", "log", "notes",
)
# What names the trial, and must stay as it is to be found again.
NAMING_FIELDS = ("case_id", "trial", "input_fingerprint", "status", "redacted")


class Attempt(NamedTuple):
    """What one attempt at a trial gave: status, the runner's fields, the error, and what the engine measured.

    `fields` has keys of REPORTED_FIELDS only; beside them, and in `error`, `redacted` lists what was masked before a
    text was cut or in an earlier recording. `error` is None exactly when the status is completed.
    `duration_ms` and `exit_code` are None when there is nothing to measure; `stderr` is the tail that is kept.
    """

    status: str
    fields: JsonObject
    error: JsonObject | None
    started_at: str
    duration_ms: float | None = None
    exit_code: int | None = None
    stderr: str = ""


def observation_document(
    case_id: str, trial: int, input_fingerprint: str, attempt: Attempt, worker: int, earlier: Sequence[JsonObject] = ()
) -> JsonObject:
    """The observation of a trial whose last *attempt* was made by *worker* after the *earlier* ones, with its keys in their order."""
    document: JsonObject = {"case_id": case_id, "trial": trial, "input_fingerprint": input_fingerprint, "status": attempt.status}
    document.update((name, attempt.fields[name]) for name in REPORTED_FIELDS if name in attempt.fields)
    document["execution"] = {
        "duration_ms": None if attempt.duration_ms is None else round(attempt.duration_ms, 3),
        "exit_code": attempt.exit_code,
        "attempts": list(earlier),
        "started_at": attempt.started_at,
        "worker": worker,
    }
    if attempt.error is not None:
        document["error"] = {**attempt.error, "stderr_tail": attempt.stderr}
    elif attempt.stderr:
        document["execution"]["stderr_tail"] = attempt.stderr
    known = [*attempt.fields.get("redacted", ()), *document.get("error", {}).pop("redacted", ())]
    for index, each in enumerate(earlier):
        hits = each["error"].pop("redacted", ())
        known += [{**hit, "pointer": f"/execution/attempts/{index}{hit['pointer']}"} for hit in hits]
    if known:
        document["redacted"] = known
    return document


def masked_observation(document: JsonObject, exact: list[str]) -> tuple[JsonObject, bytes]:
    """(*document* with its secrets and the values *exact* masked and listed, its line without line end)."""
    line = encode_compact(document).encode("utf-8")
    evidence = {name: value for name, value in document.items() if name not in NAMING_FIELDS}
    fingerprint = document["input_fingerprint"].encode("utf-8")  # no evidence, and long enough to be looked at twice
    masked, hits = redact_evidence(evidence, exact, line.replace(fingerprint, b""))
    known = document.pop("redacted", [])
    if not hits and not known:
        return document, line
    document.update(masked)
    listed = [hit for hit in known if follow_pointer(document, pointer_tokens(hit["pointer"]))[0]] + hits
    if listed:
        document["redacted"] = listed
    return document, encode_compact(document).encode("utf-8")


def error_document(kind: str, error_type: str, message: str) -> JsonObject:
    """The `error` of an observation: *kind* is its class, *error_type* says in one word which of them."""
    return {"class": kind, "type": error_type, "message": message}


def check_observation(value: JsonObject, place: str) -> JsonObject:
    """*value*, when it says of which trial it is and how that ended. Raises InputError that begins with *place*."""
    trial = value.get("trial")
    if not isinstance(value.get("case_id"), str):
        problem = "has no case_id"
    elif not isinstance(trial, int) or isinstance(trial, bool) or not 1 <= trial <= MAX_TRIALS:
        problem = f"has no trial (a number from 1 to {MAX_TRIALS:,})"
    elif value.get("status") not in STATUSES:
        problem = f"has the status {quoted(str(value.get('status')))}, which is none of {', '.join(STATUSES)}"
    else:
        return value
    raise InputError(f"{place}: {problem}, so it is no observation", "observations are written by `kaizen run`", "invalid_file")


def iter_observations(path: str) -> Iterator[Line]:
    """Each observation of the stage file *path*, in order, read as it is asked for. Raises InputError with path:line."""
    shown = shown_path(path)
    hint = "make it with: kaizen run IMPROVEMENT --stage STAGE -- COMMAND"
    for line in read_json_lines(path, hint):
        check_observation(line.value, f"{shown}:{line.number}")
        yield line


class LineDigest:
    """SHA-256 of lines joined by LF, whatever their line ends were, and their number."""

    def __init__(self) -> None:
        self.lines = 0
        self.hash = hashlib.sha256()

    def add(self, raw: bytes) -> None:
        """Takes the next line, without its line end."""
        self.hash.update(b"\n" + raw if self.lines else raw)
        self.lines += 1

    def hexdigest(self) -> str:
        """The digest of the lines so far."""
        return self.hash.hexdigest()


def lines_digest(path: str) -> LineDigest:
    """The digest of the lines of the file *path* that are not blank. Raises InputError."""
    digest = LineDigest()
    for _, raw in raw_lines(path):
        digest.add(raw)
    return digest


def file_digest(path: str) -> str:
    """SHA-256 of the lines of the file *path*, as `LineDigest` defines it. Raises InputError."""
    return lines_digest(path).hexdigest()

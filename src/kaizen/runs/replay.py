"""Replay: recorded answers in place of a runner.

    {"case_id": "gsm8k-0001", "output": "…"}
    {"case_id": "refund-1", "trial": 2, "output": "…", "steps": […], "cost": {"total_usd": 0.002}}

A line is an answer of the runner protocol (or an observation) with the case it belongs to
and, if there are several for a case, the trial. An answer without a trial is trial 1: one
recorded answer is never passed off as several. Further fields are ignored. Latency and
cost were not measured here, so they are kept in `metadata.recorded` and count nowhere.
"""

from typing import Any

from kaizen.foundation.clock import utc_now
from kaizen.foundation.errors import Breaches, InputError
from kaizen.foundation.files import open_for_reading, shown_path
from kaizen.foundation.jsonio import JsonObject, parse_line
from kaizen.foundation.text import counted
from kaizen.runs.journal import StageIndex, bare_line
from kaizen.runs.observation import COMPLETED, ERROR_CLASSES, NOT_RUN, STATUSES, Attempt, error_document
from kaizen.runs.protocol import ANSWER_FIELDS, CLAIMS, ProtocolError, answer_fields, present, reported_error

REPLAY_HINT = 'each line is {"case_id": "…", "output": …}, with "trial" if there are several for a case'


class Recording:
    """The recorded answers in the file *path* for the trials of *index*, found by position and read one at a time.

    `notes` says which were not used. Raises BreachesError that names every line which is no answer or one too many.
    """

    def __init__(self, path: str, index: StageIndex) -> None:
        self.index = index
        self.stream, self.shown = open_for_reading(path), shown_path(path)
        strangers = surplus = 0
        breaches = Breaches()
        try:
            offset = 0
            for number, line in enumerate(self.stream, 1):
                if bare_line(line):
                    slot = self.recorded_slot(line, self.shown, number, breaches)
                    if slot >= 0:
                        self.index.note(slot, COMPLETED, offset)
                    strangers += slot == -1
                    surplus += slot == -2
                offset += len(line)
            breaches.raise_if_any()
        except BaseException:
            self.stream.close()
            raise
        told = ((strangers, "of cases that this improvement does not have"), (surplus, "of trials beyond --repetitions"))
        self.notes = [f"{counted(number, 'recorded answer')} not used: {why}" for number, why in told if number]

    def recorded_slot(self, line: bytes, shown: str, number: int, breaches: Breaches) -> int:
        """The slot that the answer *line* is for; -1 for an unknown case, -2 for a trial not asked for, -3 for a breach."""
        try:
            value = parse_line(bare_line(line), f"{shown}:{number}")
        except InputError as error:
            breaches.add(shown, number, "", error.message.partition(f":{number}: ")[2] or error.message, error.hint)
            return -3
        name, trial = value.get("case_id"), value.get("trial", 1)
        if not isinstance(name, str):
            breaches.add(shown, number, "/case_id", "is missing or no text", REPLAY_HINT)
        elif not isinstance(trial, int) or isinstance(trial, bool) or trial < 1:
            breaches.add(shown, number, "/trial", "must be a whole number from 1", REPLAY_HINT)
        elif name not in self.index.places:
            return -1
        elif self.index.slot(name, trial) < 0:
            return -2
        elif self.index.status(name, trial):
            breaches.add(shown, number, "", "is for the same case and trial as a line before it", REPLAY_HINT)
        else:
            return self.index.slot(name, trial)
        return -3

    def attempt(self, case_id: str, trial: int) -> Attempt:
        """The recorded answer for a trial; status not_run when there is none."""
        offset = self.index.offsets[self.index.slot(case_id, trial)]
        if offset < 0:
            error = error_document("environment", "no_recorded_answer", "the file has no answer for this trial")
            return Attempt(NOT_RUN, {}, error, utc_now())
        self.stream.seek(offset)
        return replayed_attempt(parse_line(bare_line(self.stream.readline()), self.shown))

    def close(self) -> None:
        """Closes the file."""
        self.stream.close()


def replayed_attempt(line: JsonObject) -> Attempt:
    """What the recorded *line* says of its trial; nothing in it counts as measured."""
    answer = {key: value for key, value in line.items() if key in ANSWER_FIELDS or key in CLAIMS}
    status, kind, known = line.get("status"), "agent", answer.get("error")
    if isinstance(known, dict) and known.get("class") in ERROR_CLASSES:  # an observation's error knows more classes than a runner's
        kind = known["class"]
        answer["error"] = {key: value for key, value in known.items() if key != "class"}
    try:
        fields, error = answer_fields(answer)
    except ProtocolError as problem:
        return Attempt("protocol_error", {}, error_document("protocol", problem.error_type, problem.message), utc_now())
    listed_before = line.get("redacted")
    known_hits = [hit for hit in listed_before if is_hit(hit)] if isinstance(listed_before, list) else []
    if known_hits:  # what was masked when it was recorded was leaked then
        fields["redacted"] = [*fields.get("redacted", ()), *known_hits]
    execution = line.get("execution")
    recorded = {"cost": fields.pop("cost", None), "duration_ms": execution.get("duration_ms") if isinstance(execution, dict) else None}
    if present(recorded):
        fields["metadata"] = {**fields.get("metadata", {}), "recorded": present(recorded)}
    if status not in STATUSES or status == COMPLETED:
        status = COMPLETED if error is None else "error"
    if status == COMPLETED:
        return Attempt(status, fields, None, utc_now())
    return Attempt(status, fields, reported_error(error or {"message": f"recorded with status {status}"}, kind), utc_now())


def is_hit(value: Any) -> bool:
    """True when *value* is an entry of an observation's `redacted`."""
    kinds = {"pointer": str, "family": str, "count": int}
    is_entry = isinstance(value, dict) and value.keys() == kinds.keys() and all(isinstance(value[key], kind) for key, kind in kinds.items())
    return is_entry and bool(value["pointer"].startswith("/"))

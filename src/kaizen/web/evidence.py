"""Where each trial stands in the files of a stage, for pages written case by case.

Observations and results lie in the order (trial, case); a page needs them by case. One pass
over each file notes byte offsets and outcomes; after that the lines of a case are read when
its turn comes, and nothing holds more than one of them.
"""

import json
import os
import re
from collections.abc import Container, Iterator
from typing import IO, Any, NamedTuple

from kaizen.foundation.errors import InputError
from kaizen.foundation.files import BYTE_ORDER_MARK, open_for_reading
from kaizen.foundation.jsonio import JsonObject, parse_line

# The engine writes these two keys first; a line that begins otherwise is parsed whole.
LINE_HEAD = re.compile(rb'\s*\{\s*"case_id"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"trial"\s*:\s*(\d{1,9})\s*[,}]')
OUTCOME_LETTERS = {"pass": "p", "fail": "f", "error": "e"}
NOT_RUN_LETTER, NOT_EVALUATED = "n", "u"
BINDING = ("hard", "gate")  # severities whose failure fails the trial
MAX_NOTE = 300  # characters kept of the reason that stands in the row of a case


class EvaluatorTable:
    """Evaluators in the order in which they are met: `rows` of (id, type, severity); the numbers of them are page data."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str]] = []
        self.numbers: dict[str, int] = {}

    def number(self, evaluation: JsonObject) -> int:
        """The number of the evaluator that made *evaluation*; a new one is added to the table."""
        name = str(evaluation.get("id", ""))
        number = self.numbers.get(name)
        if number is None:
            number = self.numbers[name] = len(self.rows)
            self.rows.append((name, str(evaluation.get("type", "")), str(evaluation.get("severity", "gate"))))
        return number


class Note(NamedTuple):
    """What decided a case in a stage: rank (0 hard failure, 1 failure, 2 error), number of the evaluator, its reason."""

    rank: int
    evaluator: int
    reason: str


class TrialEvidence(NamedTuple):
    """One trial: its number, letter of its outcome, line of its observation (0: none), both records as read."""

    trial: int
    letter: str
    line: int
    observation: JsonObject
    result: JsonObject


class LineFile:
    """A JSON Lines file whose lines can be read again by number, from 1."""

    def __init__(self, path: str) -> None:
        from array import array

        self.offsets = array("Q", [0])
        self.stream: IO[bytes] | None = open_for_reading(path) if os.path.exists(path) else None

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """(number, bytes) of each line, noting where it stands."""
        position = 0
        for number, raw in enumerate(self.stream or (), 1):
            position += len(raw)
            self.offsets.append(position)
            yield number, raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw

    def line(self, number: int) -> JsonObject:
        """The object on line *number*; {} for line 0 and for a line that cannot be read."""
        if not number or self.stream is None:
            return {}
        descriptor, start = self.stream.fileno(), self.offsets[number - 1]
        # Below the stream's buffer, which would read a megabyte for each line.
        os.lseek(descriptor, start, os.SEEK_SET)
        raw, wanted = b"", self.offsets[number] - start
        while len(raw) < wanted:
            block = os.read(descriptor, wanted - len(raw))
            if not block:
                break
            raw += block
        return object_on_line(raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw) or {}

    def close(self) -> None:
        """Closes the file."""
        if self.stream is not None:
            self.stream.close()


def object_on_line(raw: bytes) -> JsonObject | None:
    """The object that *raw* holds; None when it cannot be read, which the comparison reports as invalid evidence."""
    try:
        return parse_line(raw.strip(), "")
    except InputError:
        return None


def line_key(raw: bytes) -> tuple[str, int] | None:
    """(case id, trial) of an observation line, without parsing the whole of it where that can be avoided."""
    match = LINE_HEAD.match(raw)
    if match:
        try:
            return str(json.loads(match.group(1))), int(match.group(2))
        except ValueError:
            pass
    return record_key(object_on_line(raw) or {})


def record_key(record: JsonObject) -> tuple[str, int] | None:
    """(case id, trial) of an observation or a result; None when it has no usable ones."""
    case_id, trial = record.get("case_id"), record.get("trial")
    return (case_id, trial) if isinstance(case_id, str) and isinstance(trial, int) and 0 < trial < 10**9 else None


def evaluations_of(result: JsonObject) -> list[JsonObject]:
    """The evaluations of a result that are objects, in their order."""
    evaluations = result.get("evaluations")
    return [entry for entry in evaluations if isinstance(entry, dict)] if isinstance(evaluations, list) else []


class StageEvidence:
    """The trials of one stage by case: outcomes at hand, observations and results read when asked for.

    Only cases in *shown* are kept. `applied` and `failed` hold numbers of *evaluators* by case id.
    """

    def __init__(self, observations_path: str, results_path: str, shown: Container[str], evaluators: EvaluatorTable) -> None:
        self.observations, self.results = LineFile(observations_path), LineFile(results_path)
        self.shown, self.evaluators = shown, evaluators
        self.places: dict[str, Any] = {}  # case id -> array of (trial, observation line, result line, letter) one after the other
        self.applied: dict[str, tuple[int, ...]] = {}
        self.failed: dict[str, tuple[int, ...]] = {}
        self.notes: dict[str, Note] = {}
        self.unreadable = 0
        self.same: dict[tuple[int, ...], tuple[int, ...]] = {}
        for number, raw in self.observations.lines():
            raw = raw.strip()
            # A line that was torn, as a killed run leaves one, has a head but no end.
            key = line_key(raw) if raw.endswith(b"}") else None
            if key is not None and key[0] in shown:
                places, start = self.place(*key)
                places[start + 1] = number
            self.unreadable += key is None and bool(raw)
        for number, raw in self.results.lines():
            self.add_result(number, object_on_line(raw) or {})

    def place(self, case_id: str, trial: int) -> tuple[Any, int]:
        """(array of the case, where the four numbers of *trial* begin in it); a new trial begins without lines."""
        from array import array

        places = self.places.get(case_id)
        if places is None:
            places = self.places[case_id] = array("Q")
        for start in range(0, len(places), 4):
            if places[start] == trial:
                return places, start
        places.extend((trial, 0, 0, ord(NOT_EVALUATED)))
        return places, len(places) - 4

    def add_result(self, number: int, result: JsonObject) -> None:
        """Notes the result on line *number* of the results file."""
        key = record_key(result)
        if key is None or key[0] not in self.shown:
            return
        case_id = key[0]
        places, start = self.place(*key)
        letter = OUTCOME_LETTERS.get(str(result.get("outcome")), NOT_EVALUATED)
        places[start + 2], places[start + 3] = number, ord(NOT_RUN_LETTER if result.get("status") == "not_run" else letter)
        applied, failed = set(self.applied.get(case_id, ())), set(self.failed.get(case_id, ()))
        for evaluation in evaluations_of(result):
            status, evaluator = evaluation.get("status"), self.evaluators.number(evaluation)
            if status != "not_applicable":
                applied.add(evaluator)
            if status == "fail":
                failed.add(evaluator)
            if status in ("fail", "error") and evaluation.get("severity") in BINDING:
                rank = 2 if status == "error" else BINDING.index(evaluation["severity"])
                note = self.notes.get(case_id)
                if note is None or rank < note.rank:
                    self.notes[case_id] = Note(rank, evaluator, str(evaluation.get("reason", ""))[:MAX_NOTE])
        self.applied[case_id], self.failed[case_id] = self.kept(applied), self.kept(failed)

    def kept(self, numbers: set[int]) -> tuple[int, ...]:
        """*numbers* in order; equal sets are one object, since most cases have the same."""
        ordered = tuple(sorted(numbers))
        return self.same.setdefault(ordered, ordered)

    def letters(self, case_id: str, planned: int) -> str:
        """One letter a trial, planned or recorded, in order: p, f, e (no verdict), n (not run), u (not evaluated)."""
        places = self.places.get(case_id, ())
        found = {places[start]: chr(places[start + 3]) for start in range(0, len(places), 4)}
        return "".join(found.get(trial, NOT_RUN_LETTER) for trial in sorted({*range(1, planned + 1), *found}))

    def lengths(self, case_id: str) -> list[int]:
        """Bytes of each observation line of a case."""
        lines, offsets = self.places.get(case_id, ())[1::4], self.observations.offsets
        return [offsets[line] - offsets[line - 1] for line in lines if line]

    def trials(self, case_id: str) -> Iterator[TrialEvidence]:
        """The trials of a case in their order, each read as it is asked for."""
        places = self.places.get(case_id, ())
        for trial, line, result, letter in sorted(tuple(places[start : start + 4]) for start in range(0, len(places), 4)):
            yield TrialEvidence(trial, chr(letter), line, self.observations.line(line), self.results.line(result))

    def close(self) -> None:
        """Closes both files."""
        self.observations.close()
        self.results.close()

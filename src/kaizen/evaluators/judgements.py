"""`<stage>.judgements.jsonl`: what judges have answered, kept and used again.

    {"observation": "sha256:…", "case_id": "refund-1", "trial": 1, "rubric": {"id": "tone", "sha256": "…"},
     "data": "sha256:…", "sample": 1, "asked_at": "…", "duration_ms": 812.4, "attempts": 1, "command": ["…"],
     "answer": {"score": 0.7, "reason": "…", "judge": {"name", "version", "model"}, "cost": {…}, "usage": {…}}}

`"again": 2` and so on marks a question that was asked only to measure the judge (`kaizen noise --rejudge`);
verdicts rest on those without. In place of `answer` stands `error` {"code", "message"} where the judge gave none that can be
used. Of several lines about the same question the last one counts. An answer is on disk
before anything is made of it; secrets in it are masked.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from kaizen.evaluators.judge import JudgeQuestion
from kaizen.foundation.errors import InputError
from kaizen.foundation.files import open_for_reading, shown_path, truncate_file
from kaizen.foundation.journals import AppendLog, torn_tail
from kaizen.foundation.jsonio import JsonObject, parse_line, sha256_hex
from kaizen.foundation.redact import redact_evidence
from kaizen.runs.judge_protocol import JudgeFailure, judgement_fields
from kaizen.runs.judges import Judged

JUDGEMENTS = ".judgements.jsonl"
JUDGE_REASON_LIMIT = 4000  # characters kept of a judge's reason


def judgement_key(observation: str, rubric: str, data: str, sample: int, again: int) -> int:
    """64 bits that stand for a question, asked for the *again*-th time."""
    return int(sha256_hex(f"{observation} {rubric} {data} {sample} {again}")[:16], 16)


def judgement_lines(path: str) -> Iterator[tuple[int, int, JsonObject]]:
    """(byte offset, key of its question, judgement) of each line of the file *path*, none when it is not there. Raises InputError.

    A last line that was not written to its end is left out.
    """
    if not os.path.exists(path):
        return
    shown, offset = shown_path(path), 0
    with open_for_reading(path) as stream:
        for number, line in enumerate(stream, 1):
            if line.endswith(b"\n") and line.strip():
                place = f"{shown}:{number}"
                value = parse_line(line.strip(), place)
                yield offset, checked_key(value, place), value
            offset += len(line)


def checked_key(value: JsonObject, place: str) -> int:
    """The key of the question that the judgement *value* answers. Raises InputError that begins with *place*."""
    rubric, answer, error = value.get("rubric"), value.get("answer"), value.get("error")
    numbers: tuple[Any, Any] = (value.get("sample"), value.get("again", 1))
    try:
        if isinstance(answer, dict) and error is None:
            judgement_fields(answer)
        elif answer is not None or not isinstance(error, dict) or not all(isinstance(error.get(name), str) for name in ("code", "message")):
            raise JudgeFailure("", "")
        if isinstance(rubric, dict) and all(isinstance(each, int) and each > 0 for each in numbers):
            named = (str(value.get("observation")), str(rubric.get("sha256")), str(value.get("data")))
            return judgement_key(*named, *numbers)
    except JudgeFailure:
        pass
    raise InputError(f"{place}: is no judgement", "put back the file that Kaizen wrote, or remove the line", "invalid_file")


class KeptJudgements:
    """The judgements of one stage, found by question; 16 bytes of memory each, whatever they say."""

    def __init__(self, path: str) -> None:
        from array import array

        self.path = path
        found = array("Q"), array("Q")
        self.rounds = 1  # the highest `again` in the file
        for offset, key, value in judgement_lines(path):
            self.rounds = max(self.rounds, value.get("again", 1))
            found[0].append(key)
            found[1].append(offset)
        order = sorted(range(len(found[0])), key=found[0].__getitem__)
        self.keys, self.offsets = (array("Q", (column[place] for place in order)) for column in found)
        self.stream = open_for_reading(path, block=1 << 13) if self.keys else None

    def find(self, observation: str, question: JudgeQuestion, again: int = 1) -> JsonObject | None:
        """The last judgement about *question*, asked for the *again*-th time; None when there is none."""
        from bisect import bisect_right

        key = judgement_key(observation, question.rubric.sha256, question.data_fingerprint, question.sample, again)
        place = bisect_right(self.keys, key) - 1
        if self.stream is None or place < 0 or self.keys[place] != key:
            return None
        self.stream.seek(self.offsets[place])
        value = parse_line(self.stream.readline().strip(), shown_path(self.path))
        return value if value["observation"] == observation and value["sample"] == question.sample else None

    def close(self) -> None:
        """Closes the file."""
        if self.stream is not None:
            self.stream.close()


def open_judgements(path: str) -> AppendLog:
    """The log *path*, without what a killed program had not written to its end."""
    if os.path.exists(path):
        size, tail = torn_tail(path)
        if tail:
            truncate_file(path, size)
    return AppendLog(path)


def judgement_document(
    observation_fingerprint: str,
    observation: JsonObject,
    question: JudgeQuestion,
    again: int,
    judged: Judged,
    command: list[str],
    exact: Sequence[str],
) -> JsonObject:
    """The line about *question*, which was *judged*; the values *exact* and whatever else is a secret are masked."""
    said: JsonObject
    if judged.answer is not None:
        answer = redact_evidence(judged.answer, exact)[0]
        said = {"answer": {**answer, "reason": answer["reason"][:JUDGE_REASON_LIMIT]} if "reason" in answer else answer}
    else:
        code, message = judged.failure or ("judge_failed", "")
        said = {"error": {"code": code, "message": redact_evidence(message, exact)[0]}}
    return {
        "observation": observation_fingerprint,
        "case_id": observation["case_id"],
        "trial": observation["trial"],
        "rubric": {"id": question.rubric.id, "sha256": question.rubric.sha256},
        "data": question.data_fingerprint,
        "sample": question.sample,
        **({"again": again} if again > 1 else {}),
        "asked_at": judged.asked_at,
        "duration_ms": judged.duration_ms,
        "attempts": judged.attempts,
        "command": command,
        **said,
    }

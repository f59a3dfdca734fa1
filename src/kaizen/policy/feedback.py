"""What an optimizer may learn from a stage: every trial but those of the holdout.

The document of feedback.json comes in pieces, so that no stage is held in memory. Of the
holdout it says how many cases there are, and nothing else: its results are in no total.
"""

from collections.abc import Iterator
from typing import Any

from kaizen.cases.dataset import Dataset
from kaizen.foundation.jsonio import JsonObject, encode_compact

SHOWN_OF_CASE = ("id", "split", "tags", "critical", "input", "context", "expected")
SHOWN_OF_TRIAL = ("case_id", "trial", "status", "output", "steps", "error", "finish_reason")
SHOWN_OF_RESULT = ("outcome", "score", "coverage", "evaluations")


def feedback_pieces(head: JsonObject, dataset: Dataset, trials: Iterator[tuple[JsonObject, JsonObject]]) -> Iterator[str]:
    """The text of feedback.json: *head*, the cases that may be shown, their *trials* as (observation, result), totals."""
    shown = {name: case for name, case in dataset.cases.items() if name not in dataset.holdout}
    yield encode_compact({**head, "holdout": {"cases": len(dataset.holdout)}})[:-1] + ',"cases":['
    for number, case in enumerate(shown.values()):
        fields = {key: case.document[key] for key in SHOWN_OF_CASE if key in case.document}
        yield (",\n" if number else "\n") + encode_compact(fields)
    yield '],"trials":['
    totals: dict[str, dict[str, int]] = {}
    splits: dict[str, dict[str, int]] = {}
    separator = "\n"
    for observation, result in trials:
        if observation["case_id"] not in shown:  # of the holdout, or of no case at all
            continue
        yield separator + encode_compact(trial_document(observation, result))
        separator = ",\n"
        tally = splits.setdefault(shown[observation["case_id"]].document["split"], {"pass": 0, "fail": 0, "error": 0})
        tally[result["outcome"]] += 1
        for entry in result["evaluations"]:
            counts = totals.setdefault(entry["id"], {"pass": 0, "fail": 0, "error": 0, "not_applicable": 0})
            counts[entry["status"]] += 1
    yield f'],"evaluators":{encode_compact(totals)},"splits":{encode_compact(splits)}}}\n'


def trial_document(observation: JsonObject, result: JsonObject) -> JsonObject:
    """One trial: what the agent did, and what each evaluator said of it."""
    found: dict[str, Any] = {key: observation[key] for key in SHOWN_OF_TRIAL if key in observation}
    return {**found, **{key: result[key] for key in SHOWN_OF_RESULT}}

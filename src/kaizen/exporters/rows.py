"""What exports are made of: the trials of a stage, joined, in the order of its file."""

from collections.abc import Iterator
from typing import NamedTuple

from kaizen.cases.case import Case
from kaizen.foundation.errors import InputError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonObject, read_json_lines
from kaizen.runs.observation import iter_observations


class StageSource(NamedTuple):
    """A stage to export: its name, the files of its observations and results, cases by id, ids that are only counted, repetitions.

    `is_stale`: its results were made from something that has changed since.
    """

    stage: str
    observations: str
    results: str
    cases: dict[str, Case]
    hidden: frozenset[str]
    repetitions: int
    is_stale: bool


class TrialRow(NamedTuple):
    """One trial: the document of its case, what was observed, its result."""

    case: JsonObject
    observation: JsonObject
    result: JsonObject


class Tallied:
    """What an export counted: trials shown by outcome, trials and cases only counted, trials of cases that are gone."""

    def __init__(self) -> None:
        self.outcomes = {"pass": 0, "fail": 0, "error": 0}
        self.hidden_trials = 0
        self.hidden_cases: set[str] = set()
        self.unknown_trials = 0

    def takes(self, result: JsonObject, source: "StageSource") -> bool:
        """Counts *result*; True when it may be shown. A case that the dataset no longer holds may have been one of the holdout."""
        case_id = result["case_id"]
        if case_id in source.hidden:
            self.hidden_trials += 1
            self.hidden_cases.add(case_id)
        elif case_id not in source.cases:
            self.unknown_trials += 1
        else:
            self.outcomes[result["outcome"]] += 1
            return True
        return False

    def shown(self) -> int:
        """Trials that are shown."""
        return sum(self.outcomes.values())

    def document(self) -> JsonObject:
        """The counts for --json."""
        hidden = {"holdout_trials": self.hidden_trials, "holdout_cases": len(self.hidden_cases)}
        return {"trials": self.shown(), "counts": self.outcomes, **hidden, "unknown_trials": self.unknown_trials}


def trial_rows(source: StageSource, tally: Tallied) -> Iterator[TrialRow]:
    """The trials of *source* that may be shown, one at a time; *tally* counts them and the others.

    Raises InputError where results and observations are not the same trials in the same order.
    """
    results = read_json_lines(source.results)
    for line in iter_observations(source.observations):
        found = next(results, None)
        key = (line.value["case_id"], line.value["trial"])
        if found is None or (found.value["case_id"], found.value["trial"]) != key:
            place = f"{shown_path(source.observations)}:{line.number}"
            raise InputError(f"{place}: has no result in its place", "run: kaizen evaluate, then export again", "stale_results")
        if tally.takes(found.value, source):
            yield TrialRow(source.cases[key[0]].document, line.value, found.value)
    if next(results, None) is not None:
        raise InputError(f"{shown_path(source.results)}: has more results than observations", "run: kaizen evaluate", "stale_results")


def count_rows(source: StageSource) -> Tallied:
    """The counts of `trial_rows` alone, from the results."""
    tally = Tallied()
    for line in read_json_lines(source.results):
        tally.takes(line.value, source)
    return tally


def deciding_entries(result: JsonObject) -> list[JsonObject]:
    """The `evaluations` of *result* that made its outcome what it is; [] for a pass."""
    if result["outcome"] == "pass":
        return []
    return [entry for entry in result["evaluations"] if entry["status"] == result["outcome"] and entry["severity"] in ("hard", "gate")]


def deciding_text(result: JsonObject) -> str:
    """'asked_first: no consent; total: …' of the entries that decided; '' for a pass."""
    texts = [f"{entry['id']}: {entry['reason']}" for entry in deciding_entries(result)]
    return "; ".join(texts) or ("" if result["outcome"] == "pass" else str(result.get("reason") or "nothing was checked"))

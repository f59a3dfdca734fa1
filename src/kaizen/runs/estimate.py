"""What a run will take and cost, told from earlier evidence of the same cases.

A case counts as it went in this stage, else in the first other stage that has it: the mean
over its trials. What no earlier trial measured is left out and said to be, never taken as 0.
"""

import os
from collections.abc import Iterable
from typing import NamedTuple

from kaizen.cases.case import Case
from kaizen.cases.improvement import Improvement
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import float_or_none, read_json_object
from kaizen.foundation.shapes import is_number
from kaizen.runs.journal import checked_repetitions, line_fault
from kaizen.runs.observation import iter_observations
from kaizen.runs.tally import attempt_cost


class Estimate(NamedTuple):
    """`trials` to be run; of `timed` ones the earlier time in seconds is known, of `priced` ones the cost in US dollars.

    `seconds` and `cost_usd` are sums over those alone, None when there are none; `stages` says whose evidence it is.
    """

    trials: int
    timed: int
    seconds: float | None
    priced: int
    cost_usd: float | None
    stages: list[str]


class CaseRecord:
    """What earlier trials of one case took and cost: sums and their numbers."""

    def __init__(self) -> None:
        self.timed = self.priced = 0
        self.ms = self.cost = 0.0


def estimate_run(improvement: Improvement, stage: str, trials: Iterable[Case]) -> Estimate:
    """What *trials*, given by their cases, will take and cost in *stage*. Raises InputError for evidence that cannot be read."""
    wanted = list(trials)
    known: dict[str, CaseRecord] = {}
    used = []
    for name in sorted(improvement.stages(), key=lambda each: each != stage):
        found = case_records(improvement.stage_file(name), {case.id for case in wanted} - known.keys())
        if found:
            used.append(name)
        known.update(found)
    records = [known[case.id] for case in wanted if case.id in known]
    times = [record.ms / record.timed / 1000 for record in records if record.timed]
    costs = [record.cost / record.priced for record in records if record.priced]
    return Estimate(len(wanted), len(times), total(times), len(costs), total(costs), used)


def total(amounts: list[float]) -> float | None:
    """The sum of *amounts*; None for none, and where no float holds it."""
    return float_or_none(sum(amounts)) if amounts else None


def done_trials(path: str, meta_path: str, cases: dict[str, Case], only_errors: bool) -> tuple[set[tuple[str, int]], int]:
    """((case id, trial) of the lines of the stage file *path* that a resume leaves as they are, repetitions of the stage).

    With *only_errors* completed trials alone are left.
    """
    done, highest = set(), 1
    for line in iter_observations(path):
        highest = max(highest, line.value["trial"])
        case = cases.get(line.value["case_id"])
        if case is not None and not line_fault(line.value, case, only_errors):
            done.add((case.id, line.value["trial"]))
    if not os.path.exists(meta_path):
        return done, highest
    return done, checked_repetitions(read_json_object(meta_path), shown_path(meta_path))


def case_records(path: str, wanted: "set[str]") -> dict[str, CaseRecord]:
    """What the trials of the stage file *path* took and cost, by case, for the cases *wanted* of which one was measured."""
    found: dict[str, CaseRecord] = {}
    for line in iter_observations(path) if wanted and os.path.exists(path) else ():
        observation = line.value
        execution = observation.get("execution") or {}
        attempts = [*(execution.get("attempts") or ()), {"cost": observation.get("cost"), "duration_ms": execution.get("duration_ms")}]
        times = [attempt["duration_ms"] for attempt in attempts if is_number(attempt.get("duration_ms"))]
        costs = [cost for cost in map(attempt_cost, attempts) if cost is not None]
        if observation["case_id"] in wanted and (times or costs):
            record = found.setdefault(observation["case_id"], CaseRecord())
            if len(times) == len(attempts):
                record.timed, record.ms = record.timed + 1, record.ms + sum(times)
            if len(costs) == len(attempts):
                record.priced, record.cost = record.priced + 1, record.cost + sum(costs)
    return found

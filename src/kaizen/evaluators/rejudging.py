"""The judge asked again about the same evidence, to tell its noise from the agent's."""

from kaizen.cases.dataset import Dataset
from kaizen.cases.improvement import Improvement
from kaizen.evaluators.judge import JUDGE
from kaizen.evaluators.outside import Leave, open_outside, usable_case
from kaizen.evaluators.stage_results import LOCK
from kaizen.evaluators.suite import Suite
from kaizen.foundation.locks import FileLock
from kaizen.runs.observation import iter_observations

RoundVerdicts = dict[str, dict[str, dict[int, list[int]]]]  # by evaluator, case and trial: times passed and failed


class Rejudging:
    """Counts, over rounds of questions about the observations of one stage, how often each entry that needs a judge passed and failed.

    `asked` are the questions of these rounds that were asked now, `unanswered` those without a usable answer.
    """

    def __init__(self, improvement: Improvement, stage: str, dataset: Dataset, suite: Suite) -> None:
        self.improvement, self.stage, self.dataset, self.suite = improvement, stage, dataset, suite
        self.verdicts: RoundVerdicts = {}
        self.asked = self.unanswered = 0

    def add_round(self, leave: Leave) -> int:
        """Adds the answers of round `leave.again`, asked as far as *leave* goes; returns how many rounds are kept."""
        improvement, stage = self.improvement, self.stage
        lock = FileLock(improvement.stage_file(stage, LOCK), f"stage '{stage}'")
        with lock, open_outside(improvement, stage, self.dataset, self.suite, leave) as outside:
            for line, memo in outside.with_memos(iter_observations(improvement.stage_file(stage))):
                case = usable_case(line.value, self.dataset)
                if case is None:
                    continue
                for entry in self.suite.entries_for(case):
                    if JUDGE in entry.versions:
                        status = entry.evaluate(line.value, case.document, memo).status
                        trials = self.verdicts.setdefault(entry.id, {}).setdefault(case.id, {})
                        counts = trials.setdefault(line.value["trial"], [0, 0])
                        if status in ("pass", "fail"):
                            counts[status == "fail"] += 1
            self.asked += outside.asked
            self.unanswered += sum(rubric["unanswered"] for rubric in outside.judges().values())
            return outside.kept.rounds if outside.kept else 1

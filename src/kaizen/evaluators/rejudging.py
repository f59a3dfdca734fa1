"""The judge asked again about the same evidence, to tell its noise from the agent's."""

from kaizen.cases.dataset import Dataset
from kaizen.cases.improvement import Improvement
from kaizen.evaluators.judge import JUDGE
from kaizen.evaluators.outside import Leave, mixed_judges, open_outside, usable_case, without_count
from kaizen.evaluators.stage_results import LOCK
from kaizen.evaluators.suite import Suite
from kaizen.foundation.jsonio import JsonObject, canonical_json
from kaizen.foundation.locks import FileLock
from kaizen.runs.observation import iter_observations

RoundVerdicts = dict[str, dict[str, dict[int, list[int]]]]  # by evaluator, case and trial: times passed and failed


class Rejudging:
    """Counts, over rounds of questions about the observations of one stage, how often each entry that needs a judge passed and failed.

    `asked` are the questions of these rounds that were asked now, `unanswered` those without a usable answer.
    What two judges said under one rubric is no noise of one judge: `settle` takes it out, and says so in `mixed`.
    """

    def __init__(self, improvement: Improvement, stage: str, dataset: Dataset, suite: Suite) -> None:
        self.improvement, self.stage, self.dataset, self.suite = improvement, stage, dataset, suite
        self.verdicts: RoundVerdicts = {}
        self.asked = self.unanswered = 0
        self.mixed: list[str] = []
        self.makers: dict[str, dict[str, JsonObject]] = {}  # by rubric: who answered, with how many answers
        self.shown: set[str] = set()

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
            for name, rubric in outside.judges().items():
                self.unanswered += rubric["unanswered"]
                makers = self.makers.setdefault(name, {})
                for who in rubric["judges"]:
                    known = makers.setdefault(canonical_json(without_count(who)), {**who, "answers": 0})
                    known["answers"] += who["answers"]
            self.shown |= outside.shown
            return outside.kept.rounds if outside.kept else 1

    def settle(self) -> None:
        """Takes out the verdicts of entries that more than one judge has answered for, and says who they are."""
        rubrics: JsonObject = {name: {"judges": [*makers.values()]} for name, makers in self.makers.items() if len(makers) > 1}
        for entry in self.suite.entries if rubrics else ():
            if entry.type.name != JUDGE or entry.id in rubrics:
                self.verdicts.pop(entry.id, None)
        self.mixed = mixed_judges(self.stage, {name: rubric for name, rubric in rubrics.items() if name in self.shown})

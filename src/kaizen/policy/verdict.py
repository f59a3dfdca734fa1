"""The verdict on one trial: its results mapped through the `judge` block (formats.md 3).

No evaluator runs here. A criterion is the three-valued AND of its evaluators: a fail, else an
error, else a pass; what does not apply is left out. A violated hard rule rejects whatever the
score; one that could not be checked, or too little evidence, gives `insufficient_evidence`.
"""

from typing import TYPE_CHECKING

from kaizen.cases.evaluation_file import exact_fraction
from kaizen.cases.judge_block import INSUFFICIENT, REJECT, judge_pattern
from kaizen.evaluators.outcomes import ERROR, FAIL, NOT_APPLICABLE, PASS
from kaizen.foundation.jsonio import JsonObject

if TYPE_CHECKING:
    from fractions import Fraction

NOTHING_THERE = "no evaluator of that name looked at this trial"


class Verdicts:
    """The mapping of one `judge` block, its patterns compiled once."""

    def __init__(self, block: JsonObject) -> None:
        self.block = block
        self.criteria = [[judge_pattern(name) for name in criterion["evaluators"]] for criterion in block["criteria"]]
        self.rules = [judge_pattern(rule["evaluator"]) for rule in block["hard_rules"]]
        self.minima = [exact_fraction(item.get("minimum_score", 0)) for item in block["verdicts"]]
        self.weights = [exact_fraction(criterion["weight"]) for criterion in block["criteria"]]
        self.confident = exact_fraction(block["minimum_confidence"])

    def verdict(self, result: JsonObject) -> JsonObject:
        """The verdict on the result line *result*, keys in the order in which it is shown.

        `score` is None when no criterion has a definite status, `confidence` when no criterion applies.
        """
        entries: list[JsonObject] = result["evaluations"]
        criteria = [self.criterion(index, entries) for index in range(len(self.criteria))]
        violated, unchecked = self.rules_of(entries)
        passed, definite, applying = (
            sum((weight for weight, item in zip(self.weights, criteria, strict=True) if item["status"] in statuses), exact_fraction(0))
            for statuses in ((PASS,), (PASS, FAIL), (PASS, FAIL, ERROR))
        )
        score = passed / definite if definite else None
        confidence = definite / applying if applying else None
        verdict, reason = self.decided(violated, unchecked, score, confidence)
        return {
            "case_id": result["case_id"],
            "judge": {"name": self.block["name"], "version": self.block["version"]},
            "verdict": verdict,
            "score": None if score is None else float(score),
            "confidence": None if confidence is None else float(confidence),
            "criteria": criteria,
            "critical_violations": violated,
            "recommended_action": self.action(criteria),
            "because": reason,
            "unchecked_rules": unchecked,
            "trial": result["trial"],
        }

    def criterion(self, index: int, entries: list[JsonObject]) -> JsonObject:
        """Criterion *index*: its status and what each of its evaluators said."""
        document, patterns = self.block["criteria"][index], self.criteria[index]
        found = [entry for entry in entries if any(pattern.fullmatch(entry["id"]) for pattern in patterns)]
        said = [{"id": entry["id"], "status": entry["status"], "reason": entry["reason"]} for entry in found]
        return {"id": document["id"], "status": all_status(found), "weight": document["weight"], "evaluators": said}

    def rules_of(self, entries: list[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
        """(hard rules that are violated, hard rules that could not be checked)."""
        violated: list[JsonObject] = []
        unchecked: list[JsonObject] = []
        for rule, pattern in zip(self.block["hard_rules"], self.rules, strict=True):
            found = [entry for entry in entries if pattern.fullmatch(entry["id"])]
            status = all_status(found)
            if status in (FAIL, ERROR):
                why = next((str(entry["reason"]) for entry in found if entry["status"] == status), NOTHING_THERE)
                shown = {"id": rule["id"], "message": rule["message"], "evaluator": rule["evaluator"], "reason": why}
                (violated if status == FAIL else unchecked).append(shown)
        return violated, unchecked

    def decided(
        self, violated: list[JsonObject], unchecked: list[JsonObject], score: "Fraction | None", confidence: "Fraction | None"
    ) -> tuple[str, str]:
        """(verdict, reason code of what decided it)."""
        if violated:
            return REJECT, "hard_rule_violated"
        if unchecked:
            return INSUFFICIENT, "hard_rule_unchecked"
        if score is None or confidence is None:
            return INSUFFICIENT, "nothing_measured"
        if confidence < self.confident:
            return INSUFFICIENT, "low_confidence"
        place = next((index for index, least in enumerate(self.minima) if score >= least), len(self.minima) - 1)
        return str(self.block["verdicts"][place]["verdict"]), "score"

    def action(self, criteria: list[JsonObject]) -> str | None:
        """The action of the failed criterion of greatest weight, the first of equals; None when it has none, or none failed."""
        failed = [(weight, item["id"]) for weight, item in zip(self.weights, criteria, strict=True) if item["status"] == FAIL]
        if not failed:
            return None
        heaviest = max(weight for weight, _ in failed)
        action = self.block["actions"].get(next(identity for weight, identity in failed if weight == heaviest))
        return None if action is None else str(action)


def all_status(entries: list[JsonObject]) -> str:
    """The three-valued AND of *entries*: a fail, else an error, else a pass; `error` when there is none at all."""
    statuses = {entry["status"] for entry in entries}
    for status in (FAIL, ERROR, PASS):
        if status in statuses:
            return status
    return NOT_APPLICABLE if statuses else ERROR


REASON_WORDS = {
    "hard_rule_violated": "a hard rule is violated",
    "hard_rule_unchecked": "a hard rule could not be checked",
    "nothing_measured": "no criterion could be measured",
    "low_confidence": "too little of the weight could be measured",
    "score": "by its score",
}

"""All 1,319 GSM8K problems with the recorded answers of two real models, against the publishers' own verdict.

The data are those of openai/grade-school-math (MIT licence). The figures are known from
outside: 286 and 458 correct, 260 improved, 88 regressed, 971 unchanged.
"""

import json
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = Path(__file__).resolve().parent / "data" / "gsm8k"
sys.path.insert(0, str(ROOT))

import kaizen


def lines(name):
    """The records of one of the files."""
    with open(DATA / name, encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


class PublishedVerdict(unittest.TestCase):
    """The evaluator of examples/gsm8k says the same of every answer as the publishers do."""

    def test_all_2638_answers(self):
        (entry,) = json.loads((ROOT / "examples" / "gsm8k" / "evaluation.json").read_text(encoding="utf-8"))["evaluators"]
        prepared = kaizen.prepare_entry(entry)
        cases = {case["id"]: case for case in lines("test_cases.jsonl")}
        correct, disagreements, answers = {}, [], 0
        for model in ("6b_finetuning", "175b_finetuning"):
            correct[model] = set()
            for line in lines(f"{model}.jsonl"):
                answers += 1
                observation = {"case_id": line["case_id"], "trial": 1, "status": "completed", "output": line["output"]}
                outcome = prepared.evaluate(observation, cases[line["case_id"]], {})
                if outcome.status == "pass":
                    correct[model].add(line["case_id"])
                if outcome.status not in ("pass", "fail") or (outcome.status == "pass") != line["published_is_correct"]:
                    disagreements.append((model, line["case_id"], outcome.reason))
        self.assertEqual((answers, len(cases), disagreements), (2638, 1319, []))
        before, after = correct["6b_finetuning"], correct["175b_finetuning"]
        changes = (len(before), len(after), len(after - before), len(before - after), 1319 - len(after ^ before), len(before & after))
        self.assertEqual(changes, (286, 458, 260, 88, 971, 198))


if __name__ == "__main__":
    unittest.main()

"""Pareto and feedback on what two real models answered to 200 GSM8K problems, with made-up prices: the figures of the page."""

import json
import shutil
import sys
import tempfile
import unittest
from fractions import Fraction
from pathlib import Path

from support import ROOT, read_json, read_lines, run_cli, write

PLACE = "examples/gsm8k"
PAGE = (ROOT / PLACE / "README.md").read_text(encoding="utf-8")
MODELS = {"baseline": ("6b_finetuning", "0.001"), "candidate": ("175b_finetuning", "0.02")}


class Money(unittest.TestCase):
    """Both models run once for all tests, as the page says."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name).resolve()
        shutil.copytree(ROOT / PLACE, cls.folder / PLACE, ignore=shutil.ignore_patterns("__pycache__"))
        block = PAGE.split("## Is the larger one worth its money?")[1].split("```")[1].strip()
        cls.answers = {}
        for line in block.splitlines():
            python, program, command, *words = line.split()
            assert (python, program) == ("python", "kaizen.py")
            options = ["--progress", "none"] if command in ("run", "evaluate") else []
            done = cls.play(command, words[0], *options, *[sys.executable if word == "python" else word for word in words[1:]])
            assert done.status == 0, done.stdout + done.stderr

    @classmethod
    def play(cls, *words):
        return run_cli(*words, cwd=cls.folder)

    def pareto(self, **changed):
        """The variants by name, and the whole answer, with *changed* blocks in evaluation.json."""
        write(self.folder / PLACE / "evaluation.json", json.dumps({**read_json(ROOT / PLACE / "evaluation.json"), **changed}))
        answer = json.loads(self.play("pareto", PLACE, "--json").stdout)
        return {entry["name"]: entry for entry in answer["variants"]}, answer

    def test_the_cheapest_feasible_is_the_smaller_model(self):
        found, answer = self.pareto()
        self.assertEqual((answer["cheapest_feasible"], found["baseline"]["status"], found["candidate"]["status"]), ("baseline", "front", "infeasible"))
        self.assertEqual([reason["text"] for reason in found["candidate"]["reasons"]], ["14 regressions (at most 0)"])
        for stage, (model, price) in MODELS.items():
            characters = sum(len(line["output"]) for line in read_lines(self.folder / PLACE / f"answers/{model}.jsonl"))
            expected = Fraction(characters, 1000 * 200) * Fraction(price)
            self.assertAlmostEqual(found[stage]["mean_cost_usd"], float(expected), places=12)
            self.assertIn(f"${float(expected):.6f}", PAGE)

    def test_with_the_regressions_allowed_both_are_on_the_front_and_not_separated(self):
        found, answer = self.pareto(acceptance={"maximum_regressions": 14})
        self.assertEqual({entry["status"] for entry in found.values()}, {"front"})
        self.assertEqual([set(pair) for pair in answer["not_separated"]], [{"baseline", "candidate"}])
        self.assertLess(found["candidate"]["interval"][0], found["baseline"]["interval"][1])

    def test_where_thirty_per_cent_are_asked_for_only_the_larger_will_do(self):
        found, answer = self.pareto(acceptance={"maximum_regressions": 14}, objectives={"minimum_pass_rate": 0.3})
        self.assertEqual((answer["cheapest_feasible"], found["baseline"]["status"]), ("candidate", "infeasible"))

    def test_the_observations_say_that_the_price_is_made_up(self):
        for stage in MODELS:
            self.assertTrue(all(line["metadata"] == {"cost": "made up"} for line in read_lines(self.folder / PLACE / f"{stage}.jsonl")))

    def test_replayed_answers_are_unpriced_and_not_comparable(self):
        place = self.folder / "replayed" / "gsm8k"
        shutil.copytree(ROOT / PLACE, place, ignore=shutil.ignore_patterns("__pycache__"))
        self.play("run", place, "--stage", "baseline", "--progress", "none", "--replay", place / "answers/6b_finetuning.jsonl")
        self.play("evaluate", place, "--progress", "none")
        done = self.play("pareto", place, "--json")
        (entry,) = json.loads(done.stdout)["variants"]
        self.assertEqual((done.status, entry["status"], entry["reasons"][0]["code"]), (3, "not_comparable", "unpriced"))

    def test_feedback_is_refused_without_a_holdout_and_keeps_one_back(self):
        refused = self.play("feedback", PLACE, "--json")
        self.assertEqual((refused.status, json.loads(refused.stdout)["reason"]), (5, "no_holdout"))
        place = self.folder / "held" / "gsm8k"
        shutil.copytree(self.folder / PLACE, place)
        write(place / "evaluation.json", (ROOT / PLACE / "evaluation.json").read_text(encoding="utf-8"))
        cases = read_lines(place / "test_cases.jsonl")
        for case in cases[1::2]:
            case["split"] = "holdout"
        write(place / "test_cases.jsonl", "".join(json.dumps(case) + "\n" for case in cases))
        self.play("evaluate", place, "--progress", "none")
        answer = json.loads(self.play("feedback", place, "--json").stdout)
        self.assertEqual((answer["stage"], answer["cases"], answer["holdout_cases"]), ("candidate", 100, 100))
        feedback = read_json(place / "feedback.json")
        published = {line["case_id"]: line["published_is_correct"] for line in read_lines(place / "answers/175b_finetuning.jsonl")}
        solved = sum(published[case["id"]] for case in cases[::2])
        self.assertEqual(solved, 32)
        self.assertEqual(feedback["splits"], {"development": {"pass": solved, "fail": 100 - solved, "error": 0}})
        told = {trial["case_id"] for trial in feedback["trials"]} | {case["id"] for case in feedback["cases"]}
        self.assertEqual(told, {case["id"] for case in cases[::2]})


if __name__ == "__main__":
    unittest.main()

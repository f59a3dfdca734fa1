"""examples/judges, replayed: the figures of its page, and a judge that is fooled by nothing."""

import contextlib
import importlib.util
import io
import json
import shutil
import sys
import unittest
from unittest import mock

import support
from support import ROOT, read_lines, run_cli

JUDGE = ("--", sys.executable, "-S", "-E", "examples/judges/keyword_judge.py")


class Apologies(support.TemporaryFolder):
    """The commands of the page."""

    def setUp(self):
        super().setUp()
        shutil.copytree(ROOT / "examples/judges", self.folder / "examples/judges", ignore=shutil.ignore_patterns("__pycache__"))
        for stage in ("baseline", "candidate"):
            done = run_cli("run", "examples/judges", "--stage", stage, "--replay", f"examples/judges/answers/{stage}.jsonl", "--progress", "none")
            self.assertEqual(done.status, 0, done.stderr)

    def evaluate(self, *options):
        done = run_cli("evaluate", "examples/judges", "--progress", "none", "--json", *options)
        self.assertEqual(done.status, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)["stages"]

    def test_it_asks_six_questions_and_finds_two_improvements(self):
        stages = self.evaluate(*JUDGE)
        self.assertEqual([stages[stage]["questions_asked"] for stage in ("baseline", "candidate")], [3, 3])
        review = json.loads(run_cli("review", "examples/judges", "--json").stdout)
        self.assertEqual((review["reason"], review["counts"]["improved"], review["counts"]["unchanged"]), ("eligible", 2, 2))
        rows = json.loads((self.folder / "examples/judges/comparison.json").read_text())["cases"]
        self.assertEqual([row["id"] for row in rows if row["change"] == "improved"], ["late-bike", "no-receipt"])

    def test_a_second_time_it_asks_nothing(self):
        self.evaluate(*JUDGE)
        before = (self.folder / "examples/judges/candidate.evaluated.jsonl").read_bytes()
        for options in ((), JUDGE):
            stages = self.evaluate(*options)
            self.assertEqual([stages[stage]["questions_asked"] for stage in ("baseline", "candidate")], [0, 0])
        self.assertEqual((self.folder / "examples/judges/candidate.evaluated.jsonl").read_bytes(), before)

    def test_one_process_that_goes_on_says_the_same(self):
        self.evaluate(*JUDGE)
        before = (self.folder / "examples/judges/candidate.evaluated.jsonl").read_bytes()
        self.evaluate("--rejudge", "--persistent", *JUDGE)
        self.assertEqual((self.folder / "examples/judges/candidate.evaluated.jsonl").read_bytes(), before)
        self.assertEqual(len(read_lines("examples/judges/candidate.judgements.jsonl")), 6)


class ModelAnswers(unittest.TestCase):
    """openai_judge.py: what a model may say in place of an answer. The service itself is in tests/peers."""

    @classmethod
    def setUpClass(cls):
        spec = importlib.util.spec_from_file_location("openai_judge", ROOT / ".agents/skills/improve-agent/scripts/openai_judge.py")
        cls.judge = importlib.util.module_from_spec(spec)
        with mock.patch.object(sys, "dont_write_bytecode", True):  # a skill's folder is copied as it is
            spec.loader.exec_module(cls.judge)

    def test_whatever_does_not_fit_is_no_score_and_no_crash(self):
        scores = ("NaN", "Infinity", "-Infinity", "1" + "0" * 400, "-0.1", "1.01", "true", '"1"', "null", "[" * 100_000)
        for text in (*(f'{{"reason": "", "abstain": false, "score": {score}}}' for score in scores), None, "", "[]", '{"score": 1}', ["x"], 7):
            with self.assertRaises(self.judge.Unusable, msg=str(text)[:60]):
                self.judge.judgement(text)

    def test_half_a_surrogate_pair_is_passed_on_as_an_escape(self):
        found = self.judge.judgement('{"reason": "\\ud83d", "abstain": false, "score": 1}')
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(stream):
            self.judge.say(found)
        self.assertIn(b'"\\ud83d"', stream.buffer.getvalue())


if __name__ == "__main__":
    unittest.main()

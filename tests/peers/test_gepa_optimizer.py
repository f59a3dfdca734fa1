"""examples/optimizers/gepa_optimizer.py: GEPA's own search, Kaizen's runner and evaluators, a script in the model's place.

No model takes part: what GEPA asks is answered by data/gepa/scripted_reflection.py, which adds the next
of six rules to the prompt that it is shown. So this shows that the two programs fit together and that scores are
Kaizen's, not that a model would find better prompts.
"""

import shlex
import shutil
import sys
import tempfile
import unittest
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support import ROOT, read_json, read_lines, run_cli, write

DATA = Path(__file__).resolve().parent / "data" / "gepa"
PLACE = "examples/refund-extraction"
REFLECT = shlex.join([sys.executable, str(DATA / "scripted_reflection.py")])


class GepaOptimizer(unittest.TestCase):
    """One search, shared by the tests."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name).resolve()
        shutil.copytree(ROOT / "examples", cls.folder / "examples", ignore=shutil.ignore_patterns("__pycache__", "optimization"))
        run_cli("evaluate", PLACE, "--stage", "baseline", cwd=cls.folder)
        cls.notes = cls.folder / "notes.txt"
        spy = [sys.executable, DATA / "spying_agent.py", cls.notes, f"{PLACE}/extract.py", "{extraction}"]
        cls.done = cls.optimize("--calls", "160", "--persistent", "--jobs", "1", "--", *spy)
        cls.proposal = read_json(cls.folder / PLACE / "optimization/proposal.json")

    @classmethod
    def optimize(cls, *words):
        optimizer = [sys.executable, "examples/optimizers/gepa_optimizer.py", "--kaizen", ROOT / "kaizen.py", "--reflect", REFLECT]
        evaluation = ["--evaluation", f"{PLACE}/evaluation.json"]
        return run_cli("optimize", PLACE, "--stage", "baseline", "--timeout", "300", "--", *optimizer, *evaluation, *words, cwd=cls.folder)

    def test_the_version_is_the_one_that_the_example_asks_for(self):
        wanted = (ROOT / "examples/optimizers/requirements.txt").read_text(encoding="utf-8")
        self.assertIn(f"gepa=={version('gepa')}\n", wanted)

    def test_the_score_that_gepa_reports_is_what_kaizen_measures_on_the_open_cases(self):
        self.assertEqual(self.done.status, 0, self.done.stdout + self.done.stderr)
        candidates = self.proposal["candidates"]
        self.assertTrue(candidates)
        splits = {case["id"]: case["split"] for case in read_lines(self.folder / PLACE / "test_cases.jsonl")}
        for number, entry in enumerate(candidates):
            text = self.folder / PLACE / "optimization/candidates" / entry["candidate"] / "extraction.txt"
            stage = f"checked-{number}"
            run_cli("run", PLACE, "--stage", stage, "--persistent", "--progress", "none", "--", sys.executable, f"{PLACE}/extract.py", text, cwd=self.folder)
            run_cli("evaluate", PLACE, "--stage", stage, cwd=self.folder)
            results = [line for line in read_lines(self.folder / PLACE / f"{stage}.evaluated.jsonl") if splits[line["case_id"]] != "holdout"]
            passed = sum(line["outcome"] == "pass" for line in results)
            self.assertEqual(entry["rationale"], f"GEPA: mean score {passed / 48:.3f} on 48 open cases, {16 / 48:.3f} before")
            self.assertGreater(passed, 16)

    def test_its_folder_holds_the_open_cases_and_no_others(self):
        notes = self.notes.read_text(encoding="utf-8")
        self.assertIn("test_cases.jsonl", notes)
        for case in read_lines(self.folder / PLACE / "test_cases.jsonl"):
            self.assertEqual(case["expected"]["order"] in notes, case["split"] != "holdout")
            self.assertEqual(f'"{case["id"]}"' in notes, case["split"] != "holdout")

    def test_an_agent_that_dies_scores_nothing_and_gives_no_candidate(self):
        write(self.folder / "dies.py", "raise SystemExit(3)\n")
        done = self.optimize("--calls", "60", "--", sys.executable, "dies.py", "{extraction}")
        self.assertEqual(done.status, 1, done.stdout + done.stderr)
        self.assertIn("0 candidates proposed", done.stdout)

    def test_what_kaizen_refuses_ends_the_search_with_its_words(self):
        done = self.optimize("--calls", "60", "--", "no-such-agent", "{extraction}")
        self.assertEqual(done.status, 4)
        self.assertIn("no-such-agent", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

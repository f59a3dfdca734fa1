"""examples/refund-extraction and examples/optimizers: each figure and sentence of their pages."""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import ROOT, kaizen, read_json, read_lines, run_cli, write

EXAMPLES = ROOT / "examples"
PLACE = "examples/refund-extraction"
STAGES = ("baseline", "every-failure", "seen-twice")
PAGE = (ROOT / PLACE / "README.md").read_text(encoding="utf-8")


class Played(unittest.TestCase):
    """A copy of the example in a folder that the tests of a class share."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name).resolve()
        for name in ("refund-extraction", "optimizers"):
            shutil.copytree(EXAMPLES / name, cls.folder / "examples" / name, ignore=shutil.ignore_patterns("__pycache__"))

    @classmethod
    def play(cls, command, *words, status=0):
        done = run_cli(command, *words, cwd=cls.folder)
        if done.status != status:
            raise AssertionError(f"{command} {words} ended with {done.status}:\n{done.stdout}{done.stderr}")
        return done

    @classmethod
    def answer(cls, command, *words, status=0):
        return json.loads(cls.play(command, *words, "--json", status=status).stdout)


class Recorded(Played):
    """What the page says of the recorded stages, with nothing run."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.play("validate", PLACE)
        cls.play("evaluate", PLACE)
        splits = {case["id"]: case["split"] for case in read_lines(cls.folder / PLACE / "test_cases.jsonl")}
        cls.passed = {}
        for stage in STAGES:
            lines = read_lines(cls.folder / PLACE / f"{stage}.evaluated.jsonl")
            cls.passed[stage] = {
                held: {line["case_id"] for line in lines if line["outcome"] == "pass" and (splits[line["case_id"]] == "holdout") == held} for held in (False, True)
            }
        cls.splits = splits

    def test_the_table(self):
        counts = [sum(split == "holdout" for split in self.splits.values()), sum(split != "holdout" for split in self.splits.values())]
        self.assertEqual(counts, [48, 48])
        for stage, numbers in (("baseline", (16, 18)), ("every-failure", (48, 19)), ("seen-twice", (28, 21))):
            found = [len(self.passed[stage][held]) for held in (False, True)]
            self.assertEqual(found, list(numbers))
            row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{stage}`"))
            for number in numbers:
                self.assertIn(f"| {number} ({round(100 * number / 48, 2):g} %) |", row)

    def test_gains_and_losses_against_the_baseline(self):
        def change(stage, held):
            before, after = self.passed["baseline"][held], self.passed[stage][held]
            return len(after - before), len(before - after)

        self.assertEqual([change("every-failure", held) for held in (False, True)], [(32, 0), (6, 5)])
        self.assertIn("it gains 6, loses 5", PAGE)
        self.assertEqual([change("seen-twice", held) for held in (False, True)], [(12, 0), (3, 0)])
        self.assertIn("fixes 12 open cases\ninstead of 32, loses nothing, and gains 3 on the holdout", PAGE)

    def test_the_recommendations(self):
        rejected = self.answer("gate", PLACE, "--candidate", "every-failure", status=1)
        self.assertEqual([reason["text"] for reason in rejected["reasons"]], ["5 regressions (at most 0)"])
        eligible = self.answer("gate", PLACE, "--candidate", "seen-twice")
        self.assertEqual(eligible["recommendation"], "eligible")
        for answer, rate in ((rejected, 19 / 48), (eligible, 21 / 48)):
            self.assertAlmostEqual(next(metric for metric in answer["metrics"] if metric["name"] == "holdout_rate")["candidate"]["value"], rate)

    def test_the_page_of_the_review_shows_no_holdout_case(self):
        done = self.play("review", PLACE, "--candidate", "every-failure")
        self.assertIn("regressed: 5 holdout cases", done.stdout)
        shown = done.stdout + done.stderr + "".join((self.folder / PLACE / name).read_text(encoding="utf-8") for name in ("review.html", "review.md"))
        held = [case for case in read_lines(self.folder / PLACE / "test_cases.jsonl") if case["split"] == "holdout"]
        for case in held:
            self.assertNotIn(case["id"], shown)
            self.assertNotIn(case["expected"]["order"], shown)

    def test_weighed_by_quality_and_made_up_cost(self):
        answer = self.answer("pareto", PLACE)
        found = {entry["name"]: entry for entry in answer["variants"]}
        self.assertEqual({name: entry["status"] for name, entry in found.items()}, {"baseline": "infeasible", "every-failure": "infeasible", "seen-twice": "front"})
        self.assertEqual(answer["cheapest_feasible"], "seen-twice")
        self.assertEqual([found[name]["reasons"][0]["code"] for name in STAGES[:2]], ["below_minimum_pass_rate", "regressions"])
        costs = {name: f"${entry['mean_cost_usd']:.6f}" for name, entry in found.items()}
        self.assertIn(f"at {costs['seen-twice']} a case: `baseline` costs {costs['baseline']} and passes 35.42 %", PAGE)
        self.assertEqual([round(100 * found[name]["quality"]["value"], 2) for name in STAGES], [35.42, 69.79, 51.04])
        self.assertIn("`every-failure` passes 69.79 % of all 96\n", PAGE)

    def test_without_the_holdout_the_other_one_would_have_won(self):
        play = self.folder / "open" / "refund-extraction"
        shutil.copytree(EXAMPLES / "refund-extraction", play)
        open_ids = {name for name, split in self.splits.items() if split != "holdout"}
        write(play / "test_cases.jsonl", "".join(json.dumps(case) + "\n" for case in read_lines(play / "test_cases.jsonl") if case["id"] in open_ids))
        evaluation = read_json(play / "evaluation.json")
        del evaluation["metrics"], evaluation["acceptance"]["metrics"]
        write(play / "evaluation.json", json.dumps(evaluation))
        for stage in STAGES:
            self.play("run", play, "--stage", stage, "--overwrite", "--replay", PLACE + f"/{stage}.jsonl", "--progress", "none")
        answer = self.answer("gate", play, "--candidate", "every-failure")
        self.assertEqual((answer["recommendation"], answer["rates"]["candidate"]["passed"]), ("eligible", 48))

    def test_the_rules_shown_are_those_of_the_candidate_and_the_numbers_of_rules_hold(self):
        texts = [(EXAMPLES / "refund-extraction/optimization/candidates" / name / "extraction.txt").read_text(encoding="utf-8") for name in ("candidate-001", "candidate-002")]
        for line in ("wednesday\", amount is \"43.5", "footstool\", reason is \"damaged", "delayed\", reason is \"late"):
            self.assertIn(f'- When a message says "{line}".', texts[0])
            self.assertIn(f'- When a message says "{line}".', PAGE)
        added = [text.count("- When a message says") for text in texts]
        self.assertEqual(added, [28, 7])
        baseline = (EXAMPLES / "refund-extraction/prompts/extraction.txt").read_text(encoding="utf-8")
        self.assertEqual(baseline.count("When a message says"), 4)
        self.assertEqual([entry["memorised"] for entry in read_json(self.folder / PLACE / "optimization/proposal.json")["candidates"]], [None, None])

    def test_feedback_keeps_the_holdout_back_and_notices_when_it_changes(self):
        answer = self.answer("feedback", PLACE, "--stage", "baseline")
        self.assertEqual((answer["cases"], answer["holdout_cases"]), (48, 48))
        text = (self.folder / PLACE / "feedback.json").read_text(encoding="utf-8")
        for case in read_lines(self.folder / PLACE / "test_cases.jsonl"):
            self.assertEqual(case["id"] in text, case["split"] != "holdout")
        play = self.folder / "changed" / "refund-extraction"
        shutil.copytree(EXAMPLES / "refund-extraction", play)
        cases = read_lines(play / "test_cases.jsonl")
        next(case for case in cases if case["split"] == "holdout")["expected"]["amount"] = 1
        write(play / "test_cases.jsonl", "".join(json.dumps(case) + "\n" for case in cases))
        self.play("evaluate", play)
        self.assertEqual(self.answer("feedback", play, "--stage", "baseline", status=5)["reason"], "holdout_changed")


class WholeLoop(Played):
    """The commands of the page, played again, give what is recorded."""

    def test_the_loop_gives_the_recorded_candidates_and_observations(self):
        shutil.rmtree(self.folder / PLACE / "optimization")
        block = PAGE.split("## The whole loop")[1].split("```sh\n")[1].split("```")[0]
        for line in block.splitlines():
            kaizen_word, *words = [sys.executable if word == "python" else word for word in line.split()]
            self.assertEqual(kaizen_word, "kaizen")
            self.play(*words)
        for name in ("candidate-001", "candidate-002"):
            made = self.folder / PLACE / "optimization/candidates" / name / "extraction.txt"
            self.assertEqual(made.read_text(encoding="utf-8"), (ROOT / made.relative_to(self.folder)).read_text(encoding="utf-8"))
        for stage in STAGES:
            kept, made = ([{**line, "execution": None} for line in read_lines(root / PLACE / f"{stage}.jsonl")] for root in (ROOT, self.folder))
            self.assertEqual(made, kept)

    def test_an_extractor_that_does_nothing_passes_nothing(self):
        write(self.folder / "silent.py", 'import json\nprint(json.dumps({"output": {}}))\n')
        self.play("run", PLACE, "--stage", "silent", "--id", "message-01", "--id", "message-02", "--progress", "none", "--", sys.executable, "silent.py")
        self.assertEqual(self.answer("evaluate", PLACE, "--stage", "silent")["stages"]["silent"]["counts"]["pass"], 0)


def asked(optimizer, request):
    """What the optimizer answers, as its own process."""
    done = subprocess.run([sys.executable, EXAMPLES / "optimizers" / optimizer], input=json.dumps(request), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["candidates"]


def request_about(*trials, maximum=3):
    """A request about trials (message, expected, failed evaluations as (reason, pointer))."""
    cases = [{"id": f"c{number}", "input": message, "expected": expected} for number, (message, expected, _) in enumerate(trials)]
    judged = [
        {
            "case_id": f"c{number}",
            "evaluations": [
                {"id": "fields", "status": "fail", "reason": reason, "evidence": [{"pointer": pointer}] if pointer else []} for reason, pointer in failed
            ],
        }
        for number, (_, _, failed) in enumerate(trials)
    ]
    component = {"name": "prompt", "text": "Read it.\n"}
    return {"protocol": "1.0", "feedback": {"cases": cases, "trials": judged}, "components": [component], "budget": {"maximum_candidates": maximum}}


class RuleOptimizer(unittest.TestCase):
    """examples/optimizers/rule_optimizer.py alone."""

    def test_a_word_of_failed_cases_that_no_other_case_contradicts_becomes_a_rule(self):
        wrong = [("/reason: expected \"late\", found \"other\"", "/reason")]
        candidates = asked(
            "rule_optimizer.py",
            request_about(
                ("The lamp was delayed", {"reason": "late"}, wrong),
                ("The rug is delayed", {"reason": "late"}, wrong),
                ("The lamp is torn", {"reason": "damaged"}, []),
                ("My vase is on the way", {"reason": "late"}, wrong),
            ),
        )
        texts = [candidate["components"]["prompt"] for candidate in candidates]
        self.assertEqual(texts[1], 'Read it.\n\n- When a message says "delayed", reason is "late".\n')
        self.assertEqual(texts[0], 'Read it.\n\n- When a message says "delayed", reason is "late".\n- When a message says "vase", reason is "late".\n')
        self.assertIn("nothing was tried", candidates[0]["rationale"])

    def test_the_budget_and_nothing_to_learn(self):
        wrong = [("/reason: differs", None)]
        self.assertEqual(len(asked("rule_optimizer.py", request_about(("delayed", {"reason": "late"}, wrong), ("delayed", {"reason": "late"}, wrong), maximum=1))), 1)
        self.assertEqual(asked("rule_optimizer.py", request_about(("fine", {"reason": "late"}, []))), [])

    def test_reasons_without_a_field_are_passed_on_as_they_are(self):
        (candidate,) = asked("rule_optimizer.py", request_about(("Hello", None, [("lacks 'order'", None)])))
        self.assertEqual(candidate["components"]["prompt"], "Read it.\n\nEarlier answers went wrong like this:\n- fields: lacks 'order'\n")

    def test_its_answers_are_what_the_protocol_asks_for(self):
        request = request_about(("delayed", {"reason": "late"}, [("/reason: differs", "/reason")]))
        printed = json.dumps({"candidates": asked("rule_optimizer.py", request)}).encode()
        self.assertEqual(len(kaizen.optimizer_candidates(printed, {"prompt": "Read it.\n"}, 3)), 1)


if __name__ == "__main__":
    unittest.main()

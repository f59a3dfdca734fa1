"""`kaizen test`: run, evaluate, review and gate in one process."""

import json
import sys
import unittest

import support
from support import make_improvement, run_cli, write

CASES = [{"id": name, "input": name, "expected": f"{name}!"} for name in ("a", "b", "c")]
CHECK = {"id": "right", "type": "equals", "value": {"$case": "/expected"}}
AGENT = """\
import json, sys
name = json.load(sys.stdin)["case"]["input"]
if name in sys.argv[2:]:
    sys.exit(1)
print(json.dumps({"output": name + ("!" if name in sys.argv[1] else "?")}))
"""


class DailyCall(support.TemporaryFolder):
    """The exit status is that of gate; without a baseline that of the stage's own pass rate."""

    def setUp(self):
        super().setUp()
        write("agent.py", AGENT)

    def prepare(self, cases=CASES, **acceptance):
        return make_improvement("daily", cases, {"version": 1, "evaluators": [CHECK], "acceptance": acceptance})

    def call(self, *agent, options=()):
        return run_cli("test", "daily", "--progress", "none", *options, "--", sys.executable, "agent.py", *agent)

    def baseline(self, *agent):
        done = run_cli("run", "daily", "--stage", "baseline", "--progress", "none", "--", sys.executable, "agent.py", *agent)
        self.assertEqual(done.status, 0, done.stderr)

    def test_an_improvement_exits_0_and_leaves_the_page(self):
        folder = self.prepare()
        self.baseline("ab")
        done = self.call("abc", options=("--junit", "report.xml", "--summary", "summary.md"))
        self.assertEqual(done.status, 0, done.stdout + done.stderr)
        self.assertIn("eligible", done.stdout)
        for name in ("report.xml", "summary.md", folder / "review.html", folder / "comparison.json"):
            self.assertTrue((self.folder / name).exists(), name)

    def test_a_regression_exits_1_and_says_which_check_failed(self):
        self.prepare()
        self.baseline("ab")
        done = self.call("bc")
        self.assertEqual(done.status, 1)
        self.assertRegex(done.stdout, r"fail +a +right: .*a\?")

    def test_a_broken_candidate_exits_3(self):
        self.prepare()
        self.baseline("ab")
        done = self.call("abc", "b")
        self.assertEqual(done.status, 3)
        self.assertRegex(done.stdout, r"error +b ")

    def test_it_runs_anew_each_time(self):
        self.prepare()
        self.baseline("ab")
        self.assertEqual(self.call("a").status, 1)
        self.assertEqual(self.call("abc").status, 0)

    def test_without_a_baseline_everything_must_pass(self):
        folder = self.prepare()
        done = self.call("ab")
        self.assertEqual(done.status, 1)
        self.assertIn("missed: 2 of 3 planned trials passed (at least 100 %)", done.stdout)
        self.assertTrue((folder / "review.html").exists())
        self.assertFalse((folder / "decision.yaml").exists(), "there is nothing to decide")
        self.assertEqual(self.call("abc").status, 0)

    def test_without_a_baseline_the_minimum_is_that_of_the_policy(self):
        self.prepare(minimum_pass_rate=0.6)
        self.assertEqual(self.call("ab").status, 0)
        self.assertEqual(self.call("a").status, 1)

    def test_trials_without_evidence_do_not_lift_the_rate(self):
        self.prepare(minimum_pass_rate=0.7)
        self.assertEqual(self.call("ab", "c").status, 1, "2 of 3 planned, though 2 of 2 measured")

    def test_a_selection_is_judged_by_what_was_selected(self):
        self.prepare()
        self.assertEqual(self.call("a", options=("--id", "a")).status, 0)

    def test_the_first_ten_failures_are_shown_and_the_rest_counted(self):
        self.prepare([{"id": f"c{number:02d}", "input": f"c{number:02d}", "expected": "never"} for number in range(14)])
        done = self.call("")
        self.assertEqual(done.stdout.count("\n  fail  c"), 10)
        self.assertIn("and 4 more", done.stdout)

    def test_holdout_cases_are_only_counted(self):
        secret = {"id": "CANARY", "input": "CANARY", "expected": "CANARY!", "split": "holdout"}
        self.prepare([*[{**case, "split": "development"} for case in CASES], secret])
        done = self.call("abc")
        self.assertEqual(done.status, 1)
        self.assertNotIn("CANARY", done.stdout + done.stderr + (self.folder / "improvements/daily/review.html").read_text())
        self.assertIn("1 trial of holdout cases", done.stdout)

    def test_json_is_one_document(self):
        self.prepare()
        self.baseline("ab")
        answer = json.loads(self.call("abc", options=("--json",)).stdout)
        self.assertEqual((answer["ok"], answer["recommendation"], answer["run"]["counts"]), (True, "eligible", {"completed": 3}))

    def test_the_baseline_is_never_run_over(self):
        self.prepare()
        self.baseline("ab")
        done = self.call("abc", options=("--stage", "baseline"))
        self.assertEqual(done.status, 2)


if __name__ == "__main__":
    unittest.main()

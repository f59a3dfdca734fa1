"""Decision and promotion: a person decides about exactly this evidence, and the fixed cases stay."""

import json
import unittest

import support
from support import make_improvement, read_lines, run_cli, write
from test_policy_recommendation import CHECK, answers, cases

DECIDE = ("decide", "change", "--by", "Ada", "--because", "reads well")


class Decide(support.TemporaryFolder):
    """decision.yaml is about the evidence that was reviewed, or it does not count."""

    def setUp(self):
        super().setUp()
        listed = cases("a", "b", "flaky") + cases("secret", split="holdout")
        before = {"a": ["no"] * 3, "b": ["yes"] * 3, "flaky": ["no"] * 3, "secret": ["no"] * 3}
        after = {"a": ["yes"] * 3, "b": ["yes"] * 3, "flaky": ["yes", "no", "yes"], "secret": ["yes"] * 3}
        for case in listed[:3]:
            case["split"] = "development"
        self.place = make_improvement("change", listed, [CHECK], baseline=answers(**before), candidate=answers(**after))

    def review(self):
        self.assertEqual(run_cli("review", "change").status, 0)

    def test_nothing_is_decided_before_a_review(self):
        done = run_cli(*DECIDE, "--status", "accepted")
        self.assertEqual(done.status, 5)
        self.assertIn("kaizen review", done.stderr)

    def test_a_comparison_that_names_no_stages_is_told(self):
        self.review()
        self.assertEqual(run_cli(*DECIDE, "--status", "accepted").status, 0)
        for document in ({}, {"baseline": 1, "candidate": 2}, {"baseline": {}, "candidate": {"stage": ["x"]}}):
            write("improvements/change/comparison.json", json.dumps(document))
            for command in ((*DECIDE, "--status", "accepted"), ("promote", "change")):
                with self.subTest(document=document, command=command[0]):
                    done = run_cli(*command)
                    self.assertEqual(done.status, 2, done.stderr)
                    self.assertIn("comparison.json: does not say which stages were compared", done.stderr)

    def test_review_leaves_a_pending_decision_that_blocks(self):
        self.review()
        done = run_cli("promote", "change")
        self.assertEqual(done.status, 5)
        self.assertIn("pending", done.stderr)
        self.assertFalse((self.folder / "datasets").exists())

    def test_accepted_cases_become_regression_tests_once(self):
        self.review()
        self.assertEqual(run_cli(*DECIDE, "--status", "accepted").status, 0)
        done = run_cli("promote", "change", "--json")
        self.assertEqual(done.status, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual((answer["added"], answer["left_out_holdout"], answer["left_out_unstable"]), (["a"], 1, 1))
        kept = read_lines("datasets/regression.jsonl")
        self.assertEqual(
            [(case["id"], case["split"], case["expected"], case["source"]["kind"]) for case in kept],
            [("a", "regression", "yes", "regression")],
        )
        self.assertEqual(kept[0]["evaluators"][0]["id"], "right")
        before = (self.folder / "datasets/regression.jsonl").read_bytes()
        self.assertEqual(json.loads(run_cli("promote", "change", "--json").stdout)["already_there"], 1)
        self.assertEqual((self.folder / "datasets/regression.jsonl").read_bytes(), before)

    def test_the_next_improvement_runs_the_kept_cases(self):
        self.test_accepted_cases_become_regression_tests_once()
        self.assertEqual(run_cli("init", "next").status, 0)
        self.assertIn("../../datasets/regression.jsonl", (self.folder / "improvements/next/evaluation.json").read_text())
        done = run_cli("validate", "next")
        self.assertEqual(done.status, 0, done.stdout + done.stderr)

    def test_a_decision_about_other_evidence_is_stale(self):
        self.review()
        run_cli(*DECIDE, "--status", "accepted")
        text = (self.place / "candidate.jsonl").read_text()
        write(self.place / "candidate.jsonl", text.replace('"no"', '"yes"', 1))
        run_cli("evaluate", "change")
        done = run_cli("promote", "change")
        self.assertEqual(done.status, 5)
        self.assertIn("other evidence", done.stderr)
        self.assertEqual(run_cli(*DECIDE, "--status", "accepted").status, 5, "the review is older than the evidence")

    def test_review_never_touches_a_decision_that_was_made(self):
        self.review()
        run_cli(*DECIDE, "--status", "rejected")
        before = (self.place / "decision.yaml").read_bytes()
        self.review()
        self.assertEqual((self.place / "decision.yaml").read_bytes(), before)
        done = run_cli("promote", "change")
        self.assertEqual(done.status, 5)
        self.assertIn("rejected", done.stderr)

    def test_conditions_are_kept(self):
        self.review()
        done = run_cli(
            *DECIDE, "--status", "accepted_with_conditions", "--condition", "watch: the 'refund' # rate", "--condition", "re-check in May"
        )
        self.assertEqual(done.status, 0, done.stderr)
        text = (self.place / "decision.yaml").read_text()
        self.assertIn("re-check in May", text)
        self.assertEqual(run_cli("promote", "change").status, 0)

    def test_a_decision_from_inside_a_coding_agent_says_so(self):
        self.review()
        run_cli(*DECIDE, "--status", "accepted", env={"CLAUDECODE": "1"})
        self.assertIn("claude-code", (self.place / "decision.yaml").read_text())
        self.review()
        self.assertIn("claude-code", (self.place / "review.html").read_text())

    def test_an_id_that_means_another_case_is_refused_and_nothing_is_added(self):
        self.review()
        run_cli(*DECIDE, "--status", "accepted")
        write(self.folder / "datasets/regression.jsonl", '{"id": "a", "input": "another question"}\n')
        before = (self.folder / "datasets/regression.jsonl").read_bytes()
        done = run_cli("promote", "change")
        self.assertEqual(done.status, 5)
        self.assertIn("another input", done.stderr)
        self.assertEqual((self.folder / "datasets/regression.jsonl").read_bytes(), before)

    def test_who_and_why_are_required(self):
        self.review()
        self.assertEqual(run_cli("decide", "change", "--status", "accepted", "--by", " ", "--because", "x").status, 2)
        self.assertEqual(run_cli("decide", "change", "--status", "accepted", "--by", "Ada").status, 2)
        self.assertEqual(run_cli(*DECIDE, "--status", "yes").status, 2)


class Holdout(support.TemporaryFolder):
    """What is made to be read shows of the holdout only counts and rates (formats.md 1.7)."""

    CANARY = "CANARY-7f3a"

    def setUp(self):
        super().setUp()
        listed = [
            *cases("open"),
            {
                "id": f"{self.CANARY}-id",
                "input": f"{self.CANARY}-input",
                "expected": f"{self.CANARY}-expected",
                "split": "holdout",
                "tags": [f"{self.CANARY}-tag"],
            },
        ]
        listed[0]["split"] = "development"
        holdout = {"case_id": f"{self.CANARY}-id"}
        self.place = make_improvement(
            "change",
            listed,
            [CHECK],
            baseline=[{"case_id": "open", "output": "no"}, {**holdout, "output": f"{self.CANARY}-expected"}],
            candidate=[{"case_id": "open", "output": "yes"}, {**holdout, "output": f"{self.CANARY}-output"}],
        )

    def test_nothing_printed_or_made_to_be_read_holds_it(self):
        printed = ""
        for argv in (
            ("validate", "change"),
            ("validate", "change", "--json"),
            ("evaluate", "change"),
            ("review", "change"),
            ("review", "change", "--json"),
            ("gate", "change", "--junit", "report.xml", "--summary", "summary.md"),
            ("gate", "change", "--json"),
            ("decide", "change", "--status", "accepted", "--by", "Ada", "--because", "x"),
            ("promote", "change"),
        ):
            done = run_cli(*argv)
            printed += done.stdout + done.stderr
        for name in (
            "improvements/change/review.html",
            "improvements/change/review.md",
            "report.xml",
            "summary.md",
            "improvements/change/decision.yaml",
        ):
            printed += (self.folder / name).read_text()
        self.assertNotIn(self.CANARY, printed)
        self.assertIn("holdout", printed)
        self.assertIn('"regressed": 1', run_cli("gate", "change", "--json").stdout, "it still counts")

    def test_opening_it_leaves_a_mark_that_every_later_page_shows(self):
        self.assertEqual(run_cli("review", "change", "--open-holdout").status, 0)
        self.assertIn(self.CANARY, (self.place / "review.html").read_text())
        self.assertEqual([line["event"] for line in read_lines(self.place / "optimizer-log.jsonl")], ["holdout_opened"])
        run_cli("review", "change")
        page = (self.place / "review.html").read_text()
        self.assertNotIn(self.CANARY, page)
        self.assertRegex(page, r"(?i)holdout[^<]{0,60}opened (once|1 time)")


if __name__ == "__main__":
    unittest.main()

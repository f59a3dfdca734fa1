"""Verdicts: the judge block on results written by hand, and the block itself, with its places."""

import json
import unittest

import support
from support import kaizen, make_improvement, run_cli, write

BLOCK = {
    "name": "refund-policy-judge", "version": "0.1.0",
    "criteria": [
        {"id": "policy_compliance", "weight": 3, "evaluators": ["policy_*"]},
        {"id": "evidence_quality", "weight": 2, "evaluators": ["evidence"]},
        {"id": "tone", "weight": 1, "evaluators": ["tone"]},
    ],
    "hard_rules": [{"id": "amount_ceiling", "evaluator": "amount_le_500", "message": "no more than 500"}],
    "verdicts": [{"verdict": "approve", "minimum_score": 0.8}, {"verdict": "escalate", "minimum_score": 0.5}, {"verdict": "reject"}],
    "minimum_confidence": 0.6, "actions": {"evidence_quality": "request_missing_evidence", "tone": "rewrite"},
}  # fmt: skip
LETTERS = {"p": "pass", "f": "fail", "e": "error", "-": "not_applicable"}


def verdict_of(block=None, **letters):
    """The verdict on a trial whose evaluators came out as the letters say; all others passed."""
    said = {"policy_a": "p", "policy_b": "p", "evidence": "p", "tone": "p", "amount_le_500": "p", **letters}
    entries = [{"id": name, "status": LETTERS[letter], "reason": f"{name} {letter}"} for name, letter in said.items() if letter]
    return kaizen.Verdicts({**BLOCK, **(block or {})}).verdict({"case_id": "c1", "trial": 1, "evaluations": entries})


class Mapping(support.StrictTestCase):
    """The rules of the block."""

    def test_keys_come_in_the_order_of_the_format(self):
        keys = list(verdict_of())
        self.assertEqual(keys[:8], ["case_id", "judge", "verdict", "score", "confidence", "criteria", "critical_violations", "recommended_action"])

    def test_the_first_verdict_whose_minimum_the_score_reaches_is_taken(self):
        for letters, score, verdict in (
            ({}, 1.0, "approve"),
            ({"tone": "f"}, 5 / 6, "approve"),
            ({"evidence": "f"}, 4 / 6, "escalate"),
            ({"policy_a": "f"}, 0.5, "escalate"),
            ({"policy_a": "f", "tone": "f"}, 2 / 6, "reject"),
        ):
            with self.subTest(letters):
                found = verdict_of(**letters)
                self.assertEqual((found["score"], found["verdict"]), (score, verdict))

    def test_a_score_on_the_minimum_reaches_it_exactly(self):
        weights = [{"id": name, "weight": weight, "evaluators": [name]} for name, weight in (("evidence", 0.1), ("tone", 0.2), ("policy_a", 0.7))]
        block = {"criteria": weights, "actions": {}, "verdicts": [{"verdict": "yes", "minimum_score": 0.3}, {"verdict": "no"}]}
        self.assertEqual(verdict_of(block, policy_a="f")["verdict"], "yes")  # 0.1 + 0.2 of 1; in floats 0.30000000000000004 of 0.9999…

    def test_one_violated_hard_rule_rejects_whatever_the_score(self):
        found = verdict_of(amount_le_500="f")
        self.assertEqual((found["verdict"], found["score"]), ("reject", 1.0))
        self.assertEqual([rule["id"] for rule in found["critical_violations"]], ["amount_ceiling"])
        self.assertEqual(found["critical_violations"][0]["message"], "no more than 500")

    def test_a_hard_rule_that_could_not_be_checked_is_insufficient_evidence(self):
        for letter in ("e", ""):
            found = verdict_of(amount_le_500=letter)
            self.assertEqual((found["verdict"], found["because"]), ("insufficient_evidence", "hard_rule_unchecked"))
            self.assertEqual(found["critical_violations"], [])
            self.assertEqual(found["unchecked_rules"][0]["id"], "amount_ceiling")

    def test_a_violated_rule_outweighs_an_unchecked_one(self):
        rules = [*BLOCK["hard_rules"], {"id": "other", "evaluator": "tone", "message": "be kind"}]
        self.assertEqual(verdict_of({"hard_rules": rules}, amount_le_500="e", tone="f")["verdict"], "reject")

    def test_a_hard_rule_that_does_not_apply_is_no_violation(self):
        self.assertEqual(verdict_of(amount_le_500="-")["verdict"], "approve")

    def test_confidence_is_the_measured_share_of_the_weight(self):
        found = verdict_of(evidence="e")
        self.assertEqual((found["confidence"], found["score"], found["verdict"]), (4 / 6, 1.0, "approve"))
        found = verdict_of(policy_a="e")
        self.assertEqual((found["confidence"], found["verdict"], found["because"]), (0.5, "insufficient_evidence", "low_confidence"))

    def test_what_does_not_apply_is_in_no_share(self):
        found = verdict_of(evidence="-", tone="f")
        self.assertEqual((found["confidence"], found["score"]), (1.0, 0.75))

    def test_a_criterion_is_the_three_valued_and_of_its_evaluators(self):
        for letters, status in (("pp", "pass"), ("pf", "fail"), ("ef", "fail"), ("pe", "error"), ("p-", "pass"), ("--", "not_applicable")):
            found = verdict_of(policy_a=letters[0], policy_b=letters[1])
            self.assertEqual(found["criteria"][0]["status"], status, letters)

    def test_nothing_measured_is_insufficient_evidence_without_a_score(self):
        found = verdict_of(policy_a="e", policy_b="e", evidence="e", tone="e", amount_le_500="p")
        self.assertEqual((found["verdict"], found["score"], found["confidence"]), ("insufficient_evidence", None, 0.0))
        found = verdict_of(policy_a="-", policy_b="-", evidence="-", tone="-")
        self.assertEqual((found["verdict"], found["score"], found["confidence"]), ("insufficient_evidence", None, None))

    def test_the_action_is_that_of_the_failed_criterion_of_greatest_weight(self):
        self.assertEqual(verdict_of(evidence="f", tone="f")["recommended_action"], "request_missing_evidence")
        self.assertEqual(verdict_of(tone="f")["recommended_action"], "rewrite")
        self.assertIsNone(verdict_of(policy_a="f", tone="f")["recommended_action"])  # policy_compliance is the heaviest and has no action
        self.assertIsNone(verdict_of()["recommended_action"])

    def test_only_the_star_is_special_in_a_name(self):
        self.assertIsNone(kaizen.judge_pattern("a.c[1]").fullmatch("abc1"))
        self.assertIsNotNone(kaizen.judge_pattern("a.*[1]").fullmatch("a.\n[1]"))


class Block(support.TemporaryFolder):
    """What can be wrong with it."""

    def told(self, block, **blocks):
        names = ["policy_a", "evidence", "tone", "amount_le_500"]
        make_improvement("change", [{"id": "c1", "input": "?"}], {"evaluators": [{"id": name, "type": "length", "min": 1} for name in names], "judge": block, **blocks})
        return run_cli("validate", "change").stdout

    def test_the_block_of_the_format_is_valid(self):
        self.assertIn("is valid", self.told(BLOCK))

    def test_each_breach_names_its_place(self):
        for change, wanted in (
            ({"criterion": []}, "#/judge/criterion: unknown key 'criterion' [did you mean 'criteria'?]"),
            ({"criteria": []}, "#/judge/criteria: is empty"),
            ({"criteria": [{"id": "a", "evaluators": ["policy_a"], "weight": 0}]}, "#/judge/criteria/0/weight: must be a number above 0"),
            ({"criteria": [{"id": "a", "evaluators": []}]}, "#/judge/criteria/0/evaluators: is empty"),
            ({"criteria": [{"id": "a", "evaluators": ["polcy_a"]}]}, "#/judge/criteria/0/evaluators/0: no evaluator is called 'polcy_a' [did you mean 'policy_a'?]"),
            ({"criteria": [{"id": "a", "evaluators": ["tone"]}] * 2}, "#/judge/criteria/1/id: 'a' comes twice"),
            ({"criteria": ["tone"]}, "#/judge/criteria/0: must be an object"),
            ({"hard_rules": [{"id": "r", "evaluator": "tone"}]}, "#/judge/hard_rules/0: has no 'message'"),
            ({"hard_rules": [{"id": "r", "evaluator": "nobody", "message": "m"}]}, "#/judge/hard_rules/0/evaluator: no evaluator is called 'nobody'"),
            ({"verdicts": [{"verdict": "a", "minimum_score": 0.5}]}, "#/judge/verdicts/0/minimum_score: the last verdict has a minimum"),
            ({"verdicts": [{"verdict": "a"}, {"verdict": "b"}]}, "#/judge/verdicts/0: has no 'minimum_score'"),
            ({"verdicts": [{"verdict": "a", "minimum_score": 0.5}, {"verdict": "b", "minimum_score": 0.7}, {"verdict": "c"}]}, "#/judge/verdicts/1/minimum_score: is not below"),
            ({"verdicts": [{"verdict": "insufficient_evidence"}]}, "#/judge/verdicts/0/verdict: 'insufficient_evidence' is what Kaizen says"),
            ({"minimum_confidence": 2}, "#/judge/minimum_confidence: must be a number from 0 to 1, not 2"),
            ({"actions": {"tonne": "x"}}, "#/judge/actions/tonne: no criterion is called 'tonne' [did you mean 'tone'?]"),
            ({"actions": {"tone": 1}}, "#/judge/actions/tone: must be a text"),
            ({"name": None}, "#/judge/name: must be a text"),
        ):
            with self.subTest(wanted):
                told = self.told({**BLOCK, **({"actions": {}} if "criteria" in change else {}), **change})
                self.assertIn(wanted, told)
                self.assertRegex(told, r"evaluation\.json:\d+#")

    def test_the_agreement_block_is_checked(self):
        self.assertIn("#/agreement/required: must be true or false", self.told(BLOCK, agreement={"required": "yes"}))
        self.assertIn("#/agreement/weights: must be one of nominal, linear or quadratic, not 'quadratc' [did you mean 'quadratic'?]", self.told(BLOCK, agreement={"weights": "quadratc"}))
        self.assertIn("unknown key 'require'", self.told(BLOCK, agreement={"require": True}))


class Command(support.TemporaryFolder):
    """`kaizen judge`."""

    def make(self, *answers, split=None, **parts):
        """Cases c0, c1 … each with the outputs of its trials; an answer holds the words for which evaluators look."""
        cases = [{"id": f"c{number}", "input": f"input {number}", **({"split": split(number)} if split else {})} for number in range(len(answers))]
        evaluators = [{"id": name, "type": "contains", "values": [word]} for name, word in (("policy_a", "pol"), ("evidence", "evi"), ("tone", "ton"))]
        evaluators.append({"id": "amount_le_500", "type": "contains", "values": ["much"], "negate": True})
        trials = [{"case_id": f"c{number}", "trial": trial, "output": output} for trial in range(1, 1 + max(map(len, answers))) for number, outputs in enumerate(answers) for output in outputs[trial - 1 : trial]]
        make_improvement("change", cases, {"evaluators": evaluators, "judge": BLOCK}, candidate=trials, **parts)
        run_cli("evaluate", "change", "--progress", "none")

    def ask(self, *argv, status=0):
        done = run_cli("judge", "change", "--json", *argv)
        self.assertEqual(done.status, status, done.stderr)
        return json.loads(done.stdout)

    def test_one_case_is_judged_by_its_first_trial_and_others_are_told(self):
        self.make(["pol evi ton", "pol evi ton", "much"])
        found = self.ask("--case-id", "c0")
        self.assertEqual((found["verdict"], found["trial"], found["stage"]), ("approve", 1, "candidate"))
        self.assertEqual(found["other_trials"], [{"trial": 3, "verdict": "reject"}])
        keys = [key for key in found if key not in ("ok", "code", "reason", "message", "next")]
        self.assertEqual(keys[:8], ["case_id", "judge", "verdict", "score", "confidence", "criteria", "critical_violations", "recommended_action"])
        text = run_cli("judge", "change", "--case-id", "c0").stdout
        order = [text.index(word) for word in ("c0", "judge ", "verdict ", "score ", "confidence ", "criteria", "action ", "1 of 3 trials comes out otherwise: trial 3 (reject)")]
        self.assertEqual(order, sorted(order))

    def test_another_trial_can_be_named_and_must_be_there(self):
        self.make(["pol evi ton", "much"])
        found = self.ask("--case-id", "c0", "--trial", "2")
        self.assertEqual((found["verdict"], found["critical_violations"][0]["id"]), ("reject", "amount_ceiling"))
        self.assertIn("there is trial 1 and trial 2", self.ask("--case-id", "c0", "--trial", "3", status=2)["message"])

    def test_a_trial_that_broke_is_insufficient_evidence(self):
        self.make(["x"])
        write("improvements/change/candidate.jsonl", json.dumps({"case_id": "c0", "trial": 1, "status": "timeout", "error": {"class": "timeout", "type": "t", "message": "slow"}}) + "\n")
        run_cli("evaluate", "change", "--progress", "none")
        found = self.ask("--case-id", "c0")
        self.assertEqual((found["verdict"], found["confidence"], found["score"]), ("insufficient_evidence", 0.0, None))

    def test_all_prints_one_document_with_every_trial(self):
        self.make(*[["pol evi ton", "much"]] * 300)
        found = self.ask("--all")
        self.assertEqual(found["counts"], {"approve": 300, "escalate": 0, "reject": 300, "insufficient_evidence": 0})
        self.assertEqual(len(found["verdicts"]), 600)
        self.assertEqual(found["verdicts"][0]["case_id"], "c0")
        self.assertEqual(len(self.ask("--all", "--trial", "2")["verdicts"]), 300)
        self.assertEqual(self.ask("--all", "--trial", "9")["verdicts"], [])
        self.assertIn("c299 trial 2: reject", run_cli("judge", "change", "--all").stdout)

    def test_the_holdout_is_counted_and_shown_only_when_opened(self):
        self.make(["pol evi ton"], ["much"], split=lambda number: "holdout" if number else "development")
        text = run_cli("judge", "change", "--all").stdout + json.dumps(self.ask("--all"))
        self.assertNotIn("c1", text)
        self.assertIn("1 trial of holdout cases: 1 reject", text)
        self.assertEqual(self.ask("--case-id", "c1", status=5)["reason"], "holdout")
        self.assertNotIn("c1", self.ask("--case-id", "c2", status=2)["next"])
        self.assertEqual(self.ask("--case-id", "c1", "--open-holdout")["verdict"], "reject")
        self.assertEqual(len(self.ask("--all", "--open-holdout")["verdicts"]), 2)
        log = [json.loads(line) for line in (self.folder / "improvements/change/optimizer-log.jsonl").read_text().splitlines()]
        self.assertEqual([entry["command"] for entry in log], ["judge", "judge"])

    def test_stale_results_are_told_and_foreign_ones_refused(self):
        self.make(["pol evi ton"])
        with open("improvements/change/candidate.jsonl", "a", encoding="utf-8") as file:
            file.write("\n" + json.dumps({"case_id": "c0", "trial": 2, "status": "completed", "output": "x"}) + "\n")
        self.assertIn("stale_results", self.ask("--case-id", "c0")["notes"][0])
        with open("improvements/change/candidate.evaluated.jsonl", "a", encoding="utf-8") as file:
            file.write("{}\n")
        self.assertEqual(self.ask("--case-id", "c0", status=5)["reason"], "invalid_evidence")

    def test_what_is_missing_is_said(self):
        self.make(["pol"])
        for argv, status, reason in (
            ([], 2, "usage"),
            (["--all", "--case-id", "c0"], 2, "usage"),
            (["--case-id", "c0", "--trial", "0"], 2, "usage"),
            (["--case-id", "c0", "--stage", "other"], 2, "missing_stage"),
            (["--case-id", "c9"], 2, "unknown_case"),
        ):
            self.assertEqual(self.ask(*argv, status=status)["reason"], reason, argv)
        (self.folder / "improvements/change/candidate.evaluated.jsonl").unlink()
        (self.folder / "improvements/change/candidate.evaluated.meta.json").unlink()
        self.assertEqual(self.ask("--all", status=2)["reason"], "missing_results")
        make_improvement("plain", [{"id": "c0", "input": "?"}], [{"id": "e", "type": "length", "min": 1}])
        self.assertEqual(run_cli("judge", "plain", "--all").status, 2)

    def test_the_review_shows_verdicts_where_the_block_exists(self):
        self.make(["pol evi ton"], ["much"], split=lambda number: "holdout" if number else "development", baseline=[{"case_id": f"c{n}", "output": "much"} for n in range(2)])
        run_cli("evaluate", "change", "--progress", "none")
        run_cli("review", "change")
        page = (self.folder / "improvements/change/review.html").read_text(encoding="utf-8")
        self.assertIn("refund-policy-judge 0.1.0, on the first trial of each case", page)
        self.assertIn("reject \u2192 approve", page)
        summary = (self.folder / "improvements/change/review.md").read_text(encoding="utf-8")
        self.assertIn("on the candidate: 1 approve, 1 reject", summary.replace("\\", ""))

    def test_hostile_ids_are_made_visible(self):
        make_improvement("change", [{"id": "\u202ec0", "input": "?"}], {"evaluators": [{"id": "e", "type": "contains", "values": ["x"]}], "judge": {"name": "\u202ename", "criteria": [{"id": "\u202ea", "evaluators": ["e"]}], "verdicts": [{"verdict": "ok"}]}}, candidate=[{"case_id": "\u202ec0", "output": "\u202e"}])
        run_cli("evaluate", "change", "--progress", "none")
        for argv in (["--all"], ["--case-id", "\u202ec0"]):
            self.assertNotIn("\u202e", run_cli("judge", "change", *argv).stdout)


if __name__ == "__main__":
    unittest.main()

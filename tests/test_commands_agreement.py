"""`kaizen agreement`: a judge among experts whose kappas are known."""

import json
import shutil
import unittest
from types import SimpleNamespace
from unittest import mock

import support
from labelling import RATERS, case_ids, designed, drawn, label_lines, make_judged
from support import DATA, kaizen, read_json, read_lines, run_cli, write, write_lines

FIELD_CASE = DATA / "field_cases" / "34-kappa-with-one-label"


BLOCK = {
    "name": "judge", "version": "1", "criteria": [{"id": "a", "weight": 2, "evaluators": ["tone"]}, {"id": "b", "weight": 1, "evaluators": ["kind"]}],
    "verdicts": [{"verdict": "approve", "minimum_score": 0.9}, {"verdict": "escalate", "minimum_score": 0.5}, {"verdict": "reject"}],
}  # fmt: skip


class Asking(support.TemporaryFolder):
    """An improvement, evaluated."""

    DRAWS = 1000

    def setUp(self):
        super().setUp()
        patch = mock.patch.object(kaizen, "RESAMPLES", self.DRAWS)
        patch.start()
        self.addCleanup(patch.stop)

    def evaluate(self):
        done = run_cli("evaluate", "change", "--progress", "none")
        self.assertEqual(done.status, 0, done.stderr)

    def ask(self, *argv, status=0):
        done = run_cli("agreement", "change", "--json", *argv)
        self.assertEqual(done.status, status, done.stderr)
        return json.loads(done.stdout)

    def measured(self, rows, *argv, labels=None, **parts):
        make_judged(rows, labels=label_lines(rows, of="tone") if labels is None else labels, **parts)
        self.evaluate()
        return self.ask("--of", "tone", *argv)


class Known(Asking):
    """1,250 labels by five raters whose kappas are known exactly."""

    def test_every_kappa_is_the_known_one(self):
        found = self.measured(designed())
        self.assertEqual(found["coverage"]["labels"], 1250)
        self.assertEqual(len(found["expert_pairs"]), 10)
        for pair in found["expert_pairs"]:
            self.assertAlmostEqual(pair["kappa"], 0.36, 9)
            self.assertEqual(pair["n"], 250)
            self.assertAlmostEqual(pair["agreement"], 0.68, 9)
            self.assertTrue(pair["interval"][0] < 0.36 < pair["interval"][1])
        for entry in found["judge_vs_experts"]:
            self.assertAlmostEqual(entry["kappa"], 0.36, 9)
        self.assertEqual([entry["expert"] for entry in found["judge_vs_experts"]], RATERS)
        self.assertAlmostEqual(found["band"]["difference"], 0.0, 9)

    def test_a_worse_judge_is_below_the_experts_though_it_agrees_with_the_consensus(self):
        found = self.measured(designed(judge_levels=(0, 1)))
        self.assertAlmostEqual(found["band"]["judge_mean"], 0.12, 9)
        self.assertAlmostEqual(found["band"]["expert_mean"], 0.36, 9)
        self.assertEqual(found["standing"], "below_human_level")
        self.assertGreater(found["judge_vs_consensus"]["kappa"], found["band"]["judge_mean"])
        self.assertIn("agrees less with the experts than they agree with each other", found["message"])

    def test_an_equal_judge_needs_enough_cases_to_be_at_human_level(self):
        self.assertEqual(self.measured(designed(2))["standing"], "undecided")
        shutil.rmtree("improvements")
        self.assertEqual(self.measured(designed(40))["standing"], "at_human_level")

    def test_one_label_of_a_sixth_rater_does_not_move_the_band(self):
        rows = designed()
        more = [{"case_id": "c00000", "rater": "zoe", "of": "tone", "label": "pass"}]
        found = self.measured(rows, labels=[*label_lines(rows, of="tone"), *more])
        self.assertAlmostEqual(found["band"]["expert_mean"], 0.36, 9)

    def test_the_order_of_lines_changes_nothing(self):
        rows = designed(1)
        first = self.measured(rows)
        write_lines("improvements/change/labels.jsonl", reversed(label_lines(rows, of="tone")))
        self.assertEqual(self.ask("--of", "tone"), first)

    def test_drawn_raters_lie_where_their_accuracies_put_them(self):
        accuracies = (0.85, 0.95, 0.9, 0.9, 0.85, 0.8)
        found = self.measured(drawn(400, accuracies, 11))
        for pair in found["expert_pairs"]:
            a, b = (accuracies[1 + RATERS.index(pair[side])] for side in ("a", "b"))
            self.assertLess(abs(pair["kappa"] - (2 * a - 1) * (2 * b - 1)), 0.12)


class Shown(Asking):
    """What a person reads."""

    def test_everything_of_the_issue_is_printed(self):
        rows = drawn(60, (0.85, 0.9, 0.9, 0.9), 5)
        labels = [{"case_id": "c00003", "rater": "ada", "of": "tone", "abstain": True}, *label_lines(rows, RATERS[:3], of="tone")[1:]]
        labels = [each for each in labels if (each["case_id"], each["rater"]) != ("c00003", "ada") or "abstain" in each]
        make_judged(rows, labels=labels)
        self.evaluate()
        text = run_cli("agreement", "change", "--of", "tone").stdout
        for wanted in (
            "judge / consensus", "judge / ada", "ada / bo", "bo / cleo", "agreement", "n = 5", "left out: judge", "Krippendorff",
            "with a consensus", "found", "right", "corrected for its measured error (Rogan-Gladen)", "abstained: c00003", "written to",
        ):  # fmt: skip
            self.assertIn(wanted, text)

    def test_contested_cases_are_listed_with_what_was_said(self):
        rows = [("pass", ["pass", "fail"]), ("pass", ["pass", "pass"]), ("fail", ["fail", None])]
        found = self.measured(rows)
        self.assertEqual(found["contested"], [{"case_id": "c00000", "labels": {"ada": "pass", "bo": "fail"}}])
        self.assertEqual({key: found["coverage"][key] for key in ("consensus", "contested", "uncovered", "used")}, {"consensus": 1, "contested": 1, "uncovered": 1, "used": 1})
        self.assertIsNotNone(found["krippendorff"])

    def test_a_judge_without_a_word_abstains_and_is_listed_with_the_reason(self):
        rows = [(None, ["pass", "pass"]), ("pass", ["pass", "pass"])]
        found = self.measured(rows)
        self.assertEqual(found["coverage"]["judge_abstained"], 1)
        self.assertIn("status error", found["abstained"][0]["judge"])
        self.assertEqual(found["judge_vs_consensus"]["n"], 1)

    def test_the_holdout_is_counted_and_not_named(self):
        rows = [("pass", ["pass", "fail"]), (None, ["pass", "pass"]), ("pass", ["fail", "pass"])]
        make_judged(rows, labels=label_lines(rows, of="tone"), case_fields=lambda number: {"split": "holdout" if number < 2 else "development"})
        self.evaluate()
        text = json.dumps(self.ask("--of", "tone")) + run_cli("agreement", "change", "--of", "tone").stdout
        text += json.dumps(read_json("improvements/change/agreement.json"))
        self.assertNotIn("c00000", text)
        self.assertNotIn("c00001", text)
        self.assertIn("c00002 and 1 holdout case", text)

    def test_the_corrected_rate_is_that_of_rogan_and_gladen(self):
        # 100 cases that experts pass, of which the judge passes 90; 100 that they fail, of which it fails 80. Then 110 of 200 passed:
        # (0.55 + 0.8 - 1) / (0.9 + 0.8 - 1) = 0.5, which is what the experts say.
        rows = [("pass", ["pass"] * 2)] * 90 + [("fail", ["pass"] * 2)] * 10 + [("fail", ["fail"] * 2)] * 80 + [("pass", ["fail"] * 2)] * 20
        rate = self.measured(rows)["rates"][0]
        self.assertAlmostEqual(rate["rate"], 0.55, 9)
        self.assertAlmostEqual(rate["corrected"], 0.5, 9)
        self.assertTrue(rate["corrected_interval"][0] < 0.5 < rate["corrected_interval"][1])

    def test_a_judge_no_better_than_chance_leaves_no_corrected_rate(self):
        rows = [("pass", ["pass"] * 2)] * 10 + [("pass", ["fail"] * 2)] * 10
        rate = self.measured(rows)["rates"][0]
        self.assertEqual((rate["corrected"], rate["reason"]), (None, "uninformative_judge"))


class FieldCases(Asking):
    """Everybody says yes."""

    def judged(self, name):
        said = {"approve": "pass", "reject": "fail"}
        rows = [(said[each["judge"]], [said[each["expert"]]]) for each in read_lines(FIELD_CASE / name)]
        return self.measured([(judge, [expert, expert]) for judge, (expert,) in rows])

    def test_one_label_has_agreement_and_no_kappa(self):
        found = self.judged("one_label.jsonl")["judge_vs_consensus"]
        self.assertEqual((found["agreement"], found["kappa"], found["reason"]), (1.0, None, "no_expected_disagreement"))

    def test_a_constant_judge_of_a_varying_expert_has_kappa_0(self):
        found = self.judged("base_rate.jsonl")["judge_vs_consensus"]
        self.assertEqual((found["agreement"], found["kappa"], found["reason"]), (0.9, 0.0, None))


class Verdict(Asking):
    """Labels about the verdict of the judge block, which have an order."""

    def verdicts(self, **blocks):
        words = {"approve": "pass kind", "escalate": "pass", "reject": "no"}
        rows = drawn(60, (0.9, 0.9, 0.9, 0.9), 7, tuple(words))
        make_judged([(words[judge], labels) for judge, labels in rows], labels=label_lines(rows), evaluators=[{"id": "kind", "type": "contains", "values": ["kind"]}], judge=BLOCK, **blocks)
        self.evaluate()
        return self.ask()

    def test_all_three_weights_are_printed_for_ordered_verdicts(self):
        found = self.verdicts()
        self.assertEqual(found["table"]["labels"], ["approve", "escalate", "reject"])
        self.assertEqual(sorted(found["judge_vs_consensus"]["other_weights"]), ["linear", "quadratic"])
        table = found["table"]["judge_by_consensus"]
        for weights in ("linear", "quadratic"):
            self.assertAlmostEqual(found["judge_vs_consensus"]["other_weights"][weights]["kappa"], kaizen.cohen_kappa(table, weights).kappa, 8)

    def test_the_agreement_block_says_which_weights_count(self):
        found = self.verdicts(agreement={"weights": "quadratic"})
        table = found["table"]["judge_by_consensus"]
        self.assertEqual(found["weights"], "quadratic")
        self.assertAlmostEqual(found["judge_vs_consensus"]["kappa"], kaizen.cohen_kappa(table, "quadratic").kappa, 8)

    def test_the_page_says_how_the_judge_stands(self):
        self.verdicts()
        shutil.copy("improvements/change/candidate.jsonl", "improvements/change/baseline.jsonl")
        run_cli("review", "change")
        for name in ("review.html", "review.md"):
            text = (self.folder / "improvements" / "change" / name).read_text(encoding="utf-8")
            self.assertRegex(text, "agrees( less)? (with the experts|as well)")
            self.assertIn("corrected for its measured error", text)


class Required(Asking):
    """A judge that is not at human level informs and does not gate."""

    def setUp(self):
        super().setUp()
        patch = mock.patch.object(kaizen, "JUDGE", "contains")  # a judge that needs no program
        patch.start()
        self.addCleanup(patch.stop)

    def make(self, rows, required=True, labels=None, **parts):
        make_judged(rows, labels=labels, stages=("baseline", "candidate"), evaluators=[{"id": "other", "type": "length", "min": 1}], agreement={"required": required}, **parts)
        self.evaluate()

    def counts(self):
        return read_json("improvements/change/candidate.evaluated.meta.json")["counts"]

    def gate(self):
        done = run_cli("gate", "change", "--json")
        return json.loads(done.stdout)

    def test_unlabelled_it_does_not_gate_and_everybody_says_so(self):
        self.make([("fail", ["pass"] * 2)] * 3)
        self.assertEqual(self.counts(), {"pass": 3, "fail": 0, "error": 0})
        sentence = "The judge 'tone' informs but does not gate"
        self.assertIn(sentence, run_cli("evaluate", "change", "--progress", "none").stdout)
        self.assertIn(sentence, "\n".join(self.gate()["notes"]))
        self.assertIn(sentence, run_cli("reliability", "change").stdout)
        self.assertIn(sentence, run_cli("noise", "change", "--stage", "candidate").stdout)
        self.assertIn(sentence, run_cli("replay-decision", "change", "--policy", "improvements/change/evaluation.json").stdout)
        run_cli("review", "change")
        for name in ("review.html", "review.md"):
            self.assertIn("informs but does not gate", (self.folder / "improvements" / "change" / name).read_text(encoding="utf-8"))

    def test_without_the_block_it_gates(self):
        self.make([("fail", ["pass"] * 2)] * 3, required=False)
        self.assertEqual(self.counts(), {"pass": 0, "fail": 3, "error": 0})

    def test_at_human_level_it_gates_once_it_is_evaluated_again(self):
        rows = designed(40)
        self.make(rows, labels=label_lines(rows))
        self.assertEqual(self.counts()["fail"], 0)
        found = self.ask()  # the only judge is meant
        self.assertEqual((found["of"], found["standing"]), ("tone", "at_human_level"))
        reasons = self.gate()["reasons"]
        self.assertEqual(reasons[0]["code"], "stale_results")
        self.assertIn("what gates has changed since it was evaluated: the judge tone", reasons[0]["text"])
        self.evaluate()
        self.assertEqual(self.counts()["fail"], 1000)
        self.assertNotIn("informs", "\n".join(self.gate()["notes"]))

    def test_a_new_label_or_a_changed_judge_takes_the_gate_away_again(self):
        rows = designed(40)
        self.make(rows, labels=label_lines(rows))
        self.ask()
        self.evaluate()
        with open("improvements/change/labels.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"case_id": "c00000", "rater": "zoe", "label": "pass"}) + "\n")
        self.evaluate()
        self.assertEqual(self.counts()["fail"], 0)
        self.assertEqual(read_json("improvements/change/candidate.evaluated.meta.json")["not_gating"], {"tone": "outdated"})
        self.assertIn("6 pairs have not 20 cases in common", "\n".join(self.ask()["notes"]))
        self.evaluate()
        self.assertEqual(self.counts()["fail"], 1000)
        document = read_json("improvements/change/evaluation.json")
        document["evaluators"][0]["values"] = ["fail"]
        write("improvements/change/evaluation.json", json.dumps(document))
        self.evaluate()
        self.assertEqual(read_json("improvements/change/candidate.evaluated.meta.json")["not_gating"], {"tone": "outdated"})

    def test_labels_of_another_evaluator_leave_its_standing_alone(self):
        rows = designed(40)
        self.make(rows, labels=label_lines(rows))
        self.ask()
        with open("improvements/change/labels.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"case_id": "c00000", "rater": "zoe", "of": "other", "label": "pass"}) + "\n")
        self.evaluate()
        self.assertEqual(self.counts()["fail"], 1000)

    def test_a_hard_judge_does_not_reject_either_and_one_inside_a_combinator_neither(self):
        rows = [("fail", ["pass"])] * 2
        inner = {"id": "any", "type": "any", "of": [{"type": "contains", "values": ["pass"]}], "severity": "hard"}
        make_judged(rows, stages=("baseline", "candidate"), evaluators=[inner, {"id": "other", "type": "length", "min": 1}], agreement={"required": True})
        self.evaluate()
        self.assertEqual(self.counts()["pass"], 2)
        self.assertEqual(sorted(read_json("improvements/change/candidate.evaluated.meta.json")["not_gating"]), ["any", "tone"])

    def test_a_judge_that_a_case_brings_never_gates(self):
        own = [{"id": "mine", "type": "contains", "values": ["pass"]}]
        self.make([("fail", ["pass"])] * 2, case_fields=lambda number: {"evaluators": own} if number else {"split": "holdout", "evaluators": [{**own[0], "id": "secret"}]})
        self.assertEqual(self.counts()["pass"], 2)
        meta = read_json("improvements/change/candidate.evaluated.meta.json")
        self.assertEqual(meta["not_gating"], {"mine": "brought_by_a_case", "tone": "unlabelled"})


class Makers(support.TemporaryFolder):
    """A standing is that of the judge that was measured."""

    def test_another_model_behind_the_same_rubric_is_another_judge(self):
        folder = make_judged(designed(1)[:2])
        evaluation = SimpleNamespace(improvement=kaizen.Improvement(str(folder)))

        def judged_by(model, answers):
            judges = {"tone": {"judges": [{"name": "j", "model": model, "answers": answers}]}, "other": {"judges": []}}
            write(folder / "candidate.evaluated.meta.json", json.dumps({"judges": judges}))
            return kaizen.judge_makers({"judges": judges})

        record = {"judges": judged_by("a", 2)}
        self.assertEqual(record["judges"], {"tone": [{"name": "j", "model": "a"}]})
        judged_by("a", 7)
        self.assertTrue(kaizen.judges_unchanged(evaluation, record))
        judged_by("b", 2)
        self.assertFalse(kaizen.judges_unchanged(evaluation, record))
        self.assertTrue(kaizen.judges_unchanged(evaluation, {"judges": {}}))


class Bad(Asking):
    """What cannot be used is said with its place, and nothing is recorded."""

    def told(self, lines, *argv, status=2):
        rows = designed(1)
        if not (self.folder / "improvements").exists():
            make_judged(rows)
            self.evaluate()
        write("improvements/change/labels.jsonl", lines)
        done = run_cli("agreement", "change", "--of", "tone", *argv)
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        return done.stderr if status else done.stdout

    def test_broken_lines_name_their_place(self):
        good = '{"case_id": "c00001", "rater": "a", "of": "tone", "label": "pass"}\n'
        for line, wanted in (
            ('{"case_id": "c00001", "rater": "a", "of": "tone", "label": "passs"}', "'passs' is no label here"),
            ('{"case_id": "c00001", "rater": "a", "of": "tone", "label": NaN}', "NaN"),
            ('{"case_id": "c00001", "rater": "a"}', "has neither a label nor an abstention"),
            ('{"case_id": "c00001", "rater": "a", "label": "pass", "abstain": true}', "a label and an abstention"),
            ('{"case_id": "gone", "rater": "a", "label": "pass"}', "names a case that is not there"),
            ('{"case_id": "c00001", "rater": "", "label": "pass"}', "/rater"),
            ('{"case_id": "c00001", "rater": "a", "labl": "pass"}', "did you mean 'label'?"),
            ('{"case_id": ["c00001"], "rater": "a", "label": "pass"}', "/case_id"),
            ('["c00001"]', "object"),
            ('{"case_id": "c00001", "rater": "a", "of": "tone", "la', ""),
        ):
            with self.subTest(line):
                told = self.told(good + line + "\n")
                self.assertIn("labels.jsonl:2", told)
                self.assertIn(wanted, told)
        self.assertFalse((self.folder / "improvements" / "change" / "agreement.json").exists())

    def test_validate_says_the_same(self):
        self.told('{"case_id": "gone", "rater": "a", "label": "pass"}\n')
        done = run_cli("validate", "change")
        self.assertEqual(done.status, 1)
        self.assertIn("names a case that is not there", done.stdout)

    def test_a_broken_label_of_a_holdout_case_is_not_quoted(self):
        rows = designed(1)
        make_judged(rows, case_fields=lambda number: {"split": "holdout"})
        self.evaluate()
        told = self.told('{"case_id": "c00001", "rater": "a", "of": "tone", "label": "canary"}\n')
        self.assertNotIn("canary", told)

    def test_no_label_at_all_is_unlabelled_and_recorded(self):
        self.assertIn("No expert has labelled", self.told("", status=0))
        self.assertEqual(read_json("improvements/change/agreement.json")["measured"][0]["standing"], "unlabelled")

    def test_one_rater_gives_no_band(self):
        lines = "".join(json.dumps(each) + "\n" for each in label_lines(designed(1), ["a"], of="tone"))
        self.assertIn("only one expert", self.told(lines, status=0))

    def test_a_later_line_of_a_rater_replaces_an_earlier_one(self):
        line = '{"case_id": "c00001", "rater": "a", "of": "tone", "label": "%s"}\n'
        self.assertIn("1 label was replaced", self.told(line % "pass" + line % "fail", status=0))

    def test_constant_raters_and_few_cases_are_undecided(self):
        rows = [("pass", ["pass"] * 2)] * 25
        self.assertEqual(self.measured(rows)["standing_reason"], "no_expected_disagreement")
        shutil.rmtree("improvements")
        self.assertEqual(self.measured(designed(1)[:10])["standing_reason"], "insufficient_evidence")

    def test_hostile_names_are_made_visible(self):
        lines = "".join(json.dumps({"case_id": case_id, "rater": "\x1b[2J\u202e", "of": "tone", "label": "pass"}) + "\n" for case_id in case_ids(designed(1)))
        text = self.told(lines, status=0)
        self.assertNotIn("\x1b", text)
        self.assertIn("\\x1b[2J\\u202e", text)

    def test_labels_of_another_output_do_not_count(self):
        rows = [("pass", ["pass", "pass"])] * 3
        make_judged(rows)
        self.evaluate()
        seen = kaizen.fingerprint("pass")
        lines = [{"case_id": f"c0000{n}", "rater": rater, "of": "tone", "label": "pass", "output": seen if n else "sha256:0"} for n in range(3) for rater in "ab"]
        write_lines("improvements/change/labels.jsonl", lines)
        found = self.ask("--of", "tone")
        self.assertEqual(found["coverage"]["labelled"], 2)
        self.assertIn("2 labels are of other outputs than this stage has", found["notes"])

    def test_what_is_missing_is_said(self):
        make_judged(designed(1))
        self.ask("--of", "tone", status=2)  # no results
        self.evaluate()
        self.assertIn("no evaluator", self.ask("--of", "tome", status=2)["message"])
        self.assertIn("tone", self.ask("--of", "tome", status=2)["next"])
        self.ask("--of", "tone", "--labels", "nowhere.jsonl", status=2)
        self.ask("--of", "tone", "--stage", "other", status=2)
        self.assertIn("judge", self.ask(status=2)["message"])
        with open("improvements/change/candidate.jsonl", "ab") as file:
            file.write(json.dumps({"case_id": "c00000", "trial": 2, "status": "completed", "output": "x"}).encode() + b"\n")
        self.assertEqual(self.ask("--of", "tone", status=5)["reason"], "stale_results")

    def test_20000_labels_are_counted(self):
        rows = designed(80)
        make_judged(rows, labels=label_lines(rows, of="tone"))
        self.evaluate()
        found = self.ask("--of", "tone")
        self.assertEqual(found["coverage"]["labels"], 20_000)
        self.assertEqual(found["standing"], "at_human_level")


if __name__ == "__main__":
    unittest.main()

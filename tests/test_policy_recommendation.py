"""The recommendation by its list of precedence, through the real command `gate`."""

import json
import shutil
import unittest

import support
from support import kaizen, make_improvement, read_json, run_cli, write

CHECK = {"id": "right", "type": "equals", "value": {"$case": "/expected"}}


def cases(*names, **fields):
    """Cases that expect 'yes'."""
    return [{"id": name, "input": name, "expected": "yes", **fields} for name in names]


def answers(**outputs):
    """Observations: 'yes', 'no', or None for an error; a list is one a trial."""
    rows = []
    trials = max(len(each) if isinstance(each, list) else 1 for each in outputs.values())
    for trial in range(1, trials + 1):
        for name, value in outputs.items():
            output = value[trial - 1] if isinstance(value, list) else value
            row = {"case_id": name, "trial": trial, "output": output}
            if output is None:
                row.update(status="error", error={"class": "agent", "type": "broken", "message": "no answer"})
            rows.append(row)
    return rows


class Gate(support.TemporaryFolder):
    """One improvement a test; the exit status and the reason codes are what CI sees."""

    def gate(self, case_list, baseline, candidate, acceptance=None, check=CHECK, **blocks):
        shutil.rmtree("improvements", ignore_errors=True)
        evaluation = {"version": 1, "evaluators": [check], "acceptance": acceptance or {}, **blocks}
        make_improvement("change", case_list, evaluation, baseline=answers(**baseline), candidate=answers(**candidate))
        return self.again()

    def again(self):
        done = run_cli("gate", "change", "--json")
        self.answer = json.loads(done.stdout)
        return done.status, self.answer["recommendation"], [reason["code"] for reason in self.answer["reasons"]]

    def test_an_improvement_without_a_loss_is_eligible(self):
        self.assertEqual(self.gate(cases("a", "b"), {"a": "no", "b": "yes"}, {"a": "yes", "b": "yes"}), (0, "eligible", []))

    def test_a_regression_is_a_veto_whatever_the_average_says(self):
        before, after = dict.fromkeys("abcd", "no"), dict.fromkeys("abcd", "yes")
        status, recommendation, codes = self.gate(cases(*"abcde"), {**before, "e": "yes"}, {**after, "e": "no"})
        self.assertEqual((status, recommendation, codes), (1, "rejected", ["regressions"]))
        self.assertEqual(self.answer["reasons"][0]["cases"], ["e"])

    def test_zero_is_a_limit_and_null_is_none(self):
        """Field case 30, policy B, and its opposite."""
        one = ({"a": "yes", "b": "no", "c": "no"}, {"a": "no", "b": "yes", "c": "yes"})
        self.assertEqual(self.gate(cases(*"abc"), *one, {"maximum_regressions": 0})[:2], (1, "rejected"))
        self.assertEqual(self.gate(cases(*"abc"), *one, {"maximum_regressions": 1})[:2], (0, "eligible"))

    def test_nothing_improved_is_rejected(self):
        same = {"a": "yes", "b": "no"}
        self.assertEqual(self.gate(cases("a", "b"), same, same), (1, "rejected", ["below_minimum_improvements"]))

    def test_a_flaky_loss_is_no_veto_but_can_be_bounded(self):
        before, after = {"a": ["yes"] * 3, "b": ["no"] * 3}, {"a": ["yes", "no", "yes"], "b": ["yes"] * 3}
        self.assertEqual(self.gate(cases("a", "b"), before, after)[:2], (0, "eligible"))
        self.assertEqual(self.gate(cases("a", "b"), before, after, {"maximum_weakened": 0}), (1, "rejected", ["above_maximum_weakened"]))

    def test_a_hard_failure_rejects_in_any_trial(self):
        before, after = {"a": ["yes"] * 3, "b": ["no"] * 3}, {"a": ["yes", "no", "yes"], "b": ["yes"] * 3}
        hard = {**CHECK, "severity": "hard"}
        self.assertEqual(self.gate(cases("a", "b"), before, after, check=hard), (1, "rejected", ["hard_failure"]))

    def test_a_critical_case_rejects_in_any_trial(self):
        before, after = {"a": ["yes"] * 3, "b": ["no"] * 3}, {"a": ["yes", "no", "yes"], "b": ["yes"] * 3}
        listed = cases("a", critical=True) + cases("b")
        self.assertEqual(self.gate(listed, before, after), (1, "rejected", ["critical_failure"]))

    def test_errors_are_missing_evidence_for_a_person(self):
        """Field case 29: 80/90 meets 0.85, but ten trials never ended."""
        names = [f"c{number:03d}" for number in range(100)]
        before = {name: "no" if number == 0 else "yes" for number, name in enumerate(names)}
        after = {name: "yes" if number < 80 else "no" if number < 90 else None for number, name in enumerate(names)}
        acceptance = {"minimum_pass_rate": 0.85, "maximum_regressions": 10, "minimum_delta": -1}
        status, recommendation, codes = self.gate(cases(*names), before, after, acceptance)
        self.assertEqual((status, recommendation), (3, "manual_review"))
        self.assertEqual(codes, ["not_comparable", "excluded_trials", "missingness_decides"][: len(codes)])
        self.assertIn("not_comparable", codes)
        self.assertIn("excluded_trials", codes)
        rates = self.answer["rates"]["candidate"]
        self.assertEqual([rates[key] for key in ("passed", "failed", "errors", "planned")], [80, 10, 10, 100])

    def test_a_trial_that_never_ran_is_no_error(self):
        """A replay without an answer for it writes a line with this status; the page shows it as not run, and so do the counts."""
        never = {"case_id": "b", "trial": 1, "status": "not_run", "error": {"class": "environment", "type": "no_recorded_answer", "message": "none"}}
        make_improvement("change", cases("a", "b"), [CHECK], baseline=answers(a="no", b="no"), candidate=[*answers(a="yes"), never])
        self.assertEqual(self.again()[1], "manual_review")
        self.assertEqual([self.answer["rates"]["candidate"][key] for key in ("passed", "failed", "errors", "not_run", "planned")], [1, 0, 0, 1, 2])
        self.assertIn("0 of 1 planned trials measured (1 not run)", self.answer["reasons"][0]["text"])

    def test_a_threshold_that_no_missing_trial_could_save_rejects(self):
        status, recommendation, codes = self.gate(
            cases(*"abcd"), dict.fromkeys("abcd", "no"), {"a": "yes", "b": "no", "c": "no", "d": None}, {"minimum_pass_rate": 0.9}
        )
        self.assertEqual((status, recommendation), (1, "rejected"))
        self.assertIn("below_minimum_pass_rate", codes)

    def test_a_threshold_that_a_missing_trial_could_save_is_for_a_person(self):
        status, recommendation, codes = self.gate(
            cases(*"abc"), dict.fromkeys("abc", "no"), {"a": "yes", "b": "no", "c": None}, {"minimum_pass_rate": 0.6}
        )
        self.assertEqual((status, recommendation), (3, "manual_review"))
        self.assertNotIn("below_minimum_pass_rate", codes)

    def test_every_threshold_that_a_missing_trial_could_save_is_for_a_person(self):
        """The missing trial of the candidate passes, that of the baseline fails: then each of these would be met."""
        base = {"minimum_improvements": 0, "minimum_delta": -1}
        for before, after, policy in (
            (["yes", "yes", None], ["yes", "no", None], {**base, "maximum_weakened": 0}),
            (["no", "no", "no"], ["yes", "no", None], {"minimum_delta": -1}),
            (["no", "no", "no"], ["yes", "no", None], {**base, "minimum_delta": 0.6}),
            (["yes", "yes", "yes"], ["yes", "no", None], {**base, "minimum_pass_k": {"k": 1, "rate": 0.6}}),
        ):
            with self.subTest(policy=policy):
                status, recommendation, codes = self.gate(cases("a"), {"a": before}, {"a": after}, policy)
                self.assertEqual((status, recommendation), (3, "manual_review"), codes)

    def test_every_threshold_that_no_missing_trial_could_save_rejects(self):
        base = {"minimum_improvements": 0, "minimum_delta": -1, "maximum_regressions": 9}
        for before, after, policy, code in (
            (["yes"] * 5, ["yes", "no", "no", "no", None], {**base, "maximum_weakened": 0}, "above_maximum_weakened"),
            (["yes"] * 3, [None] * 3, {**base, "minimum_improvements": 1}, "below_minimum_improvements"),
            (["yes"] * 5, ["yes"] * 4 + [None], {**base, "minimum_delta": 0.1}, "below_minimum_delta"),
            (["yes"] * 5, ["no"] * 3 + ["yes", None], {**base, "minimum_pass_k": {"k": 1, "rate": 0.6}}, "below_minimum_pass_k"),
        ):
            with self.subTest(code=code):
                status, recommendation, codes = self.gate(cases("a"), {"a": before}, {"a": after}, policy)
                self.assertEqual((status, recommendation, codes[0]), (1, "rejected", code), codes)
                self.assertIn("excluded_trials", codes)

    def test_a_price_that_is_not_known_excuses_no_other_threshold(self):
        before, after = [{"case_id": "a", "trial": 1, "output": word, "execution": {"duration_ms": ms}} for word, ms in (("no", 10), ("yes", 50))]
        evaluation = {"evaluators": [CHECK], "acceptance": {"maximum_cost_ratio": 1, "maximum_latency_ratio": 2}}
        make_improvement("change", cases("a"), evaluation, baseline=[before], candidate=[after])
        self.assertEqual(self.again(), (1, "rejected", ["above_maximum_latency_ratio", "unpriced"]))

    def test_exactly_on_the_threshold_is_met(self):
        """Field case 27: three of five against 0.6; 28: 1999 of 2000 is not 1."""
        five = {name: "yes" if name in "abc" else "no" for name in "abcde"}
        before = dict.fromkeys("abcde", "no")
        self.assertEqual(self.gate(cases(*"abcde"), before, five, {"minimum_pass_rate": 0.6})[:2], (0, "eligible"))
        two = {"a": "yes", "b": "yes", "c": "no"}
        self.assertEqual(self.gate(cases(*"abc"), dict.fromkeys("abc", "no"), two, {"minimum_pass_rate": 0.67})[:2], (1, "rejected"))
        self.assertIn("66.67 %", self.answer["message"])

    def test_an_allowed_drop_is_exact(self):
        """Field case 27: 0.9 to 0.8 with a maximum drop of 0.1 is met; a hair more is not."""
        names = [f"c{number:02d}" for number in range(10)]
        before = {name: "no" if number == 9 else "yes" for number, name in enumerate(names)}
        after = {name: "no" if number >= 8 else "yes" for number, name in enumerate(names)}
        policy = {"maximum_regressions": 5, "minimum_improvements": 0, "minimum_delta": -0.1}
        self.assertEqual(self.gate(cases(*names), before, after, policy)[:2], (0, "eligible"))
        self.assertEqual(self.gate(cases(*names), before, after, {**policy, "minimum_delta": -0.0999})[:2], (1, "rejected"))

    def test_different_cases_on_each_side_are_not_comparable(self):
        """Field case 31."""
        status, recommendation, _ = self.gate(
            cases("hard-1", "hard-2", "easy-1"), {"hard-1": "no", "hard-2": "no"}, {"easy-1": "yes"}, {"maximum_not_comparable": 0}
        )
        self.assertEqual((status, recommendation), (3, "manual_review"))
        self.assertEqual(self.answer["counts"]["not_comparable"], 3)
        self.assertIsNone(self.answer["delta"])
        text = self.answer["reasons"][0]["text"]
        self.assertIn("candidate: 0 of 1 planned trials measured", text)

    def test_missing_evidence_allowed_by_name_still_cannot_pass_as_measured(self):
        status, recommendation, codes = self.gate(
            cases("a", "b"), {"a": "no"}, {"b": "yes"}, {"maximum_not_comparable": 2, "minimum_improvements": 0}
        )
        self.assertEqual((status, recommendation), (3, "manual_review"))
        self.assertIn("excluded_trials", codes)

    def test_evidence_in_another_order_is_paired_by_id(self):
        """Field case 18: a improved, b and c and d by what their own ids say."""
        make_improvement(
            "change",
            [{"id": name, "input": f"question {name}", "expected": f"answer {name}"} for name in "abcd"],
            [CHECK],
            baseline=[
                {"case_id": "a", "output": "no idea"},
                {"case_id": "b", "output": "answer b"},
                {"case_id": "c", "output": "answer c"},
                {"case_id": "d", "output": "answer a"},
            ],
            candidate=[
                {"case_id": "d", "output": "answer c"},
                {"case_id": "b", "output": "answer b!"},
                {"case_id": "a", "output": "answer a"},
                {"case_id": "c", "output": "answer d"},
            ],
        )
        self.again()
        self.assertEqual(run_cli("review", "change").status, 0)
        changes = {row["id"]: row["change"] for row in read_json("improvements/change/comparison.json")["cases"]}
        self.assertEqual(changes, {"a": "improved", "b": "regressed", "c": "regressed", "d": "unchanged"})

    def test_a_cost_ratio_without_prices_is_not_met_for_free(self):
        """Field case 54's kind: no price is not a price of 0."""
        plain = ({"a": "no"}, {"a": "yes"})
        self.assertEqual(self.gate(cases("a"), *plain, {"maximum_cost_ratio": 1})[1:], ("manual_review", ["unpriced"]))

    def test_a_cost_ratio_is_compared_exactly(self):
        for candidate, expected in ((0.11, (0, "eligible", [])), (0.1101, (1, "rejected", ["above_maximum_cost_ratio"]))):
            shutil.rmtree("improvements", ignore_errors=True)
            rows = {
                name: [{"case_id": "a", "output": output, "cost": {"total_usd": cost}}]
                for name, output, cost in (("baseline", "no", 0.1), ("candidate", "yes", candidate))
            }
            make_improvement("change", cases("a"), {"version": 1, "evaluators": [CHECK], "acceptance": {"maximum_cost_ratio": 1.1}}, **rows)
            for name in ("baseline", "candidate"):
                run_cli("evaluate", "change", "--stage", name)
            self.assertEqual(self.again(), expected)

    def test_a_latency_ratio_needs_a_measured_time(self):
        self.assertEqual(
            self.gate(cases("a"), {"a": "no"}, {"a": "yes"}, {"maximum_latency_ratio": 2})[1:], ("manual_review", ["unmeasured_latency"])
        )

    def test_pass_k_needs_k_trials(self):
        policy = {"minimum_pass_k": {"k": 2, "rate": 0.5}}
        self.assertEqual(self.gate(cases("a"), {"a": "no"}, {"a": "yes"}, policy)[1:], ("manual_review", ["unmeasured_minimum_pass_k"]))
        thrice = ({"a": ["no"] * 3}, {"a": ["yes", "yes", "no"]})  # C(2,2)/C(3,2) = 1/3
        self.assertEqual(self.gate(cases("a"), *thrice, policy)[1:], ("rejected", ["below_minimum_pass_k"]))
        policy = {"minimum_pass_k": {"k": 2, "rate": 0.3333}}
        self.assertEqual(self.gate(cases("a"), *thrice, policy)[1:], ("eligible", []))

    def test_a_reliability_block_is_never_passed_over(self):
        self.assertEqual(self.gate(cases("a"), {"a": "no"}, {"a": "yes"}, reliability={})[:2], (3, "manual_review"))

    def test_changed_evaluators_are_named_and_nothing_is_called_improved(self):
        """Field case 33: the ruler changed between the two measurements."""
        same = [{"case_id": "x", "output": "please confirm"}, {"case_id": "y", "output": "please confirm and sign"}]
        before = [{"id": "words", "type": "contains", "values": ["confirm", "sign"]}]
        after = [{"id": "words", "type": "contains", "values": ["confirm"]}]
        folder = make_improvement("change", [{"id": "x", "input": "x"}, {"id": "y", "input": "y"}], before, baseline=same, candidate=same)
        self.assertEqual(run_cli("evaluate", "change", "--stage", "baseline").status, 0)
        write(folder / "evaluation.json", json.dumps({"version": 1, "evaluators": after}))
        self.assertEqual(run_cli("evaluate", "change", "--stage", "candidate").status, 0)
        status, recommendation, codes = self.again()
        self.assertEqual((status, recommendation), (3, "manual_review"))
        self.assertEqual(codes[0], "incomparable_evaluators")
        self.assertIn("words", self.answer["reasons"][0]["text"])
        self.assertEqual((self.answer["counts"]["improved"], self.answer["counts"]["not_comparable"]), (0, 2))
        run_cli("evaluate", "change", "--stage", "baseline")
        self.again()
        self.assertEqual(self.answer["counts"]["unchanged"], 2)


class Stale(support.TemporaryFolder):
    """Results are stale when what they were made from is no longer what it was (formats.md 1.5)."""

    def setUp(self):
        super().setUp()
        self.place = make_improvement(
            "change", cases("a", "b"), [CHECK], baseline=answers(a="no", b="yes"), candidate=answers(a="yes", b="yes")
        )
        self.assertEqual(run_cli("review", "change").status, 0)

    def codes(self):
        return [reason["code"] for reason in json.loads(run_cli("gate", "change", "--json").stdout)["reasons"]]

    def test_a_number_of_trials_that_no_run_has_is_refused(self):
        """Every table is as long as the planned trials: a meta file or line that claims a billion would take all memory."""
        for repetitions in (10**9, 1e308, None, "3", True, 0):
            with self.subTest(repetitions=repetitions):
                write("improvements/change/baseline.meta.json", json.dumps({"version": 1, "stage": "baseline", "repetitions": repetitions}))
                done = run_cli("evaluate", "change")
                self.assertEqual(done.status, 2, done.stderr)
                self.assertIn("baseline.meta.json#/repetitions: must be a whole number from 1 to 1,000", done.stderr)
        (self.folder / "improvements/change/baseline.meta.json").unlink()
        meta = self.folder / "improvements/change/baseline.evaluated.meta.json"
        write(meta, json.dumps({**read_json(meta), "repetitions": 10**9}))
        done = run_cli("gate", "change", "--json")
        self.assertEqual((done.status, json.loads(done.stdout)["reasons"][0]["code"]), (3, "invalid_evidence"))
        write("improvements/change/candidate.jsonl", json.dumps({"case_id": "a", "trial": 10**9, "status": "completed", "output": "yes"}) + "\n")
        done = run_cli("evaluate", "change")
        self.assertEqual((done.status, "candidate.jsonl:1: has no trial (a number from 1 to 1,000)" in done.stderr), (2, True), done.stderr)

    def test_costs_and_times_whose_sum_overflows_have_a_mean(self):
        for stage in ("baseline", "candidate"):
            place = self.folder / f"improvements/change/{stage}.jsonl"
            lines = [json.loads(line) for line in place.read_text().splitlines()]
            write(place, "".join(json.dumps({**line, "cost": {"total_usd": 1.7e308}, "execution": {"duration_ms": 1.7e308}}) + "\n" for line in lines))
        self.assertEqual(run_cli("evaluate", "change").status, 0)
        done = run_cli("review", "change", "--json")
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["rates"]["candidate"]["mean_cost_usd"], 1.7e308)

    def test_fresh_results_are_not_stale(self):
        self.assertEqual(self.codes(), [])

    def test_a_changed_observation_is_noticed(self):
        text = (self.place / "candidate.jsonl").read_text()
        write(self.place / "candidate.jsonl", text.replace('"yes"', '"no"', 1))
        self.assertEqual(self.codes(), ["stale_results"])

    def test_a_changed_case_is_noticed(self):
        write(self.place / "test_cases.jsonl", (self.place / "test_cases.jsonl").read_text().replace('"yes"', '"YES"', 1))
        self.assertEqual(self.codes(), ["stale_results", "stale_results"])

    def test_a_changed_result_is_invalid_evidence(self):
        path = self.place / "candidate.evaluated.jsonl"
        write(path, path.read_text().replace('"outcome":"pass"', '"outcome":"fail"', 1))
        self.assertEqual(self.codes(), ["invalid_evidence"])

    def test_line_ends_do_not_count(self):
        for name in ("candidate.jsonl", "candidate.evaluated.jsonl"):
            path = self.place / name
            write(path, path.read_bytes().replace(b"\n", b"\r\n"))
        self.assertEqual(self.codes(), [])

    def test_what_lasts_is_refused(self):
        write(self.place / "test_cases.jsonl", (self.place / "test_cases.jsonl").read_text().replace('"yes"', '"YES"', 1))
        done = run_cli("decide", "change", "--status", "accepted", "--by", "Ada", "--because", "it is better")
        self.assertEqual(done.status, 5)
        self.assertIn("the cases have changed", done.stderr)
        self.assertIn("kaizen evaluate", done.stderr)

    def test_review_goes_on_and_says_so(self):
        write(self.place / "test_cases.jsonl", (self.place / "test_cases.jsonl").read_text().replace('"yes"', '"YES"', 1))
        done = run_cli("review", "change")
        self.assertEqual(done.status, 0)
        self.assertIn("manual_review: ", done.stdout)
        self.assertIn("the cases have changed", (self.place / "review.html").read_text())

    def test_an_observation_of_an_older_input_no_longer_counts(self):
        rows = answers(a="no", b="yes")
        rows[0]["input_fingerprint"] = kaizen.case_input_fingerprint({"id": "a", "input": "another input"})
        rows[1]["input_fingerprint"] = kaizen.case_input_fingerprint({"id": "b", "input": "b"})
        make_improvement("other", cases("a", "b"), [CHECK], baseline=rows, candidate=answers(a="yes", b="yes"))
        run_cli("evaluate", "other")
        lines = support.read_lines("improvements/other/baseline.evaluated.jsonl")
        self.assertEqual([line["outcome"] for line in lines], ["error", "pass"])
        self.assertIn("input", lines[0]["evaluations"][0]["reason"])


if __name__ == "__main__":
    unittest.main()

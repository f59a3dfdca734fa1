"""Derived metrics over cases: their values, their change, their bounds, and where they are shown."""

import json
import random
import shutil
import unittest
from fractions import Fraction
from statistics import fmean

import support
from support import kaizen, make_improvement, read_json, run_cli

PASS = {"id": "ok", "type": "contains", "values": ["y"]}
HARM = {"id": "no-harm", "metric": "safe", "type": "contains", "values": ["harm"], "negate": True, "severity": "info"}


class Derived(support.TemporaryFolder):
    """An improvement whose stages are texts by case: one letter or word a trial."""

    def make(self, baseline, candidate, metrics, bounds=None, evaluators=(PASS, HARM), fields=lambda name: {}, **acceptance):
        cases = [{"id": name, "input": name, **fields(name)} for name in baseline]
        policy = {"minimum_improvements": 0, "metrics": bounds or {}, **acceptance}
        stages = {}
        for stage, answers in (("baseline", baseline), ("candidate", candidate)):
            stages[stage] = [
                {"case_id": name, "trial": trial, "output": output} if output != "-" else {"case_id": name, "trial": trial, "status": "error", "error": {"class": "agent", "type": "x", "message": "x"}}
                for name, outputs in answers.items()
                for trial, output in enumerate(outputs.split(","), 1)
            ]
        shutil.rmtree("improvements", ignore_errors=True)
        make_improvement("change", cases, {"version": 1, "evaluators": list(evaluators), "metrics": metrics, "acceptance": policy}, **stages)

    def ask(self, *argv):
        done = run_cli(*argv, "--json")
        return json.loads(done.stdout)

    def entry(self, name="m"):
        return next(entry for entry in self.ask("gate", "change")["metrics"] if entry["name"] == name)

    def test_the_case_is_the_unit_however_often_it_ran(self):
        # Shares 1/1, 1/3, 0/2: their mean is 4/9; pooled it would be 2/6.
        self.make({"a": "y,-,-", "b": "y,n,n", "c": "n,n,-"}, {"a": "y,y,y", "b": "y,y,y", "c": "y,y,y"}, {"m": "rate(ok)", "n": "count(ok)"})
        entry = self.entry()
        self.assertEqual(entry["baseline"]["exact"], "4/9")
        self.assertEqual(entry["candidate"]["exact"], "1")
        self.assertEqual(entry["delta"]["exact"], "5/9")
        basis = entry["baseline"]["rests_on"][0]
        self.assertEqual((basis["n"], basis["cases"], basis["answers"], basis["due"]), (3, 3, 6, 9))
        self.assertEqual(self.entry("n")["candidate"]["value"], 3)

    def test_values_are_those_of_plain_python_on_random_data(self):
        chance = random.Random(5)
        sides = [{f"c{number}": ",".join(chance.choice(["y", "n", "yyy", "yy harm"]) for _ in range(chance.randint(1, 4))) for number in range(30)} for _ in range(2)]
        short = {"id": "short", "metric": "brief", "type": "length", "max": 2}
        self.make(*sides, {"m": "(2 * mean(brief) + rate(safe)) / 3 - min(brief) + max(ok)"}, evaluators=(PASS, HARM, short))
        for role, side in zip(("baseline", "candidate"), sides, strict=True):
            trials = [outputs.split(",") for outputs in side.values()]
            brief = [fmean(len(output) <= 2 for output in each) for each in trials]
            safe = [fmean("harm" not in output for output in each) for each in trials]
            ok = [fmean("y" in output for output in each) for each in trials]
            expected = (2 * fmean(brief) + fmean(safe)) / 3 - min(brief) + max(ok)
            self.assertAlmostEqual(self.entry()[role]["value"], expected, 12)

    def test_entries_that_share_a_metric_are_taken_together(self):
        evaluators = [{**PASS, "metric": "both"}, {"id": "z", "type": "contains", "values": ["z"], "metric": "both"}]
        self.make({"a": "yz", "b": "y"}, {"a": "y", "b": "n"}, {"m": "rate(both)"}, evaluators=evaluators)
        self.assertEqual((self.entry()["baseline"]["exact"], self.entry()["candidate"]["exact"]), ("3/4", "1/4"))

    def test_entries_of_a_case_count_in_that_case_alone(self):
        own = {"evaluators": [{"id": "extra", "type": "contains", "values": ["e"]}, {**PASS, "metric": "other"}]}
        self.make({"a": "ye", "b": "y"}, {"a": "ye", "b": "n"}, {"m": "rate(extra)", "k": "count(ok)", "o": "rate(other)"}, fields=lambda name: own if name == "a" else {})
        self.assertEqual([self.entry(name)["baseline"]["exact"] for name in "mko"], ["1", "1", "1"])
        self.assertEqual(self.entry()["baseline"]["rests_on"][0]["cases"], 1)

    def test_what_does_not_apply_is_counted_and_not_missing(self):
        tagged = {**HARM, "when": {"tags": ["risky"]}}
        self.make({"a": "y", "b": "y harm", "c": "y"}, {"a": "y", "b": "y", "c": "y"}, {"m": "1 - rate(safe)"}, {"m": {"maximum": 0}}, (PASS, tagged), lambda name: {"tags": ["risky"] if name != "c" else []})
        basis = self.entry()["baseline"]["rests_on"][0]
        self.assertEqual((self.entry()["baseline"]["exact"], basis["n"], basis["cases"], basis["cases_not_applicable"], basis["due"]), ("1/2", 2, 3, 1, 2))
        self.assertEqual(self.ask("gate", "change")["recommendation"], "eligible")

    # --- Bounds ---

    def reasons(self):
        answer = self.ask("gate", "change")
        return answer["recommendation"], [(reason["rule"], reason["code"]) for reason in answer["reasons"]]

    def test_bounds_compare_exactly_at_the_threshold(self):
        # 3 of 10: 0.1 + 0.2 would be more than 0.3 in floats.
        before = {f"c{number}": "y" for number in range(10)}
        after = {name: "y harm" if number < 3 else "y" for number, name in enumerate(before)}
        for bounds, reasons in (
            ({"maximum": 0.3}, []),
            ({"maximum": 0.29999999}, [(4, "above_metric_maximum")]),
            ({"minimum": 0.3}, []),
            ({"minimum": 0.30000001}, [(4, "below_metric_minimum")]),
            ({"maximum_rise": 0.3}, []),
            ({"maximum_rise": 0.1}, [(4, "above_metric_maximum_rise")]),
            ({"maximum_fall": 0}, []),
            ({"maximum_fall": -0.4}, [(4, "above_metric_maximum_fall")]),
            ({"maximum": None}, []),
        ):
            with self.subTest(bounds):
                self.make(before, after, {"m": "1 - rate(safe)"}, {"m": bounds})
                self.assertEqual(self.reasons(), ("rejected" if reasons else "eligible", reasons))

    def test_a_fall_is_measured_downwards(self):
        before = {f"c{number}": "y" for number in range(10)}
        after = {name: "y harm" if number < 3 else "y" for number, name in enumerate(before)}
        self.make(before, after, {"m": "rate(safe)"}, {"m": {"maximum_fall": 0.2}})
        answer = self.ask("gate", "change")
        self.assertEqual(answer["message"], "rejected: 'm' fell by 0.3 (may fall by at most 0.2)")

    def test_what_is_not_measured_is_for_a_person(self):
        both = {"a": "y", "b": "y"}
        self.make(both, both, {"m": "rate(ok) / (1 - rate(ok))"}, {"m": {"minimum": 1}})
        self.assertEqual(self.reasons(), ("manual_review", [(5, "unmeasured_metric")]))
        self.assertIn("division by zero", self.ask("gate", "change")["message"])
        self.assertEqual(self.entry()["candidate"], {"value": None, "exact": None, "reason": "division_by_zero", "rests_on": self.entry()["candidate"]["rests_on"]})

    def test_a_bound_is_not_looked_at_where_answers_are_missing(self):
        judge = {"id": "no-harm", "metric": "safe", "type": "equals", "select": "metadata/verdict", "value": "fine", "severity": "info"}
        both = {f"c{number}": "y" for number in range(10)}
        self.make(both, both, {"m": "rate(safe)"}, {"m": {"minimum": 0.5}}, (PASS, judge))
        self.assertEqual(self.reasons(), ("manual_review", [(5, "unmeasured_metric")]))
        self.make(both, {**both, "c0": "-"}, {"m": "rate(safe)"}, {"m": {"minimum": 0.5}}, maximum_not_comparable=10)
        self.assertEqual(self.reasons()[0], "manual_review")
        self.assertIn("1 of 10 answers of 'safe' are missing", run_cli("gate", "change").stdout)

    def test_a_variant_that_misses_a_bound_is_not_feasible(self):
        both = {"a": "y", "b": "y"}
        self.make(both, {"a": "y", "b": "y harm"}, {"m": "1 - rate(safe)"}, {"m": {"maximum": 0}})
        (found,) = [entry for entry in self.ask("pareto", "change")["variants"] if entry["name"] == "candidate"]
        self.assertEqual((found["status"], found["reasons"][0]["code"]), ("infeasible", "above_metric_maximum"))

    def test_a_bound_on_a_metric_that_nobody_worked_out_is_not_met(self):
        (found,) = kaizen.missed_metrics({"m": {"maximum": 1}}, [])
        self.assertEqual(found.code, "unmeasured_metric")

    def test_a_miss_on_incomplete_evidence_rejects_nobody(self):
        both = {f"c{number}": "y harm" for number in range(40)}
        self.make(both, {**both, **{f"c{number}": "-" for number in range(2)}}, {"m": "rate(safe)"}, {"m": {"minimum": 0.5}})
        recommendation, reasons = self.reasons()
        self.assertEqual(recommendation, "manual_review")
        self.assertNotIn((4, "below_metric_minimum"), reasons)

    def test_the_change_is_over_cases_that_both_sides_measured(self):
        before = {"a": "y", "b": "n", **{f"c{number}": "y" for number in range(38)}}
        self.make(before, {**before, "b": "-"}, {"m": "rate(ok)"}, {"m": {"maximum_rise": 0}}, maximum_not_comparable=1)
        self.assertEqual(self.entry()["delta"]["exact"], "0")
        self.assertEqual(self.entry()["candidate"]["exact"], "1")

    def test_another_expression_is_other_evidence(self):
        both = {"a": "y"}
        seen = set()
        for metrics in ({}, {"m": "rate(ok)"}, {"m": "rate(ok) + 1"}):
            self.make(both, both, metrics)
            seen.add(self.ask("gate", "change")["evidence"])
        self.assertEqual(len(seen), 3)

    # --- Shown ---

    def test_values_stand_wherever_rates_stand(self):
        self.make({"a": "y", "b": "y harm"}, {"a": "y", "b": "y"}, {"unsafe_rate": "1 - rate(safe)"})
        for argv in (("evaluate", "change"), ("gate", "change"), ("review", "change"), ("reliability", "change")):
            self.assertIn("unsafe_rate: baseline 0.5 (n = 2 of 2 cases)", run_cli(*argv).stdout)
        self.assertEqual(self.ask("evaluate", "change")["stages"]["baseline"]["metrics"][0]["candidate"]["value"], 0.5)
        self.assertEqual(read_json("improvements/change/comparison.json")["metrics"][0]["delta"]["value"], -0.5)
        self.assertEqual(read_json("improvements/change/reliability.json")["candidates"][0]["metrics"][0]["delta"]["value"], -0.5)
        with open("improvements/change/review.html", encoding="utf-8") as page, open("improvements/change/review.md", encoding="utf-8") as comment:
            self.assertRegex(page.read(), r"unsafe_rate <small>1 - rate\(safe\)</small></th><td[^>]*>0.5 <small>n\u00a0=\u00a02 of 2 cases")
            self.assertIn("| unsafe\\_rate = 1 - rate(safe) | 0.5 (n = 2 of 2 cases) | 0 (n = 2 of 2 cases) | -0.5 |", comment.read())

    def test_a_metric_that_is_markup_stays_text(self):
        self.make({"a": "y"}, {"a": "y"}, {"<b>|x</b>": "rate('<i>|')"}, evaluators=({**PASS, "metric": "<i>|"},))
        run_cli("review", "change")
        with open("improvements/change/review.html", encoding="utf-8") as page, open("improvements/change/review.md", encoding="utf-8") as comment:
            self.assertNotIn("<b>", page.read())
            text = comment.read()
        self.assertIn("&lt;b&gt;\\|x", text)

    def test_an_unknown_name_is_told_with_the_nearest_one_and_no_secret_one(self):
        secret = {"split": "holdout", "evaluators": [{"id": "hidden_check", "type": "contains", "values": ["e"]}]}
        self.make({"a": "y", "b": "y"}, {"a": "y", "b": "y"}, {"m": "rate(saef)", "h": "rate(hidden_chek)"}, fields=lambda name: secret if name == "b" else {"split": "development"})
        done = run_cli("gate", "change")
        self.assertEqual(done.status, 2)
        self.assertIn("#/metrics/m: character 6: no evaluator has the id or metric 'saef' [did you mean 'safe'?]", done.stderr)
        self.assertNotIn("hidden_check'", done.stderr)

    def test_numbers_too_large_to_write_have_no_value(self):
        both = {"a": "y"}
        self.make(both, both, {"m": "*".join(["1e300"] * 20) + " * rate(ok)", "s": "1e-300 * 1e-300 * rate(ok)"})
        self.assertEqual(self.entry()["candidate"]["reason"], "number_too_large")
        self.assertEqual(self.entry("s")["candidate"]["value"], 0.0)
        self.assertEqual(run_cli("review", "change").status, 0)

    def test_scores_are_exact_decimals(self):
        values = {f"c{number}": Fraction(value) for number, value in enumerate(("0.1", "0.2", "0.3"))}
        found, _ = kaizen.function_value("mean", values)
        self.assertEqual(found, Fraction(1, 5))


if __name__ == "__main__":
    unittest.main()

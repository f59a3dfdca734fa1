"""The reliability gate: it can lower a recommendation, never lift one, and says why."""

import json
import unittest

import support
from support import kaizen, make_improvement, run_cli

CHECK = {"id": "right", "type": "equals", "value": "yes"}


def answers(table):
    """Observations of {case: string of y, n and '-'}, one letter a trial; '-' is an error."""
    rows = []
    for case_id, letters in table.items():
        for trial, letter in enumerate(letters, 1):
            row = {"case_id": case_id, "trial": trial, "output": {"y": "yes", "n": "no"}.get(letter)}
            if letter == "-":
                row.update(status="error", error={"class": "agent", "type": "broken", "message": "no answer"})
            rows.append(row)
    return rows


def suite(*parts):
    """({case: baseline letters}, {case: candidate letters}) of (how many cases, baseline, candidate)."""
    before, after = {}, {}
    for count, baseline, candidate in parts:
        for _ in range(count):
            name = f"c{len(before):04d}"
            before[name], after[name] = baseline, candidate
    return before, after


class Gate(support.TemporaryFolder):
    """Rule 6 through the real command."""

    def gate(self, before, after, reliability=None, acceptance=None, fields=lambda name: {}):
        cases = [{"id": name, "input": name, **fields(name)} for name in before]
        evaluation = {"version": 1, "evaluators": [CHECK], "acceptance": {"maximum_regressions": 10**6, "minimum_delta": -1, **(acceptance or {})}}
        if reliability is not None:
            evaluation["reliability"] = reliability
        self.number = getattr(self, "number", 0) + 1
        name = f"change-{self.number}"
        make_improvement(name, cases, evaluation, baseline=answers(before), candidate=answers(after))
        done = run_cli("gate", name, "--json")
        self.answer = json.loads(done.stdout)
        return self.answer["recommendation"], [reason["code"] for reason in self.answer["reasons"]]

    def test_a_clear_gain_of_enough_cases_and_trials_is_eligible(self):
        self.assertEqual(self.gate(*suite((10, "nnn", "yyy"), (15, "yyy", "yyy")), {}), ("eligible", []))

    def test_one_trial_is_too_few(self):
        recommendation, codes = self.gate(*suite((10, "n", "y"), (15, "y", "y")), {})
        self.assertEqual((recommendation, codes), ("manual_review", ["reliability_too_few_trials"]))
        self.assertEqual(self.gate(*suite((10, "n", "y"), (15, "y", "y")), {"minimum_trials": 1}), ("eligible", []))

    def test_below_twenty_cases_a_person_decides(self):
        self.assertEqual(self.gate(*suite((10, "nnn", "yyy"), (9, "yyy", "yyy")), {}), ("manual_review", ["reliability_too_few_cases"]))
        self.assertEqual(self.gate(*suite((10, "nnn", "yyy"), (10, "yyy", "yyy")), {})[0], "eligible")

    def test_four_cases_that_differ_are_never_enough(self):
        """2^-4 is above 0.05, whatever they do; five reach it."""
        found = self.gate(*suite((4, "nnn", "yyy"), (30, "yyy", "yyy")), {})
        self.assertEqual(found, ("manual_review", ["reliability_too_few_informative_cases"]))
        self.assertEqual(self.gate(*suite((5, "nnn", "yyy"), (30, "yyy", "yyy")), {}), ("eligible", []))

    def test_gains_and_losses_that_luck_explains_are_not_enough(self):
        found = self.gate(*suite((8, "nnn", "yyy"), (4, "yyy", "nnn"), (20, "yyy", "yyy")), {})
        self.assertEqual(found, ("manual_review", ["reliability_not_separated"]))
        self.assertIn("is not told from luck", self.answer["reasons"][0]["text"])

    def test_worse_is_rejected(self):
        found = self.gate(*suite((10, "yyy", "nny"), (1, "nnn", "yyy"), (15, "yyy", "yyy")), {}, {"minimum_improvements": 0})
        self.assertEqual(found, ("rejected", ["reliability_worse"]))

    def test_it_never_lifts_a_rejection(self):
        found = self.gate(*suite((30, "nnn", "yyy"), (1, "yyy", "nnn")), {}, {"maximum_regressions": 0})
        self.assertEqual(found, ("rejected", ["regressions"]))

    def test_without_a_block_nothing_hangs_on_it(self):
        self.assertEqual(self.gate(*suite((1, "n", "y"))), ("eligible", []))

    def test_what_hangs_on_missing_trials_goes_to_a_person(self):
        before, after = suite((20, "yyyyy", "yyyyy"), (6, "nn---", "yyyyy"), (6, "nnnnn", "yy---"))
        recommendation, codes = self.gate(before, after, {}, {"maximum_not_comparable": 100})
        self.assertEqual(recommendation, "manual_review")
        self.assertIn("excluded_trials", codes)

    def test_no_comparable_case_is_no_verdict(self):
        recommendation, codes = self.gate(*suite((3, "---", "yyy")), {}, {"maximum_not_comparable": 100, "minimum_improvements": 0})
        self.assertEqual(recommendation, "manual_review")
        self.assertIn("reliability_no_comparable_cases", codes)

    def test_cases_of_one_cluster_count_once(self):
        """30 cases of 3 documents: three units, so nothing can be told."""
        found = self.gate(*suite((10, "nnn", "yyy"), (20, "yyy", "yyy")), {}, fields=lambda name: {"cluster": f"doc-{int(name[1:]) // 10}"})
        self.assertEqual(found, ("manual_review", ["reliability_too_few_cases", "reliability_too_few_informative_cases"]))


class Rows(support.StrictTestCase):
    """The numbers of an entry from rows, without files."""

    @staticmethod
    def rows(*parts):
        found = []
        for number, (change, before, after, planned) in enumerate(parts):
            sides = {role: {"pass": side[0], "fail": side[1], "error": planned - sum(side), "planned": planned} for role, side in (("baseline", before), ("candidate", after))}
            found.append({"id": f"c{number}", "change": change, "newly_flaky": False, **sides})
        return found

    def entry(self, rows, clusters=None):
        cases = {row["id"]: kaizen.Case(row["id"], {"id": row["id"]}, "", 0, "") for row in rows}
        stages = {role: kaizen.StageTally(role, 3, {}, []) for role in ("baseline", "candidate")}
        return kaizen.detailed_entry(kaizen.Compared(rows, cases, clusters or {}, frozenset(), stages), kaizen.default_reliability())

    def test_the_delta_of_clusters_and_of_cases_stand_side_by_side(self):
        rows = self.rows(*[("improved", (0, 3), (3, 0), 3)] * 3, ("unchanged", (3, 0), (3, 0), 3))
        found = self.entry(rows, {"c0": "a", "c1": "a", "c2": "a"})
        self.assertEqual((found["unit"], found["n"], found["cases_compared"]), ("cluster", 2, 4))
        self.assertEqual((found["delta"]["value"], found["case_weighted_delta"]["value"]), (0.5, 0.75))
        # Rates: clusters a = 0 and c3 = 1 before, 1 and 1 now.
        self.assertEqual([found["rates"][role]["rate"]["value"] for role in ("baseline", "candidate")], [0.5, 1.0])

    def test_both_bounds_of_excluded_trials(self):
        found = self.entry(self.rows(("improved", (1, 1), (3, 0), 3), ("unchanged", (3, 0), (3, 0), 3)))
        side = found["rates"]["baseline"]
        self.assertEqual((side["excluded"], side["planned"]), (1, 6))
        self.assertEqual((side["bound_if_excluded_fail"]["value"], side["bound_if_excluded_pass"]["value"]), (2 / 3, 5 / 6))

    def test_nothing_comparable_is_null_with_a_reason(self):
        found = self.entry(self.rows(("not_comparable", (0, 0), (3, 0), 3)))
        self.assertEqual((found["delta"], found["interval"], found["reason"]), (None, None, "no_comparable_cases"))
        self.assertEqual(found["rates"]["baseline"]["reason"], "no_valid_observations")

    def test_a_suite_in_which_nothing_moved_does_not_claim_to_see_everything(self):
        found = self.entry(self.rows(*[("unchanged", (3, 0), (3, 0), 3)] * 20))
        # 2.80159 × sqrt(2 / 22 / 20)
        self.assertAlmostEqual(found["smallest_effect"]["value"], 0.188883, delta=1e-5)

    def test_what_would_settle_it_is_the_formula_of_planning(self):
        rows = self.rows(*[("improved", (1, 2), (2, 1), 3)] * 12, *[("weakened", (2, 1), (1, 2), 3)] * 8)
        found = self.entry(rows)
        # d = ±1/3: delta 1/15, variance of d 20/19 (1/9 - 1/225); 1.1 (1.959964 + 0.841621)^2 variance / delta^2
        self.assertEqual(found["settle"]["units"], 219)
        self.assertEqual(found["noise"]["share_of_variance"], 1.0)
        # Everything is noise of the trials (2 × 1/3 per trial): K = noise × 1.1 z² / (n delta²)
        self.assertEqual(found["settle"]["trials"], 65)

    def test_repetitions_that_differ_per_case_weigh_each_case_once(self):
        found = self.entry(self.rows(("improved", (0, 3), (1, 1), 3), ("unchanged", (2, 0), (3, 0), 3)))
        self.assertEqual(found["delta"]["value"], 0.25)


if __name__ == "__main__":
    unittest.main()

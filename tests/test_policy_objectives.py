"""`kaizen pareto`: constraints first, unpriced is never free, and the page shows what the file says."""

import json
import random
import unittest

import support
from support import ROOT, kaizen, make_improvement, read_json, read_lines, run_cli, write

CHECK = {"id": "right", "type": "equals", "value": "y"}
FIELD_CASE = ROOT / "tests" / "data" / "field_cases" / "54-no-price-isnt-free"


def answered(letters, cost=None, milliseconds=None, trial=1):
    """Observations of c0, c1, …: 'y' passes, 'n' fails, '-' is an error; the cost and duration of each."""
    lines = []
    for number, letter in enumerate(letters):
        line = {"case_id": f"c{number}", "trial": trial, "output": letter}
        if letter == "-":
            line = {"case_id": f"c{number}", "trial": trial, "status": "error", "error": {"class": "runner", "type": "exit", "message": "1"}}
        if cost is not None:
            line["cost"] = {"total_usd": cost}
        if milliseconds is not None:
            line["execution"] = {"duration_ms": milliseconds, "attempts": []}
        lines.append(line)
    return lines


class ParetoTestCase(support.TemporaryFolder):
    """An improvement with ten cases and the stages that a test names."""

    def make(self, acceptance=None, objectives=None, cases=10, **stages):
        evaluation = {"version": 1, "evaluators": [CHECK], "acceptance": acceptance or {"minimum_improvements": 0}}
        if objectives is not None:
            evaluation["objectives"] = objectives
        self.folder = make_improvement("money", [{"id": f"c{n}", "input": n} for n in range(cases)], evaluation, **stages)
        self.assertEqual(run_cli("evaluate", "money").status, 0)

    def ask(self, *variants, status=0, more=()):
        done = run_cli("pareto", "money", "--json", *[word for variant in variants for word in ("--variant", variant)], *more)
        self.assertEqual(done.status, status, done.stderr + done.stdout)
        return json.loads(done.stdout)

    def statuses(self, *variants, status=0):
        return {entry["name"]: entry["status"] for entry in self.ask(*variants, status=status)["variants"]}

    def reasons(self, name, *variants, status=0):
        entries = {entry["name"]: entry for entry in self.ask(*variants, status=status)["variants"]}
        return [reason["code"] for reason in entries[name]["reasons"]]


class FieldCases(ParetoTestCase):
    """No price isn't free of charge (field case 54)."""

    def test_an_unknown_price_wins_nothing_and_a_zero_is_a_price(self):
        stages = {}
        for name in "abc":
            records = read_lines(FIELD_CASE / f"{name}.evaluated.jsonl")
            stages[name] = [
                {
                    "case_id": f"c{number}",
                    "output": "y" if record["passed"] else "n",
                    **({"cost": record["cost"]} if "cost" in record else {}),
                }
                for number, record in enumerate(records)
            ]
        self.make(**stages)
        answer = self.ask("a=a", "b=b", "c=c")
        entries = {entry["name"]: entry for entry in answer["variants"]}
        self.assertEqual((entries["b"]["status"], entries["b"]["reasons"][0]["code"]), ("not_comparable", "unpriced"))
        self.assertEqual(sorted(answer["front"]), ["a", "c"])
        self.assertEqual(answer["cheapest_feasible"], "c")


class Feasibility(ParetoTestCase):
    """Constraints come before the front."""

    def test_a_cheaper_variant_that_breaks_the_policy_is_infeasible_and_says_why(self):
        self.make(baseline=answered("yyyyyyyynn", 2), cheap=answered("nnyyyyyyyy", 1), good=answered("yyyyyyyyyy", 3))
        answer = self.ask("cheap=cheap", "good=good")
        self.assertEqual(answer["cheapest_feasible"], "good")
        cheap = answer["variants"][0]
        self.assertEqual((cheap["status"], [reason["code"] for reason in cheap["reasons"]]), ("infeasible", ["regressions"]))

    def test_objectives_are_inclusive(self):
        self.make(baseline=answered("yyyyyyynnn", 0.3), same=answered("yyyyyyynnn", 0.1, 250), objectives={"minimum_pass_rate": 0.7, "maximum_cost_per_case_usd": 0.1, "maximum_latency_p95_ms": 250})
        self.assertEqual(self.statuses("same=same"), {"same": "front"})

    def test_objectives_just_missed_are_missed(self):
        for block, code in (
            ({"minimum_pass_rate": 0.7001}, "below_minimum_pass_rate"),
            ({"maximum_cost_per_case_usd": 0.0999}, "above_maximum_cost_per_case_usd"),
            ({"maximum_latency_p95_ms": 249.9}, "above_maximum_latency_p95_ms"),
        ):
            with self.subTest(code):
                self.make(baseline=answered("yyyyyyynnn", 0.3), same=answered("yyyyyyynnn", 0.1, 250), objectives=block)
                self.assertEqual(self.reasons("same", "same=same", status=1), [code])

    def test_the_reliability_block_asks_another_question(self):
        self.make(baseline=answered("yyyyynnnnn", 2), cheap=answered("yyyyynnnnn", 1))
        document = read_json(self.folder / "evaluation.json")
        write(self.folder / "evaluation.json", json.dumps({**document, "reliability": {}}))
        self.assertEqual(self.statuses("cheap=cheap"), {"cheap": "front"})

    def test_an_improvement_is_not_asked_of_the_baseline_itself(self):
        self.make(acceptance={"minimum_improvements": 1}, baseline=answered("yyyyynnnnn", 1), better=answered("yyyyyyyyyy", 2))
        self.assertEqual(self.statuses(), {"baseline": "front", "better": "front"})

    def test_without_a_baseline_a_note_says_what_was_not_asked(self):
        self.make(a=answered("yyyyyyyyyn", 1))
        answer = self.ask("a=a")
        self.assertEqual(answer["cheapest_feasible"], "a")
        self.assertIn("There is no baseline", answer["notes"][0])

    def test_a_hard_failure_is_infeasible_without_a_baseline_too(self):
        self.make(a=answered("yyyyyyyyyn", 1))
        write(self.folder / "evaluation.json", json.dumps({"evaluators": [{**CHECK, "severity": "hard"}]}))
        run_cli("evaluate", "money")
        self.assertEqual(self.reasons("a", "a=a", status=1), ["hard_failure"])


class Measured(ParetoTestCase):
    """What was not measured is not compared."""

    def test_one_trial_without_a_price_makes_the_variant_unpriced(self):
        lines = answered("yyyyyyyyyy", 1)
        del lines[4]["cost"]
        self.make(baseline=answered("yyyyynnnnn", 2), part=lines)
        self.assertEqual(self.reasons("part", "part=part", status=3), ["unpriced"])

    def test_trials_without_evidence_are_not_comparable(self):
        self.make(baseline=answered("yyyyynnnnn", 2), torn=answered("yyyyyyyyy-", 1))
        codes = self.reasons("torn", "torn=torn", status=3)
        self.assertIn("excluded_trials", codes)
        self.assertEqual(len(codes), len(set(codes)))

    def test_latency_counts_when_anybody_measured_it(self):
        self.make(baseline=answered("yyyyynnnnn", 2, 5), fast=answered("yyyyyyyyyy", 1, 5), silent=answered("yyyyyyyyyy", 1))
        self.assertEqual(self.statuses("fast=fast", "silent=silent"), {"fast": "front", "silent": "not_comparable"})
        self.assertEqual(self.ask("fast=fast")["axes"], ["quality", "cost", "latency"])

    def test_stale_results_are_not_comparable(self):
        self.make(baseline=answered("yyyyynnnnn", 2), old=answered("yyyyyyyyyy", 1))
        self.ask("old=old")
        write(self.folder / "evaluation.json", json.dumps({"evaluators": [{**CHECK, "value": "n"}]}))
        self.assertIn("stale_results", self.reasons("old", "old=old", status=3))

    def test_results_without_their_meta_file_are_not_comparable(self):
        self.make(baseline=answered("yyyyynnnnn", 2))
        path = write("elsewhere/x.evaluated.jsonl", "")
        self.assertEqual(self.reasons("x", f"x={path}", status=3), ["unknown_origin"])

    def test_results_of_another_folder_are_weighed_like_a_stage(self):
        self.make(baseline=answered("yyyyynnnnn", 2), far=answered("yyyyyyyyyy", 1))
        self.ask("far=far")
        for name in ("far.jsonl", "far.evaluated.jsonl", "far.evaluated.meta.json"):
            write(f"elsewhere/{name}", (self.folder / name).read_bytes())
        near, far = self.ask("near=far", "far=elsewhere/far.evaluated.jsonl")["variants"]
        self.assertEqual({**near, "name": ""}, {**far, "name": ""})

    def test_equal_variants_both_stay_and_the_intervals_say_not_separated(self):
        self.make(baseline=answered("yyyyynnnnn", 2), one=answered("yyyyyyyyyn", 1), two=answered("yyyyyyyyny", 1))
        answer = self.ask("one=one", "two=two")
        self.assertEqual((answer["front"], answer["not_separated"]), (["one", "two"], [["one", "two"]]))

    def test_the_front_is_that_of_the_definition_on_random_variants(self):
        draw = random.Random(11)
        stages = {f"v{n}": answered("".join(draw.choice("yn") for _ in range(10)), draw.choice([1, 2, 3]), draw.choice([5, 6])) for n in range(12)}
        self.make(**stages)
        entries = self.ask(*[f"{name}={name}" for name in stages])["variants"]
        points = {entry["name"]: (-entry["quality"]["value"], entry["mean_cost_usd"], entry["latency_p95_ms"]) for entry in entries}
        for entry in entries:
            own = points[entry["name"]]
            beaten = any(all(a <= b for a, b in zip(other, own, strict=True)) and other != own for other in points.values())
            self.assertEqual(entry["status"], "dominated" if beaten else "front")


class BadInput(ParetoTestCase):
    """One clear line."""

    def test_options_that_name_nothing(self):
        self.make(baseline=answered("yyyyynnnnn", 2))
        for option, word in (("small", "NAME=FILE"), ("=x", "NAME=FILE"), ("a=", "NAME=FILE"), ("a=no-such", "no stage"), ("a=b.txt", "no results file"), ("a=b.evaluated.jsonl", "does not exist")):
            with self.subTest(option):
                done = run_cli("pareto", "money", "--variant", option)
                self.assertEqual(done.status, 2)
                self.assertIn(word, done.stderr)

    def test_two_variants_of_one_name(self):
        self.make(baseline=answered("yyyyynnnnn", 2))
        self.assertIn("two variants", run_cli("pareto", "money", "--variant", "a=baseline", "--variant", "a=baseline").stderr)

    def test_an_unknown_objective_names_the_nearest(self):
        self.make(baseline=answered("yyyyynnnnn", 2))
        write(self.folder / "evaluation.json", json.dumps({"evaluators": [CHECK], "objectives": {"minimum_pas_rate": 0.5}}))
        done = run_cli("validate", "money")
        self.assertEqual(done.status, 1)
        self.assertIn("minimum_pass_rate", done.stdout + done.stderr)


class Page(ParetoTestCase):
    """pareto.html."""

    def test_hostile_names_stay_text_and_the_page_asks_for_nothing(self):
        hostile = "<img><script>alert(1)</script>\"'&"
        self.make(baseline=answered("yyyyynnnnn", 2), a=answered("yyyyyyyyyy", 1))
        self.ask(f"{hostile}=a")
        page = (self.folder / "pareto.html").read_text(encoding="utf-8")
        self.assertNotIn("<img", page)
        self.assertNotIn("<script>alert", page)
        self.assertIn("&lt;img", page)
        self.assertNotIn("http", page.replace("http-equiv", ""))

    def test_the_page_holds_the_values_of_the_file_and_the_reasons(self):
        self.make(baseline=answered("yyyyynnnnn", 2), a=answered("yyyyyyyyyn", 1), b=answered("yyyyyyyyyy"))
        self.ask("a=a", "b=b")
        page = (self.folder / "pareto.html").read_text(encoding="utf-8")
        for wanted in ("90\u00a0%", "$1.00", "0 of 10 measured trials have a price", "Cheapest that will do: a"):
            self.assertIn(wanted, page)

    def test_prices_of_every_size_can_be_drawn(self):
        for cost in (0.0, 5e-324, 1e-9, 3.3, 1e300):
            with self.subTest(cost):
                self.make(baseline=answered("yyyyynnnnn", cost), a=answered("yyyyyyyyyn", cost))
                self.ask("a=a")

    def test_the_holdout_is_only_counted(self):
        self.make(baseline=answered("yyyyynnnnn", 2), a=answered("nyyyyyyyyy", 1))
        lines = [{"id": f"c{n}", "input": n, "split": "holdout" if n < 3 else "development", "tags": ["CANARY"]} for n in range(10)]
        write(self.folder / "test_cases.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        run_cli("evaluate", "money")
        printed = run_cli("pareto", "money", "--variant", "a=a").stdout
        for text in (printed, (self.folder / "pareto.html").read_text(encoding="utf-8"), (self.folder / "pareto.json").read_text(encoding="utf-8")):
            self.assertNotIn("CANARY", text)
            self.assertNotIn("c0", text)


class Bundle(support.StrictTestCase):
    """What the page draws with."""

    def test_steps_of_an_axis_are_round(self):
        self.assertEqual([kaizen.round_step(span) for span in (1, 0.4, 8, 30, 0.07)], [0.5, 0.1, 2.0, 10.0, 0.02])


if __name__ == "__main__":
    unittest.main()

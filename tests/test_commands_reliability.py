"""`kaizen reliability`, `plan`, `noise` and `replay-decision`: what a person reads and what a program gets."""

import json
import math
import re
import shutil
import sys
import unittest

import support
from support import ROOT, kaizen, make_improvement, read_json, run_cli, write
from test_policy_reliability import CHECK, answers, suite

EXAMPLE = "examples/reliability"


class Improvement(support.TemporaryFolder):
    """An improvement with stages as letters."""

    def make(self, before, after, fields=lambda name: {}, **blocks):
        cases = [{"id": name, "input": name, **fields(name)} for name in before]
        make_improvement("change", cases, {"version": 1, "evaluators": [CHECK], **blocks}, baseline=answers(before), candidate=answers(after))

    def ask(self, *argv, status=0):
        done = run_cli(argv[0], "--json", *argv[1:])
        self.assertEqual(done.status, status, done.stderr)
        return json.loads(done.stdout)


class Reliability(Improvement):
    """The command."""

    def test_the_file_is_what_json_prints(self):
        self.make(*suite((10, "nnn", "yyy"), (15, "yyy", "yyy")))
        answer = self.ask("reliability", "change")
        document = read_json("improvements/change/reliability.json")
        self.assertEqual({key: answer[key] for key in document}, document)
        entry = document["candidates"][0]
        self.assertEqual((answer["reason"], entry["verdict"]), ("better", "better"))
        self.assertEqual(entry["delta"], {"numerator": 2, "denominator": 5, "value": 0.4})
        self.assertEqual(entry["sign_flip"]["better"], 2**-10)

    def test_the_same_evidence_gives_the_same_bytes(self):
        self.make(*suite((10, "nyn", "yyy"), (15, "yyy", "yyn")))
        run_cli("reliability", "change")
        with open("improvements/change/reliability.json", "rb") as file:
            first = file.read()
        run_cli("reliability", "change")
        with open("improvements/change/reliability.json", "rb") as file:
            self.assertEqual(file.read(), first)

    def test_a_person_reads_everything_that_the_decision_rests_on(self):
        self.make(*suite((6, "nyn", "yyn"), (1, "yy-", "yyy"), (15, "yyy", "yyn")))
        text = run_cli("reliability", "change").stdout
        for wanted in ("interval", "P(better)", "P(equal)", "sign-flip p", "of 66 planned trials", "6 up, 15 down", "newly flaky 15", "trial noise", "if they had failed"):
            self.assertIn(wanted, text)
        self.assertRegex(text, r"A suite of 22 cases at 3 trials shows a change of \d+\.\d points four times out of five")

    def test_one_trial_gives_mcnemars_test_and_says_what_it_cannot_know(self):
        self.make(*suite((7, "n", "y"), (3, "y", "n"), (15, "y", "y")))
        answer = self.ask("reliability", "change")
        entry = answer["candidates"][0]
        # 2 P(Bin(10, 1/2) ≤ 3) = 2 (1 + 10 + 45 + 120) / 1024
        self.assertEqual(entry["mcnemar"]["exact"], 0.34375)
        self.assertIsNone(entry["noise"])
        self.assertEqual(entry["flaky"]["candidate"]["unknown"], 25)
        self.assertIn("it takes two trials of each case", run_cli("reliability", "change").stdout)

    def test_several_candidates_share_their_level(self):
        before, after = suite((6, "nnn", "yyy"), (20, "yyy", "yyy"))
        self.make(before, after)
        for name in ("prompt-a", "prompt-b"):
            rows = answers(after if name == "prompt-a" else before)
            support.write_lines(f"improvements/change/{name}.jsonl", [{**row, "status": "completed"} for row in rows])
        answer = self.ask("reliability", "change", *(word for name in ("candidate", "prompt-a", "prompt-b") for word in ("--candidate", name)))
        entries = {entry["stage"]: entry for entry in answer["candidates"]}
        self.assertEqual(entries["candidate"]["sign_flip"]["better"], 2**-6)
        self.assertEqual(entries["candidate"]["sign_flip"]["adjusted"]["better"], 3 * 2**-6)
        self.assertEqual((entries["candidate"]["verdict"], entries["prompt-b"]["verdict"]), ("better", "insufficient_evidence"))
        self.assertEqual(entries["candidate"]["informative_needed"], 6)
        self.assertTrue(any("confirm it on cases that did not choose it" in note for note in answer["notes"]))

    def test_a_suite_that_is_fixed_as_a_whole_is_better(self):
        for before, after in (("nnn", "yyy"), ("nny", "nyy")):
            self.make(*suite((24, before, after)), reliability={})
            entry = self.ask("reliability", "change")["candidates"][0]
            self.assertEqual((entry["verdict"], entry["se"]), ("better", 0.0))
            self.assertEqual(self.ask("gate", "change")["recommendation"], "eligible")
            # All alike is no proof that the next will be: one of +1 and one of -1 are added.
            self.assertGreater(entry["smallest_effect"]["value"], 0.1)
            shutil.rmtree("improvements")

    def test_the_cost_of_a_trial_has_an_interval_over_cases(self):
        before, after = suite((10, "nyn", "yyn"), (14, "yyy", "yyy"))
        prices = {name: 0.01 + 0.001 * number for number, name in enumerate(before)}
        stages = {"baseline": answers(before), "candidate": [{**row, "cost": {"total_usd": prices[row["case_id"]]}} for row in answers(after)]}
        make_improvement("change", [{"id": name, "input": name} for name in before], {"version": 1, "evaluators": [CHECK]}, **stages)
        costs = self.ask("reliability", "change")["candidates"][0]["costs"]
        self.assertEqual(costs["baseline"], {"n": 0, "mean_usd": None, "interval": None, "small_sample": False})
        found = costs["candidate"]
        self.assertEqual((found["n"], found["mean_usd"], found["small_sample"]), (24, 0.0215, True))
        # Student's interval: 0.0215 ± 2.0687 · 0.00707107 / √24; the bootstrap limits of equally spaced values are close to it.
        for limit, student in zip(found["interval"], (0.018514, 0.024486), strict=True):
            self.assertAlmostEqual(limit, student, delta=0.0001)
        self.assertRegex(run_cli("reliability", "change").stdout, r"baseline not measured, candidate 0.0215 USD a trial \(0.0185\d* to 0.0244\d*\) over 24 cases")

    def test_two_cases_promise_nothing(self):
        self.make(*suite((2, "n", "y")))
        self.assertIn("A suite of 2 cases at 1 trial shows no change four times out of five, however large it is.", run_cli("reliability", "change").stdout)

    def test_groups_are_exploratory_and_adjusted(self):
        self.make(*suite((6, "n", "y"), (20, "y", "y")), fields=lambda name: {"tags": ["odd" if int(name[1:]) % 2 else "even"]})
        groups = self.ask("reliability", "change")["candidates"][0]["groups"]
        self.assertTrue(groups["exploratory"])
        # Three of three in each group: two-sided 1/4, times two.
        self.assertEqual([(entry["name"], entry["p"], entry["p_adjusted"]) for entry in groups["groups"]], [("even", 0.25, 0.5), ("odd", 0.25, 0.5)])
        self.assertIn("exploratory, not for deciding", run_cli("reliability", "change").stdout)

    def test_the_holdout_is_counted_and_never_named(self):
        self.make(*suite((12, "nyn", "yyn"), (12, "yyy", "yyn")), fields=lambda name: {"split": "holdout" if int(name[1:]) % 2 else "development", "tags": [f"tag-{name}"]})
        done = run_cli("reliability", "change")
        with open("improvements/change/reliability.json", encoding="utf-8") as file:
            texts = done.stdout + file.read()
        named = set(re.findall(r"\bc\d{4}\b", texts))
        self.assertTrue(named)
        self.assertFalse([name for name in named if int(name[1:]) % 2])
        self.assertIn("holdout case", done.stdout)

    def test_evaluators_that_differ_are_named_and_nothing_is_compared(self):
        self.make(*suite((6, "nnn", "yyy"), (20, "yyy", "yyy")))
        run_cli("evaluate", "change", "--stage", "baseline")
        evaluation = read_json("improvements/change/evaluation.json")
        evaluation["evaluators"].append({"id": "short", "type": "contains", "values": ["y"]})
        write("improvements/change/evaluation.json", json.dumps(evaluation))
        run_cli("evaluate", "change", "--stage", "candidate")
        entry = self.ask("reliability", "change")["candidates"][0]
        self.assertEqual((entry["n"], entry["verdict"], entry["evaluators_changed"]), (0, "insufficient_evidence", ["short"]))
        self.assertIn("incomparable_evaluators", [problem["code"] for problem in entry["problems"]])

    def test_a_stage_that_is_not_there_is_an_error_with_the_way_out(self):
        self.make(*suite((1, "n", "y")))
        done = run_cli("reliability", "change", "--candidate", "other")
        self.assertEqual(done.status, 2)
        self.assertIn("there is no stage 'other' yet", done.stderr)

    def test_the_page_and_the_comment_say_how_sure_it_is(self):
        self.make(*suite((6, "nyn", "yyn"), (20, "yyy", "yyn")))
        run_cli("review", "change")
        with open("improvements/change/review.html", encoding="utf-8") as file:
            page = file.read()
        for wanted in ("How sure is this?", 'class="strip"', "four times out of five", "6 gained (right)", "20 cases lost ground (left)", "95\u00a0% interval"):
            self.assertIn(wanted, page)
        with open("improvements/change/review.md", encoding="utf-8") as file:
            self.assertIn("How sure is this?", file.read())

    def test_a_tag_that_is_markup_stays_text(self):
        self.make(*suite((3, "n", "y"), (3, "y", "y")), fields=lambda name: {"tags": ["<img src=x onerror=alert(1)>"] if name == "c0001" else []})
        run_cli("review", "change")
        with open("improvements/change/review.html", encoding="utf-8") as file:
            self.assertNotIn("<img src=x", file.read())

    def test_a_hundred_thousand_cases_take_no_time_to_speak_of(self):
        """Interval, probability and sign-flip are sums; the rest of the time is reading."""
        found = kaizen.paired_mean({kaizen.exact_fraction(value): times for value, times in ((0.2, 12_000), (-0.2, 11_000), (0.4, 3_000), (0, 74_000))})
        self.assertEqual((found.n, found.informative, found.is_exact), (100_000, 26_000, True))


class Limits(support.StrictTestCase):
    """The limits of a rate, wherever they are told."""

    def test_a_limit_is_100_percent_only_if_it_is_exactly_that(self):
        self.assertEqual(kaizen.limits_text([0.0002, 0.9998], is_rate=True), "< 0.1 % to 99.9 %")
        self.assertEqual(kaizen.limits_text([0.0, 1.0], is_rate=True), "0 % to 100 %")
        rates = {"passed": 9999, "failed": 1, "errors": 0, "not_run": 0, "planned": 10000, "cases": 10000, "cases_measured": 10000}
        rates |= {"rate": {"numerator": 9999, "denominator": 10000}, "low": 0.99943, "high": 0.99998}
        self.assertIn("pass rate 99.99 % (99.9 % to 99.9 %) over", kaizen.rate_text(rates))


class BadInput(Improvement):
    """Nothing to compare is null with a reason; what is no evidence is an error with its line."""

    def entry(self):
        return self.ask("reliability", "change")["candidates"][0]

    def test_one_case_has_no_interval_and_no_certainty(self):
        self.make(*suite((1, "nnn", "yyy")))
        found = self.entry()
        self.assertEqual((found["interval"], found["reason"], found["smallest_effect"]), (None, "fewer_than_two_comparable_cases", None))
        self.assertEqual(found["reasons"], ["too_few_cases", "too_few_informative_cases"])
        self.assertIn("which says nothing", run_cli("reliability", "change").stdout)

    def test_no_pairs_have_no_change(self):
        self.make(*suite((2, "---", "yyy")))
        found = self.entry()
        self.assertEqual((found["delta"], found["reason"], found["probability"]["better"]), (None, "no_comparable_cases", None))
        self.assertEqual([found["sign_flip"][key] for key in ("better", "worse", "two_sided", "reason")], [None, None, None, "no_comparable_cases"])
        self.assertIn("no case has a verdict on both sides", run_cli("reliability", "change").stdout)

    def test_all_equal_is_no_evidence_and_no_point(self):
        self.make(*suite((30, "yyy", "yyy")))
        found = self.entry()
        self.assertEqual((found["sign_flip"]["better"], found["sign_flip"]["reason"]), (1.0, "no_discordant_pairs"))
        self.assertLess(found["interval"][0], -0.05)

    def test_repetitions_that_differ_per_case_are_counted_as_they_are(self):
        self.make(*suite((10, "nyn", "yyy"), (5, "yy", "y"), (5, "yyy", "yy-")))
        found = self.entry()
        self.assertEqual([found["rates"][role]["valid"] for role in ("baseline", "candidate")], [55, 45])
        self.assertEqual(found["rates"]["candidate"]["excluded"], 15)

    def test_not_a_number_is_refused_with_its_line(self):
        self.make(*suite((2, "y", "y")))
        path = "improvements/change/candidate.jsonl"
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        write(path, f"{lines[0]}\n{lines[1][:-1]}, \"cost\": {{\"total_usd\": NaN}}}}\n")
        done = run_cli("reliability", "change")
        self.assertEqual(done.status, 2)
        self.assertIn("candidate.jsonl:2", done.stderr)

    def test_a_score_outside_its_range_is_told_with_its_line_and_compares_nothing(self):
        self.make(*suite((2, "y", "y")))
        run_cli("evaluate", "change")
        path = "improvements/change/candidate.evaluated.jsonl"
        with open(path, encoding="utf-8") as file:
            text = file.read()
        write(path, text.replace('"score":1.0', '"score":1.5', 1).replace('"score":1,', '"score":1.5,', 1))
        self.assertIn("candidate.evaluated.jsonl:1", run_cli("validate", "change").stdout + run_cli("validate", "change").stderr)
        found = self.entry()
        self.assertEqual((found["n"], found["problems"][0]["code"]), (0, "invalid_evidence"))


class Gsm8k(support.TemporaryFolder):
    """Two real models on 200 problems, one trial each: 34 gained, 14 lost."""

    def test_it_is_mcnemars_test_as_scipy_has_it(self):
        """scipy.stats.binomtest(14, 48).pvalue is 0.00551520148550111."""
        shutil.copytree(ROOT / "examples" / "gsm8k", self.folder / "gsm8k")
        for stage, model in (("baseline", "6b_finetuning"), ("candidate", "175b_finetuning")):
            done = run_cli("run", "gsm8k", "--stage", stage, "--progress", "none", "--replay", f"gsm8k/answers/{model}.jsonl")
            self.assertEqual(done.status, 0, done.stderr)
        entry = json.loads(run_cli("reliability", "gsm8k", "--json").stdout)["candidates"][0]
        self.assertEqual(entry["moved"], {"up": 34, "down": 14, "equal": 152})
        self.assertEqual((entry["delta"]["value"], entry["verdict"]), (0.1, "better"))
        for found in (entry["mcnemar"]["exact"], entry["sign_flip"]["two_sided"]):
            self.assertAlmostEqual(found, 0.00551520148550111, delta=1e-11)


class Plan(Improvement):
    """The command before a run."""

    def test_without_a_pilot_it_says_what_it_assumes(self):
        make_improvement("change", [{"id": "a", "input": 1}], {"version": 1, "evaluators": [CHECK]})
        answer = self.ask("plan", "change", "--cases", "100", "--trials", "5", "--effect", "0.05")
        # The table of a typical suite: 100 cases × 5 trials show 8.5 points.
        self.assertAlmostEqual(answer["cells"][0]["smallest_effect"], 0.085, delta=0.0005)
        self.assertIsNone(answer["cells"][0]["cost_usd"])
        # 1.1 × (1.959964 + 0.841621)^2 × (0.05 + 0.042) / 0.0025 = 317.7
        self.assertEqual(answer["needed"], [{"trials": 5, "cases": 318}])
        self.assertIn("pass rate assumed: 0.7", answer["sources"])

    def test_a_pilot_gives_scatter_cost_and_time(self):
        before, after = suite((4, "nyn", "yyn"), (4, "yyy", "yyy"))
        cases = [{"id": name, "input": name} for name in before]
        measured = {"cost": {"total_usd": 0.25}, "execution": {"duration_ms": 3000, "exit_code": 0, "attempts": [], "started_at": "", "worker": 0}}
        stages = {stage: [{**row, **measured} for row in answers(table)] for stage, table in (("baseline", before), ("candidate", after))}
        make_improvement("change", cases, {"version": 1, "evaluators": [CHECK]}, **stages)
        answer = self.ask("plan", "change", "--cases", "20", "--trials", "3", "--jobs", "2")
        self.assertEqual(answer["sources"], ["scatter measured on 8 cases of both stages"])
        cell = answer["cells"][0]
        self.assertEqual((cell["cost_usd"], cell["seconds"]), (20 * 3 * 2 * 0.25, 20 * 3 * 2 * 3.0 / 2))

    def test_only_stages_of_which_something_was_measured_are_named(self):
        lost = [{"case_id": "a", "trial": trial, "status": "error", "error": {"class": "agent", "type": "X", "message": "x"}} for trial in (1, 2)]
        before = [{"case_id": "a", "trial": trial, "output": text} for trial, text in ((1, "yes"), (2, "no"))]
        make_improvement("change", [{"id": "a", "input": 1}], {"version": 1, "evaluators": [CHECK]}, baseline=before, candidate=lost)
        self.assertIn("scatter of trials measured on baseline", self.ask("plan", "change")["sources"])

    def test_a_cost_beyond_all_numbers_is_told_as_that(self):
        before, after = suite((4, "nyn", "yyn"), (4, "yyy", "yyy"))
        measured = {"cost": {"total_usd": 1e308}, "execution": {"duration_ms": 1e300, "exit_code": 0, "attempts": [], "started_at": "", "worker": 0}}
        stages = {stage: [{**row, **measured} for row in answers(table)] for stage, table in (("baseline", before), ("candidate", after))}
        make_improvement("change", [{"id": name, "input": name} for name in before], {"version": 1, "evaluators": [CHECK]}, **stages)
        self.assertIsNone(self.ask("plan", "change", "--cases", "20", "--trials", "3")["cells"][0]["cost_usd"])
        for argv in (("plan", "change"), ("gate", "change"), ("review", "change"), ("reliability", "change")):
            text = run_cli(*argv).stdout
            self.assertLess(max(map(len, re.findall(r"[0-9,.]+", text))), 30, argv)
        self.assertIn("too large", run_cli("plan", "change").stdout)
        with open("improvements/change/review.html", encoding="utf-8") as page:
            self.assertIn("$1e+308", page.read())

    def test_a_large_suite_can_be_planned_and_a_tiny_one_shows_nothing(self):
        make_improvement("change", [{"id": "a", "input": 1}], {"version": 1, "evaluators": [CHECK]})
        self.assertEqual(self.ask("plan", "change", "--cases", "100000", "--trials", "1")["cells"][0]["cases"], 100_000)
        self.assertRegex(run_cli("plan", "change", "--cases", "1", "--trials", "1").stdout, r"1 case \*\s+none")
        self.assertIn("is below 0.0001", run_cli("plan", "change", "--effect", "1e-300").stderr)

    def test_clusters_are_no_independent_cases(self):
        cases = [{"id": f"c{number}", "input": 1, "cluster": f"k{number // 10}"} for number in range(40)]
        make_improvement("change", [*cases, {"id": "alone", "input": 1}], {"version": 1, "evaluators": [CHECK]})
        answer = self.ask("plan", "change", "--trials", "1", "--rate", "0.7", "--noise", "0.5", "--change", "0.05", "--alike", "0.4", "--effect", "0.2")
        # Four clusters of ten and one of one: the mean of 1 / size is 0.28.
        variance = 0.05 * (0.4 + 0.6 * 0.28) + 2 * 0.21 * 0.5 * 0.28
        effect = answer["design_effect"]
        self.assertAlmostEqual(effect, variance / 5 / ((0.05 + 0.21) / 41), delta=1e-12)
        self.assertIn(f"the 41 cases are 5 clusters, worth about {round(41 / effect)} independent cases at one trial", " ".join(answer["sources"]))
        self.assertIn("correlation of the change within a cluster assumed: 0.4", answer["sources"])
        (own,) = [cell for cell in answer["cells"] if cell["cases"] == 41]
        self.assertAlmostEqual(own["smallest_effect"], 2.8015852181 * (variance / 5) ** 0.5, delta=1e-9)
        self.assertEqual((answer["unit"], answer["units"]), ("cluster", 5))
        self.assertEqual(answer["needed"][0]["cases"], math.ceil(1.1 * 2.8015852181**2 * variance / 0.04 * 41 / 5))

    def test_with_a_pilot_of_clusters_the_table_says_what_reliability_says(self):
        before, after = suite((16, "nyn", "yyn"), (16, "yyy", "yyn"), (16, "nnn", "yyy"), (16, "yny", "nny"))
        for trials in ("3", "1"):
            shown = [{name: letters[: int(trials)] for name, letters in side.items()} for side in (before, after)]
            self.make(*shown, fields=lambda name: {"cluster": f"k{int(name[1:]) // 4}"} if name != "c0000" else {})
            plan = self.ask("plan", "change", "--cases", "64", "--trials", trials)
            found = self.ask("reliability", "change")["candidates"][0]
            self.assertEqual(found["smallest_effect"]["n"], plan["units"])
            self.assertAlmostEqual(plan["cells"][0]["smallest_effect"], found["smallest_effect"]["value"], delta=1e-8)
            shutil.rmtree("improvements")

    def test_a_share_is_between_0_and_1(self):
        make_improvement("change", [{"id": "a", "input": 1}], {"version": 1, "evaluators": [CHECK]})
        done = run_cli("plan", "change", "--effect", "5")
        self.assertEqual(done.status, 2)
        self.assertIn("is not a number between 0 and 1", done.stderr)


class Noise(Improvement):
    """The unchanged agent against itself."""

    def test_the_flip_rate_is_that_of_all_pairs_of_passes(self):
        before, after = suite((2, "yyn", "y"), (1, "yyy", "y"), (1, "nnn", "y"))
        self.make(before, after)
        answer = self.ask("noise", "change", "--stage", "baseline")
        # Two of the three pairs of "yyn" disagree, in two of four cases.
        self.assertAlmostEqual(answer["flip_rate"], 1 / 3, delta=1e-15)
        self.assertAlmostEqual(answer["expected_changes"], 4 / 6, delta=1e-15)
        self.assertEqual([entry["passed"] for entry in answer["by_pass"]], [3, 3, 1])
        self.assertEqual(answer["by_evaluator"], [{"id": "right", "type": "equals", "flip_rate": 1 / 3, "cases": 4, "owner": "agent"}])

    def test_it_runs_the_agent_as_often_as_asked(self):
        make_improvement("change", [{"id": "a", "input": 1}, {"id": "b", "input": 2}], {"version": 1, "evaluators": [CHECK]})
        agent = "import json, os; print(json.dumps({'output': 'yes' if os.environ['KAIZEN_TRIAL'] != '2' else 'no'}))"
        answer = self.ask("noise", "change", "--passes", "3", "--progress", "none", "--", sys.executable, "-c", agent)
        self.assertEqual((answer["passes"], answer["stability"]["flaky"]), (3, 2))

    def test_one_pass_measures_no_noise(self):
        self.make(*suite((2, "y", "y")))
        answer = self.ask("noise", "change", "--stage", "baseline")
        self.assertEqual((answer["flip_rate"], answer["flip_rate_reason"], answer["reason"]), (None, "fewer_trials_than_k", "not_measured"))


    def test_evidence_that_is_there_is_not_replaced(self):
        self.make(*suite((2, "y", "n")))
        with open("improvements/change/baseline.jsonl", "rb") as file:
            kept = file.read()
        answer = self.ask("noise", "change", "--stage", "baseline", "--", sys.executable, "-c", "print(1)", status=5)
        self.assertEqual(answer["reason"], "existing_stage")
        with open("improvements/change/baseline.jsonl", "rb") as file:
            self.assertEqual(file.read(), kept)


class ReplayDecision(Improvement):
    """Kept evidence under another policy."""

    def test_a_stricter_policy_flips_the_recommendation_and_writes_nothing(self):
        self.make(*suite((6, "n", "y"), (20, "y", "y")))
        run_cli("evaluate", "change")
        with open("improvements/change/baseline.evaluated.jsonl", "rb") as file:
            before = file.read()
        write("strict.json", json.dumps({"version": 1, "evaluators": [CHECK], "reliability": {}}))
        answer = self.ask("replay-decision", "change", "--policy", "strict.json")
        self.assertEqual((answer["flips"], answer["before"]["recommendation"], answer["after"]["recommendation"]), (True, "eligible", "manual_review"))
        with open("improvements/change/baseline.evaluated.jsonl", "rb") as file:
            self.assertEqual(file.read(), before)

    def test_a_changed_evaluator_is_asked_about_the_kept_answers(self):
        self.make(*suite((2, "n", "y"), (2, "y", "y")))
        write("lenient.json", json.dumps({"version": 1, "evaluators": [{"id": "right", "type": "contains", "values": ["o"]}]}))
        answer = self.ask("replay-decision", "change", "--policy", "lenient.json")
        self.assertEqual([entry["after"] for entry in answer["cases"]], ["regressed", "regressed"])

    def test_the_trials_that_are_there_now_count_and_not_those_evaluated_before(self):
        make_improvement("change", [{"id": "a", "input": 1}], {"version": 1, "evaluators": [CHECK]})
        agent = ["--", sys.executable, "-c", "print('{\"output\": \"yes\"}')"]
        for stage in ("baseline", "candidate"):
            run_cli("run", "change", "--stage", stage, "--repetitions", "3", *agent)
        run_cli("evaluate", "change")
        run_cli("run", "change", "--stage", "baseline", "--overwrite", *agent)
        answer = self.ask("replay-decision", "change", "--policy", "improvements/change/evaluation.json")
        self.assertEqual(answer["after"]["rates"]["baseline"]["planned"], 1)

    def test_a_broken_policy_is_told_with_its_line(self):
        self.make(*suite((1, "n", "y")))
        write("broken.json", '{"version": 1,\n "evaluators": [],\n "acceptence": {}}')
        done = run_cli("replay-decision", "change", "--policy", "broken.json")
        self.assertEqual(done.status, 2)
        self.assertIn("broken.json:3", done.stderr)


class Example(support.TemporaryFolder):
    """examples/reliability: a clean improvement on one run, withheld when repeated."""

    def setUp(self):
        super().setUp()
        shutil.copytree(ROOT / EXAMPLE, self.folder / EXAMPLE)

    def run_both(self, repetitions):
        for stage in ("baseline", "candidate"):
            done = run_cli("run", EXAMPLE, "--stage", stage, "--overwrite", "--repetitions", repetitions, "--progress", "none", "--replay", f"{EXAMPLE}/answers/{stage}.jsonl")
            self.assertEqual(done.status, 0, done.stderr)
        run_cli("evaluate", EXAMPLE)
        return json.loads(run_cli("gate", EXAMPLE, "--json").stdout)

    def test_one_run_looks_like_a_clean_improvement_and_five_withhold_it(self):
        once = self.run_both(1)
        self.assertEqual((once["recommendation"], once["counts"]["improved"], once["counts"]["regressed"]), ("eligible", 5, 0))
        self.assertEqual([once["rates"][role]["passed"] for role in ("baseline", "candidate")], [15, 20])
        often = self.run_both(5)
        self.assertEqual([often["rates"][role]["passed"] for role in ("baseline", "candidate")], [86, 87])
        answer = json.loads(run_cli("replay-decision", EXAMPLE, "--policy", f"{EXAMPLE}/strict.json", "--json").stdout)
        self.assertEqual((answer["before"]["recommendation"], answer["after"]["recommendation"]), ("eligible", "manual_review"))
        self.assertEqual([reason["code"] for reason in answer["after"]["reasons"]], ["reliability_not_separated"])
        shutil.copyfile(f"{EXAMPLE}/strict.json", f"{EXAMPLE}/evaluation.json")
        self.assertEqual(run_cli("gate", EXAMPLE).status, 3)


if __name__ == "__main__":
    unittest.main()

"""Which steps of the guide are done, from files alone: done, not done, or unknown, and never done for want of a look."""

import hashlib
import json
import unittest
from unittest import mock

import measuring_fixture
import support
from support import kaizen, run_cli, write, write_lines

IDS = [f"G{number}" for number in range(1, 19)]
SECTIONS = "# demo\n\n## Goal\n\nFewer wrong dates.\n\n## Non-goals\n\nTone.\n\n## Owner\n\nAnn\n\n## Afterwards\n\nAnn, every Friday.\n"
RUN = {"id": "r0009", "state": "completed", "diagnostic": True, "limited": False, "passes": 1}
METRIC = {"name": "accuracy", "aggregation": "mean", "direction": "higher"}


def traces(number, source="production"):
    return [{"id": f"t{each}", "source": source, "input": each} for each in range(number)]


def notes(number, by="Ann"):
    return [{"trace": f"t{each}", "note": "nothing", "by": by, "at": "2026-03-03"} for each in range(number)]


def label(name="dates", **more):
    return {"id": name, "definition": "a wrong date", "example": "t1", "traces": ["t1", "t2"], "decision": "eval", **more}


def case(number, **more):
    return {"id": f"c{number}", "input": f"question {number}", "tags": ["dates"], "source": {"kind": "production"}, **more}


def run(variant, value=None, n=30, **counts):
    result = {"status": "available", "value": value, "n": n, "planned": n} if value is not None else {"status": "unavailable", "reason": "x", "n": 0, "planned": n}
    return {**RUN, "variant": variant, "metric": METRIC, "result": result, "counts": counts, "population": {"selected_item_ids": ["i"] * n}}


class Steps(measuring_fixture.CampaignLab):
    """One step at a time, in a workspace without a campaign."""

    def setUp(self):
        super().setUp()
        self.guide = self.repo / "kaizen/systems/demo/guide"
        support.remove_tree(self.repo / "kaizen/.kaizen/campaigns")

    def view(self):
        return kaizen.GuideView(kaizen.find_workspace(), "demo")

    def row(self, step, view=None):
        """(done, evidence) of *step*."""
        rows = {each["id"]: each for each in kaizen.guide_rows(view or self.view())}
        self.assertEqual(bool(rows[step]["command"]), rows[step]["done"] is not True)
        return rows[step]["done"], rows[step]["evidence"]

    def check(self, step, done, evidence):
        found = self.row(step)
        self.assertEqual(found[0], done, found)
        self.assertIn(evidence, found[1])

    def put(self, name, content):
        path = self.guide / name
        if name.endswith(".jsonl"):
            write_lines(path, content)
        else:
            write(path, json.dumps(content))

    def test_nothing_is_done_in_a_new_system(self):
        run_cli("create", "system", "fresh")
        rows = kaizen.guide_rows(kaizen.GuideView(kaizen.find_workspace(), "fresh"))
        self.assertEqual([row["id"] for row in rows], IDS)
        self.assertEqual([row["id"] for row in rows if row["done"]], [])

    def test_g1_wants_goal_non_goals_and_an_owner(self):
        self.check("G1", False, "system.md lacks goal, non-goals and owner")
        path = self.repo / "kaizen/systems/demo/system.md"
        write(path, path.read_text().replace("# demo\n", SECTIONS))
        self.check("G1", True, "owner: Ann")
        self.check("G18", True, "Ann, every Friday.")

    def test_g2_wants_something_mutable_and_an_answer(self):
        self.check("G2", False, "1 mutable file; no run has answered yet")
        view = self.view()
        view.known["runs"] = [run("smoke", 1, ok=1)]
        self.assertEqual(self.row("G2", view), (True, "1 mutable file; r0009 answered"))

    def test_g3_counts_traces_with_a_source(self):
        self.put("traces.jsonl", traces(49))
        self.check("G3", False, "49 traces with a source: 49 production")
        self.put("traces.jsonl", traces(50, "synthetic"))
        self.check("G3", True, "50 synthetic")
        self.put("traces.jsonl", [{**each, "source": "made up"} for each in traces(60)])
        self.check("G3", False, "0 traces with a source; 60 without")

    def test_g4_counts_what_a_person_noted_and_waits_for_quiet(self):
        self.put("traces.jsonl", traces(60))
        self.put("notes.jsonl", [*notes(29), *notes(29)])
        self.check("G4", False, "29 traces of 60")
        self.put("notes.jsonl", [*notes(29), {"trace": "t29", "note": "x"}, {"trace": "t99", "note": "x", "by": "Ann"}])
        self.check("G4", False, "29 traces of 60")
        self.put("notes.jsonl", notes(30))
        self.check("G4", True, "30 traces of 60 noted by a person")
        self.put("labels.json", {"labels": [label(traces=["t1", "t20"]), label("tone", traces=["t15"])]})
        self.check("G4", False, "no new kind in the last 14")
        self.put("notes.jsonl", notes(36))
        self.check("G4", True, "no new kind in the last 20")

    def test_g5_wants_whole_labels_that_a_person_named(self):
        self.put("traces.jsonl", traces(60))
        self.put("labels.json", {"labels": [label()]})
        self.check("G5", False, "1 label; no person has named them")
        self.put("labels.json", {"named_by": "Ann", "labels": [label(example="t999")]})
        self.check("G5", False, "without definition, example or traces: dates")
        self.put("labels.json", {"named_by": "Ann", "labels": [label(str(number)) for number in range(9)]})
        self.check("G5", False, "9 labels")
        self.put("labels.json", {"named_by": "Ann", "labels": [label()]})
        self.check("G5", True, "1 label, named by Ann")

    def test_g6_wants_a_decision_of_each_label(self):
        for labels, done, told in (
            ([], False, "no labels"),
            ([label(), label("b", decision="")], False, "1 undecided"),
            ([label(decision="later")], False, "1 later"),
            ([label(), label("b", decision="fixed")], False, "1 to be fixed without a commit"),
            ([label(), label("b", decision="fixed", commit="abc")], True, "1 eval and 1 fixed"),
        ):
            self.put("labels.json", {"labels": labels})
            self.check("G6", done, told)

    def test_g7_wants_the_smallest_gain_and_guards_or_a_word(self):
        self.check("G7", False, "accuracy, mean, higher is better; no smallest gain worth having")
        for draft, done in (
            ({"min_effect": 0.02}, False),
            ({"min_effect": 0.02, "guards": []}, False),
            ({"min_effect": 0, "guards": [{"metric": "cost_usd", "margin": 0.1}]}, False),
            ({"min_effect": True, "guards": [{"metric": "cost_usd", "margin": 0.1}]}, False),
            ({"min_effect": 0.02, "guards": [], "no_guards_because": "it costs nothing"}, True),
            ({"min_effect": 0.02, "guards": [{"metric": "cost_usd", "margin": 0.1}]}, True),
        ):
            self.put("metric.json", draft)
            self.assertEqual(self.row("G7")[0], done, draft)

    def test_g8_looks_at_sources_repeats_secrets_and_labels(self):
        self.put("labels.json", {"labels": [label(), label("plain", decision="later")]})
        items = self.repo / "kaizen/systems/demo/items.jsonl"
        good = [case(number) for number in range(30)]
        for cases, done, told in (
            (good, True, "30 development cases; personal data"),
            (good[:29], False, "29 development cases"),
            ([*good, case(31, input="question 1")], False, "1 repeated"),
            ([*good, {"id": "x", "input": "x"}], False, "1 without a source"),
            ([*good, case(31, input="key ghp_" + "a1B2" * 9)], False, "1 with a secret in it"),
            ([{**each, "tags": ["dates"] if number < 4 else []} for number, each in enumerate(good)], False, "fewer than 5 for dates"),
            ([*good, {**case(99, input="secret word"), "split": "holdout"}], True, "30 development cases"),
        ):
            write_lines(items, cases)
            self.check("G8", done, told)
        write(items, "{\n")
        self.assertEqual(self.row("G8")[0], False)

    def test_g9_wants_the_holdout_outside_and_unchanged_and_knows_when_it_cannot_see(self):
        self.check("G9", False, "names no holdout_file")
        held = write(self.folder / "sealed.jsonl", "{}\n")
        digest = hashlib.sha256(held.read_bytes()).hexdigest()
        self.put("split.json", {"holdout_file": str(held), "sha256": digest})
        self.check("G9", True, "lies outside the repository, as it was split")
        write(held, "{}\n{}\n")
        self.check("G9", False, "is not the one that was split")
        held.unlink()
        self.check("G9", None, "cannot be seen from here")
        self.put("split.json", {"holdout_file": str(write(self.repo / "held.jsonl", "{}\n")), "sha256": digest})
        self.check("G9", False, "inside the repository")

    def test_g10_wants_two_raters_who_agree(self):
        def rated(agreeing, number=20):
            for each in range(number):
                yield {"case_id": f"c{each}", "rater": "Ann", "label": "pass" if each % 2 else "fail"}
                yield {"case_id": f"c{each}", "rater": "Bo", "label": ("pass" if each % 2 else "fail") if each < agreeing else "pass"}

        self.check("G10", False, "0 raters")
        self.put("ratings.jsonl", list(rated(20)))
        self.check("G10", True, "Ann and Bo on 20 cases: kappa 1.00")
        self.put("ratings.jsonl", list(rated(19, 19)))
        self.check("G10", False, "on 19 cases")
        self.put("ratings.jsonl", list(rated(8)))  # 12 left, 6 of them differ: 14 of 20 alike, half by chance
        self.check("G10", False, "kappa 0.40")
        self.put("ratings.jsonl", [{"case_id": f"c{each}", "rater": rater, "label": "pass"} for each in range(20) for rater in ("Ann", "Bo")])
        self.check("G10", None, "no_expected_disagreement")

    def test_g11_wants_both_rates_on_fifty_cases(self):
        def graded(right, wrong, side, first):
            pairs = [(side, side)] * right + [(side, "fail" if side == "pass" else "pass")] * wrong
            return [{"case_id": f"c{first + number}", "human": human, "grader": grader} for number, (human, grader) in enumerate(pairs)]

        self.put("grader.jsonl", graded(30, 0, "pass", 0) + graded(16, 4, "fail", 100))
        self.check("G11", True, "true passes 30 of 30 (89% to 100%); true fails 16 of 20 (58% to 92%)")
        self.put("grader.jsonl", graded(30, 0, "pass", 0) + graded(15, 5, "fail", 100))
        self.check("G11", False, "true fails 15 of 20")
        self.put("grader.jsonl", graded(60, 0, "pass", 0))
        self.check("G11", False, "true fails 0 of 0")
        self.put("grader.jsonl", graded(25, 0, "pass", 0) + graded(24, 0, "fail", 100))
        self.check("G11", False, "49 graded cases")

    def stubs(self, *runs):
        view = self.view()
        view.known["runs"] = list(runs)
        return view

    def test_g12_wants_three_stubs_of_which_nothing_counts(self):
        self.check("G12", False, "not run: stub-crash, stub-nan and stub-slow")
        runs = [run("stub-crash", 0, fail_error=3), run("stub-nan", 0, fail_error=3), run("stub-slow", None, timeout=3)]
        runs[2]["state"] = "incomplete"
        self.assertEqual(self.row("G12", self.stubs(*runs))[0], True)
        self.assertIn("scored as if nothing had happened: stub-nan", self.row("G12", self.stubs(runs[0], run("stub-nan", 0.5, ok=3), runs[2]))[1])

    def test_g13_wants_what_is_known_to_come_out(self):
        self.put("metric.json", {"chance": 0.5})
        names = ("stub-perfect", "stub-empty", "stub-shuffled", "stub-hostile")
        for values, done in (
            ((1, 0, 0.5, 0), True),
            ((1, 0, 0.6, 0.6), True),  # 0.66 is the upper end of the interval of 15 of 30
            ((0.9, 0, 0.5, 0), False),
            ((1, 0.1, 0.5, 0), False),
            ((1, 0, 0.9, 0), False),
            ((1, 0, 0.5, 1), False),
        ):
            view = self.stubs(*[run(name, value, ok=30) for name, value in zip(names, values, strict=True)])
            self.assertEqual(self.row("G13", view)[0], done, values)
        view = self.stubs(*[run(name, 1) for name in names[:3]], run(names[3]))
        self.assertEqual(self.row("G13", view), (False, "perfect 1, empty 1, shuffled 1 and hostile unknown"))
        self.put("metric.json", {})
        self.assertEqual(self.row("G13", self.stubs(*[run(name, 1) for name in names]))[0], None, "chance is not known")

    def test_g14_is_unknown_until_a_person_says_how_many_they_read(self):
        view = self.stubs(run("look", 1, ok=10))
        self.assertEqual(self.row("G14", self.stubs(run("stub-nan", 1)))[0], False)
        self.assertEqual(self.row("G14", view)[0], None)
        for words, done in ((["--count", "9"], False), ([], None), (["--count", "10"], True)):
            done_process = run_cli("guide", "confirm", "G14", "--by", "Ann", "--because", "all right", *words)
            self.assertEqual(done_process.status, 0, done_process.stderr)
            self.assertEqual(self.row("G14", self.stubs(run("look", 1, ok=10)))[0], done)

    def test_a_broken_file_is_not_done_and_says_where(self):
        write(self.guide / "traces.jsonl", "{}\n{\n")
        self.check("G3", False, "traces.jsonl:2")

    def test_what_a_person_states_is_shown_with_name_and_time_and_counts_where_it_may(self):
        with mock.patch.dict("os.environ", {"CLAUDECODE": "1"}):
            for step in ("G9", "G3"):
                told = run_cli("guide", "confirm", step, "--system", "demo", "--by", "Ann", "--because", "it is in a safe")
                self.assertIn("recorded from inside a coding agent: claude-code", told.stdout)
        self.check("G9", True, "; Ann on 20")
        self.check("G9", True, "it is in a safe")
        self.check("G3", False, "it is in a safe")
        (line,) = [each for each in support.read_lines(self.guide / "statements.jsonl") if each["step"] == "G9"]
        self.assertEqual((line["by"], line["via"], line["text"]), ("Ann", "claude-code", "it is in a safe"))

    def test_statements_want_a_name_and_words(self):
        for words in (["--by", " ", "--because", "x"], ["--by", "Ann", "--because", ""], ["--by", "Ann", "--because", "x", "--count", "-1"]):
            self.assertEqual(run_cli("guide", "confirm", "G1", *words).status, 2, words)
        self.assertFalse((self.guide / "statements.jsonl").exists())

    def test_the_files_of_the_guide_lock_nothing(self):
        self.put("traces.jsonl", traces(3))
        workspace = kaizen.find_workspace()
        self.assertEqual([path for path in kaizen.locked_files(workspace, kaizen.load_system(workspace, "demo")) if "guide" in path], [])


class Order(support.StrictTestCase):
    def test_noise_waits_for_a_campaign(self):
        def following(*left):
            return (kaizen.next_row([{"id": each, "done": None if each in left else True} for each in IDS]) or {"id": None})["id"]

        self.assertEqual([following(), following("G3", "G9"), following("G15", "G16", "G17"), following("G15", "G17")], [None, "G3", "G16", "G17"])
        self.assertEqual([following("G15", "G18"), following("G18")], ["G15", "G18"])


class Campaign(measuring_fixture.CampaignLab):
    """The steps that a campaign shows."""

    def rows(self):
        return {each["id"]: each for each in json.loads(run_cli("doctor", "--guide", "--json").stdout)["steps"]}

    def test_opening_sealing_noise_and_headroom(self):
        rows = self.rows()
        self.assertEqual([rows[step]["done"] for step in ("G9", "G15", "G16", "G17")], [True, False, False, True])
        self.assertIn("30 cases sealed when c1 opened", rows["G9"]["evidence"])
        self.begin()
        rows = self.rows()
        self.assertIn("smallest gain that can be seen: 0.", rows["G15"]["evidence"])
        self.assertRegex(rows["G16"]["evidence"], r"^r0001: \d+(\.\d)? % of the range; \d+ cases? at the worst always")
        self.kaizen("noise", "--system", "demo", "--accept", "Ann: we look for large effects")
        self.assertTrue(self.rows()["G15"]["done"])
        self.assertIn("accepted: Ann: we look for large effects", self.rows()["G15"]["evidence"])
        self.assertNotIn(measuring_fixture.CANARY, json.dumps(self.rows()))


class Doctor(support.TemporaryFolder):
    """`kaizen doctor --guide` where there is little to look at."""

    def guide(self, *words, status=0):
        done = run_cli("doctor", "--guide", "--json", *words)
        self.assertEqual(done.status, status, done.stderr)
        return json.loads(done.stdout)

    def test_it_says_what_to_make_first(self):
        found = self.guide()
        self.assertEqual((found["done"], found["of"], found["step"], found["next"]), (0, 18, "G1", "kaizen init"))
        run_cli("init")
        self.assertEqual(self.guide()["next"], "kaizen create system ID")
        run_cli("create", "system", "one")
        self.assertEqual((self.guide()["system"], self.guide()["step"]), ("one", "G1"))
        run_cli("create", "system", "two")
        self.assertIn("which system?", self.guide(status=2)["message"])
        self.assertEqual(self.guide("--system", "two")["system"], "two")
        self.assertEqual(self.guide("--system", "three", status=2)["reason"], "no_system")


if __name__ == "__main__":
    unittest.main()

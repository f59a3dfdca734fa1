"""campaigns/screening.py: which runs may begin in a campaign, and what one pass says."""

import json
import os
import subprocess
from pathlib import Path
from unittest import mock

import measuring_fixture
from measuring_fixture import CANARY, DEVELOPMENT, Killed, QuickEval, killed_at
from support import kaizen, run_cli, write, write_lines

RUN = ("run", "--system", "demo", "--variant", "v1", "--hypothesis", "if so, then better")


class Begun(measuring_fixture.CampaignLab):
    """After baseline and noise floor."""

    is_begun = True


class Unbegun(measuring_fixture.CampaignLab):
    """A campaign in which nothing ran; the eval is a process."""

    def test_the_baseline_is_the_first_full_run_of_the_unchanged_system(self):
        self.variant("early", 0.9)
        self.refused("no_baseline", *RUN)
        self.refused("not_baseline", "run", "--system", "demo", "--variant", "baseline")
        self.git("checkout", "-q", "HEAD~1")
        found = self.kaizen("run", "--system", "demo", "--variant", "baseline", "--diagnostic")
        self.assertEqual((found["run"]["campaign"]["purpose"], self.bodies("baseline")), ("diagnostic", []))
        answer = self.kaizen("run", "--system", "demo", "--variant", "baseline")
        self.assertEqual(self.bodies("baseline"), [{"run": answer["run"]["id"], "commit": self.git("rev-parse", "HEAD")}])
        self.assertEqual(answer["next"], "kaizen noise --system demo")
        items, seed = answer["run"]["population"]["selected_item_ids"], self.campaign.contract["seed"]
        self.assertEqual(items, sorted(items, key=lambda name: kaizen.fingerprint([seed, name])))
        self.refused("duplicate", "run", "--system", "demo", "--variant", "baseline")
        self.git("checkout", "-q", "main")
        self.refused("no_noise", *RUN)

    def test_the_eval_is_that_of_the_opening_and_works_in_the_tree_of_the_variant(self):
        """One run of the real thing: the agent's file is read in the tree at hand, the cases from the locked copy."""
        found = self.kaizen("run", "--system", "demo", "--variant", "baseline")["run"]
        self.assertEqual((found["state"], found["counts"]["ok"]), ("completed", DEVELOPMENT))
        self.assertEqual(found["hashes"]["locked"], self.campaign.contract["locked"])
        self.assertEqual({key: found["hashes"][key] for key in ("dataset", "eval", "system")}, self.campaign.contract["hashes"])

    def test_outside_a_campaign_runs_are_as_they_were_and_its_options_are_refused(self):
        with mock.patch.object(kaizen, "open_campaigns", lambda workspace, system="": []):
            found = self.kaizen("run", "--system", "demo", "--variant", "free")["run"]
            self.assertEqual((found["verdict"], "campaign" in found), ("unjudged", False))
            for option in (("--idea", "i1"), ("--label", "dates"), ("--predict", "0.1")):
                self.assertEqual(run_cli("run", "--system", "demo", "--variant", "free", *option).status, 2)
        self.assertEqual(len(self.campaign.events), 1)


class Preflight(Begun):
    """What forbids a run, each with its reason and nothing recorded as a run."""

    def forbidden(self, reason, *words):
        before = self.store.ids()
        document = self.refused(reason, *(words or RUN))
        self.assertEqual(self.store.ids(), before)
        return document

    def test_a_tree_that_is_no_commit(self):
        self.write_agent(0.9)
        self.forbidden("dirty_tree")

    def test_locked_files_and_what_system_md_says_of_scoring(self):
        own = self.repo / "kaizen/systems/demo"
        text = (own / "system.md").read_text()
        changes = (
            lambda: write(own / "eval.py", "print('cheat')\n"),
            lambda: write(own / "helper.py", "x = 1\n"),
            lambda: os.remove(own / "items.jsonl") or write_lines(own / "items.jsonl", [measuring_fixture.case(1)]),
            lambda: write(own / "system.md", text.replace("metric: accuracy", "metric: accuracy\nminimum: -1")),
            lambda: write(own / "system.md", text.replace("  - agent.json", "  - '**'")),
        )
        base = self.git("rev-parse", "HEAD")
        for number, change in enumerate(changes, 1):
            self.git("checkout", "-q", base)
            change()
            self.variant(f"cheat{number}", 0.9)
            self.forbidden("locked_changed", *RUN)
            self.assertEqual([body["kind"] for body in self.bodies("integrity")], ["locked_changed"] * number)
            self.forbidden("locked_changed", *RUN)
            self.assertEqual(len(self.bodies("integrity")), number, "the same breach is recorded once")

    def test_notes_and_the_best_run_may_change(self):
        own = self.repo / "kaizen/systems/demo"
        write(own / "system.md", (own / "system.md").read_text().replace("---\n# demo", "best_run: r0001\n---\n# demo\nmore notes"))
        write(own / "lessons.md", "learnt\n")
        self.variant("v1", 0.9)
        self.kaizen(*RUN)

    def test_what_lies_outside_the_mutable_globs(self):
        write(self.repo / "agent.py", "print(3)\n")
        self.variant("v1", 0.9)
        self.assertIn("agent.py", self.forbidden("out_of_scope")["message"])

    def test_a_tree_or_a_patch_that_was_measured_names_the_run(self):
        self.variant("v1", 0.9)
        run = self.kaizen(*RUN)["run"]["id"]
        self.assertIn(run, self.forbidden("duplicate", *RUN[:4], "again", *RUN[5:])["message"])
        self.assertIn(run, self.forbidden("duplicate")["message"])
        self.git("checkout", "-q", "HEAD~1")
        write(self.repo / "kaizen/systems/demo/lessons.md", "a note that decides nothing\n")
        self.commit("note")
        stored = self.bodies("noise")[0]["runs"][0]
        self.assertIn(stored, self.forbidden("duplicate", *RUN[:4], "renamed", *RUN[5:])["message"])
        found = self.kaizen(*RUN[:4], "look", "--diagnostic")["run"]
        self.assertEqual((found["campaign"]["purpose"], found["verdict"]), ("diagnostic", "unjudged"))

    def test_text_of_the_holdout_makes_the_variant_void_and_is_not_told(self):
        held = json.loads((self.sealed / "holdout.jsonl").read_text().splitlines()[3])
        self.variant("v1", 0.9, examples=[f"when it says {held['input']} then {held['expected']}, and so on and on"])
        done = run_cli(*RUN, "--json")
        self.assertEqual((done.status, json.loads(done.stdout)["reason"]), (5, "contaminated"))
        self.assertNotIn(CANARY, done.stdout + done.stderr)
        body = self.bodies("integrity")[0]
        self.assertEqual((body["kind"], body["variant"], body["verdict"]), ("contaminated", "v1", "void"))
        self.assertEqual(self.bodies("screen"), [])
        self.refused("contaminated", *RUN, "--diagnostic")

    def test_text_of_development_items_is_flagged(self):
        with mock.patch.object(kaizen, "scan_diff", lambda *args: kaizen.Contamination(0, ["d1", "d2", "d3"], False, [], [])):
            self.variant("v1", 0.9)
            answer = self.kaizen(*RUN)
        self.assertEqual(answer["screen"]["memorised"], 3)

    def test_a_hypothesis_is_needed_and_a_label_needs_items(self):
        self.variant("v1", 0.9)
        self.forbidden("hypothesis_missing", *RUN[:5])
        self.assertEqual(run_cli(*RUN, "--label", "nothing").status, 2)
        self.assertEqual(run_cli(*RUN[:5], "--idea", "i9").status, 2)
        self.assertEqual(self.bodies("screen"), [])

    def test_the_hypothesis_and_label_of_an_idea_are_taken_and_frozen(self):
        with kaizen.writing_journal(self.campaign, "ideas.jsonl") as log:
            log.append("idea", {"id": "i1", "title": "ask", "hypothesis": "if it asks …", "category": "c", "label": "dates", "predict": 0.1})
        self.variant("v1", 0.9)
        self.assertEqual(run_cli(*RUN[:5], "--idea", "i1", "--label", "plain").status, 2)
        answer = self.kaizen(*RUN[:5], "--idea", "i1", "--predict", "0.2")
        run, screen = answer["run"], answer["screen"]
        self.assertEqual((run["hypothesis"], run["title"], screen["label"], screen["idea"], screen["predict"]), ("if it asks …", "ask", "dates", "i1", 0.2))

    def test_a_person_who_paused_is_told_before_anything_else(self):
        write(self.repo / "kaizen/.kaizen/PAUSE", "")
        self.write_agent(0.9)
        self.forbidden("paused")


class Screens(Begun):
    """Verdicts of one pass."""

    def test_verdicts_of_better_equal_and_worse_variants(self):
        for name, rate, verdict in (("up", 0.95, "promising"), ("down", 0.05, "worse")):
            self.git("checkout", "-q", "main")
            self.variant(name, rate)
            answer = self.screen(name)
            self.assertEqual((answer["screen"]["verdict"], answer["reason"], answer["screen"]["leader"]), (verdict, verdict, "baseline"))
            self.assertIn(name, answer["message"])
        self.assertEqual(answer["next"], 'kaizen discard down --lesson "…"')

    def test_the_numbers_are_those_of_the_run_against_the_stored_trials(self):
        self.variant("v1", 0.9)
        body = self.screen("v1")["screen"]
        stored = self.bodies("noise")[0]["runs"]
        means = {}
        for line in self.lines(stored[0]):
            means.setdefault(line["item"], []).append(line["score"])
        differences = [line["score"] - sum(means[line["item"]]) / 2 for line in self.lines(body["run"])]
        gain = sum(differences) / len(differences)
        se = (sum((each - gain) ** 2 for each in differences) / len(differences) / (len(differences) - 1)) ** 0.5
        variance = self.bodies("noise")[0]["run_variance"] * (1 + 1 / 2)
        self.assertAlmostEqual(body["gain"], gain, 12)
        self.assertAlmostEqual(body["se"], (se**2 + variance) ** 0.5, 12)

    def test_a_named_label_gets_three_fresh_paired_trials_on_its_items_alone(self):
        self.variant("v1", {"": 0.5, "dates": 1.0})
        body = self.screen("v1", "--label", "dates")["screen"]
        runs = [self.document(run) for run in body["label_runs"]]
        self.assertEqual([each["variant"] for each in runs], ["v1", "baseline"])
        self.assertEqual([(each["passes"], len(each["population"]["selected_item_ids"]), each["limited"]) for each in runs], [(3, 10, True)] * 2)
        self.assertEqual((body["label_n"], body["verdict"]), (10, "promising"))
        scores = [[line["score"] for line in self.lines(each["id"])] for each in runs]
        self.assertAlmostEqual(body["label_gain"], (sum(scores[0]) - sum(scores[1])) / 30, 12)

    def test_a_lost_race_stops_the_pass_and_says_the_same_whenever_it_is_noticed(self):
        self.variant("v1", 0.0)
        commit = self.git("rev-parse", "HEAD")
        restore = self.snapshot()
        late = self.screen("v1")["screen"]
        self.assertTrue(late["race_stopped"])
        restore()
        QuickEval.polls = True
        soon = self.screen("v1")
        self.assertEqual(soon["screen"], late)
        self.assertEqual(len(self.lines(late["run"])), late["n"], "the rest was not asked")
        self.assertLess(late["n"], DEVELOPMENT)
        self.assertEqual((soon["run"]["state"], soon["run"]["reason"], soon["code"]), ("incomplete", "race_stopped", 0))
        self.assertEqual(self.git("rev-parse", "HEAD"), commit)
        self.refused("completed", "resume", late["run"])

    def test_the_race_looks_at_items_in_their_order_alone(self):
        order = [f"i{number}" for number in range(20)]
        stored = {item: [1.0] for item in order}
        # The mean of 1.1^k … 1.9^k is 9.9 for k = 5 and 17.9 for k = 6: a named label asks for no harm, an effect of 0.
        self.assertEqual(kaizen.race_end(order, {item: [0.0] for item in order}, stored, 0.05, True), 6)
        lost = {item: [0.0] for item in order[:5]}
        self.assertIsNone(kaizen.race_end(order, {**lost, order[6]: [0.0], order[7]: [0.0]}, stored, 0.05, True), "the sixth is not there yet")
        half = {item: [0.5] for item in order}
        self.assertEqual(kaizen.race_end(order, {item: [0.0] for item in order[:1]}, stored, 0.05, False), 1, "no rest can make up for it")
        self.assertIsNone(kaizen.race_end(order, {item: [1.0] for item in order}, half, 0.05, False))

    def test_what_ended_otherwise_is_told_and_can_be_gone_on_with(self):
        self.variant("v1", 0.9)
        QuickEval.fails = {("v1", 1)}
        answer = self.screen("v1", status=4)
        self.assertEqual((answer["screen"]["verdict"], answer["next"]), ("crashed", f"kaizen resume {answer['run']['id']}"))
        QuickEval.fails = set()
        again = self.kaizen("resume", answer["run"]["id"])
        self.assertEqual((again["screen"]["verdict"], again["screen"]["run"]), ("promising", answer["run"]["id"]))
        self.assertEqual([body["verdict"] for body in self.bodies("screen")], ["crashed", "promising"])
        self.refused("completed", "resume", answer["run"]["id"])

    def test_a_screen_that_is_killed_at_any_write_is_gone_on_with_by_the_same_command(self):
        self.variant("v1", {"": 0.5, "dates": 1.0})
        workspace = kaizen.find_workspace()
        options = kaizen.RunOptions("demo", "v1", hypothesis="h", label="dates")
        restore = self.snapshot()

        def again():
            return kaizen.canonical_json(kaizen.campaign_run(workspace, self.campaign, options).screen)

        with killed_at(0) as count:
            expected = again()
        for number in [*range(1, 8), *range(8, count[0], 67), *range(count[0] - 4, count[0] + 1)]:
            restore()
            with killed_at(number), self.assertRaises(Killed):
                again()
            self.assertEqual(again(), expected, f"write {number}")
            self.assertEqual(len(self.bodies("screen")), 1, f"write {number}")

    def test_parts_of_a_measurement_are_gone_on_with_by_its_own_command(self):
        run = self.bodies("noise")[0]["runs"][0]
        self.assertIn("kaizen noise", self.refused("part_of_measurement", "resume", run)["next"])

    def test_a_nested_clone_screens_and_replicates_with_the_store_around_it(self):
        self.kaizen("lab", "open")
        clone = self.repo / "kaizen/.kaizen/work/lab"
        write(clone / "agent.json", json.dumps({"rate": 0.95}))
        self.git("commit", "-qam", "in the clone", cwd=clone)
        os.chdir(clone)
        self.assertEqual(self.screen("v1")["screen"]["verdict"], "promising")
        self.assertEqual(self.kaizen("replicate", "v1")["replicate"]["verdict"], "keepable")


class OtherSystems(measuring_fixture.CampaignLab):
    """Arms of typed systems and of improvements, through their own processes."""

    def make_repository(self):
        super(measuring_fixture.CampaignLab, self).make_repository()
        self.sealed = Path(self.folder) / "sealed"

    def test_a_typed_system_is_replicated_in_exports(self):
        os.remove(self.repo / "kaizen/systems/demo/eval.py")
        write(self.repo / "kaizen/systems/demo/system.md", "---\ndataset: kaizen/systems/demo/items.jsonl\nmutable:\n  - agent.json\n  - agent_code.py\n---\n")
        write(self.repo / "agent_code.py", AGENT)
        write(self.repo / "kaizen/systems/demo/system.py", TYPED)
        self.play()

    def test_an_improvement_is_replicated_in_exports(self):
        os.remove(self.repo / "kaizen/systems/demo/eval.py")
        own = self.repo / "improvements/demo"
        os.makedirs(own)
        words = "".join(f"\n  - {json.dumps(word)}" for word in ("sh", "agent_code.sh"))
        write(self.repo / "kaizen/systems/demo/system.md", f"---\nmetric: pass_rate\nimprovement: improvements/demo\nrunner:{words}\nmutable:\n  - agent.json\n  - agent_code.sh\n---\n")
        write(own / "evaluation.json", json.dumps({"evaluators": [{"id": "right", "type": "contains", "values": ["yes"]}]}))
        write(self.repo / "agent_code.sh", RUNNER)
        self.dataset = own / "test_cases.jsonl"
        self.play(own / "test_cases.jsonl")

    def play(self, dataset=None):
        cases = [{"id": f"c{number}", "input": {"n": number}, "split": "development" if number < 11 else "holdout"} for number in range(1, 21)]
        write_lines(dataset or self.repo / "kaizen/systems/demo/items.jsonl", cases)
        if dataset:
            os.remove(self.repo / "kaizen/systems/demo/items.jsonl")
        self.write_agent(3)
        self.commit("system")
        self.open_campaign(self.sealed)
        self.begin()
        self.variant("v1", 9)
        self.assertEqual(self.screen("v1")["screen"]["verdict"], "promising")
        body = self.kaizen("replicate", "v1")["replicate"]
        # Numbers up to the rate are answered rightly: 9 of 10 in place of 3, in each pass.
        self.assertEqual((body["verdict"], round(body["gain"], 9), body["passes"]), ("keepable", 0.6, 3))
        self.keep("v2", 20)
        done = run_cli("look")
        self.assertEqual((done.status, done.stdout.splitlines()[0]), (0, '{"answer":"yes"}'), done.stderr)
        self.assertEqual(subprocess.run(["git", "status", "--porcelain"], cwd=self.repo, capture_output=True, text=True, check=True).stdout, "")


AGENT = """\
import json
def answer(number):
    rate = json.load(open("agent.json"))["rate"]
    return "yes" if number <= rate else "no"
"""
RUNNER = """\
number() { read -r line; found=${line#*\\"$1\\":}; found=${found# }; found=${found%%[!0-9]*}; }
number n; n=$found
number rate < agent.json
said=no
[ "$n" -le "$found" ] && said=yes
echo "{\\"output\\": \\"$said\\"}"
"""  # a shell, which starts in a tenth of the time of a Python: there are two hundred
TYPED = """\
def run(value):
    import agent_code
    return {"said": agent_code.answer(value["n"])}
def grade(value, output, reference):
    return {"right": 1 if output["said"] == "yes" else 0}
SYSTEM = {
    "id": "demo",
    "input": {"type": "object"},
    "output": {"type": "object"},
    "reference": {},
    "metrics": {"type": "object", "properties": {"right": {"type": "number", "minimum": 0, "maximum": 1}}},
    "metric": {"name": "right", "aggregation": "mean"},
    "runner": run,
    "grader": grade,
}
"""

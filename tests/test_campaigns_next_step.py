"""The next step: the ordered list, its size, that it is a function of the files, and that its command is there."""

import json
import random
import time
import unittest
from unittest import mock

import support
from campaign_histories import History, random_history
from campaign_lab import LABELLED, CampaignLab
from support import kaizen, write

CLEAN = {"head": "0" * 40, "branch": "main", "is_detached": False, "obstacle": None, "dirty": []}
# Commands of the loop whose modules may be absent while parts of it are built; their words are checked where they are there.
MEASURED = {("noise",), ("replicate",), ("look",), ("plan",)}


def step_of(history, events=None, **facts):
    """The step for the first *events* events of *history*, at the leader in a clean tree unless *facts* say otherwise."""
    campaign = history.campaign if events is None else history.campaign._replace(events=history.campaign.events[:events])
    state = kaizen.campaign_state(campaign)
    contains = {each.name: True for each in state.undecided()}
    open_runs = dict.fromkeys(state.open_runs(), "interrupted")
    tree = facts.get("tree", {**CLEAN, "head": state.leader.head})
    known = {"signs": [], "open_runs": open_runs, "contains_leader": True, "has_changes": tree["head"] != state.leader.head, "contains": contains}
    given = {**known, **facts, "tree": tree}
    found = kaizen.Facts(**given)
    return kaizen.Steps(campaign, state, found, kaizen.campaign_stops(state, None, found.signs)).first()


class NextStep(support.TemporaryFolder):
    """Steps for journals that are written by hand."""

    def setUp(self):
        super().setUp()
        self.history = History(".")

    def test_first_a_diagnostic_then_the_baseline_then_the_noise(self):
        history = self.history
        self.assertEqual(step_of(history).command, ["kaizen", "run", "--system", "demo", "--variant", "baseline", "--diagnostic", "--max-items", "5"])
        history.run("diagnostic", "baseline")
        self.assertEqual(step_of(history).command, ["kaizen", "run", "--system", "demo", "--variant", "baseline"])
        history.say("baseline", run=history.run("baseline", "baseline"), commit="0" * 40)
        self.assertEqual((step_of(history).action, step_of(history).command), ("noise", ["kaizen", "noise", "--system", "demo"]))

    def test_the_baseline_is_measured_at_the_commit_of_the_opening(self):
        step = step_of(self.history, tree={**CLEAN, "head": "1" * 40})
        self.assertEqual(step.command, ["git", "switch", "--detach", "0" * 40])

    def test_an_effect_that_cannot_be_seen_needs_a_person_unless_it_was_accepted(self):
        self.history.begin(is_resolvable=False)
        self.assertEqual(step_of(self.history).action, "guide")
        self.history.begin(is_resolvable=False, accepted="ada")
        self.assertEqual(step_of(self.history).action, "propose")

    def test_stop_pause_and_integrity_come_before_everything(self):
        self.history.begin()
        self.assertEqual(step_of(self.history, signs=["STOP"]).action, "stop")
        self.assertEqual(step_of(self.history, signs=["PAUSE"], tree={**CLEAN, "dirty": [{"path": "x"}]}).action, "human")
        self.history.say("integrity", kind="locked_changed", message="eval.py was changed")
        self.assertEqual(step_of(self.history).action, "human")

    def test_a_void_variant_needs_a_person_and_is_given_up_once_that_is_settled(self):
        self.history.begin()
        self.history.say("integrity", kind="contaminated", message="text of the holdout", variant="v001", verdict="void", commit="2" * 40)
        self.assertEqual(step_of(self.history).action, "human")
        self.history.say("accepted", what="integrity", by="ada")
        self.assertEqual(step_of(self.history).command[:3], ["kaizen", "discard", "v001"])
        self.assertEqual(self.history.state.variants["v001"].verdict, "void")

    def test_a_screen_that_was_never_judged_goes_on_from_its_own_commit(self):
        self.history.begin()
        run = self.history.run("screen", "v001", commit="2" * 40)
        self.assertEqual(step_of(self.history).command, ["git", "switch", "--detach", "2" * 40])
        self.assertEqual(step_of(self.history, tree={**CLEAN, "head": "2" * 40}).command, ["kaizen", "resume", run])

    def test_a_run_at_work_is_waited_for_and_a_lost_one_needs_a_person(self):
        self.history.begin()
        run = self.history.run("screen", "v001", ends=False)
        self.assertEqual(step_of(self.history, open_runs={run: "running"}).action, "wait")
        self.assertEqual(step_of(self.history, open_runs={run: "missing"}).action, "human")

    def test_what_was_interrupted_goes_on_by_resume_or_by_the_same_command(self):
        self.history.begin()
        self.history.screen("v001")
        run = self.history.run("replicate", "v001", ends=False)
        self.assertEqual(step_of(self.history).command, ["kaizen", "replicate", "v001", "--campaign", "c1"])
        self.history.say("run_ended", run=run, purpose="replicate", variant="v001", state="completed", items={}, evaluations=0, cost_usd=None, seconds=0)
        self.history.replicate("v001", "not_replicated")
        self.history.discard("v001")
        run = self.history.run("screen", "v002", ends=False, commit="2" * 40)
        self.assertEqual(step_of(self.history, tree={**CLEAN, "head": "2" * 40}).command, ["kaizen", "resume", run])

    def test_a_tainted_run_begins_anew_once_and_stops_after_two_in_a_row(self):
        self.history.begin()
        run = self.history.screen("v001", "tainted", state="tainted", commit="2" * 40)
        there = {**CLEAN, "head": "2" * 40}
        self.assertEqual(step_of(self.history, tree=there).command, ["kaizen", "resume", run, "--restart"])
        self.history.discard("v001")
        self.history.screen("v002", "tainted", state="tainted", commit="2" * 40)
        self.assertEqual(step_of(self.history, tree=there).action, "discard")
        self.history.discard("v002")
        self.assertEqual(step_of(self.history).command, ["kaizen", "campaign", "close", "--campaign", "c1"])

    def test_a_tree_that_is_no_commit_is_told_with_its_paths(self):
        self.history.begin()
        step = step_of(self.history, tree={**CLEAN, "dirty": [{"path": "notes.txt", "kind": "untracked"}]})
        self.assertEqual(step.action, "clean")
        self.assertIn("notes.txt", step.why)

    def test_the_most_promising_is_replicated_first_and_decided_before_the_next(self):
        self.history.begin()
        self.history.screen("v001", z=0.8)
        self.history.screen("v002", z=1.9)
        self.assertEqual(step_of(self.history).variant, "v002")
        self.history.replicate("v002", "extend", 0.7)
        self.assertEqual((step_of(self.history).action, step_of(self.history).variant), ("replicate", "v002"))
        self.history.replicate("v002")
        self.assertEqual((step_of(self.history).action, step_of(self.history).variant), ("replicate", "v001"))
        self.history.replicate("v001", "not_replicated", 0.1)
        self.assertEqual((step_of(self.history).action, step_of(self.history).variant), ("discard", "v001"))
        self.history.discard("v001")
        self.assertEqual(step_of(self.history).command, ["kaizen", "keep", "v002", "--campaign", "c1"])

    def test_what_was_promising_against_an_older_leader_is_given_up_to_be_brought_onto_the_new_one(self):
        self.history.begin()
        self.history.screen("v001")
        self.history.screen("v002")
        self.history.replicate("v001")
        self.history.keep("v001")
        step = step_of(self.history)
        self.assertEqual((step.action, step.variant), ("discard", "v002"))
        self.assertIn("bring it onto v001", step.why)

    def test_a_keep_waits_for_its_commit_and_a_memorised_one_for_a_person(self):
        self.history.begin()
        self.history.screen("v001", commit="2" * 40)
        self.history.replicate("v001", commit="2" * 40)
        self.assertEqual(step_of(self.history, contains={"v001": False}).command, ["git", "switch", "--detach", "2" * 40])
        self.history.keep("v001", "2" * 40)
        self.history.screen("v002", memorised=3)
        self.history.replicate("v002")
        step = step_of(self.history)
        self.assertEqual(step.action, "discard")
        self.assertIn("--accept-memorised", step.why)

    def test_trials_that_stayed_incomplete_are_asked_for_once_more(self):
        self.history.begin()
        self.history.screen("v001")
        self.history.replicate("v001", "incomplete")
        self.assertEqual(step_of(self.history).action, "replicate")
        self.history.replicate("v001", "incomplete")
        self.assertEqual(step_of(self.history).action, "discard")

    def test_drift_asks_for_the_leaders_trials_anew(self):
        self.history.begin()
        self.history.say("drift", z=3.4, variant="v001")
        self.assertEqual((step_of(self.history).action, step_of(self.history).command[:2]), ("baseline", ["kaizen", "noise"]))

    def test_a_look_is_due_once_for_a_leader_that_gained_enough(self):
        # 100 cases x 4 trials see 2 x 0.04^2 x 60/100 / 4 = SE 0.0219; at level 0.005 (2.576 + 0.842) SE = 0.075; 0.8 of it is 0.06
        self.history.begin()
        self.history.screen("v001")
        self.history.replicate("v001")
        self.history.keep("v001", gain=0.059)
        self.assertEqual(step_of(self.history).action, "propose")
        self.history.screen("v002")
        self.history.replicate("v002")
        self.history.keep("v002", gain=0.002)
        self.assertEqual(step_of(self.history).command, ["kaizen", "look", "--campaign", "c1"])
        self.history.look("no")
        self.assertEqual(step_of(self.history).action, "propose")

    def test_a_plateau_first_asks_for_a_new_session_and_then_stops(self):
        self.history.begin()
        for number in range(24):
            if number == 12:
                step = step_of(self.history)
                self.assertEqual(step.action, "propose")
                self.assertIn("new session", step.why)
            self.history.screen(f"v{number:03d}", "no_signal", 0.1, self.history.idea(number, ("a", "b", "c")[number % 3]))
            self.history.discard(f"v{number:03d}")
        self.assertEqual(step_of(self.history).action, "close")

    def test_the_budget_ends_the_search(self):
        self.history.contract["budget"]["variants"] = 1
        self.addCleanup(self.history.contract["budget"].update, variants=40)
        self.history.begin()
        self.history.screen("v001", "worse", -2)
        self.assertEqual(step_of(self.history).action, "discard")
        self.history.discard("v001")
        self.assertEqual(step_of(self.history).action, "close")

    def test_an_open_idea_is_made_and_then_run_under_the_next_free_name(self):
        self.history.begin()
        self.history.screen("v007", "worse", -2)
        self.history.discard("v007")
        self.assertEqual(step_of(self.history).command, ["kaizen", "idea", "list", "--campaign", "c1"])
        idea = self.history.idea(1)
        self.assertEqual((step_of(self.history).action, step_of(self.history).idea), ("propose", idea))
        step = step_of(self.history, tree={**CLEAN, "head": "9" * 40})
        self.assertEqual(step.command, ["kaizen", "run", "--system", "demo", "--variant", "v008", "--idea", idea])

    def test_every_prefix_of_random_histories_has_a_step_whose_command_is_there(self):
        seen = set()
        for seed in range(40):
            history = random_history(f"store{seed}", random.Random(seed), 18)
            total = len(history.campaign.events)
            for cut in {1, total, *random.Random(seed).sample(range(1, total + 1), min(8, total))}:
                with self.subTest(seed=seed, cut=cut):
                    step = step_of(history, cut)
                    seen.add(step.action)
                    self.check_command(step)
        self.assertLessEqual({"stop", "human", "resume", "replicate", "keep", "discard", "propose", "baseline"}, seen)

    def check_command(self, step):
        """The command parses, and what it is about is in a state that allows it."""
        self.assertTrue(step.why)
        if step.command[0] == "git":
            self.assertEqual(step.command[1:3], ["switch", "--detach"])
            return
        self.assertEqual(step.command[0], "kaizen")
        if tuple(step.command[1:2]) in MEASURED and step.command[1] not in kaizen.COMMANDS:
            return
        if step.command[1] in ("noise", "plan", "run") and "--idea" not in step.command:
            return  # parsed where what measures is there
        kaizen.parse_command_line(step.command[1:])


class Document(CampaignLab):
    """`kaizen next` in a repository."""

    def test_the_same_files_give_the_same_bytes_twice_whatever_the_environment(self):
        self.history.begin()
        first = support.run_cli("next", "--json")
        again = support.run_cli("next", "--json", env={"KAIZEN_SEED": "7", "TZ": "Asia/Tokyo", "COLUMNS": "20"})
        self.assertEqual((first.status, first.stdout), (again.status, again.stdout))

    def test_it_says_where_the_campaign_stands_and_what_the_leader_fails_on(self):
        scores = {item["id"]: [float(number > 5)] * 3 for number, item in enumerate(LABELLED)}
        self.history.begin()
        run = self.history.state.stored[0]
        self.make_run(run, "baseline", self.base, scores, purpose="noise")
        for other in self.history.state.stored[1:]:
            self.make_run(other, "baseline", self.base, scores, purpose="noise")
        told = self.say("next")
        self.assertEqual((told["action"], told["should_continue"], told["stop"]), ("propose", True, []))
        self.assertEqual(told["memory"]["failures_top"], [{"label": "dates", "n": 6, "of": 6, "items": ["i1", "i2", "i3"]}])
        self.assertEqual(told["situation"]["dev"]["leader"], 0.25)
        self.assertEqual(told["situation"]["looks"]["left"], 5)
        self.assertEqual(told["next"], "kaizen idea list --campaign c1")

    def test_it_never_takes_more_than_6_kb(self):
        self.history.begin()
        for number in range(40):
            name = f"{'variant' * 20}{number}"
            self.history.screen(name, random.Random(number).choice(["no_signal", "worse"]), 0.2, self.history.idea(number, hypothesis="ж" * 500))
            self.history.say("discard", variant=name, commit="", verdict="worse", lesson="ж" * 1000, ref=None)
        write(self.repo / ("д" * 90), "")
        for number in range(30):
            write(self.repo / ("д" * 80 + str(number)), "")
        done = support.run_cli("next", "--json")
        self.assertLessEqual(len(done.stdout.encode()), 6000)
        self.assertTrue(json.loads(done.stdout)["memory"]["lessons"])

    def test_with_500_variants_it_takes_less_than_half_a_second_of_the_processor(self):
        self.history.begin()
        log = kaizen.ChainLog(self.history.campaign.file("journal.jsonl"))
        for number in range(500):
            name, run = f"v{number:03d}", f"r{number + 100:04d}"
            own = {"run": run, "purpose": "screen", "variant": name}
            log.append("run_started", {**own, "idea": "", "commit": f"{number:040x}", "tree": "t", "patch_id": "p" * 40})
            log.append("run_ended", {**own, "state": "completed", "reason": None, "items": {}, "evaluations": 60, "cost_usd": None, "seconds": 1.0})
            log.append("screen", {"variant": name, "run": run, "leader": "baseline", "verdict": "no_signal", "z": 0.1, "gain": 0.004, "se": 0.04})
            log.append("discard", {"variant": name, "commit": "", "verdict": "no_signal", "lesson": "nothing moved", "ref": None})
        log.close()
        for words in (["next"], ["campaign", "status"], ["status"]):
            with self.subTest(words=words):
                before = time.process_time()
                support.run_cli(*words, "--json")
                self.assertLess(time.process_time() - before, 0.5)

    def test_exit_codes_say_whether_to_go_on(self):
        self.history.begin()
        self.say("next", status=0)
        write(self.repo / "kaizen/.kaizen/PAUSE", "")
        self.say("next", status=3, reason="human")
        write(self.repo / "kaizen/.kaizen/STOP", "")
        self.say("next", status=1, reason="stop")

    def test_a_variant_that_is_kept_leads_back_to_propose_and_each_command_is_accepted(self):
        self.history.begin()
        commit = self.variant("v001")
        scores = {item["id"]: [float(number > 5)] * 3 for number, item in enumerate(LABELLED)}
        self.measured("v001", commit, scores=scores)
        told = self.say("next")
        self.assertEqual(told["command"][:3], ["kaizen", "keep", "v001"])
        self.say(*told["command"][1:])
        self.assertEqual(self.say("next")["action"], "propose")
        self.measured("v002", self.variant("v002"), "not_replicated", 0.2)
        told = self.say("next")
        self.assertEqual(told["command"][:3], ["kaizen", "discard", "v002"])
        self.say(*told["command"][1:])
        told = self.say("next")
        self.assertEqual((told["action"], told["memory"]["near_miss"]), ("propose", ["v002"]))
        self.say(*told["command"][1:])

    def test_where_git_cannot_be_written_it_leads_to_the_clone(self):
        self.history.begin()
        error = kaizen.GitError("cannot be written here", "", "git_read_only")
        with mock.patch.object(kaizen, "git_write_obstacle", return_value=error):
            told = self.say("next")
        self.assertEqual((told["action"], told["command"]), ("clone", ["kaizen", "lab", "open", "--campaign", "c1", "--from", self.base]))
        self.say(*told["command"][1:])

    def test_notes_that_were_committed_are_no_variant(self):
        self.history.begin()
        self.history.idea(1)
        write(self.repo / "kaizen/systems/demo/lessons.md", "- read the traces\n")
        self.commit("a note")
        self.assertEqual(self.say("next")["action"], "propose")
        self.variant("v001")
        self.assertEqual(self.say("next")["command"][-2:], ["--idea", "i1"])

    def test_a_campaign_that_is_not_there_is_told(self):
        self.say("next", "--campaign", "c9", status=2, reason="no_campaign")


if __name__ == "__main__":
    unittest.main()

"""campaigns/measuring.py, replicating.py and noise_floor.py: passes in turn, gone on with after any kill; what they say."""

import json
import os
from unittest import mock

import measuring_fixture
from measuring_fixture import DEVELOPMENT, Killed, QuickEval, killed_at
from support import kaizen, run_cli, write


class Measuring(measuring_fixture.CampaignLab):
    """A campaign with a baseline and a noise floor, whose items are answered in this process."""

    is_begun = True

    def promising(self, name="v1", rate=0.9, **more):
        commit = self.variant(name, rate, **more)
        self.assertEqual(self.screen(name)["screen"]["verdict"], "promising")
        return commit

    def replicate(self, name="v1", status=0):
        return self.kaizen("replicate", name, status=status)["replicate"]


class Passes(Measuring):
    """Order, seeds, scores."""

    def test_arms_take_turns_and_get_the_same_items_and_seeds(self):
        commit = self.promising()
        QuickEval.asked.clear()
        body = self.replicate()
        self.assertEqual(QuickEval.asked, [("v1", 1), ("baseline", 1), ("baseline", 2), ("v1", 2), ("v1", 3), ("baseline", 3)])
        sides = [self.document(body["runs"][role][0]) for role in ("candidate", "leader")]
        self.assertEqual(sides[0]["seed"], sides[1]["seed"])
        self.assertEqual(*[each["population"]["selected_item_ids"] for each in sides])
        self.assertEqual([each["commit"]["hash"] for each in sides], [commit, self.campaign.events[0]["body"]["commit"]])
        self.assertEqual({each["campaign"]["purpose"] for each in sides}, {"replicate"})
        self.assertNotEqual(sides[0]["seed"], self.document(self.bodies("screen")[0]["run"])["seed"], "fresh: not the draws of the screen")
        self.assertEqual(self.left_behind(), [])

    def test_scores_point_upwards_and_lie_between_0_and_1_where_there_is_a_range(self):
        line = {"item": "a", "status": "ok", "score": 30, "metrics": {"f": {"tp": 1, "fp": 0, "fn": 1}}}
        table = (
            ({"name": "s", "aggregation": "mean", "direction": "higher"}, [10, 50], 0.5),
            ({"name": "s", "aggregation": "median", "direction": "lower"}, [10, 50], 0.5),
            ({"name": "s", "aggregation": "mean", "direction": "lower"}, [0, 40], 0.25),
            ({"name": "s", "aggregation": "mean", "direction": "higher"}, None, 30),
            ({"name": "s", "aggregation": "mean", "direction": "lower"}, None, -30),
            ({"name": "f", "aggregation": "precision", "direction": "higher"}, None, 1),
            ({"name": "f", "aggregation": "recall", "direction": "higher"}, None, 0),
        )
        for metric, limits, expected in table:
            self.assertEqual(kaizen.scaled_score(line, {"metric": metric, "campaign": {"range": limits}}), expected, metric)
        self.assertIsNone(kaizen.scaled_score({**line, "status": "timeout"}, {"metric": table[0][0], "campaign": {"range": None}}))
        self.assertEqual(kaizen.scaled_effect({"metric": {"minimum": 10, "maximum": 50}, "min_effect": 4}), 0.1)
        self.assertEqual(kaizen.scaled_effect({"metric": {"minimum": None, "maximum": 50}, "min_effect": 4}), 4)

    def test_a_pause_between_two_passes_stops_and_the_same_command_goes_on(self):
        self.promising()
        pause = self.repo / "kaizen/.kaizen/PAUSE"
        QuickEval.asked.clear()
        given = QuickEval.answer

        def answer(quick, asked, session):
            end = given(quick, asked, session)
            if len(QuickEval.asked) == 3:
                write(pause, "")
            return end

        with mock.patch.object(QuickEval, "answer", answer):
            self.assertEqual(self.refused("paused", "replicate", "v1")["code"], 5)
        self.assertEqual((len(QuickEval.asked), self.bodies("replicate")), (3, []))
        self.refused("paused", "replicate", "v1")
        os.remove(pause)
        self.assertEqual(self.replicate()["verdict"], "keepable")
        self.assertEqual(len(QuickEval.asked), 6, "nothing is asked twice")


class Noise(Measuring):
    """The noise floor."""

    def test_the_noise_event_holds_what_passes_of_the_leader_say(self):
        body = self.bodies("noise")[0]
        run = body["runs"][0]
        by_item = {}
        for line in self.lines(run):
            by_item.setdefault(line["item"], []).append(line["score"])
        self.assertEqual((body["passes"], body["items"], {len(each) for each in by_item.values()}), (2, DEVELOPMENT, {2}))
        self.assertEqual(body["flip_rate"], sum(len(set(each)) > 1 for each in by_item.values()) / DEVELOPMENT)
        # Two passes: the variance of an item is half the squared difference.
        se = (sum((a - b) ** 2 / 2 for a, b in by_item.values()) / DEVELOPMENT**2) ** 0.5
        self.assertAlmostEqual(body["se_pass"], se, 12)
        self.assertTrue(body["is_resolvable"])
        self.assertEqual(self.kaizen("noise", "--system", "demo")["noise"], body, "it is known, and not measured again")
        self.assertEqual(len(self.bodies("noise")), 1)

    def test_a_floor_above_twice_the_effect_is_a_no_that_a_person_can_accept(self):
        self.amend(min_effect=0.01)
        kaizen.record(self.campaign, "drift", z=4.0, variant="v0")
        answer = self.kaizen("noise", "--system", "demo", "--passes", "2", status=1)
        self.assertEqual((answer["reason"], answer["noise"]["is_resolvable"], answer["noise"]["accepted"]), ("unresolvable", False, None))
        self.assertEqual(len(self.bodies("noise")), 2, "after drift it is measured anew")
        self.assertNotEqual(*[body["runs"] for body in self.bodies("noise")])
        answer = self.kaizen("noise", "--system", "demo", "--accept", "Ada: we search for large gains only")
        self.assertEqual((answer["reason"], answer["noise"]["accepted"]), ("accepted", "Ada: we search for large gains only"))
        self.assertEqual(self.kaizen("noise", "--system", "demo")["reason"], "accepted")
        self.assertEqual(self.bodies("noise")[1]["runs"], self.bodies("noise")[2]["runs"])

    def test_plan_says_what_it_takes_and_when_a_campaign_cannot_succeed(self):
        plan = self.kaizen("plan", "--system", "demo", "--effect", "0.4")
        noise = self.bodies("noise")[0]
        own = next(row for row in plan["mde"] if row["items"] == DEVELOPMENT)
        self.assertAlmostEqual(own["3"], noise["mde"]["3"], 12)
        self.assertAlmostEqual(plan["cost_usd"]["per_item"], 0.001, 9)
        self.assertAlmostEqual(plan["cost_usd"]["per_look"], 0.001 * 2 * 4 * 30, 9)
        self.assertEqual(plan["look"]["level"], 0.005)
        self.assertGreater(plan["look"]["power"][-1]["power"], plan["look"]["power"][0]["power"])
        # n = 2 (2.4865 / effect)^2 (variance of a trial) / trials
        scatter = noise["se_pass"] ** 2 * DEVELOPMENT
        needed = 2 * (2.486475 / 0.4) ** 2 * (scatter + noise["run_variance"] * 0) / 3
        if not noise["run_variance"]:
            self.assertLessEqual(abs(plan["items_needed"]["3"] - needed), 1)
        answer = self.kaizen("plan", "--system", "demo", "--effect", "0.01", status=1)
        self.assertEqual((answer["reason"], "unresolvable" in answer["cannot_succeed"]), ("cannot_succeed", True))

    def test_without_a_campaign_a_plan_rests_on_typical_items_and_table_t7(self):
        """lab-research.md T7: 100 items show 14.1, 8.1 and 5.7 points; 400 show 7.0, 4.1, 2.9."""
        floor = kaizen.typical_floor(100)
        for items, row in ((25, (28.1, 16.2, 11.5)), (100, (14.1, 8.1, 5.7)), (400, (7.0, 4.1, 2.9))):
            for trials, points in zip((1, 3, 6), row, strict=True):
                self.assertAlmostEqual(100 * floor.mde_at(items, trials), points, delta=0.06)
        self.assertLessEqual(abs(kaizen.items_needed(floor, 0.081, 3, 0.05) - 100), 1)
        self.assertIsNone(kaizen.items_needed(floor._replace(run_variance=1.0), 0.01, 3, 0.05))

    def test_the_options_of_an_improvement_and_of_a_system_are_told_apart(self):
        for words in (("noise",), ("plan",)):
            done = run_cli(*words)
            self.assertEqual(done.status, 2)
            self.assertIn("--system", done.stderr)


class Replicating(Measuring):
    """Verdicts of fresh passes."""

    def test_a_real_gain_is_keepable_and_asking_again_gives_the_same_bytes(self):
        self.promising()
        body = self.replicate()
        self.assertEqual((body["verdict"], body["passes"], body["reasons"]), ("keepable", 3, ["overall"]))
        candidate, leader = ([line["score"] for line in self.lines(body["runs"][role][0])] for role in ("candidate", "leader"))
        self.assertAlmostEqual(body["gain"], sum(candidate) / len(candidate) - sum(leader) / len(leader), 12)
        self.assertEqual(self.replicate(), body)
        self.assertEqual(len(self.bodies("replicate")), 1)

    def test_the_first_pass_can_end_it(self):
        self.promising()
        self.write_agent(0.5)
        given = kaizen.first_pass_gives_up
        with mock.patch.object(kaizen, "first_pass_gives_up", lambda difference, label: given(difference._replace(z=-1.0), label)):
            body = self.replicate(status=1)
        self.assertEqual((body["verdict"], body["passes"], body["reasons"]), ("not_replicated", 1, ["first_pass"]))
        self.assertEqual([self.document(body["runs"][role][0])["passes"] for role in ("candidate", "leader")], [1, 1])
        self.assertEqual(self.replicate(status=1), body)

    def test_close_evidence_is_extended_once_with_other_seeds(self):
        self.promising()
        given = kaizen.replicate_verdict
        close = lambda *args: kaizen.Ruling("extend", ("close",)) if not args[-1] else given(*args)  # noqa: E731
        with mock.patch.object(kaizen, "replicate_verdict", close):
            first = self.replicate()
            self.assertEqual((first["verdict"], first["passes"]), ("extend", 3))
            second = self.replicate()
        self.assertEqual((second["passes"], len(second["runs"]["candidate"])), (6, 2))
        runs = [self.document(run) for run in second["runs"]["candidate"]]
        self.assertNotEqual(runs[0]["seed"], runs[1]["seed"])
        self.assertEqual({line["pass"] for line in self.lines(runs[1]["id"])}, {4, 5, 6})
        self.assertEqual(self.replicate(), second)

    def test_a_run_that_fails_leaves_no_verdict_and_can_be_gone_on_with(self):
        self.promising()
        QuickEval.fails = {("v1", 2)}
        body = self.replicate(status=4)
        self.assertEqual((body["verdict"], body["reasons"]), ("incomplete", ["run_failed"]))
        QuickEval.fails = set()
        self.assertEqual(self.replicate()["verdict"], "keepable")
        self.assertEqual([each["verdict"] for each in self.bodies("replicate")], ["incomplete", "keepable"])
        ends = [body for body in self.bodies("run_ended") if body["purpose"] == "replicate"]
        self.assertEqual(sum(body["evaluations"] for body in ends), 6 * DEVELOPMENT, "an answer is counted once, however often a run ends")

    def test_only_a_promising_variant_that_nobody_decided_about_is_replicated(self):
        done = run_cli("replicate", "v9", "--json")
        self.assertEqual((done.status, json.loads(done.stdout)["reason"]), (2, "no_variant"))
        self.variant("bad", 0.05)
        self.assertEqual(self.screen("bad")["screen"]["verdict"], "worse")
        self.refused("not_promising", "replicate", "bad")

    def test_guards_hard_gates_and_critical_items_reject(self):
        leader = {"safe": 1}
        cases = (
            ({"guards": [{"metric": "safe", "hard": True}]}, {"safe": 0}, "guard_failed", ["gate_failed"]),
            ({"guards": [{"metric": "tone", "margin": 0.1}]}, {"tone": 0.2}, "guard_failed", ["not_measured"]),
            ({"guards": [{"metric": "safe", "margin": 0.1}]}, {"safe": 0.5}, "guard_failed", ["harm"]),
            ({"guards": [{"metric": "safe", "margin": 0.1}, {"metric": "cost_usd", "margin": 0.1}]}, leader, "keepable", ["overall"]),
        )
        self.promising("v0", 0.9)
        body = self.replicate("v0")
        scores = [kaizen.merged_scores(self.store, body["runs"][role]) for role in ("candidate", "leader")]
        self.assertEqual(body["lost_items"], kaizen.consistent_losses(*scores))
        restore = self.snapshot()
        for number, (terms, metrics, verdict, reasons) in enumerate(cases):
            restore()
            self.git("checkout", "-q", self.campaign.events[0]["body"]["commit"])
            self.amend(**terms)
            self.variant(f"g{number}", 0.9, metrics=metrics)
            self.screen(f"g{number}")
            found = self.kaizen("replicate", f"g{number}", status=0 if verdict == "keepable" else 1)["replicate"]
            self.assertEqual((found["verdict"], found["reasons"]), (verdict, reasons), terms)
            self.assertEqual([row["metric"] for row in found["guards"]], [each["metric"] for each in terms["guards"]])

    def test_drift_of_the_leader_is_recorded_and_the_stored_trials_are_gone(self):
        self.promising()
        with mock.patch.object(kaizen, "drift", lambda zs: bool(zs)):
            body = self.replicate()
        self.assertEqual(self.bodies("drift"), [{"z": body["drift_z"], "variant": "v1"}])
        self.variant("v2", 0.7)
        self.refused("no_noise", "run", "--system", "demo", "--variant", "v2", "--hypothesis", "h")

    def test_a_smaller_variant_that_is_no_worse_can_simplify(self):
        self.promising()
        self.assertFalse(self.replicate()["can_simplify"], "one line for another is not smaller")
        self.assertEqual(kaizen.net_lines(kaizen.read_checkout(str(self.repo)), "HEAD~1", "HEAD"), 0)

    def test_the_budget_is_forecast(self):
        self.promising()
        self.amend(budget={"variants": 40, "evaluations": 100, "usd": None, "hours": None})
        self.assertIn("evaluations", self.refused("budget_spent", "replicate", "v1")["message"])
        self.amend(budget={"variants": 1, "evaluations": None, "usd": 0.001, "hours": None})
        self.variant("v2", 0.8)
        self.refused("budget_spent", "run", "--system", "demo", "--variant", "v2", "--hypothesis", "h")


class Integrity(Measuring):
    """Runs that are not what the journal says."""

    def test_answers_that_were_changed_or_lost_are_a_breach_and_no_verdict(self):
        self.promising()
        run = self.bodies("noise")[0]["runs"][0]
        path = self.run_folder(run) / "items.jsonl"
        text = path.read_text()
        restore = self.snapshot()
        for change in (
            lambda: write(path, text.replace('"score":0', '"score":1', 1)),
            lambda: write(path, text[: text.index("\n") + 1]),
            lambda: write(self.run_folder(run) / "run.json", json.dumps({**self.document(run), "items": {"lines": 0, "sha256": ""}})),
            lambda: os.rename(self.run_folder(run), self.folder / run),
        ):
            restore()
            change()
            self.refused("integrity", "replicate", "v1")
            self.assertEqual(self.bodies("replicate"), [])
            self.assertEqual([body["kind"] for body in self.bodies("integrity")], ["run_changed"])


class Kills(Measuring):
    """kill -9 at every write of a journal, then the same command again."""

    def test_a_replicate_that_is_killed_at_any_write_ends_in_the_same_bytes(self):
        self.amend(replicate={"passes": 2, "extended": 4})
        self.promising()
        workspace = kaizen.find_workspace()
        restore = self.snapshot()

        def again():
            return kaizen.canonical_json(kaizen.replicated(workspace, self.campaign, "v1"))

        with killed_at(0) as count:
            expected = again()
        runs = self.store.ids()
        self.assertGreater(count[0], 100)
        # Every write but the answers of the middle of a pass, which are all alike.
        points = [number for number in range(1, count[0] + 1) if number % 29 == 1 or number < 10 or number > count[0] - 12]
        for number in points:
            restore()
            with killed_at(number), self.assertRaises(Killed):
                again()
            self.assertEqual(again(), expected, f"write {number}")
            self.assertEqual(self.store.ids(), runs, f"write {number}")
            events = [event["type"] for event in self.campaign.events]
            self.assertEqual((events.count("replicate"), events.count("run_started"), events.count("run_ended")), (1, 5, 5), f"write {number}")

    def test_a_noise_floor_that_is_killed_at_any_write_is_the_same(self):
        kaizen.record(self.campaign, "drift", z=4.0, variant="v0")
        workspace = kaizen.find_workspace()
        restore = self.snapshot()

        def again():
            return kaizen.canonical_json(kaizen.measured_noise(workspace, self.campaign, 2, ""))

        with killed_at(0) as count:
            expected = again()
        for number in [*range(1, 8), *range(8, count[0], 23), count[0] - 2, count[0] - 1, count[0]]:
            restore()
            with killed_at(number), self.assertRaises(Killed):
                again()
            self.assertEqual(again(), expected, f"write {number}")

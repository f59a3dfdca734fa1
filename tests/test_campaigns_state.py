"""The state of a campaign is what follows from its journal, its ideas and its ledger; of any prefix of them."""

import math
import random
import unittest
from pathlib import Path
from unittest import mock

import support
from campaign_histories import History, random_history
from support import kaizen


class CampaignState(support.TemporaryFolder):
    def setUp(self):
        super().setUp()
        patch = mock.patch("os.fsync")
        patch.start()
        self.addCleanup(patch.stop)

    def history(self, **contract):
        return History(".", **contract)

    def test_an_opened_campaign_has_the_base_as_leader_and_as_reference(self):
        state = self.history().state
        self.assertEqual((state.leader, state.reference), (("baseline", "0" * 40, "0" * 40),) * 2)
        self.assertEqual((state.baseline, state.noise, state.stored, state.mde(), state.luck_line()), (None, None, [], None, None))
        self.assertEqual(state.leader_gain(), (0.0, 0.0))
        self.assertEqual(state.look_count, (0, 0, 5, 5, 0.005))

    def test_a_keep_makes_the_leader_and_its_fresh_trials_the_stored_ones(self):
        history = self.history()
        history.begin()
        history.screen("v001")
        runs = history.replicate("v001")
        history.keep("v001", "c" * 40, runs=[runs["candidate"]], lesson="it helped")
        state = history.state
        self.assertEqual((state.leader, state.stored), (("v001", "c" * 40, "c" * 40), [runs["candidate"]]))
        self.assertEqual((state.variants["v001"].verdict, state.lessons[0]["lesson"]), ("kept", "it helped"))
        self.assertEqual(state.since_keep, 0)

    def test_the_gain_of_the_leader_is_the_sum_of_paired_estimates_since_the_reference(self):
        history = self.history()
        history.begin()
        for name, gain, se in (("v001", 0.04, 0.03), ("v002", 0.05, 0.04)):
            history.screen(name)
            history.replicate(name)
            history.keep(name, gain=gain, se=se)
        gain, se = history.state.leader_gain()
        self.assertAlmostEqual(gain, 0.09)
        self.assertAlmostEqual(se, 0.05)
        history.look("yes")
        self.assertEqual(history.state.leader_gain(), (0.0, 0.0))
        self.assertEqual(history.state.reference.variant, "v002")
        self.assertEqual(history.state.variants["v002"].verdict, "confirmed")

    def test_a_gain_that_was_not_measured_is_not_zero(self):
        history = self.history()
        history.begin()
        history.screen("v001")
        history.keep("v001", gain=None)
        self.assertEqual(history.state.leader_gain(), (None, None))

    def test_looks_are_counted_with_those_of_campaigns_before_and_a_void_one_is_spent(self):
        history = self.history()
        history.campaign.events[0]["body"]["inherited"] = {"looks": 1, "yes": 1, "from": ["c0"]}
        history.begin()
        history.screen("v001")
        history.keep("v001")
        history.look("void")
        count = history.state.look_count
        # the third look after one yes: 0.05 / 5 / 2^2 / C(2, 1)
        self.assertEqual(count[:4], (2, 1, 5, 3))
        self.assertAlmostEqual(count.next_level, 0.05 / 5 / 4 / 2)

    def test_a_look_that_only_the_ledger_knows_is_spent(self):
        history = self.history()
        history.append("holdout.jsonl", "look", look=1, yes_before=0, level=0.005, answer="no", void_reason=None)
        self.assertEqual(history.state.look_count.left, 4)

    def test_what_a_run_cost_is_unknown_when_nobody_said(self):
        history = self.history()
        history.run("diagnostic", "baseline", cost=None)
        self.assertEqual(history.state.spent(), (0, 60, None, 1, 0.01))
        history.run("baseline", "baseline", cost=0.25)
        self.assertEqual(history.state.spent(), (0, 120, 0.25, 1, 0.02))

    def test_equal_crashes_and_taints_count_in_a_row(self):
        history = self.history()
        for reason in ("a", "a", "b", "b", "b"):
            history.screen(f"v{reason}", "crashed", state="crashed", reason=reason)
        self.assertEqual(history.state.equal_crashes, 3)
        history.screen("v9", "tainted", state="tainted")
        history.screen("v9", "tainted", state="tainted")
        self.assertEqual((history.state.equal_crashes, history.state.taints), (0, 2))
        history.screen("v9")
        self.assertEqual(history.state.taints, 0)

    def test_twelve_variants_of_three_categories_without_a_keep_ask_for_a_fresh_context_once(self):
        history = self.history()
        history.begin()
        names = [f"v{number:03d}" for number in range(1, 26)]
        for number, name in enumerate(names[:12]):
            idea = history.idea(number, ("prompt", "tools", "retrieval")[number % 3])
            history.screen(name, "no_signal", 0.1, idea)
            self.assertEqual(history.state.is_fresh_context, number == 11)
        for number, name in enumerate(names[12:24], 12):
            history.screen(name, "no_signal", 0.1, history.idea(number))
        self.assertEqual((history.state.since_keep, history.state.fresh_contexts, history.state.is_fresh_context), (12, 1, False))

    def test_variants_of_two_categories_are_no_plateau(self):
        history = self.history()
        for number in range(15):
            history.screen(f"v{number}", "no_signal", 0.1, history.idea(number, ("prompt", "tools")[number % 2]))
        self.assertEqual((history.state.since_keep, history.state.fresh_contexts), (15, 0))

    def test_drift_discards_the_stored_trials_until_noise_is_measured_anew(self):
        history = self.history()
        history.begin()
        history.screen("v001")
        history.replicate("v001", drift_z=3.5)
        history.say("drift", z=3.5, variant="v001")
        self.assertEqual((history.state.is_drifted, history.state.stored), (True, []))
        history.begin()
        self.assertEqual((history.state.is_drifted, len(history.state.stored), history.state.drift_zs), (False, 3, []))

    def test_suspected_overfitting_takes_the_leader_back_and_parks_what_was_kept(self):
        history = self.history()
        history.begin()
        history.screen("v001", idea=history.idea(1))
        history.keep("v001")
        history.look("no")
        history.look("no")
        self.assertEqual((history.state.noes, history.state.variants["v001"].verdict), (2, "not_confirmed"))
        history.say("overfit_suspected", gain=0.3)
        state = history.state
        self.assertEqual((state.leader.variant, state.stored, state.idea_status("i1")), ("baseline", [], "parked"))

    def test_two_noes_to_a_gain_that_looks_would_have_seen_are_overfitting_whether_or_not_anybody_says_so(self):
        # the smallest gain that the look sees is 0.075 (see test_campaigns_next_step): twice that is 0.15
        for gain, is_parked in ((0.14, False), (0.16, True)):
            history = History(str(gain))
            history.begin()
            history.screen("v001")
            history.keep("v001", gain=gain)
            history.look("no")
            self.assertFalse(history.state.is_overfit)
            history.look("no")
            self.assertEqual((history.state.is_overfit, history.state.variants["v001"].is_parked), (is_parked, is_parked))

    def test_luck_line_and_expected_false_keeps(self):
        history = self.history()
        history.begin()
        for number in range(10):
            history.screen(f"v{number}")
        history.replicate("v1", "not_replicated")
        # se of a pass 0.04 times Blom's expected largest of ten, 1.54664; P(Z > 1) = 0.158655
        self.assertAlmostEqual(history.state.luck_line(), 0.04 * 1.54664, 5)
        self.assertAlmostEqual(history.state.false_keeps(), 0.158655, 6)

    def test_an_idea_is_what_became_of_its_last_variant(self):
        history = self.history()
        history.begin()
        ideas = [history.idea(number) for number in range(1, 6)]
        self.assertEqual({history.state.idea_status(idea) for idea in ideas}, {"open"})
        history.screen("v001", idea="i1")
        history.screen("v002", "no_signal", idea="i2")
        history.discard("v002")
        history.screen("v003", "crashed", idea="i3")
        history.screen("v004", idea="i4")
        history.keep("v004")
        self.assertEqual([history.state.idea_status(idea) for idea in ideas], ["running", "discarded", "crashed", "kept", "open"])

    def test_near_misses_are_those_that_gained_too_little(self):
        history = self.history()
        history.begin()
        history.screen("v001", "no_signal", 0.3)
        history.screen("v002", "no_signal", -0.3)
        history.screen("v003", z=1)
        history.replicate("v003", "not_replicated", 0.4)
        self.assertEqual([name for name, each in history.state.variants.items() if each.is_near_miss()], ["v001", "v003"])

    def test_every_prefix_of_a_journal_has_a_state(self):
        for seed in range(12):
            with self.subTest(seed=seed):
                history = random_history(f"store{seed}", random.Random(seed), 25)
                events = history.campaign.events
                for cut in range(1, len(events) + 1, 1 + len(events) // 25):
                    state = kaizen.campaign_state(history.campaign._replace(events=events[:cut]))
                    count = state.look_count
                    self.assertTrue(0 <= count.left <= count.number)
                    self.assertTrue(all(math.isfinite(number) for number in (state.false_keeps(), state.hours)))
                    self.assertTrue(all(each in state.runs for each in state.open_runs()))

    def test_a_changed_ledger_is_refused(self):
        history = self.history()
        history.append("holdout.jsonl", "look", look=1, answer="no")
        path = history.campaign.file("holdout.jsonl")
        text = Path(path).read_text(encoding="utf-8")
        support.write(path, text.replace('"no"', '"yes"'))
        with self.assertRaises(kaizen.RefusedError) as caught:
            kaizen.campaign_state(history.campaign)
        self.assertEqual(caught.exception.reason, "broken_chain")


if __name__ == "__main__":
    unittest.main()

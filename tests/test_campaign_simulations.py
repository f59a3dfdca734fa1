"""Campaigns whose truth is known, a few of them, by the rules as built; scripts/simulate_campaigns.py plays many.

Everything is seeded. The bands are the promises plus three standard errors of so few campaigns.
"""

import math
import random
import unittest

from support import StrictTestCase, kaizen

import campaign_cases as cases
import simulate_campaigns as simulation
from campaign_worlds import Campaign, World, plain_loop


def band(share, times):
    """*share* and three standard errors of *times* draws."""
    return share + 3 * math.sqrt(share * (1 - share) / times)


class Campaigns(StrictTestCase):
    """Whole campaigns."""

    def test_a_campaign_of_useless_ideas_claims_nothing_where_plain_loops_do(self):
        times = 20
        world = World("null", 50, 100, 40, {"noop": 0.6, "churn": 0.4}, labels="random")
        self.assertLessEqual(simulation.claims(simulation.played(world, times)), band(0.03, times))
        self.assertGreaterEqual(simulation.claims(simulation.plain(world, times, "keep if higher")), 0.8)
        self.assertGreaterEqual(simulation.claims(simulation.plain(world, times, "one sigma")), 0.5)

    def test_good_ideas_are_found_and_the_claim_is_no_boast(self):
        times = 15
        world = World("repairs", 100, 100, 30, {"repair": 0.3, "down": 0.2, "noop": 0.5}, labels="true")
        found = simulation.played(world, times)
        plain = simulation.plain(world, times, "keep if higher")
        truth = simulation.share_of(found, lambda one: one.true_final)
        self.assertGreaterEqual(truth, 0.9 * simulation.share_of(plain, lambda one: one.true_final))
        self.assertGreaterEqual(simulation.claims(found), 0.7)
        over = simulation.share_of(found, lambda one: (one.claimed or 0.0) - one.true_confirmed)
        self.assertLessEqual(over, 0.02 + 3 * 0.05 / math.sqrt(times))  # one campaign's claim is off by about 5 points
        bounds = [bound for one in found for bound in one.bounds]
        self.assertLessEqual(sum(low > true for low, _, true in bounds) / len(bounds), band(0.05, len(bounds)))

    def test_the_same_seed_gives_the_same_campaign(self):
        world = World("mixed", 50, 60, 15, {"up": 0.3, "noop": 0.7})
        self.assertEqual(Campaign(world, random.Random(4)).play(), Campaign(world, random.Random(4)).play())
        self.assertEqual(plain_loop(world, random.Random(4), "one sigma"), plain_loop(world, random.Random(4), "one sigma"))

    def test_learning_the_development_items_by_heart_is_not_confirmed(self):
        times = 20
        world = World("memoriser", 50, 60, 12, {"memorise": 1.0})
        self.assertLessEqual(simulation.claims(simulation.played(world, times)), band(0.03, times))
        self.assertGreaterEqual(simulation.claims(simulation.plain(world, times, "keep if higher")), 0.9)
        self.assertEqual(cases.pasted_text(10, random.Random(1)), (1.0, 0.0))


class Questions(StrictTestCase):
    """Single questions."""

    def test_an_adversary_on_looks(self):
        ours, flat = cases.adversary(40, 5, True, 100, random.Random(1))
        self.assertLessEqual(ours, band(0.05, 100))
        self.assertGreaterEqual(flat, 0.06)  # each look at 5 %

    def test_peeking_is_safe_with_e_processes_and_not_without(self):
        found = cases.peeking(200, 0.0, 200, random.Random(2))
        self.assertLessEqual(found["pairs that differ"], band(0.05, 200))
        self.assertLessEqual(found["betting"], band(0.05, 200))
        self.assertGreaterEqual(found["z at every item"], 0.15)

    def test_a_race_ends_early_for_what_is_worse_and_seldom_for_what_is_better(self):
        stopped, items = cases.racing(-0.15, 0.05, 60, random.Random(3))
        self.assertEqual(stopped, 1.0)
        self.assertLessEqual(items, 55)
        self.assertLessEqual(cases.racing(0.05, 0.05, 60, random.Random(3))[0], band(0.1, 60))

    def test_passes_that_are_off_as_a_whole_fool_only_the_test_that_does_not_know(self):
        found = cases.run_offsets(150, 0.04, 200, random.Random(5))
        self.assertGreaterEqual(found["no run term"], 0.08)
        self.assertLessEqual(found["3 passes and their own"], band(0.06, 200))

    def test_a_look_of_equal_versions_says_yes_no_oftener_than_its_level(self):
        found = cases.calibration(40, True, 200, random.Random(6))
        self.assertLessEqual(found["look 5 %"], band(0.05, 200))
        self.assertGreaterEqual(found["interval"], 0.95 - 3 * math.sqrt(0.05 * 0.95 / 200))

    def test_planned_power_is_what_looks_show(self):
        seen, promised = cases.look_power(100, 3, 0.12, 80, random.Random(7))
        self.assertLessEqual(abs(seen - promised), 0.1 + 1.5 / math.sqrt(80))

    def test_the_luck_line_is_what_luck_shows(self):
        best, line = cases.luck_of(20, 60, random.Random(8))
        self.assertLessEqual(abs(best - line), 0.015)
        self.assertGreater(best, 0.04)

    def test_drift_is_seldom_called_where_there_is_none(self):
        self.assertLessEqual(cases.drift_alarms(0.0, 6, True, 40, random.Random(9)), band(0.06, 40))
        self.assertGreaterEqual(cases.drift_alarms(0.15, 3, True, 20, random.Random(9)), 0.9)

    def test_five_inputs_and_one_run_cannot_see_forty_points(self):
        self.assertGreater(cases.tiny_evals(200, random.Random(10))["mde"], 0.4)

    def test_the_page_shows_every_promise(self):
        checks = [simulation.at_most("no more than 1 %", 0.02, 0.01), simulation.at_least("half a point", 0.006, 0.005, simulation.points)]
        page = simulation.markdown([simulation.Section("Heading", "Text.", ["a", "b"], [["1", "2"]], checks)], simulation.SHORT)
        for line in ("## Heading", "| a | b |", "| 1 | 2 |", "| **FAIL** | no more than 1 % | 2.0 % |", "| PASS | half a point | +0.6 |"):
            self.assertIn(f"\n{line}\n", page)
        self.assertIn("1 of 2 hold", page)
        self.assertIn(kaizen.VERSION, page)


if __name__ == "__main__":
    unittest.main()

"""What the statistics promise, on simulated suites: a few seeded data sets; scripts/simulate.py draws many.

The bands are those of statistics.md 15 less a few standard errors of so few data sets.
"""

import unittest

from support import StrictTestCase

import simulate


class Simulation(StrictTestCase):
    """Coverage and false accepts in the settings under which the rules were chosen."""

    def test_the_interval_of_the_change_covers_it(self):
        for n, sets, least_mean, least in ((10, 25, 0.985, 0.84), (20, 25, 0.975, 0.82), (50, 12, 0.94, 0.66)):
            found = simulate.delta_coverage(n, sets, simulate.settings(simulate.EFFECTS, (1, 5)))
            with self.subTest(n=n):
                self.assertGreaterEqual(sum(found) / len(found), least_mean)
                self.assertGreaterEqual(min(found), least)

    def test_luck_is_called_better_no_oftener_than_promised(self):
        found = simulate.false_better(20, 60, simulate.settings(simulate.NULL_EFFECTS, (1, 5)))
        # Mean of 32 settings × 60 data sets: at most 0.05; a single setting: 0.05 plus three standard errors.
        self.assertLessEqual(sum(found) / len(found), 0.05)
        self.assertLessEqual(max(found), 0.05 + 3 * (0.05 * 0.95 / 60) ** 0.5)

    def test_the_interval_of_a_pass_rate_covers_it(self):
        found = simulate.rate_coverage(20, 200, simulate.settings(("none",), (1, 5)))
        self.assertGreaterEqual(sum(found) / len(found), 0.94)
        self.assertGreaterEqual(min(found), 0.926 - 4 * (0.926 * 0.074 / 200) ** 0.5)

    def test_the_best_of_twenty_that_change_nothing_does_not_win_by_holm(self):
        alone, held = simulate.family_error(20, 5, 20, 60)
        self.assertGreaterEqual(alone, 0.1)
        self.assertLessEqual(held, 0.05)

    def test_peeking_after_every_case_is_safe_with_the_e_process(self):
        found = simulate.peeking_error(150, 25, simulate.settings(simulate.NULL_EFFECTS, (1, 5)))
        self.assertLessEqual(sum(found) / len(found), 0.05)


if __name__ == "__main__":
    unittest.main()

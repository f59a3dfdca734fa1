"""Rates, percentiles, repetition metrics, counts, and what they say of nothing."""

import itertools
import math
import unittest
from fractions import Fraction

from support import DATA, StrictTestCase, kaizen, read_json

LISTS = {"one": [7], "two": [1, 2], "twenty": range(1, 21), "twenty-one": range(1, 22), "hundred": range(1, 101)}
FIELD = read_json(DATA / "field_cases_35_36.json")


class FewTrials(StrictTestCase):
    """Confidence from one trial: rrlmgraph-bench#19, inspect_ai#4161."""

    def test_wilson_limits_are_those_of_the_table(self):
        for name, expected in FIELD["wilson"].items():
            passed, trials = map(int, name.split("/"))
            found = kaizen.wilson_interval(passed, trials)
            with self.subTest(name):
                if expected is None:
                    self.assertIsNone(found)
                else:
                    self.assertEqual([round(value, 4) for value in found], [round(value, 4) for value in expected])
                    self.assertTrue(0 <= found.low <= found.high <= 1)

    def test_what_needs_two_observations_is_unknown_with_one(self):
        self.assertEqual([kaizen.stability(passed, 1) for passed in (0, 1)], ["unknown", "unknown"])
        self.assertIsNone(kaizen.pass_rate([(1, 1, 1), (0, 1, 1)]).trial_noise_se)
        self.assertIsNone(kaizen.trial_variance([(1, 1)]))
        self.assertIsNone(kaizen.measured_spread([(0, 1, 1, 1)]))

    def test_repetitions_do_not_make_a_suite_of_sure_cases_larger(self):
        self.assertEqual(kaizen.effective_sample_size([(5, 5)] * 8), 8.0)
        self.assertEqual(kaizen.effective_sample_size([(5, 5)] * 4 + [(0, 5)] * 4), 8.0)

    def test_noise_within_cases_makes_trials_count(self):
        n_eff = kaizen.effective_sample_size([(2, 4), (2, 4), (2, 4)])
        # m = 0.5, v = (0.75 + 1) / 5 - 0.25 = 0.1; 3 × 0.25 / 0.1
        self.assertAlmostEqual(n_eff, 7.5, delta=1e-12)

    def test_the_noise_of_the_trials_alone_is_that_of_the_formula(self):
        found = kaizen.pass_rate([(1, 2, 2), (3, 3, 3), (0, 2, 3)])
        self.assertAlmostEqual(found.trial_noise_se, math.sqrt(0.25 / 1) / 3, delta=1e-15)
        self.assertEqual((found.excluded, found.bound_if_excluded_pass), (1, Fraction(11, 18)))


class ShortLists(StrictTestCase):
    """The 95th percentile of a short list: mergewatch.ai#336, agno#8656."""

    def test_p95_is_the_documented_one_whatever_the_order(self):
        for name, values in LISTS.items():
            for given in (list(values), list(reversed(values))):
                found = kaizen.percentile(given, 95)
                self.assertAlmostEqual(found.value, FIELD["p95"][name]["linear"], delta=1e-12)
                self.assertLessEqual(found.value, max(values))
                self.assertEqual(found.n, len(values))

    def test_nothing_is_not_zero(self):
        self.assertEqual(kaizen.percentile([], 95), (None, 0, 0, "no_values"))
        self.assertEqual(kaizen.percentile([math.nan, None, math.inf], 95), (None, 0, 3, "no_values"))
        self.assertEqual((kaizen.mean([]), kaizen.median([])), (None, None))

    def test_p95_has_an_upper_limit_from_72_values_on(self):
        self.assertIsNone(kaizen.quantile_ranks(71, 0.95)[1])
        self.assertEqual(kaizen.quantile_ranks(72, 0.95)[1], 71)
        self.assertEqual(kaizen.quantile_ranks(0, 0.5), (None, None))

    def test_the_ranks_cover_what_they_promise(self):
        for n, quantile in ((8, 0.5), (30, 0.9), (200, 0.95)):
            low, high = kaizen.quantile_ranks(n, quantile)
            chances = [math.comb(n, k) * quantile**k * (1 - quantile) ** (n - k) for k in range(n + 1)]
            if low is not None:
                self.assertLessEqual(sum(chances[: low + 1]), 0.025)
            if high is not None:
                self.assertLessEqual(sum(chances[high + 1 :]), 0.025)


class Repetitions(StrictTestCase):
    """pass@k and pass^k are chances of drawing trials."""

    def test_they_are_what_drawing_every_set_of_trials_gives(self):
        trials = (1, 1, 0, 1, 0, 0)
        for k in range(1, 7):
            picks = list(itertools.combinations(trials, k))
            self.assertEqual(kaizen.pass_hat_k([(3, 6)], k)[0], Fraction(sum(map(all, picks)), len(picks)))
            self.assertEqual(kaizen.pass_at_k([(3, 6)], k)[0], Fraction(sum(map(any, picks)), len(picks)))

    def test_cases_with_fewer_trials_are_left_out_and_counted(self):
        self.assertEqual(kaizen.pass_hat_k([(1, 1), (2, 3), (0, 0)], 2), (Fraction(1, 3), 2))
        self.assertEqual(kaizen.pass_at_k([(1, 1)], 2), (None, 1))


class Counts(StrictTestCase):
    """Precision, recall, F."""

    def test_f_can_be_zero_while_precision_is_unknown(self):
        self.assertEqual(kaizen.precision_recall(0, 0, 3), (None, 0.0, 0.0))
        self.assertEqual(kaizen.precision_recall(0, 0, 0), (None, None, None))


if __name__ == "__main__":
    unittest.main()

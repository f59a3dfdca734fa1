"""The seeded sampler, planning, families, sequential looks, agreement: properties beyond the reference cases."""

import itertools
import math
import random
import statistics
import unittest

from support import StrictTestCase, kaizen

TABLE = {  # smallest effect by cases, at 1, 3, 5 and 10 trials
    20: (0.32, 0.22, 0.19, 0.17),
    50: (0.20, 0.14, 0.12, 0.11),
    100: (0.14, 0.10, 0.085, 0.075),
    200: (0.10, 0.069, 0.060, 0.053),
    1000: (0.045, 0.031, 0.027, 0.024),
}


class Sampler(StrictTestCase):
    """Exact draws from counts."""

    def test_draws_have_the_probabilities_of_the_binomial_law(self):
        rng = random.Random(17)
        draws = [kaizen.binomial_draw(rng, 4, 2, 7) for _ in range(40_000)]
        for k in range(5):
            share = math.comb(4, k) * 2**k * 5 ** (4 - k) / 7**4
            # Five standard errors of a share of 40,000.
            self.assertAlmostEqual(draws.count(k) / 40_000, share, delta=5 * math.sqrt(share * (1 - share) / 40_000))

    def test_a_multinomial_draw_keeps_the_total(self):
        rng = random.Random(1)
        for counts in ([5], [3, 2, 1], [100, 50, 25, 1, 1]):
            self.assertEqual(sum(kaizen.multinomial_draw(rng, counts)), sum(counts))

    def test_a_label_gives_a_seed_of_its_own(self):
        self.assertEqual(kaizen.sub_seed(1, "a"), kaizen.sub_seed(1, "a"))
        self.assertNotEqual(kaizen.sub_seed(1, "a"), kaizen.sub_seed(1, "b"))

    def test_groups_in_another_order_draw_the_same(self):
        groups = {("x", 1): 5, ("y", 0): 5, ("z", 1): 2}

        def statistic(drawn):
            return float(sum(count for content, count in drawn if content[1]))

        one = kaizen.resampled(groups, statistic, 3, 50)
        self.assertEqual(one, kaizen.resampled(dict(reversed(groups.items())), statistic, 3, 50))

    def test_more_than_a_twentieth_undefined_leaves_no_quantile(self):
        self.assertIsNone(kaizen.Resampled([1.0] * 94, 6).quantile(0.5))
        self.assertEqual(kaizen.Resampled([1.0] * 95, 5).quantile(0.5), 1.0)
        self.assertIsNone(kaizen.Resampled([], 0).quantile(0.5))

    def test_the_seeded_bootstrap_meets_the_exact_one(self):
        """The mean of 0/1 values, drawn and summed exactly."""
        drawn = kaizen.resampled({1: 14, 0: 6}, lambda cells: sum(value * count for value, count in cells) / 20, 5, 10_000)
        chances = [math.comb(20, k) * 0.7**k * 0.3 ** (20 - k) for k in range(21)]
        self.assertAlmostEqual(sum(value > 0.75 for value in drawn.values) / 10_000, sum(chances[16:]), delta=0.025)


class Families(StrictTestCase):
    """Adjusted p-values and the smallest number of informative cases."""

    def test_equal_p_values_stay_in_their_places(self):
        self.assertEqual(kaizen.holm([0.02, None, 0.02, 0.5]), [0.06, None, 0.06, 0.5])
        self.assertEqual(kaizen.benjamini_hochberg([0.5, 0.02, None, 0.02]), [0.5, 0.03, None, 0.03])
        self.assertEqual(kaizen.holm([None]), [None])

    def test_holm_is_the_closure_of_bonferroni(self):
        """An adjusted p-value is the largest Bonferroni p-value of all subfamilies that hold the variant (Marcus et al. 1976)."""
        p = [0.011, 0.04, 0.03, 0.7]
        for index, found in enumerate(kaizen.holm(p)):
            families = [s for r in range(1, 5) for s in itertools.combinations(range(4), r) if index in s]
            self.assertAlmostEqual(found, max(min(1.0, len(s) * min(p[i] for i in s)) for s in families), delta=1e-15)

    def test_five_cases_must_differ_before_one_variant_can_win(self):
        self.assertEqual([kaizen.informative_cases_needed(0.05, n) for n in (1, 3, 5, 10, 20)], [5, 6, 7, 8, 9])
        self.assertEqual(kaizen.informative_cases_needed(0.0625), 4)  # exactly 1 / 2^4


class Planning(StrictTestCase):
    """The table of statistics.md 10 and the limits of the formulas."""

    def test_the_table_of_a_typical_suite(self):
        spread = kaizen.Spread(0.05, 0.105, 0.105, True)
        for n, row in TABLE.items():
            for trials, expected in zip((1, 3, 5, 10), row, strict=False):
                self.assertAlmostEqual(
                    kaizen.smallest_effect(spread, trials, trials, n), expected, delta=0.0051 if expected >= 0.1 else 0.00051
                )

    def test_effect_and_cases_are_inverse(self):
        spread = kaizen.Spread(0.02, 0.2, 0.1, True)
        n = kaizen.cases_needed(spread, 3, 5, 0.08)
        self.assertAlmostEqual(kaizen.smallest_effect(spread, 3, 5, n), 0.08, delta=1e-12)

    def test_the_spread_of_a_suite_without_noise_is_all_between_cases(self):
        spread = kaizen.measured_spread([(0, 3, 3, 3), (3, 3, 3, 3), (0, 3, 0, 3), (3, 3, 0, 3)])
        self.assertEqual((spread.sigma2_a, spread.sigma2_b), (0.0, 0.0))
        self.assertAlmostEqual(spread.omega2, 2 / 3, delta=1e-12)  # of 1, 0, 0, -1

    def test_the_spread_of_clusters_foretells_how_much_the_change_scatters(self):
        """Twenty clusters of six cases, which share their chances of passing: 0.1, 0.5 or 0.9 on each side, three trials each."""
        chance = random.Random(11)
        told, naive = [], []
        for _ in range(200):
            pairs, clusters = [], []
            for cluster in range(20):
                chances = [chance.choice([0.1, 0.5, 0.9]) for _ in range(2)]
                for _ in range(6):
                    before, after = (sum(chance.random() < p for _ in range(3)) for p in chances)
                    pairs.append((before, 3, after, 3))
                    clusters.append(f"k{cluster}")
            told.append(kaizen.measured_spread(pairs, clusters).of_case(3, 3) / 20)
            naive.append(kaizen.measured_spread(pairs).of_case(3, 3) / 120)
        # Variance of the chances 0.32 / 3, mean of p (1 - p) 0.43 / 3; the mean of 200 estimates is within 2.3 % of it (one standard error).
        true = (2 * 0.32 / 3 + 2 * 0.43 / 3 / 18) / 20
        self.assertAlmostEqual(statistics.fmean(told) / true, 1, delta=0.07)
        self.assertLess(statistics.fmean(naive) / true, 0.3)

    def test_clusters_of_one_case_change_nothing(self):
        pairs = [(0, 3, 3, 3), (3, 3, 3, 3), (1, 3, 0, 3), (3, 3, 2, 3)]
        self.assertEqual(kaizen.measured_spread(pairs, ["a", "b", None, "c"]), kaizen.measured_spread(pairs))
        self.assertIsNone(kaizen.measured_spread(pairs, ["a"] * 4))

    def test_power_grows_with_cases_and_starts_at_nothing(self):
        power = [kaizen.exact_mcnemar_power(n, 0.05, 0.25) for n in (4, 20, 60, 120)]
        self.assertEqual(power, sorted(power))
        self.assertLess(power[0], 0.01)
        self.assertEqual(kaizen.exact_mcnemar_power(10, 0.0, 0.0), 0.0)


class Sequential(StrictTestCase):
    """The e-process."""

    def test_its_mean_is_one_where_nothing_changed(self):
        """Over all sequences of six fair ±1 differences E has mean 1: a martingale."""
        total = sum(math.exp(kaizen.e_process(signs).log_e) for signs in itertools.product((1, -1), repeat=6))
        self.assertAlmostEqual(total / 64, 1.0, delta=1e-12)

    def test_peeking_at_every_case_keeps_the_promise(self):
        rng = random.Random(12)
        alarms = sum(kaizen.e_process([rng.choice((-1, 0, 0, 1)) for _ in range(200)]).stop_at is not None for _ in range(400))
        self.assertLessEqual(alarms / 400, 0.05)

    def test_nothing_seen_is_no_evidence(self):
        self.assertEqual(kaizen.e_process([]), (0.0, 1.0, None))
        with self.assertRaises(ValueError):
            kaizen.e_process([0.5, 1.5])

    def test_looks_spend_no_more_than_alpha(self):
        self.assertLess(sum(kaizen.alpha_of_look(0.05, look) for look in range(1, 10_000)), 0.05)


class Agreement(StrictTestCase):
    """Kappa's interval rule and the rest that the reference cases do not hold."""

    def test_one_label_throughout_has_no_kappa_and_a_base_rate_has_none_beyond_chance(self):
        """Field case 34."""
        found = kaizen.kappa_of([("approve", "approve")] * 10)
        self.assertEqual((found.agreement, found.kappa, found.reason), (1.0, None, "no_expected_disagreement"))
        found = kaizen.kappa_of([("approve", "approve")] * 9 + [("approve", "reject")])
        self.assertEqual((found.agreement, found.kappa), (0.9, 0.0))

    def test_a_sparse_table_gets_the_wider_hull(self):
        table = [[60, 5], [4, 11]]
        interval, reason = kaizen.kappa_interval(table, 7)
        smoothed = kaizen.smoothed_kappa_interval(table)
        self.assertIsNone(reason)
        self.assertLessEqual(interval.low, smoothed.low)
        self.assertGreaterEqual(interval.high, smoothed.high)

    def test_fewer_than_twenty_pairs_give_no_verdict(self):
        self.assertEqual(kaizen.kappa_interval([[5, 2], [1, 6]], 7), (None, "insufficient_evidence"))
        self.assertEqual(kaizen.kappa_interval([[0, 0], [0, 0]], 7), (None, "no_common_cases"))
        self.assertEqual(kaizen.kappa_interval([[30, 0], [0, 0]], 7), (None, "no_expected_disagreement"))

    def test_accuracy_95_on_both_sides_has_another_kappa_at_another_prevalence(self):
        """statistics.md 8.1: 0.81 at 50/50, 0.45 at 95/5."""
        for share, expected in ((0.5, 0.81), (0.95, 0.45)):
            right, wrong = 0.95**2, 0.05**2
            both, neither = share * right + (1 - share) * wrong, share * wrong + (1 - share) * right
            found = kaizen.cohen_kappa([[both, 0.0475], [0.0475, neither]])
            self.assertAlmostEqual(found.kappa, expected, delta=0.006)

    def test_a_consensus_needs_more_than_half_of_two(self):
        self.assertEqual(kaizen.consensus(["a", "a", "b"]), ("a", "consensus"))
        self.assertEqual(kaizen.consensus(["a", "b"]), (None, "contested"))
        self.assertEqual(kaizen.consensus(["a", None]), (None, "uncovered"))


if __name__ == "__main__":
    unittest.main()

"""Paired passes against scipy and statsmodels of today, on data drawn anew from a fixed seed."""

import random
import sys
import unittest
from pathlib import Path

import numpy as np
import scipy.optimize
import scipy.stats
import statsmodels.api as sm

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

import kaizen


def drawn(rng, items, trials):
    """{item: scores of its trials} of a side."""
    return {f"i{number:03d}": [float(rng.random() < 0.6) for _ in range(trials)] for number in range(items)}


class Peers(unittest.TestCase):
    """Other programs, the same numbers."""

    def near(self, found, expected, tolerance=1e-9):
        self.assertLessEqual(abs(found - expected), tolerance * max(1.0, abs(expected)), (found, expected))

    def test_items_alone_are_scipys_paired_t_test(self):
        rng = random.Random(1)
        for items, trials in ((12, 1), (50, 3), (150, 4)):
            after, before = drawn(rng, items, trials), drawn(rng, items, 1)
            means = [[float(np.mean(side[item])) for item in sorted(side)] for side in (after, before)]
            expected = scipy.stats.ttest_rel(*means, alternative="greater")
            found = kaizen.paired_difference(after, before, {})
            for one, other in ((found.z, expected.statistic), (found.df, expected.df), (found.p_greater, expected.pvalue)):
                self.near(one, float(other))
            self.near(found.p_less, scipy.stats.ttest_rel(*means, alternative="less").pvalue)
            limits = scipy.stats.ttest_rel(*means).confidence_interval(0.95)
            if items > 12:  # of fewer that differ the interval is wider than Student's
                self.near(found.interval_low, float(limits.low), 1e-7)
                self.near(found.interval_high, float(limits.high), 1e-7)

    def test_clusters_are_statsmodels_cluster_robust_error_of_a_mean(self):
        rng = random.Random(2)
        for _ in range(5):
            after, before = drawn(rng, 80, 3), drawn(rng, 80, 3)
            groups = {item: f"c{rng.randrange(17)}" for item in after}
            d = np.array([np.mean(after[item]) - np.mean(before[item]) for item in sorted(after)])
            codes = np.array([int(groups[item][1:]) for item in sorted(after)])
            fitted = sm.OLS(d, np.ones(80)).fit(cov_type="cluster", cov_kwds={"groups": codes})
            found = kaizen.paired_difference(after, before, groups)
            self.near(found.gain, float(fitted.params[0]))
            self.near(found.se, float(fitted.bse[0]))
            self.near(found.p_greater, float(scipy.stats.t.sf(found.z, len(set(codes)) - 1)))

    def test_degrees_of_freedom_are_those_of_welch(self):
        rng = np.random.default_rng(3)
        for sizes in ((5, 9), (30, 3), (2, 100)):
            first, second = (rng.normal(0, scale, size) for scale, size in zip((1.0, 3.0), sizes, strict=True))
            expected = scipy.stats.ttest_ind(first, second, equal_var=False).df
            parts = [(float(np.var(side, ddof=1)) / len(side), len(side) - 1) for side in (first, second)]
            self.near(kaizen.satterthwaite(parts), float(expected))

    def test_p_with_a_run_term_is_students_at_broken_degrees(self):
        rng = random.Random(4)
        after, before = drawn(rng, 60, 3), drawn(rng, 60, 3)
        for variance, passes in ((0.0004, 3), (0.01, 5), (0.002, 14)):
            found = kaizen.paired_difference(after, before, {}, variance, (3, 3), passes)
            self.near(found.p_greater, float(scipy.stats.t.sf(found.gain / found.se, found.df)))
            # Quantiles are looked up at degrees rounded down to a tenth: never narrower, and by little
            half, exact = (found.interval_high - found.interval_low) / 2, scipy.stats.t.ppf(0.975, found.df) * found.se
            self.assertTrue(exact * (1 - 1e-9) <= half <= exact * 1.04, (half, exact, found.df))

    def test_the_run_variance_is_that_of_a_random_effect(self):
        """Method of moments: expected mean squares of a two-way layout without repetition, passes as random effect."""
        rng = np.random.default_rng(5)
        scores = rng.normal(0.6, 0.3, (40, 1)) + rng.normal(0, 0.2, (40, 6)) + rng.normal(0, 0.1, (1, 6))
        found = kaizen.noise_floor({str(number): row.tolist() for number, row in enumerate(scores)})
        within = np.var(scores, axis=1, ddof=1).sum() / 40**2
        self.near(found.se_pass, float(np.sqrt(within)))
        self.near(found.excess, float(np.var(scores.mean(axis=0), ddof=1) - within))

    def test_non_inferiority_is_scipys_shifted_t_test(self):
        rng = np.random.default_rng(6)
        for margin in (0.0, 0.02, 0.05, 0.1):
            d = rng.normal(-0.02, 0.15, 40)
            found = kaizen.paired_difference({str(k): [float(v)] for k, v in enumerate(d)}, {str(k): [0.0] for k in range(40)}, {})
            expected = scipy.stats.ttest_1samp(d, -margin, alternative="greater").pvalue < 0.1
            self.assertEqual(kaizen.non_inferior(found, margin), bool(expected))

    def test_the_estimate_after_a_look_is_the_median_of_a_truncated_normal(self):
        least = scipy.stats.t.ppf(0.995, 1e6)
        for z in (2.7, 3.0, 4.0, 6.0):
            found = kaizen.Difference(10**6, 10**6, z, 1.0, 1.0, z, 1e6, None, None, -9.0, 9.0)
            median = scipy.optimize.brentq(lambda m, z=z: scipy.stats.truncnorm.median(least - m, np.inf, loc=m) - z, z - 8, z)
            self.near(kaizen.confirmed_gain(found, 0.005), max(0.0, median), 1e-6)


if __name__ == "__main__":
    unittest.main()

"""The statistics against scipy, statsmodels and scikit-learn of today, on data drawn anew from a fixed seed."""

import json
import math
import random
import sys
import unittest
from fractions import Fraction
from pathlib import Path

import krippendorff
import numpy as np
import scipy.stats
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

import kaizen

REFERENCE = json.loads((ROOT / "tests" / "data" / "stats_reference.json").read_text(encoding="utf-8"))["sets"]


def chosen(quantity, count):
    """A seeded part of the reference cases of *quantity*."""
    cases = REFERENCE[quantity]["cases"]
    return random.Random(7).sample(cases, min(count, len(cases)))


def table_labels(table):
    """Two label lists that give the square *table*."""
    pairs = [(i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    return [i for i, _ in pairs], [j for _, j in pairs]


class Peers(unittest.TestCase):
    """Other programs, the same numbers."""

    def near(self, found, expected, tolerance=1e-9):
        self.assertLessEqual(abs(found - expected), tolerance * max(1.0, abs(expected)), (found, expected))

    def test_rates(self):
        for case in chosen("wilson", 8):
            k, n, confidence = case["input"]["k"], case["input"]["n"], case["input"]["confidence"]
            if n:
                for found, method in ((kaizen.wilson_interval, "wilson"), (kaizen.clopper_pearson_interval, "beta")):
                    for one, other in zip(found(k, n, confidence), proportion_confint(k, n, 1 - confidence, method), strict=False):
                        self.near(one, float(other), 1e-8)

    def test_quantiles_and_tails(self):
        rng = random.Random(1)
        for _ in range(40):
            p, freedom = rng.uniform(0.5, 0.9999), rng.choice((1, 2, 5, 30, 400, 20_000))
            self.near(kaizen.student_point(p, freedom), scipy.stats.t.ppf(p, freedom))
            self.near(kaizen.normal_point(p), scipy.stats.norm.ppf(p))
            self.near(kaizen.beta_share(3 * p, 7 * p, 1 - p), scipy.stats.beta.cdf(1 - p, 3 * p, 7 * p))
        for x in (3.0, 9.0, 25.0):
            self.near(kaizen.normal_tail(x) / scipy.stats.norm.sf(x), 1.0)

    def test_mcnemar_and_the_sign_flip_test(self):
        rng = random.Random(2)
        pairs = [(rng.randint(0, 40), rng.randint(1, 40)) for _ in range(20)] + [(88, 260)]
        for lost, gained in pairs:
            expected = mcnemar([[50, lost], [gained, 50]], exact=True).pvalue
            self.near(kaizen.mcnemar(lost, gained).exact / expected, 1.0, 1e-8)
            counts = {Fraction(1): gained, Fraction(-1): lost, Fraction(0): 9}
            self.near(kaizen.sign_flip(counts).greater / scipy.stats.binomtest(gained, lost + gained, alternative="greater").pvalue, 1.0, 1e-8)

    def test_the_sign_flip_test_with_repetitions_is_scipys_permutation_test(self):
        rng = random.Random(3)
        values = [rng.randint(-5, 5) / 5 for _ in range(11)]
        drawn = scipy.stats.permutation_test((np.array(values),), np.sum, permutation_type="samples", alternative="greater", n_resamples=np.inf)
        found = kaizen.sign_flip({Fraction(value).limit_denominator(5): values.count(value) for value in set(values)})
        self.near(found.greater, drawn.pvalue, 1e-12)

    def test_gsm8k_of_two_models(self):
        """1,319 problems, 88 lost, 260 gained: delta 0.1304, and the interval of a bootstrap that draws."""
        counts = {Fraction(1): 260, Fraction(-1): 88, Fraction(0): 971}
        found = kaizen.paired_mean(counts)
        self.assertEqual(round(float(found.delta), 4), 0.1304)
        values = np.repeat([1.0, -1.0, 0.0], [260, 88, 971])
        drawn = scipy.stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1))
        for one, other in zip(found.percentile, drawn.confidence_interval, strict=False):
            self.near(one, other, 8e-4)
        self.near(found.se, scipy.stats.sem(values), 1e-12)
        for one, other in zip(found.student, scipy.stats.t.interval(0.95, 1318, values.mean(), scipy.stats.sem(values)), strict=False):
            self.near(one, other)
        self.near(kaizen.mcnemar(88, 260).exact / mcnemar([[198, 88], [260, 773]], exact=True).pvalue, 1.0, 1e-8)
        self.near(kaizen.sign_flip(counts).two_sided / scipy.stats.binomtest(88, 348).pvalue, 1.0, 1e-8)

    def test_percentiles_and_their_limits(self):
        rng = np.random.default_rng(4)
        values = rng.lognormal(size=150)
        for percent in (0, 5, 33.3, 50, 95, 100):
            self.near(kaizen.percentile(values.tolist(), percent).value, float(np.percentile(values, percent)), 1e-12)
        for quantile in (0.5, 0.9, 0.95):
            expected = scipy.stats.quantile_test(np.arange(150.0), q=0.5, p=quantile).confidence_interval(0.95)
            self.assertEqual(kaizen.quantile_ranks(150, quantile), (int(expected.low), int(expected.high)))

    def test_families(self):
        rng = random.Random(5)
        for size in (1, 4, 20):
            p = [rng.random() ** 3 for _ in range(size)]
            for found, method in ((kaizen.holm, "holm"), (kaizen.benjamini_hochberg, "fdr_bh"), (kaizen.bonferroni, "bonferroni")):
                for one, other in zip(found(p), multipletests(p, method=method)[1], strict=False):
                    self.near(one, float(other), 1e-12)

    def test_kappa(self):
        for case in chosen("kappa", 6):
            table = case["input"].get("table")
            if table and case["expected"]["kappa"] is not None:
                weights = case["input"]["weights"]
                expected = cohen_kappa_score(*table_labels(table), weights=weights)
                self.near(kaizen.cohen_kappa(table, weights or "nominal").kappa, expected, 1e-12)
        self.near(kaizen.fleiss_kappa([[4, 0, 1], [3, 1, 1], [0, 4, 1]])[0], fleiss_kappa(np.array([[4, 0, 1], [3, 1, 1], [0, 4, 1]])), 1e-12)

    def test_kappa_of_drawn_tables_with_every_weight_and_its_standard_error(self):
        rng = np.random.default_rng(8)
        types = {"nominal": (None, None), "linear": ("linear", "linear"), "quadratic": ("quadratic", "quadratic")}
        for _ in range(30):
            size = int(rng.integers(2, 6))
            table = rng.integers(0, 30, (size, size)) + np.diag(rng.integers(1, 40, size))
            for weights, (sklearn_name, statsmodels_name) in types.items():
                found = kaizen.cohen_kappa(table.tolist(), weights)
                self.near(found.kappa, cohen_kappa_score(*table_labels(table.tolist()), weights=sklearn_name), 1e-12)
                other = cohens_kappa(table, wt=statsmodels_name)
                self.near(found.kappa, float(other.kappa), 1e-12)
                self.near(found.se, float(other.std_kappa), 1e-9)

    def test_krippendorffs_alpha_of_drawn_incomplete_ratings(self):
        rng = np.random.default_rng(9)
        for _ in range(20):
            raters, units, size = int(rng.integers(2, 7)), int(rng.integers(10, 60)), int(rng.integers(2, 6))
            truth = rng.integers(0, size, units)
            ratings = np.where(rng.random((raters, units)) < 0.7, truth, rng.integers(0, size, (raters, units))).astype(float)
            ratings[rng.random((raters, units)) < 0.3] = np.nan
            rows = [[None if math.isnan(value) else value for value in row] for row in ratings.tolist()]
            for level in ("nominal", "ordinal", "interval"):
                self.near(kaizen.krippendorff_alpha(rows, level)[0], float(krippendorff.alpha(ratings, level_of_measurement=level)), 1e-9)

    def test_how_a_judge_stands_lies_where_numpys_bootstrap_lies(self):
        rng = np.random.default_rng(10)
        truth = rng.integers(0, 2, 150)
        columns = [np.where(rng.random(150) < share, truth, 1 - truth) for share in (0.8, 0.9, 0.9, 0.85)]
        rows = [("pf"[judge], ["pf"[label] for label in experts]) for judge, *experts in zip(*map(np.ndarray.tolist, columns), strict=True)]

        def difference(places):
            kappas = {(a, b): cohen_kappa_score(columns[a][places], columns[b][places]) for a in range(4) for b in range(a + 1, 4)}
            return np.mean([kappas[0, j] for j in (1, 2, 3)]) - np.mean([kappas[pair] for pair in ((1, 2), (1, 3), (2, 3))])

        found = kaizen.level_difference(rows, ["p", "f"], 1)
        self.near(found.difference, difference(np.arange(150)), 1e-9)
        draws = [difference(rng.integers(0, 150, 150)) for _ in range(600)]
        tail = kaizen.expanded_tail(150)
        for limit, level in zip(found.interval, (tail, 1 - tail), strict=True):
            self.near(limit, float(np.quantile(draws, level)), 0.025)

    def test_counts(self):
        truth, said = [1] * 9 + [0] * 6, [1] * 6 + [0] * 3 + [1] * 2 + [0] * 4
        precision, recall, f, _ = precision_recall_fscore_support(truth, said, beta=2.0, average="binary")
        for one, other in zip(kaizen.precision_recall(6, 2, 3, 2.0), (precision, recall, f), strict=False):
            self.near(one, float(other), 1e-12)

    def test_the_exact_bootstrap_lies_where_a_million_draws_lie(self):
        rng = np.random.default_rng(6)
        values = rng.choice([-0.4, -0.2, 0.0, 0.2, 0.6], size=30, p=[0.05, 0.15, 0.5, 0.2, 0.1])
        kinds, times = np.unique(values, return_counts=True)
        means = rng.multinomial(30, times / 30, size=1_000_000) @ kinds / 30
        found = kaizen.paired_mean({Fraction(float(kind)).limit_denominator(5): int(count) for kind, count in zip(kinds, times, strict=False)})
        self.near(found.p_gt, float((means > 1e-9).mean()), 5 * math.sqrt(0.25 / 1_000_000))
        low, high = np.quantile(means, [0.025, 0.975])
        self.near(found.percentile.low, float(low), 1e-2)
        self.near(found.percentile.high, float(high), 1e-2)

    def test_the_power_of_mcnemars_test(self):
        n, lost, gained = 40, 0.05, 0.25
        power = 0.0
        for m in range(n + 1):
            share = scipy.stats.binom.pmf(m, n, lost + gained)
            rejects = [k for k in range(m + 1) if m and min(1.0, 2 * scipy.stats.binom.cdf(min(k, m - k), m, 0.5)) <= 0.05]
            power += share * sum(scipy.stats.binom.pmf(k, m, gained / (lost + gained)) for k in rejects)
        self.near(kaizen.exact_mcnemar_power(n, lost, gained), power)


if __name__ == "__main__":
    unittest.main()

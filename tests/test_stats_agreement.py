"""How a judge stands among experts, and a rate corrected for a judge's error: against counting and simulation."""

import random
import unittest
from itertools import combinations

import support
from labelling import designed, drawn
from support import kaizen


class Level(support.StrictTestCase):
    """Mean kappa with the experts minus mean kappa between them."""

    def test_the_difference_is_that_of_the_means_of_kappas(self):
        for weights, labels in (("nominal", ("pass", "fail")), ("quadratic", ("a", "b", "c"))):
            rows = drawn(120, (0.8, 0.9, 0.7, 0.85), 3, labels)
            found = kaizen.level_difference(rows, labels, 1, weights, resamples=200)
            columns = list(zip(*[(judge, *experts) for judge, experts in rows], strict=True))
            kappas = {(a, b): kaizen.kappa_of(zip(columns[a], columns[b], strict=True), labels, weights).kappa for a, b in combinations(range(4), 2)}
            judge = sum(kappas[0, j] for j in (1, 2, 3)) / 3
            experts = sum(kappas[pair] for pair in ((1, 2), (1, 3), (2, 3))) / 3
            self.assertAlmostEqual(found.difference, judge - experts, 12)
            self.assertTrue(found.interval.low < found.difference < found.interval.high)

    def test_the_same_seed_gives_the_same_interval_in_any_order(self):
        rows = drawn(60, (0.8, 0.9, 0.7), 3)
        shuffled = random.Random(1).sample(rows, len(rows))
        self.assertEqual(kaizen.level_difference(rows, ("pass", "fail"), 5, resamples=300), kaizen.level_difference(shuffled, ("pass", "fail"), 5, resamples=300))

    def test_the_interval_holds_the_truth_of_drawn_judges(self):
        """40 draws of 100 cases: an equal judge (truth 0) and a worse one (0.8·0.6 - 0.8·0.8); all but a few hold it."""
        for accuracy, truth in ((0.9, 0.0), (0.8, -0.16)):
            held = 0
            for seed in range(40):
                interval = kaizen.level_difference(drawn(100, (accuracy, 0.9, 0.9, 0.9), seed), ("pass", "fail"), seed, resamples=400).interval
                held += interval.low <= truth <= interval.high
            self.assertGreaterEqual(held, 35)

    def test_pairs_of_few_cases_are_left_out_and_none_left_is_no_verdict(self):
        rows = [(judge, [*experts, "pass" if number < 19 else None]) for number, (judge, experts) in enumerate(designed(1))]
        found = kaizen.level_difference(rows, ("pass", "fail"), 1, resamples=50)
        self.assertEqual(found.left_out, 6)
        self.assertAlmostEqual(found.experts, 0.36, 12)
        self.assertEqual(kaizen.level_difference(rows[:19], ("pass", "fail"), 1).reason, "insufficient_evidence")
        self.assertEqual(kaizen.level_difference([], ("pass", "fail"), 1).reason, "insufficient_evidence")
        self.assertEqual(kaizen.level_difference([("pass", ["pass", "pass"])] * 30, ("pass", "fail"), 1).reason, "no_expected_disagreement")


class Corrected(support.StrictTestCase):
    """Rogan and Gladen's estimate with Lang and Reiczigel's interval."""

    def test_a_judge_without_error_changes_nothing(self):
        self.assertAlmostEqual(kaizen.rogan_gladen(0.3, 100, (50, 50), (50, 50)).rate, 0.3, 12)

    def test_the_estimate_stays_inside_0_and_1(self):
        self.assertEqual(kaizen.rogan_gladen(0.05, 100, (90, 100), (80, 100)).rate, 0.0)
        self.assertEqual(kaizen.rogan_gladen(0.99, 100, (90, 100), (80, 100)).rate, 1.0)
        for rate in (0.0, 0.05, 0.99, 1.0):
            found = kaizen.rogan_gladen(rate, 100, (9, 10), (8, 10))
            self.assertTrue(0 <= found.interval.low <= found.rate <= found.interval.high <= 1)

    def test_what_cannot_be_corrected_says_why(self):
        for sides, reason in ((((0, 0), (50, 50)), "too_few_labelled_cases"), (((50, 50), (9, 9)), "too_few_labelled_cases"), (((5, 10), (5, 10)), "uninformative_judge")):
            found = kaizen.rogan_gladen(0.5, 100, *sides)
            self.assertEqual((found.rate, found.interval, found.reason), (None, None, reason))

    def test_fewer_labels_widen_the_interval(self):
        widths = [(lambda interval: interval.high - interval.low)(kaizen.rogan_gladen(0.5, 1000, (9 * n, 10 * n), (8 * n, 10 * n)).interval) for n in (1, 10, 1000)]
        self.assertTrue(widths[0] > widths[1] > widths[2])

    def test_the_interval_holds_the_truth_in_19_of_20_simulations(self):
        """4 settings, 1,000 draws each: true rate, sensitivity and specificity are known, everything else is drawn."""

        def binomial(rng, n, share):
            return sum(rng.random() < share for _ in range(n))

        for truth, hit, clear, labelled in ((0.8, 0.9, 0.8, 60), (0.5, 0.85, 0.85, 40), (0.85, 0.95, 0.7, 120), (0.2, 0.8, 0.9, 100)):
            rng, held = random.Random(7), 0
            for _ in range(1000):
                positive = min(labelled - 10, max(10, binomial(rng, labelled, truth)))
                rate = binomial(rng, 200, truth * hit + (1 - truth) * (1 - clear)) / 200
                sides = (binomial(rng, positive, hit), positive), (binomial(rng, labelled - positive, clear), labelled - positive)
                interval = kaizen.rogan_gladen(rate, 200, *sides).interval
                held += interval is None or interval.low <= truth <= interval.high
            self.assertGreaterEqual(held, 930, (truth, hit, clear))


if __name__ == "__main__":
    unittest.main()

"""The exact bootstrap against three other ways to the same law: one big integer, listing, and drawing."""

import itertools
import math
import random
import unittest
from fractions import Fraction

from support import StrictTestCase, kaizen


def big_integer_law(counts):
    """{mean: exact probability} of n draws, from one power of a big integer (statistics.md 4)."""
    n = sum(counts.values())
    common = math.lcm(*(value.denominator for value in counts))
    whole = {int(value * common): times for value, times in counts.items()}
    lowest = min(whole)
    bits = (n**n).bit_length() + 1
    power = sum(times << ((place - lowest) * bits) for place, times in whole.items()) ** n
    mask, law, total = (1 << bits) - 1, {}, lowest * n
    while power:
        if power & mask:
            law[Fraction(total, common * n)] = Fraction(power & mask, n**n)
        power >>= bits
        total += 1
    return law


def random_suite(rng, n, trials):
    """Differences of n cases, each tried up to *trials* times on both sides."""
    counts = {}
    for _ in range(n):
        share = rng.random()
        sides = [Fraction(sum(rng.random() < share for _ in range(k)), k) for k in (rng.randint(1, trials), rng.randint(1, trials))]
        counts[sides[1] - sides[0]] = counts.get(sides[1] - sides[0], 0) + 1
    return counts


def attainable_limits(law, tail):
    """Both limits by their definition: the largest value with at most *tail* below it, the smallest with at most *tail* above."""
    values = sorted(law)
    below = [sum(law[other] for other in values if other < value) for value in values]
    above = [sum(law[other] for other in values if other > value) for value in values]
    low = max(value for value, share in zip(values, below, strict=False) if share <= tail + 1e-12)
    high = min(value for value, share in zip(values, above, strict=False) if share <= tail + 1e-12)
    return low, high


class ExactLaw(StrictTestCase):
    """ResampledMean and paired_mean."""

    def test_it_is_the_law_that_a_big_integer_power_gives(self):
        rng = random.Random(5)
        for n in (2, 3, 5, 9, 14, 25, 60):
            counts = random_suite(rng, n, 3 if n < 20 else 2)
            if len(counts) == 1:
                continue
            with self.subTest(n=n):
                exact, law = big_integer_law(counts), kaizen.ResampledMean(counts)
                zero = Fraction(0)
                self.assertAlmostEqual(law.above(zero), float(sum(p for value, p in exact.items() if value > 0)), delta=1e-12)
                self.assertAlmostEqual(law.at(zero), float(exact.get(zero, 0)), delta=1e-12)
                for tail in (0.025, 0.05, 0.2, kaizen.expanded_tail(n)):
                    limits = law.limit(tail, is_upper=False), law.limit(tail, is_upper=True)
                    self.assertEqual(limits, attainable_limits(exact, tail))

    def test_it_is_the_law_of_all_resamples_listed(self):
        values = [Fraction(v, 6) for v in (-3, 0, 1, 1, 4)]
        means = [sum(draw) / 5 for draw in itertools.product(values, repeat=5)]
        law = kaizen.ResampledMean({value: values.count(value) for value in set(values)})
        for point in (Fraction(-1, 3), Fraction(0), Fraction(1, 7), Fraction(1, 5), Fraction(2, 3)):
            self.assertAlmostEqual(law.above(point), sum(mean > point for mean in means) / 5**5, delta=1e-13)

    def test_swapping_the_arms_mirrors_everything(self):
        rng = random.Random(11)
        for n in (4, 12, 40, 300):
            counts = random_suite(rng, n, 5)
            found, mirrored = kaizen.paired_mean(counts), kaizen.paired_mean({-value: times for value, times in counts.items()})
            for name in ("percentile", "expanded", "interval", "plus_two", "student"):
                low, high = getattr(found, name)
                other = getattr(mirrored, name)
                self.assertAlmostEqual(low, -other.high, delta=1e-12)
                self.assertAlmostEqual(high, -other.low, delta=1e-12)
            self.assertAlmostEqual(found.p_gt, mirrored.p_lt, delta=1e-12)

    def test_ten_cases_that_all_behave_the_same_do_not_give_a_point(self):
        found = kaizen.paired_mean({Fraction(0): 10})
        self.assertEqual((found.expanded, found.method), ((0.0, 0.0), "expanded_hull_plus_two"))
        # 1.959964 × sqrt(2 / 12 / 12)
        self.assertAlmostEqual(found.interval.high, 0.2309840, delta=1e-7)

    def test_one_case_is_certain_of_nothing(self):
        found = kaizen.paired_mean({Fraction(1): 1})
        self.assertEqual((found.p_gt, found.interval, found.reason), (1.0, None, "fewer_than_two_comparable_cases"))
        self.assertEqual(kaizen.paired_mean({}).reason, "no_comparable_cases")

    def test_all_equal_is_a_point_mass_and_no_certainty(self):
        found = kaizen.paired_mean({Fraction(1, 5): 30})
        self.assertEqual((found.p_gt, found.p_eq, found.se, found.expanded), (1.0, 0.0, 0.0, (0.2, 0.2)))
        # c = 6/32, v = (1.2 + 2)/32 - c², c ± 1.959964 × sqrt(v/32)
        self.assertAlmostEqual(found.interval.low, 0.0992719, delta=1e-7)
        self.assertAlmostEqual(found.interval.high, 0.2757281, delta=1e-7)

    def test_twelve_informative_cases_need_no_hull(self):
        self.assertEqual(kaizen.paired_mean({Fraction(1): 8, Fraction(-1): 3, Fraction(0): 20}).method, "expanded_hull_plus_two")
        self.assertEqual(kaizen.paired_mean({Fraction(1): 8, Fraction(-1): 4, Fraction(0): 20}).method, "expanded")

    def test_a_hundred_thousand_cases_agree_with_the_normal_law(self):
        counts = {Fraction(1): 1_200, Fraction(-1): 1_000, Fraction(0): 97_800}
        found = kaizen.paired_mean(counts)
        se = math.sqrt((2_200 - 200**2 / 100_000) / 99_999 / 100_000)
        self.assertTrue(found.is_exact)
        self.assertAlmostEqual(found.se, se, delta=1e-15)
        # Half a lattice step of continuity correction: P(sum > 0) = P(sum ≥ 1).
        self.assertAlmostEqual(found.p_gt, kaizen.normal_tail((0.5e-5 - 0.002) / se), delta=2e-4)
        self.assertAlmostEqual(found.interval.low, 0.002 - 1.96 * se, delta=2e-5)

    def test_values_without_a_lattice_stay_within_a_percent_of_the_standard_error(self):
        """The same law is summed exactly and, with a value moved by a billionth, on a grid."""
        rng = random.Random(3)
        counts = random_suite(rng, 400, 5)
        exact = kaizen.ResampledMean(counts)
        moved = dict(counts)
        value = max(moved)
        moved[value] -= 1
        moved[value + Fraction(1, 10**9)] = 1
        rounded = kaizen.ResampledMean({value: times for value, times in moved.items() if times})
        self.assertEqual((exact.is_exact, rounded.is_exact), (True, False))
        se = kaizen.paired_mean(counts).se
        for tail in (0.005, 0.025, 0.2):
            for limit, other in zip(exact.limits(tail), rounded.limits(tail), strict=False):
                # A grid of sd / 23 and a lattice of sd / 3 each stand a step apart at most.
                self.assertAlmostEqual(limit, other, delta=0.08 * se)

    def test_many_digits_need_no_lattice_and_no_minutes(self):
        rng = random.Random(8)
        values = [rng.lognormvariate(0, 1) for _ in range(2_000)]
        low, high = kaizen.mean_interval(values)
        mean = math.fsum(values) / 2_000
        se = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / 1_999 / 2_000)
        self.assertAlmostEqual((low - mean) / se, -1.93, delta=0.06)
        self.assertAlmostEqual((high - mean) / se, 1.99, delta=0.06)
        self.assertIsNone(kaizen.mean_interval([1.0]))

    def test_ten_thousand_seeded_resamples_of_another_program_agree(self):
        """A straightforward bootstrap, as a user would write it."""
        rng = random.Random(2)
        deltas = [rng.choice((-0.5, 0, 0, 0.5, 1)) for _ in range(40)]
        counts = {Fraction(value): deltas.count(value) for value in set(deltas)}
        means = sorted(sum(rng.choices(deltas, k=40)) / 40 for _ in range(10_000))
        found = kaizen.paired_mean(counts)
        self.assertAlmostEqual(found.p_gt, sum(mean > 0 for mean in means) / 10_000, delta=0.01)
        self.assertAlmostEqual(found.percentile.low, means[249], delta=0.03)
        self.assertAlmostEqual(found.percentile.high, means[9_749], delta=0.03)


if __name__ == "__main__":
    unittest.main()

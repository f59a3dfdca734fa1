"""Sign-flip, McNemar and the permutation test against listing every possibility."""

import itertools
import random
import unittest
from fractions import Fraction
from unittest import mock

from support import StrictTestCase, kaizen


def listed_sign_flips(values):
    """(greater, less, two-sided) by trying every sign."""
    observed = sum(values)
    totals = [
        sum(sign * value for sign, value in zip(signs, values, strict=False)) for signs in itertools.product((1, -1), repeat=len(values))
    ]
    return tuple(
        sum(test(total) for total in totals) / len(totals)
        for test in (lambda t: t >= observed, lambda t: t <= observed, lambda t: abs(t) >= abs(observed))
    )


def counts_of(values):
    return {value: values.count(value) for value in set(values)}


class SignFlips(StrictTestCase):
    """sign_flip by its three ways: one big integer, a list of sums, a Fourier sum."""

    def test_it_is_what_trying_every_sign_gives(self):
        rng = random.Random(4)
        for size in (1, 2, 5, 9, 12):
            for _ in range(4):
                values = [Fraction(rng.randint(-5, 5), rng.choice((1, 3, 5))) for _ in range(size)]
                if not any(values):
                    continue
                found = kaizen.sign_flip(counts_of(values))
                for value, expected in zip(found[:3], listed_sign_flips(values), strict=False):
                    self.assertAlmostEqual(value, expected, delta=1e-15)

    def test_the_ways_agree_where_they_meet(self):
        rng = random.Random(9)
        for n in (18, 60, 200):
            counts = {}
            for _ in range(n):
                value = Fraction(rng.randint(-4, 5), 5)
                counts[value] = counts.get(value, 0) + 1
            exact = kaizen.sign_flip(counts)
            with mock.patch.object(kaizen, "BIG_INTEGER_WORK", 0):
                summed = kaizen.sign_flip(counts)
            for one, other in zip(exact[:3], summed[:3], strict=False):
                self.assertAlmostEqual(one, other, delta=1e-12)

    def test_few_cases_of_any_size_are_exact(self):
        values = [Fraction(number**7 * (-1) ** number, 10**9 + 7) for number in range(1, 13)]
        with mock.patch.object(kaizen, "BIG_INTEGER_WORK", 0):
            found = kaizen.sign_flip(counts_of(values))
        for value, expected in zip(found[:3], listed_sign_flips(values), strict=False):
            self.assertAlmostEqual(value, expected, delta=1e-15)

    def test_many_cases_of_any_size_are_rounded_by_a_hair(self):
        rng = random.Random(6)
        values = [Fraction(rng.randint(-(10**6), 10**6 + 10**5), 10**6) for _ in range(400)]
        found = kaizen.sign_flip(counts_of(values))
        total, squares = float(sum(values)), float(sum(value * value for value in values))
        self.assertAlmostEqual(found.greater, kaizen.normal_tail(total / squares**0.5), delta=0.005)

    def test_nothing_that_differs_is_no_evidence(self):
        self.assertEqual(kaizen.sign_flip({Fraction(0): 7}), (1.0, 1.0, 1.0, "no_discordant_pairs"))
        self.assertEqual(kaizen.sign_flip({}).reason, "no_discordant_pairs")

    def test_with_one_trial_it_is_mcnemars_exact_test(self):
        for lost, gained in ((0, 4), (1, 8), (6, 6), (12, 25), (88, 260)):
            counts = {Fraction(1): gained, Fraction(-1): lost, Fraction(0): 100}
            self.assertAlmostEqual(kaizen.sign_flip(counts).two_sided, kaizen.mcnemar(lost, gained).exact, delta=1e-15)

    def test_twenty_thousand_cases_agree_with_the_normal_law(self):
        counts = {Fraction(1, 5): 5_100, Fraction(-1, 5): 5_000, Fraction(2, 5): 1_000, Fraction(-2, 5): 980, Fraction(0): 7_920}
        squares = 10_100 / 25 + 1_980 * 4 / 25
        expected = kaizen.normal_tail((28 - 0.2) / squares**0.5)  # half of a flipped sign below the observed sum
        self.assertAlmostEqual(kaizen.sign_flip(counts).greater, expected, delta=2e-5)


class McNemarAndPermutation(StrictTestCase):
    """The other two tests."""

    def test_gsm8k_of_two_models_is_beyond_doubt(self):
        """88 lost, 260 gained: scipy's binomtest(88, 348).pvalue is 7.466006443046378e-21."""
        found = kaizen.mcnemar(88, 260)
        self.assertLess(abs(found.exact / 7.466006443046378e-21 - 1), 1e-12)
        self.assertLess(found.mid, found.exact)

    def test_no_pair_that_differs_is_no_evidence(self):
        self.assertEqual(kaizen.mcnemar(0, 0), (1.0, 1.0, "no_discordant_pairs"))

    def test_the_permutation_test_is_what_every_shuffle_gives(self):
        cases = [(1, 3, 2, 2), (0, 2, 1, 2), (2, 2, 1, 3)]
        totals, observed = [], 4
        outcomes = [[1] * (before + after) + [0] * (n + k - before - after) for before, n, after, k in cases]
        for picks in itertools.product(
            *(list(itertools.combinations(range(len(each)), case[3])) for each, case in zip(outcomes, cases, strict=False))
        ):
            totals.append(sum(each[place] for each, pick in zip(outcomes, picks, strict=False) for place in pick))
        expected = sum(total >= observed for total in totals) / len(totals), sum(total <= observed for total in totals) / len(totals)
        for value, other in zip(kaizen.suite_permutation(cases), expected, strict=False):
            self.assertAlmostEqual(value, other, delta=1e-15)


if __name__ == "__main__":
    unittest.main()

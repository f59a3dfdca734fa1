"""Expressions of derived metrics: how they are read, what they come to, and what is refused."""

import time
import unittest
from fractions import Fraction

from support import StrictTestCase, kaizen

KNOWN = {("rate", "a"): Fraction(3, 10), ("mean", "a"): Fraction(1, 2), ("count", "a"): Fraction(20), ("rate", "b-2"): Fraction(1), ("min", "a"): Fraction(0)}


def value_of(text):
    """What *text* comes to with the values above."""
    return kaizen.expression_value(kaizen.parse_expression(text), lambda *asked: (KNOWN.get(asked), "" if asked in KNOWN else "no_values"))


class Values(StrictTestCase):
    """Arithmetic as at school, exact."""

    def test_signs_bind_as_usual_and_from_the_left(self):
        for text, value in (
            ("1 - rate(a)", "7/10"),
            ("2 + 3 * rate(a)", "29/10"),
            ("10 - 2 - rate(a)", "77/10"),
            ("1 / 2 / rate(a)", "5/3"),
            ("(1 + 2) * rate(a)", "9/10"),
            ("-rate(a)", "-3/10"),
            ("1 - -rate(a)", "13/10"),
            ("--rate(a) * -2", "-3/5"),
            ("2 × rate(a) ÷ 3 − 1", "-4/5"),
            ("1.5e1 * rate(a) + .5", "5"),
            ("\t1\n+ rate( a )", "13/10"),
        ):
            with self.subTest(text):
                self.assertEqual(value_of(text), (Fraction(value), ""))

    def test_functions_take_a_metric_or_several_values(self):
        for text, value in (
            ("count(a)", "20"),
            ("min(a)", "0"),
            ("min(rate(a), mean(a), 1)", "3/10"),
            ("max(rate(a), mean(a))", "1/2"),
            ("mean(rate(a), mean(a), 1)", "3/5"),
            ("rate('b-2') + rate(\"b-2\")", "2"),
            ("max(min(rate(a), 1), 0.1) + rate(a)", "3/5"),
        ):
            with self.subTest(text):
                self.assertEqual(value_of(text), (Fraction(value), ""))

    def test_what_divides_by_zero_or_was_not_measured_has_no_value(self):
        self.assertEqual(value_of("rate(a) / (count(a) - 20)"), (None, "division_by_zero"))
        self.assertEqual(value_of("0 / min(a)"), (None, "division_by_zero"))
        self.assertEqual(value_of("0 * rate(c)"), (None, "no_values"))


class Refusals(StrictTestCase):
    """Each mistake is told with the character at which it stands."""

    def refused(self, text):
        with self.assertRaises(kaizen.ExpressionError) as caught:
            kaizen.parse_expression(text)
        return caught.exception.place, caught.exception.message, caught.exception.hint

    def test_mistakes_are_told_with_their_place(self):
        for text, place, words in (
            ("", 1, "has its end where a number, a function or '(' should stand"),
            ("1 +", 4, "has its end"),
            ("rate(a) rate(a)", 9, "has 'rate' where a sign or its end should stand"),
            ("(rate(a)", 9, "has its end where ')' should stand"),
            ("rate(a))", 8, "has ')' where a sign or its end should stand"),
            ("rate(no-harm)", 6, "rate takes the name of one metric"),
            ("rate(a, a)", 6, "rate takes the name of one metric"),
            ("min(rate(a))", 1, "takes the name of one metric, or two values and more"),
            ("a", 1, "'a' says not what of it is meant"),
            ("rate + 1", 1, "'rate' is no function"),
            ("'a' + 1", 1, "says not what of it is meant"),
            ("avg(a)", 1, "there is no function 'avg'"),
            ("rate(a) ** 2", 10, "has '*' where"),
            ("rate(a) ^ 2", 9, "'^', which has no meaning here"),
            ("rate('a)", 6, "a quote that is not closed"),
            ("__import__('os')", 1, "there is no function '__import__'"),
            ("rate(a).real", 8, "'.', which has no meaning here"),
            ("1 + 1", 1, "asks nothing of a metric"),
            ("1e400 * rate(a)", 1, "longer or larger than a measurement can be"),
            ("1e-9999999999 * rate(a)", 1, "longer or larger than a measurement can be"),
            ("9" * 400 + " * rate(a)", 1, "longer or larger than a measurement can be"),
            ("١ * rate(a)", 1, "which has no meaning here"),
        ):
            with self.subTest(text[:40]):
                found = self.refused(text)
                self.assertEqual(found[0], place)
                self.assertIn(words, found[1])
                self.assertLess(len(found[1]) + len(found[2]), 400)

    def test_a_name_with_a_minus_is_told_to_stand_in_quotes(self):
        self.assertIn("rate('no-harm')", self.refused("rate(no-harm)")[2])

    def test_a_megabyte_is_refused_at_once(self):
        started = time.perf_counter()
        self.assertIn("1,000,000 characters long (at most 2,000)", self.refused("(" * 1_000_000)[1])
        self.assertLess(time.perf_counter() - started, 0.1)

    def test_depth_is_bounded_and_length_needs_no_stack(self):
        self.assertIn("nests more than 50 levels deep", self.refused("(" * 900 + "rate(a)" + ")" * 900)[1])
        self.assertIn("nests more than 50 levels deep", self.refused("max(1," * 250 + "rate(a)" + ")" * 250)[1])
        self.assertEqual(value_of("(" * 50 + "rate(a)" + ")" * 50), (Fraction(3, 10), ""))
        self.assertEqual(value_of("-" * 1990 + "rate(a)"), (Fraction(3, 10), ""))
        self.assertEqual(value_of("rate(a)" + "+1" * 990), (Fraction(3, 10) + 990, ""))

    def test_powers_by_multiplication_stay_quick(self):
        started = time.perf_counter()
        self.assertIsNotNone(value_of("*".join(["9e307"] * 250) + "*rate(a)")[0])
        self.assertLess(time.perf_counter() - started, 0.5)


if __name__ == "__main__":
    unittest.main()

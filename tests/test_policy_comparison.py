"""Changes of a case, rates over cases, what missing trials do to a comparison."""

import itertools
import unittest
from fractions import Fraction

import support
from support import kaizen


def tally(passed: int, failed: int, errors: int = 0) -> "kaizen.CaseTally":
    """A tally with these counts."""
    made = kaizen.CaseTally()
    made.passed, made.failed, made.errors = passed, failed, errors
    return made


def stage(name: str, repetitions: int, **cases: "kaizen.CaseTally") -> "kaizen.StageTally":
    """A stage of the tallies *cases*."""
    return kaizen.StageTally(name, repetitions, cases, [])


class CaseChange(support.StrictTestCase):
    """What a case's change is called (formats.md 1.5)."""

    def test_each_change_by_the_share_before_and_after(self):
        # (passed, failed) before, after, change, newly flaky
        table = [
            ((1, 0), (0, 1), "regressed", False),
            ((0, 1), (1, 0), "improved", False),
            ((1, 0), (1, 0), "unchanged", False),
            ((0, 1), (0, 1), "unchanged", False),
            ((5, 0), (0, 5), "regressed", False),
            ((5, 0), (4, 1), "weakened", True),  # passed, now flaky
            ((4, 1), (0, 5), "weakened", False),  # was flaky before, so no veto
            ((4, 1), (3, 2), "weakened", False),
            ((2, 2), (3, 1), "improved", False),  # at most half before, more than half now
            ((2, 2), (2, 2), "unchanged", False),
            ((0, 4), (2, 2), "strengthened", False),  # half is not more than half
            ((3, 2), (5, 0), "strengthened", False),  # more than half passed before
            ((1, 1), (2, 2), "unchanged", False),  # the same share of another number of trials
            ((1, 2), (2, 1), "improved", False),
        ]
        for before, after, change, newly_flaky in table:
            with self.subTest(before=before, after=after):
                self.assertEqual(kaizen.case_change(tally(*before), tally(*after)), (change, newly_flaky))

    def test_swapping_the_stages_never_leaves_a_loss_a_gain(self):
        gains, losses = {"improved", "strengthened"}, {"regressed", "weakened"}
        shares = [(passed, valid - passed) for valid in (1, 2, 3, 5) for passed in range(valid + 1)]
        for before, after in itertools.product(shares, shares):
            there, back = kaizen.case_change(tally(*before), tally(*after))[0], kaizen.case_change(tally(*after), tally(*before))[0]
            self.assertEqual((there in gains, there in losses), (back in losses, back in gains), (before, after))

    def test_fewer_than_half_of_the_planned_trials_is_not_comparable(self):
        before, after = stage("baseline", 4), stage("candidate", 4)
        cases = [
            (tally(2, 0, 2), None),
            (tally(1, 0, 3), "candidate: 1 of 4 planned trials measured (3 errors)"),
            (tally(1, 0, 1), "candidate: 1 of 4 planned trials measured (1 error, 2 not run)"),
        ]
        for candidate, reason in cases:
            with self.subTest(reason=reason):
                self.assertEqual(kaizen.not_comparable_reason(tally(4, 0), candidate, before, after), reason)


class Rates(support.StrictTestCase):
    """Rates are means over cases, exact, and carry what they rest on."""

    def test_errors_are_neither_passes_nor_fails(self):
        """Field case 29: 80 passed, 10 failed, 10 errors of 100."""
        cases = {f"c{number}": tally(*((1, 0) if number < 80 else (0, 1) if number < 90 else (0, 0, 1))) for number in range(100)}
        rates = kaizen.stage_rates(list(cases), stage("candidate", 1, **cases))
        self.assertEqual([rates[key] for key in ("passed", "failed", "errors", "planned", "not_run")], [80, 10, 10, 100, 0])
        self.assertEqual((rates["rate"]["numerator"], rates["rate"]["denominator"]), (8, 9))
        self.assertEqual((rates["cases_measured"], rates["cases"]), (90, 100))

    def test_nothing_measured_is_not_a_rate(self):
        rates = kaizen.stage_rates(["a"], stage("candidate", 3, a=tally(0, 0, 3)))
        self.assertEqual([rates[key] for key in ("rate", "low", "high", "mean_cost_usd", "median_duration_ms")], [None] * 5)

    def test_the_rate_weighs_cases_not_trials(self):
        rates = kaizen.stage_rates(["a", "b"], stage("candidate", 4, a=tally(4, 0), b=tally(0, 1, 3)))
        self.assertEqual(Fraction(rates["rate"]["numerator"], rates["rate"]["denominator"]), Fraction(1, 2))

    def test_delta_is_the_mean_over_comparable_cases(self):
        before = stage("baseline", 2, a=tally(2, 0), b=tally(0, 2), c=tally(0, 0, 2))
        after = stage("candidate", 2, a=tally(1, 1), b=tally(2, 0), c=tally(2, 0))
        rows = kaizen.compare_cases(["a", "b", "c"], before, after)
        self.assertEqual([row["change"] for row in rows], ["weakened", "improved", "not_comparable"])
        self.assertEqual(kaizen.paired_delta(rows), Fraction(1, 4))  # ((1/2 - 1) + (1 - 0)) / 2

    def test_no_comparable_case_has_no_delta(self):
        """Field case 31: never +1.0."""
        before = stage("baseline", 1, hard=tally(0, 1))
        rows = kaizen.compare_cases(["hard", "easy"], before, stage("candidate", 1, easy=tally(1, 0)))
        self.assertEqual([row["change"] for row in rows], ["not_comparable"] * 2)
        self.assertIsNone(kaizen.paired_delta(rows))

    def test_missing_trials_decide_when_they_could_turn_the_sign(self):
        before, after = stage("baseline", 2, a=tally(1, 1)), stage("candidate", 2, a=tally(1, 0, 1))
        self.assertTrue(kaizen.missingness_decides(kaizen.compare_cases(["a"], before, after)))
        whole = stage("candidate", 2, a=tally(2, 0))
        self.assertFalse(kaizen.missingness_decides(kaizen.compare_cases(["a"], before, whole)))


class Numbers(support.StrictTestCase):
    """Percentages that do not flatter, and values from outside."""

    def test_a_rate_looks_perfect_only_if_it_is(self):
        """Field case 28."""
        table = [
            ((1999, 2000), "99.95 %"),
            ((1, 2000), "0.05 %"),
            ((199_999, 200_000), "99.99 %"),
            ((1, 1_000_000), "< 0.01 %"),
            ((3, 3), "100 %"),
            ((0, 7), "0 %"),
            ((2, 3), "66.67 %"),
            ((0, 0), "not measured"),
            ((-1, 4), "-25 %"),
        ]
        for pair, text in table:
            self.assertEqual(kaizen.percent(*pair), text)

    def test_wilson_limits_are_those_of_r(self):
        # R 4.3: prop.test(x, n, correct = FALSE)$conf.int
        for passed, trials, low, high in [
            (8, 10, 0.4901625, 0.9433178),
            (0, 5, 0, 0.4344825),
            (5, 5, 0.5655175, 1),
            (45, 200, 0.1726, 0.2877),
        ]:
            interval = kaizen.wilson_interval(passed, trials)
            self.assertAlmostEqual(interval.low, low, places=4)
            self.assertAlmostEqual(interval.high, high, places=4)
        self.assertIsNone(kaizen.wilson_interval(0, 0))

    def test_effective_sample_size_lies_between_cases_and_trials(self):
        self.assertEqual(kaizen.effective_sample_size([(1, 1), (0, 1), (1, 1)]), 3.0)
        self.assertEqual(kaizen.effective_sample_size([(5, 5)] * 10), 10.0)
        mixed = kaizen.effective_sample_size([(3, 5), (2, 5), (4, 5), (1, 5)])
        self.assertTrue(4 <= mixed <= 20, mixed)
        self.assertIsNone(kaizen.effective_sample_size([(0, 0)]))

    def test_pass_hat_k_by_hand(self):
        # C(3,2)/C(4,2) = 3/6; C(4,2)/C(4,2) = 1; the case with one trial is left out
        self.assertEqual(kaizen.pass_hat_k([(3, 4), (4, 4), (1, 1)], 2), (Fraction(3, 4), 1))
        self.assertEqual(kaizen.pass_hat_k([(1, 1)], 2), (None, 1))

    def test_median_and_mean_of_nothing_are_nothing(self):
        self.assertIsNone(kaizen.median([]))
        self.assertIsNone(kaizen.mean([]))
        self.assertEqual(kaizen.median([3.0, 1.0, 2.0, 10.0]), 2.5)


if __name__ == "__main__":
    unittest.main()

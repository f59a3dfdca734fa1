"""Quantiles and tails of normal and Student, intervals for rates and paired rates."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

Z_95 = 1.959963984540054  # the normal quantile of 0.975

# Why a quantity is None, in words for people; every function of stats/ names the codes it uses.
REASONS = {
    "no_valid_observations": "no trial has a verdict",
    "no_comparable_cases": "no case has a verdict on both sides",
    "no_valid_baseline": "no trial of the baseline has a verdict",
    "no_valid_candidate": "no trial of the candidate has a verdict",
    "no_valid_observation": "no trial of the case has a verdict",
    "fewer_than_two_comparable_cases": "fewer than two cases can be compared",
    "no_discordant_pairs": "no case came out differently on the two sides",
    "fewer_trials_than_k": "fewer trials have a verdict than are needed",
    "no_common_cases": "no case was judged by both",
    "no_expected_disagreement": "everybody always said the same, so agreement by chance is total",
    "no_pairable_values": "no case was judged twice",
    "no_values": "there is no value",
    "insufficient_evidence": "the evidence does not decide",
    "degenerate_resamples": "more than 5 % of the resamples leave the quantity undefined",
    "too_few_labelled_cases": "on one of the two sides there are fewer than 10 cases on which experts agree",
    "uninformative_judge": "the judge is right no more often than chance",
    "no_upper_bound": "too few values for an upper limit",
}


class Interval(NamedTuple):
    """Lower and upper limit, both inside [0, 1] for a rate."""

    low: float
    high: float


# --- Normal and Student ----------------------------------------------------------------


def normal_point(probability: float) -> float:
    """The x that a standard normal value stays below with *probability* (above 0, below 1).

    >>> round(normal_point(0.8), 9)
    0.841621234
    """
    if probability == 0.975:
        return Z_95
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def normal_quantile(confidence: float) -> float:
    """The z of a two-sided interval at *confidence*, e.g. 1.959964 for 0.95."""
    return Z_95 if confidence == 0.95 else normal_point(1 - (1 - confidence) / 2)


def normal_tail(x: float) -> float:
    """The probability that a standard normal value exceeds *x*, also far out where 1 - cdf would be 0.

    >>> f"{normal_tail(9):.4e}"
    '1.1286e-19'
    """
    return math.erfc(x / math.sqrt(2)) / 2


def beta_share(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b) for a, b > 0 and x in [0, 1].

    Source: W. H. Press et al., Numerical Recipes, 3rd ed. (2007), 6.4: continued fraction by the modified
    Lentz method. I_0.5(2, 3) is 11/16:

    >>> round(beta_share(2, 3, 0.5), 12)
    0.6875
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny = 1e-300
    numerator, denominator = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    value = denominator
    for m in range(1, 10_000):
        for step in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            denominator = 1 / ((1 + step * denominator) or tiny)
            numerator = (1 + step / numerator) or tiny
            value *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-16:
            break
    return front * value


def student_tail(t: float, freedom: float) -> float:
    """The probability that a Student value with *freedom* degrees exceeds *t*.

    Source: M. Abramowitz, I. Stegun (1964), 26.7.1. With one degree it is a Cauchy value, above 1 in a quarter:

    >>> round(student_tail(1, 1), 12)
    0.25
    """
    tail = beta_share(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return tail if t >= 0 else 1 - tail


@lru_cache(maxsize=4096)
def student_point(probability: float, freedom: float) -> float:
    """The t that a Student value with *freedom* degrees stays below with *probability* (0.5 to below 1).

    R's qt(0.975, 3) is 3.182446:

    >>> round(student_point(0.975, 3), 6)
    3.182446
    """
    wanted = 1 - probability
    low, high = 0.0, 2.0
    while student_tail(high, freedom) > wanted:
        low, high = high, high * 2
    return bisected(lambda t: student_tail(t, freedom) > wanted, low, high)


def bisected(is_before: Callable[[float], bool], low: float, high: float) -> float:
    """Where *is_before* turns from true to false between *low* and *high*, as near as floats can tell."""
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return middle
        if is_before(middle):
            low = middle
        else:
            high = middle


# --- Rates -----------------------------------------------------------------------------


def wilson_interval(passed: float, trials: float, confidence: float = 0.95) -> Interval | None:
    """The score interval for *passed* of *trials*; *trials* need not be whole. None for no trials (`no_valid_observations`).

    Source: E. B. Wilson (1927), Probable inference, the law of succession, and statistical inference,
    JASA 22, 209-212. R's prop.test(8, 10, correct = FALSE) gives 0.4901625, 0.9433178:

    >>> [round(limit, 7) for limit in wilson_interval(8, 10)]
    [0.4901625, 0.9433178]
    >>> wilson_interval(0, 0) is None
    True
    """
    if trials <= 0:
        return None
    z = normal_quantile(confidence)
    rate = passed / trials
    spread = 1 + z * z / trials
    centre = (rate + z * z / (2 * trials)) / spread
    half = z * math.sqrt(max(0.0, rate * (1 - rate) / trials) + z * z / (4 * trials * trials)) / spread
    low = 0.0 if passed <= 0 else max(0.0, centre - half)
    high = 1.0 if passed >= trials else min(1.0, centre + half)
    return Interval(low, high)


def clopper_pearson_interval(passed: int, trials: int, confidence: float = 0.95) -> Interval | None:
    """The exact binomial interval for *passed* of *trials*. None for no trials (`no_valid_observations`).

    Source: C. J. Clopper, E. S. Pearson (1934), The use of confidence or fiducial limits illustrated in the case
    of the binomial, Biometrika 26, 404-413. R's binom.test(4, 9) gives 0.1369957, 0.7879915:

    >>> [round(limit, 7) for limit in clopper_pearson_interval(4, 9)]
    [0.1369957, 0.7879915]
    """
    if trials <= 0:
        return None
    tail = (1 - confidence) / 2
    low = 0.0 if passed <= 0 else bisected(lambda x: beta_share(passed, trials - passed + 1, x) < tail, 0.0, 1.0)
    high = 1.0 if passed >= trials else bisected(lambda x: beta_share(trials - passed, passed + 1, 1 - x) > tail, 0.0, 1.0)
    return Interval(low, high)


def newcombe_interval(both: int, first: int, second: int, neither: int, confidence: float = 0.95) -> Interval | None:
    """Square-and-add interval for the rate of the first minus that of the second of two paired series.

    The counts are those of pairs in which both, only the first, only the second, neither passed. None for no
    pair (`no_comparable_cases`). Source: R. G. Newcombe (1998), Improved confidence intervals for the difference
    between binomial proportions based on paired data, Statistics in Medicine 17, 2635-2650, method 10.

    >>> [round(limit, 6) for limit in newcombe_interval(12, 6, 2, 10)]
    [-0.054043, 0.304621]
    """
    n = both + first + second + neither
    passed = both + first, both + second
    limits = wilson_interval(passed[0], n, confidence), wilson_interval(passed[1], n, confidence)
    if limits[0] is None or limits[1] is None:
        return None
    (low1, high1), (low2, high2) = limits[0], limits[1]
    rate1, rate2 = passed[0] / n, passed[1] / n
    margins = passed[0] * (n - passed[0]) * passed[1] * (n - passed[1])
    cross = both * neither - first * second
    phi = (max(cross - n / 2, 0) if cross > 0 else cross) / math.sqrt(margins) if margins else 0.0

    def reach(below: float, above: float) -> float:
        return math.sqrt(max(0.0, below * below - 2 * phi * below * above + above * above))

    difference = rate1 - rate2
    return Interval(difference - reach(rate1 - low1, high2 - rate2), difference + reach(high1 - rate1, rate2 - low2))


def effective_sample_size(case_values: list[tuple[int, int]]) -> float | None:
    """How many independent trials the repeated cases are worth; *case_values* is [(passed, valid trials)].

    None for no case with a valid trial (`no_valid_observations`).

    >>> effective_sample_size([(1, 1), (0, 1), (1, 1)])
    3.0
    """
    known = [(passed / valid, valid) for passed, valid in case_values if valid]
    return effective_size([value for value, _ in known], sum(valid for _, valid in known)) if known else None


def effective_size(values: list[float], trials: int) -> float:
    """How many independent trials units with these *values* in [0, 1] are worth, which rest on *trials* in all.

    Adds one imaginary unit that always passes and one that always fails, so that it never divides by zero and
    equals the number of units when each always comes out the same. The design effect of L. Kish (1965), Survey
    Sampling, section 5.4, on the smoothed variance of the values. Three units at one half, four trials each:

    >>> round(effective_size([0.5, 0.5, 0.5], 12), 9)
    7.5
    """
    n = len(values)
    mean = (math.fsum(values) + 1) / (n + 2)
    variance = (math.fsum(value * value for value in values) + 1) / (n + 2) - mean * mean
    if variance <= 0:
        return float(trials)
    # When every value is 0 or 1 the variance is mean (1 - mean) up to rounding; n is exact then.
    if all(value in (0.0, 1.0) for value in values):
        return float(n)
    return float(min(max(n * mean * (1 - mean) / variance, n), trials))

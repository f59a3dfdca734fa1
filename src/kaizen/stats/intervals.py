"""Intervals for rates: Wilson's, on an effective sample size when cases are repeated."""

import math
from typing import NamedTuple

Z_95 = 1.959963984540054  # the normal quantile of 0.975


class Interval(NamedTuple):
    """Lower and upper limit, both inside [0, 1] for a rate."""

    low: float
    high: float


def normal_quantile(confidence: float) -> float:
    """The z of a two-sided interval at *confidence*, e.g. 1.959964 for 0.95."""
    if confidence == 0.95:
        return Z_95
    from statistics import NormalDist

    return NormalDist().inv_cdf(1 - (1 - confidence) / 2)


def wilson_interval(passed: float, trials: float, confidence: float = 0.95) -> Interval | None:
    """The score interval for *passed* of *trials*; *trials* need not be whole. None for no trials.

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
    half = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / spread
    low = 0.0 if passed <= 0 else max(0.0, centre - half)
    high = 1.0 if passed >= trials else min(1.0, centre + half)
    return Interval(low, high)


def effective_sample_size(case_values: list[tuple[int, int]]) -> float | None:
    """How many independent trials the repeated cases are worth; *case_values* is [(passed, valid trials)].

    Adds one imaginary case that always passes and one that always fails, so that it never divides by
    zero and equals the number of cases when each case always comes out the same. None for no case
    with a valid trial.

    >>> effective_sample_size([(1, 1), (0, 1), (1, 1)])
    3.0
    """
    known = [(passed / valid, valid) for passed, valid in case_values if valid]
    if not known:
        return None
    n, total = len(known), sum(valid for _, valid in known)
    mean = (math.fsum(value for value, _ in known) + 1) / (n + 2)
    variance = (math.fsum(value * value for value, _ in known) + 1) / (n + 2) - mean * mean
    if variance <= 0:
        return float(total)
    # When every value is 0 or 1 the variance is mean (1 - mean) up to rounding; n is exact then.
    if all(value in (0.0, 1.0) for value, _ in known):
        return float(n)
    return float(min(max(n * mean * (1 - mean) / variance, n), total))

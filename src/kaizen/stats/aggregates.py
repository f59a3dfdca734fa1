"""Means, percentiles, rates over cases, pass^k, flaky, precision; None where nothing is."""

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kaizen.stats.intervals import Interval, effective_sample_size, wilson_interval

if TYPE_CHECKING:
    from fractions import Fraction


class PassRate(NamedTuple):
    """The pass rate of a suite: exact `rate`, `pooled` rate and bounds, Wilson limits on `n_eff`, and their counts.

    `trial_noise_se` is the standard error if only these cases mattered; it never replaces the interval.
    """

    rate: "Fraction | None"
    pooled: "Fraction | None"
    cases: int
    cases_without_valid: int
    trials: int
    excluded: int
    n_eff: float | None
    interval: Interval | None
    bound_if_excluded_fail: "Fraction | None"
    bound_if_excluded_pass: "Fraction | None"
    trial_noise_se: float | None
    reason: str | None


class Summary(NamedTuple):
    """A summary of values: `value`, how many it rests on, how many were left out, and the reason when it is None."""

    value: float | None
    n: int
    excluded: int
    reason: str | None


def mean(values: list[float]) -> float | None:
    """The arithmetic mean of *values*, whatever their order; None for none (`no_values`).

    >>> mean([1.5e308, 1.7e308])
    1.6e+308
    """
    if not values:
        return None
    try:
        return math.fsum(values) / len(values)
    except OverflowError:  # the sum is beyond a double, the mean of doubles never is
        return math.fsum(value / len(values) for value in values)


def median(values: list[float]) -> float | None:
    """The middle of *values* or the mean of the two middle ones; None for none (`no_values`).

    >>> median([3.0, 1.0, 2.0, 10.0])
    2.5
    """
    ordered = sorted(values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else mean(ordered[middle - 1 : middle + 1])


def percentile(values: Iterable[float | None], percent: float) -> Summary:
    """The *percent*-th percentile (0 to 100) of the finite values, by linear interpolation; others are counted.

    The rule is R's type 7 and numpy's default: R. J. Hyndman, Y. Fan (1996), Sample quantiles in statistical
    packages, The American Statistician 50, 361-365. No value gives None (`no_values`). Raises ValueError for a
    *percent* outside 0 to 100. numpy.percentile(range(1, 21), 95) is 19.05:

    >>> percentile(range(1, 21), 95)
    Summary(value=19.05, n=20, excluded=0, reason=None)
    """
    if not 0 <= percent <= 100:
        raise ValueError(f"a percentile lies between 0 and 100, not at {percent}")
    given = list(values)
    ordered = sorted(value for value in given if value is not None and math.isfinite(value))
    left_out = len(given) - len(ordered)
    if not ordered:
        return Summary(None, 0, left_out, "no_values")
    place = (len(ordered) - 1) * percent / 100
    below = math.floor(place)
    low, high, share = ordered[below], ordered[min(below + 1, len(ordered) - 1)], place - below
    # From the nearer end, so that both ends are hit exactly.
    value = high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share
    return Summary(float(value), len(ordered), left_out, None)


def quantile_ranks(n: int, quantile: float, confidence: float = 0.95) -> tuple[int | None, int | None]:
    """Places (from 0) in *n* sorted values that bracket the *quantile* (0 to 1) whatever their distribution.

    None where no value will do: the 95th percentile has an upper limit only from 72 values on (`no_upper_bound`).
    Source: W. J. Conover (1999), Practical Nonparametric Statistics, 3rd ed., 3.2. For the median of 15 values
    he gives the 4th and the 12th:

    >>> quantile_ranks(15, 0.5)
    (3, 11)
    """
    tail = (1 - confidence) / 2
    below = 0.0  # P(Bin(n, quantile) <= k)
    low, high = None, None
    for k in range(n + 1):
        logarithm = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        below += math.exp(logarithm + k * math.log(quantile) + (n - k) * math.log1p(-quantile)) if 0 < quantile < 1 else 0.0
        if low is None and below >= tail - 1e-12:
            low = k
        if 1 - below <= tail + 1e-12:
            high = k
            break
    return (low - 1 if low else None), (high if high is not None and high < n else None)


def case_weighted_rate(case_values: list[tuple[int, int]]) -> "Fraction | None":
    """The mean over cases of passed / valid, exact; *case_values* is [(passed, valid trials)].

    None for no valid trial (`no_valid_observations`).

    >>> str(case_weighted_rate([(1, 1), (1, 2), (0, 0)]))
    '3/4'
    """
    from fractions import Fraction

    # Adding by denominator first keeps 10,000 cases to a handful of fraction additions.
    by_valid: dict[int, int] = {}
    cases = 0
    for passed, valid in case_values:
        if valid:
            by_valid[valid] = by_valid.get(valid, 0) + passed
            cases += 1
    return sum((Fraction(passed, valid) for valid, passed in by_valid.items()), Fraction(0)) / cases if cases else None


def pass_rate(cases: list[tuple[int, int, int]], confidence: float = 0.95) -> PassRate:
    """The pass rate of *cases* [(passed, valid trials, trials)] with everything that should be printed beside it.

    The bounds count each excluded trial as failed, as passed. Without a valid trial everything is None
    (`no_valid_observations`); `trial_noise_se` is None too when a case has one valid trial only.

    >>> found = pass_rate([(2, 3, 3), (0, 2, 3), (3, 3, 3)])
    >>> str(found.rate), round(found.n_eff, 9), round(found.interval.low, 9)
    ('5/9', 3.652173913, 0.17016393)
    """
    from fractions import Fraction

    known = [(passed, valid) for passed, valid, _ in cases if valid]
    tried = [each for each in cases if each[2]]
    trials = sum(valid for _, valid in known)
    excluded = sum(planned for _, _, planned in tried) - trials
    rate, n_eff = case_weighted_rate(known), effective_sample_size(known)
    if rate is None or n_eff is None:
        return PassRate(None, None, 0, len(cases), 0, excluded, None, None, None, None, None, "no_valid_observations")
    noise = None
    if all(valid > 1 for _, valid in known):
        noise = math.sqrt(math.fsum(passed * (valid - passed) / (valid * valid * (valid - 1)) for passed, valid in known)) / len(known)
    return PassRate(
        rate,
        Fraction(sum(passed for passed, _ in known), trials),
        len(known),
        len(cases) - len(known),
        trials,
        excluded,
        n_eff,
        wilson_interval(float(rate) * n_eff, n_eff, confidence),
        case_weighted_rate([(passed, planned) for passed, _, planned in tried]),
        case_weighted_rate([(passed + planned - valid, planned) for passed, valid, planned in tried]),
        noise,
        None,
    )


# --- Repetitions -----------------------------------------------------------------------


def pass_at_k(case_values: list[tuple[int, int]], k: int) -> "tuple[Fraction | None, int]":
    """(pass@k over the cases with at least k valid trials, how many cases were left out).

    pass@k of a case is 1 - C(failed, k) / C(valid, k): the chance that at least one of k of its trials, drawn
    without replacement, passes. Source: M. Chen et al. (2021), Evaluating large language models trained on code,
    equation 1. None when every case has fewer (`fewer_trials_than_k`).

    >>> pass_at_k([(1, 4)], 2)
    (Fraction(1, 2), 0)
    """
    value, left_out = pass_hat_k([(valid - passed, valid) for passed, valid in case_values], k)
    return (None if value is None else 1 - value), left_out


def pass_hat_k(case_values: list[tuple[int, int]], k: int) -> "tuple[Fraction | None, int]":
    """(pass^k over the cases with at least k valid trials, how many cases were left out).

    pass^k of a case is C(passed, k) / C(valid, k): the chance that k of its trials, drawn without
    replacement, all pass. Source: S. Yao et al. (2024), tau-bench, section 5. None when every case has
    fewer (`fewer_trials_than_k`).

    >>> pass_hat_k([(2, 4), (4, 4), (1, 1)], 2)
    (Fraction(7, 12), 1)
    """
    from fractions import Fraction

    usable = Counter((passed, valid) for passed, valid in case_values if valid >= k)
    if not usable:
        return None, len(case_values)
    n = sum(usable.values())
    total = sum((times * Fraction(math.comb(passed, k), math.comb(valid, k)) for (passed, valid), times in usable.items()), Fraction(0))
    return total / n, len(case_values) - n


def stability(passed: int, valid: int) -> str:
    """'flaky' when the valid trials hold a pass and a fail, else 'stable_pass' or 'stable_fail'; 'unknown' below two trials.

    Stable is weak evidence: a case that passes nine times in ten shows in five trials as flaky only 41 % of the time.

    >>> stability(2, 3), stability(1, 1)
    ('flaky', 'unknown')
    """
    return "unknown" if valid < 2 else "stable_fail" if not passed else "stable_pass" if passed == valid else "flaky"


# --- Classification --------------------------------------------------------------------


class Precision(NamedTuple):
    """Precision, recall and F; None where the denominator is 0 (`no_values`)."""

    precision: float | None
    recall: float | None
    f: float | None


def precision_recall(hits: int, false_alarms: int, misses: int, beta: float = 1.0) -> Precision:
    """Precision, recall and F-*beta* of counts that were added up over all cases.

    Source: C. J. van Rijsbergen (1979), Information Retrieval, 2nd ed., chapter 7. F may be 0 while precision is None.

    >>> precision_recall(6, 2, 1).f
    0.8
    """
    weight = beta * beta
    whole = (1 + weight) * hits + weight * misses + false_alarms
    return Precision(
        hits / (hits + false_alarms) if hits + false_alarms else None,
        hits / (hits + misses) if hits + misses else None,
        (1 + weight) * hits / whole if whole else None,
    )

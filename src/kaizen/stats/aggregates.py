"""Means, medians, exact rates over cases, pass^k; nothing measured gives None."""

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fractions import Fraction


class ExactRate(NamedTuple):
    """A rate as an exact fraction in lowest terms."""

    numerator: int
    denominator: int


def mean(values: list[float]) -> float | None:
    """The arithmetic mean of *values*, whatever their order; None for none.

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
    """The middle of *values* or the mean of the two middle ones; None for none.

    >>> median([3.0, 1.0, 2.0, 10.0])
    2.5
    """
    ordered = sorted(values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else mean(ordered[middle - 1 : middle + 1])


def case_weighted_rate(case_values: list[tuple[int, int]]) -> "Fraction | None":
    """The mean over cases of passed / valid, exact; *case_values* is [(passed, valid trials)]. None for no valid trial.

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


def pass_hat_k(case_values: list[tuple[int, int]], k: int) -> "tuple[Fraction | None, int]":
    """(pass^k over the cases with at least k valid trials, how many cases were left out).

    pass^k of a case is C(passed, k) / C(valid, k): the chance that k of its trials, drawn without
    replacement, all pass. Source: S. Yao et al. (2024), tau-bench, section 5. None when every case has fewer.

    >>> pass_hat_k([(2, 4), (4, 4), (1, 1)], 2)
    (Fraction(7, 12), 1)
    """
    from fractions import Fraction

    usable = [(passed, valid) for passed, valid in case_values if valid >= k]
    if not usable:
        return None, len(case_values)
    total = sum((Fraction(math.comb(passed, k), math.comb(valid, k)) for passed, valid in usable), Fraction(0))
    return total / len(usable), len(case_values) - len(usable)

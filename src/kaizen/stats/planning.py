"""How many cases and trials it takes: cases needed, smallest effect seen, power.

n = (z_{1-alpha/2} + z_power)^2 (omega^2 + sigma_A^2 / K_A + sigma_B^2 / K_B) / delta^2, with omega^2 the variance
over cases of the true difference, sigma^2 the mean variance of trials within a case, K trials a case.
Source: E. Miller (2024), Adding error bars to evals, section 5, equation 9.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from kaizen.stats.intervals import normal_point
from kaizen.stats.lattice import MINIMUM_INFORMATIVE

ALPHA, POWER = 0.05, 0.8
EQUAL_VARIANCE = 1e-20  # of differences that are all equal, but for rounding


class Spread(NamedTuple):
    """omega2: variance of the true case differences; sigma2_a, sigma2_b: mean variance of trials within a case.

    `is_split` is false where single trials leave only their sum known; it then stands in omega2.
    """

    omega2: float
    sigma2_a: float
    sigma2_b: float
    is_split: bool

    def of_case(self, trials_a: float, trials_b: float) -> float:
        """The variance of one observed case difference at so many trials."""
        return self.omega2 + self.sigma2_a / trials_a + self.sigma2_b / trials_b


def trial_variance(case_values: Sequence[tuple[int, int]]) -> float | None:
    """The mean variance of a trial within its case; *case_values* is [(passed, valid)].

    None when no case has two trials (`fewer_trials_than_k`).

    >>> trial_variance([(2, 4), (4, 4), (1, 1)]) == (1 / 3 + 0) / 2
    True
    """
    known = [passed * (valid - passed) / (valid * (valid - 1)) for passed, valid in case_values if valid > 1]
    return math.fsum(known) / len(known) if known else None


def unit_means(values: Sequence[float], clusters: Sequence[str | None]) -> tuple[list[float], float]:
    """(the mean of *values* in each cluster, mean over them of 1 / size); a value whose cluster is None is one of its own.

    >>> unit_means([1.0, 0.0, 1.0], ["a", "a", None])
    ([0.5, 1.0], 0.75)
    """
    grouped: dict[object, list[float]] = {}
    for number, (value, cluster) in enumerate(zip(values, clusters, strict=True)):
        grouped.setdefault(number if cluster is None else cluster, []).append(value)
    means = [math.fsum(members) / len(members) for members in grouped.values()]
    return means, math.fsum(1 / len(members) for members in grouped.values()) / (len(grouped) or 1)


def measured_spread(pairs: Sequence[tuple[int, int, int, int]], clusters: Sequence[str | None] = ()) -> Spread | None:
    """The spread in *pairs* [(baseline passed, valid, candidate passed, valid)] of comparable cases.

    With *clusters*, a name or None for each pair, the spread of cluster means: the noise of a trial in one is that of a
    case times the mean of 1 / size, as in two-stage sampling (L. Kish 1965, Survey Sampling, chapter 5).
    Where fewer than twelve units differ the variance of the differences is smoothed as in the plus-two interval, so
    that a suite in which nothing moved does not promise to see everything. None for fewer than two cases, or clusters
    (`fewer_than_two_comparable_cases`).
    """
    differences = [after / valid_after - before / valid_before for before, valid_before, after, valid_after in pairs]
    differences, part = unit_means(differences, clusters) if clusters else (differences, 1.0)
    n = len(differences)
    if n < 2:
        return None
    centre = math.fsum(differences) / n
    variance = math.fsum((value - centre) ** 2 for value in differences) / (n - 1)
    variance = smoothed_variance(variance, n, math.fsum(differences), sum(value != 0 for value in differences))
    noise = trial_variance([pair[:2] for pair in pairs]), trial_variance([pair[2:] for pair in pairs])
    if noise[0] is None or noise[1] is None:
        return Spread(variance, 0.0, 0.0, False)
    # Of each side's noise the part that its own number of trials leaves, averaged over the cases.
    shares = [math.fsum(1 / pair[side] for pair in pairs) / len(pairs) for side in (1, 3)]
    sigma2 = noise[0] * part, noise[1] * part
    return Spread(max(0.0, variance - sigma2[0] * shares[0] - sigma2[1] * shares[1]), *sigma2, True)


def smoothed_variance(variance: float, n: int, total: float, informative: int) -> float:
    """The variance of *n* differences that add up to *total*, with one of +1 and one of -1 added where few are *informative*, or all equal.

    >>> smoothed_variance(0.0, 12, 12.0, 12) == 1 - (12 / 14) ** 2
    True
    """
    if informative >= MINIMUM_INFORMATIVE and variance > EQUAL_VARIANCE:
        return variance
    squares = variance * (n - 1) + total * total / n
    return max(variance, (squares + 2) / (n + 2) - (total / (n + 2)) ** 2)


def quantiles_sum(alpha: float, power: float) -> float:
    """z_{1-alpha/2} + z_power."""
    return normal_point(1 - alpha / 2) + normal_point(power)


def cases_needed(spread: Spread, trials_a: float, trials_b: float, delta: float, alpha: float = ALPHA, power: float = POWER) -> float:
    """Cases, unrounded, for a two-sided test to see *delta* with *power*. Add a tenth for the sign-flip test.

    >>> round(cases_needed(Spread(0.1, 0.15, 0.15, True), 1, 1, 0.05), 2)
    1255.82
    """
    return quantiles_sum(alpha, power) ** 2 * spread.of_case(trials_a, trials_b) / (delta * delta)


def smallest_effect(spread: Spread, trials_a: float, trials_b: float, n: float, alpha: float = ALPHA, power: float = POWER) -> float:
    """The smallest difference that *n* cases show with *power* at two-sided *alpha* (MDE).

    >>> round(smallest_effect(Spread(0.05, 0.105, 0.105, True), 5, 5, 100), 3)
    0.085
    """
    return quantiles_sum(alpha, power) * math.sqrt(spread.of_case(trials_a, trials_b) / n)


def discordant_cases_needed(lost: float, gained: float, alpha: float = ALPHA, power: float = POWER, sides: int = 2) -> float:
    """Cases, unrounded, with one trial each, when a share *lost* gets worse and a larger share *gained* gets better.

    Source: R. J. Connor (1987), Sample size for testing differences in proportions for the paired-sample design, Biometrics 43, 207-211.

    >>> round(discordant_cases_needed(0.08, 0.16), 2)
    291.96
    """
    both, delta = lost + gained, gained - lost
    needed = normal_point(1 - alpha / sides) * math.sqrt(both) + normal_point(power) * math.sqrt(both - delta * delta)
    return (needed / delta) ** 2


def exact_mcnemar_power(n: int, lost: float, gained: float, alpha: float = ALPHA, sides: int = 2) -> float:
    """The probability that McNemar's exact test on *n* cases with one trial rejects, averaged over how many differ.

    *lost* and *gained* are the probabilities that a case gets worse, better. Source: D. E. Duffy (1984), Asymptotic and exact power
    for the McNemar test and its analogue with R responses, Biometrics 40, 1007-1015.

    >>> round(exact_mcnemar_power(60, 0.03, 0.15), 9)
    0.503566127
    """
    both = lost + gained
    if not 0 < both <= 1:
        return 0.0
    power = []
    for m in range(1, n + 1):
        # The largest number of the rarer kind at which the test on m still rejects.
        term, below, critical = 1, 1, -1
        while sides * below <= alpha * (1 << m) and critical < m:
            critical += 1
            term = term * (m - critical) // (critical + 1)
            below += term
        if critical >= 0:
            rejected = binomial_below(m, lost / both, critical) + (binomial_below(m, gained / both, critical) if sides == 2 else 0.0)
            power.append(math.exp(log_binomial(n, m, both)) * rejected)
    return min(1.0, math.fsum(power))


def log_binomial(n: int, k: int, share: float) -> float:
    """Logarithm of the probability of *k* of *n* at *share*; minus infinity where that cannot be."""
    if share <= 0 or share >= 1:
        return 0.0 if k == (n if share >= 1 else 0) else -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(share) + (n - k) * math.log1p(-share)


def binomial_below(n: int, share: float, most: int) -> float:
    """The probability of at most *most* of *n* at *share*."""
    return math.fsum(math.exp(log_binomial(n, k, share)) for k in range(most + 1))

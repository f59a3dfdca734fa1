"""Passes of two versions over the same items: gain, noise floor, look, non-inferiority.

Scores are numbers of which more is better, in [0, 1] where a range is declared; {item: scores of its
trials}. The trials of an item are averaged; the unit is the cluster, or the item where it names none.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kaizen.stats.exact_tests import SignFlip, sign_flip
from kaizen.stats.intervals import normal_point, normal_tail, student_point, student_tail
from kaizen.stats.planning import EQUAL_VARIANCE, POWER, smoothed_variance

if TYPE_CHECKING:
    from fractions import Fraction

Scores = Mapping[str, Sequence[float]]

ONE_SIDED = 0.05  # the level of the smallest detectable effect of a search
MDE_TRIALS = (1, 3, 6)  # trials for which a noise floor states it
GUARD_CONFIDENCE = 0.9  # one-sided, of non-inferiority


class Difference(NamedTuple):
    """How a candidate differs from a reference: a gain above 0 is better. Source of the formulas: `paired_difference`.

    `n` items in `units` clusters; `se` holds the scatter of the items (`se_items`) and of whole passes; z = gain / se; `p_greater`
    is one-sided for "better", `p_less` for "worse". What is None has its `reason`: `no_comparable_cases` (all but n and units),
    `fewer_than_two_comparable_cases` (all but the gain). `no_discordant_pairs`: every item came out the same, and p is 1.
    """

    n: int
    units: int
    gain: float | None = None
    se_items: float | None = None
    se: float | None = None
    z: float | None = None
    df: float | None = None
    p_greater: float | None = None
    p_less: float | None = None
    interval_low: float | None = None
    interval_high: float | None = None
    reason: str | None = None


def clustered_items(shared: Sequence[str], clusters: Mapping[str, str]) -> list[list[str]]:
    """*shared* by cluster, in order of appearance; an item without a cluster stands alone."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for item in shared:
        groups.setdefault((item in clusters, clusters.get(item, item)), []).append(item)
    return list(groups.values())


def shared_items(candidate: Scores, reference: Scores) -> list[str]:
    """The items that both sides measured, sorted; those of one side alone are left out."""
    return sorted(item for item in candidate if candidate[item] and reference.get(item))


def paired_difference(
    candidate: Scores,
    reference: Scores,
    clusters: Mapping[str, str],
    run_variance: float = 0.0,
    passes: tuple[int, int] = (1, 1),
    aa_passes: int = 0,
    confidence: float = 0.95,
) -> Difference:
    """The paired difference of two sides with its clustered standard error, Student's p and its interval at *confidence*.

    gain = mean over items of d; SE_items^2 = G/(G-1) sum over clusters of (sum of (d - gain))^2 / n^2. A pass as a whole varies by
    *run_variance* (from `noise_floor` of *aa_passes* passes), so SE^2 = SE_items^2 + run_variance (1/passes_c + 1/passes_r); degrees of
    freedom by Satterthwaite from G - 1 and aa_passes - 1. Sources: E. Miller (2024), Adding error bars to evals, equations 3 and 7;
    F. E. Satterthwaite (1946), An approximate distribution of estimates of variance components, Biometrics Bulletin 2, 110-114.

    Where all items moved alike and no run variance is known, SE is 0 and says nothing of chance: p is then that of the sign-flip test
    and z its normal quantile. The interval adds one unit that gained all and one that lost all where fewer than twelve units
    differ, or all alike, so that it is never a point. R's t.test(c(1,0,0,1,1,0,0,-1), alternative = "greater"): t = 1, p = 0.1752:

    >>> after, before = dict(enumerate("10011000")), dict(enumerate("00000001"))
    >>> found = paired_difference({k: [float(v)] for k, v in after.items()}, {k: [float(v)] for k, v in before.items()}, {})
    >>> found.gain, round(found.z, 9), found.df, round(found.p_greater, 4)
    (0.25, 1.0, 7.0, 0.1753)
    """
    shared = shared_items(candidate, reference)
    if not shared:
        return Difference(0, 0, reason="no_comparable_cases")
    d = {item: math.fsum(candidate[item]) / len(candidate[item]) - math.fsum(reference[item]) / len(reference[item]) for item in shared}
    groups, n = clustered_items(shared, clusters), len(shared)
    units, gain = len(groups), math.fsum(d.values()) / n
    if units < 2:
        return Difference(n, units, gain, reason="fewer_than_two_comparable_cases")
    offsets = [math.fsum(d[item] - gain for item in group) for group in groups]
    of_items = units / (units - 1) * math.fsum(offset * offset for offset in offsets) / (n * n)
    if of_items <= EQUAL_VARIANCE * max(1.0, gain * gain):  # nothing but rounding
        of_items = 0.0
    of_runs = run_variance * (1 / passes[0] + 1 / passes[1])
    variance = of_items + of_runs
    informative = sum(any(d[item] for item in group) for group in groups)
    # In [-1, 1] per unit, as the imaginary units are; wider where the scores have no declared range.
    width = max(1.0, *map(abs, d.values()))
    smoothed = smoothed_variance(of_items * units / width**2, units, gain * units / width, informative) * width**2 / units
    reason = None if informative else "no_discordant_pairs"
    if variance:
        df = satterthwaite(((of_items, units - 1), (of_runs, max(1, aa_passes - 1))))
        z = gain / math.sqrt(variance)
        tail = student_tail(abs(z), df)
        greater, less = (tail, 1 - tail) if z >= 0 else (1 - tail, tail)
    else:
        df = float(units - 1)
        signs = SignFlip(0.5**units, 1.0, 1.0, None) if gain > 0 else SignFlip(1.0, 0.5**units, 1.0, None)
        greater, less = (signs.greater, signs.less) if gain else (1.0, 1.0)
        z = math.copysign(-normal_point(max(0.5**units, 1e-300)), gain) if gain else 0.0
    half = student_at(1 - (1 - confidence) / 2, df) * math.sqrt(smoothed + of_runs)
    return Difference(n, units, gain, math.sqrt(of_items), math.sqrt(variance), z, df, greater, less, gain - half, gain + half, reason)


def student_at(probability: float, freedom: float) -> float:
    """`student_point` with degrees of freedom of at least 1 rounded down to a tenth, so that few quantiles are searched for."""
    return student_point(probability, math.floor(freedom * 10 + 1e-9) / 10)


def satterthwaite(parts: Sequence[tuple[float, float]]) -> float:
    """The degrees of freedom of a sum of variances [(variance, its degrees of freedom)], of which one is above 0.

    Two equal variances of 4 and 9 degrees: (1 + 1)^2 / (1/4 + 1/9) = 144/13:

    >>> round(satterthwaite([(1.0, 4), (1.0, 9)]), 9) == round(144 / 13, 9)
    True
    """
    return math.fsum(variance for variance, _ in parts) ** 2 / math.fsum(variance * variance / freedom for variance, freedom in parts)


# --- The noise floor -------------------------------------------------------------------


class NoiseFloor(NamedTuple):
    """What passes of one unchanged version say of noise, over `items` measured in each of `passes` passes.

    `flip_rate`: share of items that did not always come out the same. `se_pass`: SE of the mean of one pass from the scatter of trials.
    `run_variance`: variance of whole passes beyond that; `excess` the same before it is cut at 0. `mde`: {trials: the gain that is seen
    four times out of five}. None, with `reason`, below two passes or without an item.
    """

    items: int
    passes: int
    flip_rate: float | None = None
    se_pass: float | None = None
    run_variance: float | None = None
    excess: float | None = None
    mde: dict[int, float] | None = None
    reason: str | None = None

    def se_of(self, items: int, trials: int) -> float | None:
        """The standard error of the difference of two equal versions on *items* such items, *trials* passes a side."""
        if self.se_pass is None or self.run_variance is None:
            return None
        return math.sqrt(2 * (self.se_pass**2 * self.items / items + self.run_variance) / trials)

    def mde_at(self, items: int, trials: int, level: float = ONE_SIDED) -> float | None:
        """The smallest gain that *items* × *trials* show with power 0.8 in a one-sided test at *level*; 2.49 SE at 5 %.

        A change that moves items both ways needs more. 100 items that pass with probability drawn from Beta(1.2, 0.8), once:

        >>> round(NoiseFloor(100, 3, 0.0, 0.04, 0.0).mde_at(100, 1), 3)
        0.141
        """
        se = self.se_of(items, trials)
        return None if se is None else (normal_point(1 - level) + normal_point(POWER)) * se

    def power_at(self, effect: float, items: int, trials: int, level: float) -> float | None:
        """The probability that a one-sided test at *level* sees *effect*; None when that is unknown. 0.8 at the MDE:

        >>> floor = NoiseFloor(100, 3, 0.0, 0.04, 0.0)
        >>> round(floor.power_at(floor.mde_at(200, 3, 0.005), 200, 3, 0.005), 9)
        0.8
        """
        se = self.se_of(items, trials)
        return None if se is None else normal_tail(normal_point(1 - level) - effect / se) if se else float(effect > 0)


def noise_floor(passes: Mapping[str, Sequence[float | None]]) -> NoiseFloor:
    """The noise of passes over unchanged code, from {item: its score in each pass}; an item that lacks one is left out.

    se_pass^2 = sum over items of the variance (divisor a - 1) of their a scores / n^2; run variance = max(0, variance of the means of the
    passes - se_pass^2): E. Miller (2024), Adding error bars to evals, section 3. No item, fewer than two passes: None
    (`no_valid_observations`, `fewer_trials_than_k`). Four items, two passes, of which one item flips:

    >>> found = noise_floor({"a": [1, 1], "b": [0, 1], "c": [0, 0], "d": [1, 1]})
    >>> found.flip_rate, found.se_pass == (0.5 / 16) ** 0.5, found.run_variance
    (0.25, True, 0.0)
    """
    count = max(map(len, passes.values()), default=0)
    known = [[score for score in scores if score is not None] for _, scores in sorted(passes.items())]
    known = [scores for scores in known if len(scores) == count]
    n = len(known)
    if not n or count < 2:
        return NoiseFloor(n, count, reason="no_valid_observations" if not n or not count else "fewer_trials_than_k")
    of_trials = math.fsum(map(sample_variance, known)) / (n * n)
    means = [math.fsum(scores[number] for scores in known) / n for number in range(count)]
    excess = sample_variance(means) - of_trials
    floor = NoiseFloor(n, count, sum(len(set(scores)) > 1 for scores in known) / n, math.sqrt(of_trials), max(0.0, excess), excess)
    return floor._replace(mde={trials: floor.mde_at(n, trials) or 0.0 for trials in MDE_TRIALS})


def pooled_run_variance(floors: Iterable[NoiseFloor]) -> tuple[float, int]:
    """(run variance, passes) of several groups of passes, each of one version: run_variance and aa_passes of `paired_difference`.

    A group of a passes gives a - 1 degrees of freedom, whatever its version scores; the pooled variance is their weighted mean, cut at 0
    once: three passes alone leave two degrees, with which a variance that is 0 is often found to be as large as the noise of the items.

    >>> groups = [NoiseFloor(9, 3, excess=0.002), NoiseFloor(9, 2, excess=-0.001), NoiseFloor(9, 1)]
    >>> pooled_run_variance(groups)
    (0.001, 4)
    """
    known = [(floor.passes - 1, floor.excess) for floor in floors if floor.excess is not None]
    freedom = sum(each for each, _ in known)
    return (max(0.0, math.fsum(each * excess for each, excess in known) / freedom) if freedom else 0.0), freedom + 1


def sample_variance(values: Sequence[float]) -> float:
    """The variance, with divisor n - 1, of at least two *values*."""
    centre = math.fsum(values) / len(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)


# --- A look ----------------------------------------------------------------------------


class LookTest(NamedTuple):
    """The p-value of a look, the larger of `p_sign_flip` and `p_student`; None, with the reason in `difference`, when it cannot be had."""

    p: float | None
    p_sign_flip: float | None
    p_student: float | None
    difference: Difference


def unit_sums(candidate: Scores, reference: Scores, clusters: Mapping[str, str]) -> "list[Fraction]":
    """The sum of the item differences of each cluster, exact: they add up to n times the gain of `paired_difference`."""
    from fractions import Fraction

    def centre(scores: Sequence[float]) -> Fraction:
        return sum((Fraction(str(score)) for score in scores), Fraction(0)) / len(scores)

    groups = clustered_items(shared_items(candidate, reference), clusters)
    return [sum((centre(candidate[item]) - centre(reference[item]) for item in group), Fraction(0)) for group in groups]


def look_p_value(
    candidate: Scores,
    reference: Scores,
    clusters: Mapping[str, str],
    run_variance: float = 0.0,
    passes: tuple[int, int] = (1, 1),
    aa_passes: int = 0,
    confidence: float = 0.95,
) -> LookTest:
    """The one-sided p for "candidate better": the larger of the sign-flip test's and Student's, both with the cluster as unit.

    The sign-flip test is exact where the t test is rough (few units, few that differ); the t test knows of whole passes that vary.
    Ten items that all improve: 1 of 1024; all of one cluster: cannot be had:

    >>> scores = [{str(item): [float(side)] for item in range(10)} for side in (1, 0)]
    >>> look_p_value(*scores, {}).p * 1024, look_p_value(*scores, dict.fromkeys(scores[0], "one")).p
    (1.0, None)
    """
    found = paired_difference(candidate, reference, clusters, run_variance, passes, aa_passes, confidence)
    if found.p_greater is None:
        return LookTest(None, None, None, found)
    counts: dict[Fraction, int] = {}
    for total in unit_sums(candidate, reference, clusters):
        counts[total] = counts.get(total, 0) + 1
    exact = sign_flip(counts).greater
    return LookTest(max(exact, found.p_greater), exact, found.p_greater, found)


# --- Non-inferiority -------------------------------------------------------------------


def non_inferior(difference: Difference, margin: float, confidence: float = GUARD_CONFIDENCE) -> bool | None:
    """Whether the candidate is shown to lose less than *margin*: gain - t SE > -margin, one-sided; None when it was not measured.

    Where a true loss is the whole margin it passes at most one time in ten. Source: G. Piaggio et al. (2012), Reporting of
    noninferiority and equivalence randomized trials, JAMA 308, 2594-2604. An SE of 0 (every item moved alike) leaves gain > -margin.
    With 30 degrees the t is 1.3104:

    >>> made = Difference(31, 31, 0.0, 0.0076, 0.0076, 0.0, 30.0)
    >>> non_inferior(made, 0.01), non_inferior(made, 0.0099), non_inferior(Difference(0, 0), 0.01)
    (True, False, None)
    """
    if difference.gain is None or difference.se is None or difference.df is None:
        return None
    return difference.gain - student_at(confidence, difference.df) * difference.se > -margin


def amount_difference(
    candidate: Mapping[str, Sequence[float | None]], reference: Mapping[str, Sequence[float | None]], clusters: Mapping[str, str]
) -> Difference:
    """The paired difference of the logarithms of mean amounts (cost, latency) by item; a gain above 0 is cheaper.

    Compare it with a margin such as ln 1.10. Items that cost nothing on both sides are equal. An item of which an amount is missing or
    that costs nothing on one side only makes it `no_valid_observations`: a guard then fails closed. Half the cost is ln 2:

    >>> sides = {"a": [0.5], "b": [1.0, 1.0]}, {"a": [1.0], "b": [2.0]}
    >>> round(amount_difference(*sides, {}).gain, 9)
    0.693147181
    """
    logs: list[dict[str, list[float]]] = [{}, {}]
    for item in sorted(candidate.keys() & reference.keys()):
        means = []
        for amounts in (candidate[item], reference[item]):
            known = [amount for amount in amounts if amount is not None and math.isfinite(amount) and amount >= 0]
            means.append(math.fsum(known) / len(known) if known and len(known) == len(amounts) else None)
        after, before = means
        if after is None or before is None or (after > 0) != (before > 0):
            return Difference(0, 0, reason="no_valid_observations")
        for log, amount in zip(logs, (after, before), strict=True):
            log[item] = [-math.log(amount) if amount else 0.0]
    return paired_difference(logs[0], logs[1], clusters)

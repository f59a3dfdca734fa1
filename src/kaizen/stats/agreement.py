"""Agreement beyond chance: kappa with its interval, Fleiss, Krippendorff, the human band."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from kaizen.stats.aggregates import mean
from kaizen.stats.intervals import Interval, normal_quantile, student_point
from kaizen.stats.lattice import expanded_tail
from kaizen.stats.sampler import RESAMPLES, Resampled, resampled

CountTable = Sequence[Sequence[float]]
Label = str | None

# Disagreement of two places on the list of labels; all but the first need an order.
WEIGHTS: dict[str, Callable[[int, int], int]] = {
    "nominal": lambda i, j: int(i != j),
    "linear": lambda i, j: abs(i - j),
    "quadratic": lambda i, j: (i - j) ** 2,
}
SPARSE = 10  # fewer disagreements, or fewer cases off the commonest label, and the bootstrap alone is too narrow
MINIMUM_PAIRS = 20  # below, no verdict
MINIMUM_SIDE = 10  # labelled cases on a side: in simulations the 95 % interval held the truth in 94.5 % at worst, with 3 in 91 %


class Kappa(NamedTuple):
    """Kappa with its large-sample standard error, cases, raw agreement, and the reason when kappa is None."""

    kappa: float | None
    se: float | None
    n: float
    agreement: float | None
    reason: str | None


def label_table(pairs: Iterable[tuple[Label, Label]], labels: Sequence[str] | None = None) -> tuple[list[str], list[list[int]]]:
    """(labels, counts by row and column label) of *pairs*; pairs in which one side abstained (None) are left out."""
    known = Counter((a, b) for a, b in pairs if a is not None and b is not None)
    names = list(labels) if labels is not None else sorted({label for pair in known for label in pair if label is not None})
    return names, [[known[a, b] for b in names] for a in names]


def cohen_kappa(table: CountTable, weights: str = "nominal") -> Kappa:
    """Cohen's kappa of a square *table* of counts; *weights* is 'nominal', 'linear' or 'quadratic'.

    kappa = 1 - observed / expected disagreement. No case: None (`no_common_cases`); both constant on one label:
    None (`no_expected_disagreement`), not 1. Sources: J. Cohen (1960, 1968); standard error: J. L. Fleiss, J. Cohen,
    B. S. Everitt (1969), Large sample standard errors of kappa and weighted kappa, Psychological Bulletin 72, 323-327.

    >>> cohen_kappa([[20, 5], [10, 15]]).kappa
    0.4
    """
    size, n = range(len(table)), sum(map(sum, table))
    if not n:
        return Kappa(None, None, 0, None, "no_common_cases")
    weight = WEIGHTS[weights]
    rows, columns = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]
    observed = sum(weight(i, j) * table[i][j] for i in size for j in size)
    expected = sum(weight(i, j) * rows[i] * columns[j] for i in size for j in size)
    agreement = sum(table[i][i] for i in size) / n
    if not expected:
        return Kappa(None, None, n, agreement, "no_expected_disagreement")
    kappa = 1 - n * observed / expected
    most = max(weight(i, j) for i in size for j in size)
    alike = [[1 - weight(i, j) / most for j in size] for i in size]
    chance = math.fsum(alike[i][j] * rows[i] * columns[j] for i in size for j in size) / (n * n)
    by_row = [math.fsum(alike[i][j] * columns[j] for j in size) / n for i in size]
    by_column = [math.fsum(alike[i][j] * rows[i] for i in size) / n for j in size]
    squares = math.fsum(table[i][j] / n * (alike[i][j] - (by_row[i] + by_column[j]) * (1 - kappa)) ** 2 for i in size for j in size)
    variance = (squares - (kappa - chance * (1 - kappa)) ** 2) / (n * (1 - chance) ** 2)
    return Kappa(kappa, math.sqrt(max(0.0, variance)), n, agreement, None)


def kappa_resamples(table: CountTable, seed: int, weights: str = "nominal", resamples: int = RESAMPLES) -> Resampled:
    """Kappa over bootstrap resamples of the cases in *table*."""
    size, weight = len(table), WEIGHTS[weights]
    groups = {(i, j): int(table[i][j]) for i in range(size) for j in range(size)}
    n = sum(groups.values())

    def statistic(drawn: list[tuple[tuple[int, int], int]]) -> float | None:
        rows, columns, observed = [0] * size, [0] * size, 0
        for (i, j), count in drawn:
            rows[i] += count
            columns[j] += count
            observed += weight(i, j) * count
        expected = sum(weight(i, j) * row * column for i, row in enumerate(rows) if row for j, column in enumerate(columns))
        return 1 - n * observed / expected if expected else None

    return resampled(groups, statistic, seed, resamples)


def smoothed_kappa_interval(table: CountTable, weights: str = "nominal", confidence: float = 0.95) -> Interval | None:
    """kappa ± t · se of the table with 2 / q² added to each of its q² cells, inside [-1, 1]. None below two cases (`no_common_cases`).

    >>> [round(limit, 6) for limit in smoothed_kappa_interval([[15, 4], [5, 16]])]
    [0.258246, 0.789373]
    """
    n, q = sum(map(sum, table)), len(table)
    if n < 2:
        return None
    kappa, se = cohen_kappa([[count + 2 / q**2 for count in row] for row in table], weights)[:2]
    if kappa is None or se is None:
        return None
    half = student_point(1 - (1 - confidence) / 2, n - 1) * se
    return Interval(max(-1.0, kappa - half), min(1.0, kappa + half))


def kappa_interval(
    table: CountTable, seed: int, weights: str = "nominal", confidence: float = 0.95, resamples: int = RESAMPLES
) -> tuple[Interval | None, str | None]:
    """(interval, reason when there is none) of kappa: expanded bootstrap, with the smoothed one added where counts are sparse.

    Reasons: `no_common_cases`, `no_expected_disagreement`, `insufficient_evidence` below 20 cases, `degenerate_resamples`.
    """
    found = cohen_kappa(table, weights)
    n = int(found.n)
    smoothed = smoothed_kappa_interval(table, weights, confidence)
    if found.kappa is None or n < MINIMUM_PAIRS or smoothed is None:
        return None, found.reason or "insufficient_evidence"
    tail = expanded_tail(n, confidence)
    draws = kappa_resamples(table, seed, weights, resamples)
    low, high = draws.quantile(tail), draws.quantile(1 - tail)
    if low is None or high is None:
        return None, "degenerate_resamples"
    size = range(len(table))
    disagreements = n - sum(table[i][i] for i in size)
    commonest = max((sum(table[i]) + sum(row[i] for row in table)) / 2 for i in size)
    if disagreements < SPARSE or n - commonest < SPARSE:
        return Interval(min(low, smoothed.low), max(high, smoothed.high)), None
    return Interval(low, high), None


def fleiss_kappa(counts: CountTable) -> tuple[float | None, str | None]:
    """(kappa, reason) of *counts*: per subject the ratings by label, the same number of ratings for each subject.

    Source: J. L. Fleiss (1971), Measuring nominal scale agreement among many raters, Psychological Bulletin 76, 378-382.

    >>> round(fleiss_kappa([[4, 0], [3, 1], [0, 4]])[0], 9)
    0.657142857
    """
    raters = sum(counts[0]) if counts else 0
    if raters < 2:
        return None, "no_pairable_values"
    shares = [sum(column) / (len(counts) * raters) for column in zip(*counts, strict=True)]
    chance = math.fsum(share * share for share in shares)
    observed = math.fsum(sum(count * (count - 1) for count in row) for row in counts) / (len(counts) * raters * (raters - 1))
    return ((observed - chance) / (1 - chance), None) if max(shares) < 1 else (None, "no_expected_disagreement")


def krippendorff_alpha(ratings: Sequence[Sequence[float | None]], level: str = "nominal") -> tuple[float | None, str | None]:
    """(alpha, reason) of *ratings*: a row a rater, a column a unit, None where nobody rated; *level* nominal, ordinal or interval.

    Source: K. Krippendorff (2011), Computing Krippendorff's alpha-reliability. No unit with two values:
    `no_pairable_values`; a single value throughout: `no_expected_disagreement`. His first example, of two observers:

    >>> round(krippendorff_alpha([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]])[0], 3)
    0.095
    """
    together: Counter[tuple[float, float]] = Counter()
    for unit in zip(*ratings, strict=True):
        values = [value for value in unit if value is not None]
        for a, first in enumerate(values):
            for b, second in enumerate(values):
                if a != b:
                    together[first, second] += 1 / (len(values) - 1)  # type: ignore[assignment]
    if not together:
        return None, "no_pairable_values"
    totals: dict[float, float] = {}
    for (first, _), weight in together.items():
        totals[first] = totals.get(first, 0) + weight
    values = sorted(totals)
    if len(values) < 2:
        return None, "no_expected_disagreement"

    def distance(c: float, k: float) -> float:
        if level == "nominal":
            return float(c != k)
        if level == "interval":
            return (c - k) ** 2
        between = math.fsum(totals[g] for g in values if min(c, k) <= g <= max(c, k))
        return (between - (totals[c] + totals[k]) / 2) ** 2 if c != k else 0.0

    n = math.fsum(totals.values())
    observed = math.fsum(weight * distance(*pair) for pair, weight in together.items())
    expected = math.fsum(totals[c] * totals[k] * distance(c, k) for c in values for k in values)
    return 1 - (n - 1) * observed / expected, None


# --- Experts and a judge ---------------------------------------------------------------


def consensus(labels: Iterable[Label]) -> tuple[Label, str]:
    """(label of more than half of at least two experts or None, 'consensus' | 'contested' | 'uncovered')."""
    known = Counter(label for label in labels if label is not None)
    total = sum(known.values())
    if total < 2:
        return None, "uncovered"
    label, votes = known.most_common(1)[0]
    return (label, "consensus") if 2 * votes > total else (None, "contested")


def kappa_of(pairs: Iterable[tuple[Label, Label]], labels: Sequence[str] | None = None, weights: str = "nominal") -> Kappa:
    """Kappa of *pairs* of labels, abstentions left out; with other *weights* than 'nominal' the order of *labels* counts."""
    return cohen_kappa(label_table(pairs, labels)[1], weights)


class Band(NamedTuple):
    """A judge among experts, like with like: [(expert, expert, kappa)], [(expert, kappa)], their means, and consensus counts.

    `leave_one_out` is [(expert, kappa of the judge, kappa of that expert)], both against the consensus of the others.
    """

    pairwise: list[tuple[str, str, Kappa]]
    judge_vs_expert: list[tuple[str, Kappa]]
    mean_pairwise: float | None
    mean_judge_vs_expert: float | None
    judge_vs_consensus: Kappa
    counts: dict[str, int]
    leave_one_out: list[tuple[str, Kappa, Kappa]]


def human_band(
    rows: Sequence[tuple[Label, Sequence[Label]]], experts: Sequence[str], labels: Sequence[str] | None = None, weights: str = "nominal"
) -> Band:
    """The band of *rows* [(judge's label, labels in the order of *experts*)]; None abstained.

    Judge-against-consensus is printed but never compared with expert-against-expert: the consensus is cleaner than one
    expert, so a worse judge would look as good. One expert gives no band (`no_common_cases`).
    """

    def kappa_between(a: Callable[[Any], Label], b: Callable[[Any], Label]) -> Kappa:
        return kappa_of(((a(row), b(row)) for row in rows), labels, weights)

    def expert(j: int) -> Callable[[Any], Label]:
        return lambda row: row[1][j]

    def judge(row: Any) -> Label:
        return row[0]  # type: ignore[no-any-return]

    def others(j: int) -> Callable[[Any], Label]:
        return lambda row: consensus([label for k, label in enumerate(row[1]) if k != j])[0]

    places = range(len(experts))
    pairwise = [(experts[a], experts[b], kappa_between(expert(a), expert(b))) for a, b in combinations(places, 2)]
    against = [(experts[j], kappa_between(judge, expert(j))) for j in places]
    verdicts = [(row[0], *consensus(row[1])) for row in rows]
    counts = Counter(kind for _, _, kind in verdicts)
    counts["abstained_on_consensus"] = sum(label is None and kind == "consensus" for label, _, kind in verdicts)
    counts["used"] = counts["consensus"] - counts["abstained_on_consensus"]
    return Band(
        pairwise,
        against,
        mean([kappa.kappa for _, _, kappa in pairwise if kappa.kappa is not None]),
        mean([kappa.kappa for _, kappa in against if kappa.kappa is not None]),
        kappa_of(((label, agreed) for label, agreed, _ in verdicts), labels, weights),
        dict(counts),
        [(experts[j], kappa_between(judge, others(j)), kappa_between(expert(j), others(j))) for j in places] if len(experts) > 2 else [],
    )


class LevelDifference(NamedTuple):
    """Mean kappa of a judge with each expert minus mean kappa of expert pairs, its interval, resamples, the reason for no interval.

    `left_out` counts pairs with fewer than 20 cases in common: one case would weigh as much as a thousand of another pair.
    """

    judge: float | None
    experts: float | None
    difference: float | None
    interval: Interval | None
    resamples: int
    reason: str | None
    left_out: int


def level_difference(
    rows: Sequence[tuple[Label, Sequence[Label]]],
    labels: Sequence[str],
    seed: int,
    weights: str = "nominal",
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> LevelDifference:
    """How the judge of *rows* [(judge's label, labels of the experts)] stands among the experts, on the same cases.

    The interval is the expanded percentile of a paired bootstrap over cases. Reasons for none: `insufficient_evidence`
    when on a side no pair has 20 cases, `no_expected_disagreement` when no pair has a kappa, `degenerate_resamples`.
    """
    from struct import unpack

    place = {label: number for number, label in enumerate(labels)}
    groups = Counter(tuple(-1 if label is None else place[label] for label in (judge, *experts)) for judge, experts in rows)
    sides = len(next(iter(groups), ()))
    every = list(combinations(range(sides), 2))
    common = {(a, b): sum(count for row, count in groups.items() if row[a] >= 0 <= row[b]) for a, b in every}
    pairs = [pair for pair in every if common[pair] >= MINIMUM_PAIRS]  # those of the judge, who is 0, come first
    of_judge = sum(a == 0 for a, _ in pairs)
    left_out = sum(0 < common[pair] < MINIMUM_PAIRS for pair in every)
    if not of_judge or of_judge == len(pairs):
        return LevelDifference(None, None, None, None, 0, "insufficient_evidence", left_out)
    cells = len(labels) ** 2
    # The tables of all pairs as one number of 32-bit cells, so that a resample is a sum of a few products.
    packed = {
        row: sum(1 << 32 * (number * cells + row[a] * len(labels) + row[b]) for number, (a, b) in enumerate(pairs) if row[a] >= 0 <= row[b])
        for row in groups
    }
    kappa = kappa_of_cells(len(labels), weights)

    def means(drawn: Iterable[tuple[tuple[int, ...], int]]) -> tuple[float | None, float | None]:
        total = sum(packed[row] * count for row, count in drawn)
        counts = unpack(f"<{len(pairs) * cells}I", total.to_bytes(4 * len(pairs) * cells, "little"))
        found = [kappa(counts[start : start + cells]) for start in range(0, len(counts), cells)]
        known = [[value for value in part if value is not None] for part in (found[:of_judge], found[of_judge:])]
        return mean(known[0]), mean(known[1])

    def difference(drawn: Iterable[tuple[tuple[int, ...], int]]) -> float | None:
        judge, experts = means(drawn)
        return None if judge is None or experts is None else judge - experts

    judge, experts = means(groups.items())
    if judge is None or experts is None:
        return LevelDifference(judge, experts, None, None, 0, "no_expected_disagreement", left_out)
    draws, tail = resampled(groups, difference, seed, resamples), expanded_tail(len(rows), confidence)
    low, high = draws.quantile(tail), draws.quantile(1 - tail)
    interval = None if low is None or high is None else Interval(low, high)
    return LevelDifference(judge, experts, judge - experts, interval, resamples, None if interval else "degenerate_resamples", left_out)


def kappa_of_cells(size: int, weights: str) -> Callable[[Sequence[int]], float | None]:
    """A function that gives kappa of the *size* × *size* counts of a table, row by row; None where it is not defined."""
    weight = WEIGHTS[weights]
    unlike = [weight(i, j) for i in range(size) for j in range(size)]

    def kappa(counts: Sequence[int]) -> float | None:
        rows = [sum(counts[start : start + size]) for start in range(0, size * size, size)]
        columns = [sum(counts[start::size]) for start in range(size)]
        expected = sum(each * rows[cell // size] * columns[cell % size] for cell, each in enumerate(unlike) if each)
        observed = sum(each * counts[cell] for cell, each in enumerate(unlike) if each)
        return 1 - sum(rows) * observed / expected if expected else None

    return kappa


class CorrectedRate(NamedTuple):
    """A rate corrected for the measured error of the judge that said it, its interval, and the reason when there is none."""

    rate: float | None
    interval: Interval | None
    reason: str | None


def rogan_gladen(
    rate: float, n: float, sensitivity: tuple[int, int], specificity: tuple[int, int], confidence: float = 0.95
) -> CorrectedRate:
    """The share of passes behind the *rate* of *n* that a judge passed, from (right, cases) where experts say pass and say fail.

    The estimate is (rate + specificity - 1) / (sensitivity + specificity - 1), inside [0, 1]. Fewer than 10 cases on
    a side: None (`too_few_labelled_cases`); a judge no better than chance: None (`uninformative_judge`).
    Sources: W. J. Rogan, B. Gladen (1978), Estimating prevalence from the results of a screening test, American Journal of
    Epidemiology 107, 71-76; interval: Z. Lang, J. Reiczigel (2014), Confidence limits for prevalence of disease adjusted for
    estimated sensitivity and specificity, Preventive Veterinary Medicine 113, 13-22.

    >>> round(rogan_gladen(0.5, 200, (90, 100), (80, 100)).rate, 6)  # (0.5 + 0.8 - 1) / (0.9 + 0.8 - 1)
    0.428571
    """
    if min(sensitivity[1], specificity[1]) < MINIMUM_SIDE or n <= 0:
        return CorrectedRate(None, None, "too_few_labelled_cases")
    hit, clear = (right / cases for right, cases in (sensitivity, specificity))
    if hit + clear <= 1:
        return CorrectedRate(None, None, "uninformative_judge")
    z = normal_quantile(confidence)
    # Smoothed as the paper does: z²/2 successes of z² for the rate, one of two for each side.
    size, seen = n + z * z, (n * rate + z * z / 2) / (n + z * z)
    (hit_, hits), (clear_, clears) = (((right + 1) / (cases + 2), cases + 2) for right, cases in (sensitivity, specificity))
    worth = hit_ + clear_ - 1
    if worth <= 0:
        return CorrectedRate(None, None, "uninformative_judge")
    share, hit_spread, clear_spread = (seen + clear_ - 1) / worth, hit_ * (1 - hit_) / hits, clear_ * (1 - clear_) / clears
    shift = 2 * z * z * (share * hit_spread - (1 - share) * clear_spread)
    half = z * math.sqrt(seen * (1 - seen) / size + share**2 * hit_spread + (1 - share) ** 2 * clear_spread) / worth
    inside = [min(1.0, max(0.0, value)) for value in ((rate + clear - 1) / (hit + clear - 1), share + shift - half, share + shift + half)]
    return CorrectedRate(inside[0], Interval(min(inside[0], inside[1]), max(inside[0], inside[2])), None)

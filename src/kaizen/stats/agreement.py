"""Agreement beyond chance: kappa with its interval, Fleiss, Krippendorff, the human band."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from kaizen.stats.aggregates import mean
from kaizen.stats.intervals import Interval, student_point
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


def kappa_of(pairs: Iterable[tuple[Label, Label]]) -> Kappa:
    """Kappa of *pairs* of labels, abstentions left out."""
    return cohen_kappa(label_table(pairs)[1])


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


def human_band(rows: Sequence[tuple[Label, Sequence[Label]]], experts: Sequence[str]) -> Band:
    """The band of *rows* [(judge's label, labels in the order of *experts*)]; None abstained.

    Judge-against-consensus is printed but never compared with expert-against-expert: the consensus is cleaner than one
    expert, so a worse judge would look as good. One expert gives no band (`no_common_cases`).
    """

    def kappa_between(a: Callable[[Any], Label], b: Callable[[Any], Label]) -> Kappa:
        return kappa_of((a(row), b(row)) for row in rows)

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
        kappa_of((label, agreed) for label, agreed, _ in verdicts),
        dict(counts),
        [(experts[j], kappa_between(judge, others(j)), kappa_between(expert(j), others(j))) for j in places] if len(experts) > 2 else [],
    )

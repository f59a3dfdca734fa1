"""Few looks at a sealed holdout: alpha spending, Ladder, Thresholdout; luck."""

import math
from typing import NamedTuple

from kaizen.stats.intervals import normal_point, normal_tail


def alpha_of_look(alpha: float, look: int) -> float:
    """What the *look*-th access (from 1) may spend: alpha / (k (k + 1)), which adds up to *alpha* over all.

    >>> alpha_of_look(0.05, 1), alpha_of_look(0.06, 2)
    (0.025, 0.01)
    """
    return alpha / (look * (look + 1))


def look_level(alpha: float, looks: int, look: int, yes_before: int) -> float:
    """The level of the *look*-th (from 1) of *looks* one-bit answers with *yes_before* among those before it.

    alpha(t, j) = alpha / L · 2^-(j+1) / C(t-1, j). What is asked at look t hangs on the answers before it alone, of which C(t-1, j)
    orders have j yes; the levels of all questions that can come up add up to at most *alpha*, whatever is made of the answers:
    A. Blum, M. Hardt (2015), The Ladder, ICML, lemma 3.1. Raises ValueError for a look outside 1 to *looks*, or more yes than answers.

    >>> [look_level(0.05, 5, look, yes) for look, yes in ((1, 0), (5, 0), (3, 1))]
    [0.005, 0.005, 0.00125]
    """
    if not 1 <= look <= looks or not 0 <= yes_before < look:
        raise ValueError(f"look {look} of {looks} with {yes_before} yes before it cannot be")
    return alpha / looks * 2.0 ** -(yes_before + 1) / math.comb(look - 1, yes_before)


def luck_line(se_pass: float, variants: int) -> float | None:
    """How far above the reference the best of *variants* that change nothing is expected in one pass; None for none (`no_values`).

    se_pass · Phi^-1((N - 0.375) / (N + 0.25)): G. Blom (1958), Statistical estimates and transformed beta-variables. Harter (1961)
    gives 1.53875 for the largest of ten normal values; Blom's is near it:

    >>> [round(luck_line(1.0, variants), 2) for variants in (1, 5, 10, 100)]
    [0.0, 1.18, 1.55, 2.5]
    """
    return se_pass * normal_point((variants - 0.375) / (variants + 0.25)) if variants > 0 else None


def expected_false_keeps(replicated: int, least_z: float) -> float:
    """How many of *replicated* variants that change nothing reach *least_z* on fresh data.

    >>> round(expected_false_keeps(10, 1.0), 3)
    1.587
    """
    return replicated * normal_tail(least_z)


def ladder(scores: list[float], step: float) -> list[float]:
    """What is published for each of *scores* in turn: rounded to *step*, and only if better than the last by more than it.

    Source: A. Blum, M. Hardt (2015), The Ladder: a reliable leaderboard for machine learning competitions, ICML.

    >>> ladder([0.5, 0.6, 1.0], 0.25)
    [0.5, 0.5, 1.0]
    """
    released: list[float] = []
    for score in scores:
        last = released[-1] if released else 0.0
        # Decimals such as 0.43 / 0.02 end a hair below their half; the ties go up.
        released.append(math.floor(score / step + 0.5 + 1e-9) * step if score > last + step else last)
    return released


class Released(NamedTuple):
    """What is released for each query (None once the budget is spent), and the budget that is left."""

    values: list[float | None]
    budget: int


def thresholdout(
    train: list[float], holdout: list[float], threshold: float, budget: int, noises: tuple[list[float], list[float], list[float]]
) -> Released:
    """The training value of each query, or the holdout's with noise where the two lie too far apart.

    *noises* are Laplace draws: for the comparison (scale 4 sigma), the released value (sigma), and the threshold (2 sigma; one
    more than is spent). Source: C. Dwork et al. (2015), The reusable holdout, Science 349, 636-638.

    >>> thresholdout([0.5, 0.75, 0.5], [0.5, 0.5, 0.5], 0.125, 1, ([0, 0, 0], [0, 0.0625, 0], [0, 0]))
    Released(values=[0.5, 0.5625, None], budget=0)
    """
    comparison, release, thresholds = noises
    values: list[float | None] = []
    left = budget
    for index, (seen, sealed) in enumerate(zip(train, holdout, strict=True)):
        if not left:
            values.append(None)
        elif abs(seen - sealed) > threshold + thresholds[budget - left] + comparison[index]:
            values.append(sealed + release[index])
            left -= 1
        else:
            values.append(seen)
    return Released(values, left)

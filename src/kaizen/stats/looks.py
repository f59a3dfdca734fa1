"""Few looks at a sealed holdout: alpha spending, the Ladder, Thresholdout."""

import math
from typing import NamedTuple


def alpha_of_look(alpha: float, look: int) -> float:
    """What the *look*-th access (from 1) may spend: alpha / (k (k + 1)), which adds up to *alpha* over all.

    >>> alpha_of_look(0.05, 1), alpha_of_look(0.06, 2)
    (0.025, 0.01)
    """
    return alpha / (look * (look + 1))


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

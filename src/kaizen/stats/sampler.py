"""Seeded resampling by counts, with integers only: the same draws on every Python.

For statistics that are not means (kappa, F, medians). Cases of equal content form a group; a
resample is one multinomial draw of the groups' counts.
"""

import hashlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from random import Random

RESAMPLES = 10_000
MAXIMUM_UNDEFINED = (1, 20)  # more than 5 % of undefined resamples leave no interval


def sub_seed(seed: int, label: str) -> int:
    """A seed of its own for *label*, so that adding one comparison does not change another.

    >>> f"{sub_seed(1, 'a'):016x}"  # printf '1:a' | sha256sum
    '4162fddd39a3e422'
    """
    return int.from_bytes(hashlib.sha256(f"{seed}:{label}".encode()).digest()[:8], "big")


def binomial_draw(rng: "Random", n: int, a: int, b: int) -> int:
    """How many of *n* trials succeed, each with the exact probability *a* / *b*; only `getrandbits` is used.

    Compares a random binary fraction with a / b digit by digit, for all open trials at once: about 2 n bits. Source:
    D. E. Knuth, A. C. Yao (1976), The complexity of nonuniform random number generation.

    >>> from random import Random
    >>> rng = Random(1)
    >>> [binomial_draw(rng, 10, 1, 2) for _ in range(6)]
    [7, 6, 4, 4, 5, 9]
    """
    passed = 0
    while n:
        if a <= 0:
            return passed
        if a >= b:
            return passed + n
        a <<= 1
        ones = rng.getrandbits(n).bit_count()  # open trials whose next random digit is 1
        if a >= b:  # the next digit of a / b is 1: those with a 0 are settled below it
            a -= b
            passed += n - ones
            n = ones
        else:
            n -= ones
    return passed


def multinomial_draw(rng: "Random", counts: list[int]) -> list[int]:
    """New counts of the same total, drawn with probabilities in proportion to *counts*; the last takes the rest."""
    rest = weight = sum(counts)
    drawn = []
    for count in counts[:-1]:
        taken = binomial_draw(rng, rest, count, weight)
        drawn.append(taken)
        rest -= taken
        weight -= count
    return [*drawn, rest]


class Resampled(NamedTuple):
    """Sorted values of a statistic over resamples, and how many resamples left it undefined."""

    values: list[float]
    undefined: int

    def quantile(self, level: float) -> float | None:
        """The value at *level* (0 to 1); None when too many resamples were undefined (`degenerate_resamples`)."""
        share, whole = MAXIMUM_UNDEFINED
        if not self.values or self.undefined * whole > (self.undefined + len(self.values)) * share:
            return None
        return self.values[min(max(math.ceil(level * len(self.values)) - 1, 0), len(self.values) - 1)]


def resampled(
    groups: dict[Any, int], statistic: Callable[[list[tuple[Any, int]]], float | None], seed: int, resamples: int = RESAMPLES
) -> Resampled:
    """*statistic* over bootstrap resamples of *groups* {content: how many cases}; it gets [(content, count)].

    Groups are drawn by falling count, then by content, so that the draws hang on nothing else. Equal resamples are
    computed once.
    """
    from random import Random

    ordered = sorted((item for item in groups.items() if item[1]), key=lambda item: (-item[1], item[0]))
    contents, counts = [content for content, _ in ordered], [count for _, count in ordered]
    rng = Random(seed)
    known: dict[tuple[int, ...], float | None] = {}
    values, undefined = [], 0
    for _ in range(resamples if ordered else 0):
        drawn = tuple(multinomial_draw(rng, counts))
        if drawn not in known:
            known[drawn] = statistic(list(zip(contents, drawn, strict=True)))
        value = known[drawn]
        if value is None:
            undefined += 1
        else:
            values.append(value)
    return Resampled(sorted(values), undefined)

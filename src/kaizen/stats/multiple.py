"""Many variants at once: adjusted p-values, informative cases needed, the Pareto front."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fractions import Fraction

PValues = list[float | None]


def adjusted(p_values: PValues, adjust: Callable[[list[float]], list[float]]) -> PValues:
    """*adjust* (which gets and gives ascending values) applied to the known of *p_values*, back in their places."""
    order = sorted((index for index, p in enumerate(p_values) if p is not None), key=lambda index: p_values[index] or 0.0)
    result: PValues = [None] * len(p_values)
    for index, value in zip(order, adjust([p_values[index] or 0.0 for index in order]), strict=True):
        result[index] = value
    return result


def bonferroni(p_values: PValues) -> PValues:
    """Each p-value times the size of the family, at most 1; None stays None and is no member.

    >>> bonferroni([0.25, None, 0.75])
    [0.5, None, 1.0]
    """
    return adjusted(p_values, lambda ordered: [min(1.0, len(ordered) * p) for p in ordered])


def holm(p_values: PValues) -> PValues:
    """Step-down adjusted p-values in the order given; None stays None and is no member of the family.

    Source: S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of
    Statistics 6, 65-70. R's p.adjust(c(0.03, 0.01, 0.2), "holm") gives 0.06, 0.03, 0.20:

    >>> holm([0.03, 0.01, 0.2])
    [0.06, 0.03, 0.2]
    """

    def step_down(ordered: list[float]) -> list[float]:
        found: list[float] = []
        for rank, p in enumerate(ordered):
            found.append(max(found[-1] if found else 0.0, min(1.0, (len(ordered) - rank) * p)))
        return found

    return adjusted(p_values, step_down)


def benjamini_hochberg(p_values: PValues) -> PValues:
    """Step-up adjusted p-values that bound the false discovery rate (screening only); None stays None.

    Source: Y. Benjamini, Y. Hochberg (1995), Journal of the Royal Statistical Society B 57, 289-300.
    R's p.adjust(c(0.03, 0.01, 0.2), "BH") gives 0.045, 0.030, 0.200:

    >>> benjamini_hochberg([0.03, 0.01, 0.2])
    [0.045, 0.03, 0.2]
    """

    def step_up(ordered: list[float]) -> list[float]:
        found: list[float] = []
        for rank in range(len(ordered), 0, -1):
            found.append(min(found[-1] if found else 1.0, ordered[rank - 1] * (len(ordered) / rank)))
        return found[::-1]

    return adjusted(p_values, step_up)


def informative_cases_needed(alpha: float, variants: int = 1) -> int:
    """How many cases must differ before any exact test can reach *alpha* for one of *variants*: ceil(log2(variants / alpha)).

    >>> [informative_cases_needed(0.05, variants) for variants in (1, 3, 5, 10, 20)]
    [5, 6, 7, 8, 9]
    """
    return math.ceil(math.log2(variants / alpha) - 1e-12)


# --- Pareto ----------------------------------------------------------------------------


class Variant(NamedTuple):
    """A variant's objectives: quality (more is better), cost and latency (less is better); None is not measured."""

    name: str
    quality: "float | Fraction | None"
    cost: "float | Fraction | None"
    latency: "float | Fraction | None"


class Front(NamedTuple):
    """Status by name ('front', 'dominated', 'infeasible', 'not_comparable'), names on the front, cheapest feasible one."""

    status: dict[str, str]
    front: list[str]
    cheapest_feasible: str | None


def pareto_front(
    variants: list[Variant], minimum_quality: float | None = None, maximum_cost: float | None = None, maximum_latency: float | None = None
) -> Front:
    """The front of *variants* after the gates, which are inclusive. Equal vectors all stay; nothing unmeasured is compared.

    Source: H. T. Kung, F. Luccio, F. P. Preparata (1975), On finding the maxima of a set of vectors, Journal of the ACM 22, 469-476.

    >>> pareto_front([Variant("a", 0.9, 2, 100), Variant("b", 0.8, 1, 120), Variant("c", 0.7, 1.5, 130)]).front
    ['a', 'b']
    """
    status: dict[str, str] = {}
    ranked: list[tuple[float | Fraction, float | Fraction, float | Fraction, str]] = []  # cost, minus quality, latency: less is better
    for name, quality, cost, latency in variants:
        if quality is None or cost is None or latency is None:
            status[name] = "not_comparable"
        elif (
            (minimum_quality is not None and quality < minimum_quality)
            or (maximum_cost is not None and cost > maximum_cost)
            or (maximum_latency is not None and latency > maximum_latency)
        ):
            status[name] = "infeasible"
        else:
            ranked.append((cost, -quality, latency, name))
    for own in ranked:
        beaten = any(
            other[:3] != own[:3] and all(theirs <= mine for theirs, mine in zip(other[:3], own[:3], strict=True)) for other in ranked
        )
        status[own[3]] = "dominated" if beaten else "front"
    front = [variant.name for variant in variants if status[variant.name] == "front"]
    return Front(status, front, min(ranked)[3] if ranked else None)

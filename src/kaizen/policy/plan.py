"""Before a run: cases × trials, the smallest effect each shows, its cost and time."""

import math
from collections.abc import Sequence

from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted
from kaizen.policy.comparison import StageTally
from kaizen.policy.reliability import EXACT_TEST_ALLOWANCE, Quad
from kaizen.stats.aggregates import case_weighted_rate, mean
from kaizen.stats.planning import ALPHA, POWER, Spread, cases_needed, measured_spread, smallest_effect, trial_variance

TYPICAL_RATE = 0.7
TYPICAL_NOISE = 0.5  # share of the variance of one trial that is scatter within a case; the rest lies between cases
TYPICAL_CHANGE = 0.05  # variance over cases of the true change


def assumed_spread(rate: float, noise: float, change: float) -> Spread:
    """The spread of a suite with pass rate *rate*, of whose variance the share *noise* lies within cases."""
    within = rate * (1 - rate) * noise
    return Spread(change, within, within, True)


def planning_spread(quads: Sequence[Quad], sides: list[StageTally], assumed: JsonObject) -> tuple[Spread, list[str]]:
    """(spread, sentences on where it comes from): measured on pairs, else on one side, else assumed.

    *quads* are the comparable cases of two stages, *sides* the stages there are; *assumed* has `rate`, `noise` and `change`.
    """
    measured = measured_spread(quads)
    if measured is not None and measured.is_split:
        return measured, [f"scatter measured on {counted(len(quads), 'case')} of both stages"]
    values = [(tally.passed, tally.valid()) for side in sides for tally in side.cases.values()]
    rate, within = case_weighted_rate(values), trial_variance(values)
    if measured is not None and rate is not None:
        noise = min(float(rate * (1 - rate)) * assumed["noise"], measured.omega2 / 2)
        sources = [f"scatter of the change measured on {counted(len(quads), 'case')}, one trial each"]
        sources.append(f"share of noise in a trial assumed: {assumed['noise']:g}")
        return Spread(measured.omega2 - 2 * noise, noise, noise, True), sources
    if within is not None:
        names = " and ".join(side.stage for side in sides)
        spread = Spread(assumed["change"], within, within, True)
        return spread, [f"scatter of trials measured on {names}", f"variance of the change over cases assumed: {assumed['change']:g}"]
    sources = [f"pass rate {float(rate):.1%} measured" if rate is not None else f"pass rate assumed: {assumed['rate']:g}"]
    sources.append(f"share of noise in a trial assumed: {assumed['noise']:g}")
    sources.append(f"variance of the change over cases assumed: {assumed['change']:g}")
    return assumed_spread(assumed["rate"] if rate is None else float(rate), assumed["noise"], assumed["change"]), sources


def measured_means(sides: list[StageTally]) -> tuple[float | None, float | None]:
    """(mean cost in USD, mean seconds) of a trial; None where no trial has one, or, for the cost, where some have none."""
    tallies = [tally for side in sides for tally in side.cases.values()]
    costs = [cost for tally in tallies for cost in tally.costs]
    durations = [duration / 1000 for tally in tallies for duration in tally.durations]
    is_priced = len(costs) == sum(tally.passed + tally.failed + tally.errors for tally in tallies)
    return (mean(costs) if is_priced else None), mean(durations)


def plan_document(
    spread: Spread,
    sources: list[str],
    cases: Sequence[int],
    trials: Sequence[int],
    means: tuple[float | None, float | None],
    jobs: int,
    effect: float | None,
) -> JsonObject:
    """The table of *cases* × *trials*; cost and time are of both stages. *effect*: also the cases it needs at each number of trials.

    Effects are those of the formula; `needed` has the tenth on top that the sign-flip test takes.
    """
    cost, seconds = means
    cells: list[JsonObject] = []
    for n in cases:
        for k in trials:
            cell: JsonObject = {"cases": n, "trials": k, "smallest_effect": smallest_effect(spread, k, k, n)}
            cell["cost_usd"] = None if cost is None else cost * n * k * 2
            cell["seconds"] = None if seconds is None else seconds * n * k * 2 / jobs
            cells.append(cell)
    needed: list[JsonObject] = []
    for k in trials if effect else ():
        needed.append({"trials": k, "cases": math.ceil(EXACT_TEST_ALLOWANCE * cases_needed(spread, k, k, effect or 1) - 1e-9)})
    return {
        "power": POWER,
        "alpha": ALPHA,
        "spread": spread._asdict(),
        "sources": sources,
        "jobs": jobs,
        "trial_cost_usd": cost,
        "trial_seconds": seconds,
        "cells": cells,
        "effect": effect,
        "needed": needed,
    }

"""Before a run: cases × trials, the smallest effect each shows, its cost and time."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from kaizen.cases.case import Case
from kaizen.foundation.jsonio import JsonObject, float_or_none
from kaizen.foundation.text import counted, percent
from kaizen.policy.comparison import StageTally
from kaizen.policy.reliability import EXACT_TEST_ALLOWANCE, Quad
from kaizen.stats.aggregates import case_weighted_rate, mean
from kaizen.stats.planning import ALPHA, POWER, Spread, cases_needed, measured_spread, smallest_effect, trial_variance, unit_means

TYPICAL_RATE = 0.7
TYPICAL_NOISE = 0.5  # share of the variance of one trial that is scatter within a case; the rest lies between cases
TYPICAL_CHANGE = 0.05  # variance over cases of the true change
TYPICAL_LIKENESS = 0.5  # correlation of the true change of two cases of one cluster


class Pilot(NamedTuple):
    """What there is before a run: comparable cases of both stages, their clusters (() when no case names one), the stages there are."""

    quads: list[Quad]
    clusters: list[str | None]
    sides: list[StageTally]


class Units(NamedTuple):
    """The cases of the improvement, the clusters they make (as many when no case names one), the mean over these of 1 / size."""

    cases: int
    units: int
    part: float

    def of_cases(self, cases: float) -> float:
        """How many units so many *cases* make at this size of a cluster."""
        return cases * self.units / self.cases if self.cases else cases


def units_of(cases: dict[str, Case], clusters: dict[str, str]) -> Units:
    """The units of *cases*, of which *clusters* names the cluster by case id."""
    if not clusters:
        return Units(len(cases), len(cases), 1.0)
    means, part = unit_means([0.0] * len(cases), [clusters.get(case_id) for case_id in cases])
    return Units(len(cases), len(means), part)


def planning_spread(pilot: Pilot, part: float, assumed: JsonObject) -> tuple[Spread, list[str]]:
    """(spread of a unit, sentences on where it comes from): measured on pairs, else on one side, else assumed.

    *part* is the mean of 1 / size of a cluster, 1 where the case is the unit; *assumed* has `rate`, `noise`, `change` and `alike`.
    """
    quads, sides = pilot.quads, pilot.sides
    measured = measured_spread(quads, pilot.clusters)
    if measured is not None and measured.is_split:
        return measured, [f"scatter measured on {counted(len(quads), 'case')} of both stages"]
    values = [(tally.passed, tally.valid()) for side in sides for tally in side.cases.values()]
    rate, within = case_weighted_rate(values), trial_variance(values)
    if measured is not None and rate is not None:
        noise = min(float(rate * (1 - rate)) * assumed["noise"] * part, measured.omega2 / 2)
        sources = [f"scatter of the change measured on {counted(len(quads), 'case')}, one trial each"]
        sources.append(f"share of noise in a trial assumed: {assumed['noise']:g}")
        return Spread(measured.omega2 - 2 * noise, noise, noise, True), sources
    if within is not None:
        sources = [f"scatter of trials measured on {' and '.join(side.stage for side in sides if is_measured(side))}"]
    else:
        share = assumed["rate"] if rate is None else float(rate)
        within = share * (1 - share) * assumed["noise"]
        known = "" if rate is None else f"pass rate {percent(rate.numerator, rate.denominator)} measured"
        sources = [known or f"pass rate assumed: {assumed['rate']:g}"]
        sources.append(f"share of noise in a trial assumed: {assumed['noise']:g}")
    sources.append(f"variance of the change over cases assumed: {assumed['change']:g}")
    sources += [f"correlation of the change within a cluster assumed: {assumed['alike']:g}"] if part < 1 else []
    change = assumed["change"] * (assumed["alike"] + (1 - assumed["alike"]) * part)
    return Spread(change, within * part, within * part, True), sources


def is_measured(side: StageTally) -> bool:
    """Whether any trial of a stage passed or failed."""
    return any(tally.valid() for tally in side.cases.values())


def design_effect(pilot: Pilot, units: Units, spread: Spread, assumed: JsonObject) -> float:
    """How many times the variance of the change grows because cases of one cluster are alike, at one trial: L. Kish's deff."""
    alone, _ = planning_spread(pilot._replace(clusters=[]), 1.0, assumed)
    return spread.of_case(1, 1) / units.units / (alone.of_case(1, 1) / units.cases)


def measured_means(sides: list[StageTally]) -> tuple[float | None, float | None]:
    """(mean cost in USD, mean seconds) of a trial; None where no trial has one, or, for the cost, where some have none."""
    tallies = [tally for side in sides for tally in side.cases.values()]
    costs = [cost for tally in tallies for cost in tally.costs]
    durations = [duration / 1000 for tally in tallies for duration in tally.durations]
    is_priced = len(costs) == sum(tally.passed + tally.failed + tally.errors for tally in tallies)
    return (mean(costs) if is_priced else None), mean(durations)


def plan_document(
    spread: Spread,
    units: Units,
    sources: list[str],
    cases: Sequence[int],
    trials: Sequence[int],
    means: tuple[float | None, float | None],
    jobs: int,
    effect: float | None,
) -> JsonObject:
    """The table of *cases* × *trials*; cost and time are of both stages. *effect*: also the cases it needs at each number of trials.

    Effects are those of the formula; `needed` has the tenth on top that the sign-flip test takes. *spread* is that of a unit:
    of a cluster, where cases name one, and n counts clusters.
    """
    cost, seconds = means
    cells: list[JsonObject] = []
    for n in cases:
        for k in trials:
            cell: JsonObject = {"cases": n, "trials": k, "smallest_effect": smallest_effect(spread, k, k, units.of_cases(n))}
            cell["cost_usd"] = None if cost is None else float_or_none(cost * n * k * 2)
            cell["seconds"] = None if seconds is None else float_or_none(seconds / jobs * n * k * 2)
            cells.append(cell)
    needed: list[JsonObject] = []
    for k in trials if effect else ():
        wanted = EXACT_TEST_ALLOWANCE * cases_needed(spread, k, k, effect or 1) / units.of_cases(1)
        needed.append({"trials": k, "cases": math.ceil(wanted - 1e-9)})
    return {
        "power": POWER,
        "alpha": ALPHA,
        "unit": "cluster" if units.units < units.cases else "case",
        "units": units.units,
        "spread": spread._asdict(),
        "sources": sources,
        "jobs": jobs,
        "trial_cost_usd": cost,
        "trial_seconds": seconds,
        "cells": cells,
        "effect": effect,
        "needed": needed,
    }

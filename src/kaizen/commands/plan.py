"""`kaizen plan`: how many cases and trials it takes, before they are run."""

import os
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import Any

from kaizen.commands.arguments import count_argument
from kaizen.commands.context import Project, assess, load_project, tallied_stage
from kaizen.commands.reporting import BASELINE, CANDIDATE
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.foundation.errors import UsageError
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, duration, money, quoted
from kaizen.policy.plan import (
    TYPICAL_CHANGE,
    TYPICAL_LIKENESS,
    TYPICAL_NOISE,
    TYPICAL_RATE,
    Pilot,
    design_effect,
    measured_means,
    plan_document,
    planning_spread,
    units_of,
)
from kaizen.policy.reliability import clusters_of, comparable_rows, share_quad

USUAL_CASES = (20, 50, 100, 200, 500)
USUAL_TRIALS = (1, 3, 5, 10)
MOST_CASES = 10_000_000
SMALLEST_ASKED = 0.0001  # a change of the pass rate that nobody plans for


def cases_argument(text: str) -> int:
    """*text* as a whole number of cases. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or len(text) > 8 or not 1 <= int(text) <= MOST_CASES:
        raise ArgumentTypeError(f"{quoted(text)} is not a whole number from 1 to {MOST_CASES:,}")
    return int(text)


def effect_argument(text: str) -> float:
    """*text* as a change of the pass rate. Raises ArgumentTypeError."""
    value = share_argument(text)
    if value < SMALLEST_ASKED:
        raise ArgumentTypeError(f"{quoted(text)} is below {SMALLEST_ASKED:g}")
    return value


def share_argument(text: str) -> float:
    """*text* as a number above 0 and below 1. Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise ArgumentTypeError(f"{quoted(text)} is not a number between 0 and 1")
    return value


def repeated(kind: Callable[[str], int]) -> dict[str, Any]:
    """The options of an argument that may be given several times."""
    return {"action": "append", "default": [], "type": kind}


def assumption(name: str, value: str, what: str, default: float) -> Argument:
    """An argument that says what to assume where nothing was measured."""
    return Argument(name, value, f"{what} to assume where it is not measured ({default:g})", {"type": share_argument, "default": default})


@command(
    "plan",
    "Says which change each number of cases and trials could show, and what running them would cost; runs nothing.",
    [
        IMPROVEMENT._replace(options={"nargs": "?"}),
        Argument("--system", "ID", "plan a campaign of this system, in place of IMPROVEMENT", {"default": ""}),
        Argument("--campaign", "C", "with --system: which campaign (the one that is open)", {"default": ""}),
        Argument("--holdout", "N", "with --system: cases of the holdout (the campaign's; else as many as items)", {"type": cases_argument}),
        BASELINE,
        CANDIDATE,
        Argument("--cases", "N", "a number of cases (repeatable; default: the improvement's, and 20 to 500)", repeated(cases_argument)),
        Argument("--trials", "K", "a number of trials (repeatable; default: 1, 3, 5, 10)", repeated(count_argument)),
        Argument("--effect", "D", "a change of the pass rate, such as 0.05: also print the cases it needs", {"type": effect_argument}),
        assumption("--rate", "R", "pass rate", TYPICAL_RATE),
        assumption("--noise", "S", "share of noise in the variance of a trial", TYPICAL_NOISE),
        assumption("--change", "V", "variance of the change over cases", TYPICAL_CHANGE),
        assumption("--alike", "R", "correlation of the change of two cases of one cluster", TYPICAL_LIKENESS),
        Argument("--jobs", "N", "trials at the same time (default: 1)", {"type": count_argument, "default": 1}),
    ],
    "kaizen plan refund\nkaizen plan --system refunds --effect 0.05\nkaizen plan refund --effect 0.05 --jobs 4",
    group="surer",
)
def command_plan(args: Namespace) -> Answer:
    """Uses the stages that are there as a pilot; without any, assumptions that it prints."""
    if args.system:
        from kaizen.commands.system_noise import plan_of_system

        return plan_of_system(args)
    if args.improvement is None:
        raise UsageError("there is nothing to plan", "name an improvement, or a system with --system ID")
    project = load_project(args.improvement)
    clusters = clusters_of(project.dataset.cases)
    units = units_of(project.dataset.cases, clusters)
    found = pilot(project, args.baseline, args.candidate, clusters)
    assumed = {"rate": args.rate, "noise": args.noise, "change": args.change, "alike": args.alike}
    spread, sources = planning_spread(found, units.part, assumed)
    own = units.cases
    effect = design_effect(found, units, spread, assumed) if units.units < own else None
    if effect is not None:
        worth = f"worth about {counted(round(own / effect), 'independent case')} at one trial (design effect {effect:.2g})"
        sources.append(f"the {counted(own, 'case')} are {counted(units.units, 'cluster')}, {worth}; the table takes clusters of that size")
    cases = sorted(set(args.cases or [*USUAL_CASES, *([own] if own else [])]))
    trials = sorted(set(args.trials or USUAL_TRIALS))
    document = plan_document(spread, units, sources, cases, trials, measured_means(found.sides), args.jobs, args.effect)
    document["design_effect"] = effect
    message = f"what {counted(own, 'case')} and other numbers of them could show"
    return Answer(0, "planned", message, plan_lines(document, cases, trials, own), {"cases": own, **document})


def pilot(project: Project, baseline: str, candidate: str, clusters: dict[str, str]) -> Pilot:
    """The comparable cases of both stages and the stages that are there; nothing is run."""
    there = [stage for stage in (baseline, candidate) if os.path.exists(project.improvement.stage_file(stage))]
    if len(there) == 2 and baseline != candidate:
        assessment = assess(project, baseline, candidate)
        rows = comparable_rows(assessment.comparison["cases"])
        names = [clusters.get(row["id"]) for row in rows] if clusters else []
        return Pilot([share_quad(row) for row in rows], names, list(assessment.tallies.values()))
    return Pilot([], [], [tallied_stage(project, stage)[0] for stage in dict.fromkeys(there)])


def effect_text(effect: float) -> str:
    """*effect* in points; no pass rate changes by more than a hundred."""
    return f"{100 * effect:.1f}" if effect <= 1 else "none"


def plan_lines(document: JsonObject, cases: list[int], trials: list[int], own: int) -> list[str]:
    """The tables for a terminal: effects, then cost and time where they were measured."""
    cells = {(cell["cases"], cell["trials"]): cell for cell in document["cells"]}

    def shown(amount: float | None, words: Callable[[float], str]) -> str:
        return "too large" if amount is None else words(amount)

    def table(key: str, texts: "dict[tuple[int, int], str]") -> list[str]:
        rows = [[key, *[counted(k, "trial") for k in trials]]]
        rows += [[counted(n, "case") + (" *" if n == own else ""), *[texts[n, k] for k in trials]] for n in cases]
        widths = [max(len(row[column]) for row in rows) for column in range(len(trials) + 1)]
        return ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]

    lines = ["smallest change of the pass rate seen four times out of five, in points (two-sided 5 %):"]
    lines += table("", {place: effect_text(cell["smallest_effect"]) for place, cell in cells.items()})
    if document["trial_cost_usd"] is not None:
        lines += ["cost of both stages in USD, from what was measured:"]
        lines += table("", {place: shown(cell["cost_usd"], money) for place, cell in cells.items()})
    if document["trial_seconds"] is not None:
        lines += [f"time of both stages at {counted(document['jobs'], 'job')}, from what was measured:"]
        lines += table("", {place: shown(cell["seconds"], duration) for place, cell in cells.items()})
    else:
        lines.append("cost and time: not known before something was measured; run a few cases")
    if document["needed"]:
        wanted = ", ".join(f"{entry['cases']:,} at {counted(entry['trials'], 'trial')}" for entry in document["needed"])
        lines.append(f"to see a change of {100 * document['effect']:.1f} points: {wanted} (with a tenth more for the exact test)")
    return [*lines, *[f"note: {source}" for source in document["sources"]], *(["* the cases of this improvement"] if own else [])]

"""Variants weighed against each other: constraints first, then quality, cost, latency.

A variant is feasible when the acceptance policy holds for it against the baseline and the
`objectives` are met; the bounds are inclusive. What was not measured is not comparable,
never free and never fast. Money and quality are compared as exact fractions.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from kaizen.cases.case import Case
from kaizen.cases.evaluation_file import Evaluation, exact_fraction
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted
from kaizen.policy.acceptance import exact_percent, number_text, ratio_side
from kaizen.policy.comparison import StageTally, fraction_document, stage_rates
from kaizen.policy.derived import derived_metrics
from kaizen.policy.recommendation import EXCLUDED_LIMIT, comparison_document, veto_rules
from kaizen.stats.aggregates import case_weighted_rate, percentile, quantile_ranks
from kaizen.stats.multiple import Variant, pareto_front

if TYPE_CHECKING:
    from fractions import Fraction

LATENCY_PERCENT = 95


class Measured(NamedTuple):
    """A variant: its name, the tally and results meta of its stage, [(reason code, sentence)] of what makes it unusable."""

    name: str
    tally: StageTally
    meta: JsonObject
    problems: list[tuple[str, str]]


class Axes(NamedTuple):
    """What a variant is weighed by: exact pass rate, exact mean cost of a trial, 95th percentile of the duration; None: not measured."""

    quality: "Fraction | None"
    cost: "Fraction | None"
    latency: float | None


def pareto_document(evaluation: Evaluation, cases: dict[str, Case], baseline: Measured | None, variants: list[Measured]) -> JsonObject:
    """The document of pareto.json: each variant with its status and reasons, the front, the cheapest feasible one.

    Without a *baseline* nothing that compares with one can be asked, which a note says.
    """
    axes = {variant.name: measured_axes(variant.tally, list(cases)) for variant in variants}
    timed = any(found.latency is not None for found in axes.values()) or evaluation.objectives["maximum_latency_p95_ms"] is not None
    reasons: dict[str, list[JsonObject]] = {}
    statuses: dict[str, str] = {}
    for variant in variants:
        unmeasured = unmeasured_axes(variant, axes[variant.name], len(cases), timed)
        unmet = [] if variant.problems else unmet_constraints(evaluation, cases, baseline, variant, axes[variant.name])
        broken = [entry for entry in unmet if entry["status"] == "infeasible"]
        open_ends = [*unmeasured, *(entry for entry in unmet if entry["status"] != "infeasible")]
        first = {entry["code"]: entry for entry in reversed([*broken, *open_ends])}  # one fact, one reason
        reasons[variant.name] = [entry for entry in [*broken, *open_ends] if entry is first[entry["code"]]]
        statuses[variant.name] = "infeasible" if broken else "not_comparable" if open_ends else ""
    able = [variant for variant in variants if not statuses[variant.name]]
    front = pareto_front([objectives_of(variant.name, axes[variant.name], timed) for variant in able])
    statuses.update(front.status)
    entries = [variant_document(variant, axes[variant.name], statuses, reasons, list(cases)) for variant in variants]
    separated = unseparated_pairs([entry for entry in entries if entry["status"] in ("front", "dominated")])
    return {
        "version": 1,
        "baseline": baseline.tally.stage if baseline else None,
        "objectives": evaluation.objectives,
        "axes": ["quality", "cost", *(["latency"] if timed else [])],
        "variants": entries,
        "front": front.front,
        "not_separated": separated,
        "cheapest_feasible": front.cheapest_feasible,
        "notes": pareto_notes(baseline, timed, front.front, separated),
    }


def objectives_of(name: str, axes: Axes, timed: bool) -> Variant:
    """The variant for the front; a latency that nobody measured is the same for all."""
    return Variant(name, axes.quality, axes.cost, axes.latency if timed else 0.0)


def measured_axes(stage: StageTally, case_ids: list[str]) -> Axes:
    """The objectives of *stage* over *case_ids*; one that is not known for every valid trial is None."""
    tallies = [stage.tally(case_id) for case_id in case_ids]
    durations = [value for tally in tallies for value in tally.durations]
    is_timed = bool(durations) and len(durations) >= sum(tally.valid() for tally in tallies)
    shares = [(tally.passed, tally.valid()) for tally in tallies]
    return Axes(
        case_weighted_rate(shares),
        ratio_side(list(tallies), "costs"),
        percentile(durations, LATENCY_PERCENT).value if is_timed else None,
    )


def open_reason(code: str, text: str) -> JsonObject:
    """A reason why a variant cannot be compared."""
    return {"status": "not_comparable", "code": code, "text": text}


def unmeasured_axes(variant: Measured, axes: Axes, cases: int, timed: bool) -> list[JsonObject]:
    """Why the variant cannot be weighed: unusable results, trials without evidence, no price, no duration."""
    if variant.problems:
        return [open_reason(code, text) for code, text in variant.problems]
    found = []
    tallies = variant.tally.cases.values()
    valid, planned = sum(tally.valid() for tally in tallies), cases * variant.tally.repetitions
    if (planned - valid) * EXCLUDED_LIMIT[1] > planned * EXCLUDED_LIMIT[0]:
        text = f"{planned - valid:,} of {counted(planned, 'planned trial')} have no usable evidence (at most 5 %)"
        found.append(open_reason("excluded_trials", text))
    for code, word, value, attribute in (
        ("unpriced", "price", axes.cost, "costs"),
        ("unmeasured_latency", "duration", axes.latency, "durations"),
    ):
        if value is None and (timed or code == "unpriced"):
            known = sum(len(getattr(tally, attribute)) for tally in tallies)
            found.append(open_reason(code, f"{known:,} of {counted(valid, 'measured trial')} have a {word}"))
    return found


def unmet_constraints(
    evaluation: Evaluation, cases: dict[str, Case], baseline: Measured | None, variant: Measured, axes: Axes
) -> list[JsonObject]:
    """What stands against *variant*: of the acceptance policy (the `reliability` block asks another question), then of the objectives."""
    if baseline is None or baseline.meta.get("results_sha256") == variant.meta.get("results_sha256"):  # nobody improves on itself
        rows = [{"id": case_id, "hard": variant.tally.tally(case_id).hard > 0, "change": None} for case_id in cases]
        fired = veto_rules(evaluation.acceptance, cases, rows, variant.tally)
    else:
        policy = evaluation._replace(reliability=None)
        stages = {"baseline": (baseline.tally, baseline.meta), "candidate": (variant.tally, variant.meta)}
        problems = [(code, f"baseline: {text}") for code, text in baseline.problems]
        fired = comparison_document(policy, cases, stages, ("", ""), problems, derived_metrics(policy, cases))["reasons"]
    unmet = []
    for entry in fired:
        status = "infeasible" if entry["rule"] in (2, 3, 4) else "not_comparable"
        unmet.append({"status": status, "code": entry["code"], "text": entry["text"]})
    return [*unmet, *broken_objectives(evaluation.objectives, axes)]


def broken_objectives(objectives: JsonObject, axes: Axes) -> list[JsonObject]:
    """The bounds of the `objectives` block that the measured axes break."""
    found = []
    least = objectives["minimum_pass_rate"]
    if least is not None and axes.quality is not None and axes.quality < exact_fraction(least):
        shown = exact_percent(axes.quality, exact_fraction(least))
        found.append(("below_minimum_pass_rate", f"pass rate {shown[0]} (at least {shown[1]})"))
    latency = None if axes.latency is None else exact_fraction(axes.latency)
    for key, value, words in (
        ("maximum_cost_per_case_usd", axes.cost, "cost of a case in US dollars"),
        ("maximum_latency_p95_ms", latency, "95th percentile of the duration in ms"),
    ):
        most = objectives[key]
        if most is not None and value is not None and value > exact_fraction(most):
            shown = number_text(value, exact_fraction(most))
            found.append((f"above_{key}", f"{words} {shown[0]} (at most {shown[1]})"))
    return [{"status": "infeasible", "code": code, "text": text} for code, text in found]


def variant_document(
    variant: Measured, axes: Axes, statuses: dict[str, str], reasons: dict[str, list[JsonObject]], case_ids: list[str]
) -> JsonObject:
    """The entry of one variant in pareto.json."""
    usable = not variant.problems
    rates = stage_rates(case_ids, variant.tally)
    return {
        "name": variant.name,
        "stage": variant.tally.stage,
        "status": statuses[variant.name],
        "reasons": [{"code": entry["code"], "text": entry["text"]} for entry in reasons[variant.name]],
        "quality": fraction_document(axes.quality) if usable else None,
        "interval": [rates["low"], rates["high"]] if usable and rates["low"] is not None else None,
        "mean_cost_usd": float(axes.cost) if usable and axes.cost is not None else None,
        "latency_p95_ms": axes.latency if usable else None,
        "latency_interval_ms": latency_limits(variant.tally, case_ids) if usable and axes.latency is not None else None,
        "counts": {key: rates[key] for key in ("passed", "failed", "errors", "not_run", "planned", "priced", "timed")},
        "results_sha256": variant.meta.get("results_sha256"),
    }


def latency_limits(stage: StageTally, case_ids: list[str]) -> list[float | None]:
    """Distribution-free limits of the 95th percentile; null where too few trials give one (an upper one needs 72)."""
    durations = sorted(value for case_id in case_ids for value in stage.tally(case_id).durations)
    places = quantile_ranks(len(durations), LATENCY_PERCENT / 100)
    return [None if place is None else durations[place] for place in places]


def unseparated_pairs(entries: list[JsonObject]) -> list[list[str]]:
    """Pairs of names whose quality intervals overlap, in the order of *entries*."""

    def overlap(one: Any, other: Any) -> bool:
        return bool(one and other and one[0] <= other[1] and other[0] <= one[1])

    return [
        [one["name"], other["name"]]
        for place, one in enumerate(entries)
        for other in entries[place + 1 :]
        if overlap(one["interval"], other["interval"])
    ]


def pareto_notes(baseline: Measured | None, timed: bool, front: list[str], unseparated: list[list[str]]) -> list[str]:
    """Whole sentences about what the front does not show."""
    notes = []
    if baseline is None:
        notes.append("There is no baseline, so of the acceptance policy only hard and critical failures were looked at.")
    if not timed:
        notes.append("No variant has measured durations, so latency was left out.")
    among = [pair for pair in unseparated if pair[0] in front and pair[1] in front]
    if among:
        notes.append(f"Not separated in quality, their intervals overlap: {'; '.join(' and '.join(pair) for pair in among[:10])}.")
    if len(front) > 1:
        notes.append("The best of several looks better than it is: confirm the choice on cases that did not make it.")
    return notes

"""Derived metrics: their values in a stage, their change, the bounds of `acceptance`.

The case is the unit. An answer is what one entry of a metric said of one trial; answers that passed or failed are
measured. `rate` is the mean over cases of each case's passed share of its measured answers, `mean` the mean over
cases of each case's mean score, `min` and `max` the least and greatest of these means, `count` the number of cases with a
measured answer. Answers that are errors or never came are in none of them, and counted beside.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from kaizen.cases.case import Case
from kaizen.cases.evaluation_file import Evaluation, case_entries, exact_fraction, metrics_of_entries
from kaizen.cases.expressions import Expression, expression_value
from kaizen.foundation.errors import Breaches
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed, quoted, visible
from kaizen.policy.acceptance import Missed, Unmeasured, number_text
from kaizen.policy.comparison import AnswerTally, StageTally

if TYPE_CHECKING:
    from fractions import Fraction

DERIVED_REASONS = {
    "no_values": "nothing of it was measured",
    "division_by_zero": "division by zero",
    "number_too_large": "the number is too large",
    "no_common_cases": "no case was measured on both sides",
}
MOST_MISSING = (1, 20)  # of the answers that were due, as for trials (formats.md 1.5 rule 5)
LARGEST = 10**300  # above, no float holds what is left after a subtraction
LONGEST_EXACT = 100  # bits of the numbers of a fraction that is worth printing
# key of a bound: (whether it bounds the change, whether the value must not exceed it, sign, words)
METRIC_BOUNDS = {
    "minimum": (False, False, 1, "at least"),
    "maximum": (False, True, 1, "at most"),
    "maximum_rise": (True, True, 1, "may rise by at most"),
    "maximum_fall": (True, True, -1, "may fall by at most"),
}


class DerivedMetrics(NamedTuple):
    """The expressions by name, and for each entry id the metric that it adds to: in every case, and in cases with entries of their own.

    Only metrics that an expression asks for are in `names` and `own`.
    """

    expressions: dict[str, Expression]
    names: dict[str, str]
    own: dict[str, dict[str, str]]

    def names_of(self, case_id: str) -> dict[str, str]:
        """{entry id: metric} of the entries of *case_id* that are asked for."""
        return self.own.get(case_id, self.names)

    def metrics_of(self) -> Callable[[str], dict[str, str]] | None:
        """`names_of` for a tally; None when nothing is asked for."""
        return self.names_of if self.expressions else None

    def used(self) -> list[str]:
        """The metrics that are asked for, each once."""
        return list(dict.fromkeys(use.metric for expression in self.expressions.values() for use in expression.uses()))


NO_METRICS = DerivedMetrics({}, {}, {})


def derived_metrics(evaluation: Evaluation, cases: dict[str, Case]) -> DerivedMetrics:
    """What `metrics` of *evaluation* asks of the entries that *cases* have."""
    if not evaluation.metrics:
        return NO_METRICS
    found = DerivedMetrics(evaluation.metrics, {}, {})
    wanted = set(found.used())
    every = metrics_of_entries(evaluation.evaluators)
    for case in cases.values():
        if case.document.get("evaluators"):
            names = every | metrics_of_entries(case_entries(case, evaluation, Breaches()))
            found.own[case.id] = {name: metric for name, metric in names.items() if metric in wanted}
    found.names.update({name: metric for name, metric in every.items() if metric in wanted})
    return found


# --- What was measured -----------------------------------------------------------------


@lru_cache(maxsize=10_000)
def score_fraction(score: float) -> "Fraction":
    """*score* as the fraction that its decimal writes; scores repeat, and making one takes a while."""
    return exact_fraction(score)


class Figures(NamedTuple):
    """A derived metric: its entry in comparison.json, and its exact values by role and, of two stages, as `delta`."""

    document: JsonObject
    values: "dict[str, Fraction | None]"


class MetricValues(NamedTuple):
    """The values of one metric in one stage by case, `shares` of passes and mean `scores`, and the answers it rests on.

    `cases` have an entry of it, in `spared` of them it never applied; of the answers `due`, where it applies, so many are `measured`.
    """

    shares: "dict[str, Fraction]"
    scores: "dict[str, Fraction]"
    cases: int
    spared: int
    due: int
    measured: int

    def of_function(self, function: str) -> "dict[str, Fraction]":
        """The values by case that *function* is about."""
        return self.shares if function in ("rate", "count") else self.scores


def metric_values(derived: DerivedMetrics, metric: str, case_ids: list[str], stage: StageTally) -> MetricValues:
    """The values of *metric* over *case_ids* in *stage*."""
    from fractions import Fraction

    shares, scores = {}, {}
    cases = spared = due = measured = 0
    for case_id in case_ids:
        entries = list(derived.names_of(case_id).values()).count(metric)
        if not entries:
            continue
        answers = stage.tally(case_id).answers.get(metric) or AnswerTally()
        planned = max(entries * stage.repetitions, answers.total()) - answers.not_applicable
        cases, due, measured = cases + 1, due + planned, measured + answers.measured()
        spared += planned == 0
        if answers.measured():
            shares[case_id] = Fraction(answers.passed, answers.measured())
        if answers.scores:
            scores[case_id] = sum(map(score_fraction, answers.scores), Fraction(0)) / len(answers.scores)
    return MetricValues(shares, scores, cases, spared, due, measured)


def function_value(function: str, values: "dict[str, Fraction]") -> "tuple[Fraction | None, str]":
    """(what *function* makes of *values* by case, '') or (None, reason code) where there is none."""
    from fractions import Fraction

    if function == "count":
        return Fraction(len(values)), ""
    if not values:
        return None, "no_values"
    if function in ("min", "max"):
        return (min if function == "min" else max)(values.values()), ""
    by_denominator: dict[int, int] = {}
    for value in values.values():
        by_denominator[value.denominator] = by_denominator.get(value.denominator, 0) + value.numerator
    return sum((Fraction(top, bottom) for bottom, top in by_denominator.items()), Fraction(0)) / len(values), ""


def derived_value(
    expression: Expression, known: dict[str, MetricValues], others: dict[str, MetricValues] | None = None
) -> "tuple[Fraction | None, str]":
    """(value, '') of *expression* or (None, reason code); with *others* over the cases that both stages have measured."""

    def lookup(function: str, metric: str) -> "tuple[Fraction | None, str]":
        values = known[metric].of_function(function)
        if others is not None:
            beside = others[metric].of_function(function)
            values = {case_id: value for case_id, value in values.items() if case_id in beside}
        return function_value(function, values)

    value, reason = expression_value(expression, lookup)
    if value is not None and abs(value) > LARGEST:
        return None, "number_too_large"
    return value, reason


# --- Documents -------------------------------------------------------------------------


def exact_document(value: "Fraction | None") -> JsonObject:
    """{"value", "exact"}: a float and, where it is short, the fraction; both None for None."""
    if value is None:
        return {"value": None, "exact": None}
    is_short = max(value.numerator.bit_length(), value.denominator.bit_length()) <= LONGEST_EXACT
    return {"value": float(value), "exact": str(value) if is_short else None}


def derived_figures(derived: DerivedMetrics, case_ids: list[str], stages: dict[str, StageTally]) -> list[Figures]:
    """Each derived metric in each of *stages* by role, and its change where there are two: over the cases that both sides measured."""
    known = {role: {metric: metric_values(derived, metric, case_ids, stage) for metric in derived.used()} for role, stage in stages.items()}
    found: list[Figures] = []
    for name, expression in derived.expressions.items():
        figures = Figures({"name": name, "expression": expression.text}, {})
        asked = list(dict.fromkeys(use.metric for use in expression.uses()))
        for role in stages:
            value, reason = derived_value(expression, known[role])
            figures.values[role] = value
            bases = [basis_document(metric, known[role][metric]) for metric in asked]
            figures.document[role] = {**exact_document(value), "reason": reason or None, "rests_on": bases}
        if len(stages) > 1:
            after, lost = derived_value(expression, known["candidate"], known["baseline"])
            before, missing = derived_value(expression, known["baseline"], known["candidate"])
            change = None if after is None or before is None else after - before
            reason = (lost or missing).replace("no_values", "no_common_cases")
            figures.values["delta"] = change
            figures.document["delta"] = {**exact_document(change), "reason": reason or None}
        found.append(figures)
    return found


def basis_document(metric: str, values: MetricValues) -> JsonObject:
    """What a value rests on for one metric: cases with an entry of it, cases measured, answers due and measured."""
    counts = {"cases": values.cases, "cases_not_applicable": values.spared, "n": len(values.shares)}
    return {"metric": metric, **counts, "answers": values.measured, "due": values.due}


# --- Bounds ----------------------------------------------------------------------------


def missed_metrics(bounds: JsonObject, figures: list[Figures]) -> list[Missed | Unmeasured]:
    """What `acceptance.metrics` says of the candidate; [] when every bound is met.

    A bound on what is not measured, or on what lacks more than 5 % of the answers due, cannot be looked at.
    """
    known = {document["name"] for document, _ in figures}
    found: list[Missed | Unmeasured] = [
        Unmeasured("unmeasured_metric", f"{quoted(name, 60)} is bounded and was not worked out") for name in bounds if name not in known
    ]
    for document, values in figures:
        name = quoted(document["name"], 60)
        for key, limit in (bounds.get(document["name"]) or {}).items():
            if limit is None:
                continue
            is_change, is_ceiling, sign, words = METRIC_BOUNDS[key]
            value = values["delta" if is_change else "candidate"]
            lack = lacking(document, is_change)
            if lack or value is None:
                found.append(Unmeasured("unmeasured_metric", f"{name} is bounded ({words} {limit}), but {lack}"))
                continue
            bound, size = exact_fraction(limit), value * sign
            if size > bound if is_ceiling else size < bound:
                shown = number_text(size, bound)
                code = f"{'above' if is_ceiling else 'below'}_metric_{key}"
                verb = ("rose by" if sign > 0 else "fell by") if is_change else "is"
                found.append(Missed(code, f"{name} {verb} {shown[0]} ({words} {shown[1]})", False))
    return found


def lacking(document: JsonObject, is_change: bool) -> str:
    """What keeps a bound from being looked at, in words; '' when nothing does."""
    for role in ("baseline", "candidate") if is_change else ("candidate",):
        side = document[role]
        if side["value"] is None:
            return f"in the {role} there is no value: {DERIVED_REASONS[side['reason']]}"
        for basis in side["rests_on"]:
            missing = basis["due"] - basis["answers"]
            if missing * MOST_MISSING[1] > basis["due"] * MOST_MISSING[0]:
                what = f"{missing:,} of {counted(basis['due'], 'answer')} of {quoted(basis['metric'], 60)}"
                return f"in the {role} {what} are missing (at most 5 %)"
    return DERIVED_REASONS[document["delta"]["reason"]] if is_change and document["delta"]["value"] is None else ""


# --- Words -----------------------------------------------------------------------------


def derived_number(value: float) -> str:
    """*value* at six digits; more where it would look like a whole number that it is not.

    >>> derived_number(0.35), derived_number(0.99999999), derived_number(2.0)
    ('0.35', '0.99999999', '2')
    """
    shown = f"{value:.6g}"
    return repr(value) if float(shown).is_integer() and float(shown) != value else shown


def derived_text(side: JsonObject) -> str:
    """'0.02', or 'not measured' and why."""
    return f"not measured ({DERIVED_REASONS[side['reason']]})" if side["value"] is None else derived_number(side["value"])


def basis_text_of(side: JsonObject) -> str:
    """'n = 18 of 20 cases, 2 not applicable, 3 of 60 answers missing', for each metric where several differ."""
    found: dict[str, list[str]] = {}
    for basis in side["rests_on"]:
        text = f"n = {basis['n']:,} of {counted(basis['cases'], 'case')}"
        text += f", {basis['cases_not_applicable']:,} not applicable" if basis["cases_not_applicable"] else ""
        missing = basis["due"] - basis["answers"]
        text += f", {missing:,} of {counted(basis['due'], 'answer')} missing" if missing else ""
        found.setdefault(text, []).append(visible(basis["metric"], 40))
    return "; ".join(f"{listed(names)}: {text}" if len(found) > 1 else text for text, names in found.items())


def derived_delta_text(document: JsonObject) -> str:
    """'+0.01', '0', or 'not measured' and why."""
    delta = document["delta"]
    if delta["value"] is None:
        return derived_text(delta)
    return ("+" if delta["value"] > 0 else "") + derived_number(delta["value"])


def derived_lines(documents: list[JsonObject], roles: dict[str, str]) -> list[str]:
    """A line for each derived metric, of the stages *roles* (names by role)."""
    lines = []
    for document in documents:
        change = f"; change {derived_delta_text(document)}" if "delta" in document else ""
        sides = [f"{visible(stage)} {derived_text(document[role])} ({basis_text_of(document[role])})" for role, stage in roles.items()]
        lines.append(f"{visible(document['name'], 60)}: {', '.join(sides)}{change}")
    return lines

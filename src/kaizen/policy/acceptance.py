"""The thresholds of `acceptance`, compared on exact fractions.

Each threshold is three-valued: met, missed, or unknown while evidence is missing. A
threshold that even the most favourable outcome of the missing trials could not meet is
missed, whatever is missing.
"""

from typing import TYPE_CHECKING, NamedTuple

from kaizen.cases.evaluation_file import exact_fraction
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted
from kaizen.policy.comparison import StageTally
from kaizen.stats.aggregates import case_weighted_rate, pass_hat_k

if TYPE_CHECKING:
    from fractions import Fraction


class Missed(NamedTuple):
    """A threshold that is not met: reason code, sentence, and whether no missing evidence could change that."""

    code: str
    text: str
    is_certain: bool


class Unmeasured(NamedTuple):
    """A threshold that cannot be looked at: reason code and sentence."""

    code: str
    text: str


def exact_percent(value: "Fraction", limit: "Fraction") -> tuple[str, str]:
    """Both as percentages with as many digits as it takes to tell them apart (2 to 12)."""
    for digits in range(2, 13):
        shown = decimal_text(value * 100, digits), decimal_text(limit * 100, digits)
        if shown[0] != shown[1] or value == limit:
            break
    return f"{shown[0]} %", f"{shown[1]} %"


def decimal_text(value: "Fraction", digits: int) -> str:
    """*value* rounded half up to *digits* decimals, without trailing zeros: '99.95', '0.8', '-3'."""
    scale = 10**digits
    scaled = (abs(value) * scale * 2 + 1) // 2
    whole, part = divmod(int(scaled), scale)
    text = f"{whole}.{part:0{digits}d}".rstrip("0").rstrip(".")
    return f"-{text}" if value < 0 and scaled else text


def number_text(value: "Fraction", limit: "Fraction") -> tuple[str, str]:
    """Both as decimals with as many digits as it takes to tell them apart (2 to 12)."""
    for digits in range(2, 13):
        shown = decimal_text(value, digits), decimal_text(limit, digits)
        if shown[0] != shown[1] or value == limit:
            break
    return shown


class CaseBounds(NamedTuple):
    """What the share of one case can be once its missing trials have come out: least and most passed of *planned*, on both sides."""

    baseline_least: "Fraction"
    baseline_most: "Fraction"
    candidate_least: "Fraction"
    candidate_most: "Fraction"

    def can_improve(self) -> bool:
        """True when some outcome of the missing trials makes the case `improved`."""
        return self.baseline_least * 2 <= 1 < self.candidate_most * 2

    def must_weaken(self) -> bool:
        """True when every outcome of the missing trials makes the case `weakened`, none `regressed`."""
        return self.candidate_most < self.baseline_least and not (self.baseline_most == 1 and self.candidate_least == 0)


def case_bounds(case_ids: list[str], baseline: StageTally, candidate: StageTally) -> list[CaseBounds]:
    """The bounds of each case, in the order of *case_ids*."""
    from fractions import Fraction

    found = []
    for case_id in case_ids:
        limits = []
        for stage in (baseline, candidate):
            tally = stage.tally(case_id)
            planned = max(stage.repetitions, tally.valid())
            limits += [Fraction(tally.passed, planned), Fraction(planned - tally.failed, planned)]
        found.append(CaseBounds(*limits))
    return found


def missed_thresholds(
    acceptance: JsonObject, counts: dict[str, int], delta: "Fraction | None", stages: tuple[StageTally, StageTally], case_ids: list[str]
) -> list[Missed]:
    """Thresholds of *acceptance* on counts, rate and delta that are not met by *stages* (before, after), in a fixed order."""
    candidate = stages[1]
    bounds = case_bounds(case_ids, *stages)
    missed = []
    limit = acceptance["maximum_weakened"]
    if limit is not None and counts["weakened"] > limit:
        text = f"{counted(counts['weakened'], 'case')} weakened (at most {limit})"
        missed.append(Missed("above_maximum_weakened", text, sum(case.must_weaken() for case in bounds) > limit))
    minimum = acceptance["minimum_improvements"]
    if minimum is not None and counts["improved"] < minimum:
        text = f"{counted(counts['improved'], 'improvement')} (at least {minimum})"
        missed.append(Missed("below_minimum_improvements", text, sum(case.can_improve() for case in bounds) < minimum))
    limit = acceptance["minimum_pass_rate"]
    tallies = [candidate.tally(case_id) for case_id in case_ids]
    rate = case_weighted_rate([(tally.passed, tally.valid()) for tally in tallies])
    best = sum(case.candidate_most for case in bounds) / len(bounds) if bounds else None
    if limit is not None and rate is not None and rate < exact_fraction(limit):
        shown = exact_percent(rate, exact_fraction(limit))
        text = f"pass rate {shown[0]} (at least {shown[1]})"
        missed.append(Missed("below_minimum_pass_rate", text, best is not None and best < exact_fraction(limit)))
    limit = acceptance["minimum_delta"]
    if limit is not None and delta is not None and delta < exact_fraction(limit):
        shown = exact_percent(delta, exact_fraction(limit))
        best = sum(case.candidate_most - case.baseline_least for case in bounds) / len(bounds)
        text = f"change of the pass rate {shown[0]} (at least {shown[1]})"
        missed.append(Missed("below_minimum_delta", text, best < exact_fraction(limit)))
    return missed


def missed_pass_k(acceptance: JsonObject, candidate: StageTally, case_ids: list[str]) -> Missed | Unmeasured | None:
    """What `minimum_pass_k` says of the candidate; None when it is met or not asked for."""
    wanted = acceptance["minimum_pass_k"]
    if wanted is None:
        return None
    tallies = [candidate.tally(case_id) for case_id in case_ids]
    value, left_out = pass_hat_k([(tally.passed, tally.valid()) for tally in tallies], wanted["k"])
    if value is None or left_out:
        fewer = f"{counted(left_out, 'case')} {'has' if left_out == 1 else 'have'} fewer"
        text = f"pass^{wanted['k']} needs {wanted['k']} valid trials a case; {fewer}"
        return Unmeasured("unmeasured_minimum_pass_k", text)
    limit = exact_fraction(wanted["rate"])
    shown = exact_percent(value, limit)
    if value >= limit:
        return None
    planned = candidate.repetitions
    best, _ = pass_hat_k([(planned - tally.failed, planned) for tally in tallies], wanted["k"])
    return Missed("below_minimum_pass_k", f"pass^{wanted['k']} {shown[0]} (at least {shown[1]})", best is not None and best < limit)


def missed_ratios(acceptance: JsonObject, baseline: StageTally, candidate: StageTally, comparable: list[str]) -> list[Missed | Unmeasured]:
    """What the cost and latency ratios (candidate / baseline over *comparable* cases) say; empty when met or not asked for."""
    found: list[Missed | Unmeasured] = []
    for key, attribute, code, what in (
        ("maximum_cost_ratio", "costs", "unpriced", "cost"),
        ("maximum_latency_ratio", "durations", "unmeasured_latency", "duration"),
    ):
        if acceptance[key] is None:
            continue
        limit = exact_fraction(acceptance[key])
        middles = [ratio_side([stage.tally(case_id) for case_id in comparable], attribute) for stage in (baseline, candidate)]
        if middles[0] is None or middles[1] is None or middles[0] == 0:
            side = "baseline" if not middles[0] else "candidate"
            why = "is 0, so there is no ratio" if middles[0] == 0 else "is not known for every trial"
            found.append(Unmeasured(code, f"a {what} ratio of at most {acceptance[key]} is asked for, but the {what} of the {side} {why}"))
        elif middles[1] / middles[0] > limit:
            shown = number_text(middles[1] / middles[0], limit)
            found.append(Missed(f"above_{key}", f"{what} ratio {shown[0]} (at most {shown[1]})", False))
    return found


def ratio_side(tallies: list[object], attribute: str) -> "Fraction | None":
    """Mean cost or median duration of one side, exact; None when a valid trial has none."""
    from fractions import Fraction

    values: list[float] = []
    for tally in tallies:
        known = getattr(tally, attribute)
        if len(known) < tally.valid():  # type: ignore[attr-defined]
            return None
        values += known
    if not values:
        return None
    exact = sorted(exact_fraction(value) for value in values)
    if attribute == "costs":
        return sum(exact, Fraction(0)) / len(exact)
    middle = len(exact) // 2
    return exact[middle] if len(exact) % 2 else (exact[middle - 1] + exact[middle]) / 2

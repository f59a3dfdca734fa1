"""How sure the change is: intervals, tests, noise, and what it would take to be surer.

One entry compares a candidate with the baseline; candidates of one call form a family and
share their level by Holm's method. The case is the unit, or the cluster where cases name
one. Statistics may lower a recommendation, they never lift one. Nothing here names a case of
the holdout.
"""

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from kaizen.cases.case import Case
from kaizen.cases.evaluation_file import RELIABILITY, exact_fraction
from kaizen.foundation.jsonio import JsonObject
from kaizen.policy.comparison import StageTally, fraction_document, missingness_decides
from kaizen.stats.aggregates import case_weighted_rate, mean, pass_at_k, pass_hat_k, pass_rate, percentile, quantile_ranks, stability
from kaizen.stats.exact_tests import mcnemar, sign_flip, suite_permutation
from kaizen.stats.intervals import Interval, effective_size, wilson_interval
from kaizen.stats.lattice import Counts, PairedMean, ResampledMean, expanded_tail, mean_interval, paired_mean
from kaizen.stats.multiple import holm, informative_cases_needed
from kaizen.stats.planning import POWER, measured_spread, quantiles_sum, smoothed_variance

if TYPE_CHECKING:
    from fractions import Fraction

ROLES_COMPARED = ("baseline", "candidate")
BETTER, WORSE, UNDECIDED = "better", "worse", "insufficient_evidence"
SHOWN_GROUPS = 50  # the largest of each kind; the rest is counted
SUITE_ONLY_CASES = 50  # up to which the permutation test of the suite alone is worth a line
LARGEST_K = 10
EXACT_TEST_ALLOWANCE = 1.1  # the sign-flip test needs a tenth more than the normal formula says

Quad = tuple[int, int, int, int]  # baseline passed, valid, candidate passed, valid


class Compared(NamedTuple):
    """What an entry rests on: rows of comparison.json, cases by id, cluster by case id, ids not to be named, tallies by role."""

    rows: list[JsonObject]
    cases: dict[str, Case]
    clusters: dict[str, str]
    holdout: frozenset[str]
    stages: dict[str, StageTally]


def default_reliability() -> JsonObject:
    """The settings that hold where evaluation.json has no `reliability` block."""
    return {key: default for key, (_, default) in RELIABILITY.items()}


def clusters_of(cases: dict[str, Case]) -> dict[str, str]:
    """Cluster by case id, for the cases that name one."""
    return {case_id: case.document["cluster"] for case_id, case in cases.items() if case.document.get("cluster")}


def share_quad(row: JsonObject) -> Quad:
    """(baseline passed, valid, candidate passed, valid) of *row*."""
    before, after = row["baseline"], row["candidate"]
    return before["pass"], before["pass"] + before["fail"], after["pass"], after["pass"] + after["fail"]


def comparable_rows(rows: list[JsonObject]) -> list[JsonObject]:
    """The rows that can be compared."""
    return [row for row in rows if row["change"] != "not_comparable"]


def difference_counts(rows: list[JsonObject], clusters: dict[str, str]) -> Counts:
    """{candidate minus baseline: how many units} over comparable *rows*; the mean of its cases is the value of a cluster."""
    from fractions import Fraction

    quads: dict[tuple[str | None, Quad], int] = {}
    for row in rows:
        key = (clusters.get(row["id"]) if clusters else None, share_quad(row))
        quads[key] = quads.get(key, 0) + 1
    counts: Counts = {}
    grouped: dict[str, list[Fraction]] = {}
    for (cluster, (before, valid_before, after, valid_after)), times in quads.items():
        value = Fraction(after, valid_after) - Fraction(before, valid_before)
        if cluster is None:
            counts[value] = counts.get(value, 0) + times
        else:
            grouped.setdefault(cluster, []).extend([value] * times)
    for values in grouped.values():
        value = sum(values, Fraction(0)) / len(values)
        counts[value] = counts.get(value, 0) + 1
    return counts


# --- One candidate ---------------------------------------------------------------------


def reliability_entry(compared: Compared, settings: JsonObject) -> JsonObject:
    """What the verdict on one candidate rests on; `judge_family` adds the verdict, which hangs on its family."""
    rows, confidence = compared.rows, float(settings["confidence"])
    able = comparable_rows(rows)
    counts = difference_counts(able, compared.clusters)
    found, test = paired_mean(counts, confidence), sign_flip(counts)
    case_delta = paired_mean(difference_counts(able, {}), confidence).delta if compared.clusters else found.delta
    return {
        "stage": compared.stages["candidate"].stage,
        "unit": "cluster" if compared.clusters else "case",
        "n": found.n,
        "cases_compared": len(able),
        "cases": len(rows),
        "repetitions": {role: compared.stages[role].repetitions for role in ROLES_COMPARED},
        "rates": {role: side_document(compared, role, confidence) for role in ROLES_COMPARED},
        "delta": fraction_document(found.delta),
        "case_weighted_delta": fraction_document(case_delta),
        **interval_document(found, confidence),
        "probability": {"better": found.p_gt, "equal": found.p_eq, "worse": found.p_lt},
        "sign_flip": {
            **dict(zip(("better", "worse", "two_sided"), test[:3] if able else (None, None, None), strict=True)),
            "reason": test.reason if able else "no_comparable_cases",
        },
        "informative": found.informative,
        "missingness_decides": missingness_decides(rows),
        "strip": [[float(value), times] for value, times in sorted(counts.items())],
        **planning_document(found, [share_quad(row) for row in able], compared, confidence),
    }


def detailed_entry(compared: Compared, settings: JsonObject) -> JsonObject:
    """`reliability_entry` with what is shown beside it: flaky cases, repetition metrics, durations, other tests, groups."""
    rows, confidence = compared.rows, float(settings["confidence"])
    quads = [share_quad(row) for row in comparable_rows(rows)]
    moved = [after * valid_before - before * valid_after for before, valid_before, after, valid_after in quads]
    ups, downs = sum(move > 0 for move in moved), sum(move < 0 for move in moved)
    is_single = bool(quads) and all(quad[1] == quad[3] == 1 for quad in quads)
    return {
        **reliability_entry(compared, settings),
        "moved": {"up": ups, "down": downs, "equal": moved.count(0)},
        "mcnemar": mcnemar(downs, ups)._asdict() if is_single else None,
        "suite_only": dict(zip((BETTER, WORSE), suite_permutation(quads), strict=True)) if 0 < len(quads) <= SUITE_ONLY_CASES else None,
        "flaky": {role: flaky_document(compared, role) for role in ROLES_COMPARED},
        "newly_flaky": shown_ids([row["id"] for row in rows if row["newly_flaky"]], compared.holdout),
        "pass_k": {role: pass_k_documents(compared, role, confidence) for role in ROLES_COMPARED},
        "durations": {role: duration_document(compared.stages[role], confidence) for role in ROLES_COMPARED},
        "groups": group_documents(compared, confidence),
    }


def interval_document(found: PairedMean, confidence: float) -> JsonObject:
    """The interval of the change to report, and beside it the ones that it is not."""
    beside = {name: limits_document(getattr(found, name)) for name in ("expanded", "plus_two", "percentile", "student")}
    return {
        "interval": limits_document(found.interval),
        "confidence": confidence,
        "method": found.method,
        "is_exact": found.is_exact,
        "small_sample": 0 < found.n < 30,
        "reason": found.reason,
        "se": found.se,
        "other_intervals": beside,
    }


def limits_document(interval: Interval | None) -> list[float] | None:
    """An interval as [low, high]; None stays None."""
    return None if interval is None else [interval.low, interval.high]


def side_document(compared: Compared, role: str, confidence: float) -> JsonObject:
    """The rate of one side with its interval, the trials it rests on, and the bounds for those that gave no verdict.

    With clusters the mean over clusters, on as many units; the bounds are over cases.
    """
    sides = [(row["id"], row[role]["pass"], row[role]["pass"] + row[role]["fail"], row[role]["planned"]) for row in compared.rows]
    found = pass_rate([(passed, valid, max(planned, valid)) for _, passed, valid, planned in sides], confidence)
    rate, n_eff, interval, n = found.rate, found.n_eff, found.interval, found.cases
    if compared.clusters and rate is not None:
        values = cluster_values([(compared.clusters.get(name), passed, valid) for name, passed, valid, _ in sides if valid])
        rate, n = sum(values) / len(values), len(values)  # type: ignore[assignment]
        n_eff = effective_size([float(value) for value in values], found.trials)
        interval = wilson_interval(float(rate) * n_eff, n_eff, confidence)
    return {
        "rate": fraction_document(rate),
        "interval": limits_document(interval),
        "pooled": fraction_document(found.pooled),
        "n": n,
        "n_eff": n_eff,
        "passed": sum(passed for _, passed, _, _ in sides),
        "valid": found.trials,
        "planned": sum(planned for *_, planned in sides),
        "errors": sum(row[role]["error"] for row in compared.rows),
        "excluded": found.excluded,
        "cases_without_verdict": found.cases_without_valid,
        "bound_if_excluded_fail": fraction_document(found.bound_if_excluded_fail),
        "bound_if_excluded_pass": fraction_document(found.bound_if_excluded_pass),
        "trial_noise_se": found.trial_noise_se,
        "reason": found.reason,
    }


def cluster_values(sides: list[tuple[str | None, int, int]]) -> "list[Fraction]":
    """The mean share of each cluster of *sides* [(cluster, passed, valid)]; a case without a cluster is one of its own."""
    from fractions import Fraction

    values, grouped = [], {}  # type: ignore[var-annotated]
    for cluster, passed, valid in sides:
        (values if cluster is None else grouped.setdefault(cluster, [])).append(Fraction(passed, valid))
    return values + [sum(members, Fraction(0)) / len(members) for members in grouped.values()]


def flaky_document(compared: Compared, role: str) -> JsonObject:
    """How many cases are flaky, stable, unknown on one side, and which are flaky."""
    kinds = [(row["id"], stability(row[role]["pass"], row[role]["pass"] + row[role]["fail"])) for row in compared.rows]
    counts = Counter(kind for _, kind in kinds)
    names = ("flaky", "stable_pass", "stable_fail", "unknown")
    ids = [case_id for case_id, kind in kinds if kind == "flaky"]
    return {**{name: counts[name] for name in names}, **shown_ids(ids, compared.holdout)}


def shown_ids(ids: list[str], holdout: frozenset[str]) -> JsonObject:
    """{"count", "cases", "holdout_cases"}: ids that may be named, and how many may not."""
    shown = [case_id for case_id in ids if case_id not in holdout]
    return {"count": len(ids), "cases": shown, "holdout_cases": len(ids) - len(shown)}


def pass_k_documents(compared: Compared, role: str, confidence: float) -> list[JsonObject]:
    """pass@k and pass^k with the interval of pass^k, for k from 2 to the repetitions (at most 10)."""
    values = [(row[role]["pass"], row[role]["pass"] + row[role]["fail"]) for row in compared.rows]
    found: list[JsonObject] = []
    for k in range(2, min(compared.stages[role].repetitions, LARGEST_K) + 1):
        at, left_out = pass_at_k(values, k)
        hat = pass_hat_k(values, k)[0]
        entry: JsonObject = {"k": k, "pass_at_k": fraction_document(at), "pass_hat_k": fraction_document(hat)}
        interval = pass_hat_interval(values, k, confidence)
        entry |= {"interval": limits_document(interval), "cases": len(values) - left_out, "cases_left_out": left_out}
        found.append({**entry, "reason": None if hat is not None else "fewer_trials_than_k"})
    return found


def pass_hat_interval(values: list[tuple[int, int]], k: int, confidence: float) -> Interval | None:
    """Expanded percentile limits of pass^k over the cases with at least *k* valid trials; None below two such cases."""
    from fractions import Fraction

    counts: Counts = {}
    for (passed, valid), times in Counter(values).items():
        if valid >= k:
            value = Fraction(math.comb(passed, k), math.comb(valid, k))
            counts[value] = counts.get(value, 0) + times
    n = sum(counts.values())
    return ResampledMean(counts).limits(expanded_tail(n, confidence)) if n > 1 else None


def duration_document(stage: StageTally, confidence: float) -> JsonObject:
    """Median and 95th percentile of the measured durations, with limits that hold whatever their distribution."""
    values = sorted(duration for tally in stage.cases.values() for duration in tally.durations)
    found: JsonObject = {"n": len(values), "rule": "linear"}
    for name, percent in (("p50", 50), ("p95", 95)):
        low, high = quantile_ranks(len(values), percent / 100, confidence)
        limits = [None if rank is None else values[rank] for rank in (low, high)]
        reason = "no_values" if not values else "no_upper_bound" if high is None else None
        found[name] = {"value_ms": percentile(values, percent).value, "low_ms": limits[0], "high_ms": limits[1], "reason": reason}
    return found


def cost_document(stage: StageTally, confidence: float) -> JsonObject:
    """The mean cost of a trial in US dollars over cases, each with the mean of its priced trials, and its interval."""
    values = [mean(tally.costs) or 0.0 for _, tally in sorted(stage.cases.items()) if tally.costs]
    interval = mean_interval(values, confidence)
    return {"n": len(values), "mean_usd": mean(values), "interval": limits_document(interval), "small_sample": 0 < len(values) < 30}


# --- What it would take ----------------------------------------------------------------


def planning_document(found: PairedMean, quads: list[Quad], compared: Compared, confidence: float) -> JsonObject:
    """Trial noise, the smallest effect that this suite shows, and the cases or trials that would settle the change.

    All None below two comparable cases. Where few units differ their variance is smoothed (`smoothed_variance`).
    """
    spread = measured_spread(quads)
    if spread is None or found.delta is None or found.se is None:
        return {"noise": None, "smallest_effect": None, "settle": None}
    n, alpha = found.n, 1 - confidence
    variance = smoothed_variance(found.se**2 * n, n, float(found.delta) * n, found.informative)
    trials = [mean([1 / quad[side] for quad in quads]) or 1.0 for side in (1, 3)]
    within = spread.sigma2_a * trials[0] + spread.sigma2_b * trials[1]
    share = min(1.0, within / variance) if spread.is_split and not compared.clusters else None
    smallest = quantiles_sum(alpha, POWER) * math.sqrt(variance / n)
    fixed = max(0.0, variance - within) if share is not None else None
    return {
        "noise": {"baseline": spread.sigma2_a, "candidate": spread.sigma2_b, "share_of_variance": share} if spread.is_split else None,
        "smallest_effect": {"value": smallest, "power": POWER, "alpha": alpha, "n": n},
        "settle": settle_document(n, variance, fixed, spread.sigma2_a + spread.sigma2_b, abs(float(found.delta)) or smallest / 2, alpha),
    }


def settle_document(n: int, variance: float, fixed: float | None, noise: float, effect: float, alpha: float) -> JsonObject:
    """Units at these trials, and trials on these *n* units, that would show *effect*.

    *variance* is that of a unit's difference, of which *fixed* stays whatever the trials (None: not known) and *noise*
    is what one trial on each side adds. `trials` is None where no number of them would do, or none is known to.
    """
    whole = EXACT_TEST_ALLOWANCE * quantiles_sum(alpha, POWER) ** 2 / (effect * effect)
    room = n / whole - (variance if fixed is None else fixed)
    trials = math.ceil(noise / room - 1e-9) if fixed is not None and room > 0 and noise > 0 else None
    return {"effect": effect, "units": math.ceil(whole * variance - 1e-9), "trials": trials, "is_split": fixed is not None}


# --- Parts of the suite ----------------------------------------------------------------


def group_documents(compared: Compared, confidence: float) -> JsonObject:
    """Change by split and by tag, exploratory: p-values are Holm-adjusted over all groups. Tags do not count holdout cases."""
    groups: dict[tuple[str, str], list[JsonObject]] = {}
    for row in compared.rows:
        document = compared.cases[row["id"]].document
        if document.get("split"):
            groups.setdefault(("split", document["split"]), []).append(row)
        for tag in dict.fromkeys(document.get("tags") or [] if row["id"] not in compared.holdout else []):
            groups.setdefault(("tag", tag), []).append(row)
    found: list[JsonObject] = []
    left_out = 0
    for kind in ("split", "tag"):
        # A group that holds every case would repeat the table above it.
        named = [key for key in groups if key[0] == kind and len(groups[key]) < len(compared.rows)]
        named.sort(key=lambda key: (-len(groups[key]), key))
        left_out += max(0, len(named) - SHOWN_GROUPS)
        found += [group_document(key, groups[key], compared.clusters, confidence) for key in named[:SHOWN_GROUPS]]
    for entry, p in zip(found, holm([entry["p"] for entry in found]), strict=True):
        entry["p_adjusted"] = p
    return {"exploratory": True, "family": sum(entry["p"] is not None for entry in found), "left_out": left_out, "groups": found}


def group_document(key: tuple[str, str], rows: list[JsonObject], clusters: dict[str, str], confidence: float) -> JsonObject:
    """Rates, change with interval, and two-sided sign-flip p-value of one group; None where nothing can be compared."""
    able = comparable_rows(rows)
    counts = difference_counts(able, clusters)
    found, test = paired_mean(counts, confidence), sign_flip(counts)
    rates = {}
    for role in ROLES_COMPARED:
        rates[role] = fraction_document(case_weighted_rate([(row[role]["pass"], row[role]["pass"] + row[role]["fail"]) for row in rows]))
    return {
        "kind": key[0],
        "name": key[1],
        "cases": len(rows),
        "n": found.n,
        "rates": rates,
        "delta": fraction_document(found.delta),
        "interval": limits_document(found.interval),
        "reason": found.reason,
        "p": test.two_sided if able else None,
    }


# --- The verdict -----------------------------------------------------------------------


def judge_family(entries: list[JsonObject], settings: JsonObject) -> None:
    """Adds to each of *entries* its Holm-adjusted p-values and its verdict: better, worse, or insufficient_evidence with reasons."""
    alpha = float(1 - exact_fraction(settings["minimum_probability"]))
    adjusted = {side: holm([entry["sign_flip"][side] if entry["n"] else None for entry in entries]) for side in (BETTER, WORSE)}
    for number, entry in enumerate(entries):
        entry["sign_flip"]["adjusted"] = {side: adjusted[side][number] for side in (BETTER, WORSE)}
        entry["informative_needed"] = informative_cases_needed(alpha, len(entries))
        entry["verdict"], entry["reasons"] = verdict_of(entry, settings, alpha)


def verdict_of(entry: JsonObject, settings: JsonObject, alpha: float) -> tuple[str, list[str]]:
    """(verdict, codes of what stands in its way) of a measured entry."""
    if not entry["n"]:
        return UNDECIDED, ["no_comparable_cases"]
    reasons = [
        code
        for code, stands in (
            ("too_few_cases", entry["n"] < settings["minimum_cases"]),
            ("missingness_decides", entry["missingness_decides"]),
            ("too_few_informative_cases", entry["informative"] < entry["informative_needed"]),
        )
        if stands
    ]
    for side in (BETTER, WORSE):
        p = entry["sign_flip"]["adjusted"][side]
        if entry["probability"][side] >= settings["minimum_probability"] and p is not None and p <= alpha:
            return (side if not reasons else UNDECIDED), reasons
    return UNDECIDED, [*reasons, *([] if "too_few_informative_cases" in reasons else ["not_separated"])]


def gate_codes(entry: JsonObject, settings: JsonObject) -> list[str]:
    """What the `reliability` block says of a judged entry: [] when it is met, ['worse'], or the codes of what is missing."""
    if entry["verdict"] == WORSE:
        return [WORSE]
    few = min(entry["repetitions"].values()) < settings["minimum_trials"]
    return [*entry["reasons"], *(["too_few_trials"] if few else [])]

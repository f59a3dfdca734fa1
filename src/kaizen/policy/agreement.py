"""Does the judge decide like the experts: the document of agreement.json, without words.

A judge's mean kappa with each expert is compared with the mean kappa of expert pairs, on the same
cases (statistics.md 8.4). Agreement with the consensus is shown and never compared with that: a
consensus is cleaner than one expert.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from kaizen.cases.labels import Given
from kaizen.evaluators.standing import AT_HUMAN_LEVEL, BELOW_HUMAN_LEVEL, LEVEL_UNDECIDED, UNLABELLED
from kaizen.foundation.jsonio import JsonObject
from kaizen.stats.aggregates import case_weighted_rate
from kaizen.stats.agreement import (
    Kappa,
    Label,
    cohen_kappa,
    consensus,
    human_band,
    kappa_interval,
    krippendorff_alpha,
    label_table,
    level_difference,
    rogan_gladen,
)
from kaizen.stats.intervals import Interval, effective_sample_size, wilson_interval
from kaizen.stats.sampler import RESAMPLES, sub_seed

MARGIN, LEVEL_CONFIDENCE = 0.05, 0.95
LEAST_RESAMPLES = 1_000
RESAMPLED_PAIRS, RESAMPLED_CASES = 40, 5_000  # with more pairs of raters, or so many more cases, there are fewer resamples for each
ALPHA_LEVELS = {"nominal": "nominal", "linear": "ordinal", "quadratic": "interval"}


class LabelledCase(NamedTuple):
    """A labelled case: what the judge said (None: nothing, and why), and what experts said, by rater."""

    case_id: str
    judge: Label
    reason: str
    given: dict[str, Given]


class Settings(NamedTuple):
    """Labels from the best to the worst, weights of kappa, the seed of the evaluation."""

    labels: list[str]
    weights: str
    seed: int


def agreement_numbers(cases: list[LabelledCase], experts: list[str], settings: Settings) -> JsonObject:
    """All numbers about *cases* and *experts* (names in order); every list that names cases has all of them."""
    rows: list[tuple[Label, list[Label]]] = [
        (case.judge, [case.given[name].label if name in case.given else None for name in experts]) for case in cases
    ]
    work = len(experts) * (len(experts) + 1) // 2 * (1 + len(cases) // RESAMPLED_CASES)
    draws = max(LEAST_RESAMPLES, RESAMPLES * RESAMPLED_PAIRS // max(RESAMPLED_PAIRS, work))
    band = human_band(rows, experts, settings.labels, settings.weights)
    agreed = [(judge, consensus(labels)[0]) for judge, labels in rows]

    def measured(pairs: Iterable[tuple[Label, Label]], name: str) -> JsonObject:
        return kappa_document(list(pairs), settings, settings.weights, name, draws)

    against = [{"expert": name, **measured(((judge, labels[j]) for judge, labels in rows), name)} for j, name in enumerate(experts)]
    pairs = [
        {"a": experts[a], "b": experts[b], **measured(((labels[a], labels[b]) for _, labels in rows), f"{experts[a]}\n{experts[b]}")}
        for a, b in combinations(range(len(experts)), 2)
    ]
    others = [name for name in ("nominal", "linear", "quadratic") if name != settings.weights] if len(settings.labels) > 2 else []
    table = label_table(agreed, settings.labels)[1]
    level = level_document(rows, pairs, settings, draws)
    return {
        **level,
        "coverage": coverage_document(cases, band.counts, rows),
        "judge_vs_consensus": {
            **measured(agreed, "consensus"),
            "other_weights": {name: kappa_document(agreed, settings, name, f"consensus {name}", draws) for name in others},
        },
        "judge_vs_experts": against,
        "expert_pairs": pairs,
        "leave_one_out": [
            {"expert": name, "judge": kappa_fields(judge), "human": kappa_fields(human)} for name, judge, human in band.leave_one_out
        ],
        "krippendorff": alpha_document(rows, settings),
        "table": {"labels": settings.labels, "judge_by_consensus": table},
        "per_label": [agreed_label(table, place, name) for place, name in enumerate(settings.labels)],
        "error": judge_error(table),
        "contested": [
            {"case_id": case.case_id, "labels": {name: given.label for name, given in sorted(case.given.items())}}
            for case, (_, labels) in zip(cases, rows, strict=True)
            if consensus(labels)[1] == "contested"
        ],
        "abstained": abstentions(cases),
    }


def kappa_fields(found: Kappa) -> JsonObject:
    """Kappa without an interval, as a document."""
    return {"kappa": found.kappa, "reason": found.reason, "agreement": found.agreement, "n": int(found.n)}


def kappa_document(pairs: list[tuple[Label, Label]], settings: Settings, weights: str, name: str, draws: int) -> JsonObject:
    """Kappa of *pairs* with its interval; *name* gives it draws of its own."""
    table = label_table(pairs, settings.labels)[1]
    interval, reason = kappa_interval(table, sub_seed(settings.seed, f"agreement {name}"), weights, LEVEL_CONFIDENCE, draws)
    fields = kappa_fields(cohen_kappa(table, weights))
    return {**fields, "interval": limits_list(interval), "interval_reason": reason}


def limits_list(interval: Interval | None) -> list[float] | None:
    """[low, high], or None."""
    return None if interval is None else [interval.low, interval.high]


def level_document(rows: list[tuple[Label, list[Label]]], pairs: list[JsonObject], settings: Settings, draws: int) -> JsonObject:
    """{"standing", "standing_reason", "band"}: the judge among the experts, on cases that it and two experts judged."""
    usable = [(judge, labels) for judge, labels in rows if judge is not None and sum(label is not None for label in labels) > 1]
    found = level_difference(usable, settings.labels, sub_seed(settings.seed, "agreement level"), settings.weights, LEVEL_CONFIDENCE, draws)
    known = [pair["kappa"] for pair in pairs if pair["kappa"] is not None]
    band = {
        "cases": len(usable),
        "judge_mean": found.judge,
        "expert_mean": found.experts,
        "expert_minimum": min(known, default=None),
        "expert_maximum": max(known, default=None),
        "difference": found.difference,
        "interval": limits_list(found.interval),
        "reason": found.reason,
        "confidence": LEVEL_CONFIDENCE,
        "margin": MARGIN,
        "resamples": found.resamples,
        "pairs_left_out": found.left_out,
    }
    if not any(label is not None for _, labels in rows for label in labels):
        return {"standing": UNLABELLED, "standing_reason": "no_labels", "band": band}
    if not usable:
        pairs_are_there = any(sum(label is not None for label in labels) > 1 for _, labels in rows)
        return {"standing": LEVEL_UNDECIDED, "standing_reason": "no_common_cases" if pairs_are_there else "one_expert", "band": band}
    if found.interval is None:
        return {"standing": LEVEL_UNDECIDED, "standing_reason": found.reason, "band": band}
    if found.interval.low > -MARGIN:
        return {"standing": AT_HUMAN_LEVEL, "standing_reason": None, "band": band}
    if found.interval.high < 0:
        return {"standing": BELOW_HUMAN_LEVEL, "standing_reason": None, "band": band}
    return {"standing": LEVEL_UNDECIDED, "standing_reason": "interval_too_wide", "band": band}


def coverage_document(cases: list[LabelledCase], counts: dict[str, int], rows: list[tuple[Label, list[Label]]]) -> JsonObject:
    """Of the labelled cases: how many the judge decided, how many have a consensus, and how many of these were used."""
    return {
        "labelled": len(cases),
        "labels": sum(label is not None for _, labels in rows for label in labels),
        "expert_abstentions": sum(given.label is None for case in cases for given in case.given.values()),
        "judged": sum(case.judge is not None for case in cases),
        "judge_abstained": sum(case.judge is None for case in cases),
        **{name: counts.get(name, 0) for name in ("consensus", "contested", "uncovered", "used")},
    }


def alpha_document(rows: list[tuple[Label, list[Label]]], settings: Settings) -> JsonObject | None:
    """Krippendorff's alpha of the experts when not each of them labelled each case; None when all did."""
    if all(label is not None for _, labels in rows for label in labels):
        return None
    place = {label: number for number, label in enumerate(settings.labels)}
    columns = zip(*[labels for _, labels in rows], strict=True)
    ratings = [[None if label is None else place[label] for label in column] for column in columns]
    level = ALPHA_LEVELS[settings.weights]
    alpha, reason = krippendorff_alpha(ratings, level)
    return {"alpha": alpha, "reason": reason, "level": level}


def agreed_label(table: Sequence[Sequence[int]], place: int, name: str) -> JsonObject:
    """One label: how often the experts agreed on it and the judge said it, and how often both did."""
    experts, judge, both = sum(row[place] for row in table), sum(table[place]), table[place][place]
    counts = {"label": name, "consensus": experts, "judge": judge, "both": both}
    return {**counts, "found": share_document(both, experts), "right": share_document(both, judge)}


def share_document(part: int, whole: int) -> JsonObject:
    """{"share", "interval", "k", "n"} of *part* of *whole*; the share is None for none."""
    share = part / whole if whole else None
    return {"share": share, "interval": limits_list(wilson_interval(part, whole)), "k": part, "n": whole}


def judge_error(table: Sequence[Sequence[int]]) -> JsonObject:
    """How often the judge says the first label where the experts do (sensitivity), and does not where they do not (specificity)."""
    hits, positive = table[0][0], sum(row[0] for row in table)
    negative = sum(map(sum, table)) - positive
    false = sum(table[0]) - hits
    return {"sensitivity": share_document(hits, positive), "specificity": share_document(negative - false, negative)}


def abstentions(cases: list[LabelledCase]) -> list[JsonObject]:
    """The cases in which somebody abstained: the judge (with the reason), raters."""
    found = []
    for case in cases:
        raters = sorted(name for name, given in case.given.items() if given.label is None)
        if raters or case.judge is None:
            found.append({"case_id": case.case_id, "judge": case.reason if case.judge is None else None, "raters": raters})
    return found


def rate_document(stage: str, cases: Mapping[str, Mapping[bool, int]], error: JsonObject) -> JsonObject:
    """The rate of the first label that the judge gives in *stage*, as it says and corrected for its measured error.

    *cases* holds by case how many trials had this label (True) and another one (False).
    """
    values = [(counts.get(True, 0), sum(counts.values())) for counts in cases.values()]
    rate, size = case_weighted_rate(values), effective_sample_size(values)
    document = {"stage": stage, "cases": sum(1 for _, valid in values if valid), "rate": None, "interval": None}
    if rate is None or size is None:
        return {**document, "corrected": None, "corrected_interval": None, "reason": "no_valid_observations", "method": "Rogan-Gladen"}
    sides = [(error[name]["k"], error[name]["n"]) for name in ("sensitivity", "specificity")]
    found = rogan_gladen(float(rate), size, sides[0], sides[1])
    return {
        **document,
        "rate": float(rate),
        "interval": limits_list(wilson_interval(float(rate) * size, size)),
        "corrected": found.rate,
        "corrected_interval": limits_list(found.interval),
        "reason": found.reason,
        "method": "Rogan-Gladen",
    }

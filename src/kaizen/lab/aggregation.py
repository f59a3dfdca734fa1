"""What the items of a run add up to: one number, or the reason why there is none.

    mean median percentile      of numbers, one an item
    precision recall f0.5 f1 f2 of {tp, fp, fn}, added up over the items

What is not known is unavailable, never 0: an item that was answered and has no value takes the number away, since a
number of the others alone would look better than what was measured.
"""

from collections.abc import Iterable
from typing import Any

from kaizen.foundation.jsonio import JsonObject, float_or_none
from kaizen.foundation.shapes import is_number, is_whole
from kaizen.lab.system import COUNT_AGGREGATIONS, Metric
from kaizen.stats.aggregates import mean, median, percentile, precision_recall

LINE_METRICS = ("cost_usd", "latency_ms")  # what every line has besides its score
COUNT_KEYS = ("tp", "fp", "fn")


def aggregated(lines: Iterable[JsonObject], metric: Metric, planned: int) -> JsonObject:
    """{status, value or reason, n, planned} of the run's own *metric* over its answered *lines*, of *planned*."""
    of_counts = metric.aggregation in COUNT_AGGREGATIONS
    values = [line["metrics"].get(metric.name) if of_counts else line["score"] for line in lines]
    return summarized(values, metric.aggregation, metric.percentile, planned)


def line_value(line: JsonObject, name: str, own_name: str, of_counts: bool) -> Any:
    """The value called *name* of a line of items.jsonl: the score for the run's own metric, cost_usd, latency_ms, or one of `metrics`."""
    if name in LINE_METRICS:
        return line[name]
    return line["score"] if name == own_name and not of_counts else line["metrics"].get(name)


def summarized(values: Iterable[Any], aggregation: str, percent: float | None, planned: int) -> JsonObject:
    """{status, value or reason, n, planned}: the *aggregation* of *values*, one an answered item, of *planned* items.

    Unavailable: `no_values`, `values_missing` (some items have none), `not_numbers`, `not_counts`, `no_finite_value`,
    and for precision, recall and F `undefined` when there is nothing to divide by.
    """
    given = list(values)
    known = [value for value in given if value is not None]
    number = None
    if len(known) < len(given) or not known:
        reason = "values_missing" if known else "no_values"
    elif aggregation in COUNT_AGGREGATIONS:
        reason = "undefined" if all(map(is_counts, known)) else "not_counts"
        number = counts_summary(known, aggregation) if reason == "undefined" else None
    else:
        reason = "no_finite_value" if all(map(is_number, known)) else "not_numbers"
        number = numbers_summary(known, aggregation, percent) if reason == "no_finite_value" else None
    if number is None:
        return {"status": "unavailable", "reason": reason, "n": len(known), "planned": planned}
    return {"status": "available", "value": float(number), "n": len(known), "planned": planned}


def is_counts(value: object) -> bool:
    """True for {tp, fp, fn} with whole numbers from 0."""
    return isinstance(value, dict) and all(is_whole(value.get(key)) and value[key] >= 0 for key in COUNT_KEYS)


def numbers_summary(values: list[float], aggregation: str, percent: float | None) -> float | None:
    """Mean, median or *percent*-th percentile of *values*, at least one; None where no float holds it."""
    if aggregation == "percentile":
        return percentile(values, 50.0 if percent is None else percent).value
    return float_or_none(mean(values) if aggregation == "mean" else median(values))


def counts_summary(counts: list[dict[str, int]], aggregation: str) -> float | None:
    """Precision, recall or F (`f0.5`: beta 0.5) of *counts* added up; None where the denominator is 0."""
    hits, false_alarms, misses = (sum(each[key] for each in counts) for key in COUNT_KEYS)
    found = precision_recall(hits, false_alarms, misses, float(aggregation[1:]) if aggregation[0] == "f" else 1.0)
    return {"precision": found.precision, "recall": found.recall}.get(aggregation, found.f)

"""What the items of a run add up to: one number, or the reason why there is none."""

from collections.abc import Iterable

from kaizen.foundation.jsonio import JsonObject
from kaizen.lab.system import COUNT_AGGREGATIONS, Metric
from kaizen.stats.aggregates import mean, median, percentile, precision_recall


def aggregated(lines: Iterable[JsonObject], metric: Metric, planned: int) -> JsonObject:
    """{status, value or reason, n, planned} of the counting *lines* of a run; what is not known is unavailable, never 0."""
    known = list(lines)
    if metric.aggregation in COUNT_AGGREGATIONS:
        value, n = counts_value(known, metric)
    else:
        scores = [line["score"] for line in known if line["score"] is not None]
        value, n = scores_value(scores, metric), len(scores)
    if value is None or n < len(known):
        reason = "no_values" if not n else "values_missing" if n < len(known) else "undefined"
        return {"status": "unavailable", "reason": reason, "n": n, "planned": planned}
    return {"status": "available", "value": value, "n": n, "planned": planned}


def scores_value(scores: list[float], metric: Metric) -> float | None:
    """Mean, median or percentile of *scores*; None for none."""
    if metric.aggregation == "percentile":
        return percentile(scores, metric.percentile or 0.0).value
    return mean(scores) if metric.aggregation == "mean" else median(scores)


def counts_value(lines: list[JsonObject], metric: Metric) -> tuple[float | None, int]:
    """(precision, recall or F of the counts added up, how many lines have counts); the value is None where it is undefined."""
    counts = [line["metrics"].get(metric.name) for line in lines]
    known = [each for each in counts if isinstance(each, dict)]
    tp, fp, fn = (sum(each[key] for each in known) for key in ("tp", "fp", "fn"))
    beta = float(metric.aggregation[1:]) if metric.aggregation.startswith("f") else 1.0
    found = precision_recall(tp, fp, fn, beta)
    value = {"precision": found.precision, "recall": found.recall}.get(metric.aggregation, found.f)
    return (None if value is None else float(value)), len(known)

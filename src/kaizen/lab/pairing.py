"""Two runs, item by item: what is gained, how sure that is, what it costs.

The unit is the item, or the cluster where items name one; several answers to an item are averaged. Differences are counted so
that more is better. Nothing here names an item that may have become one of the holdout.
"""

from typing import TYPE_CHECKING, NamedTuple

from kaizen.cases.evaluation_file import exact_fraction
from kaizen.foundation.jsonio import JsonObject, float_or_none
from kaizen.foundation.text import counted
from kaizen.lab.aggregation import is_counts
from kaizen.lab.reading import OpenItems, answered_lines, differing_hashes
from kaizen.lab.runstore import DONE, INCOMPLETE, RunStore
from kaizen.lab.system import COUNT_AGGREGATIONS
from kaizen.stats.aggregates import mean
from kaizen.stats.exact_tests import sign_flip
from kaizen.stats.lattice import Counts, paired_mean
from kaizen.stats.sequential import paired_e_value

if TYPE_CHECKING:
    from fractions import Fraction

CHANCE = 0.05  # p up to which a difference is called more than chance
CONFIDENCE = 0.95
MISTAKES = {"precision": ("fp",), "recall": ("fn",)}  # which counts are mistakes; both, for F


class Side(NamedTuple):
    """One run as it is compared: its values by item, in order of the answers, and the lines of each item."""

    values: "dict[str, list[Fraction]]"
    lines: dict[str, list[JsonObject]]

    def trials(self) -> int:
        """The most answers to one item."""
        return max(map(len, self.lines.values()), default=0)


def obstacles(a: JsonObject, b: JsonObject) -> list[JsonObject]:
    """{code, message} of everything for which two runs are not comparable; [] when they are."""
    if a["id"] == b["id"]:
        return [{"code": "same_run", "message": "it is one and the same run"}]
    if a["system"] != b["system"]:
        return [{"code": "other_system", "message": f"{a['id']} is a run of {a['system']}, {b['id']} one of {b['system']}"}]
    found = [
        {"code": each["state"], "message": f"{each['id']} is {each['state']}"} for each in (a, b) if each["state"] not in (DONE, INCOMPLETE)
    ]
    for code, what, key in differing_hashes(a, b):
        hashes = [short_hash(each["hashes"][key]) for each in (a, b)]
        files = other_files(a, b) if code == "other_eval" else []
        message = f"they have another {what}: {hashes[0]} and {hashes[1]}"
        found.append({"code": code, "message": message, "hashes": hashes, **({"files": files} if files else {})})
    return found


def short_hash(text: str) -> str:
    """The first 12 digits of a hash."""
    return text.removeprefix("sha256:")[:12]


def other_files(a: JsonObject, b: JsonObject) -> list[str]:
    """The locked files, sorted, that two runs do not share."""
    left, right = a["hashes"]["locked"], b["hashes"]["locked"]
    return sorted(path for path in left.keys() | right.keys() if left.get(path) != right.get(path))


def item_side(store: RunStore, document: JsonObject) -> Side:
    """What the run measured, by item."""
    side = Side({}, {})
    metric = document["metric"]
    for line in answered_lines(store, document):
        value = pair_value(line, metric["name"], metric["aggregation"])
        if value is not None:
            side.values.setdefault(line["item"], []).append(exact_fraction(value))
            side.lines.setdefault(line["item"], []).append(line)
    return side


def pair_value(line: JsonObject, name: str, aggregation: str) -> float | None:
    """The score of an answer; where counts are what counts, 1 without a mistake and 0 with one; None when neither is known."""
    if aggregation not in COUNT_AGGREGATIONS:
        return None if line["score"] is None else float(line["score"])
    counts = line["metrics"].get(name)
    return float(not any(counts[key] for key in MISTAKES.get(aggregation, ("fp", "fn")))) if is_counts(counts) else None


# --- The comparison --------------------------------------------------------------------


def compared_runs(store: RunStore, a: JsonObject, b: JsonObject, items: OpenItems) -> JsonObject:
    """How run *b* differs from run *a*, both comparable; a gain is what is better in *b*, in the units of the score.

    `n` is 0 and the statistics are None, with a reason, where no item was measured on both sides.
    """
    before, after = item_side(store, a), item_side(store, b)
    shared = [item for item in before.values if item in after.values]
    sign = -1 if a["metric"]["direction"] == "lower" and a["metric"]["aggregation"] not in COUNT_AGGREGATIONS else 1
    gains = {item: sign * (centre(after.values[item]) - centre(before.values[item])) for item in shared}
    scores = [value for side in (before, after) for values in side.values.values() for value in values]
    width = max(exact_fraction(1), max(scores) - min(scores)) if scores else exact_fraction(1)  # differences lie in [-width, width]
    counts = unit_counts(gains, items.clusters, width)
    found, test = paired_mean(counts, CONFIDENCE), sign_flip(counts)
    scale = float(width)
    return {
        "metric": a["metric"],
        "paired_on": "items without a mistake" if a["metric"]["aggregation"] in COUNT_AGGREGATIONS else "score",
        "unit": "cluster" if items.clusters else "item",
        "n": found.n,
        "items": len(shared),
        "trials": {"a": before.trials(), "b": after.trials()},
        "unpaired": {"a": len(before.values) - len(shared), "b": len(after.values) - len(shared)},
        "better": sum(times for gain, times in counts.items() if gain > 0),
        "worse": sum(times for gain, times in counts.items() if gain < 0),
        "gain": None if found.delta is None else float(found.delta * width),
        "se": None if found.se is None else found.se * scale,
        "interval": None if found.interval is None else [found.interval.low * scale, found.interval.high * scale],
        "confidence": CONFIDENCE,
        "method": found.method,
        "reason": found.reason,
        "p": {"better": test.greater, "worse": test.less, "two_sided": test.two_sided, "reason": test.reason} if found.n else None,
        "e_value": e_values(counts) if found.n else None,
        "is_pass_fail": len(set(scores)) <= 2,
        "moved": {name: moved_items(gains, direction, items) for name, direction in (("gained", 1), ("lost", -1))},
        "cost_usd": amount_ratio(before, after, shared, "cost_usd"),
        "latency_ms": amount_ratio(before, after, shared, "latency_ms"),
    }


def e_values(counts: Counts) -> JsonObject:
    """{better, worse}: the evidence against "no better" and "no worse", valid whenever one stops; None beyond what a float holds."""
    gains = [float(gain) for gain, times in sorted(counts.items()) for _ in range(times)]
    return {"better": float_or_none(paired_e_value(gains)), "worse": float_or_none(paired_e_value([-gain for gain in gains]))}


def centre(values: "list[Fraction]") -> "Fraction":
    """The mean of at least one value, exact."""
    return sum(values[1:], values[0]) / len(values)


def unit_counts(gains: "dict[str, Fraction]", clusters: dict[str, str], width: "Fraction") -> Counts:
    """{gain as a share of *width*: how many units}; a cluster's gain is the mean of its items', an item without one stands for itself."""
    groups: dict[tuple[bool, str], list[Fraction]] = {}
    for item, gain in gains.items():
        groups.setdefault((item in clusters, clusters.get(item, item)), []).append(gain / width)
    counts: Counts = {}
    for values in groups.values():
        counts[centre(values)] = counts.get(centre(values), 0) + 1
    return counts


def moved_items(gains: "dict[str, Fraction]", direction: int, items: OpenItems) -> JsonObject:
    """{count, items, unnamed}: the items that moved in *direction*, most first; those that are not to be named are counted."""
    moved = sorted((item for item in gains if gains[item] * direction > 0), key=lambda item: -gains[item] * direction)
    named = [item for item in moved if items.may_name(item)]
    return {"count": len(moved), "items": named, "unnamed": len(moved) - len(named)}


def amount_ratio(before: Side, after: Side, shared: list[str], name: str) -> JsonObject:
    """{a, b, ratio, n}: the mean *name* of an item on both sides over the items where every answer has it; None where that is unknown."""
    pairs = []
    for item in shared:
        values = [[line[name] for line in side.lines[item]] for side in (before, after)]
        if None not in values[0] + values[1]:
            pairs.append([mean(each) or 0.0 for each in values])
    sides = [mean([pair[number] for pair in pairs]) for number in (0, 1)]
    ratio = float_or_none(sides[1] / sides[0]) if sides[0] and sides[1] is not None else None
    return {"a": sides[0], "b": sides[1], "ratio": ratio, "n": len(pairs)}


def comparison_sentence(a: JsonObject, b: JsonObject, found: JsonObject) -> str:
    """One sentence: how much better, on how many, how sure, and that nothing is claimed."""
    if not found["n"]:
        return f"{b['id']} and {a['id']} share no item that both have measured"
    gain, trials = found["gain"], counted(max(found["trials"].values()), "answer")
    what = "" if found["paired_on"] == "score" else f" in {found['paired_on']}"
    way = f"{abs(gain):.4g} {'better' if gain > 0 else 'worse'}{what} than" if gain else "no better and no worse than"
    start = f"{b['id']} is {way} {a['id']} on {counted(found['n'], 'shared ' + found['unit'])} ({trials} each)"
    if found["se"] is None or not gain:
        return start if found["se"] is not None else f"{start}: one alone says nothing about chance"
    p = found["p"]["two_sided"]
    verdict = "chance alone seldom does that" if p <= CHANCE else "chance alone could do that"
    return f"{start}, SE {found['se']:.2g}, p {p:.2g}: {verdict}; not confirmed on a holdout"

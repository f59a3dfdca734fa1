"""The evaluator `label`, and its answers together: matrix, precision, recall, F, MCC.

All trials of an entry are counted together. An answer that is none of the allowed labels is a miss of the
expected one and a false alarm of none; it has a column of its own. What a denominator of 0 leaves
undefined is null, with the reason.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from kaizen.evaluators.envelope import PreparedEntry
from kaizen.evaluators.outcomes import NOT_APPLICABLE, ConfigurationError, Outcome, decided
from kaizen.evaluators.registry import REQUIRED, Check, Parameter, View, evaluator, listed_texts
from kaizen.evaluators.transforms import TEXT_TRANSFORMS, compile_normalizer, text_of
from kaizen.foundation.jsonio import JsonObject, pointer_token
from kaizen.foundation.text import counted, listed, quoted
from kaizen.stats.aggregates import precision_recall

LABEL_SHOWN = 60
LABELS_SHOWN = 12
F_MEASURES = {"f0_5": 0.5, "f1": 1.0, "f2": 2.0}
OUTSIDE = ""  # how the matrix calls an answer that is no label; a label is never empty


def is_written_label(label: str, allowed: list[str], pointer: str) -> str:
    """*label* when it is one of *allowed*. Raises ConfigurationError at *pointer*."""
    if label not in allowed:
        raise ConfigurationError(
            pointer, f"{quoted(label, LABEL_SHOWN)} is none of the allowed labels", f"allowed: {listed(allowed, LABELS_SHOWN)}"
        )
    return label


@evaluator(
    "label",
    1,
    "The answer is one of the allowed labels, and the expected one.",
    [
        Parameter("allowed", "texts", REQUIRED, "the labels there are"),
        Parameter("expected", "text", None, "the right one; without it, any of the allowed passes"),
        Parameter("positive", "text", None, "the label that is looked for: tells TP, FP, FN and TN apart"),
        Parameter("normalize", "texts", [], f"done to the answer and to all labels first: {', '.join(TEXT_TRANSFORMS)}", may_be_empty=True),
    ],
    example={
        "entry": {
            "id": "queue", "type": "label", "allowed": ["billing", "delivery", "other"], "expected": {"$case": "/expected/queue"},
            "positive": "billing", "normalize": ["strip", "lower"],
        },
        "observation": {"output": "Billing\n"},
        "case": {"id": "c1", "input": "I was charged twice.", "expected": {"queue": "billing"}},
        "outcome": "pass",
    },
)  # fmt: skip
def evaluate_label(settings: JsonObject) -> Check:
    """The whole text is compared. `kaizen evaluate` adds up over all trials: confusion matrix, precision, recall, F0.5, F1, F2 and MCC.
    An answer that is no allowed label fails, and counts as a miss of the expected one."""
    normalise = compile_normalizer(listed_texts(settings["normalize"]))
    allowed = [normalise(label) for label in listed_texts(settings["allowed"])]
    for index, label in enumerate(allowed):
        if label in allowed[:index] or not label:
            what = f"names {quoted(label, LABEL_SHOWN)} twice" if label else "holds an empty label"
            raise ConfigurationError("/allowed", what, "each label once, after normalize")
    expected, positive = settings["expected"], settings["positive"]
    if positive is not None and expected is None:
        raise ConfigurationError("/positive", "positive without expected tells nothing", "add expected")
    expected = None if expected is None else is_written_label(normalise(expected), allowed, "/expected")
    positive = None if positive is None else is_written_label(normalise(positive), allowed, "/positive")
    return LabelCheck(normalise, allowed, expected, positive)


class LabelCheck:
    """Whether an answer is one of the labels and the expected one. `value_missing` is the value of one that is not there at all."""

    def __init__(self, normalise: Callable[[str], str], allowed: list[str], expected: str | None, positive: str | None) -> None:
        self.normalise = normalise
        self.known = frozenset(allowed)
        self.expected = expected
        self.positive = positive
        self.shown = listed((quoted(name, LABEL_SHOWN) for name in allowed), LABELS_SHOWN)
        self.value_missing = self.value(None)

    def value(self, predicted: str | None) -> JsonObject:
        """{"predicted", "expected"}, with TP, FP, FN or TN as "count" where one label is looked for."""
        counts = {} if self.positive is None else {"count": binary_count(predicted, self.expected, self.positive)}
        return {"predicted": predicted, "expected": self.expected, **counts}

    def __call__(self, view: View) -> Outcome:
        """The outcome for the text of *view*."""
        answer = self.normalise(text_of(view.value))
        if answer not in self.known:
            return decided(False, f"{quoted(answer, LABEL_SHOWN)} is none of the labels {self.shown}", self.value(None))
        is_right = self.expected is None or answer == self.expected
        told = "" if is_right else f", not {quoted(str(self.expected), LABEL_SHOWN)}"
        return decided(is_right, f"is labelled {quoted(answer, LABEL_SHOWN)}{told}", self.value(answer))


def binary_count(predicted: str | None, expected: Any, positive: str) -> str | None:
    """TP, FP, FN or TN; None for an answer that is no label where another than *positive* was expected: it is neither alarm nor rest."""
    if expected == positive:
        return "TP" if predicted == positive else "FN"
    return None if predicted is None else "FP" if predicted == positive else "TN"


# --- Over all trials ---------------------------------------------------------------------


class LabelTallies:
    """Counts of (expected, predicted) of each `label` entry; memory grows with the labels, not with the trials.

    Of a holdout case only labels count that evaluation.json itself names, so that no other becomes known.
    """

    def __init__(self, entries: Iterable[PreparedEntry], holdout: frozenset[str]) -> None:
        self.holdout = holdout
        self.named: dict[str, frozenset[str]] = {}
        self.positive: dict[str, str] = {}
        for entry in entries:
            if entry.type.name == "label":
                normalise = compile_normalizer(listed_texts(entry.settings["normalize"])) if "normalize" in entry.settings else str
                self.named[entry.id] = frozenset(map(normalise, listed_texts(entry.settings.get("allowed"))))
                if isinstance(entry.settings.get("positive"), str):
                    self.positive[entry.id] = normalise(entry.settings["positive"])
        self.pairs: dict[str, Counter[tuple[str, str | None]]] = {}
        self.excluded: Counter[str] = Counter()
        self.kept_back: Counter[str] = Counter()

    def note(self, case_id: str, record: JsonObject) -> None:
        """Counts *record*, what a result line says of one `label` entry."""
        value = record["value"]
        if record["status"] == NOT_APPLICABLE:
            return
        pairs = self.pairs.setdefault(record["id"], Counter())
        if value is None or value["expected"] is None:
            self.excluded[record["id"]] += 1
        elif case_id in self.holdout and not self.is_named(record["id"], value):
            self.kept_back[record["id"]] += 1
        else:
            pairs[value["expected"], value["predicted"]] += 1

    def is_named(self, identity: str, value: JsonObject) -> bool:
        """Whether evaluation.json names both labels of *value*."""
        return {value["expected"], value["predicted"] or value["expected"]} <= self.named.get(identity, frozenset())

    def meta_part(self) -> JsonObject:
        """{"labels": {entry id: its measures}} of those that had an expected label at least once; {} for none."""
        found = {
            identity: label_document(pairs, self.excluded[identity], self.positive.get(identity), self.kept_back[identity])
            for identity, pairs in self.pairs.items()
            if pairs
        }
        return {"labels": found} if found else {}


def label_document(pairs: "Counter[tuple[str, str | None]]", excluded: int, positive: str | None, kept_back: int = 0) -> JsonObject:
    """The measures of one entry: `matrix` is {expected: {predicted: trials}}, `excluded` counts trials without a usable answer,
    `holdout_kept_back` those of which a label would become known that only the holdout has; the measures are without both."""
    expected, predicted = Counter[str](), Counter[str]()
    matrix: dict[str, dict[str, int]] = {}
    for (label, answer), times in sorted(pairs.items(), key=lambda item: (item[0][0], item[0][1] is None, item[0][1] or "")):
        expected[label] += times
        predicted[OUTSIDE if answer is None else answer] += times
        matrix.setdefault(label, {})[OUTSIDE if answer is None else answer] = times
    names = sorted({*expected, *predicted, positive or OUTSIDE} - {OUTSIDE})
    trials = expected.total()
    hits = sum(pairs[name, name] for name in names)
    undefined: dict[str, str] = {}
    by_label = {name: one_label(name, pairs[name, name], predicted[name], expected[name], undefined) for name in names}
    mcc = matthews(hits, trials, [(expected[name], predicted[name]) for name in [*names, OUTSIDE]])
    if mcc is None:
        undefined["/mcc"] = f"all trials were {'expected to be' if len(expected) == 1 else 'given'} one label"
    document: JsonObject = {"trials": trials, "excluded": excluded, "holdout_kept_back": kept_back, "accuracy": hits / trials, "mcc": mcc}
    if positive is not None:
        outside = sum(times for (label, answer), times in pairs.items() if answer is None and label != positive)
        hit = pairs[positive, positive]
        counts = {"TP": hit, "FP": predicted[positive] - hit, "FN": expected[positive] - hit}
        document["positive"] = {"label": positive, **counts, "TN": trials - sum(counts.values()) - outside, "outside": outside}
    return {**document, "by_label": by_label, "matrix": matrix, "undefined": undefined}


def one_label(name: str, hits: int, predicted: int, expected: int, undefined: dict[str, str]) -> JsonObject:
    """Precision, recall and F of one label against all others; what is null has its reason in *undefined*."""
    if not predicted:
        undefined[f"/by_label{pointer_token(name)}/precision"] = "it was never given"
    if not expected:
        undefined[f"/by_label{pointer_token(name)}/recall"] = "it was never expected"
    found = {key: precision_recall(hits, predicted - hits, expected - hits, beta) for key, beta in F_MEASURES.items()}
    return {"precision": found["f1"].precision, "recall": found["f1"].recall, **{key: each.f for key, each in found.items()}}


def matthews(hits: int, trials: int, totals: list[tuple[int, int]]) -> float | None:
    """The correlation of expected and given labels, from (times expected, times given) of each; None when one side is constant.

    Source: J. Gorodkin (2004), Comparing two K-category assignments by a K-category correlation coefficient, Computational
    Biology and Chemistry 28, 367-374; for two labels it is that of B. W. Matthews (1975).

    >>> round(matthews(13, 20, [(10, 9), (10, 11)]), 9)
    0.301511345
    """
    covariance = hits * trials - sum(expected * given for expected, given in totals)
    spread = (trials * trials - sum(given * given for _, given in totals)) * (trials * trials - sum(expected**2 for expected, _ in totals))
    return max(-1.0, min(1.0, covariance / math.sqrt(spread))) if spread else None


def label_lines(document: JsonObject | None) -> list[str]:
    """Lines for people: the measures of each label, then the matrix, one row an expected label; none for None."""
    if document is None:
        return []
    known = f"accuracy {label_rate(document['accuracy'])}, MCC {label_rate(document['mcc'])}"
    kept = document["holdout_kept_back"]
    back = f"; without {counted(kept, 'trial')} of holdout cases with labels that evaluation.json does not name" if kept else ""
    lines = [f"{known} over {counted(document['trials'], 'trial')}, {document['excluded']:,} not measured{back}"]
    if "positive" in document:
        positive = document["positive"]
        counts = ", ".join(f"{key} {positive[key]:,}" for key in ("TP", "FP", "FN", "TN"))
        outside = f", {positive['outside']:,} none of the labels" if positive["outside"] else ""
        lines.append(f"positive {quoted(positive['label'], LABEL_SHOWN)}: {counts}{outside}")
    shown = list(document["by_label"].items())
    for name, found in shown[:LABELS_SHOWN]:
        words = {"precision": "precision", "recall": "recall", "f0_5": "F0.5", "f1": "F1", "f2": "F2"}
        lines.append(f"{quoted(name, LABEL_SHOWN)}: " + ", ".join(f"{word} {label_rate(found[key])}" for key, word in words.items()))
    for name, row in list(document["matrix"].items())[:LABELS_SHOWN]:
        given = [f"{times:,} {quoted(answer, LABEL_SHOWN) if answer else 'none of the labels'}" for answer, times in row.items()]
        lines.append(f"expected {quoted(name, LABEL_SHOWN)}: {listed(given, LABELS_SHOWN)}")
    return [*lines, *([f"and {len(shown) - LABELS_SHOWN} more labels, in the results meta file"] if len(shown) > LABELS_SHOWN else [])]


def label_rate(rate: float | None) -> str:
    """'0.833', or 'undefined'."""
    return "undefined" if rate is None else f"{rate:.3f}"

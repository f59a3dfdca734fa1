"""The evaluator `similarity`: how near the text is to a reference, by a named measure."""

from collections.abc import Callable
from typing import Any

from kaizen.evaluators.edits import common_subsequence, jaro_winkler, levenshtein
from kaizen.evaluators.outcomes import ConfigurationError, Outcome, decided, errored
from kaizen.evaluators.overlaps import answer_words, bleu, bleu_tokens, f1_of, jaccard, rouge_n, token_f1, words_of
from kaizen.evaluators.registry import REQUIRED, Check, Parameter, View, evaluator, listed_texts
from kaizen.evaluators.transforms import TEXT_TRANSFORMS, Transform, compile_normalizer, text_of
from kaizen.foundation.jsonio import JsonObject

# Characters of the output, and of all references together. Where time grows with the product, this much takes about a second.
SIMILARITY_BOUND = 50_000

TextParts = Any
# measure: (what it compares of a text, its value for (output, reference)); in [0, 1] but for the distance
SIMILARITY_MEASURES: dict[str, tuple[Callable[[str], TextParts], Callable[[TextParts, TextParts], float]]] = {
    "levenshtein_ratio": (str, lambda one, other: (max(len(one), len(other)) - levenshtein(one, other)) / max(len(one), len(other))),
    "levenshtein_distance": (str, levenshtein),
    "jaro_winkler": (str, jaro_winkler),
    "token_f1": (answer_words, token_f1),
    "jaccard": (words_of, jaccard),
    "bleu": (bleu_tokens, bleu),
    "rouge_1": (words_of, lambda one, other: rouge_n(one, other, 1)),
    "rouge_2": (words_of, lambda one, other: rouge_n(one, other, 2)),
    "rouge_l": (words_of, lambda one, other: f1_of(common_subsequence(one, other), len(one), len(other))),
}
DISTANCE = "levenshtein_distance"
FEWEST_TOKENS = {"rouge_2": 2}  # of a reference, so that there is something to share


def compiled_references(settings: JsonObject, normalise: Transform, split: Callable[[str], TextParts]) -> list[TextParts]:
    """What of each reference is compared. Raises ConfigurationError for one that holds nothing to compare, or for too much text."""
    references = settings["references"]
    texts = [normalise(text) for text in listed_texts(references)]
    length = sum(map(len, texts))
    if length > SIMILARITY_BOUND:
        raise ConfigurationError("/references", f"has {length:,} characters in all, more than {SIMILARITY_BOUND:,}")
    found = [split(text) for text in texts]
    fewest = FEWEST_TOKENS.get(settings["measure"], 1)
    for index, tokens in enumerate(found):
        if len(tokens) < fewest:
            what = "is an empty text" if not texts[index] else f"holds nothing that {settings['measure']} compares"
            place = "/references" if isinstance(references, str) else f"/references/{index}"
            raise ConfigurationError(place, what, "write what the output should be near to")
    return found


@evaluator(
    "similarity",
    1,
    "The text is near enough to one of the references, by a named measure.",
    [
        Parameter("measure", "choice", REQUIRED, "how nearness is measured; docs/text-metrics.md defines each", tuple(SIMILARITY_MEASURES)),
        Parameter("references", "texts", REQUIRED, "a text, or several of which the nearest counts"),
        Parameter("max", "integer", None, "levenshtein_distance only: the most edits that pass"),
        Parameter("normalize", "texts", [], f"done to both sides first: {', '.join(TEXT_TRANSFORMS)}", may_be_empty=True),
    ],
    example={
        "entry": {"id": "near", "type": "similarity", "measure": "rouge_l", "references": {"$case": "/expected/summary"}, "threshold": 0.5},
        "observation": {"output": "The order was shipped on Monday."},
        "case": {"id": "c1", "input": "Summarise.", "expected": {"summary": ["The order was shipped Monday.", "Shipped on Monday."]}},
        "outcome": "pass",
    },
)
def evaluate_similarity(settings: JsonObject) -> Check:
    """Needs a `threshold`, which has no default that fits all measures; levenshtein_distance has `max` instead, and its score is 1 or 0.
    Value is the measure. An output of more than 50,000 characters is an error: three of the measures are not linear in its length."""
    name, most = settings["measure"], settings["max"]
    is_distance = name == DISTANCE
    if is_distance and most is None or not is_distance and settings["threshold"] is None:
        needed = "max: the most edits that pass" if is_distance else "threshold: the least score that passes"
        raise ConfigurationError("", f"{name} needs {needed}")
    if is_distance and settings["threshold"] is not None:
        raise ConfigurationError("/threshold", f"{name} is a number of edits, no score", "write max, or take levenshtein_ratio")
    if not is_distance and most is not None:
        raise ConfigurationError("/max", f"max is for {DISTANCE} only", "write threshold")
    if is_distance and most < 0:
        raise ConfigurationError("/max", "max is negative")
    split, measure = SIMILARITY_MEASURES[name]
    normalise = compile_normalizer(listed_texts(settings["normalize"]))
    references = compiled_references(settings, normalise, split)

    def check(view: View) -> Outcome:
        text = normalise(text_of(view.value))
        if len(text) > SIMILARITY_BOUND:
            return errored(f"has {len(text):,} characters, and {name} looks at {SIMILARITY_BOUND:,} at most")
        tokens = split(text)
        measures = [measure(tokens, reference) for reference in references]
        best = min(measures) if is_distance else max(measures)
        which = f" (the nearest of {len(references)} references is number {measures.index(best) + 1})" if len(references) > 1 else ""
        if is_distance:
            return decided(best <= most, f"{name} is {best:,}, {'at most' if best <= most else 'above'} {most:,}{which}", best)
        return decided(True, f"{name} is {best!r}{which}", best)._replace(score=best)

    return check

"""Optimizer protocol 1.0: request, what counts as an answer, text copied from cases.

    request  {"protocol": "1.0", "feedback": {…}, "components": [{"name": "system_prompt", "text": "…"}],
              "budget": {"maximum_candidates": 3}}
    answer   {"candidates": [{"components": {"system_prompt": "…"}, "rationale": "…"}]}

Nothing that an optimizer answers is run, evaluated or promoted here.
"""

from typing import Any

from kaizen.cases.dataset import Dataset
from kaizen.foundation.errors import InputError
from kaizen.foundation.jsonio import JsonError, JsonObject, decode_line, sha256_hex
from kaizen.foundation.shapes import ANY_TEXT, OBJECT, check_fields, check_no_others
from kaizen.foundation.shingles import texts_in, word_shingles
from kaizen.foundation.text import counted, did_you_mean, quoted

OPTIMIZER_PROTOCOL = "1.0"
CANDIDATE_FIELDS = {"components": OBJECT, "rationale": ANY_TEXT}
OF_A_CASE = ("input", "context", "expected")


def optimizer_request(feedback: JsonObject, components: dict[str, str], maximum: int) -> JsonObject:
    """The request: *feedback*, the text of each of *components*, and how many candidates may come back."""
    offered = [{"name": name, "text": text} for name, text in components.items()]
    return {"protocol": OPTIMIZER_PROTOCOL, "feedback": feedback, "components": offered, "budget": {"maximum_candidates": maximum}}


def optimizer_candidates(printed: bytes, components: dict[str, str], maximum: int) -> list[JsonObject]:
    """The candidates that the optimizer *printed*: {"components", "rationale"}. Raises InputError for anything but a good answer."""
    try:
        answer = decode_line(printed.strip())
    except JsonError as error:
        raise optimizer_error(f"standard output is not one JSON object: {error.message}") from None
    found = answer.get("candidates")
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise optimizer_error('there is no list of objects "candidates"')
    if len(found) > maximum:
        raise optimizer_error(f"{counted(len(found), 'candidate')} came back (at most {maximum})")
    return [checked_candidate(item, f"/candidates/{index}", components) for index, item in enumerate(found)]


def checked_candidate(candidate: JsonObject, pointer: str, components: dict[str, str]) -> JsonObject:
    """*candidate*, which offers new text for some of *components* and nothing else. Raises InputError."""
    problems: list[str] = []

    def report(place: str, message: str, hint: str) -> None:
        problems.append(f"{place} {message}" + (f" ({hint})" if hint else ""))

    check_no_others(candidate, CANDIDATE_FIELDS, pointer, report)
    check_fields(candidate, CANDIDATE_FIELDS, pointer, report, ("components",))
    texts: Any = candidate.get("components")
    for name, text in texts.items() if isinstance(texts, dict) else ():
        if name not in components:
            report(f"{pointer}/components", f"offers {quoted(name)}, which was not asked for", did_you_mean(name, components))
        elif not isinstance(text, str) or not text.strip():
            report(f"{pointer}/components/{name}", "is no text, or an empty one", "")
    if isinstance(texts, dict) and not texts:
        report(f"{pointer}/components", "holds no component", "")
    if problems:
        raise optimizer_error("; ".join(problems[:5]))
    return {"components": texts, "rationale": candidate.get("rationale", "")}


def optimizer_error(message: str) -> InputError:
    """The error of an answer that cannot be used."""
    hint = "no candidate was written; docs/optimizing.md has the protocol"
    return InputError(f"the optimizer's answer cannot be used: {message}", hint, "optimizer_protocol")


class CopyDetector:
    """Finds text of cases in candidates: eight words in a row that stand in a case and not in the component as it is."""

    def __init__(self, dataset: Dataset, components: dict[str, str]) -> None:
        known = set().union(*(word_shingles(text) for text in components.values()))
        self.holdout = dataset.holdout
        self.cases: dict[str, list[str]] = {}  # ids by shingle
        for case in dataset.cases.values():
            texts = texts_in([case.document.get(key) for key in OF_A_CASE])
            for shingle in set().union(*(word_shingles(text) for text in texts)) - known:
                self.cases.setdefault(shingle, []).append(case.id)

    def copied(self, texts: list[str]) -> JsonObject | None:
        """{"cases": ids, "holdout_cases": how many} whose text stands in *texts*; None when there is none."""
        found: dict[str, None] = {}
        for text in texts:
            for shingle in sorted(word_shingles(text) & self.cases.keys()):
                found.update(dict.fromkeys(self.cases[shingle]))
        shown = sorted(name for name in found if name not in self.holdout)
        return {"cases": shown, "holdout_cases": len(found) - len(shown)} if found else None


def candidate_document(number: int, candidate: JsonObject, components: dict[str, str], copied: JsonObject | None) -> JsonObject:
    """The entry of one candidate in proposal.json; its texts lie in its folder."""
    texts: dict[str, str] = candidate["components"]
    return {
        "candidate": candidate_name(number),
        "components": {name: {"characters": len(text), "sha256": sha256_hex(text)} for name, text in texts.items()},
        "unchanged": all(components[name] == text for name, text in texts.items()),
        "memorised": copied,
        "rationale": candidate["rationale"],
    }


def candidate_name(number: int) -> str:
    """The folder of candidate *number*: 'candidate-007'."""
    return f"candidate-{number:03d}"

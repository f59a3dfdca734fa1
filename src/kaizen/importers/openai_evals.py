"""Samples of OpenAI's evals: JSON Lines with `input` and `ideal`."""

from kaizen.foundation.errors import InputError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonError, JsonObject, parse_json, read_json_lines
from kaizen.importers.gathered import APPROXIMATED, DROPPED, MAPPED, Gathered
from kaizen.importers.tables import add_entries, text_within

EVAL_EXPECTED = {"$case": "/expected"}
# --eval: (the entry, what differs)
EVAL_CLASSES: dict[str, tuple[JsonObject, str]] = {
    "match": ({"type": "contains", "values": EVAL_EXPECTED, "mode": "any", "at": "start"}, ""),
    "includes": ({"type": "contains", "values": EVAL_EXPECTED, "mode": "any"}, ""),
    "fuzzy_match": (
        {"type": "contains", "values": EVAL_EXPECTED, "mode": "any", "ignore_case": True},
        "an answer that is only a part of the ideal one fails here; articles and punctuation count",
    ),
    "json_match": ({"type": "equals", "select": "output.json", "any_of": EVAL_EXPECTED}, ""),
}


def import_openai_evals(path: str, gathered: Gathered, eval_class: str) -> None:
    """A case for each sample; `ideal` becomes `expected`, always a list. Raises InputError."""
    shown = shown_path(path)
    entry, difference = EVAL_CLASSES[eval_class]
    for line in read_json_lines(path):
        sample, place = line.value, f"{shown}:{line.number}"
        if "input" not in sample:
            raise InputError(f"{place}: a sample has no 'input'", 'samples are {"input": …, "ideal": …}', "invalid_file")
        case: JsonObject = {"id": gathered.name_for(text_within(sample["input"])), "input": sample["input"]}
        ideals = sample.get("ideal")
        ideals = ideals if isinstance(ideals, list) else [] if ideals is None else [ideals]
        case["expected"] = [ideal_value(one, place) for one in ideals] if eval_class == "json_match" else ideals
        if not ideals or (eval_class != "json_match" and not all(isinstance(one, str) and one for one in ideals)):
            gathered.note(DROPPED, "ideal", f"line {line.number}", "is missing, empty or no text: the case comes without a check")
        else:
            gathered.note(APPROXIMATED if difference else MAPPED, f"{eval_class} -> {entry['type']}", f"line {line.number}", difference)
            add_entries(case, [("ideal", entry)])
        for key in sorted(sample.keys() - {"input", "ideal"}):
            case.setdefault("metadata", {})[key] = sample[key]
            gathered.note(MAPPED, f"{key} -> metadata", f"line {line.number}")
        gathered.add(case if ideals else {key: value for key, value in case.items() if key != "expected"}, line.number)


def ideal_value(ideal: object, place: str) -> object:
    """The JSON that the text *ideal* holds. Raises InputError."""
    if not isinstance(ideal, str):
        return ideal
    try:
        return parse_json(ideal)
    except JsonError as error:
        raise InputError(f"{place}: 'ideal' is no JSON: {error.message}", "import with --eval match or includes", "invalid_file") from None

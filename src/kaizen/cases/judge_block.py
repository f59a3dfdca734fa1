"""The `judge` and `agreement` blocks of evaluation.json, checked with their places.

    {"judge": {"name": "refund-policy-judge", "version": "0.1.0",
      "criteria": [{"id": "policy_compliance", "weight": 3, "evaluators": ["policy_*"]}],
      "hard_rules": [{"id": "amount_ceiling", "evaluator": "amount_le_500", "message": "…"}],
      "verdicts": [{"verdict": "approve", "minimum_score": 0.8}, {"verdict": "reject"}],
      "minimum_confidence": 0.6, "actions": {"policy_compliance": "explain_the_policy"}},
     "agreement": {"required": true, "weights": "nominal"}}
"""

import re
from collections.abc import Iterable
from typing import Any

from kaizen.foundation.jsonio import JsonObject, pointer_token
from kaizen.foundation.shapes import (
    BOOLEAN,
    OBJECT,
    RATE,
    RATIO,
    TEXT,
    Kind,
    Report,
    check_fields,
    check_no_others,
    is_number,
    list_of,
    one_of,
)
from kaizen.foundation.text import did_you_mean, quoted

REJECT, INSUFFICIENT = "reject", "insufficient_evidence"
MINIMUM_CONFIDENCE = 0.6
OBJECTS = list_of(OBJECT, "objects")
JUDGE_FIELDS: dict[str, Kind] = {
    "name": TEXT,
    "version": TEXT,
    "criteria": OBJECTS,
    "hard_rules": OBJECTS,
    "verdicts": OBJECTS,
    "minimum_confidence": RATE,
    "actions": OBJECT,
}
# list: (fields of its objects, those that are required, the one that names the object)
JUDGE_LISTS: dict[str, tuple[dict[str, Kind], tuple[str, ...], str]] = {
    "criteria": ({"id": TEXT, "weight": RATIO, "evaluators": list_of(TEXT, "evaluator names")}, ("id", "evaluators"), "id"),
    "hard_rules": ({"id": TEXT, "evaluator": TEXT, "message": TEXT}, ("id", "evaluator", "message"), "id"),
    "verdicts": ({"verdict": TEXT, "minimum_score": RATE}, ("verdict",), "verdict"),
}
AGREEMENT_DEFAULTS: JsonObject = {"required": False, "weights": "nominal"}
AGREEMENT_FIELDS: dict[str, Kind] = {"required": BOOLEAN, "weights": one_of("nominal", "linear", "quadratic")}


def checked_judge(document: JsonObject, report: Report) -> JsonObject | None:
    """The `judge` block of *document* with its defaults filled in; None when there is none. What is wrong is reported."""
    block = document.get("judge")
    if not isinstance(block, dict):
        return None
    check_no_others(block, JUDGE_FIELDS, "/judge", report)
    check_fields(block, JUDGE_FIELDS, "/judge", report, ("name", "criteria", "verdicts"))
    lists = {name: checked_named(block, name, report) for name in JUDGE_LISTS}
    for name in ("criteria", "verdicts"):
        if block.get(name) == []:
            report(f"/judge/{name}", "is empty", "write at least one")
    for index, criterion in enumerate(lists["criteria"]):
        if criterion.get("evaluators") == []:
            report(f"/judge/criteria/{index}/evaluators", "is empty", "name the evaluators that measure it; a name may hold *")
    check_verdict_order(lists["verdicts"], report)
    known = [criterion.get("id") for criterion in lists["criteria"]]
    actions = block.get("actions") if isinstance(block.get("actions"), dict) else {}
    for name, action in (actions or {}).items():
        place = "/judge/actions" + pointer_token(name)
        if name not in known:
            report(place, f"no criterion is called {quoted(name)}", did_you_mean(name, [each for each in known if isinstance(each, str)]))
        elif not TEXT.accepts(action):
            report(place, f"must be {TEXT.words}", "")
    return {
        "name": block.get("name"),
        "version": block.get("version", ""),
        "criteria": [{"weight": 1, **criterion} for criterion in lists["criteria"]],
        "hard_rules": lists["hard_rules"],
        "verdicts": lists["verdicts"],
        "minimum_confidence": block.get("minimum_confidence", MINIMUM_CONFIDENCE),
        "actions": actions,
    }


def checked_named(block: JsonObject, name: str, report: Report) -> list[JsonObject]:
    """The objects of the list *name* of *block*; what is wrong with one, and a name that comes twice, is reported."""
    fields, required, key = JUDGE_LISTS[name]
    found = [item for item in block[name] if isinstance(item, dict)] if isinstance(block.get(name), list) else []
    seen: set[Any] = set()
    for index, item in enumerate(found):
        place = f"/judge/{name}/{index}"
        check_no_others(item, fields, place, report)
        check_fields(item, fields, place, report, required)
        identity = item.get(key)
        if isinstance(identity, str) and identity in seen:
            report(f"{place}/{key}", f"{quoted(identity)} comes twice", "give each a name of its own")
        seen.add(identity if isinstance(identity, str) else None)
    return found


def check_verdict_order(verdicts: list[JsonObject], report: Report) -> None:
    """Reports a reserved name, minima that do not fall from verdict to verdict, a last one that has a minimum, another that has none."""
    lowest = 1.1
    for index, item in enumerate(verdicts):
        place, least = f"/judge/verdicts/{index}", item.get("minimum_score")
        if item.get("verdict") == INSUFFICIENT:
            report(f"{place}/verdict", f"{quoted(INSUFFICIENT)} is what Kaizen says when evidence is missing", "choose another word")
        if index == len(verdicts) - 1:
            if least is not None and is_number(least) and least > 0:
                report(f"{place}/minimum_score", "the last verdict has a minimum, so a score below it has no verdict", "take it out")
        elif least is None:
            report(place, "has no 'minimum_score', so no verdict behind it is ever given", "only the last verdict has none")
        elif is_number(least):
            if least >= lowest:
                report(f"{place}/minimum_score", "is not below the one before it", "order verdicts from the highest minimum to the lowest")
            lowest = least


def checked_agreement(document: JsonObject, report: Report) -> JsonObject:
    """The `agreement` block of *document* with its defaults filled in; what is wrong is reported."""
    block = document.get("agreement")
    given = block if isinstance(block, dict) else {}
    check_no_others(given, AGREEMENT_FIELDS, "/agreement", report)
    check_fields(given, AGREEMENT_FIELDS, "/agreement", report)
    return {**AGREEMENT_DEFAULTS, **given}


def verdict_names(block: JsonObject) -> list[str]:
    """The verdicts of *block* in its order, with `reject`, which a violated hard rule gives; experts choose among them."""
    names = [item["verdict"] for item in block["verdicts"]]
    return names if REJECT in names else [*names, REJECT]


def check_judge_names(block: JsonObject, names: Iterable[str], report: Report) -> None:
    """Reports each name in criteria and hard rules of *block* that fits no evaluator of *names*."""
    known = list(names)
    wanted = [
        (f"/judge/criteria/{index}/evaluators/{number}", pattern)
        for index, criterion in enumerate(block["criteria"])
        for number, pattern in enumerate(criterion.get("evaluators", ()))
    ]
    wanted += [(f"/judge/hard_rules/{index}/evaluator", rule.get("evaluator")) for index, rule in enumerate(block["hard_rules"])]
    for pointer, pattern in wanted:
        if isinstance(pattern, str) and not any(map(judge_pattern(pattern).fullmatch, known)):
            report(pointer, f"no evaluator is called {quoted(pattern)}", did_you_mean(pattern, known))


def judge_pattern(name: str) -> "re.Pattern[str]":
    """*name* as a pattern in which `*` alone is special; to be used with `fullmatch`.

    >>> bool(judge_pattern("policy_*").fullmatch("policy_a.b")), bool(judge_pattern("a.b").fullmatch("axb"))
    (True, False)
    """
    return re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL)

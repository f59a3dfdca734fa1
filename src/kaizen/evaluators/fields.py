"""The evaluator `fields`: a document compared with a reference, field by field."""

from typing import Any

from kaizen.evaluators.field_comparison import ASKS_NOTHING, ASKS_REFERENCE, Field, FieldComparison, field_container, field_places
from kaizen.evaluators.field_rules import compile_field_rules, parse_list_mode
from kaizen.evaluators.outcomes import FAIL, PASS, ConfigurationError, NotMeasurable, Outcome, not_applicable
from kaizen.evaluators.predicates import MISSING
from kaizen.evaluators.registry import Check, Parameter, View, evaluator
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted

MAX_FIELDS_TOLD = 5
MAX_FIELD_EVIDENCE = 20


def fields_reference(view: View, reference: Any, is_needed: bool) -> Any:
    """What the answer is compared with; MISSING if there is none and none is needed. Raises NotMeasurable."""
    if reference is None:
        reference = view.case.get("expected")
    if reference is None and is_needed:
        raise NotMeasurable("the case has no expected value to compare with")
    if isinstance(reference, str):
        container = field_container(reference)
        return reference if container is None else container
    return MISSING if reference is None else reference


def fields_outcome(fields: list[Field], wants_all: bool) -> Outcome:
    """The outcome of *fields*: the met share of the weight, or all or nothing; the reason names what differs."""
    if not fields:
        return not_applicable("there is no field to compare")
    differing = [field for field in fields if not field.is_met]
    value = {"matched": len(fields) - len(differing), "of": len(fields)}
    if not differing:
        return Outcome(PASS, 1.0, f"agrees in {counted(len(fields), 'field')}" if len(fields) > 1 else "agrees", value)
    total = sum(field.weight for field in fields)
    met = sum(field.weight for field in fields if field.is_met)
    told = "; ".join(f"{field.pointer or 'the whole'}: {field.note}" for field in differing[:MAX_FIELDS_TOLD])
    more = f"; and {len(differing) - MAX_FIELDS_TOLD} more" if len(differing) > MAX_FIELDS_TOLD else ""
    reason = f"{len(differing)} of {counted(len(fields), 'field')} {'differs' if len(differing) == 1 else 'differ'}: {told}{more}"
    evidence = tuple({"pointer": field.pointer} for field in differing[:MAX_FIELD_EVIDENCE])
    return Outcome(FAIL, 0.0 if wants_all else float(met / total), reason, value, evidence)


@evaluator(
    "fields",
    1,
    "The answer agrees with a reference, field by field.",
    [
        Parameter("reference", "any", None, "what to compare with; without it, the case's expected"),
        Parameter(
            "rules", "list", None,
            "what is not plain equality: a list of {path, op, value, abs_tol, rel_tol, weight, lists}. The path is a JSON Pointer in "
            "which * is every element; op is equals (the default), contains, regex, numeric, date (abs_tol in days), set, exists, "
            "absent or ignore; without a value it compares with the same path of the reference. A rule of path and lists alone "
            "says how these lists are paired",
        ),
        Parameter(
            "rest", "choice", "equals", "the fields of the reference without a rule: compared for equality, or ignored",
            ("equals", "ignore"),
        ),
        Parameter("aggregate", "choice", "weighted", "score: the met share of the weight; or 1 only if all are met", ("weighted", "all")),
        Parameter(
            "lists", "any", "ordered",
            'how the elements of lists are paired: ordered, multiset, set, or {"key": pointer} for elements that have such a key '
            "(others: ordered). An element without a partner is a field that differs",
        ),
        Parameter(
            "extra", "choice", "allow", "keys of objects that the reference does not have; forbid: each is a field that differs",
            ("allow", "forbid"),
        ),
    ],
    {
        "entry": {
            "id": "reading", "type": "fields",
            "rules": [{"path": "/value", "op": "numeric", "abs_tol": 0.5}, {"path": "/read_on", "op": "date"}],
        },
        "observation": {"output": {"meter": "A-17", "value": "1,250.4 kWh", "read_on": "5 March 2026"}},
        "case": {"expected": {"meter": "A-17", "value": 1250, "read_on": "2026-03-05"}},
        "outcome": "pass",
    },
    default_select="output.json",
)  # fmt: skip
def evaluate_fields(settings: JsonObject) -> Check:
    """A rule about the reference that finds nothing there is not measurable."""
    lists = parse_list_mode(settings["lists"], "/lists")
    rules, list_rules = compile_field_rules(settings["rules"] or [], lists)
    counts_rest, counts_extra = settings["rest"] == "equals", settings["extra"] == "forbid"
    if not counts_rest and all(rule.asks == ASKS_NOTHING for rule in rules):
        message = "nothing is compared: rest is ignore and no rule asks anything"
        raise ConfigurationError("/rest", message, "add a rule, or let rest be equals")
    comparison = FieldComparison(rules, list_rules, lists, counts_rest, counts_extra)
    is_needed = counts_rest or counts_extra or any(rule.asks == ASKS_REFERENCE for rule in rules)
    wants_all = settings["aggregate"] == "all"

    def check(view: View) -> Outcome:
        reference = fields_reference(view, settings["reference"], is_needed)
        for rule in rules:
            places = [found for _, found in field_places(reference, rule.tokens)] if rule.asks == ASKS_REFERENCE else []
            if places and all(found is MISSING for found in places):
                raise NotMeasurable(f"the reference has nothing at {rule.path}")
        return fields_outcome(comparison.compare(reference, view.value), wants_all)

    return check

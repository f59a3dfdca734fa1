"""The rules of `fields`: what each op compares, and what a rule may hold.

    {"path": "/readings/*/value", "op": "numeric", "abs_tol": 0.5, "weight": 3}
    {"path": "/status", "value": "open"}              op is equals
    {"path": "/readings", "lists": {"key": "/meter"}}   without op and value: how these lists are paired

Only `numeric` and `date` read values out of text, and they read both sides in the same way.
"""

from collections.abc import Callable
from typing import Any

from kaizen.evaluators.dates import days_apart, read_date
from kaizen.evaluators.decimals import exact_value, only_number, within_tolerance
from kaizen.evaluators.field_comparison import (
    ASKS_ANSWER,
    ASKS_NOTHING,
    ASKS_REFERENCE,
    FieldComparison,
    FieldJudge,
    FieldRule,
    FieldTokens,
    ListMode,
    ListRule,
    differing_note,
    field_shown,
    is_at,
)
from kaizen.evaluators.outcomes import ConfigurationError, NotMeasurable
from kaizen.evaluators.predicates import MISSING
from kaizen.evaluators.regex_timer import PatternTimeout, compile_pattern, timed
from kaizen.evaluators.registry import is_json_number, json_type_phrase
from kaizen.foundation.jsonio import JsonObject, json_key, pointer_tokens
from kaizen.foundation.text import did_you_mean, listed, quoted

LIST_MODES = ("ordered", "multiset", "set")
RULE_KEYS = ("path", "op", "value", "abs_tol", "rel_tol", "weight", "lists")


# --- What each op compares: (rule, how lists are paired, pointer of the rule) -> judge -------------


def compare_equals(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """The same JSON value at every depth; numbers within the tolerances."""
    abs_tol, rel_tol = rule.get("abs_tol", 0), rule.get("rel_tol", 0)

    def are_close(expected: Any, found: Any) -> bool:
        both = is_json_number(expected) and is_json_number(found)
        return both and within_tolerance(exact_value(found), exact_value(expected), abs_tol, rel_tol)

    comparison = FieldComparison([], [], lists, counts_extra=True, are_close=are_close if abs_tol or rel_tol else None)
    return lambda expected, found: "" if comparison.is_equal(expected, found) else differing_note(expected, found)


def compare_contains(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """A text holds the expected text; a list each of the expected elements, or the one; an object at least the expected fields."""
    parts = FieldComparison([], [], lists)

    def judge(expected: Any, found: Any) -> str | None:
        if expected in ("", [], {}):
            return None
        if isinstance(found, list):
            there = {json_key(item) for item in found}
            lacking = [item for item in (expected if isinstance(expected, list) else [expected]) if json_key(item) not in there]
            return f"lacks {listed(map(field_shown, lacking), 5)}" if lacking else ""
        if isinstance(found, str) and isinstance(expected, str):
            is_met = expected in found
        else:
            is_met = isinstance(found, dict) and isinstance(expected, dict) and parts.is_equal(expected, found)
        return "" if is_met else f"does not contain {field_shown(expected)}: {field_shown(found)}"

    return judge


def compare_regex(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """The pattern is found in the text."""
    if not isinstance(rule.get("value"), str):
        raise ConfigurationError(pointer + "/value", "op regex needs a value, the pattern")
    search = compile_pattern(rule["value"], 0, pointer + "/value").search

    def judge(expected: Any, found: Any) -> str:
        try:
            is_met = isinstance(found, str) and timed(lambda: search(found)) is not None
        except PatternTimeout as timeout:
            raise PatternTimeout(f"pattern {quoted(rule['value'], 60)} of {rule['path']}: {timeout.reason}") from None
        return "" if is_met else f"does not match the pattern: {field_shown(found)}"

    return judge


def compare_numeric(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """The number, or the one number in the text, within the tolerances."""
    abs_tol, rel_tol = rule.get("abs_tol", 0), rule.get("rel_tol", 0)

    def number_in(value: Any) -> Any:
        return exact_value(value) if is_json_number(value) else only_number(value) if isinstance(value, str) else None

    def judge(expected: Any, found: Any) -> str:
        if is_json_number(expected) and is_json_number(found) and expected == found:
            return ""
        wanted, actual = number_in(expected), number_in(found)
        if wanted is None:
            raise NotMeasurable(f"what is expected at {rule['path']} holds no single number: {field_shown(expected)}")
        if actual is None:
            return f"holds no single number: {field_shown(found)}"
        return "" if within_tolerance(actual, wanted, abs_tol, rel_tol) else differing_note(expected, found)

    return judge


def compare_date(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """The one date in the text, at most abs_tol days apart."""

    def judge(expected: Any, found: Any) -> str:
        (wanted, why_not), (actual, what) = read_date(expected), read_date(found)
        if wanted is None:
            raise NotMeasurable(f"what is expected at {rule['path']} {why_not}: {field_shown(expected)}")
        if actual is None:
            return f"{what}: {field_shown(found)}"
        return "" if days_apart(wanted, actual) <= rule.get("abs_tol", 0) else differing_note(expected, found)

    return judge


def compare_set(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """The same elements, whatever their order and however often each comes."""

    def judge(expected: Any, found: Any) -> str:
        if not isinstance(expected, list):
            raise NotMeasurable(f"what is expected at {rule['path']} is no list")
        if not isinstance(found, list):
            return f"is {json_type_phrase(found)}, not a list"
        wanted, there = ({json_key(item): item for item in items} for items in (expected, found))
        lacking = [field_shown(item) for key, item in wanted.items() if key not in there]
        beside = [field_shown(item) for key, item in there.items() if key not in wanted]
        notes = [f"lacks {listed(lacking, 5)}"] * bool(lacking) + [f"has {listed(beside, 5)} beside"] * bool(beside)
        return " and ".join(notes)

    return judge


def compare_exists(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """Something is there; null is something."""
    return lambda expected, found: "is missing" if found is MISSING else ""


def compare_absent(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """Nothing is there."""
    return lambda expected, found: "" if found is MISSING else f"is there, though it should not be: {field_shown(found)}"


def compare_nothing(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """Whatever it is."""
    return lambda expected, found: None


# op: (what makes its judge, whether it takes a value, which further keys it takes)
FIELD_OPS: dict[str, tuple[Callable[[JsonObject, ListMode, str], FieldJudge], bool, tuple[str, ...]]] = {
    "equals": (compare_equals, True, ("abs_tol", "rel_tol", "lists")),
    "contains": (compare_contains, True, ()),
    "regex": (compare_regex, True, ()),
    "numeric": (compare_numeric, True, ("abs_tol", "rel_tol")),
    "date": (compare_date, True, ("abs_tol",)),
    "set": (compare_set, True, ()),
    "exists": (compare_exists, False, ()),
    "absent": (compare_absent, False, ()),
    "ignore": (compare_nothing, False, ()),
}


# --- What a rule may hold --------------------------------------------------------------------------


def parse_list_mode(mode: Any, pointer: str) -> ListMode:
    """How `lists` says that lists are paired. Raises ConfigurationError."""
    if isinstance(mode, str) and mode in LIST_MODES:
        return mode
    if isinstance(mode, dict) and list(mode) == ["key"]:
        tokens = parse_field_path(mode["key"], pointer + "/key")
        if tokens and "*" not in tokens:
            return tokens
        raise ConfigurationError(pointer + "/key", "must lead to one place in each element", 'such as {"key": "/id"}')
    hint = f'write one of {listed(LIST_MODES, last="or")}, or {{"key": "/id"}}'
    raise ConfigurationError(pointer, f"{field_shown(mode)} says no way to pair lists", hint)


def parse_field_path(path: Any, pointer: str) -> FieldTokens:
    """The tokens of a JSON Pointer in which * is every element. Raises ConfigurationError."""
    if not isinstance(path, str):
        raise ConfigurationError(pointer, f"is {json_type_phrase(path)}, not a JSON Pointer such as /items/*/price")
    try:
        return tuple(pointer_tokens(path))
    except ValueError as error:
        raise ConfigurationError(pointer, str(error), "a path begins with / and leads from the selected value on") from None


def check_rule_keys(rule: Any, pointer: str) -> None:
    """Raises ConfigurationError for a rule that is none, or holds what its op has no use for."""
    if not isinstance(rule, dict):
        raise ConfigurationError(pointer, f"is {json_type_phrase(rule)}, not a rule", 'a rule is {"path": "/total", "op": "numeric"}')
    for key in rule:
        if key not in RULE_KEYS:
            raise ConfigurationError(f"{pointer}/{key}", f"unknown key {quoted(key)}", did_you_mean(key, RULE_KEYS))
    op = rule.get("op", "equals")
    if not isinstance(op, str) or op not in FIELD_OPS:
        raise ConfigurationError(pointer + "/op", f"unknown op {field_shown(op)}", did_you_mean(str(op), FIELD_OPS))
    takes = (*FIELD_OPS[op][2], "path", "op", *(("value",) if FIELD_OPS[op][1] else ()), *(() if op == "ignore" else ("weight",)))
    for key in rule:
        if key not in takes:
            raise ConfigurationError(f"{pointer}/{key}", f"op {op} has no use for {key}")
    for key in ("abs_tol", "rel_tol", "weight"):
        if key in rule and (not is_json_number(rule[key]) or rule[key] < 0):
            raise ConfigurationError(f"{pointer}/{key}", f"{key} must be a number from 0")
    if rule.get("weight") == 0:
        raise ConfigurationError(pointer + "/weight", "weight 0 asks nothing", "use op ignore")


def compile_field_rule(rule: JsonObject, lists: ListMode, pointer: str) -> FieldRule:
    """The rule, compiled. Raises ConfigurationError."""
    op = rule.get("op", "equals")
    if "lists" in rule:
        lists = parse_list_mode(rule["lists"], pointer + "/lists")
    compare = FIELD_OPS[op][0](rule, lists, pointer)
    value = rule.get("value", MISSING)
    if value is not MISSING and op != "regex":
        try:
            if compare(value, value) is None:
                raise ConfigurationError(pointer + "/value", "is empty, which asks nothing")
        except NotMeasurable as error:
            raise ConfigurationError(pointer + "/value", error.reason) from None

    def judge(expected: Any, found: Any) -> str | None:
        if found is MISSING and op not in ("absent", "exists", "ignore"):
            return differing_note(expected, found) if op != "regex" else "is missing"
        return compare(expected, found)

    alone = value is not MISSING or op in ("exists", "absent")
    asks = ASKS_NOTHING if op == "ignore" else ASKS_ANSWER if alone else ASKS_REFERENCE
    weight = exact_value(rule.get("weight", 1))
    return FieldRule(rule["path"], parse_field_path(rule["path"], pointer + "/path"), asks, judge, value, weight)


def refuse_unreachable_rules(rules: list[FieldRule], pointers: list[str]) -> None:
    """Raises ConfigurationError for a rule that never gets a place, because another one has it already."""
    for index, rule in enumerate(rules):
        for place, other in enumerate(rules):
            covers = is_at(rule.tokens[: len(other.tokens)], other.tokens)
            if place != index and covers and (place < index or len(other.tokens) < len(rule.tokens)):
                message = f"is never asked: {pointers[place]}, with the path {quoted(other.path)}, has the same places"
                raise ConfigurationError(pointers[index] + "/path", message, "put the narrower path first, or take one out")


def compile_field_rules(rules: list[Any], lists: ListMode, place: str = "/rules") -> tuple[list[FieldRule], list[ListRule]]:
    """(the rules that say what is compared, those that only say how lists are paired) of the list at *place*. Raises ConfigurationError."""
    compiled: list[FieldRule] = []
    pointers: list[str] = []
    list_rules: list[ListRule] = []
    for index, rule in enumerate(rules):
        pointer = f"{place}/{index}"
        check_rule_keys(rule, pointer)
        if "path" not in rule:
            raise ConfigurationError(pointer, "has no path", "say what it is about, such as /items/*/price")
        if set(rule) == {"path", "lists"}:
            mode = parse_list_mode(rule["lists"], pointer + "/lists")
            list_rules.append(ListRule(parse_field_path(rule["path"], pointer + "/path"), mode))
        else:
            compiled.append(compile_field_rule(rule, lists, pointer))
            pointers.append(pointer)
    refuse_unreachable_rules(compiled, pointers)
    return compiled, list_rules

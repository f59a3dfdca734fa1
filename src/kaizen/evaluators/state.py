"""What the agent did to the world: the evaluator `state`.

The runner reports two snapshots, `state.before` and `state.after`, each any JSON. Paths are JSON Pointers into
them in which * is every element. A change is the smallest part that is not the same: an object that appeared is one
change at its own place, whatever is in it, and so is a value that became one of another kind.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kaizen.evaluators.field_comparison import (
    ASKS_NOTHING,
    ASKS_REFERENCE,
    FieldComparison,
    FieldTokens,
    ListMode,
    field_places,
    first_of_each,
    is_at,
    pairs_by_key,
)
from kaizen.evaluators.field_rules import compile_field_rules, parse_field_path, parse_list_mode
from kaizen.evaluators.outcomes import (
    ERROR,
    FAIL,
    NOT_APPLICABLE,
    PASS,
    ConfigurationError,
    NotMeasurable,
    Outcome,
    decided,
    not_applicable,
)
from kaizen.evaluators.paths import values_at
from kaizen.evaluators.predicates import MISSING
from kaizen.evaluators.registry import Check, Parameter, View, evaluator
from kaizen.foundation.jsonio import JsonObject, encode_compact, json_equal, json_key, pointer_token
from kaizen.foundation.text import quoted, visible

CHANGES_TOLD = 5
CHANGES_EVIDENCE = 20


class StateChange(NamedTuple):
    """A part that is not the same: where it stands afterwards (before, if it is gone), and what was and is there (MISSING: nothing)."""

    tokens: FieldTokens
    before: Any
    after: Any

    @property
    def pointer(self) -> str:
        """Where it stands in a snapshot."""
        return "".join(map(pointer_token, self.tokens))

    @property
    def told(self) -> str:
        """The change in a reason: '/orders/A-7/status "open" → "closed"'."""
        sides = ("nothing" if side is MISSING else visible(encode_compact(side), 40) for side in (self.before, self.after))
        return f"{visible(self.pointer, 80) or 'the whole'} {' → '.join(sides)}"


def state_changes(before: Any, after: Any, lists: ListMode, tokens: FieldTokens = ()) -> Iterator[StateChange]:
    """The changes from *before* to *after*; the elements of lists are paired as *lists* says."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from state_changes(before.get(key, MISSING), after.get(key, MISSING), lists, (*tokens, key))
    elif isinstance(before, list) and isinstance(after, list):
        pairs, gone, new = paired_elements(before, after, lists)
        for old, place in pairs:
            yield from state_changes(before[old], after[place], lists, (*tokens, str(place)))
        yield from (StateChange((*tokens, str(place)), before[place], MISSING) for place in gone)
        yield from (StateChange((*tokens, str(place)), MISSING, after[place]) for place in new)
    elif before is MISSING or after is MISSING:
        if before is not after:
            yield StateChange(tokens, before, after)
    elif not json_equal(before, after):
        yield StateChange(tokens, before, after)


def paired_elements(before: list[Any], after: list[Any], lists: ListMode) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """([(place before, place after)] of elements that belong together, places that are gone, places that are new)."""
    rows, columns = list(range(len(before))), list(range(len(after)))
    pairs = dict(zip(rows, columns, strict=False))
    if lists == "set":
        rows, columns = first_of_each(before), first_of_each(after)
    if lists != "ordered":
        sides = [[element_key(items[place], lists) for place in places] for items, places in ((before, rows), (after, columns))]
        if all(key is not MISSING for side in sides for key in side):
            pairs = {rows[row]: columns[column] for row, column in pairs_by_key(*sides).items()}
    met = set(pairs.values())
    return list(pairs.items()), [row for row in rows if row not in pairs], [column for column in columns if column not in met]


def element_key(element: Any, lists: ListMode) -> Any:
    """What an element is paired by: its key, or the whole of it; MISSING when it has no such key."""
    if not isinstance(lists, tuple):
        return json_key(element)
    value = next(field_places(element, lists))[1]
    return MISSING if value is MISSING else json_key(value)


def touches(change: StateChange, path: FieldTokens) -> bool:
    """Whether *change* is at *path*, below it, or takes in something that stands there."""
    size = min(len(change.tokens), len(path))
    if not is_at(change.tokens[:size], path[:size]):
        return False
    return size == len(path) or any(side is not MISSING and values_at(side, path[size:]) for side in (change.before, change.after))


class StateFindings:
    """What is wrong with the state, with the pointers of evidence, and what is not known."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.unknown: list[str] = []
        self.evidence: list[str] = []
        self.asked = 0

    def blame(self, what: str, changes: list[StateChange]) -> None:
        """Notes *changes* that must not be."""
        more = f"; and {len(changes) - CHANGES_TOLD} more" if len(changes) > CHANGES_TOLD else ""
        self.wrong.append(f"{what}: {'; '.join(change.told for change in changes[:CHANGES_TOLD])}{more}")
        self.evidence += [f"/state/{'before' if change.after is MISSING else 'after'}{change.pointer}" for change in changes]


def state_paths(settings: JsonObject, name: str) -> list[tuple[str, FieldTokens]]:
    """(path, its tokens) of each path in the parameter *name*. Raises ConfigurationError."""
    value = settings[name]
    paths = [] if value is None else [value] if isinstance(value, str) else value
    return [(path, parse_field_path(path, f"/{name}" if path is value else f"/{name}/{index}")) for index, path in enumerate(paths)]


def condition_status(settings: JsonObject, view: View) -> str:
    """What the entries of `must_not_change_if` say together: pass when all do, fail when one does not, else error; '' for none."""
    found = [child.evaluate(view.observation, view.case, view.memo).status for child in settings["must_not_change_if"]]
    statuses = {status for status in found if status != NOT_APPLICABLE}
    return "" if not statuses else FAIL if FAIL in statuses else PASS if statuses == {PASS} else ERROR


def is_below(change: StateChange, path: FieldTokens) -> bool:
    """Whether *change* is at *path* or below it."""
    return is_at(change.tokens[: len(path)], path)


class StateRule:
    """The settings of a `state`, compiled. Raises ConfigurationError."""

    def __init__(self, settings: JsonObject) -> None:
        self.lists = parse_list_mode(settings["lists"], "/lists")
        self.rules, list_rules = compile_field_rules(settings["expect"] or [], self.lists, "/expect")
        self.allowed, self.forbidden = state_paths(settings, "allow_changes"), state_paths(settings, "forbid_changes")
        asks_fields = any(rule.asks != ASKS_NOTHING for rule in self.rules)
        if not (asks_fields or self.allowed or self.forbidden or settings["must_not_change_if"]):
            hint = "give expect, allow_changes, forbid_changes or must_not_change_if"
            raise ConfigurationError("", "asks nothing of the state", hint)
        if any(not tokens for _, tokens in self.allowed):
            raise ConfigurationError("/allow_changes", "allows every change, which asks nothing", "name the parts that may change")
        self.comparison = FieldComparison(self.rules, list_rules, self.lists, counts_rest=False)
        self.compares = any(rule.asks == ASKS_REFERENCE for rule in self.rules)

    def ask_fields(self, findings: StateFindings, before: Any, after: Any) -> None:
        """Asks the rules of `expect`."""
        if after is MISSING or (self.compares and before is MISSING):
            findings.unknown.append(f"the state {'after' if after is MISSING else 'before'} was not reported")
            return
        for rule in self.rules:
            places = [found for _, found in field_places(before, rule.tokens)] if rule.asks == ASKS_REFERENCE else []
            if places and all(found is MISSING for found in places):
                findings.unknown.append(f"the state before has nothing at {quoted(rule.path)}")
        fields = self.comparison.compare(before if self.compares else MISSING, after)
        findings.asked += len(fields)
        differing = [field for field in fields if not field.is_met]
        if differing:
            told = "; ".join(f"{visible(field.pointer, 80) or 'the whole'}: {field.note}" for field in differing[:CHANGES_TOLD])
            findings.wrong.append(told + (f"; and {len(differing) - CHANGES_TOLD} more" if len(differing) > CHANGES_TOLD else ""))
            findings.evidence += [f"/state/after{field.pointer}" for field in differing]

    def ask_changes(self, findings: StateFindings, before: Any, after: Any, condition: str) -> list[StateChange] | None:
        """The changes, after asking what may and must not be one; *condition* is what `must_not_change_if` says. None: nobody asked."""
        is_bound = condition in (PASS, ERROR)
        if not (self.allowed or self.forbidden or is_bound):
            return None
        if before is MISSING or after is MISSING:
            side = "before" if before is MISSING else "after"
            findings.unknown.append(f"the state {side} was not reported, so what changed is not known")
            return None
        changes = list(state_changes(before, after, self.lists))
        stray = [change for change in changes if self.allowed and not any(is_below(change, tokens) for _, tokens in self.allowed)]
        if stray:
            findings.blame("changed, which only allowed paths may", stray)
        for path, tokens in self.forbidden:
            touched = [change for change in changes if touches(change, tokens)]
            if touched:
                findings.blame(f"changed, which {quoted(path) if path else 'the state'} must not", touched)
        if changes and condition == PASS:
            findings.blame("changed, though nothing may here", changes)
        elif changes and condition == ERROR:
            findings.unknown.append("whether the state may change is not known: must_not_change_if has no answer")
        findings.asked += 1
        return changes


@evaluator(
    "state",
    1,
    "What the agent did to the world is what it should have done: the state before and after.",
    [
        Parameter(
            "expect", "list", None,
            "rules about the state afterwards, as those of `fields`: {path, op, value, …}; a rule without a value compares with the "
            'same path of the state before, such as {"path": "/balance", "op": "numeric", "abs_tol": 5}',
        ),
        Parameter("allow_changes", "texts", None, "the paths at or below which something may change; nothing else does"),
        Parameter("forbid_changes", "texts", None, 'the paths at and below which nothing may change; "" is the whole state'),
        Parameter(
            "must_not_change_if", "entries", [],
            "entries, of any type, without ids: if all of them pass, nothing at all may change; for a refusal, or a condition on the case",
        ),
        Parameter(
            "lists", "any", "ordered",
            'how the elements of lists are paired: ordered, multiset, set, or {"key": pointer} for elements that have such a key',
        ),
    ],
    example={
        "entry": {
            "id": "one_refund", "type": "state",
            "expect": [{"path": "/orders/A-7/status", "value": "refunded"}, {"path": "/orders/A-7/total"}],
            "allow_changes": ["/orders/*/status", "/refunds"],
            "must_not_change_if": [{"type": "contains", "values": "I cannot"}],
        },
        "observation": {
            "output": "Your order A-7 was refunded.",
            "state": {
                "before": {"orders": {"A-7": {"status": "paid", "total": 12.5}}, "refunds": []},
                "after": {"orders": {"A-7": {"status": "refunded", "total": 12.5}}, "refunds": [{"order": "A-7"}]},
            },
        },
        "outcome": "pass",
    },
    selects=False,
)  # fmt: skip
def evaluate_state(settings: JsonObject) -> Check:
    """Reads `state.before` and `state.after`. An object that appears or goes is one change at its own place, so `allow_changes`
    must name that place or one above it. What is wrong decides, whatever else was not measured."""
    rule = StateRule(settings)

    def check(view: View) -> Outcome:
        state = view.observation.get("state")
        if not isinstance(state, dict):
            raise NotMeasurable("the observation has no state with before and after")
        before, after = (MISSING if state.get(side) is None else state[side] for side in ("before", "after"))
        findings = StateFindings()
        if rule.rules:
            rule.ask_fields(findings, before, after)
        changes = rule.ask_changes(findings, before, after, condition_status(settings, view))
        if findings.unknown and not findings.wrong:
            raise NotMeasurable(visible("; ".join(dict.fromkeys(findings.unknown)), 1000))
        if not findings.asked:
            return not_applicable("nothing is asked of the state here")
        evidence = tuple({"pointer": pointer} for pointer in list(dict.fromkeys(findings.evidence))[:CHANGES_EVIDENCE])
        reason = visible("; ".join(findings.wrong), 1500) or "as it should be"
        return decided(not findings.wrong, reason, None if changes is None else {"changes": len(changes)}, evidence)

    return check

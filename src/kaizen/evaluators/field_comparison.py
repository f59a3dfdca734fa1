"""A document compared with a reference, field by field; lists paired one to one.

A field is a leaf of the reference, or what a rule says; it is met or not. Elements of lists
are paired one to one, in the way `lists` says; an element without a partner is a field that
is not met, on whichever side it stands. `extra` is about the keys of objects alone.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kaizen.evaluators.assignment import best_assignment
from kaizen.evaluators.outcomes import NotMeasurable
from kaizen.evaluators.predicates import MISSING
from kaizen.foundation.jsonio import JsonError, encode_compact, json_equal, json_key, parse_json, pointer_token
from kaizen.foundation.text import counted, visible

if TYPE_CHECKING:
    from fractions import Fraction

MAX_FIELD_VISITS = 300_000  # about a second: lists of an answer could otherwise be made as long as to never end
MAX_PAIRING_STEPS = 2_000_000  # (shorter side)² × longer side
ASKS_NOTHING, ASKS_ANSWER, ASKS_REFERENCE = "nothing", "answer", "reference"

ListMode = str | tuple[str, ...]  # ordered, multiset, set, or the pointer tokens of the key
# (expected, found) -> '' when met, what differs when not, None when nothing is asked.
FieldJudge = Callable[[Any, Any], str | None]
FieldTokens = tuple[str, ...]


class Field(NamedTuple):
    """One field: where it stands in the answer (in the reference, if the answer lacks it), and whether it is met."""

    pointer: str
    weight: "int | Fraction"
    is_met: bool
    note: str


class FieldRule(NamedTuple):
    """A rule: its path as written and as tokens, what it asks (ASKS_…), the value to compare with (MISSING: the reference's)."""

    path: str
    tokens: FieldTokens
    asks: str
    judge: FieldJudge
    value: Any
    weight: "int | Fraction"


class ListRule(NamedTuple):
    """How the lists at a path are paired."""

    tokens: FieldTokens
    mode: ListMode


def field_shown(value: Any) -> str:
    """*value* in a reason: its JSON, cut."""
    return "nothing" if value is MISSING else visible(encode_compact(value), 60)


def field_container(value: Any) -> Any:
    """*value* if one can go into it: an object, a list, or the one that a text holds; else None."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = parse_json(value)
        except JsonError:
            return None
    return value if isinstance(value, (dict, list)) else None


def field_children(container: Any) -> Iterable[tuple[Any, Any]]:
    """(key or index, value) of all that is in *container*."""
    return container.items() if isinstance(container, dict) else enumerate(container)


def field_places(value: Any, tokens: FieldTokens, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """(pointer, what stands there or MISSING) for all places below *value* that *tokens*, with wildcards, mean."""
    for index, token in enumerate(tokens):
        container = field_container(value)
        if token == "*" and container is not None:
            for key, item in field_children(container):
                yield from field_places(item, tokens[index + 1 :], pointer + pointer_token(key))
            return
        if isinstance(container, dict) and token in container:
            value = container[token]
        elif isinstance(container, list) and token.isascii() and token.isdigit() and len(token) < 10 and int(token) < len(container):
            value = container[int(token)]
        else:
            yield pointer + "".join(map(pointer_token, tokens[index:])), MISSING
            return
        pointer += pointer_token(token)
    yield pointer, value


def is_at(tokens: FieldTokens, pattern: FieldTokens) -> bool:
    """True when *pattern*, with wildcards, means the place at *tokens*."""
    if len(pattern) != len(tokens):
        return False
    for part, token in zip(pattern, tokens, strict=True):  # noqa: SIM110 - twice as fast, and asked for every field and rule
        if part not in ("*", token):
            return False
    return True


class FieldComparison:
    """Compares answers with references by the same rules.

    `counts_rest`: leaves of the reference under no rule are fields. `counts_extra`: so are keys of objects that
    the reference does not have. `are_close` says which numbers count as equal beside equal ones.
    """

    def __init__(
        self,
        rules: list[FieldRule],
        list_rules: list[ListRule],
        lists: ListMode,
        counts_rest: bool = True,
        counts_extra: bool = False,
        are_close: Callable[[Any, Any], bool] | None = None,
    ) -> None:
        self.rules = rules
        self.plain = {rule.tokens: rule for rule in rules if "*" not in rule.tokens}
        self.general = [rule for rule in rules if "*" in rule.tokens]
        self.list_rules = list_rules
        self.lists = lists
        self.counts_rest = counts_rest
        self.counts_extra = counts_extra
        self.are_close = are_close
        self.visits = 0

    def compare(self, reference: Any, answer: Any) -> list[Field]:
        """All fields. Raises NotMeasurable when lists are too long to be paired."""
        self.visits = 0
        fields: list[Field] = []
        self.visit(reference, answer, (), "", fields)
        for rule in self.rules:
            if rule.asks == ASKS_ANSWER:
                fields += rule_fields(rule, reference, answer)
        return fields

    def is_equal(self, reference: Any, answer: Any) -> bool:
        """True when every field is met."""
        return all(field.is_met for field in self.compare(reference, answer))

    def rule_at(self, tokens: FieldTokens) -> FieldRule | None:
        """The first rule whose path means *tokens*."""
        rule = self.plain.get(tokens)  # narrower ones come first: the other way round they are refused
        if rule is None:
            for other in self.general:
                if is_at(tokens, other.tokens):
                    return other
        return rule

    def has_rule_below(self, tokens: FieldTokens) -> bool:
        """True when a rule speaks of what stands below *tokens*."""
        return any(len(rule.tokens) > len(tokens) and is_at(tokens, rule.tokens[: len(tokens)]) for rule in self.rules)

    def visit(self, expected: Any, found: Any, tokens: FieldTokens, pointer: str, fields: list[Field]) -> None:
        """Adds the fields at and below one place to *fields*; *tokens* lead there in the reference, *pointer* in the answer."""
        self.visits += 1
        if self.visits > MAX_FIELD_VISITS:
            raise NotMeasurable("the lists are too long to be paired; name a key for their elements in lists")
        rule = self.rule_at(tokens) if self.rules else None
        if rule is not None:
            note = rule.judge(expected, found) if rule.asks == ASKS_REFERENCE else None
            if note is not None:
                fields.append(Field(pointer, rule.weight, not note, note))
        elif isinstance(expected, dict) and (expected or self.counts_extra):
            self.visit_object(expected, found, tokens, pointer, fields)
        elif isinstance(expected, list) and expected:
            self.visit_list(expected, found, tokens, pointer, fields)
        elif self.counts_rest:
            fields.append(self.leaf(expected, found, pointer))

    def leaf(self, expected: Any, found: Any, pointer: str) -> Field:
        """The field of a scalar or of an empty object or list; an empty object is met by any object."""
        if isinstance(expected, (dict, list)):
            container = field_container(found)
            is_met = isinstance(container, dict) if isinstance(expected, dict) else container == []
        else:
            is_met = json_equal(expected, found) or self.are_close is not None and self.are_close(expected, found)
        return Field(pointer, 1, is_met, "" if is_met else differing_note(expected, found))

    def visit_object(self, expected: dict[str, Any], found: Any, tokens: FieldTokens, pointer: str, fields: list[Field]) -> None:
        """Adds the fields of an object, and what is extra in the answer, if that counts."""
        container = field_container(found)
        answer = container if isinstance(container, dict) else {}
        if not expected and self.counts_rest:
            fields.append(self.leaf(expected, found, pointer))
        # Sorted, because the order of keys in a case is nothing that its fingerprint knows.
        for key in sorted(expected):
            self.visit(expected[key], answer.get(key, MISSING), (*tokens, key), pointer + pointer_token(key), fields)
        if self.counts_extra:
            for key in sorted(answer.keys() - expected.keys()):
                self.visit_extra(answer[key], (*tokens, key), pointer + pointer_token(key), fields)

    def visit_extra(self, found: Any, tokens: FieldTokens, pointer: str, fields: list[Field]) -> None:
        """Adds the fields of what the reference does not have; what a rule speaks of is not extra."""
        if self.rule_at(tokens) is None:
            container = field_container(found)
            if container is not None and self.has_rule_below(tokens):
                for key, item in field_children(container):
                    self.visit_extra(item, (*tokens, str(key)), pointer + pointer_token(key), fields)
            else:
                fields.append(Field(pointer, 1, False, "is not in the reference"))

    # --- Lists -------------------------------------------------------------------------

    def visit_list(self, expected: list[Any], found: Any, tokens: FieldTokens, pointer: str, fields: list[Field]) -> None:
        """Adds the fields of the elements of a list, paired with those of the answer."""
        container = field_container(found)
        answer = container if isinstance(container, list) else []
        mode = next((rule.mode for rule in self.list_rules if is_at(tokens, rule.tokens)), self.lists)
        rows, columns = list(range(len(expected))), list(range(len(answer)))
        if mode == "set":
            rows, columns = first_of_each(expected), first_of_each(answer)
        pairs = self.pairs(expected, answer, rows, columns, tokens, mode)
        for row in rows:
            column = pairs.get(row)
            there = MISSING if column is None else answer[column]
            self.visit(expected[row], there, (*tokens, str(row)), f"{pointer}/{row if column is None else column}", fields)
        if self.counts_rest or self.has_rule_below(tokens):
            for column in sorted(set(columns).difference(pairs.values())):
                if self.rule_at((*tokens, str(column))) is None:
                    fields.append(Field(f"{pointer}/{column}", 1, False, "has no partner in the reference"))

    def pairs(
        self, expected: list[Any], answer: list[Any], rows: list[int], columns: list[int], tokens: FieldTokens, mode: ListMode
    ) -> dict[int, int]:
        """{place in *expected*: place in *answer*} for the elements that belong together."""
        if isinstance(mode, tuple):
            keys = [json_key(next(field_places(element, mode))[1]) for element in expected]
            if MISSING not in keys:
                return pairs_by_key(keys, [json_key(next(field_places(element, mode))[1]) for element in answer])
            mode = "ordered"  # a list whose elements have no such key
        if mode == "ordered":
            return dict(zip(rows, columns, strict=False))
        pairs: dict[int, int] = {}
        if self.are_close is None and not self.has_rule_below(tokens):  # equality is transitive: the same belong together
            same = pairs_by_key([json_key(expected[row]) for row in rows], [json_key(answer[column]) for column in columns])
            pairs = {rows[row]: columns[column] for row, column in same.items()}
            rows = [row for row in rows if row not in pairs]
            columns = [column for column in columns if column not in set(pairs.values())]
        shorter, longer = sorted((len(rows), len(columns)))
        if shorter * shorter * longer > MAX_PAIRING_STEPS:
            raise NotMeasurable(
                f"lists with {counted(len(rows), 'element')} expected and {len(columns)} found are too long to be paired; "
                "name a key for their elements in lists"
            )
        gains = self.gains(expected, answer, rows, columns, tokens)
        return pairs | {rows[row]: columns[column] for row, column in enumerate(best_assignment(gains)) if column is not None}

    def gains(self, expected: list[Any], answer: list[Any], rows: list[int], columns: list[int], tokens: FieldTokens) -> list[list[Any]]:
        """What each pair is worth: the most met weight in all, then the fewest fields beside it."""
        tables: list[list[list[Field]]] = [[[] for _ in columns] for _ in rows]
        for row, table in zip(rows, tables, strict=True):
            for column, fields in zip(columns, table, strict=True):
                self.visit(expected[row], answer[column], (*tokens, str(row)), "", fields)
        whole = 1 + sum(field.weight for table in tables for fields in table for field in fields)
        return [[sum(field.weight * (whole * field.is_met - 1) for field in fields) for fields in table] for table in tables]


def first_of_each(elements: list[Any]) -> list[int]:
    """The places of *elements* without those that hold the same as an earlier one."""
    seen: dict[Any, int] = {}
    for place, element in enumerate(elements):
        seen.setdefault(json_key(element), place)
    return list(seen.values())


def pairs_by_key(keys: list[Any], others: list[Any]) -> dict[int, int]:
    """{place in *keys*: place in *others*} of the same key, one to one, in order."""
    places: dict[Any, list[int]] = {}
    for place, key in enumerate(others):
        places.setdefault(key, []).append(place)
    for found in places.values():
        found.reverse()
    return {place: places[key].pop() for place, key in enumerate(keys) if places.get(key)}


def differing_note(expected: Any, found: Any) -> str:
    """'expected 1250, found 1205', or that it is missing."""
    if found is MISSING:
        return f"is missing, expected {field_shown(expected)}"
    return f"expected {field_shown(expected)}, found {field_shown(found)}"


def rule_fields(rule: FieldRule, reference: Any, answer: Any) -> Iterator[Field]:
    """The fields of a rule that asks of the answer alone: one for each place its path means there.

    A wildcard over nothing gives one field that is not met, unless the reference has nothing there either.
    """
    places = list(field_places(answer, rule.tokens))
    if not places and reference is not MISSING and not list(field_places(reference, rule.tokens)):
        return
    for pointer, found in places or [(rule.path, MISSING)]:
        note = rule.judge(rule.value, found)
        if note is not None:
            yield Field(pointer, rule.weight, not note, note)

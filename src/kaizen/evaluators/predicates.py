"""Predicates: small rules about one JSON value, the same in every parameter.

    "ok", 7, {"a": [1]}          a literal: the same JSON value, types apart ("7" is not 7, 1 is 1.0)
    {"$gt": 3, "$le": 10}        an object whose keys all begin with $: each of them holds
    {"phone": {"$regex": "^\\\\+"}}  a literal may hold predicates at any depth; $eq and $literal quote one

    $eq V, $ne V                 the same value, another value
    $lt $le $gt $ge V            order of two numbers (exact) or of two texts (by code point); unlike types: false
    $in [V, …], $not_in [V, …]   one of these values, none of them
    $regex T, $glob T            the text holds the pattern; the whole text is what the glob says (* also spans /)
    $exists true|false           there is a value (null is one), there is none
    $not P                       P does not hold
    $any [P, …] $all $none       of these predicates about the same value one, each, none holds
    $count {"of": P, "min", "max"}  so many elements of the list hold P (without `of`: elements)
    $literal V                   V itself, whatever its keys look like

`$any`, `$all` and `$none` combine predicates about one value; elements of a list are asked
with `$count`: "some" is min 1, "no" is max 0, "each" is max 0 of {"$not": P}. A value that is
absent holds nothing but `$exists: false` and what is made of negations: `$ne`, `$not_in`, `$not`
and `$none` are exactly the opposite of what they deny.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from kaizen.evaluators.outcomes import ConfigurationError, refuse_empty
from kaizen.evaluators.regex_timer import compile_pattern, timed
from kaizen.evaluators.registry import is_json_number, json_type_phrase
from kaizen.foundation.jsonio import json_equal, pointer_token
from kaizen.foundation.text import did_you_mean, quoted


class MissingValue:
    """The type of MISSING, which no JSON value equals."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = MissingValue()  # what a predicate is asked about when a pointer led nowhere


class Predicate(NamedTuple):
    """A compiled predicate: call it with a value, or with MISSING.

    `is_growing`: what holds for a part of a value holds for all of it, as `$regex` does and `$not` does not.
    """

    holds: Callable[[Any], bool]
    is_growing: bool = True

    def __call__(self, value: Any) -> bool:
        return self.holds(value)

    def about_part(self, value: Any) -> bool | None:
        """The answer about a value found in a field that was cut short; None where what was cut off could change it.

        Numbers, true, false and null are whole; of a text, a list, an object or an absent value more may have been there.
        """
        answer = self.holds(value)
        is_whole = value is None or isinstance(value, (bool, int, float))
        return answer if is_whole or (answer and self.is_growing) else None


def is_predicate(document: Any) -> bool:
    """True for an object whose keys all begin with $; anything else is a literal."""
    return isinstance(document, dict) and bool(document) and all(key.startswith("$") for key in document)


def compile_predicate(document: Any, pointer: str = "", at_least: bool = False) -> Predicate:
    """The predicate that *document* writes, which stands at *pointer* in its entry.

    With *at_least* an object asks for at least its keys, at every depth; lists are compared element by
    element. Raises ConfigurationError, and NothingAsked for an empty list out of a case.
    """
    if not is_predicate(document):
        return compile_literal(document, pointer, at_least)
    parts = []
    for key, operand in document.items():
        if key not in OPERATORS:
            raise ConfigurationError(pointer + pointer_token(key), f"unknown predicate {quoted(key)}", did_you_mean(key, OPERATORS))
        parts.append(OPERATORS[key](operand, pointer + pointer_token(key), at_least))
    return parts[0] if len(parts) == 1 else every_predicate(parts)


def every_predicate(parts: list[Predicate]) -> Predicate:
    """Holds when each of *parts* does."""
    return Predicate(lambda value: all(part.holds(value) for part in parts), all(part.is_growing for part in parts))


# --- Literals --------------------------------------------------------------------------


def compile_literal(document: Any, pointer: str, at_least: bool) -> Predicate:
    """The same JSON value as *document*, in which nested predicates are asked."""
    if isinstance(document, dict) and (at_least or holds_predicate(document)):
        fields = {key: compile_predicate(item, pointer + pointer_token(key), at_least) for key, item in document.items()}
        return object_predicate(fields, at_least)
    if isinstance(document, list) and (at_least or holds_predicate(document)):
        return elements_predicate(
            [compile_predicate(item, pointer + pointer_token(index), at_least) for index, item in enumerate(document)]
        )
    return equal_predicate(document)


def holds_predicate(document: Any) -> bool:
    """True when *document* is a predicate, or holds one at any depth."""
    if isinstance(document, dict):
        return is_predicate(document) or any(map(holds_predicate, document.values()))
    return isinstance(document, list) and any(map(holds_predicate, document))


def equal_predicate(literal: Any) -> Predicate:
    """The same JSON value as *literal*."""
    if isinstance(literal, str):
        return Predicate(lambda value: isinstance(value, str) and value == literal)
    return Predicate(lambda value: json_equal(value, literal))


def object_predicate(fields: dict[str, Predicate], at_least: bool) -> Predicate:
    """An object whose values at the keys of *fields* hold; without *at_least* it has no other keys."""

    def holds(value: Any) -> bool:
        if not isinstance(value, dict) or not (at_least or value.keys() <= fields.keys()):
            return False
        return all(field.holds(value.get(key, MISSING)) for key, field in fields.items())

    return Predicate(holds, all(field.is_growing for field in fields.values()))


def elements_predicate(items: list[Predicate]) -> Predicate:
    """A list as long as *items*, each element of which holds at its place."""

    def holds(value: Any) -> bool:
        return (
            isinstance(value, list)
            and len(value) == len(items)
            and all(item.holds(element) for item, element in zip(items, value, strict=True))
        )

    return Predicate(holds, all(item.is_growing for item in items))


# --- Operators: each takes (operand, its pointer, at_least) ------------------------------

CompileOperator = Callable[[Any, str, bool], Predicate]


def refuse_operand(pointer: str, operand: Any, wanted: str) -> ConfigurationError:
    """The error that says what the operator at *pointer* takes."""
    return ConfigurationError(pointer, f"{pointer.rpartition('/')[2]} takes {wanted}, not {json_type_phrase(operand)}")


def negated_predicate(predicate: Predicate) -> Predicate:
    """Holds exactly when *predicate* does not."""
    return Predicate(lambda value: not predicate.holds(value), False)


def order_operator(compare: Callable[[Any, Any], bool]) -> CompileOperator:
    """The operator that compares two numbers or two texts with *compare*."""

    def compile_order(operand: Any, pointer: str, at_least: bool) -> Predicate:
        if is_json_number(operand):
            return Predicate(lambda value: is_json_number(value) and compare(value, operand))
        if isinstance(operand, str):
            return Predicate(lambda value: isinstance(value, str) and compare(value, operand))
        raise refuse_operand(pointer, operand, "a number or a text")

    return compile_order


def compile_in(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """One of the values of *operand*."""
    if not isinstance(operand, list):
        raise refuse_operand(pointer, operand, "a list of values")
    refuse_empty(operand, pointer)
    texts = frozenset(item for item in operand if isinstance(item, str))
    others = [item for item in operand if not isinstance(item, str)]
    return Predicate(lambda value: value in texts if isinstance(value, str) else any(json_equal(value, item) for item in others))


def compile_not_in(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """None of the values of *operand*."""
    return negated_predicate(compile_in(operand, pointer, at_least))


def compile_regex(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """A text in which the pattern *operand* is found, under the time limit of patterns."""
    if not isinstance(operand, str):
        raise refuse_operand(pointer, operand, "a regular expression")
    search = compile_pattern(operand, 0, pointer).search
    return Predicate(lambda value: isinstance(value, str) and timed(lambda: search(value)) is not None)


def compile_globs(globs: list[str], pointer: str) -> Callable[[str], bool]:
    """Whether a text is, whole and case-sensitive, what one of *globs* says; * and ? also stand for a slash."""
    from fnmatch import translate

    if any(not isinstance(glob, str) or not glob for glob in globs):
        raise ConfigurationError(pointer, "a glob is a text that is not empty")
    plain = frozenset(glob for glob in globs if not re.search(r"[*?\[]", glob))
    wild = [translate(glob) for glob in globs if glob not in plain]
    if not wild:
        return plain.__contains__
    matches = [re.compile(pattern).match for pattern in wild]
    return lambda text: text in plain or any(match(text) is not None for match in matches)


def compile_glob(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """A text that is what the glob *operand* says."""
    is_named = compile_globs([operand], pointer)
    return Predicate(lambda value: isinstance(value, str) and is_named(value))


def compile_exists(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """There is a value, or there is none."""
    if not isinstance(operand, bool):
        raise refuse_operand(pointer, operand, "true or false")
    return Predicate(lambda value: (value is not MISSING) is operand, operand)


def compile_each(operand: Any, pointer: str, at_least: bool) -> list[Predicate]:
    """The predicates of the list *operand*."""
    if not isinstance(operand, list):
        name = pointer.rpartition("/")[2]
        hint = 'elements of a list are asked with {"$count": {"of": …, "min": 1}}'
        raise ConfigurationError(pointer, f"{name} takes a list of predicates, not {json_type_phrase(operand)}", hint)
    refuse_empty(operand, pointer)
    return [compile_predicate(item, pointer + pointer_token(index), at_least) for index, item in enumerate(operand)]


def compile_any(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """One of several predicates about the same value."""
    parts = compile_each(operand, pointer, at_least)
    return Predicate(lambda value: any(part.holds(value) for part in parts), all(part.is_growing for part in parts))


def compile_all(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """Each of several predicates about the same value."""
    return every_predicate(compile_each(operand, pointer, at_least))


def compile_none(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """None of several predicates about the same value."""
    return negated_predicate(compile_any(operand, pointer, at_least))


def compile_not(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """The opposite of one predicate."""
    return negated_predicate(compile_predicate(operand, pointer, at_least))


def compile_count(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """A list of whose elements so many hold."""
    if not isinstance(operand, dict):
        raise refuse_operand(pointer, operand, 'an object, {"of": predicate, "min": 1, "max": 3}')
    for key in operand:
        if key not in ("of", "min", "max"):
            raise ConfigurationError(pointer + pointer_token(key), f"unknown key {quoted(key)}", did_you_mean(key, ("of", "min", "max")))
    low, high = count_bounds(operand, pointer)
    of = compile_predicate(operand["of"], pointer + "/of", at_least) if "of" in operand else Predicate(lambda value: True)

    def holds(value: Any) -> bool:
        if not isinstance(value, list):
            return False
        number = sum(1 for item in value if of.holds(item))
        return number >= low and (high is None or number <= high)

    return Predicate(holds, high is None and of.is_growing)


def count_bounds(document: dict[str, Any], pointer: str) -> tuple[int, int | None]:
    """(min, max) of *document*, 0 and None where absent. Raises ConfigurationError for none, negative or crossed ones."""
    low, high = document.get("min"), document.get("max")
    for key, bound in (("min", low), ("max", high)):
        if bound is not None and (not isinstance(bound, int) or isinstance(bound, bool) or bound < 0):
            raise ConfigurationError(f"{pointer}/{key}", f"{key} is not a whole number from 0")
    if low is None and high is None:
        raise ConfigurationError(pointer, "has neither min nor max, so that anything would do", "give one of them")
    if low is not None and high is not None and low > high:
        raise ConfigurationError(f"{pointer}/min", f"min {low} is greater than max {high}")
    return low or 0, high


OPERATORS: dict[str, CompileOperator] = {
    "$eq": lambda operand, pointer, at_least: equal_predicate(operand),
    "$ne": lambda operand, pointer, at_least: negated_predicate(equal_predicate(operand)),
    "$lt": order_operator(lambda value, bound: bool(value < bound)),
    "$le": order_operator(lambda value, bound: bool(value <= bound)),
    "$gt": order_operator(lambda value, bound: bool(value > bound)),
    "$ge": order_operator(lambda value, bound: bool(value >= bound)),
    "$in": compile_in,
    "$not_in": compile_not_in,
    "$regex": compile_regex,
    "$glob": compile_glob,
    "$exists": compile_exists,
    "$not": compile_not,
    "$any": compile_any,
    "$all": compile_all,
    "$none": compile_none,
    "$count": compile_count,
    "$literal": lambda operand, pointer, at_least: equal_predicate(operand),
}

"""JSON Schema keywords for any value, numbers and text, and what keywords are made of.

Each function makes the check of one keyword: (builder, schema, pointer of the schema,
keyword) -> check, with everything that does not depend on the value done beforehand.
"""

import operator
from collections.abc import Callable
from typing import Any

from kaizen.foundation.jsonio import JsonObject, json_equal, json_key, json_type, pointer_token
from kaizen.foundation.schema_builder import (
    MAX_SCHEMA_BREACHES,
    SchemaBuilder,
    SchemaCheck,
    SchemaError,
    SchemaFindings,
    SchemaPath,
    schema_accepts,
    schema_pointer,
    schema_shown,
)
from kaizen.foundation.schema_formats import SCHEMA_FORMATS
from kaizen.foundation.text import did_you_mean, listed, quoted

# keyword: (of the length, what must hold, what is wrong otherwise)
SCHEMA_BOUNDS: dict[str, tuple[bool, Callable[[Any, Any], bool], str]] = {
    "minimum": (False, operator.ge, "is less than the minimum {}"),
    "maximum": (False, operator.le, "is greater than the maximum {}"),
    "exclusiveMinimum": (False, operator.gt, "is not greater than {}"),
    "exclusiveMaximum": (False, operator.lt, "is not less than {}"),
    "minLength": (True, operator.ge, "is shorter than {} characters"),
    "maxLength": (True, operator.le, "is longer than {} characters"),
    "minItems": (True, operator.ge, "has fewer than {} items"),
    "maxItems": (True, operator.le, "has more than {} items"),
    "minProperties": (True, operator.ge, "has fewer than {} properties"),
    "maxProperties": (True, operator.le, "has more than {} properties"),
}


# --- What keywords must be made of ---------------------------------------------------


def schema_operand(schema: JsonObject, pointer: str, keyword: str, kinds: tuple[type, ...], wanted: str) -> Any:
    """What stands at *keyword*. Raises SchemaError when its type is none of *kinds*."""
    operand = schema[keyword]
    if type(operand) not in kinds:
        raise SchemaError(pointer + pointer_token(keyword), f"is a JSON {json_type(operand)}, not {wanted}")
    return operand


def schema_list(schema: JsonObject, pointer: str, keyword: str, wanted: str) -> list[Any]:
    """The list at *keyword*, which may not be empty."""
    operand: list[Any] = schema_operand(schema, pointer, keyword, (list,), f"a list of {wanted}")
    if not operand:
        raise SchemaError(pointer + pointer_token(keyword), f"is an empty list; it needs {wanted}")
    return operand


def schema_map(schema: JsonObject, pointer: str, keyword: str, wanted: str) -> JsonObject:
    """The object at *keyword*."""
    operand: JsonObject = schema_operand(schema, pointer, keyword, (dict,), f"an object of {wanted}")
    return operand


def schema_names(names: Any, pointer: str) -> list[str]:
    """*names*, when they are a list of different strings."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise SchemaError(pointer, "must be a list of property names, each once")
    return names


def schema_count(schema: JsonObject, pointer: str, keyword: str) -> int:
    """The count at *keyword*: an integer from 0."""
    operand = schema_operand(schema, pointer, keyword, (int, float), "a number")
    if operand != int(operand) or operand < 0:
        raise SchemaError(pointer + pointer_token(keyword), "must be an integer from 0")
    return int(operand)


def schema_sequence(checks: list[SchemaCheck]) -> SchemaCheck:
    """A check that makes all of *checks*."""

    def check_all(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        for check in checks:
            check(value, path, found)

    return check_all


# --- Any value -----------------------------------------------------------------------


def schema_definitions(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> None:
    """Compiles all definitions, so that a mistake in one that nobody refers to is found as well."""
    for name in schema_map(schema, pointer, keyword, "schemas"):
        builder.part(schema, pointer, keyword, name)


def schema_reference(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """$ref: the check is filled in when the whole schema is known."""
    reference = schema_operand(schema, pointer, keyword, (str,), "a reference")
    cell: list[SchemaCheck] = []
    builder.references.append((pointer, reference, cell))

    def check_reference(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        if type(value) not in (dict, list):
            cell[0](value, path, found)
            return
        key = (id(value), pointer)
        before = len(found)
        if key in found.known:
            found.extend(found.known[key])
        else:
            cell[0](value, path, found)
            if len(found) < MAX_SCHEMA_BREACHES:  # beyond that not everything was looked at
                found.known[key] = tuple(found[before:])

    return check_reference


def schema_enum(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """enum: the value is one of the list."""
    choices = schema_list(schema, pointer, keyword, "values")
    keys = {json_key(choice) for choice in choices}
    text = f"is not one of {listed(map(schema_shown, choices), 8, 'or')}"

    def check_enum(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        if json_key(value) not in keys:
            found.append((path, value, text))

    return check_enum


def schema_const(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """const: the value is this one."""
    constant = schema[keyword]
    text = f"is not {schema_shown(constant)}" if not isinstance(constant, (dict, list)) else "is not the value of const"

    def check_const(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        if not json_equal(value, constant):
            found.append((path, value, text))

    return check_const


def schema_all_of(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """allOf: each of the schemas holds."""
    schemas = schema_list(schema, pointer, keyword, "schemas")
    return schema_sequence([builder.part(schema, pointer, keyword, index, True) for index in range(len(schemas))])


def schema_nearest_branch(branches: list[SchemaFindings]) -> str:
    """What is wrong with the branch that went deepest before its first breach: that is the one that was meant."""
    depths = [schema_pointer(branch[0][0]).count("/") for branch in branches]
    number = depths.index(max(depths))
    path, value, text = branches[number][0]
    return f"nearest is schema {number}, but {schema_pointer(path) or 'there'}: {schema_shown(value)} {text}"


def schema_some_of(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """anyOf and oneOf: at least one of the schemas holds, or exactly one."""
    schemas = schema_list(schema, pointer, keyword, "schemas")
    checks = [builder.part(schema, pointer, keyword, index, True) for index in range(len(schemas))]
    is_one = keyword == "oneOf"

    def check_some(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        branches: list[SchemaFindings] = []
        fitting: list[str] = []
        for index, check in enumerate(checks):
            branch = SchemaFindings(found.known)
            check(value, path, branch)
            if branch:
                branches.append(branch)
            elif not is_one:
                return
            else:
                fitting.append(str(index))
        if not fitting:
            found.append((path, value, f"fits no schema of {keyword}; {schema_nearest_branch(branches)}"))
        elif len(fitting) > 1:
            found.append((path, value, f"fits the schemas {listed(fitting)} of oneOf, not exactly one"))

    return check_some


def schema_not(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """not: the schema does not hold."""
    refused = builder.part(schema, pointer, keyword, None, True)

    def check_not(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        branch = SchemaFindings(found.known)
        refused(value, path, branch)
        if not branch:
            found.append((path, value, "fits the schema of not"))

    return check_not


def schema_if(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """if, then, else: which of the two holds depends on whether the first one does."""
    condition = builder.part(schema, pointer, "if", None, True)
    then = builder.part(schema, pointer, "then", None, True) if "then" in schema else schema_accepts
    otherwise = builder.part(schema, pointer, "else", None, True) if "else" in schema else schema_accepts

    def check_if(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        branch = SchemaFindings(found.known)
        condition(value, path, branch)
        (otherwise if branch else then)(value, path, found)

    return check_if


# --- Numbers and text ----------------------------------------------------------------


def schema_bound(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """The keywords of SCHEMA_BOUNDS."""
    is_length, holds, text = SCHEMA_BOUNDS[keyword]
    operand = schema_operand(schema, pointer, keyword, (int, float), "a number")
    bound = schema_count(schema, pointer, keyword) if is_length else operand
    text = text.format(schema_shown(bound))

    def check_length(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        if not holds(len(value), bound):
            found.append((path, value, text))

    def check_number(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        if not holds(value, bound):
            found.append((path, value, text))

    return check_length if is_length else check_number


def decimal_parts(number: float) -> tuple[int, int]:
    """(digits, exponent of ten) of *number* as it is written in decimal: 2.5 is (25, -1), 1e300 is (1, 300)."""
    mantissa, _, exponent = repr(number).partition("e")
    whole, _, fraction = mantissa.partition(".")
    return int(whole + fraction), int(exponent or 0) - len(fraction)


def schema_multiple_of(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """multipleOf, exact in decimal terms: 0.3 is a multiple of 0.1."""
    step = schema_operand(schema, pointer, keyword, (int, float), "a number")
    if step <= 0:
        raise SchemaError(pointer + pointer_token(keyword), "must be greater than 0")
    step_digits, step_exponent = decimal_parts(step)
    text = f"is not a multiple of {step}"

    def check_multiple(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        digits, exponent = decimal_parts(value)
        shift = exponent - step_exponent
        if (digits * 10**shift % step_digits) if shift >= 0 else (digits % (step_digits * 10**-shift)):
            found.append((path, value, text))

    return check_multiple


def schema_pattern(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """pattern: found anywhere in the text."""
    pattern = schema_operand(schema, pointer, keyword, (str,), "a pattern")
    search = builder.search(pattern, pointer + pointer_token(keyword))
    text = f"does not match the pattern {quoted(pattern, 60)}"

    def check_pattern(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        if not search(value):
            found.append((path, value, text))

    return check_pattern


def schema_format(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """format: the text is written as its document says."""
    name = schema_operand(schema, pointer, keyword, (str,), "the name of a format")
    place = pointer + pointer_token(keyword)

    def is_pattern(text: str) -> bool:
        try:
            return text == "" or builder.search(text, place) is not None
        except SchemaError:
            return False

    known = {**SCHEMA_FORMATS, "regex": is_pattern}
    if name not in known:
        raise SchemaError(place, f"unknown format {quoted(name)}, which would check nothing; {did_you_mean(name, known)}")
    has_format = known[name]

    def check_format(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        if not has_format(value):
            found.append((path, value, f"is not in the format {name}"))

    return check_format

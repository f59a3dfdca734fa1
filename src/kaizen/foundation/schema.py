"""JSON Schema 2020-12: a schema compiled once into a function that names each breach.

    validate = compile_schema({"type": "object", "required": ["id"]})
    validate({})        [SchemaBreach(pointer="", message="the object lacks the required property 'id'")]

All that stands in a schema is checked, or a known annotation, or refused with its pointer:
nothing that was written is silently left out. Not supported, and so refused:
unevaluatedItems and -Properties, $dynamicRef, references out of the schema, an $id below
the root, other drafts. `format` is checked. Patterns are read as JSON Schema says, by
ECMA-262: `$` is the very end of the text, \\d and \\w are ASCII.

A value of a wrong type is one breach, whatever else is asked of it. Values come from strict
JSON, so that their Python types say their JSON types; 1.0 is an integer, true is not.
"""

import re
from collections.abc import Callable
from typing import Any

from kaizen.foundation.jsonio import JsonObject, json_key, pointer_token
from kaizen.foundation.schema_builder import (
    ANY_TYPE,
    MAX_SCHEMA_BREACHES,
    PatternCompiler,
    SchemaBreach,
    SchemaBuilder,
    SchemaCheck,
    SchemaError,
    SchemaFindings,
    SchemaKeyword,
    SchemaPath,
    SchemaTooDeep,
    schema_pointer,
    schema_shown,
)
from kaizen.foundation.schema_keywords import (
    SCHEMA_BOUNDS,
    schema_all_of,
    schema_bound,
    schema_const,
    schema_count,
    schema_definitions,
    schema_enum,
    schema_format,
    schema_if,
    schema_list,
    schema_map,
    schema_multiple_of,
    schema_names,
    schema_not,
    schema_operand,
    schema_pattern,
    schema_reference,
    schema_some_of,
)
from kaizen.foundation.text import counted, quoted

# --- Arrays --------------------------------------------------------------------------


def schema_items(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck | None:
    """prefixItems and items, together at the first of them that is there."""
    if keyword == "items" and "prefixItems" in schema:
        return None
    prefix: list[SchemaCheck] = []
    if "prefixItems" in schema:
        schemas = schema_list(schema, pointer, "prefixItems", "schemas")
        prefix = [builder.part(schema, pointer, "prefixItems", index) for index in range(len(schemas))]
    if isinstance(schema.get("items"), list):
        raise SchemaError(pointer + "/items", "is a list, as in older drafts; use prefixItems")
    rest = builder.part(schema, pointer, "items") if "items" in schema else None

    def check_items(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        for index, (item, check) in enumerate(zip(value, prefix, strict=False)):
            check(item, (path, index), found)
        if rest is not None:
            for index in range(len(prefix), len(value)):
                rest(value[index], (path, index), found)
                if len(found) >= MAX_SCHEMA_BREACHES:
                    break

    return check_items


def schema_contains(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """contains, minContains, maxContains: how many items fit."""
    inner = builder.part(schema, pointer, keyword)
    least = schema_count(schema, pointer, "minContains") if "minContains" in schema else 1
    most = schema_count(schema, pointer, "maxContains") if "maxContains" in schema else None

    def check_contains(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        fitting = 0
        for index, item in enumerate(value):
            branch = SchemaFindings(found.known)
            inner(item, (path, index), branch)
            fitting += not branch
            if fitting >= least if most is None else fitting > most:
                break
        if fitting < least:
            found.append((path, value, f"has {counted(fitting, 'item')} that fit contains, fewer than {least}"))
        elif most is not None and fitting > most:
            found.append((path, value, f"has more than {counted(most, 'item')} that fit contains"))

    return check_contains


def schema_unique_items(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck | None:
    """uniqueItems: no two items are the same JSON value."""
    if not schema_operand(schema, pointer, keyword, (bool,), "true or false"):
        return None

    def check_unique(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        seen: dict[Any, int] = {}
        for index, item in enumerate(value):
            first = seen.setdefault(json_key(item), index)
            if first != index:
                found.append(((path, index), item, f"is the same as item {first}"))
                return

    return check_unique


# --- Objects -------------------------------------------------------------------------


def schema_unknown_property(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
    """The check of a property that additionalProperties: false does not allow."""
    found.append((path, value, "is not allowed: the schema has no property of this name"))


def schema_properties(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck | None:
    """properties, patternProperties and additionalProperties, together at the first of them that is there."""
    if keyword != next(name for name in ("properties", "patternProperties", "additionalProperties") if name in schema):
        return None
    known: dict[str, SchemaCheck] = {}
    if "properties" in schema:
        names = schema_map(schema, pointer, "properties", "schemas")
        known = {name: builder.part(schema, pointer, "properties", name) for name in names}
    patterns: list[tuple[Callable[[str], object], SchemaCheck]] = []
    if "patternProperties" in schema:
        for pattern in sorted(schema_map(schema, pointer, "patternProperties", "schemas")):
            search = builder.search(pattern, pointer + "/patternProperties" + pointer_token(pattern))
            patterns.append((search, builder.part(schema, pointer, "patternProperties", pattern)))
    rest = builder.part(schema, pointer, "additionalProperties") if "additionalProperties" in schema else None
    if schema.get("additionalProperties") is False:
        rest = schema_unknown_property

    def check_properties(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        for key, item in value.items():
            check = known.get(key)
            is_known = check is not None
            if check is not None:
                check(item, (path, key), found)
            for search, matching in patterns:
                if search(key):
                    is_known = True
                    matching(item, (path, key), found)
            if not is_known and rest is not None:
                rest(item, (path, key), found)
            if len(found) >= MAX_SCHEMA_BREACHES:
                break

    return check_properties


def schema_property_names(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """propertyNames: each key fits the schema."""
    inner = builder.part(schema, pointer, keyword)

    def check_names(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        for key in value:
            branch = SchemaFindings(found.known)
            inner(key, (path, key), branch)
            found.extend((where, name, f"is no allowed name of a property: it {text}") for where, name, text in branch)
            if len(found) >= MAX_SCHEMA_BREACHES:
                break

    return check_names


def schema_required(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """required: these properties are there."""
    required = schema_names(schema[keyword], pointer + pointer_token(keyword))

    def check_required(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        for name in required:
            if name not in value:
                found.append((path, value, f"lacks the required property {quoted(name)}"))

    return check_required


def schema_dependent(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """dependentRequired and dependentSchemas: what holds once a property is there."""
    checks: list[tuple[str, SchemaCheck]] = []
    for name, operand in sorted(schema_map(schema, pointer, keyword, "properties").items()):
        if keyword == "dependentSchemas":
            checks.append((name, builder.part(schema, pointer, keyword, name, True)))
        else:
            names = schema_names(operand, pointer + pointer_token(keyword) + pointer_token(name))
            checks.append((name, schema_required_beside(name, names)))

    def check_dependent(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        for name, check in checks:
            if name in value:
                check(value, path, found)

    return check_dependent


def schema_required_beside(name: str, required: list[str]) -> SchemaCheck:
    """A check that *required* are there, since *name* is."""

    def check_beside(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        for other in required:
            if other not in value:
                found.append((path, value, f"has {quoted(name)} but lacks {quoted(other)}"))

    return check_beside


SCHEMA_KEYWORDS: dict[str, SchemaKeyword] = {
    "$defs": SchemaKeyword(ANY_TYPE, schema_definitions),
    "definitions": SchemaKeyword(ANY_TYPE, schema_definitions),
    "$ref": SchemaKeyword(ANY_TYPE, schema_reference),
    "enum": SchemaKeyword(ANY_TYPE, schema_enum),
    "const": SchemaKeyword(ANY_TYPE, schema_const),
    **{name: SchemaKeyword((int, float), schema_bound) for name in SCHEMA_BOUNDS if name.endswith("imum")},
    "multipleOf": SchemaKeyword((int, float), schema_multiple_of),
    **{name: SchemaKeyword((str,), schema_bound) for name in ("minLength", "maxLength")},
    "pattern": SchemaKeyword((str,), schema_pattern),
    "format": SchemaKeyword((str,), schema_format),
    **{name: SchemaKeyword((list,), schema_bound) for name in ("minItems", "maxItems")},
    "prefixItems": SchemaKeyword((list,), schema_items),
    "items": SchemaKeyword((list,), schema_items),
    "contains": SchemaKeyword((list,), schema_contains),
    "uniqueItems": SchemaKeyword((list,), schema_unique_items),
    "required": SchemaKeyword((dict,), schema_required),
    **{name: SchemaKeyword((dict,), schema_bound) for name in ("minProperties", "maxProperties")},
    "propertyNames": SchemaKeyword((dict,), schema_property_names),
    "properties": SchemaKeyword((dict,), schema_properties),
    "patternProperties": SchemaKeyword((dict,), schema_properties),
    "additionalProperties": SchemaKeyword((dict,), schema_properties),
    "dependentRequired": SchemaKeyword((dict,), schema_dependent),
    "dependentSchemas": SchemaKeyword((dict,), schema_dependent),
    "allOf": SchemaKeyword(ANY_TYPE, schema_all_of),
    "anyOf": SchemaKeyword(ANY_TYPE, schema_some_of),
    "oneOf": SchemaKeyword(ANY_TYPE, schema_some_of),
    "not": SchemaKeyword(ANY_TYPE, schema_not),
    "if": SchemaKeyword(ANY_TYPE, schema_if),
}


def compile_schema(schema: Any, compile_pattern: PatternCompiler | None = None) -> Callable[[Any], list[SchemaBreach]]:
    """A function that gives the breaches of *schema* in a value: none when it is valid, at most 20.

    Patterns are searched by what *compile_pattern* gives; without it by plain `re`, which has no time limit.
    Raises SchemaError when the schema cannot be used; the function itself raises SchemaTooDeep.
    """
    check = SchemaBuilder(schema, SCHEMA_KEYWORDS, compile_pattern or schema_plain_pattern).build()

    def validate(value: Any) -> list[SchemaBreach]:
        found = SchemaFindings({})
        try:
            check(value, None, found)
        except RecursionError:
            raise SchemaTooDeep("the value is nested too deeply to be checked") from None
        breaches = (SchemaBreach(schema_pointer(path), f"{schema_shown(item)} {text}") for path, item, text in found)
        return list(dict.fromkeys(breaches))[:MAX_SCHEMA_BREACHES]

    return validate


def schema_plain_pattern(pattern: str, flags: int, written: str) -> Callable[[str], object]:
    """The search of *pattern* by plain `re`."""
    return re.compile(pattern, flags).search

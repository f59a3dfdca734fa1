"""The evaluator `json`: the answer is JSON, and fits a JSON Schema."""

from collections.abc import Callable
from typing import Any

from kaizen.evaluators.json_text import JSON_EXTRACTS, JsonInText
from kaizen.evaluators.outcomes import ConfigurationError, Outcome, decided, errored
from kaizen.evaluators.regex_timer import PatternTimeout, compile_pattern, timed
from kaizen.evaluators.registry import Check, Parameter, View, evaluator
from kaizen.foundation.jsonio import JsonObject, json_type
from kaizen.foundation.schema import compile_schema
from kaizen.foundation.schema_builder import SchemaBreach, SchemaError, SchemaTooDeep
from kaizen.foundation.text import counted, quoted

MAX_BREACHES_TOLD = 3


def schema_validator(schema: Any, pointer: str) -> Callable[[Any], list[SchemaBreach]]:
    """What gives the breaches of *schema*; all its patterns together have the time limit of one.

    Raises ConfigurationError below *pointer*; the function raises PatternTimeout.
    """
    searched: list[str] = []  # the pattern that ran last, so that a time-out can name it

    def compile_search(pattern: str, flags: int, written: str) -> Callable[[str], object]:
        try:
            search = compile_pattern(pattern, flags, "").search
        except ConfigurationError as error:
            raise ValueError(f"{error.message}{'; ' if error.hint else ''}{error.hint}") from None

        def search_noted(text: str) -> object:
            searched[:] = [written]
            return search(text)

        searched[:] = [written]
        return search_noted

    try:
        validate = compile_schema(schema, compile_search)
    except SchemaError as error:
        raise ConfigurationError(pointer + error.pointer, error.message) from None
    if not searched:
        return validate

    def validate_in_time(value: Any) -> list[SchemaBreach]:
        try:
            return timed(lambda: validate(value))
        except PatternTimeout as timeout:
            raise PatternTimeout(f"the schema's pattern {quoted(searched[0], 60)}: {timeout.reason}") from None

    return validate_in_time


def told_breaches(breaches: list[SchemaBreach]) -> str:
    """'/age: "x" is not of type integer; /id: …, and 2 more'."""
    told = "; ".join(f"{breach.pointer or 'the whole'}: {breach.message}" for breach in breaches[:MAX_BREACHES_TOLD])
    hidden = len(breaches) - MAX_BREACHES_TOLD
    return f"{told}; and {hidden} more" if hidden > 0 else told


@evaluator(
    "json",
    1,
    "The answer is JSON, and fits a JSON Schema.",
    [
        Parameter(
            "extract", "choice", "whole",
            "where the JSON stands: the whole text; the first object or list in it; the first code fence (marked json, if there is "
            "one); any of these, in the order whole, fence, first. Broken JSON is never repaired",
            tuple(JSON_EXTRACTS),
        ),
        Parameter("schema", "any", None, "JSON Schema 2020-12 that the value must fit; without it, any JSON will do"),
    ],
    {
        "entry": {"id": "order", "type": "json", "schema": {"required": ["total"], "properties": {"total": {"type": "number"}}}},
        "observation": {"output": '{"total": 12.5}'},
        "case": {},
        "outcome": "pass",
    },
)  # fmt: skip
def evaluate_json(settings: JsonObject) -> Check:
    """A text is read as JSON, whatever else was selected is JSON already."""
    extract = JSON_EXTRACTS[settings["extract"]]
    schema = settings["schema"]
    validate = schema_validator({} if schema is None else schema, "/schema")

    def check(view: View) -> Outcome:
        found = extract(view.value) if isinstance(view.value, str) else JsonInText(view.value)
        if found.reason:
            return decided(False, found.reason)
        is_part = isinstance(view.value, str) and (found.start, found.end) != (0, len(view.value))
        place = ({"start": found.start, "end": found.end},) if is_part else ()
        try:
            breaches = validate(found.value)
        except SchemaTooDeep as error:
            return errored(str(error))
        value = {"type": json_type(found.value), "breaches": len(breaches)}
        if not breaches:
            return decided(True, "fits the schema" if schema is not None else f"is a JSON {json_type(found.value)}", value, place)
        pointers = tuple({"pointer": pointer} for pointer in dict.fromkeys(breach.pointer for breach in breaches))
        reason = f"{counted(len(breaches), 'breach', 'breaches')} of the schema: {told_breaches(breaches)}"
        return decided(False, reason, value, (*place, *pointers))

    return check

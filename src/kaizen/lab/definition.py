"""The definition of a typed system, `system.py`, as a Python of its own describes it.

    SYSTEM = {
        "id": "refunds",                                     the name of the folder
        "input": {…}, "output": {…}, "reference": {…},       JSON Schemas
        "metrics": {"type": "object", "properties": {"accuracy": {"type": "number", "minimum": 0, "maximum": 1}}},
        "metric": {"name": "accuracy", "aggregation": "mean"},
        "runner": run, "grader": "grading:grade"             functions, classes, or "module:name"
    }

SYSTEM is a dict, or any object with these attributes. Describing it imports its modules and
calls neither runner nor grader. No message holds a value or the text of an exception: with
KAIZEN_DEBUG=1 the child writes both to its standard error.
"""

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from kaizen.embed import asset_text
from kaizen.foundation.errors import Breach, Breaches, InputError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonError, JsonObject, decode_line, follow_pointer, pointer_token, pointer_tokens
from kaizen.foundation.process import EXITED, CannotStart, Ended, run_program
from kaizen.foundation.schema import compile_schema
from kaizen.foundation.schema_builder import SchemaBreach, SchemaError, SchemaTooDeep
from kaizen.foundation.shapes import OBJECT, TEXT, Kind, Report, check_fields, check_no_others, is_number, one_of
from kaizen.foundation.text import listed, quoted, visible
from kaizen.lab.system import AGGREGATIONS, COUNT_AGGREGATIONS, SYSTEM_PROGRAM, TYPED_KIND, Metric, System, load_system
from kaizen.lab.workspace import Workspace

SYSTEM_HOST = asset_text("lab/system_host.py")
DEBUG = "KAIZEN_DEBUG"
DESCRIBE_SECONDS = 60.0
DESCRIPTION_LIMIT = 4 << 20
DEBUG_HINT = f"{DEBUG}=1 shows the cause"
SCHEMA_NAMES = ("input", "output", "reference", "metrics")
COUNT_NAMES = ("tp", "fp", "fn")
NUMBER_METRIC, COUNT_METRIC = "number", "counts"
SYSTEM_PARTS = {"id": TEXT, **dict.fromkeys((*SCHEMA_NAMES, "metric"), OBJECT)}
METRIC_PARTS = {
    "name": TEXT,
    "aggregation": one_of(*AGGREGATIONS),
    "direction": one_of("higher", "lower"),
    "percentile": Kind(lambda value: is_number(value) and 0 < value <= 100, "a number above 0, at most 100"),
    "worst": Kind(is_number, "a number"),
}
METRIC_HINT = 'a metric is {"type": "number"}, or an object of the whole numbers tp, fp, fn from 0, all required'


class Definition(NamedTuple):
    """A checked definition: the breaches of each schema in a value, the kind of each metric, and the primary metric."""

    schemas: dict[str, Callable[[Any], list[SchemaBreach]]]
    metrics: dict[str, str]
    metric: Metric

    def misfit(self, name: str, value: Any) -> str | None:
        """Pointer to the first place at which *value* does not fit schema *name*; None when it fits. Nothing of the value is told."""
        try:
            breaches = self.schemas[name](value)
        except SchemaTooDeep:
            return ""
        if not breaches and name == "metrics":
            return next((pointer_token(key) for key in value if key not in self.metrics), None)
        return breaches[0].pointer if breaches else None


def host_command(mode: str, program: str, folders: list[str]) -> list[str]:
    """The words that start half *mode* of the definition *program*, which finds modules in *folders*.

    All but the runner's Python ignore the variables and the user folder that would let others' modules in.
    """
    return [sys.executable, "-B", *([] if mode == "run" else ["-I"]), "-c", SYSTEM_HOST, mode, program, *folders]


def load_definition(root: str, folder: str, name: str) -> Definition:
    """The definition in *folder*, of the system *name*, whose paths begin at *root*. Raises InputError or BreachesError."""
    program = os.path.join(folder, SYSTEM_PROGRAM)
    shown = shown_path(program)
    try:
        ended = run_program(
            host_command("describe", program, [folder, root]), timeout_seconds=DESCRIBE_SECONDS, stdout_limit=DESCRIPTION_LIMIT
        )
    except CannotStart as error:
        raise InputError(f"{shown}: the Python that loads it cannot be started: {error}", "", "cannot_start") from None
    if os.environ.get(DEBUG) == "1" and ended.stderr:
        raise InputError(f"{shown}: {visible(ended.stderr.decode('utf-8', 'replace'), 4000)}", "", "cannot_load")
    return checked_definition(description_in(ended, shown), name, shown)


def description_in(ended: Ended, shown: str) -> JsonObject:
    """What the child that described *shown* said. Raises InputError."""
    try:
        answer = decode_line(ended.stdout.rstrip(b"\n")) if ended.end == EXITED and ended.stdout else {}
    except JsonError:
        answer = {}
    if "fault" in answer:
        place = shown + (f"#{answer['path']}" if answer.get("path") else "")
        raise InputError(f"{place}: {visible(str(answer['fault']), 200)}", DEBUG_HINT, "cannot_load")
    if not isinstance(answer.get("value"), dict):
        why = "its Python ended while it was loaded" if ended.end == EXITED else f"was not loaded within {DESCRIBE_SECONDS:g} s"
        raise InputError(f"{shown}: {why}", DEBUG_HINT, "cannot_load")
    return dict(answer["value"])


def checked_definition(parts: JsonObject, name: str, shown: str) -> Definition:
    """The definition that *parts* describe. Raises BreachesError with every breach."""
    breaches = Breaches()

    def report(pointer: str, message: str, hint: str) -> None:
        breaches.add(shown, None, pointer, message, hint)

    check_fields(parts, SYSTEM_PARTS, "", report, SYSTEM_PARTS)
    if isinstance(parts.get("id"), str) and parts["id"] != name:
        report("/id", f"is not {quoted(name)}, as the folder is called", "the id is the name of the folder")
    schemas = {}
    for key in SCHEMA_NAMES:
        try:
            schemas[key] = compile_schema(parts.get(key))
        except SchemaError as error:
            report(f"/{key}{error.pointer}", Breach(shown, None, "", error.message).concealed().message, "")
    breaches.raise_if_any()
    kinds, bounds = metric_kinds(parts["metrics"], report)
    metric = primary_metric(parts["metric"], kinds, bounds, report)
    breaches.raise_if_any()
    return Definition(schemas, kinds, metric)


def resolved(schema: Any, root: JsonObject) -> JsonObject:
    """*schema*, references inside the document *root* followed; {} when it leads nowhere."""
    for _ in range(20):
        if not isinstance(schema, dict) or "$ref" not in schema:
            break
        target = str(schema["$ref"])
        schema = follow_pointer(root, pointer_tokens(target[1:]))[1] if target.startswith("#") else {}
    return schema if isinstance(schema, dict) else {}


def metric_kinds(schema: JsonObject, report: Report) -> tuple[dict[str, str], dict[str, tuple[float | None, float | None]]]:
    """({metric: number or counts}, {metric: (minimum, maximum)}), as *schema* alone tells; what it does not tell is reported."""
    kinds: dict[str, str] = {}
    bounds: dict[str, tuple[float | None, float | None]] = {}
    top = resolved(schema, schema)
    properties = top.get("properties") if top.get("type") == "object" else None
    if not isinstance(properties, dict) or not properties:
        report("/metrics", "does not name its fields", 'write {"type": "object", "properties": {NAME: …}}')
        return kinds, bounds
    for name, each in properties.items():
        field = resolved(each, schema)
        if field.get("type") in ("number", "integer"):
            kinds[name] = NUMBER_METRIC
            low, high = (field[key] if is_number(field.get(key)) else None for key in ("minimum", "maximum"))
            bounds[name] = (low, high)
        elif is_count_schema(field, schema):
            kinds[name], bounds[name] = COUNT_METRIC, (None, None)
        else:
            report(f"/metrics/properties{pointer_token(name)}", "is neither a number nor counts", METRIC_HINT)
    return kinds, bounds


def is_count_schema(field: JsonObject, root: JsonObject) -> bool:
    """True when *field* is an object of the required whole numbers tp, fp, fn, none below 0, and nothing else."""
    properties, required = field.get("properties"), field.get("required")
    if field.get("type") != "object" or not isinstance(properties, dict) or not isinstance(required, list):
        return False
    counts = [resolved(each, root) for each in properties.values()]
    is_whole = all(each.get("type") == "integer" and is_number(each.get("minimum")) and each["minimum"] >= 0 for each in counts)
    return is_whole and set(properties) == set(COUNT_NAMES) <= set(required)


def primary_metric(part: JsonObject, kinds: dict[str, str], bounds: dict[str, tuple[float | None, float | None]], report: Report) -> Metric:
    """The metric that *part* chooses among *kinds*; what does not go together is reported."""

    def report_part(pointer: str, message: str, hint: str) -> None:
        report("/metric" + pointer, message, hint)

    check_fields(part, METRIC_PARTS, "", report_part, ("name", "aggregation"))
    check_no_others(part, METRIC_PARTS, "", report_part)
    name, aggregation = str(part.get("name", "")), str(part.get("aggregation", "mean"))
    is_higher = part.get("direction", "higher") == "higher"
    kind = kinds.get(name)
    low, high = bounds.get(name, (None, None))
    worst = part.get("worst", low if is_higher else high)
    wanted = COUNT_METRIC if aggregation in COUNT_AGGREGATIONS else NUMBER_METRIC
    if kinds and kind is None and name:
        report("/metric/name", "is none of the metrics", f"there is: {listed(map(quoted, kinds), 10)}")
    elif kind and kind != wanted:
        takes = "counts tp, fp, fn" if wanted == COUNT_METRIC else "numbers"
        report("/metric/aggregation", f"takes {takes}, which the metric does not give", METRIC_HINT)
    elif kind == NUMBER_METRIC and worst is None:
        end = "minimum" if is_higher else "maximum"
        report("/metric", "the score of an item on which the system fails is not known", f"give the metric a {end}, or write `worst`")
    if (aggregation == "percentile") != ("percentile" in part):
        report("/metric/percentile", "`percentile` and the aggregation percentile need each other", "write both, such as 95")
    is_counts = wanted == COUNT_METRIC
    return Metric(name, aggregation, part.get("percentile"), is_higher, low, high, None if is_counts else worst)


def load_whole_system(workspace: Workspace, name: str) -> System:
    """The system *name*, with the metric of its definition when it is a typed one. Raises InputError or BreachesError."""
    system = load_system(workspace, name)
    if system.kind != TYPED_KIND:
        return system
    if not system.dataset:
        hint = "name the JSONL file that holds the items in system.md"
        raise InputError(f"{shown_path(system.folder)}: system.md has no `dataset`", hint, "no_dataset")
    return system._replace(metric=load_definition(workspace.root, system.folder, name).metric)

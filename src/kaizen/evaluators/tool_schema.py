"""Whether each tool call is one that its tool accepts: the evaluator `tool_schema`.

Tools are written by name, with the JSON Schema of their arguments, or {"args": SCHEMA, "result": SCHEMA}; or as the list
that models are given: {"type": "function", "function": {"name", "parameters"}} and the flat forms with `parameters`,
`input_schema` or `inputSchema`. Without `tools` those of the observation's `evidence.tools` are used.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from kaizen.evaluators.demands import TOLD_STEPS
from kaizen.evaluators.outcomes import PASS, ConfigurationError, NotMeasurable, Outcome, decided, not_applicable, refuse_empty
from kaizen.evaluators.predicates import MISSING
from kaizen.evaluators.registry import Check, Parameter, View, evaluator, json_type_phrase
from kaizen.evaluators.structure import schema_validator, told_breaches
from kaizen.evaluators.trail import EVIDENCE_SHOWN, Trail, call_text, is_cut, step_evidence, view_trail
from kaizen.foundation.jsonio import JsonObject, canonical_json, pointer_token
from kaizen.foundation.schema_builder import SchemaBreach, SchemaTooDeep
from kaizen.foundation.text import counted, listed, quoted

TOOL_ARGS_KEYS = ("parameters", "input_schema", "inputSchema", "args")
TOOL_RESULT_KEYS = ("output_schema", "outputSchema", "result")

TOOL_SCHEMA_PARAMETERS = [
    Parameter(
        "tools",
        "any",
        None,
        'Name → JSON Schema of the arguments, or {"args": …, "result": …}; or the list that models are given. Without it '
        "`evidence.tools` of the observation.",
    ),
    Parameter("unknown_tool", "choice", "fail", "A call of a tool that is not among them fails, or is only told.", ("fail", "info")),
]
TOOL_SCHEMA_EXAMPLE = {
    "entry": {
        "id": "calls_fit",
        "type": "tool_schema",
        "tools": {
            "issue_refund": {
                "type": "object",
                "required": ["order", "amount"],
                "properties": {"order": {"type": "string"}, "amount": {"type": "number", "exclusiveMinimum": 0}},
                "additionalProperties": False,
            }
        },
    },
    "observation": {"steps": [{"kind": "tool", "name": "issue_refund", "args": '{"order": "A-7", "amount": 12.5}', "status": "ok"}]},
    "outcome": PASS,
}

ToolValidator = Callable[[Any], list[SchemaBreach]]


class ToolSchemas(NamedTuple):
    """What a tool accepts and what it gives back; None where nothing is said of it."""

    args: ToolValidator | None
    result: ToolValidator | None


class CallFault(NamedTuple):
    """The place of a step, what is wrong with it, and where in it; whether it is wrong is not known when `is_open`."""

    place: int
    reason: str
    pointer: str = ""
    is_open: bool = False


@evaluator("tool_schema", 1, "Each tool call is one that its tool accepts.", TOOL_SCHEMA_PARAMETERS, TOOL_SCHEMA_EXAMPLE, selects=False)
def evaluate_tool_schema(settings: JsonObject) -> Check:
    """Looks at every step of kind tool; the score is the share of calls that fit. Arguments that are not a JSON object do not fit."""
    tools = None if settings["tools"] is None else compile_tools(settings["tools"], "/tools")
    is_strict = settings["unknown_tool"] == "fail"
    latest: list[tuple[str, dict[str, ToolSchemas]]] = []  # what was compiled out of evidence; most observations bring the same

    def check(view: View) -> Outcome:
        trail = view_trail(view)
        known = evidence_tools(view, latest) if tools is None else tools
        calls = [index for index, step in enumerate(trail.steps) if step.get("kind") == "tool"]
        if not calls:
            return not_applicable("no tool was called")
        faults: list[CallFault] = []
        unknown: list[str] = []
        for number, index in enumerate(calls):
            told = f"call {number} (step {index}) {call_text(trail.steps[index])}"
            tool = known.get(str(trail.steps[index].get("name")))
            if tool is not None:
                faults += call_faults(trail, index, tool, told)
            elif is_strict:
                faults.append(CallFault(index, f"{told}: there is no tool of this name"))
            else:
                unknown.append(told)
        return calls_outcome(calls, faults, unknown)

    return check


def calls_outcome(calls: list[int], faults: list[CallFault], unknown: list[str]) -> Outcome:
    """The outcome for *calls*, what is wrong with them, and those of unknown tools. Raises NotMeasurable."""
    sure = [fault for fault in faults if not fault.is_open]
    invalid = len({fault.place for fault in sure})
    value = {"calls": len(calls), "invalid": invalid, "unknown": len(unknown)}
    if sure:
        more = f"; and {len(sure) - TOLD_STEPS} more" if len(sure) > TOLD_STEPS else ""
        reason = "; ".join(fault.reason for fault in sure[:TOLD_STEPS]) + more
        evidence = tuple({"step": fault.place, **({"pointer": fault.pointer} if fault.pointer else {})} for fault in sure[:EVIDENCE_SHOWN])
        return decided(False, reason, value, evidence)._replace(score=(len(calls) - invalid) / len(calls))
    if faults:
        raise NotMeasurable(faults[0].reason)
    aside = f"; of unknown tools: {listed(unknown, TOLD_STEPS)}" if unknown else ""
    return decided(True, f"{counted(len(calls) - len(unknown), 'call')} as the tools accept them{aside}", value, step_evidence(calls))


def call_faults(trail: Trail, index: int, tool: ToolSchemas, told: str) -> list[CallFault]:
    """What is wrong with the arguments and the result of the call at *index*, which a reason calls *told*."""
    step = trail.steps[index]
    if is_cut(step, "args"):
        return [CallFault(index, f"{told}: its arguments were cut short", is_open=True)]
    args = trail.content(index, "args")
    if not isinstance(args, dict):
        what = "a text that is not JSON" if isinstance(args, str) else json_type_phrase(args)
        return [CallFault(index, f"{told}: its arguments are {what}, not an object", "/args")]
    faults = part_faults(index, told, "args", tool.args, args)
    if tool.result is None or trail.has_failed(index):
        return faults
    result = trail.content(index, "result")
    if result is MISSING or is_cut(step, "result"):
        why = "was not recorded" if result is MISSING else "was cut short"
        return [*faults, CallFault(index, f"{told}: its result {why}", is_open=True)]
    raw = step["result"]
    # A text may be meant as it is, or as the JSON that it holds.
    return faults + (part_faults(index, told, "result", tool.result, result) and part_faults(index, told, "result", tool.result, raw))


def part_faults(index: int, told: str, part: str, validate: ToolValidator | None, value: Any) -> list[CallFault]:
    """The breaches of *value*, the *part* of the step at *index*: none, or one fault that tells them."""
    try:
        breaches = validate(value) if validate else []
    except SchemaTooDeep as error:
        return [CallFault(index, f"{told}: {error}", is_open=True)]
    return [CallFault(index, f"{told}: {part} {told_breaches(breaches)}", f"/{part}{breaches[0].pointer}")] if breaches else []


# --- Where the schemas come from -------------------------------------------------------


def compile_tools(tools: Any, pointer: str) -> dict[str, ToolSchemas]:
    """The schemas of *tools*, in one of the forms of this module's head, by name. Raises ConfigurationError below *pointer*."""
    if not isinstance(tools, (dict, list)):
        raise ConfigurationError(pointer, f"tools is {json_type_phrase(tools)}, not an object or a list")
    if not tools:
        refuse_empty(tools if isinstance(tools, list) else [], pointer)
    if isinstance(tools, dict):
        return {name: compile_named_tool(schema, pointer + pointer_token(name)) for name, schema in tools.items()}
    found: dict[str, ToolSchemas] = {}
    for index, tool in enumerate(tools):
        place = f"{pointer}/{index}"
        inner = tool.get("function", tool) if isinstance(tool, dict) else None
        name = inner.get("name") if isinstance(inner, dict) else None
        if not isinstance(inner, dict) or not isinstance(name, str) or not name:
            raise ConfigurationError(place, "is no tool with a name", 'write {"name": …, "parameters": {…}}')
        if name in found:
            raise ConfigurationError(place, f"tool {quoted(name)} comes twice")
        place += "/function" if inner is not tool else ""
        found[name] = ToolSchemas(keyed_schema(inner, TOOL_ARGS_KEYS, place), keyed_schema(inner, TOOL_RESULT_KEYS, place))
    return found


def compile_named_tool(schema: Any, pointer: str) -> ToolSchemas:
    """The schemas that stand behind a name: of the arguments, or {"args": …, "result": …}. Raises ConfigurationError."""
    if isinstance(schema, dict) and schema and schema.keys() <= {"args", "result"}:
        return ToolSchemas(keyed_schema(schema, ("args",), pointer), keyed_schema(schema, ("result",), pointer))
    return ToolSchemas(schema_validator(schema, pointer), None)


def keyed_schema(tool: JsonObject, keys: tuple[str, ...], pointer: str) -> ToolValidator | None:
    """The schema at the first of *keys* that *tool* has; None when it has none. Raises ConfigurationError."""
    key = next((key for key in keys if tool.get(key) is not None), None)
    return None if key is None else schema_validator(tool[key], pointer + pointer_token(key))


def evidence_tools(view: View, latest: list[tuple[str, dict[str, ToolSchemas]]]) -> dict[str, ToolSchemas]:
    """The schemas of `evidence.tools`; *latest* holds those of the observation before. Raises NotMeasurable."""
    evidence = view.observation.get("evidence")
    tools = evidence.get("tools") if isinstance(evidence, dict) else None
    if not tools:
        raise NotMeasurable("there are no tools in the entry and none at evidence/tools")
    key = canonical_json(tools)
    if not latest or latest[0][0] != key:
        try:
            latest[:] = [(key, compile_tools(tools, "evidence/tools"))]
        except ConfigurationError as error:
            raise NotMeasurable(f"the tools of the evidence cannot be used: {error.pointer}: {error.message}") from None
    return latest[0][1]

"""The catalogue of evaluator types: terminal, --json, docs/evaluators.md.

Everything in it comes from the registry, so it cannot say other than what the program does.
"""

import json
from typing import Any

from kaizen.evaluators.envelope import ENVELOPE
from kaizen.evaluators.registry import ABSENT, EVALUATORS, KINDS, REQUIRED, EvaluatorType, Parameter
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import listed

encode_spaced = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
EXAMPLE_PARTS = ("entry", "case", "observation")


def parameter_values(parameter: Parameter) -> str:
    """What may be written for *parameter*: 'a number', '"all", "any" or "none"'."""
    if parameter.choices:
        return listed([encode_spaced(choice) for choice in parameter.choices], 20, "or")
    return KINDS[parameter.kind][1]


def parameter_default(parameter: Parameter) -> str:
    """The default of *parameter* as JSON; 'required', or '' when leaving it out is no value."""
    if parameter.default is REQUIRED:
        return "required"
    return "" if parameter.default is None or parameter.default is ABSENT or parameter.default == "" else encode_spaced(parameter.default)


def parameter_document(parameter: Parameter) -> JsonObject:
    """*parameter* as --json shows it; without a default `default` is absent."""
    document: JsonObject = {"name": parameter.name, "kind": parameter.kind, "required": parameter.default is REQUIRED}
    if parameter.default is not REQUIRED and parameter.default is not ABSENT:
        document["default"] = parameter.default
    if parameter.choices:
        document["choices"] = list(parameter.choices)
    return {**document, "text": parameter.text}


def type_document(kind: EvaluatorType) -> JsonObject:
    """A type as --json shows it."""
    return {
        "name": kind.name,
        "version": kind.version,
        "summary": kind.summary,
        "notes": type_notes(kind),
        "select": kind.default_select if kind.selects else None,
        "parameters": [parameter_document(parameter) for parameter in kind.parameters],
        "example": kind.example,
    }


def type_notes(kind: EvaluatorType) -> str:
    """What there is to know beyond the summary: the docstring of the type's function, on one line."""
    return " ".join((kind.prepare.__doc__ or "").split())


def looked_at(kind: EvaluatorType) -> str:
    """What a type looks at when `select` is not given."""
    return f"`{kind.default_select}`, unless `select` says otherwise" if kind.selects else "the whole observation; it has no `select`"


def type_lines(kind: EvaluatorType) -> list[str]:
    """A type for the terminal: what it asks, its parameters, an example that runs."""
    lines = [f"{kind.name}: {kind.summary}", type_notes(kind), "", f"looks at   {looked_at(kind).replace('`', '')}"]
    rows = [(each.name, parameter_values(each), parameter_default(each), each.text) for each in kind.parameters]
    if rows:
        lines += ["", "parameters"]
    for name, values, default, text in rows:
        lines.append(f"  {name:<15} {text}")
        lines.append(f"  {'':<15} {values}{f'; {default}' if default == 'required' else f'; default {default}' if default else ''}")
    lines += ["", "example"]
    lines += [f"  {part:<12} {encode_spaced(kind.example[part])}" for part in EXAMPLE_PARTS if part in kind.example]
    return [*lines, f"  {'outcome':<12} {kind.example['outcome']}"]


def table_cell(text: str) -> str:
    """*text* inside a Markdown table."""
    return text.replace("|", "\\|")


def parameter_table(parameters: tuple[Parameter, ...]) -> list[str]:
    """The lines of a Markdown table of *parameters*."""
    lines = ["| parameter | value | default | meaning |", "|---|---|---|---|"]
    for each in parameters:
        default = parameter_default(each)
        shown = default if default in ("", "required") else f"`{default}`"
        lines.append(f"| `{each.name}` | {table_cell(parameter_values(each))} | {table_cell(shown)} | {table_cell(each.text)} |")
    return lines


def type_section(kind: EvaluatorType) -> list[str]:
    """The lines of a type's section in the reference."""
    example: Any = kind.example
    shown = [f" {encode_spaced(part)}: {encode_spaced(example[part])}" for part in EXAMPLE_PARTS if part in example]
    return [
        f"### {kind.name}",
        "",
        f"{kind.summary} {type_notes(kind)} Looks at {looked_at(kind)}.",
        "",
        *(parameter_table(kind.parameters) if kind.parameters else []),
        "",
        "```json",
        "{" + ",\n".join([*shown, f' "outcome": {encode_spaced(example["outcome"])}'])[1:] + "}",
        "```",
        "",
    ]


def evaluator_reference() -> str:
    """The reference of envelope and types as Markdown, for docs/evaluators.md."""
    lines = ["### Every entry", "", *parameter_table(ENVELOPE), ""]
    for name in sorted(EVALUATORS):
        lines += type_section(EVALUATORS[name])
    return "\n".join(lines).rstrip("\n")

"""`kaizen evaluators`: the catalogue of evaluator types."""

from argparse import Namespace

from kaizen.commands.table import Answer, Argument, command
from kaizen.evaluators.catalogue import parameter_document, type_document, type_lines
from kaizen.evaluators.envelope import ENVELOPE
from kaizen.evaluators.registry import EVALUATORS
from kaizen.foundation.errors import UsageError
from kaizen.foundation.text import counted, did_you_mean, quoted


@command(
    "evaluators",
    "Lists the types of evaluators, or shows one with its parameters, defaults and an example.",
    [Argument("name", "NAME", "a type, such as contains", {"nargs": "?", "default": ""})],
    "kaizen evaluators\nkaizen evaluators contains",
)
def command_evaluators(args: Namespace) -> Answer:
    """All types with a sentence each, or everything about one."""
    if not args.name:
        names = sorted(EVALUATORS)
        lines = [f"{name:<14} {EVALUATORS[name].summary}" for name in names]
        lines += ["", "every entry may have", *[f"  {parameter.name:<12} {parameter.text}" for parameter in ENVELOPE]]
        known = [{"name": name, "version": EVALUATORS[name].version, "summary": EVALUATORS[name].summary} for name in names]
        data = {"evaluators": known, "envelope": [parameter_document(parameter) for parameter in ENVELOPE]}
        return Answer(0, "listed", counted(len(names), "type of evaluator", "types of evaluators"), lines, data, "kaizen evaluators NAME")
    if args.name not in EVALUATORS:
        raise UsageError(f"there is no evaluator type {quoted(args.name)}", did_you_mean(args.name, EVALUATORS), "unknown_evaluator")
    kind = EVALUATORS[args.name]
    return Answer(0, "shown", f"{kind.name}: {kind.summary}", type_lines(kind), {"evaluator": type_document(kind)})

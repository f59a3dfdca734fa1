"""The table of evaluator types, and how a module adds one to it.

    @evaluator("contains", 1, "The text holds the given values.", [Parameter("values", "list", REQUIRED, "…")], example={…})
    def evaluate_contains(settings: JsonObject) -> Check:
        ...                      # checks and compiles the settings once; raises ConfigurationError
        def check(view: View) -> Outcome:
            ...                  # looks at one observation
        return check

The parameter table feeds the validator, `kaizen evaluators`, and the reference page. To add an
evaluator: one file in evaluators/, nothing else.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from kaizen.evaluators.outcomes import Outcome
from kaizen.foundation.jsonio import JsonObject

REQUIRED = object()  # the default of a parameter that has none


class View(NamedTuple):
    """What a check may look at: the selected and transformed value, the observation, its case."""

    value: Any
    observation: JsonObject
    case: JsonObject


Check = Callable[[View], Outcome]
Prepare = Callable[[JsonObject], Check]


class Parameter(NamedTuple):
    """A parameter of an evaluator type: name, kind, default (REQUIRED when there is none), what it means.

    Kinds: text, texts (one or a list), number, integer, boolean, choice (of `choices`), list, object, matcher,
    matchers (one or a list), any.
    """

    name: str
    kind: str
    default: Any
    text: str
    choices: tuple[str, ...] = ()


class EvaluatorType(NamedTuple):
    """A registered type. `version` is raised when its meaning changes; it enters every fingerprint.

    `selects`: whether the entry's `select` and `transform` are used; a type that looks at the whole
    observation (steps, budget) refuses them. `combines`: its `of` holds entries.
    """

    name: str
    version: int
    summary: str
    parameters: tuple[Parameter, ...]
    prepare: Prepare
    example: JsonObject
    selects: bool
    default_select: str


EVALUATORS: dict[str, EvaluatorType] = {}


def evaluator(
    name: str,
    version: int,
    summary: str,
    parameters: list[Parameter],
    example: JsonObject,
    selects: bool = True,
    default_select: str = "output.text",
) -> Callable[[Prepare], Prepare]:
    """Registers the decorated function as evaluator type *name*."""

    def register(prepare: Prepare) -> Prepare:
        if name in EVALUATORS:
            raise ValueError(f"evaluator {name!r} is registered twice")
        EVALUATORS[name] = EvaluatorType(name, version, summary, tuple(parameters), prepare, example, selects, default_select)
        return prepare

    return register

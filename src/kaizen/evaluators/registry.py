"""The table of evaluator types, and how a module adds one to it.

    @evaluator("contains", 1, "The text holds the given values.", [Parameter("values", "texts", REQUIRED, "…")], example={…})
    def evaluate_contains(settings: JsonObject) -> Check:
        ...                      # checks and compiles the settings once; raises ConfigurationError
        def check(view: View) -> Outcome:
            ...                  # looks at one observation
        return check

`settings` holds every parameter, defaults filled in, kinds checked. The parameter table feeds
the validator, `kaizen evaluators`, and the reference page. To add an evaluator: one file in
evaluators/, nothing else.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from kaizen.embed import load_section, places
from kaizen.evaluators.outcomes import ConfigurationError, Outcome, refuse_empty
from kaizen.foundation.jsonio import JsonObject, json_type
from kaizen.foundation.text import did_you_mean, quoted

REQUIRED = object()  # the default of a parameter that has none
ABSENT = object()  # the default of an optional parameter for which null is a value like others


class View(NamedTuple):
    """What a check may look at: the selected and transformed value, the observation, its case.

    `memo` is shared by all entries that look at this observation, for what is costly to work out twice.
    """

    value: Any
    observation: JsonObject
    case: JsonObject
    memo: JsonObject


Check = Callable[[View], Outcome]
Prepare = Callable[[JsonObject], Check]


class Parameter(NamedTuple):
    """A parameter: name, kind (one of KINDS), default (REQUIRED when there is none, ABSENT where null has a meaning), its text.

    `choices` belong to the kind `choice`. A list that is empty is refused unless `may_be_empty`; one that
    a case brings makes the entry not applicable.
    """

    name: str
    kind: str
    default: Any
    text: str
    choices: tuple[str, ...] = ()
    may_be_empty: bool = False


class EvaluatorType(NamedTuple):
    """A registered type. `version` is raised when its meaning changes; it enters every fingerprint.

    `selects`: whether the entry's `select` and `transform` are used; a type that looks at the whole
    observation (steps, budget) refuses them. `example`: {"entry", "observation", "case", "outcome"},
    which the tests run.
    """

    name: str
    version: int
    summary: str
    parameters: tuple[Parameter, ...]
    prepare: Prepare
    example: JsonObject
    selects: bool
    default_select: str


EVALUATORS: dict[str, EvaluatorType] = {}  # those of the modules that have been read; see `evaluator_named`


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


def evaluator_names() -> list[str]:
    """The names of all evaluator types, sorted."""
    return sorted(places("EVALUATORS"))


def evaluator_named(name: str) -> EvaluatorType:
    """The evaluator type *name*, its module read if need be. Raises KeyError."""
    if name not in EVALUATORS:
        load_section(places("EVALUATORS")[name][0])
    return EVALUATORS[name]


# --- Kinds of parameters ---------------------------------------------------------------


def is_json_number(value: Any) -> bool:
    """True for a JSON number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_json_text(value: Any) -> bool:
    """True for a JSON string."""
    return isinstance(value, str)


def is_list_of(value: Any, kind: type) -> bool:
    """True for a list of nothing but *kind*."""
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def listed_texts(value: Any) -> list[Any]:
    """A parameter that is one value or a list of them, as a list; null is none."""
    return [] if value is None else value if isinstance(value, list) else [value]


# kind: (is *value* one, how a message and the reference page call it)
KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "text": (is_json_text, "a text"),
    "texts": (lambda value: isinstance(value, str) or is_list_of(value, str), "a text or a list of texts"),
    "number": (is_json_number, "a number"),
    "amount": (lambda value: is_json_number(value) or isinstance(value, str), "a number, or a text that holds one"),
    "integer": (lambda value: isinstance(value, int) and not isinstance(value, bool), "an integer"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "choice": (is_json_text, "one of its choices"),
    "list": (lambda value: isinstance(value, list), "a list"),
    "object": (lambda value: isinstance(value, dict), "an object"),
    "matcher": (lambda value: isinstance(value, dict), "a step matcher"),
    "matchers": (lambda value: isinstance(value, dict) or is_list_of(value, dict), "a step matcher or a list of them"),
    "entries": (lambda value: is_list_of(value, dict), "a list of entries"),
    "argv": (lambda value: is_list_of(value, str), "a list of texts, the program first; nothing of it comes from a case"),
    "any": (lambda value: True, "any JSON value"),
}
EMPTY_LISTS_REFUSED = frozenset(["texts", "list", "matchers", "entries", "argv"])


def check_parameter(parameter: Parameter, value: Any) -> None:
    """Raises ConfigurationError when *value* is not of the parameter's kind, NothingAsked for a case's empty list."""
    is_one, phrase = KINDS[parameter.kind]
    pointer = f"/{parameter.name}"
    if not is_one(value):
        raise ConfigurationError(pointer, f"{parameter.name} is {json_type_phrase(value)}, not {phrase}")
    if parameter.choices and value not in parameter.choices:
        raise ConfigurationError(pointer, f"{parameter.name} {quoted(value)} is unknown", did_you_mean(value, parameter.choices))
    if isinstance(value, list) and not value and parameter.kind in EMPTY_LISTS_REFUSED and not parameter.may_be_empty:
        refuse_empty(value, pointer)


def json_type_phrase(value: Any) -> str:
    """'a string', 'an object', 'null': how a message calls the type of *value*."""
    name = json_type(value)
    return name if name == "null" else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"

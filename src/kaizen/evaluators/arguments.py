"""What a step matcher asks of arguments and results: names, pointers, modes, defaults.

    {"args": {"order": "A-7", "/items/0/sku": {"$regex": "^S"}}, "args_mode": "contains",
     "args_defaults": {"limit": 10}, "args_ignore": ["request_id", "/items/*/note"]}

contains asks for at least these, at every depth, lists element by element; exact for no other
arguments; keys for the same names, whatever the values; ignore for nothing. Defaults are filled in
and what is ignored is left out on both sides. A name that begins with / is a JSON Pointer; with * it
leads to the list of what was found. JSON held in text is parsed when a pointer goes into it; a text
that is not JSON is read as a shell command line in a step of kind `command` and below an argument
called `command` or `cmd`: `/command/*/program` is the list of the programs, `/command/0/arguments`
the words after the first.
"""

from collections.abc import Callable
from typing import Any

from kaizen.evaluators.outcomes import ConfigurationError, refuse_empty
from kaizen.evaluators.paths import values_at
from kaizen.evaluators.predicates import MISSING, Predicate, compile_predicate, is_predicate
from kaizen.evaluators.registry import json_type_phrase
from kaizen.evaluators.shell_words import shell_commands
from kaizen.evaluators.trail import Ask
from kaizen.foundation.jsonio import JsonObject, pointer_token, pointer_tokens
from kaizen.foundation.text import did_you_mean, quoted

ARGS_MODES = ("contains", "exact", "keys", "ignore")
SHELL_ARGUMENTS = ("command", "cmd")

Tokens = tuple[str, ...]
FieldPredicates = list[tuple[Tokens, Predicate]]
ArgumentsTest = Callable[[Any, bool, Ask], "bool | None"]  # (arguments, whether the step is a command, ask)

NEVER = Predicate(lambda value: False)
PRESENT = Predicate(lambda value: value is not MISSING)


# --- Names and pointers ------------------------------------------------------------------


def field_tokens(name: Any, pointer: str = "") -> Tokens:
    """The tokens of a name or JSON Pointer: 'a' and '/a' give ('a',), '' gives (). Raises ConfigurationError."""
    if not isinstance(name, str):
        raise ConfigurationError(pointer, f"a name or pointer is a text, not {json_type_phrase(name)}")
    return (name,) if name and not name.startswith("/") else tuple(pointer_tokens(name))


def found_at(value: Any, tokens: Tokens, has_commands: bool = False) -> Any:
    """What stands at *tokens* in *value*, a list of it for a wildcard, MISSING for nothing.

    With *has_commands* a text on the way that is not JSON is read as a shell command line.
    """
    if len(tokens) == 1 and isinstance(value, dict) and tokens[0] != "*":
        return value.get(tokens[0], MISSING)
    pairs = values_at(value, tokens)
    if pairs is None and has_commands:
        pairs = values_in_commands(value, tokens)
    if pairs is None:
        return MISSING
    return [item for _, item in pairs] if "*" in tokens else pairs[0][1]


def values_in_commands(value: Any, tokens: Tokens) -> list[tuple[str, Any]] | None:
    """What stands at *tokens* when the first text on the way is a shell command line; None for nothing."""
    for place in range(len(tokens)):
        if isinstance(value, str):
            return values_at(shell_commands(value), tokens[place:])
        pairs = None if tokens[place] == "*" else values_at(value, tokens[place : place + 1])
        if pairs is None:
            return None
        value = pairs[0][1]
    return None


def without_field(value: Any, tokens: Tokens) -> Any:
    """A copy of *value* that lacks what stands at *tokens*."""
    if not tokens or not isinstance(value, (dict, list)):
        return value
    head, rest = tokens[0], tokens[1:]
    pairs = list(value.items()) if isinstance(value, dict) else [(str(index), item) for index, item in enumerate(value)]
    kept = [(key, without_field(item, rest) if head in ("*", key) else item) for key, item in pairs if rest or head not in ("*", key)]
    return dict(kept) if isinstance(value, dict) else [item for _, item in kept]


# --- Results ---------------------------------------------------------------------------


def is_field_map(wanted: Any) -> bool:
    """Whether *wanted* is {name or pointer: …}, not a value or predicate about the whole."""
    return isinstance(wanted, dict) and not is_predicate(wanted)


def compile_field_map(wanted: Any, pointer: str, at_least: bool) -> FieldPredicates:
    """(tokens, predicate) for each name and pointer of *wanted*; a value or predicate is asked of the whole, ()."""
    if not is_field_map(wanted):
        return [((), compile_predicate(wanted, pointer, at_least))]
    places = [(name, pointer + pointer_token(name), item) for name, item in wanted.items()]
    return [(field_tokens(name, place), compile_predicate(item, place, at_least)) for name, place, item in places]


def fields_answer(fields: FieldPredicates, find: Callable[[Tokens], Any], ask: Ask) -> bool | None:
    """Whether all *fields* hold of what *find* gives for their tokens."""
    answer: bool | None = True
    for tokens, predicate in fields:
        found = ask(predicate, find(tokens))
        if found is False:
            return False
        answer = None if found is None else answer
    return answer


# --- Arguments -------------------------------------------------------------------------


def compile_arguments(document: JsonObject, pointer: str) -> ArgumentsTest:
    """The test of arguments that the matcher *document* writes, which stands at *pointer*. Raises ConfigurationError."""
    mode = document.get("args_mode", "contains")
    if mode not in ARGS_MODES:
        raise ConfigurationError(f"{pointer}/args_mode", f"args_mode {quoted(str(mode))} is unknown", did_you_mean(str(mode), ARGS_MODES))
    defaults, ignored = args_defaults(document, pointer), args_ignored(document, pointer)
    if mode == "ignore":
        return lambda value, is_command, ask: True
    fields = compile_field_map(args_wanted(document["args"], defaults, ignored), f"{pointer}/args", mode == "contains")
    is_closed = mode in ("exact", "keys")
    if is_closed and any(len(tokens) > 1 for tokens, _ in fields) or (mode == "keys" and not is_field_map(document["args"])):
        raise ConfigurationError(f"{pointer}/args", f"with args_mode {mode} args are named whole, without pointers into them")
    if mode == "keys":
        fields = [(tokens, PRESENT) for tokens, _ in fields]
    names = {tokens[0] for tokens, _ in fields if tokens}
    is_closed = is_closed and is_field_map(document["args"])

    def test(value: Any, is_command: bool, ask: Ask) -> bool | None:
        if defaults and isinstance(value, dict):
            value = {**defaults, **value}
        for tokens in ignored:
            value = without_field(value, tokens)
        if is_closed and not isinstance(value, dict):
            return ask(NEVER, value)
        if is_closed and not value.keys() <= names:
            return False
        return fields_answer(fields, lambda tokens: found_at(value, tokens, is_command or tokens[:1] in SHELL_TOKENS), ask)

    return test


SHELL_TOKENS = tuple((name,) for name in SHELL_ARGUMENTS)


def args_defaults(document: JsonObject, pointer: str) -> JsonObject:
    """The values of `args_defaults` by name."""
    defaults = document.get("args_defaults", {})
    if not isinstance(defaults, dict):
        raise ConfigurationError(
            f"{pointer}/args_defaults", f"args_defaults is {json_type_phrase(defaults)}, not an object of values by name"
        )
    return defaults


def args_ignored(document: JsonObject, pointer: str) -> list[Tokens]:
    """The tokens of each name or pointer in `args_ignore`."""
    ignored = document.get("args_ignore")
    if ignored is None:
        return []
    place = f"{pointer}/args_ignore"
    if not isinstance(ignored, list):
        raise ConfigurationError(place, f"args_ignore is {json_type_phrase(ignored)}, not a list of names and pointers")
    refuse_empty(ignored, place)
    found = [field_tokens(name, f"{place}/{index}") for index, name in enumerate(ignored)]
    if () in found:
        raise ConfigurationError(place, "args_ignore leaves everything out", 'write "args_mode": "ignore"')
    return found


def args_wanted(wanted: Any, defaults: JsonObject, ignored: list[Tokens]) -> Any:
    """The expected arguments with *defaults* filled in and what is *ignored* left out."""
    if not is_field_map(wanted):
        return wanted
    named = {field_tokens(name)[:1] for name in wanted}
    wanted = {**wanted, **{name: value for name, value in defaults.items() if (name,) not in named}}
    found = {}
    for name, value in wanted.items():
        own = field_tokens(name)
        below = [tokens[len(own) :] for tokens in ignored if tokens[: len(own)] == own]
        if () in below or own[:1] in ignored:
            continue
        for tokens in below:
            value = without_field(value, tokens)
        found[name] = value
    return found

"""The step matcher: one object that says which recorded steps are meant.

All keys given must hold; {} means every step.

    {"kind": "tool", "name": ["refund_*"], "args": {"order": "A-7", "/items/0/sku": {"$regex": "^S"}}, "status": "ok"}

    kind, role, status, agent   one text or a list of them (kinds and statuses are closed lists)
    name                        a glob or a list of globs, case-sensitive
    text                        a part of the text, or a predicate about it
    args, result                {name or pointer: literal or predicate}, or one about the whole (arguments.py)
    args_mode, args_defaults, args_ignore   how arguments are compared (arguments.py)
    turn                        a number, or {"min", "max"}
    under                       a matcher of an ancestor (by `parent` and `id`)
    $any                        a list of matchers, one of which holds

An answer is True, False, or None where the recording does not say: a field that was cut short
(`truncated`) and in which it was not found, no status, no turn, no agent while no step names one.
"""

from collections.abc import Callable, Iterable
from typing import Any

from kaizen.evaluators.arguments import compile_arguments, compile_field_map, fields_answer, found_at
from kaizen.evaluators.outcomes import ConfigurationError, NotMeasurable, refuse_empty
from kaizen.evaluators.predicates import MISSING, Predicate, compile_globs, compile_predicate, count_bounds, is_predicate
from kaizen.evaluators.registry import json_type_phrase
from kaizen.evaluators.trail import Trail, is_cut, step_text
from kaizen.foundation.jsonio import JsonObject, pointer_token
from kaizen.foundation.text import did_you_mean, listed, quoted

STEP_KINDS = ("tool", "message", "command", "skill", "handoff", "approval", "retrieval", "model", "span", "error")
STEP_STATUSES = ("ok", "error", "denied", "timeout")
OTHER_NAMES = {"arguments": "args", "input": "args", "parameters": "args", "output": "result", "tool": "name", "type": "kind"}
StepTest = Callable[[Trail, int], bool | None]


class Matcher:
    """A compiled step matcher."""

    def __init__(self, tests: list[StepTest], asked: set[str]) -> None:
        self.tests = tests
        self.asked = asked  # keys of the matcher and of those inside it

    def decide(self, trail: Trail, index: int) -> bool | None:
        """Whether the step at *index* is meant; None when the recording does not say."""
        answer: bool | None = True
        for test in self.tests:
            found = test(trail, index)
            if found is False:
                return False
            if found is None:
                answer = None
        return answer

    def decisions(self, trail: Trail) -> list[bool | None]:
        """`decide` of every step."""
        return [self.decide(trail, index) for index in range(len(trail.steps))]

    def matches(self, step: JsonObject) -> bool:
        """Whether *step*, taken by itself, is meant. Raises NotMeasurable when it does not say."""
        trail = Trail([step])
        answer = self.decide(trail, 0)
        if answer is None:
            raise NotMeasurable(self.unknown(trail, 0))
        return answer

    def unknown(self, trail: Trail, index: int) -> str:
        """Why it is not known whether the step at *index* is meant."""
        step = trail.steps[index]
        cut = [field for field in ("args", "result", "text") if field in self.asked and is_cut(step, field)]
        absent = [field for field in ("status", "turn", "agent") if field in self.asked and step.get(field) is None]
        why = f"its {listed(cut)} was cut short" if cut else f"it has no {listed(absent)}" if absent else "its parent is not recorded"
        return f"whether {step_text(trail, index)} is meant is not known: {why}"


def compile_matcher(document: Any, pointer: str = "") -> Matcher:
    """The matcher that *document* writes, which stands at *pointer* in its entry.

    Raises ConfigurationError, and NothingAsked for an empty list out of a case.
    """
    if not isinstance(document, dict):
        hint = 'write {"name": …}' if isinstance(document, str) else ""
        raise ConfigurationError(pointer, f"a step matcher is an object, not {json_type_phrase(document)}", hint)
    for key in document:
        if key not in MATCHER_KEYS:
            hint = did_you_mean(OTHER_NAMES.get(str(key), str(key)), MATCHER_KEYS)
            raise ConfigurationError(pointer + pointer_token(key), f"unknown key {quoted(key)} in a step matcher", hint)
    if "args" not in document:
        useless = next((key for key in ("args_mode", "args_defaults", "args_ignore") if key in document), None)
        if useless:
            raise ConfigurationError(f"{pointer}/{useless}", f"{useless} without args asks nothing", 'add "args": {…}')
    compiled = [(key, compile_key(document, pointer)) for key, compile_key in MATCHER_KEYS.items() if key in document and compile_key]
    asked = {key for key, _ in compiled}.union(*(asked for _, (_, asked) in compiled))
    return Matcher([test for _, (test, _) in compiled], asked)


def compile_matchers(documents: Any, pointer: str) -> list[Matcher]:
    """The matchers of a list, or of one that stands alone."""
    if not isinstance(documents, list):
        return [compile_matcher(documents, pointer)]
    refuse_empty(documents, pointer)
    return [compile_matcher(document, pointer + pointer_token(index)) for index, document in enumerate(documents)]


# --- Keys: each takes (the matcher's document, its pointer) and gives a test and the keys asked inside it ------

CompiledKey = tuple[StepTest, Iterable[str]]
CompileKey = Callable[[JsonObject, str], CompiledKey]


def matcher_texts(document: JsonObject, pointer: str, key: str, known: tuple[str, ...] = ()) -> list[str]:
    """The texts at *key*, one or a list; with *known* none but those."""
    value = document[key]
    values = value if isinstance(value, list) else [value]
    refuse_empty(values, f"{pointer}/{key}")
    for text in values:
        if not isinstance(text, str) or not text:
            raise ConfigurationError(f"{pointer}/{key}", f"{key} is a text that is not empty, or a list of them")
        if known and text not in known:
            raise ConfigurationError(f"{pointer}/{key}", f"unknown {key} {quoted(text)}", did_you_mean(text, known))
    return values


def one_of_key(key: str, known: tuple[str, ...] = ()) -> CompileKey:
    """Compiles a key whose value is one text or a list of them, compared with the step's field of that name."""

    def compile_one_of(document: JsonObject, pointer: str) -> CompiledKey:
        wanted = frozenset(matcher_texts(document, pointer, key, known))

        def test(trail: Trail, index: int) -> bool | None:
            value = trail.steps[index].get(key)
            if isinstance(value, str):
                return value in wanted
            return None if trail.is_partial or key == "status" or (key == "agent" and not trail.names_agents()) else False

        return test, ()

    return compile_one_of


def compile_name(document: JsonObject, pointer: str) -> CompiledKey:
    """The step's name is what one of the globs says."""
    is_named = compile_globs(matcher_texts(document, pointer, "name"), f"{pointer}/name")

    def test(trail: Trail, index: int) -> bool | None:
        name = trail.steps[index].get("name")
        return is_named(name) if isinstance(name, str) else None if trail.is_partial else False

    return test, ()


def compile_text(document: JsonObject, pointer: str) -> CompiledKey:
    """The step's text holds a part, or a predicate about it holds."""
    wanted = document["text"]
    if isinstance(wanted, str) and wanted:
        predicate = Predicate(lambda value: isinstance(value, str) and wanted in value)
    elif is_predicate(wanted):
        predicate = compile_predicate(wanted, f"{pointer}/text")
    else:
        raise ConfigurationError(f"{pointer}/text", "text is a part of the text that is not empty, or a predicate")

    def test(trail: Trail, index: int) -> bool | None:
        text = trail.steps[index].get("text")
        return trail.asking(index, "text")(predicate, MISSING if text is None else text)

    return test, ()


def compile_turn(document: JsonObject, pointer: str) -> CompiledKey:
    """The step's turn lies in the range."""
    turn = document["turn"]
    if isinstance(turn, dict) and not turn.keys() - {"min", "max"}:
        low, high = count_bounds(turn, f"{pointer}/turn")
    elif isinstance(turn, int) and not isinstance(turn, bool):
        low, high = turn, turn
    else:
        raise ConfigurationError(f"{pointer}/turn", 'turn is a number or {"min": 1, "max": 3}')

    def test(trail: Trail, index: int) -> bool | None:
        value = trail.steps[index].get("turn")
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return None
        return low <= value and (high is None or value <= high)

    return test, ()


def compile_under(document: JsonObject, pointer: str) -> CompiledKey:
    """One of the step's ancestors matches."""
    ancestor = compile_matcher(document["under"], f"{pointer}/under")

    def test(trail: Trail, index: int) -> bool | None:
        answer: bool | None = False
        seen = {index}
        place = trail.parent(index)
        while place is not None and place >= 0 and place not in seen:
            found = ancestor.decide(trail, place)
            if found:
                return True
            answer = None if found is None else answer
            seen.add(place)
            place = trail.parent(place)
        return None if place is None else answer

    return test, {"under", *ancestor.asked}


def compile_alternatives(document: JsonObject, pointer: str) -> CompiledKey:
    """One of several matchers matches."""
    if not isinstance(document["$any"], list):
        raise ConfigurationError(f"{pointer}/$any", "$any takes a list of step matchers")
    matchers = compile_matchers(document["$any"], f"{pointer}/$any")

    def test(trail: Trail, index: int) -> bool | None:
        found = [matcher.decide(trail, index) for matcher in matchers]
        return True if True in found else None if None in found else False

    return test, {key for matcher in matchers for key in matcher.asked}


def compile_args(document: JsonObject, pointer: str) -> CompiledKey:
    """The step's arguments hold what is given."""
    holds = compile_arguments(document, pointer)

    def test(trail: Trail, index: int) -> bool | None:
        is_command = trail.steps[index].get("kind") == "command"
        return holds(trail.content(index, "args"), is_command, trail.asking(index, "args"))

    return test, ()


def compile_result(document: JsonObject, pointer: str) -> CompiledKey:
    """The step's result holds what is given."""
    fields = compile_field_map(document["result"], f"{pointer}/result", True)

    def test(trail: Trail, index: int) -> bool | None:
        # The whole of a result is asked as it was recorded; a pointer goes into the JSON that its text holds.
        whole = trail.steps[index].get("result", MISSING)
        return fields_answer(
            fields, lambda tokens: found_at(trail.content(index, "result"), tokens) if tokens else whole, trail.asking(index, "result")
        )

    return test, ()


# In the order in which they are asked: what is cheap and decides most comes first.
MATCHER_KEYS: dict[str, CompileKey | None] = {
    "kind": one_of_key("kind", STEP_KINDS),
    "name": compile_name,
    "role": one_of_key("role"),
    "status": one_of_key("status", STEP_STATUSES),
    "agent": one_of_key("agent"),
    "turn": compile_turn,
    "text": compile_text,
    "args": compile_args,
    "result": compile_result,
    "under": compile_under,
    "$any": compile_alternatives,
    "args_mode": None,  # these three belong to args
    "args_defaults": None,
    "args_ignore": None,
}

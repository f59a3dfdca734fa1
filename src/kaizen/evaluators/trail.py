"""The recorded steps of an observation: their content, their order, how reasons call them.

Steps are told by their place, counted from 0 as in pointers and evidence. What the recording
does not say is None, never a guess.
"""

from collections.abc import Callable, Iterable
from typing import Any

from kaizen.evaluators.outcomes import NotMeasurable
from kaizen.evaluators.predicates import MISSING, Predicate
from kaizen.evaluators.registry import View, json_type_phrase
from kaizen.foundation.jsonio import JsonError, JsonObject, encode_compact, json_equal, parse_json
from kaizen.foundation.text import visible

ARGUMENTS_SHOWN = 80  # characters of a step's arguments in a reason
EVIDENCE_SHOWN = 20  # steps named in the evidence of one outcome
FAILED_STATUSES = frozenset(["error", "denied", "timeout"])  # what ended so changed nothing
ACTION_KINDS = frozenset(["tool", "command", "skill", "handoff", "retrieval"])  # what an agent does, beside talking and thinking
Ask = Callable[[Predicate, Any], "bool | None"]  # a predicate about a value; None where the recording does not say


class Trail:
    """The recorded steps of one observation, and what is worked out about them once.

    With *is_partial* what is absent counts as not recorded: for steps that are only described.
    """

    def __init__(self, steps: list[JsonObject], is_partial: bool = False) -> None:
        self.steps = steps
        self.is_partial = is_partial
        self.parsed: dict[tuple[int, str], Any] = {}
        self.places: dict[Any, int] | None = None
        self.agents_named: bool | None = None
        self.results_told: bool | None = None
        self.kinds_told: dict[str, bool] = {}  # whether any step of a kind has a status or a result

    def content(self, index: int, field: str) -> Any:
        """`args` or `result` of a step, JSON text parsed; MISSING when absent, {} for arguments that are absent or null."""
        value = self.steps[index].get(field, MISSING)
        if field == "args" and (value is MISSING or value is None):
            return {}
        if not isinstance(value, str):
            return value
        key = (index, field)
        if key not in self.parsed:
            self.parsed[key] = parsed_text(value)
        return self.parsed[key]

    def asking(self, index: int, field: str) -> Ask:
        """How a predicate is asked about a value that was looked for in *field* of a step."""
        if is_cut(self.steps[index], field):
            return lambda predicate, value: predicate.about_part(value)
        if self.is_partial:
            return lambda predicate, value: None if value is MISSING else predicate.holds(value)
        return lambda predicate, value: predicate.holds(value)

    def parent(self, index: int) -> int | None:
        """The place of a step's parent: -1 when it names none, None when the one it names is not recorded."""
        parent = self.steps[index].get("parent")
        if parent is None:
            return None if self.is_partial else -1
        if self.places is None:
            self.places = {encode_compact(step["id"]): place for place, step in enumerate(self.steps) if step.get("id") is not None}
        return self.places.get(encode_compact(parent))

    def names_agents(self) -> bool:
        """Whether any step says which agent took it."""
        if self.agents_named is None:
            self.agents_named = any(step.get("agent") is not None for step in self.steps)
        return self.agents_named

    def has_failed(self, index: int) -> bool:
        """Whether a step ended in error, denial or time-out; one without status is not known to have failed."""
        status = self.steps[index].get("status")
        return isinstance(status, str) and status in FAILED_STATUSES

    def has_returned(self, index: int) -> bool:
        """Whether a call did not fail and its result came back.

        A call with neither status nor result counts as returned only where no step of its kind has any.
        """
        step = self.steps[index]
        if self.has_failed(index):
            return False
        if step.get("status") is not None or step.get("result") is not None:
            return True
        kind = str(step.get("kind"))
        if kind not in self.kinds_told:
            alike = [other for other in self.steps if str(other.get("kind")) == kind]
            self.kinds_told[kind] = any(other.get("status") is not None or other.get("result") is not None for other in alike)
        return not self.kinds_told[kind]

    def tells_results(self) -> bool:
        """Whether any step has a result, so that one without had none."""
        if self.results_told is None:
            self.results_told = any(step.get("result") is not None for step in self.steps)
        return self.results_told

    def are_together(self, first: int, second: int) -> bool:
        """Whether two calls were issued together, in one batch (of one turn, where turns are told)."""
        one, other = self.steps[first], self.steps[second]
        batch = one.get("batch")
        return batch is not None and json_equal([batch, one.get("turn")], [other.get("batch"), other.get("turn")])

    def comes_before(self, first: int, second: int) -> bool:
        """Whether one step came before another; calls issued together did not."""
        return first < second and not self.are_together(first, second)


class EarlierSteps:
    """Some *places* of a trail, in order, and which of them came last before another step."""

    def __init__(self, trail: Trail, places: list[int]) -> None:
        self.trail = trail
        self.places = places
        self.apart: list[int] = []  # for each the position of the latest before it that was not issued together with it
        for position, place in enumerate(places):
            is_together = position > 0 and trail.are_together(places[position - 1], place)
            self.apart.append(self.apart[-1] if is_together else position - 1)

    def latest_before(self, index: int) -> int:
        """The latest place that came before the step at *index*; -1 when none did."""
        from bisect import bisect_left

        position = bisect_left(self.places, index) - 1
        if position >= 0 and self.trail.are_together(self.places[position], index):
            position = self.apart[position]
        return self.places[position] if position >= 0 else -1


def parsed_text(text: str) -> Any:
    """The JSON value that *text* holds, else *text* itself."""
    try:
        return parse_json(text)
    except JsonError:
        return text


def recorded_steps(observation: JsonObject) -> list[JsonObject]:
    """The steps of *observation*; without any, its `tool_calls` as steps of kind tool.

    Raises NotMeasurable when neither was recorded, or when tool calls stand beside steps that hold none,
    so that their order is not known.
    """
    steps, calls = observation.get("steps"), observation.get("tool_calls")
    found = steps if isinstance(steps, list) else None
    if isinstance(calls, list) and (calls or found is None) and not any(is_call(step) for step in found or ()):
        if found:
            raise NotMeasurable("tool_calls stand beside steps without tool calls, so their place among the steps is not known")
        found = [{"kind": "tool", **call} if isinstance(call, dict) else call for call in calls]
    if found is None:
        raise NotMeasurable("no steps were recorded")
    broken = next((index for index, step in enumerate(found) if not isinstance(step, dict)), None)
    if broken is not None:
        raise NotMeasurable(f"step {broken} is {json_type_phrase(found[broken])}, not an object")
    return found


def is_call(step: Any) -> bool:
    """Whether *step* is of kind tool."""
    return isinstance(step, dict) and step.get("kind") == "tool"


def view_trail(view: View) -> Trail:
    """The trail of the observation in *view*, shared by all entries. Raises NotMeasurable."""
    trail = view.memo.get("trail")
    if trail is None:
        trail = view.memo["trail"] = Trail(recorded_steps(view.observation))
    return trail


def call_text(step: JsonObject) -> str:
    """How a reason calls a step or a matcher: 'refund {"order":"A-7"}', 'message of user'."""
    name = step.get("name")
    if isinstance(name, list):
        name = "|".join(map(str, name))
    if not isinstance(name, str):
        role = step.get("role")
        name = f"{step.get('kind') or 'any step'}{f' of {role}' if isinstance(role, str) else ''}"
    args = step.get("args")
    shown = "" if args is None or args == {} else " " + visible(args if isinstance(args, str) else encode_compact(args), ARGUMENTS_SHOWN)
    return visible(str(name), ARGUMENTS_SHOWN) + shown


def step_text(trail: Trail, index: int) -> str:
    """How a reason calls a recorded step: 'step 3 refund {"order":"A-7"}', counted from 0 as in pointers."""
    return f"step {index} {call_text(trail.steps[index])}"


def is_action(step: JsonObject) -> bool:
    """Whether *step* is something that the agent did, not said, thought or was granted."""
    kind = step.get("kind")
    return isinstance(kind, str) and kind in ACTION_KINDS


def is_cut(step: JsonObject, field: str) -> bool:
    """Whether *field* of *step* was cut short."""
    cut = step.get("truncated")
    return isinstance(cut, list) and field in cut


def step_evidence(indexes: Iterable[int]) -> tuple[JsonObject, ...]:
    """The evidence that points at the steps at *indexes*, the first 20 of them."""
    return tuple({"step": index} for index in sorted(indexes)[:EVIDENCE_SHOWN])


def settled(candidates: Iterable[tuple[bool | None, bool | None]], otherwise: bool | None) -> bool | None:
    """The answer of the first candidate that is meant, *otherwise* when none is; None when it is not known which.

    A candidate is (whether it is meant, its answer). One that may be meant, with another answer, leaves it open.
    """
    answers = set()
    for is_meant, answer in candidates:
        if is_meant is not False:
            answers.add(answer)
        if is_meant:
            break
    else:
        answers.add(otherwise)
    return answers.pop() if len(answers) == 1 else None

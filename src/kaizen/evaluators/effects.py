"""What a run changed in the world: the evaluator `effects`.

    {"tools": {"issue_*": {}, "set_status": {"idempotent": true}, "get_*": {"side_effecting": false},
               "charge_card": {"failure_when": {"result": {"ok": false}}}}, "must_resolve": true}

A tool is told by its name or a glob; where several fit, the longest decides. A call that failed (error, denial, time-out,
or what `failure_when` matches) changed nothing; one that is not known to have failed counts as a change. Calls are the
same when tool and arguments are.
"""

from typing import Any, NamedTuple

from kaizen.evaluators.admission import admission_pattern, admits_failure, done_words, told_done, told_texts
from kaizen.evaluators.demands import Demand, demands_outcome, least_number, shortened, told_steps
from kaizen.evaluators.matcher import Matcher, compile_matcher
from kaizen.evaluators.outcomes import PASS, ConfigurationError, Outcome, refuse_empty
from kaizen.evaluators.predicates import compile_globs
from kaizen.evaluators.registry import REQUIRED, Check, Parameter, View, evaluator
from kaizen.evaluators.trail import Trail, is_action, is_cut, step_text, view_trail
from kaizen.foundation.jsonio import JsonObject, canonical_json, pointer_token
from kaizen.foundation.text import counted, did_you_mean, quoted

TOOL_EFFECT_KEYS = ("side_effecting", "idempotent", "failure_when")

EFFECTS_PARAMETERS = [
    Parameter(
        "tools",
        "object",
        REQUIRED,
        'Name or glob → {"side_effecting": true, "idempotent": false, "failure_when": a step matcher}; these are the defaults, and '
        "tools that are not named change nothing.",
    ),
    Parameter(
        "max_duplicates", "integer", 0, "At most so many calls repeat one that succeeded, with the same arguments; idempotent tools may."
    ),
    Parameter(
        "must_resolve", "boolean", False, "Of each call that changes something the last try has a known outcome: a time-out has none."
    ),
    Parameter("none", "boolean", False, "Nothing is changed at all."),
    Parameter(
        "no_false_claim",
        "boolean",
        True,
        "What failed, with no later success of the tool and none of the same call, is not told as done (English words) by a message "
        "or output that comes after.",
    ),
]
EFFECTS_EXAMPLE = {
    "entry": {"id": "refunded_once", "type": "effects", "tools": {"issue_refund": {"failure_when": {"result": {"ok": False}}}}},
    "observation": {
        "output": "I have refunded $12.50.",
        "steps": [
            {"kind": "tool", "name": "issue_refund", "args": {"order": "A-7"}, "status": "ok", "result": {"ok": False}},
            {"kind": "tool", "name": "issue_refund", "args": {"order": "A-7"}, "status": "ok", "result": {"ok": True}},
        ],
    },
    "case": {"id": "refund", "input": "Refund order A-7."},
    "outcome": PASS,
}


class ToolEffect(NamedTuple):
    """What calls of a tool do."""

    is_side_effecting: bool
    is_idempotent: bool
    failure: Matcher | None


class Effect(NamedTuple):
    """A call that changes something unless it failed: its place, tool, what it is the same by, whether it failed and came back."""

    place: int
    tool: ToolEffect
    name: str
    key: str
    is_cut: bool
    has_failed: bool | None
    has_returned: bool


@evaluator(
    "effects", 1, "Nothing is changed twice, left open, or told as done when it failed.", EFFECTS_PARAMETERS, EFFECTS_EXAMPLE, selects=False
)
def evaluate_effects(settings: JsonObject) -> Check:
    """Looks at what calls changed, not at attempts; a run without a call that changes something passes."""
    tool_of = compile_tool_effects(settings["tools"])
    most = least_number(settings, "max_duplicates", 0)
    phrases = admission_pattern([])

    def check(view: View) -> Outcome:
        trail = view_trail(view)
        effects = [found for place in range(len(trail.steps)) for found in [effect_at(trail, place, tool_of)] if found is not None]
        changes = [effect.place for effect in effects if effect.has_failed is False]
        demands, duplicates = duplicate_demands(trail, effects, most)
        if settings["none"]:
            demands += nothing_demands(trail, effects, changes)
        if settings["must_resolve"]:
            demands += resolved_demands(trail, effects)
        if settings["no_false_claim"]:
            demands += claim_demands(trail, effects, view, phrases)
        value = {"changes": len(changes), "duplicates": duplicates}
        return demands_outcome(demands, f"{counted(len(changes), 'change')}, {counted(duplicates, 'duplicate')}", value, changes)

    return check


def compile_tool_effects(tools: JsonObject) -> Any:
    """What gives the ToolEffect of a name, None for a tool that is not named. Raises ConfigurationError."""
    refuse_empty(list(tools), "/tools")
    compiled = []
    for name, document in tools.items():
        pointer = "/tools" + pointer_token(name)
        if not name or not isinstance(document, dict):
            raise ConfigurationError(pointer, "a tool has a name and an object behind it", '{"issue_*": {"idempotent": false}}')
        for key, value in document.items():
            if key not in TOOL_EFFECT_KEYS:
                raise ConfigurationError(pointer + pointer_token(key), f"unknown key {quoted(key)}", did_you_mean(key, TOOL_EFFECT_KEYS))
            if key != "failure_when" and not isinstance(value, bool):
                raise ConfigurationError(f"{pointer}/{key}", f"{key} is true or false")
        failure = compile_matcher(document["failure_when"], f"{pointer}/failure_when") if "failure_when" in document else None
        effect = ToolEffect(document.get("side_effecting", True), document.get("idempotent", False), failure)
        compiled.append((name, compile_globs([name], pointer), effect))
    compiled.sort(key=lambda each: (-len(each[0]), each[0]))
    by_name: dict[str, ToolEffect | None] = {name: effect for name, _, effect in compiled}

    def tool_of(name: str) -> ToolEffect | None:
        if name not in by_name:
            if len(by_name) > 10_000:  # names that a run makes up must not fill the memory
                return next((effect for _, is_named, effect in compiled if is_named(name)), None)
            by_name[name] = next((effect for _, is_named, effect in compiled if is_named(name)), None)
        return by_name[name]

    return tool_of


def effect_at(trail: Trail, place: int, tool_of: Any) -> Effect | None:
    """The call at *place* if it changes something; None for anything else."""
    step = trail.steps[place]
    name = step.get("name")
    if not isinstance(name, str) or not is_action(step):
        return None
    tool = tool_of(name)
    if tool is None or not tool.is_side_effecting:
        return None
    has_failed: bool | None = trail.has_failed(place)
    if not has_failed and tool.failure is not None:
        has_failed = tool.failure.decide(trail, place)
    key = canonical_json([name, trail.content(place, "args")])
    return Effect(place, tool, name, key, is_cut(step, "args"), has_failed, trail.has_returned(place))


def duplicate_demands(trail: Trail, effects: list[Effect], most: int) -> tuple[list[Demand], int]:
    """(the demand that no more than *most* calls repeat one that succeeded, how many surely do)."""
    succeeded: dict[str, bool] = {}  # by call whether one surely succeeded, or only perhaps
    sure: list[int] = []
    perhaps: list[int] = []
    for effect in effects:
        if effect.tool.is_idempotent or effect.has_failed:
            continue
        before = succeeded.get(effect.key)
        is_sure = effect.has_failed is False and not effect.is_cut
        if before is not None:
            (sure if before and is_sure else perhaps).append(effect.place)
        if effect.has_returned:
            succeeded[effect.key] = bool(before) or is_sure
    if len(sure) > most:
        verb = "repeats" if len(sure) == 1 else "repeat"
        reason = f"{told_steps(trail, sure)} {verb} what had succeeded (at most {most})"
        return [Demand(False, reason, tuple(sure))], len(sure)
    if len(sure) + len(perhaps) > most:
        why = f"whether {step_text(trail, perhaps[0])} repeats what had succeeded is not known: arguments or results were cut short"
        return [Demand(None, why)], len(sure)
    return [], len(sure)


def nothing_demands(trail: Trail, effects: list[Effect], changes: list[int]) -> list[Demand]:
    """The demand that nothing is changed."""
    if changes:
        return [Demand(False, f"{told_steps(trail, changes)} changed something", tuple(changes))]
    unclear = [effect.place for effect in effects if effect.has_failed is None]
    return [Demand(None, f"whether {step_text(trail, unclear[0])} failed is not known: its result was cut short")] if unclear else []


def resolved_demands(trail: Trail, effects: list[Effect]) -> list[Demand]:
    """The demand that the last try of each call has an outcome that is known."""
    last = {effect.key: effect for effect in effects}
    left = []
    for effect in last.values():
        is_known = trail.steps[effect.place].get("status") != "timeout" and (trail.has_failed(effect.place) or effect.has_returned)
        left += [] if is_known else [effect.place]
    verb = "has" if len(left) == 1 else "have"
    return [Demand(False, f"{told_steps(trail, left)} {verb} no known outcome", tuple(left))] if left else []


def claim_demands(trail: Trail, effects: list[Effect], view: View, phrases: Any) -> list[Demand]:
    """The demand of each tool whose last call failed that nothing told after it says it was done, unless something admits it."""
    last = {effect.name: effect for effect in effects}
    done = {effect.key for effect in effects if effect.has_failed is False}
    failed = [effect for effect in last.values() if effect.has_failed is not False and effect.key not in done]
    told = told_texts(trail, view.observation) if failed else []
    admitted = next((place for place, text in reversed(told) if admits_failure(text, phrases)), -1)
    latest: dict[str, int] = {}  # by word the last place that tells it as done
    for place, text in told:
        latest.update((word, place) for word in told_done(text))
    demands = []
    for effect in failed:
        claim = max(latest.get(word, -1) for word in done_words(effect.name))
        if admitted <= effect.place < claim:
            source = "the output" if claim == len(trail.steps) else f"step {claim}"
            reason = f"{step_text(trail, effect.place)} failed, and {source} tells it as done"
            places = (effect.place,) if claim == len(trail.steps) else (effect.place, claim)
            demands.append(Demand(False if effect.has_failed else None, reason, places))
    return shortened(demands)

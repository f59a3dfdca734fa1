"""Whether the agent went round in circles: the evaluator `loops`.

What is looked at are the steps by which an agent does something (tool, command, skill, handoff, retrieval);
messages of the agent, model calls and the like between them do not end a row, a message of the user does.
Two calls are the same when agent, kind, name and arguments are, and, with `same_result`, also how they ended
and their results. A cycle is a row of 2 to 4 calls, not all the same, that comes again at once.
"""

from typing import NamedTuple

from kaizen.evaluators.demands import Demand, demands_outcome, least_number
from kaizen.evaluators.matcher import compile_matchers
from kaizen.evaluators.outcomes import PASS, Outcome
from kaizen.evaluators.predicates import MISSING
from kaizen.evaluators.registry import Check, Parameter, View, evaluator
from kaizen.evaluators.trail import Trail, is_action, is_cut, step_text, view_trail
from kaizen.foundation.jsonio import JsonObject, canonical_json

LONGEST_CYCLE = 4  # calls

LOOPS_PARAMETERS = [
    Parameter("max_identical", "integer", 3, "The same call at most so many times in a row."),
    Parameter("max_cycle_repeats", "integer", 2, "A cycle of 2 to 4 calls at most so many times in a row."),
    Parameter("same_result", "boolean", True, "Only calls with the same result are the same; false: whatever their results."),
    Parameter("ignore", "matchers", None, "Steps that may be repeated, such as polling; they are left out.", may_be_empty=True),
]
LOOPS_EXAMPLE = {
    "entry": {"id": "no_loop", "type": "loops", "ignore": {"name": "wait"}},
    "observation": {
        "steps": [
            {"kind": "tool", "name": "search", "args": {"q": "visa"}, "status": "ok", "result": []},
            {"kind": "tool", "name": "search", "args": {"q": "visa rules"}, "status": "ok", "result": ["page 4"]},
            {"kind": "tool", "name": "read", "args": {"page": 4}, "status": "ok", "result": "Visas are free."},
        ]
    },
    "outcome": PASS,
}


class LoopCall(NamedTuple):
    """A call: its place, what it is the same by, and whether the recording leaves open what it is."""

    place: int
    key: str
    is_open: bool


class LoopRow(NamedTuple):
    """A cycle of `length` calls that comes `repeats` times from the call at `start` on; the longest row that was found."""

    repeats: int = 0
    start: int = 0
    length: int = 1


@evaluator("loops", 1, "The agent does not repeat itself in a row or in a cycle.", LOOPS_PARAMETERS, LOOPS_EXAMPLE, selects=False)
def evaluate_loops(settings: JsonObject) -> Check:
    """Looks at tools, commands, skills, handoffs and retrievals; a message of the user begins anew. No such step is no loop."""
    most_identical = least_number(settings, "max_identical", 1)
    most_repeats = least_number(settings, "max_cycle_repeats", 1)
    ignored = compile_matchers(settings["ignore"], "/ignore") if settings["ignore"] not in (None, []) else []
    bounds = [(1, most_identical), *((length, most_repeats) for length in range(2, LONGEST_CYCLE + 1))]

    def check(view: View) -> Outcome:
        trail = view_trail(view)
        rows: list[list[LoopCall]] = [[]]
        demands = []
        for index, step in enumerate(trail.steps):
            if step.get("kind") == "message" and step.get("role") == "user":
                rows.append([])
            elif is_action(step):
                answers = [matcher.decide(trail, index) for matcher in ignored]
                if True not in answers:
                    rows[-1].append(loop_call(trail, index, settings["same_result"], None in answers))
                    if None in answers:
                        demands.append(Demand(None, ignored[answers.index(None)].unknown(trail, index)))
        most = {1: 0, 2: 0}  # of the same call, of a cycle
        for length, bound in bounds:
            for calls in rows:
                found = longest_row([call.key if not call.is_open else f"{call.place}" for call in calls], length)
                most[min(length, 2)] = max(most[min(length, 2)], found.repeats)
                widest = found if found.repeats > bound else longest_row([call.key for call in calls], length)
                demands.append(row_demand(trail, calls, widest, found.repeats > bound, bound))
        value = {"identical": most[1], "cycle_repeats": most[2]}
        fine = f"no call comes more than {most_identical} times in a row, no cycle more than {most_repeats}"
        return demands_outcome(demands, fine, value)

    return check


def loop_call(trail: Trail, index: int, with_result: bool, may_be_ignored: bool) -> LoopCall:
    """The step at *index* as a call."""
    step = trail.steps[index]
    key = [step.get("agent"), step.get("kind"), step.get("name"), trail.content(index, "args")]
    is_open = may_be_ignored or is_cut(step, "args")
    if with_result:
        result = trail.content(index, "result")
        result = None if result is MISSING else result
        key.append([step.get("status"), result])
        is_untold = result is None and not trail.has_failed(index) and not trail.tells_results()
        is_open = is_open or is_cut(step, "result") or is_untold
    return LoopCall(index, canonical_json(key), is_open)


def longest_row(keys: list[str], length: int) -> LoopRow:
    """The row in which a cycle of *length* keys comes most often; with more than one key they are not all the same."""
    best = LoopRow(1 if keys else 0) if length == 1 else LoopRow(length=length)
    start = last_change = 0  # where the row begins; the last place whose key differs from the one before
    for place in range(1, len(keys)):
        if keys[place] != keys[place - 1]:
            last_change = place
        if place >= length and keys[place] != keys[place - length]:
            start = place - length + 1
        repeats = (place + 1 - start) // length
        if repeats > best.repeats and repeats > 1 and (length == 1 or last_change > start):
            best = LoopRow(repeats, start, length)
    return best


def row_demand(trail: Trail, calls: list[LoopCall], row: LoopRow, is_sure: bool, bound: int) -> Demand:
    """The demand that *row* of *calls* is no longer than *bound*; only possibly longer when not *is_sure*."""
    if row.repeats <= bound:
        return Demand(True)
    places = [call.place for call in calls[row.start : row.start + row.repeats * row.length]]
    first = " → ".join(step_text(trail, place) for place in places[: row.length])
    told = f"{first} comes {row.repeats} times in a row (at most {bound})"
    if is_sure:
        return Demand(False, told, tuple(places))
    return Demand(None, f"whether {told} is not known: arguments or results were cut short or not recorded")

"""The evaluator `budget`: what a trial may use, and how its cost and duration are known.

A quantity that nobody measured is not 0: it follows the entry's `on_missing`.
"""

from collections.abc import Callable
from typing import Any

from kaizen.evaluators.decimals import exact_value
from kaizen.evaluators.outcomes import ConfigurationError, NotMeasurable, Outcome, decided
from kaizen.evaluators.paths import output_text
from kaizen.evaluators.registry import Check, Parameter, View, evaluator, is_json_number
from kaizen.evaluators.trail import view_trail
from kaizen.foundation.jsonio import JsonObject, float_or_none, pointer_token
from kaizen.foundation.text import did_you_mean, listed, quoted


def number_at(document: Any, *keys: str) -> Any:
    """The JSON number at *keys* below *document*; None when there is none."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document if is_json_number(document) else None


def trial_duration_ms(observation: JsonObject) -> float | None:
    """Milliseconds that the trial took, as the engine measured them; None when it did not (a replayed answer)."""
    duration: float | None = number_at(observation, "execution", "duration_ms")
    return duration


def trial_cost_usd(observation: JsonObject) -> float | None:
    """US dollars that the trial cost, earlier attempts included; None when any of them has no price, or no float holds the sum."""
    execution = observation.get("execution")
    attempts = execution.get("attempts") if isinstance(execution, dict) else None
    prices = [number_at(observation, "cost", "total_usd")]
    prices += [number_at(attempt, "cost", "total_usd") for attempt in (attempts if isinstance(attempts, list) else [])]
    if any(price is None for price in prices):
        return None
    return prices[0] if len(prices) == 1 else float_or_none(sum(exact_value(price) for price in prices))


# --- What can be bounded -----------------------------------------------------------------


def tokens_total(view: View) -> Any:
    """`usage.total_tokens`, else the sum of input and output tokens when both are known."""
    total = number_at(view.observation, "usage", "total_tokens")
    parts = [number_at(view.observation, "usage", name) for name in ("input_tokens", "output_tokens")]
    return total if total is not None else None if None in parts else sum(parts)


def steps_of_kind(kind: str) -> Callable[[View], Any]:
    """Counts the recorded steps of *kind*."""
    return lambda view: sum(1 for step in view_trail(view).steps if step.get("kind") == kind)


def count_turns(view: View) -> Any:
    """The number of different `turn`s of the recorded steps; where none has one, of the user's messages."""
    steps = view_trail(view).steps
    turns = {step["turn"] for step in steps if isinstance(step.get("turn"), int)}
    return len(turns) or sum(1 for step in steps if step.get("kind") == "message" and step.get("role") == "user") or None


def count_retries(view: View) -> Any:
    """The number of earlier attempts at the trial."""
    execution = view.observation.get("execution")
    attempts = execution.get("attempts") if isinstance(execution, dict) else None
    return len(attempts) if isinstance(attempts, list) else None


def count_output_bytes(view: View) -> Any:
    """The length of the output's text in UTF-8."""
    output = view.observation.get("output")
    return None if output is None else len(output_text(output).encode("utf-8", "surrogatepass"))


QUANTITIES: dict[str, Callable[[View], Any]] = {
    "latency_ms": lambda view: trial_duration_ms(view.observation),
    "cost_usd": lambda view: trial_cost_usd(view.observation),
    "tokens_in": lambda view: number_at(view.observation, "usage", "input_tokens"),
    "tokens_out": lambda view: number_at(view.observation, "usage", "output_tokens"),
    "tokens_total": tokens_total,
    "steps": lambda view: len(view_trail(view).steps),
    "tool_calls": steps_of_kind("tool"),
    "model_calls": steps_of_kind("model"),
    "turns": count_turns,
    "retries": count_retries,
    "output_bytes": count_output_bytes,
}


def measured_quantity(name: str, view: View) -> Any:
    """The quantity *name* of the observation in *view*; None when it was not measured."""
    try:
        return QUANTITIES[name](view)
    except NotMeasurable:
        return None


def check_budget_bounds(settings: JsonObject) -> None:
    """Raises ConfigurationError for bounds that are unknown, no numbers from 0, crossed, or none at all."""
    for side in ("max", "min"):
        for name, bound in settings[side].items():
            pointer = f"/{side}{pointer_token(name)}"
            if name not in QUANTITIES:
                raise ConfigurationError(pointer, f"quantity {quoted(name)} is unknown", did_you_mean(name, QUANTITIES))
            if not is_json_number(bound) or bound < 0:
                raise ConfigurationError(pointer, f"the bound of {name} is no number from 0")
    for name in sorted(settings["max"].keys() & settings["min"].keys()):
        if settings["min"][name] > settings["max"][name]:
            raise ConfigurationError(f"/min/{name}", f"the minimum of {name} is above its maximum")
    if not settings["max"] and not settings["min"]:
        raise ConfigurationError("", "neither max nor min names a quantity", f"quantities: {listed(QUANTITIES, 20)}")


@evaluator(
    "budget",
    1,
    "What the trial used stays within bounds: time, cost, tokens, steps, calls, turns, retries, size of the output.",
    [
        Parameter("max", "object", {}, f"the most of each quantity: {', '.join(QUANTITIES)}"),
        Parameter("min", "object", {}, "the least of each quantity"),
    ],
    example={
        "entry": {"id": "cheap", "type": "budget", "max": {"cost_usd": 0.05, "tool_calls": 3}},
        "observation": {"output": "Done.", "cost": {"total_usd": 0.05}, "steps": [{"kind": "tool", "name": "find_order"}]},
        "outcome": "pass",
    },
    selects=False,
)
def evaluate_budget(settings: JsonObject) -> Check:
    """Passes when every bounded quantity was measured and is within; a broken bound decides, whatever else is unmeasured."""
    check_budget_bounds(settings)
    bounds = [(name, settings["min"].get(name), settings["max"].get(name)) for name in QUANTITIES]
    bounds = [(name, low, high) for name, low, high in bounds if low is not None or high is not None]

    def check(view: View) -> Outcome:
        measured = {name: measured_quantity(name, view) for name, _, _ in bounds}
        broken, met, unmeasured = [], [], []
        for name, low, high in bounds:
            amount = measured[name]
            if amount is None:
                unmeasured.append(name)
            elif high is not None and amount > high:
                broken.append(f"{name} {amount!r} is above {high!r}")
            elif low is not None and amount < low:
                broken.append(f"{name} {amount!r} is below {low!r}")
            else:
                met.append(f"{name} {amount!r}")
        if unmeasured and not broken:
            raise NotMeasurable(f"{listed(unmeasured)} {'was' if len(unmeasured) == 1 else 'were'} not measured")
        return decided(not broken, listed(broken) if broken else f"within bounds: {listed(met)}", measured)

    return check

"""Several demands on one run, and the outcome that follows from them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from kaizen.evaluators.outcomes import ConfigurationError, NotMeasurable, Outcome, decided
from kaizen.evaluators.trail import Trail, step_evidence, step_text
from kaizen.foundation.jsonio import JsonObject

TOLD_STEPS = 3  # how many steps a reason names


class Demand(NamedTuple):
    """Whether a demand is met (None: the recording does not say), why not, and the steps that it is about."""

    is_met: bool | None
    reason: str = ""
    places: tuple[int, ...] = ()


def demands_outcome(demands: list[Demand], fine: str, value: Any = None, places: Iterable[int] = ()) -> Outcome:
    """Fail when a demand is not met, pass with the reason *fine* when all are. Raises NotMeasurable when that is not known."""
    broken = [demand for demand in demands if demand.is_met is False]
    if broken:
        named = {place for demand in broken for place in demand.places}
        return decided(False, "; ".join(demand.reason for demand in broken), value, step_evidence(named))
    unclear = next((demand for demand in demands if demand.is_met is None), None)
    if unclear is not None:
        raise NotMeasurable(unclear.reason)
    return decided(True, fine, value, step_evidence(places))


def shortened(demands: list[Demand]) -> list[Demand]:
    """*demands*, of which of those that are not met only the first have words of their own."""
    broken = [demand for demand in demands if demand.is_met is False]
    if len(broken) <= TOLD_STEPS:
        return demands
    places = tuple(place for demand in broken[TOLD_STEPS:] for place in demand.places)
    return [*broken[:TOLD_STEPS], Demand(False, f"and {len(broken) - TOLD_STEPS} more", places)]


def told_steps(trail: Trail, places: list[int]) -> str:
    """'step 3 refund {"order":"A-7"}, step 5 refund …, and 2 more'."""
    told = ", ".join(step_text(trail, place) for place in places[:TOLD_STEPS])
    return f"{told}, and {len(places) - TOLD_STEPS} more" if len(places) > TOLD_STEPS else told


def least_number(settings: JsonObject, name: str, least: int) -> Any:
    """The number at *name* of *settings*, None when there is none. Raises ConfigurationError when it is below *least*."""
    if settings[name] is not None and settings[name] < least:
        raise ConfigurationError(f"/{name}", f"{name} is less than {least}")
    return settings[name]

"""The noise of the leader, and what it takes to see the effect that is wanted."""

import math
from typing import NamedTuple

from kaizen.campaigns.campaign import Campaign, record
from kaizen.campaigns.measuring import NOISE_RUN, Arm, Measure, arm_runs, check_recorded, open_bench, refuse_spent, scaled_effect
from kaizen.campaigns.rules import SCREEN_Z, noise_forbids
from kaizen.campaigns.state import CampaignState, campaign_state
from kaizen.foundation.errors import IncompleteError
from kaizen.foundation.jsonio import JsonObject
from kaizen.lab.runstore import DONE
from kaizen.lab.workspace import Workspace
from kaizen.stats.intervals import normal_point, normal_tail
from kaizen.stats.looks import look_level
from kaizen.stats.paired_runs import MDE_TRIALS, ONE_SIDED, NoiseFloor, noise_floor
from kaizen.stats.planning import POWER

TYPICAL_SCATTER = 0.16  # mean variance of a trial of an item: pass rates of Beta(1.2, 0.8)
PLANNED_ITEMS = (50, 100, 200, 400)
PLANNED_EFFECTS = (0.03, 0.05, 0.08, 0.12)


# --- Measuring it ----------------------------------------------------------------------


def measured_noise(workspace: Workspace, campaign: Campaign, passes: int, accepted: str) -> JsonObject:
    """The body of the noise event: measured now, or the one that is known while the leader's stored trials hold.

    *accepted* is what a person says to a floor that is too high; it is recorded. Raises IncompleteError when a pass failed, and what
    forbids measuring.
    """
    state = campaign_state(campaign)
    if state.noise is not None and state.stored and not state.is_drifted:
        if accepted and state.noise["accepted"] != accepted:
            record(campaign, "noise", **{**state.noise, "runs": state.stored, "accepted": accepted})
        return campaign_state(campaign).noise or {}
    leader = state.leader
    with open_bench(workspace, campaign) as bench:
        number = sum(event["type"] == "noise" for event in campaign.events)
        of = Measure(NOISE_RUN, f"noise\n{number}\n{leader.commit}", bench.order())
        with arm_runs(bench, [Arm("leader", leader.variant, leader.commit)], of) as runs:
            if all(run.writer.document()["state"] == "planned" for run in runs.runs):
                refuse_spent(campaign, state, passes * len(bench.items.cases))
            runs.measure(passes)
            states, ids = runs.finish(), list(runs.ids().values())
            scores = runs.scores("leader")
    if states != [DONE]:
        message = f"{ids[0]}: {states[0]}; the noise is not known before all passes are measured"
        raise IncompleteError(message, f"see what failed: kaizen show {ids[0]}; then call kaizen noise again", states[0])
    check_recorded(campaign, bench.store, ids)
    body = {"runs": ids, "passes": passes, **noise_body(campaign.contract, scores), "accepted": accepted or None}
    record(campaign, "noise", **body)
    return body


def noise_body(contract: JsonObject, scores: dict[str, list[float]]) -> JsonObject:
    """What the passes in *scores* say: flips, run variance, smallest gain that is seen, whether that is good enough."""
    floor = noise_floor(scores)
    mean = math.fsum(math.fsum(each) / len(each) for each in scores.values()) / len(scores) if scores else None
    mde = {str(trials): value for trials, value in (floor.mde or {}).items()}
    planned = floor.mde_at(floor.items, int(contract["replicate"]["passes"])) if floor.items else None
    return {
        "items": floor.items,
        "flip_rate": floor.flip_rate,
        "se_pass": floor.se_pass,
        "run_variance": floor.run_variance,
        "excess": floor.excess,
        "mde": mde,
        "score": mean,
        "is_resolvable": not noise_forbids(planned, scaled_effect(contract), target_gap(contract, mean)),
    }


def target_gap(contract: JsonObject, mean: float | None) -> float | None:
    """How far the *mean* score, as a share of the range, is from the target; None without one."""
    metric, target = contract["metric"], contract["target"]
    low, high = metric.get("minimum"), metric.get("maximum")
    if target is None or mean is None:
        return None
    is_lower = metric["direction"] == "lower"
    if None in (low, high):
        return float(-target - mean if is_lower else target - mean)
    return float(((high - target) if is_lower else (target - low)) / (high - low) - mean)


# --- Planning --------------------------------------------------------------------------


class PlanBasis(NamedTuple):
    """What a plan rests on: the floor, in words whence, items, holdout cases, looks, the effect wanted, costs and seconds of an answer."""

    floor: NoiseFloor
    source: str
    items: int
    holdout: int
    looks: int
    alpha: float
    trials: int
    passes: int
    effect: float
    score: float | None
    variants: int
    cost: float | None
    seconds: float | None


def known_floor(state: CampaignState) -> NoiseFloor | None:
    """The noise floor that was measured; None before."""
    noise = state.noise
    if noise is None or noise["se_pass"] is None:
        return None
    return NoiseFloor(int(noise["items"]), int(noise["passes"]), noise["flip_rate"], noise["se_pass"], noise["run_variance"])


def typical_floor(items: int) -> NoiseFloor:
    """The noise floor of typical pass/fail items where nothing was measured."""
    return NoiseFloor(items, 0, None, math.sqrt(TYPICAL_SCATTER / items), 0.0)


def items_needed(floor: NoiseFloor, effect: float, trials: int, level: float) -> int | None:
    """Items with *trials* passes a side that show *effect* with power 0.8 in a one-sided test at *level*; None where no number does.

    Of items that pass with a probability of Beta(1.2, 0.8), for 10 points with 3 trials:

    >>> items_needed(typical_floor(100), 0.1, 3, 0.05)
    66
    """
    if floor.se_pass is None or floor.run_variance is None or effect <= 0:
        return None
    wanted = (effect / (normal_point(1 - level) + normal_point(POWER))) ** 2 * trials / 2 - floor.run_variance
    return math.ceil(floor.se_pass**2 * floor.items / wanted) if wanted > 0 else None


def campaign_plan(basis: PlanBasis) -> JsonObject:
    """What can be seen with how much, what it costs by proposal and by item, and why a campaign cannot succeed ([] when it can)."""
    floor, level = basis.floor, look_level(basis.alpha, basis.looks, 1, 0)
    sizes = sorted({*PLANNED_ITEMS, basis.items})
    effects = sorted({*PLANNED_EFFECTS, *([basis.effect] if basis.effect > 0 else [])})
    screened = normal_tail(SCREEN_Z)  # of useless variants this share goes on to be replicated
    proposal = basis.items * (1 + screened * 2 * basis.passes)
    look = 2 * basis.trials * basis.holdout
    answers = basis.variants * proposal + basis.looks * look
    mde = floor.mde_at(basis.items, basis.passes)
    look_mde = floor.mde_at(basis.holdout, basis.trials, level) if basis.holdout else None
    reasons = ["unresolvable"] if noise_forbids(mde, basis.effect, None) else []
    if look_mde is not None and basis.score is not None and look_mde > 1 - basis.score:
        reasons.append("look_cannot_see")
    return {
        "source": basis.source,
        "items": basis.items,
        "holdout": basis.holdout,
        "effect": basis.effect,
        "mde": [{"items": n, **{str(trials): floor.mde_at(n, trials) for trials in MDE_TRIALS}} for n in sizes],
        "items_needed": {str(trials): items_needed(floor, basis.effect, trials, ONE_SIDED) for trials in MDE_TRIALS},
        "look": {
            "level": level,
            "trials": basis.trials,
            "mde": look_mde,
            "power": [{"effect": each, "power": floor.power_at(each, basis.holdout, basis.trials, level)} for each in effects]
            if basis.holdout
            else [],
            "cases_needed": items_needed(floor, basis.effect, basis.trials, level),
        },
        "answers": {"per_proposal": round(proposal), "per_look": look, "campaign": round(answers)},
        "cost_usd": amounts(basis.cost, proposal, look, answers),
        "seconds": amounts(basis.seconds, proposal, look, answers),
        "cannot_succeed": reasons,
    }


def amounts(each: float | None, proposal: float, look: float, answers: float) -> JsonObject | None:
    """What so many answers take at *each* apiece: by item, proposal, look, and in all; None when that is not known."""
    if each is None:
        return None
    return {"per_item": each, "per_proposal": each * proposal, "per_look": each * look, "campaign": each * answers}

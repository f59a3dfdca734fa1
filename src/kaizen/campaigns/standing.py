"""What is told of a campaign's state: situation, why it must stop, what was learnt.

Of the holdout nothing is here but how many looks there were and what they answered.
"""

import math
from collections.abc import Mapping, Sequence

from kaizen.campaigns.campaign import Campaign
from kaizen.campaigns.ideas import CATEGORIES
from kaizen.campaigns.measuring import merged_scores, scaled_effect
from kaizen.campaigns.rules import CampaignCounts, look_is_due, stop_reasons
from kaizen.campaigns.state import UNCHANGED, CampaignState
from kaizen.foundation.errors import KaizenError
from kaizen.foundation.jsonio import JsonObject, rounded_floats
from kaizen.foundation.text import visible
from kaizen.lab.execution import load_items
from kaizen.lab.runstore import RunStore
from kaizen.lab.system import load_system
from kaizen.lab.workspace import Workspace

BUDGET_NAMES = ("variants", "evaluations", "usd", "hours")
FAILED_BELOW = 0.5  # mean score of an item, of the range, below which it is a failure
LESSON_SHOWN, NAME_SHOWN = 160, 40
LESSONS_SHOWN, LABELS_TOLD, AVOID_SHOWN, NEAR_SHOWN, ITEMS_OF_LABEL = 10, 5, 10, 5, 3


def scaled_target(contract: JsonObject) -> float | None:
    """The target as a share of the range of the score, more being better; None without a target or a range."""
    metric, target = contract["metric"], contract.get("target")
    if target is None:
        return None
    low, high = metric.get("minimum"), metric.get("maximum")
    if low is None or high is None:
        return None
    share = (target - low) / (high - low)
    return float(1 - share if metric["direction"] == "lower" else share)


def leader_scores(store: RunStore, state: CampaignState) -> dict[str, list[float]]:
    """The stored trials of the leader by item, more being better; {} where they cannot be read or have to be measured anew."""
    try:
        return merged_scores(store, state.stored)
    except KaizenError:
        return {}


def mean_score(scores: Mapping[str, Sequence[float]]) -> float | None:
    """The mean over items of their means; None for none."""
    means = [math.fsum(values) / len(values) for values in scores.values() if values]
    return math.fsum(means) / len(means) if means else None


def is_look_due(state: CampaignState) -> bool:
    """Whether the leader has gained enough for a look, and none has asked about this very leader."""
    asked = {(each.get("leader_commit"), each.get("reference_commit")) for each in state.looks}
    is_new = (state.leader.commit, state.reference.commit) not in asked
    count = state.look_count
    return is_new and look_is_due(state.leader_gain()[0], state.look_mde(count.next_level), count.left)


def is_unresolved(state: CampaignState) -> bool:
    """Whether the effect wanted is below what the noise lets see, and nobody has accepted that."""
    noise = state.noise or {}
    return noise.get("is_resolvable") is False and not noise.get("accepted") and not state.contract.get("accepts_unresolvable")


def campaign_counts(state: CampaignState, dev_score: float | None, signs: Sequence[str]) -> CampaignCounts:
    """What the stop rules look at; *dev_score* of the leader, *signs* the files that a person has put into the store."""
    spent, budget, target = state.spent(), state.contract["budget"], scaled_target(state.contract)
    is_confirmed = state.reference.variant != UNCHANGED and state.reference == state.leader
    return CampaignCounts(
        is_target_confirmed=is_confirmed and None not in (target, dev_score) and (dev_score or 0.0) >= (target or 0.0),
        variants=spent.variants,
        item_evals=spent.evaluations,
        usd=spent.usd or 0.0,
        hours=spent.hours,
        max_variants=budget.get("variants"),
        max_item_evals=budget.get("evaluations"),
        max_usd=budget.get("usd"),
        max_hours=budget.get("hours"),
        variants_since_keep=state.since_keep,
        categories_tried=len(state.categories - {""}),
        fresh_contexts=state.fresh_contexts,
        dev_score=dev_score,
        mde=state.mde(),
        min_effect=scaled_effect(state.contract),
        can_afford_more=not is_unresolved(state),
        equal_crashes=state.equal_crashes,
        taints=state.taints,
        integrity=tuple(str(each.get("kind")) for each in state.unsettled()),
        is_stop_file="STOP" in signs,
    )


def campaign_stops(state: CampaignState, dev_score: float | None, signs: Sequence[str]) -> list[str]:
    """The codes of why the campaign must stop, [] while it goes on; `closed` when it has ended."""
    return ["closed"] if state.closed else stop_reasons(campaign_counts(state, dev_score, signs))


def budget_left(state: CampaignState) -> JsonObject:
    """{variants, evaluations, usd, hours} that are left; None where there is no limit, or the use is not known."""
    spent = state.spent()._asdict()
    budget = state.contract["budget"]
    known = {name: spent[name] for name in BUDGET_NAMES if budget.get(name) is not None and spent[name] is not None}
    return {name: max(0, budget[name] - known[name]) if name in known else None for name in BUDGET_NAMES}


def situation_document(state: CampaignState, dev_score: float | None) -> JsonObject:
    """What `next` and `status` tell of where the campaign stands; floats at nine digits, None for what is not known."""
    gain, se = state.leader_gain()
    noise, count = state.noise or {}, state.look_count
    found: JsonObject = {
        "reference": visible(state.reference.variant, NAME_SHOWN),
        "leader": visible(state.leader.variant, NAME_SHOWN),
        "dev": {"leader": dev_score, "gain_over_reference": gain, "se": se},
        "noise": {"flip_rate": noise.get("flip_rate"), "se_pass": noise.get("se_pass"), "mde": state.mde()},
        "luck_line": state.luck_line(),
        "variants": len(state.screened()),
        "expected_false_keeps": state.false_keeps(),
        "looks": {**count._asdict(), "mde": state.look_mde(count.next_level)},
        "left": budget_left(state),
    }
    told: JsonObject = rounded_floats(found)
    return told


# --- Memory ----------------------------------------------------------------------------


def failures_by_label(workspace: Workspace, state: CampaignState, scores: Mapping[str, Sequence[float]]) -> list[JsonObject]:
    """[{label, n, of, items}] of the leader's failing development items by tag, most first; [] where the dataset cannot be read."""
    try:
        cases = load_items(workspace, load_system(workspace, str(state.contract["system"]))).cases
    except KaizenError:
        return []
    means = {item: math.fsum(values) / len(values) for item, values in scores.items() if values and item in cases}
    failing = sorted((mean, item) for item, mean in means.items() if mean < FAILED_BELOW)
    labels: dict[str, list[str]] = {}
    totals: dict[str, int] = {}
    for item in means:
        for tag in cases[item].document.get("tags") or []:
            totals[tag] = totals.get(tag, 0) + 1
    for _, item in failing:
        for tag in cases[item].document.get("tags") or ["(no tag)"]:
            labels.setdefault(tag, []).append(item)
    ordered = sorted(labels.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    return [
        {
            "label": visible(label, NAME_SHOWN),
            "n": len(items),
            "of": totals.get(label, len(items)),
            "items": [visible(item, NAME_SHOWN) for item in items[:ITEMS_OF_LABEL]],
        }
        for label, items in ordered[:LABELS_TOLD]
    ]


def verdict_words(state: CampaignState, name: str) -> str:
    """'not replicated, fresh gain -0.01': what became of the variant *name*."""
    variant = state.variants[name]
    words = variant.verdict.replace("_", " ")
    for what, body in (("fresh gain", variant.replicate), ("gain", variant.screen)):
        if body and body.get("gain") is not None:
            z = f", z {body['z']:.2f}" if body.get("z") is not None else ""
            return f"{words}, {what} {body['gain']:+.3g}{z}"
    return words


def memory_document(campaign: Campaign, state: CampaignState, failures: list[JsonObject]) -> JsonObject:
    """{lessons, failures_top, avoid, near_miss, under_explored}, the newest of each, capped in number and length."""
    gone = [each for each in state.variants.values() if each.decision and each.name != UNCHANGED and not state_is_kept(each.decision)]
    tried = {str(idea.get("category")) for name, idea in state.ideas.items() if state.idea_status(name) != "open"}
    lessons = [f"{visible(each['variant'], NAME_SHOWN)}: {visible(each['lesson'], LESSON_SHOWN)}" for each in state.lessons]
    near = [each for each in state.variants.values() if each.is_near_miss()]
    return {
        "lessons": lessons[-LESSONS_SHOWN:],
        "failures_top": failures,
        "avoid": [
            {"idea": each.idea or visible(each.name, NAME_SHOWN), "why": verdict_words(state, each.name)}
            for each in gone[-AVOID_SHOWN:]
            if not each.is_near_miss()
        ],
        "near_miss": [each.idea or visible(each.name, NAME_SHOWN) for each in near[-NEAR_SHOWN:]],
        "under_explored": [name for name in CATEGORIES if name not in tried][:NEAR_SHOWN],
    }


def state_is_kept(decision: str) -> bool:
    """True for a decision that made a variant the leader."""
    return decision in ("kept", "simplified")

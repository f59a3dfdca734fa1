"""What campaigns say of runs: idea, stage, verdict, leader, reference, luck line."""

from collections.abc import Iterable
from typing import NamedTuple

from kaizen.campaigns.campaign import load_campaign
from kaizen.campaigns.conduct import run_names
from kaizen.campaigns.state import CampaignState, CampaignVariant, campaign_state
from kaizen.foundation.errors import KaizenError
from kaizen.foundation.jsonio import JsonObject, rounded_floats
from kaizen.lab.workspace import Workspace


class KnownCampaigns(NamedTuple):
    """The states of campaigns by id, and in a sentence what is wrong with those that cannot be trusted."""

    states: dict[str, CampaignState]
    problems: list[str]


def known_campaigns(workspace: Workspace, documents: Iterable[JsonObject]) -> KnownCampaigns:
    """The campaigns that the runs of *documents* belong to."""
    states: dict[str, CampaignState] = {}
    problems = []
    for name in dict.fromkeys(str(each["campaign"]["id"]) for each in documents if each.get("campaign")):
        try:
            states[name] = campaign_state(load_campaign(workspace, name))
        except KaizenError as error:
            problems.append(f"{name}: {error.message}")
    return KnownCampaigns(states, problems)


def run_mark(states: dict[str, CampaignState], document: JsonObject) -> JsonObject | None:
    """{campaign, stage, idea, label, z, gain, fresh_gain, verdict, decision} of a run; None outside of campaigns.

    `stage` is what the run was for. z and gain are those of the step it belongs to; None where there is none, or not yet.
    """
    own = document.get("campaign")
    if not own:
        return None
    mark: JsonObject = {"campaign": own["id"], "stage": own["purpose"], "idea": own.get("idea") or None, "label": own.get("label") or None}
    unknown: JsonObject = dict.fromkeys(("z", "gain", "fresh_gain", "verdict", "decision"))
    state = states.get(str(own["id"]))
    variant = state.variants.get(str(document["variant"])) if state else None
    if variant is None:
        return {**mark, **unknown}
    body = step_body(variant, str(document["id"])) or {}
    fresh = variant.replicate or {}
    found = {"z": body.get("z"), "gain": body.get("gain"), "fresh_gain": fresh.get("gain"), "verdict": body.get("verdict")}
    is_last = document["id"] == variant.runs[-1] if variant.runs else False
    verdict = variant.verdict if is_last else found["verdict"]
    told: JsonObject = rounded_floats({**mark, **found, "verdict": verdict, "decision": variant.decision or None})
    return told


def step_body(variant: CampaignVariant, run: str) -> JsonObject | None:
    """The screen or replication of *variant* that the run *run* belongs to."""
    if variant.screen and variant.screen.get("run") == run:
        return variant.screen
    if variant.replicate and run in run_names(variant.replicate["runs"]["candidate"]):
        return variant.replicate
    return None


def campaign_marks(name: str, state: CampaignState) -> JsonObject:
    """{id, leader, reference, luck_line, variants}: the lines beside which the runs of a campaign are read."""
    gain, se = state.leader_gain()
    lines = {
        "id": name,
        "leader": {"variant": state.leader.variant, "commit": state.leader.commit, "gain_over_reference": gain, "se": se},
        "reference": {"variant": state.reference.variant, "commit": state.reference.commit},
        "luck_line": state.luck_line(),
        "variants": len(state.screened()),
    }
    told: JsonObject = rounded_floats(lines)
    return told


def best_of(state: CampaignState) -> str:
    """The variant whose screen gained most; '' before one was screened."""
    screened = [each for each in state.screened() if each.screen and each.screen.get("gain") is not None]
    return max(screened, key=lambda each: float((each.screen or {})["gain"])).name if screened else ""


def luck_note(states: dict[str, CampaignState], documents: Iterable[JsonObject]) -> str:
    """That one of two runs is the screen of the best of many, and how much luck alone gives such a one; '' when neither is."""
    for document in documents:
        own = document.get("campaign")
        state = states.get(str(own["id"])) if own else None
        line = state.luck_line() if state else None
        if own and state and line and own["purpose"] == "screen" and document["variant"] == best_of(state):
            number = len(state.screened())
            return f"{document['variant']} is the best of {number} variants; the best of as many useless ones seems to gain {line:+.4g}"
    return ""


def guard_states(states: dict[str, CampaignState], a: JsonObject, b: JsonObject) -> list[JsonObject]:
    """The guards of the replication that two runs are the sides of; [] for any other two."""
    replications = [each.replicate for state in states.values() for each in state.variants.values() if each.replicate]
    for body in replications:
        sides = [run_names(body["runs"][side]) for side in ("candidate", "leader")]
        if any(left["id"] in sides[0] and right["id"] in sides[1] for left, right in ((a, b), (b, a))):
            return list(body.get("guards") or [])
    return []

"""The story of a campaign: every variant, bets and claims apart, what is not known.

One document for the page, its Markdown and `--json`. Development numbers are there in full; of
the holdout there is what the looks answered, and after the close what was opened then.
"""

from kaizen.campaigns.campaign import Campaign
from kaizen.campaigns.state import CONFIRMED, KEPT, SIMPLIFIED, CampaignState, CampaignVariant
from kaizen.foundation.jsonio import JsonObject

BODY_NUMBERS = ("n", "gain", "se", "z", "label_z", "label_gain", "label_n", "passes", "p", "interval", "drift_z", "guards", "lost_items")


def campaign_story(campaign: Campaign, state: CampaignState) -> JsonObject:
    """The document of the report on *campaign*, which stands at *state*."""
    gain, se = state.leader_gain()
    looks, spent = state.look_count, state.spent()
    return {
        "version": 1,
        "campaign": campaign.id,
        "system": campaign.system,
        "opened_at": campaign.events[0]["time"],
        "closed_at": next((event["time"] for event in campaign.events if event["type"] == "closed"), None),
        "contract": campaign.contract,
        "contract_sha256": state.opened.get("contract_sha256"),
        "seal": {key: state.opened.get(key) for key in ("level", "history_hits", "inherited")},
        "claims": [look for look in state.looks if look.get("answer") == "yes"],
        "closed": state.closed,
        "looks": {"spent": looks.done, "yes": looks.yes, "number": looks.number, "left": looks.left, "answers": state.looks},
        "baseline": state.baseline,
        "noise": state.noise,
        "luck_line": state.luck_line(),
        "expected_false_keeps": state.false_keeps(),
        "leader": {**state.leader._asdict(), "gain": gain, "se": se, "keeps": state.keeps},
        "reference": state.reference._asdict(),
        "variants": [variant_story(state, each) for each in state.variants.values() if each.screen or each.decision or each.runs],
        "spent": spent._asdict(),
        "integrity": state.integrity,
        "unsettled": state.unsettled(),
        "accepted": state.accepted,
        "notes": state.notes,
        "unknown": unknowns(campaign, state),
    }


def variant_story(state: CampaignState, variant: CampaignVariant) -> JsonObject:
    """One variant: its idea, what was measured at each step, what became of it."""
    idea = state.ideas.get(variant.idea, {})
    return {
        "variant": variant.name,
        "commit": variant.commit,
        "idea": variant.idea or None,
        "title": idea.get("title"),
        "hypothesis": idea.get("hypothesis"),
        "category": idea.get("category"),
        "predict": idea.get("predict"),
        "label": variant.label or None,
        "screen": measured_body(variant.screen),
        "replicate": measured_body(variant.replicate),
        "verdict": variant.verdict,
        "decision": variant.decision or None,
        "is_parked": variant.is_parked,
        "is_memorised": variant.is_memorised(),
        "lesson": variant.lesson or None,
        "runs": variant.runs,
    }


def measured_body(body: JsonObject | None) -> JsonObject | None:
    """The numbers and the verdict in the *body* of a screen or replication; None when there was none."""
    return None if body is None else {key: body[key] for key in ("verdict", *BODY_NUMBERS) if body.get(key) is not None}


def unknowns(campaign: Campaign, state: CampaignState) -> list[str]:
    """Whole sentences on what is not known, or weakens what is said."""
    found = []
    if state.closed is None:
        found.append("The campaign is open: the holdout stays sealed, and no gain on it is known yet.")
    level = state.opened.get("level")
    if level == "honour":
        why = campaign.contract.get("holdout", {}).get("level_reason") or "its folder can be read by whoever runs the campaign"
        found.append(f"The holdout was sealed on honour only: {why}.")
    inherited = (state.opened.get("inherited") or {}).get("looks")
    if inherited:
        found.append(f"Earlier campaigns asked the same holdout {inherited} times; their looks count in the levels of these.")
    if state.noise is None:
        found.append("The noise of an unchanged system was not measured, so no luck line is drawn.")
    if state.is_drifted:
        found.append("The leader no longer measures what it measured before: its stored trials were given up.")
    if state.usd and state.unknown_costs:
        found.append(f"The cost of {state.unknown_costs:,} of {state.known_costs + state.unknown_costs:,} runs is not known.")
    elif state.unknown_costs:
        found.append("No run reported what it cost.")
    found += [f"Accepted by {each.get('by') or 'a person'}: {each.get('what')}." for each in state.accepted]
    return found


def bets(story: JsonObject) -> list[JsonObject]:
    """The variants of *story* that were kept and not confirmed."""
    return [each for each in story["variants"] if each["decision"] in (KEPT, SIMPLIFIED) and each["verdict"] != CONFIRMED]

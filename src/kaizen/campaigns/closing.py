"""The end of a campaign: one last look, then the holdout is opened once, and retired.

What is claimed rests on looks that said yes alone. Each is a paired estimate of two versions that were measured at the same
time; the claim is their sum, and its lower bound the sum of the bounds, each at the level of its look: it holds unless one of them
is wrong, the chance of which the levels limit together. Where the answers of a look were not kept nothing but its yes is known.
"""

import math
import os
from typing import NamedTuple

from kaizen.campaigns.campaign import Campaign, load_campaign, record, refuse_closed
from kaizen.campaigns.conduct import deciding
from kaizen.campaigns.looking import LOOKS_FOLDER, take_look
from kaizen.campaigns.measuring import arm_scores
from kaizen.campaigns.notes import commit_notes, write_notes
from kaizen.campaigns.rules import confirmed_bound, confirmed_gain, look_confidence, look_is_due
from kaizen.campaigns.sealed import is_retired, ledger, open_sealed, retire, sealed_folder, sealed_obstacle
from kaizen.campaigns.splitting import cluster_names
from kaizen.campaigns.standing import mean_score
from kaizen.campaigns.state import UNCHANGED, CampaignState, campaign_state, run_terms
from kaizen.foundation.errors import KaizenError
from kaizen.foundation.jsonio import JsonObject
from kaizen.lab.runfolder import run_store
from kaizen.lab.runstore import RunStore
from kaizen.lab.workspace import Workspace
from kaizen.stats.paired_runs import noise_floor, paired_difference

OTHER_USER = "other_user"  # the seal level
NOTHING_CLAIMED = "nothing is claimed"
PLAIN_CONFIDENCE = 0.95


class Closed(NamedTuple):
    """The body of the event, the answer of the last look ('' for none), and what should be known besides."""

    body: JsonObject
    last_look: str
    notes: list[str]


def close_campaign(workspace: Workspace, name: str, reason: str, with_look: bool = True) -> Closed:
    """Takes the last look when there is something to claim, opens the holdout, retires it, and closes the campaign *name*.

    Raises RefusedError for what forbids a look or a commit, and Interrupted: the same call then goes on. Nothing is asked twice.
    """
    campaign = load_campaign(workspace, name)
    refuse_closed(campaign)
    with deciding(workspace, name):  # whatever forbids the end is told before a look is spent
        pass
    answer = last_look(workspace, campaign) if with_look else ""
    with deciding(workspace, name) as (campaign, state, checkout):
        ledger(campaign)  # refuses one that tells something else than its copy in the sealed place
        claims = [opened_look(campaign, state, look) for look in state.looks if look.get("answer") == "yes"]
        claim = claim_of(state, claims)
        retired = retire(campaign, state.reference.commit)
        paths = write_notes(workspace, campaign, state.lessons)
        head = commit_notes(workspace, checkout, paths, f"kaizen: lessons of {campaign.id}")
        body = record(
            campaign,
            "closed",
            reason=reason,
            headline=headline_of(state, claim),
            claim=claim,
            claims=claims,
            leader=state.leader.variant,
            reference=state.reference.variant,
            reference_commit=state.reference.commit,
            head=head,
            retired=retired,
        )["body"]
    notes = [] if retired else ["the sealed place could not be told that its holdout is retired; the ledger in the store says so"]
    return Closed(body, answer, notes)


def last_look(workspace: Workspace, campaign: Campaign) -> str:
    """The answer of the look that closing takes; '' when there is nothing to claim, none is left, or this was asked."""
    state = campaign_state(campaign)
    asked = [(each.get("leader_commit"), each.get("reference_commit")) for each in state.looks if each.get("answer") != "void"]
    is_asked = (state.leader.commit, state.reference.commit) in asked or state.leader.commit == state.reference.commit
    left = state.look_count.left
    if is_retired(campaign) or state.unsettled() or is_asked or not look_is_due(state.leader_gain()[0], None, left, is_closing=True):
        return ""
    return take_look(workspace, campaign, is_closing=True)


# --- What is opened --------------------------------------------------------------------


def look_store(campaign: Campaign, look: int) -> RunStore:
    """The runs of the look number *look*, in the sealed place."""
    folder = os.path.join(sealed_folder(campaign), LOOKS_FOLDER, str(look))
    return run_store(Workspace(folder, folder, {}))


def opened_look(campaign: Campaign, state: CampaignState, look: JsonObject) -> JsonObject:
    """What the answers of a look say, as shares of the range of the score where it has one, more being better.

    `seen` is the gain as measured with its `se` and plain 95 % `interval`; `lower` and `gain` are bound and estimate at the look's level.
    Where the answers cannot be read all that is None, with a reason.
    """
    told = {key: look.get(key) for key in ("look", "level", "leader", "reference", "leader_commit", "reference_commit")}
    unknown = dict.fromkeys(("n", "units", "leader_score", "reference_score", "lower", "gain", "seen", "se", "interval"))
    try:
        obstacle = sealed_obstacle(campaign)
        if obstacle:
            raise obstacle
        clusters, store = cluster_names(open_sealed(campaign).values()), look_store(campaign, int(look["look"]))
        runs = {store.read(run)["commit"]["hash"]: run for run in store.ids()}
        leader, reference = (arm_scores(store, runs[look[f"{side}_commit"]]) for side in ("leader", "reference"))
    except KaizenError as error:
        return {**told, **unknown, "reason": error.reason}
    except KeyError:
        return {**told, **unknown, "reason": "not_kept"}
    trials, level = int(state.contract["looks"]["trials"]), float(look["level"])
    variance, passes = run_terms(state, [noise_floor(leader), noise_floor(reference)])
    terms = variance, (trials, trials), passes
    found, plain = (paired_difference(leader, reference, clusters, *terms, each) for each in (look_confidence(level), PLAIN_CONFIDENCE))
    return {
        **told,
        "n": found.n, "units": found.units, "leader_score": mean_score(leader), "reference_score": mean_score(reference),
        "lower": confirmed_bound(found), "gain": confirmed_gain(found, level), "seen": found.gain, "se": found.se,
        "interval": None if plain.interval_low is None else [plain.interval_low, plain.interval_high],
        "reason": found.reason,
    }


def score_width(contract: JsonObject) -> float:
    """The width of the range of the score; 1 where there is none."""
    low, high = contract["metric"].get("minimum"), contract["metric"].get("maximum")
    return 1.0 if low is None or high is None else float(high - low)


def claim_of(state: CampaignState, claims: list[JsonObject]) -> JsonObject | None:
    """{lower, gain, level, looks} of the reference over the baseline; None when nothing is claimed.

    Sums over the looks that said yes. A sum of which a part is not known is None. `level`: the chance, at most, that the bound is too high.
    Where another user keeps the holdout, and so every answer, a look that left none was none.
    """
    if state.contract["holdout"]["level"] == OTHER_USER and any(each["seen"] is None for each in claims):
        return None
    if state.reference.variant == UNCHANGED or state.unsettled() or not claims:
        return None

    def total(key: str) -> float | None:
        values = [each[key] for each in claims]
        return None if None in values else math.fsum(values)

    return {**{key: total(key) for key in ("lower", "gain", "level")}, "looks": [each["look"] for each in claims]}


def headline_of(state: CampaignState, claim: JsonObject | None) -> str:
    """One sentence: the lower bound, then the estimate; or that nothing is claimed."""
    if claim is None:
        why = " (the record has breaches of integrity)" if state.unsettled() else ""
        return NOTHING_CLAIMED + why
    name, metric = state.reference.variant, state.contract["metric"]["name"]
    if claim["lower"] is None or claim["gain"] is None:
        return f"{name} is better in {metric} than the baseline; by how much is not known, because the answers of a look were not kept"
    lower, gain = (claim[key] * score_width(state.contract) for key in ("lower", "gain"))
    text = f"{name} is at least {lower:+.4g} better in {metric} than the baseline on the holdout"
    return f"{text} (level {claim['level']:.4g}); estimate {gain:+.4g}"

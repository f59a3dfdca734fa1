"""Keep and discard: a variant becomes the leader, or the branch goes back to it.

Nothing here judges: `keep` needs a verdict that the engine has computed on fresh trials, `discard` records the one there is. No word of
git used here resets, cleans or overwrites a tree: the branch pointer moves by `git switch`, which refuses where a file would be
lost, and each evaluated commit stays alive under refs/kaizen/<campaign>/<variant>.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kaizen.campaigns.campaign import Campaign, load_campaign, record, refuse_closed
from kaizen.campaigns.measuring import check_recorded
from kaizen.campaigns.notes import commit_notes, write_notes
from kaizen.campaigns.state import (
    INTEGRITY_ACCEPTED,
    KEEPABLE,
    KEPT,
    SIMPLIFIED,
    UNCHANGED,
    CampaignState,
    CampaignVariant,
    Version,
    campaign_state,
)
from kaizen.foundation.errors import HumanMustDecide, InputError, RefusedError, UsageError
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.locks import FileLock
from kaizen.foundation.text import did_you_mean, listed, quoted, slug, visible
from kaizen.lab.git import git_answer, git_ended
from kaizen.lab.preflight import tree_lock
from kaizen.lab.provenance import Checkout, checkout_obstacle, dirty_obstacle, dirty_paths, git_write_obstacle, read_checkout
from kaizen.lab.runfolder import run_store
from kaizen.lab.workspace import Workspace
from kaizen.lab.worktrees import COPY_SECONDS, NAME_SHAPE, keep_commit

LONGEST_LESSON = 1000
PASSED = "passed"


class Decided(NamedTuple):
    """The body of the event that was recorded, and what should be known besides."""

    body: JsonObject
    notes: list[str]


class Deciding(NamedTuple):
    """What a decision is made with: the campaign as it is now, its state, and the checkout, clean and writable."""

    campaign: Campaign
    state: CampaignState
    checkout: Checkout


@contextmanager
def deciding(workspace: Workspace, name: str) -> Iterator[Deciding]:
    """While the block runs nobody else decides in the campaign *name*, or runs in this tree.

    Raises RefusedError: lock_held, campaign_closed, git_read_only, dirty_tree, and what forbids a commit.
    """
    with tree_lock(workspace):
        campaign = load_campaign(workspace, name)
        refuse_closed(campaign)
        with FileLock(campaign.file("decisions.lock"), f"the decisions of {name}", 10):
            campaign = load_campaign(workspace, name)
            checkout = read_checkout(workspace.root)
            obstacle = git_write_obstacle(checkout) or checkout_obstacle(checkout) or dirty_obstacle(dirty_paths(checkout))
            if obstacle:
                raise obstacle
            yield Deciding(campaign, campaign_state(campaign), checkout)


def known_variant(state: CampaignState, name: str) -> CampaignVariant:
    """The variant *name*, which was run. Raises InputError (`no_variant`)."""
    if name == UNCHANGED or name not in state.variants:
        known = [each for each in state.variants if each != UNCHANGED]
        raise InputError(f"no variant {quoted(name)} was run in this campaign", did_you_mean(name, known), "no_variant")
    return state.variants[name]


def checked_lesson(text: str) -> str:
    """*text* on one line. Raises UsageError for one that is too long."""
    if len(text) > LONGEST_LESSON:
        raise UsageError(f"the lesson has {len(text):,} characters", f"{LONGEST_LESSON:,} have to do")
    return " ".join(text.split())


def contains_commit(checkout: Checkout, commit: str) -> bool:
    """True when HEAD is *commit* or follows it; false for a commit that the repository does not have."""
    return bool(commit) and git_ended(checkout.root, "merge-base", "--is-ancestor", commit, "HEAD").exit_code == 0


def variant_ref(checkout: Checkout, campaign: str, variant: str, commit: str) -> str | None:
    """The ref that keeps *commit* from now on; None when this repository does not have it."""
    if not commit or git_ended(checkout.root, "cat-file", "-e", f"{commit}^{{commit}}").exit_code:
        return None
    return keep_commit(checkout, campaign, variant if re.match(NAME_SHAPE, variant) else slug(variant), commit)


# --- Keep ------------------------------------------------------------------------------


def keep_variant(workspace: Workspace, name: str, variant: str, simplify: bool, accepted_by: str, lesson: str) -> Decided:
    """Makes *variant* the leader, with its fresh trials, and commits system.md with its run.

    Raises RefusedError for whatever the verdict does not allow; HumanMustDecide when it holds text of development items and nobody has
    accepted that (*accepted_by*).
    """
    lesson = checked_lesson(lesson)
    with deciding(workspace, name) as (campaign, state, checkout):
        found = known_variant(state, variant)
        replicate = keepable_evidence(state, found, simplify)
        if found.is_memorised() and not accepted_by:
            message = f"{variant} holds text of development items: it may have learnt the answers"
            raise HumanMustDecide(message, "a person who has read the diff: kaizen keep … --accept-memorised NAME", "memorised")
        if not contains_commit(checkout, found.commit):
            message = f"HEAD does not contain {variant}, which is {found.commit[:12]}"
            raise RefusedError(message, f"check it out first: git switch --detach {found.commit[:12]}", "other_commit")
        runs = run_names(replicate["runs"]["candidate"])
        check_recorded(campaign, run_store(workspace), runs)
        ref = variant_ref(checkout, campaign.id, variant, found.commit)
        how = SIMPLIFIED if simplify else KEPT
        taught = [{"variant": variant, "verdict": how, "lesson": lesson}]
        paths = write_notes(workspace, campaign, [*state.lessons, *taught], runs[0])
        head = commit_notes(workspace, checkout, paths, f"kaizen: {campaign.id} keeps {visible(variant, 60)}")
        if found.is_memorised():
            record(campaign, "accepted", what=f"memorised {variant}", by=accepted_by)
        event = record(
            campaign,
            "keep",
            variant=variant,
            commit=found.commit,
            head=head,
            idea=found.idea,
            how=how,
            runs=runs,
            gain=replicate.get("gain"),
            se=replicate.get("se"),
            accepted_memorised=accepted_by or None,
            lesson=lesson,
            best_run=runs[0],
            ref=ref,
        )
        return Decided(event["body"], [])


def keepable_evidence(state: CampaignState, variant: CampaignVariant, simplify: bool) -> JsonObject:
    """The verdict on fresh trials against the leader of now that allows to keep *variant*. Raises RefusedError when there is none."""
    name, found = variant.name, variant.replicate
    if variant.decision:
        raise RefusedError(f"{name} is {variant.decision} already", "each variant is decided about once", "decided")
    if found is None:
        hint = f"kaizen replicate {name}" if variant.verdict == "promising" else f"kaizen discard {name} --lesson TEXT"
        raise RefusedError(f"{name} is {spoken_verdict(variant.verdict)} and has no fresh trials", hint, "not_replicated")
    if found.get("leader") != state.leader.variant:
        message = f"{name} was measured against {found.get('leader')}, and the leader is {state.leader.variant}"
        raise RefusedError(message, f"bring it onto {state.leader.head[:12]}, commit, and run it as another variant", "other_leader")
    if simplify and not (found.get("can_simplify") and found["verdict"] not in ("guard_failed", "incomplete")):
        message = f"{name} is not shown to be smaller and no worse"
        raise RefusedError(message, "it takes fewer lines or a tenth less cost, and a loss within the margin ruled out", "not_simplified")
    if not simplify and found["verdict"] != KEEPABLE:
        raise RefusedError(f"{name} is {spoken_verdict(found['verdict'])} on fresh trials", next_of(name, found), "not_keepable")
    failed = [str(each["metric"]) for each in found.get("guards") or [] if each.get("outcome") != PASSED]
    if failed:
        raise RefusedError(f"{name}: guards did not pass: {visible(listed(failed))}", next_of(name, found), "guard_failed")
    return found


def spoken_verdict(verdict: str) -> str:
    """*verdict* in words."""
    return verdict.replace("_", " ")


def next_of(name: str, replicate: JsonObject) -> str:
    """What can be done with a variant that may not be kept."""
    if replicate["verdict"] == "extend":
        return f"more passes may tell: kaizen replicate {name}"
    simpler = f"kaizen keep {name} --simplify; or " if replicate.get("can_simplify") else ""
    return f"{simpler}kaizen discard {name} --lesson TEXT"


def run_names(runs: object) -> list[str]:
    """The ids of the runs of one side: one, or several when it was extended."""
    return [str(run) for run in runs] if isinstance(runs, list) else [str(runs)]


# --- Discard ---------------------------------------------------------------------------


def discard_variant(workspace: Workspace, name: str, variant: str, lesson: str) -> Decided:
    """Gives *variant* up with its verdict as computed, and moves the branch back to the leader when HEAD contains it.

    Raises RefusedError when it is the leader or was decided about, when it is being run, or when a file would be lost; then nothing is
    recorded and nothing moved.
    """
    lesson = checked_lesson(lesson)
    if not lesson:
        raise UsageError("the lesson is empty", "say what was expected, what happened, and what that rules out")
    with deciding(workspace, name) as (campaign, state, checkout):
        found = known_variant(state, variant)
        if found.decision and not found.is_parked:
            raise RefusedError(f"{variant} is {found.decision} already", "each variant is decided about once", "decided")
        is_here = contains_commit(checkout, found.commit) and not contains_commit_of(checkout, state.leader, found)
        # With what was committed on top, so that nothing is lost with the branch.
        ref = variant_ref(checkout, campaign.id, variant, str(checkout.head) if is_here else found.commit)
        notes = [] if ref else [f"{variant} has no commit that this repository knows: nothing is kept of it"]
        if is_here:
            go_back(checkout, state.leader)
        elif found.commit:
            notes.append(f"HEAD does not stand on {variant}: the branch was left where it is")
        event = record(
            campaign, "discard", variant=variant, commit=found.commit, verdict=found.verdict, lesson=lesson, ref=ref, moved=is_here
        )
        return Decided(event["body"], notes)


def contains_commit_of(checkout: Checkout, leader: Version, found: CampaignVariant) -> bool:
    """True when the leader itself follows the commit of *found*: then there is nothing to go back from."""
    return not git_ended(checkout.root, "merge-base", "--is-ancestor", found.commit, leader.head).exit_code


def go_back(checkout: Checkout, leader: Version) -> None:
    """Moves the branch of *checkout*, or a detached HEAD, to the leader. Raises GitError where a file would be lost; nothing moved then."""
    if checkout.head == leader.head:
        return
    place = ["--detach", leader.head] if checkout.branch is None else ["--no-track", "-C", checkout.branch, leader.head]
    git_answer(checkout.root, "switch", "--quiet", "--no-overwrite-ignore", *place, seconds=COPY_SECONDS)


def add_note(campaign: Campaign, text: str, variant: str, accepted_by: str = "") -> JsonObject:
    """Records a note, of *variant* or, for '', of the campaign; the body.

    With it *accepted_by* settles the breaches of integrity that there are. Raises InputError (`no_variant`), UsageError, RefusedError.
    """
    refuse_closed(campaign)
    text = checked_lesson(text)
    if not text:
        raise UsageError("the note is empty")
    if variant:
        known_variant(campaign_state(campaign), variant)
    if accepted_by:
        record(campaign, "accepted", what=INTEGRITY_ACCEPTED, by=accepted_by)
    body: JsonObject = record(campaign, "note", text=text, variant=variant or None)["body"]
    return body

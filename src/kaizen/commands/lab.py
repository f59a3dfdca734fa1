"""`kaizen lab open`, `commit`, `land`: variants where nobody can commit to the repository."""

import os
from argparse import Namespace

from kaizen.campaigns.campaign import campaign_ids, load_campaign
from kaizen.campaigns.state import UNCHANGED, campaign_state
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.errors import InputError, UsageError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed, visible
from kaizen.lab.landing import WORK_FOLDER, Landed, clone_path, commit_tree, find_clone, land_branch, land_patch, open_clone
from kaizen.lab.provenance import Checkout, dirty_paths, git_write_obstacle, read_checkout
from kaizen.lab.workspace import Workspace, find_workspace, make_store
from kaizen.lab.worktrees import DEFAULT_CAMPAIGN

CAMPAIGN = Argument("--campaign", "C", f"what the variant belongs to ({DEFAULT_CAMPAIGN})", {"default": DEFAULT_CAMPAIGN})


@command(
    "lab open",
    "Makes a clone under kaizen/.kaizen/work/ in which variants are edited and committed where .git is read-only.",
    [CAMPAIGN, Argument("--from", "COMMIT", "commit to begin with (HEAD)", {"default": "HEAD", "dest": "base"})],
    "kaizen lab open",
    group="lab",
)
def command_lab_open(args: Namespace) -> Answer:
    """Makes the clone, or says that it is there."""
    workspace = find_workspace()
    checkout = read_checkout(workspace.root)
    if clone_around(workspace, checkout):
        raise UsageError("this is such a clone already", "edit and commit here")
    make_store(workspace)
    clone = open_clone(checkout, workspace.store_folder, args.campaign, args.base)
    made = "made" if clone.is_new else "is there already:"
    message = f"the clone of {args.campaign} {made} {shown_path(clone.path)}, on branch {clone.branch}, from {clone.opened[:12]}"
    data = {"campaign": args.campaign, "path": shown_path(clone.path), "branch": clone.branch, "opened": clone.opened, "notes": clone.notes}
    following = f"cd {shown_path(clone.path)}, edit, kaizen lab commit, kaizen run there, then: kaizen lab land"
    lines = [message, *[f"  note: {note}" for note in clone.notes]]
    return Answer(0, "opened" if clone.is_new else "already_open", message, lines, data, following)


def clone_around(workspace: Workspace, checkout: Checkout) -> str:
    """The campaign of the nested clone that *checkout* belongs to; '' outside of one."""
    work = os.path.join(os.path.realpath(workspace.store_folder), WORK_FOLDER, "")
    return checkout.common_dir[len(work) :].split(os.sep)[0] if checkout.common_dir.startswith(work) else ""


@command(
    "lab commit",
    "Commits all that differs in the clone, or in a work tree that Kaizen made, so that a run can name it; nowhere else.",
    [Argument("--title", "TEXT", "the idea in one line", {"required": True})],
    "kaizen lab commit --title 'asks before it acts'",
    group="lab",
)
def command_lab_commit(args: Namespace) -> Answer:
    """Commits, for agents that may call Kaizen and not git."""
    title = " ".join(args.title.split())
    if not title:
        raise UsageError("--title is empty", "say what the idea is")
    workspace = find_workspace()
    tree = read_checkout(workspace.root)
    commit, paths = commit_tree(tree, title, bool(clone_around(workspace, tree)))
    message = f"{commit[:12]} holds {counted(len(paths), 'path')}: {listed(list(map(visible, paths)), 5)}"
    data: JsonObject = {"commit": commit, "branch": tree.branch, "paths": paths}
    return Answer(0, "committed", message, [message], data, "kaizen run --system ID --variant NAME")


@command(
    "lab land",
    "Brings a commit of the clone back as a branch, or as a patch where no branch can be made; no tree is touched.",
    [
        Argument("commit", "COMMIT", "the commit in the clone (HEAD)", {"nargs": "?", "default": "HEAD"}),
        Argument("--campaign", "C", f"which clone (the one around; else {DEFAULT_CAMPAIGN})", {"default": ""}),
        Argument("--branch", "NAME", "name of the new branch (kaizen/CAMPAIGN/COMMIT)", {"default": ""}),
        Argument("--patch", "FILE", "write a patch to this new file instead", {"default": ""}),
    ],
    "kaizen lab land --branch asks-before-it-acts",
    group="lab",
)
def command_lab_land(args: Namespace) -> Answer:
    """Makes the branch or the patch."""
    if args.branch and args.patch:
        raise UsageError("--branch and --patch exclude each other")
    workspace = find_workspace()
    here = read_checkout(workspace.root)
    around = clone_around(workspace, here)
    campaign = args.campaign or around or DEFAULT_CAMPAIGN
    clone = here if around == campaign else find_clone(workspace.store_folder, campaign)
    outer = read_checkout(os.path.dirname(os.path.dirname(workspace.store_folder))) if around else here
    if args.patch and os.path.lexists(args.patch):
        raise InputError(f"{shown_path(args.patch)}: is there already; nothing was written", "name another file", "file_exists")
    if args.patch or not args.branch and git_write_obstacle(outer):
        path = args.patch or f"{clone_path(workspace.store_folder, campaign)}.patch"
        landed = land_patch(clone, outer, args.commit, os.path.abspath(path))
    else:
        landed = land_branch(clone, outer, args.commit, args.branch, campaign)
    confirmed = is_confirmed(workspace, campaign, landed.commit)
    return landed_answer(landed, len(dirty_paths(clone)), outer, confirmed)


def is_confirmed(workspace: Workspace, name: str, commit: str) -> bool | None:
    """Whether *commit* is the confirmed reference of the campaign *name*, or that with its notes; None when there is no such campaign."""
    if name not in campaign_ids(workspace):
        return None
    reference = campaign_state(load_campaign(workspace, name)).reference
    return reference.variant != UNCHANGED and commit in (reference.commit, reference.head)


def landed_answer(landed: Landed, dirty: int, outer: Checkout, confirmed: bool | None) -> Answer:
    """Says what was landed, and what was not: *dirty* paths of the clone are not committed; *confirmed* as `is_confirmed` says."""
    place = f"branch {visible(landed.branch)}" if landed.branch else f"patch {shown_path(landed.patch)}"
    message = f"{landed.commit[:12]} landed as {place}"
    notes = ["it is not confirmed by a look at the holdout: a bet, not a claim"] if confirmed is False else []
    if landed.applies is False:
        notes.append(f"it does not apply to the files in {shown_path(outer.root)}, which differ from {landed.opened[:12]}")
    if dirty:
        notes.append(f"{counted(dirty, 'path')} of the clone not committed, so not in it")
    lines = [message, *[f"  note: {note}" for note in notes]]
    data: JsonObject = {"commit": landed.commit, "opened": landed.opened, "branch": landed.branch or None, "applies": landed.applies}
    data.update(patch=shown_path(landed.patch) if landed.patch else None, uncommitted=dirty, confirmed=confirmed, notes=notes)
    way = f"git merge {visible(landed.branch)}" if landed.branch else f"git apply {shown_path(landed.patch)}"
    return Answer(0, "landed", message, lines, data, f"look at it, then: {way}")

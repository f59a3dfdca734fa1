"""Work trees for variants made side by side, and the refs that keep their commits.

    <place>/<campaign>/<variant>        the tree, on branch kaizen/<campaign>/<variant>
    refs/kaizen/<campaign>/<variant>    keeps its commit when the tree is gone

<place> lies outside the repository: `../<repository>.kaizen-worktrees`, unless another is named. Inside it, git
would call the trees untracked. A variant's number is taken by making its folder, which only one of two can do.
A tree is removed by `git worktree remove` alone, which refuses one that holds work.
"""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from kaizen.foundation.errors import UsageError
from kaizen.foundation.files import make_folder, refuse_writing, shown_path
from kaizen.foundation.git import filters_off
from kaizen.foundation.locks import FileLock
from kaizen.foundation.text import counted, quoted
from kaizen.lab.git import GitError, git_answer, git_ended
from kaizen.lab.provenance import Checkout, checkout_obstacle, commit_named, dirty_paths, git_write_obstacle, read_checkout, ref_commit

KAIZEN_REFS = "refs/kaizen"
BRANCH_PREFIX = "kaizen"
DEFAULT_CAMPAIGN = "lab"  # of work that belongs to no campaign
DEFAULT_SLOTS = 3
MAX_VARIANTS = 10_000
NAME_SHAPE = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z"
COPY_SECONDS = 600.0  # for git to write a tree or a clone
# Metrics that trees which run at the same time would disturb.
SHARED_METRICS = r"(?i)(?:^|[_.-])(?:time|latency|duration|seconds|secs?|ms|cost|usd|dollars|price|throughput|speed)(?:$|[_.-])"


class Worktree(NamedTuple):
    """A work tree of a variant; `head` is its commit, `locked` why git keeps it ('' when it does not)."""

    path: str
    campaign: str
    variant: str
    branch: str
    head: str
    locked: str | None

    def label(self) -> str:
        """'campaign/variant'."""
        return f"{self.campaign}/{self.variant}"


def check_lab_name(name: str, what: str) -> str:
    """*name*, which becomes part of paths and refs. Raises UsageError."""
    if not re.match(NAME_SHAPE, name):
        raise UsageError(f"{what} {quoted(name)}: use letters, digits, '-' and '_', beginning with a letter or digit")
    return name


def default_slots(metrics: Iterable[str]) -> int:
    """How many variants may be worked on at a time: 1 when the name of a metric speaks of time or cost, else 3."""
    return 1 if any(re.search(SHARED_METRICS, name) for name in metrics) else DEFAULT_SLOTS


def main_root(checkout: Checkout) -> str:
    """The main work tree of the repository; that of *checkout* where there is none, or in a submodule."""
    folder, name = os.path.split(checkout.common_dir)
    return folder if name == ".git" else checkout.root


def worktree_place(checkout: Checkout, place: str = "") -> str:
    """The folder for work trees: *place*, or beside the repository. Raises GitError: place_in_repository, place_unusable."""
    root = os.path.realpath(main_root(checkout))
    folder = os.path.realpath(place or f"{root}.kaizen-worktrees")
    if any(os.path.commonpath([inner, folder]) == inner for inner in (root, os.path.realpath(checkout.root))):
        raise GitError(f"{shown_path(folder)}: lies inside the repository", "name a place outside it with --place", "place_in_repository")
    if "\n" in folder:
        raise GitError(f"{shown_path(folder)}: has a line end in its name", "name another place with --place", "place_unusable")
    return folder


def list_worktrees(checkout: Checkout) -> list[Worktree]:
    """The work trees of variants of this repository, in git's order, wherever they are; never the main one. Raises GitError."""
    found = []
    for block in git_answer(checkout.root, "worktree", "list", "--porcelain").split("\n\n")[1:]:
        facts = dict(line.partition(" ")[::2] for line in block.split("\n"))
        parts = facts.get("branch", "").split("/")
        if parts[:3] == ["refs", "heads", BRANCH_PREFIX] and len(parts) == 5:
            found.append(Worktree(facts["worktree"], parts[3], parts[4], "/".join(parts[2:]), facts["HEAD"], facts.get("locked")))
    return found


def add_worktree(checkout: Checkout, campaign: str, variant: str = "", *, place: str = "", base: str = "HEAD", slots: int = 3) -> Worktree:
    """A new work tree of the commit *base* for *variant*, or for the next free number (v001).

    Raises GitError: no_commit, git_read_only, unknown_commit, no_slot, variant_exists, branch_in_the_way, place_in_repository.
    """
    check_lab_name(campaign, "campaign")
    names = [check_lab_name(variant, "variant")] if variant else (f"v{number:03d}" for number in range(1, MAX_VARIANTS))
    obstacle = checkout_obstacle(checkout._replace(in_progress=None)) or git_write_obstacle(checkout) or blocking_branch(checkout, campaign)
    if obstacle:
        raise obstacle
    commit = commit_named(checkout, base)
    folder = os.path.join(worktree_place(checkout, place), campaign)
    make_folder(folder)
    with FileLock(f"{folder}.lock", "the folder of work trees", 10):
        taken = [each for each in list_worktrees(checkout) if each.campaign == campaign]
        if len(taken) >= slots:
            in_use = "the only slot is" if slots == 1 else f"all {slots} slots are"
            hint = f"finish one, then: kaizen worktree gc {taken[0].label()}; or ask for more with --slots"
            raise GitError(f"{in_use} taken in {campaign}: {', '.join(each.variant for each in taken)}", hint, "no_slot")
        name = next((name for name in names if is_reserved(checkout, folder, campaign, name)), "")
        if not name:
            raise GitError(f"{campaign}/{variant}: there is such a variant already", "name another, or none", "variant_exists")
        path, branch = os.path.join(folder, name), f"{BRANCH_PREFIX}/{campaign}/{name}"
        try:
            git_answer(checkout.root, "worktree", "add", "--quiet", "--no-track", "-b", branch, path, commit, seconds=COPY_SECONDS)
        except BaseException:
            remove_empty(path)
            raise
    return Worktree(path, campaign, name, branch, commit, None)


def is_reserved(checkout: Checkout, folder: str, campaign: str, name: str) -> bool:
    """True when the folder of the variant *name* could be made, and neither branch nor kept ref has the name already."""
    path = os.path.join(folder, name)
    try:
        os.mkdir(path)
    except FileExistsError:
        return False
    except OSError as error:
        refuse_writing(path, error)
    refs = (f"refs/heads/{BRANCH_PREFIX}/{campaign}/{name}", f"{KAIZEN_REFS}/{campaign}/{name}")
    if any(ref_commit(checkout.root, ref) for ref in refs):
        remove_empty(path)
        return False
    return True


def remove_empty(path: str) -> None:
    """Removes the folder *path* if it is empty."""
    with suppress(OSError):
        os.rmdir(path)


def blocking_branch(checkout: Checkout, campaign: str) -> GitError | None:
    """That a branch has the name of a folder of branches that is needed here."""
    for name in (BRANCH_PREFIX, f"{BRANCH_PREFIX}/{campaign}"):
        if ref_commit(checkout.root, f"refs/heads/{name}"):
            return GitError(f"a branch is called '{name}', so git cannot make '{name}/…'", "rename that branch", "branch_in_the_way")
    return None


def keep_commit(checkout: Checkout, campaign: str, variant: str, commit: str) -> str:
    """The ref under refs/kaizen/ that keeps *commit* from now on; what it kept before stays kept beside it. Raises GitError."""
    ref = f"{KAIZEN_REFS}/{campaign}/{variant}"
    old = ref_commit(checkout.root, ref)
    if old and old != commit and git_ended(checkout.root, "merge-base", "--is-ancestor", old, commit).exit_code:
        git_answer(checkout.root, "update-ref", f"{ref}.{old[:12]}", old)
    git_answer(checkout.root, "update-ref", ref, commit, old or "0" * len(commit))
    return ref


def collect_worktree(checkout: Checkout, tree: Worktree) -> str:
    """Keeps the commit of *tree* under refs/kaizen/ and removes the tree: '' when it is gone, else why it stays.

    Its branch stays, and so does a tree with anything uncommitted, a locked one, and the one the caller stands in.
    Ignored files go with the tree.
    """
    here = os.path.realpath(os.getcwd())
    if tree.locked is not None:
        return f"git keeps it locked{f' ({tree.locked})' if tree.locked else ''}; git worktree unlock PATH frees it"
    if os.path.commonpath([os.path.realpath(tree.path), here]) == os.path.realpath(tree.path):
        return "it is the folder you are in"
    try:
        if os.path.isdir(tree.path):
            inner = read_checkout(tree.path)
            paths = dirty_paths(inner)
            if inner.in_progress:
                return f"a {inner.in_progress} is in progress"
            if paths:
                return f"it holds work that is not committed ({counted(len(paths), 'path')})"
        keep_commit(checkout, tree.campaign, tree.variant, tree.head)
        git_answer(checkout.root, "worktree", "remove", tree.path, seconds=COPY_SECONDS)
    except GitError as error:
        return error.message
    remove_empty(os.path.dirname(tree.path))
    return ""


def copy_notes(folder: str) -> list[str]:
    """What a fresh copy of a commit in *folder* lacks: submodules, and what content filters would have made. Raises GitError."""
    listed = git_answer(folder, "ls-files", "-s", "-z").split("\0")
    modules = sum(entry.startswith("160000 ") for entry in listed)
    notes = [f"{counted(modules, 'submodule')} not filled in: git submodule update --init"] if modules else []
    if len(filters_off(folder)) > 1:
        names = "\0".join(entry.partition("\t")[2] for entry in listed)
        values = git_answer(folder, "check-attr", "-z", "--stdin", "filter", stdin=os.fsencode(names)).split("\0")[2::3]
        filtered = sum(value not in ("unspecified", "unset", "set") for value in values)
        notes += [f"{counted(filtered, 'file')} as committed, since content filters (git-lfs) are not run"] if filtered else []
    return notes

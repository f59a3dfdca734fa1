"""A clone inside the workspace, for where the repository's git folder is read-only.

    kaizen/.kaizen/work/<campaign>/        the clone, on branch kaizen-<campaign>
    kaizen/.kaizen/work/<campaign>.patch   what was landed as a patch

Nothing is pushed, and no tree outside the clone is touched: landing gives a branch, or a patch to apply.
The clone's ref refs/kaizen/opened names the commit it began with.
"""

import os
from typing import NamedTuple

from kaizen.foundation.files import make_folder, remove_folder, shown_path, write_file
from kaizen.foundation.locks import FileLock
from kaizen.foundation.text import visible
from kaizen.lab.git import GitError, git_answer, git_ended, git_error, git_looked_up
from kaizen.lab.provenance import (
    DIFF_WORDS,
    Checkout,
    checkout_obstacle,
    commit_named,
    dirty_paths,
    git_write_obstacle,
    read_checkout,
    ref_commit,
)
from kaizen.lab.worktrees import BRANCH_PREFIX, COPY_SECONDS, blocking_branch, check_lab_name, copy_notes

WORK_FOLDER = "work"
OPENED_REF = "refs/kaizen/opened"
# Settings of the repository that decide how files look, and who commits; a clone does not take them over by itself.
COPIED_SETTINGS = "user.name user.email core.autocrlf core.eol core.fileMode core.symlinks core.longPaths core.precomposeUnicode".split()


class WorkClone(NamedTuple):
    """A nested clone: its folder, its branch, the commit it began with, whether it was made just now, and what it lacks."""

    path: str
    branch: str
    opened: str
    is_new: bool
    notes: list[str]


class Landed(NamedTuple):
    """What was landed: the commit, the one the clone began with, the branch or else the patch file, whether it applies as it stands."""

    commit: str
    opened: str
    branch: str
    patch: str
    applies: bool | None


def clone_path(store_folder: str, campaign: str) -> str:
    """The folder of the nested clone of *campaign*."""
    return os.path.join(store_folder, WORK_FOLDER, check_lab_name(campaign, "campaign"))


def open_clone(checkout: Checkout, store_folder: str, campaign: str, base: str = "HEAD") -> WorkClone:
    """The nested clone of *campaign*, made of the repository of *checkout* at the commit *base* if it is not there.

    Needs to write nothing in the repository's git folder. Raises GitError: no_commit, unknown_commit, git_failed.
    """
    path, branch = clone_path(store_folder, campaign), f"{BRANCH_PREFIX}-{campaign}"
    obstacle = checkout_obstacle(checkout._replace(in_progress=None))
    if obstacle:
        raise obstacle
    make_folder(os.path.dirname(path))
    with FileLock(f"{path}.lock", "the clone", 10):
        if os.path.isdir(path):
            opened = ref_commit(path, OPENED_REF)
            return WorkClone(path, branch, opened, False, copy_notes(path))
        unfinished = f"{path}.unfinished"
        if os.path.lexists(unfinished):  # its maker is dead, since we hold the lock
            remove_folder(unfinished)
        commit = commit_named(checkout, base)
        words = ["clone", "--quiet", "--no-checkout", "--template=", *copied_settings(checkout)]
        git_answer(os.path.dirname(path), *words, "--", checkout.root, unfinished, seconds=COPY_SECONDS)
        git_answer(unfinished, "switch", "--quiet", "--no-track", "-c", branch, commit, seconds=COPY_SECONDS)
        git_answer(unfinished, "update-ref", OPENED_REF, commit)
        os.rename(unfinished, path)
    return WorkClone(path, branch, commit, True, copy_notes(path))


def copied_settings(checkout: Checkout) -> list[str]:
    """Words for `git clone` that give it the repository's own values of COPIED_SETTINGS."""
    words = []
    for name in COPIED_SETTINGS:
        value = git_looked_up(checkout.root, "config", "--local", "--get", name)
        words += ["-c", f"{name}={value}"] if value else []
    return words


def find_clone(store_folder: str, campaign: str) -> Checkout:
    """The nested clone of *campaign*. Raises GitError (no_clone) when there is none."""
    path = clone_path(store_folder, campaign)
    if not os.path.isdir(os.path.join(path, ".git")):
        raise GitError(f"there is no clone of {campaign}", f"make one with: kaizen lab open --campaign {campaign}", "no_clone")
    return read_checkout(path)


def commit_tree(tree: Checkout, title: str, in_clone: bool) -> tuple[str, list[str]]:
    """(the new commit, the paths in it): all that differs in *tree* from its commit, but what git ignores. Hooks are not run.

    Raises GitError: not_a_lab_tree unless it is in a clone (*in_clone*) or a work tree of `worktree add`, no_commit,
    merge_in_progress …, nothing_to_commit, git_read_only, git_failed.
    """
    is_linked = tree.git_dir != tree.common_dir and (tree.branch or "").startswith(f"{BRANCH_PREFIX}/")
    if not in_clone and not is_linked:
        message = f"{shown_path(tree.root)}: is not a tree that Kaizen made; commits here are yours"
        raise GitError(message, "use git; or make a tree with: kaizen lab open, or kaizen worktree add", "not_a_lab_tree")
    obstacle = checkout_obstacle(tree)
    if obstacle:
        raise obstacle
    paths = [each.path for each in dirty_paths(tree)]
    if not paths:
        raise GitError(f"{shown_path(tree.root)}: nothing differs from the commit", "change a file first", "nothing_to_commit")
    git_answer(tree.root, "add", "--all", seconds=COPY_SECONDS)
    git_answer(tree.root, "commit", "--quiet", "--no-verify", f"--message={title}", seconds=COPY_SECONDS)
    return ref_commit(tree.root, "HEAD"), paths


def landing_commit(clone: Checkout, name: str) -> tuple[str, str]:
    """(the commit *name* of *clone*, the one the clone began with). Raises GitError: unknown_commit, unrelated_commit, nothing_to_land."""
    commit, opened = commit_named(clone, name), ref_commit(clone.root, OPENED_REF)
    if not opened or git_ended(clone.root, "merge-base", "--is-ancestor", opened, commit).exit_code:
        message = f"{commit[:12]}: does not follow the commit that the clone began with"
        raise GitError(message, "name a commit made in the clone", "unrelated_commit")
    if commit == opened:
        raise GitError("the clone has no commit of its own yet", "commit in it, then land", "nothing_to_land")
    return commit, opened


def land_branch(clone: Checkout, outer: Checkout, name: str, branch: str = "", campaign: str = "lab") -> Landed:
    """Gives the repository *outer* the commit *name* of *clone* as the new *branch* (kaizen/CAMPAIGN/COMMIT); nothing else changes there.

    Raises GitError: git_read_only, branch_exists, branch_in_the_way, and what `landing_commit` raises.
    """
    commit, opened = landing_commit(clone, name)
    obstacle = git_write_obstacle(outer)
    if obstacle:
        raise GitError(obstacle.message, "kaizen lab land --patch FILE needs no branch; or run it outside the sandbox", obstacle.reason)
    branch = branch or f"{BRANCH_PREFIX}/{campaign}/{commit[:12]}"
    if git_ended(outer.root, "check-ref-format", "--branch", branch).exit_code or branch.startswith("-"):
        raise GitError(f"{visible(branch)}: is no name for a branch", "use letters, digits, '-', '_' and '/'", "bad_branch_name")
    there = ref_commit(outer.root, f"refs/heads/{branch}")
    if there and there != commit:
        raise GitError(f"the branch {visible(branch)} exists, at {there[:12]}", "name another with --branch", "branch_exists")
    parts = branch.split("/")
    obstacle = blocking_branch(outer, parts[1]) if parts[0] == BRANCH_PREFIX and len(parts) > 2 else None
    if obstacle:
        raise obstacle
    if not there:
        # By its hash, so that what arrives is what was checked. Both repositories are on this disk.
        words = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--end-of-options"]
        git_answer(outer.root, *words, clone.root, f"{commit}:refs/heads/{branch}", seconds=COPY_SECONDS)
    return Landed(commit, opened, branch, "", None)


def land_patch(clone: Checkout, outer: Checkout, name: str, path: str) -> Landed:
    """Writes what the commit *name* of *clone* changed since the clone began to the file *path*, for `git apply` at the root of *outer*.

    Needs to write nothing in a git folder. Raises GitError as `landing_commit` does.
    """
    commit, opened = landing_commit(clone, name)
    words = ["diff", "--binary", "--full-index", *DIFF_WORDS, "--src-prefix=a/", "--dst-prefix=b/", "--no-color", opened, commit, "--"]
    made = git_ended(clone.root, *words)
    if made.exit_code:
        raise git_error(clone.root, "diff", made)
    write_file(path, b"From %s\nbase: %s\n\n" % (commit.encode(), opened.encode()) + made.stdout)
    applies = git_ended(outer.root, "apply", "--check", "--", path).exit_code == 0
    return Landed(commit, opened, "", path, applies)

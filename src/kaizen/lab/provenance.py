"""Which commit a folder stands on, what differs from it, and what a variant changed.

Only reads. File names are text with surrogates for bytes that are not UTF-8 (os.fsdecode);
show them with `visible`.
"""

import os
import re
from typing import NamedTuple

from kaizen.foundation.files import copy_file, shown_path
from kaizen.foundation.text import counted, listed, visible
from kaizen.lab.git import GitError, git_answer, git_ended, git_error, git_looked_up, git_version

# What lies in the git directory while something is going on, and its name.
UNDER_WAY = (
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
    ("BISECT_LOG", "bisect"),
)
GIT_STATUS_OPTIONS = "--porcelain=v2 -z --branch --no-ahead-behind --no-renames --untracked-files=normal --ignore-submodules=dirty"
GIT_STATUS_WORDS = f"status {GIT_STATUS_OPTIONS}".split()
# Entries of `ls-files -v -s -z` that a plain look passes over: assume-unchanged (lower case), skip-worktree (S), submodules.
SPECIAL_ENTRIES = r"(?:\A|(?<=\0))(?:([a-zS]) \d{6}|. (160000)) [0-9a-f]+ \d\t([^\0]+)"
DIFF_WORDS = "--no-ext-diff --no-textconv --no-renames --ignore-submodules=none".split()


class Checkout(NamedTuple):
    """A work tree and the commit it stands on.

    `head` is the full commit hash, None before the first commit; `branch` is None when HEAD is detached. `in_progress` is rebase,
    merge, cherry-pick, revert, bisect or None. `reason` is the code of what forbids a run here (no_commit,
    merge_in_progress, …), None when nothing does.
    """

    root: str
    git_dir: str
    common_dir: str
    head: str | None
    branch: str | None
    is_detached: bool
    is_shallow: bool
    in_progress: str | None
    reason: str | None


class DirtyPath(NamedTuple):
    """A path, relative to the root, that differs from the commit: staged, unstaged, untracked, submodule, or hidden.

    Hidden is a change that git was told not to look at (assume-unchanged, skip-worktree). A folder in which nothing
    is tracked is one path that ends in '/'.
    """

    path: str
    kind: str


def read_checkout(folder: str) -> Checkout:
    """The checkout around *folder*.

    Raises GitError: git_missing, git_too_old, not_a_repository, unsafe_repository, bare_repository, no_work_tree.
    """
    git_version()
    places = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
    head: str | None
    words = ["--is-inside-work-tree", "--is-shallow-repository", "HEAD^{commit}", "--symbolic-full-name", "HEAD"]
    together = git_ended(folder, "rev-parse", *words, *places)
    answers = os.fsdecode(together.stdout).split("\n")[:-1]
    if together.exit_code == 0 and len(answers) == 7 and answers[0] == "true":
        _, is_shallow, head, name, root, git_dir, common = answers
        branch = None if name == "HEAD" else name.removeprefix("refs/heads/")
    else:  # no commit yet, no work tree, or a path with a line end: one answer at a time
        is_shallow = work_tree_state(folder)
        root, git_dir, common = [git_answer(folder, "rev-parse", place)[:-1] for place in places]
        head, branch = read_head(folder)
    common_dir = os.path.realpath(os.path.join(folder, common))
    in_progress = next((name for file, name in UNDER_WAY if os.path.lexists(os.path.join(git_dir, file))), None)
    reason = "no_commit" if head is None else f"{in_progress.replace('-', '_')}_in_progress" if in_progress else None
    return Checkout(root, git_dir, common_dir, head, branch, branch is None, is_shallow == "true", in_progress, reason)


def work_tree_state(folder: str) -> str:
    """'true' or 'false': whether the repository around *folder* is shallow. Raises GitError where there is no work tree."""
    words = ["rev-parse", "--is-bare-repository", "--is-inside-work-tree", "--is-shallow-repository"]
    is_bare, is_inside, is_shallow = git_answer(folder, *words).split()
    if is_inside != "true":
        what = "is a bare repository, without files" if is_bare == "true" else "is not in the work tree of its repository"
        code = "bare_repository" if is_bare == "true" else "no_work_tree"
        raise GitError(f"{shown_path(folder)}: {what}", "go to a folder with checked-out files", code)
    return is_shallow


def read_head(folder: str) -> tuple[str | None, str | None]:
    """(commit hash, branch) of HEAD; None for no commit yet, None for a detached HEAD. Raises GitError."""
    branch = git_looked_up(folder, "symbolic-ref", "--quiet", "HEAD").removeprefix("refs/heads/")
    return ref_commit(folder, "HEAD") or None, branch or None


def ref_commit(folder: str, ref: str) -> str:
    """The commit that *ref*, written in full, names in the repository of *folder*; '' when there is no such ref. Raises GitError."""
    return git_looked_up(folder, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")


def checkout_obstacle(checkout: Checkout) -> GitError | None:
    """Why nothing can be recorded about *checkout* (its `reason` in a sentence); None when it can."""
    place = shown_path(checkout.root)
    if checkout.head is None:
        return GitError(f"{place}: has no commit yet", "commit what is there, so that a run can name its source", "no_commit")
    if checkout.in_progress:
        what = checkout.in_progress
        ways = "git bisect reset" if what == "bisect" else f"git {what} --continue or git {what} --abort"
        return GitError(f"{place}: a {what} is in progress", f"end it first: {ways}", checkout.reason or "")
    return None


def dirty_paths(checkout: Checkout) -> list[DirtyPath]:
    """What in the work tree differs from HEAD, sorted by path, as `look_at_tree` finds it. Raises GitError."""
    return look_at_tree(checkout).dirty


class TreeLook(NamedTuple):
    """HEAD's commit and branch (None: no commit yet, detached), and what differs from it, sorted by path."""

    head: str | None
    branch: str | None
    dirty: list[DirtyPath]


def look_at_tree(checkout: Checkout) -> TreeLook:
    """HEAD and what in the work tree differs from it; ignored files are exempt, submodules are entered. Raises GitError.

    Content filters (git-lfs) are not run: a file that one would change, and that was written since its checkout, counts as changed.
    """
    listed = git_answer(checkout.root, "ls-files", "-v", "-s", "-z")
    special = [match.groups() for match in re.finditer(SPECIAL_ENTRIES, listed)]
    hidden = [path for tag, _, path in special if tag]
    status = looked_through(checkout, hidden) if hidden else git_answer(checkout.root, *GIT_STATUS_WORDS)
    found = status_paths(status, set(hidden))
    for path in sorted(path for _, mode, path in special if mode):
        if found.get(path) is None:
            found.update((inner, "submodule") for inner in submodule_paths(checkout.root, path))
    heads = dict(line[2:].split(" ", 1) for line in status.split("\0") if line.startswith("# branch."))
    head, branch = heads["branch.oid"], heads["branch.head"]
    dirty = [DirtyPath(path, kind) for path, kind in sorted(found.items())]
    return TreeLook(None if head == "(initial)" else head, None if branch == "(detached)" else branch, dirty)


def status_paths(status: str, hidden: set[str]) -> dict[str, str]:
    """{path: kind} of the entries of `git status --porcelain=v2 -z`."""
    found = {}
    for entry in status.split("\0"):
        if entry.startswith("? "):
            found[entry[2:]] = "untracked"
        elif entry.startswith(("1 ", "u ")):
            fields = entry.split(" ", 8 if entry[0] == "1" else 10)
            kind = "submodule" if fields[2].startswith("S") else "staged" if fields[1][0] != "." and entry[0] == "1" else "unstaged"
            found[fields[-1]] = "hidden" if fields[-1] in hidden and kind == "unstaged" else kind
    return found


def looked_through(checkout: Checkout, hidden: list[str]) -> str:
    """The status with the assume-unchanged and skip-worktree bits of the paths *hidden* taken away, in a copy of the index.

    What a sparse checkout left out keeps its bit. Raises GitError.
    """
    import tempfile

    sparse = git_looked_up(checkout.root, "config", "--type=bool", "--get", "core.sparseCheckout") == "true"
    looked = [path for path in hidden if not sparse or os.path.lexists(os.path.join(checkout.root, path))]
    paths = b"".join(os.fsencode(path) + b"\0" for path in looked)
    with tempfile.TemporaryDirectory(prefix="kaizen-index-") as folder:
        index, own = os.path.join(folder, "index"), os.path.join(checkout.git_dir, "index")
        written = os.stat(own)
        copy_file(own, index)
        # Git reads a file again that is not older than the index: the copy must not seem younger than it is.
        os.utime(index, ns=(written.st_atime_ns, written.st_mtime_ns))
        env = {"GIT_INDEX_FILE": index}
        for bit in ("--no-assume-unchanged", "--no-skip-worktree"):
            git_answer(checkout.root, "update-index", bit, "-z", "--stdin", stdin=paths, env=env)
        return git_answer(checkout.root, *GIT_STATUS_WORDS, env=env)


def submodule_paths(root: str, path: str) -> list[str]:
    """What differs inside the submodule *path* of *root*; one that was never filled has nothing, unless files lie in its folder."""
    folder = os.path.join(root, path)
    if os.path.lexists(os.path.join(folder, ".git")):
        return [f"{path}/{inner.path}" for inner in dirty_paths(read_checkout(folder))]
    return [f"{path}/"] if os.path.isdir(folder) and os.listdir(folder) else []


def dirty_obstacle(paths: list[DirtyPath]) -> GitError | None:
    """That the tree is not clean, with the first of *paths* by name; None when there are none."""
    if not paths:
        return None
    named = listed([f"{visible(each.path)} ({each.kind})" for each in paths], 5)
    hint = "commit them, or have git ignore them; git update-index --no-assume-unchanged --no-skip-worktree PATH shows a hidden one"
    return GitError(f"the work tree is not clean, {counted(len(paths), 'path')}: {named}", hint, "dirty_tree")


def tree_hash(checkout: Checkout) -> str:
    """The hash of the tree that HEAD commits: equal for equal content, however it came about. Raises GitError."""
    return git_answer(checkout.root, "rev-parse", "--verify", f"{checkout.head}^{{tree}}").strip()


def patch_id(checkout: Checkout, base: str) -> str:
    """`git patch-id --stable` of what HEAD changed since the commit *base*; '' when nothing differs. Raises GitError."""
    words = ["diff-tree", "-r", "-p", "--binary", "--full-index", *DIFF_WORDS, commit_named(checkout, base), str(checkout.head)]
    made = git_ended(checkout.root, *words)
    if made.exit_code:
        raise git_error(checkout.root, "diff-tree", made)
    return git_answer(checkout.root, "patch-id", "--stable", stdin=made.stdout).partition(" ")[0]


def changed_paths(checkout: Checkout, base: str) -> list[str]:
    """The paths that HEAD adds, changes or removes against the commit *base*, sorted; of a rename both. Raises GitError."""
    words = ["diff-tree", "-r", "--name-only", "-z", *DIFF_WORDS, commit_named(checkout, base), str(checkout.head)]
    return sorted(path for path in git_answer(checkout.root, *words).split("\0") if path)


def commit_named(checkout: Checkout, name: str) -> str:
    """The full hash of the commit *name*, a hash, branch or tag. Raises GitError unknown_commit."""
    if name.startswith("-"):
        raise GitError("a commit's name does not begin with '-'", reason="unknown_commit")
    return git_answer(checkout.root, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}").strip().split("\n")[-1]


def git_write_obstacle(checkout: Checkout) -> GitError | None:
    """What forbids commits in *checkout* and what to do; None when its git directory can be written.

    Tried by making an empty folder and removing it: permissions do not tell of a sandbox.
    """
    import tempfile

    for folder in dict.fromkeys([checkout.git_dir, *[os.path.join(checkout.common_dir, name) for name in ("objects", "refs")]]):
        try:
            os.rmdir(tempfile.mkdtemp(prefix="kaizen-probe-", dir=folder))
        except OSError:
            return GitError(
                f"{shown_path(folder)}: cannot be written here, so neither commits nor branches can be made in this repository",
                "kaizen lab open makes a clone in which they can; or run the command outside the sandbox",
                "git_read_only",
            )
    return None

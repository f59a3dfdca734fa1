"""Private exports of commits: each arm of a comparison works in a tree of its own.

A temporary index is filled from the commit and checked out into a temporary folder: nothing is
written into the repository, whose git folder may be read-only. Afterwards its tracked files must
be as they were exported, else the arm is tainted. What git ignores and a system needs is linked
in by `links` of system.md. A folder that a killed process left behind is removed by the next.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kaizen.campaigns.campaign import Campaign
from kaizen.foundation.errors import RefusedError
from kaizen.foundation.files import copy_file, make_folder, refuse_writing, remove_folder, write_file
from kaizen.foundation.text import quoted, visible
from kaizen.lab.definition import load_whole_system
from kaizen.lab.git import GitError, git_answer
from kaizen.lab.provenance import DIFF_WORDS, Checkout, commit_named
from kaizen.lab.system import SYSTEM_FILE, SYSTEMS_FOLDER, System
from kaizen.lab.watch import Watch, content_sha256
from kaizen.lab.workspace import WORKSPACE_FOLDER, Workspace
from kaizen.lab.worktrees import COPY_SECONDS
from kaizen.runs.workers import WorkFolders, remove_work_folder

SUBMODULE_MODE = "160000"
EXPORT_STATUS = "status --porcelain=v2 -z --no-renames --untracked-files=no --ignore-submodules=all".split()
# A sparse checkout would leave files out of the export.
WHOLE_TREE = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.sparseCheckout", "GIT_CONFIG_VALUE_0": "false"}


class Export(Watch):
    """The files of *commit* in the new folder `tree` below *folder*; only those of *paths*, relative to the top, where they are given.

    Raises GitError: unknown_commit, has_submodules.
    """

    def __init__(self, checkout: Checkout, commit: str, folder: str, paths: "list[str] | None" = None) -> None:
        self.checkout, self.commit, self.folder = checkout, commit_named(checkout, commit), folder
        self.tree = os.path.join(folder, "tree")
        make_folder(self.tree)
        environment = self.index("index")
        if paths is None:
            listed = git_answer(checkout.root, "ls-files", "--stage", "-z", env=environment)
            inner = next((entry.split("\t", 1)[1] for entry in listed.split("\0") if entry.startswith(SUBMODULE_MODE)), None)
            if inner is not None:
                message = f"{visible(inner)}: is a submodule, which an export of a commit does not hold"
                raise GitError(message, "put its files into the repository, or link them with `links` in system.md", "has_submodules")
        words = ["--all"] if paths is None else ["-z", "--stdin"]
        names = b"".join(os.fsencode(path) + b"\0" for path in paths or [])
        git_answer(checkout.root, "checkout-index", "--force", "--quiet", *words, stdin=names, env=environment, seconds=COPY_SECONDS)

    def index(self, name: str) -> dict[str, str]:
        """The environment in which git sees the export through a new index, called *name*, of the commit.

        Git is asked from the repository, whose content filters are then known and switched off.
        """
        place = {"GIT_DIR": self.checkout.git_dir, "GIT_INDEX_FILE": os.path.join(self.folder, name), "GIT_WORK_TREE": self.tree}
        git_answer(self.checkout.root, "read-tree", self.commit, env={**place, **WHOLE_TREE}, seconds=COPY_SECONDS)
        return place

    def changed(self, is_last: bool = False) -> str | None:
        """That a tracked file is not as it was exported; all are read again, in the last look only."""
        if not is_last:
            return None
        try:
            said = git_answer(self.checkout.root, *EXPORT_STATUS, env=self.index("check"), seconds=COPY_SECONDS)
        except GitError as error:
            return f"the export can no longer be looked at: {error.message}"
        for entry in said.split("\0"):
            if entry.startswith(("1 ", "u ")) and entry[3] != ".":
                return f"{visible(entry.split(' ', 8)[-1])} is no longer as it was exported: the variant changed a file of its own"
        return None


def inner_root(workspace: Workspace, checkout: Checkout, tree: str) -> str:
    """The folder in the export *tree* that holds `kaizen/`, as the root of *workspace* does in its repository."""
    return os.path.normpath(os.path.join(tree, os.path.relpath(workspace.root, os.path.realpath(checkout.root))))


def link_dependencies(workspace: Workspace, system: System, root: str) -> None:
    """Links what `links` names from the tree at hand, or else the main one, into the export at *root*. Raises RefusedError."""
    main = os.path.dirname(os.path.dirname(workspace.store_folder))
    for name in system.links:
        source = next((path for path in (workspace.path(name), os.path.join(main, name)) if os.path.lexists(path)), None)
        target = os.path.join(root, name)
        if source is None or os.path.lexists(target):
            what = "is in the commit" if source else "is not there"
            hint = "`links` of system.md names what git ignores and the system needs"
            raise RefusedError(f"{quoted(name)} cannot be linked into a tree of the campaign: it {what}", hint, "missing_link")
        make_folder(os.path.dirname(target))
        try:
            os.symlink(source, target)
        except OSError as error:
            refuse_writing(target, error)


@contextmanager
def exported(workspace: Workspace, checkout: Checkout, commit: str, system: System, folders: WorkFolders) -> Iterator[tuple[str, Export]]:
    """(root of the tree of *commit*, its watch), which are there while the block runs. Raises GitError, RefusedError."""
    folder = folders.make()
    try:
        export = Export(checkout, commit, folder)
        root = inner_root(workspace, checkout, export.tree)
        link_dependencies(workspace, system, root)
        yield root, export
    finally:
        remove_work_folder(folder)


# --- The judge -------------------------------------------------------------------------


def opening_commit(campaign: Campaign) -> str:
    """The commit with which *campaign* opened: it holds the contract and everything that is locked."""
    return str(campaign.events[0]["body"]["commit"])


def system_notes(campaign: Campaign) -> str:
    """Path of system.md relative to the root."""
    return f"{WORKSPACE_FOLDER}/{SYSTEMS_FOLDER}/{campaign.system}/{SYSTEM_FILE}"


def judge_of(
    workspace: Workspace, checkout: Checkout, campaign: Campaign, folder: str, others: Mapping[str, bytes]
) -> tuple[Workspace, System]:
    """(workspace, system) of what judges: the locked files of the opening commit and its system.md, below *folder*.

    Nothing of it comes from a variant. *others* are contents that stand in for locked files. Raises RefusedError (`locked_changed`) when a
    file is not the one that was locked, and what loading the system raises.
    """
    prefix = os.path.relpath(workspace.root, os.path.realpath(checkout.root))
    locked: dict[str, str] = dict(campaign.contract["locked"])
    paths = [os.path.normpath(os.path.join(prefix, path)) for path in [*locked, system_notes(campaign)]]
    root = inner_root(workspace, checkout, Export(checkout, opening_commit(campaign), folder, paths).tree)
    judge = Workspace(root, workspace.store_folder, workspace.config)
    for path, digest in locked.items():
        place = judge.path(path)
        if path in others:
            write_file(place, others[path])
        elif not os.path.isfile(place) or content_sha256(place) != digest:
            replace_from_tree(workspace.path(path), place, digest, path)
    return judge, load_whole_system(judge, campaign.system)


def replace_from_tree(source: str, place: str, digest: str, path: str) -> None:
    """Takes a locked file that git keeps otherwise (git-lfs) from the tree, by its hash. Raises RefusedError (`locked_changed`)."""
    if os.path.lexists(place):
        os.unlink(place)
    make_folder(os.path.dirname(place))
    if not os.path.isfile(source) or copy_file(source, place)[0] != digest:
        hint = "put it back as it was committed; another eval or dataset is another campaign"
        raise RefusedError(f"the locked file {quoted(path)} is not the one with which the campaign opened", hint, "locked_changed")


def net_lines(checkout: Checkout, base: str, commit: str) -> int | None:
    """Lines added less lines removed from *base* to *commit*; None where a file that is no text changed. Raises GitError."""
    rows = git_answer(checkout.root, "diff-tree", "-r", "--numstat", "-z", *DIFF_WORDS, base, commit).split("\0")
    counts = [row.split("\t")[:2] for row in rows if row]
    return None if any("-" in pair for pair in counts) else sum(int(added) - int(removed) for added, removed in counts)


def discard_export(folder: str) -> None:
    """Removes *folder* if it is there."""
    if os.path.isdir(folder):
        remove_folder(folder)

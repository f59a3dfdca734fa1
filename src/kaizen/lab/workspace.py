"""The workspace: `kaizen/` in a repository, and the one store its worktrees share.

    kaizen/config.json      format version and defaults, committed
    kaizen/systems/<id>/    one folder a system, committed
    kaizen/.kaizen/         the store: git-ignored, only the engine writes

The store of a linked worktree is that of the main one; a clone below `kaizen/.kaizen/work/`
uses the store around it. Both are found by reading git's files, without starting git.
"""

import os
import re
from typing import NamedTuple

from kaizen.embed import asset_text
from kaizen.foundation.errors import Breaches, InputError, RefusedError
from kaizen.foundation.files import create_file, list_folder, make_folder, read_bytes, shown_path
from kaizen.foundation.jsonio import JsonObject, checked_object
from kaizen.foundation.shapes import COUNT, POSITIVE_COUNT, RATIO, Kind, check_fields, check_no_others, or_null

WORKSPACE_FOLDER = "kaizen"
STORE_NAME = ".kaizen"
CONFIG_FILE = "config.json"
STORE_MARK = "store.json"
STORE_TEXT = '{"kind": "kaizen-lab-store", "version": 1}\n'
CONFIG_TEXT = asset_text("lab/config.json")
CONFIG_FIELDS = {
    "version": Kind(lambda value: value == 1 and value is not True, "1", shows_value=True),
    "seed": COUNT,
    "silence_seconds": RATIO,
    "item_timeout_seconds": RATIO,
    "run_timeout_seconds": or_null(RATIO),
    "slots": or_null(POSITIVE_COUNT),
}
CONFIG_DEFAULTS: JsonObject = {
    "version": 1,
    "seed": 20260101,
    "silence_seconds": 60,
    "item_timeout_seconds": 60,
    "run_timeout_seconds": None,
    "slots": None,
}
NESTED_CLONE = re.compile(rf"(.*/{WORKSPACE_FOLDER}/\{STORE_NAME})/work/[^/]+(?:/|\Z)", re.DOTALL)


class Workspace(NamedTuple):
    """`root` holds `kaizen/` in the tree at hand; `store_folder` is the one store of all trees; `config` has every key."""

    root: str
    store_folder: str
    config: JsonObject

    def path(self, *parts: str) -> str:
        """Absolute path of a file below `root`."""
        return os.path.join(self.root, *parts)


def find_workspace(start: str = ".") -> Workspace:
    """The workspace at or above the folder *start*, inside its repository. Raises InputError (`no_workspace`) when there is none."""
    folder = os.path.realpath(start)
    while not os.path.isfile(os.path.join(folder, WORKSPACE_FOLDER, CONFIG_FILE)):
        above = os.path.dirname(folder)
        if above == folder or os.path.lexists(os.path.join(folder, ".git")):
            raise InputError(f"{shown_path(start)}: there is no workspace here", "make one with: kaizen init", "no_workspace")
        folder = above
    return Workspace(folder, store_of(folder), read_config(os.path.join(folder, WORKSPACE_FOLDER, CONFIG_FILE)))


def read_config(path: str) -> JsonObject:
    """The settings in *path*, with the defaults of those that are absent. Raises BreachesError."""
    breaches = Breaches()
    found = checked_object(path, breaches)
    if found:

        def report(pointer: str, message: str, hint: str) -> None:
            breaches.add(shown_path(path), None, pointer, message, hint)

        check_fields(found[1], CONFIG_FIELDS, "", report, ["version"])
        check_no_others(found[1], CONFIG_FIELDS, "", report)
    breaches.raise_if_any()
    return {**CONFIG_DEFAULTS, **(found[1] if found else {})}


def store_of(root: str) -> str:
    """The store for the workspace at *root*: that around a nested clone, that of the main worktree, or its own."""
    nested = NESTED_CLONE.match(root)
    if nested:
        return nested.group(1)
    tree = root
    while not os.path.lexists(os.path.join(tree, ".git")):
        above = os.path.dirname(tree)
        if above == tree:
            return os.path.join(root, WORKSPACE_FOLDER, STORE_NAME)
        tree = above
    return os.path.normpath(os.path.join(main_tree(tree), os.path.relpath(root, tree), WORKSPACE_FOLDER, STORE_NAME))


def main_tree(tree: str) -> str:
    """The main worktree of the repository whose worktree is *tree*; its git folder when it has no main worktree (bare)."""
    link = os.path.join(tree, ".git")
    if not os.path.isfile(link):
        return tree
    git_folder = os.path.normpath(os.path.join(tree, git_line(link).removeprefix("gitdir:").strip()))
    common_file = os.path.join(git_folder, "commondir")
    if not os.path.isfile(common_file):  # a submodule, or a git folder kept elsewhere: this is the main one
        return tree
    common = os.path.normpath(os.path.join(git_folder, git_line(common_file)))
    if os.path.basename(common) == ".git":
        return os.path.dirname(common)
    config = os.path.join(common, "config")  # a submodule's says where its files are
    found = re.search(r"^\s*worktree\s*=\s*(.+?)\s*$", git_line(config), re.MULTILINE) if os.path.isfile(config) else None
    return os.path.normpath(os.path.join(common, found.group(1))) if found else common


def git_line(path: str) -> str:
    """The text of a small file of git's, without the last line end; a path may hold any bytes."""
    return os.fsdecode(read_bytes(path)).rstrip("\n")


def init_workspace(folder: str) -> tuple[Workspace, list[str]]:
    """The workspace in *folder*, and the files that were made; existing ones stay. Raises RefusedError or InputError.

    Refused: a folder inside another workspace, and a store that another program has made.
    """
    root = os.path.realpath(folder)
    try:
        around = find_workspace(root)
    except InputError as error:
        if error.reason != "no_workspace":
            raise
    else:
        if around.root != root:
            message = f"{shown_path(around.root)}: is a workspace already, and holds this folder; nothing was changed"
            raise RefusedError(message, "use that one: its commands work from here", "existing_workspace")
    config = os.path.join(root, WORKSPACE_FOLDER, CONFIG_FILE)
    refuse_foreign_store(store_of(root))
    made = []
    make_folder(os.path.dirname(config))
    if create_file(config, CONFIG_TEXT):
        made.append(config)
    workspace = find_workspace(root)
    return workspace, made + make_store(workspace)


def refuse_foreign_store(store: str) -> None:
    """Raises RefusedError when *store* is there and is not ours."""
    is_empty = not os.path.lexists(store) or os.path.isdir(store) and not list_folder(store)
    if not is_empty and not os.path.isfile(os.path.join(store, STORE_MARK)):
        raise RefusedError(
            f"{shown_path(store)}: belongs to another program: it has no {STORE_MARK} of Kaizen; nothing was written",
            "move it away, or make the workspace in another folder",
            "foreign_store",
        )


def make_store(workspace: Workspace) -> list[str]:
    """Makes the store if it is not there, ignored by git; the files that were made. Raises RefusedError for one that is not ours."""
    store = workspace.store_folder
    refuse_foreign_store(store)
    make_folder(store)
    contents = {os.path.join(store, STORE_MARK): STORE_TEXT, os.path.join(store, ".gitignore"): "*\n"}
    return [path for path, text in contents.items() if create_file(path, text)]

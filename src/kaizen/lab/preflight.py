"""Before a run: whether one may begin here and now; nothing is changed when it may not.

The first thing that forbids it is told.

    lock_held no_free_slot     another run is at work in this tree, or as many as may be
    paused stopped             a person has put PAUSE or STOP into the store
    not_a_repository no_commit merge_in_progress …    what lab/provenance.py refuses
    dirty_tree                 the tree is not exactly a commit
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from kaizen.foundation.errors import RefusedError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.locks import FileLock
from kaizen.foundation.text import counted, slug, visible
from kaizen.lab.provenance import Checkout, checkout_obstacle, dirty_obstacle, dirty_paths, read_checkout
from kaizen.lab.system import System
from kaizen.lab.workspace import STORE_NAME, WORKSPACE_FOLDER, Workspace, make_store
from kaizen.lab.worktrees import default_slots

SIGNS = (
    ("PAUSE", "paused", "a person has paused the lab", "remove the file {0} to go on"),
    ("STOP", "stopped", "a person has stopped the lab", "remove the file {0} to go on"),
)


def slots_of(workspace: Workspace, system: System) -> int:
    """How many runs may be at work at once: as config.json says, else 1 where time or cost is measured, else 3."""
    return int(workspace.config["slots"] or default_slots([system.metric.name]))


@contextmanager
def held_locks(workspace: Workspace, system: System) -> Iterator[None]:
    """While the block runs this process has the tree, and one of the slots. Raises RefusedError: lock_held, no_free_slot."""
    with ExitStack() as held:
        held.enter_context(tree_lock(workspace))
        take_slot(held, workspace.store_folder, slots_of(workspace, system))
        yield


def tree_lock(workspace: Workspace) -> FileLock:
    """The lock of the tree at hand: whoever has it alone may run in it, or change its commit."""
    make_store(workspace)
    is_main = workspace.store_folder == workspace.path(WORKSPACE_FOLDER, STORE_NAME)
    return FileLock(os.path.join(workspace.store_folder, "lock" if is_main else f"lock-{slug(workspace.root)}"), "this tree")


def take_slot(held: ExitStack, store: str, slots: int) -> None:
    """Takes the first free slot for as long as *held*. Raises RefusedError when all are in use."""
    for number in range(1, slots + 1):
        try:
            held.enter_context(FileLock(os.path.join(store, f"slot-{number}"), f"slot {number}", patience=0))
            return
        except RefusedError as error:
            if error.reason != "lock_held":
                raise
    raise RefusedError(
        f"{counted(slots, 'run')} at work already, which is all that may be at once",
        "wait until one has ended, or raise `slots` in kaizen/config.json",
        "no_free_slot",
    )


def refuse_signs(workspace: Workspace) -> None:
    """Raises RefusedError (paused, stopped) when a person has put a sign into the store."""
    for name, reason, sentence, hint in SIGNS:
        path = os.path.join(workspace.store_folder, name)
        if os.path.lexists(path):
            raise RefusedError(sentence, hint.format(shown_path(path)), reason)


def checked_tree(workspace: Workspace) -> Checkout:
    """The checkout in which a run may begin. Raises RefusedError with the first thing that forbids it."""
    refuse_signs(workspace)
    checkout = read_checkout(workspace.root)
    obstacle = checkout_obstacle(checkout) or dirty_obstacle(dirty_paths(checkout))
    if obstacle:
        raise obstacle
    return checkout


def tree_document(workspace: Workspace) -> JsonObject:
    """{head, branch, is_detached, obstacle, dirty} of the tree at hand."""
    found: JsonObject = {"head": None, "branch": None, "is_detached": False, "obstacle": None, "dirty": []}
    try:
        checkout = read_checkout(workspace.root)
        found |= {"head": checkout.head, "branch": checkout.branch, "is_detached": checkout.is_detached}
        obstacle = checkout_obstacle(checkout)
        if obstacle:
            raise obstacle
        found["dirty"] = [{"path": visible(each.path, None), "kind": each.kind} for each in dirty_paths(checkout)]
    except RefusedError as error:
        found["obstacle"] = {"reason": error.reason, "message": error.message, "hint": error.hint}
    return found

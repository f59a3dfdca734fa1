"""`kaizen worktree add`, `list`, `gc`: trees for variants that are made side by side."""

from argparse import Namespace

from kaizen.commands.lab import CAMPAIGN
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.errors import UsageError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, did_you_mean, listed, quoted, visible
from kaizen.lab.git import GitError
from kaizen.lab.provenance import dirty_paths, read_checkout
from kaizen.lab.system import load_system, system_ids
from kaizen.lab.workspace import Workspace, find_workspace
from kaizen.lab.worktrees import Worktree, add_worktree, collect_worktree, copy_notes, default_slots, list_worktrees

SLOTS = Argument("--slots", "N", "trees at a time (config.json; else 3, or 1 if a metric is time or cost)", {"type": int, "default": 0})


@command(
    "worktree add",
    "Makes a work tree for a variant, outside the repository, on the branch kaizen/CAMPAIGN/VARIANT.",
    [
        CAMPAIGN,
        Argument("--variant", "V", "name of the variant (default: the next number, v001)", {"default": ""}),
        Argument("--from", "COMMIT", "commit to begin with (HEAD)", {"default": "HEAD", "dest": "base"}),
        Argument("--place", "DIR", "folder for work trees (default: ../REPOSITORY.kaizen-worktrees)", {"default": ""}),
        SLOTS,
    ],
    "kaizen worktree add --from kaizen/lab/v003",
    group="lab",
)
def command_worktree_add(args: Namespace) -> Answer:
    """Makes the tree and says where it is."""
    if args.slots < 0:
        raise UsageError("--slots: is at least 1")
    workspace = find_workspace()
    slots = args.slots or workspace.config["slots"] or workspace_slots(workspace)
    tree = add_worktree(read_checkout(workspace.root), args.campaign, args.variant, place=args.place, base=args.base, slots=slots)
    message = f"{tree.label()}: work tree {shown_path(tree.path)} on branch {tree.branch}, at {tree.head[:12]}"
    notes = copy_notes(tree.path)
    return Answer(0, "created", message, [message, *[f"  note: {note}" for note in notes]], {**worktree_row(tree), "notes": notes},
                  f"cd {shown_path(tree.path)}, edit, git commit, then: kaizen run --variant {tree.variant}")  # fmt: skip


def workspace_slots(workspace: Workspace) -> int:
    """How many trees at a time suit the metrics of the systems of *workspace*."""
    return default_slots(load_system(workspace, each).metric.name for each in system_ids(workspace))


def worktree_row(tree: Worktree) -> JsonObject:
    """What --json says of *tree*."""
    path, variant = shown_path(tree.path), {"campaign": tree.campaign, "variant": tree.variant}
    return {**variant, "path": path, "branch": tree.branch, "commit": tree.head, "locked": tree.locked is not None}


@command(
    "worktree list",
    "Lists the work trees of variants, with what is not committed in them.",
    [],
    "kaizen worktree list",
    group="lab",
)
def command_worktree_list(args: Namespace) -> Answer:
    """Lists them in git's order."""
    rows = []
    for tree in list_worktrees(read_checkout(find_workspace().root)):
        try:
            dirty, problem = len(dirty_paths(read_checkout(tree.path))), ""
        except GitError as error:
            dirty, problem = None, error.message
        rows.append({**worktree_row(tree), "dirty": dirty, "problem": problem})
    message = counted(len(rows), "work tree")
    lines = []
    for row in rows:
        state = row["problem"] or (f"{row['dirty']} not committed" if row["dirty"] else "clean")
        lines.append(f"{row['campaign']}/{row['variant']}  {row['commit'][:12]}  {state}  {row['path']}")
    return Answer(0, "listed", message, lines or [message], {"worktrees": rows})


@command(
    "worktree gc",
    "Removes work trees that are done with: the clean ones among those named. Their branches and commits are kept.",
    [
        Argument("variants", "CAMPAIGN/VARIANT", "the trees to remove", {"nargs": "*"}),
        Argument("--all", "", "every one that is clean"),
    ],
    "kaizen worktree gc lab/v001",
    group="lab",
)
def command_worktree_gc(args: Namespace) -> Answer:
    """Removes what can go, and says of the rest why it stays: exit code 1."""
    checkout = read_checkout(find_workspace().root)
    trees = wanted_trees(list_worktrees(checkout), args.variants, args.all)
    kept = {tree.label(): reason for tree in trees if (reason := collect_worktree(checkout, tree))}
    gone = [tree.label() for tree in trees if tree.label() not in kept]
    message = f"removed {listed(gone, 40) or 'nothing'}{f', kept {listed(kept, 40)}' if kept else ''}"
    lines = [message, *[f"  {label} stays: {visible(reason, 300)}" for label, reason in kept.items()]]
    return Answer(1 if kept and not args.all else 0, "kept" if kept else "removed", message, lines, {"removed": gone, "kept": kept})


def wanted_trees(trees: list[Worktree], labels: list[str], is_all: bool) -> list[Worktree]:
    """The trees that *labels* name, or all. Raises UsageError for a name that no tree has, and when nothing is named."""
    by_label = {tree.label(): tree for tree in trees}
    if bool(labels) == is_all:
        raise UsageError("name the work trees to remove, or say --all", f"there are: {listed(by_label, 40) or 'none'}")
    for label in labels:
        if label not in by_label:
            raise UsageError(f"there is no work tree {quoted(label)}", did_you_mean(label, by_label))
    return trees if is_all else [by_label[label] for label in dict.fromkeys(labels)]

"""Which commit a run was made from, asked of git without running what a repo configures.

    {"hash": "4c9f…", "branch": "main", "dirty": false, "reason": null}

What is not known is null and `reason` says why: no repository, no commit yet, git missing or
too slow. Hooks, pagers, file-system monitors and content filters of the repository are
switched off, submodules are not entered, nothing is fetched and no lock is taken. With
filters off a file that one would change on its way in (git-lfs) may count as changed.
"""

import os
import re

from kaizen.foundation.git import GIT_SECONDS, ask_git, filters_off
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.process import EXITED, CannotStart, Ended
from kaizen.foundation.redact import redact_shown
from kaizen.foundation.text import visible

STATUS = ["status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--untracked-files=all", "--ignore-submodules=dirty"]
# What the engine itself writes into improvements says nothing about the agent.
OWN_FILES = "*.jsonl *.meta.json *.unfinished *.lock *.files/** comparison.json reliability.json review.* decision.yaml".split()


def commit_of(folder: str, improvement_folder: str) -> JsonObject:
    """Commit, branch and whether anything differs from it in the repository around *folder*, evidence of improvements left out."""
    unknown: JsonObject = {"hash": None, "branch": None, "dirty": None, "reason": None}
    try:
        top = ask_git(["rev-parse", "--show-toplevel"], folder)
        if top.end != EXITED or top.exit_code:
            return {**unknown, "reason": git_failure(top)}
        root = os.fsdecode(top.stdout.rstrip(b"\n"))
        status = ask_git([*STATUS, "--", ":/", *own_files(root, improvement_folder)], root, filters_off(root))
    except CannotStart as error:
        missing = "git is not installed" if "No such file" in str(error) else f"git cannot be started: {error}"
        return {**unknown, "reason": missing}
    entries = status.stdout.split(b"\0")
    head = dict(entry[2:].split(b" ", 1) for entry in entries if entry.startswith(b"# ") and b" " in entry[2:])
    name, branch = head.get(b"branch.oid", b"").decode(), os.fsdecode(head.get(b"branch.head", b""))
    if not name or status.end == EXITED and status.exit_code:
        return {**unknown, "reason": git_failure(status)}
    has_commit = re.fullmatch("[0-9a-f]{40,64}", name) is not None
    is_dirty = any(entry and not entry.startswith(b"# ") for entry in entries)
    return {
        "hash": name if has_commit else None,
        "branch": None if branch == "(detached)" else branch.encode("utf-8", "replace").decode(),
        "dirty": True if is_dirty else False if status.end == EXITED else None,
        "reason": None if has_commit else "there is no commit yet",
    }


def git_failure(ended: Ended) -> str:
    """Why git did not answer, in a few words."""
    text = ended.stderr.decode("utf-8", "replace").strip()
    if ended.end != EXITED:
        return f"git did not answer within {GIT_SECONDS:g} s"
    if "not a git repository" in text:
        return "not in a git repository"
    if "must be run in a work tree" in text:
        return "the git repository has no work tree"
    return visible(redact_shown(text.split("\n", 1)[0])) or f"git ended with exit code {ended.exit_code}"


def own_files(root: str, improvement_folder: str) -> list[str]:
    """Pathspecs that leave out what the engine writes into this improvement and its neighbours below *root*."""
    place = os.path.relpath(os.path.realpath(improvement_folder), os.path.realpath(root))
    if place.startswith(".."):
        return []
    neighbours = "" if place == "." else os.path.join(re.sub(r"([*?\[\\])", r"\\\1", os.path.dirname(place)), "*")
    return [f":(exclude,top,glob){os.path.join(neighbours, pattern)}" for pattern in OWN_FILES]

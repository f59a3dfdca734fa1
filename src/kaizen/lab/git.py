"""Git's answers, or one sentence with a stable reason code why there is none.

`git_answer` is the only way in which the lab calls git. It runs nothing that the repository
configures (foundation/git.py), and no word of it ever resets, cleans or overwrites a tree.
"""

import os
import re

from kaizen.foundation.errors import RefusedError
from kaizen.foundation.files import shown_path
from kaizen.foundation.git import ask_git, filters_off
from kaizen.foundation.process import EXITED, OVERFLOW, CannotStart, Ended
from kaizen.foundation.text import visible

OLDEST_GIT = (2, 31)  # the first that takes configuration from GIT_CONFIG_COUNT, with which content filters are switched off
LOOK_UP_SECONDS = 60.0
GIT_LIMIT = 1 << 26
# Commands that look into files of the tree, and so would ask content filters.
FILTERING = frozenset(("status", "diff", "worktree", "clone", "switch", "apply", "add", "commit", "checkout-index"))
# What git says in the C locale: reason code, sentence, what to do. {0} is the folder.
GIT_FAILURES = (
    (r"not a git repository", "not_a_repository", "{0}: is not in a git repository", "run: git init, then commit what is there"),
    (
        r"dubious ownership|unsafe repository",
        "unsafe_repository",
        "{0}: belongs to another user, so git refuses to read it",
        "if you trust it: git config --global --add safe.directory FOLDER",
    ),
    (r"must be run in a work tree", "no_work_tree", "{0}: has no work tree", "go to a folder with checked-out files"),
    (
        r"Read-only file system|Permission denied|insufficient permission|Operation not permitted",
        "git_read_only",
        "{0}: git may not write to its repository here",
        "kaizen lab open makes a clone in which commits work; or run the command outside the sandbox",
    ),
    (
        r"\.lock': File exists|index\.lock",
        "git_busy",
        "{0}: another git process is writing to the repository",
        "wait until it has ended; if none runs, remove the .lock file that git names",
    ),
    (
        r"would be (?:overwritten|removed)|would lose",
        "would_overwrite",
        "{0}: files that git does not keep lie where the other commit has some; nothing was changed",
        "see which with git status --ignored, move them away, then run the command again",
    ),
    (
        r"unknown revision|bad revision|bad object|Invalid symmetric|Needed a single revision|not a valid|invalid reference|missing blob",
        "unknown_commit",
        "{0}: the repository does not have that commit",
        "name one that it has; in a shallow clone, first: git fetch --unshallow",
    ),
)


class GitError(RefusedError):
    """Git cannot do or say what is needed; `reason` is a stable code."""

    default_reason = "git_failed"


def git_ended(
    folder: str, *words: str, env: dict[str, str] | None = None, stdin: bytes = b"", seconds: float = LOOK_UP_SECONDS
) -> Ended:
    """How `git *words*` in *folder* ended, whatever its exit code; *env* adds to its environment.

    Raises GitError when it could not start or did not end by itself.
    """
    if not os.path.isdir(folder):
        raise GitError(f"{shown_path(folder)}: is no folder", reason="missing_folder")
    try:
        settings = filters_off(folder) if words[0] in FILTERING else {}
        ended = ask_git(list(words), folder, {**settings, **(env or {})}, stdin=stdin, seconds=seconds, limit=GIT_LIMIT)
    except CannotStart as error:
        if "No such file" in str(error):
            raise GitError("git is not installed, or not on PATH", "install git 2.31 or later", "git_missing") from None
        raise GitError(f"git cannot be started: {visible(str(error))}", reason="git_missing") from None
    if ended.end == OVERFLOW:
        raise GitError(f"git {words[0]}: the answer is larger than {GIT_LIMIT >> 20} MiB", reason="git_answer_too_large")
    if ended.end != EXITED:
        raise GitError(f"git {words[0]}: no answer within {seconds:g} s", "try again when the machine is less busy", "git_slow")
    return ended


def git_answer(
    folder: str, *words: str, env: dict[str, str] | None = None, stdin: bytes = b"", seconds: float = LOOK_UP_SECONDS
) -> str:
    """Standard output of `git *words*` in *folder*, decoded like file names (os.fsdecode). Raises GitError."""
    ended = git_ended(folder, *words, env=env, stdin=stdin, seconds=seconds)
    if ended.exit_code:
        raise git_error(folder, words[0], ended)
    return os.fsdecode(ended.stdout)


def git_looked_up(folder: str, *words: str) -> str:
    """The one line that `git *words*` prints of something that may not be there; '' when it is not (exit code 1). Raises GitError."""
    ended = git_ended(folder, *words)
    if ended.exit_code not in (0, 1):
        raise git_error(folder, words[0], ended)
    return os.fsdecode(ended.stdout).removesuffix("\n")


def git_error(folder: str, word: str, ended: Ended) -> GitError:
    """What the failure of `git *word*` in *folder* means."""
    said = ended.stderr.decode("utf-8", "replace").strip()
    for pattern, reason, sentence, hint in GIT_FAILURES:
        if re.search(pattern, said):
            return GitError(sentence.format(shown_path(folder)), hint, reason)
    lines = [line for line in said.split("\n") if line.startswith(("fatal:", "error:"))] or said.split("\n")
    return GitError(f"git {word}: {visible(lines[0], 200) or f'exit code {ended.exit_code}'}")


def git_version() -> tuple[int, int]:
    """(major, minor) of the installed git. Raises GitError when there is none, or one older than OLDEST_GIT."""
    said = git_answer(os.path.abspath(os.sep), "version")
    found = re.search(r"(\d+)\.(\d+)", said)
    version = (int(found.group(1)), int(found.group(2))) if found else (0, 0)
    if version < OLDEST_GIT:
        raise GitError(f"git {'.'.join(map(str, version))} is too old", "install git 2.31 or later", "git_too_old")
    return version

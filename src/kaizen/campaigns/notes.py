"""What a campaign writes into the tree: the best run in system.md, and lessons.md.

Of system.md the one line `best_run` changes, byte for byte nothing else. Both files decide nothing about scores.
"""

import os
import re

from kaizen.campaigns.campaign import Campaign
from kaizen.foundation.files import read_bytes, read_text, write_file
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import visible
from kaizen.lab.git import git_answer
from kaizen.lab.provenance import Checkout, ref_commit
from kaizen.lab.system import SYSTEM_FILE, SYSTEMS_FOLDER
from kaizen.lab.workspace import WORKSPACE_FOLDER, Workspace

LESSONS_FILE = "lessons.md"
MOST_LESSON_LINES = 200
LESSONS_HEAD = "# Lessons\n\n"
LESSON_MARK = "- "
BEST_RUN_LINE = re.compile(rb"best_run:[^\r\n]*")


def with_best_run(data: bytes, run: str) -> bytes:
    """*data* of a system.md with *run* as its best run; all other bytes stay.

    >>> with_best_run(b"---\\nmetric: a\\nbest_run: r1\\n---\\nbest_run: x\\n", "r2")
    b'---\\nmetric: a\\nbest_run: r2\\n---\\nbest_run: x\\n'
    """
    line = b"best_run: " + run.encode()
    lines = data.split(b"\n")
    for number, old in enumerate(lines[1:], 1):
        if BEST_RUN_LINE.match(old):
            lines[number] = BEST_RUN_LINE.sub(line, old, 1)
            break
        if old.rstrip(b"\r") == b"---":
            lines.insert(number, line + b"\r" * old.endswith(b"\r"))
            break
    return b"\n".join(lines)


def lesson_line(campaign: str, lesson: JsonObject) -> str:
    """A lesson as a line of lessons.md."""
    verdict = str(lesson["verdict"]).replace("_", " ")
    return f"{LESSON_MARK}{campaign} {visible(lesson['variant'], 60)} ({verdict}): {visible(lesson['lesson'], 1000)}"


def with_lessons(text: str, lines: list[str]) -> str:
    """*text* of a lessons.md with those of *lines* that it does not have; beyond 200 lines the oldest lessons go.

    >>> with_lessons("# Ours\\n- a\\n", ["- a", "- b"])
    '# Ours\\n- a\\n- b\\n'
    """
    known = (text or LESSONS_HEAD).rstrip("\n").split("\n")
    known += [""] if known == [LESSONS_HEAD.strip()] else []
    known += [line for line in lines if line not in known]
    excess = len(known) - MOST_LESSON_LINES
    for number, line in enumerate(known if excess > 0 else []):
        if excess > 0 and line.startswith(LESSON_MARK):
            known[number], excess = "", excess - 1
    kept = [line for line in known if line] if len(known) > MOST_LESSON_LINES else known
    return "\n".join(kept[-MOST_LESSON_LINES:]) + "\n"


def write_notes(workspace: Workspace, campaign: Campaign, lessons: list[JsonObject], best_run: str = "") -> list[str]:
    """Writes *lessons* [{variant, verdict, lesson}], and *best_run*; the paths, relative to the root, of files that changed."""
    folder, changed = f"{WORKSPACE_FOLDER}/{SYSTEMS_FOLDER}/{campaign.system}", []
    path = workspace.path(folder, SYSTEM_FILE)
    before = read_bytes(path)
    after = with_best_run(before, best_run) if best_run else before
    if after != before:
        write_file(path, after)
        changed.append(f"{folder}/{SYSTEM_FILE}")
    path = workspace.path(folder, LESSONS_FILE)
    text = read_text(path) if os.path.exists(path) else ""
    lines = [lesson_line(campaign.id, each) for each in lessons if each["lesson"]]
    if lines and with_lessons(text, lines) != text:
        write_file(path, with_lessons(text, lines))
        changed.append(f"{folder}/{LESSONS_FILE}")
    return changed


def commit_notes(workspace: Workspace, checkout: Checkout, paths: list[str], message: str) -> str:
    """Commits just the *paths*, relative to the root; the commit that HEAD is then. Raises GitError."""
    if paths:
        git_answer(workspace.root, "add", "--", *paths)
        git_answer(workspace.root, "commit", "--quiet", "--no-verify", "--only", "-m", message, "--", *paths)
    return ref_commit(checkout.root, "HEAD")

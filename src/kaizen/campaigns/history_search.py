"""Whether cases of a holdout stand in the history of the repository, for all to read.

Looked through is every version of every file that ends like the dataset, in all refs and reflogs,
whatever it was called: a file that was renamed or deleted is still there.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from kaizen.campaigns.splitting import question_text
from kaizen.cases.case import Case
from kaizen.foundation.jsonio import JsonError, decode_line
from kaizen.foundation.text import counted
from kaizen.lab.git import GIT_LIMIT, git_answer, git_ended, git_error
from kaizen.lab.provenance import Checkout

SEARCH_SECONDS = 600.0
BATCH_BYTES = GIT_LIMIT // 2


class HistoryHits(NamedTuple):
    """How many of the cases stand in the history, in how many versions that was looked for, and what could not be looked through."""

    cases: int
    versions: int
    gap: str


def search_history(checkout: Checkout, path: str, cases: list[Case]) -> HistoryHits:
    """How many of *cases* stand in a version of the dataset *path*, relative to the root, or of a file that ends alike. Raises GitError."""
    wanted = {question_text(case.document): 0 for case in cases}
    for case in cases:
        wanted[question_text(case.document)] += 1
    suffix = os.path.splitext(path)[1]
    patterns = [f":(top,literal){path}", *([f":(top,glob)**/*{suffix}"] if suffix else [])]
    words = ["rev-list", "--objects", "--no-object-names", "--full-history", "--all", "--reflog", "--", *patterns]
    objects = git_answer(checkout.root, *words, seconds=SEARCH_SECONDS).split()
    found: set[str] = set()
    seen: set[bytes] = set()
    versions = missing = 0
    for data in blob_contents(checkout.root, objects):
        versions += data is not None
        missing += data is None
        for line in set(data.split(b"\n")) - seen if data else ():
            seen.add(line)
            if len(found) < len(wanted):
                found |= {text for text in line_questions(line) if text in wanted}
    gap = "the clone is shallow: its history is cut off" if checkout.is_shallow else ""
    gap = gap or (f"{counted(missing, 'version')} of the data not in this clone" if missing else "")
    return HistoryHits(sum(wanted[text] for text in found), versions, gap)


def line_questions(line: bytes) -> list[str]:
    """What the case on *line* asks; nothing for a line that is none."""
    if not line.lstrip().startswith(b"{") or b'"input"' not in line:
        return []
    try:
        document = decode_line(line.strip())
    except JsonError:
        return []
    return [question_text(document)] if "input" in document else []


def blob_contents(folder: str, objects: list[str]) -> Iterator[bytes | None]:
    """The content of each blob among *objects*, a few at a time; None for one that the repository of *folder* lacks. Raises GitError."""
    if not objects:
        return
    asked = "".join(f"{name}\n" for name in objects).encode()
    told = git_answer(folder, "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", stdin=asked, seconds=SEARCH_SECONDS)
    batch: list[str] = []
    size = 0
    for row in told.splitlines():
        name, kind, *rest = row.split(" ")
        if kind == "missing" or kind == "blob" and int(rest[0]) > BATCH_BYTES:
            yield None
        if kind != "blob" or int(rest[0]) > BATCH_BYTES:
            continue
        if size + int(rest[0]) > BATCH_BYTES:
            yield from blob_batch(folder, batch)
            batch, size = [], 0
        batch.append(name)
        size += int(rest[0]) + 100
    yield from blob_batch(folder, batch)


def blob_batch(folder: str, names: list[str]) -> Iterator[bytes]:
    """The content of each of the blobs *names*."""
    if not names:
        return
    ended = git_ended(folder, "cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode(), seconds=SEARCH_SECONDS)
    if ended.exit_code:
        raise git_error(folder, "cat-file", ended)
    place = 0
    for _ in names:
        head = ended.stdout.index(b"\n", place)
        size = int(ended.stdout[place:head].split(b" ")[2])
        yield ended.stdout[head + 1 : head + 1 + size]
        place = head + size + 2

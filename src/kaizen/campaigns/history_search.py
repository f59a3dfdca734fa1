"""Whether cases of a holdout stand in the history of the repository, for all to read.

Looked through is every version of every file that ends like the dataset, in all refs and reflogs,
whatever it was called: a file that was renamed or deleted is still there.
"""

import os
import re
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from kaizen.campaigns.blobs import SEARCH_SECONDS, blob_contents
from kaizen.campaigns.splitting import question_text
from kaizen.cases.case import Case
from kaizen.foundation.jsonio import JsonError, decode_line
from kaizen.foundation.text import counted
from kaizen.lab.git import git_answer
from kaizen.lab.provenance import DIFF_WORDS, Checkout


class HistoryHits(NamedTuple):
    """How many of the cases stand in the history, in how many versions that was looked for, and what could not be looked through."""

    cases: int
    versions: int
    gap: str


def search_history(checkout: Checkout, path: str, cases: list[Case], copies: Iterable[bytes] = ()) -> HistoryHits:
    """How many of *cases* stand in a version of the dataset *path*, of a file that ends alike, or in *copies*.

    The path is relative to the root. Raises GitError.
    """
    wanted = {question_text(case.document): 0 for case in cases}
    for case in cases:
        wanted[question_text(case.document)] += 1
    objects = blob_versions(checkout, [f":(top,literal){path}", f":(top,glob)**/*{os.path.splitext(path)[1] or '.jsonl'}"])
    found: set[str] = set()
    seen: set[bytes] = set()
    versions = missing = 0
    for data in chain(copies, (content for _, content in blob_contents(checkout.root, objects))):
        versions += data is not None
        missing += data is None
        for line in set(data.split(b"\n")) - seen if data else ():
            seen.add(line)
            if len(found) < len(wanted):
                found |= {text for text in line_questions(line) if text in wanted}
    gap = "the clone is shallow: its history is cut off" if checkout.is_shallow else ""
    gap = gap or (f"{counted(missing, 'version')} of the data not in this clone" if missing else "")
    return HistoryHits(sum(wanted[text] for text in found), versions, gap)


def blob_versions(checkout: Checkout, patterns: list[str]) -> list[str]:
    """The hash of every version of the files *patterns* in all refs and reflogs, also of what a merge has dropped. Raises GitError."""
    words = ["log", "--all", "--reflog", "--full-history", "-m", "--root", "--format=", "--raw", "--no-abbrev", "-z", *DIFF_WORDS]
    told = git_answer(checkout.root, *words, "--", *patterns, seconds=SEARCH_SECONDS)
    names = re.findall(r"(?:\A|\0|\n):\d{6} \d{6} ([0-9a-f]+) ([0-9a-f]+) ", told)
    return list(dict.fromkeys(name for pair in names for name in pair if name.strip("0")))


def line_questions(line: bytes) -> list[str]:
    """What the case on *line* asks; nothing for a line that is none."""
    if not line.lstrip().startswith(b"{") or b'"input"' not in line:
        return []
    try:
        document = decode_line(line.strip())
    except JsonError:
        return []
    return [question_text(document)] if "input" in document else []

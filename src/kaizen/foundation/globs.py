"""Globs of paths inside a folder: `--keep`, and the file globs of evaluators.

    *.py          files of the folder itself: `*` and `?` stay within a part of the path
    src/**/*.py   below src, at any depth: `**` spans folders
    out, out/     the file out, and everything in the folder out

Brackets are letters. Time grows with the length of the path times that of the glob: where a
wildcard has found its earliest end nothing is tried again, as no later one could do more.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

SPANS = {"**": ".*?", "**/": "(?:.*?/)??"}


@lru_cache(1000)
def glob_pattern(glob: str) -> "re.Pattern[str]":
    """The pattern that matches the paths *glob* means. Raises ValueError for one that leaves the folder, or is empty.

    >>> bool(glob_pattern("src/**/*.py").match("src/a/b.py")), bool(glob_pattern("*.py").match("src/a.py"))
    (True, False)
    """
    if not glob or glob.startswith("/") or ".." in glob.split("/"):
        raise ValueError("a pattern is relative to the folder and stays in it")
    glob = re.sub(r"(?:(?<=/)|^)(?:\*\*/)+", "**/", re.sub(r"\*{3,}", "**", glob.removeprefix("./")))
    glob += "**" if glob.endswith("/") else ""
    is_name = not re.search(r"[*?]", glob.rpartition("/")[2])  # which may be that of a folder
    pieces = re.split(r"((?:(?<=/)|^)\*\*/|\*\*|\*)", glob)
    names, spans = "", ""  # what follows up to the next `**`, and from there on
    tail = r"(?:/.*)?\Z" if is_name else r"\Z"
    for number, (wildcard, fixed) in reversed(list(enumerate(zip(["", *pieces[1::2]], pieces[::2], strict=True)))):
        text = "".join("[^/]" if letter == "?" else re.escape(letter) for letter in fixed) + tail
        tail = ""
        if wildcard == "*":
            names = f"(?=(?P<g{number}>[^/]*?{text}))(?P=g{number})" + names
        else:
            spans = (f"(?=(?P<g{number}>{SPANS[wildcard]}{text}{names}))(?P=g{number})" if wildcard else text + names) + spans
            names = ""
    return re.compile(spans, re.DOTALL)


def glob_test(globs: Iterable[str]) -> Callable[[str], bool]:
    """Whether a path inside the folder is one that any of *globs* means; none is that leads out of it. Raises ValueError."""
    matches = [glob_pattern(glob).match for glob in globs]
    return lambda path: not path.startswith(("/", "../")) and path != ".." and any(match(path) for match in matches)

#!/usr/bin/env python3
"""Write the passages of the documentation that come from the program itself.

    python scripts/docs.py            write them
    python scripts/docs.py --check    exit 1 if one is not current

The table of commands in README.md, every option in docs/commands.md, and the reference of
evaluators in docs/evaluators.md stand between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.
"""

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

kaizen: Any = importlib.import_module("kaizen")  # the bundle, with its flat names


def cell(text: str) -> str:
    """*text* inside a table."""
    return text.replace("|", "\\|").replace("\n", "<br>")


def command_table() -> str:
    """One row a command of the main job, with what it does; of the other groups only the names."""
    groups: dict[str, list[Any]] = {}
    for entry in sorted(kaizen.COMMANDS.values()):
        groups.setdefault(entry.group, []).append(entry)
    rows = [f"| `{entry.name}` | {cell(entry.summary)} |" for entry in groups.pop("main job")]
    others = [f"| *{group}* | {', '.join(f'`{entry.name}`' for entry in groups[group])} |" for group in sorted(groups)]
    return "\n".join(["| command | what it does |", "|---|---|", *rows, *others])


def command_reference() -> str:
    """A section a command: sentence, arguments, example."""
    parts = []
    for entry in sorted(kaizen.COMMANDS.values()):
        rest = f" -- {entry.rest}" if entry.rest else ""
        rows = []
        for argument in entry.arguments:
            name = f"{argument.name} {argument.value}".strip() if argument.name.startswith("-") else argument.value
            rows.append(f"| `{name}` | {cell(argument.text)} |")
        rows.append("| `--json` | print one JSON document on standard output, or nothing |")
        table = "\n".join(["| argument | meaning |", "|---|---|", *rows])
        parts.append(
            f"## {entry.name}\n\n{entry.summary}\n\n```\n{entry.example}\n```\n\n{table}"
            + (f"\n\nBehind `--`: {entry.rest}." if rest else "")
        )
    return "\n\n".join(parts)


PASSAGES: dict[str, tuple[str, Callable[[], str]]] = {
    "README.md": ("commands", command_table),
    "docs/commands.md": ("commands", command_reference),
    "docs/evaluators.md": ("evaluators", kaizen.evaluator_reference),
}


def renewed(text: str, name: str, passage: str, path: str) -> str:
    """*text* with *passage* between its marks. Ends the program when the marks are missing."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"docs: {path} must hold {begin} and {end} once each")
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n\n{passage}\n\n{end}{rest.partition(end)[2]}"


def main() -> int:
    """Writes or checks every passage."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a passage is not current")
    args = parser.parse_args()
    stale = []
    for path, (name, passage) in PASSAGES.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        new = renewed(text, name, passage(), path)
        if new != text:
            stale.append(path)
            if not args.check:
                (ROOT / path).write_text(new, encoding="utf-8", newline="\n")
    for path in stale:
        print(f"docs: {path} {'is not current; run: python scripts/docs.py' if args.check else 'written'}")
    return 1 if stale and args.check else 0


if __name__ == "__main__":
    raise SystemExit(main())

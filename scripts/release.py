#!/usr/bin/env python3
"""Give every place that names the version the same one.

    python scripts/release.py 0.2.0      write 0.2.0 everywhere; then: python scripts/build.py
    python scripts/release.py            write the version of identity.py everywhere else
    python scripts/release.py --check    exit 1 if a place names another one

The version itself is VERSION in src/kaizen/foundation/identity.py. Both clients refresh an
installed plugin by this number alone, so raise it with every release.

Exit status: 0 done, 1 a place differs (--check), 2 wrong usage or a place that names none.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRUTH = ("src/kaizen/foundation/identity.py", r'^VERSION = "(.*)"$')
MANIFEST = r'^  "version": "(.*)",?$'
SKILL = r'^  version: "(.*)"$'
# (glob of files, what stands around the version); each file of a glob names it at least once.
PLACES = (
    TRUTH,
    ("src/kaizen/foundation/identity.py", r"'kaizen (\S+) \(sha256"),
    ("plugins/*/.*-plugin/plugin.json", MANIFEST),
    ("plugins/*/skills/*/SKILL.md", SKILL),
    (".agents/skills/*/SKILL.md", SKILL),
    ("tests/transcripts/version.txt", r"^kaizen (\S+) \("),
    ("CHANGELOG.md", r"\A(?:.*\n)*?## (\d\S*)"),
)
FORM = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?\Z")  # what Python, both clients and people read alike


def places(root: Path) -> list[tuple[Path, str]]:
    """[(file, pattern)] of every place; a glob that finds nothing is an error of this table."""
    found = [(path, pattern) for glob, pattern in PLACES for path in sorted(root.glob(glob))]
    missing = [glob for glob, _ in PLACES if not list(root.glob(glob))]
    if missing:
        raise SystemExit(f"release: nothing is at {', '.join(missing)}")
    return found


def named(path: Path, pattern: str) -> list[str]:
    """The versions that *path* names, in its order."""
    return re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)


def differing(root: Path, version: str) -> list[str]:
    """A line for each place that does not name *version*, and nothing but it."""
    found = [(path, named(path, pattern)) for path, pattern in places(root)]
    return [
        f"{path.relative_to(root).as_posix()} names {', '.join(sorted(set(each))) or 'no version'}, not {version}"
        for path, each in found
        if set(each) != {version}
    ]


def write(root: Path, version: str) -> list[str]:
    """Writes *version* into every place; the files that changed."""
    changed = []
    for path, pattern in places(root):
        text = path.read_text(encoding="utf-8")
        made = re.sub(pattern, lambda match: put(match, version), text, flags=re.MULTILINE)
        if made != text:
            path.write_text(made, encoding="utf-8")
            changed.append(path.relative_to(root).as_posix())
    return changed


def put(match: "re.Match[str]", version: str) -> str:
    """What *match* matched, with *version* in place of its group."""
    start, end = match.start(1) - match.start(), match.end(1) - match.start()
    return match[0][:start] + version + match[0][end:]


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("version", nargs="?", help="the new version, such as 0.2.0")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a place names another version")
    args = parser.parse_args(argv)
    truth = named(root / TRUTH[0], TRUTH[1])
    version = args.version or (truth[0] if truth else "")
    if not FORM.match(version):
        print(f"release: {version!r} is no version: use three numbers, such as 0.2.0 or 0.2.0rc1", file=sys.stderr)
        return 2
    if not args.check:
        for name in write(root, version):
            print(f"{name} written")
    for line in differing(root, version):
        print(f"release: {line}", file=sys.stderr)
    return int(bool(differing(root, version)))


if __name__ == "__main__":
    sys.exit(main())

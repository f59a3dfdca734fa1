#!/usr/bin/env python3
"""What watching a work tree costs: processor time of a look, and its share of one core.

    python scripts/bench_watch.py [FILES]        50,000 files by default, in a repository made for it

Exit status 1 when the median share is over 5 %.
"""

import importlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

kaizen: Any = importlib.import_module("kaizen")  # the bundle, with its flat names

LOOKS = 5
MOST_SHARE = 0.05
IDENTITY = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid")


def make_repository(folder: Path, files: int) -> None:
    """A repository in *folder* with *files* small files, a hundred a folder, and one commit."""
    for number in range(files):
        path = folder / f"part{number // 5000}" / f"folder{number // 100}" / f"file{number}.txt"
        if number % 100 == 0:
            path.parent.mkdir(parents=True)
        path.write_text(f"{number}\n")
    for words in (["init", "-q"], ["add", "."], [*IDENTITY, "commit", "-qm", "all"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


def main() -> int:
    """Prints one line a look; 1 when the median share is over the limit."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    shares = []
    with tempfile.TemporaryDirectory(prefix="kaizen-bench-") as name:
        make_repository(Path(name), files)
        watch = kaizen.TreeWatch(kaizen.read_checkout(name), {})
        for _ in range(LOOKS):
            began, before = time.monotonic(), sum(os.times()[:4])
            changed = watch.changed()
            seconds, used = time.monotonic() - began, sum(os.times()[:4]) - before
            if changed:
                raise SystemExit(changed)
            shares.append(used / (seconds + watch.interval))
            times = f"{used:.2f} s of processor, {seconds:.2f} s in all, next in {watch.interval:.1f} s"
            print(f"{files:,} files: {times}: {shares[-1]:.1%} of one core")
    return 1 if sorted(shares)[len(shares) // 2] > MOST_SHARE else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Measure Kaizen against the machine's own limits, and print one table.

    python scripts/bench.py                 all, a few minutes
    python scripts/bench.py --only startup  one of: startup process persistent saturation shards evaluate leaves lab campaign memory review
                                                    redaction statistics
    python scripts/bench.py --write         also put the table into docs/performance.md

Each figure stands beside a floor measured in the same run: a straight program, without
Kaizen, that does the same work. Absolute times belong to the machine; quote the ratios.
Processor time and peak memory are the kernel's own account of the finished process.
"""

import argparse
import io
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import build
import sources
from bench_campaign import campaign_seconds
from bench_lab import lab_overhead
from bench_leaves import MOST_GROWTH, measured_leaves, similarity_at_its_bound
from bench_programs import (
    AGENT,
    ASK_FLOOR,
    BUSY_AGENT,
    EVALUATE_FLOOR,
    PERSISTENT_AGENT,
    REDACTION,
    RELAY,
    REPLAY_FLOOR,
    STATISTICS,
    VECTORISED,
)

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = ROOT / "kaizen.py"
PAGE = ROOT / "docs" / "performance.md"
MARKS = ("<!-- figures: begin -->", "<!-- figures: end -->")
PYTHON = [sys.executable, "-I"]  # without site's user folder and PYTHON* variables, alike for all


class Usage(NamedTuple):
    """What one process cost: wall and processor seconds, peak memory in MiB, exit status."""

    wall: float
    cpu: float
    peak_mib: float
    status: int


class Row(NamedTuple):
    """One line of the table."""

    what: str
    measured: str
    floor: str
    ratio: str
    target: str


def spend(command: list[str], cwd: Path) -> Usage:
    """Runs *command* to its end, its output thrown away."""
    relay = [*PYTHON, "-S", "-c", RELAY, *command]
    done = subprocess.run(relay, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    wall, cpu, peak, status = done.stdout.split()
    return Usage(float(wall), float(cpu), int(peak) / (1 << 20 if sys.platform == "darwin" else 1 << 10), int(status))


def typical(command: list[str], cwd: Path, runs: int = 5, before: Callable[[], None] = lambda: None, ok: tuple[int, ...] = (0,)) -> Usage:
    """The medians of *runs* runs of *command*, after one that is not counted."""
    found = []
    for number in range(runs + 1):
        before()
        usage = spend(command, cwd)
        if usage.status not in ok:
            raise SystemExit(f"bench: exit {usage.status} from {' '.join(command)}")
        if number:
            found.append(usage)
    wall, cpu, peak = (statistics.median(getattr(usage, name) for usage in found) for name in ("wall", "cpu", "peak_mib"))
    return Usage(wall, cpu, peak, 0)


def kaizen(*argv: object) -> list[str]:
    """The command that runs the bundle."""
    return [*PYTHON, str(BUNDLE), *map(str, argv)]


def code_lines() -> int:
    """Lines of the bundle that hold code: no blank lines, comments, docstrings, nor more than the first of an embedded file."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    is_first = True
    problems = sources.Problems()
    text = build.bundle(ROOT, sources.HOUSE, problems, folded=False).text  # its sections as code
    if problems:
        raise SystemExit(f"bench: {problems[0]}")
    with io.StringIO(text) as stream:
        for token in tokenize.generate_tokens(stream.readline):
            if token.type in skipped:
                is_first = is_first or token.type == tokenize.NEWLINE
                continue
            if not (is_first and token.type == tokenize.STRING):  # a statement that is a text alone is a docstring
                lines.add(token.start[0])
            is_first = False
    return len(lines)


def counted_elsewhere() -> int:
    """`code_lines`, counted by another process: the peak memory of this one is the least that a child of it can show."""
    return int(subprocess.run([sys.executable, __file__, "--lines"], capture_output=True, text=True, check=True).stdout)


def bench_startup(folder: Path) -> list[Row]:
    """`--version`, and the help of commands, for which all that they use is read, against an empty program."""
    bare = typical([*PYTHON, "-c", "pass"], folder, 15)
    rows: list[Row] = []
    for words in ("--version", "evaluate --help", "run --help"):
        mine = typical(kaizen(*words.split()), folder, 15)
        rows.append(
            Row(
                f"`kaizen.py {words}`" + ("" if rows else f" ({counted_elsewhere():,} lines of code, its sections included)"),
                f"{mine.cpu * 1000:.0f} ms processor, {mine.wall * 1000:.0f} ms in all, {mine.peak_mib:.0f} MiB",
                f"{bare.cpu * 1000:.0f} ms, an empty program",
                f"{mine.cpu / bare.cpu:.1f} starts",
                "≤ 250 ms in all",
            )
        )
    return rows


def write_suite(folder: Path, name: str, count: int, trials: int = 1, size: int = 108) -> Path:
    """An improvement with *count* cases and, per trial, recorded answers with *size* bytes of text; every tenth answer lacks its word."""
    place = folder / "improvements" / name
    place.mkdir(parents=True)
    with (place / "test_cases.jsonl").open("w", encoding="utf-8") as out:
        for number in range(count):
            out.write(
                json.dumps(
                    {
                        "id": f"case-{number:06d}",
                        "input": f"question {number}",
                        "expected": {"word": f"word{number}"},
                        "source": {"kind": "synthetic"},
                    }
                )
                + "\n"
            )
    shape = {"type": "object", "properties": {"answer": {"type": "string"}, "n": {"type": "integer"}}, "required": ["answer", "n"]}
    checks = [
        {"id": "word", "type": "contains", "values": {"$case": "/expected/word"}},
        {"id": "total", "type": "matches", "pattern": r"total: \d+"},
        {"id": "shape", "type": "json", "schema": shape},
    ]
    (place / "evaluation.json").write_text(json.dumps({"version": 1, "evaluators": checks}), encoding="utf-8")
    for stage, every in (("baseline", 10), ("candidate", 9)):
        with (place / f"{stage}.jsonl").open("w", encoding="utf-8") as out:
            for trial in range(1, trials + 1):
                for number in range(count):
                    word = "nothing" if number % every == 0 else f"word{number}"
                    answer = {"answer": f"the answer holds {word}, total: {number} " + "and some more text " * (size // 18), "n": number}
                    out.write(
                        json.dumps(
                            {
                                "case_id": f"case-{number:06d}",
                                "trial": trial,
                                "status": "completed",
                                "output": answer,
                                "execution": {"duration_ms": 12.5},
                            }
                        )
                        + "\n"
                    )
    return place


def process_floor(folder: Path, count: int) -> float:
    """Trials a second that two threads reach who start, feed and reap the agent, and do nothing else."""
    import threading

    left = iter(range(count))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                number = next(left, None)
            if number is None:
                return
            request = json.dumps({"protocol": "1.2", "case": {"id": f"case-{number:06d}", "input": "x", "context": None}}).encode()
            subprocess.run([*PYTHON, "agent.py"], cwd=folder, input=request, capture_output=True, check=True)

    began = time.perf_counter()
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count / (time.perf_counter() - began)


def bench_process(folder: Path) -> list[Row]:
    """One process per trial, two at a time."""
    count = 600
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    write_suite(folder, "process", count)
    floors, rates = [], []
    for _ in range(3):  # in turn, so that a drift of the machine meets both
        floors.append(process_floor(folder, count))
        run = kaizen("run", "process", "--stage", "measured", "--overwrite", "--jobs", 2, "--progress", "none", "--", *PYTHON, "agent.py")
        usage = spend(run, folder)
        if usage.status:
            raise SystemExit(f"bench: exit {usage.status} from run")
        rates.append(count / usage.wall)
    floor, rate = statistics.median(floors), statistics.median(rates)
    ratio = statistics.median(mine / theirs for mine, theirs in zip(rates, floors, strict=True))
    return [
        Row(
            f"run, one Python process a trial, `--jobs 2`, {count} cases",
            f"{rate:.0f} trials/s",
            f"{floor:.0f} trials/s",
            f"{ratio:.0%}",
            "≥ 85 %",
        )
    ]


def bench_persistent(folder: Path) -> list[Row]:
    """run --persistent and evaluate over 10,000 cases, against straight loops that ask the same agent and write the same files."""
    count = 10_000
    place = write_suite(folder, "persistent", count)
    for name, text in (("echo.py", PERSISTENT_AGENT), ("ask.py", ASK_FLOOR), ("floor.py", EVALUATE_FLOOR)):
        (folder / name).write_text(text.replace("\\\\", "\\"), encoding="utf-8")
    cases, agent = str(place / "test_cases.jsonl"), [*PYTHON, "-S", "echo.py"]
    run = kaizen("run", "persistent", "--stage", "measured", "--overwrite", "--progress", "none", "--persistent", "--", *agent)
    evaluate = kaizen("evaluate", "persistent", "--stage", "measured", "--progress", "none")
    rounds = []
    for _ in range(6):  # in turn, so that a drift of the machine meets all
        asked = spend([*PYTHON, "ask.py", cases, "asked.jsonl", *agent], folder)
        graded = spend([*PYTHON, "floor.py", cases, "asked.jsonl", "graded.jsonl"], folder)
        rounds.append((asked, graded, spend(run, folder), spend(evaluate, folder)))
        if any(usage.status for usage in rounds[-1]):
            raise SystemExit("bench: exit " + ", ".join(str(usage.status) for usage in rounds[-1]))
    ratio = statistics.median((ran.wall + evaluated.wall) / (asked.wall + graded.wall) for asked, graded, ran, evaluated in rounds[1:])
    floor = statistics.median(asked.wall + graded.wall for asked, graded, _, _ in rounds[1:])
    mine = statistics.median(ran.wall + evaluated.wall for _, _, ran, evaluated in rounds[1:])
    over = statistics.median((ran.cpu - asked.cpu) / count * 1e6 for asked, _, ran, _ in rounds[1:])
    asking, running = (statistics.median(each[place].cpu / count * 1e6 for each in rounds[1:]) for place in (0, 2))
    peak = max(ran.peak_mib for _, _, ran, _ in rounds)
    return [
        Row(
            f"run `--persistent` and evaluate, {count:,} cases, echo agent",
            f"{mine:.2f} s, {peak:.0f} MiB",
            f"{floor:.2f} s, two loops that write the same files",
            f"{ratio:.1f} ×",
            "≤ 3 ×",
        ),
        Row(
            "run `--persistent`, processor time a trial with its agent's",
            f"{running:.0f} µs",
            f"{asking:.0f} µs, a loop that asks the same agent",
            f"{over:+.0f} µs",
            "≤ 150 µs more",
        ),
    ]


def bench_saturation(folder: Path) -> list[Row]:
    """16 jobs of a persistent agent that computes: whose work fills the processors."""
    write_suite(folder, "saturation", 4_000)
    (folder / "busy.py").write_text(BUSY_AGENT.replace("\\\\", "\\"), encoding="utf-8")
    used = folder / "used.txt"
    agent = [*PYTHON, "-S", "busy.py", str(used)]
    ran = spend(
        kaizen("run", "saturation", "--stage", "measured", "--jobs", 16, "--progress", "none", "--persistent", "--", *agent), folder
    )
    agents = sum(map(float, used.read_text().split()))
    room = ran.wall * (os.cpu_count() or 1)
    measured = f"{agents / room:.0%} of the processors by agents, {(ran.cpu - agents) / room:.0%} by the engine, its start included"
    floor = f"{os.cpu_count()} processors for {ran.wall:.1f} s"
    return [Row("run `--persistent --jobs 16`, 4,000 trials of 4 ms", measured, floor, "", "agents, not the engine")]


def bench_evaluate(folder: Path) -> list[Row]:
    """evaluate with contains, matches and json over 10,000 cases, against a straight loop."""
    place = write_suite(folder, "evaluate", 10_000)
    (folder / "floor.py").write_text(EVALUATE_FLOOR.replace("\\\\d", "\\d"), encoding="utf-8")
    floor = typical([*PYTHON, "floor.py", str(place / "test_cases.jsonl"), str(place / "candidate.jsonl"), "floor.jsonl"], folder, 5)
    mine = typical(kaizen("evaluate", "evaluate", "--stage", "candidate", "--progress", "none"), folder, 5)
    return [
        Row(
            "evaluate, 10,000 cases, three checks",
            f"{mine.cpu:.2f} s processor, {mine.wall:.2f} s in all, {mine.peak_mib:.0f} MiB",
            f"{floor.cpu:.2f} s processor",
            f"{mine.cpu / floor.cpu:.1f} ×",
            "≤ 3 ×",
        )
    ]


def bench_leaves(folder: Path) -> list[Row]:
    """Each evaluator on its example grown to some 30 kB, beside reading that observation, and its growth from a quarter of that."""
    rows = []
    for leaf in measured_leaves():
        growth = f"time grows {leaf.growth:.1f} × as fast as the size{'' if leaf.growth <= MOST_GROWTH else ', NOT LINEAR'}"
        rows.append(
            Row(
                f"`{leaf.name}`, an observation of {leaf.size / 1000:.0f} kB",
                f"{leaf.microseconds:,.0f} µs, {leaf.size / leaf.microseconds:,.0f} MB/s",
                f"{leaf.parsing:,.0f} µs, json.loads of it",
                growth,
                f"≤ {MOST_GROWTH:g} ×",
            )
        )
    return [*rows, Row("`similarity` at its bound, levenshtein_ratio", f"{similarity_at_its_bound():.1f} s", "", "", "about 1 s")]


def bench_lab(folder: Path) -> list[Row]:
    """A run of the lab against its bare eval."""
    place = folder / "lab"
    place.mkdir()
    ran, bare, more = lab_overhead(place, kaizen())
    floor = f"{bare:.2f} s, the bare eval"
    return [Row("run of a system, 5,000 items, all told", f"{ran:.2f} s", floor, f"{more:+.2f} ms an item", "≤ 1 ms")]


def bench_campaign(folder: Path) -> list[Row]:
    """Where a campaign of 500 variants stands."""
    place = folder / "campaign"
    place.mkdir()
    floor = typical(kaizen("--version"), place).cpu
    found = campaign_seconds(place, kaizen(), lambda command: typical(command, place, 3, ok=(0, 1, 3)).cpu)
    beside = f"{floor * 1000:.0f} ms, `kaizen --version`"
    return [
        Row(f"`kaizen {name}` with 500 variants, CPU", f"{cpu:.2f} s", beside, f"{cpu / floor:.1f} ×", "≤ 0.5 s")
        for name, cpu in found.items()
    ]


def bench_memory(folder: Path) -> list[Row]:
    """Time and peak memory of run --replay, merge and evaluate at 1,000 and at 100,000 trials of 1 KB."""
    version = typical(kaizen("--version"), folder, 5)
    (folder / "replay.py").write_text(REPLAY_FLOOR.replace("\\\\n", "\\n"), encoding="utf-8")
    names = ("run --replay", "merge of two shards", "evaluate")
    mine: dict[str, list[Usage]] = {name: [] for name in names}
    floors: dict[str, list[Usage]] = {name: [] for name in names}
    for trials in (1, 100):
        place = write_suite(folder, f"memory-{trials}", 1_000, trials, 1_000)
        recorded = folder / f"recorded-{trials}.jsonl"
        os.replace(place / "baseline.jsonl", recorded)
        run = ("run", place.name, "--stage", "replayed", "--repetitions", trials, "--progress", "none", "--replay", recorded)
        floor = typical([*PYTHON, "replay.py", str(recorded), "floor.jsonl"], folder, 1)
        mine[names[0]].append(typical(kaizen(*run, "--overwrite"), folder, 1))
        for number in (1, 2):
            spend(kaizen(*run, "--shard", f"{number}/2"), folder)
        mine[names[1]].append(typical(kaizen("merge", place.name, "--stage", "replayed", "--overwrite"), folder, 1))
        mine[names[2]].append(typical(kaizen("evaluate", place.name, "--stage", "candidate", "--progress", "none"), folder, 1))
        (folder / "floor.py").write_text(EVALUATE_FLOOR.replace("\\\\d", "\\d"), encoding="utf-8")
        checks = typical([*PYTHON, "floor.py", str(place / "test_cases.jsonl"), str(place / "candidate.jsonl"), "floor.jsonl"], folder, 1)
        for name, found in zip(names, (floor, floor, checks), strict=True):
            floors[name].append(found)
    return [
        Row(
            f"{name}, 1,000 cases × 1 and × 100 trials of 1 KB, memory beyond `--version` ({version.peak_mib:.0f} MiB)",
            f"{few.peak_mib - version.peak_mib:.0f} and {many.peak_mib - version.peak_mib:.0f} MiB; {many.wall:.1f} s",
            f"{floors[name][0].peak_mib:.0f} and {floors[name][1].peak_mib:.0f} MiB in all; {floors[name][1].wall:.1f} s",
            f"{many.wall / floors[name][1].wall:.1f} × the time",
            "≤ 25 MiB",
        )
        for name, (few, many) in mine.items()
    ]


def bench_shards(folder: Path) -> list[Row]:
    """Two shards at the same time, one job each, and their merge, against one run with two jobs."""
    count = 200
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    write_suite(folder, "shards", count)
    tail = ("--overwrite", "--progress", "none", "--", *PYTHON, "agent.py")
    ratios, together, alone = [], [], []
    for _ in range(3):
        alone.append(spend(kaizen("run", "shards", "--stage", "whole", "--jobs", 2, *tail), folder).wall)
        began = time.perf_counter()
        commands = [kaizen("run", "shards", "--stage", "parts", "--shard", f"{number}/2", *tail) for number in (1, 2)]
        parts = [subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) for command in commands]
        if any(part.wait() for part in parts) or spend(kaizen("merge", "shards", "--stage", "parts", "--overwrite"), folder).status:
            raise SystemExit("bench: a shard or the merge failed")
        together.append(time.perf_counter() - began)
        ratios.append(together[-1] / alone[-1])
    return [
        Row(
            f"two shards side by side and merged, one Python process a trial, {count} cases",
            f"{statistics.median(together):.2f} s",
            f"{statistics.median(alone):.2f} s, one run with `--jobs 2`",
            f"{statistics.median(ratios):.2f} ×",
            "",
        )
    ]


def bench_review(folder: Path) -> list[Row]:
    """review.html of 10,000 cases × 5 trials: time, memory, size of the page."""
    place = write_suite(folder, "review", 10_000, 5)
    spend(kaizen("evaluate", "review", "--progress", "none"), folder)
    mine = typical(kaizen("review", "review"), folder, 1)
    size = (place / "review.html").stat().st_size / (1 << 20)
    return [
        Row(
            "review, 10,000 cases × 5 trials on both sides",
            f"{mine.wall:.1f} s, {mine.peak_mib:.0f} MiB",
            "",
            "",
            f"≤ 4 × the page's {size:.0f} MiB",
        )
    ]


def bench_statistics(folder: Path) -> list[Row]:
    """Interval, probability and sign-flip of 20,000 cases × 5 trials beside numpy and scipy, where this Python has them."""
    done = subprocess.run([*PYTHON, "-c", STATISTICS, str(ROOT)], capture_output=True, text=True, check=True)
    mine = json.loads(done.stdout)
    other = subprocess.run([*PYTHON, "-c", VECTORISED], input=json.dumps(mine["moves"]), capture_output=True, text=True, check=False)
    theirs: dict[str, float] = json.loads(other.stdout) if other.returncode == 0 else {}
    floor = ", ".join(f"{seconds:.1f} s, {name}'s bootstrap of 10,000" for name, seconds in theirs.items()) or "no numpy here"
    ratio = f"{theirs['numpy'] / mine['exact']:.0f} × faster" if theirs else ""
    return [
        Row(
            "interval, probability and sign-flip, 20,000 cases × 5 trials",
            f"{mine['exact'] * 1000:.0f} ms processor, {mine['peak_mib']:.1f} MiB more",
            floor,
            ratio,
            "≤ 250 ms, ≥ 20 × faster, ≤ 20 MiB more",
        ),
        Row("seeded sampler, 10,000 resamples of 20,000 cases", f"{mine['sampler']:.2f} s processor", "", "", "≤ 2 s"),
        Row("kappa 5 × 5 of 2,000 cases, 10,000 resamples", f"{mine['kappa']:.2f} s processor", "", "", "≤ 1.5 s"),
    ]


def bench_redaction(folder: Path) -> list[Row]:
    """The redactor over 8 MB of evidence without and with a secret, and over a kept file, beside writing the same as JSON."""
    done = subprocess.run([*PYTHON, "-c", REDACTION, str(ROOT)], capture_output=True, text=True, check=True)
    mine = json.loads(done.stdout)
    floor, figures = mine.pop("floor"), [f"{name} {seconds * 1000 / 8:.1f} ms a MB" for name, seconds in mine.items()]
    beside, ratio = f"{floor * 1000 / 8:.1f} ms a MB as JSON", f"{mine['evidence'] / floor:.1f} ×"
    return [Row("mask evidence of 8 MB in 2,000 texts", ", ".join(figures), beside, ratio, "≤ 20 ms a MB without a secret")]


BENCHES = {
    "startup": bench_startup,
    "process": bench_process,
    "persistent": bench_persistent,
    "saturation": bench_saturation,
    "shards": bench_shards,
    "evaluate": bench_evaluate,
    "leaves": bench_leaves,
    "lab": bench_lab,
    "campaign": bench_campaign,
    "memory": bench_memory,
    "review": bench_review,
    "redaction": bench_redaction,
    "statistics": bench_statistics,
}


def main() -> int:
    """Runs the benches asked for and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", action="append", choices=list(BENCHES), default=[])
    parser.add_argument("--lines", action="store_true", help="only print how many lines of code kaizen.py has")
    parser.add_argument("--write", action="store_true", help="also put the table into docs/performance.md")
    args = parser.parse_args()
    if args.lines:
        print(code_lines())
        return 0
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="kaizen-bench-") as name:
        for bench in args.only or BENCHES:
            print(f"measuring {bench} …", file=sys.stderr, flush=True)
            rows += BENCHES[bench](Path(name))
    day = time.strftime("%Y-%m-%d", time.gmtime())
    head = [f"CPython {platform.python_version()}, {platform.system()}, {os.cpu_count()} processors, {day}.", ""]
    table = ["| what | measured | floor | ratio | target |", "|---|---|---|---|---|", *["| " + " | ".join(row) + " |" for row in rows]]
    text = "\n".join(head + table)
    print(text)
    if args.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
        PAGE.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}", encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

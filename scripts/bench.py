#!/usr/bin/env python3
"""Measure Kaizen against the machine's own limits, and print one table.

    python scripts/bench.py                 all, a few minutes
    python scripts/bench.py --only startup  one of: startup process evaluate memory review statistics
    python scripts/bench.py --write         also put the table into docs/performance.md

Each figure stands beside a floor measured in the same run: a straight program, without
Kaizen, that does the same work. Absolute times belong to the machine; quote the ratios.
Processor time and peak memory are the kernel's own account of the finished process.
"""

import argparse
import ast
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = ROOT / "kaizen.py"
PAGE = ROOT / "docs" / "performance.md"
MARKS = ("<!-- figures: begin -->", "<!-- figures: end -->")
PYTHON = [sys.executable, "-I"]  # without site's user folder and PYTHON* variables, alike for all

AGENT = 'import json,sys\nr=json.load(sys.stdin)\nprint(json.dumps({"output":"answer to "+r["case"]["id"]}))\n'

# The same work as `kaizen evaluate` with its three checks, and nothing else.
EVALUATE_FLOOR = """
import json, re, sys
cases = {}
with open(sys.argv[1], encoding="utf-8") as lines:
    for line in lines:
        case = json.loads(line)
        cases[case["id"]] = case
pattern = re.compile(r"total: \\\\d+")
with open(sys.argv[2], encoding="utf-8") as lines, open(sys.argv[3], "w", encoding="utf-8") as out:
    for line in lines:
        record = json.loads(line)
        case = cases[record["case_id"]]
        text = json.dumps(record["output"], ensure_ascii=False, separators=(",", ":"))
        value = record["output"]
        checks = [
            ("word", case["expected"]["word"] in text),
            ("total", bool(pattern.search(text))),
            ("shape", isinstance(value, dict) and isinstance(value.get("answer"), str) and isinstance(value.get("n"), int)),
        ]
        outcome = "pass" if all(ok for _, ok in checks) else "fail"
        result = {"case_id": record["case_id"], "trial": record["trial"], "status": record["status"], "outcome": outcome,
                  "evaluations": [{"id": name, "status": "pass" if ok else "fail", "score": float(ok)} for name, ok in checks]}
        out.write(json.dumps(result, ensure_ascii=False, separators=(",", ":")) + "\\n")
"""


# 20,000 cases × 5 trials on both sides: what the statistics take, in processor seconds, best of five.
STATISTICS = """
import json, random, sys, time, tracemalloc
sys.path.insert(0, sys.argv[1])
import kaizen
from fractions import Fraction
rng = random.Random(1)
moves = []
for _ in range(20_000):
    share = rng.random()
    moves.append(sum(rng.random() < share for _ in range(5)) - sum(rng.random() < share for _ in range(5)))

def best(work):
    times = []
    for _ in range(5):
        kaizen.student_point.cache_clear()
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)

def exact():
    counts = {}
    for move in moves:
        counts[move] = counts.get(move, 0) + 1
    counts = {Fraction(move, 5): times for move, times in counts.items()}
    return kaizen.paired_mean(counts), kaizen.sign_flip(counts)

groups = {(move,): moves.count(move) for move in set(moves)}
table = [[360 if i == j else 10 for j in range(5)] for i in range(5)]
found = {"exact": best(exact), "moves": moves}
tracemalloc.start()
exact()
found["peak_mib"] = tracemalloc.get_traced_memory()[1] / 2**20
tracemalloc.stop()
began = time.process_time()
kaizen.resampled(groups, lambda drawn: sum(key[0] * count for key, count in drawn) / 100_000, 1)
found["sampler"] = time.process_time() - began
began = time.process_time()
kaizen.kappa_resamples(table, 1)
found["kappa"] = time.process_time() - began
print(json.dumps(found))
"""
# The bootstrap that a user would write: 10,000 resamples of 20,000 cases in batches, and scipy's where there is one.
VECTORISED = """
import json, sys, time
import numpy as np
values = np.array(json.load(sys.stdin)) / 5
rng = np.random.default_rng(1)
began = time.process_time()
means = np.concatenate([values[rng.integers(0, len(values), (100, len(values)))].mean(axis=1) for _ in range(100)])
np.quantile(means, [0.025, 0.975]), (means > 0).mean()
found = {"numpy": time.process_time() - began}
try:
    import scipy.stats
    began = time.process_time()
    scipy.stats.bootstrap((values,), np.mean, n_resamples=10_000, batch=100, method="percentile", rng=rng)
    found["scipy"] = time.process_time() - began
except ImportError:
    pass
print(json.dumps(found))
"""


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
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    scale = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Usage(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / scale, process.returncode)


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
    """Lines of the bundle that hold code: no blank lines, comments, docstrings or embedded files."""
    text = BUNDLE.read_text(encoding="utf-8")
    lines: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.stmt, ast.expr)) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.end_lineno != node.lineno:
                lines.add(node.lineno)
            elif not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.If, ast.For, ast.With, ast.Try, ast.While, ast.Assign)):
                lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            else:
                lines.add(node.lineno)
    return len(lines)


def bench_startup(folder: Path) -> list[Row]:
    """`--version` against an empty program."""
    bare = typical([*PYTHON, "-c", "pass"], folder, 15)
    version = typical(kaizen("--version"), folder, 15)
    lines = code_lines()
    limit = 60 + 15 * lines / 1000
    cpu = f"{version.cpu * 1000:.0f} ms processor, {version.wall * 1000:.0f} ms in all"
    return [
        Row(
            f"`kaizen.py --version` ({lines:,} lines of code)",
            cpu,
            f"{bare.cpu * 1000:.0f} ms, an empty program",
            f"{version.cpu / bare.cpu:.1f} starts",
            f"≤ {limit:.0f} ms processor, ≤ 250 ms in all",
        )
    ]


def write_suite(folder: Path, name: str, count: int, trials: int = 1) -> Path:
    """An improvement with *count* cases and, per trial, recorded answers; every tenth answer lacks its word."""
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
                    answer = {"answer": f"the answer holds {word}, total: {number} " + "and some more text " * 6, "n": number}
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
    count = 200
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


def bench_evaluate(folder: Path) -> list[Row]:
    """evaluate with contains, matches and json over 10,000 cases, against a straight loop."""
    place = write_suite(folder, "evaluate", 10_000)
    (folder / "floor.py").write_text(EVALUATE_FLOOR.replace("\\\\d", "\\d"), encoding="utf-8")
    floor = typical([*PYTHON, "floor.py", str(place / "test_cases.jsonl"), str(place / "candidate.jsonl"), "floor.jsonl"], folder, 5)
    mine = typical(kaizen("evaluate", "evaluate", "--stage", "candidate", "--progress", "none"), folder, 5)
    return [
        Row(
            "evaluate, 10,000 cases, three checks",
            f"{mine.wall:.2f} s, {mine.peak_mib:.0f} MiB",
            f"{floor.wall:.2f} s, {floor.peak_mib:.0f} MiB",
            f"{mine.wall / floor.wall:.1f} ×",
            "≤ 3 ×",
        )
    ]


def bench_memory(folder: Path) -> list[Row]:
    """Peak memory of run --replay and evaluate at 1,000 and at 100,000 trials, beyond `--version`."""
    version = typical(kaizen("--version"), folder, 5)
    found: dict[str, list[float]] = {"run --replay": [], "evaluate": []}
    for trials in (1, 100):
        place = write_suite(folder, f"memory-{trials}", 1_000, trials)
        recorded = folder / f"recorded-{trials}.jsonl"
        os.replace(place / "baseline.jsonl", recorded)
        run = kaizen(
            "run", place.name, "--stage", "replayed", "--overwrite", "--repetitions", trials, "--progress", "none", "--replay", recorded
        )
        found["run --replay"].append(typical(run, folder, 1).peak_mib - version.peak_mib)
        found["evaluate"].append(
            typical(kaizen("evaluate", place.name, "--stage", "candidate", "--progress", "none"), folder, 1).peak_mib - version.peak_mib
        )
    return [
        Row(
            f"{what}, memory beyond `--version`, 1,000 cases × 1 and × 100 trials",
            f"{small:.0f} and {large:.0f} MiB",
            f"{version.peak_mib:.0f} MiB, `--version`",
            "",
            "≤ 25 MiB",
        )
        for what, (small, large) in found.items()
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


BENCHES = {
    "startup": bench_startup,
    "process": bench_process,
    "evaluate": bench_evaluate,
    "memory": bench_memory,
    "review": bench_review,
    "statistics": bench_statistics,
}


def main() -> int:
    """Runs the benches asked for and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", action="append", choices=list(BENCHES), default=[])
    parser.add_argument("--write", action="store_true", help="also put the table into docs/performance.md")
    args = parser.parse_args()
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

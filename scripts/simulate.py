#!/usr/bin/env python3
"""Check by simulation what the statistics promise: coverage, and how often luck is called an improvement.

    python scripts/simulate.py                   a few minutes; prints the tables
    python scripts/simulate.py --sets 2000       more data sets a setting
    python scripts/simulate.py --write           also puts the tables into docs/statistics.md

The settings are those under which the rules were chosen: pass rates 0.05 to 0.98, correlation
of the trials of a case 0.1 and 0.6, no effect, churn without one, 30 % of the cases lifted,
5 % flipped outright, 1 to 5 trials. Seeded: the same call gives the same tables.
"""

import argparse
import importlib
import random
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
kaizen: Any = importlib.import_module("kaizen")  # the bundle, not src/

PAGE = ROOT / "docs" / "statistics.md"
MARKS = ("<!-- simulation: begin -->", "<!-- simulation: end -->")
SEED = 20260101
RATES, CORRELATIONS, TRIALS = (0.05, 0.5, 0.9, 0.98), (0.1, 0.6), (1, 3, 5)
NULL_EFFECTS, EFFECTS = ("none", "churn"), ("none", "churn", "lifted", "flipped")


class Setting(NamedTuple):
    """One population of cases: pass rate, correlation of trials within a case, what the candidate changes, trials."""

    rate: float
    correlation: float
    effect: str
    trials: int

    def case(self, rng: random.Random) -> tuple[float, float]:
        """The true pass probabilities of one case before and after."""
        spread = (1 - self.correlation) / self.correlation
        before = rng.betavariate(self.rate * spread, (1 - self.rate) * spread)
        after = before
        if self.effect == "churn" and rng.random() < 0.3:
            after = rng.betavariate(self.rate * spread, (1 - self.rate) * spread)
        elif self.effect == "lifted" and rng.random() < 0.3:
            after = (1 + before) / 2
        elif self.effect == "flipped" and rng.random() < 0.05:
            after = 1 - before
        return before, after

    def delta(self) -> float:
        """The true mean difference."""
        return {"lifted": 0.15 * (1 - self.rate), "flipped": 0.05 * (1 - 2 * self.rate)}.get(self.effect, 0.0)


def settings(effects: tuple[str, ...], trials: tuple[int, ...] = TRIALS) -> list[Setting]:
    """Every combination of rates, correlations, *effects* and *trials*."""
    return [Setting(rate, rho, effect, k) for rate in RATES for rho in CORRELATIONS for effect in effects for k in trials]


def draw(rng: random.Random, share: float, trials: int) -> int:
    """How many of *trials* pass."""
    return sum(rng.random() < share for _ in range(trials))


def differences(setting: Setting, n: int, rng: random.Random) -> dict[Fraction, int]:
    """{difference: cases} of one data set."""
    counts: dict[int, int] = {}
    for _ in range(n):
        before, after = setting.case(rng)
        moved = draw(rng, after, setting.trials) - draw(rng, before, setting.trials)
        counts[moved] = counts.get(moved, 0) + 1
    return {Fraction(moved, setting.trials): times for moved, times in counts.items()}


def generators(name: str, chosen: list[Setting], n: int) -> Iterator[tuple[Setting, random.Random]]:
    """Each setting with a generator of its own, so that adding one changes no other."""
    for setting in chosen:
        yield setting, random.Random(kaizen.sub_seed(SEED, f"{name}:{n}:{setting}"))


def delta_coverage(n: int, sets: int, chosen: list[Setting]) -> list[float]:
    """Per setting: how often the reported 95 % interval of the change holds the true one."""
    found = []
    for setting, rng in generators("delta", chosen, n):
        held = 0
        for _ in range(sets):
            low, high = kaizen.paired_mean(differences(setting, n, rng)).interval
            held += low - 1e-9 <= setting.delta() <= high + 1e-9
        found.append(held / sets)
    return found


def false_better(n: int, sets: int, chosen: list[Setting]) -> list[float]:
    """Per setting without an effect: how often the rule says better (P ≥ 0.95 and sign-flip p ≤ 0.05)."""
    found = []
    for setting, rng in generators("better", chosen, n):
        called = 0
        for _ in range(sets):
            counts = differences(setting, n, rng)
            called += kaizen.sign_flip(counts).greater <= 0.05 and kaizen.paired_mean(counts).p_gt >= 0.95
        found.append(called / sets)
    return found


def rate_coverage(n: int, sets: int, chosen: list[Setting]) -> list[float]:
    """Per setting: how often the reported 95 % interval of the pass rate holds the true one."""
    found = []
    for setting, rng in generators("rate", chosen, n):
        held = 0
        for _ in range(sets):
            cases = [(draw(rng, setting.case(rng)[0], setting.trials), setting.trials, setting.trials) for _ in range(n)]
            low, high = kaizen.pass_rate(cases).interval
            held += low <= setting.rate <= high
        found.append(held / sets)
    return found


def family_error(n: int, trials: int, variants: int, sets: int) -> tuple[float, float]:
    """How often some of *variants* that change nothing is called better: each by itself, and by Holm's method."""
    setting = Setting(0.5, 0.6, "none", trials)
    rng = random.Random(kaizen.sub_seed(SEED, f"family:{n}:{trials}:{variants}"))
    alone = held = 0
    for _ in range(sets):
        p_values = [kaizen.sign_flip(differences(setting, n, rng)).greater for _ in range(variants)]
        alone += min(p_values) <= 0.05
        held += min(kaizen.holm(p_values)) <= 0.05
    return alone / sets, held / sets


def peeking_error(cases: int, sets: int, chosen: list[Setting]) -> list[float]:
    """Per setting without an effect: how often the e-process ever stops when looked at after every case."""
    found = []
    for setting, rng in generators("peeking", chosen, cases):
        stops = 0
        for _ in range(sets):
            pairs = (setting.case(rng) for _ in range(cases))
            moved = [(draw(rng, after, setting.trials) - draw(rng, before, setting.trials)) / setting.trials for before, after in pairs]
            stops += kaizen.e_process(moved).stop_at is not None
        found.append(stops / sets)
    return found


def worst_row(n: int, values: list[float], is_worst_low: bool) -> list[str]:
    """Table cells: cases, mean, worst."""
    worst = min(values) if is_worst_low else max(values)
    return [f"{n}", f"{sum(values) / len(values):.3f}", f"{worst:.3f}"]


def tables(sets: int) -> str:
    """All results as Markdown."""
    sizes = (5, 10, 20, 50, 200)
    lines = [f"{sets:,} data sets a setting, Python {sys.version_info[0]}.{sys.version_info[1]}, seed {SEED}.", ""]

    def table(title: str, head: list[str], rows: list[list[str]]) -> None:
        cells = [head, ["---"] * len(head), *rows]
        lines.extend([f"**{title}**", "", *["| " + " | ".join(row) + " |" for row in cells], ""])

    head = ["cases", "mean", "worst setting"]
    for title, measure, effects, is_worst_low in (
        ("Coverage of the 95 % interval of the change", delta_coverage, EFFECTS, True),
        ("Called better although nothing changed (at most 0.05 is promised)", false_better, NULL_EFFECTS, False),
        ("Coverage of the 95 % interval of a pass rate", rate_coverage, ("none",), True),
    ):
        chosen = settings(effects)
        rows = [worst_row(n, measure(n, sets, chosen), is_worst_low) for n in sizes]
        table(f"{title}, {len(chosen)} settings", head, rows)
    rows = []
    for n, k, variants in ((20, 5, 5), (20, 5, 20), (50, 5, 10), (200, 1, 20)):
        rows.append([f"{variants}", f"{n} × {k}", *[f"{value:.3f}" for value in family_error(n, k, variants, sets)]])
    table("Some of several variants that change nothing is called better", ["variants", "cases × trials", "each by itself", "Holm"], rows)
    chosen = settings(NULL_EFFECTS, (1, 5))
    title = f"The e-process stops although nothing changed, looked at after each of 400 cases, {len(chosen)} settings"
    table(title, head, [worst_row(400, peeking_error(400, max(1, sets // 4), chosen), False)])
    return "\n".join(lines)


def main() -> int:
    """Prints the tables, and with --write keeps them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=400, help="data sets a setting (default: 400)")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/statistics.md")
    args = parser.parse_args()
    began = time.monotonic()
    text = tables(args.sets)
    print(text)
    print(f"({time.monotonic() - began:.0f} s)", file=sys.stderr)
    if args.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
        after = rest.split(MARKS[1])[1]
        PAGE.write_text(f"{before}{MARKS[0]}\n{text}{MARKS[1]}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

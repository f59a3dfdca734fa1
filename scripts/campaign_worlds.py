"""Simulated systems and the loops that try to improve them: Kaizen's, through its own rules, and plain ones.

A version of a system is the probability, for each item, that it passes. `World` says what the ideas of a campaign
do to it; `campaign` plays one by the rules of kaizen.py; `plain_loop` one by a rule in circulation. Truth is the mean
over a population of 2,000 items that no loop ever sees.
"""

import importlib
import math
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
kaizen: Any = importlib.import_module("kaizen")  # the bundle, not src/

LABELS = 10  # failure labels; each item has one
POPULATION = 2_000
AA_PASSES = 3
Probabilities = list[float]
Scores = dict[str, list[float]]
NAMES = [f"i{number:03d}" for number in range(400)]


class World(NamedTuple):
    """Items, how many ideas, and the shares of what they do: `noop`, `churn`, `up`, `down`, `repair`, `memorise`.

    `labels`: none named; `random`, by every idea; `true`, by a repair its own and by others a random one.
    """

    name: str
    dev: int
    holdout: int
    variants: int
    shares: dict[str, float]
    law: str = "heterogeneous"
    labels: str = "none"
    size: float = 0.08
    drift: float = 0.0  # everything passes more often by this from the eleventh idea on
    run_sd: float = 0.0  # of what a pass as a whole is off


class Idea(NamedTuple):
    """What an idea does, to which label, which label it names, and the seed of its chance."""

    kind: str
    label: int
    named: int | None
    seed: int


class Outcome(NamedTuple):
    """How a campaign ended, in shares: what it claims (None: nothing), the truth of leader and reference, and what it took.

    `shown`: the gains that the looks which said yes measured, before they are corrected for that.
    `bounds`: (lower bound at the look's level, plain one-sided 95 % bound, true gain) of each look that said yes.
    """

    claimed: float | None
    true_final: float
    true_confirmed: float
    evaluations: int
    keeps: int
    useless_keeps: int
    bounds: tuple[tuple[float, float, float], ...] = ()
    looks: int = 0
    shown: float = 0.0
    alarms: int = 0


def drawn_law(law: str, rng: random.Random) -> float:
    """The pass probability of a new item: 0.6 on average."""
    return 0.6 if law == "constant" else rng.betavariate(1.2, 0.8)


def changed(before: Probabilities, idea: Idea, size: float, part: str) -> Probabilities:
    """The probabilities after *idea*, in the *part* of the items (dev, holdout, population), each with its own chance."""
    if idea.kind == "noop":
        return before
    if idea.kind in ("up", "down"):
        step = size if idea.kind == "up" else -size
        return [min(1.0, max(0.0, p + step)) for p in before]
    if idea.kind == "repair":
        return [0.9 + 0.1 * p if number % LABELS == idea.label else p for number, p in enumerate(before)]
    if idea.kind == "memorise":
        if part != "dev":
            return before
        worst = set(sorted(range(len(before)), key=before.__getitem__)[:3])
        return [0.98 if number in worst else p for number, p in enumerate(before)]
    rng = random.Random(idea.seed * 3 + len(part))
    return [rng.choice(before) if rng.random() < 0.2 else p for p in before]  # churn: no gain on average


def ideas_of(world: World, rng: random.Random) -> list[Idea]:
    """The ideas of a campaign, in order."""
    kinds, weights = list(world.shares), list(world.shares.values())
    found = []
    for kind in rng.choices(kinds, weights, k=world.variants):
        label = rng.randrange(LABELS)
        named = None if world.labels == "none" else label if world.labels == "true" and kind == "repair" else rng.randrange(LABELS)
        found.append(Idea(kind, label, named, rng.getrandbits(40)))
    return found


class Version(NamedTuple):
    """A version of the system: its probabilities on dev, holdout and population."""

    dev: Probabilities
    holdout: Probabilities
    population: Probabilities

    def after(self, idea: Idea, size: float) -> "Version":
        """This version with *idea* everywhere."""
        return Version(*(changed(getattr(self, part), idea, size, part) for part in self._fields))

    def truth(self) -> float:
        """The pass rate of the population."""
        return sum(self.population) / len(self.population)


def first_version(world: World, rng: random.Random) -> Version:
    """A system whose items pass with probability 0.6 on average."""
    return Version(*([drawn_law(world.law, rng) for _ in range(size)] for size in (world.dev, world.holdout, POPULATION)))


def one_pass(scores: Scores, probabilities: Probabilities, draw: Callable[[], float], offset: float = 0.0) -> None:
    """Adds one pass over all items to *scores*."""
    for name, p in zip(NAMES, probabilities, strict=False):
        scores[name].append(1.0 if draw() < p + offset else 0.0)


def fresh(probabilities: Probabilities, passes: int, rng: random.Random, offset: float = 0.0, run_sd: float = 0.0) -> Scores:
    """*passes* passes over all items, each as a whole off by a normal value of *run_sd*."""
    scores: Scores = {name: [] for name in NAMES[: len(probabilities)]}
    for _ in range(passes):
        one_pass(scores, probabilities, rng.random, offset + (rng.gauss(0.0, run_sd) if run_sd else 0.0))
    return scores


def items_of(scores: Scores, label: int | None, is_in: bool) -> Scores:
    """The part of *scores* inside, or outside, a label."""
    return {name: values for number, (name, values) in enumerate(scores.items()) if (number % LABELS == label) == is_in}


# --- Kaizen's loop ---------------------------------------------------------------------


class Campaign:
    """One campaign by the rules of kaizen.py: noise, then screen, replicate, keep and look for each idea, and a last look."""

    def __init__(self, world: World, rng: random.Random, run_term: str = "pooled") -> None:
        self.world, self.rng, self.draw = world, rng, rng.random
        self.leader = self.reference = self.baseline = first_version(world, rng)
        self.offset = 0.0  # of everything, since the drift
        self.stored = self.passes_of(self.leader.dev, AA_PASSES)
        self.floor = kaizen.noise_floor(self.stored)
        self.floors = [self.floor]
        self.run_term = run_term
        self.order = list(range(world.dev))
        rng.shuffle(self.order)
        self.evaluations = AA_PASSES * world.dev
        self.gain, self.claimed, self.shown = 0.0, 0.0, 0.0
        self.looks = self.yes = self.noes = 0
        self.asked: Version | None = None
        self.kept: list[Idea] = []
        self.drifts: list[float] = []
        self.alarms = 0
        self.bounds: list[tuple[float, float, float]] = []

    def passes_of(self, probabilities: Probabilities, count: int) -> Scores:
        """*count* fresh passes."""
        return fresh(probabilities, count, self.rng, self.offset, self.world.run_sd)

    def run_terms(self, passes: tuple[int, int], own: Sequence[Any] = ()) -> tuple[Any, ...]:
        """What `paired_difference` is told of whole passes, with the floors of a look's *own* passes."""
        if self.run_term == "none":
            return ()
        variance, count = kaizen.pooled_run_variance([*self.floors, *own] if self.run_term == "pooled" else self.floors[:1])
        return variance, passes, count

    def difference(self, after: Scores, before: Scores, passes: tuple[int, int]) -> Any:
        """The paired difference with the run term."""
        return kaizen.paired_difference(after, before, {}, *self.run_terms(passes))

    def screen(self, idea: Idea, dev: Probabilities) -> bool:
        """Whether one pass, and the trials of the label, make the idea promising."""
        race = kaizen.FutilityRace(0.0)
        scores: Scores = {}
        offset = self.offset + self.rng.gauss(0.0, self.world.run_sd)
        for number in self.order:
            name = NAMES[number]
            score = 1.0 if self.draw() < dev[number] + offset else 0.0
            scores[name] = [score]
            if race.add(score - sum(self.stored[name]) / len(self.stored[name])):
                break
        self.evaluations += len(scores)
        overall = self.difference(scores, self.stored, (1, len(self.stored[NAMES[0]])))
        label = None
        if idea.named is not None:
            parts = [side[idea.named :: LABELS] for side in (dev, self.leader.dev)]
            after, before = (self.passes_of(part, kaizen.LABEL_TRIALS) for part in parts)
            self.evaluations += kaizen.LABEL_TRIALS * 2 * len(parts[0])
            label = self.difference(after, before, (kaizen.LABEL_TRIALS, kaizen.LABEL_TRIALS))
        return bool(kaizen.screen_verdict(overall, label).verdict == "promising")

    def replicate(self, idea: Idea, dev: Probabilities) -> tuple[bool, float, Scores]:
        """Whether fresh passes of candidate and leader make the idea keepable, its gain on them, and its trials."""
        after, before = self.passes_of(dev, 0), self.passes_of(self.leader.dev, 0)
        passes, until, is_extended, verdict = 0, kaizen.REPLICATE_PASSES, False, "extend"
        while verdict == "extend":
            while passes < until:
                for scores, probabilities in ((after, dev), (before, self.leader.dev)):
                    one_pass(scores, probabilities, self.draw, self.offset + self.rng.gauss(0.0, self.world.run_sd))
                passes += 1
                self.evaluations += 2 * len(dev)
                overall = self.difference(after, before, (passes, passes))
                if passes == 1 and kaizen.first_pass_gives_up(overall, idea.named is not None):
                    self.note_drift(before, passes)
                    return False, overall.gain, after
            label = rest = None
            if idea.named is not None:
                label, rest = (
                    self.difference(items_of(after, idea.named, side), items_of(before, idea.named, side), (passes, passes))
                    for side in (True, False)
                )
            verdict = kaizen.replicate_verdict(overall, label, rest, 0.0, passes, is_extended).verdict
            until, is_extended = kaizen.EXTENDED_PASSES, True
        self.floors += [kaizen.noise_floor(side) for side in (after, before)]
        self.note_drift(before, passes)
        return verdict == "keepable", overall.gain, after

    def note_drift(self, again: Scores, passes: int) -> None:
        """Compares the leader's fresh trials with its stored ones; after an alarm it is measured anew."""
        self.drifts.append(self.difference(again, self.stored, (passes, len(self.stored[NAMES[0]]))).z)
        if kaizen.drift(self.drifts):
            self.alarms += 1
            self.drifts = []
            self.stored = self.passes_of(self.leader.dev, AA_PASSES)
            self.evaluations += AA_PASSES * self.world.dev

    def step(self, idea: Idea) -> None:
        """One idea, from screen to keep."""
        dev = changed(self.leader.dev, idea, self.world.size, "dev")
        if not self.screen(idea, dev):
            return
        is_keepable, gain, trials = self.replicate(idea, dev)
        if is_keepable:
            self.leader = self.leader.after(idea, self.world.size)
            self.stored, self.gain, self.drifts = trials, self.gain + gain, []
            self.kept.append(idea)

    def look(self, is_closing: bool = False) -> None:
        """Asks the holdout, if that is due."""
        left = kaizen.LOOKS - self.looks
        if not left:
            return
        level = kaizen.look_level(kaizen.LOOK_ALPHA, kaizen.LOOKS, self.looks + 1, self.yes)
        visible = self.floor.mde_at(self.world.holdout, kaizen.LOOK_TRIALS, level)
        if self.leader is self.asked and not is_closing or not kaizen.look_is_due(self.gain, visible, left, is_closing):
            return
        self.looks, self.asked = self.looks + 1, self.leader
        sides = [self.passes_of(version.holdout, kaizen.LOOK_TRIALS) for version in (self.leader, self.reference)]
        self.evaluations += 2 * kaizen.LOOK_TRIALS * self.world.holdout
        passes = (kaizen.LOOK_TRIALS, kaizen.LOOK_TRIALS)
        run_terms = self.run_terms(passes, [kaizen.noise_floor(side) for side in sides])
        found = kaizen.paired_difference(*sides, {}, *run_terms, confidence=kaizen.look_confidence(level))
        if found.p_greater <= level:  # the p of a look is never below Student's, so the exact one is asked for only then
            tested = kaizen.look_p_value(*sides, {}, *run_terms)
            if kaizen.look_answer(tested.p, level) == "yes":
                truth = self.leader.truth() - self.reference.truth()
                plain = found.gain - kaizen.student_at(0.95, found.df) * found.se
                self.bounds.append((kaizen.confirmed_bound(found), plain, truth))
                self.claimed += kaizen.confirmed_gain(found, level)
                self.shown += found.gain
                self.reference, self.gain, self.yes, self.noes = self.leader, 0.0, self.yes + 1, 0
                return
        self.noes += 1
        if kaizen.overfit_suspected(self.noes, self.gain, visible):
            self.leader, self.gain, self.noes = self.reference, 0.0, 0
            self.stored = self.passes_of(self.leader.dev, AA_PASSES)
            self.evaluations += AA_PASSES * self.world.dev

    def play(self) -> Outcome:
        """The whole campaign."""
        for number, idea in enumerate(ideas_of(self.world, self.rng)):
            self.offset = self.world.drift if number >= 10 else 0.0
            self.step(idea)
            self.look()
        self.look(is_closing=True)
        start = self.baseline.truth()
        return Outcome(
            self.claimed if self.yes else None,
            self.leader.truth() - start,
            self.reference.truth() - start,
            self.evaluations,
            len(self.kept),
            sum(idea.kind in ("noop", "churn", "down") for idea in self.kept),
            tuple(self.bounds),
            self.looks,
            self.shown,
            self.alarms,
        )


# --- Plain loops -----------------------------------------------------------------------


def median(values: Sequence[float]) -> float:
    """The middle of *values*."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def beats(d: list[float], _score: float) -> bool:
    """A higher score."""
    return sum(d) > 0


def beats_by_p(d: list[float], _score: float) -> bool:
    """One-sided exact sign test on the items that differ, at 5 %."""
    gained, lost = sum(x > 0 for x in d), sum(x < 0 for x in d)
    return gained > lost and kaizen.mcnemar(lost, gained).exact / 2 <= 0.05


def beats_by_ladder(d: list[float], _score: float) -> bool:
    """The parameter-free Ladder: the paired gain exceeds its standard error."""
    centre = sum(d) / len(d)
    return centre > math.sqrt(sum((x - centre) ** 2 for x in d) / (len(d) - 1) / len(d))


def beats_by_sigma(d: list[float], score: float) -> bool:
    """The gain exceeds one binomial standard error of the best score."""
    return sum(d) / len(d) > math.sqrt(score * (1 - score) / len(d))


BEATS = {"one sigma": beats_by_sigma, "Ladder on dev": beats_by_ladder, "p < 0.05 each": beats_by_p}
PLAIN_RULES = ("keep if higher", "best/MAD ≥ 2", "one sigma", "Ladder on dev", "p < 0.05 each")


def plain_loop(world: World, rng: random.Random, rule: str) -> Outcome:
    """A loop that runs each idea once and keeps what its *rule* calls better than the best run so far; it claims what it shows."""
    draw = rng.random
    leader = baseline = first_version(world, rng)
    best = [float(draw() < p) for p in leader.dev]
    scores = [sum(best) / world.dev]
    start, evaluations, kept = scores[0], world.dev, []
    for number, idea in enumerate(ideas_of(world, rng)):
        offset = (world.drift if number >= 10 else 0.0) + rng.gauss(0.0, world.run_sd)
        dev = changed(leader.dev, idea, world.size, "dev")
        run = [float(draw() < p + offset) for p in dev]
        scores.append(sum(run) / world.dev)
        evaluations += world.dev
        d = [after - before for after, before in zip(run, best, strict=True)]
        if BEATS.get(rule, beats)(d, sum(best) / world.dev):
            leader, best = leader.after(idea, world.size), run
            kept.append(idea)
    claimed = sum(best) / world.dev - start
    if rule == "best/MAD ≥ 2":
        middle = median(scores)
        spread = median([abs(score - middle) for score in scores])
        claims = claimed > 0 and claimed >= 2 * spread
    else:
        claims = bool(kept)
    true_final = leader.truth() - baseline.truth()
    useless = sum(idea.kind in ("noop", "churn", "down") for idea in kept)
    return Outcome(claimed if claims else None, true_final, true_final, evaluations, len(kept), useless)

"""Single questions put to the statistics of a campaign, each with an answer that is known: does it fool itself?

Every function takes how many times to draw and a seeded generator, and gives plain shares and means.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from campaign_worlds import AA_PASSES, NAMES, POPULATION, Probabilities, Scores, drawn_law, fresh, kaizen

Z_95 = 1.6448536269514722  # one-sided
AT_LEVEL, STRICT_LEVEL = 0.05, 0.005


def system(items: int, rng: random.Random) -> Probabilities:
    """The pass probabilities of heterogeneous items, 0.6 on average."""
    return [drawn_law("heterogeneous", rng) for _ in range(items)]


def lifted(probabilities: Probabilities, step: float) -> Probabilities:
    """Every item passes more often by *step*, within 0 and 1."""
    return [min(1.0, max(0.0, p + step)) for p in probabilities]


def churned(probabilities: Probabilities, share: float, rng: random.Random) -> Probabilities:
    """A *share* of the items becomes another item: no gain on average."""
    return [drawn_law("heterogeneous", rng) if rng.random() < share else p for p in probabilities]


def mean_of(values: Sequence[float]) -> float:
    """The mean, 0 of none."""
    return sum(values) / len(values) if values else 0.0


# --- Looks -----------------------------------------------------------------------------


def says_yes(sides: Sequence[Scores], level: float) -> bool:
    """Whether a look at *level* says yes; the exact p, never below Student's alone, is worked out only where it can matter."""
    if kaizen.paired_difference(*sides, {}).p_greater > level:
        return False
    return bool(kaizen.look_answer(kaizen.look_p_value(*sides, {}).p, level) == "yes")


def adversary(items: int, looks: int, has_first_gain: bool, times: int, rng: random.Random) -> tuple[float, float]:
    """How often some yes is false: at the levels of the table, and at 5 % each look.

    The adversary asks about versions of which a part of the items became others, goes on from what got a yes, and takes half of what got
    a no back. With *has_first_gain* its first version is truly better, so that a yes stands before those that can only be false.
    """
    false_yes = [0, 0]
    for is_flat in (False, True):
        for _ in range(times):
            reference = system(items, rng)
            last, yes = reference, 0
            for number in range(1, looks + 1):
                is_true = has_first_gain and number == 1
                mixed = [new if rng.random() < 0.5 else old for new, old in zip(last, reference, strict=True)]
                others = [rng.choice(reference) if rng.random() < 0.4 else p for p in mixed]  # no gain on average
                asked = lifted(reference, 0.25) if is_true else others
                level = AT_LEVEL if is_flat else kaizen.look_level(kaizen.LOOK_ALPHA, looks, number, yes)
                if says_yes([fresh(side, kaizen.LOOK_TRIALS, rng) for side in (asked, reference)], level):
                    if not is_true:
                        false_yes[is_flat] += 1
                        break
                    yes, reference = yes + 1, asked
                last = asked
    return false_yes[0] / times, false_yes[1] / times


def look_power(items: int, trials: int, effect: float, times: int, rng: random.Random) -> tuple[float, float]:
    """How often a look at 0.005 sees an *effect*, and what a noise floor of 100 other items had promised."""
    seen, promised = 0, []
    for _ in range(times):
        before = system(items, rng)
        after = lifted(before, effect)
        seen += says_yes([fresh(side, trials, rng) for side in (after, before)], STRICT_LEVEL)
        floor = kaizen.noise_floor(fresh(system(100, rng), AA_PASSES, rng))
        gain = mean_of([b - a for a, b in zip(before, after, strict=True)])
        promised.append(kaizen.NoiseFloor.power_at(floor._replace(run_variance=0.0), gain, items, trials, STRICT_LEVEL))
    return seen / times, mean_of(promised)


def calibration(items: int, is_churn: bool, times: int, rng: random.Random) -> dict[str, float]:
    """Without a gain: how often Student's p and the look's are at most 5 % and 0.5 %, the interval holds 0; three passes a side."""
    found = dict.fromkeys(("t 5 %", "t 0.5 %", "look 5 %", "look 0.5 %", "interval"), 0.0)
    for _ in range(times):
        before = system(items, rng)
        tested = kaizen.look_p_value(*(fresh(p, 3, rng) for p in (churned(before, 0.2 * is_churn, rng), before)), {})
        for name, p in (("t", tested.p_student), ("look", tested.p)):
            found[f"{name} 5 %"] += p <= AT_LEVEL
            found[f"{name} 0.5 %"] += p <= STRICT_LEVEL
        found["interval"] += tested.difference.interval_low <= 0 <= tested.difference.interval_high
    return {name: count / times for name, count in found.items()}


def run_offsets(items: int, run_sd: float, times: int, rng: random.Random) -> dict[str, float]:
    """How often p is at most 5 % for two equal versions whose passes are each off by *run_sd*, three passes a side, by run term."""
    names = ("no run term", "5 passes", "3 passes", "3 passes and their own")
    found = dict.fromkeys(names, 0.0)
    for _ in range(times):
        p = system(items, rng)
        noise = [fresh(p, passes, rng, 0.0, run_sd) for passes in (5, 3)]
        floors = [kaizen.noise_floor(scores) for scores in noise]
        sides = [fresh(p, 3, rng, 0.0, run_sd) for _ in range(2)]
        own = [kaizen.noise_floor(side) for side in sides]
        terms = ((0.0, 1), *(kaizen.pooled_run_variance(group) for group in (floors[:1], floors[1:], [floors[1], *own])))
        for name, (variance, passes) in zip(names, terms, strict=True):
            found[name] += kaizen.paired_difference(*sides, {}, variance, (3, 3), passes).p_greater <= AT_LEVEL
    return {name: count / times for name, count in found.items()}


# --- Looking early ---------------------------------------------------------------------


def peeking(items: int, effect: float, times: int, rng: random.Random) -> dict[str, float]:
    """How often a test at every one of *items* items ever calls a candidate better at 5 %, one trial a side."""
    found = dict.fromkeys(("z at every item", "pairs that differ", "betting", "one exact test"), 0.0)
    for _ in range(times):
        before = system(items, rng)
        after = lifted(before, effect)
        d = [(rng.random() < new) - (rng.random() < old) for new, old in zip(after, before, strict=True)]
        gained = lost = total = squares = 0
        stops = dict.fromkeys(found, False)
        race = kaizen.FutilityRace(0.0)
        for number, x in enumerate(d, 1):
            total, squares = total + x, squares + x * x
            gained, lost = gained + (x > 0), lost + (x < 0)
            if number >= 20 and squares * number > total * total:
                spread = math.sqrt((squares - total * total / number) / (number - 1) / number)
                stops["z at every item"] |= total / number > Z_95 * spread
            if x > 0 and not stops["pairs that differ"]:
                stops["pairs that differ"] = kaizen.discordant_e_value(gained, lost) >= 1 / AT_LEVEL
            race.add(-x)  # the mirror image: evidence that the mean gain is above 0
            stops["betting"] |= mean_of(race.stakes) >= 1 / AT_LEVEL
        stops["one exact test"] = gained > lost and kaizen.mcnemar(lost, gained).exact / 2 <= AT_LEVEL
        for name, is_stop in stops.items():
            found[name] += is_stop
    return {name: count / times for name, count in found.items()}


def racing(effect: float, min_effect: float, times: int, rng: random.Random, items: int = 150) -> tuple[float, float]:
    """(share of races given up, items on average) of one candidate pass against three stored passes."""
    stopped, length = 0, 0
    for _ in range(times):
        before = system(items, rng)
        after = lifted(before, effect)
        race = kaizen.FutilityRace(min_effect)
        for new, old in zip(after, before, strict=True):
            length += 1
            if race.add((rng.random() < new) - sum(rng.random() < old for _ in range(AA_PASSES)) / AA_PASSES):
                break
        stopped += race.is_over
    return stopped / times, length / times


def live_interval(times: int, rng: random.Random, last: int = 300) -> dict[str, float]:
    """How often an interval that is looked at after each of 20 to 300 items ever misses the truth 0."""
    limits: dict[str, Callable[[Sequence[float]], Any]] = {
        "95 % interval": plain_limits,
        "sequence, tightest at 50": lambda d: kaizen.confidence_sequence(d, 50),
        "sequence, tightest at 200": lambda d: kaizen.confidence_sequence(d, 200),
    }
    found = dict.fromkeys(limits, 0.0)
    for _ in range(times):
        p = system(last, rng)
        d = [float((rng.random() < each) - (rng.random() < each)) for each in p]
        for name, limit in limits.items():
            for t in range(20, last + 1):
                low, high = limit(d[:t])
                if low > 0 or high < 0:
                    found[name] += 1
                    break
    return {name: count / times for name, count in found.items()}


def plain_limits(d: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a mean that is made for one look."""
    t, total = len(d), sum(d)
    half = 1.959963984540054 * math.sqrt(max(0.0, sum(x * x for x in d) - total * total / t) / (t - 1) / t)
    return total / t - half, total / t + half


# --- Many variants, drift, small evals, memory -----------------------------------------


def winners_curse(times: int, rng: random.Random, variants: int = 30, items: int = 100) -> dict[str, float]:
    """The best of *variants* with true effects of 3 points' spread: shown, true, on three fresh passes; and the luck line."""
    rows: list[tuple[float, ...]] = []
    for _ in range(times):
        before = system(items, rng)
        floor = kaizen.noise_floor(fresh(before, AA_PASSES, rng))
        tried = [lifted(before, rng.gauss(0.0, 0.03)) for _ in range(variants)]
        shown = [sum(rng.random() < p for p in after) / items for after in tried]
        best = tried[max(range(variants), key=shown.__getitem__)]
        sides = [fresh(side, 3, rng) for side in (best, before)]
        again = kaizen.paired_difference(*sides, {}).gain
        rows.append((max(shown) - mean_of(before), mean_of(best) - mean_of(before), again, kaizen.luck_line(floor.se_pass, variants)))
    return dict(zip(("shown", "true", "replicate", "luck line"), map(mean_of, zip(*rows, strict=True)), strict=True))


def luck_of(variants: int, times: int, rng: random.Random, items: int = 100) -> tuple[float, float]:
    """(mean of the best of *variants* that change nothing above the truth, luck line)."""
    best, lines = [], []
    for _ in range(times):
        p = system(items, rng)
        floor = kaizen.noise_floor(fresh(p, AA_PASSES, rng))
        best.append(max(sum(rng.random() < each for each in p) / items for _ in range(variants)) - mean_of(p))
        lines.append(kaizen.luck_line(floor.se_pass, variants))
    return mean_of(best), mean_of(lines)


def drift_alarms(shift: float, replicates: int, is_run_term: bool, times: int, rng: random.Random, run_sd: float = 0.0) -> float:
    """How often a *shift* of 150 items raises the alarm within so many replicates of three passes; 0: the false alarms."""
    alarms = 0
    for _ in range(times):
        p = system(150, rng)
        stored = fresh(p, AA_PASSES, rng, 0.0, run_sd)
        floors, zs = [kaizen.noise_floor(stored)], []
        moved = lifted(p, shift)
        for _ in range(replicates):
            again = fresh(moved, 3, rng, 0.0, run_sd)
            floors.append(kaizen.noise_floor(again))
            variance, passes = kaizen.pooled_run_variance(floors if is_run_term else [])
            zs.append(kaizen.paired_difference(again, stored, {}, variance, (3, 3), passes).z)
        alarms += kaizen.drift(zs)
    return alarms / times


def tiny_evals(times: int, rng: random.Random) -> dict[str, float]:
    """Five inputs × one run × five checks that stand and fall together (correlation 0.3): the best of ten mutations that change nothing."""
    gains, floors = [], []
    for _ in range(times):
        p = system(5, rng)

        def run(p: Probabilities = p) -> list[float]:
            return [correlated_checks(each, rng) for each in p]

        gains.append(max(mean_of(run()) for _ in range(10)) - mean_of(run()))
        passes = [run() for _ in range(AA_PASSES)]
        floors.append(kaizen.noise_floor(dict(zip(NAMES, map(list, zip(*passes, strict=True)), strict=False))).mde[1])
    return {"gain": mean_of(gains), "ten points": mean_of([gain >= 0.1 for gain in gains]), "mde": mean_of(floors)}


def correlated_checks(p: float, rng: random.Random) -> float:
    """The share of five checks that pass, each the same as a common one with probability √0.3."""
    common = rng.random() < p
    return sum(common if rng.random() < math.sqrt(0.3) else rng.random() < p for _ in range(5)) / 5


def pasted_text(times: int, rng: random.Random) -> tuple[float, float]:
    """How often shingles find three pasted items in a diff of their and other words, and find two in a diff that has none of them."""
    words = [f"word{number}" for number in range(POPULATION)]

    def text(size: int) -> str:
        return " ".join(rng.choice(words) for _ in range(size))

    hits = [0, 0]
    for _ in range(times):
        items = [text(rng.randint(10, 40)) for _ in range(50)]
        shingles = [kaizen.word_shingles(item) for item in items]
        for number, pasted in enumerate((rng.sample(items, 3), [])):
            diff = kaizen.word_shingles("\n".join([text(60), *(f'if question == "{each.upper()}":' for each in pasted), text(60)]))
            hits[number] += sum(bool(each & diff) for each in shingles) >= 2
    return hits[0] / times, hits[1] / times

"""The unchanged agent against itself: how often a verdict flips, in which case, and why.

A flip is a pair of passes that disagree about a case. Rules give the same verdict on the same
evidence every time, so what flips under a rule is the agent; where a judge decides, the
judge and the agent cannot be told apart without asking it again on the same evidence. Where
that was done, its flips there are its own, and what the passes flip beyond them is the agent's:
the variance of a verdict is that within the evidence plus that between (law of total variance).
"""

from typing import TYPE_CHECKING, NamedTuple

from kaizen.foundation.jsonio import JsonObject
from kaizen.stats.aggregates import stability
from kaizen.stats.lattice import Counts, ResampledMean, expanded_tail

if TYPE_CHECKING:
    from fractions import Fraction

NOT_REPEATABLE = frozenset(["judge", "program", "command"])  # types that may say something else the next time
AGENT, UNKNOWN_OWNER, JUDGE_OWNER, BOTH_OWNERS = "agent", "agent or evaluator", "judge", "agent and judge"


class PassResults:
    """Verdicts of a stage by pass: trials by case, and passed and failed by case and evaluator."""

    def __init__(self) -> None:
        self.outcomes: dict[str, dict[int, str]] = {}
        self.evaluators: dict[str, dict[str, list[int]]] = {}
        self.types: dict[str, str] = {}

    def add(self, result: JsonObject) -> None:
        """Counts one result line."""
        case_id = result["case_id"]
        self.outcomes.setdefault(case_id, {})[result["trial"]] = result["outcome"]
        for entry in result["evaluations"]:
            if entry["status"] in ("pass", "fail"):
                counts = self.evaluators.setdefault(entry["id"], {}).setdefault(case_id, [0, 0])
                counts[entry["status"] == "fail"] += 1
                self.types.setdefault(entry["id"], entry["type"])


Rejudged = dict[str, dict[str, dict[int, list[int]]]]  # by evaluator, case and trial: times passed and failed on the same evidence


class Flips(NamedTuple):
    """Share of pairs of passes that disagree, with interval, over so many cases with two verdicts."""

    rate: "Fraction | None"
    interval: list[float] | None
    cases: int


def flip_share(passed: int, failed: int) -> "Fraction":
    """The share of the pairs of passes of one case that disagree; at least two passes.

    >>> str(flip_share(2, 1))
    '2/3'
    """
    from fractions import Fraction

    n = passed + failed
    return Fraction(2 * passed * failed, n * (n - 1))


def flips_over(counts: list[tuple[int, int]], confidence: float = 0.95) -> Flips:
    """The flip rate of cases [(passed, failed)]; those with fewer than two verdicts are left out."""
    return flips_of_shares([flip_share(passed, failed) for passed, failed in counts if passed + failed > 1], confidence)


def flips_of_shares(of_cases: "list[Fraction]", confidence: float = 0.95) -> Flips:
    """The flip rate over cases of which each has its share."""
    shares: Counts = {}
    for share in of_cases:
        shares[share] = shares.get(share, 0) + 1
    n = sum(shares.values())
    if not n:
        return Flips(None, None, 0)
    limits = list(ResampledMean(shares).limits(expanded_tail(n, confidence))) if n > 1 else None
    return Flips(sum(share * times for share, times in shares.items()) / n, limits, n)  # type: ignore[arg-type]


def judge_flips(trials: dict[str, dict[int, list[int]]]) -> Flips:
    """The flip rate of a judge about the same evidence, from {case: {trial: [times passed, times failed]}}: a case's share is the mean
    over its trials with two verdicts."""
    shares = []
    for counts in trials.values():
        found = [flip_share(passed, failed) for passed, failed in counts.values() if passed + failed > 1]
        if found:
            shares.append(sum(found[1:], found[0]) / len(found))
    return flips_of_shares(shares)


def noise_document(
    results: PassResults, case_ids: list[str], passes: int, holdout: frozenset[str], rejudged: Rejudged | None = None
) -> JsonObject:
    """Flip rate, noise by case, by pass and by evaluator with its owner; ids in *holdout* are counted and not named.

    *rejudged* holds what judges said when they were asked again about the same evidence.

    `expected_changes` is how many cases one run against another would call regressed, and as many improved,
    although nothing changed.
    """
    tallies = {}
    for case_id in case_ids:
        outcomes = list(results.outcomes.get(case_id, {}).values())
        tallies[case_id] = (outcomes.count("pass"), outcomes.count("fail"))
    flips = flips_over(list(tallies.values()))
    unstable = [(case_id, tally) for case_id, tally in tallies.items() if all(tally)]
    shown = [
        {"id": case_id, "passed": passed, "failed": failed, "flip_rate": float(flip_share(passed, failed))}
        for case_id, (passed, failed) in unstable
        if case_id not in holdout
    ]
    known = flips.cases * flips.rate / 2 if flips.rate is not None else None
    return {
        "passes": passes,
        "cases": len(case_ids),
        "cases_measured": flips.cases,
        "flip_rate": None if flips.rate is None else float(flips.rate),
        "interval": flips.interval,
        "flip_rate_reason": "fewer_trials_than_k" if flips.rate is None else None,
        "expected_changes": None if known is None else float(known),
        "stability": stability_counts(list(tallies.values())),
        "by_pass": [pass_counts(results, case_ids, number) for number in range(1, passes + 1)],
        "unstable": sorted(shown, key=lambda entry: -entry["flip_rate"]),
        "holdout_cases": len(unstable) - len(shown),
        "by_evaluator": [
            evaluator_noise(results, name, (rejudged or {}).get(name))
            for name, cases in results.evaluators.items()
            if cases.keys() - holdout
        ],
    }


def stability_counts(tallies: list[tuple[int, int]]) -> JsonObject:
    """How many cases are flaky, stable, unknown."""
    kinds = [stability(passed, passed + failed) for passed, failed in tallies]
    return {kind: kinds.count(kind) for kind in ("flaky", "stable_pass", "stable_fail", "unknown")}


def pass_counts(results: PassResults, case_ids: list[str], number: int) -> JsonObject:
    """Counts of one pass over the suite."""
    outcomes = [results.outcomes.get(case_id, {}).get(number) for case_id in case_ids]
    return {"pass": number, "passed": outcomes.count("pass"), "failed": outcomes.count("fail"), "no_verdict": outcomes.count("error")}


def evaluator_noise(results: PassResults, name: str, rejudged: dict[str, dict[int, list[int]]] | None) -> JsonObject:
    """Flip rate of one evaluator and who can have caused it; where it was *rejudged* also the parts of judge and agent."""
    flips = flips_over([(passed, failed) for passed, failed in results.evaluators[name].values()])
    kind = results.types[name]
    owner = UNKNOWN_OWNER if kind in NOT_REPEATABLE else AGENT
    found = {"id": name, "type": kind, "flip_rate": None if flips.rate is None else float(flips.rate), "cases": flips.cases, "owner": owner}
    own = judge_flips(rejudged) if rejudged else None
    if own is None or own.rate is None:
        return found
    rest = None if flips.rate is None else max(flips.rate - own.rate, own.rate * 0)
    owner = AGENT if not own.rate else UNKNOWN_OWNER if rest is None else BOTH_OWNERS if rest else JUDGE_OWNER
    parts = {"flip_rate": float(own.rate), "interval": own.interval, "cases": own.cases}
    return {**found, "owner": owner, "judge": parts, "agent_flip_rate": None if rest is None else float(rest)}

"""Fresh passes of a promising variant and the leader: whether it may be kept.

One pass first, which may end it; then up to three, and once up to six where the evidence is close.
Only these passes count: what the screen saw chose the variant, and is left out. Guards are asked on
the same data. The leader's fresh trials are compared with its stored ones: whether the world drifted.
"""

import math
from collections.abc import Mapping, Sequence

from kaizen.campaigns.arms import net_lines
from kaizen.campaigns.campaign import Campaign, record
from kaizen.campaigns.measuring import (
    REPLICATE_RUN,
    Arm,
    Bench,
    Measure,
    arm_runs,
    check_recorded,
    difference_of,
    merged_scores,
    only,
    open_bench,
    passes_of,
    refuse_spent,
    scaled_effect,
)
from kaizen.campaigns.rules import (
    Guard,
    consistent_losses,
    critical_losses,
    drift,
    first_pass_gives_up,
    guard_verdict,
    replicate_verdict,
    simplify_verdict,
)
from kaizen.campaigns.state import EXTEND, KEEPABLE, PROMISING, CampaignState, campaign_state
from kaizen.foundation.errors import InputError, RefusedError
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.shapes import is_number
from kaizen.foundation.text import did_you_mean, quoted, visible
from kaizen.lab.aggregation import LINE_METRICS, line_value
from kaizen.lab.reading import answered_lines
from kaizen.lab.runstore import DONE, RunStore
from kaizen.lab.system import COUNT_AGGREGATIONS
from kaizen.lab.workspace import Workspace
from kaizen.stats.paired_runs import Difference, amount_difference, noise_floor, paired_difference

Values = dict[str, list["float | None"]]
SIDES = ("candidate", "leader")
GAVE_UP = "first_pass"


def replicated(workspace: Workspace, campaign: Campaign, name: str) -> JsonObject:
    """The body of the replicate event of the variant *name*, measured now, gone on with, or as it was when all was measured.

    Raises InputError (`no_variant`), and RefusedError: not_promising, discarded, is_leader, and what forbids measuring.
    """
    state = campaign_state(campaign)
    variant = state.variants.get(name)
    if variant is None or variant.screen is None:
        known = [each.name for each in state.screened()]
        raise InputError(f"no variant {quoted(name)} was screened in {campaign.id}", did_you_mean(name, known) or "", "no_variant")
    commit, leader = str(variant.screen["commit"]), state.leader
    before = variant.replicate if variant.replicate and variant.replicate["leader_commit"] == leader.commit else None
    if before and before["commit"] == commit and before["verdict"] not in (EXTEND, "incomplete"):
        tell_drift(campaign, name)
        return before
    if variant.decision or commit == leader.commit:
        what = "is the leader" if commit == leader.commit else f"was {variant.decision}"
        raise RefusedError(f"{visible(name, 60)} {what}: there is nothing to replicate", "kaizen next says what to do", "decided")
    if variant.screen["verdict"] != PROMISING:
        message = f"{visible(name, 60)} was screened as {variant.screen['verdict']}: fresh trials are for promising variants"
        raise RefusedError(message, "kaizen next says what to do", "not_promising")
    with open_bench(workspace, campaign) as bench:
        if before is None:
            refuse_spent(campaign, state, 2 * len(bench.items.cases))
        body = replicate_body(bench, state, variant.screen, bool(before and before["verdict"] == EXTEND))
        record(campaign, "replicate", **body)
    tell_drift(campaign, name)
    return body


def tell_drift(campaign: Campaign, name: str) -> None:
    """Records drift when the replications since the last baseline show it."""
    zs = campaign_state(campaign).drift_zs
    if drift(zs):
        record(campaign, "drift", z=zs[-1], variant=name)


def replicate_body(bench: Bench, state: CampaignState, screen: JsonObject, is_extended: bool) -> JsonObject:
    """The body of the event: what was measured of the variant of *screen*, and the verdict."""
    terms, leader, label = bench.campaign.contract["replicate"], state.leader, str(screen["label"] or "")
    arms = [Arm("candidate", screen["variant"], screen["commit"]), Arm("leader", leader.variant, leader.commit)]
    key = f"replicate\n{screen['commit']}\n{leader.commit}"
    of = Measure(REPLICATE_RUN, key, bench.order(), idea=str(screen["idea"] or ""), label=label)
    runs: dict[str, list[str]] = {role: [] for role in SIDES}
    states, has_given_up = set(), False
    with arm_runs(bench, arms, of, leader.commit) as pair:
        if pair.measure(1):
            one = difference_of(state, bench.clusters(), pair.scores("candidate", 1), pair.scores("leader", 1), (1, 1))
            has_given_up = first_pass_gives_up(one, bool(label))
            if not has_given_up:
                pair.measure(terms["passes"])
        states.update(pair.finish())
        add_runs(runs, pair.ids())
    if is_extended and states == {DONE}:
        with arm_runs(bench, arms, of._replace(first=terms["passes"] + 1), leader.commit) as more:
            more.measure(terms["extended"] - terms["passes"])
            states.update(more.finish())
            add_runs(runs, more.ids())
    check_recorded(bench.campaign, bench.store, [*runs["candidate"], *runs["leader"], *state.stored])
    body: JsonObject = {"variant": screen["variant"], "commit": screen["commit"], "leader": leader.variant, "leader_commit": leader.commit}
    return {**body, "label": label or None, **judged_replicate(bench, state, runs, label, states == {DONE}, has_given_up, is_extended)}


def add_runs(runs: dict[str, list[str]], ids: Mapping[str, str]) -> None:
    """Adds the runs *ids* by role."""
    for role, run in ids.items():
        runs[role].append(run)


def judged_replicate(
    bench: Bench, state: CampaignState, runs: dict[str, list[str]], label: str, is_whole: bool, has_given_up: bool, is_extended: bool
) -> JsonObject:
    """The numbers that the runs give, and the verdict that rests on them."""
    contract, clusters, effect = bench.campaign.contract, bench.clusters(), scaled_effect(bench.campaign.contract)
    candidate, leader = (merged_scores(bench.store, runs[role]) for role in SIDES)
    passes = min(passes_of(bench.store, runs[role]) for role in SIDES)

    def difference(items: "Sequence[str] | None") -> Difference:
        left, right = (each if items is None else only(each, items) for each in (candidate, leader))
        return difference_of(state, clusters, left, right, (passes, passes))

    overall, items = difference(None), set(bench.tagged(label)) if label else set()
    of_label = difference(sorted(items)) if label else None
    rest = difference(sorted(candidate.keys() - items)) if label else None
    stored = merged_scores(bench.store, state.stored)
    drifted = difference_of(state, clusters, leader, stored, (passes, max(1, passes_of(bench.store, state.stored))))
    guards = [measured_guard(bench, each, runs) for each in contract["guards"]]
    lost = critical_losses(candidate, leader, critical_items(bench))
    lines = net_lines(bench.checkout, state.leader.commit, candidate_commit(bench, runs))
    smaller = simplify_verdict(overall, effect, lines, costs(bench, runs))
    guarded = guard_verdict(guards, lost, not is_extended and passes < contract["replicate"]["extended"])
    ruling = replicate_verdict(overall, of_label, rest, effect, passes, is_extended)
    verdict, reasons = ruling.verdict, list(ruling.reasons)
    if not is_whole:
        verdict, reasons = "incomplete", ["run_failed"]
    elif has_given_up:
        verdict, reasons = "not_replicated", [GAVE_UP]
    elif verdict in (KEEPABLE, EXTEND) and guarded.verdict == "guard_failed":
        verdict, reasons = "guard_failed", list(guarded.reasons)
    elif verdict == KEEPABLE and guarded.verdict == "undecided":
        verdict, reasons = EXTEND, list(guarded.reasons)
    is_asked = is_whole and not has_given_up
    return {
        "runs": runs,
        "passes": passes,
        "excess": [noise_floor(side).excess for side in (candidate, leader)] if passes > 1 else [],
        "n": overall.n, "gain": overall.gain, "se": overall.se, "z": overall.z, "p": overall.p_greater,
        "interval": None if overall.interval_low is None else [overall.interval_low, overall.interval_high],
        "label_z": of_label.z if of_label else None,
        "label_gain": of_label.gain if of_label else None,
        "rest_z": rest.z if rest else None,
        "guards": [guard_row(guard, guarded.states[guard.name]) for guard in guards] if is_asked else [],
        "lost_items": sorted({*lost, *consistent_losses(candidate, leader)}) if is_asked else [],
        "drift_z": drifted.z if is_whole and state.stored else None,
        "verdict": verdict,
        "reasons": reasons,
        "can_simplify": is_asked and guarded.verdict == "passed" and smaller.verdict == "simplified",
    }


def candidate_commit(bench: Bench, runs: Mapping[str, Sequence[str]]) -> str:
    """The commit of the candidate."""
    return str(bench.store.read(runs["candidate"][0])["commit"]["hash"])


def critical_items(bench: Bench) -> list[str]:
    """The items that must never be lost: those with the tag, or the field, `critical`."""
    cases = bench.items.cases
    return [name for name in cases if cases[name].document.get("critical") or "critical" in (cases[name].document.get("tags") or ())]


# --- Guards ----------------------------------------------------------------------------


def arm_values(store: RunStore, runs: Sequence[str], name: str) -> Values:
    """{item: the value of the metric *name* in each answer}; None where it is missing or no number."""
    found: Values = {}
    for run in runs:
        document = store.read(run)
        metric = document["metric"]
        for line in answered_lines(store, document):
            value = line_value(line, name, metric["name"], metric["aggregation"] in COUNT_AGGREGATIONS)
            known = float(value) if isinstance(value, bool) or is_number(value) else None
            found.setdefault(line["item"], []).append(known)
    return found


def measured_guard(bench: Bench, guard: JsonObject, runs: Mapping[str, Sequence[str]]) -> Guard:
    """The guard of the contract as the runs of both arms measured it; of cost and latency the margin is a share."""
    name = str(guard["metric"])
    candidate, leader = (arm_values(bench.store, runs[role], name) for role in SIDES)
    if guard.get("hard"):
        values = [value for each in candidate.values() for value in each]
        failed = sum(any(value is not None and value < 1 for value in each) for each in candidate.values())
        return Guard(name, is_hard=True, failed=None if not values or None in values and not failed else failed)
    if name in LINE_METRICS:
        return Guard(name, amount_difference(candidate, leader, bench.clusters()), math.log1p(float(guard["margin"])))
    sides = [{item: [value for value in values if value is not None] for item, values in each.items()} for each in (candidate, leader)]
    if any(None in values for each in (candidate, leader) for values in each.values()):
        return Guard(name, None, float(guard["margin"]))
    sign = -1.0 if guard.get("direction") == "lower" else 1.0
    oriented = [{item: [sign * value for value in values] for item, values in each.items()} for each in sides]
    return Guard(name, paired_difference(oriented[0], oriented[1], bench.clusters()), float(guard["margin"]))


def guard_row(guard: Guard, outcome: str) -> JsonObject:
    """What the event says of a guard."""
    row: JsonObject = {"metric": guard.name, "outcome": outcome}
    if guard.is_hard:
        return {**row, "hard": True, "failed": guard.failed}
    difference = guard.difference or Difference(0, 0)
    return {**row, "margin": guard.margin, "gain": difference.gain, "se": difference.se, "n": difference.n}


def costs(bench: Bench, runs: Mapping[str, Sequence[str]]) -> float | None:
    """What the candidate costs as a share of what the leader does, by answer; None where a price is not known."""
    means = []
    for role in SIDES:
        values = [value for each in arm_values(bench.store, runs[role], "cost_usd").values() for value in each]
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            return None
        means.append(math.fsum(known) / len(known))
    return means[0] / means[1] if means[1] else None

"""From variant to claim: the rules of a campaign, each a function of what was measured.

A keep is a bet on development items; only a yes to a look at the holdout is a claim. What was not measured never
passes. Every threshold has a name here and nowhere else.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kaizen.stats.intervals import bisected, normal_tail
from kaizen.stats.paired_runs import Difference, Scores, non_inferior, shared_items, student_at

SCREEN_Z = 0.5  # overall, to be promising
SCREEN_LABEL_Z = 1.5  # on the label that the hypothesis names
WORSE_Z = -1.0  # overall: visible harm
LABEL_ITEMS, LABEL_TRIALS = 5, 3  # least items of a label that can be named; fresh paired trials on them at the screen

REPLICATE_PASSES, EXTENDED_PASSES = 3, 6  # fresh passes of both sides, and where one more try is worth it
FIRST_PASS_Z = 0.0  # below, no second pass
FIRST_PASS_LABEL_Z = -0.5  # the same where a label is named
KEEP_Z, KEEP_LABEL_Z = 1.0, 2.0
EXTEND_Z = 0.5  # from here to KEEP_Z more passes are worth it, once

CONSISTENT_TRIALS = 2  # of both sides, before a loss counts as consistent
SIMPLIFY_MARGIN = 0.01  # where no smallest effect is declared
SMALLER = 0.9  # tokens or cost up to which a version is smaller

DRIFT_Z, DRIFT_TWICE_Z = 3.0, 2.0

LOOK_ALPHA, LOOKS, LOOK_TRIALS = 0.05, 5, 4
LOOK_SHARE = 0.8  # of what the look can see, from which it is due
LOOKS_FOR_CLOSE = 1  # looks that only closing may use
OVERFIT_NOES, OVERFIT_SHARE = 2, 2.0

PLATEAU_VARIANTS, PLATEAU_CATEGORIES = 12, 3
SATURATED = 0.95  # of the range of the score
EQUAL_CRASHES, TAINTS = 3, 2  # in a row


class Ruling(NamedTuple):
    """A verdict and the stable codes of what decided it."""

    verdict: str
    reasons: tuple[str, ...]


# --- Screen and replicate --------------------------------------------------------------


def screen_verdict(overall: Difference, label: Difference | None = None) -> Ruling:
    """What one pass against the leader's stored trials says: `promising`, `worse` or `no_signal`.

    *promising*: overall z >= 0.5 (`overall`), or z >= 1.5 on the fresh trials of the named label's items while overall there is no
    visible harm, z > -1, which is gain > -SE (`label`). *worse*: z <= -1. Else *no_signal*, with `near_miss` where z is above 0 and
    `not_measured` where there is no z.
    """
    if overall.z is None:
        return Ruling("no_signal", ("not_measured",))
    if overall.z >= SCREEN_Z:
        return Ruling("promising", ("overall",))
    if label is not None and label.z is not None and label.z >= SCREEN_LABEL_Z and overall.z > WORSE_Z:
        return Ruling("promising", ("label",))
    if overall.z <= WORSE_Z:
        return Ruling("worse", ("harm",))
    return Ruling("no_signal", ("near_miss",) if overall.z > 0 else ("no_gain",))


def first_pass_gives_up(overall: Difference, has_label: bool) -> bool:
    """Whether the first fresh pass of both sides ends the replication: z below 0, below -0.5 where a label is named, or no z."""
    return overall.z is None or overall.z < (FIRST_PASS_LABEL_Z if has_label else FIRST_PASS_Z)


def replicate_verdict(
    overall: Difference,
    label: Difference | None = None,
    rest: Difference | None = None,
    min_effect: float = 0.0,
    passes: int = REPLICATE_PASSES,
    is_extended: bool = False,
) -> Ruling:
    """What the *passes* fresh passes of both sides say, on these alone: `keepable`, `extend` or `not_replicated`.

    *keepable*: gain >= *min_effect* and z >= 1 (`overall`); or z >= 2 on the *label*'s items, overall gain above 0, and on the *rest* of
    the items gain > -SE (`label`). *extend*, once and up to 6 passes: 0.5 <= z < 1. Else *not_replicated*: `below_min_effect`
    where only the size is lacking, `too_little`, or `not_measured`.
    """
    if overall.z is None or overall.gain is None:
        return Ruling("not_replicated", ("not_measured",))
    if overall.z >= KEEP_Z and overall.gain >= min_effect:
        return Ruling("keepable", ("overall",))
    if label is not None and label.z is not None and label.z >= KEEP_LABEL_Z and overall.gain > 0 and is_unharmed(rest):
        return Ruling("keepable", ("label",))
    if EXTEND_Z <= overall.z < KEEP_Z and not is_extended and passes < EXTENDED_PASSES:
        return Ruling("extend", ("close",))
    return Ruling("not_replicated", ("below_min_effect" if overall.z >= KEEP_Z else "too_little",))


def is_unharmed(rest: Difference | None) -> bool:
    """Whether the items beside the label show no harm: gain > -SE; of a single one: no loss; true where there is none."""
    if rest is None or rest.gain is None:
        return rest is not None and rest.n == 0
    return rest.gain >= 0 if rest.z is None else rest.z > WORSE_Z


# --- Guards ----------------------------------------------------------------------------


class Guard(NamedTuple):
    """A metric that must not get worse: its *difference* (more is better; None when it was not measured) and margin.

    A hard gate has `is_hard` and `failed`, the items that fail it (None when it was not measured), and needs no difference.
    """

    name: str
    difference: Difference | None = None
    margin: float = 0.0
    is_hard: bool = False
    failed: int | None = None


class GuardRuling(NamedTuple):
    """`passed`, `undecided` (more trials may tell) or `guard_failed`, its reason codes, and {guard: its code}."""

    verdict: str
    reasons: tuple[str, ...]
    states: dict[str, str]


def guard_state(guard: Guard) -> str:
    """`passed`, `undecided`, `not_measured`, `gate_failed` of a hard gate, or `harm`: the loss is above the margin, one-sided 90 %."""
    if guard.is_hard:
        return "not_measured" if guard.failed is None else "gate_failed" if guard.failed else "passed"
    is_safe = None if guard.difference is None else non_inferior(guard.difference, guard.margin)
    if guard.difference is None or is_safe is None:
        return "not_measured"
    if is_safe:
        return "passed"
    # The mirror image: shown to lose more than the margin.
    flipped = guard.difference._replace(gain=-(guard.difference.gain or 0.0))
    return "harm" if non_inferior(flipped, -guard.margin) else "undecided"


def guard_verdict(guards: Sequence[Guard], critical_lost: Collection[str] = (), can_extend: bool = False) -> GuardRuling:
    """Whether every guard holds; a critical item that was lost, a failed gate, harm or a guard not measured is `guard_failed`.

    A guard that its trials do not decide is `undecided` while more can be had (*can_extend*), then fails.
    """
    states = {guard.name: guard_state(guard) for guard in guards}
    found = set(states.values()) - {"passed"} | ({"critical_item_lost"} if critical_lost else set())
    if not found:
        return GuardRuling("passed", (), states)
    return GuardRuling("undecided" if found == {"undecided"} and can_extend else "guard_failed", tuple(sorted(found)), states)


def consistent_losses(candidate: Scores, reference: Scores) -> list[str]:
    """The items, sorted, of which every trial of the candidate is worse than every one of the reference; two trials a side at least."""
    return [
        item
        for item in shared_items(candidate, reference)
        if min(len(candidate[item]), len(reference[item])) >= CONSISTENT_TRIALS and max(candidate[item]) < min(reference[item])
    ]


def critical_losses(candidate: Scores, reference: Scores, critical: Collection[str], pass_at: float = 1.0) -> list[str]:
    """The *critical* items, sorted, that were lost: the reference always reached *pass_at* and the candidate once did not.

    A consistent loss counts as well, and an item that the reference has and the candidate did not measure.
    """
    lost = set(consistent_losses(candidate, reference))
    for item in critical:
        before, after = reference.get(item), candidate.get(item)
        if before and (not after or (min(before) >= pass_at and min(after) < pass_at)):
            lost.add(item)
    return sorted(lost & set(critical))


def simplify_verdict(
    overall: Difference,
    min_effect: float = 0.0,
    net_lines: int | None = None,
    cost_ratio: float | None = None,
    token_ratio: float | None = None,
) -> Ruling:
    """`simplified` for a version that is smaller and not shown to be worse, else `not_simplified` with what is lacking.

    Smaller: fewer lines (*net_lines* below 0), or prompt tokens or cost at most 0.9 of the leader's. Non-inferior: `non_inferior`
    by *min_effect*, by 0.01 where none is declared.
    """
    is_smaller = (net_lines is not None and net_lines < 0) or any(
        ratio is not None and ratio <= SMALLER for ratio in (cost_ratio, token_ratio)
    )
    is_safe = non_inferior(overall, min_effect if min_effect > 0 else SIMPLIFY_MARGIN)
    lacking = [] if is_smaller else ["not_smaller"]
    if not is_safe:
        lacking.append("not_measured" if is_safe is None else "may_be_worse")
    return Ruling("not_simplified", tuple(lacking)) if lacking else Ruling("simplified", ("smaller",))


def drift(zs: Sequence[float]) -> bool:
    """Whether the leader's fresh trials left its stored ones: of the *zs* of its replicates since the last baseline, in order, one
    beyond 3 either way, or two in a row beyond 2 on the same side."""
    sides = [(z > DRIFT_TWICE_Z) - (z < -DRIFT_TWICE_Z) for z in zs]
    return any(abs(z) > DRIFT_Z for z in zs) or any(side and side == sides[place] for place, side in enumerate(sides[1:]))


# --- Looks -----------------------------------------------------------------------------


def look_is_due(gain: float | None, look_mde: float | None, looks_left: int, is_closing: bool = False) -> bool:
    """Whether the leader's fresh *gain* over the reference is worth a look: at least 0.8 of what it can see.

    The last look is kept for closing, where any gain above 0 is asked about. Without a gain or a *look_mde* none is due.
    """
    if gain is None or gain <= 0:
        return False
    if is_closing:
        return looks_left > 0
    return looks_left > LOOKS_FOR_CLOSE and look_mde is not None and gain >= LOOK_SHARE * look_mde


def look_answer(p: float | None, level: float) -> str:
    """`yes` when *p* is at most *level*, else `no`; `void` when p could not be had. The look is spent in each case."""
    return "void" if p is None else "yes" if p <= level else "no"


def look_confidence(level: float) -> float:
    """The confidence for `look_p_value` whose interval begins at the one-sided bound of a look at *level*."""
    return 1 - 2 * level


def confirmed_bound(difference: Difference) -> float | None:
    """The headline of a look that said yes, from its *difference* at `look_confidence`: the gain is at least this; None without one.

    It holds with the look's own error, while the plain 95 % bound of a gain that was chosen by its p does not. A yes excludes
    a loss, so it is never below 0.
    """
    return None if difference.interval_low is None else max(0.0, difference.interval_low)


def confirmed_gain(difference: Difference, level: float) -> float | None:
    """The estimate beside `confirmed_bound`, corrected for having been told only because it was high; None without an interval.

    The true gain from which a look that says yes shows more than this one every other time (median-unbiased given z > the t of *level*,
    by the normal law), and not below the bound: H. Zhong, R. L. Prentice (2008), Bias-reduced estimators and confidence intervals for
    odds ratios in genome-wide association studies, Biostatistics 9, 621-634. Where all items moved alike it is the gain.
    """
    bound = confirmed_bound(difference)
    if bound is None or difference.gain is None or difference.df is None or not difference.se:
        return None if bound is None else difference.gain
    z, least = difference.gain / difference.se, student_at(1 - level, difference.df)
    centre = bisected(lambda true: 2 * normal_tail(z - true) < normal_tail(least - true), z - 9.0, z)
    return max(bound, centre * difference.se)


def overfit_suspected(noes: int, gain: float | None, look_mde: float | None) -> bool:
    """Whether two looks since the last yes said no although the development gain is at least twice what they can see."""
    return noes >= OVERFIT_NOES and gain is not None and look_mde is not None and gain >= OVERFIT_SHARE * look_mde


# --- Stopping --------------------------------------------------------------------------


class CampaignCounts(NamedTuple):
    """What the stop rules look at. A budget of None has no limit; scores and effects are shares of the score's range.

    `variants_since_keep` counts from the last keep or the last `fresh_context`, whichever is later; `fresh_contexts` since the last keep.
    `mde` is that of development at the planned trials; `equal_crashes` and `taints` are those at the end of the row of runs.
    """

    is_target_confirmed: bool = False
    variants: int = 0
    item_evals: int = 0
    usd: float = 0.0
    hours: float = 0.0
    max_variants: int | None = None
    max_item_evals: int | None = None
    max_usd: float | None = None
    max_hours: float | None = None
    variants_since_keep: int = 0
    categories_tried: int = 0
    fresh_contexts: int = 0
    dev_score: float | None = None
    mde: float | None = None
    min_effect: float = 0.0
    can_afford_more: bool = True
    equal_crashes: int = 0
    taints: int = 0
    integrity: tuple[str, ...] = ()
    is_stop_file: bool = False


def budget_spent(counts: CampaignCounts) -> list[str]:
    """`budget_variants`, `budget_item_evals`, `budget_usd`, `budget_hours` of those that are used up."""
    pairs: Mapping[str, tuple[float, float | None]] = {
        "budget_variants": (counts.variants, counts.max_variants),
        "budget_item_evals": (counts.item_evals, counts.max_item_evals),
        "budget_usd": (counts.usd, counts.max_usd),
        "budget_hours": (counts.hours, counts.max_hours),
    }
    return [code for code, (used, limit) in pairs.items() if limit is not None and used >= limit]


def is_plateau(counts: CampaignCounts) -> bool:
    """Whether 12 variants without a keep came of at least 3 categories of ideas."""
    return counts.variants_since_keep >= PLATEAU_VARIANTS and counts.categories_tried >= PLATEAU_CATEGORIES


def wants_fresh_context(counts: CampaignCounts) -> bool:
    """Whether the plateau is the first: then lessons and leader go to a new session, and nothing stops."""
    return is_plateau(counts) and not counts.fresh_contexts


def is_saturated(dev_score: float | None, mde: float | None) -> bool:
    """Whether the score is at 95 % of its range, or what is left of it is less than can be seen."""
    return dev_score is not None and (dev_score >= SATURATED or (mde is not None and 1 - dev_score < mde))


def is_unresolvable(mde: float | None, min_effect: float, can_afford_more: bool) -> bool:
    """Whether the smallest effect wanted cannot be seen and no more items or trials can be had; never without such an effect."""
    return mde is not None and 0 < min_effect < mde and not can_afford_more


def noise_forbids(mde: float | None, min_effect: float, target_gap: float | None) -> bool:
    """Whether the noise floor ends a campaign before it begins: what can be seen is above twice the *min_effect* and above the way to the
    target; of the two those that are declared, and never when neither is."""
    wanted = [2 * min_effect] * (min_effect > 0) + ([] if target_gap is None else [target_gap])
    return mde is not None and bool(wanted) and mde > max(wanted)


def stop_reasons(counts: CampaignCounts) -> list[str]:
    """Why the campaign must stop, [] while it goes on: `stop_file`, `integrity`, `target_confirmed`, `budget_…`, `plateau` (the second
    time; the first is `wants_fresh_context`), `saturation`, `unresolvable`, `broken` (3 equal crashes or 2 taints in a row)."""
    checks = {
        "stop_file": counts.is_stop_file,
        "integrity": bool(counts.integrity),
        "target_confirmed": counts.is_target_confirmed,
        **dict.fromkeys(budget_spent(counts), True),
        "plateau": is_plateau(counts) and counts.fresh_contexts > 0,
        "saturation": is_saturated(counts.dev_score, counts.mde),
        "unresolvable": is_unresolvable(counts.mde, counts.min_effect, counts.can_afford_more),
        "broken": counts.equal_crashes >= EQUAL_CRASHES or counts.taints >= TAINTS,
    }
    return [code for code, is_met in checks.items() if is_met]

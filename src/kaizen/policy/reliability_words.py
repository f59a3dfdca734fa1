"""What reliability says in words, the same on the terminal, in reasons and on the page."""

from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed, money, percent, share_percent, visible
from kaizen.policy.reliability import ROLES_COMPARED
from kaizen.stats.intervals import REASONS

SHOWN_FLAKY = 10
SMALLEST_PRINTED = 1e-12  # below, sums of floats say nothing


def probability_text(p: float | None) -> str:
    """'0.0312', '< 1e-12', '> 0.9999', 'not measured'.

    >>> [probability_text(p) for p in (0.03125, 2e-7, 0.0, 1.0, 0.99999, None)]
    ['0.0312', '2.0e-07', '< 1e-12', '1', '> 0.9999', 'not measured']
    """
    if p is None:
        return "not measured"
    if p < SMALLEST_PRINTED:
        return "< 1e-12"
    if p < 0.0001:
        return f"{p:.1e}"
    return "1" if p >= 1 else "> 0.9999" if p > 0.9999 else f"{p:.4f}"


def chance_text(entry: JsonObject, side: str) -> str:
    """The bootstrap probability of *side*; with the warning it needs where all differences are equal."""
    chance = entry["probability"][side]
    if chance is not None and len(entry["strip"]) == 1:
        return f"{chance:.0f} (which says nothing: all differences are equal)"
    return "> 0.9999" if chance is not None and chance > 0.9999 else probability_text(chance)


def points_text(value: float, *, is_signed: bool = True) -> str:
    """A difference of rates in percentage points: '+4.2 points', '0.0 points'."""
    shown = f"{100 * value:+.1f}" if is_signed else f"{100 * value:.1f}"
    return f"{shown.replace('-0.0', '0.0').replace('+0.0', '0.0')} points"


def limits_text(limits: list[float] | None, *, is_rate: bool = False) -> str:
    """'52.9 % to 98 %' or '-3.1 to +11.4 points'; 'no interval' for None."""
    if limits is None:
        return "no interval"
    if is_rate:
        return " to ".join(map(share_percent, limits))
    return f"{points_text(limits[0]).removesuffix(' points')} to {points_text(limits[1])}"


def fraction_percent(fraction: JsonObject | None) -> str:
    """An exact rate as a percentage; 'not measured' for None."""
    return percent(fraction["numerator"], fraction["denominator"]) if fraction else "not measured"


def side_text_of(entry: JsonObject, role: str) -> str:
    """'75 of 120 planned trials passed, 2 excluded; 62.5 % (53.1 % to 71.0 %) over 24 cases, worth 60.2 independent trials'."""
    side = entry["rates"][role]
    counts = f"{side['passed']:,} of {counted(side['planned'], 'planned trial')} passed"
    counts += f", {side['excluded']:,} without a verdict" if side["excluded"] else ""
    if side["rate"] is None:
        return f"{counts}; pass rate not measured: {REASONS[side['reason']]}"
    worth = f", worth {side['n_eff']:.1f} independent trials" if side["valid"] > side["n"] else ""
    limits = limits_text(side["interval"], is_rate=True)
    return f"{counts}; {fraction_percent(side['rate'])} ({limits}) over {counted(side['n'], entry['unit'])}{worth}"


def change_text_of(entry: JsonObject) -> str:
    """'+4.2 points (95 % interval -3.1 to +11.4 points) over 24 cases, 7 of which differ'."""
    if entry["delta"] is None:
        return f"not measured: {REASONS[entry['reason']]}"
    interval = f"no interval: {REASONS[entry['reason']]}" if entry["reason"] else ""
    interval = interval or f"{100 * entry['confidence']:g} % interval {limits_text(entry['interval'])}"
    over = f"over {counted(entry['n'], entry['unit'])}, {entry['informative']:,} of which differ"
    text = f"{points_text(entry['delta']['value'])} ({interval}) {over}"
    if entry["unit"] == "cluster":
        text += f"; weighted by case {points_text(entry['case_weighted_delta']['value'])}"
    return text


def excluded_text_of(entry: JsonObject, role: str) -> str:
    """'2 of 120 (1.67 %): 61.7 % if they had failed, 63.3 % if they had passed'; '' when every trial has a verdict."""
    side = entry["rates"][role]
    if not side["excluded"]:
        return ""
    share = percent(side["excluded"], side["planned"])
    if side["bound_if_excluded_fail"] is None:
        return f"{side['excluded']:,} of {side['planned']:,} ({share}): no trial has a verdict, so the rate may be anything"
    bounds = fraction_percent(side["bound_if_excluded_fail"]), fraction_percent(side["bound_if_excluded_pass"])
    return f"{side['excluded']:,} of {side['planned']:,} ({share}): {bounds[0]} if they had failed, {bounds[1]} if they had passed"


def smallest_effect_text(entry: JsonObject) -> str:
    """What this suite could have seen, in plain words; '' when it is not known."""
    found = entry["smallest_effect"]
    if found is None:
        return ""
    suite = f"A suite of {counted(found['n'], entry['unit'])} at {trials_text(entry)}"
    if found["value"] > 1:
        return f"{suite} shows no change four times out of five, however large it is."
    effect = points_text(found["value"], is_signed=False)
    return f"{suite} shows a change of {effect} four times out of five; smaller ones mostly stay unseen."


def trials_text(entry: JsonObject) -> str:
    """'5 trials', or '1 and 5 trials' where the sides differ."""
    before, after = (entry["repetitions"][role] for role in ROLES_COMPARED)
    return counted(before, "trial") if before == after else f"{before} and {after} trials"


def about(number: int) -> int:
    """*number* rounded up to two digits, because no plan is more exact than that.

    >>> about(14_721), about(57), about(101)
    (15000, 57, 110)
    """
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step


def settle_text(entry: JsonObject) -> str:
    """What would settle a change that is not settled, in plain words; '' when it is, or nothing is known."""
    settle = entry["settle"]
    if settle is None or entry["verdict"] != "insufficient_evidence":
        return ""
    effect = points_text(settle["effect"], is_signed=False)
    parts = [f"about {counted(about(settle['units']), entry['unit'])} at {trials_text(entry)}"] if settle["units"] > entry["n"] else []
    if settle["trials"] is not None and settle["trials"] > max(entry["repetitions"].values()):
        parts.append(f"about {counted(about(settle['trials']), 'trial')} of each of these")
    if not parts:
        return ""
    text = f"To tell a change of {effect} from noise would take {listed(parts, last='or')}"
    if len(parts) == 1 and settle["is_split"]:
        text += "; more trials of these alone would not do" if settle["trials"] is None else ""
    elif not settle["is_split"] and entry["unit"] == "case":
        text += "; how far more trials would go, one trial a case cannot tell: run three to five"
    return text + "."


def obstacle_text(code: str, entry: JsonObject, settings: JsonObject) -> str:
    """The sentence of a code of `verdict_of` or `gate_codes`."""
    unit, n = entry["unit"], entry["n"]
    if code == "worse":
        return f"the candidate is worse: {change_text_of(entry)}"
    if code == "no_comparable_cases":
        return REASONS[code]
    if code == "too_few_cases":
        return f"{counted(n, unit)} compared (at least {settings['minimum_cases']})"
    if code == "too_few_trials":
        return f"{trials_text(entry)} a case (at least {settings['minimum_trials']})"
    if code == "too_few_informative_cases":
        needed = entry["informative_needed"]
        return f"{counted(entry['informative'], unit)} came out differently; below {needed} no test can tell a change from luck"
    if code == "missingness_decides":
        return "the sign of the change hangs on how the trials without a verdict would have come out"
    p = entry["sign_flip"]["adjusted"]["better"]
    chances = f"P(better) {chance_text(entry, 'better')} (at least {settings['minimum_probability']:g})"
    test = f"sign-flip p {probability_text(p)} (at most {1 - settings['minimum_probability']:.3g})"
    return f"a change of {points_text(entry['delta']['value'])} is not told from luck: {chances}, {test}"


def verdict_text(entry: JsonObject, settings: JsonObject) -> str:
    """'candidate is better', 'candidate is worse', or 'not decided' with the first obstacle."""
    if entry["verdict"] != "insufficient_evidence":
        return f"{entry['stage']} is {entry['verdict']}: {change_text_of(entry)}"
    obstacles = [obstacle_text(code, entry, settings) for code in entry["reasons"]]
    return f"{entry['stage']} is not decided: {'; '.join(obstacles)}"


def cost_text(found: JsonObject) -> str:
    """'0.0021 USD a trial (0.0019 to 0.0024) over 24 cases'; 'not measured' where nothing is priced."""
    if found["mean_usd"] is None:
        return "not measured"
    low_high = found["interval"]
    limits = f" ({money(low_high[0])} to {money(low_high[1])})" if low_high else ""
    return f"{money(found['mean_usd'])} USD a trial{limits} over {counted(found['n'], 'case')}"


def ids_text(found: JsonObject) -> str:
    """'3 (a, b and 1 holdout case)' of {"count", "cases", "holdout_cases"}; '0' for none."""
    names = [visible(case_id) for case_id in found["cases"]]
    if len(names) > SHOWN_FLAKY:
        names = [*names[:SHOWN_FLAKY], f"{len(names) - SHOWN_FLAKY} more"]
    names += [counted(found["holdout_cases"], "holdout case")] if found["holdout_cases"] else []
    return f"{found['count']:,}" + (f" ({listed(names, SHOWN_FLAKY + 2)})" if names else "")


def noise_text(entry: JsonObject) -> str:
    """What the trials of one case scatter, in plain words."""
    errors = [entry["rates"][role]["trial_noise_se"] for role in ROLES_COMPARED]
    if entry["noise"] is None or None in errors:
        return "not measured: it takes two trials of each case"
    share = entry["noise"]["share_of_variance"]
    text = f"repeating the same cases moves the rates by {100 * errors[0]:.1f} and {100 * errors[1]:.1f} points (standard errors)"
    return text + (f"; {100 * share:.0f} % of the scatter of the changes is trial noise" if share is not None else "")

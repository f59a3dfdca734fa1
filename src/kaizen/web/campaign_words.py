"""What the report of a campaign says in words, the same on the page and in report.md.

Gains are in points (hundredths of the metric's range) where the metric has a range, else in its
own units. A bet is never worded as a claim.
"""

from typing import NamedTuple

from kaizen.campaigns.story import bets
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, dollars, listed
from kaizen.web.review_words import NOT_MEASURED

VERDICT_TONES = {
    "confirmed": "good", "kept": "good", "simplified": "good", "promising": "calm", "worse": "bad", "guard_failed": "bad", "void": "bad",
    "tainted": "bad", "crashed": "bad",
}  # fmt: skip
SEAL_WORDS = {
    "honour": "on honour: a path outside the repository that no command prints",
    "guarded": "guarded, as a person states: reads of the folder are denied to the agent",
    "other_user": "another user's folder, which the agent cannot read",
    "remote": "on another machine",
}


NO_CLAIMS = "None: nothing is claimed."
NOTHING_UNKNOWN = "Nothing that the campaign should have recorded."


class StoryHeadline(NamedTuple):
    """The page's first sentence, its tone, and the sentence below it."""

    tone: str
    sentence: str
    lead: str


def has_range(story: JsonObject) -> bool:
    """True when the metric has a range, so that gains are shares of it."""
    metric = story["contract"]["metric"]
    return metric.get("minimum") is not None and metric.get("maximum") is not None


def gain_text(story: JsonObject, value: float | None, is_signed: bool = True) -> str:
    """'+4.2 points'; in the metric's own units when it has no range; 'not measured' for None."""
    if value is None:
        return NOT_MEASURED
    sign = "+" if is_signed else ""
    text = f"{100 * value:{sign}.1f} points" if has_range(story) else f"{value:{sign}.4g}"
    return text.replace("-", "\u2212")


def gain_line(story: JsonObject, body: JsonObject | None) -> str:
    """'+4.2 points ± 1.3 (z 3.2)', the standard error behind ±; 'not measured'."""
    if body is None or body.get("gain") is None:
        return NOT_MEASURED
    text = gain_text(story, body["gain"])
    if body.get("se") is not None:
        text += f" \u00b1 {100 * body['se']:.1f}" if has_range(story) else f" \u00b1 {body['se']:.3g}"
    return text + (f" (z\u00a0{body['z']:.1f})".replace("-", "\u2212") if body.get("z") is not None else "")


def story_claims(story: JsonObject) -> list[JsonObject]:
    """The claims, last first, with what the close opened about each: {look, leader, level, gain, lower, …}."""
    opened = {each["look"]: each for each in (story["closed"] or {}).get("claims", ())}
    return [{**look, **opened.get(look["look"], {})} for look in reversed(story["claims"])]


def story_headline(story: JsonObject) -> StoryHeadline:
    """What the campaign comes to: the lower bound of a confirmed gain first, or that nothing is claimed."""
    tried, kept = story["variants"], bets(story)
    lead = f"{counted(len(tried), 'variant')} tried"
    lead += f", {counted(len(kept), 'bet')} kept on development cases without being confirmed" if kept else ""
    lead += f"; {story['looks']['spent']} of {counted(story['looks']['number'], 'look')} at the holdout spent."
    if story["unsettled"]:
        broken = listed([str(each.get("message") or each.get("kind")) for each in story["unsettled"]], 3)
        return StoryHeadline("bad", "Void: the record cannot be trusted", f"{broken}. {lead}")
    claims = story_claims(story)
    if not claims:
        return StoryHeadline("calm", "Nothing is claimed", f"No variant was confirmed on the sealed holdout. {lead}")
    name, claim = claims[0]["leader"], (story["closed"] or {}).get("claim") or {}
    if claim.get("lower") is None:
        later = "is not known: the answers of a look were not kept" if story["closed"] else "is opened when the campaign closes"
        return StoryHeadline("good", f"{name} is confirmed as better than the baseline", f"By how much {later}. {lead}")
    sentence = f"{name} is better than the baseline by at least {gain_text(story, claim['lower'])}"
    estimate = f"the estimate is {gain_text(story, claim['gain'])}, corrected for having passed a look"
    return StoryHeadline("good", sentence, f"On the sealed holdout, at level {claim['level']:.3g}; {estimate}. {lead}")


def standing_text(variant: JsonObject) -> str:
    """What a kept variant is now."""
    return "parked" if variant["is_parked"] else str(variant["verdict"]).replace("_", " ")


def seal_text(story: JsonObject) -> str:
    """How the holdout was kept."""
    level = str(story["seal"].get("level"))
    return SEAL_WORDS.get(level, level)


def agreed_facts(story: JsonObject) -> list[tuple[str, str]]:
    """(name, value) of what the contract froze."""
    contract = story["contract"]
    metric, looks, budget = contract["metric"], contract["looks"], contract["budget"]
    limits = [f"{budget['variants']} variants"] if budget.get("variants") else []
    limits += [f"{budget['evaluations']:,} answers"] if budget.get("evaluations") else []
    limits += [dollars(budget["usd"])] if budget.get("usd") else []
    limits += [f"{budget['hours']:g} h"] if budget.get("hours") else []
    guards = [f"{each['metric']} {'hard' if each.get('hard') else 'within ' + str(each['margin'])}" for each in contract.get("guards", ())]
    return [
        ("Metric", f"{metric['name']} ({metric['aggregation']}), {metric['direction']} is better"),
        ("Effect worth having", gain_text(story, contract.get("min_effect"), False)),
        ("Guards", listed(guards) if guards else "none"),
        ("Development cases", f"{contract['dataset']['items']:,}"),
        ("Holdout", f"{counted(contract['holdout']['cases'], 'case')}, sealed {seal_text(story)}"),
        ("Looks", f"{looks['number']}, at most {looks['alpha']:g} chance of any false yes, {looks['trials']} fresh trials a side"),
        ("Budget", listed(limits) if limits else "none"),
        ("Contract", str(story["contract_sha256"])[:12]),
    ]


def spent_facts(story: JsonObject) -> list[tuple[str, str]]:
    """(name, value) of what was used and how noisy it is."""
    spent, noise = story["spent"], story["noise"]
    cost = "not reported" if spent["usd"] is None else dollars(spent["usd"]) + (" known" if spent["unknown_costs"] else "")
    facts = [
        ("Variants", f"{spent['variants']:,}"),
        ("Answers measured", f"{spent['evaluations']:,}, without those of looks"),
        ("Cost", cost),
        ("Hours of measuring", f"{spent['hours']:.1f}"),
    ]
    if noise:
        effects = sorted((int(trials), value) for trials, value in noise["mde"].items())
        mde = ", ".join(f"{trials}: {gain_text(story, value, False)}" for trials, value in effects)
        facts += [
            ("Items that flip by themselves", f"{100 * noise['flip_rate']:.0f} %"),
            ("Smallest effect seen, by trials", mde),
            ("Luck line", gain_text(story, story["luck_line"])),
            ("Keeps expected of useless variants", f"{story['expected_false_keeps']:.1f}"),
        ]
    return facts


def again_commands(story: JsonObject) -> list[str]:
    """The commands that show what this report rests on."""
    found = [f"kaizen campaign status --campaign {story['campaign']} --json", f"kaizen log --system {story['system']} --json"]
    found += [f"kaizen show {run}" for each in story["variants"][-1:] for run in each["runs"][-1:]]
    return found

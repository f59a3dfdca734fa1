"""`kaizen noise --system` and `kaizen plan --system`: what a campaign can see."""

from argparse import Namespace

from kaizen.campaigns.campaign import Campaign, find_campaign, load_campaign, open_campaigns
from kaizen.campaigns.measuring import scaled_effect
from kaizen.campaigns.noise_floor import PlanBasis, campaign_plan, known_floor, measured_noise, typical_floor
from kaizen.campaigns.state import campaign_state
from kaizen.commands.table import Answer
from kaizen.foundation.errors import EXIT_DONE, EXIT_NO
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, duration, listed, money
from kaizen.lab.definition import load_whole_system
from kaizen.lab.execution import load_items
from kaizen.lab.workspace import Workspace, find_workspace

CANNOT = {
    "unresolvable": "the noise hides twice the effect that is wanted, whatever the variants do",
    "look_cannot_see": "what a look can see is more than what there is left to gain",
}


def noise_of_system(args: Namespace) -> Answer:
    """The noise floor of the campaign; exit 1 when it hides what is wanted and nobody has accepted that."""
    workspace = find_workspace()
    campaign = find_campaign(workspace, args.system, args.campaign)
    body = measured_noise(workspace, campaign, args.passes, args.accept)
    floor = f"SE of a pass {points(body['se_pass'])}, of whole passes {points(body['run_variance'] ** 0.5)}"
    lines = [f"{points(body['flip_rate'], '%')} of {counted(body['items'], 'item')} flip over {body['passes']} passes; {floor}"]
    seen = ", ".join(f"{points(value)} with {counted(int(trials), 'trial')}" for trials, value in body["mde"].items())
    lines.append(f"  smallest gain seen four times out of five (one-sided 5 %): {seen}")
    data: JsonObject = {"noise": body}
    if body["is_resolvable"]:
        return Answer(EXIT_DONE, "measured", lines[0], lines, data, "kaizen next")
    if body["accepted"]:
        lines.append("  too high for the effect wanted; accepted by a person")
        return Answer(EXIT_DONE, "accepted", lines[0], lines, data, "kaizen next")
    lines.append(f"  too high: the effect wanted is {points(scaled_effect(campaign.contract))}; {CANNOT['unresolvable']}")
    lines.append("  what helps: more items, more trials, a steadier judge, or a larger effect; they make another campaign")
    hint = f'kaizen plan --system {campaign.system}, or a person: kaizen noise --system {campaign.system} --accept "who, and why"'
    return Answer(EXIT_NO, "unresolvable", lines[0], lines, data, hint)


def points(share: float | None, unit: str = "points") -> str:
    """*share* in points: '4.5 points', 'not measured'."""
    return "not measured" if share is None else f"{100 * share:.3g} {unit}"


def plan_of_system(args: Namespace) -> Answer:
    """What a campaign of the system can see and what it costs; exit 1 when it cannot succeed."""
    workspace = find_workspace()
    basis = plan_basis(workspace, args)
    plan = campaign_plan(basis)
    reasons = plan["cannot_succeed"]
    message = f"a campaign on {counted(basis.items, 'item')} cannot succeed" if reasons else f"what {counted(basis.items, 'item')} can show"
    following = "kaizen next" if plan_campaign(workspace, args) else f"kaizen campaign open --system {args.system} --sealed DIR"
    following = "more items or trials, or a larger effect" if reasons else following
    code, reason = (EXIT_NO, "cannot_succeed") if reasons else (EXIT_DONE, "planned")
    return Answer(code, reason, message, plan_words(plan, basis), plan, following)


def plan_campaign(workspace: Workspace, args: Namespace) -> Campaign | None:
    """The campaign that the plan is about; None before one is open."""
    if args.campaign:
        return load_campaign(workspace, args.campaign)
    found = open_campaigns(workspace, args.system)
    return found[-1] if found else None


def plan_basis(workspace: Workspace, args: Namespace) -> PlanBasis:
    """What the plan rests on: the campaign's noise and costs, else the dataset and what is typical."""
    campaign = plan_campaign(workspace, args)
    effect = float(args.effect or 0.0)
    if campaign is None:
        items = len(load_items(workspace, load_whole_system(workspace, args.system)).cases)
        source = "typical pass/fail items, nothing measured: kaizen noise --system tells, once a campaign is open"
        return PlanBasis(typical_floor(items), source, items, args.holdout or items, 5, 0.05, 4, 3, effect, None, 40, None, None)
    state, contract = campaign_state(campaign), campaign.contract
    items, looks = int(contract["dataset"]["items"]), contract["looks"]
    floor, spent = known_floor(state), state.spent()
    source = f"{counted(floor.passes, 'pass', 'passes')} of the leader" if floor else "typical pass/fail items: kaizen noise measures it"
    known = spent.evaluations or 0
    return PlanBasis(
        floor or typical_floor(items),
        source,
        items,
        args.holdout or int(contract["holdout"]["cases"]),
        int(looks["number"]),
        float(looks["alpha"]),
        int(looks["trials"]),
        int(contract["replicate"]["passes"]),
        effect or scaled_effect(contract),
        (state.noise or {}).get("score"),
        int(contract["budget"]["variants"] or 40),
        spent.usd / known if known and spent.usd is not None and not spent.unknown_costs else None,
        spent.hours * 3600 / known if known else None,
    )


def plan_words(plan: JsonObject, basis: PlanBasis) -> list[str]:
    """The plan for a terminal."""
    lines = [f"from {basis.source}", "smallest gain seen four times out of five, in points (one-sided 5 %), with 1, 3 and 6 trials:"]
    for row in plan["mde"]:
        own = " *" if row["items"] == basis.items else ""
        lines.append(f"  {row['items']:>6,} items  " + "  ".join(f"{100 * row[key]:5.1f}" for key in ("1", "3", "6")) + own)
    needed = [f"{counted(number, 'item')} at {counted(int(trials), 'trial')}" for trials, number in plan["items_needed"].items() if number]
    if basis.effect > 0:
        lines.append(f"to see {points(basis.effect)}: {listed(needed) or 'no number of items'}")
    look = plan["look"]
    cases = counted(basis.holdout, "holdout case")
    lines.append(f"a look at {cases}, {look['trials']} trials each, level {look['level']:.4g}, says yes to")
    lines += [f"  {points(row['effect'])}: {100 * row['power']:.0f} %" for row in look["power"]]
    if look["cases_needed"]:
        lines.append(f"  for four times out of five it needs {counted(look['cases_needed'], 'case')}")
    answers = plan["answers"]
    lines.append(f"answers: {answers['per_proposal']:,} a proposal, {answers['per_look']:,} a look, {answers['campaign']:,} in all")
    for key, words, unit in (("cost_usd", money, "USD "), ("seconds", duration, "")):
        each = plan[key]
        if each:
            told = [unit + words(each[name]) for name in ("per_item", "per_proposal", "campaign")]
            lines.append(f"{'cost' if unit else 'time'}: {told[0]} an item, {told[1]} a proposal, {told[2]} in all")
    lines += [f"cannot succeed: {CANNOT[reason]}" for reason in plan["cannot_succeed"]]
    return [*lines, "* the items of this system"]

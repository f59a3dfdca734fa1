"""`kaizen campaign list`, `status`: which campaigns there are, and where one stands."""

from argparse import Namespace

from kaizen.campaigns.campaign import Campaign, campaign_ids, load_campaign
from kaizen.campaigns.next_step import NextStep, command_line, next_step
from kaizen.campaigns.sealed import read_ledger, sealed_obstacle
from kaizen.campaigns.standing import BUDGET_NAMES
from kaizen.campaigns.state import CampaignState, campaign_state
from kaizen.commands.campaign_words import OF_CAMPAIGN, OF_SYSTEM, campaign_named, integrity_answer
from kaizen.commands.table import Answer, command
from kaizen.foundation.errors import KaizenError, RefusedError
from kaizen.foundation.jsonio import JsonObject, rounded_floats
from kaizen.foundation.text import counted, dollars, listed, visible
from kaizen.lab.reading import live_runs, read_runs
from kaizen.lab.runfolder import run_store
from kaizen.lab.watch import content_sha256
from kaizen.lab.workspace import Workspace, find_workspace

NOISE_TOLD = ("passes", "items", "flip_rate", "se_pass", "run_variance", "mde", "is_resolvable", "accepted")


@command(
    "campaign list",
    "Lists the campaigns of this workspace.",
    [],
    "kaizen campaign list",
    group="campaigns",
)
def command_campaign_list(args: Namespace) -> Answer:
    """Reads only; a campaign whose files were changed is shown as that."""
    workspace = find_workspace()
    rows = [campaign_row(workspace, name) for name in campaign_ids(workspace)]
    lines = [
        f"{row['id']:<5} {row['system'] or '':<20} {row['standing']:<9} "
        f"{counted(row['variants'], 'variant')}, {counted(row['kept'], 'keep')}, looks left {row['looks_left']}"
        if row["problem"] is None
        else f"{row['id']:<5} cannot be trusted: {visible(row['problem'], 300)}"
        for row in rows
    ]
    message = counted(len(rows), "campaign")
    return Answer(0, "listed", message, [*lines, message], {"campaigns": rows})


def campaign_row(workspace: Workspace, name: str) -> JsonObject:
    """What the list tells of one campaign."""
    row: JsonObject = {"id": name, "system": None, "standing": "unreadable", "variants": 0, "kept": 0, "looks_left": None, "problem": None}
    try:
        campaign = load_campaign(workspace, name)
        state = campaign_state(campaign)
    except KaizenError as error:
        return {**row, "problem": error.message}
    kept = sum(each.keep is not None for each in state.variants.values())
    row |= {"system": campaign.system, "standing": "closed" if state.closed else "open", "variants": len(state.screened())}
    return {**row, "kept": kept, "looks_left": state.look_count.left}


@command(
    "campaign status",
    "Says where a campaign stands and what would stop it; exits 0 to go on, 1 to stop, 3 when a person is needed.",
    [OF_CAMPAIGN, OF_SYSTEM],
    "kaizen campaign status --json",
    group="campaigns",
)
def command_campaign_status(args: Namespace) -> Answer:
    """Reads only."""
    try:
        workspace, campaign = campaign_named(args)
        found = next_step(workspace, campaign)
        data = status_document(workspace, campaign, found)
    except RefusedError as error:
        return integrity_answer(error)
    message = f"{campaign.id} of {campaign.system}: {found.step.action}, {visible(found.step.why, 300)}"
    lines = [visible(line, None) for line in campaign_lines(message, data)]
    return Answer(found.code, found.step.action, message, lines, data, command_line(found.step.command))


def status_document(workspace: Workspace, campaign: Campaign, found: NextStep) -> JsonObject:
    """All that is known of *campaign*, without anything of its holdout but counts."""
    state = campaign_state(campaign)
    contract, noise = campaign.contract, state.noise or {}
    store = run_store(workspace)
    own = [each for each in read_runs(store, campaign.system) if each["id"] in state.open_runs()]
    spent = state.spent()
    document: JsonObject = {
        "campaign": campaign.id,
        "system": campaign.system,
        "epoch": contract["epoch"],
        "contract_sha256": campaign.events[0]["body"]["contract_sha256"],
        "baseline": state.baseline,
        "reference": state.reference._asdict(),
        "leader": {**state.leader._asdict(), "stored_runs": state.stored},
        "situation": found.document["situation"],
        "noise": {key: noise.get(key) for key in NOISE_TOLD},
        "looks": {**state.look_count._asdict(), "answers": [each.get("answer") for each in state.looks]},
        "budget": {"allowed": contract["budget"], "used": spent._asdict(), "left": found.document["situation"]["left"]},
        "drift": {"pending": state.is_drifted, "zs": state.drift_zs},
        "verdicts": verdict_counts(state),
        "integrity": integrity_document(workspace, campaign, state),
        "seal": {key: contract["holdout"][key] for key in ("level", "level_reason", "cases")},
        "stop": found.document["stop"],
        "should_continue": found.document["should_continue"],
        "action": found.step.action,
        "command": found.step.command,
        "live": live_runs(store, own),
        "closed": state.closed,
    }
    told: JsonObject = rounded_floats(document)
    return told


def verdict_counts(state: CampaignState) -> JsonObject:
    """{verdict: how many variants}, in order of appearance."""
    counts: dict[str, int] = {}
    for variant in state.screened():
        counts[variant.verdict] = counts.get(variant.verdict, 0) + 1
    return counts


def integrity_document(workspace: Workspace, campaign: Campaign, state: CampaignState) -> JsonObject:
    """{events, locked_changed, ledger, sealed_place}: what makes the record or the tree at hand untrustworthy."""
    changed = []
    for path, digest in campaign.contract["locked"].items():
        try:
            is_same = content_sha256(workspace.path(path)) == digest
        except (KaizenError, OSError):
            is_same = False
        if not is_same:
            changed.append(path)
    obstacle = sealed_obstacle(campaign)
    return {
        "events": state.integrity,
        "locked_changed": changed,
        "ledger": read_ledger(campaign).problem or None,
        "sealed_place": obstacle.reason if obstacle else "readable",
    }


def campaign_lines(message: str, data: JsonObject) -> list[str]:
    """The same for people."""
    situation, looks, noise, integrity = data["situation"], data["looks"], data["noise"], data["integrity"]
    dev = situation["dev"]
    gain = "not known" if dev["gain_over_reference"] is None else f"{dev['gain_over_reference']:+.4g} (SE {dev['se']:.2g})"
    level = f", the next at level {looks['next_level']:.4g}" if looks["next_level"] is not None else ""
    facts = [
        ("contract", f"{data['contract_sha256'][:12]}, epoch {data['epoch']}"),
        ("reference", f"{data['reference']['variant']}, {data['reference']['commit'][:12]}"),
        ("leader", f"{data['leader']['variant']}, {data['leader']['commit'][:12]}, fresh gain over the reference {gain}"),
        ("noise", noise_words(noise, situation)),
        ("luck line", f"{number_or_unknown(situation['luck_line'])}: what the best of {situation['variants']} useless ones seems to gain"),
        ("variants", listed([f"{number} {verdict.replace('_', ' ')}" for verdict, number in data["verdicts"].items()], 20)),
        ("false keeps", f"{situation['expected_false_keeps']:.2g} expected if nothing worked"),
        ("looks", f"{looks['left']} of {looks['number']} left, {looks['yes']} yes{level}"),
        ("budget", listed(budget_words(data["budget"]))),
        ("drift", "the leader's trials have to be measured anew" if data["drift"]["pending"] else ""),
        ("seal", "; ".join(filter(None, [data["seal"]["level"], data["seal"]["level_reason"], integrity["sealed_place"]]))),
        ("stop", listed([code.replace("_", " ") for code in data["stop"]])),
        ("at work", listed([f"{each['id']} ({each['answered']} of {each['planned']})" for each in data["live"]])),
        ("integrity", listed([str(each.get("message")) for each in integrity["events"]], 5)),
        ("changed", listed(integrity["locked_changed"], 5)),
        ("ledger", integrity["ledger"] or ""),
        ("closed", str((data["closed"] or {}).get("headline") or "")),
    ]
    return [message, *(f"  {name:<12}  {visible(text, 400)}" for name, text in facts if text)]


def number_or_unknown(value: float | None) -> str:
    """*value* with a sign, or that it is not known."""
    return "not known" if value is None else f"{value:+.4g}"


def noise_words(noise: JsonObject, situation: JsonObject) -> str:
    """What is known of the noise."""
    if noise["se_pass"] is None:
        return "not measured yet"
    flips = "not known" if noise["flip_rate"] is None else f"{100 * noise['flip_rate']:.3g} % of items flip"
    mde = situation["noise"]["mde"]
    seen = "" if mde is None else f", a replication sees gains from {mde:.3g}"
    return f"{flips}, SE of a pass {noise['se_pass']:.3g}{seen}"


def budget_words(budget: JsonObject) -> list[str]:
    """'16 of 40 variants', 'cost not known'."""
    words = []
    for name in BUDGET_NAMES:
        used, allowed = budget["used"][name], budget["allowed"].get(name)
        limit = "" if allowed is None else f" of {allowed:,.6g}"
        if name == "usd":
            words.append(f"{'cost not known' if used is None else dollars(used)}{limit}")
        else:
            words.append(f"{used:,.3g}{limit} hours" if name == "hours" else f"{used:,}{limit} {name}")
    unknown = budget["used"]["unknown_costs"]
    return [*words, f"{counted(unknown, 'run')} without a cost"] if unknown and budget["used"]["usd"] is not None else words

"""`kaizen idea add`, `list`: hypotheses, written down before they are tried."""

from argparse import Namespace

from kaizen.campaigns.ideas import CATEGORIES, NO_LABEL, NewIdea, add_idea
from kaizen.campaigns.state import CampaignState, campaign_state
from kaizen.commands.arguments import gain_argument
from kaizen.commands.campaign_words import OF_CAMPAIGN, OF_SYSTEM, campaign_named
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.jsonio import JsonObject, without_surrogates
from kaizen.foundation.text import counted, listed, visible
from kaizen.lab.execution import load_items
from kaizen.lab.system import load_system
from kaizen.lab.workspace import Workspace

IDEA_STATUSES = ("open", "running", "discarded", "kept", "confirmed", "crashed", "parked")
TEXTS_OF_IDEA = ("hypothesis", "title", "category", "component", "label", "source")


def tag_counts(workspace: Workspace, system: str) -> dict[str, int]:
    """{tag: how many development items of *system* have it}, sorted by tag."""
    counts: dict[str, int] = {}
    for case in load_items(workspace, load_system(workspace, system)).cases.values():
        for tag in case.document.get("tags") or []:
            counts[tag] = counts.get(tag, 0) + 1
    return dict(sorted(counts.items()))


@command(
    "idea add",
    "Writes down what is to be tried and why, before it is; one that was written down already is refused.",
    [
        Argument("--hypothesis", "H", "if …, then …, because …", {"required": True}),
        Argument("--category", "C", f"{listed(CATEGORIES, 20, 'or')}, or another word", {"required": True, "type": str.lower}),
        Argument("--label", "TAG", f"the failures it repairs: a tag of development items, or {NO_LABEL}", {"required": True}),
        Argument("--title", "T", "in a few words (default: the hypothesis)", {"default": ""}),
        Argument("--component", "X", "what of the system it changes", {"default": ""}),
        Argument("--predict", "P", "the gain that is expected, in units of the metric", {"type": gain_argument}),
        Argument("--source", "S", "where it comes from: a trace, a person, an idea", {"default": ""}),
        Argument("--anyway", "", "although it is much like another; recorded"),
        OF_CAMPAIGN,
        OF_SYSTEM,
    ],
    "kaizen idea add --category prompt --label wrong-date --predict 0.04 \\\n"
    '  --hypothesis "if the prompt names the time zone, then dates are right, because traces show UTC taken for local"',
    group="campaigns",
)
def command_idea_add(args: Namespace) -> Answer:
    """Records the idea."""
    workspace, campaign = campaign_named(args)
    new = NewIdea(**{name: without_surrogates(getattr(args, name)).strip() for name in TEXTS_OF_IDEA}, predict=args.predict)
    idea, notes = add_idea(campaign, new, tag_counts(workspace, campaign.system), bool(args.anyway))
    message = f"{idea['id']} is written down: {visible(idea['title'])}"
    label = f"; its failures: {visible(idea['label'])}" if idea["label"] else ""
    following = f"make it, commit it, then: kaizen run --system {campaign.system} --variant NAME --idea {idea['id']}"
    return Answer(0, "added", message, [message + label, *[f"  note: {note}" for note in notes]], {"idea": idea, "notes": notes}, following)


@command(
    "idea list",
    "Lists the ideas of a campaign with what became of them.",
    [
        Argument("--status", "S", f"only those that are {listed(IDEA_STATUSES, 20, 'or')}", {"choices": IDEA_STATUSES, "metavar": "S"}),
        OF_CAMPAIGN,
        OF_SYSTEM,
    ],
    "kaizen idea list --status open",
    group="campaigns",
)
def command_idea_list(args: Namespace) -> Answer:
    """Reads only."""
    campaign = campaign_named(args).campaign
    state = campaign_state(campaign)
    rows = [idea_row(state, idea) for idea in state.ideas.values()]
    rows = [row for row in rows if args.status in (None, row["status"])]
    lines = [idea_line(row) for row in rows]
    message = f"{counted(len(rows), 'idea')} of {campaign.id}"
    return Answer(0, "listed", message, [*lines, message], {"campaign": campaign.id, "count": len(rows), "ideas": []}, rows=rows)


def idea_row(state: CampaignState, idea: JsonObject) -> JsonObject:
    """*idea* with its status, its variants, and the last lesson."""
    variants = [each for each in state.variants.values() if each.idea == idea["id"]]
    lessons = [each.lesson for each in variants if each.lesson]
    tried = [each.name for each in variants]
    return {**idea, "status": state.idea_status(str(idea["id"])), "variants": tried, "lesson": lessons[-1] if lessons else None}


def idea_line(row: JsonObject) -> str:
    """An idea for the terminal."""
    further = [f"label {row['label']}"] if row["label"] else []
    further += [f"tried as {listed(row['variants'], 5)}"] if row["variants"] else []
    title = visible(row["title"], 60)
    return visible(f"{row['id']:<5} {row['status']:<10} {row['category']:<14} {title:<60}  {listed(further)}".rstrip(), None)

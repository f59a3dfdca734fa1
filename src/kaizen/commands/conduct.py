"""`kaizen keep`, `discard`, `note`: what becomes of a variant of a campaign."""

from argparse import Namespace

from kaizen.campaigns.conduct import add_note, discard_variant, keep_variant
from kaizen.campaigns.state import SIMPLIFIED
from kaizen.commands.campaign_words import OF_CAMPAIGN, OF_SYSTEM, campaign_named
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.jsonio import without_surrogates
from kaizen.foundation.text import visible

OF_VARIANT = Argument("variant", "V", "name of the variant")


@command(
    "keep",
    "Makes a variant the leader that beat it on fresh trials; a bet on development items, not yet a claim.",
    [
        OF_VARIANT,
        Argument("--simplify", "", "keep one that is smaller and shown to be no worse"),
        Argument("--accept-memorised", "NAME", "who has read the diff, which holds text of development items", {"default": ""}),
        Argument("--lesson", "TEXT", "what was expected, what happened, and why", {"default": ""}),
        OF_CAMPAIGN,
        OF_SYSTEM,
    ],
    'kaizen keep v017 --lesson "naming the time zone repairs dates, and nothing else"',
    group="campaigns",
)
def command_keep(args: Namespace) -> Answer:
    """Writes best_run, commits that file and the lessons, and records the bet."""
    workspace, campaign = campaign_named(args)
    by, lesson = without_surrogates(args.accept_memorised).strip(), without_surrogates(args.lesson)
    body, notes = keep_variant(workspace, campaign.id, args.variant, bool(args.simplify), by, lesson)
    gain = f", fresh gain {body['gain']:+.4g} (SE {body['se']:.2g})" if body["gain"] is not None and body["se"] is not None else ""
    what = "simplified: the leader" if body["how"] == SIMPLIFIED else "the leader"
    message = f"{visible(args.variant, 60)} is {what}{gain}; a bet, not confirmed on the holdout"
    lines = [message, f"  best run {body['best_run']}, commit {body['head'][:12]}", *(f"  note: {note}" for note in notes)]
    return Answer(0, body["how"], message, lines, {"campaign": campaign.id, "keep": body, "notes": notes}, "kaizen next --json")


@command(
    "discard",
    "Gives a variant up, moves the branch back to the leader and keeps the commit under refs/kaizen/; no file is overwritten.",
    [
        OF_VARIANT,
        Argument("--lesson", "TEXT", "what was expected, what happened, and what that rules out", {"required": True}),
        OF_CAMPAIGN,
        OF_SYSTEM,
    ],
    'kaizen discard v018 --lesson "shorter answers lose the amounts: length is not what users mind"',
    group="campaigns",
)
def command_discard(args: Namespace) -> Answer:
    """Records the verdict as it was computed."""
    workspace, campaign = campaign_named(args)
    body, notes = discard_variant(workspace, campaign.id, args.variant, without_surrogates(args.lesson))
    place = f"; its commit stays as {body['ref']}" if body["ref"] else ""
    moved = ", the branch is back at the leader" if body["moved"] else ""
    message = f"{visible(args.variant, 60)} is discarded ({body['verdict'].replace('_', ' ')}){moved}{place}"
    lines = [message, *(f"  note: {note}" for note in notes)]
    return Answer(0, "discarded", message, lines, {"campaign": campaign.id, "discard": body, "notes": notes}, "kaizen next --json")


@command(
    "note",
    "Adds a note to the journal of a campaign.",
    [
        Argument("text", "TEXT", "the note"),
        Argument("--variant", "V", "the variant it is about", {"default": ""}),
        Argument("--accept-integrity", "NAME", "who has looked at the breaches of integrity, and says to go on", {"default": ""}),
        OF_CAMPAIGN,
        OF_SYSTEM,
    ],
    'kaizen note "the judge reads only the first paragraph" --variant v018',
    group="campaigns",
)
def command_note(args: Namespace) -> Answer:
    """Records the note."""
    campaign = campaign_named(args).campaign
    body = add_note(campaign, without_surrogates(args.text), args.variant, without_surrogates(args.accept_integrity).strip())
    return Answer(0, "noted", f"noted in {campaign.id}", [], {"campaign": campaign.id, "note": body})

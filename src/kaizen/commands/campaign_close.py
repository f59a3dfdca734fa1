"""`kaizen campaign close`: the last look, what is claimed, and the end."""

from argparse import Namespace

from kaizen.campaigns.closing import close_campaign
from kaizen.commands.campaign_words import OF_CAMPAIGN, OF_SYSTEM, campaign_named
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.jsonio import JsonObject, rounded_floats, without_surrogates
from kaizen.foundation.text import visible


@command(
    "campaign close",
    "Takes the last look if there is something to claim, opens the holdout once, retires it, and says what is claimed.",
    [
        Argument("--reason", "TEXT", "why it ends (default: asked)", {"default": "asked"}),
        Argument("--no-look", "", "without a last look, so that nothing more is claimed"),
        OF_CAMPAIGN,
        OF_SYSTEM,
    ],
    "kaizen campaign close",
    group="campaigns",
)
def command_campaign_close(args: Namespace) -> Answer:
    """Afterwards everything that writes is refused."""
    workspace, campaign = campaign_named(args)
    body, answer, notes = close_campaign(workspace, campaign.id, without_surrogates(args.reason), not args.no_look)
    message = f"{campaign.id} is closed: {body['headline']}"
    lines = [message, *(f"  {look_words(look)}" for look in body["claims"]), *(f"  note: {note}" for note in notes)]
    told: JsonObject = rounded_floats({"campaign": campaign.id, "last_look": answer or None, "closed": body, "notes": notes})
    following = f"kaizen campaign report --campaign {campaign.id}"
    return Answer(0, "closed", message, [visible(line, None) for line in lines], told, following)


def look_words(look: JsonObject) -> str:
    """What a look that said yes had seen, as shares of the range of the score where it has one."""
    start = f"look {look['look']}, level {look['level']:.4g}: {look['leader']} over {look['reference']}"
    if look["lower"] is None or look["gain"] is None:
        return f"{start}: its answers are not there ({str(look['reason']).replace('_', ' ')})"
    seen = f"{look['seen']:+.4g} was seen (SE {look['se']:.2g}, {look['n']} cases)"
    return f"{start}: at least {look['lower']:+.4g}, estimate {look['gain']:+.4g}; {seen}"

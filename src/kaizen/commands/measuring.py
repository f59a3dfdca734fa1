"""`kaizen replicate` and `kaizen look`, and what `noise` and `plan` say of a system."""

from argparse import Namespace

from kaizen.campaigns.looking import take_look
from kaizen.campaigns.replicating import replicated
from kaizen.campaigns.state import EXTEND, KEEPABLE
from kaizen.commands.campaign_words import OF_CAMPAIGN, OF_SYSTEM, campaign_named
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.errors import EXIT_DONE, EXIT_INCOMPLETE, EXIT_NO
from kaizen.foundation.jsonio import JsonObject, encode_compact
from kaizen.foundation.text import counted, listed, quoted, visible

REPLICATE_CODES = {KEEPABLE: EXIT_DONE, EXTEND: EXIT_DONE, "incomplete": EXIT_INCOMPLETE}


@command(
    "replicate",
    "Measures a promising variant and the leader anew, pass by pass in turn, and says whether it may be kept.",
    [Argument("variant", "V", "name of the variant"), OF_CAMPAIGN, OF_SYSTEM],
    "kaizen replicate v017",
    group="campaigns",
)
def command_replicate(args: Namespace) -> Answer:
    """Exit 0 keepable or worth more passes, 1 no, 4 a run failed."""
    workspace, campaign = campaign_named(args)
    body = replicated(workspace, campaign, args.variant)
    verdict, name = str(body["verdict"]), visible(args.variant, 60)
    sentence = f"{name}: {verdict.replace('_', ' ')}; {difference_words(body)} over {visible(body['leader'], 60)}"
    lines = [f"{sentence}, {counted(body['n'] or 0, 'item')}, {counted(body['passes'], 'fresh pass', 'fresh passes')} each"]
    lines += [f"  because: {listed([reason.replace('_', ' ') for reason in body['reasons']])}"] if body["reasons"] else []
    if body["label_z"] is not None:
        lines.append(f"  on the label {quoted(body['label'])}: gain {body['label_gain']:+.4g}, z {body['label_z']:.2f}")
    lines += [f"  guard {visible(row['metric'], 60)}: {row['outcome'].replace('_', ' ')}" for row in body["guards"]]
    lines += [f"  lost: {listed(map(visible, body['lost_items']), 10)}"] if body["lost_items"] else []
    code = REPLICATE_CODES.get(verdict, EXIT_NO)
    again = f'kaizen discard {name} --lesson "…"' if code == EXIT_NO else f"kaizen replicate {name}"
    return Answer(code, verdict, lines[0], lines, {"replicate": body}, f"kaizen keep {name}" if verdict == KEEPABLE else again)


def difference_words(body: JsonObject) -> str:
    """'gain +0.04 (SE 0.02, z 2.00)', or that it was not measured."""
    if body["gain"] is None:
        return "gain not measured"
    if body["se"] is None or body["z"] is None:
        return f"gain {body['gain']:+.4g}"
    return f"gain {body['gain']:+.4g} (SE {body['se']:.4g}, z {body['z']:.2f})"


@command(
    "look",
    "Asks the sealed holdout once whether the leader is better than what was confirmed last: yes, no or void, and nothing else.",
    [OF_CAMPAIGN, OF_SYSTEM],
    "kaizen look",
    group="campaigns",
)
def command_look(args: Namespace) -> Answer:
    """Exit 0 whatever the answer is; nothing but the answer differs."""
    workspace, campaign = campaign_named(args)
    answer = take_look(workspace, campaign)
    return Answer(EXIT_DONE, "looked", "the holdout was asked", [encode_compact({"answer": answer})], {"answer": answer}, "kaizen next")

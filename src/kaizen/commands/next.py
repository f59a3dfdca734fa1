"""`kaizen next`: the next step of a campaign, for a session that remembers nothing."""

from argparse import Namespace

from kaizen.campaigns.next_step import command_line, fitted, next_step
from kaizen.commands.campaign_words import OF_CAMPAIGN, OF_SYSTEM, campaign_named, integrity_answer
from kaizen.commands.table import Answer, command
from kaizen.foundation.errors import RefusedError
from kaizen.foundation.jsonio import JsonObject, encode_readable
from kaizen.foundation.text import counted, listed, visible

ENVELOPE_MARGIN = 200  # bytes of punctuation and exit code around the document, at most


@command(
    "next",
    "Says the one next step of a campaign and what to remember, from its files alone; exits 0 to go on, 1 to stop, 3 for a person.",
    [OF_CAMPAIGN, OF_SYSTEM],
    "kaizen next --json",
    group="campaigns",
)
def command_next(args: Namespace) -> Answer:
    """Reads only; at most 6 kB."""
    try:
        workspace, campaign = campaign_named(args)
        step, code, document = next_step(workspace, campaign)
    except RefusedError as error:
        return integrity_answer(error)
    line = command_line(step.command)
    message = f"{step.action}: {visible(step.why, 200)}"
    around = len(encode_readable([step.action, message, line]).encode()) + ENVELOPE_MARGIN
    fit = fitted(document, around)
    return Answer(code, step.action, message, next_lines(step.why, step.action, fit), fit, line)


def next_lines(why: str, action: str, document: JsonObject) -> list[str]:
    """The same for people."""
    situation, memory = document["situation"], document["memory"]
    gain = situation["dev"]["gain_over_reference"]
    so_far = f", {gain:+.3g} over {situation['reference']}" if gain else ""
    lines = [
        f"{action}: {visible(why, 400)}",
        f"  leader {situation['leader']}{so_far}; {counted(situation['variants'], 'variant')}; looks left {situation['looks']['left']}",
    ]
    lines += [f"  stop: {listed([code.replace('_', ' ') for code in document['stop']])}"] if document["stop"] else []
    lines += [f"  failing: {each['label']} ({each['n']} of {each['of']})" for each in memory["failures_top"][:3]]
    return lines + [f"  lesson: {lesson}" for lesson in memory["lessons"][-3:]]

"""The report of a campaign as Markdown."""

from kaizen.campaigns.story import bets
from kaizen.foundation.jsonio import JsonObject
from kaizen.web.campaign_words import (
    NO_CLAIMS,
    NOTHING_UNKNOWN,
    again_commands,
    agreed_facts,
    gain_line,
    gain_text,
    spent_facts,
    standing_text,
    story_claims,
    story_headline,
)
from kaizen.web.review_markdown import markdown_code, markdown_text


def campaign_markdown(story: JsonObject) -> str:
    """The *story* of a campaign as text: what the page says, without the picture."""
    headline, name = story_headline(story), f"{story['system']}, campaign {story['campaign']}"
    parts = [
        (f"# {markdown_text(headline.sentence)}", [markdown_text(f"{name}. {headline.lead}")]),
        ("## What is not known", [f"- {markdown_text(each)}" for each in story["unknown"]] or [NOTHING_UNKNOWN]),
        ("## What broke the rules", [f"- {markdown_text(str(each.get('message') or each.get('kind')))}" for each in story["integrity"]]),
        ("## Claims: confirmed on the sealed holdout", [f"- {claim_text(story, each)}" for each in story_claims(story)] or [NO_CLAIMS]),
        ("## Bets: kept on development cases", [f"- {bet_text(story, each)}" for each in bets(story)] or ["None."]),
        ("## What was tried", tried_lines(story) if story["variants"] else ["Nothing yet."]),
        ("## What was agreed before the first variant", [f"- {name}: {markdown_text(value)}" for name, value in agreed_facts(story)]),
        ("## What it took", [f"- {name}: {markdown_text(value)}" for name, value in spent_facts(story)]),
        ("## See for yourself", [f"- {markdown_code(each)}" for each in again_commands(story)]),
    ]
    return "\n\n".join("\n".join([title, "", *lines]) for title, lines in parts if lines) + "\n"


def claim_text(story: JsonObject, claim: JsonObject) -> str:
    """One claim in a line."""
    much = "by how much is opened at the close"
    if claim.get("lower") is not None:
        much = f"at least {gain_text(story, claim['lower'])}, estimate {gain_text(story, claim['gain'])}"
    what = f"{claim['leader']} against {claim['reference']}: {much} (look {claim['look']}, level {claim['level']:.3g})"
    return markdown_text(what)


def bet_text(story: JsonObject, variant: JsonObject) -> str:
    """One bet in a line."""
    return markdown_text(f"{variant['variant']}: {gain_line(story, variant['replicate'])}, {standing_text(variant)}")


def tried_lines(story: JsonObject) -> list[str]:
    """The table of variants."""
    lines = ["| variant | screen | fresh trials | verdict | lesson |", "|---|---|---|---|---|"]
    for each in story["variants"]:
        gains = [gain_line(story, each[step]) for step in ("screen", "replicate")]
        found = [each["variant"], *gains, each["verdict"], each["lesson"] or ""]
        lines.append(f"| {' | '.join(map(markdown_text, found))} |")
    return lines

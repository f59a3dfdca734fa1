"""The report of a campaign on one page.

The picture shows each variant where its screen put it against the leader of its time, where
fresh trials put it afterwards, and the luck line: how good the best of so many useless variants
would look. Every value in it stands in the table as text.
"""

import math

from kaizen.campaigns.story import bets
from kaizen.embed import asset_text
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted
from kaizen.web.campaign_words import (
    NO_CLAIMS,
    NOTHING_UNKNOWN,
    VERDICT_TONES,
    again_commands,
    agreed_facts,
    gain_line,
    gain_text,
    has_range,
    spent_facts,
    standing_text,
    story_claims,
    story_headline,
)
from kaizen.web.page import fill_template, html_text, page_frame
from kaizen.web.pareto_page import round_step
from kaizen.web.review_html import figure_html, list_html, table_html
from kaizen.web.review_words import capitalised

CAMPAIGN_HTML = asset_text("campaign.html")
CAMPAIGN_CSS = asset_text("campaign.css")
TRIED = "figures splits tried"
LATER = "opened at the close"
TRY_WIDTH = 26  # pixels a variant has at least; beyond the width of the page the picture scrolls
# Drawn around the middle of a mark, in pixels.
TRY_SHAPES = {
    "screened": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
    "fresh": "M0 -6l6 6l-6 6l-6 -6z",
    "kept": "M0 -7l7 7l-7 7l-7 -7z",
    "confirmed": "M-7 0a7 7 0 1 0 14 0a7 7 0 1 0 -14 0z",
    "lost": "M-4.5 -4.5l9 9M4.5 -4.5l-9 9",
}
TRY_CLASSES = {"screened": "", "fresh": " fresh-mark", "kept": " kept", "confirmed": " confirmed", "lost": " lost"}
TRY_WORDS = {
    "screened": "one pass (screen)",
    "fresh": "fresh trials, not kept",
    "kept": "fresh trials, kept: a bet",
    "confirmed": "fresh trials, later confirmed: a claim",
    "lost": "worse in the screen",
}


def campaign_page(story: JsonObject) -> str:
    """The page of the *story* of a campaign."""
    headline, kept = story_headline(story), bets(story)
    broken = [html_text(capitalised(str(each.get("message") or each.get("kind")))) for each in story["integrity"]]
    values = {
        "tone": headline.tone,
        "name": html_text(f"{story['system']}, campaign {story['campaign']}" + ("" if story["closed"] else ", still open")),
        "sentence": html_text(headline.sentence),
        "lead": figure_html(headline.lead),
        "unknown": list_html([html_text(each) for each in story["unknown"]]) if story["unknown"] else f"<p>{NOTHING_UNKNOWN}</p>",
        "integrity": f'<section class="card broken"><h2>What broke the rules</h2>{list_html(broken)}</section>' if broken else "",
        "plot": tries_plot(story),
        "claims": claims_table(story),
        "bets": bets_table(story, kept),
        "variants": tried_table(story) if story["variants"] else "<p>Nothing yet.</p>",
        "rules": facts_html(agreed_facts(story)),
        "spent": facts_html(spent_facts(story)),
        "again": f'<div class="again">{"".join(f"<pre>{html_text(each)}</pre>" for each in again_commands(story))}</div>',
    }
    before, between, after = page_frame(f"{story['system']}: campaign {story['campaign']}", "Campaign", CAMPAIGN_CSS, "")
    return before + fill_template(CAMPAIGN_HTML, values) + between + after


def facts_html(facts: list[tuple[str, str]]) -> str:
    """Names and values side by side."""
    return '<dl class="facts">' + "".join(f"<dt>{html_text(name)}</dt><dd>{figure_html(value)}</dd>" for name, value in facts) + "</dl>"


# --- The picture -----------------------------------------------------------------------


def try_kind(variant: JsonObject) -> str:
    """The mark of a variant's last measurement."""
    if variant["verdict"] == "confirmed":
        return "confirmed"
    if variant["decision"] in ("kept", "simplified"):
        return "kept"
    if variant["replicate"]:
        return "fresh"
    return "lost" if variant["verdict"] == "worse" else "screened"


def measured_points(variant: JsonObject) -> list[tuple[str, float, float | None]]:
    """(mark, gain, SE) of what was measured of a variant: the screen, then the fresh trials."""
    found = []
    for key, kind in (("screen", "lost" if variant["verdict"] == "worse" else "screened"), ("replicate", try_kind(variant))):
        body = variant[key]
        if body and body.get("gain") is not None:
            found.append((kind, float(body["gain"]), body.get("se")))
    return found


def try_mark(kind: str, title: str = "") -> str:
    """The shape of a mark, with a *title* for the pointer."""
    told = f"<title>{html_text(title)}</title>" if title else ""
    return f'<path class="dab{TRY_CLASSES[kind]}" d="{TRY_SHAPES[kind]}">{told}</path>'


def tries_plot(story: JsonObject) -> str:
    """Each variant's gains over the leader of its time, with one standard error, and the luck line; a sentence when there is none."""
    tried = [(each, measured_points(each)) for each in story["variants"]]
    tried = [(each, points) for each, points in tried if points]
    if not tried:
        return "<p>No variant has been measured yet.</p>"
    luck = story["luck_line"]
    ends = [gain + sign * (se or 0.0) for _, points in tried for _, gain, se in points for sign in (-1, 1)] + [0.0, luck or 0.0]
    step = round_step(max(max(ends) - min(ends), 1e-6))
    bottom, top = math.floor(min(ends) / step) * step, max(math.ceil(max(ends) / step), 1) * step

    def height(value: float) -> str:
        return f"{100 * (top - value) / (top - bottom):.2f}%"

    scale = [bottom + number * step for number in range(round((top - bottom) / step) + 1)]
    axis, shapes = "", ""
    for value in scale:
        y, line = height(value), "rule" if abs(value) > step / 1e6 else "zero"
        axis += f'<text x="100%" y="{y}" text-anchor="end" dominant-baseline="middle">{html_text(scale_text(story, value))}</text>'
        shapes += f'<line class="{line}" x1="0" x2="100%" y1="{y}" y2="{y}"/>'
    if luck is not None:
        shapes += f'<line class="luck" x1="0" x2="100%" y1="{height(luck)}" y2="{height(luck)}"/>'
    for number, (variant, points) in enumerate(tried):
        x = f"{100 * (number + 0.5) / len(tried):.3f}%"
        for order, (kind, gain, se) in enumerate(points):
            if se is not None:
                line = "fresh" if order else "range"
                shapes += f'<line class="{line}" x1="{x}" x2="{x}" y1="{height(gain - se)}" y2="{height(gain + se)}"/>'
            title = f"{variant['variant']}: {gain_text(story, gain)}, {TRY_WORDS[kind]}"
            shapes += f'<svg x="{x}" y="{height(gain)}" overflow="visible">{try_mark(kind, title)}</svg>'
    spacer = f'<svg class="spacer" width="{TRY_WIDTH * len(tried)}" height="1" focusable="false"></svg>'
    label = f"Gains of {counted(len(tried), 'variant')} over the leader of their time; every value stands in the table below."
    kinds = dict.fromkeys(kind for _, points in tried for kind, _, _ in points)
    legend = "".join(f"<li>{sample_html(kind)}{TRY_WORDS[kind]}</li>" for kind in TRY_SHAPES if kind in kinds)
    legend += "<li>vertical line: one standard error</li>"
    if luck is not None:
        line = f"luck line: the best of {counted(len(tried), 'useless variant')} would look {gain_text(story, luck)} better in one pass"
        legend += f'<li><span class="dash"></span>{figure_html(line)}</li>'
    return (
        f'<figure><div class="tries-frame"><svg class="tries" aria-hidden="true" focusable="false">{axis}</svg>'
        f'<div class="tries-scroll" role="img" tabindex="0" aria-label="{html_text(label)}">'
        f'<div class="tries-wide"><svg class="tries" focusable="false">{shapes}</svg>{spacer}</div></div></div>'
        f'<figcaption><ul class="legend">{legend}</ul></figcaption></figure>'
    )


def scale_text(story: JsonObject, value: float) -> str:
    """A label of the scale."""
    text = f"{100 * value:+.3g}" if has_range(story) else f"{value:+.3g}"
    return "0" if float(text) == 0 else text.replace("-", "\u2212")


def sample_html(kind: str) -> str:
    """A mark in a line of text."""
    return f'<svg class="sample" aria-hidden="true" focusable="false"><svg x="50%" y="50%">{try_mark(kind)}</svg></svg>'


# --- Tables ----------------------------------------------------------------------------


def named_html(name: str, value: str) -> str:
    """The markup *value* of a cell, with the *name* of its column for screens on which cells stand below each other."""
    return f'<span class="cap">{name} </span>{value}'


def claims_table(story: JsonObject) -> str:
    """The claims with bound and estimate; a sentence when there is none."""
    rows = []
    for claim in story_claims(story):
        bound = gain_text(story, claim["lower"]) if claim.get("lower") is not None else LATER
        rows.append(
            [
                f"<b>{html_text(str(claim['leader']))}</b><small>against {html_text(str(claim['reference']))}</small>",
                named_html("At least", figure_html(bound)),
                named_html("Estimate", figure_html(gain_text(story, claim["gain"]) if claim.get("gain") is not None else LATER)),
                figure_html(f"look {claim['look']}, level {claim['level']:.3g}"),
            ]
        )
    columns = ["Variant", "At least", "Estimate", "Said by"]
    return table_html("Claims", columns, rows, TRIED) if rows else f"<p>{NO_CLAIMS}</p>"


def bets_table(story: JsonObject, kept: list[JsonObject]) -> str:
    """What was kept and not confirmed; a sentence when there is nothing."""
    rows = []
    for each in kept:
        gain = figure_html(gain_line(story, each["replicate"]))
        rows.append([f"<b>{html_text(each['variant'])}</b>", gain, html_text(standing_text(each))])
    table = table_html("Bets", ["Variant", "Gain on development cases, fresh", "Now"], rows, TRIED) if rows else "<p>None.</p>"
    return table + "<p><small>A bet was chosen because it looked good here; what it is worth, only the holdout says.</small></p>"


def tried_table(story: JsonObject) -> str:
    """Every variant, oldest first."""
    rows = []
    for each in story["variants"]:
        title = f"<small>{html_text(each['title'] or each['hypothesis'])}</small>" if each["title"] or each["hypothesis"] else ""
        marks = [f"label {each['label']}"] if each["label"] else []
        marks += ["holds text of development cases"] if each["is_memorised"] else []
        tone = VERDICT_TONES.get(each["verdict"], "")
        word = f'<span class="word {tone}">{html_text(each["verdict"].replace("_", " "))}</span>'
        word += f"<small>{html_text(each['decision'])}</small>" if each["decision"] and each["decision"] != each["verdict"] else ""
        source = " · ".join(filter(None, [each["commit"][:7], each["category"], *marks]))
        rows.append(
            [
                f"<b>{html_text(each['variant'])}</b> <small>{html_text(source)}</small>{title}",
                named_html("Screen", figure_html(gain_line(story, each["screen"]))),
                named_html("Fresh", figure_html(gain_line(story, each["replicate"]))),
                word,
                html_text(each["lesson"]) if each["lesson"] else '<span class="missing">none written</span>',
            ]
        )
    return table_html("Variants", ["Variant", "Screen, one pass", "Fresh trials", "Verdict", "Lesson"], rows, TRIED)

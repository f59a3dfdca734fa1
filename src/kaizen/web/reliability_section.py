"""The page's section on how sure the change is: interval plot, strip of cases, table.

The shapes are SVG made here; whatever they show stands beside them as text, so they are
hidden from screen readers.
"""

from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted
from kaizen.policy.reliability import ROLES_COMPARED
from kaizen.policy.reliability_words import (
    chance_text,
    change_text_of,
    excluded_text_of,
    fraction_percent,
    limits_text,
    noise_text,
    obstacle_text,
    points_text,
    probability_text,
    settle_text,
    smallest_effect_text,
    verdict_text,
)
from kaizen.web.page import html_text
from kaizen.web.review_html import figure_html, table_html

STRIP_ROWS = 12  # dots in the tallest column of the strip; above, a dot stands for several cases
STRIP_COLUMNS = 41  # places for differences from -1 to 1
SECTION_TONES = {"better": "good", "worse": "bad", "insufficient_evidence": "warn"}


def reliability_html(entry: JsonObject | None) -> str:
    """The section as markup; '' when nothing was compared."""
    if entry is None or not entry["n"]:
        return ""
    settings = entry["settings"]
    sentences = [smallest_effect_text(entry), settle_text(entry)]
    gate = (
        "The reliability block of evaluation.json asks for this: it can hold a candidate back, never let one through."
        if entry["gates"]
        else "No gate hangs on this: evaluation.json has no reliability block."
    )
    tone, sentence = SECTION_TONES[entry["verdict"]], html_text(sure_sentence(entry, settings))
    parts = [
        f'<section class="card sure tone-{tone}" aria-labelledby="sure-title">',
        '<h2 id="sure-title">How sure is this?</h2>',
        f'<p class="sure-verdict"><span class="sign sign-{tone}" aria-hidden="true"></span> {sentence}</p>',
        interval_plot(entry),
        strip_html(entry),
        *[f"<p>{html_text(text)}</p>" for text in sentences if text],
        numbers_table(entry),
        groups_table(entry),
        f'<p class="small">{html_text(gate)}</p>',
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def sure_sentence(entry: JsonObject, settings: JsonObject) -> str:
    """The verdict as a sentence."""
    if entry["verdict"] == "insufficient_evidence":
        return f"Not decided: {'; '.join(obstacle_text(code, entry, settings) for code in entry['reasons'])}."
    return f"{verdict_text(entry, settings)[:1].upper()}{verdict_text(entry, settings)[1:]}."


def plot_place(value: float, reach: float) -> str:
    """Where *value* lies between -*reach* and *reach*, in percent of the width."""
    return f"{min(100.0, max(0.0, 50 + 50 * value / reach)):.3f}%"


def plot_reach(entry: JsonObject) -> float:
    """How far the scale goes on either side of 0: what holds the interval, in steps of ten points."""
    limits = entry["interval"] or [entry["delta"]["value"]] * 2
    largest = max(abs(limit) for limit in (*limits, entry["delta"]["value"]))
    return min(1.0, max(0.1, -int(-10 * largest // 1) / 10))


def interval_plot(entry: JsonObject) -> str:
    """The change with its interval on a scale around 0, as SVG with the exact values as text."""
    reach = plot_reach(entry)
    shapes = '<line class="axis" x1="0" x2="100%" y1="50%" y2="50%"/><line class="zero" x1="50%" x2="50%" y1="0" y2="100%"/>'
    if entry["interval"]:
        low, high = (plot_place(limit, reach) for limit in entry["interval"])
        shapes += f'<line class="range" x1="{low}" x2="{high}" y1="50%" y2="50%"/>'
    shapes += f'<circle class="point" cx="{plot_place(entry["delta"]["value"], reach)}" cy="50%" r="7"/>'
    ticks = "".join(f"<i>{figure_html(f'{100 * value:+.0f}'.replace('+0', '0'))}</i>" for value in (-reach, 0, reach))
    svg = f'<svg class="track track-candidate" width="100%" height="28" focusable="false">{shapes}</svg>'
    text = points_text(entry["delta"]["value"]).removesuffix(" points")
    return (
        f'<div class="chart sure-chart" aria-hidden="true"><div class="chart-row"><span class="chart-name">Change</span>{svg}'
        f'<span class="chart-value">{text}</span></div>'
        f'<div class="chart-row chart-scale"><span></span><span class="ticks">{ticks}</span><span></span></div></div>'
        f'<p class="sure-exact">{figure_html(change_text_of(entry))}</p>'
    )


def strip_html(entry: JsonObject) -> str:
    """A dot for every case that moved, from all trials lost to all won; the columns are counts, which the caption says."""
    columns: dict[int, int] = {}
    for value, times in entry["strip"]:
        if value:
            # Whatever moved at all stands beside the middle, never in it.
            place = round(value * (STRIP_COLUMNS // 2)) or (1 if value > 0 else -1)
            columns[place] = columns.get(place, 0) + times
    unit, moved = entry["unit"], sum(columns.values())
    still = entry["n"] - moved
    if not moved:
        return f"<p>No {unit} came out differently: all {still:,} are where they were.</p>"
    each = -(-max(columns.values()) // STRIP_ROWS)
    tallest = -(-max(columns.values()) // each)
    dots = []
    for place, times in sorted(columns.items()):
        x = 50 + 47 * place / (STRIP_COLUMNS // 2)
        kind = "won" if place > 0 else "lost"
        dots += [f'<circle class="{kind}" cx="{x:.2f}%" cy="{9 * (tallest - row) - 3}" r="3.5"/>' for row in range(-(-times // each))]
    height = 9 * tallest + 8
    base = f'<line class="zero" x1="0" x2="100%" y1="{height - 2}" y2="{height - 2}"/>'
    base += f'<line class="zero" x1="50%" x2="50%" y1="0" y2="{height}"/>'
    per = "a dot is one" if each == 1 else f"a dot is up to {each:,}"
    gained = sum(times for place, times in columns.items() if place > 0)
    sides = f"{counted(moved - gained, unit)} lost ground (left), {gained:,} gained (right)"
    text = f"{sides}, {still:,} did not move and are not drawn; {per}."
    return (
        f'<figure class="strip"><svg width="100%" height="{height}" focusable="false" aria-hidden="true">{base}{"".join(dots)}</svg>'
        f'<figcaption class="small">{html_text(text)}</figcaption></figure>'
    )


def numbers_table(entry: JsonObject) -> str:
    """Tests, noise and what was left out, as a table."""
    flaky, needed, units = entry["flaky"], entry["informative_needed"], f"{entry['unit'].capitalize()}s that differ"
    p_values = [probability_text(entry["sign_flip"][side]) for side in ("better", "worse")]
    better, equal = chance_text(entry, "better"), chance_text(entry, "equal")
    rows = [
        ("Chance that it is better", f"{better}, that it is equal {equal}", "exact bootstrap over cases"),
        ("Sign-flip test", f"p {p_values[0]} for better, {p_values[1]} for worse", "exact, one-sided"),
        (units, f"{entry['informative']:,} of {entry['n']:,}", f"at least {needed} before any test can tell"),
        (
            "Flaky",
            f"{flaky['baseline']['count']:,} before, {flaky['candidate']['count']:,} now",
            f"{entry['newly_flaky']['count']:,} newly; {flaky['candidate']['unknown']:,} ran too seldom to say",
        ),
        ("Noise of the trials", noise_text(entry), ""),
    ]
    if entry["mcnemar"]:
        exact, mid = (probability_text(entry["mcnemar"][name]) for name in ("exact", "mid"))
        rows.insert(2, ("McNemar's test", f"p {exact}, mid-p {mid}", "exact, two-sided"))
    rows += [(f"Left out, {role}", excluded_text_of(entry, role), "") for role in ROLES_COMPARED if excluded_text_of(entry, role)]
    smalls = [f" <small>{figure_html(small)}</small>" if small else "" for _, _, small in rows]
    cells = [[html_text(name), figure_html(text) + small] for (name, text, _), small in zip(rows, smalls, strict=True)]
    return table_html("How sure the change is", [], cells, "figures splits sure-figures")


def groups_table(entry: JsonObject) -> str:
    """Change by split and tag, folded away and labelled exploratory; '' when there is none."""
    found = entry["groups"]
    if not found["groups"]:
        return ""
    rows = []
    for group in found["groups"]:
        delta = group["delta"]
        change = f"{points_text(delta['value'])} ({limits_text(group['interval'])})" if delta else "not measured"
        rates = [figure_html(fraction_percent(group["rates"][role])) for role in ROLES_COMPARED]
        name = f"{html_text(group['name'])} <small>{group['kind']}</small>"
        rows.append([name, f"{group['cases']:,}", *rates, figure_html(change), html_text(probability_text(group["p_adjusted"]))])
    more = f"<p>and {counted(found['left_out'], 'smaller group')}</p>" if found["left_out"] else ""
    table = table_html("Change by split and tag", ["Group", "Cases", "Before", "Now", "Change", "p"], rows, "figures splits")
    note = f"Exploratory: look here for ideas, not for proof. p-values are adjusted for {counted(found['family'], 'group')} (Holm)."
    return f'<details class="sure-groups"><summary>By split and tag</summary><p class="small">{html_text(note)}</p>{table}{more}</details>'


def reliability_markdown(entry: JsonObject | None) -> list[str]:
    """The section in review.md: verdict and what would settle it, as sentences; [] when nothing was compared."""
    if entry is None or not entry["n"]:
        return []
    return [sure_sentence(entry, entry["settings"]), *[text for text in (smallest_effect_text(entry), settle_text(entry)) if text]]

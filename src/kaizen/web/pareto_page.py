"""The page of `kaizen pareto`: quality against cost, and why others are left out.

The shapes are SVG made here; every value they show stands in the tables as text.
"""

import math

from kaizen.embed import asset_text
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, dollars, duration
from kaizen.web.page import fill_template, html_text, page_frame
from kaizen.web.review_html import figure_html, list_html, table_html
from kaizen.web.review_words import NOT_MEASURED, capitalised, interval_text, rate_percent

PARETO_HTML = asset_text("pareto.html")
PARETO_CSS = asset_text("pareto.css")
PARETO_TICKS = 4
NAMED_POINTS = 24  # variants named in the picture; more would only cover each other, the table has them all


def pareto_page(name: str, document: JsonObject) -> str:
    """The page of the improvement *name* for the *document* of pareto.json."""
    best, entries = document["cheapest_feasible"], document["variants"]
    able = [entry for entry in entries if entry["status"] in ("front", "dominated")]
    out = [entry for entry in entries if entry not in able]
    sentence = f"Cheapest that will do: {best}" if best is not None else "No variant is known to meet every constraint"
    lead = f"Of {counted(len(entries), 'variant')} {len(able)} {'meets' if len(able) == 1 else 'meet'} every constraint"
    values = {
        "tone": "good" if best is not None else "warn",
        "name": html_text(name),
        "sentence": html_text(sentence),
        "lead": html_text(f"{lead}; {len(document['front'])} on the front: no other is nowhere worse and somewhere better."),
        "notes": list_html([html_text(capitalised(note)) for note in document["notes"]]) if document["notes"] else "<p>Nothing.</p>",
        "plot": front_plot(able),
        "able": variants_table("Variants that meet every constraint", document, able) if able else "<p>None.</p>",
        "out": variants_table("Variants left out", document, out) if out else "<p>None.</p>",
    }
    before, between, after = page_frame(f"{name}: variants", "Pareto", PARETO_CSS, "")
    return before + fill_template(PARETO_HTML, values) + between + after


def round_step(span: float) -> float:
    """The step of 1, 2 or 5 times a power of ten that cuts *span* into four parts or a little fewer."""
    rough = span / PARETO_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10, 20) if power * factor >= rough)


def front_plot(entries: list[JsonObject]) -> str:
    """Each of *entries* as a point, cost to the right and quality upwards, with its interval; a sentence when there is none."""
    if not entries:
        return "<p>There is nothing to draw.</p>"
    limits = [limit for entry in entries for limit in (*(entry["interval"] or ()), entry["quality"]["value"])]
    rise = round_step(max(0.04, max(limits) - min(limits)))
    lowest, highest = math.floor(min(limits) / rise), -math.floor(-max(limits) / rise)
    bottom, top = lowest * rise, max(highest, lowest + 1) * rise
    most = max(entry["mean_cost_usd"] for entry in entries)
    step = round_step(max(most, 1e-9)) if most else 1.0
    right = step * max(1, -int(-most / step // 1))

    def place(entry: JsonObject) -> str:
        return f"{100 * entry['mean_cost_usd'] / right:.3f}%"

    def height(value: float) -> str:
        return f"{100 * (top - value) / (top - bottom):.3f}%"

    shapes = ""
    for number in range(round((top - bottom) / rise) + 1):
        y, label = height(bottom + number * rise), figure_html(f"{100 * (bottom + number * rise):.0f} %")
        shapes += f'<line x1="0" x2="100%" y1="{y}" y2="{y}"/>'
        shapes += f'<text class="scale" x="-8" y="{y}" text-anchor="end" dominant-baseline="middle">{label}</text>'
    for number in range(round(right / step) + 1):
        x = f"{100 * number * step / right:.3f}%"
        shapes += f'<line x1="{x}" x2="{x}" y1="0" y2="100%"/>'
        shapes += f'<text class="scale" x="{x}" y="100%" dy="1.5em" text-anchor="middle">{html_text(dollars(number * step))}</text>'
    for entry in entries:
        if entry["interval"]:
            low, high = (height(limit) for limit in entry["interval"])
            shapes += f'<line class="range" x1="{place(entry)}" x2="{place(entry)}" y1="{low}" y2="{high}"/>'
    for number, entry in enumerate(sorted(entries, key=lambda entry: str(entry["status"]))):  # dominated ones below those on the front
        x, y = place(entry), height(entry["quality"]["value"])
        shapes += f'<circle class="{entry["status"]}" cx="{x}" cy="{y}" r="6"/>'
        if number < NAMED_POINTS:
            shapes += f'<text x="{x}" y="{y}" dx="10" dy="-8">{html_text(short_name(entry["name"]))}</text>'
    legend = "Cost of a case to the right, pass rate upwards with its 95 % interval; filled: on the front."
    return (
        f'<figure><div class="front-frame"><svg class="front-plot" aria-hidden="true" focusable="false">{shapes}</svg></div>'
        f'<figcaption class="small">{figure_html(legend)}</figcaption></figure>'
    )


def short_name(name: str) -> str:
    """*name*, cut where it would not fit into the picture."""
    return name if len(name) <= 18 else name[:17] + "…"


def variants_table(caption: str, document: JsonObject, entries: list[JsonObject]) -> str:
    """The exact values of *entries*, and what stands against them."""
    is_out = any(entry["reasons"] for entry in entries)
    columns = ["Variant", "Pass rate", "Cost of a case"]
    columns += (["p95 duration"] if "latency" in document["axes"] else []) + (["Why"] if is_out else [])
    rows = []
    for entry in entries:
        marks = ["on the front" if entry["status"] == "front" else entry["status"].replace("_", " ")]
        marks += ["cheapest feasible"] if entry["name"] == document["cheapest_feasible"] else []
        why = "".join(f'<span class="why">{html_text(capitalised(reason["text"]))}</span>' for reason in entry["reasons"])
        rate = figure_html(rate_percent(entry["quality"]))
        if entry["interval"]:
            rate += f" <small>{figure_html(interval_text({'low': entry['interval'][0], 'high': entry['interval'][1]}))}</small>"
        cost = NOT_MEASURED if entry["mean_cost_usd"] is None else dollars(entry["mean_cost_usd"])
        row = [f"<b>{html_text(entry['name'])}</b> <small>{html_text(', '.join(marks))}</small>", rate, html_text(cost)]
        if "latency" in document["axes"]:
            row.append(html_text(latency_text(entry)))
        rows.append([*row, why] if is_out else row)
    return table_html(caption, columns, rows, "figures splits variants")


def latency_text(entry: JsonObject) -> str:
    """'1.2 s (800 ms to 2.0 s)'; 'no upper limit' where too few trials give one."""
    if entry["latency_p95_ms"] is None:
        return NOT_MEASURED
    low, high = entry["latency_interval_ms"]
    limits = [word if limit is None else duration(limit / 1000) for limit, word in ((low, "no lower limit"), (high, "no upper limit"))]
    return f"{duration(entry['latency_p95_ms'] / 1000)} ({' to '.join(limits)})"

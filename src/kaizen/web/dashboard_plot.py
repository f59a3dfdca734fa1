"""The picture of the dashboard: quality, cost and duration of every run, as SVG.

The runs stand side by side in the order recorded. A band is a stretch of runs of one cohort;
the champion's line goes through the runs of a band and never into the next. What each mark
means is told by its shape. Every value stands in the table of runs as text.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, duration, listed, money
from kaizen.web.dashboard_words import run_name, stated_text, trial_cost, trial_time
from kaizen.web.page import html_text
from kaizen.web.pareto_page import round_step, short_name
from kaizen.web.review_words import interval_text, rate_percent

# Drawn around the middle of a mark, in pixels.
MARK_SHAPES = {
    "champion": "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0 -12 0z",
    "anchor": "M-5 -5h10v10h-10z",
    "pending": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
    "rejected": "M-4.5 -4.5l9 9M4.5 -4.5l-9 9",
    "other": "M0 -6l6 6l-6 6l-6 -6z",
}
MARK_WORDS = {
    "champion": "promoted",
    "anchor": "anchor of a cohort",
    "pending": "decision open",
    "rejected": "rejected",
    "other": "recorded, neither promoted nor rejected",
}
RUN_WIDTH = 14  # pixels a run has at least; beyond the width of the page the picture scrolls
NAMED_APART = 90  # pixels between two versions that are named below


class CohortBand(NamedTuple):
    """A stretch of runs of one cohort: its letter, cohort, first run, and the run behind its last."""

    letter: str
    cohort: str
    first: int
    end: int


class Panel(NamedTuple):
    """One of the pictures: name, values by run (None: not measured), limits by run, text of a value, scale's ends and step."""

    kind: str
    title: str
    values: list[float | None]
    limits: list[tuple[float, float] | None]
    text: Callable[[float], str]
    bottom: float
    top: float
    step: float

    def height(self, value: float) -> str:
        """Where *value* stands, from above."""
        return f"{100 * (self.top - value) / (self.top - self.bottom):.2f}%"


def cohort_letters(rows: list[JsonObject]) -> dict[str, str]:
    """A short name of each cohort in the order of appearance: A, B, … Z, A2, B2 …; '?' for runs that cannot be trusted."""
    cohorts = dict.fromkeys(row["cohort"] for row in rows if not row["problem"])
    return {
        "": "?",
        **{cohort: chr(65 + number % 26) + (str(number // 26 + 1) if number > 25 else "") for number, cohort in enumerate(cohorts)},
    }


def cohort_bands(rows: list[JsonObject]) -> list[CohortBand]:
    """The stretches of runs of one cohort, in the order recorded."""
    letters = cohort_letters(rows)
    bands: list[CohortBand] = []
    for number, row in enumerate(rows):
        cohort = "" if row["problem"] else row["cohort"]
        if bands and bands[-1].cohort == cohort:
            bands[-1] = bands[-1]._replace(end=number + 1)
        else:
            bands.append(CohortBand(letters[cohort], cohort, number, number + 1))
    return bands


def mark_kind(row: JsonObject) -> str:
    """The mark that stands for *row*."""
    if row["promoted_at"]:
        return "champion"
    if row["kind"] == "anchor":
        return "anchor"
    decision = row["decision"]
    if row["recommendation"] == "rejected" or (decision and decision["status"] == "rejected"):
        return "rejected"
    is_open = row["recommendation"] is not None and not row["superseded_by"] and (decision is None or decision["status"] == "pending")
    return "pending" if is_open else "other"


def mark_svg(kind: str, title: str = "") -> str:
    """The shape of a mark, with a *title* for the pointer."""
    told = f"<title>{html_text(title)}</title>" if title else ""
    return f'<path class="mark {kind}" d="{MARK_SHAPES[kind]}">{told}</path>'


def mark_sample(kind: str) -> str:
    """The mark *kind* in a line of text."""
    return f'<svg class="sample" aria-hidden="true" focusable="false"><svg x="50%" y="50%">{mark_svg(kind)}</svg></svg>'


def run_x(number: int, count: int) -> str:
    """Where the run *number* of *count* stands, from the left."""
    return f"{100 * (number + 0.5) / count:.3f}%"


def board_panels(rows: list[JsonObject]) -> list[Panel]:
    """Pass rate, cost and duration of *rows*; a panel without a value is left out, but for the first."""
    sides = [row["rates"]["candidate"] if not row["problem"] else {} for row in rows]
    rates = [side["rate"]["value"] if side.get("rate") else None for side in sides]
    limits = [(side["low"], side["high"]) if side.get("rate") and side.get("low") is not None else None for side in sides]
    known = [value for value in rates if value is not None] + [end for each in limits if each for end in each]
    step = round_step(max(0.04, max(known, default=1) - min(known, default=0)))
    bottom = max(0.0, math.floor(min(known, default=0) / step + 1e-9) * step)
    top = min(1.0, math.ceil(max(known, default=1) / step - 1e-9) * step)
    panels = [Panel("quality", "Pass rate", rates, limits, percent_text, bottom, max(top, bottom + step), step)]
    for kind, title, key, text in (
        ("cost", "Mean cost of a trial, USD", "mean_cost_usd", money),
        ("time", "Median duration", "median_duration_ms", time_label),
    ):
        values = [side.get(key) for side in sides]
        most = max((value for value in values if value is not None), default=None)
        if most is not None:
            step = round_step(most * 2) if most else 1.0
            panels.append(Panel(kind, title, values, [None] * len(rows), text, 0.0, max(1, math.ceil(most / step - 1e-9)) * step, step))
    return panels


def percent_text(value: float) -> str:
    """A label of the scale of rates."""
    return f"{100 * value:.0f}\u00a0%"


def time_label(milliseconds: float) -> str:
    """A label of the scale of durations."""
    return duration(milliseconds / 1000)


def scale_values(panel: Panel) -> list[float]:
    """The values that have a line and a label."""
    return [panel.bottom + number * panel.step for number in range(math.floor((panel.top - panel.bottom) / panel.step + 1e-9) + 1)]


def axis_svg(panel: Panel) -> str:
    """The labels of the scale, which stay when the picture scrolls."""
    texts = "".join(
        f'<text x="100%" y="{panel.height(value)}" text-anchor="end" dominant-baseline="middle">{html_text(panel.text(value))}</text>'
        for value in scale_values(panel)
    )
    return f'<svg class="axis {panel.kind}" focusable="false">{texts}</svg>'


def panel_svg(panel: Panel, rows: list[JsonObject], bands: list[CohortBand]) -> str:
    """One picture: bands, scale, the champion's line within each band, intervals, marks."""
    count = len(rows)
    shapes = []
    for number, band in enumerate(bands):
        left, width = 100 * band.first / count, 100 * (band.end - band.first) / count
        shapes.append(f'<rect class="band{" odd" if number % 2 else ""}" x="{left:.3f}%" width="{width:.3f}%" y="0" height="100%"/>')
        if number:
            shapes.append(f'<line class="border" x1="{left:.3f}%" x2="{left:.3f}%" y1="0" y2="100%"/>')
    shapes += [f'<line class="rule" x1="0" x2="100%" y1="{y}" y2="{y}"/>' for y in map(panel.height, scale_values(panel))]
    for band in bands:
        shapes += track_lines(panel, rows, band)
    for number, limits in enumerate(panel.limits):
        if limits:
            x, low, high = run_x(number, count), panel.height(limits[0]), panel.height(limits[1])
            shapes.append(f'<line class="range{" track" if rows[number]["is_track"] else ""}" x1="{x}" x2="{x}" y1="{low}" y2="{high}"/>')
    for number, (row, value) in enumerate(zip(rows, panel.values, strict=True)):
        if value is not None:
            shapes.append(f'<svg x="{run_x(number, count)}" y="{panel.height(value)}">{mark_svg(mark_kind(row), run_title(row))}</svg>')
    return f'<svg class="panel {panel.kind}" focusable="false">{"".join(shapes)}</svg>'


def track_lines(panel: Panel, rows: list[JsonObject], band: CohortBand) -> list[str]:
    """The champion's line through the runs of *band*."""
    places = [(number, panel.values[number]) for number in range(band.first, band.end) if rows[number]["is_track"]]
    known = [(run_x(number, len(rows)), panel.height(value)) for number, value in places if value is not None]
    return [f'<line class="way" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>' for (x1, y1), (x2, y2) in pairwise(known)]


def run_title(row: JsonObject) -> str:
    """What the pointer is told about a run."""
    rates = row["rates"]["candidate"]
    parts = [rate_percent(rates["rate"]), interval_text(rates), trial_cost(rates), trial_time(rates), stated_text(row)]
    return f"{run_name(row)}, {row['label'][:60]}: " + ", ".join(filter(None, parts))


def names_svg(rows: list[JsonObject], bands: list[CohortBand]) -> str:
    """Letters of the bands and, where there is room, the numbers of the runs and the versions that were promoted."""
    count, texts, last = len(rows), [], -math.inf
    for band in bands:
        texts.append(
            f'<text class="letter" x="{50 * (band.first + band.end) / count:.3f}%" y="0.9em" text-anchor="middle">{band.letter}</text>'
        )
    apart = max(1, NAMED_APART // RUN_WIDTH) if count > 12 else 1
    for number, row in enumerate(rows):
        is_named = row["promoted_at"] if count > 12 else True
        if is_named and number - last >= apart:
            last = number
            name = f"run {row['seq']}" if row["problem"] else short_name(row["agent_version"])[:10]
            texts.append(f'<text x="{run_x(number, count)}" y="2.5em" text-anchor="middle">{html_text(name)}</text>')
    return f'<svg class="names" focusable="false">{"".join(texts)}</svg>'


def board_plot(rows: list[JsonObject]) -> str:
    """The whole picture with its legend."""
    bands, panels = cohort_bands(rows), board_panels(rows)
    axes = "".join(f'<div class="cap"></div>{axis_svg(panel)}' for panel in panels)
    pictures = "".join(f'<p class="cap">{html_text(panel.title)}</p>{panel_svg(panel, rows, bands)}' for panel in panels)
    kinds = dict.fromkeys(mark_kind(row) for row in rows if not row["problem"])
    legend = "".join(f"<li>{mark_sample(kind)}{MARK_WORDS[kind]}</li>" for kind in MARK_SHAPES if kind in kinds)
    lacking = [word for kind, word in (("cost", "costs"), ("time", "durations")) if kind not in [panel.kind for panel in panels]]
    missing = f"<li>{' and '.join(lacking)}: not measured in any run</li>" if lacking else ""
    label = f"{listed([panel.title for panel in panels])} of {counted(len(rows), 'run')}; every value stands in the table of runs."
    spacer = f'<svg class="spacer" width="{RUN_WIDTH * len(rows)}" height="1" focusable="false"></svg>'
    return (
        f'<figure><div class="plot"><div class="axes" aria-hidden="true">{axes}</div>'
        f'<div class="scroll" id="plot" role="img" tabindex="0" aria-label="{html_text(label)}">'
        f'<div class="pictures">{pictures}{names_svg(rows, bands)}{spacer}</div></div></div>'
        f'<figcaption><ul class="legend">{legend}'
        "<li>vertical line: 95 % interval</li><li>letters: cohorts; no line leads from one to another</li>"
        f"{missing}</ul></figcaption></figure>"
    )

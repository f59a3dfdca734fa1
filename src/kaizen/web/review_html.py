"""The parts of the review page that need no JavaScript: sentence, numbers, reasons."""

from typing import Any, NamedTuple

from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted
from kaizen.web.page import html_text
from kaizen.web.review_words import (
    LOST_GROUPS,
    NOT_MEASURED,
    capitalised,
    decision_sentence,
    delta_text,
    derived_rows,
    number_rows,
    rate_percent,
    side_text,
)

STATIC_CASES = 200  # regressions listed in plain HTML, for a reader without JavaScript
REASON_CASES = 8
TONES = {"eligible": "good", "rejected": "bad", "manual_review": "warn", None: "calm"}


class StaticRow(NamedTuple):
    """A case in the plain list: id, group, row of comparison.json, what decided it in the candidate."""

    id: str
    group: str
    row: JsonObject
    note: str


def table_html(caption: str, columns: list[str], rows: list[list[str]], kind: str = "") -> str:
    """A table with an unseen caption, column headings (none: no heading row), and rows whose first cell heads the row; cells are markup."""
    head = "".join(f'<th scope="col" role="columnheader">{cell}</th>' for cell in columns)
    head = f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n' if columns else ""
    body = ""
    for row in rows:
        cells = "".join(f'<td role="cell">{cell}</td>' for cell in row[1:])
        body += f'<tr role="row"><th scope="row" role="rowheader">{row[0]}</th>{cells}</tr>\n'
    # The roles say again what the elements say, for browsers that forget it where narrow screens stack the cells.
    start = f'<table class="{kind}" role="table">' if kind else '<table role="table">'
    return f'{start}<caption class="unseen">{html_text(caption)}</caption>\n{head}<tbody role="rowgroup">\n{body}</tbody></table>'


def list_html(items: list[str], kind: str = "") -> str:
    """A list of markup items."""
    start = f'<ul class="{kind}">' if kind else "<ul>"
    return start + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def notes_html(comparison: JsonObject) -> str:
    """What is not known, as a list; a sentence when the comparison notes nothing."""
    if comparison["notes"]:
        return list_html([html_text(capitalised(note)) for note in comparison["notes"]])
    return "<p>Nothing is missing from the evidence: every planned trial gave a verdict.</p>"


def chart_html(comparison: JsonObject, roles: list[str]) -> str:
    """Pass rate and interval of each stage on one scale, as SVG; the exact values stand in the table below it."""
    lines = []
    for role in roles:
        rates = comparison["rates"][role]
        shapes = '<line class="axis" x1="0" x2="100%" y1="50%" y2="50%"/>'
        if rates["rate"] is not None:
            point = f"{100 * rates['rate']['numerator'] / rates['rate']['denominator']:.3f}%"
            if rates.get("low") is not None:
                limits = f'x1="{100 * rates["low"]:.3f}%" x2="{100 * rates["high"]:.3f}%"'
                shapes += f'<line class="range" {limits} y1="50%" y2="50%"/>'
            shapes += f'<circle class="point" cx="{point}" cy="50%" r="7"/>'
        value = html_text(rate_percent(rates["rate"]))
        svg = f'<svg class="track track-{role}" width="100%" height="24" focusable="false">{shapes}</svg>'
        name = f'<span class="chart-name">{html_text(role.capitalize())}</span>'
        lines.append(f'<div class="chart-row">{name}{svg}<span class="chart-value">{value}</span></div>')
    scale = '<span></span><span class="ticks"><i>0 %</i><i>50 %</i><i>100 %</i></span><span></span>'
    scale = f'<div class="chart-row chart-scale">{scale}</div>'
    return f'<div class="chart" aria-hidden="true">{"".join(lines)}{scale}</div>'


def figure_html(text: str) -> str:
    """Our own *text* with numbers, which do not part from their unit at the end of a line."""
    return html_text(text.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0"))


def role_columns(names: dict[str, str]) -> list[str]:
    """Column headings of the roles; the stage's name stands beside where it is another word."""
    return [html_text(role.capitalize()) + (f" <small>{html_text(name)}</small>" if name != role else "") for role, name in names.items()]


def numbers_html(comparison: JsonObject, names: dict[str, str]) -> str:
    """The numbers of the stages side by side; *names* are the stage names by role."""
    columns = role_columns(names)
    sides = [number_rows(comparison["rates"][role]) for role in names]
    rows = []
    for entries in zip(*sides, strict=True):
        cells = []
        for _, value, small in entries:
            kind = ' class="missing"' if value == NOT_MEASURED else ""
            cells.append(f"<span{kind}>{figure_html(value)}</span>" + (f" <small>{figure_html(small)}</small>" if small else ""))
        rows.append([html_text(entries[0][0]), *cells])
    table = table_html("Numbers of the stages side by side", ['<span class="unseen">Measure</span>', *columns], rows, "figures")
    if len(names) < 2:
        return table
    return f'{table}\n<p class="delta">Change of the pass rate: <strong>{html_text(delta_text(comparison))}</strong></p>'


def derived_html(comparison: JsonObject, names: dict[str, str]) -> str:
    """The derived metrics with what they rest on; '' when there are none."""
    rows = []
    for name, expression, sides, change in derived_rows(comparison, list(names)):
        cells = [f"{figure_html(value)} <small>{figure_html(small)}</small>" for value, small in sides]
        rows.append([f"{html_text(name)} <small>{html_text(expression)}</small>", *cells, *([figure_html(change)] if change else [])])
    columns = ["Metric", *role_columns(names), *(["Change"] if len(names) > 1 else [])]
    return table_html("Derived metrics", columns, rows, "figures") if rows else ""


def splits_html(comparison: JsonObject, names: dict[str, str]) -> str:
    """Rates by split, when the cases have more than one."""
    splits = comparison.get("splits") or {}
    if len(splits) < 2:
        return ""
    rows = []
    for split, entry in splits.items():
        rates = [figure_html(rate_percent(entry.get(role))) for role in names]
        changes = entry.get("changes") or {}
        moved = [f"{changes[key]:,} {key}" for key in ("regressed", "improved") if key in changes] if len(names) > 1 else []
        rows.append([html_text(split), f"{entry['cases']:,}", *rates, html_text(", ".join(moved))])
    columns = ["Split", "Cases", *[html_text(role.capitalize()) for role in names], "Changes"]
    return table_html("Pass rates by split", columns, rows, "figures splits")


def case_link(case_id: str) -> str:
    """A link that opens the case on this page."""
    from urllib.parse import quote

    return f'<a href="#case={html_text(quote(case_id, safe=""))}">{html_text(case_id)}</a>'


def card_html(identity: str, title: str, content: str) -> str:
    """A card with a heading."""
    heading = f'<h2 id="{identity}-title">{title}</h2>'
    return f'<section class="card {identity}" aria-labelledby="{identity}-title">\n{heading}\n{content}\n</section>\n'


def reasons_html(comparison: JsonObject, holdout: frozenset[str]) -> str:
    """All reasons that fired, in the order of the rules, with the first cases of each; the first one decided."""
    if not comparison["reasons"]:
        return "<p>No rule of the acceptance policy speaks against the candidate.</p>"
    items = []
    for number, entry in enumerate(comparison["reasons"]):
        shown = [case_id for case_id in entry["cases"] if case_id not in holdout]
        more = len(entry["cases"]) - min(len(shown), REASON_CASES)
        links = ", ".join(map(case_link, shown[:REASON_CASES]))
        rest = f"{' and ' if links else ''}{counted(more, 'case')} {'more' if links else 'not shown'}" if more else ""
        decided = ' <span class="tag">decided</span>' if not number else ""
        cases = f'<p class="reason-cases">{links}{rest}</p>' if entry["cases"] else ""
        code = f'<code class="code">{html_text(entry["code"])}</code>'
        items.append(f"<p>{html_text(capitalised(entry['text']))}{decided}</p>{cases}<p class=\"small\">rule {entry['rule']} · {code}</p>")
    return list_html(items)


def decision_html(decision: Any, evidence: str, command: str) -> str:
    """The state of the decision, and the command that records one, to be copied."""
    parts = [f"<p>{html_text(decision_sentence(decision, evidence))}</p>"]
    if decision is not None and decision.status != "pending":
        if decision.rationale:
            parts.append(f"<blockquote>{html_text(decision.rationale)}</blockquote>")
        if decision.conditions:
            parts.append("<p>Conditions:</p>" + list_html([html_text(condition) for condition in decision.conditions]))
    parts.append(
        "<p class=\"small\">To record a decision about exactly this evidence, put in who decides and why:</p>"
        f'<div class="command"><pre id="command" tabindex="0">{html_text(command)}</pre>'
        '<button type="button" data-copy="command" hidden>Copy</button></div>'
        '<p class="small">Or with <code>--status rejected</code>, or <code>--status accepted_with_conditions --condition TEXT</code>.</p>'
    )
    return "\n".join(parts)


def static_cases_html(rows: list[StaticRow], has_baseline: bool) -> str:
    """The cases that lost ground (or, without a baseline, that failed), at most 200, as a plain table."""
    wanted = LOST_GROUPS if has_baseline else ("hard", "failed", "flaky")
    lost = [row for row in rows if row.group in wanted]
    what = "regressed or weakened" if has_baseline else "failed"
    if not lost:
        return f'<p class="empty">No case {what}.</p>'
    roles = ["baseline", "candidate"] if has_baseline else ["candidate"]
    body = []
    for row in lost[:STATIC_CASES]:
        sides = [html_text(side_text(row.row[role])) for role in roles]
        body.append([html_text(row.id), html_text((row.row.get("change") or row.group).replace("_", " ")), *sides, html_text(row.note)])
    rest = f"<p>and {len(lost) - STATIC_CASES:,} more</p>" if len(lost) > STATIC_CASES else ""
    intro = f"<p>The {counted(len(lost), 'case')} that {what}. Every other case, outputs and trajectories need JavaScript.</p>"
    columns = ["Case", "Change", *[html_text(role.capitalize()) for role in roles], "What decided"]
    return intro + table_html(f"Cases that {what}", columns, body, "plain") + rest


def command_text(meta: JsonObject) -> str:
    """The command of a stage as one line; what is known instead when it was replayed or not recorded."""
    from shlex import join

    command, source = meta.get("command"), meta.get("replayed_from")
    if isinstance(source, dict):
        return f"replayed from {source.get('file')}"
    return join(map(str, command)) if isinstance(command, list) else "not recorded"


def commit_text(meta: JsonObject) -> str:
    """Commit, branch and whether files were changed; the reason when there is none."""
    commit = meta.get("commit")
    if not isinstance(commit, dict):
        return "not recorded"
    if not commit.get("hash"):
        return str(commit.get("reason") or "none")
    branch = f" on {commit['branch']}" if commit.get("branch") else ""
    return f"{commit['hash']}{branch}" + (", with uncommitted changes" if commit.get("dirty") else "")


def selection_text(meta: JsonObject) -> str:
    """Which cases were run."""
    selection = meta.get("selection")
    chosen = [f"{key} {', '.join(map(str, values))}" for key, values in selection.items() if values] if isinstance(selection, dict) else []
    return "; ".join(chosen) or ("every case" if meta else "not recorded")


def provenance_values(side: JsonObject, meta: JsonObject, results: JsonObject) -> list[tuple[str, str]]:
    """(label, text) of how one stage was made: its entry in comparison.json, its meta file, the meta file of its results."""
    values = [
        ("Command", command_text(meta)),
        ("Commit", commit_text(meta)),
        ("Cases", selection_text(meta)),
        ("Repetitions", str(side["repetitions"])),
        ("Run", " to ".join(str(meta[key]) for key in ("started_at", "finished_at") if meta.get(key))),
        ("Evaluated", str(results.get("evaluated_at") or "")),
        ("Engine", str(meta.get("engine") or results.get("engine") or "")),
        ("Observations", str(side.get("observations_sha256") or "")),
        ("Results", str(side.get("results_sha256") or "")),
    ]
    return [(label, text or "not recorded") for label, text in values]


def provenance_html(comparison: JsonObject, stages: dict[str, tuple[JsonObject, JsonObject, str]], lines: list[str]) -> str:
    """How the stages were made, with digests; *stages* has (meta, results meta, name) by role, *lines* are sentences to add."""
    sides = [provenance_values(comparison[role], meta, results) for role, (meta, results, _) in stages.items()]
    rows = [[entries[0][0], *[html_text(text) for _, text in entries]] for entries in zip(*sides, strict=True)]
    columns = role_columns({role: name for role, (_, _, name) in stages.items()})
    parts = [table_html("How the stages were made", ['<span class="unseen">What</span>', *columns], rows, "provenance")]
    digests = [("Evidence", "evidence"), ("Dataset", "dataset_fingerprint"), ("Evaluators", "evaluator_fingerprint")]
    prints = [[label, f"<code>{html_text(str(comparison[key]))}</code>"] for label, key in digests if comparison.get(key)]
    parts.append(table_html("Fingerprints", [], prints, "provenance"))
    parts += [f"<p>{html_text(line)}</p>" for line in lines]
    return "\n".join(parts)

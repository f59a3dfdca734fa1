"""dashboard.html: are we better, is the candidate eligible, did anything regress.

The page is whole without JavaScript but for the map of cases × runs, which the script draws
from one character a cell. The same history, and the same open decisions, give the same bytes.
"""

from kaizen.embed import asset_text
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed, visible
from kaizen.web.dashboard_data import Board, OpenDecision
from kaizen.web.dashboard_plot import CohortBand, board_plot, cohort_bands, cohort_letters, mark_kind, mark_sample
from kaizen.web.dashboard_words import (
    BoardAnswer,
    board_answers,
    board_verdict,
    day,
    run_name,
    stated_text,
    subject_row,
    trial_cost,
    trial_time,
)
from kaizen.web.page import fill_template, html_text, page_frame, script_data
from kaizen.web.review_html import figure_html, list_html, table_html
from kaizen.web.review_words import NOT_MEASURED, VERDICTS, basis_text, capitalised, delta_text, interval_text, rate_percent

DASHBOARD_HTML = asset_text("dashboard.html")
DASHBOARD_CSS = asset_text("dashboard.css")
DASHBOARD_JS = asset_text("dashboard.js")

SHOWN_PROBLEMS = 20
SHOWN_DECISIONS = 6
CASE_ROWS, MORE_CASE_ROWS = 15, 150  # of the cases that need a look: at once, and when asked for; the map has all
SHOWN_RUNS = 40  # at once; the rest when asked for
CASE_RUNS = 8
MAP_PLACE = (
    "<noscript><p>The map needs JavaScript. What needs a look stands above, every run in the table below.</p></noscript>\n"
    '<div id="map" hidden></div>'
)
START = "kaizen history init IMPROVEMENT --agent-version V"
REPAIR = "kaizen history validate"
CELL_WORDS = {"p": "passed", "f": "failed", "e": "not measured", "s": "some passed"}
LOOK_ORDER = ("regressed", "weakened", "f", "s", "e")


def dashboard_page(board: Board) -> str:
    """The page of *board*."""
    said = board_verdict(board)
    sizes = f"{board.name}: {counted(board.entries, 'entry', 'entries')}, {counted(len(board.rows), 'run')}"
    values = {
        "tone": said.tone,
        "name": html_text(sizes + (f", anchor digest {board.anchor}" if board.anchor else "")),
        "word": html_text(said.word),
        "sentence": figure_html(said.sentence),
        "lead": figure_html(said.lead),
        "problems": problems_html(board),
        "answers": "".join(answer_html(question, answer) for question, answer in board_answers(board)),
        "decisions": decisions_html(board),
        "plot": board_plot(board.rows) if any(not row["problem"] for row in board.rows) else "<p>There is nothing to draw yet.</p>",
        "cases": look_html(board),
        "map": MAP_PLACE if any(board.cases.lists) else "<p>There is no case to show.</p>",
        "hidden": html_text(hidden_text(board)),
        "runs": runs_html(board) if board.rows else "<p>No run has been recorded.</p>",
    }
    before, between, after = page_frame(f"{board.name}: dashboard", "Dashboard", DASHBOARD_CSS, DASHBOARD_JS)
    return before + fill_template(DASHBOARD_HTML, values) + between + script_data("map-data", map_document(board)) + after


def answer_html(question: str, said: BoardAnswer) -> str:
    """A question and its answer: sign, word, sentence, what supports it."""
    small = f'<p class="small">{figure_html(said.lead)}</p>' if said.lead else ""
    return (
        f'<section class="card answer tone-{said.tone}"><h2>{html_text(question)}</h2>'
        f'<p class="answer-word"><span class="sign sign-{said.tone}" aria-hidden="true"></span>{html_text(said.word)}</p>'
        f"<p>{figure_html(said.sentence)}</p>{small}</section>\n"
    )


def problems_html(board: Board) -> str:
    """What is wrong with the history, and anchors that are of another version than the champion's; '' for nothing."""
    anchor = next((row for row in reversed(board.rows) if row["kind"] == "anchor"), None)
    parts = []
    if board.problems:
        items = [
            f"<p>{html_text(problem.text())}</p>"
            f'<p class="small">{html_text(capitalised(problem.hint))} · <code>{html_text(problem.code)}</code></p>'
            for problem in board.problems[:SHOWN_PROBLEMS]
        ]
        more = len(board.problems) - len(items)
        rest = f"<p>and {counted(more, 'more problem')}: <code>{REPAIR}</code> names all of them</p>" if more else ""
        parts.append(f'<section class="card broken tone-bad"><h2>What is wrong with the history</h2>{list_html(items)}{rest}</section>')
    if anchor and anchor["other_version"] is not None:
        text = f"The newest anchor is of version {visible(anchor['agent_version'], 40)}, the champion then was "
        text += f"{visible(anchor['other_version'], 40)}: a candidate has to be compared with the champion to be promoted."
        parts.append(f'<div class="unknown"><h2>To be noticed</h2>{list_html([html_text(text)])}</div>')
    return "\n".join(parts)


def decisions_html(board: Board) -> str:
    """The decisions that are open, those that can be made first, with the command that records one."""
    if board.problems:
        return f"<p>Nothing should be decided before the history is repaired: <code>{REPAIR}</code> names every problem.</p>"
    if not board.rows:
        return f'<p>Record the first run:</p><div class="command"><pre tabindex="0">{START}</pre></div>'
    if not board.decisions:
        return "<p>No decision is open.</p>"
    items = [decision_item(number, each) for number, each in enumerate(board.decisions[:SHOWN_DECISIONS])]
    more = len(board.decisions) - len(items)
    rest = f"<p>and {counted(more, 'more run')} that nobody has decided about; the table of runs shows them</p>" if more else ""
    return list_html(items) + rest


def decision_item(number: int, each: OpenDecision) -> str:
    """One open decision."""
    row = each.row
    tone = {"eligible": "good", "rejected": "bad"}.get(row["recommendation"], "warn")
    sign = f'<span class="sign sign-{tone}" aria-hidden="true"></span>'
    words = f"{VERDICTS[row['recommendation']]}, {delta_text(row)}"
    head = f'<p class="tone-{tone}">{sign}<b>{html_text(run_name(row))}</b> {figure_html(words)}</p>'
    text = f"<p>{html_text(each.text)}.</p>"
    if not each.command:
        return head + text
    return (
        f'{head}{text}<div class="command"><pre id="command-{number}" tabindex="0">{html_text(each.command)}</pre>'
        f'<button type="button" data-copy="command-{number}" hidden>Copy</button></div>'
    )


def hidden_text(board: Board) -> str:
    """Which runs have no column in the map, and how many cases have no row anywhere on the page."""
    count, unread = len(board.cases.hidden), board.cases.unread
    parts = [f"Without a column, because their outcomes cannot be read: {listed(unread, SHOWN_RUNS)}."] if unread else []
    parts += [f"{counted(count, 'holdout case')} {'is' if count == 1 else 'are'} counted in the rates, and not shown."] if count else []
    return " ".join(parts)


# --- Cases that need a look ------------------------------------------------------------


def cell_letter(passed: int, valid: int) -> str:
    """'p', 'f', 's' (some passed) or 'e' (not measured)."""
    return "e" if not valid else "p" if passed == valid else "s" if passed else "f"


def look_html(board: Board) -> str:
    """The cases of the run in question that lost ground, failed or were not measured, beside the runs of its cohort before it."""
    row = subject_row(board)
    cells = board.cases.cells(row["id"]) if row else {}
    if row is None or not cells:
        return "<p>There is no case to show.</p>"
    found = []
    for name, (change, passed, valid) in cells.items():
        letter = cell_letter(passed, valid)
        key = change if change in LOOK_ORDER else letter
        if key in LOOK_ORDER:
            found.append((LOOK_ORDER.index(key), name))
    if not found:
        words = f"Each of {counted(len(cells), 'case')} that may be shown passed in every trial of {run_name(row)}, and none lost ground."
        return f"<p>{html_text(words)}</p>"
    runs = [each for each in board.rows if not each["problem"] and each["cohort"] == row["cohort"] and each["seq"] <= row["seq"]][
        -CASE_RUNS:
    ]
    columns = {each["id"]: board.cases.cells(each["id"]) for each in runs}
    body = []
    for _, name in sorted(found, key=lambda item: item[0])[:MORE_CASE_ROWS]:
        change = cells[name][0]
        word = html_text((change or "no comparison").replace("_", " "))
        states = [cell_html(columns[each["id"]].get(name)) for each in runs]
        body.append([f"<b>{html_text(name)}</b> <small>{word}</small>", *states])
    heads = [f"Run {each['seq']} <small>{html_text(visible(each['agent_version'], 20))}</small>" for each in runs]
    words = f"{counted(len(found), 'case')} of {run_name(row)}: regressions first, then failures, with the runs of its cohort before it."
    parts = [f"<p>{html_text(words)}</p>", look_table(heads, body[:CASE_ROWS])]
    if len(body) > CASE_ROWS:
        parts.append(folded_html(f"{len(body) - CASE_ROWS:,} more", look_table(heads, body[CASE_ROWS:])))
    if len(found) > len(body):
        parts.append(f"<p>and {len(found) - len(body):,} more, in the map below</p>")
    return "\n".join(parts)


def look_table(heads: list[str], body: list[list[str]]) -> str:
    """A part of the table of cases that need a look, which scrolls for itself."""
    table = table_html("Cases that need a look, by run", ["Case", *heads], body, "figures splits look")
    return f'<div class="wide" role="region" aria-label="Cases that need a look" tabindex="0">{table}</div>'


def folded_html(summary: str, content: str) -> str:
    """*content* behind a line that opens it."""
    return f"<details><summary>{html_text(summary)}</summary>{content}</details>"


def cell_html(cell: tuple[str | None, int, int] | None) -> str:
    """One case in one run: a shape and its numbers."""
    if cell is None:
        return '<span class="missing">not there</span>'
    _, passed, valid = cell
    letter = cell_letter(passed, valid)
    text = f"{passed} of {valid}" if valid else NOT_MEASURED
    return f'<span class="dot {letter}" aria-hidden="true"></span> <span class="unseen">{CELL_WORDS[letter]}: </span>{text}'


def map_document(board: Board) -> JsonObject:
    """What the script draws: the runs in the order recorded with their cohort's letter, and the cells."""
    letters = cohort_letters(board.rows)
    known = [row for row in board.rows if row["id"] in board.cases.columns and not row["problem"]]
    runs = [
        [row["id"], row["seq"], row["agent_version"], row["label"], letters[row["cohort"]], mark_kind(row), stated_text(row)]
        for row in known
    ]
    return {"runs": runs, **board.cases.document()}


# --- Every run -------------------------------------------------------------------------

RUN_COLUMNS = ("Run", "Pass rate", "Change", "Cases that moved", "Cost and duration", "Recommendation", "Decision", "Hashes")


def runs_html(board: Board) -> str:
    """Every run, the newest first, by cohort; how a cohort differs from the one before stands above its runs."""
    bands, cut = cohort_bands(board.rows), max(0, len(board.rows) - SHOWN_RUNS)
    newer = [band._replace(first=max(cut, band.first)) for band in bands if band.end > cut]
    older = [band._replace(end=min(cut, band.end)) for band in bands if band.first < cut]
    table = runs_table(board, newer, "Every run, the newest first")
    return table + (folded_html(f"{counted(cut, 'older run')}", runs_table(board, older, "Older runs")) if older else "")


def runs_table(board: Board, bands: list[CohortBand], caption: str) -> str:
    """The runs of *bands*, the newest first."""
    head = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in RUN_COLUMNS)
    bodies = "".join(band_html(board, band) for band in reversed(bands))
    return (
        f'<table class="figures splits runs" role="table"><caption class="unseen">{caption}</caption>'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n{bodies}</table>'
    )


def band_html(board: Board, band: CohortBand) -> str:
    """The rows of one band."""
    rows = board.rows[band.first : band.end]
    if band.cohort:
        names = dict.fromkeys(row["improvement"] for row in rows)
        text = f"{band.cohort}, {', '.join(names)}, {counted(rows[0]['cases'] or 0, 'case')}"
        text += f" ({rows[0]['holdout']:,} of the holdout)" if rows[0]["holdout"] else ""
        difference = board.differences.get(band.cohort)
        small = f"Differs from the cohort before it: {difference}. Its rates are not compared with others." if difference else ""
        title = f"<b>Cohort {html_text(band.letter)}</b> {html_text(text)} <small>{html_text(small)}</small>"
    else:
        title = "<b>Runs that cannot be trusted</b>"
    lines = "".join(run_html(board, row) for row in reversed(rows))
    heading = f'<th role="rowheader" scope="rowgroup" colspan="{len(RUN_COLUMNS)}">{title}</th>'
    return f'<tbody role="rowgroup"><tr role="row" class="band">{heading}</tr>\n{lines}</tbody>\n'


def run_html(board: Board, row: JsonObject) -> str:
    """The row of one run."""
    wrong = board.checks.get(row["id"], [])
    sign = '<span class="sign sign-bad" aria-hidden="true"></span>'
    hashes = f'<span class="tone-bad">{sign}changed</span> <small>{html_text("; ".join(wrong[:3]))}</small>' if wrong else "verified"
    if row["problem"]:
        promoted = "promoted; " if row["promoted_at"] else ""
        cells = [f"<b>{row['seq']}</b> <small>{html_text(row['id'])}</small>", f'<span class="missing">{promoted}cannot be trusted</span>']
        return run_line([*cells, *[""] * (len(RUN_COLUMNS) - 3), hashes])
    rates = row["rates"]["candidate"]
    tags = (['<span class="tag">champion</span>'] if row["is_champion"] else []) + (
        ['<span class="tag">anchor</span>'] if row["kind"] == "anchor" else []
    )
    name = f"{mark_sample(mark_kind(row))}<b>{row['seq']} · {html_text(visible(row['agent_version'], 60))}</b> {' '.join(tags)}"
    name += f"<small>{html_text(visible(row['label'], 120))}</small>"
    name += f"<small>{html_text(day(row['recorded_at']))} · <code>{html_text(row['id'])}</code></small>"
    if row["other_version"] is not None:
        name += f"<small>Another version than the champion then, {html_text(visible(row['other_version'], 40))}.</small>"
    small = ", ".join(filter(None, (interval_text(rates), basis_text(rates))))
    return run_line([
        name,
        f"{figure_html(rate_percent(rates['rate']))} <small>{figure_html(small)}</small>",
        change_html(board, row),
        figure_html(moved_text(row)),
        f"{html_text(trial_cost(rates))}, {html_text(trial_time(rates))}",
        recommendation_html(row),
        decision_html_of(row),
        hashes,
    ])  # fmt: skip


def run_line(cells: list[str]) -> str:
    """A row whose first cell is its heading; the others say on narrow screens what they are."""
    rest = "".join(f'<td role="cell" data-name="{name}">{cell}</td>' for name, cell in zip(RUN_COLUMNS[1:], cells[1:], strict=True))
    return f'<tr role="row"><th scope="row" role="rowheader">{cells[0]}</th>{rest}</tr>\n'


def change_html(board: Board, row: JsonObject) -> str:
    """The change of the pass rate, and against which run."""
    if row["recommendation"] is None:
        return '<span class="missing">measured alone</span>'
    against = next((run_name(each) for each in board.rows if each["id"] == row["compared_with"]), "a baseline that was not recorded")
    return f"{figure_html(delta_text(row))} <small>against {html_text(against)}</small>"


def moved_text(row: JsonObject) -> str:
    """'1 regressed, 2 improved', with what else occurs."""
    counts = row["counts"]
    if row["recommendation"] is None:
        return ""
    order = ("regressed", "weakened", "not_comparable", "improved", "strengthened")
    return ", ".join(f"{counts[key]:,} {key.replace('_', ' ')}" for key in order if counts[key] or key in ("regressed", "improved"))


def recommendation_html(row: JsonObject) -> str:
    """The recommendation and why."""
    if row["recommendation"] is None:
        return ""
    reasons = "; ".join(visible(str(each["text"]), 300) for each in row["reasons"])
    return f"{html_text(VERDICTS[row['recommendation']])} <small>{html_text(reasons)}</small>"


def decision_html_of(row: JsonObject) -> str:
    """Who decided what, why, and when it was promoted."""
    decision = row["decision"] or {}
    parts = [html_text(capitalised(stated_text(row)))]
    why = [f"because {visible(decision['rationale'], 300)}"] if decision.get("rationale") else []
    why += [f"on condition that {visible(text, 300)}" for text in decision.get("conditions", [])]
    why += [f"recorded from inside {visible(decision['via'], 40)}"] if decision.get("via") else []
    why += [f"promoted {day(at)}" for at in row["promoted_at"]]
    return " ".join(parts + [f"<small>{html_text('; '.join(why))}</small>"] * bool(why))

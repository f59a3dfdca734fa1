"""review.html and review.md: what improved, what regressed, and the command to decide.

review.html is written case by case: the sentence, numbers and regressions first, as plain
HTML; then the index from which the script draws the table, while the rest still arrives:
an inert block of JSON for each case, parsed when the case is opened. Cases of the holdout
appear in neither file.
"""

import os
from typing import IO, NamedTuple

from kaizen.cases.case import Case
from kaizen.cases.decision import Decision
from kaizen.embed import asset_text
from kaizen.foundation.files import replacing
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted
from kaizen.web.case_data import BIG_PAGE, TextLimits, case_detail, case_title, text_limits
from kaizen.web.evidence import EvaluatorTable, StageEvidence
from kaizen.web.page import fill_template, html_text, page_frame, script_data
from kaizen.web.reliability_section import reliability_html, reliability_markdown
from kaizen.web.review_html import (
    TONES,
    StaticRow,
    card_html,
    chart_html,
    decision_html,
    derived_html,
    notes_html,
    numbers_html,
    provenance_html,
    reasons_html,
    splits_html,
    static_cases_html,
)
from kaizen.web.review_markdown import MarkdownRow, markdown_document
from kaizen.web.review_words import (
    CHANGE_WORDS,
    GAINED_GROUPS,
    GROUPS,
    change_sentence,
    group_of,
    headline_parts,
    hidden_count,
    hidden_sentence,
    row_reason,
)
from kaizen.web.verdict_section import VerdictView, verdict_sentences, verdict_tag, verdicts_html

REVIEW_HTML = asset_text("review.html")
REVIEW_CSS = asset_text("review.css")
REVIEW_JS = asset_text("review.js")

ROLES = ("baseline", "candidate")
GROUP_ORDER = {group.key: number for number, group in enumerate(GROUPS)}


class StageView(NamedTuple):
    """One stage of the review: its role, name, files, and meta documents ({} when there is none)."""

    role: str
    stage: str
    observations_path: str
    results_path: str
    meta: JsonObject
    results_meta: JsonObject


class ReviewData(NamedTuple):
    """What a review shows.

    `comparison` is the document of comparison.json; `stages` has "candidate" and, unless one stage stands
    alone, "baseline"; ids in `holdout` are counted and not shown; `reliability` is what `judged_entry` gives.
    """

    comparison: JsonObject
    name: str
    shown_folder: str
    stages: dict[str, StageView]
    cases: dict[str, Case]
    holdout: frozenset[str]
    holdout_opened: int
    decision: Decision | None
    decide_command: str
    reliability: JsonObject | None = None
    verdicts: VerdictView | None = None


class PageRow(NamedTuple):
    """A case that the page shows: its place in a group, its row of comparison.json."""

    case: Case
    group: str
    row: JsonObject


def page_rows(review: ReviewData) -> list[PageRow]:
    """The cases that may be shown, in the order of the page: by group, then as the dataset has them."""
    rows = []
    for row in review.comparison["cases"]:
        case = review.cases.get(row["id"])
        if case is not None and row["id"] not in review.holdout:
            rows.append(PageRow(case, group_of(row, bool(case.document.get("critical"))), row))
    return sorted(rows, key=lambda item: GROUP_ORDER[item.group])


def write_review_page(path: str, review: ReviewData) -> None:
    """Writes review.html as *path*. Reads the stage files twice and holds the texts of one trial at a time.

    Raises InputError when a file cannot be read or the page not be written.
    """
    rows = page_rows(review)
    evaluators = EvaluatorTable()
    shown = {item.case.id for item in rows}
    roles = [role for role in ROLES if role in review.stages]
    stages = {
        role: StageEvidence(review.stages[role].observations_path, review.stages[role].results_path, shown, evaluators) for role in roles
    }
    try:
        with replacing(path) as stream:
            write_review_stream(stream, review, rows, stages, evaluators)
    finally:
        for stage in stages.values():
            stage.close()


def write_review_stream(
    stream: IO[bytes], review: ReviewData, rows: list[PageRow], stages: dict[str, StageEvidence], evaluators: EvaluatorTable
) -> None:
    """The page as bytes: frame and plain HTML, the index, the script, the details of each case."""
    limits = page_limits(rows, stages)
    title = f"{headline_parts(review.comparison)[0]} · {review.name} · Kaizen review"
    before, between, after = page_frame(title, "review", REVIEW_CSS, REVIEW_JS)
    index = [index_row(item, stages, verdict_tag(review.verdicts, item.case.id)) for item in rows]
    body = review_body(review, rows, stages, evaluators) + "\n" + script_data("index", index_document(review, index, stages, evaluators))
    stream.write((before + body + between).encode("utf-8", "replace"))
    without_texts = 0
    for number, item in enumerate(rows):
        keeps_texts = stream.tell() < BIG_PAGE or is_kept(item, stages)
        without_texts += not keeps_texts
        if keeps_texts:
            stream.write(script_data(f"case-{number}", case_detail(item.case, stages, limits, evaluators)).encode("utf-8", "replace"))
    if without_texts:
        text = (
            f"Listed without texts, because the page would be larger than 20 MB: {counted(without_texts, 'unchanged case')} that passed. "
            "The stage files hold the texts."
        )
        stream.write(f'<p class="small size-note">{html_text(text)}</p>'.encode())
    stream.write(after.encode("utf-8", "replace"))


def is_kept(item: PageRow, stages: dict[str, StageEvidence]) -> bool:
    """True for a case that changed, could not be compared, or failed somewhere: its texts stay however large the page is."""
    return item.group not in ("unchanged", "passed") or any(side["fail"] or side["error"] for side in map(item.row.get, stages) if side)


def page_limits(rows: list[PageRow], stages: dict[str, StageEvidence]) -> TextLimits:
    """How much of each text the page keeps."""
    every: list[int] = []
    kept: list[int] = []
    for item in rows:
        lengths = [length for stage in stages.values() for length in stage.lengths(item.case.id)]
        every += lengths
        if is_kept(item, stages):
            kept += lengths
    return text_limits(every, kept)


def row_note(item: PageRow, stages: dict[str, StageEvidence]) -> tuple[int, str]:
    """(number of the evaluator that decided the case or -1, why in one line): the candidate's failure, for a gain the baseline's."""
    stage = stages.get("baseline" if item.group in GAINED_GROUPS else "candidate")
    note = stage.notes.get(item.case.id) if stage else None
    if item.group == "not_comparable":
        return -1, row_reason(item.row)
    if note is None:
        return -1, ""
    return note.evaluator, note.reason


def note_text(item: PageRow, stages: dict[str, StageEvidence], evaluators: EvaluatorTable) -> str:
    """What decided the case, as one line that names the evaluator."""
    number, text = row_note(item, stages)
    before = "before: " if item.group in GAINED_GROUPS else ""
    return text if number < 0 else f"{before}{evaluators.rows[number][0]}: {text}"


def review_side(review: ReviewData) -> str:
    """The cards beside the numbers: the reasons, and the decision with its command."""
    comparison = review.comparison
    decision = decision_html(review.decision, str(comparison.get("evidence", "")), review.decide_command)
    is_decided = review.decision is not None and review.decision.status != "pending"
    reasons = card_html("reasons", "Why this recommendation", reasons_html(comparison, review.holdout))
    title = "The decision" if is_decided else "The decision is yours"
    return f'<div class="stack">\n{reasons}{card_html("decision", title, decision)}</div>'


def review_body(review: ReviewData, rows: list[PageRow], stages: dict[str, StageEvidence], evaluators: EvaluatorTable) -> str:
    """The part of the page that can be read without JavaScript."""
    comparison = review.comparison
    names = {role: review.stages[role].stage for role in stages}
    hidden = hidden_sentence(hidden_count((row["id"] for row in comparison["cases"]), review.holdout), review.holdout_opened)
    verdict, because = headline_parts(comparison)
    changed = [item for item in rows if item.group != "unchanged"]
    static = [StaticRow(item.case.id, item.group, item.row, note_text(item, stages, evaluators)) for item in changed]
    made = {role: (review.stages[role].meta, review.stages[role].results_meta, review.stages[role].stage) for role in stages}
    lines = [
        f"{os.path.basename(review.stages[role].observations_path)}: {counted(stage.unreadable, 'line')} could not be read."
        for role, stage in stages.items()
        if stage.unreadable
    ]
    return fill_template(
        REVIEW_HTML,
        {
            "tone": TONES[comparison["recommendation"]],
            "name": html_text(review.name),
            "verdict": html_text(verdict),
            "because": html_text(because),
            "changes": html_text(" ".join(part for part in (change_sentence(comparison), hidden) if part)),
            "notes": notes_html(comparison),
            "numbers_title": "Before and after" if len(stages) > 1 else "The numbers",
            "chart": chart_html(comparison, list(stages)),
            "numbers": numbers_html(comparison, names) + derived_html(comparison, names),
            "splits": splits_html(comparison, names),
            "side": review_side(review) if len(stages) > 1 else "",
            "reliability": f"{reliability_html(review.reliability)}\n{verdicts_html(review.verdicts)}".strip(),
            "cases": static_cases_html(static, len(stages) > 1),
            "provenance": provenance_html(comparison, made, lines),
        },
    )


def index_row(item: PageRow, stages: dict[str, StageEvidence], verdict: list[str]) -> list[object]:
    """[id, group, labels, letters by role, split, tags, applied, failed by role, title, deciding evaluator, why]."""
    document, row, case_id = item.case.document, item.row, item.case.id
    labels = ["critical"] if document.get("critical") else []
    labels += [CHANGE_WORDS[row["change"]]] if item.group in ("hard_regressed", "hard") and row["change"] else []
    applied = sorted({number for stage in stages.values() for number in stage.applied.get(case_id, ())})
    return [
        case_id,
        item.group,
        [*labels, *verdict],
        [stage.letters(case_id, row[role]["planned"]) for role, stage in stages.items()],
        document.get("split") or "",
        document.get("tags") or [],
        applied,
        [list(stage.failed.get(case_id, ())) for stage in stages.values()],
        case_title(document.get("input")),
        *row_note(item, stages),
    ]


def index_document(
    review: ReviewData, index: list[list[object]], stages: dict[str, StageEvidence], evaluators: EvaluatorTable
) -> JsonObject:
    """What the page's script needs before any case is opened."""
    return {
        "roles": list(stages),
        "files": {role: os.path.basename(review.stages[role].observations_path) for role in stages},
        "groups": [list(group) for group in GROUPS],
        "evaluators": [list(row) for row in evaluators.rows],
        "cases": index,
    }


def review_markdown(review: ReviewData) -> str:
    """The text of review.md: at most 60,000 characters, safe to post as a comment; it pings nobody."""
    evaluators = EvaluatorTable()
    wanted = [item for item in page_rows(review) if item.group not in ("unchanged", "passed")]
    shown = {item.case.id for item in wanted}
    stages = {}
    for role in [role for role in ROLES if role in review.stages]:
        stages[role] = StageEvidence("", review.stages[role].results_path, shown, evaluators)
        stages[role].close()
    rows = [MarkdownRow(item.case.id, item.group, item.row, note_text(item, stages, evaluators)) for item in wanted]
    hidden = hidden_sentence(hidden_count((row["id"] for row in review.comparison["cases"]), review.holdout), review.holdout_opened)
    names = {role: review.stages[role].stage for role in stages}
    sure = [*reliability_markdown(review.reliability), *verdict_sentences(review.verdicts)]
    return markdown_document(review.comparison, review.name, names, rows, hidden, review.decision, review.decide_command, sure)

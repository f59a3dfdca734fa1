"""review.md: the review as a comment on a pull request, at most 60,000 characters.

Text we did not write is shown as it is and does nothing: no markup, no link, no mention
that pings a person, no reference that shows up in another issue.
"""

import re
from typing import Any, NamedTuple

from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, visible
from kaizen.web.review_words import (
    GROUPS,
    LOST_GROUPS,
    change_sentence,
    decision_sentence,
    delta_text,
    derived_rows,
    headline_parts,
    number_rows,
    side_text,
)

MAX_COMMENT = 60_000  # characters; GitHub refuses comments above 65,536
MAX_LISTED = 50
MAX_REASON = 200
MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
BLOCK_START = re.compile(r"^(\s*\d*)([-+=#.)](?!\d))")  # begins a list, a heading or a rule
# What a forge turns into a ping or a link by itself: @name, #12, GH-12, addresses.
REFERENCES = re.compile(r"@|#|(?<=[Gg][Hh])-(?=\d)|(?<=:)//|(?<=[Ww][Ww][Ww])\.")
ZERO_WIDTH_SPACE = "&#8203;"  # parts a reference without changing what a reader sees


class MarkdownRow(NamedTuple):
    """A case in the comment: id, group, row of comparison.json, what decided it."""

    id: str
    group: str
    row: JsonObject
    note: str


def markdown_text(text: str, limit: int | None = None) -> str:
    """*text* for the middle of a line of Markdown: shown as it is, markup and references made inert; cut to *limit* characters."""
    shown = visible(text, limit)
    parts, position = [], 0
    for match in REFERENCES.finditer(shown):
        parts += [markdown_escaped(shown[position : match.end()]), ZERO_WIDTH_SPACE]
        position = match.end()
    return "".join([*parts, markdown_escaped(shown[position:])])


def markdown_item(text: str, limit: int | None = None) -> str:
    """*text* like `markdown_text`, for the start of a line, where a few characters more would begin a block."""
    return BLOCK_START.sub(r"\1\\\2", markdown_text(text, limit))


def markdown_escaped(text: str) -> str:
    """*text* with the characters of HTML and of Markdown's inline markup escaped."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return MARKDOWN_SPECIAL.sub(r"\\\1", text)


def markdown_code(text: str, limit: int | None = None) -> str:
    """*text* as a code span, in which a forge looks for nothing; the fence is longer than any run of backticks inside."""
    shown = visible(text, limit)
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def markdown_table(comparison: JsonObject, names: dict[str, str]) -> list[str]:
    """The numbers of the stages as a table."""
    sides = [number_rows(comparison["rates"][role]) for role in names]
    lines = ["| | " + " | ".join(markdown_text(name) for name in names.values()) + " |", "|---|" + "---|" * len(names)]
    for entries in zip(*sides, strict=True):
        cells = [value + (f" ({small})" if small and value != "0" else "") for _, value, small in entries]
        lines.append(f"| {entries[0][0]} | " + " | ".join(markdown_text(cell) for cell in cells) + " |")
    return lines


def derived_table(comparison: JsonObject, names: dict[str, str]) -> list[str]:
    """The derived metrics as a table."""
    columns = ["metric", *names.values(), *(["change"] if len(names) > 1 else [])]
    lines = ["| " + " | ".join(map(markdown_text, columns)) + " |", "|---" * len(columns) + "|"]
    for name, expression, sides, change in derived_rows(comparison, list(names)):
        cells = [f"{value} ({small})" for value, small in sides] + ([change] if change else [])
        lines.append("| " + " | ".join(map(markdown_text, [f"{name} = {expression}", *cells])) + " |")
    return lines


def case_lines(rows: list[MarkdownRow], roles: list[str]) -> list[str]:
    """One item a case, at most 50, then a count."""
    lines = []
    for row in rows[:MAX_LISTED]:
        sides = " → ".join(markdown_text(side_text(row.row[role])) for role in roles)
        note = f"  \n  {markdown_item(row.note, MAX_REASON)}" if row.note else ""
        lines.append(f"- {markdown_code(row.id)}: {sides}{note}")
    return lines + ([f"- and {len(rows) - MAX_LISTED:,} more"] if len(rows) > MAX_LISTED else [])


def group_lines(rows: list[MarkdownRow], roles: list[str]) -> list[list[str]]:
    """A block of lines for each group that has cases, in the order of the page; gains are folded away."""
    blocks = []
    for group in GROUPS:
        members = [row for row in rows if row.group == group.key]
        if members and not group.is_collapsed:
            title = f"{group.title}: {len(members):,}"
            is_open = group.key in (*LOST_GROUPS, "not_comparable", "failed", "flaky", "no_verdict")
            lines = case_lines(members, roles)
            folded = ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>"]
            blocks.append([f"### {title}", "", *lines] if is_open else folded)
    return blocks


def head_lines(comparison: JsonObject, name: str, names: dict[str, str], hidden: str) -> list[str]:
    """Sentence, what is not known, numbers, further reasons."""
    verdict, because = headline_parts(comparison)
    changes = f"{markdown_code(name)}: {markdown_text(change_sentence(comparison))} {hidden}".rstrip()
    lines = [f"## {verdict}: {markdown_text(because)}", "", changes, ""]
    if comparison["notes"]:
        lines += ["What is not known:", "", *[f"- {markdown_item(note)}" for note in comparison["notes"]], ""]
    lines += [*markdown_table(comparison, names), ""]
    if comparison["metrics"]:
        lines += [*derived_table(comparison, names), ""]
    if len(names) > 1:
        lines += [f"Change of the pass rate: {markdown_text(delta_text(comparison))}", ""]
    if len(comparison["reasons"]) > 1:
        further = [f"- {markdown_item(entry['text'])} ({markdown_code(entry['code'])})" for entry in comparison["reasons"][1:]]
        lines += ["Also:", "", *further, ""]
    return lines


def tail_lines(decision: Any, evidence: str, command: str) -> list[str]:
    """The state of the decision and the command that records one."""
    lines = ["### Decision", "", markdown_text(decision_sentence(decision, evidence)), ""]
    if command:
        shown = visible(command, None)
        fence = "`" * max(3, len(max(re.findall("`+", shown), default="")) + 1)
        lines += ["Look at every case with its evidence in `review.html`, beside this file. Then:", "", fence, shown, fence, ""]
    return lines


def markdown_document(
    comparison: JsonObject,
    name: str,
    names: dict[str, str],
    rows: list[MarkdownRow],
    hidden: str,
    decision: Any,
    command: str,
    sure: list[str],
) -> str:
    """The comment, with the sentences *sure* about how sure the change is.

    Lists of cases that would make it longer than 60,000 characters are left out and counted.
    """
    head = head_lines(comparison, name, names, hidden)
    head += ["How sure is this?", "", *[f"- {markdown_item(sentence)}" for sentence in sure], ""] if sure else []
    tail = tail_lines(decision, str(comparison.get("evidence", "")), command)
    room = MAX_COMMENT - sum(len(line) + 1 for line in head + tail) - 200
    body: list[str] = []
    left_out = 0
    for block in group_lines(rows, list(names)):
        size = sum(len(line) + 1 for line in block) + 1
        if size <= room:
            room -= size
            body += [*block, ""]
        else:
            left_out += 1
    if left_out:
        body += [f"{counted(left_out, 'list')} of cases left out here for length; review.html has every case.", ""]
    return "\n".join([*head, *body, *tail])

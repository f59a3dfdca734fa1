"""What a review says of verdicts: how many of each, and how the judges stand."""

from collections import Counter
from typing import NamedTuple

from kaizen.foundation.text import visible
from kaizen.web.page import html_text
from kaizen.web.review_html import figure_html, list_html, table_html


class VerdictView(NamedTuple):
    """The judge's name and version ('' without a `judge` block), its verdicts in order, the verdict on each case by role,
    and sentences about the agreement of judges with experts."""

    judge: str
    order: list[str]
    by_role: dict[str, dict[str, str]]
    sentences: list[str]


def verdict_tag(view: VerdictView | None, case_id: str) -> list[str]:
    """['reject → approve'] for a case whose verdict changed, ['approve'] for one that has one; [] for none."""
    if view is None:
        return []
    said = list(dict.fromkeys(verdicts[case_id] for verdicts in view.by_role.values() if case_id in verdicts))
    return [" \u2192 ".join(said)] if said else []


def verdicts_html(view: VerdictView | None) -> str:
    """The section as markup; '' when there is no verdict and nothing to say of a judge."""
    if view is None or not (view.judge or view.sentences):
        return ""
    counts = {role: Counter(verdicts.values()) for role, verdicts in view.by_role.items()}
    names = [name for name in view.order if any(count[name] for count in counts.values())]
    rows = [[html_text(name), *[f"{count[name]:,}" for count in counts.values()]] for name in names]
    columns = ["Verdict", *[html_text(role.capitalize()) for role in counts]]
    parts = ['<section class="card sure" aria-labelledby="verdicts-title">', '<h2 id="verdicts-title">Verdicts</h2>']
    if view.judge:
        parts.append(f'<p class="small">{html_text(view.judge)}, on the first trial of each case</p>')
        parts.append(table_html("Verdicts of each stage", columns, rows, "figures splits"))
    parts += [list_html([figure_html(text) for text in view.sentences])] if view.sentences else []
    return "\n".join([*parts, "</section>"])


def verdict_sentences(view: VerdictView | None) -> list[str]:
    """The section as sentences; [] when there is nothing to say."""
    if view is None:
        return []
    told = []
    for role, verdicts in view.by_role.items():
        count = Counter(verdicts.values())
        shown = ", ".join(f"{count[name]:,} {visible(name, 60)}" for name in view.order if count[name])
        told.append(f"Verdicts of {visible(view.judge)} on the {role}: {shown or 'none'}.")
    return [*told, *view.sentences]

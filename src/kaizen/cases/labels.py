"""Labels of experts, one a line; a later line of the same rater replaces an earlier one.

    {"case_id": "refund-001", "rater": "ada", "label": "approve"}
    {"case_id": "refund-002", "rater": "ada", "of": "tone", "abstain": true, "note": "two claims in one"}

`of` names the evaluator that the label is about; without it the label is about the verdict of the
`judge` block. `output` is the fingerprint of the output that the rater saw: a label of another
output than the one that was judged does not count.
"""

from collections.abc import Container, Sequence
from typing import NamedTuple

from kaizen.foundation.errors import Breaches
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonObject, checked_lines, fingerprint
from kaizen.foundation.shapes import ANY_TEXT, BOOLEAN, TEXT, Report, check_fields, check_no_others, or_null
from kaizen.foundation.text import did_you_mean, quoted

LABELS_FILE, AGREEMENT_FILE = "labels.jsonl", "agreement.json"
LABEL_FIELDS = {
    **dict.fromkeys(("case_id", "rater", "of", "output"), TEXT),
    "label": or_null(TEXT),
    "abstain": BOOLEAN,
    "note": ANY_TEXT,
}


class Given(NamedTuple):
    """What one rater said of one case: the label, None for an abstention; fingerprint of the output that was seen, '' when not noted."""

    label: str | None
    output: str


class Labels(NamedTuple):
    """The labels about one subject: by case id, then rater; how many lines were replaced, how many are about other subjects.

    `fingerprint` is 'sha256:…' of who said what of which case; the order of lines does not count.
    """

    by_case: dict[str, dict[str, Given]]
    replaced: int
    about_others: int
    fingerprint: str

    def raters(self) -> list[str]:
        """Everybody who labelled something, in the order of their names."""
        return sorted({rater for row in self.by_case.values() for rater in row})


def check_label(label: JsonObject, case_ids: Container[str], report: Report) -> bool:
    """True when *label* has the shape of a label, about a case of *case_ids*; what is wrong is reported."""
    wrong = []

    def note(pointer: str, message: str, hint: str) -> None:
        wrong.append(pointer)
        report(pointer, message, hint)

    check_fields(label, LABEL_FIELDS, "", note, ("case_id", "rater"))
    check_no_others(label, LABEL_FIELDS, "", note)
    if label.get("label") is None and label.get("abstain") is not True:
        note("", "has neither a label nor an abstention", 'write "label": "…", or "abstain": true')
    elif label.get("label") is not None and label.get("abstain") is True:
        note("", "has a label and an abstention", "take one of the two out")
    if isinstance(label.get("case_id"), str) and label["case_id"] not in case_ids:
        note("/case_id", "names a case that is not there", "use the id of a case in test_cases.jsonl")
    return not wrong


def read_labels(
    path: str,
    subject: str,
    default: str | None,
    names: Sequence[str],
    case_ids: Container[str],
    breaches: Breaches,
    hidden: Container[str] = (),
) -> Labels:
    """The labels in the file *path* about *subject* (an evaluator's id, '' for the verdict), each one of *names*.

    A line without `of` is about *default*. What is wrong goes to *breaches*, quoting nothing of cases in *hidden*; the caller raises.
    """
    shown = shown_path(path)
    by_case: dict[str, dict[str, Given]] = {}
    replaced = about_others = 0
    for line in checked_lines(path, breaches):
        label, number = line.value, line.number

        def report(pointer: str, message: str, hint: str, number: int = number) -> None:
            breaches.add(shown, number, pointer, message, hint)

        if isinstance(label.get("case_id"), str) and label["case_id"] in hidden:
            breaches.conceal(shown, number)
        if not check_label(label, case_ids, report):
            continue
        if label.get("of", default) != subject:
            about_others += 1
            continue
        word = label.get("label")
        if word is not None and word not in names:
            report("/label", f"{quoted(word)} is no label here", did_you_mean(word, names))
            continue
        row = by_case.setdefault(label["case_id"], {})
        replaced += label["rater"] in row
        row[label["rater"]] = Given(word, label.get("output", ""))
    said = {case_id: {rater: list(given) for rater, given in row.items()} for case_id, row in by_case.items()}
    return Labels(by_case, replaced, about_others, fingerprint(said))


def output_fingerprint(observation: JsonObject) -> str:
    """'sha256:…' of the output of *observation*, as a label names it."""
    return fingerprint(observation.get("output"))

"""decision.yaml: what a person decided, and about which evidence.

    status: accepted           # pending | accepted | accepted_with_conditions | rejected
    evidence: sha256:…         # what this decision is about; filled in by review
    decided_by: "Ada"
    decided_at: "2026-01-02T03:04:05.678Z"
    rationale: "both regressions are wording only"
    conditions: []
    via: claude-code           # only when it was recorded from inside a coding agent

Read and written in the small part of YAML that foundation.frontmatter documents.
"""

import os
from typing import NamedTuple

from kaizen.foundation.errors import Breaches
from kaizen.foundation.files import read_text, shown_path, write_file
from kaizen.foundation.frontmatter import parse_block_lines, parse_block_yaml, update_block_yaml
from kaizen.foundation.shapes import ANY_TEXT, Kind, check_fields, check_no_others, one_of

DECIDED = ("accepted", "accepted_with_conditions", "rejected")
PENDING = "pending"
DECISION_TEMPLATE = """\
status: pending            # pending | accepted | accepted_with_conditions | rejected
evidence: ""               # what this decision is about; filled in by review
decided_by: ""
decided_at: ""
rationale: ""
conditions: []
"""
DECISION_STATUS = one_of(PENDING, *DECIDED)
DECISION_FIELDS = {
    "status": Kind(lambda value: value == "" or DECISION_STATUS.accepts(value), DECISION_STATUS.words, DECISION_STATUS.choices),
    "evidence": ANY_TEXT,
    "decided_by": ANY_TEXT,
    "decided_at": ANY_TEXT,
    "rationale": ANY_TEXT,
    "conditions": Kind(lambda value: isinstance(value, list) or value == "", "a list: one '- condition' a line, or []"),
    "via": ANY_TEXT,
}


class Decision(NamedTuple):
    """A decision as its file says; `status` is 'pending' while nothing was decided, `via` '' when a person typed it."""

    status: str
    evidence: str
    decided_by: str
    decided_at: str
    rationale: str
    conditions: list[str]
    via: str
    path: str


def read_decision(path: str) -> Decision:
    """The decision in the file *path*. Raises BreachesError with every line that is wrong; an unknown status is one."""
    shown = shown_path(path)
    values, spans = parse_block_lines(read_text(path), shown)
    breaches = Breaches()

    def report(pointer: str, message: str, hint: str) -> None:
        breaches.add(shown, spans[pointer[1:]][0] if pointer[1:] in spans else None, pointer, message, hint)

    check_no_others(values, DECISION_FIELDS, "", report)
    check_fields(values, DECISION_FIELDS, "", report)
    breaches.raise_if_any()
    return Decision(
        status=values.get("status") or PENDING,
        conditions=values.get("conditions") or [],
        path=path,
        **{name: str(values.get(name, "")) for name in ("evidence", "decided_by", "decided_at", "rationale", "via")},
    )


def write_decision(decision: Decision) -> None:
    """Writes *decision* to its path; comments and lines of an existing file stay where nothing changes them."""
    shown = shown_path(decision.path)
    text = read_text(decision.path) if os.path.exists(decision.path) else DECISION_TEMPLATE
    values = decision._asdict()
    del values["path"]
    if not decision.via and "via" not in parse_block_yaml(text, shown):
        del values["via"]
    write_file(decision.path, update_block_yaml(text, values, shown))

"""One test case: its fields and their types, and its fingerprints.

    {"id": "refund-001", "input": {"message": "…"}, "expected": {"says": ["30 days"]},
     "split": "development", "tags": ["refund"], "source": {"kind": "synthetic"}}

The input fingerprint covers what the agent is given (id, input, context), so an observation
stays good as long as the question stays the same. The dataset fingerprint covers every
field but source, notes and owner, which change nothing about what is measured.
"""

import re
from typing import NamedTuple

from kaizen.foundation.errors import Breaches
from kaizen.foundation.jsonio import JsonObject, fingerprint
from kaizen.foundation.shapes import ANY_TEXT, ANYTHING, BOOLEAN, OBJECT, TEXT, Kind, check_fields, list_of, one_of

SPLITS = ("development", "regression", "challenge", "holdout")
HOLDOUT = "holdout"
SOURCE_KINDS = ("production", "synthetic", "expert", "regression")
MAX_ID_LENGTH = 200
CASE_ID = re.compile(rf"[^\x00-\x1f\x7f-\x9f]{{1,{MAX_ID_LENGTH}}}\Z")
UNMEASURED_FIELDS = ("source", "notes", "owner")

CASE_FIELDS = {
    "id": Kind(
        lambda value: isinstance(value, str) and CASE_ID.match(value) is not None,
        f"a text of 1 to {MAX_ID_LENGTH} characters without control characters",
    ),
    "input": ANYTHING,
    "context": ANYTHING,
    "expected": ANYTHING,
    "split": one_of(*SPLITS),
    "tags": list_of(TEXT, "texts"),
    "critical": BOOLEAN,
    "cluster": TEXT,
    "serial_group": TEXT,
    "evaluators": list_of(OBJECT, "objects"),
    "source": OBJECT,
    "metadata": OBJECT,
    "notes": ANYTHING,
    "owner": ANYTHING,
}
SOURCE_FIELDS = {"kind": one_of(*SOURCE_KINDS), "trace_id": ANY_TEXT, "url": ANY_TEXT, "captured_at": ANY_TEXT, "redacted": BOOLEAN}


class Case(NamedTuple):
    """A checked case: its document as read, the file (as shown) and line it stands on, the fingerprint of its input."""

    id: str
    document: JsonObject
    path: str
    line: int
    input_fingerprint: str


def check_case(document: JsonObject, path: str, line: int, breaches: Breaches) -> bool:
    """True when every known field of *document*, from line *line* of *path*, is of its type; else *breaches* say which."""
    before = len(breaches.errors)

    def report(pointer: str, message: str, hint: str) -> None:
        breaches.add(path, line, pointer, message, hint)

    check_fields(document, CASE_FIELDS, "", report, ("id", "input"))
    if isinstance(document.get("source"), dict):
        check_fields(document["source"], SOURCE_FIELDS, "/source", report)
    return len(breaches.errors) == before


def case_input_fingerprint(document: JsonObject) -> str:
    """The fingerprint of what the agent is given: id, input and context (null when the case has none)."""
    return fingerprint({"id": document["id"], "input": document["input"], "context": document.get("context")})


def case_fingerprint_document(document: JsonObject) -> JsonObject:
    """The fields of *document* that the dataset fingerprint covers: all but source, notes and owner."""
    return {name: value for name, value in document.items() if name not in UNMEASURED_FIELDS}


def is_holdout(document: JsonObject) -> bool:
    """True when nothing of this case may be shown."""
    return document.get("split") == HOLDOUT

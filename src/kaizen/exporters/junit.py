"""JUnit XML for CI systems: one test case a case."""

import re

from kaizen.foundation.jsonio import JsonObject

# XML 1.0 cannot hold these characters at all, escaped or not. Compiled when it is used: that takes 5 ms.
NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
FAILING = ("regressed", "weakened")


def xml_text(text: str) -> str:
    """*text* escaped for an XML attribute or element; characters that XML cannot hold become U+FFFD."""
    text = re.sub(NOT_XML, "\ufffd", text)
    for character, entity in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        (">", "&gt;"),
        ('"', "&quot;"),
        ("\n", "&#10;"),
        ("\r", "&#13;"),
        ("\t", "&#9;"),
    ):
        text = text.replace(character, entity)
    return text


def junit_text(name: str, comparison: JsonObject, hidden: frozenset[str]) -> str:
    """The JUnit document of *comparison*: a suite for the gate's reasons and one for the cases; ids in *hidden* are only counted.

    A case is a failure when it regressed, weakened or fails a hard evaluator, an error when it is not comparable.
    """
    gate = [junit_case("recommendation", name, *gate_verdict(comparison))]
    rows = [row for row in comparison["cases"] if row["id"] not in hidden]
    cases = [junit_case(row["id"], name, *case_verdict(row)) for row in rows]
    if len(rows) < len(comparison["cases"]):
        count = len(comparison["cases"]) - len(rows)
        cases.append(junit_case(f"{count} holdout cases", name, "skipped", "counted in the rates, not shown"))
    suites = [junit_suite("kaizen gate", gate), junit_suite("kaizen cases", cases)]
    return '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n' + "".join(suites) + "</testsuites>\n"


def gate_verdict(comparison: JsonObject) -> tuple[str, str]:
    """(kind, message) of the recommendation: '' when eligible, 'failure' when rejected, 'error' when a person must decide."""
    text = "; ".join(f"{entry['code']}: {entry['text']}" for entry in comparison["reasons"])
    return {"eligible": "", "rejected": "failure"}.get(comparison["recommendation"], "error"), text


def case_verdict(row: JsonObject) -> tuple[str, str]:
    """(kind, message) of one case."""
    if row["change"] == "not_comparable":
        return "error", f"not comparable: {row['reason']}"
    if row["change"] in FAILING or row["hard"]:
        shares = [f"{row[side]['share'][0]} of {row[side]['share'][1]}" for side in ("baseline", "candidate")]
        return "failure", f"{row['change']}: passed {shares[0]} before, {shares[1]} now"
    return "", ""


def junit_case(name: str, group: str, kind: str, message: str) -> tuple[str, str]:
    """(kind, XML of one test case)."""
    head = f'    <testcase classname="{xml_text(group)}" name="{xml_text(name)}"'
    return kind, f"{head}/>\n" if not kind else f'{head}><{kind} message="{xml_text(message)}"/></testcase>\n'


def junit_suite(name: str, cases: list[tuple[str, str]]) -> str:
    """The XML of one test suite with its counts."""
    kinds = [kind for kind, _ in cases]
    counts = " ".join(
        f'{word}="{kinds.count(kind)}"' for word, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    )
    return (
        f'  <testsuite name="{xml_text(name)}" tests="{len(cases)}" {counts}>\n' + "".join(text for _, text in cases) + "  </testsuite>\n"
    )

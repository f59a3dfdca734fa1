"""JUnit XML for CI systems: one test case a case, or of one stage one a trial."""

import re
from collections.abc import Iterator

from kaizen.exporters.rows import StageSource, Tallied, count_rows, deciding_text, trial_rows
from kaizen.foundation.jsonio import JsonObject

# XML 1.0 cannot hold these characters at all, escaped or not. Compiled when it is used: that takes 5 ms.
NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
JUNIT_HEAD, JUNIT_END = '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n', "</testsuites>\n"
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
    return JUNIT_HEAD + "".join(suites) + JUNIT_END


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


def junit_case(name: str, group: str, kind: str, message: str, duration_ms: float | None = None) -> tuple[str, str]:
    """(kind, XML of one test case), with the time it took where that is known."""
    time = "" if duration_ms is None else f' time="{duration_ms / 1000:.3f}"'
    head = f'    <testcase classname="{xml_text(group)}" name="{xml_text(name)}"{time}'
    if not kind:
        return kind, f"{head}/>\n"
    sort = "" if kind == "skipped" else f' type="kaizen.{kind}"'
    return kind, f'{head}><{kind} message="{xml_text(message)}"{sort}/></testcase>\n'


def junit_suite(name: str, cases: list[tuple[str, str]]) -> str:
    """The XML of one test suite with its counts."""
    kinds = [kind for kind, _ in cases]
    head = suite_head(name, len(cases), {kind: kinds.count(kind) for kind in ("failure", "error", "skipped")})
    return head + "".join(text for _, text in cases) + "  </testsuite>\n"


def suite_head(name: str, tests: int, kinds: dict[str, int]) -> str:
    """The start of a test suite of so many *tests*, of which so many are failures, errors, skipped."""
    counts = f'failures="{kinds["failure"]}" errors="{kinds["error"]}" skipped="{kinds["skipped"]}"'
    return f'  <testsuite name="{xml_text(name)}" tests="{tests}" {counts}>\n'


def stale_suite(name: str, texts: list[str]) -> str:
    """A test suite that ends in an error for each of *texts*, on why results are stale; '' for none."""
    return junit_suite("kaizen evidence", [junit_case("results are current", name, "error", text) for text in texts]) if texts else ""


# --- One stage -------------------------------------------------------------------------


def junit_stage_lines(source: StageSource, tally: Tallied, name: str) -> Iterator[str]:
    """A test suite of *source*: a test case for each trial, a failure or error with what decided; the holdout is one that was skipped."""
    counts = count_rows(source)
    hidden = bool(counts.hidden_trials)
    kinds = {"failure": counts.outcomes["fail"], "error": counts.outcomes["error"], "skipped": int(hidden)}
    yield suite_head(f"kaizen {source.stage}", counts.shown() + hidden, kinds)
    group = f"{name}.{source.stage}"
    for row in trial_rows(source, tally):
        result = row.result
        trial = f" (trial {result['trial']})" if source.repetitions > 1 else ""
        kind = {"fail": "failure", "error": "error"}.get(result["outcome"], "")
        yield junit_case(result["case_id"] + trial, group, kind, deciding_text(result), result["duration_ms"])[1]
    if hidden:
        yield junit_case(f"{len(counts.hidden_cases)} holdout cases", group, "skipped", "counted in the rates, not shown")[1]
    yield "  </testsuite>\n"

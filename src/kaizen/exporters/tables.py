"""Results as CSV, JSON Lines and Markdown, made one trial at a time."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from kaizen.exporters.rows import StageSource, Tallied, TrialRow, deciding_text, trial_rows
from kaizen.foundation.jsonio import JsonObject, encode_compact
from kaizen.foundation.shapes import is_number
from kaizen.foundation.text import UNSAFE, counted, percent

CSV_COLUMNS = (
    "stage", "case_id", "trial", "split", "evaluator", "type", "severity", "status", "score", "value", "reason",
    "outcome", "trial_score", "duration_ms", "cost_usd", "stale", "output",
)  # fmt: skip
EVALUATION_COLUMNS = ("id", "type", "severity", "status", "score", "value", "reason")
# A spreadsheet takes a cell for a formula that begins so, also behind what it does not show; its wide forms too.
FORMULA = rf"(?:\s|{UNSAFE})*[=+\-@\uff1d\uff0b\uff0d\uff20]"
PLAIN_NUMBER = r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z"
QUOTED = '[,;"\r\n\t]|^ | $'
NULL_CHARACTER = "\x00"  # which no CSV reader agrees about
MARKDOWN_REASON = 300


# --- CSV -------------------------------------------------------------------------------


class CsvWriter:
    """Turns values into the lines of a CSV file (RFC 4180), in which no cell can be taken for a formula."""

    def __init__(self) -> None:
        self.formula = re.compile(FORMULA)
        self.number = re.compile(PLAIN_NUMBER)
        self.quoted = re.compile(QUOTED)

    def cell(self, value: Any) -> str:
        """*value* as a cell: a number stays one, a text that a spreadsheet would run gets an apostrophe in front, None is empty."""
        if value is None:
            return ""
        text = value if isinstance(value, str) else encode_compact(value)
        if isinstance(value, str):
            if self.formula.match(text) and not self.number.match(text):
                text = "'" + text
            text = text.replace(NULL_CHARACTER, "\ufffd")
        return '"' + text.replace('"', '""') + '"' if self.quoted.search(text) else text

    def cells(self, values: Iterable[Any]) -> str:
        """*values* as cells beside each other."""
        return ",".join(map(self.cell, values))


def csv_head() -> str:
    """The line of column names."""
    return ",".join(CSV_COLUMNS) + "\r\n"


def csv_lines(source: StageSource, tally: Tallied) -> Iterator[str]:
    """A line for each case, trial and evaluator of *source*; a trial without evaluators has one."""
    writer = CsvWriter()
    for row in trial_rows(source, tally):
        result, output = row.result, row.observation.get("output")
        head = writer.cells((source.stage, result["case_id"], result["trial"], row.case.get("split")))
        tail = writer.cells((result["outcome"], result["score"], result["duration_ms"], result["cost_usd"], source.is_stale, output))
        for entry in result["evaluations"] or [{}]:
            yield f"{head},{writer.cells(map(entry.get, EVALUATION_COLUMNS))},{tail}\r\n"


# --- JSON Lines ------------------------------------------------------------------------


def jsonl_lines(source: StageSource, tally: Tallied) -> Iterator[str]:
    """A JSON object for each trial of *source*, every text as it is."""
    for row in trial_rows(source, tally):
        yield encode_compact(jsonl_document(source, row)) + "\n"


def jsonl_document(source: StageSource, row: TrialRow) -> JsonObject:
    """The line of one trial: the case's input, expectation, split and tags, the output, and the result."""
    case = {name: row.case.get(name) for name in ("split", "tags", "input", "expected")}
    result = {name: value for name, value in row.result.items() if name not in ("case_id", "trial")}
    key = {"stage": source.stage, "stale": source.is_stale, "case_id": row.result["case_id"], "trial": row.result["trial"]}
    return {**key, **case, "output": row.observation.get("output"), "error": row.observation.get("error"), **result}


# --- Markdown --------------------------------------------------------------------------


def markdown_lines(source: StageSource, tally: Tallied, escaped: Any) -> Iterator[str]:
    """A table of the trials of *source* under a heading, then the counts; *escaped(text, limit)* makes a text safe inside a line."""
    yield f"## {escaped(source.stage, None)}\n\n| case | trial | outcome | score | what decided |\n|---|---|---|---|---|\n"
    for row in trial_rows(source, tally):
        result = row.result
        score = f"{result['score']:.3f}" if is_number(result["score"]) else "not measured"
        cells = [escaped(result["case_id"], None), str(result["trial"]), result["outcome"], score]
        yield f"| {' | '.join(cells)} | {escaped(deciding_text(result), MARKDOWN_REASON)} |\n"
    counts = tally.outcomes
    valid = counts["pass"] + counts["fail"]
    share = f"{percent(counts['pass'], valid)} of {counted(valid, 'measured trial')} passed"
    told = f"{counts['pass']:,} passed, {counts['fail']:,} failed, {counted(counts['error'], 'error')}"
    text = f"{counted(tally.shown(), 'trial')} shown: {told}; {share}."
    yield "\n" + " ".join([text, *[f"{note}." for note in left_out_notes(tally)]]) + "\n\n"


def left_out_notes(tally: Tallied) -> list[str]:
    """'5 holdout cases with 25 trials are counted and not shown', and what belongs to no case; [] when everything is shown."""
    cases, gone = len(tally.hidden_cases), tally.unknown_trials
    hidden = f"{counted(cases, 'holdout case')} with {counted(tally.hidden_trials, 'trial')}"
    notes = [f"{hidden} {'is' if cases == 1 else 'are'} counted and not shown"]
    left_out = f"{counted(gone, 'trial')} of cases that the dataset no longer holds {'was' if gone == 1 else 'were'} left out"
    return (notes if cases else []) + ([left_out] if gone else [])

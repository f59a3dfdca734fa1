"""What dashboard.html shows: runs, hash status, open decisions, cases × runs.

    board = read_board(folder, open_decision)

A history that is broken is read as far as it can be, and `problems` says what is wrong. Ids that
are of the holdout in any run leave this module nowhere: they are only counted.
"""

import os
from collections.abc import Callable
from itertools import compress, pairwise
from typing import NamedTuple

from kaizen.foundation.errors import InputError, RefusedError
from kaizen.foundation.files import list_folder, shown_path
from kaizen.foundation.jsonio import JsonObject
from kaizen.history.archive import ArchiveError, entry_object
from kaizen.history.ledger import PROMOTION, LedgerProblem, anchor_digest
from kaizen.history.reading import (
    History,
    HistoryRun,
    cohort_difference,
    difference_text,
    manifest_path,
    run_outcomes,
    run_row,
)
from kaizen.history.validation import DASHBOARD_FILE, archived_entries, history_problems

# Characters that stand for themselves in JSON and in a script element; states beyond these get a rarer one of four bytes.
PLAIN_CHARACTERS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"&<>\\')
RARE_CHARACTERS = 0x20000


class OpenDecision(NamedTuple):
    """A decision to be made: the run's row, a sentence, the command that goes on ('' for none), whether a rule forbids promotion."""

    row: JsonObject
    text: str
    command: str
    is_blocked: bool


class CaseMap:
    """Cases × runs: one character a cell, which stands for (change, passed trials, valid trials)."""

    def __init__(self) -> None:
        self.states: dict[tuple[str | None, int, int], str] = {}
        self.orders: dict[tuple[str, ...], int] = {}  # each list of case ids that runs have, once
        self.columns: dict[str, tuple[int, str]] = {}  # run: (list of ids, a character for each of them)
        self.hidden: set[str] = set()
        self.unread: list[str] = []  # runs whose outcomes are not what a recording writes

    def add_run(self, history: History, run: HistoryRun) -> None:
        """Reads the outcomes of *run*. Raises ArchiveError."""
        names, cells = [], []
        for outcome in run_outcomes(history, run):
            state = (outcome.change, *outcome.candidate)
            if state not in self.states:
                self.states[state] = state_character(len(self.states))
            names.append(outcome.id)
            cells.append(self.states[state])
            if outcome.is_holdout:
                self.hidden.add(outcome.id)
        self.columns[run.id] = (self.orders.setdefault(tuple(names), len(self.orders)), "".join(cells))

    def seal(self) -> None:
        """Takes out every case that is of the holdout in some run; called once, when all runs are read."""
        keeps = [[name not in self.hidden for name in names] for names in self.orders]
        self.columns = {run: (order, "".join(compress(cells, keeps[order]))) for run, (order, cells) in self.columns.items()}
        self.lists = [list(compress(names, keep)) for names, keep in zip(self.orders, keeps, strict=True)]
        self.meanings = {character: state for state, character in self.states.items()}
        self.orders, self.states = {}, {}

    def cells(self, run_id: str) -> dict[str, tuple[str | None, int, int]]:
        """{case id: (change, passed, valid)} of the run, in the order of its cases; {} for a run that could not be read."""
        order, cells = self.columns.get(run_id, (0, ""))
        return {name: self.meanings[cell] for name, cell in zip(self.lists[order], cells, strict=True)} if cells else {}

    def document(self) -> JsonObject:
        """{"cases": [ids], "lists": [spans of cases], "states": [[character, change, passed, valid]], "columns": {run: [list, cells]}}."""
        places: dict[str, int] = {}
        lists = [[places.setdefault(name, len(places)) for name in names] for names in self.lists]
        states = [[character, *state] for character, state in self.meanings.items()]
        return {"cases": list(places), "lists": list(map(position_spans, lists)), "states": states, "columns": self.columns}


class Board(NamedTuple):
    """Everything that the page shows.

    `rows` are those of `run_row` in the order recorded, with "delta_reason", "is_track" (the champion's line runs through it) and
    "other_version" (the champion's version, when an anchor is of another). `checks` has by run what is wrong with its files;
    `differences` has by cohort how it differs from the one before.
    """

    name: str
    entries: int
    anchor: str
    rows: list[JsonObject]
    problems: list[LedgerProblem]
    checks: dict[str, list[str]]
    differences: dict[str, str]
    decisions: list[OpenDecision]
    cases: CaseMap


DescribeOpen = Callable[[History, HistoryRun, JsonObject], OpenDecision | None]


def read_board(folder: str, describe: DescribeOpen) -> Board:
    """What the history in *folder* holds; *describe* says what is open about an undecided run, None for nothing.

    Raises RefusedError when the history is newer than this program, InputError when there is no folder.
    """
    history, problems = readable_history(folder)
    newer = next((each for each in problems if each.code == "newer_version"), None)
    if newer:
        raise RefusedError(newer.text(), newer.hint, newer.code)
    checks = run_checks(history, problems)
    rows = board_rows(history)
    cases = CaseMap()
    for run in history.runs.values():
        if run.manifest:
            try:
                cases.add_run(history, run)
            except ArchiveError:
                cases.unread.append(run.id)
    cases.seal()
    found = [] if problems else [describe(history, history.runs[row["id"]], row) for row in reversed(rows) if is_undecided(row)]
    return Board(
        name=os.path.basename(os.path.abspath(folder)),
        entries=len(history.entries),
        anchor=anchor_digest(history.entries) if history.entries else "",
        rows=rows,
        problems=[each._replace(path=portable_path(folder, each.path)) for each in problems],
        checks=checks,
        differences=cohort_differences(history),
        decisions=sorted((each for each in found if each), key=lambda each: each.is_blocked),
        cases=cases,
    )


def readable_history(folder: str) -> tuple[History, list[LedgerProblem]]:
    """(the history as far as it can be read, what is wrong); an empty folder is an empty history. Raises InputError."""
    is_empty = not set(list_folder(folder)) - {DASHBOARD_FILE}
    return (History(folder, [], {}), []) if is_empty else history_problems(folder)


def portable_path(folder: str, path: str) -> str:
    """*path* as seen from beside the history *folder*, so that a page says the same wherever it is made."""
    relative = os.path.relpath(os.path.abspath(path), os.path.dirname(os.path.abspath(folder)))
    return path if relative.startswith("..") else relative.replace(os.sep, "/")


def run_checks(history: History, problems: list[LedgerProblem]) -> dict[str, list[str]]:
    """{run id: what is wrong with its manifest and archived files}, [] for a run whose every hash verifies."""
    wrong = {problem.path: problem.message for problem in problems}
    found = {}
    for run in history.runs.values():
        names = [entry_object(entry) for entry in archived_entries(run)]
        paths = [manifest_path(history.folder, run.id), *(os.path.join(history.folder, *name.split("/")) for name in names)]
        shown = dict.fromkeys(map(shown_path, paths)) if wrong else {}
        found[run.id] = [wrong[path] for path in shown if path in wrong] or ([run.problem.partition(": ")[2]] if run.problem else [])
    return found


def board_rows(history: History) -> list[JsonObject]:
    """The rows of all runs, in the order recorded."""
    versions: dict[int, str] = {}  # number of the entry of a promotion: the version that was champion from then on
    for entry in history.entries:
        if entry["kind"] == PROMOTION and entry["run"] in history.runs:
            versions[entry["seq"]] = str(history.runs[entry["run"]].manifest.get("agent_version", ""))
    rows = []
    for run in history.runs.values():
        row = run_row(history, run)
        earlier = [version for number, version in versions.items() if number < row["seq"]]
        champion = earlier[-1] if earlier else None
        is_anchor = row["kind"] == "anchor" and not row["problem"]
        row["delta_reason"] = run.manifest.get("delta_reason")
        row["other_version"] = champion if is_anchor and champion not in (None, row["agent_version"]) else None
        row["is_track"] = bool(row["promoted_at"]) or (is_anchor and row["other_version"] is None)
        rows.append(row)
    return rows


def is_undecided(row: JsonObject) -> bool:
    """True when a compared run was never promoted and the recorded decision does not reject it."""
    if row["problem"] or row["promoted_at"] or row["superseded_by"] or row["recommendation"] is None:
        return False
    return row["decision"] is None or row["decision"]["status"] != "rejected"


def cohort_differences(history: History) -> dict[str, str]:
    """{cohort: how it differs from the cohort that began before it}; '' where an archived file cannot be read."""
    firsts = [runs[0] for cohort, runs in history.cohorts().items() if cohort]
    found = {}
    for before, run in pairwise(firsts):
        try:
            found[run.cohort()] = difference_text(cohort_difference(history, run, before))
        except InputError:
            found[run.cohort()] = ""
    return found


def state_character(number: int) -> str:
    """The character of the state *number*, no two the same."""
    rare = number - len(PLAIN_CHARACTERS)
    return PLAIN_CHARACTERS[number] if rare < 0 else chr(RARE_CHARACTERS + rare)


def position_spans(positions: list[int]) -> list[int]:
    """*positions* as pairs of first and length of each span that counts up by one: [4, 5, 6, 9] is [4, 3, 9, 1]."""
    spans: list[int] = []
    for position in positions:
        if spans and spans[-2] + spans[-1] == position:
            spans[-1] += 1
        else:
            spans += [position, 1]
    return spans

#!/usr/bin/env python3
"""Kaizen: show that a change to an AI agent is an improvement, before you ship it.

Toy edition: four layers, one evaluator family, one page. It exists to prove that
the amalgamator works and to show the shape that the real package has.
"""

# GENERATED FILE: do not edit. It is src/kaizen/ put into one file, line by line, by
# scripts/build.py; to change it, edit src/kaizen/ and run `python scripts/build.py`.
# `python scripts/build.py --check` proves that this file is what the sources give, and
# `python scripts/build.py --where N` names the source of line N.
# Each module is a section: its own text, line by line, in a string that load_section() below
# compiles when a command needs it, after the sections that it names. Tracebacks show the lines
# of this file.
#
# Contents, lowest layer first; a module uses only what stands above it. Search for
# '# region <path>' to jump to one (editors fold these regions).
#
#   foundation
#     foundation/errors.py         Errors that a user can act on, and the exit status each one ends in.
#     foundation/identity.py       Which Kaizen is this? Version, and the digest of the very bytes that run.
#     foundation/jsonl.py          JSON lines in and out: one record a line, errors that name the file and the line.
#
#   domain
#     stats/intervals.py           Interval estimates for pass rates.
#     evaluators/registry.py       The table of evaluators, and how a module adds one to it.
#     evaluators/text.py           Evaluators that look at the text of an output.
#     policy/comparison.py         Compare two stages case by case: improved, regressed, unchanged, not_comparable.
#
#   surface
#     web/review.py                The review page: one self-contained HTML file, everything in it escaped.
#     web/service.py               The local service: the review over HTTP on the loopback address.
#
#   cli
#     commands/table.py            The table of commands, and how a module adds one to it.
#     commands/stages.py           What the commands on two recorded stages share: arguments and verdicts.
#     commands/compare.py          `kaizen compare`: count what improved and what regressed.
#     commands/review.py           `kaizen review`: write the review page, or serve it.
#     cli/main.py                  Entry point: parse, run, and turn every failure into one line and an exit status.
#
# What reaches outside the process, and the only place where it may (checked at build):
#   starts processes:              foundation/process.py
#   listens on a port:             web/service.py
#   opens files:                   foundation/, commands/
#   loads or evaluates code:       load_section() below, which reads the sections of this file
#   writes to the terminal:        commands/, cli/

import os
import sys

if sys.version_info < (3, 10):
    raise SystemExit("kaizen needs Python 3.10 or newer; this is " + sys.version.split()[0])
if __name__ == "__main__" and sys.path[:1] == [os.path.dirname(os.path.realpath(__file__))]:
    del sys.path[0]  # a json.py beside this file must not be taken for Python's own

# Sections: most of this file is text until a command needs it, since compiling all of it
# would take longer than most commands do. `section` notes a part, `load_section` reads
# it, with what it needs, into this namespace. Nothing else is ever compiled or executed.

import sys
from _thread import RLock
from typing import Any

SECTIONS: dict[str, tuple[int, str, str]] = {}  # those not yet read: (line where it begins, its text, names of those it needs)
LOADING = RLock()
ENTRY: dict[str, str] = {}  # the function that runs the program: its section
PLACES: dict[str, dict[str, tuple[str, str, str]]] = {}  # table that decorators fill: what `places` gives


def section(name: str, text: str, needs: str = "") -> None:
    """Notes the section *name*, whose text begins on the line of the call."""
    SECTIONS[name] = (sys._getframe(1).f_lineno, text, needs)


def load_section(*names: str) -> None:
    """Makes what sections define, and all that they need, part of this namespace: each once, in the order of the file.

    The lines before a section are blank when it is compiled, so that a traceback shows lines of this file.
    """
    with LOADING:
        wanted, pending = set(), list(names)
        while pending:
            name = pending.pop()
            if name in SECTIONS and name not in wanted:
                wanted.add(name)
                pending += SECTIONS[name][2].split()
        for name in [name for name in SECTIONS if name in wanted]:
            line, text, _ = SECTIONS.pop(name)
            exec(compile("\n" * (line - 1) + text, __file__, "exec", dont_inherit=True), globals())


def places(table: str) -> dict[str, tuple[str, str, str]]:
    """{entry of a table that decorators fill: (its section, its group, its sentence)}, in the order of the file."""
    return PLACES[table]


def __getattr__(name: str) -> Any:
    """What `import kaizen` gives as kaizen.NAME: every section is read for it, but only its own for the program's entry."""
    if not (name.startswith("__") and name.endswith("__")):
        load_section(*([ENTRY[name]] if name in ENTRY else SECTIONS))
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Every name of the program, for `dir(kaizen)`: all sections are read."""
    load_section(*SECTIONS)
    return sorted(globals())


ENTRY["main"] = "cli.main"
PLACES["EVALUATORS"] = {
    "contains": ("evaluators.text", "", ""),
    "matches": ("evaluators.text", "", ""),
}
PLACES["COMMANDS"] = {
    "compare": ("commands.compare", "", ""),
    "review": ("commands.review", "", ""),
}

# region foundation/errors.py
# =============================================================================
# Errors that a user can act on, and the exit status each one ends in.
#
#     KaizenError          2   base: wrong input, or a state that forbids the request
#     - UsageError         2   the command line itself is wrong
#     - DataError          2   a file is missing, malformed or inconsistent
#     - NotAllowedError    3   a rule forbids it (promotion without a decision, ...)
# =============================================================================
section("foundation.errors", r'''


class KaizenError(Exception):
    """Something the user can fix. The message says what, where, and what to do next."""

    exit_status = 2

    def __init__(self, message: str, hint: str = ""):
        super().__init__(message)
        self.hint = hint


class UsageError(KaizenError):
    """The command line is wrong."""


class DataError(KaizenError):
    """A file is missing, malformed or contradicts another one."""


class NotAllowedError(KaizenError):
    """The request is well formed, but a rule of the product forbids it."""

    exit_status = 3
''')
# endregion

# region foundation/identity.py
# =============================================================================
# Which Kaizen is this? Version, and the digest of the very bytes that run.
# =============================================================================
section("foundation.identity", r'''
import hashlib
import sys

VERSION = "0.1.0"


def own_path() -> str:
    """Path of the running file: kaizen.py itself, or this module when run from src/."""
    return __file__


def own_digest() -> str:
    """SHA-256 (64 hex digits) of the running file, as `sha256sum kaizen.py` prints it."""
    with open(own_path(), "rb") as stream:
        return hashlib.sha256(stream.read()).hexdigest()


def version_line() -> str:
    """One line for --version: 'kaizen 0.1.0 (sha256 1f2e3d4c5b6a, Python 3.12.1)'."""
    python = sys.version.split()[0]
    return f"kaizen {VERSION} (sha256 {own_digest()[:12]}, Python {python})"
''')
# endregion

# region foundation/jsonl.py
# =============================================================================
# JSON lines in and out: one record a line, errors that name the file and the line.
# =============================================================================
section("foundation.jsonl", r'''
import json
from pathlib import Path
from typing import Any


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Records of a .jsonl file; blank lines are skipped.

    Raises DataError for a missing file, and for a line that is not one JSON object
    (named as path:line).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file", hint="run 'kaizen run' first") from None
    records = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}:{number}: not JSON: {error}") from None
        if not isinstance(record, dict):
            raise DataError(f"{path}:{number}: expected an object, got {type(record).__name__}")
        records.append(record)
    return records
''', (
    "foundation.errors "
))
# endregion

# region stats/intervals.py
# =============================================================================
# Interval estimates for pass rates.
#
# Every function says what it does with no data: it returns None, never 0.0, so that
# "nothing measured" cannot be mistaken for "measured zero".
# =============================================================================
section("stats.intervals", r'''
from math import sqrt
from typing import NamedTuple

# Two-sided 95% quantile of the standard normal distribution.
Z_95 = 1.959963984540054


class Interval(NamedTuple):
    """A closed interval of a proportion; 0 <= low <= high <= 1."""

    low: float
    high: float


def wilson_interval(passed: int, trials: int, z: float = Z_95) -> Interval | None:
    """Wilson score interval of passed/trials, or None without trials.

    >>> low, high = wilson_interval(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4902, 0.9433)

    Source: E. B. Wilson (1927), Probable inference, the law of succession, and
    statistical inference. JASA 22, 209-212.
    """
    if not 0 <= passed <= trials:
        raise ValueError(f"passed must be within 0..trials, got {passed} of {trials}")
    if trials == 0:
        return None
    rate = passed / trials
    scale = 1 + z * z / trials
    center = (rate + z * z / (2 * trials)) / scale
    margin = z * sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / scale
    return Interval(max(0.0, center - margin), min(1.0, center + margin))
''')
# endregion

# region evaluators/registry.py
# =============================================================================
# The table of evaluators, and how a module adds one to it.
#
# An evaluator is a function (output, settings) -> Verdict, registered under the name
# that evaluation.json uses:
#
#     @evaluator("contains")
#     def evaluate_contains(output: str, settings: Settings) -> Verdict: ...
#
# To add one: write it in a module of evaluators/, nothing else.
# =============================================================================
section("evaluators.registry", r'''
from collections.abc import Callable
from typing import Any, NamedTuple


class Verdict(NamedTuple):
    """passed is None when the evidence does not allow a verdict; reason then says why."""

    passed: bool | None
    reason: str


Settings = dict[str, Any]
Evaluator = Callable[[str, Settings], Verdict]

EVALUATORS: dict[str, Evaluator] = {}


def evaluator(name: str) -> Callable[[Evaluator], Evaluator]:
    """Register a function as the evaluator *name*; a second one of that name is an error."""

    def register(function: Evaluator) -> Evaluator:
        if name in EVALUATORS:
            raise ValueError(f"evaluator {name!r} is registered twice")
        EVALUATORS[name] = function
        return function

    return register


def apply_evaluator(name: str, output: str | None, settings: Settings) -> Verdict:
    """Verdict of the evaluator *name* on *output*; missing output gives no verdict."""
    known = places("EVALUATORS")
    if name not in known:
        raise DataError(f"unknown evaluator {name!r}", hint=f"known: {', '.join(sorted(known))}")
    if output is None:
        return Verdict(None, "no output recorded")
    load_section(known[name][0])
    return EVALUATORS[name](output, settings)
''', (
    "foundation.errors "
))
# endregion

# region evaluators/text.py
# =============================================================================
# Evaluators that look at the text of an output.
# =============================================================================
section("evaluators.text", r'''
import re


@evaluator("contains")
def evaluate_contains(output: str, settings: Settings) -> Verdict:
    """Passes if settings["text"] occurs in the output, case included."""
    wanted = settings["text"]
    if wanted in output:
        return Verdict(True, f"contains {wanted!r}")
    return Verdict(False, f"does not contain {wanted!r}")


@evaluator("matches")
def evaluate_matches(output: str, settings: Settings) -> Verdict:
    """Passes if the regular expression settings["pattern"] is found in the output."""
    try:
        found = re.search(settings["pattern"], output)
    except re.error as error:
        raise DataError(f"evaluator matches: bad pattern: {error}") from None
    return Verdict(bool(found), "pattern found" if found else "pattern not found")
''', (
    "foundation.errors evaluators.registry "
))
# endregion

# region policy/comparison.py
# =============================================================================
# Compare two stages case by case: improved, regressed, unchanged, not_comparable.
# =============================================================================
section("policy.comparison", r'''
from typing import NamedTuple

OUTCOMES = ("improved", "regressed", "unchanged", "not_comparable")


class Comparison(NamedTuple):
    """Outcome per case ID, in the order of the baseline, and the candidate's pass rate."""

    outcomes: dict[str, str]
    interval: Interval | None

    def count(self, outcome: str) -> int:
        """How many cases had *outcome*."""
        return sum(1 for value in self.outcomes.values() if value == outcome)


def case_outcome(before: bool | None, after: bool | None) -> str:
    """One of OUTCOMES for a case that had *before* and *after* (None: no verdict)."""
    if before is None or after is None:
        return "not_comparable"
    if before == after:
        return "unchanged"
    return "improved" if after else "regressed"


def compare(baseline: dict[str, bool | None], candidate: dict[str, bool | None]) -> Comparison:
    """Compare verdicts by case ID; a case that one side lacks is not comparable."""
    ids = list(baseline) + [case_id for case_id in candidate if case_id not in baseline]
    outcomes = {i: case_outcome(baseline.get(i), candidate.get(i)) for i in ids}
    judged = [passed for passed in candidate.values() if passed is not None]
    return Comparison(outcomes, wilson_interval(sum(judged), len(judged)))
''', (
    "stats.intervals "
))
# endregion

# region web/review.py
# =============================================================================
# The review page: one self-contained HTML file, everything in it escaped.
# =============================================================================
REVIEW_HTML = r"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Review</title>
<style>
$css</style>
</head>
<body>
<h1>Review</h1>
<p>Candidate pass rate (Wilson, 95%): $rate</p>
<table>
$rows
</table>
<script>
$js</script>
</body>
</html>
"""
REVIEW_CSS = r"""body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; }
.regressed td::before { content: "\2718  "; }
"""
REVIEW_JS = r"""// A backslash in a regular expression must survive embedding.
for (const row of document.querySelectorAll("tr")) {
  row.title = row.className.replace(/_(\w)/g, (_, letter) => " " + letter);
}
"""
section("web.review", r'''
from html import escape
from string import Template



def review_page(comparison: Comparison) -> str:
    """HTML of the review of *comparison*; the same bytes for the same input."""
    rows = "\n".join(
        f'<tr class="{escape(outcome)}"><td>{escape(case_id)}</td><td>{escape(outcome)}</td></tr>'
        for case_id, outcome in comparison.outcomes.items()
    )
    interval = comparison.interval
    rate = f"{interval.low:.3f} to {interval.high:.3f}" if interval else "not measured"
    return Template(REVIEW_HTML).substitute(css=REVIEW_CSS, js=REVIEW_JS, rate=rate, rows=rows)
''', (
    "policy.comparison "
))
# endregion

# region web/service.py
# =============================================================================
# The local service: the review over HTTP on the loopback address.
# =============================================================================
section("web.service", r'''
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from http.server import HTTPServer


def make_server(page: str, port: int) -> "HTTPServer":
    """A server on 127.0.0.1:port (0: any free port) that answers GET / with *page*."""
    from http.server import BaseHTTPRequestHandler, HTTPServer

    if not 0 <= port <= 65535:
        raise UsageError(f"port must be within 0..65535, got {port}")

    class Handler(BaseHTTPRequestHandler):
        """Serves one page and nothing from disk."""

        def do_GET(self) -> None:
            body = page.encode("utf-8")
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body if self.path == "/" else b"not found")

        def log_message(self, *args: object) -> None:
            """Quiet: requests are not logged to stderr."""

    return HTTPServer(("127.0.0.1", port), Handler)
''', (
    "foundation.errors "
))
# endregion

# region commands/table.py
# =============================================================================
# The table of commands, and how a module adds one to it.
#
#     @command("compare", compare_arguments)
#     def command_compare(args: argparse.Namespace) -> int: ...
#
# To add a command: one file in commands/, nothing else.
# =============================================================================
section("commands.table", r'''
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import NamedTuple

Run = Callable[[Namespace], int]


class Command(NamedTuple):
    """A command's function, its one-line help, and what adds its arguments."""

    run: Run
    summary: str
    add_arguments: Callable[[ArgumentParser], None]


COMMANDS: dict[str, Command] = {}


def command(name: str, add_arguments: Callable[[ArgumentParser], None]) -> Callable[[Run], Run]:
    """Register a function as `kaizen <name>`; the first line of its docstring is the help."""

    def register(function: Run) -> Run:
        if name in COMMANDS:
            raise ValueError(f"command {name!r} is registered twice")
        COMMANDS[name] = Command(function, (function.__doc__ or "").split("\n")[0], add_arguments)
        return function

    return register
''')
# endregion

# region commands/stages.py
# =============================================================================
# What the commands on two recorded stages share: arguments and verdicts.
# =============================================================================
section("commands.stages", r'''
from argparse import ArgumentParser, Namespace
from pathlib import Path


def stage_arguments(parser: ArgumentParser) -> None:
    """Add the two stages and the evaluator's setting."""
    parser.add_argument("baseline", type=Path, help="outputs before the change, as .jsonl")
    parser.add_argument("candidate", type=Path, help="outputs after the change, as .jsonl")
    parser.add_argument("--contains", required=True, metavar="TEXT", help="a pass is an output with TEXT")


def stage_verdicts(path: Path, text: str) -> dict[str, bool | None]:
    """Verdict per case ID of the records in *path* ({"id": ..., "output": ...})."""
    found = {}
    for record in read_jsonl(path):
        if "id" not in record:
            raise DataError(f"{path}: a record has no id")
        found[record["id"]] = apply_evaluator("contains", record.get("output"), {"text": text}).passed
    return found


def compare_stages(args: Namespace) -> Comparison:
    """The comparison that the arguments of `stage_arguments` ask for."""
    return compare(stage_verdicts(args.baseline, args.contains), stage_verdicts(args.candidate, args.contains))
''', (
    "foundation.errors foundation.jsonl evaluators.registry policy.comparison "
))
# endregion

# region commands/compare.py
# =============================================================================
# `kaizen compare`: count what improved and what regressed.
# =============================================================================
section("commands.compare", r'''
from argparse import Namespace


@command("compare", stage_arguments)
def command_compare(args: Namespace) -> int:
    """Compare two recorded stages; exit 1 if a case regressed."""
    result = compare_stages(args)
    for outcome in OUTCOMES:
        print(f"{outcome}: {result.count(outcome)}")
    return 1 if result.count("regressed") else 0
''', (
    "policy.comparison commands.table commands.stages "
))
# endregion

# region commands/review.py
# =============================================================================
# `kaizen review`: write the review page, or serve it.
# =============================================================================
section("commands.review", r'''
from argparse import ArgumentParser, Namespace
from pathlib import Path


def review_arguments(parser: ArgumentParser) -> None:
    """Add the stages, and where the page goes."""
    stage_arguments(parser)
    parser.add_argument("--output", type=Path, default=Path("review.html"))
    parser.add_argument("--serve", type=int, metavar="PORT", help="serve it instead, until interrupted")


@command("review", review_arguments)
def command_review(args: Namespace) -> int:
    """Write the review page of two recorded stages."""
    page = review_page(compare_stages(args))
    if args.serve is not None:
        with make_server(page, args.serve) as server:
            print(f"http://127.0.0.1:{server.server_port}/")
            server.serve_forever()
        return 0
    args.output.write_text(page, encoding="utf-8", newline="\n")
    print(args.output)
    return 0
''', (
    "web.review web.service commands.table commands.stages "
))
# endregion

# region cli/main.py
# =============================================================================
# Entry point: parse, run, and turn every failure into one line and an exit status.
# =============================================================================
section("cli.main", r'''
import argparse
import os
import sys

INTERNAL_ERROR_STATUS = 70  # EX_SOFTWARE of sysexits.h


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(prog="kaizen", description="Compare an agent before and after a change.")
    parser.add_argument("--version", action="store_true", help="version and digest of this file")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, entry in COMMANDS.items():
        entry.add_arguments(subparsers.add_parser(name, help=entry.summary, description=entry.summary))
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit status (0 done, 1 'no', 2 bad input, 3 forbidden)."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.version:
        print(version_line())
        return 0
    if not args.command:
        parser.print_help()
        return 2
    try:
        return COMMANDS[args.command].run(args)
    except KaizenError as error:
        print(f"kaizen: {error}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return error.exit_status
    except Exception as error:
        if os.environ.get("KAIZEN_DEBUG"):
            raise
        frame = innermost_frame(error)
        print(f"kaizen: internal error: {type(error).__name__}: {error} ({frame})", file=sys.stderr)
        print(f"hint: {version_line()}; set KAIZEN_DEBUG=1 for the traceback", file=sys.stderr)
        return INTERNAL_ERROR_STATUS


def innermost_frame(error: BaseException) -> str:
    """'kaizen.py:812 in wilson_interval': the deepest frame inside Kaizen's own file."""
    found = "no frame"
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == own_path():
            found = f"{os.path.basename(code.co_filename)}:{trace.tb_lineno} in {code.co_name}"
        trace = trace.tb_next
    return found
''', (
    "foundation.errors foundation.identity commands.table commands.compare commands.review "
))
# endregion


if __name__ == "__main__":
    raise SystemExit(__getattr__("main")())

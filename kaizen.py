#!/usr/bin/env python3
"""Kaizen: prove that a change to an AI agent is an improvement, before you ship it.

Write cases, run any program before and after a change, evaluate, read one page that
says what improved and what regressed, record a decision, and keep the fixed cases as
permanent tests. Files on disk are the interface: JSON, JSONL, Markdown, HTML.

    python kaizen.py demo        see it work, with nothing installed
    python kaizen.py --help      the main flow
"""

# GENERATED FILE: do not edit. It is src/kaizen/ put into one file, line by line, by
# scripts/build.py; to change it, edit src/kaizen/ and run `python scripts/build.py`.
# `python scripts/build.py --check` proves that this file is what the sources give, and
# `python scripts/build.py --where N` names the source of line N.
#
# Contents, lowest layer first; a module uses only what stands above it. Search for
# '# region <path>' to jump to one (editors fold these regions).
#
#   foundation
#     foundation/errors.py         Errors that know their exit status, and the collector of breaches for validation.
#     foundation/clock.py          The clock: the one place that asks what time it is, so that tests can replace it.
#     foundation/text.py           Text for people: safe to print, cut with a note, counted, slugged, nearest name.
#     foundation/files.py          Reading and writing files: the only door to the disk.
#     foundation/identity.py       Version and digest of the running program.
#     foundation/jsonio.py         Strict JSON and JSON Lines: what is accepted, how it is written, fingerprints, pointers.
#     foundation/locks.py          Locks: one writer at a time; the kernel lets go when the owner dies.
#     foundation/journals.py       Append-only logs: an object a line, on disk at once, mended after a crash.
#     foundation/shapes.py         What the fields of a document may hold: kinds, and the check against a table of them.
#     foundation/frontmatter.py    Block-style YAML, the small part of it that people and this program both write.
#     foundation/schema_formats.py Formats of JSON Schema that are checked: date, email, uri and the like, each by its RFC.
#     foundation/schema_builder.py The compiler behind JSON Schema: subschemas by pointer, references, patterns, breaches.
#     foundation/schema_keywords.py JSON Schema keywords for any value, numbers and text, and what keywords are made of.
#     foundation/schema.py         JSON Schema 2020-12: a schema compiled once into a function that names each breach.
#     foundation/secret_shapes.py  What secrets look like in a text: shapes of issued keys, and names that tell a secret.
#     foundation/redact.py         Secrets masked in text, JSON and command lines: `***REDACTED:github_token***`.
#     foundation/process.py        Starting programs and heeding signals: the only door to processes.
#     foundation/progress.py       Progress on standard error: a changing line on a terminal, else a line per 10 %.
#
#   stats
#     stats/intervals.py           Quantiles and tails of normal and Student, intervals for rates and paired rates.
#     stats/aggregates.py          Means, percentiles, rates over cases, pass^k, flaky, precision; None where nothing is.
#     stats/lattice.py             The exact bootstrap law of a mean: limits, P(better), paired cases.
#     stats/exact_tests.py         Exact tests of paired cases: sign-flip, McNemar, and one for the suite alone.
#     stats/sampler.py             Seeded resampling by counts, with integers only: the same draws on every Python.
#     stats/agreement.py           Agreement beyond chance: kappa with its interval, Fleiss, Krippendorff, the human band.
#     stats/multiple.py            Many variants at once: adjusted p-values, informative cases needed, the Pareto front.
#     stats/planning.py            How many cases and trials it takes: cases needed, smallest effect seen, power.
#     stats/sequential.py          Looking early without false alarms: an e-process over case differences.
#     stats/looks.py               Few looks at a sealed holdout: alpha spending, the Ladder, Thresholdout.
#
#   cases
#     cases/improvement.py         The improvement folder: where its files lie, and how it is found.
#     cases/case.py                One test case: its fields and their types, and its fingerprints.
#     cases/dataset.py             All cases of an improvement: its own test_cases.jsonl, then the files that it includes.
#     cases/evaluation_file.py     evaluation.json: evaluators, policy, optional blocks; defaults and references filled in.
#     cases/decision.py            decision.yaml: what a person decided, and about which evidence.
#     cases/scaffold.py            A new improvement folder: an issue to describe, two example cases, one evaluator.
#
#   runs
#     runs/observation.py          Observations: the raw evidence of one trial each, a line of `<stage>.jsonl`.
#     runs/cuts.py                 Cuts texts short, masked first: half a secret would not be recognised any more.
#     runs/protocol.py             Runner protocol 1.2: the request a runner gets, and what counts as its answer.
#     runs/commit.py               Which commit a run was made from, asked of git without running what a repo configures.
#     runs/plan.py                 What a run is asked to do: which cases, and with which seeds.
#     runs/journal.py              The files of a stage while it is run: observations, meta file, what was superseded.
#     runs/replay.py               Replay: recorded answers in place of a runner.
#     runs/workers.py              Workers: who answers trials. The bridge knows their interface only.
#     runs/bridge.py               The bridge: has the trials of a stage answered by workers of any kind, and records them.
#
#   evaluators
#     evaluators/paths.py          The path language of evaluators: a root, then a JSON Pointer in which * is all.
#     evaluators/decimals.py       Numbers as people write them, kept exact: 0.1 is a tenth, $1,250.00 is 1250.
#     evaluators/outcomes.py       What an evaluator answers: pass, fail, error or not_applicable, and why.
#     evaluators/registry.py       The table of evaluator types, and how a module adds one to it.
#     evaluators/regex_timer.py    Regular expressions of the user: compiled with care, run for one second at most.
#     evaluators/predicates.py     Predicates: small rules about one JSON value, the same in every parameter.
#     evaluators/transforms.py     Transforms: named, pure steps between what an entry selects and what its check sees.
#     evaluators/shell_words.py    Shell command lines read as programs and arguments; nothing is run or expanded.
#     evaluators/trail.py          The recorded steps of an observation: their content, their order, how reasons call them.
#     evaluators/arguments.py      What a step matcher asks of arguments and results: names, pointers, modes, defaults.
#     evaluators/matcher.py        The step matcher: one object that says which recorded steps are meant.
#     evaluators/consent.py        Whether a user's message says yes.
#     evaluators/spoken.py         Whether a value was said in messages, in the forms in which people write it.
#     evaluators/envelope.py       The envelope: what every entry may say beside its type's parameters; making it ready.
#     evaluators/assignment.py     The pairing of two lists, one to one, that gains most in all.
#     evaluators/catalogue.py      The catalogue of evaluator types: terminal, --json, docs/evaluators.md.
#     evaluators/combine.py        Combinators: all, any, none, at_least of several entries, in three-valued logic.
#     evaluators/conduct.py        Whether the agent asked before it acted: the evaluator `confirmation`.
#     evaluators/dates.py          Dates as people write them: 2026-03-05, 5 March 2026, 05.03.2026, 3/25/2026.
#     evaluators/field_comparison.py A document compared with a reference, field by field; lists paired one to one.
#     evaluators/field_rules.py    The rules of `fields`: what each op compares, and what a rule may hold.
#     evaluators/fields.py         The evaluator `fields`: a document compared with a reference, field by field.
#     evaluators/json_text.py      JSON in the text of an answer: the whole text, the first value, or a code fence.
#     evaluators/limits.py         The evaluator `budget`: what a trial may use, and how its cost and duration are known.
#     evaluators/numbers.py        The evaluator `number`: which number a text says, and whether it is the right one.
#     evaluators/pairing.py        Pairing listed with recorded steps, one to one and as many as possible.
#     evaluators/precedence.py     What came before what: the evaluator `order`.
#     evaluators/sequence.py       Which listed steps happened, and what else did: the evaluator `sequence`.
#     evaluators/structure.py      The evaluator `json`: the answer is JSON, and fits a JSON Schema.
#     evaluators/text.py           Evaluators over text and plain values: equals, contains, matches, length.
#     evaluators/trajectory.py     How many steps were taken, and what holds of them: the evaluator `steps`.
#     evaluators/suite.py          The suite: all evaluators of an improvement, ready to look at its observations.
#     evaluators/stage_results.py  Evaluating a stage: its results, their meta file, and when they are stale.
#
#   policy
#     policy/comparison.py         Baseline against candidate, case by case: shares, changes, rates.
#     policy/acceptance.py         The thresholds of `acceptance`, compared on exact fractions.
#     policy/reliability.py        How sure the change is: intervals, tests, noise, and what it would take to be surer.
#     policy/reliability_words.py  What reliability says in words, the same on the terminal, in reasons and on the page.
#     policy/plan.py               Before a run: cases × trials, the smallest effect each shows, its cost and time.
#     policy/noise.py              The unchanged agent against itself: how often a verdict flips, in which case, and why.
#     policy/replay.py             Kept evidence under another policy: what flips, without running the agent.
#     policy/recommendation.py     The recommendation and its reasons, by a list of precedence.
#
#   exporters
#     exporters/junit.py           JUnit XML for CI systems: one test case a case.
#
#   web
#     web/page.py                  The frame all pages share: one look, a strict content policy, and text that stays data.
#     web/evidence.py              Where each trial stands in the files of a stage, for pages written case by case.
#     web/case_data.py             One case as the data a page shows: its title, and the detail that opens below it.
#     web/review_words.py          What a review says in words and numbers, the same on the page and in review.md.
#     web/review_html.py           The parts of the review page that need no JavaScript: sentence, numbers, reasons.
#     web/review_markdown.py       review.md: the review as a comment on a pull request, at most 60,000 characters.
#     web/reliability_section.py   The page's section on how sure the change is: interval plot, strip of cases, table.
#     web/review.py                review.html and review.md: what improved, what regressed, and the command to decide.
#
#   commands
#     commands/table.py            The table of commands, and how a module adds one to it.
#     commands/context.py          What most commands begin with: the files loaded, the stages assessed.
#     commands/openings.py         Openings of the holdout: a named act that leaves a mark (formats.md 1.7).
#     commands/reporting.py        What several commands tell of a comparison: the lines, the page, the pending decision.
#     commands/run.py              `kaizen run`: has a runner answer the cases of an improvement and records what it did.
#     commands/decide.py           `kaizen decide`: a person's decision about exactly the evidence that was reviewed.
#     commands/demo.py             `kaizen demo`: the whole job on a bundled support agent, in seconds, with no network.
#     commands/evaluate.py         `kaizen evaluate`: what the evaluators say of every trial of a stage.
#     commands/evaluators.py       `kaizen evaluators`: the catalogue of evaluator types.
#     commands/gate.py             `kaizen gate`: the recommendation as an exit code, for CI.
#     commands/improvement_files.py What `kaizen validate` asks of each file beside the cases and evaluation.json.
#     commands/init.py             `kaizen init NAME`: a new improvement folder to fill in.
#     commands/noise.py            `kaizen noise`: the unchanged agent against itself.
#     commands/plan.py             `kaizen plan`: how many cases and trials it takes, before they are run.
#     commands/promote.py          `kaizen promote`: the fixed cases become permanent regression tests.
#     commands/reliability.py      `kaizen reliability`: how sure the change is, and what it would take to be surer.
#     commands/replay_decision.py  `kaizen replay-decision`: kept evidence under a changed evaluator or policy.
#     commands/review.py           `kaizen review`: comparison.json, review.html, review.md, and the pending decision.
#     commands/test.py             `kaizen test`: the daily call: run, evaluate, review and gate in one process.
#     commands/validate.py         `kaizen validate`: every file of an improvement checked, every breach with its place.
#
#   cli
#     cli/parser.py                The command line: one argparse parser, for the command that was named.
#     cli/main.py                  Entry point: every ending becomes output and an exit status.
#
# What reaches outside the process, and the only place where it may (checked at build):
#   starts or signals processes:   foundation/process.py
#   sets signals and timers:       foundation/process.py, evaluators/, cli/
#   starts threads:                foundation/process.py, foundation/progress.py, runs/
#   opens files:                   foundation/files.py
#   writes to the terminal:        commands/, cli/, foundation/progress.py
#   listens on a port:             nowhere
#   opens connections:             nowhere
#   runs SQL:                      nowhere
#   loads or evaluates code:       nowhere

import os
import sys

if sys.version_info < (3, 10):
    raise SystemExit("kaizen needs Python 3.10 or newer; this is " + sys.version.split()[0])
if __name__ == "__main__" and sys.path[:1] == [os.path.dirname(os.path.realpath(__file__))]:
    del sys.path[0]  # a json.py beside this file must not be taken for Python's own

import argparse
import hashlib
import itertools
import json
import math
import operator
import re
import time
from argparse import ArgumentTypeError, Namespace
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import combinations
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn, Optional, TextIO, TypeVar

if TYPE_CHECKING:
    from fractions import Fraction
    from random import Random

# region foundation/errors.py
# =============================================================================
# Errors that know their exit status, and the collector of breaches for validation.
#
#     KaizenError                 2  base: wrong usage or unreadable input
#     ├── UsageError              2  the command line is wrong
#     ├── InputError              2  a file or value cannot be used
#     │   └── BreachesError       2  several breaches found in files (1 in `validate`)
#     ├── AnswerNo                1  the answer is no
#     ├── HumanMustDecide         3  a person has to decide
#     ├── IncompleteError         4  what is there is saved and can be resumed
#     ├── RefusedError            5  a precondition does not hold
#     └── Interrupted           130  Ctrl-C or SIGTERM
# =============================================================================

EXIT_DONE = 0
EXIT_NO = 1
EXIT_USAGE = 2
EXIT_HUMAN = 3
EXIT_INCOMPLETE = 4
EXIT_REFUSED = 5
EXIT_DEFECT = 70  # EX_SOFTWARE of sysexits.h
EXIT_INTERRUPTED = 130  # 128 + SIGINT, the shell's convention

MAX_BREACHES_SHOWN = 50


class KaizenError(Exception):
    """A failure that is told in one line: message, hint (what to do), and a stable reason code."""

    exit_status = EXIT_USAGE
    default_reason = "error"

    def __init__(self, message: str, hint: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.reason = reason or self.default_reason


class UsageError(KaizenError):
    """The command line is wrong."""

    default_reason = "usage"


class InputError(KaizenError):
    """A file or a value in it cannot be used."""

    default_reason = "unreadable_input"


class AnswerNo(KaizenError):
    """The question was answered, and the answer is no."""

    exit_status = EXIT_NO
    default_reason = "no"


class HumanMustDecide(KaizenError):
    """Only a person can go on from here."""

    exit_status = EXIT_HUMAN
    default_reason = "human_must_decide"


class IncompleteError(KaizenError):
    """Part of the work is done and saved; the rest can be resumed."""

    exit_status = EXIT_INCOMPLETE
    default_reason = "incomplete"


class RefusedError(KaizenError):
    """A precondition does not hold; nothing was changed."""

    exit_status = EXIT_REFUSED
    default_reason = "refused"


class Interrupted(KaizenError):
    """The user or the system asked the command to stop."""

    exit_status = EXIT_INTERRUPTED
    default_reason = "interrupted"


class Breach(NamedTuple):
    """One breach of a format: where it stands, what is wrong, what to do."""

    path: str
    line: int | None
    pointer: str
    message: str
    hint: str = ""
    is_warning: bool = False

    def place(self) -> str:
        """'path:line#/pointer' with the parts that are known."""
        line = f":{self.line}" if self.line else ""
        return f"{self.path}{line}{'#' + self.pointer if self.pointer else ''}"

    def text(self) -> str:
        """'place: message', in one line; a hint follows in brackets."""
        return f"{self.place()}: {self.message}" + (f" [{self.hint}]" if self.hint else "")


    def concealed(self) -> "Breach":
        """The breach without anything that it quotes, and without the names and values inside the field it is about."""
        kept = re.match(r"(/[^/]*(/\d+(?=/|$))?)?", self.pointer)
        message, hint = (re.sub(r"'.*'|\".*\"", "'…'", text) for text in (self.message, self.hint))
        message = re.sub(r"\bnot (-?\d|true\b|false\b|null\b)\S*", "not this one", message)
        return self._replace(pointer=kept.group() if kept else "", message=message, hint=hint)


class Breaches:
    """Collects breaches and warnings while a file is checked, so that all are reported at once.

    Of a line that was named with `conceal` nothing is quoted, whoever reports it.
    """

    def __init__(self) -> None:
        self.errors: list[Breach] = []
        self.warnings: list[Breach] = []
        self.secret: set[tuple[str, int | None]] = set()

    def conceal(self, path: str, line: int) -> None:
        """From now on nothing of this line is shown."""
        self.secret.add((path, line))

    def shown(self, breach: Breach) -> Breach:
        """*breach* as it may be shown."""
        return breach.concealed() if (breach.path, breach.line) in self.secret else breach

    def add(self, path: str, line: int | None, pointer: str, message: str, hint: str = "") -> None:
        """Notes something that makes the file unusable."""
        self.errors.append(self.shown(Breach(path, line, pointer, message, hint)))

    def warn(self, path: str, line: int | None, pointer: str, message: str, hint: str = "") -> None:
        """Notes something that the user should know and that stops nothing."""
        self.warnings.append(self.shown(Breach(path, line, pointer, message, hint, True)))

    def raise_if_any(self) -> None:
        """Raises BreachesError when there is an error among them."""
        if self.errors:
            raise BreachesError(self.errors)


class BreachesError(InputError):
    """One or more breaches; `breaches` holds all of them."""

    default_reason = "invalid_file"

    def __init__(self, breaches: list[Breach]) -> None:
        first = breaches[0]
        super().__init__(f"{first.place()}: {first.message}", first.hint)
        self.breaches = breaches

    def further_lines(self) -> list[str]:
        """The breaches after the first, at most 50 in all, then a count of the rest."""
        lines = [breach.text() for breach in self.breaches[1:MAX_BREACHES_SHOWN]]
        hidden = len(self.breaches) - MAX_BREACHES_SHOWN
        return [*lines, f"and {hidden} more"] if hidden > 0 else lines

# endregion

# region foundation/clock.py
# =============================================================================
# The clock: the one place that asks what time it is, so that tests can replace it.
# =============================================================================


def utc_now() -> str:
    """The current time as ISO 8601 in UTC with milliseconds, e.g. 2026-01-02T03:04:05.678Z."""
    now = time.time()
    milliseconds = int(now * 1000) % 1000
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{milliseconds:03d}Z"


def monotonic_seconds() -> float:
    """Seconds of a clock that never goes back; only differences mean something."""
    return time.monotonic()

# endregion

# region foundation/text.py
# =============================================================================
# Text for people: safe to print, cut with a note, counted, slugged, nearest name.
# =============================================================================

# C0 and C1 controls, line and paragraph separators, and the marks that reorder or hide text.
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]")
ESCAPED_CONTROLS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, limit: int | None = 120) -> str:
    """*text* on one line with control, bidirectional and zero-width characters written as escapes.

    Longer texts are cut to *limit* characters with the number left out; None does not cut.
    """
    shown, left_out = (text, 0) if limit is None or len(text) <= limit else (text[:limit], len(text) - limit)
    shown = UNSAFE.sub(escaped_character, shown)
    return f"{shown}… ({left_out} more characters)" if left_out else shown


def escaped_character(match: "re.Match[str]") -> str:
    """The escape of the one character that *match* holds: \\n, \\x1b, \\u202e."""
    character = match.group()
    return ESCAPED_CONTROLS.get(character) or (f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}")


def visible_lines(text: str) -> str:
    """*text* made safe like `visible`, but with its line ends and tabs kept and nothing cut."""
    return re.sub(r"[^\n\t]+", lambda match: UNSAFE.sub(escaped_character, match.group()), text)


def quoted(text: str, limit: int = 120) -> str:
    """*text* as `visible` shows it, in single quotes."""
    return f"'{visible(text, limit)}'"


def counted(number: int, noun: str, plural: str = "") -> str:
    """'1 case', '2 cases', '0 cases'; thousands are separated by a comma."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(words: Iterable[str], limit: int = 10, last: str = "and") -> str:
    """'a, b and c'; beyond *limit* words the rest is counted: 'a, b and 7 more'."""
    known = list(words)
    if len(known) > limit:
        known = [*known[:limit], f"{len(known) - limit} more"]
    return known[0] if len(known) == 1 else f"{', '.join(known[:-1])} {last} {known[-1]}" if known else ""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The word of *known* that *word* is most likely a misspelling of; None when nothing is near."""
    from difflib import get_close_matches

    lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), lower, 1, 0.6)
    return lower[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """'did you mean X?' for a misspelt *word*, else the list of *known* words."""
    names = list(known)
    near = nearest(word, names)
    return f"did you mean '{near}'?" if near else f"known: {listed(sorted(names), 40)}" if names else ""


def slug(text: str) -> str:
    """A file name for any *text*: at most 40 safe characters, then a short hash that keeps it unique."""
    import unicodedata

    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-")
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{words}-{digest}" if words else digest


def percent(numerator: int, denominator: int, digits: int = 2) -> str:
    """The share as a percentage that is 100 or 0 only if it is exactly that; 'not measured' for 0 of 0.

    Cut off towards 50 % near the ends instead of rounded: 1999 of 2000 is '99.95 %', 199999 of 200000 is '99.99 %'.
    """
    if denominator <= 0:
        return "not measured"
    scale = 10**digits
    scaled = (numerator * 100 * scale * 2 + denominator) // (denominator * 2)
    if numerator < denominator and scaled >= 100 * scale:
        scaled = 100 * scale - 1
    if numerator > 0 and scaled <= 0:
        return f"< {1 / scale:.{digits}f} %"
    whole, part = divmod(abs(scaled), scale)
    decimals = f".{part:0{digits}d}".rstrip("0").rstrip(".") if digits else ""
    return f"{'-' if scaled < 0 else ''}{whole}{decimals} %"


def duration(seconds: float) -> str:
    """'850 ms', '12.3 s', '4 min 05 s', '2 h 03 min'."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"

# endregion

# region foundation/files.py
# =============================================================================
# Reading and writing files: the only door to the disk.
#
# Whole files are written beside their place and renamed, so that a reader sees the old
# or the new content and a full disk or a kill loses nothing. Nothing is written through
# a symbolic link that leaves the folder it stands in.
# =============================================================================

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLOCK = 1 << 20


def shown_path(path: str) -> str:
    """*path* as printed: relative to the current folder when it lies below it, made safe for a terminal."""
    try:
        relative = os.path.relpath(path)
    except (ValueError, OSError):  # another drive on Windows, or the current folder is gone
        return visible(path, None)
    return visible(path if relative.startswith("..") else relative, None)


def refuse_reading(path: str, error: OSError, hint: str = "") -> NoReturn:
    """Raises InputError that says why *path* could not be read."""
    what = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror or error}"
    raise InputError(f"{shown_path(path)}: {what}", hint, "missing_file" if isinstance(error, FileNotFoundError) else "") from None


def refuse_writing(path: str, error: OSError) -> NoReturn:
    """Raises InputError that says why *path* could not be written; the old content is still there."""
    raise InputError(
        f"{shown_path(path)}: cannot be written: {error.strerror or error}",
        "make room or choose another folder, then run the command again; what was there before is unchanged",
        "cannot_write",
    ) from None


def read_bytes(path: str, hint: str = "") -> bytes:
    """The bytes of the file *path*. Raises InputError with *hint* if it cannot be read."""
    refuse_pipe(path)
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError as error:
        refuse_reading(path, error, hint)


def decode_utf8(data: bytes, place: str) -> str:
    """*data* as text, without a byte-order mark. Raises InputError with the byte offset if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{place}: is not UTF-8 (byte {error.start})", "save the file as UTF-8") from None


def read_text(path: str, hint: str = "") -> str:
    """The text of the UTF-8 file *path*; a byte-order mark is dropped and CRLF read as LF."""
    return decode_utf8(read_bytes(path, hint), shown_path(path)).replace("\r\n", "\n")


def open_for_reading(path: str, hint: str = "") -> IO[bytes]:
    """*path* opened for reading bytes, to be closed by the caller. Raises InputError."""
    refuse_pipe(path)
    try:
        return open(path, "rb", BLOCK)
    except OSError as error:
        refuse_reading(path, error, hint)


def refuse_pipe(path: str) -> None:
    """Raises InputError when *path* is a named pipe, which would be waited for; one that a shell made for a command is fine."""
    import stat

    try:
        is_pipe = stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return  # opening it says what is wrong
    if is_pipe and not path.startswith(("/dev/", "/proc/")):
        raise InputError(f"{shown_path(path)}: is a named pipe, not a file", "put a file in its place")


def refuse_link_out(path: str) -> None:
    """Raises RefusedError when *path* is a symbolic link to a place outside its own folder."""
    if os.path.islink(path):
        folder = os.path.realpath(os.path.dirname(path) or ".")
        target = os.path.realpath(path)
        if os.path.commonpath([folder, target]) != folder:
            raise RefusedError(
                f"{shown_path(path)}: is a symbolic link that leaves its folder; not written",
                "remove the link, or name the folder it leads to",
                "link_leaves_folder",
            )


def make_folder(path: str) -> None:
    """Creates the folder *path* and those above it; an existing one is fine. Raises InputError."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        refuse_writing(path, error)


def remove_if_there(path: str) -> None:
    """Removes the file *path*; one that is not there is fine."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        refuse_writing(path, error)


@contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """A stream of bytes that becomes the file *path* when the block ends without an error.

    Until then the old file stays; after an error the half-written one is removed.
    Raises InputError when the disk says no.
    """
    refuse_link_out(path)
    folder, name = os.path.split(path)
    unfinished = os.path.join(folder, f".{name[:200]}.{os.getpid()}.tmp")
    try:
        with open(unfinished, "wb", BLOCK) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    except OSError as error:
        discard_unfinished(unfinished)
        refuse_writing(path, error)
    except BaseException:
        discard_unfinished(unfinished)
        raise


def discard_unfinished(path: str) -> None:
    """Removes a half-written file if it is there; a failure to do so hides nothing more important."""
    with suppress(OSError):
        os.unlink(path)


def write_file(path: str, content: str | bytes) -> None:
    """Writes *content* (text as UTF-8 with LF) as the file *path*, whole or not at all."""
    with replacing(path) as stream:
        stream.write(content.encode("utf-8") if isinstance(content, str) else content)


def create_file(path: str, content: str) -> bool:
    """Writes *content* as the new file *path*; False, and nothing written, when something is there already."""
    if os.path.lexists(path):
        return False
    write_file(path, content)
    return True


def open_for_appending(path: str) -> int:
    """A file descriptor that appends to *path*. Raises InputError or RefusedError."""
    refuse_link_out(path)
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:
        refuse_writing(path, error)


def open_for_locking(path: str) -> int:
    """A file descriptor for reading and writing *path*, made if it is not there. Raises InputError or RefusedError."""
    refuse_link_out(path)
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        refuse_writing(path, error)


def truncate_file(path: str, size: int) -> None:
    """Cuts the file *path* to *size* bytes, synced. Raises InputError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        try:
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        refuse_writing(path, error)


def open_missing_streams() -> None:
    """Gives a standard stream that the caller has closed a place where what is written goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (open for as long as the process)


def silence_descriptor(descriptor: int) -> None:
    """Points *descriptor* at nothing, so that what is still written to it goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def write_all(descriptor: int, data: bytes, path: str) -> None:
    """Writes all of *data* to *descriptor*, however many calls it takes. Raises InputError naming *path*."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        refuse_writing(path, error)


def remove_folder(path: str) -> None:
    """Removes the folder *path* with all that is in it; links in it are removed, not followed. Raises InputError."""
    try:
        remove_tree(path)
    except OSError as error:
        refuse_writing(path, error)


def remove_tree(path: str) -> None:
    """Removes the folder *path*, however deep and whatever its permissions. Raises OSError.

    Folders inside are moved to its top before they are emptied: neither the stack nor the length of a path
    then grows with the depth, which a program may have made as deep as it likes.
    """
    waiting, moved = [path], 0
    while waiting:
        folder = waiting[-1]
        os.chmod(folder, 0o700)
        inner = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                elif folder == path:
                    inner.append(entry.path)
                else:
                    os.chmod(entry.path, 0o700)  # a folder that is moved has its '..' rewritten
                    while os.path.lexists(os.path.join(path, f".moved-{moved}")):
                        moved += 1
                    os.rename(entry.path, os.path.join(path, f".moved-{moved}"))
        if inner:
            waiting += inner
        else:
            os.rmdir(folder)
            waiting.pop()

# endregion

# region foundation/identity.py
# =============================================================================
# Version and digest of the running program.
#
# The digest is computed from the bytes that run, so that a user can compare it with
# `sha256sum kaizen.py`; a digest written into the file would prove nothing.
# =============================================================================

VERSION = "0.1.0"


def own_path() -> str:
    """Absolute path of the file this program runs from."""
    return os.path.abspath(__file__)


def own_digest() -> str:
    """First 12 hexadecimal digits of the SHA-256 of the running file."""
    return hashlib.sha256(read_bytes(own_path())).hexdigest()[:12]


def version_line() -> str:
    """'kaizen 0.1.0 (sha256 67bb4bdb0669, Python 3.12.1)'."""
    return f"kaizen {VERSION} (sha256 {own_digest()}, Python {sys.version.split()[0]})"

# endregion

# region foundation/jsonio.py
# =============================================================================
# Strict JSON and JSON Lines: what is accepted, how it is written, fingerprints, pointers.
#
# Refused on reading: NaN and Infinity, numbers that overflow, duplicate keys, lone
# surrogates, text behind the value, more than 200 levels. Canonical JSON has sorted keys, no blanks, UTF-8
# unescaped, and an integral number below 2^53 has no fraction; fingerprints are SHA-256
# of it. Lines end at LF alone: U+2028 and U+0085 may stand inside a string.
# =============================================================================

JsonObject = dict[str, Any]

LINE_BLANKS = b" \t\r\n"
LARGEST_EXACT_INTEGER = 2**53
SURROGATE = re.compile("[\ud800-\udfff]")
MAX_DEPTH = 200  # what a function that recurses with four frames a level can follow; CPython's own limit differs by version
TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
NOT_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[^\[\]{}"]+', re.DOTALL)
EMPTY_BRACKETS = re.compile(r"\[\]|\{\}")
JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)

encode_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
encode_sorted = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True).encode
encode_readable = json.JSONEncoder(ensure_ascii=False, indent=2, allow_nan=False).encode


class JsonError(ValueError):
    """Text that is not acceptable JSON; `line` is counted from 1 inside the text, 0 when unknown; `hint` says what to do."""

    def __init__(self, message: str, line: int = 0, column: int = 0, hint: str = "", token: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint
        self.token = token  # what was refused, as it stands in the text


MAX_WHOLE = int(1.7976931348623157e308)  # the largest double


def unique_pairs(pairs: list[tuple[str, Any]]) -> JsonObject:
    """The object of *pairs*. Raises JsonError when a key comes twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonError(f"key {quoted(key)} occurs twice in one object", hint="keep one of the two")
            seen.add(key)
    return found


def refuse_constant(name: str) -> Any:
    """Raises JsonError: NaN, Infinity and -Infinity are not JSON."""
    raise JsonError(f"{name} is not a JSON number", hint="write null, or leave the field out, where nothing was measured", token=name)


def finite_float(text: str) -> float:
    """The number that *text* writes. Raises JsonError when it overflows to infinity."""
    value = float(text)
    if value - value != 0.0:
        raise JsonError(f"number {visible(text, 40)} is too large", hint="write it as a string", token=text)
    return value


def bounded_int(text: str) -> int:
    """The whole number that *text* writes. Raises JsonError when no double holds it: what is measured is counted in doubles."""
    value = int(text)
    if len(text) > 300 and abs(value) > MAX_WHOLE:
        raise JsonError(f"number {visible(text, 40)} is too large", hint="write it as a string", token=text)
    return value


STRICT_DECODER = json.JSONDecoder(
    object_pairs_hook=unique_pairs, parse_constant=refuse_constant, parse_float=finite_float, parse_int=bounded_int
)
decode_strict = STRICT_DECODER.decode
decode_strict_at = STRICT_DECODER.raw_decode


def parse_json(text: str) -> Any:
    """The value that *text* holds. Raises JsonError for anything that is not strict JSON."""
    value = decoded(decode_strict, text)
    refuse_deep_or_broken(text, value)
    return value


def parse_json_at(text: str, start: int) -> tuple[Any, int]:
    """(the value that begins at *start* of *text*, where it ends), whatever follows it. Raises JsonError."""
    value, end = decoded(decode_strict_at, text, start)
    refuse_deep_or_broken(text[start:end], value)
    return value, end


def decoded(decode: Callable[..., Any], text: str, *start: int) -> Any:
    """What *decode* makes of *text*. Raises JsonError in the same words on every Python."""
    try:
        return decode(text, *start)
    except json.JSONDecodeError as error:
        raise json_error(error.msg, text, error.pos, *start) from None
    except RecursionError:
        raise JsonError(TOO_DEEP) from None
    except ValueError as error:
        if bracket_depth(text) > MAX_DEPTH:  # where another Python would have given up before
            raise JsonError(TOO_DEEP) from None
        if isinstance(error, JsonError):
            raise
        # The only other one is CPython's limit on the digits of an integer.
        raise JsonError("an integer with too many digits", hint="write it as a string") from None


def json_error(message: str, text: str, position: int, start: int = 0) -> JsonError:
    """The JsonError for what json found wrong at *position*.

    Python 3.13 has a message for a comma before a closing bracket, older ones do not; and how deep a text may be
    before json gives up differs as well.
    """
    if bracket_depth(text[start:position]) > MAX_DEPTH:
        return JsonError(TOO_DEEP)
    before = text[:position].rstrip(" \t\r\n")
    closing = {"Expecting value": "]", "Expecting property name enclosed in double quotes": "}"}.get(message)
    if message.startswith("Illegal trailing comma") or before.endswith(",") and text[position : position + 1] == closing:
        message, position = "a comma before the closing bracket", position if text[position] == "," else len(before) - 1
    column = position - text.rfind("\n", 0, position)
    return JsonError(f"not JSON: {message} (column {column})", text.count("\n", 0, position) + 1, column)


def bracket_depth(text: str) -> int:
    """How deep the brackets of *text* nest at the deepest place; what stands in strings does not count."""
    depth = deepest = 0
    for bracket in NOT_BRACKETS.sub("", text) if text.count("[") + text.count("{") > MAX_DEPTH else "":
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def refuse_deep_or_broken(text: str, value: Any) -> None:
    """Raises JsonError when the JSON *text*, which holds *value*, nests too deeply or holds a lone surrogate."""
    if text.count("[") + text.count("{") > MAX_DEPTH and is_too_deep(text):
        raise JsonError(TOO_DEEP)
    if ("\\u" in text and has_surrogate(value)) or not text.isascii() and SURROGATE.search(text):
        raise JsonError("holds half of a surrogate pair (\\ud800 to \\udfff alone)", hint="write the whole character or U+FFFD")


def is_too_deep(text: str) -> bool:
    """True when the JSON *text* nests arrays and objects more than MAX_DEPTH levels deep."""
    brackets = NOT_BRACKETS.sub("", text)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return False
        brackets = EMPTY_BRACKETS.sub("", brackets)  # takes away the innermost level
    return brackets != ""


def has_surrogate(value: Any) -> bool:
    """True when a string or key anywhere in *value* holds a lone surrogate."""
    return SURROGATE.search(encode_compact(value)) is not None


def without_surrogates(value: Any) -> Any:
    """*value* with each lone surrogate, in strings and keys, replaced by U+FFFD."""
    if isinstance(value, str):
        return SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {SURROGATE.sub("\ufffd", key): without_surrogates(item) for key, item in value.items()}
    return value


def canonical_json(value: Any) -> str:
    """*value* as canonical JSON (see the head of this module); equal values give equal text.

    >>> canonical_json({"b": 1.0, "a": [True, None, 0.5]})
    '{"a":[true,null,0.5],"b":1}'
    """
    text = encode_sorted(value)
    # Every integral float below 2^53 is written with ".0"; most documents hold none.
    return encode_sorted(integral_as_int(value)) if ".0" in text else text


def integral_as_int(value: Any) -> Any:
    """*value* with each float of integral value below 2^53 as an int."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < LARGEST_EXACT_INTEGER else value
    if isinstance(value, list):
        return [integral_as_int(item) for item in value]
    if isinstance(value, dict):
        return {key: integral_as_int(item) for key, item in value.items()}
    return value


def sha256_hex(data: str | bytes) -> str:
    """SHA-256 of *data* (text as UTF-8) in hexadecimal."""
    return hashlib.sha256(data.encode("utf-8") if isinstance(data, str) else data).hexdigest()


def fingerprint(value: Any) -> str:
    """'sha256:' and the SHA-256 of the canonical JSON of *value*."""
    return "sha256:" + sha256_hex(canonical_json(value))


class Line(NamedTuple):
    """One line of a JSON Lines file: its number from 1, its bytes without the line end, its value."""

    number: int
    raw: bytes
    value: JsonObject


def decode_line(raw: bytes) -> JsonObject:
    """The object on one line of bytes. Raises JsonError."""
    try:
        value = parse_json(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise JsonError(f"is not UTF-8 (byte {error.start} of the line)", hint="save the file as UTF-8") from None
    if not isinstance(value, dict):
        raise JsonError(f"is a JSON {json_type(value)}, not an object")
    return value


def parse_line(raw: bytes, place: str) -> JsonObject:
    """The object on one line of bytes. Raises InputError that begins with *place*."""
    try:
        return decode_line(raw)
    except JsonError as error:
        raise InputError(f"{place}: {error.message}", error.hint or "each line is one JSON object, {…}") from None


def raw_lines(path: str, hint: str = "") -> Iterator[tuple[int, bytes]]:
    """(number from 1, bytes without BOM and line end) for each line of *path* that is not blank."""
    with open_for_reading(path, hint) as stream:
        for number, raw in enumerate(stream, 1):
            line = (raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw).strip(LINE_BLANKS)
            if line:
                yield number, line


def read_json_lines(path: str, hint: str = "") -> Iterator[Line]:
    """Each object of the JSON Lines file *path*, in order, read as it is asked for. Raises InputError."""
    shown = shown_path(path)
    for number, raw in raw_lines(path, hint):
        yield Line(number, raw, parse_line(raw, f"{shown}:{number}"))


def checked_lines(path: str, breaches: Breaches, hint: str = "", secret: bytes | None = None) -> Iterator[Line]:
    """Each good line of the JSON Lines file *path*; each bad one goes to *breaches*, a BOM and CRLF as warnings.

    Of a bad line that holds the word *secret* nothing is told but that it is bad. Raises InputError with *hint* when the
    file cannot be read at all.
    """
    shown = shown_path(path)
    has_crlf = False
    with open_for_reading(path, hint) as stream:
        for number, raw in enumerate(stream, 1):
            if number == 1 and raw.startswith(BYTE_ORDER_MARK):
                breaches.warn(shown, 1, "", "begins with a byte-order mark, which is skipped", "save the file as UTF-8 without BOM")
            if not has_crlf and raw.endswith(b"\r\n"):
                has_crlf = True
                breaches.warn(shown, number, "", "lines end in CRLF, which counts as LF", "save the file with LF line ends")
            line = (raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw).strip(LINE_BLANKS)
            if line:
                try:
                    yield Line(number, line, decode_line(line))
                except JsonError as error:
                    if secret is not None and secret in line:
                        breaches.conceal(shown, number)
                    breaches.add(shown, number, "", error.message, error.hint or "each line is one JSON object, {…}")


def checked_object(path: str, breaches: Breaches, hint: str = "") -> tuple[str, JsonObject] | None:
    """(text, object) of the JSON file *path*; None, and the reason in *breaches*, when it holds no acceptable object.

    Raises InputError with *hint* when the file cannot be read at all.
    """
    shown = shown_path(path)
    data = read_bytes(path, hint)
    try:
        text = data.decode("utf-8-sig")
        value = parse_json(text)
    except UnicodeDecodeError as error:
        breaches.add(shown, data.count(b"\n", 0, error.start) + 1, "", f"is not UTF-8 (byte {error.start})", "save the file as UTF-8")
    except JsonError as error:
        breaches.add(shown, refused_line(text, error), "", error.message, error.hint)
    else:
        if isinstance(value, dict):
            return text, value
        breaches.add(shown, None, "", f"is a JSON {json_type(value)}, not an object", "the file is one JSON object, {…}")
    return None


def read_json_object(path: str, hint: str = "") -> JsonObject:
    """The one object in the JSON file *path*. Raises InputError with path and line."""
    breaches = Breaches()
    found = checked_object(path, breaches, hint)
    breaches.raise_if_any()
    return found[1] if found else {}


def write_json(path: str, value: Any) -> None:
    """Writes *value* as the JSON file *path*, indented for people; for small documents."""
    write_file(path, encode_readable(value) + "\n")


def json_type(value: Any) -> str:
    """The name JSON gives to the type of *value*: null, boolean, number, string, array, object."""
    names = ((type(None), "null"), (bool, "boolean"), ((int, float), "number"), (str, "string"), (list, "array"))
    return next((name for kind, name in names if isinstance(value, kind)), "object")


def json_equal(left: Any, right: Any) -> bool:
    """True when both are the same JSON value: true is not 1, "7" is not 7, but 1 is 1.0; key order is free."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(json_equal(item, right[key]) for key, item in left.items())
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(json_equal, left, right))
    return bool(left == right)


def json_key(value: Any) -> Any:
    """A hashable stand-in for *value*: two are equal exactly when `json_equal` says so of their values."""
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, list):
        return (list, *map(json_key, value))
    if isinstance(value, dict):
        return (dict, frozenset((key, json_key(item)) for key, item in value.items()))
    return value


# --- JSON Pointer (RFC 6901) ---------------------------------------------------------


def pointer_tokens(pointer: str) -> list[str]:
    """The reference tokens of *pointer*: '/a~1b/0' gives ['a/b', '0'], '' gives [].

    Raises ValueError when it is neither empty nor begins with a slash.
    """
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"a JSON Pointer begins with '/': {quoted(pointer)}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def pointer_token(key: str | int) -> str:
    """*key* as one token of a JSON Pointer, with the slash in front: 'a/b' gives '/a~1b'."""
    return "/" + str(key).replace("~", "~0").replace("/", "~1")


def follow_pointer(value: Any, tokens: list[str]) -> tuple[bool, Any]:
    """(True, what stands at *tokens* in *value*), or (False, None) when nothing does."""
    for token in tokens:
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and token.isascii() and token.isdigit() and str(int(token[:20])) == token and int(token) < len(value):
            value = value[int(token)]
        else:
            return False, None
    return True, value


def json_places(text: str) -> Iterator[tuple[list[str | int], int]]:
    """(path, offset) of each member's key and each element of the JSON *text*, in order; the list is used again.

    Walks the tokens only, so it also answers for documents that break a format's rules.
    """
    path: list[str | int] = []  # the key or index at each open bracket
    expect_key = expect_element = False
    for match in JSON_TOKEN.finditer(text):
        token = match.group()
        if token in "]}":
            del path[-1:]
            expect_key = expect_element = False
        elif token == ",":
            expect_element = bool(path) and isinstance(path[-1], int)
            expect_key = bool(path) and not expect_element
            if expect_element:
                path[-1] += 1  # type: ignore[operator]
        elif token != ":":
            if expect_key:
                path[-1] = json.loads(token) if token.startswith('"') else token
            if expect_key or expect_element:
                yield path, match.start()
            expect_key = expect_element = False
            if token in "{[":
                path.append("" if token == "{" else 0)
                expect_key, expect_element = token == "{", token == "["


def pointer_line(text: str, pointer: str) -> int | None:
    """The line (from 1) on which the key or element at *pointer* begins in the JSON *text*; None if it is not there."""
    wanted = pointer_tokens(pointer)
    if not wanted:
        return 1
    for path, start in json_places(text):
        if len(path) == len(wanted) and [str(part) for part in path] == wanted:
            return text.count("\n", 0, start) + 1
    return None


def refused_line(text: str, error: JsonError) -> int | None:
    """The line (from 1) of what *error* refused in the JSON *text*: a bad token, or the second of two equal keys."""
    if error.line:
        return error.line
    tokens = (match.start() for match in JSON_TOKEN.finditer(text) if match.group() == error.token)
    starts: Iterator[int] = tokens if error.token else repeated_keys(text)
    return next((text.count("\n", 0, start) + 1 for start in starts), None)


def repeated_keys(text: str) -> Iterator[int]:
    """The offset of each key in the JSON *text* that came before in its object."""
    seen: set[tuple[str | int, ...]] = set()
    for path, start in json_places(text):
        if tuple(path) in seen:
            yield start
        seen.add(tuple(path))

# endregion

# region foundation/locks.py
# =============================================================================
# Locks: one writer at a time; the kernel lets go when the owner dies.
#
# The lock file holds the pid and start time of its owner, for the message. The lock
# itself is the kernel's (flock), so a killed owner never leaves one behind.
# =============================================================================


class FileLock:
    """Context manager: holds the lock file *path*. Raises RefusedError, naming the owner, when another process has it.

    It is asked for again for *patience* seconds: a program that a killed owner was just starting holds the lock until it runs.
    """

    def __init__(self, path: str, what: str, patience: float = 0.1) -> None:
        self.path = path
        self.what = what
        self.patience = patience
        self.descriptor = -1

    def __enter__(self) -> "FileLock":
        while True:
            self.descriptor = open_for_locking(self.path)
            if not lock_descriptor(self.descriptor) and not locked_soon(self.descriptor, self.patience):
                owner = lock_owner(self.descriptor)
                os.close(self.descriptor)
                raise RefusedError(
                    f"{shown_path(self.path)}: {self.what} is being written by another process{owner}",
                    "wait until it has finished, or stop it",
                    "lock_held",
                )
            if is_same_file(self.descriptor, self.path):
                break
            os.close(self.descriptor)  # its former owner removed it between our open and our lock
        os.ftruncate(self.descriptor, 0)
        os.write(self.descriptor, encode_compact({"pid": os.getpid(), "started_at": utc_now()}).encode("utf-8") + b"\n")
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(OSError):  # the lock goes with the descriptor, with or without the file
            os.unlink(self.path)
        os.close(self.descriptor)


def lock_descriptor(descriptor: int) -> bool:
    """True when the kernel gave us the lock on *descriptor* at once. Windows has no flock: there the first byte is locked."""
    try:
        try:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True


def locked_soon(descriptor: int, patience: float) -> bool:
    """True when the lock on *descriptor* becomes free, and ours, within *patience* seconds."""
    deadline = monotonic_seconds() + patience
    while monotonic_seconds() < deadline:
        time.sleep(0.01)
        if lock_descriptor(descriptor):
            return True
    return False


def lock_owner(descriptor: int) -> str:
    """' (pid 12, since …)' as the lock file says; '' when it does not say."""
    try:
        owner = parse_json(os.read(descriptor, 4096).decode("utf-8", "replace"))
        return f" (pid {int(owner['pid'])}, since {str(owner['started_at'])[:40]})"
    except (OSError, JsonError, ValueError, TypeError, KeyError):
        return ""


def is_same_file(descriptor: int, path: str) -> bool:
    """True when *path* still names the file that *descriptor* has open."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False

# endregion

# region foundation/journals.py
# =============================================================================
# Append-only logs: an object a line, on disk at once, mended after a crash.
# =============================================================================

SYNC_SECONDS = 0.2  # formats.md 1.2: fsynced at most 200 ms later; a sync a line would cost 10,000 cases up to 40 s


class AppendLog:
    """Appends JSON objects to the file *path*; `sync_if_due` is to be called at least every 100 ms while open."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = open_for_appending(path)
        self.unsynced_since: float | None = None

    def append(self, value: object) -> bytes:
        """Writes *value* as one line in one call and returns its bytes. Raises InputError when the disk says no."""
        line = encode_compact(value).encode("utf-8") + b"\n"
        self.append_bytes(line)
        return line

    def append_bytes(self, line: bytes) -> None:
        """Writes *line* (with its line end). After a failed write the part that got through is cut off again."""
        before = os.fstat(self.descriptor).st_size
        try:
            write_all(self.descriptor, line, self.path)
        except BaseException:
            os.ftruncate(self.descriptor, before)
            raise
        if self.unsynced_since is None:
            self.unsynced_since = monotonic_seconds()
        self.sync_if_due()

    def sync_if_due(self) -> None:
        """Syncs when the oldest line that is not synced is 200 ms old."""
        if self.unsynced_since is not None and monotonic_seconds() - self.unsynced_since >= SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Syncs what was appended to the disk."""
        try:
            os.fsync(self.descriptor)
        except OSError as error:
            refuse_writing(self.path, error)
        self.unsynced_since = None

    def close(self) -> None:
        """Syncs and closes; closing twice is fine."""
        if self.descriptor >= 0:
            try:
                self.sync()
            finally:
                os.close(self.descriptor)
                self.descriptor = -1


def torn_tail(path: str) -> tuple[int, bytes]:
    """(size of the part of *path* that ends in a line end, the bytes behind it)."""
    with open_for_reading(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        tail = b""
        while len(tail) < size:
            start = max(0, size - len(tail) - BLOCK)
            stream.seek(start)
            tail = stream.read(size - len(tail) - start) + tail
            cut = tail.rfind(b"\n")
            if cut >= 0:
                return size - len(tail) + cut + 1, tail[cut + 1 :]
    return 0, tail

# endregion

# region foundation/shapes.py
# =============================================================================
# What the fields of a document may hold: kinds, and the check against a table of them.
#
#     SOURCE_FIELDS = {"kind": one_of("production", "synthetic"), "redacted": BOOLEAN}
#     check_fields(document["source"], SOURCE_FIELDS, "/source", report)
#
# `report(pointer, message, hint)` is called for each breach. Messages name types; a value is
# shown only where it is a number asked for or one word of a list, never a text of the user's.
# =============================================================================

Report = Callable[[str, str, str], None]


class Kind(NamedTuple):
    """What a field may hold: a test, its words in a message, the words to choose among, the kind of a list's elements."""

    accepts: Callable[[Any], bool]
    words: str
    choices: tuple[str, ...] = ()
    shows_value: bool = False
    of: Optional["Kind"] = None


def is_number(value: Any) -> bool:
    """True for a JSON number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """True for a JSON number without a fraction: 3 and 3.0."""
    return isinstance(value, int) and not isinstance(value, bool) or isinstance(value, float) and value.is_integer()


ANYTHING = Kind(lambda value: True, "any JSON value")
TEXT = Kind(lambda value: isinstance(value, str) and value != "", "a text that is not empty")
ANY_TEXT = Kind(lambda value: isinstance(value, str), "a text")
BOOLEAN = Kind(lambda value: isinstance(value, bool), "true or false")
OBJECT = Kind(lambda value: isinstance(value, dict), "an object, {…}")
COUNT = Kind(lambda value: is_whole(value) and value >= 0, "a whole number, 0 or more", shows_value=True)
POSITIVE_COUNT = Kind(lambda value: is_whole(value) and value >= 1, "a whole number, 1 or more", shows_value=True)
RATE = Kind(lambda value: is_number(value) and 0 <= value <= 1, "a number from 0 to 1", shows_value=True)
OPEN_RATE = Kind(lambda value: is_number(value) and 0 < value < 1, "a number between 0 and 1", shows_value=True)
RATIO = Kind(lambda value: is_number(value) and value > 0, "a number above 0", shows_value=True)
DIFFERENCE = Kind(lambda value: is_number(value) and -1 <= value <= 1, "a number from -1 to 1", shows_value=True)


def one_of(*choices: str) -> Kind:
    """The kind of a field that holds one of the words *choices*."""
    return Kind(lambda value: isinstance(value, str) and value in choices, f"one of {listed(choices, last='or')}", choices, True)


def or_null(kind: Kind) -> Kind:
    """*kind*, or null."""
    return Kind(lambda value: value is None or kind.accepts(value), f"{kind.words}, or null", kind.choices, kind.shows_value)


def list_of(kind: Kind, words: str) -> Kind:
    """The kind of a list, called *words*, whose elements are of *kind*."""
    return Kind(lambda value: isinstance(value, list), f"a list of {words}, […]", of=kind)


def check_value(value: Any, kind: Kind, pointer: str, report: Report) -> None:
    """Reports *value* when it is not of *kind*, or each of its elements that is not."""
    if not kind.accepts(value):
        near = nearest(value, kind.choices) if kind.choices and isinstance(value, str) else None
        report(pointer, f"must be {kind.words}, not {told_value(value, kind)}", f"did you mean '{near}'?" if near else "")
    elif kind.of is not None:
        for index, item in enumerate(value):
            if not kind.of.accepts(item):
                check_value(item, kind.of, f"{pointer}/{index}", report)


def told_value(value: Any, kind: Kind) -> str:
    """*value* as a message may name it: itself where *kind* shows values, else its type."""
    if kind.shows_value and (is_number(value) or isinstance(value, bool)):
        return visible(encode_compact(value), 40)
    if kind.choices and isinstance(value, str):
        return quoted(value, 40)
    if isinstance(value, str) and kind.words.startswith("a text"):
        return "an empty one" if value == "" else "this one"
    kinds = {"null": "null", "array": "an array", "object": "an object", "string": "a text"}
    return kinds.get(json_type(value), f"a {json_type(value)}")


def check_fields(document: JsonObject, kinds: dict[str, Kind], pointer: str, report: Report, required: Iterable[str] = ()) -> None:
    """Reports each field of *document* that is not of its kind in *kinds*, and each *required* one that is absent."""
    for name in required:
        if name not in document:
            report(pointer, f"has no {quoted(name)}", f'write "{name}": {kinds[name].words}')
    for name, value in document.items():
        kind = kinds.get(name)
        if kind is not None and (kind.of is not None or not kind.accepts(value)):
            check_value(value, kind, pointer + pointer_token(name), report)


def check_no_others(document: JsonObject, known: Iterable[str], pointer: str, report: Report, what: str = "key") -> None:
    """Reports each key of *document* that is not *known*, with the nearest one that is."""
    names = set(known)
    for name in document:
        if name not in names:
            report(pointer + pointer_token(name), f"unknown {what} {quoted(name)}", did_you_mean(name, names))

# endregion

# region foundation/frontmatter.py
# =============================================================================
# Block-style YAML, the small part of it that people and this program both write.
#
#     # a comment on a line of its own
#     status: accepted           # or behind a blank
#     rationale: "text with ': ' or ' #' in it, and \n for a line end"
#     note: 'it''s quoted'
#     conditions:
#       - first condition
#       - "second: condition"
#     empty_list: []
#
# Every value is text or a list of texts; a key without a value is "". A '#' without a
# blank before it belongs to the word. What YAML would read in another way (nested keys,
# [a, b], {…}, |, >, &, *, !, ---, continued lines, a key twice) is refused with its line,
# so a file means the same to this program as to its other readers.
# =============================================================================

YAML_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):(?=\s|\Z)")
YAML_ITEM = re.compile(r"\s*-(?=\s|\Z)")
# A value, then nothing or a comment: in double quotes, in single quotes, or plain.
YAML_VALUE = re.compile(
    r"""\s*(?:(?P<double>"(?:[^"\\]|\\.)*")|'(?P<single>(?:[^']|'')*)'|(?P<plain>[^"'\s\#]\S*(?:\s+[^\#\s]\S*)*))?"""
    r"""(?P<comment>\s+\#.*|\s*)\Z"""
)
YAML_SPECIAL = re.compile(r"[\[\]{}|>&*!%@`,?]|-(?:\s|\Z)|.*:(?:\s|\Z)")
YAML_PLAIN_WORD = re.compile(r"(?!(?i:true|false|yes|no|on|off|null|y|n)\Z)[A-Za-z][A-Za-z0-9_:./@+-]*(?<!:)\Z")
ONE_LINE = "write the text on one line in double quotes, with \\n for a line end"
REFUSED_LINES = (
    (r"---|\.\.\.|%", "document marks are not read", "remove the line"),
    (r"\s*-", "a list item needs a key without a value above it", "write 'key:' on the line above"),
    (r"\s", "is indented, and neither nested keys nor continued lines are read", ONE_LINE),
    (r"[\w-]+:\S", "has no blank behind the colon", "write 'key: value'"),
    (r"", "is neither 'key: value' nor '- item'", "put a '#' in front of a comment"),
)


def parse_block_yaml(text: str, path: str) -> JsonObject:
    """The values of *text* by key, each a text or a list of texts. Raises BreachesError that names *path* and lines."""
    return parse_block_lines(text, path)[0]


def parse_block_lines(text: str, path: str) -> tuple[JsonObject, dict[str, tuple[int, int]]]:
    """The values of *text* by key, and the lines (from 1: first and last) on which each key stands."""
    breaches = Breaches()
    values: JsonObject = {}
    spans: dict[str, tuple[int, int]] = {}
    key = ""
    items: list[str] | None = None  # the list of the last key, as long as lines may add to it
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found, item = YAML_KEY.match(line), YAML_ITEM.match(line)
        if found:
            key = found.group(1)
            if key in values:
                breaches.add(path, number, f"/{key}", f"key {quoted(key)} occurs twice", "keep one of the two")
            value = block_value(line[found.end() :], path, number, breaches)
            items = [] if value is None else None
            values[key] = "" if value is None else value
            spans[key] = (number, number)
        elif item and items is not None:
            value = block_value(line[item.end() :], path, number, breaches)
            items.append(value if isinstance(value, str) else "")
            values[key] = items
            spans[key] = (spans[key][0], number)
        else:
            message, hint = next((message, hint) for pattern, message, hint in REFUSED_LINES if re.match(pattern, line))
            breaches.add(path, number, "", message, hint)
    breaches.raise_if_any()
    return values, spans


def block_value(text: str, path: str, number: int, breaches: Breaches) -> str | list[str] | None:
    """What *text*, the rest of line *number* behind a key or '-', says; None for nothing."""
    found = YAML_VALUE.match(text)
    if found is None or re.search("[\x00-\x08\x0b-\x1f\x7f]", text):
        breaches.add(path, number, "", "holds a quote that does not end on its line, text behind a quote, or a control character", ONE_LINE)
        return ""
    plain, single, double = found.group("plain", "single", "double")
    if double is not None:
        try:
            return str(parse_json(double))
        except JsonError:
            breaches.add(path, number, "", "holds an escape that is not known", 'known: \\n \\t \\" \\\\ \\u00e9')
            return ""
    if single is not None:
        return single.replace("''", "'")
    if plain == "[]":
        return []
    if plain is not None and YAML_SPECIAL.match(plain):
        breaches.add(path, number, "", f"YAML gives {quoted(plain, 40)} another meaning than a text", "put it in double quotes")
    return plain


def block_scalar(text: str) -> str:
    """*text* as a value: as it is when every YAML reader takes it for that word, else in double quotes."""
    if YAML_PLAIN_WORD.match(text):
        return text
    return UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", encode_compact(SURROGATE.sub("\ufffd", text)))


def block_entry(key: str, value: Any, comment: str = "") -> str:
    """The lines of *key*: 'key: value', or 'key:' with an item a line for a list that is not empty."""
    if isinstance(value, list) and value:
        return "\n".join([f"{key}:{comment}", *(f"  - {block_scalar(item)}" for item in value)])
    return f"{key}: {'[]' if isinstance(value, list) else block_scalar(value)}{comment}"


def write_block_yaml(values: JsonObject) -> str:
    """*values*, each a text or a list of texts, as `parse_block_yaml` reads them back."""
    return "".join(block_entry(key, value) + "\n" for key, value in values.items())


def update_block_yaml(text: str, values: JsonObject, path: str) -> str:
    """*text* with *values* in it: lines whose value stays, comments and other keys are kept, new keys come last.

    Raises BreachesError when *text* cannot be read.
    """
    before, spans = parse_block_lines(text, path)
    lines: list[str | None] = [*text.rstrip("\n").split("\n")] if text.strip() else []
    for key, value in values.items():
        if key not in before:
            lines.append(block_entry(key, value))
        elif before[key] != value:
            first, last = spans[key]
            found = YAML_VALUE.match((lines[first - 1] or "").partition(":")[2])
            comment = found.group("comment").strip() if found else ""
            lines[first - 1 : last] = [block_entry(key, value, f"  {comment}" if comment else ""), *[None] * (last - first)]
    return "".join(line + "\n" for line in lines if line is not None)

# endregion

# region foundation/schema_formats.py
# =============================================================================
# Formats of JSON Schema that are checked: date, email, uri and the like, each by its RFC.
#
# The names and documents are those of JSON Schema 2020-12, section 7.3. Where a format is
# read more widely than its document says, the function says so. All patterns are linear in
# the length of the text, since the text comes from an agent. They are compiled when they are
# first used, which most runs never do.
# =============================================================================

MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

FULL_DATE = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
FULL_TIME = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
DURATION_FORM = (
    r"P(?:[0-9]+W|(?=[0-9T])(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?"
    r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?)"
)
UUID_FORM = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
IPV4_FORM = r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!\Z)|\Z)){4}"
IPV6_GROUP = r"[0-9A-Fa-f]{1,4}"
HOSTNAME_FORM = r"(?=.{1,253}\Z)(?!-)[A-Za-z0-9-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*"
MAIL_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
MAIL_LOCAL_PART = rf'(?=.{{1,64}}\Z)(?:{MAIL_ATOM}(?:\.{MAIL_ATOM})*|"(?:[ !#-\[\]-~]|\\[ -~])*")'
URI_CHARACTER = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})"
URI_FORM = (
    r"[A-Za-z][A-Za-z0-9+.-]*:"
    r"(?://(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*@)?"
    r"(?:\[([^\]]*)\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?(?:/" + URI_CHARACTER + r"*)?"
    r"|(?!//)" + URI_CHARACTER + r"*)"
    r"(?:\?(?:" + URI_CHARACTER + r"|\?)*)?(?:#(?:" + URI_CHARACTER + r"|\?)*)?"
)
IP_FUTURE = r"[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+"


def days_in_month(year: int, month: int) -> int:
    """How many days *month* (1 to 12) of *year* has in the Gregorian calendar."""
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and is_leap else MONTH_DAYS[month - 1]


def is_calendar_date(year: int, month: int, day: int) -> bool:
    """True when there is such a day in the Gregorian calendar."""
    return 1 <= month <= 12 and 1 <= day <= days_in_month(year, month)


def is_full_date(text: str) -> bool:
    """True for a full-date of RFC 3339: 2026-02-28."""
    match = re.fullmatch(FULL_DATE, text)
    return match is not None and is_calendar_date(*map(int, match.groups()))


def is_full_time(text: str) -> bool:
    """True for a full-time of RFC 3339, which has an offset: 08:30:06Z; second 60 only where UTC ends a day."""
    match = re.fullmatch(FULL_TIME, text)
    if match is None:
        return False
    hour, minute, second = int(match[1]), int(match[2]), int(match[3])
    offset_hour, offset_minute = int(match[5] or 0), int(match[6] or 0)
    if hour > 23 or minute > 59 or offset_hour > 23 or offset_minute > 59:
        return False
    offset = (offset_hour * 60 + offset_minute) * (-1 if match[4] == "-" else 1)
    return second < 60 or second == 60 and (hour * 60 + minute - offset) % 1440 == 1439


def is_date_time(text: str) -> bool:
    """True for a date-time of RFC 3339: 2026-02-28T08:30:06.5+01:00."""
    return text[10:11] in ("T", "t") and is_full_date(text[:10]) and is_full_time(text[11:])


def is_duration(text: str) -> bool:
    """True for a duration of ISO 8601, wider than RFC 3339: designators may be left out between others, seconds have fractions."""
    return re.fullmatch(DURATION_FORM, text) is not None


def is_ipv4(text: str) -> bool:
    """True for a dotted quad of RFC 2673, without leading zeros."""
    return re.fullmatch(IPV4_FORM, text) is not None


def is_ipv6(text: str) -> bool:
    """True for an address of RFC 4291, section 2.2, without a zone."""
    head, gap, tail = text.partition("::")
    groups = [group for part in (head, tail) if part for group in part.split(":")]
    width = len(groups)
    if groups and not text.endswith("::") and is_ipv4(groups[-1]):
        groups.pop()
        width += 1
    return (width <= 7 if gap else width == 8) and all(re.fullmatch(IPV6_GROUP, group) for group in groups)


def is_hostname(text: str) -> bool:
    """True for a name of RFC 1123, section 2.1: labels of 1 to 63 letters, digits and inner hyphens, 253 characters in all."""
    return re.fullmatch(HOSTNAME_FORM, text) is not None


def is_email(text: str) -> bool:
    """True for a Mailbox of RFC 5321, section 4.1.2: ASCII, the part before the last @ may be quoted."""
    local, at, domain = text.rpartition("@")
    if not at or re.fullmatch(MAIL_LOCAL_PART, local) is None:
        return False
    if domain.startswith("[") and domain.endswith("]"):
        literal = domain[1:-1]
        return is_ipv6(literal[5:]) if literal[:5].lower() == "ipv6:" else is_ipv4(literal)
    return is_hostname(domain)


def is_uri(text: str) -> bool:
    """True for a URI of RFC 3986, which has a scheme; a relative reference is none."""
    match = re.fullmatch(URI_FORM, text)
    if match is None:
        return False
    return match[1] is None or is_ipv6(match[1]) or re.fullmatch(IP_FUTURE, match[1]) is not None


def is_uuid(text: str) -> bool:
    """True for a UUID of RFC 4122 in its 8-4-4-4-12 form, in either case."""
    return re.fullmatch(UUID_FORM, text) is not None


# "regex" is the compiler's own: it knows how patterns are read.
SCHEMA_FORMATS: dict[str, Callable[[str], bool]] = {
    "date": is_full_date,
    "time": is_full_time,
    "date-time": is_date_time,
    "duration": is_duration,
    "email": is_email,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "uri": is_uri,
    "uuid": is_uuid,
}

# endregion

# region foundation/schema_builder.py
# =============================================================================
# The compiler behind JSON Schema: subschemas by pointer, references, patterns, breaches.
#
# What each keyword checks is a table that `foundation.schema` hands in; here is what holds
# them together. A subschema becomes a closure once, whatever refers to it. A path is a chain
# of (path of the container, key) and becomes a pointer only when there is a breach.
# =============================================================================

MAX_SCHEMA_BREACHES = 20

ANY_TYPE: tuple[type, ...] = (type(None), bool, int, float, str, list, dict)
SCHEMA_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),), "boolean": (bool,), "integer": (int, float), "number": (int, float),
    "string": (str,), "array": (list,), "object": (dict,),
}  # fmt: skip

SCHEMA_DRAFT = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ANNOTATIONS = "$schema $id $comment $anchor title description default examples deprecated readOnly writeOnly".split()
# Looked at together with the keyword named here, without which they would check nothing.
SCHEMA_COMPANIONS = {"minContains": "contains", "maxContains": "contains", "then": "if", "else": "if"}
SCHEMA_REFUSED = {
    "unevaluatedProperties": "is not supported; write additionalProperties beside the properties it is about",
    "unevaluatedItems": "is not supported; write items beside the prefixItems it is about",
    "$dynamicRef": "is not supported; use $ref",
    "$dynamicAnchor": "is not supported; use $anchor",
    "$recursiveRef": "is of an older draft; use $ref",
    "$vocabulary": "is not supported",
    "contentEncoding": "checks nothing in JSON Schema 2020-12; remove it, or check with pattern",
    "contentMediaType": "checks nothing in JSON Schema 2020-12; remove it",
    "contentSchema": "checks nothing in JSON Schema 2020-12; remove it",
    "dependencies": "is of an older draft; use dependentRequired or dependentSchemas",
    "additionalItems": "is of an older draft; use prefixItems and items",
    "nullable": 'is of OpenAPI 3.0; write the type as a list with "null" in it',
    "discriminator": "is of OpenAPI; oneOf with a const in each schema says the same",
    "id": "is of an older draft; a property of this name belongs into properties",
}

# White space of ECMA-262, as the inside of a class of Python's re.
ECMA_SPACES = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
ECMA_TOKEN = re.compile(r"\\(?:c[A-Za-z]|k<[^>]*>|.)|\(\?<(?![=!])|\[\^?\]?|[\]$.&|~]", re.DOTALL)
ECMA_OUTSIDE = {"$": r"\Z", ".": r"[^\n\r\u2028\u2029]", "(?<": "(?P<", r"\s": f"[{ECMA_SPACES}]", r"\S": f"[^{ECMA_SPACES}]"}
# Escaped, because Python warns that it may give them a meaning inside a class.
ECMA_INSIDE = {"&": r"\&", "|": r"\|", "~": r"\~", r"\s": ECMA_SPACES}

SchemaPath = tuple[Any, Any] | None
SchemaFinding = tuple[SchemaPath, Any, str]  # path, value, what is wrong with it
# (pattern, flags of re, the pattern as written) -> what searches a text; raises ValueError or re.error for a bad pattern.
PatternCompiler = Callable[[str, int, str], Callable[[str], object]]


class SchemaBreach(NamedTuple):
    """One breach: the pointer in the value, and what is wrong there."""

    pointer: str
    message: str


class SchemaError(Exception):
    """A schema that cannot be used: the pointer in the schema, and why."""

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(f"#{pointer}: {message}")
        self.pointer = pointer
        self.message = message


class SchemaTooDeep(Exception):
    """A value nested more deeply than the schema can be followed into it."""


class SchemaFindings(list[SchemaFinding]):
    """The breaches found on the way.

    `known` holds what a reference found about a container before: without it, a schema that
    branches and refers to itself takes exponential time on a deep value.
    """

    def __init__(self, known: dict[tuple[int, str], tuple[SchemaFinding, ...]]) -> None:
        super().__init__()
        self.known = known


SchemaCheck = Callable[[Any, SchemaPath, SchemaFindings], None]
KeywordCompiler = Callable[["SchemaBuilder", JsonObject, str, str], SchemaCheck | None]


class SchemaKeyword(NamedTuple):
    """A keyword: the types of value it says something about, and what makes its check.

    `build(builder, schema, pointer, keyword)` gives None when there is nothing to check.
    """

    kinds: tuple[type, ...]
    build: KeywordCompiler


def schema_shown(value: Any) -> str:
    """*value* as a breach shows it: scalars as JSON, cut; containers by kind and size."""
    if isinstance(value, dict):
        return "the object"
    return f"the array of {counted(len(value), 'item')}" if isinstance(value, list) else visible(encode_compact(value), 60)


def schema_pointer(path: SchemaPath) -> str:
    """The JSON Pointer of *path*."""
    tokens: list[str] = []
    while path is not None:
        path, key = path
        tokens.append(pointer_token(key))
    return "".join(reversed(tokens))


def schema_accepts(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
    """The check of the schema `true`."""


def schema_refuses(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
    """The check of the schema `false`."""
    found.append((path, value, "is not allowed here"))


def schema_integral(value: float, path: SchemaPath, found: SchemaFindings) -> None:
    """The check of the type integer on a number with a decimal point or an exponent."""
    if not value.is_integer():
        found.append((path, value, "is not an integer"))


def ecma_pattern(pattern: str) -> str:
    """*pattern* of ECMA-262 as one of Python's re under its flag ASCII; what only Python knows stays as it is.

    Differs by: `$` and `.`, white space, named groups, control escapes. Not translated, and so refused by
    re: \\p{…}, \\u{…}, empty classes.

    >>> ecma_pattern(r"^(?<year>[0-9]+)$")
    '^(?P<year>[0-9]+)\\\\Z'
    """
    parts: list[str] = []
    position, is_inside = 0, False
    for match in ECMA_TOKEN.finditer(pattern):
        token = match.group()
        parts.append(pattern[position : match.start()])
        position = match.end()
        if token.startswith("\\c") and len(token) == 3:
            token = f"\\x{ord(token[2]) % 32:02x}"
        elif token.startswith("\\k<"):
            token = f"(?P={token[3:-1]})"
        elif is_inside:
            is_inside = token[0] == "\\" or not token.endswith("]")
            token = token.replace("[", r"\[") if token[0] == "[" else ECMA_INSIDE.get(token, token)
        elif token.startswith("["):
            is_inside = True
        else:
            token = ECMA_OUTSIDE.get(token, token)
        parts.append(token)
    return "".join(parts) + pattern[position:]


class SchemaBuilder:
    """Compiles the subschemas of one schema, and what its references lead to."""

    def __init__(self, root: Any, keywords: dict[str, SchemaKeyword], compile_pattern: PatternCompiler) -> None:
        self.root = root
        self.keywords = keywords
        self.compile_pattern = compile_pattern
        self.base = str(root.get("$id", "")) if isinstance(root, dict) else ""
        self.checks: dict[str, SchemaCheck] = {}  # by pointer
        self.anchors: dict[str, str] = {}  # name -> pointer
        self.applied: dict[str, list[str]] = {}  # pointer -> pointers of the schemas applied to the same value
        self.references: list[tuple[str, str, list[SchemaCheck]]] = []  # (pointer, reference, the check once it is known)

    def build(self) -> SchemaCheck:
        """The check of the whole schema. Raises SchemaError."""
        try:
            check = self.compile(self.root, "")
            while self.references:
                pointer, reference, cell = self.references.pop()
                target = self.resolve(pointer, reference)
                is_there, schema = follow_pointer(self.root, pointer_tokens(target))
                if not is_there:
                    raise SchemaError(pointer + "/$ref", f"there is nothing at {quoted(reference)}")
                cell.append(self.compile(schema, target))
                self.applied.setdefault(pointer, []).append(target)
        except RecursionError:
            raise SchemaError("", "is nested too deeply") from None
        self.refuse_endless_references()
        return check

    def resolve(self, pointer: str, reference: str) -> str:
        """The pointer that *reference*, in the schema at *pointer*, means."""
        is_own = self.base and reference.startswith(self.base)
        local = reference[len(self.base) :] or "#" if is_own else reference
        if not local.startswith("#"):
            raise SchemaError(pointer + "/$ref", f"{quoted(reference)} leads out of this schema; copy what it means into $defs")
        fragment = local[1:]
        if "%" in fragment:
            from urllib.parse import unquote

            fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            if fragment not in self.anchors:
                raise SchemaError(pointer + "/$ref", f"there is no $anchor {quoted(fragment)}")
            return self.anchors[fragment]
        return fragment

    def refuse_endless_references(self) -> None:
        """Raises SchemaError when a schema comes back to itself without going deeper into the value."""
        done: set[str] = set()
        for start in self.applied:
            trail: list[str] = []
            stack = [(start, False)]
            while stack:
                pointer, is_left = stack.pop()
                if is_left:
                    done.add(trail.pop())
                elif pointer in trail:
                    raise SchemaError(pointer, "refers to itself without going deeper into the value, so checking would never end")
                elif pointer not in done:
                    trail.append(pointer)
                    stack.append((pointer, True))
                    stack.extend((target, False) for target in self.applied.get(pointer, ()))

    def compile(self, schema: Any, pointer: str) -> SchemaCheck:
        """The check of the subschema *schema*, which stands at *pointer*."""
        if pointer not in self.checks:
            if isinstance(schema, bool):
                check: SchemaCheck = schema_accepts if schema else schema_refuses
            elif isinstance(schema, dict):
                self.check_keywords(schema, pointer)
                check = self.compile_keywords(schema, pointer)
            else:
                raise SchemaError(pointer, f"is a JSON {json_type(schema)}, not a schema (an object, true or false)")
            self.checks[pointer] = check
        return self.checks[pointer]

    def compile_keywords(self, schema: JsonObject, pointer: str) -> SchemaCheck:
        """The check of all keywords of *schema*: by type of the value, those that say something about it."""
        allowed = self.types(schema, pointer)
        by_type: dict[type, list[SchemaCheck]] = {kind: [] for kind in ANY_TYPE}
        if "integer" in allowed and "number" not in allowed:
            by_type[float].append(schema_integral)
        # In the order of the table, so that the order of keys in the file changes nothing.
        for keyword, (kinds, build) in self.keywords.items():
            check = build(self, schema, pointer, keyword) if keyword in schema else None
            if check is not None:
                for kind in kinds:
                    by_type[kind].append(check)
        if allowed:
            refused = set(ANY_TYPE).difference(*(SCHEMA_TYPES[name] for name in allowed))
            by_type.update({kind: [schema_wrong_type(allowed)] for kind in refused})
        checks = {kind: tuple(found) for kind, found in by_type.items()}

        def check_schema(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
            for each in checks[type(value)]:
                each(value, path, found)

        return check_schema

    def types(self, schema: JsonObject, pointer: str) -> list[str]:
        """The names in `type`, none when there is no such keyword."""
        names = schema.get("type", [])
        names = [names] if isinstance(names, str) else names
        if not isinstance(names, list) or "type" in schema and not names:
            raise SchemaError(pointer + "/type", "must be the name of a type or a list of them")
        for name in names:
            if not isinstance(name, str) or name not in SCHEMA_TYPES:
                raise SchemaError(pointer + "/type", f"unknown type {quoted(str(name))}; {did_you_mean(str(name), SCHEMA_TYPES)}")
        return names

    def check_keywords(self, schema: JsonObject, pointer: str) -> None:
        """Raises SchemaError for a keyword that is unknown, refused or would check nothing; notes an anchor."""
        for keyword in schema:
            place = pointer + pointer_token(keyword)
            if keyword in SCHEMA_REFUSED:
                raise SchemaError(place, f"{keyword} {SCHEMA_REFUSED[keyword]}")
            if keyword in SCHEMA_COMPANIONS:
                if SCHEMA_COMPANIONS[keyword] not in schema:
                    raise SchemaError(place, f"{keyword} checks nothing without {SCHEMA_COMPANIONS[keyword]}")
            elif keyword != "type" and keyword not in SCHEMA_ANNOTATIONS and keyword not in self.keywords:
                known = ["type", *self.keywords, *SCHEMA_ANNOTATIONS, *SCHEMA_COMPANIONS]
                raise SchemaError(place, f"unknown keyword {quoted(keyword)}; {did_you_mean(keyword, known)}")
        if "$id" in schema and pointer:
            raise SchemaError(pointer + "/$id", "an $id below the root is not supported")
        if str(schema.get("$schema", SCHEMA_DRAFT)).rstrip("#") != SCHEMA_DRAFT:
            raise SchemaError(pointer + "/$schema", f"only JSON Schema 2020-12 is known; once the schema keeps to it, write {SCHEMA_DRAFT}")
        if "$anchor" in schema:
            anchor = str(schema["$anchor"])
            if self.anchors.setdefault(anchor, pointer) != pointer:
                raise SchemaError(pointer + "/$anchor", f"the anchor {quoted(anchor)} stands twice in the schema")

    def part(self, schema: JsonObject, pointer: str, keyword: str, key: str | int | None = None, is_applied: bool = False) -> SchemaCheck:
        """The check of the subschema at *keyword* (and *key* in it); *is_applied*: to the same value as *schema* itself."""
        place = pointer + pointer_token(keyword)
        inner = schema[keyword]
        if key is not None:
            place, inner = place + pointer_token(key), inner[key]
        if is_applied:
            self.applied.setdefault(pointer, []).append(place)
        return self.compile(inner, place)

    def search(self, pattern: str, pointer: str) -> Callable[[str], object]:
        """The search of *pattern*, which stands at *pointer*."""
        try:
            return self.compile_pattern(ecma_pattern(pattern), re.ASCII, pattern)
        except (ValueError, OverflowError, RecursionError, re.error) as error:
            raise SchemaError(pointer, f"the pattern {quoted(pattern)} cannot be used: {error}") from None


def schema_wrong_type(allowed: list[str]) -> SchemaCheck:
    """The check of a value whose type is none of *allowed*."""
    text = f"is not of type {' or '.join(allowed)}"

    def check_wrong_type(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        found.append((path, value, text))

    return check_wrong_type

# endregion

# region foundation/schema_keywords.py
# =============================================================================
# JSON Schema keywords for any value, numbers and text, and what keywords are made of.
#
# Each function makes the check of one keyword: (builder, schema, pointer of the schema,
# keyword) -> check, with everything that does not depend on the value done beforehand.
# =============================================================================

# keyword: (of the length, what must hold, what is wrong otherwise)
SCHEMA_BOUNDS: dict[str, tuple[bool, Callable[[Any, Any], bool], str]] = {
    "minimum": (False, operator.ge, "is less than the minimum {}"),
    "maximum": (False, operator.le, "is greater than the maximum {}"),
    "exclusiveMinimum": (False, operator.gt, "is not greater than {}"),
    "exclusiveMaximum": (False, operator.lt, "is not less than {}"),
    "minLength": (True, operator.ge, "is shorter than {} characters"),
    "maxLength": (True, operator.le, "is longer than {} characters"),
    "minItems": (True, operator.ge, "has fewer than {} items"),
    "maxItems": (True, operator.le, "has more than {} items"),
    "minProperties": (True, operator.ge, "has fewer than {} properties"),
    "maxProperties": (True, operator.le, "has more than {} properties"),
}


# --- What keywords must be made of ---------------------------------------------------


def schema_operand(schema: JsonObject, pointer: str, keyword: str, kinds: tuple[type, ...], wanted: str) -> Any:
    """What stands at *keyword*. Raises SchemaError when its type is none of *kinds*."""
    operand = schema[keyword]
    if type(operand) not in kinds:
        raise SchemaError(pointer + pointer_token(keyword), f"is a JSON {json_type(operand)}, not {wanted}")
    return operand


def schema_list(schema: JsonObject, pointer: str, keyword: str, wanted: str) -> list[Any]:
    """The list at *keyword*, which may not be empty."""
    operand: list[Any] = schema_operand(schema, pointer, keyword, (list,), f"a list of {wanted}")
    if not operand:
        raise SchemaError(pointer + pointer_token(keyword), f"is an empty list; it needs {wanted}")
    return operand


def schema_map(schema: JsonObject, pointer: str, keyword: str, wanted: str) -> JsonObject:
    """The object at *keyword*."""
    operand: JsonObject = schema_operand(schema, pointer, keyword, (dict,), f"an object of {wanted}")
    return operand


def schema_names(names: Any, pointer: str) -> list[str]:
    """*names*, when they are a list of different strings."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise SchemaError(pointer, "must be a list of property names, each once")
    return names


def schema_count(schema: JsonObject, pointer: str, keyword: str) -> int:
    """The count at *keyword*: an integer from 0."""
    operand = schema_operand(schema, pointer, keyword, (int, float), "a number")
    if operand != int(operand) or operand < 0:
        raise SchemaError(pointer + pointer_token(keyword), "must be an integer from 0")
    return int(operand)


def schema_sequence(checks: list[SchemaCheck]) -> SchemaCheck:
    """A check that makes all of *checks*."""

    def check_all(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        for check in checks:
            check(value, path, found)

    return check_all


# --- Any value -----------------------------------------------------------------------


def schema_definitions(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> None:
    """Compiles all definitions, so that a mistake in one that nobody refers to is found as well."""
    for name in schema_map(schema, pointer, keyword, "schemas"):
        builder.part(schema, pointer, keyword, name)


def schema_reference(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """$ref: the check is filled in when the whole schema is known."""
    reference = schema_operand(schema, pointer, keyword, (str,), "a reference")
    cell: list[SchemaCheck] = []
    builder.references.append((pointer, reference, cell))

    def check_reference(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        if type(value) not in (dict, list):
            cell[0](value, path, found)
            return
        key = (id(value), pointer)
        before = len(found)
        if key in found.known:
            found.extend(found.known[key])
        else:
            cell[0](value, path, found)
            if len(found) < MAX_SCHEMA_BREACHES:  # beyond that not everything was looked at
                found.known[key] = tuple(found[before:])

    return check_reference


def schema_enum(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """enum: the value is one of the list."""
    choices = schema_list(schema, pointer, keyword, "values")
    keys = {json_key(choice) for choice in choices}
    text = f"is not one of {listed(map(schema_shown, choices), 8, 'or')}"

    def check_enum(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        if json_key(value) not in keys:
            found.append((path, value, text))

    return check_enum


def schema_const(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """const: the value is this one."""
    constant = schema[keyword]
    text = f"is not {schema_shown(constant)}" if not isinstance(constant, (dict, list)) else "is not the value of const"

    def check_const(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        if not json_equal(value, constant):
            found.append((path, value, text))

    return check_const


def schema_all_of(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """allOf: each of the schemas holds."""
    schemas = schema_list(schema, pointer, keyword, "schemas")
    return schema_sequence([builder.part(schema, pointer, keyword, index, True) for index in range(len(schemas))])


def schema_nearest_branch(branches: list[SchemaFindings]) -> str:
    """What is wrong with the branch that went deepest before its first breach: that is the one that was meant."""
    depths = [schema_pointer(branch[0][0]).count("/") for branch in branches]
    number = depths.index(max(depths))
    path, value, text = branches[number][0]
    return f"nearest is schema {number}, but {schema_pointer(path) or 'there'}: {schema_shown(value)} {text}"


def schema_some_of(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """anyOf and oneOf: at least one of the schemas holds, or exactly one."""
    schemas = schema_list(schema, pointer, keyword, "schemas")
    checks = [builder.part(schema, pointer, keyword, index, True) for index in range(len(schemas))]
    is_one = keyword == "oneOf"

    def check_some(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        branches: list[SchemaFindings] = []
        fitting: list[str] = []
        for index, check in enumerate(checks):
            branch = SchemaFindings(found.known)
            check(value, path, branch)
            if branch:
                branches.append(branch)
            elif not is_one:
                return
            else:
                fitting.append(str(index))
        if not fitting:
            found.append((path, value, f"fits no schema of {keyword}; {schema_nearest_branch(branches)}"))
        elif len(fitting) > 1:
            found.append((path, value, f"fits the schemas {listed(fitting)} of oneOf, not exactly one"))

    return check_some


def schema_not(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """not: the schema does not hold."""
    refused = builder.part(schema, pointer, keyword, None, True)

    def check_not(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        branch = SchemaFindings(found.known)
        refused(value, path, branch)
        if not branch:
            found.append((path, value, "fits the schema of not"))

    return check_not


def schema_if(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """if, then, else: which of the two holds depends on whether the first one does."""
    condition = builder.part(schema, pointer, "if", None, True)
    then = builder.part(schema, pointer, "then", None, True) if "then" in schema else schema_accepts
    otherwise = builder.part(schema, pointer, "else", None, True) if "else" in schema else schema_accepts

    def check_if(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        branch = SchemaFindings(found.known)
        condition(value, path, branch)
        (otherwise if branch else then)(value, path, found)

    return check_if


# --- Numbers and text ----------------------------------------------------------------


def schema_bound(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """The keywords of SCHEMA_BOUNDS."""
    is_length, holds, text = SCHEMA_BOUNDS[keyword]
    operand = schema_operand(schema, pointer, keyword, (int, float), "a number")
    bound = schema_count(schema, pointer, keyword) if is_length else operand
    text = text.format(schema_shown(bound))

    def check_length(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        if not holds(len(value), bound):
            found.append((path, value, text))

    def check_number(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        if not holds(value, bound):
            found.append((path, value, text))

    return check_length if is_length else check_number


def decimal_parts(number: float) -> tuple[int, int]:
    """(digits, exponent of ten) of *number* as it is written in decimal: 2.5 is (25, -1), 1e300 is (1, 300)."""
    mantissa, _, exponent = repr(number).partition("e")
    whole, _, fraction = mantissa.partition(".")
    return int(whole + fraction), int(exponent or 0) - len(fraction)


def schema_multiple_of(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """multipleOf, exact in decimal terms: 0.3 is a multiple of 0.1."""
    step = schema_operand(schema, pointer, keyword, (int, float), "a number")
    if step <= 0:
        raise SchemaError(pointer + pointer_token(keyword), "must be greater than 0")
    step_digits, step_exponent = decimal_parts(step)
    text = f"is not a multiple of {step}"

    def check_multiple(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        digits, exponent = decimal_parts(value)
        shift = exponent - step_exponent
        if (digits * 10**shift % step_digits) if shift >= 0 else (digits % (step_digits * 10**-shift)):
            found.append((path, value, text))

    return check_multiple


def schema_pattern(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """pattern: found anywhere in the text."""
    pattern = schema_operand(schema, pointer, keyword, (str,), "a pattern")
    search = builder.search(pattern, pointer + pointer_token(keyword))
    text = f"does not match the pattern {quoted(pattern, 60)}"

    def check_pattern(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        if not search(value):
            found.append((path, value, text))

    return check_pattern


def schema_format(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """format: the text is written as its document says."""
    name = schema_operand(schema, pointer, keyword, (str,), "the name of a format")
    place = pointer + pointer_token(keyword)

    def is_pattern(text: str) -> bool:
        try:
            return text == "" or builder.search(text, place) is not None
        except SchemaError:
            return False

    known = {**SCHEMA_FORMATS, "regex": is_pattern}
    if name not in known:
        raise SchemaError(place, f"unknown format {quoted(name)}, which would check nothing; {did_you_mean(name, known)}")
    has_format = known[name]

    def check_format(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        if not has_format(value):
            found.append((path, value, f"is not in the format {name}"))

    return check_format

# endregion

# region foundation/schema.py
# =============================================================================
# JSON Schema 2020-12: a schema compiled once into a function that names each breach.
#
#     validate = compile_schema({"type": "object", "required": ["id"]})
#     validate({})        [SchemaBreach(pointer="", message="the object lacks the required property 'id'")]
#
# All that stands in a schema is checked, or a known annotation, or refused with its pointer:
# nothing that was written is silently left out. Not supported, and so refused:
# unevaluatedItems and -Properties, $dynamicRef, references out of the schema, an $id below
# the root, other drafts. `format` is checked. Patterns are read as JSON Schema says, by
# ECMA-262: `$` is the very end of the text, \d and \w are ASCII.
#
# A value of a wrong type is one breach, whatever else is asked of it. Values come from strict
# JSON, so that their Python types say their JSON types; 1.0 is an integer, true is not.
# =============================================================================

# --- Arrays --------------------------------------------------------------------------


def schema_items(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck | None:
    """prefixItems and items, together at the first of them that is there."""
    if keyword == "items" and "prefixItems" in schema:
        return None
    prefix: list[SchemaCheck] = []
    if "prefixItems" in schema:
        schemas = schema_list(schema, pointer, "prefixItems", "schemas")
        prefix = [builder.part(schema, pointer, "prefixItems", index) for index in range(len(schemas))]
    if isinstance(schema.get("items"), list):
        raise SchemaError(pointer + "/items", "is a list, as in older drafts; use prefixItems")
    rest = builder.part(schema, pointer, "items") if "items" in schema else None

    def check_items(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        for index, (item, check) in enumerate(zip(value, prefix, strict=False)):
            check(item, (path, index), found)
        if rest is not None:
            for index in range(len(prefix), len(value)):
                rest(value[index], (path, index), found)
                if len(found) >= MAX_SCHEMA_BREACHES:
                    break

    return check_items


def schema_contains(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """contains, minContains, maxContains: how many items fit."""
    inner = builder.part(schema, pointer, keyword)
    least = schema_count(schema, pointer, "minContains") if "minContains" in schema else 1
    most = schema_count(schema, pointer, "maxContains") if "maxContains" in schema else None

    def check_contains(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        fitting = 0
        for index, item in enumerate(value):
            branch = SchemaFindings(found.known)
            inner(item, (path, index), branch)
            fitting += not branch
            if fitting >= least if most is None else fitting > most:
                break
        if fitting < least:
            found.append((path, value, f"has {counted(fitting, 'item')} that fit contains, fewer than {least}"))
        elif most is not None and fitting > most:
            found.append((path, value, f"has more than {counted(most, 'item')} that fit contains"))

    return check_contains


def schema_unique_items(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck | None:
    """uniqueItems: no two items are the same JSON value."""
    if not schema_operand(schema, pointer, keyword, (bool,), "true or false"):
        return None

    def check_unique(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        seen: dict[Any, int] = {}
        for index, item in enumerate(value):
            first = seen.setdefault(json_key(item), index)
            if first != index:
                found.append(((path, index), item, f"is the same as item {first}"))
                return

    return check_unique


# --- Objects -------------------------------------------------------------------------


def schema_unknown_property(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
    """The check of a property that additionalProperties: false does not allow."""
    found.append((path, value, "is not allowed: the schema has no property of this name"))


def schema_properties(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck | None:
    """properties, patternProperties and additionalProperties, together at the first of them that is there."""
    if keyword != next(name for name in ("properties", "patternProperties", "additionalProperties") if name in schema):
        return None
    known: dict[str, SchemaCheck] = {}
    if "properties" in schema:
        names = schema_map(schema, pointer, "properties", "schemas")
        known = {name: builder.part(schema, pointer, "properties", name) for name in names}
    patterns: list[tuple[Callable[[str], object], SchemaCheck]] = []
    if "patternProperties" in schema:
        for pattern in sorted(schema_map(schema, pointer, "patternProperties", "schemas")):
            search = builder.search(pattern, pointer + "/patternProperties" + pointer_token(pattern))
            patterns.append((search, builder.part(schema, pointer, "patternProperties", pattern)))
    rest = builder.part(schema, pointer, "additionalProperties") if "additionalProperties" in schema else None
    if schema.get("additionalProperties") is False:
        rest = schema_unknown_property

    def check_properties(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        for key, item in value.items():
            check = known.get(key)
            is_known = check is not None
            if check is not None:
                check(item, (path, key), found)
            for search, matching in patterns:
                if search(key):
                    is_known = True
                    matching(item, (path, key), found)
            if not is_known and rest is not None:
                rest(item, (path, key), found)
            if len(found) >= MAX_SCHEMA_BREACHES:
                break

    return check_properties


def schema_property_names(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """propertyNames: each key fits the schema."""
    inner = builder.part(schema, pointer, keyword)

    def check_names(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        for key in value:
            branch = SchemaFindings(found.known)
            inner(key, (path, key), branch)
            found.extend((where, name, f"is no allowed name of a property: it {text}") for where, name, text in branch)
            if len(found) >= MAX_SCHEMA_BREACHES:
                break

    return check_names


def schema_required(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """required: these properties are there."""
    required = schema_names(schema[keyword], pointer + pointer_token(keyword))

    def check_required(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        for name in required:
            if name not in value:
                found.append((path, value, f"lacks the required property {quoted(name)}"))

    return check_required


def schema_dependent(builder: SchemaBuilder, schema: JsonObject, pointer: str, keyword: str) -> SchemaCheck:
    """dependentRequired and dependentSchemas: what holds once a property is there."""
    checks: list[tuple[str, SchemaCheck]] = []
    for name, operand in sorted(schema_map(schema, pointer, keyword, "properties").items()):
        if keyword == "dependentSchemas":
            checks.append((name, builder.part(schema, pointer, keyword, name, True)))
        else:
            names = schema_names(operand, pointer + pointer_token(keyword) + pointer_token(name))
            checks.append((name, schema_required_beside(name, names)))

    def check_dependent(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        for name, check in checks:
            if name in value:
                check(value, path, found)

    return check_dependent


def schema_required_beside(name: str, required: list[str]) -> SchemaCheck:
    """A check that *required* are there, since *name* is."""

    def check_beside(value: Any, path: SchemaPath, found: SchemaFindings) -> None:
        for other in required:
            if other not in value:
                found.append((path, value, f"has {quoted(name)} but lacks {quoted(other)}"))

    return check_beside


SCHEMA_KEYWORDS: dict[str, SchemaKeyword] = {
    "$defs": SchemaKeyword(ANY_TYPE, schema_definitions),
    "definitions": SchemaKeyword(ANY_TYPE, schema_definitions),
    "$ref": SchemaKeyword(ANY_TYPE, schema_reference),
    "enum": SchemaKeyword(ANY_TYPE, schema_enum),
    "const": SchemaKeyword(ANY_TYPE, schema_const),
    **{name: SchemaKeyword((int, float), schema_bound) for name in SCHEMA_BOUNDS if name.endswith("imum")},
    "multipleOf": SchemaKeyword((int, float), schema_multiple_of),
    **{name: SchemaKeyword((str,), schema_bound) for name in ("minLength", "maxLength")},
    "pattern": SchemaKeyword((str,), schema_pattern),
    "format": SchemaKeyword((str,), schema_format),
    **{name: SchemaKeyword((list,), schema_bound) for name in ("minItems", "maxItems")},
    "prefixItems": SchemaKeyword((list,), schema_items),
    "items": SchemaKeyword((list,), schema_items),
    "contains": SchemaKeyword((list,), schema_contains),
    "uniqueItems": SchemaKeyword((list,), schema_unique_items),
    "required": SchemaKeyword((dict,), schema_required),
    **{name: SchemaKeyword((dict,), schema_bound) for name in ("minProperties", "maxProperties")},
    "propertyNames": SchemaKeyword((dict,), schema_property_names),
    "properties": SchemaKeyword((dict,), schema_properties),
    "patternProperties": SchemaKeyword((dict,), schema_properties),
    "additionalProperties": SchemaKeyword((dict,), schema_properties),
    "dependentRequired": SchemaKeyword((dict,), schema_dependent),
    "dependentSchemas": SchemaKeyword((dict,), schema_dependent),
    "allOf": SchemaKeyword(ANY_TYPE, schema_all_of),
    "anyOf": SchemaKeyword(ANY_TYPE, schema_some_of),
    "oneOf": SchemaKeyword(ANY_TYPE, schema_some_of),
    "not": SchemaKeyword(ANY_TYPE, schema_not),
    "if": SchemaKeyword(ANY_TYPE, schema_if),
}


def compile_schema(schema: Any, compile_pattern: PatternCompiler | None = None) -> Callable[[Any], list[SchemaBreach]]:
    """A function that gives the breaches of *schema* in a value: none when it is valid, at most 20.

    Patterns are searched by what *compile_pattern* gives; without it by plain `re`, which has no time limit.
    Raises SchemaError when the schema cannot be used; the function itself raises SchemaTooDeep.
    """
    check = SchemaBuilder(schema, SCHEMA_KEYWORDS, compile_pattern or schema_plain_pattern).build()

    def validate(value: Any) -> list[SchemaBreach]:
        found = SchemaFindings({})
        try:
            check(value, None, found)
        except RecursionError:
            raise SchemaTooDeep("the value is nested too deeply to be checked") from None
        breaches = (SchemaBreach(schema_pointer(path), f"{schema_shown(item)} {text}") for path, item, text in found)
        return list(dict.fromkeys(breaches))[:MAX_SCHEMA_BREACHES]

    return validate


def schema_plain_pattern(pattern: str, flags: int, written: str) -> Callable[[str], object]:
    """The search of *pattern* by plain `re`."""
    return re.compile(pattern, flags).search

# endregion

# region foundation/secret_shapes.py
# =============================================================================
# What secrets look like in a text: shapes of issued keys, and names that tell a secret.
#
# Each rule is a literal, then at most one greedy class; the rest is decided in a function
# that says where the secret stands. What was looked at is not looked at again, so time grows
# with the length of the text and no faster. Lengths are those of the issuers' keys or a
# little less. `redact.py` masks what the rules find.
#
# Not found: a private key logged one line a record, a secret split over two fields, a format
# nobody here knows that has no name in front, a name and its value coloured apart.
# =============================================================================

# family, words one of which it begins with (`=`: its first characters, inside a run of 20 letters, digits, - _ .), shape,
# what the match must hold. A shape stands where no letter, digit or _ is before it; a group in it is the secret.
TOKEN_SHAPES = r"""
aws_key           =AKIA,=ASIA,=ABIA,=ACCA,=A3T  A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9])[A-Z0-9]{16}(?![A-Za-z0-9])
aws_bedrock_key   =ABSK                      ABSK[A-Za-z0-9]{16}[A-Za-z0-9+/=]{4,}
aws_bedrock_key   bedrock                    bedrock-api-key-[A-Za-z0-9+/=_-]{16,}
github_token      ghp,gho,ghu,ghs,ghr        gh[pousr]_[A-Za-z0-9._-]{36,}
github_token      github                     github_pat_[A-Za-z0-9_]{22,}
jwt               =eyJ                       eyJ[A-Za-z0-9_-]{8}[A-Za-z0-9._-]{9,}  \.[A-Za-z0-9_-]
jwt               =ZXlK                      ZXlK[A-Za-z0-9_-]{40,}
langfuse_key      sk                         sk-lf-[A-Za-z0-9_-]{8,}
api_key           sk                         sk-[A-Za-z0-9_-]{20,}  [0-9]
stripe_key        sk,rk                      [sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}
slack_token       xoxa,xoxb,xoxc,xoxd,xoxe,xoxo,xoxp,xoxr,xoxs  xox[abcdeoprs]-[A-Za-z0-9-]{8,}
slack_token       xapp                       xapp-[0-9]-[A-Za-z0-9-]{10,}
slack_webhook     hooks                      hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/_-]{20,})
google_key        =AIza                      AIza[A-Za-z0-9_-]{35,}
google_token      ya29                       ya29\.[A-Za-z0-9._-]{20,}
google_secret     gocspx                     GOCSPX-[A-Za-z0-9_-]{20,}
gitlab_token      glpat,glptt,gldt,glrt,glcbt,glsoat,glagent  gl(?:pat|ptt|dt|rt|cbt|soat|agent)-[A-Za-z0-9._-]{20,}
gitlab_token      gloas,glft,glimt,glffct    gl(?:oas|ft|imt|ffct)-[A-Za-z0-9._-]{20,}
npm_token         npm                        npm_[A-Za-z0-9]{36,}
pypi_token        pypi                       pypi-AgE[A-Za-z0-9_-]{16,}
rubygems_token    rubygems                   rubygems_[0-9a-f]{48}
huggingface_token hf                         hf_[A-Za-z0-9]{30,}
sendgrid_key      sg                         SG\.[A-Za-z0-9=._-]{60,}
linear_key        lin                        lin_(?:api|oauth)_[A-Za-z0-9]{32,}
langsmith_key     lsv2                       lsv2_(?:pt|sk)_[A-Za-z0-9_]{20,}
groq_key          gsk                        gsk_[A-Za-z0-9]{40,}
xai_key           xai                        xai-[A-Za-z0-9]{40,}
perplexity_key    pplx                       pplx-[A-Za-z0-9]{40,}
notion_token      ntn                        ntn_[A-Za-z0-9]{40,}
replicate_token   r8                         r8_[A-Za-z0-9]{37,}
databricks_token  =dapi                      dapi[0-9a-f]{32}(?![A-Za-z0-9])
digitalocean_token  dop,doo,dor              do[opr]_v1_[0-9a-f]{64}
shopify_token     shpat,shpca,shppa,shpss    shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}
vault_token       hvs,hvb                    hv[sb]\.[A-Za-z0-9_-]{24,}
grafana_token     glsa,glc                   gl(?:sa|c)_[A-Za-z0-9+/=_]{32,}
sentry_token      sntrys,sntryu              sntry[su]_[A-Za-z0-9+/=_]{40,}
doppler_token     dp                         dp\.pt\.[A-Za-z0-9]{40,}
pulumi_token      pul                        pul-[0-9a-f]{40}
postman_key       pmak                       PMAK-[0-9a-f]{24}-[0-9a-f]{34}
tailscale_key     tskey                      tskey-[a-z]{1,12}-[A-Za-z0-9-]{20,}
age_key           age                        AGE-SECRET-KEY-1[A-Z0-9]{58}
"""

NAMED_SECRET = "named_secret"
# Names that tell a secret, alone or behind `x_`, `x-`, `x.`, or behind one of the first words of camelCase; `key` behind its owner only.
TEXT_NAMES = "token secret password passwd pwd passphrase credential credentials".split()
KEY_OWNERS = "api access secret private account sharedaccess encryption signing master".split()
FIRST_WORDS = (
    "access account admin api app auth aws azure bearer bot client csrf database db deploy device github gitlab google id jwt login master "
    "new oauth old openai personalaccess private refresh root service session slack smtp ssh sso user webhook x xsrf"
).split()
# Values that are no secrets whatever stands before them: constants, types, and the words with which a sentence goes on.
NO_SECRETS = frozenset(
    "null none nil undefined true false yes no n/a unknown empty missing invalid expired required optional str string text bytes int "
    "integer bool boolean any object a an the is are was were has have had of for to from in on at by with and or not must should will can "
    "may please your our my his her their this that it its you we they i if when where which who what".split()
)
CODE = r"[A-Za-z_][\w.]*[(\[]"  # a call, or what stands in a list
# What stands for a value that is somewhere else.
SECRET_PLACEHOLDER = (
    r"(?:self|cls|this|os|process|env|args|config|settings|request|secrets|var|local|data|module)\.[\w.]+|"
    r"\$[A-Z][A-Z0-9_]*|\$?\{+[\w .:-]*\}+|%[A-Z][A-Z0-9_]*%|%\(\w+\)s|<[\w .-]+>"
)
SCHEMES = r"(bearer|basic|token|digest|negotiate|ntlm|api-?key|hawk|oauth|dpop|signature|hmac[\w-]*|aws4[\w-]*)(?:[ \t]+|$)"  # of HTTP

QUOTE = r"\\{0,3}[\"'`]"
# What a value without quotes is made of: to the next blank or bracket, or to the end of the line. An escaped line end or quote ends both.
WORD_RUN = r"[^\s\"'`,;&()\[\]{}<>\\]*(?:\\(?![nrt\"'`\\])[^\s\"'`,;&()\[\]{}<>\\]*)*"
LINE_RUN = r"[^\r\n\"'`\\]*(?:\\(?![nr\"'`\\])[^\r\n\"'`\\]*)*"
# What may stand before a word: nothing that belongs to it, an escape as two characters, a colour.
BOUNDARY = r"(?:\\[nrtbf]|\[[0-9;]{0,8}m|^|[^a-z0-9\\]|\\)"
LOOK_BACK = 24  # characters, more than what is looked for before a name

SecretFinder = Callable[["re.Match[str]", str], tuple[int, int]]


class RedactionRule(NamedTuple):
    """How the secrets of one family are found.

    A text that holds one holds one of `words` in lower case, one of `starts` in a long run, or an @ when there are neither.
    `find` says from where to where in the text the secret stands that a match of `pattern` belongs to; two equal places
    when there is none, and the search goes on there.
    """

    family: str
    words: tuple[str, ...]
    starts: tuple[str, ...]
    pattern: str
    find: SecretFinder
    is_caseless: bool = False  # the pattern is in lower case and is shown the text so


def redaction_rules() -> tuple[RedactionRule, ...]:
    """The rules in the order in which they are tried: what encloses others first, what goes by a name last."""
    assigned = rf"(?:{QUOTE})?(?:\*\*)?[ \t]{{0,8}}[:=]{{1,3}}>?[ \t]{{0,8}}(?:\*\*(?!\*)[ \t]{{0,8}})?"
    keys = ["key", *(owner + "key" for owner in KEY_OWNERS)]
    names = {name: [name, *(first + name for first in FIRST_WORDS)] for name in TEXT_NAMES}
    user_info, encoded = r"([^\s\"'`/?#<>{}\\]{1,4096})", r"((?:[^%\s\"'&<>]|%(?!2[fF]|3[fF]|2[023])){1,4096})"
    plain: list[tuple[str, list[str], str, SecretFinder]] = [
        ("private_key", ["private"], r"-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY[A-Z0-9 ]{0,20})-----", find_private_key),
        ("url_credentials", [], r":\\{0,3}/\\{0,3}/" + user_info, find_user_info),
        ("url_credentials", ["3a"], r"%3[aA]%2[fF]%2[fF]" + encoded, find_encoded_user_info),
    ]
    caseless: list[tuple[str, list[str], str, SecretFinder]] = [
        ("authorization", ["authorization", "proxyauthorization"], rf"authorization(?:{QUOTE})?[ \t]{{0,8}}[:=][> \t]{{0,8}}", find_header),
        ("bearer_token", ["bearer"], r"bearer[ \t]{1,8}([a-z0-9._~+/=-]{8,})", find_bearer),
        ("basic_credentials", ["basic"], r"basic[ \t]{1,8}([a-z0-9+/_-]{4,}={0,2})", find_basic),
        ("cookie", ["cookie", "setcookie"], rf"cookie(?:{QUOTE})?[ \t]{{0,8}}:[ \t]{{0,8}}", find_cookie),
    ]
    named: list[tuple[str, list[str], str, SecretFinder]] = [
        *((NAMED_SECRET, words, name + assigned, find_named) for name, words in names.items()),
        (NAMED_SECRET, keys, "key" + assigned, find_named),
        (NAMED_SECRET, [*keys, *names], r"--([a-z][a-z0-9_.-]{0,63})[ \t]{1,8}(?=[^ \t-])", find_flag),
    ]
    return (
        *(RedactionRule(family, tuple(words), (), pattern, find) for family, words, pattern, find in plain),
        *(RedactionRule(family, tuple(words), (), pattern, find, True) for family, words, pattern, find in caseless),
        *map(token_rule, TOKEN_SHAPES.strip().split("\n")),
        *(RedactionRule(family, tuple(words), (), pattern, find, True) for family, words, pattern, find in named),
    )


def token_rule(row: str) -> RedactionRule:
    """The rule of one row of TOKEN_SHAPES."""
    family, begins, shape, *held = row.split()
    # The literal goes first, because only then does `re` look for it fast; behind it, what may stand before it.
    first = re.match(r"[A-Za-z0-9_-]*", shape)[0]  # type: ignore[index]  # matches always
    guard = rf"(?:(?<![A-Za-z0-9_]{first})|(?<=\\[nrtbf]{first})|(?<=[0-9;[]m{first}))"

    def find_token(match: "re.Match[str]", text: str) -> tuple[int, int]:
        start, end = match.span(match.lastindex or 0)
        return (start, end) if not held or compiled(held[0]).search(text, start, end) else (end, end)

    words = begins.split(",")
    starts = tuple(word[1:] for word in words if word.startswith("="))
    return RedactionRule(family, tuple(word for word in words if word[0] != "="), starts, first + guard + shape[len(first) :], find_token)


# --- Finders ---------------------------------------------------------------------------


def find_private_key(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """The whole block up to its END line, or to the end of the text when there is none."""
    closing = f"-----END {match[1]}-----"
    end = text.find(closing, match.end())
    return match.start(), len(text) if end < 0 else end + len(closing)


def find_user_info(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """What stands before the last @ of a URL's authority; not the user of an SSH address, who is no secret."""
    start, end = match.span(1)
    at = text.rfind("@", start, end)
    if at <= start:
        return end, end
    is_ssh = text.startswith(("ssh", "SSH"), max(0, match.start() - 3), match.start())
    is_address = (is_ssh or text[start:at] == "git") and text.find(":", start, at) < 0
    is_pattern = text[start] == "[" or not compiled(r"[\W_]*\w").match(text, start, at)  # a regular expression for URLs
    return (end, end) if is_address or is_pattern else (start, at)


def find_encoded_user_info(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """The same in a percent-encoded URL."""
    start, end = match.span(1)
    at = text.rfind("%40", start, end)
    return (end, end) if at < 0 else (start, at)


def find_header(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """What an Authorization header holds behind its scheme, to the end of the line or of the quotes; a sentence is none."""
    start, end = value_span(text, match.end(), LINE_RUN)
    scheme = compiled(SCHEMES).match(text[start : min(end, start + 80)].lower())
    if scheme and scheme[1] in ("digest", "hawk", "oauth") and start == match.end():  # whose parts are in quotes of their own
        end = compiled(r"[^\r\n]*").match(text, start).end()  # type: ignore[union-attr]  # may match nothing
    start += scheme.end() if scheme else 0
    words = text[start:end].split()
    is_prose = is_no_secret(text, start, end, "", True) or words[0].lower().startswith("auth") or (len(words) > 1 and are_plain(words))
    is_code = compiled(CODE).match(text, start, end)
    return (end, end) if is_prose or is_code or not begins_word(text, match.start(), "proxy") else (start, end)


def find_bearer(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """The token behind the word; "bearer of bad news" has none, nor has "bearer token-based"."""
    start, end = match.span(1)
    end -= len(text[start:end]) - len(text[start:end].rstrip("."))
    is_prose = compiled(r"[A-Za-z]*|[a-z._~+/=-]*").fullmatch(text, start, end)
    return (end, end) if is_prose or not begins_word(text, match.start()) else (start, end)


def find_basic(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """The credentials behind the word, if they are base64 of readable text with a colon."""
    from binascii import Error, a2b_base64

    start, end = match.span(1)
    digits = text[start:end].rstrip("=").replace("-", "+").replace("_", "/")
    try:
        decoded = a2b_base64(digits + "=" * (-len(digits) % 4)).decode("utf-8")
    except (Error, UnicodeDecodeError):
        return end, end
    return (start, end) if ":" in decoded and decoded.isprintable() and begins_word(text, match.start()) else (end, end)


def find_cookie(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """What a Cookie or Set-Cookie header holds: name=value, to the end of the line or of the quotes."""
    start, end = value_span(text, match.end(), LINE_RUN)
    return (start, end) if "=" in text[start:end] and begins_word(text, match.start(), "set") else (end, end)


def find_named(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """The value that is assigned to a name which tells a secret; in `arn:aws:…:secret:…` and `AWS::X::Secret` it tells a kind."""
    name = compiled("[a-z]+").match(match[0])[0]  # type: ignore[index]  # begins with letters
    before = text[max(0, match.start() - 2) : match.start()]
    if before == "::" or (before.endswith(":") and match[0] == name + ":"):
        return match.end(), match.end()
    if not (is_owned_key(text, match.start()) if name == "key" else begins_word(text, match.start(), *FIRST_WORDS)):
        return match.end(), match.end()
    start, end = value_span(text, match.end(), WORD_RUN)
    return (end, end) if is_no_secret(text, start, end, name, start > match.end()) else (start, end)


def find_flag(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """The word behind a long option whose name tells a secret: `--db-password hunter2`."""
    start, end = value_span(text, match.end(), WORD_RUN)
    names = "|".join([rf"(?:{'|'.join(KEY_OWNERS)})[_.-]?key", *TEXT_NAMES])
    name = compiled(rf"(?:.*[_.-])?({names})").fullmatch(match[1])
    return (start, end) if name and not is_no_secret(text, start, end, name[1], start > match.end()) else (end, end)


# --- What stands around a secret -------------------------------------------------------


@lru_cache(None)
def compiled(pattern: str) -> "re.Pattern[str]":
    """The *pattern*, compiled at its first use."""
    return re.compile(pattern)


def value_span(text: str, start: int, run: str) -> tuple[int, int]:
    """Where the value at *start* stands: inside its quotes, which may be escaped up to three times, else as far as *run* goes."""
    opening = compiled(QUOTE).match(text, start)
    if opening is None:
        return start, compiled(run).match(text, start).end()  # type: ignore[union-attr]  # may match nothing
    depth, quote = len(opening[0]) - 1, opening[0][-1]
    start = end = opening.end()
    while True:
        end = compiled(rf"[^{quote}\r\n]*").match(text, end).end()  # type: ignore[union-attr]  # may match nothing
        last = text[max(start, end - 8) : end]
        slashes = len(last) - len(last.rstrip("\\"))
        if text[end : end + 1] != quote or slashes <= depth or (depth == 0 and slashes % 2 == 0):
            return start, end - min(slashes, depth)
        end += 1


def begins_word(text: str, start: int, *first_words: str) -> bool:
    """True when the word at *start* has no letter or digit before it, but an escape, a colour, or one of *first_words*."""
    before = text[max(0, start - LOOK_BACK) : start].lower()
    if not before or not before[-1].isalnum() or not before[-1].isascii():
        return True
    glued = compiled(BOUNDARY + r"([a-z0-9]*)$").search(before)
    return glued is not None and (not glued[1] or glued[1] in first_words)


def is_owned_key(text: str, start: int) -> bool:
    """True when the word `key` at *start* is that of an API, an account …: other keys are no secrets."""
    pattern = compiled(rf"{BOUNDARY}(?:{'|'.join(KEY_OWNERS)})[ _.-]?$")
    return pattern.search(text[max(0, start - LOOK_BACK) : start].lower()) is not None


def are_plain(words: list[str]) -> bool:
    """True when all *words* are letters, with the marks that sentences have."""
    return all(word.strip(".,;:!?'()").isalpha() for word in words)


def is_no_secret(text: str, start: int, end: int, name: str, is_quoted: bool) -> bool:
    """True when the value between *start* and *end*, assigned to *name*, is a constant, a placeholder, code or the rest of a sentence."""
    value = text[start:end]
    bare = value.strip(" \t.,:;!?*").lower()
    if bare in NO_SECRETS or not any(map(str.isalnum, bare)):
        return True
    if name == "token" and (bare.isdigit() or (bare.endswith(name) and bare.isalpha())):  # a count, `nextToken`
        return True
    if compiled(SECRET_PLACEHOLDER).fullmatch(value.rstrip(":")) or (name == "pwd" and value[0] in "/~"):
        return True
    if is_quoted or not compiled(r"[A-Za-z_][\w.]*").fullmatch(value):
        return False
    return text[end : end + 1] in tuple("([") or compiled("[._]").split(value.lower())[-1] == name

# endregion

# region foundation/redact.py
# =============================================================================
# Secrets masked in text, JSON and command lines: `***REDACTED:github_token***`.
#
# The *value layer* finds a secret in a text by its shape or by the name written in front of
# it (`secret_shapes.py`). It alone masks evidence. The *key layer* goes by the name of a field,
# flag or variable; logs, command lines and headers get both. What is masked is not masked again.
#
# Which rules can apply at all is known from one pass over the bytes of a text, so ordinary
# evidence costs about 10 microseconds a KB and is not walked through.
# =============================================================================

MASK = re.compile(r"\*\*\*REDACTED:[a-z_]+\*\*\*")
ENVIRONMENT_SECRET = "environment"
SHORTEST_ENVIRONMENT_SECRET = 8
SHORTEST_PLAIN_WORD = 16  # a variable that holds a plain word (PGPASSWORD=postgres) would mask that word wherever it stands
MAX_PASSES = 5  # a mask may lay open what was part of a longer word; two passes are usual
SCAN_BLOCK = 1 << 16  # bytes
SCAN_OVERLAP = 64  # bytes, more than the longest word that is looked for
LONG_RUN = b"x" * 20
ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}

# Names of the key layer: the whole name, or its end behind an underscore.
KEY_NAMES = frozenset(
    "token secret password passwd pwd passphrase authorization proxy_authorization cookie set_cookie api_key apikey x_api_key credential "
    "credentials auth dsn connection_string database_url private_key client_secret access_key secret_key".split()
)
KEY_ENDINGS = ("_token", "_secret", "_key", "_password", "_passwd", "_passphrase", "_credential", "_credentials", "_auth")


class RedactionPlan(NamedTuple):
    """All rules in their order, and by what a pass over the bytes of a text finds those that may apply: places in `rules`."""

    rules: tuple[RedactionRule, ...]
    by_word: dict[bytes, set[int]]
    by_start: dict[bytes, set[int]]
    starts: "list[re.Pattern[bytes]]"  # the keys of by_start, one pattern for each first letter, which `re` looks for fast
    user_info: set[int]
    word_table: bytes
    run_table: bytes


# --- Which rules may apply -----------------------------------------------------------


@lru_cache(1)
def redaction_plan() -> RedactionPlan:
    """The rules, made when the first text is looked at."""
    rules = redaction_rules()
    by_word: dict[bytes, set[int]] = {}
    by_start: dict[bytes, set[int]] = {}
    for place, rule in enumerate(rules):
        for start in rule.starts:
            by_start.setdefault(start.encode(), set()).add(place)
        for word in rule.words:
            for glue in ("", "n", "r", "t", "b", "f"):  # the letter of an escape before it: a line end in JSON is \\n
                by_word.setdefault((glue + word).encode(), set()).add(place)
    user_info = {place for place, rule in enumerate(rules) if not rule.words and not rule.starts}
    firsts = sorted({start[:1] for start in by_start})
    starts = [re.compile(b"|".join(start for start in by_start if start.startswith(first))) for first in firsts]
    is_letter = [chr(code).isalnum() and code < 128 for code in range(256)]
    words = bytes(ord(chr(code).lower()) if is_letter[code] else 32 for code in range(256))
    runs = bytes(120 if is_letter[code] or chr(code) in "_-." else 32 for code in range(256))
    return RedactionPlan(rules, by_word, by_start, starts, user_info, words, runs)


def rules_for(data: bytes) -> list[RedactionRule]:
    """The rules that may apply to *data*, a text or JSON in UTF-8: all that do, and sometimes one that does not."""
    rules, by_word, by_start, starts, user_info, word_table, run_table = redaction_plan()
    found: set[int] = set()
    for start in range(0, len(data), SCAN_BLOCK):
        block = data[start : start + SCAN_BLOCK + SCAN_OVERLAP] if len(data) > SCAN_BLOCK else data
        if b"\x1b" in block or (b"\\" in block and b"\\u00" in block):  # a control character, perhaps a colour, sticks to the next word
            block = re.sub(rb"(?:\\u00[01][0-9a-fA-F]|\x1b)(?:\[[0-9;]{0,8}m)?", b" ", block)
        words = block.translate(word_table).split()
        if not by_word.keys().isdisjoint(words):
            found.update(*(by_word[word] for word in by_word.keys() & set(words)))
        if LONG_RUN in block.translate(run_table):
            found.update(*(by_start[start] for pattern in starts for start in pattern.findall(block)))
        if b"@" in block:
            found |= user_info
    return [rules[place] for place in sorted(found)] if found else []


# --- Masking ---------------------------------------------------------------------------


def mask_of(family: str) -> str:
    """The text that stands in the place of a secret of *family*."""
    return f"***REDACTED:{family}***"


def masked_by(rule: RedactionRule, text: str, counts: dict[str, int]) -> str:
    """*text* with the secrets that *rule* finds masked, and counted in *counts*."""
    seen = text
    if rule.is_caseless:  # of the same length as the text, which lower() alone is not for every letter
        seen = text.lower() if text.isascii() else text.translate(ASCII_LOWER)
    search, find, mask = compiled(rule.pattern).search, rule.find, mask_of(rule.family)
    match = search(seen)
    parts: list[str] = []
    done = 0
    while match:
        start, end = find(match, text)
        if start < end and not (text.startswith("***", start) and MASK.fullmatch(text, start, end)):
            parts += (text[done:start], mask)
            done = end
        match = search(seen, end)
    if not parts:
        return text
    counts[rule.family] = counts.get(rule.family, 0) + len(parts) // 2
    return "".join(parts) + text[done:]


def mask_text(text: str, rules: list[RedactionRule], exact: Sequence[str], counts: dict[str, int]) -> str:
    """*text* masked by *rules* and of the values *exact*, longest first; what a mask lays open is masked as well."""
    for _ in range(MAX_PASSES):
        before = text
        for value in exact:
            if value in text:
                counts[ENVIRONMENT_SECRET] = counts.get(ENVIRONMENT_SECRET, 0) + text.count(value)
                text = text.replace(value, mask_of(ENVIRONMENT_SECRET))
        for rule in rules:
            text = masked_by(rule, text, counts)
        if text is before or text == before:
            break
        rules = rules_for(text.encode("utf-8", "surrogatepass"))
    return text


def redact_text(text: str, exact: Sequence[str] = ()) -> tuple[str, dict[str, int]]:
    """(*text* with every secret masked, {family: how many}); *exact* values are masked wherever they stand.

    >>> redact_text("user=ann password=hunter2")
    ('user=ann password=***REDACTED:named_secret***', {'named_secret': 1})
    """
    counts: dict[str, int] = {}
    return mask_text(text, rules_for(text.encode("utf-8", "surrogatepass")), exact, counts), counts


def redact_evidence(value: Any, exact: Sequence[str] = (), encoded: bytes = b"") -> tuple[Any, list[JsonObject]]:
    """(*value* with the secrets in its strings and keys masked, [{"pointer", "family", "count"}] in its order).

    Names of fields say nothing here. Whatever holds no secret is the same object as before. *encoded* is the value
    as JSON, if the caller has it. Pointers lead to the masked value: a masked key is named by its mask.
    """
    data = encoded or encode_compact(value).encode("utf-8", "surrogatepass")
    rules = rules_for(data)
    hot = [each for each in exact if encode_compact(each)[1:-1].encode("utf-8", "surrogatepass") in data]
    hits: list[JsonObject] = []
    together = "\n".join(texts_of(value)) if rules and not hot else ""
    if not hot and mask_text(together, rules, (), {}) == together:  # words alone, as in most texts about passwords
        return value, hits
    return masked_evidence(value, [], rules, hot, hits), hits


def texts_of(value: Any) -> list[str]:
    """All strings and keys in *value*, in no order."""
    texts: list[str] = []
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, dict):
            texts += item
            pending += item.values()
    return texts


def masked_evidence(value: Any, path: "list[str | int]", rules: list[RedactionRule], exact: Sequence[str], hits: list[JsonObject]) -> Any:
    """*value*, which stands at *path*, masked; each secret is noted in *hits*."""
    if isinstance(value, str):
        counts: dict[str, int] = {}
        masked = mask_text(value, rules, exact, counts)
        pointer = "".join(map(pointer_token, path)) if counts else ""
        hits += [{"pointer": pointer, "family": family, "count": count} for family, count in counts.items()]
        return masked
    if isinstance(value, list):
        items = [masked_evidence(item, [*path, index], rules, exact, hits) for index, item in enumerate(value)]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, dict):
        members: JsonObject = {}
        for key, item in value.items():
            name = masked_key(key, path, members, rules, exact, hits)
            members[name] = masked_evidence(item, [*path, name], rules, exact, hits)
        is_same = all(new is old and members[new] is value[old] for new, old in zip(members, value, strict=True))
        return value if is_same else members
    return value


def masked_key(
    key: str, path: "list[str | int]", members: JsonObject, rules: list[RedactionRule], exact: Sequence[str], hits: list[JsonObject]
) -> str:
    """*key* masked, with its place behind it where *members* has one of that name."""
    counts: dict[str, int] = {}
    masked = mask_text(key, rules, exact, counts)
    if not counts:
        return key
    name, place = masked, len(members)
    while name in members:
        place += 1
        name = f"{masked} ({place})"
    pointer = "".join(map(pointer_token, [*path, name]))
    hits += [{"pointer": pointer, "family": family, "count": count} for family, count in counts.items()]
    return name


# --- The key layer -----------------------------------------------------------------------


def is_secret_name(name: str) -> bool:
    """True when *name*, of a field, flag, header or variable, says that its value is a secret.

    >>> [name for name in ("apiKey", "X-Auth-Token", "input_tokens", "monkey") if is_secret_name(name)]
    ['apiKey', 'X-Auth-Token']
    """
    plain = re.sub(r"[-. ]", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).lower()
    return plain in KEY_NAMES or plain.endswith(KEY_ENDINGS)


def redact_all_layers(value: Any, exact: Sequence[str] = ()) -> Any:
    """*value* (JSON, bytes, tuples, sets) with both layers masked, as logs and headers need it; bytes become text."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return redact_text(value, exact)[0]
    if isinstance(value, Mapping):
        return {redact_text(str(key), exact)[0]: redacted_field(str(key), item, exact) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_all_layers(item, exact) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((redact_all_layers(item, exact) for item in value), key=str)
    return value


def redacted_field(name: str, value: Any, exact: Sequence[str]) -> Any:
    """The *value* of a field: a mask when *name* tells a secret and there is a value, whatever kind it is."""
    if value is None or not is_secret_name(name):
        return redact_all_layers(value, exact)
    return value if isinstance(value, str) and MASK.fullmatch(value) else mask_of(NAMED_SECRET)


def redact_arguments(argv: Sequence[str], exact: Sequence[str] = ()) -> list[str]:
    """The words of a command line with both layers masked: `--token X`, `--token=X`, `TOKEN=X`, `-H "X-Token: …"`, `-u name:X`.

    >>> redact_arguments(["agent", "--api-key", "abc", "-v"])
    ['agent', '--api-key', '***REDACTED:named_secret***', '-v']
    """
    shown: list[str] = []
    before = ""
    for word in argv:
        assigned = compiled(r"(?s)(-{0,2}([A-Za-z][\w.-]*)(?:=|:[ \t]?))(.+)").fullmatch(word)
        login = compiled(r"([^\s:/]+:)([^\s/]*[^\s/\d][^\s/]*)").fullmatch(word) if before in ("-u", "--user") else None
        is_value = before.startswith("-") and "=" not in before and is_secret_name(before.lstrip("-")) and not word.startswith("--")
        before = word
        if is_value:
            word = redacted_field("token", word, exact) if word else word
        elif login:
            word = login[1] + mask_of("basic_credentials")
        elif assigned and is_secret_name(assigned[2]) and "authorization" not in assigned[2].lower():
            word = assigned[1] + redacted_field("token", assigned[3], exact)
        shown.append(redact_text(word, exact)[0])
    return shown


def environment_secrets(environ: Mapping[str, str]) -> list[str]:
    """The values of the variables of *environ* whose names tell a secret, longest first.

    Left out are values under 8 characters, plain words under 16 letters, and those that a mask holds itself.
    """
    values = {value for name, value in environ.items() if name != "PWD" and is_secret_name(name)}
    long = {value for value in values if len(value) >= (SHORTEST_PLAIN_WORD if value.isalpha() else SHORTEST_ENVIRONMENT_SECRET)}
    masks = " ".join(map(mask_of, [*(rule.family for rule in redaction_plan().rules), "environment"])) if long else ""
    return sorted((value for value in long if value not in masks), key=lambda value: (-len(value), value))

# endregion

# region foundation/process.py
# =============================================================================
# Starting programs and heeding signals: the only door to processes.
#
# A program is started without a shell, in a session of its own, so that it and whatever it
# starts can be ended together. Its request is written while its output is read, so neither
# side ever waits for the other. What is kept of its output is bounded. When it takes too
# long, prints too much, or the user stops the run: TERM to its process group, two seconds,
# KILL. Whoever is left of the group after a good end is ended the same way.
#
# Limit: a process that leaves the group (setsid) is out of reach of a group signal. Those
# that still carry the environment entry *mark* are looked for in /proc after a program had
# to be ended; elsewhere than on Linux they stay.
# =============================================================================

TERM_SECONDS = 2.0  # between TERM and KILL
GRACE_SECONDS = 0.5  # for the end of the output after the program itself has ended
LOOK_SECONDS = 0.02  # between two looks at a group that is ending
KILLED_SECONDS = 5.0  # for the kernel to end what was killed; more only in uninterruptible waits
PIPE_BLOCK = 1 << 16  # what a pipe holds; larger reads allocate in vain

EXITED = "exited"
TIMEOUT = "timeout"
STOPPED = "stopped"
OVERFLOW = "overflow"


class CannotStart(Exception):
    """The program could not be started at all; the text says why."""


class Ended(NamedTuple):
    """How a program ended and what it printed.

    `end` is exited, timeout, stopped (by the user) or overflow (it printed more than allowed).
    `exit_code` is negative for a signal. `stderr` is the last part, `stderr_cut` the bytes before it.
    `seconds` is the time until it ended or had to be ended.
    """

    end: str
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    stderr_cut: int
    seconds: float


class StopSwitch:
    """Ends running programs from another thread or a signal handler: `request` gently, `kill` at once."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()  # readable for ever after the request, so that every poll wakes up
        self.is_requested = False
        self.running: set[int] = set()  # process groups

    def request(self) -> None:
        """Asks every program that runs to end, and those started later."""
        if not self.is_requested:
            self.is_requested = True
            os.write(self.writer, b"!")

    def kill(self) -> None:
        """Kills every program that runs."""
        import signal

        self.request()
        for group in list(self.running):
            signal_group(group, signal.SIGKILL)

    def close(self) -> None:
        """Gives the descriptors back."""
        os.close(self.reader)
        os.close(self.writer)


def signal_group(group: int, number: int) -> bool:
    """Sends signal *number* (0: none, only looks) to a process group; False when nobody is in it."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody who changed the user
        pass
    return True


def is_group_alive(group: int) -> bool:
    """True when a process of the group runs.

    One that has ended but that nobody has reaped does not count: an orphan is the init process's to reap, and
    those of containers take seconds over it, or never do it. Only /proc tells; elsewhere it counts.
    """
    if not signal_group(group, 0):
        return False
    states = [fields[0] for fields in process_fields() if fields[2] == b"%d" % group]
    return any(state not in (b"Z", b"X") for state in states) or not os.path.exists("/proc/self/stat")


def process_fields() -> Iterator[list[bytes]]:
    """[state, parent, group, …] of each process that /proc shows (proc(5), stat after the name)."""
    for name in process_numbers():
        with suppress(InputError):  # it has ended meanwhile
            yield read_bytes(f"/proc/{name}/stat").rpartition(b")")[2].split()


def process_numbers() -> list[str]:
    """The numbers of all processes; none where there is no /proc."""
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


@contextmanager
def heeding_signals(stop: StopSwitch) -> Iterator[None]:
    """While the block runs, the first SIGINT, SIGTERM or SIGHUP requests *stop* and the second kills.

    A signal that is ignored (nohup, a background job) stays ignored. Off the main thread nothing changes.
    """
    import signal
    import threading

    def on_signal(number: int, frame: object) -> None:
        if stop.is_requested:
            stop.kill()
        else:
            stop.request()

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            if signal.getsignal(number) is not signal.SIG_IGN:
                before.setdefault(number, signal.signal(number, on_signal))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def find_program(word: str, cwd: str) -> str | None:
    """The file that *word* starts from the folder *cwd*: by its path if it has one, else along PATH; None if there is none."""
    folders = [""] if "/" in word else os.get_exec_path()
    for folder in folders:
        path = os.path.join(cwd, folder, word)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def signal_name(number: int) -> str:
    """'signal 9 (SIGKILL)'."""
    import signal

    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal
        return f"signal {number}"


def run_program(
    command: Sequence[str],
    stdin: bytes = b"",
    *,
    cwd: str | None = None,
    environment: "dict[bytes, bytes] | None" = None,
    timeout_seconds: float = 60,
    stdout_limit: int = 1 << 20,
    stderr_limit: int = 1 << 16,
    stop: StopSwitch | None = None,
    mark: bytes = b"",
) -> Ended:
    """What became of *command*, which got *stdin* and ran until it ended or had to be ended.

    *mark* is an entry NAME=value of *environment* that no other program has. Raises CannotStart.
    """
    child = Child(command, stdin, cwd, environment, limits=(stdout_limit, stderr_limit), stop=stop)
    try:
        end = child.wait(child.started + timeout_seconds)
        seconds = (child.exited_at or monotonic_seconds()) - child.started
        is_clean = child.is_done()
        child.end_group()
        if mark and not is_clean:
            kill_marked(mark)
    except BaseException:  # an interrupt, where nobody heeds signals
        child.abandon()
        raise
    finally:
        child.close()
    code = child.process.returncode if end == EXITED else None
    stderr, cut = child.stderr_tail()
    return Ended(end, code, b"".join(child.chunks)[:stdout_limit], stderr, cut, seconds)


class Child:
    """One running program, its three pipes, and what was read of them so far."""

    def __init__(
        self,
        command: Sequence[str],
        stdin: bytes,
        cwd: str | None,
        environment: "dict[bytes, bytes] | None",
        *,
        limits: tuple[int, int],
        stop: StopSwitch | None,
    ) -> None:
        import select
        import subprocess

        pipe = subprocess.PIPE
        self.started = monotonic_seconds()
        try:
            self.process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, cwd=cwd, env=environment, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise CannotStart(getattr(error, "strerror", None) or str(error)) from None
        self.pid = self.process.pid
        self.stop = stop
        self.stdout_limit, self.stderr_limit = limits
        self.chunks: list[bytes] = []
        self.stdout_size = 0
        self.errors: list[bytes] = []  # the last chunks of standard error, from the left dropped
        self.stderr_size = 0
        self.stderr_kept = 0
        self.exited_at: float | None = None
        self.pending = memoryview(stdin)
        self.poll = select.poll()
        self.open: dict[int, IO[bytes]] = {}  # output pipes that have not ended
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            self.open[stream.fileno()] = stream
            self.poll.register(stream.fileno(), select.POLLIN)
        self.stdout_descriptor = next(iter(self.open))
        self.pidfd = open_pidfd(self.pid)
        if self.pidfd >= 0:
            self.poll.register(self.pidfd, select.POLLIN)
        if stop:
            stop.running.add(self.pid)
            self.poll.register(stop.reader, select.POLLIN)
        self.stdin: IO[bytes] | None = self.process.stdin
        self.feed()
        if self.stdin:
            self.poll.register(self.stdin.fileno(), select.POLLOUT)

    def is_done(self) -> bool:
        """True when the program has ended and so has its output."""
        return self.exited_at is not None and not self.open

    def wait(self, deadline: float, is_ending: bool = False) -> str:
        """Serves the pipes until the program and its output have ended, or something forces an end; says which."""
        while not self.is_done():
            limit = deadline
            if self.exited_at is not None and not is_ending:
                limit = min(deadline, self.exited_at + GRACE_SECONDS)
            left = min(limit - monotonic_seconds(), 3600)  # poll counts milliseconds in 32 bits
            if left <= 0:
                return TIMEOUT if self.exited_at is None else EXITED
            if self.pidfd < 0:
                left = min(left, 0.05 if self.open else 0.002)
            for descriptor, _ in self.poll.poll(left * 1000 + 0.5):
                self.serve(descriptor)
            if self.pidfd < 0:
                self.look_for_exit()
            if not is_ending and self.stdout_size > self.stdout_limit:
                return OVERFLOW
            if not is_ending and self.stop and self.stop.is_requested:
                return STOPPED
        return EXITED

    def serve(self, descriptor: int) -> None:
        """Does what *descriptor* is ready for."""
        if descriptor in self.open:
            data = os.read(descriptor, PIPE_BLOCK)
            if not data:
                self.poll.unregister(descriptor)
                self.open.pop(descriptor).close()
            elif descriptor == self.stdout_descriptor:
                self.keep_output(data)
            else:
                self.keep_error(data)
        elif descriptor == self.pidfd:
            self.exited_at = monotonic_seconds()
            self.poll.unregister(descriptor)
        elif self.stop and descriptor == self.stop.reader:
            self.poll.unregister(descriptor)
        else:
            self.feed()
            if not self.stdin:
                self.poll.unregister(descriptor)

    def feed(self) -> None:
        """Writes what the program takes of its request; closes its standard input after the last byte, or when it has closed it."""
        if self.stdin is None:
            return
        descriptor = self.stdin.fileno()
        os.set_blocking(descriptor, False)
        try:
            while self.pending:
                self.pending = self.pending[os.write(descriptor, self.pending) :]
        except BlockingIOError:
            return
        except OSError:  # EPIPE: it does not want to know
            pass
        self.stdin.close()
        self.stdin = None

    def keep_output(self, data: bytes) -> None:
        """Keeps *data* unless the limit has been passed already."""
        if self.stdout_size <= self.stdout_limit:
            self.chunks.append(data)
            self.stdout_size += len(data)

    def keep_error(self, data: bytes) -> None:
        """Keeps *data* and drops the oldest chunks that the tail does not need."""
        self.errors.append(data)
        self.stderr_size += len(data)
        self.stderr_kept += len(data)
        while self.stderr_kept - len(self.errors[0]) >= self.stderr_limit:
            self.stderr_kept -= len(self.errors.pop(0))

    def stderr_tail(self) -> tuple[bytes, int]:
        """(the last bytes of standard error, how many were cut off before them)."""
        tail = b"".join(self.errors)[-self.stderr_limit :]
        return tail, self.stderr_size - len(tail)

    def look_for_exit(self) -> None:
        """Notes the exit where the kernel has no descriptor for it; leaves the process unreaped where that is possible."""
        if self.exited_at is None:
            if hasattr(os, "waitid"):
                has_exited = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            else:
                has_exited = self.process.poll() is not None
            self.exited_at = monotonic_seconds() if has_exited else None

    def end_group(self) -> None:
        """Leaves nobody of the process group alive: TERM, two seconds, KILL.

        The first signal is sent before the leader is reaped, since its number is nobody else's until then.
        """
        import signal

        signal_group(self.pid, signal.SIGTERM)
        deadline = monotonic_seconds() + TERM_SECONDS
        while monotonic_seconds() < deadline:
            self.wait(min(deadline, monotonic_seconds() + LOOK_SECONDS), is_ending=True)
            if self.reap() and not is_group_alive(self.pid):
                return
            if self.is_done():
                time.sleep(LOOK_SECONDS)
        signal_group(self.pid, signal.SIGKILL)
        self.wait(monotonic_seconds() + (KILLED_SECONDS if self.exited_at is None else LOOK_SECONDS), is_ending=True)
        self.reap()

    def abandon(self) -> None:
        """Kills the process group at once."""
        import signal

        signal_group(self.pid, signal.SIGKILL)
        self.process.wait()

    def reap(self) -> bool:
        """Takes the exit status of the program; False while it has not ended."""
        if self.exited_at is None:
            return False
        if self.stop:
            self.stop.running.discard(self.pid)
        self.process.wait()
        return True

    def close(self) -> None:
        """Closes what is still open."""
        for stream in (*self.open.values(), self.stdin):
            if stream is not None:
                stream.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
        if self.stop:
            self.stop.running.discard(self.pid)


def open_pidfd(pid: int) -> int:
    """A descriptor that becomes readable when process *pid* ends; -1 where there is no such thing (not Linux, or before 5.3)."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def kill_marked(mark: bytes) -> None:
    """Kills each process of this user whose environment holds the entry *mark*; only where there is /proc."""
    import signal

    pinned: Any = getattr(signal, "pidfd_send_signal", None)
    for name in process_numbers() if pinned else ():
        pidfd = open_pidfd(int(name))  # first, so that what is killed is what was looked at
        if pidfd < 0:
            continue
        try:
            if int(name) != os.getpid() and mark in read_bytes(f"/proc/{name}/environ").split(b"\0"):
                pinned(pidfd, signal.SIGKILL)
        except (InputError, OSError):
            pass  # another user's, or gone
        finally:
            os.close(pidfd)

# endregion

# region foundation/progress.py
# =============================================================================
# Progress on standard error: a changing line on a terminal, else a line per 10 %.
#
#     run candidate: 37 of 100, 4.2/s, 15.0 s left, 2 errors
# =============================================================================

PROGRESS_MODES = ("auto", "plain", "none")
REDRAW_SECONDS = 0.1


class Progress:
    """Shows how far *total* things are; a context manager whose `report` may be called as often as one likes.

    *mode* is auto (a changing line if *stream* is a terminal, else plain), plain or none. Text is ASCII.
    """

    def __init__(self, label: str, total: int, mode: str = "auto", stream: TextIO | None = None) -> None:
        self.label = label
        self.total = total
        self.stream = stream or sys.stderr
        self.is_live = mode == "auto" and self.stream.isatty()
        self.is_shown = mode != "none" and total > 0
        self.started = monotonic_seconds()
        self.drawn_at = 0.0
        self.tenths = 0

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if self.is_live and self.drawn_at:
            self.write("\r\x1b[K")

    def report(self, done: int, errors: int = 0) -> None:
        """Shows that *done* are done, *errors* of them with an error, if it is time to."""
        if not self.is_shown:
            return
        self.total = max(self.total, done)
        if not self.is_live:
            if done * 10 // self.total > self.tenths:
                self.tenths = done * 10 // self.total
                self.write(self.text(done, errors) + "\n")
        elif monotonic_seconds() - self.drawn_at >= REDRAW_SECONDS:
            self.drawn_at = monotonic_seconds()
            self.write(f"\r{self.text(done, errors)[: self.columns() - 1]}\x1b[K")

    def text(self, done: int, errors: int) -> str:
        """'run candidate: 37 of 100, 4.2/s, 15.0 s left, 2 errors'; what cannot be known or is nought is left out."""
        seconds = monotonic_seconds() - self.started
        parts = [f"{self.label}: {done:,} of {self.total:,}"]
        if done and seconds > 0:
            parts.append(f"{done / seconds:.1f}/s")
            if done < self.total:
                parts.append(f"{duration((self.total - done) * seconds / done)} left")
        return ", ".join([*parts, counted(errors, "error")] if errors else parts)

    def columns(self) -> int:
        """Width of the terminal; 80 when it does not say."""
        try:
            return os.get_terminal_size(self.stream.fileno()).columns or 80
        except (OSError, ValueError):
            return 80

    def write(self, text: str) -> None:
        """Writes *text*; a closed terminal ends the showing, never the work."""
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            self.is_shown = False

# endregion

# region stats/intervals.py
# =============================================================================
# Quantiles and tails of normal and Student, intervals for rates and paired rates.
# =============================================================================

Z_95 = 1.959963984540054  # the normal quantile of 0.975

# Why a quantity is None, in words for people; every function of stats/ names the codes it uses.
REASONS = {
    "no_valid_observations": "no trial has a verdict",
    "no_comparable_cases": "no case has a verdict on both sides",
    "no_valid_baseline": "no trial of the baseline has a verdict",
    "no_valid_candidate": "no trial of the candidate has a verdict",
    "no_valid_observation": "no trial of the case has a verdict",
    "fewer_than_two_comparable_cases": "fewer than two cases can be compared",
    "no_discordant_pairs": "no case came out differently on the two sides",
    "fewer_trials_than_k": "fewer trials have a verdict than are needed",
    "no_common_cases": "no case was judged by both",
    "no_expected_disagreement": "everybody always said the same, so agreement by chance is total",
    "no_pairable_values": "no case was judged twice",
    "no_values": "there is no value",
    "insufficient_evidence": "the evidence does not decide",
    "degenerate_resamples": "more than 5 % of the resamples leave the quantity undefined",
    "no_upper_bound": "too few values for an upper limit",
}


class Interval(NamedTuple):
    """Lower and upper limit, both inside [0, 1] for a rate."""

    low: float
    high: float


# --- Normal and Student ----------------------------------------------------------------


def normal_point(probability: float) -> float:
    """The x that a standard normal value stays below with *probability* (above 0, below 1).

    >>> round(normal_point(0.8), 9)
    0.841621234
    """
    if probability == 0.975:
        return Z_95
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def normal_quantile(confidence: float) -> float:
    """The z of a two-sided interval at *confidence*, e.g. 1.959964 for 0.95."""
    return Z_95 if confidence == 0.95 else normal_point(1 - (1 - confidence) / 2)


def normal_tail(x: float) -> float:
    """The probability that a standard normal value exceeds *x*, also far out where 1 - cdf would be 0.

    >>> f"{normal_tail(9):.4e}"
    '1.1286e-19'
    """
    return math.erfc(x / math.sqrt(2)) / 2


def beta_share(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b) for a, b > 0 and x in [0, 1].

    Source: W. H. Press et al., Numerical Recipes, 3rd ed. (2007), 6.4: continued fraction by the modified
    Lentz method. I_0.5(2, 3) is 11/16:

    >>> round(beta_share(2, 3, 0.5), 12)
    0.6875
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny = 1e-300
    numerator, denominator = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    value = denominator
    for m in range(1, 10_000):
        for step in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            denominator = 1 / ((1 + step * denominator) or tiny)
            numerator = (1 + step / numerator) or tiny
            value *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-16:
            break
    return front * value


def student_tail(t: float, freedom: float) -> float:
    """The probability that a Student value with *freedom* degrees exceeds *t*.

    Source: M. Abramowitz, I. Stegun (1964), 26.7.1. With one degree it is a Cauchy value, above 1 in a quarter:

    >>> round(student_tail(1, 1), 12)
    0.25
    """
    tail = beta_share(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return tail if t >= 0 else 1 - tail


@lru_cache(maxsize=256)
def student_point(probability: float, freedom: float) -> float:
    """The t that a Student value with *freedom* degrees stays below with *probability* (0.5 to below 1).

    R's qt(0.975, 3) is 3.182446:

    >>> round(student_point(0.975, 3), 6)
    3.182446
    """
    wanted = 1 - probability
    low, high = 0.0, 2.0
    while student_tail(high, freedom) > wanted:
        low, high = high, high * 2
    return bisected(lambda t: student_tail(t, freedom) > wanted, low, high)


def bisected(is_before: Callable[[float], bool], low: float, high: float) -> float:
    """Where *is_before* turns from true to false between *low* and *high*, as near as floats can tell."""
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return middle
        if is_before(middle):
            low = middle
        else:
            high = middle


# --- Rates -----------------------------------------------------------------------------


def wilson_interval(passed: float, trials: float, confidence: float = 0.95) -> Interval | None:
    """The score interval for *passed* of *trials*; *trials* need not be whole. None for no trials (`no_valid_observations`).

    Source: E. B. Wilson (1927), Probable inference, the law of succession, and statistical inference,
    JASA 22, 209-212. R's prop.test(8, 10, correct = FALSE) gives 0.4901625, 0.9433178:

    >>> [round(limit, 7) for limit in wilson_interval(8, 10)]
    [0.4901625, 0.9433178]
    >>> wilson_interval(0, 0) is None
    True
    """
    if trials <= 0:
        return None
    z = normal_quantile(confidence)
    rate = passed / trials
    spread = 1 + z * z / trials
    centre = (rate + z * z / (2 * trials)) / spread
    half = z * math.sqrt(max(0.0, rate * (1 - rate) / trials) + z * z / (4 * trials * trials)) / spread
    low = 0.0 if passed <= 0 else max(0.0, centre - half)
    high = 1.0 if passed >= trials else min(1.0, centre + half)
    return Interval(low, high)


def clopper_pearson_interval(passed: int, trials: int, confidence: float = 0.95) -> Interval | None:
    """The exact binomial interval for *passed* of *trials*. None for no trials (`no_valid_observations`).

    Source: C. J. Clopper, E. S. Pearson (1934), The use of confidence or fiducial limits illustrated in the case
    of the binomial, Biometrika 26, 404-413. R's binom.test(4, 9) gives 0.1369957, 0.7879915:

    >>> [round(limit, 7) for limit in clopper_pearson_interval(4, 9)]
    [0.1369957, 0.7879915]
    """
    if trials <= 0:
        return None
    tail = (1 - confidence) / 2
    low = 0.0 if passed <= 0 else bisected(lambda x: beta_share(passed, trials - passed + 1, x) < tail, 0.0, 1.0)
    high = 1.0 if passed >= trials else bisected(lambda x: beta_share(trials - passed, passed + 1, 1 - x) > tail, 0.0, 1.0)
    return Interval(low, high)


def newcombe_interval(both: int, first: int, second: int, neither: int, confidence: float = 0.95) -> Interval | None:
    """Square-and-add interval for the rate of the first minus that of the second of two paired series.

    The counts are those of pairs in which both, only the first, only the second, neither passed. None for no
    pair (`no_comparable_cases`). Source: R. G. Newcombe (1998), Improved confidence intervals for the difference
    between binomial proportions based on paired data, Statistics in Medicine 17, 2635-2650, method 10.

    >>> [round(limit, 6) for limit in newcombe_interval(12, 6, 2, 10)]
    [-0.054043, 0.304621]
    """
    n = both + first + second + neither
    passed = both + first, both + second
    limits = wilson_interval(passed[0], n, confidence), wilson_interval(passed[1], n, confidence)
    if limits[0] is None or limits[1] is None:
        return None
    (low1, high1), (low2, high2) = limits[0], limits[1]
    rate1, rate2 = passed[0] / n, passed[1] / n
    margins = passed[0] * (n - passed[0]) * passed[1] * (n - passed[1])
    cross = both * neither - first * second
    phi = (max(cross - n / 2, 0) if cross > 0 else cross) / math.sqrt(margins) if margins else 0.0

    def reach(below: float, above: float) -> float:
        return math.sqrt(max(0.0, below * below - 2 * phi * below * above + above * above))

    difference = rate1 - rate2
    return Interval(difference - reach(rate1 - low1, high2 - rate2), difference + reach(high1 - rate1, rate2 - low2))


def effective_sample_size(case_values: list[tuple[int, int]]) -> float | None:
    """How many independent trials the repeated cases are worth; *case_values* is [(passed, valid trials)].

    None for no case with a valid trial (`no_valid_observations`).

    >>> effective_sample_size([(1, 1), (0, 1), (1, 1)])
    3.0
    """
    known = [(passed / valid, valid) for passed, valid in case_values if valid]
    return effective_size([value for value, _ in known], sum(valid for _, valid in known)) if known else None


def effective_size(values: list[float], trials: int) -> float:
    """How many independent trials units with these *values* in [0, 1] are worth, which rest on *trials* in all.

    Adds one imaginary unit that always passes and one that always fails, so that it never divides by zero and
    equals the number of units when each always comes out the same. The design effect of L. Kish (1965), Survey
    Sampling, section 5.4, on the smoothed variance of the values. Three units at one half, four trials each:

    >>> round(effective_size([0.5, 0.5, 0.5], 12), 9)
    7.5
    """
    n = len(values)
    mean = (math.fsum(values) + 1) / (n + 2)
    variance = (math.fsum(value * value for value in values) + 1) / (n + 2) - mean * mean
    if variance <= 0:
        return float(trials)
    # When every value is 0 or 1 the variance is mean (1 - mean) up to rounding; n is exact then.
    if all(value in (0.0, 1.0) for value in values):
        return float(n)
    return float(min(max(n * mean * (1 - mean) / variance, n), trials))

# endregion

# region stats/aggregates.py
# =============================================================================
# Means, percentiles, rates over cases, pass^k, flaky, precision; None where nothing is.
# =============================================================================


class PassRate(NamedTuple):
    """The pass rate of a suite: exact `rate`, `pooled` rate and bounds, Wilson limits on `n_eff`, and their counts.

    `trial_noise_se` is the standard error if only these cases mattered; it never replaces the interval.
    """

    rate: "Fraction | None"
    pooled: "Fraction | None"
    cases: int
    cases_without_valid: int
    trials: int
    excluded: int
    n_eff: float | None
    interval: Interval | None
    bound_if_excluded_fail: "Fraction | None"
    bound_if_excluded_pass: "Fraction | None"
    trial_noise_se: float | None
    reason: str | None


class Summary(NamedTuple):
    """A summary of values: `value`, how many it rests on, how many were left out, and the reason when it is None."""

    value: float | None
    n: int
    excluded: int
    reason: str | None


def mean(values: list[float]) -> float | None:
    """The arithmetic mean of *values*, whatever their order; None for none (`no_values`).

    >>> mean([1.5e308, 1.7e308])
    1.6e+308
    """
    if not values:
        return None
    try:
        return math.fsum(values) / len(values)
    except OverflowError:  # the sum is beyond a double, the mean of doubles never is
        return math.fsum(value / len(values) for value in values)


def median(values: list[float]) -> float | None:
    """The middle of *values* or the mean of the two middle ones; None for none (`no_values`).

    >>> median([3.0, 1.0, 2.0, 10.0])
    2.5
    """
    ordered = sorted(values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else mean(ordered[middle - 1 : middle + 1])


def percentile(values: Iterable[float | None], percent: float) -> Summary:
    """The *percent*-th percentile (0 to 100) of the finite values, by linear interpolation; others are counted.

    The rule is R's type 7 and numpy's default: R. J. Hyndman, Y. Fan (1996), Sample quantiles in statistical
    packages, The American Statistician 50, 361-365. No value gives None (`no_values`). Raises ValueError for a
    *percent* outside 0 to 100. numpy.percentile(range(1, 21), 95) is 19.05:

    >>> percentile(range(1, 21), 95)
    Summary(value=19.05, n=20, excluded=0, reason=None)
    """
    if not 0 <= percent <= 100:
        raise ValueError(f"a percentile lies between 0 and 100, not at {percent}")
    given = list(values)
    ordered = sorted(value for value in given if value is not None and math.isfinite(value))
    left_out = len(given) - len(ordered)
    if not ordered:
        return Summary(None, 0, left_out, "no_values")
    place = (len(ordered) - 1) * percent / 100
    below = math.floor(place)
    low, high, share = ordered[below], ordered[min(below + 1, len(ordered) - 1)], place - below
    # From the nearer end, so that both ends are hit exactly.
    value = high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share
    return Summary(float(value), len(ordered), left_out, None)


def quantile_ranks(n: int, quantile: float, confidence: float = 0.95) -> tuple[int | None, int | None]:
    """Places (from 0) in *n* sorted values that bracket the *quantile* (0 to 1) whatever their distribution.

    None where no value will do: the 95th percentile has an upper limit only from 72 values on (`no_upper_bound`).
    Source: W. J. Conover (1999), Practical Nonparametric Statistics, 3rd ed., 3.2. For the median of 15 values
    he gives the 4th and the 12th:

    >>> quantile_ranks(15, 0.5)
    (3, 11)
    """
    tail = (1 - confidence) / 2
    below = 0.0  # P(Bin(n, quantile) <= k)
    low, high = None, None
    for k in range(n + 1):
        logarithm = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        below += math.exp(logarithm + k * math.log(quantile) + (n - k) * math.log1p(-quantile)) if 0 < quantile < 1 else 0.0
        if low is None and below >= tail - 1e-12:
            low = k
        if 1 - below <= tail + 1e-12:
            high = k
            break
    return (low - 1 if low else None), (high if high is not None and high < n else None)


def case_weighted_rate(case_values: list[tuple[int, int]]) -> "Fraction | None":
    """The mean over cases of passed / valid, exact; *case_values* is [(passed, valid trials)].

    None for no valid trial (`no_valid_observations`).

    >>> str(case_weighted_rate([(1, 1), (1, 2), (0, 0)]))
    '3/4'
    """
    from fractions import Fraction

    # Adding by denominator first keeps 10,000 cases to a handful of fraction additions.
    by_valid: dict[int, int] = {}
    cases = 0
    for passed, valid in case_values:
        if valid:
            by_valid[valid] = by_valid.get(valid, 0) + passed
            cases += 1
    return sum((Fraction(passed, valid) for valid, passed in by_valid.items()), Fraction(0)) / cases if cases else None


def pass_rate(cases: list[tuple[int, int, int]], confidence: float = 0.95) -> PassRate:
    """The pass rate of *cases* [(passed, valid trials, trials)] with everything that should be printed beside it.

    The bounds count each excluded trial as failed, as passed. Without a valid trial everything is None
    (`no_valid_observations`); `trial_noise_se` is None too when a case has one valid trial only.

    >>> found = pass_rate([(2, 3, 3), (0, 2, 3), (3, 3, 3)])
    >>> str(found.rate), round(found.n_eff, 9), round(found.interval.low, 9)
    ('5/9', 3.652173913, 0.17016393)
    """
    from fractions import Fraction

    known = [(passed, valid) for passed, valid, _ in cases if valid]
    tried = [each for each in cases if each[2]]
    trials = sum(valid for _, valid in known)
    excluded = sum(planned for _, _, planned in tried) - trials
    rate, n_eff = case_weighted_rate(known), effective_sample_size(known)
    if rate is None or n_eff is None:
        return PassRate(None, None, 0, len(cases), 0, excluded, None, None, None, None, None, "no_valid_observations")
    noise = None
    if all(valid > 1 for _, valid in known):
        noise = math.sqrt(math.fsum(passed * (valid - passed) / (valid * valid * (valid - 1)) for passed, valid in known)) / len(known)
    return PassRate(
        rate,
        Fraction(sum(passed for passed, _ in known), trials),
        len(known),
        len(cases) - len(known),
        trials,
        excluded,
        n_eff,
        wilson_interval(float(rate) * n_eff, n_eff, confidence),
        case_weighted_rate([(passed, planned) for passed, _, planned in tried]),
        case_weighted_rate([(passed + planned - valid, planned) for passed, valid, planned in tried]),
        noise,
        None,
    )


# --- Repetitions -----------------------------------------------------------------------


def pass_at_k(case_values: list[tuple[int, int]], k: int) -> "tuple[Fraction | None, int]":
    """(pass@k over the cases with at least k valid trials, how many cases were left out).

    pass@k of a case is 1 - C(failed, k) / C(valid, k): the chance that at least one of k of its trials, drawn
    without replacement, passes. Source: M. Chen et al. (2021), Evaluating large language models trained on code,
    equation 1. None when every case has fewer (`fewer_trials_than_k`).

    >>> pass_at_k([(1, 4)], 2)
    (Fraction(1, 2), 0)
    """
    value, left_out = pass_hat_k([(valid - passed, valid) for passed, valid in case_values], k)
    return (None if value is None else 1 - value), left_out


def pass_hat_k(case_values: list[tuple[int, int]], k: int) -> "tuple[Fraction | None, int]":
    """(pass^k over the cases with at least k valid trials, how many cases were left out).

    pass^k of a case is C(passed, k) / C(valid, k): the chance that k of its trials, drawn without
    replacement, all pass. Source: S. Yao et al. (2024), tau-bench, section 5. None when every case has
    fewer (`fewer_trials_than_k`).

    >>> pass_hat_k([(2, 4), (4, 4), (1, 1)], 2)
    (Fraction(7, 12), 1)
    """
    from fractions import Fraction

    usable = Counter((passed, valid) for passed, valid in case_values if valid >= k)
    if not usable:
        return None, len(case_values)
    n = sum(usable.values())
    total = sum((times * Fraction(math.comb(passed, k), math.comb(valid, k)) for (passed, valid), times in usable.items()), Fraction(0))
    return total / n, len(case_values) - n


def stability(passed: int, valid: int) -> str:
    """'flaky' when the valid trials hold a pass and a fail, else 'stable_pass' or 'stable_fail'; 'unknown' below two trials.

    Stable is weak evidence: a case that passes nine times in ten shows in five trials as flaky only 41 % of the time.

    >>> stability(2, 3), stability(1, 1)
    ('flaky', 'unknown')
    """
    return "unknown" if valid < 2 else "stable_fail" if not passed else "stable_pass" if passed == valid else "flaky"


# --- Classification --------------------------------------------------------------------


class Precision(NamedTuple):
    """Precision, recall and F; None where the denominator is 0 (`no_values`)."""

    precision: float | None
    recall: float | None
    f: float | None


def precision_recall(hits: int, false_alarms: int, misses: int, beta: float = 1.0) -> Precision:
    """Precision, recall and F-*beta* of counts that were added up over all cases.

    Source: C. J. van Rijsbergen (1979), Information Retrieval, 2nd ed., chapter 7. F may be 0 while precision is None.

    >>> precision_recall(6, 2, 1).f
    0.8
    """
    weight = beta * beta
    whole = (1 + weight) * hits + weight * misses + false_alarms
    return Precision(
        hits / (hits + false_alarms) if hits + false_alarms else None,
        hits / (hits + misses) if hits + misses else None,
        (1 + weight) * hits / whole if whole else None,
    )

# endregion

# region stats/lattice.py
# =============================================================================
# The exact bootstrap law of a mean: limits, P(better), paired cases.
#
# Resampling n cases with replacement and averaging gives a sum on a lattice, whose law is
# known without drawing: it is the n-th power of the characteristic function of the values,
# inverted by a finite Fourier sum. So there is no seed and no Monte Carlo error, and the
# limits are values that the mean can take.
# =============================================================================

Counts = dict["Fraction", int]  # how often each value occurs

TAIL = 40.0  # what lies outside the window has at most e^-40 on either side
NEGLIGIBLE = -46.0  # logarithm of a modulus that changes no digit
TIE = 1e-12  # probabilities nearer than this are equal, so that ties do not hang on rounding
CHERNOFF_STEPS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50)
MINIMUM_INFORMATIVE = 12  # below, the plus-two interval widens the reported one
EXACT_WORK = 3_000_000  # frequencies × distinct values, and
EXACT_SIZE = 250_000  # points of the window, up to which nothing is rounded: about 0.3 s and 16 MB
Terms = list[tuple[int, float, float]]


def spread_of(points: list[tuple[int, int]]) -> float:
    """The standard deviation, with divisor n, of *points* [(value, count)]."""
    n = sum(times for _, times in points)
    centre = sum(place * times for place, times in points) / n
    return math.sqrt(math.fsum(times * (place - centre) ** 2 for place, times in points) / n)


class FourierLaw:
    """The law of an integer sum inside the window low..low+size-1, from its Fourier terms (j, real, imaginary)."""

    def __init__(self, low: int, size: int, terms: Terms) -> None:
        self.low, self.size = low, size
        step = math.pi / size
        # A frequency and its mirror image count twice; the middle one of an even size has none.
        self.terms = [(j, (1 if 2 * j == size else 2) / math.sin(step * j), real, imaginary) for j, real, imaginary in terms]

    def at_most(self, total: int) -> float:
        """The probability that the sum is at most *total*; 0 and 1 where floats cannot tell it from them (1e-12)."""
        reach, size = total - self.low + 1, self.size
        if reach <= 0 or reach >= size:
            return float(reach > 0)
        step = math.pi / size
        parts = [float(reach)]
        for j, weight, real, imaginary in self.terms:
            angle = step * (j * (reach - 1) % (2 * size))
            parts.append(weight * (real * math.cos(angle) + imaginary * math.sin(angle)) * math.sin(step * (j * reach % (2 * size))))
        share = math.fsum(parts) / size
        return 0.0 if share < TIE else 1.0 if share > 1 - TIE else share


def lattice_law(points: list[tuple[int, int]], n: int) -> FourierLaw:
    """The law of the sum of *n* draws with replacement from *points* [(value from 0, count)], which hold n values."""
    total = sum(value * count for value, count in points)
    mean = total / n
    sd = spread_of(points) * math.sqrt(n)
    span = points[-1][0]

    def reach(sign: int) -> int:
        """How far from the expected sum the window goes, by the best of several Chernoff bounds."""
        best = math.inf
        for step in CHERNOFF_STEPS:
            theta = step / sd
            exponents = [(theta * sign * (value - mean), count) for value, count in points]
            largest = max(exponent for exponent, _ in exponents)
            moment = largest + math.log(math.fsum(count * math.exp(exponent - largest) for exponent, count in exponents) / n)
            best = min(best, (n * moment + TAIL) / theta)
        return math.ceil(best)

    low, high = max(0, total - reach(-1)), min(n * span, total + reach(1))
    size = high - low + 1
    angle = 2 * math.pi / size
    cosines, sines = [math.cos(angle * k) for k in range(size)], [math.sin(angle * k) for k in range(size)]
    shares = [(value, count / n) for value, count in points]
    terms: Terms = []
    for j in range(1, size // 2 + 1):
        real = imaginary = 0.0
        for value, share in shares:
            place = value * j % size
            real += share * cosines[place]
            imaginary += share * sines[place]
        modulus = math.hypot(real, imaginary)
        logarithm = n * math.log(modulus) if modulus else -math.inf
        # Data that nearly lie on a coarser lattice revive at higher frequencies, so all are looked at.
        if logarithm >= NEGLIGIBLE:
            phase = n * math.atan2(imaginary, real) - angle * (j * low % size)
            terms.append((j, math.exp(logarithm) * math.cos(phase), math.exp(logarithm) * math.sin(phase)))
    return FourierLaw(low, size, terms)


def grid_steps(n: int) -> int:
    """Into how many steps the standard deviation of *n* values is divided where they are rounded."""
    return min(max(math.ceil(450 / math.sqrt(n)), 8), 64)


class ResampledMean:
    """The bootstrap law of the mean of *counts* {value: how often}; `n` values, at least one.

    B. Efron (1979), Bootstrap methods, Annals of Statistics 7, 1-26, in the limit of infinitely many resamples.
    Exact where the values lie on a lattice that can be summed over (`is_exact`). Otherwise they are rounded to a grid of
    1/8 to 1/64 of their standard deviation: less than 1 % of the standard error of the mean.
    For the values 0, 1, 2 the mean of three draws is above 1 in 10 of 27:

    >>> from fractions import Fraction
    >>> law = ResampledMean({Fraction(0): 1, Fraction(1): 1, Fraction(2): 1})
    >>> round(law.above(Fraction(1)) * 27, 9)
    10.0
    """

    def __init__(self, counts: Counts) -> None:
        from fractions import Fraction

        self.n = n = sum(counts.values())
        values = sorted(counts)
        common = math.lcm(*(value.denominator for value in values))
        points = [(value.numerator * (common // value.denominator), counts[value]) for value in values]
        step = math.gcd(*(place - points[0][0] for place, _ in points)) or 1
        points = [((place - points[0][0]) // step, times) for place, times in points]
        self.lowest, self.step = values[0], Fraction(step, common * n)  # the mean is lowest + step × sum
        sd = spread_of(points)
        size = 18 * sd * math.sqrt(n)  # of the window, roughly
        self.is_exact = size / 2 * len(points) <= EXACT_WORK and size <= EXACT_SIZE
        if not self.is_exact:
            width = sd / grid_steps(n)
            rounded: dict[int, int] = {}
            for place, times in points:
                rounded[round(place / width)] = rounded.get(round(place / width), 0) + times
            first = min(rounded)
            total = sum(place * times for place, times in points)
            points = [(place - first, rounded[place]) for place in sorted(rounded)]
            # Mean and standard deviation stay those of the values themselves.
            scale = self.step * Fraction(sd / spread_of(points))
            self.lowest, self.step = self.lowest + self.step * total - scale * sum(place * times for place, times in points), scale
        self.law = lattice_law(points, n) if len(points) > 1 else None

    def at_most(self, total: int) -> float:
        """The probability that the lattice sum is at most *total*."""
        return self.law.at_most(total) if self.law else float(total >= 0)

    def above(self, value: "Fraction") -> float:
        """The probability that the resampled mean exceeds *value*."""
        return 1 - self.at_most(math.floor((value - self.lowest) / self.step))

    def at(self, value: "Fraction") -> float:
        """The probability that the resampled mean is exactly *value*; 0 where the law is rounded."""
        place = (value - self.lowest) / self.step
        if place.denominator != 1 or not self.is_exact:
            return 0.0
        return max(0.0, self.at_most(int(place)) - self.at_most(int(place) - 1))

    def limit(self, tail: float, *, is_upper: bool) -> "Fraction":
        """The attainable mean with at most *tail* beyond it: the largest such below, the smallest such above."""
        low, high = (self.law.low - 1, self.law.low + self.law.size - 1) if self.law else (-1, 0)
        # The place where P(sum <= k) first exceeds the tail, or first leaves no more than the tail above.
        while high - low > 1:
            middle = (low + high) // 2
            share = self.at_most(middle)
            if (1 - share <= tail + TIE) if is_upper else (share > tail + TIE):
                high = middle
            else:
                low = middle
        return self.lowest + self.step * high

    def limits(self, tail: float) -> Interval:
        """Both limits, as floats."""
        return Interval(float(self.limit(tail, is_upper=False)), float(self.limit(tail, is_upper=True)))


def expanded_tail(n: int, confidence: float = 0.95) -> float:
    """The tail level at which the percentile interval of *n* ≥ 2 values is as wide as Student's.

    Source: T. C. Hesterberg (2015), What teachers should know about the bootstrap, The American Statistician 69,
    371-386, section 5.3. It undoes the divisor n and the normal tails: 0.00095 for 5 values, 0.0159 for 20.

    >>> round(expanded_tail(5), 5), round(expanded_tail(20), 4)
    (0.00095, 0.0159)
    """
    return normal_tail(math.sqrt(n / (n - 1)) * student_point(1 - (1 - confidence) / 2, n - 1))


def plus_two_interval(n: int, total: float, squares: float, confidence: float = 0.95) -> Interval:
    """Interval for a mean of *n* differences in [-1, 1] with this sum and sum of squares, with one of +1 and one of -1 added.

    With one trial a case it is the interval of D. G. Bonett, R. M. Price (2012), Adjusted Wald confidence interval
    for a difference of binomial proportions based on paired data, Journal of Educational and Behavioral Statistics 37, 479-488.
    Six of 30 better and two worse:

    >>> [round(limit, 6) for limit in plus_two_interval(30, 4, 8)]
    [-0.063782, 0.313782]
    """
    centre = total / (n + 2)
    half = normal_quantile(confidence) * math.sqrt(max(0.0, (squares + 2) / (n + 2) - centre * centre) / (n + 2))
    return Interval(max(-1.0, centre - half), min(1.0, centre + half))


# --- Paired cases ----------------------------------------------------------------------


class PairedMean(NamedTuple):
    """The mean of paired case differences and what the exact bootstrap says of it.

    `interval` is the one to report, `method` its name; `is_exact` is false where the values had to
    be rounded. Without two cases the intervals are None, without any everything is, with the `reason`.
    """

    n: int
    informative: int
    is_exact: bool = True
    delta: "Fraction | None" = None
    p_gt: float | None = None
    p_eq: float | None = None
    p_lt: float | None = None
    se: float | None = None
    percentile: Interval | None = None
    student: Interval | None = None
    expanded_tail: float | None = None
    expanded: Interval | None = None
    plus_two: Interval | None = None
    interval: Interval | None = None
    method: str | None = None
    reason: str | None = None


def paired_mean(counts: Counts, confidence: float = 0.95, minimum_informative: int = MINIMUM_INFORMATIVE) -> PairedMean:
    """The mean of the case differences *counts* {difference in [-1, 1]: how many cases} with its reported interval.

    With fewer than *minimum_informative* cases that differ the interval is the hull of the expanded percentile and
    the plus-two interval. No case: None (`no_comparable_cases`); one: no interval (`fewer_than_two_comparable_cases`).
    Five of twelve better, two worse, by listing all 12^12 resamples:

    >>> from fractions import Fraction
    >>> found = paired_mean({Fraction(1): 5, Fraction(-1): 2, Fraction(0): 5})
    >>> round(found.p_gt, 9), found.interval.low, round(found.interval.high, 9)
    (0.840950834, -0.25, 0.666666667)
    """
    n = sum(counts.values())
    if not n:
        return PairedMean(0, 0, reason="no_comparable_cases")
    law = ResampledMean(counts)
    zero = law.lowest * 0
    informative = n - counts.get(zero, 0)
    total = sum((value * times for value, times in sorted(counts.items())), zero)
    squares = sum((value * value * times for value, times in sorted(counts.items())), zero)
    delta = total / n
    above, at = law.above(zero), law.at(zero)
    chances = (above, at, max(0.0, 1 - above - at))
    if n < 2:
        return PairedMean(n, informative, law.is_exact, delta, *chances, reason="fewer_than_two_comparable_cases")
    se = math.sqrt((squares - total * delta) / (n - 1) / n)
    t = student_point(1 - (1 - confidence) / 2, n - 1) * se
    tail = expanded_tail(n, confidence)
    expanded = law.limits(tail)
    plus_two = plus_two_interval(n, float(total), float(squares), confidence)
    is_sparse = informative < minimum_informative
    interval = Interval(min(expanded.low, plus_two.low), max(expanded.high, plus_two.high)) if is_sparse else expanded
    return PairedMean(
        n,
        informative,
        law.is_exact,
        delta,
        *chances,
        se,
        law.limits((1 - confidence) / 2),
        Interval(max(-1.0, float(delta) - t), min(1.0, float(delta) + t)),
        tail,
        expanded,
        plus_two,
        interval,
        "expanded_hull_plus_two" if is_sparse else "expanded",
        None,
    )


def mean_interval(values: list[float], confidence: float = 0.95) -> Interval | None:
    """Expanded percentile limits for the mean of *values*, such as the pass^k of each case or durations.

    None for fewer than two values (`no_values`).
    """
    from fractions import Fraction

    counts = {Fraction(repr(value)): times for value, times in Counter(values).items()}
    return ResampledMean(counts).limits(expanded_tail(len(values), confidence)) if len(values) > 1 else None

# endregion

# region stats/exact_tests.py
# =============================================================================
# Exact tests of paired cases: sign-flip, McNemar, and one for the suite alone.
# =============================================================================

BIG_INTEGER_WORK = 400_000_000  # bits touched up to which one big integer is faster than the Fourier sum
FEW_CASES = 16  # up to which all 2^16 sums are listed, whatever the sizes


class SignFlip(NamedTuple):
    """P-values of the sign-flip test: candidate better, candidate worse, either; all 1 with a reason when nothing differs."""

    greater: float
    less: float
    two_sided: float
    reason: str | None


def sign_flip(counts: Counts) -> SignFlip:
    """The exact test that case differences *counts* {difference: how many cases} are symmetric about 0, ties included.

    Every sign is flipped by itself with probability 1/2. With one trial a case this is McNemar's exact test.
    Source: R. A. Fisher (1935), The Design of Experiments, section 21. No difference: `no_discordant_pairs`.
    Five cases that all improve come out so in 1 of 32:

    >>> from fractions import Fraction
    >>> sign_flip({Fraction(1): 5, Fraction(0): 7}).greater * 32
    1.0
    """
    known = {value: times for value, times in counts.items() if value}
    if not known:
        return SignFlip(1.0, 1.0, 1.0, "no_discordant_pairs")
    common = math.lcm(*(value.denominator for value in known))
    steps = {value.numerator * (common // value.denominator): times for value, times in known.items()}
    step = math.gcd(*steps)
    steps = sign_grid({size // step: times for size, times in steps.items()})
    sizes: dict[int, int] = {}
    for size, times in steps.items():
        sizes[abs(size)] = sizes.get(abs(size), 0) + times
    whole = sum(size * times for size, times in sizes.items())
    gained = sum(size * times for size, times in steps.items() if size > 0)
    # The sum of the sizes that keep a plus sign: symmetric about half of all, so both tails are lower tails.
    greater, less = lower_tails(sizes, whole, (whole - gained, gained))
    return SignFlip(greater, less, 1.0 if 2 * gained == whole else min(1.0, 2 * min(greater, less)), None)


def sign_window(sizes: dict[int, int]) -> int:
    """Half of the window that holds the sum of signed *sizes* but for e^-40, by Hoeffding's bound."""
    return math.ceil(math.sqrt(80 * sum(times * size * size for size, times in sizes.items())))


def sign_grid(steps: dict[int, int]) -> dict[int, int]:
    """*steps* {difference: how many}, rounded to a grid where there are too many places to sum over."""
    m = sum(steps.values())
    if m <= FEW_CASES or 2 * sign_window(steps) <= EXACT_SIZE:
        return steps
    width = math.sqrt(sum(times * size * size for size, times in steps.items()) / m) / grid_steps(m)
    rounded: dict[int, int] = {}
    for size, times in steps.items():
        rounded[round(size / width)] = rounded.get(round(size / width), 0) + times
    return rounded


def lower_tails(sizes: dict[int, int], whole: int, totals: tuple[int, int]) -> tuple[float, float]:
    """P(sum ≤ total) for both *totals*, where each of *sizes* {size: how many}, *whole* in all, counts with probability 1/2."""
    m = sum(sizes.values())
    if m * whole * (m + 1) <= BIG_INTEGER_WORK:
        # The polynomial of all subset sums as one integer, m + 1 bits a coefficient; they add up to 2^m.
        width, power = m + 1, 1
        for size, times in sorted(sizes.items()):
            for _ in range(times):
                power += power << (size * width)
        # Modulo 2^width - 1 the coefficients of a part add up, as digits do modulo 9.
        sums = [(power & ((1 << (total + 1) * width) - 1)) % ((1 << width) - 1) for total in totals]
        return sums[0] / (1 << m), sums[1] / (1 << m)
    if m <= FEW_CASES:
        ways = {0: 1}
        for size in sorted(size for size, times in sizes.items() for _ in range(times)):
            for total, times in list(ways.items()):
                ways[total + size] = ways.get(total + size, 0) + times
        return tuple(sum(times for total, times in ways.items() if total <= limit) / (1 << m) for limit in totals)  # type: ignore[return-value]
    law = sign_law(sizes, whole)
    return law.at_most(totals[0]), law.at_most(totals[1])


def sign_law(sizes: dict[int, int], whole: int) -> FourierLaw:
    """The law of the sum in `lower_tails` by its characteristic function, a product of cosines."""
    half = sign_window(sizes)
    low, high = max(0, whole // 2 - half), min(whole, whole // 2 + half + 1)
    window = high - low + 1
    step = math.pi / window
    cosines = [math.cos(step * k) for k in range(2 * window)]
    terms: Terms = []
    for j in range(1, window // 2 + 1):
        logarithm, is_negative = 0.0, 0
        for size, times in sizes.items():
            cosine = cosines[j * size % (2 * window)]
            logarithm += times * math.log(abs(cosine)) if cosine else -math.inf
            if logarithm < NEGLIGIBLE:
                break
            is_negative ^= cosine < 0 and times & 1
        if logarithm >= NEGLIGIBLE:
            modulus = -math.exp(logarithm) if is_negative else math.exp(logarithm)
            phase = step * (j * (whole - 2 * low) % (2 * window))
            terms.append((j, modulus * math.cos(phase), modulus * math.sin(phase)))
    return FourierLaw(low, window, terms)


class McNemar(NamedTuple):
    """McNemar's two-sided p-values: exact, and mid-p; 1 with a reason when no pair differs."""

    exact: float
    mid: float
    reason: str | None


def mcnemar(lost: int, gained: int) -> McNemar:
    """McNemar's test of *lost* pairs (passed before, fail now) against *gained* ones.

    Needs one outcome a case. Source: Q. McNemar (1947), Psychometrika 12, 153-157; mid-p: M. W. Fagerland,
    S. Lydersen, P. Laake (2013), BMC Medical Research Methodology 13, 91. No such pair: `no_discordant_pairs`.

    >>> mcnemar(1, 8)
    McNemar(exact=0.0390625, mid=0.021484375, reason=None)
    """
    pairs, fewer = lost + gained, min(lost, gained)
    if not pairs:
        return McNemar(1.0, 1.0, "no_discordant_pairs")
    term = below = 1
    for k in range(fewer):
        term = term * (pairs - k) // (k + 1)
        below += term
    # On a tie both halves hold all but half of the middle term.
    mid = (2 * below - term, 1 << pairs) if lost != gained else ((1 << pairs) - term, 1 << pairs)
    return McNemar(min(1.0, 2 * below / (1 << pairs)), mid[0] / mid[1], None)


def suite_permutation(cases: list[tuple[int, int, int, int]]) -> tuple[float, float]:
    """(P(candidate passes ≥ observed), P(≤ observed)) when the outcomes of each case are shuffled between the sides.

    *cases* is [(baseline passed, baseline valid, candidate passed, candidate valid)]. It only rejects "no case of this
    suite changed at all", so label it `suite_only` and let no gate hang on it. Source: R. A. Fisher (1935), as above.
    One case that passes 0 of 2 before and 2 of 2 now comes out so in 1 of 6:

    >>> suite_permutation([(0, 2, 2, 2)])[0] * 6
    1.0
    """
    law = [1]
    for before, valid_before, after, valid_after in cases:
        passed = before + after
        weights = [math.comb(valid_after, x) * math.comb(valid_before, passed - x) if x <= passed else 0 for x in range(valid_after + 1)]
        longer = [0] * (len(law) + valid_after)
        for place, weight in enumerate(law):
            if weight:
                for x, factor in enumerate(weights):
                    longer[place + x] += weight * factor
        law = longer
    observed, everything = sum(after for _, _, after, _ in cases), sum(law)
    return sum(law[observed:]) / everything, sum(law[: observed + 1]) / everything

# endregion

# region stats/sampler.py
# =============================================================================
# Seeded resampling by counts, with integers only: the same draws on every Python.
#
# For statistics that are not means (kappa, F, medians). Cases of equal content form a group; a
# resample is one multinomial draw of the groups' counts.
# =============================================================================

RESAMPLES = 10_000
MAXIMUM_UNDEFINED = (1, 20)  # more than 5 % of undefined resamples leave no interval


def sub_seed(seed: int, label: str) -> int:
    """A seed of its own for *label*, so that adding one comparison does not change another.

    >>> f"{sub_seed(1, 'a'):016x}"  # printf '1:a' | sha256sum
    '4162fddd39a3e422'
    """
    return int.from_bytes(hashlib.sha256(f"{seed}:{label}".encode()).digest()[:8], "big")


def binomial_draw(rng: "Random", n: int, a: int, b: int) -> int:
    """How many of *n* trials succeed, each with the exact probability *a* / *b*; only `getrandbits` is used.

    Compares a random binary fraction with a / b digit by digit, for all open trials at once: about 2 n bits. Source:
    D. E. Knuth, A. C. Yao (1976), The complexity of nonuniform random number generation.

    >>> from random import Random
    >>> rng = Random(1)
    >>> [binomial_draw(rng, 10, 1, 2) for _ in range(6)]
    [7, 6, 4, 4, 5, 9]
    """
    passed = 0
    while n:
        if a <= 0:
            return passed
        if a >= b:
            return passed + n
        a <<= 1
        ones = rng.getrandbits(n).bit_count()  # open trials whose next random digit is 1
        if a >= b:  # the next digit of a / b is 1: those with a 0 are settled below it
            a -= b
            passed += n - ones
            n = ones
        else:
            n -= ones
    return passed


def multinomial_draw(rng: "Random", counts: list[int]) -> list[int]:
    """New counts of the same total, drawn with probabilities in proportion to *counts*; the last takes the rest."""
    rest = weight = sum(counts)
    drawn = []
    for count in counts[:-1]:
        taken = binomial_draw(rng, rest, count, weight)
        drawn.append(taken)
        rest -= taken
        weight -= count
    return [*drawn, rest]


class Resampled(NamedTuple):
    """Sorted values of a statistic over resamples, and how many resamples left it undefined."""

    values: list[float]
    undefined: int

    def quantile(self, level: float) -> float | None:
        """The value at *level* (0 to 1); None when too many resamples were undefined (`degenerate_resamples`)."""
        share, whole = MAXIMUM_UNDEFINED
        if not self.values or self.undefined * whole > (self.undefined + len(self.values)) * share:
            return None
        return self.values[min(max(math.ceil(level * len(self.values)) - 1, 0), len(self.values) - 1)]


def resampled(
    groups: dict[Any, int], statistic: Callable[[list[tuple[Any, int]]], float | None], seed: int, resamples: int = RESAMPLES
) -> Resampled:
    """*statistic* over bootstrap resamples of *groups* {content: how many cases}; it gets [(content, count)].

    Groups are drawn by falling count, then by content, so that the draws hang on nothing else. Equal resamples are
    computed once.
    """
    from random import Random

    ordered = sorted((item for item in groups.items() if item[1]), key=lambda item: (-item[1], item[0]))
    contents, counts = [content for content, _ in ordered], [count for _, count in ordered]
    rng = Random(seed)
    known: dict[tuple[int, ...], float | None] = {}
    values, undefined = [], 0
    for _ in range(resamples if ordered else 0):
        drawn = tuple(multinomial_draw(rng, counts))
        if drawn not in known:
            known[drawn] = statistic(list(zip(contents, drawn, strict=True)))
        value = known[drawn]
        if value is None:
            undefined += 1
        else:
            values.append(value)
    return Resampled(sorted(values), undefined)

# endregion

# region stats/agreement.py
# =============================================================================
# Agreement beyond chance: kappa with its interval, Fleiss, Krippendorff, the human band.
# =============================================================================

CountTable = Sequence[Sequence[float]]
Label = str | None

# Disagreement of two places on the list of labels; all but the first need an order.
WEIGHTS: dict[str, Callable[[int, int], int]] = {
    "nominal": lambda i, j: int(i != j),
    "linear": lambda i, j: abs(i - j),
    "quadratic": lambda i, j: (i - j) ** 2,
}
SPARSE = 10  # fewer disagreements, or fewer cases off the commonest label, and the bootstrap alone is too narrow
MINIMUM_PAIRS = 20  # below, no verdict


class Kappa(NamedTuple):
    """Kappa with its large-sample standard error, cases, raw agreement, and the reason when kappa is None."""

    kappa: float | None
    se: float | None
    n: float
    agreement: float | None
    reason: str | None


def label_table(pairs: Iterable[tuple[Label, Label]], labels: Sequence[str] | None = None) -> tuple[list[str], list[list[int]]]:
    """(labels, counts by row and column label) of *pairs*; pairs in which one side abstained (None) are left out."""
    known = Counter((a, b) for a, b in pairs if a is not None and b is not None)
    names = list(labels) if labels is not None else sorted({label for pair in known for label in pair if label is not None})
    return names, [[known[a, b] for b in names] for a in names]


def cohen_kappa(table: CountTable, weights: str = "nominal") -> Kappa:
    """Cohen's kappa of a square *table* of counts; *weights* is 'nominal', 'linear' or 'quadratic'.

    kappa = 1 - observed / expected disagreement. No case: None (`no_common_cases`); both constant on one label:
    None (`no_expected_disagreement`), not 1. Sources: J. Cohen (1960, 1968); standard error: J. L. Fleiss, J. Cohen,
    B. S. Everitt (1969), Large sample standard errors of kappa and weighted kappa, Psychological Bulletin 72, 323-327.

    >>> cohen_kappa([[20, 5], [10, 15]]).kappa
    0.4
    """
    size, n = range(len(table)), sum(map(sum, table))
    if not n:
        return Kappa(None, None, 0, None, "no_common_cases")
    weight = WEIGHTS[weights]
    rows, columns = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]
    observed = sum(weight(i, j) * table[i][j] for i in size for j in size)
    expected = sum(weight(i, j) * rows[i] * columns[j] for i in size for j in size)
    agreement = sum(table[i][i] for i in size) / n
    if not expected:
        return Kappa(None, None, n, agreement, "no_expected_disagreement")
    kappa = 1 - n * observed / expected
    most = max(weight(i, j) for i in size for j in size)
    alike = [[1 - weight(i, j) / most for j in size] for i in size]
    chance = math.fsum(alike[i][j] * rows[i] * columns[j] for i in size for j in size) / (n * n)
    by_row = [math.fsum(alike[i][j] * columns[j] for j in size) / n for i in size]
    by_column = [math.fsum(alike[i][j] * rows[i] for i in size) / n for j in size]
    squares = math.fsum(table[i][j] / n * (alike[i][j] - (by_row[i] + by_column[j]) * (1 - kappa)) ** 2 for i in size for j in size)
    variance = (squares - (kappa - chance * (1 - kappa)) ** 2) / (n * (1 - chance) ** 2)
    return Kappa(kappa, math.sqrt(max(0.0, variance)), n, agreement, None)


def kappa_resamples(table: CountTable, seed: int, weights: str = "nominal", resamples: int = RESAMPLES) -> Resampled:
    """Kappa over bootstrap resamples of the cases in *table*."""
    size, weight = len(table), WEIGHTS[weights]
    groups = {(i, j): int(table[i][j]) for i in range(size) for j in range(size)}
    n = sum(groups.values())

    def statistic(drawn: list[tuple[tuple[int, int], int]]) -> float | None:
        rows, columns, observed = [0] * size, [0] * size, 0
        for (i, j), count in drawn:
            rows[i] += count
            columns[j] += count
            observed += weight(i, j) * count
        expected = sum(weight(i, j) * row * column for i, row in enumerate(rows) if row for j, column in enumerate(columns))
        return 1 - n * observed / expected if expected else None

    return resampled(groups, statistic, seed, resamples)


def smoothed_kappa_interval(table: CountTable, weights: str = "nominal", confidence: float = 0.95) -> Interval | None:
    """kappa ± t · se of the table with 2 / q² added to each of its q² cells, inside [-1, 1]. None below two cases (`no_common_cases`).

    >>> [round(limit, 6) for limit in smoothed_kappa_interval([[15, 4], [5, 16]])]
    [0.258246, 0.789373]
    """
    n, q = sum(map(sum, table)), len(table)
    if n < 2:
        return None
    kappa, se = cohen_kappa([[count + 2 / q**2 for count in row] for row in table], weights)[:2]
    if kappa is None or se is None:
        return None
    half = student_point(1 - (1 - confidence) / 2, n - 1) * se
    return Interval(max(-1.0, kappa - half), min(1.0, kappa + half))


def kappa_interval(
    table: CountTable, seed: int, weights: str = "nominal", confidence: float = 0.95, resamples: int = RESAMPLES
) -> tuple[Interval | None, str | None]:
    """(interval, reason when there is none) of kappa: expanded bootstrap, with the smoothed one added where counts are sparse.

    Reasons: `no_common_cases`, `no_expected_disagreement`, `insufficient_evidence` below 20 cases, `degenerate_resamples`.
    """
    found = cohen_kappa(table, weights)
    n = int(found.n)
    smoothed = smoothed_kappa_interval(table, weights, confidence)
    if found.kappa is None or n < MINIMUM_PAIRS or smoothed is None:
        return None, found.reason or "insufficient_evidence"
    tail = expanded_tail(n, confidence)
    draws = kappa_resamples(table, seed, weights, resamples)
    low, high = draws.quantile(tail), draws.quantile(1 - tail)
    if low is None or high is None:
        return None, "degenerate_resamples"
    size = range(len(table))
    disagreements = n - sum(table[i][i] for i in size)
    commonest = max((sum(table[i]) + sum(row[i] for row in table)) / 2 for i in size)
    if disagreements < SPARSE or n - commonest < SPARSE:
        return Interval(min(low, smoothed.low), max(high, smoothed.high)), None
    return Interval(low, high), None


def fleiss_kappa(counts: CountTable) -> tuple[float | None, str | None]:
    """(kappa, reason) of *counts*: per subject the ratings by label, the same number of ratings for each subject.

    Source: J. L. Fleiss (1971), Measuring nominal scale agreement among many raters, Psychological Bulletin 76, 378-382.

    >>> round(fleiss_kappa([[4, 0], [3, 1], [0, 4]])[0], 9)
    0.657142857
    """
    raters = sum(counts[0]) if counts else 0
    if raters < 2:
        return None, "no_pairable_values"
    shares = [sum(column) / (len(counts) * raters) for column in zip(*counts, strict=True)]
    chance = math.fsum(share * share for share in shares)
    observed = math.fsum(sum(count * (count - 1) for count in row) for row in counts) / (len(counts) * raters * (raters - 1))
    return ((observed - chance) / (1 - chance), None) if max(shares) < 1 else (None, "no_expected_disagreement")


def krippendorff_alpha(ratings: Sequence[Sequence[float | None]], level: str = "nominal") -> tuple[float | None, str | None]:
    """(alpha, reason) of *ratings*: a row a rater, a column a unit, None where nobody rated; *level* nominal, ordinal or interval.

    Source: K. Krippendorff (2011), Computing Krippendorff's alpha-reliability. No unit with two values:
    `no_pairable_values`; a single value throughout: `no_expected_disagreement`. His first example, of two observers:

    >>> round(krippendorff_alpha([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]])[0], 3)
    0.095
    """
    together: Counter[tuple[float, float]] = Counter()
    for unit in zip(*ratings, strict=True):
        values = [value for value in unit if value is not None]
        for a, first in enumerate(values):
            for b, second in enumerate(values):
                if a != b:
                    together[first, second] += 1 / (len(values) - 1)  # type: ignore[assignment]
    if not together:
        return None, "no_pairable_values"
    totals: dict[float, float] = {}
    for (first, _), weight in together.items():
        totals[first] = totals.get(first, 0) + weight
    values = sorted(totals)
    if len(values) < 2:
        return None, "no_expected_disagreement"

    def distance(c: float, k: float) -> float:
        if level == "nominal":
            return float(c != k)
        if level == "interval":
            return (c - k) ** 2
        between = math.fsum(totals[g] for g in values if min(c, k) <= g <= max(c, k))
        return (between - (totals[c] + totals[k]) / 2) ** 2 if c != k else 0.0

    n = math.fsum(totals.values())
    observed = math.fsum(weight * distance(*pair) for pair, weight in together.items())
    expected = math.fsum(totals[c] * totals[k] * distance(c, k) for c in values for k in values)
    return 1 - (n - 1) * observed / expected, None


# --- Experts and a judge ---------------------------------------------------------------


def consensus(labels: Iterable[Label]) -> tuple[Label, str]:
    """(label of more than half of at least two experts or None, 'consensus' | 'contested' | 'uncovered')."""
    known = Counter(label for label in labels if label is not None)
    total = sum(known.values())
    if total < 2:
        return None, "uncovered"
    label, votes = known.most_common(1)[0]
    return (label, "consensus") if 2 * votes > total else (None, "contested")


def kappa_of(pairs: Iterable[tuple[Label, Label]]) -> Kappa:
    """Kappa of *pairs* of labels, abstentions left out."""
    return cohen_kappa(label_table(pairs)[1])


class Band(NamedTuple):
    """A judge among experts, like with like: [(expert, expert, kappa)], [(expert, kappa)], their means, and consensus counts.

    `leave_one_out` is [(expert, kappa of the judge, kappa of that expert)], both against the consensus of the others.
    """

    pairwise: list[tuple[str, str, Kappa]]
    judge_vs_expert: list[tuple[str, Kappa]]
    mean_pairwise: float | None
    mean_judge_vs_expert: float | None
    judge_vs_consensus: Kappa
    counts: dict[str, int]
    leave_one_out: list[tuple[str, Kappa, Kappa]]


def human_band(rows: Sequence[tuple[Label, Sequence[Label]]], experts: Sequence[str]) -> Band:
    """The band of *rows* [(judge's label, labels in the order of *experts*)]; None abstained.

    Judge-against-consensus is printed but never compared with expert-against-expert: the consensus is cleaner than one
    expert, so a worse judge would look as good. One expert gives no band (`no_common_cases`).
    """

    def kappa_between(a: Callable[[Any], Label], b: Callable[[Any], Label]) -> Kappa:
        return kappa_of((a(row), b(row)) for row in rows)

    def expert(j: int) -> Callable[[Any], Label]:
        return lambda row: row[1][j]

    def judge(row: Any) -> Label:
        return row[0]  # type: ignore[no-any-return]

    def others(j: int) -> Callable[[Any], Label]:
        return lambda row: consensus([label for k, label in enumerate(row[1]) if k != j])[0]

    places = range(len(experts))
    pairwise = [(experts[a], experts[b], kappa_between(expert(a), expert(b))) for a, b in combinations(places, 2)]
    against = [(experts[j], kappa_between(judge, expert(j))) for j in places]
    verdicts = [(row[0], *consensus(row[1])) for row in rows]
    counts = Counter(kind for _, _, kind in verdicts)
    counts["abstained_on_consensus"] = sum(label is None and kind == "consensus" for label, _, kind in verdicts)
    counts["used"] = counts["consensus"] - counts["abstained_on_consensus"]
    return Band(
        pairwise,
        against,
        mean([kappa.kappa for _, _, kappa in pairwise if kappa.kappa is not None]),
        mean([kappa.kappa for _, kappa in against if kappa.kappa is not None]),
        kappa_of((label, agreed) for label, agreed, _ in verdicts),
        dict(counts),
        [(experts[j], kappa_between(judge, others(j)), kappa_between(expert(j), others(j))) for j in places] if len(experts) > 2 else [],
    )

# endregion

# region stats/multiple.py
# =============================================================================
# Many variants at once: adjusted p-values, informative cases needed, the Pareto front.
# =============================================================================

PValues = list[float | None]


def adjusted(p_values: PValues, adjust: Callable[[list[float]], list[float]]) -> PValues:
    """*adjust* (which gets and gives ascending values) applied to the known of *p_values*, back in their places."""
    order = sorted((index for index, p in enumerate(p_values) if p is not None), key=lambda index: p_values[index] or 0.0)
    result: PValues = [None] * len(p_values)
    for index, value in zip(order, adjust([p_values[index] or 0.0 for index in order]), strict=True):
        result[index] = value
    return result


def bonferroni(p_values: PValues) -> PValues:
    """Each p-value times the size of the family, at most 1; None stays None and is no member.

    >>> bonferroni([0.25, None, 0.75])
    [0.5, None, 1.0]
    """
    return adjusted(p_values, lambda ordered: [min(1.0, len(ordered) * p) for p in ordered])


def holm(p_values: PValues) -> PValues:
    """Step-down adjusted p-values in the order given; None stays None and is no member of the family.

    Source: S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of
    Statistics 6, 65-70. R's p.adjust(c(0.03, 0.01, 0.2), "holm") gives 0.06, 0.03, 0.20:

    >>> holm([0.03, 0.01, 0.2])
    [0.06, 0.03, 0.2]
    """

    def step_down(ordered: list[float]) -> list[float]:
        found: list[float] = []
        for rank, p in enumerate(ordered):
            found.append(max(found[-1] if found else 0.0, min(1.0, (len(ordered) - rank) * p)))
        return found

    return adjusted(p_values, step_down)


def benjamini_hochberg(p_values: PValues) -> PValues:
    """Step-up adjusted p-values that bound the false discovery rate (screening only); None stays None.

    Source: Y. Benjamini, Y. Hochberg (1995), Journal of the Royal Statistical Society B 57, 289-300.
    R's p.adjust(c(0.03, 0.01, 0.2), "BH") gives 0.045, 0.030, 0.200:

    >>> benjamini_hochberg([0.03, 0.01, 0.2])
    [0.045, 0.03, 0.2]
    """

    def step_up(ordered: list[float]) -> list[float]:
        found: list[float] = []
        for rank in range(len(ordered), 0, -1):
            found.append(min(found[-1] if found else 1.0, ordered[rank - 1] * (len(ordered) / rank)))
        return found[::-1]

    return adjusted(p_values, step_up)


def informative_cases_needed(alpha: float, variants: int = 1) -> int:
    """How many cases must differ before any exact test can reach *alpha* for one of *variants*: ceil(log2(variants / alpha)).

    >>> [informative_cases_needed(0.05, variants) for variants in (1, 3, 5, 10, 20)]
    [5, 6, 7, 8, 9]
    """
    return math.ceil(math.log2(variants / alpha) - 1e-12)


# --- Pareto ----------------------------------------------------------------------------


class Variant(NamedTuple):
    """A variant's objectives: quality (more is better), cost and latency (less is better); None is not measured."""

    name: str
    quality: float | None
    cost: float | None
    latency: float | None


class Front(NamedTuple):
    """Status by name ('front', 'dominated', 'infeasible', 'not_comparable'), names on the front, cheapest feasible one."""

    status: dict[str, str]
    front: list[str]
    cheapest_feasible: str | None


def pareto_front(
    variants: list[Variant], minimum_quality: float | None = None, maximum_cost: float | None = None, maximum_latency: float | None = None
) -> Front:
    """The front of *variants* after the gates, which are inclusive. Equal vectors all stay; nothing unmeasured is compared.

    Source: H. T. Kung, F. Luccio, F. P. Preparata (1975), On finding the maxima of a set of vectors, Journal of the ACM 22, 469-476.

    >>> pareto_front([Variant("a", 0.9, 2, 100), Variant("b", 0.8, 1, 120), Variant("c", 0.7, 1.5, 130)]).front
    ['a', 'b']
    """
    status: dict[str, str] = {}
    ranked: list[tuple[float, float, float, str]] = []  # cost, minus quality, latency: less is better
    for name, quality, cost, latency in variants:
        if quality is None or cost is None or latency is None:
            status[name] = "not_comparable"
        elif (
            (minimum_quality is not None and quality < minimum_quality)
            or (maximum_cost is not None and cost > maximum_cost)
            or (maximum_latency is not None and latency > maximum_latency)
        ):
            status[name] = "infeasible"
        else:
            ranked.append((cost, -quality, latency, name))
    for own in ranked:
        beaten = any(
            other[:3] != own[:3] and all(theirs <= mine for theirs, mine in zip(other[:3], own[:3], strict=True)) for other in ranked
        )
        status[own[3]] = "dominated" if beaten else "front"
    front = [variant.name for variant in variants if status[variant.name] == "front"]
    return Front(status, front, min(ranked)[3] if ranked else None)

# endregion

# region stats/planning.py
# =============================================================================
# How many cases and trials it takes: cases needed, smallest effect seen, power.
#
# n = (z_{1-alpha/2} + z_power)^2 (omega^2 + sigma_A^2 / K_A + sigma_B^2 / K_B) / delta^2, with omega^2 the variance
# over cases of the true difference, sigma^2 the mean variance of trials within a case, K trials a case.
# Source: E. Miller (2024), Adding error bars to evals, section 5, equation 9.
# =============================================================================

ALPHA, POWER = 0.05, 0.8


class Spread(NamedTuple):
    """omega2: variance of the true case differences; sigma2_a, sigma2_b: mean variance of trials within a case.

    `is_split` is false where single trials leave only their sum known; it then stands in omega2.
    """

    omega2: float
    sigma2_a: float
    sigma2_b: float
    is_split: bool

    def of_case(self, trials_a: float, trials_b: float) -> float:
        """The variance of one observed case difference at so many trials."""
        return self.omega2 + self.sigma2_a / trials_a + self.sigma2_b / trials_b


def trial_variance(case_values: Sequence[tuple[int, int]]) -> float | None:
    """The mean variance of a trial within its case; *case_values* is [(passed, valid)].

    None when no case has two trials (`fewer_trials_than_k`).

    >>> trial_variance([(2, 4), (4, 4), (1, 1)]) == (1 / 3 + 0) / 2
    True
    """
    known = [passed * (valid - passed) / (valid * (valid - 1)) for passed, valid in case_values if valid > 1]
    return math.fsum(known) / len(known) if known else None


def measured_spread(pairs: Sequence[tuple[int, int, int, int]]) -> Spread | None:
    """The spread in *pairs* [(baseline passed, valid, candidate passed, valid)] of comparable cases.

    Where fewer than twelve cases differ the variance of the differences is smoothed as in the plus-two interval, so
    that a suite in which nothing moved does not promise to see everything. None for fewer than two cases
    (`fewer_than_two_comparable_cases`).
    """
    n = len(pairs)
    if n < 2:
        return None
    differences = [after / valid_after - before / valid_before for before, valid_before, after, valid_after in pairs]
    centre = math.fsum(differences) / n
    variance = math.fsum((value - centre) ** 2 for value in differences) / (n - 1)
    variance = smoothed_variance(variance, n, math.fsum(differences), sum(value != 0 for value in differences))
    noise = trial_variance([pair[:2] for pair in pairs]), trial_variance([pair[2:] for pair in pairs])
    if noise[0] is None or noise[1] is None:
        return Spread(variance, 0.0, 0.0, False)
    # Of each side's noise the part that its own number of trials leaves, averaged over the cases.
    shares = [math.fsum(1 / pair[side] for pair in pairs) / n for side in (1, 3)]
    return Spread(max(0.0, variance - noise[0] * shares[0] - noise[1] * shares[1]), noise[0], noise[1], True)


def smoothed_variance(variance: float, n: int, total: float, informative: int) -> float:
    """The variance of *n* differences that add up to *total*, with one of +1 and one of -1 added where few are *informative*."""
    if informative >= MINIMUM_INFORMATIVE:
        return variance
    squares = variance * (n - 1) + total * total / n
    return max(variance, (squares + 2) / (n + 2) - (total / (n + 2)) ** 2)


def quantiles_sum(alpha: float, power: float) -> float:
    """z_{1-alpha/2} + z_power."""
    return normal_point(1 - alpha / 2) + normal_point(power)


def cases_needed(spread: Spread, trials_a: float, trials_b: float, delta: float, alpha: float = ALPHA, power: float = POWER) -> float:
    """Cases, unrounded, for a two-sided test to see *delta* with *power*. Add a tenth for the sign-flip test.

    >>> round(cases_needed(Spread(0.1, 0.15, 0.15, True), 1, 1, 0.05), 2)
    1255.82
    """
    return quantiles_sum(alpha, power) ** 2 * spread.of_case(trials_a, trials_b) / (delta * delta)


def smallest_effect(spread: Spread, trials_a: float, trials_b: float, n: float, alpha: float = ALPHA, power: float = POWER) -> float:
    """The smallest difference that *n* cases show with *power* at two-sided *alpha* (MDE).

    >>> round(smallest_effect(Spread(0.05, 0.105, 0.105, True), 5, 5, 100), 3)
    0.085
    """
    return quantiles_sum(alpha, power) * math.sqrt(spread.of_case(trials_a, trials_b) / n)


def discordant_cases_needed(lost: float, gained: float, alpha: float = ALPHA, power: float = POWER, sides: int = 2) -> float:
    """Cases, unrounded, with one trial each, when a share *lost* gets worse and a larger share *gained* gets better.

    Source: R. J. Connor (1987), Sample size for testing differences in proportions for the paired-sample design, Biometrics 43, 207-211.

    >>> round(discordant_cases_needed(0.08, 0.16), 2)
    291.96
    """
    both, delta = lost + gained, gained - lost
    needed = normal_point(1 - alpha / sides) * math.sqrt(both) + normal_point(power) * math.sqrt(both - delta * delta)
    return (needed / delta) ** 2


def exact_mcnemar_power(n: int, lost: float, gained: float, alpha: float = ALPHA, sides: int = 2) -> float:
    """The probability that McNemar's exact test on *n* cases with one trial rejects, averaged over how many differ.

    *lost* and *gained* are the probabilities that a case gets worse, better. Source: D. E. Duffy (1984), Asymptotic and exact power
    for the McNemar test and its analogue with R responses, Biometrics 40, 1007-1015.

    >>> round(exact_mcnemar_power(60, 0.03, 0.15), 9)
    0.503566127
    """
    both = lost + gained
    if not 0 < both <= 1:
        return 0.0
    power = []
    for m in range(1, n + 1):
        # The largest number of the rarer kind at which the test on m still rejects.
        term, below, critical = 1, 1, -1
        while sides * below <= alpha * (1 << m) and critical < m:
            critical += 1
            term = term * (m - critical) // (critical + 1)
            below += term
        if critical >= 0:
            rejected = binomial_below(m, lost / both, critical) + (binomial_below(m, gained / both, critical) if sides == 2 else 0.0)
            power.append(math.exp(log_binomial(n, m, both)) * rejected)
    return min(1.0, math.fsum(power))


def log_binomial(n: int, k: int, share: float) -> float:
    """Logarithm of the probability of *k* of *n* at *share*; minus infinity where that cannot be."""
    if share <= 0 or share >= 1:
        return 0.0 if k == (n if share >= 1 else 0) else -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(share) + (n - k) * math.log1p(-share)


def binomial_below(n: int, share: float, most: int) -> float:
    """The probability of at most *most* of *n* at *share*."""
    return math.fsum(math.exp(log_binomial(n, k, share)) for k in range(most + 1))

# endregion

# region stats/sequential.py
# =============================================================================
# Looking early without false alarms: an e-process over case differences.
#
# Chosen before the first look (`--sequential`); a result of fixed size never becomes sequential afterwards.
# =============================================================================

BETS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75)


class EProcess(NamedTuple):
    """Where the e-process stands: its logarithm, the p-value valid at any stop, the case (from 1) at which it may stop."""

    log_e: float
    p_anytime: float
    stop_at: int | None


def e_process(differences: Iterable[float], alpha: float = 0.05, variants: int = 1) -> EProcess:
    """The evidence against "the mean difference is at most 0" as *differences* in [-1, 1] come in, in an order blind to them.

    Under it the chance ever to stop is at most *alpha* / *variants*. Mirror the signs for "worse". No difference: E is 1.
    Source: I. Waudby-Smith, A. Ramdas (2024), Estimating means of bounded random variables by betting, Journal of the
    Royal Statistical Society B 86, 1-27. Raises ValueError for a difference outside [-1, 1].

    >>> e_process([0.5] * 30).stop_at
    15
    """
    bets = [0.0] * len(BETS)
    log_e = highest = 0.0
    stop_at = None
    for number, difference in enumerate(differences, 1):
        if not -1 <= difference <= 1:
            raise ValueError(f"difference {number} lies outside -1 to 1")
        bets = [log + math.log1p(bet * difference) for log, bet in zip(bets, BETS, strict=True)]
        largest = max(bets)
        log_e = largest + math.log(math.fsum(math.exp(log - largest) for log in bets) / len(bets))
        highest = max(highest, log_e)
        if stop_at is None and log_e >= math.log(variants / alpha):
            stop_at = number
    return EProcess(log_e, min(1.0, math.exp(-highest)), stop_at)

# endregion

# region stats/looks.py
# =============================================================================
# Few looks at a sealed holdout: alpha spending, the Ladder, Thresholdout.
# =============================================================================


def alpha_of_look(alpha: float, look: int) -> float:
    """What the *look*-th access (from 1) may spend: alpha / (k (k + 1)), which adds up to *alpha* over all.

    >>> alpha_of_look(0.05, 1), alpha_of_look(0.06, 2)
    (0.025, 0.01)
    """
    return alpha / (look * (look + 1))


def ladder(scores: list[float], step: float) -> list[float]:
    """What is published for each of *scores* in turn: rounded to *step*, and only if better than the last by more than it.

    Source: A. Blum, M. Hardt (2015), The Ladder: a reliable leaderboard for machine learning competitions, ICML.

    >>> ladder([0.5, 0.6, 1.0], 0.25)
    [0.5, 0.5, 1.0]
    """
    released: list[float] = []
    for score in scores:
        last = released[-1] if released else 0.0
        # Decimals such as 0.43 / 0.02 end a hair below their half; the ties go up.
        released.append(math.floor(score / step + 0.5 + 1e-9) * step if score > last + step else last)
    return released


class Released(NamedTuple):
    """What is released for each query (None once the budget is spent), and the budget that is left."""

    values: list[float | None]
    budget: int


def thresholdout(
    train: list[float], holdout: list[float], threshold: float, budget: int, noises: tuple[list[float], list[float], list[float]]
) -> Released:
    """The training value of each query, or the holdout's with noise where the two lie too far apart.

    *noises* are Laplace draws: for the comparison (scale 4 sigma), the released value (sigma), and the threshold (2 sigma; one
    more than is spent). Source: C. Dwork et al. (2015), The reusable holdout, Science 349, 636-638.

    >>> thresholdout([0.5, 0.75, 0.5], [0.5, 0.5, 0.5], 0.125, 1, ([0, 0, 0], [0, 0.0625, 0], [0, 0]))
    Released(values=[0.5, 0.5625, None], budget=0)
    """
    comparison, release, thresholds = noises
    values: list[float | None] = []
    left = budget
    for index, (seen, sealed) in enumerate(zip(train, holdout, strict=True)):
        if not left:
            values.append(None)
        elif abs(seen - sealed) > threshold + thresholds[budget - left] + comparison[index]:
            values.append(sealed + release[index])
            left -= 1
        else:
            values.append(seen)
    return Released(values, left)

# endregion

# region cases/improvement.py
# =============================================================================
# The improvement folder: where its files lie, and how it is found.
# =============================================================================

STAGE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
RESERVED_STAGES = ("test_cases", "labels", "optimizer-log")
IMPROVEMENTS_FOLDER = "improvements"


class Improvement:
    """One improvement folder; `folder` is its absolute path, `name` the folder's own name."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.name = os.path.basename(self.folder)

    def path(self, *parts: str) -> str:
        """Absolute path of a file of the improvement."""
        return os.path.join(self.folder, *parts)

    def stage_file(self, stage: str, suffix: str = ".jsonl") -> str:
        """Path of `<stage>.jsonl` or of its neighbour with another suffix, such as '.meta.json'."""
        return self.path(stage + suffix)

    def shown(self, *parts: str) -> str:
        """The folder, or a file of it, as printed in messages."""
        return shown_path(self.path(*parts))

    def argument(self) -> str:
        """The folder as a command that is printed for a shell names it."""
        from shlex import quote

        return quote(self.shown())

    def outer_folder(self) -> str:
        """The folder two levels above, where `datasets/` and `kaizen-history/` stand."""
        return os.path.dirname(os.path.dirname(self.folder))

    def stages(self) -> list[str]:
        """Names of the stages that have observations, sorted, baseline and candidate first."""
        names = [name[: -len(".jsonl")] for name in os.listdir(self.folder) if name.endswith(".jsonl")]
        known = [name for name in names if STAGE_NAME.match(name) and name not in RESERVED_STAGES and self.is_stage(name)]
        return sorted(known, key=lambda name: (name != "baseline", name != "candidate", name))

    def is_stage(self, name: str) -> bool:
        """True when the file *name*.jsonl holds observations: it has a meta file, or its first line has a case and a status."""
        if os.path.exists(self.stage_file(name, ".meta.json")):
            return True
        try:
            first = next(read_json_lines(self.stage_file(name)), None)
        except InputError:
            return True  # broken, which whoever reads it says
        return first is None or "status" in first.value


def find_improvement(argument: str) -> Improvement:
    """The improvement that *argument* names: a path, or a bare name under improvements/. Raises InputError."""
    places = [argument]
    if not os.path.dirname(argument):
        places.append(os.path.join(IMPROVEMENTS_FOLDER, argument))
    for place in places:
        if os.path.isfile(os.path.join(place, "test_cases.jsonl")) or os.path.isfile(os.path.join(place, "evaluation.json")):
            return Improvement(place)
    folder = next((place for place in reversed(places) if os.path.isdir(place)), None)
    if folder is not None:
        raise InputError(
            f"{shown_path(folder)}: holds neither test_cases.jsonl nor evaluation.json, so it is no improvement",
            f"start one with: kaizen init {quoted(os.path.basename(os.path.abspath(folder)))}",
            "no_improvement",
        )
    try:
        known = sorted(name for name in os.listdir(IMPROVEMENTS_FOLDER) if os.path.isdir(os.path.join(IMPROVEMENTS_FOLDER, name)))
    except OSError:
        known = []
    hint = did_you_mean(os.path.basename(argument), known) or f"start one with: kaizen init {os.path.basename(argument) or 'NAME'}"
    raise InputError(f"{quoted(argument)}: there is no such improvement", hint, "no_improvement")


def check_stage_name(name: str) -> str:
    """*name*, when it can name a stage. Raises UsageError."""
    if not STAGE_NAME.match(name) or name in RESERVED_STAGES:
        raise UsageError(
            f"{quoted(name)} cannot name a stage",
            f"use 1 to 64 letters, digits, '-', '_', and none of {', '.join(RESERVED_STAGES)}",
        )
    return name

# endregion

# region cases/case.py
# =============================================================================
# One test case: its fields and their types, and its fingerprints.
#
#     {"id": "refund-001", "input": {"message": "…"}, "expected": {"says": ["30 days"]},
#      "split": "development", "tags": ["refund"], "source": {"kind": "synthetic"}}
#
# The input fingerprint covers what the agent is given (id, input, context), so an observation
# stays good as long as the question stays the same. The dataset fingerprint covers every
# field but source, notes and owner, which change nothing about what is measured.
# =============================================================================

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

# endregion

# region cases/dataset.py
# =============================================================================
# All cases of an improvement: its own test_cases.jsonl, then the files that it includes.
#
# Every breach of every line is reported in one pass. A case that comes again from another
# file with the same input is one case, and the first (the improvement's own) wins; the same id
# twice in one file, or with two inputs, is an error that names both places.
# =============================================================================

CASES_FILE = "test_cases.jsonl"
EVALUATION_FILE = "evaluation.json"


class Dataset(NamedTuple):
    """The cases by id, own ones first; the fingerprint of all in id order; whether no own case has a split; holdout ids."""

    cases: dict[str, Case]
    fingerprint: str
    is_legacy: bool
    holdout: frozenset[str]


def load_dataset(improvement: Improvement, include: list[str], breaches: Breaches) -> Dataset:
    """The cases of *improvement* and of the files *include* of its evaluation.json.

    What is wrong goes to *breaches*; the dataset then holds the cases that could be read, and the caller raises.
    """
    cases: dict[str, Case] = {}
    before = len(breaches.errors)
    add_cases(improvement.path(CASES_FILE), cases, breaches, "start an improvement with: kaizen init NAME")
    own = len(cases)
    if not own and len(breaches.errors) == before:
        breaches.add(improvement.shown(CASES_FILE), None, "", "holds no case", 'write one case a line: {"id": "…", "input": …}')
    shown = improvement.shown(EVALUATION_FILE)
    for name in checked_includes(improvement, include, lambda pointer, *text: breaches.add(shown, None, pointer, *text)):
        add_cases(included_path(improvement, name), cases, breaches)
    return Dataset(
        cases,
        dataset_fingerprint(cases),
        not any("split" in case.document for case in list(cases.values())[:own]),
        frozenset(case.id for case in cases.values() if is_holdout(case.document)),
    )


def dataset_fingerprint(cases: dict[str, Case]) -> str:
    """'sha256:' and the SHA-256 of the canonical JSON of the list of all cases in id order, without source, notes, owner."""
    digest = hashlib.sha256(b"[")
    for index, name in enumerate(sorted(cases)):
        text = canonical_json(case_fingerprint_document(cases[name].document))
        digest.update(("," + text if index else text).encode("utf-8"))
    digest.update(b"]")
    return "sha256:" + digest.hexdigest()


def add_cases(path: str, cases: dict[str, Case], breaches: Breaches, hint: str = "") -> None:
    """Adds the cases of the file *path* to *cases*; breaches and warnings go to *breaches*."""
    shown = shown_path(path)
    seen: dict[str, Case] = {}
    unknown: dict[str, list[int]] = {}
    try:
        for number, _, document in checked_lines(path, breaches, hint, f'"{HOLDOUT}"'.encode()):
            if is_holdout(document):
                breaches.conceal(shown, number)
            for name in document.keys() - CASE_FIELDS.keys():
                unknown.setdefault(name, []).append(number)
            if check_case(document, shown, number, breaches):
                case = Case(document["id"], document, shown, number, case_input_fingerprint(document))
                if case.id in seen:
                    refuse_repeated_case(case, seen[case.id], "comes twice", breaches)
                else:
                    seen[case.id] = case
    except InputError as error:
        note_unreadable(shown, error, breaches)
    for name, lines in sorted(unknown.items()):
        further = f", also on {counted(len(lines) - 1, 'further line')}" if len(lines) > 1 else ""
        breaches.warn(shown, lines[0], "", f"unknown field {quoted(name)}{further}", did_you_mean(name, CASE_FIELDS))
    for case in seen.values():
        first = cases.setdefault(case.id, case)
        if first.input_fingerprint != case.input_fingerprint:
            refuse_repeated_case(case, first, "has another input", breaches)


def note_unreadable(shown: str, error: InputError, breaches: Breaches) -> None:
    """Adds *error*, about the file *shown*, to *breaches*."""
    breaches.add(shown, None, "", error.message.removeprefix(f"{shown}: "), error.hint)


def refuse_repeated_case(case: Case, first: Case, what: str, breaches: Breaches) -> None:
    """Adds the breach of an id that stands in two places; the id of a holdout case is not said."""
    hidden = is_holdout(case.document) or is_holdout(first.document)
    name = "the id of a holdout case" if hidden else f"id {quoted(case.id)}"
    message = f"{name} {what} (first at {first.path}:{first.line})"
    breaches.add(case.path, case.line, "/id", message, "remove one of the two, or give it an id of its own")


# --- Included files --------------------------------------------------------------------


def checked_includes(improvement: Improvement, include: list[Any], report: Report) -> list[str]:
    """The names in *include* that are relative paths to files inside the repository; the others are reported."""
    root = repository_root(improvement)
    good = []
    for index, name in enumerate(include):
        if not isinstance(name, str):
            continue  # its type is checked where the file is read
        path = included_path(improvement, name)
        if os.path.isabs(name):
            problem, hint = "is not relative", "write the path from the improvement's folder"
        elif not is_inside(root, path):
            problem, hint = "leads out of the repository", "put a copy of the file into the repository"
        elif not os.path.isfile(path):
            problem, hint = "does not exist", "put the file there, or take it out of the list"
        else:
            good.append(name)
            continue
        report(f"/include/{index}", f"included file {quoted(name)} {problem}", hint)
    return good


def included_path(improvement: Improvement, name: str) -> str:
    """The absolute path of the included file *name*."""
    return os.path.normpath(improvement.path(name))


def repository_root(improvement: Improvement) -> str:
    """The nearest folder at or above the improvement that holds `.git`; without one, the folder two levels up."""
    folder = improvement.folder
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return improvement.outer_folder()
        folder = above
    return folder


def is_inside(folder: str, path: str) -> bool:
    """True when *path*, all symbolic links followed, is *folder* or lies below it."""
    try:
        return os.path.join(os.path.realpath(path), "").startswith(os.path.join(os.path.realpath(folder), ""))
    except ValueError:  # a NUL in the path
        return False

# endregion

# region cases/evaluation_file.py
# =============================================================================
# evaluation.json: evaluators, policy, optional blocks; defaults and references filled in.
#
#     {"version": 1, "seed": 20260101, "include": ["../../datasets/regression.jsonl"],
#      "define": {"writes": {"kind": "tool", "name": "charge_*"}},
#      "evaluators": [{"id": "paid", "type": "steps", "match": {"$use": "writes"}},
#                     {"id": "tone", "type": "judge", "rubric": {"$file": "rubrics/tone.md"}, "threshold": 0.7}],
#      "acceptance": {"minimum_pass_rate": 0.9}}
#
# Only `evaluators` is required. `{"$use": NAME}` is a copy of that entry of `define`, to which the
# keys beside it are added; `{"$file": PATH}` is a file of the improvement folder, JSON parsed, else
# text. Both are read as if written there, at any depth; `$case` is left for the evaluators, and
# what stands in `$literal` is left alone.
# =============================================================================

DEFAULT_SEED = 20260101
EVALUATION_FIELDS = {
    "version": Kind(lambda value: is_whole(value) and value == 1, "1, the version this program reads", shows_value=True),
    "seed": Kind(lambda value: is_whole(value) and 0 <= value < LARGEST_EXACT_INTEGER, "a whole number from 0 to 2^53", shows_value=True),
    "include": list_of(TEXT, "paths"),
    "define": OBJECT,
    "evaluators": list_of(OBJECT, "objects"),
    **dict.fromkeys(("metrics", "acceptance", "reliability", "judge", "objectives", "optimization", "agreement"), OBJECT),
}
PASS_K_FIELDS = {"k": POSITIVE_COUNT, "rate": RATE}

# key: (what it may hold, default). null is "no bound", so a key whose default is a number cannot be null.
Block = dict[str, tuple[Kind, Any]]
ACCEPTANCE: Block = {
    "maximum_regressions": (COUNT, 0),
    "maximum_weakened": (or_null(COUNT), None),
    "minimum_improvements": (COUNT, 1),
    "minimum_pass_rate": (or_null(RATE), None),
    "minimum_delta": (DIFFERENCE, 0),
    "maximum_not_comparable": (COUNT, 0),
    "maximum_cost_ratio": (or_null(RATIO), None),
    "maximum_latency_ratio": (or_null(RATIO), None),
    "minimum_pass_k": (or_null(OBJECT), None),
    "metrics": (OBJECT, {}),
}
RELIABILITY: Block = {
    "minimum_cases": (POSITIVE_COUNT, 20),
    "minimum_trials": (POSITIVE_COUNT, 3),
    "confidence": (OPEN_RATE, 0.95),
    "minimum_probability": (OPEN_RATE, 0.95),
}

ReadFile = Callable[[str], Any]


class Evaluation(NamedTuple):
    """evaluation.json as checked: defaults filled in, `$use` and `$file` expanded in `evaluators` and `define`.

    `path` is as shown, `text` and `document` are as read; `reliability` is None when the block is absent;
    `file_hashes` has the SHA-256 of each `$file` (line ends do not count); `read_file` reads one more.
    """

    path: str
    text: str
    seed: int
    include: list[str]
    evaluators: list[JsonObject]
    define: JsonObject
    acceptance: JsonObject
    reliability: JsonObject | None
    document: JsonObject
    metrics: JsonObject
    file_hashes: dict[str, str]
    read_file: ReadFile

    def line(self, pointer: str) -> int | None:
        """The line of *pointer*, or of the nearest place above it that stands in the file."""
        return nearest_line(self.text, pointer)


def load_evaluation(improvement: Improvement, breaches: Breaches, path: str = "") -> Evaluation | None:
    """The evaluation of *improvement*, or the one in the file *path* in its place; None when the file holds no JSON object.

    What is wrong goes to *breaches*; the parts that are right are then filled in, and the caller raises.
    """
    shown = shown_path(path) if path else improvement.shown(EVALUATION_FILE)
    try:
        hint = "" if path else "start an improvement with: kaizen init NAME"
        found = checked_object(path or improvement.path(EVALUATION_FILE), breaches, hint)
    except InputError as error:
        note_unreadable(shown, error, breaches)
        return None
    if found is None:
        return None
    text, document = found

    def report(pointer: str, message: str, hint: str) -> None:
        breach = Breach(shown, nearest_line(text, pointer), pointer, message, hint)
        if breach not in breaches.errors:  # an entry of `define` is met again wherever it is used
            breaches.errors.append(breach)

    check_no_others(document, EVALUATION_FIELDS, "", report)
    check_fields(document, EVALUATION_FIELDS, "", report, ("evaluators",))
    hashes: dict[str, str] = {}
    read_file = file_reader(improvement, hashes)
    raw, entries = object_field(document, "define"), list_field(document, "evaluators")
    seed = document.get("seed", DEFAULT_SEED)
    return Evaluation(
        path=shown,
        text=text,
        seed=int(seed) if is_whole(seed) else DEFAULT_SEED,
        include=checked_includes(improvement, list_field(document, "include"), report),
        evaluators=[expanded_value(entry, raw, read_file, f"/evaluators/{index}", report) for index, entry in enumerate(entries)],
        define={name: expanded_value(item, raw, read_file, f"/define{pointer_token(name)}", report) for name, item in raw.items()},
        acceptance=checked_acceptance(document, report),
        reliability=checked_block(document, "reliability", RELIABILITY, report) if "reliability" in document else None,
        document=document,
        metrics=object_field(document, "metrics"),
        file_hashes=hashes,
        read_file=read_file,
    )


def object_field(document: JsonObject, name: str) -> JsonObject:
    """The object *name* of *document*; {} when it is absent or something else."""
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def list_field(document: JsonObject, name: str) -> list[Any]:
    """The list *name* of *document*; [] when it is absent or something else."""
    value = document.get(name)
    return value if isinstance(value, list) else []


def nearest_line(text: str, pointer: str) -> int | None:
    """The line of *pointer* in the JSON *text*, or of the nearest place above it that stands there."""
    while pointer and pointer_line(text, pointer) is None:
        pointer = pointer[: pointer.rindex("/")]
    return pointer_line(text, pointer) if pointer else None


# --- Policy ----------------------------------------------------------------------------


def checked_block(document: JsonObject, name: str, block: Block, report: Report) -> JsonObject:
    """The object *name* of *document* with the defaults of *block* filled in; what is not of its kind is reported."""
    given = object_field(document, name)
    check_no_others(given, block, f"/{name}", report)
    check_fields(given, {key: kind for key, (kind, _) in block.items()}, f"/{name}", report)
    return {key: integral_as_int(given.get(key, default)) for key, (_, default) in block.items()}


def checked_acceptance(document: JsonObject, report: Report) -> JsonObject:
    """The acceptance policy of *document*; derived metrics, which this version does not measure, are refused."""
    acceptance = checked_block(document, "acceptance", ACCEPTANCE, report)
    wanted = acceptance["minimum_pass_k"]
    if isinstance(wanted, dict):
        check_no_others(wanted, PASS_K_FIELDS, "/acceptance/minimum_pass_k", report)
        check_fields(wanted, PASS_K_FIELDS, "/acceptance/minimum_pass_k", report, PASS_K_FIELDS)
    pointer = "/metrics" if document.get("metrics") else "/acceptance/metrics" if acceptance["metrics"] else ""
    if pointer:
        report(pointer, "this version does not measure derived metrics", "take the block out: what is not measured cannot pass")
    return acceptance


def exact_fraction(value: "int | float") -> "Fraction":
    """*value* as the fraction that its shortest decimal writes: 0.3 is 3/10.

    >>> exact_fraction(0.3)
    Fraction(3, 10)
    """
    from fractions import Fraction

    return Fraction(repr(value))


# --- References ------------------------------------------------------------------------


class BadReference(InputError):
    """A `$use` or `$file` that leads nowhere; `pointer` is where it stands."""

    def __init__(self, pointer: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.pointer = pointer


def expand_references(
    value: Any, define: JsonObject, read_file: ReadFile, pointer: str = "", *, inside: tuple[str, ...] = (), depth: int = 0
) -> Any:
    """*value*, which stands at *pointer*, with each `$use` and `$file` in it replaced by what it names.

    *define* holds the entries that `$use` names, *read_file* gives what a file holds or raises InputError;
    *inside* are the names being expanded, *depth* the levels so far. Raises BadReference.
    """
    if depth > MAX_DEPTH:
        raise BadReference(pointer[:200], f"references nest more than {MAX_DEPTH} levels deep")

    def below(item: Any, place: str, names: tuple[str, ...] = inside) -> Any:
        return expand_references(item, define, read_file, place, inside=names, depth=depth + 1)

    if isinstance(value, list):
        return [below(item, f"{pointer}/{index}") for index, item in enumerate(value)]
    if not isinstance(value, dict) or "$literal" in value:
        return value
    if "$use" not in value and "$file" not in value:
        return {key: below(item, pointer + pointer_token(key)) for key, item in value.items()}
    reference = "$use" if "$use" in value else "$file"
    name, place = value[reference], f"{pointer}/{reference}"
    if not isinstance(name, str) or not name:
        raise BadReference(place, f"{reference} must be a text that names something", 'write {"$literal": …} around it if it is none')
    if f"{reference} {name}" in inside:
        raise BadReference(place, f"{quoted(name)} is made from itself", "break the circle")
    names = (*inside, f"{reference} {name}")
    others = {key: below(item, pointer + pointer_token(key)) for key, item in value.items() if key != reference}
    if reference == "$file":
        if others:
            raise BadReference(pointer, "nothing can stand beside $file", "put the $file into 'define' and add keys beside its $use")
        try:
            return below(read_file(name), place, names)
        except BadReference as error:  # inside the file; its place there says little without the file's name
            raise BadReference(place, f"in {quoted(name)}{error.pointer.removeprefix(place)}: {error.message}", error.hint) from None
        except InputError as error:
            raise BadReference(place, error.message, error.hint) from None
    if name not in define:
        raise BadReference(place, f"'define' has no entry {quoted(name)}", did_you_mean(name, define) or "write it into 'define'")
    used = below(define[name], f"/define{pointer_token(name)}", names)
    if others and not isinstance(used, dict):
        raise BadReference(pointer, f"keys can only stand beside $use when {quoted(name)} is an object")
    return {**used, **others} if others else used


def expanded_value(value: Any, define: JsonObject, read_file: ReadFile, pointer: str, report: Report) -> Any:
    """*value* with its references replaced; as it is, and the reason reported, when one leads nowhere."""
    try:
        return expand_references(value, define, read_file, pointer)
    except BadReference as error:
        report(error.pointer, error.message, error.hint)
        return value


def case_entries(case: Case, evaluation: Evaluation, breaches: Breaches) -> list[JsonObject]:
    """The evaluators that *case* brings itself, with references replaced; only the improvement's own cases may use `$file`."""
    is_own = case.path == os.path.join(os.path.dirname(evaluation.path), CASES_FILE)

    def report(pointer: str, message: str, hint: str) -> None:
        breaches.add(case.path, case.line, pointer, message, hint)

    entries = list_field(case.document, "evaluators")
    reader = evaluation.read_file if is_own else refuse_file
    return [expanded_value(entry, evaluation.define, reader, f"/evaluators/{index}", report) for index, entry in enumerate(entries)]


def refuse_file(name: str) -> Any:
    """Raises InputError: a case of an included file brings no files of its own."""
    raise InputError(f"a case of an included file cannot use $file {quoted(name)}", "write the text into the case")


def file_reader(improvement: Improvement, hashes: dict[str, str]) -> ReadFile:
    """A function that gives what a file of *improvement* holds, read once; its SHA-256 goes into *hashes*.

    It raises InputError for a path that leaves the folder, a file that is not there, and JSON that is not right.
    """
    contents: JsonObject = {}

    def read(name: str) -> Any:
        if name not in contents:
            path = os.path.normpath(improvement.path(name))
            if os.path.isabs(name) or not is_inside(improvement.folder, path):
                raise InputError(f"file {quoted(name)} lies outside the improvement folder", "put a copy of it into the folder")
            if not os.path.isfile(path):
                raise InputError(f"file {quoted(name)} does not exist", f"put it into {improvement.shown()}")
            text = read_text(path)
            contents[name] = parsed_file(name, text)
            hashes[name] = sha256_hex(text)
        return contents[name]

    return read


def parsed_file(name: str, text: str) -> Any:
    """The value of the JSON *text*, else the text itself; a name that ends in .json must hold JSON."""
    try:
        return parse_json(text)
    except JsonError as error:
        if name.lower().endswith(".json"):
            line = refused_line(text, error)
            raise InputError(f"file {quoted(name)}, line {line or '?'}: {error.message}", error.hint) from None
        return text

# endregion

# region cases/decision.py
# =============================================================================
# decision.yaml: what a person decided, and about which evidence.
#
#     status: accepted           # pending | accepted | accepted_with_conditions | rejected
#     evidence: sha256:…         # what this decision is about; filled in by review
#     decided_by: "Ada"
#     decided_at: "2026-01-02T03:04:05.678Z"
#     rationale: "both regressions are wording only"
#     conditions: []
#     via: claude-code           # only when it was recorded from inside a coding agent
#
# Read and written in the small part of YAML that foundation.frontmatter documents.
# =============================================================================

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

# endregion

# region cases/scaffold.py
# =============================================================================
# A new improvement folder: an issue to describe, two example cases, one evaluator.
# =============================================================================

INIT_ISSUE = r"""# IMPROVEMENT

**What went wrong.** One real conversation or task in which the agent did the wrong thing, and why it matters.

**What good looks like.** What the agent should have done. Each sentence here should be a case in
`test_cases.jsonl`, or a rule in `evaluation.json`.

**What may change.** The prompt, a tool, the model, the code; and what must stay as it is.
"""
INIT_CASES = r"""{"id": "refund-within-30-days", "input": {"message": "I bought a lamp from you 10 days ago and want my money back. Is that possible?"}, "expected": {"says": ["refund"]}, "split": "development", "tags": ["refund"], "source": {"kind": "synthetic"}, "notes": "The case that goes wrong today. Replace both with yours: one line a case."}
{"id": "refund-after-60-days", "input": {"message": "I bought a lamp from you 60 days ago and want my money back. Is that possible?"}, "expected": {"says": ["30 days"]}, "split": "development", "tags": ["refund"], "critical": true, "source": {"kind": "synthetic"}, "notes": "A case that is right today and must stay right; critical: one failure here rejects the candidate."}
"""
INIT_EVALUATION = r"""{
  "version": 1,
  "evaluators": [
    {"id": "says", "type": "contains", "values": {"$case": "/expected/says"}, "ignore_case": true}
  ]
}
"""
IMPROVEMENT_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?\Z")
REGRESSION_DATASET = "datasets/regression.jsonl"


def scaffold_improvement(name: str) -> tuple[Improvement, list[str], list[str]]:
    """The new improvement *name* under improvements/, the names of its files, and the datasets that it includes.

    That is datasets/regression.jsonl when it exists. Raises UsageError for a name that is no plain folder name,
    RefusedError when something is there already.
    """
    if not IMPROVEMENT_NAME.match(name):
        last = os.path.basename(name.replace("\\", "/").rstrip("/"))
        hint = f"the folder is made under {IMPROVEMENTS_FOLDER}/, so write: kaizen init {last}"
        raise UsageError(
            f"{quoted(name)} cannot name an improvement",
            hint if IMPROVEMENT_NAME.match(last) else "use 1 to 64 letters, digits, '-', '_' or '.', with a letter or digit in front",
        )
    improvement = Improvement(os.path.join(IMPROVEMENTS_FOLDER, name))
    folder = improvement.folder
    if os.path.lexists(folder) and not (os.path.isdir(folder) and not os.listdir(folder)):
        raise RefusedError(f"{improvement.shown()}: is there already; nothing was changed", "choose another name", "existing_folder")
    make_folder(improvement.folder)
    includes = [REGRESSION_DATASET] if os.path.isfile(os.path.join(improvement.outer_folder(), REGRESSION_DATASET)) else []
    line = f'\n  "include": ["../../{REGRESSION_DATASET}"],' if includes else ""
    evaluation = INIT_EVALUATION.replace('"version": 1,', f'"version": 1,{line}')
    contents = {"issue.md": INIT_ISSUE.replace("IMPROVEMENT", name), CASES_FILE: INIT_CASES, EVALUATION_FILE: evaluation}
    for file, text in contents.items():
        create_file(improvement.path(file), text)
    return improvement, list(contents), includes

# endregion

# region runs/observation.py
# =============================================================================
# Observations: the raw evidence of one trial each, a line of `<stage>.jsonl`.
#
#     {"case_id": "refund-1", "trial": 1, "input_fingerprint": "sha256:…", "status": "completed",
#      "output": "…", "steps": […], "execution": {"duration_ms": 412.7, "exit_code": 0, "attempts": [],
#      "started_at": "2026-01-02T03:04:05.678Z", "worker": 1}}
#
# A field that the runner did not report is absent, never null (but for `output`, which may be
# null). `error` {"class", "type", "message", "stderr_tail"} is there unless the status is
# completed; of a completed trial the end of standard error stands in `execution`. Two runs
# of a deterministic agent differ in `execution` and `stderr_tail` alone. Secrets are masked
# in everything but the fields that name the trial; `redacted` [{"pointer", "family", "count"}]
# lists them where there were any.
# =============================================================================

COMPLETED = "completed"
NOT_RUN = "not_run"
CANCELLED = "cancelled"
STATUSES = (COMPLETED, "error", "timeout", "protocol_error", CANCELLED, NOT_RUN)
ERROR_CLASSES = ("agent", "runner", "timeout", "protocol", "environment", "cancelled")
MAX_TRIALS = 1000  # repetitions of a case; a stage file that claims more would make every table as long as it says
# What a runner may report, in the order in which it is written.
REPORTED_FIELDS = (
    "output", "steps", "tool_calls", "agents", "usage", "cost", "state", "files", "evidence", "finish_reason", "metadata", "log", "notes",
)
# What names the trial, and must stay as it is to be found again.
NAMING_FIELDS = ("case_id", "trial", "input_fingerprint", "status", "redacted")


class Attempt(NamedTuple):
    """What one attempt at a trial gave: status, the runner's fields, the error, and what the engine measured.

    `fields` has keys of REPORTED_FIELDS only; beside them, and in `error`, `redacted` lists what was masked before a
    text was cut or in an earlier recording. `error` is None exactly when the status is completed.
    `duration_ms` and `exit_code` are None when there is nothing to measure; `stderr` is the tail that is kept.
    """

    status: str
    fields: JsonObject
    error: JsonObject | None
    started_at: str
    duration_ms: float | None = None
    exit_code: int | None = None
    stderr: str = ""


def observation_document(case_id: str, trial: int, input_fingerprint: str, attempt: Attempt, worker: int) -> JsonObject:
    """The observation of a trial whose last *attempt* was made by *worker*, with its keys in their order."""
    document: JsonObject = {"case_id": case_id, "trial": trial, "input_fingerprint": input_fingerprint, "status": attempt.status}
    document.update((name, attempt.fields[name]) for name in REPORTED_FIELDS if name in attempt.fields)
    document["execution"] = {
        "duration_ms": None if attempt.duration_ms is None else round(attempt.duration_ms, 3),
        "exit_code": attempt.exit_code,
        "attempts": [],
        "started_at": attempt.started_at,
        "worker": worker,
    }
    if attempt.error is not None:
        document["error"] = {**attempt.error, "stderr_tail": attempt.stderr}
    elif attempt.stderr:
        document["execution"]["stderr_tail"] = attempt.stderr
    known = [*attempt.fields.get("redacted", ()), *document.get("error", {}).pop("redacted", ())]
    if known:
        document["redacted"] = known
    return document


def masked_observation(document: JsonObject, exact: list[str]) -> tuple[JsonObject, bytes]:
    """(*document* with its secrets and the values *exact* masked and listed, its line without line end)."""
    line = encode_compact(document).encode("utf-8")
    evidence = {name: value for name, value in document.items() if name not in NAMING_FIELDS}
    fingerprint = document["input_fingerprint"].encode("utf-8")  # no evidence, and long enough to be looked at twice
    masked, hits = redact_evidence(evidence, exact, line.replace(fingerprint, b""))
    known = document.pop("redacted", [])
    if not hits and not known:
        return document, line
    document.update(masked)
    listed = [hit for hit in known if follow_pointer(document, pointer_tokens(hit["pointer"]))[0]] + hits
    if listed:
        document["redacted"] = listed
    return document, encode_compact(document).encode("utf-8")


def error_document(kind: str, error_type: str, message: str) -> JsonObject:
    """The `error` of an observation: *kind* is its class, *error_type* says in one word which of them."""
    return {"class": kind, "type": error_type, "message": message}


def check_observation(value: JsonObject, place: str) -> JsonObject:
    """*value*, when it says of which trial it is and how that ended. Raises InputError that begins with *place*."""
    trial = value.get("trial")
    if not isinstance(value.get("case_id"), str):
        problem = "has no case_id"
    elif not isinstance(trial, int) or isinstance(trial, bool) or not 1 <= trial <= MAX_TRIALS:
        problem = f"has no trial (a number from 1 to {MAX_TRIALS:,})"
    elif value.get("status") not in STATUSES:
        problem = f"has the status {quoted(str(value.get('status')))}, which is none of {', '.join(STATUSES)}"
    else:
        return value
    raise InputError(f"{place}: {problem}, so it is no observation", "observations are written by `kaizen run`", "invalid_file")


def iter_observations(path: str) -> Iterator[Line]:
    """Each observation of the stage file *path*, in order, read as it is asked for. Raises InputError with path:line."""
    shown = shown_path(path)
    hint = "make it with: kaizen run IMPROVEMENT --stage STAGE -- COMMAND"
    for line in read_json_lines(path, hint):
        check_observation(line.value, f"{shown}:{line.number}")
        yield line


class LineDigest:
    """SHA-256 of lines joined by LF, whatever their line ends were, and their number."""

    def __init__(self) -> None:
        self.lines = 0
        self.hash = hashlib.sha256()

    def add(self, raw: bytes) -> None:
        """Takes the next line, without its line end."""
        self.hash.update(b"\n" + raw if self.lines else raw)
        self.lines += 1

    def hexdigest(self) -> str:
        """The digest of the lines so far."""
        return self.hash.hexdigest()


def lines_digest(path: str) -> LineDigest:
    """The digest of the lines of the file *path* that are not blank. Raises InputError."""
    digest = LineDigest()
    for _, raw in raw_lines(path):
        digest.add(raw)
    return digest


def file_digest(path: str) -> str:
    """SHA-256 of the lines of the file *path*, as `LineDigest` defines it. Raises InputError."""
    return lines_digest(path).hexdigest()

# endregion

# region runs/cuts.py
# =============================================================================
# Cuts texts short, masked first: half a secret would not be recognised any more.
#
# Each function gives the text and what was masked in it, as the observation lists it. A text
# that is kept whole is not looked at here: it is masked with the rest of its observation.
# =============================================================================

CUT_MARGIN = 16 << 10  # looked at beyond what is kept: more than any secret is long
EXCERPT = 240  # characters of standard output shown from each end in a protocol error
CONTINUATION = bytes(range(0x80, 0xC0))  # of a character in UTF-8 that was cut in two


def masked_part(text: str, pointer: str) -> tuple[str, list[JsonObject]]:
    """(*text* masked, what was masked in it), for what stands at *pointer* of the observation."""
    masked, counts = redact_text(text, environment_secrets(os.environ))
    return masked, [{"pointer": pointer, "family": family, "count": count} for family, count in counts.items()]


def cut_head(text: str, limit: int, pointer: str) -> tuple[str, list[JsonObject]]:
    """*text*, or its first *limit* characters and the number left out."""
    if len(text) <= limit:
        return text, []
    masked, hits = masked_part(text[: limit + CUT_MARGIN], pointer)
    return f"{masked[:limit]}… ({len(text) - limit} more characters)", hits


def cut_tail(data: bytes, limit: int, cut: int, what: str, pointer: str) -> tuple[str, list[JsonObject]]:
    """The last *limit* bytes of *data* as text, headed by a line that says how many of *what* were cut off before; *cut* were already."""
    hidden = cut + len(data) - limit
    if hidden <= 0:
        return data.decode("utf-8", "replace"), []
    masked, hits = masked_part(data[-limit - CUT_MARGIN :].lstrip(CONTINUATION).decode("utf-8", "replace"), pointer)
    kept = (masked.encode("utf-8") if hits else data)[-limit:].lstrip(CONTINUATION).decode("utf-8", "replace")
    return f"[{counted(hidden, 'byte')} of {what} before this were cut]\n{kept}", hits


def cut_middle(stdout: bytes, pointer: str) -> tuple[str, list[JsonObject]]:
    """The beginning and the end of what was printed, for a protocol error; '' when nothing was."""
    text = stdout.decode("utf-8", "replace").strip()
    hidden = len(text) - 2 * EXCERPT
    if hidden <= 0:
        return text, []
    reach = EXCERPT + CUT_MARGIN
    masked, hits = masked_part(text if len(text) <= 2 * reach else f"{text[:reach]}\n{text[-reach:]}", pointer)
    return f"{masked[:EXCERPT]} … ({counted(hidden, 'character')} left out) … {masked[-EXCERPT:]}", hits

# endregion

# region runs/protocol.py
# =============================================================================
# Runner protocol 1.2: the request a runner gets, and what counts as its answer.
#
#     request  {"protocol": "1.2", "case": {"id": "refund-1", "input": …, "context": null},
#               "run": {"stage": "candidate", "trial": 1, "repetitions": 5, "attempt": 1, "seed": 4242}}
#     answer   {"output": …}  with steps, usage, cost … as it likes, or {"error": {"type", "message", "class"}}
#
# The answer is one JSON object: all of standard output, or its last line that is not
# blank; earlier lines are kept as `log`. Nothing of a case but id, input and context is
# sent. What a runner says about having passed is kept in `metadata.claimed` and ignored.
# =============================================================================

PROTOCOL = "1.2"
STDOUT_LIMIT = 8 << 20  # bytes
STDERR_LIMIT = 64 << 10  # bytes kept of the end of standard error, and of the log lines
MESSAGE_LIMIT = 4000  # characters kept of an error message

# Each escape of a JSON text as one match; group 1 is half of a surrogate pair without its other half.
JSON_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)

CLAIMS = ("passed", "pass", "success", "correct", "score", "grade", "verdict", "outcome")
IGNORED = ("protocol", "request")

LABEL = Kind(lambda value: isinstance(value, str) or is_number(value), "a text or a number")
AMOUNT = Kind(lambda value: is_number(value) and value >= 0, "a number, 0 or more", shows_value=True)
STEP_FIELDS = {
    **dict.fromkeys(("kind", "name", "role", "text", "agent"), ANY_TEXT),
    **dict.fromkeys(("id", "parent", "batch", "started_at"), LABEL),
    "status": one_of("ok", "error", "denied", "timeout"),
    "turn": COUNT,
    "duration_ms": AMOUNT,
    "truncated": list_of(ANY_TEXT, "names of fields"),
}
FILE_FIELDS = {
    "change": one_of("added", "modified", "deleted", "unchanged"),
    **dict.fromkeys(("sha256", "text"), ANY_TEXT),
    **dict.fromkeys(("bytes", "added_lines", "removed_lines"), COUNT),
}
ERROR_FIELDS = {"type": ANY_TEXT, "message": ANY_TEXT, "class": one_of("agent", "environment")}
ANSWER_FIELDS = {
    "output": ANYTHING,
    **dict.fromkeys(("steps", "tool_calls"), list_of(OBJECT, "objects")),
    "agents": list_of(ANY_TEXT, "names"),
    **dict.fromkeys(("usage", "cost", "state", "files", "evidence", "metadata", "error"), OBJECT),
    "finish_reason": ANY_TEXT,
}
# Fields of an answer that are objects of their own, with their kinds and what must be there.
INNER_FIELDS: tuple[tuple[str, dict[str, Kind], tuple[str, ...]], ...] = (
    ("usage", dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), AMOUNT), ()),
    ("cost", {"total_usd": AMOUNT}, ()),
    ("error", ERROR_FIELDS, ("message",)),
)


class TrialRequest(NamedTuple):
    """One attempt at one trial, as a worker gets it."""

    case: Case
    stage: str
    trial: int
    repetitions: int
    attempt: int
    seed: int


class ProtocolError(Exception):
    """An answer that cannot be used: its type in one word, and a message."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.message = message


def request_document(request: TrialRequest) -> JsonObject:
    """What the runner gets to see of *request*."""
    document = request.case.document
    return {
        "protocol": PROTOCOL,
        "case": {"id": request.case.id, "input": document["input"], "context": document.get("context")},
        "run": {
            "stage": request.stage,
            "trial": request.trial,
            "repetitions": request.repetitions,
            "attempt": request.attempt,
            "seed": request.seed,
        },
    }


def request_line(request: TrialRequest) -> bytes:
    """The request as one line of JSON."""
    return encode_compact(request_document(request)).encode("utf-8") + b"\n"


def read_answer(stdout: bytes) -> tuple[JsonObject, JsonObject | None]:
    """(the fields to record, the runner's own `error` or None) of what a runner printed. Raises ProtocolError."""
    value, log, is_repaired = answer_value(stdout)
    fields, error = answer_fields(value)
    if log:
        fields["log"], hits = cut_tail(log, STDERR_LIMIT, 0, "standard output", "/log")
        fields.update({"redacted": hits} if hits else {})
    if is_repaired:
        fields.setdefault("notes", []).append("half of a surrogate pair in the answer was replaced by U+FFFD")
    return fields, error


def answer_value(stdout: bytes) -> tuple[JsonObject, bytes, bool]:
    """(the answer's object, the lines before it, whether a lone surrogate was replaced). Raises ProtocolError."""
    body = stdout.rstrip()
    if not body:
        raise ProtocolError("no_answer", "nothing was printed on standard output; one JSON object is expected there")
    start = body.rfind(b"\n") + 1
    if start and body.lstrip().startswith(b"{"):  # perhaps an object over several lines
        try:
            value, is_repaired = parse_answer(body, 0)
            if isinstance(value, dict):
                return value, b"", is_repaired
        except ProtocolError:
            if not body[start:].strip(b"]} \t"):  # an object over several lines, but a broken one
                raise
    value, is_repaired = parse_answer(body, start)
    if not isinstance(value, dict):
        raise ProtocolError("not_an_object", f"the last line on standard output is a JSON {json_type(value)}, not an object")
    return value, body[:start].strip(), is_repaired


def parse_answer(stdout: bytes, start: int) -> tuple[Any, bool]:
    """(the JSON value of *stdout* from byte *start*, whether a lone surrogate was replaced). Raises ProtocolError."""
    try:
        text = stdout[start:].decode("utf-8").lstrip("\ufeff")
    except UnicodeDecodeError as error:
        raise ProtocolError("not_utf8", f"the answer is not UTF-8 (byte {start + error.start} of standard output)") from None
    try:
        return parse_json(text), False
    except JsonError as error:
        repaired = JSON_ESCAPE.sub(lambda match: "\\ufffd" if match[1] else match[0], text)
        if repaired != text:
            try:
                return parse_json(repaired), True
            except JsonError:
                pass
        where = "the last line on " if start else ""
        raise ProtocolError("not_json", f"{where}standard output is not one JSON object: {error.message}") from None


def answer_fields(answer: JsonObject) -> tuple[JsonObject, JsonObject | None]:
    """(the fields of *answer* to record, its `error` or None), null fields left out. Raises ProtocolError for a wrong shape."""
    given = present(answer)
    check_answer(given)
    fields = {key: value for key, value in given.items() if key in ANSWER_FIELDS}
    if "output" in answer:
        fields["output"] = answer["output"]
    error = fields.pop("error", None)
    if "output" not in fields and error is None:
        found = f"; it has {listed(map(quoted, answer), 5)}" if answer else ""
        raise ProtocolError("no_output", f"the answer has neither 'output' nor 'error'{found}")
    if "tool_calls" in fields and "steps" not in fields:
        fields["steps"] = [{"kind": "tool", **call} for call in fields.pop("tool_calls")]
    claims = {key: value for key, value in given.items() if key in CLAIMS and key not in ANSWER_FIELDS}
    if claims:
        metadata = fields.get("metadata", {})
        known = metadata.get("claimed")
        fields["metadata"] = {**metadata, "claimed": {**(known if isinstance(known, dict) else {}), **claims}}
    unknown = [key for key in answer if key not in ANSWER_FIELDS and key not in CLAIMS and key not in IGNORED]
    if unknown:
        fields["notes"] = [unknown_field_note(key) for key in unknown[:5]]
    return fields, error


def reported_error(error: JsonObject, kind: str) -> JsonObject:
    """The observation's `error` for one that the runner reported, of class *kind* unless it says otherwise."""
    kind = error.get("class") or kind
    name, hits = cut_head(error.get("type") or "reported", MESSAGE_LIMIT, "/error/type")
    message, more = cut_head(error["message"], MESSAGE_LIMIT, "/error/message")
    return {**error_document(kind, name, message), **({"redacted": hits + more} if hits or more else {})}


def present(document: JsonObject) -> JsonObject:
    """*document* without the fields that are null, which count as absent."""
    return {key: value for key, value in document.items() if value is not None}


def check_answer(answer: JsonObject) -> None:
    """Raises ProtocolError that names the first field of *answer* which is not as the protocol says."""
    check_fields(answer, ANSWER_FIELDS, "", refuse_shape)
    for name, kinds, required in INNER_FIELDS:
        if name in answer:
            check_fields(present(answer[name]), kinds, f"/{name}", refuse_shape, required)
    for name, required in (("steps", ("kind",)), ("tool_calls", ("name",))):
        for index, item in enumerate(answer.get(name, ())):
            check_fields(present(item), STEP_FIELDS, f"/{name}/{index}", refuse_shape, required)
    for path, item in answer.get("files", {}).items():
        place = "/files" + pointer_token(path)
        check_value(item, OBJECT, place, refuse_shape)
        check_fields(present(item), FILE_FIELDS, place, refuse_shape, ("change",))


def refuse_shape(pointer: str, message: str, hint: str) -> NoReturn:
    """Raises ProtocolError for what stands at *pointer* in the answer."""
    raise ProtocolError("wrong_shape", f"answer#{visible(pointer)} {message}" + (f" ({hint})" if hint else ""))


@lru_cache(64)
def unknown_field_note(key: str) -> str:
    """What is noted about a field of an answer that is not in the protocol."""
    near = nearest(key, ANSWER_FIELDS)
    return f"field {quoted(key)} is not in the protocol and was left out" + (f" (did you mean '{near}'?)" if near else "")

# endregion

# region runs/commit.py
# =============================================================================
# Which commit a run was made from, asked of git without running what a repo configures.
#
#     {"hash": "4c9f…", "branch": "main", "dirty": false, "reason": null}
#
# What is not known is null and `reason` says why: no repository, no commit yet, git missing or
# too slow. Hooks, pagers, file-system monitors and content filters of the repository are
# switched off, submodules are not entered, nothing is fetched and no lock is taken. With
# filters off a file that one would change on its way in (git-lfs) may count as changed.
# =============================================================================

GIT_SECONDS = 5.0
GIT = ["git", "--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
STATUS = ["status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--untracked-files=all", "--ignore-submodules=dirty"]
# What the engine itself writes into improvements says nothing about the agent.
OWN_FILES = "*.jsonl *.meta.json *.unfinished *.lock *.files/** comparison.json reliability.json review.* decision.yaml".split()
# Variables with which a caller that is itself run by git (a hook) points at another repository.
REDIRECTING = "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_PREFIX GIT_OBJECT_DIRECTORY GIT_CONFIG_PARAMETERS".split()


def commit_of(folder: str, improvement_folder: str) -> JsonObject:
    """Commit, branch and whether anything differs from it in the repository around *folder*, evidence of improvements left out."""
    unknown: JsonObject = {"hash": None, "branch": None, "dirty": None, "reason": None}
    settings = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        top = ask_git(["rev-parse", "--show-toplevel"], folder, settings)
        if top.end != EXITED or top.exit_code:
            return {**unknown, "reason": git_failure(top)}
        root = os.fsdecode(top.stdout.rstrip(b"\n"))
        settings.update(filters_off(ask_git(["config", "--null", "--name-only", "--get-regexp", r"^filter\."], root, settings)))
        status = ask_git([*STATUS, "--", ":/", *own_files(root, improvement_folder)], root, settings)
    except CannotStart as error:
        missing = "git is not installed" if "No such file" in str(error) else f"git cannot be started: {error}"
        return {**unknown, "reason": missing}
    entries = status.stdout.split(b"\0")
    head = dict(entry[2:].split(b" ", 1) for entry in entries if entry.startswith(b"# ") and b" " in entry[2:])
    name, branch = head.get(b"branch.oid", b"").decode(), os.fsdecode(head.get(b"branch.head", b""))
    if not name or status.end == EXITED and status.exit_code:
        return {**unknown, "reason": git_failure(status)}
    has_commit = re.fullmatch("[0-9a-f]{40,64}", name) is not None
    is_dirty = any(entry and not entry.startswith(b"# ") for entry in entries)
    return {
        "hash": name if has_commit else None,
        "branch": None if branch == "(detached)" else branch.encode("utf-8", "replace").decode(),
        "dirty": True if is_dirty else False if status.end == EXITED else None,
        "reason": None if has_commit else "there is no commit yet",
    }


def ask_git(arguments: list[str], folder: str, settings: dict[str, str]) -> Ended:
    """What `git *arguments*` in *folder* answered. Raises CannotStart."""
    environment = {name: value for name, value in os.environb.items() if os.fsdecode(name) not in REDIRECTING}
    environment.update((name.encode(), os.fsencode(value)) for name, value in settings.items())
    return run_program([*GIT, *arguments], cwd=folder, environment=environment, timeout_seconds=GIT_SECONDS)


def git_failure(ended: Ended) -> str:
    """Why git did not answer, in a few words."""
    text = ended.stderr.decode("utf-8", "replace").strip()
    if ended.end != EXITED:
        return f"git did not answer within {GIT_SECONDS:g} s"
    if "not a git repository" in text:
        return "not in a git repository"
    if "must be run in a work tree" in text:
        return "the git repository has no work tree"
    return visible(text.split("\n", 1)[0]) or f"git ended with exit code {ended.exit_code}"


def filters_off(configured: Ended) -> dict[str, str]:
    """Environment that empties every content filter that *configured* names; they are commands of the repository's choice."""
    names = [os.fsdecode(name) for name in configured.stdout.split(b"\0") if name]
    settings = {"GIT_CONFIG_COUNT": str(len(names))}
    for index, name in enumerate(names):
        settings[f"GIT_CONFIG_KEY_{index}"] = name
        settings[f"GIT_CONFIG_VALUE_{index}"] = "false" if name.endswith(".required") else ""
    return settings


def own_files(root: str, improvement_folder: str) -> list[str]:
    """Pathspecs that leave out what the engine writes into this improvement and its neighbours below *root*."""
    place = os.path.relpath(os.path.realpath(improvement_folder), os.path.realpath(root))
    if place.startswith(".."):
        return []
    neighbours = "" if place == "." else os.path.join(re.sub(r"([*?\[\\])", r"\\\1", os.path.dirname(place)), "*")
    return [f":(exclude,top,glob){os.path.join(neighbours, pattern)}" for pattern in OWN_FILES]

# endregion

# region runs/plan.py
# =============================================================================
# What a run is asked to do: which cases, and with which seeds.
# =============================================================================


def trial_seed(seed: int, case_id: str, trial: int) -> int:
    """The seed of one trial, in 0..2^31-1; it depends on nothing else, so both stages get the same.

    >>> trial_seed(4242, "refund-001", 1) == trial_seed(4242, "refund-001", 1) != trial_seed(4242, "refund-001", 2)
    True
    """
    digest = hashlib.sha256(f"{seed}\n{case_id}\n{trial}".encode()).digest()  # an id holds no line end
    return int.from_bytes(digest[:4], "big") >> 1


def select_cases(dataset: Dataset, ids: list[str], tags: list[str], splits: list[str]) -> list[Case]:
    """The cases that have one of *ids*, one of *tags* and one of *splits* (an empty list asks nothing), in dataset order.

    Raises UsageError that repeats the selector when one of its values matches no case, or all together match none.
    """
    if not dataset.cases:
        raise UsageError("there are no test cases, so there is nothing to run", "add cases to test_cases.jsonl", "no_cases")
    for option, values, found_in in (("--id", ids, case_ids), ("--tag", tags, case_tags), ("--split", splits, case_splits)):
        known = {name for case in dataset.cases.values() for name in found_in(case)}
        # A misspelt name must not be answered with one that only the holdout has.
        shown = {name for case in dataset.cases.values() if case.id not in dataset.holdout for name in found_in(case)}
        for value in values:
            if value not in known:
                hint = did_you_mean(value, shown)
                raise UsageError(f"{option} {quoted(value)} matches no case; nothing was run", hint, "no_case_selected")
    chosen = [
        case
        for case in dataset.cases.values()
        if (not ids or case.id in ids)
        and (not tags or not set(tags).isdisjoint(case_tags(case)))
        and (not splits or not set(splits).isdisjoint(case_splits(case)))
    ]
    if not chosen:
        selectors = [f"--id {quoted(name)}" for name in ids]
        selectors += [f"--tag {quoted(name)}" for name in tags] + [f"--split {quoted(name)}" for name in splits]
        hint = "a case must meet each kind of selector"
        raise UsageError(f"no case meets {listed(selectors)}; nothing was run", hint, "no_case_selected")
    return chosen


def case_ids(case: Case) -> list[str]:
    """The id of *case*, in a list."""
    return [case.id]


def case_tags(case: Case) -> list[str]:
    """The tags of *case*."""
    return list(case.document.get("tags") or ())


def case_splits(case: Case) -> list[str]:
    """The split of *case* in a list; none when it has none."""
    split = case.document.get("split")
    return [split] if split else []

# endregion

# region runs/journal.py
# =============================================================================
# The files of a stage while it is run: observations, meta file, what was superseded.
#
# Each finished trial is appended in one write. A line that no longer counts (its case has
# another input or is gone, it never ran, or it is to be run again) goes to
# `<stage>.superseded.jsonl` before the first new one is written. When everything asked for is there, the
# lines stand in the order (trial, place of the case). An overwrite is written beside the old
# files, as `<stage>.jsonl.unfinished`, and takes their place at the end.
#
#     <stage>.meta.json: {"version": 1, "stage", "command", "mode", "cwd", "repetitions", "selection", "seed", "cases",
#     "planned", "selected", "dataset_fingerprint", "commit", "timeout_seconds", "jobs", "started_at", "finished_at",
#     "engine", "complete", "counts": {status: n}, "observations": {"lines", "sha256"}, "replayed_from"}
# =============================================================================

if TYPE_CHECKING:
    pass

STAGE_META = ".meta.json"
SUPERSEDED = ".superseded.jsonl"
UNFINISHED = ".unfinished"

# What is to become of a stage that is there already.
REFUSE, RESUME, OVERWRITE, RESUME_OVERWRITE, ONLY_ERRORS = "refuse", "resume", "overwrite", "resume_overwrite", "only_errors"
# What must be the same for evidence to be added to: {key of the meta file: words}.
SAME_RUN = {
    "mode": "way of running",
    "command": "command",
    "cwd": "working directory",
    "seed": "seed",
    "commit": "commit",
    "replayed_from": "file",
}


def read_stage_meta(improvement: Improvement, stage: str) -> JsonObject:
    """The document `<stage>.meta.json`: how the stage was made. Raises InputError when it is absent or broken."""
    return read_json_object(improvement.stage_file(stage, STAGE_META), "it is written by `kaizen run`")


def checked_repetitions(meta: JsonObject, shown: str) -> int:
    """The repetitions that the meta file *shown* tells. Raises InputError when that is no number of trials."""
    value = meta.get("repetitions")
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_TRIALS:
        return value
    message = f"{shown}#/repetitions: must be a whole number from 1 to {MAX_TRIALS:,}"
    raise InputError(message, "put back the file that Kaizen wrote", "invalid_file")


def stage_lines(path: str) -> Iterator[tuple[int, bytes, JsonObject]]:
    """(byte offset, bytes without line end, observation) of each line of the stage file *path*. Raises InputError."""
    shown = shown_path(path)
    with open_for_reading(path) as stream:
        offset = 0
        for number, line in enumerate(stream, 1):
            raw = bare_line(line)
            if raw:
                place = f"{shown}:{number}"
                yield offset, raw, check_observation(parse_line(raw, place), place)
            offset += len(line)


def bare_line(line: bytes) -> bytes:
    """*line* without its line end, blanks around it, and a byte-order mark."""
    return line.removeprefix(BYTE_ORDER_MARK).strip(b" \t\r\n")


def mend_last_line(path: str) -> str:
    """Cuts off a last line that was not written to its end, or ends one that lacks only its line end; a sentence about it or ''."""
    size, tail = torn_tail(path)
    if not bare_line(tail):
        return ""
    try:
        check_observation(parse_line(bare_line(tail), ""), "")
    except InputError:
        truncate_file(path, size)
        cut = counted(len(tail), "byte")
        return f"1 unfinished record was set aside: the last line of {shown_path(path)} ended in the middle ({cut} cut off)"
    append_lines(path, [b""])
    return ""


def append_lines(path: str, lines: "list[bytes] | Iterator[bytes]") -> int:
    """Appends *lines* to the file *path*, synced; returns how many. Raises InputError."""
    log = AppendLog(path)
    try:
        written = 0
        for line in lines:
            log.append_bytes(line + b"\n")
            written += 1
    finally:
        log.close()
    return written


def move_file(path: str, target: str) -> None:
    """Puts the file *path* in the place of *target*, at once. Raises InputError."""
    try:
        os.replace(path, target)
    except OSError as error:
        refuse_writing(target, error)


def refuse_other_run(shown: str, before: JsonObject, after: JsonObject) -> None:
    """Raises RefusedError, naming what differs, unless both meta documents are of one run that was interrupted."""
    differing = []
    for key, words in SAME_RUN.items():
        old, new = (side.get(key) for side in (before, after))
        if key in ("commit", "replayed_from"):
            inner = "hash" if key == "commit" else "sha256"
            old, new = (side.get(inner) if isinstance(side, dict) else None for side in (old, new))
        if old != new:
            differing.append(f"{words} ({visible(told_setting(old))} then, {visible(told_setting(new))} now)")
    if differing:
        raise RefusedError(
            f"{shown}: cannot be added to, it was made otherwise: {listed(differing)}",
            "go back to what it was made with, or use --overwrite to begin anew",
            "different_run",
        )


def told_setting(value: Any) -> str:
    """A setting of a run as a message names it."""
    return "none" if value is None else value if isinstance(value, str) else encode_compact(value)


class StageIndex:
    """Where the line of each trial stands in a stage file, by slot: (trial - 1) × cases + place of the case."""

    def __init__(self, case_ids: "list[str] | dict[str, Case]", repetitions: int) -> None:
        from array import array

        self.places = {name: place for place, name in enumerate(case_ids)}
        slots = len(self.places) * repetitions
        self.offsets: array[int] = array("q", [-1]) * slots
        self.statuses = bytearray(slots)  # 0: no line, else 1 + index into STATUSES
        self.last_slot = -1
        self.is_ordered = True

    def slot(self, case_id: str, trial: int) -> int:
        """The slot of a trial; -1 when it is not planned."""
        place = self.places.get(case_id, -1)
        slot = (trial - 1) * len(self.places) + place
        return slot if place >= 0 and slot < len(self.statuses) else -1

    def note(self, slot: int, status: str, offset: int) -> None:
        """Notes that the line at *offset* is the one of *slot*."""
        self.offsets[slot] = offset
        self.statuses[slot] = 1 + STATUSES.index(status)
        self.is_ordered = self.is_ordered and slot > self.last_slot
        self.last_slot = slot

    def status(self, case_id: str, trial: int) -> str:
        """The status of a trial; '' when it has no line."""
        code = self.statuses[self.slot(case_id, trial)]
        return STATUSES[code - 1] if code else ""

    def counts(self) -> dict[str, int]:
        """{status: number of lines}, statuses that occur only."""
        found = {name: self.statuses.count(1 + index) for index, name in enumerate(STATUSES)}
        return {name: count for name, count in found.items() if count}

    def ordered_offsets(self) -> Iterator[int]:
        """Offsets of the lines in the order (trial, place of the case)."""
        return (offset for offset in self.offsets if offset >= 0)


class StageWriter:
    """Writes the files of one stage; its caller holds the stage's lock and calls it from one thread at a time.

    *meta* describes the run and is completed here; *existing* says what becomes of a stage that is there;
    *cases* are those that the run is about. `notes` holds what the user should know.
    Raises RefusedError when *existing* does not go together with what is there.
    """

    def __init__(
        self,
        improvement: Improvement,
        stage: str,
        dataset: Dataset,
        cases: list[Case],
        meta: JsonObject,
        *,
        existing: str,
        repetitions: int = 0,
    ) -> None:
        self.improvement, self.stage, self.dataset, self.cases, self.meta = improvement, stage, dataset, cases, meta
        self.target = improvement.stage_file(stage)
        self.is_beside = existing in (OVERWRITE, RESUME_OVERWRITE)
        suffix = UNFINISHED if self.is_beside else ""
        self.path, self.meta_path = self.target + suffix, improvement.stage_file(stage, STAGE_META) + suffix
        self.log: AppendLog | None = None
        self.size = 0
        self.superseded: dict[int, str] = {}  # offset of a line that no longer counts: why
        self.notes: list[str] = []
        self.refuse_existing(existing)
        self.sweep(existing == OVERWRITE)
        has_file = os.path.exists(self.path)
        if has_file:
            self.notes += filter(None, [mend_last_line(self.path)])
        before = read_json_object(self.meta_path) if has_file and os.path.exists(self.meta_path) else None
        self.repetitions = self.settled_repetitions(repetitions, before, has_file)
        self.index = StageIndex(dataset.cases, self.repetitions)
        if not self.is_beside and os.path.exists(self.target + UNFINISHED):
            self.notes.append(f"{shown_path(self.target + UNFINISHED)}: an overwrite was interrupted; --overwrite --resume goes on with it")
        if has_file:
            if before is not None:
                refuse_other_run(shown_path(self.target), before, meta)
                meta["started_at"] = before.get("started_at", meta["started_at"])
            else:
                self.notes.append(f"{shown_path(self.meta_path)} is missing, so what made the lines that are there is not known")
            self.take_over(existing == ONLY_ERRORS)

    def refuse_existing(self, existing: str) -> None:
        """Raises RefusedError when the stage is there and nobody said what to do with it, or the other way round."""
        shown = shown_path(self.target)
        is_there = os.path.lexists(self.target)
        if existing == REFUSE and is_there:
            raise RefusedError(
                f"{shown}: is there already; nothing was run",
                "--resume runs what is missing, --only errors what has no usable evidence, --overwrite everything anew",
                "existing_stage",
            )
        if existing == ONLY_ERRORS and not is_there:
            raise RefusedError(f"{shown}: is not there, so it has no errors to run again", "leave out --only errors", "missing_stage")

    def sweep(self, begins_anew: bool) -> None:
        """Removes half-written files of a run that was killed and, when an overwrite *begins_anew*, those of an earlier one."""
        for name in os.listdir(self.improvement.folder):
            if name.endswith(".tmp") and name.startswith((f".{self.stage}.jsonl.", f".{self.stage}{STAGE_META}.")):
                discard_unfinished(self.improvement.path(name))
        beside = self.improvement.stage_file(self.stage, STAGE_META) + UNFINISHED
        if os.path.exists(beside) and not os.path.exists(self.target + UNFINISHED) and read_json_object(beside).get("complete"):
            move_file(beside, beside.removesuffix(UNFINISHED))  # killed between the two renames at the end of an overwrite
        if begins_anew:
            self.discard_beside()

    def discard_beside(self) -> None:
        """Removes what an overwrite has written beside the old files."""
        if self.is_beside:
            discard_unfinished(self.path)
            discard_unfinished(self.meta_path)

    def settled_repetitions(self, asked: int, before: JsonObject | None, has_file: bool) -> int:
        """Repetitions of the stage: as *asked*, or for 0 as before, else 1. Raises RefusedError when they would become fewer."""
        if not has_file:
            return asked or 1
        if before and before.get("repetitions") is not None:
            known = checked_repetitions(before, shown_path(self.meta_path))
        else:
            known = max((value["trial"] for _, _, value in stage_lines(self.path)), default=1)
        if asked and asked < known:
            raise RefusedError(
                f"{shown_path(self.target)}: has {counted(known, 'repetition')}; with {asked} some trials would be lost",
                f"use --repetitions {known} or more, or --overwrite",
                "fewer_repetitions",
            )
        return asked or known

    def take_over(self, drops_errors: bool) -> None:
        """Indexes the lines that count and notes the others, which are moved before the first new line is written."""
        selected = {case.id for case in self.cases} if drops_errors else set()
        for offset, _, value in stage_lines(self.path):
            slot = self.index.slot(value["case_id"], value["trial"])
            reason = self.superseded_reason(value, slot, selected)
            if reason:
                self.superseded[offset] = reason
            else:
                self.index.note(slot, value["status"], offset)

    def move_superseded(self) -> None:
        """Moves the lines that no longer count to their file."""
        if not self.superseded:
            return
        path = self.improvement.stage_file(self.stage, SUPERSEDED)
        append_lines(path, self.lines_at(list(self.superseded)))
        with replacing(self.path) as stream:
            for offset, raw, _ in stage_lines(self.path):
                if offset not in self.superseded:
                    stream.write(raw + b"\n")
        self.index = StageIndex(self.dataset.cases, self.repetitions)
        for offset, _, value in stage_lines(self.path):
            self.index.note(self.index.slot(value["case_id"], value["trial"]), value["status"], offset)
        reasons = list(self.superseded.values())
        why = listed(f"{reasons.count(reason):,} {reason}" for reason in dict.fromkeys(reasons))
        self.notes.append(f"{counted(len(reasons), 'line')} moved to {shown_path(path)}: {why}")
        self.superseded = {}

    def superseded_reason(self, value: JsonObject, slot: int, selected: set[str]) -> str:
        """Why the line *value* no longer counts; '' when it does."""
        case = self.dataset.cases.get(value["case_id"])
        if case is None or slot < 0:
            return "of cases that are gone"
        if value.get("input_fingerprint", case.input_fingerprint) != case.input_fingerprint:
            return "made from another input"
        if self.index.statuses[slot]:
            return "of trials that are there twice"
        if value["status"] in (NOT_RUN, CANCELLED):
            return "of trials that never ran"
        return "without usable evidence" if case.id in selected and value["status"] != COMPLETED else ""

    def lines_at(self, offsets: "list[int] | Iterator[int]") -> Iterator[bytes]:
        """The lines of the file at *offsets*, without their line ends."""
        with open_for_reading(self.path) as stream:
            position = 0
            for offset in offsets:
                if offset != position:
                    stream.seek(offset)
                line = stream.readline()
                position = offset + len(line)
                yield bare_line(line)

    def is_done(self, case_id: str, trial: int) -> bool:
        """True when the trial has a line."""
        return self.index.statuses[self.index.slot(case_id, trial)] != 0

    def selected_trials(self) -> Iterator[tuple[Case, int]]:
        """(case, trial) of what the run is about: trial 1 of every case, then trial 2."""
        return ((case, trial) for trial in range(1, self.repetitions + 1) for case in self.cases)

    def record(self, case_id: str, trial: int, status: str, line: bytes) -> None:
        """Appends the observation *line* (with its line end). Raises InputError when the disk says no."""
        if self.log is None:
            self.move_superseded()
            self.complete_meta(False)
            write_json(self.meta_path, self.meta)
            self.log = AppendLog(self.path)
            self.size = os.path.getsize(self.path)
        self.log.append_bytes(line)
        self.index.note(self.index.slot(case_id, trial), status, self.size)
        self.size += len(line)

    def sync_if_due(self) -> None:
        """Syncs the lines that are 200 ms old; to be called at least every 100 ms."""
        if self.log is not None:
            self.log.sync_if_due()

    def complete_meta(self, is_complete: bool) -> None:
        """Fills in what only the lines tell; `selection` is null once every planned trial has been asked for."""
        known = bytearray(self.index.statuses)
        for case, trial in self.selected_trials():
            known[self.index.slot(case.id, trial)] = 1
        planned, selected = len(known), len(known) - known.count(0)
        self.meta.update(repetitions=self.repetitions, cases=len(self.dataset.cases), planned=planned, selected=selected)
        self.meta.update(complete=is_complete, counts=self.index.counts())
        if selected == planned:
            self.meta["selection"] = None

    def finish(self, is_complete: bool) -> None:
        """Brings the lines into order, takes the old files' place after an overwrite, and writes the meta file.

        When the run is not complete the lines stay as and where they are, to be gone on with.
        """
        size = os.path.getsize(self.path) if os.path.exists(self.path) else -1
        if self.log is not None:
            self.log.close()
            if size != self.size:
                raise InputError(f"{shown_path(self.path)}: was changed by another program meanwhile", "run it anew: --overwrite")
        elif size < 0:
            return
        if is_complete:
            self.move_superseded()
        if is_complete and not self.index.is_ordered:
            with replacing(self.path) as stream:
                for line in self.lines_at(self.index.ordered_offsets()):
                    stream.write(line + b"\n")
        self.complete_meta(is_complete)
        digest = lines_digest(self.path)
        self.meta.update(finished_at=utc_now(), observations={"lines": digest.lines, "sha256": digest.hexdigest()})
        write_json(self.meta_path, self.meta)
        if is_complete and self.is_beside:
            move_file(self.path, self.target)
            move_file(self.meta_path, self.improvement.stage_file(self.stage, STAGE_META))
            discard_unfinished(self.improvement.stage_file(self.stage, SUPERSEDED))

    def abandon(self, error: BaseException) -> None:
        """Closes the files after *error*; when the disk was full, what an overwrite has written beside the old files is removed."""
        if self.log is not None:
            with suppress(InputError):  # the failure that led here is told already
                self.log.close()
        if isinstance(error, InputError) and error.reason == "cannot_write":
            self.discard_beside()

# endregion

# region runs/replay.py
# =============================================================================
# Replay: recorded answers in place of a runner.
#
#     {"case_id": "gsm8k-0001", "output": "…"}
#     {"case_id": "refund-1", "trial": 2, "output": "…", "steps": […], "cost": {"total_usd": 0.002}}
#
# A line is an answer of the runner protocol (or an observation) with the case it belongs to
# and, if there are several for a case, the trial. An answer without a trial is trial 1: one
# recorded answer is never passed off as several. Further fields are ignored. Latency and
# cost were not measured here, so they are kept in `metadata.recorded` and count nowhere.
# =============================================================================

REPLAY_HINT = 'each line is {"case_id": "…", "output": …}, with "trial" if there are several for a case'


class Recording:
    """The recorded answers in the file *path* for the trials of *index*, found by position and read one at a time.

    `notes` says which were not used. Raises BreachesError that names every line which is no answer or one too many.
    """

    def __init__(self, path: str, index: StageIndex) -> None:
        self.index = index
        self.stream = open_for_reading(path)
        strangers = surplus = 0
        breaches = Breaches()
        try:
            shown, offset = shown_path(path), 0
            for number, line in enumerate(self.stream, 1):
                if bare_line(line):
                    slot = self.recorded_slot(line, shown, number, breaches)
                    if slot >= 0:
                        self.index.note(slot, COMPLETED, offset)
                    strangers += slot == -1
                    surplus += slot == -2
                offset += len(line)
            breaches.raise_if_any()
        except BaseException:
            self.stream.close()
            raise
        told = ((strangers, "of cases that this improvement does not have"), (surplus, "of trials beyond --repetitions"))
        self.notes = [f"{counted(number, 'recorded answer')} not used: {why}" for number, why in told if number]

    def recorded_slot(self, line: bytes, shown: str, number: int, breaches: Breaches) -> int:
        """The slot that the answer *line* is for; -1 for an unknown case, -2 for a trial not asked for, -3 for a breach."""
        try:
            value = parse_line(bare_line(line), f"{shown}:{number}")
        except InputError as error:
            breaches.add(shown, number, "", error.message.partition(f":{number}: ")[2] or error.message, error.hint)
            return -3
        name, trial = value.get("case_id"), value.get("trial", 1)
        if not isinstance(name, str):
            breaches.add(shown, number, "/case_id", "is missing or no text", REPLAY_HINT)
        elif not isinstance(trial, int) or isinstance(trial, bool) or trial < 1:
            breaches.add(shown, number, "/trial", "must be a whole number from 1", REPLAY_HINT)
        elif name not in self.index.places:
            return -1
        elif self.index.slot(name, trial) < 0:
            return -2
        elif self.index.status(name, trial):
            breaches.add(shown, number, "", "is for the same case and trial as a line before it", REPLAY_HINT)
        else:
            return self.index.slot(name, trial)
        return -3

    def attempt(self, case_id: str, trial: int) -> Attempt:
        """The recorded answer for a trial; status not_run when there is none."""
        offset = self.index.offsets[self.index.slot(case_id, trial)]
        if offset < 0:
            error = error_document("environment", "no_recorded_answer", "the file has no answer for this trial")
            return Attempt(NOT_RUN, {}, error, utc_now())
        self.stream.seek(offset)
        return replayed_attempt(parse_line(bare_line(self.stream.readline()), shown_path(self.stream.name)))

    def close(self) -> None:
        """Closes the file."""
        self.stream.close()


def replayed_attempt(line: JsonObject) -> Attempt:
    """What the recorded *line* says of its trial; nothing in it counts as measured."""
    answer = {key: value for key, value in line.items() if key in ANSWER_FIELDS or key in CLAIMS}
    status, kind, known = line.get("status"), "agent", answer.get("error")
    if isinstance(known, dict) and known.get("class") in ERROR_CLASSES:  # an observation's error knows more classes than a runner's
        kind = known["class"]
        answer["error"] = {key: value for key, value in known.items() if key != "class"}
    try:
        fields, error = answer_fields(answer)
    except ProtocolError as problem:
        return Attempt("protocol_error", {}, error_document("protocol", problem.error_type, problem.message), utc_now())
    listed_before = line.get("redacted")
    known_hits = [hit for hit in listed_before if is_hit(hit)] if isinstance(listed_before, list) else []
    if known_hits:  # what was masked when it was recorded was leaked then
        fields["redacted"] = [*fields.get("redacted", ()), *known_hits]
    execution = line.get("execution")
    recorded = {"cost": fields.pop("cost", None), "duration_ms": execution.get("duration_ms") if isinstance(execution, dict) else None}
    if present(recorded):
        fields["metadata"] = {**fields.get("metadata", {}), "recorded": present(recorded)}
    if status not in STATUSES or status == COMPLETED:
        status = COMPLETED if error is None else "error"
    if status == COMPLETED:
        return Attempt(status, fields, None, utc_now())
    return Attempt(status, fields, reported_error(error or {"message": f"recorded with status {status}"}, kind), utc_now())


def is_hit(value: Any) -> bool:
    """True when *value* is an entry of an observation's `redacted`."""
    kinds = {"pointer": str, "family": str, "count": int}
    is_entry = isinstance(value, dict) and value.keys() == kinds.keys() and all(isinstance(value[key], kind) for key, kind in kinds.items())
    return is_entry and bool(value["pointer"].startswith("/"))

# endregion

# region runs/workers.py
# =============================================================================
# Workers: who answers trials. The bridge knows their interface only.
#
# A worker answers one trial at a time from one thread. ProcessWorker starts the command anew
# for each trial, in a private work folder that is gone afterwards; ReplayWorker looks the
# answer up in a recording.
# =============================================================================

WORK_PREFIX = "kaizen-work-"
COMPLETED_STDERR_LIMIT = 4 << 10  # bytes kept of the end of standard error when the trial completed


class Worker:
    """Answers trials one after the other; `close` ends what it holds."""

    def answer(self, request: TrialRequest) -> Attempt:
        """What came of *request*; status cancelled when the run was stopped meanwhile. Raises CannotStart."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends what the worker holds; nothing by itself."""


class ReplayWorker(Worker):
    """Answers from a recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def answer(self, request: TrialRequest) -> Attempt:
        return self.recording.attempt(request.case.id, request.trial)

    def close(self) -> None:
        self.recording.close()


class WorkFolders:
    """Private folders for trials, inside one folder of the run; use as a context manager, nothing stays behind.

    A run that was killed could not clean up. Its folder is known by its lock, which the kernel
    released with the process, and is removed by the next run of the same user.
    """

    def __init__(self) -> None:
        import tempfile

        try:
            parent = tempfile.gettempdir()
        except OSError as error:
            refuse_writing("temporary folder", error)
        sweep_work_folders(parent)
        self.path = os.path.join(parent, f"{WORK_PREFIX}{os.urandom(8).hex()}")
        self.lock = FileLock(self.path + ".lock", "the work folder")
        self.numbers = itertools.count(1)

    def __enter__(self) -> "WorkFolders":
        self.lock.__enter__()  # before the folder is made, so that no other run takes it for one left behind
        make_private_folder(self.path)
        return self

    def __exit__(self, *error: object) -> None:
        remove_work_folder(self.path)
        self.lock.__exit__(None, None, None)

    def make(self) -> str:
        """A new empty folder."""
        path = os.path.join(self.path, str(next(self.numbers)))
        make_private_folder(path)
        return path


def make_private_folder(path: str) -> None:
    """Makes the folder *path*, for this user only. Raises InputError."""
    try:
        os.mkdir(path, 0o700)
    except OSError as error:
        refuse_writing(path, error)


def remove_work_folder(path: str) -> None:
    """Removes the folder *path*, also one that was made read-only; links are removed, not followed. What cannot be removed stays."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return
    except OSError:
        with suppress(OSError):
            remove_tree(path)


def sweep_work_folders(parent: str) -> None:
    """Removes work folders of this user in *parent* whose run is no longer alive."""
    try:
        names = os.listdir(parent)
    except OSError:
        return
    for path in {os.path.join(parent, name.removesuffix(".lock")) for name in names if name.startswith(WORK_PREFIX)}:
        try:
            if all(os.lstat(each).st_uid == os.getuid() for each in (path, path + ".lock") if os.path.lexists(each)):
                with FileLock(path + ".lock", "the work folder", patience=0):
                    remove_work_folder(path)
        except (OSError, InputError, RefusedError):
            pass  # in use, or gone meanwhile


class ProcessWorker(Worker):
    """Starts the command once for each trial; raises CannotStart when that is impossible."""

    def __init__(self, command: list[str], cwd: str, timeout_seconds: float, folders: WorkFolders, stop: StopSwitch) -> None:
        self.command, self.cwd, self.timeout_seconds, self.folders, self.stop = command, cwd, timeout_seconds, folders, stop
        self.environment = dict(os.environb)

    def answer(self, request: TrialRequest) -> Attempt:
        folder = self.folders.make()
        mark = b"KAIZEN_WORKDIR=" + os.fsencode(folder)
        started_at = utc_now()
        try:
            ended = run_program(
                self.command,
                request_line(request),
                cwd=self.cwd,
                environment={**self.environment, **trial_environment(request), b"KAIZEN_WORKDIR": os.fsencode(folder)},
                timeout_seconds=self.timeout_seconds,
                stdout_limit=STDOUT_LIMIT,
                stderr_limit=STDERR_LIMIT + CUT_MARGIN,
                stop=self.stop,
                mark=mark,
            )
        finally:
            remove_work_folder(folder)
        return process_attempt(ended, started_at, self.timeout_seconds)


def trial_environment(request: TrialRequest) -> dict[bytes, bytes]:
    """What a runner's environment says of its trial, as UTF-8 whatever the locale."""
    return {
        b"KAIZEN_CASE_ID": request.case.id.encode("utf-8"),
        b"KAIZEN_STAGE": request.stage.encode("utf-8"),
        b"KAIZEN_TRIAL": b"%d" % request.trial,
        b"KAIZEN_SEED": b"%d" % request.seed,
    }


def process_attempt(ended: Ended, started_at: str, timeout_seconds: float) -> Attempt:
    """The attempt that a runner which *ended* like this has made."""
    status, fields, error = judged_end(ended, timeout_seconds)
    limit = COMPLETED_STDERR_LIMIT if error is None else STDERR_LIMIT
    pointer = "/execution/stderr_tail" if error is None else "/error/stderr_tail"
    stderr, hits = cut_tail(ended.stderr, limit, ended.stderr_cut, "standard error", pointer)
    if hits:
        fields = {**fields, "redacted": [*fields.get("redacted", ()), *hits]}
    return Attempt(status, fields, error, started_at, ended.seconds * 1000, ended.exit_code, stderr)


def judged_end(ended: Ended, timeout_seconds: float) -> tuple[str, JsonObject, JsonObject | None]:
    """(status, fields, error) of a trial whose runner *ended* like this."""
    if ended.end == STOPPED:
        return CANCELLED, {}, error_document("cancelled", "interrupted", "the run was interrupted")
    if ended.end == TIMEOUT:
        return "timeout", {}, error_document("timeout", "timeout", f"no end within {timeout_seconds:g} s; the runner was ended")
    if ended.end == OVERFLOW:
        message = f"standard output is larger than the limit of {STDOUT_LIMIT >> 20} MiB ({STDOUT_LIMIT} bytes)"
        return "protocol_error", {}, with_excerpt(error_document("protocol", "too_much_output", message), ended.stdout)
    code = ended.exit_code
    if code:
        what = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        error = error_document("runner", "signal" if code < 0 else "exit", f"the runner {what}")
        return "error", {}, with_excerpt(error, ended.stdout)
    try:
        fields, reported = read_answer(ended.stdout)
    except ProtocolError as problem:
        return "protocol_error", {}, with_excerpt(error_document("protocol", problem.error_type, problem.message), ended.stdout)
    return (COMPLETED, fields, None) if reported is None else ("error", fields, reported_error(reported, "agent"))


def with_excerpt(error: JsonObject, stdout: bytes) -> JsonObject:
    """*error* with the beginning and end of what was printed, if anything was."""
    shown, hits = cut_middle(stdout, "/error/stdout_excerpt")
    return {**error, **({"stdout_excerpt": shown} if shown else {}), **({"redacted": hits} if hits else {})}


def check_command(command: list[str], cwd: str) -> list[str]:
    """Notes about a *command* that can be started from *cwd*. Raises UsageError when its first word starts nothing."""
    word = command[0]
    path = find_program(word, cwd)
    if path is None:
        raise no_such_program(word, cwd)
    if os.path.basename(os.path.dirname(path)) == "shims" and is_script(path):
        cost = "which costs time at every start; the real path of the program is faster"
        return [f"{shown_word(word)} is the shim of a version manager, {cost}"]
    return []


def no_such_program(word: str, cwd: str) -> UsageError:
    """The error for a first word that starts nothing from the folder *cwd*, with what the user may have meant."""
    place = os.path.join(cwd, word)
    what = f"there is no program {shown_word(word)} " + (f"in {shown_path(cwd)}" if "/" in word else "on PATH")
    if os.path.isdir(place) and "/" in word:
        what, hint = f"{shown_word(word)} is a folder", "name the program in it"
    elif os.path.isfile(place) and not os.access(place, os.X_OK):
        what = f"{shown_word(word)} is not executable" if "/" in word else what
        hint = "make it executable (chmod +x), or name its interpreter: python agent.py"
    elif "/" not in word:
        hint = f"did you mean ./{word}?" if os.path.isfile(place) else "is it installed? one of your own is given by its path, ./agent"
    else:
        hint = "the command is started in the folder that --cwd names" if os.path.exists(word) else "check the path"
    return UsageError(f"{what}; nothing was run", visible(hint), "no_such_program")


def shown_word(word: str) -> str:
    """The first word of a command as a message names it: people write `API_KEY=… ./agent`, which only a shell understands."""
    return quoted(redact_arguments([word], environment_secrets(os.environ))[0])


def is_script(path: str) -> bool:
    """True when the file *path* begins with '#!'."""
    try:
        with open_for_reading(path) as stream:
            return stream.read(2) == b"#!"
    except InputError:
        return False

# endregion

# region runs/bridge.py
# =============================================================================
# The bridge: has the trials of a stage answered by workers of any kind, and records them.
#
# `run_stage` is what `kaizen run`, `test` and `demo` call. The main thread waits, shows
# progress and syncs; each of `jobs` threads takes the next trial, has its worker answer it
# and appends the observation. The first interrupt stops the dispatch and ends the running
# trials, the second kills them; what has finished is on disk either way.
# =============================================================================

TICK_SECONDS = 0.1
MAX_EXAMPLES = 3  # of errors, with different messages


class RunRequest(NamedTuple):
    """What is to be run. *command* starts the runner in the folder *cwd* ('': the current one), or *replay* is a file of answers.

    *repetitions* 0 is as the stage has them, else 1. *existing* is one of the words of journal.py for a stage that is there.
    """

    improvement: Improvement
    stage: str
    dataset: Dataset
    seed: int
    command: list[str]
    cwd: str = ""
    replay: str = ""
    repetitions: int = 0
    jobs: int = 1
    timeout_seconds: float = 300
    existing: str = REFUSE
    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    progress: str = "auto"


class RunSummary(NamedTuple):
    """What came of a run.

    `selected` trials were asked for of `planned` (all cases × repetitions), `ran` in this run; `counts` has the
    statuses of those that have a line. `unusable` have no completed observation. `examples` tells of a few
    errors, without anything of holdout cases; `notes` holds what the user should know. After an interrupt
    `is_beside` says that the old stage is still in place and this run's trials stand beside it.
    """

    stage: str
    path: str
    planned: int
    selected: int
    ran: int
    counts: dict[str, int]
    unusable: int
    examples: list[str]
    notes: list[str]
    is_interrupted: bool
    is_beside: bool
    seconds: float


def run_stage(request: RunRequest) -> RunSummary:
    """Runs what *request* asks for and writes observations and meta file of its stage.

    Raises UsageError when nothing can be run, RefusedError when the stage is there or in use, InputError for
    the disk. A trial without usable evidence is no failure of the run: it is counted.
    """
    check_stage_name(request.stage)
    cases = select_cases(request.dataset, list(request.ids), list(request.tags), list(request.splits))
    cwd = os.path.abspath(request.cwd or os.curdir)
    notes = [] if request.replay else check_runner(request.command, cwd)
    meta = meta_document(request, cwd)
    stage = request.stage
    with FileLock(request.improvement.stage_file(stage, ".lock"), f"stage '{stage}'"):
        writer = StageWriter(
            request.improvement, stage, request.dataset, cases, meta, existing=request.existing, repetitions=request.repetitions
        )
        writer.notes += notes
        stop = StopSwitch()
        try:
            with heeding_signals(stop):
                return Dispatch(request, writer, stop, cwd).run()
        finally:
            stop.close()


def check_runner(command: list[str], cwd: str) -> list[str]:
    """Notes about the command. Raises UsageError when it cannot be started here."""
    if os.name == "nt":
        raise UsageError("kaizen run starts programs in a way that needs Linux or macOS", "use it inside WSL")
    if not os.path.isdir(cwd):
        raise UsageError(f"--cwd {quoted(cwd)} is no folder; nothing was run")
    return check_command(command, cwd)


def meta_document(request: RunRequest, cwd: str) -> JsonObject:
    """The meta document of a run that begins; the writer fills in what comes of it."""
    replay = request.replay
    selectors = {"ids": list(request.ids), "tags": list(request.tags), "splits": list(request.splits)}
    folder = request.improvement.folder
    return {
        "version": 1,
        "stage": request.stage,
        "command": None if replay else redact_arguments(without_surrogates(request.command), environment_secrets(os.environ)),
        "mode": "replay" if replay else "process",
        "cwd": None if replay else without_surrogates(os.path.relpath(os.path.realpath(cwd), os.path.realpath(folder))),
        "repetitions": 0,
        "selection": selectors if any(selectors.values()) else None,
        "seed": request.seed,
        "cases": 0,
        "planned": 0,
        "selected": 0,
        "dataset_fingerprint": request.dataset.fingerprint,
        "commit": commit_of(cwd, folder),
        "timeout_seconds": None if replay else request.timeout_seconds,
        "jobs": request.jobs,
        "started_at": utc_now(),
        "finished_at": None,
        "engine": VERSION,
        "complete": False,
        "counts": {},
        "observations": None,
        "replayed_from": {"file": os.path.basename(replay), "sha256": file_digest(replay)} if replay else None,
    }


class Dispatch:
    """One run: hands the trials to the workers and records what they answer."""

    def __init__(self, request: RunRequest, writer: StageWriter, stop: StopSwitch, cwd: str) -> None:
        import threading

        self.request, self.writer, self.stop, self.cwd = request, writer, stop, cwd
        self.selected = len(writer.cases) * writer.repetitions
        self.pending = sum(1 for _ in self.pending_trials())
        self.trials = self.pending_trials()
        self.lock = threading.Lock()  # around trials, writer and the counters
        self.all_done = threading.Event()
        self.working = 0
        self.ran = 0
        self.errors = 0
        self.has_started = False
        self.failure: BaseException | None = None
        self.examples: dict[str, str] = {}
        self.secrets = environment_secrets(os.environ)
        self.masked: dict[str, int] = {}  # observations in which a secret of this family was masked

    def pending_trials(self) -> Iterator[tuple[Case, int]]:
        """(case, trial) of what has no line yet, in the order of a run."""
        return ((case, trial) for case, trial in self.writer.selected_trials() if not self.writer.is_done(case.id, trial))

    def run(self) -> RunSummary:
        """Runs all pending trials and finishes the stage's files. Raises what made that impossible."""
        started = monotonic_seconds()
        try:
            if self.pending:
                with self.workers() as make_worker, Progress(f"run {self.request.stage}", self.pending, self.request.progress) as progress:
                    self.work_off(make_worker, progress)
            if self.masked:
                found = listed(f"{family} in {counted(number, 'trial')}" for family, number in sorted(self.masked.items()))
                self.writer.notes.append(f"secrets were masked before they were written: {found}")
            is_interrupted = self.ran < self.pending
            self.writer.finish(not is_interrupted)
        except BaseException as error:
            self.writer.abandon(error)
            raise
        counts: dict[str, int] = {}
        for case, trial in self.writer.selected_trials():
            status = self.writer.index.status(case.id, trial)
            counts[status] = counts.get(status, 0) + 1
        return RunSummary(
            stage=self.request.stage,
            path=self.writer.path if is_interrupted else self.writer.target,
            planned=len(self.writer.index.statuses),
            selected=self.selected,
            ran=self.ran,
            counts={status: counts[status] for status in STATUSES if status in counts},
            unusable=self.selected - counts.get(COMPLETED, 0),
            examples=list(self.examples.values()),
            notes=self.writer.notes,
            is_interrupted=is_interrupted,
            is_beside=is_interrupted and self.writer.is_beside,
            seconds=monotonic_seconds() - started,
        )

    @contextmanager
    def workers(self) -> Iterator[Callable[[], Worker]]:
        """What makes a worker for a thread; a further way to run is a further branch here."""
        request = self.request
        if request.replay:
            recording = Recording(request.replay, StageIndex(request.dataset.cases, self.writer.repetitions))
            self.writer.notes += recording.notes
            yield lambda: ReplayWorker(recording)
        else:
            with WorkFolders() as folders:
                yield lambda: ProcessWorker(request.command, self.cwd, request.timeout_seconds, folders, self.stop)

    def work_off(self, make_worker: Callable[[], Worker], progress: Progress) -> None:
        """Has threads answer the pending trials, and waits for them. Raises what one of them could not go on with."""
        import threading

        jobs = 1 if self.request.replay else min(self.request.jobs, self.pending)
        self.working = jobs
        threads = [threading.Thread(target=self.work, args=(make_worker, number)) for number in range(1, jobs + 1)]
        for thread in threads:
            thread.start()
        try:
            while not self.all_done.wait(TICK_SECONDS):
                with self.lock:
                    self.writer.sync_if_due()
                progress.report(self.ran, self.errors)
        finally:
            self.stop_unless_done()
            for thread in threads:
                thread.join()
        progress.report(self.ran, self.errors)
        if self.failure is not None:
            raise self.failure

    def stop_unless_done(self) -> None:
        """Ends the threads early when the main thread leaves its loop with an error."""
        if not self.all_done.is_set():
            self.stop.request()

    def work(self, make_worker: Callable[[], Worker], number: int) -> None:
        """What a thread does; a failure is kept for the main thread and ends the others."""
        try:
            worker = make_worker()
            try:
                self.answer_trials(worker, number)
            finally:
                worker.close()
        except BaseException as error:
            self.failure = self.failure or error
            self.stop.request()
        finally:
            with self.lock:
                self.working -= 1
                if not self.working:
                    self.all_done.set()

    def answer_trials(self, worker: Worker, number: int) -> None:
        """Takes trials until there are none or the run is stopped."""
        while not self.stop.is_requested:
            with self.lock:
                following = next(self.trials, None)
            if following is None:
                return
            case, trial = following
            attempt = self.attempt(worker, case, trial)
            if attempt.status == CANCELLED:
                return
            document = observation_document(case.id, trial, case.input_fingerprint, attempt, number)
            document, line = masked_observation(document, self.secrets)
            with self.lock:
                self.writer.record(case.id, trial, attempt.status, line + b"\n")
                self.ran += 1
                for family in {hit["family"] for hit in document.get("redacted", ())}:
                    self.masked[family] = self.masked.get(family, 0) + 1
                if attempt.error is not None:
                    self.errors += 1
                    self.note_example(case, trial, document["error"])

    def attempt(self, worker: Worker, case: Case, trial: int) -> Attempt:
        """One attempt at a trial. Raises UsageError when not even the first one can be started."""
        seed = trial_seed(self.request.seed, case.id, trial)
        try:
            attempt = worker.answer(TrialRequest(case, self.request.stage, trial, self.writer.repetitions, 1, seed))
        except CannotStart as error:
            if not self.has_started:
                message = f"{shown_word(self.request.command[0])} cannot be started: {error}; nothing was run"
                raise UsageError(message, "try the command by itself", "cannot_start") from None
            message = f"the runner could not be started: {error}"
            return Attempt("error", {}, error_document("environment", "cannot_start", message), utc_now())
        self.has_started = True
        return attempt

    def note_example(self, case: Case, trial: int, error: JsonObject) -> None:
        """Keeps an error to tell of, if none with this message is kept; of a holdout case only its class."""
        is_hidden = case.id in self.request.dataset.holdout
        what = "" if is_hidden else visible(error["message"])
        if len(self.examples) < MAX_EXAMPLES:
            who = "a holdout case" if is_hidden else f"case {quoted(case.id)}, trial {trial}"
            self.examples.setdefault(f"{error['class']}: {what}", f"{who}: {error['class']}" + (f": {what}" if what else ""))

# endregion

# region evaluators/paths.py
# =============================================================================
# The path language of evaluators: a root, then a JSON Pointer in which * is all.
#
#     output.text                  the output if it is a string, else its compact JSON
#     output.json/items/*/price    the output if it is not a string, else its text parsed whole
#     messages.assistant           all texts of those messages, in order
#     state/after/refunds          any field of the observation, or `input` and `context` of the case
#
# JSON held in text (tool arguments, results) is parsed when a pointer goes into it. Elements
# of a wildcard that lack what follows it are left out.
# =============================================================================

OBSERVATION_ROOTS = (
    "output", "steps", "tool_calls", "agents", "usage", "cost", "state", "files", "evidence", "finish_reason", "metadata",
    "execution", "log", "status",
)  # fmt: skip
CASE_ROOTS = ("input", "context")
LIST_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,8})\Z")  # RFC 6901: no leading zeros


class Selected(NamedTuple):
    """What a path leads to. `found` False: absent, and `reason` says what; a wildcard or message root gives a list."""

    found: bool
    value: Any = None
    reason: str = ""
    agent_fault: bool = False  # absent in an output that is there: the agent's doing, not a missing measurement


class PathExpression(NamedTuple):
    """A parsed path: its root, its tokens ('*' is a wildcard), the text it was read from, what reads its root."""

    root: str
    tokens: tuple[str, ...]
    text: str
    read: Callable[[JsonObject, JsonObject], Selected]


def parse_path(text: str) -> PathExpression:
    """The path that *text* writes. Raises ValueError that says what is wrong."""
    root, slash, rest = text.partition("/")
    if root not in ROOT_READERS:
        near = did_you_mean(root, ROOT_READERS) if root else "a path begins with a root, such as output.json, not with '/'"
        raise ValueError(f"unknown root {quoted(root)}; {near}")
    tokens = tuple(part.replace("~1", "/").replace("~0", "~") for part in rest.split("/")) if slash else ()
    return PathExpression(root, tokens, text, ROOT_READERS[root])


def select_path(path: PathExpression, observation: JsonObject, case: JsonObject, memo: JsonObject | None = None) -> Selected:
    """What *path* leads to in *observation* or *case*; a list when the path holds a wildcard.

    *memo* keeps what the roots of this observation hold, so that its text is parsed once for all evaluators.
    """
    root: Selected | None = None if memo is None else memo.get(path.root)
    if root is None:
        root = path.read(observation, case)
        if memo is not None:
            memo[path.root] = root
    if not path.tokens or not root.found:
        return root
    pairs = values_at(root.value, path.tokens)
    if pairs is None:
        return Selected(False, None, f"there is nothing at {path.text}", path.root.startswith("output"))
    if "*" in path.tokens:
        return Selected(True, [value for _, value in pairs])
    return Selected(True, pairs[0][1])


def values_at(value: Any, tokens: tuple[str, ...] | list[str], pointer: str = "") -> list[tuple[str, Any]] | None:
    """[(pointer, value)] for all that *tokens* lead to below *value*; None when a step without wildcard leads nowhere."""
    for index, token in enumerate(tokens):
        if isinstance(value, str):
            try:
                value = parse_json(value)
            except JsonError:
                return None
        if token == "*" and isinstance(value, (list, dict)):
            pairs = enumerate(value) if isinstance(value, list) else value.items()
            found = [values_at(item, tokens[index + 1 :], pointer + pointer_token(key)) for key, item in pairs]
            return [pair for part in found if part is not None for pair in part]
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and LIST_INDEX.match(token) and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
        pointer += pointer_token(token)
    return [(pointer, value)]


# --- Roots -----------------------------------------------------------------------------


def output_text(output: Any) -> str:
    """The output as text: itself if it is a string, else its compact JSON."""
    return output if isinstance(output, str) else encode_compact(output)


def read_output(observation: JsonObject, case: JsonObject) -> Selected:
    """The output as it is; null is no output."""
    output = observation.get("output")
    return Selected(False, None, "there is no output") if output is None else Selected(True, output)


def read_output_text(observation: JsonObject, case: JsonObject) -> Selected:
    """The output as text."""
    output = observation.get("output")
    return read_output(observation, case) if output is None else Selected(True, output_text(output))


def read_output_json(observation: JsonObject, case: JsonObject) -> Selected:
    """The output if it is not a string, else the value that its whole text holds."""
    output = observation.get("output")
    if not isinstance(output, str):
        return read_output(observation, case)
    try:
        return Selected(True, parse_json(output))
    except JsonError as error:
        return Selected(False, None, f"the output is not JSON: {error.message}", True)


def message_texts(observation: JsonObject, role: str) -> list[str] | None:
    """Texts of all messages of *role* in the recorded steps, in order; None when no steps were recorded."""
    steps = observation.get("steps")
    if not isinstance(steps, list):
        return None
    messages = [step for step in steps if step.get("kind") == "message" and step.get("role") == role]
    return [step["text"] for step in messages if isinstance(step.get("text"), str)]


def messages_reader(role: str) -> Callable[[JsonObject, JsonObject], Selected]:
    """Reads the texts of all messages of *role*."""

    def read(observation: JsonObject, case: JsonObject) -> Selected:
        texts = message_texts(observation, role)
        return Selected(False, None, "no steps were recorded") if texts is None else Selected(True, texts)

    return read


def field_reader(name: str) -> Callable[[JsonObject, JsonObject], Selected]:
    """Reads the field *name* of the observation; null is absent."""

    def read(observation: JsonObject, case: JsonObject) -> Selected:
        value = observation.get(name)
        return Selected(False, None, f"the observation has no {name}") if value is None else Selected(True, value)

    return read


def case_reader(name: str) -> Callable[[JsonObject, JsonObject], Selected]:
    """Reads the field *name* of the case."""

    def read(observation: JsonObject, case: JsonObject) -> Selected:
        return Selected(True, case[name]) if name in case else Selected(False, None, f"the case has no {name}")

    return read


ROOT_READERS: dict[str, Callable[[JsonObject, JsonObject], Selected]] = {
    "output.text": read_output_text,
    "output.json": read_output_json,
    "messages.assistant": messages_reader("assistant"),
    "messages.user": messages_reader("user"),
    **{name: field_reader(name) for name in OBSERVATION_ROOTS},
    **{name: case_reader(name) for name in CASE_ROOTS},
    "output": read_output,
}

# endregion

# region evaluators/decimals.py
# =============================================================================
# Numbers as people write them, kept exact: 0.1 is a tenth, $1,250.00 is 1250.
#
# Values are int or Fraction, so neither binary rounding nor the order of summation can move
# a score across its threshold. A float counts as the decimal that its shortest form shows.
# =============================================================================

MAX_NUMBER_DIGITS = 300  # what has more digits or a greater exponent is no quantity; it also keeps the arithmetic cheap
DECIMAL_MARKS = (".", ",")


def decimal_value(text: str) -> "int | Fraction":
    """The exact value of *text*, digits with an optional sign, point and exponent: '-3.50' is -7/2.

    >>> decimal_value("29.00"), decimal_value("1e3"), str(decimal_value("-3.50"))
    (29, 1000, '-7/2')
    """
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, decimals = mantissa.partition(".")
    power = int(exponent or 0) - len(decimals)
    number = int(whole + decimals)
    if power >= 0:
        return int(number * 10**power)
    if number % 10**-power == 0:
        return int(number // 10**-power)
    from fractions import Fraction

    return Fraction(number, 10**-power)


def exact_value(number: float) -> "int | Fraction":
    """The decimal that *number* shows, exactly: 0.1 is 1/10."""
    if isinstance(number, int):
        return number
    return int(number) if number.is_integer() and -LARGEST_EXACT_INTEGER < number < LARGEST_EXACT_INTEGER else decimal_value(repr(number))


def exact_mean(pairs: Iterable[tuple[float, float]]) -> float | None:
    """The mean of (score, weight) pairs, rounded once; None when the weights sum to 0.

    >>> exact_mean([(0.7, 1), (0.8, 1), (0.9, 1)]), exact_mean([(1.0, 0.1)] * 10), exact_mean([])
    (0.8, 1.0, None)
    """
    weights: int | Fraction = 0
    total: int | Fraction = 0
    for score, weight in pairs:
        exact_weight = weight if isinstance(weight, int) else exact_value(weight)
        weights += exact_weight
        if score == 1:
            total += exact_weight
        elif score:
            total += exact_weight * exact_value(score)
    return float(total / weights) if weights else None


def exact_complement(score: float) -> float:
    """1 − *score*, exact in decimal terms: 0.7 gives 0.3."""
    return float(1 - exact_value(score))


def within_tolerance(actual: "int | Fraction", expected: "int | Fraction", abs_tol: float = 0, rel_tol: float = 0) -> bool:
    """True when *actual* is at most *abs_tol*, or *rel_tol* times |*expected*|, away from *expected*; the bounds count as met."""
    distance = actual - expected if actual >= expected else expected - actual
    size = expected if expected >= 0 else -expected
    return distance <= exact_value(abs_tol) or (rel_tol > 0 and distance <= exact_value(rel_tol) * size)


def json_number(value: "int | Fraction") -> int | float:
    """*value* as a JSON number: an integer stays one."""
    return value if isinstance(value, int) else float(value)


# --- Numbers in prose --------------------------------------------------------------------


class FoundNumber(NamedTuple):
    """A number found in a text: its value (None when it has too many digits to be one), and where it stands."""

    value: "int | Fraction | None"
    start: int
    end: int


def number_pattern(mark: str) -> "re.Pattern[str]":
    """The pattern of a number whose decimal mark is *mark*. Two numbers never overlap, and it runs in linear time.

    A sign counts only where nothing stands before it that it could subtract from ("16-3" holds 16 and 3). Digits inside a
    word ("x2", "gsm8k") and parts of versions ("1.5.2") are no numbers. LaTeX writes 9,500 as 9{,}500 or 9\\,500.
    """
    other = re.escape("," if mark == "." else ".")
    point = re.escape(mark)
    return re.compile(
        rf"""
        (?:(?<![\w.)\]%])(?P<sign>[-+\u2212\u2013\uff0d\ufe63]))?
        (?:\\?[$\u20ac\u00a3\u00a5\u20b9\u20a9\u20bd]\ ?)?
        (?:(?<=[$\u20ac\u00a3\u00a5\u20b9\u20a9\u20bd])(?P<inner>[-\u2212]))?
        (?<!\w)(?<![0-9]{point})
        (?P<digits>
          (?:
             [1-9][0-9]{{0,2}}(?P<group>{other}|\{{{other}\}}|\\,|['\u2019\u00a0\u202f\u2009_])[0-9]{{3}}(?:(?P=group)[0-9]{{3}}){{0,99}}(?![0-9])
           | [1-9][0-9]?(?:{other}[0-9]{{2}}){{1,99}}{other}[0-9]{{3}}(?![0-9])
           | [0-9]+
          )(?:{point}[0-9]+)?
        | (?<![\w.,]){point}[0-9]+
        )
        (?:[eE](?P<exponent>[-+\u2212]?[0-9]{{1,9}})(?!\w)
         | \s?(?:\u00d7|x|\*|\u00b7|\\times|\\cdot)\s?10(?:\^|\*\*)\{{?(?P<power>[-\u2212]?[0-9]{{1,9}})\}}?)?
        (?![0-9]|{point}[0-9])
        """,
        re.VERBOSE,
    )


NUMBER_PATTERNS: dict[str, "re.Pattern[str]"] = {}


def number_matches(text: str, mark: str) -> Iterator["re.Match[str]"]:
    """The matches of `number_pattern` in *text*, found as they are asked for."""
    pattern = NUMBER_PATTERNS.get(mark)
    if pattern is None:
        pattern = NUMBER_PATTERNS[mark] = number_pattern(mark)
    return pattern.finditer(text)


def find_numbers(text: str, mark: str = ".") -> list[FoundNumber]:
    """Every number in *text* whose decimal mark is *mark*, in order: '$8,000' is 8000, '−3.50 %' is -3.5."""
    return [found_number(match, mark) for match in number_matches(text, mark)]


def first_number(text: str, mark: str = ".") -> FoundNumber | None:
    """The first number in *text*; None when there is none."""
    match = next(number_matches(text, mark), None)
    return None if match is None else found_number(match, mark)


def last_number(text: str, mark: str = ".") -> FoundNumber | None:
    """The last number in *text*; None when there is none. Only that one is worked out, so a long text costs its search alone."""
    last = None
    for match in number_matches(text, mark):
        last = match
    return None if last is None else found_number(last, mark)


def found_number(match: "re.Match[str]", mark: str) -> FoundNumber:
    """A match of `number_pattern` as a number."""
    return FoundNumber(matched_value(match, mark), match.start(), match.end())


def matched_value(match: "re.Match[str]", mark: str) -> "int | Fraction | None":
    """The value of a match of `number_pattern`; None when it has too many digits."""
    exponent = (match["exponent"] or match["power"] or "0").replace("\u2212", "-")
    digits = "".join(mark_or_digit for mark_or_digit in match["digits"] if mark_or_digit in "0123456789" or mark_or_digit == mark)
    if len(digits) > MAX_NUMBER_DIGITS or abs(int(exponent)) > MAX_NUMBER_DIGITS // 2:
        return None
    whole, _, decimals = digits.partition(mark)
    value = decimal_value(f"{whole or '0'}.{decimals}e{exponent}")
    return -value if (match["sign"] or match["inner"] or "+") != "+" else value


def only_number(text: str, mark: str = ".") -> "int | Fraction | None":
    """The number that *text* holds, whatever stands around it; None when it holds none or several."""
    matches = number_matches(text, mark)
    only = next(matches, None)
    return None if only is None or next(matches, None) is not None else matched_value(only, mark)

# endregion

# region evaluators/outcomes.py
# =============================================================================
# What an evaluator answers: pass, fail, error or not_applicable, and why.
# =============================================================================

PASS = "pass"
FAIL = "fail"
ERROR = "error"
NOT_APPLICABLE = "not_applicable"


class Outcome(NamedTuple):
    """The answer of one evaluator about one observation.

    `score` is in [0, 1] or None when there is none; `value` is the raw measurement; `reason` is one
    sentence a person understands; `evidence` points at what was looked at: {"step": 3},
    {"start": 10, "end": 14} (characters of the text looked at), {"pointer": "/items/0"} (below `select`).
    """

    status: str
    score: float | None
    reason: str
    value: Any = None
    evidence: tuple[Any, ...] = ()


class NotMeasurable(Exception):
    """Raised by a check whose evidence is absent; the entry's `on_missing` decides what follows.

    `agent_fault`: the output is there but is not what was asked for, so the default is fail, not error.
    """

    def __init__(self, reason: str, agent_fault: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.agent_fault = agent_fault


class ConfigurationError(Exception):
    """Raised while an entry is prepared: `pointer` (inside the entry) is what is wrong, `hint` what to do."""

    def __init__(self, pointer: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer
        self.message = message
        self.hint = hint


class NothingAsked(Exception):
    """Raised while an entry is prepared for a case that asks nothing of it: the answer is not_applicable."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class EmptyFromCase(list[Any]):
    """The empty list that `$case` found in a case; one written in the file is a plain list."""


def refuse_empty(values: list[Any], pointer: str) -> None:
    """Raises when *values* is empty: NothingAsked if a case brought it, else ConfigurationError at *pointer*."""
    if isinstance(values, EmptyFromCase):
        raise NothingAsked(f"the case brings an empty list for {pointer.lstrip('/')}")
    if not values:
        raise ConfigurationError(pointer, "is an empty list, which asks nothing", "name at least one, or take the entry out")


def decided(is_met: bool, reason: str, value: Any = None, evidence: tuple[Any, ...] = ()) -> Outcome:
    """A pass with score 1 when *is_met*, else a fail with score 0."""
    return Outcome(PASS if is_met else FAIL, 1.0 if is_met else 0.0, reason, value, evidence)


def errored(reason: str) -> Outcome:
    """An error: there is no usable evidence for an answer."""
    return Outcome(ERROR, None, reason)


def not_applicable(reason: str) -> Outcome:
    """Not applicable: the question does not arise for this observation."""
    return Outcome(NOT_APPLICABLE, None, reason)

# endregion

# region evaluators/registry.py
# =============================================================================
# The table of evaluator types, and how a module adds one to it.
#
#     @evaluator("contains", 1, "The text holds the given values.", [Parameter("values", "texts", REQUIRED, "…")], example={…})
#     def evaluate_contains(settings: JsonObject) -> Check:
#         ...                      # checks and compiles the settings once; raises ConfigurationError
#         def check(view: View) -> Outcome:
#             ...                  # looks at one observation
#         return check
#
# `settings` holds every parameter, defaults filled in, kinds checked. The parameter table feeds
# the validator, `kaizen evaluators`, and the reference page. To add an evaluator: one file in
# evaluators/, nothing else.
# =============================================================================

REQUIRED = object()  # the default of a parameter that has none
ABSENT = object()  # the default of an optional parameter for which null is a value like others


class View(NamedTuple):
    """What a check may look at: the selected and transformed value, the observation, its case.

    `memo` is shared by all entries that look at this observation, for what is costly to work out twice.
    """

    value: Any
    observation: JsonObject
    case: JsonObject
    memo: JsonObject


Check = Callable[[View], Outcome]
Prepare = Callable[[JsonObject], Check]


class Parameter(NamedTuple):
    """A parameter: name, kind (one of KINDS), default (REQUIRED when there is none, ABSENT where null has a meaning), its text.

    `choices` belong to the kind `choice`. A list that is empty is refused unless `may_be_empty`; one that
    a case brings makes the entry not applicable.
    """

    name: str
    kind: str
    default: Any
    text: str
    choices: tuple[str, ...] = ()
    may_be_empty: bool = False


class EvaluatorType(NamedTuple):
    """A registered type. `version` is raised when its meaning changes; it enters every fingerprint.

    `selects`: whether the entry's `select` and `transform` are used; a type that looks at the whole
    observation (steps, budget) refuses them. `example`: {"entry", "observation", "case", "outcome"},
    which the tests run.
    """

    name: str
    version: int
    summary: str
    parameters: tuple[Parameter, ...]
    prepare: Prepare
    example: JsonObject
    selects: bool
    default_select: str


EVALUATORS: dict[str, EvaluatorType] = {}


def evaluator(
    name: str,
    version: int,
    summary: str,
    parameters: list[Parameter],
    example: JsonObject,
    selects: bool = True,
    default_select: str = "output.text",
) -> Callable[[Prepare], Prepare]:
    """Registers the decorated function as evaluator type *name*."""

    def register(prepare: Prepare) -> Prepare:
        if name in EVALUATORS:
            raise ValueError(f"evaluator {name!r} is registered twice")
        EVALUATORS[name] = EvaluatorType(name, version, summary, tuple(parameters), prepare, example, selects, default_select)
        return prepare

    return register


# --- Kinds of parameters ---------------------------------------------------------------


def is_json_number(value: Any) -> bool:
    """True for a JSON number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_json_text(value: Any) -> bool:
    """True for a JSON string."""
    return isinstance(value, str)


def is_list_of(value: Any, kind: type) -> bool:
    """True for a list of nothing but *kind*."""
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


# kind: (is *value* one, how a message and the reference page call it)
KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "text": (is_json_text, "a text"),
    "texts": (lambda value: isinstance(value, str) or is_list_of(value, str), "a text or a list of texts"),
    "number": (is_json_number, "a number"),
    "amount": (lambda value: is_json_number(value) or isinstance(value, str), "a number, or a text that holds one"),
    "integer": (lambda value: isinstance(value, int) and not isinstance(value, bool), "an integer"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "choice": (is_json_text, "one of its choices"),
    "list": (lambda value: isinstance(value, list), "a list"),
    "object": (lambda value: isinstance(value, dict), "an object"),
    "matcher": (lambda value: isinstance(value, dict), "a step matcher"),
    "matchers": (lambda value: isinstance(value, dict) or is_list_of(value, dict), "a step matcher or a list of them"),
    "entries": (lambda value: is_list_of(value, dict), "a list of entries"),
    "any": (lambda value: True, "any JSON value"),
}
EMPTY_LISTS_REFUSED = frozenset(["texts", "list", "matchers", "entries"])


def check_parameter(parameter: Parameter, value: Any) -> None:
    """Raises ConfigurationError when *value* is not of the parameter's kind, NothingAsked for a case's empty list."""
    is_one, phrase = KINDS[parameter.kind]
    pointer = f"/{parameter.name}"
    if not is_one(value):
        raise ConfigurationError(pointer, f"{parameter.name} is {json_type_phrase(value)}, not {phrase}")
    if parameter.choices and value not in parameter.choices:
        raise ConfigurationError(pointer, f"{parameter.name} {quoted(value)} is unknown", did_you_mean(value, parameter.choices))
    if isinstance(value, list) and not value and parameter.kind in EMPTY_LISTS_REFUSED and not parameter.may_be_empty:
        refuse_empty(value, pointer)


def json_type_phrase(value: Any) -> str:
    """'a string', 'an object', 'null': how a message calls the type of *value*."""
    name = json_type(value)
    return name if name == "null" else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"

# endregion

# region evaluators/regex_timer.py
# =============================================================================
# Regular expressions of the user: compiled with care, run for one second at most.
#
# A pattern such as ^(a+)+$ can take longer than the age of the universe, and a thread cannot
# interrupt it. An alarm signal can: CPython's matcher looks for signals as it goes. Alarms reach
# the main thread only, so anywhere else, and on Windows, which has none, a pattern is not run
# at all: `timed` says so, and the evaluator answers error.
# =============================================================================

PATTERN_SECONDS = 1.0
# Escapes, sets and comments in one piece, then what is looked for: atomic groups, possessive repeats, flags in the middle.
PATTERN_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?#[^)]*\)"
    r"|(?P<newer>\(\?>|(?:[*+?]|\{(?:[0-9]+(?:,[0-9]*)?|,[0-9]*)\})\+)|(?P<flags>\(\?[aiLmsux]+\))|.",
    re.DOTALL,
)
FLAGS_IN_FRONT = re.compile(r"(?:\(\?[aiLmsux]+\))*")
SET_THAT_WARNS = re.compile(r"\[\[|--|&&|~~|\|\|")
EMPTY_PATTERN = re.compile(r"(?:\(\?:|[()|])*\Z")

Result = TypeVar("Result")


class PatternTimeout(Exception):
    """A pattern was stopped after PATTERN_SECONDS, or could not be given a limit; `reason` says which."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def compile_pattern(pattern: str, flags: int = 0, pointer: str = "/pattern") -> "re.Pattern[str]":
    """*pattern* compiled with the *flags* of re.

    Raises ConfigurationError at *pointer*: it is invalid, empty, or means something else on another supported Python.
    """
    newer = newer_syntax(pattern, flags)
    if newer:
        raise ConfigurationError(pointer, "is in a syntax that not every supported Python reads alike", newer)
    try:
        compiled = compile_quietly(pattern, flags) if SET_THAT_WARNS.search(pattern) else re.compile(pattern, flags)
    except re.error as error:
        place = "" if error.pos is None else f" at character {error.pos + 1}"
        raise ConfigurationError(pointer, f"is not a regular expression: {error.msg}{place}") from None
    except (RecursionError, OverflowError):
        raise ConfigurationError(pointer, "is too deeply nested or repeats too often for a regular expression") from None
    if EMPTY_PATTERN.match(pattern):
        raise ConfigurationError(pointer, "is an empty pattern, which every text matches", "write what is to be found")
    return compiled


def compile_quietly(pattern: str, flags: int) -> "re.Pattern[str]":
    """*pattern* compiled without the warning that a set such as [[a] may mean something else one day."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(pattern, flags)


def newer_syntax(pattern: str, flags: int) -> str:
    """What in *pattern* Python 3.10 and its successors do not read alike, and what to do; '' when nothing."""
    if flags & re.VERBOSE or "x" in FLAGS_IN_FRONT.match(pattern)[0]:  # type: ignore[index]
        pattern = re.sub(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|#[^\n]*", r"\1", pattern, flags=re.DOTALL)
    in_front = True
    for token in PATTERN_TOKEN.finditer(pattern):
        if token["newer"]:
            return f"{quoted(token['newer'])} at character {token.start() + 1} is read by Python 3.11 and newer only"
        if token["flags"] and not in_front:
            return f"put the flags {quoted(token['flags'])} in front, or into `flags`"
        in_front = in_front and token["flags"] is not None
    return ""


def timed_match(pattern: "re.Pattern[str]", text: str, mode: str = "search") -> "re.Match[str] | None":
    """What *pattern* finds in *text*: somewhere ('search'), all of it ('full'), at its start ('prefix'). Raises PatternTimeout."""
    find = pattern.search if mode == "search" else pattern.fullmatch if mode == "full" else pattern.match
    try:
        return timed(lambda: find(text))
    except PatternTimeout as timeout:
        raise PatternTimeout(f"pattern {quoted(pattern.pattern, 60)} on {counted(len(text), 'character')}: {timeout.reason}") from None


# --- The timer -------------------------------------------------------------------------


class PatternClock:
    """Whether a limit is running; the handler of the alarm asks, so that a late alarm does nothing."""

    is_running = False


def stop_pattern(number: int, frame: Any) -> None:
    """The handler of SIGALRM: ends the pattern that is running."""
    if PatternClock.is_running:
        raise PatternTimeout(f"stopped after {PATTERN_SECONDS:g} s")


def timed(function: Callable[[], Result], seconds: float = 0) -> Result:
    """What *function* returns. Raises PatternTimeout after *seconds* (0: PATTERN_SECONDS), or at once where no limit can be set.

    Costs 2.5 µs (measured on 3.10 to 3.13). The handler and the timer of whoever used SIGALRM before are put back.
    Inside another `timed` the outer limit counts.
    """
    try:
        import _signal  # type: ignore[import-not-found]  # `signal` without its Python half, which triples the price of a call

        former = _signal.signal(_signal.SIGALRM, stop_pattern)
    except (ImportError, AttributeError, ValueError):  # no such module, no SIGALRM (Windows), not the main thread
        raise PatternTimeout("a pattern can be time-limited in the main thread only, and not on Windows, so it was not run") from None
    if PatternClock.is_running:
        return function()
    PatternClock.is_running = True
    remaining, interval = _signal.setitimer(_signal.ITIMER_REAL, seconds or PATTERN_SECONDS)
    try:
        return function()
    finally:
        PatternClock.is_running = False
        _signal.setitimer(_signal.ITIMER_REAL, remaining, interval)
        _signal.signal(_signal.SIGALRM, _signal.SIG_DFL if former is None else former)

# endregion

# region evaluators/predicates.py
# =============================================================================
# Predicates: small rules about one JSON value, the same in every parameter.
#
#     "ok", 7, {"a": [1]}          a literal: the same JSON value, types apart ("7" is not 7, 1 is 1.0)
#     {"$gt": 3, "$le": 10}        an object whose keys all begin with $: each of them holds
#     {"phone": {"$regex": "^\\+"}}  a literal may hold predicates at any depth; $eq and $literal quote one
#
#     $eq V, $ne V                 the same value, another value
#     $lt $le $gt $ge V            order of two numbers (exact) or of two texts (by code point); unlike types: false
#     $in [V, …], $not_in [V, …]   one of these values, none of them
#     $regex T, $glob T            the text holds the pattern; the whole text is what the glob says (* also spans /)
#     $exists true|false           there is a value (null is one), there is none
#     $not P                       P does not hold
#     $any [P, …] $all $none       of these predicates about the same value one, each, none holds
#     $count {"of": P, "min", "max"}  so many elements of the list hold P (without `of`: elements)
#     $literal V                   V itself, whatever its keys look like
#
# `$any`, `$all` and `$none` combine predicates about one value; elements of a list are asked
# with `$count`: "some" is min 1, "no" is max 0, "each" is max 0 of {"$not": P}. A value that is
# absent holds nothing but `$exists: false` and what is made of negations: `$ne`, `$not_in`, `$not`
# and `$none` are exactly the opposite of what they deny.
# =============================================================================


class MissingValue:
    """The type of MISSING, which no JSON value equals."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = MissingValue()  # what a predicate is asked about when a pointer led nowhere


class Predicate(NamedTuple):
    """A compiled predicate: call it with a value, or with MISSING.

    `is_growing`: what holds for a part of a value holds for all of it, as `$regex` does and `$not` does not.
    """

    holds: Callable[[Any], bool]
    is_growing: bool = True

    def __call__(self, value: Any) -> bool:
        return self.holds(value)

    def about_part(self, value: Any) -> bool | None:
        """The answer about a value found in a field that was cut short; None where what was cut off could change it.

        Numbers, true, false and null are whole; of a text, a list, an object or an absent value more may have been there.
        """
        answer = self.holds(value)
        is_whole = value is None or isinstance(value, (bool, int, float))
        return answer if is_whole or (answer and self.is_growing) else None


def is_predicate(document: Any) -> bool:
    """True for an object whose keys all begin with $; anything else is a literal."""
    return isinstance(document, dict) and bool(document) and all(key.startswith("$") for key in document)


def compile_predicate(document: Any, pointer: str = "", at_least: bool = False) -> Predicate:
    """The predicate that *document* writes, which stands at *pointer* in its entry.

    With *at_least* an object asks for at least its keys, at every depth; lists are compared element by
    element. Raises ConfigurationError, and NothingAsked for an empty list out of a case.
    """
    if not is_predicate(document):
        return compile_literal(document, pointer, at_least)
    parts = []
    for key, operand in document.items():
        if key not in OPERATORS:
            raise ConfigurationError(pointer + pointer_token(key), f"unknown predicate {quoted(key)}", did_you_mean(key, OPERATORS))
        parts.append(OPERATORS[key](operand, pointer + pointer_token(key), at_least))
    return parts[0] if len(parts) == 1 else every_predicate(parts)


def every_predicate(parts: list[Predicate]) -> Predicate:
    """Holds when each of *parts* does."""
    return Predicate(lambda value: all(part.holds(value) for part in parts), all(part.is_growing for part in parts))


# --- Literals --------------------------------------------------------------------------


def compile_literal(document: Any, pointer: str, at_least: bool) -> Predicate:
    """The same JSON value as *document*, in which nested predicates are asked."""
    if isinstance(document, dict) and (at_least or holds_predicate(document)):
        fields = {key: compile_predicate(item, pointer + pointer_token(key), at_least) for key, item in document.items()}
        return object_predicate(fields, at_least)
    if isinstance(document, list) and (at_least or holds_predicate(document)):
        return elements_predicate(
            [compile_predicate(item, pointer + pointer_token(index), at_least) for index, item in enumerate(document)]
        )
    return equal_predicate(document)


def holds_predicate(document: Any) -> bool:
    """True when *document* is a predicate, or holds one at any depth."""
    if isinstance(document, dict):
        return is_predicate(document) or any(map(holds_predicate, document.values()))
    return isinstance(document, list) and any(map(holds_predicate, document))


def equal_predicate(literal: Any) -> Predicate:
    """The same JSON value as *literal*."""
    if isinstance(literal, str):
        return Predicate(lambda value: isinstance(value, str) and value == literal)
    return Predicate(lambda value: json_equal(value, literal))


def object_predicate(fields: dict[str, Predicate], at_least: bool) -> Predicate:
    """An object whose values at the keys of *fields* hold; without *at_least* it has no other keys."""

    def holds(value: Any) -> bool:
        if not isinstance(value, dict) or not (at_least or value.keys() <= fields.keys()):
            return False
        return all(field.holds(value.get(key, MISSING)) for key, field in fields.items())

    return Predicate(holds, all(field.is_growing for field in fields.values()))


def elements_predicate(items: list[Predicate]) -> Predicate:
    """A list as long as *items*, each element of which holds at its place."""

    def holds(value: Any) -> bool:
        return (
            isinstance(value, list)
            and len(value) == len(items)
            and all(item.holds(element) for item, element in zip(items, value, strict=True))
        )

    return Predicate(holds, all(item.is_growing for item in items))


# --- Operators: each takes (operand, its pointer, at_least) ------------------------------

CompileOperator = Callable[[Any, str, bool], Predicate]


def refuse_operand(pointer: str, operand: Any, wanted: str) -> ConfigurationError:
    """The error that says what the operator at *pointer* takes."""
    return ConfigurationError(pointer, f"{pointer.rpartition('/')[2]} takes {wanted}, not {json_type_phrase(operand)}")


def negated_predicate(predicate: Predicate) -> Predicate:
    """Holds exactly when *predicate* does not."""
    return Predicate(lambda value: not predicate.holds(value), False)


def order_operator(compare: Callable[[Any, Any], bool]) -> CompileOperator:
    """The operator that compares two numbers or two texts with *compare*."""

    def compile_order(operand: Any, pointer: str, at_least: bool) -> Predicate:
        if is_json_number(operand):
            return Predicate(lambda value: is_json_number(value) and compare(value, operand))
        if isinstance(operand, str):
            return Predicate(lambda value: isinstance(value, str) and compare(value, operand))
        raise refuse_operand(pointer, operand, "a number or a text")

    return compile_order


def compile_in(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """One of the values of *operand*."""
    if not isinstance(operand, list):
        raise refuse_operand(pointer, operand, "a list of values")
    refuse_empty(operand, pointer)
    texts = frozenset(item for item in operand if isinstance(item, str))
    others = [item for item in operand if not isinstance(item, str)]
    return Predicate(lambda value: value in texts if isinstance(value, str) else any(json_equal(value, item) for item in others))


def compile_not_in(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """None of the values of *operand*."""
    return negated_predicate(compile_in(operand, pointer, at_least))


def compile_regex(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """A text in which the pattern *operand* is found, under the time limit of patterns."""
    if not isinstance(operand, str):
        raise refuse_operand(pointer, operand, "a regular expression")
    search = compile_pattern(operand, 0, pointer).search
    return Predicate(lambda value: isinstance(value, str) and timed(lambda: search(value)) is not None)


def compile_globs(globs: list[str], pointer: str) -> Callable[[str], bool]:
    """Whether a text is, whole and case-sensitive, what one of *globs* says; * and ? also stand for a slash."""
    from fnmatch import translate

    if any(not isinstance(glob, str) or not glob for glob in globs):
        raise ConfigurationError(pointer, "a glob is a text that is not empty")
    plain = frozenset(glob for glob in globs if not re.search(r"[*?\[]", glob))
    wild = [translate(glob) for glob in globs if glob not in plain]
    if not wild:
        return plain.__contains__
    matches = [re.compile(pattern).match for pattern in wild]
    return lambda text: text in plain or any(match(text) is not None for match in matches)


def compile_glob(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """A text that is what the glob *operand* says."""
    is_named = compile_globs([operand], pointer)
    return Predicate(lambda value: isinstance(value, str) and is_named(value))


def compile_exists(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """There is a value, or there is none."""
    if not isinstance(operand, bool):
        raise refuse_operand(pointer, operand, "true or false")
    return Predicate(lambda value: (value is not MISSING) is operand, operand)


def compile_each(operand: Any, pointer: str, at_least: bool) -> list[Predicate]:
    """The predicates of the list *operand*."""
    if not isinstance(operand, list):
        name = pointer.rpartition("/")[2]
        hint = 'elements of a list are asked with {"$count": {"of": …, "min": 1}}'
        raise ConfigurationError(pointer, f"{name} takes a list of predicates, not {json_type_phrase(operand)}", hint)
    refuse_empty(operand, pointer)
    return [compile_predicate(item, pointer + pointer_token(index), at_least) for index, item in enumerate(operand)]


def compile_any(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """One of several predicates about the same value."""
    parts = compile_each(operand, pointer, at_least)
    return Predicate(lambda value: any(part.holds(value) for part in parts), all(part.is_growing for part in parts))


def compile_all(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """Each of several predicates about the same value."""
    return every_predicate(compile_each(operand, pointer, at_least))


def compile_none(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """None of several predicates about the same value."""
    return negated_predicate(compile_any(operand, pointer, at_least))


def compile_not(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """The opposite of one predicate."""
    return negated_predicate(compile_predicate(operand, pointer, at_least))


def compile_count(operand: Any, pointer: str, at_least: bool) -> Predicate:
    """A list of whose elements so many hold."""
    if not isinstance(operand, dict):
        raise refuse_operand(pointer, operand, 'an object, {"of": predicate, "min": 1, "max": 3}')
    for key in operand:
        if key not in ("of", "min", "max"):
            raise ConfigurationError(pointer + pointer_token(key), f"unknown key {quoted(key)}", did_you_mean(key, ("of", "min", "max")))
    low, high = count_bounds(operand, pointer)
    of = compile_predicate(operand["of"], pointer + "/of", at_least) if "of" in operand else Predicate(lambda value: True)

    def holds(value: Any) -> bool:
        if not isinstance(value, list):
            return False
        number = sum(1 for item in value if of.holds(item))
        return number >= low and (high is None or number <= high)

    return Predicate(holds, high is None and of.is_growing)


def count_bounds(document: dict[str, Any], pointer: str) -> tuple[int, int | None]:
    """(min, max) of *document*, 0 and None where absent. Raises ConfigurationError for none, negative or crossed ones."""
    low, high = document.get("min"), document.get("max")
    for key, bound in (("min", low), ("max", high)):
        if bound is not None and (not isinstance(bound, int) or isinstance(bound, bool) or bound < 0):
            raise ConfigurationError(f"{pointer}/{key}", f"{key} is not a whole number from 0")
    if low is None and high is None:
        raise ConfigurationError(pointer, "has neither min nor max, so that anything would do", "give one of them")
    if low is not None and high is not None and low > high:
        raise ConfigurationError(f"{pointer}/min", f"min {low} is greater than max {high}")
    return low or 0, high


OPERATORS: dict[str, CompileOperator] = {
    "$eq": lambda operand, pointer, at_least: equal_predicate(operand),
    "$ne": lambda operand, pointer, at_least: negated_predicate(equal_predicate(operand)),
    "$lt": order_operator(lambda value, bound: bool(value < bound)),
    "$le": order_operator(lambda value, bound: bool(value <= bound)),
    "$gt": order_operator(lambda value, bound: bool(value > bound)),
    "$ge": order_operator(lambda value, bound: bool(value >= bound)),
    "$in": compile_in,
    "$not_in": compile_not_in,
    "$regex": compile_regex,
    "$glob": compile_glob,
    "$exists": compile_exists,
    "$not": compile_not,
    "$any": compile_any,
    "$all": compile_all,
    "$none": compile_none,
    "$count": compile_count,
    "$literal": lambda operand, pointer, at_least: equal_predicate(operand),
}

# endregion

# region evaluators/transforms.py
# =============================================================================
# Transforms: named, pure steps between what an entry selects and what its check sees.
#
#     "transform": ["strip_markdown", "last_line", {"regex_capture": ["A: (.*)", 1]}]
#
# Those of TEXT_TRANSFORMS change every string inside the value and also serve `normalize`; the
# others take something out of it. One that finds nothing raises NotMeasurable.
# =============================================================================

Transform = Callable[[Any], Any]

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^\n`]*\Z")  # CommonMark 0.31, section 4.5
# Bounded repeats keep each of these linear on a hostile text.
MARKDOWN = (
    (re.compile(r"^ {0,3}(?:`{3,}|~{3,})[^\n]*\n?", re.MULTILINE), ""),
    (re.compile(r"^ {0,3}(?:#{1,6} {1,9}|>{1,9} ?)", re.MULTILINE), ""),
    (re.compile(r"^([ \t]{0,99})[-*+] {1,9}", re.MULTILINE), r"\1"),
    (re.compile(r"!?\[([^\]\[\n]{0,999})\]\([^()\s]{0,2000}(?: [^()\n]{0,999})?\)"), r"\1"),
    (re.compile(r"\*\*|~~|`"), ""),
    (re.compile(r"(?<!\w)__(?=\S)|(?<=\S)__(?!\w)|(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)"), ""),
    (re.compile(r"(?<!\w)_(\S(?:[^_\n]{0,999}\S)?)_(?!\w)"), r"\1"),
)


def text_of(value: Any) -> str:
    """*value* as one text: itself, the texts of a list joined by line feeds, else compact JSON. Raises NotMeasurable for null."""
    if isinstance(value, str):
        return value
    if value is None:
        raise NotMeasurable("there is null where a text is looked for", True)
    if isinstance(value, list):
        return "\n".join(item if isinstance(item, str) else encode_compact(item) for item in value)
    return encode_compact(value)


def in_every_text(function: Callable[[str], str]) -> Transform:
    """Applies *function* to a string, and to every string inside a list or object."""

    def apply(value: Any) -> Any:
        if isinstance(value, str):
            return function(value)
        if isinstance(value, list):
            return [apply(item) for item in value]
        if isinstance(value, dict):
            return {key: apply(item) for key, item in value.items()}
        return value

    return apply


def canonical_form(text: str) -> str:
    """*text* in the Unicode form NFC: é as one character."""
    import unicodedata

    return unicodedata.normalize("NFC", text)


def compatible_form(text: str) -> str:
    """*text* in the Unicode form NFKC: also full-width letters, ligatures and no-break spaces as plain ones."""
    import unicodedata

    return unicodedata.normalize("NFKC", text)


def collapse_space(text: str) -> str:
    """*text* with each run of white space, also no-break spaces, as one space, and none at its ends."""
    return " ".join(text.split())


def strip_markdown(text: str) -> str:
    """*text* without the marks of headings, lists, quotes, links, emphasis and code; the words stay."""
    for pattern, replacement in MARKDOWN:
        text = pattern.sub(replacement, text)
    return text


def line_from(text: str, last: bool) -> str:
    """The first or last line of *text* that is not blank, without the space around it."""
    for line in reversed(text.split("\n")) if last else text.split("\n"):
        if line.strip():
            return line.strip()
    raise NotMeasurable("there is no line that is not blank")


def fenced_blocks(text: str) -> list[tuple[str, str]]:
    """(language in lower case, content) of each fenced code block of *text*, as CommonMark reads them."""
    blocks: list[tuple[str, str]] = []
    content: list[str] = []
    fence, language = "", ""
    for line in text.split("\n"):
        match = FENCE.match(line.rstrip("\r"))
        if fence and match and match[1].startswith(fence) and not line.strip(" \t\r" + fence[0]):
            blocks.append((language, "\n".join(content)))
            fence = ""
        elif fence:
            content.append(line)
        elif match:
            fence, language, content = match[1], match[2].lower(), []
    return [*blocks, (language, "\n".join(content))] if fence else blocks


def fenced_block(text: str, language: str) -> str:
    """The first fenced block of *language* ('' for any)."""
    for name, content in fenced_blocks(text):
        if language in ("", name):
            return content
    raise NotMeasurable(f"there is no fenced block{f' of {quoted(language)}' if language else ''}")


def parsed_json(value: Any) -> Any:
    """The JSON value that a text holds; what is not text already is one."""
    try:
        return parse_json(value) if isinstance(value, str) else value
    except JsonError as error:
        raise NotMeasurable(f"the text is not JSON: {error.message}", True) from None


def csv_rows(text: str) -> list[dict[str, str]]:
    """The rows of a CSV text as objects under the names of its first row."""
    import csv

    try:
        rows = [row for row in csv.reader((line + "\n" for line in text.split("\n")), strict=True) if row]
    except csv.Error as error:
        raise NotMeasurable(f"the text is not CSV: {error}", True) from None
    if not rows:
        raise NotMeasurable("there are no CSV rows")
    header = rows[0]
    if len(set(header)) < len(header):
        raise NotMeasurable("two CSV columns have the same name", True)
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise NotMeasurable(f"CSV row {number} has {counted(len(row), 'cell')}, the header {len(header)}", True)
    return [dict(zip(header, row, strict=True)) for row in rows[1:]]


def number_in(text: str) -> int | float:
    """The last number of *text*."""
    found = last_number(text)
    if found is None or found.value is None:
        raise NotMeasurable("there is no number" if found is None else "the number has too many digits")
    return json_number(found.value)


def pointer_transform(arguments: list[Any], pointer: str) -> Transform:
    """Follows a JSON Pointer, in which * is every element."""
    text = transform_text(arguments[0], pointer)
    try:
        tokens = pointer_tokens(text)
    except ValueError as error:
        raise ConfigurationError(pointer, str(error)) from None

    def follow(value: Any) -> Any:
        found = values_at(value, tokens)
        if found is None:
            raise NotMeasurable(f"there is nothing at {text}", True)
        return [each for _, each in found] if "*" in tokens else found[0][1]

    return follow


def capture_transform(arguments: list[Any], pointer: str) -> Transform:
    """Takes what a group (a number or name; the first if there is one) of the first match captured."""
    pattern = compile_pattern(transform_text(arguments[0], pointer), 0, pointer)
    group = pattern_group(pattern, arguments[1] if len(arguments) > 1 else min(pattern.groups, 1), pointer)

    def capture(value: Any) -> Any:
        match = timed_match(pattern, text_of(value))
        if match is None or match[group] is None:
            raise NotMeasurable(f"pattern {quoted(pattern.pattern, 60)} finds nothing")
        return match[group]

    return capture


def pattern_group(pattern: "re.Pattern[str]", group: Any, pointer: str) -> int | str:
    """*group* when *pattern* has a group of that number or name. Raises ConfigurationError."""
    if isinstance(group, int) and not isinstance(group, bool) and 0 <= group <= pattern.groups:
        return group
    if isinstance(group, str) and group in pattern.groupindex:
        return group
    known = f"{counted(pattern.groups, 'group')}{', named ' + ', '.join(pattern.groupindex) if pattern.groupindex else ''}"
    raise ConfigurationError(pointer, f"the pattern has no group {quoted(str(group))}", f"it has {known}")


def transform_text(argument: Any, pointer: str) -> str:
    """*argument* when it is a text. Raises ConfigurationError."""
    if isinstance(argument, str):
        return argument
    raise ConfigurationError(pointer, f"an argument is a JSON {json_type(argument)}, not a string")


def fenced_transform(arguments: list[Any], pointer: str) -> Transform:
    """Takes the first fenced block, of one language when one is named."""
    language = transform_text(arguments[0], pointer).lower() if arguments else ""
    return lambda value: fenced_block(text_of(value), language)


TEXT_TRANSFORMS: dict[str, Transform] = {
    "strip": in_every_text(str.strip),
    "lower": in_every_text(str.lower),
    "casefold": in_every_text(str.casefold),
    "nfc": in_every_text(canonical_form),
    "nfkc": in_every_text(compatible_form),
    "collapse_space": in_every_text(collapse_space),
    "strip_markdown": in_every_text(strip_markdown),
}
PLAIN_TRANSFORMS: dict[str, Transform] = {
    **TEXT_TRANSFORMS,
    "first_line": lambda value: line_from(text_of(value), False),
    "last_line": lambda value: line_from(text_of(value), True),
    "number": lambda value: value if json_type(value) == "number" else number_in(text_of(value)),
    "json": parsed_json,
    "csv": lambda value: csv_rows(text_of(value)),
}
# name: (fewest arguments, most arguments, what makes the transform of them)
TRANSFORMS_WITH_ARGUMENTS: dict[str, tuple[int, int, Callable[[list[Any], str], Transform]]] = {
    "fenced": (0, 1, fenced_transform),
    "pointer": (1, 1, pointer_transform),
    "regex_capture": (1, 2, capture_transform),
}


def compile_transforms(steps: list[Any], pointer: str) -> list[Transform]:
    """The functions that *steps* name, in order. Raises ConfigurationError below *pointer*."""
    return [compile_transform(step, f"{pointer}/{index}") for index, step in enumerate(steps)]


def compile_transform(step: Any, pointer: str) -> Transform:
    """The function of one step, a name or {name: [arguments]}."""
    if isinstance(step, dict) and len(step) == 1:
        ((name, arguments),) = step.items()
        if not isinstance(arguments, list):
            raise ConfigurationError(pointer, f"the arguments of {quoted(name)} are no list", f'write {{"{name}": [argument, …]}}')
    else:
        name, arguments = step, []
    if not isinstance(name, str):
        raise ConfigurationError(pointer, "is neither a name nor an object with one name")
    fewest, most, make = TRANSFORMS_WITH_ARGUMENTS.get(name, (0, 0, None))
    if make is None and name not in PLAIN_TRANSFORMS:
        known = [*PLAIN_TRANSFORMS, *TRANSFORMS_WITH_ARGUMENTS]
        raise ConfigurationError(pointer, f"transform {quoted(name)} is unknown", did_you_mean(name, known))
    if not fewest <= len(arguments) <= most:
        wanted = counted(fewest, "argument") if fewest == most else f"{fewest} to {most} arguments"
        raise ConfigurationError(pointer, f"transform {quoted(name)} takes {wanted}, not {len(arguments)}")
    return PLAIN_TRANSFORMS[name] if make is None else make(arguments, pointer)


def compile_normalizer(names: list[Any], pointer: str = "/normalize") -> Transform:
    """The function that applies the text transforms *names*, in order, to every string of a value."""
    for index, name in enumerate(names):
        if name not in TEXT_TRANSFORMS:
            hint = did_you_mean(str(name), TEXT_TRANSFORMS)
            raise ConfigurationError(f"{pointer}/{index}", f"{quoted(str(name))} changes no text, so it cannot normalise", hint)
    functions = [TEXT_TRANSFORMS[name] for name in names]

    def normalise(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value

    return normalise


# endregion

# region evaluators/shell_words.py
# =============================================================================
# Shell command lines read as programs and arguments; nothing is run or expanded.
#
#     cd app && FOO=1 /usr/bin/git push --force "origin main" | tee log
#
# gives
#
#     [{"program": "cd", "arguments": ["app"]},
#      {"program": "git", "arguments": ["push", "--force", "origin main"]},
#      {"program": "tee", "arguments": ["log"]}]
#
# A command ends at ; & | a line end or a bracket, so that what stands in $( ) and back
# quotes outside of quotes is seen as well. The program is the last part of its path;
# assignments before it are left out; redirections stay among the arguments. What runs inside
# a quoted text, as in bash -c "…", is one argument. A quote that is never closed lasts to the end.
# =============================================================================

SHELL_TOKEN = re.compile(
    r"""(?P<end>[;|()`\n]+|&(?!>)[&;|]*)"""  # the end of a command
    r"""|(?P<space>[ \t\r]+)"""
    r"""|\\\n"""  # the command goes on in the next line
    r"""|(?P<comment>(?<![^\s;|&()`])\#[^\n]*)"""
    r"""|(?P<redirection>&?[<>]+[&|]?)"""
    r"""|'(?P<single>[^']*)'?"""
    r"""|"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"?"""
    r"""|\\(?P<escaped>.)"""
    r"""|(?P<plain>[^\s;|&()`<>'"\\]+|.)""",
    re.DOTALL,
)
SHELL_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")


def shell_commands(text: str) -> list[JsonObject]:
    """[{"program", "arguments"}] for each simple command of the command line *text*, in the order written."""
    commands: list[JsonObject] = []
    words: list[str] = []
    pieces: list[str] = []  # of the word that is being read
    for token in SHELL_TOKEN.finditer(text):
        kind = token.lastgroup
        if kind in ("end", "space", "redirection") and pieces:
            words.append("".join(pieces))
            pieces = []
        if kind == "end":
            add_shell_command(commands, words)
            words = []
        elif kind == "redirection":
            words.append(token.group())
        elif kind == "double":
            pieces.append(re.sub(r"\\([\"\\$`])|\\\n", r"\1", token.group(kind)))
        elif kind in ("single", "escaped", "plain"):
            pieces.append(token.group(kind))
    add_shell_command(commands, [*words, "".join(pieces)] if pieces else words)
    return commands


def add_shell_command(commands: list[JsonObject], words: list[str]) -> None:
    """Adds the command that *words* make to *commands*, unless there is none."""
    start = next((index for index, word in enumerate(words) if not SHELL_ASSIGNMENT.match(word)), len(words))
    if start < len(words):
        commands.append({"program": words[start].rpartition("/")[2] or words[start], "arguments": words[start + 1 :]})

# endregion

# region evaluators/trail.py
# =============================================================================
# The recorded steps of an observation: their content, their order, how reasons call them.
#
# Steps are told by their place, counted from 0 as in pointers and evidence. What the recording
# does not say is None, never a guess.
# =============================================================================

ARGUMENTS_SHOWN = 80  # characters of a step's arguments in a reason
EVIDENCE_SHOWN = 20  # steps named in the evidence of one outcome
FAILED_STATUSES = frozenset(["error", "denied", "timeout"])  # what ended so changed nothing
Ask = Callable[[Predicate, Any], "bool | None"]  # a predicate about a value; None where the recording does not say


class Trail:
    """The recorded steps of one observation, and what is worked out about them once.

    With *is_partial* what is absent counts as not recorded: for steps that are only described.
    """

    def __init__(self, steps: list[JsonObject], is_partial: bool = False) -> None:
        self.steps = steps
        self.is_partial = is_partial
        self.parsed: dict[tuple[int, str], Any] = {}
        self.places: dict[Any, int] | None = None
        self.agents_named: bool | None = None
        self.kinds_told: dict[str, bool] = {}  # whether any step of a kind has a status or a result

    def content(self, index: int, field: str) -> Any:
        """`args` or `result` of a step, JSON text parsed; MISSING when absent, {} for arguments that are absent or null."""
        value = self.steps[index].get(field, MISSING)
        if field == "args" and (value is MISSING or value is None):
            return {}
        if not isinstance(value, str):
            return value
        key = (index, field)
        if key not in self.parsed:
            self.parsed[key] = parsed_text(value)
        return self.parsed[key]

    def asking(self, index: int, field: str) -> Ask:
        """How a predicate is asked about a value that was looked for in *field* of a step."""
        if is_cut(self.steps[index], field):
            return lambda predicate, value: predicate.about_part(value)
        if self.is_partial:
            return lambda predicate, value: None if value is MISSING else predicate.holds(value)
        return lambda predicate, value: predicate.holds(value)

    def parent(self, index: int) -> int | None:
        """The place of a step's parent: -1 when it names none, None when the one it names is not recorded."""
        parent = self.steps[index].get("parent")
        if parent is None:
            return None if self.is_partial else -1
        if self.places is None:
            self.places = {encode_compact(step["id"]): place for place, step in enumerate(self.steps) if step.get("id") is not None}
        return self.places.get(encode_compact(parent))

    def names_agents(self) -> bool:
        """Whether any step says which agent took it."""
        if self.agents_named is None:
            self.agents_named = any(step.get("agent") is not None for step in self.steps)
        return self.agents_named

    def has_failed(self, index: int) -> bool:
        """Whether a step ended in error, denial or time-out; one without status is not known to have failed."""
        status = self.steps[index].get("status")
        return isinstance(status, str) and status in FAILED_STATUSES

    def has_returned(self, index: int) -> bool:
        """Whether a call did not fail and its result came back.

        A call with neither status nor result counts as returned only where no step of its kind has any.
        """
        step = self.steps[index]
        if self.has_failed(index):
            return False
        if step.get("status") is not None or step.get("result") is not None:
            return True
        kind = str(step.get("kind"))
        if kind not in self.kinds_told:
            alike = [other for other in self.steps if str(other.get("kind")) == kind]
            self.kinds_told[kind] = any(other.get("status") is not None or other.get("result") is not None for other in alike)
        return not self.kinds_told[kind]

    def are_together(self, first: int, second: int) -> bool:
        """Whether two calls were issued together, in one batch (of one turn, where turns are told)."""
        one, other = self.steps[first], self.steps[second]
        batch = one.get("batch")
        return batch is not None and json_equal([batch, one.get("turn")], [other.get("batch"), other.get("turn")])

    def comes_before(self, first: int, second: int) -> bool:
        """Whether one step came before another; calls issued together did not."""
        return first < second and not self.are_together(first, second)


def parsed_text(text: str) -> Any:
    """The JSON value that *text* holds, else *text* itself."""
    try:
        return parse_json(text)
    except JsonError:
        return text


def recorded_steps(observation: JsonObject) -> list[JsonObject]:
    """The steps of *observation*; without any, its `tool_calls` as steps of kind tool.

    Raises NotMeasurable when neither was recorded, or when tool calls stand beside steps that hold none,
    so that their order is not known.
    """
    steps, calls = observation.get("steps"), observation.get("tool_calls")
    found = steps if isinstance(steps, list) else None
    if isinstance(calls, list) and (calls or found is None) and not any(is_call(step) for step in found or ()):
        if found:
            raise NotMeasurable("tool_calls stand beside steps without tool calls, so their place among the steps is not known")
        found = [{"kind": "tool", **call} if isinstance(call, dict) else call for call in calls]
    if found is None:
        raise NotMeasurable("no steps were recorded")
    broken = next((index for index, step in enumerate(found) if not isinstance(step, dict)), None)
    if broken is not None:
        raise NotMeasurable(f"step {broken} is {json_type_phrase(found[broken])}, not an object")
    return found


def is_call(step: Any) -> bool:
    """Whether *step* is of kind tool."""
    return isinstance(step, dict) and step.get("kind") == "tool"


def view_trail(view: View) -> Trail:
    """The trail of the observation in *view*, shared by all entries. Raises NotMeasurable."""
    trail = view.memo.get("trail")
    if trail is None:
        trail = view.memo["trail"] = Trail(recorded_steps(view.observation))
    return trail


def call_text(step: JsonObject) -> str:
    """How a reason calls a step or a matcher: 'refund {"order":"A-7"}', 'message of user'."""
    name = step.get("name")
    if isinstance(name, list):
        name = "|".join(map(str, name))
    if not isinstance(name, str):
        role = step.get("role")
        name = f"{step.get('kind') or 'any step'}{f' of {role}' if isinstance(role, str) else ''}"
    args = step.get("args")
    shown = "" if args is None or args == {} else " " + visible(args if isinstance(args, str) else encode_compact(args), ARGUMENTS_SHOWN)
    return visible(str(name), ARGUMENTS_SHOWN) + shown


def step_text(trail: Trail, index: int) -> str:
    """How a reason calls a recorded step: 'step 3 refund {"order":"A-7"}', counted from 0 as in pointers."""
    return f"step {index} {call_text(trail.steps[index])}"


def is_cut(step: JsonObject, field: str) -> bool:
    """Whether *field* of *step* was cut short."""
    cut = step.get("truncated")
    return isinstance(cut, list) and field in cut


def step_evidence(indexes: Iterable[int]) -> tuple[JsonObject, ...]:
    """The evidence that points at the steps at *indexes*, the first 20 of them."""
    return tuple({"step": index} for index in sorted(indexes)[:EVIDENCE_SHOWN])


def settled(candidates: Iterable[tuple[bool | None, bool | None]], otherwise: bool | None) -> bool | None:
    """The answer of the first candidate that is meant, *otherwise* when none is; None when it is not known which.

    A candidate is (whether it is meant, its answer). One that may be meant, with another answer, leaves it open.
    """
    answers = set()
    for is_meant, answer in candidates:
        if is_meant is not False:
            answers.add(answer)
        if is_meant:
            break
    else:
        answers.add(otherwise)
    return answers.pop() if len(answers) == 1 else None

# endregion

# region evaluators/arguments.py
# =============================================================================
# What a step matcher asks of arguments and results: names, pointers, modes, defaults.
#
#     {"args": {"order": "A-7", "/items/0/sku": {"$regex": "^S"}}, "args_mode": "contains",
#      "args_defaults": {"limit": 10}, "args_ignore": ["request_id", "/items/*/note"]}
#
# contains asks for at least these, at every depth, lists element by element; exact for no other
# arguments; keys for the same names, whatever the values; ignore for nothing. Defaults are filled in
# and what is ignored is left out on both sides. A name that begins with / is a JSON Pointer; with * it
# leads to the list of what was found. JSON held in text is parsed when a pointer goes into it; a text
# that is not JSON is read as a shell command line in a step of kind `command` and below an argument
# called `command` or `cmd`: `/command/*/program` is the list of the programs, `/command/0/arguments`
# the words after the first.
# =============================================================================

ARGS_MODES = ("contains", "exact", "keys", "ignore")
SHELL_ARGUMENTS = ("command", "cmd")

Tokens = tuple[str, ...]
FieldPredicates = list[tuple[Tokens, Predicate]]
ArgumentsTest = Callable[[Any, bool, Ask], "bool | None"]  # (arguments, whether the step is a command, ask)

NEVER = Predicate(lambda value: False)
PRESENT = Predicate(lambda value: value is not MISSING)


# --- Names and pointers ------------------------------------------------------------------


def field_tokens(name: Any, pointer: str = "") -> Tokens:
    """The tokens of a name or JSON Pointer: 'a' and '/a' give ('a',), '' gives (). Raises ConfigurationError."""
    if not isinstance(name, str):
        raise ConfigurationError(pointer, f"a name or pointer is a text, not {json_type_phrase(name)}")
    return (name,) if name and not name.startswith("/") else tuple(pointer_tokens(name))


def found_at(value: Any, tokens: Tokens, has_commands: bool = False) -> Any:
    """What stands at *tokens* in *value*, a list of it for a wildcard, MISSING for nothing.

    With *has_commands* a text on the way that is not JSON is read as a shell command line.
    """
    if len(tokens) == 1 and isinstance(value, dict) and tokens[0] != "*":
        return value.get(tokens[0], MISSING)
    pairs = values_at(value, tokens)
    if pairs is None and has_commands:
        pairs = values_in_commands(value, tokens)
    if pairs is None:
        return MISSING
    return [item for _, item in pairs] if "*" in tokens else pairs[0][1]


def values_in_commands(value: Any, tokens: Tokens) -> list[tuple[str, Any]] | None:
    """What stands at *tokens* when the first text on the way is a shell command line; None for nothing."""
    for place in range(len(tokens)):
        if isinstance(value, str):
            return values_at(shell_commands(value), tokens[place:])
        pairs = None if tokens[place] == "*" else values_at(value, tokens[place : place + 1])
        if pairs is None:
            return None
        value = pairs[0][1]
    return None


def without_field(value: Any, tokens: Tokens) -> Any:
    """A copy of *value* that lacks what stands at *tokens*."""
    if not tokens or not isinstance(value, (dict, list)):
        return value
    head, rest = tokens[0], tokens[1:]
    pairs = list(value.items()) if isinstance(value, dict) else [(str(index), item) for index, item in enumerate(value)]
    kept = [(key, without_field(item, rest) if head in ("*", key) else item) for key, item in pairs if rest or head not in ("*", key)]
    return dict(kept) if isinstance(value, dict) else [item for _, item in kept]


# --- Results ---------------------------------------------------------------------------


def is_field_map(wanted: Any) -> bool:
    """Whether *wanted* is {name or pointer: …}, not a value or predicate about the whole."""
    return isinstance(wanted, dict) and not is_predicate(wanted)


def compile_field_map(wanted: Any, pointer: str, at_least: bool) -> FieldPredicates:
    """(tokens, predicate) for each name and pointer of *wanted*; a value or predicate is asked of the whole, ()."""
    if not is_field_map(wanted):
        return [((), compile_predicate(wanted, pointer, at_least))]
    places = [(name, pointer + pointer_token(name), item) for name, item in wanted.items()]
    return [(field_tokens(name, place), compile_predicate(item, place, at_least)) for name, place, item in places]


def fields_answer(fields: FieldPredicates, find: Callable[[Tokens], Any], ask: Ask) -> bool | None:
    """Whether all *fields* hold of what *find* gives for their tokens."""
    answer: bool | None = True
    for tokens, predicate in fields:
        found = ask(predicate, find(tokens))
        if found is False:
            return False
        answer = None if found is None else answer
    return answer


# --- Arguments -------------------------------------------------------------------------


def compile_arguments(document: JsonObject, pointer: str) -> ArgumentsTest:
    """The test of arguments that the matcher *document* writes, which stands at *pointer*. Raises ConfigurationError."""
    mode = document.get("args_mode", "contains")
    if mode not in ARGS_MODES:
        raise ConfigurationError(f"{pointer}/args_mode", f"args_mode {quoted(str(mode))} is unknown", did_you_mean(str(mode), ARGS_MODES))
    defaults, ignored = args_defaults(document, pointer), args_ignored(document, pointer)
    if mode == "ignore":
        return lambda value, is_command, ask: True
    fields = compile_field_map(args_wanted(document["args"], defaults, ignored), f"{pointer}/args", mode == "contains")
    is_closed = mode in ("exact", "keys")
    if is_closed and any(len(tokens) > 1 for tokens, _ in fields) or (mode == "keys" and not is_field_map(document["args"])):
        raise ConfigurationError(f"{pointer}/args", f"with args_mode {mode} args are named whole, without pointers into them")
    if mode == "keys":
        fields = [(tokens, PRESENT) for tokens, _ in fields]
    names = {tokens[0] for tokens, _ in fields if tokens}
    is_closed = is_closed and is_field_map(document["args"])

    def test(value: Any, is_command: bool, ask: Ask) -> bool | None:
        if defaults and isinstance(value, dict):
            value = {**defaults, **value}
        for tokens in ignored:
            value = without_field(value, tokens)
        if is_closed and not isinstance(value, dict):
            return ask(NEVER, value)
        if is_closed and not value.keys() <= names:
            return False
        return fields_answer(fields, lambda tokens: found_at(value, tokens, is_command or tokens[:1] in SHELL_TOKENS), ask)

    return test


SHELL_TOKENS = tuple((name,) for name in SHELL_ARGUMENTS)


def args_defaults(document: JsonObject, pointer: str) -> JsonObject:
    """The values of `args_defaults` by name."""
    defaults = document.get("args_defaults", {})
    if not isinstance(defaults, dict):
        raise ConfigurationError(
            f"{pointer}/args_defaults", f"args_defaults is {json_type_phrase(defaults)}, not an object of values by name"
        )
    return defaults


def args_ignored(document: JsonObject, pointer: str) -> list[Tokens]:
    """The tokens of each name or pointer in `args_ignore`."""
    ignored = document.get("args_ignore")
    if ignored is None:
        return []
    place = f"{pointer}/args_ignore"
    if not isinstance(ignored, list):
        raise ConfigurationError(place, f"args_ignore is {json_type_phrase(ignored)}, not a list of names and pointers")
    refuse_empty(ignored, place)
    found = [field_tokens(name, f"{place}/{index}") for index, name in enumerate(ignored)]
    if () in found:
        raise ConfigurationError(place, "args_ignore leaves everything out", 'write "args_mode": "ignore"')
    return found


def args_wanted(wanted: Any, defaults: JsonObject, ignored: list[Tokens]) -> Any:
    """The expected arguments with *defaults* filled in and what is *ignored* left out."""
    if not is_field_map(wanted):
        return wanted
    named = {field_tokens(name)[:1] for name in wanted}
    wanted = {**wanted, **{name: value for name, value in defaults.items() if (name,) not in named}}
    found = {}
    for name, value in wanted.items():
        own = field_tokens(name)
        below = [tokens[len(own) :] for tokens in ignored if tokens[: len(own)] == own]
        if () in below or own[:1] in ignored:
            continue
        for tokens in below:
            value = without_field(value, tokens)
        found[name] = value
    return found

# endregion

# region evaluators/matcher.py
# =============================================================================
# The step matcher: one object that says which recorded steps are meant.
#
# All keys given must hold; {} means every step.
#
#     {"kind": "tool", "name": ["refund_*"], "args": {"order": "A-7", "/items/0/sku": {"$regex": "^S"}}, "status": "ok"}
#
#     kind, role, status, agent   one text or a list of them (kinds and statuses are closed lists)
#     name                        a glob or a list of globs, case-sensitive
#     text                        a part of the text, or a predicate about it
#     args, result                {name or pointer: literal or predicate}, or one about the whole (arguments.py)
#     args_mode, args_defaults, args_ignore   how arguments are compared (arguments.py)
#     turn                        a number, or {"min", "max"}
#     under                       a matcher of an ancestor (by `parent` and `id`)
#     $any                        a list of matchers, one of which holds
#
# An answer is True, False, or None where the recording does not say: a field that was cut short
# (`truncated`) and in which it was not found, no status, no turn, no agent while no step names one.
# =============================================================================

STEP_KINDS = ("tool", "message", "command", "skill", "handoff", "approval", "retrieval", "model", "span", "error")
STEP_STATUSES = ("ok", "error", "denied", "timeout")
OTHER_NAMES = {"arguments": "args", "input": "args", "parameters": "args", "output": "result", "tool": "name", "type": "kind"}
StepTest = Callable[[Trail, int], bool | None]


class Matcher:
    """A compiled step matcher."""

    def __init__(self, tests: list[StepTest], asked: set[str]) -> None:
        self.tests = tests
        self.asked = asked  # keys of the matcher and of those inside it

    def decide(self, trail: Trail, index: int) -> bool | None:
        """Whether the step at *index* is meant; None when the recording does not say."""
        answer: bool | None = True
        for test in self.tests:
            found = test(trail, index)
            if found is False:
                return False
            if found is None:
                answer = None
        return answer

    def decisions(self, trail: Trail) -> list[bool | None]:
        """`decide` of every step."""
        return [self.decide(trail, index) for index in range(len(trail.steps))]

    def matches(self, step: JsonObject) -> bool:
        """Whether *step*, taken by itself, is meant. Raises NotMeasurable when it does not say."""
        trail = Trail([step])
        answer = self.decide(trail, 0)
        if answer is None:
            raise NotMeasurable(self.unknown(trail, 0))
        return answer

    def unknown(self, trail: Trail, index: int) -> str:
        """Why it is not known whether the step at *index* is meant."""
        step = trail.steps[index]
        cut = [field for field in ("args", "result", "text") if field in self.asked and is_cut(step, field)]
        absent = [field for field in ("status", "turn", "agent") if field in self.asked and step.get(field) is None]
        why = f"its {listed(cut)} was cut short" if cut else f"it has no {listed(absent)}" if absent else "its parent is not recorded"
        return f"whether {step_text(trail, index)} is meant is not known: {why}"


def compile_matcher(document: Any, pointer: str = "") -> Matcher:
    """The matcher that *document* writes, which stands at *pointer* in its entry.

    Raises ConfigurationError, and NothingAsked for an empty list out of a case.
    """
    if not isinstance(document, dict):
        hint = 'write {"name": …}' if isinstance(document, str) else ""
        raise ConfigurationError(pointer, f"a step matcher is an object, not {json_type_phrase(document)}", hint)
    for key in document:
        if key not in MATCHER_KEYS:
            hint = did_you_mean(OTHER_NAMES.get(str(key), str(key)), MATCHER_KEYS)
            raise ConfigurationError(pointer + pointer_token(key), f"unknown key {quoted(key)} in a step matcher", hint)
    if "args" not in document:
        useless = next((key for key in ("args_mode", "args_defaults", "args_ignore") if key in document), None)
        if useless:
            raise ConfigurationError(f"{pointer}/{useless}", f"{useless} without args asks nothing", 'add "args": {…}')
    compiled = [(key, compile_key(document, pointer)) for key, compile_key in MATCHER_KEYS.items() if key in document and compile_key]
    asked = {key for key, _ in compiled}.union(*(asked for _, (_, asked) in compiled))
    return Matcher([test for _, (test, _) in compiled], asked)


def compile_matchers(documents: Any, pointer: str) -> list[Matcher]:
    """The matchers of a list, or of one that stands alone."""
    if not isinstance(documents, list):
        return [compile_matcher(documents, pointer)]
    refuse_empty(documents, pointer)
    return [compile_matcher(document, pointer + pointer_token(index)) for index, document in enumerate(documents)]


# --- Keys: each takes (the matcher's document, its pointer) and gives a test and the keys asked inside it ------

CompiledKey = tuple[StepTest, Iterable[str]]
CompileKey = Callable[[JsonObject, str], CompiledKey]


def matcher_texts(document: JsonObject, pointer: str, key: str, known: tuple[str, ...] = ()) -> list[str]:
    """The texts at *key*, one or a list; with *known* none but those."""
    value = document[key]
    values = value if isinstance(value, list) else [value]
    refuse_empty(values, f"{pointer}/{key}")
    for text in values:
        if not isinstance(text, str) or not text:
            raise ConfigurationError(f"{pointer}/{key}", f"{key} is a text that is not empty, or a list of them")
        if known and text not in known:
            raise ConfigurationError(f"{pointer}/{key}", f"unknown {key} {quoted(text)}", did_you_mean(text, known))
    return values


def one_of_key(key: str, known: tuple[str, ...] = ()) -> CompileKey:
    """Compiles a key whose value is one text or a list of them, compared with the step's field of that name."""

    def compile_one_of(document: JsonObject, pointer: str) -> CompiledKey:
        wanted = frozenset(matcher_texts(document, pointer, key, known))

        def test(trail: Trail, index: int) -> bool | None:
            value = trail.steps[index].get(key)
            if isinstance(value, str):
                return value in wanted
            return None if trail.is_partial or key == "status" or (key == "agent" and not trail.names_agents()) else False

        return test, ()

    return compile_one_of


def compile_name(document: JsonObject, pointer: str) -> CompiledKey:
    """The step's name is what one of the globs says."""
    is_named = compile_globs(matcher_texts(document, pointer, "name"), f"{pointer}/name")

    def test(trail: Trail, index: int) -> bool | None:
        name = trail.steps[index].get("name")
        return is_named(name) if isinstance(name, str) else None if trail.is_partial else False

    return test, ()


def compile_text(document: JsonObject, pointer: str) -> CompiledKey:
    """The step's text holds a part, or a predicate about it holds."""
    wanted = document["text"]
    if isinstance(wanted, str) and wanted:
        predicate = Predicate(lambda value: isinstance(value, str) and wanted in value)
    elif is_predicate(wanted):
        predicate = compile_predicate(wanted, f"{pointer}/text")
    else:
        raise ConfigurationError(f"{pointer}/text", "text is a part of the text that is not empty, or a predicate")

    def test(trail: Trail, index: int) -> bool | None:
        text = trail.steps[index].get("text")
        return trail.asking(index, "text")(predicate, MISSING if text is None else text)

    return test, ()


def compile_turn(document: JsonObject, pointer: str) -> CompiledKey:
    """The step's turn lies in the range."""
    turn = document["turn"]
    if isinstance(turn, dict) and not turn.keys() - {"min", "max"}:
        low, high = count_bounds(turn, f"{pointer}/turn")
    elif isinstance(turn, int) and not isinstance(turn, bool):
        low, high = turn, turn
    else:
        raise ConfigurationError(f"{pointer}/turn", 'turn is a number or {"min": 1, "max": 3}')

    def test(trail: Trail, index: int) -> bool | None:
        value = trail.steps[index].get("turn")
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return None
        return low <= value and (high is None or value <= high)

    return test, ()


def compile_under(document: JsonObject, pointer: str) -> CompiledKey:
    """One of the step's ancestors matches."""
    ancestor = compile_matcher(document["under"], f"{pointer}/under")

    def test(trail: Trail, index: int) -> bool | None:
        answer: bool | None = False
        seen = {index}
        place = trail.parent(index)
        while place is not None and place >= 0 and place not in seen:
            found = ancestor.decide(trail, place)
            if found:
                return True
            answer = None if found is None else answer
            seen.add(place)
            place = trail.parent(place)
        return None if place is None else answer

    return test, {"under", *ancestor.asked}


def compile_alternatives(document: JsonObject, pointer: str) -> CompiledKey:
    """One of several matchers matches."""
    if not isinstance(document["$any"], list):
        raise ConfigurationError(f"{pointer}/$any", "$any takes a list of step matchers")
    matchers = compile_matchers(document["$any"], f"{pointer}/$any")

    def test(trail: Trail, index: int) -> bool | None:
        found = [matcher.decide(trail, index) for matcher in matchers]
        return True if True in found else None if None in found else False

    return test, {key for matcher in matchers for key in matcher.asked}


def compile_args(document: JsonObject, pointer: str) -> CompiledKey:
    """The step's arguments hold what is given."""
    holds = compile_arguments(document, pointer)

    def test(trail: Trail, index: int) -> bool | None:
        is_command = trail.steps[index].get("kind") == "command"
        return holds(trail.content(index, "args"), is_command, trail.asking(index, "args"))

    return test, ()


def compile_result(document: JsonObject, pointer: str) -> CompiledKey:
    """The step's result holds what is given."""
    fields = compile_field_map(document["result"], f"{pointer}/result", True)

    def test(trail: Trail, index: int) -> bool | None:
        # The whole of a result is asked as it was recorded; a pointer goes into the JSON that its text holds.
        whole = trail.steps[index].get("result", MISSING)
        return fields_answer(
            fields, lambda tokens: found_at(trail.content(index, "result"), tokens) if tokens else whole, trail.asking(index, "result")
        )

    return test, ()


# In the order in which they are asked: what is cheap and decides most comes first.
MATCHER_KEYS: dict[str, CompileKey | None] = {
    "kind": one_of_key("kind", STEP_KINDS),
    "name": compile_name,
    "role": one_of_key("role"),
    "status": one_of_key("status", STEP_STATUSES),
    "agent": one_of_key("agent"),
    "turn": compile_turn,
    "text": compile_text,
    "args": compile_args,
    "result": compile_result,
    "under": compile_under,
    "$any": compile_alternatives,
    "args_mode": None,  # these three belong to args
    "args_defaults": None,
    "args_ignore": None,
}

# endregion

# region evaluators/consent.py
# =============================================================================
# Whether a user's message says yes.
#
# It does if a sentence of it that is not a question begins with a word of consent (yes, yeah, yep, correct,
# exactly, confirmed, agreed, approved, absolutely; also after "great," or "I see,"), or has a phrase
# of going ahead ("go ahead", "please proceed", "I confirm", "that / everything looks, sounds, is right, good,
# correct, fine"), or one of the phrases given. "Sure", "ok", "okay" and "fine" only as the whole message:
# "Sure! My number is 4711" consents to nothing. A message that begins with no, nope, wait or not yet does
# not. Choosing among options, asking for a thing, and "and yes, I also want …" have none of these forms.
#
# A word of consent that is taken back at once ("absolutely not", "yeah, no") or is no answer ("correct my
# address", "exactly which one") is none, nor is a phrase after a denial or a condition in its clause
# ("don't go ahead", "before you go ahead, …", "make sure everything is correct"). Every pattern runs in linear time.
# =============================================================================

CONSENT_WORD = re.compile(
    r"""(?:(?:great|i\ see)\b,?\ )?
    (?:(?:yes|yeah|yep|confirmed|agreed|approved|absolutely)\b
     | correct\b(?!\ (?:me|my|the|this|that|it|your|our|his|her|their|any|all)\b)
     | exactly\b(?!\ (?:what|which|who|where|when|why|how)\b))
    (?!\ (?:not|no(?!\ (?:problem|worries|issues?)\b))\b | ,?\ (?:no|nah|nope)\W*$ | \ and\ no\b)""",
    re.VERBOSE,
)
GO_AHEAD = r"go ahead|please proceed|i confirm|(?:that|everything)(?:'?s| is| looks| sounds) (?:right|good|correct|fine)"
CONSENT_WHOLE = re.compile(r"\W*(?:sure|ok|okay|fine)[^\w?]*")
CONSENT_REFUSED = re.compile(r"\W*(?:no|nope|wait|not yet)\b")
CONSENT_SENTENCE_END = re.compile(r"[.!?…\n]+")
CONSENT_LEADING_MARKS = re.compile(r"[\W_]+")
CONSENT_CLAUSE_END = re.compile(r"[,;:—–]| but ")
# A question that may lack its mark: "could you go ahead and …".
CONSENT_QUESTION = re.compile(
    r"(?:can|could|would|will|shall|should|may|do|does|did|is|are|am|was|were|have|has)(?:n't)? (?:i|you|we|they|he|she|it)\b"
)
CONSENT_TAKEN_BACK = re.compile(
    r"n't\b|\b(?:not|never|cannot|dont|cant|wont|no need|no longer|without|if|unless|until|before|whether|once"
    r"|make sure|be sure|ensure|check|verify|hope)\b"
)


def consent_phrases(further: list[str]) -> "re.Pattern[str]":
    """The pattern of the phrases that go ahead anywhere in a sentence, with those of *further*."""
    own = [re.escape(plain_sentence(phrase)) for phrase in further]
    return re.compile(rf"(?<!\w)(?:{'|'.join([GO_AHEAD, *own])})(?!\w)")


def plain_sentence(text: str) -> str:
    """*text* in lower case, with straight apostrophes and single spaces."""
    return " ".join(text.casefold().replace("’", "'").replace("ʼ", "'").split())


def says_yes(message: str, phrases: "re.Pattern[str]") -> bool:
    """Whether *message* consents; *phrases* is a pattern of `consent_phrases`."""
    text = message.casefold()
    if CONSENT_REFUSED.match(text):
        return False
    if CONSENT_WHOLE.fullmatch(text):
        return True
    start = 0
    for end in CONSENT_SENTENCE_END.finditer(text):
        if end.group() == "." and end.end() < len(text) and not text[end.end()].isspace():
            continue  # inside 12.50 or kaizen.py
        if "?" not in end.group() and sentence_consents(text[start : end.start()], phrases):
            return True
        start = end.end()
    return sentence_consents(text[start:], phrases)


def sentence_consents(text: str, phrases: "re.Pattern[str]") -> bool:
    """Whether one sentence, which has no question mark, consents."""
    sentence = plain_sentence(text)
    marks = CONSENT_LEADING_MARKS.match(sentence)
    sentence = sentence[marks.end() :] if marks else sentence
    if CONSENT_QUESTION.match(sentence):
        return False
    return CONSENT_WORD.match(sentence) is not None or has_consent_phrase(sentence, phrases)


def has_consent_phrase(sentence: str, phrases: "re.Pattern[str]") -> bool:
    """Whether a phrase stands in *sentence* and nothing before it in its clause takes it back."""
    place = 0  # where the clause begins that is read
    while True:
        phrase = phrases.search(sentence, place)
        if phrase is None:
            return False
        for end in CONSENT_CLAUSE_END.finditer(sentence, place, phrase.start()):
            place = end.end()
        if CONSENT_TAKEN_BACK.search(sentence, place, phrase.start()) is None:
            return True
        # What takes this phrase back takes back the others of its clause.
        following = CONSENT_CLAUSE_END.search(sentence, phrase.end())
        if following is None:
            return False
        place = following.end()

# endregion

# region evaluators/spoken.py
# =============================================================================
# Whether a value was said in messages, in the forms in which people write it.
#
# Case, _ - and spaces do not matter ("extend_rental" and "Extend rental", "K-20" and "k20"), nor do currency
# signs and thousands separators (1250 and "$1,250.00"), nor the written form of ISO dates ("2026-03-05" and
# "March 5th", "5 March 2026", "05/03/2026", "3/5/2026"; a year that is said has to be the right one, and
# the time of a date with time is said too). Numbers are compared as exact values, texts as whole words.
# =============================================================================

SPOKEN_SEPARATORS = re.compile(r"[\s_\-\u2010-\u2015\u2212$€£¥₹₩₽₺₫₴₪฿₱₦]+")
SPOKEN_CURRENCY = " \t\u00a0\u202f$€£¥₹₩₽₺₫₴₪฿₱₦"
SPOKEN_BREAK = " \x00 "  # no value holds it
SPOKEN_ISO_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
SPOKEN_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
SPOKEN_MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
SPOKEN_DAY = re.compile(
    rf"""
      (?<!\d)(?P<day_before>\d{{1,2}})(?:st|nd|rd|th|\.)?\ (?:of\ )?(?P<month_after>{SPOKEN_MONTH})\b
        (?:\.?,?\ (?P<year_after>\d{{4}})(?!\d))?
    | \b(?P<month_before>{SPOKEN_MONTH})\.?\ (?:the\ )?(?P<day_after>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])
        (?:,?\ (?P<year_before>\d{{4}})(?!\d))?
    | (?<!\d)(?P<one>\d{{4}}|\d{{1,2}})[-/.](?P<two>\d{{1,2}})[-/.](?P<three>\d{{4}}|\d{{1,2}})(?!\d)""",
    re.VERBOSE | re.ASCII,
)


class Spoken:
    """The texts of messages, prepared once for several questions."""

    def __init__(self, texts: list[str]) -> None:
        self.text = SPOKEN_BREAK.join(texts)
        self.numbers: set[Any] | None = None
        self.compact = ""
        self.breaks: set[int] | None = None
        self.days: set[tuple[int | None, int, int]] | None = None

    def says(self, value: Any) -> bool:
        """Whether *value*, and of a list or object each value in it, was said; null and empty texts need not be."""
        if isinstance(value, (list, dict)):
            return all(self.says(item) for item in (value.values() if isinstance(value, dict) else value))
        if value is None:
            return True
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return abs(exact_value(value)) in self.said_numbers()
        text = value if isinstance(value, str) else encode_compact(value)
        date = SPOKEN_ISO_DATE.fullmatch(text.strip())
        if date:
            return self.says_date(date)
        number = whole_number(text)
        return (number is not None and abs(number) in self.said_numbers()) or self.says_words(text)

    def said_numbers(self) -> set[Any]:
        """The numbers in the texts, without their signs, whichever of . and , is their decimal mark."""
        if self.numbers is None:
            found = [number for mark in (".", ",") for number in find_numbers(self.text, mark)]
            self.numbers = {abs(each.value) for each in found if each.value is not None and stands_alone(self.text, each.start, each.end)}
        return self.numbers

    def says_words(self, text: str) -> bool:
        """Whether the words of *text* were said, separators aside and not inside another word."""
        wanted = "".join(SPOKEN_SEPARATORS.split(folded_text(text)))
        if self.breaks is None:
            pieces = SPOKEN_SEPARATORS.split(folded_text(self.text))
            self.compact, self.breaks, length = "".join(pieces), set(), 0
            for piece in pieces:
                length += len(piece)
                self.breaks.add(length)
        start = self.compact.find(wanted)
        while start >= 0:
            if self.is_edge(start) and self.is_edge(start + len(wanted)):
                return True
            start = self.compact.find(wanted, start + 1)
        return False

    def is_edge(self, place: int) -> bool:
        """Whether a word begins or ends at *place* of the compact text."""
        if place in (0, len(self.compact)) or place in (self.breaks or ()):
            return True
        return not (self.compact[place - 1].isalnum() and self.compact[place].isalnum())

    def says_date(self, date: "re.Match[str]") -> bool:
        """Whether an ISO date was said in one of its written forms, with the time when it has one."""
        text = " ".join(self.text.casefold().split())
        if self.days is None:
            self.days = {day for match in SPOKEN_DAY.finditer(text) for day in spoken_days(match)}
        year, month, day = (int(part) for part in date.groups()[:3])
        if (year, month, day) not in self.days and (None, month, day) not in self.days:
            return False
        return date[4] is None or re.search(time_form(int(date[4]), date[5]), text) is not None


def spoken_days(match: "re.Match[str]") -> list[tuple[int | None, int, int]]:
    """The (year, month, day) that a match of SPOKEN_DAY can mean; the year is None where none was said."""
    name = match["month_after"] or match["month_before"]
    if name:
        year = match["year_after"] or match["year_before"]
        day = match["day_before"] or match["day_after"]
        return [(int(year) if year else None, SPOKEN_MONTHS.index(name[:3]) + 1, int(day))]
    one, two, three = int(match["one"]), int(match["two"]), int(match["three"])
    if len(match["one"]) == 4:
        return [(one, two, three)]
    years = [three] if len(match["three"]) == 4 else [1900 + three, 2000 + three]
    return [(year, *pair) for year in years for pair in ((one, two), (two, one))]


def folded_text(text: str) -> str:
    """*text* after nfkc and full case folding, apostrophes straight."""
    import unicodedata

    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'")


def stands_alone(text: str, start: int, end: int) -> bool:
    """Whether the number between *start* and *end* is no part of a name (K-20) or of a longer number (2.5, 1.2.3)."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    is_named = before[:1].isalpha() and before[1:] in ("-", "_")
    is_longer = (before[:1].isdigit() and before[1:] in (".", ",")) or (after[1:].isdigit() and after[:1] in (".", ","))
    return not (is_named or is_longer)


def whole_number(text: str) -> Any:
    """The number that all of *text* writes, currency signs aside; None for anything else."""
    plain = text.strip(SPOKEN_CURRENCY)
    found = find_numbers(plain)
    return found[0].value if len(found) == 1 and (found[0].start, found[0].end) == (0, len(plain)) else None


def time_form(hour: int, minute: str) -> str:
    """The pattern of a time of day, with 24 or 12 hours, for lower-case text."""
    half = hour % 12 or 12
    minutes = rf"(?:[:.]{minute})" + ("?" if minute == "00" else "")
    return rf"(?<![\d:])0?{hour}[:.h]{minute}(?!\d)|(?<![\d:])0?{half}{minutes} ?{'p' if hour >= 12 else 'a'}\.?m\b"

# endregion

# region evaluators/envelope.py
# =============================================================================
# The envelope: what every entry may say beside its type's parameters; making it ready.
#
# What does not depend on the case is compiled once. A parameter that holds `$case` is read from
# each case, checked like one written in the file, and prepared anew. The order in which an entry
# is worked through: when, $case, select, transform, the type's check, threshold, negate.
# =============================================================================

ON_MISSING = (ERROR, FAIL, NOT_APPLICABLE)
SEVERITIES = ("hard", "gate", "score", "info")
MAX_ENTRY_ID = 200

ENVELOPE = (
    Parameter("id", "text", "", "stable name in results and history; unique in the file; required but inside `of`"),
    Parameter("type", "text", REQUIRED, "one of the types below"),
    Parameter("select", "text", None, "what is looked at: a root, then an optional JSON Pointer; most types: output.text"),
    Parameter("transform", "list", [], "steps between what is selected and what is checked: names or {name: [arguments]}"),
    Parameter("negate", "boolean", False, "pass and fail change places, score becomes 1 − score; error and not_applicable stay"),
    Parameter("threshold", "number", None, "pass when the score is at least this; without it the type's own bar, which is 1 for rules"),
    Parameter("weight", "number", 1, "share in the score of the trial; 0 counts nothing there and changes no status"),
    Parameter("severity", "choice", "gate", "hard: a failure rejects; gate: decides; score: counts only; info: shown only", SEVERITIES),
    Parameter("metric", "text", None, "name under which results are summed up over cases; default: the id"),
    Parameter("when", "object", {}, '{"tags": [any of], "split": [any of], "case": {pointer: predicate}}; else not_applicable'),
    Parameter("on_missing", "choice", None, "when there is nothing to look at; default error, fail for what an output lacks", ON_MISSING),
    Parameter("version", "text", None, "free text that enters the fingerprint"),
)
ENVELOPE_NAMES = tuple(parameter.name for parameter in ENVELOPE)
OUTER_ONLY = ("severity", "weight", "metric")
WHEN_NAMES = ("tags", "split", "case")

EMPTY_VALUES: tuple[Any, ...] = ("", [])

Resolver = Callable[[JsonObject], Any]


class PreparedEntry:
    """An entry that is ready to look at observations; `prepare_entry` makes it.

    `document` is the entry without keys that only repeat a default. `versions` holds the semantics version of its type and of
    those inside it. `takes_from_case`: what it does depends on the case, beyond `when`.
    """

    def __init__(self, entry: JsonObject, kind: EvaluatorType, is_nested: bool) -> None:
        self.type = kind
        self.id = str(entry.get("id", ""))
        self.severity = str(entry.get("severity", "gate"))
        self.weight = entry.get("weight", 1)
        self.metric = str(entry.get("metric", self.id))
        self.threshold: float | None = entry.get("threshold")
        self.negate = bool(entry.get("negate", False))
        self.on_missing: str | None = entry.get("on_missing")
        self.is_nested = is_nested
        self.when = compile_when(entry.get("when", {}))
        self.path: PathExpression | None = None
        self.reads_output = False  # the output itself is looked at
        self.is_plain = False  # the outcome of the check is the outcome of the entry
        self.transforms: list[Transform] = []
        self.children: list[PreparedEntry] = []
        self.settings: JsonObject = {}
        self.from_case: list[tuple[Parameter, Resolver, str]] = []  # and the first pointer into the case
        self.check: Check | None = None
        self.document: JsonObject = {}
        self.versions: dict[str, int] = {kind.name: kind.version}

    @property
    def takes_from_case(self) -> bool:
        """True when a parameter of it, or of an entry inside it, is read from the case."""
        return bool(self.from_case) or any(child.takes_from_case for child in self.children)

    def check_for(self, case: JsonObject) -> Check:
        """The check with the parameters that *case* brings. Raises ConfigurationError, NotMeasurable, NothingAsked."""
        settings = dict(self.settings)
        for parameter, resolve, _ in self.from_case:
            value = resolve(case)
            check_parameter(parameter, value)
            settings[parameter.name] = value
        return self.type.prepare(settings)

    def place_in_case(self, pointer: str) -> str:
        """Where in the case the value comes from that is wrong at *pointer* in the entry; '' when that is not known."""
        name = pointer.split("/")[1] if pointer else ""
        places = [place for parameter, _, place in self.from_case if name in ("", parameter.name)]
        return places[0] if places else next(filter(None, (child.place_in_case("") for child in self.children)), "")

    def missing_in(self, case: JsonObject) -> str:
        """What the entry asks of *case* and does not find there; '' when nothing. Raises ConfigurationError for what cannot be used."""
        if self.when is not None and self.when(case):
            return ""
        try:
            if self.from_case:
                self.check_for(case)
        except NothingAsked:
            return ""
        except NotMeasurable as absent:
            return absent.reason
        return next(filter(None, (child.missing_in(case) for child in self.children)), "")

    def evaluate(self, observation: JsonObject, case: JsonObject, memo: JsonObject) -> Outcome:
        """The outcome for a completed *observation* of *case*; *memo* is shared by all entries that look at it."""
        try:
            reason = "" if self.when is None else self.when(case)
            if reason:
                return not_applicable(reason)
            check = self.check or self.check_for(case)
            value = None
            if self.path is not None:
                selected = select_path(self.path, observation, case, memo)
                if not selected.found:
                    return self.missing(selected.reason, selected.agent_fault)
                value = selected.value
                for transform in self.transforms:
                    value = transform(value)
            outcome = check(View(value, observation, case, memo))
        except NotMeasurable as absent:
            return self.missing(absent.reason, absent.agent_fault)
        except NothingAsked as nothing:
            return not_applicable(nothing.reason)
        except PatternTimeout as timeout:
            return errored(timeout.reason)
        except ConfigurationError as error:
            return errored(f"cannot be applied to this case: {error.message}")
        except RecursionError:
            return errored("what is looked at is nested too deeply")
        return outcome if self.is_plain and value not in EMPTY_VALUES else self.finished(outcome, value)

    @property
    def is_elsewhere(self) -> bool:
        """True when evidence does not point into the output as it is."""
        return bool(self.transforms) or (self.path is not None and self.path.text not in ("output.text", "output"))

    def missing(self, reason: str, agent_fault: bool) -> Outcome:
        """What follows from absent evidence. It is never negated: what is not there proves nothing."""
        status = self.on_missing or (FAIL if agent_fault and self.reads_output else ERROR)
        return Outcome(status, 0.0 if status == FAIL else None, reason)

    def finished(self, outcome: Outcome, value_seen: Any) -> Outcome:
        """*outcome* about *value_seen* after threshold and negation, with what a reader must know in its reason."""
        status, score, reason, value, evidence = outcome
        if status in (PASS, FAIL):
            if self.threshold is not None and score is not None:
                status = PASS if score >= self.threshold else FAIL
                reason = f"{reason}; score {score!r} is {'at least' if status == PASS else 'below'} {self.threshold!r}"
            if self.negate:
                status = FAIL if status == PASS else PASS
                score = None if score is None else exact_complement(score)
                reason = f"negated: {reason}"
        if self.path is not None and value_seen in EMPTY_VALUES:
            reason = f"{reason} (what was looked at is an empty {'text' if value_seen == '' else 'list'})"
        if evidence and self.path is not None and self.is_elsewhere:
            looked_at = f"{self.path.text}{' transformed' if self.transforms else ''}"
            evidence = tuple({**each, "in": looked_at} if "start" in each or "pointer" in each else each for each in evidence)
        return Outcome(status, score, reason, value, evidence)


# --- Making an entry ready ---------------------------------------------------------------


def prepare_entry(entry: Any, is_nested: bool = False) -> PreparedEntry:
    """*entry* ready to be evaluated. Raises ConfigurationError whose pointer is inside the entry."""
    if not isinstance(entry, dict):
        raise ConfigurationError("", f"is {json_type_phrase(entry)}, not an object")
    kind = entry_type(entry)
    check_entry_keys(entry, kind, is_nested)
    for parameter in ENVELOPE:
        if parameter.name in entry:
            refuse_case_value(entry[parameter.name], f"/{parameter.name}")
            if parameter.name not in ("transform", "when") or entry[parameter.name]:
                check_parameter(parameter, entry[parameter.name])
    check_entry_numbers(entry, kind)
    check_entry_id(entry, is_nested)
    prepared = PreparedEntry(entry, kind, is_nested)
    if kind.selects:
        prepared.path = compile_select(entry.get("select", kind.default_select))
        prepared.transforms = compile_transforms(entry.get("transform", []), "/transform")
        prepared.reads_output = prepared.path.root.startswith("output")
    prepared.is_plain = not (prepared.negate or prepared.is_elsewhere) and prepared.threshold is None
    prepare_parameters(prepared, entry)
    prepared.document = entry_document(entry, prepared)
    if not prepared.from_case:
        prepared.check = kind.prepare(prepared.settings)
    return prepared


def entry_type(entry: JsonObject) -> EvaluatorType:
    """The registered type that *entry* names. Raises ConfigurationError with the nearest name."""
    name = entry.get("type")
    if not isinstance(name, str):
        raise ConfigurationError("/type" if "type" in entry else "", "has no type", f"types: {listed(sorted(EVALUATORS), 40)}")
    if name not in EVALUATORS:
        raise ConfigurationError("/type", f"type {quoted(name)} is unknown", did_you_mean(name, EVALUATORS))
    return EVALUATORS[name]


def check_entry_keys(entry: JsonObject, kind: EvaluatorType, is_nested: bool) -> None:
    """Raises ConfigurationError for a key that the entry cannot have, or a required one that it has not."""
    own = [parameter.name for parameter in kind.parameters]
    for key in entry:
        if key in OUTER_ONLY and is_nested:
            raise ConfigurationError(f"/{key}", f"{key} belongs to the entry that holds `of`")
        if key in ("select", "transform") and not kind.selects:
            raise ConfigurationError(f"/{key}", f"type {kind.name} has no {key}: it looks at the whole observation")
        if key not in own and key not in ENVELOPE_NAMES:
            hint = did_you_mean(key, [*own, *ENVELOPE_NAMES])
            raise ConfigurationError(pointer_token(key), f"key {quoted(key)} is unknown for type {kind.name}", hint)
    for parameter in kind.parameters:
        if parameter.default is REQUIRED and parameter.name not in entry:
            raise ConfigurationError("", f"type {kind.name} needs {parameter.name}", parameter.text)


def check_entry_numbers(entry: JsonObject, kind: EvaluatorType) -> None:
    """Raises ConfigurationError for a threshold or weight out of range."""
    if not 0 <= entry.get("threshold", 0) <= 1:
        raise ConfigurationError("/threshold", "threshold is not between 0 and 1")
    if not 0 <= entry.get("weight", 0) <= 1e9:
        raise ConfigurationError("/weight", "weight is not between 0 and 1e9")


def check_entry_id(entry: JsonObject, is_nested: bool) -> None:
    """Raises ConfigurationError for an id that is absent, too long or not fit to be shown."""
    identity = entry.get("id", "")
    if not identity and not is_nested:
        raise ConfigurationError("", "has no id", "give each evaluator a short name of its own")
    if len(identity) > MAX_ENTRY_ID or UNSAFE.search(identity):
        raise ConfigurationError("/id", f"id is longer than {MAX_ENTRY_ID} characters, or holds control characters")


def compile_select(text: str) -> PathExpression:
    """The path that `select` writes. Raises ConfigurationError."""
    try:
        return parse_path(text)
    except ValueError as error:
        raise ConfigurationError("/select", str(error)) from None


def prepare_parameters(prepared: PreparedEntry, entry: JsonObject) -> None:
    """Fills settings, from_case and children from the type's own parameters in *entry*."""
    for parameter in prepared.type.parameters:
        name = parameter.name
        if name not in entry:
            prepared.settings[name] = parameter.default
        elif parameter.kind == "entries":
            check_parameter(parameter, entry[name])
            prepared.settings[name] = children = [prepare_child(item, f"/{name}/{index}") for index, item in enumerate(entry[name])]
            prepared.children += children
            for child in children:
                prepared.versions.update(child.versions)
        else:
            resolve = case_resolver(entry[name], f"/{name}")
            if resolve is None:
                check_parameter(parameter, entry[name])
                prepared.settings[name] = entry[name]
            else:
                prepared.from_case.append((parameter, resolve, first_case_pointer(entry[name])))


def prepare_child(entry: JsonObject, pointer: str) -> PreparedEntry:
    """An entry inside a combinator. Raises ConfigurationError whose pointer begins with *pointer*."""
    try:
        return prepare_entry(entry, is_nested=True)
    except ConfigurationError as error:
        raise ConfigurationError(pointer + error.pointer, error.message, error.hint) from None


def entry_document(entry: JsonObject, prepared: PreparedEntry) -> JsonObject:
    """*entry* without keys that only repeat a default: what its fingerprint is made of."""
    parameters = {parameter.name: parameter for parameter in (*ENVELOPE, *prepared.type.parameters)}
    document = {key: value for key, value in entry.items() if not json_equal_default(value, parameters[key].default)}
    for parameter in prepared.type.parameters:
        if parameter.kind == "entries" and parameter.name in entry:
            document[parameter.name] = [child.document for child in prepared.settings[parameter.name]]
    return document


def json_equal_default(value: Any, default: Any) -> bool:
    """True when *value* is the *default* of its parameter."""
    return default is not REQUIRED and json_equal(value, default)


# --- $case and when ------------------------------------------------------------------------


def case_resolver(value: Any, pointer: str) -> Resolver | None:
    """What reads *value* for a case when it holds `$case`; None when it is the same for all cases. Raises ConfigurationError."""
    if isinstance(value, dict):
        if "$case" in value:
            return case_reference(value, pointer)
        if "$literal" in value:
            return None
        parts = [(key, item, case_resolver(item, pointer + pointer_token(key))) for key, item in value.items()]
        if all(resolve is None for _, _, resolve in parts):
            return None
        return lambda case: {key: item if resolve is None else resolve(case) for key, item, resolve in parts}
    if isinstance(value, list):
        items = [(item, case_resolver(item, f"{pointer}/{index}")) for index, item in enumerate(value)]
        if all(resolve is None for _, resolve in items):
            return None
        return lambda case: [item if resolve is None else resolve(case) for item, resolve in items]
    return None


def case_reference(reference: JsonObject, pointer: str) -> Resolver:
    """What reads one {"$case": POINTER} for a case; it raises NotMeasurable when the case has nothing there."""
    text = reference["$case"]
    if len(reference) > 1:
        raise ConfigurationError(pointer, "has keys beside $case", "a value from the case stands alone")
    if not isinstance(text, str):
        raise ConfigurationError(pointer, f"$case is {json_type_phrase(text)}, not a JSON Pointer")
    try:
        tokens = pointer_tokens(text)
    except ValueError as error:
        raise ConfigurationError(pointer, str(error)) from None
    has_wildcard = "*" in tokens

    def resolve(case: JsonObject) -> Any:
        found = values_at(case, tokens)
        if found is None:
            raise NotMeasurable(f"the case has nothing at {text}")
        value = [each for _, each in found] if has_wildcard else found[0][1]
        return EmptyFromCase() if value == [] else value

    return resolve


def first_case_pointer(value: Any) -> str:
    """The first pointer of a `$case` in *value*; '' when there is none."""
    if isinstance(value, dict) and "$case" in value:
        return str(value["$case"])
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, map(first_case_pointer, items)), "")


def refuse_case_value(value: Any, pointer: str) -> None:
    """Raises ConfigurationError when *value*, which belongs to the envelope, is taken from the case."""
    if case_resolver(value, pointer) is not None:
        raise ConfigurationError(pointer, "cannot be taken from the case", "$case stands in the parameters of a type")


def compile_when(document: JsonObject) -> Callable[[JsonObject], str] | None:
    """What says why an entry does not apply to a case, '' when it does; None when it applies to all. Raises ConfigurationError."""
    for key in document:
        if key not in WHEN_NAMES:
            raise ConfigurationError("/when" + pointer_token(key), f"key {quoted(key)} is unknown in when", did_you_mean(key, WHEN_NAMES))
    if not document:
        return None
    tags = when_names(document, "tags")
    splits = when_names(document, "split")
    conditions = compile_when_case(document.get("case", {}))

    def reason_not_to(case: JsonObject) -> str:
        if tags is not None and tags.isdisjoint(case.get("tags") or ()):
            return f"only for cases tagged {listed(sorted(tags), last='or')}"
        if splits is not None and case.get("split") not in splits:
            return f"only for cases of {listed(sorted(splits), last='or')}"
        for pointer, tokens, holds in conditions:
            found = values_at(case, tokens)
            values = [MISSING] if not found else [value for _, value in found]
            if not any(holds(value) for value in values):
                return f"only for cases with another {pointer}"
        return ""

    return reason_not_to


def when_names(document: JsonObject, key: str) -> frozenset[str] | None:
    """The set of texts at *key* of `when`; None when it has none. Raises ConfigurationError."""
    if key not in document:
        return None
    names = [document[key]] if isinstance(document[key], str) else document[key]
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ConfigurationError(f"/when/{key}", f"{key} is no list of texts")
    return frozenset(names)


def compile_when_case(conditions: Any) -> list[tuple[str, list[str], Callable[[Any], bool]]]:
    """(pointer, its tokens, the predicate on what is there) for each condition of `when.case`. Raises ConfigurationError."""
    if not isinstance(conditions, dict):
        raise ConfigurationError("/when/case", f"case is {json_type_phrase(conditions)}, not an object of pointers")
    compiled: list[tuple[str, list[str], Callable[[Any], bool]]] = []
    for pointer, predicate in conditions.items():
        try:
            compiled.append((pointer, pointer_tokens(pointer), compile_predicate(predicate).holds))
        except ValueError as error:
            raise ConfigurationError("/when/case", str(error)) from None
        except ConfigurationError as error:
            raise ConfigurationError(f"/when/case{pointer_token(pointer)}{error.pointer}", error.message, error.hint) from None
    return compiled

# endregion

# region evaluators/assignment.py
# =============================================================================
# The pairing of two lists, one to one, that gains most in all.
# =============================================================================


def best_assignment(gains: list[list[float]]) -> list[int | None]:
    """For each row of *gains* the column it is paired with, so that the sum of gains is largest; None for a row left over.

    Every row of the table is as long as the first; as many pairs are made as the shorter side allows. With integers
    or fractions the sum is exact. Time grows with (shorter side)² × longer side.

    Kuhn (1955), "The Hungarian method for the assignment problem", with the potentials of Jonker and Volgenant (1987).

    >>> best_assignment([[7, 6], [6, 2], [1, 1]])
    [1, 0, None]
    """
    width = len(gains[0]) if gains else 0
    if width >= len(gains):
        return list(assigned_columns(gains))
    turned = [[row[column] for row in gains] for column in range(width)]
    pairs: list[int | None] = [None] * len(gains)
    for column, row in enumerate(assigned_columns(turned)):
        pairs[row] = column
    return pairs


def assigned_columns(gains: list[list[float]]) -> list[int]:
    """For each row its column; there are at least as many columns as rows."""
    width = len(gains[0]) if gains else 0
    row_price: list[float] = [0] * len(gains)
    column_price: list[float] = [0] * width
    row_of = [-1] * width  # -1: free
    for start in range(len(gains)):
        slack: list[float] = [math.inf] * width
        came_from = [-1] * width  # -1: from the row we start with
        done: list[int] = []
        still_open = list(range(width))
        row, column = start, -1
        while row >= 0:
            for other in still_open:
                cost = row_price[row] + column_price[other] - gains[row][other]
                if cost < slack[other]:
                    slack[other], came_from[other] = cost, column
            least, column = min((slack[other], other) for other in still_open)
            row_price[start] -= least
            for other in done:
                row_price[row_of[other]] -= least
                column_price[other] += least
            for other in still_open:
                slack[other] -= least
            still_open.remove(column)
            done.append(column)
            row = row_of[column]
        while column >= 0:  # along the way back, each row gets the next column
            before = came_from[column]
            row_of[column] = row_of[before] if before >= 0 else start
            column = before
    columns = [0] * len(gains)
    for column, taken in enumerate(row_of):
        if taken >= 0:
            columns[taken] = column
    return columns

# endregion

# region evaluators/catalogue.py
# =============================================================================
# The catalogue of evaluator types: terminal, --json, docs/evaluators.md.
#
# Everything in it comes from the registry, so it cannot say other than what the program does.
# =============================================================================

encode_spaced = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
EXAMPLE_PARTS = ("entry", "case", "observation")


def parameter_values(parameter: Parameter) -> str:
    """What may be written for *parameter*: 'a number', '"all", "any" or "none"'."""
    if parameter.choices:
        return listed([encode_spaced(choice) for choice in parameter.choices], 20, "or")
    return KINDS[parameter.kind][1]


def parameter_default(parameter: Parameter) -> str:
    """The default of *parameter* as JSON; 'required', or '' when leaving it out is no value."""
    if parameter.default is REQUIRED:
        return "required"
    return "" if parameter.default is None or parameter.default is ABSENT or parameter.default == "" else encode_spaced(parameter.default)


def parameter_document(parameter: Parameter) -> JsonObject:
    """*parameter* as --json shows it; without a default `default` is absent."""
    document: JsonObject = {"name": parameter.name, "kind": parameter.kind, "required": parameter.default is REQUIRED}
    if parameter.default is not REQUIRED and parameter.default is not ABSENT:
        document["default"] = parameter.default
    if parameter.choices:
        document["choices"] = list(parameter.choices)
    return {**document, "text": parameter.text}


def type_document(kind: EvaluatorType) -> JsonObject:
    """A type as --json shows it."""
    return {
        "name": kind.name,
        "version": kind.version,
        "summary": kind.summary,
        "notes": type_notes(kind),
        "select": kind.default_select if kind.selects else None,
        "parameters": [parameter_document(parameter) for parameter in kind.parameters],
        "example": kind.example,
    }


def type_notes(kind: EvaluatorType) -> str:
    """What there is to know beyond the summary: the docstring of the type's function, on one line."""
    return " ".join((kind.prepare.__doc__ or "").split())


def looked_at(kind: EvaluatorType) -> str:
    """What a type looks at when `select` is not given."""
    return f"`{kind.default_select}`, unless `select` says otherwise" if kind.selects else "the whole observation; it has no `select`"


def type_lines(kind: EvaluatorType) -> list[str]:
    """A type for the terminal: what it asks, its parameters, an example that runs."""
    lines = [f"{kind.name}: {kind.summary}", type_notes(kind), "", f"looks at   {looked_at(kind).replace('`', '')}"]
    rows = [(each.name, parameter_values(each), parameter_default(each), each.text) for each in kind.parameters]
    if rows:
        lines += ["", "parameters"]
    for name, values, default, text in rows:
        lines.append(f"  {name:<15} {text}")
        lines.append(f"  {'':<15} {values}{f'; {default}' if default == 'required' else f'; default {default}' if default else ''}")
    lines += ["", "example"]
    lines += [f"  {part:<12} {encode_spaced(kind.example[part])}" for part in EXAMPLE_PARTS if part in kind.example]
    return [*lines, f"  {'outcome':<12} {kind.example['outcome']}"]


def table_cell(text: str) -> str:
    """*text* inside a Markdown table."""
    return text.replace("|", "\\|")


def parameter_table(parameters: tuple[Parameter, ...]) -> list[str]:
    """The lines of a Markdown table of *parameters*."""
    lines = ["| parameter | value | default | meaning |", "|---|---|---|---|"]
    for each in parameters:
        default = parameter_default(each)
        shown = default if default in ("", "required") else f"`{default}`"
        lines.append(f"| `{each.name}` | {table_cell(parameter_values(each))} | {table_cell(shown)} | {table_cell(each.text)} |")
    return lines


def type_section(kind: EvaluatorType) -> list[str]:
    """The lines of a type's section in the reference."""
    example: Any = kind.example
    shown = [f" {encode_spaced(part)}: {encode_spaced(example[part])}" for part in EXAMPLE_PARTS if part in example]
    return [
        f"### {kind.name}",
        "",
        f"{kind.summary} {type_notes(kind)} Looks at {looked_at(kind)}.",
        "",
        *(parameter_table(kind.parameters) if kind.parameters else []),
        "",
        "```json",
        "{" + ",\n".join([*shown, f' "outcome": {encode_spaced(example["outcome"])}'])[1:] + "}",
        "```",
        "",
    ]


def evaluator_reference() -> str:
    """The reference of envelope and types as Markdown, for docs/evaluators.md."""
    lines = ["### Every entry", "", *parameter_table(ENVELOPE), ""]
    for name in sorted(EVALUATORS):
        lines += type_section(EVALUATORS[name])
    return "\n".join(lines).rstrip("\n")

# endregion

# region evaluators/combine.py
# =============================================================================
# Combinators: all, any, none, at_least of several entries, in three-valued logic.
#
# A definite answer wins, otherwise an error is contagious. Entries that do not apply are left
# out; when none applies, neither does the combinator.
# =============================================================================

OF = Parameter("of", "entries", REQUIRED, "entries without id, severity, weight and metric; each may have the rest of the envelope")
COMBINED_REASONS = 3
COMBINED_EVIDENCE = 20


def combined_status(passed: int, errors: int, total: int, needed: int) -> str:
    """pass, fail or error when *needed* of *total* have to pass, *passed* do, and *errors* could not be told."""
    if passed >= needed:
        return PASS
    return FAIL if passed + errors < needed else ERROR


def look_at_each(children: list[PreparedEntry], view: View) -> list[tuple[str, Outcome]]:
    """(name, outcome) of each child that applies."""
    named = [(child.id or child.type.name, child.evaluate(view.observation, view.case, view.memo)) for child in children]
    return [(name, outcome) for name, outcome in named if outcome.status != NOT_APPLICABLE]


def combined_outcome(found: list[tuple[str, Outcome]], status: str, score: float | None, telling: str) -> Outcome:
    """The outcome with how many passed, and the reasons and evidence of those whose status is *telling*."""
    passed = sum(1 for _, outcome in found if outcome.status == PASS)
    chosen = [(name, outcome) for name, outcome in found if outcome.status == telling]
    reasons = listed([f"{name} ({outcome.reason})" for name, outcome in chosen], COMBINED_REASONS)
    verb = {PASS: "passed", FAIL: "failed", ERROR: "could not be told"}[telling]
    reason = f"{passed} of {len(found)} passed" + (f"; {verb}: {reasons}" if reasons else "")
    evidence = [{**each, "entry": name} for name, outcome in chosen for each in outcome.evidence if isinstance(each, dict)]
    return Outcome(status, score, reason, passed, tuple(evidence[:COMBINED_EVIDENCE]))


def combinator(settings: JsonObject, needed: int | None, is_negative: bool = False, is_share: bool = False) -> Check:
    """The check that asks *needed* (None: all) of `of` to pass, or with *is_negative* that this is not so.

    The score is 1 or 0, or with *is_share* the share of the entries that passed, of *needed* when fewer apply.
    """
    children: list[PreparedEntry] = settings["of"]

    def check(view: View) -> Outcome:
        found = look_at_each(children, view)
        if not found:
            return not_applicable("none of its entries applies")
        statuses = [outcome.status for _, outcome in found]
        passed, errors = statuses.count(PASS), statuses.count(ERROR)
        status = combined_status(passed, errors, len(found), len(found) if needed is None else needed)
        if is_negative and status != ERROR:
            status = FAIL if status == PASS else PASS
        telling = ERROR if status == ERROR else (PASS if is_negative or needed is not None and status == PASS else FAIL)
        score = None if status == ERROR else passed / max(len(found), needed or 1) if is_share else float(status == PASS)
        return combined_outcome(found, status, score, telling)

    return check


@evaluator(
    "all",
    1,
    "Every one of several entries passes.",
    [OF],
    example={
        "entry": {"id": "polite", "type": "all", "of": [{"type": "contains", "values": "Hello"}, {"type": "length", "max": 80}]},
        "observation": {"output": "Hello, your order is on its way."},
        "outcome": "pass",
    },
    selects=False,
)
def evaluate_all(settings: JsonObject) -> Check:
    """A fail if any fails, else an error if any is one, else a pass."""
    return combinator(settings, None)


@evaluator(
    "any",
    1,
    "At least one of several entries passes.",
    [OF],
    example={
        "entry": {
            "id": "no_false_claim",
            "type": "any",
            "of": [
                {"type": "matches", "pattern": "(?i)ticket (was|has been) opened", "negate": True},
                {"type": "contains", "values": "T-", "at": "start"},
            ],
        },
        "observation": {"output": "The ticket was opened."},
        "outcome": "fail",
    },
    selects=False,
)
def evaluate_any(settings: JsonObject) -> Check:
    """A pass if any passes, else an error if any is one, else a fail."""
    return combinator(settings, 1)


@evaluator(
    "none",
    1,
    "Not one of several entries passes.",
    [OF],
    example={
        "entry": {"id": "no_excuse", "type": "none", "of": [{"type": "contains", "values": "no"}, {"type": "matches", "pattern": "can"}]},
        "observation": {"output": "It is done."},
        "outcome": "pass",
    },
    selects=False,
)
def evaluate_none(settings: JsonObject) -> Check:
    """A fail if any passes, else an error if any is one, else a pass."""
    return combinator(settings, 1, is_negative=True)


@evaluator(
    "at_least",
    1,
    "At least n of several entries pass; the score is the share of those that do.",
    [Parameter("n", "integer", REQUIRED, "how many have to pass, from 1 to the number of entries"), OF],
    example={
        "entry": {
            "id": "two_of_three",
            "type": "at_least",
            "n": 2,
            "of": [{"type": "contains", "values": "order"}, {"type": "contains", "values": "T-"}, {"type": "length", "max": 80}],
        },
        "observation": {"output": "The refund for your order is on its way."},
        "outcome": "pass",
    },
    selects=False,
)
def evaluate_at_least(settings: JsonObject) -> Check:
    """A pass if n pass, a fail if they cannot even with those that are errors, else an error."""
    needed = settings["n"]
    if not 1 <= needed <= len(settings["of"]):
        raise ConfigurationError("/n", f"n is not between 1 and the {len(settings['of'])} entries of `of`")
    return combinator(settings, needed, is_share=True)

# endregion

# region evaluators/conduct.py
# =============================================================================
# Whether the agent asked before it acted: the evaluator `confirmation`.
#
# Consent stands in the user's latest message before the action, after a message of the agent; an older
# yes does not count, because something was said since. One yes covers every matching action until the
# user speaks again. But after a try that did not end ok, the same tool with other arguments for the same
# entity (`same`; without it all calls of a tool are about one) needs a new yes. With `confirm` another step
# consents, such as an approval: it stands after the user's latest message and before the action.
# =============================================================================

CONFIRMATION_PARAMETERS = [
    Parameter("action", "matcher", REQUIRED, "The steps that need consent; attempts count, whatever came of them."),
    Parameter("confirm", "matcher", None, "The step that consents. Without it: the user's latest message says yes."),
    Parameter("yes", "texts", None, "Further phrases that consent, in any sentence that is not a question."),
    Parameter("same", "texts", None, "Names or pointers of the arguments that say which entity a call is about."),
    Parameter("must_echo", "texts", None, "Names or pointers of arguments whose values the agent, or the yes, must have said."),
    Parameter(
        "invalidate_on_change",
        "boolean",
        True,
        "After a try that did not end ok, other arguments for the same entity need a new yes.",
    ),
]
CONFIRMATION_EXAMPLE = {
    "entry": {
        "id": "asked_first",
        "type": "confirmation",
        "action": {"name": "issue_refund"},
        "same": ["/order"],
        "must_echo": ["/amount"],
    },
    "observation": {
        "steps": [
            {"kind": "message", "role": "user", "text": "Please refund my lamp, order A-7."},
            {"kind": "message", "role": "assistant", "text": "I can refund $12.50 for it. Shall I go ahead?"},
            {"kind": "message", "role": "user", "text": "Yes, please."},
            {"kind": "tool", "name": "issue_refund", "args": {"order": "A-7", "amount": 12.5}, "status": "ok"},
        ]
    },
    "case": {"id": "refund", "input": "Refund my lamp."},
    "outcome": PASS,
}


class ConsentRule(NamedTuple):
    """The settings of a `confirmation`, compiled."""

    action: Matcher
    confirm: Matcher | None
    phrases: Any
    same: list[Tokens]
    echo: list[tuple[Tokens, str]]
    is_strict: bool


class ConsentFinding(NamedTuple):
    """Whether an action had consent (None: the recording does not say), why not, and the step that consents."""

    is_met: bool | None
    reason: str = ""
    consent: int | None = None


@evaluator("confirmation", 1, "The user agreed before the agent acted.", CONFIRMATION_PARAMETERS, CONFIRMATION_EXAMPLE, selects=False)
def evaluate_confirmation(settings: JsonObject) -> Check:
    """Every action that matches had consent."""
    rule = compile_consent(settings)

    def check(view: View) -> Outcome:
        dialogue = Dialogue(view_trail(view), rule)
        if not dialogue.actions:
            return not_applicable(f"no step matches {call_text(settings['action'])}, so nothing needed consent")
        findings = {index: dialogue.finding(index) for index in dialogue.actions}
        sure = [index for index in dialogue.actions if dialogue.meant[index]]
        broken = [index for index in sure if findings[index].is_met is False]
        if broken:
            told = [f"{step_text(dialogue.trail, index)}: {findings[index].reason}" for index in broken[:3]]
            more = [f"and {len(broken) - 3} more"] if len(broken) > 3 else []
            return decided(False, "; ".join(told + more), len(broken), step_evidence(broken))
        unclear = next((index for index in dialogue.actions if not findings[index].is_met), None if sure else dialogue.actions[0])
        if unclear is not None:
            is_open = findings[unclear].is_met is None
            raise NotMeasurable(findings[unclear].reason if is_open else rule.action.unknown(dialogue.trail, unclear))
        consents = {finding.consent for finding in findings.values() if finding.consent is not None}
        return decided(True, f"{counted(len(sure), 'action')} with consent", 0, step_evidence({*sure, *consents}))

    return check


def compile_consent(settings: JsonObject) -> ConsentRule:
    """The rule that *settings* write. Raises ConfigurationError."""
    if settings["confirm"] is not None and settings["yes"] is not None:
        raise ConfigurationError("/yes", "yes adds to what the user says, which confirm replaces", "leave one of them out")
    confirm = None if settings["confirm"] is None else compile_matcher(settings["confirm"], "/confirm")
    phrases = argument_names(settings, "yes")
    if any(not phrase.strip() for phrase in phrases):
        raise ConfigurationError("/yes", "holds an empty phrase, which every sentence has")
    same = [field_tokens(name, "/same") for name in argument_names(settings, "same")]
    echo = [(field_tokens(name, "/must_echo"), name) for name in argument_names(settings, "must_echo")]
    action = compile_matcher(settings["action"], "/action")
    return ConsentRule(action, confirm, consent_phrases(phrases), same, echo, settings["invalidate_on_change"])


def argument_names(settings: JsonObject, key: str) -> list[str]:
    """The texts at *key* of *settings*, one or a list; [] for none."""
    value = settings[key]
    return [] if value is None else value if isinstance(value, list) else [value]


class Dialogue:
    """One recorded dialogue under one rule: who spoke when, which steps need consent, which of them changed their mind."""

    def __init__(self, trail: Trail, rule: ConsentRule) -> None:
        self.trail = trail
        self.rule = rule
        self.meant = rule.action.decisions(trail)
        self.actions = [index for index, answer in enumerate(self.meant) if answer is not False]
        self.confirmed = [] if rule.confirm is None else rule.confirm.decisions(trail)
        self.latest: list[int | None] = []  # for each step the user's latest message before it
        latest = None
        for index, step in enumerate(trail.steps):
            self.latest.append(latest)
            latest = index if is_message(step, "user") else latest
        self.agent = [index for index, step in enumerate(trail.steps) if is_message(step, "assistant")]
        self.changed: dict[int, int | None] = self.changed_tries() if rule.is_strict else {}
        self.consents: dict[int, bool] = {}  # whether the user's message there says yes
        self.words: dict[tuple[int, int, int | None], Spoken] = {}

    def finding(self, index: int) -> ConsentFinding:
        """Whether the action at *index* had consent, for what it did."""
        found = self.confirm_finding(index) if self.rule.confirm else self.yes_finding(index)
        if not found.is_met or found.consent is None:
            return found
        if index in self.changed:
            tried = self.changed[index]
            if tried is None:
                return ConsentFinding(
                    None, f"{step_text(self.trail, index)}: whether it repeats a failed try is not known, arguments were cut short"
                )
            reason = f"needed a new yes: step {tried} ended in {self.trail.steps[tried]['status']}, with other arguments"
            return ConsentFinding(False, reason)
        return self.echo_finding(index, found.consent)

    def yes_finding(self, index: int) -> ConsentFinding:
        """Whether the user's latest message before the action says yes."""
        latest = self.latest[index]
        if latest is None:
            if not any(step.get("kind") == "message" for step in self.trail.steps):
                return ConsentFinding(None, "no messages were recorded, so whether the user agreed is not known")
            return ConsentFinding(False, "the user had said nothing before")
        if not self.agent or self.agent[0] > latest:
            return ConsentFinding(False, f"the agent had said nothing before the user's latest message (step {latest})")
        if self.says_yes(latest):
            return ConsentFinding(True, "", latest)
        if is_cut(self.trail.steps[latest], "text"):
            return ConsentFinding(None, f"the user's latest message (step {latest}) was cut short, so whether it says yes is not known")
        older = self.latest[latest]
        is_stale = older is not None and self.says_yes(older)
        stale = f"; the yes of step {older} does not count, something was said since" if is_stale else ""
        return ConsentFinding(False, f"the user's latest message (step {latest}) does not say yes{stale}")

    def says_yes(self, place: int) -> bool:
        """Whether the user's message at *place* says yes."""
        if place not in self.consents:
            text = self.trail.steps[place].get("text")
            self.consents[place] = isinstance(text, str) and says_yes(text, self.rule.phrases)
        return self.consents[place]

    def confirm_finding(self, index: int) -> ConsentFinding:
        """Whether a step that `confirm` means stands before the action and not before the user's latest message."""
        latest = self.latest[index]
        unclear: int | None = None
        for place in range(index - 1, (latest or 0) - 1, -1):
            if self.confirmed[place] is False or not self.trail.comes_before(place, index):
                continue
            if is_message(self.trail.steps[place], "user") and (not self.agent or self.agent[0] > place):
                continue
            if self.confirmed[place]:
                return ConsentFinding(True, "", place)
            unclear = place
        if unclear is not None and self.rule.confirm is not None:
            return ConsentFinding(None, self.rule.confirm.unknown(self.trail, unclear))
        return ConsentFinding(False, f"nothing confirmed it{'' if latest is None else f' since the user last spoke (step {latest})'}")

    def changed_tries(self) -> dict[int, int | None]:
        """{action: the latest failed try} of each action whose arguments were not tried since the user last spoke, while others failed.

        None stands for a try of which arguments that were cut short do not say whether it is another one.
        """
        tried: dict[tuple[Any, ...], set[str]] = {}
        failed: dict[tuple[Any, ...], int] = {}
        blurred: set[tuple[Any, ...]] = set()
        found: dict[int, int | None] = {}
        for index in self.actions:
            args = self.trail.content(index, "args")
            entity = [found_at(args, tokens) for tokens in self.rule.same]
            key = (
                self.latest[index],
                str(self.trail.steps[index].get("name")),
                canonical_json([[v] if v is not MISSING else [] for v in entity]),
            )
            tries, arguments = tried.setdefault(key, set()), canonical_json(args)
            if is_cut(self.trail.steps[index], "args"):
                blurred.add(key)
            if key in failed and (key in blurred or arguments not in tries):
                found[index] = None if key in blurred else failed[key]
            tries.add(arguments)
            if self.trail.has_failed(index):
                failed[key] = index
        return found

    def echo_finding(self, index: int, consent: int) -> ConsentFinding:
        """Whether the agent said, since the last action that went well, or the yes says, the values that must be said."""
        args, is_args_cut = self.trail.content(index, "args"), is_cut(self.trail.steps[index], "args")
        asked = [(name, value) for tokens, name in self.rule.echo for value in [found_at(args, tokens)] if value is not MISSING]
        before = [place for place in self.actions if place < consent and not self.trail.has_failed(place)] if asked else []
        start = before[-1] if before else -1
        silent = [(name, value) for name, value in asked if not self.said(start, consent, index).says(value)]
        if is_args_cut and (silent or len(asked) < len(self.rule.echo)):
            return ConsentFinding(
                None, f"{step_text(self.trail, index)}: its arguments were cut short, so whether they were said is not known"
            )
        if not silent:
            return ConsentFinding(True, "", consent)
        shown = ", ".join(f"{name} ({visible(value if isinstance(value, str) else encode_compact(value), 40)})" for name, value in silent)
        surely = [place for place in before if self.meant[place]]
        wider = self.said(surely[-1] if surely else -1, consent, index)
        is_open = any(is_cut(self.trail.steps[place], "text") for place in self.told_between(start, consent, index))
        if is_open or all(wider.says(value) for _, value in silent):
            return ConsentFinding(None, f"whether {shown} was said before the yes (step {consent}) is not known")
        return ConsentFinding(False, f"{shown} was not said before the yes (step {consent})", consent)

    def told_between(self, start: int, consent: int, index: int) -> list[int]:
        """The places of the agent's messages between *start* and *consent*, of *consent*, and of the user's latest message."""
        latest = self.latest[index]
        agent = [place for place in self.agent if start < place < consent]
        return sorted({*agent, consent, *([latest] if latest is not None and latest > start else [])})

    def said(self, start: int, consent: int, index: int) -> Spoken:
        """The texts of `told_between`, and the arguments of a step that consents without being a message."""
        key = (start, consent, self.latest[index])
        if key not in self.words:
            steps = [self.trail.steps[place] for place in self.told_between(start, consent, index)]
            texts = [str(step["text"]) for step in steps if step.get("text") is not None]
            if self.trail.steps[consent].get("kind") != "message":
                texts.append(encode_compact(self.trail.content(consent, "args")))
            self.words[key] = Spoken(texts)
        return self.words[key]


def is_message(step: JsonObject, role: str) -> bool:
    """Whether *step* is a message of *role*."""
    return step.get("kind") == "message" and step.get("role") == role

# endregion

# region evaluators/dates.py
# =============================================================================
# Dates as people write them: 2026-03-05, 5 March 2026, 05.03.2026, 3/25/2026.
#
# Only the day counts: of a date with a time, the part before it, as it stands. 3/4/2026 can be
# read two ways, so it is no date that could be compared; 31.02.2026 is none either. Years have
# four digits, names of months are English.
# =============================================================================

MONTH_STEMS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
LONG_MONTHS = "jan(?:uary)? feb(?:ruary)? mar(?:ch)? apr(?:il)? may june? july? aug(?:ust)? sept?(?:ember)?"
MONTH_NAME = "|".join([*LONG_MONTHS.split(), "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?"])
NTH = "(?:st|nd|rd|th)?"
# Compiled when it is first used.
DATE_IN_TEXT = rf"""
    (?<![0-9A-Za-z./-])(?:
        (?P<year>[0-9]{{4}})(?P<mark>[-/.])(?P<month>[0-9]{{1,2}})(?P=mark)(?P<day>[0-9]{{1,2}})(?![0-9/-])
      | (?P<dot_day>[0-9]{{1,2}})\.\ ?(?P<dot_month>[0-9]{{1,2}})\.\ ?(?P<dot_year>[0-9]{{4}})(?![0-9/-])
      | (?P<one>[0-9]{{1,2}})(?P<slash>[/-])(?P<two>[0-9]{{1,2}})(?P=slash)(?P<slash_year>[0-9]{{4}})(?![0-9/-])
      | (?P<first_day>[0-9]{{1,2}}){NTH}\.?[\s-](?:of\s)?(?P<name_after>{MONTH_NAME})\.?,?[\s-](?P<after_year>[0-9]{{4}})(?![0-9])
      | (?P<name_before>{MONTH_NAME})\.?\s(?P<later_day>[0-9]{{1,2}}){NTH},?\s(?P<before_year>[0-9]{{4}})(?![0-9])
    )
    """


class Date(NamedTuple):
    """A day of the Gregorian calendar."""

    year: int
    month: int
    day: int

    def __str__(self) -> str:
        return f"{self.year:04d}-{self.month:02d}-{self.day:02d}"


def find_dates(text: str) -> list[Date | None]:
    """The dates in *text*, in order; None for one that can be read two ways or that the calendar does not have."""
    return [matched_date(match) for match in re.finditer(DATE_IN_TEXT, text, re.VERBOSE | re.IGNORECASE | re.ASCII)]


def matched_date(match: "re.Match[str]") -> Date | None:
    """The date of a match of DATE_IN_TEXT."""
    if match["one"]:
        one, two = int(match["one"]), int(match["two"])
        if one <= 12 and two <= 12 and one != two:
            return None
        year, month, day = int(match["slash_year"]), min(one, two) if max(one, two) > 12 else one, max(one, two)
    else:
        name = match["name_after"] or match["name_before"]
        year = int(match["year"] or match["dot_year"] or match["after_year"] or match["before_year"])
        month = MONTH_STEMS.index(name[:3].lower()) + 1 if name else int(match["month"] or match["dot_month"])
        day = int(match["day"] or match["dot_day"] or match["first_day"] or match["later_day"])
    return Date(year, month, day) if year and is_calendar_date(year, month, day) else None


def read_date(value: Any) -> tuple[Date | None, str]:
    """(the one date that the text *value* holds, ''), or (None, why there is none)."""
    if not isinstance(value, str):
        return None, "is no text, so it holds no date"
    found = set(find_dates(value))
    if len(found) != 1:
        return None, "holds several dates" if found else "holds no date"
    date = found.pop()
    return date, "" if date else "holds a date that can be read two ways, or that the calendar does not have"


def days_apart(one: Date, other: Date) -> int:
    """How many days lie between two dates from year 1 on."""
    import datetime

    return abs((datetime.date(*one) - datetime.date(*other)).days)

# endregion

# region evaluators/field_comparison.py
# =============================================================================
# A document compared with a reference, field by field; lists paired one to one.
#
# A field is a leaf of the reference, or what a rule says; it is met or not. Elements of lists
# are paired one to one, in the way `lists` says; an element without a partner is a field that
# is not met, on whichever side it stands. `extra` is about the keys of objects alone.
# =============================================================================

MAX_FIELD_VISITS = 300_000  # about a second: lists of an answer could otherwise be made as long as to never end
MAX_PAIRING_STEPS = 2_000_000  # (shorter side)² × longer side
ASKS_NOTHING, ASKS_ANSWER, ASKS_REFERENCE = "nothing", "answer", "reference"

ListMode = str | tuple[str, ...]  # ordered, multiset, set, or the pointer tokens of the key
# (expected, found) -> '' when met, what differs when not, None when nothing is asked.
FieldJudge = Callable[[Any, Any], str | None]
FieldTokens = tuple[str, ...]


class Field(NamedTuple):
    """One field: where it stands in the answer (in the reference, if the answer lacks it), and whether it is met."""

    pointer: str
    weight: "int | Fraction"
    is_met: bool
    note: str


class FieldRule(NamedTuple):
    """A rule: its path as written and as tokens, what it asks (ASKS_…), the value to compare with (MISSING: the reference's)."""

    path: str
    tokens: FieldTokens
    asks: str
    judge: FieldJudge
    value: Any
    weight: "int | Fraction"


class ListRule(NamedTuple):
    """How the lists at a path are paired."""

    tokens: FieldTokens
    mode: ListMode


def field_shown(value: Any) -> str:
    """*value* in a reason: its JSON, cut."""
    return "nothing" if value is MISSING else visible(encode_compact(value), 60)


def field_container(value: Any) -> Any:
    """*value* if one can go into it: an object, a list, or the one that a text holds; else None."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = parse_json(value)
        except JsonError:
            return None
    return value if isinstance(value, (dict, list)) else None


def field_children(container: Any) -> Iterable[tuple[Any, Any]]:
    """(key or index, value) of all that is in *container*."""
    return container.items() if isinstance(container, dict) else enumerate(container)


def field_places(value: Any, tokens: FieldTokens, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """(pointer, what stands there or MISSING) for all places below *value* that *tokens*, with wildcards, mean."""
    for index, token in enumerate(tokens):
        container = field_container(value)
        if token == "*" and container is not None:
            for key, item in field_children(container):
                yield from field_places(item, tokens[index + 1 :], pointer + pointer_token(key))
            return
        if isinstance(container, dict) and token in container:
            value = container[token]
        elif isinstance(container, list) and token.isascii() and token.isdigit() and len(token) < 10 and int(token) < len(container):
            value = container[int(token)]
        else:
            yield pointer + "".join(map(pointer_token, tokens[index:])), MISSING
            return
        pointer += pointer_token(token)
    yield pointer, value


def is_at(tokens: FieldTokens, pattern: FieldTokens) -> bool:
    """True when *pattern*, with wildcards, means the place at *tokens*."""
    if len(pattern) != len(tokens):
        return False
    for part, token in zip(pattern, tokens, strict=True):  # noqa: SIM110 - twice as fast, and asked for every field and rule
        if part not in ("*", token):
            return False
    return True


class FieldComparison:
    """Compares answers with references by the same rules.

    `counts_rest`: leaves of the reference under no rule are fields. `counts_extra`: so are keys of objects that
    the reference does not have. `are_close` says which numbers count as equal beside equal ones.
    """

    def __init__(
        self,
        rules: list[FieldRule],
        list_rules: list[ListRule],
        lists: ListMode,
        counts_rest: bool = True,
        counts_extra: bool = False,
        are_close: Callable[[Any, Any], bool] | None = None,
    ) -> None:
        self.rules = rules
        self.plain = {rule.tokens: rule for rule in rules if "*" not in rule.tokens}
        self.general = [rule for rule in rules if "*" in rule.tokens]
        self.list_rules = list_rules
        self.lists = lists
        self.counts_rest = counts_rest
        self.counts_extra = counts_extra
        self.are_close = are_close
        self.visits = 0

    def compare(self, reference: Any, answer: Any) -> list[Field]:
        """All fields. Raises NotMeasurable when lists are too long to be paired."""
        self.visits = 0
        fields: list[Field] = []
        self.visit(reference, answer, (), "", fields)
        for rule in self.rules:
            if rule.asks == ASKS_ANSWER:
                fields += rule_fields(rule, reference, answer)
        return fields

    def is_equal(self, reference: Any, answer: Any) -> bool:
        """True when every field is met."""
        return all(field.is_met for field in self.compare(reference, answer))

    def rule_at(self, tokens: FieldTokens) -> FieldRule | None:
        """The first rule whose path means *tokens*."""
        rule = self.plain.get(tokens)  # narrower ones come first: the other way round they are refused
        if rule is None:
            for other in self.general:
                if is_at(tokens, other.tokens):
                    return other
        return rule

    def has_rule_below(self, tokens: FieldTokens) -> bool:
        """True when a rule speaks of what stands below *tokens*."""
        return any(len(rule.tokens) > len(tokens) and is_at(tokens, rule.tokens[: len(tokens)]) for rule in self.rules)

    def visit(self, expected: Any, found: Any, tokens: FieldTokens, pointer: str, fields: list[Field]) -> None:
        """Adds the fields at and below one place to *fields*; *tokens* lead there in the reference, *pointer* in the answer."""
        self.visits += 1
        if self.visits > MAX_FIELD_VISITS:
            raise NotMeasurable("the lists are too long to be paired; name a key for their elements in lists")
        rule = self.rule_at(tokens) if self.rules else None
        if rule is not None:
            note = rule.judge(expected, found) if rule.asks == ASKS_REFERENCE else None
            if note is not None:
                fields.append(Field(pointer, rule.weight, not note, note))
        elif isinstance(expected, dict) and (expected or self.counts_extra):
            self.visit_object(expected, found, tokens, pointer, fields)
        elif isinstance(expected, list) and expected:
            self.visit_list(expected, found, tokens, pointer, fields)
        elif self.counts_rest:
            fields.append(self.leaf(expected, found, pointer))

    def leaf(self, expected: Any, found: Any, pointer: str) -> Field:
        """The field of a scalar or of an empty object or list; an empty object is met by any object."""
        if isinstance(expected, (dict, list)):
            container = field_container(found)
            is_met = isinstance(container, dict) if isinstance(expected, dict) else container == []
        else:
            is_met = json_equal(expected, found) or self.are_close is not None and self.are_close(expected, found)
        return Field(pointer, 1, is_met, "" if is_met else differing_note(expected, found))

    def visit_object(self, expected: dict[str, Any], found: Any, tokens: FieldTokens, pointer: str, fields: list[Field]) -> None:
        """Adds the fields of an object, and what is extra in the answer, if that counts."""
        container = field_container(found)
        answer = container if isinstance(container, dict) else {}
        if not expected and self.counts_rest:
            fields.append(self.leaf(expected, found, pointer))
        # Sorted, because the order of keys in a case is nothing that its fingerprint knows.
        for key in sorted(expected):
            self.visit(expected[key], answer.get(key, MISSING), (*tokens, key), pointer + pointer_token(key), fields)
        if self.counts_extra:
            for key in sorted(answer.keys() - expected.keys()):
                self.visit_extra(answer[key], (*tokens, key), pointer + pointer_token(key), fields)

    def visit_extra(self, found: Any, tokens: FieldTokens, pointer: str, fields: list[Field]) -> None:
        """Adds the fields of what the reference does not have; what a rule speaks of is not extra."""
        if self.rule_at(tokens) is None:
            container = field_container(found)
            if container is not None and self.has_rule_below(tokens):
                for key, item in field_children(container):
                    self.visit_extra(item, (*tokens, str(key)), pointer + pointer_token(key), fields)
            else:
                fields.append(Field(pointer, 1, False, "is not in the reference"))

    # --- Lists -------------------------------------------------------------------------

    def visit_list(self, expected: list[Any], found: Any, tokens: FieldTokens, pointer: str, fields: list[Field]) -> None:
        """Adds the fields of the elements of a list, paired with those of the answer."""
        container = field_container(found)
        answer = container if isinstance(container, list) else []
        mode = next((rule.mode for rule in self.list_rules if is_at(tokens, rule.tokens)), self.lists)
        rows, columns = list(range(len(expected))), list(range(len(answer)))
        if mode == "set":
            rows, columns = first_of_each(expected), first_of_each(answer)
        pairs = self.pairs(expected, answer, rows, columns, tokens, mode)
        for row in rows:
            column = pairs.get(row)
            there = MISSING if column is None else answer[column]
            self.visit(expected[row], there, (*tokens, str(row)), f"{pointer}/{row if column is None else column}", fields)
        if self.counts_rest or self.has_rule_below(tokens):
            for column in sorted(set(columns).difference(pairs.values())):
                if self.rule_at((*tokens, str(column))) is None:
                    fields.append(Field(f"{pointer}/{column}", 1, False, "has no partner in the reference"))

    def pairs(
        self, expected: list[Any], answer: list[Any], rows: list[int], columns: list[int], tokens: FieldTokens, mode: ListMode
    ) -> dict[int, int]:
        """{place in *expected*: place in *answer*} for the elements that belong together."""
        if isinstance(mode, tuple):
            keys = [json_key(next(field_places(element, mode))[1]) for element in expected]
            if MISSING not in keys:
                return pairs_by_key(keys, [json_key(next(field_places(element, mode))[1]) for element in answer])
            mode = "ordered"  # a list whose elements have no such key
        if mode == "ordered":
            return dict(zip(rows, columns, strict=False))
        pairs: dict[int, int] = {}
        if self.are_close is None and not self.has_rule_below(tokens):  # equality is transitive: the same belong together
            same = pairs_by_key([json_key(expected[row]) for row in rows], [json_key(answer[column]) for column in columns])
            pairs = {rows[row]: columns[column] for row, column in same.items()}
            rows = [row for row in rows if row not in pairs]
            columns = [column for column in columns if column not in set(pairs.values())]
        shorter, longer = sorted((len(rows), len(columns)))
        if shorter * shorter * longer > MAX_PAIRING_STEPS:
            raise NotMeasurable(
                f"lists with {counted(len(rows), 'element')} expected and {len(columns)} found are too long to be paired; "
                "name a key for their elements in lists"
            )
        gains = self.gains(expected, answer, rows, columns, tokens)
        return pairs | {rows[row]: columns[column] for row, column in enumerate(best_assignment(gains)) if column is not None}

    def gains(self, expected: list[Any], answer: list[Any], rows: list[int], columns: list[int], tokens: FieldTokens) -> list[list[Any]]:
        """What each pair is worth: the most met weight in all, then the fewest fields beside it."""
        tables: list[list[list[Field]]] = [[[] for _ in columns] for _ in rows]
        for row, table in zip(rows, tables, strict=True):
            for column, fields in zip(columns, table, strict=True):
                self.visit(expected[row], answer[column], (*tokens, str(row)), "", fields)
        whole = 1 + sum(field.weight for table in tables for fields in table for field in fields)
        return [[sum(field.weight * (whole * field.is_met - 1) for field in fields) for fields in table] for table in tables]


def first_of_each(elements: list[Any]) -> list[int]:
    """The places of *elements* without those that hold the same as an earlier one."""
    seen: dict[Any, int] = {}
    for place, element in enumerate(elements):
        seen.setdefault(json_key(element), place)
    return list(seen.values())


def pairs_by_key(keys: list[Any], others: list[Any]) -> dict[int, int]:
    """{place in *keys*: place in *others*} of the same key, one to one, in order."""
    places: dict[Any, list[int]] = {}
    for place, key in enumerate(others):
        places.setdefault(key, []).append(place)
    for found in places.values():
        found.reverse()
    return {place: places[key].pop() for place, key in enumerate(keys) if places.get(key)}


def differing_note(expected: Any, found: Any) -> str:
    """'expected 1250, found 1205', or that it is missing."""
    if found is MISSING:
        return f"is missing, expected {field_shown(expected)}"
    return f"expected {field_shown(expected)}, found {field_shown(found)}"


def rule_fields(rule: FieldRule, reference: Any, answer: Any) -> Iterator[Field]:
    """The fields of a rule that asks of the answer alone: one for each place its path means there.

    A wildcard over nothing gives one field that is not met, unless the reference has nothing there either.
    """
    places = list(field_places(answer, rule.tokens))
    if not places and reference is not MISSING and not list(field_places(reference, rule.tokens)):
        return
    for pointer, found in places or [(rule.path, MISSING)]:
        note = rule.judge(rule.value, found)
        if note is not None:
            yield Field(pointer, rule.weight, not note, note)

# endregion

# region evaluators/field_rules.py
# =============================================================================
# The rules of `fields`: what each op compares, and what a rule may hold.
#
#     {"path": "/readings/*/value", "op": "numeric", "abs_tol": 0.5, "weight": 3}
#     {"path": "/status", "value": "open"}              op is equals
#     {"path": "/readings", "lists": {"key": "/meter"}}   without op and value: how these lists are paired
#
# Only `numeric` and `date` read values out of text, and they read both sides in the same way.
# =============================================================================

LIST_MODES = ("ordered", "multiset", "set")
RULE_KEYS = ("path", "op", "value", "abs_tol", "rel_tol", "weight", "lists")


# --- What each op compares: (rule, how lists are paired, pointer of the rule) -> judge -------------


def compare_equals(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """The same JSON value at every depth; numbers within the tolerances."""
    abs_tol, rel_tol = rule.get("abs_tol", 0), rule.get("rel_tol", 0)

    def are_close(expected: Any, found: Any) -> bool:
        both = is_json_number(expected) and is_json_number(found)
        return both and within_tolerance(exact_value(found), exact_value(expected), abs_tol, rel_tol)

    comparison = FieldComparison([], [], lists, counts_extra=True, are_close=are_close if abs_tol or rel_tol else None)
    return lambda expected, found: "" if comparison.is_equal(expected, found) else differing_note(expected, found)


def compare_contains(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """A text holds the expected text; a list each of the expected elements, or the one; an object at least the expected fields."""
    parts = FieldComparison([], [], lists)

    def judge(expected: Any, found: Any) -> str | None:
        if expected in ("", [], {}):
            return None
        if isinstance(found, list):
            there = {json_key(item) for item in found}
            lacking = [item for item in (expected if isinstance(expected, list) else [expected]) if json_key(item) not in there]
            return f"lacks {listed(map(field_shown, lacking), 5)}" if lacking else ""
        if isinstance(found, str) and isinstance(expected, str):
            is_met = expected in found
        else:
            is_met = isinstance(found, dict) and isinstance(expected, dict) and parts.is_equal(expected, found)
        return "" if is_met else f"does not contain {field_shown(expected)}: {field_shown(found)}"

    return judge


def compare_regex(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """The pattern is found in the text."""
    if not isinstance(rule.get("value"), str):
        raise ConfigurationError(pointer + "/value", "op regex needs a value, the pattern")
    search = compile_pattern(rule["value"], 0, pointer + "/value").search

    def judge(expected: Any, found: Any) -> str:
        try:
            is_met = isinstance(found, str) and timed(lambda: search(found)) is not None
        except PatternTimeout as timeout:
            raise PatternTimeout(f"pattern {quoted(rule['value'], 60)} of {rule['path']}: {timeout.reason}") from None
        return "" if is_met else f"does not match the pattern: {field_shown(found)}"

    return judge


def compare_numeric(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """The number, or the one number in the text, within the tolerances."""
    abs_tol, rel_tol = rule.get("abs_tol", 0), rule.get("rel_tol", 0)

    def number_in(value: Any) -> Any:
        return exact_value(value) if is_json_number(value) else only_number(value) if isinstance(value, str) else None

    def judge(expected: Any, found: Any) -> str:
        if is_json_number(expected) and is_json_number(found) and expected == found:
            return ""
        wanted, actual = number_in(expected), number_in(found)
        if wanted is None:
            raise NotMeasurable(f"what is expected at {rule['path']} holds no single number: {field_shown(expected)}")
        if actual is None:
            return f"holds no single number: {field_shown(found)}"
        return "" if within_tolerance(actual, wanted, abs_tol, rel_tol) else differing_note(expected, found)

    return judge


def compare_date(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """The one date in the text, at most abs_tol days apart."""

    def judge(expected: Any, found: Any) -> str:
        (wanted, why_not), (actual, what) = read_date(expected), read_date(found)
        if wanted is None:
            raise NotMeasurable(f"what is expected at {rule['path']} {why_not}: {field_shown(expected)}")
        if actual is None:
            return f"{what}: {field_shown(found)}"
        return "" if days_apart(wanted, actual) <= rule.get("abs_tol", 0) else differing_note(expected, found)

    return judge


def compare_set(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """The same elements, whatever their order and however often each comes."""

    def judge(expected: Any, found: Any) -> str:
        if not isinstance(expected, list):
            raise NotMeasurable(f"what is expected at {rule['path']} is no list")
        if not isinstance(found, list):
            return f"is {json_type_phrase(found)}, not a list"
        wanted, there = ({json_key(item): item for item in items} for items in (expected, found))
        lacking = [field_shown(item) for key, item in wanted.items() if key not in there]
        beside = [field_shown(item) for key, item in there.items() if key not in wanted]
        notes = [f"lacks {listed(lacking, 5)}"] * bool(lacking) + [f"has {listed(beside, 5)} beside"] * bool(beside)
        return " and ".join(notes)

    return judge


def compare_exists(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """Something is there; null is something."""
    return lambda expected, found: "is missing" if found is MISSING else ""


def compare_absent(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """Nothing is there."""
    return lambda expected, found: "" if found is MISSING else f"is there, though it should not be: {field_shown(found)}"


def compare_nothing(rule: JsonObject, lists: ListMode, pointer: str) -> FieldJudge:
    """Whatever it is."""
    return lambda expected, found: None


# op: (what makes its judge, whether it takes a value, which further keys it takes)
FIELD_OPS: dict[str, tuple[Callable[[JsonObject, ListMode, str], FieldJudge], bool, tuple[str, ...]]] = {
    "equals": (compare_equals, True, ("abs_tol", "rel_tol", "lists")),
    "contains": (compare_contains, True, ()),
    "regex": (compare_regex, True, ()),
    "numeric": (compare_numeric, True, ("abs_tol", "rel_tol")),
    "date": (compare_date, True, ("abs_tol",)),
    "set": (compare_set, True, ()),
    "exists": (compare_exists, False, ()),
    "absent": (compare_absent, False, ()),
    "ignore": (compare_nothing, False, ()),
}


# --- What a rule may hold --------------------------------------------------------------------------


def parse_list_mode(mode: Any, pointer: str) -> ListMode:
    """How `lists` says that lists are paired. Raises ConfigurationError."""
    if isinstance(mode, str) and mode in LIST_MODES:
        return mode
    if isinstance(mode, dict) and list(mode) == ["key"]:
        tokens = parse_field_path(mode["key"], pointer + "/key")
        if tokens and "*" not in tokens:
            return tokens
        raise ConfigurationError(pointer + "/key", "must lead to one place in each element", 'such as {"key": "/id"}')
    hint = f'write one of {listed(LIST_MODES, last="or")}, or {{"key": "/id"}}'
    raise ConfigurationError(pointer, f"{field_shown(mode)} says no way to pair lists", hint)


def parse_field_path(path: Any, pointer: str) -> FieldTokens:
    """The tokens of a JSON Pointer in which * is every element. Raises ConfigurationError."""
    if not isinstance(path, str):
        raise ConfigurationError(pointer, f"is {json_type_phrase(path)}, not a JSON Pointer such as /items/*/price")
    try:
        return tuple(pointer_tokens(path))
    except ValueError as error:
        raise ConfigurationError(pointer, str(error), "a path begins with / and leads from the selected value on") from None


def check_rule_keys(rule: Any, pointer: str) -> None:
    """Raises ConfigurationError for a rule that is none, or holds what its op has no use for."""
    if not isinstance(rule, dict):
        raise ConfigurationError(pointer, f"is {json_type_phrase(rule)}, not a rule", 'a rule is {"path": "/total", "op": "numeric"}')
    for key in rule:
        if key not in RULE_KEYS:
            raise ConfigurationError(f"{pointer}/{key}", f"unknown key {quoted(key)}", did_you_mean(key, RULE_KEYS))
    op = rule.get("op", "equals")
    if not isinstance(op, str) or op not in FIELD_OPS:
        raise ConfigurationError(pointer + "/op", f"unknown op {field_shown(op)}", did_you_mean(str(op), FIELD_OPS))
    takes = (*FIELD_OPS[op][2], "path", "op", *(("value",) if FIELD_OPS[op][1] else ()), *(() if op == "ignore" else ("weight",)))
    for key in rule:
        if key not in takes:
            raise ConfigurationError(f"{pointer}/{key}", f"op {op} has no use for {key}")
    for key in ("abs_tol", "rel_tol", "weight"):
        if key in rule and (not is_json_number(rule[key]) or rule[key] < 0):
            raise ConfigurationError(f"{pointer}/{key}", f"{key} must be a number from 0")
    if rule.get("weight") == 0:
        raise ConfigurationError(pointer + "/weight", "weight 0 asks nothing", "use op ignore")


def compile_field_rule(rule: JsonObject, lists: ListMode, pointer: str) -> FieldRule:
    """The rule, compiled. Raises ConfigurationError."""
    op = rule.get("op", "equals")
    if "lists" in rule:
        lists = parse_list_mode(rule["lists"], pointer + "/lists")
    compare = FIELD_OPS[op][0](rule, lists, pointer)
    value = rule.get("value", MISSING)
    if value is not MISSING and op != "regex":
        try:
            if compare(value, value) is None:
                raise ConfigurationError(pointer + "/value", "is empty, which asks nothing")
        except NotMeasurable as error:
            raise ConfigurationError(pointer + "/value", error.reason) from None

    def judge(expected: Any, found: Any) -> str | None:
        if found is MISSING and op not in ("absent", "exists", "ignore"):
            return differing_note(expected, found) if op != "regex" else "is missing"
        return compare(expected, found)

    alone = value is not MISSING or op in ("exists", "absent")
    asks = ASKS_NOTHING if op == "ignore" else ASKS_ANSWER if alone else ASKS_REFERENCE
    weight = exact_value(rule.get("weight", 1))
    return FieldRule(rule["path"], parse_field_path(rule["path"], pointer + "/path"), asks, judge, value, weight)


def refuse_unreachable_rules(rules: list[FieldRule], pointers: list[str]) -> None:
    """Raises ConfigurationError for a rule that never gets a place, because another one has it already."""
    for index, rule in enumerate(rules):
        for place, other in enumerate(rules):
            covers = is_at(rule.tokens[: len(other.tokens)], other.tokens)
            if place != index and covers and (place < index or len(other.tokens) < len(rule.tokens)):
                message = f"is never asked: {pointers[place]}, with the path {quoted(other.path)}, has the same places"
                raise ConfigurationError(pointers[index] + "/path", message, "put the narrower path first, or take one out")


def compile_field_rules(rules: list[Any], lists: ListMode) -> tuple[list[FieldRule], list[ListRule]]:
    """(the rules that say what is compared, those that only say how lists are paired). Raises ConfigurationError."""
    compiled: list[FieldRule] = []
    pointers: list[str] = []
    list_rules: list[ListRule] = []
    for index, rule in enumerate(rules):
        pointer = f"/rules/{index}"
        check_rule_keys(rule, pointer)
        if "path" not in rule:
            raise ConfigurationError(pointer, "has no path", "say what it is about, such as /items/*/price")
        if set(rule) == {"path", "lists"}:
            mode = parse_list_mode(rule["lists"], pointer + "/lists")
            list_rules.append(ListRule(parse_field_path(rule["path"], pointer + "/path"), mode))
        else:
            compiled.append(compile_field_rule(rule, lists, pointer))
            pointers.append(pointer)
    refuse_unreachable_rules(compiled, pointers)
    return compiled, list_rules

# endregion

# region evaluators/fields.py
# =============================================================================
# The evaluator `fields`: a document compared with a reference, field by field.
# =============================================================================

MAX_FIELDS_TOLD = 5
MAX_FIELD_EVIDENCE = 20


def fields_reference(view: View, reference: Any, is_needed: bool) -> Any:
    """What the answer is compared with; MISSING if there is none and none is needed. Raises NotMeasurable."""
    if reference is None:
        reference = view.case.get("expected")
    if reference is None and is_needed:
        raise NotMeasurable("the case has no expected value to compare with")
    if isinstance(reference, str):
        container = field_container(reference)
        return reference if container is None else container
    return MISSING if reference is None else reference


def fields_outcome(fields: list[Field], wants_all: bool) -> Outcome:
    """The outcome of *fields*: the met share of the weight, or all or nothing; the reason names what differs."""
    if not fields:
        return not_applicable("there is no field to compare")
    differing = [field for field in fields if not field.is_met]
    value = {"matched": len(fields) - len(differing), "of": len(fields)}
    if not differing:
        return Outcome(PASS, 1.0, f"agrees in {counted(len(fields), 'field')}" if len(fields) > 1 else "agrees", value)
    total = sum(field.weight for field in fields)
    met = sum(field.weight for field in fields if field.is_met)
    told = "; ".join(f"{field.pointer or 'the whole'}: {field.note}" for field in differing[:MAX_FIELDS_TOLD])
    more = f"; and {len(differing) - MAX_FIELDS_TOLD} more" if len(differing) > MAX_FIELDS_TOLD else ""
    reason = f"{len(differing)} of {counted(len(fields), 'field')} {'differs' if len(differing) == 1 else 'differ'}: {told}{more}"
    evidence = tuple({"pointer": field.pointer} for field in differing[:MAX_FIELD_EVIDENCE])
    return Outcome(FAIL, 0.0 if wants_all else float(met / total), reason, value, evidence)


@evaluator(
    "fields",
    1,
    "The answer agrees with a reference, field by field.",
    [
        Parameter("reference", "any", None, "what to compare with; without it, the case's expected"),
        Parameter(
            "rules", "list", None,
            "what is not plain equality: a list of {path, op, value, abs_tol, rel_tol, weight, lists}. The path is a JSON Pointer in "
            "which * is every element; op is equals (the default), contains, regex, numeric, date (abs_tol in days), set, exists, "
            "absent or ignore; without a value it compares with the same path of the reference. A rule of path and lists alone "
            "says how these lists are paired",
        ),
        Parameter(
            "rest", "choice", "equals", "the fields of the reference without a rule: compared for equality, or ignored",
            ("equals", "ignore"),
        ),
        Parameter("aggregate", "choice", "weighted", "score: the met share of the weight; or 1 only if all are met", ("weighted", "all")),
        Parameter(
            "lists", "any", "ordered",
            'how the elements of lists are paired: ordered, multiset, set, or {"key": pointer} for elements that have such a key '
            "(others: ordered). An element without a partner is a field that differs",
        ),
        Parameter(
            "extra", "choice", "allow", "keys of objects that the reference does not have; forbid: each is a field that differs",
            ("allow", "forbid"),
        ),
    ],
    {
        "entry": {
            "id": "reading", "type": "fields",
            "rules": [{"path": "/value", "op": "numeric", "abs_tol": 0.5}, {"path": "/read_on", "op": "date"}],
        },
        "observation": {"output": {"meter": "A-17", "value": "1,250.4 kWh", "read_on": "5 March 2026"}},
        "case": {"expected": {"meter": "A-17", "value": 1250, "read_on": "2026-03-05"}},
        "outcome": "pass",
    },
    default_select="output.json",
)  # fmt: skip
def evaluate_fields(settings: JsonObject) -> Check:
    """A rule about the reference that finds nothing there is not measurable."""
    lists = parse_list_mode(settings["lists"], "/lists")
    rules, list_rules = compile_field_rules(settings["rules"] or [], lists)
    counts_rest, counts_extra = settings["rest"] == "equals", settings["extra"] == "forbid"
    if not counts_rest and all(rule.asks == ASKS_NOTHING for rule in rules):
        message = "nothing is compared: rest is ignore and no rule asks anything"
        raise ConfigurationError("/rest", message, "add a rule, or let rest be equals")
    comparison = FieldComparison(rules, list_rules, lists, counts_rest, counts_extra)
    is_needed = counts_rest or counts_extra or any(rule.asks == ASKS_REFERENCE for rule in rules)
    wants_all = settings["aggregate"] == "all"

    def check(view: View) -> Outcome:
        reference = fields_reference(view, settings["reference"], is_needed)
        for rule in rules:
            places = [found for _, found in field_places(reference, rule.tokens)] if rule.asks == ASKS_REFERENCE else []
            if places and all(found is MISSING for found in places):
                raise NotMeasurable(f"the reference has nothing at {rule.path}")
        return fields_outcome(comparison.compare(reference, view.value), wants_all)

    return check

# endregion

# region evaluators/json_text.py
# =============================================================================
# JSON in the text of an answer: the whole text, the first value, or a code fence.
#
# The parser is strict and repairs nothing. Where JSON is looked for, the first text that begins
# like JSON decides: if it is broken, what comes behind it is not taken in its place, and no part
# of it is, because neither is what the agent meant to answer.
# =============================================================================

# An object with a key; a list of objects, lists or texts.
JSON_BEGINS = re.compile(r'\{\s*"|\[\s*[\[{"]')
# What in prose is more often a footnote [1], a check box [ ] or a placeholder {}.
LESS_LIKELY_BEGINS = re.compile(r"\{\s*\}|\[\s*(?:\]|-?[0-9]|(?:true|false|null)\b)")


class JsonInText(NamedTuple):
    """The value that was found and where it stands, or (`reason` set) why there is none."""

    value: Any = None
    start: int = 0
    end: int = 0
    reason: str = ""


def broken_json(error: JsonError) -> str:
    """'not JSON: …' for *error*."""
    return error.message if error.message.startswith("not JSON") else f"not JSON: {error.message}"


def json_whole(text: str) -> JsonInText:
    """The value that the whole of *text* holds."""
    if not text.strip():
        return JsonInText(reason="there is no text")
    try:
        return JsonInText(parse_json(text), 0, len(text))
    except JsonError as error:
        return JsonInText(reason=broken_json(error))


def json_block(text: str) -> str | None:
    """The content of the first code fence of *text* that is marked json; without one, of the first fence; None without any."""
    blocks = fenced_blocks(text)
    return next((content for language, content in blocks if language == "json"), blocks[0][1] if blocks else None)


def json_fenced(text: str) -> JsonInText:
    """The value in the code fence."""
    block = json_block(text)
    if block is None:
        return JsonInText(reason="there is no code fence")
    found = json_whole(block)
    if found.reason:
        return JsonInText(reason=f"in the code fence: {found.reason}")
    start = text.find(block)
    return JsonInText(found.value, start, start + len(block))


def json_first(text: str) -> JsonInText:
    """The first object or list in *text*; an empty one, or a list of bare numbers, only if there is nothing else."""
    match = JSON_BEGINS.search(text) or LESS_LIKELY_BEGINS.search(text)
    if match is None:
        return JsonInText(reason="there is no JSON object or list in the text")
    try:
        value, end = parse_json_at(text, match.start())
    except JsonError as error:
        return JsonInText(reason=f"what begins like JSON at character {match.start()} is {broken_json(error)}")
    return JsonInText(value, match.start(), end)


def json_anywhere(text: str) -> JsonInText:
    """The whole text if it is JSON, else the fence that holds JSON, else the first value in it."""
    whole = json_whole(text)
    if not whole.reason:
        return whole
    block = json_block(text)
    is_marked = any(language == "json" for language, _ in fenced_blocks(text))
    if block is not None and (is_marked or JSON_BEGINS.match(block.lstrip())):
        return json_fenced(text)
    return json_first(text)


JSON_EXTRACTS: dict[str, Callable[[str], JsonInText]] = {
    "whole": json_whole,
    "first": json_first,
    "fenced": json_fenced,
    "any": json_anywhere,
}

# endregion

# region evaluators/limits.py
# =============================================================================
# The evaluator `budget`: what a trial may use, and how its cost and duration are known.
#
# A quantity that nobody measured is not 0: it follows the entry's `on_missing`.
# =============================================================================


def number_at(document: Any, *keys: str) -> Any:
    """The JSON number at *keys* below *document*; None when there is none."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document if is_json_number(document) else None


def trial_duration_ms(observation: JsonObject) -> float | None:
    """Milliseconds that the trial took, as the engine measured them; None when it did not (a replayed answer)."""
    duration: float | None = number_at(observation, "execution", "duration_ms")
    return duration


def trial_cost_usd(observation: JsonObject) -> float | None:
    """US dollars that the trial cost, earlier attempts included; None when any of them has no price."""
    execution = observation.get("execution")
    attempts = execution.get("attempts") if isinstance(execution, dict) else None
    prices = [number_at(observation, "cost", "total_usd")]
    prices += [number_at(attempt, "cost", "total_usd") for attempt in (attempts if isinstance(attempts, list) else [])]
    if any(price is None for price in prices):
        return None
    return prices[0] if len(prices) == 1 else float(sum(exact_value(price) for price in prices))


# --- What can be bounded -----------------------------------------------------------------


def tokens_total(view: View) -> Any:
    """`usage.total_tokens`, else the sum of input and output tokens when both are known."""
    total = number_at(view.observation, "usage", "total_tokens")
    parts = [number_at(view.observation, "usage", name) for name in ("input_tokens", "output_tokens")]
    return total if total is not None else None if None in parts else sum(parts)


def steps_of_kind(kind: str) -> Callable[[View], Any]:
    """Counts the recorded steps of *kind*."""
    return lambda view: sum(1 for step in view_trail(view).steps if step.get("kind") == kind)


def count_turns(view: View) -> Any:
    """The number of different `turn`s of the recorded steps; where none has one, of the user's messages."""
    steps = view_trail(view).steps
    turns = {step["turn"] for step in steps if isinstance(step.get("turn"), int)}
    return len(turns) or sum(1 for step in steps if step.get("kind") == "message" and step.get("role") == "user") or None


def count_retries(view: View) -> Any:
    """The number of earlier attempts at the trial."""
    execution = view.observation.get("execution")
    attempts = execution.get("attempts") if isinstance(execution, dict) else None
    return len(attempts) if isinstance(attempts, list) else None


def count_output_bytes(view: View) -> Any:
    """The length of the output's text in UTF-8."""
    output = view.observation.get("output")
    return None if output is None else len(output_text(output).encode("utf-8", "surrogatepass"))


QUANTITIES: dict[str, Callable[[View], Any]] = {
    "latency_ms": lambda view: trial_duration_ms(view.observation),
    "cost_usd": lambda view: trial_cost_usd(view.observation),
    "tokens_in": lambda view: number_at(view.observation, "usage", "input_tokens"),
    "tokens_out": lambda view: number_at(view.observation, "usage", "output_tokens"),
    "tokens_total": tokens_total,
    "steps": lambda view: len(view_trail(view).steps),
    "tool_calls": steps_of_kind("tool"),
    "model_calls": steps_of_kind("model"),
    "turns": count_turns,
    "retries": count_retries,
    "output_bytes": count_output_bytes,
}


def measured_quantity(name: str, view: View) -> Any:
    """The quantity *name* of the observation in *view*; None when it was not measured."""
    try:
        return QUANTITIES[name](view)
    except NotMeasurable:
        return None


def check_budget_bounds(settings: JsonObject) -> None:
    """Raises ConfigurationError for bounds that are unknown, no numbers from 0, crossed, or none at all."""
    for side in ("max", "min"):
        for name, bound in settings[side].items():
            pointer = f"/{side}{pointer_token(name)}"
            if name not in QUANTITIES:
                raise ConfigurationError(pointer, f"quantity {quoted(name)} is unknown", did_you_mean(name, QUANTITIES))
            if not is_json_number(bound) or bound < 0:
                raise ConfigurationError(pointer, f"the bound of {name} is no number from 0")
    for name in sorted(settings["max"].keys() & settings["min"].keys()):
        if settings["min"][name] > settings["max"][name]:
            raise ConfigurationError(f"/min/{name}", f"the minimum of {name} is above its maximum")
    if not settings["max"] and not settings["min"]:
        raise ConfigurationError("", "neither max nor min names a quantity", f"quantities: {listed(QUANTITIES, 20)}")


@evaluator(
    "budget",
    1,
    "What the trial used stays within bounds: time, cost, tokens, steps, calls, turns, retries, size of the output.",
    [
        Parameter("max", "object", {}, f"the most of each quantity: {', '.join(QUANTITIES)}"),
        Parameter("min", "object", {}, "the least of each quantity"),
    ],
    example={
        "entry": {"id": "cheap", "type": "budget", "max": {"cost_usd": 0.05, "tool_calls": 3}},
        "observation": {"output": "Done.", "cost": {"total_usd": 0.05}, "steps": [{"kind": "tool", "name": "find_order"}]},
        "outcome": "pass",
    },
    selects=False,
)
def evaluate_budget(settings: JsonObject) -> Check:
    """Passes when every bounded quantity was measured and is within; a broken bound decides, whatever else is unmeasured."""
    check_budget_bounds(settings)
    bounds = [(name, settings["min"].get(name), settings["max"].get(name)) for name in QUANTITIES]
    bounds = [(name, low, high) for name, low, high in bounds if low is not None or high is not None]

    def check(view: View) -> Outcome:
        measured = {name: measured_quantity(name, view) for name, _, _ in bounds}
        broken, met, unmeasured = [], [], []
        for name, low, high in bounds:
            amount = measured[name]
            if amount is None:
                unmeasured.append(name)
            elif high is not None and amount > high:
                broken.append(f"{name} {amount!r} is above {high!r}")
            elif low is not None and amount < low:
                broken.append(f"{name} {amount!r} is below {low!r}")
            else:
                met.append(f"{name} {amount!r}")
        if unmeasured and not broken:
            raise NotMeasurable(f"{listed(unmeasured)} {'was' if len(unmeasured) == 1 else 'were'} not measured")
        return decided(not broken, listed(broken) if broken else f"within bounds: {listed(met)}", measured)

    return check

# endregion

# region evaluators/numbers.py
# =============================================================================
# The evaluator `number`: which number a text says, and whether it is the right one.
#
# Numbers are read as decimals.py says and compared exactly: 29.00 is 29, and a tolerance
# includes its bound. A text without the number asked for is no 0: it follows `on_missing`.
# =============================================================================

EXTRACTS = ("last", "first", "only", "any", "regex", "pointer")

NumberTest = Callable[["int | Fraction"], str]  # '' when a number is right, else what is wrong with it


def required_amount(value: Any, mark: str, pointer: str) -> "int | Fraction":
    """The exact value of a parameter, a number or a text that holds one ('$1,250'). Raises ConfigurationError."""
    if is_json_number(value):
        return exact_value(value)
    amount = only_number(value, mark) if isinstance(value, str) else None
    if amount is None:
        raise ConfigurationError(pointer, "does not hold exactly one number", "write a number, or a text with one number in it")
    return amount


def told_amount(value: "int | Fraction") -> str:
    """How a reason shows a number."""
    return str(json_number(value))


def number_test(settings: JsonObject, mark: str) -> NumberTest | None:
    """What is asked of the number: equals within its tolerances, min, max; None when nothing is. Raises ConfigurationError."""
    wanted, low, high = (
        None if settings[name] is None else required_amount(settings[name], mark, f"/{name}") for name in ("equals", "min", "max")
    )
    abs_tol, rel_tol = settings["abs_tol"], settings["rel_tol"]
    if abs_tol < 0 or rel_tol < 0:
        raise ConfigurationError("/abs_tol" if abs_tol < 0 else "/rel_tol", "a tolerance is negative")
    if low is not None and high is not None and low > high:
        raise ConfigurationError("/min", "min is greater than max")
    if wanted is None and low is None and high is None:
        return None

    def test(number: "int | Fraction") -> str:
        if wanted is not None and not within_tolerance(number, wanted, abs_tol, rel_tol):
            return f"is not {told_amount(wanted)}"
        if low is not None and number < low:
            return f"is below {told_amount(low)}"
        return f"is above {told_amount(high)}" if high is not None and number > high else ""

    return test


class ReadNumber(NamedTuple):
    """A number that was read, and the range of the text where it stands; -1 when it is no text."""

    value: "int | Fraction"
    start: int = -1
    end: int = -1

    def evidence(self) -> tuple[JsonObject, ...]:
        """The range as evidence of an outcome."""
        return ({"start": self.start, "end": self.end},) if self.start >= 0 else ()


def chosen_number(text: str, mark: str, extract: str) -> ReadNumber:
    """The number of *text* that *extract* means: last, first, only. Raises NotMeasurable when it is not there."""
    found = last_number(text, mark) if extract == "last" else first_number(text, mark)
    if found is None:
        raise NotMeasurable("there is no number")
    if found.value is None:
        raise NotMeasurable("the number has too many digits")
    if extract == "only" and only_number(text, mark) is None:
        raise NotMeasurable("there are several numbers where one was asked for")
    return ReadNumber(found.value, found.start, found.end)


def number_reader(settings: JsonObject, mark: str) -> Callable[[Any], ReadNumber]:
    """What reads the one number that `extract` asks for out of a value. Raises ConfigurationError."""
    extract = settings["extract"]
    for name, needed_by in (("pattern", "regex"), ("pointer", "pointer")):
        if (settings[name] is not None) != (extract == needed_by):
            raise ConfigurationError(f"/{name}" if settings[name] is not None else "", f"{name} and extract {needed_by} go together")
    if extract == "pointer":
        if "*" in settings["pointer"].split("/"):
            raise ConfigurationError("/pointer", "leads to several values; one number is asked for")
        follow = pointer_transform([settings["pointer"]], "/pointer")
        return lambda value: ReadNumber(read_value(follow(value), lambda text: chosen_number(text, mark, "only")).value)
    if extract == "regex":
        pattern = compile_pattern(settings["pattern"])
        group = min(pattern.groups, 1)

        def find(text: str) -> ReadNumber:
            match = last_match(pattern, text)
            if match is None or match[group] is None:
                raise NotMeasurable(f"pattern {quoted(settings['pattern'], 60)} finds nothing")
            value, start, end = chosen_number(match[group], mark, "first")
            return ReadNumber(value, start + match.start(group), end + match.start(group))

        return lambda value: read_value(value, find)
    return lambda value: read_value(value, lambda text: chosen_number(text, mark, extract))


def read_value(value: Any, read_text: Callable[[str], ReadNumber]) -> ReadNumber:
    """A JSON number as it is, else what *read_text* finds in the text of *value*. Raises NotMeasurable."""
    if is_json_number(value):
        return ReadNumber(exact_value(value))
    if isinstance(value, (bool, dict)):
        raise NotMeasurable(f"a JSON {json_type(value)} is no number", True)
    return read_text(text_of(value))


def last_match(pattern: "re.Pattern[str]", text: str) -> "re.Match[str] | None":
    """The last of the matches of *pattern* in *text*, from the left, without overlaps. Raises PatternTimeout."""

    def find() -> "re.Match[str] | None":
        last = None
        for match in pattern.finditer(text):
            last = match
        return last

    return timed(find)


@evaluator(
    "number",
    1,
    "A number in the text is the expected one, or lies within bounds; thousands separators do not change it.",
    [
        Parameter("extract", "choice", "last", "which number of the text; or by regex or pointer", EXTRACTS),
        Parameter("pattern", "text", None, "for extract regex: the first number in the first group (else all) of its last match"),
        Parameter("pointer", "text", None, "for extract pointer: where the number stands in the JSON looked at"),
        Parameter("equals", "amount", None, 'the expected number, such as 1250 or "$1,250"'),
        Parameter("abs_tol", "number", 0, "it may differ by this much, the bound included"),
        Parameter("rel_tol", "number", 0, "it may differ by this share of the expected one"),
        Parameter("min", "amount", None, "the least"),
        Parameter("max", "amount", None, "the most"),
        Parameter("include", "list", None, "numbers each of which occurs somewhere in the text"),
        Parameter("decimal_mark", "choice", ".", "in text and parameters; the other one of . and , separates thousands", DECIMAL_MARKS),
    ],
    example={
        "entry": {"id": "total", "type": "number", "equals": {"$case": "/expected/total"}},
        "observation": {"output": "2 nights at $625 make $1,250.00."},
        "case": {"id": "c1", "input": "What do two nights cost?", "expected": {"total": 1250}},
        "outcome": "pass",
    },
)
def evaluate_number(settings: JsonObject) -> Check:
    """The value is the number read; currency signs, percent signs and units around it do not count."""
    mark = settings["decimal_mark"]
    test = number_test(settings, mark)
    if (test is None) == (settings["include"] is None):
        raise ConfigurationError("", "give equals, min or max, or else include")
    read = number_reader(settings, mark)
    if test is None:
        return include_check(settings, mark)
    if settings["extract"] == "any":
        return any_check(test, mark)

    def check(view: View) -> Outcome:
        number = read(view.value)
        wrong = test(number.value)
        told = f"reads {told_amount(number.value)}{', which ' + wrong if wrong else ''}"
        return decided(not wrong, told, json_number(number.value), number.evidence())

    return check


def numbers_of(value: Any, mark: str) -> list[ReadNumber]:
    """All numbers of a value: itself if it is one, else those in its text (without what has too many digits to be one)."""
    if is_json_number(value):
        return [ReadNumber(exact_value(value))]
    return [ReadNumber(number, start, end) for number, start, end in find_numbers(text_of(value), mark) if number is not None]


def any_check(test: NumberTest, mark: str) -> Check:
    """Passes when one of the numbers of the text does."""

    def check(view: View) -> Outcome:
        found = numbers_of(view.value, mark)
        if not found:
            raise NotMeasurable("there is no number")
        for number in found:
            if not test(number.value):
                return decided(True, f"reads {told_amount(number.value)}", json_number(number.value), number.evidence())
        wrong = [f"{told_amount(number.value)} {test(number.value)}" for number in found[:4]]
        return decided(False, f"of {counted(len(found), 'number')} none is right: {listed(wrong, 3)}")

    return check


def include_check(settings: JsonObject, mark: str) -> Check:
    """Passes when each number of `include` occurs; the score is the share of those that do."""
    wanted = [required_amount(value, mark, f"/include/{index}") for index, value in enumerate(settings["include"])]
    abs_tol, rel_tol = settings["abs_tol"], settings["rel_tol"]

    def check(view: View) -> Outcome:
        found = numbers_of(view.value, mark)
        lacking: list[str] = []
        evidence: list[JsonObject] = []
        for value in wanted:
            near = next((number for number in found if within_tolerance(number.value, value, abs_tol, rel_tol)), None)
            if near is None:
                lacking.append(told_amount(value))
            else:
                evidence += near.evidence()
        reason = f"does not say {listed(lacking, 5)}" if lacking else f"says {listed(map(told_amount, wanted), 5)}"
        return decided(not lacking, reason, None, tuple(evidence))._replace(score=(len(wanted) - len(lacking)) / len(wanted))

    return check

# endregion

# region evaluators/pairing.py
# =============================================================================
# Pairing listed with recorded steps, one to one and as many as possible.
#
# A table says who may be paired: `table[i][j]` is true when listed step i means recorded step j.
# Every function gives pairs (i, j) in order of i, each i and each j at most once.
# =============================================================================

PairingTable = list[list[bool]]
PairList = list[tuple[int, int]]


def largest_pairing(table: PairingTable) -> PairList:
    """As many pairs as there can be, whatever the order.

    Berge (1957), "Two theorems in graph theory": a pairing is largest when no augmenting path is left.
    """
    choices = [[j for j, may in enumerate(row) if may] for row in table]
    partner_of: dict[int, int] = {}  # recorded -> listed
    pair_of: dict[int, int] = {}  # listed -> recorded
    for start in range(len(table)):
        augment_pairing(start, choices, partner_of, pair_of)
    return sorted(pair_of.items())


def augment_pairing(start: int, choices: list[list[int]], partner_of: dict[int, int], pair_of: dict[int, int]) -> None:
    """PairList listed step *start* as well, moving others along a shortest augmenting path, if there is one."""
    reached: dict[int, int] = {}  # recorded -> the listed step that reached it
    queue = deque([start])
    while queue:
        listed = queue.popleft()
        for recorded in choices[listed]:
            if recorded in reached:
                continue
            reached[recorded] = listed
            if recorded in partner_of:
                queue.append(partner_of[recorded])
                continue
            free: int | None = recorded
            while free is not None:
                listed = reached[free]
                former = pair_of.get(listed)  # None for *start*, where the path ends
                partner_of[free], pair_of[listed] = listed, free
                free = former
            return


def longest_in_order(table: PairingTable) -> PairList:
    """As many pairs as there can be with both sides in order: a longest common subsequence."""
    width = len(table[0]) if table else 0
    best = [[0] * (width + 1)]  # best[k][j]: pairs among the last k listed and the recorded from j on
    for row in reversed(table):
        below, line = best[-1], [0] * (width + 1)
        for j in range(width - 1, -1, -1):
            line[j] = max(below[j], line[j + 1], below[j + 1] + 1 if row[j] else 0)
        best.append(line)
    best.reverse()
    pairs: PairList = []
    i = j = 0
    while i < len(table) and j < width:
        if table[i][j] and best[i][j] == best[i + 1][j + 1] + 1:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            i += 1
    return pairs


def best_block(table: PairingTable) -> PairList:
    """As many pairs as there can be when the listed steps lie on the recorded ones without a gap."""
    width = len(table[0]) if table else 0
    best: PairList = []
    for shift in range(1 - len(table), width):
        pairs = [(i, i + shift) for i in range(len(table)) if 0 <= i + shift < width and table[i][i + shift]]
        if len(pairs) > len(best):
            best = pairs
    return best

# endregion

# region evaluators/precedence.py
# =============================================================================
# What came before what: the evaluator `order`.
# =============================================================================

ORDER_DIRECTIONS = ("required", "followed_by")

ORDER_PARAMETERS = [
    Parameter("before", "matchers", REQUIRED, "The earlier step: a matcher or a list, any of them."),
    Parameter("after", "matchers", REQUIRED, "The later step: a matcher or a list, any of them."),
    Parameter(
        "direction",
        "choice",
        "required",
        "required: every `after` has an earlier `before`; followed_by: every `before` has a later `after`.",
        ORDER_DIRECTIONS,
    ),
    Parameter(
        "same",
        "any",
        None,
        "Arguments whose values agree: a name or pointer or a list of them, looked up in the earlier step's result as well; "
        '{"before": "/result/id", "after": "/args/ticket"} where names differ.',
    ),
    Parameter(
        "require_success",
        "boolean",
        True,
        "The latest earlier call must have succeeded, its result returned; with followed_by, a call that failed is not asked about.",
    ),
    Parameter("if_absent", "choice", NOT_APPLICABLE, "The outcome when there is nothing to ask about.", (NOT_APPLICABLE, PASS, FAIL)),
]
ORDER_EXAMPLE = {
    "entry": {
        "id": "looked_first",
        "type": "order",
        "before": {"name": "get_order"},
        "after": {"name": "issue_refund"},
        "same": ["/order"],
    },
    "observation": {
        "steps": [
            {"kind": "tool", "name": "get_order", "args": {"order": "A-7"}, "status": "ok", "result": {"total": 12.5}},
            {"kind": "tool", "name": "issue_refund", "args": {"order": "A-7", "amount": 12.5}, "status": "ok"},
        ]
    },
    "case": {"id": "refund", "input": "Refund order A-7."},
    "outcome": PASS,
}


class SamePair(NamedTuple):
    """Where a value stands in the earlier and in the later step, from the step's top; `text` is how a reason calls it.

    With `in_result` the earlier step's result is looked into at the same place as its arguments.
    """

    before: Tokens
    after: Tokens
    in_result: bool
    text: str


class OrderRule(NamedTuple):
    """What `order` asks: of every `before` a later step or of every `after` an earlier one, about what, after a success or any try."""

    is_followed: bool
    same: list[SamePair]
    needs_success: bool


class OrderPartner(NamedTuple):
    """A step on the right side about the same thing: its place, whether it is meant, whether it will do."""

    place: int
    is_meant: bool | None
    will_do: bool


@evaluator("order", 1, "Some steps come before others, about the same thing.", ORDER_PARAMETERS, ORDER_EXAMPLE, selects=False)
def evaluate_order(settings: JsonObject) -> Check:
    """Every step asked about has its partner on the right side."""
    before, after = compile_matchers(settings["before"], "/before"), compile_matchers(settings["after"], "/after")
    rule = OrderRule(settings["direction"] == "followed_by", compile_same(settings["same"]), settings["require_success"])
    wanted = settings["after" if rule.is_followed else "before"]
    partner = listed([call_text(document) for document in (wanted if isinstance(wanted, list) else [wanted])], 5, "or")

    def check(view: View) -> Outcome:
        trail = view_trail(view)
        earlier, later = any_decisions(before, trail), any_decisions(after, trail)
        meant, others = (earlier, later) if rule.is_followed else (later, earlier)
        asked = [index for index, answer in enumerate(meant) if answer is not False and is_asked(trail, rule, index)]
        if not asked:
            return absent_outcome(settings["if_absent"])
        search = PartnerSearch(trail, rule, others)
        answers = {index: settled(((one.is_meant, one.will_do) for one in search.partners(index)), False) for index in asked}
        broken = [index for index in asked if meant[index] and answers[index] is False]
        if broken:
            reasons = [search.reason(index, partner) for index in broken[:3]]
            more = f"; and {len(broken) - 3} more" if len(broken) > 3 else ""
            return decided(False, "; ".join(reasons) + more, len(broken), step_evidence(broken))
        unclear = [index for index in asked if answers[index] is None or not (meant[index] or answers[index])]
        if unclear or not any(meant[index] for index in asked):
            first = (unclear or asked)[0]
            raise NotMeasurable(
                f"whether {step_text(trail, first)} is in order is not known: what was recorded is cut short or lacks a status"
            )
        return decided(True, f"{counted(len(asked), 'step')} in order", 0, step_evidence(asked))

    return check


def compile_same(same: Any) -> list[SamePair]:
    """The pairs of `same`. Raises ConfigurationError."""
    if same is None:
        return []
    items = same if isinstance(same, list) else [same]
    refuse_empty(items, "/same")
    pairs = []
    for index, item in enumerate(items):
        pointer = f"/same/{index}" if isinstance(same, list) else "/same"
        if isinstance(item, dict):
            if item.keys() != {"before", "after"} or not all(isinstance(side, str) and side.startswith("/") for side in item.values()):
                raise ConfigurationError(
                    pointer, 'give both sides as pointers into the step, {"before": "/result/id", "after": "/args/ticket"}'
                )
            pairs.append(SamePair(field_tokens(item["before"]), field_tokens(item["after"]), False, item["after"]))
        else:
            tokens = ("args", *field_tokens(item, pointer))
            pairs.append(SamePair(tokens, tokens, True, item))
    return pairs


def any_decisions(matchers: list[Matcher], trail: Trail) -> list[bool | None]:
    """For each step whether one of *matchers* means it."""
    columns = [matcher.decisions(trail) for matcher in matchers]
    return [True if True in answers else None if None in answers else False for answers in zip(*columns, strict=True)]


def is_asked(trail: Trail, rule: OrderRule, index: int) -> bool:
    """Whether a step that is meant needs a partner: one that failed changed nothing that has to be followed."""
    return not (rule.is_followed and rule.needs_success and trail.has_failed(index))


def absent_outcome(if_absent: str) -> Outcome:
    """The outcome when no step was recorded that is asked about."""
    score = {PASS: 1.0, FAIL: 0.0}.get(if_absent)
    return Outcome(if_absent, score, "no step was recorded that this asks about")


class PartnerSearch:
    """Looks among *others*, what is known of each step, for steps on the right side about the same thing."""

    def __init__(self, trail: Trail, rule: OrderRule, others: list[bool | None]) -> None:
        self.trail = trail
        self.rule = rule
        self.others = others
        self.places = [place for place, answer in enumerate(others) if answer is not False]
        self.values: dict[tuple[int, Tokens], frozenset[str]] = {}

    def partners(self, index: int) -> Iterator[OrderPartner]:
        """The steps on the right side of the one at *index* that are or may be about the same thing, the nearest first."""
        is_followed = self.rule.is_followed
        for place in self.places if is_followed else reversed(self.places):
            first, second = (index, place) if is_followed else (place, index)
            agrees = first < second and self.is_same(first, second)
            if agrees is False or not self.trail.comes_before(first, second):
                continue
            is_meant = None if agrees is None else self.others[place]
            yield OrderPartner(place, is_meant, is_followed or not self.rule.needs_success or self.trail.has_returned(place))

    def is_same(self, earlier: int, later: int) -> bool | None:
        """Whether every value of the later step stands in the earlier one as well; None when that may have been cut off."""
        answer: bool | None = True
        for pair in self.rule.same:
            places = [pair.before, ("result", *pair.before[1:])] if pair.in_result else [pair.before]
            wanted = self.values_at(later, pair.after)
            if not wanted or not wanted <= frozenset().union(*(self.values_at(earlier, tokens) for tokens in places)):
                steps = self.trail.steps
                if not is_cut(steps[later], pair.after[0]) and not any(is_cut(steps[earlier], tokens[0]) for tokens in places):
                    return False
                answer = None
        return answer

    def values_at(self, index: int, tokens: Tokens) -> frozenset[str]:
        """The values at *tokens* in a step as canonical JSON, several for a wildcard."""
        key = (index, tokens)
        if key not in self.values:
            field = tokens[0]
            value = self.trail.content(index, field) if field in ("args", "result") else self.trail.steps[index].get(field, MISSING)
            found = [] if value is MISSING else values_at(value, tokens[1:]) or []
            self.values[key] = frozenset(canonical_json(item) for _, item in found)
        return self.values[key]

    def reason(self, index: int, partner: str) -> str:
        """Why the step at *index* is out of order; *partner* is what should stand on the other side."""
        name = step_text(self.trail, index)
        nearest = next((one for one in self.partners(index) if one.is_meant), None)
        if nearest is not None:
            status = self.trail.steps[nearest.place].get("status")
            ended = f"ended in {visible(str(status), 40)}" if status else "had not returned"
            return f"before {name}, the latest {step_text(self.trail, nearest.place)} {ended}"
        about = f" with the same {listed([pair.text for pair in self.rule.same])}" if self.rule.same else ""
        together = [place for place in self.places if place != index and self.others[place] and self.trail.are_together(place, index)]
        issued = f" ({step_text(self.trail, together[0])} was issued together with it)" if together else ""
        return f"{name} has no {'later' if self.rule.is_followed else 'earlier'} {partner}{about}{issued}"

# endregion

# region evaluators/sequence.py
# =============================================================================
# Which listed steps happened, and what else did: the evaluator `sequence`.
#
# Listed and recorded steps are paired one to one, as many as possible. What `mode` asks:
#
#     any_order    the same steps, nothing extra, in any order
#     exact        the same steps in the same order, nothing extra
#     in_order     all listed in order; others may stand between
#     contiguous   all listed in order, without gaps; others may stand before and after
#     superset     all listed; others may come as well
#     subset       nothing but listed ones; some may lack
#
# What `score` gives: bool 1 or 0; f1 the share of paired steps, 2 x pairs / (listed + recorded), where a
# side that the mode lets go beyond the pairs is left out; lcs the same with pairs in order, whatever
# the mode. The pairs of an ordered mode are always in order, so a score is 1 exactly when nothing is wrong.
# An empty list means that none of these happened, in every mode.
# =============================================================================


class SequenceMode(NamedTuple):
    """Whether the order counts, whether recorded steps may be left over, whether listed ones may lack."""

    is_ordered: bool
    lets_extra: bool
    lets_lack: bool


SEQUENCE_MODES = {
    "any_order": SequenceMode(False, False, False),
    "exact": SequenceMode(True, False, False),
    "in_order": SequenceMode(True, True, False),
    "contiguous": SequenceMode(True, True, False),
    "subset": SequenceMode(False, False, True),
    "superset": SequenceMode(False, True, False),
}

SEQUENCE_PARAMETERS = [
    Parameter(
        "steps",
        "list",
        REQUIRED,
        'Matchers, of which an expected call {"name", "args"} is one. An empty list out of a case: none of these happened.',
        may_be_empty=True,
    ),
    Parameter("mode", "choice", "any_order", "What may differ from the list.", tuple(SEQUENCE_MODES)),
    Parameter(
        "within",
        "matcher",
        None,
        "Looks only at these steps, recorded and listed alike. Without it: at recorded steps that a listed one means, or of a kind that is "
        "listed (tool where a listed step names none).",
    ),
    Parameter("attempts", "choice", "ok", "ok: leaves out what ended in error, denial or time-out; all: counts it.", ("ok", "all")),
    Parameter("score", "choice", "bool", "How a partial agreement is scored.", ("bool", "f1", "lcs")),
]
SEQUENCE_EXAMPLE = {
    "entry": {"id": "calls", "type": "sequence", "steps": {"$case": "/expected/calls"}, "within": {"kind": "tool", "name": "issue_*"}},
    "observation": {
        "steps": [
            {"kind": "tool", "name": "get_order", "args": {"order": "A-7"}, "status": "ok"},
            {"kind": "tool", "name": "issue_refund", "args": {"order": "A-7", "amount": 12.5}, "status": "ok"},
        ]
    },
    "case": {"id": "refund", "input": "Refund A-7.", "expected": {"calls": [{"name": "issue_refund", "args": {"order": "A-7"}}]}},
    "outcome": PASS,
}


class ListedSteps(NamedTuple):
    """The listed steps that count: as written, and compiled."""

    documents: list[JsonObject]
    matchers: list[Matcher]


@evaluator("sequence", 1, "The listed steps happened, and nothing that may not.", SEQUENCE_PARAMETERS, SEQUENCE_EXAMPLE, selects=False)
def evaluate_sequence(settings: JsonObject) -> Check:
    """Pairs the listed with the recorded steps, one to one, as many as possible."""
    documents = settings["steps"]
    if not documents and not isinstance(documents, EmptyFromCase):
        raise ConfigurationError("/steps", "is an empty list", 'to forbid steps: {"type": "steps", "match": {…}, "max": 0}')
    matchers = compile_matchers(documents, "/steps") if documents else []
    within = None if settings["within"] is None else compile_matcher(settings["within"], "/within")
    kept = [index for index, document in enumerate(documents) if within is None or may_lie_within(document, within)]
    expected = ListedSteps([documents[index] for index in kept], [matchers[index] for index in kept])
    kinds = None if within is not None else listed_kinds(documents)
    mode, score = settings["mode"], settings["score"]
    keeps_failed = settings["attempts"] == "all"

    def check(view: View) -> Outcome:
        trail = view_trail(view)
        rows = [matcher.decisions(trail) for matcher in expected.matchers]
        places = [index for index in recorded_places(trail, within, kinds, rows) if keeps_failed or not trail.has_failed(index)]
        outcomes = []
        for unknown in (False, True):
            table = [[row[place] is True or (unknown and row[place] is None) for place in places] for row in rows]
            outcomes.append(sequence_outcome(trail, expected, places, table, mode, score))
            if not any(None in row for row in rows):
                break
        if outcomes[0].score != outcomes[-1].score:
            line, place = next((line, row.index(None)) for line, row in enumerate(rows) if None in row)
            raise NotMeasurable(expected.matchers[line].unknown(trail, place))
        return outcomes[0]

    return check


def listed_kinds(documents: list[JsonObject]) -> set[str]:
    """The kinds of the listed steps; tool for one that names none, and for an empty list."""
    kinds: set[str] = set()
    for document in documents or [{}]:
        kind = document.get("kind", "tool")
        kinds.update(kind if isinstance(kind, list) else [kind])
    return kinds


def may_lie_within(document: JsonObject, within: Matcher) -> bool:
    """Whether the listed step could be one of the steps *within* means: what it leaves open does not rule it out."""
    names, kinds = document.get("name"), document.get("kind", list(STEP_KINDS))
    known = {key: document[key] for key in ("role", "status", "agent", "turn") if isinstance(document.get(key), (str, int))}
    args = document.get("args")
    if isinstance(args, dict):
        known["args"] = {name: value for name, value in args.items() if not name.startswith("/") and not holds_predicate(value)}
    steps = [
        {**known, "kind": kind, "name": name}
        for kind in (kinds if isinstance(kinds, list) else [kinds])
        for name in (names if isinstance(names, list) else [names])
    ]
    trail = Trail(steps, is_partial=True)
    return any(answer is not False for answer in within.decisions(trail))


def recorded_places(trail: Trail, within: Matcher | None, kinds: set[str] | None, rows: list[list[bool | None]]) -> list[int]:
    """The places of the recorded steps that count. Raises NotMeasurable when it is not known of one."""
    if within is not None:
        decisions = within.decisions(trail)
        if None in decisions:
            raise NotMeasurable(within.unknown(trail, decisions.index(None)))
        return [index for index, answer in enumerate(decisions) if answer]
    meant = {index for row in rows for index, answer in enumerate(row) if answer is not False}
    return [index for index, step in enumerate(trail.steps) if index in meant or step.get("kind") in (kinds or ())]


class Agreement(NamedTuple):
    """How far listed and recorded steps agree: the pairs, and what is left over although it may not be."""

    pairs: PairList
    missing: list[int]
    extra: list[int]
    misplaced: PairList


def sequence_outcome(trail: Trail, expected: ListedSteps, places: list[int], table: PairingTable, mode: str, score: str) -> Outcome:
    """The outcome for the recorded steps at *places*; table[i][j] says whether listed step i means the j-th of them."""
    found = agreement(table, len(places), mode, score == "lcs")
    value = {"listed": len(table), "recorded": len(places), "paired": len(found.pairs)}
    if not (found.missing or found.extra or found.misplaced):
        rest = "" if SEQUENCE_MODES[mode].lets_extra else ", and nothing else"
        reason = f"{counted(len(found.pairs), 'step')} of {len(table)} listed happened{rest}"
        return decided(True, reason, value, step_evidence(places[j] for _, j in found.pairs))
    culprits = [places[j] for j in [*found.extra, *(j for _, j in found.misplaced)]]
    outcome = decided(False, agreement_reason(trail, expected, places, found), value, step_evidence(culprits))
    if score == "bool":
        return outcome
    return outcome._replace(score=agreement_share(len(found.pairs), len(table), len(places), SEQUENCE_MODES[mode]))


def agreement(table: PairingTable, width: int, mode: str, in_order: bool) -> Agreement:
    """The pairs that *mode* lets be made, and what it does not let be left over; *width* is the number of recorded steps."""
    if not table:
        return Agreement([], [], list(range(width)), [])
    is_ordered = SEQUENCE_MODES[mode].is_ordered or in_order
    pairs = best_block(table) if mode == "contiguous" else longest_in_order(table) if is_ordered else largest_pairing(table)
    paired, taken = {i for i, _ in pairs}, {j for _, j in pairs}
    lacking = [i for i in range(len(table)) if i not in paired]
    spare = [j for j in range(width) if j not in taken]
    misplaced: PairList = []
    if is_ordered and lacking and spare:
        elsewhere = largest_pairing([[table[i][j] for j in spare] for i in lacking])
        misplaced = [(lacking[i], spare[j]) for i, j in elsewhere]
        moved, moved_to = {i for i, _ in misplaced}, {j for _, j in misplaced}
        lacking, spare = [i for i in lacking if i not in moved], [j for j in spare if j not in moved_to]
    return Agreement(pairs, [] if SEQUENCE_MODES[mode].lets_lack else lacking, [] if SEQUENCE_MODES[mode].lets_extra else spare, misplaced)


def agreement_share(pairs: int, listed_number: int, recorded: int, mode: SequenceMode) -> float:
    """The share of paired steps in [0, 1]; the side that *mode* lets go beyond the pairs does not count."""
    if mode.lets_extra or not recorded:
        return pairs / listed_number if listed_number else 0.0
    return pairs / recorded if mode.lets_lack else 2 * pairs / (listed_number + recorded)


def agreement_reason(trail: Trail, expected: ListedSteps, places: list[int], found: Agreement) -> str:
    """What is missing, extra and out of order, in one sentence."""
    missing = [call_text(expected.documents[i]) for i in found.missing]
    extra = [step_text(trail, places[j]) for j in found.extra]
    misplaced = [step_text(trail, places[j]) for _, j in found.misplaced]
    told = (("missing", missing), ("extra", extra), ("out of order", misplaced))
    return "; ".join(f"{what}: {listed(names, 5)}" for what, names in told if names)

# endregion

# region evaluators/structure.py
# =============================================================================
# The evaluator `json`: the answer is JSON, and fits a JSON Schema.
# =============================================================================

MAX_BREACHES_TOLD = 3


def schema_validator(schema: Any, pointer: str) -> Callable[[Any], list[SchemaBreach]]:
    """What gives the breaches of *schema*; all its patterns together have the time limit of one.

    Raises ConfigurationError below *pointer*; the function raises PatternTimeout.
    """
    searched: list[str] = []  # the pattern that ran last, so that a time-out can name it

    def compile_search(pattern: str, flags: int, written: str) -> Callable[[str], object]:
        try:
            search = compile_pattern(pattern, flags, "").search
        except ConfigurationError as error:
            raise ValueError(f"{error.message}{'; ' if error.hint else ''}{error.hint}") from None

        def search_noted(text: str) -> object:
            searched[:] = [written]
            return search(text)

        searched[:] = [written]
        return search_noted

    try:
        validate = compile_schema(schema, compile_search)
    except SchemaError as error:
        raise ConfigurationError(pointer + error.pointer, error.message) from None
    if not searched:
        return validate

    def validate_in_time(value: Any) -> list[SchemaBreach]:
        try:
            return timed(lambda: validate(value))
        except PatternTimeout as timeout:
            raise PatternTimeout(f"the schema's pattern {quoted(searched[0], 60)}: {timeout.reason}") from None

    return validate_in_time


def told_breaches(breaches: list[SchemaBreach]) -> str:
    """'/age: "x" is not of type integer; /id: …, and 2 more'."""
    told = "; ".join(f"{breach.pointer or 'the whole'}: {breach.message}" for breach in breaches[:MAX_BREACHES_TOLD])
    hidden = len(breaches) - MAX_BREACHES_TOLD
    return f"{told}; and {hidden} more" if hidden > 0 else told


@evaluator(
    "json",
    1,
    "The answer is JSON, and fits a JSON Schema.",
    [
        Parameter(
            "extract", "choice", "whole",
            "where the JSON stands: the whole text; the first object or list in it; the first code fence (marked json, if there is "
            "one); any of these, in the order whole, fence, first. Broken JSON is never repaired",
            tuple(JSON_EXTRACTS),
        ),
        Parameter("schema", "any", None, "JSON Schema 2020-12 that the value must fit; without it, any JSON will do"),
    ],
    {
        "entry": {"id": "order", "type": "json", "schema": {"required": ["total"], "properties": {"total": {"type": "number"}}}},
        "observation": {"output": '{"total": 12.5}'},
        "case": {},
        "outcome": "pass",
    },
)  # fmt: skip
def evaluate_json(settings: JsonObject) -> Check:
    """A text is read as JSON, whatever else was selected is JSON already."""
    extract = JSON_EXTRACTS[settings["extract"]]
    schema = settings["schema"]
    validate = schema_validator({} if schema is None else schema, "/schema")

    def check(view: View) -> Outcome:
        found = extract(view.value) if isinstance(view.value, str) else JsonInText(view.value)
        if found.reason:
            return decided(False, found.reason)
        is_part = isinstance(view.value, str) and (found.start, found.end) != (0, len(view.value))
        place = ({"start": found.start, "end": found.end},) if is_part else ()
        try:
            breaches = validate(found.value)
        except SchemaTooDeep as error:
            return errored(str(error))
        value = {"type": json_type(found.value), "breaches": len(breaches)}
        if not breaches:
            return decided(True, "fits the schema" if schema is not None else f"is a JSON {json_type(found.value)}", value, place)
        pointers = tuple({"pointer": pointer} for pointer in dict.fromkeys(breach.pointer for breach in breaches))
        reason = f"{counted(len(breaches), 'breach', 'breaches')} of the schema: {told_breaches(breaches)}"
        return decided(False, reason, value, (*place, *pointers))

    return check

# endregion

# region evaluators/text.py
# =============================================================================
# Evaluators over text and plain values: equals, contains, matches, length.
# =============================================================================

VALUE_SHOWN = 60  # characters of a value in a reason
EVIDENCE_RANGES = 20
PATTERN_FLAGS = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
SENTENCE_STOP = re.compile(r"[.!?\u2026]['\")\]\u00bb\u201d\u2019]{0,9}(?=\s+[^\sa-z]|\s*\Z)|[\u3002\uff01\uff1f]")


def listed_texts(value: Any) -> list[Any]:
    """A parameter that is one value or a list of them, as a list."""
    return value if isinstance(value, list) else [value]


def shown_value(value: Any) -> str:
    """*value* as a reason shows it: a text in quotes, else its JSON, cut."""
    return quoted(value, VALUE_SHOWN) if isinstance(value, str) else visible(encode_compact(value), VALUE_SHOWN)


# --- equals ------------------------------------------------------------------------------


def first_difference(expected: Any, actual: Any, is_near: Callable[[Any, Any], bool], pointer: str = "") -> tuple[str, str] | None:
    """(pointer, what differs there) of the first place where *actual* is not *expected*; None when they are the same JSON value."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected:
            if key not in actual:
                return pointer + pointer_token(key), "is missing"
        for key in actual:
            if key not in expected:
                return pointer + pointer_token(key), "is not expected"
        pairs = [(key, item, actual[key]) for key, item in expected.items()]
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = [(index, item, actual[index]) for index, item in enumerate(expected)]
    elif isinstance(expected, list) and isinstance(actual, list):
        return pointer, f"has {counted(len(actual), 'element')}, not {len(expected)}"
    elif is_json_number(expected) and is_json_number(actual):
        return None if is_near(expected, actual) else (pointer, f"is {actual!r}, not {expected!r}")
    else:
        return None if json_equal(expected, actual) else (pointer, differing_values(expected, actual))
    return next(filter(None, (first_difference(item, other, is_near, pointer + pointer_token(key)) for key, item, other in pairs)), None)


def differing_values(expected: Any, actual: Any) -> str:
    """'is X, not Y'; the types where they differ, the code points where two texts may print alike."""
    if json_type(expected) != json_type(actual):
        return f"is the {json_type(actual)} {shown_value(actual)}, not the {json_type(expected)} {shown_value(expected)}"
    told = f"is {shown_value(actual)}, not {shown_value(expected)}"
    if not isinstance(expected, str):
        return told
    place = text_difference(expected, actual)
    found, wanted = actual[place : place + 1], expected[place : place + 1]
    if is_plain(found) and is_plain(wanted) and place < VALUE_SHOWN:
        return told
    return f"{told}; character {place + 1} is {code_point(found)}, not {code_point(wanted)}"


def text_difference(expected: str, actual: str) -> int:
    """The index of the first character in which two texts differ."""
    low, high = 0, min(len(expected), len(actual))
    while low < high:  # halving compares at C speed; a loop over characters would take a second for a long text
        middle = (low + high) // 2
        if expected[low : middle + 1] == actual[low : middle + 1]:
            low = middle + 1
        else:
            high = middle
    return low


def is_plain(character: str) -> bool:
    """True for a character that nobody takes for another, and for the end of a text."""
    return character == "" or "!" <= character <= "~"


def code_point(character: str) -> str:
    """'U+00E9', or 'the end of the text' for the empty string."""
    return f"U+{ord(character):04X}" if character else "the end of the text"


def equality_rule(settings: JsonObject) -> Callable[[Any, Any], bool]:
    """Whether two JSON numbers are equal within the tolerances of *settings*, exactly in decimal terms."""
    abs_tol, rel_tol = settings["abs_tol"], settings["rel_tol"]
    for name in ("abs_tol", "rel_tol"):
        if settings[name] < 0:
            raise ConfigurationError(f"/{name}", f"{name} is negative")
    if not abs_tol and not rel_tol:
        return lambda expected, actual: bool(expected == actual)
    return lambda expected, actual: within_tolerance(exact_value(actual), exact_value(expected), abs_tol, rel_tol)


@evaluator(
    "equals",
    1,
    "The value is the expected one, or one of several; JSON types stay apart, objects and lists are compared deeply.",
    [
        Parameter("value", "any", ABSENT, "the expected value; this or any_of"),
        Parameter("any_of", "list", None, "expected values of which one is enough"),
        Parameter("normalize", "texts", [], f"done to the texts of both sides: {', '.join(TEXT_TRANSFORMS)}", may_be_empty=True),
        Parameter("abs_tol", "number", 0, "numbers may differ by this much, the bound included"),
        Parameter("rel_tol", "number", 0, "numbers may differ by this share of the expected one"),
    ],
    example={
        "entry": {"id": "state", "type": "equals", "select": "output.json/status", "value": {"$case": "/expected/status"}},
        "observation": {"output": '{"status": "shipped", "days": 2}'},
        "case": {"id": "c1", "input": "Where is it?", "expected": {"status": "shipped"}},
        "outcome": "pass",
    },
    default_select="output",
)
def evaluate_equals(settings: JsonObject) -> Check:
    """Looks at the output as it is (a text or JSON) unless `select` says otherwise; nothing is stripped or folded unasked."""
    if (settings["any_of"] is None) == (settings["value"] is ABSENT):
        raise ConfigurationError("", "give either value or any_of")
    normalise = compile_normalizer(listed_texts(settings["normalize"]))
    is_near = equality_rule(settings)
    expected = [normalise(value) for value in (settings["any_of"] if settings["any_of"] is not None else [settings["value"]])]

    def check(view: View) -> Outcome:
        actual = normalise(view.value)
        differences = []
        for value in expected:
            difference = first_difference(value, actual, is_near)
            if difference is None:
                return decided(True, f"is {shown_value(value)}")
            differences.append(difference)
        pointer, told = differences[0]
        more = f" (nor one of {len(expected) - 1} others)" if len(expected) > 1 else ""
        return decided(False, f"{pointer + ' ' if pointer else ''}{told}{more}", None, ({"pointer": pointer},) if pointer else ())

    return check


# --- contains ----------------------------------------------------------------------------


def is_word_character(character: str) -> bool:
    """True for a letter, digit or underscore."""
    return character.isalnum() or character == "_"


def is_whole_word(text: str, start: int, end: int) -> bool:
    """True when text[start:end] does not go on as a word on either side."""
    if start > 0 and is_word_character(text[start]) and is_word_character(text[start - 1]):
        return False
    return not (end < len(text) and is_word_character(text[end - 1]) and is_word_character(text[end]))


def occurrences(text: str, needle: str, whole_word: bool, at: str) -> Iterator[int]:
    """Where *needle* stands in *text*, from the left, without overlaps; `at` start or end allows one place only."""
    if at == "anywhere":
        start = text.find(needle)
    else:
        start = (0 if text.startswith(needle) else -1) if at == "start" else (len(text) - len(needle) if text.endswith(needle) else -1)
    while start >= 0:
        is_one = not whole_word or is_whole_word(text, start, start + len(needle))
        if is_one:
            yield start
        if at != "anywhere":
            return
        start = text.find(needle, start + (len(needle) if is_one else 1))


def unfolded_range(text: str, start: int, end: int) -> tuple[int, int]:
    """The range of *text* whose case-folded form holds characters *start* to *end* of the folded text ('ß' folds to 'ss')."""
    position, first = 0, len(text)
    for index, character in enumerate(text):
        position += len(character.casefold())
        if position > start and first == len(text):
            first = index
        if position >= end:
            return first, index + 1
    return first, len(text)


def needle_bounds(settings: JsonObject) -> tuple[int, int | None]:
    """(fewest, most) occurrences that count as holding: 1 and no bound; 0 when only max_count is given. Raises ConfigurationError."""
    fewest, most = settings["min_count"], settings["max_count"]
    if fewest is None:
        fewest = 1 if most is None else 0
    for name in ("min_count", "max_count"):
        if settings[name] is not None and settings[name] < 0:
            raise ConfigurationError(f"/{name}", f"{name} is negative")
    if most is None and fewest == 0:
        raise ConfigurationError("/min_count", "min_count 0 without max_count asks nothing")
    if most is not None and most < fewest:
        raise ConfigurationError("/max_count", f"max_count {most} is less than {fewest}")
    return fewest, most


@evaluator(
    "contains",
    1,
    "The text holds the given values: all of them, any, or none.",
    [
        Parameter("values", "texts", REQUIRED, "what to look for; a text that is empty is refused"),
        Parameter("mode", "choice", "all", "how many of the values have to occur", ("all", "any", "none")),
        Parameter("min_count", "integer", None, "a value occurs when it is found this often; default 1, or 0 when only max_count is given"),
        Parameter("max_count", "integer", None, "and at most this often"),
        Parameter("ignore_case", "boolean", False, "compare after full case folding ('STRASSE' holds 'straße')"),
        Parameter("whole_word", "boolean", False, "no letter, digit or underscore goes on before or behind it"),
        Parameter("at", "choice", "anywhere", "where it has to stand", ("anywhere", "start", "end")),
    ],
    example={
        "entry": {"id": "names_order", "type": "contains", "values": {"$case": "/expected/mentions"}, "ignore_case": True},
        "observation": {"output": "Your ORDER A-17 is on its way."},
        "case": {"id": "c1", "input": "Where is it?", "expected": {"mentions": ["order", "A-17"]}},
        "outcome": "pass",
    },
)
def evaluate_contains(settings: JsonObject) -> Check:
    """The score is the share of the values that occur in mode all, else 1 or 0."""
    needles = listed_texts(settings["values"])
    if "" in needles:
        raise ConfigurationError("/values", "holds an empty text, which every text contains", "write what is to be found")
    fewest, most = needle_bounds(settings)
    mode, at, whole_word, ignore_case = settings["mode"], settings["at"], settings["whole_word"], settings["ignore_case"]
    folded = [(needle, needle.casefold() if ignore_case else needle) for needle in needles]
    enough = fewest if most is None else most + 1

    def check(view: View) -> Outcome:
        text = text_of(view.value)
        searched = text.casefold() if ignore_case else text
        held: list[str] = []
        lacking: list[str] = []
        evidence: list[JsonObject] = []
        for needle, sought in folded:
            places = []
            for place in occurrences(searched, sought, whole_word, at):
                places.append(place)
                if len(places) == enough:
                    break
            (held if len(places) >= fewest and (most is None or len(places) <= most) else lacking).append(needle)
            for start in places[: EVIDENCE_RANGES - len(evidence)]:
                end = start + len(sought)
                start, end = (start, end) if len(searched) == len(text) else unfolded_range(text, start, end)
                evidence.append({"start": start, "end": end})
        return contains_outcome(mode, held, lacking, tuple(evidence))

    return check


def contains_outcome(mode: str, held: list[str], lacking: list[str], evidence: tuple[JsonObject, ...]) -> Outcome:
    """The outcome when the needles *held* occur as asked and those *lacking* do not."""
    found, absent = (listed((quoted(needle, VALUE_SHOWN) for needle in needles), 3) for needles in (held, lacking))
    told = {True: f"contains {found}", False: f"does not contain {absent}"}
    if mode != "all":
        return decided(bool(held) is (mode == "any"), told[bool(held)], None, evidence)
    outcome = decided(not lacking, told[not lacking], None, evidence)
    return outcome if not lacking or not held else outcome._replace(score=len(held) / (len(held) + len(lacking)))


# --- matches -----------------------------------------------------------------------------


def pattern_flags(letters: str) -> int:
    """The flags of re that *letters* name. Raises ConfigurationError."""
    flags = 0
    for letter in letters:
        if letter not in PATTERN_FLAGS:
            raise ConfigurationError("/flags", f"flag {quoted(letter)} is unknown", f"flags are letters of '{''.join(PATTERN_FLAGS)}'")
        flags |= PATTERN_FLAGS[letter]
    return flags


@evaluator(
    "matches",
    1,
    "A regular expression finds something in the text, or what it captures is the given value.",
    [
        Parameter("pattern", "text", REQUIRED, "a regular expression of Python 3.10; it is stopped after 1 s, which is an error"),
        Parameter("mode", "choice", "search", "search: anywhere; full: the whole text; prefix: at its start", ("search", "full", "prefix")),
        Parameter("flags", "text", "", "letters: i ignore case, m ^ and $ at each line, s . takes line ends, x comments, a ASCII"),
        Parameter("capture", "any", None, "number or name of the group that is compared with value"),
        Parameter("value", "text", None, "what the group has to hold, exactly, in the first match"),
    ],
    example={
        "entry": {"id": "ticket", "type": "matches", "pattern": "ticket (T-\\d+)", "capture": 1, "value": "T-204"},
        "observation": {"output": "I opened ticket T-204 for you."},
        "outcome": "pass",
    },
)
def evaluate_matches(settings: JsonObject) -> Check:
    """An error, neither pass nor fail, when the pattern takes too long."""
    pattern = compile_pattern(settings["pattern"], pattern_flags(settings["flags"]))
    if (settings["capture"] is None) != (settings["value"] is None):
        raise ConfigurationError("", "capture and value are given together or not at all")
    group = 0 if settings["capture"] is None else pattern_group(pattern, settings["capture"], "/capture")
    mode, wanted = settings["mode"], settings["value"]
    shown = f"pattern {quoted(settings['pattern'], VALUE_SHOWN)}"

    def check(view: View) -> Outcome:
        match = timed_match(pattern, text_of(view.value), mode)
        if match is None:
            return decided(False, f"{shown} does not match")
        start, end = match.span(group)
        evidence = ({"start": start, "end": end},) if start >= 0 else ()
        if wanted is None:
            return decided(True, f"{shown} matches", None, evidence)
        captured = match[group]
        told = "captures nothing" if captured is None else f"captures {shown_value(captured)}"
        return decided(captured == wanted, told if captured == wanted else f"{told}, not {shown_value(wanted)}", None, evidence)

    return check


# --- length ------------------------------------------------------------------------------


def lines_in(text: str) -> int:
    """Lines of *text*; a line end at its end begins no further one."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def sentences_in(text: str) -> int:
    """Sentences of *text*: one ends in . ! ? or … before a space and no small letter, or in 。！？; so "3.5" and "p.m. on" end none."""
    ends = [match.end() for match in SENTENCE_STOP.finditer(text)]
    starts = [0, *ends]
    return sum(1 for start, end in zip(starts, [*ends, len(text)], strict=True) if any(map(str.isalnum, text[start:end])))


def paragraphs_in(text: str) -> int:
    """Parts of *text* between blank lines that are not blank."""
    return sum(1 for part in re.split(r"\n[ \t\r]*(?=\n)", text) if part.strip())


LENGTH_UNITS: dict[str, Callable[[str], int]] = {
    "chars": len,
    "words": lambda text: len(text.split()),
    "lines": lines_in,
    "sentences": sentences_in,
    "paragraphs": paragraphs_in,
    "bytes": lambda text: len(text.encode("utf-8", "surrogatepass")),
}


def items_in(value: Any) -> int:
    """Elements of a list, or keys of an object; JSON held in a text is parsed. Raises NotMeasurable."""
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except JsonError:
            raise NotMeasurable("the text is no JSON list or object", True) from None
    if not isinstance(value, (list, dict)):
        raise NotMeasurable(f"a JSON {json_type(value)} has no items", True)
    return len(value)


@evaluator(
    "length",
    1,
    "The length of the text, or the number of items, lies within bounds.",
    [
        Parameter("unit", "choice", "chars", "what is counted; items: of a list, or keys of an object", (*LENGTH_UNITS, "items")),
        Parameter("min", "integer", None, "the least"),
        Parameter("max", "integer", None, "the most"),
        Parameter("exact", "integer", None, "exactly this many"),
    ],
    example={
        "entry": {"id": "brief", "type": "length", "unit": "sentences", "max": 2},
        "observation": {"output": "It was shipped. It arrives at 3.30 p.m. on Friday."},
        "outcome": "pass",
    },
)
def evaluate_length(settings: JsonObject) -> Check:
    """chars are code points, words stand between white space, bytes are of UTF-8."""
    low, high, exact = settings["min"], settings["max"], settings["exact"]
    if low is None and high is None and exact is None:
        raise ConfigurationError("", "has neither min, max nor exact")
    if exact is not None and (low is not None or high is not None):
        raise ConfigurationError("/exact", "exact stands alone, without min and max")
    for name in ("min", "max", "exact"):
        if settings[name] is not None and settings[name] < 0:
            raise ConfigurationError(f"/{name}", f"{name} is negative")
    if low is not None and high is not None and low > high:
        raise ConfigurationError("/min", f"min {low} is greater than max {high}")
    unit = settings["unit"]
    low, high = (low, high) if exact is None else (exact, exact)
    count: Callable[[Any], int] = items_in if unit == "items" else lambda value: LENGTH_UNITS[unit](text_of(value))
    named = (("exactly", exact),) if exact is not None else (("at least", low), ("at most", high))
    bounds = listed([f"{word} {bound}" for word, bound in named if bound is not None])

    def check(view: View) -> Outcome:
        number = count(view.value)
        is_met = (low is None or number >= low) and (high is None or number <= high)
        return decided(is_met, f"has {number:,} {unit}{'' if is_met else ', not'}{':' if is_met else ''} {bounds}", number)

    return check

# endregion

# region evaluators/trajectory.py
# =============================================================================
# How many steps were taken, and what holds of them: the evaluator `steps`.
# =============================================================================

DUTY_WHICH = ("all", "any", "none", "first", "last")

STEPS_PARAMETERS = [
    Parameter("match", "matcher", REQUIRED, "The steps that are meant; {} means every step."),
    Parameter("min", "integer", None, "At least so many; 1, or 0 when only `max` is given."),
    Parameter("max", "integer", None, "At most so many."),
    Parameter("must", "matcher", None, "A second matcher that the steps meant have to satisfy; none meant and `min` 0 is not applicable."),
    Parameter("which", "any", "all", "Which of them `must` is asked of: all, any, none, first, last, or a number n for the n-th."),
]
STEPS_EXAMPLE = {
    "entry": {"id": "one_small", "type": "steps", "match": {"name": "issue_refund"}, "max": 1, "must": {"args": {"amount": {"$le": 50}}}},
    "observation": {"steps": [{"kind": "tool", "name": "issue_refund", "args": {"amount": 12.5}, "status": "ok"}]},
    "case": {"id": "refund", "input": "Refund my lamp."},
    "outcome": PASS,
}


@evaluator("steps", 1, "So many steps were taken, and they are as they must be.", STEPS_PARAMETERS, STEPS_EXAMPLE, selects=False)
def evaluate_steps(settings: JsonObject) -> Check:
    """Counts the steps meant, and asks `must` of `which` of them."""
    match, must = compile_matcher(settings["match"], "/match"), settings["must"]
    duty = None if must is None else compile_matcher(must, "/must")
    low, high = steps_bounds(settings)
    wanted, which = call_text(settings["match"]), settings["which"]
    is_place = isinstance(which, int) and not isinstance(which, bool) and which >= 1
    if not is_place and which not in DUTY_WHICH:
        raise ConfigurationError("/which", f"which is one of {', '.join(DUTY_WHICH)}, or a number from 1")

    def check(view: View) -> Outcome:
        trail = view_trail(view)
        meant = match.decisions(trail)
        outcome = count_outcome(trail, match, meant, low, high, wanted)
        if duty is None or outcome.status == FAIL:
            return outcome
        if not any(answer is not False for answer in meant):
            return not_applicable(f"no step matches {wanted}, so nothing is asked of it")
        return duty_outcome(trail, match, meant, duty, which)

    return check


def steps_bounds(settings: JsonObject) -> tuple[int, int | None]:
    """(min, max) of `steps`. Raises ConfigurationError for negative or crossed bounds."""
    low, high = settings["min"], settings["max"]
    for name, bound in (("min", low), ("max", high)):
        if bound is not None and bound < 0:
            raise ConfigurationError(f"/{name}", f"{name} is less than 0")
    low = (1 if high is None else 0) if low is None else low
    if high is not None and low > high:
        raise ConfigurationError("/min", f"min {low} is greater than max {high}")
    return low, high


def count_outcome(trail: Trail, match: Matcher, meant: list[bool | None], low: int, high: int | None, wanted: str) -> Outcome:
    """Whether the number of steps meant, called *wanted*, lies in the bounds. Raises NotMeasurable when that hangs on unclear steps."""
    sure = [index for index, answer in enumerate(meant) if answer]
    open_ones = [index for index, answer in enumerate(meant) if answer is None]
    most = len(sure) + len(open_ones)
    bounds = listed([*([f"at least {low}"] if low else []), *([f"at most {high}"] if high is not None else [])]) or "any number"
    named = f": {listed([step_text(trail, index) for index in sure], 5)}" if sure else f" of {counted(len(meant), 'recorded step')}"
    reason = f"{counted(len(sure), 'step')} matching {wanted} ({bounds}){named}"
    if (high is not None and len(sure) > high) or most < low:
        return decided(False, reason, len(sure), step_evidence(sure))
    if len(sure) < low or (high is not None and most > high):
        raise NotMeasurable(match.unknown(trail, open_ones[0]))
    return decided(True, reason, len(sure), step_evidence(sure))


class DutyCandidate(NamedTuple):
    """A step that is or may be meant: its place, whether it is meant, whether it satisfies `must`."""

    place: int
    is_meant: bool | None
    answer: bool | None


def duty_outcome(trail: Trail, match: Matcher, meant: list[bool | None], duty: Matcher, which: Any) -> Outcome:
    """Whether the duty holds of *which* of the steps meant. Raises NotMeasurable when that is not clear."""
    asked = [DutyCandidate(index, is_meant, duty.decide(trail, index)) for index, is_meant in enumerate(meant) if is_meant is not False]
    number = sum(1 for one in asked if one.is_meant)
    phrase = f"{'' if isinstance(which, str) else 'number '}{which} of {counted(number, 'step')} meant"
    if isinstance(which, int) and len(asked) < which:
        return decided(False, f"there is no {phrase}", number, step_evidence(one.place for one in asked))
    met = duty_answer(asked, which)
    if met is None:
        unclear = next((one.place for one in asked if one.answer is None), None)
        raise NotMeasurable(match.unknown(trail, meant.index(None)) if unclear is None else duty.unknown(trail, unclear))
    places = [one.place for one in duty_culprits(asked, which)]
    if met:
        return decided(True, f"must holds of {phrase}", number, step_evidence(one.place for one in asked))
    verb = "satisfies must" if which == "none" else "does not satisfy must"
    reason = f"{listed([step_text(trail, index) for index in places], 5)} {verb}, asked of {phrase}"
    return decided(False, reason, number, step_evidence(places))


def duty_answer(asked: list[DutyCandidate], which: Any) -> bool | None:
    """Whether `must` holds of *which* of the candidates; None when that hangs on what was not recorded."""
    if which == "all":
        answers = [one.answer if one.is_meant or one.answer else None for one in asked]
        return False if False in answers else None if None in answers else True
    if which in ("any", "none"):
        answers = [one.answer and one.is_meant for one in asked]
        found = True if True in answers else None if None in answers else False
        return found if which == "any" or found is None else not found
    if isinstance(which, int):
        if any(one.is_meant is None for one in asked[:which]):
            return None
        return asked[which - 1].answer
    return settled([(one.is_meant, one.answer) for one in (asked if which == "first" else reversed(asked))], None)


def duty_culprits(asked: list[DutyCandidate], which: Any) -> list[DutyCandidate]:
    """The candidates that a failed `must` is about."""
    if which in ("first", "last"):
        return [asked[0 if which == "first" else -1]]
    if isinstance(which, int):
        return [asked[which - 1]]
    return [one for one in asked if one.is_meant and bool(one.answer) is (which == "none")]

# endregion

# region evaluators/suite.py
# =============================================================================
# The suite: all evaluators of an improvement, ready to look at its observations.
#
# `build_suite` checks and compiles every entry, also against every case that brings values or
# entries of its own; `Suite.evaluate` gives the result line of one observation:
#
#     {"case_id", "trial", "status", "outcome", "score", "coverage", "evaluations": [{"id", "type", "severity",
#      "status", "score", "value", "reason", "evidence"}], "duration_ms", "cost_usd", "usage"}
#
# The outcome is the three-valued AND of hard and gate entries: a fail, else an error, else a pass.
# If none of them passed or failed it is an error, and "reason": "nothing_checked" stands behind it.
# =============================================================================

DECIDING = ("hard", "gate")
PROGRAM_TYPES = ("command", "program")  # formats.md 1.3: never from a case's own evaluators
NOTHING_CHECKED = "nothing_checked"
CASES_KEPT = 1000  # whose own evaluators stay prepared; beyond, memory would grow with the number of cases


class Suite:
    """The prepared evaluators. `entry_fingerprints`: id to fingerprint of those in evaluation.json; `fingerprint` covers all of
    them, in any order, the semantics version of every type that they or the cases' own evaluators use, and what the references
    in these lead to (`referring`; what they say themselves is in the dataset fingerprint)."""

    def __init__(self, entries: list[PreparedEntry], evaluation: Evaluation) -> None:
        self.entries = entries
        self.evaluation = evaluation
        self.versions: dict[str, int] = {}
        self.referring: dict[str, list[JsonObject]] = {}
        self.of_cases: dict[str, list[PreparedEntry]] = {}
        for entry in entries:
            self.versions.update(entry.versions)
        self.entry_fingerprints = {entry.id: fingerprint({"entry": entry.document, "versions": entry.versions}) for entry in entries}

    @property
    def fingerprint(self) -> str:
        """'sha256:…' of the entries, the versions of their types, and the cases' entries that take something from elsewhere."""
        referring = {"cases": self.referring} if self.referring else {}
        return fingerprint({"entries": self.entry_fingerprints, "versions": self.versions, **referring})

    @property
    def types_used(self) -> set[str]:
        """Names of the types of all entries, also inside combinators and in the cases' own evaluators."""
        return set(self.versions)

    def names_outside(self, dataset: Dataset) -> set[str]:
        """Ids of the entries that are not only in holdout cases."""
        names = {entry.id for entry in self.entries}
        for case in dataset.cases.values():
            if case.id not in dataset.holdout and case.document.get("evaluators"):
                names.update(entry.id for entry in self.entries_for(case))
        return names

    def entries_for(self, case: Case) -> list[PreparedEntry]:
        """The entries with those that *case* brings itself, which replace the ones of the same id."""
        if not case.document.get("evaluators"):
            return self.entries
        known = self.of_cases.get(case.id)
        if known is None:
            own = [prepare_entry(entry) for entry in case_entries(case, self.evaluation, Breaches())]
            known = merged_entries(self.entries, own)
            if len(self.of_cases) < CASES_KEPT:
                self.of_cases[case.id] = known
        return known

    def evaluate(self, observation: JsonObject, case: Case) -> JsonObject:
        """The result line of *observation*, which is one of *case*."""
        entries = self.entries_for(case)
        if observation["status"] == "completed":
            memo: JsonObject = {}
            outcomes = [entry.evaluate(observation, case.document, memo) for entry in entries]
        else:
            outcomes = [errored(runner_failure(observation))] * len(entries)
        outcome, reason = trial_outcome(entries, outcomes)
        score, coverage = trial_score(entries, outcomes)
        return {
            "case_id": observation["case_id"],
            "trial": observation["trial"],
            "status": observation["status"],
            "outcome": outcome,
            **({"reason": reason} if reason else {}),
            "score": score,
            "coverage": coverage,
            "evaluations": [evaluation_record(entry, found) for entry, found in zip(entries, outcomes, strict=True)],
            "duration_ms": trial_duration_ms(observation),
            "cost_usd": trial_cost_usd(observation),
            "usage": observation.get("usage"),
        }


def evaluation_record(entry: PreparedEntry, outcome: Outcome) -> JsonObject:
    """What a result line says of one entry."""
    return {
        "id": entry.id,
        "type": entry.type.name,
        "severity": entry.severity,
        "status": outcome.status,
        "score": outcome.score,
        "value": outcome.value,
        "reason": outcome.reason,
        "evidence": list(outcome.evidence),
    }


def runner_failure(observation: JsonObject) -> str:
    """One sentence on why a trial has no usable evidence."""
    error = observation.get("error")
    error = error if isinstance(error, dict) else {}
    message = visible(str(error.get("message") or ""))
    return f"the trial ended with status {observation['status']}{f': {message}' if message else ''}"


def trial_outcome(entries: list[PreparedEntry], outcomes: list[Outcome]) -> tuple[str, str]:
    """(pass, fail or error, reason code or '') of a trial: the three-valued AND over hard and gate entries."""
    statuses = {outcome.status for entry, outcome in zip(entries, outcomes, strict=True) if entry.severity in DECIDING}
    if FAIL in statuses:
        return FAIL, ""
    if ERROR in statuses:
        return ERROR, ""
    return (PASS, "") if PASS in statuses else (ERROR, NOTHING_CHECKED)


def trial_score(entries: list[PreparedEntry], outcomes: list[Outcome]) -> tuple[float | None, float | None]:
    """(weighted mean of the scores, measured share of the weight); None when there is no score, no weight.

    Entries of severity info and those that do not apply count in neither.
    """
    measured, weights = [], []
    for entry, outcome in zip(entries, outcomes, strict=True):
        if entry.severity != "info" and outcome.status != NOT_APPLICABLE:
            weights.append((0 if outcome.score is None else 1, entry.weight))
            if outcome.score is not None:
                measured.append((outcome.score, entry.weight))
    return exact_mean(measured), exact_mean(weights)


# --- Building ----------------------------------------------------------------------------


def build_suite(evaluation: Evaluation, dataset: Dataset, breaches: Breaches) -> Suite:
    """The suite of *evaluation* for *dataset*. What is wrong goes to *breaches*, and the caller raises."""
    entries: list[PreparedEntry] = []
    first_place: dict[str, int] = {}
    for index, document in enumerate(evaluation.evaluators):
        pointer = f"/evaluators/{index}"
        entry = note_configuration(document, breaches, evaluation.path, evaluation.line, pointer)
        if entry is None:
            continue
        if entry.id in first_place:
            message = f"duplicate id {quoted(entry.id)} (first at /evaluators/{first_place[entry.id]})"
            breaches.add(evaluation.path, evaluation.line(pointer + "/id"), pointer + "/id", message)
            continue
        first_place[entry.id] = index
        entries.append(entry)
    suite = Suite(entries, evaluation)
    check_cases(suite, dataset, breaches)
    brought = any(case.document.get("evaluators") for case in dataset.cases.values())
    if entries and not brought and not breaches.errors and not any(entry.severity in DECIDING for entry in entries):
        message = "no evaluator decides (severity hard or gate), so no trial can pass"
        breaches.warn(evaluation.path, evaluation.line("/evaluators"), "/evaluators", message, "leave out severity where a failure matters")
    return suite


def note_configuration(document: Any, breaches: Breaches, path: str, line: Any, pointer: str) -> PreparedEntry | None:
    """The prepared entry, or None and a breach at the line that *line* (a number, or a function of the pointer) gives."""
    try:
        return prepare_entry(document)
    except ConfigurationError as error:
        place = pointer + error.pointer
        identity = document.get("id") if isinstance(document, dict) else None
        who = f"evaluator {quoted(identity)}: " if isinstance(identity, str) and identity else ""
        breaches.add(path, line(place) if callable(line) else line, place, who + error.message, error.hint)
        return None


def check_cases(suite: Suite, dataset: Dataset, breaches: Breaches) -> None:
    """Prepares for every case what depends on it, so that no run meets a case whose values or entries cannot be used."""
    varying = [entry for entry in suite.entries if entry.takes_from_case]
    missing: dict[str, list[Case]] = {}
    reasons: dict[str, str] = {}
    for case in dataset.cases.values():
        for entry in varying:
            reason = note_case_value(entry, case, breaches)
            if reason and entry.on_missing is None:
                missing.setdefault(entry.id, []).append(case)
                reasons.setdefault(entry.id, reason)
        if case.document.get("evaluators"):
            check_own_entries(suite, case, breaches)
    for identity, cases in missing.items():
        message = f"evaluator {quoted(identity)}: {reasons[identity]} in {counted(len(cases), 'case')}, which is an error there"
        breaches.warn(cases[0].path, cases[0].line, "", message, "say with on_missing what follows, or with when which cases are meant")


def note_case_value(entry: PreparedEntry, case: Case, breaches: Breaches) -> str:
    """What *entry* asks of *case* and does not find; '' when nothing. A value that cannot be used is a breach of the case."""
    try:
        return entry.missing_in(case.document)
    except ConfigurationError as error:
        place = entry.place_in_case(error.pointer)
        breaches.add(case.path, case.line, place, f"evaluator {quoted(entry.id)} cannot use it: {error.message}", error.hint)
    except PatternTimeout as timeout:
        breaches.add(case.path, case.line, "", f"evaluator {quoted(entry.id)}: {timeout.reason}")
    return ""


def check_own_entries(suite: Suite, case: Case, breaches: Breaches) -> None:
    """Prepares the evaluators that *case* brings itself; what is wrong with them is a breach of the case."""
    seen: set[str] = set()
    for index, document in enumerate(case_entries(case, suite.evaluation, breaches)):
        pointer = f"/evaluators/{index}"
        entry = note_configuration(document, breaches, case.path, case.line, pointer)
        if entry is None:
            continue
        if entry.id in seen:
            breaches.add(case.path, case.line, pointer + "/id", f"duplicate id {quoted(entry.id)}")
        seen.add(entry.id)
        for name in PROGRAM_TYPES:
            if name in entry.versions:
                breaches.add(case.path, case.line, pointer, f"type {name} cannot stand in a case", "write it into evaluation.json")
        suite.versions.update(entry.versions)
        if document != case.document["evaluators"][index]:  # it had a $use or $file, which the dataset fingerprint cannot see through
            suite.referring.setdefault(case.id, []).append(entry.document)
        note_case_value(entry, case, breaches)


def merged_entries(entries: list[PreparedEntry], own: list[PreparedEntry]) -> list[PreparedEntry]:
    """*entries* with each of *own* in the place of the one with its id, or behind them."""
    replaced = {entry.id: entry for entry in own}
    merged = [replaced.pop(entry.id, entry) for entry in entries]
    return [*merged, *replaced.values()]

# endregion

# region evaluators/stage_results.py
# =============================================================================
# Evaluating a stage: its results, their meta file, and when they are stale.
#
# Results hold no time and no path, so evaluating twice gives the same bytes. The meta file
# holds the digests of what the results were made from; results are stale when one of them
# is no longer what it was.
# =============================================================================

RESULTS = ".evaluated.jsonl"
RESULTS_META = ".evaluated.meta.json"
LOCK = ".lock"


class StageState(NamedTuple):
    """Results meta of a stage ({} when there is none) and [(reason code, sentence)] of what makes it unusable."""

    meta: JsonObject
    problems: list[tuple[str, str]]


def repetitions_of(improvement: Improvement, stage: str) -> int | None:
    """Repetitions as the stage's meta file says; None when there is no meta file."""
    if not os.path.exists(improvement.stage_file(stage, ".meta.json")):
        return None
    return checked_repetitions(read_stage_meta(improvement, stage), improvement.shown(stage + ".meta.json"))


def evaluate_stage(
    improvement: Improvement, stage: str, dataset: Dataset, suite: Suite, report: Callable[[int], None] = lambda count: None
) -> JsonObject:
    """Evaluates every observation of *stage* and writes results and meta file; returns the meta document.

    Streams: memory does not grow with the number of observations. *report* is called with the number done.
    Raises InputError for an observation file that cannot be used; the old results stay then.
    """
    with FileLock(improvement.stage_file(stage, LOCK), f"stage '{stage}'"):
        return evaluate_locked_stage(improvement, stage, dataset, suite, report)


def evaluate_locked_stage(
    improvement: Improvement, stage: str, dataset: Dataset, suite: Suite, report: Callable[[int], None]
) -> JsonObject:
    """As `evaluate_stage`, for a caller that holds the stage's lock."""
    path = improvement.stage_file(stage)
    shown = shown_path(path)
    repetitions = repetitions_of(improvement, stage)
    observed, written = LineDigest(), LineDigest()
    counts = {"pass": 0, "fail": 0, "error": 0}
    by_evaluator: dict[str, dict[str, int]] = {}
    seen: dict[tuple[str, int], int] = {}
    highest = 0
    with replacing(improvement.stage_file(stage, RESULTS)) as stream:
        for line in iter_observations(path):
            observed.add(line.raw)
            observation = line.value
            key = (observation["case_id"], observation["trial"])
            earlier = seen.setdefault(key, line.number)
            if earlier != line.number:
                raise InputError(
                    f"{shown}:{line.number}: is the same case and trial as line {earlier}",
                    "remove one of the two lines, or run the stage again with --overwrite",
                    "invalid_evidence",
                )
            highest = max(highest, key[1])
            result = evaluate_observation(observation, dataset, suite)
            counts[result["outcome"]] += 1
            for entry in result["evaluations"]:
                tally = by_evaluator.setdefault(entry["id"], {"pass": 0, "fail": 0, "error": 0, "not_applicable": 0})
                tally[entry["status"]] += 1
            raw = encode_compact(result).encode("utf-8")
            written.add(raw)
            stream.write(raw + b"\n")
            report(len(seen))
    meta: JsonObject = {
        "version": 1,
        "stage": stage,
        "observations_sha256": observed.hexdigest(),
        "results_sha256": written.hexdigest(),
        "dataset_fingerprint": dataset.fingerprint,
        "evaluator_fingerprint": suite.fingerprint,
        "evaluators": suite.entry_fingerprints,
        "counts": counts,
        "by_evaluator": by_evaluator,
        "repetitions": max(repetitions or 0, highest, 1),
        "planned": len(dataset.cases) * max(repetitions or 0, highest, 1),
        "evaluated_at": utc_now(),
        "engine": VERSION,
    }
    write_json(improvement.stage_file(stage, RESULTS_META), meta)
    return meta


def evaluate_observation(observation: JsonObject, dataset: Dataset, suite: Suite) -> JsonObject:
    """The result line of *observation*; an error when its case is gone or had another input when it was made."""
    case = dataset.cases.get(observation["case_id"])
    if case is not None and observation.get("input_fingerprint", case.input_fingerprint) == case.input_fingerprint:
        return suite.evaluate(observation, case)
    kind, message = ("unknown_case", "no case has this id") if case is None else ("input_changed", "made from another input of this case")
    spoilt = {**observation, "status": "error", "error": {"class": "environment", "type": kind, "message": message}}
    return suite.evaluate(spoilt, case or Case(observation["case_id"], {"id": observation["case_id"]}, "", 0, ""))


def has_results(improvement: Improvement, stage: str) -> bool:
    """True when results or their meta file are there."""
    return any(os.path.exists(improvement.stage_file(stage, suffix)) for suffix in (RESULTS, RESULTS_META))


def stage_state(improvement: Improvement, stage: str, dataset: Dataset, suite: Suite) -> StageState:
    """The results meta of *stage* and what makes the results unusable: stale or invalid, each with a sentence."""
    meta = read_json_object(improvement.stage_file(stage, RESULTS_META), f"run: kaizen evaluate {improvement.argument()}")
    try:
        expected = [str(meta[key]) for key in ("observations_sha256", "results_sha256", "dataset_fingerprint", "evaluator_fingerprint")]
        before = dict(meta["evaluators"])
        checked_repetitions(meta, "")
    except (KeyError, TypeError, ValueError, InputError):
        return StageState(
            {}, [("invalid_evidence", f"{improvement.shown(stage + RESULTS_META)}: is not a results meta file; evaluate again")]
        )
    problems = []
    if file_digest(improvement.stage_file(stage, RESULTS)) != expected[1]:
        problems.append(("invalid_evidence", f"{stage}: the results are not the ones that evaluate wrote; evaluate again"))
    if file_digest(improvement.stage_file(stage)) != expected[0]:
        problems.append(("stale_results", f"{stage}: the observations have changed since they were evaluated"))
    if dataset.fingerprint != expected[2]:
        problems.append(("stale_results", f"{stage}: the cases have changed since it was evaluated"))
    if suite.fingerprint != expected[3]:
        names = changed_evaluators(before, suite.entry_fingerprints)
        what = f": {listed(names)}" if names else ""
        problems.append(("stale_results", f"{stage}: the evaluators have changed since it was evaluated{what}"))
    return StageState(meta, problems)


def changed_evaluators(before: JsonObject, after: JsonObject) -> list[str]:
    """Ids of the evaluators that are not the same in both {id: fingerprint}, sorted."""
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))

# endregion

# region policy/comparison.py
# =============================================================================
# Baseline against candidate, case by case: shares, changes, rates.
#
# A trial is valid when its outcome is pass or fail. The case is the unit: its share is the
# passed part of its valid trials. A case is not comparable when on either side fewer than
# half of the planned trials are valid; nothing is assumed about the missing ones.
# =============================================================================

CHANGES = ("improved", "strengthened", "unchanged", "weakened", "regressed", "not_comparable")


class CaseTally:
    """What the trials of one case came to in one stage."""

    __slots__ = ("costs", "durations", "errors", "failed", "hard", "passed", "scores")

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0
        self.errors = 0
        self.hard = 0  # trials in which a hard evaluator failed
        self.scores: list[float] = []
        self.costs: list[float] = []
        self.durations: list[float] = []

    def valid(self) -> int:
        """Trials that passed or failed."""
        return self.passed + self.failed

    def add(self, result: JsonObject) -> None:
        """Counts one result line."""
        outcome = result["outcome"]
        if outcome == "pass":
            self.passed += 1
        elif outcome == "fail":
            self.failed += 1
        elif result["status"] != NOT_RUN:  # which is missing from the planned trials like one without a line
            self.errors += 1
        if any(entry["status"] == "fail" and entry["severity"] == "hard" for entry in result["evaluations"]):
            self.hard += 1
        for values, key in ((self.scores, "score"), (self.costs, "cost_usd"), (self.durations, "duration_ms")):
            if result.get(key) is not None:
                values.append(result[key])


class StageTally(NamedTuple):
    """One stage: its name, planned trials a case, tallies by case id, ids with results that no case has."""

    stage: str
    repetitions: int
    cases: dict[str, CaseTally]
    unknown: list[str]

    def tally(self, case_id: str) -> CaseTally:
        """The tally of *case_id*; an empty one when it has no result."""
        return self.cases.get(case_id) or CaseTally()


def tally_stage(stage: str, path: str, repetitions: int, case_ids: "dict[str, object] | set[str]") -> StageTally:
    """Reads the results file *path* once and counts; results of ids that are not in *case_ids* are left out and named."""
    cases: dict[str, CaseTally] = {}
    unknown: dict[str, None] = {}
    for line in read_json_lines(path):
        case_id = line.value["case_id"]
        if case_id not in case_ids:
            unknown[case_id] = None
            continue
        tally = cases.get(case_id)
        if tally is None:
            tally = cases[case_id] = CaseTally()
        tally.add(line.value)
    return StageTally(stage, repetitions, cases, list(unknown))


def measured_too_little(tally: CaseTally, planned: int) -> bool:
    """True when fewer than half of the *planned* trials are valid."""
    return tally.valid() * 2 < planned


def not_comparable_reason(baseline: CaseTally, candidate: CaseTally, before: StageTally, after: StageTally) -> str | None:
    """Why the case cannot be compared, naming the side and its counts; None when it can."""
    parts = []
    for tally, stage in ((baseline, before), (candidate, after)):
        if measured_too_little(tally, stage.repetitions):
            missing = stage.repetitions - tally.valid() - tally.errors
            detail = [counted(tally.errors, "error")] if tally.errors else []
            detail += [f"{missing} not run"] if missing > 0 else []
            parts.append(f"{stage.stage}: {tally.valid()} of {stage.repetitions} planned trials measured ({', '.join(detail)})")
    return "; ".join(parts) or None


def case_change(baseline: CaseTally, candidate: CaseTally) -> tuple[str, bool]:
    """(change, newly flaky) of a comparable case, by formats.md 1.5.

    regressed: all valid trials passed before and none passes now. improved: at most half passed before and
    more than half pass now. Any other gain or loss is strengthened or weakened.
    """
    before, after = baseline.passed * candidate.valid(), candidate.passed * baseline.valid()  # over one denominator
    if before == after:
        return "unchanged", False
    if after > before:
        gained = baseline.passed * 2 <= baseline.valid() and candidate.passed * 2 > candidate.valid()
        return ("improved" if gained else "strengthened"), False
    passed_before = baseline.passed == baseline.valid()
    if passed_before and candidate.passed == 0:
        return "regressed", False
    return "weakened", passed_before


def is_flaky(tally: CaseTally) -> bool:
    """True when its valid trials hold a pass and a fail."""
    return tally.passed > 0 and tally.failed > 0


def compare_cases(case_ids: list[str], before: StageTally, after: StageTally) -> list[JsonObject]:
    """The `cases` list of comparison.json, in the order of *case_ids*."""
    rows: list[JsonObject] = []
    for case_id in case_ids:
        baseline, candidate = before.tally(case_id), after.tally(case_id)
        reason = not_comparable_reason(baseline, candidate, before, after)
        change, newly_flaky = ("not_comparable", False) if reason else case_change(baseline, candidate)
        row: JsonObject = {"id": case_id, "change": change, "reason": reason, "newly_flaky": newly_flaky}
        row["hard"] = candidate.hard > 0
        row["baseline"] = tally_document(baseline, before.repetitions)
        row["candidate"] = tally_document(candidate, after.repetitions)
        rows.append(row)
    return rows


def tally_document(tally: CaseTally, planned: int) -> JsonObject:
    """One side of a case in comparison.json; `share` is [passed, valid], null when no trial is valid."""
    share = [tally.passed, tally.valid()] if tally.valid() else None
    return {"share": share, "pass": tally.passed, "fail": tally.failed, "error": tally.errors, "planned": planned}


def stage_rates(case_ids: list[str], stage: StageTally) -> JsonObject:
    """The entry of `rates` in comparison.json: counts of planned, exact rate with Wilson interval, means with their n."""
    tallies = [stage.tally(case_id) for case_id in case_ids]
    planned = len(tallies) * stage.repetitions
    passed, failed, errors = (sum(getattr(tally, name) for tally in tallies) for name in ("passed", "failed", "errors"))
    values = [(tally.passed, tally.valid()) for tally in tallies]
    rate, n_eff = case_weighted_rate(values), effective_sample_size(values)
    interval = None if rate is None or n_eff is None else wilson_interval(float(rate) * n_eff, n_eff)
    costs = [cost for tally in tallies for cost in tally.costs]
    durations = [duration for tally in tallies for duration in tally.durations]
    scores = [score for tally in tallies for score in tally.scores]
    return {
        "passed": passed,
        "failed": failed,
        "errors": errors,
        "planned": planned,
        "not_run": max(0, planned - passed - failed - errors),
        "cases": len(tallies),
        "cases_measured": sum(1 for _, valid in values if valid),
        "rate": fraction_document(rate),
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "n_eff": n_eff,
        "mean_score": mean(scores),
        "scored": len(scores),
        "mean_cost_usd": mean(costs),
        "priced": len(costs),
        "median_duration_ms": median(durations),
        "timed": len(durations),
    }


def fraction_document(value: "Fraction | None") -> JsonObject | None:
    """An exact fraction as {"numerator", "denominator", "value"}; None stays None."""
    return None if value is None else {"numerator": value.numerator, "denominator": value.denominator, "value": float(value)}


def paired_delta(rows: list[JsonObject]) -> "Fraction | None":
    """The mean over comparable cases of candidate share minus baseline share, exact; None for no comparable case."""
    pairs = [(row["candidate"]["share"], row["baseline"]["share"]) for row in rows if row["change"] != "not_comparable"]
    after = case_weighted_rate([(share[0], share[1]) for share, _ in pairs])
    before = case_weighted_rate([(share[0], share[1]) for _, share in pairs])
    return None if after is None or before is None else after - before


def missingness_decides(rows: list[JsonObject]) -> bool:
    """True when the sign of the delta hangs on how the excluded trials would have come out (statistics.md 1)."""

    def bound(row: JsonObject, side: str, excluded_pass: bool) -> "tuple[int, int]":
        tally = row[side]
        return (tally["planned"] - tally["fail"] if excluded_pass else tally["pass"]), tally["planned"]

    signs = []
    for candidate_pass in (False, True):
        after = case_weighted_rate([bound(row, "candidate", candidate_pass) for row in rows])
        before = case_weighted_rate([bound(row, "baseline", not candidate_pass) for row in rows])
        delta = 0 if after is None or before is None else after - before
        signs.append((delta > 0) - (delta < 0))
    return signs[0] != signs[1]


def split_rates(rows: list[JsonObject], splits: dict[str, str]) -> JsonObject:
    """{split: {"cases", "baseline", "candidate"}} with exact rates; cases without a split count as 'none'."""
    groups: dict[str, list[JsonObject]] = {}
    for row in rows:
        groups.setdefault(splits.get(row["id"], "none"), []).append(row)
    found: JsonObject = {}
    for split in sorted(groups):
        found[split] = {"cases": len(groups[split])}
        for side in ("baseline", "candidate"):
            values = [(row[side]["pass"], row[side]["pass"] + row[side]["fail"]) for row in groups[split]]
            found[split][side] = fraction_document(case_weighted_rate(values))
        found[split]["changes"] = change_counts(groups[split])
    return found


def change_counts(rows: list[JsonObject]) -> dict[str, int]:
    """{"cases", each change, "newly_flaky"} as counts over *rows*."""
    counts = {"cases": len(rows), **dict.fromkeys(CHANGES, 0), "newly_flaky": 0}
    for row in rows:
        counts[row["change"]] += 1
        counts["newly_flaky"] += row["newly_flaky"]
    return counts

# endregion

# region policy/acceptance.py
# =============================================================================
# The thresholds of `acceptance`, compared on exact fractions.
#
# Each threshold is three-valued: met, missed, or unknown while evidence is missing. A
# threshold that even the most favourable outcome of the missing trials could not meet is
# missed, whatever is missing.
# =============================================================================


class Missed(NamedTuple):
    """A threshold that is not met: reason code, sentence, and whether no missing evidence could change that."""

    code: str
    text: str
    is_certain: bool


class Unmeasured(NamedTuple):
    """A threshold that cannot be looked at: reason code and sentence."""

    code: str
    text: str


def exact_percent(value: "Fraction", limit: "Fraction") -> tuple[str, str]:
    """Both as percentages with as many digits as it takes to tell them apart (2 to 12)."""
    for digits in range(2, 13):
        shown = decimal_text(value * 100, digits), decimal_text(limit * 100, digits)
        if shown[0] != shown[1] or value == limit:
            break
    return f"{shown[0]} %", f"{shown[1]} %"


def decimal_text(value: "Fraction", digits: int) -> str:
    """*value* rounded half up to *digits* decimals, without trailing zeros: '99.95', '0.8', '-3'."""
    scale = 10**digits
    scaled = (abs(value) * scale * 2 + 1) // 2
    whole, part = divmod(int(scaled), scale)
    text = f"{whole}.{part:0{digits}d}".rstrip("0").rstrip(".")
    return f"-{text}" if value < 0 and scaled else text


def number_text(value: "Fraction", limit: "Fraction") -> tuple[str, str]:
    """Both as decimals with as many digits as it takes to tell them apart (2 to 12)."""
    for digits in range(2, 13):
        shown = decimal_text(value, digits), decimal_text(limit, digits)
        if shown[0] != shown[1] or value == limit:
            break
    return shown


class CaseBounds(NamedTuple):
    """What the share of one case can be once its missing trials have come out: least and most passed of *planned*, on both sides."""

    baseline_least: "Fraction"
    baseline_most: "Fraction"
    candidate_least: "Fraction"
    candidate_most: "Fraction"

    def can_improve(self) -> bool:
        """True when some outcome of the missing trials makes the case `improved`."""
        return self.baseline_least * 2 <= 1 < self.candidate_most * 2

    def must_weaken(self) -> bool:
        """True when every outcome of the missing trials makes the case `weakened`, none `regressed`."""
        return self.candidate_most < self.baseline_least and not (self.baseline_most == 1 and self.candidate_least == 0)


def case_bounds(case_ids: list[str], baseline: StageTally, candidate: StageTally) -> list[CaseBounds]:
    """The bounds of each case, in the order of *case_ids*."""
    from fractions import Fraction

    found = []
    for case_id in case_ids:
        limits = []
        for stage in (baseline, candidate):
            tally = stage.tally(case_id)
            planned = max(stage.repetitions, tally.valid())
            limits += [Fraction(tally.passed, planned), Fraction(planned - tally.failed, planned)]
        found.append(CaseBounds(*limits))
    return found


def missed_thresholds(
    acceptance: JsonObject, counts: dict[str, int], delta: "Fraction | None", stages: tuple[StageTally, StageTally], case_ids: list[str]
) -> list[Missed]:
    """Thresholds of *acceptance* on counts, rate and delta that are not met by *stages* (before, after), in a fixed order."""
    candidate = stages[1]
    bounds = case_bounds(case_ids, *stages)
    missed = []
    limit = acceptance["maximum_weakened"]
    if limit is not None and counts["weakened"] > limit:
        text = f"{counted(counts['weakened'], 'case')} weakened (at most {limit})"
        missed.append(Missed("above_maximum_weakened", text, sum(case.must_weaken() for case in bounds) > limit))
    minimum = acceptance["minimum_improvements"]
    if minimum is not None and counts["improved"] < minimum:
        text = f"{counted(counts['improved'], 'improvement')} (at least {minimum})"
        missed.append(Missed("below_minimum_improvements", text, sum(case.can_improve() for case in bounds) < minimum))
    limit = acceptance["minimum_pass_rate"]
    tallies = [candidate.tally(case_id) for case_id in case_ids]
    rate = case_weighted_rate([(tally.passed, tally.valid()) for tally in tallies])
    best = sum(case.candidate_most for case in bounds) / len(bounds) if bounds else None
    if limit is not None and rate is not None and rate < exact_fraction(limit):
        shown = exact_percent(rate, exact_fraction(limit))
        text = f"pass rate {shown[0]} (at least {shown[1]})"
        missed.append(Missed("below_minimum_pass_rate", text, best is not None and best < exact_fraction(limit)))
    limit = acceptance["minimum_delta"]
    if limit is not None and delta is not None and delta < exact_fraction(limit):
        shown = exact_percent(delta, exact_fraction(limit))
        best = sum(case.candidate_most - case.baseline_least for case in bounds) / len(bounds)
        text = f"change of the pass rate {shown[0]} (at least {shown[1]})"
        missed.append(Missed("below_minimum_delta", text, best < exact_fraction(limit)))
    return missed


def missed_pass_k(acceptance: JsonObject, candidate: StageTally, case_ids: list[str]) -> Missed | Unmeasured | None:
    """What `minimum_pass_k` says of the candidate; None when it is met or not asked for."""
    wanted = acceptance["minimum_pass_k"]
    if wanted is None:
        return None
    tallies = [candidate.tally(case_id) for case_id in case_ids]
    value, left_out = pass_hat_k([(tally.passed, tally.valid()) for tally in tallies], wanted["k"])
    if value is None or left_out:
        text = f"pass^{wanted['k']} needs {wanted['k']} valid trials a case; {counted(left_out, 'case')} have fewer"
        return Unmeasured("unmeasured_minimum_pass_k", text)
    limit = exact_fraction(wanted["rate"])
    shown = exact_percent(value, limit)
    if value >= limit:
        return None
    planned = candidate.repetitions
    best, _ = pass_hat_k([(planned - tally.failed, planned) for tally in tallies], wanted["k"])
    return Missed("below_minimum_pass_k", f"pass^{wanted['k']} {shown[0]} (at least {shown[1]})", best is not None and best < limit)


def missed_ratios(acceptance: JsonObject, baseline: StageTally, candidate: StageTally, comparable: list[str]) -> list[Missed | Unmeasured]:
    """What the cost and latency ratios (candidate / baseline over *comparable* cases) say; empty when met or not asked for."""
    found: list[Missed | Unmeasured] = []
    for key, attribute, code, what in (
        ("maximum_cost_ratio", "costs", "unpriced", "cost"),
        ("maximum_latency_ratio", "durations", "unmeasured_latency", "duration"),
    ):
        if acceptance[key] is None:
            continue
        limit = exact_fraction(acceptance[key])
        middles = [ratio_side([stage.tally(case_id) for case_id in comparable], attribute) for stage in (baseline, candidate)]
        if middles[0] is None or middles[1] is None or middles[0] == 0:
            side = "baseline" if not middles[0] else "candidate"
            why = "is 0, so there is no ratio" if middles[0] == 0 else "is not known for every trial"
            found.append(Unmeasured(code, f"a {what} ratio of at most {acceptance[key]} is asked for, but the {what} of the {side} {why}"))
        elif middles[1] / middles[0] > limit:
            shown = number_text(middles[1] / middles[0], limit)
            found.append(Missed(f"above_{key}", f"{what} ratio {shown[0]} (at most {shown[1]})", False))
    return found


def ratio_side(tallies: list[object], attribute: str) -> "Fraction | None":
    """Mean cost or median duration of one side, exact; None when a valid trial has none."""
    from fractions import Fraction

    values: list[float] = []
    for tally in tallies:
        known = getattr(tally, attribute)
        if len(known) < tally.valid():  # type: ignore[attr-defined]
            return None
        values += known
    if not values:
        return None
    exact = sorted(exact_fraction(value) for value in values)
    if attribute == "costs":
        return sum(exact, Fraction(0)) / len(exact)
    middle = len(exact) // 2
    return exact[middle] if len(exact) % 2 else (exact[middle - 1] + exact[middle]) / 2

# endregion

# region policy/reliability.py
# =============================================================================
# How sure the change is: intervals, tests, noise, and what it would take to be surer.
#
# One entry compares a candidate with the baseline; candidates of one call form a family and
# share their level by Holm's method. The case is the unit, or the cluster where cases name
# one. Statistics may lower a recommendation, they never lift one. Nothing here names a case of
# the holdout.
# =============================================================================

ROLES_COMPARED = ("baseline", "candidate")
BETTER, WORSE, UNDECIDED = "better", "worse", "insufficient_evidence"
SHOWN_GROUPS = 50  # the largest of each kind; the rest is counted
SUITE_ONLY_CASES = 50  # up to which the permutation test of the suite alone is worth a line
LARGEST_K = 10
EXACT_TEST_ALLOWANCE = 1.1  # the sign-flip test needs a tenth more than the normal formula says

Quad = tuple[int, int, int, int]  # baseline passed, valid, candidate passed, valid


class Compared(NamedTuple):
    """What an entry rests on: rows of comparison.json, cases by id, cluster by case id, ids not to be named, tallies by role."""

    rows: list[JsonObject]
    cases: dict[str, Case]
    clusters: dict[str, str]
    holdout: frozenset[str]
    stages: dict[str, StageTally]


def default_reliability() -> JsonObject:
    """The settings that hold where evaluation.json has no `reliability` block."""
    return {key: default for key, (_, default) in RELIABILITY.items()}


def clusters_of(cases: dict[str, Case]) -> dict[str, str]:
    """Cluster by case id, for the cases that name one."""
    return {case_id: case.document["cluster"] for case_id, case in cases.items() if case.document.get("cluster")}


def share_quad(row: JsonObject) -> Quad:
    """(baseline passed, valid, candidate passed, valid) of *row*."""
    before, after = row["baseline"], row["candidate"]
    return before["pass"], before["pass"] + before["fail"], after["pass"], after["pass"] + after["fail"]


def comparable_rows(rows: list[JsonObject]) -> list[JsonObject]:
    """The rows that can be compared."""
    return [row for row in rows if row["change"] != "not_comparable"]


def difference_counts(rows: list[JsonObject], clusters: dict[str, str]) -> Counts:
    """{candidate minus baseline: how many units} over comparable *rows*; the mean of its cases is the value of a cluster."""
    from fractions import Fraction

    quads: dict[tuple[str | None, Quad], int] = {}
    for row in rows:
        key = (clusters.get(row["id"]) if clusters else None, share_quad(row))
        quads[key] = quads.get(key, 0) + 1
    counts: Counts = {}
    grouped: dict[str, list[Fraction]] = {}
    for (cluster, (before, valid_before, after, valid_after)), times in quads.items():
        value = Fraction(after, valid_after) - Fraction(before, valid_before)
        if cluster is None:
            counts[value] = counts.get(value, 0) + times
        else:
            grouped.setdefault(cluster, []).extend([value] * times)
    for values in grouped.values():
        value = sum(values, Fraction(0)) / len(values)
        counts[value] = counts.get(value, 0) + 1
    return counts


# --- One candidate ---------------------------------------------------------------------


def reliability_entry(compared: Compared, settings: JsonObject) -> JsonObject:
    """What the verdict on one candidate rests on; `judge_family` adds the verdict, which hangs on its family."""
    rows, confidence = compared.rows, float(settings["confidence"])
    able = comparable_rows(rows)
    counts = difference_counts(able, compared.clusters)
    found, test = paired_mean(counts, confidence), sign_flip(counts)
    case_delta = paired_mean(difference_counts(able, {}), confidence).delta if compared.clusters else found.delta
    return {
        "stage": compared.stages["candidate"].stage,
        "unit": "cluster" if compared.clusters else "case",
        "n": found.n,
        "cases_compared": len(able),
        "cases": len(rows),
        "repetitions": {role: compared.stages[role].repetitions for role in ROLES_COMPARED},
        "rates": {role: side_document(compared, role, confidence) for role in ROLES_COMPARED},
        "delta": fraction_document(found.delta),
        "case_weighted_delta": fraction_document(case_delta),
        **interval_document(found, confidence),
        "probability": {"better": found.p_gt, "equal": found.p_eq, "worse": found.p_lt},
        "sign_flip": {"better": test.greater, "worse": test.less, "two_sided": test.two_sided, "reason": test.reason},
        "informative": found.informative,
        "missingness_decides": missingness_decides(rows),
        "strip": [[float(value), times] for value, times in sorted(counts.items())],
        **planning_document(found, [share_quad(row) for row in able], compared, confidence),
    }


def detailed_entry(compared: Compared, settings: JsonObject) -> JsonObject:
    """`reliability_entry` with what is shown beside it: flaky cases, repetition metrics, durations, other tests, groups."""
    rows, confidence = compared.rows, float(settings["confidence"])
    quads = [share_quad(row) for row in comparable_rows(rows)]
    moved = [after * valid_before - before * valid_after for before, valid_before, after, valid_after in quads]
    ups, downs = sum(move > 0 for move in moved), sum(move < 0 for move in moved)
    is_single = bool(quads) and all(quad[1] == quad[3] == 1 for quad in quads)
    return {
        **reliability_entry(compared, settings),
        "moved": {"up": ups, "down": downs, "equal": moved.count(0)},
        "mcnemar": mcnemar(downs, ups)._asdict() if is_single else None,
        "suite_only": dict(zip((BETTER, WORSE), suite_permutation(quads), strict=True)) if 0 < len(quads) <= SUITE_ONLY_CASES else None,
        "flaky": {role: flaky_document(compared, role) for role in ROLES_COMPARED},
        "newly_flaky": shown_ids([row["id"] for row in rows if row["newly_flaky"]], compared.holdout),
        "pass_k": {role: pass_k_documents(compared, role, confidence) for role in ROLES_COMPARED},
        "durations": {role: duration_document(compared.stages[role], confidence) for role in ROLES_COMPARED},
        "groups": group_documents(compared, confidence),
    }


def interval_document(found: PairedMean, confidence: float) -> JsonObject:
    """The interval of the change to report, and beside it the ones that it is not."""
    beside = {name: limits_document(getattr(found, name)) for name in ("expanded", "plus_two", "percentile", "student")}
    return {
        "interval": limits_document(found.interval),
        "confidence": confidence,
        "method": found.method,
        "is_exact": found.is_exact,
        "small_sample": 0 < found.n < 30,
        "reason": found.reason,
        "se": found.se,
        "other_intervals": beside,
    }


def limits_document(interval: Interval | None) -> list[float] | None:
    """An interval as [low, high]; None stays None."""
    return None if interval is None else [interval.low, interval.high]


def side_document(compared: Compared, role: str, confidence: float) -> JsonObject:
    """The rate of one side with its interval, the trials it rests on, and the bounds for those that gave no verdict.

    With clusters the mean over clusters, on as many units; the bounds are over cases.
    """
    sides = [(row["id"], row[role]["pass"], row[role]["pass"] + row[role]["fail"], row[role]["planned"]) for row in compared.rows]
    found = pass_rate([(passed, valid, max(planned, valid)) for _, passed, valid, planned in sides], confidence)
    rate, n_eff, interval, n = found.rate, found.n_eff, found.interval, found.cases
    if compared.clusters and rate is not None:
        values = cluster_values([(compared.clusters.get(name), passed, valid) for name, passed, valid, _ in sides if valid])
        rate, n = sum(values) / len(values), len(values)  # type: ignore[assignment]
        n_eff = effective_size([float(value) for value in values], found.trials)
        interval = wilson_interval(float(rate) * n_eff, n_eff, confidence)
    return {
        "rate": fraction_document(rate),
        "interval": limits_document(interval),
        "pooled": fraction_document(found.pooled),
        "n": n,
        "n_eff": n_eff,
        "passed": sum(passed for _, passed, _, _ in sides),
        "valid": found.trials,
        "planned": sum(planned for *_, planned in sides),
        "errors": sum(row[role]["error"] for row in compared.rows),
        "excluded": found.excluded,
        "cases_without_verdict": found.cases_without_valid,
        "bound_if_excluded_fail": fraction_document(found.bound_if_excluded_fail),
        "bound_if_excluded_pass": fraction_document(found.bound_if_excluded_pass),
        "trial_noise_se": found.trial_noise_se,
        "reason": found.reason,
    }


def cluster_values(sides: list[tuple[str | None, int, int]]) -> "list[Fraction]":
    """The mean share of each cluster of *sides* [(cluster, passed, valid)]; a case without a cluster is one of its own."""
    from fractions import Fraction

    values, grouped = [], {}  # type: ignore[var-annotated]
    for cluster, passed, valid in sides:
        (values if cluster is None else grouped.setdefault(cluster, [])).append(Fraction(passed, valid))
    return values + [sum(members, Fraction(0)) / len(members) for members in grouped.values()]


def flaky_document(compared: Compared, role: str) -> JsonObject:
    """How many cases are flaky, stable, unknown on one side, and which are flaky."""
    kinds = [(row["id"], stability(row[role]["pass"], row[role]["pass"] + row[role]["fail"])) for row in compared.rows]
    counts = Counter(kind for _, kind in kinds)
    names = ("flaky", "stable_pass", "stable_fail", "unknown")
    ids = [case_id for case_id, kind in kinds if kind == "flaky"]
    return {**{name: counts[name] for name in names}, **shown_ids(ids, compared.holdout)}


def shown_ids(ids: list[str], holdout: frozenset[str]) -> JsonObject:
    """{"count", "cases", "holdout_cases"}: ids that may be named, and how many may not."""
    shown = [case_id for case_id in ids if case_id not in holdout]
    return {"count": len(ids), "cases": shown, "holdout_cases": len(ids) - len(shown)}


def pass_k_documents(compared: Compared, role: str, confidence: float) -> list[JsonObject]:
    """pass@k and pass^k with the interval of pass^k, for k from 2 to the repetitions (at most 10)."""
    values = [(row[role]["pass"], row[role]["pass"] + row[role]["fail"]) for row in compared.rows]
    found: list[JsonObject] = []
    for k in range(2, min(compared.stages[role].repetitions, LARGEST_K) + 1):
        at, left_out = pass_at_k(values, k)
        hat = pass_hat_k(values, k)[0]
        entry: JsonObject = {"k": k, "pass_at_k": fraction_document(at), "pass_hat_k": fraction_document(hat)}
        interval = pass_hat_interval(values, k, confidence)
        entry |= {"interval": limits_document(interval), "cases": len(values) - left_out, "cases_left_out": left_out}
        found.append({**entry, "reason": None if hat is not None else "fewer_trials_than_k"})
    return found


def pass_hat_interval(values: list[tuple[int, int]], k: int, confidence: float) -> Interval | None:
    """Expanded percentile limits of pass^k over the cases with at least *k* valid trials; None below two such cases."""
    from fractions import Fraction

    counts: Counts = {}
    for (passed, valid), times in Counter(values).items():
        if valid >= k:
            value = Fraction(math.comb(passed, k), math.comb(valid, k))
            counts[value] = counts.get(value, 0) + times
    n = sum(counts.values())
    return ResampledMean(counts).limits(expanded_tail(n, confidence)) if n > 1 else None


def duration_document(stage: StageTally, confidence: float) -> JsonObject:
    """Median and 95th percentile of the measured durations, with limits that hold whatever their distribution."""
    values = sorted(duration for tally in stage.cases.values() for duration in tally.durations)
    found: JsonObject = {"n": len(values), "rule": "linear"}
    for name, percent in (("p50", 50), ("p95", 95)):
        low, high = quantile_ranks(len(values), percent / 100, confidence)
        limits = [None if rank is None else values[rank] for rank in (low, high)]
        reason = "no_values" if not values else "no_upper_bound" if high is None else None
        found[name] = {"value_ms": percentile(values, percent).value, "low_ms": limits[0], "high_ms": limits[1], "reason": reason}
    return found


# --- What it would take ----------------------------------------------------------------


def planning_document(found: PairedMean, quads: list[Quad], compared: Compared, confidence: float) -> JsonObject:
    """Trial noise, the smallest effect that this suite shows, and the cases or trials that would settle the change.

    All None below two comparable cases. Where few units differ their variance is smoothed (`smoothed_variance`).
    """
    spread = measured_spread(quads)
    if spread is None or found.delta is None or found.se is None:
        return {"noise": None, "smallest_effect": None, "settle": None}
    n, alpha = found.n, 1 - confidence
    variance = smoothed_variance(found.se**2 * n, n, float(found.delta) * n, found.informative)
    trials = [mean([1 / quad[side] for quad in quads]) or 1.0 for side in (1, 3)]
    within = spread.sigma2_a * trials[0] + spread.sigma2_b * trials[1]
    share = min(1.0, within / variance) if spread.is_split and not compared.clusters else None
    smallest = quantiles_sum(alpha, POWER) * math.sqrt(variance / n)
    fixed = max(0.0, variance - within) if share is not None else None
    return {
        "noise": {"baseline": spread.sigma2_a, "candidate": spread.sigma2_b, "share_of_variance": share} if spread.is_split else None,
        "smallest_effect": {"value": smallest, "power": POWER, "alpha": alpha, "n": n},
        "settle": settle_document(n, variance, fixed, spread.sigma2_a + spread.sigma2_b, abs(float(found.delta)) or smallest / 2, alpha),
    }


def settle_document(n: int, variance: float, fixed: float | None, noise: float, effect: float, alpha: float) -> JsonObject:
    """Units at these trials, and trials on these *n* units, that would show *effect*.

    *variance* is that of a unit's difference, of which *fixed* stays whatever the trials (None: not known) and *noise*
    is what one trial on each side adds. `trials` is None where no number of them would do, or none is known to.
    """
    whole = EXACT_TEST_ALLOWANCE * quantiles_sum(alpha, POWER) ** 2 / (effect * effect)
    room = n / whole - (variance if fixed is None else fixed)
    trials = math.ceil(noise / room - 1e-9) if fixed is not None and room > 0 and noise > 0 else None
    return {"effect": effect, "units": math.ceil(whole * variance - 1e-9), "trials": trials, "is_split": fixed is not None}


# --- Parts of the suite ----------------------------------------------------------------


def group_documents(compared: Compared, confidence: float) -> JsonObject:
    """Change by split and by tag, exploratory: p-values are Holm-adjusted over all groups. Tags do not count holdout cases."""
    groups: dict[tuple[str, str], list[JsonObject]] = {}
    for row in compared.rows:
        document = compared.cases[row["id"]].document
        if document.get("split"):
            groups.setdefault(("split", document["split"]), []).append(row)
        for tag in dict.fromkeys(document.get("tags") or [] if row["id"] not in compared.holdout else []):
            groups.setdefault(("tag", tag), []).append(row)
    found: list[JsonObject] = []
    left_out = 0
    for kind in ("split", "tag"):
        # A group that holds every case would repeat the table above it.
        named = [key for key in groups if key[0] == kind and len(groups[key]) < len(compared.rows)]
        named.sort(key=lambda key: (-len(groups[key]), key))
        left_out += max(0, len(named) - SHOWN_GROUPS)
        found += [group_document(key, groups[key], compared.clusters, confidence) for key in named[:SHOWN_GROUPS]]
    for entry, p in zip(found, holm([entry["p"] for entry in found]), strict=True):
        entry["p_adjusted"] = p
    return {"exploratory": True, "family": sum(entry["p"] is not None for entry in found), "left_out": left_out, "groups": found}


def group_document(key: tuple[str, str], rows: list[JsonObject], clusters: dict[str, str], confidence: float) -> JsonObject:
    """Rates, change with interval, and two-sided sign-flip p-value of one group; None where nothing can be compared."""
    able = comparable_rows(rows)
    counts = difference_counts(able, clusters)
    found, test = paired_mean(counts, confidence), sign_flip(counts)
    rates = {}
    for role in ROLES_COMPARED:
        rates[role] = fraction_document(case_weighted_rate([(row[role]["pass"], row[role]["pass"] + row[role]["fail"]) for row in rows]))
    return {
        "kind": key[0],
        "name": key[1],
        "cases": len(rows),
        "n": found.n,
        "rates": rates,
        "delta": fraction_document(found.delta),
        "interval": limits_document(found.interval),
        "reason": found.reason,
        "p": test.two_sided if able else None,
    }


# --- The verdict -----------------------------------------------------------------------


def judge_family(entries: list[JsonObject], settings: JsonObject) -> None:
    """Adds to each of *entries* its Holm-adjusted p-values and its verdict: better, worse, or insufficient_evidence with reasons."""
    alpha = float(1 - exact_fraction(settings["minimum_probability"]))
    adjusted = {side: holm([entry["sign_flip"][side] if entry["n"] else None for entry in entries]) for side in (BETTER, WORSE)}
    for number, entry in enumerate(entries):
        entry["sign_flip"]["adjusted"] = {side: adjusted[side][number] for side in (BETTER, WORSE)}
        entry["informative_needed"] = informative_cases_needed(alpha, len(entries))
        entry["verdict"], entry["reasons"] = verdict_of(entry, settings, alpha)


def verdict_of(entry: JsonObject, settings: JsonObject, alpha: float) -> tuple[str, list[str]]:
    """(verdict, codes of what stands in its way) of a measured entry."""
    if not entry["n"]:
        return UNDECIDED, ["no_comparable_cases"]
    reasons = [
        code
        for code, stands in (
            ("too_few_cases", entry["n"] < settings["minimum_cases"]),
            ("missingness_decides", entry["missingness_decides"]),
            ("too_few_informative_cases", entry["informative"] < entry["informative_needed"]),
        )
        if stands
    ]
    for side in (BETTER, WORSE):
        p = entry["sign_flip"]["adjusted"][side]
        if entry["probability"][side] >= settings["minimum_probability"] and p is not None and p <= alpha:
            return (side if not reasons else UNDECIDED), reasons
    return UNDECIDED, [*reasons, *([] if "too_few_informative_cases" in reasons else ["not_separated"])]


def gate_codes(entry: JsonObject, settings: JsonObject) -> list[str]:
    """What the `reliability` block says of a judged entry: [] when it is met, ['worse'], or the codes of what is missing."""
    if entry["verdict"] == WORSE:
        return [WORSE]
    few = min(entry["repetitions"].values()) < settings["minimum_trials"]
    return [*entry["reasons"], *(["too_few_trials"] if few else [])]

# endregion

# region policy/reliability_words.py
# =============================================================================
# What reliability says in words, the same on the terminal, in reasons and on the page.
# =============================================================================

SHOWN_FLAKY = 10
SMALLEST_PRINTED = 1e-12  # below, sums of floats say nothing


def probability_text(p: float | None) -> str:
    """'0.0312', '< 1e-12', '> 0.9999', 'not measured'.

    >>> [probability_text(p) for p in (0.03125, 2e-7, 0.0, 1.0, 0.99999, None)]
    ['0.0312', '2.0e-07', '< 1e-12', '1', '> 0.9999', 'not measured']
    """
    if p is None:
        return "not measured"
    if p < SMALLEST_PRINTED:
        return "< 1e-12"
    if p < 0.0001:
        return f"{p:.1e}"
    return "1" if p >= 1 else "> 0.9999" if p > 0.9999 else f"{p:.4f}"


def chance_text(entry: JsonObject, side: str) -> str:
    """The bootstrap probability of *side*; with the warning it needs where all differences are equal."""
    chance = entry["probability"][side]
    if chance is not None and len(entry["strip"]) == 1:
        return f"{chance:.0f} (which says nothing: all differences are equal)"
    return "> 0.9999" if chance is not None and chance > 0.9999 else probability_text(chance)


def points_text(value: float, *, is_signed: bool = True) -> str:
    """A difference of rates in percentage points: '+4.2 points', '0.0 points'."""
    shown = f"{100 * value:+.1f}" if is_signed else f"{100 * value:.1f}"
    return f"{shown.replace('-0.0', '0.0').replace('+0.0', '0.0')} points"


def limits_text(limits: list[float] | None, *, is_rate: bool = False) -> str:
    """'52.9 % to 97.8 %' or '-3.1 to +11.4 points'; 'no interval' for None."""
    if limits is None:
        return "no interval"
    if is_rate:
        return f"{100 * limits[0]:.1f} % to {100 * limits[1]:.1f} %"
    return f"{points_text(limits[0]).removesuffix(' points')} to {points_text(limits[1])}"


def fraction_percent(fraction: JsonObject | None) -> str:
    """An exact rate as a percentage; 'not measured' for None."""
    return percent(fraction["numerator"], fraction["denominator"]) if fraction else "not measured"


def side_text_of(entry: JsonObject, role: str) -> str:
    """'75 of 120 planned trials passed, 2 excluded; 62.5 % (53.1 % to 71.0 %) over 24 cases, worth 60.2 independent trials'."""
    side = entry["rates"][role]
    counts = f"{side['passed']:,} of {counted(side['planned'], 'planned trial')} passed"
    counts += f", {side['excluded']:,} without a verdict" if side["excluded"] else ""
    if side["rate"] is None:
        return f"{counts}; pass rate not measured: {REASONS[side['reason']]}"
    worth = f", worth {side['n_eff']:.1f} independent trials" if side["valid"] > side["n"] else ""
    limits = limits_text(side["interval"], is_rate=True)
    return f"{counts}; {fraction_percent(side['rate'])} ({limits}) over {counted(side['n'], entry['unit'])}{worth}"


def change_text_of(entry: JsonObject) -> str:
    """'+4.2 points (95 % interval -3.1 to +11.4 points) over 24 cases, 7 of which differ'."""
    if entry["delta"] is None:
        return f"not measured: {REASONS[entry['reason']]}"
    interval = f"no interval: {REASONS[entry['reason']]}" if entry["reason"] else ""
    interval = interval or f"{100 * entry['confidence']:g} % interval {limits_text(entry['interval'])}"
    over = f"over {counted(entry['n'], entry['unit'])}, {entry['informative']:,} of which differ"
    text = f"{points_text(entry['delta']['value'])} ({interval}) {over}"
    if entry["unit"] == "cluster":
        text += f"; weighted by case {points_text(entry['case_weighted_delta']['value'])}"
    return text


def excluded_text_of(entry: JsonObject, role: str) -> str:
    """'2 of 120 (1.67 %): 61.7 % if they had failed, 63.3 % if they had passed'; '' when every trial has a verdict."""
    side = entry["rates"][role]
    if not side["excluded"]:
        return ""
    bounds = fraction_percent(side["bound_if_excluded_fail"]), fraction_percent(side["bound_if_excluded_pass"])
    share = percent(side["excluded"], side["planned"])
    return f"{side['excluded']:,} of {side['planned']:,} ({share}): {bounds[0]} if they had failed, {bounds[1]} if they had passed"


def smallest_effect_text(entry: JsonObject) -> str:
    """What this suite could have seen, in plain words; '' when it is not known."""
    found = entry["smallest_effect"]
    if found is None:
        return ""
    suite = f"A suite of {counted(found['n'], entry['unit'])} at {trials_text(entry)}"
    effect = points_text(found["value"], is_signed=False)
    return f"{suite} shows a change of {effect} four times out of five; smaller ones mostly stay unseen."


def trials_text(entry: JsonObject) -> str:
    """'5 trials', or '1 and 5 trials' where the sides differ."""
    before, after = (entry["repetitions"][role] for role in ROLES_COMPARED)
    return counted(before, "trial") if before == after else f"{before} and {after} trials"


def about(number: int) -> int:
    """*number* rounded up to two digits, because no plan is more exact than that.

    >>> about(14_721), about(57), about(101)
    (15000, 57, 110)
    """
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step


def settle_text(entry: JsonObject) -> str:
    """What would settle a change that is not settled, in plain words; '' when it is, or nothing is known."""
    settle = entry["settle"]
    if settle is None or entry["verdict"] != "insufficient_evidence":
        return ""
    effect = points_text(settle["effect"], is_signed=False)
    parts = [f"about {counted(about(settle['units']), entry['unit'])} at {trials_text(entry)}"] if settle["units"] > entry["n"] else []
    if settle["trials"] is not None and settle["trials"] > max(entry["repetitions"].values()):
        parts.append(f"about {counted(about(settle['trials']), 'trial')} of each of these")
    if not parts:
        return ""
    text = f"To tell a change of {effect} from noise would take {listed(parts, last='or')}"
    if len(parts) == 1 and settle["is_split"]:
        text += "; more trials of these alone would not do" if settle["trials"] is None else ""
    elif not settle["is_split"] and entry["unit"] == "case":
        text += "; how far more trials would go, one trial a case cannot tell: run three to five"
    return text + "."


def obstacle_text(code: str, entry: JsonObject, settings: JsonObject) -> str:
    """The sentence of a code of `verdict_of` or `gate_codes`."""
    unit, n = entry["unit"], entry["n"]
    if code == "worse":
        return f"the candidate is worse: {change_text_of(entry)}"
    if code == "no_comparable_cases":
        return REASONS[code]
    if code == "too_few_cases":
        return f"{counted(n, unit)} compared (at least {settings['minimum_cases']})"
    if code == "too_few_trials":
        return f"{trials_text(entry)} a case (at least {settings['minimum_trials']})"
    if code == "too_few_informative_cases":
        needed = entry["informative_needed"]
        return f"{counted(entry['informative'], unit)} came out differently; below {needed} no test can tell a change from luck"
    if code == "missingness_decides":
        return "the sign of the change hangs on how the trials without a verdict would have come out"
    p = entry["sign_flip"]["adjusted"]["better"]
    chances = f"P(better) {chance_text(entry, 'better')} (at least {settings['minimum_probability']:g})"
    test = f"sign-flip p {probability_text(p)} (at most {1 - settings['minimum_probability']:.3g})"
    return f"a change of {points_text(entry['delta']['value'])} is not told from luck: {chances}, {test}"


def verdict_text(entry: JsonObject, settings: JsonObject) -> str:
    """'candidate is better', 'candidate is worse', or 'not decided' with the first obstacle."""
    if entry["verdict"] != "insufficient_evidence":
        return f"{entry['stage']} is {entry['verdict']}: {change_text_of(entry)}"
    obstacles = [obstacle_text(code, entry, settings) for code in entry["reasons"]]
    return f"{entry['stage']} is not decided: {'; '.join(obstacles)}"


def ids_text(found: JsonObject) -> str:
    """'3 (a, b and 1 holdout case)' of {"count", "cases", "holdout_cases"}; '0' for none."""
    names = [visible(case_id) for case_id in found["cases"]]
    if len(names) > SHOWN_FLAKY:
        names = [*names[:SHOWN_FLAKY], f"{len(names) - SHOWN_FLAKY} more"]
    names += [counted(found["holdout_cases"], "holdout case")] if found["holdout_cases"] else []
    return f"{found['count']:,}" + (f" ({listed(names, SHOWN_FLAKY + 2)})" if names else "")


def noise_text(entry: JsonObject) -> str:
    """What the trials of one case scatter, in plain words."""
    errors = [entry["rates"][role]["trial_noise_se"] for role in ROLES_COMPARED]
    if entry["noise"] is None or None in errors:
        return "not measured: it takes two trials of each case"
    share = entry["noise"]["share_of_variance"]
    text = f"repeating the same cases moves the rates by {100 * errors[0]:.1f} and {100 * errors[1]:.1f} points (standard errors)"
    return text + (f"; {100 * share:.0f} % of the scatter of the changes is trial noise" if share is not None else "")

# endregion

# region policy/plan.py
# =============================================================================
# Before a run: cases × trials, the smallest effect each shows, its cost and time.
# =============================================================================

TYPICAL_RATE = 0.7
TYPICAL_NOISE = 0.5  # share of the variance of one trial that is scatter within a case; the rest lies between cases
TYPICAL_CHANGE = 0.05  # variance over cases of the true change


def assumed_spread(rate: float, noise: float, change: float) -> Spread:
    """The spread of a suite with pass rate *rate*, of whose variance the share *noise* lies within cases."""
    within = rate * (1 - rate) * noise
    return Spread(change, within, within, True)


def planning_spread(quads: Sequence[Quad], sides: list[StageTally], assumed: JsonObject) -> tuple[Spread, list[str]]:
    """(spread, sentences on where it comes from): measured on pairs, else on one side, else assumed.

    *quads* are the comparable cases of two stages, *sides* the stages there are; *assumed* has `rate`, `noise` and `change`.
    """
    measured = measured_spread(quads)
    if measured is not None and measured.is_split:
        return measured, [f"scatter measured on {counted(len(quads), 'case')} of both stages"]
    values = [(tally.passed, tally.valid()) for side in sides for tally in side.cases.values()]
    rate, within = case_weighted_rate(values), trial_variance(values)
    if measured is not None and rate is not None:
        noise = min(float(rate * (1 - rate)) * assumed["noise"], measured.omega2 / 2)
        sources = [f"scatter of the change measured on {counted(len(quads), 'case')}, one trial each"]
        sources.append(f"share of noise in a trial assumed: {assumed['noise']:g}")
        return Spread(measured.omega2 - 2 * noise, noise, noise, True), sources
    if within is not None:
        names = " and ".join(side.stage for side in sides)
        spread = Spread(assumed["change"], within, within, True)
        return spread, [f"scatter of trials measured on {names}", f"variance of the change over cases assumed: {assumed['change']:g}"]
    sources = [f"pass rate {float(rate):.1%} measured" if rate is not None else f"pass rate assumed: {assumed['rate']:g}"]
    sources.append(f"share of noise in a trial assumed: {assumed['noise']:g}")
    sources.append(f"variance of the change over cases assumed: {assumed['change']:g}")
    return assumed_spread(assumed["rate"] if rate is None else float(rate), assumed["noise"], assumed["change"]), sources


def measured_means(sides: list[StageTally]) -> tuple[float | None, float | None]:
    """(mean cost in USD, mean seconds) of a trial; None where no trial has one, or, for the cost, where some have none."""
    tallies = [tally for side in sides for tally in side.cases.values()]
    costs = [cost for tally in tallies for cost in tally.costs]
    durations = [duration / 1000 for tally in tallies for duration in tally.durations]
    is_priced = len(costs) == sum(tally.passed + tally.failed + tally.errors for tally in tallies)
    return (mean(costs) if is_priced else None), mean(durations)


def plan_document(
    spread: Spread,
    sources: list[str],
    cases: Sequence[int],
    trials: Sequence[int],
    means: tuple[float | None, float | None],
    jobs: int,
    effect: float | None,
) -> JsonObject:
    """The table of *cases* × *trials*; cost and time are of both stages. *effect*: also the cases it needs at each number of trials.

    Effects are those of the formula; `needed` has the tenth on top that the sign-flip test takes.
    """
    cost, seconds = means
    cells: list[JsonObject] = []
    for n in cases:
        for k in trials:
            cell: JsonObject = {"cases": n, "trials": k, "smallest_effect": smallest_effect(spread, k, k, n)}
            cell["cost_usd"] = None if cost is None else cost * n * k * 2
            cell["seconds"] = None if seconds is None else seconds * n * k * 2 / jobs
            cells.append(cell)
    needed: list[JsonObject] = []
    for k in trials if effect else ():
        needed.append({"trials": k, "cases": math.ceil(EXACT_TEST_ALLOWANCE * cases_needed(spread, k, k, effect or 1) - 1e-9)})
    return {
        "power": POWER,
        "alpha": ALPHA,
        "spread": spread._asdict(),
        "sources": sources,
        "jobs": jobs,
        "trial_cost_usd": cost,
        "trial_seconds": seconds,
        "cells": cells,
        "effect": effect,
        "needed": needed,
    }

# endregion

# region policy/noise.py
# =============================================================================
# The unchanged agent against itself: how often a verdict flips, in which case, and why.
#
# A flip is a pair of passes that disagree about a case. Rules give the same verdict on the same
# evidence every time, so what flips under a rule is the agent; where a judge decides, the
# judge and the agent cannot be told apart without asking it again on the same evidence.
# =============================================================================

NOT_REPEATABLE = frozenset(["judge", "program", "command"])  # types that may say something else the next time
AGENT, UNKNOWN_OWNER = "agent", "agent or evaluator"


class PassResults:
    """Verdicts of a stage by pass: trials by case, and passed and failed by case and evaluator."""

    def __init__(self) -> None:
        self.outcomes: dict[str, dict[int, str]] = {}
        self.evaluators: dict[str, dict[str, list[int]]] = {}
        self.types: dict[str, str] = {}

    def add(self, result: JsonObject) -> None:
        """Counts one result line."""
        case_id = result["case_id"]
        self.outcomes.setdefault(case_id, {})[result["trial"]] = result["outcome"]
        for entry in result["evaluations"]:
            if entry["status"] in ("pass", "fail"):
                counts = self.evaluators.setdefault(entry["id"], {}).setdefault(case_id, [0, 0])
                counts[entry["status"] == "fail"] += 1
                self.types.setdefault(entry["id"], entry["type"])


class Flips(NamedTuple):
    """Share of pairs of passes that disagree, with interval, over so many cases with two verdicts."""

    rate: "Fraction | None"
    interval: list[float] | None
    cases: int


def flip_share(passed: int, failed: int) -> "Fraction":
    """The share of the pairs of passes of one case that disagree; at least two passes.

    >>> str(flip_share(2, 1))
    '2/3'
    """
    from fractions import Fraction

    n = passed + failed
    return Fraction(2 * passed * failed, n * (n - 1))


def flips_over(counts: list[tuple[int, int]], confidence: float = 0.95) -> Flips:
    """The flip rate of cases [(passed, failed)]; those with fewer than two verdicts are left out."""
    shares: Counts = {}
    for passed, failed in counts:
        if passed + failed > 1:
            share = flip_share(passed, failed)
            shares[share] = shares.get(share, 0) + 1
    n = sum(shares.values())
    if not n:
        return Flips(None, None, 0)
    limits = list(ResampledMean(shares).limits(expanded_tail(n, confidence))) if n > 1 else None
    return Flips(sum(share * times for share, times in shares.items()) / n, limits, n)  # type: ignore[arg-type]


def noise_document(results: PassResults, case_ids: list[str], passes: int, holdout: frozenset[str]) -> JsonObject:
    """Flip rate, noise by case, by pass and by evaluator with its owner; ids in *holdout* are counted and not named.

    `expected_changes` is how many cases one run against another would call regressed, and as many improved,
    although nothing changed.
    """
    tallies = {}
    for case_id in case_ids:
        outcomes = list(results.outcomes.get(case_id, {}).values())
        tallies[case_id] = (outcomes.count("pass"), outcomes.count("fail"))
    flips = flips_over(list(tallies.values()))
    unstable = [(case_id, tally) for case_id, tally in tallies.items() if all(tally)]
    shown = [
        {"id": case_id, "passed": passed, "failed": failed, "flip_rate": float(flip_share(passed, failed))}
        for case_id, (passed, failed) in unstable
        if case_id not in holdout
    ]
    known = flips.cases * flips.rate / 2 if flips.rate is not None else None
    return {
        "passes": passes,
        "cases": len(case_ids),
        "cases_measured": flips.cases,
        "flip_rate": None if flips.rate is None else float(flips.rate),
        "interval": flips.interval,
        "flip_rate_reason": "fewer_trials_than_k" if flips.rate is None else None,
        "expected_changes": None if known is None else float(known),
        "stability": stability_counts(list(tallies.values())),
        "by_pass": [pass_counts(results, case_ids, number) for number in range(1, passes + 1)],
        "unstable": sorted(shown, key=lambda entry: -entry["flip_rate"]),
        "holdout_cases": len(unstable) - len(shown),
        "by_evaluator": [evaluator_noise(results, name) for name in results.evaluators],
    }


def stability_counts(tallies: list[tuple[int, int]]) -> JsonObject:
    """How many cases are flaky, stable, unknown."""
    kinds = [stability(passed, passed + failed) for passed, failed in tallies]
    return {kind: kinds.count(kind) for kind in ("flaky", "stable_pass", "stable_fail", "unknown")}


def pass_counts(results: PassResults, case_ids: list[str], number: int) -> JsonObject:
    """Counts of one pass over the suite."""
    outcomes = [results.outcomes.get(case_id, {}).get(number) for case_id in case_ids]
    return {"pass": number, "passed": outcomes.count("pass"), "failed": outcomes.count("fail"), "no_verdict": outcomes.count("error")}


def evaluator_noise(results: PassResults, name: str) -> JsonObject:
    """Flip rate of one evaluator and who can have caused it."""
    flips = flips_over([(passed, failed) for passed, failed in results.evaluators[name].values()])
    kind = results.types[name]
    owner = UNKNOWN_OWNER if kind in NOT_REPEATABLE else AGENT
    return {"id": name, "type": kind, "flip_rate": None if flips.rate is None else float(flips.rate), "cases": flips.cases, "owner": owner}

# endregion

# region policy/replay.py
# =============================================================================
# Kept evidence under another policy: what flips, without running the agent.
# =============================================================================


def flips_document(before: JsonObject, after: JsonObject, holdout: frozenset[str]) -> JsonObject:
    """What differs between two documents of comparison.json about the same evidence: recommendation, reasons, cases.

    Ids in *holdout* are counted and not named.
    """
    changes = {row["id"]: row["change"] for row in before["cases"]}
    moved = [
        {"id": row["id"], "before": changes.get(row["id"]), "after": row["change"]}
        for row in after["cases"]
        if changes.get(row["id"]) != row["change"]
    ]
    shown = [entry for entry in moved if entry["id"] not in holdout]
    return {
        "flips": before["recommendation"] != after["recommendation"],
        "before": side_of_flip(before),
        "after": side_of_flip(after),
        "cases": shown,
        "holdout_cases": len(moved) - len(shown),
    }


def side_of_flip(comparison: JsonObject) -> JsonObject:
    """Recommendation, reasons and rates of one side of a replay, without ids of cases."""
    reasons = [{key: reason[key] for key in ("code", "rule", "text")} for reason in comparison["reasons"]]
    return {key: comparison[key] for key in ("recommendation", "counts", "rates", "delta", "evidence")} | {"reasons": reasons}

# endregion

# region policy/recommendation.py
# =============================================================================
# The recommendation and its reasons, by a list of precedence.
#
# The document is comparison.json (formats.md 1.5). The first rule that fires decides, all
# that fire are listed. Nothing here reads a clock or writes a file.
# =============================================================================

EXCLUDED_LIMIT = (1, 20)  # formats.md 1.5 rule 5: more than 5 % of the planned trials
ELIGIBLE, REJECTED, MANUAL_REVIEW = "eligible", "rejected", "manual_review"


def reason(rule: int, code: str, text: str, cases: list[str] | None = None) -> JsonObject:
    """One entry of `reasons`."""
    return {"code": code, "rule": rule, "text": text, "cases": cases or []}


def comparison_document(
    evaluation: Evaluation,
    cases: dict[str, Case],
    stages: dict[str, tuple[StageTally, JsonObject]],
    fingerprints: tuple[str, str],
    problems: list[tuple[str, str]],
) -> JsonObject:
    """The document of comparison.json.

    *stages* holds for 'baseline' and 'candidate' the tally and the results meta; *fingerprints* are those of
    the dataset and the evaluators now; *problems* are (reason code, sentence) that make the evidence
    unusable (rule 1): then every case is not comparable.
    """
    (before, before_meta), (after, after_meta) = stages["baseline"], stages["candidate"]
    case_ids = list(cases)
    rows = compare_cases(case_ids, before, after)
    if problems:
        for row in rows:
            row.update(change="not_comparable", reason=problems[0][0], newly_flaky=False)
    delta = paired_delta(rows)
    reasons = [reason(1, code, text) for code, text in problems]
    reasons += [] if problems else fired_rules(evaluation, cases, rows, (before, after), delta)
    reasons.sort(key=lambda entry: int(entry["rule"]))
    flaky = [row["id"] for row in rows if is_flaky(after.tally(row["id"]))]
    return {
        "version": 1,
        "baseline": stage_document(before, before_meta),
        "candidate": stage_document(after, after_meta),
        "evidence": evidence_digest(before_meta, after_meta, fingerprints, evaluation),
        "dataset_fingerprint": fingerprints[0],
        "evaluator_fingerprint": fingerprints[1],
        "recommendation": recommendation_of(reasons),
        "reasons": reasons,
        "notes": notes_of(rows, before, after, delta),
        "counts": change_counts(rows),
        "rates": {"baseline": stage_rates(case_ids, before), "candidate": stage_rates(case_ids, after)},
        "delta": fraction_document(delta),
        "delta_reason": None if delta is not None else "no_comparable_cases",
        "flaky": flaky,
        "newly_flaky": [row["id"] for row in rows if row["newly_flaky"]],
        "splits": split_rates(rows, {case_id: case.document["split"] for case_id, case in cases.items() if "split" in case.document}),
        "cases": rows,
    }


def single_stage_document(case_ids: list[str], stage: StageTally, meta: JsonObject) -> JsonObject:
    """The document that a page shows when there is no baseline: rates and cases of one stage, nothing about a change."""
    rows: list[JsonObject] = []
    for case_id in case_ids:
        tally = stage.tally(case_id)
        row = {"id": case_id, "change": None, "reason": None, "newly_flaky": False, "hard": tally.hard > 0}
        rows.append({**row, "candidate": tally_document(tally, stage.repetitions)})
    return {
        "version": 1,
        "candidate": stage_document(stage, meta),
        "recommendation": None,
        "reasons": [],
        "notes": ["There is no baseline, so nothing can be said about a change."],
        "counts": {"cases": len(rows)},
        "rates": {"candidate": stage_rates(case_ids, stage)},
        "delta": None,
        "delta_reason": "no_baseline",
        "flaky": [case_id for case_id in case_ids if is_flaky(stage.tally(case_id))],
        "newly_flaky": [],
        "splits": {},
        "cases": rows,
    }


def stage_document(stage: StageTally, meta: JsonObject) -> JsonObject:
    """The entry of a stage in comparison.json: its name, digests and repetitions."""
    return {
        "stage": stage.stage,
        "observations_sha256": meta.get("observations_sha256"),
        "results_sha256": meta.get("results_sha256"),
        "repetitions": stage.repetitions,
    }


def evidence_digest(before: JsonObject, after: JsonObject, fingerprints: tuple[str, str], evaluation: Evaluation) -> str:
    """What a decision is about: the digest of both stages' observations and results, both fingerprints, and the policy."""
    digests = [[meta.get("observations_sha256"), meta.get("results_sha256")] for meta in (before, after)]
    return fingerprint([digests, list(fingerprints), evaluation.acceptance, evaluation.reliability])


def recommendation_of(reasons: list[JsonObject]) -> str:
    """The recommendation of the first rule that fired; eligible when none did. *reasons* are in the order of rules."""
    if not reasons:
        return ELIGIBLE
    return REJECTED if reasons[0]["rule"] in (2, 3, 4) or reasons[0]["code"] == "reliability_worse" else MANUAL_REVIEW


def fired_rules(
    evaluation: Evaluation, cases: dict[str, Case], rows: list[JsonObject], stages: tuple[StageTally, StageTally], delta: "Fraction | None"
) -> list[JsonObject]:
    """The reasons of rules 2 to 6 that fire."""
    (before, after), acceptance = stages, evaluation.acceptance
    case_ids = list(cases)
    missing = missing_evidence(acceptance, rows, before, after)
    comparable = [row["id"] for row in rows if row["change"] != "not_comparable"]
    ratios = missed_ratios(acceptance, before, after, comparable)
    pass_k = missed_pass_k(acceptance, after, case_ids)
    measured = [*missed_thresholds(acceptance, change_counts(rows), delta, stages, case_ids), *ratios, *([pass_k] if pass_k else [])]
    found, unmeasured = veto_rules(acceptance, cases, rows, after), []
    for item in measured:
        if not isinstance(item, Missed):
            unmeasured.append(reason(5, item.code, item.text))
        elif item.is_certain or not missing:  # that another quantity was not measured excuses nothing
            found.append(reason(4, item.code, item.text))
    found += [*missing, *unmeasured]
    return found + unmet_reliability(evaluation, cases, rows, before, after)


def unmet_reliability(
    evaluation: Evaluation, cases: dict[str, Case], rows: list[JsonObject], before: StageTally, after: StageTally
) -> list[JsonObject]:
    """The reasons of rule 6: what keeps the `reliability` block from being met; [] when it is, or there is none."""
    settings = evaluation.reliability
    if settings is None:
        return []
    compared = Compared(rows, cases, clusters_of(cases), frozenset(), {"baseline": before, "candidate": after})
    entry = reliability_entry(compared, settings)
    judge_family([entry], settings)
    return [reason(6, f"reliability_{code}", obstacle_text(code, entry, settings)) for code in gate_codes(entry, settings)]


def veto_rules(acceptance: JsonObject, cases: dict[str, Case], rows: list[JsonObject], after: StageTally) -> list[JsonObject]:
    """The reasons of rules 2 and 3: hard and critical failures, regressions."""
    found = []
    hard = [row["id"] for row in rows if row["hard"]]
    if hard:
        found.append(reason(2, "hard_failure", f"a hard evaluator fails in {counted(len(hard), 'case')} of the candidate", hard))
    critical = [row["id"] for row in rows if cases[row["id"]].document.get("critical") and after.tally(row["id"]).failed]
    if critical:
        found.append(reason(2, "critical_failure", f"{counted(len(critical), 'critical case')} failed in the candidate", critical))
    regressed = [row["id"] for row in rows if row["change"] == "regressed"]
    limit = acceptance["maximum_regressions"]
    if limit is not None and len(regressed) > limit:
        found.append(reason(3, "regressions", f"{counted(len(regressed), 'regression')} (at most {limit})", regressed))
    return found


def missing_evidence(acceptance: JsonObject, rows: list[JsonObject], before: StageTally, after: StageTally) -> list[JsonObject]:
    """The reasons of rule 5 that hang on missing trials."""
    found = []
    unmeasured = [row["id"] for row in rows if row["change"] == "not_comparable"]
    limit = acceptance["maximum_not_comparable"]
    if limit is not None and len(unmeasured) > limit:
        why = next(row["reason"] for row in rows if row["change"] == "not_comparable")
        text = f"{counted(len(unmeasured), 'case')} not comparable (at most {limit}); the first: {why}"
        found.append(reason(5, "not_comparable", text, unmeasured))
    for stage in (before, after):
        planned = len(rows) * stage.repetitions
        excluded = planned - sum(stage.tally(row["id"]).valid() for row in rows)
        if excluded * EXCLUDED_LIMIT[1] > planned * EXCLUDED_LIMIT[0]:
            text = f"{stage.stage}: {excluded:,} of {planned:,} planned trials have no usable evidence (at most 5 %)"
            found.append(reason(5, "excluded_trials", text))
    if missingness_decides(rows):
        text = "whether the candidate is better or worse hangs on how the trials without evidence would have come out"
        found.append(reason(5, "missingness_decides", text))
    return found


def notes_of(rows: list[JsonObject], before: StageTally, after: StageTally, delta: "Fraction | None") -> list[str]:
    """Whole sentences about what is not known."""
    notes = []
    regressed = sum(1 for row in rows if row["change"] == "regressed")
    if before.repetitions == 1 and after.repetitions == 1:
        some = f"some of the {counted(regressed, 'regression')} may be noise" if regressed > 1 else "a change may be noise"
        notes.append(f"Each case ran once on each side, so {some}; run both stages with --repetitions 5 to tell.")
    for stage in (before, after):
        errors = sum(stage.tally(row["id"]).errors for row in rows)
        missing = len(rows) * stage.repetitions - errors - sum(stage.tally(row["id"]).valid() for row in rows)
        if errors or missing > 0:
            lost = f"{counted(errors, 'trial')} ended in an error and {missing:,} did not run"
            notes.append(f"{stage.stage}: {lost}; they count neither as pass nor as fail.")
        if stage.unknown:
            notes.append(f"{stage.stage}: results of {counted(len(stage.unknown), 'case')} that the dataset no longer holds were left out.")
    if delta is None:
        notes.append("There is no change of the pass rate to report: no case could be compared.")
    return notes

# endregion

# region exporters/junit.py
# =============================================================================
# JUnit XML for CI systems: one test case a case.
# =============================================================================

# XML 1.0 cannot hold these characters at all, escaped or not.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
FAILING = ("regressed", "weakened")


def xml_text(text: str) -> str:
    """*text* escaped for an XML attribute or element; characters that XML cannot hold become U+FFFD."""
    text = NOT_XML.sub("\ufffd", text)
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

# endregion

# region web/page.py
# =============================================================================
# The frame all pages share: one look, a strict content policy, and text that stays data.
#
# A page is one file that opens from disk and asks nothing of anybody. Its policy allows the
# inline style and script by their SHA-256 and nothing else, so markup that slipped through
# an escape could still run nothing. Colours follow the system or the switch in the corner,
# which is plain CSS and needs no storage.
# =============================================================================

PAGE_HTML = r"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>$title</title>
<style>$css</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="bar">
<p class="brand"><span class="brand-mark" aria-hidden="true"></span>Kaizen <span class="brand-page">$kind</span></p>
<fieldset class="theme">
<legend class="unseen">Colours</legend>
<label><input type="radio" name="theme" id="theme-auto" checked><span>Auto</span></label>
<label><input type="radio" name="theme" id="theme-light"><span>Light</span></label>
<label><input type="radio" name="theme" id="theme-dark"><span>Dark</span></label>
</fieldset>
</header>
<main id="main">
$content
</main>
<script>$js</script>
$data
</body>
</html>
"""
PAGE_CSS = r"""/* Kaizen pages: tokens, type, and the pieces that all pages share. */
:root {
  color-scheme: light dark;
  --paper: light-dark(#faf9f6, #171614);
  --card: light-dark(#ffffff, #1f1e1b);
  --sunk: light-dark(#f3f1ec, #282622);
  --ink: light-dark(#23211d, #ece9e2);
  --soft: light-dark(#615c53, #aca69a);
  --line: light-dark(#e6e2d9, #37342e);
  --edge: light-dark(#8a8376, #807a6e);
  --accent: light-dark(#1f5a85, #8fc2e8);
  --good: light-dark(#1f6b41, #80cfa0);
  --good-soft: light-dark(#e4f2e8, #1d3325);
  --bad: light-dark(#a4291f, #f29d91);
  --bad-soft: light-dark(#fae7e3, #41221d);
  --warn: light-dark(#7d5000, #e5b768);
  --warn-soft: light-dark(#faf0db, #3a2d12);
  --odd: light-dark(#5a468f, #bfaef2);
  --odd-soft: light-dark(#eeeaf7, #2d2646);
  --calm: light-dark(#57534b, #b3ada1);
  --calm-soft: light-dark(#efece6, #2e2b27);
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace;
  --radius: 10px;
  --gutter: clamp(1rem, 3vw, 2.5rem);
}
:root:has(#theme-light:checked) { color-scheme: light; }
:root:has(#theme-dark:checked) { color-scheme: dark; }

*, ::before, ::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: 3.75rem; }
body {
  margin: 0;
  background: var(--paper);
  color: var(--ink);
  font: 1rem/1.55 -apple-system, "Segoe UI", Roboto, Inter, "Noto Sans", "Liberation Sans", system-ui, sans-serif;
  font-variant-numeric: tabular-nums;
  overflow-wrap: break-word;
}
main { max-width: 84rem; margin: 0 auto; padding: 0 var(--gutter) 4rem; }
h1, h2, h3, h4, p, ul, ol, dl, dd, figure, pre, blockquote, fieldset { margin: 0; }
h1 { font-size: clamp(1.6rem, 1.15rem + 2.1vw, 2.5rem); line-height: 1.18; font-weight: 620; letter-spacing: -0.018em; text-wrap: balance; }
h2 { font-size: 1.05rem; line-height: 1.3; font-weight: 640; letter-spacing: -0.005em; }
h3 { font-size: 1rem; font-weight: 640; }
h4 { font-size: 0.875rem; font-weight: 640; }
ul { padding-left: 1.15rem; }
a { color: var(--accent); text-underline-offset: 0.18em; text-decoration-thickness: 1px; }
code, kbd, pre, .mono { font-family: var(--mono); font-size: 0.875em; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
small, .small { font-size: 0.8125rem; line-height: 1.45; color: var(--soft); font-weight: 400; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; font-weight: inherit; }
blockquote { padding-left: 0.9rem; border-left: 3px solid var(--line); color: var(--soft); }
kbd { padding: 0.05em 0.4em; border: 1px solid var(--line); border-bottom-width: 2px; border-radius: 5px; background: var(--sunk); color: var(--soft); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
[hidden] { display: none !important; }

.unseen { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: -99rem; top: 0.5rem; padding: 0.5rem 1rem; background: var(--card); z-index: 9; }
.skip:focus { left: 0.5rem; }
.missing { color: var(--soft); font-style: italic; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: var(--radius); padding: 1.25rem 1.4rem; }
.tag { display: inline-block; padding: 0.05rem 0.5rem; border-radius: 99px; background: var(--sunk); color: var(--soft); font-size: 0.75rem; font-weight: 500; vertical-align: 0.1em; }

button, select, input[type="search"] { font: inherit; font-size: 0.875rem; color: var(--ink); background: var(--card); border: 1px solid var(--edge); border-radius: 7px; padding: 0.35rem 0.65rem; min-height: 2.15rem; }
button { cursor: pointer; }
button:hover, select:hover { background: var(--sunk); }
button.quiet { border-color: transparent; background: none; color: var(--accent); padding: 0.1rem 0.35rem; min-height: 0; }
button.quiet:hover { text-decoration: underline; }

.bar { display: flex; align-items: center; justify-content: space-between; gap: 1rem; max-width: 84rem; margin: 0 auto; padding: 0.9rem var(--gutter); }
.brand { font-weight: 640; letter-spacing: -0.01em; }
.brand-page { font-weight: 400; color: var(--soft); }
.brand-mark { display: inline-block; width: 0.75em; height: 0.75em; margin-right: 0.5em; border-radius: 50%; border: 0.16em solid var(--accent); border-right-color: transparent; transform: rotate(-45deg); }
.theme { display: flex; border: 1px solid var(--line); border-radius: 99px; padding: 2px; background: var(--card); }
.theme label { position: relative; cursor: pointer; }
.theme input { position: absolute; inset: 0; margin: 0; opacity: 0; cursor: pointer; }
.theme span { display: block; padding: 0.15rem 0.7rem; border-radius: 99px; font-size: 0.8125rem; color: var(--soft); }
.theme input:checked + span { background: var(--sunk); color: var(--ink); }
.theme input:focus-visible + span { outline: 2px solid var(--accent); outline-offset: 1px; }

/* Outcomes by shape first: a disc, a cross, a triangle, a bar, a ring. */
.dot { display: inline-block; width: 0.75rem; height: 0.75rem; flex: none; vertical-align: -0.06em; forced-color-adjust: none; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.dot.p { background: var(--good); border-radius: 50%; }
.dot.f { background: var(--bad); clip-path: polygon(18% 0, 50% 32%, 82% 0, 100% 18%, 68% 50%, 100% 82%, 82% 100%, 50% 68%, 18% 100%, 0 82%, 32% 50%, 0 18%); }
.dot.e { background: var(--odd); clip-path: polygon(50% 2%, 100% 96%, 0 96%); }
.dot.n { background: linear-gradient(var(--edge) 0 0) center / 100% 3px no-repeat; }
.dot.u { border: 2px solid var(--edge); border-radius: 50%; }

@media print {
  :root, :root:has(input) { color-scheme: light; }
  html { font-size: 11px; }
  body { background: none; }
  main { padding: 0; max-width: none; }
  .theme, .skip, button.quiet, button[data-copy] { display: none !important; }
  .bar { padding: 0 0 0.5rem; }
  h2, h3, h4 { break-after: avoid; }
  a { color: inherit; text-decoration: none; }
  @page { margin: 14mm 12mm; }
}
"""
PAGE_JS = r""""use strict";
// What all pages of Kaizen share. Text is data: it reaches the page as text nodes, never as markup.

// C0 and C1 controls but tab and line feed, and the marks that reorder or hide text; the joiner inside an emoji stays.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|(?<!\p{Extended_Pictographic}\ufe0f?)\u200d/gu;

// An element with attributes (on…: a listener; true: present; null or false: absent) and children.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((child) => child || child === 0));
  return element;
}

// Appends text to parent with each hidden character shown as an escape.
function addText(parent, text) {
  let last = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > last) parent.append(text.slice(last, match.index));
    const code = match[0].charCodeAt(0).toString(16);
    const shown = code.length < 3 ? `\\x${code.padStart(2, "0")}` : `\\u${code.padStart(4, "0")}`;
    parent.append(make("span", { class: "ctl", title: "a character that is not visible" }, shown));
    last = match.index + 1;
  }
  if (last < text.length) parent.append(text.slice(last));
  return parent;
}

const textElement = (tag, attributes, text) => addText(make(tag, attributes), text);
const span = (kind, ...children) => make("span", { class: kind }, children);
const par = (kind, text) => textElement("p", { class: kind }, text);
const button = (attributes, ...children) => make("button", { type: "button", ...attributes }, children);

// Tables: the roles say again what the elements say, for browsers that forget it where narrow screens stack the cells.
const line = (attributes, ...cells) => make("tr", { role: "row", ...attributes }, cells);
const cell = (attributes, ...children) => make("td", { role: "cell", ...attributes }, children);
const rowHead = (...children) => make("th", { scope: "row", role: "rowheader" }, children);
const column = (text) => textElement("th", { scope: "col", role: "columnheader" }, text);
const table = (kind, caption, columns, rows) => make("table", { class: kind, role: "table" },
  textElement("caption", { class: "unseen" }, caption),
  columns.length ? make("thead", { role: "rowgroup" }, line(null, columns.map(column))) : null,
  make("tbody", { role: "rowgroup" }, rows));
const readJson = (id) => JSON.parse(document.getElementById(id).textContent);

function copyFrom(control) {
  const source = document.getElementById(control.dataset.copy);
  const done = (word) => { control.textContent = word; setTimeout(() => { control.textContent = "Copy"; }, 2000); };
  const select = () => { getSelection().selectAllChildren(source); done("Selected"); };
  if (navigator.clipboard) navigator.clipboard.writeText(source.textContent).then(() => done("Copied"), select);
  else select();
}

for (const each of document.querySelectorAll("button[data-copy]")) {
  each.hidden = false;
  each.addEventListener("click", () => copyFrom(each));
}
"""

PLACEHOLDER = re.compile(r"\$([a-z_]+)\b")
# < and > end a script or a comment, & begins a character reference, U+2028 and U+2029 end a line of old JavaScript.
SCRIPT_ESCAPES = [(character, f"\\u{ord(character):04x}") for character in "<>&\u2028\u2029"]
HTML_ESCAPES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;", ord("'"): "&#39;"}


def html_text(text: str) -> str:
    """*text* for an HTML element or attribute: escaped, on one line, hidden characters made visible, nothing cut."""
    return visible(text, None).translate(HTML_ESCAPES)


def text_to_script_json(value: Any) -> str:
    """*value* as JSON that may stand in a script element of type application/json; it holds no <, > or &."""
    text = encode_compact(value)
    for character, escape in SCRIPT_ESCAPES:  # ten times faster than str.translate where there are few
        text = text.replace(character, escape)
    return text


def script_data(identity: str, value: Any) -> str:
    """The inert script element `#identity` with *value* as JSON, on a line of its own."""
    return f'<script type="application/json" id="{html_text(identity)}">{text_to_script_json(value)}</script>\n'


def content_hash(text: str) -> str:
    """The source expression of a content policy that allows exactly the inline block *text*."""
    import base64

    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def fill_template(template: str, values: dict[str, str]) -> str:
    """*template* with each $name replaced by the markup in *values*; what is put in is not looked at again.

    Raises KeyError for a name without a value.
    """
    return PLACEHOLDER.sub(lambda match: values[match.group(1)], template)


def page_frame(title: str, kind: str, css: str, js: str) -> tuple[str, str, str]:
    """The markup before the content, between content and further data, and after both.

    *title* is for the tab, *kind* stands beside the brand; *css* and *js* follow the shared ones in one style
    and one script block. The script stands between, so that it runs while large data still arrives.
    """
    style, script = PAGE_CSS + css, PAGE_JS + js
    policy = f"default-src 'none'; style-src {content_hash(style)}; script-src {content_hash(script)}; base-uri 'none'; form-action 'none'"
    values = {"policy": policy, "title": html_text(title), "kind": html_text(kind), "css": style, "js": script}
    before, rest = PAGE_HTML.split("$content")
    between, after = rest.split("$data")
    return fill_template(before, values), fill_template(between, values), fill_template(after, values)

# endregion

# region web/evidence.py
# =============================================================================
# Where each trial stands in the files of a stage, for pages written case by case.
#
# Observations and results lie in the order (trial, case); a page needs them by case. One pass
# over each file notes byte offsets and outcomes; after that the lines of a case are read when
# its turn comes, and nothing holds more than one of them.
# =============================================================================

# The engine writes these two keys first; a line that begins otherwise is parsed whole.
LINE_HEAD = re.compile(rb'\s*\{\s*"case_id"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"trial"\s*:\s*(\d{1,9})\s*[,}]')
OUTCOME_LETTERS = {"pass": "p", "fail": "f", "error": "e"}
NOT_RUN_LETTER, NOT_EVALUATED = "n", "u"
BINDING = ("hard", "gate")  # severities whose failure fails the trial
MAX_NOTE = 300  # characters kept of the reason that stands in the row of a case


class EvaluatorTable:
    """Evaluators in the order in which they are met: `rows` of (id, type, severity); the numbers of them are page data."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str]] = []
        self.numbers: dict[str, int] = {}

    def number(self, evaluation: JsonObject) -> int:
        """The number of the evaluator that made *evaluation*; a new one is added to the table."""
        name = str(evaluation.get("id", ""))
        number = self.numbers.get(name)
        if number is None:
            number = self.numbers[name] = len(self.rows)
            self.rows.append((name, str(evaluation.get("type", "")), str(evaluation.get("severity", "gate"))))
        return number


class Note(NamedTuple):
    """What decided a case in a stage: rank (0 hard failure, 1 failure, 2 error), number of the evaluator, its reason."""

    rank: int
    evaluator: int
    reason: str


class TrialEvidence(NamedTuple):
    """One trial: its number, letter of its outcome, line of its observation (0: none), both records as read."""

    trial: int
    letter: str
    line: int
    observation: JsonObject
    result: JsonObject


class LineFile:
    """A JSON Lines file whose lines can be read again by number, from 1."""

    def __init__(self, path: str) -> None:
        from array import array

        self.offsets = array("Q", [0])
        self.stream: IO[bytes] | None = open_for_reading(path) if os.path.exists(path) else None

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """(number, bytes) of each line, noting where it stands."""
        position = 0
        for number, raw in enumerate(self.stream or (), 1):
            position += len(raw)
            self.offsets.append(position)
            yield number, raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw

    def line(self, number: int) -> JsonObject:
        """The object on line *number*; {} for line 0 and for a line that cannot be read."""
        if not number or self.stream is None:
            return {}
        descriptor, start = self.stream.fileno(), self.offsets[number - 1]
        # Below the stream's buffer, which would read a megabyte for each line.
        os.lseek(descriptor, start, os.SEEK_SET)
        raw, wanted = b"", self.offsets[number] - start
        while len(raw) < wanted:
            block = os.read(descriptor, wanted - len(raw))
            if not block:
                break
            raw += block
        return object_on_line(raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw) or {}

    def close(self) -> None:
        """Closes the file."""
        if self.stream is not None:
            self.stream.close()


def object_on_line(raw: bytes) -> JsonObject | None:
    """The object that *raw* holds; None when it cannot be read, which the comparison reports as invalid evidence."""
    try:
        return parse_line(raw.strip(), "")
    except InputError:
        return None


def line_key(raw: bytes) -> tuple[str, int] | None:
    """(case id, trial) of an observation line, without parsing the whole of it where that can be avoided."""
    match = LINE_HEAD.match(raw)
    if match:
        try:
            return str(json.loads(match.group(1))), int(match.group(2))
        except ValueError:
            pass
    return record_key(object_on_line(raw) or {})


def record_key(record: JsonObject) -> tuple[str, int] | None:
    """(case id, trial) of an observation or a result; None when it has no usable ones."""
    case_id, trial = record.get("case_id"), record.get("trial")
    return (case_id, trial) if isinstance(case_id, str) and isinstance(trial, int) and 0 < trial < 10**9 else None


def evaluations_of(result: JsonObject) -> list[JsonObject]:
    """The evaluations of a result that are objects, in their order."""
    evaluations = result.get("evaluations")
    return [entry for entry in evaluations if isinstance(entry, dict)] if isinstance(evaluations, list) else []


class StageEvidence:
    """The trials of one stage by case: outcomes at hand, observations and results read when asked for.

    Only cases in *shown* are kept. `applied` and `failed` hold numbers of *evaluators* by case id.
    """

    def __init__(self, observations_path: str, results_path: str, shown: Container[str], evaluators: EvaluatorTable) -> None:
        self.observations, self.results = LineFile(observations_path), LineFile(results_path)
        self.shown, self.evaluators = shown, evaluators
        self.places: dict[str, Any] = {}  # case id -> array of (trial, observation line, result line, letter) one after the other
        self.applied: dict[str, tuple[int, ...]] = {}
        self.failed: dict[str, tuple[int, ...]] = {}
        self.notes: dict[str, Note] = {}
        self.unreadable = 0
        self.same: dict[tuple[int, ...], tuple[int, ...]] = {}
        for number, raw in self.observations.lines():
            raw = raw.strip()
            # A line that was torn, as a killed run leaves one, has a head but no end.
            key = line_key(raw) if raw.endswith(b"}") else None
            if key is not None and key[0] in shown:
                places, start = self.place(*key)
                places[start + 1] = number
            self.unreadable += key is None and bool(raw)
        for number, raw in self.results.lines():
            self.add_result(number, object_on_line(raw) or {})

    def place(self, case_id: str, trial: int) -> tuple[Any, int]:
        """(array of the case, where the four numbers of *trial* begin in it); a new trial begins without lines."""
        from array import array

        places = self.places.get(case_id)
        if places is None:
            places = self.places[case_id] = array("Q")
        for start in range(0, len(places), 4):
            if places[start] == trial:
                return places, start
        places.extend((trial, 0, 0, ord(NOT_EVALUATED)))
        return places, len(places) - 4

    def add_result(self, number: int, result: JsonObject) -> None:
        """Notes the result on line *number* of the results file."""
        key = record_key(result)
        if key is None or key[0] not in self.shown:
            return
        case_id = key[0]
        places, start = self.place(*key)
        letter = OUTCOME_LETTERS.get(str(result.get("outcome")), NOT_EVALUATED)
        places[start + 2], places[start + 3] = number, ord(NOT_RUN_LETTER if result.get("status") == "not_run" else letter)
        applied, failed = set(self.applied.get(case_id, ())), set(self.failed.get(case_id, ()))
        for evaluation in evaluations_of(result):
            status, evaluator = evaluation.get("status"), self.evaluators.number(evaluation)
            if status != "not_applicable":
                applied.add(evaluator)
            if status == "fail":
                failed.add(evaluator)
            if status in ("fail", "error") and evaluation.get("severity") in BINDING:
                rank = 2 if status == "error" else BINDING.index(evaluation["severity"])
                note = self.notes.get(case_id)
                if note is None or rank < note.rank:
                    self.notes[case_id] = Note(rank, evaluator, str(evaluation.get("reason", ""))[:MAX_NOTE])
        self.applied[case_id], self.failed[case_id] = self.kept(applied), self.kept(failed)

    def kept(self, numbers: set[int]) -> tuple[int, ...]:
        """*numbers* in order; equal sets are one object, since most cases have the same."""
        ordered = tuple(sorted(numbers))
        return self.same.setdefault(ordered, ordered)

    def letters(self, case_id: str, planned: int) -> str:
        """One letter a trial, planned or recorded, in order: p, f, e (no verdict), n (not run), u (not evaluated)."""
        places = self.places.get(case_id, ())
        found = {places[start]: chr(places[start + 3]) for start in range(0, len(places), 4)}
        return "".join(found.get(trial, NOT_RUN_LETTER) for trial in sorted({*range(1, planned + 1), *found}))

    def lengths(self, case_id: str) -> list[int]:
        """Bytes of each observation line of a case."""
        lines, offsets = self.places.get(case_id, ())[1::4], self.observations.offsets
        return [offsets[line] - offsets[line - 1] for line in lines if line]

    def trials(self, case_id: str) -> Iterator[TrialEvidence]:
        """The trials of a case in their order, each read as it is asked for."""
        places = self.places.get(case_id, ())
        for trial, line, result, letter in sorted(tuple(places[start : start + 4]) for start in range(0, len(places), 4)):
            yield TrialEvidence(trial, chr(letter), line, self.observations.line(line), self.results.line(result))

    def close(self) -> None:
        """Closes both files."""
        self.observations.close()
        self.results.close()

# endregion

# region web/case_data.py
# =============================================================================
# One case as the data a page shows: its title, and the detail that opens below it.
#
# All values travel as text, so that the page shows what was recorded and not what JavaScript
# makes of it (1.0 and 12345678901234567890 stay themselves). A text is a string, or, when it
# is JSON or was cut, [text, characters left out, digest of the whole, kind] with kind 0 text,
# 1 JSON, 2 the end of a text. Texts and steps that come again within a case (its trials are
# much alike) are written once and named by number.
# =============================================================================

PageText = str | list[Any]
PooledText = PageText | int

PLAIN_TEXT, JSON_TEXT, END_OF_TEXT = 0, 1, 2
TITLE_LENGTH = 140
TITLE_KEYS = ("message", "question", "prompt", "query", "text", "task", "content", "title", "instruction", "messages", "input", "user")
MAX_EVIDENCE = 20
MAX_VALUE = 200
SHORT_TEXT = 30
STATUS_LETTERS = {"pass": "p", "fail": "f", "error": "e", "not_applicable": "-"}
BIG_PAGE = 20_000_000  # bytes, from which on unchanged cases that passed lose their texts (formats.md 1.5)


class TextLimits(NamedTuple):
    """Characters kept of a long text, of a text in a step, of all steps of a trial; and how many steps."""

    text: int
    step: int
    trial: int
    steps: int


class TextPool:
    """The texts and steps of one case: each is kept once, and named by its number where that is shorter."""

    def __init__(self) -> None:
        self.known_texts: dict[str, int] = {}
        self.known_steps: dict[str, tuple[int, int]] = {}  # a step as recorded -> its number, its size
        self.texts: list[PageText] = []
        self.steps: list[JsonObject] = []

    def text(self, value: PageText) -> PooledText:
        """*value* itself when it is short, else its number."""
        if len(value[0] if isinstance(value, list) else value) <= SHORT_TEXT:
            return value
        key = value if isinstance(value, str) else encode_compact(value)
        number = self.known_texts.setdefault(key, len(self.texts))
        if number == len(self.texts):
            self.texts.append(value)
        return number

    def step(self, step: Any, limits: TextLimits, left: int) -> tuple[int, int]:
        """(number of a step, characters of it); *left* are still to be had for its trial, which may cut it shorter."""
        key = encode_compact(step) if left >= 3 * limits.step else None
        found = None if key is None else self.known_steps.get(key)
        if found is None:
            data, size = step_data(step, limits, left, self)
            self.steps.append(data)
            found = len(self.steps) - 1, size
            if key is not None:
                self.known_steps[key] = found
        return found


def text_limits(all_lengths: list[int], kept_lengths: list[int]) -> TextLimits:
    """The widest limits with which the texts stay near 20 MB, from the bytes of each observation.

    First for all cases; when that cannot be, for the changed and failed ones, which always keep their texts.
    """
    tries = [(limit, all_lengths) for limit in (20_000, 8_000, 4_000)] + [(limit, kept_lengths) for limit in (4_000, 2_000)]
    fitting = (limit for limit, lengths in tries if sum(min(length, 3 * limit) for length in lengths) <= BIG_PAGE)
    limit = next(fitting, 1_000)
    return TextLimits(limit, limit // 4, limit * 5, max(50, limit // 100))


def cut_point(text: str, limit: int) -> int:
    """The largest index up to *limit* at which *text* can be cut without parting a character from its marks."""
    from unicodedata import combining

    point = min(limit, len(text))
    while 0 < point < len(text) and (combining(text[point]) or text[point] in "\u200d\ufe0e\ufe0f" or text[point - 1] == "\u200d"):
        point -= 1
    return point or min(limit, len(text))


def page_text(value: Any, limit: int, in_key_order: bool = False) -> PageText:
    """*value* as a text of at most *limit* characters; JSON values as compact JSON, with sorted keys if *in_key_order*."""
    is_json = not isinstance(value, str)
    text = (encode_sorted if in_key_order else encode_compact)(value) if is_json else value
    if len(text) <= limit:
        return [text, 0, "", JSON_TEXT] if is_json else text
    point = cut_point(text, limit)
    return [text[:point], len(text) - point, sha256_hex(text.encode("utf-8", "replace"))[:8], int(is_json)]


def page_text_end(text: str, limit: int) -> PageText:
    """The last *limit* characters of *text*, for logs, whose end says what went wrong."""
    return text if len(text) <= limit else [text[-limit:], len(text) - limit, "", END_OF_TEXT]


def case_title(value: Any, depth: int = 0) -> str:
    """A line that tells a reader what the input *value* is about: its first or most telling text, cut to 140 characters."""
    if isinstance(value, str):
        line = next((line for line in value.split("\n") if line.strip()), "")
        return re.sub(r"\s+", " ", line).strip()[:TITLE_LENGTH]
    if isinstance(value, dict) and depth < 4:
        found = (case_title(value[key], depth + 1) for key in TITLE_KEYS if key in value)
        return next((title for title in found if title), "") or (encode_compact(value)[:TITLE_LENGTH] if not depth else "")
    titles = [case_title(item, depth + 1) for item in reversed(value[-20:])] if isinstance(value, list) and depth < 4 else []
    return next((title for title in titles if title), "") or ("" if value is None or depth else encode_compact(value)[:TITLE_LENGTH])


def step_data(step: Any, limits: TextLimits, left: int, pool: TextPool) -> tuple[JsonObject, int]:
    """(a step as page data, characters of its texts); *left* are still to be had for its trial."""
    if not isinstance(step, dict):
        step = {"kind": "unknown", "result": step}
    data: JsonObject = {key: str(step[key])[:MAX_VALUE] for key in ("kind", "name", "status", "role", "agent") if step.get(key) is not None}
    size = 0
    for key in ("args", "text", "result"):
        if step.get(key) is not None:
            text = page_text(step[key], max(120, min(limits.step, left - size)), key == "args")
            size += len(text if isinstance(text, str) else text[0])
            data[key] = pool.text(text)
    if isinstance(step.get("truncated"), list) and step["truncated"]:
        data["truncated"] = [str(name)[:MAX_VALUE] for name in step["truncated"][:5]]
    return data, size


def steps_data(observation: JsonObject, limits: TextLimits, pool: TextPool) -> JsonObject:
    """{"steps", "more"} of a trial: numbers of its steps (or tool calls) and how many further ones there are; {} for none recorded."""
    steps = observation.get("steps")
    if not isinstance(steps, list):
        calls = observation.get("tool_calls")
        if not isinstance(calls, list):
            return {}
        steps = [{"kind": "tool", **call} for call in calls if isinstance(call, dict)]
    shown, left = [], limits.trial
    for step in steps[: limits.steps]:
        number, size = pool.step(step, limits, left)
        shown.append(number)
        left -= size
    return {"steps": shown, "more": len(steps) - len(shown)} if len(steps) > len(shown) else {"steps": shown}


def evidence_data(evidence: Any, output: Any) -> list[Any]:
    """Pointers of an evaluation as page data: {"step"}, {"start", "end", "text"} for characters of the output, else words."""
    items = list(evidence) if isinstance(evidence, (list, tuple)) else [evidence]
    found = [pointer_data(item, output) for item in items[:MAX_EVIDENCE]]
    return found + ([f"and {len(items) - MAX_EVIDENCE} more"] if len(items) > MAX_EVIDENCE else [])


def pointer_data(pointer: Any, output: Any) -> Any:
    """One pointer as page data; `in` names what was looked at when it was not the output as it is."""
    if not isinstance(pointer, dict):
        return encode_compact(pointer)[:MAX_VALUE]
    looked_at = pointer.get("in")
    if isinstance(pointer.get("step"), int):
        return {"step": pointer["step"]}
    if isinstance(pointer.get("start"), int) and isinstance(pointer.get("end"), int):
        place = {"start": pointer["start"], "end": pointer["end"]}
        if looked_at is None and output is not None:
            return {**place, "text": output_text(output)[pointer["start"] : pointer["end"]][:80]}
        return f"characters {pointer['start']} to {pointer['end']} of {looked_at or 'the output'}"[:MAX_VALUE]
    if isinstance(pointer.get("pointer"), str):
        return (pointer["pointer"] or "the whole") + (f" of {looked_at}" if looked_at else "")[:MAX_VALUE]
    return encode_compact(pointer)[:MAX_VALUE]


def evaluation_data(evaluation: JsonObject, output: Any, limits: TextLimits, evaluators: EvaluatorTable, pool: TextPool) -> list[Any]:
    """[number of the evaluator, letter of its status, score, value, reason, evidence] of one evaluation."""
    value, evidence = evaluation.get("value"), evaluation.get("evidence")
    data = [
        evaluators.number(evaluation),
        STATUS_LETTERS.get(str(evaluation.get("status")), "e"),
        evaluation.get("score"),
        None if value is None else encode_compact(value)[:MAX_VALUE],
        pool.text(page_text(str(evaluation.get("reason") or ""), limits.step)),
    ]
    return [*data, evidence_data(evidence, output)] if evidence else data


def error_data(observation: JsonObject, limits: TextLimits) -> JsonObject:
    """{"error", "tries"} of a trial that did not complete or needed several attempts; {} for neither."""
    error, execution = observation.get("error"), observation.get("execution")
    data: JsonObject = {}
    if isinstance(error, dict):
        data["error"] = {key: page_text(error[key], limits.step) for key in ("class", "type", "message") if error.get(key) is not None}
        if isinstance(error.get("stderr_tail"), str) and error["stderr_tail"].strip():
            data["error"]["stderr"] = page_text_end(error["stderr_tail"], limits.step)
        if isinstance(execution, dict) and execution.get("exit_code") not in (None, 0):
            data["error"]["exit_code"] = str(execution["exit_code"])[:MAX_VALUE]
    attempts = execution.get("attempts") if isinstance(execution, dict) else None
    if isinstance(attempts, list) and attempts:
        data["tries"] = [encode_compact(attempt)[:MAX_VALUE] for attempt in attempts[:MAX_EVIDENCE]]
    return data


def trial_data(trial: TrialEvidence, limits: TextLimits, evaluators: EvaluatorTable, pool: TextPool) -> JsonObject:
    """One trial as page data: outcome, measurements, output, steps, checks, error."""
    observation, result = trial.observation, trial.result
    output = observation.get("output")
    data: JsonObject = {"outcome": trial.letter, "line": trial.line, "status": str(observation.get("status", "not run"))[:MAX_VALUE]}
    for key in ("score", "coverage", "duration_ms", "cost_usd"):
        if isinstance(result.get(key), (int, float)):
            data[key] = result[key]
    usage = result.get("usage")
    if isinstance(usage, dict):
        data["usage"] = [[str(key)[:MAX_VALUE], encode_compact(value)[:MAX_VALUE]] for key, value in list(usage.items())[:8]]
    if observation.get("finish_reason") is not None:
        data["finish"] = str(observation["finish_reason"])[:MAX_VALUE]
    if output is not None:
        data["output"] = pool.text(page_text(output, limits.text))
    data["checks"] = [evaluation_data(evaluation, output, limits, evaluators, pool) for evaluation in evaluations_of(result)]
    return {**data, **steps_data(observation, limits, pool), **error_data(observation, limits)}


def case_facts(case: Case, limits: TextLimits) -> JsonObject:
    """Input, context, expected value and further facts of a case as page data."""
    document = case.document
    facts = {key: page_text(document[key], limits.text) for key in ("input", "context", "expected") if document.get(key) is not None}
    source = document.get("source")
    labels = [("cluster", document.get("cluster")), ("source", source.get("kind") if isinstance(source, dict) else None)]
    labels += [("owner", document.get("owner")), ("notes", document.get("notes"))]
    return {**facts, "facts": [[label, page_text(value, limits.step)] for label, value in labels if value is not None]}


def case_detail(case: Case, stages: dict[str, StageEvidence], limits: TextLimits, evaluators: EvaluatorTable) -> JsonObject:
    """All that opens below the row of a case; *stages* by role."""
    pool = TextPool()
    trials = {
        role: {str(trial.trial): trial_data(trial, limits, evaluators, pool) for trial in stage.trials(case.id)}
        for role, stage in stages.items()
    }
    return {**case_facts(case, limits), "trials": trials, "texts": pool.texts, "steps": pool.steps}

# endregion

# region web/review_words.py
# =============================================================================
# What a review says in words and numbers, the same on the page and in review.md.
#
# A value that was not measured is "not measured", never 0; a rate stands with its n, its
# interval and the counts of planned trials it rests on.
# =============================================================================

NOT_MEASURED = "not measured"
VERDICTS = {"eligible": "Eligible", "rejected": "Rejected", "manual_review": "Manual review", None: "One stage measured"}
CHANGE_WORDS = {
    "regressed": "regressed", "weakened": "weakened", "not_comparable": "not comparable", "improved": "improved",
    "strengthened": "strengthened", "unchanged": "unchanged", None: "no comparison",
}  # fmt: skip
RULE_WORDS = {
    "stale_results": "the evidence is stale: it was evaluated before something changed",
    "invalid_evidence": "the evidence is not usable",
    "incomparable_dataset": "the two sides were evaluated with different cases",
    "incomparable_evaluators": "the two sides were graded by different evaluators",
}


class Group(NamedTuple):
    """A group of cases: key, title, tone of its colour and sign, what it means; collapsed groups open on demand."""

    key: str
    title: str
    tone: str
    text: str
    is_collapsed: bool = False


GROUPS = (
    Group("hard_regressed", "Hard regressions", "bad", "Worse than before, and a hard evaluator or a critical case fails: one rejects."),
    Group("hard", "Hard failures", "bad", "A hard evaluator or a critical case fails in a case that is not listed as worse: one rejects."),
    Group("regressed", "Regressions", "bad", "Passed in every trial before, in none now."),
    Group("newly_flaky", "Newly flaky", "warn", "Passed in every trial before, only in some now."),
    Group("weakened", "Weakened", "warn", "Pass less often than before."),
    Group("not_comparable", "Not comparable", "odd", "Too little evidence on one side to say anything."),
    Group("improved", "Improved", "good", "Pass now in most trials, before in at most half."),
    Group("strengthened", "Strengthened", "good", "Pass more often than before."),
    Group("unchanged", "Unchanged", "calm", "The same share of trials passes on both sides.", True),
    Group("failed", "Failed", "bad", "No trial passed."),
    Group("flaky", "Flaky", "warn", "Some trials passed and some failed."),
    Group("no_verdict", "No verdict", "odd", "No trial has usable evidence."),
    Group("passed", "Passed", "good", "Every trial with usable evidence passed.", True),
)
GAINED_GROUPS = ("improved", "strengthened")
LOST_GROUPS = ("hard_regressed", "hard", "regressed", "newly_flaky", "weakened")


def is_hard(row: JsonObject, is_critical: bool) -> bool:
    """True when the candidate's row fails a hard evaluator, or any trial of a critical case fails."""
    return bool(row.get("hard")) or (is_critical and row["candidate"]["fail"] > 0)


def group_of(row: JsonObject, is_critical: bool) -> str:
    """The key of the group in which a row of comparison.json stands on the page."""
    change, side = row.get("change"), row["candidate"]
    if is_hard(row, is_critical):
        return "hard_regressed" if change in ("regressed", "weakened") else "hard"
    if change is not None:
        return "newly_flaky" if row.get("newly_flaky") else str(change)
    if not side["pass"] + side["fail"]:
        return "no_verdict"
    return "flaky" if side["pass"] and side["fail"] else "passed" if side["pass"] else "failed"


def sentence_end(text: str) -> str:
    """*text* with a full stop, unless it ends a sentence already."""
    return text if text.endswith((".", "!", "?")) else text + "."


def capitalised(text: str) -> str:
    """*text* with its first letter as a capital."""
    return text[:1].upper() + text[1:]


def headline_parts(comparison: JsonObject) -> tuple[str, str]:
    """(verdict, the reason that decided), e.g. ('Rejected', '2 regressions (at most 0).')."""
    recommendation, reasons = comparison["recommendation"], comparison["reasons"]
    if recommendation is None:
        rates = comparison["rates"]["candidate"]
        return VERDICTS[None], f"{rates['passed']:,} of {counted(rates['planned'], 'planned trial')} passed."
    improved = counted(comparison["counts"]["improved"], "improvement")
    because = reasons[0]["text"] if reasons else f"{improved}, no regression, every threshold met"
    return VERDICTS[recommendation], sentence_end(because)


def change_sentence(comparison: JsonObject) -> str:
    """'Of 200 cases 14 regressed, 34 improved and 152 did not change.' with the changes that occur."""
    counts = comparison["counts"]
    if comparison["recommendation"] is None:
        return f"{counted(counts['cases'], 'case')}, and no baseline to compare with."
    parts = [f"{counts['regressed']:,} regressed"]
    parts += [f"{counts['weakened']:,} weakened"] if counts["weakened"] else []
    parts.append(f"{counts['improved']:,} improved")
    parts += [f"{counts['strengthened']:,} strengthened"] if counts["strengthened"] else []
    parts += [f"{counts['not_comparable']:,} could not be compared"] if counts["not_comparable"] else []
    parts.append(f"{counts['unchanged']:,} did not change")
    return f"Of {counted(counts['cases'], 'case')} {', '.join(parts[:-1])} and {parts[-1]}."


def share_percent(value: float) -> str:
    """A float in [0, 1] as a percentage with one decimal that is 0 or 100 only if it is exactly that."""
    return percent(round(value * 10**9), 10**9, 1) if 0 < value < 1 else percent(int(value), 1, 1)


def rate_percent(rate: JsonObject | None) -> str:
    """An exact rate as a percentage; 'not measured' for none."""
    return NOT_MEASURED if rate is None else percent(rate["numerator"], rate["denominator"], 2)


def interval_text(rates: JsonObject) -> str:
    """'95 % interval 17.3 % to 28.8 %'; '' when there is none."""
    if rates.get("low") is None or rates.get("high") is None:
        return ""
    return f"95 % interval {share_percent(rates['low'])} to {share_percent(rates['high'])}"


def basis_text(rates: JsonObject) -> str:
    """'n = 200 of 200 cases' and, where trials are repeated, how many independent ones they are worth."""
    text = f"n = {rates['cases_measured']:,} of {counted(rates['cases'], 'case')}"
    n_eff = rates.get("n_eff")
    is_repeated = n_eff is not None and rates["passed"] + rates["failed"] > rates["cases_measured"]
    return text + (f", {rates['passed'] + rates['failed']:,} trials worth {n_eff:.1f} independent ones" if is_repeated else "")


def money(value: float) -> str:
    """US dollars with as many decimals as a small price needs: '$1.25', '$0.0021'."""
    if 0 < value < 0.000001:
        return f"${value:.2g}"
    return f"${value:.2f}" if value >= 1 else f"${value:.6f}".rstrip("0").ljust(5, "0")


def covered(value: str, rates: JsonObject, key: str, word: str) -> tuple[str, str]:
    """(value, '600 of 600 trials priced'); the coverage is '' when comparison.json does not count it."""
    return value, f"{rates[key]:,} of {counted(rates['planned'], 'trial')} {word}" if rates.get(key) is not None else ""


def number_rows(rates: JsonObject) -> list[tuple[str, str, str]]:
    """(label, value, small print) of one stage, the same labels in the same order for every stage."""
    planned = f"of {counted(rates['planned'], 'planned trial')}"
    cost, time, score = rates.get("mean_cost_usd"), rates.get("median_duration_ms"), rates.get("mean_score")
    small = ", ".join(part for part in (interval_text(rates), basis_text(rates)) if part)
    return [
        ("Pass rate", rate_percent(rates["rate"]), small),
        ("Passed", f"{rates['passed']:,}", planned),
        ("Failed", f"{rates['failed']:,}", planned),
        ("Errors, no verdict", f"{rates['errors']:,}", planned),
        ("Not run", f"{rates['not_run']:,}", planned),
        ("Mean score", *covered(NOT_MEASURED if score is None else f"{score:.3f}", rates, "scored", "scored")),
        ("Mean cost of a trial", *covered(NOT_MEASURED if cost is None else money(cost), rates, "priced", "priced")),
        ("Median duration", *covered(NOT_MEASURED if time is None else duration(time / 1000), rates, "timed", "timed")),
    ]


def delta_text(comparison: JsonObject) -> str:
    """'+10 percentage points'; when there is none, 'not measured' and why."""
    delta = comparison.get("delta")
    if delta is None:
        why = str(comparison.get("delta_reason") or "no baseline").replace("_", " ")
        return f"{NOT_MEASURED} ({why})"
    size = percent(abs(delta["numerator"]), delta["denominator"]).removesuffix(" %")
    sign = "+" if delta["numerator"] > 0 else "−" if delta["numerator"] < 0 else ""
    return f"{sign}{size} percentage points"


def row_reason(row: JsonObject) -> str:
    """Why a case is not comparable, as words; '' when it is."""
    reason = row.get("reason")
    return "" if reason is None else RULE_WORDS.get(str(reason), str(reason).replace("_", " "))


def side_text(side: JsonObject) -> str:
    """'2 of 3 passed, 1 error': what the trials of a case came to, with those that gave no verdict."""
    parts = [f"{side['pass']} of {side['planned']} passed"]
    parts += [counted(side["error"], "error")] if side["error"] else []
    not_run = side["planned"] - side["pass"] - side["fail"] - side["error"]
    return ", ".join(parts + ([f"{not_run} not run"] if not_run > 0 else []))


def decision_sentence(decision: Any, evidence: str) -> str:
    """One sentence on the state of *decision* (a Decision or None): who, when, through what, and whether it is stale."""
    if decision is None or decision.status == "pending":
        return "No decision is recorded yet."
    words = decision.status.replace("_", " ")
    via = f", recorded from inside {decision.via}" if decision.via else ""
    stale = "" if decision.evidence == evidence else " It is stale: it was made about other evidence than this, and counts for nothing."
    return f"{capitalised(words)} by {decision.decided_by or 'nobody named'} on {decision.decided_at or 'an unknown day'}{via}.{stale}"


def hidden_sentence(count: int, opened: int) -> str:
    """What is said of holdout cases that are counted but not shown, and of how often the holdout was opened."""
    parts = [f"{counted(count, 'holdout case')} {'is' if count == 1 else 'are'} counted in these numbers and not shown."] if count else []
    if opened:
        parts.append(f"The holdout has been opened {'once' if opened == 1 else f'{opened} times'} so far.")
    return " ".join(parts)


def hidden_count(case_ids: Iterable[str], holdout: frozenset[str]) -> int:
    """How many of *case_ids* must not be shown."""
    return sum(1 for case_id in case_ids if case_id in holdout)

# endregion

# region web/review_html.py
# =============================================================================
# The parts of the review page that need no JavaScript: sentence, numbers, reasons.
# =============================================================================

STATIC_CASES = 200  # regressions listed in plain HTML, for a reader without JavaScript
REASON_CASES = 8
TONES = {"eligible": "good", "rejected": "bad", "manual_review": "warn", None: "calm"}


class StaticRow(NamedTuple):
    """A case in the plain list: id, group, row of comparison.json, what decided it in the candidate."""

    id: str
    group: str
    row: JsonObject
    note: str


def table_html(caption: str, columns: list[str], rows: list[list[str]], kind: str = "") -> str:
    """A table with an unseen caption, column headings (none: no heading row), and rows whose first cell heads the row; cells are markup."""
    head = "".join(f'<th scope="col" role="columnheader">{cell}</th>' for cell in columns)
    head = f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n' if columns else ""
    body = ""
    for row in rows:
        cells = "".join(f'<td role="cell">{cell}</td>' for cell in row[1:])
        body += f'<tr role="row"><th scope="row" role="rowheader">{row[0]}</th>{cells}</tr>\n'
    # The roles say again what the elements say, for browsers that forget it where narrow screens stack the cells.
    start = f'<table class="{kind}" role="table">' if kind else '<table role="table">'
    return f'{start}<caption class="unseen">{html_text(caption)}</caption>\n{head}<tbody role="rowgroup">\n{body}</tbody></table>'


def list_html(items: list[str], kind: str = "") -> str:
    """A list of markup items."""
    start = f'<ul class="{kind}">' if kind else "<ul>"
    return start + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def notes_html(comparison: JsonObject) -> str:
    """What is not known, as a list; a sentence when the comparison notes nothing."""
    if comparison["notes"]:
        return list_html([html_text(capitalised(note)) for note in comparison["notes"]])
    return "<p>Nothing is missing from the evidence: every planned trial gave a verdict.</p>"


def chart_html(comparison: JsonObject, roles: list[str]) -> str:
    """Pass rate and interval of each stage on one scale, as SVG; the exact values stand in the table below it."""
    lines = []
    for role in roles:
        rates = comparison["rates"][role]
        shapes = '<line class="axis" x1="0" x2="100%" y1="50%" y2="50%"/>'
        if rates["rate"] is not None:
            point = f"{100 * rates['rate']['numerator'] / rates['rate']['denominator']:.3f}%"
            if rates.get("low") is not None:
                limits = f'x1="{100 * rates["low"]:.3f}%" x2="{100 * rates["high"]:.3f}%"'
                shapes += f'<line class="range" {limits} y1="50%" y2="50%"/>'
            shapes += f'<circle class="point" cx="{point}" cy="50%" r="7"/>'
        value = html_text(rate_percent(rates["rate"]))
        svg = f'<svg class="track track-{role}" width="100%" height="24" focusable="false">{shapes}</svg>'
        name = f'<span class="chart-name">{html_text(role.capitalize())}</span>'
        lines.append(f'<div class="chart-row">{name}{svg}<span class="chart-value">{value}</span></div>')
    scale = '<span></span><span class="ticks"><i>0 %</i><i>50 %</i><i>100 %</i></span><span></span>'
    scale = f'<div class="chart-row chart-scale">{scale}</div>'
    return f'<div class="chart" aria-hidden="true">{"".join(lines)}{scale}</div>'


def figure_html(text: str) -> str:
    """Our own *text* with numbers, which do not part from their unit at the end of a line."""
    return html_text(text.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0"))


def role_columns(names: dict[str, str]) -> list[str]:
    """Column headings of the roles; the stage's name stands beside where it is another word."""
    return [html_text(role.capitalize()) + (f" <small>{html_text(name)}</small>" if name != role else "") for role, name in names.items()]


def numbers_html(comparison: JsonObject, names: dict[str, str]) -> str:
    """The numbers of the stages side by side; *names* are the stage names by role."""
    columns = role_columns(names)
    sides = [number_rows(comparison["rates"][role]) for role in names]
    rows = []
    for entries in zip(*sides, strict=True):
        cells = []
        for _, value, small in entries:
            kind = ' class="missing"' if value == NOT_MEASURED else ""
            cells.append(f"<span{kind}>{figure_html(value)}</span>" + (f" <small>{figure_html(small)}</small>" if small else ""))
        rows.append([html_text(entries[0][0]), *cells])
    table = table_html("Numbers of the stages side by side", ['<span class="unseen">Measure</span>', *columns], rows, "figures")
    if len(names) < 2:
        return table
    return f'{table}\n<p class="delta">Change of the pass rate: <strong>{html_text(delta_text(comparison))}</strong></p>'


def splits_html(comparison: JsonObject, names: dict[str, str]) -> str:
    """Rates by split, when the cases have more than one."""
    splits = comparison.get("splits") or {}
    if len(splits) < 2:
        return ""
    rows = []
    for split, entry in splits.items():
        rates = [figure_html(rate_percent(entry.get(role))) for role in names]
        changes = entry.get("changes") or {}
        moved = [f"{changes[key]:,} {key}" for key in ("regressed", "improved") if key in changes] if len(names) > 1 else []
        rows.append([html_text(split), f"{entry['cases']:,}", *rates, html_text(", ".join(moved))])
    columns = ["Split", "Cases", *[html_text(role.capitalize()) for role in names], "Changes"]
    return table_html("Pass rates by split", columns, rows, "figures splits")


def case_link(case_id: str) -> str:
    """A link that opens the case on this page."""
    from urllib.parse import quote

    return f'<a href="#case={html_text(quote(case_id, safe=""))}">{html_text(case_id)}</a>'


def card_html(identity: str, title: str, content: str) -> str:
    """A card with a heading."""
    heading = f'<h2 id="{identity}-title">{title}</h2>'
    return f'<section class="card {identity}" aria-labelledby="{identity}-title">\n{heading}\n{content}\n</section>\n'


def reasons_html(comparison: JsonObject, holdout: frozenset[str]) -> str:
    """All reasons that fired, in the order of the rules, with the first cases of each; the first one decided."""
    if not comparison["reasons"]:
        return "<p>No rule of the acceptance policy speaks against the candidate.</p>"
    items = []
    for number, entry in enumerate(comparison["reasons"]):
        shown = [case_id for case_id in entry["cases"] if case_id not in holdout]
        more = len(entry["cases"]) - min(len(shown), REASON_CASES)
        links = ", ".join(map(case_link, shown[:REASON_CASES]))
        rest = f"{' and ' if links else ''}{counted(more, 'case')} {'more' if links else 'not shown'}" if more else ""
        decided = ' <span class="tag">decided</span>' if not number else ""
        cases = f'<p class="reason-cases">{links}{rest}</p>' if entry["cases"] else ""
        code = f'<code class="code">{html_text(entry["code"])}</code>'
        items.append(f"<p>{html_text(capitalised(entry['text']))}{decided}</p>{cases}<p class=\"small\">rule {entry['rule']} · {code}</p>")
    return list_html(items)


def decision_html(decision: Any, evidence: str, command: str) -> str:
    """The state of the decision, and the command that records one, to be copied."""
    parts = [f"<p>{html_text(decision_sentence(decision, evidence))}</p>"]
    if decision is not None and decision.status != "pending":
        if decision.rationale:
            parts.append(f"<blockquote>{html_text(decision.rationale)}</blockquote>")
        if decision.conditions:
            parts.append("<p>Conditions:</p>" + list_html([html_text(condition) for condition in decision.conditions]))
    parts.append(
        "<p class=\"small\">To record a decision about exactly this evidence, put in who decides and why:</p>"
        f'<div class="command"><pre id="command" tabindex="0">{html_text(command)}</pre>'
        '<button type="button" data-copy="command" hidden>Copy</button></div>'
        '<p class="small">Or with <code>--status rejected</code>, or <code>--status accepted_with_conditions --condition TEXT</code>.</p>'
    )
    return "\n".join(parts)


def static_cases_html(rows: list[StaticRow], has_baseline: bool) -> str:
    """The cases that lost ground (or, without a baseline, that failed), at most 200, as a plain table."""
    wanted = LOST_GROUPS if has_baseline else ("hard", "failed", "flaky")
    lost = [row for row in rows if row.group in wanted]
    what = "regressed or weakened" if has_baseline else "failed"
    if not lost:
        return f'<p class="empty">No case {what}.</p>'
    roles = ["baseline", "candidate"] if has_baseline else ["candidate"]
    body = []
    for row in lost[:STATIC_CASES]:
        sides = [html_text(side_text(row.row[role])) for role in roles]
        body.append([html_text(row.id), html_text((row.row.get("change") or row.group).replace("_", " ")), *sides, html_text(row.note)])
    rest = f"<p>and {len(lost) - STATIC_CASES:,} more</p>" if len(lost) > STATIC_CASES else ""
    intro = f"<p>The {counted(len(lost), 'case')} that {what}. Every other case, outputs and trajectories need JavaScript.</p>"
    columns = ["Case", "Change", *[html_text(role.capitalize()) for role in roles], "What decided"]
    return intro + table_html(f"Cases that {what}", columns, body, "plain") + rest


def command_text(meta: JsonObject) -> str:
    """The command of a stage as one line; what is known instead when it was replayed or not recorded."""
    from shlex import join

    command, source = meta.get("command"), meta.get("replayed_from")
    if isinstance(source, dict):
        return f"replayed from {source.get('file')}"
    return join(map(str, command)) if isinstance(command, list) else "not recorded"


def commit_text(meta: JsonObject) -> str:
    """Commit, branch and whether files were changed; the reason when there is none."""
    commit = meta.get("commit")
    if not isinstance(commit, dict):
        return "not recorded"
    if not commit.get("hash"):
        return str(commit.get("reason") or "none")
    branch = f" on {commit['branch']}" if commit.get("branch") else ""
    return f"{commit['hash']}{branch}" + (", with uncommitted changes" if commit.get("dirty") else "")


def selection_text(meta: JsonObject) -> str:
    """Which cases were run."""
    selection = meta.get("selection")
    chosen = [f"{key} {', '.join(map(str, values))}" for key, values in selection.items() if values] if isinstance(selection, dict) else []
    return "; ".join(chosen) or ("every case" if meta else "not recorded")


def provenance_values(side: JsonObject, meta: JsonObject, results: JsonObject) -> list[tuple[str, str]]:
    """(label, text) of how one stage was made: its entry in comparison.json, its meta file, the meta file of its results."""
    values = [
        ("Command", command_text(meta)),
        ("Commit", commit_text(meta)),
        ("Cases", selection_text(meta)),
        ("Repetitions", str(side["repetitions"])),
        ("Run", " to ".join(str(meta[key]) for key in ("started_at", "finished_at") if meta.get(key))),
        ("Evaluated", str(results.get("evaluated_at") or "")),
        ("Engine", str(meta.get("engine") or results.get("engine") or "")),
        ("Observations", str(side.get("observations_sha256") or "")),
        ("Results", str(side.get("results_sha256") or "")),
    ]
    return [(label, text or "not recorded") for label, text in values]


def provenance_html(comparison: JsonObject, stages: dict[str, tuple[JsonObject, JsonObject, str]], lines: list[str]) -> str:
    """How the stages were made, with digests; *stages* has (meta, results meta, name) by role, *lines* are sentences to add."""
    sides = [provenance_values(comparison[role], meta, results) for role, (meta, results, _) in stages.items()]
    rows = [[entries[0][0], *[html_text(text) for _, text in entries]] for entries in zip(*sides, strict=True)]
    columns = role_columns({role: name for role, (_, _, name) in stages.items()})
    parts = [table_html("How the stages were made", ['<span class="unseen">What</span>', *columns], rows, "provenance")]
    digests = [("Evidence", "evidence"), ("Dataset", "dataset_fingerprint"), ("Evaluators", "evaluator_fingerprint")]
    prints = [[label, f"<code>{html_text(str(comparison[key]))}</code>"] for label, key in digests if comparison.get(key)]
    parts.append(table_html("Fingerprints", [], prints, "provenance"))
    parts += [f"<p>{html_text(line)}</p>" for line in lines]
    return "\n".join(parts)

# endregion

# region web/review_markdown.py
# =============================================================================
# review.md: the review as a comment on a pull request, at most 60,000 characters.
#
# Text we did not write is shown as it is and does nothing: no markup, no link, no mention
# that pings a person, no reference that shows up in another issue.
# =============================================================================

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

# endregion

# region web/reliability_section.py
# =============================================================================
# The page's section on how sure the change is: interval plot, strip of cases, table.
#
# The shapes are SVG made here; whatever they show stands beside them as text, so they are
# hidden from screen readers.
# =============================================================================

STRIP_ROWS = 12  # dots in the tallest column of the strip; above, a dot stands for several cases
STRIP_COLUMNS = 41  # places for differences from -1 to 1
SECTION_TONES = {"better": "good", "worse": "bad", "insufficient_evidence": "warn"}


def reliability_html(entry: JsonObject | None) -> str:
    """The section as markup; '' when nothing was compared."""
    if entry is None or not entry["n"]:
        return ""
    settings = entry["settings"]
    sentences = [smallest_effect_text(entry), settle_text(entry)]
    gate = (
        "The reliability block of evaluation.json asks for this: it can hold a candidate back, never let one through."
        if entry["gates"]
        else "No gate hangs on this: evaluation.json has no reliability block."
    )
    tone, sentence = SECTION_TONES[entry["verdict"]], html_text(sure_sentence(entry, settings))
    parts = [
        f'<section class="card sure tone-{tone}" aria-labelledby="sure-title">',
        '<h2 id="sure-title">How sure is this?</h2>',
        f'<p class="sure-verdict"><span class="sign sign-{tone}" aria-hidden="true"></span> {sentence}</p>',
        interval_plot(entry),
        strip_html(entry),
        *[f"<p>{html_text(text)}</p>" for text in sentences if text],
        numbers_table(entry),
        groups_table(entry),
        f'<p class="small">{html_text(gate)}</p>',
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def sure_sentence(entry: JsonObject, settings: JsonObject) -> str:
    """The verdict as a sentence."""
    if entry["verdict"] == "insufficient_evidence":
        return f"Not decided: {'; '.join(obstacle_text(code, entry, settings) for code in entry['reasons'])}."
    return f"{verdict_text(entry, settings)[:1].upper()}{verdict_text(entry, settings)[1:]}."


def plot_place(value: float, reach: float) -> str:
    """Where *value* lies between -*reach* and *reach*, in percent of the width."""
    return f"{min(100.0, max(0.0, 50 + 50 * value / reach)):.3f}%"


def plot_reach(entry: JsonObject) -> float:
    """How far the scale goes on either side of 0: what holds the interval, in steps of ten points."""
    limits = entry["interval"] or [entry["delta"]["value"]] * 2
    largest = max(abs(limit) for limit in (*limits, entry["delta"]["value"]))
    return min(1.0, max(0.1, -int(-10 * largest // 1) / 10))


def interval_plot(entry: JsonObject) -> str:
    """The change with its interval on a scale around 0, as SVG with the exact values as text."""
    reach = plot_reach(entry)
    shapes = '<line class="axis" x1="0" x2="100%" y1="50%" y2="50%"/><line class="zero" x1="50%" x2="50%" y1="0" y2="100%"/>'
    if entry["interval"]:
        low, high = (plot_place(limit, reach) for limit in entry["interval"])
        shapes += f'<line class="range" x1="{low}" x2="{high}" y1="50%" y2="50%"/>'
    shapes += f'<circle class="point" cx="{plot_place(entry["delta"]["value"], reach)}" cy="50%" r="7"/>'
    ticks = "".join(f"<i>{figure_html(f'{100 * value:+.0f}'.replace('+0', '0'))}</i>" for value in (-reach, 0, reach))
    svg = f'<svg class="track track-candidate" width="100%" height="28" focusable="false">{shapes}</svg>'
    text = points_text(entry["delta"]["value"]).removesuffix(" points")
    return (
        f'<div class="chart sure-chart" aria-hidden="true"><div class="chart-row"><span class="chart-name">Change</span>{svg}'
        f'<span class="chart-value">{text}</span></div>'
        f'<div class="chart-row chart-scale"><span></span><span class="ticks">{ticks}</span><span></span></div></div>'
        f'<p class="sure-exact">{figure_html(change_text_of(entry))}</p>'
    )


def strip_html(entry: JsonObject) -> str:
    """A dot for every case that moved, from all trials lost to all won; the columns are counts, which the caption says."""
    columns: dict[int, int] = {}
    for value, times in entry["strip"]:
        if value:
            # Whatever moved at all stands beside the middle, never in it.
            place = round(value * (STRIP_COLUMNS // 2)) or (1 if value > 0 else -1)
            columns[place] = columns.get(place, 0) + times
    unit, moved = entry["unit"], sum(columns.values())
    still = entry["n"] - moved
    if not moved:
        return f"<p>No {unit} came out differently: all {still:,} are where they were.</p>"
    each = -(-max(columns.values()) // STRIP_ROWS)
    tallest = -(-max(columns.values()) // each)
    dots = []
    for place, times in sorted(columns.items()):
        x = 50 + 47 * place / (STRIP_COLUMNS // 2)
        kind = "won" if place > 0 else "lost"
        dots += [f'<circle class="{kind}" cx="{x:.2f}%" cy="{9 * (tallest - row) - 3}" r="3.5"/>' for row in range(-(-times // each))]
    height = 9 * tallest + 8
    base = f'<line class="zero" x1="0" x2="100%" y1="{height - 2}" y2="{height - 2}"/>'
    base += f'<line class="zero" x1="50%" x2="50%" y1="0" y2="{height}"/>'
    per = "a dot is one" if each == 1 else f"a dot is up to {each:,}"
    gained = sum(times for place, times in columns.items() if place > 0)
    sides = f"{counted(moved - gained, unit)} lost ground (left), {gained:,} gained (right)"
    text = f"{sides}, {still:,} did not move and are not drawn; {per}."
    return (
        f'<figure class="strip"><svg width="100%" height="{height}" focusable="false" aria-hidden="true">{base}{"".join(dots)}</svg>'
        f'<figcaption class="small">{html_text(text)}</figcaption></figure>'
    )


def numbers_table(entry: JsonObject) -> str:
    """Tests, noise and what was left out, as a table."""
    flaky, needed, units = entry["flaky"], entry["informative_needed"], f"{entry['unit'].capitalize()}s that differ"
    p_values = [probability_text(entry["sign_flip"][side]) for side in ("better", "worse")]
    better, equal = chance_text(entry, "better"), chance_text(entry, "equal")
    rows = [
        ("Chance that it is better", f"{better}, that it is equal {equal}", "exact bootstrap over cases"),
        ("Sign-flip test", f"p {p_values[0]} for better, {p_values[1]} for worse", "exact, one-sided"),
        (units, f"{entry['informative']:,} of {entry['n']:,}", f"at least {needed} before any test can tell"),
        (
            "Flaky",
            f"{flaky['baseline']['count']:,} before, {flaky['candidate']['count']:,} now",
            f"{entry['newly_flaky']['count']:,} newly; {flaky['candidate']['unknown']:,} ran too seldom to say",
        ),
        ("Noise of the trials", noise_text(entry), ""),
    ]
    if entry["mcnemar"]:
        exact, mid = (probability_text(entry["mcnemar"][name]) for name in ("exact", "mid"))
        rows.insert(2, ("McNemar's test", f"p {exact}, mid-p {mid}", "exact, two-sided"))
    rows += [(f"Left out, {role}", excluded_text_of(entry, role), "") for role in ROLES_COMPARED if excluded_text_of(entry, role)]
    smalls = [f" <small>{figure_html(small)}</small>" if small else "" for _, _, small in rows]
    cells = [[html_text(name), figure_html(text) + small] for (name, text, _), small in zip(rows, smalls, strict=True)]
    return table_html("How sure the change is", [], cells, "figures splits sure-figures")


def groups_table(entry: JsonObject) -> str:
    """Change by split and tag, folded away and labelled exploratory; '' when there is none."""
    found = entry["groups"]
    if not found["groups"]:
        return ""
    rows = []
    for group in found["groups"]:
        delta = group["delta"]
        change = f"{points_text(delta['value'])} ({limits_text(group['interval'])})" if delta else "not measured"
        rates = [figure_html(fraction_percent(group["rates"][role])) for role in ROLES_COMPARED]
        name = f"{html_text(group['name'])} <small>{group['kind']}</small>"
        rows.append([name, f"{group['cases']:,}", *rates, figure_html(change), html_text(probability_text(group["p_adjusted"]))])
    more = f"<p>and {counted(found['left_out'], 'smaller group')}</p>" if found["left_out"] else ""
    table = table_html("Change by split and tag", ["Group", "Cases", "Before", "Now", "Change", "p"], rows, "figures splits")
    note = f"Exploratory: look here for ideas, not for proof. p-values are adjusted for {counted(found['family'], 'group')} (Holm)."
    return f'<details class="sure-groups"><summary>By split and tag</summary><p class="small">{html_text(note)}</p>{table}{more}</details>'


def reliability_markdown(entry: JsonObject | None) -> list[str]:
    """The section in review.md: verdict and what would settle it, as sentences; [] when nothing was compared."""
    if entry is None or not entry["n"]:
        return []
    return [sure_sentence(entry, entry["settings"]), *[text for text in (smallest_effect_text(entry), settle_text(entry)) if text]]

# endregion

# region web/review.py
# =============================================================================
# review.html and review.md: what improved, what regressed, and the command to decide.
#
# review.html is written case by case: the sentence, numbers and regressions first, as plain
# HTML; then the index from which the script draws the table, while the rest still arrives:
# an inert block of JSON for each case, parsed when the case is opened. Cases of the holdout
# appear in neither file.
# =============================================================================

REVIEW_HTML = r"""<section class="verdict tone-$tone" aria-labelledby="sentence">
<p class="eyebrow">$name</p>
<h1 id="sentence"><span class="sign sign-$tone" aria-hidden="true"></span><span class="verdict-word">$verdict:</span> $because</h1>
<p class="lead">$changes</p>
<div class="unknown">
<h2>What is not known</h2>
$notes
</div>
</section>

<div class="columns">
<section class="card numbers" aria-labelledby="numbers-title">
<h2 id="numbers-title">$numbers_title</h2>
$chart
$numbers
$splits
</section>
$side
</div>

$reliability

<section class="cases" aria-labelledby="cases-title">
<div class="cases-head">
<h2 id="cases-title" tabindex="-1">Cases</h2>
<p class="legend"><span class="dot p"></span>passed <span class="dot f"></span>failed <span class="dot e"></span>error, no verdict <span class="dot n"></span>not run</p>
</div>
<div class="filters" id="filters" role="search" aria-label="Filter the cases" hidden>
<div class="changes" id="changes" role="group" aria-label="Show only these changes"></div>
<div class="selects">
<label class="field field-wide"><span>Search <kbd>/</kbd></span><input type="search" id="query" placeholder="id, input, output, reason …" autocomplete="off" spellcheck="false"></label>
<label class="field"><span>Split</span><select id="split"></select></label>
<label class="field"><span>Tag</span><select id="tag"></select></label>
<label class="field"><span>Evaluator</span><select id="evaluator"></select></label>
<label class="field"><span>Which</span><select id="how"><option value="failed">failed in the candidate</option><option value="new">failed only in the candidate</option><option value="before">failed in the baseline</option><option value="any">was asked at all</option></select></label>
</div>
<p class="count"><span id="count" role="status"></span> <button type="button" class="quiet" id="clear" hidden>Clear the filters</button> <button type="button" class="quiet" id="open-help">Keys <kbd>?</kbd></button></p>
</div>
<div id="cases">
$cases
</div>
</section>

<section class="made" aria-labelledby="made-title">
<h2 id="made-title">How this was measured</h2>
$provenance
</section>

<dialog id="help" aria-labelledby="help-title">
<h2 id="help-title">Keys</h2>
<table>
<caption class="unseen">Keys and what they do</caption>
<tbody>
<tr><th scope="row"><kbd>j</kbd> <kbd>k</kbd></th><td>next and previous case</td></tr>
<tr><th scope="row"><kbd>n</kbd> <kbd>p</kbd></th><td>next and previous regression</td></tr>
<tr><th scope="row"><kbd>Enter</kbd> <kbd>o</kbd></th><td>open or close the case</td></tr>
<tr><th scope="row"><kbd>[</kbd> <kbd>]</kbd></th><td>previous and next trial of the open case</td></tr>
<tr><th scope="row"><kbd>/</kbd></th><td>search</td></tr>
<tr><th scope="row"><kbd>?</kbd></th><td>this list</td></tr>
<tr><th scope="row"><kbd>Esc</kbd></th><td>leave the search, close the case or this list</td></tr>
</tbody>
</table>
<p><label><input type="checkbox" id="keys-on" checked> Keys of one letter are on</label></p>
<p><button type="button" id="close-help">Close</button></p>
</dialog>
"""
REVIEW_CSS = r"""
/* The review. */
.tone-good { --tone: var(--good); --tone-soft: var(--good-soft); }
.tone-bad { --tone: var(--bad); --tone-soft: var(--bad-soft); }
.tone-warn { --tone: var(--warn); --tone-soft: var(--warn-soft); }
.tone-odd { --tone: var(--odd); --tone-soft: var(--odd-soft); }
.tone-calm { --tone: var(--calm); --tone-soft: var(--calm-soft); }

.verdict { padding: clamp(1.25rem, 4vw, 3rem) 0 clamp(1.5rem, 3vw, 2.25rem); }
.eyebrow { color: var(--soft); font-size: 0.9375rem; margin-bottom: 0.6rem; overflow-wrap: anywhere; }
.verdict h1 { max-width: 34em; }
.verdict-word { color: var(--tone); }
.lead { margin-top: 0.9rem; font-size: 1.125rem; color: var(--soft); max-width: 54em; text-wrap: pretty; }
.unknown { margin-top: 1.4rem; padding-left: 1rem; border-left: 3px solid var(--line); max-width: 50em; }
.unknown h2 { font-size: 0.875rem; margin-bottom: 0.15rem; }
.unknown ul { padding: 0; list-style: none; }
.unknown li { text-wrap: pretty; }
.panel .missing { font-size: 0.875rem; }
.text, .title, .why, .reason, .step-body > * { unicode-bidi: plaintext; }
.unknown li + li { margin-top: 0.25rem; }
.unknown li, .unknown p { color: var(--soft); font-size: 0.9375rem; }
.sign { display: inline-block; width: 0.72em; height: 0.72em; margin-right: 0.28em; background: var(--tone); forced-color-adjust: none; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.sign-good { clip-path: polygon(36% 66%, 86% 8%, 100% 20%, 38% 94%, 0 58%, 13% 45%); }
.sign-bad { clip-path: polygon(12% 0, 50% 38%, 88% 0, 100% 12%, 62% 50%, 100% 88%, 88% 100%, 50% 62%, 12% 100%, 0 88%, 38% 50%, 0 12%); }
.sign-warn { clip-path: polygon(50% 0, 100% 92%, 0 92%); }
.sign-odd { border-radius: 50%; background: none; border: 0.16em solid var(--tone); }
.sign-calm { clip-path: polygon(0 24%, 100% 24%, 100% 42%, 0 42%, 0 60%, 100% 60%, 100% 78%, 0 78%); }

.columns { display: grid; gap: 1.25rem; align-items: start; }
.columns > * { min-width: 0; }
.stack { display: grid; gap: 1.25rem; }
.card > h2 { margin-bottom: 0.9rem; }
@media (min-width: 62rem) { .columns { grid-template-columns: minmax(0, 1.25fr) minmax(0, 1fr); } }

.chart { margin-bottom: 1rem; }
.chart-row { display: grid; grid-template-columns: 5rem minmax(0, 1fr) 4.75rem; gap: 0.8rem; align-items: center; }
.chart-name { font-size: 0.875rem; color: var(--soft); overflow: hidden; text-overflow: ellipsis; }
.chart-value { text-align: right; font-weight: 620; white-space: nowrap; }
.track { display: block; overflow: visible; }
.track .axis { stroke: var(--line); stroke-width: 6; stroke-linecap: round; }
.track .range { stroke: var(--accent); stroke-width: 6; stroke-linecap: round; opacity: 0.45; }
.track .point { fill: var(--accent); stroke: var(--card); stroke-width: 2; }
.track-baseline .range { stroke: var(--edge); }
.track-baseline .point { fill: var(--card); stroke: var(--calm); stroke-width: 2.5; }
.ticks { display: flex; justify-content: space-between; font-size: 0.75rem; color: var(--soft); }
.ticks i { font-style: normal; width: 0; display: flex; justify-content: center; white-space: nowrap; }
.ticks i:first-child { justify-content: flex-start; }
.ticks i:last-child { justify-content: flex-end; }

.figures th, .figures td { padding: 0.45rem 0.75rem 0.45rem 0; border-top: 1px solid var(--line); }
.figures thead th { border: 0; padding-top: 0; color: var(--soft); font-size: 0.875rem; }
.figures tbody th { color: var(--soft); font-size: 0.875rem; width: 26%; padding-top: 0.55rem; }
.figures td small { margin-left: 0.25rem; }
.figures:not(.splits) tbody tr:first-child td small { display: block; margin: 0.15rem 0 0; }
.figures td { font-weight: 540; }
.figures td small, .figures .missing { font-weight: 400; }
.figures:not(.splits) tbody tr:first-child td > span:first-child { font-size: 1.3rem; font-weight: 640; letter-spacing: -0.01em; }
.figures:not(.splits) tbody tr:first-child th { padding-top: 0.9rem; }
.delta { padding-top: 0.6rem; border-top: 1px solid var(--line); }
.splits { margin-top: 1.4rem; }
.splits td, .splits tbody th { font-size: 0.875rem; width: auto; }
.reasons ul { list-style: none; padding: 0; }
.reasons li + li { margin-top: 0.9rem; padding-top: 0.9rem; border-top: 1px solid var(--line); }
.reason-cases { font-size: 0.875rem; overflow-wrap: anywhere; }
.decision > * + * { margin-top: 0.7rem; }
.command { display: flex; gap: 0.5rem; align-items: flex-start; }
.command pre { flex: 1; min-width: 0; padding: 0.55rem 0.75rem; background: var(--sunk); border-radius: 7px; font-size: 0.8125rem; user-select: all; }

.sure { margin-top: 1.25rem; }
.sure > * + * { margin-top: 0.8rem; }
.sure-verdict { font-weight: 540; }
.sure-chart { margin-bottom: 0; max-width: 46rem; }
.sure-exact { font-weight: 540; }
.track .zero, .strip .zero { stroke: var(--edge); stroke-width: 1; }
.strip { max-width: 46rem; }
.strip svg { display: block; overflow: visible; }
.strip .won { fill: var(--good); }
.strip .lost { fill: none; stroke: var(--bad); stroke-width: 2; }
.sure-groups summary { cursor: pointer; font-weight: 540; }
.sure-groups .figures { margin-top: 0.6rem; }

.cases { margin-top: 3rem; }
.cases-head { display: flex; flex-wrap: wrap; align-items: baseline; justify-content: space-between; gap: 0.25rem 1.5rem; }
.cases-head h2 { font-size: 1.4rem; letter-spacing: -0.012em; }
.legend { font-size: 0.8125rem; color: var(--soft); }
.legend .dot { margin: 0 0.15rem 0 0.7rem; }
.legend .dot:first-child { margin-left: 0; }
.filters { margin: 1rem 0 0.25rem; }
.changes { display: flex; flex-wrap: wrap; gap: 0.4rem; }
.changes button { border-radius: 99px; border-color: var(--line); min-height: 2rem; padding: 0.2rem 0.8rem; }
.changes button .sign { width: 0.6em; height: 0.6em; margin-right: 0.45em; }
.changes button[aria-pressed="true"] { background: var(--tone-soft); border-color: var(--tone); color: var(--tone); }
.selects { display: flex; flex-wrap: wrap; gap: 0.6rem; margin-top: 0.8rem; }
.field { display: grid; gap: 0.15rem; flex: 1 1 8rem; min-width: 0; }
.field-wide { flex: 3 1 16rem; }
.field > span { font-size: 0.75rem; color: var(--soft); }
.field > * { min-width: 0; width: 100%; }
.count { margin-top: 0.7rem; font-size: 0.875rem; color: var(--soft); min-height: 1.6rem; }
.empty { padding: 2.2rem 0; color: var(--soft); }
.plain th, .plain td { padding: 0.5rem 0.9rem 0.5rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }

.group { margin-top: 1.6rem; }
.group-head { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 0.75rem; padding: 0.5rem 0; background: var(--paper); border-bottom: 1px solid var(--line); }
.group-head h3 { display: flex; align-items: baseline; }
.group-head h3 button { all: unset; cursor: pointer; display: inline-flex; align-items: baseline; gap: 0.45rem; }
.group-head h3 button:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; border-radius: 4px; }
.group-head h3 .number { color: var(--soft); font-weight: 400; }
.group-head h3 .sign { width: 0.65em; height: 0.65em; margin: 0; }
.group-head h3 .turn { width: 0.45em; height: 0.45em; border: solid var(--soft); border-width: 0 1.5px 1.5px 0; transform: rotate(-45deg) translate(-1px, -1px); }
.group-head h3 [aria-expanded="true"] .turn { transform: rotate(45deg) translate(-1px, -1px); }
.group-head p { font-size: 0.8125rem; color: var(--soft); }
.rows { table-layout: fixed; }
.rows thead th { font-size: 0.75rem; color: var(--soft); padding: 0.4rem 0.75rem 0.25rem; }
.rows .col-side { width: 11rem; }
.rows .col-why { width: 32%; }
.group + .group .rows thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.row > * { padding: 0.6rem 0.75rem; border-top: 1px solid var(--line); }
.group + .group .rows .row:first-child > * { border-top: 0; }
.row { cursor: pointer; }
.row:hover > * { background: var(--sunk); }
.row > :first-child { box-shadow: inset 3px 0 0 var(--tone); padding-left: 0.95rem; }
.row button.open { all: unset; cursor: pointer; font-weight: 600; font-size: 0.9375rem; overflow-wrap: anywhere; white-space: pre-wrap; }
.row button.open:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; border-radius: 3px; }
.row:has(button.open:focus-visible) > * { background: var(--sunk); }
.row .title { display: block; font-size: 0.875rem; color: var(--soft); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.row .why { font-size: 0.875rem; color: var(--soft); display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; overflow-wrap: anywhere; }
.dots { display: inline-flex; flex-wrap: wrap; gap: 3px; vertical-align: -0.08em; margin-right: 0.5rem; }
.share { font-size: 0.875rem; color: var(--soft); white-space: nowrap; }
.side-name { display: none; }
.chip { display: inline-flex; align-items: center; gap: 0.35em; padding: 0 0.5rem; border-radius: 5px; font-size: 0.75rem; line-height: 1.5rem; background: var(--sunk); color: var(--ink); overflow-wrap: anywhere; }
.chip .dot { width: 0.6rem; height: 0.6rem; }
.chips { display: flex; flex-wrap: wrap; gap: 0.25rem; margin-bottom: 0.15rem; }
.more { margin: 0.8rem 0 0; display: flex; gap: 0.5rem; flex-wrap: wrap; align-items: center; font-size: 0.875rem; color: var(--soft); }

.detail > td { padding: 0; }
.panel { margin: 0 0 1rem; padding: 1.1rem 1.25rem 1.4rem; background: var(--card); border: 1px solid var(--line); border-top: 0; border-radius: 0 0 var(--radius) var(--radius); box-shadow: inset 3px 0 0 var(--tone); }
.panel > section { margin-top: 1.5rem; }
.panel section + .measure { margin-top: 1.3rem; }
.panel h4 { margin-bottom: 0.5rem; display: flex; flex-wrap: wrap; gap: 0.3rem 0.7rem; align-items: baseline; }
.panel h4 small { font-weight: 400; }
.panel-head { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: center; justify-content: space-between; }
.facts { display: flex; flex-wrap: wrap; gap: 0.3rem 0.4rem; }
.trials { display: flex; flex-wrap: wrap; gap: 0.35rem; align-items: center; font-size: 0.8125rem; color: var(--soft); }
.trials button { display: inline-flex; align-items: center; gap: 0.35rem; min-height: 1.9rem; padding: 0.1rem 0.6rem; font-size: 0.8125rem; border-color: var(--line); }
.trials button[aria-pressed="true"] { border-color: var(--accent); box-shadow: inset 0 0 0 1px var(--accent); }
.pair { display: grid; gap: 0.9rem; }
@media (min-width: 56rem) { .pair.two { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); } }
.pane { min-width: 0; }
.pane-name { font-size: 0.75rem; color: var(--soft); margin-bottom: 0.25rem; }
.text { padding: 0.7rem 0.85rem; background: var(--sunk); border-radius: 7px; font-size: 0.8125rem; line-height: 1.55; max-height: 28rem; overflow: auto; }
.text.prose { font-family: inherit; font-size: 0.9375rem; }
.cut { margin-top: 0.3rem; font-size: 0.8125rem; color: var(--soft); }
.text del, .text ins { text-decoration: none; border-radius: 3px; padding: 0.05em 0; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.text del { background: var(--bad-soft); color: var(--bad); text-decoration: line-through; text-decoration-thickness: 1px; }
.text ins { background: var(--good-soft); color: var(--good); text-decoration: underline; text-decoration-thickness: 1px; text-underline-offset: 0.2em; }
.text mark { background: none; color: inherit; outline: 1.5px solid var(--accent); outline-offset: 1px; border-radius: 3px; }
.text mark.lit { background: var(--accent); color: var(--paper); }
.ctl { font-family: var(--mono); font-size: 0.75em; padding: 0 0.2em; border-radius: 3px; background: var(--warn-soft); color: var(--warn); }

.checks th, .checks td { padding: 0.5rem 0.9rem 0.5rem 0; border-top: 1px solid var(--line); font-size: 0.875rem; overflow-wrap: anywhere; }
.checks thead th { border: 0; font-size: 0.75rem; color: var(--soft); padding: 0 0.9rem 0.2rem 0; }
.checks tbody th { width: 22%; }
.checks tbody th small { display: block; }
.checks tbody th span { font-weight: 600; }
.checks td { width: 39%; }
.checks .reason { color: var(--soft); white-space: pre-wrap; }
.checks td small { display: block; }
.checks .status { font-weight: 600; margin-right: 0.35rem; white-space: nowrap; }
.checks .status .dot { margin-right: 0.3rem; }
.pointers { display: flex; flex-wrap: wrap; gap: 0.15rem 0.7rem; }
.pointers button { all: unset; cursor: pointer; color: var(--accent); font-size: 0.8125rem; text-decoration: underline; text-underline-offset: 0.18em; text-decoration-thickness: 1px; }
.pointers button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
.pointers > span { font-size: 0.8125rem; color: var(--soft); }

.steps { table-layout: fixed; }
.steps > thead th { font-size: 0.75rem; color: var(--soft); padding: 0 0.75rem 0.25rem; }
.steps td { padding: 0.5rem 0.75rem; border-top: 1px solid var(--line); font-size: 0.8125rem; overflow-wrap: anywhere; }
.steps .gap { color: var(--soft); font-style: italic; }
.steps .differs td { background: var(--warn-soft); }
.steps .first td { border-top: 2px solid var(--warn); }
.first-label td { padding: 0.9rem 0.75rem 0.25rem; border: 0; color: var(--warn); font-weight: 640; font-size: 0.8125rem; }
.step-head { display: flex; flex-wrap: wrap; gap: 0.1rem 0.5rem; align-items: baseline; }
.step-number { color: var(--soft); min-width: 1.2rem; }
.step-name { font-weight: 640; }
.step-kind { color: var(--soft); }
.step-body { margin-top: 0.2rem; padding-left: 1.7rem; }
.step-body pre { font-size: 0.75rem; line-height: 1.5; max-height: 18rem; overflow: auto; }
.step-body p.text { background: none; padding: 0; max-height: none; font-size: 0.875rem; white-space: pre-wrap; }
.step-body .result { color: var(--soft); }
.step.lit { outline: 2px solid var(--accent); outline-offset: 4px; border-radius: 4px; }

.made { margin-top: 3.5rem; padding-top: 1.5rem; border-top: 1px solid var(--line); color: var(--soft); font-size: 0.875rem; }
.made h2 { color: var(--ink); margin-bottom: 0.7rem; }
.made table + table { margin-top: 1rem; }
.made p { margin-top: 0.8rem; }
.provenance th, .provenance td { padding: 0.3rem 1rem 0.3rem 0; overflow-wrap: anywhere; font-size: 0.8125rem; }
.provenance thead th { color: var(--ink); }
.provenance tbody th { width: 8.5rem; color: var(--soft); }
.provenance td { font-family: var(--mono); font-size: 0.75rem; padding-top: 0.4rem; }
.size-note { max-width: 84rem; margin: -2.5rem auto 2rem; padding: 0 var(--gutter); }

dialog { max-width: min(30rem, calc(100vw - 2rem)); padding: 1.5rem; border: 1px solid var(--line); border-radius: var(--radius); background: var(--card); color: var(--ink); }
dialog::backdrop { background: rgb(0 0 0 / 35%); }
dialog th, dialog td { padding: 0.3rem 1rem 0.3rem 0; font-size: 0.9375rem; white-space: nowrap; }
dialog td { white-space: normal; }
dialog p { margin-top: 1rem; font-size: 0.9375rem; }

@media screen and (max-width: 46rem) {
  .chart-row { grid-template-columns: 4.6rem minmax(0, 1fr) 4.2rem; gap: 0.6rem; }
  .card { padding: 1.1rem; }
  .figures tr { display: grid; grid-template-columns: 1fr 1fr; border-top: 1px solid var(--line); padding: 0.45rem 0; gap: 0 0.75rem; }
  .figures.sure-figures tr { grid-template-columns: 1fr; }
  .figures thead tr { border: 0; }
  .figures tr > *, .figures tbody th, .figures tbody td { display: block; border: 0; padding: 0 !important; width: auto; }
  .figures:not(.splits) tbody th { grid-column: 1 / -1; }
  .figures:not(.splits) thead th:first-child { position: absolute; }
  .splits tr { grid-template-columns: 1.5fr 0.8fr 1fr 1fr; }
  .splits tr > :last-child { grid-column: 1 / -1; color: var(--soft); }
  .splits thead tr > :last-child { position: absolute; width: 1px; overflow: hidden; clip-path: inset(50%); }
  .group-head { position: static; }
  .rows, .rows tbody { display: block; }
  .rows thead { display: none; }
  .row { display: grid; grid-template-columns: 1fr 1fr; border-top: 1px solid var(--line); box-shadow: inset 3px 0 0 var(--tone); padding: 0.6rem 0.6rem 0.6rem 0.9rem; gap: 0.35rem 0.75rem; }
  .row > *, .row > :first-child, .row:hover > *, .row:has(button.open:focus-visible) > * { border: 0; padding: 0; box-shadow: none; background: none; }
  .row > :first-child, .row > :last-child { grid-column: 1 / -1; }
  .side-name { display: block; font-size: 0.75rem; color: var(--soft); }
  .detail, .detail > td { display: block; }
  .panel { padding: 0.9rem; }
  .provenance thead { display: none; }
  .provenance tr, .provenance td, .provenance tbody th { display: block; width: auto; padding: 0.1rem 0; }
  .provenance tr { padding: 0.4rem 0; }
  .checks thead, .steps > thead { position: absolute; clip-path: inset(50%); height: 1px; overflow: hidden; }
  .checks, .checks tbody, .checks tr, .checks th, .checks td, .steps, .steps tbody, .steps tr, .steps td { display: block; width: auto; }
  .checks tr, .steps tr { border-top: 1px solid var(--line); padding: 0.5rem 0; }
  .checks th, .checks td, .steps td, .steps .first td { border: 0; padding: 0.2rem 0; }
  .steps .differs { background: var(--warn-soft); padding-inline: 0.5rem; }
  .steps .first { border-top: 2px solid var(--warn); }
  .steps .first-label { border: 0; padding-bottom: 0; }
  .checks tbody th { width: auto; }
  .checks td .side-name, .steps td .side-name { display: block; }
}
@media print {
  .filters, dialog, .more button, .turn, .trials button:not([aria-pressed="true"]) { display: none !important; }
  .columns, .stack, .pair.two { display: block; }
  .card, .pair.two > .pane + .pane { margin-top: 0.9rem; }
  .pair.two { columns: 2; }
  .pane { break-inside: avoid; }
  .trials button { border: 0 !important; box-shadow: none !important; padding: 0; }
  .group-head { position: static; break-after: avoid; }
  .row, .steps tr, .checks tr, .reasons li { break-inside: avoid; }
  .row, .panel-head { break-after: avoid; }
  .text, .step-body pre { max-height: none; overflow: visible; }
  .row .why, .row .title { display: block; white-space: normal; overflow: visible; }
  .panel { box-shadow: none; }
  .rows .col-side { width: 8.5rem; }
  .rows thead { display: table-row-group; }
  .cases { margin-top: 1.5rem; }
}
"""
REVIEW_JS = r"""// The review: a table of cases from #index, details from #case-N, parsed when a case is opened.
const index = readJson("index");
const byId = (id) => document.getElementById(id);
const grouped = (number) => number.toLocaleString("en");
const plural = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
const title = (word) => word[0].toUpperCase() + word.slice(1);
const ROWS = 100, PRINTED_ROWS = 1000, PRINTED_DETAILS = 40;
const OUTCOMES = { p: "pass", f: "fail", e: "error", n: "not run", u: "not evaluated", "-": "not applicable" };
const LOST = ["hard_regressed", "hard", "regressed", "newly_flaky", "weakened", "failed", "flaky"];

const groups = new Map(index.groups.map(([key, name, tone, text, closed]) => [key, { key, name, tone, text, closed }]));
const evaluators = index.evaluators.map(([id, type, severity]) => ({ id, type, severity }));
const cases = index.cases.map(([id, group, labels, letters, split, tags, applied, failed, heading, decider, why], position) => (
  { position, id, group, labels, letters, split, tags, applied, failed, heading, decider, why }));
const roles = index.roles;
const last = roles.length - 1; // the candidate's place in letters and failed; before it the baseline's, if there is one

// --- Texts: [text, characters left out, digest, kind], or the text alone; kind 1 is compact JSON, 2 the end of a text.

const plain = (value) => (typeof value === "string" ? value : value[0]);

// Where the bracket at `start` closes, if within 72 characters; else -1.
function closing(text, start) {
  let depth = 0, quoted = false;
  for (let at = start; at < Math.min(text.length, start + 72); at++) {
    const c = text[at];
    if (quoted) {
      if (c === "\\") at++;
      else if (c === '"') quoted = false;
    } else if (c === '"') quoted = true;
    else if ("{[".includes(c)) depth++;
    else if ("}]".includes(c) && --depth === 0) return at;
  }
  return -1;
}

// Compact JSON with line breaks and blanks, also when it was cut; place(n): where its character n stands then.
function pretty(compact) {
  const parts = [], places = new Uint32Array(compact.length + 1);
  let length = 0, depth = 0, quoted = false, inlineUntil = -1;
  const put = (text) => { parts.push(text); length += text.length; };
  const newline = () => put("\n" + "  ".repeat(Math.max(0, depth)));
  for (let at = 0; at < compact.length; at++) {
    const c = compact[at], inline = at <= inlineUntil;
    if (!quoted && !inline && "}]".includes(c)) { depth--; newline(); }
    places[at] = length;
    put(c);
    if (quoted) {
      if (c === "\\" && at + 1 < compact.length) { places[++at] = length; put(compact[at]); } else if (c === '"') quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ":") put(" ");
    else if (c === ",") { if (inline) put(" "); else newline(); }
    else if (!inline && "{[".includes(c)) {
      inlineUntil = closing(compact, at);
      if (inlineUntil < 0) { depth++; newline(); }
    }
  }
  places[compact.length] = length;
  return { text: parts.join(""), place: (n) => places[Math.max(0, Math.min(n, compact.length))] };
}

// A text as shown; place(n): where code point n (as Python counts) of the recorded text stands in it.
function shown(value) {
  const [text, left, , kind] = typeof value === "string" ? [value, 0, "", 0] : value;
  const form = kind === 1 ? pretty(text) : { text, place: (n) => n };
  const units = (n) => {
    if (!/[\ud800-\udbff]/.test(text)) return n;
    let at = 0;
    for (let count = 0; count < n && at < text.length; count++) at += text.codePointAt(at) > 0xffff ? 2 : 1;
    return at;
  };
  return { text: form.text, left, kind, place: (n) => form.place(units(n)) };
}

function cutNote({ left, kind }, role, at) {
  if (!left) return null;
  const where = role ? ` The whole text stands in ${index.files[role]}${at ? `, line ${at}` : ""}.` : "";
  return par("cut", `${plural(left, "character")} ${kind === 2 ? "before this" : "more"}, left out here.${where}`);
}

// Appends text with marks [start, end, tag, key], which may overlap and are then nested.
function paint(parent, text, marks) {
  const edges = [...new Set([0, text.length, ...marks.flatMap(([start, end]) => [start, end])])].filter((edge) => edge <= text.length).sort((a, b) => a - b);
  edges.slice(0, -1).forEach((edge, n) => {
    let spot = parent;
    for (const [start, end, tag, key] of marks) {
      if (start <= edge && end >= edges[n + 1]) spot = spot.appendChild(make(tag, key ? { "data-mark": key } : null));
    }
    addText(spot, text.slice(edge, edges[n + 1]));
  });
  return parent;
}

// --- Differences: E. Myers (1986), An O(ND) difference algorithm and its variations, with a bound on the work.

// Which items of a are not in b (gone) and of b not in a (added); null when that takes more than `limit` edits.
function edits(a, b, limit) {
  const most = Math.min(limit, a.length + b.length), base = most + 1;
  const reach = new Int32Array(2 * most + 3), trace = [];
  for (let d = 0; d <= most; d++) {
    trace.push(reach.slice(base - d - 1, base + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && reach[base + k - 1] < reach[base + k + 1]);
      let x = down ? reach[base + k + 1] : reach[base + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      reach[base + k] = x;
      if (x >= a.length && x - k >= b.length) return walkBack(trace, k, new Uint8Array(a.length), new Uint8Array(b.length));
    }
  }
  return null;
}

function walkBack(trace, k, gone, added) {
  for (let d = trace.length - 1; d > 0; d--) {
    const at = (diagonal) => trace[d][diagonal + d + 1];
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    k += down ? 1 : -1;
    if (down) added[at(k) - k] = 1;
    else gone[at(k)] = 1;
  }
  return { gone, added };
}

// What stayed between two larger changes reads better as part of them.
function joinChanges(a, b, { gone, added }) {
  let i = 0, j = 0, before = 0;
  while (i < a.length || j < b.length) {
    const kept = [];
    let size = 0, left = 0, right = 0;
    while (i < a.length && j < b.length && !gone[i] && !added[j]) { size += a[i].length; kept.push([i++, j++]); }
    while (gone[i]) left += a[i++].length;
    while (added[j]) right += b[j++].length;
    const after = Math.max(left, right);
    if (size <= Math.min(before, after, 24)) for (const [x, y] of kept) gone[x] = added[y] = 1;
    before = after;
  }
}

function ranges(items, flags, tag) {
  const found = [];
  let at = 0;
  items.forEach((item, n) => {
    const previous = found[found.length - 1];
    if (flags[n] && previous && previous[1] === at) previous[1] += item.length;
    else if (flags[n]) found.push([at, at + item.length, tag]);
    at += item.length;
  });
  return found;
}

const WORDS = /[\p{L}\p{N}_]+(?:[.,]\p{N}+)*|\s+|[^\p{L}\p{N}_\s]/gu, LINES = /[^\n]*\n|[^\n]+$/g;

// Marks for both texts, by words or, where they are long, by lines; null when marking would help nobody.
function difference(a, b) {
  for (const [pattern, limit] of [[WORDS, 800], [LINES, 600]]) {
    const left = a.match(pattern) || [], right = b.match(pattern) || [];
    const change = left.length + right.length > 24000 ? null : edits(left, right, limit);
    if (!change) continue;
    const kept = left.reduce((sum, item, n) => sum + (change.gone[n] ? 0 : item.trim().length), 0);
    if (kept < 0.12 * Math.max(a.length, b.length)) return null;
    if (pattern === WORDS) joinChanges(left, right, change);
    return [ranges(left, change.gone, "del"), ranges(right, change.added, "ins")];
  }
  return null;
}

// [[place in a or null, place in b or null, same]] of two trajectories: most equal steps, then most of one kind and name.
function alignSteps(a, b) {
  const kind = (step) => JSON.stringify([step.kind, step.name, step.role]);
  const key = (step) => kind(step) + JSON.stringify([step.args, step.text]);
  const [keysA, keysB, kindsA, kindsB] = [a.map(key), b.map(key), a.map(kind), b.map(kind)];
  const value = (i, j) => (keysA[i] === keysB[j] ? 5 : kindsA[i] === kindsB[j] ? 2 : 0);
  const best = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const pair = value(i, j);
      best[i][j] = Math.max(best[i + 1][j], best[i][j + 1], pair && pair + best[i + 1][j + 1]);
    }
  }
  const rows = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    const pair = i < a.length && j < b.length ? value(i, j) : 0;
    if (pair && best[i][j] === pair + best[i + 1][j + 1]) rows.push([i, j, keysA[i++] === keysB[j++]]);
    else if (j >= b.length || (i < a.length && best[i][j] === best[i + 1][j])) rows.push([i++, null, false]);
    else rows.push([null, j++, false]);
  }
  return rows;
}

// --- Rows.

const dot = (letter) => span(`dot ${letter === "-" ? "n" : letter}`);
const sign = (tone) => make("span", { class: `sign sign-${tone}`, "aria-hidden": "true" });

function outcomeText(letters) {
  const count = (letter) => letters.split(letter).length - 1;
  const extra = ["e", "n", "u"].filter(count).map((letter) => (letter === "e" ? plural(count("e"), "error") : `${count(letter)} ${OUTCOMES[letter]}`));
  return [`${count("p")} of ${letters.length} passed`, ...extra].join(", ");
}

function dotStrip(letters, role) {
  const text = outcomeText(letters);
  return [make("span", { class: "dots", role: "img", "aria-label": `${role}: ${text}` }, [...letters].slice(0, 60).map(dot)),
    make("span", { class: "share", "aria-hidden": "true" }, text.replace(" passed", ""))];
}

// Binding evaluators that fail only now, or only before: [letter, number, words].
function turned(item) {
  const only = (side) => item.failed[side].filter((number) => !item.failed[1 - side].includes(number) && ["hard", "gate"].includes(evaluators[number].severity));
  return last ? [...only(1).map((number) => ["f", number, "fails now"]), ...only(0).map((number) => ["p", number, "passes now"])].slice(0, 4) : [];
}

function caseRow(item) {
  const marks = turned(item);
  const isNamed = item.decider < 0 || marks.some(([, number]) => number === item.decider);
  return line({ class: "row", "data-position": item.position },
    rowHead(button({ class: "open", "aria-expanded": "false" }, addText(span(), item.id)),
      item.labels.map((label) => [" ", span("tag", label)]), textElement("span", { class: "title" }, item.heading)),
    roles.map((role, side) => cell(null, span("side-name", title(role)), dotStrip(item.letters[side], role))),
    cell(null,
      marks.length > 0 && span("chips", marks.map(([letter, number, words]) => span("chip", dot(letter), addText(span(), evaluators[number].id), span("unseen", words)))),
      item.why && textElement("span", { class: "why" }, `${groups.get(item.group).tone === "good" ? "before: " : ""}${isNamed ? "" : `${evaluators[item.decider].id}: `}${item.why}`)));
}

// --- Sections of an open case; `sides` is [{role, trial, data}], data undefined for a trial that is not there.

// The detail of a case; texts and steps that stand in it by number are put in their places.
function caseDetail(source) {
  const detail = JSON.parse(source.textContent);
  const text = (value) => (typeof value === "number" ? detail.texts[value] : value);
  for (const step of detail.steps) for (const key of ["args", "text", "result"]) step[key] = text(step[key]);
  for (const trial of Object.values(detail.trials).flatMap(Object.values)) {
    trial.output = text(trial.output);
    trial.steps = trial.steps && trial.steps.map((number) => detail.steps[number]);
    for (const check of trial.checks) check[4] = text(check[4]);
  }
  return detail;
}

const sideName = ({ role, trial }) => `${title(role)}, trial ${trial}`;
const section = (name, note, ...children) => make("section", null, make("h4", null, name, note && make("small", null, note)), children);
const missing = (words) => par("missing", words);
const pane = (name, ...children) => make("div", { class: "pane" }, par("pane-name", name), children);
const pair = (panes) => make("div", { class: panes.length > 1 ? "pair two" : "pair" }, panes);

function textBox(form, label, marks) {
  const box = make("pre", { class: form.kind === 0 ? "text prose" : "text", tabindex: "0", role: "region", "aria-label": label });
  return form.text ? paint(box, form.text, marks || []) : make("div", null, missing("an empty text"));
}

function errorSection(sides) {
  const found = sides.filter(({ data }) => data && (data.error || data.tries));
  return found.length > 0 && section("Errors", null, pair(found.map((side) => {
    const { error = {}, tries } = side.data, stderr = error.stderr && shown(error.stderr);
    const head = ["class", "type"].filter((key) => error[key]).map((key) => plain(error[key]));
    if (error.exit_code) head.push(`exit ${error.exit_code}`);
    return pane(sideName(side), textElement("p", null, [...new Set(head)].join(" · ")), error.message && par("said", plain(error.message)),
      stderr && [par("pane-name", "End of standard error"), textBox(stderr, `standard error, ${side.role}`), cutNote(stderr)],
      tries && par("small", `After ${plural(tries.length, "earlier attempt")}.`));
  })));
}

function askedSection(detail) {
  const blocks = ["input", "expected", "context"].filter((key) => detail[key] !== undefined).map((key) => {
    const form = shown(detail[key]);
    return pane(title(key), textBox(form, key), cutNote(form));
  });
  return section(detail.expected === undefined ? "What was asked" : "What was asked, and what is expected", null, pair(blocks));
}

function light(target) {
  if (!target) return;
  document.querySelector(".lit")?.classList.remove("lit");
  target.classList.add("lit");
  target.scrollIntoView({ block: "center" });
}

// Buttons that lead to the evidence of a check: a step, or characters of the output.
function pointers(check, role, panel) {
  const found = (check[5] || []).map((pointer, n) => {
    if (typeof pointer === "string") return addText(span(), pointer);
    const [words, target] = pointer.step !== undefined ? [`step ${pointer.step}`, `[data-step="${role}-${pointer.step}"]`]
      : [pointer.text ? `“${pointer.text}”` : `characters ${pointer.start} to ${pointer.end}`, `[data-mark="${role}-${check[0]}-${n}"]`];
    return button({ onclick: () => light(panel.querySelector(target)) }, addText(span(), words));
  });
  return found.length > 0 && make("div", { class: "pointers" }, found);
}

function checkCell(detail, { role, data }, number, panel) {
  const check = data && data.checks.find((each) => each[0] === number);
  if (!check) return cell(null, missing(data ? "not part of this trial" : "no such trial"));
  const trials = Object.values(detail.trials[role]);
  const passed = trials.filter((trial) => trial.checks.some((each) => each[0] === number && each[1] === "p")).length;
  const extra = [![null, 0, 1].includes(check[2]) && `score ${check[2]}`, check[3] !== null && !/^[{[]/.test(check[3]) && `value ${check[3]}`,
    passed > 0 && passed < trials.length && `passes in ${passed} of ${trials.length} trials`].filter(Boolean).join(", ");
  return cell(null, span("side-name", title(role)), span("status", dot(check[1]), OUTCOMES[check[1]]),
    textElement("span", { class: "reason" }, plain(check[4])), extra && textElement("small", null, extra), pointers(check, role, panel));
}

function checkSection(detail, sides, panel) {
  const numbers = [...new Set(sides.flatMap(({ data }) => (data ? data.checks.map((check) => check[0]) : [])))];
  return section("Evaluators", null, numbers.length ? table("checks", "What each evaluator said", ["Evaluator", ...sides.map(sideName)], numbers.map((number) => {
    const { id, type, severity } = evaluators[number];
    return line(null, rowHead(addText(span(), id), textElement("small", null, `${type}, ${severity}`)), sides.map((side) => checkCell(detail, side, number, panel)));
  })) : missing("No evaluator has looked at this trial."));
}

function outputPane(side, form, marks, name) {
  const places = side.data.checks.flatMap((check) => (check[5] || []).map((pointer, n) => [
    form.place(pointer.start), form.place(pointer.end), "mark", `${side.role}-${check[0]}-${n}`]).filter(([start, end]) => start < end));
  return pane(name, textBox(form, `output, ${name}`, [...marks, ...places]), cutNote(form, side.role, side.data.line));
}

const absentPane = (side, words) => pane(sideName(side), missing(side.data ? words : "This trial was not run."));

function outputSection(sides) {
  const forms = sides.map(({ data }) => data && data.output !== undefined && shown(data.output));
  const both = forms.length > 1 && forms.every(Boolean);
  if (both && JSON.stringify(sides[0].data.output) === JSON.stringify(sides[1].data.output)) {
    return section("Output", "the same on both sides", outputPane(sides[1], forms[1], [], `Both, trial ${sides[1].trial}`));
  }
  const marks = both && difference(forms[0].text, forms[1].text);
  return section("Output", both && (marks ? "struck out: only before; underlined: only now" : "too different to mark words"),
    pair(sides.map((side, n) => (forms[n] ? outputPane(side, forms[n], marks ? marks[n] : [], sideName(side)) : absentPane(side, "There is no output.")))));
}

function stepCell(step, place, role) {
  const name = span("side-name", title(role));
  if (!step) return cell(null, name, span("gap", "nothing here"));
  const part = (key, tag) => {
    if (step[key] === undefined) return null;
    const form = shown(step[key]);
    return [textElement(tag, { class: key }, form.text), cutNote(form)];
  };
  const odd = step.status && step.status !== "ok";
  return cell(null, name, make("div", { class: "step", "data-step": `${role}-${place}` },
    make("div", { class: "step-head" }, span("step-number", String(place)), textElement("span", { class: "step-name" }, step.name || step.role || step.kind || "step"),
      textElement("span", { class: "step-kind" }, [step.kind, step.agent].filter(Boolean).join(" · ")),
      odd && span("chip", dot("e"), addText(span(), step.status))),
    make("div", { class: "step-body" }, part("args", "pre"), part("text", "p"), part("result", "pre"),
      step.truncated && par("small", `cut short by the runner: ${step.truncated.join(", ")}`))));
}

function stepSection(sides) {
  const lists = sides.map(({ data }) => data && data.steps);
  const more = sides.filter(({ data }) => data && data.more).map(({ role, data }) => par("cut", `${plural(data.more, "further step")} of the ${role}: ${index.files[role]}, line ${data.line}.`));
  if (!lists.some(Boolean)) return section("Trajectory", null, missing("No steps were recorded."));
  if (!last || !lists.every(Boolean)) {
    return section("Trajectory", null, pair(sides.map((side, n) => (lists[n] ? pane(sideName(side), table("steps", `Steps of the ${side.role}`, [], lists[n].map((step, at) => line(null, stepCell(step, at, side.role)))))
      : absentPane(side, "No steps were recorded.")))), more);
  }
  const aligned = alignSteps(...lists);
  const first = aligned.findIndex(([, , same]) => !same);
  const rows = aligned.map(([left, right, same], n) => [
    n === first && line({ class: "first-label" }, cell({ colspan: "2" }, "First difference")),
    line({ class: `${same ? "" : "differs"} ${n === first ? "first" : ""}` }, stepCell(lists[0][left], left, roles[0]), stepCell(lists[1][right], right, roles[1]))]);
  return section("Trajectory", first < 0 ? "the same steps on both sides" : `the same before step ${first}`,
    table("steps", "Steps of both sides, aligned", sides.map(sideName), rows), more);
}

function measures(sides) {
  return sides.filter(({ data }) => data).map((side) => {
    const { outcome, score, duration_ms: time, cost_usd: cost, usage = [], finish, line: at } = side.data;
    const facts = [OUTCOMES[outcome], score === undefined ? "score not measured" : `score ${score}`, time === undefined ? "duration not measured" : `${grouped(time)} ms`,
      cost === undefined ? "cost not measured" : `$${cost}`, ...usage.map((each) => each.join(" ")), finish && `finished: ${finish}`, at && `${index.files[side.role]}, line ${at}`];
    return par("small measure", `${sideName(side)}: ${facts.filter(Boolean).join(" · ")}`);
  });
}

// --- The open case.

const trialOf = (detail, role, trial) => (detail.trials[role] || {})[trial];
const outcomeOf = (detail, role, trial) => (trialOf(detail, role, trial) || { outcome: "n" }).outcome;

function trialPicker(detail, trials, chosen, choose) {
  return trials.length > 1 && make("div", { class: "trials", role: "group", "aria-label": "Trial" }, "Trial", trials.map((trial) => {
    const letters = roles.map((role) => outcomeOf(detail, role, trial));
    const words = roles.map((role, n) => `${role} ${OUTCOMES[letters[n]]}`).join(", ");
    return button({ "aria-pressed": String(trial === chosen), "aria-label": `Trial ${trial}: ${words}`, onclick: () => choose(trial) },
      String(trial), letters.map((letter, n) => [n > 0 && make("span", { "aria-hidden": "true" }, "→"), dot(letter)]));
  }));
}

function fillPanel(panel, item, wanted) {
  const source = byId(`case-${item.position}`);
  if (!source) {
    const isLoading = document.readyState === "loading";
    panel.replaceChildren(missing(isLoading ? "The page is still being read …"
      : `The texts of this case are left out, because the page would be larger than 20 MB. They stand in ${Object.values(index.files).join(" and ")}.`));
    if (isLoading) document.addEventListener("DOMContentLoaded", () => fillPanel(panel, item, wanted), { once: true });
    return;
  }
  const detail = caseDetail(source);
  const trials = [...new Set(roles.flatMap((role) => Object.keys(detail.trials[role] || {})).map(Number))].sort((a, b) => a - b);
  const facts = [item.split && `split: ${item.split}`, ...item.tags.map((tag) => `tag: ${tag}`), ...detail.facts.map(([label, value]) => `${label}: ${plain(value)}`)].filter(Boolean);
  const show = (trial, focus) => {
    const sides = roles.map((role) => ({ role, trial, data: trialOf(detail, role, trial) }));
    panel.dataset.trial = trial;
    panel.replaceChildren(
      make("div", { class: "panel-head" }, make("p", { class: "facts" }, facts.map((fact) => textElement("span", { class: "tag" }, fact))),
        trialPicker(detail, trials, trial, (next) => { show(next, true); address.write(); })),
      ...[errorSection(sides), askedSection(detail), checkSection(detail, sides, panel), outputSection(sides), stepSection(sides), ...measures(sides)].filter(Boolean));
    if (focus) panel.querySelector('.trials [aria-pressed="true"]').focus();
  };
  panel.turn = (by) => {
    const next = trials[trials.indexOf(Number(panel.dataset.trial)) + by];
    if (next) { show(next); address.write(); }
  };
  // The trial that shows most: one that got worse, else one that differs, else the first.
  const differs = (trial) => outcomeOf(detail, "candidate", trial) !== outcomeOf(detail, "baseline", trial);
  const worse = trials.find((trial) => outcomeOf(detail, "candidate", trial) === "f" && differs(trial));
  show(trials.includes(wanted) ? wanted : worse || trials.find(differs) || trials[0] || 1);
}

// --- The list: groups of rows, drawn in pieces.

const opened = new Map(); // position -> trial asked for, of the cases that are open
const toggled = new Map(); // group key -> opened or closed by hand
let views = [], current = null, isPrinting = false;

const rowOf = (position) => document.querySelector(`.row[data-position="${position}"]`);
const panelOf = (position) => byId(`detail-${position}`)?.querySelector(".panel");

function detailRow(item) {
  const panel = make("div", { class: "panel" });
  fillPanel(panel, item, opened.get(item.position));
  return line({ class: "detail", id: `detail-${item.position}` }, cell({ colspan: roles.length + 2 }, panel));
}

function drawRows(view, upTo) {
  for (const item of view.items.slice(view.drawn, upTo)) {
    view.body.append(caseRow(item));
    if (opened.has(item.position)) openCase(item.position, opened.get(item.position), view.body.lastChild);
  }
  view.drawn = Math.max(view.drawn, Math.min(view.items.length, upTo));
  const left = view.items.length - view.drawn;
  view.more.hidden = !left;
  view.more.replaceChildren(button({ onclick: () => {
    const next = view.items[view.drawn];
    drawRows(view, view.drawn + ROWS);
    focusCase(next.position);
  } }, `Show ${Math.min(left, ROWS)} more`), `${grouped(left)} not shown`);
}

function groupView(group, items) {
  const isOpen = isPrinting || (toggled.has(group.key) ? toggled.get(group.key) : !group.closed || filters.active());
  const rows = table("rows", `${group.name}: ${plural(items.length, "case")}`, ["Case", ...roles.map(title), last ? "What changed" : "What decided"], []);
  rows.firstChild.after(make("colgroup", null, ["", ...roles.map(() => "col-side"), "col-why"].map((kind) => make("col", { class: kind }))));
  const view = { group, items, isOpen, drawn: 0, body: rows.lastChild, more: make("p", { class: "more" }) };
  const content = make("div", { id: `group-${group.key}`, hidden: !isOpen }, rows, view.more);
  const turn = (event) => {
    view.isOpen = !view.isOpen;
    toggled.set(group.key, view.isOpen);
    content.hidden = !view.isOpen;
    event.currentTarget.setAttribute("aria-expanded", String(view.isOpen));
    if (view.isOpen && !view.drawn) drawRows(view, ROWS);
  };
  view.section = make("section", { class: `group tone-${group.tone}`, "aria-labelledby": `title-${group.key}` },
    make("div", { class: "group-head" },
      make("h3", { id: `title-${group.key}` }, button({ "aria-expanded": String(isOpen), "aria-controls": content.id, onclick: turn },
        make("span", { class: "turn", "aria-hidden": "true" }), sign(group.tone), group.name, " ", span("number", grouped(items.length)))),
      make("p", null, group.text)), content);
  if (isOpen) drawRows(view, isPrinting ? PRINTED_ROWS : ROWS);
  return view;
}

function drawList() {
  const matching = cases.filter(filters.accepts());
  const byGroup = new Map([...groups.keys()].map((key) => [key, []]));
  for (const item of matching) byGroup.get(item.group).push(item);
  views = [...byGroup].filter(([, items]) => items.length).map(([key, items]) => groupView(groups.get(key), items));
  const nothing = par("empty", cases.length ? "No case fits these filters." : "No case to show.");
  byId("cases").replaceChildren(...(views.length ? views.map((view) => view.section) : [nothing]));
  byId("count").textContent = matching.length === cases.length ? plural(cases.length, "case") : `${grouped(matching.length)} of ${plural(cases.length, "case")}`;
  byId("clear").hidden = !filters.active();
}

// The row of a case, drawn and in an open group; null when the filters leave it out.
function reveal(position) {
  const view = views.find(({ group }) => group.key === cases[position].group);
  const place = view ? view.items.indexOf(cases[position]) : -1;
  if (place < 0) return null;
  if (!view.isOpen) view.section.querySelector("h3 button").click();
  if (place >= view.drawn) drawRows(view, place + 50);
  return rowOf(position);
}

function openCase(position, trial, row) {
  opened.set(position, trial);
  byId(`detail-${position}`)?.remove();
  row.after(detailRow(cases[position]));
  row.querySelector(".open").setAttribute("aria-expanded", "true");
}

function toggleCase(position) {
  current = position;
  if (!opened.has(position)) openCase(position, undefined, rowOf(position));
  else {
    opened.delete(position);
    byId(`detail-${position}`).remove();
    rowOf(position).querySelector(".open").setAttribute("aria-expanded", "false");
  }
  address.write();
}

function focusCase(position, block) {
  const row = reveal(position);
  if (!row) return;
  current = position;
  row.querySelector(".open").focus({ preventScroll: true });
  row.scrollIntoView({ block: block || "nearest" });
}

// --- Filters, and the address that keeps them.

const filters = {
  clear() { Object.assign(this, { changes: new Set(), split: "", tag: "", evaluator: "", how: "failed", query: "" }); },
  active() { return this.changes.size > 0 || [this.split, this.tag, this.evaluator, this.query].some(Boolean); },
  // A function that says if a case fits.
  accepts() {
    const number = evaluators.findIndex(({ id }) => id === this.evaluator);
    const failed = (item, side) => item.failed[side].includes(number);
    const asked = {
      failed: (item) => failed(item, last), before: (item) => failed(item, 0), any: (item) => item.applied.includes(number),
      new: (item) => failed(item, last) && !failed(item, 0),
    }[this.how];
    const holds = this.query && textSearch(this.query);
    return (item) => (!this.changes.size || this.changes.has(item.group)) && (!this.split || item.split === this.split)
      && (!this.tag || item.tags.includes(this.tag)) && (!this.evaluator || asked(item)) && (!holds || holds(item));
  },
};

// Searches what stands in the row, then the texts of the case: first as JSON text, which is fast, then for certain.
function textSearch(query) {
  const lower = query.toLowerCase();
  const inside = (value) => (typeof value === "string" ? value.toLowerCase().includes(lower) : value !== null && typeof value === "object" && Object.values(value).some(inside));
  const json = JSON.stringify(query).slice(1, -1).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
  const pattern = new RegExp(json.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "i");
  return (item) => {
    if (inside([item.id, item.heading, item.why, item.tags])) return true;
    const source = byId(`case-${item.position}`);
    return source !== null && pattern.test(source.textContent) && inside(JSON.parse(source.textContent));
  };
}

const distinct = (values) => [...new Set(values)].filter(Boolean).sort();
const choices = { split: distinct(cases.map(({ split }) => split)), tag: distinct(cases.flatMap(({ tags }) => tags)), evaluator: evaluators.map(({ id }) => id) };

const address = {
  write() {
    const [open] = [...opened.keys()].slice(-1), panel = open === undefined ? null : panelOf(open);
    const parts = { change: [...filters.changes].join(","), split: filters.split, tag: filters.tag, evaluator: filters.evaluator,
      how: filters.evaluator && filters.how !== "failed" ? filters.how : "", q: filters.query,
      case: open === undefined ? "" : cases[open].id, trial: panel?.querySelector(".trials") ? panel.dataset.trial : "" };
    const hash = new URLSearchParams(Object.entries(parts).filter(([, value]) => value)).toString();
    if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  },
  // Sets the filters; returns the case that is named, if any, and the trial.
  read() {
    const parts = new URLSearchParams(location.hash.slice(1));
    const known = (key, list) => (list.includes(parts.get(key)) ? parts.get(key) : "");
    filters.clear();
    for (const key of (parts.get("change") || "").split(",")) if (groups.has(key)) filters.changes.add(key);
    for (const [key, list] of Object.entries(choices)) filters[key] = known(key, list);
    filters.how = known("how", ["new", "before", "any"]) || "failed";
    filters.query = parts.get("q") || "";
    const wanted = parts.has("case") && cases.find(({ id }) => id === parts.get("case"));
    // A case asked for by name is shown, whatever the filters say.
    if (wanted && !filters.accepts()(wanted)) filters.clear();
    return [wanted, Number(parts.get("trial")) || undefined];
  },
};

function showFilters() {
  for (const id of [...Object.keys(choices), "how"]) byId(id).value = filters[id];
  byId("how").disabled = !filters.evaluator;
  if (byId("query").value !== filters.query) byId("query").value = filters.query;
  for (const each of byId("changes").children) each.setAttribute("aria-pressed", String(filters.changes.has(each.dataset.change)));
}

function refilter() {
  toggled.clear();
  showFilters();
  drawList();
  address.write();
}

function prepareFilters() {
  byId("filters").hidden = false;
  const counts = new Map();
  for (const { group } of cases) counts.set(group, (counts.get(group) || 0) + 1);
  byId("changes").append(...[...groups.values()].filter(({ key }) => counts.has(key)).map(({ key, name, tone }) => button({ class: `tone-${tone}`, "data-change": key, onclick: () => { if (!filters.changes.delete(key)) filters.changes.add(key); refilter(); } },
    sign(tone), `${name} ${grouped(counts.get(key))}`)));
  for (const [id, values] of Object.entries({ ...choices, how: null })) {
    const select = byId(id);
    if (values) select.append(make("option", { value: "" }, "all"), ...values.map((value) => textElement("option", { value }, value)));
    select.closest(".field").hidden = !(values || choices.evaluator).length;
    select.addEventListener("change", () => { filters[id] = select.value; refilter(); });
  }
  if (!last) for (const value of ["new", "before"]) byId("how").querySelector(`[value="${value}"]`).remove();
  let timer = 0;
  byId("query").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { filters.query = byId("query").value.trim(); refilter(); }, 150);
  });
  byId("clear").addEventListener("click", () => { filters.clear(); refilter(); byId("query").focus(); });
}

// --- Mouse, keys, paper.

byId("cases").addEventListener("click", (event) => {
  const row = event.target.closest(".row");
  if (row && !getSelection().toString()) toggleCase(Number(row.dataset.position));
});
byId("cases").addEventListener("focusin", (event) => {
  const row = event.target.closest(".row") || event.target.closest(".detail")?.previousElementSibling;
  if (row) current = Number(row.dataset.position);
});

// Moves to the next case, or around to the next that lost.
function move(by, onlyLost) {
  const places = views.filter((view) => (onlyLost ? LOST.includes(view.group.key) : view.isOpen)).flatMap((view) => view.items.map(({ position }) => position));
  const here = current ?? -1, next = by > 0 ? places.find((place) => place > here) : places.findLast((place) => place < here);
  if (places.length) focusCase(next ?? places.at((by > 0) === Boolean(onlyLost) ? 0 : -1));
}

const openHelp = () => byId("help").showModal();
const keys = {
  j: () => move(1), k: () => move(-1), n: () => move(1, true), p: () => move(-1, true),
  o: () => { if (current !== null && reveal(current)) toggleCase(current); },
  "[": () => panelOf(current)?.turn(-1), "]": () => panelOf(current)?.turn(1),
  "/": () => { byId("query").focus(); byId("query").select(); }, "?": openHelp,
  Escape: () => {
    const wasSearching = document.activeElement === byId("query");
    if (wasSearching) byId("query").blur();
    else if (opened.has(current) && reveal(current)) toggleCase(current);
    if (current !== null) focusCase(current);
  },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const isTyping = event.target.closest("input:not([type=radio], [type=checkbox]), select, textarea");
  if (event.key !== "Escape" && (isTyping || !byId("keys-on").checked)) return;
  // Enter on a button is its own; elsewhere it opens the current case.
  const key = event.key === "Enter" && !event.target.closest("button, a, label") ? "o" : event.key;
  if (!Object.hasOwn(keys, key)) return;
  event.preventDefault();
  keys[key]();
});
byId("open-help").addEventListener("click", openHelp);
byId("close-help").addEventListener("click", () => byId("help").close());

// On paper everything is open, up to a bound.
addEventListener("beforeprint", () => {
  isPrinting = true;
  const before = [...opened];
  for (const { position } of cases.filter(({ group }) => !groups.get(group).closed).slice(0, PRINTED_DETAILS)) if (!opened.has(position)) opened.set(position);
  drawList();
  addEventListener("afterprint", () => {
    isPrinting = false;
    opened.clear();
    for (const [position, trial] of before) opened.set(position, trial);
    drawList();
  }, { once: true });
});

function start() {
  const [wanted, trial] = address.read();
  opened.clear();
  if (wanted) opened.set(wanted.position, trial);
  showFilters();
  drawList();
  if (wanted) focusCase(wanted.position, "start");
}
prepareFilters();
start();
addEventListener("hashchange", start);
document.addEventListener("DOMContentLoaded", () => { if (filters.query) drawList(); }, { once: true });
"""

ROLES = ("baseline", "candidate")
GROUP_ORDER = {group.key: number for number, group in enumerate(GROUPS)}


class StageView(NamedTuple):
    """One stage of the review: its role, name, files, and meta documents ({} when there is none)."""

    role: str
    stage: str
    observations_path: str
    results_path: str
    meta: JsonObject
    results_meta: JsonObject


class ReviewData(NamedTuple):
    """What a review shows.

    `comparison` is the document of comparison.json; `stages` has "candidate" and, unless one stage stands
    alone, "baseline"; ids in `holdout` are counted and not shown; `reliability` is what `judged_entry` gives.
    """

    comparison: JsonObject
    name: str
    shown_folder: str
    stages: dict[str, StageView]
    cases: dict[str, Case]
    holdout: frozenset[str]
    holdout_opened: int
    decision: Decision | None
    decide_command: str
    reliability: JsonObject | None = None


class PageRow(NamedTuple):
    """A case that the page shows: its place in a group, its row of comparison.json."""

    case: Case
    group: str
    row: JsonObject


def page_rows(review: ReviewData) -> list[PageRow]:
    """The cases that may be shown, in the order of the page: by group, then as the dataset has them."""
    rows = []
    for row in review.comparison["cases"]:
        case = review.cases.get(row["id"])
        if case is not None and row["id"] not in review.holdout:
            rows.append(PageRow(case, group_of(row, bool(case.document.get("critical"))), row))
    return sorted(rows, key=lambda item: GROUP_ORDER[item.group])


def write_review_page(path: str, review: ReviewData) -> None:
    """Writes review.html as *path*. Reads the stage files twice and holds the texts of one trial at a time.

    Raises InputError when a file cannot be read or the page not be written.
    """
    rows = page_rows(review)
    evaluators = EvaluatorTable()
    shown = {item.case.id for item in rows}
    roles = [role for role in ROLES if role in review.stages]
    stages = {
        role: StageEvidence(review.stages[role].observations_path, review.stages[role].results_path, shown, evaluators) for role in roles
    }
    try:
        with replacing(path) as stream:
            write_review_stream(stream, review, rows, stages, evaluators)
    finally:
        for stage in stages.values():
            stage.close()


def write_review_stream(
    stream: IO[bytes], review: ReviewData, rows: list[PageRow], stages: dict[str, StageEvidence], evaluators: EvaluatorTable
) -> None:
    """The page as bytes: frame and plain HTML, the index, the script, the details of each case."""
    limits = page_limits(rows, stages)
    title = f"{headline_parts(review.comparison)[0]} · {review.name} · Kaizen review"
    before, between, after = page_frame(title, "review", REVIEW_CSS, REVIEW_JS)
    index = [index_row(item, stages) for item in rows]
    body = review_body(review, rows, stages, evaluators) + "\n" + script_data("index", index_document(review, index, stages, evaluators))
    stream.write((before + body + between).encode("utf-8", "replace"))
    without_texts = 0
    for number, item in enumerate(rows):
        keeps_texts = stream.tell() < BIG_PAGE or is_kept(item, stages)
        without_texts += not keeps_texts
        if keeps_texts:
            stream.write(script_data(f"case-{number}", case_detail(item.case, stages, limits, evaluators)).encode("utf-8", "replace"))
    if without_texts:
        text = (
            f"Listed without texts, because the page would be larger than 20 MB: {counted(without_texts, 'unchanged case')} that passed. "
            "The stage files hold the texts."
        )
        stream.write(f'<p class="small size-note">{html_text(text)}</p>'.encode())
    stream.write(after.encode("utf-8", "replace"))


def is_kept(item: PageRow, stages: dict[str, StageEvidence]) -> bool:
    """True for a case that changed, could not be compared, or failed somewhere: its texts stay however large the page is."""
    return item.group not in ("unchanged", "passed") or any(side["fail"] or side["error"] for side in map(item.row.get, stages) if side)


def page_limits(rows: list[PageRow], stages: dict[str, StageEvidence]) -> TextLimits:
    """How much of each text the page keeps."""
    every: list[int] = []
    kept: list[int] = []
    for item in rows:
        lengths = [length for stage in stages.values() for length in stage.lengths(item.case.id)]
        every += lengths
        if is_kept(item, stages):
            kept += lengths
    return text_limits(every, kept)


def row_note(item: PageRow, stages: dict[str, StageEvidence]) -> tuple[int, str]:
    """(number of the evaluator that decided the case or -1, why in one line): the candidate's failure, for a gain the baseline's."""
    stage = stages.get("baseline" if item.group in GAINED_GROUPS else "candidate")
    note = stage.notes.get(item.case.id) if stage else None
    if item.group == "not_comparable":
        return -1, row_reason(item.row)
    if note is None:
        return -1, ""
    return note.evaluator, note.reason


def note_text(item: PageRow, stages: dict[str, StageEvidence], evaluators: EvaluatorTable) -> str:
    """What decided the case, as one line that names the evaluator."""
    number, text = row_note(item, stages)
    before = "before: " if item.group in GAINED_GROUPS else ""
    return text if number < 0 else f"{before}{evaluators.rows[number][0]}: {text}"


def review_side(review: ReviewData) -> str:
    """The cards beside the numbers: the reasons, and the decision with its command."""
    comparison = review.comparison
    decision = decision_html(review.decision, str(comparison.get("evidence", "")), review.decide_command)
    is_decided = review.decision is not None and review.decision.status != "pending"
    reasons = card_html("reasons", "Why this recommendation", reasons_html(comparison, review.holdout))
    title = "The decision" if is_decided else "The decision is yours"
    return f'<div class="stack">\n{reasons}{card_html("decision", title, decision)}</div>'


def review_body(review: ReviewData, rows: list[PageRow], stages: dict[str, StageEvidence], evaluators: EvaluatorTable) -> str:
    """The part of the page that can be read without JavaScript."""
    comparison = review.comparison
    names = {role: review.stages[role].stage for role in stages}
    hidden = hidden_sentence(hidden_count((row["id"] for row in comparison["cases"]), review.holdout), review.holdout_opened)
    verdict, because = headline_parts(comparison)
    changed = [item for item in rows if item.group != "unchanged"]
    static = [StaticRow(item.case.id, item.group, item.row, note_text(item, stages, evaluators)) for item in changed]
    made = {role: (review.stages[role].meta, review.stages[role].results_meta, review.stages[role].stage) for role in stages}
    lines = [
        f"{os.path.basename(review.stages[role].observations_path)}: {counted(stage.unreadable, 'line')} could not be read."
        for role, stage in stages.items()
        if stage.unreadable
    ]
    return fill_template(
        REVIEW_HTML,
        {
            "tone": TONES[comparison["recommendation"]],
            "name": html_text(review.name),
            "verdict": html_text(verdict),
            "because": html_text(because),
            "changes": html_text(" ".join(part for part in (change_sentence(comparison), hidden) if part)),
            "notes": notes_html(comparison),
            "numbers_title": "Before and after" if len(stages) > 1 else "The numbers",
            "chart": chart_html(comparison, list(stages)),
            "numbers": numbers_html(comparison, names),
            "splits": splits_html(comparison, names),
            "side": review_side(review) if len(stages) > 1 else "",
            "reliability": reliability_html(review.reliability),
            "cases": static_cases_html(static, len(stages) > 1),
            "provenance": provenance_html(comparison, made, lines),
        },
    )


def index_row(item: PageRow, stages: dict[str, StageEvidence]) -> list[object]:
    """[id, group, labels, letters by role, split, tags, applied, failed by role, title, deciding evaluator, why]."""
    document, row, case_id = item.case.document, item.row, item.case.id
    labels = ["critical"] if document.get("critical") else []
    labels += [CHANGE_WORDS[row["change"]]] if item.group in ("hard_regressed", "hard") and row["change"] else []
    applied = sorted({number for stage in stages.values() for number in stage.applied.get(case_id, ())})
    return [
        case_id,
        item.group,
        labels,
        [stage.letters(case_id, row[role]["planned"]) for role, stage in stages.items()],
        document.get("split") or "",
        document.get("tags") or [],
        applied,
        [list(stage.failed.get(case_id, ())) for stage in stages.values()],
        case_title(document.get("input")),
        *row_note(item, stages),
    ]


def index_document(
    review: ReviewData, index: list[list[object]], stages: dict[str, StageEvidence], evaluators: EvaluatorTable
) -> JsonObject:
    """What the page's script needs before any case is opened."""
    return {
        "roles": list(stages),
        "files": {role: os.path.basename(review.stages[role].observations_path) for role in stages},
        "groups": [list(group) for group in GROUPS],
        "evaluators": [list(row) for row in evaluators.rows],
        "cases": index,
    }


def review_markdown(review: ReviewData) -> str:
    """The text of review.md: at most 60,000 characters, safe to post as a comment; it pings nobody."""
    evaluators = EvaluatorTable()
    wanted = [item for item in page_rows(review) if item.group not in ("unchanged", "passed")]
    shown = {item.case.id for item in wanted}
    stages = {}
    for role in [role for role in ROLES if role in review.stages]:
        stages[role] = StageEvidence("", review.stages[role].results_path, shown, evaluators)
        stages[role].close()
    rows = [MarkdownRow(item.case.id, item.group, item.row, note_text(item, stages, evaluators)) for item in wanted]
    hidden = hidden_sentence(hidden_count((row["id"] for row in review.comparison["cases"]), review.holdout), review.holdout_opened)
    names = {role: review.stages[role].stage for role in stages}
    sure = reliability_markdown(review.reliability)
    return markdown_document(review.comparison, review.name, names, rows, hidden, review.decision, review.decide_command, sure)

# endregion

# region commands/table.py
# =============================================================================
# The table of commands, and how a module adds one to it.
#
#     @command("gate", "Prints the recommendation, for CI.", [IMPROVEMENT, Argument("--junit", "FILE", "…")], "kaizen gate refund")
#     def command_gate(args: Namespace) -> Answer: ...
#
# Help, the docs table and completion come from this table. To add a command: one file in
# commands/, nothing else. A command returns an Answer; `cli.main` prints it, as text or as
# one JSON document.
# =============================================================================


class Answer(NamedTuple):
    """What a command found: exit code, reason code, one sentence, the next step, data for --json, lines for people."""

    code: int
    reason: str
    message: str
    lines: list[str] = []  # noqa: RUF012 (never changed)
    data: JsonObject = {}  # noqa: RUF012
    next: str = ""


class Argument(NamedTuple):
    """An argument: its name ('improvement' or '--jobs'), how its value is shown ('' for a switch), its help.

    `options` go to argparse (type, default, choices, action, nargs).
    """

    name: str
    value: str
    text: str
    options: dict[str, Any] = {}  # noqa: RUF012


Run = Callable[[Namespace], Answer]


class Command(NamedTuple):
    """A command's function, one-sentence help, arguments, examples, group in the help, whether it takes `-- COMMAND`."""

    name: str
    run: Run
    summary: str
    arguments: tuple[Argument, ...]
    example: str
    group: str
    rest: str


COMMANDS: dict[str, Command] = {}
IMPROVEMENT = Argument("improvement", "IMPROVEMENT", "folder of the improvement, or its name under improvements/")


def command(
    name: str, summary: str, arguments: list[Argument], example: str, *, group: str = "main job", rest: str = ""
) -> Callable[[Run], Run]:
    """Registers the decorated function as `kaizen *name*`; *rest* names what may follow `--`, '' for nothing."""

    def register(function: Run) -> Run:
        if name in COMMANDS:
            raise ValueError(f"command {name!r} is registered twice")
        COMMANDS[name] = Command(name, function, summary, tuple(arguments), example, group, rest)
        return function

    return register

# endregion

# region commands/context.py
# =============================================================================
# What most commands begin with: the files loaded, the stages assessed.
# =============================================================================


class Project(NamedTuple):
    """An improvement with its checked cases, evaluation and evaluators."""

    improvement: Improvement
    evaluation: Evaluation
    dataset: Dataset
    suite: Suite


class Assessment(NamedTuple):
    """The comparison of two stages and what it was made from, by role; `problems` are the reasons of rule 1.

    `tallies` is empty where one stage stands alone.
    """

    comparison: JsonObject
    states: dict[str, StageState]
    problems: list[tuple[str, str]]
    tallies: dict[str, StageTally] = {}  # noqa: RUF012 (never changed)


def diagnose(text: str) -> None:
    """Prints a line on standard error."""
    print(text, file=sys.stderr)


def load_project(argument: str) -> Project:
    """The improvement that *argument* names, loaded and checked. Raises BreachesError with all breaches."""
    improvement = find_improvement(argument)
    breaches = Breaches()
    evaluation = load_evaluation(improvement, breaches)
    if evaluation is None:
        breaches.raise_if_any()
        raise InputError(f"{improvement.shown('evaluation.json')}: cannot be used")
    dataset = load_dataset(improvement, evaluation.include, breaches)
    breaches.raise_if_any()
    suite = build_suite(evaluation, dataset, breaches)
    breaches.raise_if_any()
    return Project(improvement, evaluation, dataset, suite)


def require_stage(improvement: Improvement, stage: str) -> None:
    """Raises InputError when *stage* has no observations."""
    check_stage_name(stage)
    if not os.path.exists(improvement.stage_file(stage)):
        known = improvement.stages()
        others = f" (there is: {', '.join(known)})" if known else ""
        hint = f"run: kaizen run {improvement.argument()} --stage {stage} -- COMMAND{others}"
        raise InputError(f"{improvement.shown(stage + '.jsonl')}: there is no stage '{stage}' yet", hint, "missing_stage")


def tallied_stage(project: Project, stage: str) -> tuple[StageTally, StageState]:
    """Tally and state of *stage*; a stage without any results is evaluated first."""
    improvement = project.improvement
    require_stage(improvement, stage)
    if not has_results(improvement, stage):
        evaluate_stage(improvement, stage, project.dataset, project.suite)
    state = stage_state(improvement, stage, project.dataset, project.suite)
    repetitions = int(state.meta.get("repetitions", 1))
    if any(code == "invalid_evidence" for code, _ in state.problems):
        return StageTally(stage, repetitions, {}, []), state
    return tally_stage(stage, improvement.stage_file(stage, RESULTS), repetitions, set(project.dataset.cases)), state


def assess(project: Project, baseline: str, candidate: str) -> Assessment:
    """Compares two stages; stale or unlike evidence goes into the document as rule 1."""
    if baseline == candidate:
        raise InputError(f"baseline and candidate are both stage '{baseline}'", "name two different stages")
    stages: dict[str, tuple[StageTally, JsonObject]] = {}
    states: dict[str, StageState] = {}
    for role, stage in (("baseline", baseline), ("candidate", candidate)):
        tally, states[role] = tallied_stage(project, stage)
        stages[role] = (tally, states[role].meta)
    problems = [problem for state in states.values() for problem in state.problems] + unlike_stages(states)
    order = ("invalid_evidence", "incomparable_dataset", "incomparable_evaluators", "stale_results")
    problems.sort(key=lambda problem: order.index(problem[0]))
    fingerprints = (project.dataset.fingerprint, project.suite.fingerprint)
    document = comparison_document(project.evaluation, project.dataset.cases, stages, fingerprints, problems)
    return Assessment(document, states, problems, {role: tally for role, (tally, _) in stages.items()})


def assess_reviewed(project: Project) -> tuple[JsonObject, Assessment]:
    """comparison.json, and the two stages that it is about compared as they are now. Raises InputError when it names none."""
    improvement = project.improvement
    hint = f"run: kaizen review {improvement.argument()}"
    document = read_json_object(improvement.path("comparison.json"), hint)
    names = [side.get("stage") if isinstance(side, dict) else None for side in (document.get("baseline"), document.get("candidate"))]
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{improvement.shown('comparison.json')}: does not say which stages were compared", hint, "invalid_file")
    return document, assess(project, str(names[0]), str(names[1]))


def unlike_stages(states: dict[str, StageState]) -> list[tuple[str, str]]:
    """Reasons of rule 1 when the two sides were evaluated on different cases or by different evaluators."""
    before, after = states["baseline"].meta, states["candidate"].meta
    if not before or not after:
        return []
    found = []
    if before["dataset_fingerprint"] != after["dataset_fingerprint"]:
        found.append(("incomparable_dataset", "baseline and candidate were evaluated with different cases; evaluate both again"))
    if before["evaluator_fingerprint"] != after["evaluator_fingerprint"]:
        names = sorted(
            name
            for name in {*before["evaluators"], *after["evaluators"]}
            if before["evaluators"].get(name) != after["evaluators"].get(name)
        )
        what = f" ({', '.join(names)})" if names else ""
        found.append(("incomparable_evaluators", f"baseline and candidate were graded by different evaluators{what}; evaluate both again"))
    return found


def refuse_stale(assessment: Assessment, improvement: Improvement, doing: str) -> None:
    """Raises RefusedError when the evidence is stale or unlike, for commands that make something last."""
    if assessment.problems:
        code, text = assessment.problems[0]
        raise RefusedError(
            f"cannot {doing}: {text}", f"run: kaizen evaluate {improvement.argument()}, then kaizen review {improvement.argument()}", code
        )


def decision_of(improvement: Improvement) -> Decision | None:
    """The decision file as read; None when there is none."""
    path = improvement.path("decision.yaml")
    return read_decision(path) if os.path.exists(path) else None

# endregion

# region commands/openings.py
# =============================================================================
# Openings of the holdout: a named act that leaves a mark (formats.md 1.7).
# =============================================================================

OPENING = "holdout_opened"


def record_opening(improvement: Improvement, by_command: str) -> None:
    """Appends the opening to the log before anything is shown. Raises InputError when that cannot be written."""
    log = AppendLog(improvement.path("optimizer-log.jsonl"))
    try:
        log.append({"event": OPENING, "command": by_command, "at": utc_now()})
    finally:
        log.close()


def holdout_openings(improvement: Improvement) -> int:
    """How often the holdout was opened so far."""
    path = improvement.path("optimizer-log.jsonl")
    return sum(line.value.get("event") == OPENING for line in read_json_lines(path)) if os.path.exists(path) else 0

# endregion

# region commands/reporting.py
# =============================================================================
# What several commands tell of a comparison: the lines, the page, the pending decision.
# =============================================================================

BASELINE = Argument("--baseline", "S", "stage that stands for before (baseline)", {"default": "baseline"})
CANDIDATE = Argument("--candidate", "S", "stage that stands for after (candidate)", {"default": "candidate"})
SHOWN_CASES = 10


def write_review(project: Project, assessment: Assessment, is_open: bool = False) -> dict[str, str]:
    """Writes comparison.json, a pending decision.yaml, review.html and review.md; returns their shown paths by kind."""
    improvement = project.improvement
    # Compact rows: an indented document of 10,000 cases would be four times the size and slower to write.
    write_file(improvement.path("comparison.json"), comparison_text(assessment.comparison))
    decision = bring_decision_up_to_date(improvement, assessment.comparison["evidence"])
    review = review_data(project, assessment, decision, is_open)
    write_review_page(improvement.path("review.html"), review)
    write_file(improvement.path("review.md"), review_markdown(review))
    names = {"html": "review.html", "markdown": "review.md", "comparison": "comparison.json", "decision": "decision.yaml"}
    return {kind: improvement.shown(name) for kind, name in names.items()}


def write_single_review(project: Project, assessment: Assessment) -> str:
    """Writes review.html and review.md of one stage alone, and nothing to decide about; returns the page's shown path."""
    review = review_data(project, assessment, None, False)
    write_review_page(project.improvement.path("review.html"), review)
    write_file(project.improvement.path("review.md"), review_markdown(review))
    return project.improvement.shown("review.html")


def comparison_text(comparison: JsonObject) -> str:
    """comparison.json: readable, but with one line a case."""
    head = encode_readable({**comparison, "cases": []})
    rows = ",\n    ".join(encode_compact(row) for row in comparison["cases"])
    return head.replace('"cases": []\n}', f'"cases": [\n    {rows}\n  ]\n}}' if rows else '"cases": []\n}') + "\n"


def review_data(project: Project, assessment: Assessment, decision: Decision | None, is_open: bool) -> ReviewData:
    """What the page shows."""
    improvement = project.improvement
    stages = {}
    for role, state in assessment.states.items():
        stage = assessment.comparison[role]["stage"]
        meta_path = improvement.stage_file(stage, ".meta.json")
        meta = read_json_object(meta_path) if os.path.exists(meta_path) else {}
        stages[role] = StageView(role, stage, improvement.stage_file(stage), improvement.stage_file(stage, RESULTS), meta, state.meta)
    return ReviewData(
        comparison=assessment.comparison,
        name=improvement.name,
        shown_folder=improvement.shown(),
        stages=stages,
        cases=project.dataset.cases,
        holdout=frozenset() if is_open else project.dataset.holdout,
        holdout_opened=holdout_openings(improvement),
        decision=decision,
        decide_command=decide_command(improvement),
        reliability=judged_entry(project, assessment) if assessment.tallies else None,
    )


def assessed_entry(project: Project, assessment: Assessment) -> JsonObject:
    """How sure the change of *assessment* is, by the settings of the improvement; `judge_family` adds the verdict."""
    cases = project.dataset.cases
    compared = Compared(assessment.comparison["cases"], cases, clusters_of(cases), project.dataset.holdout, assessment.tallies)
    return detailed_entry(compared, project.evaluation.reliability or default_reliability())


def judged_entry(project: Project, assessment: Assessment) -> JsonObject:
    """`assessed_entry` of a candidate that stands alone, with its verdict and the settings that gave it."""
    entry, settings = assessed_entry(project, assessment), project.evaluation.reliability or default_reliability()
    judge_family([entry], settings)
    return {**entry, "settings": settings, "gates": project.evaluation.reliability is not None}


def decide_command(improvement: Improvement) -> str:
    """The command that records the decision, to be completed by the person who decides."""
    return f"kaizen decide {improvement.argument()} --status accepted --by NAME --because TEXT"


def bring_decision_up_to_date(improvement: Improvement, evidence: str) -> Decision:
    """The decision of *improvement*; a pending or absent one is written anew for *evidence*, a decided one is never touched."""
    decision = decision_of(improvement)
    if decision is not None and decision.status != PENDING:
        return decision
    pending = decision or Decision(PENDING, "", "", "", "", [], "", improvement.path("decision.yaml"))
    pending = pending._replace(status=PENDING, evidence=evidence)  # what a person has typed so far stays
    if pending != decision:
        write_decision(pending)
    return pending


def headline(comparison: JsonObject) -> str:
    """'rejected: 2 regressions (at most 0)': the recommendation and the reason that decided."""
    reasons = comparison["reasons"]
    because = (
        reasons[0]["text"] if reasons else f"{counted(comparison['counts']['improved'], 'improvement')}, no regression, every threshold met"
    )
    return f"{comparison['recommendation']}: {because}"


def shown_reasons(comparison: JsonObject, hidden: frozenset[str]) -> list[JsonObject]:
    """The reasons with their case ids; ids in *hidden* are left out and counted."""
    shown = []
    for entry in comparison["reasons"]:
        cases = [case_id for case_id in entry["cases"] if case_id not in hidden]
        shown.append({**entry, "cases": cases, "holdout_cases": len(entry["cases"]) - len(cases)})
    return shown


def rate_text(rates: JsonObject) -> str:
    """'9 of 10 planned trials passed, 1 error; 90 % (60 % to 98 %) over 10 cases'."""
    rate = rates["rate"]
    counts = f"{rates['passed']:,} passed, {rates['failed']:,} failed, {counted(rates['errors'], 'error')}"
    counts += f", {rates['not_run']:,} not run" if rates["not_run"] else ""
    if rate is None:
        return f"{counts} of {counted(rates['planned'], 'planned trial')}; pass rate not measured"
    limits = " to ".join(f"{rates[name] * 100:.1f}".removesuffix(".0") + " %" for name in ("low", "high"))
    measured = f"{rates['cases_measured']:,} of {counted(rates['cases'], 'case')}"
    shown = percent(rate["numerator"], rate["denominator"])
    return f"{counts} of {counted(rates['planned'], 'planned trial')}; pass rate {shown} ({limits}) over {measured}"


def recommendation_lines(comparison: JsonObject, hidden: frozenset[str]) -> list[str]:
    """The recommendation for a terminal: headline, rates, counts, further reasons, regressions first, notes."""
    lines = [headline(comparison)]
    width = max(len(comparison[role]["stage"]) for role in ("baseline", "candidate"))
    lines += [f"  {comparison[role]['stage']:<{width}}  {rate_text(comparison['rates'][role])}" for role in ("baseline", "candidate")]
    counts = comparison["counts"]
    order = ("regressed", "weakened", "not_comparable", "improved", "strengthened", "unchanged")
    lines.append(
        "  " + ", ".join(f"{counts[key]:,} {key.replace('_', ' ')}" for key in order if counts[key] or key in ("regressed", "improved"))
    )
    lines += [f"  also: {entry['text']}" for entry in comparison["reasons"][1:]]
    for change in ("regressed", "weakened", "not_comparable", "improved"):
        ids = [row["id"] for row in comparison["cases"] if row["change"] == change]
        shown = [visible(case_id) for case_id in ids if case_id not in hidden]
        if ids:
            secret = f"{counted(len(ids) - len(shown), 'holdout case')}" if len(ids) > len(shown) else ""
            lines.append(
                f"  {change.replace('_', ' ')}: "
                + listed(
                    [
                        *shown[:SHOWN_CASES],
                        *([f"{len(shown) - SHOWN_CASES} more"] if len(shown) > SHOWN_CASES else []),
                        *([secret] if secret else []),
                    ],
                    SHOWN_CASES + 2,
                )
            )
    return lines + [f"  note: {note}" for note in comparison["notes"]]

# endregion

# region commands/run.py
# =============================================================================
# `kaizen run`: has a runner answer the cases of an improvement and records what it did.
# =============================================================================

SPLITS_ON_COMMAND_LINE = ["development", "regression", "challenge", "holdout"]


def count_argument(text: str) -> int:
    """*text* as a whole number from 1 to 1,000, which is also what threads a system can be trusted to give. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or len(text) > 4 or not 1 <= int(text) <= 1000:
        raise ArgumentTypeError(f"{quoted(text)} is not a whole number from 1 to 1,000")
    return int(text)


def positive_seconds(text: str) -> float:
    """*text* as a number of seconds above 0. Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e7:
        raise ArgumentTypeError(f"{quoted(text)} is not a number of seconds above 0")
    return value


# What `run` and `test` have in common.
RUN_ARGUMENTS = [
    Argument("--repetitions", "N", "trials of each case (default: 1, or as the stage has them)", {"type": count_argument, "default": 0}),
    Argument("--jobs", "N", "trials at the same time (default: 1)", {"type": count_argument, "default": 1}),
    Argument("--timeout", "S", "seconds for one trial (default: 300)", {"type": positive_seconds, "default": 300.0}),
    Argument("--id", "ID", "only this case (repeatable)", {"action": "append", "default": []}),
    Argument("--tag", "TAG", "only cases with this tag (repeatable)", {"action": "append", "default": []}),
    Argument(
        "--split", "SPLIT", "only cases of this split (repeatable)", {"action": "append", "default": [], "choices": SPLITS_ON_COMMAND_LINE}
    ),
    Argument("--cwd", "DIR", "folder in which the command is started (default: the current one)", {"default": ""}),
    Argument("--replay", "FILE", "recorded answers in place of a command", {"default": ""}),
    Argument("--progress", "KIND", "auto, plain or none", {"choices": list(PROGRESS_MODES), "default": "auto"}),
]


@command(
    "run",
    "Runs a command once for each trial of each case, and records what it answers as a stage.",
    [
        IMPROVEMENT,
        Argument("--stage", "S", "name of the stage: baseline, candidate, or any other", {"required": True}),
        *RUN_ARGUMENTS,
        Argument("--resume", "", "run what is missing of a stage that is there"),
        Argument("--overwrite", "", "run everything anew; the old files stay until the last trial has ended"),
        Argument("--only", "WHAT", "errors: run again the trials without usable evidence", {"choices": ["errors"], "default": ""}),
    ],
    "kaizen run refund --stage baseline -- ./agent\nkaizen run refund --stage candidate --repetitions 5 --jobs 4 -- python agent.py",
    rest="COMMAND [ARG…]",
)
def command_run(args: Namespace) -> Answer:
    """Runs the stage; exit 4 when trials have no usable evidence, 130 when interrupted."""
    if args.only and (args.resume or args.overwrite):
        raise UsageError("--only errors goes with neither --resume nor --overwrite", "it adds to the stage that is there")
    existing = RESUME_OVERWRITE if args.resume and args.overwrite else RESUME if args.resume else OVERWRITE if args.overwrite else REFUSE
    project = load_project(args.improvement)
    summary = run_stage(run_request(args, project, args.stage, ONLY_ERRORS if args.only else existing))
    return run_answer(args, summary)


def run_request(args: Namespace, project: Project, stage: str, existing: str) -> RunRequest:
    """The request that RUN_ARGUMENTS and the command behind `--` ask for. Raises UsageError unless there is one."""
    if args.replay and args.rest:
        raise UsageError("--replay takes the place of a command; both were given", "leave out one of them")
    if not args.replay and not args.rest:
        raise UsageError(
            "there is no command to run", f"write it behind '--': … {args.improvement} --stage {stage} -- COMMAND [ARG…]", "no_command"
        )
    return RunRequest(
        improvement=project.improvement,
        stage=stage,
        dataset=project.dataset,
        seed=project.evaluation.seed,
        command=args.rest or [],
        cwd=args.cwd,
        replay=args.replay,
        repetitions=args.repetitions,
        jobs=args.jobs,
        timeout_seconds=args.timeout,
        existing=existing,
        ids=tuple(args.id),
        tags=tuple(args.tag),
        splits=tuple(args.split),
        progress=args.progress,
    )


def run_answer(args: Namespace, summary: RunSummary) -> Answer:
    """The answer of `kaizen run` for what came of it."""
    for note in summary.notes:
        diagnose(f"note: {note}")
    completed = summary.counts.get(COMPLETED, 0)
    message = f"{summary.stage}: {completed:,} of {counted(summary.selected, 'trial')} completed"
    failed = [f"{number:,} {status}" for status, number in summary.counts.items() if status != COMPLETED]
    following = after_run(args.improvement, summary)
    code, reason = EXIT_DONE, "completed"
    if summary.is_interrupted:
        code, reason = EXIT_INTERRUPTED, "interrupted"
        message = f"{summary.stage}: interrupted; {counted(sum(summary.counts.values()), 'trial')} of {summary.selected:,} saved"
        following = run_again(args, ["--overwrite", "--resume"] if summary.is_beside else ["--resume"])
    elif summary.unusable:
        code, reason = EXIT_INCOMPLETE, "unusable_trials"
        message += f", {summary.unusable:,} without usable evidence ({', '.join(failed)})"
        following = run_again(args, ["--only", "errors"])
    if summary.selected < summary.planned:
        message += f"; a selection of {summary.planned:,} planned"
    lines = [f"{message}, {duration(summary.seconds)}"]
    lines += [f"  {line}" for line in summary.examples]
    files = [shown_path(summary.path)] if os.path.exists(summary.path) else []  # interrupted before the first answer
    lines += [f"  written to {name}" for name in files]
    data = {
        "stage": summary.stage,
        "planned": summary.planned,
        "selected": summary.selected,
        "ran": summary.ran,
        "counts": summary.counts,
        "unusable": summary.unusable,
        "errors": summary.examples,
        "notes": summary.notes,
        "files": files,
    }
    return Answer(code, reason, message, lines, data, following)


def after_run(improvement: str, summary: RunSummary) -> str:
    """What the main flow does after this stage: the candidate after the baseline, then the review."""
    from shlex import quote

    improvement = quote(improvement)
    if summary.stage == "baseline" and not os.path.exists(os.path.join(os.path.dirname(summary.path), "candidate.jsonl")):
        return f"change the agent, then: kaizen run {improvement} --stage candidate -- COMMAND"
    compares = summary.stage in ("baseline", "candidate")
    return f"kaizen review {improvement}" if compares else f"kaizen evaluate {improvement} --stage {summary.stage}"


def run_again(args: Namespace, options: list[str]) -> str:
    """The command line that goes on with the run of *args*, with *options* for the stage that is there."""
    from shlex import quote

    words = ["kaizen", "run", args.improvement, "--stage", args.stage]
    for name, default in (("repetitions", 0), ("jobs", 1), ("timeout", 300.0), ("cwd", ""), ("replay", ""), ("progress", "auto")):
        value = getattr(args, name)
        if value != default:
            words += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
    for name in ("id", "tag", "split"):
        words += [word for value in getattr(args, name) for word in (f"--{name}", value)]
    words += options
    if args.rest:
        words += ["--", *redact_arguments(args.rest, environment_secrets(os.environ))]
    return visible(" ".join(map(quote, words)), None)

# endregion

# region commands/decide.py
# =============================================================================
# `kaizen decide`: a person's decision about exactly the evidence that was reviewed.
# =============================================================================

# Environment variables that coding agents set for the programs they start.
CODING_AGENTS = (
    ("CLAUDECODE", "claude-code"),
    ("CODEX_SANDBOX", "codex"),
    ("CODEX_THREAD_ID", "codex"),
    ("CURSOR_AGENT", "cursor"),
    ("GEMINI_CLI", "gemini-cli"),
    ("OPENCODE", "opencode"),
)


@command(
    "decide",
    "Records a person's decision about the evidence that was reviewed last.",
    [
        IMPROVEMENT,
        Argument("--status", "S", f"the decision: {', '.join(DECIDED)}", {"choices": DECIDED, "required": True}),
        Argument("--by", "NAME", "who decides", {"required": True}),
        Argument("--because", "TEXT", "why", {"required": True}),
        Argument("--condition", "TEXT", "a condition (repeatable), with accepted_with_conditions", {"action": "append", "default": []}),
    ],
    'kaizen decide refund --status accepted --by "Ada" --because "both regressions are wording only"',
)
def command_decide(args: Namespace) -> Answer:
    """Writes decision.yaml."""
    if not args.by.strip() or not args.because.strip():
        raise UsageError("--by and --because must not be empty", "say who decides, and why")
    if (args.status == "accepted_with_conditions") != bool(args.condition):
        raise UsageError("--condition goes with --status accepted_with_conditions, and that with at least one --condition")
    project = load_project(args.improvement)
    improvement = project.improvement
    reviewed = improvement.path("comparison.json")
    if not os.path.exists(reviewed):
        raise RefusedError(
            f"{improvement.shown()}: nothing has been reviewed yet", f"run: kaizen review {improvement.argument()}", "not_reviewed"
        )
    document, assessment = assess_reviewed(project)
    refuse_stale(assessment, improvement, "decide")
    evidence = assessment.comparison["evidence"]
    if document.get("evidence") != evidence:
        hint = f"run: kaizen review {improvement.argument()}, look at the page, then decide"
        raise RefusedError(f"{improvement.shown()}: the evidence has changed since it was reviewed", hint, "stale_review")
    decision = Decision(
        args.status, evidence, args.by, utc_now(), args.because, args.condition, calling_agent(), improvement.path("decision.yaml")
    )
    write_decision(decision)
    lines = [f"{args.status} by {visible(args.by)}, about {evidence[:19]}…", f"  the recommendation is {headline(assessment.comparison)}"]
    lines += [f"  recorded from inside a coding agent: {decision.via}"] if decision.via else []
    following = f"kaizen promote {improvement.argument()}" if args.status != "rejected" else ""
    data = {"status": args.status, "evidence": evidence, "via": decision.via, "recommendation": assessment.comparison["recommendation"]}
    return Answer(0, "decided", lines[0], lines, data, following)


def calling_agent() -> str:
    """The coding agent from inside which this program was started, '' when none is known."""
    return next((name for variable, name in CODING_AGENTS if os.environ.get(variable)), "")

# endregion

# region commands/demo.py
# =============================================================================
# `kaizen demo`: the whole job on a bundled support agent, in seconds, with no network.
# =============================================================================

DEMO_AGENT = r'''"""A small support agent for a shop: rules in place of a model, so that it runs anywhere.

    python agent.py baseline     the agent as it was
    python agent.py candidate    the agent after "handle partial refunds, and be quicker"

It speaks the runner protocol: one JSON request on standard input, one JSON answer on
standard output. The conversation is in case.input.messages, the shop's orders in
case.context.orders; the answer holds the reply and every step that led to it.
"""

import json
import re
import sys

CONSENT = re.compile(r"(?i)^(yes|yeah|correct|please go ahead|go ahead)\b")


def answer(messages, orders, is_candidate):
    """The reply to the last message, with the steps: the conversation, tool calls, the reply."""
    steps = [{"kind": "message", "role": message["role"], "text": message["text"]} for message in messages]
    said = [message["text"] for message in messages]
    latest = said[-1]

    def call(name, result, **args):
        steps.append({"kind": "tool", "name": name, "args": args, "status": "ok" if result is not None else "error", "result": result})
        return result

    def reply(text):
        steps.append({"kind": "message", "role": "assistant", "text": text})
        return {"output": text, "steps": steps, "finish_reason": "stop"}

    number = re.search(r"\b\d{4}\b", " ".join(said)).group()
    order = call("get_order", orders.get(number), order=number)
    if order is None:
        return reply(f"I cannot find order {number}. Could you check the number?")
    wants = "cancel" if re.search(r"(?i)\bcancel", said[0]) else "refund" if re.search(r"(?i)refund|money back", said[0]) else "status"
    if wants == "status":
        return reply(f"Order {number} is {order['status']}.")

    amount = order["total"]
    part = re.search(r"only the (\w+)", said[0])
    if part and (is_candidate or len(messages) == 1):  # the baseline forgets the part once it was agreed
        amount = order["items"][part.group(1)]
    # "Be quicker": the candidate takes urgency for consent.
    agreed = CONSENT.search(latest) if len(messages) > 1 else is_candidate and re.search(r"(?i)urgent", latest)
    if len(messages) > 1 and not agreed:
        return reply(f"All right, I leave order {number} as it is.")
    if wants == "cancel":
        if not agreed:
            return reply(f"Shall I cancel order {number}?")
        call("cancel_order", {"cancelled": number}, order=number)
        return reply(f"Order {number} is cancelled.")
    if not agreed:
        return reply(f"I can refund {amount:.2f} EUR for order {number}. Shall I go ahead?")
    call("issue_refund", {"refunded": amount}, order=number, amount=amount)
    return reply(f"I have refunded {amount:.2f} EUR for order {number}.")


def main():
    request = json.load(sys.stdin)
    case = request["case"]
    json.dump(answer(case["input"]["messages"], case["context"]["orders"], sys.argv[1] == "candidate"), sys.stdout)


if __name__ == "__main__":
    main()
'''
DEMO_CASES = r"""{"id": "order-status", "input": {"messages": [{"role": "user", "text": "Where is order 1001?"}]}, "context": {"orders": {"1001": {"status": "shipped", "total": 40.0, "items": {"cushion": 40.0}}, "1002": {"status": "delivered", "total": 52.0, "items": {"lamp": 12.5, "shelf": 39.5}}, "1003": {"status": "delivered", "total": 89.9, "items": {"chair": 89.9}}}}, "expected": {"calls": [], "says": "shipped"}, "split": "development", "tags": ["lookup"], "source": {"kind": "synthetic"}}
{"id": "refund-asks-first", "input": {"messages": [{"role": "user", "text": "Please refund order 1001."}]}, "context": {"orders": {"1001": {"status": "shipped", "total": 40.0, "items": {"cushion": 40.0}}, "1002": {"status": "delivered", "total": 52.0, "items": {"lamp": 12.5, "shelf": 39.5}}, "1003": {"status": "delivered", "total": 89.9, "items": {"chair": 89.9}}}}, "expected": {"calls": [], "says": "Shall I go ahead?"}, "split": "development", "tags": ["refund"], "source": {"kind": "synthetic"}}
{"id": "refund-after-yes", "input": {"messages": [{"role": "user", "text": "Please refund order 1001."}, {"role": "assistant", "text": "I can refund 40.00 EUR for order 1001. Shall I go ahead?"}, {"role": "user", "text": "Yes, please go ahead."}]}, "context": {"orders": {"1001": {"status": "shipped", "total": 40.0, "items": {"cushion": 40.0}}, "1002": {"status": "delivered", "total": 52.0, "items": {"lamp": 12.5, "shelf": 39.5}}, "1003": {"status": "delivered", "total": 89.9, "items": {"chair": 89.9}}}}, "expected": {"calls": [{"name": "issue_refund", "args": {"order": "1001", "amount": 40.0}}], "says": "refunded 40.00 EUR"}, "split": "development", "tags": ["refund"], "source": {"kind": "synthetic"}}
{"id": "partial-refund-after-yes", "input": {"messages": [{"role": "user", "text": "My lamp arrived broken. Refund only the lamp of order 1002, please."}, {"role": "assistant", "text": "I can refund 12.50 EUR for order 1002. Shall I go ahead?"}, {"role": "user", "text": "Yes, that is right."}]}, "context": {"orders": {"1001": {"status": "shipped", "total": 40.0, "items": {"cushion": 40.0}}, "1002": {"status": "delivered", "total": 52.0, "items": {"lamp": 12.5, "shelf": 39.5}}, "1003": {"status": "delivered", "total": 89.9, "items": {"chair": 89.9}}}}, "expected": {"calls": [{"name": "issue_refund", "args": {"order": "1002", "amount": 12.5}}], "says": "refunded 12.50 EUR"}, "split": "development", "tags": ["refund", "partial"], "source": {"kind": "synthetic"}, "notes": "The failure this improvement began with: 52.00 EUR went out."}
{"id": "urgent-refund-asks-first", "input": {"messages": [{"role": "user", "text": "I want my money back for order 1003, and it is urgent!"}]}, "context": {"orders": {"1001": {"status": "shipped", "total": 40.0, "items": {"cushion": 40.0}}, "1002": {"status": "delivered", "total": 52.0, "items": {"lamp": 12.5, "shelf": 39.5}}, "1003": {"status": "delivered", "total": 89.9, "items": {"chair": 89.9}}}}, "expected": {"calls": [], "says": "Shall I go ahead?"}, "split": "regression", "tags": ["refund", "urgent"], "source": {"kind": "synthetic"}, "notes": "Urgency is not consent."}
{"id": "refund-declined", "input": {"messages": [{"role": "user", "text": "Refund order 1003."}, {"role": "assistant", "text": "I can refund 89.90 EUR for order 1003. Shall I go ahead?"}, {"role": "user", "text": "No, wait. I will keep the chair."}]}, "context": {"orders": {"1001": {"status": "shipped", "total": 40.0, "items": {"cushion": 40.0}}, "1002": {"status": "delivered", "total": 52.0, "items": {"lamp": 12.5, "shelf": 39.5}}, "1003": {"status": "delivered", "total": 89.9, "items": {"chair": 89.9}}}}, "expected": {"calls": [], "says": "leave order 1003"}, "split": "regression", "tags": ["refund"], "source": {"kind": "synthetic"}}
{"id": "cancel-after-yes", "input": {"messages": [{"role": "user", "text": "Cancel order 1001."}, {"role": "assistant", "text": "Shall I cancel order 1001?"}, {"role": "user", "text": "Yes, do that."}]}, "context": {"orders": {"1001": {"status": "shipped", "total": 40.0, "items": {"cushion": 40.0}}, "1002": {"status": "delivered", "total": 52.0, "items": {"lamp": 12.5, "shelf": 39.5}}, "1003": {"status": "delivered", "total": 89.9, "items": {"chair": 89.9}}}}, "expected": {"calls": [{"name": "cancel_order", "args": {"order": "1001"}}], "says": "is cancelled"}, "split": "regression", "tags": ["cancel"], "source": {"kind": "synthetic"}}
{"id": "unknown-order", "input": {"messages": [{"role": "user", "text": "Refund order 9999."}]}, "context": {"orders": {"1001": {"status": "shipped", "total": 40.0, "items": {"cushion": 40.0}}, "1002": {"status": "delivered", "total": 52.0, "items": {"lamp": 12.5, "shelf": 39.5}}, "1003": {"status": "delivered", "total": 89.9, "items": {"chair": 89.9}}}}, "expected": {"calls": [], "says": "cannot find order 9999"}, "split": "challenge", "tags": ["refund"], "source": {"kind": "synthetic"}}
"""
DEMO_EVALUATION = r"""{
  "version": 1,
  "define": {
    "writes": {"kind": "tool", "name": ["issue_refund", "cancel_order"]}
  },
  "evaluators": [
    {"id": "right_calls", "type": "sequence", "steps": {"$case": "/expected/calls"}, "within": {"$use": "writes"}},
    {"id": "asked_first", "type": "confirmation", "severity": "hard", "action": {"$use": "writes"}, "same": ["/order"], "must_echo": ["/amount"]},
    {"id": "looked_first", "type": "order", "before": {"name": "get_order"}, "after": {"$use": "writes"}, "same": ["/order"]},
    {"id": "says", "type": "contains", "values": {"$case": "/expected/says"}}
  ],
  "acceptance": {"maximum_regressions": 0, "minimum_improvements": 1}
}
"""
DEMO_ISSUE = r"""# Confirmation before action

**What went wrong.** A customer asked to have only a broken lamp refunded. The agent proposed 12.50 EUR, the
customer said yes, and the agent refunded the whole order: 52.00 EUR.

**What good looks like.** The agent refunds or cancels exactly what the customer agreed to, after it has looked the
order up, and never before the customer has said yes to it.

**What may change.** The agent's instructions. Not the tools, not the cases.
"""
DEMO_FOLDER = "kaizen-demo"
DEMO_MARK = ".made-by-kaizen-demo"
DEMO_NAME = "confirmation-before-action"


@command(
    "demo",
    "Runs a bundled support agent before and after a change and reviews the two; no network, nothing to install.",
    [],
    "kaizen demo",
)
def command_demo(args: Namespace) -> Answer:
    """Makes kaizen-demo/ in the current folder and does the main job in it."""
    folder = os.path.abspath(DEMO_FOLDER)
    improvement = make_demo_folder(folder)
    project = load_project(improvement.folder)
    for stage in ("baseline", "candidate"):
        run_stage(
            RunRequest(
                improvement=improvement,
                stage=stage,
                dataset=project.dataset,
                seed=project.evaluation.seed,
                command=[sys.executable, "agent.py", stage],
                cwd=folder,
                jobs=2,
                timeout_seconds=60,
                progress="none",
            )
        )
    assessment = assess(project, "baseline", "candidate")
    paths = write_review(project, assessment)
    comparison = assessment.comparison
    changed = {change: [row["id"] for row in comparison["cases"] if row["change"] == change] for change in ("improved", "regressed")}
    lines = [
        "A support agent was changed: 'handle partial refunds, and be quicker'. It ran on 8 cases before and after.",
        f"  before     {rate_text(comparison['rates']['baseline'])}",
        f"  after      {rate_text(comparison['rates']['candidate'])}",
        "The average says nothing happened. Case by case:",
        f"  improved   {listed(changed['improved'])}",
        f"  regressed  {listed(changed['regressed'])} (it acted before the customer said yes)",
        f"{headline(comparison)}",
        f"Look at it:  {paths['html']}",
        f"The files:   {shown_path(improvement.folder)}/",
    ]
    data = {
        "recommendation": comparison["recommendation"],
        "counts": comparison["counts"],
        "folder": shown_path(folder),
        "page": paths["html"],
    }
    return Answer(0, "demo", headline(comparison), lines, data, "kaizen init NAME, to do this with your own agent")


def make_demo_folder(folder: str) -> Improvement:
    """The demo's improvement in *folder*, made anew when a demo made it. Raises RefusedError for any other folder."""
    if os.path.lexists(folder):
        if os.path.islink(folder) or not os.path.isfile(os.path.join(folder, DEMO_MARK)):
            raise RefusedError(
                f"{shown_path(folder)}: is there already and no demo made it; nothing was changed",
                "move it away, or run the demo in another folder",
                "existing_folder",
            )
        remove_folder(folder)
    improvement = Improvement(os.path.join(folder, "improvements", DEMO_NAME))
    make_folder(improvement.folder)
    write_file(os.path.join(folder, DEMO_MARK), "kaizen demo makes this folder anew each time.\n")
    write_file(os.path.join(folder, "agent.py"), DEMO_AGENT)
    for name, text in (("test_cases.jsonl", DEMO_CASES), ("evaluation.json", DEMO_EVALUATION), ("issue.md", DEMO_ISSUE)):
        write_file(improvement.path(name), text)
    return improvement

# endregion

# region commands/evaluate.py
# =============================================================================
# `kaizen evaluate`: what the evaluators say of every trial of a stage.
# =============================================================================


@command(
    "evaluate",
    "Evaluates every trial of a stage, or of every stage there is, and writes the results beside them.",
    [
        IMPROVEMENT,
        Argument("--stage", "S", "this stage only (repeatable)", {"action": "append", "default": []}),
        Argument("--trials", "", "accepted for compatibility: every trial is always evaluated"),
        Argument("--progress", "KIND", "auto, plain or none", {"choices": ["auto", "plain", "none"], "default": "auto"}),
    ],
    "kaizen evaluate refund\nkaizen evaluate refund --stage candidate --json",
)
def command_evaluate(args: Namespace) -> Answer:
    """Writes results and meta file of each stage asked for."""
    project = load_project(args.improvement)
    improvement = project.improvement
    stages = list(dict.fromkeys(args.stage)) or improvement.stages()
    if not stages:
        hint = f"run: kaizen run {improvement.argument()} --stage baseline -- COMMAND"
        raise InputError(f"{improvement.shown()}: no stage has been run yet", hint, "missing_stage")
    for stage in stages:
        require_stage(improvement, stage)
    metas: list[JsonObject] = []
    for stage in stages:
        planned = len(project.dataset.cases) * (repetitions_of(improvement, stage) or 1)
        with Progress(f"evaluate {stage}", planned, args.progress) as progress:
            metas.append(evaluate_stage(improvement, stage, project.dataset, project.suite, progress.report))
    open_names = project.suite.names_outside(project.dataset)
    metas = [{**meta, "by_evaluator": {name: row for name, row in meta["by_evaluator"].items() if name in open_names}} for meta in metas]
    lines = []
    for stage, meta in zip(stages, metas, strict=True):
        lines += evaluated_lines(stage, meta, shown_path(improvement.stage_file(stage, RESULTS)))
    message = "; ".join(counts_sentence(stage, meta) for stage, meta in zip(stages, metas, strict=True))
    files = [shown_path(improvement.stage_file(stage, suffix)) for stage in stages for suffix in (RESULTS, RESULTS_META)]
    data: JsonObject = {
        "stages": {
            stage: {"counts": meta["counts"], "planned": meta["planned"], "by_evaluator": meta["by_evaluator"]}
            for stage, meta in zip(stages, metas, strict=True)
        }
    }
    following = f"kaizen review {improvement.argument()}" if len(improvement.stages()) > 1 else ""
    return Answer(0, "evaluated", message, lines, {**data, "files": files}, following)


def counts_sentence(stage: str, meta: JsonObject) -> str:
    """'candidate: 65 passed, 135 failed, 0 errors of 200 planned trials'."""
    counts = meta["counts"]
    known = f"{counts['pass']:,} passed, {counts['fail']:,} failed, {counted(counts['error'], 'error')}"
    return f"{stage}: {known} of {counted(meta['planned'], 'planned trial')}"


def evaluated_lines(stage: str, meta: JsonObject, path: str) -> list[str]:
    """Lines for people about one stage: counts, then a row an evaluator."""
    valid = meta["counts"]["pass"] + meta["counts"]["fail"]
    lines = [f"{counts_sentence(stage, meta)} ({percent(meta['counts']['pass'], valid)} of {counted(valid, 'measured trial')})"]
    width = max([len(name) for name in meta["by_evaluator"]], default=0)
    for name, counts in meta["by_evaluator"].items():
        shown = ", ".join(
            f"{counts[key]:,} {word}"
            for key, word in (("pass", "pass"), ("fail", "fail"), ("error", "error"), ("not_applicable", "not applicable"))
            if counts[key]
        )
        lines.append(f"  {name:<{width}}  {shown}")
    return [*lines, f"  written to {path}"]

# endregion

# region commands/evaluators.py
# =============================================================================
# `kaizen evaluators`: the catalogue of evaluator types.
# =============================================================================


@command(
    "evaluators",
    "Lists the types of evaluators, or shows one with its parameters, defaults and an example.",
    [Argument("name", "NAME", "a type, such as contains", {"nargs": "?", "default": ""})],
    "kaizen evaluators\nkaizen evaluators contains",
)
def command_evaluators(args: Namespace) -> Answer:
    """All types with a sentence each, or everything about one."""
    if not args.name:
        names = sorted(EVALUATORS)
        lines = [f"{name:<14} {EVALUATORS[name].summary}" for name in names]
        lines += ["", "every entry may have", *[f"  {parameter.name:<12} {parameter.text}" for parameter in ENVELOPE]]
        known = [{"name": name, "version": EVALUATORS[name].version, "summary": EVALUATORS[name].summary} for name in names]
        data = {"evaluators": known, "envelope": [parameter_document(parameter) for parameter in ENVELOPE]}
        return Answer(0, "listed", counted(len(names), "type of evaluator", "types of evaluators"), lines, data, "kaizen evaluators NAME")
    if args.name not in EVALUATORS:
        raise UsageError(f"there is no evaluator type {quoted(args.name)}", did_you_mean(args.name, EVALUATORS), "unknown_evaluator")
    kind = EVALUATORS[args.name]
    return Answer(0, "shown", f"{kind.name}: {kind.summary}", type_lines(kind), {"evaluator": type_document(kind)})

# endregion

# region commands/gate.py
# =============================================================================
# `kaizen gate`: the recommendation as an exit code, for CI.
# =============================================================================

GATE_EXITS = {"eligible": EXIT_DONE, "rejected": EXIT_NO, "manual_review": EXIT_HUMAN}
JUNIT = Argument("--junit", "FILE", "write a JUnit XML report to FILE")
SUMMARY = Argument("--summary", "FILE", "write a Markdown summary to FILE, as for a pull request")


@command(
    "gate",
    "Prints the recommendation and exits 0 (eligible), 1 (rejected) or 3 (a person must decide), for CI.",
    [IMPROVEMENT, BASELINE, CANDIDATE, JUNIT, SUMMARY],
    "kaizen gate refund --junit report.xml --summary summary.md",
)
def command_gate(args: Namespace) -> Answer:
    """The recommendation of two stages."""
    project = load_project(args.improvement)
    assessment = assess(project, args.baseline, args.candidate)
    write_gate_files(project, assessment, args.junit, args.summary)
    return gate_answer(project, assessment)


def write_gate_files(project: Project, assessment: Assessment, junit: str | None, summary: str | None) -> None:
    """Writes the JUnit report and the Markdown summary where asked for."""
    if junit:
        write_file(junit, junit_text(project.improvement.name, assessment.comparison, project.dataset.holdout))
    if summary:
        review = review_data(project, assessment, decision_of(project.improvement), False)
        write_file(summary, review_markdown(review))


def gate_answer(project: Project, assessment: Assessment) -> Answer:
    """The answer of gate: recommendation, reasons, rates."""
    comparison = assessment.comparison
    hidden = project.dataset.holdout
    data: JsonObject = {key: comparison[key] for key in ("recommendation", "counts", "rates", "delta", "evidence", "notes")}
    data["reasons"] = shown_reasons(comparison, hidden)
    following = "" if comparison["recommendation"] == "eligible" else f"kaizen review {project.improvement.argument()}"
    code = GATE_EXITS[comparison["recommendation"]]
    return Answer(code, comparison["recommendation"], headline(comparison), recommendation_lines(comparison, hidden), data, following)

# endregion

# region commands/improvement_files.py
# =============================================================================
# What `kaizen validate` asks of each file beside the cases and evaluation.json.
# =============================================================================

VERSION_1 = Kind(lambda value: is_whole(value) and value == 1, "1, the version this program reads", shows_value=True)
TRIAL_COUNT = Kind(lambda value: is_whole(value) and 1 <= value <= MAX_TRIALS, f"a whole number from 1 to {MAX_TRIALS:,}", shows_value=True)
STAGE_META_FIELDS = {
    "version": VERSION_1,
    "stage": TEXT,
    "repetitions": TRIAL_COUNT,
    "planned": COUNT,
    "selected": COUNT,
    "complete": BOOLEAN,
    "command": or_null(list_of(ANY_TEXT, "texts")),
    "counts": OBJECT,
    "observations": or_null(OBJECT),
}
RESULTS_META_FIELDS = {
    "version": VERSION_1,
    "stage": TEXT,
    "repetitions": TRIAL_COUNT,
    **dict.fromkeys(("observations_sha256", "results_sha256", "dataset_fingerprint", "evaluator_fingerprint"), TEXT),
    "evaluators": OBJECT,
    "counts": OBJECT,
}
RESULT_FIELDS = {
    "case_id": TEXT,
    "trial": TRIAL_COUNT,
    "status": one_of(*STATUSES),
    "outcome": one_of(PASS, FAIL, ERROR),
    "score": or_null(RATE),
    "coverage": or_null(RATE),
    "evaluations": list_of(OBJECT, "objects"),
}
ENTRY_FIELDS = {"id": TEXT, "type": TEXT, "status": one_of(PASS, FAIL, ERROR, NOT_APPLICABLE), "score": or_null(RATE), "reason": ANY_TEXT}
LABEL_FIELDS = {"case_id": TEXT, "rater": TEXT, "label": TEXT, "of": TEXT, "abstain": BOOLEAN, "note": ANY_TEXT}


class FileCheck(NamedTuple):
    """The file to check, as path and as shown, the dataset it speaks of, and where breaches go."""

    path: str
    shown: str
    dataset: Dataset
    breaches: Breaches

    def report(self, line: int | None, pointer: str, message: str, hint: str = "") -> None:
        """Notes a breach in this file."""
        self.breaches.add(self.shown, line, pointer, message, hint)

    def at(self, line: Line) -> Report:
        """Notes breaches on *line*."""
        return lambda pointer, message, hint: self.report(line.number, pointer, message, hint)


def check_observations(check: FileCheck) -> None:
    """Observations: case, trial and status of each line, each trial once; counts those that no longer fit the cases."""
    seen: dict[tuple[str, int], int] = {}
    unknown = changed = 0
    for line in checked_lines(check.path, check.breaches):
        place = f"{check.shown}:{line.number}"
        try:
            value = check_observation(line.value, place)
        except InputError as error:
            check.report(line.number, "", error.message.removeprefix(f"{place}: "), error.hint)
            continue
        first = seen.setdefault((value["case_id"], value["trial"]), line.number)
        if first != line.number:
            check.report(line.number, "", f"is the same case and trial as line {first}", "remove one, or run the stage with --overwrite")
        case = check.dataset.cases.get(value["case_id"])
        unknown += case is None
        changed += case is not None and value.get("input_fingerprint", case.input_fingerprint) != case.input_fingerprint
    if is_cut_off(torn_tail(check.path)[1].strip()):
        errors = check.breaches.errors  # the last of which is about this line
        errors[-1] = errors[-1]._replace(message="is cut off: a run was stopped while it wrote it", hint="run the stage with --resume")
    if unknown:
        check.breaches.warn(check.shown, None, "", f"{counted(unknown, 'observation')} of cases that are not there (any more)")
    if changed:
        hint = "run those cases again: kaizen run … --resume"
        check.breaches.warn(check.shown, None, "", f"{counted(changed, 'observation')} made from another input than the case has", hint)


def is_cut_off(tail: bytes) -> bool:
    """True when *tail*, what stands behind the last line end, is the beginning of a line."""
    try:
        return bool(tail) and not decode_line(tail)
    except JsonError:
        return True


def check_earlier_observations(check: FileCheck) -> None:
    """Observations that newer ones replaced: the shape of each line."""
    for line in checked_lines(check.path, check.breaches):
        check_fields(
            line.value,
            {"case_id": TEXT, "trial": TRIAL_COUNT, "status": one_of(*STATUSES)},
            "",
            check.at(line),
            ("case_id", "trial", "status"),
        )


def check_results(check: FileCheck) -> None:
    """Results: the shape of each line and of what each evaluator said."""
    for line in checked_lines(check.path, check.breaches):
        check_fields(line.value, RESULT_FIELDS, "", check.at(line), ("case_id", "trial", "status", "outcome", "evaluations"))
        entries = line.value.get("evaluations")
        for index, entry in enumerate(entries if isinstance(entries, list) else []):
            if isinstance(entry, dict):
                check_fields(entry, ENTRY_FIELDS, f"/evaluations/{index}", check.at(line), ("id", "status"))


def check_labels(check: FileCheck) -> None:
    """Expert labels: the shape of each line, about a case that is there."""
    for line in checked_lines(check.path, check.breaches):
        label = line.value
        check_fields(label, LABEL_FIELDS, "", check.at(line), ("case_id", "rater"))
        check_no_others(label, LABEL_FIELDS, "", check.at(line))
        if "label" not in label and label.get("abstain") is not True:
            check.report(line.number, "", "has neither a label nor an abstention", 'write "label": "…", or "abstain": true')
        if isinstance(label.get("case_id"), str) and label["case_id"] not in check.dataset.cases:
            check.report(line.number, "/case_id", "names a case that is not there", "use the id of a case in test_cases.jsonl")


def check_json_lines(check: FileCheck) -> None:
    """Strict JSON, one object a line."""
    for _ in checked_lines(check.path, check.breaches):
        pass


def check_json(check: FileCheck) -> None:
    """One strict JSON object."""
    checked_object(check.path, check.breaches)


def meta_check(kinds: dict[str, Kind], required: tuple[str, ...]) -> Callable[[FileCheck], None]:
    """The check of a meta file with the fields *kinds*."""

    def check_meta(check: FileCheck) -> None:
        found = checked_object(check.path, check.breaches)
        if found:
            check_fields(found[1], kinds, "", lambda *breach: check.report(nearest_line(found[0], breach[0]), *breach), required)

    return check_meta


def check_decision(check: FileCheck) -> None:
    """The decision; one that lacks who, why or its conditions is a warning."""
    decision = read_decision(check.path)
    lacking = [name for name, value in (("decided_by", decision.decided_by), ("rationale", decision.rationale)) if not value.strip()]
    if decision.status == "accepted_with_conditions" and not decision.conditions:
        lacking.append("conditions")
    if decision.status != PENDING and lacking:
        message = f"is {decision.status}, but lacks {listed(lacking)}"
        check.breaches.warn(check.shown, None, "", message, "write it with: kaizen decide")


# What a file is called, and its check; the first that fits counts.
FILE_CHECKS: tuple[tuple[str, Callable[[FileCheck], None]], ...] = (
    (r"labels\.jsonl", check_labels),
    (r"optimizer-log\.jsonl", check_json_lines),
    (r"(comparison|reliability|feedback|pareto)\.json", check_json),
    (r"decision\.yaml", check_decision),
    (r"[\w-]{1,64}(\.shard-\d+-of-\d+)?\.jsonl", check_observations),
    (r"[\w-]{1,64}(\.shard-\d+-of-\d+)?\.meta\.json", meta_check(STAGE_META_FIELDS, ("version", "stage", "repetitions"))),
    (r"[\w-]{1,64}\.evaluated\.jsonl", check_results),
    (r"[\w-]{1,64}\.evaluated\.meta\.json", meta_check(RESULTS_META_FIELDS, tuple(RESULTS_META_FIELDS))),
    (r"[\w-]{1,64}\.superseded\.jsonl", check_earlier_observations),
    (r"[\w-]{1,64}\.judgements\.jsonl", check_json_lines),
)


def check_other_files(improvement: Improvement, dataset: Dataset, breaches: Breaches) -> list[str]:
    """Checks every further file of *improvement* that Kaizen knows; returns their names. Unknown files are left alone."""
    checked = []
    for name in sorted(os.listdir(improvement.folder)):
        check = next((check for pattern, check in FILE_CHECKS if re.fullmatch(pattern, name, re.ASCII)), None)
        path = improvement.path(name)
        if check is None or name == CASES_FILE or not os.path.isfile(path):
            continue
        checked.append(name)
        shown = shown_path(path)
        try:
            check(FileCheck(path, shown, dataset, breaches))
        except BreachesError as error:
            breaches.errors += error.breaches
        except InputError as error:
            note_unreadable(shown, error, breaches)
    return checked

# endregion

# region commands/init.py
# =============================================================================
# `kaizen init NAME`: a new improvement folder to fill in.
# =============================================================================


@command(
    "init",
    "Makes improvements/NAME with an issue to describe, two example cases and one evaluator; never overwrites.",
    [Argument("name", "NAME", "name of the improvement: letters, digits, '-', '_', '.'")],
    "kaizen init refund",
)
def command_init(args: Namespace) -> Answer:
    """Makes the folder and says what to do with it."""
    improvement, files, includes = scaffold_improvement(args.name)
    folder = improvement.shown()
    message = f"made {folder} with two example cases and one evaluator"
    lines = [
        message,
        f"  1. {folder}/issue.md: what went wrong, and what good looks like",
        f"  2. {folder}/test_cases.jsonl: your cases in place of the two, one JSON object a line",
        f"  3. {folder}/evaluation.json: what a good answer must show (kaizen evaluators lists the types)",
        *[f"  {name} is included: those cases are run as well" for name in includes],
    ]
    data = {"improvement": folder, "files": [improvement.shown(name) for name in files], "include": includes}
    following = f"kaizen validate {args.name}, then kaizen run {args.name} --stage baseline -- COMMAND"
    return Answer(0, "created", message, lines, data, following)

# endregion

# region commands/noise.py
# =============================================================================
# `kaizen noise`: the unchanged agent against itself.
# =============================================================================

SHOWN_UNSTABLE = 10


@command(
    "noise",
    "Runs the unchanged agent several times and says how often its verdicts flip; without a command, of a stage that is there.",
    [
        IMPROVEMENT,
        Argument("--stage", "S", "stage that holds the passes (noise)", {"default": "noise"}),
        Argument("--passes", "N", "how often each case runs (default: 3)", {"type": count_argument, "default": 3}),
        *[argument for argument in RUN_ARGUMENTS if argument.name != "--repetitions"],
    ],
    "kaizen noise refund --passes 3 -- ./agent\nkaizen noise refund --stage baseline",
    group="surer",
    rest="COMMAND [ARG…]",
)
def command_noise(args: Namespace) -> Answer:
    """Runs, evaluates and counts flips; exits as `run` when trials lack evidence."""
    project = load_project(args.improvement)
    improvement, code = project.improvement, 0
    args.repetitions = args.passes
    if args.rest or args.replay:
        summary = run_stage(run_request(args, project, args.stage, OVERWRITE))
        ran = run_answer(args, summary)
        if summary.is_interrupted:
            return ran
        code = ran.code
    require_stage(improvement, args.stage)
    meta = evaluate_stage(improvement, args.stage, project.dataset, project.suite)
    results = PassResults()
    for line in read_json_lines(improvement.stage_file(args.stage, RESULTS)):
        if line.value["case_id"] in project.dataset.cases:
            results.add(line.value)
    document = noise_document(results, list(project.dataset.cases), meta["repetitions"], project.dataset.holdout)
    lines = noise_lines(document)
    reason = "measured" if document["flip_rate"] is not None else "not_measured"
    return Answer(code, reason, lines[0], lines, {"stage": args.stage, **document})


def noise_lines(document: JsonObject) -> list[str]:
    """The document for a terminal."""
    measured = f"{document['cases_measured']:,} of {counted(document['cases'], 'case')}"
    if document["flip_rate"] is None:
        return ["flip rate not measured: no case has verdicts of two passes"]
    limits = f" ({limits_text(document['interval'], is_rate=True)})" if document["interval"] else ""
    lines = [f"two passes of the unchanged agent disagree on {100 * document['flip_rate']:.1f} % of the cases{limits}, over {measured}"]
    expected, kinds = document["expected_changes"], document["stability"]
    lines.append(f"  one run against another would show about {expected:.1f} regressions and as many improvements, though nothing changed")
    stable = f"{kinds['stable_pass']:,} always pass, {kinds['stable_fail']:,} always fail"
    lines.append(f"  {kinds['flaky']:,} flaky, {stable}, {kinds['unknown']:,} unknown")
    for entry in document["by_pass"]:
        counts = f"{entry['passed']:,} passed, {entry['failed']:,} failed, {entry['no_verdict']:,} without a verdict"
        lines.append(f"  pass {entry['pass']}: {counts}")
    names = [f"{visible(entry['id'])} {entry['passed']}/{entry['passed'] + entry['failed']}" for entry in document["unstable"]]
    names += [counted(document["holdout_cases"], "holdout case")] if document["holdout_cases"] else []
    lines.append(f"  flip: {listed(names, SHOWN_UNSTABLE) or 'none'}")
    for entry in document["by_evaluator"]:
        rate = "not measured" if entry["flip_rate"] is None else f"{100 * entry['flip_rate']:.1f} %"
        lines.append(f"  by {visible(entry['id'])} ({entry['type']}): {rate} of {counted(entry['cases'], 'case')}, owner: {entry['owner']}")
    return lines

# endregion

# region commands/plan.py
# =============================================================================
# `kaizen plan`: how many cases and trials it takes, before they are run.
# =============================================================================

USUAL_CASES = (20, 50, 100, 200, 500)
USUAL_TRIALS = (1, 3, 5, 10)
REPEATABLE = {"action": "append", "default": [], "type": count_argument}


def share_argument(text: str) -> float:
    """*text* as a number above 0 and below 1. Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise ArgumentTypeError(f"{quoted(text)} is not a number between 0 and 1")
    return value


def assumption(name: str, value: str, what: str, default: float) -> Argument:
    """An argument that says what to assume where nothing was measured."""
    return Argument(name, value, f"{what} to assume where it is not measured ({default:g})", {"type": share_argument, "default": default})


@command(
    "plan",
    "Says which change each number of cases and trials could show, and what running them would cost; runs nothing.",
    [
        IMPROVEMENT,
        BASELINE,
        CANDIDATE,
        Argument("--cases", "N", "a number of cases (repeatable; default: those of the improvement, and 20 to 500)", {**REPEATABLE}),
        Argument("--trials", "K", "a number of trials (repeatable; default: 1, 3, 5, 10)", {**REPEATABLE}),
        Argument("--effect", "D", "a change of the pass rate, such as 0.05: also print the cases it needs", {"type": share_argument}),
        assumption("--rate", "R", "pass rate", TYPICAL_RATE),
        assumption("--noise", "S", "share of noise in the variance of a trial", TYPICAL_NOISE),
        assumption("--change", "V", "variance of the change over cases", TYPICAL_CHANGE),
        Argument("--jobs", "N", "trials at the same time (default: 1)", {"type": count_argument, "default": 1}),
    ],
    "kaizen plan refund\nkaizen plan refund --effect 0.05 --jobs 4",
    group="surer",
)
def command_plan(args: Namespace) -> Answer:
    """Uses the stages that are there as a pilot; without any, assumptions that it prints."""
    project = load_project(args.improvement)
    quads, sides = pilot(project, args.baseline, args.candidate)
    spread, sources = planning_spread(quads, sides, {"rate": args.rate, "noise": args.noise, "change": args.change})
    own = len(project.dataset.cases)
    cases = sorted(set(args.cases or [*USUAL_CASES, *([own] if own else [])]))
    trials = sorted(set(args.trials or USUAL_TRIALS))
    document = plan_document(spread, sources, cases, trials, measured_means(sides), args.jobs, args.effect)
    message = f"what {counted(own, 'case')} and other numbers of them could show"
    return Answer(0, "planned", message, plan_lines(document, cases, trials, own), {"cases": own, **document})


def pilot(project: Project, baseline: str, candidate: str) -> tuple[list[Quad], list[StageTally]]:
    """([comparable cases of both stages], [the stages that are there]); nothing is run."""
    there = [stage for stage in (baseline, candidate) if os.path.exists(project.improvement.stage_file(stage))]
    if len(there) == 2 and baseline != candidate:
        assessment = assess(project, baseline, candidate)
        return [share_quad(row) for row in comparable_rows(assessment.comparison["cases"])], list(assessment.tallies.values())
    return [], [tallied_stage(project, stage)[0] for stage in dict.fromkeys(there)]


def plan_lines(document: JsonObject, cases: list[int], trials: list[int], own: int) -> list[str]:
    """The tables for a terminal: effects, then cost and time where they were measured."""
    cells = {(cell["cases"], cell["trials"]): cell for cell in document["cells"]}

    def table(key: str, shown: "dict[tuple[int, int], str]") -> list[str]:
        rows = [[key, *[counted(k, "trial") for k in trials]]]
        rows += [[f"{n:,} cases" + (" *" if n == own else ""), *[shown[n, k] for k in trials]] for n in cases]
        widths = [max(len(row[column]) for row in rows) for column in range(len(trials) + 1)]
        return ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]

    lines = ["smallest change of the pass rate seen four times out of five, in points (two-sided 5 %):"]
    lines += table("", {place: f"{100 * cell['smallest_effect']:.1f}" for place, cell in cells.items()})
    if document["trial_cost_usd"] is not None:
        lines += ["cost of both stages in USD, from what was measured:"]
        lines += table("", {place: f"{cell['cost_usd']:,.2f}" for place, cell in cells.items()})
    if document["trial_seconds"] is not None:
        lines += [f"time of both stages at {counted(document['jobs'], 'job')}, from what was measured:"]
        lines += table("", {place: duration(cell["seconds"]) for place, cell in cells.items()})
    else:
        lines.append("cost and time: not known before something was measured; run a few cases")
    if document["needed"]:
        wanted = ", ".join(f"{entry['cases']:,} at {counted(entry['trials'], 'trial')}" for entry in document["needed"])
        lines.append(f"to see a change of {100 * document['effect']:.1f} points: {wanted} (with a tenth more for the exact test)")
    return [*lines, *[f"note: {source}" for source in document["sources"]], *(["* the cases of this improvement"] if own else [])]

# endregion

# region commands/promote.py
# =============================================================================
# `kaizen promote`: the fixed cases become permanent regression tests.
# =============================================================================

ACCEPTED = ("accepted", "accepted_with_conditions")


@command(
    "promote",
    "Appends the improved cases of an accepted improvement to datasets/regression.jsonl, once each.",
    [IMPROVEMENT],
    "kaizen promote refund",
)
def command_promote(args: Namespace) -> Answer:
    """Promotes what an accepted decision about exactly this evidence allows."""
    project = load_project(args.improvement)
    improvement = project.improvement
    decision = decision_of(improvement)
    if decision is None or decision.status not in ACCEPTED:
        status = "there is no decision yet" if decision is None else f"the decision is {quoted(decision.status)}"
        hint = f"run: kaizen decide {improvement.argument()} --status accepted --by NAME --because TEXT"
        raise RefusedError(f"{improvement.shown('decision.yaml')}: {status}", hint, "no_decision" if decision is None else decision.status)
    _, assessment = assess_reviewed(project)
    refuse_stale(assessment, improvement, "promote")
    if decision.evidence != assessment.comparison["evidence"]:
        hint = f"run: kaizen review {improvement.argument()}, then decide about what it shows"
        raise RefusedError(
            f"{improvement.shown('decision.yaml')}: the decision is about other evidence than the current one", hint, "stale_decision"
        )
    return promote_cases(project, assessment)


def promote_cases(project: Project, assessment: Assessment) -> Answer:
    """Appends the cases and says what was left out and why."""
    improved = [row for row in assessment.comparison["cases"] if row["change"] == "improved"]
    holdout = [row for row in improved if row["id"] in project.dataset.holdout]
    shaky = [
        row
        for row in improved
        if row not in holdout
        and (row["candidate"]["fail"] or row["candidate"]["error"] or row["candidate"]["pass"] < row["candidate"]["planned"])
    ]
    chosen = [project.dataset.cases[row["id"]] for row in improved if row not in holdout and row not in shaky]
    folder = os.path.join(project.improvement.outer_folder(), "datasets")
    path = os.path.join(folder, "regression.jsonl")
    make_folder(folder)
    with FileLock(os.path.join(folder, "regression.lock"), "the regression dataset"):
        known = known_inputs(path)
        fresh = [case for case in chosen if not is_known(case, known, path)]
        if fresh:
            append_cases(path, [regression_case(project, case) for case in fresh])
    left_out = [counted(len(holdout), "holdout case")] if holdout else []
    if shaky:
        left_out.append(f"{counted(len(shaky), 'case')} that did not pass every planned trial")
    lines = [f"{counted(len(fresh), 'case')} added to {shown_path(path)}"]
    lines += [f"  already there: {counted(len(chosen) - len(fresh), 'case')}"] if len(chosen) > len(fresh) else []
    lines += [f"  left out: {', '.join(left_out)}"] if left_out else []
    data: JsonObject = {
        "added": [case.id for case in fresh],
        "already_there": len(chosen) - len(fresh),
        "left_out_holdout": len(holdout),
        "left_out_unstable": len(shaky),
        "file": shown_path(path),
    }
    following = (
        'add "include": ["../../datasets/regression.jsonl"] to the evaluation.json of the next improvement (kaizen init does)'
        if fresh
        else ""
    )
    return Answer(0, "promoted", lines[0], lines, data, following)


def known_inputs(path: str) -> dict[str, str]:
    """{case id: input fingerprint} of the dataset *path*; empty when it does not exist."""
    if not os.path.exists(path):
        return {}
    return {str(line.value.get("id")): case_input_fingerprint(line.value) for line in read_json_lines(path)}


def is_known(case: Case, known: dict[str, str], path: str) -> bool:
    """True when the dataset holds *case* already. Raises RefusedError when its id stands there with another input."""
    if case.id in known and known[case.id] != case.input_fingerprint:
        raise RefusedError(
            f"{shown_path(path)}: case {quoted(case.id)} is already there with another input; nothing was added",
            "rename the case in the improvement, or correct the dataset",
            "id_conflict",
        )
    return case.id in known


def regression_case(project: Project, case: Case) -> JsonObject:
    """The case as it goes into the regression dataset: with the evaluators that applied to it."""
    own = {entry["id"]: entry for entry in case_entries(case, project.evaluation, Breaches())}
    entries = {entry["id"]: entry for entry in project.evaluation.evaluators}
    source = {**case.document.get("source", {}), "kind": "regression"}
    return {**case.document, "split": "regression", "source": source, "evaluators": list({**entries, **own}.values())}


def append_cases(path: str, cases: list[JsonObject]) -> None:
    """Writes the dataset anew with *cases* behind what it holds, whole or not at all."""
    before = read_bytes(path) if os.path.exists(path) else b""
    with replacing(path) as stream:
        stream.write(before + (b"\n" if before and not before.endswith(b"\n") else b""))
        for case in cases:
            stream.write(encode_compact(case).encode("utf-8") + b"\n")

# endregion

# region commands/reliability.py
# =============================================================================
# `kaizen reliability`: how sure the change is, and what it would take to be surer.
# =============================================================================

RELIABILITY_FILE = "reliability.json"


@command(
    "reliability",
    "Says how sure a change is: intervals, exact tests, noise, and what it would take to be surer.",
    [
        IMPROVEMENT,
        BASELINE,
        Argument("--candidate", "S", "stage to compare (candidate); repeated, they form one family", {"action": "append", "default": []}),
    ],
    "kaizen reliability refund\nkaizen reliability refund --candidate prompt-a --candidate prompt-b --json",
    group="surer",
)
def command_reliability(args: Namespace) -> Answer:
    """Writes reliability.json; exits 0 whatever the evidence says."""
    project = load_project(args.improvement)
    candidates = list(dict.fromkeys(args.candidate)) or ["candidate"]
    settings = project.evaluation.reliability or default_reliability()
    assessments = {stage: assess(project, args.baseline, stage) for stage in candidates}
    entries = [assessed_entry(project, assessment) for assessment in assessments.values()]
    judge_family(entries, settings)
    document = reliability_document(project, args.baseline, assessments, entries, settings)
    path = project.improvement.path(RELIABILITY_FILE)
    write_file(path, encode_readable(document) + "\n")
    lines = document_lines(document, project.evaluation.reliability is not None)
    message = "; ".join(verdict_text(entry, settings) for entry in entries)
    shown = project.improvement.shown(RELIABILITY_FILE)
    reason = entries[0]["verdict"] if len(entries) == 1 else "measured"
    following = f"kaizen review {project.improvement.shown()}"
    return Answer(0, reason, message, [*lines, f"written to {shown}"], {**document, "files": {"reliability": shown}}, following)


def reliability_document(
    project: Project, baseline: str, assessments: dict[str, Assessment], entries: list[JsonObject], settings: JsonObject
) -> JsonObject:
    """The document of reliability.json; it names no case of the holdout."""
    first = next(iter(assessments.values()))
    entries = [rounded_floats(entry) for entry in entries]
    for entry, assessment in zip(entries, assessments.values(), strict=True):
        entry["evidence"] = assessment.comparison["evidence"]
        entry["problems"] = [{"code": code, "text": text} for code, text in assessment.problems]
        entry["evaluators_changed"] = changed_between(assessment)
    return {
        "version": 1,
        "baseline": first.comparison["baseline"],
        "dataset_fingerprint": first.comparison["dataset_fingerprint"],
        "evaluator_fingerprint": first.comparison["evaluator_fingerprint"],
        "settings": settings,
        "gates": project.evaluation.reliability is not None,
        "family": len(entries),
        "candidates": entries,
        "notes": family_notes(entries),
    }


def rounded_floats(value: Any) -> Any:
    """*value* with every float at nine digits: the last ones may differ between machines, the file may not."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded_floats(item) for key, item in value.items()}
    return [rounded_floats(item) for item in value] if isinstance(value, list) else value


def changed_between(assessment: Assessment) -> list[str]:
    """Ids of the evaluators by which the two sides were not graded alike, sorted."""
    before, after = (assessment.states[role].meta.get("evaluators", {}) for role in ROLES_COMPARED)
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def family_notes(entries: list[JsonObject]) -> list[str]:
    """Whole sentences about several candidates in one call."""
    if len(entries) < 2:
        return []
    notes = [
        f"{counted(len(entries), 'candidate')} were compared with one baseline, so their p-values are adjusted by Holm's method.",
        "The best of several looks better than it is: confirm it on cases that did not choose it.",
    ]
    for number, one in enumerate(entries):
        for other in entries[number + 1 :]:
            intervals = one["rates"]["candidate"]["interval"], other["rates"]["candidate"]["interval"]
            if intervals[0] and intervals[1] and intervals[0][0] <= intervals[1][1] and intervals[1][0] <= intervals[0][1]:
                notes.append(f"{one['stage']} and {other['stage']} are not separated: their intervals overlap.")
    return notes


def document_lines(document: JsonObject, has_block: bool) -> list[str]:
    """The whole document for a terminal."""
    lines = []
    for entry in document["candidates"]:
        lines += [*entry_lines(entry, document), ""]
    lines += [f"note: {note}" for note in document["notes"]]
    if not has_block:
        lines.append("note: evaluation.json has no 'reliability' block, so no gate hangs on this")
    return lines


def entry_lines(entry: JsonObject, document: JsonObject) -> list[str]:
    """One candidate: verdict, numbers, what would settle it, groups."""
    tests = entry["sign_flip"]
    adjusted = tests["adjusted"]["better"]
    holm_text = f", {probability_text(adjusted)} adjusted for {document['family']} candidates" if document["family"] > 1 else ""
    equal = f"P(better) {chance_text(entry, 'better')}, P(equal) {chance_text(entry, 'equal')}"
    rows = [
        (document["baseline"]["stage"], side_text_of(entry, "baseline")),
        (entry["stage"], side_text_of(entry, "candidate")),
        ("change", change_text_of(entry)),
        ("better?", f"{equal}; sign-flip p {probability_text(tests['better'])}{holm_text} (worse: {probability_text(tests['worse'])})"),
    ]
    if entry["mcnemar"]:
        exact, mid = (probability_text(entry["mcnemar"][name]) for name in ("exact", "mid"))
        rows.append(("", f"McNemar p {exact}, mid-p {mid} (two-sided)"))
    moved, unmeasured = entry["moved"], entry["cases"] - entry["cases_compared"]
    before, now = (ids_text(entry["flaky"][role]) for role in ROLES_COMPARED)
    rows += [
        ("cases", f"{moved['up']:,} up, {moved['down']:,} down, {moved['equal']:,} equal, {unmeasured:,} not comparable"),
        ("flaky", f"before {before}, now {now}; newly flaky {ids_text(entry['newly_flaky'])}"),
        ("noise", noise_text(entry)),
        *[("excluded", f"{role} {excluded_text_of(entry, role)}") for role in ROLES_COMPARED if excluded_text_of(entry, role)],
        *[("", f"{problem['text']} ({problem['code']})") for problem in entry["problems"]],
    ]
    width = max(len(name) for name, _ in rows)
    lines = [verdict_text(entry, document["settings"]), *[f"  {name:<{width}}  {text}" for name, text in rows]]
    lines += [f"  {text}" for text in (smallest_effect_text(entry), settle_text(entry)) if text]
    return [*lines, *reliability_group_lines(entry)]


def reliability_group_lines(entry: JsonObject) -> list[str]:
    """The table of splits and tags; [] when there is none."""
    found = entry["groups"]
    if not found["groups"]:
        return []
    head = f"  exploratory, not for deciding; p-values Holm-adjusted over {counted(found['family'], 'group')}:"
    rows: list[tuple[str, ...]] = [("group", "cases", "before", "now", "change", "adjusted p")]
    for group in found["groups"]:
        delta, name = group["delta"], f"{group['kind']} {visible(group['name'], 40)}"
        change = f"{points_text(delta['value'])} ({limits_text(group['interval'])})" if delta else REASONS[group["reason"]]
        rates = [fraction_percent(group["rates"][role]) for role in ROLES_COMPARED]
        rows.append((name, f"{group['cases']:,}", *rates, change, probability_text(group["p_adjusted"])))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["    " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    more = [f"    and {counted(found['left_out'], 'smaller group')}"] if found["left_out"] else []
    return [head, *lines, *more]

# endregion

# region commands/replay_decision.py
# =============================================================================
# `kaizen replay-decision`: kept evidence under a changed evaluator or policy.
# =============================================================================

SHOWN_MOVES = 10


@command(
    "replay-decision",
    "Evaluates kept observations under another evaluation file, runs nothing, writes nothing, and says what flips.",
    [
        IMPROVEMENT,
        Argument("--policy", "FILE", "the evaluation file to try, in the form of evaluation.json", {"required": True}),
        BASELINE,
        CANDIDATE,
    ],
    "kaizen replay-decision refund --policy stricter.json",
    group="surer",
)
def command_replay_decision(args: Namespace) -> Answer:
    """Exits 0 whether anything flips or not."""
    project = load_project(args.improvement)
    before = assess(project, args.baseline, args.candidate)
    other = project_under(project, os.path.abspath(args.policy))
    after = replayed_comparison(other, before)
    found = flips_document(before.comparison, after, project.dataset.holdout)
    now, then = before.comparison["recommendation"], after["recommendation"]
    policy = shown_path(os.path.abspath(args.policy))
    message = f"{now} becomes {then}" if found["flips"] else f"{now} stays {then}"
    lines = [f"{message} under {policy}", f"  now   {headline(before.comparison)}", f"  then  {headline(after)}"]
    for role in ("baseline", "candidate"):
        shown = [rate_text(comparison["rates"][role]) for comparison in (before.comparison, after)]
        lines += [f"  {role}: {shown[0]}", *([f"  {' ' * len(role)}  {shown[1]}"] if shown[0] != shown[1] else [])]
    lines += [f"  also then: {entry['text']}" for entry in after["reasons"][1:]]
    moves = [f"{visible(entry['id'])} ({entry['before']} to {entry['after']})" for entry in found["cases"]]
    moves += [counted(found["holdout_cases"], "holdout case")] if found["holdout_cases"] else []
    lines.append(f"  cases that change: {listed(moves, SHOWN_MOVES) or 'none'}")
    return Answer(0, "flips" if found["flips"] else "stays", message, lines, {"policy": policy, **found})


def project_under(project: Project, path: str) -> Project:
    """*project* with the evaluation file *path* in place of its own. Raises BreachesError with all breaches."""
    improvement, breaches = project.improvement, Breaches()
    evaluation = load_evaluation(improvement, breaches, path)
    breaches.raise_if_any()
    if evaluation is None:
        raise InputError(f"{shown_path(path)}: cannot be used")
    dataset = load_dataset(improvement, evaluation.include, breaches)
    breaches.raise_if_any()
    suite = build_suite(evaluation, dataset, breaches)
    breaches.raise_if_any()
    return Project(improvement, evaluation, dataset, suite)


def replayed_comparison(project: Project, before: Assessment) -> JsonObject:
    """comparison.json as it would be if both stages of *before* were evaluated by *project* now; nothing is written."""
    evaluation: Evaluation = project.evaluation
    stages = {}
    for role, tally in before.tallies.items():
        replayed = replayed_tally(project, tally)
        meta = {"observations_sha256": before.states[role].meta.get("observations_sha256")}
        stages[role] = (replayed, meta)
    fingerprints = (project.dataset.fingerprint, project.suite.fingerprint)
    return comparison_document(evaluation, project.dataset.cases, stages, fingerprints, [])


def replayed_tally(project: Project, stage: StageTally) -> StageTally:
    """The tally of *stage* by the evaluators of *project*, over its observations. Raises InputError for a trial that is there twice."""
    path = project.improvement.stage_file(stage.stage)
    cases: dict[str, CaseTally] = {}
    unknown: dict[str, None] = {}
    seen: set[tuple[str, int]] = set()
    for line in iter_observations(path):
        observation = line.value
        key = (observation["case_id"], observation["trial"])
        if key in seen:
            raise InputError(f"{shown_path(path)}:{line.number}: case {quoted(key[0])} has trial {key[1]} twice", "", "invalid_evidence")
        seen.add(key)
        if key[0] not in project.dataset.cases:
            unknown[key[0]] = None
            continue
        cases.setdefault(key[0], CaseTally()).add(evaluate_observation(observation, project.dataset, project.suite))
    repetitions = max([stage.repetitions, *(trial for _, trial in seen)])
    return StageTally(stage.stage, repetitions, cases, list(unknown))

# endregion

# region commands/review.py
# =============================================================================
# `kaizen review`: comparison.json, review.html, review.md, and the pending decision.
# =============================================================================


@command(
    "review",
    "Compares baseline and candidate and writes review.html, review.md and comparison.json; exits 0 whatever the recommendation.",
    [
        IMPROVEMENT,
        BASELINE,
        CANDIDATE,
        Argument("--open-holdout", "", "show the holdout cases; the opening is recorded and shown from then on"),
    ],
    "kaizen review refund",
)
def command_review(args: Namespace) -> Answer:
    """Writes the review of two stages."""
    project = load_project(args.improvement)
    assessment = assess(project, args.baseline, args.candidate)
    if args.open_holdout:
        record_opening(project.improvement, "review")
    paths = write_review(project, assessment, args.open_holdout)
    comparison = assessment.comparison
    hidden = frozenset() if args.open_holdout else project.dataset.holdout
    lines = [*recommendation_lines(comparison, hidden), f"page: {paths['html']}"]
    data: JsonObject = {key: comparison[key] for key in ("recommendation", "counts", "rates", "delta", "evidence", "notes")}
    data["reasons"] = shown_reasons(comparison, hidden)
    following = f"open {paths['html']}, then: {decide_command(project.improvement)}"
    return Answer(0, comparison["recommendation"], headline(comparison), lines, {**data, "files": paths}, following)

# endregion

# region commands/test.py
# =============================================================================
# `kaizen test`: the daily call: run, evaluate, review and gate in one process.
# =============================================================================

SHOWN_FAILURES = 10


@command(
    "test",
    "Runs the candidate, evaluates, reviews and gates in one go: the daily call.",
    [
        IMPROVEMENT,
        Argument("--stage", "S", "stage to run (candidate); what it held before is replaced", {"default": "candidate"}),
        BASELINE,
        *RUN_ARGUMENTS,
        JUNIT,
        SUMMARY,
    ],
    "kaizen test refund -- ./agent\nkaizen test refund --repetitions 5 --jobs 4 --junit report.xml -- python agent.py",
    rest="COMMAND [ARG…]",
)
def command_test(args: Namespace) -> Answer:
    """Exit as gate; without a baseline 0 or 1 by the stage's own pass rate."""
    project = load_project(args.improvement)
    improvement = project.improvement
    has_baseline = os.path.exists(improvement.stage_file(args.baseline))
    if args.stage == args.baseline:
        raise UsageError(f"--stage {args.stage} is the baseline itself", "test runs what is compared with it: leave --stage out")
    if not has_baseline and (args.junit or args.summary):
        raise UsageError(
            "--junit and --summary need a baseline to compare with",
            f"run: kaizen run {improvement.argument()} --stage {args.baseline} -- COMMAND",
        )
    summary = run_stage(run_request(args, project, args.stage, OVERWRITE))
    ran = run_answer(args, summary)
    if summary.is_interrupted:
        return ran
    evaluate_stage(improvement, args.stage, project.dataset, project.suite)
    failures = failed_lines(project, args.stage)
    return compared(args, project, ran, failures) if has_baseline else alone(args, project, ran, failures)


def compared(args: Namespace, project: Project, ran: Answer, failures: list[str]) -> Answer:
    """The answer when there is a baseline: that of gate, with the failures and the page."""
    assessment = assess(project, args.baseline, args.stage)
    paths = write_review(project, assessment)
    write_gate_files(project, assessment, args.junit, args.summary)
    comparison = assessment.comparison
    lines = [*recommendation_lines(comparison, project.dataset.holdout), *failures, f"page: {paths['html']}"]
    data: JsonObject = {key: comparison[key] for key in ("recommendation", "counts", "rates", "delta", "evidence", "notes")}
    data["reasons"] = shown_reasons(comparison, project.dataset.holdout)
    code = GATE_EXITS[comparison["recommendation"]]
    return Answer(code, comparison["recommendation"], headline(comparison), lines, {**data, "run": ran.data, "files": paths})


def alone(args: Namespace, project: Project, ran: Answer, failures: list[str]) -> Answer:
    """The answer without a baseline: the stage's pass rate against `minimum_pass_rate`, every trial of which must be measured."""
    improvement = project.improvement
    asked = [case.id for case in select_cases(project.dataset, args.id, args.tag, args.split)]
    tally = tally_stage(args.stage, improvement.stage_file(args.stage, RESULTS), max(args.repetitions, 1), set(asked))
    state = stage_state(improvement, args.stage, project.dataset, project.suite)
    document = single_stage_document(asked, tally, state.meta)
    rates = document["rates"]["candidate"]
    page = write_single_review(project, Assessment(document, {"candidate": state}, []))
    wanted = project.evaluation.acceptance["minimum_pass_rate"]
    limit = exact_fraction(1 if wanted is None else wanted)
    rate = rates["rate"]
    # Trials without evidence must not lift the rate: each counts against it here.
    is_met = rate is not None and rates["passed"] >= limit * rates["planned"]
    needed = exact_percent(limit, limit)[1]
    shown = "not measured" if rate is None else percent(rate["numerator"], rate["denominator"])
    verdict = (
        f"{'met' if is_met else 'missed'}: {rates['passed']:,} of {counted(rates['planned'], 'planned trial')} passed (at least {needed})"
    )
    lines = [verdict, f"  {args.stage}  {rate_text(rates)}", *failures, "  there is no baseline, so nothing was compared", f"page: {page}"]
    following = f"kaizen run {improvement.argument()} --stage {args.baseline} -- COMMAND, to compare with the agent as it was"
    data: JsonObject = {"pass_rate": rate, "shown_pass_rate": shown, "rates": rates, "run": ran.data, "files": {"html": page}}
    return Answer(EXIT_DONE if is_met else EXIT_NO, "passed" if is_met else "failed", verdict, lines, data, following)


def failed_lines(project: Project, stage: str) -> list[str]:
    """The first ten trials that failed or errored, each with the reason that decided; holdout cases are only counted."""
    lines: list[str] = []
    failed = hidden = 0
    for line in read_json_lines(project.improvement.stage_file(stage, RESULTS)):
        result = line.value
        if result["outcome"] == "pass" or result["case_id"] not in project.dataset.cases:
            continue
        failed += 1
        if result["case_id"] in project.dataset.holdout:
            hidden += 1
        elif len(lines) < SHOWN_FAILURES:
            lines.append(f"  {failed_line(result)}")
    more = failed - hidden - len(lines)
    lines += [f"  and {more:,} more"] if more > 0 else []
    return lines + ([f"  and {counted(hidden, 'trial')} of holdout cases"] if hidden else [])


def failed_line(result: JsonObject) -> str:
    """'fail  refund-1  asked_first: no consent before step 3'."""
    deciding = [entry for entry in result["evaluations"] if entry["status"] == result["outcome"] and entry["severity"] in ("hard", "gate")]
    first = deciding[0] if deciding else {"id": "outcome", "reason": "nothing was checked"}
    trial = f" (trial {result['trial']})" if result["trial"] > 1 else ""
    return f"{result['outcome']:<5} {visible(result['case_id'], 60)}{trial}  {visible(first['id'], 40)}: {visible(first['reason'], 160)}"

# endregion

# region commands/validate.py
# =============================================================================
# `kaizen validate`: every file of an improvement checked, every breach with its place.
# =============================================================================

SHOWN_TAGS = 20
SHOWN_IDS = 10


@command(
    "validate",
    "Checks every file of an improvement and reports every breach with file, line and what to do; exits 1 when there is one.",
    [IMPROVEMENT],
    "kaizen validate refund\nkaizen validate refund --json",
)
def command_validate(args: Namespace) -> Answer:
    """Reports breaches, then warnings, then what the improvement holds."""
    return validation_answer(validate_improvement(find_improvement(args.improvement)))


class Validation(NamedTuple):
    """What was checked, and what came of it; None for what could not be read."""

    improvement: Improvement
    evaluation: Evaluation | None
    dataset: Dataset
    suite: Suite | None
    files: list[str]
    breaches: Breaches


def validate_improvement(improvement: Improvement) -> Validation:
    """Checks every file of *improvement* in one pass."""
    breaches = Breaches()
    evaluation = load_evaluation(improvement, breaches)
    dataset = load_dataset(improvement, evaluation.include if evaluation else [], breaches)
    suite = checked_suite(evaluation, dataset, breaches)
    warn_about_cases(improvement, dataset, breaches)
    if evaluation is not None and evaluation.document.get("evaluators") == []:
        message = "is empty: nothing is checked but by evaluators of a case's own"
        breaches.warn(evaluation.path, evaluation.line("/evaluators"), "/evaluators", message, "kaizen evaluators lists the types")
    files = check_other_files(improvement, dataset, breaches)
    if suite is not None and not breaches.errors:
        check_results_fit(improvement, dataset, suite, breaches)
    return Validation(improvement, evaluation, dataset, suite, files, breaches)


def checked_suite(evaluation: Evaluation | None, dataset: Dataset, breaches: Breaches) -> Suite | None:
    """The suite, prepared so that its breaches are known; None when its entries could not even be read."""
    if evaluation is None:
        return None
    before = len(breaches.errors)
    if any(error.path == evaluation.path and error.pointer.startswith(("/evaluators", "/define")) for error in breaches.errors):
        return None
    suite = build_suite(evaluation, dataset, breaches)
    return suite if len(breaches.errors) == before else None


def warn_about_cases(improvement: Improvement, dataset: Dataset, breaches: Breaches) -> None:
    """Warns of cases without a source, by file, and of cases without a split beside others that have one."""
    lacking: dict[str, list[str]] = {}
    hidden: Counter[str] = Counter()
    for case in dataset.cases.values():
        if "source" not in case.document:
            names = lacking.setdefault(case.path, [])
            if case.id in dataset.holdout:
                hidden[case.path] += 1
            else:
                names.append(visible(case.id, 40))
    for path, names in lacking.items():
        more = [f"{len(names) - SHOWN_IDS} more"] if len(names) > SHOWN_IDS else []
        more += [counted(hidden[path], "holdout case")] if hidden[path] else []
        message = f"{counted(len(names) + hidden[path], 'case')} without a source: {listed([*names[:SHOWN_IDS], *more], SHOWN_IDS + 2)}"
        breaches.warn(path, None, "", message, f'write "source": {{"kind": "{"|".join(SOURCE_KINDS)}"}}')
    unsplit = sum("split" not in case.document for case in dataset.cases.values())
    if 0 < unsplit < len(dataset.cases):
        message = f"{counted(unsplit, 'case')} without a split, while others have one"
        breaches.warn(improvement.shown(CASES_FILE), None, "", message, f"use one of {listed(SPLITS, last='or')}")


def check_results_fit(improvement: Improvement, dataset: Dataset, suite: Suite, breaches: Breaches) -> None:
    """Reports results that nobody but evaluate should have written, and warns of stale ones."""
    for stage in filter(lambda name: has_results(improvement, name), improvement.stages()):
        shown = improvement.shown(stage + RESULTS)
        try:
            problems = stage_state(improvement, stage, dataset, suite).problems
        except InputError as error:
            problems = [("invalid_evidence", error.message)]
        for code, sentence in problems:
            note = breaches.add if code == "invalid_evidence" else breaches.warn
            note(shown, None, "", sentence, f"run: kaizen evaluate {improvement.argument()}")


def validation_answer(found: Validation) -> Answer:
    """Breaches, warnings, counts and fingerprints, for people and for programs."""
    improvement, evaluation, dataset, suite, files, breaches = found
    errors, warnings = in_file_order(breaches.errors), in_file_order(breaches.warnings)
    evaluators = len(evaluation.evaluators) if evaluation else 0
    if errors:
        message = f"{improvement.shown()}: {counted(len(errors), 'breach', 'breaches')}"
    else:
        message = f"{improvement.shown()} is valid: {counted(len(dataset.cases), 'case')}, {counted(evaluators, 'evaluator')}"
    holds = dataset_counts(dataset)
    lines = [message, *shown_breaches(errors)]
    if warnings:
        lines += [f"{counted(len(warnings), 'warning')}:", *shown_breaches(warnings)]
    lines += dataset_count_lines(holds)
    if not errors:
        lines += [f"  dataset     {dataset.fingerprint}", f"  evaluators  {suite.fingerprint if suite else 'not known'}"]
    data: JsonObject = {
        "valid": not errors,
        "breach_count": len(errors),
        "breaches": [breach_document(breach) for breach in errors[:MAX_BREACHES_SHOWN]],
        "warning_count": len(warnings),
        "warnings": [breach_document(breach) for breach in warnings[:MAX_BREACHES_SHOWN]],
        "cases": holds,
        "evaluators": evaluators,
        "files": files,
        "dataset_fingerprint": None if errors else dataset.fingerprint,
        "evaluator_fingerprint": suite.fingerprint if suite and not errors else None,
    }
    return Answer(EXIT_NO if errors else EXIT_DONE, "invalid" if errors else "valid", message, lines, data)


def in_file_order(breaches: list[Breach]) -> list[Breach]:
    """*breaches* by file, in the order in which the files were checked, then by line."""
    places = {path: index for index, path in enumerate(dict.fromkeys(breach.path for breach in breaches))}
    return sorted(breaches, key=lambda breach: (places[breach.path], breach.line or 0))


def shown_breaches(breaches: list[Breach]) -> list[str]:
    """A line for each of *breaches*, at most 50, then a count of the rest."""
    hidden = len(breaches) - MAX_BREACHES_SHOWN
    lines = [f"  {breach.text()}" for breach in breaches[:MAX_BREACHES_SHOWN]]
    return [*lines, f"  and {hidden} more"] if hidden > 0 else lines


def breach_document(breach: Breach) -> JsonObject:
    """*breach* as --json shows it."""
    return {"path": breach.path, "line": breach.line, "pointer": breach.pointer, "message": breach.message, "hint": breach.hint}


def dataset_counts(dataset: Dataset) -> JsonObject:
    """How many cases there are, by split and tag, and how many are critical; tags are those of cases that may be shown."""
    documents = [case.document for case in dataset.cases.values()]
    splits = Counter(document.get("split", "none") for document in documents)
    tags = Counter(tag for case in dataset.cases.values() if case.id not in dataset.holdout for tag in case.document.get("tags", []))
    return {
        "count": len(documents),
        "splits": {name: splits[name] for name in (*SPLITS, "none") if splits[name]},
        "tags": dict(sorted(tags.items(), key=lambda item: (-item[1], item[0]))),
        "critical": sum(document.get("critical", False) for document in documents),
        "without_source": sum("source" not in document for document in documents),
    }


def dataset_count_lines(holds: JsonObject) -> list[str]:
    """The counts of `dataset_counts` for people."""
    splits = [f"{number:,} {'without a split' if name == 'none' else name}" for name, number in holds["splits"].items()]
    lines = [f"  cases       {holds['count']:,}" + (f": {listed(splits)}" if splits else "") + f"; {holds['critical']:,} critical"]
    tags = [f"{visible(tag, 40)} {number:,}" for tag, number in holds["tags"].items()]
    return [*lines, *([f"  tags        {listed(tags, SHOWN_TAGS)}"] if tags else [])]

# endregion

# region cli/parser.py
# =============================================================================
# The command line: one argparse parser, for the command that was named.
# =============================================================================

MAIN_HELP = r"""Kaizen: prove that a change to an AI agent is an improvement, before you ship it.

  kaizen demo                                          see it work, nothing to install
  kaizen init refund                                   a folder with cases and evaluators to fill in
  kaizen validate refund                               every mistake, with file, line and what to do
  kaizen run refund --stage baseline -- ./agent        your agent as it is
  kaizen run refund --stage candidate -- ./agent       your agent as you changed it
  kaizen review refund                                 evaluate, compare, write review.html
  kaizen decide refund --status accepted --by NAME --because TEXT
  kaizen promote refund                                keep the fixed cases as regression tests

  kaizen test refund -- ./agent                        the daily call: run, evaluate, review, gate

An agent is any program: it reads one JSON request on standard input and prints
{"output": …} on standard output. Exit codes: 0 done or eligible, 1 no, 2 wrong usage,
3 a person must decide, 4 incomplete, 5 refused.

kaizen COMMAND --help explains a command; kaizen --help lists them all.
"""


class HelpShown(Exception):
    """Raised when help was asked for; holds the text."""


class CommandParser(argparse.ArgumentParser):
    """A parser that raises UsageError in place of printing and leaving, and names the nearest option."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"see: {self.prog} --help")

    def print_help(self, file: object = None) -> None:
        raise HelpShown(self.format_help())


def split_rest(argv: list[str]) -> tuple[list[str], list[str] | None]:
    """(arguments before the first '--', those behind it or None when there is none)."""
    if "--" not in argv:
        return argv, None
    place = argv.index("--")
    return argv[:place], argv[place + 1 :]


def command_parser(entry: Command) -> CommandParser:
    """The parser of one command."""
    usage_rest = f" -- {entry.rest}" if entry.rest else ""
    parser = CommandParser(
        prog=f"kaizen {entry.name}",
        description=entry.summary,
        epilog="example:\n" + "\n".join(f"  {line}" for line in entry.example.splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for argument in entry.arguments:
        shown: dict[str, object] = {"metavar": argument.value} if argument.value and "choices" not in argument.options else {}
        switch = {} if argument.value or "action" in argument.options else {"action": "store_true"}
        parser.add_argument(argument.name, help=argument.text.replace("%", "%%"), **{**shown, **switch, **argument.options})
    parser.add_argument("--json", action="store_true", help="print one JSON document on standard output, or nothing")
    parser.usage = parser.format_usage().removeprefix("usage: ").rstrip() + usage_rest
    return parser


def parse_command_line(argv: list[str]) -> tuple[Command, argparse.Namespace]:
    """The command that *argv* names and its arguments (`rest`: what follows `--`). Raises UsageError or HelpShown."""
    name = argv[0]
    if name in ("-h", "--help", "help"):
        if len(argv) > 1 and argv[1] in COMMANDS:
            raise HelpShown(command_parser(COMMANDS[argv[1]]).format_help())
        raise HelpShown(main_help(True))
    if name.startswith("-"):
        raise UsageError(f"unknown option {quoted(name)}", "usage: kaizen COMMAND …; see: kaizen --help")
    if name not in COMMANDS:
        raise UsageError(f"there is no command {quoted(name)}", did_you_mean(name, COMMANDS))
    entry = COMMANDS[name]
    before, rest = split_rest(argv[1:])
    if rest is not None and not entry.rest:
        raise UsageError(f"kaizen {name} takes nothing after '--'", f"see: kaizen {name} --help")
    parser = command_parser(entry)
    options = [option for action in parser._actions for option in action.option_strings]
    for word in (each.split("=")[0] for each in before if each.startswith("--")):
        if word not in options:  # said before argparse misses the one that was meant
            raise UsageError(f"unknown option {quoted(word)}", did_you_mean(word, options) or f"see: kaizen {name} --help")
    namespace, unknown = parser.parse_known_args(before)
    if unknown:
        word = unknown[0].split("=")[0]
        what = "unknown option" if word.startswith("-") else "unexpected argument"
        hint = (
            did_you_mean(word, options)
            if word.startswith("-")
            else f"see: kaizen {name} --help" + ("; the command to run goes behind '--'" if entry.rest else "")
        )
        raise UsageError(f"{what} {quoted(word)}", hint)
    namespace.rest = rest
    return entry, namespace


def main_help(is_full: bool) -> str:
    """The main flow, as `kaizen` alone shows it; with *is_full* also every command with its sentence, by group."""
    if not is_full:
        return MAIN_HELP
    lines = [MAIN_HELP.rstrip("\n")]
    for group in dict.fromkeys(entry.group for entry in COMMANDS.values()):
        lines += ["", f"{group}:"]
        lines += [f"  {entry.name:<12} {entry.summary}" for entry in COMMANDS.values() if entry.group == group]
    return "\n".join(lines) + "\n"

# endregion

# region cli/main.py
# =============================================================================
# Entry point: every ending becomes output and an exit status.
# =============================================================================


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns its exit status (formats.md section 7)."""
    arguments = sys.argv[1:] if argv is None else argv
    open_missing_streams()
    if arguments[:1] == ["--version"]:
        print(version_line())
        return 0
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that knows only ASCII gets escapes, not a traceback
            stream.reconfigure(errors="backslashreplace")
    try:
        status = run_command(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        silence_descriptor(sys.stdout.fileno())  # the reader has gone; the interpreter's own flush must be silent too
        return EXIT_INTERRUPTED


def run_command(arguments: list[str]) -> int:
    """Runs the command that *arguments* name and prints its answer or its error."""
    wants_json = "--json" in arguments[: arguments.index("--") if "--" in arguments else None]
    if not arguments:
        print(main_help(False), end="", file=sys.stderr)
        return EXIT_USAGE
    try:
        entry, namespace = parse_command_line(arguments)
        return print_answer(entry.run(namespace), wants_json)
    except HelpShown as shown:
        print(shown, end="")
        return 0
    except KaizenError as error:
        return print_error(error, wants_json)
    except KeyboardInterrupt:
        return print_error(KaizenError("interrupted", reason="interrupted"), wants_json, EXIT_INTERRUPTED)
    except BrokenPipeError:
        raise
    except Exception as error:
        if os.environ.get("KAIZEN_DEBUG"):
            raise
        place = innermost_frame(error)
        defect = KaizenError(
            f"this is a defect of Kaizen: {type(error).__name__}: {error} ({place})",
            f"{version_line()}; please report it, with KAIZEN_DEBUG=1 for the traceback",
            "defect",
        )
        return print_error(defect, wants_json, EXIT_DEFECT)


def print_answer(answer: Answer, wants_json: bool) -> int:
    """Prints *answer* on standard output, as text or as one JSON document; returns its exit code."""
    if wants_json:
        document: JsonObject = {"ok": answer.code == 0, "code": answer.code, "reason": answer.reason, "message": answer.message}
        write_out(encode_readable({**document, "next": answer.next, **answer.data}))
        return answer.code
    write_out("\n".join([*(answer.lines or [answer.message]), *([f"next: {answer.next}"] if answer.next else [])]))
    return answer.code


def write_out(text: str) -> None:
    """Prints *text* on standard output, and out of this process. Raises KaizenError when there is no room for it."""
    try:
        print(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence_descriptor(sys.stdout.fileno())  # what did not fit must not be tried again when the interpreter ends
        message = f"standard output: cannot be written: {error.strerror}"
        raise KaizenError(message, "make room, or send it elsewhere", "unwritable") from None


def print_error(error: KaizenError, wants_json: bool, status: int | None = None) -> int:
    """Prints *error* on standard error, with --json also as a document on standard output; returns the exit code."""
    code = error.exit_status if status is None else status
    further = error.further_lines() if isinstance(error, BreachesError) else []
    if wants_json:
        document: JsonObject = {"ok": False, "code": code, "reason": error.reason, "message": error.message, "next": error.hint}
        print(encode_readable({**document, "further": further}))
    to_do = f" [{error.hint}]" if further and error.hint else ""  # beside its own line when there are more
    print_diagnostic(f"kaizen: error: {error.message}{to_do}", sys.stderr)
    for line in further:
        print_diagnostic(line, sys.stderr)
    if error.hint and not further:
        print_diagnostic(f"hint: {error.hint}", sys.stderr)
    return code


def print_diagnostic(line: str, stream: TextIO) -> None:
    """Prints *line* as one line, whatever it holds."""
    print(line.replace("\n", " "), file=stream)


def innermost_frame(error: BaseException) -> str:
    """'kaizen.py:812 in wilson_interval': the deepest frame inside Kaizen's own file."""
    found = "no frame"
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == own_path() or os.sep + "kaizen" + os.sep in code.co_filename:
            found = f"{os.path.basename(code.co_filename)}:{trace.tb_lineno} in {code.co_name}"
        trace = trace.tb_next
    return found

# endregion


if __name__ == "__main__":
    raise SystemExit(main())

"""Whether a history is still what was written: every file, every byte, every rule.

Each problem names the file. A history that lost its end looks like a shorter one that never
had it; champion.json and the folders of the lost runs tell, and where somebody removed those
too, only an anchor digest that is kept elsewhere does.
"""

import os
import re
import stat

from kaizen.cases.decision import Decision
from kaizen.foundation.errors import KaizenError
from kaizen.foundation.files import read_bytes, refuse_link_out, refuse_reading, shown_path
from kaizen.foundation.jsonio import JsonError, JsonObject, parse_json
from kaizen.history.archive import entry_object
from kaizen.history.ledger import (
    CHAMPION_FILE,
    CONFLICT_MARKS,
    FORK_HINT,
    LEDGER_FILE,
    LINE_ENDS_HINT,
    PROMOTION,
    RESTORE_HINT,
    RUNS_FOLDER,
    UNFINISHED_FILE,
    LedgerProblem,
    anchor_number,
    anchor_problem,
    champion_text,
    has_lost_ledger,
    ledger_data,
    parsed_ledger,
)
from kaizen.history.promotion import decision_obstacle, rule_obstacle
from kaizen.history.reading import MANIFEST_FILE, History, HistoryRun, loaded_run, object_problem, runs_of
from kaizen.history.recording import ATTRIBUTES, ATTRIBUTES_FILE, HALF_WRITTEN, LOCK_FILE

DASHBOARD_FILE = "dashboard.html"
NOT_HISTORY = (DASHBOARD_FILE, LOCK_FILE)


def history_problems(folder: str, anchor: str | None = None) -> tuple[History, list[LedgerProblem]]:
    """(the history in *folder* as far as it can be read, everything that is wrong with it); *anchor* is a digest it must extend.

    Raises InputError when there is no history or *anchor* is none, RefusedError for a schema newer than this program.
    """
    path = os.path.join(folder, LEDGER_FILE)
    shown = shown_path(path)
    if anchor is not None:
        anchor_number(anchor)
    if has_lost_ledger(folder):
        words = "is missing, and with it what tells which runs there are"
        return History(folder, [], {}), [LedgerProblem(shown, 0, "ledger_removed", words)]
    entries, problems = parsed_ledger(ledger_data(path), shown)
    unique = list({entry["run"]: entry for entry in reversed(entries) if entry["kind"] != PROMOTION}.values())
    history = History(folder, entries, runs_of(entries, {entry["run"]: loaded_run(folder, entry) for entry in reversed(unique)}))
    problems += champion_problems(folder, entries, bool(problems))
    problems += attribute_problems(folder)
    problems += run_file_problems(history)
    problems += promotion_problems(history, shown)
    problems += stray_problems(history)
    found = anchor_problem(entries, anchor, shown) if anchor is not None and entries else None
    return history, problems + ([found] if found else [])


def fixed_problem(path: str, expected: bytes, code: str, words: str) -> list[LedgerProblem]:
    """The problem of the file *path*, when it does not hold *expected*."""
    shown = shown_path(path)
    if os.path.islink(path):
        return []  # named with the other links
    if not os.path.isfile(path):
        return [LedgerProblem(shown, 0, code, "is no file" if os.path.lexists(path) else "is missing")]
    data = read_bytes(path)
    if data == expected:
        return []
    if data.startswith(CONFLICT_MARKS) or any(b"\n" + mark in data for mark in CONFLICT_MARKS):
        return [LedgerProblem(shown, 0, "conflict_markers", "holds the marks of a merge conflict", FORK_HINT)]
    if data.replace(b"\r\n", b"\n") == expected:
        return [LedgerProblem(shown, 0, "line_ends", "only its line ends differ: CRLF for LF", LINE_ENDS_HINT)]
    return [LedgerProblem(shown, 0, code, words)]


def champion_problems(folder: str, entries: list[JsonObject], is_broken: bool) -> list[LedgerProblem]:
    """What is wrong with champion.json beside the *entries* of the ledger, which *is_broken* when not all could be read."""
    path = os.path.join(folder, CHAMPION_FILE)
    known = stated_entries(path)
    words = "does not agree with the ledger"
    if not is_broken and known is not None and known != len(entries):
        words += f": it knows {known} entries, the ledger has {len(entries)}"
        words += "; the last ones are gone" if known > len(entries) else "; entries were added, or a recording was stopped"
    if is_broken and known is not None and os.path.isfile(path) and known != len(entries):
        return []  # the ledger's own problems say more
    return fixed_problem(path, champion_text(entries).encode("utf-8"), "champion_mismatch", words)


def stated_entries(path: str) -> int | None:
    """The number of entries that champion.json at *path* knows; None when it does not say."""
    try:
        refuse_link_out(path)
        document = parse_json(read_bytes(path).decode("utf-8"))
        return int(document["entries"])
    except (KaizenError, JsonError, UnicodeDecodeError, TypeError, KeyError, ValueError):
        return None


def attribute_problems(folder: str) -> list[LedgerProblem]:
    """What is wrong with .gitattributes."""
    return fixed_problem(os.path.join(folder, ATTRIBUTES_FILE), ATTRIBUTES.encode("utf-8"), "attributes_changed", "was changed")


def run_file_problems(history: History) -> list[LedgerProblem]:
    """What is wrong with the manifests and the archived files, each file once."""
    known: dict[str, str] = {}
    found = []
    for run in history.runs.values():
        if run.problem:
            found.append(told_problem(run.problem))
        for entry in archived_entries(run):
            if entry_object(entry) not in known:
                words = known[entry_object(entry)] = object_problem(history.folder, entry, {})
                found += [told_problem(f"{words} ({entry['name']} of {run.id})")] if words else []
    return found


def told_problem(text: str) -> LedgerProblem:
    """The problem that *text*, 'path: words', tells."""
    path, _, words = text.partition(": ")
    is_crlf = words.startswith("only its line ends")
    return LedgerProblem(path, 0, "line_ends" if is_crlf else "hash_mismatch", words, LINE_ENDS_HINT if is_crlf else RESTORE_HINT)


def archived_entries(run: HistoryRun) -> list[JsonObject]:
    """The entries of all files that *run* and its promotions rest on."""
    return [*run.manifest.get("files", []), *(entry["decision"]["file"] for entry in run.promotions)]


def promotion_problems(history: History, shown: str) -> list[LedgerProblem]:
    """Promotions that the rules did not allow when they were written."""
    found = []
    for entry in history.entries:
        if entry["kind"] != PROMOTION:
            continue
        before = history.before(entry["seq"] - 1)
        run = before.runs.get(entry["run"])
        if run is None:
            words = f"promotes {entry['run']}, which was not recorded before"
        elif not run.manifest:
            continue  # its manifest is named already
        else:
            obstacle = rule_obstacle(before, run) or decision_obstacle(run, Decision(**entry["decision"]["stated"], path=""))
            words = f"a promotion that the rules do not allow: {obstacle.text}" if obstacle else ""
        if words:
            found.append(LedgerProblem(shown, entry["seq"], "forged_promotion", words))
    return found


def stray_problems(history: History) -> list[LedgerProblem]:
    """Files that no part of the history names, links, and what a stopped recording left."""
    expected = {ATTRIBUTES_FILE, LEDGER_FILE, CHAMPION_FILE, *NOT_HISTORY}
    for run in history.runs.values():
        expected.add(f"{RUNS_FOLDER}/{run.id}/{MANIFEST_FILE}")
        expected.update(map(entry_object, archived_entries(run)))
    broken = {run.id for run in history.runs.values() if not run.manifest}
    found: list[LedgerProblem] = []
    for name, mode in sorted(found_names(history.folder)):
        shown = shown_path(os.path.join(history.folder, *name.split("/")))
        if stat.S_ISLNK(mode):
            found.append(
                LedgerProblem(shown, 0, "link", "is a symbolic link, which a history never holds", "put the file itself in its place")
            )
        elif name == UNFINISHED_FILE or re.fullmatch(HALF_WRITTEN, os.path.basename(name)):
            words = "a recording is under way or was stopped; the ledger is as it was before or after it"
            found.append(LedgerProblem(shown, 0, "unfinished", words, "record again: that clears away what was left"))
        elif name not in expected and not (broken and name.startswith("objects/")):
            words = "is named nowhere in the history: it was added, or what named it is gone"
            found.append(LedgerProblem(shown, 0, "added", words, f"if it came with a merge: {FORK_HINT}; else remove it"))
    return found


def found_names(folder: str) -> list[tuple[str, int]]:
    """(path from *folder* with '/', mode) of everything below it but folders; links are named and not followed."""
    found, waiting = [], [folder]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                modes = [(entry.path, entry.stat(follow_symlinks=False).st_mode) for entry in entries]
        except OSError as error:
            refuse_reading(place, error)
        waiting += [path for path, mode in modes if stat.S_ISDIR(mode)]
        found += [(os.path.relpath(path, folder).replace(os.sep, "/"), mode) for path, mode in modes if not stat.S_ISDIR(mode)]
    return found

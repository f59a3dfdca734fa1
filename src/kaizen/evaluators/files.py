"""What became of the work folder: the evaluator `files`.

It reads the observation's `files`, {path: {"change", "sha256", "bytes", "added_lines", "removed_lines", "text"}},
which `kaizen run --keep GLOB` measures or the runner reports. Globs are those of `--keep`. A path that leads
out of the folder is meant by none. What was not measured is not known: it is neither there nor absent.
"""

import re
from collections.abc import Callable
from typing import Any

from kaizen.evaluators.outcomes import ConfigurationError, NotMeasurable, Outcome, decided
from kaizen.evaluators.predicates import compile_predicate, is_predicate
from kaizen.evaluators.registry import Check, Parameter, View, evaluator
from kaizen.foundation.globs import glob_pattern, glob_test
from kaizen.foundation.jsonio import JsonObject, pointer_token
from kaizen.foundation.text import counted, listed, quoted, visible
from kaizen.runs.kept_files import FILE_COUNT_LIMIT

CHANGED = ("added", "modified", "deleted")
FILES_TOLD = 5
FILES_EVIDENCE = 20
REASON_LIMIT = 1000

FilesTest = Callable[["FolderRecord"], None]  # notes what it finds in the record


class FolderRecord:
    """The `files` of one observation, and what is found wrong or not known of them.

    `entries` by path without ./ and inner dots; `pointers` lead to them in the observation. Raises NotMeasurable.
    """

    def __init__(self, files: Any) -> None:
        if files is None:
            raise NotMeasurable("the observation has no files: run with --keep, or let the runner report them")
        if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
            raise NotMeasurable("the observation's files are no object of objects by path")
        self.entries: JsonObject = {}
        self.pointers: dict[str, str] = {}
        for path, entry in files.items():
            plain = plain_path(path)
            self.entries[plain] = entry
            self.pointers[plain] = f"/files{pointer_token(path)}"
        self.is_whole = len(files) < FILE_COUNT_LIMIT  # beyond which files are left out
        self.wrong: list[str] = []
        self.unknown: list[str] = []
        self.at: list[str] = []

    def change(self, path: str) -> str:
        """How *path* changed; '' when that was not recorded."""
        change = self.entries[path].get("change")
        return change if isinstance(change, str) and change in (*CHANGED, "unchanged") else ""

    def meant(self, is_meant: Callable[[str], bool], is_there: bool = False) -> list[str]:
        """The recorded paths that *is_meant*, in order; with *is_there* none that is deleted."""
        return [path for path in sorted(self.entries) if is_meant(path) and not (is_there and self.change(path) == "deleted")]

    def blame(self, paths: list[str], what: str) -> None:
        """Notes that *what* is wrong with *paths*."""
        self.wrong.append(f"{listed([visible(path, 80) for path in paths], FILES_TOLD)} {what}")
        self.at += paths

    def lacks(self, glob: str, what: str) -> None:
        """Notes that no recorded file is *glob*; where files were left out that is not known."""
        (self.wrong if self.is_whole else self.unknown).append(f"no {what} is {quoted(glob)}")

    def ask_changes(self, paths: list[str]) -> list[str]:
        """Those of *paths* that changed; notes those of which it was not recorded."""
        silent = [path for path in paths if not self.change(path)]
        if silent:
            self.unknown.append(f"how {listed([visible(path, 80) for path in silent], FILES_TOLD)} changed was not recorded")
        return [path for path in paths if self.change(path) in CHANGED]


def plain_path(path: str) -> str:
    """*path* without ./ and inner dots, with / between its parts."""
    from posixpath import normpath

    return normpath(path)


# --- What each parameter asks: (its value, its pointer) -> the test ------------------------------


def file_globs(value: Any, pointer: str) -> list[tuple[str, Callable[[str], bool]]]:
    """(glob, whether a path is meant by it) for each glob of *value*. Raises ConfigurationError."""
    compiled = []
    for index, glob in enumerate([value] if isinstance(value, str) else value):
        place = pointer if isinstance(value, str) else f"{pointer}/{index}"
        try:
            glob_pattern(glob)
        except ValueError as error:
            raise ConfigurationError(place, f"{quoted(glob)}: {error}", "such as 'src/**/*.py', 'out/' or '**'") from None
        compiled.append((glob, glob_test([glob])))
    return compiled


def files_exist(value: Any, pointer: str) -> FilesTest:
    """Each glob means a file that is there."""
    globs = file_globs(value, pointer)

    def test(record: FolderRecord) -> None:
        for glob, is_meant in globs:
            if not record.meant(is_meant, True):
                record.lacks(glob, "file that is there")

    return test


def files_absent(value: Any, pointer: str) -> FilesTest:
    """No glob means a file that is there."""
    globs = file_globs(value, pointer)

    def test(record: FolderRecord) -> None:
        found = [path for path in record.entries if any(is_meant(path) for _, is_meant in globs)]
        there = sorted(path for path in found if record.change(path) != "deleted")
        if there:
            record.blame(there, f"{'is' if len(there) == 1 else 'are'} there")
        elif not record.is_whole:
            record.unknown.append("files were left out of the record")

    return test


def files_unchanged(value: Any, pointer: str) -> FilesTest:
    """Each glob means recorded files, none of which changed."""
    globs = file_globs(value, pointer)

    def test(record: FolderRecord) -> None:
        for glob, is_meant in globs:
            paths = record.meant(is_meant)
            changed = record.ask_changes(paths)
            if changed:
                record.blame(changed, f"changed, against unchanged {quoted(glob)}")
            elif not paths or not record.is_whole:
                record.unknown.append(f"no recorded file is {quoted(glob)}" if not paths else "files were left out of the record")

    return test


def files_changed(value: Any, pointer: str) -> FilesTest:
    """Each glob means a file that was added, modified or deleted."""
    globs = file_globs(value, pointer)

    def test(record: FolderRecord) -> None:
        for glob, is_meant in globs:
            paths = record.meant(is_meant)
            if any(record.change(path) in CHANGED for path in paths):
                continue
            if not record.ask_changes(paths) and all(map(record.change, paths)):
                record.lacks(glob, "changed file")

    return test


def files_contain(value: JsonObject, pointer: str) -> FilesTest:
    """Each glob means files that are there, and the text of each holds what is given."""
    asked = []
    for glob, wanted in value.items():
        place = pointer + pointer_token(glob)
        parts = [wanted] if isinstance(wanted, str) else wanted
        if isinstance(parts, list) and parts and all(isinstance(part, str) and part for part in parts):
            holds = holds_each(parts)
        elif is_predicate(wanted):
            holds = compile_predicate(wanted, place).holds
        else:
            raise ConfigurationError(place, "is neither a text, nor a list of texts, nor a predicate", 'such as {"$regex": "^ok"}')
        asked += [(glob, is_meant, holds) for _, is_meant in file_globs(glob, place)]

    def test(record: FolderRecord) -> None:
        for glob, is_meant, holds in asked:
            paths = record.meant(is_meant, True)
            if not paths:
                record.lacks(glob, "file that is there")
            silent = [path for path in paths if not isinstance(record.entries[path].get("text"), str)]
            lacking = [path for path in paths if path not in silent and not holds(record.entries[path]["text"])]
            if lacking:
                record.blame(lacking, f"{'does' if len(lacking) == 1 else 'do'} not hold what {quoted(glob)} asks for")
            elif silent:
                record.unknown.append(f"the text of {listed([visible(path, 80) for path in silent], FILES_TOLD)} was not recorded")

    return test


def holds_each(parts: list[str]) -> Callable[[Any], bool]:
    """Whether a text holds each of *parts*."""
    return lambda text: all(part in text for part in parts)


def files_digests(value: JsonObject, pointer: str) -> FilesTest:
    """Each path is there with the SHA-256 that is given."""
    for path, digest in value.items():
        if not isinstance(digest, str) or not re.fullmatch("[0-9a-fA-F]{64}", digest):
            raise ConfigurationError(pointer + pointer_token(path), "is no SHA-256: 64 hexadecimal digits")

    def test(record: FolderRecord) -> None:
        for path, digest in value.items():
            plain = plain_path(path)
            if plain not in record.entries or record.change(plain) == "deleted":
                record.lacks(path, "file that is there")
            elif not isinstance(record.entries[plain].get("sha256"), str):
                record.unknown.append(f"the SHA-256 of {visible(plain, 80)} was not recorded")
            elif record.entries[plain]["sha256"].lower() != digest.lower():
                record.blame([plain], "has another SHA-256")

    return test


def files_within(value: Any, pointer: str) -> FilesTest:
    """Every file that changed is meant by one of the globs."""
    globs = file_globs(value, pointer)

    def test(record: FolderRecord) -> None:
        outside = [path for path in sorted(record.entries) if not any(is_meant(path) for _, is_meant in globs)]
        changed = record.ask_changes(outside)
        if changed:
            record.blame(changed, f"changed, outside of {listed([quoted(glob) for glob, _ in globs], FILES_TOLD)}")
        elif not record.is_whole:
            record.unknown.append("files were left out of the record")

    return test


def files_changes_bound(value: int, pointer: str) -> FilesTest:
    """So many files changed at most."""
    refuse_negative(value, pointer)

    def test(record: FolderRecord) -> None:
        changed = record.ask_changes(sorted(record.entries))
        if len(changed) > value:
            record.blame(changed, f"changed, {len(changed):,} where {value:,} may")
        elif not record.is_whole:
            record.unknown.append("files were left out of the record")

    return test


def files_lines_bound(value: int, pointer: str) -> FilesTest:
    """So many lines were added and removed at most."""
    refuse_negative(value, pointer)

    def test(record: FolderRecord) -> None:
        changed = record.ask_changes(sorted(record.entries))
        counts = {path: changed_line_count(record.entries[path]) for path in changed}
        silent = [path for path, count in counts.items() if count is None]
        number = sum(count for count in counts.values() if count is not None)
        if number > value:
            record.blame(changed, f"changed by {counted(number, 'line')}, {value:,} may")
        elif silent or not record.is_whole:
            names = listed([visible(path, 80) for path in silent], FILES_TOLD)
            record.unknown.append(f"the changed lines of {names} were not counted" if silent else "files were left out of the record")

    return test


def changed_line_count(entry: JsonObject) -> int | None:
    """Lines added and removed; None when they were not counted."""
    number = 0
    for name in ("added_lines", "removed_lines"):
        count = entry.get(name)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            return None
        number += count
    return number


def refuse_negative(value: int, pointer: str) -> None:
    """Raises ConfigurationError for a bound below 0."""
    if value < 0:
        raise ConfigurationError(pointer, "is below 0")


FILES_PARAMETERS: list[tuple[Parameter, Callable[[Any, str], FilesTest]]] = [
    (Parameter("exists", "texts", None, "globs of files that are there afterwards, at least one of each"), files_exist),
    (Parameter("absent", "texts", None, "globs of files that are not there afterwards"), files_absent),
    (
        Parameter("unchanged", "texts", None, "globs of files that are as they were; one that means no recorded file cannot be answered"),
        files_unchanged,
    ),
    (Parameter("changed", "texts", None, "globs of files that were added, modified or deleted, at least one of each"), files_changed),
    (
        Parameter(
            "contains", "object", None,
            "{glob: a text, texts, or a predicate about the text} for each file that is there; at least one of each",
        ),
        files_contain,
    ),
    (Parameter("sha256", "object", None, "{path: SHA-256 in hexadecimal} of files that are there, as the agent left them"), files_digests),
    (Parameter("only_within", "texts", None, "globs of the files that may change; nothing else does"), files_within),
    (Parameter("max_changed_files", "integer", None, "the most files that may be added, modified or deleted"), files_changes_bound),
    (Parameter("max_changed_lines", "integer", None, "the most lines that may be added and removed together"), files_lines_bound),
]  # fmt: skip


@evaluator(
    "files",
    1,
    "The work folder is as it should be: files that exist, changed, stayed, hold a text.",
    [parameter for parameter, _ in FILES_PARAMETERS],
    example={
        "entry": {
            "id": "stays_inside", "type": "files", "only_within": ["src/**"], "unchanged": ["tests/**"],
            "contains": {"src/price.py": "def total"}, "max_changed_lines": 20,
        },
        "observation": {
            "files": {
                "src/price.py": {"change": "modified", "added_lines": 4, "removed_lines": 1, "text": "def total(items): ...\n"},
                "tests/test_price.py": {"change": "unchanged"},
            },
        },
        "outcome": "pass",
    },
    selects=False,
)  # fmt: skip
def evaluate_files(settings: JsonObject) -> Check:
    """Only files that were kept (`--keep`, '**' for all) or reported are known. `*` and `?` stay within a folder, `**` does not,
    and a folder means all that is in it. What is wrong decides, whatever else was not measured."""
    tests = []
    for parameter, compile_test in FILES_PARAMETERS:
        value, pointer = settings[parameter.name], f"/{parameter.name}"
        if value == {}:
            raise ConfigurationError(pointer, "is empty, which asks nothing")
        if value is not None:
            tests.append(compile_test(value, pointer))
    if not tests:
        names = [parameter.name for parameter, _ in FILES_PARAMETERS]
        raise ConfigurationError("", "asks nothing of the files", f"give one of {listed(names, 20, 'or')}")

    def check(view: View) -> Outcome:
        record = FolderRecord(view.observation.get("files"))
        for test in tests:
            test(record)
        if record.unknown and not record.wrong:
            raise NotMeasurable(visible("; ".join(dict.fromkeys(record.unknown)), REASON_LIMIT))
        changed = [path for path in record.entries if record.change(path) in CHANGED]
        value = {"files": len(record.entries), "changed": len(changed)}
        evidence = tuple({"pointer": record.pointers[path]} for path in dict.fromkeys(record.at[:FILES_EVIDENCE]))
        reason = "; ".join(record.wrong) or f"{counted(len(changed), 'changed file')} of {len(record.entries):,}, all as asked for"
        return decided(not record.wrong, visible(reason, REASON_LIMIT), value, evidence)

    return check

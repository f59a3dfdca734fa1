"""Files around a trial: the workspace it begins with, what is kept and measured after it.

The folder that `--workspace` names is copied once at the start of the run, and from that copy
into the private work folder of every trial, so that all begin alike. Links are copied as
links. Afterwards the files that match a `--keep` pattern are copied to
`<stage>.files/<slug of the case>/<trial>/` and compared with what the trial began with:

    {"src/app.py": {"change": "modified", "sha256": "…", "bytes": 812, "added_lines": 3, "removed_lines": 1, "text": "…"}}

No link is followed. Lines are counted of text of up to 1 MiB; a count or text that is not
there was not measured. What is measured is the file as the trial left it; in the copy that is kept
secrets are masked, and then `masked` says how many. A file that is no text and holds a secret is
not kept, nor is one with a secret in its name.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kaizen.foundation.errors import InputError, UsageError
from kaizen.foundation.files import (
    copy_file,
    copy_link,
    discard_unfinished,
    list_folder,
    make_folder,
    open_for_reading,
    read_bytes,
    refuse_link_out,
    remove_folder,
    shown_path,
)
from kaizen.foundation.globs import glob_pattern, glob_test
from kaizen.foundation.jsonio import JsonObject, pointer_token, without_surrogates
from kaizen.foundation.redact import environment_secrets, redact_text
from kaizen.foundation.text import counted, listed, quoted, slug, visible
from kaizen.runs.masked_copies import CopyMasker

WORKSPACE_LIMIT = 1 << 30  # bytes of a workspace
KEPT_LIMIT = 256 << 20  # bytes kept of one trial
FILE_COUNT_LIMIT = 10_000  # files of a workspace, and files measured of one trial
LINES_LIMIT = 1 << 20  # bytes of a file whose lines are counted
TEXT_LIMIT = 64 << 10  # bytes of a file whose text goes into the observation
ALL_TEXT_LIMIT = 1 << 20  # bytes of such texts in one observation
PATH_LIMIT = 1000  # bytes of the path of a folder that is looked into
EDIT_LIMIT = 2000  # added and removed lines beyond which they are not counted: the time grows with their square


class FoundFile(NamedTuple):
    """A file below some folder: its path from there ('/' between the parts), its own path, what lstat says."""

    name: str
    path: str
    info: os.stat_result


def found_files(root: str, is_ours: bool = False) -> Iterator[FoundFile]:
    """Everything below the folder *root*, folders before what is in them, always in one order; no link is followed.

    What is in a folder that `is_too_deep_folder` is left out. Raises InputError when a folder cannot be read; one that
    *is_ours* is made readable.
    """
    folders = [""]
    while folders:
        folder = folders.pop()
        if is_ours and folder:
            os.chmod(os.path.join(root, folder), 0o700)
        for name in list_folder(os.path.join(root, folder)):
            name = folder + name
            found = FoundFile(name, os.path.join(root, name), os.lstat(os.path.join(root, name)))
            yield found
            if stat.S_ISDIR(found.info.st_mode) and not is_too_deep_folder(found):
                folders.append(f"{name}/")


def is_too_deep_folder(found: FoundFile) -> bool:
    """True for a folder whose path is so long that systems refuse what is in it."""
    return stat.S_ISDIR(found.info.st_mode) and len(os.fsencode(found.name)) > PATH_LIMIT


def keep_test(globs: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a path below the work folder is one that any of *globs* means. Raises UsageError."""
    for glob in globs:
        try:
            glob_pattern(glob)
        except ValueError:
            message = f"--keep {quoted(glob)}: a pattern is relative to the work folder and stays in it"
            raise UsageError(message, "such as '**/*.py' or 'out/'") from None
    return glob_test(globs)


def copy_tree(source: str, target: str) -> None:
    """Copies what is in the folder *source* into the folder *target*; links as links, other special files not at all. Raises InputError."""
    for found in found_files(source):
        path = os.path.join(target, found.name)
        if stat.S_ISDIR(found.info.st_mode):
            make_folder(path)
        elif stat.S_ISLNK(found.info.st_mode):
            copy_link(found.path, path)
        elif stat.S_ISREG(found.info.st_mode):
            copy_file(found.path, path)


def workspace_document(workspace: str, folder: str) -> JsonObject:
    """What the meta file says of *workspace*: its path from the improvement's *folder*, files, bytes, a digest of names and contents.

    Raises UsageError when it is no folder, too large or deep, or holds the improvement.
    """
    root = os.path.realpath(workspace)
    if not os.path.isdir(root):
        raise UsageError(f"--workspace {quoted(workspace)} is no folder; nothing was run")
    if os.path.commonpath([root, os.path.realpath(folder)]) == root:
        raise UsageError(
            f"--workspace {quoted(workspace)} holds the improvement with its expected answers, which no agent may get; nothing was run",
            "name a folder that the improvement does not lie in",
        )
    digest, count, size = hashlib.sha256(), 0, 0
    for found in found_files(root):
        if stat.S_ISREG(found.info.st_mode):
            content, length = file_sha256(found.path)
            count, size = count + 1, size + length
            refuse_large(root, count, size)
            digest.update(os.fsencode(f"{found.name}\0{content}\0"))
        elif is_too_deep_folder(found):
            raise UsageError(f"--workspace {quoted(workspace)} holds folders nested too deeply to be copied; nothing was run")
        elif stat.S_ISLNK(found.info.st_mode):
            digest.update(os.fsencode(f"{found.name}\0link to {os.readlink(found.path)}\0"))
    path = without_surrogates(os.path.relpath(root, os.path.realpath(folder)))
    return {"path": path, "files": count, "bytes": size, "sha256": digest.hexdigest()}


def refuse_large(root: str, count: int, size: int) -> None:
    """Raises UsageError when *count* files of *size* bytes are more than what is copied for every trial."""
    if count > FILE_COUNT_LIMIT or size > WORKSPACE_LIMIT:
        limit = f"{FILE_COUNT_LIMIT:,} files and {WORKSPACE_LIMIT >> 20:,} MiB"
        raise UsageError(f"{shown_path(root)}: holds more than {limit}, too much to be copied for every trial", "name a smaller folder")


def file_sha256(path: str) -> tuple[str, int]:
    """(SHA-256 in hexadecimal, bytes) of the file *path*. Raises InputError."""
    digest, size = hashlib.sha256(), 0
    with open_for_reading(path) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size


def text_lines(path: str, size: int) -> tuple[str | None, list[str]]:
    """(text, its lines) of the file *path*; (None, []) when it is too large, no UTF-8 or holds a NUL."""
    if size > LINES_LIMIT:
        return None, []
    try:
        text = read_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        return None, []
    return (None, []) if "\0" in text else (text, text.removesuffix("\n").split("\n") if text else [])


def changed_lines(before: list[str], after: list[str]) -> tuple[int, int] | None:
    """(added, removed) lines of the shortest edit from *before* to *after*; None when that takes more than EDIT_LIMIT.

    The greedy algorithm of Myers, "An O(ND) Difference Algorithm and Its Variations" (1986), for the length alone.

    >>> changed_lines(["a", "b", "c"], ["a", "x", "c", "d"])
    (2, 1)
    """
    rows, columns = len(before), len(after)
    if not rows or not columns:
        return columns, rows
    reach = {1: 0}  # by diagonal: the furthest row that a path of `edits` edits reaches
    for edits in range(min(rows + columns, EDIT_LIMIT) + 1):
        for diagonal in range(-edits, edits + 1, 2):
            goes_down = diagonal == -edits or diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1]
            row = reach[diagonal + 1] if goes_down else reach[diagonal - 1] + 1
            while row < rows and row - diagonal < columns and before[row] == after[row - diagonal]:
                row += 1
            reach[diagonal] = row
            if row >= rows and row - diagonal >= columns:
                return (edits + columns - rows) // 2, (edits + rows - columns) // 2
    return None


def kept_folder(files_path: str, case_id: str, trial: int) -> str:
    """Where the files of a trial are kept below *files_path*, the stage's folder for them."""
    return os.path.join(files_path, slug(case_id), str(trial))


class WorkFiles:
    """What the trials of a run begin with and what is kept of them.

    *workspace* is the folder to copy ('': none), *globs* say what to keep, *files_path* is the stage's folder for
    kept files, *store* a private folder of the run. With *keeps_secrets* copies are kept as they are.
    """

    def __init__(self, workspace: str, globs: tuple[str, ...], files_path: str, store: str, keeps_secrets: bool = False) -> None:
        self.is_kept = keep_test(globs)
        self.keeps_any = bool(globs)
        self.files_path, self.store = files_path, store
        self.has_workspace = workspace != ""
        self.keeps_secrets = keeps_secrets
        self.exact = environment_secrets(os.environ)
        self.before: dict[str, tuple[str, int]] = {}  # of what may be kept: SHA-256 and bytes
        make_folder(store)
        if workspace:
            copy_tree(os.path.realpath(workspace), store)
            self.before = {found.name: file_sha256(found.path) for found in self.matching(store)[0]}

    def matching(self, root: str) -> tuple[list[FoundFile], int]:
        """(the regular files below *root* that match a pattern, how many links, special files and folders too deep are left out)."""
        files, others = [], 0
        for found in found_files(root, True) if self.keeps_any else ():
            if is_too_deep_folder(found):
                others += 1
            elif not stat.S_ISDIR(found.info.st_mode) and self.is_kept(found.name):
                if stat.S_ISREG(found.info.st_mode):
                    files.append(found)
                else:
                    others += 1
        return files, others

    def prepare(self, folder: str) -> None:
        """Fills the work folder *folder* of a trial that is about to begin."""
        if self.has_workspace:
            copy_tree(self.store, folder)

    def collect(self, folder: str, case_id: str, trial: int) -> tuple[JsonObject, list[str], list[JsonObject]]:
        """(`files` of the observation, notes, what was masked beside its texts) of what a trial left in *folder*; copies what is kept.

        What an earlier attempt at the trial has left behind is removed. Raises InputError when the disk says no.
        """
        target = kept_folder(self.files_path, case_id, trial)
        refuse_link_out(self.files_path)
        if os.path.lexists(target):
            remove_folder(target)
        found, others = self.matching(folder)
        what = counted(others, "link, special file or folder nested too deeply", "links, special files and folders nested too deeply")
        notes = [f"{what} not kept; links are not followed"] if others else []
        if len(found) > FILE_COUNT_LIMIT:
            notes.append(f"{len(found) - FILE_COUNT_LIMIT:,} of {len(found):,} files left out, {FILE_COUNT_LIMIT:,} is the limit")
        files: JsonObject = {}
        hits: list[JsonObject] = []
        for name in sorted(self.before.keys() - {each.name for each in found}):
            files[json_name(name)] = {"change": "deleted", **line_counts(self.before_lines(name), [])}
        try:
            self.measure(found[:FILE_COUNT_LIMIT], target, files, notes, hits)
        except InputError as error:  # whose path would name the case, which nothing may of a holdout case
            why = error.message.rpartition("cannot be written: ")[2]
            raise InputError(f"{shown_path(self.files_path)}: cannot be written: {why}", error.hint, error.reason) from None
        return dict(sorted(files.items())), notes, hits

    def measure(self, found: list[FoundFile], target: str, files: JsonObject, notes: list[str], hits: list[JsonObject]) -> None:
        """Copies what was *found* to *target* and adds to *files* what it is; changed files come first where there are bounds."""
        kept = texts = 0
        too_much, unreadable, secret = [], [], []
        for name, path, info in sorted(found, key=lambda each: each.name in self.before):
            if not info.st_mode & stat.S_IRUSR:  # what an agent hides is measured as well
                os.chmod(path, stat.S_IMODE(info.st_mode) | stat.S_IRUSR)
            try:
                fits = kept + os.path.getsize(path) <= KEPT_LIMIT
                sha256, size, masker, is_kept = self.keep(path, name, target) if fits else (*file_sha256(path), None, False)
            except InputError as error:
                if error.reason == "cannot_write":
                    raise
                unreadable.append(visible(name))
                continue
            kept += size if fits else 0
            too_much += [] if fits else [visible(name)]
            known = self.before.get(name)
            entry: JsonObject = {"change": "added" if known is None else "unchanged" if known[0] == sha256 else "modified"}
            entry.update(sha256=sha256, bytes=size)
            if masker and masker.counts and is_kept:
                entry["masked"] = sum(masker.counts.values())
            secret += [visible(redact_text(name, self.exact)[0])] if fits and not is_kept else []
            text, lines = text_lines(path, size)
            if text is not None:
                entry.update(line_counts(self.before_lines(name) if known and known[0] != sha256 else lines if known else [], lines))
                if size <= TEXT_LIMIT and texts + size <= ALL_TEXT_LIMIT:
                    entry["text"] = text
                    texts += size
            if masker and "text" not in entry:  # what stands in a text of the observation is found there
                pointer = f"/files{pointer_token(json_name(name))}"
                hits += [{"pointer": pointer, "family": family, "count": count} for family, count in masker.counts.items()]
            files[json_name(name)] = entry
        if too_much:
            notes.append(f"measured but not kept, beyond {KEPT_LIMIT >> 20} MiB of one trial: {listed(too_much)}")
        if secret:
            notes.append(f"measured but not kept, with secrets that cannot be masked: {listed(secret)}")
        if unreadable:
            notes.append(f"not kept, cannot be read: {listed(unreadable)}")

    def keep(self, path: str, name: str, target: str) -> tuple[str, int, CopyMasker | None, bool]:
        """(SHA-256, bytes, what was masked, whether it is kept) of the file *path*, copied to *name* below *target* if it may be."""
        make_folder(target)
        if not self.keeps_secrets and redact_text(name, self.exact)[1]:
            return *file_sha256(path), None, False
        masker = None if self.keeps_secrets else CopyMasker(self.exact)
        place = os.path.join(target, name)
        make_folder(os.path.dirname(place))
        sha256, size = copy_file(path, place, masker)
        is_kept = masker is None or masker.is_text or not masker.counts
        if not is_kept:
            discard_unfinished(place)
        return sha256, size, masker, is_kept

    def before_lines(self, name: str) -> list[str] | None:
        """The lines of a file as the trial began with it; None when they are not known."""
        text, lines = text_lines(os.path.join(self.store, name), self.before[name][1])
        return None if text is None else lines


def line_counts(before: list[str] | None, after: list[str]) -> JsonObject:
    """{"added_lines", "removed_lines"} from *before* to *after*; {} when they are not known."""
    counts = None if before is None else changed_lines(before, after)
    return {} if counts is None else {"added_lines": counts[0], "removed_lines": counts[1]}


def json_name(name: str) -> str:
    """The file name *name* as JSON can hold it: bytes that are not UTF-8 are replaced."""
    return os.fsencode(name).decode("utf-8", "replace")

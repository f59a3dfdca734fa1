"""Text of cases in what a variant adds: eight words, forty letters, short values whole.

Texts are compared as readers see them: without case, blanks, punctuation, line ends and accents'
spelling, so that neither other quotes nor a break inside a string hide a copy. Escapes of string
literals are read as what they mean. Values that were reversed, or written in base64 or hexadecimal as a
whole, are found too. What stands in a file that the variant changed before is not added by it.

Of the holdout only salted hashes of such pieces are at hand, in the sealed place. What also stands in a
development case, or stood in a mutable file when the campaign opened, tells nothing and is not among them.

Source of the shingles: A. Z. Broder (1997), On the resemblance and containment of documents, SEQUENCES '97, 21-29.
"""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from kaizen.campaigns.blobs import blob_contents
from kaizen.campaigns.campaign import Campaign
from kaizen.campaigns.sealed import SEALED_MARK, SEALED_MARKS, sealed_changed, sealed_folder, sealed_obstacle
from kaizen.campaigns.splitting import question_text
from kaizen.cases.case import Case
from kaizen.foundation.errors import KaizenError
from kaizen.foundation.files import read_bytes
from kaizen.foundation.jsonio import JsonObject, canonical_json, encode_compact, parse_json, sha256_hex
from kaizen.foundation.shingles import SHINGLE_WORDS, texts_in
from kaizen.foundation.text import counted
from kaizen.lab.execution import load_items, locked_hashes
from kaizen.lab.git import git_answer
from kaizen.lab.provenance import DIFF_WORDS, Checkout, commit_named
from kaizen.lab.system import load_system
from kaizen.lab.workspace import find_workspace

WORD_LETTERS = re.compile(r"[^\W_]+")
# Of a case every eighth window of 33 letters, of a file each: any 40 letters that both hold contain one.
MARK_WINDOW, MARK_STEP = 33, 8
DISGUISED_LETTERS = 64  # of a value that was disguised as a whole its beginning will do
SHORTEST_VALUE = 12  # letters; a shorter value stands in many a text by chance
COMMON_QUESTIONS = 3  # what so many different cases hold is a phrase of the task, not the text of an item
MEMORISED_ITEMS = 2
SCAN_LIMIT = 4 << 20
PIECE_LETTERS, PIECE_OVERLAP = 1 << 18, 1 << 12
LINES_AROUND = 40  # forty letters may stand on as many lines
MUTABLE_LIMIT = 8 << 20  # of mutable files that are looked through at the opening: some seconds
DIGEST_LENGTH = 20
TEXT_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U(000[0-9a-fA-F]{5})|u\{([0-9a-fA-F]{1,5})\}|[abfnrtv0'\"`/\\\n])")
MARKED_FIELDS = ("input", "expected", "metadata")


class Contamination(NamedTuple):
    """What a variant adds that stands in cases, and which locked files are not as they were when the campaign opened.

    `holdout_hits` is the number of holdout cases, None when the sealed place cannot be read here (`holdout_gap` says why);
    `development_items` are ids; `canary` is True when the canary of the holdout stands in an added file; `locked` are paths;
    `not_read` are paths of changed files that hold no text, or too much of it.
    """

    holdout_hits: int | None
    development_items: list[str]
    canary: bool
    locked: list[str]
    not_read: list[str]
    holdout_gap: str = ""

    def is_memorised(self) -> bool:
        """True when text of at least two development items was added."""
        return len(self.development_items) >= MEMORISED_ITEMS

    def integrity(self) -> str:
        """What makes the variant void in a sentence that says nothing of a case; '' for nothing."""
        if self.canary:
            return "the canary of the sealed holdout stands in what the variant adds"
        if self.holdout_hits:
            return f"text of {counted(self.holdout_hits, 'holdout case')} stands in what the variant adds"
        return f"{counted(len(self.locked), 'locked file')} changed" if self.locked else ""


# --- Pieces of text ---------------------------------------------------------------------


def plain_words(text: str) -> list[str]:
    """The words of *text*, letters and digits in compatible Unicode form without case.

    >>> plain_words("Dis-moi: “CAFÉ_2”!")
    ['dis', 'moi', 'café', '2']
    """
    import unicodedata

    return WORD_LETTERS.findall(text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text).casefold())


def word_runs(words: list[str], size: int) -> Iterator[str]:
    """Each run of *size* of *words*, joined by blanks."""
    return (" ".join(words[place : place + size]) for place in range(len(words) - size + 1))


def value_marks(text: str) -> set[str]:
    """What gives a copy of the value *text* away: 'w' and eight words, 'c' and a window, or 'v' and all of a short value; may be none."""
    words = plain_words(text)
    squeezed = "".join(words)
    if len(squeezed) < SHORTEST_VALUE:
        return set()
    found = {"w" + run for run in word_runs(words, SHINGLE_WORDS)}
    found.update(whole_marks(words, squeezed))
    for form in disguised(text):
        words = plain_words(form)
        found.update("w" + run for run in word_runs(words[:SHINGLE_WORDS], SHINGLE_WORDS))
        found.update(whole_marks(words, "".join(words)[:DISGUISED_LETTERS]))
    return found


def whole_marks(words: list[str], squeezed: str) -> Iterator[str]:
    """The windows of *squeezed*, every MARK_STEP letters; for a value that is too short for one, all its *words*."""
    if len(squeezed) >= MARK_WINDOW + MARK_STEP - 1:
        for place in range(0, len(squeezed) - MARK_WINDOW + 1, MARK_STEP):
            yield "c" + squeezed[place : place + MARK_WINDOW]
    elif len(words) < SHINGLE_WORDS:
        yield "v" + " ".join(words)


def disguised(text: str) -> Iterator[str]:
    """What the whole *text* becomes by the cheapest disguises: reversed, in base64, in hexadecimal."""
    import base64

    data = text.encode("utf-8", "replace")
    yield from (text[::-1], base64.b64encode(data).decode("ascii"), data.hex())


def file_marks(text: str, sizes: Collection[int]) -> set[str]:
    """Every piece of the file *text* that `value_marks` of a value could hold, whose short values have one of *sizes* words."""
    found: set[str] = set()
    for form in (text, unescaped(text)) if "\\" in text else (text,):
        words = plain_words(form)
        squeezed = "".join(words)
        found.update("w" + run for run in word_runs(words, SHINGLE_WORDS))
        found.update("c" + squeezed[place : place + MARK_WINDOW] for place in range(len(squeezed) - MARK_WINDOW + 1))
        for size in sizes:
            found.update("v" + run for run in word_runs(words, size))
    return found


def unescaped(text: str) -> str:
    """*text* with the escapes of string literals as what they mean; a line end becomes a blank, one that is escaped nothing."""

    def meant(match: "re.Match[str]") -> str:
        code = next((group for group in match.groups() if group), "")
        return chr(min(int(code, 16), 0x10FFFF)) if code else "" if match.group()[1] in "'\"`/\\\n" else " "

    return TEXT_ESCAPE.sub(meant, text)


def case_texts(document: JsonObject) -> Iterator[str]:
    """The values of the case *document* that a copy would hold: texts of input, expected and metadata, and what is no text as JSON."""
    for value in (document.get(field) for field in MARKED_FIELDS):
        yield from texts_in(value)
        if isinstance(value, (dict, list)) and value:
            yield canonical_json(value)


def case_marks(document: JsonObject) -> set[str]:
    """The marks of all values of the case *document*; none for one whose values are too short."""
    return set().union(*map(value_marks, case_texts(document)))


def value_sizes(marks: Iterable[str]) -> list[int]:
    """The numbers of words of the short values among *marks*."""
    return sorted({mark.count(" ") + 1 for mark in marks if mark[0] == "v"})


class ItemIndex:
    """Which of *cases* a piece of text stands in; what three different questions hold is a phrase of the task and no item's."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self.documents = {case.id: case.document for case in cases}
        self.plain: list[tuple[str, str, str]] = []
        self.items: dict[str, list[str]] = {}
        for name, document in self.documents.items():
            for mark in case_marks(document):
                self.items.setdefault(mark, []).append(name)
        self.sizes = value_sizes(self.items)

    def found(self, marks: set[str]) -> list[str]:
        """The ids of the items that hold one of *marks*, sorted."""
        hits = marks & self.items.keys()
        holders = self.holders(hits) if hits else {}
        return sorted({name for mark in hits if len(holders[mark]) < COMMON_QUESTIONS for name in self.items[mark]})

    def holders(self, hits: set[str]) -> dict[str, set[str]]:
        """The questions of the items that hold each of *hits*, at whatever place."""
        if not self.plain:
            self.plain = [plain_case(document) for document in self.documents.values()]
        found: dict[str, set[str]] = {mark: set() for mark in hits}
        for question, spaced, squeezed in self.plain:
            for mark, questions in found.items():
                if (mark[1:] in squeezed) if mark[0] == "c" else (f" {mark[1:]} " in spaced):
                    questions.add(question)
        for mark, questions in found.items():  # and of those in which it is a disguise
            questions.update(question_text(self.documents[name]) for name in self.items[mark][:COMMON_QUESTIONS])
        return found


def plain_case(document: JsonObject) -> tuple[str, str, str]:
    """What the case *document* asks, the plain words of its texts between blanks, and their letters alone, forwards and back."""
    spaced = "\n".join(f" {' '.join(plain_words(text))} " for text in case_texts(document))
    squeezed = spaced.replace(" ", "")
    return question_text(document), spaced, f"{squeezed}\n{squeezed[::-1]}"


# --- The holdout's marks ----------------------------------------------------------------


def mark_digest(salt: bytes, mark: str) -> str:
    """The salted hash of *mark*."""
    return hashlib.sha256(salt + mark.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_LENGTH]


def sealed_marks(holdout: list[Case], development: Iterable[Case], files: Iterable[str], salt: str) -> JsonObject:
    """marks.json: for each case of *holdout* the salted hashes of its marks, without those of *development* and of the texts *files*."""
    found = [case_marks(case.document) for case in holdout]
    held, known = set().union(*found), set[str]()
    sizes = value_sizes(held)
    for case in development:
        known |= case_marks(case.document) & held
        for text in (*case_texts(case.document), *texts_in(case.document.get("context"))):
            known |= file_marks(text, sizes) & held
    for text in files:
        known |= file_marks(text, sizes) & held
    raw = salt.encode()
    cases = [sorted(mark_digest(raw, mark) for mark in marks - known) for marks in found]
    return {"salt": salt, "sizes": sizes, "cases": cases}


def marks_text(marks: JsonObject) -> str:
    """marks.json as it is written."""
    return encode_compact(marks) + "\n"


def without_marks(marks: JsonObject) -> int:
    """How many cases hold nothing by which a copy could be told."""
    return sum(not case for case in marks["cases"])


class HoldoutMarks(NamedTuple):
    """The marks of the sealed holdout: hash to the numbers of the cases, the salt, word counts of short values, the canary."""

    cases: dict[str, list[int]]
    salt: bytes
    sizes: list[int]
    canary: bytes


def read_holdout_marks(campaign: Campaign) -> HoldoutMarks:
    """The marks in the sealed place of *campaign*, compared with the contract. Raises RefusedError as `open_sealed` does."""
    obstacle = sealed_obstacle(campaign)
    if obstacle:
        raise obstacle
    seal, folder = campaign.contract["holdout"]["seal"], sealed_folder(campaign)
    try:
        data = read_bytes(os.path.join(folder, SEALED_MARKS))
        canary = str(parse_json(read_bytes(os.path.join(folder, SEALED_MARK)).decode())["canary"])
    except (KaizenError, ValueError, KeyError):
        raise sealed_changed(campaign, "the marks of its text are missing") from None
    if sha256_hex(data) != seal["marks_sha256"] or sha256_hex(canary) != seal["canary_sha256"]:
        raise sealed_changed(campaign, "the marks of its text were changed")
    marks: Any = parse_json(data.decode())
    cases: dict[str, list[int]] = {}
    for number, digests in enumerate(marks["cases"]):
        for digest in digests:
            cases.setdefault(digest, []).append(number)
    return HoldoutMarks(cases, marks["salt"].encode(), marks["sizes"], canary.encode())


# --- Scanning a variant -----------------------------------------------------------------


class ChangedTexts(NamedTuple):
    """What a variant changed: the new and the old content of each file, by path, and the paths that are not read."""

    new: dict[str, bytes]
    old: dict[str, bytes]
    not_read: list[str]


def changed_texts(checkout: Checkout, base: str) -> ChangedTexts:
    """The files that HEAD adds or changes against the commit *base*; of a rename both sides. Raises GitError."""
    words = ["diff-tree", "-r", "-z", "--no-abbrev", *DIFF_WORDS, commit_named(checkout, base), str(checkout.head)]
    fields = git_answer(checkout.root, *words).split("\0")
    rows = [(entry[1:].split(" "), path) for entry, path in zip(fields[::2], fields[1::2], strict=False)]
    names = dict.fromkeys(name for (_, _, old, new, _), _ in rows for name in (old, new) if name.strip("0"))
    contents = dict(blob_contents(checkout.root, list(names), SCAN_LIMIT))
    found = ChangedTexts({}, {}, [])
    for (_, mode, old, new, _), path in rows:
        before, after = contents.get(old), contents.get(new)
        if before is not None:
            found.old[path] = before
        if after is not None:
            found.new[path] = after
        if new.strip("0") and (after is None or mode == "160000" or not is_text(after)):
            found.not_read.append(path)
    return found


def is_text(data: bytes) -> bool:
    """True when *data* is text in UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def scan_diff(campaign: Campaign, checkout: Checkout, base: str) -> Contamination:
    """What HEAD of *checkout* adds to the commit *base*, compared with the cases of *campaign*, and its locked files with the contract.

    A sealed place that cannot be read here leaves `holdout_hits` None. Raises GitError; RefusedError (`sealed_changed`) for
    a holdout that is not the one that was sealed; what is wrong with the system's files.
    """
    workspace = find_workspace(os.path.join(checkout.root, str(campaign.events[0]["body"].get("root", ""))))
    system = load_system(workspace, campaign.system)
    now, then = locked_hashes(workspace, system), campaign.contract["locked"]
    locked = sorted(path for path in {*now, *then} if now.get(path) != then.get(path))
    index = ItemIndex(load_items(workspace, system).cases.values())
    changed, gap = changed_texts(checkout, base), ""
    sealed = HoldoutMarks({}, b"", [], b"")
    obstacle = sealed_obstacle(campaign)
    if obstacle and obstacle.reason in ("sealed_missing", "sealed_unreadable"):  # a container may hide it altogether
        gap = obstacle.message
    else:
        sealed = read_holdout_marks(campaign)
    hits = added_hits(changed, index, sealed)
    cases = {number for mark in hits for number in sealed.cases.get(mark_digest(sealed.salt, mark), ())}
    canary = bool(sealed.canary) and any(sealed.canary in data.lower() for data in changed.new.values())
    return Contamination(None if gap else len(cases), index.found(hits), canary, locked, changed.not_read, gap)


def added_hits(changed: ChangedTexts, index: ItemIndex, sealed: HoldoutMarks) -> set[str]:
    """The marks of cases that stand in or around new lines of the changed files, and did not stand in any of them before."""
    old = [data.decode() for data in changed.old.values() if is_text(data)]
    old_lines = {line for text in old for line in text.split("\n")}
    sizes = sorted({*index.sizes, *sealed.sizes})
    hits: set[str] = set()
    for data in filter(is_text, changed.new.values()):
        for piece in added_pieces(data.decode(), old_lines):
            marks = file_marks(piece, sizes)
            hits |= marks & index.items.keys()
            hits.update(mark for mark in marks if sealed.cases and mark_digest(sealed.salt, mark) in sealed.cases)
    for text in old if hits else ():
        for piece in added_pieces(text, set()):
            hits -= file_marks(piece, sizes)
    return hits


def added_pieces(text: str, old_lines: set[str]) -> Iterator[str]:
    """What of *text* is not in *old_lines*, with the lines around it that it may complete, in pieces that memory holds easily."""
    lines = text.split("\n")
    done = 0
    for number, line in enumerate(lines):
        if number < done or line in old_lines:
            continue
        start, end = max(0, number - LINES_AROUND), number + 1
        while end < len(lines) and any(each not in old_lines for each in lines[end : end + LINES_AROUND]):
            end += 1
        done = end + LINES_AROUND
        piece = "\n".join(lines[start:done])
        for place in range(0, len(piece), PIECE_LETTERS):
            yield piece[place : place + PIECE_LETTERS + PIECE_OVERLAP]


def committed_texts(folder: str, commit: str, is_wanted: Callable[[str], bool], most: int = 1 << 40) -> Iterator[str]:
    """The texts of the files of *commit* whose path, relative to *folder*, is wanted, until they are *most* bytes together.

    What is no text is left out. Raises GitError.
    """
    rows = [row.partition("\t") for row in git_answer(folder, "ls-tree", "-r", "-z", commit).split("\0")]
    names = [fields.split(" ")[2] for fields, _, path in rows if path and is_wanted(path)]
    for _, data in blob_contents(folder, names, SCAN_LIMIT):
        if data is not None and is_text(data) and most > 0:
            most -= len(data)
            yield data.decode()

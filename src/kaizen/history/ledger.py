"""The ledger: one line an event, each with the hash of the line before.

    {"at":"…","hash":"sha256:…","kind":"anchor","manifest":"<SHA-256>","prev":null,"run":"0001-…","seq":1,"version":1}

A line is the canonical JSON of its entry, so no byte of it is free. `hash` is the fingerprint
of the entry without it; `prev` is the hash of the entry before. An anchor or a record names
the SHA-256 of its run's manifest, a promotion the decision it rests on. The file is written
anew beside its place and renamed, so it is either the old or the new one. champion.json says
how many entries there are, the hash of the last, and which run is champion: it can be made
from the ledger, and a ledger that lost its last entries no longer agrees with it.
"""

import os
import re
from typing import Any, NamedTuple

from kaizen.foundation.errors import InputError, RefusedError
from kaizen.foundation.files import list_folder, read_bytes, refuse_link_out, shown_path, write_file
from kaizen.foundation.jsonio import JsonError, JsonObject, canonical_json, decode_line, encode_readable, fingerprint

LEDGER_FILE, CHAMPION_FILE, UNFINISHED_FILE, RUNS_FOLDER = "ledger.jsonl", "champion.json", "unfinished.json", "runs"
HISTORY_VERSION = 1
ANCHOR, RECORD, PROMOTION = "anchor", "record", "promotion"
RUN_ID = r"\d{4,12}-[a-z0-9-]{1,60}"
HEX_DIGEST = r"[0-9a-f]{64}"
STATED_TEXTS = ("status", "evidence", "decided_by", "decided_at", "rationale", "via")
CONFLICT_MARKS = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")
ANCHOR_DIGITS = 24  # of the 64 that a hash has: 96 bits
FORK_HINT = (
    "keep one side whole: rm -r kaizen-history && git checkout HEAD -- kaizen-history && git add -A kaizen-history (HEAD^ when the merge "
    "is committed already); then do again with kaizen history what the other side recorded: its improvements hold the evidence"
)
RESTORE_HINT = "put back what was there: git checkout -- kaizen-history, or a copy"
LINE_ENDS_HINT = (
    "git changed line ends: git config core.autocrlf false, delete the file, git checkout -- it; the recorded hash stays as it is"
)


class LedgerProblem(NamedTuple):
    """What is wrong with a place of the history: path as shown, line (0: the whole file), reason code, words, what to do."""

    path: str
    line: int
    code: str
    message: str
    hint: str = RESTORE_HINT

    def text(self) -> str:
        """'path:line: message', for one line of output."""
        return f"{self.path}{f':{self.line}' if self.line else ''}: {self.message}"


def entry_hash(entry: JsonObject) -> str:
    """'sha256:' and the SHA-256 of the canonical JSON of *entry* without its `hash`."""
    return fingerprint({key: value for key, value in entry.items() if key != "hash"})


def sealed_entry(entries: list[JsonObject], at: str, kind: str, run: str, **fields: Any) -> JsonObject:
    """The entry that follows *entries*, with its number, the hash before, and its own."""
    prev = entries[-1]["hash"] if entries else None
    entry = {"version": HISTORY_VERSION, "seq": len(entries) + 1, "prev": prev, "at": at, "kind": kind, "run": run, **fields}
    return {**entry, "hash": entry_hash(entry)}


def ledger_bytes(entries: list[JsonObject]) -> bytes:
    """The ledger that holds *entries*."""
    return "".join(canonical_json(entry) + "\n" for entry in entries).encode("utf-8")


def ledger_entries(folder: str) -> list[JsonObject]:
    """The entries of the ledger in the history *folder*, checked. Raises RefusedError with the first thing that is wrong."""
    path = os.path.join(folder, LEDGER_FILE)
    entries, problems = parsed_ledger(ledger_data(path), shown_path(path))
    if problems:
        first = problems[0]
        raise RefusedError(first.text(), first.hint, first.code)
    return entries


def has_lost_ledger(folder: str) -> bool:
    """True when the history *folder* holds what only a ledger accounts for and no ledger, and no first recording was stopped in it."""
    ledger, unfinished, champion = (os.path.lexists(os.path.join(folder, name)) for name in (LEDGER_FILE, UNFINISHED_FILE, CHAMPION_FILE))
    return not ledger and (champion or bool(known_runs(folder)) and not unfinished)


def known_runs(folder: str) -> list[str]:
    """The names in the folder of the runs of the history *folder*."""
    path = os.path.join(folder, RUNS_FOLDER)
    return list_folder(path) if os.path.isdir(path) else []


def refuse_lost_ledger(folder: str) -> None:
    """Raises RefusedError when the history *folder* has lost its ledger."""
    if has_lost_ledger(folder):
        hint = "put ledger.jsonl back (git checkout -- kaizen-history), or name another folder with --history"
        raise RefusedError(f"{shown_path(folder)}: holds runs but no ledger", hint, "ledger_removed")


def ledger_data(path: str) -> bytes:
    """The bytes of the ledger *path*. Raises InputError when there is no history, RefusedError when it has lost it, or for a link out."""
    refuse_link_out(path)
    refuse_lost_ledger(os.path.dirname(path))
    return read_bytes(path, "begin a history with: kaizen history init IMPROVEMENT --agent-version V")


def parsed_ledger(data: bytes, shown: str) -> tuple[list[JsonObject], list[LedgerProblem]]:
    """(entries that could be read, everything that is wrong) of the ledger *data*, called *shown* in messages."""
    problems: list[LedgerProblem] = []
    if b"\r\n" in data and data.count(b"\r\n") == data.count(b"\n"):
        problems.append(LedgerProblem(shown, 0, "line_ends", "only its line ends differ: CRLF for LF", LINE_ENDS_HINT))
        data = data.replace(b"\r\n", b"\n")
    lines = data.split(b"\n")
    if not data:
        problems.append(LedgerProblem(shown, 0, "ledger_cut", "is empty"))
    elif lines.pop():
        problems.append(LedgerProblem(shown, len(lines) + 1, "ledger_cut", "its last line is cut off"))
    entries: list[JsonObject] = []
    for number, line in enumerate(lines, 1):
        if line.startswith(CONFLICT_MARKS):
            message = "holds the marks of a merge conflict: two branches have both recorded"
            return entries, [*problems, LedgerProblem(shown, number, "conflict_markers", message, FORK_HINT)]
        try:
            entry = decode_line(line)
        except JsonError as error:
            problems.append(LedgerProblem(shown, number, "ledger_changed", error.message))
            continue
        found = entry_problem(entry, line, entries[-1] if entries else None)
        if found:
            problems.append(LedgerProblem(shown, number, *found))
        if not found or found[0] not in ("ledger_changed", "newer_version"):
            entries.append(entry)
    return entries, problems


def entry_problem(entry: JsonObject, line: bytes, before: JsonObject | None) -> tuple[str, str] | tuple[str, str, str] | None:
    """(code, words[, what to do]) of what is wrong with *entry*, which stands on *line* behind *before*; None when nothing is."""
    version = entry.get("version")
    if isinstance(version, int) and version > HISTORY_VERSION:
        return newer_version(version)
    if entry.get("hash") != entry_hash(entry) or canonical_json(entry).encode("utf-8") != line or not is_entry(entry):
        return "ledger_changed", "is not the line that was written"
    seq, prev = (before["seq"], before["hash"]) if before else (0, None)
    if before and entry["seq"] == seq and entry["prev"] == before["prev"]:
        if entry["hash"] == before["hash"]:
            return "ledger_added", f"entry {entry['seq']} stands there twice"
        return "forked", f"there are two different entries {seq}: two branches have both recorded, and were merged", FORK_HINT
    if entry["seq"] != seq + 1:
        return "ledger_order", f"entry {entry['seq']} follows entry {seq}: entries are missing, added or in another order"
    if entry["prev"] != prev:
        return "ledger_order", f"entry {entry['seq']} was written behind another entry {seq} than the one that stands there"
    return None


def newer_version(version: object) -> tuple[str, str, str]:
    """(code, words, what to do) of a document whose schema is newer than this program."""
    message = f"has schema version {version}, which is newer than the {HISTORY_VERSION} that this program reads"
    return "newer_version", message, "use the newer Kaizen that wrote it"


def is_entry(entry: JsonObject) -> bool:
    """True when *entry* has the fields of its kind; its id is then safe as the name of a folder."""
    kind, run, detail = entry.get("kind"), entry.get("run"), entry.get("manifest")
    has_detail = isinstance(detail, str) and re.fullmatch(HEX_DIGEST, detail) is not None
    if kind == PROMOTION:
        decision = entry.get("decision")
        has_detail = isinstance(decision, dict) and is_archived_entry(decision.get("file")) and is_stated_decision(decision.get("stated"))
    return (
        entry.get("version") == HISTORY_VERSION
        and kind in (ANCHOR, RECORD, PROMOTION)
        and isinstance(run, str)
        and re.fullmatch(RUN_ID, run) is not None
        and type(entry.get("seq")) is int
        and isinstance(entry.get("at"), str)
        and has_detail
    )


def is_archived_entry(entry: object) -> bool:
    """True when *entry* has what an entry of a manifest's files must have; its hash is then safe as a name."""
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and all(isinstance(entry.get(key), str) and re.fullmatch(HEX_DIGEST, entry[key]) for key in ("sha256", "stored_sha256"))
        and all(type(entry.get(key)) is int and entry[key] >= 0 for key in ("bytes", "stored_bytes"))
        and entry.get("encoding") in (None, "gzip")
    )


def is_stated_decision(stated: object) -> bool:
    """True when *stated* has the fields of a decision, each a text but for the list of conditions."""
    return (
        isinstance(stated, dict)
        and stated.keys() == {*STATED_TEXTS, "conditions"}
        and isinstance(stated["conditions"], list)
        and all(isinstance(text, str) for text in [*stated["conditions"], *(stated[key] for key in STATED_TEXTS)])
    )


# --- What follows from the ledger ------------------------------------------------------


def champion_entry(entries: list[JsonObject]) -> JsonObject | None:
    """The promotion that counts: the last one; None when nothing has been promoted."""
    return next((entry for entry in reversed(entries) if entry["kind"] == PROMOTION), None)


def champion_document(entries: list[JsonObject]) -> JsonObject:
    """What champion.json holds for a ledger of *entries*."""
    promotion = champion_entry(entries)
    champion = {"run": promotion["run"], "promoted_at": promotion["at"], "entry": promotion["seq"]} if promotion else None
    head = entries[-1]["hash"] if entries else None
    return {"version": HISTORY_VERSION, "entries": len(entries), "head": head, "champion": champion}


def champion_text(entries: list[JsonObject]) -> str:
    """The content of champion.json for a ledger of *entries*."""
    return encode_readable(champion_document(entries)) + "\n"


def write_ledger(folder: str, entries: list[JsonObject]) -> None:
    """Writes ledger and champion of the history *folder* anew, each whole or not at all, the ledger first."""
    write_file(os.path.join(folder, LEDGER_FILE), ledger_bytes(entries))
    write_file(os.path.join(folder, CHAMPION_FILE), champion_text(entries))


def anchor_digest(entries: list[JsonObject]) -> str:
    """A short text that pins *entries*: their number and the beginning of the last hash, '4-9f86d081884c7d659a2feaa0'."""
    return f"{len(entries)}-{str(entries[-1]['hash']).removeprefix('sha256:')[:ANCHOR_DIGITS]}"


def anchor_number(digest: str) -> int:
    """The number of entries that the history had when *digest* was printed of it. Raises InputError for another text."""
    match = re.fullmatch(rf"(\d{{1,12}})-([0-9a-f]{{{ANCHOR_DIGITS}}})", digest.strip())
    if match is None or int(match[1]) < 1:
        raise InputError(
            "that is no anchor digest", "it is what `kaizen history anchor` prints, such as 4-9f86d081884c7d659a2feaa0", "usage"
        )
    return int(match[1])


def anchor_problem(entries: list[JsonObject], digest: str, shown: str) -> LedgerProblem | None:
    """What shows that *entries* do not extend the history that *digest* was printed of. Raises InputError for another text."""
    number = anchor_number(digest)
    if number > len(entries):
        message = f"has {len(entries)} entries, and had {number} when the anchor was printed: the last ones are gone"
        return LedgerProblem(shown, 0, "anchor_mismatch", message)
    if anchor_digest(entries[:number]) != digest.strip():
        message = f"entry {number} is not the one that the anchor was printed of: the history was rewritten"
        return LedgerProblem(shown, number, "anchor_mismatch", message)
    return None

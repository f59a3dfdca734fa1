"""What the guide finds in files of a system, and the statements of people beside them.

    kaizen/systems/<id>/guide/
        traces.jsonl      {"id", "source": production|synthetic|expert|regression, "input", …}   what was read
        notes.jsonl       {"trace", "note", "by", "at"}            open coding: the first thing that went wrong
        labels.json       {"labels": [{"id", "definition", "example", "traces", "decision", "commit"}], "named_by", "at"}
        metric.json       {"min_effect", "guards", "no_guards_because", "chance"}
        split.json        {"holdout_file", "sha256", "by"}         cases kept outside the repository
        ratings.jsonl     {"case_id", "rater", "label"}            two people, or one person twice, on the same cases
        grader.jsonl      {"case_id", "human", "grader"}           pass or fail, by a person and by the grader
        statements.jsonl  {"step", "by", "at", "via", "text", "count"}   written by `kaizen guide confirm` alone

The files are notes of a system: they decide no score, and no run is bound to them.
"""

import os
import re
from typing import Any, NamedTuple

from kaizen.campaigns.campaign import Campaign, campaign_ids, load_campaign
from kaizen.cases.case import Case
from kaizen.foundation.clock import utc_now
from kaizen.foundation.errors import InputError
from kaizen.foundation.files import make_folder, read_text, shown_path, write_file
from kaizen.foundation.jsonio import JsonObject, encode_compact, read_json_lines, read_json_object
from kaizen.lab.execution import load_items
from kaizen.lab.reading import UNREADABLE, read_runs
from kaizen.lab.runfolder import run_store
from kaizen.lab.system import System, load_system
from kaizen.lab.workspace import Workspace

GUIDE_FOLDER = "guide"
STATEMENTS_FILE = "statements.jsonl"


class GuideView:
    """A system seen through its files, each read once and only when a step asks for it."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        self.workspace = workspace
        self.name = name
        self.store = run_store(workspace)
        self.known: dict[str, Any] = {}
        self.system: System = load_system(workspace, name)
        self.folder = os.path.join(self.system.folder, GUIDE_FOLDER)

    def shown(self, file: str) -> str:
        """How the guide's *file* is called in what is printed."""
        return shown_path(os.path.join(self.folder, file))

    def lines(self, file: str) -> list[JsonObject]:
        """The objects in the guide's JSON Lines *file*; none when it is not there. Raises InputError."""
        path = os.path.join(self.folder, file)
        if file not in self.known:
            self.known[file] = [line.value for line in read_json_lines(path)] if os.path.exists(path) else []
        found: list[JsonObject] = self.known[file]
        return found

    def document(self, file: str) -> JsonObject:
        """The object in the guide's *file*; an empty one when it is not there. Raises InputError."""
        path = os.path.join(self.folder, file)
        if file not in self.known:
            self.known[file] = read_json_object(path) if os.path.exists(path) else {}
        found: JsonObject = self.known[file]
        return found

    def sections(self) -> dict[str, str]:
        """{heading in small letters: what stands below it} of system.md."""
        parts = re.split(r"^#{1,6} +(.*?) *#*$", self.system.text, flags=re.MULTILINE)
        return {name.casefold(): text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}

    def labels(self) -> list[JsonObject]:
        """The failure labels, in their order. Raises InputError."""
        found = self.document("labels.json").get("labels")
        return [each for each in found if isinstance(each, dict) and each.get("id")] if isinstance(found, list) else []

    def cases(self) -> dict[str, Case]:
        """The cases that are not of the holdout. Raises InputError."""
        if "" not in self.known:
            self.known[""] = load_items(self.workspace, self.system).cases
        found: dict[str, Case] = self.known[""]
        return found

    def runs(self) -> list[JsonObject]:
        """run.json of the runs of the system that can be read, oldest first."""
        if "runs" not in self.known:
            self.known["runs"] = [run for run in read_runs(self.store, self.name) if run["state"] != UNREADABLE]
        found: list[JsonObject] = self.known["runs"]
        return found

    def campaign(self) -> Campaign | None:
        """The newest campaign of the system; None when there is none. Raises RefusedError."""
        if "campaign" not in self.known:
            found = [load_campaign(self.workspace, name) for name in campaign_ids(self.workspace)]
            self.known["campaign"] = next((each for each in reversed(found) if each.system == self.name), None)
        campaign: Campaign | None = self.known["campaign"]
        return campaign

    def statement(self, step: str) -> JsonObject | None:
        """What somebody stated last about *step*; None when nobody did. Raises InputError."""
        found = [line for line in self.lines(STATEMENTS_FILE) if line.get("step") == step and line.get("by")]
        return found[-1] if found else None


class Statement(NamedTuple):
    """What a person said about a step of the guide; `read` is how many they read, None where that is no question."""

    step: str
    by: str
    text: str
    read: int | None
    via: str


def add_statement(view: GuideView, statement: Statement) -> JsonObject:
    """Appends *statement* to those of the system, with the time, and returns the line. Raises InputError."""
    line: JsonObject = {"step": statement.step, "by": statement.by, "at": utc_now(), "via": statement.via, "text": statement.text}
    if statement.read is not None:
        line["count"] = statement.read
    path = os.path.join(view.folder, STATEMENTS_FILE)
    view.lines(STATEMENTS_FILE)  # what cannot be read is not appended to
    before = read_text(path) if os.path.exists(path) else ""
    if before and not before.endswith("\n"):
        raise InputError(f"{shown_path(path)}: does not end in a line end", "put back what Kaizen wrote")
    make_folder(view.folder)
    write_file(path, f"{before}{encode_compact(line)}\n")
    return line

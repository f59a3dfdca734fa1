"""A campaign: its frozen contract, its journal, and where both lie.

    kaizen/systems/<id>/campaigns/<c>.json     the contract, committed when the campaign opens
    kaizen/.kaizen/campaigns/<c>/
        contract.json    the same bytes, for trees that do not hold it
        journal.jsonl    the truth: what happened, a chained event a line
        ideas.jsonl      hypotheses, chained as well
        holdout.jsonl    the ledger of looks, chained as well: no score, no case, only answers

The contract is frozen: its hash is in the first event of the journal, and whoever changes it
breaks the campaign's integrity. All that is known besides follows from the journals and runs.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kaizen.foundation.chain import ChainLog, broken_chain, read_chain
from kaizen.foundation.errors import InputError, RefusedError, UsageError
from kaizen.foundation.files import list_folder, read_bytes, shown_path
from kaizen.foundation.jsonio import JsonObject, read_json_object, sha256_hex
from kaizen.foundation.locks import FileLock
from kaizen.foundation.shapes import ANY_TEXT, Kind, check_fields, is_number, or_null
from kaizen.foundation.text import did_you_mean, listed, quoted
from kaizen.lab.system import SYSTEMS_FOLDER
from kaizen.lab.workspace import WORKSPACE_FOLDER, Workspace

CAMPAIGNS_FOLDER = "campaigns"
CAMPAIGN_NAME = re.compile(r"c\d{1,6}\Z")
CONTRACT_FILE, JOURNAL_FILE, IDEAS_FILE, LOOKS_FILE = "contract.json", "journal.jsonl", "ideas.jsonl", "holdout.jsonl"
OPENED, CLOSED = "campaign_opened", "closed"
BODY_NUMBER = or_null(Kind(is_number, "a number"))
BODY_TEXT = or_null(ANY_TEXT)
BODY_RUNS = Kind(lambda value: isinstance(value, (list, dict)), "a list of runs, or runs by role")
BODY_FIELDS = {
    **dict.fromkeys(("run", "title", "hypothesis", "category", "id"), ANY_TEXT),
    **dict.fromkeys(("variant", "commit", "purpose", "idea", "label", "lesson", "verdict", "answer", "head", "leader"), BODY_TEXT),
    **dict.fromkeys(("flip_rate", "se_pass", "run_variance", "gain", "se", "z", "label_gain", "label_z"), BODY_NUMBER),
    **dict.fromkeys(("cost_usd", "seconds", "evaluations", "predict", "drift_z", "passes"), BODY_NUMBER),
    **dict.fromkeys(("leader_commit", "state"), BODY_TEXT),
    "runs": BODY_RUNS,
}
BODY_REQUIRED = {
    **dict.fromkeys(("run_started", "run_ended", "baseline"), ("run",)),
    **dict.fromkeys(("screen", "replicate", "keep", "discard"), ("variant",)),
    "noise": ("runs", "flip_rate", "se_pass"),
    "idea": ("id", "title", "hypothesis", "category", "label"),
}


class Campaign(NamedTuple):
    """An opened campaign: its id, its system, the frozen contract, its folder in the store, and the events of its journal."""

    id: str
    system: str
    contract: JsonObject
    folder: str
    events: list[JsonObject]

    def file(self, name: str) -> str:
        """Path of a file of the campaign in the store."""
        return os.path.join(self.folder, name)

    def is_closed(self) -> bool:
        """True once the campaign has been closed."""
        return any(event["type"] == CLOSED for event in self.events)


def read_events(path: str) -> list[JsonObject]:
    """The events of the journal *path*, with bodies as Kaizen writes them; none for no file. Raises RefusedError (`broken_chain`)."""
    events = read_chain(path)
    for number, event in enumerate(events, 1):

        def report(pointer: str, message: str, hint: str, line: int = number) -> None:
            raise broken_chain(path, line, f"{pointer or '/body'}: {message}")

        if not (isinstance(event["type"], str) and isinstance(event["time"], str) and isinstance(event["body"], dict)):
            report("", "type, time or body is not what Kaizen writes", "")
        check_fields(event["body"], BODY_FIELDS, "/body", report, BODY_REQUIRED.get(event["type"], ()))
    return events


def campaigns_folder(workspace: Workspace) -> str:
    """The folder of all campaigns in the store."""
    return os.path.join(workspace.store_folder, CAMPAIGNS_FOLDER)


def campaign_ids(workspace: Workspace) -> list[str]:
    """The ids of all campaigns of *workspace* that have opened, oldest first."""
    folder = campaigns_folder(workspace)
    names = list_folder(folder) if os.path.isdir(folder) else []
    known = [name for name in names if CAMPAIGN_NAME.match(name) and os.path.isfile(os.path.join(folder, name, JOURNAL_FILE))]
    return sorted(known, key=lambda name: int(name[1:]))


def contract_path(workspace: Workspace, system: str, campaign: str) -> str:
    """Where the committed contract lies in the tree at hand."""
    return workspace.path(WORKSPACE_FOLDER, SYSTEMS_FOLDER, system, CAMPAIGNS_FOLDER, f"{campaign}.json")


def load_campaign(workspace: Workspace, name: str) -> Campaign:
    """The campaign *name*. Raises InputError (`no_campaign`); RefusedError for a broken chain or a contract that was changed."""
    folder = os.path.join(campaigns_folder(workspace), name)
    if name not in campaign_ids(workspace):
        known = campaign_ids(workspace)
        hint = did_you_mean(name, known) if known else "open one with: kaizen campaign open --system ID --sealed DIR"
        raise InputError(f"there is no campaign {quoted(name)}", hint, "no_campaign")
    events = read_events(os.path.join(folder, JOURNAL_FILE))
    path = os.path.join(folder, CONTRACT_FILE)
    if not events or events[0]["type"] != OPENED:
        message = f"{shown_path(folder)}: the journal does not begin with the opening"
        raise RefusedError(message, "put back what Kaizen wrote", "broken_chain")
    contract = read_json_object(path)
    for place in (path, contract_path(workspace, str(contract.get("system", "")), name)):
        if os.path.exists(place) and sha256_hex(read_bytes(place)) != events[0]["body"]["contract_sha256"]:
            message = f"{shown_path(place)}: is not the contract that was frozen when {name} opened"
            raise RefusedError(message, "put it back as it was committed; another contract is another campaign", "contract_changed")
    return Campaign(name, str(contract["system"]), contract, folder, events)


def open_campaigns(workspace: Workspace, system: str = "") -> list[Campaign]:
    """The campaigns that are not closed, of *system* or of all."""
    found = [load_campaign(workspace, name) for name in campaign_ids(workspace)]
    return [each for each in found if not each.is_closed() and system in ("", each.system)]


def find_campaign(workspace: Workspace, system: str = "", name: str = "", or_last: bool = False) -> Campaign:
    """The campaign *name*, or else the one that is open (of *system*); with *or_last* the last one when none is.

    Raises InputError (`no_campaign`), or UsageError when several are open.
    """
    if name:
        return load_campaign(workspace, name)
    found = open_campaigns(workspace, system)
    if not found and or_last:
        found = [each for each in (load_campaign(workspace, each) for each in campaign_ids(workspace)) if system in ("", each.system)][-1:]
    if not found:
        of = f" of {system}" if system else ""
        hint = f"open one with: kaizen campaign open --system {system or 'ID'} --sealed DIR"
        closed = campaign_ids(workspace)
        if closed:
            hint += f"; {listed(closed, 3)} {'is' if len(closed) == 1 else 'are'} closed, and shown with --campaign"
        raise InputError(f"no campaign{of} is open", hint, "no_campaign")
    if len(found) > 1:
        raise UsageError(f"{listed([each.id for each in found])} are open", "say which one with --campaign C")
    return found[0]


def refuse_closed(campaign: Campaign) -> None:
    """Raises RefusedError (`campaign_closed`) when nothing can be added to *campaign* any more."""
    if campaign.is_closed():
        raise RefusedError(f"{campaign.id} is closed", "open another one with: kaizen campaign open", "campaign_closed")


@contextmanager
def writing_journal(campaign: Campaign, name: str = JOURNAL_FILE) -> Iterator[ChainLog]:
    """While the block runs this process alone appends to the journal *name*. Raises RefusedError: lock_held, broken_chain."""
    with FileLock(campaign.file(f"{name}.lock"), f"the journal of {campaign.id}", patience=10):
        log = ChainLog(campaign.file(name))
        try:
            yield log
        finally:
            log.close()


def record(campaign: Campaign, kind: str, /, **body: object) -> JsonObject:
    """Appends one event to the journal, on disk at once, and returns it; *campaign* holds it too from then on."""
    with writing_journal(campaign) as log:
        event = log.append(kind, body)
    campaign.events.append(event)
    return event

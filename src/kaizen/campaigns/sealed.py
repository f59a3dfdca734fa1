"""The sealed place: the holdout, how a change of it is noticed, the ledger of looks.

    <sealed>/
        sealed.json      which campaign it belongs to, and the canary
        contract.json    the contract as it was frozen
        holdout.jsonl    the cases, each with the canary in its metadata
        marks.json       salted hashes of pieces of their text (contamination.py)
        looks.jsonl      a copy of the ledger, line by line
        retired.json     once the campaign has closed and its holdout was opened

The contract holds a salted hash of each case. The hash leaves out id and split: who renames a case
makes no other one. Messages about the holdout hold counts, and nothing of a case.
"""

import os
from typing import NamedTuple

from kaizen.campaigns.campaign import LOOKS_FILE, Campaign, refuse_closed, writing_journal
from kaizen.campaigns.splitting import question_text
from kaizen.cases.case import HOLDOUT, Case
from kaizen.cases.dataset import add_cases
from kaizen.foundation.chain import mend_torn_line, read_chain
from kaizen.foundation.errors import Breach, Breaches, BreachesError, InputError, RefusedError
from kaizen.foundation.files import shown_path, write_file
from kaizen.foundation.journals import AppendLog
from kaizen.foundation.jsonio import JsonObject, canonical_json, encode_readable, read_json_object, sha256_hex
from kaizen.foundation.text import counted

SEALED_MARK, SEALED_CONTRACT, SEALED_CASES, SEALED_MARKS = "sealed.json", "contract.json", "holdout.jsonl", "marks.json"
SEALED_LOOKS, SEALED_RETIRED = "looks.jsonl", "retired.json"
SEALED_KIND = "kaizen-sealed-holdout"
CANARY_FIELD = "kaizen_canary"  # in the metadata of a sealed case
LOOK, RETIRED = "look", "retired"
ANSWERS = ("yes", "no", "void")


class Ledger(NamedTuple):
    """The looks of a campaign, oldest first, and what is wrong with one of its two copies in a sentence ('' for nothing)."""

    looks: list[JsonObject]
    problem: str


class SecretBreaches(Breaches):
    """Breaches of a file of the holdout: nothing of it is quoted."""

    def shown(self, breach: Breach) -> Breach:
        return breach.concealed()


# --- Cases and their seal ---------------------------------------------------------------


def unmarked_case(document: JsonObject) -> JsonObject:
    """The case *document* without the canary, as it was before it was sealed but for its split."""
    metadata = {key: value for key, value in (document.get("metadata") or {}).items() if key != CANARY_FIELD}
    kept = {key: value for key, value in document.items() if key != "metadata"}
    return {**kept, "metadata": metadata} if metadata else kept


def sealed_case(document: JsonObject, canary: str) -> JsonObject:
    """The case *document* as it lies in the sealed place."""
    return {**document, "split": HOLDOUT, "metadata": {**(document.get("metadata") or {}), CANARY_FIELD: canary}}


def case_content_hash(document: JsonObject, salt: str) -> str:
    """The salted SHA-256 of all of the case *document* but id, split and canary."""
    kept = {key: value for key, value in unmarked_case(document).items() if key not in ("id", "split")}
    return sha256_hex(salt + canonical_json(kept))


def case_question_hash(document: JsonObject, salt: str) -> str:
    """The salted SHA-256 of what the case *document* asks, letters' case and blanks aside."""
    return sha256_hex(salt + question_text(document))


def new_seal(cases: list[Case], salt: str) -> JsonObject:
    """The seal of *cases*: the salt, the hashes of their contents, and of their questions; sorted, so that their order tells nothing."""
    documents = [case.document for case in cases]
    return {
        "salt": salt,
        "sha256": sorted(case_content_hash(each, salt) for each in documents),
        "questions": sorted({case_question_hash(each, salt) for each in documents}),
    }


def read_holdout_file(path: str) -> list[Case]:
    """The cases of a JSONL file that is, or becomes, a holdout. Raises InputError that names the line and quotes nothing."""
    cases: dict[str, Case] = {}
    breaches = SecretBreaches()
    add_cases(path, cases, breaches)
    try:
        breaches.raise_if_any()
    except BreachesError as error:
        raise InputError(error.message, "docs/cases.md says what a case is; nothing of a holdout is quoted", "invalid_file") from None
    if not cases:
        raise InputError(f"{shown_path(path)}: holds no case", 'write one a line: {"id": "…", "input": …, "expected": …}', "no_cases")
    return [case._replace(document={**unmarked_case(case.document), "split": HOLDOUT}) for case in cases.values()]


# --- The sealed place of a campaign -----------------------------------------------------


def sealed_folder(campaign: Campaign) -> str:
    """The absolute path of the sealed place of *campaign*."""
    return str(campaign.events[0]["body"]["sealed"])


def sealed_obstacle(campaign: Campaign) -> RefusedError | None:
    """Why the sealed place of *campaign* cannot be read: `sealed_missing`, `sealed_unreadable`, `sealed_changed`; None when it can.

    Unreadable is a place that this user, or this sandbox, may not read: that is how a strong seal looks from inside.
    """
    folder = sealed_folder(campaign)
    if not os.path.isdir(folder):
        hint = "put the folder back where it was; without it no look can be taken"
        return RefusedError(f"the sealed holdout of {campaign.id} is not there: {shown_path(folder)}", hint, "sealed_missing")
    if not os.access(folder, os.R_OK | os.X_OK) or not may_be_read(folder):
        hint = "run the command as the user who may read it, outside the sandbox"
        return RefusedError(f"the sealed holdout of {campaign.id} cannot be read here: {shown_path(folder)}", hint, "sealed_unreadable")
    try:
        mark = read_json_object(os.path.join(folder, SEALED_MARK))
    except InputError:
        return sealed_changed(campaign, "its description is missing or was changed")
    if mark.get("campaign") != campaign.id or mark.get("contract_sha256") != campaign.events[0]["body"]["contract_sha256"]:
        return sealed_changed(campaign, "it belongs to another campaign")
    return None


def may_be_read(folder: str) -> bool:
    """True when the names in *folder* can be listed: permissions do not tell of a sandbox."""
    try:
        os.listdir(folder)
    except OSError:
        return False
    return True


def sealed_changed(campaign: Campaign, what: str) -> RefusedError:
    """The refusal of a holdout that is not the one that was sealed; the looks that are left are void."""
    hint = "put back what Kaizen sealed; until then no look counts, and another holdout is another campaign"
    return RefusedError(f"the sealed holdout of {campaign.id} is not the one that was sealed: {what}", hint, "sealed_changed")


def open_sealed(campaign: Campaign) -> dict[str, Case]:
    """The holdout cases of *campaign* by id, as they were when it opened, each with the split `holdout` and without canary.

    Each is compared with the contract's seal. Raises RefusedError: `sealed_missing`, `sealed_unreadable`, `sealed_changed`
    (which voids the looks that are left).
    """
    obstacle = sealed_obstacle(campaign)
    if obstacle:
        raise obstacle
    path = os.path.join(sealed_folder(campaign), SEALED_CASES)
    try:
        cases = read_holdout_file(path)
    except InputError:
        raise sealed_changed(campaign, "its cases cannot be read") from None
    seal = campaign.contract["holdout"]["seal"]
    there = [case_content_hash(case.document, seal["salt"]) for case in cases]
    if sorted(there) != seal["sha256"]:
        lost, strange = len(set(seal["sha256"]) - set(there)), len(set(there) - set(seal["sha256"]))
        what = f"{counted(len(there), 'case')} instead of {len(seal['sha256'])}; {lost} missing, {strange} that were not sealed"
        raise sealed_changed(campaign, what)
    return {case.id: case for case in cases}


def sealed_canary(campaign: Campaign) -> str:
    """The canary of *campaign*: a text that stands nowhere but in its sealed place. Raises RefusedError as `open_sealed` does."""
    obstacle = sealed_obstacle(campaign)
    if obstacle:
        raise obstacle
    return str(read_json_object(os.path.join(sealed_folder(campaign), SEALED_MARK))["canary"])


def can_write_sealed(campaign: Campaign) -> bool:
    """True when files can be made in the sealed place of *campaign*, tried by making an empty folder and removing it."""
    import tempfile

    try:
        os.rmdir(tempfile.mkdtemp(prefix=".probe-", dir=sealed_folder(campaign)))
    except OSError:
        return False
    return True


# --- The ledger of looks ----------------------------------------------------------------


def read_ledger(campaign: Campaign) -> Ledger:
    """The looks that *campaign* has spent (their bodies), of the store and the sealed place whichever has more, and what is wrong.

    A look that the sealed place could not be told of is no problem; one that the store has lost, or that the sealed place has lost
    again, is. Where the sealed place cannot be read the store is believed. Raises RefusedError for a broken chain.
    """
    events = read_chain(campaign.file(LOOKS_FILE))
    if sealed_obstacle(campaign):
        return Ledger([event["body"] for event in events if event["type"] == LOOK], "")
    copied = read_chain(os.path.join(sealed_folder(campaign), SEALED_LOOKS))
    shared = min(len(events), len(copied))
    told = max((event["seq"] for event in events[:-1] if event["body"].get("copied")), default=0)  # the last may be on its way
    problem = ""
    if [each["sha"] for each in events[:shared]] != [each["sha"] for each in copied[:shared]]:
        problem = "the ledger of looks in the store and the copy in the sealed place tell different things"
    elif len(copied) > len(events):
        problem = f"the ledger of looks in the store has lost {counted(len(copied) - len(events), 'line')}"
    elif len(copied) < told:
        problem = f"the copy of the ledger in the sealed place has lost {counted(told - len(copied), 'line')}"
    longer = copied if len(copied) > len(events) else events
    return Ledger([event["body"] for event in longer if event["type"] == LOOK], problem)


def ledger(campaign: Campaign) -> list[JsonObject]:
    """The looks of *campaign* as `append_look` wrote them, oldest first. Raises RefusedError: `ledger_changed`, `broken_chain`."""
    found = read_ledger(campaign)
    if found.problem:
        hint = "put back the file that Kaizen wrote; no look is taken until then"
        raise RefusedError(f"{campaign.id}: {found.problem}", hint, "ledger_changed")
    return found.looks


def looks_so_far(campaign: Campaign) -> tuple[int, int]:
    """(looks spent, yes answers) of *campaign*, with what it inherited: the next look is number spent + 1. Raises as `ledger` does."""
    inherited = campaign.events[0]["body"]["inherited"]
    own = ledger(campaign)
    return inherited["looks"] + len(own), inherited["yes"] + sum(look["answer"] == "yes" for look in own)


def append_look(
    campaign: Campaign, answer: str, level: float, leader_commit: str, reference_commit: str, void_reason: str = ""
) -> JsonObject:
    """Spends a look: one line in the ledger, on disk at once, and its copy in the sealed place where that can be written; the body.

    *answer* is yes, no or void. The number of the look and the yes answers before it are counted here. Raises RefusedError:
    `no_looks_left`, `campaign_closed`, `ledger_changed`.
    """
    refuse_closed(campaign)
    if answer not in ANSWERS:
        raise ValueError(f"an answer is one of {ANSWERS}")
    with writing_journal(campaign, LOOKS_FILE) as log:
        spent, yes = looks_so_far(campaign)
        if spent >= campaign.contract["looks"]["number"]:
            hint = f"close it: kaizen campaign close --campaign {campaign.id}"
            raise RefusedError(f"all {campaign.contract['looks']['number']} looks of {campaign.id} are spent", hint, "no_looks_left")
        is_copied = sealed_obstacle(campaign) is None and can_write_sealed(campaign)
        body = {"look": spent + 1, "yes_before": yes, "level": level, "answer": answer, "void_reason": void_reason or None}
        commits = {"leader_commit": leader_commit, "reference_commit": reference_commit}
        event = log.append(LOOK, {**body, **commits, "copied": is_copied})
    if is_copied:
        copy_ledger(campaign)
    found: JsonObject = event["body"]
    return found


def copy_ledger(campaign: Campaign) -> None:
    """Brings the copy of the ledger in the sealed place up to date, on disk at once. Raises InputError when the disk says no."""
    path = os.path.join(sealed_folder(campaign), SEALED_LOOKS)
    mend_torn_line(path)
    there = len(read_chain(path))
    log = AppendLog(path)
    try:
        for event in read_chain(campaign.file(LOOKS_FILE))[there:]:
            log.append(event)
    finally:
        log.close()


def retire(campaign: Campaign, commit: str) -> bool:
    """Notes in the ledger and the sealed place that the holdout was opened when *campaign* closed at *commit*; False without the latter.

    What was opened can be sealed again only with all looks that it has cost. Doing it twice is fine.
    """
    with writing_journal(campaign, LOOKS_FILE) as log:
        is_copied = sealed_obstacle(campaign) is None and can_write_sealed(campaign)
        if not is_retired(campaign):
            log.append(RETIRED, {"commit": commit, "copied": is_copied})
    if is_copied:
        copy_ledger(campaign)
        text = encode_readable({"campaign": campaign.id, "commit": commit})
        write_file(os.path.join(sealed_folder(campaign), SEALED_RETIRED), text + "\n")
    return is_copied


def is_retired(campaign: Campaign) -> bool:
    """True once the holdout of *campaign* was opened."""
    return any(event["type"] == RETIRED for event in read_chain(campaign.file(LOOKS_FILE)))

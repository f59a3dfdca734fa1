"""What a campaign promises: the contract, and what others have spent of its holdout.

A look costs the same whoever takes it: a new campaign whose holdout shares a question with that of an
earlier one goes on counting where that one stopped. Neither ids, splits, tags nor labels reset this.
"""

import os
import re
from collections.abc import Collection
from typing import NamedTuple

from kaizen.campaigns.campaign import (
    CAMPAIGNS_FOLDER,
    LOOKS_FILE,
    campaign_ids,
    campaigns_folder,
    load_campaign,
)
from kaizen.campaigns.rules import LABEL_TRIALS
from kaizen.campaigns.sealed import LOOK, SEALED_CONTRACT, SEALED_LOOKS, SEALED_MARK, case_question_hash
from kaizen.campaigns.splitting import cluster_names
from kaizen.cases.case import Case
from kaizen.foundation.chain import read_chain
from kaizen.foundation.errors import RefusedError, UsageError
from kaizen.foundation.files import list_folder, read_bytes
from kaizen.foundation.jsonio import JsonObject, encode_readable, float_or_none, read_json_object, sha256_hex
from kaizen.foundation.text import counted, listed, quoted
from kaizen.lab.execution import ItemSet, scoring_hashes
from kaizen.lab.preflight import slots_of
from kaizen.lab.system import SYSTEMS_FOLDER, System
from kaizen.lab.workspace import WORKSPACE_FOLDER, Workspace

STOP_RULES = {"plateau": 12, "categories": 3, "saturation": 0.95}
GUARD_NAME = re.compile(r"[^=\x00-\x1f\x7f]{1,100}\Z")


class ContractTerms(NamedTuple):
    """What is asked for at the opening; None is no limit, or no target."""

    min_effect: float = 0.0
    target: float | None = None
    guards: tuple[JsonObject, ...] = ()
    looks: int | None = None
    alpha: float | None = None
    look_trials: int = 4
    replicate_passes: int = 3
    budget_variants: int = 40
    budget_evaluations: int | None = None
    budget_usd: float | None = None
    budget_hours: float | None = None


class Inherited(NamedTuple):
    """What earlier campaigns have spent of the same holdout: looks, yes answers, which ones; their number of looks and alpha."""

    looks: int = 0
    yes: int = 0
    sources: tuple[str, ...] = ()
    number: int | None = None
    alpha: float | None = None


class SealLevel(NamedTuple):
    """How well the holdout is kept, `honour`, `guarded` or `other_user`, and why it is that in one sentence."""

    level: str
    reason: str


class EarlierContract(NamedTuple):
    """A contract that was found: its campaign, its own looks (None: nobody knows), whether it is open, the first event of its journal."""

    name: str
    contract: JsonObject
    looks: list[JsonObject] | None
    is_open: bool = False
    opened: JsonObject | None = None


# --- What earlier campaigns have spent --------------------------------------------------


def earlier_contracts(workspace: Workspace, holdout_file: str = "") -> list[EarlierContract]:
    """The contracts of the store, of the tree, and of the sealed place in which *holdout_file* lies; each once.

    Raises RefusedError when the store's have been tampered with.
    """
    found: dict[str, EarlierContract] = {}
    for name in campaign_ids(workspace):
        campaign = load_campaign(workspace, name)
        looks = [event["body"] for event in read_chain(campaign.file(LOOKS_FILE)) if event["type"] == LOOK]
        opened = campaign.events[0]["body"]
        longer = max(looks, read_looks(opened["sealed"]) or [], key=len)
        found[opened["contract_sha256"]] = EarlierContract(name, campaign.contract, longer, not campaign.is_closed(), opened)
    beside = os.path.dirname(os.path.realpath(holdout_file)) if holdout_file else ""
    if beside and os.path.isfile(os.path.join(beside, SEALED_MARK)):
        path = os.path.join(beside, SEALED_CONTRACT)
        contract = read_json_object(path)
        looks_there = read_looks(beside) or []
        found.setdefault(sha256_hex(read_bytes(path)), EarlierContract(contract["campaign"], contract, looks_there))
    for path in committed_contracts(workspace):
        digest = sha256_hex(read_bytes(path))
        if digest not in found:
            contract = read_json_object(path)
            found[digest] = EarlierContract(str(contract.get("campaign")), contract, None)
    return list(found.values())


def read_looks(folder: str) -> list[JsonObject] | None:
    """The looks in the ledger of the sealed place *folder*; None when it cannot be read."""
    path = os.path.join(folder, SEALED_LOOKS)
    if not os.access(path, os.R_OK):
        return None
    return [event["body"] for event in read_chain(path) if event["type"] == LOOK]


def committed_contracts(workspace: Workspace) -> list[str]:
    """The paths of the contracts in the tree at hand, of all systems."""
    systems = workspace.path(WORKSPACE_FOLDER, SYSTEMS_FOLDER)
    names = list_folder(systems) if os.path.isdir(systems) else []
    folders = [os.path.join(systems, name, CAMPAIGNS_FOLDER) for name in names]
    found = [os.path.join(folder, name) for folder in folders if os.path.isdir(folder) for name in list_folder(folder)]
    return [path for path in found if path.endswith(".json") and os.path.isfile(path)]


def shared_cases(contract: JsonObject, cases: Collection[Case]) -> int:
    """How many of *cases* ask what a case of the holdout of *contract* asked."""
    seal = contract["holdout"]["seal"]
    known = set(seal["questions"])
    return sum(case_question_hash(case.document, seal["salt"]) in known for case in cases)


def inherited_looks(earlier: list[EarlierContract], cases: list[Case]) -> Inherited:
    """What was spent of the holdout *cases* by the campaigns *earlier*, and by those that they inherited from.

    Raises RefusedError: `holdout_in_use` when one of them is open, `ledger_missing` when nobody knows what it has spent.
    """
    by_name = {each.name: each for each in earlier if each.looks is not None}
    sharing = {each.name: each for each in earlier if shared_cases(each.contract, cases)}
    for each in sharing.values():
        if each.is_open:
            message = f"{counted(shared_cases(each.contract, cases), 'case')} of this holdout belong to that of {each.name}, which is open"
            raise RefusedError(message, f"close it first: kaizen campaign close --campaign {each.name}", "holdout_in_use")
        if each.looks is None:
            message = f"this holdout shares cases with that of {each.name}, whose ledger of looks is not in the store"
            hint = "bring the store back, or name the old sealed file with --holdout; or keep back other cases"
            raise RefusedError(message, hint, "ledger_missing")
    names = set(sharing)
    for each in sharing.values():
        names |= {name for name in each.contract["inherited"]["from"] if name in by_name}
    spent = [look for name in names for look in by_name[name].looks or ()]
    # Of ancestors that are known by a contract alone its word counts.
    lost = [each.contract["inherited"] for each in sharing.values() if set(each.contract["inherited"]["from"]) - set(by_name)]
    looks = len(spent) + max((each["looks"] for each in lost), default=0)
    yes = sum(look["answer"] == "yes" for look in spent) + max((each["yes"] for each in lost), default=0)
    terms = [each.contract["looks"] for each in sharing.values()]
    if not terms:
        return Inherited()
    number, alpha = min(each["number"] for each in terms), min(each["alpha"] for each in terms)
    return Inherited(looks, yes, tuple(sorted(names)), number, alpha)


def look_terms(terms: ContractTerms, inherited: Inherited) -> tuple[int, float]:
    """(number of looks, alpha) of the contract. Raises RefusedError when an inherited holdout has none left, or was promised otherwise."""
    number = terms.looks or inherited.number or 5
    alpha = terms.alpha or inherited.alpha or 0.05
    if inherited.number is not None and inherited.alpha is not None:
        of = listed(inherited.sources)
        if number > inherited.number or alpha > inherited.alpha:
            message = f"{of} promised {counted(inherited.number, 'look')} and alpha {inherited.alpha:g} for this holdout; neither can grow"
            raise RefusedError(message, "leave out --looks and --alpha, or keep back other cases", "looks_promised")
        if inherited.looks >= number:
            message = f"{of} spent {inherited.looks} of {counted(number, 'look')} at this holdout: none is left"
            raise RefusedError(message, "keep back cases that no campaign has looked at", "holdout_spent")
    return number, alpha


# --- The contract -----------------------------------------------------------------------


def parsed_guards(margins: list[str], hard: list[str]) -> tuple[JsonObject, ...]:
    """The guards of `--guard METRIC=MARGIN` and `--hard-gate METRIC`. Raises UsageError."""
    found: list[JsonObject] = []
    for text in margins:
        name, equals, number = text.rpartition("=")
        try:
            margin = float_or_none(float(number)) if equals else None
        except ValueError:
            margin = None
        if not GUARD_NAME.match(name) or margin is None or margin < 0:
            raise UsageError(f"--guard {quoted(text)}: is METRIC=MARGIN, a number of 0 or more", "for example: --guard cost_usd=0.1")
        found.append({"metric": name, "margin": margin})
    for name in hard:
        if not GUARD_NAME.match(name):
            raise UsageError(f"--hard-gate {quoted(name)}: is the name of a metric")
        found.append({"metric": name, "hard": True})
    names = [each["metric"] for each in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"the metric {quoted(twice[0])} is guarded twice", "one guard a metric")
    return tuple(found)


def next_campaign_number(workspace: Workspace, earlier: list[EarlierContract]) -> int:
    """The number of the next campaign: no folder of the store and no contract of the tree has it."""
    folder = campaigns_folder(workspace)
    names = list_folder(folder) if os.path.isdir(folder) else []
    names += [each.name for each in earlier]
    return max((int(name[1:]) for name in names if re.fullmatch(r"c\d{1,6}", name)), default=0) + 1


def build_contract(
    workspace: Workspace,
    system: System,
    terms: ContractTerms,
    development: ItemSet,
    locked: dict[str, str],
    holdout: list[Case],
    inherited: Inherited,
    level: SealLevel,
    base_commit: str,
    seal: JsonObject,
) -> JsonObject:
    """The contract, without `campaign`, which is known when its folder is made."""
    number, alpha = look_terms(terms, inherited)
    metric = system.metric
    dataset = os.path.normpath(system.dataset or os.path.join(system.improvement, "test_cases.jsonl"))
    return {
        "version": 1,
        "campaign": "",
        "system": system.id,
        "epoch": 1,
        "metric": {**metric.document(), "minimum": metric.minimum, "maximum": metric.maximum, "worst": metric.worst},
        "min_effect": terms.min_effect,
        "target": terms.target,
        "guards": list(terms.guards),
        "mutable": list(system.mutable),
        "locked": locked,
        "hashes": scoring_hashes(system, development.fingerprint, locked),
        "dataset": {
            "path": dataset,
            "items": len(development.cases),
            "clusters": len(set(cluster_names(development.cases.values()).values())),
        },
        "base_commit": base_commit,
        "holdout": {
            "cases": len(holdout),
            "clusters": len(set(cluster_names(holdout).values())),
            "seal": seal,
            "level": level.level,
            "level_reason": level.reason,
        },
        "inherited": {"looks": inherited.looks, "yes": inherited.yes, "from": list(inherited.sources)},
        "looks": {"number": number, "alpha": alpha, "trials": terms.look_trials},
        "replicate": {"passes": terms.replicate_passes, "extended": 2 * terms.replicate_passes},
        "label_trials": LABEL_TRIALS,
        "seed": workspace.config["seed"],
        "slots": slots_of(workspace, system),
        "budget": {
            "variants": terms.budget_variants,
            "evaluations": terms.budget_evaluations,
            "usd": terms.budget_usd,
            "hours": terms.budget_hours,
        },
        "stop": dict(STOP_RULES),
        "accepts_unresolvable": "",
    }


def contract_text(contract: JsonObject) -> str:
    """The contract as it is frozen: its bytes are what is hashed."""
    return encode_readable(contract) + "\n"


def contract_words(contract: JsonObject) -> list[str]:
    """The contract in plain words, a line a sentence."""
    metric, holdout, looks, budget = contract["metric"], contract["holdout"], contract["looks"], contract["budget"]
    inherited = contract["inherited"]
    limits = [f"{budget['variants']} variants"]
    limits += [f"{budget['evaluations']:,} evaluations"] if budget["evaluations"] else []
    limits += [f"{budget['usd']:g} US dollars"] if budget["usd"] else []
    limits += [f"{budget['hours']:g} hours"] if budget["hours"] else []
    margins = [("on any case" if each.get("hard") else f"by more than {each['margin']:g}") for each in contract["guards"]]
    guards = [f"{each['metric']} {margin}" for each, margin in zip(contract["guards"], margins, strict=True)]
    goal = f", target {contract['target']:g}" if contract["target"] is not None else ""
    lines = [
        f"goal: {metric['name']} ({metric['aggregation']}), {metric['direction']} is better{goal}; "
        f"a gain counts from {contract['min_effect']:g} on",
        f"search: {counted(contract['dataset']['items'], 'development case')}; at most {listed(limits)}",
        f"may change: {listed([quoted(each) for each in contract['mutable']])}; {counted(len(contract['locked']), 'file')} locked",
        f"claims: {counted(looks['number'], 'look')} at {counted(holdout['cases'], 'sealed case')}, "
        f"{counted(looks['trials'], 'trial')} each; the chance of any false claim is at most {looks['alpha']:g}",
        f"seal: {holdout['level']}; {holdout['level_reason']}",
    ]
    lines += [f"must not get worse: {listed(guards)}"] if guards else []
    if inherited["from"]:
        spent = f"{counted(inherited['looks'], 'look')} spent, {inherited['yes']} yes"
        lines.append(f"inherited from {listed(inherited['from'])}, whose holdout shares cases: {spent}")
    return lines

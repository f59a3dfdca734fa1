"""Whether a campaign may open, and what it would be; nothing is written here.

    nested_clone campaign_open dirty_tree …   the place
    sealed_link sealed_inside sealed_not_empty   where the holdout is to lie
    nothing_mutable no_identity locked_untracked dataset_filtered   the system
    no_holdout two_holdouts holdout_inside holdout_in_include   which cases
    too_few_cases too_few_clusters holdout_in_development holdout_was_development   whether they can tell
    holdout_in_use ledger_missing holdout_spent looks_promised   what others have spent
"""

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kaizen.campaigns.campaign import open_campaigns
from kaizen.campaigns.contamination import (
    MUTABLE_LIMIT,
    ItemIndex,
    committed_texts,
    file_marks,
    marks_text,
    sealed_marks,
    without_marks,
)
from kaizen.campaigns.contract import (
    ContractTerms,
    EarlierContract,
    SealLevel,
    build_contract,
    earlier_contracts,
    inherited_looks,
    next_campaign_number,
)
from kaizen.campaigns.history_search import HistoryHits, line_questions, search_history
from kaizen.campaigns.sealed import new_seal, read_holdout_file
from kaizen.campaigns.splitting import ADVISED_HOLDOUT, draw_holdout, question_text, refuse_small_sides, split_share
from kaizen.cases.case import Case, is_holdout
from kaizen.cases.dataset import CASES_FILE, add_cases, dataset_fingerprint, included_path, is_inside, load_dataset
from kaizen.cases.evaluation_file import load_evaluation
from kaizen.cases.improvement import Improvement
from kaizen.foundation.errors import Breaches, RefusedError, UsageError
from kaizen.foundation.files import list_folder, read_bytes, shown_path
from kaizen.foundation.globs import glob_test
from kaizen.foundation.jsonio import JsonObject, sha256_hex
from kaizen.foundation.text import counted, listed, quoted
from kaizen.lab.definition import load_whole_system
from kaizen.lab.execution import ItemSet, locked_hashes
from kaizen.lab.git import GitError, git_answer, git_ended
from kaizen.lab.preflight import checked_tree
from kaizen.lab.provenance import Checkout
from kaizen.lab.system import System
from kaizen.lab.watch import content_sha256
from kaizen.lab.workspace import Workspace

SALT_LENGTH = 16


class OpeningRequest(NamedTuple):
    """What `kaizen campaign open` was asked for."""

    system: str
    sealed: str
    terms: ContractTerms
    holdout_file: str = ""
    split: str = ""
    guarded: tuple[str, ...] = ()


class Opening(NamedTuple):
    """An opening that may go ahead: nothing is written yet.

    `dataset` is the path of the cases relative to the workspace's root, `kept` what it is to hold, None when it stays as it is.
    """

    workspace: Workspace
    system: System
    checkout: Checkout
    sealed: str
    contract: JsonObject
    holdout: list[Case]
    dataset: str
    kept: bytes | None
    history: HistoryHits
    canary: str
    marks: JsonObject
    notes: list[str]


class CaseSides(NamedTuple):
    """The two sides: cases of the search (as they will be read), of the holdout, whether they were drawn just now."""

    development: list[Case]
    holdout: list[Case]
    is_drawn: bool


def prepare_opening(workspace: Workspace, request: OpeningRequest) -> Opening:
    """What the campaign would be; nothing is written. Raises KaizenError with the first thing that forbids it."""
    system = load_whole_system(workspace, request.system)
    if is_inside(workspace.store_folder, workspace.root):
        message = "a campaign is opened in the repository itself, not in a clone of it"
        raise RefusedError(message, "go there, outside the sandbox", "nested_clone")
    running = open_campaigns(workspace, system.id)
    if running:
        hint = f"go on with it (kaizen next), or close it: kaizen campaign close --campaign {running[0].id}"
        raise RefusedError(f"{running[0].id} of {system.id} is open; a system has one at a time", hint, "campaign_open")
    checkout = checked_tree(workspace)
    sealed = checked_sealed_place(workspace, checkout, request.sealed)
    refuse_unfit_system(workspace, system)
    earlier = earlier_contracts(workspace, request.holdout_file)
    sides = case_sides(workspace, system, checkout, request)
    refuse_small_sides(sides.development, sides.holdout)
    refuse_shared_questions(sides)
    refuse_tuned_holdout(workspace, earlier, sides.holdout)
    dataset, own = own_dataset(system), workspace.path(own_dataset(system))
    kept = kept_lines(read_bytes(own), shown_path(own), sides)
    refuse_copies(workspace, str(checkout.head), dataset, sides.holdout)
    history = search_history(checkout, os.path.relpath(own, checkout.root), sides.holdout, run_copies(workspace, dataset))
    files = list(committed_texts(workspace.root, str(checkout.head), glob_test(system.mutable), MUTABLE_LIMIT))
    salt, canary = os.urandom(SALT_LENGTH).hex(), f"kaizen-canary-{os.urandom(SALT_LENGTH).hex()}"
    marks = sealed_marks(sides.holdout, sides.development, files, os.urandom(SALT_LENGTH).hex())
    proofs = {"marks_sha256": sha256_hex(marks_text(marks)), "canary_sha256": sha256_hex(canary)}
    locked = locked_hashes(workspace, system)
    refuse_uncommitted(workspace, locked, dataset)
    if kept is not None:
        locked[dataset] = sha256_hex(kept)
    cases = {case.id: case for case in sides.development}
    contract = build_contract(
        workspace,
        system,
        request.terms,
        ItemSet(cases, dataset_fingerprint(cases), 0),
        locked,
        sides.holdout,
        inherited_looks(earlier, sides.holdout),
        seal_level(workspace, request, history, sides.holdout),
        str(checkout.head),
        {**new_seal(sides.holdout, salt), **proofs},
    )
    contract["campaign"] = f"c{next_campaign_number(workspace, earlier)}"
    notes = opening_notes(request, sides, contract)
    known = len(known_questions(sides.holdout, files))
    if known:
        notes.append(f"the input of {counted(known, 'holdout case')} stands in files that variants may change")
    if without_marks(marks):
        notes.append(f"{counted(without_marks(marks), 'holdout case')} too short to be recognised when a variant copies it")
    return Opening(workspace, system, checkout, sealed, contract, sides.holdout, dataset, kept, history, canary, marks, notes)


def checked_sealed_place(workspace: Workspace, checkout: Checkout, name: str) -> str:
    """The absolute path of the sealed place *name*. Raises RefusedError for one that is unfit; UsageError for another machine's."""
    if "://" in name or not os.path.exists(name) and ":" in name.split(os.sep)[0]:
        raise UsageError("--sealed: a place on another machine is not supported", "name a folder of this machine outside the repository")
    path = os.path.abspath(name)
    if os.path.islink(path):
        raise RefusedError(f"{shown_path(path)}: is a symbolic link", "name the folder itself", "sealed_link")
    path = os.path.realpath(path)
    main = os.path.dirname(os.path.dirname(workspace.store_folder))  # the tree whose worktree this may be
    for place in dict.fromkeys((checkout.root, main, checkout.common_dir, checkout.git_dir, workspace.store_folder)):
        if is_inside(place, path):
            message = f"{shown_path(path)}: lies inside the repository, where every variant could read it"
            raise RefusedError(message, "name a folder outside of it", "sealed_inside")
        if is_inside(path, place):
            message = f"{shown_path(path)}: holds the repository"
            raise RefusedError(message, "name a new folder beside it", "sealed_inside")
    if os.path.lexists(path) and not (os.path.isdir(path) and not list_folder(path)):
        message = f"{shown_path(path)}: is there already, and is no empty folder; nothing was changed"
        raise RefusedError(message, "name a new folder; each campaign has one of its own", "sealed_not_empty")
    return path


def refuse_unfit_system(workspace: Workspace, system: System) -> None:
    """Raises RefusedError when no variant of *system* could be made."""
    if not system.mutable:
        message = f"{shown_path(os.path.join(system.folder, 'system.md'))}: `mutable` names nothing that a variant may change"
        raise RefusedError(message, "name it by globs, commit, and open again", "nothing_mutable")
    ended = git_ended(workspace.root, "var", "GIT_COMMITTER_IDENT")
    if ended.exit_code:
        hint = 'git config user.name "…" and git config user.email "…"'
        raise GitError("git does not know who commits here", hint, "no_identity")


def own_dataset(system: System) -> str:
    """The file that holds the system's own cases, relative to the root."""
    return os.path.normpath(system.dataset or os.path.join(system.improvement, CASES_FILE))


def case_sides(workspace: Workspace, system: System, checkout: Checkout, request: OpeningRequest) -> CaseSides:
    """Which cases are on which side. Raises RefusedError: `holdout_inside`, `holdout_in_include`, `two_holdouts`, `no_holdout`."""
    own, others = system_cases(workspace, system)
    included = [case for case in others if case.id not in {each.id for each in own if not is_holdout(each.document)}]
    held = [case for case in own if is_holdout(case.document)]
    if any(is_holdout(case.document) for case in included):
        message = "an included file holds cases of the holdout, and stays as it is for whoever else includes it"
        raise RefusedError(message, f"move them to {CASES_FILE}, or to a file outside the repository: --holdout FILE", "holdout_in_include")
    if request.holdout_file:
        if any(is_inside(place, request.holdout_file) for place in (checkout.root, checkout.common_dir)):
            message = f"{shown_path(request.holdout_file)}: lies inside the repository, where every variant could read it"
            raise RefusedError(message, "move it out of the repository", "holdout_inside")
        if held:
            message = f"{counted(len(held), 'case')} of the dataset are of the holdout already"
            raise RefusedError(message, "leave out --holdout, or give them another split", "two_holdouts")
        return CaseSides([*own, *included], read_holdout_file(request.holdout_file), False)
    if held:
        if request.split:
            raise UsageError("--split: the cases have been split already", "leave it out")
        return CaseSides([case for case in own if not is_holdout(case.document)] + included, as_holdout(held), False)
    if any("split" in case.document for case in own):
        message = f"{shown_path(workspace.path(own_dataset(system)))}: no case is held out, though cases have a split"
        hint = 'give fresh cases "split": "holdout", or name a file outside the repository: --holdout FILE'
        raise RefusedError(message, hint, "no_holdout")
    files = committed_texts(workspace.root, str(checkout.head), glob_test(system.mutable), MUTABLE_LIMIT)
    known = known_questions(own, files)  # as an example in a prompt is
    asked = {question_text(case.document) for case in others}
    known |= {case.id for case in own if question_text(case.document) in asked}
    drawn = set(draw_holdout(own, split_share(request.split, len(own)), workspace.config["seed"], known))
    kept = [case._replace(document={**case.document, "split": "development"}) for case in own if case.id not in drawn]
    return CaseSides(kept + included, as_holdout([case for case in own if case.id in drawn]), True)


def known_questions(cases: list[Case], files: Iterable[str]) -> set[str]:
    """The ids of those of *cases* whose input stands in one of the texts *files*."""
    index = ItemIndex(case._replace(document={"input": case.document["input"]}) for case in cases)
    return {name for text in files for name in index.found(file_marks(text, index.sizes))}


def as_holdout(cases: list[Case]) -> list[Case]:
    """*cases* with the split `holdout`."""
    return [case._replace(document={**case.document, "split": "holdout"}) for case in cases]


def system_cases(workspace: Workspace, system: System) -> tuple[list[Case], list[Case]]:
    """(the cases in the system's own file, all those of files that its improvement includes). Raises BreachesError."""
    breaches = Breaches()
    own: dict[str, Case] = {}
    included: dict[str, Case] = {}
    if system.improvement:
        improvement = Improvement(workspace.path(system.improvement))
        evaluation = load_evaluation(improvement, breaches)
        load_dataset(improvement, evaluation.include if evaluation else [], breaches)
        breaches.raise_if_any()
        for name in evaluation.include if evaluation else []:
            add_cases(included_path(improvement, name), included, breaches)
    add_cases(workspace.path(own_dataset(system)), own, breaches)
    breaches.raise_if_any()
    return list(own.values()), list(included.values())


def kept_lines(data: bytes, shown: str, sides: CaseSides) -> bytes | None:
    """The cases *data* without the lines of the holdout, else byte for byte; drawn ones get their split. None for no change."""
    gone = {case.line for case in sides.holdout if case.path == shown}
    named = {case.line for case in sides.development if case.path == shown} if sides.is_drawn else set()
    lines = data.split(b"\n")
    kept = [with_split(line) if number in named else line for number, line in enumerate(lines, 1) if number not in gone]
    return b"\n".join(kept) if gone else None


def with_split(line: bytes) -> bytes:
    """The JSON object on *line* with `"split": "development"` behind its other fields."""
    body = line.rstrip(b" \t\r")
    return body[:-1].rstrip() + b', "split": "development"}' + line[len(body) :]


def refuse_shared_questions(sides: CaseSides) -> None:
    """Raises RefusedError when a case of the holdout asks what a case of the search asks."""
    known = {question_text(case.document) for case in sides.development}
    shared = sum(question_text(case.document) in known for case in sides.holdout)
    if shared:
        message = f"{counted(shared, 'case')} of the holdout ask what a development case asks"
        raise RefusedError(message, "keep each question on one side", "holdout_in_development")


def refuse_tuned_holdout(workspace: Workspace, earlier: list[EarlierContract], holdout: list[Case]) -> None:
    """Raises RefusedError when cases of *holdout* were development cases of an earlier campaign: variants were tuned on them."""
    wanted = {question_text(case.document) for case in holdout}
    for each in earlier:
        if not each.opened:
            continue
        place = os.path.join(each.opened["root"], each.contract["dataset"]["path"])
        then = git_ended(workspace.root, "cat-file", "blob", f"{each.opened['commit']}:{place}").stdout
        tuned = len(wanted & {text for line in then.split(b"\n") for text in line_questions(line)})
        if tuned:
            message = f"{counted(tuned, 'case')} of the holdout were development cases of {each.name}: variants were tuned on them"
            raise RefusedError(message, "keep back cases that no variant has been tuned on", "holdout_was_development")


def refuse_copies(workspace: Workspace, commit: str, dataset: str, holdout: list[Case]) -> None:
    """Raises RefusedError when a file beside the *dataset* holds cases of *holdout*: taking them out of one would keep nothing back."""
    wanted = {question_text(case.document) for case in holdout}
    suffix = os.path.splitext(dataset)[1]
    texts = committed_texts(workspace.root, commit, lambda path: path.endswith(suffix) and path != dataset)
    copied = wanted & {question for text in texts for line in text.split("\n") for question in line_questions(line.encode())}
    if copied:
        message = f"{counted(len(copied), 'case')} of the holdout stand in further files of the tree that end in {quoted(suffix)}"
        raise RefusedError(message, "take them out there, and commit", "holdout_in_tree")


def run_copies(workspace: Workspace, dataset: str) -> Iterator[bytes]:
    """The copies of the *dataset* that earlier runs have kept, each once."""
    runs = os.path.join(workspace.store_folder, "runs")
    seen = set()
    for name in list_folder(runs) if os.path.isdir(runs) else []:
        path = os.path.join(runs, name, "locked", dataset)
        if os.path.isfile(path) and (digest := content_sha256(path)) not in seen:
            seen.add(digest)
            yield read_bytes(path)


def refuse_uncommitted(workspace: Workspace, locked: dict[str, str], dataset: str) -> None:
    """Raises RefusedError when a file that decides the score is not in the commit, or git would change the dataset by a filter."""
    tracked = set(git_answer(workspace.root, "ls-files", "-z").split("\0"))
    loose = sorted(path for path in locked if path not in tracked)
    if loose:
        message = f"{counted(len(loose), 'locked file')} not in git: {listed([quoted(path) for path in loose], 3)}"
        raise RefusedError(message, "commit what decides the score, so that every arm can be judged by the same", "locked_untracked")
    attribute = git_answer(workspace.root, "check-attr", "-z", "filter", "--", dataset).split("\0")[2]
    if attribute not in ("unspecified", "unset"):
        message = f"{quoted(dataset)}: git stores it through the filter {quoted(attribute)}, which is not run here"
        raise RefusedError(message, "take the file out of .gitattributes", "dataset_filtered")


def seal_level(workspace: Workspace, request: OpeningRequest, history: HistoryHits, holdout: list[Case]) -> SealLevel:
    """How well the holdout will be kept: what git knows cannot be sealed, another user's folder is, and a statement is a statement."""
    if history.cases:
        where = "stand in the history of the repository or in copies of earlier runs, where the agent can read them"
        return SealLevel("honour", f"{history.cases} of {counted(len(holdout), 'case')} {where}")
    if history.gap:
        return SealLevel("honour", f"the history of the repository could not be searched: {history.gap}")
    owner, user = os.stat(workspace.root).st_uid, os.geteuid() if hasattr(os, "geteuid") else 0
    if user != owner and 0 not in (user, owner):  # who may be root reads everything, and so may the agent
        return SealLevel("other_user", "the folder belongs to another user than the repository, and admits nobody else")
    if request.guarded:
        return SealLevel("guarded", f"stated, not verified: {'; '.join(request.guarded)}")
    return SealLevel("honour", "whoever runs the agent can read the folder; nothing but its honour keeps it from doing so")


def opening_notes(request: OpeningRequest, sides: CaseSides, contract: JsonObject) -> list[str]:
    """What a person should know before it begins."""
    notes = []
    size = len(sides.holdout)
    if sides.is_drawn:
        notes.append(f"drawn by cluster and label: {len(sides.development)} for development, {size} for the holdout")
    if size < ADVISED_HOLDOUT:
        notes.append(f"{counted(size, 'case')} in the holdout: a look can confirm large gains only; {ADVISED_HOLDOUT} or more are advised")
    if request.holdout_file:
        notes.append(f"{shown_path(request.holdout_file)} still holds the cases: keep it where no agent reads, or remove it")
    if contract["holdout"]["level"] == "honour":
        notes.append("seal level honour: an agent that looks for the holdout can read it, and Kaizen could not tell")
    return notes

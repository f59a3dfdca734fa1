"""Opening a campaign: written so that a crash between any two steps loses no case.

    1  the plan            kaizen/.kaizen/campaigns/<c>/opening.json, contract.json
    2  the sealed place    cases, contract, marks; on disk before anything is taken away
    3  the commit          contract and dataset without the holdout, as an object that nothing names yet
    4  the refs            branch and refs/kaizen/<c>/opened at once: from here on the campaign is open
    5  tree and index      brought to what the commit says
    6  the journal         its first event; then the plan is removed

What died before step 4 is taken back by the next opening: nothing had been taken from the dataset. What died
after it is finished. Hooks never run, and no path but these two is touched.
"""

import os

from kaizen.campaigns.admission import Opening, OpeningRequest, prepare_opening
from kaizen.campaigns.campaign import CONTRACT_FILE, JOURNAL_FILE, OPENED, Campaign, campaigns_folder, contract_path, load_campaign
from kaizen.campaigns.contamination import marks_text
from kaizen.campaigns.contract import contract_text
from kaizen.campaigns.sealed import (
    SEALED_CASES,
    SEALED_CONTRACT,
    SEALED_KIND,
    SEALED_LOOKS,
    SEALED_MARK,
    SEALED_MARKS,
    SEALED_RETIRED,
    sealed_case,
)
from kaizen.campaigns.splitting import question_text
from kaizen.foundation.chain import ChainLog
from kaizen.foundation.errors import KaizenError, RefusedError
from kaizen.foundation.files import (
    discard_unfinished,
    list_folder,
    make_folder,
    make_new_folder,
    read_bytes,
    refuse_writing,
    remove_folder,
    shown_path,
    sweep_unfinished,
    sync_folder,
    write_file,
)
from kaizen.foundation.jsonio import JsonObject, encode_compact, encode_readable, read_json_object, sha256_hex
from kaizen.foundation.locks import FileLock
from kaizen.foundation.text import counted
from kaizen.lab.definition import load_whole_system
from kaizen.lab.git import GitError, git_answer
from kaizen.lab.preflight import held_locks
from kaizen.lab.provenance import Checkout, git_write_obstacle, read_checkout, ref_commit
from kaizen.lab.workspace import Workspace, make_store
from kaizen.lab.worktrees import KAIZEN_REFS

PLAN_FILE, PLANNED_DATASET = "opening.json", "opening.dataset"
OPEN_LOCK = "open.lock"
SEALED_NAMES = (SEALED_CASES, SEALED_CONTRACT, SEALED_MARK, SEALED_MARKS, SEALED_LOOKS, SEALED_RETIRED)


def open_campaign(workspace: Workspace, request: OpeningRequest) -> tuple[Campaign, list[str], bool]:
    """(the opened campaign, notes, whether it is one whose opening had been cut short before).

    Raises RefusedError, InputError or UsageError; then nothing is left behind that the next opening would not tidy up.
    """
    obstacle = git_write_obstacle(read_checkout(workspace.root))
    if obstacle:
        hint = "run it outside the sandbox, once: everything after it works inside"
        raise GitError(f"opening a campaign commits its contract, and that cannot be done here: {obstacle.message}", hint, obstacle.reason)
    make_store(workspace)
    make_folder(campaigns_folder(workspace))
    system = load_whole_system(workspace, request.system)
    with FileLock(os.path.join(campaigns_folder(workspace), OPEN_LOCK), "the list of campaigns"), held_locks(workspace, system):
        finished = [each for each in settle_openings(workspace) if each.system == request.system and not each.is_closed()]
        if finished:
            note = "its opening had been cut short, and was finished now; what counts is what was asked for then"
            return finished[0], [note], True
        opening = prepare_opening(workspace, request)
        folder = os.path.join(campaigns_folder(workspace), opening.contract["campaign"])
        try:
            plan_opening(opening, folder)
            seal_opening(opening)
            commit_opening(opening)
        except KaizenError:
            settle_openings(workspace)
            raise
        return finish_opening(workspace, folder), opening.notes, False


def plan_opening(opening: Opening, folder: str) -> None:
    """Step 1. Raises RefusedError when somebody else has taken the name."""
    if not make_new_folder(folder):
        raise RefusedError(f"{shown_path(folder)}: is there already", "run the command again", "lock_held")
    body = {
        "system": opening.system.id,
        "sealed": opening.sealed,
        "made_sealed": not os.path.isdir(opening.sealed),
        "root": workspace_prefix(opening.workspace, opening.checkout),
        "dataset": opening.dataset if opening.kept is not None else None,
        "dataset_before": sha256_hex(read_bytes(opening.workspace.path(opening.dataset))),
        "history_hits": opening.history.cases,
        "holdout_key": sha256_hex("".join(sorted(question_text(case.document) for case in opening.holdout))),
    }
    if opening.kept is not None:
        write_file(os.path.join(folder, PLANNED_DATASET), opening.kept)
    write_file(os.path.join(folder, CONTRACT_FILE), contract_text(opening.contract))
    write_file(os.path.join(folder, PLAN_FILE), encode_readable(body) + "\n")
    sync_folder(folder)


def workspace_prefix(workspace: Workspace, checkout: Checkout) -> str:
    """The workspace's root relative to the repository's, '' when they are one."""
    prefix = os.path.relpath(workspace.root, checkout.root)
    return "" if prefix == "." else prefix


def seal_opening(opening: Opening) -> None:
    """Step 2: the sealed place, for nobody but this user. Raises InputError when the disk says no."""
    make_folder(opening.sealed)
    try:
        os.chmod(opening.sealed, 0o700)
    except OSError as error:
        refuse_writing(opening.sealed, error)
    lines = [encode_compact(sealed_case(case.document, opening.canary)) + "\n" for case in opening.holdout]
    text = contract_text(opening.contract)
    name, digest = opening.contract["campaign"], sha256_hex(text)
    mark = {"kind": SEALED_KIND, "version": 1, "campaign": name, "contract_sha256": digest, "canary": opening.canary}
    contents = {SEALED_CASES: "".join(lines), SEALED_MARKS: marks_text(opening.marks), SEALED_CONTRACT: text}
    for file, content in {**contents, SEALED_MARK: encode_readable(mark) + "\n"}.items():
        write_file(os.path.join(opening.sealed, file), content)
    sync_folder(opening.sealed)
    sync_folder(os.path.dirname(opening.sealed))


def commit_opening(opening: Opening) -> None:
    """Steps 3 and 4. Raises GitError, also when the branch has moved meanwhile."""
    import tempfile

    root, name = opening.checkout.root, opening.contract["campaign"]
    files = {contract_path(opening.workspace, opening.system.id, name): contract_text(opening.contract).encode()}
    if opening.kept is not None:
        files[opening.workspace.path(opening.dataset)] = opening.kept
    with tempfile.TemporaryDirectory(prefix="kaizen-index-") as folder:
        env = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
        git_answer(root, "read-tree", str(opening.checkout.head), env=env)
        for path, content in files.items():
            inner = os.path.relpath(path, root)
            blob = git_answer(root, "hash-object", "-w", "--stdin", f"--path={inner}", stdin=content).strip()
            known = git_answer(root, "ls-files", "-s", "-z", "--", f":(top,literal){inner}", env=env)
            mode = known[:6] if known else "100644"
            git_answer(root, "update-index", "--add", "--cacheinfo", f"{mode},{blob},{inner}", env=env)
        tree = git_answer(root, "write-tree", env=env).strip()
    moved = f"; {counted(len(opening.holdout), 'case')} moved to the sealed place" if opening.kept is not None else ""
    message = f"kaizen: open campaign {name} of {opening.system.id}{moved}\n"
    commit = git_answer(root, "commit-tree", tree, "-p", str(opening.checkout.head), "-F", "-", stdin=message.encode()).strip()
    orders = f"update HEAD {commit} {opening.checkout.head}\ncreate {opened_ref(name)} {commit}\n"
    git_answer(root, "update-ref", "-m", f"kaizen: open campaign {name}", "--stdin", stdin=orders.encode())


def opened_ref(campaign: str) -> str:
    """The ref that keeps the commit with which *campaign* opened."""
    return f"{KAIZEN_REFS}/{campaign}/opened"


def finish_opening(workspace: Workspace, folder: str) -> Campaign:
    """Steps 5 and 6 of the opening planned in *folder*, as often as it takes. Raises RefusedError (`dataset_edited`)."""
    name = os.path.basename(folder)
    plan = read_json_object(os.path.join(folder, PLAN_FILE))
    text = read_bytes(os.path.join(folder, CONTRACT_FILE))
    checkout = read_checkout(workspace.root)
    commit = ref_commit(checkout.root, opened_ref(name))
    journal = os.path.join(folder, JOURNAL_FILE)
    if not os.path.exists(journal):
        if checkout.head == commit:
            bring_tree(workspace, folder, plan, text)
        contract = read_json_object(os.path.join(folder, CONTRACT_FILE))
        body: JsonObject = {
            "contract_sha256": sha256_hex(text),
            "commit": commit,
            **{key: plan[key] for key in ("sealed", "root", "holdout_key", "history_hits")},
            "inherited": contract["inherited"],
            "level": contract["holdout"]["level"],
        }
        unfinished = f"{journal}.opening"
        discard_unfinished(unfinished)
        log = ChainLog(unfinished)
        log.append(OPENED, body)
        log.close()
        os.replace(unfinished, journal)
        sync_folder(folder)
    for left in (PLANNED_DATASET, PLAN_FILE):
        discard_unfinished(os.path.join(folder, left))
    return load_campaign(workspace, name)


def bring_tree(workspace: Workspace, folder: str, plan: JsonObject, text: bytes) -> None:
    """Step 5: contract and dataset as HEAD has them, in tree and index. Raises RefusedError for a dataset edited since."""
    path = contract_path(workspace, plan["system"], os.path.basename(folder))
    make_folder(os.path.dirname(path))
    sweep_unfinished(path)
    write_file(path, text)
    paths = [path]
    if plan["dataset"]:
        place, kept = workspace.path(plan["dataset"]), read_bytes(os.path.join(folder, PLANNED_DATASET))
        if sha256_hex(read_bytes(place)) not in (plan["dataset_before"], sha256_hex(kept)):
            message = f"{shown_path(place)}: was edited while {os.path.basename(folder)} was being opened"
            raise RefusedError(message, "git stash it, run the command again, then git stash pop", "dataset_edited")
        mode = os.stat(place).st_mode & 0o777
        sweep_unfinished(place)
        write_file(place, kept)
        os.chmod(place, mode)
        paths.append(place)
    asked = b"".join(os.fsencode(os.path.relpath(each, workspace.root)) + b"\0" for each in paths)
    git_answer(workspace.root, "update-index", "--add", "-z", "--stdin", stdin=asked)


def settle_openings(workspace: Workspace) -> list[Campaign]:
    """Finishes or takes back what openings that died have left; those that are finished now. For the one who holds the lock."""
    finished = []
    for name in list_folder(campaigns_folder(workspace)):
        folder = os.path.join(campaigns_folder(workspace), name)
        if not os.path.isdir(folder):
            continue
        if not os.path.exists(os.path.join(folder, PLAN_FILE)):
            if is_beginning(folder) and not ref_commit(workspace.root, opened_ref(name)):
                remove_folder(folder)
        elif ref_commit(workspace.root, opened_ref(name)):
            finished.append(finish_opening(workspace, folder))
        else:
            take_back(folder)
    return finished


def is_beginning(folder: str) -> bool:
    """True when *folder* holds nothing but what is written before the plan."""
    return all(name in (PLANNED_DATASET, CONTRACT_FILE) or name.startswith(".") for name in list_folder(folder))


def take_back(folder: str) -> None:
    """Removes what the opening planned in *folder* has written: it came to nothing, and the dataset still holds every case."""
    plan = read_json_object(os.path.join(folder, PLAN_FILE))
    sealed = str(plan["sealed"])
    if os.path.isdir(sealed):
        for name in list_folder(sealed):
            if name in SEALED_NAMES or name.startswith(".") and name.endswith(".tmp"):
                discard_unfinished(os.path.join(sealed, name))
        if plan["made_sealed"] and not list_folder(sealed):
            os.rmdir(sealed)
    remove_folder(folder)

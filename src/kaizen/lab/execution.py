"""The life of a run: planned, running, and then exactly one of six ends.

    completed    every item is measured, but for at most max(1, 2 %)
    incomplete   more are missing: not reported, or infra_error or timeout three times
    crashed      the eval ended with an error, or broke the protocol
    timed_out    no event for too long
    interrupted  stopped by a signal, or the process that was at it is gone
    tainted      the tree, HEAD or a locked file changed meanwhile

What was answered stays answered: `resume_run` asks for the rest, from the same commit and locked
files. A tainted run can only be restarted; its journals move to `attempt-N`.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import NamedTuple

from kaizen.cases.case import Case, is_holdout
from kaizen.cases.dataset import Dataset, add_cases, dataset_fingerprint, load_dataset
from kaizen.cases.evaluation_file import load_evaluation
from kaizen.cases.improvement import Improvement
from kaizen.foundation.clock import monotonic_seconds, utc_now
from kaizen.foundation.errors import Breaches, InputError, KaizenError, RefusedError
from kaizen.foundation.files import copy_file, make_folder, remove_folder, shown_path
from kaizen.foundation.git import GIT_KEPT
from kaizen.foundation.identity import version_line
from kaizen.foundation.jsonio import JsonObject, fingerprint
from kaizen.foundation.process import StopSwitch, heeding_signals, kill_marked
from kaizen.foundation.redact import environment_secrets
from kaizen.foundation.text import counted, quoted
from kaizen.lab.aggregation import aggregated
from kaizen.lab.definition import load_whole_system
from kaizen.lab.eval_runner import RUN_MARK, EvalScript
from kaizen.lab.git import GitError, git_answer
from kaizen.lab.preflight import checked_tree, held_locks
from kaizen.lab.provenance import Checkout, patch_id, tree_hash
from kaizen.lab.runfolder import run_store
from kaizen.lab.runstore import (
    BROKEN_OFF,
    CRASHED,
    DONE,
    INCOMPLETE,
    RUNNING,
    TAINTED,
    TIMED_OUT,
    Key,
    RunStore,
    RunWriter,
    run_passes,
)
from kaizen.lab.session import (
    ENDED_WELL,
    MAX_ATTEMPTS,
    AskedItem,
    ItemEvaluator,
    Limits,
    MakeEvaluator,
    RunEnd,
    RunSession,
    changed_copy,
    is_answered,
    tree_changed,
)
from kaizen.lab.system import EVAL_KIND, IMPROVEMENT_KIND, TYPED_KIND, System, locked_files
from kaizen.lab.watch import TreeWatch, Watch, content_sha256
from kaizen.lab.workspace import Workspace
from kaizen.runs.bridge import refuse_windows
from kaizen.runs.plan import trial_seed
from kaizen.runs.workers import WorkFolders


def typed_evaluator(workspace: Workspace, system: System) -> ItemEvaluator:
    """The evaluator of a typed system."""
    from kaizen.lab.typed_eval import TypedEvaluator

    return TypedEvaluator(workspace, system)


def engine_evaluator(workspace: Workspace, system: System) -> ItemEvaluator:
    """The evaluator of a system that names an improvement."""
    from kaizen.lab.engine_eval import EngineEvaluator

    return EngineEvaluator(workspace, system)


ITEM_EVALUATORS: dict[str, MakeEvaluator] = {EVAL_KIND: EvalScript, TYPED_KIND: typed_evaluator, IMPROVEMENT_KIND: engine_evaluator}
MISSING_SHARE = 0.02  # of the items of a run, and at least one, may be missing
SLOWEST_TIMES = 5  # as long as the slowest item of the best run took, nothing need be heard


class RunOptions(NamedTuple):
    """What `kaizen run --system` was asked for; *max_items* is None for all."""

    system: str
    variant: str
    title: str = ""
    description: str = ""
    hypothesis: str = ""
    is_diagnostic: bool = False
    max_items: int | None = None
    idea: str = ""
    label: str = ""
    predict: float | None = None


class RunOutcome(NamedTuple):
    """What became of a run: run.json, and what the user should know besides."""

    document: JsonObject
    notes: list[str]


class ItemSet(NamedTuple):
    """The items of a system in order, without those of the holdout, which are counted; the fingerprint is that of all."""

    cases: dict[str, Case]
    fingerprint: str
    holdout: int


# --- What a run is made from -----------------------------------------------------------


def load_items(workspace: Workspace, system: System) -> ItemSet:
    """The items of *system*: the cases of its dataset or of its improvement. Raises BreachesError, or InputError for none."""
    breaches = Breaches()
    if system.improvement:
        improvement = Improvement(workspace.path(system.improvement))
        evaluation = load_evaluation(improvement, breaches)
        dataset = load_dataset(improvement, evaluation.include if evaluation else [], breaches)
    else:
        cases: dict[str, Case] = {}
        add_cases(workspace.path(system.dataset), cases, breaches)
        holdout = frozenset(name for name, case in cases.items() if is_holdout(case.document))
        dataset = Dataset(cases, dataset_fingerprint(cases), False, holdout)
    breaches.raise_if_any()
    kept = {name: case for name, case in dataset.cases.items() if name not in dataset.holdout}
    if not kept:
        place = shown_path(workspace.path(system.improvement or system.dataset))
        hint = 'write one a line: {"id": "…", "input": …, "expected": …}'
        raise InputError(f"{place}: holds no item outside the holdout", hint, "no_items")
    return ItemSet(kept, dataset.fingerprint, len(dataset.holdout))


def locked_hashes(workspace: Workspace, system: System) -> dict[str, str]:
    """{path relative to the root: SHA-256 in hexadecimal} of the locked files as they are in the tree."""
    return {path: content_sha256(workspace.path(path)) for path in locked_files(workspace, system)}


def item_seed(seed: int, item: str, trial: int, pass_number: int) -> int:
    """The seed of one answer, in 0..2^31-1; it depends on nothing else, so all variants get the same."""
    return trial_seed(seed, item if pass_number == 1 else f"{item}\n{pass_number}", trial)


def scoring_hashes(system: System, dataset: str, locked: dict[str, str]) -> dict[str, str]:
    """{dataset, eval, system}: runs in which one of these differs are not comparable; *dataset* is its fingerprint."""
    return {
        "dataset": dataset,
        "eval": fingerprint([["python" if word == sys.executable else word for word in system.command], locked]),
        "system": fingerprint(system.metric._asdict()),  # with the range and the worst score, which failures get
    }


def run_document(
    workspace: Workspace, system: System, options: RunOptions, checkout: Checkout, items: ItemSet, evaluator: ItemEvaluator
) -> JsonObject:
    """run.json of the planned run, without what the store adds."""
    locked = locked_hashes(workspace, system)
    selected = list(items.cases)[: options.max_items]
    return {
        "system": system.id,
        **({"improvement": system.improvement} if system.improvement else {}),
        "variant": options.variant,
        "title": options.title,
        "description": options.description,
        "hypothesis": options.hypothesis,
        "diagnostic": options.is_diagnostic,
        "limited": len(selected) < len(items.cases),
        "max_items": options.max_items,
        "commit": {"hash": checkout.head, "branch": checkout.branch, "is_detached": checkout.is_detached},
        "tree": tree_hash(checkout),
        "patch_id": None,
        "hashes": {**scoring_hashes(system, items.fingerprint, locked), "locked": locked},
        "population": {"dataset_size": len(items.cases), "selected_item_ids": selected},
        "passes": 1,
        "seed": workspace.config["seed"],
        "created_at": utc_now(),
        "metric": system.metric.document(),
        "verdict": "unjudged",
        "separation": evaluator.separation or "not_stated",
        "engine": version_line(),
        "mark": os.urandom(12).hex(),
    }


def copy_locked(workspace: Workspace, writer: RunWriter) -> None:
    """Makes the locked copy of the run anew. Raises RefusedError when a locked file is not the one that the run was planned with."""
    folder = writer.locked_folder()
    if os.path.isdir(folder):
        remove_folder(folder)
    for path, digest in writer.document()["hashes"]["locked"].items():
        target = os.path.join(folder, path)
        make_folder(os.path.dirname(target))
        if copy_file(workspace.path(path), target)[0] != digest:
            raise other_locked(path)


def other_locked(path: str) -> RefusedError:
    """The refusal to go on with other locked files than the run began with."""
    return RefusedError(
        f"the locked file {quoted(path)} is not the one this run began with",
        "put it back, or start another run",
        "locked_changed",
    )


# --- Beginning, and going on -----------------------------------------------------------


def start_run(workspace: Workspace, options: RunOptions) -> RunOutcome:
    """Records and executes a new run of the commit at hand. Raises RefusedError when the preflight forbids it: nothing is recorded then."""
    refuse_windows()
    system = load_whole_system(workspace, options.system)
    store = run_store(workspace)
    with held_locks(workspace, system):
        checkout = checked_tree(workspace)
        items = load_items(workspace, system)
        evaluator = ITEM_EVALUATORS[system.kind](workspace, system)
        document = run_document(workspace, system, options, checkout, items, evaluator)
        document["patch_id"], patch = patch_since_best(store, system, checkout)
        run = store.create(document)
        with store.writing(run) as writer:
            writer.event("planned", commit=checkout.head, tree=document["tree"])
            if patch:
                writer.keep_patch(patch)
            return execute(workspace, system, checkout, items, evaluator, store, writer)


def patch_since_best(store: RunStore, system: System, checkout: Checkout) -> tuple[str | None, str]:
    """(patch id, patch) of what HEAD changes since the commit of the system's best run; (None, '') when that is not known."""
    try:
        base = str(store.read(system.best_run)["commit"]["hash"]) if system.best_run else ""
    except InputError:
        return None, ""
    return patch_since(checkout, base)


def patch_since(checkout: Checkout, base: str) -> tuple[str | None, str]:
    """(patch id, patch) of what HEAD changes since the commit *base*; (None, '') when that is not known."""
    try:
        if not base:
            return None, ""
        return patch_id(checkout, base), git_answer(checkout.root, "diff", "--no-ext-diff", "--no-textconv", base, str(checkout.head))
    except GitError:
        return None, ""


def resume_run(workspace: Workspace, run: str, is_restart: bool) -> RunOutcome:
    """Goes on with a run that did not complete, or begins it anew. Raises RefusedError when the state or the tree forbids it."""
    refuse_windows()
    store = run_store(workspace)
    before = store.read(run)
    refuse_state(before, is_restart)
    system = load_whole_system(workspace, before["system"])
    with held_locks(workspace, system):
        checkout = checked_tree(workspace)
        if checkout.head != before["commit"]["hash"]:
            raise RefusedError(
                f"{run} was made from commit {str(before['commit']['hash'])[:12]}, and HEAD is {str(checkout.head)[:12]}",
                f"check that commit out, here or in a worktree: git switch --detach {str(before['commit']['hash'])[:12]}",
                "other_commit",
            )
        items = load_items(workspace, system)
        if set(before["population"]["selected_item_ids"]) - items.cases.keys() or items.fingerprint != before["hashes"]["dataset"]:
            raise other_locked(system.dataset or system.improvement)
        evaluator = ITEM_EVALUATORS[system.kind](workspace, system)
        if is_restart:
            store.restart(run)
        with store.writing(run) as writer:
            writer.event("resumed", after=before["state"], restart=is_restart, mended=writer.notes)
            kill_marked(RUN_MARK + b"=" + str(before["mark"]).encode())  # an eval that outlived its engine
            has_new_chance = before["state"] in (INCOMPLETE, TIMED_OUT)
            return execute(workspace, system, checkout, items, evaluator, store, writer, has_new_chance)


def refuse_state(document: JsonObject, is_restart: bool) -> None:
    """Raises RefusedError unless a run of this state can be gone on with, or begun anew."""
    run, state = document["id"], document["state"]
    if state == DONE:
        raise RefusedError(f"{run} is completed; asking again until the score is right is no measurement", "start another run", "completed")
    if state not in (BROKEN_OFF, TAINTED, INCOMPLETE, TIMED_OUT, CRASHED):
        raise RefusedError(f"{run} is {state}", "wait until it has ended", "lock_held")
    if state == TAINTED and not is_restart:
        hint = f"begin it anew from its commit: kaizen resume {run} --restart"
        raise RefusedError(f"{run} is tainted: what it measured was not one commit", hint, "tainted")


# --- One session -----------------------------------------------------------------------


def execute(
    workspace: Workspace,
    system: System,
    checkout: Checkout,
    items: ItemSet,
    evaluator: ItemEvaluator,
    store: RunStore,
    writer: RunWriter,
    has_new_chance: bool = False,
) -> RunOutcome:
    """Asks for what is missing of the run that *writer* holds, and records how that ended."""
    copy_locked(workspace, writer)
    locked = writer.document()["hashes"]["locked"]
    watch = TreeWatch(checkout, {workspace.path(path): digest for path, digest in locked.items()})
    with open_session(Place(workspace, workspace.root, watch), system, store, writer, run_limits(workspace, system, store)) as session:
        end = ask_rounds(session, evaluator, planned_items(writer.document(), items), has_new_chance)
    finish_run(session, end, evaluator)
    return RunOutcome(writer.document(), run_notes(writer, items))


class Place(NamedTuple):
    """Where a run takes place: the workspace whose locked files judge, the tree in which the variant works, the watch over that."""

    judge: Workspace
    tree: str
    watch: Watch


@contextmanager
def open_session(place: Place, system: System, store: RunStore, writer: RunWriter, limits: Limits) -> Iterator[RunSession]:
    """While the block runs, a session of the run that *writer* holds and whose locked copy is made; signals are heeded."""
    document, secrets = writer.document(), environment_secrets(os.environ)
    with WorkFolders() as folders, closing(StopSwitch()) as stop, heeding_signals(stop):
        environment = run_environment(document, folders.make())
        session = RunSession(place.judge, system, writer, place.watch, stop, limits, environment, secrets, place.tree)
        session.go_on_from(store.items(document["id"]))
        writer.update(state=RUNNING, started_at=document.get("started_at") or utc_now(), pid={"pid": os.getpid(), "started": utc_now()})
        writer.event("started", attempt=document["attempt"], answered=sum(map(is_answered, session.last.values())))
        try:
            yield session
        finally:
            session.close()


def run_environment(document: JsonObject, folder: str) -> dict[bytes, bytes]:
    """The environment of whoever answers: the caller's without what points git elsewhere, a temporary folder, what run this is."""
    kept = {name: value for name, value in os.environb.items() if not name.startswith(b"GIT_") or os.fsdecode(name).startswith(GIT_KEPT)}
    given = {
        "KAIZEN_RUN": document["id"],
        "KAIZEN_SYSTEM": document["system"],
        "KAIZEN_VARIANT": document["variant"],
        "KAIZEN_WORKDIR": folder,
        "TMPDIR": folder,
        "PYTHONDONTWRITEBYTECODE": "1",  # a cache beside the variant's files would change its tree
    }
    return {**kept, **{name.encode(): os.fsencode(value) for name, value in given.items()}, RUN_MARK: str(document["mark"]).encode()}


def run_limits(workspace: Workspace, system: System, store: RunStore) -> Limits:
    """The limits of config.json; silence may last five times as long as the slowest item of the system's best run took."""
    config, slowest = workspace.config, 0.0
    if system.best_run:
        with suppress(KaizenError):  # a best run that is not there, or cannot be read, asks for no more patience
            slowest = max((line["latency_ms"] or 0.0 for line in store.items(system.best_run)), default=0.0) / 1000
    return Limits(max(config["silence_seconds"], SLOWEST_TIMES * slowest), config["run_timeout_seconds"], config["item_timeout_seconds"])


def planned_items(document: JsonObject, items: ItemSet) -> Iterator[AskedItem]:
    """Every answer that the run asks for, in order, as its first attempt."""
    for pass_number in run_passes(document):
        for name in document["population"]["selected_item_ids"]:
            yield AskedItem(name, 1, pass_number, item_seed(document["seed"], name, 1, pass_number), 1, items.cases[name])


def ask_rounds(session: RunSession, evaluator: ItemEvaluator, wanted: Iterable[AskedItem], has_new_chance: bool) -> RunEnd:
    """Asks for what is missing of *wanted*, and again for what ended in infra_error or timeout; how the last round ended."""
    planned = list(wanted)
    spent = {key: 0 if has_new_chance else line["attempt"] for key, line in session.last.items()}
    silent: set[Key] = set()
    end = tree_changed("the work tree changed before anything was asked") if session.watch.before else ENDED_WELL
    while not end.state:
        asked = [
            each._replace(attempt=spent.get(each.key(), 0) + 1)
            for each in planned
            if not is_answered(session.last.get(each.key())) and spent.get(each.key(), 0) < MAX_ATTEMPTS and each.key() not in silent
        ]
        if not asked:
            break
        session.begin(asked)
        end = evaluator.answer(asked, session)
        silent |= session.open
        spent.update((key, each.attempt) for key, each in session.asked.items() if key not in session.open)
    changed = (session.watch.changed(is_last=True) or changed_copy(session)) if end.state != TAINTED else None
    return tree_changed(changed) if changed else end


def so_far(session: RunSession, evaluator: ItemEvaluator) -> JsonObject:
    """What a session adds to the run besides its answers."""
    document = session.writer.document()
    return {
        "seconds": round((document.get("seconds") or 0.0) + monotonic_seconds() - session.started, 3),
        "metrics": {**(document.get("metrics") or {}), **session.metrics},
        "separation": evaluator.separation or session.separation or document["separation"],
    }


def keep_so_far(session: RunSession, evaluator: ItemEvaluator) -> None:
    """Records what the session added, where the run goes on in another one."""
    session.writer.update(**so_far(session, evaluator))


def finish_run(session: RunSession, end: RunEnd, evaluator: ItemEvaluator) -> None:
    """Counts what there is, and records the end."""
    writer, document = session.writer, session.writer.document()
    lines = [session.last.get((name, 1, number)) for number in run_passes(document) for name in document["population"]["selected_item_ids"]]
    statuses = [line["status"] if line else "missing" for line in lines]
    counts = {status: statuses.count(status) for status in ("ok", "fail_error", "infra_error", "timeout", "missing")}
    answered = [line for line in lines if line is not None and is_answered(line)]
    missing = len(lines) - len(answered)
    if not end.state:
        message = f"{missing:,} of {counted(len(lines), 'item')} missing"
        is_whole = bool(answered) and missing <= max(1, MISSING_SHARE * len(lines))
        end = RunEnd(DONE, "", "") if is_whole else RunEnd(INCOMPLETE, "too_many_missing", message)
    seal = writer.sealed_items()
    if seal is None:
        end, seal = RunEnd(TAINTED, "journal_changed", "somebody else wrote into the answers of this run"), {"lines": 0, "sha256": ""}
    writer.finish(
        end.state,
        reason=end.reason or None,
        message=end.message,
        ended_at=utc_now(),
        **so_far(session, evaluator),
        counts=counts,
        result=aggregated(answered, session.system.metric, len(lines)),
        cost_usd=session.cost(),
        items=seal,
    )


def run_notes(writer: RunWriter, items: ItemSet) -> list[str]:
    """What the user should know besides the result."""
    held_back = [f"{counted(items.holdout, 'item')} of the holdout left out"] if items.holdout else []
    printed = [f"what the eval printed: {writer.shown('err.log')}"] if writer.document()["state"] == CRASHED else []
    return [*writer.notes, *held_back, *printed]

"""Passes of the arms of a comparison, interleaved, each arm a run of its own; resumable.

    pass 1  candidate, leader        pass 2  leader, candidate        pass 3  candidate, leader …

Both get the same items in the same order and the same seeds. What judges is the locked copy of the
campaign's opening; each pass works in a fresh export of the arm's commit. Whoever is killed in
between calls the same command again: answers that are there stay, and nothing is asked twice.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from kaizen.campaigns.arms import discard_export, exported, judge_of
from kaizen.campaigns.campaign import Campaign, record, refuse_closed
from kaizen.campaigns.splitting import cluster_names
from kaizen.campaigns.state import CampaignState, campaign_state, run_terms
from kaizen.foundation.errors import InputError, Interrupted, RefusedError
from kaizen.foundation.jsonio import JsonObject, fingerprint
from kaizen.foundation.locks import FileLock
from kaizen.foundation.process import kill_marked
from kaizen.lab.eval_runner import RUN_MARK
from kaizen.lab.execution import (
    ITEM_EVALUATORS,
    ItemSet,
    Place,
    RunOptions,
    ask_rounds,
    copy_locked,
    finish_run,
    keep_so_far,
    load_items,
    open_session,
    planned_items,
    run_document,
    run_limits,
)
from kaizen.lab.pairing import pair_value
from kaizen.lab.preflight import refuse_signs, take_slot
from kaizen.lab.provenance import Checkout, patch_id, read_checkout
from kaizen.lab.reading import answered_lines
from kaizen.lab.runfolder import run_store
from kaizen.lab.runstore import (
    BROKEN_OFF,
    DONE,
    INCOMPLETE,
    PLANNED,
    RUNNING,
    TAINTED,
    TIMED_OUT,
    RunStore,
    RunWriter,
    run_passes,
)
from kaizen.lab.session import ENDED_WELL, MAX_ATTEMPTS, ItemEvaluator, Limits, final_answers, is_answered
from kaizen.lab.system import COUNT_AGGREGATIONS, System
from kaizen.lab.watch import Watch
from kaizen.lab.workspace import Workspace, make_store
from kaizen.runs.bridge import refuse_windows
from kaizen.runs.workers import WorkFolders
from kaizen.stats.paired_runs import Difference, Scores, paired_difference

BASELINE_RUN, DIAGNOSTIC_RUN, NOISE_RUN, SCREENING, LABEL_RUN, REPLICATE_RUN, LOOK_RUN = (
    *("baseline", "diagnostic", "noise", "screen", "label", "replicate", "look"),
)
MEASURE_LOCK = "measuring.lock"
INTEGRITY = "integrity"


class Arm(NamedTuple):
    """One side of a comparison: what it is in it, the variant's name and its commit."""

    role: str
    variant: str
    commit: str


class Measure(NamedTuple):
    """What is measured: its purpose, what makes it the same one when it is gone on with, items in order, the first pass, idea and label."""

    purpose: str
    key: str
    items: tuple[str, ...]
    first: int = 1
    idea: str = ""
    label: str = ""


class Bench(NamedTuple):
    """What measuring needs. `judge`, `system` and `items` are those of the opening; `is_recorded`: the journal tells of its runs."""

    workspace: Workspace
    campaign: Campaign
    checkout: Checkout
    store: RunStore
    judge: Workspace
    system: System
    items: ItemSet
    limits: Limits
    folders: WorkFolders
    is_recorded: bool = True

    def state(self) -> CampaignState:
        """Where the campaign stands now."""
        return campaign_state(self.campaign)

    def clusters(self) -> dict[str, str]:
        """{item: what it belongs to}: its cluster, or its question."""
        return cluster_names(self.items.cases.values())

    def tagged(self, label: str) -> tuple[str, ...]:
        """The items with the tag *label*, in the campaign's order."""
        return tuple(name for name in self.order() if label in (self.items.cases[name].document.get("tags") or ()))

    def order(self) -> tuple[str, ...]:
        """All items in the order that the campaign's seed gives them: blind to what they are."""
        seed = self.campaign.contract["seed"]
        return tuple(sorted(self.items.cases, key=lambda name: fingerprint([seed, name])))


def holding_campaign(held: ExitStack, workspace: Workspace, campaign: Campaign) -> None:
    """Makes this process the only one that measures for *campaign*, in one of its slots, as long as *held*. Raises RefusedError."""
    refuse_windows()
    refuse_closed(campaign)
    make_store(workspace)
    refuse_signs(workspace)
    held.enter_context(FileLock(campaign.file(MEASURE_LOCK), campaign.id))
    take_slot(held, workspace.store_folder, int(campaign.contract["slots"]))


@contextmanager
def open_bench(
    workspace: Workspace, campaign: Campaign, store_folder: str = "", others: Mapping[str, bytes] | None = None
) -> Iterator[Bench]:
    """While the block runs, this process alone measures for *campaign*.

    A *store_folder* other than the workspace's takes the runs, of which the journal then does not tell, and what judges, with *others* in
    place of locked files. Raises RefusedError: lock_held, no_free_slot, paused, stopped, campaign_closed, locked_changed.
    """
    with ExitStack() as held:
        holding_campaign(held, workspace, campaign)
        folders = held.enter_context(WorkFolders())
        yield make_bench(workspace, campaign, read_checkout(workspace.root), folders, store_folder, others or {})


def make_bench(
    workspace: Workspace,
    campaign: Campaign,
    checkout: Checkout,
    folders: WorkFolders,
    store_folder: str = "",
    others: Mapping[str, bytes] | None = None,
) -> Bench:
    """The bench of *campaign* for who holds it; as `open_bench`."""
    place = os.path.join(store_folder, "judge") if store_folder else folders.make()
    if store_folder:
        make_store(workspace._replace(store_folder=store_folder))
        discard_export(place)
    judge, system = judge_of(workspace, checkout, campaign, place, others or {})
    stored = campaign_state(campaign).stored
    limits = run_limits(workspace, system._replace(best_run=stored[-1] if stored else ""), run_store(workspace))
    judge = judge._replace(store_folder=store_folder or workspace.store_folder)
    items = load_items(judge, system)
    return Bench(workspace, campaign, checkout, run_store(judge), judge, system, items, limits, folders, not store_folder)


# --- Runs ------------------------------------------------------------------------------


def campaign_fields(campaign: Campaign, measure: Measure) -> JsonObject:
    """What run.json says of the campaign. `range`: least and greatest score, None where one has no bound."""
    metric = campaign.contract["metric"]
    limits = [metric.get("minimum"), metric.get("maximum")]
    found: JsonObject = {"id": campaign.id, "epoch": campaign.contract["epoch"], "purpose": measure.purpose, "measure": measure.key}
    return {**found, "idea": measure.idea, "label": measure.label, "pass_from": measure.first, "range": None if None in limits else limits}


def measure_seed(campaign: Campaign, measure: Measure) -> int:
    """The seed of a measurement, in 0..2^31-1: the same for its arms, another than that of every other one."""
    return int(fingerprint([campaign.contract["seed"], measure.key, measure.first]).removeprefix("sha256:")[:8], 16) >> 1


def arm_document(bench: Bench, arm: Arm, measure: Measure, evaluator: ItemEvaluator, base: str) -> JsonObject:
    """run.json of the planned run of *arm*; its patch is that since the commit *base*."""
    checkout = bench.checkout._replace(head=arm.commit, branch=None, is_detached=True)
    document = run_document(bench.judge, bench.system, RunOptions(bench.system.id, arm.variant), checkout, bench.items, evaluator)
    return {
        **document,
        "limited": len(measure.items) < len(bench.items.cases),
        "population": {**document["population"], "selected_item_ids": list(measure.items)},
        "patch_id": None if arm.commit == base else patch_id(checkout, base),
        "passes": 1,
        "seed": measure_seed(bench.campaign, measure),
        "campaign": campaign_fields(bench.campaign, measure),
    }


def found_run(bench: Bench, arm: Arm, measure: Measure) -> str:
    """The run of *arm* in *measure* that is there already, also one that was made and not told of before a crash; '' for none."""
    started = [event["body"] for event in bench.campaign.events if event["type"] == "run_started"] if bench.is_recorded else []
    told = {str(body["run"]): body for body in started}
    for run in reversed(bench.store.ids()):
        body = told.get(run)
        if body is not None and (body["purpose"], body["commit"]) != (measure.purpose, arm.commit):
            continue
        document = bench.store.read(run)
        own = document.get("campaign", {})
        is_same = (own.get("id"), own.get("measure"), own.get("pass_from")) == (bench.campaign.id, measure.key, measure.first)
        if is_same and (document["commit"]["hash"], document["variant"]) == (arm.commit, arm.variant):
            return run
    return ""


def tell_start(campaign: Campaign, document: JsonObject) -> None:
    """Records that the run of *document* began, unless the journal of *campaign* says so."""
    if all(event["body"].get("run") != document["id"] for event in campaign.events if event["type"] == "run_started"):
        own = document["campaign"]
        body = {"run": document["id"], "purpose": own["purpose"], "variant": document["variant"], "idea": own["idea"]}
        record(campaign, "run_started", **body, commit=document["commit"]["hash"], tree=document["tree"], patch_id=document.get("patch_id"))


def tell_end(campaign: Campaign, document: JsonObject) -> None:
    """Records how the run of *document* ended, unless the last of its ends is told of with these answers."""
    ends = [event["body"] for event in campaign.events if event["type"] == "run_ended" and event["body"]["run"] == document["id"]]
    own = {"purpose": document["campaign"]["purpose"], "variant": document["variant"], "state": document["state"]}
    evaluations = int(document["items"]["lines"]) - sum(each["evaluations"] for each in ends)
    cost = document["cost_usd"]
    before = [each["cost_usd"] for each in ends]
    cost = None if cost is None or None in before else max(0.0, cost - sum(before))
    seconds = round(max(0.0, document["seconds"] - sum(each["seconds"] for each in ends)), 3)
    found = {**own, "items": document["items"], "terms": terms_of(document)}
    if not ends or any(ends[-1][key] != value for key, value in found.items()):
        told = {**found, "reason": document["reason"], "evaluations": max(0, evaluations)}
        record(campaign, "run_ended", run=document["id"], **told, cost_usd=cost, seconds=seconds)


def terms_of(document: JsonObject) -> str:
    """The fingerprint of what of the run *document* makes scores of its answers."""
    return fingerprint([document[name] for name in ("commit", "metric", "passes", "population", "campaign")])


class ArmRun:
    """The run of one arm, held by this process."""

    def __init__(self, bench: Bench, arm: Arm, run: str, writer: RunWriter, evaluator: ItemEvaluator) -> None:
        self.bench, self.arm, self.run, self.writer, self.evaluator = bench, arm, run, writer, evaluator
        state = writer.document()["state"]
        self.has_new_chance = state in (INCOMPLETE, TIMED_OUT)
        self.end = ENDED_WELL
        if state == PLANNED:
            writer.event("planned", commit=arm.commit, tree=writer.document()["tree"])
        elif state != DONE:
            writer.event("resumed", after=state, restart=False, mended=writer.notes)
            kill_marked(RUN_MARK + b"=" + str(writer.document()["mark"]).encode())

    def is_done(self) -> bool:
        """True when the run is completed."""
        return str(self.writer.document()["state"]) == DONE

    def missing(self, number: int) -> bool:
        """True when something can still be asked for in pass *number*."""
        answers = final_answers(self.bench.store.items(self.run))
        spent = 0 if self.has_new_chance else MAX_ATTEMPTS
        keys = [each.key() for each in planned_items(self.writer.document(), self.bench.items) if each.pass_number == number]
        lines = [answers.get(key) for key in keys]
        return any(not is_answered(line) and (line is None or not spent or line["attempt"] < spent) for line in lines)

    def measure(self, number: int) -> None:
        """Has pass *number* answered in a fresh export."""
        bench = self.bench
        if not self.missing(number):
            return
        with exported(bench.workspace, bench.checkout, self.arm.commit, bench.system, bench.folders) as (root, export):
            copy_locked(bench.judge, self.writer)
            with open_session(Place(bench.judge, root, export), bench.system, bench.store, self.writer, bench.limits) as session:
                wanted = [each for each in planned_items(self.writer.document(), bench.items) if each.pass_number == number]
                self.end = ask_rounds(session, self.evaluator, wanted, self.has_new_chance)
                if self.end.state:
                    finish_run(session, self.end, self.evaluator)
                else:
                    keep_so_far(session, self.evaluator)

    def finish(self) -> None:
        """Records the end of the run, once."""
        if self.is_done() or self.end.state:
            return
        bench = self.bench
        with open_session(Place(bench.judge, bench.judge.root, Watch()), bench.system, bench.store, self.writer, bench.limits) as session:
            finish_run(session, self.end, self.evaluator)


class ArmRuns:
    """The runs of the arms of one measurement."""

    def __init__(self, bench: Bench, measure: Measure, runs: list[ArmRun]) -> None:
        self.bench, self.of, self.runs = bench, measure, runs

    def measure(self, passes: int) -> bool:
        """Whether the first *passes* passes of all arms went well, ABBA; what ended otherwise ends them all.

        Raises Interrupted, and RefusedError (paused, stopped) between two passes: the same call then goes on.
        """
        for run in self.runs:
            if not run.is_done() and run.writer.document()["passes"] < passes:
                run.writer.update(state=RUNNING, passes=passes)
        for number in range(self.of.first, self.of.first + passes):
            for run in self.runs if (number - self.of.first) % 2 == 0 else self.runs[::-1]:
                if run.is_done():
                    continue
                refuse_signs(self.bench.workspace)
                run.measure(number)
                if run.end.state == BROKEN_OFF:
                    raise Interrupted("stopped by a signal; the same command goes on from here")
                if run.end.state:
                    return False
        return True

    def finish(self) -> list[str]:
        """The states in which the runs ended, which are recorded."""
        for run in self.runs:
            run.finish()
            if self.bench.is_recorded:
                tell_end(self.bench.campaign, run.writer.document())
        return [str(run.writer.document()["state"]) for run in self.runs]

    def scores(self, role: str, passes: "int | None" = None) -> dict[str, list[float]]:
        """The scores of the arm *role* in the first *passes* passes."""
        return arm_scores(self.bench.store, self.ids()[role], passes)

    def ids(self) -> dict[str, str]:
        """{role: run}."""
        return {each.arm.role: each.run for each in self.runs}


@contextmanager
def arm_runs(bench: Bench, arms: Sequence[Arm], measure: Measure, base: str = "") -> Iterator[ArmRuns]:
    """While the block runs, the runs of *arms*, made or found again; patches are those since the commit *base*."""
    with ExitStack() as held:
        runs = []
        for arm in arms:
            evaluator = ITEM_EVALUATORS[bench.system.kind](bench.judge, bench.system)
            run = found_run(bench, arm, measure) or bench.store.create(arm_document(bench, arm, measure, evaluator, base or arm.commit))
            document = bench.store.read(run)
            if document["state"] == TAINTED:
                bench.store.restart(run)
            if bench.is_recorded:
                tell_start(bench.campaign, document)
            runs.append(ArmRun(bench, arm, run, held.enter_context(bench.store.writing(run)), evaluator))
        yield ArmRuns(bench, measure, runs)


# --- Scores ----------------------------------------------------------------------------


def scaled_score(line: JsonObject, document: JsonObject) -> float | None:
    """The score of an answer of the run of *document*: more is better, and 0 to 1 where the metric has a range; None without one.

    Where counts are what counts, 1 without a mistake and 0 with one.
    """
    metric, limits = document["metric"], document["campaign"]["range"]
    value = pair_value(line, metric["name"], metric["aggregation"]) if is_answered(line) else None
    if value is None or metric["aggregation"] in COUNT_AGGREGATIONS:
        return value
    is_lower = metric["direction"] == "lower"
    low, high = limits or ((0.0, 0.0) if is_lower else (0.0, 1.0))
    return (high - value if is_lower else value - low) / ((high - low) or 1.0)


def arm_scores(store: RunStore, run: str, passes: int | None = None) -> dict[str, list[float]]:
    """{item: its score in each pass} of *run*, of its first *passes*, as `scaled_score`; an item without a measurement is left out."""
    document = store.read(run)
    numbers = run_passes(document)[:passes]
    found: dict[str, list[tuple[int, float]]] = {}
    for line in answered_lines(store, document):
        score = scaled_score(line, document)
        if score is not None and line["pass"] in numbers:
            found.setdefault(line["item"], []).append((line["pass"], score))
    return {item: [score for _, score in sorted(scores)] for item, scores in found.items()}


def merged_scores(store: RunStore, runs: Sequence[str]) -> dict[str, list[float]]:
    """The scores of several runs of one version, put together."""
    found: dict[str, list[float]] = {}
    for run in runs:
        for item, scores in arm_scores(store, run).items():
            found.setdefault(item, []).extend(scores)
    return found


def passes_of(store: RunStore, runs: Sequence[str]) -> int:
    """How many passes *runs* have together."""
    return sum(int(store.read(run)["passes"]) for run in runs)


def scaled_effect(contract: JsonObject) -> float:
    """The smallest effect wanted, as a share of the range of the score where there is one."""
    metric = contract["metric"]
    width = 1.0 if None in (metric.get("minimum"), metric.get("maximum")) else metric["maximum"] - metric["minimum"]
    return float(contract["min_effect"]) / width


def difference_of(
    state: CampaignState, clusters: Mapping[str, str], candidate: Scores, leader: Scores, passes: tuple[int, int]
) -> Difference:
    """How *candidate* differs from *leader*, with what is known of whole passes."""
    variance, count = run_terms(state)
    return paired_difference(candidate, leader, clusters, variance, passes, count)


def only(scores: Scores, items: Sequence[str]) -> dict[str, Sequence[float]]:
    """*scores* of *items* alone."""
    return {item: scores[item] for item in items if item in scores}


# --- Integrity and budget --------------------------------------------------------------


def report_integrity(campaign: Campaign, kind: str, message: str, **more: object) -> None:
    """Records a breach of integrity, once."""
    body = {"kind": kind, "message": message, **more}
    if all(event["body"] != body for event in campaign.events if event["type"] == INTEGRITY):
        record(campaign, INTEGRITY, **body)


def check_recorded(campaign: Campaign, store: RunStore, runs: Sequence[str]) -> None:
    """Raises RefusedError (`integrity`), and records it, unless each of *runs* is there with the answers that the journal knows."""
    ends = {event["body"]["run"]: event["body"] for event in campaign.events if event["type"] == "run_ended"}
    for run in runs:
        try:
            document, items = store.read(run), ends[run]["items"]
            is_same = document.get("items") == items and sum(1 for _ in store.items(run)) == items["lines"]
            is_same = is_same and ends[run]["terms"] == terms_of(document)
        except (InputError, RefusedError, KeyError):
            is_same = False
        if not is_same:
            message = f"the run {run}, on which a verdict rests, is gone or has other answers than when it ended"
            report_integrity(campaign, "run_changed", message)
            raise RefusedError(message, "put back what Kaizen wrote in its folder; then a person decides", INTEGRITY)


def refuse_spent(campaign: Campaign, state: CampaignState, evaluations: int, variants: int = 0) -> None:
    """Raises RefusedError (`budget_spent`) when so many *evaluations* and new *variants* more are beyond what the contract allows."""
    spent, limits = state.spent(), campaign.contract["budget"]
    share = evaluations / spent.evaluations if spent.evaluations else 0.0
    forecast = {
        "variants": (spent.variants, variants),
        "evaluations": (spent.evaluations, evaluations),
        "usd": (spent.usd or 0.0, (spent.usd or 0.0) * share),
        "hours": (spent.hours, spent.hours * share),
    }
    for name, (used, more) in forecast.items():
        limit = limits.get(name)
        if limit is not None and more and (used + more > limit or used >= limit):
            message = f"the budget of {campaign.id} is spent: {used:.6g} of {limit:.6g} {name} are used, and {more:.4g} more are needed"
            raise RefusedError(message, "close the campaign with: kaizen campaign close", "budget_spent")

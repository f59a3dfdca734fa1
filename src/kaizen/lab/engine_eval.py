"""The engine as the eval of a system that names an improvement, and its evidence.

A run is `kaizen run` and `kaizen evaluate` of the cases, all but those of the holdout: cases,
evaluation.json and what they name come from the locked copy, the runner works in the variant's
tree. The run's id is the name of the stage, whose files lie beside the journals of the run:

    runs/r0042/r0042.jsonl  r0042.meta.json  r0042.evaluated.jsonl  r0042.evaluated.meta.json

The improvement folder stays as it is. An item is a case; its score is 1 or 0 by the outcome
(metric pass_rate), or the score of the trial (metric score). A trial that is neither pass nor
fail is missing, also when the agent crashed.
"""

import os
import re

from kaizen.cases.dataset import Dataset, dataset_fingerprint, load_dataset
from kaizen.cases.evaluation_file import Evaluation, load_evaluation
from kaizen.cases.improvement import RUN_PREFIX, Improvement
from kaizen.evaluators.outside import OUTSIDE_TYPES
from kaizen.evaluators.stage_results import RESULTS, evaluate_stage
from kaizen.evaluators.suite import Suite, build_suite
from kaizen.foundation.clock import monotonic_seconds
from kaizen.foundation.errors import Breaches, InputError, RefusedError, UsageError
from kaizen.foundation.jsonio import JsonObject, read_json_lines
from kaizen.foundation.text import listed, quoted, visible
from kaizen.lab.runfolder import run_store
from kaizen.lab.runstore import BROKEN_OFF, CRASHED, PLANNED, RUNNING, TAINTED, RunStore, run_passes
from kaizen.lab.session import ENDED_WELL, AskedItem, EvalFault, ItemEvaluator, RunEnd, RunSession
from kaizen.lab.system import COUNT_AGGREGATIONS, System
from kaizen.lab.typed_eval import AskingEnded, refuse_changed_copy
from kaizen.lab.workspace import Workspace, find_workspace
from kaizen.runs.bridge import RunRequest, run_stage
from kaizen.runs.journal import ONLY_ERRORS, REFUSE, STAGE_META, read_stage_meta

ENGINE = "engine"
PASS_RATE, TRIAL_SCORE = "pass_rate", "score"
STAGE_OF_RUN = re.compile(r"(r[0-9]{4,})\.")
FEEDBACK_LENGTH = 1000


class RunEvidence(Improvement):
    """The evidence of a run in the shape of an improvement, whose stages are runs and are called by their ids.

    What the improvement holds is read from the run's locked copy; what is written stands beside the run.
    """

    def __init__(self, store: RunStore, run: str, place: str, outer: str) -> None:
        self.store, self.run, self.outer = store, run, outer
        self.source = os.path.join(store.locked_folder(run), place)
        super().__init__(store.evidence_folder(run))
        self.name = f"{os.path.basename(os.path.normpath(place))} ({run})"

    def path(self, *parts: str) -> str:
        name = os.path.join(*parts) if parts else ""
        stage, source = STAGE_OF_RUN.match(name), os.path.join(self.source, name)
        if stage and stage[1] != self.run:
            return os.path.join(self.store.evidence_folder(stage[1]), name)
        return source if not stage and os.path.lexists(source) else os.path.join(self.folder, name)

    def argument(self) -> str:
        return RUN_PREFIX + self.run

    def review_command(self, baseline: str = "") -> str:
        return f"kaizen review --baseline {RUN_PREFIX}{baseline or 'ID'} --candidate {RUN_PREFIX}{self.run}"

    def outer_folder(self) -> str:
        return self.outer

    def stages(self) -> list[str]:
        return [self.run] if os.path.exists(self.stage_file(self.run)) else []


def run_evidence(argument: str) -> RunEvidence:
    """The evidence of the run that *argument*, `run:ID`, names. Raises InputError, or RefusedError for a run that says nothing."""
    workspace = find_workspace()
    run, store = argument[len(RUN_PREFIX) :], run_store(workspace)
    document = store.read_whole(run)
    if document["separation"] != ENGINE:
        hint = "only a system whose system.md names an `improvement` is run by the engine"
        raise InputError(f"{run} has no observations: its eval was not the engine", hint, "no_observations")
    if document["state"] in (PLANNED, RUNNING, TAINTED):
        hint = f"kaizen resume {run} --restart" if document["state"] == TAINTED else "wait until it has ended"
        raise RefusedError(f"{run} is {document['state']}: there is nothing to compare", hint, str(document["state"]))
    return RunEvidence(store, run, document["improvement"], workspace.root)


def without_holdout(dataset: Dataset) -> Dataset:
    """*dataset* with no case of the holdout."""
    kept = {name: case for name, case in dataset.cases.items() if name not in dataset.holdout}
    return Dataset(kept, dataset_fingerprint(kept), dataset.is_legacy, frozenset())


def loaded_evidence(evidence: Improvement) -> tuple[Evaluation, Dataset, Suite]:
    """Evaluation, cases without those of the holdout, and evaluators of *evidence*. Raises BreachesError with all breaches."""
    breaches = Breaches()
    evaluation = load_evaluation(evidence, breaches)
    if evaluation is None:
        breaches.raise_if_any()
        raise InputError(f"{evidence.shown('evaluation.json')}: cannot be used")
    dataset = load_dataset(evidence, evaluation.include, breaches)
    breaches.raise_if_any()
    dataset = without_holdout(dataset)
    suite = build_suite(evaluation, dataset, breaches)
    breaches.raise_if_any()
    return evaluation, dataset, suite


class EngineEvaluator(ItemEvaluator):
    """Answers items by the runner in system.md and the evaluators of its improvement."""

    separation = ENGINE

    def __init__(self, workspace: Workspace, system: System) -> None:
        name, aggregation = system.metric.name, system.metric.aggregation
        if name not in (PASS_RATE, TRIAL_SCORE) or aggregation in COUNT_AGGREGATIONS:
            hint = f"write metric: {PASS_RATE}, or metric: {TRIAL_SCORE}, with mean, median or percentile"
            raise InputError(f"{system.id}: the engine does not measure {quoted(name)} as {aggregation}", hint, "unknown_metric")
        _, _, suite = loaded_evidence(Improvement(workspace.path(system.improvement)))
        outside = sorted(suite.types_used & set(OUTSIDE_TYPES))
        if outside:
            message = f"{system.id}: its improvement needs {listed(outside)}, which a run does not start"
            raise InputError(message, "write an eval that calls `kaizen evaluate` with what they need", "outside_evaluators")
        self.store = run_store(workspace)

    def answer(self, asked: list[AskedItem], session: RunSession) -> RunEnd:
        try:
            evidence = RunEvidence(self.store, session.run, session.system.improvement, session.workspace.root)
            _, dataset, suite = loaded_evidence(evidence)
            end = run_items(evidence, dataset, asked, session)
            if end.state:
                return end
            refuse_changed_copy(session)
            evaluate_stage(evidence, session.run, dataset, suite)
            lines = read_json_lines(evidence.stage_file(session.run, RESULTS))
            first = run_passes(session.writer.document()).start
            results = {(line.value["case_id"], line.value["trial"]): line.value for line in lines}
            session.take({"event": "start", "total": len(asked)})
            for each in asked:
                result = results.get((each.item, stage_trial(each, first)))
                if result is not None:
                    told = item_result(result, session.system.metric.name)
                    session.take({"event": "item", "id": each.item, "trial": each.trial, **told})
            session.take({"event": "end"})
        except AskingEnded as ending:
            return ending.end
        except EvalFault as fault:
            return fault.end()
        return ENDED_WELL


def stage_trial(asked: AskedItem, first: int) -> int:
    """The trial of the stage that answers *asked*: each pass, of which the run's *first* may be beyond 1, is one."""
    return asked.trial + asked.pass_number - first


def run_items(evidence: RunEvidence, dataset: Dataset, asked: list[AskedItem], session: RunSession) -> RunEnd:
    """Has the runner answer what is missing of *asked*; how that ended."""
    ends: list[RunEnd] = []

    def may_go_on() -> bool:
        session.heard_at = monotonic_seconds()  # each trial has a limit of its own
        end = session.poll()
        ends.extend([end] if end else [])
        return end is None

    # A pass that is asked for alone again keeps those that came after it.
    known = [read_stage_meta(evidence, session.run)["repetitions"]] if os.path.exists(evidence.stage_file(session.run, STAGE_META)) else []
    document = session.writer.document()
    first, is_elsewhere = run_passes(document).start, session.tree != session.workspace.root
    request = RunRequest(
        improvement=evidence,
        stage=session.run,
        dataset=dataset,
        seed=document["seed"],
        command=list(session.system.runner),
        cwd=session.tree,
        told_cwd=f"commit {document['commit']['hash']}" if is_elsewhere else "",
        progress="none" if is_elsewhere else "auto",
        repetitions=max([*[stage_trial(each, first) for each in asked], *known]),
        timeout_seconds=session.limits.item_seconds,
        existing=ONLY_ERRORS if os.path.exists(evidence.stage_file(session.run)) else REFUSE,
        ids=tuple(dict.fromkeys(each.item for each in asked)),
        variables=session.environment,
        may_go_on=may_go_on,
    )
    try:
        summary = run_stage(request)
    except UsageError as error:
        return RunEnd(CRASHED, "cannot_start", error.message)
    for note in summary.notes:
        session.log(note)
    return ends[0] if ends else RunEnd(BROKEN_OFF, "stopped", "stopped by a signal") if summary.is_interrupted else ENDED_WELL


def item_result(result: JsonObject, metric: str) -> JsonObject:
    """What is told of an item with this *result* of its trial."""
    told: JsonObject = {"cost_usd": result["cost_usd"], "latency_ms": result["duration_ms"], "metrics": {}}
    broken = [each for each in result["evaluations"] if each["status"] in ("fail", "error") and each["reason"]]
    reasons = [f"{each['id']}: {each['reason']}" for each in broken]
    if reasons:
        told["feedback"] = visible("; ".join(reasons), FEEDBACK_LENGTH)
    score = result["score"] if metric == TRIAL_SCORE else int(result["outcome"] == "pass")
    if result["outcome"] == "error" or score is None:
        return {**told, "status": "timeout" if result["status"] == "timeout" else "infra_error"}
    return {**told, "status": "ok", "score": score}

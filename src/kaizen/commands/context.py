"""What most commands begin with: the files loaded, the stages assessed."""

import os
import sys
from typing import NamedTuple

from kaizen.cases.dataset import Dataset, load_dataset
from kaizen.cases.decision import Decision, read_decision
from kaizen.cases.evaluation_file import Evaluation, load_evaluation
from kaizen.cases.improvement import RUN_PREFIX, Improvement, check_stage_name, find_improvement
from kaizen.evaluators.judge import JUDGE
from kaizen.evaluators.stage_results import RESULTS, StageState, evaluate_stage, has_results, stage_state
from kaizen.evaluators.suite import PROGRAM_TYPES, Suite, build_suite
from kaizen.foundation.errors import Breaches, InputError, RefusedError, UsageError
from kaizen.foundation.jsonio import JsonObject, read_json_object
from kaizen.foundation.redact import redact_shown
from kaizen.foundation.text import listed
from kaizen.policy.comparison import StageTally, tally_stage
from kaizen.policy.derived import DerivedMetrics, derived_metrics


class Project(NamedTuple):
    """An improvement with its checked cases, evaluation and evaluators."""

    improvement: Improvement
    evaluation: Evaluation
    dataset: Dataset
    suite: Suite
    derived: DerivedMetrics


class Assessment(NamedTuple):
    """The comparison of two stages and what it was made from, by role; `problems` are the reasons of rule 1.

    `tallies` is empty where one stage stands alone.
    """

    comparison: JsonObject
    states: dict[str, StageState]
    problems: list[tuple[str, str]]
    tallies: dict[str, StageTally] = {}  # noqa: RUF012 (never changed)


def diagnose(text: str) -> None:
    """Prints a line on standard error, its secrets masked."""
    print(redact_shown(text), file=sys.stderr)


def load_project(argument: str) -> Project:
    """The improvement that *argument* names, loaded and checked. Raises BreachesError with all breaches."""
    if argument.startswith(RUN_PREFIX):
        from kaizen.lab.engine_eval import loaded_evidence, run_evidence

        evidence = run_evidence(argument)
        known, cases, evaluators = loaded_evidence(evidence)
        return Project(evidence, known, cases, evaluators, derived_metrics(known, cases.cases))
    improvement = find_improvement(argument)
    breaches = Breaches()
    evaluation = load_evaluation(improvement, breaches)
    if evaluation is None:
        breaches.raise_if_any()
        raise InputError(f"{improvement.shown('evaluation.json')}: cannot be used")
    dataset = load_dataset(improvement, evaluation.include, breaches)
    breaches.raise_if_any()
    suite = build_suite(evaluation, dataset, breaches)
    breaches.raise_if_any()
    return Project(improvement, evaluation, dataset, suite, derived_metrics(evaluation, dataset.cases))


def compared_project(argument: str | None, baseline: str, candidates: list[str]) -> tuple[Project, str, list[str]]:
    """The improvement *argument*, *baseline* and *candidates*: names of stages, or `run:ID` for all of them and no improvement.

    Then the evidence is that of the first candidate's run, and the runs' ids are the names of the stages. Raises UsageError.
    """
    named = [stage for stage in (baseline, *candidates) if stage.startswith(RUN_PREFIX)]
    if not named:
        if argument is None:
            raise UsageError("IMPROVEMENT is missing", "name an improvement, or two runs: --baseline run:ID --candidate run:ID")
        return load_project(argument), baseline, candidates
    if argument is not None or len(named) <= len(candidates):
        hint = "write --baseline run:ID --candidate run:ID, and no improvement"
        raise UsageError(f"{RUN_PREFIX}ID takes the place of IMPROVEMENT, for baseline and candidate alike", hint)
    from kaizen.lab.engine_eval import run_evidence

    for stage in named:
        run_evidence(stage)
    stages = [stage[len(RUN_PREFIX) :] for stage in named]
    return load_project(candidates[0]), stages[0], stages[1:]


def require_stage(improvement: Improvement, stage: str) -> None:
    """Raises InputError when *stage* has no observations."""
    check_stage_name(stage)
    if not os.path.exists(improvement.stage_file(stage)):
        known = improvement.stages()
        others = f" (there is: {', '.join(known)})" if known else ""
        hint = f"run: kaizen run {improvement.argument()} --stage {stage} -- COMMAND{others}"
        if improvement.argument().startswith(RUN_PREFIX):
            hint = f"beside a run stand other runs: name it as {RUN_PREFIX}ID; kaizen log lists them"
        raise InputError(f"{improvement.shown(stage + '.jsonl')}: there is no stage '{stage}' yet", hint, "missing_stage")


def evaluating_command(project: Project, stage: str = "") -> str:
    """The command that evaluates with all that the evaluators need."""
    types = project.suite.types_used
    parts = [f"kaizen evaluate {project.improvement.argument()}"]
    parts += [f"--stage {stage}"] if stage else []
    parts += ["--allow-programs"] if not types.isdisjoint(PROGRAM_TYPES) else []
    return " ".join([*parts, *(["-- JUDGE [ARG…]"] if JUDGE in types else [])])


def refuse_unevaluated(project: Project, stage: str) -> None:
    """Raises InputError when evaluating *stage* needs a judge or programs, which only `kaizen evaluate` starts."""
    names = sorted(project.suite.types_used & {JUDGE, *PROGRAM_TYPES})
    if names:
        message = f"{project.improvement.shown(stage + '.jsonl')}: has not been evaluated, and that needs {listed(names)}"
        raise InputError(message, f"run: {evaluating_command(project, stage)}", "missing_results")


def tallied_stage(project: Project, stage: str) -> tuple[StageTally, StageState]:
    """Tally and state of *stage*; a stage without any results is evaluated first, when that starts nothing."""
    improvement = project.improvement
    require_stage(improvement, stage)
    if not has_results(improvement, stage):
        refuse_unevaluated(project, stage)
        evaluate_stage(improvement, stage, project.dataset, project.suite)
    state = stage_state(improvement, stage, project.dataset, project.suite)
    repetitions = int(state.meta.get("repetitions", 1))
    if any(code == "invalid_evidence" for code, _ in state.problems):
        return StageTally(stage, repetitions, {}, []), state
    results, case_ids = improvement.stage_file(stage, RESULTS), set(project.dataset.cases)
    return tally_stage(stage, results, repetitions, case_ids, project.derived.metrics_of()), state


def assess(project: Project, baseline: str, candidate: str) -> Assessment:
    """Compares two stages; stale or unlike evidence goes into the document as rule 1."""
    from kaizen.policy.recommendation import comparison_document

    if baseline == candidate:
        raise InputError(f"baseline and candidate are both stage '{baseline}'", "name two different stages")
    stages: dict[str, tuple[StageTally, JsonObject]] = {}
    states: dict[str, StageState] = {}
    for role, stage in (("baseline", baseline), ("candidate", candidate)):
        tally, states[role] = tallied_stage(project, stage)
        stages[role] = (tally, states[role].meta)
    problems = [problem for state in states.values() for problem in state.problems] + unlike_stages(states)
    order = ("invalid_evidence", "incomparable_dataset", "incomparable_evaluators", "stale_results")
    problems.sort(key=lambda problem: order.index(problem[0]))
    graded_by = {str(state.meta.get("evaluator_fingerprint")) for state in states.values()}
    fingerprints = (project.dataset.fingerprint, project.suite.fingerprint if problems else graded_by.pop())
    document = comparison_document(project.evaluation, project.dataset.cases, stages, fingerprints, problems, project.derived)
    document["notes"] += unlike_judge_commands(states)
    return Assessment(document, states, problems, {role: tally for role, (tally, _) in stages.items()})


def assess_reviewed(project: Project) -> tuple[JsonObject, Assessment]:
    """comparison.json, and the two stages that it is about compared as they are now. Raises InputError when it names none."""
    improvement = project.improvement
    hint = f"run: {improvement.review_command()}"
    document = read_json_object(improvement.path("comparison.json"), hint)
    names = [side.get("stage") if isinstance(side, dict) else None for side in (document.get("baseline"), document.get("candidate"))]
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{improvement.shown('comparison.json')}: does not say which stages were compared", hint, "invalid_file")
    return document, assess(project, str(names[0]), str(names[1]))


def unlike_stages(states: dict[str, StageState]) -> list[tuple[str, str]]:
    """Reasons of rule 1 when the two sides were evaluated on different cases or by different evaluators."""
    before, after = states["baseline"].meta, states["candidate"].meta
    if not before or not after:
        return []
    found = []
    if before["dataset_fingerprint"] != after["dataset_fingerprint"]:
        found.append(("incomparable_dataset", "baseline and candidate were evaluated with different cases; evaluate both again"))
    if before["evaluator_fingerprint"] != after["evaluator_fingerprint"]:
        names = sorted(
            name
            for name in {*before["evaluators"], *after["evaluators"]}
            if before["evaluators"].get(name) != after["evaluators"].get(name)
        )
        what = f" ({', '.join(names)})" if names else ""
        found.append(("incomparable_evaluators", f"baseline and candidate were graded by different evaluators{what}; evaluate both again"))
    return found


def unlike_judge_commands(states: dict[str, StageState]) -> list[str]:
    """A sentence when the judges of the two sides were started by different commands, though they name themselves alike."""
    before, after = (states[role].meta.get("judge_commands") for role in ("baseline", "candidate"))
    if not before or not after or before == after:
        return []
    return ["The judges of baseline and candidate were started by different commands."]


def refuse_stale(assessment: Assessment, improvement: Improvement, doing: str) -> None:
    """Raises RefusedError when the evidence is stale or unlike, for commands that make something last."""
    if assessment.problems:
        code, text = assessment.problems[0]
        raise RefusedError(
            f"cannot {doing}: {text}", f"run: kaizen evaluate {improvement.argument()}, then {improvement.review_command()}", code
        )


def decision_of(improvement: Improvement) -> Decision | None:
    """The decision file as read; None when there is none."""
    path = improvement.path("decision.yaml")
    return read_decision(path) if os.path.exists(path) else None

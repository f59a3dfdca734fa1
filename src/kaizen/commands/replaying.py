"""Kept observations evaluated by other evaluators; nothing is run, nothing written."""

import os

from kaizen.cases.dataset import load_dataset
from kaizen.cases.evaluation_file import load_evaluation
from kaizen.cases.improvement import Improvement
from kaizen.commands.context import Project
from kaizen.evaluators.outside import open_outside
from kaizen.evaluators.stage_results import evaluate_observation, repeated_trial, repetitions_of
from kaizen.evaluators.suite import build_suite
from kaizen.foundation.errors import Breaches, InputError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonObject
from kaizen.policy.comparison import CaseTally, StageTally
from kaizen.policy.derived import derived_metrics
from kaizen.policy.recommendation import comparison_document
from kaizen.runs.observation import iter_observations


def project_under(improvement: Improvement, path: str, own_place: bool = True) -> Project:
    """*improvement* with the evaluation file *path* in place of its own. Raises BreachesError with all breaches.

    What the file refers to is looked for in *improvement*; without *own_place* beside the file, and nothing is included.
    """
    breaches = Breaches()
    evaluation = load_evaluation(improvement if own_place else Improvement(os.path.dirname(path)), breaches, path)
    breaches.raise_if_any()
    if evaluation is None:
        raise InputError(f"{shown_path(path)}: cannot be used")
    dataset = load_dataset(improvement, evaluation.include if own_place else [], breaches)
    breaches.raise_if_any()
    suite = build_suite(evaluation, dataset, breaches)
    breaches.raise_if_any()
    return Project(improvement, evaluation, dataset, suite, derived_metrics(evaluation, dataset.cases))


def replayed_comparison(project: Project, before: JsonObject) -> JsonObject:
    """comparison.json as it would be if both stages of the comparison *before* were evaluated by *project* now; nothing is written."""
    stages = {}
    for role in ("baseline", "candidate"):
        meta = {"observations_sha256": before[role]["observations_sha256"]}
        stages[role] = (replayed_tally(project, before[role]["stage"]), meta)
    fingerprints = (project.dataset.fingerprint, project.suite.fingerprint)
    return comparison_document(project.evaluation, project.dataset.cases, stages, fingerprints, [], project.derived)


def replayed_tally(project: Project, stage: str) -> StageTally:
    """The tally of *stage* by the evaluators of *project*, over its observations and the kept answers of judges.

    Raises InputError for a trial that is there twice.
    """
    path = project.improvement.stage_file(stage)
    cases: dict[str, CaseTally] = {}
    unknown: dict[str, None] = {}
    seen: set[tuple[str, int]] = set()
    with open_outside(project.improvement, stage, project.dataset, project.suite) as kept:
        for line, memo in kept.with_memos(iter_observations(path)):
            observation = line.value
            key = (observation["case_id"], observation["trial"])
            if key in seen:
                raise repeated_trial(path, line)
            seen.add(key)
            if key[0] not in project.dataset.cases:
                unknown[key[0]] = None
                continue
            result = evaluate_observation(observation, project.dataset, project.suite, memo)
            cases.setdefault(key[0], CaseTally()).add(result, project.derived.names_of(key[0]))
    repetitions = max([repetitions_of(project.improvement, stage) or 1, *(trial for _, trial in seen)])
    return StageTally(stage, repetitions, cases, list(unknown))

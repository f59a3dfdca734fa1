"""`kaizen replay-decision`: kept evidence under a changed evaluator or policy."""

import os
from argparse import Namespace

from kaizen.cases.dataset import load_dataset
from kaizen.cases.evaluation_file import Evaluation, load_evaluation
from kaizen.commands.context import Assessment, Project, assess, load_project
from kaizen.commands.reporting import BASELINE, CANDIDATE, headline, rate_text
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.evaluators.outside import open_outside
from kaizen.evaluators.stage_results import evaluate_observation, repeated_trial, repetitions_of
from kaizen.evaluators.standing import not_gating_notes
from kaizen.evaluators.suite import build_suite
from kaizen.foundation.errors import Breaches, InputError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed, visible
from kaizen.policy.comparison import CaseTally, StageTally
from kaizen.policy.derived import derived_metrics
from kaizen.policy.recommendation import comparison_document
from kaizen.policy.replay import flips_document
from kaizen.runs.observation import iter_observations

SHOWN_MOVES = 10


@command(
    "replay-decision",
    "Evaluates kept observations under another evaluation file, runs nothing, writes nothing, and says what flips.",
    [
        IMPROVEMENT,
        Argument("--policy", "FILE", "the evaluation file to try, in the form of evaluation.json", {"required": True}),
        BASELINE,
        CANDIDATE,
    ],
    "kaizen replay-decision refund --policy stricter.json",
    group="surer",
)
def command_replay_decision(args: Namespace) -> Answer:
    """Exits 0 whether anything flips or not."""
    project = load_project(args.improvement)
    before = assess(project, args.baseline, args.candidate)
    other = project_under(project, os.path.abspath(args.policy))
    after = replayed_comparison(other, before)
    found = flips_document(before.comparison, after, project.dataset.holdout)
    now, then = before.comparison["recommendation"], after["recommendation"]
    policy = shown_path(os.path.abspath(args.policy))
    message = f"{now} becomes {then}" if found["flips"] else f"{now} stays {then}"
    lines = [f"{message} under {policy}", f"  now   {headline(before.comparison)}", f"  then  {headline(after)}"]
    for role in ("baseline", "candidate"):
        shown = [rate_text(comparison["rates"][role]) for comparison in (before.comparison, after)]
        lines += [f"  {role}: {shown[0]}", *([f"  {' ' * len(role)}  {shown[1]}"] if shown[0] != shown[1] else [])]
    lines += [f"  also then: {entry['text']}" for entry in after["reasons"][1:]]
    moves = [f"{visible(entry['id'])} ({entry['before']} to {entry['after']})" for entry in found["cases"]]
    moves += [counted(found["holdout_cases"], "holdout case")] if found["holdout_cases"] else []
    lines.append(f"  cases that change: {listed(moves, SHOWN_MOVES) or 'none'}")
    lines += [f"  note: {note}" for note in not_gating_notes({"not_gating": other.suite.not_gating})]
    return Answer(0, "flips" if found["flips"] else "stays", message, lines, {"policy": policy, **found})


def project_under(project: Project, path: str) -> Project:
    """*project* with the evaluation file *path* in place of its own. Raises BreachesError with all breaches."""
    improvement, breaches = project.improvement, Breaches()
    evaluation = load_evaluation(improvement, breaches, path)
    breaches.raise_if_any()
    if evaluation is None:
        raise InputError(f"{shown_path(path)}: cannot be used")
    dataset = load_dataset(improvement, evaluation.include, breaches)
    breaches.raise_if_any()
    suite = build_suite(evaluation, dataset, breaches)
    breaches.raise_if_any()
    return Project(improvement, evaluation, dataset, suite, derived_metrics(evaluation, dataset.cases))


def replayed_comparison(project: Project, before: Assessment) -> JsonObject:
    """comparison.json as it would be if both stages of *before* were evaluated by *project* now; nothing is written."""
    evaluation: Evaluation = project.evaluation
    stages = {}
    for role, tally in before.tallies.items():
        replayed = replayed_tally(project, tally)
        meta = {"observations_sha256": before.states[role].meta.get("observations_sha256")}
        stages[role] = (replayed, meta)
    fingerprints = (project.dataset.fingerprint, project.suite.fingerprint)
    return comparison_document(evaluation, project.dataset.cases, stages, fingerprints, [], project.derived)


def replayed_tally(project: Project, stage: StageTally) -> StageTally:
    """The tally of *stage* by the evaluators of *project*, over its observations and the kept answers of judges.

    Raises InputError for a trial that is there twice.
    """
    path = project.improvement.stage_file(stage.stage)
    cases: dict[str, CaseTally] = {}
    unknown: dict[str, None] = {}
    seen: set[tuple[str, int]] = set()
    with open_outside(project.improvement, stage.stage, project.dataset, project.suite) as kept:
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
    repetitions = max([repetitions_of(project.improvement, stage.stage) or 1, *(trial for _, trial in seen)])
    return StageTally(stage.stage, repetitions, cases, list(unknown))

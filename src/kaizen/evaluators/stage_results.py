"""Evaluating a stage: its results, their meta file, and when they are stale.

Results hold no time and no path, so evaluating twice gives the same bytes. The meta file
holds the digests of what the results were made from; results are stale when one of them
is no longer what it was.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from kaizen.cases.case import Case
from kaizen.cases.dataset import Dataset
from kaizen.cases.improvement import Improvement
from kaizen.evaluators.label import LabelTallies
from kaizen.evaluators.outside import NO_LEAVE, Leave, Outside, judged_fingerprints, mixed_judges, open_outside
from kaizen.evaluators.suite import Suite
from kaizen.foundation.clock import utc_now
from kaizen.foundation.errors import InputError
from kaizen.foundation.files import replacing, shown_path
from kaizen.foundation.identity import VERSION
from kaizen.foundation.jsonio import JsonObject, Line, encode_compact, read_json_object, write_json
from kaizen.foundation.locks import FileLock
from kaizen.foundation.text import listed
from kaizen.runs.journal import checked_repetitions, read_stage_meta
from kaizen.runs.observation import LineDigest, file_digest, iter_observations

RESULTS = ".evaluated.jsonl"
RESULTS_META = ".evaluated.meta.json"
LOCK = ".lock"


class StageState(NamedTuple):
    """Results meta of a stage ({} when there is none) and [(reason code, sentence)] of what makes it unusable."""

    meta: JsonObject
    problems: list[tuple[str, str]]


def repetitions_of(improvement: Improvement, stage: str) -> int | None:
    """Repetitions as the stage's meta file says; None when there is no meta file."""
    if not os.path.exists(improvement.stage_file(stage, ".meta.json")):
        return None
    return checked_repetitions(read_stage_meta(improvement, stage), improvement.shown(stage + ".meta.json"))


def evaluate_stage(
    improvement: Improvement,
    stage: str,
    dataset: Dataset,
    suite: Suite,
    report: Callable[[int], None] = lambda count: None,
    leave: Leave = NO_LEAVE,
) -> JsonObject:
    """Evaluates every observation of *stage* and writes results and meta file; returns the meta document.

    Streams: memory does not grow with the number of observations. *report* is called with the number done.
    Judges are asked and programs run as far as *leave* goes; `judging` of what is returned tells of this call alone.
    Raises InputError for an observation file that cannot be used, and Interrupted; the old results stay then.
    """
    lock = FileLock(improvement.stage_file(stage, LOCK), f"stage '{stage}'")
    with lock, open_outside(improvement, stage, dataset, suite, leave) as outside:
        meta = evaluate_locked_stage(improvement, stage, dataset, suite, report, outside)
        judging = {"asked": outside.asked, "failures": outside.failures, "shown": sorted(outside.shown)}
        return {**meta, "judging": judging} if outside.tallies else meta


def evaluate_locked_stage(
    improvement: Improvement, stage: str, dataset: Dataset, suite: Suite, report: Callable[[int], None], outside: Outside
) -> JsonObject:
    """As `evaluate_stage`, for a caller that holds the stage's lock and what it needs from *outside*."""
    path = improvement.stage_file(stage)
    repetitions = repetitions_of(improvement, stage)
    observed, written = LineDigest(), LineDigest()
    counts = {"pass": 0, "fail": 0, "error": 0}
    by_evaluator: dict[str, dict[str, int]] = {}
    labels = LabelTallies(suite.entries, dataset.holdout)
    seen: dict[str, int] = {}  # by case a number whose bits are the trials: 100,000 trials take no more room than their cases
    done = highest = 0
    with replacing(improvement.stage_file(stage, RESULTS)) as stream:
        for line, memo in outside.with_memos(iter_observations(path)):
            observed.add(line.raw)
            observation = line.value
            case_id, trial = observation["case_id"], observation["trial"]
            trials = seen.get(case_id, 0)
            if trials >> trial & 1:
                raise repeated_trial(path, line)
            seen[case_id] = trials | 1 << trial
            done, highest = done + 1, max(highest, trial)
            result = evaluate_observation(observation, dataset, suite, memo)
            counts[result["outcome"]] += 1
            for entry in result["evaluations"]:
                tally = by_evaluator.setdefault(entry["id"], {"pass": 0, "fail": 0, "error": 0, "not_applicable": 0})
                tally[entry["status"]] += 1
                if entry["type"] == "label":
                    labels.note(case_id, entry)
            raw = encode_compact(result).encode("utf-8")
            written.add(raw)
            stream.write(raw + b"\n")
            report(done)
    judges = outside.judges()
    evaluator_fingerprint, entry_fingerprints = judged_fingerprints(suite, judges)
    meta: JsonObject = {
        "version": 1,
        "stage": stage,
        "observations_sha256": observed.hexdigest(),
        "results_sha256": written.hexdigest(),
        "dataset_fingerprint": dataset.fingerprint,
        "evaluator_fingerprint": evaluator_fingerprint,
        "evaluators": entry_fingerprints,
        **({"not_gating": suite.not_gating} if suite.not_gating else {}),
        "counts": counts,
        "by_evaluator": by_evaluator,
        **labels.meta_part(),
        "repetitions": max(repetitions or 0, highest, 1),
        "planned": len(dataset.cases) * max(repetitions or 0, highest, 1),
        "evaluated_at": utc_now(),
        "engine": VERSION,
        **({"judges": judges, "judge_commands": sorted(outside.commands)} if judges else {}),
    }
    write_json(improvement.stage_file(stage, RESULTS_META), meta)
    return meta


def repeated_trial(path: str, line: Line) -> InputError:
    """The error of *line*, which repeats an earlier line of the stage file *path*; the case is not named, it may be of the holdout."""
    key = (line.value["case_id"], line.value["trial"])
    earlier = next(each.number for each in iter_observations(path) if (each.value["case_id"], each.value["trial"]) == key)
    return InputError(
        f"{shown_path(path)}:{line.number}: is the same case and trial as line {earlier}",
        "remove one of the two lines, or run the stage again with --overwrite",
        "invalid_evidence",
    )


def evaluate_observation(observation: JsonObject, dataset: Dataset, suite: Suite, memo: JsonObject | None = None) -> JsonObject:
    """The result line of *observation*; an error when its case is gone or had another input when it was made.

    *memo* holds what its evaluators need from outside.
    """
    case = dataset.cases.get(observation["case_id"])
    if case is not None and observation.get("input_fingerprint", case.input_fingerprint) == case.input_fingerprint:
        return suite.evaluate(observation, case, memo)
    kind, message = ("unknown_case", "no case has this id") if case is None else ("input_changed", "made from another input of this case")
    spoilt = {**observation, "status": "error", "error": {"class": "environment", "type": kind, "message": message}}
    return suite.evaluate(spoilt, case or Case(observation["case_id"], {"id": observation["case_id"]}, "", 0, ""))


def has_results(improvement: Improvement, stage: str) -> bool:
    """True when results or their meta file are there."""
    return any(os.path.exists(improvement.stage_file(stage, suffix)) for suffix in (RESULTS, RESULTS_META))


def stage_state(improvement: Improvement, stage: str, dataset: Dataset, suite: Suite, ignoring_standing: bool = False) -> StageState:
    """The results meta of *stage* and what makes the results unusable: stale or invalid, each with a sentence.

    With *ignoring_standing* it does not matter if a judge gates now and did not then, or the reverse: what it said is the same.
    """
    meta = read_json_object(improvement.stage_file(stage, RESULTS_META), f"run: kaizen evaluate {improvement.argument()}")
    try:
        expected = [str(meta[key]) for key in ("observations_sha256", "results_sha256", "dataset_fingerprint", "evaluator_fingerprint")]
        before = dict(meta["evaluators"])
        evaluator_fingerprint, entry_fingerprints = judged_fingerprints(suite, meta.get("judges", {}))
        mixed = mixed_judges(stage, meta.get("judges", {}))
        checked_repetitions(meta, "")
    except (KeyError, TypeError, ValueError, AttributeError, InputError):
        return StageState(
            {}, [("invalid_evidence", f"{improvement.shown(stage + RESULTS_META)}: is not a results meta file; evaluate again")]
        )
    problems = []
    if file_digest(improvement.stage_file(stage, RESULTS)) != expected[1]:
        problems.append(("invalid_evidence", f"{stage}: the results are not the ones that evaluate wrote; evaluate again"))
    if file_digest(improvement.stage_file(stage)) != expected[0]:
        problems.append(("stale_results", f"{stage}: the observations have changed since they were evaluated"))
    if dataset.fingerprint != expected[2]:
        problems.append(("stale_results", f"{stage}: the cases have changed since it was evaluated"))
    if evaluator_fingerprint != expected[3] and not (ignoring_standing and before == entry_fingerprints):
        names = changed_evaluators(before, entry_fingerprints)
        what = f": {listed(names)}" if names else ""
        gating = [] if names else changed_evaluators(meta.get("not_gating", {}), suite.not_gating)
        told = f"what gates has changed since it was evaluated: the judge {listed(gating)}" if gating else ""
        problems.append(("stale_results", f"{stage}: {told or f'the evaluators have changed since it was evaluated{what}'}"))
    problems += [("incomparable_evaluators", sentence) for sentence in mixed]
    return StageState(meta, problems)


def changed_evaluators(before: JsonObject, after: JsonObject) -> list[str]:
    """Ids of the evaluators that are not the same in both {id: fingerprint}, sorted."""
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))

"""Shards: a stage run in parts on several machines, and the parts merged into one stage.

    kaizen run refund --stage candidate --shard 2/4 -- ./agent     writes candidate.shard-2-of-4.jsonl
    kaizen merge refund --stage candidate                          writes candidate.jsonl

A case belongs to a shard by the hash of its id alone, so adding cases moves none. The merged stage
has the lines of the shards as they stand, in the order (trial, place of the case), which is what a
run without shards writes.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from kaizen.cases.dataset import Dataset
from kaizen.cases.improvement import Improvement
from kaizen.foundation.errors import RefusedError, UsageError
from kaizen.foundation.files import make_folder, open_for_reading
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.locks import FileLock
from kaizen.foundation.text import counted, listed, quoted, visible
from kaizen.runs.journal import (
    FILES,
    OVERWRITE,
    StageIndex,
    StageWriter,
    bare_line,
    differing_settings,
    read_stage_meta,
    stage_lines,
)
from kaizen.runs.kept_files import KEPT_LIMIT, copy_tree, kept_folder
from kaizen.runs.observation import lines_digest
from kaizen.runs.plan import select_cases

MAX_SHARDS = 400  # merge has two files open for each
SHOWN_GAPS = 5
MERGE_BLOCK = 16 << 10  # bytes read ahead in each shard
NO_SELECTION: JsonObject = {"ids": [], "tags": [], "splits": []}
SHARD_FILE = re.compile(r"\.shard-([1-9]\d{0,4})-of-([1-9]\d{0,4})\.jsonl\Z")
# Who says which part of a job this is: variable with the index, its first number, variable with the count ('': nobody says).
SHARD_VARIABLES = (
    ("GITLAB_CI", "CI_NODE_INDEX", 1, "CI_NODE_TOTAL"),
    ("CIRCLECI", "CIRCLE_NODE_INDEX", 0, "CIRCLE_NODE_TOTAL"),
    ("BUILDKITE", "BUILDKITE_PARALLEL_JOB", 0, "BUILDKITE_PARALLEL_JOB_COUNT"),
    ("TF_BUILD", "SYSTEM_JOBPOSITIONINPHASE", 1, "SYSTEM_TOTALJOBSINPHASE"),
    ("SEMAPHORE", "SEMAPHORE_JOB_INDEX", 1, "SEMAPHORE_JOB_COUNT"),
    ("BITBUCKET_BUILD_NUMBER", "BITBUCKET_PARALLEL_STEP", 0, "BITBUCKET_PARALLEL_STEP_COUNT"),
    ("HEROKU_TEST_RUN_ID", "CI_NODE_INDEX", 0, "CI_NODE_TOTAL"),
    ("CLOUD_RUN_JOB", "CLOUD_RUN_TASK_INDEX", 0, "CLOUD_RUN_TASK_COUNT"),
    ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_ID", 0, "SLURM_ARRAY_TASK_COUNT"),
    ("JOB_COMPLETION_INDEX", "JOB_COMPLETION_INDEX", 0, ""),
    ("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_INDEX", 0, ""),
)


class Shard(NamedTuple):
    """Part *number* (from 1) of *total*."""

    number: int
    total: int


def parse_shard(text: str, environment: Mapping[str, str]) -> Shard:
    """The shard that *text* names: 'I/N', 'auto' or 'auto/N' (from the *environment* of a CI system or cluster). Raises UsageError."""
    match = re.fullmatch(r"(auto|[0-9]{1,5})(?:/([0-9]{1,5}))?", text, re.ASCII)
    if not match or match[1] != "auto" and not match[2]:
        raise UsageError(f"--shard {quoted(text)} is neither I/N, such as 2/4, nor auto nor auto/N")
    shard = shard_of_environment(environment, int(match[2] or 0)) if match[1] == "auto" else Shard(int(match[1]), int(match[2]))
    if not 1 <= shard.number <= shard.total <= MAX_SHARDS:
        raise UsageError(f"there is no shard {shard.number} of {shard.total}", f"shards are counted from 1, up to {MAX_SHARDS:,}")
    return shard


def shard_of_environment(environment: Mapping[str, str], count: int) -> Shard:
    """The shard of which the *environment* tells; *count* (0: as it says) is how many there are. Raises UsageError."""
    for mark, index_name, first, count_name in SHARD_VARIABLES:
        if mark in environment and environment.get(index_name):
            index = environment_number(environment, index_name) - first
            if index_name.startswith("SLURM"):  # an array may begin anywhere and go in steps
                index = slurm_place(environment, index)
            total = count or (environment_number(environment, count_name) if environment.get(count_name) else 0)
            if not total:
                raise UsageError(f"{index_name} says which shard this is, but nobody how many there are", "write --shard auto/N")
            return Shard(index + 1, total)
    known = listed([name for _, name, _, _ in SHARD_VARIABLES], 20, "or")
    raise UsageError("--shard auto: the environment does not say which part this is", f"it would say so in {known}; else write --shard I/N")


def environment_number(environment: Mapping[str, str], name: str) -> int:
    """The whole number in variable *name*; 0 when there is none. Raises UsageError for anything else."""
    text = environment.get(name, "0")
    if not re.fullmatch(r"[0-9]{1,18}", text, re.ASCII):
        raise UsageError(f"--shard auto: {name} is {quoted(text)}, not a whole number", "write --shard I/N")
    return int(text)


def slurm_place(environment: Mapping[str, str], task: int) -> int:
    """The place (from 0) of array task *task* among those from SLURM_ARRAY_TASK_MIN to _MAX, SLURM_ARRAY_TASK_COUNT in number."""
    low, high, count = (environment_number(environment, f"SLURM_ARRAY_TASK_{name}") for name in ("MIN", "MAX", "COUNT"))
    step = (high - low) // (count - 1) if count > 1 else 1
    if step < 1 or (task - low) % step or low + step * (count - 1) != high:
        raise UsageError("the Slurm array has gaps, so the place of this task is not known", "use an array like 0-9, or write --shard I/N")
    return (task - low) // step


def is_in_shard(case_id: str, shard: Shard) -> bool:
    """True when the case belongs to *shard*, whatever other cases there are.

    >>> [is_in_shard("refund-001", Shard(index, 4)) for index in (1, 2, 3, 4)].count(True)
    1
    """
    digest = hashlib.sha256(case_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % shard.total == shard.number - 1


def shard_stage(stage: str, shard: Shard) -> str:
    """What the files of *shard* are called in place of *stage*."""
    return f"{stage}.shard-{shard.number}-of-{shard.total}"


def found_shards(improvement: Improvement, stage: str) -> list[Shard]:
    """The shards of *stage* that are there, all of one count. Raises RefusedError for none, some missing, or several counts."""
    names = [name for name in os.listdir(improvement.folder) if name.startswith(stage + ".shard-")]
    matches = [match for match in (SHARD_FILE.match(name, len(stage)) for name in names) if match]
    found = sorted(Shard(int(match[1]), int(match[2])) for match in matches)
    shown = improvement.shown(stage)
    counts = sorted({shard.total for shard in found})
    if not found:
        raise RefusedError(f"{shown}: has no shards to merge", f"make them with: kaizen run … --stage {stage} --shard I/N", "missing_stage")
    if len(counts) > 1:
        raise RefusedError(f"{shown}: has shards of {listed(map(str, counts))}", "remove those that are not meant", "unlike_shards")
    missing = [str(index) for index in range(1, counts[0] + 1) if Shard(index, counts[0]) not in found]
    if missing:
        what = f"shard{'s' if len(missing) > 1 else ''} {listed(missing)} of {counts[0]}"
        raise RefusedError(f"{shown}: {what} {'are' if len(missing) > 1 else 'is'} not there", "bring all shards into the folder", "gap")
    return found


class Merged(NamedTuple):
    """What a merge came to: shards, lines written, and how many of them by status."""

    shards: int
    lines: int
    counts: dict[str, int]


def merge_shards(improvement: Improvement, stage: str, dataset: Dataset, is_overwrite: bool) -> Merged:
    """Writes the stage that the shards of *stage* are parts of; they stay.

    Raises RefusedError, naming what is wrong, for shards that are not parts of one run of *dataset* or lack trials.
    """
    from contextlib import ExitStack

    with ExitStack() as locks:
        locks.enter_context(FileLock(improvement.stage_file(stage, ".lock"), f"stage '{stage}'"))
        if os.path.lexists(improvement.stage_file(stage)) and not is_overwrite:
            raise RefusedError(f"{improvement.shown(stage + '.jsonl')}: is there already", "--overwrite replaces it", "existing_stage")
        shards = found_shards(improvement, stage)
        for shard in shards:
            name = shard_stage(stage, shard)
            locks.enter_context(FileLock(improvement.stage_file(name, ".lock"), f"shard '{name}'"))
        metas = [checked_shard_meta(improvement, stage, shard, dataset) for shard in shards]
        refuse_unlike_shards(improvement.shown(stage), shards, metas)
        index = merged_index(improvement, stage, shards, metas[0], dataset)
        return write_merged(improvement, stage, shards, metas, index, dataset)


def checked_shard_meta(improvement: Improvement, stage: str, shard: Shard, dataset: Dataset) -> JsonObject:
    """The meta document of *shard*. Raises RefusedError when its lines are not those it tells of, or it was made from other cases."""
    name = shard_stage(stage, shard)
    meta = read_stage_meta(improvement, name)
    shown = improvement.shown(name + ".jsonl")
    if meta.get("dataset_fingerprint") != dataset.fingerprint:
        raise RefusedError(f"{shown}: was made from other cases than there are now", "run it again: --overwrite", "unlike_shards")
    observations = meta.get("observations")
    digest = lines_digest(improvement.stage_file(name)).hexdigest()
    if not isinstance(observations, dict) or observations.get("sha256") != digest:
        raise RefusedError(f"{shown}: was cut short, or changed after its run", "go on with it: --resume, or run it again", "unlike_shards")
    return meta


def refuse_unlike_shards(shown: str, shards: list[Shard], metas: list[JsonObject]) -> None:
    """Raises RefusedError, naming what differs, unless all *metas* are of one run."""
    for shard, meta in zip(shards[1:], metas[1:], strict=True):
        differing = differing_settings(metas[0], meta, f"in shard {shards[0].number}", f"in shard {shard.number}")
        for key in ("repetitions", "selection"):
            if meta.get(key) != metas[0].get(key):
                differing.append(f"{key} ({visible(str(metas[0].get(key)))}, {visible(str(meta.get(key)))} in shard {shard.number})")
        if differing:
            raise RefusedError(f"{shown}: shards of different runs: {listed(differing)}", "run again what is not meant", "unlike_shards")


def merged_index(improvement: Improvement, stage: str, shards: list[Shard], meta: JsonObject, dataset: Dataset) -> StageIndex:
    """Where each trial's line stands in the file of its case's shard. Raises RefusedError for strangers and gaps."""
    index = StageIndex(dataset.cases, meta["repetitions"])
    for shard in shards:
        name = shard_stage(stage, shard)
        for offset, _, value in stage_lines(improvement.stage_file(name)):
            slot = index.slot(value["case_id"], value["trial"])
            case = dataset.cases.get(value["case_id"])
            fits = case is not None and value.get("input_fingerprint") == case.input_fingerprint and is_in_shard(case.id, shard)
            if slot < 0 or not fits or index.statuses[slot]:
                shown = improvement.shown(name + ".jsonl")
                raise RefusedError(f"{shown}: holds a line that is not of its cases and trials", "run it again", "unlike_shards")
            index.note(slot, value["status"], offset)
            refuse_lost_files(improvement, name, meta, value)
    refuse_gaps(improvement.shown(stage), shards[0].total, index, meta, dataset)
    return index


def refuse_lost_files(improvement: Improvement, name: str, meta: JsonObject, observation: JsonObject) -> None:
    """Raises RefusedError when *observation* tells of files kept with shard *name* whose folder did not come along."""
    told = observation.get("files") if meta.get("keep") else None
    is_kept = told and any(entry["change"] != "deleted" and entry["bytes"] <= KEPT_LIMIT for entry in told.values())
    folder = kept_folder(improvement.stage_file(name, FILES), observation["case_id"], observation["trial"])
    if is_kept and not os.path.isdir(folder):
        shown = improvement.shown(name + FILES)
        raise RefusedError(f"{shown}: lacks kept files of its trials", "bring the folder along with the shard", "gap")


def refuse_gaps(shown: str, count: int, index: StageIndex, meta: JsonObject, dataset: Dataset) -> None:
    """Raises RefusedError that names the first trials without a line; holdout cases are only counted."""
    selection = meta.get("selection") or NO_SELECTION
    cases = select_cases(dataset, selection["ids"], selection["tags"], selection["splits"])
    gaps = hidden = 0
    named: list[str] = []
    for trial in range(1, meta["repetitions"] + 1):
        for case in cases:
            if not index.status(case.id, trial):
                gaps += 1
                hidden += case.id in dataset.holdout
                if case.id not in dataset.holdout and len(named) < SHOWN_GAPS:
                    shard = next(each for each in range(1, count + 1) if is_in_shard(case.id, Shard(each, count)))
                    named.append(f"case {quoted(case.id, 40)} trial {trial} (shard {shard})")
    if gaps:
        more = gaps - len(named) - hidden
        named += [f"{more:,} more"] if more else []
        named += [f"{hidden:,} of holdout cases"] if hidden else []
        what = f"{counted(gaps, 'trial')} {'is' if gaps == 1 else 'are'} missing: {listed(named)}"
        raise RefusedError(f"{shown}: {what}", "go on with those shards: --resume", "gap")


def write_merged(
    improvement: Improvement, stage: str, shards: list[Shard], metas: list[JsonObject], index: StageIndex, dataset: Dataset
) -> Merged:
    """Writes observations, kept files and meta file of the merged stage, as an overwrite does: beside, then in place."""
    from contextlib import ExitStack

    selection = metas[0].get("selection") or NO_SELECTION
    cases = select_cases(dataset, selection["ids"], selection["tags"], selection["splits"])
    writer = StageWriter(
        improvement, stage, dataset, cases, merged_meta(shards, metas), existing=OVERWRITE, repetitions=metas[0]["repetitions"]
    )
    all_cases = list(dataset.cases.values())
    owners = [next(place for place, shard in enumerate(shards) if is_in_shard(case.id, shard)) for case in all_cases]
    try:
        for shard in shards:
            kept = improvement.stage_file(shard_stage(stage, shard), FILES)
            if os.path.isdir(kept):
                make_folder(writer.files_path)
                copy_tree(kept, writer.files_path)
        with ExitStack() as stack:
            paths = [improvement.stage_file(shard_stage(stage, shard)) for shard in shards]
            streams = [stack.enter_context(open_for_reading(path, block=MERGE_BLOCK)) for path in paths]
            for slot, offset in enumerate(index.offsets):
                if offset >= 0:
                    trial, place = divmod(slot, len(all_cases))
                    stream = streams[owners[place]]
                    stream.seek(offset)
                    status = index.status(all_cases[place].id, trial + 1)
                    writer.record(all_cases[place].id, trial + 1, status, bare_line(stream.readline()) + b"\n")
        writer.finish(True)
    except BaseException as error:
        writer.abandon(error)
        raise
    return Merged(len(shards), sum(index.counts().values()), index.counts())


def merged_meta(shards: list[Shard], metas: list[JsonObject]) -> JsonObject:
    """The meta document of the stage that *shards* with their *metas* become; the writer fills in the rest."""
    parts = [
        {"shard": shard.number, **{key: meta.get(key) for key in ("started_at", "finished_at", "observations")}}
        for shard, meta in zip(shards, metas, strict=True)
    ]
    stopped = next((meta["stopped"] for meta in metas if meta.get("stopped")), None)
    started_at = min(str(meta.get("started_at")) for meta in metas)
    return {**metas[0], "shard": None, "started_at": started_at, "stopped": stopped, "merged_from": parts}

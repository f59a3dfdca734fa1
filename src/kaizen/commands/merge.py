"""`kaizen merge`: makes one stage of the shards that several machines have run."""

from argparse import Namespace

from kaizen.cases.improvement import check_stage_name
from kaizen.commands.context import load_project
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.foundation.errors import EXIT_DONE, EXIT_INCOMPLETE
from kaizen.foundation.text import counted
from kaizen.runs.observation import COMPLETED
from kaizen.runs.shards import merge_shards


@command(
    "merge",
    "Makes one stage of the shards that `run --shard I/N` has written, and refuses what does not belong together.",
    [
        IMPROVEMENT,
        Argument("--stage", "S", "name of the stage", {"required": True}),
        Argument("--overwrite", "", "replace the stage that is there"),
    ],
    "kaizen merge refund --stage candidate",
)
def command_merge(args: Namespace) -> Answer:
    """Writes the merged stage; exit 4 when it has trials without usable evidence, 5 for shards that do not fit or are missing."""
    project = load_project(args.improvement)
    stage = check_stage_name(args.stage)
    merged = merge_shards(project.improvement, stage, project.dataset, args.overwrite)
    unusable = merged.lines - merged.counts.get(COMPLETED, 0)
    message = f"{stage}: {counted(merged.lines, 'trial')} of {counted(merged.shards, 'shard')}"
    message += f", {unusable:,} without usable evidence" if unusable else ""
    written = project.improvement.shown(f"{stage}.jsonl")
    data = {"stage": stage, "shards": merged.shards, "counts": merged.counts, "unusable": unusable, "files": [written]}
    code, reason = (EXIT_INCOMPLETE, "unusable_trials") if unusable else (EXIT_DONE, "merged")
    following = f"kaizen evaluate {args.improvement} --stage {stage}"
    return Answer(code, reason, message, [message, f"  written to {written}"], data, following)

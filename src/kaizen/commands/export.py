"""`kaizen export`: results as JUnit, CSV, JSON Lines or Markdown, for other programs."""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator

from kaizen.commands.context import Project, diagnose, load_project, refuse_unevaluated, require_stage
from kaizen.commands.openings import holdout_openings, record_opening
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.evaluators.stage_results import RESULTS, evaluate_stage, has_results, stage_state
from kaizen.exporters.junit import JUNIT_END, JUNIT_HEAD, junit_stage_lines, stale_suite
from kaizen.exporters.rows import StageSource, Tallied
from kaizen.exporters.tables import csv_head, csv_lines, jsonl_lines, left_out_notes, markdown_lines
from kaizen.foundation.errors import InputError, KaizenError, RefusedError, UsageError
from kaizen.foundation.files import replacing, shown_path, silence_descriptor
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed, visible_lines
from kaizen.web.review_markdown import markdown_text
from kaizen.web.review_words import hidden_sentence

EXPORT_FORMATS = ("junit", "csv", "jsonl", "markdown")


@command(
    "export",
    "Writes the results of every stage, or of one, as JUnit, CSV, JSON Lines or Markdown, for other programs.",
    [
        IMPROVEMENT,
        Argument(
            "--format",
            "KIND",
            "junit, csv (a row for each case, trial and evaluator), jsonl or markdown",
            {"choices": EXPORT_FORMATS, "required": True},
        ),
        Argument("--stage", "S", "this stage only (repeatable)", {"action": "append", "default": []}),
        Argument("--output", "FILE", "write to FILE; without it, to standard output", {"default": "-"}),
        Argument("--open-holdout", "", "also the holdout cases; the opening is recorded and shown from then on"),
    ],
    "kaizen export refund --format csv --output refund.csv\nkaizen export refund --format jsonl --stage candidate | jq .outcome",
    group="further questions",
)
def command_export(args: Namespace) -> Answer:
    """Streams; exits 0, also for stale results, which it says."""
    if args.json and args.output == "-":
        raise UsageError("--json needs --output FILE: standard output cannot hold both", "add --output FILE", "no_output")
    project = load_project(args.improvement)
    improvement = project.improvement
    stages = list(dict.fromkeys(args.stage)) or improvement.stages()
    if not stages:
        hint = f"run: kaizen run {improvement.argument()} --stage baseline -- COMMAND"
        raise InputError(f"{improvement.shown()}: no stage has been run yet", hint, "missing_stage")
    refuse_among_evidence(project, args.output)
    stale: list[str] = []
    sources = [stage_source(project, stage, args.open_holdout, stale) for stage in stages]
    if args.open_holdout:
        record_opening(improvement, "export")
    opened = hidden_sentence(0, holdout_openings(improvement))
    tallies = {stage: Tallied() for stage in stages}
    if args.output == "-":
        write_standard_output(export_texts(args.format, improvement.name, sources, tallies, (stale, opened)))
    else:
        with replacing(args.output) as stream:
            for text in export_texts(args.format, improvement.name, sources, tallies, (stale, opened)):
                stream.write(text.encode("utf-8", "replace"))
    notes = [*stale, *([opened] if opened else [])]
    notes += [f"{stage}: {note}" for stage, tally in tallies.items() for note in left_out_notes(tally)]
    if args.output == "-":
        for note in notes:
            diagnose(f"note: {note}")
        return Answer(0, "exported", "")
    path = shown_path(args.output)
    written = [f"{counted(tally.shown(), 'trial')} of {stage}" for stage, tally in tallies.items()]
    message = f"{listed(written)} written to {path}"
    data: JsonObject = {"format": args.format, "stages": {stage: tally.document() for stage, tally in tallies.items()}, "notes": notes}
    return Answer(0, "exported", message, [message, *[f"note: {note}" for note in notes]], {**data, "files": {args.format: path}})


def refuse_among_evidence(project: Project, output: str) -> None:
    """Raises RefusedError for an *output* in the improvement folder, whose files are evidence."""
    if output != "-" and os.path.dirname(os.path.realpath(output)) == os.path.realpath(project.improvement.folder):
        hint = "name a file outside; a .jsonl in there would be taken for a stage"
        raise RefusedError(f"{shown_path(output)}: the files of an improvement are evidence, exports are not", hint, "evidence_folder")


def stage_source(project: Project, stage: str, is_open: bool, stale: list[str]) -> StageSource:
    """What to export of *stage*, evaluated first when there are no results; *stale* gets what has changed since.

    Raises InputError for results that are not those that evaluate wrote.
    """
    improvement = project.improvement
    require_stage(improvement, stage)
    if not has_results(improvement, stage):
        refuse_unevaluated(project, stage)
        evaluate_stage(improvement, stage, project.dataset, project.suite)
    state = stage_state(improvement, stage, project.dataset, project.suite)
    before = len(stale)
    for code, text in state.problems:
        if code == "invalid_evidence":
            raise InputError(text, f"run: kaizen evaluate {improvement.argument()} --stage {stage}", code)
        stale.append(f"stale: {text}; run: kaizen evaluate {improvement.argument()} --stage {stage}")
    return StageSource(
        stage,
        improvement.stage_file(stage),
        improvement.stage_file(stage, RESULTS),
        project.dataset.cases,
        frozenset() if is_open else project.dataset.holdout,
        int(state.meta.get("repetitions", 1)),
        len(stale) > before,
    )


def write_standard_output(texts: Iterator[str]) -> None:
    """Writes *texts* on standard output, on a terminal with control characters made visible. Raises KaizenError when there is no room."""
    is_terminal = sys.stdout.isatty()
    try:
        sys.stdout.flush()
        for text in texts:
            shown = visible_lines(text.replace("\r\n", "\n")) if is_terminal else text
            sys.stdout.buffer.write(shown.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence_descriptor(sys.stdout.fileno())
        message = f"standard output: cannot be written: {error.strerror}"
        raise KaizenError(message, "make room, or name a file with --output", "unwritable") from None


def export_texts(
    kind: str, name: str, sources: list[StageSource], tallies: dict[str, Tallied], remarks: tuple[list[str], str]
) -> Iterator[str]:
    """The pieces of the export, in order; *remarks* are why results are stale, and on openings of the holdout."""
    stale, opened = remarks
    if kind == "csv":
        yield csv_head()
    elif kind == "junit":
        yield JUNIT_HEAD + stale_suite(name, stale)
    elif kind == "markdown":
        yield "".join(f"{part}\n\n" for part in (f"# {markdown_text(name)}", *map(markdown_text, [*stale, opened])) if part)
    for source in sources:
        tally = tallies[source.stage]
        if kind == "junit":
            yield from junit_stage_lines(source, tally, name)
        elif kind == "csv":
            yield from csv_lines(source, tally)
        elif kind == "jsonl":
            yield from jsonl_lines(source, tally)
        else:
            yield from markdown_lines(source, tally, markdown_text)
    if kind == "junit":
        yield JUNIT_END

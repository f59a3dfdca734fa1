"""`kaizen import FORMAT FILE --into NAME`: cases and checks that other tools hold."""

import os
from argparse import Namespace
from collections.abc import Callable
from typing import NamedTuple

from kaizen.cases.case import SOURCE_KINDS
from kaizen.cases.improvement import check_stage_name
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.errors import InputError, UsageError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed, visible
from kaizen.importers.destination import RECORDED_SUFFIX, check_gathered, find_destination, new_cases, prepare_cases, write_import
from kaizen.importers.gathered import APPROXIMATED, DROPPED, MAPPED, PLACES_KEPT, Gathered, count_holdout
from kaizen.importers.inspect_log import import_inspect_log
from kaizen.importers.openai_evals import EVAL_CLASSES, import_openai_evals
from kaizen.importers.promptfoo_suite import import_promptfoo, import_promptfoo_csv
from kaizen.importers.tables import import_table


class ImportFormat(NamedTuple):
    """How a format is read, and which of --map and --eval it takes."""

    read: Callable[[Namespace, Gathered], None]
    options: tuple[str, ...] = ()


IMPORT_FORMATS: dict[str, ImportFormat] = {
    "promptfoo": ImportFormat(lambda args, gathered: import_promptfoo(args.file, gathered)),
    "promptfoo-csv": ImportFormat(lambda args, gathered: import_promptfoo_csv(args.file, gathered)),
    "csv": ImportFormat(lambda args, gathered: import_table(args.file, gathered, map_pairs(args), True), ("map",)),
    "jsonl": ImportFormat(lambda args, gathered: import_table(args.file, gathered, map_pairs(args), False), ("map",)),
    "openai-evals": ImportFormat(lambda args, gathered: import_openai_evals(args.file, gathered, args.eval or "match"), ("eval",)),
    "inspect": ImportFormat(lambda args, gathered: import_inspect_log(args.file, gathered)),
}
IMPORT_MARKS = {MAPPED: "mapped", APPROXIMATED: "approximated", DROPPED: "dropped"}


def map_pairs(args: Namespace) -> list[str]:
    """The texts of all --map options."""
    return [pair for group in args.map or [] for pair in group]


@command(
    "import",
    "Brings test cases and checks from another tool, and says what maps, what is approximated and what is dropped.",
    [
        Argument("format", "FORMAT", f"one of {', '.join(IMPORT_FORMATS)}", {"choices": list(IMPORT_FORMATS), "metavar": "FORMAT"}),
        Argument("file", "FILE", "the file; nothing that it names is executed, and only data below its folder is read"),
        Argument("--into", "NAME", "a new improvement, or one that is there, which gets the cases it does not have", {"required": True}),
        Argument("--dry-run", "", "say what would be done, and write nothing", {"action": "store_true"}),
        Argument(
            "--map", "FIELD=COLUMN", "csv, jsonl: where a field of a case comes from; a column may be a JSON Pointer, a field input.city",
            {"action": "append", "nargs": "+", "default": None},
        ),
        Argument(
            "--eval", "CLASS", f"openai-evals: one of {', '.join(EVAL_CLASSES)} (match)",
            {"choices": list(EVAL_CLASSES), "default": None},
        ),
        Argument("--stage", "S", f"also write the answers that the file records to S{RECORDED_SUFFIX}, for run --replay", {"default": ""}),
        Argument("--source", "KIND", f"where the cases come from: {', '.join(SOURCE_KINDS)}", {"choices": SOURCE_KINDS, "default": None}),
    ],
    "kaizen import promptfoo promptfooconfig.yaml --into refund --dry-run\n"
    "kaizen import csv questions.csv --into refund --map input=question expected=answer\n"
    "kaizen import inspect log.json --into refund --stage baseline",
    group="further questions",
)  # fmt: skip
def command_import(args: Namespace) -> Answer:
    """Reads everything, checks everything, then writes."""
    gathered = Gathered()
    shown = shown_path(args.file)
    chosen = IMPORT_FORMATS[args.format]
    for option in ("map", "eval"):
        if getattr(args, option) and option not in chosen.options:
            raise UsageError(f"--{option} has no meaning for {args.format}", "leave it out")
    if args.stage:
        check_stage_name(args.stage)
    if not os.path.isfile(args.file):
        raise InputError(f"{shown}: does not exist or is no file", "", "missing_file")
    chosen.read(args, gathered)
    for case in gathered.cases if args.source else ():
        case["source"] = {"kind": args.source}
    check_gathered(gathered, shown)
    if args.stage and not gathered.answers:
        raise InputError(f"{shown}: records no answers, so there is nothing for --stage", "leave --stage out", "no_answers")
    destination = find_destination(args.into)
    shared = prepare_cases(gathered, destination)
    added = new_cases(gathered, destination)
    written = (
        [] if args.dry_run else write_import(gathered, destination, shared, (visible(os.path.basename(args.file)), args.format), args.stage)
    )
    folder = destination.improvement.shown()
    there = len(gathered.cases) - len(added)
    message = f"{'would import' if args.dry_run else 'imported'} {counted(len(added), 'case')} into {folder}"
    message += f"; {counted(there, 'case')} already there" if there else ""
    checks = sum(len(case.get("evaluators", ())) for case in gathered.cases)
    lines = [
        message,
        *note_lines(gathered),
        f"  checks: {counted(len(shared), 'entry', 'entries')} for all cases, {counted(checks, 'entry', 'entries')} of single cases",
    ]
    if not destination.is_new:
        lines.append("  evaluation.json is kept: its evaluators apply to the new cases as well")
    data: JsonObject = {
        "improvement": folder,
        "format": args.format,
        "dry_run": args.dry_run,
        "cases": {"read": len(gathered.cases), "added": len(added), "already_there": there, "holdout": count_holdout(gathered.cases)},
        "entries": {"shared": len(shared), "of_cases": checks},
        "answers": len(gathered.answers) if args.stage else 0,
        "files": [destination.improvement.shown(name) for name in written],
        **{kind: note_documents(gathered, kind) for kind in IMPORT_MARKS},
    }
    following = following_step(args, destination.improvement.argument(), gathered)
    return Answer(0, "dry_run" if args.dry_run else "imported", message, lines, data, following)


def note_lines(gathered: Gathered) -> list[str]:
    """The notes for people: one line for each kind of part, the dropped ones last."""
    lines = []
    for kind, mark in IMPORT_MARKS.items():
        for note, (count, places) in gathered.notes.items():
            if note.kind == kind:
                more = [f"{count - len(places):,} more"] if count > len(places) == PLACES_KEPT else []
                where = f" [{listed([*places, *more], PLACES_KEPT + 1)}]" if kind != MAPPED else ""
                lines.append(f"  {mark:<12}  {note.subject} ({count:,}){': ' + note.text if note.text else ''}{where}")
    return lines


def note_documents(gathered: Gathered, kind: str) -> list[JsonObject]:
    """The notes of *kind* as data."""
    return [
        {"what": note.subject, "count": count, **({"text": note.text} if note.text else {}), "places": places}
        for note, (count, places) in gathered.notes.items()
        if note.kind == kind
    ]


def following_step(args: Namespace, improvement: str, gathered: Gathered) -> str:
    """The command that comes next."""
    if args.dry_run:
        return "the same command without --dry-run"
    if not args.stage:
        return f"kaizen validate {improvement}, then kaizen run {improvement} --stage baseline -- COMMAND"
    trials = max((answer.get("trial", 1) for answer in gathered.answers), default=1)
    repetitions = f" --repetitions {trials}" if trials > 1 else ""
    return f"kaizen run {improvement} --stage {args.stage}{repetitions} --replay {improvement}/{args.stage}{RECORDED_SUFFIX}"

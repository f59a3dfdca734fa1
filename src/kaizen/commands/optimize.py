"""`kaizen optimize`: a program proposes new texts from feedback; none is run."""

import os
from argparse import Namespace

from kaizen.cases.components import DEFAULT_CANDIDATES, component_texts
from kaizen.cases.dataset import is_inside
from kaizen.commands.arguments import count_argument, positive_number
from kaizen.commands.context import Project, load_project
from kaizen.commands.feedback import FEEDBACK_FILE, RESEAL, STAGE_SHOWN, export_feedback, stage_to_learn_from
from kaizen.commands.openings import log_holdout_event
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.foundation.clock import utc_now
from kaizen.foundation.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_NO, RefusedError, UsageError
from kaizen.foundation.files import make_folder, read_bytes, write_file
from kaizen.foundation.jsonio import JsonObject, encode_compact, read_json_object, sha256_hex, write_json
from kaizen.foundation.process import (
    OVERFLOW,
    STOPPED,
    TIMEOUT,
    CannotStart,
    Ended,
    StopSwitch,
    heeding_signals,
    run_program,
    signal_name,
)
from kaizen.foundation.redact import environment_secrets, redact_arguments, redact_text
from kaizen.foundation.text import counted, quoted, visible
from kaizen.policy.optimizer import CopyDetector, candidate_document, candidate_name, optimizer_candidates, optimizer_request

PROPOSAL_FOLDER = "optimization"
PROPOSAL_FILE = "proposal.json"
ANSWER_LIMIT = 8 << 20  # bytes that an optimizer may print
TOLD_OF_ERRORS = 400  # characters


@command(
    "optimize",
    "Asks a program for new texts of the components, from feedback without the holdout; runs and promotes none of them.",
    [
        IMPROVEMENT,
        STAGE_SHOWN,
        Argument("--max-candidates", "N", "at most so many (default: as evaluation.json says, else 3)", {"type": count_argument}),
        Argument("--timeout", "S", "seconds for the program (default: 600)", {"type": positive_number("seconds"), "default": 600.0}),
        RESEAL,
    ],
    "kaizen optimize refund -- python examples/optimizers/rule_optimizer.py",
    group="further questions",
    rest="COMMAND [ARG…]",
)
def command_optimize(args: Namespace) -> Answer:
    """Writes the candidates and proposal.json; exits 1 when none came, 4 when the program did not end as it should."""
    if not args.rest:
        raise UsageError("there is no optimizer to start", f"write it behind '--': … {args.improvement} -- COMMAND [ARG…]", "no_command")
    project = load_project(args.improvement)
    improvement, block = project.improvement, project.evaluation.document.get("optimization")
    if not block:
        hint = 'add "optimization": {"components": [{"name": "system_prompt", "file": "../../prompts/system.txt"}]}'
        raise RefusedError("evaluation.json has no 'optimization' block, so nothing may be proposed anew", hint, "no_components")
    if is_inside(improvement.folder, os.getcwd()):
        raise UsageError("the optimizer would start inside the improvement, beside its holdout", "call this from outside the folder")
    if not is_inside(improvement.folder, improvement.path(PROPOSAL_FOLDER)):
        raise RefusedError(f"{improvement.shown(PROPOSAL_FOLDER)} leads out of the improvement", "remove the link", "outside_folder")
    components = component_texts(improvement, block)
    maximum = args.max_candidates or block.get("maximum_candidates", DEFAULT_CANDIDATES)
    stage = stage_to_learn_from(project, args.stage)
    notes = export_feedback(project, stage, args.reseal)
    request = optimizer_request(read_json_object(improvement.path(FEEDBACK_FILE)), components, maximum)
    ended = asked_optimizer(args.rest, project, encode_compact(request).encode("utf-8") + b"\n", args.timeout)
    failure = optimizer_failure(ended, args.timeout)
    if failure is not None:
        return failure
    candidates = optimizer_candidates(ended.stdout, components, maximum)
    return proposal_answer(project, stage, components, candidates, redact_arguments(args.rest, environment_secrets(os.environ)), notes)


def asked_optimizer(words: list[str], project: Project, request: bytes, timeout_seconds: float) -> Ended:
    """How the program *words* ended that got *request*. Its environment names no path of the case folder. Raises UsageError."""
    stop = StopSwitch()
    folders = {os.fsencode(path) for path in (project.improvement.folder, os.path.realpath(project.improvement.folder))}
    environment = {name: value for name, value in os.environb.items() if not any(folder in value for folder in folders)}
    try:
        with heeding_signals(stop):
            limits: JsonObject = {"timeout_seconds": timeout_seconds, "stdout_limit": ANSWER_LIMIT}
            return run_program(words, request, environment=environment, stop=stop, **limits)
    except CannotStart as error:
        raise UsageError(f"{quoted(words[0])} cannot be started: {error}", "", "no_such_program") from None


def optimizer_failure(ended: Ended, timeout_seconds: float) -> Answer | None:
    """The answer when the program did not end as it should, with the end of what it told; None when it did."""
    if ended.end == STOPPED:
        return Answer(EXIT_INTERRUPTED, "interrupted", "interrupted; nothing was written")
    if ended.end == TIMEOUT:
        reason, what = "optimizer_timeout", f"gave no answer within {timeout_seconds:g} s and was ended"
    elif ended.end == OVERFLOW:
        reason, what = "optimizer_protocol", f"printed more than {ANSWER_LIMIT >> 20} MiB"
    elif ended.exit_code:
        how = f"was killed by {signal_name(-ended.exit_code)}" if ended.exit_code < 0 else f"ended with exit code {ended.exit_code}"
        reason, what = "optimizer_failed", how
    else:
        return None
    told, _ = redact_text(ended.stderr.decode("utf-8", "replace").strip(), environment_secrets(os.environ))
    lines = [f"the optimizer {what}; no candidate was written", *([f"  it said: {visible(told[-TOLD_OF_ERRORS:], None)}"] if told else [])]
    return Answer(EXIT_INCOMPLETE, reason, lines[0], lines, {"told": told[-TOLD_OF_ERRORS:]})


def proposal_answer(
    project: Project, stage: str, components: dict[str, str], candidates: list[JsonObject], words: list[str], notes: list[str]
) -> Answer:
    """Writes each of *candidates* into a folder of its own, then proposal.json, and tells what came."""
    improvement, detector = project.improvement, CopyDetector(project.dataset, components)
    folder = improvement.path(PROPOSAL_FOLDER, "candidates")
    make_folder(folder)
    taken = [name for name in os.listdir(folder) if name.startswith("candidate-") and name[10:].isdigit()]
    first = 1 + max((int(name[10:]) for name in taken), default=0)
    entries = []
    for number, candidate in enumerate(candidates, first):
        copied = detector.copied(list(candidate["components"].values()))
        entries.append(candidate_document(number, candidate, components, copied))
        make_folder(os.path.join(folder, candidate_name(number)))
        for name, text in candidate["components"].items():
            write_file(os.path.join(folder, candidate_name(number), f"{name}.txt"), text)
    document: JsonObject = {
        "version": 1,
        "stage": stage,
        "feedback_sha256": sha256_hex(read_bytes(improvement.path(FEEDBACK_FILE))),
        "command": words,
        "components": {name: sha256_hex(text) for name, text in components.items()},
        "candidates": entries,
        "proposed_at": utc_now(),
    }
    path = improvement.path(PROPOSAL_FOLDER, PROPOSAL_FILE)
    write_json(path, document)
    names = [entry["candidate"] for entry in entries]
    log_holdout_event(improvement, "proposed", {"candidates": names, "feedback_sha256": document["feedback_sha256"]})
    message = f"{counted(len(entries), 'candidate')} proposed; nothing was run, evaluated or promoted"
    shown = improvement.shown(PROPOSAL_FOLDER, PROPOSAL_FILE)
    lines = [message, *[candidate_line(entry) for entry in entries], *notes, f"  written to {improvement.shown(PROPOSAL_FOLDER)}"]
    following = f"kaizen run {improvement.argument()} --stage NAME -- COMMAND with one of them" if entries else ""
    code, reason = (0, "proposed") if entries else (EXIT_NO, "no_candidate")
    return Answer(code, reason, message, lines, {"stage": stage, "candidates": entries, "files": {"proposal": shown}}, following)


def candidate_line(entry: JsonObject) -> str:
    """'candidate-001: system_prompt (412 characters)', and what is odd about it."""
    parts = [f"{name} ({counted(text['characters'], 'character')})" for name, text in entry["components"].items()]
    line = f"  {entry['candidate']}: {', '.join(parts)}"
    if entry["unchanged"]:
        line += "; the same text as now"
    copied = entry["memorised"]
    if copied:
        held = f" and {counted(copied['holdout_cases'], 'holdout case')}" if copied["holdout_cases"] else ""
        line += f"; MEMORISED: holds text of {counted(len(copied['cases']), 'open case')}{held}"
    return line

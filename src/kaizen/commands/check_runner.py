"""`kaizen run --check`: tries one case, shows what goes in and out, says what is wrong."""

import os
import re
from typing import NamedTuple

from kaizen.commands.table import Answer
from kaizen.foundation.errors import EXIT_DONE, EXIT_NO, UsageError
from kaizen.foundation.jsonio import JsonObject, encode_compact
from kaizen.foundation.process import CannotStart, Ended, StopSwitch, heeding_signals
from kaizen.foundation.redact import environment_secrets, redact_evidence, redact_shown
from kaizen.foundation.text import counted, duration, listed, nearest, quoted, visible, visible_lines
from kaizen.runs.bridge import PERSISTENT, PLAIN, RunRequest, check_runner
from kaizen.runs.cuts import CUT_MARGIN
from kaizen.runs.kept_files import WorkFiles
from kaizen.runs.observation import CANCELLED, COMPLETED, Attempt
from kaizen.runs.persistent import PersistentWorker
from kaizen.runs.plain import INPUT_PLACE, PlainWorker
from kaizen.runs.plan import select_cases, trial_seed
from kaizen.runs.protocol import ANSWER_FIELDS, ProtocolError, TrialRequest, answer_value, request_document
from kaizen.runs.workers import ProcessWorker, WorkFolders, passed_environment, shown_word

SHOWN = 1000  # characters of each text
ANSWER_SHAPE = 'print one JSON object: {"output": …}; what is for people belongs on standard error'
SLOW_SECONDS = 10.0
# What newcomers call the output.
OUTPUT_NAMES = ("answer", "response", "result", "text", "message", "content", "completion", "reply", "outputs", "value")
# What to do about an error, by its type.
ADVICE = {
    "no_answer": ANSWER_SHAPE,
    "not_an_object": 'wrap it: {"output": …}',
    "not_utf8": "encode what is printed as UTF-8, whatever the locale",
    "wrong_shape": "the fields and their shapes: docs/runner-protocol.md",
    "too_much_output": "print the answer alone; write large data to a file in KAIZEN_WORKDIR",
    "exit": "exit with 0 after an answer; an error of the agent is an answer too: {\"error\": {\"message\": …}}",
    "timeout": "--timeout S gives it longer; a runner must end (or with --persistent answer) by itself, without waiting for more input",
    "no_request": 'copy "request" of the request into the answer',
    "unknown_request": 'copy "request" of the request into the answer, a number',
    "duplicate_answer": "print one answer for each request",
    "closed": "a persistent runner reads until its input ends, and keeps its output open",
}


class Tried(NamedTuple):
    """A request that was tried, what came of it, and for a process of its own how that ended."""

    request: TrialRequest
    attempt: Attempt
    ended: Ended | None


def checked_runner(request: RunRequest) -> Answer:
    """What came of the first selected case; exit 0 when its answer can be used, else 1. Nothing is written."""
    if request.replay:
        raise UsageError("--check tries a command; --replay has none", "leave out one of them")
    cwd = os.path.abspath(request.cwd or os.curdir)
    notes = check_runner(request.command, cwd)
    tried = tried_requests(request, cwd, notes)
    if not tried:
        raise UsageError("the check was interrupted")
    first = tried[0]
    problems = [line for each in tried for line in trial_problems(each, request)]
    notes += [line for line in trial_notes(first, request) if line not in problems]
    is_good = all(each.attempt.status == COMPLETED for each in tried) and len(tried) == wanted_trials(request)
    message = f"case {quoted(first.request.case.id)}: " + ("the answer can be used" if is_good else "the answer cannot be used")
    lines = [message, *shown_trial(first, request), *(f"  {line}" for line in problems), *(f"  note: {line}" for line in notes)]
    data: JsonObject = {
        "case_id": first.request.case.id,
        "status": [each.attempt.status for each in tried],
        "answer": first.attempt.fields,
        "duration_ms": first.attempt.duration_ms,
        "exit_code": first.attempt.exit_code,
        "problems": problems,
        "notes": notes,
        "stderr": first.attempt.stderr,
    }
    following = "the same without --check, with --stage baseline" if is_good else ""
    masked, _ = redact_evidence(data, environment_secrets(os.environ))
    shown = [redact_shown(line) for line in lines]
    return Answer(EXIT_DONE if is_good else EXIT_NO, "usable" if is_good else "unusable", shown[0], shown, masked, following)


def wanted_trials(request: RunRequest) -> int:
    """How many trials are tried: two of a persistent runner, which must go on after the first."""
    return 2 if request.mode == PERSISTENT else 1


def tried_requests(request: RunRequest, cwd: str, notes: list[str]) -> list[Tried]:
    """The trials that were tried, of the first selected case that is not of the holdout. Raises UsageError when there is none."""
    cases = select_cases(request.dataset, list(request.ids), list(request.tags), list(request.splits))
    case = next((case for case in cases if case.id not in request.dataset.holdout), None)
    if case is None:
        raise UsageError("only holdout cases are selected, which must not be shown", "select another with --id")
    trials = [
        TrialRequest(case, request.stage, trial, wanted_trials(request), 1, trial_seed(request.seed, case.id, trial))
        for trial in range(1, wanted_trials(request) + 1)
    ]
    tried: list[Tried] = []
    stop = StopSwitch()
    try:
        with heeding_signals(stop), WorkFolders() as folders:
            setting = (request.command, cwd, request.timeout_seconds, folders, stop)
            if request.mode == PERSISTENT:
                talker = PersistentWorker(*setting, notes=notes)
                talker.environment = passed_environment(request.environment)
                left = iter(trials)
                talker.answer_all(lambda _: next(left, None), lambda each, attempt: tried.append(Tried(each, attempt, None)), refuse_start)
                talker.close()
            else:
                worker = PlainWorker(*setting) if request.mode == PLAIN else ProcessWorker(*setting)
                worker.environment, worker.watches_input = passed_environment(request.environment), True
                worker.files = WorkFiles(request.workspace, (), "", os.path.join(folders.path, "workspace"))
                tried.append(Tried(trials[0], worker.answer(trials[0]), worker.ended))
    except CannotStart as error:
        message = f"{shown_word(request.command[0])} cannot be started: {error}"
        raise UsageError(message, "try the command by itself", "cannot_start") from None
    finally:
        stop.close()
    return [each for each in tried if each.attempt.status != CANCELLED]


def refuse_start(error: CannotStart) -> Attempt:
    """Raises *error*."""
    raise error


def shown_trial(tried: Tried, request: RunRequest) -> list[str]:
    """What went in and what came out."""
    attempt, ended = tried.attempt, tried.ended
    sent: object = tried.request.case.document["input"] if request.mode == PLAIN else request_document(tried.request)
    took = "" if attempt.duration_ms is None else f" after {duration(attempt.duration_ms / 1000)}"
    end = f", exit code {attempt.exit_code}" if attempt.exit_code is not None else ""
    lines = [f"  {attempt.status}{took}{end}", *shown_text("sent", sent if isinstance(sent, str) else encode_compact(sent))]
    printed = ended.stdout.decode("utf-8", "replace") if ended else (attempt.error or {}).get("stdout_excerpt", "")
    lines += shown_text("printed", printed)
    lines += shown_text("on standard error", attempt.stderr)
    recorded = {key: value for key, value in attempt.fields.items() if key != "log"}
    return lines + (shown_text("recorded", encode_compact(recorded)) if recorded else [])


def shown_text(what: str, text: str) -> list[str]:
    """*text* under the heading *what*, indented, masked, cut, safe to print; nothing when it is empty."""
    if not text.strip():
        return []
    cut = f"… ({len(text) - SHOWN:,} more characters)" if len(text) > SHOWN else ""
    masked = redact_shown(text[: SHOWN + CUT_MARGIN])
    return [f"  {what}:", *(f"    {line}" for line in (visible_lines(masked[:SHOWN]).rstrip("\n") + cut).split("\n"))]


def trial_problems(tried: Tried, request: RunRequest) -> list[str]:
    """What is wrong with a trial, and what to do about it."""
    attempt, ended = tried.attempt, tried.ended
    if attempt.error is None:
        return []
    kind, stdout = attempt.error["type"], ended.stdout if ended else b""
    problems, advice = [visible(attempt.error["message"], 300)], []
    if kind == "not_json":
        looks_python = re.match(r"\s*\{\s*'", stdout.decode("utf-8", "replace").rpartition("\n")[2] or stdout.decode("utf-8", "replace"))
        advice.append(
            "that is how Python shows a dict; print(json.dumps(answer)) prints JSON"
            if looks_python
            else f"{ANSWER_SHAPE}, or use --plain for a program that prints its answer as text"
        )
    elif kind == "no_output":
        advice += wrong_keys(stdout)
    elif attempt.error["class"] in ("runner", "protocol", "timeout") and kind in ADVICE:
        advice.append(ADVICE["closed" if kind == "exit" and request.mode == PERSISTENT else kind])
    if kind in ("no_answer", "not_json") and '"output"' in attempt.stderr:
        advice.append("the answer seems to have gone to standard error; print it on standard output")
    if ended and ended.unread and not reads_arguments(request):
        problems.append(f"{counted(ended.unread, 'byte')} of the request were not read")
        advice.append("read standard input to its end, or its first line")
    return [*(f"wrong: {line}" for line in problems), *(f"hint: {line}" for line in advice)]


def trial_notes(tried: Tried, request: RunRequest) -> list[str]:
    """What is not wrong but may not be meant."""
    attempt = tried.attempt
    notes = [str(note) for note in attempt.fields.get("notes", ())]
    log = attempt.fields.get("log", "")
    if log:
        before = counted(log.count("\n") + 1, "line")
        notes.append(f"{before} on standard output before the answer, kept as log; what is for people belongs on standard error")
    if attempt.status == COMPLETED and attempt.fields.get("output") in (None, ""):
        notes.append("the output is empty")
    if attempt.error is None and tried.ended and tried.ended.unread and not reads_arguments(request):
        notes.append("nothing or not all of the request was read, so the answer cannot depend on the case")
    seconds = (attempt.duration_ms or 0) / 1000
    if seconds >= SLOW_SECONDS:
        number = len(request.dataset.cases)
        notes.append(f"at this pace {counted(number, 'case')} take {duration(seconds * number)} with one job; see --jobs and --persistent")
    return notes


def reads_arguments(request: RunRequest) -> bool:
    """True when the input goes into the arguments, so that nothing is to be read."""
    return request.mode == PLAIN and any(INPUT_PLACE.search(os.fsencode(word)) for word in request.command[1:])


def wrong_keys(stdout: bytes) -> list[str]:
    """What the keys of an answer without output may have been meant to be."""
    try:
        answer, _, _ = answer_value(stdout)
    except ProtocolError:
        return []
    found = []
    for key in answer:
        if key not in ANSWER_FIELDS:
            near = "output" if key.lower() in OUTPUT_NAMES else nearest(key, ANSWER_FIELDS)
            if near:
                found.append(f"key {quoted(key)}: did you mean '{near}'?")
    return found or [f"put what the agent answered under \"output\"; known keys are {listed(sorted(ANSWER_FIELDS), 20)}"]

"""The evaluators `command` and `program`: checks that start a program of the user's.

They run only with --allow-programs, since evaluating a folder that came from elsewhere must not
start anything by itself. What they start stands in evaluation.json and takes nothing from a
case. What came of it is brought to the check in the view's memo (outside.py).
"""

import os
from typing import Any, NamedTuple

from kaizen.evaluators.judge import REASON_SHOWN
from kaizen.evaluators.outcomes import ERROR, FAIL, NOT_APPLICABLE, PASS, ConfigurationError, NotMeasurable, Outcome, decided, errored
from kaizen.evaluators.predicates import Predicate, compile_predicate
from kaizen.evaluators.registry import ABSENT, REQUIRED, Check, Parameter, View, evaluator, is_json_number
from kaizen.foundation.errors import InputError
from kaizen.foundation.files import copy_file, make_folder
from kaizen.foundation.jsonio import JsonError, JsonObject, encode_compact, fingerprint, json_type, parse_json
from kaizen.foundation.process import EXITED, OVERFLOW, STOPPED, CannotStart, run_program, signal_name
from kaizen.foundation.redact import environment_secrets, redact_evidence, redact_text
from kaizen.foundation.text import listed, quoted, visible
from kaizen.runs.crew import Toolbox
from kaizen.runs.kept_files import found_files, json_name, kept_folder
from kaizen.runs.workers import passed_environment, remove_work_folder

PROGRAM_PROTOCOL = "1.0"
PROGRAM_OUTPUT_LIMIT = 1 << 20  # bytes of standard output
PROGRAM_ERRORS_LIMIT = 64 << 10  # bytes kept of the end of standard error
VALUE_LIMIT = 16_000  # characters of value and evidence of an outcome
TAIL_SHOWN = 2000  # characters of what a failed program printed
MAX_PROGRAM_SECONDS = 86_400
NOT_ALLOWED = "programs_not_allowed: this entry starts a program; evaluate does that only with --allow-programs"
FOLDER_SHOWN = "$KAIZEN_WORKDIR"
IMPROVEMENT_WORD = "{improvement}"
STARTING = [
    Parameter(
        "argv", "argv", REQUIRED,
        "the program and its arguments, started without a shell; {improvement} in one is the folder of the improvement",
    ),
    Parameter("timeout", "number", 60, "seconds until it is ended, with all that it started"),
    Parameter("env", "list", [], "names of variables that it gets beside PATH, HOME, TMPDIR, LANG, LC_*", may_be_empty=True),
]  # fmt: skip


class ProgramPlace(NamedTuple):
    """Where programs run: the folder of the improvement, and that of the files kept of the stage's trials."""

    improvement: str
    files_path: str


class ProgramEnd(NamedTuple):
    """What came of a program: its exit code and output; or a `problem` with its code, when there is nothing to look at."""

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    problem: str = ""
    is_measurable: bool = True  # the problem is one of the entry, not of what it looks at


class ProgramQuestion(NamedTuple):
    """A program to be started for one observation: its key in the memo, and what starts it."""

    key: str
    check: "ProgramCheck"
    view: View


class ProgramCheck:
    """What `command` and `program` have in common: a program, its limits, what it works on."""

    needs_files = True

    def __init__(self, settings: JsonObject) -> None:
        self.argv: list[str] = settings["argv"]
        if not self.argv or not self.argv[0]:
            raise ConfigurationError("/argv", "names no program")
        for index, word in enumerate(self.argv):
            if "\0" in word:
                raise ConfigurationError(f"/argv/{index}", "holds a NUL, which no argument can")
        for index, name in enumerate(settings["env"]):
            if not isinstance(name, str) or not name or "=" in name or "\0" in name:
                raise ConfigurationError(f"/env/{index}", "is no name of a variable", "values are never given here")
        if not 0 < settings["timeout"] <= MAX_PROGRAM_SECONDS:
            raise ConfigurationError("/timeout", f"timeout is not a number of seconds above 0, at most {MAX_PROGRAM_SECONDS:,}")
        self.timeout_seconds = float(settings["timeout"])
        self.environment_names: list[str] = settings["env"]
        self.folder: str = settings.get("cwd", "")
        if os.path.isabs(self.folder) or ".." in self.folder.split("/"):
            raise ConfigurationError("/cwd", "leads out of the copy of the trial's files", "name a folder in it, such as 'app'")
        self.key = "program " + fingerprint({name: value for name, value in settings.items() if name in ("argv", "cwd", "timeout", "env")})

    def questions(self, view: View) -> list[ProgramQuestion]:
        """The one thing to be done for the observation."""
        return [ProgramQuestion(f"{self.key} {type(self).__name__}", self, view)]

    def ended(self, view: View) -> ProgramEnd | None:
        """What came of it; None when it was not allowed. Raises NotMeasurable."""
        found: ProgramEnd | None = view.memo.get(f"{self.key} {type(self).__name__}")
        if found is not None and found.problem and not found.is_measurable:
            raise NotMeasurable(found.problem)
        return found

    def run(self, tools: Toolbox, place: ProgramPlace, view: View) -> ProgramEnd | None:
        """Starts it on a temporary copy of the files that were kept of the trial; None when the user stopped it."""
        folder = tools.folders.make()
        try:
            source = kept_folder(place.files_path, view.observation["case_id"], view.observation["trial"])
            problem = copied_files(source, folder, view.observation.get("files"), self.needs_files)
            return ProgramEnd(problem=problem, is_measurable=False) if problem else self.run_in(folder, tools, place, view)
        finally:
            remove_work_folder(folder)

    def run_in(self, folder: str, tools: Toolbox, place: ProgramPlace, view: View) -> ProgramEnd | None:
        """Starts it with the work folder *folder*."""
        cwd = self.start_folder(folder, place)
        if not os.path.isdir(cwd):
            return ProgramEnd(problem=f"the trial kept no folder {quoted(self.folder)}", is_measurable=False)
        workdir = b"KAIZEN_WORKDIR=" + os.fsencode(folder)
        environment = passed_environment((*self.environment_names, "PATH"))
        try:
            ended = run_program(
                [word.replace(IMPROVEMENT_WORD, place.improvement) for word in self.argv],
                self.stdin(view),
                cwd=cwd,
                environment={**environment, b"KAIZEN_WORKDIR": os.fsencode(folder)},
                timeout_seconds=self.timeout_seconds,
                stdout_limit=PROGRAM_OUTPUT_LIMIT,
                stderr_limit=PROGRAM_ERRORS_LIMIT,
                stop=tools.stop,
                mark=workdir,
            )
        except CannotStart as error:
            return ProgramEnd(problem=f"cannot_start: {visible(self.argv[0])} cannot be started: {error}")
        if ended.end == STOPPED:
            return None
        if ended.end != EXITED:
            limit = f"{PROGRAM_OUTPUT_LIMIT >> 20} MiB on standard output" if ended.end == OVERFLOW else f"{self.timeout_seconds:g} s"
            return ProgramEnd(problem=f"the program was ended: it took more than {limit}", is_measurable=False)
        stdout, stderr = (shown_output(raw, folder) for raw in (ended.stdout, ended.stderr))
        return ProgramEnd(ended.exit_code or 0, stdout, stderr)

    def start_folder(self, folder: str, place: ProgramPlace) -> str:
        """Where it is started, its work folder being *folder*."""
        return os.path.join(folder, self.folder)

    def stdin(self, view: View) -> bytes:
        """What it gets on standard input: nothing."""
        return b""


def copied_files(source: str, folder: str, files: Any, is_needed: bool) -> str:
    """Why the files kept in *source* cannot be looked at; '' after copying them to *folder*, each being the one that *files* tells of."""
    told = {name: entry for name, entry in files.items() if isinstance(entry, dict)} if isinstance(files, dict) else {}
    if not os.path.isdir(source):
        return "no files of this trial were kept; run with --workspace and --keep" if is_needed else ""
    there = set()
    try:
        for found in found_files(source):
            name = json_name(found.name)
            entry = told.get(name)
            if entry is None or os.path.islink(found.path) or not os.path.isfile(found.path):
                continue  # a folder, or what the observation does not tell of
            path = os.path.join(folder, found.name)
            make_folder(os.path.dirname(path))
            sha256, _ = copy_file(found.path, path)
            if sha256 != entry.get("sha256"):
                return f"{quoted(name)} is not the file that was kept of this trial"
            there.add(name)
    except InputError as error:
        return f"the kept files cannot be copied: {error.message}"
    lost = [name for name, entry in told.items() if "sha256" in entry and name not in there]
    return f"not kept of this trial: {listed(map(quoted, lost), 3)}" if lost else ""


def shown_output(raw: bytes, folder: str) -> str:
    """What a program printed, as text in which the temporary *folder* has a name that is the same each time."""
    text = raw.decode("utf-8", "replace")
    for path in dict.fromkeys((os.path.realpath(folder), folder)):
        text = text.replace(path, FOLDER_SHOWN)
    return text


def output_tail(text: str) -> str:
    """The end of what a program printed, masked."""
    return redact_text(text, environment_secrets(os.environ))[0][-TAIL_SHOWN:]


def exit_text(code: int) -> str:
    """'exit code 1', 'killed by signal 9 (SIGKILL)'."""
    return f"killed by {signal_name(-code)}" if code < 0 else f"exit code {code}"


# --- command -----------------------------------------------------------------------------


class CommandCheck(ProgramCheck):
    """Looks at how the program ended and what it printed."""

    def __init__(self, settings: JsonObject) -> None:
        super().__init__(settings)
        self.exit: int = settings["exit"]
        self.streams: list[tuple[str, Predicate]] = []
        for name in ("stdout", "stderr"):
            if settings[name] is not ABSENT:
                self.streams.append((name, compile_predicate(settings[name], f"/{name}")))

    def __call__(self, view: View) -> Outcome:
        ended = self.ended(view)
        if ended is None or ended.problem:
            return errored(ended.problem if ended else NOT_ALLOWED)
        wrong = [] if ended.exit_code == self.exit else [f"{exit_text(ended.exit_code)}, not {self.exit}"]
        printed = {"stdout": ended.stdout, "stderr": ended.stderr}
        wrong += [f"{name} is not as asked" for name, predicate in self.streams if not predicate.holds(printed[name].removesuffix("\n"))]
        if not wrong:
            return decided(True, exit_text(ended.exit_code), {"exit": ended.exit_code})
        tails = {name: output_tail(text) for name, text in printed.items()}
        last = next((lines[-1] for lines in (tails[name].strip().splitlines() for name in ("stderr", "stdout")) if lines), "")
        reason = "; ".join(wrong) + (f": {visible(last, 200)}" if last else "")
        return decided(False, reason, {"exit": ended.exit_code, **{name: tail for name, tail in tails.items() if tail}})


@evaluator(
    "command",
    1,
    "A command, run on a copy of the files that the trial left, ends as asked.",
    [
        *STARTING,
        Parameter("cwd", "text", "", "folder in the copy in which it is started"),
        Parameter("exit", "integer", 0, "the exit code that passes; a signal never does"),
        Parameter("stdout", "any", ABSENT, "a text or predicate that holds of standard output without its last line end"),
        Parameter("stderr", "any", ABSENT, "the same of the end of standard error"),
    ],
    example={
        "entry": {"id": "tests_pass", "type": "command", "argv": ["python", "-m", "unittest", "-q"], "timeout": 120},
        "observation": {"output": "Done.", "files": {}},
        "outcome": "error",
    },
    selects=False,
)
def evaluate_command(settings: JsonObject) -> Check:
    """Needs --allow-programs, a run with --keep, and argv in evaluation.json. What ran too long or printed more than 1 MiB follows
    `on_missing`. After a failure the value holds the end of what was printed, so a program that prints times gives other results
    each time."""
    return CommandCheck(settings)


# --- program -----------------------------------------------------------------------------


class ProgramOutcomeCheck(ProgramCheck):
    """Takes what the program answers for the outcome."""

    needs_files = False

    def start_folder(self, folder: str, place: ProgramPlace) -> str:
        return place.improvement

    def stdin(self, view: View) -> bytes:
        case = {name: value for name, value in view.case.items() if name != "evaluators"}
        return encode_compact({"protocol": PROGRAM_PROTOCOL, "case": case, "observation": view.observation}).encode("utf-8") + b"\n"

    def __call__(self, view: View) -> Outcome:
        ended = self.ended(view)
        if ended is None or ended.problem:
            return errored(ended.problem if ended else NOT_ALLOWED)
        if ended.exit_code:
            last = output_tail(ended.stderr).strip().splitlines()[-1:]
            return errored(f"program_failed: {exit_text(ended.exit_code)}{f': {visible(last[0], 200)}' if last else ''}")
        return program_outcome(ended.stdout)


def program_outcome(stdout: str) -> Outcome:
    """The outcome that *stdout* is, one JSON object; an error when it is none."""
    try:
        answer = parse_json(stdout.strip())
    except JsonError as error:
        return errored(f"program_protocol: standard output is not exactly one JSON object: {error.message}")
    problem = outcome_problem(answer)
    if problem:
        return errored(f"program_protocol: {problem}")
    answer = redact_evidence(answer, environment_secrets(os.environ))[0]
    status, score = answer["status"], answer.get("score")
    if status in (PASS, FAIL) and score is None:
        score = float(status == PASS)
    evidence = tuple(place for place in answer.get("evidence") or () if isinstance(place, dict))
    score = score if status in (PASS, FAIL) else None
    reason = visible(str(answer.get("reason") or "").strip(), REASON_SHOWN) or f"the program says {status}"
    return Outcome(status, score, reason, answer.get("value"), evidence)


def outcome_problem(answer: Any) -> str:
    """What is wrong with the *answer* of a program; '' when it is an outcome."""
    if not isinstance(answer, dict):
        return f"the answer is a JSON {json_type(answer)}, not an object"
    if answer.get("status") not in (PASS, FAIL, ERROR, NOT_APPLICABLE):
        return "status is none of pass, fail, error, not_applicable"
    score = answer.get("score")
    if score is not None and not (is_json_number(score) and 0 <= score <= 1):
        return "score is not a number from 0 to 1"
    if not isinstance(answer.get("reason"), (str, type(None))) or not isinstance(answer.get("evidence"), (list, type(None))):
        return "reason is no text, or evidence is no list"
    if len(encode_compact([answer.get("value"), answer.get("evidence")])) > VALUE_LIMIT:
        return f"value and evidence have more than {VALUE_LIMIT:,} characters"
    return ""


@evaluator(
    "program",
    1,
    "A program of your own gets case and observation as JSON and answers with an outcome as JSON.",
    [*STARTING],
    example={
        "entry": {"id": "own_rule", "type": "program", "argv": ["python", "checks/own_rule.py"]},
        "observation": {"output": "Done."},
        "outcome": "error",
    },
    selects=False,
)
def evaluate_program(settings: JsonObject) -> Check:
    """Needs --allow-programs, and argv in evaluation.json. It starts in the improvement's folder and gets {"protocol": "1.0", "case",
    "observation"}; files that were kept of the trial are copied to KAIZEN_WORKDIR. Its answer is exactly one JSON object: {"status":
    "pass", "fail", "error" or "not_applicable", "score", "value", "reason", "evidence"}, all but status optional. What ran too long
    or printed more than 1 MiB follows `on_missing`; an exit code other than 0 is an error."""
    return ProgramOutcomeCheck(settings)

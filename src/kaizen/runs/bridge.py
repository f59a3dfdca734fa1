"""The bridge: has the trials of a stage answered by workers of any kind, and records them.

`run_stage` is what `kaizen run`, `test` and `demo` call. The main thread waits, shows
progress and syncs; each of `jobs` threads takes the next trial, has its worker answer it
and appends the observation. The first interrupt stops the dispatch and ends the running
trials, the second kills them; what has finished is on disk either way.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kaizen.cases.case import Case
from kaizen.cases.dataset import Dataset
from kaizen.cases.improvement import Improvement, check_stage_name
from kaizen.foundation.clock import monotonic_seconds, utc_now
from kaizen.foundation.errors import UsageError
from kaizen.foundation.identity import VERSION
from kaizen.foundation.jsonio import JsonObject, without_surrogates
from kaizen.foundation.locks import FileLock
from kaizen.foundation.process import CannotStart, StopSwitch, heeding_signals
from kaizen.foundation.progress import Progress
from kaizen.foundation.redact import environment_secrets, redact_arguments
from kaizen.foundation.text import counted, listed, quoted, visible
from kaizen.runs.commit import commit_of
from kaizen.runs.journal import REFUSE, StageIndex, StageWriter
from kaizen.runs.observation import (
    CANCELLED,
    COMPLETED,
    STATUSES,
    Attempt,
    error_document,
    file_digest,
    masked_observation,
    observation_document,
)
from kaizen.runs.plan import select_cases, trial_seed
from kaizen.runs.protocol import TrialRequest
from kaizen.runs.replay import Recording
from kaizen.runs.workers import ProcessWorker, ReplayWorker, Worker, WorkFolders, check_command, shown_word

TICK_SECONDS = 0.1
MAX_EXAMPLES = 3  # of errors, with different messages


class RunRequest(NamedTuple):
    """What is to be run. *command* starts the runner in the folder *cwd* ('': the current one), or *replay* is a file of answers.

    *repetitions* 0 is as the stage has them, else 1. *existing* is one of the words of journal.py for a stage that is there.
    """

    improvement: Improvement
    stage: str
    dataset: Dataset
    seed: int
    command: list[str]
    cwd: str = ""
    replay: str = ""
    repetitions: int = 0
    jobs: int = 1
    timeout_seconds: float = 300
    existing: str = REFUSE
    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    progress: str = "auto"


class RunSummary(NamedTuple):
    """What came of a run.

    `selected` trials were asked for of `planned` (all cases × repetitions), `ran` in this run; `counts` has the
    statuses of those that have a line. `unusable` have no completed observation. `examples` tells of a few
    errors, without anything of holdout cases; `notes` holds what the user should know. After an interrupt
    `is_beside` says that the old stage is still in place and this run's trials stand beside it.
    """

    stage: str
    path: str
    planned: int
    selected: int
    ran: int
    counts: dict[str, int]
    unusable: int
    examples: list[str]
    notes: list[str]
    is_interrupted: bool
    is_beside: bool
    seconds: float


def run_stage(request: RunRequest) -> RunSummary:
    """Runs what *request* asks for and writes observations and meta file of its stage.

    Raises UsageError when nothing can be run, RefusedError when the stage is there or in use, InputError for
    the disk. A trial without usable evidence is no failure of the run: it is counted.
    """
    check_stage_name(request.stage)
    cases = select_cases(request.dataset, list(request.ids), list(request.tags), list(request.splits))
    cwd = os.path.abspath(request.cwd or os.curdir)
    notes = [] if request.replay else check_runner(request.command, cwd)
    meta = meta_document(request, cwd)
    stage = request.stage
    with FileLock(request.improvement.stage_file(stage, ".lock"), f"stage '{stage}'"):
        writer = StageWriter(
            request.improvement, stage, request.dataset, cases, meta, existing=request.existing, repetitions=request.repetitions
        )
        writer.notes += notes
        stop = StopSwitch()
        try:
            with heeding_signals(stop):
                return Dispatch(request, writer, stop, cwd).run()
        finally:
            stop.close()


def check_runner(command: list[str], cwd: str) -> list[str]:
    """Notes about the command. Raises UsageError when it cannot be started here."""
    if os.name == "nt":
        raise UsageError("kaizen run starts programs in a way that needs Linux or macOS", "use it inside WSL")
    if not os.path.isdir(cwd):
        raise UsageError(f"--cwd {quoted(cwd)} is no folder; nothing was run")
    return check_command(command, cwd)


def meta_document(request: RunRequest, cwd: str) -> JsonObject:
    """The meta document of a run that begins; the writer fills in what comes of it."""
    replay = request.replay
    selectors = {"ids": list(request.ids), "tags": list(request.tags), "splits": list(request.splits)}
    folder = request.improvement.folder
    return {
        "version": 1,
        "stage": request.stage,
        "command": None if replay else redact_arguments(without_surrogates(request.command), environment_secrets(os.environ)),
        "mode": "replay" if replay else "process",
        "cwd": None if replay else without_surrogates(os.path.relpath(os.path.realpath(cwd), os.path.realpath(folder))),
        "repetitions": 0,
        "selection": selectors if any(selectors.values()) else None,
        "seed": request.seed,
        "cases": 0,
        "planned": 0,
        "selected": 0,
        "dataset_fingerprint": request.dataset.fingerprint,
        "commit": commit_of(cwd, folder),
        "timeout_seconds": None if replay else request.timeout_seconds,
        "jobs": request.jobs,
        "started_at": utc_now(),
        "finished_at": None,
        "engine": VERSION,
        "complete": False,
        "counts": {},
        "observations": None,
        "replayed_from": {"file": os.path.basename(replay), "sha256": file_digest(replay)} if replay else None,
    }


class Dispatch:
    """One run: hands the trials to the workers and records what they answer."""

    def __init__(self, request: RunRequest, writer: StageWriter, stop: StopSwitch, cwd: str) -> None:
        import threading

        self.request, self.writer, self.stop, self.cwd = request, writer, stop, cwd
        self.selected = len(writer.cases) * writer.repetitions
        self.pending = sum(1 for _ in self.pending_trials())
        self.trials = self.pending_trials()
        self.lock = threading.Lock()  # around trials, writer and the counters
        self.all_done = threading.Event()
        self.working = 0
        self.ran = 0
        self.errors = 0
        self.has_started = False
        self.failure: BaseException | None = None
        self.examples: dict[str, str] = {}
        self.secrets = environment_secrets(os.environ)
        self.masked: dict[str, int] = {}  # observations in which a secret of this family was masked

    def pending_trials(self) -> Iterator[tuple[Case, int]]:
        """(case, trial) of what has no line yet, in the order of a run."""
        return ((case, trial) for case, trial in self.writer.selected_trials() if not self.writer.is_done(case.id, trial))

    def run(self) -> RunSummary:
        """Runs all pending trials and finishes the stage's files. Raises what made that impossible."""
        started = monotonic_seconds()
        try:
            if self.pending:
                with self.workers() as make_worker, Progress(f"run {self.request.stage}", self.pending, self.request.progress) as progress:
                    self.work_off(make_worker, progress)
            if self.masked:
                found = listed(f"{family} in {counted(number, 'trial')}" for family, number in sorted(self.masked.items()))
                self.writer.notes.append(f"secrets were masked before they were written: {found}")
            is_interrupted = self.ran < self.pending
            self.writer.finish(not is_interrupted)
        except BaseException as error:
            self.writer.abandon(error)
            raise
        counts: dict[str, int] = {}
        for case, trial in self.writer.selected_trials():
            status = self.writer.index.status(case.id, trial)
            counts[status] = counts.get(status, 0) + 1
        return RunSummary(
            stage=self.request.stage,
            path=self.writer.path if is_interrupted else self.writer.target,
            planned=len(self.writer.index.statuses),
            selected=self.selected,
            ran=self.ran,
            counts={status: counts[status] for status in STATUSES if status in counts},
            unusable=self.selected - counts.get(COMPLETED, 0),
            examples=list(self.examples.values()),
            notes=self.writer.notes,
            is_interrupted=is_interrupted,
            is_beside=is_interrupted and self.writer.is_beside,
            seconds=monotonic_seconds() - started,
        )

    @contextmanager
    def workers(self) -> Iterator[Callable[[], Worker]]:
        """What makes a worker for a thread; a further way to run is a further branch here."""
        request = self.request
        if request.replay:
            recording = Recording(request.replay, StageIndex(request.dataset.cases, self.writer.repetitions))
            self.writer.notes += recording.notes
            yield lambda: ReplayWorker(recording)
        else:
            with WorkFolders() as folders:
                yield lambda: ProcessWorker(request.command, self.cwd, request.timeout_seconds, folders, self.stop)

    def work_off(self, make_worker: Callable[[], Worker], progress: Progress) -> None:
        """Has threads answer the pending trials, and waits for them. Raises what one of them could not go on with."""
        import threading

        jobs = 1 if self.request.replay else min(self.request.jobs, self.pending)
        self.working = jobs
        threads = [threading.Thread(target=self.work, args=(make_worker, number)) for number in range(1, jobs + 1)]
        for thread in threads:
            thread.start()
        try:
            while not self.all_done.wait(TICK_SECONDS):
                with self.lock:
                    self.writer.sync_if_due()
                progress.report(self.ran, self.errors)
        finally:
            self.stop_unless_done()
            for thread in threads:
                thread.join()
        progress.report(self.ran, self.errors)
        if self.failure is not None:
            raise self.failure

    def stop_unless_done(self) -> None:
        """Ends the threads early when the main thread leaves its loop with an error."""
        if not self.all_done.is_set():
            self.stop.request()

    def work(self, make_worker: Callable[[], Worker], number: int) -> None:
        """What a thread does; a failure is kept for the main thread and ends the others."""
        try:
            worker = make_worker()
            try:
                self.answer_trials(worker, number)
            finally:
                worker.close()
        except BaseException as error:
            self.failure = self.failure or error
            self.stop.request()
        finally:
            with self.lock:
                self.working -= 1
                if not self.working:
                    self.all_done.set()

    def answer_trials(self, worker: Worker, number: int) -> None:
        """Takes trials until there are none or the run is stopped."""
        while not self.stop.is_requested:
            with self.lock:
                following = next(self.trials, None)
            if following is None:
                return
            case, trial = following
            attempt = self.attempt(worker, case, trial)
            if attempt.status == CANCELLED:
                return
            document = observation_document(case.id, trial, case.input_fingerprint, attempt, number)
            document, line = masked_observation(document, self.secrets)
            with self.lock:
                self.writer.record(case.id, trial, attempt.status, line + b"\n")
                self.ran += 1
                for family in {hit["family"] for hit in document.get("redacted", ())}:
                    self.masked[family] = self.masked.get(family, 0) + 1
                if attempt.error is not None:
                    self.errors += 1
                    self.note_example(case, trial, document["error"])

    def attempt(self, worker: Worker, case: Case, trial: int) -> Attempt:
        """One attempt at a trial. Raises UsageError when not even the first one can be started."""
        seed = trial_seed(self.request.seed, case.id, trial)
        try:
            attempt = worker.answer(TrialRequest(case, self.request.stage, trial, self.writer.repetitions, 1, seed))
        except CannotStart as error:
            if not self.has_started:
                message = f"{shown_word(self.request.command[0])} cannot be started: {error}; nothing was run"
                raise UsageError(message, "try the command by itself", "cannot_start") from None
            message = f"the runner could not be started: {error}"
            return Attempt("error", {}, error_document("environment", "cannot_start", message), utc_now())
        self.has_started = True
        return attempt

    def note_example(self, case: Case, trial: int, error: JsonObject) -> None:
        """Keeps an error to tell of, if none with this message is kept; of a holdout case only its class."""
        is_hidden = case.id in self.request.dataset.holdout
        what = "" if is_hidden else visible(error["message"])
        if len(self.examples) < MAX_EXAMPLES:
            who = "a holdout case" if is_hidden else f"case {quoted(case.id)}, trial {trial}"
            self.examples.setdefault(f"{error['class']}: {what}", f"{who}: {error['class']}" + (f": {what}" if what else ""))

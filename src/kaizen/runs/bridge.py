"""The bridge: has the trials of a stage answered by workers of any kind, and records them.

`run_stage` is what `kaizen run`, `test` and `demo` call. The main thread waits, shows
progress and syncs; each of `jobs` threads takes the next trial, has its worker answer it
and appends the observation. The first interrupt stops the dispatch and ends the running
trials, the second kills them; what has finished is on disk either way.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import NamedTuple

from kaizen.cases.case import Case
from kaizen.cases.dataset import Dataset
from kaizen.cases.improvement import Improvement, check_stage_name
from kaizen.foundation.clock import monotonic_seconds, utc_now
from kaizen.foundation.errors import UsageError
from kaizen.foundation.identity import VERSION
from kaizen.foundation.jsonio import JsonObject, encode_compact, without_surrogates
from kaizen.foundation.locks import FileLock
from kaizen.foundation.process import CannotStart, StopSwitch, heeding_signals
from kaizen.foundation.progress import Progress
from kaizen.foundation.text import counted, quoted, visible
from kaizen.runs.commit import commit_of
from kaizen.runs.journal import REFUSE, StageIndex, StageWriter
from kaizen.runs.observation import CANCELLED, COMPLETED, NOT_RUN, STATUSES, Attempt, error_document, file_digest, observation_document
from kaizen.runs.persistent import SILENT_STARTS, PersistentWorker
from kaizen.runs.plain import PlainWorker
from kaizen.runs.plan import select_cases, trial_seed
from kaizen.runs.protocol import TrialRequest
from kaizen.runs.replay import Recording
from kaizen.runs.workers import ProcessWorker, ReplayWorker, Worker, WorkFolders, check_command

TICK_SECONDS = 0.1
PROCESS, PERSISTENT, PLAIN, REPLAY = "process", "persistent", "plain", "replay"  # ways to run, as the meta file names them
MAX_EXAMPLES = 3  # of errors, with different messages


class RunRequest(NamedTuple):
    """What is to be run. *command* starts the runner in the folder *cwd* ('': the current one), in one of the modes process, persistent and
    plain; or *replay* is a file of answers.

    *repetitions* 0 is as the stage has them, else 1. *existing* is one of the words of journal.py for a stage that is there.
    """

    improvement: Improvement
    stage: str
    dataset: Dataset
    seed: int
    command: list[str]
    cwd: str = ""
    replay: str = ""
    mode: str = PROCESS
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
        "command": None if replay else without_surrogates(request.command),
        "mode": REPLAY if replay else request.mode,
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


def runner_worker(request: RunRequest, cwd: str, folders: WorkFolders, stop: StopSwitch, notes: list[str]) -> ProcessWorker:
    """A worker that runs the command of *request* in its mode, in the folder *cwd*."""
    if request.mode == PERSISTENT:
        return PersistentWorker(request.command, cwd, request.timeout_seconds, folders, stop, notes)
    kind = PlainWorker if request.mode == PLAIN else ProcessWorker
    return kind(request.command, cwd, request.timeout_seconds, folders, stop)


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
                yield lambda: runner_worker(request, self.cwd, folders, self.stop, self.writer.notes)

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
        if self.failure is not None:
            raise self.failure
        self.settle_given_up()
        progress.report(self.ran, self.errors)

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
        if isinstance(worker, PersistentWorker):
            given_up = worker.answer_all(self.take, lambda request, attempt: self.settle(request, attempt, number), self.cannot_start)
            with self.lock:
                self.trials = chain(((request.case, request.trial) for request in given_up), self.trials)
            return
        request = self.take()
        while request is not None:
            try:
                attempt = worker.answer(request)
            except CannotStart as error:
                attempt = self.cannot_start(error)
            self.settle(request, attempt, number)
            request = self.take()

    def take(self) -> TrialRequest | None:
        """The next trial to be answered; None when there is none or the run is stopped."""
        with self.lock:
            following = None if self.stop.is_requested else next(self.trials, None)
        if following is None:
            return None
        case, trial = following
        seed = trial_seed(self.request.seed, case.id, trial)
        return TrialRequest(case, self.request.stage, trial, self.writer.repetitions, 1, seed)

    def settle(self, request: TrialRequest, attempt: Attempt, number: int) -> None:
        """Records what worker *number* made of *request*; nothing when that was cancelled."""
        if attempt.status == CANCELLED:
            return
        self.has_started = True
        case, trial = request.case, request.trial
        document = observation_document(case.id, trial, case.input_fingerprint, attempt, number)
        line = encode_compact(document).encode("utf-8") + b"\n"
        with self.lock:
            self.writer.record(case.id, trial, attempt.status, line)
            self.ran += 1
            if attempt.error is not None:
                self.errors += 1
                self.note_example(case, trial, attempt.error)

    def cannot_start(self, error: CannotStart) -> Attempt:
        """The attempt of a runner that could not be started. Raises UsageError when not even the first one could."""
        if not self.has_started:
            message = f"{quoted(self.request.command[0])} cannot be started: {error}; nothing was run"
            raise UsageError(message, "try the command by itself", "cannot_start") from None
        return Attempt("error", {}, error_document("environment", "cannot_start", f"the runner could not be started: {error}"), utc_now())

    def settle_given_up(self) -> None:
        """Records the trials that no worker would take as not run."""
        message = f"not sent: {counted(SILENT_STARTS, 'process', 'processes')} in a row ended without an answer"
        request = self.take()
        while request is not None:
            self.settle(request, Attempt(NOT_RUN, {}, error_document("runner", "gave_up", message), utc_now()), 0)
            request = self.take()

    def note_example(self, case: Case, trial: int, error: JsonObject) -> None:
        """Keeps an error to tell of, if none with this message is kept; of a holdout case only its class."""
        is_hidden = case.id in self.request.dataset.holdout
        what = "" if is_hidden else visible(error["message"])
        if len(self.examples) < MAX_EXAMPLES:
            who = "a holdout case" if is_hidden else f"case {quoted(case.id)}, trial {trial}"
            self.examples.setdefault(f"{error['class']}: {what}", f"{who}: {error['class']}" + (f": {what}" if what else ""))

"""The bridge: has the trials of a stage answered by workers of any kind, and records them.

`run_stage` is what `kaizen run`, `test` and `demo` call. The main thread waits, shows
progress and syncs; each of `jobs` threads takes the next trial, has its worker answer it
and appends the observation. The first interrupt stops the dispatch and ends the running
trials, the second kills them; what has finished is on disk either way.

A run that stops by itself (budget.py) lets the running trials end and records the rest as
`not_run`, but for an overwrite, which then waits beside the old stage to be gone on with.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
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
from kaizen.runs.budget import RETRY_REASONS, Budget, earlier_attempt, is_worth_a_retry
from kaizen.runs.commit import commit_of
from kaizen.runs.events import EventStream
from kaizen.runs.journal import REFUSE, StageIndex, StageWriter
from kaizen.runs.kept_files import WorkFiles, workspace_document
from kaizen.runs.observation import (
    CANCELLED,
    COMPLETED,
    NOT_RUN,
    STATUSES,
    Attempt,
    error_document,
    file_digest,
    masked_observation,
    observation_document,
)
from kaizen.runs.persistent import SILENT_STARTS, PersistentWorker
from kaizen.runs.plain import PlainWorker, context_notes
from kaizen.runs.plan import select_cases, trial_seed
from kaizen.runs.protocol import TrialRequest
from kaizen.runs.queue import TrialQueue
from kaizen.runs.replay import Recording
from kaizen.runs.shards import Shard, is_in_shard, shard_stage
from kaizen.runs.tally import RunTally
from kaizen.runs.watchdog import Watchdog
from kaizen.runs.workers import ProcessWorker, ReplayWorker, Worker, WorkFolders, check_command, passed_environment, shown_word

TICK_SECONDS = 0.1
PROCESS, PERSISTENT, PLAIN, REPLAY = "process", "persistent", "plain", "replay"  # ways to run, as the meta file names them


class RunRequest(NamedTuple):
    """What is to be run. *command* starts the runner in the folder *cwd* ('': the current one; *told_cwd* is what the meta file calls it),
    in one of the modes process, persistent and plain; or *replay* is a file of answers.

    *repetitions* 0 is as the stage has them, else 1. *existing* is one of the words of journal.py for a stage that is there.
    *environment* has names of variables (none: all of them), *workspace* is a folder ('': none), *keep* has patterns of
    files, whose copies are not masked with *keeps_secrets*, *events* is a descriptor (0: none), *shard* the part of the
    cases that is run (None: all). *variables* is the whole environment in place of this process's, *may_go_on* is asked every
    100 ms: when it says no, the run is interrupted.
    """

    improvement: Improvement
    stage: str
    dataset: Dataset
    seed: int
    command: list[str]
    cwd: str = ""
    told_cwd: str = ""
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
    retries: int = 0
    retry_on: tuple[str, ...] = RETRY_REASONS
    environment: tuple[str, ...] = ()
    workspace: str = ""
    keep: tuple[str, ...] = ()
    keeps_secrets: bool = False
    budget: Budget = Budget()
    events: int = 0
    shard: Shard | None = None
    variables: "dict[bytes, bytes] | None" = None
    may_go_on: Callable[[], bool] | None = None


class RunSummary(NamedTuple):
    """What came of a run.

    `selected` trials were asked for of `planned` (all cases × repetitions), `ran` in this run; `counts` has the
    statuses of those that have a line. `unusable` have no completed observation. `examples` tells of a few
    errors, without anything of holdout cases; `notes` holds what the user should know. After an interrupt
    `is_beside` says that the old stage is still in place and this run's trials stand beside it. `stopped` is a reason
    code and a sentence when the run stopped by itself, else None. `tally` counts this run's trials.
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
    stopped: tuple[str, str] | None
    tally: RunTally


def run_stage(request: RunRequest) -> RunSummary:
    """Runs what *request* asks for and writes observations and meta file of its stage.

    Raises UsageError when nothing can be run, RefusedError when the stage is there or in use, InputError for
    the disk. A trial without usable evidence is no failure of the run: it is counted.
    """
    check_stage_name(request.stage)
    cases = select_cases(request.dataset, list(request.ids), list(request.tags), list(request.splits))
    stage = request.stage
    if request.shard:
        cases = [case for case in cases if is_in_shard(case.id, request.shard)]
        stage = shard_stage(stage, request.shard)
    events = EventStream(request.events)
    cwd = os.path.abspath(request.cwd or os.curdir)
    notes = [] if request.replay else check_runner(request.command, cwd)
    meta = meta_document(request, cwd)
    with FileLock(request.improvement.stage_file(stage, ".lock"), f"stage '{stage}'"):
        writer = StageWriter(
            request.improvement, stage, request.dataset, cases, meta, existing=request.existing, repetitions=request.repetitions
        )
        writer.notes += notes
        stop = StopSwitch()
        try:
            with heeding_signals(stop):
                return Dispatch(request, writer, stop, cwd, events).run()
        finally:
            stop.close()


def refuse_windows() -> None:
    """Raises UsageError where programs cannot be started as they have to be."""
    if os.name == "nt":
        raise UsageError("kaizen run starts programs in a way that needs Linux or macOS", "use it inside WSL")


def check_runner(command: list[str], cwd: str) -> list[str]:
    """Notes about the command. Raises UsageError when it cannot be started here."""
    refuse_windows()
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
        "mode": REPLAY if replay else request.mode,
        "cwd": None if replay else request.told_cwd or without_surrogates(os.path.relpath(os.path.realpath(cwd), os.path.realpath(folder))),
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
        "retries": request.retries,
        "retry_on": list(request.retry_on) if request.retries else [],
        "env": sorted(request.environment) or None,
        "workspace": workspace_document(request.workspace, folder) if request.workspace else None,
        "keep": list(request.keep),
        "keep_unmasked": request.keeps_secrets,
        "shard": request.shard._asdict() if request.shard else None,
        "stopped": None,
    }


class Dispatch:
    """One run: hands the trials to the workers and records what they answer."""

    def __init__(self, request: RunRequest, writer: StageWriter, stop: StopSwitch, cwd: str, events: EventStream) -> None:
        import threading

        self.request, self.writer, self.stop, self.cwd, self.events = request, writer, stop, cwd, events
        self.selected = len(writer.cases) * writer.repetitions
        self.pending = sum(1 for _ in self.pending_trials())
        self.queue = TrialQueue(self.pending_trials())
        self.again: deque[tuple[TrialRequest, Attempt | None]] = deque()  # to be tried again, or given up by a worker before an attempt
        self.earlier: dict[tuple[str, int], list[JsonObject]] = {}  # attempts of trials that are tried again
        self.lock = threading.Condition()  # around all of these, writer, tally, watchdog and events; notified when a trial has ended
        self.all_done = threading.Event()
        self.working = 0
        self.recorded = 0
        self.has_started = False
        self.failure: BaseException | None = None
        self.tally, self.watchdog = RunTally(request.dataset.holdout), Watchdog(request.dataset.holdout)
        self.stopped: tuple[str, str] | None = None
        self.started = monotonic_seconds()
        self.secrets = environment_secrets(os.environ)
        self.masked: dict[str, int] = {}  # observations in which a secret of this family was masked

    def pending_trials(self) -> Iterator[tuple[Case, int]]:
        """(case, trial) of what has no line yet, in the order of a run."""
        return ((case, trial) for case, trial in self.writer.selected_trials() if not self.writer.is_done(case.id, trial))

    def run(self) -> RunSummary:
        """Runs all pending trials and finishes the stage's files. Raises what made that impossible."""
        planned, stage = len(self.writer.index.statuses), self.request.stage
        self.events.send("start", stage=stage, pid=os.getpid(), planned=planned, selected=self.selected, pending=self.pending)
        try:
            if self.pending:
                with self.workers() as make_worker, Progress(f"run {stage}", self.pending, self.request.progress) as progress:
                    self.work_off(make_worker, progress)
            elif self.request.shard:
                self.writer.begin_if_new()  # a shard without cases is there all the same, for merge
            if self.masked:
                found = listed(f"{family} in {counted(number, 'trial')}" for family, number in sorted(self.masked.items()))
                self.writer.notes.append(f"secrets were masked before they were written: {found}")
            is_interrupted = self.recorded < self.pending
            is_complete = not is_interrupted and not (self.stopped and self.writer.is_beside)
            self.writer.finish(is_complete)
        except BaseException as error:
            self.writer.abandon(error)
            self.events.send("end", reason="failed", ran=self.tally.ran, counts={})
            raise
        summary = self.summary(is_interrupted, is_complete)
        reason = "interrupted" if is_interrupted else self.stopped[0] if self.stopped else "completed"
        self.events.send("end", reason=reason, ran=summary.ran, counts=summary.counts)
        return summary

    def summary(self, is_interrupted: bool, is_complete: bool) -> RunSummary:
        """What came of the run, whose files are finished."""
        counts: dict[str, int] = {}
        for case, trial in self.writer.selected_trials():
            status = self.writer.index.status(case.id, trial)
            counts[status] = counts.get(status, 0) + 1
        return RunSummary(
            stage=self.request.stage,
            path=self.writer.target if is_complete else self.writer.path,
            planned=len(self.writer.index.statuses),
            selected=self.selected,
            ran=self.tally.ran,
            counts={status: counts[status] for status in STATUSES if status in counts},
            unusable=self.selected - counts.get(COMPLETED, 0),
            examples=list(self.tally.examples.values()),
            notes=self.writer.notes,
            is_interrupted=is_interrupted,
            is_beside=not is_complete and self.writer.is_beside,
            seconds=monotonic_seconds() - self.started,
            stopped=None if is_interrupted else self.stopped,
            tally=self.tally,
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
            environment = passed_environment(request.environment) if request.variables is None else request.variables
            missing = [visible(name) for name in request.environment if os.fsencode(name) not in environment]
            self.writer.notes += [f"not set, so not passed on: {', '.join(missing)}"] if missing else []
            self.writer.notes += context_notes(self.writer.cases) if request.mode == PLAIN else []
            self.writer.notes += ["kept files are not masked"] if request.keeps_secrets else []
            with WorkFolders() as folders:
                store = os.path.join(folders.path, "workspace")
                files = WorkFiles(request.workspace, request.keep, self.writer.files_path, store, request.keeps_secrets)
                yield lambda: self.runner_worker(folders, environment, files)

    def runner_worker(self, folders: WorkFolders, environment: dict[bytes, bytes], files: WorkFiles) -> ProcessWorker:
        """A worker that runs the command in the mode that was asked for."""
        request = self.request
        setting = (request.command, self.cwd, request.timeout_seconds, folders, self.stop)
        worker: ProcessWorker
        if request.mode == PERSISTENT:
            worker = PersistentWorker(*setting, notes=self.writer.notes)
        else:
            worker = PlainWorker(*setting) if request.mode == PLAIN else ProcessWorker(*setting)
        worker.environment, worker.files = environment, files
        return worker

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
                    complaint = self.watchdog.complaint()
                if self.request.may_go_on and not self.request.may_go_on():
                    self.stop.request()
                if complaint:
                    progress.note(complaint)
                progress.report(self.tally.ran, self.tally.errors)
        finally:
            self.stop_unless_done()
            for thread in threads:
                thread.join()
        if self.failure is not None:
            raise self.failure
        self.settle_rest()
        progress.report(self.tally.ran, self.tally.errors)

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
            given_up = worker.answer_all(self.take, partial(self.settle, number=number), self.cannot_start)
            with self.lock:
                self.again.extend((request, None) for request in given_up)
            return
        while request := self.take(True):
            try:
                attempt = worker.answer(request)
            except CannotStart as error:
                attempt = self.cannot_start(error)
            self.settle(request, attempt, number)

    def take(self, may_wait: bool) -> TrialRequest | None:
        """The next trial to be answered; None when there is none or the run is stopped.

        While all that is left belongs to serial groups of which a trial is running, it waits, or gives None unless it *may_wait*.
        """
        with self.lock:
            while not self.is_ending():
                if self.again:
                    request, attempt = self.again.popleft()
                    if attempt is not None:
                        self.earlier.setdefault((request.case.id, request.trial), []).append(earlier_attempt(attempt))
                        request = request._replace(attempt=request.attempt + 1)
                    self.watchdog.begins(request.case, request.trial)
                    return request
                following = self.queue.take()
                if following:
                    case, trial = following
                    self.watchdog.begins(case, trial)
                    seed = trial_seed(self.request.seed, case.id, trial)
                    return TrialRequest(case, self.request.stage, trial, self.writer.repetitions, 1, seed)
                if not self.queue.held or not may_wait:
                    return None
                self.lock.wait(TICK_SECONDS)
        return None

    def is_ending(self) -> bool:
        """True when nothing more may begin: the run is interrupted, or has stopped by itself."""
        self.stopped = self.stopped or self.request.budget.exhausted(self.tally, self.started)
        return self.stop.is_requested or self.stopped is not None

    def settle(self, request: TrialRequest, attempt: Attempt, number: int) -> None:
        """Records what worker *number* made of *request*, or has it tried again; nothing when that was cancelled."""
        if attempt.status == CANCELLED:
            return
        self.has_started = True
        with self.lock:
            self.tally.add_attempt(attempt)
            if request.attempt <= self.request.retries and is_worth_a_retry(attempt, self.request.retry_on):
                self.watchdog.ends(request.case, request.trial)
                self.again.append((request, attempt))
                self.lock.notify()
                return
        self.record(request.case, request.trial, attempt, number)

    def record(self, case: Case, trial: int, attempt: Attempt, number: int) -> None:
        """Appends the observation of a trial whose last *attempt* worker *number* made, and counts it unless it never ran."""
        earlier = self.earlier.pop((case.id, trial), [])
        document = observation_document(case.id, trial, case.input_fingerprint, attempt, number, earlier)
        document, line = masked_observation(document, self.secrets)
        attempt = attempt._replace(error=document.get("error"))  # nothing unmasked is told of it
        with self.lock:
            self.writer.record(case.id, trial, attempt.status, line + b"\n")
            self.recorded += 1
            for family in {hit["family"] for hit in document.get("redacted", ())}:
                self.masked[family] = self.masked.get(family, 0) + 1
            if number:
                self.watchdog.ends(case, trial)
                self.queue.release(case)
                cost = self.tally.add(case, trial, attempt, earlier)
                self.events.trial(case, trial, attempt, len(earlier) + 1, cost, self.tally, self.pending)
            elif attempt.error:
                self.tally.note_example(case, trial, attempt.error)
            self.lock.notify()

    def cannot_start(self, error: CannotStart) -> Attempt:
        """The attempt of a runner that could not be started. Raises UsageError when not even the first one could."""
        if not self.has_started:
            message = f"{shown_word(self.request.command[0])} cannot be started: {error}; nothing was run"
            raise UsageError(message, "try the command by itself", "cannot_start") from None
        return Attempt("error", {}, error_document("environment", "cannot_start", f"the runner could not be started: {error}"), utc_now())

    def settle_rest(self) -> None:
        """Records what was not handed out, or not tried again any more; nothing of the former after an interrupt."""
        tried = [(request, attempt) for request, attempt in self.again if attempt]
        rest = chain([(request.case, request.trial) for request, attempt in self.again if not attempt], self.queue.rest())
        for request, attempt in tried:
            self.record(request.case, request.trial, attempt, 1)
        if self.stop.is_requested:
            return
        if self.stopped:
            error = error_document("cancelled", *self.stopped)
        else:
            message = f"not sent: {counted(SILENT_STARTS, 'process', 'processes')} in a row ended without an answer"
            error = error_document("runner", "gave_up", message)
        before = self.recorded
        for case, trial in rest:
            self.record(case, trial, Attempt(NOT_RUN, {}, error, utc_now()), 0)
        if self.recorded == before:
            self.stopped = None  # a bound reached with the last trial stopped nothing
        elif self.stopped:
            self.writer.meta["stopped"] = {"reason": self.stopped[0], "message": self.stopped[1]}

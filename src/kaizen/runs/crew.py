"""A crew: threads that work off tasks while the main thread goes on in its own order."""

import os
from collections.abc import Callable
from typing import Any

from kaizen.foundation.errors import Interrupted
from kaizen.foundation.process import StopSwitch
from kaizen.runs.workers import WorkFolders

CREW_TICK_SECONDS = 0.1


class Toolbox:
    """What a thread works with: a private folder for each program, the switch that ends it, whatever else `keep` holds open.

    `environment` is what programs may be given of ours.
    """

    def __init__(self, folders: WorkFolders, stop: StopSwitch) -> None:
        self.folders, self.stop = folders, stop
        self.environment = dict(os.environb)
        self.held: dict[str, Any] = {}

    def close(self) -> None:
        """Closes what is held."""
        for each in self.held.values():
            each.close()


CrewTask = Callable[[Toolbox], None]


class Crew:
    """*jobs* threads, as a context manager; what a task changes it changes while it holds `changed`.

    A task that raises ends the crew; the error is raised in the main thread.
    """

    def __init__(self, jobs: int, stop: StopSwitch) -> None:
        import threading
        from queue import SimpleQueue

        self.stop = stop
        self.changed = threading.Condition()
        self.tasks: SimpleQueue[CrewTask | None] = SimpleQueue()
        self.failure: BaseException | None = None
        self.folders = WorkFolders()
        self.threads = [threading.Thread(target=self.work) for _ in range(jobs)]

    def __enter__(self) -> "Crew":
        self.folders.__enter__()
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None:
            self.stop.request()
        for _ in self.threads:
            self.tasks.put(None)
        for thread in self.threads:
            thread.join()
        self.folders.__exit__(None, None, None)

    def submit(self, task: CrewTask) -> None:
        """Has a thread do *task* as soon as one is free."""
        self.tasks.put(task)

    def work(self) -> None:
        """What a thread does until there is nothing more to come."""
        tools = Toolbox(self.folders, self.stop)
        try:
            while task := self.tasks.get():
                if not self.stop.is_requested:
                    task(tools)
                with self.changed:
                    self.changed.notify_all()
        except BaseException as error:
            self.failure = self.failure or error
            self.stop.request()
        finally:
            tools.close()

    def wait(self, is_done: Callable[[], bool], at_tick: Callable[[], None]) -> None:
        """Waits until *is_done*, and calls *at_tick* ten times a second. Raises what ended the crew, or Interrupted."""
        with self.changed:
            while not is_done():
                if self.failure is not None:
                    raise self.failure
                if self.stop.is_requested:
                    raise Interrupted("interrupted; nothing was written but the answers that judges have given so far", "run it again")
                self.changed.wait(CREW_TICK_SECONDS)
                at_tick()

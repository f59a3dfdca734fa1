"""The trials still to be handed out, those of one serial group one at a time."""

from collections import deque
from collections.abc import Iterator

from kaizen.cases.case import Case


class TrialQueue:
    """Hands out *trials* in their order, but never one of a `serial_group` of which another is running.

    What has to wait is handed out first once its group is free, so that a long chain does not end up last.
    Its caller calls it from one thread at a time.
    """

    def __init__(self, trials: Iterator[tuple[Case, int]]) -> None:
        self.trials = trials
        self.waiting: dict[str, deque[tuple[Case, int]]] = {}  # by group of which a trial is running
        self.free: deque[str] = deque()  # groups of which none is running and some are waiting
        self.held = 0  # trials in `waiting`

    def take(self) -> tuple[Case, int] | None:
        """The next trial that may run now; None when there is none, or `held` ones only."""
        if self.free:
            self.held -= 1
            return self.waiting[self.free.popleft()].popleft()
        for case, trial in self.trials:
            group = case.document.get("serial_group")
            if group is None:
                return case, trial
            if group not in self.waiting:
                self.waiting[group] = deque()
                return case, trial
            self.waiting[group].append((case, trial))
            self.held += 1
        return None

    def release(self, case: Case) -> None:
        """Says that a trial of *case*, which `take` gave, is no longer running."""
        group = case.document.get("serial_group")
        if group is not None:
            if self.waiting[group]:
                self.free.append(group)
            else:
                del self.waiting[group]

    def rest(self) -> Iterator[tuple[Case, int]]:
        """What has not been handed out and now never will be."""
        for trials in self.waiting.values():
            yield from trials
        yield from self.trials

"""The watchdog: says which trial a run waits for when nothing happened for a while."""

from kaizen.cases.case import Case
from kaizen.foundation.clock import monotonic_seconds
from kaizen.foundation.text import duration
from kaizen.runs.tally import trial_name

QUIET_SECONDS = 60.0  # without a trial that ends; then after twice as long, and so on


class Watchdog:
    """Knows the outstanding trials; called from one thread at a time."""

    def __init__(self, holdout: frozenset[str]) -> None:
        self.holdout = holdout
        self.outstanding: dict[tuple[str, int], tuple[Case, float]] = {}  # the oldest first
        self.heard_at = monotonic_seconds()
        self.patience = QUIET_SECONDS

    def begins(self, case: Case, trial: int) -> None:
        """Notes that a trial has begun."""
        self.outstanding[case.id, trial] = (case, monotonic_seconds())

    def ends(self, case: Case, trial: int) -> None:
        """Notes that a trial has ended."""
        self.outstanding.pop((case.id, trial), None)
        self.heard_at, self.patience = monotonic_seconds(), QUIET_SECONDS

    def complaint(self) -> str:
        """A sentence that names the trial that has taken longest; '' while there is nothing to say."""
        now = monotonic_seconds()
        if not self.outstanding or now - self.heard_at < self.patience:
            return ""
        self.patience *= 2
        (_, trial), (case, since) = next(iter(self.outstanding.items()))
        others = len(self.outstanding) - 1
        more = f" and {others} more" if others else ""
        who = trial_name(case, trial, self.holdout)
        return f"nothing has finished for {duration(now - self.heard_at)}; waiting for {who} (for {duration(now - since)}){more}"

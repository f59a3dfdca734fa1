"""When a run stops by itself: money or time is used up, or a trial gave no evidence.

Stopping means that no further trial, and no further attempt, begins; what is running ends
in its own way. A bound on cost can only be kept while every trial has a price, so the first
one without a price stops the run as well: its cost is not known, which is not 0.
"""

from typing import NamedTuple

from kaizen.foundation.clock import monotonic_seconds
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, money
from kaizen.runs.observation import Attempt
from kaizen.runs.tally import RunTally

RETRY_REASONS = ("timeout", "exit:75", "protocol", "environment")  # 75 is EX_TEMPFAIL of sysexits.h


class Budget(NamedTuple):
    """What bounds a run: US dollars, minutes (None: no bound), whether the first error ends it."""

    max_cost_usd: float | None = None
    max_minutes: float | None = None
    fail_fast: bool = False

    def exhausted(self, tally: RunTally, started: float) -> tuple[str, str] | None:
        """(reason code, sentence) when nothing more may begin after what *tally* counts, since *started*; None while it may."""
        if self.max_cost_usd is not None:
            from decimal import Decimal

            if tally.spent >= Decimal(repr(self.max_cost_usd)):
                return "max_cost", f"the cost has reached {money(tally.spent)} of at most {money(self.max_cost_usd)} USD"
            if tally.unpriced:
                what = counted(tally.unpriced, "attempt" if tally.priced == tally.ran else "trial")
                return "cost_unknown", f"{what} reported no cost, so --max-cost {self.max_cost_usd:g} could not be kept"
        if self.max_minutes is not None and monotonic_seconds() - started >= self.max_minutes * 60:
            return "max_minutes", f"the {self.max_minutes:g} minutes of --max-minutes are over"
        if self.fail_fast and tally.errors:
            return "fail_fast", "a trial gave no usable evidence (--fail-fast)"
        return None


def is_worth_a_retry(attempt: Attempt, reasons: tuple[str, ...]) -> bool:
    """True when *attempt* ended in one of the *reasons*: an error class, or exit:N."""
    if attempt.error is None:
        return False
    return attempt.error["class"] in reasons or attempt.error["type"] == "exit" and f"exit:{attempt.exit_code}" in reasons


def earlier_attempt(attempt: Attempt) -> JsonObject:
    """What `execution.attempts` keeps of an attempt that was followed by another; without `cost` where it reported none."""
    document: JsonObject = {"status": attempt.status, "error": dict(attempt.error or {}), "duration_ms": attempt.duration_ms}
    if attempt.duration_ms is not None:
        document["duration_ms"] = round(attempt.duration_ms, 3)
    if "cost" in attempt.fields:
        document["cost"] = attempt.fields["cost"]
    return {**document, "started_at": attempt.started_at}

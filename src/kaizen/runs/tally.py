"""What a run has come to so far, counted over the trials that it ran itself.

Nothing kept here grows with the number of trials, and no text of it names a holdout case.
"""

from typing import TYPE_CHECKING

from kaizen.cases.case import Case
from kaizen.foundation.jsonio import JsonObject, float_or_none
from kaizen.foundation.shapes import is_number
from kaizen.foundation.text import quoted, visible
from kaizen.runs.observation import Attempt

if TYPE_CHECKING:
    from decimal import Decimal

MAX_EXAMPLES = 3  # of errors, with different messages
SLOWEST = 3


def attempt_cost(document: JsonObject) -> float | None:
    """US dollars that *document*, the fields of an attempt, reports; None when it has no price."""
    price = (document.get("cost") or {}).get("total_usd")
    return price if is_number(price) else None


class RunTally:
    """Counts of a run: trials `ran`, `errors` among them by class, `priced` ones and their `cost`, examples, the slowest.

    *holdout* has the ids that nothing may name. `cost` is in US dollars, exact, earlier attempts included.
    """

    def __init__(self, holdout: "frozenset[str] | set[str]") -> None:
        self.holdout = holdout
        self.ran = self.errors = self.priced = 0
        self.cost: Decimal | int = 0
        self.spent: Decimal | int = 0  # by every attempt, also of trials that have not ended
        self.unpriced = 0  # attempts without a price
        self.classes: dict[str, int] = {}
        self.examples: dict[str, str] = {}
        self.slowest: list[tuple[float, str, int]] = []  # (-milliseconds, case, trial)

    def add(self, case: Case, trial: int, attempt: Attempt, earlier: list[JsonObject]) -> float | None:
        """Counts a trial whose last attempt is *attempt*, after those in *earlier*; returns its cost, None when it has no price."""
        self.ran += 1
        cost = self.add_cost([attempt_cost(fields) for fields in (attempt.fields, *earlier)])
        if attempt.error is not None:
            self.errors += 1
            self.classes[attempt.error["class"]] = self.classes.get(attempt.error["class"], 0) + 1
            self.note_example(case, trial, attempt.error)
        if attempt.duration_ms is not None and case.id not in self.holdout:
            self.slowest = sorted([*self.slowest, (-attempt.duration_ms, case.id, trial)])[:SLOWEST]
        return cost

    def add_attempt(self, attempt: Attempt) -> None:
        """Counts what *attempt* has spent, whether its trial ends with it or not."""
        from decimal import Decimal

        price = attempt_cost(attempt.fields)
        self.unpriced += price is None
        self.spent += Decimal(repr(price or 0))

    def add_cost(self, prices: list[float | None]) -> float | None:
        """Adds the *prices* of a trial's attempts and returns their sum, None where no float holds it.

        None, and nothing added, when one of them is not known.
        """
        if None in prices:
            return None
        from decimal import Decimal

        cost = sum(Decimal(repr(price)) for price in prices)
        self.priced += 1
        self.cost += cost
        return float_or_none(cost)

    def note_example(self, case: Case, trial: int, error: JsonObject) -> None:
        """Keeps an error to tell of, if none with this message is kept; of a holdout case only its class."""
        is_hidden = case.id in self.holdout
        what = "" if is_hidden else visible(error["message"])
        if len(self.examples) < MAX_EXAMPLES:
            told = f"{trial_name(case, trial, self.holdout)}: {error['class']}" + (f": {what}" if what else "")
            self.examples.setdefault(f"{error['class']}: {what}", told)


def trial_name(case: Case, trial: int, holdout: "frozenset[str] | set[str]") -> str:
    """'case 'refund-1', trial 2', or 'a holdout case'."""
    return "a holdout case" if case.id in holdout else f"case {quoted(case.id)}, trial {trial}"

"""Kinds of arguments of several commands: counts, numbers of a unit, a run of a system."""

from argparse import ArgumentTypeError
from collections.abc import Callable

from kaizen.commands.table import Argument
from kaizen.foundation.jsonio import float_or_none
from kaizen.foundation.text import quoted

MOST_ITEMS = 2**31 - 1

def count_argument(text: str) -> int:
    """*text* as a whole number from 1 to 1,000, which is also what threads a system can be trusted to give. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or len(text) > 4 or not 1 <= int(text) <= 1000:
        raise ArgumentTypeError(f"{quoted(text)} is not a whole number from 1 to 1,000")
    return int(text)


def positive_number(unit: str) -> Callable[[str], float]:
    """What reads a text as a number of *unit* above 0; that raises ArgumentTypeError."""

    def number_argument(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < 1e7:
            raise ArgumentTypeError(f"{quoted(text)} is not a number of {unit} above 0")
        return value

    return number_argument


def items_argument(text: str) -> int:
    """*text* as a whole number from 1 to 2,147,483,647. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or len(text) > 10 or not 1 <= int(text) <= MOST_ITEMS:
        raise ArgumentTypeError(f"{quoted(text)} is not a whole number from 1 to {MOST_ITEMS:,}")
    return int(text)


def gain_argument(text: str) -> float:
    """*text* as a finite number. Raises ArgumentTypeError."""
    try:
        found = float_or_none(float(text))
    except ValueError:
        found = None
    if found is None:
        raise ArgumentTypeError(f"{quoted(text)} is not a number")
    return found


SYSTEM_ARGUMENTS = [
    Argument("--system", "ID", "a run of this system of the lab, in place of IMPROVEMENT and all above", {"default": ""}),
    Argument("--variant", "NAME", "with --system: name of the idea that the commit at hand tries", {"default": ""}),
    Argument("--title", "T", "with --system: one line that says what is tried (default: the variant's name)", {"default": ""}),
    Argument("--description", "D", "with --system: more about it", {"default": ""}),
    Argument("--hypothesis", "H", "with --system: if …, then …, because …", {"default": ""}),
    Argument("--diagnostic", "", "with --system: only to look; the run can never be the best one"),
    Argument("--max-items", "N", "with --system: only the first N items; the run can never be the best one", {"type": items_argument}),
    Argument("--idea", "I", "in a campaign: the idea that is tried, as `kaizen idea add` called it", {"default": ""}),
    Argument("--label", "L", "in a campaign: the failure label that the hypothesis names", {"default": ""}),
    Argument("--predict", "P", "in a campaign: the gain that is expected, in units of the metric", {"type": gain_argument}),
]

"""Kinds of arguments that several commands take: counts, and numbers of a unit."""

from argparse import ArgumentTypeError
from collections.abc import Callable

from kaizen.foundation.text import quoted


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

"""Looking early without false alarms: an e-process over case differences.

Chosen before the first look (`--sequential`); a result of fixed size never becomes sequential afterwards.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

BETS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75)


class EProcess(NamedTuple):
    """Where the e-process stands: its logarithm, the p-value valid at any stop, the case (from 1) at which it may stop."""

    log_e: float
    p_anytime: float
    stop_at: int | None


def e_process(differences: Iterable[float], alpha: float = 0.05, variants: int = 1) -> EProcess:
    """The evidence against "the mean difference is at most 0" as *differences* in [-1, 1] come in, in an order blind to them.

    Under it the chance ever to stop is at most *alpha* / *variants*. Mirror the signs for "worse". No difference: E is 1.
    Source: I. Waudby-Smith, A. Ramdas (2024), Estimating means of bounded random variables by betting, Journal of the
    Royal Statistical Society B 86, 1-27. Raises ValueError for a difference outside [-1, 1].

    >>> e_process([0.5] * 30).stop_at
    15
    """
    bets = [0.0] * len(BETS)
    log_e = highest = 0.0
    stop_at = None
    for number, difference in enumerate(differences, 1):
        if not -1 <= difference <= 1:
            raise ValueError(f"difference {number} lies outside -1 to 1")
        bets = [log + math.log1p(bet * difference) for log, bet in zip(bets, BETS, strict=True)]
        largest = max(bets)
        log_e = largest + math.log(math.fsum(math.exp(log - largest) for log in bets) / len(bets))
        highest = max(highest, log_e)
        if stop_at is None and log_e >= math.log(variants / alpha):
            stop_at = number
    return EProcess(log_e, min(1.0, math.exp(-highest)), stop_at)

"""Exact tests of paired cases: sign-flip, McNemar, and one for the suite alone."""

import math
from typing import NamedTuple

from kaizen.stats.lattice import EXACT_SIZE, NEGLIGIBLE, Counts, FourierLaw, Terms, grid_steps

BIG_INTEGER_WORK = 400_000_000  # bits touched up to which one big integer is faster than the Fourier sum
FEW_CASES = 16  # up to which all 2^16 sums are listed, whatever the sizes


class SignFlip(NamedTuple):
    """P-values of the sign-flip test: candidate better, candidate worse, either; all 1 with a reason when nothing differs."""

    greater: float
    less: float
    two_sided: float
    reason: str | None


def sign_flip(counts: Counts) -> SignFlip:
    """The exact test that case differences *counts* {difference: how many cases} are symmetric about 0, ties included.

    Every sign is flipped by itself with probability 1/2. With one trial a case this is McNemar's exact test.
    Source: R. A. Fisher (1935), The Design of Experiments, section 21. No difference: `no_discordant_pairs`.
    Five cases that all improve come out so in 1 of 32:

    >>> from fractions import Fraction
    >>> sign_flip({Fraction(1): 5, Fraction(0): 7}).greater * 32
    1.0
    """
    known = {value: times for value, times in counts.items() if value}
    if not known:
        return SignFlip(1.0, 1.0, 1.0, "no_discordant_pairs")
    common = math.lcm(*(value.denominator for value in known))
    steps = {value.numerator * (common // value.denominator): times for value, times in known.items()}
    step = math.gcd(*steps)
    steps = sign_grid({size // step: times for size, times in steps.items()})
    sizes: dict[int, int] = {}
    for size, times in steps.items():
        sizes[abs(size)] = sizes.get(abs(size), 0) + times
    whole = sum(size * times for size, times in sizes.items())
    gained = sum(size * times for size, times in steps.items() if size > 0)
    # The sum of the sizes that keep a plus sign: symmetric about half of all, so both tails are lower tails.
    greater, less = lower_tails(sizes, whole, (whole - gained, gained))
    return SignFlip(greater, less, 1.0 if 2 * gained == whole else min(1.0, 2 * min(greater, less)), None)


def sign_window(sizes: dict[int, int]) -> int:
    """Half of the window that holds the sum of signed *sizes* but for e^-40, by Hoeffding's bound."""
    return math.ceil(math.sqrt(80 * sum(times * size * size for size, times in sizes.items())))


def sign_grid(steps: dict[int, int]) -> dict[int, int]:
    """*steps* {difference: how many}, rounded to a grid where there are too many places to sum over."""
    m = sum(steps.values())
    if m <= FEW_CASES or 2 * sign_window(steps) <= EXACT_SIZE:
        return steps
    width = math.sqrt(sum(times * size * size for size, times in steps.items()) / m) / grid_steps(m)
    rounded: dict[int, int] = {}
    for size, times in steps.items():
        rounded[round(size / width)] = rounded.get(round(size / width), 0) + times
    return rounded


def lower_tails(sizes: dict[int, int], whole: int, totals: tuple[int, int]) -> tuple[float, float]:
    """P(sum ≤ total) for both *totals*, where each of *sizes* {size: how many}, *whole* in all, counts with probability 1/2."""
    m = sum(sizes.values())
    if m * whole * (m + 1) <= BIG_INTEGER_WORK:
        # The polynomial of all subset sums as one integer, m + 1 bits a coefficient; they add up to 2^m.
        width, power = m + 1, 1
        for size, times in sorted(sizes.items()):
            for _ in range(times):
                power += power << (size * width)
        # Modulo 2^width - 1 the coefficients of a part add up, as digits do modulo 9.
        sums = [(power & ((1 << (total + 1) * width) - 1)) % ((1 << width) - 1) for total in totals]
        return sums[0] / (1 << m), sums[1] / (1 << m)
    if m <= FEW_CASES:
        ways = {0: 1}
        for size in sorted(size for size, times in sizes.items() for _ in range(times)):
            for total, times in list(ways.items()):
                ways[total + size] = ways.get(total + size, 0) + times
        return tuple(sum(times for total, times in ways.items() if total <= limit) / (1 << m) for limit in totals)  # type: ignore[return-value]
    law = sign_law(sizes, whole)
    return law.at_most(totals[0]), law.at_most(totals[1])


def sign_law(sizes: dict[int, int], whole: int) -> FourierLaw:
    """The law of the sum in `lower_tails` by its characteristic function, a product of cosines."""
    half = sign_window(sizes)
    low, high = max(0, whole // 2 - half), min(whole, whole // 2 + half + 1)
    window = high - low + 1
    step = math.pi / window
    cosines = [math.cos(step * k) for k in range(2 * window)]
    terms: Terms = []
    for j in range(1, window // 2 + 1):
        logarithm, is_negative = 0.0, 0
        for size, times in sizes.items():
            cosine = cosines[j * size % (2 * window)]
            logarithm += times * math.log(abs(cosine)) if cosine else -math.inf
            if logarithm < NEGLIGIBLE:
                break
            is_negative ^= cosine < 0 and times & 1
        if logarithm >= NEGLIGIBLE:
            modulus = -math.exp(logarithm) if is_negative else math.exp(logarithm)
            phase = step * (j * (whole - 2 * low) % (2 * window))
            terms.append((j, modulus * math.cos(phase), modulus * math.sin(phase)))
    return FourierLaw(low, window, terms)


class McNemar(NamedTuple):
    """McNemar's two-sided p-values: exact, and mid-p; 1 with a reason when no pair differs."""

    exact: float
    mid: float
    reason: str | None


def mcnemar(lost: int, gained: int) -> McNemar:
    """McNemar's test of *lost* pairs (passed before, fail now) against *gained* ones.

    Needs one outcome a case. Source: Q. McNemar (1947), Psychometrika 12, 153-157; mid-p: M. W. Fagerland,
    S. Lydersen, P. Laake (2013), BMC Medical Research Methodology 13, 91. No such pair: `no_discordant_pairs`.

    >>> mcnemar(1, 8)
    McNemar(exact=0.0390625, mid=0.021484375, reason=None)
    """
    pairs, fewer = lost + gained, min(lost, gained)
    if not pairs:
        return McNemar(1.0, 1.0, "no_discordant_pairs")
    term = below = 1
    for k in range(fewer):
        term = term * (pairs - k) // (k + 1)
        below += term
    # On a tie both halves hold all but half of the middle term.
    mid = (2 * below - term, 1 << pairs) if lost != gained else ((1 << pairs) - term, 1 << pairs)
    return McNemar(min(1.0, 2 * below / (1 << pairs)), mid[0] / mid[1], None)


def suite_permutation(cases: list[tuple[int, int, int, int]]) -> tuple[float, float]:
    """(P(candidate passes ≥ observed), P(≤ observed)) when the outcomes of each case are shuffled between the sides.

    *cases* is [(baseline passed, baseline valid, candidate passed, candidate valid)]. It only rejects "no case of this
    suite changed at all", so label it `suite_only` and let no gate hang on it. Source: R. A. Fisher (1935), as above.
    One case that passes 0 of 2 before and 2 of 2 now comes out so in 1 of 6:

    >>> suite_permutation([(0, 2, 2, 2)])[0] * 6
    1.0
    """
    law = [1]
    for before, valid_before, after, valid_after in cases:
        passed = before + after
        weights = [math.comb(valid_after, x) * math.comb(valid_before, passed - x) if x <= passed else 0 for x in range(valid_after + 1)]
        longer = [0] * (len(law) + valid_after)
        for place, weight in enumerate(law):
            if weight:
                for x, factor in enumerate(weights):
                    longer[place + x] += weight * factor
        law = longer
    observed, everything = sum(after for _, _, after, _ in cases), sum(law)
    return sum(law[observed:]) / everything, sum(law[: observed + 1]) / everything

"""How far two sequences are apart: edit distance, common subsequence, Jaro-Winkler.

All of them compare code points (or tokens) as they are. The two that take time proportional to the
product of the lengths do it in machine words: a Python integer holds one row of the table.
"""

from collections.abc import Sequence
from typing import Any

WINKLER_PREFIX = 4
WINKLER_FROM = 0.7


def places_of(items: Sequence[Any]) -> dict[Any, int]:
    """For each of *items* an integer whose bits are the places where it stands."""
    bits: dict[Any, list[int]] = {}
    for place, item in enumerate(items):
        bits.setdefault(item, []).append(place)
    found = {}
    for item, places in bits.items():
        row = bytearray(places[-1] // 8 + 1)
        for place in places:
            row[place >> 3] |= 1 << (place & 7)
        found[item] = int.from_bytes(row, "little")
    return found


def levenshtein(one: str, other: str) -> int:
    """The least number of insertions, deletions and replacements of one code point that turn *one* into *other*.

    Source: V. I. Levenshtein (1966), Binary codes capable of correcting deletions, insertions, and reversals; worked
    out as in H. Hyyrö (2003), A bit-vector algorithm for computing Levenshtein and Damerau edit distances.

    >>> levenshtein("kitten", "sitting"), levenshtein("", "abc")
    (3, 3)
    """
    shorter, longer = sorted((one, other), key=len)
    start, end = 0, len(shorter)
    while start < end and shorter[start] == longer[start]:
        start += 1
    shift = len(longer) - end
    while end > start and shorter[end - 1] == longer[end + shift - 1]:
        end -= 1
    shorter, longer = shorter[start:end], longer[start : end + shift]
    if not shorter:
        return len(longer)
    places = places_of(longer)
    whole = (1 << len(longer)) - 1
    last = len(longer) - 1
    distance, up, down = len(longer), whole, 0  # whether a cell is one more, one less, than the cell above it
    for item in shorter:
        equal = places.get(item, 0)
        diagonal = (((equal & up) + up) ^ up) | equal | down
        more = down | (whole & ~(diagonal | up))
        less = diagonal & up
        distance += (more >> last & 1) - (less >> last & 1)
        more = (more << 1 | 1) & whole
        up = (less << 1 & whole) | (whole & ~(diagonal | more))
        down = more & diagonal
    return distance


def common_subsequence(one: Sequence[Any], other: Sequence[Any]) -> int:
    """The length of the longest sequence that *one* and *other* both hold in order, with gaps.

    Source: H. Hyyrö (2004), Bit-parallel LCS-length computation revisited.

    >>> common_subsequence("the cat sat".split(), "the fat cat".split())
    2
    """
    shorter, longer = sorted((one, other), key=len)
    places = places_of(longer)
    whole = row = (1 << len(longer)) - 1
    for item in shorter:
        hits = row & places.get(item, 0)
        row = ((row + hits) | (row - hits)) & whole
    return len(longer) - row.bit_count()


def jaro_winkler(one: str, other: str) -> float:
    """The Jaro similarity of two texts, raised for a common beginning of up to 4 characters where it is above 0.7.

    Jaro is (m/|one| + m/|other| + (m-t)/m) / 3: m characters agree within half the longer length less one, t is half the
    number of them that stand in another order, cut off. Source: W. E. Winkler (1990), String comparator metrics and enhanced
    decision rules in the Fellegi-Sunter model of record linkage; the limit of 0.7 is that of the Census Bureau's program.

    >>> round(jaro_winkler("MARTHA", "MARHTA"), 9), jaro_winkler("", "a")
    (0.961111111, 0.0)
    """
    window = max(max(len(one), len(other)) // 2 - 1, 0)
    places: dict[str, list[int]] = {}
    for place in range(len(other) - 1, -1, -1):
        places.setdefault(other[place], []).append(place)
    agreeing, taken = [], []
    for place, character in enumerate(one):
        left = places.get(character, [])
        while left and left[-1] < place - window:  # what one place has passed, no later one can reach
            left.pop()
        if left and left[-1] <= place + window:
            agreeing.append(character)
            taken.append(left.pop())
    if not agreeing:
        return 0.0
    count = len(agreeing)
    moved = sum(character != other[place] for character, place in zip(agreeing, sorted(taken), strict=True)) // 2
    above = count * count * (len(one) + len(other)) + (count - moved) * len(one) * len(other)
    below = 3 * count * len(one) * len(other)
    prefix = 0
    while prefix < min(len(one), len(other), WINKLER_PREFIX) and one[prefix] == other[prefix]:
        prefix += 1
    if above / below <= WINKLER_FROM:
        prefix = 0
    return ((10 - prefix) * above + prefix * below) / (10 * below)

"""Pairing listed with recorded steps, one to one and as many as possible.

A table says who may be paired: `table[i][j]` is true when listed step i means recorded step j.
Every function gives pairs (i, j) in order of i, each i and each j at most once.
"""

from collections import deque

PairingTable = list[list[bool]]
PairList = list[tuple[int, int]]


def largest_pairing(table: PairingTable) -> PairList:
    """As many pairs as there can be, whatever the order.

    Berge (1957), "Two theorems in graph theory": a pairing is largest when no augmenting path is left.
    """
    choices = [[j for j, may in enumerate(row) if may] for row in table]
    partner_of: dict[int, int] = {}  # recorded -> listed
    pair_of: dict[int, int] = {}  # listed -> recorded
    for start in range(len(table)):
        augment_pairing(start, choices, partner_of, pair_of)
    return sorted(pair_of.items())


def augment_pairing(start: int, choices: list[list[int]], partner_of: dict[int, int], pair_of: dict[int, int]) -> None:
    """PairList listed step *start* as well, moving others along a shortest augmenting path, if there is one."""
    reached: dict[int, int] = {}  # recorded -> the listed step that reached it
    queue = deque([start])
    while queue:
        listed = queue.popleft()
        for recorded in choices[listed]:
            if recorded in reached:
                continue
            reached[recorded] = listed
            if recorded in partner_of:
                queue.append(partner_of[recorded])
                continue
            free: int | None = recorded
            while free is not None:
                listed = reached[free]
                former = pair_of.get(listed)  # None for *start*, where the path ends
                partner_of[free], pair_of[listed] = listed, free
                free = former
            return


def longest_in_order(table: PairingTable) -> PairList:
    """As many pairs as there can be with both sides in order: a longest common subsequence."""
    width = len(table[0]) if table else 0
    best = [[0] * (width + 1)]  # best[k][j]: pairs among the last k listed and the recorded from j on
    for row in reversed(table):
        below, line = best[-1], [0] * (width + 1)
        for j in range(width - 1, -1, -1):
            line[j] = max(below[j], line[j + 1], below[j + 1] + 1 if row[j] else 0)
        best.append(line)
    best.reverse()
    pairs: PairList = []
    i = j = 0
    while i < len(table) and j < width:
        if table[i][j] and best[i][j] == best[i + 1][j + 1] + 1:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            i += 1
    return pairs


def best_block(table: PairingTable) -> PairList:
    """As many pairs as there can be when the listed steps lie on the recorded ones without a gap."""
    width = len(table[0]) if table else 0
    best: PairList = []
    for shift in range(1 - len(table), width):
        pairs = [(i, i + shift) for i in range(len(table)) if 0 <= i + shift < width and table[i][i + shift]]
        if len(pairs) > len(best):
            best = pairs
    return best

"""The pairing of two lists, one to one, that gains most in all."""

import math


def best_assignment(gains: list[list[float]]) -> list[int | None]:
    """For each row of *gains* the column it is paired with, so that the sum of gains is largest; None for a row left over.

    Every row of the table is as long as the first; as many pairs are made as the shorter side allows. With integers
    or fractions the sum is exact. Time grows with (shorter side)² × longer side.

    Kuhn (1955), "The Hungarian method for the assignment problem", with the potentials of Jonker and Volgenant (1987).

    >>> best_assignment([[7, 6], [6, 2], [1, 1]])
    [1, 0, None]
    """
    width = len(gains[0]) if gains else 0
    if width >= len(gains):
        return list(assigned_columns(gains))
    turned = [[row[column] for row in gains] for column in range(width)]
    pairs: list[int | None] = [None] * len(gains)
    for column, row in enumerate(assigned_columns(turned)):
        pairs[row] = column
    return pairs


def assigned_columns(gains: list[list[float]]) -> list[int]:
    """For each row its column; there are at least as many columns as rows."""
    width = len(gains[0]) if gains else 0
    row_price: list[float] = [0] * len(gains)
    column_price: list[float] = [0] * width
    row_of = [-1] * width  # -1: free
    for start in range(len(gains)):
        slack: list[float] = [math.inf] * width
        came_from = [-1] * width  # -1: from the row we start with
        done: list[int] = []
        still_open = list(range(width))
        row, column = start, -1
        while row >= 0:
            for other in still_open:
                cost = row_price[row] + column_price[other] - gains[row][other]
                if cost < slack[other]:
                    slack[other], came_from[other] = cost, column
            least, column = min((slack[other], other) for other in still_open)
            row_price[start] -= least
            for other in done:
                row_price[row_of[other]] -= least
                column_price[other] += least
            for other in still_open:
                slack[other] -= least
            still_open.remove(column)
            done.append(column)
            row = row_of[column]
        while column >= 0:  # along the way back, each row gets the next column
            before = came_from[column]
            row_of[column] = row_of[before] if before >= 0 else start
            column = before
    columns = [0] * len(gains)
    for column, taken in enumerate(row_of):
        if taken >= 0:
            columns[taken] = column
    return columns

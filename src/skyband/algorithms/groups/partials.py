"""Partials of groups by pane: a small pure function that brings them together, wherever they were made."""

from collections.abc import Sequence

import numpy as np

from skyband.algorithms.contract import Floats, Ints
from skyband.kernels.groups.tally import COUNT, KEEP, SUM, TELL, TOTAL, Keep, Partials, Program, Tell, reduce

__all__ = ["SUMS", "Partials", "amounts", "merged"]

SUMS = Program(np.array([Keep(COUNT, -1, 0), Keep(SUM, 0, 1)], KEEP), np.array([Tell(TOTAL, 1)], TELL), 3, 0, 0)
"""What is kept of amounts that add up: how many, and the sum in two lanes, 1 and 2."""


def amounts(group: Ints, pane: Ints, amount: Floats, position: Ints, arrival: Ints) -> Partials:
    """Single amounts, for :data:`SUMS`."""
    sums = np.stack([np.ones(amount.size), amount, np.zeros(amount.size)])
    nothing = np.empty((0, amount.size))
    return Partials(group, pane, position, arrival, nothing.astype(np.int64), sums, nothing)


def merged(parts: Partials, program: Program) -> Partials:
    """One partial for each group and pane (and each combination of cells), in the order of pane and group.

    Merging is associative: rows may be merged in parts, on several machines, and the parts again.

    >>> ints, floats = np.array([7, 7, 5]), np.array([0.1, 0.2, 1.0])
    >>> one = merged(amounts(np.array([1, 1, 0]), np.array([3, 3, 3]), floats, ints, ints), SUMS)
    >>> one.group.tolist(), one.pane.tolist(), one.sums[1].tolist(), one.position.tolist()
    ([0, 1], [3, 3], [1.0, 0.30000000000000004], [5, 7])
    """
    if not parts.group.size:
        return parts
    place, size = _places([parts.pane, parts.group, *(parts.cells + 1)])
    return reduce(parts, place, size, program)


def _places(columns: Sequence[Ints]) -> tuple[Ints, int]:
    """For each row its place among the distinct rows of some columns, in order; and how many there are."""
    code, span = columns[0], 1
    for i, column in enumerate(columns):
        low, high = int(column.min()), int(column.max())
        if i == 0:
            code, span = column - low, high - low + 1
            continue
        if span > (1 << 62) // (high + 1):  # far apart: numbered by rank
            code = np.unique(code, return_inverse=True)[1].astype(np.int64)
            span = int(code.max()) + 1
        code, span = code * (high + 1) + column, span * (high + 1)
    if span > 8 * code.size + 4096:
        distinct, place = np.unique(code, return_inverse=True)
        return place.astype(np.int64), distinct.size
    used = np.zeros(span, bool)
    used[code] = True
    rank = np.cumsum(used) - 1
    return rank[code], int(rank[-1]) + 1

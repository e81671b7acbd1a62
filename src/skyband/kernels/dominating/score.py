"""The score of a point, counted with the grid, and points that dominate it (dominating, sections 3 and 4.2)."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.dominating.space import CELL, COUNT, SHAPE, START, STRIDE, Space, point

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@inner
def dominates(space: Space, place: int, p: Floats) -> bool:
    """Whether the point at a place dominates p."""
    strict, places = False, space.owner.size
    for j in range(p.size):
        value = space.x[j * places + place]
        if value > p[j]:
            return False
        strict |= value < p[j]
    return strict


@inner
def no_worse(space: Space, place: int, p: Floats) -> bool:
    """Whether the point at a place dominates p or equals it: then it scores as much or more."""
    j, places = 0, space.owner.size
    while j < p.size and space.x[j * places + place] <= p[j]:
        j += 1
    return j == p.size


@inner
def coordinates(space: Space, cell: int) -> Ints:
    """The place of a cell in the grid."""
    found = np.empty(space.axes.shape[1], np.int64)
    for j in range(found.size):
        found[j] = cell // space.axes[STRIDE, j] % space.axes[SHAPE, j]
    return found


@in_place
def _no_better(space: Space, p: Floats, level: Ints, equal: int, first: int, last: int) -> tuple[int, int]:
    """The points of cells ``first`` to ``last`` - 1 that are nowhere below p, and how many were compared for it.

    No cell is below that of p, and all are level with it in the first ``equal`` dimensions of ``level``: only there the
    points must be compared. Without a branch for each point and with nothing counted for each cell, this is what makes
    :func:`score_of` fast.
    """
    x, places, start, count = space.x, space.owner.size, space.cells[START], space.cells[COUNT]
    total = compared = 0
    for c in range(first, last):
        compared += count[c]
    if equal == 0:
        return compared, 0
    if equal == 1:
        j = level[0]
        for c in range(first, last):
            low = j * places + start[c]
            for i in range(low, low + count[c]):
                total += x[i] >= p[j]
        return total, compared
    for c in range(first, last):
        for place in range(start[c], start[c] + count[c]):
            inside = True
            for e in range(equal):
                inside &= x[level[e] * places + place] >= p[level[e]]
            total += inside
    return total, compared


@in_place
def _equal(space: Space, p: Floats, cell: int) -> int:
    """The points of a cell that equal p."""
    count, places = 0, space.owner.size
    for place in range(space.cells[START, cell], space.cells[START, cell] + space.cells[COUNT, cell]):
        j = 0
        while j < p.size and space.x[j * places + place] == p[j]:
            j += 1
        count += j == p.size
    return count


@inner
def score_of(space: Space, p: Floats, cell: int, work: Ints) -> int:
    """The exact score of a point: the sizes of the cells that its cell dominates, and scans of those on its borders.

    ``work[0]`` counts the comparisons.
    """
    d, shape, stride = space.axes.shape[1], space.axes[SHAPE], space.axes[STRIDE]
    low = coordinates(space, cell)
    at, level = low.copy(), np.empty(d, np.int64)
    total = -_equal(space, p, cell)
    while True:
        first, equal = 0, 0
        for j in range(d - 1):
            first += at[j] * stride[j]
            if at[j] == low[j]:
                level[equal] = j
                equal += 1
        level[equal] = d - 1
        last = first + shape[d - 1]
        first += low[d - 1]
        further, compared = _no_better(space, p, level, equal, first + 1, last)
        beside, more = _no_better(space, p, level, equal + 1, first, first + 1)
        total += further + beside
        work[0] += compared + more
        j = d - 2
        while j >= 0 and at[j] == shape[j] - 1:
            at[j] = low[j]
            j -= 1
        if j < 0:
            return total
        at[j] += 1


@outer
def all_scores(space: Space, slots: Ints) -> Ints:
    """The exact scores of the points of these slots."""
    p, work, found = np.empty(space.axes.shape[1]), np.zeros(1, np.int64), np.empty(slots.size, np.int64)
    for i in range(slots.size):
        point(space, slots[i], p)
        found[i] = score_of(space, p, space.slots[CELL, slots[i]], work)
    return found


@inner
def reference(space: Space, p: Floats, cell: int, listed: Ints, work: Ints) -> int:
    """FindReferencePoint (section 4.2): the slot of a point that dominates p and for which ``listed`` is -1, or -1.

    A point that equals p will do too: it scores the same. Cells are visited by falling sum of their coordinates, from
    that of p on, since a point found early scores low.
    """
    d, c = space.axes.shape[1], coordinates(space, cell)
    back, most = np.zeros(d, np.int64), 0
    for j in range(d):
        most += c[j]
    for away in range(most + 1):
        rest = away
        for j in range(d - 1, -1, -1):
            back[j] = min(c[j], rest)
            rest -= back[j]
        while True:
            other, sure = cell, True
            for j in range(d):
                other -= back[j] * space.axes[STRIDE, j]
                sure &= back[j] > 0
            found = _reference_in(space, p, other, sure, listed, work) if space.cells[COUNT, other] > 0 else -1
            if found >= 0:
                return found
            rest, j = 0, d - 1  # the next way to be ``away`` cells back
            while j > 0:
                rest += back[j]
                if rest > 0 and back[j - 1] < c[j - 1]:
                    break
                j -= 1
            if j <= 0:
                break
            back[j - 1] += 1
            rest -= 1
            for i in range(d - 1, j - 1, -1):
                back[i] = min(c[i], rest)
                rest -= back[i]
    return -1


@inner
def _reference_in(space: Space, p: Floats, cell: int, sure: bool, listed: Ints, work: Ints) -> int:
    for place in range(space.cells[START, cell], space.cells[START, cell] + space.cells[COUNT, cell]):
        slot = space.owner[place]
        if listed[slot] == -1:
            work[0] += 1
            if sure or no_worse(space, place, p):
                return int(slot)
    return -1

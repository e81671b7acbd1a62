"""The score of a point, counted with the grid, and points that dominate it (dominating, sections 3 and 4.2)."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.dominating.space import CELL, COUNT, SHAPE, START, STRIDE, Space, point
from skyband.kernels.jit import inner, outer

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


@inner
def _at_least(space: Space, p: Floats, j: int, cell: int) -> int:
    """The points of a cell that are not below p in dimension j."""
    first, count = j * space.owner.size + space.cells[START, cell], 0
    for i in range(first, first + space.cells[COUNT, cell]):
        count += space.x[i] >= p[j]
    return count


@inner
def _within(space: Space, p: Floats, level: Ints, cell: int) -> int:
    """The points of a partially dominated cell that p dominates; only where the cells are level must they be compared.

    ``level`` lists the dimensions in which the cell is level with that of p, -1 behind the last.
    """
    if level.size > 1 and level[1] < 0:
        return _at_least(space, p, level[0], cell)
    places, count = space.owner.size, 0
    own = level[level.size - 1] >= 0
    for place in range(space.cells[START, cell], space.cells[START, cell] + space.cells[COUNT, cell]):
        inside, strict = True, not own
        for j in level:
            if j < 0:
                break
            value = space.x[j * places + place]
            if value < p[j]:
                inside = False
                break
            strict |= value > p[j]
        count += inside and strict
    return count


@inner
def score_of(space: Space, p: Floats, cell: int, work: Ints) -> int:
    """The exact score of a point: the sizes of the cells that its cell dominates, and scans of those on its borders.

    ``work[0]`` counts the comparisons.
    """
    d, shape, stride = space.axes.shape[1], space.axes[SHAPE], space.axes[STRIDE]
    low = coordinates(space, cell)
    at, level = low.copy(), np.empty(d, np.int64)
    total = scanned = 0
    while True:
        first, equal = 0, 0
        for j in range(d - 1):
            first += at[j] * stride[j]
            if at[j] == low[j]:
                level[equal] = j
                equal += 1
        last = first + shape[d - 1]
        first += low[d - 1]
        for j in range(equal, d):
            level[j] = -1
        if equal == 0:
            for c in range(first + 1, last):
                total += space.cells[COUNT, c]
        else:
            for c in range(first + 1, last):
                if space.cells[COUNT, c] > 0:
                    total += _within(space, p, level, c)
                    scanned += space.cells[COUNT, c]
        level[equal] = d - 1
        if space.cells[COUNT, first] > 0:
            total += _within(space, p, level, first)
            scanned += space.cells[COUNT, first]
        j = d - 2
        while j >= 0 and at[j] == shape[j] - 1:
            at[j] = low[j]
            j -= 1
        if j < 0:
            break
        at[j] += 1
    work[0] += scanned
    return total


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

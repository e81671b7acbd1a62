"""The score of a point, counted with the grid, and points that dominate it.

A point dominates another one if it is nowhere above it and somewhere below. Its score is how many it dominates.
(Kontaki et al., TKDE 2012, sections 3 and 4.2.)
"""

import numpy as np

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.dominating.space import Grid, Space, point
from skyband.kernels.dominating.work import WORK
from skyband.storage.blocks import Floats, Ints, Record


@in_place
def dominates(x: Floats, place: int, p: Floats) -> bool:
    """Whether the point at a place dominates p."""
    strict = False
    for j in range(p.size):
        value = x[j, place]
        if value > p[j]:
            return False
        strict |= value < p[j]
    return strict


@in_place
def no_worse(x: Floats, place: int, p: Floats) -> bool:
    """Whether the point at a place dominates p or equals it: then it scores as much or more."""
    j = 0
    while j < p.size and x[j, place] <= p[j]:
        j += 1
    return j == p.size


@inner
def coordinates(grid: Grid, cell: int) -> Ints:
    """The place of a cell in the grid."""
    found = np.empty(grid.shape.size, np.int64)
    for j in range(found.size):
        found[j] = cell // grid.stride[j] % grid.shape[j]
    return found


@in_place
def _no_better(space: Space, p: Floats, level: Ints, equal: int, first: int, last: int) -> tuple[int, int]:
    """The points of cells ``first`` to ``last`` - 1 that are nowhere below p, and how many were compared for it.

    No cell is below that of p, and all are level with it in the first ``equal`` dimensions of ``level``: only there the
    points must be compared. Without a branch for each point and with nothing counted for each cell, this is what makes
    :func:`score_of` fast.
    """
    x, begin, members = space.x, space.cells.begin, space.cells.members
    total = compared = 0
    for c in range(first, last):
        compared += members[c]
    if equal == 0:
        return compared, 0
    if equal == 1:
        along, least = x[level[0]], p[level[0]]
        for c in range(first, last):
            for i in range(begin[c], begin[c] + members[c]):
                total += along[i] >= least
        return total, compared
    if equal == 2:
        one, other = level[0], level[equal - 1]
        along, least, across, lowest = x[one], p[one], x[other], p[other]
        for c in range(first, last):
            for i in range(begin[c], begin[c] + members[c]):
                total += (along[i] >= least) & (across[i] >= lowest)
        return total, compared
    for c in range(first, last):
        for place in range(begin[c], begin[c] + members[c]):
            inside = True
            for e in range(equal):
                inside &= x[level[e], place] >= p[level[e]]
            total += inside
    return total, compared


@in_place
def _equal(space: Space, p: Floats, cell: int) -> int:
    """The points of a cell that equal p."""
    count, begin = 0, space.cells.begin[cell]
    for place in range(begin, begin + space.cells.members[cell]):
        j = 0
        while j < p.size and space.x[j, place] == p[j]:
            j += 1
        count += j == p.size
    return count


@inner
def score_of(space: Space, p: Floats, cell: int, work: Record) -> int:
    """The exact score of a point: the sizes of the cells that its cell dominates, and scans of those on its borders."""
    shape, stride = space.grid.shape, space.grid.stride
    d, low = shape.size, coordinates(space.grid, cell)
    at, level = low.copy(), np.empty(d, np.int64)
    total, comparisons = -_equal(space, p, cell), 0
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
        comparisons += compared + more
        j = d - 2
        while j >= 0 and at[j] == shape[j] - 1:
            at[j] = low[j]
            j -= 1
        if j < 0:
            work[0].comparisons += comparisons
            return total
        at[j] += 1


@outer
def all_scores(space: Space, slots: Ints) -> Ints:
    """The exact scores of the points of these slots."""
    p, work, found = np.empty(space.x.shape[0]), np.zeros(1, WORK), np.empty(slots.size, np.int64)
    for i in range(slots.size):
        point(space, slots[i], p)
        found[i] = score_of(space, p, space.slots.cell[slots[i]], work)
    return found


@inner
def reference(space: Space, p: Floats, cell: int, entry: Ints, work: Record) -> int:
    """FindReferencePoint (section 4.2): the slot of a point that dominates p and for which ``entry`` is -1, or -1.

    A point that equals p will do too: it scores the same. Cells are visited by falling sum of their coordinates, from
    that of p on, since a point found early scores low.
    """
    grid, c = space.grid, coordinates(space.grid, cell)
    d = c.size
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
                other -= back[j] * grid.stride[j]
                sure &= back[j] > 0
            found = _reference_in(space, p, other, sure, entry, work) if space.cells.members[other] > 0 else -1
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


@in_place
def _reference_in(space: Space, p: Floats, cell: int, sure: bool, entry: Ints, work: Record) -> int:
    begin = space.cells.begin[cell]
    for place in range(begin, begin + space.cells.members[cell]):
        slot = space.owner[place]
        if entry[slot] == -1:
            work[0].comparisons += 1
            if sure or no_worse(space.x, place, p):
                return int(slot)
    return -1

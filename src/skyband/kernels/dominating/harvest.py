"""Finding the points with the best scores among all, best bound first."""

from typing import NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.common.output import grow
from skyband.kernels.dominating.ledger import Ledger, add, empty_ledger, kth
from skyband.kernels.dominating.score import reference, score_of
from skyband.kernels.dominating.space import Space, laid_out, point
from skyband.kernels.dominating.sums import upward
from skyband.kernels.dominating.work import WORK
from skyband.storage.blocks import Floats, Ints, Record

PLAIN, NEVER, OPEN = -1, -2, -3  # in place of an entry: what is known of a point that is not in the ledger
BIG = 1 << 40  # a score that none reaches
MEMO = 1 << 10  # different points that are remembered
PRIME = 2147483647


class Aim(NamedTuple):
    """Which points belong in the ledger: the ``target`` best, and those that score ``slack`` less than the k-th."""

    k: int
    target: int
    slack: int


class Bounds(NamedTuple):
    """Upper bounds of the scores of plain points: ``min(base + drift, most)``, of the point and of its cell."""

    base: Ints  # by slot
    drift: Ints  # by cell
    most: Ints  # by cell
    highest: Ints  # by cell: the largest base of its plain points, or more


class Heap(NamedTuple):
    """Points by a key, the largest on top."""

    key: Floats
    slot: Ints


@inner
def level_of(ledger: Ledger, aim: Aim) -> int:
    """The score above which points belong in the ledger: that of rank ``target``, but ``slack`` below the k-th."""
    held = ledger.meta[0].held
    if held < aim.k or held < aim.target:
        return -1
    score = ledger.score[:held].copy()
    level = kth(score, aim.k) - aim.slack
    return int(max(-1, min(level, kth(score, aim.target))))


@in_place
def _nearness(space: Space, place: int) -> float:
    """From 0 to almost 1, smaller for points that dominate; only so that they are looked at first."""
    edge, shape, total = space.grid.edge, space.grid.shape, 0.0
    for j in range(shape.size):
        value, g = space.x[j, place], shape[j]
        if g > 1:
            low, high = edge[j, 0], edge[j, g - 2]
            if value > low:
                total += 0.9 * min(1.0, (value - low) / (high - low)) if value < high else 0.9
    return float(total / shape.size)


@in_place
def _sink(heap: Heap, i: int, size: int) -> None:
    """Restores the heap below a key that has become smaller."""
    key, slot = heap.key, heap.slot
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and key[child + 1] > key[child]:
            child += 1
        if key[i] >= key[child]:
            return
        key[i], key[child] = key[child], key[i]
        slot[i], slot[child] = slot[child], slot[i]
        i = child


@inner
def gather(space: Space, entry: Ints, bounds: Bounds, level: int) -> Heap:
    """The plain points whose bound is above the level: now OPEN.

    The highest base of a cell is made what it is where the cell is looked into.
    """
    cells, heap, size = space.cells, Heap(np.empty(64), np.empty(64, np.int64)), 0
    for c in range(cells.begin.size):
        drift, most = bounds.drift[c], bounds.most[c]
        if cells.members[c] == 0 or min(bounds.highest[c] + drift, most) <= level:
            continue
        highest = -BIG
        for place in range(cells.begin[c], cells.begin[c] + cells.members[c]):
            slot = space.owner[place]
            if entry[slot] != PLAIN:
                continue
            bound = min(bounds.base[slot] + drift, most)
            if bound <= level:
                highest = max(highest, bounds.base[slot])
                continue
            entry[slot] = OPEN
            if size == heap.key.size:
                heap = _longer(heap)
            heap.key[size], heap.slot[size] = bound - _nearness(space, place), slot
            size += 1
        bounds.highest[c] = highest
    heap = Heap(heap.key[:size], heap.slot[:size])
    for i in range(size // 2 - 1, -1, -1):
        _sink(heap, i, size)
    return heap


@inner
def _longer(heap: Heap) -> Heap:
    return Heap(grow(heap.key, 0), grow(heap.slot, 0))


@inner
def _recall(space: Space, memo: Ints, slot: int, p: Floats) -> int:
    """A slot seen before with the same point p as ``slot``; -1 if there is none, and then ``slot`` is remembered.

    So of equal points, however many there are, only one is scored. One slot is remembered for each hash.
    """
    mixed = 0
    for bits in p.view(np.int64):
        mixed = (mixed + bits % PRIME) * 48271 % PRIME
    at = mixed % memo.size
    other = memo[at]
    for j in range(p.size):
        if other >= 0 and space.x[j, space.slots.place[other]] != p[j]:
            other = -1
    if other < 0:
        memo[at] = slot
    return int(other)


@inner
def harvest(space: Space, ledger: Ledger, bounds: Bounds, aim: Aim, work: Record) -> tuple[Ledger, int]:
    """Brings every point with a score above a level into the ledger, and returns the level (see :func:`level_of`).

    The bounds of all plain points are then at or below it. Best bounds first: once a bound is not above the level, no
    later one is. A point that a plain one dominates or equals scores no more than that one, so its own score need not
    be counted.
    """
    base, drift, most, highest = bounds.base, bounds.drift, bounds.most, bounds.highest
    level = level_of(ledger, aim)
    heap = gather(space, ledger.entry, bounds, level)
    size, renew = heap.slot.size, 0
    p, memo = np.empty(space.x.shape[0]), np.full(MEMO, -1)
    while size > 0:
        slot = heap.slot[0]
        cell = space.slots.cell[slot]
        if np.ceil(heap.key[0]) <= level:
            break
        size -= 1
        heap.key[0], heap.slot[0] = heap.key[size], heap.slot[size]
        _sink(heap, 0, size)
        point(space, slot, p)
        same = _recall(space, memo, slot, p)
        other = same
        if same < 0:
            other = reference(space, p, cell, ledger.entry, work)
        elif ledger.entry[same] >= 0:
            other = -1
        if other >= 0:
            there = space.slots.cell[other]
            base[slot] = min(base[other] + drift[there], most[there]) - drift[cell]
            ledger.entry[slot] = PLAIN
        else:
            score = ledger.score[ledger.entry[same]] if same >= 0 else score_of(space, p, cell, work)
            work[0].scores += same < 0
            base[slot] = score - drift[cell]
            if score > level:
                ledger = add(ledger, space, slot, score)
                held = ledger.meta[0].held
                if held <= aim.target or held >= renew:
                    level = max(level, level_of(ledger, aim))
                    renew = held + max(16, held // 8)
            else:
                ledger.entry[slot] = PLAIN
        if ledger.entry[slot] == PLAIN:
            highest[cell] = max(highest[cell], base[slot])
    level = max(level, level_of(ledger, aim))
    for i in range(size):
        slot = heap.slot[i]
        cell = space.slots.cell[slot]
        ledger.entry[slot] = PLAIN
        highest[cell] = max(highest[cell], base[slot])
    return ledger, level


def dominating(points: Floats, k: int) -> tuple[Ints, Ints]:
    """Rows of the points (n × d), ascending, and their scores: the top k dominating, and those that tie with the k-th.

    >>> dominating(np.array([[3.0, 3.0], [1.0, 2.0], [2.0, 2.5], [1.0, 2.0]]), 1)
    (array([1, 3]), array([2, 2]))
    """
    arrivals = np.arange(points.shape[0])
    space = laid_out(points, arrivals, arrivals, 0, points[:0])
    rows, score = _best(space, empty_ledger(points.shape[1], space.slots.cell.size), k)
    order = np.argsort(rows)
    return rows[order], score[order]


@outer
def _best(space: Space, ledger: Ledger, k: int) -> tuple[Ints, Ints]:
    """The slots, which are the rows in a space that was just laid out, and the scores."""
    most = upward(space.grid, space.cells.members)
    bounds = Bounds(np.full(ledger.entry.size, BIG), np.zeros(most.size, np.int64), most, np.full(most.size, BIG))
    ledger, _ = harvest(space, ledger, bounds, Aim(k, k, 1), np.zeros(1, WORK))
    score = ledger.score[: ledger.meta[0].held]
    least = kth(score.copy(), min(k, score.size)) if score.size else 0
    found = np.flatnonzero(score >= least)
    return ledger.slot[found], score[found]

"""Finding the points with the best scores among all, best bound first."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.dominating.ledger import SCORE, SIZE, SLOT, Ledger, add, empty_ledger, kth, with_slots
from skyband.kernels.dominating.score import reference, score_of
from skyband.kernels.dominating.space import CELL, COUNT, PLACE, SHAPE, START, Space, laid_out, point
from skyband.kernels.dominating.sums import upward

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PLAIN, NEVER, OPEN = -1, -2, -3  # in place of an entry: what is known of a point that is not in the ledger
BIG = 1 << 40  # a score that none reaches
MEMO = 1 << 10  # different points that are remembered
PRIME = 2147483647


@inner
def level_of(ledger: Ledger, k: int, target: int, slack: int) -> int:
    """The score above which points belong in the ledger: that of rank ``target``, but ``slack`` below the k-th."""
    size = ledger.meta[SIZE]
    if size < k:
        return -1
    score = ledger.data[SCORE, :size].copy()
    level = kth(score, k) - slack
    if size < target:
        return -1
    return int(max(-1, min(level, kth(score, target))))


@inner
def _nearness(space: Space, place: int) -> float:
    """From 0 to almost 1, smaller for points that dominate; only so that they are looked at first."""
    d, total = space.axes.shape[1], 0.0
    width = space.edge.size // d
    for j in range(d):
        value, g = space.x[j * space.owner.size + place], space.axes[SHAPE, j]
        if g > 1:
            low, high = space.edge[j * width], space.edge[j * width + g - 2]
            if value > low:
                total += 0.9 * min(1.0, (value - low) / (high - low)) if value < high else 0.9
    return float(total / d)


@inner
def _sink(partition: Floats, slot: Ints, i: int, size: int) -> None:
    """Restores a heap with the largest key on top."""
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and partition[child + 1] > partition[child]:
            child += 1
        if partition[i] >= partition[child]:
            return
        partition[i], partition[child] = partition[child], partition[i]
        slot[i], slot[child] = slot[child], slot[i]
        i = child


@inner
def gather(
    space: Space, ledger: Ledger, base: Ints, drift: Ints, most: Ints, top: Ints, level: int
) -> tuple[Floats, Ints]:
    """The plain points whose bound, ``min(base + drift, most)`` by cell, is above the level: now OPEN, as a heap.

    ``top`` is the largest base in each cell, or more; it is tightened where cells are looked into.
    """
    partition, slots, size = np.empty(64), np.empty(64, np.int64), 0
    for c in range(space.cells.shape[1]):
        if space.cells[COUNT, c] == 0 or min(top[c] + drift[c], most[c]) <= level:
            continue
        highest = -BIG
        for place in range(space.cells[START, c], space.cells[START, c] + space.cells[COUNT, c]):
            slot = space.owner[place]
            if ledger.entry[slot] != PLAIN:
                continue
            bound = min(base[slot] + drift[c], most[c])
            if bound <= level:
                highest = max(highest, base[slot])
                continue
            ledger.entry[slot] = OPEN
            if size == partition.size:
                partition, slots = _longer(partition, slots)
            partition[size], slots[size] = bound - _nearness(space, place), slot
            size += 1
        top[c] = highest
    partition, slots = partition[:size], slots[:size]
    for i in range(size // 2 - 1, -1, -1):
        _sink(partition, slots, i, size)
    return partition, slots


@inner
def _longer(partition: Floats, slots: Ints) -> tuple[Floats, Ints]:
    long, more = np.empty(2 * partition.size), np.empty(2 * partition.size, np.int64)
    for i in range(partition.size):
        long[i], more[i] = partition[i], slots[i]
    return long, more


@inner
def _recall(space: Space, memo: Ints, slot: int, p: Floats) -> int:
    """A slot whose point equals p, which is that of ``slot``, or -1; then ``slot`` is what is recalled from now on.

    So that of equal points, however many there are, one is looked at.
    """
    mixed, places = 0, space.owner.size
    for bits in p.view(np.int64):
        mixed = (mixed + bits % PRIME) * 48271 % PRIME
    at = mixed % memo.size
    other = memo[at]
    for j in range(p.size):
        if other >= 0 and space.x[j * places + space.slots[PLACE, other]] != p[j]:
            other = -1
    if other < 0:
        memo[at] = slot
    return int(other)


@inner
def harvest(
    space: Space, ledger: Ledger, base: Ints, drift: Ints, most: Ints, top: Ints, aim: Ints, work: Ints
) -> tuple[Ledger, int]:
    """Brings every point with a score above a level into the ledger, and returns the level.

    The level is that of :func:`level_of`, with ``aim`` = (k, target, slack). The bounds of all plain points are then at
    or below it. Best bounds first: once a bound is not above the level, no later one is. A point
    that a plain one dominates or equals scores no more than that one, so its own score need not be counted.
    """
    k, target, slack = aim
    level = level_of(ledger, k, target, slack)
    partition, slots = gather(space, ledger, base, drift, most, top, level)
    size, renew = slots.size, 0
    p, memo = np.empty(space.axes.shape[1]), np.full(MEMO, -1)
    while size > 0:
        slot = slots[0]
        cell = space.slots[CELL, slot]
        if np.ceil(partition[0]) <= level:
            break
        size -= 1
        partition[0], slots[0] = partition[size], slots[size]
        _sink(partition, slots, 0, size)
        point(space, slot, p)
        same = _recall(space, memo, slot, p)
        other = same
        if same < 0:
            other = reference(space, p, cell, ledger.entry, work)
        elif ledger.entry[same] >= 0:
            other = -1
        if other >= 0:
            there = space.slots[CELL, other]
            base[slot] = min(base[other] + drift[there], most[there]) - drift[cell]
            ledger.entry[slot] = PLAIN
        else:
            score = ledger.data[SCORE, ledger.entry[same]] if same >= 0 else score_of(space, p, cell, work)
            work[1] += same < 0
            base[slot] = score - drift[cell]
            if score > level:
                ledger = add(ledger, space, slot, score)
                if ledger.meta[SIZE] <= target or ledger.meta[SIZE] >= renew:
                    level = max(level, level_of(ledger, k, target, slack))
                    renew = ledger.meta[SIZE] + max(16, ledger.meta[SIZE] // 8)
            else:
                ledger.entry[slot] = PLAIN
        if ledger.entry[slot] == PLAIN:
            top[cell] = max(top[cell], base[slot])
    level = max(level, level_of(ledger, k, target, slack))
    for i in range(size):
        slot = slots[i]
        cell = space.slots[CELL, slot]
        ledger.entry[slot] = PLAIN
        top[cell] = max(top[cell], base[slot])
    return ledger, level


def dominating(points: Floats, k: int) -> tuple[Ints, Ints]:
    """Rows of the points (n × d), ascending, and their scores: the top k dominating, and those that tie with the k-th.

    >>> dominating(np.array([[3.0, 3.0], [1.0, 2.0], [2.0, 2.5], [1.0, 2.0]]), 1)
    (array([1, 3]), array([2, 2]))
    """
    arrivals = np.arange(points.shape[0])
    space = laid_out(points, arrivals, arrivals, 0, points[:0])
    rows, score = _best(space, with_slots(empty_ledger(points.shape[1]), space.slots.shape[1]), k)
    order = np.argsort(rows)
    return rows[order], score[order]


@outer
def _best(space: Space, ledger: Ledger, k: int) -> tuple[Ints, Ints]:
    """The slots, which are the rows in a space that was just laid out, and the scores."""
    most, base, work = upward(space, space.cells[COUNT]), np.full(ledger.entry.size, BIG), np.zeros(3, np.int64)
    unknown = np.full(most.size, BIG)
    ledger, _ = harvest(space, ledger, base, np.zeros(most.size, np.int64), most, unknown, np.array([k, k, 1]), work)
    score = ledger.data[SCORE, : ledger.meta[SIZE]]
    least = kth(score.copy(), min(k, score.size)) if score.size else 0
    found = np.flatnonzero(score >= least)
    return ledger.data[SLOT][found], score[found]

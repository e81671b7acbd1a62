"""CLA: exact scores for the few points that may be among the top k soon, bounds by cell for all others."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.dominating.harvest import BIG, NEVER, OPEN, PLAIN, harvest
from skyband.kernels.dominating.ledger import (
    DIMENSIONS,
    RANK,
    SCORE,
    SIZE,
    SLOT,
    TOP,
    Ledger,
    account,
    add,
    remove,
    settle,
    strike,
    twin,
)
from skyband.kernels.dominating.score import reference, score_of
from skyband.kernels.dominating.space import (
    CELL,
    COUNT,
    TIME,
    TURN,
    Points,
    Space,
    drop_oldest,
    insert,
    live,
    oldest,
    point,
)
from skyband.kernels.dominating.sums import beyond, least, upward
from skyband.kernels.dominating.tell import FLOOR, HIGH, Told, nothing, tell

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CAME, WENT, DRIFT, MOST, HIGHEST, CAP, NEVERS = range(7)  # rows of ``Marks.cell``
LEVEL, ARRIVED, EXPIRED, SLACK, LARGEST, STEPS, FORCED = range(7)  # of ``Marks.meta``


class Marks(NamedTuple):
    """Bounds on the scores of the points that are not in the ledger, as they were at the last review.

    At the review a plain point scored at most ``min(base + DRIFT, MOST)``, and that was at most LEVEL. DRIFT sums up,
    for each cell, how many points came that one of its points may dominate, less those that went and that all of its
    points dominated; CAME and WENT count what has come and gone in each cell since the review. MOST is how many points
    there were that a point of the cell might dominate, HIGHEST the largest base in it, and CAP a bound for any point
    that might be in it.
    """

    base: Ints  # by slot
    cell: Ints  # by cell
    meta: Ints


def no_marks(slots: int, cells: int) -> Marks:
    """Nothing is known: whatever comes is looked at."""
    cell = np.zeros((7, cells), np.int64)
    cell[HIGHEST], cell[MOST], cell[CAP] = -BIG, BIG, BIG
    return Marks(np.zeros(slots, np.int64), cell, np.array([-1, 0, 0, 1, 0, 0, 0]))


@outer
def ledger_steps(
    space: Space, ledger: Ledger, marks: Marks, rows: Points, steps: Ints, k: int, ties: bool, work: Ints
) -> tuple[Ledger, Told]:
    """Takes the steps."""
    told, low = nothing(), 0
    p = np.empty(space.axes.shape[1])
    hot = np.empty(16, np.int64)
    for s in range(steps.shape[1]):
        high, floor = steps[HIGH, s], steps[FLOOR, s]
        while live(space) > 0 and space.slots[TIME, oldest(space)] <= floor:
            ledger = _go(space, ledger, marks, p, work)
        if high - low > hot.size:
            hot = np.empty(high - low, np.int64)
        count = 0
        for i in range(low, high):
            if rows.position[i] > floor:
                count = _come(space, ledger, marks, rows, i, hot, count, work)
        low = high
        ledger = _look(space, ledger, marks, hot[:count], k, work)
        settle(ledger, k, ties)
        marks.meta[STEPS] += 1
        if not _valid(ledger, marks, k):
            ledger = _review(space, ledger, marks, k, ties, work)
            settle(ledger, k, ties)
        told = tell(told, ledger, rows, steps, s)
    return ledger, told


@inner
def _go(space: Space, ledger: Ledger, marks: Marks, p: Floats, work: Ints) -> Ledger:
    """The oldest point leaves."""
    slot = oldest(space)
    cell = space.slots[CELL, slot]
    ledger = strike(ledger, space, slot, p)
    if ledger.entry[slot] == NEVER:
        marks.cell[NEVERS, cell] -= 1
    ledger.entry[slot] = PLAIN
    drop_oldest(space)
    account(ledger, p, -1, work)
    marks.cell[WENT, cell] += 1
    marks.meta[EXPIRED] += 1
    return ledger


@inner
def _come(space: Space, ledger: Ledger, marks: Marks, rows: Points, i: int, hot: Ints, count: int, work: Ints) -> int:
    """A point comes: it is plain if its cell says that it scores low, else it is put on the list of hot ones."""
    slot = insert(space, rows.x[i], rows.position[i], rows.arrival[i])
    cell, marked = space.slots[CELL, slot], marks.cell
    account(ledger, rows.x[i], 1, work)
    marked[CAME, cell] += 1
    marks.meta[ARRIVED] += 1
    if marked[CAP, cell] <= marks.meta[LEVEL]:
        marks.base[slot] = marked[CAP, cell] - marked[DRIFT, cell]
        marked[HIGHEST, cell] = max(marked[HIGHEST, cell], marks.base[slot])
        return count
    ledger.entry[slot] = OPEN
    hot[count] = slot
    return count + 1


@inner
def _look(space: Space, ledger: Ledger, marks: Marks, hot: Ints, k: int, work: Ints) -> Ledger:
    """Decides about hot points: plain if a plain one is no worse or their score is low, else into the ledger."""
    marked, meta = marks.cell, marks.meta
    if hot.size > 2 * k + 16 or meta[FORCED]:
        for slot in hot:  # too many for one at a time
            ledger.entry[slot] = PLAIN
            marks.base[slot] = marked[HIGHEST, space.slots[CELL, slot]] = BIG
        meta[FORCED] = 1
        return ledger
    p = np.empty(space.axes.shape[1])
    for slot in hot:
        point(space, slot, p)
        cell = space.slots[CELL, slot]
        same = twin(ledger, p)
        other = reference(space, p, cell, ledger.entry, work) if meta[LEVEL] >= 0 and same < 0 else -1
        if other >= 0:
            there = space.slots[CELL, other]
            bound = min(marks.base[other] + marked[DRIFT, there], marked[MOST, there])
        else:  # as if it had been there at the review: what has gone since may have been its own
            score = ledger.data[SCORE, same] if same >= 0 else score_of(space, p, cell, work)
            work[1] += same < 0
            bound = score + meta[EXPIRED]
            if bound > meta[LEVEL]:
                ledger = add(ledger, space, slot, score)
                continue
        ledger.entry[slot] = PLAIN
        marks.base[slot] = bound - marked[DRIFT, cell]
        marked[HIGHEST, cell] = max(marked[HIGHEST, cell], marks.base[slot])
    return ledger


@inner
def _valid(ledger: Ledger, marks: Marks, k: int) -> bool:
    """Whether the ledger is sure to hold the answer: no plain point can have come up to the k-th since the review."""
    meta = marks.meta
    if meta[FORCED] or ledger.meta[SIZE] > meta[LARGEST]:
        return False
    if meta[LEVEL] < 0:
        return True
    kth = ledger.data[RANK, k - 1]
    return bool(ledger.meta[TOP] >= k and ledger.data[SCORE, kth] > meta[LEVEL] + meta[ARRIVED])


@inner
def _review(space: Space, ledger: Ledger, marks: Marks, k: int, ties: bool, work: Ints) -> Ledger:
    """Brings the bounds up to date, and then the ledger."""
    marked, meta = marks.cell, marks.meta
    _drift(space, marks)
    target, cells = 2 * k + 16, marked.shape[1]
    if meta[STEPS] * ledger.meta[SIZE] < cells + 16 * target:  # reviews come too often: keep more in the ledger
        meta[SLACK] = min(2 * meta[SLACK] + 1, BIG)
    else:
        meta[SLACK] = max(1, meta[SLACK] - meta[SLACK] // 8)
    aim = np.array([k, target, meta[SLACK]])
    ledger, level = harvest(
        space, ledger, marks.base, marked[DRIFT], marked[MOST], marked[HIGHEST], aim, work
    )  # fmt: skip
    if ledger.meta[SIZE] > 2 * target:
        ledger = _forget(space, ledger, marks, level)
        ledger = _drop_beaten(space, ledger, marks, k, ties)
    meta[LEVEL], meta[ARRIVED], meta[EXPIRED], meta[STEPS], meta[FORCED] = level, 0, 0, 0, 0
    meta[LARGEST] = max(2 * ledger.meta[SIZE], 4 * target)
    _cap(space, ledger, marks)
    return ledger


@inner
def _drift(space: Space, marks: Marks) -> None:
    """Sums up what has come and gone, and how many points there are."""
    marked = marks.cell
    came, went, most = upward(space, marked[CAME]), upward(space, marked[WENT]), upward(space, space.cells[COUNT])
    for c in range(marked.shape[1]):
        further = beyond(space, c, 1)
        marked[DRIFT, c] += came[c] - (went[further] if further >= 0 else 0)
        marked[MOST, c] = most[c]
        marked[CAME, c] = marked[WENT, c] = 0


@inner
def _cap(space: Space, ledger: Ledger, marks: Marks) -> None:
    """A bound for whatever may come in a cell: MOST, and the bounds of plain points in cells that dominate it."""
    marked = marks.cell
    plain = space.cells[COUNT] - marked[NEVERS]
    for i in range(ledger.meta[SIZE]):
        plain[space.slots[CELL, ledger.data[SLOT, i]]] -= 1
    bound = np.full(plain.size, BIG)
    for c in range(plain.size):
        if plain[c] > 0:
            bound[c] = min(marked[HIGHEST, c] + marked[DRIFT, c], marked[MOST, c])
    lows = least(space, bound)
    for c in range(plain.size):
        nearer = beyond(space, c, -1)
        marked[CAP, c] = min(marked[MOST, c], lows[nearer] if nearer >= 0 else BIG)


@inner
def _forget(space: Space, ledger: Ledger, marks: Marks, level: int) -> Ledger:
    """Strikes out the entries that are not above the level; their scores are remembered as bounds."""
    i = 0
    while i < ledger.meta[SIZE]:
        if ledger.data[SCORE, i] > level:
            i += 1
            continue
        slot = ledger.data[SLOT, i]
        cell = space.slots[CELL, slot]
        marks.base[slot] = ledger.data[SCORE, i] - marks.cell[DRIFT, cell]
        marks.cell[HIGHEST, cell] = max(marks.cell[HIGHEST, cell], marks.base[slot])
        ledger = remove(ledger, i)
    return ledger


@inner
def _drop_beaten(space: Space, ledger: Ledger, marks: Marks, k: int, ties: bool) -> Ledger:
    """Strikes out for ever the entries that k newer ones dominate or equal: as long as it lives they rank before it.

    If there are k of them, there are k that are not beaten themselves; with those alone it is compared.
    """
    size, kept = ledger.meta[SIZE], 0
    turn, unbeaten, beaten = np.empty(size, np.int64), np.empty(size, np.int64), np.zeros(size, np.bool_)
    for i in range(size):
        turn[i] = -space.slots[TURN, ledger.data[SLOT, i]]
    for i in np.argsort(turn):
        count = 0
        for r in range(kept):
            count += _no_worse(ledger, unbeaten[r], i, ties)
            if count == k:
                break
        beaten[i] = count == k
        if not beaten[i]:
            unbeaten[kept] = i
            kept += 1
    for i in range(beaten.size - 1, -1, -1):
        if beaten[i]:
            slot = ledger.data[SLOT, i]
            ledger = remove(ledger, i)
            ledger.entry[slot] = NEVER
            marks.cell[NEVERS, space.slots[CELL, slot]] += 1
    return ledger


@inner
def _no_worse(ledger: Ledger, a: int, b: int, strictly: bool) -> bool:
    """Whether entry a dominates entry b, or equals it unless ``strictly``."""
    room, strict = ledger.data.shape[1], not strictly
    for j in range(ledger.meta[DIMENSIONS]):
        if ledger.x[j * room + a] > ledger.x[j * room + b]:
            return False
        strict |= ledger.x[j * room + a] < ledger.x[j * room + b]
    return strict

"""CLA: exact scores for the few points that may be among the top k soon, bounds by cell for all others."""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.dominating.harvest import BIG, NEVER, OPEN, PLAIN, Aim, Bounds, harvest
from skyband.kernels.dominating.ledger import Ledger, account, add, listed_score, remove, settle, strike, twin
from skyband.kernels.dominating.score import reference, score_of
from skyband.kernels.dominating.space import Points, Space, drop_oldest, expired, insert, oldest, point
from skyband.kernels.dominating.sums import beyond, least, upward
from skyband.kernels.dominating.tell import Steps, Told, tell
from skyband.storage.blocks import Floats, Ints, Record, block, column, empty, resized, scalars


class MarksMeta(NamedTuple):
    """What has happened since the last review, and what that found."""

    level: int = -1  # no plain point scored more
    arrived: int = 0  # points that came since
    expired: int = 0  # points that went since
    slack: int = 1  # how far below the k-th score the level was to be
    largest: int = 0  # a ledger with more entries is reviewed
    steps: int = 0  # since
    forced: int = 0  # whether there must be a review before anything is told


@block(version=1)
class Marks(NamedTuple):
    """Bounds on the scores of the points that are not in the ledger, as they were at the last review.

    At the review a plain point scored at most ``min(base + drift, most)``, and that was at most the level.
    """

    base: Annotated[Ints, column("slots")]
    came: Annotated[Ints, column("cells")]  # points that came into the cell since the review
    went: Annotated[Ints, column("cells")]  # points that went from it since
    drift: Annotated[Ints, column("cells")]  # points that came and that one of the cell may dominate, less those that
    # went and that all of the cell dominated, up to the review
    most: Annotated[Ints, column("cells", fill=BIG)]  # points that one of the cell might dominate
    highest: Annotated[Ints, column("cells", fill=-BIG)]  # the largest base in the cell, or more
    cap: Annotated[Ints, column("cells", fill=BIG)]  # a bound for any point that might be in the cell
    nevers: Annotated[Ints, column("cells")]  # points of the cell that were struck out for ever
    meta: Annotated[Record, scalars(MarksMeta)]


def no_marks(slots: int, cells: int) -> Marks:
    """Nothing is known: whatever comes is looked at."""
    return resized(resized(empty(Marks), "slots", slots), "cells", cells)


@outer
def ledger_steps(
    space: Space, ledger: Ledger, marks: Marks, told: Told, rows: Points, steps: Steps, k: int, ties: bool, work: Record
) -> tuple[Ledger, Told]:
    """Takes the steps."""
    low, d = 0, space.x.shape[0]
    p, hot = np.empty(d), np.empty(16, np.int64)
    for s in range(steps.high.size):
        high, floor = steps.high[s], steps.floor[s]
        while expired(space, floor):
            _go(space, ledger, marks, p)
            held = ledger.meta[0].held
            account(ledger.x, ledger.score[:held], p, -1)
            work[0].comparisons += held * d
        if high - low > hot.size:
            hot = np.empty(high - low, np.int64)
        count, held = 0, ledger.meta[0].held
        for i in range(low, high):
            if rows.position[i] > floor:
                slot = insert(space, rows.x[i], rows.position[i], rows.arrival[i])
                account(ledger.x, ledger.score[:held], rows.x[i], 1)
                work[0].comparisons += held * d
                if not _low(space, marks, slot):
                    ledger.entry[slot] = OPEN
                    hot[count] = slot
                    count += 1
        low = high
        if count > 0:
            ledger = _look(space, ledger, marks, hot[:count], k, work)
        settle(ledger, k, ties)
        marks.meta[0].steps += 1
        if not _valid(ledger, marks, k):
            ledger = _review(space, ledger, marks, k, ties, work)
            settle(ledger, k, ties)
        told, ledger = tell(told, ledger, rows, steps, s)
    return ledger, told


@in_place
def _go(space: Space, ledger: Ledger, marks: Marks, p: Floats) -> None:
    """The oldest point leaves; it is copied to ``p``."""
    slot = oldest(space)
    cell = space.slots.cell[slot]
    strike(ledger, space, slot, p)
    if ledger.entry[slot] == NEVER:
        marks.nevers[cell] -= 1
    ledger.entry[slot] = PLAIN
    drop_oldest(space)
    marks.went[cell] += 1
    marks.meta[0].expired += 1


@in_place
def _low(space: Space, marks: Marks, slot: int) -> bool:
    """Takes notice of a point that came: whether it is plain because its cell says that it scores low."""
    cell, meta = space.slots.cell[slot], marks.meta[0]
    marks.came[cell] += 1
    meta.arrived += 1
    if marks.cap[cell] > meta.level:
        return False
    _mark(marks, slot, cell, marks.cap[cell])
    return True


@in_place
def _mark(marks: Marks, slot: int, cell: int, bound: int) -> None:
    """Notes a bound of a plain point."""
    marks.base[slot] = bound - marks.drift[cell]
    marks.highest[cell] = max(marks.highest[cell], marks.base[slot])


@inner
def _look(space: Space, ledger: Ledger, marks: Marks, hot: Ints, k: int, work: Record) -> Ledger:
    """Decides about hot points: plain if a plain one is no worse or their score is low, else into the ledger."""
    meta = marks.meta[0]
    if hot.size > 2 * k + 16 or meta.forced:
        for slot in hot:  # too many for one at a time
            ledger.entry[slot] = PLAIN
            marks.base[slot] = marks.highest[space.slots.cell[slot]] = BIG
        meta.forced = 1
        return ledger
    p = np.empty(space.x.shape[0])
    for slot in hot:
        point(space, slot, p)
        cell = space.slots.cell[slot]
        same = twin(ledger, p)
        other = reference(space, p, cell, ledger.entry, work) if meta.level >= 0 and same < 0 else -1
        if other >= 0:
            there = space.slots.cell[other]
            bound = min(marks.base[other] + marks.drift[there], marks.most[there])
        else:  # as if it had been there at the review: what has gone since may have been its own
            score = ledger.score[same] if same >= 0 else score_of(space, p, cell, work)
            work[0].scores += same < 0
            bound = score + meta.expired
            if bound > meta.level:
                ledger = add(ledger, space, slot, score)
                continue
        ledger.entry[slot] = PLAIN
        _mark(marks, slot, cell, bound)
    return ledger


@in_place
def _valid(ledger: Ledger, marks: Marks, k: int) -> bool:
    """Whether the ledger is sure to hold the answer: no plain point can have come up to the k-th since the review."""
    meta, entries = marks.meta[0], ledger.meta[0]
    if meta.forced or entries.held > meta.largest:
        return False
    if meta.level < 0:
        return True
    return bool(entries.top >= k and listed_score(ledger, k - 1) > meta.level + meta.arrived)


@inner
def _review(space: Space, ledger: Ledger, marks: Marks, k: int, ties: bool, work: Record) -> Ledger:
    """Brings the bounds up to date, and then the ledger."""
    meta, target, cells = marks.meta[0], 2 * k + 16, marks.most.size
    _drift(space, marks)
    if meta.steps * ledger.meta[0].held < cells + 16 * target:  # reviews come too often: keep more in the ledger
        meta.slack = min(2 * meta.slack + 1, BIG)
    else:
        meta.slack = max(1, meta.slack - meta.slack // 8)
    bounds = Bounds(marks.base, marks.drift, marks.most, marks.highest)
    ledger, level = harvest(space, ledger, bounds, Aim(k, target, meta.slack), work)
    if ledger.meta[0].held > 2 * target:
        _forget(space, ledger, marks, level)
        _drop_beaten(space, ledger, marks, k, ties)
    meta.level, meta.arrived, meta.expired, meta.steps, meta.forced = level, 0, 0, 0, 0
    meta.largest = max(2 * ledger.meta[0].held, 4 * target)
    _cap(space, ledger, marks)
    return ledger


@inner
def _drift(space: Space, marks: Marks) -> None:
    """Sums up what has come and gone, and how many points there are."""
    grid = space.grid
    came, went, most = upward(grid, marks.came), upward(grid, marks.went), upward(grid, space.cells.members)
    for c in range(most.size):
        further = beyond(grid, c, 1)
        marks.drift[c] += came[c] - (went[further] if further >= 0 else 0)
        marks.most[c] = most[c]
        marks.came[c] = marks.went[c] = 0


@inner
def _cap(space: Space, ledger: Ledger, marks: Marks) -> None:
    """A bound for whatever may come in a cell: the most, and the bounds of plain points in cells that dominate it."""
    plain = space.cells.members - marks.nevers
    for i in range(ledger.meta[0].held):
        plain[space.slots.cell[ledger.slot[i]]] -= 1
    bound = np.full(plain.size, BIG)
    for c in range(plain.size):
        if plain[c] > 0:
            bound[c] = min(marks.highest[c] + marks.drift[c], marks.most[c])
    lows = least(space.grid, bound)
    for c in range(plain.size):
        nearer = beyond(space.grid, c, -1)
        marks.cap[c] = min(marks.most[c], lows[nearer] if nearer >= 0 else BIG)


@in_place
def _forget(space: Space, ledger: Ledger, marks: Marks, level: int) -> None:
    """Strikes out the entries that are not above the level; their scores are remembered as bounds."""
    i = 0
    while i < ledger.meta[0].held:
        if ledger.score[i] > level:
            i += 1
            continue
        slot = ledger.slot[i]
        _mark(marks, slot, space.slots.cell[slot], ledger.score[i])
        remove(ledger, i)


@inner
def _drop_beaten(space: Space, ledger: Ledger, marks: Marks, k: int, ties: bool) -> None:
    """Strikes out for ever the entries that k newer ones dominate or equal: as long as it lives they rank before it.

    If there are k of them, there are k that are not beaten themselves; with those alone it is compared.
    """
    held, kept = ledger.meta[0].held, 0
    turn, unbeaten, beaten = np.empty(held, np.int64), np.empty(held, np.int64), np.zeros(held, np.bool_)
    for i in range(held):
        turn[i] = -space.slots.turn[ledger.slot[i]]
    for i in np.argsort(turn):
        count = 0
        for r in range(kept):
            count += _no_worse(ledger.x, unbeaten[r], i, ties)
            if count == k:
                break
        beaten[i] = count == k
        if not beaten[i]:
            unbeaten[kept] = i
            kept += 1
    for i in range(held - 1, -1, -1):
        if beaten[i]:
            slot = ledger.slot[i]
            remove(ledger, i)
            ledger.entry[slot] = NEVER
            marks.nevers[space.slots.cell[slot]] += 1


@in_place
def _no_worse(x: Floats, a: int, b: int, strictly: bool) -> bool:
    """Whether entry a dominates entry b, or equals it unless ``strictly``."""
    strict = not strictly
    for j in range(x.shape[0]):
        if x[j, a] > x[j, b]:
            return False
        strict |= x[j, a] < x[j, b]
    return strict

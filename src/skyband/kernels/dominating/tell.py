"""Steps: several points come and go at once; and what is told of the answer after each (dominating, section 8)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner
from skyband.kernels.common.order import better
from skyband.kernels.dominating.ledger import (
    GONE,
    LISTED,
    RANK,
    SCORE,
    SHOWN,
    SHOWS,
    SIZE,
    TOP,
    WHEN,
    WHO,
    Ledger,
    wider,
)
from skyband.kernels.dominating.space import Points

Ints = NDArray[np.int64]

HIGH, FLOOR, END, TRIGGER = range(4)  # rows of steps
NONE, ARRIVAL = np.iinfo(np.int64).min, np.iinfo(np.int64).min + 1  # in place of an end


class Told(NamedTuple):
    """What is told, a column for each row: trigger, end or time of the arrival, change, arrival number, score."""

    rows: Ints
    used: Ints


@inner
def nothing() -> Told:
    """Nothing told yet."""
    return Told(np.empty((5, 64), np.int64), np.zeros(1, np.int64))


def all_told(parts: list[Told]) -> Told:
    """What is told, one after the other."""
    rows = np.concatenate([part.rows[:, : part.used[0]] for part in parts], axis=1)
    return Told(rows, np.array([rows.shape[1]]))


@inner
def _note(told: Told, trigger: int, at: int, op: int, arrival: int, score: int) -> Told:
    i = told.used[0]
    if i == told.rows.shape[1]:
        told = Told(wider(told.rows, 2 * i), told.used)
    rows = told.rows
    rows[0, i], rows[1, i], rows[2, i], rows[3, i], rows[4, i] = trigger, at, op, arrival, score
    told.used[0] = i + 1
    return told


@inner
def tell(told: Told, ledger: Ledger, rows: Points, steps: Ints, s: int) -> Told:
    """Adds what is to be told after step s.

    A step takes in the rows up to HIGH, after it has let go of what is not after FLOOR. END is, for hopping windows,
    the end of the window that closes, or NONE. TRIGGER is the arrival number of the row that brought the step about.
    """
    end, trigger = steps[END, s], steps[TRIGGER, s]
    if end == NONE:
        return told
    if end == ARRIVAL:
        return _tell_changes(told, ledger, trigger, rows.position[steps[HIGH, s] - 1])
    for r in range(ledger.meta[TOP]):
        i = ledger.data[RANK, r]
        told = _note(told, trigger, end, 0, ledger.data[WHO, i], ledger.data[SCORE, i])
    return told


@inner
def _tell_changes(told: Told, ledger: Ledger, trigger: int, at: int) -> Told:
    """Adds who left and who entered the answer since it was last told.

    Those that left come first, in the order of what was shown of them: score, then newer.
    """
    meta, entered = ledger.meta, False
    for r in range(meta[TOP]):
        entered |= ledger.data[SHOWS, ledger.data[RANK, r]] < 0
    if not entered and meta[GONE] == 0 and meta[SHOWN] == meta[TOP]:
        return told
    left = _left(ledger)
    for i in range(left.shape[1]):
        told = _note(told, trigger, at, -1, left[2, i], left[0, i])
    for r in range(meta[TOP]):
        i = ledger.data[RANK, r]
        if ledger.data[SHOWS, i] < 0:
            ledger.data[SHOWS, i] = ledger.data[SCORE, i]
            told = _note(told, trigger, at, 1, ledger.data[WHO, i], ledger.data[SCORE, i])
    meta[SHOWN] = meta[TOP]
    return told


@inner
def _left(ledger: Ledger) -> Ints:
    """The points that were shown and are no longer listed, best first, as they were shown; they are so no longer."""
    meta, data = ledger.meta, ledger.data
    left = np.empty((3, meta[GONE] + meta[SHOWN]), np.int64)
    count = meta[GONE]
    for i in range(count):
        left[0, i], left[1, i], left[2, i] = ledger.gone[0, i], ledger.gone[1, i], ledger.gone[2, i]
    meta[GONE] = 0
    for i in range(meta[SIZE]):
        if data[SHOWS, i] >= 0 and not data[LISTED, i]:
            left[0, count], left[1, count], left[2, count] = data[SHOWS, i], data[WHEN, i], data[WHO, i]
            data[SHOWS, i] = -1
            count += 1
    for i in range(1, count):
        s, t, n, j = left[0, i], left[1, i], left[2, i], i
        while j > 0 and better(s, t, n, left[0, j - 1], left[1, j - 1], left[2, j - 1]):
            left[0, j], left[1, j], left[2, j] = left[0, j - 1], left[1, j - 1], left[2, j - 1]
            j -= 1
        left[0, j], left[1, j], left[2, j] = s, t, n
    return left[:, :count]

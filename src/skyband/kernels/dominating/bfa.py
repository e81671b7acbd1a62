"""BFA: every score is kept (dominating, section 3)."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.dominating.ledger import SIZE, Ledger, account, add, settle, strike
from skyband.kernels.dominating.space import TIME, Points, Space, drop_oldest, insert, live, oldest
from skyband.kernels.dominating.tell import FLOOR, HIGH, Told, nothing, tell

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@inner
def _dominated(ledger: Ledger, p: Floats) -> int:
    """How many entries p dominates."""
    size, room, count = ledger.meta[SIZE], ledger.data.shape[1], 0
    for i in range(size):
        above, strict = True, False
        for j in range(p.size):
            value = ledger.x[j * room + i]
            if value < p[j]:
                above = False
                break
            strict |= value > p[j]
        count += above and strict
    return count


@outer
def brute_force(
    space: Space, ledger: Ledger, rows: Points, steps: Ints, k: int, ties: bool, work: Ints
) -> tuple[Ledger, Told]:
    """Takes the steps; scores of all points are brought up to date with each that comes or goes."""
    told, low = nothing(), 0
    p = np.empty(space.axes.shape[1])
    for s in range(steps.shape[1]):
        while live(space) > 0 and space.slots[TIME, oldest(space)] <= steps[FLOOR, s]:
            ledger = strike(ledger, space, oldest(space), p)
            drop_oldest(space)
            account(ledger, p, -1, work)
        for i in range(low, steps[HIGH, s]):
            if rows.position[i] > steps[FLOOR, s]:
                slot = insert(space, rows.x[i], rows.position[i], rows.arrival[i])
                account(ledger, rows.x[i], 1, work)
                ledger = add(ledger, space, slot, _dominated(ledger, rows.x[i]))
                work[0] += ledger.meta[SIZE] * p.size
        low = steps[HIGH, s]
        settle(ledger, k, ties)
        told = tell(told, ledger, rows, steps, s)
    return ledger, told

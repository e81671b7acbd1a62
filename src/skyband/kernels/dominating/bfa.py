"""BFA: every score is kept (Kontaki et al., TKDE 2012, section 3)."""

import numpy as np

from skyband.kernels.common.jit import in_place, outer
from skyband.kernels.dominating.ledger import Ledger, account, add, settle, strike
from skyband.kernels.dominating.space import Points, Space, drop_oldest, expired, insert, oldest
from skyband.kernels.dominating.tell import Steps, Told, tell
from skyband.storage.blocks import Floats, Record


@in_place
def _dominated(x: Floats, held: int, p: Floats) -> int:
    """How many entries p dominates."""
    count = 0
    for i in range(held):
        above, strict = True, False
        for j in range(p.size):
            value = x[j, i]
            if value < p[j]:
                above = False
                break
            strict |= value > p[j]
        count += above and strict
    return count


@outer
def brute_force(
    space: Space, ledger: Ledger, told: Told, rows: Points, steps: Steps, k: int, ties: bool, work: Record
) -> tuple[Ledger, Told]:
    """Takes the steps; scores of all points are brought up to date with each that comes or goes."""
    low, d = 0, space.x.shape[0]
    p = np.empty(d)
    for s in range(steps.high.size):
        while expired(space, steps.floor[s]):
            strike(ledger, space, oldest(space), p)
            drop_oldest(space)
            held = ledger.meta[0].held
            account(ledger.x, ledger.score[:held], p, -1)
            work[0].comparisons += held * d
        for i in range(low, steps.high[s]):
            if rows.position[i] > steps.floor[s]:
                slot = insert(space, rows.x[i], rows.position[i], rows.arrival[i])
                held = ledger.meta[0].held
                account(ledger.x, ledger.score[:held], rows.x[i], 1)
                ledger = add(ledger, space, slot, _dominated(ledger.x, held, rows.x[i]))
                work[0].comparisons += held * d + (held + 1) * d
        low = steps.high[s]
        settle(ledger, k, ties)
        told, ledger = tell(told, ledger, rows, steps, s)
    return ledger, told

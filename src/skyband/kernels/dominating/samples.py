"""What is known of a cell: the mean score of a sample (AHBA), and the least score (AMSA) (dominating, section 7)."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.dominating.events import (
    ADA,
    AHBA,
    AMSA,
    ARRIVED,
    CEILING,
    LEAST,
    MODE,
    MOST,
    NEAR,
    SAMPLED,
    SUM,
    Events,
)
from skyband.kernels.dominating.harvest import BIG
from skyband.kernels.dominating.ledger import RANK, SCORE, SIZE, SLOT, TOP, Ledger, add, remove
from skyband.kernels.dominating.score import score_of
from skyband.kernels.dominating.space import CELL, COUNT, START, Space, point
from skyband.kernels.dominating.sums import beyond, least, upward
from skyband.kernels.jit import inner

Ints = NDArray[np.int64]


@inner
def passed_over(ledger: Ledger, events: Events, cell: int, k: int) -> bool:
    """AMSA: whether the points of a cell are left out: the least score there is too far below the k-th."""
    if events.meta[MODE] != AMSA or ledger.meta[TOP] < k:
        return False
    first, last = ledger.data[SCORE, ledger.data[RANK, 0]], ledger.data[SCORE, ledger.data[RANK, k - 1]]
    ahead = first - last if first < 2 * last else last // 4  # the rule would never apply
    return bool(ahead < last - events.mark[LEAST, cell])


@inner
def estimate(events: Events, cell: int, eps: float) -> int:
    """AHBA: the mean score of the sample of a cell and eps of the range of its scores; BIG if it has no sample."""
    mark, count = events.mark, events.mark[SAMPLED, cell]
    if events.meta[MODE] != AHBA or count == 0:
        return BIG
    return int(np.ceil(mark[SUM, cell] / count + eps * (mark[MOST, cell] - mark[LEAST, cell])))


@inner
def refresh(
    space: Space, ledger: Ledger, samples: Ledger, events: Events, size: int, eps: float, k: int, work: Ints
) -> Ledger:
    """Brings the cells' least and largest possible scores up to date, and for AHBA the samples."""
    mark, most = events.mark, upward(space, space.cells[COUNT])
    for c in range(most.size):
        mark[CEILING, c] = most[c] - events.meta[ARRIVED]
    if events.meta[MODE] == ADA:
        return samples
    for c in range(most.size):
        further = beyond(space, c, 1)
        mark[MOST, c], mark[LEAST, c] = most[c], most[further] if further >= 0 else 0
        mark[SUM, c] = mark[SAMPLED, c] = 0
    if events.meta[MODE] != AHBA or ledger.meta[TOP] < k:
        while samples.meta[SIZE] > 0:
            samples = remove(samples, samples.meta[SIZE] - 1)
        return samples
    wanted = _cells_to_sample(space, events, ledger.data[SCORE, ledger.data[RANK, k - 1]], eps)
    i = 0
    while i < samples.meta[SIZE]:
        cell = space.slots[CELL, samples.data[SLOT, i]]
        if wanted[cell]:
            mark[SAMPLED, cell] += 1
            i += 1
        else:
            samples = remove(samples, i)
    p = np.empty(space.axes.shape[1])
    for c in range(most.size):
        count = space.cells[COUNT, c]
        if wanted[c] and 2 * mark[SAMPLED, c] < min(size, count):  # else it still does
            for place in range(space.cells[START, c], space.cells[START, c] + count):
                slot = space.owner[place]
                if mark[SAMPLED, c] >= size:
                    break
                if samples.entry[slot] < 0:
                    point(space, slot, p)
                    samples = add(samples, space, slot, score_of(space, p, c, work))
                    work[1] += 1
                    mark[SAMPLED, c] += 1
    for i in range(samples.meta[SIZE]):
        mark[SUM, space.slots[CELL, samples.data[SLOT, i]]] += samples.data[SCORE, i]
    return samples


@inner
def _cells_to_sample(space: Space, events: Events, score: int, eps: float) -> NDArray[np.bool_]:
    """Section 7.1: cells in which points may come up to a score soon, and that no other such cell dominates.

    Not those where every estimate would be above the score: it would be of no use.
    """
    most, lowest, bar = events.mark[MOST], events.mark[LEAST], score - events.meta[NEAR]
    wanted, others = np.zeros(most.size, np.bool_), np.ones(most.size, np.int64)
    for c in range(most.size):
        if most[c] > bar and space.cells[COUNT, c] > 0:
            wanted[c], others[c] = lowest[c] + eps * (most[c] - lowest[c]) < score, 0
    low = least(space, others)
    for c in range(most.size):
        nearer = beyond(space, c, -1)
        if nearer >= 0 and low[nearer] == 0:
            wanted[c] = False
    return wanted

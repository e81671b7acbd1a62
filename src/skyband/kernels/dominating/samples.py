"""What AHBA and AMSA know of scores without counting them (dominating, section 7).

AHBA has a sample of the window: with those of its points that lie on the borders of a cell, the score of a point of
the cell is estimated. AMSA has the least and the largest score that a point of a cell can have.
"""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner
from skyband.kernels.dominating.events import (
    AHBA,
    AMSA,
    ARRIVED,
    BASE,
    CEILING,
    CLOCK,
    LEAST,
    MODE,
    PEAK,
    RATE,
    REACH,
    RENEWED,
    Events,
    enqueue,
)
from skyband.kernels.dominating.harvest import NEVER, PLAIN
from skyband.kernels.dominating.ledger import RANK, SCORE, SIZE, TOP, Ledger, add, remove
from skyband.kernels.dominating.score import coordinates
from skyband.kernels.dominating.space import COUNT, HEAD, NUMBER, ORDER, SHAPE, START, STRIDE, Space, live
from skyband.kernels.dominating.sums import beyond, upward

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PRIME = 2147483647
AGAIN = 8  # times in a window AMSA sees to what it has passed over
FEW = 1 / 400  # of the points of a cell score above its REACH


@inner
def chosen(arrival: int, rate: int) -> bool:
    """Whether a point is in the sample: one in 2 ** rate, whatever order they come in; none if it is negative."""
    if rate < 0:
        return False
    mixed = arrival % PRIME * 48271 % PRIME
    mixed = (mixed ^ (mixed >> 13)) * 69621 % PRIME
    return bool(mixed & ((1 << rate) - 1) == 0)


@inner
def short(ledger: Ledger, k: int) -> int:
    """AMSA: how far below the k-th score a point must be, for it not to be expected to come so far.

    The k-th score moves over some √k ranks as points come and go, which is about so large a part of the difference
    between the first and the k-th.
    """
    first, last = ledger.data[SCORE, ledger.data[RANK, 0]], ledger.data[SCORE, ledger.data[RANK, k - 1]]
    return int(max(2 * (first - last) / np.sqrt(max(k, 4)), last / (4 * k)))


@inner
def passed_over(ledger: Ledger, events: Events, cell: int, k: int) -> bool:
    """AMSA: whether the points of a cell are left out.

    The least score there is too far below the k-th (or so far that the rule may apply at all), and few of its points,
    if any, have come near the k-th.
    """
    if events.meta[MODE] != AMSA or ledger.meta[TOP] < k:
        return False
    first, last = ledger.data[SCORE, ledger.data[RANK, 0]], ledger.data[SCORE, ledger.data[RANK, k - 1]]
    lead, mark = first - last if first < 2 * last else last // 4, events.mark
    return bool(mark[REACH, cell] < last - short(ledger, k) and lead < last - mark[LEAST, cell])


@inner
def _range(space: Space, cell: int) -> tuple[int, int]:
    """The least and the largest score that a point of a cell can have now."""
    d, shape, stride = space.axes.shape[1], space.axes[SHAPE], space.axes[STRIDE]
    low = coordinates(space, cell)
    at, count = low.copy(), space.cells[COUNT]
    lowest = most = 0
    while True:
        first, inside = 0, True
        for j in range(d - 1):
            first += at[j] * stride[j]
            inside &= at[j] > low[j]
        total = 0
        for c in range(first + low[d - 1] + 1, first + shape[d - 1]):
            total += count[c]
        most += total + count[first + low[d - 1]]
        lowest += total if inside else 0
        j = d - 2
        while j >= 0 and at[j] == shape[j] - 1:
            at[j] = low[j]
            j -= 1
        if j < 0:
            return lowest, most
        at[j] += 1


@inner
def estimate(space: Space, samples: Ledger, p: Floats, cell: int, size: int, eps: float, work: Ints) -> tuple[int, int]:
    """AHBA: the score of a point, and by how much it may be too small; (0, -1) if the sample is too small to tell.

    A point dominates what is in the cells that its own dominates, and part of what is on the borders of its own: as
    large a part as it does of the sample there. Equation (11): a sample of ``size`` is enough for an error of at most
    ``eps`` of the border, which is the range of the scores of the cell; of more points it is smaller accordingly.
    """
    count, room, c = samples.meta[SIZE], samples.data.shape[1], coordinates(space, cell)
    width = space.edge.size // p.size
    touched, inside, hit = np.ones(count, np.uint8), np.ones(count, np.uint8), np.ones(count, np.uint8)
    for j in range(p.size):
        value, column = p[j], samples.x[j * room : j * room + count]
        low = space.edge[j * width + c[j] - 1] if c[j] > 0 else -np.inf
        high = space.edge[j * width + c[j]] if c[j] < space.axes[SHAPE, j] - 1 else np.inf
        for i in range(count):
            touched[i] &= column[i] >= low
            inside[i] &= column[i] >= high
            hit[i] &= column[i] >= value
    border = hits = 0
    for i in range(count):
        border += int(touched[i] & ~inside[i])
        hits += int(touched[i] & ~inside[i] & hit[i])
    work[0] += count * p.size
    if border < size:
        return 0, -1
    lowest, most = _range(space, cell)
    error = eps * np.sqrt(size / border) * (most - lowest)
    return lowest + int(np.ceil(hits / border * (most - lowest))), int(np.ceil(error))


@inner
def refresh(space: Space, ledger: Ledger, samples: Ledger, events: Events, size: int, k: int) -> Ledger:
    """Brings the cells' least and largest possible scores up to date, and for AHBA sees to the size of the sample."""
    mark, most, d = events.mark, upward(space, space.cells[COUNT]), space.axes.shape[1]
    for c in range(most.size):
        mark[CEILING, c] = most[c] - events.meta[ARRIVED]
    part = FEW
    for j in range(d):
        part *= j + 1
    part = part ** (1 / d) / d  # if they lie evenly in the cell: the volume of a corner is (part * d) ** d / d!
    if events.meta[MODE] == AMSA:
        for c in range(most.size):
            further = beyond(space, c, 1)
            mark[LEAST, c] = most[further] if further >= 0 else 0
            mark[REACH, c] = most[c] - int(part * (most[c] - mark[LEAST, c]))
        _bring_back(space, ledger, events, k)
    return _draw(space, samples, events, size if events.meta[MODE] >= AHBA else 0)


@inner
def _draw(space: Space, samples: Ledger, events: Events, size: int) -> Ledger:
    """Draws a sample, unless there is one that will do: so large that ``size`` of it are on the borders of a cell.

    They are if these hold more than 1 in 2 g points, g being the number of cells along a dimension. There is no sample
    where it would have to be a quarter of the window.
    """
    wanted, rate, n = 2 * size, -1, live(space)
    for j in range(space.axes.shape[1]):
        wanted = max(wanted, 2 * size * space.axes[SHAPE, j])
    if 0 < 4 * wanted <= n:
        rate = 2
        while wanted << (rate + 1) <= n:
            rate += 1
    if rate == events.meta[RATE]:
        return samples
    events.meta[RATE] = rate
    while samples.meta[SIZE] > 0:
        samples = remove(samples, samples.meta[SIZE] - 1)
    for i in range(n):
        slot = space.slots[ORDER, (space.meta[HEAD] + i) % space.slots.shape[1]]
        if chosen(space.slots[NUMBER, slot], rate):
            samples = add(samples, space, slot, 0)
    return samples


@inner
def _bring_back(space: Space, ledger: Ledger, events: Events, k: int) -> None:
    """AMSA: now and then, and when the k-th score has fallen, all is seen to again that a cell does not rule out."""
    meta = events.meta
    if ledger.meta[TOP] < k:
        return
    last = ledger.data[SCORE, ledger.data[RANK, k - 1]]
    meta[PEAK] = max(meta[PEAK], last)
    fallen = 2 * (meta[PEAK] - last) > short(ledger, k)
    if not fallen and AGAIN * (meta[CLOCK] - meta[RENEWED]) < live(space):
        return
    meta[PEAK], meta[RENEWED] = last, meta[CLOCK]
    for c in range(space.cells.shape[1]):
        if space.cells[COUNT, c] > 0 and not passed_over(ledger, events, c, k):
            for place in range(space.cells[START, c], space.cells[START, c] + space.cells[COUNT, c]):
                slot = space.owner[place]
                if ledger.entry[slot] == NEVER:
                    ledger.entry[slot] = PLAIN
                    events.event[BASE, slot] = min(events.event[BASE, slot], events.mark[CEILING, c])
                    enqueue(events, slot, meta[CLOCK] + 1)

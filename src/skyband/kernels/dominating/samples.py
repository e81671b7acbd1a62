"""What AHBA and AMSA know of scores without counting them (Kontaki et al., TKDE 2012, section 7).

AHBA has a sample of the window: with those of its points that lie on the borders of a cell, the score of a point of
the cell is estimated. AMSA has the least and the largest score that a point of a cell can have.
"""

import numpy as np

from skyband.kernels.common.jit import in_place, inner
from skyband.kernels.dominating.events import AHBA, AMSA, Events, enqueue
from skyband.kernels.dominating.harvest import NEVER, PLAIN
from skyband.kernels.dominating.ledger import Ledger, add, listed_score, remove
from skyband.kernels.dominating.score import coordinates
from skyband.kernels.dominating.space import Space, live
from skyband.kernels.dominating.sums import beyond, upward
from skyband.storage.blocks import Floats, Record

PRIME = 2147483647
AGAIN = 8  # times in a window AMSA sees to what it has passed over
FEW = 1 / 400  # of the points of a cell score above its reach


@in_place
def chosen(arrival: int, rate: int) -> bool:
    """Whether a point is in the sample: one in 2 ** rate, whatever order they come in; none if it is negative."""
    if rate < 0:
        return False
    mixed = arrival % PRIME * 48271 % PRIME
    mixed = (mixed ^ (mixed >> 13)) * 69621 % PRIME
    return bool(mixed & ((1 << rate) - 1) == 0)


@in_place
def short(ledger: Ledger, k: int) -> int:
    """AMSA: how far below the k-th score a point must be, for it not to be expected to come so far.

    The k-th score moves over some √k ranks as points come and go, which is about so large a part of the difference
    between the first and the k-th.
    """
    first, last = listed_score(ledger, 0), listed_score(ledger, k - 1)
    return int(max(2 * (first - last) / np.sqrt(max(k, 4)), last / (4 * k)))


@in_place
def passed_over(ledger: Ledger, events: Events, cell: int, k: int) -> bool:
    """AMSA: whether the points of a cell are left out.

    The least score there is too far below the k-th (or so far that the rule may apply at all), and few of its points,
    if any, have come near the k-th.
    """
    if events.meta[0].mode != AMSA or ledger.meta[0].top < k:
        return False
    first, last = listed_score(ledger, 0), listed_score(ledger, k - 1)
    lead = first - last if first < 2 * last else last // 4
    return bool(events.reach[cell] < last - short(ledger, k) and lead < last - events.least[cell])


@inner
def _range(space: Space, cell: int) -> tuple[int, int]:
    """The least and the largest score that a point of a cell can have now."""
    shape, stride, members = space.grid.shape, space.grid.stride, space.cells.members
    d, low = shape.size, coordinates(space.grid, cell)
    at = low.copy()
    lowest = most = 0
    while True:
        first, inside = 0, True
        for j in range(d - 1):
            first += at[j] * stride[j]
            inside &= at[j] > low[j]
        total = 0
        for c in range(first + low[d - 1] + 1, first + shape[d - 1]):
            total += members[c]
        most += total + members[first + low[d - 1]]
        lowest += total if inside else 0
        j = d - 2
        while j >= 0 and at[j] == shape[j] - 1:
            at[j] = low[j]
            j -= 1
        if j < 0:
            return lowest, most
        at[j] += 1


@inner
def estimate(
    space: Space, samples: Ledger, p: Floats, cell: int, size: int, eps: float, work: Record
) -> tuple[int, int]:
    """AHBA: the score of a point, and by how much it may be too small; (0, -1) if the sample is too small to tell.

    A point dominates what is in the cells that its own dominates, and part of what is on the borders of its own: as
    large a part as it does of the sample there. Equation (11): a sample of ``size`` is enough for an error of at most
    ``eps`` of the border, which is the range of the scores of the cell; of more points it is smaller accordingly.
    """
    grid, count, c = space.grid, samples.meta[0].held, coordinates(space.grid, cell)
    touched, inside, hit = np.ones(count, np.uint8), np.ones(count, np.uint8), np.ones(count, np.uint8)
    for j in range(p.size):
        value, values = p[j], samples.x[j]
        low = grid.edge[j, c[j] - 1] if c[j] > 0 else -np.inf
        high = grid.edge[j, c[j]] if c[j] < grid.shape[j] - 1 else np.inf
        for i in range(count):
            touched[i] &= values[i] >= low
            inside[i] &= values[i] >= high
            hit[i] &= values[i] >= value
    border = hits = 0
    for i in range(count):
        border += int(touched[i] & ~inside[i])
        hits += int(touched[i] & ~inside[i] & hit[i])
    work[0].comparisons += count * p.size
    if border < size:
        return 0, -1
    lowest, most = _range(space, cell)
    error = eps * np.sqrt(size / border) * (most - lowest)
    return lowest + int(np.ceil(hits / border * (most - lowest))), int(np.ceil(error))


@inner
def refresh(space: Space, ledger: Ledger, samples: Ledger, events: Events, size: int, k: int) -> Ledger:
    """Brings the cells' least and largest possible scores up to date, and for AHBA sees to the size of the sample."""
    meta, most, d = events.meta[0], upward(space.grid, space.cells.members), space.x.shape[0]
    for c in range(most.size):
        events.ceiling[c] = most[c] - meta.arrived
    part = FEW
    for j in range(d):
        part *= j + 1
    part = part ** (1 / d) / d  # if they lie evenly in the cell: the volume of a corner is (part * d) ** d / d!
    if meta.mode == AMSA:
        for c in range(most.size):
            further = beyond(space.grid, c, 1)
            events.least[c] = most[further] if further >= 0 else 0
            events.reach[c] = most[c] - int(part * (most[c] - events.least[c]))
        _bring_back(space, ledger, events, k)
    return _draw(space, samples, events, size if meta.mode >= AHBA else 0)


@inner
def _draw(space: Space, samples: Ledger, events: Events, size: int) -> Ledger:
    """Draws a sample, unless there is one that will do: so large that ``size`` of it are on the borders of a cell.

    They are if these hold more than 1 in 2 g points, g being the number of cells along a dimension. There is no sample
    where it would have to be a quarter of the window.
    """
    wanted, rate, n, ring = 2 * size, -1, live(space), space.slots.ring
    for g in space.grid.shape:
        wanted = max(wanted, 2 * size * g)
    if 0 < 4 * wanted <= n:
        rate = 2
        while wanted << (rate + 1) <= n:
            rate += 1
    if rate == events.meta[0].rate:
        return samples
    events.meta[0].rate = rate
    while samples.meta[0].held > 0:
        remove(samples, samples.meta[0].held - 1)
    for turn in range(space.meta[0].head, space.meta[0].tail):
        slot = ring[turn % ring.size]
        if chosen(space.slots.arrival[slot], rate):
            samples = add(samples, space, slot, 0)
    return samples


@in_place
def _bring_back(space: Space, ledger: Ledger, events: Events, k: int) -> None:
    """AMSA: now and then, and when the k-th score has fallen, all is seen to again that a cell does not rule out."""
    meta, cells = events.meta[0], space.cells
    if ledger.meta[0].top < k:
        return
    last = listed_score(ledger, k - 1)
    meta.peak = max(meta.peak, last)
    fallen = 2 * (meta.peak - last) > short(ledger, k)
    if not fallen and AGAIN * (meta.clock - meta.renewed) < live(space):
        return
    meta.peak, meta.renewed = last, meta.clock
    for c in range(cells.begin.size):
        if cells.members[c] > 0 and not passed_over(ledger, events, c, k):
            for place in range(cells.begin[c], cells.begin[c] + cells.members[c]):
                slot = space.owner[place]
                if ledger.entry[slot] == NEVER:
                    ledger.entry[slot] = PLAIN
                    events.base[slot] = min(events.base[slot], events.ceiling[c])
                    enqueue(events, slot, meta.clock + 1)

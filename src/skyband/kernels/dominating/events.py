"""Events: when a point must be looked at again (dominating, sections 4 and 5)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner
from skyband.kernels.dominating.ledger import CHANGES, RANK, SCORE, SIZE, SLOT, TOP, Ledger, kth
from skyband.kernels.dominating.score import dominates
from skyband.kernels.dominating.space import CELL, HEAD, PLACE, TAIL, TURN, Space, point
from skyband.kernels.dominating.sums import beyond, downward

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BASE, NEXT, BEFORE, BUCKET, NEWER = range(5)  # rows of ``Events.event``
NEWER_HERE, LEAST, REACH, CEILING, CAME = range(5)  # rows of ``Events.mark``
LEVEL, EXPIRY = range(2)  # rows of ``Events.rival``
# of ``Events.meta``
CLOCK, ARRIVED, NEAR, SEEN, FORCED, MODE, REFRESHED, SWEPT, COMPARED, UNNOTED, RATE, PEAK, RENEWED = range(13)
EVA, ADA, AHBA, AMSA = range(4)  # modes
NEVER_DUE = 1 << 60
STALE = 64  # updates after which the rivals are looked at again


class Events(NamedTuple):
    """The events of the points that are not in the ledger, in buckets by the time when they are due.

    Time is counted in updates: a step in which a points come and x go counts max(a, x), so that in one update a score
    grows by no more than one, shrinks by no more than one, and no more than one point expires. BASE is an upper bound
    of the score less the points that had arrived when it was made. NEWER is the counter of section 5.1; NEWER_HERE is
    that of the cell. LEAST is the least score that a point of it can have, and REACH one that few of them have. CEILING
    is a bound for all points of a cell, less the points that had arrived, as BASE is. CAME counts what the cells have
    not yet taken notice of. RATE is that of AHBA's sample: one in 2 ** RATE points. PEAK is the largest k-th score
    since RENEWED, when AMSA last saw to what it had passed over.

    ``rival`` has a column for each of some a: of the k + a best of the ledger, at meta[COMPARED], LEVEL is the least
    score plus that time, and EXPIRY the turn of the one that is the (a + 1)-th to expire.
    """

    event: Ints  # by slot
    queue: Ints  # the first slot of each bucket, a ring
    mark: Ints  # by cell
    soon: Ints  # the turns of the top k, ascending
    rival: Ints
    meta: Ints


def no_events(slots: int, cells: int, mode: int) -> Events:
    """No event yet."""
    event = np.zeros((5, slots), np.int64)
    event[BUCKET] = -1
    ring = 1 << max(6, int(slots).bit_length())
    meta = np.array([0, 0, max(1, slots // 1000), -1, 1, mode, 0, 0, -NEVER_DUE, 0, -1, 0, 0])
    mark, none = np.zeros((5, cells), np.int64), np.empty(0, np.int64)
    mark[CEILING] = NEVER_DUE
    return Events(event, np.full(ring, -1), mark, none, np.empty((2, 0), np.int64), meta)


@inner
def enqueue(events: Events, slot: int, due: int) -> None:
    """Puts the event of a point in its bucket; what lies too far ahead is looked at early."""
    ring, event = events.queue.size, events.event
    bucket = min(due, events.meta[CLOCK] + ring - 1) % ring
    first = events.queue[bucket]
    event[NEXT, slot], event[BEFORE, slot], event[BUCKET, slot] = first, -1, bucket
    if first >= 0:
        event[BEFORE, first] = slot
    events.queue[bucket] = slot


@inner
def dequeue(events: Events, slot: int) -> None:
    """Takes the event of a point out, if it has one."""
    event = events.event
    if event[BUCKET, slot] < 0:
        return
    before, after = event[BEFORE, slot], event[NEXT, slot]
    if before >= 0:
        event[NEXT, before] = after
    else:
        events.queue[event[BUCKET, slot]] = after
    if after >= 0:
        event[BEFORE, after] = before
    event[BUCKET, slot] = -1


@inner
def note_newer(space: Space, events: Events, slot: int) -> None:
    """A point came: if it is newer than all it will count for every cell that its cell dominates (section 5.1).

    Cells take notice of many at once. What they then count for a point must be newer, so it starts from there.
    """
    event, mark, meta = events.event, events.mark, events.meta
    event[NEWER, slot] = NEVER_DUE
    if space.slots[TURN, slot] == space.meta[TAIL] - 1:
        mark[CAME, space.slots[CELL, slot]] += 1
    meta[UNNOTED] += 1
    if meta[UNNOTED] < max(64, event.shape[1] // 64):
        return
    meta[UNNOTED] = 0
    came = downward(space, mark[CAME])
    for c in range(came.size):
        nearer = beyond(space, c, -1)
        mark[CAME, c] = 0
        if nearer >= 0:
            mark[NEWER_HERE, c] += came[nearer]
    for other in range(event.shape[1]):
        if event[NEWER, other] == NEVER_DUE and space.slots[CELL, other] >= 0:
            event[NEWER, other] = mark[NEWER_HERE, space.slots[CELL, other]]


@inner
def look_ahead(space: Space, ledger: Ledger, events: Events, k: int) -> Events:
    """Brings the turns of the top k up to date, if these have changed."""
    size = min(k, ledger.meta[TOP])
    if events.meta[SEEN] == ledger.meta[CHANGES] and events.soon.size == size:
        return events
    events.meta[SEEN] = ledger.meta[CHANGES]
    soon = np.empty(size, np.int64)
    for r in range(size):
        soon[r] = space.slots[TURN, ledger.data[SLOT, ledger.data[RANK, r]]]
    for i in range(1, size):  # by insertion: it is mostly in order of rank, not of age, but k is small
        value, at = soon[i], i
        while at > 0 and soon[at - 1] > value:
            soon[at] = soon[at - 1]
            at -= 1
        soon[at] = value
    return Events(events.event, events.queue, events.mark, soon, events.rival, events.meta)


@inner
def dominators_outside(space: Space, ledger: Ledger, events: Events, slot: int, cell: int, k: int) -> int:
    """A lower bound for how many newer points outside the top k dominate a point (section 5.1)."""
    newer = events.mark[NEWER_HERE, cell] - events.event[NEWER, slot]
    if newer <= 0 or newer >= 2 * k:  # at most k of them are in the top k
        return 0 if newer <= 0 else k
    p, r = np.empty(space.axes.shape[1]), 0
    point(space, slot, p)
    while newer > 0 and r < min(k, ledger.meta[TOP]):
        other = ledger.data[SLOT, ledger.data[RANK, r]]
        if space.slots[TURN, other] > space.slots[TURN, slot] and dominates(space, space.slots[PLACE, other], p):
            newer -= 1
        r += 1
    return int(newer)


@inner
def due(space: Space, ledger: Ledger, events: Events, bound: int, outside: int, k: int) -> int:
    """When a point with a score of at most ``bound`` may at the earliest be among the top k, there being k.

    Lemma 1, or Lemma 2 where ``outside`` newer points that are not in the top k dominate it: before it gets in, more
    than that many of the top k must have expired or have been overtaken. (The paper lets ``outside`` expire *and* as
    many be overtaken, which is one chance too many.) So of ``outside``, a are left for overtaking and the rest for
    expiry, in the way that gives the longest interval.
    """
    if outside >= k:
        return NEVER_DUE
    now, head, low, high = events.meta[CLOCK], space.meta[HEAD], 0, outside
    while low < high:  # the first a for which overtaking takes longer than expiry
        a = (low + high) // 2
        if _overtaken(ledger, bound, a, k) >= events.soon[outside - a] + 1 - head:
            high = a
        else:
            low = a + 1
    best = min(_overtaken(ledger, bound, low, k), events.soon[outside - low] + 1 - head)
    if low > 0:
        best = max(best, min(_overtaken(ledger, bound, low - 1, k), events.soon[outside - low + 1] + 1 - head))
    return int(now + max(best, 1))


@inner
def _overtaken(ledger: Ledger, bound: int, a: int, k: int) -> int:
    """How many updates until the score of rank k - a may be reached."""
    return int((ledger.data[SCORE, ledger.data[RANK, k - 1 - a]] - bound + 1) // 2)


@inner
def compare(space: Space, ledger: Ledger, events: Events, k: int) -> Events:
    """Brings the rivals up to date. There must be k of them."""
    size, now = ledger.meta[SIZE], events.meta[CLOCK]
    events.meta[COMPARED] = now
    columns = 1
    while k + (1 << columns) - 1 <= size:
        columns += 1
    score, turn = ledger.data[SCORE, :size].copy(), np.empty(size, np.int64)
    rival = np.empty((2, columns), np.int64)
    for c in range(columns):
        a = (1 << c) - 1
        level, count = kth(score, k + a), 0
        for i in range(size):  # with all that tie
            if ledger.data[SCORE, i] >= level:
                turn[count] = -space.slots[TURN, ledger.data[SLOT, i]]
                count += 1
        rival[LEVEL, c], rival[EXPIRY, c] = level + now, -kth(turn[:count], a + 1)
    return Events(events.event, events.queue, events.mark, events.soon, rival, events.meta)


@inner
def due_behind(space: Space, events: Events, bound: int) -> int:
    """When a point with a score of at most ``bound`` may at the earliest be among the top k: Lemma 1 with candidates.

    It is not as long as k points are sure to score more. These are k of the k + a best of the ledger, until a + 1 of
    them have expired or it may have come up to the last of them.
    """
    now, best = events.meta[CLOCK], 0
    for c in range(events.rival.shape[1]):
        overtaken = (events.rival[LEVEL, c] - bound + now + 1) // 2
        best = max(best, min(overtaken, now + events.rival[EXPIRY, c] + 1 - space.meta[HEAD]))
    return int(max(best, now + 1))

"""Events: when a point must be looked at again (Kontaki et al., TKDE 2012, sections 4 and 5)."""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inner
from skyband.kernels.dominating.ledger import Ledger, kth, listed_score
from skyband.kernels.dominating.score import dominates
from skyband.kernels.dominating.space import Space, point
from skyband.kernels.dominating.sums import beyond, downward
from skyband.storage.blocks import Floats, Ints, Record, block, column, empty, resized, scalars

EVA, ADA, AHBA, AMSA = range(4)  # modes
NEVER_DUE = 1 << 60
STALE = 64  # updates after which the rivals are looked at again
LEVELS = 32  # of rivals: only 2 ** 32 points would want more


class EventsMeta(NamedTuple):
    """Where in time the events are. Times are in updates, and all that ``arrived`` counts are points."""

    clock: int = 0
    arrived: int = 0  # points so far
    near: int = 1  # Δt of section 5.2: what is due within so many updates is near
    seen: int = -1  # the change of the list of the best as of which ``soon`` is
    ahead: int = 0  # how many turns that is
    levels: int = 0  # of rivals
    forced: int = 1  # whether all must be found anew before anything is told
    mode: int = EVA
    refreshed: int = 0  # when the marks of the cells were made
    swept: int = 0  # the first bucket that was not emptied
    compared: int = -NEVER_DUE  # when the rivals were looked at
    unnoted: int = 0  # points that came and that the cells have not yet taken notice of
    rate: int = -1  # of AHBA's sample: one in 2 ** rate points is in it; -1: there is none
    peak: int = 0  # the largest k-th score since AMSA last saw to what it had passed over
    renewed: int = 0  # when that was


@block(version=1)
class Events(NamedTuple):
    """The events of the points that are not in the ledger, in buckets by the time when they are due.

    Time is counted in updates: a step in which a points come and x go counts max(a, x), so that in one update a score
    grows by no more than one, shrinks by no more than one, and no more than one point expires. Bounds of scores are
    kept less the number of points that had arrived when they were made: so they need not be changed as more arrive.
    """

    base: Annotated[Ints, column("slots")]  # a bound of the score
    after: Annotated[Ints, column("slots")]  # the next slot in the bucket, or -1
    before: Annotated[Ints, column("slots")]  # the slot before it in the bucket, or -1
    bucket: Annotated[Ints, column("slots", fill=-1)]  # -1: there is no event
    newer: Annotated[Ints, column("slots")]  # the counter of section 5.1, NEVER_DUE before the cell has taken notice
    queue: Annotated[Ints, column("buckets", fill=-1)]  # a ring: the first slot of each bucket
    newer_here: Annotated[Ints, column("cells")]  # the counter of section 5.1
    least: Annotated[Ints, column("cells")]  # the least score that a point of the cell can have
    reach: Annotated[Ints, column("cells")]  # a score that few points of the cell have
    ceiling: Annotated[Ints, column("cells", fill=NEVER_DUE)]  # a bound for all points of the cell
    came: Annotated[Ints, column("cells")]  # points that came and that the cells have not yet taken notice of
    soon: Annotated[Ints, column("top")]  # the turns of the top k, ascending
    # The rivals. For each of some a: of the k + a best of the ledger when they were compared,
    level: Annotated[Ints, column("rivals")]  # the least score, plus that time,
    expiry: Annotated[Ints, column("rivals")]  # and the turn of the (a + 1)-th to expire
    meta: Annotated[Record, scalars(EventsMeta)]


def no_events(slots: int, cells: int, k: int, mode: int) -> Events:
    """No event yet."""
    events = empty(Events, near=max(1, slots // 1000), mode=mode)
    events = resized(resized(events, "slots", slots), "cells", cells)
    events = resized(events, "buckets", 1 << max(6, int(slots).bit_length()))
    return resized(resized(events, "top", k), "rivals", LEVELS)


@in_place
def enqueue(events: Events, slot: int, due: int) -> None:
    """Puts the event of a point in its bucket; what lies too far ahead is looked at early."""
    ring = events.queue.size
    bucket = min(due, events.meta[0].clock + ring - 1) % ring
    first = events.queue[bucket]
    events.after[slot], events.before[slot], events.bucket[slot] = first, -1, bucket
    if first >= 0:
        events.before[first] = slot
    events.queue[bucket] = slot


@in_place
def dequeue(events: Events, slot: int) -> None:
    """Takes the event of a point out, if it has one."""
    bucket = events.bucket[slot]
    if bucket < 0:
        return
    before, after = events.before[slot], events.after[slot]
    if before >= 0:
        events.after[before] = after
    else:
        events.queue[bucket] = after
    if after >= 0:
        events.before[after] = before
    events.bucket[slot] = -1


@in_place
def note_newer(space: Space, events: Events, slot: int) -> bool:
    """A point came: if it is newer than all it will count for every cell that its cell dominates (section 5.1).

    Cells take notice of many at once: of these, if it is time. What they then count for a point must be newer, so it
    starts from there. Returns whether :func:`take_notice` is due.
    """
    meta = events.meta[0]
    events.newer[slot] = NEVER_DUE
    if space.slots.turn[slot] == space.meta[0].tail - 1:
        events.came[space.slots.cell[slot]] += 1
    meta.unnoted += 1
    return bool(meta.unnoted >= max(64, events.newer.size // 64))


@inner
def take_notice(space: Space, events: Events) -> None:
    """The cells take notice of the points that came."""
    events.meta[0].unnoted = 0
    came = downward(space.grid, events.came)
    for c in range(came.size):
        nearer = beyond(space.grid, c, -1)
        events.came[c] = 0
        if nearer >= 0:
            events.newer_here[c] += came[nearer]
    for other in range(events.newer.size):
        if events.newer[other] == NEVER_DUE and space.slots.cell[other] >= 0:
            events.newer[other] = events.newer_here[space.slots.cell[other]]


@in_place
def look_ahead(space: Space, ledger: Ledger, events: Events, k: int) -> None:
    """Brings the turns of the top k up to date, if these have changed."""
    meta, soon = events.meta[0], events.soon
    ahead = min(k, ledger.meta[0].top)
    if meta.seen == ledger.meta[0].changes and meta.ahead == ahead:
        return
    meta.seen, meta.ahead = ledger.meta[0].changes, ahead
    for r in range(ahead):
        soon[r] = space.slots.turn[ledger.slot[ledger.rank[r]]]
    for i in range(1, ahead):  # by insertion: it is mostly in order of rank, not of age, but k is small
        value, at = soon[i], i
        while at > 0 and soon[at - 1] > value:
            soon[at] = soon[at - 1]
            at -= 1
        soon[at] = value


@in_place
def dominators_outside(space: Space, ledger: Ledger, events: Events, slot: int, k: int, p: Floats) -> int:
    """A lower bound for how many newer points outside the top k dominate a point (section 5.1)."""
    newer = events.newer_here[space.slots.cell[slot]] - events.newer[slot]
    if newer <= 0 or newer >= 2 * k:  # at most k of them are in the top k
        return 0 if newer <= 0 else k
    point(space, slot, p)
    r = 0
    while newer > 0 and r < min(k, ledger.meta[0].top):
        other = ledger.slot[ledger.rank[r]]
        if space.slots.turn[other] > space.slots.turn[slot] and dominates(space.x, space.slots.place[other], p):
            newer -= 1
        r += 1
    return int(newer)


@in_place
def due(space: Space, ledger: Ledger, events: Events, bound: int, outside: int, k: int) -> int:
    """When a point with a score of at most ``bound`` may at the earliest be among the top k, there being k.

    Lemma 1, or Lemma 2 where ``outside`` newer points that are not in the top k dominate it: before it gets in, more
    than that many of the top k must have expired or have been overtaken. (The paper lets ``outside`` expire *and* as
    many be overtaken, which is one chance too many.) So of ``outside``, a are left for overtaking and the rest for
    expiry, in the way that gives the longest interval.
    """
    if outside >= k:
        return NEVER_DUE
    now, head, soon, low, high = events.meta[0].clock, space.meta[0].head, events.soon, 0, outside
    while low < high:  # the first a for which overtaking takes longer than expiry
        a = (low + high) // 2
        if _overtaken(ledger, bound, a, k) >= soon[outside - a] + 1 - head:
            high = a
        else:
            low = a + 1
    best = min(_overtaken(ledger, bound, low, k), soon[outside - low] + 1 - head)
    if low > 0:
        best = max(best, min(_overtaken(ledger, bound, low - 1, k), soon[outside - low + 1] + 1 - head))
    return int(now + max(best, 1))


@in_place
def _overtaken(ledger: Ledger, bound: int, a: int, k: int) -> int:
    """How many updates until the score of rank k - a may be reached."""
    return int((listed_score(ledger, k - 1 - a) - bound + 1) // 2)


@inner
def compare(space: Space, ledger: Ledger, events: Events, k: int) -> None:
    """Notes the rivals anew, of whom there must be k: :func:`due_behind` goes by them.

    For a = 0, 1, 3, 7, …: the least score of the k + a best of the ledger, and when the (a + 1)-th of them expires.
    """
    held, now = ledger.meta[0].held, events.meta[0].clock
    events.meta[0].compared = now
    levels = 1
    while k + (1 << levels) - 1 <= held:
        levels += 1
    events.meta[0].levels = levels
    score, turn = ledger.score[:held].copy(), np.empty(held, np.int64)
    for c in range(levels):
        a = (1 << c) - 1
        level, count = kth(score, k + a), 0
        for i in range(held):  # with all that tie
            if ledger.score[i] >= level:
                turn[count] = -space.slots.turn[ledger.slot[i]]
                count += 1
        events.level[c], events.expiry[c] = level + now, -kth(turn[:count], a + 1)


@in_place
def due_behind(space: Space, events: Events, bound: int) -> int:
    """When a point with a score of at most ``bound`` may at the earliest be among the top k: Lemma 1 with candidates.

    It is not as long as k points are sure to score more. These are k of the k + a best of the ledger, until a + 1 of
    them have expired or it may have come up to the last of them.
    """
    now, head, best = events.meta[0].clock, space.meta[0].head, 0
    for c in range(events.meta[0].levels):
        overtaken = (events.level[c] - bound + now + 1) // 2
        best = max(best, min(overtaken, now + events.expiry[c] + 1 - head))
    return int(max(best, now + 1))

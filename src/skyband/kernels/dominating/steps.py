"""EVA, ADA, AHBA and AMSA: one loop, and what each adds to it (dominating, Figure 5)."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.dominating.events import (
    ADA,
    AMSA,
    ARRIVED,
    BASE,
    BUCKET,
    CEILING,
    CLOCK,
    COMPARED,
    FORCED,
    MODE,
    NEAR,
    NEVER_DUE,
    NEXT,
    PEAK,
    RATE,
    REFRESHED,
    RENEWED,
    STALE,
    SWEPT,
    Events,
    compare,
    dequeue,
    dominators_outside,
    due,
    due_behind,
    enqueue,
    look_ahead,
    note_newer,
)
from skyband.kernels.dominating.harvest import BIG, NEVER, OPEN, PLAIN, harvest
from skyband.kernels.dominating.ledger import (
    LISTED,
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
)
from skyband.kernels.dominating.samples import chosen, estimate, passed_over, refresh, short
from skyband.kernels.dominating.score import reference, score_of
from skyband.kernels.dominating.space import (
    CELL,
    COUNT,
    HEAD,
    ORDER,
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
from skyband.kernels.dominating.sums import upward
from skyband.kernels.dominating.tell import FLOOR, HIGH, Told, nothing, tell
from skyband.kernels.jit import inner, outer

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Of a setting: k; whether ties are in the answer; the extent of a window in which a point goes for each that comes
# once it is full (0: it is of another kind); how many candidates there may be; AHBA's size of samples, and eps as ppm.
K, TIES, STEADY, CANDIDATES, SAMPLES, EPS = range(6)


@outer
def event_steps(
    space: Space, ledger: Ledger, samples: Ledger, events: Events, rows: Points, steps: Ints, first: int, setting: Ints,
    work: Ints,
) -> tuple[Ledger, Ledger, Events, Told, int]:  # fmt: skip
    """Takes the steps from the first on, up to one after which all must be found :func:`anew`; returns the next one."""
    told, k, ties = nothing(), setting[K], setting[TIES] > 0
    low = steps[HIGH, first - 1] if first > 0 else 0
    for s in range(first, steps.shape[1]):
        high, head, tail = steps[HIGH, s], space.meta[HEAD], events.meta[ARRIVED]
        while live(space) > 0 and space.slots[TIME, oldest(space)] <= steps[FLOOR, s]:
            ledger, samples = _go(space, ledger, samples, events, work)
        fresh, count = np.empty(high - low, np.int64), 0
        for i in range(low, high):
            if rows.time[i] > steps[FLOOR, s]:
                fresh[count], samples = _come(space, ledger, samples, events, rows, i, work)
                count += 1
        low = high
        events.meta[CLOCK] += max(space.meta[HEAD] - head, events.meta[ARRIVED] - tail)
        settle(ledger, k, ties)
        if 2 * count > live(space) + 2 * k:
            events.meta[FORCED] = 1
        if not events.meta[FORCED]:
            ledger, samples, events = _step(space, ledger, samples, events, fresh[:count], setting, work)
        if events.meta[FORCED]:
            return ledger, samples, events, told, s + 1
        told = tell(told, ledger, rows, steps, s)
    return ledger, samples, events, told, steps.shape[1]


@outer
def told_of(ledger: Ledger, rows: Points, steps: Ints, s: int) -> Told:
    """What is to be told after step s."""
    return tell(nothing(), ledger, rows, steps, s)


@inner
def _go(space: Space, ledger: Ledger, samples: Ledger, events: Events, work: Ints) -> tuple[Ledger, Ledger]:
    """Line 1 of Figure 5: the oldest point leaves."""
    p, slot = np.empty(space.axes.shape[1]), oldest(space)
    dequeue(events, slot)
    ledger, samples = strike(ledger, space, slot, p), strike(samples, space, slot, p)
    ledger.entry[slot] = PLAIN
    drop_oldest(space)
    account(ledger, p, -1, work)
    return ledger, samples


@inner
def _come(
    space: Space, ledger: Ledger, samples: Ledger, events: Events, rows: Points, i: int, work: Ints
) -> tuple[int, Ledger]:
    """Line 1 of Figure 5, the counters of section 5.1, and AHBA's sample."""
    slot = insert(space, rows.x[i], rows.time[i], rows.number[i])
    account(ledger, rows.x[i], 1, work)
    if chosen(rows.number[i], events.meta[RATE]):
        samples = add(samples, space, slot, 0)
    events.meta[ARRIVED] += 1
    if events.meta[MODE] >= ADA:
        note_newer(space, events, slot)
    ledger.entry[slot] = OPEN
    return slot, samples


@inner
def _step(
    space: Space, ledger: Ledger, samples: Ledger, events: Events, fresh: Ints, setting: Ints, work: Ints
) -> tuple[Ledger, Ledger, Events]:
    """Lines 2 to 18 of Figure 5: incoming points, and events that are due."""
    meta, k = events.meta, setting[K]
    if meta[MODE] >= ADA and meta[CLOCK] >= meta[REFRESHED] + max(64, live(space) // 64):
        samples = refresh(space, ledger, samples, events, setting[SAMPLES], k)
        meta[REFRESHED] = meta[CLOCK]
    todo, before = _todo(events, fresh, work), work[1]
    exact = np.zeros(todo.size, np.bool_)
    for i in range(fresh.size):
        ledger.entry[todo[i]] = PLAIN if _bound(space, ledger, events, todo[i], setting, work) else OPEN
    ledger = _fill_up(space, ledger, events, todo, exact, setting, work)
    events = look_ahead(space, ledger, events, k)
    if ledger.meta[TOP] < min(k, live(space)):  # AMSA has passed over too many
        meta[FORCED] = 1
        return ledger, samples, events
    for i in range(todo.size):
        if ledger.entry[todo[i]] < 0 and ledger.entry[todo[i]] != NEVER:
            ledger, events = _decide(space, ledger, samples, events, todo[i], exact[i], setting, work)
    if meta[MODE] >= ADA and work[1] > before:
        meta[NEAR] += 1
    return _sweep(space, ledger, events, setting), samples, events


@inner
def _todo(events: Events, fresh: Ints, work: Ints) -> Ints:
    """The incoming points, and then those whose events are due; these are taken out of their buckets."""
    meta, ring = events.meta, events.queue.size
    first = max(meta[SWEPT], meta[CLOCK] - ring + 1)
    count = fresh.size
    for t in range(first, meta[CLOCK] + 1):
        slot = events.queue[t % ring]
        while slot >= 0:
            count += 1
            slot = events.event[NEXT, slot]
    todo, at = np.empty(count, np.int64), fresh.size
    for i in range(fresh.size):
        todo[i] = fresh[i]
    for t in range(first, meta[CLOCK] + 1):
        slot = events.queue[t % ring]
        while slot >= 0:
            todo[at] = slot
            events.event[BUCKET, slot] = -1
            at += 1
            slot = events.event[NEXT, slot]
        events.queue[t % ring] = -1
    meta[SWEPT] = meta[CLOCK] + 1
    work[2] += count
    return todo


@inner
def _bound(space: Space, ledger: Ledger, events: Events, slot: int, setting: Ints, work: Ints) -> bool:
    """Lines 2 to 4: a bound for an incoming point from one that dominates it, unless that of its cell will do."""
    p, cell = np.empty(space.axes.shape[1]), space.slots[CELL, slot]
    if live(space) >= setting[STEADY] and passed_over(ledger, events, cell, setting[K]):
        events.event[BASE, slot] = BIG
        return True
    if events.meta[MODE] >= ADA and ledger.meta[TOP] >= setting[K]:
        events.event[BASE, slot] = events.mark[CEILING, cell]
        least = ledger.data[SCORE, ledger.data[RANK, setting[K] - 1]]
        if events.event[BASE, slot] + events.meta[ARRIVED] < least - 2 * events.meta[NEAR]:
            return True
    point(space, slot, p)
    other = reference(space, p, cell, ledger.entry, work)
    events.event[BASE, slot] = events.event[BASE, other] - 1 if other >= 0 else BIG
    return other >= 0


@inner
def _exact(space: Space, events: Events, slot: int, work: Ints) -> int:
    """An exact score computation."""
    p = np.empty(space.axes.shape[1])
    point(space, slot, p)
    score = score_of(space, p, space.slots[CELL, slot], work)
    events.event[BASE, slot] = score - events.meta[ARRIVED]
    work[1] += 1
    return score


@inner
def _fill_up(
    space: Space, ledger: Ledger, events: Events, todo: Ints, exact: NDArray[np.bool_], setting: Ints, work: Ints
) -> Ledger:
    """Where points of the top k have expired, others take their places: the largest bounds are looked at first."""
    while ledger.meta[TOP] < setting[K]:
        best = -1
        for i in range(todo.size):
            open_ = ledger.entry[todo[i]] < 0
            if open_ and (best < 0 or events.event[BASE, todo[i]] > events.event[BASE, todo[best]]):
                best = i
        if best < 0:
            return ledger
        if exact[best]:
            ledger = add(ledger, space, todo[best], events.event[BASE, todo[best]] + events.meta[ARRIVED])
            settle(ledger, setting[K], setting[TIES] > 0)
        else:
            _exact(space, events, todo[best], work)
            exact[best] = True
    return ledger


@inner
def _decide(
    space: Space, ledger: Ledger, samples: Ledger, events: Events, slot: int, exact: bool, setting: Ints, work: Ints
) -> tuple[Ledger, Events]:
    """Lines 5 to 8 and 12 to 17: into the top k, among the candidates, or an event."""
    k, meta, cell = setting[K], events.meta, space.slots[CELL, slot]
    grown = live(space) >= setting[STEADY]
    if grown and passed_over(ledger, events, cell, k):
        ledger.entry[slot] = NEVER
        return ledger, events
    if meta[MODE] >= ADA:
        if not exact:
            events.event[BASE, slot] = min(events.event[BASE, slot], events.mark[CEILING, cell])
        when, events = _waits(space, ledger, events, events.event[BASE, slot] + meta[ARRIVED], k)
        if when > meta[CLOCK] + meta[NEAR]:
            ledger.entry[slot] = PLAIN
            _later(space, events, slot, when, setting)
            return ledger, events
    outside, error = dominators_outside(space, ledger, events, slot, cell, k) if meta[MODE] >= ADA else 0, 0
    while True:
        least, bound = ledger.data[SCORE, ledger.data[RANK, k - 1]], events.event[BASE, slot] + meta[ARRIVED]
        if bound >= least and outside < k:
            if not exact:
                error = _guess(space, samples, events, slot, least, setting, work)
                exact = error >= 0
                if exact:
                    _exact(space, events, slot, work)
                continue
            ledger = add(ledger, space, slot, bound)
            settle(ledger, k, setting[TIES] > 0)
            return ledger, look_ahead(space, ledger, events, k)
        when = due(space, ledger, events, bound, outside, k)
        if meta[MODE] >= ADA:
            behind, events = _waits(space, ledger, events, bound, k)
            when = max(when, behind)
        reach = short(ledger, k) if meta[MODE] == AMSA else 4 * error
        near = exact and meta[MODE] >= ADA and (when <= meta[CLOCK] + meta[NEAR] or bound > least - reach)
        if near and ledger.meta[SIZE] < k + setting[CANDIDATES]:
            return add(ledger, space, slot, bound), events
        if (exact or error < 0) and bound <= least - reach and grown and meta[MODE] == AMSA:
            ledger.entry[slot] = NEVER
            return ledger, events
        ledger.entry[slot] = PLAIN
        _later(space, events, slot, when, setting)
        return ledger, events


@inner
def _guess(space: Space, samples: Ledger, events: Events, slot: int, least: int, setting: Ints, work: Ints) -> int:
    """AHBA: an estimate stands for the score if it is clearly below the k-th: -1. Else how wrong it might be."""
    if samples.meta[SIZE] == 0:
        return 0
    p = np.empty(space.axes.shape[1])
    point(space, slot, p)
    score, error = estimate(space, samples, p, space.slots[CELL, slot], setting[SAMPLES], setting[EPS] / 1e6, work)
    if error < 0 or score + 2 * error >= least:
        return max(error, 0)
    events.event[BASE, slot] = score + error - events.meta[ARRIVED]
    return -1


@inner
def _waits(space: Space, ledger: Ledger, events: Events, bound: int, k: int) -> tuple[int, Events]:
    """When a point may be among the top k, judged by the rivals, which are looked at again if that is too soon."""
    when, now = due_behind(space, events, bound), events.meta[CLOCK]
    age = now - events.meta[COMPARED]
    if age >= STALE or (age > 0 and when == now + 1):
        events = compare(space, ledger, events, k)
        when = due_behind(space, events, bound)
    return when, events


@inner
def _later(space: Space, events: Events, slot: int, when: int, setting: Ints) -> None:
    """The event of a point, unless it is obsolete (section 5.3)."""
    lasts = space.slots[TURN, slot] - space.meta[HEAD]
    if when < NEVER_DUE and not (setting[STEADY] == live(space) and when > events.meta[CLOCK] + lasts):
        enqueue(events, slot, when)


@inner
def _sweep(space: Space, ledger: Ledger, events: Events, setting: Ints) -> Ledger:
    """Entries that fell out of the top k: events again, or candidates if the time is near (section 5.2)."""
    meta, k = events.meta, setting[K]
    full = ledger.meta[SIZE] >= k + setting[CANDIDATES]
    if meta[MODE] >= ADA and not full:
        return ledger
    if meta[MODE] >= ADA:
        meta[NEAR] = max(1, meta[NEAR] - max(1, meta[NEAR] // 8))
    i = 0
    while i < ledger.meta[SIZE]:
        if ledger.data[LISTED, i]:
            i += 1
            continue
        slot, bound = ledger.data[SLOT, i], ledger.data[SCORE, i]
        when = due(space, ledger, events, bound, 0, k)
        if meta[MODE] >= ADA:
            when = max(when, due_behind(space, events, bound))
        if meta[MODE] >= ADA and when <= meta[CLOCK] + meta[NEAR]:
            i += 1
            continue
        ledger = remove(ledger, i)
        events.event[BASE, slot] = bound - meta[ARRIVED]
        enqueue(events, slot, when)
    return ledger


@outer
def anew(
    space: Space, ledger: Ledger, samples: Ledger, events: Events, setting: Ints, work: Ints
) -> tuple[Ledger, Ledger, Events]:
    """The top k from scratch, and an event for every other point: after much has come at once."""
    meta, k, n = events.meta, setting[K], live(space)
    most, slots = upward(space, space.cells[COUNT]), np.empty(n, np.int64)
    base = np.full(space.slots.shape[1], BIG)
    for i in range(n):
        slot = space.slots[ORDER, (space.meta[HEAD] + i) % space.slots.shape[1]]
        slots[i] = slot
        dequeue(events, slot)
        if ledger.entry[slot] == PLAIN:
            base[slot] = events.event[BASE, slot] + meta[ARRIVED]
        elif ledger.entry[slot] < 0:
            ledger.entry[slot] = PLAIN
    aim = np.array([k, k + min(k, setting[CANDIDATES]) if meta[MODE] >= ADA else k, 0])
    none, top = np.zeros(most.size, np.int64), np.full(most.size, BIG)
    ledger, _ = harvest(space, ledger, base, none, most, top, aim, work)
    settle(ledger, k, setting[TIES] > 0)
    events = look_ahead(space, ledger, events, k)
    meta[FORCED], meta[SWEPT], meta[REFRESHED] = 1, meta[CLOCK] + 1, meta[CLOCK]
    meta[COMPARED], meta[PEAK], meta[RENEWED] = -NEVER_DUE, 0, meta[CLOCK]
    if meta[MODE] >= ADA:
        samples = refresh(space, ledger, samples, events, setting[SAMPLES], k)
    for i in range(n):
        slot = slots[i]
        if ledger.entry[slot] == PLAIN:
            events.event[BASE, slot] = min(base[slot], most[space.slots[CELL, slot]]) - meta[ARRIVED]
            ledger, events = _decide(space, ledger, samples, events, slot, False, setting, work)
    meta[FORCED] = 0
    return _sweep(space, ledger, events, setting), samples, events

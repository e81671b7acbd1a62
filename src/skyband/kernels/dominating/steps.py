"""EVA, ADA, AHBA and AMSA: one loop, and what each adds to it (dominating, Figure 5)."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.dominating.decide import CANDIDATES, SAMPLES, STEADY, TIES, K, decide, exact_score
from skyband.kernels.dominating.events import (
    ADA,
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
    SWEPT,
    Events,
    dequeue,
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
from skyband.kernels.dominating.samples import chosen, passed_over, refresh
from skyband.kernels.dominating.score import dominates, reference
from skyband.kernels.dominating.space import (
    CELL,
    COUNT,
    HEAD,
    ORDER,
    PLACE,
    TIME,
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

Ints = NDArray[np.int64]


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
            if rows.position[i] > steps[FLOOR, s]:
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
    slot = insert(space, rows.x[i], rows.position[i], rows.arrival[i])
    account(ledger, rows.x[i], 1, work)
    if chosen(rows.arrival[i], events.meta[RATE]):
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
            ledger, events = decide(space, ledger, samples, events, todo[i], exact[i], setting, work)
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
    events.event[BASE, slot] = BIG
    if other >= 0:
        events.event[BASE, slot] = events.event[BASE, other] - dominates(space, space.slots[PLACE, other], p)
    return other >= 0


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
            exact_score(space, ledger, events, todo[best], work)
            exact[best] = True
    return ledger


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
            ledger, events = decide(space, ledger, samples, events, slot, False, setting, work)
    meta[FORCED] = 0
    return _sweep(space, ledger, events, setting), samples, events

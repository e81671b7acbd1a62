"""EVA, ADA, AHBA and AMSA: one loop, and what each adds to it (Kontaki et al., TKDE 2012, Figure 5)."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.dominating.decide import DECIDED, Setting, decide, exact_score, look
from skyband.kernels.dominating.events import (
    ADA,
    NEVER_DUE,
    Events,
    dequeue,
    due,
    due_behind,
    enqueue,
    look_ahead,
    note_newer,
    take_notice,
)
from skyband.kernels.dominating.harvest import BIG, NEVER, OPEN, PLAIN, Aim, Bounds, harvest
from skyband.kernels.dominating.ledger import Ledger, account, add, listed_score, remove, settle, strike
from skyband.kernels.dominating.samples import chosen, passed_over, refresh
from skyband.kernels.dominating.score import dominates, reference
from skyband.kernels.dominating.space import Points, Space, drop_oldest, expired, insert, live, oldest, point
from skyband.kernels.dominating.sums import upward
from skyband.kernels.dominating.tell import Steps, Told, tell
from skyband.storage.blocks import Floats, Ints, Record


@outer
def event_steps(
    space: Space, ledger: Ledger, samples: Ledger, events: Events, told: Told, rows: Points, steps: Steps, first: int,
    setting: Setting, work: Record,
) -> tuple[Ledger, Ledger, Told, int]:  # fmt: skip
    """Takes the steps from the first on, up to one after which all must be found :func:`anew`; returns the next one."""
    k, d, meta = setting.k, space.x.shape[0], events.meta[0]
    p, low = np.empty(d), steps.high[first - 1] if first > 0 else 0
    for s in range(first, steps.high.size):
        high, floor, head, before = steps.high[s], steps.floor[s], space.meta[0].head, meta.arrived
        while expired(space, floor):
            _go(space, ledger, samples, events, p)
            held = ledger.meta[0].held
            account(ledger.x, ledger.score[:held], p, -1)
            work[0].comparisons += held * d
        fresh, count, held = np.empty(high - low, np.int64), 0, ledger.meta[0].held
        for i in range(low, high):
            if rows.position[i] > floor:
                slot = insert(space, rows.x[i], rows.position[i], rows.arrival[i])
                account(ledger.x, ledger.score[:held], rows.x[i], 1)
                work[0].comparisons += held * d
                if chosen(rows.arrival[i], meta.rate):
                    samples = add(samples, space, slot, 0)
                meta.arrived += 1
                if meta.mode >= ADA and note_newer(space, events, slot):
                    take_notice(space, events)
                ledger.entry[slot] = OPEN
                fresh[count] = slot
                count += 1
        low = high
        meta.clock += max(space.meta[0].head - head, meta.arrived - before)
        settle(ledger, k, setting.ties)
        if 2 * count > live(space) + 2 * k:
            meta.forced = 1
        if not meta.forced:
            ledger, samples = _step(space, ledger, samples, events, fresh[:count], setting, p, work)
        if meta.forced:
            return ledger, samples, told, s + 1
        told, ledger = tell(told, ledger, rows, steps, s)
    return ledger, samples, told, steps.high.size


@outer
def told_after(told: Told, ledger: Ledger, rows: Points, steps: Steps, s: int) -> tuple[Told, Ledger]:
    """Adds what is to be told after step s."""
    return tell(told, ledger, rows, steps, s)


@in_place
def _go(space: Space, ledger: Ledger, samples: Ledger, events: Events, p: Floats) -> None:
    """Line 1 of Figure 5: the oldest point leaves; it is copied to ``p``."""
    slot = oldest(space)
    dequeue(events, slot)
    strike(ledger, space, slot, p)
    strike(samples, space, slot, p)
    ledger.entry[slot] = PLAIN
    drop_oldest(space)


@inner
def _step(
    space: Space, ledger: Ledger, samples: Ledger, events: Events, fresh: Ints, setting: Setting, p: Floats,
    work: Record,
) -> tuple[Ledger, Ledger]:  # fmt: skip
    """Lines 2 to 18 of Figure 5: incoming points, and events that are due."""
    meta, k = events.meta[0], setting.k
    if meta.mode >= ADA and meta.clock >= meta.refreshed + max(64, live(space) // 64):
        samples = refresh(space, ledger, samples, events, setting.sample, k)
        meta.refreshed = meta.clock
    todo, before = _todo(events, fresh), work[0].scores
    work[0].events += todo.size
    exact = np.zeros(todo.size, np.bool_)
    for slot in fresh:
        if _cell_will_do(space, ledger, events, slot, setting) or _referred(space, ledger, events, slot, p, work):
            ledger.entry[slot] = PLAIN
    if ledger.meta[0].top < k:
        ledger = _fill_up(space, ledger, events, todo, exact, setting, p, work)
    look_ahead(space, ledger, events, k)
    if ledger.meta[0].top < min(k, live(space)):  # AMSA has passed over too many
        meta.forced = 1
        return ledger, samples
    for i in range(todo.size):
        slot = todo[i]
        if ledger.entry[slot] < 0 and ledger.entry[slot] != NEVER:
            wanted = look(space, ledger, events, slot, exact[i], setting, p)
            if wanted != DECIDED:
                ledger = decide(space, ledger, samples, events, slot, exact[i], wanted, setting, p, work)
    if meta.mode >= ADA and work[0].scores > before:
        meta.near += 1
    _sweep(space, ledger, events, setting)
    return ledger, samples


@inner
def _todo(events: Events, fresh: Ints) -> Ints:
    """The incoming points, and then those whose events are due; these are taken out of their buckets."""
    meta, ring = events.meta[0], events.queue.size
    first = max(meta.swept, meta.clock - ring + 1)
    count = fresh.size
    for t in range(first, meta.clock + 1):
        slot = events.queue[t % ring]
        while slot >= 0:
            count += 1
            slot = events.after[slot]
    todo, at = np.empty(count, np.int64), fresh.size
    for i in range(at):
        todo[i] = fresh[i]
    for t in range(first, meta.clock + 1):
        slot = events.queue[t % ring]
        while slot >= 0:
            todo[at] = slot
            events.bucket[slot] = -1
            at += 1
            slot = events.after[slot]
        events.queue[t % ring] = -1
    meta.swept = meta.clock + 1
    return todo


@in_place
def _cell_will_do(space: Space, ledger: Ledger, events: Events, slot: int, setting: Setting) -> bool:
    """Gives an incoming point the bound of its cell, if that is enough to make an event of it."""
    meta, cell, k = events.meta[0], space.slots.cell[slot], setting.k
    if live(space) >= setting.steady and passed_over(ledger, events, cell, k):
        events.base[slot] = BIG
        return True
    if meta.mode >= ADA and ledger.meta[0].top >= k:
        events.base[slot] = events.ceiling[cell]
        if events.base[slot] + meta.arrived < listed_score(ledger, k - 1) - 2 * meta.near:
            return True
    return False


@inner
def _referred(space: Space, ledger: Ledger, events: Events, slot: int, p: Floats, work: Record) -> bool:
    """Lines 2 to 4: a bound for an incoming point from one that dominates it, if there is one."""
    point(space, slot, p)
    other = reference(space, p, space.slots.cell[slot], ledger.entry, work)
    events.base[slot] = BIG
    if other >= 0:
        events.base[slot] = events.base[other] - dominates(space.x, space.slots.place[other], p)
    return other >= 0


@inner
def _fill_up(
    space: Space, ledger: Ledger, events: Events, todo: Ints, exact: NDArray[np.bool_], setting: Setting, p: Floats,
    work: Record,
) -> Ledger:  # fmt: skip
    """Where points of the top k have expired, others take their places: the largest bounds are looked at first."""
    while ledger.meta[0].top < setting.k:
        best = -1
        for i in range(todo.size):
            if ledger.entry[todo[i]] < 0 and (best < 0 or events.base[todo[i]] > events.base[todo[best]]):
                best = i
        if best < 0:
            return ledger
        if exact[best]:
            ledger = add(ledger, space, todo[best], events.base[todo[best]] + events.meta[0].arrived)
            settle(ledger, setting.k, setting.ties)
        else:
            exact_score(space, ledger, events, todo[best], p, work)
            exact[best] = True
    return ledger


@in_place
def _sweep(space: Space, ledger: Ledger, events: Events, setting: Setting) -> None:
    """Entries that fell out of the top k: events again, or candidates if the time is near (section 5.2)."""
    meta, advanced = events.meta[0], events.meta[0].mode >= ADA
    if advanced:
        if ledger.meta[0].held < setting.k + setting.candidates:
            return
        meta.near = max(1, meta.near - max(1, meta.near // 8))
    i = 0
    while i < ledger.meta[0].held:
        if ledger.listed[i]:
            i += 1
            continue
        slot, bound = ledger.slot[i], ledger.score[i]
        when = due(space, ledger, events, bound, 0, setting.k)
        if advanced:
            when = max(when, due_behind(space, events, bound))
        if advanced and when <= meta.clock + meta.near:
            i += 1
            continue
        remove(ledger, i)
        events.base[slot] = bound - meta.arrived
        enqueue(events, slot, when)


@outer
def anew(
    space: Space, ledger: Ledger, samples: Ledger, events: Events, setting: Setting, work: Record
) -> tuple[Ledger, Ledger]:
    """The top k from scratch, and an event for every other point: after much has come at once."""
    meta, k, ring = events.meta[0], setting.k, space.slots.ring
    most, p, slots = (
        upward(space.grid, space.cells.members),
        np.empty(space.x.shape[0]),
        np.empty(live(space), np.int64),
    )
    base = np.full(events.base.size, BIG)
    for i in range(slots.size):
        slot = ring[(space.meta[0].head + i) % ring.size]
        slots[i] = slot
        dequeue(events, slot)
        if ledger.entry[slot] == PLAIN:
            base[slot] = events.base[slot] + meta.arrived
        elif ledger.entry[slot] < 0:
            ledger.entry[slot] = PLAIN
    target = k + min(k, setting.candidates) if meta.mode >= ADA else k
    bounds = Bounds(base, np.zeros(most.size, np.int64), most, np.full(most.size, BIG))
    ledger, _ = harvest(space, ledger, bounds, Aim(k, target, 0), work)
    settle(ledger, k, setting.ties)
    look_ahead(space, ledger, events, k)
    meta.forced, meta.swept, meta.refreshed = 1, meta.clock + 1, meta.clock
    meta.compared, meta.peak, meta.renewed = -NEVER_DUE, 0, meta.clock
    if meta.mode >= ADA:
        samples = refresh(space, ledger, samples, events, setting.sample, k)
    for i in range(slots.size):
        slot = slots[i]
        if ledger.entry[slot] == PLAIN:
            events.base[slot] = min(base[slot], most[space.slots.cell[slot]]) - meta.arrived
            wanted = look(space, ledger, events, slot, False, setting, p)
            if wanted != DECIDED:
                ledger = decide(space, ledger, samples, events, slot, False, wanted, setting, p, work)
    meta.forced = 0
    _sweep(space, ledger, events, setting)
    return ledger, samples

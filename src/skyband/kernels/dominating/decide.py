"""What becomes of a point that is looked at: into the top k, among the candidates, or an event (Figure 5)."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner
from skyband.kernels.common.order import newer
from skyband.kernels.dominating.events import (
    ADA,
    AMSA,
    ARRIVED,
    BASE,
    CEILING,
    CLOCK,
    COMPARED,
    MODE,
    NEAR,
    NEVER_DUE,
    STALE,
    Events,
    compare,
    dominators_outside,
    due,
    due_behind,
    enqueue,
    look_ahead,
)
from skyband.kernels.dominating.harvest import NEVER, PLAIN
from skyband.kernels.dominating.ledger import RANK, SCORE, SIZE, WHEN, WHO, Ledger, add, settle, twin
from skyband.kernels.dominating.samples import estimate, passed_over, short
from skyband.kernels.dominating.score import score_of
from skyband.kernels.dominating.space import CELL, HEAD, NUMBER, TIME, TURN, Space, live, point

Ints = NDArray[np.int64]

# Of a setting: k; whether ties are in the answer; the extent of a window in which a point goes for each that comes
# once it is full (0: it is of another kind); how many candidates there may be; AHBA's size of samples, and eps as ppm.
K, TIES, STEADY, CANDIDATES, SAMPLES, EPS = range(6)


@inner
def exact_score(space: Space, ledger: Ledger, events: Events, slot: int, work: Ints) -> None:
    """An exact score computation, unless an equal point is in the ledger."""
    p = np.empty(space.axes.shape[1])
    point(space, slot, p)
    same = twin(ledger, p)
    score = ledger.data[SCORE, same] if same >= 0 else score_of(space, p, space.slots[CELL, slot], work)
    events.event[BASE, slot] = score - events.meta[ARRIVED]
    work[1] += same < 0


@inner
def decide(
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
        if outside < k and _may_enter(space, ledger, slot, bound, setting):
            if not exact:
                error = _guess(space, samples, events, slot, least, setting, work)
                exact = error >= 0
                if exact:
                    exact_score(space, ledger, events, slot, work)
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
def _may_enter(space: Space, ledger: Ledger, slot: int, bound: int, setting: Ints) -> bool:
    """Whether a point that scores ``bound`` would be among the top k: of equal scores the newer one is."""
    last = ledger.data[RANK, setting[K] - 1]
    if bound != ledger.data[SCORE, last] or setting[TIES] > 0:
        return bool(bound >= ledger.data[SCORE, last])
    slots = space.slots
    return newer(slots[TIME, slot], slots[NUMBER, slot], ledger.data[WHEN, last], ledger.data[WHO, last])


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

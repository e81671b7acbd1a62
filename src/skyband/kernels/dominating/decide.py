"""What becomes of a point that is looked at: into the top k, among the candidates, or an event.

(Kontaki et al., TKDE 2012, Figure 5.)
"""

from typing import NamedTuple

from skyband.kernels.common.jit import in_place, inner
from skyband.kernels.common.order import newer
from skyband.kernels.dominating.events import (
    ADA,
    AMSA,
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
from skyband.kernels.dominating.ledger import Ledger, add, listed_score, settle, twin
from skyband.kernels.dominating.samples import estimate, passed_over, short
from skyband.kernels.dominating.score import score_of
from skyband.kernels.dominating.space import Space, live, point
from skyband.storage.blocks import Floats, Record


class Setting(NamedTuple):
    """What is asked, and how an algorithm is to go about it."""

    k: int
    ties: bool  # whether what ties with the k-th is in the answer
    steady: int  # the extent of a window in which, once it is full, a point goes for each that comes; else 0
    candidates: int  # how many there may be
    sample: int  # AHBA: how many points of the sample are to be on the borders of a cell
    eps: float  # AHBA: the tolerance


# What a look at a point comes to
DECIDED, COUNT, ENTER, HOLD, COMPARE, COMPARE_FIRST = range(6)


@inner
def exact_score(space: Space, ledger: Ledger, events: Events, slot: int, p: Floats, work: Record) -> None:
    """An exact score computation, unless an equal point is in the ledger. ``p`` is room for a point."""
    point(space, slot, p)
    same = twin(ledger, p)
    score = ledger.score[same] if same >= 0 else score_of(space, p, space.slots.cell[slot], work)
    events.base[slot] = score - events.meta[0].arrived
    work[0].scores += same < 0


@in_place
def look(space: Space, ledger: Ledger, events: Events, slot: int, exact: bool, setting: Setting, p: Floats) -> int:
    """Decides about a point by its bounds alone, if they do (Figure 5, lines 5 to 8 and 12 to 17).

    Then it is passed over or gets an event (``DECIDED``), as most are; nothing is counted, and no memory taken. Else
    says what :func:`decide` has to do: count its score, hold it, let it enter, or compare the rivals first.
    """
    meta, cell = events.meta[0], space.slots.cell[slot]
    if live(space) >= setting.steady and passed_over(ledger, events, cell, setting.k):
        ledger.entry[slot] = NEVER
        return DECIDED
    if meta.mode >= ADA:
        if not exact:
            events.base[slot] = min(events.base[slot], events.ceiling[cell])
        when = due_behind(space, events, events.base[slot] + meta.arrived)
        if _outdated(events, when):
            return COMPARE_FIRST
        if when > meta.clock + meta.near:
            _leave(space, ledger, events, slot, when, setting.steady)
            return DECIDED
    return _weigh(space, ledger, events, slot, exact, 0, setting, p)


@in_place
def _weigh(
    space: Space, ledger: Ledger, events: Events, slot: int, exact: bool, error: int, setting: Setting, p: Floats
) -> int:
    """The second half of :func:`look`, for a point that the rivals do not shield from the top k.

    ``error`` is by how much an estimate of its score may be wrong; 0 if there is none.
    """
    meta, k = events.meta[0], setting.k
    advanced = meta.mode >= ADA
    outside = dominators_outside(space, ledger, events, slot, k, p) if advanced else 0
    least, bound = listed_score(ledger, k - 1), events.base[slot] + meta.arrived
    if outside < k and _may_enter(space, ledger, slot, bound, setting):
        return ENTER if exact else COUNT
    when = due(space, ledger, events, bound, outside, k)
    if advanced:
        behind = due_behind(space, events, bound)
        if _outdated(events, behind):
            return COMPARE
        when = max(when, behind)
    reach = short(ledger, k) if meta.mode == AMSA else 4 * error
    near = exact and advanced and (when <= meta.clock + meta.near or bound > least - reach)
    if near and ledger.meta[0].held < k + setting.candidates:
        return HOLD
    grown = live(space) >= setting.steady
    if (exact or error < 0) and bound <= least - reach and grown and meta.mode == AMSA:
        ledger.entry[slot] = NEVER
    else:
        _leave(space, ledger, events, slot, when, setting.steady)
    return DECIDED


@inner
def decide(
    space: Space, ledger: Ledger, samples: Ledger, events: Events, slot: int, exact: bool, wanted: int,
    setting: Setting, p: Floats, work: Record,
) -> Ledger:  # fmt: skip
    """Lines 5 to 8 and 12 to 17, beginning with what :func:`look` wanted: the point enters the top k, is held as a
    candidate, or gets an event after all."""
    error = 0
    while wanted != DECIDED:
        if wanted == ENTER:
            ledger = add(ledger, space, slot, events.base[slot] + events.meta[0].arrived)
            settle(ledger, setting.k, setting.ties)
            look_ahead(space, ledger, events, setting.k)
            return ledger
        if wanted == HOLD:
            return add(ledger, space, slot, events.base[slot] + events.meta[0].arrived)
        if wanted == COUNT:
            error = _guess(space, ledger, samples, events, slot, setting, p, work)
            exact = error >= 0
            if exact:
                exact_score(space, ledger, events, slot, p, work)
        else:
            compare(space, ledger, events, setting.k)
        if wanted == COMPARE_FIRST:
            wanted = look(space, ledger, events, slot, exact, setting, p)
        else:
            wanted = _weigh(space, ledger, events, slot, exact, error, setting, p)
    return ledger


@in_place
def _may_enter(space: Space, ledger: Ledger, slot: int, bound: int, setting: Setting) -> bool:
    """Whether a point that scores ``bound`` would be among the top k: of equal scores the newer one is."""
    last, slots = ledger.rank[setting.k - 1], space.slots
    if bound != ledger.score[last] or setting.ties:
        return bool(bound >= ledger.score[last])
    return newer(slots.position[slot], slots.arrival[slot], ledger.position[last], ledger.arrival[last])


@inner
def _guess(
    space: Space, ledger: Ledger, samples: Ledger, events: Events, slot: int, setting: Setting, p: Floats, work: Record
) -> int:
    """AHBA: an estimate stands for the score if it is clearly below the k-th: -1. Else how wrong it might be."""
    if samples.meta[0].held == 0:
        return 0
    point(space, slot, p)
    score, error = estimate(space, samples, p, space.slots.cell[slot], setting.sample, setting.eps, work)
    if error < 0 or score + 2 * error >= listed_score(ledger, setting.k - 1):
        return max(error, 0)
    events.base[slot] = score + error - events.meta[0].arrived
    return -1


@in_place
def _outdated(events: Events, when: int) -> bool:
    """Whether the rivals are to be compared again: after some time, or where they make a point due at once."""
    now = events.meta[0].clock
    age = now - events.meta[0].compared
    return bool(age >= STALE or (age > 0 and when == now + 1))


@in_place
def _leave(space: Space, ledger: Ledger, events: Events, slot: int, when: int, steady: int) -> None:
    """The point is plain, and has an event unless that is obsolete (section 5.3)."""
    ledger.entry[slot] = PLAIN
    lasts = space.slots.turn[slot] - space.meta[0].head
    if when < NEVER_DUE and not (steady == live(space) and when > events.meta[0].clock + lasts):
        enqueue(events, slot, when)

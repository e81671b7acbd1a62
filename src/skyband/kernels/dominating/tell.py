"""Steps: several points come and go at once; and what is told of the answer after each (Kontaki et al., section 8)."""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inner
from skyband.kernels.common.order import better
from skyband.kernels.common.output import grow
from skyband.kernels.dominating.ledger import Ledger, room_to_go
from skyband.kernels.dominating.space import Points
from skyband.storage.blocks import ARRIVAL, Bytes, Ints, Record, block, column, scalars

NONE, EACH = np.iinfo(np.int64).min, np.iinfo(np.int64).min + 1  # in place of an end


class Steps(NamedTuple):
    """What happens, a step after the other: some points go, some come, and then there may be something to tell.

    ``end`` is where the window ends that a step closes; NONE if it closes none, and EACH for windows that move with
    every arrival, of which the changes are told.
    """

    high: Ints  # the rows up to here have come after the step
    floor: Ints  # what is here or before goes, or does not come in
    end: Ints
    trigger: Ints  # the arrival number of the row that brought the step about


class ToldMeta(NamedTuple):
    held: int = 0  # rows so far


@block(version=1)
class Told(NamedTuple):
    """What is told of the answers: of windows that closed, their rankings, and of others who entered and left."""

    trigger: Annotated[Ints, column("rows", used="held", holds=ARRIVAL)]
    at: Annotated[Ints, column("rows", used="held")]  # where the window ends, or the position of the trigger
    op: Annotated[Bytes, column("rows", used="held")]  # 1 entered, -1 left, 0 in the ranking of a window
    arrival: Annotated[Ints, column("rows", used="held", holds=ARRIVAL)]
    score: Annotated[Ints, column("rows", used="held")]
    meta: Annotated[Record, scalars(ToldMeta)]


class Left(NamedTuple):
    """Points that were shown and are no longer in the answer."""

    shows: Ints  # the score that was shown
    position: Ints
    arrival: Ints


@inner
def _roomy(told: Told, more: int) -> Told:
    """The same with room for so many rows more."""
    rows = told.meta[0].held + more
    if rows <= told.at.size:
        return told
    return Told(grow(told.trigger, rows), grow(told.at, rows), grow(told.op, rows), grow(told.arrival, rows),
                grow(told.score, rows), told.meta)  # fmt: skip


@in_place
def _note(told: Told, trigger: int, at: int, op: int, arrival: int, score: int) -> None:
    i = told.meta[0].held
    told.trigger[i], told.at[i], told.op[i], told.arrival[i], told.score[i] = trigger, at, op, arrival, score
    told.meta[0].held = i + 1


@inner
def tell(told: Told, ledger: Ledger, rows: Points, steps: Steps, s: int) -> tuple[Told, Ledger]:
    """Adds what is to be told after step s."""
    end, trigger = steps.end[s], steps.trigger[s]
    if end == NONE or (end == EACH and not _changed(ledger)):
        return told, ledger
    meta = ledger.meta[0]
    if end == EACH:
        told = _roomy(told, meta.gone + meta.shown + meta.top)
        _tell_changes(told, ledger, trigger, rows.position[steps.high[s] - 1])
        if meta.shown > ledger.gone_shows.size:
            ledger = room_to_go(ledger, meta.shown)
        return told, ledger
    told = _roomy(told, meta.top)
    for r in range(meta.top):
        i = ledger.rank[r]
        _note(told, trigger, end, 0, ledger.arrival[i], ledger.score[i])
    return told, ledger


@in_place
def _changed(ledger: Ledger) -> bool:
    """Whether anyone has left or entered the answer since it was last told."""
    meta = ledger.meta[0]
    if meta.gone > 0 or meta.shown != meta.top:
        return True
    entered = False
    for r in range(meta.top):
        entered |= ledger.shows[ledger.rank[r]] < 0
    return entered


@inner
def _tell_changes(told: Told, ledger: Ledger, trigger: int, at: int) -> None:
    """Adds who left and who entered the answer since it was last told.

    Those that left come first, in the order of what was shown of them: score, then newer.
    """
    meta, left = ledger.meta[0], _left(ledger)
    for i in range(left.shows.size):
        _note(told, trigger, at, -1, left.arrival[i], left.shows[i])
    for r in range(meta.top):
        i = ledger.rank[r]
        if ledger.shows[i] < 0:
            ledger.shows[i] = ledger.score[i]
            _note(told, trigger, at, 1, ledger.arrival[i], ledger.score[i])
    meta.shown = meta.top


@inner
def _left(ledger: Ledger) -> Left:
    """The points that were shown and are no longer listed, best first, as they were shown; they are so no longer."""
    meta = ledger.meta[0]
    most, count = meta.gone + meta.shown, meta.gone
    left = Left(np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64))
    for i in range(count):
        left.shows[i], left.position[i] = ledger.gone_shows[i], ledger.gone_position[i]
        left.arrival[i] = ledger.gone_arrival[i]
    meta.gone = 0
    for i in range(meta.held):
        if ledger.shows[i] >= 0 and not ledger.listed[i]:
            left.shows[count], left.position[count] = ledger.shows[i], ledger.position[i]
            left.arrival[count] = ledger.arrival[i]
            ledger.shows[i] = -1
            count += 1
    for i in range(1, count):
        s, t, n, j = left.shows[i], left.position[i], left.arrival[i], i
        while j > 0 and better(s, t, n, left.shows[j - 1], left.position[j - 1], left.arrival[j - 1]):
            left.shows[j], left.position[j] = left.shows[j - 1], left.position[j - 1]
            left.arrival[j] = left.arrival[j - 1]
            j -= 1
        left.shows[j], left.position[j], left.arrival[j] = s, t, n
    return Left(left.shows[:count], left.position[:count], left.arrival[:count])

"""Objects put together from rows: what each stream says of an object now, as rows come and expire.

Everything that happens to an object's score is written down as an event; :mod:`skyband.kernels.groups.view` then
follows the events to see who is in the top k. Scores depend on rows alone, never on ranks, so a Python function can
score all the events of a batch at once.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.common.output import grow
from skyband.kernels.groups.exact import add

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

HEAD, ROWS, CELLS, OBJECTS, NOW, NEXT = range(6)  # places in Parts.meta
SUM, MEAN, MAX, MIN, PRODUCT, FUNCTION = range(6)  # aggregates
CHANGED, ARRIVED, CLOSED = range(3)  # kinds of event


class Parts(NamedTuple):
    """Rows in the order of event time, the cells (object, stream) they belong to, and the objects.

    Of the arrays only the first entries are in use: see ``meta``. ``NOW`` is the newest position, ``NEXT`` the end of
    the hopping window that closes next.
    """

    position: Ints
    arrival: Ints
    value: Floats
    cell: Ints
    owner: Ints  # of a cell: its object
    stream: Ints
    following: Ints  # the next cell of the same object; -1: none
    valid: Ints  # rows that count now
    seen: Ints  # rows since the object came into the window
    hi: Floats  # what the stream says of the object: hi + lo
    lo: Floats
    lossy: Ints  # whether an addition was not exact
    last: Ints  # occurrences "once": the number of the row that counts
    code: Ints  # of an object
    first: Ints  # its first cell
    rows: Ints  # its rows that count now; 0: it is not in the window
    newest: Ints  # time and number of its newest row
    newest_number: Ints
    meta: Ints


class Arriving(NamedTuple):
    """A batch; ``slot`` is the place of a row's object."""

    value: Floats
    position: Ints
    arrival: Ints
    slot: Ints
    stream: Ints


class Spec(NamedTuple):
    """What is asked for."""

    how: int
    many: bool
    width: int  # streams there are; 0: unknown
    low: float  # what an absent stream counts for
    extent: int
    slide: int  # 0: every arrival
    timed: bool


class Events(NamedTuple):
    """``CHANGED``: an object's score, and the cell that did it; ``ARRIVED`` and ``CLOSED``: the answer is due.

    For the latter ``position`` is where the answer belongs, and ``arrival`` the arrival that brought it about.
    """

    kind: Ints
    slot: Ints
    cell: Ints
    stream: Ints  # of the cell
    value: Floats  # what it says now; NaN: nothing
    score: Floats
    position: Ints
    arrival: Ints
    alive: Ints  # rows of the object that count
    vector: Floats  # FUNCTION: what each stream says, ``width`` values an event
    used: Ints


def no_events(room: int, width: int) -> Events:
    """Room for events. It is not made larger on the way (that would take long to compile): see :func:`assemble`."""
    kind, slot, cell, stream, position, arrival, alive = np.empty((7, room), np.int64)
    value, score = np.empty((2, room))
    return Events(kind, slot, cell, stream, value, score, position, arrival, alive, np.empty(room * width),
                  np.zeros(1, np.int64))  # fmt: skip


@inner
def score_of(parts: Parts, slot: int, spec: Spec) -> float:
    """The aggregate of what the streams say of an object that is in the window."""
    c, present = parts.first[slot], 0
    if spec.how == SUM or spec.how == MEAN:
        hi, lo = 0.0, 0.0
        while c >= 0:
            if parts.valid[c] > 0:
                hi, lo, _ = add(hi, lo, parts.hi[c], parts.lo[c])
            c = parts.following[c]
        return hi / spec.width if spec.how == MEAN else hi
    if spec.how == FUNCTION:
        return 0.0
    values = np.empty(0)
    if spec.how == PRODUCT:
        values = np.empty(max(spec.width, 1))
    most, least = -np.inf, np.inf
    while c >= 0:
        if parts.valid[c] > 0:
            most, least = max(most, parts.hi[c]), min(least, parts.hi[c])
            if spec.how == PRODUCT:
                if present == values.size:
                    values = grow(values, 0)
                values[present] = parts.hi[c]
            present += 1
        c = parts.following[c]
    if spec.how == MAX:
        return most
    if spec.how == MIN:
        return least if present >= spec.width else min(least, spec.low)
    score = 1.0
    for _ in range(present, spec.width):
        score *= spec.low
    for value in np.sort(values[:present]):  # in this order, so that the rounding is the same whatever came first
        score *= value
    return score


@inner
def _changed(parts: Parts, events: Events, cell: int, spec: Spec) -> None:
    slot, i = parts.owner[cell], events.used[0]
    events.kind[i], events.slot[i], events.cell[i] = CHANGED, slot, cell
    events.stream[i], events.value[i] = parts.stream[cell], parts.hi[cell] if parts.valid[cell] > 0 else np.nan
    events.alive[i] = parts.rows[slot]
    events.position[i], events.arrival[i] = parts.newest[slot], parts.newest_number[slot]
    events.score[i] = score_of(parts, slot, spec) if parts.rows[slot] > 0 else -np.inf
    if spec.how == FUNCTION:
        vector = events.vector[i * spec.width : (i + 1) * spec.width]
        vector[:] = spec.low
        c = parts.first[slot]
        while c >= 0:
            if parts.valid[c] > 0:
                vector[parts.stream[c]] = parts.hi[c]
            c = parts.following[c]
    events.used[0] += 1


@inner
def _due(events: Events, kind: int, at: int, trigger: int) -> None:
    i = events.used[0]
    events.kind[i], events.slot[i], events.cell[i], events.alive[i] = kind, -1, -1, 0
    events.position[i], events.arrival[i], events.score[i] = at, trigger, 0.0
    events.used[0] += 1


@inner
def _has_room(parts: Parts, events: Events) -> bool:
    """Whether all rows may expire, and an answer be due, or two."""
    return bool(events.used[0] + parts.meta[ROWS] - parts.meta[HEAD] + 4 <= events.kind.size)


@inner
def _sum_anew(parts: Parts, cell: int) -> None:
    """Adds up a cell from its rows: an addition was not exact."""
    parts.hi[cell], parts.lo[cell], parts.lossy[cell] = 0.0, 0.0, 0
    for i in range(parts.meta[HEAD], parts.meta[ROWS]):
        if parts.cell[i] == cell:
            parts.hi[cell], parts.lo[cell], exact = add(parts.hi[cell], parts.lo[cell], parts.value[i], 0.0)
            if not exact:  # too far apart for two doubles: to be added up again when one of them has gone
                parts.lossy[cell] = 1


@inner
def _expire(parts: Parts, events: Events, start: int, spec: Spec) -> None:
    """Takes away the rows before ``start``."""
    meta = parts.meta
    while meta[HEAD] < meta[ROWS] and parts.position[meta[HEAD]] < start:
        i = meta[HEAD]
        meta[HEAD] += 1
        c = parts.cell[i]
        if not spec.many and parts.last[c] != parts.arrival[i]:
            continue  # superseded by a newer value of the same stream
        parts.valid[c] -= 1
        parts.rows[parts.owner[c]] -= 1
        if spec.many and parts.valid[c] > 0:
            parts.hi[c], parts.lo[c], exact = add(parts.hi[c], parts.lo[c], -parts.value[i], 0.0)
            if not exact or parts.lossy[c]:
                _sum_anew(parts, c)
        _changed(parts, events, c, spec)


@inner
def _cell(parts: Parts, slot: int, stream: int) -> int:
    """The cell of an object and stream, made if need be."""
    if parts.rows[slot] == 0:  # a new life: what was said before does not count
        c = parts.first[slot]
        while c >= 0:
            parts.seen[c] = 0
            c = parts.following[c]
    c = parts.first[slot]
    while c >= 0:
        if parts.stream[c] == stream:
            return int(c)
        c = parts.following[c]
    c = parts.meta[CELLS]
    parts.meta[CELLS] += 1
    parts.owner[c], parts.stream[c], parts.following[c] = slot, stream, parts.first[slot]
    parts.valid[c], parts.seen[c], parts.hi[c], parts.lo[c], parts.lossy[c], parts.last[c] = 0, 0, 0.0, 0.0, 0, -1
    parts.first[slot] = c
    return int(c)


@inner
def _arrive(parts: Parts, events: Events, rows: Arriving, i: int, spec: Spec) -> None:
    """One row takes its place."""
    meta, slot, position, arrival = parts.meta, rows.slot[i], rows.position[i], rows.arrival[i]
    c = _cell(parts, slot, rows.stream[i])
    parts.seen[c] += 1
    j = meta[ROWS]
    while j > meta[HEAD] and parts.position[j - 1] > position:
        j -= 1
    if not spec.many and parts.valid[c] > 0:
        for other in range(j, meta[ROWS]):
            if parts.arrival[other] == parts.last[c]:
                return  # out of order: a newer value of the stream is there already
    for other in range(meta[ROWS], j, -1):
        parts.position[other], parts.arrival[other] = parts.position[other - 1], parts.arrival[other - 1]
        parts.value[other], parts.cell[other] = parts.value[other - 1], parts.cell[other - 1]
    parts.position[j], parts.arrival[j], parts.value[j], parts.cell[j] = position, arrival, rows.value[i], c
    meta[ROWS] += 1
    if parts.rows[slot] == 0 or position >= parts.newest[slot]:
        parts.newest[slot], parts.newest_number[slot] = position, arrival
    if spec.many and parts.valid[c] > 0:
        parts.hi[c], parts.lo[c], exact = add(parts.hi[c], parts.lo[c], rows.value[i], 0.0)
        parts.valid[c] += 1
        parts.rows[slot] += 1
        if not exact:
            parts.lossy[c] = 1
    else:
        parts.hi[c], parts.lo[c], parts.lossy[c], parts.last[c] = rows.value[i], 0.0, 0, arrival
        parts.rows[slot] += 1 - parts.valid[c]
        parts.valid[c] = 1
    _changed(parts, events, c, spec)


@inner
def _close(parts: Parts, events: Events, frontier: int, trigger: int, spec: Spec) -> bool:
    """Closes the windows that end by ``frontier`` and hold something; whether there was room for them all."""
    meta = parts.meta
    while meta[NEXT] <= frontier:
        if not _has_room(parts, events):
            return False
        _expire(parts, events, meta[NEXT] - spec.extent, spec)
        if meta[HEAD] == meta[ROWS]:  # nothing is left: on to the first window after the frontier
            meta[NEXT] = frontier // spec.slide * spec.slide + spec.slide
            return True
        _due(events, CLOSED, meta[NEXT], trigger)
        meta[NEXT] += spec.slide
    return True


@outer
def assemble(parts: Parts, rows: Arriving, begin: int, frontier: int, spec: Spec, events: Events) -> int:
    """Takes the rows in, from ``begin`` on; hopping windows that end by ``frontier`` are closed.

    Stops where there is no room for more events and returns the row to go on with; when all is done, one more than
    there are rows.
    """
    meta = parts.meta
    for i in range(begin, rows.value.size):
        position = rows.position[i]
        if spec.slide == 0:
            if not _has_room(parts, events):
                return i
            meta[NOW] = max(meta[NOW], position)
            _expire(parts, events, meta[NOW] - spec.extent + 1, spec)
            if position > meta[NOW] - spec.extent:
                _arrive(parts, events, rows, i, spec)
            _due(events, ARRIVED, position, rows.arrival[i])
            continue
        if not _close(parts, events, position, rows.arrival[i], spec) or not _has_room(parts, events):
            return i
        _expire(parts, events, meta[NEXT] - spec.extent, spec)
        meta[NOW] = max(meta[NOW], position)
        _arrive(parts, events, rows, i, spec)
        if not spec.timed and meta[NEXT] == position + 1:  # the row completes a window
            _due(events, CLOSED, meta[NEXT], rows.arrival[i])
            meta[NEXT] += spec.slide
    if spec.timed and spec.slide > 0:
        if not _close(parts, events, frontier, 0, spec) or not _has_room(parts, events):
            return rows.value.size
        _expire(parts, events, meta[NEXT] - spec.extent, spec)  # what no later window needs
    return rows.value.size + 1


@outer
def all_scores(parts: Parts, spec: Spec) -> Floats:
    """The score of every object; -inf for those that are not in the window."""
    score = np.full(parts.meta[OBJECTS], -np.inf)
    for slot in range(score.size):
        if parts.rows[slot] > 0:
            score[slot] = score_of(parts, slot, spec)
    return score

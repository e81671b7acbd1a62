"""Objects put together from rows: what each stream says of an object now, as rows come and expire.

Everything that happens to an object's score is written down as an event; :mod:`skyband.kernels.groups.view` then
follows the events to see who is in the top k. Scores depend on rows alone, never on ranks, so a Python function can
score all the events of a batch at once.
"""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.common.output import grow
from skyband.kernels.groups.exact import add
from skyband.query.positions import FOREVER
from skyband.storage.blocks import ARRIVAL, Floats, Ints, Record, block, column, empty, grown, scalars

SUM, MEAN, MAX, MIN, PRODUCT, FUNCTION = range(6)  # aggregates
CHANGED, ARRIVED, CLOSED = range(3)  # kinds of event


class PartsMeta(NamedTuple):
    head: int = 0  # the rows are at [head, rows)
    rows: int = 0
    cells: int = 0
    objects: int = 0
    counting: int = 0  # rows that count now
    living: int = 0  # objects that are in the window
    touched: int = 0  # no row of the last batch is before this place
    now: int = -FOREVER  # the newest position
    next_end: int = -FOREVER  # where the hopping window ends that closes next


@block(version=1)
class Parts(NamedTuple):
    """Rows in the order of event time, the cells (object, stream) they belong to, and the objects."""

    position: Annotated[Ints, column("row", used="rows")]
    arrival: Annotated[Ints, column("row", used="rows", holds=ARRIVAL)]
    value: Annotated[Floats, column("row", used="rows")]
    cell: Annotated[Ints, column("row", used="rows")]
    owner: Annotated[Ints, column("cells", used="cells")]  # of a cell: its object
    stream: Annotated[Ints, column("cells", used="cells")]
    following: Annotated[Ints, column("cells", used="cells")]  # the next cell of the same object; -1: none
    valid: Annotated[Ints, column("cells", used="cells")]  # rows that count now
    seen: Annotated[Ints, column("cells", used="cells")]  # rows since the object came into the window
    hi: Annotated[Floats, column("cells", used="cells")]  # what the stream says of the object: hi + lo
    lo: Annotated[Floats, column("cells", used="cells")]
    lossy: Annotated[Ints, column("cells", used="cells")]  # whether an addition was not exact
    last: Annotated[Ints, column("cells", used="cells", holds=ARRIVAL)]  # occurrences "once": the row that counts
    first: Annotated[Ints, column("objects", used="objects", fill=-1)]  # its first cell
    alive: Annotated[Ints, column("objects", used="objects")]  # its rows that count; 0: it is not in the window
    newest: Annotated[Ints, column("objects", used="objects")]  # the position of its newest row
    newest_arrival: Annotated[Ints, column("objects", used="objects", holds=ARRIVAL)]
    meta: Annotated[Record, scalars(PartsMeta)]


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


class EventsMeta(NamedTuple):
    held: int = 0


@block(version=1)
class Events(NamedTuple):
    """``CHANGED``: an object's score, and the cell that did it; ``ARRIVED`` and ``CLOSED``: the answer is due.

    For the latter ``position`` is where the answer belongs, and ``arrival`` the arrival that brought it about.
    """

    kind: Annotated[Ints, column("events", used="held")]
    slot: Annotated[Ints, column("events", used="held")]
    cell: Annotated[Ints, column("events", used="held")]
    stream: Annotated[Ints, column("events", used="held")]  # of the cell
    value: Annotated[Floats, column("events", used="held")]  # what it says now; NaN: nothing
    score: Annotated[Floats, column("events", used="held")]
    position: Annotated[Ints, column("events", used="held")]
    arrival: Annotated[Ints, column("events", used="held")]
    alive: Annotated[Ints, column("events", used="held")]  # rows of the object that count
    # What a score is worked out from later: of a Python function, what each stream says; else what is told of a group.
    vector: Annotated[Floats, column("events", used="held", wide=True)]
    meta: Annotated[Record, scalars(EventsMeta)]


def no_events(width: int) -> Events:
    """No events yet, and no room for them; see :func:`with_room`."""
    return empty(Events, wide={"vector": width})


def with_room(events: Events, room: int) -> Events:
    """Room for so many events. It is not made on the way (that would take long to compile): see :func:`assemble`."""
    events = grown(events, "events", room)
    events.meta["held"] = 0
    return events


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
    slot, i = parts.owner[cell], events.meta[0].held
    events.kind[i], events.slot[i], events.cell[i] = CHANGED, slot, cell
    events.stream[i], events.value[i] = parts.stream[cell], parts.hi[cell] if parts.valid[cell] > 0 else np.nan
    events.alive[i] = parts.alive[slot]
    events.position[i], events.arrival[i] = parts.newest[slot], parts.newest_arrival[slot]
    events.score[i] = score_of(parts, slot, spec) if parts.alive[slot] > 0 else -np.inf
    if spec.how == FUNCTION:
        for stream in range(spec.width):
            events.vector[stream, i] = spec.low
        c = parts.first[slot]
        while c >= 0:
            if parts.valid[c] > 0:
                events.vector[parts.stream[c], i] = parts.hi[c]
            c = parts.following[c]
    events.meta[0].held = i + 1


@in_place
def _due(events: Events, kind: int, at: int, trigger: int) -> None:
    i = events.meta[0].held
    events.kind[i], events.slot[i], events.cell[i], events.alive[i] = kind, -1, -1, 0
    events.position[i], events.arrival[i], events.score[i] = at, trigger, 0.0
    events.meta[0].held = i + 1


@in_place
def _has_room(parts: Parts, events: Events) -> bool:
    """Whether all rows may expire, and an answer be due, or two."""
    meta = parts.meta[0]
    return bool(events.meta[0].held + meta.rows - meta.head + 4 <= events.kind.size)


@in_place
def _sum_anew(parts: Parts, cell: int) -> None:
    """Adds up a cell from its rows: an addition was not exact."""
    parts.hi[cell], parts.lo[cell], parts.lossy[cell] = 0.0, 0.0, 0
    for i in range(parts.meta[0].head, parts.meta[0].rows):
        if parts.cell[i] == cell:
            parts.hi[cell], parts.lo[cell], exact = add(parts.hi[cell], parts.lo[cell], parts.value[i], 0.0)
            if not exact:  # too far apart for two doubles: to be added up again when one of them has gone
                parts.lossy[cell] = 1


@inner
def _expire(parts: Parts, events: Events, start: int, spec: Spec) -> None:
    """Takes away the rows before ``start``."""
    meta = parts.meta[0]
    while meta.head < meta.rows and parts.position[meta.head] < start:
        i = meta.head
        meta.head += 1
        c = parts.cell[i]
        if not spec.many and parts.last[c] != parts.arrival[i]:
            continue  # superseded by a newer value of the same stream
        slot = parts.owner[c]
        parts.valid[c] -= 1
        parts.alive[slot] -= 1
        meta.counting -= 1
        meta.living -= parts.alive[slot] == 0
        if spec.many and parts.valid[c] > 0:
            parts.hi[c], parts.lo[c], exact = add(parts.hi[c], parts.lo[c], -parts.value[i], 0.0)
            if not exact or parts.lossy[c]:
                _sum_anew(parts, c)
        _changed(parts, events, c, spec)


@in_place
def _cell(parts: Parts, slot: int, stream: int) -> int:
    """The cell of an object and stream, made if need be."""
    if parts.alive[slot] == 0:  # a new life: what was said before does not count
        c = parts.first[slot]
        while c >= 0:
            parts.seen[c] = 0
            c = parts.following[c]
    c = parts.first[slot]
    while c >= 0:
        if parts.stream[c] == stream:
            return int(c)
        c = parts.following[c]
    c = parts.meta[0].cells
    parts.meta[0].cells = c + 1
    parts.owner[c], parts.stream[c], parts.following[c] = slot, stream, parts.first[slot]
    parts.valid[c], parts.seen[c], parts.hi[c], parts.lo[c], parts.lossy[c], parts.last[c] = 0, 0, 0.0, 0.0, 0, -1
    parts.first[slot] = c
    return int(c)


@inner
def _arrive(parts: Parts, events: Events, rows: Arriving, i: int, spec: Spec) -> None:
    """One row takes its place."""
    meta, slot, position, arrival = parts.meta[0], rows.slot[i], rows.position[i], rows.arrival[i]
    c = _cell(parts, slot, rows.stream[i])
    parts.seen[c] += 1
    j = meta.rows
    while j > meta.head and parts.position[j - 1] > position:
        j -= 1
    if not spec.many and parts.valid[c] > 0:
        for other in range(j, meta.rows):
            if parts.arrival[other] == parts.last[c]:
                return  # out of order: a newer value of the stream is there already
    for other in range(meta.rows, j, -1):
        parts.position[other], parts.arrival[other] = parts.position[other - 1], parts.arrival[other - 1]
        parts.value[other], parts.cell[other] = parts.value[other - 1], parts.cell[other - 1]
    parts.position[j], parts.arrival[j], parts.value[j], parts.cell[j] = position, arrival, rows.value[i], c
    meta.rows += 1
    meta.touched = min(meta.touched, j)
    meta.living += parts.alive[slot] == 0
    if parts.alive[slot] == 0 or position >= parts.newest[slot]:
        parts.newest[slot], parts.newest_arrival[slot] = position, arrival
    if spec.many and parts.valid[c] > 0:
        parts.hi[c], parts.lo[c], exact = add(parts.hi[c], parts.lo[c], rows.value[i], 0.0)
        parts.valid[c] += 1
        parts.alive[slot] += 1
        meta.counting += 1
        if not exact:
            parts.lossy[c] = 1
    else:
        parts.hi[c], parts.lo[c], parts.lossy[c], parts.last[c] = rows.value[i], 0.0, 0, arrival
        parts.alive[slot] += 1 - parts.valid[c]
        meta.counting += 1 - parts.valid[c]
        parts.valid[c] = 1
    _changed(parts, events, c, spec)


@inner
def _close(parts: Parts, events: Events, frontier: int, trigger: int, spec: Spec) -> bool:
    """Closes the windows that end by ``frontier`` and hold something; whether there was room for them all."""
    meta = parts.meta[0]
    while meta.next_end <= frontier:
        if not _has_room(parts, events):
            return False
        _expire(parts, events, meta.next_end - spec.extent, spec)
        if meta.head == meta.rows:  # nothing is left: on to the first window after the frontier
            meta.next_end = frontier // spec.slide * spec.slide + spec.slide
            return True
        _due(events, CLOSED, meta.next_end, trigger)
        meta.next_end += spec.slide
    return True


@outer
def assemble(parts: Parts, rows: Arriving, begin: int, frontier: int, spec: Spec, events: Events) -> int:
    """Takes the rows in, from ``begin`` on; hopping windows that end by ``frontier`` are closed.

    Stops where there is no room for more events and returns the row to go on with; when all is done, one more than
    there are rows.
    """
    meta = parts.meta[0]
    for i in range(begin, rows.value.size):
        position = rows.position[i]
        if spec.slide == 0:
            if not _has_room(parts, events):
                return i
            meta.now = max(meta.now, position)
            _expire(parts, events, meta.now - spec.extent + 1, spec)
            if position > meta.now - spec.extent:
                _arrive(parts, events, rows, i, spec)
            _due(events, ARRIVED, position, rows.arrival[i])
            continue
        if not _close(parts, events, position, rows.arrival[i], spec) or not _has_room(parts, events):
            return i
        _expire(parts, events, meta.next_end - spec.extent, spec)
        meta.now = max(meta.now, position)
        _arrive(parts, events, rows, i, spec)
        if not spec.timed and meta.next_end == position + 1:  # the row completes a window
            _due(events, CLOSED, meta.next_end, rows.arrival[i])
            meta.next_end += spec.slide
    if spec.timed and spec.slide > 0:
        if not _close(parts, events, frontier, 0, spec) or not _has_room(parts, events):
            return rows.value.size
        _expire(parts, events, meta.next_end - spec.extent, spec)  # what no later window needs
    return rows.value.size + 1


@outer
def all_scores(parts: Parts, spec: Spec) -> Floats:
    """The score of every object; -inf for those that are not in the window."""
    score = np.full(parts.meta[0].objects, -np.inf)
    for slot in range(score.size):
        if parts.alive[slot] > 0:
            score[slot] = score_of(parts, slot, spec)
    return score

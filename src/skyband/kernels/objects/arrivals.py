"""Batches through bands, for windows that move with every arrival (topkw, sections 4 and 5)."""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.common.order import newer
from skyband.kernels.objects import bands
from skyband.kernels.objects.bands import ALWAYS, CAP, LARGE, Band, Heap
from skyband.kernels.objects.log import Log, new_log, roomy
from skyband.storage.blocks import ARRIVAL, Bytes, Floats, Ints, Record, block, column, scalars

BEFORE = -ALWAYS // 4  # before any position, with room to take an extent off


class Batch(NamedTuple):
    """Rows of one partition; an empty ``position`` or ``arrival`` stands for t0 + i or n0 + i."""

    score: Floats
    position: Ints
    arrival: Ints
    first_position: int
    first_arrival: int


class Clock(NamedTuple):
    """Where a partition stands."""

    now: int = BEFORE  # the newest object
    newest: int = -1  # and its arrival number
    extent: int = 0  # how far the window reaches back
    brought: int = 0  # rows of the last batch


@block(version=1)
class Banded(NamedTuple):
    """What an algorithm holds of a partition that has one band and nothing else."""

    band: Band
    clock: Annotated[Record, scalars(Clock)]


class BufferMeta(NamedTuple):
    """The figures of a buffer."""

    front: int = 0  # where the oldest object lies
    held: int = 0
    room: int = 0  # the most that it may hold
    shared: int = 0  # objects that are in the query's band too
    gone_position: int = BEFORE  # the last object that left
    gone_arrival: int = -1


@block(version=1)
class Buffer(NamedTuple):
    """The most recent objects, in the order of their arrival: a ring."""

    score: Annotated[Floats, column("objects", used="held", first="front")]
    position: Annotated[Ints, column("objects", used="held", first="front")]
    arrival: Annotated[Ints, column("objects", used="held", first="front", holds=ARRIVAL)]
    sent: Annotated[Bytes, column("objects", used="held", first="front")]  # whether it is in the query's band already
    meta: Annotated[Record, scalars(BufferMeta)]


@block(version=1)
class Sieved(NamedTuple):
    """What an algorithm with a filter holds of a partition."""

    band: Band  # of the query
    sieve: Band  # of objects in the buffer, any of them
    buffer: Buffer
    clock: Annotated[Record, scalars(Clock)]


@in_place
def position_of(rows: Batch, i: int) -> int:
    """The position of row i."""
    return rows.position[i] if rows.position.size else rows.first_position + i


@in_place
def arrival_of(rows: Batch, i: int) -> int:
    """The arrival number of row i."""
    return rows.arrival[i] if rows.arrival.size else rows.first_arrival + i


@outer
def process(state: Banded, rows: Batch) -> tuple[Banded, Log]:
    """Every row into the band of the only partition."""
    clock = state.clock[0]
    log, heap = new_log(64), bands.new_heap(state.band.meta[0].k)
    clock.brought = rows.score.size
    done = through(state, rows, 0, log, heap)
    while done < rows.score.size:
        log = roomy(log, bands.changes_at_most(state.band, 1))
        state = Banded(bands.widened(state.band, 1), state.clock)
        done = through(state, rows, done, log, heap)
    return Banded(bands.rested(state.band, clock.now - clock.extent, ALWAYS), state.clock), log


@in_place
def through(state: Banded, rows: Batch, first: int, log: Log, heap: Heap) -> int:
    """Every row from ``first`` on into the band, as far as its threshold lets it (Algorithms 1–3 and 5).

    Returns the one for which there is no room, or the number of rows.
    """
    band, meta, clock = state.band, state.band.meta[0], state.clock[0]
    now, newest, extent = clock.now, clock.newest, clock.extent
    i = first
    while i < rows.score.size:
        score, position, arrival = rows.score[i], position_of(rows, i), arrival_of(rows, i)
        in_order = newer(position, arrival, now, newest)
        dead = (position if in_order else now) - extent
        lapsed = bands.expired(band, dead, ALWAYS)
        if lapsed or not (score < meta.threshold or position <= dead):
            if bands.cramped(band, 1) or bands.short(log, band, 1):
                break
            if lapsed and meta.kind == CAP:
                bands.loosen(band, dead, ALWAYS)
            admitted = not score < meta.threshold
            enters = admitted and bands.insert(band, score, position, arrival)
            if enters or lapsed:
                bands.settle(band, dead, ALWAYS, log, arrival, position)
            if admitted:
                bands.tidy(band, dead, ALWAYS, heap)
        if in_order:
            now, newest = position, arrival
        i += 1
    clock.now, clock.newest = now, newest
    return i


@outer
def process_filtered(state: Sieved, rows: Batch) -> tuple[Sieved, Log]:
    """Every row into the buffer, and from there into the band only if fewer than k objects of the sieve are better."""
    clock = state.clock[0]
    log, heap = new_log(64), bands.new_heap(state.band.meta[0].k)
    clock.brought = rows.score.size
    state = Sieved(state.band, state.sieve, _enlarged(state.buffer, rows.score.size), state.clock)
    done = _process_filtered(state, rows, 0, log, heap)
    while done < rows.score.size:
        inserts = _inserts(state.buffer, position_of(rows, done), clock.extent)
        log = roomy(log, bands.changes_at_most(state.band, inserts))
        state = Sieved(bands.widened(state.band, inserts), bands.widened(state.sieve, 1), state.buffer, state.clock)
        done = _process_filtered(state, rows, done, log, heap)
    gone = state.buffer.meta[0]
    band = bands.rested(state.band, clock.now - clock.extent, ALWAYS)
    sieve = bands.rested(state.sieve, gone.gone_position, gone.gone_arrival)
    buffer = _rested(state.buffer)
    gone.shared = _shared(band, buffer)
    return Sieved(band, sieve, buffer, state.clock), log


@in_place
def _process_filtered(state: Sieved, rows: Batch, first: int, log: Log, heap: Heap) -> int:
    """The rows from ``first`` up to the one for which there is no room, which it returns."""
    band, sieve, buffer, _ = state
    sieving, gone, clock = sieve.meta[0], buffer.meta[0], state.clock[0]
    now, newest, extent = clock.now, clock.newest, clock.extent
    ties, bar = band.meta[0].ties == 1, _bar(sieve)
    i = first
    while i < rows.score.size:
        score, position, arrival = rows.score[i], position_of(rows, i), arrival_of(rows, i)
        inserts = _inserts(buffer, position, extent)
        if bands.cramped(band, inserts) or bands.cramped(sieve, 1) or bands.short(log, band, inserts):
            break
        i += 1
        in_order = newer(position, arrival, now, newest)
        if in_order:
            now, newest = position, arrival
        elif position <= now - extent:
            continue
        changes, grows, passes = bands.expired(band, now - extent, ALWAYS), False, True
        if in_order:  # a row that comes late bypasses the buffer
            while _overdue(buffer, now, extent):
                j = _pop(buffer)
                if bands.expired(sieve, buffer.position[j], buffer.arrival[j]):
                    if sieving.kind == CAP:
                        bands.loosen(sieve, buffer.position[j], buffer.arrival[j])
                    bands.settle(sieve, buffer.position[j], buffer.arrival[j], None, 0, 0)
                    bar = _bar(sieve)
                # What is in the sieve is newer than what leaves the buffer, so it wins ties.
                beaten = buffer.score[j] < bar or (buffer.score[j] == bar and not ties)
                if not (beaten or buffer.sent[j]) and buffer.position[j] > now - extent:
                    changes |= bands.insert(band, buffer.score[j], buffer.position[j], buffer.arrival[j])
                    grows = True
            passes = not score < bar
            _push(buffer, score, position, arrival, passes)
            if not score < sieving.threshold:
                if bands.insert(sieve, score, position, arrival):
                    bands.settle(sieve, gone.gone_position, gone.gone_arrival, None, 0, 0)
                    bar = _bar(sieve)
                bands.tidy(sieve, gone.gone_position, gone.gone_arrival, heap)
        if passes:
            changes |= bands.insert(band, score, position, arrival)
            grows = True
        if changes:
            bands.settle(band, now - extent, ALWAYS, log, arrival, position)
        if grows:
            bands.tidy(band, now - extent, ALWAYS, heap)
    clock.now, clock.newest = now, newest
    return i


@in_place
def _bar(sieve: Band) -> float:
    """The k-th best score of the sieve; NaN, which nothing falls below, if it has fewer."""
    meta = sieve.meta[0]
    return sieve.score[meta.start + meta.k - 1] if meta.top == meta.k else np.nan


@in_place
def _inserts(buffer: Buffer, position: int, extent: int) -> int:
    """The most objects that a row at this position can bring into the band: itself, and what leaves for it."""
    meta = buffer.meta[0]
    lapsed = meta.held > 0 and 2 * (position - buffer.position[meta.front]) >= extent
    return int(meta.held + 1 if lapsed else 2)


@in_place
def _overdue(buffer: Buffer, now: int, extent: int) -> bool:
    """Whether the oldest object must leave before one of position ``now`` enters.

    It may stay for half an extent. Then what was in the buffer when an object came is in the window for as long as
    that object is in the buffer, which is what Theorem 5.1 needs; in count windows it comes to b <= (n + 1) / 2.
    """
    meta = buffer.meta[0]
    full = meta.held == meta.room
    return bool(full or (meta.held > 0 and 2 * (now - buffer.position[meta.front]) >= extent))


@in_place
def _pop(buffer: Buffer) -> int:
    """Takes the oldest object out; where it lies until the next push."""
    meta = buffer.meta[0]
    front = meta.front
    meta.front = front + 1 if front + 1 < buffer.score.size else 0
    meta.held -= 1
    meta.gone_position, meta.gone_arrival = buffer.position[front], buffer.arrival[front]
    return int(front)


@in_place
def _push(buffer: Buffer, score: float, position: int, arrival: int, sent: bool) -> None:
    """Puts the newest object in; there must be room."""
    meta = buffer.meta[0]
    slot = _slot(buffer, meta.held)
    buffer.score[slot], buffer.position[slot], buffer.arrival[slot], buffer.sent[slot] = score, position, arrival, sent
    meta.held += 1


@inner
def _enlarged(buffer: Buffer, rows: int) -> Buffer:
    """The buffer with room for so many more rows, though for no more than it may hold in all."""
    meta = buffer.meta[0]
    wanted = min(meta.room, meta.held + rows)
    if wanted <= buffer.score.size:
        return buffer
    return _unrolled(buffer, min(meta.room, max(wanted, 2 * buffer.score.size)))


@inner
def _rested(buffer: Buffer) -> Buffer:
    """The buffer as it waits for the next batch: in arrays of just its size, unless it is large."""
    meta = buffer.meta[0]
    if meta.held == buffer.score.size or (meta.held > LARGE and buffer.score.size < 4 * meta.held):
        return buffer
    return _unrolled(buffer, meta.held)


@inner
def _unrolled(buffer: Buffer, capacity: int) -> Buffer:
    """The buffer in other arrays, from 0 on."""
    meta = buffer.meta[0]
    other = Buffer(np.empty(capacity), np.empty(capacity, np.int64), np.empty(capacity, np.int64),
                   np.empty(capacity, np.int8), buffer.meta)  # fmt: skip
    for i in range(meta.held):
        j = _slot(buffer, i)
        other.score[i], other.position[i], other.arrival[i] = buffer.score[j], buffer.position[j], buffer.arrival[j]
        other.sent[i] = buffer.sent[j]
    meta.front = 0
    return other


@in_place
def _shared(band: Band, buffer: Buffer) -> int:
    """How many objects of the band are in the buffer."""
    of_band, of_buffer = band.meta[0], buffer.meta[0]
    count = 0
    for i in range(of_band.start, of_band.start + of_band.held):
        low, high = 0, of_buffer.held
        while low < high:
            middle = (low + high) // 2
            if buffer.arrival[_slot(buffer, middle)] < band.arrival[i]:
                low = middle + 1
            else:
                high = middle
        count += low < of_buffer.held and buffer.arrival[_slot(buffer, low)] == band.arrival[i]
    return count


@in_place
def _slot(buffer: Buffer, i: int) -> int:
    """Where the i-th object of the buffer lies."""
    slot = buffer.meta[0].front + i
    return int(slot if slot < buffer.score.size else slot - buffer.score.size)

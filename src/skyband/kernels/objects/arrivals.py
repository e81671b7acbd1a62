"""Batches through bands, for windows that move with every arrival (topkw, sections 4 and 5)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.common.order import newer
from skyband.kernels.objects import bands
from skyband.kernels.objects.bands import ALWAYS, CAP, KIND, THRESHOLD, Band, Floats, Heap, Ints, K, Log

NOW, NEWEST, EXTENT = range(3)  # of a clock: the newest object's time and number, and how far the window reaches back
FRONT, COUNT, ROOM, GONE_TIME, GONE_NUMBER = range(5)  # of ``Buffer.meta``; GONE is the last object that left


class Batch(NamedTuple):
    """Rows of one partition; an empty ``position`` or ``arrival`` stands for t0 + i or n0 + i."""

    score: Floats
    position: Ints
    arrival: Ints
    first_position: int
    first_arrival: int


class Buffer(NamedTuple):
    """The most recent objects, a ring of at most ``ROOM``; ``sent`` tells which are in the query's band already."""

    score: Floats
    position: Ints
    arrival: Ints
    sent: NDArray[np.int8]
    meta: Ints


class Held(NamedTuple):
    """What an algorithm with a filter holds of a partition."""

    band: Band  # of the query
    sieve: Band  # of objects in the buffer, any of them
    buffer: Buffer


def new_clock(extent: int) -> Ints:
    """The clock of a partition of which nothing has been seen."""
    return np.array([-ALWAYS // 4, -1, extent])


def empty_buffer(room: int) -> Buffer:
    """A buffer for at most ``room`` objects."""
    meta = np.array([0, 0, room, -ALWAYS // 4, -1])
    return Buffer(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int8), meta)


@in_place
def time_of(rows: Batch, i: int) -> int:
    """The time of row i."""
    return rows.position[i] if rows.position.size else rows.first_position + i


@in_place
def number_of(rows: Batch, i: int) -> int:
    """The arrival number of row i."""
    return rows.arrival[i] if rows.arrival.size else rows.first_arrival + i


@outer
def process(band: Band, clock: Ints, rows: Batch) -> tuple[Band, Log]:
    """Every row into the band, as far as its threshold lets it (Algorithms 1–3 and 5)."""
    log, heap = bands.new_log(), bands.new_heap(band.meta[K])
    done = _process(band, clock, rows, 0, log, heap)
    while done < rows.score.size:
        band, log = bands.widened(band, 1), bands.roomy(log, band, 1)
        done = _process(band, clock, rows, done, log, heap)
    return bands.packed(band, clock[NOW] - clock[EXTENT], ALWAYS), log


@in_place
def _process(band: Band, clock: Ints, rows: Batch, first: int, log: Log, heap: Heap) -> int:
    """The rows from ``first`` up to the one for which there is no room, which it returns."""
    now, newest, extent = clock[NOW], clock[NEWEST], clock[EXTENT]
    i = first
    while i < rows.score.size:
        score, position, arrival = rows.score[i], time_of(rows, i), number_of(rows, i)
        in_order = newer(position, arrival, now, newest)
        dead = (position if in_order else now) - extent
        lapsed = bands.expired(band, dead, ALWAYS)
        if lapsed or not (score < band.real[THRESHOLD] or position <= dead):
            if bands.cramped(band, 1) or bands.short(log, band, 1):
                break
            if lapsed and band.meta[KIND] == CAP:
                bands.loosen(band, dead, ALWAYS)
            admitted = not score < band.real[THRESHOLD]
            enters = admitted and bands.insert(band, score, position, arrival)
            if enters or lapsed:
                bands.settle(band, dead, ALWAYS, log, arrival, position)
            if admitted:
                bands.tidy(band, dead, ALWAYS, heap)
        if in_order:
            now, newest = position, arrival
        i += 1
    clock[NOW], clock[NEWEST] = now, newest
    return i


@outer
def process_filtered(held: Held, clock: Ints, rows: Batch) -> tuple[Held, Log]:
    """Every row into the buffer, and from there into the band only if fewer than k objects of the sieve are better."""
    log, heap = bands.new_log(), bands.new_heap(held.band.meta[K])
    held = Held(held.band, held.sieve, _enlarged(held.buffer, rows.score.size))
    done = _process_filtered(held, clock, rows, 0, log, heap)
    while done < rows.score.size:
        inserts = _inserts(held.buffer, time_of(rows, done), clock[EXTENT])
        held = Held(bands.widened(held.band, inserts), bands.widened(held.sieve, 1), held.buffer)
        log = bands.roomy(log, held.band, inserts)
        done = _process_filtered(held, clock, rows, done, log, heap)
    gone = held.buffer.meta
    band = bands.packed(held.band, clock[NOW] - clock[EXTENT], ALWAYS)
    return Held(band, bands.packed(held.sieve, gone[GONE_TIME], gone[GONE_NUMBER]), held.buffer), log


@in_place
def _process_filtered(held: Held, clock: Ints, rows: Batch, first: int, log: Log, heap: Heap) -> int:
    """The rows from ``first`` up to the one for which there is no room, which it returns."""
    band, sieve, buffer = held
    now, newest, extent = clock[NOW], clock[NEWEST], clock[EXTENT]
    ties, bar = band.meta[bands.TIES] == 1, _bar(sieve)
    i = first
    while i < rows.score.size:
        score, position, arrival = rows.score[i], time_of(rows, i), number_of(rows, i)
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
                    if sieve.meta[KIND] == CAP:
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
            if not score < sieve.real[THRESHOLD]:
                gone_time, gone_number = buffer.meta[GONE_TIME], buffer.meta[GONE_NUMBER]
                if bands.insert(sieve, score, position, arrival):
                    bands.settle(sieve, gone_time, gone_number, None, 0, 0)
                    bar = _bar(sieve)
                bands.tidy(sieve, gone_time, gone_number, heap)
        if passes:
            changes |= bands.insert(band, score, position, arrival)
            grows = True
        if changes:
            bands.settle(band, now - extent, ALWAYS, log, arrival, position)
        if grows:
            bands.tidy(band, now - extent, ALWAYS, heap)
    clock[NOW], clock[NEWEST] = now, newest
    return i


@in_place
def _bar(sieve: Band) -> float:
    """The k-th best score of the sieve; NaN, which nothing falls below, if it has fewer."""
    meta = sieve.meta
    return sieve.score[meta[bands.START] + meta[K] - 1] if meta[bands.TOP] == meta[K] else np.nan


@in_place
def _inserts(buffer: Buffer, position: int, extent: int) -> int:
    """The most objects that a row of this time can bring into the band: what leaves the buffer for it, and itself."""
    count = buffer.meta[COUNT]
    return int(count + 1 if count > 0 and 2 * (position - buffer.position[buffer.meta[FRONT]]) >= extent else 2)


@in_place
def _overdue(buffer: Buffer, now: int, extent: int) -> bool:
    """Whether the oldest object must leave before one of time ``now`` enters.

    It may stay for half an extent. Then what was in the buffer when an object came is in the window for as long as
    that object is in the buffer, which is what Theorem 5.1 needs; in count windows it comes to b <= (n + 1) / 2.
    """
    meta = buffer.meta
    full = meta[COUNT] == meta[ROOM]
    return bool(full or (meta[COUNT] > 0 and 2 * (now - buffer.position[meta[FRONT]]) >= extent))


@in_place
def _pop(buffer: Buffer) -> int:
    """Takes the oldest object out; where it lies until the next push."""
    meta = buffer.meta
    front = meta[FRONT]
    meta[FRONT] = front + 1 if front + 1 < buffer.score.size else 0
    meta[COUNT] -= 1
    meta[GONE_TIME], meta[GONE_NUMBER] = buffer.position[front], buffer.arrival[front]
    return int(front)


@in_place
def _push(buffer: Buffer, score: float, position: int, arrival: int, sent: bool) -> None:
    """Puts the newest object in; there must be room."""
    meta = buffer.meta
    slot = meta[FRONT] + meta[COUNT]
    slot = slot if slot < buffer.score.size else slot - buffer.score.size
    buffer.score[slot], buffer.position[slot], buffer.arrival[slot], buffer.sent[slot] = score, position, arrival, sent
    meta[COUNT] += 1


@inner
def _enlarged(buffer: Buffer, rows: int) -> Buffer:
    """The buffer with room for so many more rows, though for no more than ``ROOM`` in all."""
    meta, size = buffer.meta, buffer.score.size
    wanted = min(meta[ROOM], meta[COUNT] + rows)
    if wanted <= size:
        return buffer
    capacity = min(meta[ROOM], max(wanted, 2 * size))
    large = Buffer(np.zeros(capacity), np.zeros(capacity, np.int64), np.zeros(capacity, np.int64),
                   np.zeros(capacity, np.int8), meta)  # fmt: skip
    for i in range(meta[COUNT]):
        j = (meta[FRONT] + i) % size
        large.score[i], large.position[i], large.arrival[i] = buffer.score[j], buffer.position[j], buffer.arrival[j]
        large.sent[i] = buffer.sent[j]
    meta[FRONT] = 0
    return large

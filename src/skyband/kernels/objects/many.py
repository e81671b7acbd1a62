"""Batches through the bands of many partitions, for windows that move with every arrival: one call for all of them."""

import numpy as np

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.common.output import grow
from skyband.kernels.objects import bands
from skyband.kernels.objects.arrivals import Banded, Batch, through
from skyband.kernels.objects.bands import ALWAYS, Band
from skyband.kernels.objects.log import Log, new_log, roomy
from skyband.storage.blocks import Ints, Record
from skyband.storage.pools import SMALL, Places

ROOM = 1024  # insertions that there is room for beside a band at work, unless fewer rows come


@outer
def process_all(pool: Banded, places: Places, rows: Batch, partition: Ints, since: int) -> tuple[Banded, Log, Ints]:
    """Every row into the band of its partition; the rows of each stand together.

    ``partition`` is that of each row; it is empty where all are of the first. Returns the log, in which the partition
    stands for the query, and the arrival numbers, from ``since`` on, of the objects that are held then.

    A band is worked on in other arrays, the same for all, where it has room. In its place it lies close to the others.
    """
    band, clock = pool.band, pool.clock
    size, fresh, count = rows.score.size, np.empty(rows.score.size, np.int64), 0
    log, heap, lo = new_log(size + 64), bands.new_heap(band.meta[0].k), 0
    work = Band(np.empty(64), np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int8), band.meta[:1])
    while lo < size:
        p, hi = 0, size
        if partition.size:
            p, hi = partition[lo], lo + 1
            while hi < size and partition[hi] == p:
                hi += 1
        batch = Batch(rows.score[lo:hi], rows.position[lo:hi], rows.arrival[lo:hi], rows.first_position + lo,
                      rows.first_arrival + lo)  # fmt: skip
        entry, before = log.used[0].entries, band.meta[p].held
        work = _roomy(work, band.meta[p : p + 1], hi - lo)
        _take_out(band, places.start[p], work)
        state = Banded(work, clock[p : p + 1])
        done = through(state, batch, 0, log, heap)
        while done < hi - lo:
            log = roomy(log, bands.changes_at_most(state.band, 1))
            state = Banded(bands.widened(state.band, 1), state.clock)
            done = through(state, batch, done, log, heap)
        clock[p].brought = hi - lo
        log.query[entry : log.used[0].entries] = p
        work = state.band
        bands.bury(work, clock[p].now - clock[p].extent, ALWAYS)
        if band.meta[p].held > places.room[p]:
            band = _moved_on(band, places, p)
        count = _put_back(band, places.start[p], work, since, fresh, count)
        places.meta[0].held += band.meta[p].held - before
        lo = hi
    if places.meta[0].held + places.start.size <= SMALL:
        band = _close_up(band, places)
    return Banded(band, clock), log, fresh[:count]


@inner
def _roomy(work: Band, meta: Record, inserts: int) -> Band:
    """The arrays at work, with room for a band and so many insertions on both sides of it; where it is to begin."""
    held = meta[0].held
    start = min(inserts, held + ROOM) + 1
    meta[0].start, size = start, held + 2 * start
    if size <= work.score.size:
        return Band(work.score, work.position, work.arrival, work.shown, meta)
    return Band(np.empty(2 * size), np.empty(2 * size, np.int64), np.empty(2 * size, np.int64),
                np.empty(2 * size, np.int8), meta)  # fmt: skip


@in_place
def _take_out(band: Band, place: int, work: Band) -> None:
    """A band from its place into the arrays at work."""
    start, shift = work.meta[0].start, place - work.meta[0].start
    for i in range(start, start + work.meta[0].held):
        work.score[i], work.position[i] = band.score[i + shift], band.position[i + shift]
        work.arrival[i], work.shown[i] = band.arrival[i + shift], band.shown[i + shift]


@inner
def _moved_on(band: Band, places: Places, p: int) -> Band:
    """All bands, with a larger place for one of them, behind the others."""
    held, end = band.meta[p].held, places.meta[0].end
    room = held + held // 2 + 2
    if end + room > band.score.size:
        band = Band(grow(band.score, end + room), grow(band.position, end + room), grow(band.arrival, end + room),
                    grow(band.shown, end + room), band.meta)  # fmt: skip
    places.start[p], places.room[p], places.meta[0].end = end, room, end + room
    return band


@inner
def _close_up(band: Band, places: Places) -> Band:
    """All bands in arrays of just their size, one after another."""
    size, to = places.meta[0].held, 0
    close = Band(np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int8), band.meta)
    for p in range(places.start.size):
        held, start = band.meta[p].held, places.start[p]
        close.score[to : to + held] = band.score[start : start + held]
        close.position[to : to + held] = band.position[start : start + held]
        close.arrival[to : to + held] = band.arrival[start : start + held]
        close.shown[to : to + held] = band.shown[start : start + held]
        places.start[p], places.room[p] = to, held
        to += held
    places.meta[0].end = size
    return close


@in_place
def _put_back(band: Band, place: int, work: Band, since: int, fresh: Ints, count: int) -> int:
    """A band from the arrays at work into its place, and which arrivals from ``since`` on are in it."""
    meta = work.meta[0]
    start, shift = meta.start, place - meta.start
    for i in range(start, start + meta.held):
        band.score[i + shift], band.position[i + shift] = work.score[i], work.position[i]
        band.arrival[i + shift], band.shown[i + shift] = work.arrival[i], work.shown[i]
        if work.arrival[i] >= since:
            fresh[count] = work.arrival[i]
            count += 1
    meta.start = 0
    return count

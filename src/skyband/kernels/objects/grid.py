"""All objects of a window in a grid over the score axis, and the bands of TMA and SMA that are filled from it.

The index of Mouratidis et al. (SIGMOD 2006) is a regular grid over the attributes, whose cells can be visited best
first because the scoring function is monotone. Here scoring functions are arbitrary, so the grid is on the score.
"""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.common.order import newer
from skyband.kernels.common.output import Output, emit
from skyband.kernels.objects import bands
from skyband.kernels.objects.arrivals import Batch, Clock, arrival_of, position_of
from skyband.kernels.objects.bands import ALWAYS, Band, Heap
from skyband.kernels.objects.log import Log, new_log, roomy
from skyband.storage.blocks import ARRIVAL, Floats, Ints, Record, block, column, empty, resized, scalars


class GridMeta(NamedTuple):
    """The figures of a grid."""

    front: int = 0  # where the oldest arrival lies
    held: int = 0
    ordered: int = 0  # arrivals since the last one that came out of order
    age: int = 0  # arrivals since the cells were laid out
    low: float = 0.0  # where cell 0 begins
    scale: float = 0.0  # cells to a unit of score


@block(version=1)
class Grid(NamedTuple):
    """Objects in the order of arrival, a ring, and for each cell a chain through those whose scores fall into it."""

    score: Annotated[Floats, column("objects")]
    position: Annotated[Ints, column("objects")]
    arrival: Annotated[Ints, column("objects", holds=ARRIVAL)]  # -1: no object
    after: Annotated[Ints, column("objects")]  # where the next object of the cell lies, or -1
    head: Annotated[Ints, column("cells", fill=-1)]  # where the first object of each cell lies, or -1
    tail: Annotated[Ints, column("cells", fill=-1)]
    meta: Annotated[Record, scalars(GridMeta)]


class Hops(NamedTuple):
    """Where the windows stand, if they hop."""

    slide: int = 0
    end: int = 0  # of the window that closes next
    frontier: int = 0
    floor: int = 0  # no window to come reaches back to it


@block(version=1)
class Watch(NamedTuple):
    """What TMA and SMA hold of a partition."""

    band: Band
    grid: Grid
    clock: Annotated[Record, scalars(Clock)]
    hops: Annotated[Record, scalars(Hops)]


def empty_grid(cells: int) -> Grid:
    """A grid without objects."""
    return resized(empty(Grid), "cells", cells)


@in_place
def cell_of(grid: Grid, score: float) -> int:
    """The cell of a score. Scores beyond the ends, infinite ones too, belong to the first and the last cell."""
    meta = grid.meta[0]
    place = (score - meta.low) * meta.scale
    if not place > 0:
        return 0
    return int(min(place, grid.head.size - 1))


@outer
def cells_of(grid: Grid, scores: Floats) -> Ints:
    """The cells of several scores."""
    return np.array([cell_of(grid, score) for score in scores], np.int64)


@outer
def watch(state: Watch, rows: Batch) -> tuple[Watch, Log]:
    """Every row into the grid and, if its score reaches the threshold, into the band; logs every change."""
    clock = state.clock[0]
    log, heap = new_log(64), bands.new_heap(state.band.meta[0].k)
    clock.brought = rows.score.size
    done = _watch(state, rows, 0, log, heap)
    while done < rows.score.size:
        band, grid = state.band, state.grid
        dead = max(clock.now, position_of(rows, done)) - clock.extent
        if _depleted(band, dead):
            band = _recomputed(band, grid, dead)
        state = Watch(bands.widened(band, 1), _enlarged(grid), state.clock, state.hops)
        log = roomy(log, bands.changes_at_most(band, 1))
        done = _watch(state, rows, done, log, heap)
    band = bands.rested(state.band, clock.now - clock.extent, ALWAYS)
    return Watch(band, state.grid, state.clock, state.hops), log


@in_place
def _watch(state: Watch, rows: Batch, first: int, log: Log, heap: Heap) -> int:
    """The rows from ``first`` up to one before which the band must be recomputed or something has no room."""
    band, grid, clock, meta = state.band, state.grid, state.clock[0], state.band.meta[0]
    extent = clock.extent
    i = first
    while i < rows.score.size:
        score, position, arrival = rows.score[i], position_of(rows, i), arrival_of(rows, i)
        dead = max(clock.now, position) - extent
        lapsed = bands.expired(band, dead, ALWAYS)
        if bands.cramped(band, 1) or bands.short(log, band, 1) or _full(grid) or (lapsed and _depleted(band, dead)):
            break
        i += 1
        if newer(position, arrival, clock.now, clock.newest):
            clock.now, clock.newest = position, arrival
        elif position <= dead:
            continue
        else:
            grid.meta[0].ordered = -1
        _shed(grid, dead)
        _add(grid, score, position, arrival)
        admitted = not score < meta.threshold
        enters = admitted and bands.insert(band, score, position, arrival)
        if enters or lapsed:
            bands.settle(band, dead, ALWAYS, log, arrival, position)
        if admitted:
            _hold(band, dead, heap)
    return i


@outer
def hop(state: Watch, rows: Batch, out: Output) -> tuple[Watch, Output]:
    """Rows in the order of their positions into grid and band; closes the windows that end up to the frontier."""
    clock, hops = state.clock[0], state.hops[0]
    heap, done = bands.new_heap(state.band.meta[0].k), 0
    clock.brought = rows.score.size
    while True:
        done = _fill(state, rows, done, heap)
        band, grid = state.band, state.grid
        if done < rows.score.size and position_of(rows, done) < hops.end:
            state = Watch(bands.widened(band, 1), _enlarged(grid), state.clock, state.hops)
            continue
        if hops.end > min(hops.frontier, clock.now + clock.extent):  # no window is due that holds an object
            if done == rows.score.size:
                break
            hops.end = (position_of(rows, done) // hops.slide + 1) * hops.slide
            continue
        dead = hops.end - clock.extent - 1
        if _depleted(band, dead):
            band = _recomputed(band, grid, dead)
            state = Watch(band, grid, state.clock, state.hops)
        _shed(grid, dead)
        bands.settle(band, dead, ALWAYS, None, 0, 0)
        start, top = band.meta[0].start, band.meta[0].top
        # A count window is closed by the first object numbered end - 1 or higher.
        closed_by_last = clock.now >= hops.end - 1 or done == rows.score.size
        trigger = clock.newest if closed_by_last else arrival_of(rows, done)
        out = emit(out, 0, hops.end, trigger, band.arrival[start : start + top], band.score[start : start + top])
        hops.end += hops.slide
    _shed(state.grid, hops.floor)
    bands.settle(state.band, hops.floor, ALWAYS, None, 0, 0)
    return Watch(bands.rested(state.band, hops.floor, ALWAYS), state.grid, state.clock, state.hops), out


@in_place
def _fill(state: Watch, rows: Batch, first: int, heap: Heap) -> int:
    """The rows from ``first`` on that come before the end of the window, up to one for which there is no room."""
    band, grid, clock, hops = state.band, state.grid, state.clock[0], state.hops[0]
    dead = hops.end - hops.slide - clock.extent - 1
    i = first
    while i < rows.score.size and position_of(rows, i) < hops.end and not (bands.cramped(band, 1) or _full(grid)):
        score, position, arrival = rows.score[i], position_of(rows, i), arrival_of(rows, i)
        clock.now, clock.newest = position, arrival
        _add(grid, score, position, arrival)
        if not score < band.meta[0].threshold:
            if bands.insert(band, score, position, arrival):
                bands.settle(band, dead, ALWAYS, None, 0, 0)
            _hold(band, dead, heap)
        i += 1
    return i


@in_place
def _hold(band: Band, dead: int, heap: Heap) -> None:
    """Tidies the band after an insertion.

    When it first has k objects, the k-th becomes the threshold. It becomes that again when there are three candidates
    to one of the top k: the threshold is then too low, most likely one from the days when the window was young.
    """
    bands.tidy(band, dead, ALWAYS, heap)
    meta = band.meta[0]
    crowded = meta.held - meta.top >= 3 * meta.k
    if meta.top >= meta.k and (crowded or np.isnan(meta.threshold)):
        meta.threshold = band.score[meta.start + meta.k - 1]
        meta.held = meta.top


@in_place
def _depleted(band: Band, dead: int) -> bool:
    """Whether fewer than k objects of the band are alive while there may be others below its threshold."""
    meta = band.meta[0]
    return not np.isnan(meta.threshold) and bands.living(band, dead, ALWAYS) < meta.k


@inner
def _recomputed(band: Band, grid: Grid, dead: int) -> Band:
    """The band with the top k found from scratch, visiting the cells best first; the k-th score is its threshold.

    If fewer than k are alive, pruning has dropped none above the threshold, so that only objects that the band does not
    hold have to be added. Its dead objects stay until it is settled.
    """
    meta, k = band.meta[0], band.meta[0].k
    found, size = np.empty(grid.meta[0].held, np.int64), 0
    cell = grid.head.size
    while cell > 0 and size < k:
        cell -= 1
        slot = grid.head[cell]
        while slot >= 0:
            if grid.position[slot] > dead:
                found[size] = slot
                size += 1
            slot = grid.after[slot]
    found = _ranked(grid, found[:size])
    kth = grid.score[found[k - 1]] if size >= k else np.nan
    best = size
    while best > k and not (meta.ties == 1 and grid.score[found[best - 1]] == kth):
        best -= 1
    band = bands.widened(band, best)
    for slot in found[:best]:
        if not bands.holds(band, grid.score[slot], grid.position[slot], grid.arrival[slot]):
            bands.insert(band, grid.score[slot], grid.position[slot], grid.arrival[slot])
    meta.threshold = kth
    return band


@inner
def _ranked(grid: Grid, slots: Ints) -> Ints:
    """Slots in the order of :func:`skyband.order.ranking`."""
    slots = slots[np.argsort(grid.arrival[slots], kind="mergesort")]
    slots = slots[np.argsort(grid.position[slots], kind="mergesort")]
    return slots[np.argsort(grid.score[slots], kind="mergesort")][::-1]


@in_place
def _full(grid: Grid) -> bool:
    return bool(grid.meta[0].held == grid.score.size)


@inner
def _enlarged(grid: Grid) -> Grid:
    """The grid with room for as many objects again, if it is full."""
    if not _full(grid):
        return grid
    meta, size = grid.meta[0], grid.score.size
    capacity = 2 * size + 8
    large = Grid(np.zeros(capacity), np.zeros(capacity, np.int64), np.full(capacity, -1),
                 np.zeros(capacity, np.int64), grid.head, grid.tail, grid.meta)  # fmt: skip
    for i in range(size):
        j = slot_of(grid, i)
        large.score[i], large.position[i], large.arrival[i] = grid.score[j], grid.position[j], grid.arrival[j]
    meta.front = 0
    _lay_out(large)
    return large


@in_place
def slot_of(grid: Grid, i: int) -> int:
    """Where the i-th object lies, in the order of arrival."""
    slot = grid.meta[0].front + i
    return int(slot if slot < grid.score.size else slot - grid.score.size)


@in_place
def _lay_out(grid: Grid) -> None:
    """Divides the range of the finite scores among the cells, and chains the objects anew."""
    meta = grid.meta[0]
    low, high = np.inf, -np.inf
    for i in range(meta.held):
        score = grid.score[slot_of(grid, i)]
        if np.isfinite(score):
            low, high = min(low, score), max(high, score)
    width = high - low
    scalable = 0 < width < np.inf and grid.head.size / width < np.inf
    meta.low, meta.scale = (low, grid.head.size / width) if scalable else (0.0, 0.0)
    meta.age = 0
    grid.head[:] = -1
    for i in range(meta.held):
        _chain(grid, slot_of(grid, i))


@in_place
def _add(grid: Grid, score: float, position: int, arrival: int) -> None:
    """Puts an object in; there must be room. The cells are laid out anew once as many have come as are here."""
    meta = grid.meta[0]
    slot = slot_of(grid, meta.held)
    grid.score[slot], grid.position[slot], grid.arrival[slot] = score, position, arrival
    meta.held += 1
    meta.ordered += 1
    meta.age += 1
    if meta.age > max(meta.held, grid.head.size):
        _lay_out(grid)
    else:
        _chain(grid, slot)


@in_place
def _chain(grid: Grid, slot: int) -> None:
    """Puts the object at the end of its cell's chain."""
    cell = cell_of(grid, grid.score[slot])
    grid.after[slot] = -1
    if grid.head[cell] < 0:
        grid.head[cell] = slot
    else:
        grid.after[grid.tail[cell]] = slot
    grid.tail[cell] = slot


@in_place
def _shed(grid: Grid, dead: int) -> None:
    """Takes dead objects out, oldest arrival first; each is then the first of its cell.

    One that came out of order may lie dead behind others for a while; recomputation passes over it.
    """
    meta = grid.meta[0]
    while meta.held > 0 and grid.position[meta.front] <= dead:
        front = meta.front
        grid.head[cell_of(grid, grid.score[front])] = grid.after[front]
        grid.arrival[front] = -1
        meta.front = front + 1 if front + 1 < grid.score.size else 0
        meta.held -= 1

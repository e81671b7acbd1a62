"""All objects of a window in a grid over the score axis, and the bands of TMA and SMA that are filled from it.

The index of Mouratidis et al. (SIGMOD 2006) is a regular grid over the attributes, whose cells can be visited best
first because the scoring function is monotone. Here scoring functions are arbitrary, so the grid is on the score.
"""

from typing import NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.common.order import newer
from skyband.kernels.common.output import Output, emit, no_output
from skyband.kernels.objects import bands
from skyband.kernels.objects.arrivals import EXTENT, NEWEST, NOW, Batch, number_of, time_of
from skyband.kernels.objects.bands import ALWAYS, THRESHOLD, Band, Floats, Heap, Ints, K, Log

FRONT, COUNT, AGE = range(3)  # of ``Grid.meta``; AGE counts arrivals since the cells were laid out
LOW, SCALE = range(2)  # of ``Grid.axis``: where cell 0 begins, and how many cells there are to a unit of score
SLIDE, END, FRONTIER, FLOOR = range(3, 7)  # of a clock, for hopping windows; none to come reaches back to FLOOR


class Grid(NamedTuple):
    """Objects in the order of arrival, a ring, and for each cell a chain through those whose scores fall into it."""

    score: Floats
    position: Ints
    arrival: Ints
    after: Ints  # of each object: the next one of its cell, or -1
    head: Ints  # of each cell: its first object, or -1
    tail: Ints
    meta: Ints
    axis: Floats


class Watch(NamedTuple):
    """What TMA and SMA hold of a partition."""

    band: Band
    grid: Grid


def empty_grid(cells: int) -> Grid:
    """A grid without objects."""
    none = np.empty(0, np.int64)
    return Grid(np.empty(0), none, none, none, np.full(cells, -1), np.full(cells, -1), np.zeros(3, np.int64),
                np.zeros(2))  # fmt: skip


def grid_order(grid: Grid) -> Ints:
    """Where the objects of the grid lie, in the order of arrival."""
    order: Ints = (grid.meta[FRONT] + np.arange(grid.meta[COUNT])) % max(grid.score.size, 1)
    return order


@in_place
def cell_of(grid: Grid, score: float) -> int:
    """The cell of a score. Scores beyond the ends, infinite ones too, belong to the first and the last cell."""
    place = (score - grid.axis[LOW]) * grid.axis[SCALE]
    if not place > 0:
        return 0
    return int(min(place, grid.head.size - 1))


@outer
def cells_of(grid: Grid, scores: Floats) -> Ints:
    """The cells of several scores."""
    return np.array([cell_of(grid, score) for score in scores], np.int64)


@outer
def watch(held: Watch, clock: Ints, rows: Batch) -> tuple[Watch, Log]:
    """Every row into the grid and, if its score reaches the threshold, into the band; logs every change."""
    log, heap = bands.new_log(), bands.new_heap(held.band.meta[K])
    done = _watch(held, clock, rows, 0, log, heap)
    while done < rows.score.size:
        band, grid = held
        dead = max(clock[NOW], time_of(rows, done)) - clock[EXTENT]
        if _depleted(band, dead):
            band = _recomputed(band, grid, dead)
        held = Watch(bands.widened(band, 1), _enlarged(grid))
        log = bands.roomy(log, band, 1)
        done = _watch(held, clock, rows, done, log, heap)
    return Watch(bands.packed(held.band, clock[NOW] - clock[EXTENT], ALWAYS), held.grid), log


@in_place
def _watch(held: Watch, clock: Ints, rows: Batch, first: int, log: Log, heap: Heap) -> int:
    """The rows from ``first`` up to one before which the band must be recomputed or something has no room."""
    band, grid = held
    extent = clock[EXTENT]
    i = first
    while i < rows.score.size:
        score, position, arrival = rows.score[i], time_of(rows, i), number_of(rows, i)
        dead = max(clock[NOW], position) - extent
        lapsed = bands.expired(band, dead, ALWAYS)
        if bands.cramped(band, 1) or bands.short(log, band, 1) or _full(grid) or (lapsed and _depleted(band, dead)):
            break
        i += 1
        if newer(position, arrival, clock[NOW], clock[NEWEST]):
            clock[NOW], clock[NEWEST] = position, arrival
        elif position <= dead:
            continue
        _shed(grid, dead)
        _add(grid, score, position, arrival)
        admitted = not score < band.real[THRESHOLD]
        enters = admitted and bands.insert(band, score, position, arrival)
        if enters or lapsed:
            bands.settle(band, dead, ALWAYS, log, arrival, position)
        if admitted:
            _hold(band, dead, heap)
    return i


@outer
def hop(held: Watch, clock: Ints, rows: Batch) -> tuple[Watch, Output]:
    """Rows in the order of time into grid and band; closes the windows that end at or before the frontier."""
    extent, slide = clock[EXTENT], clock[SLIDE]
    out, heap, done = no_output(), bands.new_heap(held.band.meta[K]), 0
    while True:
        done = _fill(held, clock, rows, done, heap)
        band, grid = held
        if done < rows.score.size and time_of(rows, done) < clock[END]:
            held = Watch(bands.widened(band, 1), _enlarged(grid))
            continue
        if clock[END] > min(clock[FRONTIER], clock[NOW] + extent):  # no window is due that holds an object
            if done == rows.score.size:
                break
            clock[END] = (time_of(rows, done) // slide + 1) * slide
            continue
        dead = clock[END] - extent - 1
        if _depleted(band, dead):
            band = _recomputed(band, grid, dead)
            held = Watch(band, grid)
        _shed(grid, dead)
        bands.settle(band, dead, ALWAYS, None, 0, 0)
        start, top = band.meta[bands.START], band.meta[bands.TOP]
        # A count window is closed by the first object numbered end - 1 or higher.
        trigger = clock[NEWEST] if clock[NOW] >= clock[END] - 1 or done == rows.score.size else number_of(rows, done)
        out = emit(out, 0, clock[END], trigger, band.arrival[start : start + top], band.score[start : start + top])
        clock[END] += slide
    _shed(held.grid, clock[FLOOR])
    bands.settle(held.band, clock[FLOOR], ALWAYS, None, 0, 0)
    return Watch(bands.packed(held.band, clock[FLOOR], ALWAYS), held.grid), out


@in_place
def _fill(held: Watch, clock: Ints, rows: Batch, first: int, heap: Heap) -> int:
    """The rows from ``first`` on that come before the end of the window, up to one for which there is no room."""
    band, grid = held
    dead = clock[END] - clock[SLIDE] - clock[EXTENT] - 1
    i = first
    while i < rows.score.size and time_of(rows, i) < clock[END] and not (bands.cramped(band, 1) or _full(grid)):
        score, position, arrival = rows.score[i], time_of(rows, i), number_of(rows, i)
        clock[NOW], clock[NEWEST] = position, arrival
        _add(grid, score, position, arrival)
        if not score < band.real[THRESHOLD]:
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
    meta = band.meta
    crowded = meta[bands.SIZE] - meta[bands.TOP] >= 3 * meta[K]
    if meta[bands.TOP] >= meta[K] and (crowded or np.isnan(band.real[THRESHOLD])):
        band.real[THRESHOLD] = band.score[meta[bands.START] + meta[K] - 1]
        meta[bands.SIZE] = meta[bands.TOP]


@in_place
def _depleted(band: Band, dead: int) -> bool:
    """Whether fewer than k objects of the band are alive while there may be others below its threshold."""
    return not np.isnan(band.real[THRESHOLD]) and bands.living(band, dead, ALWAYS) < band.meta[K]


@inner
def _recomputed(band: Band, grid: Grid, dead: int) -> Band:
    """The band with the top k found from scratch, visiting the cells best first; the k-th score is its threshold.

    With fewer than k alive the band has lost nobody above its threshold to pruning, so that it need only be given the
    objects which it does not hold. Its dead objects stay until it is settled.
    """
    k = band.meta[K]
    found, size = np.empty(grid.meta[COUNT], np.int64), 0
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
    while best > k and not (band.meta[bands.TIES] == 1 and grid.score[found[best - 1]] == kth):
        best -= 1
    band = bands.widened(band, best)
    for slot in found[:best]:
        if not bands.holds(band, grid.score[slot], grid.position[slot], grid.arrival[slot]):
            bands.insert(band, grid.score[slot], grid.position[slot], grid.arrival[slot])
    band.real[THRESHOLD] = kth
    return band


@inner
def _ranked(grid: Grid, slots: Ints) -> Ints:
    """Slots in the order of :func:`skyband.order.ranking`."""
    slots = slots[np.argsort(grid.arrival[slots], kind="mergesort")]
    slots = slots[np.argsort(grid.position[slots], kind="mergesort")]
    return slots[np.argsort(grid.score[slots], kind="mergesort")][::-1]


@in_place
def _full(grid: Grid) -> bool:
    return bool(grid.meta[COUNT] == grid.score.size)


@inner
def _enlarged(grid: Grid) -> Grid:
    """The grid with room for as many objects again, if it is full."""
    if not _full(grid):
        return grid
    meta, size = grid.meta, grid.score.size
    capacity = 2 * size + 8
    large = Grid(np.zeros(capacity), np.zeros(capacity, np.int64), np.zeros(capacity, np.int64),
                 np.zeros(capacity, np.int64), grid.head, grid.tail, meta, grid.axis)  # fmt: skip
    for i in range(size):
        j = (meta[FRONT] + i) % size
        large.score[i], large.position[i], large.arrival[i] = grid.score[j], grid.position[j], grid.arrival[j]
    meta[FRONT] = 0
    _lay_out(large)
    return large


@in_place
def _lay_out(grid: Grid) -> None:
    """Divides the range of the finite scores among the cells, and chains the objects anew."""
    meta = grid.meta
    low, high = np.inf, -np.inf
    for i in range(meta[COUNT]):
        score = grid.score[(meta[FRONT] + i) % grid.score.size]
        if np.isfinite(score):
            low, high = min(low, score), max(high, score)
    width = high - low
    scalable = 0 < width < np.inf and grid.head.size / width < np.inf
    grid.axis[LOW], grid.axis[SCALE] = (low, grid.head.size / width) if scalable else (0.0, 0.0)
    meta[AGE] = 0
    grid.head[:] = -1
    for i in range(meta[COUNT]):
        _chain(grid, (meta[FRONT] + i) % grid.score.size)


@in_place
def _add(grid: Grid, score: float, position: int, arrival: int) -> None:
    """Puts an object in; there must be room. The cells are laid out anew once as many have come as are here."""
    meta = grid.meta
    slot = meta[FRONT] + meta[COUNT]
    slot = slot if slot < grid.score.size else slot - grid.score.size
    grid.score[slot], grid.position[slot], grid.arrival[slot] = score, position, arrival
    meta[COUNT] += 1
    meta[AGE] += 1
    if meta[AGE] > max(meta[COUNT], grid.head.size):
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
    meta = grid.meta
    while meta[COUNT] > 0 and grid.position[meta[FRONT]] <= dead:
        front = meta[FRONT]
        grid.head[cell_of(grid, grid.score[front])] = grid.after[front]
        meta[FRONT] = front + 1 if front + 1 < grid.score.size else 0
        meta[COUNT] -= 1

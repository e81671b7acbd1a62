"""Aggregates of groups as rows enter a window and leave it, at a cost that does not depend on how many are in it.

What enters and leaves is a *partial*: what one row, or all rows of a group in a pane, come to. Counts and sums are
added up, and taken away again. That cannot be done with a minimum, a maximum or a product: there the partials of a
group are a queue of two parts. The front, which leaves first, knows for each of its partials what this and all newer
ones of the front come to; of the back only the whole is known. When the front is used up, the back becomes the front.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, outer
from skyband.kernels.groups.exact import add, multiply, nearest
from skyband.storage.blocks import ARRIVAL, Floats, Ints, Record, block, column, record_type, scalars

COUNT, ZEROS, SUM, LOWEST, HIGHEST, PRODUCT = range(6)  # what is kept: three kinds in ``sums``, three in ``folds``
NUMBER, TOTAL, MEAN, LEAST, MOST, PRODUCED, DISTINCT = range(7)  # what is told


class Keep(NamedTuple):
    """One value that is kept: a count or an extreme takes one lane, a sum two, a product three."""

    kind: int
    column: int  # the column of values that it is of; -1: of the rows
    lane: int  # where it begins


class Tell(NamedTuple):
    """One value that is told."""

    how: int
    lane: int  # where what is told begins; of distinct values: which of them
    values: int = 0  # the lane that counts the values: where there are none, there is no aggregate
    zeros: int = 0  # products: the lane that counts the zeros


KEEP, TELL = record_type(Keep), record_type(Tell)


class Program(NamedTuple):
    """What is kept of the rows of a group, and what is told of it."""

    keep: Record  # Keep
    tell: Record  # Tell
    sums: int  # how many lanes
    folds: int
    cells: int  # how many sorts of values are told apart


@block(version=1)
class Partials(NamedTuple):
    """What single rows, or all rows of a group in a pane, come to; and the newest of them.

    A cell is a group with a value that is told apart: of the d-th of ``sorts`` sorts its number is
    ``code * sorts + d``, so that the cells of all sorts are counted in one array.
    """

    group: Annotated[Ints, column("partials")]
    pane: Annotated[Ints, column("partials")]
    position: Annotated[Ints, column("partials")]
    arrival: Annotated[Ints, column("partials", holds=ARRIVAL)]
    cells: Annotated[Ints, column("partials", wide=True)]  # one for each sort; -1: no value
    sums: Annotated[Floats, column("partials", wide=True)]
    folds: Annotated[Floats, column("partials", wide=True)]


class PoolMeta(NamedTuple):
    free: int = -1  # the first place that is free again; -1: none
    used: int = 0  # places that were ever used
    held: int = 0  # partials in the window
    groups: int = 0  # groups that have one
    cells: int = 0  # cells that have one


@block(version=1)
class Pool(NamedTuple):
    """The partials in the window, each at a place of its own, linked in the order in which they leave."""

    group: Annotated[Ints, column("partials", used="used")]
    pane: Annotated[Ints, column("partials", used="used")]
    cells: Annotated[Ints, column("partials", used="used", wide=True)]
    sums: Annotated[Floats, column("partials", used="used", wide=True)]
    folds: Annotated[Floats, column("partials", used="used", wide=True)]
    # In the front of the queue: what this partial and all newer ones of the front come to.
    suffix: Annotated[Floats, column("partials", used="used", wide=True)]
    following: Annotated[Ints, column("partials", used="used")]  # in the partition, or among the free; -1: none
    preceding: Annotated[Ints, column("partials", used="used")]
    newer: Annotated[Ints, column("partials", used="used")]  # in the group
    older: Annotated[Ints, column("partials", used="used")]
    meta: Annotated[Record, scalars(PoolMeta)]


@block(version=1)
class Totals(NamedTuple):
    """By group: what its partials in the window come to."""

    position: Annotated[Ints, column("groups")]  # of the newest row
    arrival: Annotated[Ints, column("groups", holds=ARRIVAL)]
    newest: Annotated[Ints, column("groups", fill=-1)]  # its newest partial; -1: it has none
    oldest: Annotated[Ints, column("groups", fill=-1)]
    front: Annotated[Ints, column("groups", fill=-1)]  # the newest partial of the front; -1: all are in the back
    # 1: an addition was not exact, the sums are to be made anew; 2: they were, and are not exact either
    lossy: Annotated[Ints, column("groups")]
    distinct: Annotated[Ints, column("groups", wide=True)]
    sums: Annotated[Floats, column("groups", wide=True)]
    back: Annotated[Floats, column("groups", wide=True)]


@block(version=1)
class Book(NamedTuple):
    """All that is in the window."""

    pool: Pool
    totals: Totals
    live: Annotated[Ints, column("cells")]  # by cell: partials in the window
    head: Annotated[Ints, column("partitions", fill=-1)]  # by partition: the partial that leaves next; -1: none
    tail: Annotated[Ints, column("partitions", fill=-1)]


@outer
def of_rows(values: Floats, size: int, program: Program) -> tuple[Floats, Floats]:
    """The lanes of single rows: sums and folds."""
    sums, folds = np.empty((program.sums, size)), np.empty((program.folds, size))
    for i in range(size):
        for o in range(program.keep.size):
            kept = program.keep[o]
            kind, lane = kept.kind, kept.lane
            x = 1.0 if kept.column < 0 else values[i, kept.column]
            there = not np.isnan(x)
            if kind == COUNT:
                sums[lane, i] = 1.0 if there else 0.0
            elif kind == ZEROS:
                sums[lane, i] = 1.0 if x == 0 else 0.0
            elif kind == SUM:
                sums[lane, i], sums[lane + 1, i] = x if there else 0.0, 0.0
            elif kind == PRODUCT:
                folds[lane, i], folds[lane + 1, i], folds[lane + 2, i] = 0.5, 0.0, 1.0
                if there and x != 0:
                    folds[lane, i], shift = math.frexp(x)
                    folds[lane + 2, i] = shift
            elif there:
                folds[lane, i] = x
            else:
                folds[lane, i] = np.inf if kind == LOWEST else -np.inf
    return sums, folds


@in_place
def _nothing(folds: Floats, i: int, program: Program) -> None:
    """What no partial comes to."""
    for o in range(program.keep.size):
        kind, lane = program.keep[o].kind, program.keep[o].lane
        if kind == LOWEST:
            folds[lane, i] = np.inf
        elif kind == HIGHEST:
            folds[lane, i] = -np.inf
        elif kind == PRODUCT:
            folds[lane, i], folds[lane + 1, i], folds[lane + 2, i] = 0.5, 0.0, 1.0


@in_place
def _fold(folds: Floats, i: int, more: Floats, j: int, program: Program) -> None:
    """Brings row j of ``more`` into row i."""
    for o in range(program.keep.size):
        kind, lane = program.keep[o].kind, program.keep[o].lane
        if kind == LOWEST:
            folds[lane, i] = min(folds[lane, i], more[lane, j])
        elif kind == HIGHEST:
            folds[lane, i] = max(folds[lane, i], more[lane, j])
        elif kind == PRODUCT:
            folds[lane, i], folds[lane + 1, i], folds[lane + 2, i] = multiply(
                folds[lane, i], folds[lane + 1, i], folds[lane + 2, i],
                more[lane, j], more[lane + 1, j], more[lane + 2, j])  # fmt: skip


@in_place
def _copy(folds: Floats, i: int, more: Floats, j: int) -> None:
    for lane in range(folds.shape[0]):
        folds[lane, i] = more[lane, j]


@in_place
def _zero(sums: Floats, i: int) -> None:
    for lane in range(sums.shape[0]):
        sums[lane, i] = 0.0


@in_place
def _add(sums: Floats, i: int, more: Floats, j: int, sign: float, program: Program) -> bool:
    """Adds row j of ``more`` to row i, or takes it away; whether nothing was lost."""
    exactly = True
    for o in range(program.keep.size):
        kind, lane = program.keep[o].kind, program.keep[o].lane
        if kind == SUM:
            hi, lo = sign * more[lane, j], sign * more[lane + 1, j]
            sums[lane, i], sums[lane + 1, i], exact = add(sums[lane, i], sums[lane + 1, i], hi, lo)
            exactly = exactly and exact
        elif kind <= ZEROS:
            sums[lane, i] += sign * more[lane, j]
    return exactly


@outer
def reduce(parts: Partials, place: Ints, size: int, program: Program) -> Partials:
    """Brings the partials together that share a place in the result."""
    group, pane, position = np.empty((3, size), np.int64)
    cells, arrival = np.empty((program.cells, size), np.int64), np.full(size, -1)
    sums, folds = np.zeros((program.sums, size)), np.empty((program.folds, size))
    for i in range(place.size):
        p = place[i]
        if arrival[p] < 0:
            group[p], pane[p] = parts.group[i], parts.pane[i]
            for d in range(program.cells):
                cells[d, p] = parts.cells[d, i]
            if program.folds:
                _copy(folds, p, parts.folds, i)
        elif program.folds:
            _fold(folds, p, parts.folds, i, program)
        _add(sums, p, parts.sums, i, 1.0, program)
        if (
            arrival[p] < 0
            or parts.position[i] > position[p]
            or (parts.position[i] == position[p] and parts.arrival[i] > arrival[p])
        ):
            position[p], arrival[p] = parts.position[i], parts.arrival[i]
    return Partials(group, pane, position, arrival, cells, sums, folds)


@in_place
def enter(book: Book, parts: Partials, i: int, partition: int, program: Program) -> None:
    """A partial takes its place in the window of a partition, behind all that are no newer; there is room for it."""
    pool, totals, meta = book.pool, book.totals, book.pool.meta[0]
    p = meta.free
    if p >= 0:
        meta.free = pool.following[p]
    else:
        p = meta.used
        meta.used += 1
    meta.held += 1
    g, pane = parts.group[i], parts.pane[i]
    pool.group[p], pool.pane[p] = g, pane
    _copy(pool.sums, p, parts.sums, i)
    _copy(pool.folds, p, parts.folds, i)
    for d in range(program.cells):
        cell = parts.cells[d, i]
        pool.cells[d, p] = cell
        if cell >= 0:
            book.live[cell] += 1
            first = book.live[cell] == 1
            totals.distinct[d, g] += first
            meta.cells += first
    q = book.tail[partition]
    while q >= 0 and pool.pane[q] > pane:
        q = pool.preceding[q]
    after = pool.following[q] if q >= 0 else book.head[partition]
    pool.preceding[p], pool.following[p] = q, after
    if q >= 0:
        pool.following[q] = p
    else:
        book.head[partition] = p
    if after >= 0:
        pool.preceding[after] = p
    else:
        book.tail[partition] = p
    if totals.newest[g] < 0 or parts.position[i] > totals.position[g] or (
        parts.position[i] == totals.position[g] and parts.arrival[i] > totals.arrival[g]
    ):  # fmt: skip
        totals.position[g], totals.arrival[g] = parts.position[i], parts.arrival[i]
    if totals.newest[g] < 0:
        meta.groups += 1
        _nothing(totals.back, g, program)
    exact = _add(totals.sums, g, parts.sums, i, 1.0, program)
    if totals.lossy[g] or not exact:
        totals.lossy[g] = 1
    _queue(book, p, g, program)


@in_place
def _queue(book: Book, p: int, g: int, program: Program) -> None:
    """A partial takes its place among those of its group."""
    pool, totals = book.pool, book.totals
    q, behind = totals.newest[g], False  # whether it is older than the newest partial of the front
    while q >= 0 and pool.pane[q] > pool.pane[p]:
        behind = behind or q == totals.front[g]
        q = pool.older[q]
    newer = pool.newer[q] if q >= 0 else totals.oldest[g]
    pool.older[p], pool.newer[p] = q, newer
    if q >= 0:
        pool.newer[q] = p
    else:
        totals.oldest[g] = p
    if newer >= 0:
        pool.older[newer] = p
    else:
        totals.newest[g] = p
    if program.folds == 0:
        return
    if not behind:
        _fold(totals.back, g, pool.folds, p, program)
        return
    _copy(pool.suffix, p, pool.folds, p)
    _fold(pool.suffix, p, pool.suffix, newer, program)
    while q >= 0:
        _fold(pool.suffix, q, pool.folds, p, program)
        q = pool.older[q]


@in_place
def leave(book: Book, partition: int, program: Program) -> int:
    """The oldest partial of a partition leaves; returns its group."""
    pool, totals, meta = book.pool, book.totals, book.pool.meta[0]
    p = book.head[partition]
    g, after = pool.group[p], pool.following[p]
    book.head[partition] = after
    if after >= 0:
        pool.preceding[after] = -1
    else:
        book.tail[partition] = -1
    pool.following[p], pool.group[p] = meta.free, -1
    meta.free = p
    meta.held -= 1
    for d in range(program.cells):
        cell = pool.cells[d, p]
        if cell >= 0:
            book.live[cell] -= 1
            last = book.live[cell] == 0
            totals.distinct[d, g] -= last
            meta.cells -= last
    q = pool.newer[p]
    totals.oldest[g] = q
    if q < 0:
        totals.newest[g], totals.front[g], totals.lossy[g] = -1, -1, 0
        meta.groups -= 1
        _zero(totals.sums, g)
        return int(g)
    pool.older[q] = -1
    exact = _add(totals.sums, g, pool.sums, p, -1.0, program)
    if totals.lossy[g] or not exact:
        totals.lossy[g] = 1
    if program.folds == 0:
        return int(g)
    if totals.front[g] == p:
        totals.front[g] = -1
    elif totals.front[g] < 0:
        _turn(book, g, program)
    return int(g)


@in_place
def _turn(book: Book, g: int, program: Program) -> None:
    """All partials of a group become the front."""
    pool, totals = book.pool, book.totals
    q = totals.newest[g]
    totals.front[g] = q
    _copy(pool.suffix, q, pool.folds, q)
    while pool.older[q] >= 0:
        older = pool.older[q]
        _copy(pool.suffix, older, pool.folds, older)
        _fold(pool.suffix, older, pool.suffix, q, program)
        q = older
    _nothing(totals.back, g, program)


@in_place
def settle(book: Book, g: int, program: Program) -> None:
    """Makes sums that may have lost something anew, from the partials of the group."""
    pool, totals = book.pool, book.totals
    if totals.lossy[g] != 1:
        return
    _zero(totals.sums, g)
    exactly = True
    p = totals.oldest[g]
    while p >= 0:
        exactly = _add(totals.sums, g, pool.sums, p, 1.0, program) and exactly
        p = pool.newer[p]
    totals.lossy[g] = 0 if exactly else 2  # amounts too far apart for 106 bits: anew again after the next change


@in_place
def tell(book: Book, g: int, values: Floats, row: int, program: Program, first: int, last: int) -> None:
    """Writes some of what is told of a group that is in the window; NaN where there is nothing."""
    sums = book.totals.sums
    for c in range(first, last):
        told = program.tell[c]
        how, lane = told.how, told.lane
        if how == DISTINCT:
            values[c, row] = book.totals.distinct[lane, g]
        elif how == NUMBER:
            values[c, row] = sums[lane, g]
        elif sums[told.values, g] == 0:
            values[c, row] = np.nan
        elif how == TOTAL:
            values[c, row] = sums[lane, g]
        elif how == MEAN:
            values[c, row] = sums[lane, g] / sums[told.values, g]
        elif how == PRODUCED and sums[told.zeros, g] > 0:
            values[c, row] = 0.0
        else:
            values[c, row] = _folded(book, g, how, lane)


@in_place
def _folded(book: Book, g: int, how: int, lane: int) -> float:
    """A minimum, maximum or product of both parts of the queue."""
    back, suffix = book.totals.back, book.pool.suffix
    split, p = book.totals.front[g] >= 0, book.totals.oldest[g]
    if how == LEAST:
        return float(min(back[lane, g], suffix[lane, p]) if split else back[lane, g])
    if how == MOST:
        return float(max(back[lane, g], suffix[lane, p]) if split else back[lane, g])
    hi, lo, exponent = back[lane, g], back[lane + 1, g], back[lane + 2, g]
    if split:
        hi, lo, exponent = multiply(hi, lo, exponent, suffix[lane, p], suffix[lane + 1, p], suffix[lane + 2, p])
    return nearest(hi, lo, exponent)


@outer
def enter_all(book: Book, parts: Partials, partition: Ints, program: Program) -> None:
    """Partials enter one after the other, each into its partition."""
    for i in range(parts.group.size):
        enter(book, parts, i, partition[i], program)


@outer
def in_order(book: Book) -> tuple[Ints, Ints]:
    """The places of all partials, in the order of their partitions, and in these in that of leaving; the partitions."""
    place, partition = np.empty((2, book.pool.meta[0].held), np.int64)
    i = 0
    for k in range(book.head.size):
        p = book.head[k]
        while p >= 0:
            place[i], partition[i] = p, k
            i += 1
            p = book.pool.following[p]
    return place, partition


@outer
def newest_of(book: Book, since: int) -> Ints:
    """The newest rows of the groups that have partials of panes from ``since`` on: arrival numbers, some repeatedly."""
    p, count = book.tail[0], 0
    while p >= 0 and book.pool.pane[p] >= since:
        p, count = book.pool.preceding[p], count + 1
    arrival = np.empty(count, np.int64)
    p = book.tail[0]
    for i in range(count):
        arrival[i] = book.totals.arrival[book.pool.group[p]]
        p = book.pool.preceding[p]
    return arrival


@outer
def tell_all(book: Book, groups: Ints, program: Program) -> Floats:
    """What is told of groups that are in the window."""
    values = np.empty((program.tell.size, groups.size))
    for i in range(groups.size):
        settle(book, groups[i], program)
        tell(book, groups[i], values, i, program, 0, program.tell.size)
    return values

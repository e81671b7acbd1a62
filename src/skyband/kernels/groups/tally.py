"""Aggregates of groups as rows enter a window and leave it, at a cost that does not depend on how many are in it.

What enters and leaves is a *partial*: what one row, or all rows of a group in a pane, come to. Counts and sums are
added up, and taken away again. That cannot be done with a minimum, a maximum or a product: there the partials of a
group are a queue of two parts. The front, which leaves first, knows for each of its partials what this and all newer
ones of the front come to; of the back only the whole is known. When the front is used up, the back becomes the front.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import in_place, outer
from skyband.kernels.groups.exact import add, multiply, nearest

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

COUNT, ZEROS, SUM, LOWEST, HIGHEST, PRODUCT = range(
    6
)  # what is kept: the first three in ``sums``, the rest in ``folds``
NUMBER, TOTAL, MEAN, LEAST, MOST, PRODUCED, DISTINCT = range(7)  # what is told
FREE, USED, HELD = range(3)  # places in Book.meta


class Program(NamedTuple):
    """What is kept of the rows of a group, and what is told of it.

    ``lane`` is where a kept value begins: a count or an extreme has one lane, a sum two, a product three.
    """

    keep: Ints
    column: Ints  # the column of values it is of; -1: of the rows
    lane: Ints
    tell: Ints
    take: Ints  # the lane that is told; of distinct values, which of them
    values: Ints  # the lane that counts the values: where there are none, there is no aggregate
    zeros: Ints  # products: the lane that counts the zeros
    sums: int  # how many lanes
    folds: int
    cells: int  # how many sorts of values are told apart


class Partials(NamedTuple):
    """What single rows, or all rows of a group in a pane, come to; and the newest of them."""

    group: Ints
    pane: Ints
    position: Ints
    arrival: Ints
    cells: Ints  # codes of the group with the values that are told apart; -1: no value
    sums: Floats
    folds: Floats


class Pool(NamedTuple):
    """The partials in the window, each at a place of its own, linked in the order in which they leave."""

    group: Ints
    pane: Ints
    cells: Ints
    sums: Floats
    folds: Floats
    suffix: Floats  # in the front of the queue: what this partial and all newer ones of the front come to
    following: Ints  # in the partition; -1: none
    preceding: Ints
    newer: Ints  # in the group
    older: Ints


class Totals(NamedTuple):
    """By group: what its partials in the window come to."""

    position: Ints  # of the newest row
    arrival: Ints
    newest: Ints  # its newest partial; -1: it has none
    oldest: Ints
    front: Ints  # the newest partial of the front; -1: all are in the back
    lossy: Ints  # 1: an addition was not exact, the sums are to be made anew; 2: they were, and are not exact either
    distinct: Ints
    sums: Floats
    back: Floats


class Book(NamedTuple):
    """All that is in the window."""

    pool: Pool
    totals: Totals
    live: Ints  # by cell: partials in the window
    head: Ints  # by partition: the partial that leaves next; -1: none
    tail: Ints
    meta: Ints


@outer
def of_rows(values: Floats, size: int, program: Program) -> tuple[Floats, Floats]:
    """The lanes of single rows: sums and folds."""
    sums, folds = np.empty((size, program.sums)), np.empty((size, program.folds))
    for i in range(size):
        for o in range(program.keep.size):
            kind, lane, column = program.keep[o], program.lane[o], program.column[o]
            x = 1.0 if column < 0 else values[i, column]
            there = not np.isnan(x)
            if kind == COUNT:
                sums[i, lane] = 1.0 if there else 0.0
            elif kind == ZEROS:
                sums[i, lane] = 1.0 if x == 0 else 0.0
            elif kind == SUM:
                sums[i, lane], sums[i, lane + 1] = x if there else 0.0, 0.0
            elif kind == PRODUCT:
                folds[i, lane], folds[i, lane + 1], folds[i, lane + 2] = 0.5, 0.0, 1.0
                if there and x != 0:
                    folds[i, lane], shift = math.frexp(x)
                    folds[i, lane + 2] = shift
            elif there:
                folds[i, lane] = x
            else:
                folds[i, lane] = np.inf if kind == LOWEST else -np.inf
    return sums, folds


@in_place
def _nothing(folds: Floats, i: int, program: Program) -> None:
    """What no partial comes to."""
    for o in range(program.keep.size):
        kind, lane = program.keep[o], program.lane[o]
        if kind == LOWEST:
            folds[i, lane] = np.inf
        elif kind == HIGHEST:
            folds[i, lane] = -np.inf
        elif kind == PRODUCT:
            folds[i, lane], folds[i, lane + 1], folds[i, lane + 2] = 0.5, 0.0, 1.0


@in_place
def _fold(folds: Floats, i: int, more: Floats, j: int, program: Program) -> None:
    """Brings row j of ``more`` into row i."""
    for o in range(program.keep.size):
        kind, lane = program.keep[o], program.lane[o]
        if kind == LOWEST:
            folds[i, lane] = min(folds[i, lane], more[j, lane])
        elif kind == HIGHEST:
            folds[i, lane] = max(folds[i, lane], more[j, lane])
        elif kind == PRODUCT:
            folds[i, lane], folds[i, lane + 1], folds[i, lane + 2] = multiply(
                folds[i, lane], folds[i, lane + 1], folds[i, lane + 2],
                more[j, lane], more[j, lane + 1], more[j, lane + 2])  # fmt: skip


@in_place
def _copy(folds: Floats, i: int, more: Floats, j: int) -> None:
    for lane in range(folds.shape[1]):
        folds[i, lane] = more[j, lane]


@in_place
def _zero(sums: Floats, i: int) -> None:
    for lane in range(sums.shape[1]):
        sums[i, lane] = 0.0


@in_place
def _add(sums: Floats, i: int, more: Floats, j: int, sign: float, program: Program) -> bool:
    """Adds row j of ``more`` to row i, or takes it away; whether nothing was lost."""
    exactly = True
    for o in range(program.keep.size):
        kind, lane = program.keep[o], program.lane[o]
        if kind == SUM:
            hi, lo = sign * more[j, lane], sign * more[j, lane + 1]
            sums[i, lane], sums[i, lane + 1], exact = add(sums[i, lane], sums[i, lane + 1], hi, lo)
            exactly = exactly and exact
        elif kind <= ZEROS:
            sums[i, lane] += sign * more[j, lane]
    return exactly


@outer
def reduce(parts: Partials, place: Ints, size: int, program: Program) -> Partials:
    """Brings the partials together that share a place in the result."""
    group, pane, position = np.empty((3, size), np.int64)
    cells, arrival = np.empty((size, program.cells), np.int64), np.full(size, -1)
    sums, folds = np.zeros((size, program.sums)), np.empty((size, program.folds))
    for i in range(place.size):
        p = place[i]
        if arrival[p] < 0:
            group[p], pane[p] = parts.group[i], parts.pane[i]
            for d in range(program.cells):
                cells[p, d] = parts.cells[i, d]
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
    pool, totals, meta = book.pool, book.totals, book.meta
    p = meta[FREE]
    if p >= 0:
        meta[FREE] = pool.following[p]
    else:
        p = meta[USED]
        meta[USED] += 1
    meta[HELD] += 1
    g, pane = parts.group[i], parts.pane[i]
    pool.group[p], pool.pane[p] = g, pane
    _copy(pool.sums, p, parts.sums, i)
    _copy(pool.folds, p, parts.folds, i)
    for d in range(program.cells):
        cell = parts.cells[i, d]
        pool.cells[p, d] = cell
        if cell >= 0:
            book.live[cell, d] += 1
            totals.distinct[g, d] += book.live[cell, d] == 1
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
    pool, totals, meta = book.pool, book.totals, book.meta
    p = book.head[partition]
    g, after = pool.group[p], pool.following[p]
    book.head[partition] = after
    if after >= 0:
        pool.preceding[after] = -1
    else:
        book.tail[partition] = -1
    pool.following[p], pool.group[p] = meta[FREE], -1
    meta[FREE] = p
    meta[HELD] -= 1
    for d in range(program.cells):
        cell = pool.cells[p, d]
        if cell >= 0:
            book.live[cell, d] -= 1
            totals.distinct[g, d] -= book.live[cell, d] == 0
    q = pool.newer[p]
    totals.oldest[g] = q
    if q < 0:
        totals.newest[g], totals.front[g], totals.lossy[g] = -1, -1, 0
        _zero(totals.sums, g)
        _nothing(totals.back, g, program)
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
        how, lane = program.tell[c], program.take[c]
        if how == DISTINCT:
            values[row, c] = book.totals.distinct[g, lane]
        elif how == NUMBER:
            values[row, c] = sums[g, lane]
        elif sums[g, program.values[c]] == 0:
            values[row, c] = np.nan
        elif how == TOTAL:
            values[row, c] = sums[g, lane]
        elif how == MEAN:
            values[row, c] = sums[g, lane] / sums[g, program.values[c]]
        elif how == PRODUCED and sums[g, program.zeros[c]] > 0:
            values[row, c] = 0.0
        else:
            values[row, c] = _folded(book, g, how, lane)


@in_place
def _folded(book: Book, g: int, how: int, lane: int) -> float:
    """A minimum, maximum or product of both parts of the queue."""
    back, suffix = book.totals.back, book.pool.suffix
    split, p = book.totals.front[g] >= 0, book.totals.oldest[g]
    if how == LEAST:
        return float(min(back[g, lane], suffix[p, lane]) if split else back[g, lane])
    if how == MOST:
        return float(max(back[g, lane], suffix[p, lane]) if split else back[g, lane])
    hi, lo, exponent = back[g, lane], back[g, lane + 1], back[g, lane + 2]
    if split:
        hi, lo, exponent = multiply(hi, lo, exponent, suffix[p, lane], suffix[p, lane + 1], suffix[p, lane + 2])
    return nearest(hi, lo, exponent)


@outer
def enter_all(book: Book, parts: Partials, partition: Ints, program: Program) -> None:
    """Partials enter one after the other, each into its partition."""
    for i in range(parts.group.size):
        enter(book, parts, i, partition[i], program)


@outer
def in_order(book: Book) -> tuple[Ints, Ints]:
    """The places of all partials, in the order of their partitions, and in these in that of leaving; the partitions."""
    place, partition = np.empty((2, book.meta[HELD]), np.int64)
    i = 0
    for k in range(book.head.size):
        p = book.head[k]
        while p >= 0:
            place[i], partition[i] = p, k
            i += 1
            p = book.pool.following[p]
    return place, partition


@outer
def tell_all(book: Book, groups: Ints, program: Program) -> Floats:
    """What is told of groups that are in the window."""
    values = np.empty((groups.size, program.tell.size))
    for i in range(groups.size):
        settle(book, groups[i], program)
        tell(book, groups[i], values, i, program, 0, program.tell.size)
    return values

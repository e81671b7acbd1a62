"""The state of aggregates over all rows of a group: what a query wants kept, and the window as a book of partials."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import NOTHING, Floats, Ints, Rows
from skyband.errors import QueryError
from skyband.kernels.groups import tally as kernel
from skyband.kernels.groups.tally import KEEP, TELL, Book, Keep, Partials, Pool, PoolMeta, Program, Tell, Totals
from skyband.query import TopKGroups
from skyband.query.asked import Asked, input_of
from skyband.storage.blocks import empty, grown, plain, resized, taken


def asked_of(query: TopKGroups, name: str) -> Asked:
    """The aggregates over all rows that a query asks for; refuses one that asks for something else."""
    if query.asked is None:
        what = "occurrences='once'" if query.occurrences == "once" else "a Python function for aggregate"
        raise QueryError(f"algorithm={name!r} serves aggregates over all rows of a group, not {what}; take 'sla'")
    return query.asked


def program_of(asked: Asked) -> Program:
    """What is to be kept for some aggregates, and told."""
    keep, sums, folds = [Keep(kernel.COUNT, -1, 0)], 1, 0  # the rows are counted always
    lanes: dict[tuple[int, int], int] = {}
    tells = []

    def lane_of(kind: int, column: int) -> int:
        nonlocal sums, folds
        if (kind, column) not in lanes:
            adds = kind <= kernel.SUM
            lanes[kind, column] = sums if adds else folds
            keep.append(Keep(kind, column, lanes[kind, column]))
            size = {kernel.SUM: 2, kernel.PRODUCT: 3}.get(kind, 1)
            sums, folds = (sums + size, folds) if adds else (sums, folds + size)
        return lanes[kind, column]

    for call in asked.calls:
        wanted = input_of(call)
        if wanted is None:
            tells.append(Tell(kernel.NUMBER, 0))
            continue
        column = 0 if asked.alone else asked.inputs.index(wanted)
        if call.how == "count_distinct":
            assert call.of is not None
            tells.append(Tell(kernel.DISTINCT, asked.distinct.index(call.of)))
            continue
        count = 0 if asked.alone else lane_of(kernel.COUNT, column)  # alone, a row without a value is invalid
        if call.how == "count":
            tells.append(Tell(kernel.NUMBER, count))
        elif call.how in ("sum", "mean"):
            how = kernel.TOTAL if call.how == "sum" else kernel.MEAN
            tells.append(Tell(how, lane_of(kernel.SUM, column), count))
        elif call.how == "product":
            zeros = lane_of(kernel.ZEROS, column)
            tells.append(Tell(kernel.PRODUCED, lane_of(kernel.PRODUCT, column), count, zeros))
        else:
            kept, how = (kernel.LOWEST, kernel.LEAST) if call.how == "min" else (kernel.HIGHEST, kernel.MOST)
            tells.append(Tell(how, lane_of(kept, column), count))
    return Program(np.array(keep, KEEP), np.array(tells, TELL), sums, folds, len(asked.distinct))


def partials_of(rows: Rows, pane: Ints, asked: Asked, program: Program) -> Partials:
    """Single rows as partials; wants them spelled out."""
    size, sorts = rows.score.size, program.cells
    # Copies: a batch may be read-only or not, and each would be compiled by itself.
    values = rows.score.reshape(-1, 1).copy() if asked.alone else rows.values.copy()
    sums, folds = kernel.of_rows(values, size, program)
    cells = np.empty((sorts, size), np.int64)
    if sorts and size:
        codes = rows.tags[:, rows.tags.shape[1] - sorts :].T
        np.add(codes * sorts, np.arange(sorts)[:, np.newaxis], out=cells)
        if not asked.alone:
            there = [i for i, wanted in enumerate(asked.inputs) if not wanted.number and wanted.of in asked.distinct]
            order = [next(i for i in there if asked.inputs[i].of == of) for of in asked.distinct]
            cells[np.isnan(values[:, order].T)] = -1
    group = rows.tags[:, 0].copy() if size else NOTHING
    return Partials(group, pane, rows.position.copy(), rows.arrival.copy(), cells, sums, folds)


def no_partials(program: Program) -> Partials:
    """None."""
    return empty(Partials, wide={"cells": program.cells, "sums": program.sums, "folds": program.folds})


def recoded(parts: Partials, group: Ints, cells: Ints) -> Partials:
    """Partials of groups and cells that are numbered anew."""
    return parts._replace(group=group[parts.group], cells=np.where(parts.cells >= 0, cells[parts.cells], -1))


def cell_codes(codes: tuple[Ints, ...]) -> Ints:
    """The new numbers of cells, given the new codes of each sort; -1 where a code is gone."""
    sorts = len(codes)
    new = np.full((max((code.size for code in codes), default=0), sorts), -1)
    for d, code in enumerate(codes):
        new[: code.size, d] = np.where(code >= 0, code * sorts + d, -1)
    return new.ravel()


def cells_in_use(cells: Ints, program: Program) -> tuple[Ints, ...]:
    """The codes of each sort among some cells, ascending."""
    if program.cells == 1:
        return (np.unique(cells),)
    return tuple(np.unique(cells[cells % program.cells == d] // program.cells) for d in range(program.cells))


def join(parts: Partials, more: Partials) -> Partials:
    """One after the other."""
    return Partials._make(np.concatenate(pair, axis=-1) for pair in zip(parts, more, strict=True))


def some(parts: Partials, which: NDArray[Any]) -> Partials:
    """Those of an index or mask."""
    return taken(parts, "partials", which)


def no_book(program: Program, partitions: int = 1) -> Book:
    """An empty window, with room for nothing."""
    sums, folds, cells = program.sums, program.folds, program.cells
    pool = empty(Pool, wide={"cells": cells, "sums": sums, "folds": folds, "suffix": folds})
    totals = empty(Totals, wide={"distinct": cells, "sums": sums, "back": folds})
    return resized(empty(Book, pool=pool, totals=totals), "partitions", partitions)


def with_room(book: Book, partials: int, groups: int, cells: int, partitions: int = 1) -> Book:
    """Room for so many more partials, and for so many groups, cells and partitions in all."""
    pool, totals, places = book.pool, book.totals, plain(PoolMeta, book.pool.meta)
    needed = places.used + max(0, partials - (places.used - places.held))
    if needed > pool.group.size:
        pool = grown(pool, "partials", needed)
    if groups > totals.position.size:
        totals = resized(totals, "groups", max(groups, totals.position.size * 9 // 8))
    if pool is not book.pool or totals is not book.totals:
        book = book._replace(pool=pool, totals=totals)
    if cells > book.live.size:
        book = resized(book, "cells", max(cells, book.live.size * 9 // 8))
    return resized(book, "partitions", partitions) if partitions > book.head.size else book


def book_of(parts: Partials, partition: Ints, program: Program, groups: int, cells: int, partitions: int = 1) -> Book:
    """A window with these partials in it, in the order of leaving; ``partition`` are their partitions."""
    book = with_room(no_book(program, partitions), parts.group.size, groups, cells)
    kernel.enter_all(book, parts, partition, program)
    return book


def inside(book: Book) -> tuple[Partials, Ints]:
    """The partials in the window in the order of leaving, partition by partition; and their partitions.

    Each has the newest row of its group for its own.
    """
    place, partition = kernel.in_order(book)
    pool, totals = book.pool, book.totals
    group = pool.group[place]
    cells, sums, folds = pool.cells[:, place], pool.sums[:, place], pool.folds[:, place]
    found = Partials(group, pool.pane[place], totals.position[group], totals.arrival[group], cells, sums, folds)
    return Partials._make(np.ascontiguousarray(column) for column in found), partition


def alive(book: Book) -> Ints:
    """The groups that are in the window, ascending."""
    return np.flatnonzero(book.totals.newest >= 0)


def held(book: Book) -> int:
    """How many partials are in the window."""
    return plain(PoolMeta, book.pool.meta).held


def check(book: Book, program: Program) -> None:
    """Asserts that what is known of the window is what its partials come to."""
    parts, partition = inside(book)
    assert parts.group.size == held(book), "a partial was lost"
    for k in np.unique(partition):
        assert (np.diff(parts.pane[partition == k]) >= 0).all(), "partials are not in the order of leaving"
    groups, size = alive(book), book.totals.position.size
    counted = plain(PoolMeta, book.pool.meta)
    assert (counted.groups, counted.cells) == (groups.size, int(np.count_nonzero(book.live))), "groups were miscounted"
    assert (np.unique(parts.group) == groups).all(), "a group is forgotten too early or too late"
    again = book_of(parts, partition, program, size, book.live.size, book.head.size)
    assert (again.live == book.live).all() and (again.totals.distinct == book.totals.distinct).all()
    exact = groups[(book.totals.lossy[groups] == 0) & (again.totals.lossy[groups] == 0)]
    assert (book.totals.sums[:, exact] == again.totals.sums[:, exact]).all(), "a sum is not that of its partials"
    told, expected = (kernel.tell_all(each, exact, program) for each in (book, again))
    assert np.array_equal(told, expected, equal_nan=True), "an aggregate is not that of its partials"
    gone = np.setdiff1d(np.arange(size), groups)
    assert (book.totals.sums[:, gone] == 0).all(), "an old sum was left over"


class Told(NamedTuple):
    """What is told of all groups of a window: their newest rows, and the values of all calls."""

    group: Ints
    position: Ints
    arrival: Ints
    values: Floats  # a row for each group


def told(parts: Partials, program: Program) -> Told:
    """What is told of groups of which these are all the partials."""
    cells = int(parts.cells.max(initial=-1)) + 1
    book = book_of(parts, np.zeros(parts.group.size, np.int64), program, int(parts.group.max(initial=-1)) + 1, cells)
    groups, totals = alive(book), book.totals
    return Told(groups, totals.position[groups], totals.arrival[groups], kernel.tell_all(book, groups, program).T)

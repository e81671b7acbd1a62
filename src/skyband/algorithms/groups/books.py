"""The state of aggregates as arrays with room to grow: what is kept for a query, building, growing and reading it."""

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import NOTHING, Floats, Ints, Rows
from skyband.errors import QueryError
from skyband.kernels.groups import tally as kernel
from skyband.kernels.groups.tally import FREE, HELD, USED, Book, Partials, Pool, Program, Totals
from skyband.query import TopKGroups
from skyband.query.asked import Asked, input_of

T = TypeVar("T", bound=tuple[Any, ...])
SAVED = ("group", "pane", "cells", "sums", "folds")  # of the partials in the window: the rest follows from these


def asked_of(query: TopKGroups, name: str) -> Asked:
    """The aggregates over all rows that a query asks for; refuses one that asks for something else."""
    if query.asked is None:
        what = "occurrences='once'" if query.occurrences == "once" else "a Python function for aggregate"
        raise QueryError(f"algorithm={name!r} serves aggregates over all rows of a group, not {what}; take 'sla'")
    return query.asked


def program_of(asked: Asked) -> Program:
    """What is to be kept for some aggregates, and told."""
    keep, sums, folds = [(kernel.COUNT, -1, 0)], 1, 0  # the rows are counted always
    lanes: dict[tuple[int, int], int] = {}
    tells = []

    def lane_of(kind: int, column: int) -> int:
        nonlocal sums, folds
        if (kind, column) not in lanes:
            adds = kind <= kernel.SUM
            lanes[kind, column] = sums if adds else folds
            keep.append((kind, column, lanes[kind, column]))
            size = {kernel.SUM: 2, kernel.PRODUCT: 3}.get(kind, 1)
            sums, folds = (sums + size, folds) if adds else (sums, folds + size)
        return lanes[kind, column]

    for call in asked.calls:
        wanted = input_of(call)
        if wanted is None:
            tells.append((kernel.NUMBER, 0, 0, 0))
            continue
        column = 0 if asked.alone else asked.inputs.index(wanted)
        if call.how == "count_distinct":
            assert call.of is not None
            tells.append((kernel.DISTINCT, asked.distinct.index(call.of), 0, 0))
            continue
        count = 0 if asked.alone else lane_of(kernel.COUNT, column)  # alone, a row without a value is invalid
        if call.how == "count":
            tells.append((kernel.NUMBER, count, 0, 0))
        elif call.how in ("sum", "mean"):
            how = kernel.TOTAL if call.how == "sum" else kernel.MEAN
            tells.append((how, lane_of(kernel.SUM, column), count, 0))
        elif call.how == "product":
            zeros = lane_of(kernel.ZEROS, column)
            tells.append((kernel.PRODUCED, lane_of(kernel.PRODUCT, column), count, zeros))
        else:
            kept, how = (kernel.LOWEST, kernel.LEAST) if call.how == "min" else (kernel.HIGHEST, kernel.MOST)
            tells.append((how, lane_of(kept, column), count, 0))
    kind, column, lane = np.array(keep, np.int64).T.copy()
    tell, take, values, zeros = np.array(tells, np.int64).T.copy()
    return Program(kind, column, lane, tell, take, values, zeros, sums, folds, len(asked.distinct))


def partials_of(rows: Rows, pane: Ints, asked: Asked, program: Program) -> Partials:
    """Single rows as partials; wants them spelled out."""
    size = rows.score.size
    # Copies: a batch may be read-only or not, and each would be compiled by itself.
    values = rows.score.reshape(-1, 1).copy() if asked.alone else rows.values.copy()
    sums, folds = kernel.of_rows(values, size, program)
    cells = np.empty((size, program.cells), np.int64)
    if program.cells and size:
        cells[:] = rows.tags[:, rows.tags.shape[1] - program.cells :]
        if not asked.alone:
            there = [i for i, wanted in enumerate(asked.inputs) if not wanted.number and wanted.of in asked.distinct]
            order = [next(i for i in there if asked.inputs[i].of == of) for of in asked.distinct]
            cells[np.isnan(values[:, order])] = -1
    group = rows.tags[:, 0].copy() if size else NOTHING
    return Partials(group, pane, rows.position.copy(), rows.arrival.copy(), cells, sums, folds)


def no_partials(program: Program) -> Partials:
    """None."""
    return Partials(*(NOTHING,) * 4, np.empty((0, program.cells), np.int64), np.empty((0, program.sums)),
                    np.empty((0, program.folds)))  # fmt: skip


def shaped(program: Program, **columns: NDArray[Any]) -> Partials:
    """Partials of columns that were saved in one dimension; they may be written to."""
    size = columns["group"].size
    wide = {"cells": program.cells, "sums": program.sums, "folds": program.folds}
    columns = {name: array.reshape(size, wide[name]) if name in wide else array for name, array in columns.items()}
    return Partials(**{name: array.copy() for name, array in columns.items()})


def recoded(parts: Partials, group: Ints, cells: tuple[Ints, ...]) -> Partials:
    """Partials of groups and cells that are numbered anew."""
    columns = [np.where(old >= 0, new[old], -1) for old, new in zip(parts.cells.T, cells, strict=True)]
    new_cells = np.stack(columns, axis=1) if columns else parts.cells
    return parts._replace(group=group[parts.group], cells=new_cells)


def join(parts: Partials, more: Partials) -> Partials:
    """One after the other."""
    return Partials._make(np.concatenate(pair) for pair in zip(parts, more, strict=True))


def some(parts: Partials, which: NDArray[Any]) -> Partials:
    """Those of an index or mask."""
    return Partials._make(column[which] for column in parts)


def no_book(program: Program, partitions: int = 1) -> Book:
    """An empty window, with room for nothing."""
    wide, fold = np.empty((0, program.sums)), np.empty((0, program.folds))
    cells = np.empty((0, program.cells), np.int64)
    pool = Pool(NOTHING, NOTHING, cells, wide, fold, fold, NOTHING, NOTHING, NOTHING, NOTHING)
    totals = Totals(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, cells, wide, fold)
    ends = np.full(partitions, -1)
    meta = np.zeros(3, np.int64)
    meta[FREE] = -1
    return Book(pool, totals, cells, ends, ends.copy(), meta)


def with_room(book: Book, program: Program, partials: int, groups: int, cells: int, partitions: int = 1) -> Book:
    """Room for so many more partials, and for so many groups, cells and partitions in all."""
    pool, totals = book.pool, book.totals
    needed = int(book.meta[USED]) + max(0, partials - int(book.meta[USED] - book.meta[HELD]))
    if needed > pool.group.size:
        pool = _grown(pool, max(needed, pool.group.size * 3 // 2))
    if groups > totals.position.size:
        first, size = totals.position.size, max(groups, totals.position.size * 9 // 8)
        totals = _grown(totals, size)
        for ends in (totals.newest, totals.oldest, totals.front):
            ends[first:] = -1
        totals.back[first:] = kernel.of_rows(np.full((1, 1 + int(program.column.max())), np.nan), 1, program)[1]
    live = book.live
    if cells > live.shape[0]:
        live = _longer(live, max(cells, live.shape[0] * 9 // 8))
    head, tail = book.head, book.tail
    if partitions > head.size:
        more = np.full(partitions - head.size, -1)
        head, tail = np.append(head, more), np.append(tail, more)
    return Book(pool, totals, live, head, tail, book.meta)


def book_of(parts: Partials, partition: Ints, program: Program, groups: int, cells: int, partitions: int = 1) -> Book:
    """A window with these partials in it, in the order of leaving; ``partition`` are their partitions."""
    book = with_room(no_book(program, partitions), program, parts.group.size, groups, cells)
    kernel.enter_all(book, parts, partition, program)
    return book


def inside(book: Book) -> tuple[Partials, Ints]:
    """The partials in the window in the order of leaving, partition by partition; and their partitions.

    Each has the newest row of its group for its own.
    """
    place, partition = kernel.in_order(book)
    group, pane, cells, sums, folds = (getattr(book.pool, name)[place] for name in SAVED)
    return Partials(group, pane, book.totals.position[group], book.totals.arrival[group], cells, sums, folds), partition


def alive(book: Book) -> Ints:
    """The groups that are in the window, ascending."""
    return np.flatnonzero(book.totals.newest >= 0)


def held(book: Book) -> int:
    """How many partials are in the window."""
    return int(book.meta[HELD])


def nbytes(book: Book) -> int:
    """Bytes in the arrays."""
    arrays = (*book.pool, *book.totals, book.live, book.head, book.tail, book.meta)
    return sum(array.nbytes for array in arrays)


def check(book: Book, program: Program) -> None:
    """Asserts that what is known of the window is what its partials come to."""
    parts, partition = inside(book)
    assert parts.group.size == book.meta[HELD], "a partial was lost"
    for k in np.unique(partition):
        assert (np.diff(parts.pane[partition == k]) >= 0).all(), "partials are not in the order of leaving"
    groups, size = alive(book), book.totals.position.size
    assert (np.unique(parts.group) == groups).all(), "a group is forgotten too early or too late"
    again = book_of(parts, partition, program, size, book.live.shape[0], book.head.size)
    assert (again.live == book.live).all() and (again.totals.distinct == book.totals.distinct).all()
    exact = groups[(book.totals.lossy[groups] == 0) & (again.totals.lossy[groups] == 0)]
    assert (book.totals.sums[exact] == again.totals.sums[exact]).all(), "a sum is not that of its partials"
    told, expected = (kernel.tell_all(each, exact, program) for each in (book, again))
    assert np.array_equal(told, expected, equal_nan=True), "an aggregate is not that of its partials"
    gone = np.setdiff1d(np.arange(size), groups)
    assert (book.totals.sums[gone] == 0).all(), "an old sum was left over"


class Told(NamedTuple):
    """What is told of all groups of a window: their newest rows, and the values of all calls."""

    group: Ints
    position: Ints
    arrival: Ints
    values: Floats


def told(parts: Partials, program: Program) -> Told:
    """What is told of groups of which these are all the partials."""
    cells = int(parts.cells.max(initial=-1)) + 1
    book = book_of(parts, np.zeros(parts.group.size, np.int64), program, int(parts.group.max(initial=-1)) + 1, cells)
    groups = alive(book)
    return Told(
        groups, book.totals.position[groups], book.totals.arrival[groups], kernel.tell_all(book, groups, program)
    )


def _grown(arrays: T, size: int) -> T:
    return type(arrays)(*(_longer(array, size) for array in arrays))


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    longer = np.zeros((size, *array.shape[1:]), array.dtype)
    longer[: array.shape[0]] = array
    return longer

"""Hopping windows of groups: panes enter a window, others leave it, and then something is told of each group."""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.common.output import grow
from skyband.kernels.common.ranking import k_best
from skyband.kernels.groups.tally import Book, Partials, Program, enter, leave, settle, tell
from skyband.storage.blocks import Floats, Ints, Record, block, column, empty, resized, scalars

FEW = 64  # groups that may pile up in a window before they are looked through


class Spec(NamedTuple):
    """The windows."""

    extent: int
    slide: int
    pane: int
    k: int  # of each window so many groups are wanted; 0: all, since a condition decides which are ranked
    ties: bool
    sign: float  # -1: the smallest come first


class Due(NamedTuple):
    """What is to be closed, by partition: all windows from ``end`` on, as far as ``frontier``.

    ``parts`` are those that have not entered a window yet, in the order of partition and pane; those of a
    partition are at ``[first[partition] : stop[partition]]``, its groups are ``members[start[partition] :
    start[partition + 1]]``. ``end`` and ``first`` move on with the work.
    """

    end: Ints
    frontier: Ints
    parts: Partials
    first: Ints
    stop: Ints
    members: Ints
    start: Ints
    listed: Ints  # count windows: where the windows of a partition begin in ``closed``; it moves on too
    closed: Ints  # the ends of the windows that were completed
    trigger: Ints  # the arrivals that completed them


class FoundMeta(NamedTuple):
    windows: int = 0
    rows: int = 0
    partition: int = 0  # the partition at work


@block(version=1)
class Found(NamedTuple):
    """Windows that closed, and in each the groups that are wanted."""

    end: Annotated[Ints, column("windows", used="windows")]
    partition: Annotated[Ints, column("windows", used="windows")]
    trigger: Annotated[Ints, column("windows", used="windows")]
    stop: Annotated[Ints, column("windows", used="windows")]  # where its rows end
    group: Annotated[Ints, column("rows", used="rows")]
    position: Annotated[Ints, column("rows", used="rows")]  # of a group: its newest row
    arrival: Annotated[Ints, column("rows", used="rows")]
    goodness: Annotated[Floats, column("rows", used="rows")]
    values: Annotated[Floats, column("rows", used="rows", wide=True)]
    meta: Annotated[Record, scalars(FoundMeta)]


def no_found(windows: int, rows: int, width: int) -> Found:
    """Room for so many windows, and groups in them."""
    return resized(resized(empty(Found, wide={"values": width}), "windows", windows), "rows", rows)


@in_place
def _drop(book: Book, partition: int, start: int, pane: int, program: Program) -> None:
    """The panes before ``start`` leave."""
    while book.head[partition] >= 0 and book.pool.pane[book.head[partition]] * pane < start:
        leave(book, partition, program)


@inner
def _best(found: Found, begin: int, row: int, spec: Spec) -> int:
    """Cuts the rows from ``begin`` to ``row`` down to those that are wanted, in place; returns where they end."""
    best = begin + np.sort(k_best(found.goodness[begin:row], found.position[begin:row], found.arrival[begin:row],
                                  spec.k, spec.ties))  # fmt: skip
    row = begin
    for i in best:
        found.group[row], found.position[row], found.arrival[row] = found.group[i], found.position[i], found.arrival[i]
        found.goodness[row] = found.goodness[i]
        row += 1
    return row


@inner
def _write(book: Book, due: Due, partition: int, trigger: int, spec: Spec, program: Program, found: Found) -> None:
    """A window closes: what is told of its groups."""
    meta = found.meta[0]
    window, begin = meta.windows, meta.rows
    row, totals = begin, book.totals
    bar, most = -np.inf, FEW + 2 * spec.k  # whoever is below the bar is not wanted; it rises when there are most
    for m in range(due.start[partition], due.start[partition + 1]):
        g = due.members[m]
        if totals.newest[g] < 0:
            continue
        if totals.lossy[g] == 1:
            settle(book, g, program)
        tell(book, g, found.values, row, program, 0, 1)
        goodness = spec.sign * found.values[0, row]
        if not goodness >= bar:  # or NaN
            continue
        found.group[row], found.position[row], found.arrival[row] = g, totals.position[g], totals.arrival[g]
        found.goodness[row] = goodness
        row += 1
        if spec.k and row - begin == most:
            row = _best(found, begin, row, spec)
            bar = found.goodness[begin:row].min()
            most = FEW + 2 * (row - begin)
    if spec.k:
        row = _best(found, begin, row, spec)
    for i in range(begin, row):
        tell(book, found.group[i], found.values, i, program, 0, program.tell.size)
    found.end[window], found.partition[window], found.trigger[window] = due.end[partition], partition, trigger
    found.stop[window] = row
    meta.windows, meta.rows = window + 1, row


@outer
def slide_panes(book: Book, due: Due, spec: Spec, program: Program, found: Found) -> bool:
    """Closes what is due; where there is no room for more, it returns False and is to be called again."""
    meta, parts = found.meta[0], due.parts
    meta.windows, meta.rows = 0, 0
    for partition in range(meta.partition, due.end.size):
        meta.partition = partition
        while due.end[partition] <= due.frontier[partition]:
            _drop(book, partition, due.end[partition] - spec.extent, spec.pane, program)
            if book.head[partition] < 0:  # nothing in the window: on to the next that holds something
                following = due.frontier[partition] // spec.slide * spec.slide + spec.slide
                if due.first[partition] < due.stop[partition]:
                    following = (parts.pane[due.first[partition]] * spec.pane // spec.slide + 1) * spec.slide
                due.end[partition] = max(due.end[partition], following)
                if due.end[partition] > due.frontier[partition]:
                    break
            members = due.start[partition + 1] - due.start[partition]
            if meta.windows == found.end.size or meta.rows + members > found.position.size:
                return False
            end = due.end[partition]
            while (
                due.first[partition] < due.stop[partition] and (parts.pane[due.first[partition]] + 1) * spec.pane <= end
            ):
                enter(book, parts, due.first[partition], partition, program)
                due.first[partition] += 1
            trigger = 0
            if due.closed.size:
                while due.closed[due.listed[partition]] < end:
                    due.listed[partition] += 1
                trigger = due.trigger[due.listed[partition]]
            _write(book, due, partition, trigger, spec, program, found)
            due.end[partition] += spec.slide
        # What no later window needs. A count window is over only with the first object after it.
        following = (due.frontier[partition] - (due.closed.size > 0)) // spec.slide * spec.slide + spec.slide
        _drop(book, partition, following - spec.extent, spec.pane, program)
    return True


@outer
def rank_blocks(offset: Ints, goodness: Floats, position: Ints, arrival: Ints, k: int, ties: bool) -> tuple[Ints, Ints]:
    """The k best rows of each block: where those of each begin, and which rows they are. NaN is not ranked."""
    first, best, used = np.zeros(offset.size, np.int64), np.empty(1024, np.int64), 0
    for b in range(offset.size - 1):
        begin, end = offset[b], offset[b + 1]
        ranked = 0
        for i in range(begin, end):
            ranked += not np.isnan(goodness[i])
        if ranked == end - begin:
            chosen = begin + k_best(goodness[begin:end], position[begin:end], arrival[begin:end], k, ties)
        else:
            rows = begin + np.flatnonzero(~np.isnan(goodness[begin:end]))
            chosen = rows[k_best(goodness[rows], position[rows], arrival[rows], k, ties)]
        if used + chosen.size > best.size:
            best = grow(best, used + chosen.size)
        best[used : used + chosen.size] = chosen
        used += chosen.size
        first[b + 1] = used
    return first, best[:used]

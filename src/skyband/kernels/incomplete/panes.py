"""Hopping windows of groups: panes enter a window, others leave it, and then something is told of each group."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.incomplete.ranking import k_best
from skyband.kernels.incomplete.tally import Book, Partials, Program, enter, leave, settle, tell
from skyband.kernels.jit import inner, outer
from skyband.kernels.output import grow

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BLOCKS, ROWS, KEY = range(3)  # places in Found.meta
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

    ``parts`` are those that have not entered a window yet, in the order of partition and pane; those of partition
    ``key`` are at ``[first[key] : stop[key]]``, and its groups are ``members[start[key] : start[key + 1]]``. ``end``
    and ``first`` move on with the work.
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


class Found(NamedTuple):
    """Windows that closed, and in each the groups that are wanted. ``meta`` says how much is in use."""

    end: Ints
    key: Ints
    trigger: Ints
    offset: Ints
    group: Ints
    time: Ints  # of a group: its newest row
    number: Ints
    goodness: Floats
    values: Floats
    meta: Ints


def no_found(blocks: int, rows: int, width: int) -> Found:
    """Room for so many windows, and groups in them."""
    end, key, trigger = np.empty((3, blocks), np.int64)
    group, time, number = np.empty((3, rows), np.int64)
    return Found(end, key, trigger, np.zeros(blocks + 1, np.int64), group, time, number, np.empty(rows),
                 np.empty((rows, width)), np.zeros(3, np.int64))  # fmt: skip


@inner
def _drop(book: Book, key: int, start: int, pane: int, program: Program) -> None:
    """The panes before ``start`` leave."""
    while book.head[key] >= 0 and book.pool.pane[book.head[key]] * pane < start:
        leave(book, key, program)


@inner
def _best(found: Found, begin: int, row: int, spec: Spec) -> int:
    """Cuts the rows from ``begin`` to ``row`` down to those that are wanted, in place; returns where they end."""
    best = begin + np.sort(k_best(found.goodness[begin:row], found.time[begin:row], found.number[begin:row],
                                  spec.k, spec.ties))  # fmt: skip
    row = begin
    for i in best:
        found.group[row], found.time[row], found.number[row] = found.group[i], found.time[i], found.number[i]
        found.goodness[row] = found.goodness[i]
        row += 1
    return row


@inner
def _write(book: Book, due: Due, key: int, trigger: int, spec: Spec, program: Program, found: Found) -> None:
    """A window closes: what is told of its groups."""
    block, begin = found.meta[BLOCKS], found.meta[ROWS]
    row, totals = begin, book.totals
    bar, most = -np.inf, FEW + 2 * spec.k  # whoever is below the bar is not wanted; it rises when there are most
    for m in range(due.start[key], due.start[key + 1]):
        g = due.members[m]
        if totals.newest[g] < 0:
            continue
        if totals.lossy[g] == 1:
            settle(book, g, program)
        tell(book, g, found.values, row, program, 0, 1)
        goodness = spec.sign * found.values[row, 0]
        if not goodness >= bar:  # or NaN
            continue
        found.group[row], found.time[row], found.number[row] = g, totals.time[g], totals.number[g]
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
    found.end[block], found.key[block], found.trigger[block] = due.end[key], key, trigger
    found.offset[block + 1] = row
    found.meta[BLOCKS], found.meta[ROWS] = block + 1, row


@outer
def slide_panes(book: Book, due: Due, spec: Spec, program: Program, found: Found) -> bool:
    """Closes what is due; where there is no room for more, it returns False and is to be called again."""
    found.meta[BLOCKS], found.meta[ROWS] = 0, 0
    parts = due.parts
    for key in range(found.meta[KEY], due.end.size):
        found.meta[KEY] = key
        while due.end[key] <= due.frontier[key]:
            _drop(book, key, due.end[key] - spec.extent, spec.pane, program)
            if book.head[key] < 0:  # nothing in the window: on to the next that holds something
                following = due.frontier[key] // spec.slide * spec.slide + spec.slide
                if due.first[key] < due.stop[key]:
                    following = (parts.pane[due.first[key]] * spec.pane // spec.slide + 1) * spec.slide
                due.end[key] = max(due.end[key], following)
                if due.end[key] > due.frontier[key]:
                    break
            members = due.start[key + 1] - due.start[key]
            if found.meta[BLOCKS] == found.end.size or found.meta[ROWS] + members > found.time.size:
                return False
            end = due.end[key]
            while due.first[key] < due.stop[key] and (parts.pane[due.first[key]] + 1) * spec.pane <= end:
                enter(book, parts, due.first[key], key, program)
                due.first[key] += 1
            trigger = 0
            if due.closed.size:
                while due.closed[due.listed[key]] < end:
                    due.listed[key] += 1
                trigger = due.trigger[due.listed[key]]
            _write(book, due, key, trigger, spec, program, found)
            due.end[key] += spec.slide
        # What no later window needs. A count window is over only with the first object after it.
        following = (due.frontier[key] - (due.closed.size > 0)) // spec.slide * spec.slide + spec.slide
        _drop(book, key, following - spec.extent, spec.pane, program)
    return True


@outer
def rank_blocks(offset: Ints, goodness: Floats, time: Ints, number: Ints, k: int, ties: bool) -> tuple[Ints, Ints]:
    """The k best rows of each block: where those of each begin, and which rows they are. NaN is not ranked."""
    first, best, used = np.zeros(offset.size, np.int64), np.empty(1024, np.int64), 0
    for block in range(offset.size - 1):
        begin, end = offset[block], offset[block + 1]
        ranked = 0
        for i in range(begin, end):
            ranked += not np.isnan(goodness[i])
        if ranked == end - begin:
            chosen = begin + k_best(goodness[begin:end], time[begin:end], number[begin:end], k, ties)
        else:
            rows = begin + np.flatnonzero(~np.isnan(goodness[begin:end]))
            chosen = rows[k_best(goodness[rows], time[rows], number[rows], k, ties)]
        if used + chosen.size > best.size:
            best = grow(best, used + chosen.size)
        best[used : used + chosen.size] = chosen
        used += chosen.size
        first[block + 1] = used
    return first, best[:used]

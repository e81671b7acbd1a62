"""Groups at every arrival: what happens to each of them, as events for :mod:`skyband.kernels.groups.view`."""

from typing import NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, outer
from skyband.kernels.groups.assemble import ARRIVED, CHANGED, Events
from skyband.kernels.groups.tally import Book, Partials, Program, enter, leave, settle, tell
from skyband.query.positions import FOREVER
from skyband.storage.blocks import Record


class TallyMeta(NamedTuple):
    """How far the window of a partition has come."""

    now: int = -FOREVER  # the newest position
    touched: int = FOREVER  # no row of the last batch is before this position


@in_place
def _changed(book: Book, g: int, events: Events, program: Program) -> None:
    i, totals = events.meta[0].held, book.totals
    events.kind[i], events.slot[i] = CHANGED, g
    events.position[i], events.arrival[i] = totals.position[g], totals.arrival[g]
    events.alive[i] = totals.newest[g] >= 0
    if events.alive[i]:
        settle(book, g, program)
        tell(book, g, events.vector, i, program, 0, program.tell.size)
    else:
        for c in range(program.tell.size):
            events.vector[c, i] = np.nan
    events.meta[0].held = i + 1


@outer
def arrive(book: Book, rows: Partials, extent: int, meta: Record, program: Program, events: Events) -> None:
    """Takes rows in, in the order of their arrival; what is told of a group is the ``vector`` of its event.

    It is NaN where nothing is told. The events have room for all that is in the window and three for each row.
    """
    state, told = meta[0], events.meta[0]
    for i in range(rows.group.size):
        position = rows.pane[i]
        state.now, state.touched = max(state.now, position), min(state.touched, position)
        start = state.now - extent + 1
        while book.head[0] >= 0 and book.pool.pane[book.head[0]] < start:
            _changed(book, leave(book, 0, program), events, program)
        if position >= start:
            enter(book, rows, i, 0, program)
            _changed(book, rows.group[i], events, program)
        e = told.held
        events.kind[e], events.slot[e], events.alive[e] = ARRIVED, -1, 0
        events.position[e], events.arrival[e] = position, rows.arrival[i]
        events.vector[:, e] = np.nan
        told.held = e + 1

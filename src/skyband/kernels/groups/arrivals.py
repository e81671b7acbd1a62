"""Groups at every arrival: what happens to each of them, as events for :mod:`skyband.kernels.groups.view`."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.groups.assemble import ARRIVED, CHANGED, Events
from skyband.kernels.groups.tally import Book, Partials, Program, enter, leave, settle, tell

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@inner
def _changed(book: Book, g: int, values: Floats, events: Events, program: Program) -> None:
    i, totals = events.used[0], book.totals
    events.kind[i], events.slot[i], events.position[i], events.arrival[i] = (
        CHANGED,
        g,
        totals.position[g],
        totals.arrival[g],
    )
    events.alive[i] = totals.newest[g] >= 0
    if events.alive[i]:
        settle(book, g, program)
        tell(book, g, values, i, program, 0, program.tell.size)
    else:
        values[i] = np.nan
    events.used[0] = i + 1


@outer
def arrive(book: Book, rows: Partials, extent: int, now: Ints, program: Program, events: Events) -> None:
    """Takes rows in, in the order of their arrival; what is told of a group is the ``vector`` of its event.

    ``now`` is the newest position. The events have room for all that is in the window and three for each row.
    """
    values = events.vector.reshape((events.kind.size, program.tell.size))
    for i in range(rows.group.size):
        now[0] = max(now[0], rows.pane[i])
        while book.head[0] >= 0 and book.pool.pane[book.head[0]] <= now[0] - extent:
            _changed(book, leave(book, 0, program), values, events, program)
        if rows.pane[i] > now[0] - extent:
            enter(book, rows, i, 0, program)
            _changed(book, rows.group[i], values, events, program)
        e = events.used[0]
        events.kind[e], events.slot[e], events.alive[e] = ARRIVED, -1, 0
        events.position[e], events.arrival[e] = rows.pane[i], rows.arrival[i]
        events.used[0] = e + 1

"""The materialised view: the best k_max > k objects in order, so that the top k is at hand after every event.

Yi et al., *Efficient Maintenance of Materialized Top-k Views* (ICDE 2003), as used by Haghani et al. (CIKM 2009,
section 3.1): objects above the bar are in the view, and all others below it; only when fewer than k are left is the
view filled anew.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.common.order import better
from skyband.kernels.common.ranking import k_best
from skyband.kernels.groups.assemble import ARRIVED, CHANGED, Events
from skyband.kernels.groups.lists import Lists, note, threshold_algorithm

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Places in View.meta.
SIZE, TOP, KMAX, WHOLE, SINCE, BAR_TIME, BAR_NUMBER, K, TIES, LISTED, FILLS = range(11)


class View(NamedTuple):
    """The view, and of each object what the events have said so far.

    ``WHOLE``: every object is in the view, so there is no bar. ``TOP``: how many of ``shown`` are in use.
    ``SINCE``: events since the view was last filled. ``LISTED``: sorted lists are kept.
    """

    order: Ints  # slots, best first
    shown: Ints  # the top k as it was last told, best first
    score: Floats  # by slot
    position: Ints
    arrival: Ints
    alive: Ints
    inside: Ints  # whether it is in the view
    entered: Floats  # its score when it entered the top k; NaN: it is not in it
    values: Floats  # what is told beside the score: two-dimensional
    told: Floats  # the same, when it entered the top k
    bar: Floats  # score of the bar
    meta: Ints


class Log(NamedTuple):
    """What was told, row by row: changes of the top k, or rankings (all rows with one ``at``, best first)."""

    trigger: Ints
    at: Ints
    op: NDArray[np.int8]
    arrival: Ints  # the newest row of the object
    score: Floats
    values: Floats
    used: Ints


def no_log(room: int, width: int = 0) -> Log:
    """Room for so many rows, with so many values beside the score."""
    return Log(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int8), np.empty(room, np.int64),
               np.empty(room), np.empty((room, width)), np.zeros(1, np.int64))  # fmt: skip


def longer(log: Log, rows: int) -> Log:
    """The log with room for so many more rows, at least as many as it has."""
    more = no_log(2 * log.at.size + rows, log.values.shape[1])
    for name in Log._fields:
        old = getattr(log, name)
        getattr(more, name)[: len(old)] = old
    return more


@inner
def _tell(log: Log, trigger: int, at: int, op: int, arrival: int, score: float, values: Floats, slot: int) -> None:
    i = log.used[0]
    log.trigger[i], log.at[i], log.op[i], log.arrival[i], log.score[i] = trigger, at, op, arrival, score
    for j in range(values.shape[1]):
        log.values[i, j] = values[slot, j]
    log.used[0] = i + 1


@inner
def _above(view: View, slot: int) -> bool:
    """Whether an object belongs in the view."""
    meta = view.meta
    if meta[WHOLE]:
        return True
    if meta[TIES]:
        return bool(view.score[slot] > view.bar[0])
    return better(
        view.score[slot], view.position[slot], view.arrival[slot], view.bar[0], meta[BAR_TIME], meta[BAR_NUMBER]
    )


@inner
def _find(view: View, slot: int) -> int:
    """Where an object stands or would stand."""
    low, high = 0, view.meta[SIZE]
    while low < high:
        middle = (low + high) // 2
        other = view.order[middle]
        if better(view.score[other], view.position[other], view.arrival[other],
                  view.score[slot], view.position[slot], view.arrival[slot]):  # fmt: skip
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _cut(view: View) -> None:
    """Drops the worst when there are more than k_max, and sets the bar there."""
    meta = view.meta
    if meta[SIZE] <= meta[KMAX]:
        return
    keep = meta[KMAX]
    if meta[TIES]:  # objects that tie stay together
        while keep > 0 and view.score[view.order[keep - 1]] == view.score[view.order[keep]]:
            keep -= 1
        if keep < meta[K]:
            return
    bar = view.order[keep]
    view.bar[0], meta[BAR_TIME], meta[BAR_NUMBER], meta[WHOLE] = (
        view.score[bar],
        view.position[bar],
        view.arrival[bar],
        0,
    )
    for i in range(keep, meta[SIZE]):
        view.inside[view.order[i]] = 0
    meta[SIZE] = keep


@inner
def _change(view: View, events: Events, i: int) -> None:
    """An object has a new score, or is gone."""
    meta, slot = view.meta, events.slot[i]
    if view.inside[slot]:
        at = _find(view, slot)
        for j in range(at, meta[SIZE] - 1):
            view.order[j] = view.order[j + 1]
        meta[SIZE] -= 1
        view.inside[slot] = 0
    view.score[slot], view.position[slot], view.arrival[slot] = events.score[i], events.position[i], events.arrival[i]
    view.alive[slot] = events.alive[i]
    width = view.values.shape[1]
    for j in range(width):
        view.values[slot, j] = events.vector[i * width + j]
    if view.alive[slot] > 0 and _above(view, slot):
        at = _find(view, slot)
        for j in range(meta[SIZE], at, -1):
            view.order[j] = view.order[j - 1]
        view.order[at] = slot
        view.inside[slot] = 1
        meta[SIZE] += 1
        _cut(view)


@inner
def _fill(view: View, lists: Lists) -> None:
    """Fills the view anew, and tunes k_max: as large as keeps both the moves within and the fillings cheap."""
    meta = view.meta
    objects = view.alive.size
    if meta[FILLS] > 0:
        price = objects // max(meta[SINCE], 1)
        if price > meta[KMAX]:
            meta[KMAX] *= 2
        elif 16 * price < meta[KMAX]:
            meta[KMAX] = max(meta[K] + 8, meta[KMAX] // 2)
    meta[FILLS] += 1
    meta[SINCE] = 0
    for i in range(meta[SIZE]):
        view.inside[view.order[i]] = 0
    if meta[LISTED]:
        found, bar = threshold_algorithm(lists, view.score, view.alive, meta[KMAX])
    else:
        found, bar = np.flatnonzero(view.alive > 0), -np.inf
    score, position, arrival = view.score[found], view.position[found], view.arrival[found]
    best = k_best(score, position, arrival, meta[KMAX] + 1, meta[TIES] == 1)
    meta[SIZE], meta[WHOLE] = best.size, bar == -np.inf
    # Whoever was not found scores at most the bar; a time beyond all others shuts out those that tie with it.
    view.bar[0], meta[BAR_TIME], meta[BAR_NUMBER] = bar, np.iinfo(np.int64).max, 0
    for i in range(best.size):
        view.order[i] = found[best[i]]
        view.inside[found[best[i]]] = 1
    if best.size < found.size and meta[TIES]:  # the rest scores less than the last of these
        view.bar[0] = np.nextafter(score[best[-1]], -np.inf)
        meta[WHOLE] = 0
    _cut(view)


@inner
def _top(view: View, lists: Lists) -> int:
    """How many of the view are the answer; fills it first if it has run low."""
    meta = view.meta
    if meta[SIZE] < meta[K] and not meta[WHOLE]:
        _fill(view, lists)
    top = min(meta[K], meta[SIZE])
    if meta[TIES] and top > 0:
        while top < meta[SIZE] and view.score[view.order[top]] == view.score[view.order[top - 1]]:
            top += 1
    return int(top)


@inner
def _difference(view: View, log: Log, top: int, trigger: int, at: int) -> None:
    """Tells who left the top k and who entered it."""
    meta = view.meta
    same = top == meta[TOP]
    for i in range(top):
        if np.isnan(view.entered[view.order[i]]):
            same = False
    if not same:
        for i in range(top):
            view.inside[view.order[i]] = 2
        for i in range(meta[TOP]):
            slot = view.shown[i]
            if view.inside[slot] != 2:
                _tell(log, trigger, at, -1, view.arrival[slot], view.entered[slot], view.told, slot)
                view.entered[slot] = np.nan
        for i in range(top):
            slot = view.order[i]
            view.inside[slot] = 1
            if np.isnan(view.entered[slot]):
                view.entered[slot] = view.score[slot]
                for j in range(view.values.shape[1]):
                    view.told[slot, j] = view.values[slot, j]
                _tell(log, trigger, at, 1, view.arrival[slot], view.score[slot], view.values, slot)
    for i in range(top):
        view.shown[i] = view.order[i]
    meta[TOP] = top


@outer
def follow(view: View, lists: Lists, events: Events, begin: int, log: Log) -> int:
    """Follows the events, from ``begin`` on; whenever an answer is due, tells what changed, or the ranking.

    Where the view has values beside the score, those of an event are its ``vector``. Stops where the buffer of the
    lists is full, or the log may be too short, and returns the event to go on with.
    """
    for i in range(begin, events.used[0]):
        if events.kind[i] == CHANGED:
            if view.meta[LISTED] and lists.used[0] == lists.buffer.stream.size:
                return i
            _change(view, events, i)
            view.meta[SINCE] += 1
            if view.meta[LISTED]:
                note(lists, events, i)
            continue
        top = _top(view, lists)
        if log.used[0] + view.meta[TOP] + top > log.at.size:
            return i
        if events.kind[i] == ARRIVED:
            _difference(view, log, top, events.arrival[i], events.position[i])
        else:
            for j in range(top):
                slot = view.order[j]
                _tell(
                    log,
                    events.arrival[i],
                    events.position[i],
                    1,
                    view.arrival[slot],
                    view.score[slot],
                    view.values,
                    slot,
                )
    return int(events.used[0])

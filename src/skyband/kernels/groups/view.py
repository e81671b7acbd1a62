"""The materialised view: the best k_max > k objects in order, so that the top k is at hand after every event.

Yi et al., *Efficient Maintenance of Materialized Top-k Views* (ICDE 2003), as used by Haghani et al. (CIKM 2009,
section 3.1): objects above the bar are in the view, and all others below it; only when fewer than k are left is the
view filled anew.
"""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.common.order import better
from skyband.kernels.common.ranking import k_best
from skyband.kernels.groups.assemble import ARRIVED, CHANGED, Events, Spec
from skyband.kernels.groups.lists import Lists, note, threshold_algorithm
from skyband.storage.blocks import ARRIVAL, Bytes, Floats, Ints, Record, block, column, empty, resized, scalars


class ViewMeta(NamedTuple):
    ranked: int = 0  # objects in the view
    top: int = 0  # objects in the top k as it was last told
    slots: int = 0  # objects that the events speak of
    kmax: int = 0  # the view is cut where it has more
    whole: int = 1  # every object is in the view, so there is no bar
    since: int = 0  # events since the view was last filled
    fills: int = 0  # how often it was filled
    bar: float = 0.0  # all objects outside rank below the bar: a score, a position and an arrival number
    bar_position: int = 0
    bar_arrival: int = 0
    k: int = 0  # what is asked for
    ties: int = 0
    listed: int = 0  # whether sorted lists are kept


@block(version=1)
class View(NamedTuple):
    """The view, and of each object what the events have said so far. An object is known by its slot."""

    order: Annotated[Ints, column("ranking", used="ranked")]  # slots, best first
    shown: Annotated[Ints, column("tops", used="top")]  # the top k as it was last told, best first
    score: Annotated[Floats, column("objects", used="slots")]
    position: Annotated[Ints, column("objects", used="slots")]
    arrival: Annotated[Ints, column("objects", used="slots", holds=ARRIVAL)]
    alive: Annotated[Ints, column("objects", used="slots")]
    inside: Annotated[Ints, column("objects", used="slots")]  # whether it is in the view
    # Its score when it entered the top k; NaN: it is not in it.
    entered: Annotated[Floats, column("objects", used="slots", fill=np.nan)]
    values: Annotated[Floats, column("objects", used="slots", wide=True)]  # what is told beside the score
    told: Annotated[Floats, column("objects", used="slots", wide=True)]  # the same, when it entered the top k
    meta: Annotated[Record, scalars(ViewMeta)]


class LogMeta(NamedTuple):
    held: int = 0


@block(version=1)
class Log(NamedTuple):
    """What was told, row by row: changes of the top k, or rankings (all rows with one ``at``, best first)."""

    trigger: Annotated[Ints, column("entries", used="held")]
    at: Annotated[Ints, column("entries", used="held")]
    op: Annotated[Bytes, column("entries", used="held")]
    arrival: Annotated[Ints, column("entries", used="held")]  # the newest row of the object
    score: Annotated[Floats, column("entries", used="held")]
    values: Annotated[Floats, column("entries", used="held", wide=True)]
    meta: Annotated[Record, scalars(LogMeta)]


def no_log(width: int = 0) -> Log:
    """An empty log, with so many values beside the score."""
    return resized(empty(Log, wide={"values": width}), "entries", 256)


@in_place
def _tell(log: Log, trigger: int, at: int, op: int, arrival: int, score: float, values: Floats, slot: int) -> None:
    i = log.meta[0].held
    log.trigger[i], log.at[i], log.op[i], log.arrival[i], log.score[i] = trigger, at, op, arrival, score
    for j in range(values.shape[0]):
        log.values[j, i] = values[j, slot]
    log.meta[0].held = i + 1


@in_place
def _above(view: View, slot: int) -> bool:
    """Whether an object belongs in the view."""
    meta = view.meta[0]
    if meta.whole:
        return True
    if meta.ties:
        return bool(view.score[slot] > meta.bar)
    return better(view.score[slot], view.position[slot], view.arrival[slot], meta.bar, meta.bar_position,
                  meta.bar_arrival)  # fmt: skip


@in_place
def _find(view: View, slot: int) -> int:
    """Where an object stands or would stand."""
    low, high = 0, view.meta[0].ranked
    while low < high:
        middle = (low + high) // 2
        other = view.order[middle]
        if better(view.score[other], view.position[other], view.arrival[other],
                  view.score[slot], view.position[slot], view.arrival[slot]):  # fmt: skip
            low = middle + 1
        else:
            high = middle
    return low


@in_place
def _cut(view: View) -> None:
    """Drops the worst when there are more than k_max, and sets the bar there."""
    meta = view.meta[0]
    if meta.ranked <= meta.kmax:
        return
    keep = meta.kmax
    if meta.ties:  # objects that tie stay together
        while keep > 0 and view.score[view.order[keep - 1]] == view.score[view.order[keep]]:
            keep -= 1
        if keep < meta.k:
            return
    bar = view.order[keep]
    meta.bar, meta.bar_position, meta.bar_arrival, meta.whole = (
        view.score[bar], view.position[bar], view.arrival[bar], 0)  # fmt: skip
    for i in range(keep, meta.ranked):
        view.inside[view.order[i]] = 0
    meta.ranked = keep


@in_place
def _change(view: View, events: Events, i: int) -> None:
    """An object has a new score, or is gone."""
    meta, slot = view.meta[0], events.slot[i]
    if view.inside[slot]:
        at = _find(view, slot)
        for j in range(at, meta.ranked - 1):
            view.order[j] = view.order[j + 1]
        meta.ranked -= 1
        view.inside[slot] = 0
    view.score[slot], view.position[slot], view.arrival[slot] = events.score[i], events.position[i], events.arrival[i]
    view.alive[slot] = events.alive[i]
    for j in range(view.values.shape[0]):
        view.values[j, slot] = events.vector[j, i]
    if view.alive[slot] > 0 and _above(view, slot):
        at = _find(view, slot)
        for j in range(meta.ranked, at, -1):
            view.order[j] = view.order[j - 1]
        view.order[at] = slot
        view.inside[slot] = 1
        meta.ranked += 1
        _cut(view)


@inner
def _fill(view: View, lists: Lists, spec: Spec) -> None:
    """Fills the view anew, and tunes k_max: as large as keeps both the moves within and the fillings cheap."""
    meta = view.meta[0]
    objects = view.alive.size
    if meta.fills > 0:
        price = objects // max(meta.since, 1)
        if price > meta.kmax:
            meta.kmax *= 2
        elif 16 * price < meta.kmax:
            meta.kmax = max(meta.k + 8, meta.kmax // 2)
    meta.fills += 1
    meta.since = 0
    for i in range(meta.ranked):
        view.inside[view.order[i]] = 0
    if meta.listed:
        found, bar = threshold_algorithm(lists, spec, view.score, view.alive, meta.kmax)
    else:
        found, bar = np.flatnonzero(view.alive > 0), -np.inf
    score, position, arrival = view.score[found], view.position[found], view.arrival[found]
    best = k_best(score, position, arrival, meta.kmax + 1, meta.ties == 1)
    meta.ranked, meta.whole = best.size, bar == -np.inf
    # Whoever was not found scores at most the bar; a time beyond all others shuts out those that tie with it.
    meta.bar, meta.bar_position, meta.bar_arrival = bar, np.iinfo(np.int64).max, 0
    for i in range(best.size):
        view.order[i] = found[best[i]]
        view.inside[found[best[i]]] = 1
    if best.size < found.size and meta.ties:  # the rest scores less than the last of these
        meta.bar = np.nextafter(score[best[-1]], -np.inf)
        meta.whole = 0
    _cut(view)


@inner
def _top(view: View, lists: Lists, spec: Spec) -> int:
    """How many of the view are the answer; fills it first if it has run low."""
    meta = view.meta[0]
    if meta.ranked < meta.k and not meta.whole:
        _fill(view, lists, spec)
    top = min(meta.k, meta.ranked)
    if meta.ties and top > 0:
        while top < meta.ranked and view.score[view.order[top]] == view.score[view.order[top - 1]]:
            top += 1
    return int(top)


@in_place
def _difference(view: View, log: Log, top: int, trigger: int, at: int) -> None:
    """Tells who left the top k and who entered it."""
    meta = view.meta[0]
    same = top == meta.top
    for i in range(top):
        if np.isnan(view.entered[view.order[i]]):
            same = False
    if not same:
        for i in range(top):
            view.inside[view.order[i]] = 2
        for i in range(meta.top):
            slot = view.shown[i]
            if view.inside[slot] != 2:
                _tell(log, trigger, at, -1, view.arrival[slot], view.entered[slot], view.told, slot)
                view.entered[slot] = np.nan
        for i in range(top):
            slot = view.order[i]
            view.inside[slot] = 1
            if np.isnan(view.entered[slot]):
                view.entered[slot] = view.score[slot]
                for j in range(view.values.shape[0]):
                    view.told[j, slot] = view.values[j, slot]
                _tell(log, trigger, at, 1, view.arrival[slot], view.score[slot], view.values, slot)
    for i in range(top):
        view.shown[i] = view.order[i]
    meta.top = top


@outer
def follow(view: View, lists: Lists, spec: Spec, events: Events, begin: int, log: Log) -> int:
    """Follows the events, from ``begin`` on; whenever an answer is due, tells what changed, or the ranking.

    Where the view has values beside the score, those of an event are its ``vector``. Stops where the buffer of the
    lists is full, or the log may be too short, and returns the event to go on with.
    """
    meta, told = view.meta[0], log.meta[0]
    for i in range(begin, events.meta[0].held):
        if events.kind[i] == CHANGED:
            if meta.listed and lists.meta[0].buffered == lists.buffer.stream.size:
                return i
            _change(view, events, i)
            meta.since += 1
            if meta.listed:
                note(lists, events, i)
            continue
        top = _top(view, lists, spec)
        if told.held + meta.top + top > log.at.size:
            return i
        if events.kind[i] == ARRIVED:
            _difference(view, log, top, events.arrival[i], events.position[i])
        else:
            trigger, at = events.arrival[i], events.position[i]
            for j in range(top):
                slot = view.order[j]
                _tell(log, trigger, at, 1, view.arrival[slot], view.score[slot], view.values, slot)
    return int(events.meta[0].held)

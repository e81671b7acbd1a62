"""The state of objects put together from rows: building it, giving it room, and clearing away what is dead."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import Floats, Ints
from skyband.algorithms.groups import places
from skyband.algorithms.groups.partials import SUMS, amounts, merged
from skyband.expressions import scores_of
from skyband.kernels.groups import assemble as kernel
from skyband.kernels.groups.assemble import Events, EventsMeta, Parts, PartsMeta, Spec
from skyband.kernels.groups.lists import Lists, Sorted, with_buffer
from skyband.kernels.groups.places import Places
from skyband.kernels.groups.sketches import Sketch
from skyband.kernels.groups.view import Log, LogMeta, View, ViewMeta, follow
from skyband.storage.blocks import block, empty, grown, plain, resized, taken


@block(version=1)
class AssembledState(NamedTuple):
    """All that is known of one partition."""

    parts: Parts
    view: View
    lists: Lists
    sketch: Sketch  # what an approximate algorithm keeps of the streams
    objects: Places


def no_view(k: int, ties: bool, listed: bool, width: int = 0) -> View:
    """An empty view, with everything in it; ``width`` values are told beside the score."""
    return empty(View, wide={"values": width, "told": width}, k=k, kmax=k + max(8, k), ties=ties, listed=listed)


def lists_of(parts: Parts, listed: bool) -> Lists:
    """The sorted lists of what the cells say now; none are kept if not ``listed``."""
    cells = plain(PartsMeta, parts.meta).cells if listed else 0
    some = np.flatnonzero(parts.valid[:cells] > 0)
    some = some[np.lexsort((-parts.hi[some], parts.stream[some]))]
    main = Sorted(parts.stream[some], parts.hi[some], some, np.zeros(some.size, np.int64))
    lists = resized(empty(Lists, main=main, buffer=_buffer(cells), cells=cells), "cells", parts.owner.size * listed)
    lists.owner[:cells] = parts.owner[:cells]
    return lists


def merged_lists(lists: Lists) -> Lists:
    """The lists with their buffer merged in; it grows with them, so that neither merging nor inserting is dear."""
    main = with_buffer(lists)
    buffer = _buffer(main.stream.size)
    return lists._replace(
        main=main, buffer=buffer if buffer.stream.size > 2 * lists.buffer.stream.size else lists.buffer
    )


def _buffer(entries: int) -> Sorted:
    return resized(empty(Sorted), "entries", max(64, 4 * int(np.sqrt(entries))))


def introduce(state: AssembledState, codes: Ints) -> tuple[AssembledState, Ints]:
    """Gives objects that are new a place, and room; returns the place of each code."""
    before = places.held(state.objects)
    objects, place = places.placed(state.objects, codes)
    count = places.held(objects)
    if count > before:
        parts = grown(state.parts, "objects", count)
        parts.meta["objects"] = count
        state = state._replace(parts=parts)
    return state._replace(view=view_for(state.view, count), objects=objects), place


def view_for(view: View, slots: int) -> View:
    """The view with room for so many objects in all."""
    if slots > view.score.size:
        view = grown(view, "objects", slots)
    if slots + 2 > view.order.size or slots + 2 > view.shown.size:
        view = grown(grown(view, "ranking", slots + 2), "tops", slots + 2)
    view.meta["slots"] = slots
    return view


def with_room(state: AssembledState, rows: int, listed: bool) -> AssembledState:
    """Room for so many more rows, and for as many cells."""
    parts, lists, meta = state.parts, state.lists, plain(PartsMeta, state.parts.meta)
    if meta.rows + rows > parts.position.size:
        parts = grown(parts, "row", meta.rows + rows)
    if meta.cells + rows > parts.owner.size:
        parts = grown(parts, "cells", meta.cells + rows)
    if listed and parts.owner.size > lists.stamp.size:
        lists = resized(lists, "cells", parts.owner.size)
    return state if parts is state.parts and lists is state.lists else state._replace(parts=parts, lists=lists)


def followed(view: View, lists: Lists, spec: Spec, events: Events, log: Log) -> Log:
    """The log with what the events bring about, where no lists are kept."""
    event, held = 0, plain(EventsMeta, events.meta).held
    while (event := follow(view, lists, spec, events, event, log)) < held:
        log = with_entries(log, view)
    return log


def with_entries(log: Log, view: View) -> Log:
    """The log with room for all that one event may bring about: the top k leaves and another one enters."""
    meta = plain(ViewMeta, view.meta)
    needed = plain(LogMeta, log.meta).held + 2 * (meta.ranked + meta.top)
    return log if needed <= log.at.size else resized(log, "entries", 2 * (log.at.size + needed))


def told(log: Log) -> Log | None:
    """What the log holds, in memory of its own: the log is used again. None if it holds nothing."""
    held = plain(LogMeta, log.meta).held
    return taken(log, "entries", slice(held)) if held else None


def compacted(state: AssembledState, spec: Spec, listed: bool, keep: NDArray[np.bool_] | None = None) -> AssembledState:
    """Without the rows that expired or were superseded (or are not among ``keep``), and objects that have none left.

    Where ``keep`` is given, cells are added up anew from the rows that stay; scores are left for the caller.
    """
    parts, view, _, sketch, objects = state
    meta = plain(PartsMeta, parts.meta)
    kept = np.arange(meta.head, meta.rows)
    kept = kept[parts.last[parts.cell[kept]] == parts.arrival[kept]] if not spec.many else kept
    if keep is not None:
        kept = kept[keep[kept]]
    alive = np.zeros(meta.objects, bool)
    alive[parts.owner[parts.cell[kept]]] = True
    stays = np.flatnonzero(alive[parts.owner[: meta.cells]])
    slots = np.flatnonzero(alive)
    to_slot, to_cell = ranks(slots, meta.objects), ranks(stays, meta.cells)
    parts = taken(taken(taken(parts, "row", kept), "cells", stays), "objects", slots)
    parts = parts._replace(cell=to_cell[parts.cell], owner=to_slot[parts.owner], following=to_cell[parts.following],
                           first=to_cell[parts.first])  # fmt: skip
    parts.meta["touched"] = np.searchsorted(kept, meta.touched)
    parts.meta["head"], parts.meta["rows"] = 0, kept.size
    parts.meta["cells"], parts.meta["objects"] = stays.size, slots.size
    if keep is not None:
        _add_up(parts)
    view = compacted_view(view, slots, to_slot)
    return AssembledState(parts, view, lists_of(parts, listed), sketch, places.kept(objects, slots))


def wasteful(parts: Parts) -> bool:
    """Whether most of the state is dead: rows that expired or were superseded, objects that have none left."""
    meta = plain(PartsMeta, parts.meta)
    return meta.objects > 2 * meta.living + 64 or meta.rows > 2 * meta.counting + 64


def rescored(state: AssembledState, spec: Spec, function: Callable[[Floats], Floats] | None) -> AssembledState:
    """Every score anew, and a view that is to be filled."""
    parts, view = state.parts, state.view
    objects = plain(PartsMeta, parts.meta).objects
    view.score[:objects], view.position[:objects] = scores(parts, spec, function), parts.newest[:objects]
    view.arrival[:objects], view.alive[:objects] = parts.newest_arrival[:objects], parts.alive[:objects]
    view.inside[:objects] = 0
    # A bar that nobody reaches: whatever comes, the view is filled before it is next looked at.
    view.meta["bar"], view.meta["bar_position"] = np.inf, np.iinfo(np.int64).max
    view.meta["ranked"], view.meta["whole"] = 0, 0
    return state


def scores(parts: Parts, spec: Spec, function: Callable[[Floats], Floats] | None) -> Floats:
    """The score of every object in the window."""
    if function is None:
        return kernel.all_scores(parts, spec)
    meta = plain(PartsMeta, parts.meta)
    vectors = np.full((meta.objects, spec.width), spec.low)
    some = np.flatnonzero(parts.valid[: meta.cells] > 0)
    vectors[parts.owner[some], parts.stream[some]] = parts.hi[some]
    return evaluated(function, vectors)


def evaluated(function: Callable[[Floats], Floats], vectors: Floats) -> Floats:
    """The scores that a Python function gives; NaN is the worst of all."""
    objects, streams = vectors.shape
    given = "an array with a row for each of {} objects and {} columns, the streams".format
    score = scores_of(function, "aggregate", [vectors], objects, lambda: given(objects, streams))
    return np.where(np.isnan(score), -np.inf, score)


def _add_up(parts: Parts) -> None:
    """Counts and sums of the cells, anew from the rows."""
    cells, rows = parts.owner.size, parts.cell.size
    parts.valid[:] = np.bincount(parts.cell, minlength=cells)
    sums = merged(amounts(parts.cell, np.zeros(rows, np.int64), parts.value, parts.position, parts.arrival), SUMS)
    parts.hi[:], parts.lo[:] = 0.0, 0.0
    _, parts.hi[sums.group], parts.lo[sums.group] = sums.sums
    parts.alive[:] = np.bincount(parts.owner[parts.cell], minlength=parts.alive.size)
    parts.meta["counting"], parts.meta["living"] = rows, np.count_nonzero(parts.alive)


def compacted_view(view: View, slots: Ints, to_slot: Ints) -> View:
    """The view with some objects only; ``to_slot`` are their new places."""
    meta = plain(ViewMeta, view.meta)
    inside, shown = to_slot[view.order[: meta.ranked]], to_slot[view.shown[: meta.top]]
    inside = inside[inside >= 0]
    view = taken(view, "objects", slots)._replace(order=inside, shown=shown)
    view.meta["ranked"] = inside.size
    return view_for(view, slots.size)


def ranks(kept: Ints, size: int) -> Ints:
    """The new number of each old one, or -1 if it is gone; with one entry more, so that ``ranks(…)[-1]`` is -1."""
    rank = np.full(size + 1, -1)
    rank[kept] = np.arange(kept.size)
    return rank

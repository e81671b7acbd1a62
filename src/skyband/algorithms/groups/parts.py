"""The state of assembled objects as arrays with room to grow: building, growing and compacting them."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import FOREVER, NOTHING, Floats, Ints
from skyband.algorithms.groups.partials import SUMS, amounts, merged
from skyband.expressions import scores_of
from skyband.kernels.groups import assemble as kernel
from skyband.kernels.groups import view as views
from skyband.kernels.groups.assemble import CELLS, HEAD, OBJECTS, ROWS, Parts, Spec
from skyband.kernels.groups.lists import Lists, Sorted, with_buffer
from skyband.kernels.groups.sketches import Sketch
from skyband.kernels.groups.view import View

_NONE = np.empty(0)
_ROW_FIELDS = ("position", "arrival", "value", "cell")
_CELL_FIELDS = ("owner", "stream", "following", "valid", "seen", "hi", "lo", "lossy", "last")
_OBJECT_FIELDS = ("code", "first", "rows", "newest", "newest_number")
SLOT_FIELDS = ("score", "position", "arrival", "alive", "inside", "entered", "values", "told")
T = TypeVar("T", Parts, View)


class Whole(NamedTuple):
    """All that is known of one partition."""

    parts: Parts
    view: View
    lists: Lists
    sketch: Sketch  # what an approximate algorithm keeps of the streams
    order: Ints  # the places of the objects, in the order of their codes


def no_parts() -> Parts:
    """Nothing seen yet."""
    meta = np.array([0, 0, 0, 0, -FOREVER, -FOREVER])
    return Parts(NOTHING, NOTHING, _NONE, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, _NONE, _NONE, NOTHING,
                 NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, meta)  # fmt: skip


def no_view(k: int, ties: bool, listed: bool, width: int = 0) -> View:
    """An empty view, with everything in it; ``width`` values are told beside the score."""
    meta = np.zeros(views.FILLS + 1, np.int64)
    meta[[views.KMAX, views.WHOLE, views.K, views.TIES, views.LISTED]] = k + max(8, k), True, k, ties, listed
    values = np.empty((0, width))
    return View(NOTHING, NOTHING, _NONE, NOTHING, NOTHING, NOTHING, NOTHING, _NONE, values, values, np.zeros(1), meta)


def lists_of(parts: Parts, spec: Spec, listed: bool) -> Lists:
    """The sorted lists of what the cells say now."""
    cells = int(parts.meta[CELLS])
    some = np.flatnonzero(parts.valid[:cells] > 0) if listed else NOTHING
    some = some[np.lexsort((-parts.hi[some], parts.stream[some]))]
    buffer = _buffer(cells if listed else 0)
    main = Sorted(parts.stream[some], parts.hi[some], some, np.zeros(some.size, np.int64))
    size = parts.owner.size
    return Lists(main, buffer, np.zeros(size, np.int64), parts.owner.copy(), np.zeros(1, np.int64), spec)


def merged_lists(lists: Lists) -> Lists:
    """The lists with their buffer merged in; it grows with them, so that neither merging nor inserting is dear."""
    main = with_buffer(lists)
    buffer = _buffer(main.stream.size)
    return lists._replace(
        main=main, buffer=buffer if buffer.stream.size > 2 * lists.buffer.stream.size else lists.buffer
    )


def _buffer(entries: int) -> Sorted:
    room = max(64, 4 * int(np.sqrt(entries)))
    return Sorted(np.zeros(room, np.int64), np.zeros(room), np.zeros(room, np.int64), np.zeros(room, np.int64))


def introduce(whole: Whole, codes: Ints) -> tuple[Whole, Ints]:
    """Gives objects that are new a place; returns the place of each code."""
    parts, view, _, _, order = whole
    objects = int(parts.meta[OBJECTS])
    place, fresh, order = places(parts.code, order, codes, objects)
    if fresh.size:
        parts = grown(parts, _OBJECT_FIELDS, objects + fresh.size)
        view = view_for(view, objects, fresh.size, parts.code.size)
        new = slice(objects, objects + fresh.size)
        parts.code[new], parts.first[new], parts.rows[new] = fresh, -1, 0
        parts.meta[OBJECTS] += fresh.size
    return whole._replace(parts=parts, view=view, order=order), place


def places(code: Ints, order: Ints, codes: Ints, used: int) -> tuple[Ints, Ints, Ints]:
    """The place of each of some codes; those that are new, which get places from ``used`` on; and the order with them.

    ``code`` tells the code at each place, ``order`` the places in the order of their codes.
    """
    distinct, which = np.unique(codes, return_inverse=True)
    known = code[order]
    at = np.searchsorted(known, distinct)
    old = np.zeros(distinct.size, bool)
    old[at < known.size] = known[at[at < known.size]] == distinct[at < known.size]
    place = np.empty(distinct.size, np.int64)
    place[old] = order[at[old]]
    fresh = distinct[~old]
    if fresh.size:
        place[~old] = np.arange(used, used + fresh.size)
        order = np.insert(order, at[~old], place[~old])
    return place[which], fresh, order


def view_for(view: View, first: int, new: int, room: int) -> View:
    """The view with places for new objects from ``first`` on, and room for so many in all."""
    view = grown(view, SLOT_FIELDS, room)
    view = grown(view, ("order", "shown"), room + 2)
    fresh = slice(first, first + new)
    view.alive[fresh], view.inside[fresh], view.entered[fresh] = 0, 0, np.nan
    return view


def with_room(whole: Whole, rows: int) -> Whole:
    """Room for so many more rows, and for as many cells."""
    parts, lists = whole.parts, whole.lists
    parts = grown(parts, _ROW_FIELDS, int(parts.meta[ROWS]) + rows)
    parts = grown(parts, _CELL_FIELDS, int(parts.meta[CELLS]) + rows)
    size = parts.owner.size
    if whole.view.meta[views.LISTED] and lists.stamp.size < size:
        lists = lists._replace(stamp=_wide(lists.stamp, size), owner=_wide(lists.owner, size))
    return whole._replace(parts=parts, lists=lists)


def compacted(whole: Whole, spec: Spec, keep: NDArray[np.bool_] | None = None) -> Whole:
    """Without the rows that expired or were superseded (or are not among ``keep``), and objects that have none left.

    Where ``keep`` is given, cells are added up anew from the rows that stay; scores are left for the caller.
    """
    parts, view, _, sketch, order = whole
    listed = bool(view.meta[views.LISTED])
    rows, cells, objects = (int(parts.meta[place]) for place in (ROWS, CELLS, OBJECTS))
    kept = np.arange(int(parts.meta[HEAD]), rows)
    kept = kept[parts.last[parts.cell[kept]] == parts.arrival[kept]] if not spec.many else kept
    if keep is not None:
        kept = kept[keep[kept]]
    alive = np.zeros(objects, bool)
    alive[parts.owner[parts.cell[kept]]] = True
    stays = np.flatnonzero(alive[parts.owner[:cells]])
    slots = np.flatnonzero(alive)
    to_slot, to_cell = ranks(slots, objects), ranks(stays, cells)
    columns: dict[str, Any] = {name: getattr(parts, name)[kept] for name in _ROW_FIELDS}
    columns |= {name: getattr(parts, name)[stays] for name in _CELL_FIELDS}
    columns |= {name: getattr(parts, name)[slots] for name in _OBJECT_FIELDS}
    columns["cell"] = to_cell[columns["cell"]]
    columns["owner"] = to_slot[columns["owner"]]
    columns["following"] = to_cell[columns["following"]]
    columns["first"] = to_cell[columns["first"]]
    meta = parts.meta.copy()
    meta[[HEAD, ROWS, CELLS, OBJECTS]] = 0, kept.size, stays.size, slots.size
    parts = Parts(**columns, meta=meta)
    if keep is not None:
        _add_up(parts)
    view = compacted_view(view, slots, to_slot)
    order = to_slot[order]
    return Whole(parts, view, lists_of(parts, spec, listed), sketch, order[order >= 0])


def wasteful(whole: Whole, many: bool) -> bool:
    """Whether most of the state is dead: rows that expired or were superseded, objects that have none left."""
    meta, parts = whole.parts.meta, whole.parts
    objects, cells = int(meta[OBJECTS]), int(meta[CELLS])
    alive = int(np.count_nonzero(parts.rows[:objects] > 0))
    counting = int(meta[ROWS] - meta[HEAD]) if many else int(parts.valid[:cells].sum())
    return objects > 2 * alive + 64 or meta[ROWS] > 2 * counting + 64


def rescored(whole: Whole, spec: Spec, function: Callable[[Floats], Floats] | None) -> Whole:
    """Every score anew, and a view that is to be filled."""
    parts, view = whole.parts, whole.view
    objects = int(parts.meta[OBJECTS])
    score = scores(parts, spec, function)
    view.score[:objects], view.position[:objects] = score, parts.newest[:objects]
    view.arrival[:objects], view.alive[:objects] = parts.newest_number[:objects], parts.rows[:objects]
    view.inside[:objects] = 0
    # A bar that nobody reaches: whatever comes, the view is filled before it is next looked at.
    view.bar[0], view.meta[views.BAR_TIME] = np.inf, np.iinfo(np.int64).max
    view.meta[views.SIZE], view.meta[views.WHOLE] = 0, 0
    return whole


def scores(parts: Parts, spec: Spec, function: Callable[[Floats], Floats] | None) -> Floats:
    """The score of every object in the window."""
    objects, cells = int(parts.meta[OBJECTS]), int(parts.meta[CELLS])
    if function is None:
        return kernel.all_scores(parts, spec)
    vectors = np.full((objects, spec.width), spec.low)
    some = np.flatnonzero(parts.valid[:cells] > 0)
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
    parts.hi[sums.group], parts.lo[sums.group] = sums.sums[:, 1], sums.sums[:, 2]
    parts.rows[:] = np.bincount(parts.owner[parts.cell], minlength=parts.code.size)


def compacted_view(view: View, slots: Ints, to_slot: Ints) -> View:
    """The view with some objects only; ``to_slot`` are their new places."""
    columns: dict[str, Any] = {name: getattr(view, name)[slots] for name in SLOT_FIELDS}
    meta = view.meta.copy()
    inside = to_slot[view.order[: meta[views.SIZE]]]
    shown = to_slot[view.shown[: meta[views.TOP]]]
    meta[views.SIZE] = (inside >= 0).sum()
    room = np.full(slots.size + 2, -1)
    order, told = room.copy(), room
    order[: meta[views.SIZE]] = inside[inside >= 0]
    told[: shown.size] = shown
    return View(order, told, **columns, bar=view.bar.copy(), meta=meta)


def ranks(kept: Ints, size: int) -> Ints:
    """New numbers for old: -1 where something is gone; the last entry makes -1 stay -1."""
    rank = np.full(size + 1, -1)
    rank[kept] = np.arange(kept.size)
    return rank


def grown(state: T, names: tuple[str, ...], size: int) -> T:
    """The state with room for so many entries in some of its fields."""
    if getattr(state, names[0]).size >= size:
        return state
    size = max(size, getattr(state, names[0]).size * 3 // 2)
    return state._replace(**{name: _wide(getattr(state, name), size) for name in names})


def _wide(array: NDArray[Any], size: int) -> NDArray[Any]:
    wide = np.zeros((size, *array.shape[1:]), array.dtype)
    wide[: array.shape[0]] = array
    return wide

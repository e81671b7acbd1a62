"""What the algorithms that put objects together row by row have in common."""

import numpy as np

from skyband.algorithms.contract import (
    FOREVER,
    NO_CHANGES,
    NO_RANKINGS,
    NOTHING,
    Emission,
    Floats,
    Ints,
    Rankings,
    Rows,
)
from skyband.algorithms.groups import parts as states
from skyband.algorithms.groups import places
from skyband.algorithms.groups.base import OverGroups, changes_of
from skyband.algorithms.groups.parts import AssembledState
from skyband.errors import QueryError
from skyband.kernels.common.ranking import k_best
from skyband.kernels.groups import assemble as kernel
from skyband.kernels.groups.assemble import Arriving, Events, EventsMeta, Parts, PartsMeta, Spec
from skyband.kernels.groups.sketches import Sketch
from skyband.kernels.groups.view import Log, ViewMeta, follow, no_log
from skyband.query import Query
from skyband.storage.blocks import copied, empty, plain

_HOW = {"sum": kernel.SUM, "count": kernel.SUM, "mean": kernel.MEAN, "max": kernel.MAX, "min": kernel.MIN,
        "product": kernel.PRODUCT}  # fmt: skip


class Assembled(OverGroups[AssembledState]):
    """Puts objects together from rows and tells which are best; the algorithms differ in how many rows they hold.

    Above the rows there is a view of the k_max best objects.
    """

    serves = frozenset({"hopping", "arrival"})
    state_type = AssembledState
    listed = False  # whether it keeps sorted lists

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        query = self.groups
        if query.asked is not None and not query.adds_up:
            raise QueryError(f"algorithm={self.name!r} serves the largest sums and counts of rows, not "
                             f"{query.beyond_sums}; leave algorithm out")  # fmt: skip
        self.function = query.aggregate if callable(query.aggregate) else None
        how = _HOW[str(query.aggregate)] if self.function is None else kernel.FUNCTION
        window = self.window
        self.spec = Spec(how, query.occurrences == "many", query.width or 0, query.low, window.extent,
                         window.every or 0, window.time)  # fmt: skip
        self.ties = query.ties == "all"
        view = states.no_view(query.k, self.ties, self._lists)
        lists = states.lists_of(empty(Parts), self._lists)
        self._blank = empty(AssembledState, view=view, lists=lists, sketch=self.fresh_sketch())
        self._events, self._log = kernel.no_events(self.spec.width if self.function else 0), no_log()

    def fresh(self) -> AssembledState:
        return copied(self._blank)

    def advance(self, state: AssembledState, rows: Rows, frontier: int) -> tuple[AssembledState, tuple[Emission, ...]]:
        rows, meta = rows.spelled_out(), plain(PartsMeta, state.parts.meta)
        state.parts.meta["touched"] = meta.rows
        if not rows.score.size and self.window.hopping and meta.next_end > frontier:
            return state, (NO_RANKINGS,)
        self._log.meta["held"] = 0
        begin, last = 0, False
        while not last:
            end = min(begin + self.stretch(state), rows.score.size)
            last = end == rows.score.size
            some = rows if last and not begin else rows.take(slice(begin, end))
            state, arriving = self._arriving(state, some)
            state = self.observe(state, some, arriving)
            state = self._taken(state, arriving, frontier if last else -FOREVER)
            state = self.settled(state)
            begin = end
        told = states.told(self._log)
        if told is None:
            return state, (NO_RANKINGS if self.window.hopping else NO_CHANGES,)
        return state, (_rankings(told) if self.window.hopping else changes_of(told),)

    def _taken(self, state: AssembledState, arriving: Arriving, frontier: int) -> AssembledState:
        """The state with the rows in it; what is to be told of them is in the log."""
        size, meta, spec = arriving.value.size, plain(PartsMeta, state.parts.meta), self.spec
        self._events = events = kernel.with_room(self._events, 2 * (meta.rows - meta.head) + 5 * size + 64)
        row = 0
        while row <= size:
            events.meta["held"] = 0
            row = kernel.assemble(state.parts, arriving, row, frontier, spec, events)
            if self.function is not None:
                self._score(events)
            event, held = 0, plain(EventsMeta, events.meta).held
            while (event := follow(state.view, state.lists, spec, events, event, self._log)) < held:
                self._log = states.with_entries(self._log, state.view)
                if self._lists:
                    state = state._replace(lists=states.merged_lists(state.lists))
        return state

    def stretch(self, state: AssembledState) -> int:
        """How many rows to take in before settling."""
        return 4096

    def fresh_sketch(self) -> Sketch:
        """What is kept of the streams beside the rows: nothing, unless the algorithm is approximate."""
        return empty(Sketch)

    def observe(self, state: AssembledState, rows: Rows, arriving: Arriving) -> AssembledState:
        """Sees the rows before they are taken in."""
        return state

    def settled(self, state: AssembledState) -> AssembledState:
        """The state with what is dead cleared away, once it is the most."""
        return states.compacted(state, self.spec, self._lists) if states.wasteful(state.parts) else state

    def snapshot(
        self, state: AssembledState, waiting: Rows, query: Query, k: int, last: int | None
    ) -> tuple[int, Ints, Floats]:
        window = self.window
        newest = self.newest if window.time and window.hopping else plain(PartsMeta, state.parts.meta).now
        end = newest + 1 if not window.hopping else window.first_end(newest)
        held = self._rows(state).join(waiting)
        held = held.take(held.position >= end - (last or window.extent))
        held = held.take(np.lexsort((held.arrival, held.position)))
        parts, arriving = self._alone(held)
        endless = self.spec._replace(extent=FOREVER, slide=0)
        kernel.assemble(parts, arriving, 0, 0, endless, kernel.with_room(self._events, 5 * held.score.size + 64))
        score = states.scores(parts, endless, self.function)
        newest_row = parts.newest_arrival[: score.size]
        best = k_best(score, parts.newest[: score.size], newest_row, k, self.ties)
        return end, newest_row[best], score[best]

    def arrivals(self, state: AssembledState) -> Ints:
        parts = state.parts
        return parts.newest_arrival[np.flatnonzero(parts.alive[: plain(PartsMeta, parts.meta).objects] > 0)]

    def arrived(self, state: AssembledState, since: int) -> Ints:
        parts, meta = state.parts, plain(PartsMeta, state.parts.meta)
        arrival = parts.newest_arrival[parts.owner[parts.cell[max(meta.head, meta.touched) : meta.rows]]]
        return arrival[arrival >= since]

    def count(self, state: AssembledState) -> int:
        meta = plain(PartsMeta, state.parts.meta)
        return meta.rows - meta.head

    def tags(self) -> tuple[Ints, ...]:
        found = [NOTHING]
        for state in self.states.values():
            alive = state.parts.alive[: places.held(state.objects)] > 0
            found.append(state.objects.code[: alive.size][alive])
        found += [np.setdiff1d(rows.tags[:, 0], np.concatenate(found)) for rows in self.waiting.values()]
        return np.sort(np.concatenate(found)), *self.streams.tags(self.groups)

    def retag(self, codes: tuple[Ints, ...]) -> None:
        for partition, state in self.states.items():
            state = states.compacted(state, self.spec, self._lists)
            self.states[partition] = state._replace(objects=places.retagged(state.objects, codes[0]))
        for partition, rows in self.waiting.items():
            tags = rows.tags.copy()
            tags[:, 0] = codes[0][tags[:, 0]]
            self.waiting[partition] = rows._replace(tags=tags)

    def verify(self, state: AssembledState) -> None:
        parts, view = state.parts, state.view
        meta, ranking = plain(PartsMeta, parts.meta), plain(ViewMeta, view.meta)
        places.check(state.objects)
        assert meta.objects == ranking.slots == places.held(state.objects), "an object has no place"
        rows, cells, objects = slice(meta.head, meta.rows), meta.cells, meta.objects
        position, arrival = parts.position[rows], parts.arrival[rows]
        assert (np.lexsort((arrival, position)) == np.arange(position.size)).all(), "rows are out of order"
        counting = np.ones(position.size, bool) if self.spec.many else parts.last[parts.cell[rows]] == arrival
        count = np.bincount(parts.cell[rows][counting], minlength=cells)
        assert (count == parts.valid[:cells]).all(), "rows of a cell were miscounted"
        assert (np.bincount(parts.owner[:cells], weights=count, minlength=objects) == parts.alive[:objects]).all()
        alive = parts.alive[:objects] > 0
        assert (meta.counting, meta.living) == (count.sum(), alive.sum()), "rows or objects were miscounted"
        assert (view.alive[:objects] == parts.alive[:objects]).all()
        score = states.scores(parts, self.spec, self.function)
        assert (score[alive] == view.score[:objects][alive]).all(), "a score is out of date"
        inside = view.order[: ranking.ranked]
        assert alive[inside].all() and np.unique(inside).size == inside.size
        best = k_best(view.score[inside], view.position[inside], view.arrival[inside], inside.size, False)
        assert (best == np.arange(inside.size)).all(), "the view is out of order"
        outside = np.setdiff1d(np.flatnonzero(alive), inside)
        assert not outside.size or not ranking.whole, "an object is missing from a view that holds all"
        if inside.size and outside.size:
            assert score[outside].max() <= view.score[inside[-1]], "an object outside is better than one inside"
        shown = view.shown[: ranking.top]
        assert (np.flatnonzero(~np.isnan(view.entered[:objects])) == np.sort(shown)).all(), "the top k was lost"

    def _score(self, events: Events) -> None:
        """Has the Python function score the events of a batch."""
        assert self.function is not None
        scored = np.flatnonzero(events.alive[: plain(EventsMeta, events.meta).held] > 0)
        events.score[scored] = states.evaluated(self.function, events.vector[:, scored].T.copy())

    @property
    def _lists(self) -> bool:
        return self.listed and self.function is None

    def _arriving(self, state: AssembledState, rows: Rows) -> tuple[AssembledState, Arriving]:
        """The rows as the kernels see them, and room for them."""
        size = rows.score.size
        codes = rows.tags[:, 0].copy() if size else NOTHING
        stream = np.zeros(size, np.int64)
        if size and self.groups.coded:
            stream[:] = rows.tags[:, -1]
        elif size and self.groups.stream is not None:
            stream[:] = rows.values[:, 0]
        state, slot = states.introduce(state, codes)
        state = states.with_room(state, size, self._lists)
        return state, Arriving(rows.score.copy(), rows.position.copy(), rows.arrival.copy(), slot, stream)

    def _alone(self, rows: Rows) -> tuple[Parts, Arriving]:
        """Rows as the kernels see them, and an empty state with room for them."""
        state, arriving = self._arriving(self.fresh(), rows)
        return state.parts, arriving

    def _rows(self, state: AssembledState) -> Rows:
        """The rows held, as they came."""
        parts, meta = state.parts, plain(PartsMeta, state.parts.meta)
        which = slice(meta.head, meta.rows)
        cell = parts.cell[which]
        code, stream = state.objects.code[parts.owner[cell]], parts.stream[cell]
        coded = self.groups.coded
        named = not coded and self.groups.stream is not None
        tags = np.stack([code, stream] if coded else [code], axis=1)
        columns = [stream] * named + [np.zeros_like(stream)] * self.groups.sketched  # as they were measured
        values = np.stack(columns, axis=1).astype(np.float64) if columns else np.empty((cell.size, 0))
        partition = np.zeros(cell.size, np.int64)
        return Rows(parts.value[which], parts.position[which], partition, parts.arrival[which], 0, 0, values, tags)


def _rankings(log: Log) -> Rankings:
    """All rows with one end are a block."""
    first = np.flatnonzero(np.diff(log.at, prepend=-FOREVER))
    return Rankings(log.at[first], first * 0, log.trigger[first], np.append(first, log.at.size), log.arrival, log.score)

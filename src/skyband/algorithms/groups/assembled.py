"""What the algorithms that put objects together row by row have in common."""

from collections import namedtuple
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import FOREVER, NO_RANKINGS, NOTHING, Changes, Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.groups import parts as states
from skyband.algorithms.groups.parts import Whole
from skyband.algorithms.partitioned import ByHand
from skyband.errors import QueryError
from skyband.kernels.common.ranking import k_best
from skyband.kernels.groups import assemble as kernel
from skyband.kernels.groups.assemble import CELLS, HEAD, NEXT, NOW, OBJECTS, ROWS, Arriving, Events, Parts, Spec
from skyband.kernels.groups.lists import Lists, Sorted
from skyband.kernels.groups.sketches import Sketch
from skyband.kernels.groups.view import SIZE, TOP, WHOLE, Log, View, follow, longer, no_log
from skyband.query import Query, TopKGroups

_HOW = {"sum": kernel.SUM, "count": kernel.SUM, "mean": kernel.MEAN, "max": kernel.MAX, "min": kernel.MIN,
        "product": kernel.PRODUCT}  # fmt: skip
_GROUPS: tuple[tuple[str, Any], ...] = (
    ("parts", Parts),
    ("view", View),
    ("main", Sorted),
    ("buffer", Sorted),
    ("sketch", Sketch),
)
_NAMES = [f"{name}_{field}" for name, kind in _GROUPS for field in kind._fields] + ["stamp", "owner", "used", "order"]
_Fields: Any = namedtuple("State", _NAMES)  # type: ignore[misc]
State = tuple[NDArray[Any], ...]


class Assembled(ByHand[State]):
    """An algorithm that holds rows and, above them, a view of the k_max best objects."""

    serves = frozenset({"hopping", "arrival"})
    state_type = _Fields
    listed = False  # whether it keeps sorted lists

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        query = self.asked
        if query.asked is not None and not query.adds_up:
            raise QueryError(f"algorithm={self.name!r} serves the largest sums and counts of rows, not "
                             f"{query.beyond_sums}; leave algorithm out")  # fmt: skip
        self.function = query.aggregate if callable(query.aggregate) else None
        how = _HOW[str(query.aggregate)] if self.function is None else kernel.FUNCTION
        window = self.window
        self.spec = Spec(how, query.occurrences == "many", query.width or 0, query.low, window.extent,
                         window.every or 0, window.time)  # fmt: skip
        self.ties = query.ties == "all"
        self.coded = query.stream is not None and not isinstance(query.streams, tuple)
        self.streams = 0  # codes of streams given out so far: they are never forgotten

    @property
    def asked(self) -> TopKGroups:
        """The query."""
        return cast(TopKGroups, self.query)

    def fresh(self) -> State:
        parts, listed = states.no_parts(), self._lists
        return _packed(Whole(parts, states.no_view(self.query.k, self.ties, listed),
                             states.lists_of(parts, self.spec, listed), self.fresh_sketch(), NOTHING))  # fmt: skip

    def update(self, rows: Rows, frontier: int) -> tuple[Emission, ...]:
        if self.coded and rows.score.size:
            self.streams = max(self.streams, int(rows.tags[:, 1].max()) + 1)
        return super().update(rows, frontier)

    def advance(self, state: State, rows: Rows, frontier: int) -> tuple[State, tuple[Emission, ...]]:
        whole, rows, log = self._unpacked(state), rows.spelled_out(), no_log(256)
        if not rows.score.size and self.window.hopping and whole.parts.meta[NEXT] > frontier:
            return state, (NO_RANKINGS,)
        begin, last = 0, False
        while not last:
            end = min(begin + self.stretch(whole), rows.score.size)
            last = end == rows.score.size
            some = rows.take(np.arange(begin, end))
            whole, arriving = self._arriving(whole, some)
            whole = self.observe(whole, some, arriving)
            whole, log = self._taken(whole, arriving, frontier if last else -FOREVER, log)
            whole = self.settled(whole)
            begin = end
        told = Log._make(column[: log.used[0]] for column in log)
        return _packed(whole), (_rankings(told) if self.window.hopping else changes_of(told),)

    def _taken(self, whole: Whole, arriving: Arriving, frontier: int, log: Log) -> tuple[Whole, Log]:
        """The state with the rows in it, and what is told of them."""
        parts, size = whole.parts, arriving.value.size
        events = kernel.no_events(2 * int(parts.meta[ROWS] - parts.meta[HEAD]) + 5 * size + 64, self.spec.width)
        row = 0
        while row <= size:
            events.used[0] = 0
            row = kernel.assemble(parts, arriving, row, frontier, self.spec, events)
            if self.function is not None:
                self._score(events)
            event = 0
            while True:
                event = follow(whole.view, whole.lists, events, event, log)
                if event == events.used[0]:
                    break
                if log.used[0] + 2 * (whole.view.meta[SIZE] + whole.view.meta[TOP]) > log.at.size:
                    log = longer(log, 4 * int(whole.view.meta[SIZE] + whole.view.meta[TOP]))
                if self._lists:
                    whole = whole._replace(lists=states.merged_lists(whole.lists))
        return whole, log

    def stretch(self, whole: Whole) -> int:
        """How many rows to take in before settling."""
        return 4096

    def fresh_sketch(self) -> Sketch:
        """What is kept of the streams beside the rows: nothing, unless the algorithm is approximate."""
        return Sketch(NOTHING, NOTHING, NOTHING, NOTHING, np.empty(0), NOTHING)

    def observe(self, whole: Whole, rows: Rows, arriving: Arriving) -> Whole:
        """Sees the rows before they are taken in."""
        return whole

    def settled(self, whole: Whole) -> Whole:
        """The state with what is dead cleared away, once it is the most."""
        return states.compacted(whole, self.spec) if states.wasteful(whole, self.spec.many) else whole

    def snapshot(self, state: State, waiting: Rows, query: Query, k: int, last: int | None) -> tuple[int, Ints, Floats]:
        parts, window = self._unpacked(state).parts, self.window
        newest = self.newest if window.time and window.hopping else int(parts.meta[NOW])
        end = newest + 1 if not window.hopping else window.first_end(newest)
        held = self._rows(parts).join(waiting)
        held = held.take(held.position >= end - (last or window.extent))
        held = held.take(np.lexsort((held.arrival, held.position)))
        whole = self._unpacked(self.fresh())
        whole, arriving = self._arriving(whole, held)
        endless = self.spec._replace(extent=FOREVER, slide=0)
        events = kernel.no_events(5 * held.score.size + 64, endless.width)
        kernel.assemble(whole.parts, arriving, 0, 0, endless, events)
        found = whole.parts
        score = states.scores(found, endless, self.function)
        objects = int(found.meta[OBJECTS])
        best = k_best(score, found.newest[:objects], found.newest_number[:objects], k, self.ties)
        return end, found.newest_number[best], score[best]

    def arrivals(self, state: State) -> Ints:
        parts = self._unpacked(state).parts
        return parts.newest_number[np.flatnonzero(parts.rows[: parts.meta[OBJECTS]] > 0)]

    def held(self, since: int = 0) -> Ints:
        found = [self.arrivals(state) for state in self.states.values()]
        found += [rows.arrival for rows in self.waiting.values()]
        return np.sort(np.concatenate([NOTHING, *(part[part >= since] for part in found)]))  # no row is there twice

    @property
    def candidates(self) -> int:
        held = (self._unpacked(state).parts.meta for state in self.states.values())
        return sum(int(meta[ROWS] - meta[HEAD]) for meta in held) + sum(r.score.size for r in self.waiting.values())

    def arrays(self) -> Any:
        yield "streams", np.array([self.streams])
        yield from super().arrays()

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.streams = int(arrays["streams"][0])
        super().restore({name: array.copy() for name, array in arrays.items() if name != "streams"})

    def tags(self) -> tuple[Ints, ...]:
        found = [NOTHING]
        for state in self.states.values():
            parts = self._unpacked(state).parts
            objects = int(parts.meta[OBJECTS])
            found.append(parts.code[:objects][parts.rows[:objects] > 0])
        found += [np.setdiff1d(rows.tags[:, 0], np.concatenate(found)) for rows in self.waiting.values()]
        return (np.sort(np.concatenate(found)), *([np.arange(self.streams)] if self.coded else []))

    def retag(self, codes: tuple[Ints, ...]) -> None:
        for partition, state in self.states.items():
            whole = states.compacted(self._unpacked(state), self.spec)
            whole.parts.code[:] = codes[0][whole.parts.code]
            self.states[partition] = _packed(whole)
        for partition, rows in self.waiting.items():
            tags = rows.tags.copy()
            tags[:, 0] = codes[0][tags[:, 0]]
            self.waiting[partition] = rows._replace(tags=tags)

    def verify(self, state: State) -> None:
        whole = self._unpacked(state)
        parts, view = whole.parts, whole.view
        rows, cells, objects = slice(parts.meta[HEAD], parts.meta[ROWS]), parts.meta[CELLS], parts.meta[OBJECTS]
        position, arrival = parts.position[rows], parts.arrival[rows]
        assert (np.lexsort((arrival, position)) == np.arange(position.size)).all(), "rows are out of order"
        counting = np.ones(position.size, bool) if self.spec.many else parts.last[parts.cell[rows]] == arrival
        count = np.bincount(parts.cell[rows][counting], minlength=cells)
        assert (count == parts.valid[:cells]).all(), "rows of a cell were miscounted"
        assert (np.bincount(parts.owner[:cells], weights=count, minlength=objects) == parts.rows[:objects]).all()
        alive = parts.rows[:objects] > 0
        assert (view.alive[:objects] == parts.rows[:objects]).all()
        score = states.scores(parts, self.spec, self.function)
        assert (score[alive] == view.score[:objects][alive]).all(), "a score is out of date"
        inside = view.order[: view.meta[SIZE]]
        assert alive[inside].all() and np.unique(inside).size == inside.size
        best = k_best(view.score[inside], view.position[inside], view.arrival[inside], inside.size, False)
        assert (best == np.arange(inside.size)).all(), "the view is out of order"
        outside = np.setdiff1d(np.flatnonzero(alive), inside)
        assert not outside.size or not view.meta[WHOLE], "an object is missing from a view that holds all"
        if inside.size and outside.size:
            assert score[outside].max() <= view.score[inside[-1]], "an object outside is better than one inside"
        shown = view.shown[: view.meta[TOP]]
        assert (np.flatnonzero(~np.isnan(view.entered[:objects])) == np.sort(shown)).all(), "the top k was lost"

    def _score(self, events: Events) -> None:
        """Has the Python function score the events of a batch."""
        assert self.function is not None
        used, width = int(events.used[0]), self.spec.width
        scored = np.flatnonzero(events.alive[:used] > 0)
        vectors = events.vector[: used * width].reshape(used, width)[scored]
        events.score[scored] = states.evaluated(self.function, vectors)

    @property
    def _lists(self) -> bool:
        return self.listed and self.function is None

    def _arriving(self, whole: Whole, rows: Rows) -> tuple[Whole, Arriving]:
        """The rows as the kernels see them, and room for them."""
        size = rows.score.size
        codes = rows.tags[:, 0] if size else NOTHING
        if not size or self.asked.stream is None:
            stream = np.zeros(size, np.int64)
        else:
            stream = rows.tags[:, 1].copy() if self.coded else rows.values[:, 0].astype(np.int64)
        whole, slot = states.introduce(whole, codes)
        whole = states.with_room(whole, size)
        return whole, Arriving(rows.score.copy(), rows.position.copy(), rows.arrival.copy(), slot, stream)

    def _rows(self, parts: Parts) -> Rows:
        """The rows held, as they came."""
        which = slice(parts.meta[HEAD], parts.meta[ROWS])
        cell = parts.cell[which]
        code, stream = parts.code[parts.owner[cell]], parts.stream[cell]
        named = not self.coded and self.asked.stream is not None
        tags = np.stack([code, stream] if self.coded else [code], axis=1)
        columns = [stream] * named + [np.zeros_like(stream)] * self.asked.sketched  # as they were measured
        values = np.stack(columns, axis=1).astype(np.float64) if columns else np.empty((cell.size, 0))
        return Rows(
            parts.value[which],
            parts.position[which],
            np.zeros(cell.size, np.int64),
            parts.arrival[which],
            0,
            0,
            values,
            tags,
        )

    def _unpacked(self, state: State) -> Whole:
        groups, begin = [], 0
        for _, kind in _GROUPS:
            groups.append(kind(*state[begin : begin + len(kind._fields)]))
            begin += len(kind._fields)
        parts, view, main, buffer, sketch = groups
        nothing = np.empty((view.score.size, 0))
        view = view._replace(values=nothing, told=nothing)
        stamp, owner, used, order = state[begin:]
        return Whole(parts, view, Lists(main, buffer, stamp, owner, used, self.spec), sketch, order)


def _packed(whole: Whole) -> State:
    lists = whole.lists
    state: State = _Fields._make((*whole.parts, *whole.view, *lists.main, *lists.buffer, *whole.sketch, lists.stamp,
                                  lists.owner, lists.used, whole.order))  # fmt: skip
    return state


def changes_of(log: Log) -> Changes:
    """What was told, as an algorithm returns it."""
    return Changes(log.trigger, log.at, NOTHING, log.op, log.arrival, log.score, values=log.values)


def _rankings(log: Log) -> Rankings:
    """All rows with one end are a block."""
    first = np.flatnonzero(np.diff(log.at, prepend=-FOREVER))
    return Rankings(log.at[first], first * 0, log.trigger[first], np.append(first, log.at.size), log.arrival, log.score)

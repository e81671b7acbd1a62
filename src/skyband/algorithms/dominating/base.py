"""What the algorithms for top-k dominating points have in common: the window, cut into steps."""

from abc import abstractmethod
from collections import namedtuple
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import FOREVER, NOTHING, Changes, Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.partitioned import ByHand, best
from skyband.kernels.dominating.harvest import dominating
from skyband.kernels.dominating.ledger import (
    GONE,
    RANK,
    SCORE,
    SHOWN,
    SHOWS,
    SIZE,
    SLOT,
    TOP,
    WHEN,
    WHO,
    Ledger,
    empty_ledger,
    with_slots,
)
from skyband.kernels.dominating.space import (
    CELL,
    COUNT,
    FREE,
    HEAD,
    LAID,
    NUMBER,
    ORDER,
    PLACE,
    SHAPE,
    SPACE,
    STRIDE,
    TAIL,
    TIME,
    TURN,
    Points,
    Space,
    all_points,
    empty_space,
    laid_out,
    stale,
)
from skyband.kernels.dominating.tell import ARRIVAL, HIGH, NONE, Told, all_told
from skyband.order import ranking
from skyband.query import Query, TopKDominating

PIECE = 1 << 12  # rows that are taken in at once, or as many as the window holds
NOTHING_TOLD = Told(np.empty((5, 0), np.int64), np.zeros(1, np.int64))
NOW, CLOSED = range(2)  # of the clock: the newest position, and the end of the last window that closed

# Fields that are tables, and their rows.
TABLES = {"slots": 7, "cells": 3, "axes": 3, "data": 7, "gone": 3, "cell": 7, "event": 5, "mark": 5, "rival": 2}

State = tuple[NDArray[Any], ...]


def joined(*parts: type[Any]) -> type[Any]:
    """A NamedTuple with the fields of several and a clock."""
    fields = [f"{part.__name__.lower()}{i}_{field}" for i, part in enumerate(parts) for field in part._fields]
    return namedtuple("State", [*fields, "clock"])


class Dominating(ByHand[State]):
    """An algorithm that holds all points of the window in a :class:`Space`, and exact scores in a :class:`Ledger`.

    A *step* is what happens between two answers: for windows that move with every arrival, one point comes and any
    number go; for hopping windows, all that come and go in a slide. A subclass says how steps are taken; its state
    begins with the space and the ledger.
    """

    serves = frozenset({"arrival", "hopping"})
    extra: ClassVar[tuple[type[Any], ...]] = ()  # further parts of the state
    per_cell: ClassVar[int] = 32  # points in a cell of the grid, about
    state_type = joined(Space, Ledger)

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        assert isinstance(self.query, TopKDominating)
        self.d = len(self.query.dimensions)
        self.k = self.query.k
        self.ties = self.query.ties == "all"
        self.work = np.zeros(3, np.int64)  # comparisons, exact scores, events: what the paper counts (Table 4)

    def __init_subclass__(cls) -> None:
        cls.state_type = joined(Space, Ledger, *cls.extra)

    @abstractmethod
    def take(self, state: State, rows: Points, steps: Ints) -> tuple[State, Told]:
        """Takes the steps; the space has room for the rows."""

    def spare(self) -> tuple[State, ...]:
        """The further parts of the state of a partition of which nothing has been seen."""
        return ()

    def moved(self, state: State, old: Space, slots: Ints, entry: Ints) -> State:
        """The state after its points have moved: ``slots`` were theirs in ``old``, oldest first, now they are 0, 1, …

        ``entry`` is what the ledger said of them, where it did not list them.
        """
        return state

    def fresh(self) -> State:
        clock = np.full(2, -FOREVER)
        return self.whole((clock,), empty_space(self.d), empty_ledger(self.d), *self.spare())

    def advance(self, state: State, rows: Rows, frontier: int) -> tuple[State, tuple[Emission, ...]]:
        rows = rows.spelled_out()
        x = rows.values if rows.score.size else np.empty((0, self.d))
        points = Points._make(map(_fixed, (x, rows.position, rows.arrival)))
        steps = self._slides(state, points, frontier) if self.window.hopping else self._arrivals(state, points)
        told = [NOTHING_TOLD]
        for part, its in self._pieces(state, points, steps):
            state, some = self.take(self._roomy(state, part), part, its)
            told.append(some)
        whole = all_told(told)
        return state, (_rankings(whole) if self.window.hopping else _changes(whole),)

    def snapshot(self, state: State, waiting: Rows, query: Query, k: int, last: int | None) -> tuple[int, Ints, Floats]:
        window, (space, ledger) = self.window, self.parts(state)[:2]
        now = int(state[-1][NOW])
        if not window.hopping and last in (None, window.extent):
            top = ledger.data[RANK, : ledger.meta[TOP]]
            kept = Rows(ledger.data[SCORE, top].astype(float), ledger.data[WHEN, top], NOTHING, ledger.data[WHO, top])
            return now + 1, *best(kept, k, self.ties)
        slots, x = all_points(space)
        position, arrival = space.slots[TIME, slots], space.slots[NUMBER, slots]
        if waiting.score.size:
            x, position = np.concatenate([x, waiting.values]), np.concatenate([position, waiting.position])
            arrival = np.concatenate([arrival, waiting.arrival])
        end = window.first_end(self.newest if window.time else now) if window.hopping else now + 1
        inside = position >= end - (last or window.extent)
        x, position, arrival = x[inside], position[inside], arrival[inside]
        found, score = dominating(x, k)
        rows = Rows(score.astype(float), position[found], NOTHING, arrival[found])
        return end, *best(rows, k, self.ties)

    def arrivals(self, state: State) -> Ints:
        space = self.parts(state)[0]
        turns = np.arange(space.meta[HEAD], space.meta[TAIL])
        arrivals: Ints = space.slots[NUMBER, space.slots[ORDER, turns % space.slots.shape[1]]]
        return arrivals

    def held(self, since: int = 0) -> Ints:
        parts = [self.arrivals(state) for state in self.states.values()]
        parts += [rows.arrival for rows in self.waiting.values()]
        return np.sort(np.concatenate([part[part >= since] for part in parts])) if parts else NOTHING

    @property
    def candidates(self) -> int:
        live = sum(int(np.diff(self.parts(state)[0].meta[HEAD : TAIL + 1])[0]) for state in self.states.values())
        return live + sum(rows.score.size for rows in self.waiting.values())

    def parts(self, state: State) -> tuple[Any, ...]:
        """The state as the NamedTuples it is made of."""
        found, at = [], 0
        kinds: tuple[Any, ...] = (Space, Ledger, *self.extra)
        for part in kinds:
            size = len(part._fields)
            arrays = zip(part._fields, state[at : at + size], strict=True)
            found.append(part(*(a.reshape(TABLES[f], -1) if f in TABLES else a for f, a in arrays)))
            at += size
        return tuple(found)

    def whole(self, state: State, *parts: tuple[NDArray[Any], ...]) -> State:
        """The state made of these parts and the clock of another."""
        made: State = self.state_type(*(array.ravel() for part in parts for array in part), state[-1])
        return made

    def verify(self, state: State) -> None:
        space, ledger = self.parts(state)[:2]
        slots, x = all_points(space)
        n, size = slots.size, ledger.meta[SIZE]
        assert np.unique(slots).size == n and space.meta[FREE] + n == space.slots.shape[1], "a slot is lost"
        age = np.lexsort((space.slots[NUMBER, slots], space.slots[TIME, slots]))
        assert (age == np.arange(n)).all(), "points are not in order of age"
        assert (space.slots[TURN, slots] == np.arange(space.meta[HEAD], space.meta[TAIL])).all()
        assert (space.owner[space.slots[PLACE, slots]] == slots).all(), "a point is not where it should be"
        assert (np.bincount(space.slots[CELL, slots], minlength=space.cells.shape[1]) == space.cells[COUNT]).all()
        assert (space.cells[COUNT] <= space.cells[SPACE]).all()
        width = space.edge.size // self.d
        edges = [space.edge[j * width : j * width + space.axes[SHAPE, j] - 1] for j in range(self.d)]
        along = np.stack([np.searchsorted(edge, x[:, j], "right") for j, edge in enumerate(edges)], axis=1)
        cell = (along * space.axes[STRIDE]).sum(axis=1)
        assert (space.slots[CELL, slots] == cell).all(), "a point is in the wrong cell"
        entries = ledger.data[SLOT, :size]
        assert (ledger.entry[entries] == np.arange(size)).all() and np.count_nonzero(ledger.entry >= 0) == size
        mine = np.searchsorted(slots[np.argsort(slots)], entries)
        points = x[np.argsort(slots)][mine]
        dominated = (points[:, None] <= x).all(axis=2) & (points[:, None] < x).any(axis=2)
        assert (ledger.data[SCORE, :size] == dominated.sum(axis=1)).all(), "a wrong score"
        top = ledger.data[RANK, : ledger.meta[TOP]]
        order = ranking(ledger.data[SCORE, :size].astype(float), ledger.data[WHEN, :size], ledger.data[WHO, :size])
        assert (order[: top.size] == top).all(), "the answer is not in order"
        assert top.size >= min(self.k, size) and ledger.meta[GONE] == 0
        assert np.count_nonzero(ledger.data[SHOWS, :size] >= 0) == (0 if self.window.hopping else ledger.meta[SHOWN])

    def _arrivals(self, state: State, rows: Points) -> Ints:
        """A step for each row."""
        clock, n = state[-1], rows.position.size
        now = np.maximum.accumulate(np.append(clock[NOW], rows.position))
        clock[NOW] = now[-1]
        return np.stack([np.arange(1, n + 1), now[1:] - self.window.extent, np.full(n, ARRIVAL), rows.arrival])

    def _slides(self, state: State, rows: Points, frontier: int) -> Ints:
        """A step for each window that closes and holds a point, and one for what belongs to later windows."""
        window, clock, slide = self.window, state[-1], self.window.slide
        newest = rows.position[-1:] if rows.position.size else clock[NOW : NOW + 1]
        if not window.time:
            frontier = int(newest[0]) + 1
        held = clock[NOW : NOW + 1] if self.parts(state)[0].meta[HEAD] < self.parts(state)[0].meta[TAIL] else NOTHING
        times = np.concatenate([held, rows.position])
        last = np.minimum((times + window.extent) // slide * slide, frontier // slide * slide)
        first = np.maximum((times // slide + 1) * slide, np.append(clock[CLOSED], last[:-1]) + slide)
        count = np.maximum((last - first) // slide + 1, 0)
        end = np.repeat(first, count)
        end += (np.arange(end.size) - np.repeat(np.cumsum(count) - count, count)) * slide
        clock[CLOSED] = max(clock[CLOSED], end[-1] if end.size else frontier // slide * slide)
        clock[NOW] = max(clock[NOW], newest[0])
        present = window.first_end(min(frontier, FOREVER) if window.time else frontier - 1)
        floor = np.append(end, present) - window.extent - 1
        arrival = np.append(rows.arrival, rows.position.size)
        trigger = np.append(arrival[np.searchsorted(rows.position, end - 1)], NONE)
        high = np.append(np.searchsorted(rows.position, end), rows.position.size)
        return np.stack([high, floor, np.append(end, NONE), trigger])

    def _pieces(self, state: State, rows: Points, steps: Ints) -> Iterator[tuple[Points, Ints]]:
        """The steps in order, so many at a time that the grid is looked after before the window is another one."""
        space, low, first = self.parts(state)[0], 0, 0
        n = int(space.meta[TAIL] - space.meta[HEAD]) if self.window.time else self.window.extent
        while first < steps.shape[1]:
            room = max(PIECE, n)
            last = max(first + 1, int(np.searchsorted(steps[HIGH], low + room, "right")))
            high = int(steps[HIGH, last - 1])
            its = np.ascontiguousarray(steps[:, first:last])
            its[HIGH] -= low
            yield Points._make(_fixed(column[low:high]) for column in rows), its
            n = n + high - low if self.window.time else n
            low, first = high, last

    def _roomy(self, state: State, rows: Points) -> State:
        """The state with room for the rows, and a grid that suits the points."""
        space, ledger, *extra = self.parts(state)
        n, room = int(space.meta[TAIL] - space.meta[HEAD]), space.slots.shape[1]
        most = n + rows.position.size
        most = most if self.window.time else min(most, self.window.extent)
        if most <= room <= 4 * most + 64 and most <= 2 * space.meta[LAID] and not stale(space):
            return state
        slots, x = all_points(space)
        wanted = most + most // 2 + 8
        wanted = wanted if self.window.time else min(wanted, self.window.extent)
        new = laid_out(x, space.slots[TIME, slots], space.slots[NUMBER, slots], wanted, rows.x, self.per_cell)
        entry = np.full(max(room, 1), -1)
        entry[slots] = np.arange(n)
        said, size = ledger.entry[slots], ledger.meta[SIZE]
        ledger = with_slots(ledger, wanted)
        ledger.data[SLOT, :size] = entry[ledger.data[SLOT, :size]]
        ledger.entry[ledger.data[SLOT, :size]] = np.arange(size)
        return self.moved(self.whole(state, new, ledger, *extra), space, slots, said)


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    """The array as the kernels take it: always read-only, so that one compiled version serves all."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _rankings(told: Told) -> Rankings:
    """A block for each end."""
    trigger, end, _, arrival, score = told.rows[:, : told.used[0]]
    first = np.flatnonzero(np.diff(end, prepend=NONE))
    return Rankings(end[first], NOTHING, trigger[first], np.append(first, end.size), arrival, score.astype(float))


def _changes(told: Told) -> Changes:
    trigger, at, op, arrival, score = told.rows[:, : told.used[0]]
    return Changes(trigger, at, NOTHING, op.astype(np.int8), arrival, score.astype(float))

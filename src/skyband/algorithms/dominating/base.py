"""What the algorithms for top-k dominating points have in common: the window, cut into steps."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from skyband.algorithms.contract import (
    FOREVER,
    NO_CHANGES,
    NO_RANKINGS,
    NOTHING,
    Changes,
    Emission,
    Floats,
    Ints,
    Rankings,
    Rows,
)
from skyband.algorithms.partitioned import PerKey, best
from skyband.kernels.dominating.harvest import dominating
from skyband.kernels.dominating.ledger import Ledger, LedgerMeta, empty_ledger, for_slots
from skyband.kernels.dominating.space import (
    Points,
    Space,
    SpaceMeta,
    all_points,
    empty_space,
    in_turn,
    laid_out,
    stale,
)
from skyband.kernels.dominating.tell import EACH, NONE, Steps, Told, ToldMeta
from skyband.kernels.dominating.work import WORK
from skyband.order import ranking
from skyband.query import Query, TopKDominating
from skyband.storage.blocks import Record, block, empty, plain, resized, scalars
from skyband.storage.memory import read_only

PIECE = 1 << 12  # rows that are taken in at once, or as many as the window holds


class Clock(NamedTuple):
    """How far a partition has come."""

    now: int = -FOREVER  # the newest position
    closed: int = -FOREVER  # the end of the last window that closed


@block(version=1)
class Standing(NamedTuple):
    """The state of a partition: what every algorithm has of it. States with more begin with the same fields."""

    space: Space
    ledger: Ledger
    clock: Annotated[Record, scalars(Clock)]


State = Any  # a block with at least the fields of Standing


class Dominating(PerKey[State]):
    """An algorithm that holds all points of the window in a :class:`Space`, and exact scores in a :class:`Ledger`.

    A *step* is what happens between two answers: for windows that move with every arrival, one point comes and any
    number go; for hopping windows, all that come and go in a slide. A subclass says how steps are taken.
    """

    serves = frozenset({"arrival", "hopping"})
    per_cell: ClassVar[int] = 32  # points in a cell of the grid, about
    state_type: ClassVar[type[Any]] = Standing

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        assert isinstance(self.query, TopKDominating)
        self.d = len(self.query.dimensions)
        self.k = self.query.k
        self.ties = self.query.ties == "all"
        self.work = np.zeros(1, WORK)  # what the paper counts (Table 4)
        self._told = resized(empty(Told), "rows", 64)

    @abstractmethod
    def take(self, state: State, rows: Points, steps: Steps, told: Told) -> tuple[State, Told]:
        """Takes the steps, and adds what is to be told after each; the space has room for the rows."""

    def further(self) -> dict[str, Any]:
        """The blocks that the state of a partition has beside those of :class:`Standing`, of nothing seen."""
        return {}

    def moved(self, state: State, old: Space, slots: Ints, entry: Ints) -> State:
        """The state after its points have moved: ``slots`` were theirs in ``old``, oldest first, now they are 0, 1, …

        ``entry`` is what the ledger said of them, where it did not list them.
        """
        return state

    def fresh(self) -> State:
        return empty(self.state_type, space=empty_space(self.d), ledger=empty_ledger(self.d), **self.further())

    def advance(self, state: State, rows: Rows, frontier: int) -> tuple[State, tuple[Emission, ...]]:
        rows = rows.spelled_out()
        x = rows.values if rows.score.size else np.empty((0, self.d))
        points = Points(read_only(x), read_only(rows.position), read_only(rows.arrival))
        state.space.meta["touched"] = plain(SpaceMeta, state.space.meta).tail
        steps = self._slides(state, points, frontier) if self.window.hopping else self._arrivals(state, points)
        self._told.meta["held"] = 0
        told = self._told
        for part, its in self._pieces(state, points, steps):
            state, told = self.take(self._roomy(state, part), part, its, told)
        if told.at.size <= PIECE:  # more is not worth keeping
            self._told = told
        return state, (_rankings(told) if self.window.hopping else _changes(told),)

    def snapshot(self, state: State, waiting: Rows, query: Query, k: int, last: int | None) -> tuple[int, Ints, Floats]:
        window, space, ledger = self.window, state.space, state.ledger
        now = plain(Clock, state.clock).now
        if not window.hopping and last in (None, window.extent):
            top = ledger.rank[: plain(LedgerMeta, ledger.meta).top]
            kept = Rows(ledger.score[top].astype(float), ledger.position[top], NOTHING, ledger.arrival[top])
            return now + 1, *best(kept, k, self.ties)
        slots, x = all_points(space)
        position, arrival = space.slots.position[slots], space.slots.arrival[slots]
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
        return _arrivals(state.space, 0)

    def arrived(self, state: State, since: int) -> Ints:
        arrivals = _arrivals(state.space, plain(SpaceMeta, state.space.meta).touched)
        return arrivals[arrivals >= since]

    def count(self, state: State) -> int:
        meta = plain(SpaceMeta, state.space.meta)
        return meta.tail - meta.head

    def verify(self, state: State) -> None:
        space, ledger, slots_of = state.space, state.ledger, state.space.slots
        meta, entries = plain(SpaceMeta, space.meta), plain(LedgerMeta, ledger.meta)
        slots, x = all_points(space)
        n, held = slots.size, entries.held
        assert np.unique(slots).size == n and meta.free + n == slots_of.cell.size, "a slot is lost"
        age = np.lexsort((slots_of.arrival[slots], slots_of.position[slots]))
        assert (age == np.arange(n)).all(), "points are not in order of age"
        assert np.count_nonzero(slots_of.arrival >= 0) == np.count_nonzero(slots_of.cell >= 0) == n
        assert (slots_of.turn[slots] == np.arange(meta.head, meta.tail)).all()
        assert (space.owner[slots_of.place[slots]] == slots).all(), "a point is not where it should be"
        members = np.bincount(slots_of.cell[slots], minlength=space.cells.members.size)
        assert (members == space.cells.members).all() and (members <= space.cells.room).all()
        edges = [edge[: g - 1] for edge, g in zip(space.grid.edge, space.grid.shape, strict=True)]
        along = np.stack([np.searchsorted(edge, x[:, j], "right") for j, edge in enumerate(edges)], axis=1)
        assert (slots_of.cell[slots] == (along * space.grid.stride).sum(axis=1)).all(), "a point is in the wrong cell"
        assert (ledger.entry[ledger.slot[:held]] == np.arange(held)).all()
        assert ledger.entry.size == slots_of.cell.size and np.count_nonzero(ledger.entry >= 0) == held
        mine = np.searchsorted(slots[np.argsort(slots)], ledger.slot[:held])
        points = x[np.argsort(slots)][mine]
        assert (points == ledger.x[:, :held].T).all(), "an entry is another point"
        dominated = (points[:, None] <= x).all(axis=2) & (points[:, None] < x).any(axis=2)
        assert (ledger.score[:held] == dominated.sum(axis=1)).all(), "a wrong score"
        top, score = ledger.rank[: entries.top], ledger.score[:held].astype(float)
        order = ranking(score, ledger.position[:held], ledger.arrival[:held])
        assert (order[: top.size] == top).all(), "the answer is not in order"
        assert top.size >= min(self.k, held) and entries.gone == 0
        assert np.count_nonzero(ledger.shows[:held] >= 0) == (0 if self.window.hopping else entries.shown)

    def _arrivals(self, state: State, rows: Points) -> Steps:
        """A step for each row."""
        n, newest = rows.position.size, plain(Clock, state.clock).now
        now = np.maximum(np.maximum.accumulate(rows.position), newest)
        state.clock["now"] = now[-1] if n else newest
        return Steps(np.arange(1, n + 1), now - self.window.extent, np.full(n, EACH), rows.arrival.copy())

    def _slides(self, state: State, rows: Points, frontier: int) -> Steps:
        """A step for each window that closes and holds a point, and one for what belongs to later windows."""
        window, slide, clock = self.window, self.window.slide, plain(Clock, state.clock)
        newest = int(rows.position[-1]) if rows.position.size else clock.now
        if not window.time:
            frontier = newest + 1
        times = np.concatenate([np.array([clock.now] if self.count(state) else [], np.int64), rows.position])
        last = np.minimum(window.last_end(times), window.last_closed(frontier))
        first = np.maximum(window.first_end(times), np.append(clock.closed, last[:-1]) + slide)
        count = np.maximum((last - first) // slide + 1, 0)
        end = np.repeat(first, count)
        end += (np.arange(end.size) - np.repeat(np.cumsum(count) - count, count)) * slide
        state.clock["closed"] = max(clock.closed, end[-1] if end.size else window.last_closed(frontier))
        state.clock["now"] = max(clock.now, newest)
        present = window.first_end(min(frontier, FOREVER) if window.time else frontier - 1)
        floor = np.append(end, present) - window.extent - 1
        arrival = np.append(rows.arrival, rows.position.size)
        trigger = np.append(arrival[np.searchsorted(rows.position, end - 1)], NONE)
        high = np.append(np.searchsorted(rows.position, end), rows.position.size)
        return Steps(high, floor, np.append(end, NONE), trigger)

    def _pieces(self, state: State, rows: Points, steps: Steps) -> Iterator[tuple[Points, Steps]]:
        """The steps in order, so many at a time that the grid is looked after before the window is another one."""
        low, first = 0, 0
        n = self.count(state) if self.window.time else self.window.extent
        if rows.position.size <= max(PIECE, n):
            if steps.high.size:
                yield rows, steps
            return
        while first < steps.high.size:
            room = max(PIECE, n)
            last = max(first + 1, int(np.searchsorted(steps.high, low + room, "right")))
            high = int(steps.high[last - 1])
            its = Steps._make(column[first:last] for column in steps)
            yield Points._make(column[low:high] for column in rows), its._replace(high=its.high - low)
            n = n + high - low if self.window.time else n
            low, first = high, last

    def _roomy(self, state: State, rows: Points) -> State:
        """The state with room for the rows, and a grid that suits the points."""
        space, ledger, meta = state.space, state.ledger, plain(SpaceMeta, state.space.meta)
        n, room = meta.tail - meta.head, space.slots.cell.size
        most = n + rows.position.size
        most = most if self.window.time else min(most, self.window.extent)
        if most <= room <= 4 * most + 64 and most <= 2 * meta.laid and not stale(space):
            return state
        slots, x = all_points(space)
        wanted = most + most // 2 + 8
        wanted = wanted if self.window.time else min(wanted, self.window.extent)
        position, arrival = space.slots.position[slots], space.slots.arrival[slots]
        new = laid_out(x, position, arrival, wanted, rows.x, self.per_cell)
        new.meta["touched"] = max(0, meta.touched - meta.head)  # turns begin at 0 again
        now = np.full(room, -1)
        now[slots] = np.arange(n)
        said, held = ledger.entry[slots], plain(LedgerMeta, ledger.meta).held
        ledger = for_slots(ledger, wanted)
        ledger.slot[:held] = now[ledger.slot[:held]]
        ledger.entry[ledger.slot[:held]] = np.arange(held)
        return self.moved(state._replace(space=new, ledger=ledger), space, slots, said)


def _arrivals(space: Space, first: int) -> Ints:
    """The arrival numbers of the points from a turn on."""
    arrivals: Ints = space.slots.arrival[in_turn(space, first)]
    return arrivals


def _rankings(told: Told) -> Rankings:
    """A block for each end."""
    held = plain(ToldMeta, told.meta).held
    if not held:
        return NO_RANKINGS
    end = told.at[:held]
    first = np.flatnonzero(np.diff(end, prepend=NONE))
    offset, score = np.append(first, held), told.score[:held].astype(float)
    return Rankings(end[first], NOTHING, told.trigger[first], offset, told.arrival[:held].copy(), score)


def _changes(told: Told) -> Changes:
    held = plain(ToldMeta, told.meta).held
    if not held:
        return NO_CHANGES
    trigger, at, op, arrival = told.trigger[:held], told.at[:held], told.op[:held], told.arrival[:held]
    score = told.score[:held].astype(float)
    return Changes(trigger.copy(), at.copy(), NOTHING, op.copy(), arrival.copy(), score)

"""The base of the algorithms that keep one state for each partition by itself."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import (
    FOREVER,
    NO_CHANGES,
    NO_RANKINGS,
    NO_TAGS,
    NO_VALUES,
    NOTHING,
    Algorithm,
    Changes,
    Emission,
    Floats,
    Ints,
    Rankings,
    Rows,
)
from skyband.order import ranking
from skyband.query import Query
from skyband.storage import blocks
from skyband.storage.blocks import ARRIVAL, TAG, block, column

S = TypeVar("S", bound=tuple[Any, ...])


@block(version=1)
class Waiting(NamedTuple):
    """Rows of one partition that wait for their pane to close."""

    score: Annotated[Floats, column("rows")]
    position: Annotated[Ints, column("rows")]
    arrival: Annotated[Ints, column("rows", holds=ARRIVAL)]
    values: Annotated[Floats, column("rows", wide=True)]
    tags: Annotated[Ints, column("rows", wide=True, holds=TAG)]

    @classmethod
    def of(cls, rows: Rows) -> "Waiting":
        """The block of some rows."""
        size = rows.score.size
        values = rows.values.T if rows.values.size else np.empty((0, size))
        tags = rows.tags.T if rows.tags.size else np.empty((0, size), np.int64)
        return cls(rows.score, rows.position, rows.arrival, values, tags)

    def rows(self, partition: int) -> Rows:
        """The rows of the block."""
        values = self.values.T if self.values.size else NO_VALUES
        tags = self.tags.T if self.tags.size else NO_TAGS
        which = np.full(self.score.size, partition)
        return Rows(self.score, self.position, which, self.arrival, 0, 0, values, tags)


class PerKey(Algorithm, Generic[S]):
    """An algorithm that keeps a state (a block) for each partition by itself.

    A subclass says how one partition advances; the rows it is handed are of that partition only. For windows that
    move with every arrival they come in arrival order, perhaps out of event-time order. For hopping windows they come
    in event-time order and only when the frontier has passed their pane: the rows ahead of it wait here.
    """

    state_type: ClassVar[type[Any]]  # the block

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        self.states: dict[int, S] = {}
        self.waiting: dict[int, Rows] = {}
        self.newest = -FOREVER  # event time, over all partitions: hopping windows are the same for all of them
        self.touched: list[int] = []  # the partitions that the last batch had rows of
        self._panes = -FOREVER  # of event time, the panes up to here are closed in all partitions
        self._counts: dict[int, int] = {}  # objects held, by partition, as last counted,
        self._total = 0  # and of all
        self._uncounted: set[int] = set()  # partitions where they may have changed since

    @abstractmethod
    def fresh(self) -> S:
        """The state of a partition of which nothing has been seen."""

    @abstractmethod
    def advance(self, state: S, rows: Rows, frontier: int) -> tuple[S, tuple[Emission, ...]]:
        """The next state, and what happened. Hopping windows with ``end <= frontier`` are to be closed."""

    @abstractmethod
    def snapshot(self, state: S, waiting: Rows, query: Query, k: int, last: int | None) -> tuple[int, Ints, Floats]:
        """Where the present window of ``query`` ends, and its k best: arrival numbers and scores, best first.

        The present window of a partition is, for hopping windows, the first one that holds ``self.newest`` (time), or
        the partition's newest object (count).
        """

    @abstractmethod
    def arrivals(self, state: S) -> Ints:
        """The arrival numbers of the objects in a state, in any order."""

    def arrived(self, state: S, since: int) -> Ints:
        """Those of :meth:`arrivals` from ``since``, the first of the last batch, on."""
        arrivals = self.arrivals(state)
        return arrivals[arrivals >= since]

    def count(self, state: S) -> int:
        """How many objects are in a state."""
        return np.unique(self.arrivals(state)).size

    @abstractmethod
    def verify(self, state: S) -> None:
        """Assert the invariants of one state."""

    def idle(self, state: S) -> bool:
        """Whether the state holds nothing that a later row could need, so that the partition may be forgotten."""
        return self.window.time and self.count(state) == 0

    def update(self, rows: Rows, frontier: int) -> tuple[Emission, ...]:
        hopping = self.window.hopping
        emitted: list[tuple[Emission, ...]] = []
        touched = dict(_by_key(rows)) if rows.score.size else {}
        if rows.position.size:
            self.newest = max(self.newest, int(rows.position.max()))
        self.touched = sorted(touched)
        partitions = self.touched
        if hopping and self.window.time and (closed := self.window.pane_of(frontier)) > self._panes:
            # Windows may close, and rows that wait may ripen, where the batch has no rows too.
            partitions, self._panes = sorted(self.states.keys() | touched.keys()), closed
        self._uncounted.update(partitions)
        for partition in partitions:
            state = self.states.get(partition)
            part = touched.get(partition, Rows(np.empty(0)))
            if hopping:
                part, bound = self._ripe(partition, part.spelled_out(), frontier)
            else:
                bound = frontier
            state, events = self.advance(self.fresh() if state is None else state, part, bound)
            self.states[partition] = state
            if hopping and self.idle(state) and partition not in self.waiting:
                del self.states[partition]
            emitted.append(tuple(_keyed(event, partition) for event in events))
        return self._merged(emitted)

    def finish(self) -> tuple[Emission, ...]:
        if not self.window.hopping or not self.window.time:
            return self._merged([])
        return self.update(Rows(np.empty(0)), FOREVER)

    def look_ahead(self, newest: int) -> None:
        self.newest = max(self.newest, newest)

    def result(self, query: Query, k: int, last: int | None = None) -> Rankings:
        blocks = []
        for partition in sorted(self.states):
            waiting = self.waiting.get(partition, Rows(np.empty(0)))
            end, arrival, score = self.snapshot(self.states[partition], waiting, query, k, last)
            if arrival.size:
                one = np.array([end]), np.array([partition]), np.array([0]), np.array([0, arrival.size])
                blocks.append(Rankings(*one, arrival, score))
        return join_rankings(blocks)

    def held(self, since: int = 0) -> Ints:
        if since:
            parts = [self.arrived(self.states[p], since) for p in self.touched if p in self.states]
            waiting = [self.waiting[p].arrival for p in self.touched if p in self.waiting]
        else:
            parts = [self.arrivals(state) for state in self.states.values()]
            waiting = [rows.arrival for rows in self.waiting.values()]
        parts += [arrivals[arrivals >= since] for arrivals in waiting]
        arrival = parts[0] if len(parts) == 1 else np.concatenate([NOTHING, *parts])
        return np.unique(arrival) if arrival.size > 1 else arrival.copy()

    @property
    def candidates(self) -> int:
        for partition in self._uncounted:
            count = self.count(self.states[partition]) if partition in self.states else 0
            count += self.waiting[partition].score.size if partition in self.waiting else 0
            self._total += count - self._counts.pop(partition, 0)
            if count:
                self._counts[partition] = count
        self._uncounted.clear()
        return self._total

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        yield "newest", np.array([self.newest])
        partitions = sorted(self.states)
        yield "partitions", np.array(partitions, np.int64)
        yield from blocks.saved(self.state_type, [self.states[partition] for partition in partitions], "state.")
        waiting = sorted(self.waiting)
        yield "waiting", np.array(waiting, np.int64)
        yield from blocks.saved(Waiting, [Waiting.of(self.waiting[partition]) for partition in waiting], "waiting.")

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.newest = int(arrays["newest"][0])
        states = blocks.restored(self.state_type, arrays, "state.")
        self.states = dict(zip(arrays["partitions"].tolist(), states, strict=True))
        rows = blocks.restored(Waiting, arrays, "waiting.")
        self.waiting = {p: block.rows(p) for p, block in zip(arrays["waiting"].tolist(), rows, strict=True)}
        self._panes = -FOREVER
        self.recount()

    def recount(self) -> None:
        """Counts the objects of all partitions anew, when they are next asked for."""
        self._counts, self._total, self.touched = {}, 0, []
        self._uncounted = {*self.states, *self.waiting}

    @property
    def nbytes(self) -> int:
        states: list[Any] = [*self.states.values(), *(Waiting.of(rows) for rows in self.waiting.values())]
        return 8 * (1 + len(states)) + sum(map(blocks.nbytes, states))

    def partitions(self) -> Ints:
        return np.array(sorted(self.states), np.int64)

    def rekey(self, code: Ints) -> None:
        self.states = {int(code[partition]): state for partition, state in self.states.items()}
        self.waiting = {
            int(code[partition]): rows._replace(partition=code[rows.partition])
            for partition, rows in self.waiting.items()
        }
        self._counts, self._total = {}, 0
        self._uncounted = {*self.states, *self.waiting}
        self.touched = [int(code[partition]) for partition in self.touched if code[partition] >= 0]

    def check(self) -> None:
        for state in self.states.values():
            blocks.check(state)
            self.verify(state)

    def _ripe(self, partition: int, rows: Rows, frontier: int) -> tuple[Rows, int]:
        """Splits what has come into rows whose pane is closed, in event-time order, and rows that wait."""
        if partition in self.waiting:
            rows = self.waiting.pop(partition).join(rows)
        if not self.window.time:
            frontier = int(rows.position[-1]) + 1 if rows.score.size else 0
            return rows, frontier
        order = np.lexsort((rows.arrival, rows.position))
        bound = self.window.pane_of(min(frontier, FOREVER)) * self.window.pane
        cut = int(np.searchsorted(rows.position[order], bound))
        if cut < order.size:
            self.waiting[partition] = rows.take(order[cut:])
        return rows.take(order[:cut]), frontier

    def _merged(self, emitted: list[tuple[Emission, ...]]) -> tuple[Emission, ...]:
        if not emitted:
            return tuple(NO_RANKINGS if self.window.hopping else NO_CHANGES for _ in self.queries)
        if len(emitted) == 1:
            return emitted[0]
        join = join_rankings if self.window.hopping else _join_changes
        return tuple(join(list(events)) for events in zip(*emitted, strict=True))


def by_arrival(parts: Iterable[tuple[int, Rows]]) -> Rows:
    """The objects of partitions, given by their partition, in the order of their arrival."""
    nothing = np.empty(0), NOTHING, NOTHING, NOTHING
    spelled = [nothing, *((part.score, part.position, np.full(part.score.size, p), part.arrival) for p, part in parts)]
    score, position, partition, arrival = (np.concatenate(column) for column in zip(*spelled, strict=True))
    return Rows(score, position, partition, arrival).take(np.argsort(arrival))


def _by_key(rows: Rows) -> Iterator[tuple[int, Rows]]:
    """The rows of each partition, in arrival order."""
    if not rows.partition.size:
        yield 0, rows
        return
    rows = rows.spelled_out()
    rows = rows.take(np.argsort(rows.partition, kind="stable"))
    cuts = [0, *(np.flatnonzero(np.diff(rows.partition)) + 1).tolist(), rows.score.size]
    for partition, part in zip(rows.partition[cuts[:-1]].tolist(), map(slice, cuts[:-1], cuts[1:]), strict=True):
        yield partition, rows.take(part)


def _keyed(event: Emission, partition: int) -> Emission:
    count = event.end.size if isinstance(event, Rankings) else event.at.size
    return event._replace(partition=np.full(count, partition)) if count else event


def join_rankings(parts: list[Rankings]) -> Rankings:
    """Blocks after blocks."""
    if not parts:
        return NO_RANKINGS
    shift = np.cumsum([0] + [part.arrival.size for part in parts])
    offset = np.concatenate([part.offset[:-1] + by for part, by in zip(parts, shift, strict=False)] + [shift[-1:]])
    joined = Rankings._make(np.concatenate(column) for column in zip(*parts, strict=True))
    return joined._replace(offset=offset)


def _join_changes(parts: list[Changes]) -> Changes:
    parts = [part for part in parts if part.at.size]
    if not parts:
        return NO_CHANGES
    joined = Changes._make(np.concatenate(column) for column in zip(*parts, strict=True))
    return joined.take(np.argsort(joined.trigger, kind="stable"))


def best(rows: Rows, k: int, ties: bool) -> tuple[Ints, Floats]:
    """The k best of some rows (all that tie with the k-th if ``ties``): arrival numbers and scores, best first."""
    order = ranking(rows.score, rows.position, rows.arrival)
    if ties and order.size > k:
        k = int(np.count_nonzero(rows.score >= rows.score[order[k - 1]]))
    return rows.arrival[order[:k]], rows.score[order[:k]]

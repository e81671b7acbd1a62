"""The contract of every algorithm for top-k objects, and the base of those that keep one state a partition.

What an algorithm sees of a batch is :class:`Rows`: invalid and late rows are gone, scores are goodness (larger is
better), and positions are event times or object numbers. What it returns is :class:`Rankings` (hopping windows) or
:class:`Changes` (every arrival), one for each query it serves. It knows objects by their arrival number; the columns
of the rows it holds are kept beside it by :class:`skyband.Monitor`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from skyband.errors import QueryError
from skyband.kernels.output import Output
from skyband.order import ranking
from skyband.positions import FOREVER as FOREVER
from skyband.queries import TopK
from skyband.windows import Window

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NOTHING: Ints = np.empty(0, np.int64)


class Rows(NamedTuple):
    """A batch in arrival order. An empty ``time``, ``key`` or ``number`` stands for t0 + i, 0 and n0 + i."""

    score: Floats
    time: Ints = NOTHING
    key: Ints = NOTHING
    number: Ints = NOTHING
    t0: int = 0
    n0: int = 0

    def spelled_out(self) -> "Rows":
        """The same rows with no array left implied."""
        size = self.score.size
        if not size:
            return Rows(self.score)
        time = self.time if self.time.size else np.arange(self.t0, self.t0 + size)
        key = self.key if self.key.size else np.zeros(size, np.int64)
        number = self.number if self.number.size else np.arange(self.n0, self.n0 + size)
        return Rows(self.score, time, key, number)

    def take(self, indices: NDArray[Any]) -> "Rows":
        """Some of the rows; wants them spelled out."""
        return Rows(self.score[indices], self.time[indices], self.key[indices], self.number[indices])

    def join(self, other: "Rows") -> "Rows":
        """These rows and then the others; wants both spelled out."""
        return Rows._make([*(np.concatenate(pair) for pair in zip(self[:4], other[:4], strict=True)), 0, 0])


class Rankings(NamedTuple):
    """Windows that closed. Block b holds ``number[offset[b]:offset[b + 1]]``, best first."""

    end: Ints  # of each block: where its window ends
    key: Ints  # its partition
    trigger: Ints  # count windows: the arrival number of the object that closed it
    offset: Ints
    number: Ints  # of each row: the object's arrival number
    score: Floats

    @classmethod
    def of(cls, out: Output) -> "Rankings":
        """What a kernel emitted."""
        blocks, rows = out.used
        return cls(out.end[:blocks], out.key[:blocks], out.trigger[:blocks], out.offset[: blocks + 1],
                   out.number[:rows], out.score[:rows])  # fmt: skip


class Changes(NamedTuple):
    """Who entered and left the top k, in the order in which it happened."""

    trigger: Ints  # the arrival number of the object whose arrival did it
    at: Ints  # that arrival's position: event time, or object number
    key: Ints
    op: NDArray[np.int8]  # +1 entered, -1 left
    number: Ints
    score: Floats


Emission = Rankings | Changes

NO_RANKINGS = Rankings(NOTHING, NOTHING, NOTHING, np.zeros(1, np.int64), NOTHING, np.empty(0))
NO_CHANGES = Changes(NOTHING, NOTHING, NOTHING, np.empty(0, np.int8), NOTHING, np.empty(0))


class Algorithm(ABC):
    """One algorithm at work on one stream: ``update``, ``finish``, ``result``, ``save``/``restore``, ``check``.

    Subclasses name themselves as in their paper; :func:`skyband.plan.algorithms` finds them.
    """

    name: ClassVar[str]
    serves: ClassVar[frozenset[str]]  # of "hopping" and "arrival"
    exact: ClassVar[bool] = True
    several: ClassVar[bool] = False  # serves several k and windows of one scoring function at once
    any_last: ClassVar[bool] = True  # hopping: snapshots of windows that are not a whole number of slides shorter
    options: ClassVar[dict[str, float]] = {}  # the options it takes, with their defaults

    def __init__(self, *queries: TopK, **options: float) -> None:
        for option in options:
            if option not in self.options:
                raise QueryError(f"algorithm {self.name!r} has no option {option!r}; "
                                 f"it takes {', '.join(self.options) or 'none'}")  # fmt: skip
        if wrong := [option for option, value in options.items() if not np.isfinite(value)]:
            raise QueryError(
                f"option {wrong[0]}={options[wrong[0]]} of algorithm {self.name!r} must be a finite number"
            )
        self.queries = queries
        self.query = queries[0]
        self.window: Window = self.query.window
        self.parameters = {**self.options, **options}

    @abstractmethod
    def update(self, rows: Rows, frontier: int) -> tuple[Emission, ...]:
        """Take a batch in, and return what it brought about, one emission for each query.

        ``frontier`` is, for time windows, the watermark after this batch: no row before it comes any more. Count
        windows do without it, since their rows come in order.
        """

    @abstractmethod
    def finish(self) -> tuple[Emission, ...]:
        """The stream ended: close what is open."""

    @abstractmethod
    def result(self, query: TopK, k: int, last: int | None = None) -> Rankings:
        """The ranking as it stands, a block a partition: the k best among the last ``last`` positions."""

    @abstractmethod
    def held(self, since: int = 0) -> Ints:
        """The arrival numbers, from ``since`` on, of the objects held, ascending: whose columns must be kept."""

    @abstractmethod
    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """The whole state as named one-dimensional arrays."""

    @abstractmethod
    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what :meth:`arrays` gave."""

    @abstractmethod
    def keys(self) -> Ints:
        """The partitions that still have state, ascending."""

    @abstractmethod
    def rekey(self, code: Ints) -> None:
        """Partitions are numbered anew: what was ``key`` is now ``code[key]``."""

    @abstractmethod
    def check(self) -> None:
        """Assert every invariant of the structure; tests call it after each step."""

    @property
    def candidates(self) -> int:
        """Objects held."""
        return self.held().size

    @property
    def nbytes(self) -> int:
        """Bytes in the arrays of the state."""
        return sum(array.nbytes for _, array in self.arrays())


_COLUMNS = Rows._fields[:4]
S = TypeVar("S", bound=tuple[NDArray[Any], ...])


class PerKey(Algorithm, Generic[S]):
    """An algorithm that keeps a state (a NamedTuple of arrays) for each partition by itself.

    A subclass says how one partition advances; the rows it is handed are of that partition only. For windows that
    move with every arrival they come in arrival order, perhaps out of event-time order. For hopping windows they come
    in event-time order and only when the frontier has passed their pane: the rows ahead of it wait here.
    """

    state_type: ClassVar[type[Any]]  # the NamedTuple

    def __init__(self, *queries: TopK, **options: float) -> None:
        super().__init__(*queries, **options)
        self.states: dict[int, S] = {}
        self.waiting: dict[int, Rows] = {}
        self.newest = -FOREVER  # event time, over all partitions: hopping windows are the same for all of them

    @abstractmethod
    def fresh(self) -> S:
        """The state of a partition of which nothing has been seen."""

    @abstractmethod
    def advance(self, state: S, rows: Rows, frontier: int) -> tuple[S, tuple[Emission, ...]]:
        """The next state, and what happened. Hopping windows with ``end <= frontier`` are to be closed."""

    @abstractmethod
    def snapshot(self, state: S, waiting: Rows, query: TopK, k: int, last: int | None) -> tuple[int, Ints, Floats]:
        """Where the present window of ``query`` ends, and its k best: arrival numbers and scores, best first.

        The present window of a partition is, for hopping windows, the first one that holds ``self.newest`` (time), or
        the partition's newest object (count).
        """

    @abstractmethod
    def numbers(self, state: S) -> Ints:
        """The arrival numbers of the objects in a state, in any order."""

    @abstractmethod
    def verify(self, state: S) -> None:
        """Assert the invariants of one state."""

    def idle(self, state: S) -> bool:
        """Whether the state holds nothing that a later row could need, so that the partition may be forgotten."""
        return self.window.time and self.numbers(state).size == 0

    def update(self, rows: Rows, frontier: int) -> tuple[Emission, ...]:
        hopping = self.window.hopping
        emitted: list[tuple[Emission, ...]] = []
        touched = dict(_by_key(rows)) if rows.score.size else {}
        self.newest = max(self.newest, int(rows.time.max(initial=-FOREVER)))
        keys = sorted(self.states.keys() | touched.keys()) if hopping and self.window.time else sorted(touched)
        for key in keys:
            state = self.states.get(key)
            part = touched.get(key, Rows(np.empty(0)))
            if hopping:
                part, bound = self._ripe(key, part.spelled_out(), frontier)
            else:
                bound = frontier
            state, events = self.advance(self.fresh() if state is None else state, part, bound)
            self.states[key] = state
            if hopping and self.idle(state) and key not in self.waiting:
                del self.states[key]
            emitted.append(tuple(_keyed(event, key) for event in events))
        return self._merged(emitted)

    def finish(self) -> tuple[Emission, ...]:
        if not self.window.hopping or not self.window.time:
            return self._merged([])
        return self.update(Rows(np.empty(0)), FOREVER)

    def result(self, query: TopK, k: int, last: int | None = None) -> Rankings:
        blocks = []
        for key in sorted(self.states):
            waiting = self.waiting.get(key, Rows(np.empty(0)))
            end, number, score = self.snapshot(self.states[key], waiting, query, k, last)
            if number.size:
                one = np.array([end]), np.array([key]), np.array([0]), np.array([0, number.size])
                blocks.append(Rankings(*one, number, score))
        return _join_rankings(blocks)

    def held(self, since: int = 0) -> Ints:
        parts = [self.numbers(state) for state in self.states.values()]
        parts += [rows.number for rows in self.waiting.values()]
        return np.unique(np.concatenate([part[part >= since] for part in parts])) if parts else NOTHING

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        yield "newest", np.array([self.newest])
        for key in sorted(self.states):
            for name, array in zip(self.state_type._fields, self.states[key], strict=True):
                yield f"{key}.{name}", array
        for key in sorted(self.waiting):
            for name in _COLUMNS:
                yield f"{key}.waiting.{name}", getattr(self.waiting[key], name)

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.newest = int(arrays["newest"][0])
        self.states, self.waiting = {}, {}
        parts: dict[int, dict[str, NDArray[Any]]] = {}
        for name, array in arrays.items():
            key, _, field = name.partition(".")
            if field:
                parts.setdefault(int(key), {})[field] = array
        for code, part in parts.items():
            self.states[code] = self.state_type(*(part[field] for field in self.state_type._fields))
            if f"waiting.{_COLUMNS[0]}" in part:
                self.waiting[code] = Rows._make([*(part[f"waiting.{field}"] for field in _COLUMNS), 0, 0])

    def keys(self) -> Ints:
        return np.array(sorted(self.states), np.int64)

    def rekey(self, code: Ints) -> None:
        self.states = {int(code[key]): state for key, state in self.states.items()}
        self.waiting = {int(code[key]): rows._replace(key=code[rows.key]) for key, rows in self.waiting.items()}

    def check(self) -> None:
        for state in self.states.values():
            self.verify(state)

    def _ripe(self, key: int, rows: Rows, frontier: int) -> tuple[Rows, int]:
        """Splits what has come into rows whose pane is closed, in event-time order, and rows that wait."""
        if key in self.waiting:
            rows = self.waiting.pop(key).join(rows)
        if not self.window.time:
            frontier = int(rows.time[-1]) + 1 if rows.score.size else 0
            return rows, frontier
        order = np.lexsort((rows.number, rows.time))
        bound = min(frontier, FOREVER) // self.window.pane * self.window.pane
        cut = int(np.searchsorted(rows.time[order], bound))
        if cut < order.size:
            self.waiting[key] = rows.take(order[cut:])
        return rows.take(order[:cut]), frontier

    def _merged(self, emitted: list[tuple[Emission, ...]]) -> tuple[Emission, ...]:
        if not emitted:
            return tuple(NO_RANKINGS if self.window.hopping else NO_CHANGES for _ in self.queries)
        if len(emitted) == 1:
            return emitted[0]
        join = _join_rankings if self.window.hopping else _join_changes
        return tuple(join(list(events)) for events in zip(*emitted, strict=True))


def _by_key(rows: Rows) -> Iterator[tuple[int, Rows]]:
    """The rows of each partition, in arrival order."""
    if not rows.key.size:
        yield 0, rows
        return
    rows = rows.spelled_out()
    order = np.argsort(rows.key, kind="stable")
    keys = rows.key[order]
    cuts = np.flatnonzero(np.diff(keys)) + 1
    for indices in np.split(order, cuts):
        yield int(rows.key[indices[0]]), rows.take(indices)


def _keyed(event: Emission, key: int) -> Emission:
    count = event.end.size if isinstance(event, Rankings) else event.at.size
    return event._replace(key=np.full(count, key))


def _join_rankings(parts: list[Rankings]) -> Rankings:
    if not parts:
        return NO_RANKINGS
    shift = np.cumsum([0] + [part.number.size for part in parts])
    offset = np.concatenate([part.offset[:-1] + by for part, by in zip(parts, shift, strict=False)] + [shift[-1:]])
    joined = Rankings._make(np.concatenate(column) for column in zip(*parts, strict=True))
    return joined._replace(offset=offset)


def _join_changes(parts: list[Changes]) -> Changes:
    joined = Changes._make(np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(joined.trigger, kind="stable")
    return Changes._make(column[order] for column in joined)


def best(rows: Rows, k: int, ties: bool) -> tuple[Ints, Floats]:
    """The k best of some rows (all that tie with the k-th if ``ties``): arrival numbers and scores, best first."""
    order = ranking(rows.score, rows.time, rows.number)
    if ties and order.size > k:
        k = int(np.count_nonzero(rows.score >= rows.score[order[k - 1]]))
    return rows.number[order[:k]], rows.score[order[:k]]

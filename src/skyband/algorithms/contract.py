"""The contract of every algorithm, whatever it ranks: objects, pairs, dominating points, assembled objects.

What an algorithm sees of a batch is :class:`Rows`: invalid and late rows are gone, scores are goodness (larger is
better), and positions are event times or object numbers. What it returns is :class:`Rankings` (hopping windows) or
:class:`Changes` (every arrival), one for each query it serves. It knows objects by their arrival number; the columns
of the rows it holds are kept beside it by :class:`skyband.Monitor`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.errors import QueryError
from skyband.kernels.common.output import Output
from skyband.query import Query
from skyband.query.positions import FOREVER as FOREVER
from skyband.query.windows import Window

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NOTHING: Ints = np.empty(0, np.int64)
NO_VALUES: Floats = np.empty((0, 0))
NO_TAGS: Ints = np.empty((0, 0), np.int64)


class Rows(NamedTuple):
    """A batch in arrival order. An empty ``position``, ``partition`` or ``arrival`` stands for t0 + i, 0 and n0 + i.

    Where a ranking takes more of a row than one score, it is in ``values`` and ``tags``, which have a row for each
    object or are empty; what their columns are is said by the query (:meth:`skyband.query.Query.measure`).
    """

    score: Floats
    position: Ints = NOTHING
    partition: Ints = NOTHING
    arrival: Ints = NOTHING
    first_position: int = 0
    first_arrival: int = 0
    values: Floats = NO_VALUES  # two-dimensional
    tags: Ints = NO_TAGS  # two-dimensional: codes

    def spelled_out(self) -> "Rows":
        """The same rows with no array left implied."""
        size = self.score.size
        if not size:
            return Rows(self.score)
        position = self.position if self.position.size else np.arange(self.first_position, self.first_position + size)
        partition = self.partition if self.partition.size else np.zeros(size, np.int64)
        arrival = self.arrival if self.arrival.size else np.arange(self.first_arrival, self.first_arrival + size)
        return Rows(self.score, position, partition, arrival, 0, 0, self.values, self.tags)

    def take(self, indices: NDArray[Any] | slice) -> "Rows":
        """Some of the rows; wants them spelled out."""
        values = self.values[indices] if self.values.size else NO_VALUES
        tags = self.tags[indices] if self.tags.size else NO_TAGS
        return Rows(
            self.score[indices],
            self.position[indices],
            self.partition[indices],
            self.arrival[indices],
            0,
            0,
            values,
            tags,
        )

    def join(self, other: "Rows") -> "Rows":
        """These rows and then the others; wants both spelled out."""
        if not self.score.size or not other.score.size:
            return self if self.score.size else other
        score, position, partition, arrival = (np.concatenate(pair) for pair in zip(self[:4], other[:4], strict=True))
        values, tags = (np.concatenate(pair) for pair in zip(self[6:], other[6:], strict=True))
        return Rows(score, position, partition, arrival, 0, 0, values, tags)


class Rankings(NamedTuple):
    """Windows that closed. Block b holds ``arrival[offset[b]:offset[b + 1]]``, best first."""

    end: Ints  # of each block: where its window ends
    partition: Ints  # its partition
    trigger: Ints  # count windows: the arrival number of the object that closed it
    offset: Ints
    arrival: Ints  # of each row: the object's arrival number
    score: Floats
    other: Ints = NOTHING  # pairs: the arrival number of the second object
    values: Floats = NO_VALUES  # two-dimensional: what the answer shows beside the columns of the row (Query.computed)

    @classmethod
    def of(cls, out: Output) -> "Rankings":
        """What a kernel emitted."""
        blocks, rows = out.used[0].item()
        score = out.score[:rows]
        if 2 * rows < out.score.size:  # an answer that is kept should not keep the room that was left
            score = score.copy()
        return cls(out.end[:blocks], out.partition[:blocks], out.trigger[:blocks], out.offset[: blocks + 1],
                   out.arrival[:rows], score)  # fmt: skip


class Changes(NamedTuple):
    """Who entered and left the top k, in the order in which it happened."""

    trigger: Ints  # the arrival number of the object whose arrival did it
    at: Ints  # that arrival's position: event time, or object number
    partition: Ints
    op: NDArray[np.int8]  # +1 entered, -1 left
    arrival: Ints
    score: Floats
    other: Ints = NOTHING  # as in Rankings
    values: Floats = NO_VALUES

    def take(self, which: NDArray[Any]) -> "Changes":
        """Some of the changes, by index or mask."""
        return Changes._make(column[which] if len(column) else column for column in self)

    @classmethod
    def between(cls, before: Rankings, after: Rankings) -> "Changes":
        """What leads from one ranking to another, at the newest positions: first who left, then who entered."""
        left, entered = ~np.isin(before.arrival, after.arrival), ~np.isin(after.arrival, before.arrival)
        parts = [cls._rows_of(before, -1, left), cls._rows_of(after, 1, entered)]
        changes = cls._make(np.concatenate(column) for column in zip(*parts, strict=True))
        return changes.take(np.argsort(changes.partition, kind="stable"))

    @classmethod
    def _rows_of(cls, event: Rankings, op: int, which: NDArray[np.bool_]) -> "Changes":
        size = np.diff(event.offset)
        at, partition = np.repeat(event.end - 1, size)[which], np.repeat(event.partition, size)[which]
        arrival = event.arrival[which]
        return cls(arrival, at, partition, np.full(arrival.size, op, np.int8), arrival, event.score[which])


Emission = Rankings | Changes

NO_RANKINGS = Rankings(NOTHING, NOTHING, NOTHING, np.zeros(1, np.int64), NOTHING, np.empty(0))
NO_CHANGES = Changes(NOTHING, NOTHING, NOTHING, np.empty(0, np.int8), NOTHING, np.empty(0))


class Algorithm(ABC):
    """One algorithm at work on one stream: ``update``, ``finish``, ``result``, ``save``/``restore``, ``check``.

    Subclasses name themselves as in their paper; :meth:`skyband.families.Family.algorithms` finds them.
    """

    name: ClassVar[str]
    serves: ClassVar[frozenset[str]]  # of "hopping" and "arrival"
    exact: ClassVar[bool] = True
    several: ClassVar[bool] = False  # serves several k and windows of one scoring function at once
    any_last: ClassVar[bool] = True  # hopping: snapshots of windows that are not a whole number of slides shorter
    takes_over: ClassVar[frozenset[str]] = frozenset()  # of "hopping" and "arrival": see :meth:`take_over`
    options: ClassVar[dict[str, float]] = {}  # the options it takes, with their defaults

    def __init__(self, *queries: Query, **options: float) -> None:
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
        implied = self.implied(self.query)
        for option in options.keys() & implied.keys():
            if options[option] != implied[option]:
                raise QueryError(f"error={self.query.error:g} says what {option} is to be, so {option}="
                                 f"{options[option]:g} of algorithm {self.name!r} cannot go with it; give one of them"
                                 )  # fmt: skip
        self.parameters = {**self.options, **implied, **options}

    def meet(self, schema: pa.Schema, look_up: Callable[[Ints], pa.Table]) -> None:
        """Called before the first batch: the columns of the stream, and how to get those of objects by their numbers.

        ``look_up`` knows the objects held and, during :meth:`update`, those of the batch.
        """
        return None  # most algorithms need neither

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
    def result(self, query: Query, k: int, last: int | None = None) -> Rankings:
        """The ranking as it stands, a block a partition: the k best among the last ``last`` positions."""

    @abstractmethod
    def look_ahead(self, newest: int) -> None:
        """Event time has come as far as ``newest``, by rows that others took in: the present window follows from it.

        Called for hopping windows over event time only, before :meth:`result`.
        """

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
    def partitions(self) -> Ints:
        """The partitions that still have state, ascending."""

    @abstractmethod
    def rekey(self, code: Ints) -> None:
        """Partitions are numbered anew: what was ``partition`` is now ``code[partition]``."""

    def held_rows(self) -> Rows:
        """The objects that can still be in an answer as rows, in the order of their arrival numbers.

        Needed by algorithms with ``takes_over``, and by :class:`FromPanes`; others need not have it.
        """
        raise AssertionError("an algorithm whose objects others go on with must be able to tell them")

    def take_over(self, other: "Algorithm") -> None:
        """Goes on, before its first batch, where ``other`` has stopped: the same algorithm for a query that asked more.

        More is a larger k or a longer window. It can be done for the kinds of windows in ``takes_over``, where answers
        are exact: what was held then is all that a lower k or a shorter window can come to ask for.
        """
        rows = other.held_rows()
        self.update(rows, int(rows.position.max(initial=-FOREVER)))

    def tags(self) -> tuple[Ints, ...]:
        """The codes still in use in each column of ``Rows.tags``, ascending; none where codes are kept for ever."""
        return ()

    def retag(self, codes: tuple[Ints, ...]) -> None:
        """Tags are numbered anew: what was ``tag`` in column c is now ``codes[c][tag]``."""
        raise AssertionError("an algorithm that names the tags in use must be able to number them anew")

    @abstractmethod
    def check(self) -> None:
        """Assert every invariant of the structure; tests call it after each step."""

    @classmethod
    def implied(cls, query: Query) -> dict[str, float]:
        """The options that the error of a query stands for; none where answers are exact, which any error allows."""
        return {}

    def bound(self) -> str:
        """What an approximate algorithm promises, in words."""
        raise AssertionError("an algorithm that is not exact must say what it promises")

    @property
    def candidates(self) -> int:
        """Objects held."""
        return self.held().size

    @property
    def nbytes(self) -> int:
        """Bytes in the arrays of the state."""
        return sum(array.nbytes for _, array in self.arrays())


class FromPanes(Algorithm):
    """The part of the contract for rows that come pruned: an algorithm for hopping windows that needs no others.

    An object of a window's top k is in the top k of its pane, one of the equal slices that windows are made of. So
    tasks that read a stream side by side each send on the best rows of every partition and pane, and one algorithm
    brings together what they send. It has not seen the other rows: it must be told up to where all have come.
    """

    @abstractmethod
    def fold(self, rows: Rows, frontier: Ints) -> tuple[Emission, ...]:
        """:meth:`update` with what pruning has left of a batch, in any order.

        Args:
            rows: of each partition and pane at least the k best of the batch (with ``ties="all"`` also those that
                equal the k-th), none of them in a pane that was closed before. Their arrival numbers say which of two
                objects with one score and position ranks first.
            frontier: every row before it has come; windows that end there or before are closed. Time windows: one
                entry. Count windows: one for each partition, those without rows too; a batch may bring new partitions.
        """

    @abstractmethod
    def renumber(self, arrival: Ints) -> None:
        """Objects are numbered anew: what was ``n`` is now ``arrival[n]``. What ranks first by its number still does.

        Of two rows with one score and position, the newer one is known only when both have come; they are then
        given numbers in that order.
        """

    @abstractmethod
    def compact(self) -> Ints:
        """Numbers the objects held 0, 1, …, so that they take few bytes when saved; returns their former numbers."""

"""Reads a user's batch: evaluates condition, scores and positions, drops late and invalid rows, numbers the others."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.algorithms.contract import NO_TAGS, NOTHING, Floats, Ints, Rows
from skyband.engine.columns import check_distinct
from skyband.engine.partitions import Keys
from skyband.errors import QueryError
from skyband.expressions import scoring
from skyband.kernels.common.reading import count_nan, number_objects
from skyband.query import Query
from skyband.query.measures import Measured
from skyband.query.positions import FOREVER, check_position, positions

T = TypeVar("T")

_OWN = "skyband: "  # begins the names of the columns that are added to rows that wait; no user's column does


class Prepared(NamedTuple):
    """A batch of which all that can be refused has been evaluated."""

    table: pa.Table  # the rows that pass, or all of a sequence
    size: int  # of the batch
    measured: Measured
    position: Ints
    passes: NDArray[np.bool_] | None  # of a sequence: which rows do


Known = dict[object, Any]  # what was evaluated for one pipeline, for the others that take in the same batch


class Ready(NamedTuple):
    """What was read from a batch: the rows for the algorithm, in the order in which it takes them; their columns."""

    rows: Rows
    table: pa.Table
    frontier: int


class Intake:
    """Reads the batches of one pipeline. Its queries may differ in k, extent, slide and ties, but take the same rows.

    It keeps the counts of rows, the newest event time, the codes of partitions and tags, and for count windows on a
    sequence column the rows that wait because smaller numbers have not come yet.
    """

    def __init__(self, query: Query) -> None:
        self.query = query
        self.window = query.window
        self.measure = query.measure()
        self._condition = query.row_condition
        self._measured = query.measured()
        self.where = None if self._condition is None else scoring.compile_condition(self._condition)
        self.seen = self.late = self.invalid = 0
        self.newest = -FOREVER  # the newest event time
        self.accepted = 0  # the next arrival number
        self.schema: pa.Schema | None = None
        self.partitions: Keys | None = None
        self.tags: tuple[Keys, ...] = ()  # the codes of each group of columns that the measure asks for
        # For each partition: how many objects have come, or with a sequence column the next number that is due.
        self.counts: Ints = np.zeros(0 if query.partition_by else 1, np.int64)
        self.highest: Ints = self.counts - 1  # for each partition: the highest number; sequence columns only
        self.held: pa.Table | None = None  # rows that wait for smaller numbers, with their position and score

    def take(self, prepared: Prepared) -> Ready:
        """Counts, drops and numbers the rows of a batch, which cannot fail any more."""
        table, size, measured, position, passes = prepared
        self.seen += size
        table, measured, position = self._valid(table, measured, position, passes)
        if self.window.time:
            return self._in_time(table, measured, position)
        if self._sequence:
            return self._in_sequence(table, measured.score, position)
        return self._in_arrival_order(table, measured)

    def prepare(self, table: pa.Table, known: Known) -> Prepared:
        """All that can fail about a batch: the condition, measures and positions; wants :meth:`fit` first.

        Changes nothing but ``known``: a condition or a measure that is there already is not evaluated again.
        """
        size, sequence = table.num_rows, self._sequence
        passes = None
        if self.where is not None:
            table, passes = _once(known, (self._condition, sequence), partial(self._passing, table))
        if passes is None:
            measured = _once(known, (self._condition, self._measured), partial(self.measure.evaluate, table))
        else:  # a sequence, which takes the values when they are due
            measured = Measured(self.measure.score_where(passes, table), np.empty((size, 0)))
        self.measure.check(table, measured, self._before)
        position = NOTHING if self.window.on is None else positions(table, self.window.on, self.window.time)
        return Prepared(table, size, measured, position, passes)

    def finish(self) -> Ready | None:
        """The rows that still wait for smaller numbers, if any: none will come now."""
        if self.held is None or not self.held.num_rows:
            return None
        ready = self._released(self.held, np.ones(self.held.num_rows, bool))
        self.held = self.held.slice(0, 0)
        return ready

    def rekey(self, kept: Ints) -> Ints:
        """Forgets all partitions but ``kept``, and numbers these anew; returns the new code of each old one, or -1."""
        assert self.partitions is not None
        self.partitions, code = self.partitions.only(kept)
        return code

    def retag(self, kept: tuple[Ints, ...]) -> tuple[Ints, ...]:
        """Forgets all tags but ``kept``, and numbers these anew.

        Returns for each column of tags the new code of each old one, or -1.
        """
        pairs = [codes.only(some) for codes, some in zip(self.tags, kept, strict=True)]
        self.tags = tuple(codes for codes, _ in pairs)
        return tuple(code for _, code in pairs)

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        yield "counts", self.counts
        yield "highest", self.highest

    @property
    def nbytes(self) -> int:
        """Bytes kept here: codes, counts, rows that wait."""
        coded = [*([self.partitions] if self.partitions is not None else []), *self.tags]
        held = int(self.held.nbytes) if self.held is not None else 0
        return sum(codes.nbytes for codes in coded) + held + self.counts.nbytes + self.highest.nbytes

    def fit(self, schema: pa.Schema) -> pa.Table:
        """Takes these as the columns of the stream, or refuses them; returns an empty table that has them."""
        names = schema.names
        check_distinct(names)
        self.query.check_names(names)
        check_position(schema, self.window)
        empty = schema.remove_metadata().empty_table()
        self.measure.evaluate(empty)
        if self.where is not None:
            self.where.evaluate(empty)
        if self.window.on:
            positions(empty, self.window.on, self.window.time)
        self.schema = empty.schema
        if self.query.partition_by:
            self.partitions = _keys(empty, self.query.partition_by, "partition_by")
        coded = self.measure.tagged(empty)
        self.tags = tuple(_keys(part, part.column_names, ", ".join(part.column_names)) for part in coded)
        return empty

    def _passing(self, table: pa.Table) -> tuple[pa.Table, NDArray[np.bool_] | None]:
        """The rows for which the condition is true; of a sequence all rows, and for which of them it is."""
        assert self.where is not None
        passes = self.where.evaluate(table)
        if self._sequence:
            return table, passes
        return table if passes.all() else table.filter(pa.array(passes)), None

    def _before(self) -> list[pa.Table]:
        """The tags of all valid rows of earlier batches, as tables: combinations that have come, and waiting rows."""
        tables = [codes.rows for codes in self.tags]
        if self.held is not None and self._sequence:
            there = ~np.isnan(self.held.column(f"{_OWN}score").to_numpy())
            return [*tables, self.held.filter(pa.array(there))]
        return [*tables, self.held] if self.held is not None else tables

    @property
    def _sequence(self) -> bool:
        return not self.window.time and self.window.on is not None

    def _valid(
        self, table: pa.Table, measured: Measured, position: Ints, passes: NDArray[np.bool_] | None
    ) -> tuple[pa.Table, Measured, Ints]:
        """Drops rows without a score or position, and counts them as invalid.

        With a sequence column only rows without a number are dropped. A row without a score keeps its place in the
        sequence, with NaN as its score.
        """
        score = measured.score
        if passes is None and not count_nan(score) and not (position.size and position.min() == -FOREVER):
            return table, measured, position
        bad, lost = np.isnan(score), position == -FOREVER if position.size else np.zeros(score.size, bool)
        if self._sequence:
            passes = np.ones(score.size, bool) if passes is None else passes
            self.invalid += int(((bad | lost) & passes).sum())
            measured, bad = measured._replace(score=np.where(passes, score, np.nan)), lost
        else:
            bad |= lost
            self.invalid += int(bad.sum())
        return _where(~bad, table, measured, position)

    def _coded(self, table: pa.Table) -> Ints:
        if self.partitions is None:
            return NOTHING
        code = self.partitions.encode(table)
        if (new := len(self.partitions) - self.counts.size) > 0 and not self.window.time:
            self.counts = np.append(self.counts, np.zeros(new, np.int64))
            self.highest = np.append(self.highest, np.full(new, -1))
        return code

    def _tagged(self, table: pa.Table) -> Ints:
        coded = zip(self.tags, self.measure.tagged(table), strict=True)
        return np.stack([codes.encode(part) for codes, part in coded], axis=1) if self.tags else NO_TAGS

    def _number(self, count: int) -> int:
        first = self.accepted
        self.accepted += count
        return first

    def _in_time(self, table: pa.Table, measured: Measured, position: Ints) -> Ready:
        assert self.window.late is not None
        if position.size and position.min() < (watermark := self.newest - self.window.late):
            on_time = position >= watermark
            self.late += int(position.size - on_time.sum())
            table, measured, position = _where(on_time, table, measured, position)
        self.newest = max(self.newest, int(position.max(initial=-FOREVER)))
        rows = self._rows(table, measured, position, self._coded(table))
        return Ready(rows, table, max(-FOREVER, self.newest - self.window.late))

    def _rows(
        self, table: pa.Table, measured: Measured, position: Ints, partition: Ints, first_position: int = 0
    ) -> Rows:
        """The rows of a table as an algorithm sees them, numbered."""
        score, values = measured
        return Rows(
            score, position, partition, NOTHING, first_position, self._number(score.size), values, self._tagged(table)
        )

    def _in_arrival_order(self, table: pa.Table, measured: Measured) -> Ready:
        partition = self._coded(table)
        if self.partitions is None:
            rows = self._rows(table, measured, NOTHING, partition, first_position=int(self.counts[0]))
            self.counts[0] += rows.score.size
        else:
            rows = self._rows(table, measured, number_objects(partition, self.counts), partition)
        return Ready(rows, table, 0)

    def _in_sequence(self, table: pa.Table, score: Floats, position: Ints) -> Ready:
        """Holds rows back until all smaller numbers of their partition have come, or are no longer waited for."""
        partition = self._coded(table)
        partition = partition if partition.size else np.zeros(score.size, np.int64)
        if self.window.late is not None:  # smaller numbers are no longer waited for
            self.counts = np.maximum(self.counts, self.highest - self.window.late)
        arrived = np.arange(self.accepted, self.accepted + score.size)
        self.accepted += score.size
        extra = {"partition": partition, "position": position, "score": score, "arrived": arrived}
        for name, column in extra.items():
            table = table.append_column(f"{_OWN}{name}", pa.array(column))
        if self.held is not None:
            table = pa.concat_tables([self.held, table])
        partition, position, arrived = (
            table.column(f"{_OWN}{name}").to_numpy() for name in ("partition", "position", "arrived")
        )
        order = np.lexsort((arrived, position, partition))
        partition, position = partition[order], position[order]
        again = (
            np.append(False, (np.diff(partition) == 0) & (np.diff(position) == 0))
            if partition.size
            else np.zeros(0, bool)
        )
        old = (position < self.counts[partition]) & (arrived[order] >= arrived.max(initial=0) - score.size + 1)
        drop = again | old
        self.late += int((drop & ~np.isnan(table.column(f"{_OWN}score").to_numpy()[order])).sum())
        table = table.take(pa.array(order[~drop]))
        partition, position = partition[~drop], position[~drop]
        np.maximum.at(self.highest, partition, position)
        below = position < self.counts[partition]  # held rows that need not wait any longer: they come first
        start = np.searchsorted(partition, partition)
        skipped = np.cumsum(below) - below
        rank = np.arange(partition.size) - start - (skipped - skipped[start] if partition.size else 0)
        ready = below | (position - rank == self.counts[partition])
        released = self._released(table, ready)
        np.maximum.at(self.counts, partition[ready], position[ready] + 1)
        self.held = table.filter(pa.array(~ready)).combine_chunks()
        return released

    def _released(self, table: pa.Table, ready: NDArray[np.bool_]) -> Ready:
        """The rows that need not wait any longer, in the order in which they could be released; no invalid ones.

        A row could be released when the last of the smaller numbers, or the row itself, came.
        """
        table = table.filter(pa.array(ready))
        partition, position, score, arrived = (
            table.column(f"{_OWN}{name}").to_numpy() for name in ("partition", "position", "score", "arrived")
        )
        span = int(arrived.max(initial=0)) + 1
        completed = np.maximum.accumulate(arrived + partition * span) - partition * span if partition.size else arrived
        order = np.lexsort((position, partition, completed))
        order = order[~np.isnan(score[order])]
        names = [name for name in table.column_names if not name.startswith(_OWN)]
        table = table.select(names).take(pa.array(order))
        measured = Measured(score[order], self.measure.values(table))
        rows = self._rows(
            table, measured, position[order], partition[order] if self.partitions is not None else NOTHING
        )
        return Ready(rows, table, 0)


def _once(known: Known, key: object, evaluate: Callable[[], T]) -> T:
    """What is known under a key, evaluated if it is not."""
    if key not in known:
        known[key] = evaluate()
    found: T = known[key]
    return found


def _where(
    mask: NDArray[np.bool_], table: pa.Table, measured: Measured, position: Ints
) -> tuple[pa.Table, Measured, Ints]:
    some = Measured(measured.score[mask], measured.values[mask])
    return table.filter(pa.array(mask)), some, position[mask] if position.size else position


def _keys(empty: pa.Table, names: Sequence[str], field: str) -> Keys:
    try:
        return Keys(empty.select(names))
    except pa.ArrowNotImplementedError:
        kinds = ", ".join(f"{n!r} of type {empty.schema.field(n).type}" for n in names)
        raise QueryError(f"{field}: {kinds}; such a column must hold plain values") from None

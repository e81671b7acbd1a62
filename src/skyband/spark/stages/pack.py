"""The first stage: each task prunes its own rows, and packs the rest into one row for each piece of the state.

A row costs more on its way between Spark and Python than in any algorithm, so a task sends only a few, packed rows.
"""

import time as clock
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.algorithms.contract import FOREVER, NOTHING, Floats, Ints
from skyband.engine.partitions import Keys
from skyband.kernels.common import panes
from skyband.kernels.common.reading import count_nan
from skyband.query.positions import MOST
from skyband.spark.stages.job import COUNT, HIGHEST, LAST, PANE, SCORE, TIE, TIME, VALID, Job, prepare
from skyband.spark.stages.parcel import packed
from skyband.storage.memory import read_only

PACKED = pa.schema({
    "shard": pa.int32(),
    "chunk": pa.int32(),  # the piece of the state; -1: counts only, sent to every shard
    "order": pa.int64(),  # the order of packets, if rows are taken in the order of their arrival
    "data": pa.binary(),  # rows, as an Arrow stream
    "counts": pa.binary(),  # how many rows of each pane there were, as an Arrow stream
    "newest": pa.int64(),
    "seen": pa.int64(),
    "invalid": pa.int64(),
    "ms": pa.float64(),
})  # fmt: skip
GATHER = 1 << 18  # rows that may pile up in a task before they are pruned together
SEND = 1 << 21  # rows in a packet, at most, if pruning does not make them fewer
WORTH = 0.8  # if more than this share of a batch survives pruning, further batches are not pruned one by one

Packets = Iterator[dict[str, Any]]
_NO_COUNTS = {"newest": -FOREVER, "seen": 0, "invalid": 0, "ms": 0.0}


def packer(
    jobs: tuple[Job, ...], names: list[str], task: Callable[[], int]
) -> Callable[[Iterable[pa.RecordBatch]], Any]:
    """The function of the first stage, for ``mapInArrow``.

    Args:
        jobs: the jobs of all queries.
        names: the names of the columns that come.
        task: a function that returns the number of the task it is called in.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        packers = [Packer(job, task(), counting=i == 0) for i, job in enumerate(jobs)]
        for batch in batches:
            table = pa.Table.from_batches([batch]).rename_columns(names)
            for packer in packers:
                yield from _batches(packer.add(table))
        for packer in packers:
            yield from _batches(packer.finish())

    return run


def _batches(packets: Packets) -> Iterator[pa.RecordBatch]:
    for packet in packets:
        yield pa.RecordBatch.from_pylist([packet], PACKED)


class Batch(NamedTuple):
    """Rows together with the values that rank them."""

    table: pa.Table
    score: Floats
    time: Ints
    tie: Ints

    def take(self, indices: Ints) -> "Batch":
        time = self.time[indices] if self.time.size else self.time
        return Batch(self.table.take(pa.array(indices)), self.score[indices], time, self.tie[indices])

    def where(self, mask: NDArray[np.bool_]) -> "Batch":
        return self if mask.all() else self.take(np.flatnonzero(mask))


class Packer:
    """Prunes and packs the rows of one task for one query.

    Args:
        job: the job of the query.
        task: the number of the task, by which packets are ordered.
        counting: whether to report how many rows were seen; only one of several queries does.
    """

    def __init__(self, job: Job, task: int = 0, counting: bool = True) -> None:
        self.job = job
        self.counting = counting
        self.query = job.query
        self.window = job.query.window
        self.measure = prepare(job).measure
        self.fields = [*job.schema, *([pa.field(job.part, pa.int32())] if job.part else [])]
        self.kept: list[Batch] = []
        self.rows = 0
        self.limit = GATHER
        self.worth = True
        self.counts: list[pa.Table] = []  # by pane
        self.seen = self.invalid = 0
        self.newest = -FOREVER
        self.spent = 0.0
        self.order = task << 32

    def add(self, table: pa.Table) -> Packets:
        """Takes in an Arrow batch; yields packets if so many rows have piled up that some must be sent."""
        start = clock.perf_counter()
        self.seen += table.num_rows
        rows = self._read(table)
        size = rows.score.size
        if size:
            if self.window.time:
                self.newest = max(self.newest, int(rows.time.max()))
            if self.job.fewer:
                if self.window.time:
                    self._count_rows(rows.time)
                if self.worth:
                    rows = self._fewer(rows)
                    self.worth = rows.score.size <= WORTH * size
            self.kept.append(rows)
            self.rows += rows.score.size
        if self.rows > self.limit:
            self._gather()
            self.limit = max(GATHER, 2 * self.rows)
            if not self.job.fewer or self.rows > SEND:
                yield from self._send()
        self.spent += clock.perf_counter() - start

    def finish(self) -> Packets:
        """Yields the packets of the remaining rows, and a packet with counts for every shard."""
        start = clock.perf_counter()
        self._gather()
        yield from self._send()
        for i, shard in enumerate(self.job.shards):
            packet: dict[str, Any] = {
                **_NO_COUNTS,
                "shard": shard,
                "chunk": -1,
                "order": self.order,
                "newest": self.newest,
            }
            if i == 0:
                counts = packed(_total(self.counts, ["pane"])) if self.counts else None
                packet |= {"seen": self.seen if self.counting else 0, "invalid": self.invalid, "counts": counts,
                           "ms": 1e3 * (self.spent + clock.perf_counter() - start)}  # fmt: skip
            yield packet

    def _read(self, table: pa.Table) -> Batch:
        """The rows that have a score and a position, with the columns that travel.

        With a sequence column, a row that does not pass or has no score still uses up its number. If every row
        travels, it goes along without a score; if rows are pruned, it is counted.
        """
        job = self.job
        passes = None if job.passes is None else pc.fill_null(table.column(job.passes), False).to_numpy()
        score = self._scores(table, passes)
        time = NOTHING if job.time is None else integers(table, job.time)
        tie = np.zeros(score.size, np.int64) if job.tie is None else integers(table, job.tie)
        columns = [table.column(field.name) for field in self.fields]
        rows = Batch(pa.table(columns, [field.name for field in self.fields]), score, time, tie)
        lost = (time < -MOST) | (time > MOST) if time.size and _exceeds(time) else None
        if passes is None and lost is None and not count_nan(score) and not job.sequence:
            return rows
        passes = np.ones(score.size, bool) if passes is None else passes
        lost = np.zeros(score.size, bool) if lost is None else lost
        bad = np.isnan(score) | lost
        self.invalid += int((bad & passes).sum())
        if job.sequence and not job.pruned:
            return rows._replace(score=np.where(passes, score, np.nan)).where(~lost)
        if job.sequence:
            rows = rows.where(~lost)
            valid = (passes & ~bad)[~lost]
            self._count_numbers(rows, valid)
            return rows.where(valid)
        return rows.where(passes & ~bad)

    def _scores(self, table: pa.Table, passes: NDArray[np.bool_] | None) -> Floats:
        """The scores as the user wrote them; in families other than objects, NaN if a row is invalid or does not pass.

        If rows are summed, these are the amounts, whether the largest or the smallest sums come first.
        """
        if self.job.score is not None:
            return numbers(table, self.job.score)
        measure = self.measure
        goodness = measure.evaluate(table).score if passes is None else measure.score_where(passes, table)
        return goodness if self.query.descending or self.job.summed else 0.0 - goodness

    def _fewer(self, rows: Batch) -> Batch:
        return self._pruned(rows) if self.job.pruned else self._summed(rows)

    def _summed(self, rows: Batch) -> Batch:
        """One row with the sum for each pane and each combination of values of the columns that travel."""
        groups = Keys(rows.table.slice(0, 0))
        code = groups.encode(rows.table)
        added = self.job.family.added(code, self.window.pane_of(rows.time), rows.score, rows.time, rows.tie)
        if added is None:
            return rows
        return Batch(groups.rows.take(pa.array(added.group)), added.amount, added.position, added.arrival)

    def _pruned(self, rows: Batch) -> Batch:
        """The top k of every partition and pane, and rows that tie with them in all values that rank rows."""
        names = self.query.partition_by
        keys = Keys(rows.table.select(names).slice(0, 0)) if names else None
        key = NOTHING if keys is None else keys.encode(rows.table)
        score = rows.score if self.query.descending else -rows.score
        columns = panes.Columns(key, *map(read_only, (score, rows.time, rows.tie)))
        kept = panes.survivors(columns, 1 if keys is None else len(keys), self.window.pane, self.query.k,
                               self.query.ties == "all")  # fmt: skip
        return rows.take(kept) if kept.size < rows.score.size else rows

    def _count_rows(self, time: Ints) -> None:
        """Counts the rows of each pane; which of them are late is found out later."""
        first, length = panes.count_runs(NOTHING, read_only(time), self.window.pane)
        counts = pa.table({"pane": self.window.pane_of(time[first]), "count": length})
        self.counts.append(counts if first.size < 64 else _total([counts], ["pane"]))

    def _count_numbers(self, rows: Batch, valid: NDArray[np.bool_]) -> None:
        """Counts the numbers that came of each partition and pane, and how many are objects; notes the last of both."""
        names = [*self.query.partition_by, *([self.job.part] if self.job.part else [])]
        extra = {PANE: self.window.pane_of(rows.time), COUNT: np.ones_like(rows.time), HIGHEST: rows.time,
                 VALID: valid.astype(np.int64), LAST: np.where(valid, rows.time, -1)}  # fmt: skip
        self.counts.append(_total([_widened(rows.table.select(names), extra)], [*names, PANE]))

    def _gather(self) -> None:
        """Joins the batches that have piled up, and prunes their rows together."""
        if len(self.kept) > 1:
            table = pa.concat_tables([rows.table for rows in self.kept])
            columns = (np.concatenate(column) for column in list(zip(*self.kept, strict=True))[1:])
            rows = Batch(table, *columns)
            self.kept = [self._fewer(rows) if self.job.fewer else rows]
            self.rows = self.kept[0].score.size

    def _send(self) -> Packets:
        """Yields a packet for each piece of the state: its rows, and if a sequence is pruned, its counts."""
        rows = _split(self._travelling(self.kept[0]), self.job.part, self.job.spread) if self.kept else {}
        counts: dict[int, pa.Table] = {}
        if self.job.sequence and self.counts:
            names = [*self.query.partition_by, *([self.job.part] if self.job.part else []), PANE]
            counts = _split(_total(self.counts, names), self.job.part)
            self.counts = []
        for part in sorted(rows.keys() | counts.keys()):
            sides = {name: packed(side[part]) for name, side in (("data", rows), ("counts", counts)) if part in side}
            for shard, chunk in self.job.places(part):
                yield {**_NO_COUNTS, "shard": shard, "chunk": chunk, "order": self.order, **sides}
        self.kept, self.rows = [], 0
        self.order += 1

    def _travelling(self, rows: Batch) -> pa.Table:
        # Spark calls some columns NOT NULL, and not the same ones each time; time zones and widths of text vary too.
        table = rows.table.cast(pa.schema([field.with_nullable(True) for field in self.fields]))
        own = {SCORE: rows.score, TIME: rows.time, TIE: rows.tie}
        return _widened(table, {name: column for name, column in own.items() if column.size == rows.score.size})


def _widened(table: pa.Table, columns: dict[str, NDArray[Any]]) -> pa.Table:
    """A table with more columns; it may have had none, and then does not know how many rows it has."""
    return pa.table([*table.columns, *map(pa.array, columns.values())], [*table.column_names, *columns])


def numbers(table: pa.Table, name: str) -> Floats:
    """A column as doubles; NaN for NULL."""
    return table.column(name).to_numpy()  # type: ignore[no-any-return]


def integers(table: pa.Table, name: str) -> Ints:
    """A column of integers or times (in microseconds) as integers; -FOREVER for NULL."""
    column = table.column(name)
    if column.type != pa.int64():
        column = column.cast(pa.int64())
    if column.null_count:
        column = pc.fill_null(column, -FOREVER)
    return column.to_numpy()  # type: ignore[no-any-return]


def _exceeds(time: Ints) -> bool:
    return bool(time.min() < -MOST or time.max() > MOST)


def _total(counts: list[pa.Table], names: list[str]) -> pa.Table:
    """The counts of several tables, added up for rows that are equal in some columns."""
    table = pa.concat_tables(counts)
    rest = [name for name in table.column_names if name not in names]
    total = table.group_by(names).aggregate([(name, "max" if name in (HIGHEST, LAST) else "sum") for name in rest])
    return total.rename_columns([*names, *rest])


def _split(table: pa.Table, part: str | None, keep: bool = False) -> dict[int, pa.Table]:
    """The rows of each piece of the state, in their order; the column that names the piece is dropped unless kept."""
    if not table.num_rows:
        return {}
    if part is None:
        return {0: table}
    piece = integers(table, part)
    table = (table if keep else table.drop_columns([part])).combine_chunks()
    order = np.argsort(piece, kind="stable")
    cuts = np.flatnonzero(np.diff(piece[order])) + 1
    if not cuts.size:
        return {int(piece[0]): table}
    table = table.take(pa.array(order))
    bounds = [0, *cuts.tolist(), order.size]
    return {int(piece[order[a]]): table.slice(a, b - a) for a, b in pairwise(bounds)}

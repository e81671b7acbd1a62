"""The first stage: each task prunes its own rows and packs what is left, an Arrow table for each piece of the state.

Rows cost more on their way between Spark and Python than in any algorithm, so a task sends a handful of packed rows.
"""

import time as clock
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.kernels import panes
from skyband.keys import Keys
from skyband.objects.base import FOREVER, NOTHING, Floats, Ints
from skyband.spark.job import PART, PASSES, SCORE, TIE, TIME, Job
from skyband.store import table_to_bytes

PACKED = pa.schema({
    "shard": pa.int32(),
    "chunk": pa.int32(),  # -1: counts only, sent to every shard
    "data": pa.binary(),  # rows, as an Arrow stream
    "counts": pa.binary(),  # how many rows of each pane there were, as an Arrow stream
    "newest": pa.int64(),
    "seen": pa.int64(),
    "invalid": pa.int64(),
    "order": pa.int64(),  # of the task, where rows are taken in the order of their arrival
    "ms": pa.float64(),
})  # fmt: skip
NOTHING_COUNTED = {"newest": -FOREVER, "seen": 0, "invalid": 0, "ms": 0.0}  # no NULL: pandas would make it a float
ROWS = 1 << 18  # survivors that may pile up in a task before they are pruned together


def packer(job: Job, task: Callable[[], int]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow``; ``task`` tells the number of the task it runs in."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        packer = Packer(job)
        for batch in batches:
            packer.add(pa.Table.from_batches([batch]))
        yield pa.RecordBatch.from_pylist(list(packer.packed(task())), PACKED)

    return run


class Packer:
    """Takes in the rows of one task."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.window = job.query.window
        self.sign = 1.0 if str(job.scored.order_by).endswith("DESC") else -1.0
        self.keys: Keys | None = None
        self.kept: list[pa.Table] = []
        self.rows = 0
        self.seen = self.invalid = 0
        self.newest = -FOREVER
        self.counts: list[pa.Table] = []
        self.spent = 0.0

    def add(self, table: pa.Table) -> None:
        """One Arrow batch."""
        start = clock.perf_counter()
        self.seen += table.num_rows
        # Spark calls some columns NOT NULL, and not the same ones each time.
        table = pa.table(table.columns, pa.schema([field.with_nullable(True) for field in table.schema]))
        table = self._valid(table)
        if self.window.on is not None and table.num_rows:
            self.newest = max(self.newest, int(pc.max(table.column(TIME)).as_py()))
        if self.job.pruned:
            table = self._pruned(table)
        self.kept.append(table)
        self.rows += table.num_rows
        if self.job.pruned and self.rows > ROWS and len(self.kept) > 8:
            self._gather()
        self.spent += clock.perf_counter() - start

    def packed(self, task: int) -> Iterator[dict[str, object]]:
        """What the task sends: its rows, piece by piece, and to every shard where it stands."""
        start = clock.perf_counter()
        for part, rows, counts in self._parts():
            yield {**NOTHING_COUNTED, "shard": part // self.job.chunks, "chunk": part % self.job.chunks,
                   "data": rows, "counts": counts, "order": task}  # fmt: skip
        panes_seen = None
        if self.counts and not self.job.counted:
            counts = pa.concat_tables(self.counts).group_by("pane").aggregate([("count", "sum")])
            panes_seen = table_to_bytes(counts).tobytes()
        for shard in range(self.job.shards):
            first = shard == 0
            yield {"shard": shard, "chunk": -1, "newest": self.newest, "seen": self.seen if first else 0,
                   "invalid": self.invalid if first else 0, "counts": panes_seen if first else None, "order": task,
                   "ms": 1e3 * (self.spent + clock.perf_counter() - start) if first else 0.0}  # fmt: skip

    def _valid(self, table: pa.Table) -> pa.Table:
        """Without rows that have no score or no position; in a counted sequence they count before they go."""
        score = table.column(SCORE)
        bad = pc.or_(pc.is_null(score, nan_is_null=True), pc.is_null(table.column(TIME))
                     if self.window.on is not None else False)  # fmt: skip
        if PASSES in table.column_names:
            passes = table.column(PASSES)
            self.invalid += pc.sum(pc.and_(bad, passes)).as_py() or 0
            table = table.drop_columns([PASSES])
            bad = pc.or_(bad, pc.invert(passes))
        else:
            self.invalid += pc.sum(bad).as_py() or 0
        if self.job.counted:
            self._count_numbers(table.filter(pc.is_valid(table.column(TIME))))
        return table.filter(pc.invert(bad)) if pc.any(bad).as_py() else table

    def _pruned(self, table: pa.Table) -> pa.Table:
        query = self.job.query
        rows = self._columns(table)
        if self.window.time:
            first, length = panes.count_runs(NOTHING, rows.time, self.window.pane)
            self.counts.append(pa.table({"pane": rows.time[first] // self.window.pane, "count": length}))
        keys = 1 if self.keys is None else len(self.keys)
        return table.take(pa.array(panes.survivors(rows, keys, self.window.pane, query.k, query.ties == "all")))

    def _columns(self, table: pa.Table) -> panes.Columns:
        return panes.Columns(self._code(table), numbers(table, SCORE) * self.sign, integers(table, TIME),
                             integers(table, TIE))  # fmt: skip

    def _code(self, table: pa.Table) -> Ints:
        if not self.job.query.partition_by:
            return NOTHING
        if self.keys is None:
            self.keys = Keys(table.slice(0, 0).select(self.job.query.partition_by))
        return self.keys.encode(table)

    def _count_numbers(self, table: pa.Table) -> None:
        """How many numbers of each pane of each partition have come, holes and all."""
        pane = pa.array(integers(table, TIME) // self.window.pane)
        names = [*self.job.query.partition_by, PART]
        grouped = table.select(names).append_column("pane", pane).group_by([*names, "pane"])
        self.counts.append(grouped.aggregate([([], "count_all")]).rename_columns([*names, "pane", "count"]))

    def _gather(self) -> None:
        """Prunes together what was pruned batch by batch."""
        table = pa.concat_tables(self.kept)
        counts, self.counts = self.counts, []
        table = self._pruned(table) if table.num_rows else table
        self.counts = counts
        self.kept, self.rows = [table], table.num_rows

    def _parts(self) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        """The rows, and in a counted sequence the counts, of each piece of the state."""
        if self.job.pruned and len(self.kept) > 1:
            self._gather()
        rows = _split(pa.concat_tables(self.kept)) if self.kept else {}
        counts: dict[int, pa.Table] = {}
        if self.job.counted and self.counts:
            names = [*self.job.query.partition_by, PART, "pane"]
            total = pa.concat_tables(self.counts).group_by(names).aggregate([("count", "sum")])
            counts = _split(total.rename_columns([*names, "count"]))
        for part in sorted(rows.keys() | counts.keys()):
            yield (part, *(table_to_bytes(side[part]).tobytes() if part in side else None for side in (rows, counts)))


def _split(table: pa.Table) -> dict[int, pa.Table]:
    """The rows of each piece of the state, without the column that tells it, in their order."""
    part = integers(table, PART)
    table = table.drop_columns([PART]).combine_chunks()
    if not part.size:
        return {}
    if (part == part[0]).all():
        return {int(part[0]): table}
    order = np.argsort(part, kind="stable")
    cuts = np.flatnonzero(np.diff(part[order])) + 1
    return {int(part[rows[0]]): table.take(pa.array(rows)) for rows in np.split(order, cuts)}


def numbers(table: pa.Table, name: str) -> Floats:
    return table.column(name).to_numpy()  # type: ignore[no-any-return]


def integers(table: pa.Table, name: str) -> Ints:
    return table.column(name).to_numpy().astype(np.int64, copy=False)  # type: ignore[no-any-return]

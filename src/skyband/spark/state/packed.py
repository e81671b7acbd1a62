"""The piece of the state for windows and algorithms that need every row: it has a whole pipeline of the engine."""

from typing import Any

import numpy as np
import pyarrow as pa

from skyband.algorithms.contract import FOREVER, Changes, Ints
from skyband.engine.pipeline import Pipeline
from skyband.engine.reader import Intake, Ready
from skyband.engine.writer import Layout
from skyband.query.measures import Measured
from skyband.spark.stages.job import TIE, TIME, Job, prepare
from skyband.spark.stages.pack import integers
from skyband.spark.stages.ties import in_order
from skyband.spark.state.piece import Arrays, Arrived, Piece, latest
from skyband.storage import codec as state


class Ordered(Intake):
    """Reads rows in the order of their event times: each is taken as soon as the watermark has passed it."""

    now = -FOREVER  # the newest event time over all tasks, this batch included
    grain = 1  # how many positions a row stands for, if it is the sum of a pane; it is late if all of them are
    waits = True  # False: rows do not wait for the watermark, but are taken in the order of event time in each batch

    def _in_time(self, table: pa.Table, measured: Measured, position: Ints) -> Ready:
        on_time = position >= self.window.watermark(self.newest) // self.grain * self.grain
        self.late += int(position.size - on_time.sum()) if self.grain == 1 else 0  # sums are counted with their panes
        table = table.filter(pa.array(on_time))
        if self.held is not None:
            table = pa.concat_tables([self.held, table])
        self.newest = max(self.newest, self.now)
        watermark = self.window.watermark(self.newest)
        position = integers(table, TIME)
        ripe = position < (watermark if self.waits else FOREVER)
        self.held = table.filter(pa.array(~ripe)).combine_chunks()
        table, position = table.filter(pa.array(ripe)), position[ripe]
        order = in_order(table, integers(table, TIE), position)
        table, position = table.take(pa.array(order)), position[order]
        rows = self._rows(table, self.measure.evaluate(table), position, self._coded(table))
        return Ready(rows, table, watermark)

    def finish(self) -> Ready | None:
        return None if self.window.time else super().finish()


class Spelled(Pipeline):
    """A pipeline over rows whose position is a number; the answer shows it in the type of the user's column."""

    def __init__(self, job: Job, across: bool = False) -> None:
        super().__init__(prepare(job).across if across else prepare(job).plan, Ordered)
        self._layout = prepare(job).local

    def _lay_out(self, schema: pa.Schema) -> tuple[Layout, ...]:
        return (self._layout,)

    def inherit(self, other: "Spelled") -> None:
        """Goes on where another query has stopped that asked more."""
        self.algorithm.take_over(other.algorithm)
        meta, arrays = other.save()
        own = {f"algorithm.{name}": array for name, array in self.algorithm.arrays()}
        self.restore(meta, {name: array for name, array in arrays.items() if not name.startswith("algorithm.")} | own)

    def changes_since(self, other: "Spelled") -> pa.Table:
        """The changes from the answer of the query that was inherited to this one's."""
        before, after = (each.algorithm.result(each.queries[0], each.queries[0].k) for each in (other, self))
        assert self.store is not None
        nothing = self.store.table.slice(0, 0)
        (table,) = self._written([Changes.between(before, after)], nothing, self.intake.accepted)
        return table

    def latest(self, touched: Ints, k: int) -> pa.Table:
        """The present ranking of some partitions, its first k ranks."""
        assert self.store is not None
        query, nothing = self.queries[0], self.store.table.slice(0, 0)
        event = self.algorithm.result(query, query.k)
        columns = self._columns(event.arrival, event.other, nothing, self.intake.accepted)
        return latest(event, columns, self.intake.partitions, touched, self._layout, k)


class Packed(Piece):
    """A piece of the state with a whole pipeline, which gets every row."""

    def __init__(self, job: Job, across: bool = False) -> None:
        super().__init__(job)
        self.pipeline = Spelled(job, across)
        assert isinstance(self.pipeline.intake, Ordered)
        self.intake = self.pipeline.intake
        self.intake.waits = not job.latest
        self.intake.grain = self.window.pane if job.summed else 1
        self.inherited: list[pa.Table] = []  # changes from the answer of the former job, with a larger k or window
        self.fields = self.prepared.travelling
        if self.window.time:
            self.fields = self.fields.set(self.fields.get_field_index(TIME), pa.field(TIME, pa.timestamp("us", "UTC")))
        elif job.time is None:
            self.fields = self.fields.remove(self.fields.get_field_index(TIME))

    def take_in(self, arrived: Arrived) -> pa.Table:
        late = self.intake.late
        table = self.fields.empty_table() if arrived.rows is None else arrived.rows.cast(self.fields)
        touched = [table, self._alive()] if self._moved(arrived) else [table]
        if self.window.time:  # over all shards and pieces
            self.intake.newest, self.intake.now = arrived.before, FOREVER if arrived.ended else arrived.newest
        (answer,) = self.pipeline.push(table)
        rest = self.pipeline.flush() if arrived.ended else []
        answer = pa.concat_tables([*self.inherited, answer, *rest])
        self.late = self.intake.late - late
        return self._latest(arrived.newest, touched) if self.job.latest else answer

    def due(self, newest: int) -> int:
        if not self.window.time:
            return FOREVER
        due = self._boundary(newest) if self.window.hopping and self.candidates else FOREVER
        if self.intake.held is not None and self.intake.held.num_rows:
            assert self.window.late is not None
            due = min(due, int(integers(self.intake.held, TIME).min()) + 1 + self.window.late)
        return due

    @property
    def candidates(self) -> int:
        waiting = 0 if self.intake.held is None else self.intake.held.num_rows
        return self.pipeline.algorithm.candidates + waiting

    def save(self) -> bytes:
        return state.pack(*self.pipeline.save())

    def restore(self, meta: dict[str, Any], arrays: Arrays, former: Job) -> None:
        self.former = former
        if former is self.job:
            self.pipeline.restore(meta, arrays)
            return
        other = Spelled(former, across=False)
        other.restore(meta, arrays)
        self.pipeline.inherit(other)
        if not self.window.hopping:
            self.inherited = [self.pipeline.changes_since(other)]

    def _alive(self) -> pa.Table:
        """The partitions that hold at least one object."""
        partitions, alive = self.intake.partitions, self.pipeline.algorithm.partitions()
        return self.fields.empty_table() if partitions is None else partitions.rows.take(pa.array(alive))

    def _latest(self, newest: int, tables: list[pa.Table]) -> pa.Table:
        algorithm, partitions = self.pipeline.algorithm, self.intake.partitions
        if self.window.time and self.window.hopping:
            algorithm.look_ahead(newest)  # over all shards: hopping windows are the same for all partitions
        if partitions is None:
            return self.pipeline.latest(np.zeros(1, np.int64), self.former.query.k)
        touched = np.unique(np.concatenate([partitions.encode(table) for table in tables]))
        return self.pipeline.latest(touched, self.former.query.k)

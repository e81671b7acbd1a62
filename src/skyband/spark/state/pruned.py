"""The piece of the state for hopping windows of which tasks send only the top k of each pane."""

from typing import Any

import numpy as np
import pyarrow as pa

from skyband.algorithms.contract import FOREVER, NOTHING, FromPanes, Ints, Rankings, Rows
from skyband.algorithms.objects.sequence import Counts, Sequence
from skyband.engine.partitions import Keys
from skyband.engine.writer import Written
from skyband.spark.stages.job import COUNT, HIGHEST, LAST, PANE, SCORE, TIE, TIME, VALID, Job, prepare
from skyband.spark.stages.pack import integers, numbers
from skyband.spark.stages.ties import number
from skyband.spark.state.piece import Arrays, Arrived, Piece, latest
from skyband.storage import codec as state
from skyband.storage.tables import table_from_arrays, table_to_arrays


class Pruned(Piece):
    """An algorithm for some partitions, and the columns of the objects it holds: object n has row n of the table."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.algorithm = algorithm_of(job)
        empty = self.prepared.travelling.empty_table()
        self.table = empty.drop_columns([SCORE, TIME])
        self.partitions = Keys(empty.select(job.query.partition_by)) if job.query.partition_by else None
        self.sequence = Sequence(self.window) if job.sequence else None
        self.shown = NOTHING  # partitions that the former job had an answer for

    def take_in(self, arrived: Arrived) -> pa.Table:
        alive = self.algorithm.partitions() if self._moved(arrived) else NOTHING
        closed, frontier = self._closed(arrived)
        rows = self._placed(arrived.rows, closed)
        (event,) = self.algorithm.fold(rows, frontier)
        assert isinstance(event, Rankings)
        if self.job.latest:
            touched = np.zeros(1, np.int64) if rows.score.size and not rows.partition.size else rows.partition
            answer = self._latest(arrived.newest, np.unique(np.concatenate([self.shown, alive, touched])))
        else:
            size = np.diff(event.offset)
            partitions = (
                None
                if self.partitions is None
                else self.partitions.rows.take(pa.array(np.repeat(event.partition, size)))
            )
            written = Written(event.end, partitions, size, event.arrival, event.score)
            answer = self.prepared.layout.rankings(written, self.table.take(pa.array(event.arrival)))
        self._forget_objects()
        self._forget_partitions()
        return answer

    def due(self, newest: int) -> int:
        return self._boundary(newest) if self.window.time and self.candidates else FOREVER

    @property
    def candidates(self) -> int:
        return self.algorithm.candidates

    def save(self) -> bytes:
        arrays: Arrays = {f"algorithm.{name}": array for name, array in self.algorithm.arrays()}
        arrays |= table_to_arrays(self.table.drop_columns(list(self.query.partition_by)), "table")
        arrays |= table_to_arrays(self.partitions.rows, "keys") if self.partitions is not None else {}
        arrays |= {f"sequence.{name}": array for name, array in self.sequence.arrays()} if self.sequence else {}
        return state.pack({}, arrays)

    def restore(self, meta: dict[str, Any], arrays: Arrays, former: Job) -> None:
        self.former = former
        saved = self.algorithm if former is self.job else algorithm_of(former)
        saved.restore(_part(arrays, "algorithm."))
        table = table_from_arrays(arrays, "table")
        if self.partitions is not None:
            self.partitions = Keys(table_from_arrays(arrays, "keys"))
            partition = self.partitions.rows.take(pa.array(saved.held_rows().partition))
            for name in partition.column_names:
                table = table.append_column(partition.schema.field(name), partition.column(name))
        self.table = table.select(self.table.column_names)
        if self.sequence is not None:
            self.sequence.restore(_part(arrays, "sequence."))
        if saved is not self.algorithm:
            self.shown = saved.partitions()
            self.algorithm.take_over(saved)
            self._forget_objects()

    def _closed(self, arrived: Arrived) -> tuple[Ints, Ints]:
        """Where rows were too late before this batch, and up to where windows close with it.

        For windows over event time the same for all partitions; else by partition.
        """
        if self.sequence is None:
            frontier = FOREVER if arrived.ended else self.window.watermark(arrived.newest)
            return np.array([self.window.watermark(arrived.before)]), np.array([frontier])
        sequence, counts = self.sequence, arrived.counts
        come, valid = Counts(*[NOTHING] * 5), NOTHING
        if counts is not None:
            partition = np.zeros(counts.num_rows, np.int64) if self.partitions is None else self._code(counts)
            come = Counts(partition, *(integers(counts, name) for name in (PANE, COUNT, HIGHEST, LAST)))
            valid = integers(counts, VALID)
        partitions = 1 if self.partitions is None else len(self.partitions)
        closed = sequence.complete
        closed = np.append(closed, np.zeros(partitions - closed.size, np.int64))
        self.late = int(valid[sequence.take_in(come, partitions)].sum())
        if arrived.ended:
            sequence.end()
        return closed, sequence.frontier

    def _placed(self, table: pa.Table | None, closed: Ints) -> Rows:
        """New rows with their numbers; rows whose pane is closed are left out."""
        if table is None or not table.num_rows:
            return Rows(np.empty(0))
        partition, score, position = self._code(table), numbers(table, SCORE), integers(table, TIME)
        bound = closed[partition] if self.sequence is not None and partition.size else closed[0]
        on_time = self.window.pane_of(position) >= self.window.pane_of(bound)
        if not on_time.all():
            table, score, position = table.filter(pa.array(on_time)), score[on_time], position[on_time]
            partition = partition[on_time] if partition.size else partition
        rows = Rows(score.copy() if self.query.descending else -score, position.copy(), partition)
        return rows._replace(arrival=self._numbered(table.drop_columns([SCORE, TIME]), rows))

    def _code(self, table: pa.Table) -> Ints:
        return NOTHING if self.partitions is None else self.partitions.encode(table)

    def _numbered(self, table: pa.Table, rows: Rows) -> Ints:
        """Adds the columns of new rows to the table, and numbers all objects so that of a tie the newer is higher."""
        held = self.table.num_rows
        both = pa.concat_tables([self.table, table.select(self.table.column_names)])
        old = self.algorithm.held_rows()
        partition = np.append(old.partition, rows.partition) if rows.partition.size else NOTHING
        order = number(both, partition, np.append(old.score, rows.score), np.append(old.position, rows.position),
                       integers(both, TIE))  # fmt: skip
        place = np.empty(order.size, np.int64)
        place[order] = np.arange(order.size)
        if (place != np.arange(place.size)).any():
            self.algorithm.renumber(place[:held])
            both = both.take(pa.array(order))
        self.table = both
        return place[held:]

    def _latest(self, newest: int, touched: Ints) -> pa.Table:
        # The present window depends on all rows, also on those of other shards and on those that were pruned. Not so
        # with a sequence: there each partition has windows of its own, and of each pane with an object a row has come.
        if self.sequence is None:
            self.algorithm.look_ahead(newest)
        event = self.algorithm.result(self.query, self.query.k)
        columns = self.table.take(pa.array(event.arrival))
        return latest(event, columns, self.partitions, touched, self.prepared.layout, self.former.query.k)

    def _forget_objects(self) -> None:
        """Drops the columns of objects that are not held any more."""
        self.table = self.table.take(pa.array(self.algorithm.compact())).combine_chunks()

    def _forget_partitions(self) -> None:
        """Drops the codes of partitions that have nothing left, once they are the most."""
        if self.partitions is not None and self.window.time and len(self.partitions) > 64:
            alive = self.algorithm.partitions()
            if len(self.partitions) > 2 * alive.size:
                self.partitions, code = self.partitions.only(alive)
                self.algorithm.rekey(code)


def algorithm_of(job: Job) -> FromPanes:
    """The algorithm that a job's plan names, with nothing in it."""
    plan = prepare(job).plan
    algorithm = plan.algorithm(*plan.queries, **plan.options)
    assert isinstance(algorithm, FromPanes), f"{algorithm.name} does not go on from pruned rows"
    return algorithm


def _part(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

"""A piece of the state for hopping windows whose panes a row shows: it gets the top k of each pane."""

from typing import Any

import numpy as np
import pyarrow as pa

from skyband.algorithms.contract import FOREVER, NOTHING, Ints, Rankings, Rows
from skyband.algorithms.objects.mintopk import MinTopk
from skyband.engine.partitions import Keys
from skyband.engine.writer import Written
from skyband.kernels.common.sorting import tied
from skyband.spark.stages.job import COUNT, HIGHEST, LAST, PANE, SCORE, TIE, TIME, VALID, Job
from skyband.spark.stages.pack import integers, numbers
from skyband.spark.stages.ties import number
from skyband.spark.state.piece import Arrays, Arrived, Chunk, latest
from skyband.spark.state.sequence import Sequence
from skyband.storage import codec as state
from skyband.storage.tables import table_from_arrays, table_to_arrays

# Arrays of MinTopk that are not saved as they are: sizes instead of offsets, and scores and positions in the order of
# the columns.
OTHERWISE = frozenset({"lists.offset", "lists.score", "lists.position", "open.score", "open.position"})


class Pruned(Chunk):
    """MinTopk's lists of some partitions, and the columns of the objects in them: object n has row n of the table."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.algorithm = MinTopk(self.query)
        empty = self.prepared.travelling.empty_table()
        self.table = empty.drop_columns([SCORE, TIME])
        self.partitions = Keys(empty.select(job.query.partition_by)) if job.query.partition_by else None
        self.sequence = Sequence(self.window) if job.sequence else None

    def take_in(self, arrived: Arrived) -> pa.Table:
        alive = self.algorithm.partitions() if self._moved(arrived) else NOTHING
        closed, frontier = self._closed(arrived)
        rows = self._placed(arrived.rows, closed)
        (event,) = self.algorithm.update(rows, frontier)
        assert isinstance(event, Rankings)
        if self.job.latest:
            touched = np.zeros(1, np.int64) if rows.score.size and not rows.partition.size else rows.partition
            answer = self._latest(arrived.newest, np.union1d(alive, touched))
        else:
            size = np.diff(event.offset)
            partitions = (
                None
                if self.partitions is None
                else self.partitions.rows.take(pa.array(np.repeat(event.partition, size)))
            )
            written = Written(event.end, partitions, size, event.arrival, event.score)
            answer = self.prepared.layout.rankings(written, self.table.take(pa.array(event.arrival)))
        self._forget()
        return answer

    def due(self, newest: int) -> int:
        return self._boundary(newest) if self.window.time and self.candidates else FOREVER

    @property
    def candidates(self) -> int:
        return self.algorithm.candidates

    def save(self) -> bytes:
        # Scores and times by number, as the columns are: mostly they are a column too, and then are written once.
        held, saved = self._held(), self.algorithm.arrays()
        arrays: Arrays = {f"state.{name}": array for name, array in saved if name not in OTHERWISE}
        arrays |= {"size": np.diff(self.algorithm.state.lists.offset), "score": held.score, "time": held.position}
        arrays |= table_to_arrays(self.table.drop_columns(list(self.query.partition_by)), "table")
        arrays |= table_to_arrays(self.partitions.rows, "keys") if self.partitions is not None else {}
        arrays |= {f"sequence.{n}": a for n, a in self.sequence.arrays().items()} if self.sequence else {}
        return state.pack({}, arrays)

    def restore(self, meta: dict[str, Any], arrays: Arrays, former: Job) -> None:
        self.former = former
        own = {name.removeprefix("state."): array for name, array in arrays.items() if name.startswith("state.")}
        own["lists.offset"] = np.append(0, np.cumsum(arrays["size"]))
        for part in ("lists", "open"):
            arrival = own[f"{part}.arrival"]
            own |= {f"{part}.score": arrays["score"][arrival], f"{part}.position": arrays["time"][arrival]}
        self.algorithm.restore(own)
        table = table_from_arrays(arrays, "table")
        if self.partitions is not None:
            self.partitions = Keys(table_from_arrays(arrays, "keys"))
            partition = self.partitions.rows.take(pa.array(self._held().partition))
            for name in partition.column_names:
                table = table.append_column(partition.schema.field(name), partition.column(name))
        self.table = table.select(self.table.column_names)
        if self.sequence is not None:
            self.sequence.restore({name.removeprefix("sequence."): array for name, array in arrays.items()})

    def _closed(self, arrived: Arrived) -> tuple[int | Ints, int | Ints]:
        """Where rows were too late before this batch, and up to where windows close with it."""
        if self.sequence is None:
            return self._watermark(arrived.before), FOREVER if arrived.ended else self._watermark(arrived.newest)
        sequence, counts = self.sequence, arrived.counts
        partition = self._code(counts) if counts is not None else NOTHING
        sequence.make_room(1 if self.partitions is None else len(self.partitions))
        closed = sequence.complete.copy()
        if counts is not None:
            partition = np.zeros(counts.num_rows, np.int64) if self.partitions is None else partition
            pane, *rest = (integers(counts, name) for name in (PANE, COUNT, HIGHEST, LAST))
            late = pane * self.window.pane < closed[partition]
            self.late = int(integers(counts, VALID)[late].sum())
            sequence.take_in(partition[~late], pane[~late], *(column[~late] for column in rest))
        if arrived.ended:
            sequence.end()
        self.algorithm.make_room(sequence.complete.size)
        return closed, sequence.frontier

    def _placed(self, table: pa.Table | None, closed: int | Ints) -> Rows:
        """New rows with their numbers; rows whose pane is closed are left out."""
        if table is None or not table.num_rows:
            return Rows(np.empty(0))
        partition, score, position = self._code(table), numbers(table, SCORE), integers(table, TIME)
        bound = closed if isinstance(closed, int) else closed[partition if partition.size else 0]
        on_time = position >= bound // self.window.pane * self.window.pane
        if not on_time.all():
            table, score, position = table.filter(pa.array(on_time)), score[on_time], position[on_time]
            partition = partition[on_time] if partition.size else partition
        rows = Rows(score.copy() if self.query.descending else -score, position.copy(), partition)
        return rows._replace(arrival=self._numbered(table.drop_columns([SCORE, TIME]), rows))

    def _code(self, table: pa.Table) -> Ints:
        return NOTHING if self.partitions is None else self.partitions.encode(table)

    def _numbered(self, table: pa.Table, rows: Rows) -> Ints:
        """Adds the columns of new rows to those held; afterwards the numbers of all are in the order of ties."""
        held = self.table.num_rows
        both = pa.concat_tables([self.table, table.select(self.table.column_names)])
        old = self._held()
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

    def _held(self) -> Rows:
        """The objects held, by number: 0, 1, …"""
        lists, still_open, _ = self.algorithm.state
        arrival = np.append(lists.arrival, still_open.arrival)
        listed = np.repeat(np.arange(lists.offset.size - 1), np.diff(lists.offset))
        place = np.empty(arrival.size, np.int64)
        place[arrival] = np.arange(arrival.size)
        score, position = (np.append(lists.score, still_open.score), np.append(lists.position, still_open.position))
        return Rows(score[place], position[place], np.append(listed, still_open.partition)[place])

    def _latest(self, newest: int, touched: Ints) -> pa.Table:
        # The present window follows from all rows, those of other shards and those that were pruned among them. Windows
        # over a sequence are each partition's own, and of each pane that holds an object a row has come.
        if self.sequence is None:
            self.algorithm.look_ahead(newest)
        event = self.algorithm.result(self.query, self.query.k)
        columns = self.table.take(pa.array(event.arrival))
        return latest(event, columns, self.partitions, touched, self.prepared.layout, self.former.query.k)

    def _forget(self) -> None:
        """Drops the columns of objects that are not held any more, and partitions that have none.

        Numbers are then as the objects lie, which takes the fewest bytes to write down. In the lists those that tie
        lie newest first, so there the last object has the first number.
        """
        lists, still_open, _ = self.algorithm.state
        last = still_open.arrival
        if tied(still_open.partition, still_open.score, still_open.position).any():
            last = np.sort(last)
        order = np.append(lists.arrival[::-1], last)
        place = np.zeros(self.table.num_rows, np.int64)
        place[order] = np.arange(order.size)
        self.table = self.table.take(pa.array(order)).combine_chunks()
        self.algorithm.renumber(place)
        if self.partitions is not None and self.window.time and len(self.partitions) > 64:
            alive = self.algorithm.partitions()
            if len(self.partitions) > 2 * alive.size:
                self.partitions, code = self.partitions.only(alive)
                self.algorithm.rekey(code)

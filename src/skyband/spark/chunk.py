"""The second stage: a piece of the state takes in packed rows. Restore, update, save: the engine decides everything.

There are two kinds of piece. :class:`Pruned` holds MinTopk's lists for hopping windows and gets the top k of each
pane. :class:`Packed` holds a whole pipeline and gets every row.

Spark has no order of arrival, so objects that tie in score and event time are ranked by a column that the rows carry
(``TIE``, larger first) and then by their content: the answer is the same however the rows were spread over files,
batches and tasks.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from skyband import state
from skyband.errors import StateError
from skyband.intake import Intake, Ready
from skyband.keys import Keys
from skyband.layout import Written
from skyband.objects.base import FOREVER, NOTHING, Floats, Ints, Rankings, Rows
from skyband.objects.mintopk import MinTopk
from skyband.pipeline import Pipeline
from skyband.spark.job import SCORE, TIE, TIME, Job
from skyband.spark.pack import integers, numbers
from skyband.store import table_from_bytes, table_to_bytes


class Arrived(NamedTuple):
    """What a batch brings to a piece of the state."""

    rows: pa.Table | None
    counts: pa.Table | None  # counted sequences: numbers that came, by partition and pane
    newest: int  # event time over all tasks, this batch and the earlier ones; FOREVER: the stream has ended
    before: int  # the same without this batch


class Chunk(ABC):
    """A piece of the state."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.query = job.scored
        self.window = self.query.window
        self.descending = str(self.query.order_by).endswith("DESC")
        self.late = 0  # in the batch just taken in

    @abstractmethod
    def take_in(self, arrived: Arrived) -> pa.Table:
        """What the batch brings about."""

    @abstractmethod
    def latest(self) -> pa.Table:
        """The ranking as it stands of the partitions that the last batch touched."""

    @abstractmethod
    def save(self) -> bytes: ...

    @abstractmethod
    def restore(self, blob: bytes) -> None: ...

    @property
    @abstractmethod
    def candidates(self) -> int: ...

    def _watermark(self, newest: int) -> int:
        return newest if newest >= FOREVER else newest - (self.window.late or 0)


def chunk(job: Job, blob: bytes | None) -> Chunk:
    """A piece of the state as it was saved, or an empty one."""
    piece: Chunk = Pruned(job) if job.pruned else Packed(job)
    if blob is not None:
        piece.restore(blob)
    return piece


class Pruned(Chunk):
    """MinTopk's lists of some partitions, and the columns of the objects in them."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.algorithm = MinTopk(self.query)
        empty = job.travelling().empty_table()
        self.keys = Keys(empty.select(job.query.partition_by)) if job.query.partition_by else None
        self.table = empty.drop_columns([SCORE, TIME])  # by number: in the order of ties
        self.layout = job.layout()
        self.complete: Ints = np.zeros(0 if self.keys else 1, np.int64)  # counted: numbers before it have come
        self.before = self.complete  # as it was before the batch
        self.highest: Ints = self.complete - 1
        self.partial = pa.table({"key": NOTHING, "pane": NOTHING, "count": NOTHING})  # counted: panes not complete
        self.touched: Ints | None = None  # partitions; None: all

    def take_in(self, arrived: Arrived) -> pa.Table:
        self.late = 0
        before = self.algorithm.state.closed.copy()
        frontier = self._counted(arrived) if self.job.counted else self._watermark(arrived.newest)
        rows = self._placed(arrived)
        if isinstance(frontier, np.ndarray):
            self.algorithm.make_room(frontier.size)
        (event,) = self.algorithm.update(rows, frontier)
        assert isinstance(event, Rankings)
        moved = self.window.time and int(before[0]) // self.window.slide != int(
            self.algorithm.state.closed[0]) // self.window.slide  # fmt: skip
        self.touched = None if moved else np.unique(rows.key) if rows.key.size else np.zeros(1, np.int64)
        answer = self._written(event)
        self._forget()
        return answer

    def latest(self) -> pa.Table:
        ranking = self.algorithm.result(self.query, self.query.k)
        keys = np.unique(ranking.key) if self.touched is None else self.touched
        return padded(self.layout.snapshot(self._sorted(ranking), self.table.take(pa.array(ranking.number))),
                      None if self.keys is None else self.keys.rows.take(pa.array(keys)), self.query.k)  # fmt: skip

    @property
    def candidates(self) -> int:
        return self.algorithm.candidates

    def save(self) -> bytes:
        arrays: dict[str, NDArray[Any]] = {f"algorithm.{n}": a for n, a in self.algorithm.arrays()}
        arrays |= {"table": table_to_bytes(self.table), "partial": table_to_bytes(self.partial)}
        arrays |= {"complete": self.complete, "highest": self.highest}
        arrays |= {"keys": table_to_bytes(self.keys.rows)} if self.keys is not None else {}
        return state.pack({"query": self.job.query.spec(), "kind": "pruned"}, arrays)

    def restore(self, blob: bytes) -> None:
        meta, arrays = state.unpack(blob)
        check_same(meta, self.job, "pruned")
        prefix = "algorithm."
        self.algorithm.restore({n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)})
        self.table, self.partial = table_from_bytes(arrays["table"]), table_from_bytes(arrays["partial"])
        self.complete, self.highest = arrays["complete"], arrays["highest"]
        if "keys" in arrays:
            self.keys = Keys(table_from_bytes(arrays["keys"]))

    def _placed(self, arrived: Arrived) -> Rows:
        """New rows with their numbers; rows whose pane is closed are left out."""
        table = arrived.rows
        if table is None or not table.num_rows:
            return Rows(np.empty(0))
        time, score, key = integers(table, TIME), numbers(table, SCORE), self._code(table)
        closed = self._watermark(arrived.before) if self.window.time else self.before[key if key.size else 0]
        on_time = time >= closed // self.window.pane * self.window.pane
        if not on_time.all():
            table, time, score = table.filter(pa.array(on_time)), time[on_time], score[on_time]
            key = key[on_time] if key.size else key
        number = self._numbered(table.drop_columns([SCORE, TIME]))
        return Rows(score if self.descending else -score, time, key, number)

    def _code(self, table: pa.Table) -> Ints:
        return NOTHING if self.keys is None else self.keys.encode(table)

    def _numbered(self, table: pa.Table) -> Ints:
        """Adds rows to those held, in the order of ties; all are numbered anew."""
        held = self.table.num_rows
        both = pa.concat_tables([self.table, table.select(self.table.column_names)])
        order = in_order(both, integers(both, TIE))
        place = np.empty(order.size, np.int64)
        place[order] = np.arange(order.size)
        self.table = both.take(pa.array(order))
        self.algorithm.renumber(place[:held])
        return place[held:]

    def _forget(self) -> None:
        """Drops the columns of objects that are not candidates any more, and partitions that have none."""
        held = np.unique(self.algorithm.held())
        place = np.zeros(self.table.num_rows, np.int64)
        place[held] = np.arange(held.size)
        self.table = self.table.take(pa.array(held)).combine_chunks()
        self.algorithm.renumber(place)
        if self.keys is not None and self.window.time and len(self.keys) > 64:
            alive = self.algorithm.keys()
            if len(self.keys) > 2 * alive.size:
                code = np.full(len(self.keys), -1)
                code[alive] = np.arange(alive.size)
                self.keys = Keys(self.keys.rows.take(pa.array(alive)))
                self.algorithm.rekey(code)
                self.touched = None if self.touched is None else code[self.touched][code[self.touched] >= 0]

    def _counted(self, arrived: Arrived) -> Ints:
        """Counted sequences: up to where every number of each partition has come."""
        pane = self.window.pane
        late = self.window.late
        if arrived.counts is not None:
            key = self._code(arrived.counts)
            key = key if key.size else np.zeros(arrived.counts.num_rows, np.int64)
            new = (len(self.keys) if self.keys is not None else 1) - self.complete.size
            self.complete = np.append(self.complete, np.zeros(max(new, 0), np.int64))
            self.highest = np.append(self.highest, np.full(max(new, 0), -1))
            self.before = self.complete.copy()
            if late is not None:
                self.complete = np.maximum(self.complete, (self.highest - late) // pane * pane)
            came = arrived.counts.select(["pane", "count"]).add_column(0, "key", pa.array(key))
            old = integers(came, "pane") * pane < self.before[key]
            self.late += int(integers(came, "count")[old].sum())
            came = pa.concat_tables([self.partial, came.filter(pa.array(~old))])
            np.maximum.at(self.highest, integers(came, "key"), (integers(came, "pane") + 1) * pane - 1)
            self.partial = (came.group_by(["key", "pane"]).aggregate([("count", "sum")])
                            .rename_columns(["key", "pane", "count"]).sort_by([("key", "ascending"), ("pane", "ascending")]))  # fmt: skip
        else:
            self.before = self.complete.copy()
        if arrived.newest >= FOREVER:
            self.complete = np.maximum(self.complete, self.highest + 1)
        key, number, count = (integers(self.partial, n) for n in ("key", "pane", "count"))
        below = number * pane < self.complete[key]
        start = np.searchsorted(key, key)
        skipped = np.cumsum(below) - below
        rank = np.arange(key.size) - start - (skipped - skipped[start] if key.size else 0)
        full = ~below & (count >= pane) & (number - rank == self.complete[key] // pane)
        broken = np.cumsum(~full & ~below)
        full &= broken == (broken[start] - (~full & ~below)[start] if key.size else broken)
        np.maximum.at(self.complete, key[full], (number[full] + 1) * pane)
        self.partial = self.partial.filter(pa.array(number * pane >= self.complete[key]))
        return self.complete

    def _sorted(self, event: Rankings) -> Written:
        size = np.diff(event.offset)
        keys = None if self.keys is None else self.keys.rows.take(pa.array(np.repeat(event.key, size)))
        return Written(event.end, keys, size, event.number, event.score)

    def _written(self, event: Rankings) -> pa.Table:
        return self.layout.rankings(self._sorted(event), self.table.take(pa.array(event.number)))


class Ordered(Intake):
    """Takes rows with an event time in its order, as soon as the watermark has passed them."""

    coming = -FOREVER  # the newest event time, this batch included

    def _in_time(self, table: pa.Table, score: Floats, time: Ints) -> Ready:
        assert self.window.late is not None
        on_time = time >= self.newest - self.window.late
        self.late += int(time.size - on_time.sum())
        table = table.filter(pa.array(on_time))
        if self.held is not None:
            table = pa.concat_tables([self.held, table])
        self.newest = max(self.newest, self.coming)
        watermark = self.newest if self.newest >= FOREVER else self.newest - self.window.late
        ripe = integers(table.set_column(table.column_names.index(TIME), TIME, table.column(TIME).cast(pa.int64())),
                        TIME) < watermark  # fmt: skip
        self.held = table.filter(pa.array(~ripe)).combine_chunks()
        table = table.filter(pa.array(ripe))
        time = table.column(TIME).cast(pa.int64()).to_numpy()
        order = in_order(table, time, integers(table, TIE))
        table, time = table.take(pa.array(order)), time[order]
        score = self.score.evaluate(table)
        rows = Rows(score if self.score.descending else -score, time, self._coded(table), n0=self._number(time.size))
        return Ready(rows, table, max(-FOREVER, watermark))

    def finish(self) -> None:
        return None


class Packed(Chunk):
    """A whole pipeline, for every other kind of window and algorithm."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.pipeline = Pipeline(job.plan, Ordered)
        self.changed: pa.Table | None = None

    def take_in(self, arrived: Arrived) -> pa.Table:
        intake = self.pipeline.intake
        late = intake.late
        table = self.job.travelling().empty_table()
        if arrived.rows is not None:
            table = arrived.rows.cast(self.job.travelling()) if self.window.on is not None else arrived.rows
        if isinstance(intake, Ordered):
            intake.coming = arrived.newest
        if self.window.on is None:
            table = table.select([n for n in table.column_names if n != TIME])
        (answer,) = self.pipeline.push(table)
        if arrived.newest >= FOREVER:
            (rest,) = self.pipeline.flush()
            answer = pa.concat_tables([answer, rest])
        self.late = intake.late - late
        self.changed = table.select(self.query.partition_by) if self.query.partition_by else None
        return answer

    def latest(self) -> pa.Table:
        ranking = self.pipeline.top(self.query, None, None)
        assert ranking is not None
        keys = None if self.changed is None else Keys(self.changed).rows
        return padded(ranking, keys, self.query.k)

    @property
    def candidates(self) -> int:
        return self.pipeline.algorithm.candidates

    def save(self) -> bytes:
        meta, arrays = self.pipeline.save()
        return state.pack({"query": self.job.query.spec(), "kind": "packed", "pipeline": meta}, arrays)

    def restore(self, blob: bytes) -> None:
        meta, arrays = state.unpack(blob)
        check_same(meta, self.job, "packed")
        self.pipeline.restore(meta["pipeline"], arrays)


def in_order(table: pa.Table, *by: Ints) -> Ints:
    """A stable order by these values, and where they are equal by the content of the rows."""
    order = np.lexsort(by[::-1])
    equal = np.ones(max(order.size - 1, 0), bool)
    for values in by:
        equal &= values[order][1:] == values[order][:-1]
    if equal.any():
        content = pd.util.hash_pandas_object(table.to_pandas(), index=False).to_numpy()
        order = np.lexsort((content, *by[::-1]))
    return order


def padded(ranking: pa.Table, keys: pa.Table | None, k: int) -> pa.Table:
    """The rankings of these partitions with exactly k ranks each; those that do not exist have no score."""
    names = [] if keys is None else keys.column_names
    frame = ranking.to_pandas(types_mapper=pd.ArrowDtype)
    ranks = pd.DataFrame({"rank": pd.array(range(1, k + 1), pd.ArrowDtype(pa.int32()))})
    wanted = ranks if keys is None else keys.to_pandas(types_mapper=pd.ArrowDtype).merge(ranks, how="cross")
    filled = wanted.merge(frame, how="left", on=[*names, "rank"])
    return pa.Table.from_pandas(filled[ranking.column_names], ranking.schema, preserve_index=False)


def check_same(meta: dict[str, Any], job: Job, kind: str) -> None:
    """Refuses the state of another query; a lower k and a window shorter by whole slides are held by it."""
    saved, given = dict(meta["query"]), dict(job.query.spec())
    window, wanted = dict(saved.pop("window")), dict(given.pop("window"))
    k, smaller = saved.pop("k"), given.pop("k")
    extent, shorter = window.pop("extent"), wanted.pop("extent")
    fits = smaller <= k and shorter <= extent and (not wanted["every"] or (extent - shorter) % wanted["every"] == 0)
    same = k == smaller and extent == shorter
    for spec in (saved, given):
        spec.pop("name")
    if saved != given or window != wanted or not (same or (fits and kind == "pruned")) or meta["kind"] != kind:
        raise StateError(f"the checkpoint belongs to another query, {meta['query']}; this one is {job.query.spec()}. "
                         "Only k may be lower and the window shorter by whole slides (hopping windows); for anything "
                         "else start with a new checkpoint directory")  # fmt: skip

"""What every piece of the state does: it is restored, takes in packed rows, and is saved; the engine ranks the rows."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.algorithms.contract import Ints, Rankings
from skyband.engine.partitions import Keys
from skyband.engine.writer import Layout, Written
from skyband.spark.stages.job import Job, prepare

Arrays = dict[str, NDArray[Any]]


class Arrived(NamedTuple):
    """What a micro-batch brings to a piece of the state."""

    rows: pa.Table | None
    counts: pa.Table | None  # if a sequence is pruned: how many numbers came, by partition and pane
    newest: int  # the newest event time over all tasks, this batch included
    before: int  # the newest event time before this batch
    ended: bool = False  # whether this is the last batch


class Piece(ABC):
    """A piece of a shard's state."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.prepared = prepare(job)
        self.query = self.prepared.query
        self.window = self.query.window
        self.late = 0  # how many rows of the last batch came too late
        self.former = job  # the job that saved the state

    @abstractmethod
    def take_in(self, arrived: Arrived) -> pa.Table:
        """Takes in a micro-batch; returns the answer that it brings about."""

    @abstractmethod
    def due(self, newest: int) -> int:
        """At which newest event time the piece has work to do even if no row comes for it; FOREVER if never."""

    @property
    @abstractmethod
    def candidates(self) -> int:
        """How many objects are held."""

    @abstractmethod
    def save(self) -> bytes: ...

    @abstractmethod
    def restore(self, meta: dict[str, Any], arrays: Arrays, former: Job) -> None:
        """Goes on from what ``former`` saved: this job, or one whose state has all that this job needs."""

    def _boundary(self, newest: int) -> int:
        """At which newest event time the next window is final; with ``latest``, when it becomes the present one."""
        late = 0 if self.job.latest else self.window.late or 0
        return self.window.first_end(newest - late) + late

    def _moved(self, arrived: Arrived) -> bool:
        """Whether the present ranking may differ in all partitions: the window has moved, or the job is another one."""
        window = self.window
        if self.former is not self.job:
            return True
        moves = window.time and window.hopping
        return moves and window.last_closed(arrived.newest) != window.last_closed(arrived.before)


def latest(
    event: Rankings, columns: pa.Table, partitions: Keys | None, touched: Ints, layout: Layout, k: int
) -> pa.Table:
    """The rankings of the partitions ``touched``, always k ranks each; a rank without an object has no score.

    ``columns`` are the columns of the objects (or pairs) in ``event``.
    """
    size = np.diff(event.offset)
    names = None if partitions is None else partitions.rows.take(pa.array(np.repeat(event.partition, size)))
    written = Written(event.end, names, size, event.arrival, event.score, values=event.values)
    table = layout.snapshot(written, columns)
    first = np.zeros(max(event.partition.max(initial=-1), touched.max(initial=-1)) + 1, np.int64)
    count = np.zeros_like(first)
    first[event.partition], count[event.partition] = event.offset[:-1], size
    rank = np.arange(k)
    place = (first[touched][:, None] + rank).ravel()
    there = (rank < count[touched][:, None]).ravel()
    table = table.take(pa.array(np.where(there, place, 0), mask=~there))
    rank_column = table.column_names.index("rank")
    table = table.set_column(rank_column, "rank", pa.array(np.tile(rank + 1, touched.size), pa.int32()))
    if partitions is not None:
        names = partitions.rows.take(pa.array(np.repeat(touched, k)))
        for i, name in enumerate(names.column_names):
            table = table.set_column(i, name, names.column(name))
    return table

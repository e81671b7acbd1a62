"""A piece of the state takes in packed rows. Restore, update, save: the engine decides everything."""

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
    """What a batch brings to a piece of the state."""

    rows: pa.Table | None
    counts: pa.Table | None  # pruned sequences: numbers that came, by partition and pane
    newest: int  # event time over all tasks, this batch and the earlier ones
    before: int  # the same without this batch
    ended: bool = False  # whether no batch comes any more


class Chunk(ABC):
    """A piece of the state."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.prepared = prepare(job)
        self.query = self.prepared.query
        self.window = self.query.window
        self.late = 0  # rows of the batch just taken in that came too late
        self.former = job  # the job that saved the state

    @abstractmethod
    def take_in(self, arrived: Arrived) -> pa.Table:
        """The answer that the batch brings about."""

    @abstractmethod
    def due(self, newest: int) -> int:
        """The newest event time at which there will be something to do even if no row comes; FOREVER: never."""

    @property
    @abstractmethod
    def candidates(self) -> int:
        """Objects held."""

    @abstractmethod
    def save(self) -> bytes: ...

    @abstractmethod
    def restore(self, meta: dict[str, Any], arrays: Arrays, former: Job) -> None:
        """Take back what ``former`` saved: this job, or one whose state holds what this one needs."""

    def _watermark(self, newest: int) -> int:
        return newest - (self.window.late or 0)

    def _boundary(self, newest: int) -> int:
        """The newest event time at which the next window is final (or is the present one, if the latest is wanted)."""
        late = 0 if self.job.latest else self.window.late or 0
        return (newest - late) // self.window.slide * self.window.slide + self.window.slide + late

    def _moved(self, arrived: Arrived) -> bool:
        """Whether the present window of all partitions is another one now, or wanted otherwise."""
        window = self.window
        if self.former is not self.job:
            return True
        return window.time and window.hopping and arrived.newest // window.slide != arrived.before // window.slide


def latest(
    event: Rankings, columns: pa.Table, partitions: Keys | None, touched: Ints, layout: Layout, k: int
) -> pa.Table:
    """The rankings of the partitions ``touched``, exactly k ranks each; those that do not exist have no score.

    ``columns`` are those of the objects of the event, or of its pairs.
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

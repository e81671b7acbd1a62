"""The stateful operator: hands packets to :mod:`.shard`, and keeps pieces in Spark's state store.

It is a processor of plain rows (``transformWithState``). For the few packed rows that come and go, that costs a third
of the pandas variant.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from skyband.spark.stages.job import TIE, TIME, Job, prepare
from skyband.spark.stages.parcel import unpacked
from skyband.spark.stages.rounds import summed
from skyband.spark.stages.spread import gathered
from skyband.spark.state.shard import Packet, Pieces, Step, merge
from skyband.spark.worker import settle

# Schemas are not written as text, which Java would have to parse for every task of every batch.
_BLOB = StructType([StructField("blob", BinaryType())])
_CHUNK = StructType([StructField("chunk", LongType())])


class StoredPieces:
    """The pieces of a shard in Spark's state store.

    The names ``head`` and ``pieces`` are part of the checkpoint: with another name Spark finds nothing, without a word.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", _BLOB)
        self._pieces = handle.getMapState("pieces", _CHUNK, _BLOB)

    def head(self) -> bytes | None:
        value = self._head.get()
        return None if value is None else bytes(value[0])

    def set_head(self, blob: bytes) -> None:
        self._head.update((blob,))

    def get(self, chunk: int) -> bytes:
        value = self._pieces.getValue((chunk,))
        assert value is not None
        return bytes(value[0])

    def put(self, chunk: int, blob: bytes) -> None:
        self._pieces.updateValue((chunk,), (blob,))

    def drop(self, chunk: int) -> None:
        self._pieces.removeKey((chunk,))


class Operator(StatefulProcessor):
    """Runs a step over a stream: for each micro-batch it restores pieces of the state, updates and saves them."""

    def __init__(self, step: Step, schema: pa.Schema) -> None:
        self._step, self._names = step, schema.names

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._pieces = StoredPieces(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802
        for answer in self._step(key[0], [row.asDict() for row in rows], self._pieces, False):
            yield Row(**{**dict.fromkeys(self._names), "shard": key[0], **answer})
        settle()


class MemoryPieces:
    """The pieces of a shard in memory, for a static DataFrame or a test."""

    def __init__(self) -> None:
        self.blobs: dict[int, bytes] = {}
        self.first: bytes | None = None

    def head(self) -> bytes | None:
        return self.first

    def set_head(self, blob: bytes) -> None:
        self.first = blob

    def get(self, chunk: int) -> bytes:
        return self.blobs[chunk]

    def put(self, chunk: int, blob: bytes) -> None:
        self.blobs[chunk] = blob

    def drop(self, chunk: int) -> None:
        del self.blobs[chunk]


def at_once(step: Step, schema: pa.Schema) -> Callable[[pa.Table], pa.Table]:
    """The function for ``applyInArrow``: runs a step over all rows of a shard at once, after which the stream ends."""

    def run(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        shard = rows[0]["shard"]
        answers = step(shard, rows, MemoryPieces(), True)
        return pa.Table.from_pylist([{"shard": shard, **answer} for answer in answers], schema)

    return run


def merging(jobs: tuple[Job, ...]) -> Step:
    """The step that takes packets into the state of a shard."""

    def step(shard: int, rows: list[dict[str, Any]], pieces: Pieces, ended: bool) -> Iterator[dict[str, Any]]:
        return merge(job_of(jobs, shard), list(map(Packet.of, rows)), pieces, ended, shard)

    return step


def job_of(jobs: tuple[Job, ...], shard: int) -> Job:
    """The job that a shard belongs to."""
    return next(job for job in jobs if shard in job.shards)


def answer_schema(jobs: tuple[Job, ...], several: bool) -> pa.Schema:
    """The columns of the answer: those of all queries, after the name of the query if there are several."""
    schemas = [prepare(job).answer for job in jobs]
    first = pa.schema({"query": pa.string()} if several else {})
    return pa.unify_schemas([first, *schemas])


def unpacker(jobs: tuple[Job, ...], several: bool) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow`` that turns packed answers into rows."""

    schema = answer_schema(jobs, several)

    def written(job: Job, table: pa.Table) -> list[pa.RecordBatch]:
        if several:
            table = table.append_column("query", pa.array([job.query.name] * table.num_rows, pa.string()))
        table = pa.concat_tables([schema.empty_table(), table], promote_options="default")
        return table.select(schema.names).to_batches()  # type: ignore[no-any-return]

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        told: dict[Job, list[pa.Table]] = {}  # the answers of the cells, for rankings that are spread
        for batch in batches:
            for shard, data in zip(batch["shard"].to_pylist(), batch["data"].to_pylist(), strict=True):
                job, table = job_of(jobs, shard), unpacked(data)
                if job.spread:
                    told.setdefault(job, []).append(table)
                else:
                    yield from written(job, table)
        for job, tables in told.items():
            prepared = prepare(job)
            tables = [summed(job, tables)] if job.rounds else tables
            yield from written(job, gathered(job.family, prepared.query, prepared.layout, tables, TIME, TIE))

    return run

"""The stateful operator: hands packets to :mod:`skyband.spark.shard`, and keeps the pieces in Spark's state store.

It is a processor of plain rows (``transformWithState``): a handful of packed rows come and go, which costs a third of
what the pandas variant does.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from skyband.objects.base import FOREVER
from skyband.spark.job import Job
from skyband.spark.shard import MERGED, Packet, merge
from skyband.store import table_from_bytes


class StoredPieces:
    """Pieces in the state store: a map of blobs, and beside each its size, so that a look costs little."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._newest = handle.getValueState("newest", "newest long")
        self._blobs = handle.getMapState("pieces", "chunk int", "blob binary")
        self._held = handle.getMapState("held", "chunk int", "candidates long, size long")

    def newest(self) -> int:
        return self._newest.get()[0] if self._newest.exists() else -FOREVER

    def set_newest(self, newest: int) -> None:
        self._newest.update((newest,))

    def get(self, chunk: int) -> bytes | None:
        return bytes(self._blobs.getValue((chunk,))[0]) if self._blobs.containsKey((chunk,)) else None

    def put(self, chunk: int, blob: bytes) -> None:
        self._blobs.updateValue((chunk,), (blob,))

    def all(self) -> list[int]:
        return [key[0] for key in self._held.keys()]  # noqa: SIM118

    def held(self, chunk: int) -> tuple[int, int]:
        return tuple(self._held.getValue((chunk,)))  # type: ignore[return-value]

    def set_held(self, chunk: int, candidates: int, size: int) -> None:
        self._held.updateValue((chunk,), (candidates, size))


class Merger(StatefulProcessor):
    """Restore, update, save."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._pieces = StoredPieces(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802
        found = [_packet(row.asDict()) for row in rows]
        for answer in merge(self._job, found, self._pieces, ended=False):
            yield Row(**{name: answer.get(name) for name in MERGED.names})


class MemoryPieces:
    """Pieces of a run over a static DataFrame, which ends with the call."""

    def __init__(self) -> None:
        self._blobs: dict[int, bytes] = {}
        self._sizes: dict[int, tuple[int, int]] = {}

    def newest(self) -> int:
        return -FOREVER

    def set_newest(self, newest: int) -> None:
        pass

    def get(self, chunk: int) -> bytes | None:
        return self._blobs.get(chunk)

    def put(self, chunk: int, blob: bytes) -> None:
        self._blobs[chunk] = b""

    def all(self) -> list[int]:
        return list(self._sizes)

    def held(self, chunk: int) -> tuple[int, int]:
        return self._sizes[chunk]

    def set_held(self, chunk: int, candidates: int, size: int) -> None:
        self._sizes[chunk] = candidates, size


def merge_all(job: Job) -> Callable[[pa.Table], pa.Table]:
    """The function for ``applyInArrow``: all packets of a shard at once, and the stream has ended."""

    def run(table: pa.Table) -> pa.Table:
        found = [_packet(row) for row in table.to_pylist()]
        return pa.Table.from_pylist(list(merge(job, found, MemoryPieces(), ended=True)), MERGED)

    return run


def _packet(row: dict[str, Any]) -> Packet:
    return Packet(**{name: row[name] for name in Packet._fields})


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function for ``mapInArrow`` that turns packed answers into rows."""
    for batch in batches:
        for data in batch.column("data").to_pylist():
            yield from table_from_bytes(data).to_batches()


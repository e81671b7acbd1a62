"""All pieces of the state that one task holds, and what a micro-batch does to them."""

import time as clock
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from skyband.objects.base import FOREVER
from skyband.spark.chunk import Arrived, Chunk, chunk
from skyband.spark.job import Job
from skyband.spark.pack import integers
from skyband.store import table_from_bytes, table_to_bytes

# What comes out of the second stage: answers, packed again, and counts.
MERGED = pa.schema({"data": pa.binary(), "seen": pa.int64(), "late": pa.int64(), "invalid": pa.int64(),
                    "candidates": pa.int64(), "bytes": pa.int64(), "prune_ms": pa.float64(),
                    "merge_ms": pa.float64()})  # fmt: skip


class Pieces(Protocol):
    """Where the pieces of a shard's state are kept."""

    def newest(self) -> int: ...
    def set_newest(self, newest: int) -> None: ...
    def get(self, chunk: int) -> bytes | None: ...
    def put(self, chunk: int, blob: bytes) -> None: ...
    def all(self) -> Iterable[int]: ...
    def held(self, chunk: int) -> tuple[int, int]: ...
    def set_held(self, chunk: int, candidates: int, size: int) -> None: ...


class Packet(NamedTuple):
    """A row of the first stage."""

    chunk: int
    data: bytes | None
    counts: bytes | None
    newest: int
    seen: int
    invalid: int
    order: int
    ms: float


def merge(job: Job, packets: list[Packet], pieces: Pieces, ended: bool) -> Iterator[dict[str, Any]]:
    """Takes the packets of a micro-batch into the pieces of the state; yields rows of :data:`MERGED`."""
    start = clock.perf_counter()
    before = pieces.newest()
    newest = max([before, *(p.newest for p in packets)])
    pieces.set_newest(newest)
    coming = _by_chunk(packets)
    touched = set(coming)
    late = _late(job, packets, before)
    if ended or _moves(job, before, newest):
        touched |= set(pieces.all())
    for number in sorted(touched):
        blob = pieces.get(number)
        piece = chunk(job, blob)
        rows, counts = coming.get(number, (None, None))
        answer = piece.take_in(Arrived(rows, counts, FOREVER if ended else newest, before))
        late += piece.late
        if job.emit == "latest":
            answer = piece.latest()
        saved = piece.save()
        pieces.put(number, saved)
        pieces.set_held(number, piece.candidates, len(saved))
        if answer.num_rows:
            yield {"data": table_to_bytes(answer).tobytes()}
    held = [pieces.held(number) for number in pieces.all()]
    yield {"seen": sum(p.seen for p in packets), "invalid": sum(p.invalid for p in packets), "late": late,
           "candidates": sum(h[0] for h in held), "bytes": sum(h[1] for h in held),
           "prune_ms": sum(p.ms for p in packets), "merge_ms": 1e3 * (clock.perf_counter() - start)}  # fmt: skip


def _by_chunk(packets: list[Packet]) -> dict[int, tuple[pa.Table | None, pa.Table | None]]:
    parts: dict[int, tuple[list[pa.Table], list[pa.Table]]] = {}
    for packet in sorted(packets, key=lambda p: p.order):
        if packet.chunk < 0:
            continue
        rows, counts = parts.setdefault(packet.chunk, ([], []))
        for side, data in ((rows, packet.data), (counts, packet.counts)):
            if data is not None:
                side.append(table_from_bytes(data))  # type: ignore[arg-type]
    return {number: tuple(pa.concat_tables(side) if side else None for side in sides)  # type: ignore[misc]
            for number, sides in parts.items()}  # fmt: skip


def _moves(job: Job, before: int, newest: int) -> bool:
    """Whether the watermark's step concerns pieces that no row came for."""
    window = job.query.window
    if not window.time or newest == before:
        return False
    if not job.pruned:
        return True  # rows may have waited for it
    late = window.late or 0
    return (newest - late) // window.slide > (before - late) // window.slide


def _late(job: Job, packets: list[Packet], before: int) -> int:
    """Rows of panes that were closed before this batch; the tasks counted them pane by pane."""
    window = job.query.window
    if not job.pruned or not window.time or before == -FOREVER:
        return 0
    closed = (before - (window.late or 0)) // window.pane
    count = 0
    for packet in packets:
        if packet.chunk < 0 and packet.counts is not None:
            table = table_from_bytes(packet.counts)  # type: ignore[arg-type]
            count += int(integers(table, "count_sum")[integers(table, "pane") < closed].sum())
    return count


__all__ = ["MERGED", "Chunk", "Packet", "Pieces", "merge"]

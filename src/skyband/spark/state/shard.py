"""A shard: all pieces of the state that one task holds, and how a micro-batch updates them."""

import time as clock
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from skyband.algorithms.contract import FOREVER
from skyband.spark.stages.job import Job
from skyband.spark.stages.pack import integers
from skyband.spark.stages.parcel import packed, unpacked
from skyband.spark.state.packed import Packed
from skyband.spark.state.piece import Arrived, Piece
from skyband.spark.state.pruned import Pruned
from skyband.spark.state.takeover import former
from skyband.storage import codec as state

# The rows that the second stage sends: packed answers, and counts.
MERGED = pa.schema({"shard": pa.int32(), "data": pa.binary(), "seen": pa.int64(), "late": pa.int64(),
                    "invalid": pa.int64(), "candidates": pa.int64(), "bytes": pa.int64(), "prune_ms": pa.float64(),
                    "merge_ms": pa.float64()})  # fmt: skip
COUNTS = MERGED.names[2:]
ROWS = 1 << 17  # rows of an answer in one packed row, at most


class Pieces(Protocol):
    """Where the state of a shard is kept: one blob for the head, which is about the shard, and one for each piece."""

    def head(self) -> bytes | None: ...
    def set_head(self, blob: bytes) -> None: ...
    def get(self, chunk: int) -> bytes: ...
    def put(self, chunk: int, blob: bytes) -> None: ...
    def drop(self, chunk: int) -> None: ...


Step = Callable[[int, list[dict[str, Any]], Pieces, bool], Iterator[dict[str, Any]]]
"""What a stateful operator does with the rows of a shard: (shard, rows, its state, whether the stream has ended)."""


class Packet(NamedTuple):
    """A row that the first stage sends: rows for one piece of the state, packed, or counts for the shard."""

    chunk: int
    order: int
    data: bytes | None
    counts: bytes | None
    newest: int
    seen: int
    invalid: int
    ms: float

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Packet":
        return cls(**{name: row[name] for name in cls._fields})


class Known(NamedTuple):
    """What the head knows about a piece, so that the piece need not be read: objects and bytes held, when it is due."""

    candidates: int
    size: int
    due: int


class Head:
    """What is kept about a shard as a whole: how far it is, and which pieces it has.

    Attributes:
        former: the job that wrote the pieces: another one if the query goes on with a lower k or a shorter window.
        newest: the newest event time of all batches so far.
        pieces: what is known about each piece, by its number.
    """

    def __init__(self, job: Job, blob: bytes | None) -> None:
        self.job = self.former = job
        self.newest = -FOREVER
        self.pieces: dict[int, Known] = {}
        if blob is not None:
            meta, _ = state.unpack(blob)
            self.former = former(meta["job"], job)
            self.newest = meta["newest"]
            self.pieces = {int(number): Known(*piece) for number, piece in meta["pieces"].items()}

    def save(self) -> bytes:
        return state.pack({"job": self.job.spec(), "newest": self.newest, "pieces": self.pieces}, {})


def merge(
    job: Job, packets: list[Packet], store: Pieces, ended: bool = False, shard: int | None = None
) -> Iterator[dict[str, Any]]:
    """Takes the packets of a micro-batch into the state; yields rows of :data:`MERGED`, without the shard."""
    start = clock.perf_counter()
    head = Head(job, store.head())
    before, head.newest = head.newest, max([head.newest, *(packet.newest for packet in packets)])
    coming = by_chunk(packets)
    late = _late(job, packets, before)
    everything = ended or head.former is not job
    due = [number for number, piece in head.pieces.items() if everything or piece.due <= head.newest]
    for number in sorted({*coming, *due}):
        piece: Piece = Pruned(job) if job.pruned else Packed(job, shard is not None and job.crosses(shard))
        if number in head.pieces:
            piece.restore(*state.unpack(store.get(number)), head.former)
        closing = ended and not job.latest  # the latest ranking is the present one: open windows are not closed
        answer = piece.take_in(Arrived(*coming.get(number, (None, None)), head.newest, before, closing))
        late += piece.late
        for part in answer.to_batches(max_chunksize=ROWS):
            yield {"data": packed(pa.Table.from_batches([part]))}
        if not ended:
            _keep(head, store, number, piece)
    if not ended:
        store.set_head(head.save())
    yield {"seen": sum(p.seen for p in packets), "invalid": sum(p.invalid for p in packets), "late": late,
           "candidates": sum(p.candidates for p in head.pieces.values()),
           "bytes": sum(p.size for p in head.pieces.values()), "prune_ms": sum(p.ms for p in packets),
           "merge_ms": 1e3 * (clock.perf_counter() - start)}  # fmt: skip


def _keep(head: Head, store: Pieces, number: int, piece: Piece) -> None:
    if piece.window.time and not piece.candidates:  # it holds nothing that matters to a later row
        if head.pieces.pop(number, None) is not None:
            store.drop(number)
        return
    blob = piece.save()
    store.put(number, blob)
    head.pieces[number] = Known(piece.candidates, len(blob), piece.due(head.newest))


def by_chunk(packets: list[Packet]) -> dict[int, tuple[pa.Table | None, pa.Table | None]]:
    """Rows and counts for each piece, in the order of the packets."""
    parts: dict[int, tuple[list[pa.Table], list[pa.Table]]] = {}
    for packet in sorted(packets, key=lambda packet: packet.order):
        if packet.chunk >= 0:
            sides = parts.setdefault(packet.chunk, ([], []))
            for side, data in zip(sides, (packet.data, packet.counts), strict=True):
                side.extend([] if data is None else [unpacked(data)])
    return {number: (_together(rows), _together(counts)) for number, (rows, counts) in parts.items()}


def _together(tables: list[pa.Table]) -> pa.Table | None:
    return pa.concat_tables(tables) if tables else None


def _late(job: Job, packets: list[Packet], before: int) -> int:
    """How many rows belong to panes that had closed before this batch; tasks have counted them pane by pane."""
    window = job.query.window
    bound = window.watermark(before)
    closed = window.pane_of(bound) if window.hopping else bound
    count = 0
    for packet in packets:
        if packet.chunk < 0 and packet.counts is not None:
            table = unpacked(packet.counts)
            count += int(integers(table, "count")[integers(table, "pane") < closed].sum())
    return count

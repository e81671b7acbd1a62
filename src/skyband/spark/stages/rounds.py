"""Carries the messages of a window whose rows lie in several parts, each of them a shard, from round to round.

The rounds themselves are an algorithm of the family: :mod:`skyband.algorithms.dominating.distributed`.
"""

import time as clock
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.algorithms.contract import FOREVER
from skyband.algorithms.rounds import Count, Points, Proposal, Rounds
from skyband.spark.stages.job import TIE, TIME, Job, prepare
from skyband.spark.stages.pack import integers
from skyband.spark.stages.parcel import packed, unpacked
from skyband.spark.stages.spread import END, GOODNESS
from skyband.spark.stages.ties import in_order
from skyband.spark.state.shard import COUNTS, Packet, Pieces, Step, by_chunk
from skyband.spark.state.takeover import former
from skyband.storage import codec as state

# What the first round sends to the second: points (no end) to its own shard, proposals to all of them, and its counts.
PROPOSED = pa.schema({"shard": pa.int32(), "source": pa.int32(), "end": pa.int64(), "data": pa.binary(),
                      "newest": pa.int64(), "seen": pa.int64(), "late": pa.int64(), "invalid": pa.int64(),
                      "candidates": pa.int64(), "bytes": pa.int64(), "prune_ms": pa.float64(),
                      "merge_ms": pa.float64()})  # fmt: skip
_SOURCE = "_skyband_source"
_OWN = (END, _SOURCE, GOODNESS)


class StoredPanes:
    """The panes of a part in the state of a shard: what is known of all is in the head.

    Attributes:
        newest: the newest event time of all batches so far.
    """

    def __init__(self, job: Job, store: Pieces) -> None:
        self.job, self.store = job, store
        self.newest = -FOREVER
        self._sizes, self._bytes = dict[int, int](), dict[int, int]()  # by pane
        if (blob := store.head()) is not None:
            meta, _ = state.unpack(blob)
            former(meta["job"], job)
            self.newest = meta["newest"]
            self._sizes, self._bytes = ({int(pane): n for pane, n in meta[name].items()} for name in ("sizes", "bytes"))

    @property
    def sizes(self) -> Mapping[int, int]:
        return self._sizes

    def get(self, pane: int) -> pa.Table:
        return unpacked(self.store.get(pane))

    def put(self, pane: int, rows: pa.Table) -> None:
        blob = packed(rows)
        self.store.put(pane, blob)
        self._sizes[pane], self._bytes[pane] = rows.num_rows, len(blob)

    def drop(self, pane: int) -> None:
        self.store.drop(pane)
        del self._sizes[pane], self._bytes[pane]

    def save(self) -> None:
        """Writes the head."""
        meta = {"job": self.job.spec(), "newest": self.newest, "sizes": self._sizes, "bytes": self._bytes}
        self.store.set_head(state.pack(meta, {}))

    @property
    def held(self) -> dict[str, int]:
        """How many rows, and how many bytes."""
        return {"candidates": sum(self._sizes.values()), "bytes": sum(self._bytes.values())}

    @property
    def frontier(self) -> int:
        """Up to where windows close."""
        return self.job.query.window.watermark(self.newest)


def proposing(job: Job) -> Step:
    """The first round as a step of an operator: takes the packets of a batch in; yields rows of :data:`PROPOSED`."""

    def step(shard: int, rows: list[dict[str, Any]], pieces: Pieces, ended: bool) -> Iterator[dict[str, Any]]:
        start = clock.perf_counter()
        packets, panes = list(map(Packet.of, rows)), StoredPanes(job, pieces)
        part = _rounds(job).proposing(shard, panes, panes.frontier)
        panes.newest = max([panes.newest, *(packet.newest for packet in packets)])
        points = part.take(_rows(job, packets))
        if points.rows.num_rows:
            yield {"shard": shard, "source": shard, "data": packed(points.rows)}
        for end, source, proposed in part.advance(FOREVER if ended else panes.frontier):
            data = packed(proposed)
            for other in job.shards:
                yield {"shard": other, "source": source, "end": end, "data": data}
        if not ended:
            panes.save()
        yield {"shard": shard, "source": shard, "newest": panes.newest, "seen": sum(p.seen for p in packets),
               "invalid": sum(p.invalid for p in packets), "late": part.late, **panes.held,
               "prune_ms": sum(p.ms for p in packets), "merge_ms": 1e3 * (clock.perf_counter() - start)}  # fmt: skip

    return step


def counting(job: Job) -> Step:
    """The second round as a step of an operator, given rows of :data:`PROPOSED`; yields those of ``shard.MERGED``.

    It hands on the counts of rows, and adds what it holds itself.
    """

    def step(shard: int, rows: list[dict[str, Any]], pieces: Pieces, ended: bool) -> Iterator[dict[str, Any]]:
        start = clock.perf_counter()
        panes = StoredPanes(job, pieces)
        panes.newest = max([panes.newest, *(row["newest"] for row in rows if row["newest"] is not None)])
        part = _rounds(job).counting(shard, panes)
        for row in rows:
            if row["end"] is None and row["data"] is not None:
                part.take(Points(row["source"], unpacked(row["data"])))
        sent = sorted((row for row in rows if row["end"] is not None), key=itemgetter("end", "source"))
        proposals = (Proposal(row["end"], row["source"], unpacked(row["data"])) for row in sent)
        for count in part.count(proposals, FOREVER if ended else panes.frontier):
            yield {"data": packed(_told(count))}
        if not ended:
            panes.save()
        for row in rows:
            if row["seen"] is not None:
                spent = row["merge_ms"] + 1e3 * (clock.perf_counter() - start)
                size = row["bytes"] + panes.held["bytes"]
                yield {name: row[name] for name in COUNTS} | {"bytes": size, "merge_ms": spent}

    return step


def summed(job: Job, told: Sequence[pa.Table]) -> pa.Table:
    """The third round, given what all shards told: one table of window ends, scores and rows."""
    return pa.concat_tables(
        _beside({END: np.full(score.size, end), GOODNESS: score.astype(np.float64)}, rows)
        for end, rows, score in _rounds(job).totals(_counts(told))
    )


def _rounds(job: Job) -> Rounds:
    rounds = job.family.rounds(prepare(job).query, TIME, TIE)
    assert rounds is not None
    return rounds


def _rows(job: Job, packets: list[Packet]) -> pa.Table:
    """The rows of the packets, in an order that does not depend on Spark's."""
    rows, _ = by_chunk(packets).get(0, (None, None))
    fields = prepare(job).travelling
    if rows is None:
        return fields.empty_table()
    rows = rows.cast(fields)
    return rows.take(pa.array(in_order(rows, integers(rows, TIE), integers(rows, TIME))))


def _told(count: Count) -> pa.Table:
    size = count.counts.size
    own = {END: np.full(size, count.end), _SOURCE: np.full(size, count.part), GOODNESS: count.counts}
    return pa.table(own) if count.rows is None else _beside(own, count.rows)


def _counts(told: Iterable[pa.Table]) -> Iterator[Count]:
    """The inverse of :func:`_told`; every proposal has a row, since a window without any is not proposed."""
    for table in told:
        end, source = (table.column(name)[0].as_py() for name in (END, _SOURCE))
        rows = table.drop_columns(list(_OWN)) if table.num_columns > len(_OWN) else None
        yield Count(end, source, table.column(GOODNESS).to_numpy(), rows)


def _beside(own: dict[str, Any], rows: pa.Table) -> pa.Table:
    return pa.table([*map(pa.array, own.values()), *rows.columns], [*own, *rows.column_names])

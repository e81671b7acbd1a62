"""Top-k dominating points of one window spread over several shards, in three rounds.

Each shard *proposes* its own k-skyband of a window that closes: a point that k others of its shard dominate cannot be
among the top k. Every shard then *counts* how many of its points each proposed one dominates, and the counts are added
up (:func:`summed`). Both rounds keep their rows by pane, so that a micro-batch rewrites only the panes it
touches; of a closed pane the first round keeps the k-skyband only, and the second one the points only.
"""

import time as clock
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.algorithms.contract import FOREVER, Floats, Ints
from skyband.algorithms.dominating.points import dominated, k_skyband
from skyband.query.windows import Window
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


class Panes:
    """Rows by pane in the state of a shard: what is known of all is in the head, the rows of each pane by themselves.

    Attributes:
        newest: the newest event time of all batches so far.
        sizes: rows and bytes of each pane that holds something.
    """

    def __init__(self, job: Job, store: Pieces) -> None:
        self.job, self.store = job, store
        self.newest, self.sizes = -FOREVER, dict[int, tuple[int, int]]()
        if (blob := store.head()) is not None:
            meta, _ = state.unpack(blob)
            former(meta["job"], job)
            self.newest = meta["newest"]
            self.sizes = {int(pane): (rows, size) for pane, (rows, size) in meta["sizes"].items()}

    def save(self) -> None:
        self.store.set_head(state.pack({"job": self.job.spec(), "newest": self.newest, "sizes": self.sizes}, {}))

    @property
    def held(self) -> dict[str, int]:
        """How many rows, and how many bytes."""
        rows, size = (sum(column) for column in zip(*self.sizes.values(), strict=True)) if self.sizes else (0, 0)
        return {"candidates": rows, "bytes": size}

    def rows(self, pane: int) -> pa.Table:
        return unpacked(self.store.get(pane))

    def put(self, pane: int, rows: pa.Table) -> None:
        blob = packed(rows)
        self.store.put(pane, blob)
        self.sizes[pane] = rows.num_rows, len(blob)

    def add(self, rows: pa.Table) -> None:
        """Rows of any panes, to those that are held."""
        pane = integers(rows, TIME) // self.job.query.window.pane
        for one in np.unique(pane).tolist():
            new = rows.filter(pa.array(pane == one))
            self.put(one, pa.concat_tables([self.rows(one), new]) if one in self.sizes else new)

    def drop_before(self, position: int) -> None:
        """Forgets the panes that end at ``position`` or before."""
        for pane in [pane for pane in self.sizes if (pane + 1) * self.job.query.window.pane <= position]:
            self.store.drop(pane)
            del self.sizes[pane]

    def window(self, end: int) -> list[int]:
        """The panes of a window."""
        window = self.job.query.window
        first, last = (end - window.extent) // window.pane, end // window.pane
        return sorted(pane for pane in self.sizes if first <= pane < last)


def propose(job: Job, packets: list[Packet], store: Pieces, shard: int, ended: bool) -> Iterator[dict[str, Any]]:
    """The first round: takes the packets of a micro-batch in; yields rows of :data:`PROPOSED`."""
    start = clock.perf_counter()
    panes, window = Panes(job, store), job.query.window
    before, panes.newest = panes.newest, max([panes.newest, *(packet.newest for packet in packets)])
    rows, late = _on_time(job, packets, before - (window.late or 0))
    panes.add(rows)
    if rows.num_rows:
        yield {"shard": shard, "source": shard, "data": packed(_points(job, rows))}
    closed, watermark = _watermark(window, before), FOREVER if ended else _watermark(window, panes.newest)
    best: dict[int, pa.Table] = {}  # the k-skyband of each pane that closes with this batch, or closed before
    for end in _ends(window, panes.sizes, closed, watermark):
        for pane in panes.window(end):
            if pane not in best:
                best[pane] = _skyband(job, panes.rows(pane))
        proposed = _skyband(job, pa.concat_tables([best[pane] for pane in panes.window(end)]))
        for other in job.shards:
            yield {"shard": other, "source": shard, "end": end, "data": packed(proposed)}
    for pane, skyband in best.items():
        if skyband.num_rows < panes.sizes[pane][0]:
            panes.put(pane, skyband)
    panes.drop_before(_floor(window, watermark))
    if not ended:
        panes.save()
    yield {"shard": shard, "source": shard, "newest": panes.newest, "seen": sum(p.seen for p in packets),
           "invalid": sum(p.invalid for p in packets), "late": late, **panes.held,
           "prune_ms": sum(p.ms for p in packets), "merge_ms": 1e3 * (clock.perf_counter() - start)}  # fmt: skip


def count(job: Job, rows: list[dict[str, Any]], store: Pieces, shard: int, ended: bool) -> Iterator[pa.Table]:
    """The second round, given rows of :data:`PROPOSED`: for each proposed point how many of the shard's it dominates.

    Yields a table for each window and proposing shard: the end, the shard, the counts in the order of the proposals;
    and the whole rows where this shard proposed them.
    """
    panes, window = Panes(job, store), job.query.window
    panes.newest = max([panes.newest, *(row["newest"] for row in rows if row["newest"] is not None)])
    for row in rows:
        if row["end"] is None and row["data"] is not None:
            panes.add(unpacked(row["data"]))
    read: dict[int, Floats] = {}  # the points of the panes of the present window
    proposals = [(row["end"], row["source"], row["data"]) for row in rows if row["end"] is not None]
    for end, source, data in sorted(proposals, key=itemgetter(0, 1)):
        table = unpacked(data)
        read = {pane: read[pane] if pane in read else _matrix(panes.rows(pane)) for pane in panes.window(end)}
        points = _measured(job, table)
        counts = sum((dominated(points, held) for held in read.values()), np.zeros(len(points), np.int64))
        told = pa.table([np.full(counts.size, end), np.full(counts.size, source), counts.astype(np.float64)], _OWN)
        yield _with(told, table) if source == shard else told
    panes.drop_before(_floor(window, FOREVER if ended else _watermark(window, panes.newest)))
    if not ended:
        panes.save()


def proposing(job: Job) -> Step:
    """The first round as a step of an operator."""

    def step(shard: int, rows: list[dict[str, Any]], pieces: Pieces, ended: bool) -> Iterator[dict[str, Any]]:
        return propose(job, list(map(Packet.of, rows)), pieces, shard, ended)

    return step


def counting(job: Job) -> Step:
    """The second round as a step of an operator; it hands on the counts of rows, and adds what it holds itself."""

    def step(shard: int, rows: list[dict[str, Any]], pieces: Pieces, ended: bool) -> Iterator[dict[str, Any]]:
        start = clock.perf_counter()
        for table in count(job, rows, pieces, shard, ended):
            yield {"data": packed(table)}
        for row in rows:
            if row["seen"] is not None:
                spent = row["merge_ms"] + 1e3 * (clock.perf_counter() - start)
                held = Panes(job, pieces).held
                yield {name: row[name] for name in COUNTS} | {"bytes": row["bytes"] + held["bytes"], "merge_ms": spent}

    return step


def summed(told: Sequence[pa.Table]) -> pa.Table:
    """The third round: the counts of all shards added up, as one table of window ends, scores and rows."""
    totals: dict[tuple[int, int], Ints] = {}
    rows: dict[tuple[int, int], pa.Table] = {}
    for table in told:
        window = table.column(END)[0].as_py(), table.column(_SOURCE)[0].as_py()
        counts = table.column(GOODNESS).to_numpy()
        totals[window] = totals[window] + counts if window in totals else counts
        if len(table.column_names) > len(_OWN):
            rows[window] = table.drop_columns([_SOURCE])
    place = next(iter(rows.values())).column_names.index(GOODNESS)
    return pa.concat_tables(table.set_column(place, GOODNESS, pa.array(totals[window]))
                            for window, table in rows.items())  # fmt: skip


def _on_time(job: Job, packets: list[Packet], bound: int) -> tuple[pa.Table, int]:
    """The rows of the packets, in a fixed order, without those that are late, and how many these are."""
    rows, _ = by_chunk(packets).get(0, (None, None))
    fields = prepare(job).travelling
    if rows is None:
        return fields.empty_table(), 0
    rows = rows.cast(fields)
    on_time = integers(rows, TIME) >= bound
    rows = rows.filter(pa.array(on_time))
    return rows.take(pa.array(in_order(rows, integers(rows, TIE), integers(rows, TIME)))), int((~on_time).sum())


def _watermark(window: Window, newest: int) -> int:
    return max(-FOREVER, newest - (window.late or 0))


def _floor(window: Window, watermark: int) -> int:
    """Where the first window begins that is still open."""
    return watermark // window.slide * window.slide + window.slide - window.extent


def _ends(window: Window, panes: Iterable[int], closed: int, watermark: int) -> list[int]:
    """The ends of the windows that hold something and close now."""
    ends: set[int] = set()
    for pane in panes:
        first = max(window.first_end(pane * window.pane), closed // window.slide * window.slide + window.slide)
        last = min(window.last_end(pane * window.pane), watermark // window.slide * window.slide)
        ends.update(range(first, last + 1, window.slide))
    return sorted(ends)


def _skyband(job: Job, rows: pa.Table) -> pa.Table:
    age = () if job.query.ties == "all" else (integers(rows, TIME), integers(rows, TIE))
    return rows.take(pa.array(k_skyband(_measured(job, rows), job.query.k, *age)))


def _measured(job: Job, rows: pa.Table) -> Floats:
    return prepare(job).measure.evaluate(rows).values


def _points(job: Job, rows: pa.Table) -> pa.Table:
    """Of each row its time and its point, which is all that counting takes."""
    values = _measured(job, rows)
    return pa.table({TIME: integers(rows, TIME), **{str(i): column for i, column in enumerate(values.T)}})


def _matrix(points: pa.Table) -> Floats:
    return np.stack([column.to_numpy() for column in points.drop_columns([TIME]).columns], axis=1)


def _with(table: pa.Table, other: pa.Table) -> pa.Table:
    return pa.table([*table.columns, *other.columns], [*table.column_names, *other.column_names])

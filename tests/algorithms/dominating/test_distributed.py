"""Top-k dominating points of windows whose rows lie in several parts: as one engine has them, and the oracle."""

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.algorithms.contract import FOREVER
from skyband.algorithms.dominating.distributed import Asked, Counting, Proposing, totals
from tests.support import oracle, streams
from tests.support.oracle_dominating import TopKDominating

SECOND = streams.SECOND
WINDOWS = {"hops": (10, 2), "odd": (7, 3), "tumbles": (4, 4), "long": (600, 90)}
DIMENSIONS = {"x": "max", "y": "min"}


class Kept:
    """Panes in memory, which tell which of them were written."""

    def __init__(self):
        self.tables, self.written = {}, set()

    @property
    def sizes(self):
        return {pane: table.num_rows for pane, table in self.tables.items()}

    def get(self, pane):
        return self.tables[pane]

    def put(self, pane, rows):
        self.tables[pane] = rows
        self.written.add(pane)

    def drop(self, pane):
        del self.tables[pane]


class Parts:
    """All parts and the messages between them. Nothing but the panes outlasts a batch."""

    def __init__(self, query, parts, rng):
        self.query, self.rng = query, rng
        self.asked = Asked(query, "position", "id")
        self.kept = [(Kept(), Kept()) for _ in range(parts)]
        self.newest, self.late = -FOREVER, 0

    def batch(self, table, ended=False):
        """Rows dealt out at random; the rows of the windows that closed, as tuples of the end, the score and the id."""
        before = max(-FOREVER, self.newest - self.query.window.late)
        position = table["ts"].cast(pa.int64())
        table = table.append_column("position", position)
        part = self.rng.integers(0, len(self.kept), table.num_rows)
        self.newest = max([self.newest, *position.to_pylist()])
        frontier = FOREVER if ended else self.newest - self.query.window.late
        points, proposals = [], []
        for number, (rows, _) in enumerate(self.kept):
            proposing = Proposing(self.asked, number, rows, before)
            mine = self.rng.permutation(np.flatnonzero(part == number))
            for some in np.array_split(mine, 2):
                points.append(proposing.take(table.take(pa.array(some))))
            proposals += proposing.advance(frontier)
            self.late += proposing.late
        counts = []
        for number, (_, only) in enumerate(self.kept):
            counting = Counting(self.asked, number, only)
            for some in points:
                if some.part == number:
                    counting.take(some)
            order = self.rng.permutation(len(proposals))
            counts += counting.count([proposals[i] for i in order], frontier)
        scored = totals([counts[i] for i in self.rng.permutation(len(counts))])
        return [row for end in sorted({some.end for some in scored}) for row in self.best(end, scored)]

    def best(self, end, scored):
        rows = [(score, row["ts"], row["id"]) for some in scored if some.end == end
                for score, row in zip(some.score.tolist(), some.rows.to_pylist(), strict=True)]  # fmt: skip
        rows.sort(reverse=True)
        bar = rows[min(self.query.k, len(rows)) - 1][0]
        everything = self.query.ties == "all"
        return [(end, float(score), id) for rank, (score, _, id) in enumerate(rows)
                if rank < self.query.k or (everything and score == bar)]  # fmt: skip


def query_for(window, k, ties, late=streams.LATE):
    extent, every = (f"{length} seconds" for length in WINDOWS[window])
    window = sb.last(extent, every=every, late=f"{late} microseconds")
    return sb.TopKDominating(k=k, dimensions=DIMENSIONS, window=window, ties=ties, select=("id",))


def by_engine(query, table):
    """The answer of one engine that gets the rows in order: the end, the score and the id."""
    monitor = sb.Monitor(query)
    rows = [*oracle.rows(monitor.push(table)), *oracle.rows(monitor.flush())]
    return [(end, score, id) for _, end, _, score, id in rows]


def by_brute_force(query, table):
    dimensions = [((lambda row, n=name: row[n]), sense) for name, sense in query.dimensions.items()]
    window = query.window
    model = TopKDominating(query.k, dimensions, window.extent, every=window.slide, time=True, on="ts",
                           late=window.late, ties=query.ties, select=("id",))  # fmt: skip
    return [(end, score, id) for _, end, _, score, id in model.push(table) + model.flush()]


def in_time(table):
    return table.sort_by([("ts", "ascending"), ("id", "ascending")])


def valid(name, size, seed=0):
    """A stream without the rows that are no points: they have been left out before rows are dealt to parts."""
    table = streams.make(name, seed=seed, size=size)
    points = oracle.rows(table.select(["ts", *DIMENSIONS]))
    return table.filter(pa.array([not any(map(oracle.bad, row)) for row in points], pa.bool_()))


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
@pytest.mark.parametrize("ties", ["newest", "all"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", ["random", "jittered_tied", "constant", "bursty", "extreme", "tiny", "empty"])
def test_equals_the_engine(name, window, ties, parts):
    rng = np.random.default_rng([*name.encode(), *window.encode(), parts])
    k = int(rng.choice([1, 3, 9]))
    query, table = query_for(window, k, ties), valid(name, None if name in ("tiny", "empty") else 120)
    expected = by_brute_force(query, in_time(table))
    assert by_engine(query, in_time(table)) == expected
    spread, got = Parts(query, parts, rng), []
    for batch in streams.cut(table, int(rng.integers(100)), pieces=6):
        got += spread.batch(batch)
    got += spread.batch(table.slice(0, 0), ended=True)
    assert (got, spread.late) == (expected, 0)
    assert not any(panes.sizes for kept in spread.kept for panes in kept)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("window", WINDOWS)
def test_late_rows(window, parts):
    """A row before the frontier is in no window, and no part's: it is counted."""
    rng = np.random.default_rng([*window.encode(), parts])
    query, table = query_for(window, 3, "newest"), valid("straggling", 150)
    spread, kept, got, newest = Parts(query, parts, rng), [], [], None
    for batch in streams.cut(table, 3, pieces=20):
        got += spread.batch(batch)
        times = oracle.plain(batch["ts"])
        kept.append(batch.filter(pa.array([newest is None or t >= newest - streams.LATE for t in times], pa.bool_())))
        newest = max([*times, *([] if newest is None else [newest])], default=None)
    got += spread.batch(table.slice(0, 0), ended=True)
    kept = pa.concat_tables(kept)
    assert spread.late == table.num_rows - kept.num_rows > 10
    assert got == by_brute_force(query, in_time(kept))


def test_windows_close_as_soon_as_the_frontier_has_reached_them():
    rng = np.random.default_rng(1)
    query, table = query_for("hops", 2, "newest", late=0), in_time(valid("random", 120))
    spread, before = Parts(query, 2, rng), -FOREVER
    for start in range(0, table.num_rows, 10):
        answer = spread.batch(table.slice(start, 10))
        newest = oracle.plain(table["ts"])[min(start + 9, table.num_rows - 1)]
        assert all(before < end <= newest for end, *_ in answer)
        before = newest


def test_only_panes_that_change_are_written():
    """New rows go to the newest panes; one that has closed is written once more, when it is cut down for good."""
    rng = np.random.default_rng(2)
    n = 3000
    table = pa.table({"id": range(n), "ts": pa.array(np.arange(n) * 10_000, "timestamp[us]"),
                      "x": rng.random(n), "y": rng.random(n)})  # fmt: skip
    spread = Parts(query_for("hops", 3, "newest", late=0), 2, rng)
    for start in range(0, n, 100):  # half a pane in each batch
        for panes in (panes for kept in spread.kept for panes in kept):
            panes.written.clear()
        spread.batch(table.slice(start, 100))
        for rows, points in spread.kept:
            assert len(points.written) == 1 and len(rows.written) <= 2
    for rows, points in spread.kept:
        closed = sorted(rows.sizes)[:-1]
        assert len(points.sizes) == len(rows.sizes) == 5
        assert all(rows.sizes[pane] < points.sizes[pane] / 2 for pane in closed)

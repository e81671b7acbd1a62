"""The two stages of a run without Spark: rows spread over tasks, batches, shards and pieces, against the engine."""

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from tests.support import oracle, streams
from tests.support.cases import WINDOWS, pair
from tests.support.spark.stages import Stages, engine, in_time, same, same_rows, spread

pytestmark = pytest.mark.filterwarnings("ignore::skyband.DataWarning")  # of some streams most is left out
SECOND = 1_000_000


def query_for(window, rng, late=None, **fields):
    spec = WINDOWS[window]
    span = (lambda length: f"{length} microseconds") if "time" in spec else int
    every = span(spec["every"]) if "every" in spec else None
    late = late or f"{streams.LATE} microseconds" if "time" in spec else None
    fields = {"k": int(rng.choice([1, 3, 20])), "order_by": "x DESC", **fields}
    return sb.TopK(window=sb.last(span(spec["extent"]), every=every, late=late), **fields)


TIME_WINDOWS = [name for name in WINDOWS if "time" in name]
COUNT_WINDOWS = [name for name in WINDOWS if "time" not in name]
STREAMS = [name for name in streams.STREAMS if name not in streams.STRAGGLING]


@pytest.mark.parametrize("window", TIME_WINDOWS)
@pytest.mark.parametrize("name", STREAMS)
def test_static_equals_engine(name, window):
    rng = np.random.default_rng([*name.encode(), *window.encode()])
    table = streams.make(name)
    fields = dict(
        partition_by=[(), ("g",), ("g", "h")][rng.integers(3)],
        where=[None, "y > 0"][rng.integers(2)],
        ties=["newest", "all"][rng.integers(2)],
        order_by=["x DESC", "x", "abs(x - y) ASC", "y DESC"][rng.integers(4)],
        select=[None, ("id", "x + y AS both")][rng.integers(2)],
    )
    query = query_for(window, rng, **fields)
    stages = Stages(query, table.schema, shards=int(rng.integers(1, 4)), chunks=int(rng.integers(1, 4)))
    expected, stats = engine(query, in_time(table))
    same(stages.batch(spread(table, rng), ended=True), expected)
    assert stages.counts["invalid"] == stats.invalid


@pytest.mark.parametrize("window", TIME_WINDOWS)
@pytest.mark.parametrize("name", [*STREAMS, "straggling"])
def test_stream_equals_engine(name, window):
    """However the stream is cut, the windows that are closed and the changes that are sure are the engine's."""
    rng = np.random.default_rng([*window.encode(), *name.encode()])
    table = streams.make(name, size=160 if streams.STREAMS[name][2] > 2 else None)
    keys, ties = [(), ("g",), ("g", "h")][rng.integers(3)], ["newest", "all"][rng.integers(2)]
    query = query_for(window, rng, partition_by=keys, ties=ties)
    late = name in streams.STRAGGLING
    stages = Stages(query, table.schema, chunks=int(rng.integers(1, 4)))
    got, on_time, newest = [], [], None
    pane = query.window.pane if query.window.hopping else 1
    for batch in streams.cut(table, int(rng.integers(100)), pieces=9):
        got.append(stages.batch(spread(batch, rng)))
        pairs = zip(oracle.plain(batch["ts"]), oracle.plain(batch["x"]))
        times = [-(10**17) if t is None or oracle.bad(x) else t for t, x in pairs]
        bound = -(10**18) if newest is None else (newest - query.window.late) // pane * pane
        on_time.append(batch.filter(pa.array([t >= bound for t in times], pa.bool_())))
        newest = max([t for t in times if t > -(10**17)] + ([] if newest is None else [newest]), default=newest)
    kept = pa.concat_tables(on_time)
    expected, _ = engine(query, in_time(kept))
    watermark = -(10**18) if newest is None else newest - query.window.late
    column = "window_end" if query.window.hopping else "at"
    at = oracle.plain(expected[column])
    sure = [t <= watermark if query.window.hopping else t < watermark for t in at]
    same(pa.concat_tables(got), expected.filter(pa.array(sure, pa.bool_())))
    if not late:
        assert stages.counts["late"] == 0
    elif name != "broken":
        assert stages.counts["late"] == table.num_rows - kept.num_rows


@pytest.mark.parametrize("window", COUNT_WINDOWS)
@pytest.mark.parametrize("name", ["tied", "broken", "empty"])
@pytest.mark.parametrize("partition_by", [(), ("g", "h")])
def test_sequences(name, window, partition_by):
    """Rows come in any order, some without a score or not passing; their numbers tell the windows."""
    rng = np.random.default_rng([*window.encode(), *name.encode(), len(partition_by)])
    table = streams.numbered(streams.make(name), partition_by, reach=15, seed=1)
    for where in (None, "y > 0"):
        query, model = pair(3, window, on="seq", partition_by=partition_by, where=where)
        stages = Stages(query, table.schema)
        same_rows(stages.batch(spread(table, rng), ended=True), model.push(table) + model.flush())
        assert (stages.counts["invalid"], stages.counts["late"]) == (model.invalid, 0)
        query, model = pair(3, window, on="seq", partition_by=partition_by, where=where)
        stages, got, expected = Stages(query, table.schema), [], []
        for batch in streams.cut(table, int(rng.integers(100))):
            got.append(stages.batch(spread(batch, rng)))
            expected += model.push(batch)
        assert set(map(repr, oracle.rows(pa.concat_tables(got)))) <= set(map(repr, expected))
        got.append(stages.batch([[]], ended=True))
        same_rows(pa.concat_tables(got), expected + model.flush())


@pytest.mark.parametrize("window", COUNT_WINDOWS)
def test_arrival_order(window):
    rng = np.random.default_rng([*window.encode()])
    table = streams.make("tied")
    for partition_by in ((), ("g",), ("g", "h")):
        query = query_for(window, rng, partition_by=partition_by, where="y > -2")
        stages, monitor = Stages(query, table.schema), sb.Monitor(query)
        for batch in streams.cut(table, 5):
            same(stages.batch(spread(batch, rng, ordered=True)), monitor.push(batch))


@pytest.mark.parametrize("window", list(WINDOWS))
@pytest.mark.parametrize("partition_by", [(), ("g", "h")])
def test_latest(window, partition_by):
    """Exactly k rows for each partition touched; kept by partition and rank they are the engine's ranking."""
    rng = np.random.default_rng([*window.encode()])
    table = streams.make("random", size=200)
    query = query_for(window, rng, partition_by=partition_by, late="0 seconds", k=3)
    stages, monitor, shown = Stages(query, table.schema, latest=True), sb.Monitor(query), {}
    names = len(partition_by)
    for batch in streams.cut(table, 3, pieces=12):
        monitor.push(batch)
        rows = oracle.rows(stages.batch(spread(batch, rng, ordered="time" not in window)))
        touched = {row[:names] for row in rows}
        assert len(rows) == query.k * len(touched)
        assert touched >= set(oracle.rows(batch.select(list(partition_by)))) if names else True
        shown |= {row[: names + 1]: row for row in rows}
        assert sorted(map(str, (row for row in shown.values() if row[names + 1] is not None))) == sorted(
            map(str, oracle.rows(monitor.top()))
        )


@pytest.mark.parametrize("reach", [0, 15])
@pytest.mark.parametrize("window", [name for name in COUNT_WINDOWS if "every" in WINDOWS[name]])
@pytest.mark.parametrize("name", ["tied", "broken"])
@pytest.mark.parametrize("partition_by", [(), ("g", "h")])
def test_latest_of_a_sequence(name, window, partition_by, reach):
    """What has come is shown, whether or not smaller numbers are missing; if none is, that is the engine's ranking."""
    rng = np.random.default_rng([*window.encode(), *name.encode(), len(partition_by)])
    table = streams.numbered(streams.make(name), partition_by, reach=reach, seed=1)
    spec = WINDOWS[window]
    query = sb.TopK(3, "x DESC", sb.last(spec["extent"], every=spec["every"], on="seq"), partition_by=partition_by,
                    where="y > 0", select=("id",))  # fmt: skip
    stages, monitor = Stages(query, table.schema, latest=True), sb.Monitor(query)
    names, shown, come = len(partition_by), {}, {}  # come: the objects of each partition
    for batch in streams.cut(table, 3, pieces=8):
        monitor.push(batch)
        for row in batch.to_pylist():
            if row["y"] is not None and row["y"] > 0 and row["x"] is not None and row["x"] == row["x"]:
                come.setdefault(tuple(row[name] for name in partition_by), []).append((row["x"], row["seq"], row["id"]))
        expected = []
        for key, objects in come.items():
            end = (max(seq for _, seq, _ in objects) // spec["every"] + 1) * spec["every"]
            present = sorted((item for item in objects if item[1] >= end - spec["extent"]), reverse=True)[:3]
            expected += [(*key, rank, score, id) for rank, (score, _, id) in enumerate(present, 1)]
        shown |= {row[: names + 1]: row for row in oracle.rows(stages.batch(spread(batch, rng)))}
        there = [row for row in shown.values() if row[names + 1] is not None]
        assert sorted(map(repr, there)) == sorted(map(repr, expected))
        if not reach:
            assert sorted(map(repr, there)) == sorted(map(repr, oracle.rows(monitor.top())))


def test_ties_without_an_order_of_arrival():
    """Equal scores at one moment and no column to rank them by: the content decides, however the rows are spread."""
    rng = np.random.default_rng(0)
    size = 60
    same = [i % 40 for i in range(size)]
    table = pa.table({"ts": pa.array([0] * size, pa.timestamp("us")), "x": [1.0] * size,
                      "name": [f"n{i}" for i in same], "list": [[i] for i in same]})  # fmt: skip
    for window in (sb.last("4 seconds", every="2 seconds"), sb.last("4 seconds")):
        query = sb.TopK(k=7, order_by="x DESC", window=window)
        answers = []
        for _ in range(6):
            stages = Stages(query, table.schema, tie=None)
            whole = table.take(rng.permutation(size))
            got = [
                stages.batch(spread(whole.slice(0, 30), rng)),
                stages.batch(spread(whole.slice(30), rng), ended=True),
            ]
            answers.append(sorted(map(str, oracle.rows(pa.concat_tables(got)))))
        assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("moment", [-(2**63), 2**63 - 1, 2**60 + 1, 2**60, -(2**60)])
def test_moments_out_of_range_are_invalid(moment):
    """As in the engine; the least integer has no absolute value."""
    times = pa.array([0, moment, 5 * SECOND], pa.timestamp("us"))
    table = pa.table({"id": [0, 1, 2], "ts": times, "x": [1.0, 2.0, 3.0]})
    query = sb.TopK(2, "x DESC", sb.last("4 seconds", every="2 seconds"), select=("id",))
    stages = Stages(query, table.schema)
    expected, stats = engine(query, in_time(table))
    assert stats.invalid == (abs(moment) != 2**60)
    assert as_numbers(stages.batch([[table]], ended=True)) == as_numbers(expected)
    assert stages.counts["invalid"] == stats.invalid


def as_numbers(answer):
    """Rows whose bounds are integers: Python knows no such dates."""
    bounds = [answer[name].cast(pa.int64()) for name in ("window_start", "window_end")]
    answer = answer.set_column(0, "window_start", bounds[0]).set_column(1, "window_end", bounds[1])
    return sorted(map(tuple, (row.values() for row in answer.to_pylist())))

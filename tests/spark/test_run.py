"""Queries through Spark, static and streaming, against the engine."""

from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import StreamingQueryException

import skyband as sb
from skyband.spark import run
from skyband.spark.testing import assert_same_on_spark, collect, frame, stream
from skyband.testing import answer, assert_same_rows
from tests.support import streams

pytestmark = pytest.mark.slow

SECOND = streams.SECOND
HOPPING = sb.last("10 seconds", every="4 seconds", late="3 seconds")


def table(name="jittered", size=300):
    """A stream with the event time in every type that there is, and a number in the sequence."""
    whole = streams.numbered(streams.make(name, size=size), ("g",))
    ts = whole["ts"].cast(pa.int64())
    seconds = pc.divide(pc.cast(ts, pa.float64()), SECOND)
    return (
        whole.set_column(1, "ts", ts.cast(pa.timestamp("us", "UTC")))
        .append_column("local", ts.cast(pa.timestamp("us")))
        .append_column("day", pc.add(whole["id"], 19000).cast(pa.int32()).cast(pa.date32()))
        .append_column("seconds", seconds)
        .append_column("whole", pc.floor(seconds).cast(pa.int64()))
    )


def in_time(whole, on):
    return whole.sort_by([(on, "ascending"), ("id", "ascending")])


def agree(got, queries, whole):
    """The part of each query is what the engine gives for rows in the order of event time."""
    for query in queries:
        expected = answer(query, [in_time(whole, query.window.on or "id")])
        mine = got.filter(pc.equal(got["query"], query.name)).select(expected.column_names)
        assert mine.schema.types == expected.schema.types
        assert_same_rows(mine, expected)


STATIC = [
    [
        sb.TopK(3, "x DESC", HOPPING, name="plain"),
        sb.TopK(
            2,
            "abs(x - y)",
            HOPPING,
            partition_by=("g", "h"),
            where="y > -2",
            name="where",
            select=("id", "x * 2 AS twice"),
        ),
        sb.TopK(4, "y DESC", HOPPING, partition_by=("g",), ties="all", name="ties"),
        sb.TopK(
            3,
            (lambda columns: np.abs(columns["x"] - 0.5), "ASC"),
            sb.last("7 seconds", every="7 seconds"),
            name="function",
        ),
        sb.Nearest(2, {"x": 0.1, "y": 1}, HOPPING, partition_by=("h",), name="nearest"),
        sb.TopK(3, "x DESC", HOPPING, partition_by=("g",), algorithm="sma", name="another algorithm"),
    ],
    [
        sb.TopK(3, "x", sb.last("5 seconds"), partition_by=("g",), name="moving"),
        sb.TopK(2, "x DESC", sb.last("5 seconds", late="3 seconds"), name="late"),
    ],
    [
        sb.TopK(3, "x DESC", sb.last(20, every=5, on="seq"), partition_by=("g",), where="y <> 1", name="sequence"),
        sb.TopK(2, "x DESC", sb.last(9, every=3, on="seq"), partition_by=("g",), select=("id",), name="sequence, ids"),
    ],
    [sb.TopK(3, "x DESC", sb.last(20, on="seq"), partition_by=("g",), name="moving over a sequence")],
    [sb.TopK(3, "x DESC", sb.last("9 days", every="3 days", on="day"), partition_by=("g",), name="date")],
    [sb.TopK(3, "x DESC", sb.last("10 seconds", every="4 seconds", on="seconds"), partition_by=("g",), name="seconds")],
    [
        sb.TopK(
            3, "x DESC", sb.last("10 seconds", every="4 seconds", on="whole"), partition_by=("g",), name="whole seconds"
        )
    ],
    [sb.TopK(3, "x DESC", sb.last("10 seconds", every="4 seconds", on="local"), name="local")],
]


@pytest.mark.parametrize("queries", STATIC, ids=lambda queries: queries[0].name)
def test_static_equals_engine(spark, queries):
    whole = table()
    pieces = {"shards": 2, "chunks": 2} if any(query.partition_by for query in queries) else {}
    got = run(frame(spark, whole).repartition(3), queries, **pieces).toArrow()
    for query in (q.lower() for q in queries):
        expected = answer(query, [in_time(whole, query.window.on)])
        mine = got.filter(pc.equal(got["query"], query.name)).select(expected.column_names)
        assert mine.schema.types == expected.schema.types
        assert_same_rows(mine, expected)


def test_static_in_another_time_zone(spark):
    whole = table(size=60)
    spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    try:
        for on in ("ts", "local", "day"):
            query = sb.TopK(2, "x DESC", sb.last("8 days", every="2 days", on=on), partition_by=("g",), select=("id",))
            assert_same_rows(run(frame(spark, whole), query).toArrow(), answer(query, [in_time(whole, on)]))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_columns_of_any_name_and_type(spark):
    size = 60
    whole = table(size=size).append_column("a.b", pa.array([i % 2 == 0 if i % 3 else None for i in range(size)]))
    whole = whole.append_column("odd `name`", pa.array([Decimal(i % 3) for i in range(size)], pa.decimal128(10, 2)))
    whole = whole.append_column("select", pa.array([{"p": [i], "q": str(i)} if i % 4 else None for i in range(size)]))
    whole = whole.append_column("map", pa.array([[("k", i)] for i in range(size)], pa.map_(pa.string(), pa.int32())))
    whole = whole.append_column("bytes", pa.array([bytes([i]) if i % 5 else None for i in range(size)]))
    items = ("id", '"select"', "map", "bytes", '"a.b" AS ab', '"odd `name`" * 2 AS "twice that"')
    for query in (
        sb.TopK(3, '"odd `name`" + x DESC', HOPPING, select=items, where='"a.b" IS NOT NULL'),
        sb.TopK(2, "x DESC", HOPPING, partition_by=("a.b", "odd `name`", "bytes", "day")),
        sb.TopK(2, "X", sb.last("9 seconds"), partition_by=("odd `name`",), select=("ID", "map")),
    ):
        assert_same_rows(run(frame(spark, whole), query).toArrow(), answer(query, [in_time(whole, "ts")]))


def test_two_rankings_meet(spark):
    """In one static plan; in one stream if their metrics have names of their own."""
    whole = in_time(table(size=60), "ts")
    first = sb.TopK(3, "x DESC", sb.last("4 seconds", every="4 seconds"), select=("id",))
    then = sb.TopK(1, "score DESC", sb.last("8 seconds", every="8 seconds", on="window_end"), select=("id",))
    expected = answer(then, [answer(first, [whole])])
    df = run(frame(spark, whole), first)
    assert_same_rows(run(df, then).toArrow(), expected)
    assert df.union(run(frame(spark, whole), first)).count() == 2 * df.count()
    chained = run(run(stream(spark, [whole]), first, metrics="first"), then)
    got = pa.concat_tables(collect(chained))
    assert got.num_rows
    assert_same_rows(got, answer(then, [answer(first, [whole], flush=False)], flush=False))


def test_stream_equals_engine(spark, tmp_path):
    """Five micro-batches out of order within the bound, appended to files: what the engine has closed by then."""
    whole = table("jittered", size=400)
    batches = [whole.slice(start, 80) for start in range(0, 400, 80)]
    queries = STATIC[0][:5]
    answers = run(stream(spark, batches, tmp_path / "in"), queries, shards=2, chunks=2)
    sink = answers.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = sink.trigger(availableNow=True).start(str(tmp_path / "out"))
    query.awaitTermination()
    got = spark.read.parquet(str(tmp_path / "out")).toArrow()
    newest = pc.max(whole["ts"]).cast(pa.int64()).as_py()
    for one in (q.lower() for q in queries):
        expected = answer(one, [in_time(whole, "ts")])
        closed = pc.less_equal(expected["window_end"].cast(pa.int64()), newest - one.window.late)
        assert_same_rows(got.filter(pc.equal(got["query"], one.name)).select(expected.column_names),
                         expected.filter(closed))  # fmt: skip
    counts = [progress.observedMetrics["skyband"] for progress in query.recentProgress]
    assert [count.seen for count in counts] == [80] * 5
    assert all(count.candidates > 0 and count.bytes > 0 and count.late == 0 for count in counts)


def test_late_and_invalid_rows_are_counted(spark):
    """
    late = 2 s, slide = pane = 4 s:  batch 0 has 0, 5, 11 and a NULL score; the watermark is 9, so [0, 8) is closed;
    batch 1 has 3 (late), 8 (its pane is open) and 20.
    """
    times = [[0, 5, 11, 11], [3, 8, 20]]
    batches = [
        pa.table({"ts": pa.array([t * SECOND for t in part], pa.timestamp("us", "UTC")),
                  "x": pa.array([None if i == 3 else float(i) for i in range(len(part))])}) for part in times
    ]  # fmt: skip
    query = sb.TopK(5, "x DESC", sb.last("4 seconds", every="4 seconds", late="2 seconds"), select=())
    for options in ({}, {"emit": "latest"}):
        seen = []
        frames = run(stream(spark, batches), query, **options).writeStream.outputMode("update")
        frames = frames.foreachBatch(lambda frame, _: seen.append(frame.toArrow())).trigger(availableNow=True)  # noqa: B023
        running = frames.start()
        running.awaitTermination()
        counts = [progress.observedMetrics["skyband"] for progress in running.recentProgress]
        assert [(c.seen, c.late, c.invalid) for c in counts] == [(4, 0, 1), (3, 1, 0)]
        if not options:
            ends = [[t.second for t in part["window_end"].to_pylist()] for part in seen]
            assert ends == [[4, 8], [12, 12]]
        else:
            assert [part["score"].to_pylist() for part in seen] == [[2.0, *[None] * 4], [2.0, *[None] * 4]]


def test_changes_and_latest(spark):
    whole = table("random", size=240)
    batches = [whole.slice(start, 60) for start in range(0, 240, 60)]
    moving = sb.TopK(3, "x DESC", sb.last("5 seconds"), partition_by=("g",), select=("id",))
    got = pa.concat_tables(collect(run(stream(spark, batches), moving, "changes", shards=2)))
    expected = answer(moving, batches, flush=False)
    sure = pc.less(expected["at"], pc.max(whole["ts"]))
    assert_same_rows(got, expected.filter(sure))
    counted = sb.TopK(3, "x DESC", sb.last(15), select=("id",))
    assert_same_on_spark(spark, counted, batches)
    for query in (
        moving,
        sb.TopK(3, "x DESC", sb.last("8 seconds", every="2 seconds"), partition_by=("g",), select=("id",)),
    ):
        monitor, shown = sb.Monitor(query), {}
        for batch, part in zip(batches, collect(run(stream(spark, batches), query, "latest"), "update"), strict=True):
            monitor.push(batch)
            assert part.num_rows % 3 == 0
            shown |= {(row["g"], row["rank"]): row for row in part.to_pylist()}
            there = pa.Table.from_pylist([row for row in shown.values() if row["score"] is not None], part.schema)
            assert_same_rows(there, monitor.top())


def test_checkpoints(spark, tmp_path):
    """A checkpoint goes on with a lower k and a shorter window, and with no other query."""
    whole = table("random", size=240)
    batches = [whole.slice(start, 80) for start in range(0, 240, 80)]
    window = "12 seconds"

    def query(k, extent=window):
        return sb.TopK(k, "x DESC", sb.last(extent, every="3 seconds"), partition_by=("g",), select=("id",))

    def go_on(wanted, files, **options):
        df = run(stream(spark, batches[:files], tmp_path / "in"), wanted, **options)
        return collect(df, checkpoint=tmp_path / "checkpoint")

    go_on(query(5), 1)
    for wanted, options, reason in (
        (query(6), {}, "k was 5 and is 6"),
        (query(5), {"shards": 7}, "shards was 2 and is 7"),
    ):  # state/test_takeover.py has more of them
        with pytest.raises(StreamingQueryException, match="the checkpoint belongs to another query.*" + reason):
            go_on(wanted, 2, **options)
    smaller = query(2, "6 seconds")
    got = pa.concat_tables(go_on(smaller, 3))
    expected = answer(smaller, batches, flush=False)
    closed = pc.max(batches[0]["ts"])
    assert_same_rows(got, expected.filter(pc.greater(expected["window_end"], closed)))


def test_changes_go_on_with_a_smaller_query(spark, tmp_path):
    """All changes together, those of the larger query first, lead to the answer of the smaller one."""
    whole = table("random", size=240)
    batches = [whole.slice(start, 80) for start in range(0, 240, 80)]
    changes = []
    for k, extent, files in ((5, "12 seconds", 1), (2, "5 seconds", 3)):
        query = sb.TopK(k, "x DESC", sb.last(extent), partition_by=("g",), select=("id",))
        df = run(stream(spark, batches[:files], tmp_path / "in"), query, "changes")
        changes += collect(df, checkpoint=tmp_path / "checkpoint")
    expected = answer(query, batches, flush=False)
    expected = expected.filter(pc.less(expected["at"], pc.max(whole["ts"])))
    assert shown(pa.concat_tables(changes)) == shown(expected)


def shown(changes):
    count = Counter()
    for row in changes.to_pylist():
        count[row["g"], row["id"]] += 1 if row["op"] == "+" else -1
    assert set(count.values()) <= {0, 1}
    return +count


def test_refusals(spark):
    whole = table(size=5)
    df = frame(spark, whole.append_column("list", pa.array([[1]] * 5)))
    query = sb.TopK(2, "x DESC", HOPPING)
    every = sb.TopK(2, "x DESC", sb.last("5 seconds"))
    for arguments, options, reason in (
        ((query, "all"), {}, "emit='all' is unknown"),
        ((query, "changes"), {}, "for windows that move with every arrival"),
        ((sb.TopK(2, "x", HOPPING, ties="all"), "latest"), {}, "exactly k rows"),
        ((query,), {"arrival": "x"}, "must be an integer column"),
        ((query,), {"arrival": "no"}, "there is no column 'no'"),
        ((query,), {"shards": 0}, "at least 1"),
        (([],), {}, "at least one query"),
        (([query, query.__class__(2, "x", HOPPING, name="q0")],), {}, "names must differ"),
        (([query, sb.TopK(2, "x", sb.last(5, every=5))],), {}, "different types"),
        ((sb.TopK(2, "x", sb.last("5 seconds", on="g")),), {}, "it must be a timestamp, a date"),
        ((sb.TopK(2, "x", sb.last(5, on="x")),), {}, "it must be whole numbers"),
        ((sb.TopK(2, "z", HOPPING),), {}, "there is no column 'z'"),
        ((sb.TopK(2, "x", HOPPING, partition_by=("z",)),), {}, "there is no column 'z'"),
        ((sb.TopK(2, "x", HOPPING, partition_by=("list",)),), {}, "partition_by: 'list' .* must hold plain values"),
        (("SELECT x",), {}, "is not a query"),
        ((query,), {"chunks": 0}, "at least 1"),
        ((query,), {"shards": "2"}, "must be a whole number"),
    ):
        with pytest.raises(sb.QueryError, match=reason):
            run(df, *arguments, **options)
    with pytest.raises(sb.QueryError, match="a Spark DataFrame, not Table"):
        run(whole, query)
    assert run(df, every, "changes").columns[:3] == ["at", "op", "score"]

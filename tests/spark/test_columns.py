"""Event times with a zone and without one, and missing values, through Spark: as in the engine."""

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.spark import run
from skyband.spark.testing import assert_same_on_spark, frame, stream
from skyband.spark.watch import Watch
from tests.support import streams

pytestmark = pytest.mark.slow

HOPPING = sb.last("10 seconds", every="4 seconds")
SCORES = [("x + y DESC", (lambda c: c["x"] + c["y"], "DESC")), ("abs(x - y)", lambda c: abs(c["x"] - c["y"]))]


def in_time(zone):
    """The random stream in the order of event time, some of it without x or y."""
    table = streams.make("random", size=200).drop_columns(["g", "h"])
    rng = np.random.default_rng(0)
    holes = rng.choice(3, 200, p=[0.8, 0.1, 0.1])
    x = [[value, None, float("nan")][hole] for value, hole in zip(table["x"].to_pylist(), holes)]
    return table.set_column(2, "x", pa.array(x)).set_column(1, "ts", table["ts"].cast(pa.timestamp("us", zone)))


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_zones(spark, zone):
    """TIMESTAMP is a moment, TIMESTAMP_NTZ is read as UTC, whatever the zone of the session."""
    whole = in_time(zone)
    spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    try:
        query = sb.TopK(2, "x DESC", sb.last("2 hours", every="1 hour"), select=("id",))
        assert_same_on_spark(spark, query, [whole.slice(0, 120), whole.slice(120)])
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def missing():
    for text, function in SCORES:
        yield sb.TopK(3, text, HOPPING, select=("id",)), sb.TopK(3, function, HOPPING, select=("id",))
    pairs = sb.TopKPairs(3, "abs(a.x - b.x) + abs(a.y - b.y)", HOPPING, select=("a.id", "b.id"))
    yield pairs, pairs.but(order_by=lambda a, b: abs(a["x"] - b["x"]) + abs(a["y"] - b["y"]))


@pytest.mark.parametrize(("text", "function"), list(missing()), ids=["sum", "difference", "pairs"])
def test_missing_values(spark, text, function):
    """Expressions and functions leave the same rows out, and the progress counts them."""
    whole = in_time("UTC")
    batches = [whole.slice(start, 50) for start in range(0, 200, 50)]
    for query in (text, function):
        assert_same_on_spark(spark, query, batches)
        running = run(stream(spark, batches), query).writeStream.format("noop").trigger(availableNow=True).start()
        running.awaitTermination()
        progress, monitor = Watch(running).poll(), sb.Monitor(query)
        for batch in batches:
            monitor.push(batch)
        assert (progress.seen, progress.invalid) == (200, monitor.stats.invalid)
        assert progress.invalid > 30


@pytest.mark.parametrize("name", ["_skyband_score", "_skyband_0", "skyband: value"])
def test_a_column_named_as_those_that_skyband_adds(spark, name):
    table = pa.table({"ts": [1, 2], "x": [0.5, 0.7], name: [1, 2]})
    query = sb.TopK(k=1, order_by="x", window=sb.last("3 seconds", every="3 seconds"), partition_by=(name,))
    with pytest.raises(sb.QueryError, match=f"column '{name}': names that begin with .* another name"):
        run(frame(spark, table), query)


def test_a_column_named_as_that_of_several_queries(spark):
    table = pa.table({"ts": [1, 2], "x": [0.5, 0.7], "query": [1, 2]})
    query = sb.TopK(k=1, order_by="x", window=sb.last("3 seconds", every="3 seconds"))
    with pytest.raises(sb.QueryError, match="several queries has a column 'query' of its own"):
        run(frame(spark, table), [query])
    assert run(frame(spark, table), query).columns[-1] == "query"


def test_columns_named_as_counts_of_panes_once_were(spark):
    """A sequence is told by panes, whose counts travel beside the columns of the partition."""
    numbers = [0, 1, 2, 3, 4, 5]
    table = pa.table({"seq": numbers, "x": [3, 1, 4, 1, 5, 9], "__pane": [7] * 6, "__count": [8] * 6})
    query = sb.TopK(k=1, order_by="x DESC", window=sb.last(4, every=2, on="seq"), partition_by=("__pane", "__count"))
    assert_same_on_spark(spark, query, [table])

"""Pairs, dominating points and assembled objects on Spark: the rows of the engine, at once and as a stream."""

import pyarrow as pa
import pytest
import streams

import skyband as sb
from skyband.spark.run import run
from skyband.spark.testing import assert_same_on_spark, collect, frame, stream
from skyband.testing import answer, assert_same_rows

HOPS = sb.last("9 seconds", every="3 seconds")
SPREAD = [
    sb.TopKPairs(k=3, order_by="abs(a.x - b.x) + abs(a.y - b.y) ASC", window=HOPS, different="g"),
    sb.TopKDominating(k=3, dimensions={"x": "max", "y": "min"}, window=HOPS),
    sb.TopKIncomplete(k=3, id="h", stream="g", value="x", occurrences="many", window=HOPS),
]
IN_ONE_PLACE = [
    sb.TopKPairs(k=2, order_by="abs(a.x - b.x) DESC", window=sb.last("4 seconds"), partition_by=("g",)),
    sb.TopKDominating(k=2, dimensions={"x": "max", "y": "min"}, window=sb.last("4 seconds"), select=("id",)),
    sb.TopKIncomplete(k=2, id="g", window=sb.last("4 seconds"), where="x > 0"),
    sb.TopKPairs(k=2, order_by="abs(a.x - b.x) DESC", window=HOPS, partition_by=("g",), where="a.id < b.id"),
    sb.TopKDominating(k=2, dimensions={"x": "max", "y": "min"}, window=HOPS, partition_by=("g", "h")),
    sb.TopKIncomplete(k=2, id="h", value="y * y", window=HOPS, partition_by=("g",)),
]


def batches():
    """Rows in the order of event time, and of the column that breaks ties, as the engine has to see them."""
    table = streams.make("random", size=150)
    table = table.sort_by([("ts", "ascending"), ("id", "ascending")])
    return [table.slice(0, 70), table.slice(70, 50), table.slice(120)]


def ids(query):
    return f"{query.family}-{query.window.kind}{'-partitions' * bool(query.partition_by)}"


SOME_SLOW = [pytest.param(query, marks=[pytest.mark.slow] * (query.family != "dominating")) for query in SPREAD]


@pytest.mark.parametrize("query", SOME_SLOW, ids=ids)
def test_spread_over_shards(spark, query):
    assert_same_on_spark(spark, query, batches(), shards=2)


@pytest.mark.slow
@pytest.mark.parametrize("query", IN_ONE_PLACE, ids=ids)
def test_in_one_place(spark, query):
    whole = pa.concat_tables(batches())
    assert_same_rows(run(frame(spark, whole), query).toArrow(), answer(query, [whole]))


def test_several_families_at_once(spark):
    """Queries of different families over one stream, each with its own columns."""
    queries = [*SPREAD, sb.TopK(k=2, order_by="x DESC", window=HOPS, select=("id",))]
    got = pa.concat_tables(collect(run(stream(spark, batches()), queries, shards=2)))
    for number, query in enumerate(queries):
        expected = answer(query, batches(), flush=False)
        mine = got.filter(pa.compute.equal(got["query"], f"q{number}")).select(expected.column_names)
        assert_same_rows(mine, expected)

"""Pairs, dominating points and assembled objects on Spark: the rows of the engine, at once and as a stream."""

import pyarrow as pa
import pytest
from pyspark.errors import PythonException, StreamingQueryException

import skyband as sb
from skyband.spark.run import run
from skyband.spark.testing import assert_same_on_spark, collect, files, frame, stream, write_batches
from skyband.testing import answer, assert_same_rows
from tests.support import streams

HOPS = sb.last("9 seconds", every="3 seconds")
SPREAD = [
    sb.TopKPairs(k=3, order_by="abs(a.x - b.x) + abs(a.y - b.y) ASC", window=HOPS, different="g"),
    sb.TopKDominating(k=3, dimensions={"x": "max", "y": "min"}, window=HOPS),
    sb.TopKGroups(k=3, id="h", stream="g", value="x", occurrences="many", window=HOPS),
    sb.TopKGroups(
        k=3,
        id=("h", "g"),
        value="x",
        aggregate="mean",
        window=HOPS,
        order="asc",
        having="n >= 2",
        outputs={"n": "count(*)", "low": "min(y)", "kinds": "count(distinct y)"},
    ),
]
IN_ONE_PLACE = [
    sb.TopKPairs(k=2, order_by="abs(a.x - b.x) DESC", window=sb.last("4 seconds"), partition_by=("g",)),
    sb.TopKDominating(k=2, dimensions={"x": "max", "y": "min"}, window=sb.last("4 seconds"), select=("id",)),
    sb.TopKGroups(k=2, id="g", window=sb.last("4 seconds"), where="x > 0"),
    sb.TopKPairs(k=2, order_by="abs(a.x - b.x) DESC", window=HOPS, partition_by=("g",), where="a.id < b.id"),
    sb.TopKDominating(k=2, dimensions={"x": "max", "y": "min"}, window=HOPS, partition_by=("g", "h")),
    sb.TopKGroups(k=2, id="h", value="y * y", window=HOPS, partition_by=("g",)),
    sb.TopKGroups(
        k=2,
        id="g",
        value="x",
        aggregate="max",
        window=sb.last("4 seconds"),
        having="count(*) > 1",
        outputs={"p": "product(x)", "n": "count(y)"},
    ),
    sb.TopKGroups(k=2, id="h", value="y", aggregate="count_distinct", window=HOPS, partition_by=("g",)),
]


def batches():
    """Rows in the order of event time, and of the column that breaks ties, as the engine has to see them."""
    table = streams.make("random", size=150)
    table = table.sort_by([("ts", "ascending"), ("id", "ascending")])
    return [table.slice(0, 70), table.slice(70, 50), table.slice(120)]


def ids(query):
    how = f"-{query.aggregate}" if query.family == "groups" else ""
    return f"{query.family}-{query.window.kind}{'-partitions' * bool(query.partition_by)}{how}"


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


@pytest.mark.slow
@pytest.mark.parametrize("query", SPREAD, ids=ids)
def test_goes_on_from_a_checkpoint(spark, tmp_path, query):
    """Stopped after each micro-batch and started again: the rows of a run that was never stopped."""
    got = []
    for number in range(len(batches())):
        write_batches(batches()[: number + 1], tmp_path / "rows")
        ranking = run(files(spark, tmp_path / "rows"), query, shards=2)
        got += collect(ranking, checkpoint=tmp_path / "state")
    assert_same_rows(pa.concat_tables(got), answer(query, batches(), flush=False))


def test_more_streams_than_declared(spark):
    """The query fails with the engine's message; static and streaming, sums too."""
    for fields in (dict(occurrences="many"), dict(aggregate="mean")):
        query = sb.TopKGroups(k=3, id="h", stream="g", value="x", streams=2, window=HOPS, **fields)
        with pytest.raises(PythonException, match=r"streams=2, but rows of \d streams have come"):
            run(frame(spark, pa.concat_tables(batches())), query, shards=1).toArrow()
    with pytest.raises(StreamingQueryException, match=r"streams=2, but rows of \d streams have come"):
        collect(run(stream(spark, batches()), query, shards=1))


@pytest.mark.slow
def test_another_query_is_refused(spark, tmp_path):
    """The three rounds keep a state each, and none takes over that of another query."""
    query = SPREAD[1]
    collect(run(stream(spark, batches(), tmp_path / "rows"), query, shards=2), checkpoint=tmp_path / "state")
    write_batches([*batches(), batches()[0]], tmp_path / "rows")
    other = run(files(spark, tmp_path / "rows"), query.but(dimensions={"x": "min", "y": "min"}), shards=2)
    with pytest.raises(StreamingQueryException, match=r"belongs to another query: .*dimensions"):
        collect(other, checkpoint=tmp_path / "state")

"""The other families in one place, without Spark: whole pipelines in pieces of state, against the engine."""

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.engine.writer import Layout
from skyband.families import of
from skyband.spark.stages.job import Job, shard_names
from skyband.spark.state.operator import MemoryPieces
from tests.support import oracle, streams
from tests.support.spark.stages import Stages, engine, in_time, same, spread

pytestmark = pytest.mark.slow

WINDOWS = {
    "hopping": sb.last("10 seconds", every="2 seconds", late="3 seconds"),
    "moving": sb.last("5 seconds"),
    "count": sb.last(20, every=5),
    "arrivals": sb.last(13),
}
QUERIES = {
    "pairs": lambda **f: sb.TopKPairs(order_by="abs(a.x - b.x) + abs(a.y - b.y) ASC", select=("a.id", "b.id"), **f),
    "dominating": lambda **f: sb.TopKDominating(dimensions={"x": "max", "y": "min"}, **f),
    "groups": lambda **f: sb.TopKGroups(id="h", stream="g", value="x", occurrences="many", **f),
}


class Whole(Stages):
    """The stages of a query whose rows carry no score of their own."""

    def __init__(self, query, schema, latest=False):
        self.query = query
        needed = {*Layout(query, schema).columns, *query.partition_by, *query.measure().needs(schema.names)}
        many, on = bool(query.partition_by), query.window.on
        self.job = Job(
            query=query, family=of(query), schema=pa.schema([field for field in schema if field.name in needed]),
            kind=None if on is None else schema.field(on).type, latest=latest,
            shards=tuple(shard_names(2 if many else 1)), chunks=3 if many else 1, score=None, passes=None, time=on,
            tie="id", part="__p" if many else None,
        )  # fmt: skip
        self.stores = {shard: MemoryPieces() for shard in self.job.shards}
        self.counts = dict.fromkeys(("seen", "late", "invalid"), 0)

    def prepared(self, table):
        if self.job.part is None:
            return table
        keys = table.select(list(self.query.partition_by)).to_pylist()
        return table.append_column("__p", pa.array([hash(repr(key)) % 6 for key in keys], pa.int32()))


@pytest.mark.parametrize("partition_by", [(), ("g",)])
@pytest.mark.parametrize("window", list(WINDOWS))
@pytest.mark.parametrize("family", list(QUERIES))
def test_equals_engine(family, window, partition_by):
    query = QUERIES[family](k=3, window=WINDOWS[window], partition_by=partition_by)
    rng, table = np.random.default_rng([*family.encode(), *window.encode()]), streams.make("random", size=120)
    ordered = not query.window.time
    expected, _ = engine(query, table if ordered else in_time(table))
    same(Whole(query, table.schema).batch(spread(table, rng, ordered=ordered), ended=True), expected)
    stages, monitor, shown, names = Whole(query, table.schema, latest=True), sb.Monitor(query), {}, len(partition_by)
    for batch in streams.cut(table, 3, pieces=6):
        monitor.push(batch)
        rows = oracle.rows(stages.batch(spread(batch, rng, ordered=ordered)))
        shown |= {row[: names + 1]: row for row in rows}
        there = [row for row in shown.values() if row[names + 1] is not None]
        assert sorted(map(str, there)) == sorted(map(str, oracle.rows(monitor.top())))

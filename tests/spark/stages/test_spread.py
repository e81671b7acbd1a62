"""One ranking spread over several shards, without Spark: rows over tasks, batches and cells, against the engine."""

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.engine.writer import Layout
from skyband.families import FAMILIES, of
from skyband.spark.stages.job import Job, _murmur3, cell_names, shard_names
from skyband.spark.stages.pack import PACKED, Packer
from skyband.spark.stages.rounds import PROPOSED, counting, proposing
from skyband.spark.state.operator import MemoryPieces, merging, unpacker
from skyband.spark.state.shard import MERGED
from tests.support import oracle, streams

pytestmark = pytest.mark.filterwarnings("ignore::skyband.DataWarning")  # of some streams most is left out

WINDOWS = {
    "hops": sb.last("10 seconds", every="2 seconds", late=f"{streams.LATE} microseconds"),
    "odd": sb.last("7 seconds", every="3 seconds", late=f"{streams.LATE} microseconds"),
    "long": sb.last("600 seconds", every="9 seconds", late=f"{streams.LATE} microseconds"),
}
QUERIES = {
    "pairs": lambda **f: sb.TopKPairs(order_by="abs(a.x - b.x) + abs(a.y - b.y) ASC", select=("a.id", "b.id"), **f),
    "far": lambda **f: sb.TopKPairs(order_by="abs(a.x - b.x) DESC", different="g", where="a.id < b.id", **f),
    "dominating": lambda **f: sb.TopKDominating(dimensions={"x": "max", "y": "min"}, **f),
    "counts": lambda **f: sb.TopKGroups(id="g", **f),
    "sums": lambda **f: sb.TopKGroups(id="h", stream="g", value="x", occurrences="many", **f),
    "smallest": lambda **f: sb.TopKGroups(id="h", value="x", order="asc", **f),
    "means": lambda **f: sb.TopKGroups(
        id=("h", "g"),
        value="x",
        aggregate="mean",
        order="asc",
        having="n >= 2",
        outputs={"n": "count(*)", "top": "max(y)", "d": "count(distinct y)"},
        **f,
    ),
    "products": lambda **f: sb.TopKGroups(id="g", value="x - 1", aggregate="product", outputs={"low": "min(y)"}, **f),
    "newest": lambda **f: sb.TopKGroups(id="id", stream="g", value="x", aggregate="max", **f),
}


class Cells:
    """What Spark does between the stages of a ranking that is spread, in memory."""

    def __init__(self, query, schema, groups):
        self.query, self.names = query, query.measure().needs(schema.names)
        family = of(query)
        travelling = {*Layout(query, schema).columns, *family.travels(query, schema.names)}
        shards = tuple(shard_names(len(family.cells(groups))))
        self.job = Job(
            query=query, family=family, schema=pa.schema([field for field in schema if field.name in travelling]),
            kind=schema.field("ts").type, latest=False, shards=shards, chunks=1, score=None, passes=None, time="ts",
            tie="id", part="__p", groups=groups,
        )  # fmt: skip
        steps = [proposing(self.job), counting(self.job)] if self.job.rounds else [merging((self.job,))]
        self.stages = [(step, {shard: MemoryPieces() for shard in shards}) for step in steps]

    def batch(self, tasks, ended=False):
        rows = []
        for number, tables in enumerate(tasks):
            packer = Packer(self.job, number)
            for table in tables:
                group = [self._group(row) for row in table.to_pylist()]
                rows += packer.add(table.append_column("__p", pa.array(group, pa.int32())))
            rows += packer.finish()
        rows = pa.Table.from_pylist(rows, PACKED).to_pylist()
        for place, (step, stores) in enumerate(self.stages):
            schema = PROPOSED if place + 1 < len(self.stages) else MERGED
            out = [{"shard": shard, **answer} for shard, store in stores.items()
                   for answer in step(shard, [row for row in rows if row["shard"] == shard], store, ended)]  # fmt: skip
            rows = pa.Table.from_pylist(out, schema).to_pylist()
        told = pa.RecordBatch.from_pylist([row for row in rows if row["data"]], MERGED)
        answers = list(unpacker((self.job,), False)([told] if told.num_rows else []))
        return pa.Table.from_batches(answers) if answers else None

    def _group(self, row):
        names = self.query.ids if self.query.family == "groups" else self.names
        return hash(repr([row[name] for name in names])) % self.job.groups


def spread(table, rng):
    """Rows over tasks and Arrow batches, in no order."""
    rows = rng.permutation(table.num_rows)
    return [[table.take(part) for part in np.array_split(task, rng.integers(1, 3))]
            for task in np.array_split(rows, rng.integers(1, 4))]  # fmt: skip


def in_time(table):
    return table.sort_by([("ts", "ascending"), ("id", "ascending")])


def same(got, expected):
    tables = [table for table in got if table is not None]
    rows = oracle.rows(pa.concat_tables(tables)) if tables else []
    assert sorted(map(repr, rows)) == sorted(map(repr, oracle.rows(expected)))


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", ["random", "jittered_tied", "constant", "bursty", "broken", "empty"])
def test_cells_equal_the_engine(query, window, name):
    """At once, and cut into micro-batches: every window comes out once, as the engine has it."""
    rng = np.random.default_rng([*query.encode(), *window.encode(), *name.encode()])
    table = streams.make(name, size=80 if window == "long" else 160)
    asked = QUERIES[query](
        k=int(rng.choice([1, 3, 9])), window=WINDOWS[window], ties=str(rng.choice(["newest", "all"]))
    )
    monitor = sb.Monitor(asked)
    expected = [monitor.push(in_time(table)), monitor.flush()]
    groups = int(rng.integers(2, 4))
    same([Cells(asked, table.schema, groups).batch(spread(table, rng), ended=True)], pa.concat_tables(expected))
    stream = Cells(asked, table.schema, groups)
    got = [stream.batch(spread(batch, rng)) for batch in streams.cut(table, int(rng.integers(100)), pieces=6)]
    got.append(stream.batch([[]], ended=True))
    same(got, pa.concat_tables(expected))


def test_cells_of_pairs_of_which_two_colours_lie_apart(monkeypatch):
    """What large windows do in the cells between two groups, in small ones."""
    monkeypatch.setattr("skyband.algorithms.pairs.scase.SEVERAL", 0)
    monkeypatch.setattr("skyband.algorithms.pairs.scase.RUN", 2)
    for query in ("pairs", "far"):
        test_cells_equal_the_engine(query, "hops", "jittered_tied")


@pytest.mark.parametrize("tasks", [2, 3, 4, 8, 16])
def test_cells_keep_all_tasks_busy(tasks):
    """No task has more to do than the others, but for one cell; a cell between two groups counts twice."""
    groups = FAMILIES["pairs"].groups(tasks)
    work = [len(cell) for cell in FAMILIES["pairs"].cells(groups)]
    assert len(FAMILIES["pairs"].cells(groups - 1)) < tasks <= len(work)
    names, load = cell_names(work), [0] * tasks
    for name, amount in zip(names, work, strict=True):
        load[_murmur3(name) % tasks] += amount
    assert len({*names}) == len(names) and 0 in names
    assert max(load) <= sum(work) / tasks + 1 and min(load) > 0


def test_ids_that_left_take_no_room():
    """Every row brings a new id: the state after thirty windows is no larger than after the first few."""
    window = sb.last("10 seconds", every="5 seconds")
    size, stages, rng = [], None, np.random.default_rng(5)
    for batch in range(60):
        number = np.arange(batch * 500, batch * 500 + 500)
        ts = pa.array(number * 10_000, pa.timestamp("us", "UTC"))  # a slide in each batch
        table = pa.table({"ts": ts, "id": number, "host": [f"host {i}" for i in number]})
        stages = stages or Cells(sb.TopKGroups(k=3, id="host", window=window), table.schema, groups=2)
        stages.batch(spread(table, rng))
        ((_, stores),) = stages.stages
        size.append(sum(len(blob) for store in stores.values() for blob in store.blobs.values()))
    assert max(size[30:]) <= 1.1 * max(size[:30])
    assert max(size) < 2 * 1500 * 100  # some 1,500 hosts are in a window or have just left it

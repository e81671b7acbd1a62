"""The stages of a run on Spark, without Spark: in memory, for one query."""

import numpy as np
import pyarrow as pa

import skyband as sb
from skyband.engine.writer import Layout
from skyband.expressions.scoring import compile_condition, compile_order
from skyband.families import of
from skyband.spark.stages.job import Job, prepare, shard_names
from skyband.spark.stages.pack import PACKED, Packer
from skyband.spark.stages.parcel import unpacked
from skyband.spark.state.operator import MemoryPieces
from skyband.spark.state.shard import Packet, merge
from tests.support import oracle


class Stages:
    """What Spark does between the stages, in memory."""

    def __init__(self, query, schema, latest=False, shards=2, chunks=3, tie="id"):
        self.query = query
        needed = Layout(query, schema).columns | set(query.partition_by)
        many = bool(query.partition_by)
        on = query.window.on
        self.job = Job(
            query=query,
            family=of(query),
            schema=pa.schema([field for field in schema if field.name in needed]),
            kind=None if on is None else schema.field(on).type,
            latest=latest,
            shards=tuple(shard_names(shards if many else 1)),
            chunks=chunks if many else 1,
            score="__s",
            passes=None if query.where is None else "__w",
            time=on,
            tie=tie,
            part="__p" if many and shards * chunks > 1 else None,
        )
        self.stores = {shard: MemoryPieces() for shard in self.job.shards}
        self.counts = dict.fromkeys(("seen", "late", "invalid"), 0)

    def prepared(self, table):
        job = self.job
        table = table.append_column("__s", pa.array(compile_order(self.query.order_by).evaluate(table)))
        if job.passes:
            table = table.append_column("__w", pa.array(compile_condition(self.query.where).evaluate(table)))
        if job.part:
            keys = table.select(list(self.query.partition_by)).to_pylist()
            part = [hash(repr(key)) % (len(job.shards) * job.chunks) for key in keys]
            table = table.append_column("__p", pa.array(part, pa.int32()))
        return table

    def batch(self, tasks, ended=False):
        """A micro-batch: a list of Arrow batches for each task. The answer, without an order."""
        packets = []
        for number, tables in enumerate(tasks):
            packer = Packer(self.job, number)
            for table in tables:
                packets += packer.add(self.prepared(table))
            packets += packer.finish()
        packets = pa.Table.from_pylist(packets, PACKED).to_pylist()
        answer = [prepare(self.job).answer.empty_table()]
        for shard, store in self.stores.items():
            mine = [Packet(**{n: p[n] for n in Packet._fields}) for p in packets if p["shard"] == shard]
            for row in merge(self.job, mine, store, ended):
                if "data" in row:
                    answer.append(unpacked(row["data"]))
                else:
                    self.held = row["candidates"]
                    for name in self.counts:
                        self.counts[name] += row[name]
        return pa.concat_tables(answer)


def spread(table, rng, tasks=3, ordered=False):
    """Rows over tasks and Arrow batches; in order, or in none."""
    rows = np.arange(table.num_rows) if ordered else rng.permutation(table.num_rows)
    return [[table.take(part) for part in np.array_split(task, rng.integers(1, 4))]
            for task in np.array_split(rows, rng.integers(1, tasks + 1))]  # fmt: skip


def in_time(table, on="ts"):
    """As the engine has to see it to agree: by event time, then by the column that breaks ties; NULL anywhere."""
    return table.sort_by([(on, "ascending"), ("id", "ascending")])


def same(got, expected):
    assert got.schema.names == expected.schema.names
    assert got.schema.types == expected.schema.types
    same_rows(got, oracle.rows(expected))


def same_rows(got, expected):
    assert sorted(map(repr, oracle.rows(got))) == sorted(map(repr, expected))


def engine(query, table):
    monitor = sb.Monitor(query)
    answer = [monitor.push(table), monitor.flush()]
    return pa.concat_tables(answer), monitor.stats

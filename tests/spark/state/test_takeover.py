"""A saved state goes on with a lower k or a shorter window, without Spark: from there the answer of the new query."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.errors import StateError
from skyband.spark.state.operator import MemoryPieces
from tests.support import oracle, streams
from tests.support.spark.stages import Stages, in_time, spread

SECOND = streams.SECOND
LARGE, SMALL = dict(k=6, extent=12), dict(k=2, extent=5)


def query_for(kind, k, extent, partition_by=(), ties="newest", **rest):
    span = (lambda length: f"{length} seconds") if "time" in kind else int
    late = "3 seconds" if "late" in kind else None
    window = sb.last(span(extent), late=late, on="seq" if "sequence" in kind else None)
    return sb.TopK(k, "x DESC", window, partition_by=partition_by, ties=ties, select=("id",), **rest)


def goes_on(stages, query, schema):
    """A new job over what the old one has saved."""
    other = Stages(query, schema, latest=stages.job.latest)
    other.stores = stages.stores
    return other


class Replay:
    """The top k of each partition, from the changes."""

    def __init__(self, partition_by):
        self.names = (*partition_by, "id", "score")
        self.shown = set()

    def take(self, changes):
        ops = changes["op"].to_pylist()
        for op, row in zip(ops, oracle.rows(changes.select(self.names))):
            assert (row in self.shown) == (op == "-"), f"{op} {row}"
            (self.shown.remove if op == "-" else self.shown.add)(row)


@pytest.mark.parametrize("partition_by", [(), ("g", "h")])
@pytest.mark.parametrize("ties", ["newest", "all"])
@pytest.mark.parametrize("kind", ["time", "late time", "count", "sequence"])
def test_every_arrival(kind, ties, partition_by):
    rng = np.random.default_rng([*kind.encode(), *ties.encode(), len(partition_by)])
    table = streams.make("tied" if ties == "all" else "random", size=240)
    table = streams.numbered(table, partition_by)
    large, small = (query_for(kind, **size, partition_by=partition_by, ties=ties) for size in (LARGE, SMALL))
    stages, replay, monitor = Stages(large, table.schema), Replay(partition_by), sb.Monitor(small)
    expected = Replay(partition_by)
    batches = [table.slice(start, 40) for start in range(0, 240, 40)]
    for number, batch in enumerate(batches):
        if number == 3:
            stages = goes_on(stages, small, table.schema)
        replay.take(stages.batch(spread(batch, rng, ordered=kind == "count")))
        if "time" in kind:
            continue
        expected.take(monitor.push(batch))
        assert number < 3 or replay.shown == expected.shown
    replay.take(stages.batch([[]], ended=True))
    if "time" in kind:
        expected.take(monitor.push(in_time(table)))
    expected.take(monitor.flush())
    assert replay.shown == expected.shown


@pytest.mark.parametrize("window", ["5 seconds", "6 seconds/2 seconds", "6/2"])
def test_latest(window):
    """Ranks that are not asked for any more are emptied in every partition, whether rows of it come or not."""
    extent, _, every = window.partition("/")
    extent, every = (int(span) if span.isdecimal() else span or None for span in (extent, every))
    table = streams.make("random", size=100)
    query = sb.TopK(4, "x DESC", sb.last(extent, every=every), partition_by=("g",), select=("id",))
    stages, shown = Stages(query, table.schema, latest=True), {}
    rng = np.random.default_rng(1)
    smaller, monitor = replace(query, k=2), sb.Monitor(replace(query, k=2))
    for number, batch in enumerate([table.slice(0, 60), table.slice(60, 1), table.slice(61)]):
        if number == 1:
            stages = goes_on(stages, smaller, table.schema)
        monitor.push(batch)
        rows = oracle.rows(stages.batch(spread(batch, rng, ordered=isinstance(extent, int))))
        shown |= {row[:2]: row for row in rows}
        there = [row for row in shown.values() if row[2] is not None]
        assert number == 0 or sorted(map(str, there)) == sorted(map(str, oracle.rows(monitor.top())))


def test_what_is_refused():
    table = streams.make("random", size=60)
    large = query_for("time", **LARGE)
    for kind, changes, reason in (
        ("time", dict(k=7), "k was 6 and is 7"),
        ("time", dict(extent=13), "window.extent was 12000000 and is 13000000"),
        ("late time", {}, "window.late was 0 and is 3000000"),
        ("time", dict(where="x > 0"), "where was None and is 'x > 0'"),
        ("time", dict(algorithm="sma"), "algorithm was 'auto' and is 'sma'"),
        ("time", dict(error=0.1), "error was 0.0 and is 0.1"),
    ):
        stages = Stages(large, table.schema)
        stages.batch([[table]])
        with pytest.raises(StateError, match="the checkpoint belongs to another query: .*" + reason):
            goes_on(stages, query_for(kind, **{**LARGE, **changes}), table.schema).batch([[table]])


def test_an_older_state_is_refused():
    """The version of the format is in the head of every blob."""
    table = streams.make("random", size=60)
    stages = Stages(query_for("time", **LARGE), table.schema)
    stages.batch([[table]])
    (store,) = stages.stores.values()
    assert isinstance(store, MemoryPieces) and store.first is not None
    store.first = store.first[:8] + (0).to_bytes(4, "little") + store.first[12:]
    with pytest.raises(StateError, match=r"version 0 of the state format, .* replay the stream"):
        stages.batch([[table]])


def test_approximate_answers_do_not_go_on():
    """What PA threw away may be wanted by a smaller query."""
    table = streams.make("random", size=60)
    stages = Stages(query_for("count", **LARGE, error=0.1), table.schema)
    stages.batch([[pa.concat_tables([table])]])
    with pytest.raises(StateError, match="k was 6 and is 2"):
        goes_on(stages, query_for("count", **SMALL, error=0.1), table.schema).batch([[table]])

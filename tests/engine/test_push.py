"""That a push costs what it brings: rows and codes kept in parts, and batches evaluated once."""

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.engine.partitions import Codes, Keys
from skyband.engine.rows import RowStore


@pytest.mark.parametrize("columns", [("id", "text"), ()])
def test_rows_are_found_whatever_parts_they_lie_in(columns):
    rng = np.random.default_rng(0)
    all_rows = pa.table({"id": np.arange(5000), "text": [f"row {i}" for i in range(5000)]})
    store, held, first = RowStore(all_rows.select(columns).slice(0, 0), np.empty(0, np.int64)), np.empty(0, int), 0
    while first < 4900:
        size = int(rng.choice([1, 1, 1, 2, 17, 90]))
        batch = all_rows.select(columns).slice(first, size)
        wanted = np.concatenate([rng.choice(held, min(held.size, size)), first + np.arange(batch.num_rows)[::-1]])
        rng.shuffle(wanted)
        found = store.take(wanted.astype(np.int64), batch, first)
        assert not columns or found.equals(all_rows.take(pa.array(wanted)))
        kept = first + np.flatnonzero(rng.random(size) < rng.choice([0.2, 1]))
        store.keep(kept, batch, first)
        held, first = np.append(held, kept), first + size
        if rng.random() < 0.02:
            held = held[rng.random(held.size) < 0.5]
            store.drop_all_but(held)
        assert store.size == held.size and len(store._parts) < 100
    assert store.arrival.tolist() == held.tolist()
    assert not columns or store.table.equals(all_rows.take(pa.array(held)))


def test_rows_that_are_kept_are_copies():
    score = np.array([3.0])
    monitor = sb.Monitor(sb.TopK(k=1, order_by="s", window=sb.last(5)))
    monitor.push({"s": score, "id": (number := np.array([1]))})
    number[0] = score[0] = 9
    assert monitor.top().to_pylist() == [{"rank": 1, "score": 3.0, "s": 3.0, "id": 1}]


@pytest.mark.parametrize("values", [
    [None, 3, -1, 3, 2**40, 0], ["b", None, "a", "", "b"], [b"x", b"", None], [True, None, False], [0.0, None, 1.5],
], ids=str)  # fmt: skip
def test_values_are_coded_alike_one_by_one_and_together(values):
    rng = np.random.default_rng(1)
    column = pa.array([values[i] for i in rng.integers(0, len(values), 500)])
    together, mixed = Codes(column.type), Codes(column.type)
    expected, found, start = together.encode(column), [], 0
    while start < len(column):
        size = int(rng.choice([1, 3, 70]))
        found += mixed.encode(column.slice(start, size)).tolist()
        start += size
    assert found == expected.tolist() and mixed.values.equals(together.values)


def test_some_partitions_rank_as_all_do():
    keys = Keys(pa.table({"a": [*range(60), None], "b": ["x", "y"] * 30 + ["x"]}))
    some = np.array([60, 7, 3, 7])
    few = keys.rank(some)
    whole = keys.rank(np.arange(61))
    assert np.argsort(few, kind="stable").tolist() == np.argsort(whole[some], kind="stable").tolist() == [2, 1, 3, 0]


def test_what_several_queries_share_is_evaluated_once():
    called = []

    def score(columns):
        called.append(len(columns["x"]))
        return columns["x"]

    queries = [sb.TopK(k=1, order_by=score, window=window, where="x > 1") for window in
               (sb.last(3), sb.last(4, every=2), sb.last("3 seconds"))]  # fmt: skip
    monitor = sb.Monitor(queries)
    monitor.push({"x": [1, 2, 3], "ts": [1, 2, 3]})
    assert called == [2]
    monitor.push({"x": [4], "ts": [4]})
    assert called == [2, 1]


def test_a_batch_that_one_query_refuses_is_taken_in_by_none():
    def score(columns):
        if 9 in columns["x"]:
            raise ValueError("nine")
        return columns["x"]

    monitor = sb.Monitor([sb.TopK(k=1, order_by=order_by, window=sb.last(3), partition_by=("p",))
                          for order_by in ("x", score)])  # fmt: skip
    monitor.push({"x": [1, 2], "p": ["a", "b"]})
    before = monitor.dumps()
    with pytest.raises(sb.QueryError):
        monitor.push({"x": [9, 2], "p": ["c", "d"]})
    assert monitor.dumps() == before


@pytest.mark.parametrize("window", [sb.last(20), sb.last("400 milliseconds", late="100 milliseconds")], ids=str)
def test_all_partitions_at_once_are_as_each_by_itself(window):
    """As many partitions and rows as make the pool grow, move and be laid out anew."""
    rng, ties = np.random.default_rng(2), "all"
    together, apart = (sb.Monitor(sb.TopK(k=2, order_by="x DESC", window=window, ties=ties, partition_by=("p",),
                                          algorithm=algorithm)) for algorithm in ("ra", "sasf"))  # fmt: skip
    seen = 0
    for i in range(40):
        size, partitions = int(rng.choice([0, 1, 3, 900])), 700 if i < 20 else 40
        ts = (seen + np.arange(size)) * 1000 - rng.integers(0, 150_000, size)
        batch = pa.table({"p": rng.integers(0, partitions, size), "x": rng.random(size).round(1),
                          "id": seen + np.arange(size), "ts": pa.array(ts, pa.timestamp("us"))})  # fmt: skip
        seen += size
        assert together.push(batch).equals(apart.push(batch))
        if i % 8 == 7:
            together.check()
            assert together.top().equals(apart.top()) and together.top(k=1).equals(apart.top(k=1))
            together = sb.Monitor.loads(together.dumps())


def test_partitions_of_a_pool_are_numbered_anew():
    monitor = sb.Monitor(sb.TopK(k=2, order_by="x DESC", window=sb.last(9), algorithm="ra", partition_by=("p",)))
    monitor.push({"p": np.arange(60) % 7, "x": np.random.default_rng(3).random(60)})
    algorithm = monitor.pipelines[0].algorithm
    before = {p: algorithm.pool[p].band.arrival.tolist() for p in range(7)}
    algorithm.rekey(np.array([2, -1, 0, -1, 3, 1, -1]))
    algorithm.check()
    assert [algorithm.pool[p].band.arrival.tolist() for p in range(4)] == [before[p] for p in (2, 5, 0, 4)]
    assert algorithm.candidates == algorithm.held().size == sum(len(before[p]) for p in (2, 5, 0, 4))
    assert algorithm.partitions().tolist() == [0, 1, 2, 3]

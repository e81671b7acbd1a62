"""Aggregates of groups, several at once, conditions on them, ids of several columns: as the oracle has them."""

import itertools
import zlib
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from tests.support import oracle, oracle_groups, streams
from tests.support.cases import WINDOWS, agree, follow, run
from tests.support.groups_cases import ASKED, grouped, make

pytestmark = pytest.mark.filterwarnings("ignore::skyband.DataWarning")

ONE_OF_EACH = ("count-7-3", "time-7-3", "arrivals-13", "arrival-time-9")


def one_of(choices, *case):
    return choices[zlib.crc32("/".join(map(str, case)).encode()) % len(choices)]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("window", ONE_OF_EACH)
@pytest.mark.parametrize("stream", ["jittered_tied", "broken", "straggling", "duplicates"])
def test_equals_the_oracle(asked, window, stream):
    """NULL and NaN, zeros, negative factors, duplicates, ties, late rows; more groups asked for than there are."""
    k, ties = one_of(list(itertools.product((1, 3, 50), ("newest", "all"))), asked, window, stream)
    query, model = grouped(k, window, asked, ties=ties)
    follow(sb.Monitor(query), model, streams.cut(make(stream)))


@pytest.mark.parametrize(("asked", "window"), [(one_of(list(ASKED), window), window) for window in WINDOWS])
def test_every_kind_of_window(asked, window):
    query, model = grouped(2, window, asked)
    follow(sb.Monitor(query), model, streams.cut(make("jittered"), 3))


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_partitions_conditions_and_ids_of_several_columns(asked, window):
    fields = dict(partition_by=("g",), id=("o", "h"), where="y > 0")
    query, model = grouped(2, window, asked, **fields)
    follow(sb.Monitor(query), model, streams.one_by_one(make("broken", size=50, ids=3)))


@pytest.mark.parametrize("asked", ["distinct", "min"])
@pytest.mark.parametrize("window", ["count-7-3", "arrivals-13"])
def test_sequence_column(asked, window):
    query, model = grouped(2, window, asked, on="seq")
    follow(sb.Monitor(query), model, streams.cut(streams.numbered(make("tied"), (), 12)))


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_snapshots_of_fewer_and_of_shorter_windows(asked, window):
    query, model = grouped(4, window, asked, partition_by=("g",))
    monitor, span = sb.Monitor(query), query.window.extent
    step = query.window.slide if query.window.hopping else 1
    for batch in streams.cut(make("jittered_tied"), 3, 5):
        monitor.push(batch)
        model.push(batch)
        for k, length in itertools.product((1, 4), range(span, 0, -max(step, span // 3 // step * step))):
            last = f"{length} microseconds" if query.window.time else length
            agree(monitor.top(k=k, last=last), model.top(k, length), model.top_header(batch.column_names))


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_cutting_saving_and_loading_do_not_matter(asked, window):
    query, _ = grouped(3, window, asked, partition_by=("g",))
    table = make("broken", size=70)
    whole = run(sb.Monitor(query), [table])
    assert whole and run(sb.Monitor(query), streams.one_by_one(table)) == whole
    stays = moves = sb.Monitor(query)
    emitted = []
    for batch in streams.cut(table, 4):
        moves, stays = sb.Monitor.loads(moves.dumps()), moves
        assert moves.dumps() == stays.dumps()
        answers = [(oracle.rows(m.push(batch)), oracle.rows(m.top())) for m in (stays, moves)]
        assert answers[0] == answers[1]
        assert replace(moves.stats, bytes=0) == replace(stays.stats, bytes=0)
        emitted += answers[0][0]
        moves.check()
    assert emitted + oracle.rows(moves.flush()) == whole


@pytest.mark.parametrize("window", ["time-7-3", "arrival-time-9"])
@pytest.mark.parametrize("partition_by", [(), ("g",)], ids=["whole", "parts"])
def test_groups_and_values_that_come_and_go_are_forgotten(window, partition_by):
    """Thousands of ids and values of which few are in the window at a time: nothing piles up."""
    query, model = grouped(3, window, "distinct", late=0, partition_by=partition_by)
    n, rng = 6000, np.random.default_rng(0)
    ids = np.arange(n) // 2 - rng.choice([0, 0, 0, 1, 2, 7], n)
    table = pa.table({"o": np.char.add("group ", ids.astype(str)), "x": rng.random(n).round(2),
                      "ts": pa.array(np.arange(n) * 100_000, "timestamp[us]"), "g": rng.integers(0, 3, n),
                      "s": np.char.add("value ", (np.arange(n) // 3).astype(str))})  # fmt: skip
    monitor, emitted, sizes = sb.Monitor(query), [], []
    for start in range(0, n, 250):
        emitted += oracle.rows(monitor.push(table.slice(start, 250)))
        monitor.check()
        sizes.append(monitor.stats.bytes)
        if start % 1000 == 0:
            monitor = sb.Monitor.loads(monitor.dumps())
    assert max(sizes[12:]) <= 1.5 * max(sizes[:12])
    assert max(len(tags) for tags in monitor.pipelines[0].intake.tags) < 1600
    emitted += oracle.rows(monitor.flush())
    compared = table.slice(0, 1000)
    assert emitted[: len(rows := model.push(compared))] == rows


@pytest.mark.parametrize("window", [dict(extent=400, every=40), dict(extent=400)], ids=["hopping", "arrivals"])
@pytest.mark.parametrize("asked", ["max", "product", "distinct"])
def test_long_queues_and_views_that_run_low(asked, window):
    """Groups of many rows, so that the front of their queues is used up again and again; and many groups."""
    for ids in (2, 150):
        query, model = grouped(5, window, asked)
        rng, n = np.random.default_rng(ids), 1200
        trend = np.abs(np.arange(n) % 600 - 300) / 100  # rises and falls: the best row expires
        table = pa.table({"o": rng.integers(0, ids, n), "x": (rng.integers(-8, 9, n) / 8 + trend).round(3),
                          "y": pa.array(rng.integers(-3, 4, n), mask=rng.random(n) < 0.2),
                          "s": np.char.add("s", rng.integers(0, 40, n).astype(str))})  # fmt: skip
        follow(sb.Monitor(query), model, streams.cut(table, 1, 6), top=False)


@pytest.mark.parametrize("aggregate", ["sum", "count", "mean", "min", "max", "product", "count_distinct"])
@pytest.mark.parametrize("window", ONE_OF_EACH)
@pytest.mark.parametrize("stream", [None, "s"])
def test_one_aggregate_of_one_stream_or_several(aggregate, window, stream):
    """The streams make no difference to an aggregate over all rows; and both orders."""
    for order in ("desc", "asc"):
        query, model = grouped(3, window, "mean", aggregate=aggregate, order=order, stream=stream, occurrences="many",
                               having=None)  # fmt: skip
        model.ranked, model.having = (aggregate, lambda row: row["x"]), None
        follow(sb.Monitor(query), model, streams.cut(make("broken"), 7))


def test_the_first_example():
    query = sb.TopKGroups(k=2, id="g", value="x", aggregate="mean", window=sb.last(4, every=4))
    answer = sb.Monitor(query).push({"g": list("aaab"), "x": [3.0, 3.0, 3.0, 4.0]})
    assert answer.select(["score", "g"]).to_pylist() == [{"score": 4.0, "g": "b"}, {"score": 3.0, "g": "a"}]


def test_null_as_sql_has_it():
    """Aggregates leave NULL out; a row of which nothing is taken is none; a group without a score is not ranked."""
    rows = {"g": ["a", "a", "b", "b"], "x": [1.0, None, None, float("nan")], "y": [None, 2.0, 3.0, None]}
    plain = sb.TopKGroups(k=9, id="g", value="x", aggregate="mean", window=sb.last(4))
    monitor = sb.Monitor(plain)
    monitor.push(rows)
    assert monitor.stats.invalid == 3 and monitor.top().to_pylist() == [{"rank": 1, "score": 1.0, "g": "a"}]
    monitor = sb.Monitor(plain.but(outputs={"n": "count(*)", "values": "count(x)", "top": "max(y)"}))
    monitor.push(rows)
    assert monitor.stats.invalid == 0
    assert monitor.top().to_pylist() == [{"rank": 1, "score": 1.0, "g": "a", "n": 2, "values": 1, "top": 2.0}]
    monitor = sb.Monitor(plain.but(outputs={"top": "max(y)"}))
    monitor.push(rows)
    assert monitor.stats.invalid == 1  # the last row: it has neither
    monitor = sb.Monitor(plain.but(value="y", outputs={"total": "sum(x)"}))
    monitor.push(rows)
    assert [row["total"] for row in monitor.top().to_pylist()] == [None, 1.0]


def test_types_of_outputs():
    query = sb.TopKGroups(
        k=1, id="g", window=sb.last(4), outputs={"n": "count(*)", "m": "max(x)", "d": "count(distinct x)"}
    )
    table = sb.Monitor(query).push({"g": ["a"], "x": [1]})
    assert [table.schema.field(name).type for name in "nmd"] == [pa.int64(), pa.float64(), pa.int64()]
    assert sb.Monitor(query).push({"g": pa.array([], "string"), "x": pa.array([], "int64")}).schema == table.schema


@pytest.mark.parametrize("column", [
    pa.array(["x", "y", "x", None]), pa.array(["x", "y", "x", None]).dictionary_encode(),
    pa.array([1, 2, 1, None], pa.timestamp("us")), pa.array([0.0, 1.0, -0.0, float("nan")]),
    pa.array([2**53, 2**53 + 1, 2**53, None]), pa.array([True, False, True, None]), pa.array([b"x", b"y", b"x", None]),
], ids=str)  # fmt: skip
def test_distinct_values_of_every_type(column):
    query = sb.TopKGroups(
        k=1, id="g", value="v", aggregate="count_distinct", window=sb.last(9), outputs={"n": "count(v)"}
    )
    monitor = sb.Monitor(query)
    monitor.push({"g": ["a"] * 4, "v": column})
    assert monitor.top().select(["score", "n"]).to_pylist() == [{"score": 2.0, "n": 3}]


def test_weights():
    """Weights are in the aggregate ranked by, and in no other."""
    query = sb.TopKGroups(
        k=1, id="g", stream="s", value="x", aggregate="mean", occurrences="many", weights={"r": 3}, window=sb.last(9),
        outputs={"plain": "mean(x)", "total": "sum(x)"},
    )  # fmt: skip
    monitor = sb.Monitor(query)
    monitor.push({"g": ["a", "a"], "s": ["r", "t"], "x": [2.0, 4.0]})
    assert monitor.top().to_pylist() == [{"rank": 1, "score": 5.0, "g": "a", "plain": 3.0, "total": 6.0}]
    monitor = sb.Monitor(query.but(value=None, aggregate="sum", outputs={"n": "count(*)"}))
    monitor.push({"g": ["a", "a"], "s": ["r", "t"], "x": [2.0, 4.0]})
    assert monitor.top().to_pylist() == [{"rank": 1, "score": 4.0, "g": "a", "n": 2}]


def test_bounds_leave_rows_out_of_everything():
    query = sb.TopKGroups(
        k=1, id="g", value="x", aggregate="min", window=sb.last(9), bounds=(-1, 5), outputs={"n": "count(*)"}
    )
    monitor = sb.Monitor(query)
    monitor.push({"g": ["a"] * 4, "x": [-2.0, -1.0, 6.0, None]})
    assert monitor.stats.invalid == 2
    assert monitor.top().to_pylist() == [{"rank": 1, "score": -1.0, "g": "a", "n": 2}]


def test_a_group_that_fails_the_condition_leaves():
    query = sb.TopKGroups(k=1, id="g", window=sb.last(3), having="count(*) >= 2", outputs={"top": "max(x)"})
    monitor = sb.Monitor(query)
    rows = monitor.push({"g": ["a", "a", "b", "b"], "x": [1, 9, 5, 7]}).to_pylist()
    assert [(row["at"], row["op"], row["g"], row["top"]) for row in rows] == [
        (1, "+", "a", 9.0), (3, "-", "a", 9.0), (3, "+", "b", 7.0)]  # fmt: skip


@pytest.mark.parametrize("factors", [
    [0.1] * 30, [1e300, 1e-300, 1e300, 1e-300, 3.0], [1e200, 1e200, -1e200], [1e-200, 1e-120, -7.0], [5e-324, 0.5],
    [5e-324, 0.75, 1.0000000000000002], [3.0, 1e-320], [2.0] * 1030, [-0.5] * 1075, [1.1, -1.3, 1.7] * 12, [0.0, -3.0],
    [1e-160, 1e-160, 0.7, 1.3], [-1.5, 2.0**-1074, 1.0000000001],
])  # fmt: skip
def test_products_are_correctly_rounded(factors):
    """In whatever order, and however large or small they are on the way."""
    rng = np.random.default_rng(0)
    expected = oracle_groups.aggregate("product", factors)
    for _ in range(3):
        for window in (sb.last(2000), sb.last(2000, every=len(factors))):
            monitor = sb.Monitor(sb.TopKGroups(k=1, id="g", value="x", aggregate="product", window=window))
            monitor.push({"g": [1] * len(factors), "x": rng.permutation(factors)})
            assert monitor.top()["score"].to_pylist() == [expected]


def test_products_of_random_factors():
    rng = np.random.default_rng(1)
    sizes, scales = rng.integers(1, 40, 200), 10.0 ** rng.integers(-30, 20, 200)
    group = np.repeat(np.arange(200), sizes)
    x = rng.normal(size=group.size) * scales[group]
    monitor = sb.Monitor(sb.TopKGroups(k=200, id="g", value="x", aggregate="product", window=sb.last(10_000)))
    monitor.push({"g": group, "x": x})
    top = monitor.top()
    for g, score in zip(top["g"].to_pylist(), top["score"].to_pylist()):
        assert score == oracle_groups.aggregate("product", x[group == g].tolist())


SQL = """
WITH members AS (
    SELECT *, unnest(range(epoch_us(ts) // 3000000 * 3000000 + 3000000, epoch_us(ts) + 7000001, 3000000)) AS window_end
    FROM stream WHERE ts IS NOT NULL
), groups AS (
    SELECT window_end, o, h, avg(x) AS score, min(x) AS low, max(y) AS high, count(DISTINCT g) AS kinds, count(*) AS n
    FROM members GROUP BY window_end, o, h HAVING count(*) >= 2 AND max(y) IS NOT NULL
)
SELECT window_end, o, h, score, low, high, kinds, n FROM groups WHERE score IS NOT NULL
ORDER BY window_end, o, h
"""


def test_as_duckdb_has_it():
    stream = make("jittered_tied", size=300, ids=4)
    query = sb.TopKGroups(
        k=1000, id=("o", "h"), value="x", aggregate="mean", having="n >= 2 AND max(y) IS NOT NULL",
        window=sb.last("7 seconds", every="3 seconds", late="5 seconds"),
        outputs={"low": "min(x)", "high": "max(y)", "kinds": "count(distinct g)", "n": "count(*)"},
    )  # fmt: skip
    monitor = sb.Monitor(query)
    ours = pa.concat_tables([monitor.push(stream), monitor.flush()])
    ours = oracle.rows(ours.select(["window_end", "o", "h", "score", "low", "high", "kinds", "n"]))
    theirs = oracle.rows(duckdb.sql(SQL).to_arrow_table())
    assert len(theirs) > 50
    assert sorted(map(repr, ours)) == sorted(repr((*row[:5], float(row[5]), *row[6:])) for row in theirs)


def test_values_whose_column_gets_another_type():
    """NULL first, then integers, then floats: a value stays the same value."""
    outputs = {"t": "sum(x)"}
    query = sb.TopKGroups(k=2, id="g", value="x", aggregate="count_distinct", window=sb.last(9), outputs=outputs)
    monitor = sb.Monitor(query)
    for x in ([None, None], [1, 2], [1.0, 2.5]):
        monitor.push({"g": ["a", "b"], "x": x})
        monitor.check()
        monitor = sb.Monitor.loads(monitor.dumps())
    assert monitor.top().to_pylist() == [
        {"rank": 1, "score": 2.0, "g": "b", "t": 4.5}, {"rank": 2, "score": 1.0, "g": "a", "t": 2.0}]  # fmt: skip

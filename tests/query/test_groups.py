"""What TopKGroups refuses, what it means by default, and what the planner makes of it."""

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb

ROWS = {"o": ["a", "b", "a", "c"], "s": ["r1", "r1", "r2", "r3"], "x": [0.5, 0.75, 0.25, 0.5]}


def ask(window=None, **fields):
    return sb.TopKGroups(**{"k": 2, "id": "o", "stream": "s", "value": "x", "window": window or sb.last(9), **fields})


def many(**fields):
    return {"occurrences": "many", **fields}


def scores(**fields):
    monitor = sb.Monitor(ask(k=9, **fields))
    monitor.push(ROWS)
    top = monitor.top()
    return dict(zip(top["o"].to_pylist(), top["score"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (dict(k=0), "k=0"),
        (dict(id=None), "id=None must be a column name"),
        (dict(stream=3), "stream=3 must be a column name"),
        (dict(value="x +"), "x +"),
        (dict(select=("o", "x")), "answer can show its id only; select among o"),
        (dict(occurrences="twice"), 'occurrences=\'twice\' is unknown; it is "once" or "many"'),
        (dict(aggregate="median"), "aggregate='median' is unknown; it is one of sum, count, mean"),
        (dict(aggregate="mean"), "aggregate='mean' needs streams="),
        (dict(aggregate="min"), "aggregate='min' needs streams="),
        (dict(aggregate="product"), "aggregate='product' needs streams="),
        (dict(aggregate=np.sum), "needs streams="),
        (dict(aggregate=np.sum, streams=3), "needs the names of the streams"),
        (dict(streams=0), "streams=0 must be a number of streams, at least 1"),
        (dict(streams=True), "streams=True"),
        (dict(streams=("a", "a")), "has a name twice"),
        (dict(stream=None, streams=2), "has no meaning without stream="),
        (dict(weights={"r1": -1}), "'r1' has -1; a weight is a number, at least 0"),
        (dict(weights={"r9": 1}, streams=("r1", "r2")), "'r9' is none of the streams r1, r2"),
        (dict(weights={"r1": 2}, aggregate="max"), "go with stream= and aggregate='sum' or 'mean'"),
        (dict(weights=[1, 2]), "must be a mapping"),
        (dict(bounds=(1, 0)), "bounds=(1, 0) must be the smallest and the largest value"),
        (dict(bounds=1), "bounds=1 must be"),
        (dict(bounds=(0, float("nan"))), "bounds="),
        (dict(bounds=(1, 2)), "an absent stream adds nothing, so the smallest value must be 0"),
        (dict(bounds=(-1, 2), aggregate="product", streams=2), "monotone only for values from 0 on"),
        (dict(bounds=(1, 2), occurrences="many"), "the smallest value must be 0"),
        (dict(value="x DESC"), "value='x DESC' is not an SQL expression"),
        (dict(id=()), "id=() must be a column name, or several"),
        (dict(id=("o", "o")), "has a name twice"),
        (dict(order="down"), "order='down' is unknown"),
        (dict(order="asc"), "order='asc' is for aggregates over all rows of a group"),
        (dict(outputs={"n": "count(*)"}), "only the newest of each stream counts; take occurrences='many'"),
        (dict(having="count(*) > 1"), "take occurrences='many', or leave having out"),
        (dict(aggregate="count_distinct"), "take occurrences='many'"),
        (many(aggregate=np.sum, streams=("r1",), having="score > 1"), "a Python function sees the sums of the streams"),
        (many(aggregate="max", value=None), "aggregate='max' needs value="),
        (many(aggregate="count_distinct", value=None), "needs value="),
        (many(aggregate="mean", most=1), "most=1 promises how high a sum or count may still rise"),
        (many(most=1, outputs={"n": "count(*)"}), "leave it out"),
        (many(outputs=["count(*)"]), "must be a mapping from names to aggregates"),
        (many(outputs={"n": "x + 1"}), "outputs['n']='x + 1' must be one aggregate: count(*)"),
        (many(outputs={"n": "median(x)"}), "must be one aggregate"),
        (many(outputs={"n": "count(*) + 1"}), "must be one aggregate"),
        (many(outputs={"n": 3}), "must be one aggregate"),
        (many(outputs={"n": "sum(DISTINCT x)"}), "DISTINCT is served in count(DISTINCT e) only"),
        (many(outputs={"n": "count(DISTINCT x, s)"}), "an aggregate is of one expression"),
        (many(outputs={"n": "max(x, y)"}), "greatest(...)"),
        (many(outputs={"n": "sum(max(x))"}), "the aggregate MAX(x) is not allowed"),
        (many(outputs={"n": "sum(x +)"}), "is not an SQL expression"),
        (many(outputs={"n": "sum(x) OVER ()"}), "must be one aggregate"),
        (many(outputs={"score": "count(*)"}), "has a column 'score' anyway"),
        (many(outputs={"o": "count(*)"}), "has a column 'o' anyway"),
        (many(outputs={"at": "count(*)"}), "has a column 'at' anyway"),
        (many(outputs={"g": "count(*)"}, partition_by=("g",)), "has a column 'g' anyway"),
        (many(having="x > 1"), "there is no column 'x'"),
        (many(having="x > 1"), "not over columns of rows: for those there is where="),
        (many(having="count(*)"), "a condition must be true or false"),
        (many(having="median(x) > 1"), "the aggregate MEDIAN(x) is not allowed"),
        (many(having="1 < count(x) OVER ()"), "is not an SQL expression"),
        (many(having=3), "having=3 must be an SQL condition"),
        (dict(most=0), "most=0 must be a whole number, at least 1"),
        (dict(most=1.5), "most=1.5"),
    ],
)
def test_refused(fields, message):
    with pytest.raises(sb.QueryError) as caught:
        ask(**fields)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (dict(algorithm="panes"), "cannot serve a window that moves with every arrival"),
        (dict(algorithm="panes", window=sb.last(9, every=3)), "over all rows of a group, not occurrences='once'"),
        (dict(algorithm="tally"), "over all rows of a group, not occurrences='once'"),
        (many(algorithm="tally", aggregate=np.sum, streams=("r1",)), "not a Python function for aggregate"),
        *(
            (many(algorithm=name, aggregate=how), f"algorithm={name!r} serves the largest sums and counts of rows")
            for name in ("sla", "eaa", "approx")
            for how in ("mean", "min", "max", "product", "count_distinct")
        ),
        (many(algorithm="sla", order="asc"), "order='asc'"),
        (many(algorithm="sla", outputs={"n": "count(*)"}), "outputs={'n': 'count(*)'}"),
        (dict(algorithm="rapf"), "algorithm='rapf' is unknown; there are approx, eaa, panes, sla, tally"),
        (dict(algorithm="approx(caution=2)"), "caution=2 must be from 0 to 1"),
        (dict(algorithm="approx(bitmaps=0.5)"), "bitmaps=0.5 must be a whole number"),
    ],
)
def test_refused_by_the_algorithm(fields, message):
    with pytest.raises(sb.QueryError) as caught:
        sb.Monitor(ask(**fields))
    assert message in str(caught.value)


def test_what_an_absent_stream_counts_for():
    """Nothing for sums, counts and means; for the others ``bounds[0]``, or 0."""
    assert scores(aggregate="sum") == {"a": 0.75, "b": 0.75, "c": 0.5}
    assert scores(aggregate="count") == {"a": 2.0, "b": 1.0, "c": 1.0}
    assert scores(aggregate="mean", streams=3) == {"a": 0.25, "b": 0.25, "c": 0.5 / 3}
    assert scores(aggregate="max") == {"b": 0.75, "a": 0.5, "c": 0.5}
    assert scores(aggregate="max", bounds=(-1, 1)) == {"b": 0.75, "a": 0.5, "c": 0.5}
    assert scores(aggregate="min", streams=3) == {"a": 0.0, "b": 0.0, "c": 0.0}
    assert scores(aggregate="min", streams=3, bounds=(-1, 1)) == {"a": -1.0, "b": -1.0, "c": -1.0}
    two = dict(where="s <> 'r3'", streams=2)
    assert scores(aggregate="min", **two) == {"a": 0.25, "b": 0.0}
    assert scores(aggregate="product", **two) == {"a": 0.125, "b": 0.0}
    assert scores(aggregate="product", **two, bounds=(0.25, 1)) == {"b": 0.1875, "a": 0.125}
    named = dict(aggregate=lambda v: v[:, 0] + 10 * v[:, 1], streams=("r1", "r2"))
    assert scores(**named) == {"a": 3.0, "b": 0.75}  # r3 is none of the streams
    assert scores(**named, bounds=(-1, 1)) == {"a": 3.0, "b": 0.75 - 10}


def test_bounds_names_and_bad_amounts_leave_rows_out():
    monitor = sb.Monitor(ask(bounds=(0, 0.5), streams=("r1", "r2")))
    monitor.push(ROWS)
    assert monitor.stats.invalid == 2 and monitor.top()["o"].to_pylist() == ["a"]
    monitor = sb.Monitor(ask())
    monitor.push({**ROWS, "x": [None, float("nan"), float("inf"), 1e301]})
    assert monitor.stats.invalid == 4 and monitor.top().num_rows == 0


def test_streams_may_be_numbers_or_categories():
    for column in (pa.array([1, 1, 2, 3]), pa.array(["1", "1", "2", "3"]).dictionary_encode()):
        monitor = sb.Monitor(ask(streams=[1, 2], weights={1: 2.0}))
        monitor.push({**ROWS, "s": column})
        assert monitor.top()["score"].to_pylist() == [1.5, 1.25]


def test_defaults():
    assert ask().occurrences == "once" and ask(stream=None).occurrences == "many"
    assert ask(select="o").select == ("o",)
    monitor = sb.Monitor(ask(stream=None, value=None))
    assert monitor.push(ROWS).column_names == ["at", "op", "score", "o"]
    assert monitor.top()["score"].to_pylist() == [2.0, 1.0]


def test_functions_and_their_states():
    query = ask(aggregate=lambda v: v.sum(axis=1), streams=("r1", "r2"))
    monitor = sb.Monitor(query)
    monitor.push(ROWS)
    assert sb.Monitor.loads(monitor.dumps(), query).top().equals(monitor.top())
    with pytest.raises(sb.StateError, match="hand the query over"):
        sb.Monitor.loads(monitor.dumps())


@pytest.mark.parametrize(
    ("fields", "algorithm"),
    [
        (dict(window=sb.last(9, every=3), occurrences="many"), "panes"),
        (dict(window=sb.last(9, every=3), occurrences="many", error=0.1), "panes"),
        (dict(window=sb.last(9, every=3)), "sla"),
        (many(), "tally"),
        (many(aggregate="mean"), "tally"),
        (many(aggregate="mean", error=0.2), "tally"),
        (many(aggregate="max", window=sb.last(9, every=3)), "panes"),
        (many(error=0.2), "tally"),
        (many(error=0.2, window=sb.last(10_000)), "approx"),
        (dict(most=1, bounds=(0, 1), streams=3), "eaa"),
        (dict(most=1, bounds=(0, 1)), "sla"),
        (dict(most=2, bounds=(0, 1), streams=3), "sla"),
        (dict(most=2, bounds=(0, 1), streams=3, occurrences="many"), "eaa"),
        (dict(error=0.2, window=sb.last(10_000)), "approx"),
        (dict(error=0.2, window=sb.last("1 hour")), "approx"),
        (dict(error=0.2, window=sb.last(9_999)), "sla"),
        (dict(error=0.2, window=sb.last(10_000), most=1, bounds=(0, 1), streams=3), "eaa"),
    ],
)
def test_the_plan(fields, algorithm):
    assert f"algorithm: {algorithm}" in sb.explain(ask(**fields))


def test_more_streams_than_declared_are_an_error():
    """Named, before anything is taken in; a stream that only invalid rows name is none."""
    for fields in (
        dict(),
        many(),
        many(window=sb.last(4, every=2)),
        many(aggregate="mean", window=sb.last(4, every=2)),
    ):
        monitor = sb.Monitor(ask(streams=2, **fields))
        monitor.push({name: column[:3] for name, column in ROWS.items()})
        before = monitor.dumps()
        monitor.push({"o": ["a"], "s": ["r9"], "x": [None]})
        assert monitor.stats.invalid == 1
        monitor = sb.Monitor.loads(before)
        for batch in (ROWS, {name: column[3:] for name, column in ROWS.items()}):
            with pytest.raises(sb.QueryError) as caught:
                monitor.push(batch)
            assert "streams=2, but rows of 3 streams have come (s: r1, r2, r3)" in str(caught.value)
            assert monitor.dumps() == before
        with pytest.raises(sb.QueryError, match="rows of 3 streams"):
            sb.Monitor([ask(), ask(streams=2)]).push(ROWS)
    monitor = sb.Monitor(ask(streams=2, window=sb.last(4, on="seq")))
    waiting = {"seq": [0, 5, 6, 7], "s": ["r1", "r2", "r2", None], "x": [1, 1, 1, None]}
    monitor.push({**ROWS, **waiting})  # three of them wait
    with pytest.raises(sb.QueryError, match=r"rows of 3 streams have come \(s: r1, r2, r3\)"):
        monitor.push({"o": ["a"], "s": ["r3"], "x": [1], "seq": [8]})
    monitor = sb.Monitor(ask(streams=("r1", "r2"), aggregate="mean"))
    monitor.push(ROWS)
    assert monitor.stats.invalid == 1


def test_ids_of_several_columns():
    query = ask(id=["o", "s"], stream=None, aggregate="max")
    assert query.id == ("o", "s") and sb.Monitor(query).push(ROWS).column_names == ["at", "op", "score", "o", "s"]
    assert sb.Monitor(query.but(select=("s",))).push(ROWS).column_names == ["at", "op", "score", "s"]
    monitor = sb.Monitor(ask(id=("o", "s"), streams=3))  # assembled objects too
    monitor.push({"o": ["a", "a", "a"], "s": ["r1", "r1", "r2"], "x": [1, 2, 3]})
    assert monitor.top().select(["score", "o", "s"]).to_pylist() == [
        {"score": 3.0, "o": "a", "s": "r2"}, {"score": 2.0, "o": "a", "s": "r1"}]  # fmt: skip


def test_an_answer_in_words():
    query = ask(
        id=("o", "s"), aggregate="mean", occurrences="many", order="asc", outputs={"n": "count(*)"}, having="n > 1"
    )
    assert sb.explain(query).splitlines()[0] == (
        "top 2 o, s by mean of x, many per s, smallest first, with n, having n > 1 over the last 9 at every arrival"
    )


def test_several_queries_at_once():
    monitor = sb.Monitor([ask(name="sums"), ask(name="counts", stream=None, value=None, window=sb.last(4, every=2))])
    assert set(monitor.push(ROWS)["query"].to_pylist()) == {"sums", "counts"}

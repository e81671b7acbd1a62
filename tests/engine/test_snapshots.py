"""Snapshots of one query among several, within its own limits."""

import pyarrow as pa
import pytest

import skyband as sb

ROWS = {"x": [5.0, 3.0, 9.0, 1.0, 7.0, 2.0], "y": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}


def few(**fields):
    return sb.TopK(**{"k": 3, "order_by": "x DESC", "window": sb.last(4, every=2), "name": "few", **fields})


def many(**fields):
    return sb.TopK(**{"k": 5, "order_by": "x DESC", "window": sb.last(6, every=2), "name": "many", **fields})


def monitor(*queries):
    pushed = sb.Monitor(list(queries))
    pushed.push(ROWS)
    return pushed


def alone(query, /, **arguments):
    pushed = sb.Monitor(query)
    pushed.push(ROWS)
    return pushed.top(**arguments)


TOGETHER = {
    "one state": (few(), many()),
    "a state each": (few(order_by="y DESC"), many()),
    "scase": (few(algorithm="scase"), many(algorithm="scase")),
    "every arrival": (few(window=sb.last(4)), many(window=sb.last(6))),
}


@pytest.mark.parametrize("case", TOGETHER)
@pytest.mark.parametrize("k", [None, 1, 3, 4, 5])
@pytest.mark.parametrize("last", [None, 2, 4, 6])
def test_each_query_answers_up_to_its_own_limits(case, k, last):
    got = monitor(*TOGETHER[case]).top(k=k, last=last)
    parts = []
    for query in TOGETHER[case]:
        own = alone(query, k=min(k or query.k, query.k), last=None if last is None else min(last, query.window.extent))
        parts.append(own.add_column(0, "query", pa.array([query.name] * own.num_rows)))
    assert got.equals(pa.concat_tables(parts))


@pytest.mark.parametrize("case", TOGETHER)
def test_a_named_query_has_limits_of_its_own(case):
    queries = TOGETHER[case]
    pushed = monitor(*queries)
    for query in queries:
        got = pushed.top(query=query.name, k=2, last=2)
        assert got["query"].unique().to_pylist() == [query.name]
        assert got.drop_columns("query").equals(alone(query, k=2, last=2))
    assert pushed.top(query="many", k=5).num_rows == 5
    with pytest.raises(sb.QueryError, match="k=5 must be a whole number from 1 to 3, the k of the query"):
        pushed.top(query="few", k=5)
    with pytest.raises(sb.QueryError, match="last=6 must be from 1 to 4, the extent of the window"):
        pushed.top(query="few", last=6)


def test_what_no_query_can_answer_is_refused():
    pushed = monitor(few(), many())
    with pytest.raises(sb.QueryError, match="k=6 must be a whole number from 1 to 5, the largest k of the queries"):
        pushed.top(k=6)
    with pytest.raises(sb.QueryError, match="last=7 must be from 1 to 6, the longest extent of the windows"):
        pushed.top(last=7)


@pytest.mark.parametrize("name", ["none", "", 3])
def test_an_unknown_name_is_refused_with_those_that_there_are(name):
    with pytest.raises(sb.QueryError, match=f"query={name!r} is none of the queries; they are called few, q1"):
        monitor(few(), many(name=None)).top(query=name)


def test_one_query_may_be_named_too():
    assert alone(few(), query="few").equals(alone(few()))
    assert alone(few(name=None), query="q0").equals(alone(few()))


def test_queries_without_rows_yet():
    fresh = sb.Monitor([few(), many()])
    assert fresh.top().column_names == ["query", "rank", "score"] and fresh.top(query="few").num_rows == 0
    assert fresh.flush().num_rows == 0

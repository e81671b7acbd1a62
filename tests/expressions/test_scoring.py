"""Scores, conditions and items as queries use them; what their expressions mean is tested in test_expressions.py."""

import math
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from skyband.errors import QueryError
from skyband.expressions import scoring
from skyband.query import Nearest, TopK
from skyband.query.windows import last


def same(left, right):
    return np.array_equal(left, right, equal_nan=True)


# ---- columns


def test_names():
    table = pa.table({"Price": [1.0], "price": [2.0], "Volume": [3.0], "odd name": [4.0]})
    assert scoring.compile_order("price").evaluate(table) == [2.0]
    assert scoring.compile_order('Price + "odd name" + VOLUME').evaluate(table) == [8.0]
    assert scoring.compile_order("VOLUME + price").needs(table.column_names) == ("Volume", "price")
    with pytest.raises(QueryError, match=r"'PRICE' may mean 2 columns \(Price, price\)"):
        scoring.compile_order("PRICE").evaluate(table)
    with pytest.raises(QueryError, match="there is no column 'volume'; did you mean 'Volume'"):
        scoring.compile_order('"volume"').evaluate(table)
    with pytest.raises(QueryError, match="order_by='pirce DESC': there is no column 'pirce'; did you mean 'Price'"):
        scoring.compile_order("pirce DESC").evaluate(table)
    with pytest.raises(QueryError, match="The columns are Price, price, Volume, odd name"):
        scoring.compile_condition("nothing_like_it > 1").evaluate(table)


def test_a_plain_column_is_shared():
    values = np.random.default_rng(0).random(1000)
    table = pa.table({"x": values, "i": np.arange(1000)})
    for given in (table, table.to_batches()[0], table.slice(10, 50)):
        result = scoring.compile_order("x DESC").evaluate(given)
        assert np.shares_memory(result, values) and result.size == given.num_rows
    assert same(scoring.compile_order("i").evaluate(table), np.arange(1000.0))
    holes = pa.chunked_array([[1.0, None], [math.nan], []])
    assert same(scoring.compile_order("x").evaluate(pa.table({"x": holes})), [1, math.nan, math.nan])


def test_compiled_queries_can_be_sent():
    for one in (scoring.compile_order("x * 2 DESC"), scoring.compile_item("x AS y"), scoring.compile_order(np.cos)):
        assert pickle.loads(pickle.dumps(one)).needs(["x"]) == ("x",)


# ---- order_by, where, select


def test_split_order():
    assert scoring.split_order("a") == ("a", "ASC") and scoring.split_order(" a + b Desc ") == ("a + b", "DESC")
    assert scoring.split_order('"desc" asc') == ('"desc"', "ASC")
    assert scoring.split_order("least(a, b)") == ("least(a, b)", "ASC")
    assert scoring.split_order(len) == (len, "ASC") and scoring.split_order((len, "desc")) == (len, "DESC")
    assert scoring.compile_order((len, "DESC")).descending and not scoring.compile_order(len).descending
    assert scoring.compile_order(len).columns is None and scoring.compile_order(len).sql is None


@pytest.mark.parametrize(
    ("order_by", "message"),
    [
        ("a NULLS LAST", "NULLS LAST has no use"),
        ("a desc nulls first", "NULLS FIRST has no use"),
        ("a, b DESC", "several terms; give one score"),
        ("", "is not an SQL expression"),
        ("desc", "is not an SQL expression"),
        ("a +", "cannot be read at '\\+', character 3"),
        ("'abc", "is a quote left open"),
        (5, "must be an SQL expression such as"),
        (("a", "DESC"), "must be an SQL expression such as"),
        ((len, "UP"), "must be an SQL expression such as"),
    ],
)
def test_bad_order(order_by, message):
    with pytest.raises(QueryError, match=message):
        TopK(k=1, order_by=order_by, window=last(9))


def test_conditions_must_be_true_or_false():
    with pytest.raises(QueryError, match="where='x' is of type int64; a condition must be true or false"):
        scoring.compile_condition("x").evaluate(pa.table({"x": [1]}))
    with pytest.raises(QueryError, match="where=5 must be an SQL condition"):
        TopK(k=1, order_by="x", window=last(9), where=5)


def test_items():
    table = pa.table({"price": [1, 2], "odd name": ["a", "b"], "when": pa.array([1, 2], pa.timestamp("us"))})
    items = {
        text: scoring.compile_item(text) for text in ("price", '"odd name"', "price / 2 AS half", 'price AS "a b"')
    }
    assert [item.name for item in items.values()] == ["price", "odd name", "half", "a b"]
    assert items["price"].evaluate(table) is not None and items["price / 2 AS half"].columns == ("price",)
    assert items["price / 2 AS half"].evaluate(table).to_pylist() == [0.5, 1.0]
    assert scoring.compile_item('"when"').evaluate(table).equals(table.column("when"))
    assert scoring.compile_item('upper("odd name") AS name').evaluate(table).to_pylist() == ["A", "B"]
    assert scoring.compile_item("price").evaluate(table.to_batches()[0]).to_pylist() == [1, 2]
    assert scoring.compile_item('"odd name" AS n').spark_sql(table.schema) == "`odd name`"
    assert scoring.compile_item("price * 2 AS n").spark_sql(table.schema) == "TRY_MULTIPLY(`price`, 2L)"
    refused = {"price * 2": r"needs a name: write price \* 2 AS name", "odd name": "cannot be read", "*": "not allowed",
               "price AS": "select='price AS'", "a, b": "select='a, b'"}  # fmt: skip
    for text, message in refused.items():
        with pytest.raises(QueryError, match=message):
            scoring.compile_item(text)


# ---- functions


def test_functions_see_only_what_they_ask_for():
    table = pa.table({"x": [1.0, 2.0], "i": [1, None], "s": ["a", "b"], "never": pa.array([1, 2], pa.int64())})
    seen = {}

    def best(columns):
        assert list(columns) == ["x", "i", "s", "never"] and len(columns) == 4 and "nope" not in columns
        seen.update(columns.arrays)
        return columns["x"] * 2 + columns["i"]

    assert same(scoring.compile_order(best).evaluate(table), [3, math.nan])
    assert seen == {}
    shared = scoring.compile_order(lambda columns: columns["x"]).evaluate(table)
    assert np.shares_memory(shared, table.column("x").chunk(0).to_numpy())


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (np.array([1, 2, 3], np.uint8), [1, 2, 3]),
        (np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False]), [1, math.nan, 3]),
        ([1, None, 2.5], [1, math.nan, 2.5]),
        ((1, 2, 3), [1, 2, 3]),
        (pd.Series([1, None, 3], dtype="Int64"), [1, math.nan, 3]),
        (pd.Series([1.5, np.nan, 3]), [1.5, math.nan, 3]),
        (pa.chunked_array([[1], [None, 3]]), [1, math.nan, 3]),
        (np.array([Decimal("0.1"), None, Decimal("2")], object), [0.1, math.nan, 2]),
    ],
)
def test_functions_may_return_any_array_of_numbers(result, expected):
    assert same(scoring.compile_order(lambda columns: result).evaluate(pa.table({"x": [1, 2, 3]})), expected)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.zeros(2), "a number for each of the 3 rows; it returned an array of shape \\(2,\\)"),
        (np.zeros((3, 1)), "shape \\(3, 1\\)"),
        (5.0, "must return an array of numbers, one for each of the 3 rows; it returned float"),
        (None, "it returned NoneType"),
        (["a", "b", "c"], "is of type string; a score must be a number"),
        (np.array(["1", "2", "3"]), "is of type string"),
        (np.array([True, False, True]), "is of type bool"),
        (np.zeros(3, complex), "it returned ndarray"),
        (np.zeros(3, "datetime64[us]"), "is of type timestamp"),
    ],
)
def test_functions_must_return_numbers(result, message):
    def best(columns):
        return result

    with pytest.raises(QueryError, match=f"order_by=.*best.*{message}"):
        scoring.compile_order(best).evaluate(pa.table({"x": [1, 2, 3]}))


def test_errors_of_functions():
    table = pa.table({"price": [1]})
    with pytest.raises(QueryError, match="there is no column 'pric'; did you mean 'price'"):
        scoring.compile_order(lambda columns: columns["pric"]).evaluate(table)
    with pytest.raises(QueryError, match=r"raised KeyError: 'mine' in line .*\. It was given 1 row"):
        scoring.compile_order(lambda columns: {}["mine"]).evaluate(table)
    assert scoring.compile_order(lambda columns: columns.get("nope", [7])).evaluate(table) == [7]
    assert scoring.compile_order(len).spark_sql(table.schema) is None


# ---- distances


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", 1, 2, 1.5, 3, 4.0, 10, math.inf])
@pytest.mark.parametrize("weights", [{}, {"x": 2, "a b": 0.25}])
def test_distance(metric, weights):
    rng = np.random.default_rng(5)
    to = {"x": 0.2, "a b": -0.7, "select": 3}
    table = pa.table({name: rng.normal(size=50) * 4 for name in to})
    p = {"euclidean": 2, "manhattan": 1, "chebyshev": math.inf}.get(metric, metric)
    points = np.column_stack([weights.get(name, 1) * (table.column(name).to_numpy() - to[name]) for name in to])
    text = scoring.distance(to, metric, weights)
    assert np.allclose(scoring.compile_order(text).evaluate(table), np.linalg.norm(points, p, axis=1), rtol=1e-14)
    ordered = scoring.distance(dict(sorted(to.items())), metric, weights)  # so that equal queries add up alike
    assert Nearest(k=1, to=to, window=last(9), metric=metric, weights=weights).lower().order_by == ordered + " ASC"
    for name in to:  # a row that lacks a coordinate has no distance
        lacking = table.slice(0, 1).set_column(table.column_names.index(name), name, pa.array([None], pa.float64()))
        assert np.isnan(scoring.compile_order(text).evaluate(lacking)).all()


def test_distance_as_text():
    assert scoring.distance({"x": 0.2, "y": 0.7}, "manhattan", {}) == "abs(x - 0.2) + abs(y - 0.7)"
    assert scoring.distance({"x": -0.5}, "euclidean", {}) == "abs(x - (-0.5))"
    assert scoring.distance({'a"b': 1, "Übung": 1e-7}, 1, {}) == 'abs("a""b" - 1) + abs(Übung - 1e-07)'
    assert scoring.distance({"1x": 1e300, "desc": np.float32(2)}, 1, {}) == 'abs("1x" - 1e+300) + abs("desc" - 2)'
    many = {f"c{n}": n / 7 for n in range(200)}
    table = pa.table({name: [value + 1] for name, value in many.items()})
    assert scoring.compile_order(scoring.distance(many, 2, {})).evaluate(table) == pytest.approx([math.sqrt(200)])


@pytest.mark.parametrize(
    ("to", "metric", "weights", "message"),
    [
        ({}, 2, {}, "to={} must give a number for each column"),
        ([1, 2], 2, {}, "must give a number for each column"),
        ({"x": math.nan}, 2, {}, "to.'x'.=nan must be a finite number"),
        ({"x": math.inf}, 2, {}, "must be a finite number"),
        ({"x": "1"}, 2, {}, "to.'x'.='1' must be a finite number"),
        ({"x": True}, 2, {}, "must be a finite number"),
        ({"x": None}, 2, {}, "must be a finite number"),
        ({"": 1}, 2, {}, "is not a column name"),
        ({5: 1}, 2, {}, "is not a column name"),
        ({"x": 1}, "cosine", {}, "'cosine' is unknown; it is 'euclidean', 'manhattan', 'chebyshev', or a number"),
        ({"x": 1}, 0.5, {}, "metric=0.5 is unknown"),
        ({"x": 1}, math.nan, {}, "metric=nan is unknown"),
        ({"x": 1}, True, {}, "metric=True is unknown"),
        ({"x": 1}, 2, {"y": 1}, "weights: 'y' is no column of to, which are x"),
        ({"x": 1}, 2, {"x": -1}, "weights.'x'.=-1 must not be negative"),
        ({"x": 1}, 2, {"x": math.inf}, "weights.'x'.=inf must be a finite number"),
        ({"x": 1}, 2, [1], "weights=.1. must give numbers for columns"),
    ],
)
def test_bad_distance(to, metric, weights, message):
    with pytest.raises(QueryError, match=message):
        Nearest(k=1, to=to, window=last(9), metric=metric, weights=weights)

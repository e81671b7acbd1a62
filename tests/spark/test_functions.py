"""Python functions of the user's in the tasks of Spark: never called without rows, their failures told to the user."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException, StreamingQueryException

import skyband as sb
from skyband.spark.run import run
from skyband.spark.testing import collect, frame, stream

WINDOW = sb.last("10 seconds", every="10 seconds")
ROWS = pa.table({"ts": [1, 2, 3, 11], "price": [2.0, 8.0, -4.0, 5.0], "s": ["a", "b", "a", "a"], "id": [1, 1, 2, 2]})


def mistaken():
    """A function that travels to the workers by value, since they cannot import this file."""

    def score_of(*_):
        return {}["mine"]

    return score_of


def test_never_called_without_rows(spark):
    """Six tasks for four rows, and a query beside another, whose rows are filtered where the function is called."""

    def share(columns):
        return columns["price"] / columns["price"].max()  # NumPy has no maximum of nothing

    def product(values):
        assert values.size
        return values.prod(axis=1)

    def gap(a, b):
        assert a["price"].size
        return np.abs(a["price"] - b["price"])

    queries = [
        sb.TopK(k=1, order_by=(lambda r: r["price"] / abs(r["price"]).max(), "DESC"), window=WINDOW, name="share"),
        sb.TopK(k=1, order_by=share, window=WINDOW, where="price > 100", name="none"),
        sb.TopKPairs(k=1, order_by=gap, window=WINDOW, select=("a.price", "b.price AS score_b"), name="pairs"),
        sb.TopKGroups(k=1, id="id", stream="s", streams=("a", "b"), value="abs(price)", aggregate=product,
                          window=WINDOW, name="product"),
    ]  # fmt: skip
    rows = run(frame(spark, ROWS).repartition(6), queries, shards=2).toArrow().to_pylist()
    assert {row["query"] for row in rows} == {"share", "pairs", "product"}
    assert [row["score"] for row in rows if row["query"] == "product" and row["window_end"] == 10] == [16.0]
    assert [row["score"] for row in rows if row["query"] == "pairs"] == [6.0]


@pytest.mark.parametrize(
    "query",
    [
        sb.TopK(k=1, order_by=mistaken(), window=WINDOW),
        pytest.param(sb.TopKPairs(k=1, order_by=mistaken(), window=WINDOW), marks=pytest.mark.slow),
        pytest.param(sb.TopKGroups(k=1, id="id", stream="s", streams=("a", "b"), aggregate=mistaken(),
                                       window=WINDOW), marks=pytest.mark.slow),
    ],
    ids=lambda query: query.family,
)  # fmt: skip
def test_what_a_function_raises_reaches_the_user(spark, query):
    for raised, answer in (
        (PythonException, lambda: run(frame(spark, ROWS), query).toArrow()),
        (StreamingQueryException, lambda: collect(run(stream(spark, [ROWS, ROWS]), query))),
    ):
        with pytest.raises(raised) as caught:
            answer()
        message = str(caught.value)
        assert "QueryError" in message and "mistaken.<locals>.score_of raised KeyError: 'mine' in line" in message
        assert 'test_functions.py": return {}["mine"]. It was given' in message  # the user's own line


def test_a_typo_is_refused_before_spark_runs(spark):
    df = frame(spark, ROWS)
    for query, words in (
        (sb.TopK(k=1, order_by="price", window=WINDOW, partition_by="ss"), "partition_by: there is no column 'ss'"),
        (sb.TopK(k=1, order_by="price", window=sb.last("1 hour", on="tss")), "event time.*'tss'.*did you mean 'ts'"),
        (sb.TopKPairs(k=1, order_by="a.price - b.price", window=WINDOW, same="idd"), "same: .*did you mean 'id'"),
    ):
        with pytest.raises(sb.QueryError, match=words):
            run(df, query)
    with pytest.raises(sb.QueryError, match="arrival: there is no column 'idd'; did you mean 'id'"):
        run(df, sb.TopK(k=1, order_by="price", window=WINDOW), arrival="idd")

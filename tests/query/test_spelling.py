"""What is taken as it stands: durations, lists in a text; and what a query, a monitor and a plan look like as text."""

import datetime
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import skyband as sb
from skyband import Nearest, TopK, TopKDominating, TopKGroups, TopKPairs, last
from skyband.query.windows import duration
from tests.support import streams

WINDOW = sb.last(10, every=2)
TABLE = streams.make("random")
MINUTE = 60_000_000

# Durations


@pytest.mark.parametrize(
    ("given", "microseconds"),
    [
        ("10 mins", 10 * MINUTE), ("10 min", 10 * MINUTE), ("10m", 10 * MINUTE), ("2 hrs", 120 * MINUTE),
        ("1 hr 30 secs", 60 * MINUTE + 30_000_000), ("1 SEC", 1_000_000), ("3 wks", 3 * 7 * 24 * 60 * MINUTE),
        ("5 msecs", 5_000), ("5 ms", 5_000), ("7 usec", 7), ("1.5 hours", 90 * MINUTE),
        (datetime.timedelta(minutes=10), 10 * MINUTE), (pd.Timedelta("10min"), 10 * MINUTE),
        (np.timedelta64(10, "m"), 10 * MINUTE), (np.timedelta64(1, "W"), 7 * 24 * 60 * MINUTE),
        (np.timedelta64(3, "D"), 3 * 24 * 60 * MINUTE), (np.timedelta64(5_000, "ns"), 5),
        (np.array([6], "m8[10s]")[0], MINUTE), (np.timedelta64(1, "us"), 1), (np.timedelta64(7 * 10**12, "as"), 7),
    ],
    ids=str,
)  # fmt: skip
def test_durations(given, microseconds):
    assert duration(given) == microseconds
    assert sb.last(given) == sb.last(f"{microseconds} microseconds")


@pytest.mark.parametrize("ten", [datetime.timedelta(seconds=10), np.timedelta64(10, "s"), "10 secs"], ids=str)
def test_durations_are_taken_everywhere(ten):
    window = sb.last(ten, every=ten, late=ten)
    assert window == sb.last("10 seconds", every="10 seconds", late="10 seconds")
    monitor = sb.Monitor(sb.TopK(k=3, order_by="x", window=sb.last("1 min")))
    monitor.push(TABLE)
    assert monitor.top(last=ten).equals(monitor.top(last="10 seconds"))
    assert monitor.top(last=ten).num_rows > 0


def test_numbers_of_numpy():
    query = sb.TopK(k=np.int32(2), order_by="x", window=sb.last(np.int64(10), every=np.int8(2)), error=np.float32(0))
    assert query == sb.TopK(k=2, order_by="x", window=WINDOW)
    monitor = sb.Monitor(query)
    monitor.push(TABLE)
    assert monitor.top(k=np.int16(1), last=np.int64(8)).equals(monitor.top(k=1, last=8))


# Lists


@pytest.mark.parametrize(
    ("select", "items"),
    [
        ("id, x AS v", ("id", "x AS v")),
        ("id", ("id",)),
        ("greatest(x, y) AS high, 'a, b' AS text,id", ("greatest(x, y) AS high", "'a, b' AS text", "id")),
        ('"odd, name", id', ('"odd, name"', "id")),
    ],
)
def test_a_list_of_items(select, items):
    listed, spelled = (sb.TopK(k=2, order_by="x", window=WINDOW, select=each) for each in (select, items))
    assert listed == spelled and listed.select == items
    table = TABLE.append_column("odd, name", TABLE["id"])
    assert sb.Monitor(listed).push(table).equals(sb.Monitor(spelled).push(table))


def test_a_list_of_names():
    """A column with a comma in its name stands in a tuple."""
    assert sb.TopK(k=2, order_by="x", window=WINDOW, partition_by="g, h").partition_by == ("g", "h")
    assert sb.TopK(k=2, order_by="x", window=WINDOW, partition_by=None).partition_by == ()
    pairs = sb.TopKPairs(k=1, order_by="a.x - b.x", window=WINDOW, same="g,h", different="x, y")
    assert (pairs.same, pairs.different) == (("g", "h"), ("x", "y"))
    table = TABLE.append_column("g, h", TABLE["y"])
    emitted = sb.Monitor(sb.TopK(k=2, order_by="x", window=WINDOW, partition_by=("g, h",))).push(table)
    assert "g, h" in emitted.column_names


# Text


def best(columns):
    return columns["x"]


QUERIES = {
    "TopK(k=10, order_by='price DESC', window=last('10 minutes', every='1 minute'), partition_by=('symbol',))":
        TopK(10, "price DESC", last("10 mins", every="60 secs"), partition_by="symbol", ties="newest", error=0),
    "TopK(k=1, order_by='x', window=last(40000), where='x > 0', select=('a', 'b'), ties='all', name='it')":
        TopK(k=1, order_by="x", window=last(40_000), where="x > 0", select="a, b", ties="all", name="it"),
    "TopK(k=1, order_by='x', window=last(9, on='seq', late=0))": TopK(1, "x", last(9, on="seq", late=0)),
    "TopK(k=1, order_by='x', window=last('1 day', on='day', late='1 hour'))":
        TopK(1, "x", last("24h", on="day", late="60 min")),
    "Nearest(k=2, to={'x': 0.5}, window=last(9), metric='manhattan')": Nearest(2, {"x": 0.5}, last(9), "manhattan"),
    "TopKPairs(k=1, order_by='a.x - b.x', window=last(5), same=('g',))": TopKPairs(1, "a.x - b.x", last(5), same="g"),
    "TopKDominating(k=1, dimensions={'x': 'min'}, window=last(5))": TopKDominating(1, {"x": "min"}, last(5)),
    "TopKGroups(k=1, id='g', window=last(5), stream='s', aggregate='max', occurrences='once')":
        TopKGroups(1, "g", last(5), "s", aggregate="max"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "query"), QUERIES.items(), ids=lambda value: str(value)[:30])
def test_queries_as_text(text, query):
    assert repr(query) == text
    assert eval(text) == query


def test_a_function_in_a_text():
    assert repr(TopK(1, (best, "DESC"), last(5))) == "TopK(k=1, order_by=(best, 'DESC'), window=last(5))"
    assert repr(TopK(1, best, last(5))) == "TopK(k=1, order_by=best, window=last(5))"


def test_a_monitor_as_text():
    query = TopK(k=1, order_by="x", window=WINDOW)
    monitor, both = sb.Monitor(query), sb.Monitor([query, query.but(k=2)])
    assert repr(monitor) == "Monitor(TopK(k=1, order_by='x', window=last(10, every=2)), seen=0, candidates=0)"
    both.push(TABLE)
    assert repr(both).startswith("Monitor([TopK(k=1, order_by='x', window=last(10, every=2)), TopK(k=2, ")
    assert repr(both).endswith(f"], seen={TABLE.num_rows}, candidates={both.stats.candidates})")


# Plans


def test_explain_takes_queries_and_monitors():
    one, two = (TopK(k=k, order_by="x", window=last(10)) for k in (1, 2))
    three = TopKDominating(k=3, dimensions={"x": "min"}, window=last(10), name="points", partition_by="g")
    alone, together = sb.explain(one), sb.explain([one, three, two])
    assert sb.explain(sb.Monitor(one)) == sb.explain([one]) == alone
    assert sb.explain(sb.Monitor([one, three, two])) == together
    assert alone.startswith("top 1 by x over the last 10 at every arrival\nalgorithm: rapf, because ")
    shared, points = together.split("\n\n")
    assert shared.startswith("q0: top 1 by x over the last 10 at every arrival\nq2: top 2 by x over the last 10")
    assert "algorithm: scase, because 2 queries share" in shared and shared.endswith("\nanswers: exact")
    assert points.startswith("points: top 3 dominating in x (min) over the last 10 at every arrival\nfor each g\n")


@pytest.mark.parametrize("given", ["SELECT 1", None, 5, [], TABLE, [TopK(k=1, order_by="x", window=WINDOW), "x"]],
                         ids=lambda value: str(value)[:20])  # fmt: skip
def test_explain_refuses_what_is_no_query(given):
    with pytest.raises(sb.QueryError, match="query"):
        sb.explain(given)


def test_spark_without_pyspark():
    program = """
import sys
sys.modules["pyspark"] = None  # as if it were not installed
import skyband as sb
assert sb.Monitor(sb.TopK(k=1, order_by="x", window=sb.last(2, every=1))).push({"x": [1]}).num_rows == 1
for touch in (lambda: sb.spark, lambda: __import__("skyband.spark.run")):
    try:
        touch()
    except ImportError as error:
        print(error)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    sentence = "skyband.spark needs PySpark, which is not installed: pip install 'skyband[spark]'"
    assert [line.startswith(sentence) for line in result.stdout.splitlines()] == [True, True]


def test_a_state_goes_on_where_the_query_is_spelled_otherwise():
    monitor = sb.Monitor(TopK(k=1, order_by="x", window=last("10 secs"), select=("id", "x"), partition_by=("g", "h")))
    monitor.push(TABLE.slice(0, 50))
    same = TopK(np.int64(1), "x", last(np.timedelta64(10, "s")), select="id, x", partition_by="g, h")
    restored = sb.Monitor.loads(monitor.dumps(), same)
    assert restored.push(TABLE.slice(50)).equals(monitor.push(TABLE.slice(50)))
    assert isinstance(restored.top(), pa.Table)

"""NULL, NaN and the missing values of pandas: no score, whether it is an expression or a function that is asked."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skyband as sb
from tests.support import oracle

pytestmark = pytest.mark.filterwarnings("ignore:divide by zero")
SIZE = 60
KINDS = {
    "float64": (np.nan, "float64"),
    "float32": (np.nan, "float32"),
    "Int64": (pd.NA, "Int64"),
    "Int8": (pd.NA, "Int8"),
    "UInt8": (pd.NA, "UInt8"),
    "Float64": (pd.NA, "Float64"),
    "objects and None": (None, object),
    "objects and NaN": (np.nan, object),
    "objects and NA": (pd.NA, object),
    "Arrow": (pd.NA, "int64[pyarrow]"),
    "category": (None, "category"),
}
SCORES = {
    "x": lambda c: c["x"],
    "x * 100 + y": lambda c: c["x"] * 100 + c["y"],
    "abs(x - y)": lambda c: abs(c["x"] - c["y"]),
    "x / (y + 9.5)": lambda c: c["x"] / (c["y"] + 9.5),
    "power(x, 2)": lambda c: c["x"] ** 2,
}


def frame(kind, seed=0):
    """Rows of which a fifth has no x, and a seventh no y."""
    rng, (missing, dtype) = np.random.default_rng(seed), KINDS[kind]
    x = [missing if rng.random() < 0.2 else int(v) for v in rng.integers(1, 127, SIZE)]
    y = [np.nan if rng.random() < 0.15 else float(v) for v in rng.integers(0, 9, SIZE)]
    return pd.DataFrame({"id": range(SIZE), "x": pd.Series(x, dtype=dtype), "y": y, "stream": ["a", "b"] * (SIZE // 2)})


def told(query, batch):
    monitor = sb.Monitor(query)
    tables = [monitor.push(batch[begin : begin + 7]) for begin in range(0, SIZE, 7)]
    return [row for table in [*tables, monitor.flush()] for row in oracle.rows(table)], monitor.stats.invalid


@pytest.mark.parametrize("window", [sb.last(9, every=4), sb.last(9)], ids=str)
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("kind", KINDS)
def test_expressions_and_functions_agree(kind, score, window):
    """Also where the numbers are so narrow, in the frame, that NumPy's own arithmetic would overflow or round."""
    rows, missing = frame(kind), ["x", "y"] if "y" in score else ["x"]
    expected = told(sb.TopK(3, f"{score} DESC", window, select=("id",)), rows)
    assert told(sb.TopK(3, (SCORES[score], "DESC"), window, select=("id",)), rows) == expected
    assert expected[1] == rows[missing].isna().any(axis=1).sum() > 0


@pytest.mark.parametrize("window", [sb.last(9, every=4), sb.last(9)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_pairs(kind, window):
    """A row that lacks a number which the score uses has no place in the window."""
    rows = frame(kind)
    text = sb.TopKPairs(3, "abs(a.x - b.x) + a.y + b.y", window, select=("a.id", "b.id"))
    function = text.but(order_by=lambda a, b: abs(a["x"] - b["x"]) + a["y"] + b["y"])
    assert told(function, rows) == told(text, rows)
    assert told(function, rows)[1] == rows[["x", "y"]].isna().any(axis=1).sum()
    one = text.but(order_by=lambda a, b: abs(a["x"] - b["x"]))
    assert told(one, rows)[1] == rows["x"].isna().sum()


@pytest.mark.parametrize("kind", KINDS)
def test_points(kind):
    rows = frame(kind)
    query = sb.TopKDominating(3, {"x": "max", "y": "min"}, sb.last(9, every=4), select=("id",))
    whole = rows.dropna(subset=["x", "y"])
    monitor = sb.Monitor(query)
    assert told(query, rows) == (oracle.rows(monitor.push(whole)), len(rows) - len(whole))


@pytest.mark.parametrize("kind", KINDS)
def test_assembled_objects(kind):
    rows = frame(kind).assign(id=lambda f: f["id"] % 5)
    query = sb.TopKGroups(3, "id", sb.last(9, every=4), stream="stream", streams=("a", "b"), value="x")
    function = query.but(aggregate=lambda values: values.sum(axis=1))
    invalid = rows["x"].isna().sum()
    assert told(function, rows) == told(query, rows) and told(query, rows)[1] == invalid
    monitor = sb.Monitor(query)
    assert told(query, rows)[0] == oracle.rows(monitor.push(rows.dropna(subset="x")))


def test_what_functions_see():
    columns = {
        "whole": pa.array([1, None], pa.int8()),
        "full": pa.array([1, 2], pa.int8()),
        "real": pa.array([1.5, None], pa.float32()),
        "exact": pa.array(["1.5", None]).cast(pa.decimal128(3, 1)),
        "text": pa.array(["a", None]),
        "flag": pa.array([True, None]),
        "time": pa.array([1, None], pa.timestamp("us")),
    }
    seen = {}

    def score(columns):
        seen.update(columns)
        return columns["whole"] + columns["real"]

    monitor = sb.Monitor(sb.TopK(2, score, sb.last(2)))
    monitor.push(columns)
    assert monitor.stats.invalid == 1
    types = {name: array.dtype.str[1:] for name, array in seen.items()}
    assert types == {
        "whole": "f8",
        "full": "i8",
        "real": "f8",
        "exact": "f8",
        "text": "O",
        "flag": "O",
        "time": "M8[us]",
    }
    assert np.isnan(seen["exact"][1]) and np.isnat(seen["time"][1])
    assert seen["text"][1] is None and seen["flag"][1] is None


def test_what_makes_a_score_of_nothing():
    """As coalesce does in SQL; and dividing by zero is NumPy's infinity in a function, which is an ordinary score."""
    batch = {"x": pa.array([1.0, None, 0.0]), "y": [1.0, 1.0, 0.0]}
    for order_by, invalid in (("coalesce(x, 0)", 0), (lambda c: np.nan_to_num(c["x"]), 0),
                              (lambda c: np.where(c["x"] > 0, 1, 0), 0), ("1 / y", 1), (lambda c: 1 / c["y"], 0),
                              (lambda c: c["x"] / c["y"], 2)):  # fmt: skip
        monitor = sb.Monitor(sb.TopK(1, order_by, sb.last(3)))
        with np.errstate(all="ignore"):
            monitor.push(batch)
        assert monitor.stats.invalid == invalid


VALUES = [[1, pd.NA, 3], np.array([1, pd.NA, 3], object), [1.0, None, 3.0], pd.Series([1, None, 3], dtype="Int64"),
          np.array([1, np.nan, 3])]  # fmt: skip


@pytest.mark.parametrize("values", VALUES, ids=repr)
def test_missing_values_in_a_dict_of_arrays(values):
    monitor = sb.Monitor(sb.TopK(3, "x", sb.last(3, every=2)))
    assert monitor.push({"x": values})["score"].to_pylist() == [1.0, 3.0]
    assert monitor.stats.invalid == 1


def test_moments_that_are_missing():
    frame = pd.DataFrame({"ts": pd.to_datetime(["2024-01-01", None, "2024-01-03"]), "x": [1.0, 2.0, 3.0]})
    for batch in (frame, {"ts": [*frame["ts"]], "x": [1.0, 2.0, 3.0]}):
        monitor = sb.Monitor(sb.TopK(3, "x", sb.last("1 day", every="1 day")))
        monitor.push(batch)
        assert (monitor.stats.invalid, monitor.stats.late) == (1, 0)


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame])
def test_a_first_batch_of_nothing_for_a_function(frame):
    """Nothing tells the type of the column yet: the function sees NaN, as the expression sees NULL."""
    for score in ("-x", lambda row: -row["x"]):
        monitor = sb.Monitor(sb.TopK(k=1, order_by=score, window=sb.last(10, every=1)))
        monitor.push(frame({"x": [None, None]}))
        assert (monitor.stats.seen, monitor.stats.invalid) == (2, 2)
        assert monitor.push(frame({"x": [3.0, 2.0]}))["score"].to_pylist() == [-3.0, -3.0]

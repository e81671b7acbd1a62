"""Python functions of the user's: when they are called, and how their failures are told."""

import traceback

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from tests.support import streams

WINDOW = sb.last(4, every=2)
ROWS = {"price": [2.0, 8.0, 4.0], "volume": [1, 2, 3]}
EMPTY = pa.schema([("price", pa.float64()), ("volume", pa.int64())]).empty_table()
STREAMS = dict(stream="s", streams=("a", "b"), window=sb.last(6, every=1))


def share(columns):
    return columns["price"] / columns["price"].max()  # NumPy has no maximum of nothing


def gap(a, b):
    assert a["price"].size == b["price"].size > 0, "called with no pairs"
    return np.abs(a["price"] - b["price"])


def total(values):
    assert values.shape[0] > 0, "called with no objects"
    return values.sum(axis=1)


QUERIES = {
    "objects": sb.TopK(k=1, order_by=(share, "DESC"), window=WINDOW),
    "pairs": sb.TopKPairs(k=1, order_by=gap, window=WINDOW, select=("a.volume", "b.volume")),
    "groups": sb.TopKGroups(k=1, id="volume", value="price", aggregate=total, **STREAMS),
}


def with_streams(rows):
    return {**rows, "s": ["a"] * len(rows["price"])}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("where", [None, "FALSE"])
def test_never_called_without_rows(query, where):
    if query.family == "pairs" and where:
        where = "a.price < 0"
    monitor = sb.Monitor(query.but(where=where))
    empty = EMPTY.append_column("s", pa.array([], pa.string()))
    assert [monitor.push(empty).num_rows for _ in range(2)] == [0, 0]
    assert (monitor.push(with_streams(ROWS)).num_rows > 0) == (where is None)
    assert monitor.push(empty).num_rows == 0
    assert monitor.flush().num_rows == 0
    assert (monitor.top().num_rows > 0) == (where is None)


def test_a_function_of_pairs_sees_only_those_that_hold():
    def strict(a, b):
        assert (a["price"] < b["price"]).all()
        return gap(a, b)

    answers = []
    for order_by in (strict, "abs(a.price - b.price)"):
        query = sb.TopKPairs(k=2, order_by=order_by, window=sb.last(4, every=1), where="a.price < b.price")
        answers.append(sb.Monitor(query).push({"price": [3.0, 9.0, 4.0, 4.0, 1.0, 7.0], "id": range(6)}))
    assert answers[0].equals(answers[1]) and answers[0].num_rows > 6


def test_a_sequence_shows_a_function_only_the_rows_that_pass():
    def root(columns):
        assert columns["price"].size and (columns["price"] > 0).all()
        return np.sqrt(columns["price"])

    monitor = sb.Monitor(sb.TopK(k=1, order_by=root, window=sb.last(2, every=2, on="seq"), where="price > 0"))
    assert monitor.push({"price": [-1.0, -4.0], "seq": [0, 1]}).num_rows == 0
    assert monitor.push({"price": [-1.0, 4.0, 9.0], "seq": [4, 3, 2]})["score"].to_pylist() == [2.0]
    assert (monitor.stats.seen, monitor.stats.invalid) == (5, 0)


def test_a_function_of_a_sequence_sees_each_row_once():
    """Where rows wait for their number, they are not scored anew when it has come."""
    seen = []

    def noted(columns):
        seen.extend(columns["price"].tolist())
        return columns["price"]

    monitor = sb.Monitor(sb.TopK(k=1, order_by=noted, window=sb.last(2, every=2, on="seq")))
    monitor.push({"price": [0.0], "seq": [0]})  # the first batch is tried out before it is taken in
    del seen[:]
    monitor.push({"price": [3.0, 1.0], "seq": [3, 1]})
    monitor.push({"price": [2.0], "seq": [2]})
    assert seen == [3.0, 1.0, 2.0]


def failing(kind):
    def score_of(columns, *_):
        if hasattr(columns, "keys"):
            assert columns["volume"].size == columns["price"].size
        if kind == "KeyError":
            return {}["mine"]
        if kind == "ZeroDivisionError":
            return 1 / 0
        if kind == "ValueError":
            return np.zeros(2) + np.zeros(3)
        raise LookupError

    return score_of


@pytest.mark.parametrize("kind", ["KeyError", "ZeroDivisionError", "ValueError", "LookupError"])
@pytest.mark.parametrize("family", QUERIES)
def test_what_a_function_raises_is_told_as_ours(family, kind):
    field, given = {
        "objects": ("order_by", r"3 rows, and had read volume \(int64\), price \(float64\)"),
        "pairs": ("order_by", r"1 pair, and had read volume \(int64\), price \(float64\)"),
        "groups": ("aggregate", "an array with a row for each of 3 objects and 2 columns, the streams"),
    }[family]
    monitor = sb.Monitor(QUERIES[family].but(**{field: failing(kind)}))
    place = r"in line \d+ of \".*test_functions.py\": (return|raise) .*"
    words = rf"^{field}=failing\.<locals>\.score_of raised {kind}.* {place}\. It was given {given}$"
    with pytest.raises(sb.QueryError, match=words) as caught:
        monitor.push(with_streams(ROWS))
    assert type(caught.value.__cause__).__name__ == kind
    assert "in score_of" in "".join(traceback.format_exception(caught.value))  # the user's own line is shown
    assert monitor.stats.seen == 0


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.zeros(2), r"a number for each of the 3 rows; it returned an array of shape \(2,\)"),
        (np.float64(5), "an array of numbers, one for each of the 3 rows; it returned float64"),
        (None, "one for each of the 3 rows; it returned NoneType"),
        ([2**70] * 3, "an array of numbers"),
        (["a", "b", "c"], "is of type string; a score must be a number"),
    ],
)
def test_what_a_function_of_streams_returns(result, message):
    query = QUERIES["groups"].but(aggregate=lambda values: result)
    with pytest.raises(sb.QueryError, match=rf"aggregate=.*<lambda> .*{message}"):
        sb.Monitor(query).push(with_streams(ROWS))


def test_a_column_that_is_not_there_is_missed_with_the_first_rows():
    monitor = sb.Monitor(sb.TopK(k=1, order_by=lambda r: r["prise"], window=WINDOW))
    monitor.push(EMPTY)
    before = monitor.dumps()
    with pytest.raises(sb.QueryError, match=r"order_by=.*there is no column 'prise'; did you mean 'price'"):
        monitor.push(ROWS)
    assert monitor.dumps() == before


def test_columns_are_asked_for_by_name():
    with pytest.raises(sb.QueryError, match=r"columns are asked for by name, not by 0\. The columns are price, volume"):
        sb.Monitor(sb.TopK(k=1, order_by=lambda r: r[0], window=WINDOW)).push(ROWS)


@pytest.mark.parametrize("family", QUERIES)
def test_a_function_that_fails_half_way_leaves_everything_as_it_was(family):
    """Also beside another query, which has taken the batch in by then."""
    broken = [False]

    def sometimes(original):
        def score_of(*given):
            shown = given if family == "groups" else [columns["price"] for columns in given]
            if broken[0] and np.max(shown) > 100:
                raise ZeroDivisionError
            return original(*given)

        return score_of

    field = "aggregate" if family == "groups" else "order_by"
    original = {"objects": share, "pairs": gap, "groups": total}[family]
    queries = [sb.TopK(k=1, order_by="price DESC", window=sb.last(3), select="volume"),
               QUERIES[family].but(**{field: sometimes(original)})]  # fmt: skip
    monitor, fresh = sb.Monitor(queries), sb.Monitor(queries)
    good = [with_streams({"price": [3.0 + i, 8.0 - i, 5.0], "volume": [i, i + 1, i + 2]}) for i in range(5)]
    bad = with_streams({"price": [1.0, 2.0, 3.0, 500.0], "volume": [1, 2, 3, 4]})
    for batch in good:
        broken[0] = True
        before = monitor.dumps()
        with pytest.raises(sb.QueryError, match="ZeroDivisionError"):
            monitor.push(bad)
        assert monitor.dumps() == before
        broken[0] = False
        assert monitor.push(batch).equals(fresh.push(batch))
    assert monitor.flush().equals(fresh.flush())


@pytest.mark.filterwarnings("ignore::skyband.DataWarning")  # most rows are broken
def test_scores_by_function_are_those_of_the_expression():
    table = streams.make("broken")
    answers = []
    for order_by in ("abs(x - y)", lambda r: np.abs(r["x"] - r["y"])):
        monitor = sb.Monitor(sb.TopK(k=3, order_by=order_by, window=sb.last(9, every=3), where="y <> 1"))
        answers.append(pa.concat_tables([monitor.push(batch) for batch in streams.cut(table)]))
    assert answers[0].equals(answers[1])

"""The columns of a stream: any kind of frame goes in, and types are settled by values, widen, or are refused."""

import datetime
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skyband as sb
from tests.support import oracle, streams
from tests.support.cases import ONE_OF_EACH, pair, run

TABLE = streams.make("jittered_tied").drop_columns("h")
WINDOW = sb.last(4, every=2)


class Stream:
    """Nothing but the Arrow PyCapsule interface."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Array:
    def __init__(self, table):
        self.batch = table.combine_chunks().to_batches()[0]

    def __arrow_c_array__(self, requested_schema=None):
        return self.batch.__arrow_c_array__(requested_schema)


def as_views(table):
    position = table.column_names.index("g")
    return table.set_column(position, "g", table["g"].cast(pa.string_view()))


KINDS = {
    "reader": pa.Table.to_reader,
    "stream": Stream,
    "array": Array,
    "polars": pl.from_arrow,
    "polars with categories": lambda table: pl.from_arrow(table).with_columns(pl.col("g").cast(pl.Categorical)),
    "polars series": lambda table: {name: pl.from_arrow(table[name]) for name in table.column_names},
    "duckdb": duckdb.from_arrow,
    "pandas of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas with categories": lambda table: table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get).astype(
        {"g": "category"}
    ),
    "views": as_views,
    "large": lambda table: table.set_column(4, "g", table["g"].cast(pa.large_string())),
    "no nulls declared": lambda table: table.cast(
        pa.schema([pa.field(f.name, f.type, nullable=f.name in "yg", metadata={"a": "b"}) for f in table.schema])
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_kinds_of_frame(kind, window):
    """One after the other, and each after a batch of Arrow's own: how values are written is no part of their type."""
    query, _ = pair(3, window, partition_by=("g",))
    batches = [b for b in streams.cut(TABLE) if b.num_rows]
    expected = run(sb.Monitor(query), batches)
    assert run(sb.Monitor(query), [KINDS[kind](b) for b in batches]) == expected
    assert run(sb.Monitor(query), [KINDS[kind](b) if i % 2 else b for i, b in enumerate(batches)]) == expected


RICH = {
    "text": pl.Series(["a", None, "ccc"] * 10),
    "bytes": pl.Series([b"a", None, b"ccc"] * 10),
    "list": pl.Series([["x"], None, []] * 10),
    "deep": pl.Series([[{"p": "q"}], None, []] * 10),
    "struct": pl.Series([{"p": "q"}, None, {"p": None}] * 10),
    "array": pl.Series([[1, 2]] * 30, dtype=pl.Array(pl.Int64, 2)),
    "category": pl.Series(["a", None, "b"] * 10, dtype=pl.Categorical),
    "enum": pl.Series(["a", None, "b"] * 10, dtype=pl.Enum(["a", "b"])),
    "decimal": pl.Series([Decimal("1.25"), None, Decimal("-3")] * 10),
    "flag": pl.Series([True, None, False] * 10),
    "day": pl.Series([datetime.date(2024, 1, 1), None, None] * 10),
    "time": pl.Series([datetime.time(1, 2), None, None] * 10),
    "moment": pl.Series([datetime.datetime(2024, 1, 1), None, None] * 10),
    "length": pl.Series([datetime.timedelta(seconds=3), None, None] * 10),
    "nothing": pl.Series([None] * 30),
}


@pytest.mark.parametrize("window", [sb.last(7, every=3), sb.last(7)], ids=str)
@pytest.mark.parametrize("name", RICH)
def test_columns_that_are_only_carried_along(name, window):
    frame = pl.DataFrame({"id": range(30), "x": np.random.default_rng(0).random(30), name: RICH[name]})
    rows, monitor, count = frame.to_dicts(), sb.Monitor(sb.TopK(k=3, order_by="x", window=window)), 0
    for begin in range(0, 30, 4):
        monitor = sb.Monitor.loads(monitor.dumps())
        for row in monitor.push(frame[begin : begin + 4]).to_pylist() + monitor.top().to_pylist():
            assert row[name] == rows[row["id"]][name]
            count += 1
    assert count


def test_lists_of_categories_are_refused_by_name():
    tags = pl.Series([["a"], None, []], dtype=pl.List(pl.Categorical))
    with pytest.raises(sb.QueryError, match=r"column 'tags' is of type .*dictionary.*leave the column out"):
        sb.Monitor(sb.TopK(1, "x", WINDOW)).push(pl.DataFrame({"x": [1, 2, 3], "tags": tags}))


def test_dictionaries_that_differ_from_batch_to_batch():
    """pandas writes categories with indices of eight bits; of all batches together there may be more."""
    query = sb.TopK(k=300, order_by="x", window=sb.last(300, every=300), select=("tag",), partition_by=())
    monitor = sb.Monitor(query)
    for begin in (0, 100, 200):
        tags = [f"tag {i}" for i in range(begin, begin + 100)]
        answer = monitor.push(pd.DataFrame({"x": range(begin, begin + 100), "tag": pd.Categorical(tags)}))
    assert answer["tag"].to_pylist() == [f"tag {i}" for i in range(300)]


def test_run_ends():
    column = pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"])
    answer = sb.Monitor(sb.TopK(3, "x", sb.last(3, every=3))).push({"x": [1, 2, 3], "g": column})
    assert answer["g"].to_pylist() == ["a", "a", "b"]


@pytest.mark.parametrize(
    "frame", [pd.Series([1.0]), pl.Series([1.0]), object(), "x", 3, [1]], ids=lambda v: type(v).__name__
)
def test_what_is_no_frame(frame):
    with pytest.raises(sb.QueryError, match="table"):
        sb.Monitor(sb.TopK(1, "x", WINDOW)).push(frame)


# Types are settled by the first value that is not NULL

NOTHING = {
    "no rows": lambda table: table.slice(0, 0),
    "no rows of no type": lambda table: {name: [] for name in table.column_names},
    "NULLs of no type": lambda table: {name: [None] * 3 for name in table.column_names},
    "NULLs of a type": lambda table: pa.table({n: pa.nulls(3, table.schema.field(n).type) for n in table.column_names}),
    "NULLs of pandas": lambda table: pd.DataFrame({name: [None] * 3 for name in table.column_names}),
    "an empty frame": lambda table: pd.DataFrame({name: [] for name in table.column_names}),
}
WINDOWS = (*ONE_OF_EACH, "sequence")
QUERIES = {
    "objects": lambda window: sb.TopK(3, "x DESC", window, partition_by="g", where="y IS NULL OR y > -9"),
    "pairs": lambda window: sb.TopKPairs(3, "abs(a.x - b.x)", window, different="g", where="a.x <> b.x"),
    "dominating": lambda window: sb.TopKDominating(3, {"x": "min", "y": "max"}, window, partition_by="g"),
    "groups": lambda window: sb.TopKGroups(3, "g", window, value="x", aggregate="sum"),
}


def batches_and(family, window):
    """A query, and batches whose columns are all looked at."""
    table = streams.numbered(TABLE, ("g",) if family != "pairs" and family != "groups" else ())
    last = sb.last(7, every=3, on="seq") if window == "sequence" else pair(1, window)[0].window
    return QUERIES[family](last), [b for b in streams.cut(table) if b.num_rows]


def answers(monitor, batches, restored=False):
    """All rows that come out, and what stands at the end; saved and loaded between batches if wanted."""
    tables = []
    for batch in batches:
        tables.append(monitor.push(batch))
        monitor.check()
        monitor = sb.Monitor.loads(monitor.dumps()) if restored else monitor
    tables += [monitor.flush(), monitor.top()]
    return [oracle.rows(table) for table in tables]


@pytest.mark.filterwarnings("ignore::skyband.DataWarning")
@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("nothing", NOTHING)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("family", QUERIES)
def test_a_first_batch_of_nothing_settles_nothing(family, window, nothing, restored):
    query, batches = batches_and(family, window)
    first = NOTHING[nothing](batches[0])
    got = answers(sb.Monitor(query), [first, *batches], restored)
    assert got[0] == [] and got[1:] == answers(sb.Monitor(query), batches)
    assert answers(sb.Monitor(query), [batches[0], first, *batches[1:]], restored)[2:] == got[2:]


def test_a_column_of_nothing_takes_the_type_that_comes():
    """Whatever the type in which NULLs came: pandas reads an empty column of a CSV file as floats."""
    monitor = sb.Monitor(sb.TopK(9, "x", sb.last(9, every=1)))
    monitor.push(pd.DataFrame({"x": [1.0, 2.0], "tag": [np.nan, np.nan]}))
    assert monitor.push({"x": [3.0], "tag": ["a"]}).select(["x", "tag"]).to_pylist() == [
        {"x": 1.0, "tag": None}, {"x": 2.0, "tag": None}, {"x": 3.0, "tag": "a"}]  # fmt: skip
    assert monitor.push(pd.DataFrame({"x": [4.0], "tag": [np.nan]}))["tag"].to_pylist() == [None, None, "a", None]
    with pytest.raises(sb.QueryError, match="column 'tag' of a batch is of type int64; it was of type string before"):
        monitor.push({"x": [5.0], "tag": [1]})


# Numbers widen


def integers(batch, names):
    """The batch with some columns as whole numbers."""
    for name in names:
        batch = batch.set_column(batch.column_names.index(name), name, batch[name].cast(pa.int64()))
    return batch


def doubles(batch, names):
    for name in names:
        batch = batch.set_column(batch.column_names.index(name), name, batch[name].cast(pa.float64()))
    return batch


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("family", QUERIES)
def test_integers_widen_to_floats(family, window, restored):
    query, batches = batches_and(family, window)
    names = ("x", "y", "id")
    mixed = [(integers if i < 3 or i == 5 else doubles)(b, names) for i, b in enumerate(batches)]
    if family == "pairs":  # in its condition an integer counts to the last digit
        query = query.but(where=None)
    assert answers(sb.Monitor(query), mixed, restored) == answers(
        sb.Monitor(query), [doubles(b, names) for b in batches]
    )


@pytest.mark.parametrize("restored", [False, True])
def test_keys_and_event_times_widen(restored):
    query = sb.TopK(2, "x", sb.last("4 seconds", every="1 second"), partition_by="key")
    rows = [{"ts": [0, 1, 2], "key": [1, 2, None], "x": [3, 2, 1]}, {"ts": [2.5, 3.0], "key": [2.0, 2.5], "x": [1, 1]},
            {"ts": [4], "key": [1], "x": [0]}]  # fmt: skip
    floats = [{name: np.array(values, float) if None not in values else pa.array(values, pa.float64())
               for name, values in batch.items()} for batch in rows]  # fmt: skip
    assert answers(sb.Monitor(query), rows, restored) == answers(sb.Monitor(query), floats)


def column_types(before, now):
    """The type of a column after a batch of one type and a batch of another, and its values."""
    monitor = sb.Monitor(sb.TopK(9, "x", sb.last(9, every=1), select=("c",)))
    monitor.push({"x": pa.array(range(len(before))), "c": before})
    answer = monitor.push({"x": pa.array(range(9, 9 + len(now))), "c": now})
    return answer.schema.field("c").type, answer["c"].to_pylist()


@pytest.mark.parametrize(
    ("before", "now", "after"),
    [
        (pa.array([1], pa.int8()), pa.array([2**40]), pa.int64()),
        (pa.array([2**40]), pa.array([1], pa.int8()), pa.int64()),
        (pa.array([1], pa.uint32()), pa.array([-1], pa.int32()), pa.int64()),
        (pa.array([1]), pa.array([0.5]), pa.float64()),
        (pa.array([0.5]), pa.array([1]), pa.float64()),
        (pa.array([1]), pa.array([0.5], pa.float32()), pa.float64()),
        (pa.array([0.5], pa.float32()), pa.array([0.1]), pa.float64()),
        (pa.array([Decimal("1.5")]), pa.array([Decimal("12345.25")]), pa.decimal128(7, 2)),
        (pa.array(["a"]).dictionary_encode(), pa.array(["b"]), pa.string()),
        (pa.array(["a"]), pa.array(["b"], pa.string_view()), pa.string()),
        (pa.array(["a"]), pa.array(["b"], pa.large_string()), pa.large_string()),
        (pa.array([1], pa.timestamp("s")), pa.array([1500], pa.timestamp("ms")), pa.timestamp("ms")),
        (
            pa.array([1], pa.timestamp("s", "UTC")),
            pa.array([2], pa.timestamp("s", "Asia/Tokyo")),
            pa.timestamp("s", "UTC"),
        ),
        (pa.array([[]], pa.list_(pa.null())), pa.array([[1]]), pa.list_(pa.int64())),
        (pa.array([{"a": None}]), pa.array([{"a": "b"}]), pa.struct({"a": pa.string()})),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_what_widens(before, now, after):
    kind, values = column_types(before, now)
    assert kind == after
    assert [row["c"] for row in pa.table({"c": values}).to_pylist()] == values
    assert values == before.to_pylist() + (
        now.cast(after).to_pylist() if pa.types.is_timestamp(after) else now.to_pylist()
    )


# Every other change is refused, by name, and changes nothing

MOMENT = pa.array([1], pa.timestamp("us"))
CHANGES = {
    "text after integers": (pa.array([7]), pa.array(["7"]), "int64", "string"),
    "integers after text": (pa.array(["7"]), pa.array([7]), "string", "int64"),
    "text after floats": (pa.array([7.5]), pa.array(["7.5"]), "double", "string"),
    "text after times": (MOMENT, pa.array(["2024-01-01"]), r"timestamp\[us\]", "string"),
    "a zone after none": (
        MOMENT,
        MOMENT.cast(pa.timestamp("us", "UTC")),
        r"timestamp\[us\]",
        r"timestamp\[us, tz=UTC\]",
    ),
    "no zone after one": (
        MOMENT.cast(pa.timestamp("us", "UTC")),
        MOMENT,
        r"timestamp\[us, tz=UTC\]",
        r"timestamp\[us\]",
    ),
    "days after times": (MOMENT, pa.array([datetime.date(2024, 1, 1)]), r"timestamp\[us\]", r"date32\[day\]"),
    "integers after times": (MOMENT, pa.array([1]), r"timestamp\[us\]", "int64"),
    "truths after integers": (pa.array([1]), pa.array([True]), "int64", "bool"),
    "floats after decimals": (pa.array([Decimal("1.5")]), pa.array([1.5]), r"decimal128\(2, 1\)", "double"),
    "bytes after text": (pa.array(["a"]), pa.array([b"a"]), "string", "binary"),
    "integers that a float rounds": (pa.array([0.5]), pa.array([2**53 + 1]), "double", "int64"),
    "floats after such integers": (pa.array([2**53 + 1]), pa.array([0.5]), "int64", "double"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("several", [False, True])
def test_what_is_refused(change, several):
    before, now, was, is_now = CHANGES[change]
    query = sb.TopK(3, "x", sb.last(9, every=1))
    monitor = sb.Monitor([query, query.but(where="x > 0", name="other")] if several else query)
    monitor.push({"x": [1.0], "c": before})
    state = monitor.dumps()
    with pytest.raises(sb.QueryError, match=f"column 'c' of a batch is of type {is_now}; it was of type {was} before"):
        monitor.push({"x": [2.0], "c": now})
    assert monitor.dumps() == state
    assert monitor.push({"x": [2.0], "c": before}).num_rows


@pytest.mark.parametrize("every", ["1 second", None])
def test_event_times_with_a_zone_and_without_one_are_not_mixed(every):
    naive = [datetime.datetime(2024, 1, 1, 12), datetime.datetime(2024, 1, 1, 13)]
    zoned = [moment.replace(tzinfo=datetime.UTC) for moment in naive]
    for first, second in ((naive, zoned), (zoned, naive)):
        monitor = sb.Monitor(sb.TopK(1, "x", sb.last("1 hour", every=every)))
        monitor.push({"ts": first[:1], "x": [1.0]})
        with pytest.raises(sb.QueryError, match=r"column 'ts'.*timestamp.*timestamp.*with a zone and without one"):
            monitor.push({"ts": second[1:], "x": [1.0]})


def test_times_without_a_zone_are_those_of_utc():
    query = sb.TopK(1, "x", sb.last("1 day", every="1 day"))
    assert "times without a zone are UTC" in sb.explain(query)
    assert "UTC" not in sb.explain(query.but(window=WINDOW))
    moments = pd.DatetimeIndex(["2024-01-01 23:30", "2024-01-02 00:30", "2024-01-03 12:00"])
    ends = {}
    for zone in (None, "UTC", "Asia/Tokyo"):
        frame = pd.DataFrame(
            {"ts": moments if zone is None else moments.tz_localize("UTC").tz_convert(zone), "x": [3, 2, 1]}
        )
        answer = sb.Monitor(query).push(frame)
        ends[zone] = answer["window_end"].cast(pa.timestamp("us", "UTC")).to_pylist()
    assert ends[None] == ends["UTC"] == ends["Asia/Tokyo"] != []


def test_a_pair_that_would_have_to_be_measured_anew():
    monitor = sb.Monitor(query := sb.TopKPairs(1, "abs(a.x - b.x)", sb.last(9), where="a.id < b.id"))
    monitor.push({"x": [1.0, 2.0], "id": [1, 2]})
    state = monitor.dumps()
    with pytest.raises(sb.QueryError, match=r"column 'id'.*double.*int64.*schema="):
        monitor.push({"x": [1.0], "id": [2.5]})
    assert monitor.dumps() == state
    typed = sb.Monitor(query, schema={"id": "float64"})
    typed.push({"x": [1.0, 2.0], "id": [1, 2]})
    assert typed.push({"x": [1.5], "id": [2.5]}).num_rows


# Types that are given


GIVEN = [pa.schema({"x": pa.float64(), "c": pa.string()}), {"c": "string"}, {"c": pa.string()},
         {"c": pa.dictionary(pa.int8(), pa.string())}]  # fmt: skip


@pytest.mark.parametrize("schema", GIVEN, ids=str)
@pytest.mark.parametrize("restored", [False, True])
def test_types_that_are_given_never_change(schema, restored):
    monitor = sb.Monitor(sb.TopK(3, "x", sb.last(9, every=1)), schema=schema)
    monitor = sb.Monitor.loads(monitor.dumps()) if restored else monitor
    assert monitor.push({"x": [1.0], "c": [None]}).schema.field("c").type == pa.string()
    monitor = sb.Monitor.loads(monitor.dumps()) if restored else monitor
    state = monitor.dumps()
    with pytest.raises(sb.QueryError, match="column 'c' of a batch is of type int64; schema= gives it string"):
        monitor.push({"x": [2.0], "c": [7]})
    assert monitor.dumps() == state
    assert monitor.push(pd.DataFrame({"x": [2.0], "c": ["7"]}))["c"].to_pylist() == [None, "7"]


def test_given_integers_take_floats_that_are_whole():
    """As pandas writes integers of which some are missing."""
    monitor = sb.Monitor(sb.TopK(3, "x", sb.last(9, every=1), select=("c",)), schema={"c": "int64"})
    assert monitor.push(pd.DataFrame({"x": [1.0, 2.0], "c": [7, None]}))["c"].to_pylist() == [7, 7, None]
    with pytest.raises(sb.QueryError, match=r"column 'c' of a batch is of type double; schema= gives it int64.*1\.5"):
        monitor.push({"x": [1.0], "c": [1.5]})


@pytest.mark.parametrize(
    ("schema", "words"),
    [(["x"], "schema="), ({"x": "number"}, "'x' is given 'number'"), ({"x": float}, "'x'.*no Arrow type"),
     (5, "schema=5"), (pa.schema([("x", pa.int64()), ("x", pa.int64())]), "occurs twice")],
    ids=str,
)  # fmt: skip
def test_bad_schemas(schema, words):
    with pytest.raises(sb.QueryError, match=words):
        sb.Monitor(sb.TopK(1, "x", WINDOW), schema=schema)


def test_a_column_that_is_given_and_does_not_come():
    monitor = sb.Monitor(sb.TopK(1, "x", WINDOW), schema={"x": "int64", "load": "int64"})
    with pytest.raises(sb.QueryError, match="no column 'load', which schema= names"):
        monitor.push({"x": [1]})


def test_columns_that_come_later_are_left_out():
    monitor = sb.Monitor(sb.TopK(1, "x", sb.last(1, every=1)))
    monitor.push({"x": [1]})
    assert monitor.push({"new": ["a"], "x": [2]}).column_names == ["window_start", "window_end", "rank", "score", "x"]


def test_truths_are_no_scores():
    with pytest.raises(sb.QueryError, match=r"is of type bool; a score must be a number; .*CAST\(\.\.\. AS INT\)"):
        sb.Monitor(sb.TopK(1, "x", WINDOW)).push({"x": [True, False]})
    answer = sb.Monitor(sb.TopK(1, "CAST(x AS INT) DESC", WINDOW)).push({"x": [False, True]})
    assert answer["score"].to_pylist() == [1.0]


@pytest.mark.parametrize("kind", [dict, pd.DataFrame])
def test_times_of_one_batch_are_not_mixed_either(kind):
    east = datetime.timezone(datetime.timedelta(hours=5))
    moments = [datetime.datetime(2024, 1, 1, 10), None, datetime.datetime(2024, 1, 1, 10, tzinfo=east)]
    monitor = sb.Monitor(sb.TopK(9, "x DESC", sb.last("1 hour", every="1 hour")))
    with pytest.raises(sb.QueryError, match=r"column 'ts' of a batch has times with a zone and without one"):
        monitor.push(kind({"ts": moments, "x": [1.0, 2.0, 3.0]}))
    assert monitor.stats.seen == 0


def test_values_of_several_types_name_their_column():
    with pytest.raises(sb.QueryError, match=r"column 'x' of a batch cannot be read: .*; bring the column to one type"):
        sb.Monitor(sb.TopK(1, "x", sb.last(9))).push({"x": [1, "a"]})


def test_a_plan_is_no_batch():
    with pytest.raises(sb.QueryError, match=r"LazyFrame is a plan, not rows: .*collect"):
        sb.Monitor(sb.TopK(1, "x", sb.last(9))).push(pl.LazyFrame({"x": [1]}))

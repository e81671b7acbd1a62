"""What is refused, and that the message names what was wrong and what is allowed."""

import datetime
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import skyband as sb
from skyband.storage.codec import MAGIC, pack
from tests.support import streams
from tests.support.cases import ALGORITHMS, EXACT, ONE_OF_EACH, pair

WINDOW = sb.last(10, every=2)
TABLE = streams.make("tied")


def refused(*words):
    """A QueryError whose message holds every one of the words."""
    return pytest.raises(sb.QueryError, match="(?si)" + "".join(f"(?=.*(?:{word}))" for word in words))


# Queries


@pytest.mark.parametrize("k", [0, -1, 1.5, "3", None, True, float("nan"), np.array([1, 2]), np.timedelta64(5, "s")])
def test_k(k):
    with refused("k=", "whole number", "at least 1"):
        sb.TopK(k=k, order_by="x", window=WINDOW)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(extent=5, every=6), ("every=6", "exceeds", "extent 5")),
        (dict(extent="1 minute", every="2 minutes"), ("every=", "2 minutes", "exceeds")),
        (dict(extent=0), ("extent=0", "from 1 to")),
        (dict(extent=2**61), ("extent=", "from 1 to")),
        (dict(extent="30000000000 days"), ("extent=", "from 1 to", "microseconds")),
        (dict(extent="1 day", late="30000000000 days"), ("late=", "from 0 to")),
        (dict(extent=-3), ("extent=-3",)),
        (dict(extent=5, every=0), ("every=0",)),
        (dict(extent=2.5), ("extent=2.5", "whole number")),
        (dict(extent=True), ("extent=True",)),
        (dict(extent="ten minutes"), ("ten minutes", "not a duration", "minute")),
        (dict(extent="10 parsecs"), ("10 parsecs", "second")),
        (dict(extent=""), ("extent", "duration|microsecond")),
        (dict(extent="0 seconds"), ("extent",)),
        (dict(extent="1 minute", every=5), ("every=5", "duration")),
        (dict(extent=5, every="1 minute"), ("every=", "whole number")),
        (dict(extent="1 minute", late=5), ("late=5", "duration")),
        (dict(extent="1 minute", late="-5 seconds"), ("late=",)),
        (dict(extent=datetime.timedelta(seconds=-1)), ("extent",)),
        (dict(extent="1000"), ("extent='1000'", "not a duration", "without quotes")),
        (dict(extent="1 month"), ("1 month", "not a duration", "week")),
        (dict(extent="5 ss"), ("5 ss", "not a duration")),
        (dict(extent=None), ("extent=None", "whole number of objects", "10 minutes")),
        (dict(extent=np.array([1, 2])), ("extent=", "whole number")),
        (dict(extent=np.timedelta64("NaT", "s")), ("NaT", "no fixed length")),
        (dict(extent=np.timedelta64(5)), ("no fixed length", "seconds")),
        (dict(extent=np.timedelta64(1, "M")), ("no fixed length", "weeks")),
        (dict(extent=np.timedelta64(1_500, "ns")), ("not a whole number of microseconds",)),
        (dict(extent=pd.Timedelta(500, "ns")), ("not a whole number of microseconds",)),
        (dict(extent=pd.NaT), ("extent=NaT", "duration")),
        (dict(extent=np.timedelta64(2**62, "W")), ("from 1 to", "microseconds")),
        (dict(extent="1 hour", late=np.timedelta64(-1, "s")), ("late=", "from 0 to")),
        (dict(extent=5, late=1), ("late=1", "on=")),
        (dict(extent=5, on=""), ("on=",)),
        (dict(extent=5, on=3), ("on=3",)),
    ],
    ids=str,
)
def test_windows(arguments, words):
    with refused(*words):
        sb.last(**arguments)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (dict(window=10), ("window=10", "sb.last\\(10\\)")),
        (dict(window="10 minutes"), ("window=", "sb.last\\('10 minutes'\\)")),
        (dict(window=sb.last), ("window=", "sb.last\\(\\.\\.\\.\\)")),
        (dict(ties=np.array([1, 2])), ("ties=", "newest", "all")),
        (dict(name=5), ("name=5", "text")),
        (dict(select=""), ("select=''", '"a, b"')),
        (dict(select="x,,y"), ("select='x,,y'",)),
        (dict(select="x, x"), ("select", "twice")),
        (dict(select={"x": "y"}), ("select=", '"a, b"')),
        (dict(partition_by="g, g"), ("partition_by", "twice")),
        (dict(partition_by="g,"), ("partition_by='g,'",)),
        (dict(ties="some"), ("ties=", "some", "newest", "all")),
        (dict(error=-0.1), ("error=-0.1",)),
        (dict(error=1), ("error=1",)),
        (dict(error="0"), ("error=",)),
        (dict(partition_by=("g", "g")), ("partition_by", "twice")),
        (dict(partition_by=(1,)), ("partition_by",)),
        (dict(partition_by=5), ("partition_by=5",)),
        (dict(select=("id", "id")), ("select", "twice")),
        (dict(order_by="x +"), ("x \\+",)),
        (dict(order_by=""), ("order_by",)),
        (dict(order_by="x DESC, y"), ("x DESC, y",)),
        (dict(order_by=5), ("order_by",)),
        (dict(order_by="sum(x)"), ("sum",)),
        (dict(order_by="(SELECT 1)"), ("SELECT",)),
        (dict(where="x >"), ("x >",)),
        (dict(where="x; DROP TABLE y"), ("where|x; DROP",)),
        (dict(algorithm="No Such"), ("algorithm=", "No Such")),
        (dict(algorithm=7), ("algorithm=7",)),
    ],
    ids=lambda given: re.sub(r" at 0x\w+", "", str(given)),
)
def test_fields(fields, words):
    with refused(*words):
        sb.TopK(**{"k": 1, "order_by": "x", "window": WINDOW, **fields})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (dict(to={}), ("to=",)),
        (dict(to={"x": "north"}), ("to|x", "north")),
        (dict(to={"x": float("nan")}), ("to|x", "nan")),
        (dict(metric="cosine"), ("metric=", "cosine", "euclidean", "manhattan")),
        (dict(metric=0.5), ("metric=0.5", "1")),
        (dict(weights={"y": 2.0}), ("weights", "y")),
        (dict(weights={"x": -1.0}), ("weights", "-1")),
        (dict(k=0), ("k=0",)),
    ],
    ids=str,
)
def test_nearest(fields, words):
    with refused(*words):
        sb.Nearest(**{"k": 1, "to": {"x": 0.0}, "window": WINDOW, **fields})


def test_unknown_algorithm_names_the_known_ones():
    with refused("dijkstra", *sorted(ALGORITHMS)):
        sb.Monitor(sb.TopK(k=1, order_by="x", window=WINDOW, algorithm="dijkstra"))


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_an_algorithm_that_cannot_serve_the_window(name):
    windows = {"hopping": WINDOW, "arrival": sb.last(10)}
    for kind in windows.keys() - ALGORITHMS[name].serves:
        with refused(name, "hops|every arrival"):
            sb.Monitor(sb.TopK(k=1, order_by="x", window=windows[kind], algorithm=name))


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_options_of_algorithms(name):
    window = WINDOW if "hopping" in ALGORITHMS[name].serves else sb.last(10)
    error = 0.0 if ALGORITHMS[name].exact else 0.05
    with refused(name, "shoe"):
        sb.Monitor(sb.TopK(k=1, order_by="x", window=window, algorithm=f"{name}(shoe=3)", error=error))
    with refused("name=number"):
        sb.Monitor(sb.TopK(k=1, order_by="x", window=window, algorithm=f"{name}(shoe=big)", error=error))
    for option in ALGORITHMS[name].options:
        for bad in (-1, "nan"):
            with refused(option):
                sb.Monitor(sb.TopK(k=1, order_by="x", window=window, algorithm=f"{name}({option}={bad})", error=error))


def test_queries_together():
    query = sb.TopK(k=1, order_by="x", window=WINDOW, name="a")
    with refused("quer"):
        sb.Monitor([])
    with refused("name", "a"):
        sb.Monitor([query, sb.TopK(k=2, order_by="x", window=WINDOW, name="a")])
    with refused("'SELECT 1'", "SQL text is not read yet", "sb.TopK"):
        sb.Monitor("SELECT 1")
    with refused("^a Table is not a query"):
        sb.Monitor(TABLE)


# Batches


@pytest.mark.parametrize(
    ("query", "word"),
    [
        (dict(order_by="price DESC"), "price"),
        (dict(where="price > 3"), "price"),
        (dict(partition_by=("price",)), "price"),
        (dict(select=("price",)), "price"),
        (dict(window=sb.last("9 seconds", on="price")), "price"),
        (dict(window=sb.last(9, on="price")), "price"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_unknown_column(query, word):
    monitor = sb.Monitor(sb.TopK(**{"k": 1, "order_by": "x", "window": WINDOW, **query}))
    with refused(word, *TABLE.column_names):
        monitor.push(TABLE)


@pytest.mark.parametrize("column", [["a", "b"], [b"a", b"b"], [[1], [2]], [datetime.date(2024, 1, 1)] * 2], ids=str)
def test_a_score_that_is_no_number(column):
    with refused("x", "numeric|number"):
        sb.Monitor(sb.TopK(k=1, order_by="x", window=WINDOW)).push({"x": column})


@pytest.mark.parametrize("column", [["a", "b"], [True, False]], ids=str)
def test_an_event_time_that_is_no_time(column):
    with refused("ts", "time|number"):
        sb.Monitor(sb.TopK(k=1, order_by="x", window=sb.last("9 seconds"))).push({"x": [1, 2], "ts": column})


@pytest.mark.parametrize("column", [["a", "b"], [0.5, 1.5]], ids=str)
def test_a_sequence_that_is_no_whole_number(column):
    with refused("seq", "whole|integer"):
        sb.Monitor(sb.TopK(k=1, order_by="x", window=sb.last(9, on="seq"))).push({"x": [1, 2], "seq": column})


def test_a_condition_that_is_no_condition():
    with refused("y"):
        sb.Monitor(sb.TopK(k=1, order_by="x", window=WINDOW, where="y + 1")).push(TABLE)


@pytest.mark.parametrize(("window", "names"), [(WINDOW, ("window_start", "window_end", "rank", "score")),
                                               (sb.last(10), ("at", "op", "rank", "score"))], ids=str)  # fmt: skip
def test_a_column_named_as_one_of_the_answer(window, names):
    for name in names:
        with refused(name, "select"):
            sb.Monitor(sb.TopK(k=1, order_by="x", window=window)).push({"x": [1], name: [2]})
        with refused("partition_by", name):
            sb.Monitor(sb.TopK(k=1, order_by="x", window=window, partition_by=name)).push({"x": [1], name: [2]})


@pytest.mark.parametrize("name", ["skyband: score", "_skyband_score", "_Skyband_0", "Skyband: value"])
def test_a_column_named_as_those_that_skyband_adds(name):
    for query in (
        sb.TopK(k=1, order_by="x", window=sb.last(9, on="seq"), select=("x",)),
        sb.TopK(k=1, order_by="x", window=WINDOW, partition_by=name),
        sb.TopKGroups(k=1, id=name, value="x", aggregate="count_distinct", window=WINDOW),
    ):
        monitor = sb.Monitor(query)
        with refused(f"column {name!r}", "names that begin with 'skyband: ' or '_skyband_'", "another name"):
            monitor.push({"x": [1, 2], "seq": [0, 1], name: [3, 4]})
        with refused("no column" if name in repr(query) else "nothing"):
            monitor.push({"x": [1, 2], "seq": [0, 1]})
            raise sb.QueryError("nothing was kept")


def test_a_column_of_a_later_batch_that_is_left_out_anyway():
    monitor = sb.Monitor(sb.TopK(k=1, order_by="x", window=sb.last(1, every=1)))
    monitor.push({"x": [1]})
    assert monitor.push({"x": [2], "_skyband_score": [3]}).column_names[-1] == "x"


@pytest.mark.parametrize("name", ["skyband: max x", "_skyband_value_0"])
def test_an_output_named_as_columns_that_skyband_adds(name):
    with refused("outputs", name, "another name"):
        sb.TopKGroups(k=1, id="g", value="x", window=WINDOW, outputs={name: "min(x)"}, having="max(x) > 1")


@pytest.mark.parametrize("fields", [{}, {"partition_by": ("query",)}, {"select": ("x AS query",)}], ids=str)
def test_a_column_named_as_that_of_several_queries(fields):
    queries = [sb.TopK(k=1, order_by="x", window=WINDOW, **fields), sb.TopK(k=2, order_by="y", window=WINDOW)]
    monitor, batch = sb.Monitor(queries), {"x": [1, 2], "y": [1, 2], "query": [3, 4]}
    with refused("'query'", "several queries", "select"):
        monitor.push(batch)
    assert monitor.dumps() == sb.Monitor(queries).dumps()
    assert "query" in sb.Monitor(sb.TopK(k=1, order_by="x", window=sb.last(1), **fields)).push(batch).column_names
    renamed = sb.TopK(k=1, order_by="x", window=sb.last(1), select=("query AS other",), name="a")
    assert sb.Monitor([renamed]).push(batch).column_names == ["query", "at", "op", "score", "other"]


def test_a_partition_column_of_lists():
    with refused("partition_by", "g", "list"):
        sb.Monitor(sb.TopK(k=1, order_by="x", window=WINDOW, partition_by="g")).push({"x": [1], "g": [[1]]})


@pytest.mark.parametrize("batch", [3, None, "x", [1, 2], {"x": [1], "y": [1, 2]}, {"x": 1}, {"x": np.zeros((2, 2))},
                                   {"x": np.zeros(2, ">f8")}, np.zeros(3)], ids=str)  # fmt: skip
def test_a_batch_of_no_known_kind(batch):
    with refused("table|length"):
        sb.Monitor(sb.TopK(k=1, order_by="x", window=WINDOW)).push(batch)


@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_a_refused_batch_leaves_everything_as_it_was(window):
    query, _ = pair(2, window, partition_by=("g",))
    monitor = sb.Monitor(query)
    monitor.push(TABLE.slice(0, 50))
    before = monitor.dumps()
    text = TABLE.set_column(2, "x", pa.array(["?"] * TABLE.num_rows))
    for batch in (TABLE.drop_columns("x"), text, TABLE.drop_columns("g"), TABLE.drop_columns("y"),
                  TABLE.set_column(1, "ts", pa.array(range(TABLE.num_rows)))):  # fmt: skip
        with pytest.raises(sb.QueryError):
            monitor.push(batch)
        assert monitor.dumps() == before


@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_a_refused_first_batch_leaves_everything_as_it_was(window):
    query, _ = pair(2, window, partition_by=("g",))
    monitor, fresh = sb.Monitor(query), sb.Monitor(query)
    for batch in (TABLE.drop_columns("x"), TABLE.append_column("score", TABLE["x"]), TABLE.drop_columns("g")):
        with pytest.raises(sb.QueryError):
            monitor.push(batch)
        assert monitor.dumps() == fresh.dumps()
    assert monitor.push(TABLE).equals(fresh.push(TABLE))


def test_a_batch_refused_by_one_of_several_queries_is_taken_by_none():
    queries = [sb.TopK(k=1, order_by=column, window=WINDOW, select=("id",)) for column in ("x", "y")]
    monitor, fresh = sb.Monitor(queries), sb.Monitor(queries)
    for start in (0, 31):
        with refused("y"):
            monitor.push(TABLE.drop_columns("y"))
        assert monitor.dumps() == fresh.dumps()
        assert monitor.push(TABLE.slice(start, 31)).equals(fresh.push(TABLE.slice(start, 31)))


def test_a_type_that_changes_on_the_way():
    monitor = sb.Monitor(sb.TopK(k=2, order_by="x", window=WINDOW))
    monitor.push({"x": [1.0], "load": [1]})
    with refused("load", "string", "int64"):
        monitor.push({"x": [1.0], "load": ["one"]})


# Columns that are not there


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (dict(window=sb.last("9 secs", every="3 secs", on="tss")),
         ("event time", "no column 'tss'", "did you mean 'ts'", "on=", r"sb.last\('9 seconds', every='3 seconds'\)")),
        (dict(window=sb.last("9 secs", on="moment")),
         ("event time", "no column 'moment' for it\\.", "on=", r"count objects, as in sb.last\(1000\)", "are id, ts")),
        (dict(window=sb.last(9, on="idd")), ("numbers in a sequence", "'idd'", "mean 'id'", "on=")),
        (dict(partition_by="gg, h"), ("^partition_by: there is no column 'gg'; did you mean 'g'", "are id, ts")),
        (dict(partition_by=("g", "unlike")), ("^partition_by: there is no column 'unlike'\\. The columns are id, ts",)),
        (dict(order_by="xx + 1"), ("^order_by='xx \\+ 1': there is no column 'xx'; did you mean 'x'",)),
        (dict(where="xx > 1"), ("^where='xx > 1': there is no column 'xx'; did you mean 'x'",)),
        (dict(select="id, xx"), ("^select='xx': there is no column 'xx'; did you mean 'x'",)),
    ],
    ids=str,
)  # fmt: skip
def test_a_typo_names_its_argument(query, words):
    monitor = sb.Monitor(sb.TopK(**{"k": 1, "order_by": "x", "window": WINDOW, **query}))
    with refused(*words):
        monitor.push(TABLE)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (sb.Nearest(k=1, to={"x": 0, "yy": 1}, window=WINDOW), ("^to={'x': 0, 'yy': 1}: .*'yy'; did you mean 'y'",)),
        (sb.TopKPairs(k=1, order_by="a.x - b.x", window=WINDOW, same="gg"), ("^same: .*'gg'; did you mean 'g'",)),
        (sb.TopKPairs(k=1, order_by="a.x - b.x", window=WINDOW, different="gg"), ("^different: .* mean 'g'",)),
        (sb.TopKPairs(k=1, order_by="a.x - b.x", window=WINDOW, select="a.idd"), ("^select='a.idd': .* mean 'a.id'",)),
        (sb.TopKDominating(k=1, dimensions={"x": "min", "yy": "max"}, window=WINDOW),
         ("^dimensions: 'yy': there is no column 'yy'; did you mean 'y'",)),
        (sb.TopKDominating(k=1, dimensions={"g": "max"}, window=WINDOW), ("^dimensions: 'g' is of type string",)),
        (sb.TopKGroups(k=1, id="gg", window=WINDOW), ("^id: there is no column 'gg'; did you mean 'g'",)),
        (sb.TopKGroups(k=1, id="g", stream="hh", window=WINDOW), ("^stream: .*'hh'; did you mean 'h'",)),
        (sb.TopKGroups(k=1, id="g", stream="hh", streams=("1", "2"), window=WINDOW), ("^stream: .* mean 'h'",)),
        (sb.TopKGroups(k=1, id="g", value="xx", window=WINDOW), ("^value='xx': .*'xx'; did you mean 'x'",)),
        (sb.TopKGroups(k=1, id="h", value="g", window=WINDOW), ("^value='g' is of type string",)),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_a_typo_names_its_argument_in_other_rankings(query, words):
    with refused(*words):
        sb.Monitor(query).push(TABLE)


def test_the_event_time_column_is_suggested_by_its_type():
    with refused("no column 'ts' for it\\.", r"sb.last\('1 minute', on='moment'\)"):
        sb.Monitor(sb.TopK(k=1, order_by="x", window=sb.last("1 min"))).push(TABLE.rename_columns(
            ["moment" if name == "ts" else name for name in TABLE.column_names]))  # fmt: skip


# Snapshots


@pytest.mark.parametrize(
    ("query", "arguments", "words"),
    [
        (dict(), dict(k=0), ("k=0", "1")),
        (dict(), dict(k=4), ("k=4", "3")),
        (dict(), dict(k="2"), ("k='2'", "whole number from 1 to 3")),
        (dict(), dict(k=2.0), ("k=2.0", "whole number")),
        (dict(), dict(last=2.5), ("last=2.5", "number of objects")),
        (dict(window=sb.last("9 seconds")), dict(last=np.timedelta64(10, "s")), ("last=10 seconds", "9 seconds")),
        (dict(), dict(last=11), ("last=11", "10")),
        (dict(), dict(last=0), ("last=0",)),
        (dict(), dict(last="1 second"), ("last=",)),
        (dict(window=sb.last("9 seconds")), dict(last="10 seconds"), ("last=", "9 seconds")),
        (dict(window=sb.last("9 seconds")), dict(last=5), ("last=5",)),
    ],
    ids=str,
)
def test_snapshots(query, arguments, words):
    monitor = sb.Monitor(sb.TopK(**{"k": 3, "order_by": "x", "window": WINDOW, **query}))
    monitor.push(TABLE)
    with refused(*words):
        monitor.top(**arguments)


@pytest.mark.parametrize("name", [n for n in EXACT if "hopping" in ALGORITHMS[n].serves])
def test_a_snapshot_that_does_not_end_with_a_slide(name):
    monitor = sb.Monitor(sb.TopK(k=3, order_by="x", window=sb.last(12, every=4), algorithm=name))
    monitor.push(TABLE)
    if ALGORITHMS[name].any_last:
        assert monitor.top(last=6).num_rows == 3
    else:
        with refused("last=6", "4"):
            monitor.top(last=6)


# Saved states


def blob():
    monitor = sb.Monitor(sb.TopK(k=3, order_by="x", window=WINDOW, partition_by="g"))
    monitor.push(TABLE)
    return monitor.dumps()


@pytest.mark.parametrize("text", [b"", b"skyband", b"PAR1" * 40, b"\0" * 500, MAGIC, MAGIC + b"\0" * 100])
def test_foreign_bytes(text):
    with pytest.raises(sb.StateError, match=r"state|version"):
        sb.Monitor.loads(text)


@pytest.mark.parametrize("text", ["a string", None, 5], ids=str)
def test_no_bytes_at_all(text):
    with pytest.raises(sb.StateError, match=r"bytes, as dumps\(\) returns them, not (str|NoneType|int)"):
        sb.Monitor.loads(text)


def test_truncated_or_altered_bytes():
    whole = blob()
    for size in (*range(0, 80, 7), len(whole) // 2, len(whole) - 1):
        with pytest.raises(sb.StateError):
            sb.Monitor.loads(whole[:size])
    with pytest.raises(sb.StateError):
        sb.Monitor.loads(whole + b"\0")
    for position in (*range(60), len(whole) // 3, len(whole) // 2, len(whole) - 1):
        altered = bytearray(whole)
        altered[position] ^= 1
        with pytest.raises(sb.StateError):
            sb.Monitor.loads(bytes(altered))


@pytest.mark.parametrize("meta", [{}, {"queries": []}, [], {"query": "x"}], ids=str)
def test_a_well_formed_blob_that_is_no_monitor(meta):
    with pytest.raises(sb.StateError):
        sb.Monitor.loads(pack(meta, {}))


@pytest.mark.parametrize(
    "other",
    [dict(k=4), dict(order_by="x DESC"), dict(window=sb.last(10, every=5)), dict(partition_by=()), dict(ties="all"),
     dict(where="y > 0"), dict(select=("id",))],
    ids=str,
)  # fmt: skip
def test_a_state_of_another_query(other):
    with pytest.raises(sb.StateError, match=r"(?i)another query|other query|different query"):
        sb.Monitor.loads(blob(), sb.TopK(**{"k": 3, "order_by": "x", "window": WINDOW, "partition_by": "g", **other}))


def test_a_function_must_be_given_again():
    query = sb.TopK(k=1, order_by=lambda columns: columns["x"], window=WINDOW)
    monitor = sb.Monitor(query)
    monitor.push(TABLE.slice(0, 31))
    with pytest.raises(sb.StateError, match="query"):
        sb.Monitor.loads(monitor.dumps())
    restored = sb.Monitor.loads(monitor.dumps(), query)
    assert restored.push(TABLE.slice(31)).equals(monitor.push(TABLE.slice(31)))


# Counts


@pytest.mark.parametrize(("unit", "moment"), [("us", 2**63 - 1), ("us", -(2**63)), ("us", 2**61), ("ms", 2**61),
                                              ("s", 2**62), ("s", -(2**50))])  # fmt: skip
@pytest.mark.parametrize("every", ["5 seconds", None])
def test_a_time_out_of_all_bounds_is_invalid(unit, moment, every):
    """Such values stand for "never" in some databases; one of them must not close every window there is."""
    monitor = sb.Monitor(sb.TopK(k=1, order_by="x", window=sb.last("10 seconds", every=every)))
    monitor.push({"x": [1.0, 2.0], "ts": pa.array([5, moment], pa.timestamp(unit))})
    monitor.push({"x": [3.0], "ts": pa.array([6], pa.timestamp(unit))})
    assert (monitor.stats.seen, monitor.stats.invalid, monitor.stats.late) == (3, 1, 0)


@pytest.mark.parametrize("number", [2**62, 2**63, 2**64 - 1])
def test_a_sequence_number_out_of_all_bounds_never_counts(number):
    monitor = sb.Monitor(sb.TopK(k=1, order_by="x", window=sb.last(2, every=2, on="seq")))
    emitted = monitor.push({"x": [1.0, 2.0, 3.0], "seq": pa.array([0, number, 1], pa.uint64())})
    assert emitted["score"].to_pylist() == [1.0]
    assert monitor.stats.invalid + monitor.stats.late == 1


def test_bad_rows_are_counted_and_never_stop_the_stream():
    monitor = sb.Monitor(sb.TopK(k=9, order_by="x", window=sb.last("10 seconds", every="10 seconds"), where="ok"))
    second = lambda *values: pa.array(values, pa.timestamp("s"))  # noqa: E731
    monitor.push({"ts": second(100, 101, None, 103, 104), "x": pa.array([1.0, None, 2.0, float("nan"), 3.0]),
                  "ok": pa.array([True, True, True, True, False])})  # fmt: skip
    assert (monitor.stats.seen, monitor.stats.invalid, monitor.stats.late) == (5, 3, 0)
    # The newest valid time is 100: 99 is late, and so it is where the score is good; a bad score is invalid first.
    emitted = monitor.push({"ts": second(99, 100, 99, 99, 110), "x": [1.0, 7.0, float("nan"), 5.0, 0.0],
                            "ok": pa.array([True, True, True, None, True])})  # fmt: skip
    assert (monitor.stats.seen, monitor.stats.invalid, monitor.stats.late) == (10, 4, 1)
    assert emitted["score"].to_pylist() == [1.0, 7.0]

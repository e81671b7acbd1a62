"""What goes into a monitor and in which shape it comes out: kinds of batch, types, columns, memory of the rows held."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import skyband as sb
from tests.support import oracle, streams
from tests.support.cases import ONE_OF_EACH, follow, pair, run, together

TABLE = streams.make("jittered_tied").drop_columns("h")


def as_dict(batch):
    return {name: batch[name].to_pylist() for name in batch.column_names}


def as_arrays(batch):
    return {"id": batch["id"].to_numpy(), "ts": batch["ts"].to_numpy(), "x": batch["x"].to_numpy(),
            "y": batch["y"].combine_chunks(), "g": np.array(batch["g"].to_pylist(), object)}  # fmt: skip


def as_record_batch(batch):
    return batch.combine_chunks().to_batches()[0] if batch.num_rows else pa.RecordBatch.from_pylist([], batch.schema)


def as_pandas(batch):
    return batch.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)


@pytest.mark.parametrize("shape", [as_dict, as_arrays, as_record_batch, as_pandas])
@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_kinds_of_batch(shape, window):
    query, _ = pair(3, window, partition_by=("g",))
    batches = [b for b in streams.cut(TABLE) if b.num_rows]
    assert run(sb.Monitor(query), [shape(b) for b in batches]) == run(sb.Monitor(query), batches)


def test_tables_of_several_chunks():
    query, _ = pair(3, "time-7-3", partition_by=("g",))
    chunked = pa.concat_tables(streams.cut(TABLE, 3))
    assert chunked["x"].num_chunks > 1
    assert run(sb.Monitor(query), [chunked]) == run(sb.Monitor(query), [TABLE.combine_chunks()])


@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_dictionary_encoded_keys(window):
    query, _ = pair(3, window, partition_by=("g",))
    batches = streams.cut(TABLE)
    encoded = [b.set_column(b.column_names.index("g"), "g", b["g"].dictionary_encode()) for b in batches]
    assert run(sb.Monitor(query), encoded) == run(sb.Monitor(query), batches)


@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_inputs_are_neither_changed_nor_kept(window):
    """A caller may reuse its arrays for the next batch."""
    query, _ = pair(3, window)
    expected, emitted, monitor = run(sb.Monitor(query), streams.cut(TABLE)), [], sb.Monitor(query)
    for batch in streams.cut(TABLE):
        arrays = {"id": batch["id"].to_numpy().copy(), "ts": batch["ts"].to_numpy().copy(),
                  "x": batch["x"].to_numpy().copy(), "y": batch["y"], "g": batch["g"]}  # fmt: skip
        before = {name: arrays[name].copy() for name in ("id", "ts", "x")}
        emitted += oracle.rows(monitor.push(arrays))
        for name, values in before.items():
            assert np.array_equal(arrays[name], values)
            arrays[name][:] = np.zeros(1, arrays[name].dtype)
    assert emitted + oracle.rows(monitor.flush()) == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Zagreb"])
@pytest.mark.parametrize("window", ["time-7-3", "arrival-time-9"])
def test_timestamps_of_any_unit(unit, zone, window):
    table = streams.make("tied")
    position = table.column_names.index("ts")
    whole = table.set_column(position, "ts", table["ts"].cast(pa.timestamp("s"), safe=False).cast(pa.timestamp("us")))
    typed = table.set_column(position, "ts", whole["ts"].cast(pa.timestamp(unit)).cast(pa.timestamp(unit, zone)))
    query, model = pair(3, window)
    monitor = sb.Monitor(query)
    emitted = pa.concat_tables([monitor.push(typed), monitor.flush()])
    assert oracle.rows(emitted) == model.push(whole) + model.flush()
    for name in ("window_start", "window_end") if query.window.hopping else ("at",):
        assert emitted.schema.field(name).type == pa.timestamp(unit, zone)


@pytest.mark.parametrize("kind", [pa.float64(), pa.int64()])
@pytest.mark.parametrize("window", ["time-7-3", "arrival-time-9"])
def test_numbers_are_seconds(kind, window):
    table = streams.make("tied")
    position = table.column_names.index("ts")
    seconds = [t // streams.SECOND for t in oracle.plain(table["ts"])]
    moments = pa.array([s * streams.SECOND for s in seconds], pa.timestamp("us"))
    query, model = pair(3, window, select=("id",))
    monitor = sb.Monitor(query)
    typed = table.set_column(position, "ts", pa.array(seconds, kind))
    emitted = pa.concat_tables([monitor.push(typed), monitor.flush()])
    expected = model.push(table.set_column(position, "ts", moments)) + model.flush()
    bounds = 2 if query.window.hopping else 1
    assert [emitted.schema.field(i).type for i in range(bounds)] == [kind] * bounds
    in_seconds = [(*(b / streams.SECOND for b in row[:bounds]), *row[bounds:]) for row in expected]
    assert oracle.rows(emitted) == in_seconds


@pytest.mark.parametrize("late", ["0 seconds", "5 seconds"])
@pytest.mark.parametrize("kind", [pa.float64(), pa.int64(), pa.decimal128(25, 6)], ids=str)
@pytest.mark.parametrize("bad", [None, 2_000_000_000_000])  # the second one is beyond 30,000 years: no seconds
def test_no_event_time_is_invalid_whatever_its_type(kind, late, bad):
    seconds = pa.array([1, bad, 3]).cast(kind)
    monitor = sb.Monitor(sb.TopK(3, "x", sb.last("2 seconds", every="2 seconds", late=late), select=("x",)))
    answer = [monitor.push({"ts": seconds, "x": pa.array([1.0, 2.0, 3.0])}), monitor.flush()]
    assert pa.concat_tables(answer)["x"].to_pylist() == [1.0, 3.0]
    assert (monitor.stats.invalid, monitor.stats.late) == (1, 0)


@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_types_are_the_same_whether_rows_come_out_or_not(window):
    query, _ = pair(3, window, partition_by=("g",))
    monitor = sb.Monitor(query)
    tables = [monitor.push(batch) for batch in streams.cut(TABLE)] + [monitor.flush()]
    assert len({str(table.schema) for table in tables}) == 1
    assert any(table.num_rows for table in tables)
    schema = tables[0].schema
    assert schema.field("score").type == pa.float64()
    for name in set(TABLE.column_names) & set(schema.names):
        assert schema.field(name).type == TABLE.schema.field(name).type
    assert monitor.top().schema.names == ["g", "rank", "score", "id", "ts", "x", "y"]


@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_before_the_first_row(window):
    query, _ = pair(3, window)
    monitor = sb.Monitor(query)
    assert monitor.top().num_rows == monitor.flush().num_rows == 0
    restored = sb.Monitor.loads(sb.Monitor(query).dumps())
    assert run(restored, [TABLE]) == run(sb.Monitor(query), [TABLE])


@pytest.mark.parametrize("window", ONE_OF_EACH)
@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint16(), pa.float32(), pa.decimal128(21, 2)], ids=str)
def test_numeric_scores_of_any_type(kind, window):
    values = [abs(int(v)) for v in streams.make("tied")["x"].to_pylist()]
    table = TABLE.set_column(2, "x", pa.array(values).cast(kind))
    plain = TABLE.set_column(2, "x", pa.array(table["x"].to_pylist()).cast(pa.float64(), safe=False))
    query, _ = pair(3, window, select=("id",))
    assert run(sb.Monitor(query), [table]) == run(sb.Monitor(query), [plain])


@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_columns_of_any_type_come_back(window):
    """The rows held keep their columns whatever these are, also through a saved state."""
    n = TABLE.num_rows
    rich = TABLE.append_column("text", pa.array([f"row {i}" if i % 3 else None for i in range(n)]))
    rich = rich.append_column("list", pa.array([[i] * (i % 4) if i % 5 else None for i in range(n)]))
    rich = rich.append_column("struct", pa.array([{"a": i, "b": [str(i)]} for i in range(n)]))
    rich = rich.append_column("blob", pa.array([bytes([i % 256]) * 3 for i in range(n)]))
    rich = rich.append_column("day", pa.array([datetime.date(2024, 1, 1 + i % 28) for i in range(n)]))
    rich = rich.append_column("kind", pa.array([f"kind {i % 3}" for i in range(n)]).dictionary_encode())
    rich = rich.append_column("nothing", pa.nulls(n))
    query, _ = pair(4, window)
    by_id = {row["id"]: row for row in rich.to_pylist()}
    monitor, count = sb.Monitor(query), 0
    for batch in streams.cut(rich):
        monitor = sb.Monitor.loads(monitor.dumps())
        for row in monitor.push(batch).to_pylist() + monitor.top().to_pylist():
            assert {name: row[name] for name in rich.column_names} == by_id[row["id"]]
            count += 1
    assert count


def test_the_columns_of_the_rows_held_are_accounted_for_and_let_go():
    """A few rows held of each large batch must not keep the batch alive, nor pile up."""
    monitor, size = sb.Monitor(sb.TopK(k=2, order_by="x DESC", window=sb.last(50, every=10))), 10_000
    before, rng = pa.total_allocated_bytes(), np.random.default_rng(0)
    for _ in range(200):
        monitor.push(pa.table({"x": rng.random(100), "load": pa.array(["y" * size] * 100)}))
        stats = monitor.stats
        assert size * stats.candidates <= stats.bytes <= size * 4 * (stats.candidates + 10)
        assert pa.total_allocated_bytes() - before < 2 * stats.bytes + 100_000


def test_columns_named_like_what_is_kept_beside_them():
    query, model = pair(3, "count-7-3", on="seq")
    table = streams.numbered(streams.make("tied"), (), 9)
    table = table.append_column("__key", table["id"]).append_column("__score", table["g"])
    follow(sb.Monitor(query), model, streams.cut(table))


@pytest.mark.parametrize("empty", [{"x": []}, {"x": [None, None]}], ids=str)
def test_a_column_of_nothing(empty):
    monitor = sb.Monitor(sb.TopK(k=1, order_by="x", window=sb.last(2)))
    assert monitor.push(empty).num_rows == 0
    assert monitor.stats.invalid == len(empty["x"])


def test_columns_that_come_in_another_order():
    query, model = pair(3, "time-7-3", partition_by=("g",))
    monitor, names = sb.Monitor(query), TABLE.column_names
    for i, batch in enumerate(streams.cut(TABLE)):
        turned = batch.select(names[::-1]) if i % 2 else batch
        assert oracle.rows(monitor.push(turned)) == model.push(batch)


def test_a_score_column_is_given_once():
    table = TABLE.rename_columns({"x": "score"})
    emitted = sb.Monitor(sb.TopK(k=1, order_by="score DESC", window=sb.last(4, every=2))).push(table)
    assert emitted.column_names == ["window_start", "window_end", "rank", "score", "id", "ts", "y", "g"]
    changes = sb.Monitor(sb.TopK(k=1, order_by="score", window=sb.last(4), partition_by="g")).push(table)
    assert changes.column_names == ["at", "op", "g", "score", "id", "ts", "y"]


def test_computed_columns():
    query = sb.TopK(k=1, order_by="x", window=sb.last(2, every=2), select=("id", "id * 2 AS twice"))
    assert sb.Monitor(query).push({"id": [1, 2, 3, 4], "x": [5, 4, 3, 4]}).to_pylist() == [
        {"window_start": 0, "window_end": 2, "rank": 1, "score": 4.0, "id": 2, "twice": 4},
        {"window_start": 2, "window_end": 4, "rank": 1, "score": 3.0, "id": 3, "twice": 6},
    ]


@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_functions_as_scores(window):
    query, _ = pair(3, window)
    function = sb.TopK(k=3, order_by=(lambda columns: columns["x"], "DESC"), window=query.window)
    assert run(sb.Monitor(function), streams.cut(TABLE)) == run(sb.Monitor(query), streams.cut(TABLE))


@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_nearest_is_a_top_k_by_distance(window):
    query, _ = pair(3, window)
    near = sb.Nearest(k=3, to={"x": 1.0, "id": 40}, window=query.window, metric="manhattan", where="y > 0")
    same = sb.TopK(k=3, order_by="abs(x - 1) + abs(id - 40)", window=query.window, where="y > 0")
    assert run(sb.Monitor(near), streams.cut(TABLE)) == run(sb.Monitor(same), streams.cut(TABLE))


@pytest.mark.filterwarnings("ignore::skyband.DataWarning")  # every other row is broken
@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_several_queries_of_different_scores_and_conditions(window):
    together([pair(2, window, "x DESC"), pair(3, window, "y DESC", ties="all"), pair(1, window, "x", where="y > 0"),
              pair(4, window, "abs(x - y) ASC", name="gap"), pair(2, window, "x DESC")], "broken")  # fmt: skip


def test_several_windows_at_once():
    for windows in (("count-7-3", "count-20-5", "count-1-1"), ("time-10-2", "time-7-3", "time-600-9"),
                    ("arrivals-13", "arrivals-500", "arrivals-1"), ("arrival-time-9", "arrival-time-1")):  # fmt: skip
        together([pair(k, name) for k, name in enumerate(windows, 1)], "jittered_tied")

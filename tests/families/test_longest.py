"""A family that skyband knows nothing of (tests/support/longest.py) in the engine; tests/spark has it on Spark."""

import datetime

import pyarrow as pa

import skyband as sb
from skyband.testing import answer
from tests.support.longest import batches, query

EPOCH = datetime.datetime(1970, 1, 1)


def brute_force(rows, query):
    """Every window by itself: sort what it holds by length, newest first where equal."""
    window, found = query.window, []
    rows = [row for row in rows if row["word"] is not None]
    times = [(row["ts"] - EPOCH) // datetime.timedelta(microseconds=1) for row in rows]
    for end in range(0, max(times) + window.extent + window.slide, window.slide):
        inside = [(len(row["word"]), at, row["id"]) for row, at in zip(rows, times, strict=True)
                  if end - window.extent <= at < end]  # fmt: skip
        found += [(end, rank, *best) for rank, best in enumerate(sorted(inside, reverse=True)[: query.k], 1)]
    return found


def told(table):
    ends = table.column("window_end").cast(pa.int64()).to_pylist()
    at = table.column("ts").cast(pa.int64()).to_pylist()
    columns = (table.column(name).to_pylist() for name in ("rank", "score", "id"))
    return sorted((end, rank, score, t, i) for end, t, rank, score, i in zip(ends, at, *columns, strict=True))


def test_in_the_engine():
    whole = [row for batch in batches() for row in batch.to_pylist()]
    assert told(answer(query(), batches())) == brute_force(whole, query())


def test_by_partition_saved_and_explained():
    monitor, tables = sb.Monitor(query(partition_by="g")), []
    for batch in batches():
        tables.append(monitor.push(batch))
        monitor = sb.Monitor.loads(monitor.dumps())
        monitor.check()
    assert monitor.top().num_rows and monitor.stats.invalid
    rows = pa.concat_tables([*tables, monitor.flush()]).to_pylist()
    for g in range(3):
        own = answer(query(where=f"g = {g}"), batches())
        assert [row["id"] for row in rows if row["g"] == g] == own.column("id").to_pylist()
    assert "algorithm: sorting, because it is the only one" in sb.explain(query())

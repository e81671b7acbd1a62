"""Hopping windows against a foreign oracle: plain SQL in DuckDB, every row copied into every window that holds it."""

import duckdb
import pytest

import skyband as sb
from tests.support import oracle, streams
from tests.support.cases import ALGORITHMS, EXACT, WINDOWS, kind, pair

# Streams that lose many rows are among those that are tried.
pytestmark = pytest.mark.filterwarnings("ignore::skyband.DataWarning")

HOPPING = [name for name, window in WINDOWS.items() if kind(window) == "hopping"]
STREAMS = ("random", "tied", "constant", "extreme", "bursty", "jittered_tied", "broken", "before_epoch")

TIME_SQL = """
WITH objects AS (
    SELECT *, epoch_us(ts) AS position FROM stream WHERE x IS NOT NULL AND NOT isnan(x) AND ts IS NOT NULL
), members AS (
    SELECT *, unnest(range(
        position - ((position % $every) + $every) % $every + $every, position + $extent + 1, $every)) AS window_end
    FROM objects
)
"""
COUNT_SQL = """
WITH objects AS (
    SELECT *, row_number() OVER (PARTITION BY g ORDER BY id) - 1 AS position, count(*) OVER (PARTITION BY g) AS total
    FROM stream WHERE x IS NOT NULL AND NOT isnan(x)
), members AS (
    SELECT *, unnest(range(
        position - position % $every + $every, least(position + $extent, total) + 1, $every)) AS window_end
    FROM objects
)
"""
RANKED = """, ranked AS (
    SELECT *,
        row_number() OVER (PARTITION BY window_end, g ORDER BY x DESC, position DESC, id DESC) AS number,
        rank() OVER (PARTITION BY window_end, g ORDER BY x DESC) AS place
    FROM members
)
SELECT {start} AS window_start, window_end, g, number AS rank, x AS score, id, y
FROM ranked WHERE {chosen} <= $k ORDER BY window_end, g ASC NULLS LAST, number
"""

ARRIVAL_SQL = """
WITH objects AS (
    SELECT *, CASE WHEN $time THEN epoch_us(ts) ELSE row_number() OVER (PARTITION BY g ORDER BY id) END AS position
    FROM stream WHERE x IS NOT NULL AND NOT isnan(x) AND (ts IS NOT NULL OR NOT $time)
), arrivals AS (
    SELECT g, id AS arrival, max(position) OVER (PARTITION BY g ORDER BY id) AS now FROM objects
), ranked AS (
    SELECT arrival, id, row_number() OVER (PARTITION BY arrival ORDER BY x DESC, position DESC, id DESC) AS number
    FROM arrivals JOIN objects
        ON arrivals.g IS NOT DISTINCT FROM objects.g AND id <= arrival AND position > now - $extent
)
SELECT arrival, list(id ORDER BY id) FROM ranked WHERE number <= $k GROUP BY arrival
"""


def in_duckdb(stream, k, window, ties):
    fields = WINDOWS[window]
    sql = TIME_SQL if "time" in fields else COUNT_SQL
    sql += RANKED.format(start="window_end - $extent" if "time" in fields else "greatest(0, window_end - $extent)",
                         chosen="place" if ties == "all" else "number")  # fmt: skip
    with duckdb.connect() as connection:
        connection.register("stream", stream)
        return connection.execute(sql, {"k": k, "extent": fields["extent"], "every": fields["every"]}).fetchall()


def by_window(row):
    _, end, group, rank, *_ = row
    return end, group is None, group, rank


@pytest.mark.parametrize("window", HOPPING)
@pytest.mark.parametrize("ties", ["newest", "all"])
@pytest.mark.parametrize("stream", STREAMS)
def test_hopping_windows(window, ties, stream):
    table = streams.make(stream, seed=1)
    expected = in_duckdb(table, 3, window, ties)
    for algorithm in ["auto", *(name for name in EXACT if "hopping" in ALGORITHMS[name].serves)]:
        query, _ = pair(3, window, partition_by=("g",), select=("id", "y"), ties=ties, algorithm=algorithm)
        monitor = sb.Monitor(query)
        emitted = [row for batch in streams.cut(table, 7) for row in oracle.rows(monitor.push(batch))]
        assert sorted(emitted + oracle.rows(monitor.flush()), key=by_window) == expected


@pytest.mark.parametrize("window", HOPPING)
@pytest.mark.parametrize("stream", STREAMS)
def test_the_two_oracles_agree(window, stream):
    table = streams.make(stream, seed=2)
    for ties in ("newest", "all"):
        _, model = pair(3, window, partition_by=("g",), select=("id", "y"), ties=ties)
        assert sorted(model.push(table) + model.flush(), key=by_window) == in_duckdb(table, 3, window, ties)


@pytest.mark.parametrize("window", [name for name, window in WINDOWS.items() if kind(window) == "arrival"])
@pytest.mark.parametrize("stream", STREAMS)
def test_changes_replayed(window, stream):
    table = streams.make(stream, seed=3)
    fields = {"k": 3, "extent": WINDOWS[window]["extent"], "time": "time" in WINDOWS[window]}
    with duckdb.connect() as connection:
        connection.register("stream", table)
        expected = dict(connection.execute(ARRIVAL_SQL, fields).fetchall())
    query, _ = pair(3, window, partition_by=("g",), select=("id",))
    monitor, top = sb.Monitor(query), {}
    for batch in streams.one_by_one(table):
        arrival, group = batch["id"][0].as_py(), batch["g"][0].as_py()
        present = top.setdefault(group, set())
        for _, op, key, _, number in oracle.rows(monitor.push(batch)):
            assert key == group
            (present.add if op == "+" else present.remove)(number)
        if arrival in expected:
            assert sorted(present) == expected[arrival]

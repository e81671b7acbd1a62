"""Objects assembled from several streams: every algorithm equals the oracle, whatever comes."""

import itertools
import math
import zlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from tests.support import groups_cases as cases
from tests.support import oracle, streams
from tests.support.cases import WINDOWS, agree, finish, follow, kind, run
from tests.support.groups_cases import AGGREGATES, ALGORITHMS, EXACT, SUMMED, make, pair

# Streams that lose many rows are among those that are tried.
pytestmark = pytest.mark.filterwarnings("ignore::skyband.DataWarning")

ONE_OF_EACH = ("count-7-3", "time-7-3", "arrivals-13", "arrival-time-9")
OURS = ("panes", "tally")  # over all rows; the others are of the paper
TAME = [name for name in streams.STREAMS if name != "extreme"]  # amounts near 1e308 are invalid


def able(algorithm, window, how="sum", occurrences="many"):
    if kind(WINDOWS[window]) not in ALGORITHMS[algorithm].serves:
        return False
    if algorithm in OURS:
        return occurrences == "many" and how != "function"
    return occurrences == "once" or how in (*SUMMED, "function")


def one_of(choices, *case):
    return choices[zlib.crc32("/".join(map(str, case)).encode()) % len(choices)]


SERVED = [(a, how, o) for a in EXACT for how in AGGREGATES for o in ("once", "many")
          if able(a, "count-7-3", how, o) or able(a, "arrivals-13", how, o)]  # fmt: skip


@pytest.mark.parametrize(("algorithm", "how", "occurrences"), SERVED)
@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_equals_the_oracle(algorithm, how, occurrences, window):
    """All aggregates, absent streams, values that come again, attributes that expire one by one, late rows."""
    if not able(algorithm, window, how, occurrences):
        return
    for stream in ("random", "jittered_tied"):
        k, ties = one_of(list(itertools.product((1, 3, 50), ("newest", "all"))), algorithm, how, window, stream)
        query, model = pair(k, window, how, occurrences, algorithm, ties=ties)
        follow(sb.Monitor(query), model, streams.cut(make(stream)))


@pytest.mark.parametrize("algorithm", EXACT)
@pytest.mark.parametrize("stream", [*TAME, "extreme"])
def test_every_kind_of_stream(algorithm, stream):
    for window in ONE_OF_EACH:
        if able(algorithm, window):
            occurrences = "many" if algorithm in OURS else one_of(("once", "many"), window, stream)
            query, model = pair(3, window, one_of(("sum", "count"), stream, window), occurrences, algorithm)
            follow(sb.Monitor(query), model, streams.cut(make(stream), 2))


@pytest.mark.parametrize(("algorithm", "window"), [(a, w) for a in EXACT for w in WINDOWS if able(a, w)])
def test_every_kind_of_window(algorithm, window):
    query, model = pair(2, window, "sum", "many", algorithm)
    follow(sb.Monitor(query), model, streams.cut(make("jittered"), 3))


@pytest.mark.parametrize(("algorithm", "window"), [(a, w) for a in EXACT for w in ONE_OF_EACH if able(a, w)])
def test_partitions_conditions_and_single_rows(algorithm, window):
    query, model = pair(2, window, "sum", "many", algorithm, partition_by=("g",), where="y > 0")
    follow(sb.Monitor(query), model, streams.one_by_one(make("broken", size=60)))
    query, model = pair(2, window, "count", "many", algorithm, partition_by=("g", "h"), ties="all")
    follow(sb.Monitor(query), model, streams.cut(make("tied")))


@pytest.mark.parametrize(("algorithm", "window"), [(a, w) for a in EXACT for w in ("count-7-3", "arrivals-13")
                                                   if able(a, w)])  # fmt: skip
def test_sequence_column(algorithm, window):
    query, model = pair(2, window, "sum", "many", algorithm, on="seq")
    follow(sb.Monitor(query), model, streams.cut(streams.numbered(make("tied"), (), 12)))


@pytest.mark.parametrize(("algorithm", "window"), [(a, w) for a in EXACT for w in ONE_OF_EACH if able(a, w)])
def test_snapshots_of_fewer_and_of_shorter_windows(algorithm, window):
    query, model = pair(4, window, "sum", "many", algorithm, ties=one_of(("newest", "all"), window))
    monitor, span = sb.Monitor(query), query.window.extent
    step = query.window.slide if query.window.hopping and algorithm == "panes" else 1
    for batch in streams.cut(make("jittered_tied"), 3, 5):
        monitor.push(batch)
        model.push(batch)
        for k, length in itertools.product((1, 4), range(span, 0, -max(step, span // 3 // step * step))):
            last = f"{length} microseconds" if query.window.time else length
            agree(monitor.top(k=k, last=last), model.top(k, length), model.top_header(batch.column_names))
        monitor.check()


@pytest.mark.parametrize(("algorithm", "window"), [(a, w) for a in EXACT for w in ONE_OF_EACH if able(a, w)])
def test_cutting_saving_and_loading_do_not_matter(algorithm, window):
    query, _ = pair(3, window, "sum", "many", algorithm, partition_by=("g",))
    table = make("jittered_tied", size=70)
    whole = run(sb.Monitor(query), [table])
    assert whole and run(sb.Monitor(query), streams.one_by_one(table)) == whole
    stays = moves = sb.Monitor(query)
    emitted = []
    for batch in streams.cut(table, 4):
        moves, stays = sb.Monitor.loads(moves.dumps(), query), moves
        assert moves.dumps() == stays.dumps()
        answers = [(oracle.rows(m.push(batch)), oracle.rows(m.top())) for m in (stays, moves)]
        assert answers[0] == answers[1]
        assert replace(moves.stats, bytes=0) == replace(stays.stats, bytes=0)
        emitted += answers[0][0]
        moves.check()
    assert emitted + oracle.rows(moves.flush()) == whole


@pytest.mark.parametrize(("algorithm", "window"), [(a, w) for a in EXACT for w in ("time-7-3", "arrival-time-9")
                                                   if able(a, w)])  # fmt: skip
@pytest.mark.parametrize("partition_by", [(), ("g",)], ids=["whole", "parts"])
def test_objects_that_come_and_go_are_forgotten(algorithm, window, partition_by):
    """Thousands of ids of which few are in the window at a time: neither rows nor ids nor their codes pile up."""
    query, model = pair(3, window, "sum", "many", algorithm, late=0, partition_by=partition_by)
    n, rng = 6000, np.random.default_rng(0)
    ids = np.arange(n) // 2 - rng.choice([0, 0, 0, 1, 2, 7], n)
    times = pa.array(np.arange(n) * 100_000, "timestamp[us]")
    table = pa.table({"o": np.char.add("object ", ids.astype(str)), "x": rng.random(n).round(2), "ts": times,
                      "s": np.array(["r1", "r2"])[rng.integers(0, 2, n)], "g": rng.integers(0, 3, n)})  # fmt: skip
    monitor, emitted, sizes = sb.Monitor(query), [], []
    for start in range(0, n, 250):
        emitted += oracle.rows(monitor.push(table.slice(start, 250)))
        monitor.check()
        sizes.append(monitor.stats.bytes)
        if start % 1000 == 0:
            monitor = sb.Monitor.loads(monitor.dumps())
    assert max(sizes[12:]) <= 1.5 * max(sizes[:12])
    assert len(monitor.pipelines[0].intake.tags[0]) < 1600
    emitted += oracle.rows(monitor.flush())
    if query.window.hopping:
        assert monitor.stats.candidates == 0
    compared = table.slice(0, 1500)
    assert emitted[: len(rows := model.push(compared))] == rows


@pytest.mark.parametrize("algorithm", [name for name in EXACT if able(name, "time-7-3")])
def test_partitions_that_come_and_go(algorithm):
    """More partitions than are kept count of, of which few are alive: old ones are forgotten, numbers given anew."""
    query, model = pair(1, "time-7-3", "sum", "many", algorithm, late=0, partition_by=("p",))
    n, rng = 1600, np.random.default_rng(0)
    times = pa.array(np.arange(n) * 100_000, "timestamp[us]")
    table = pa.table({"p": np.arange(n) - rng.choice([0, 0, 0, 1, 2, 7], n), "o": rng.integers(0, 3, n),
                      "x": rng.random(n).round(2), "ts": times, "s": np.full(n, "r1")})  # fmt: skip
    monitor, emitted = sb.Monitor(query), []
    for batch in streams.cut(table, 9, 8):
        emitted += oracle.rows(monitor.push(batch))
        monitor.check()
    assert emitted + oracle.rows(monitor.flush()) == model.push(table) + model.flush()
    assert monitor.stats.candidates == 0 and len(monitor.pipelines[0].intake.partitions) < 1200


@pytest.mark.parametrize("algorithm", [name for name in EXACT if name not in OURS])
def test_buffers_views_and_lists_that_run_low(algorithm):
    """A longer stream, so that the view is filled anew, the lists are merged and the state is compacted."""
    query, model = pair(5, dict(extent=300), "sum", "once", algorithm, ties="newest")
    rng, n = np.random.default_rng(3), 1500
    table = pa.table({"o": rng.integers(0, 200, n), "x": rng.integers(0, 50, n) / 4.0, "s": pa.array(
        np.array(cases.NAMES)[rng.integers(0, 3, n)])})  # fmt: skip
    follow(sb.Monitor(query), model, streams.cut(table, 1, 12))


def test_late_rows_beyond_the_window_and_more_objects_than_codes():
    query, model = pair(3, "arrival-time-1", "max", "once", "sla", late=30 * streams.SECOND)
    follow(sb.Monitor(query), model, streams.cut(make("straggling"), 5))


def test_one_stream_counts_rows():
    query = sb.TopKGroups(k=2, id="host", window=sb.last(4))
    monitor = sb.Monitor(query)
    monitor.push({"host": ["a", "b", "b", "c", "c", "c"]})
    assert monitor.top().to_pydict() == {"rank": [1, 2], "score": [3.0, 1.0], "host": ["c", "b"]}
    assert sb.explain(query).splitlines()[0] == "top 2 host by sum of rows over the last 4 at every arrival"


def test_amounts_that_differ_wildly_leave_no_trace():
    """Large amounts come and go: what is left is exact, though it could not be told apart while they were there."""
    amounts = [2.0**90, 2.0**20, 2.0**-40, 2.0**-41, 1.0]
    for window, left in itertools.product((sb.last, lambda n: sb.last(n, every=1)), range(1, 6)):
        monitor = sb.Monitor(sb.TopKGroups(k=1, id="o", value="x", window=window(left)))
        monitor.push({"o": [1] * 5, "x": amounts})
        assert monitor.top()["score"].to_pylist() == [math.fsum(amounts[-left:])]


def test_finish_of_a_stream_without_rows():
    query, model = pair(2, "time-7-3", "sum", "many")
    monitor = sb.Monitor(query)
    monitor.push(make("empty"))
    model.push(make("empty"))
    finish(monitor, model, make("empty").column_names)

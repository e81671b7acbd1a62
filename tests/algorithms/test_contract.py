"""What every algorithm promises, tested on every algorithm that the package holds: a new one needs no new test."""

import itertools
import zlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from tests.support import oracle, streams
from tests.support.cases import (
    ALGORITHMS,
    EXACT,
    LONG,
    ONE_OF_EACH,
    WINDOWS,
    agree,
    compare_stats,
    finish,
    follow,
    kind,
    pair,
    run,
    served,
    together,
)

# Streams that lose many rows are among those that are tried.
pytestmark = pytest.mark.filterwarnings("ignore::skyband.DataWarning")

TIES = ("newest", "all")
CASES = [(*case, stream) for case in served() for stream in streams.STREAMS]
ALIKE = [pair for pair in itertools.combinations(WINDOWS, 2)
         if len({(kind(WINDOWS[name]), "time" in WINDOWS[name]) for name in pair}) == 1]  # fmt: skip
ROOM = {"scase": 5}  # times: arrays that wait with room for more, which is not saved
FEW = ("random", "tied", "jittered_tied", "broken")


def one_of(choices, *case):
    """One of the choices, which are thus spread evenly over the cases: not every case needs all of them."""
    return choices[zlib.crc32("/".join(case).encode()) % len(choices)]


def test_algorithms_are_found():
    assert {"hopping", "arrival"} == set().union(*(ALGORITHMS[name].serves for name in EXACT))
    for name, algorithm in ALGORITHMS.items():
        assert name == name.lower() == algorithm.name
        assert algorithm.serves and algorithm.serves <= {"hopping", "arrival"}


@pytest.mark.parametrize(("algorithm", "window", "stream"), CASES)
def test_equals_the_oracle(algorithm, window, stream):
    k, ties = one_of(list(itertools.product((1, 3, 50), TIES)), algorithm, window, stream)
    query, model = pair(k, window, ties=ties, algorithm=algorithm)
    follow(sb.Monitor(query), model, streams.cut(streams.make(stream)))


@pytest.mark.parametrize(("algorithm", "window"), served())
def test_ascending_computed_score_row_by_row(algorithm, window):
    query, model = pair(one_of((1, 2, 8), algorithm, window), window, "abs(x - y) ASC", algorithm=algorithm)
    follow(sb.Monitor(query), model, streams.one_by_one(streams.make("jittered_tied", 1, 50)))


@pytest.mark.parametrize(("algorithm", "window"), served(ONE_OF_EACH))
@pytest.mark.parametrize("partition_by", [("g",), ("g", "h"), ("h", "g")], ids="/".join)
@pytest.mark.parametrize("stream", FEW)
def test_partitions(algorithm, window, partition_by, stream):
    query, model = pair(2, window, partition_by=partition_by, algorithm=algorithm)
    follow(sb.Monitor(query), model, streams.cut(streams.make(stream), 1))


@pytest.mark.parametrize(("algorithm", "window"), served(ONE_OF_EACH))
@pytest.mark.parametrize("where", ["y > 0", "g = 'a' OR h IS NULL"])
def test_where_and_select(algorithm, window, where):
    query, model = pair(3, window, where=where, select=("y", "id"), partition_by=("g",), algorithm=algorithm)
    follow(sb.Monitor(query), model, streams.cut(streams.make("broken"), 2))


@pytest.mark.parametrize(("algorithm", "window"), served([w for w in WINDOWS if "time" not in w]))
@pytest.mark.parametrize("reach", [0, 4, 200], ids=lambda reach: f"moved{reach}")
def test_sequence_column(algorithm, window, reach):
    query, model = pair(3, window, on="seq", algorithm=algorithm)
    follow(sb.Monitor(query), model, streams.cut(streams.numbered(streams.make("tied"), (), reach)))


@pytest.mark.parametrize(("algorithm", "window"), served(["count-7-3", "arrivals-13"]))
@pytest.mark.parametrize("stream", ["tied", "broken"])
def test_sequence_column_with_partitions_and_holes(algorithm, window, stream):
    query, model = pair(2, window, on="seq", partition_by=("g",), where="y > 0", algorithm=algorithm)
    table = streams.numbered(streams.make(stream), ("g",), 9)
    follow(sb.Monitor(query), model, streams.cut(table))


@pytest.mark.parametrize(("algorithm", "window"), served(["count-7-3", "arrivals-13"]))
@pytest.mark.parametrize("late", [0, 2, 30])
def test_sequence_column_that_waits_no_longer_than_late(algorithm, window, late):
    query, model = pair(2, window, on="seq", late=late, algorithm=algorithm)
    table = streams.numbered(streams.make("tied"), (), 12)
    with_gaps = table.filter([number % 11 != 3 for number in table["seq"].to_pylist()])
    follow(sb.Monitor(query), model, streams.cut(with_gaps))


@pytest.mark.parametrize(("algorithm", "window"), served())
def test_snapshots_of_fewer_and_of_shorter_windows(algorithm, window):
    ties = one_of(TIES, algorithm, window)
    query, model = pair(4, window, ties=ties, partition_by=("g",), algorithm=algorithm)
    monitor, spans = sb.Monitor(query), spans_of(query.window, algorithm)
    for batch in streams.cut(streams.make("jittered_tied"), 3, 5):
        monitor.push(batch)
        model.push(batch)
        for k, span in [(None, None), *itertools.product((1, 4), spans)]:
            last = f"{span} microseconds" if span and query.window.time else span
            agree(monitor.top(k=k, last=last), model.top(k, span), model.top_header(batch.column_names))
        monitor.check()


@pytest.mark.parametrize(("algorithm", "window"), served(ONE_OF_EACH, sorted(ALGORITHMS)))
@pytest.mark.parametrize("stream", ["random", "jittered_tied", "broken", "bursty"])
def test_the_way_a_stream_is_cut_does_not_matter(algorithm, window, stream):
    query, _ = pair(3, window, partition_by=("g",), algorithm=algorithm, error=tolerance(algorithm))
    table = streams.make(stream, size=50)
    whole = run(sb.Monitor(query), [table])
    assert whole
    assert run(sb.Monitor(query), streams.one_by_one(table)) == whole
    for seed in range(2):
        assert run(sb.Monitor(query), streams.cut(table, seed)) == whole


@pytest.mark.parametrize(("algorithm", "window"), served(ONE_OF_EACH, sorted(ALGORITHMS)))
@pytest.mark.parametrize("stream", ["random", "straggling", "broken"])
def test_saving_and_loading_does_not_matter(algorithm, window, stream):
    query, _ = pair(3, window, partition_by=("g",), algorithm=algorithm, error=tolerance(algorithm))
    stays = moves = sb.Monitor(query)
    for batch in streams.cut(streams.make(stream), 4):
        moves, stays = sb.Monitor.loads(moves.dumps(), query), moves
        assert moves.dumps() == stays.dumps()
        answers = [(oracle.rows(m.push(batch)), oracle.rows(m.top())) for m in (stays, moves)]
        assert answers[0] == answers[1]
        assert replace(moves.stats, bytes=0) == replace(stays.stats, bytes=0)
        room = ROOM.get(algorithm, 1.1)  # Arrow packs its masks anew
        assert 1 / room <= moves.stats.bytes / stays.stats.bytes <= room
        moves.check()
    assert oracle.rows(stays.flush()) == oracle.rows(moves.flush())


@pytest.mark.parametrize(("algorithm", "window"), served(["count-7-3", "arrivals-13"]))
def test_saving_and_loading_while_rows_wait_for_their_number(algorithm, window):
    query, model = pair(3, window, on="seq", partition_by=("g",), algorithm=algorithm)
    monitor = sb.Monitor(query)
    for batch in streams.cut(streams.numbered(streams.make("tied"), ("g",), 20)):
        follow(monitor, model, [batch], flush=False)
        monitor = sb.Monitor.loads(monitor.dumps())
    finish(monitor, model, batch.column_names)


@pytest.mark.parametrize(("algorithm", "window"), served(ONE_OF_EACH))
def test_memory_stays_bounded(algorithm, window):
    """Over many windows: never more objects than a window can hold, and no array that grows with the stream."""
    query, model = pair(3, window, algorithm=algorithm)
    monitor, sizes = sb.Monitor(query), []
    for batch in streams.cut(streams.make("jittered", size=1500), 5, 60):
        monitor.push(batch)
        model.push(batch)
        model.objects[()] = [o for o in model.objects[()] if model.reach(o)]
        compare_stats(monitor.stats, model)
        arrays = sum(array.nbytes for _, array in monitor.arrays())
        assert monitor.stats.bytes >= arrays
        sizes.append(arrays)
    assert max(sizes[30:]) <= 2 * max(sizes[:30])


@pytest.mark.parametrize(("algorithm", "window"), served(ONE_OF_EACH, sorted(ALGORITHMS)))
def test_what_is_held_is_counted(algorithm, window):
    """Candidates and bytes are those of the arrays: of the state, and of the columns kept beside it."""
    query, _ = pair(3, window, algorithm=algorithm, error=tolerance(algorithm))
    monitor = sb.Monitor(query)
    (pipeline,) = monitor.pipelines
    for batch in streams.cut(streams.make("jittered_tied"), 7):
        first = pipeline.intake.accepted
        monitor.push(batch)
        held = set(pipeline.algorithm.held().tolist())
        assert monitor.stats.candidates == len(held)
        assert pipeline.algorithm.held(first).tolist() == sorted(number for number in held if number >= first)
        assert held <= set(pipeline.store.arrival.tolist())
        arrays = sum(array.nbytes for _, array in monitor.arrays())
        columns = sum(buffer.size for column in pipeline.store.table.columns for chunk in column.chunks
                      for buffer in chunk.buffers() if buffer is not None)  # fmt: skip
        assert arrays + pipeline.store.arrival.nbytes <= monitor.stats.bytes
        assert monitor.stats.bytes <= ROOM.get(algorithm, 1) * (arrays + pipeline.store.arrival.nbytes + columns)


OPTIONAL = [name for name in EXACT if ALGORITHMS[name].options]
OPTIONS = {"buffer": (1, 2, 4), "gamma": (0, 0.1, 2), "sigma": (0.5, 0.01), "cells": (1, 2, 5)}


@pytest.mark.parametrize(("algorithm", "window"), served(ONE_OF_EACH, OPTIONAL))
@pytest.mark.parametrize("ties", TIES)
def test_options_do_not_change_the_answer(algorithm, window, ties):
    """Small buffers and coarse grids, so that what is rare with the defaults happens all the time."""
    assert ALGORITHMS[algorithm].options.keys() <= OPTIONS.keys()
    for name in ALGORITHMS[algorithm].options:
        for setting in OPTIONS[name]:
            query, model = pair(2, window, ties=ties, algorithm=f"{algorithm}({name}={setting})")
            follow(sb.Monitor(query), model, streams.cut(streams.make("jittered_tied"), 8))


@pytest.mark.parametrize(("algorithm", "window"), served(["time-7-3", "arrival-time-9"]))
def test_partitions_that_come_and_go(algorithm, window):
    """Thousands of keys of which few are alive at a time, so that old ones are forgotten and numbers given anew."""
    query, model = pair(1, window, partition_by=("key",), select=("id",), late=0, algorithm=algorithm)
    n, rng = 2600, np.random.default_rng(0)
    key = np.arange(n) - rng.choice([0, 0, 0, 1, 2, 7], n)
    times = pa.array(np.arange(n) * 100_000, "timestamp[us]")
    table = pa.table({"id": range(n), "x": rng.random(n), "key": key, "ts": times})
    monitor, everything = sb.Monitor(query), []
    for i, batch in enumerate(streams.cut(table, 9, 12)):
        everything += oracle.rows(monitor.push(batch))
        monitor.check()
        if i % 4 == 0:
            monitor = sb.Monitor.loads(monitor.dumps())
    assert everything + oracle.rows(monitor.flush()) == model.push(table) + model.flush()
    if query.window.hopping:
        assert monitor.stats.candidates == 0


@pytest.mark.parametrize(("algorithm", "window"), served(LONG))
@pytest.mark.parametrize("k", [3, 300])
def test_long_streams(algorithm, window, k):
    """Windows of thousands, larger than any buffer is at first: one row a second, so numbers and times are alike."""
    query, _ = pair(k, window, select=("id",), algorithm=algorithm)
    n, rng = 9_000, np.random.default_rng(k)
    score = rng.normal(size=n) + np.sin(np.arange(n) / 700)
    table = pa.table({"id": range(n), "x": score, "ts": pa.array(np.arange(n) * streams.SECOND, "timestamp[us]")})
    monitor, shown, ends = sb.Monitor(query), set(), set()

    def best(low, high):
        return sorted(range(max(0, low), min(high, n)), key=lambda i: -score[i])[:k]

    for start in range(0, n, 750):
        emitted = oracle.rows(monitor.push(table.slice(start, 750)))
        if query.window.hopping:
            unit = streams.SECOND if query.window.time else 1
            for end, rows in itertools.groupby(emitted, key=lambda row: row[1] // unit):
                assert [row[-1] for row in rows] == best(end - 2_400, end)
                ends.add(end)
        else:
            for _, op, _, number in emitted:
                (shown.add if op == "+" else shown.remove)(number)
            assert shown == set(best(start + 750 - 2_500, start + 750))
            assert monitor.top()["id"].to_pylist() == best(start + 750 - 2_500, start + 750)
        monitor.check()
    assert ends == (set(range(300, n, 300)) | (set() if query.window.time else {n}) if query.window.hopping else set())


@pytest.mark.parametrize(
    ("algorithm", "windows"),
    [pytest.param(name, windows, id=f"{name}-{'+'.join(windows)}") for windows in ALIKE for name in sorted(EXACT)
     if ALGORITHMS[name].several and kind(WINDOWS[windows[0]]) in ALGORITHMS[name].serves],
)  # fmt: skip
def test_several_queries_share_an_algorithm(algorithm, windows):
    shapes = [(k, window, ties) for (k, window), ties in zip([(1, windows[0]), (5, windows[1]), (2, windows[0])],
                                                             ("newest", "newest", "all"), strict=True)]  # fmt: skip
    together([pair(k, window, ties=ties, algorithm=algorithm) for k, window, ties in shapes], "jittered_tied")


def spans_of(window, algorithm):
    """Lengths of shorter windows that the algorithm knows: a few, from the shortest to the whole."""
    step = window.slide if window.hopping and not ALGORITHMS[algorithm].any_last else 1
    known = range(window.extent, 0, -step)
    return sorted({known[-1], known[len(known) // 2], known[len(known) // 3], known[0]})


def tolerance(algorithm):
    return 0.0 if ALGORITHMS[algorithm].exact else 0.05

"""Top-k dominating points: every algorithm against brute force."""

import itertools
import zlib

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.algorithms.contract import NOTHING, Rows
from skyband.algorithms.dominating.points import dominated as count_dominated
from skyband.algorithms.dominating.points import k_skyband
from skyband.families import FAMILIES
from skyband.storage.blocks import ARRIVAL, renumbered
from tests.support import oracle, streams
from tests.support.cases import ONE_OF_EACH, WINDOWS, follow
from tests.support.oracle_dominating import TopKDominating

# Streams that lose many rows are among those that are tried.
pytestmark = pytest.mark.filterwarnings("ignore::skyband.DataWarning")

ALGORITHMS = FAMILIES["dominating"].algorithms()
EXACT = sorted(name for name, algorithm in ALGORITHMS.items() if algorithm.exact)
DATA = ("independent", "anticorrelated", "correlated", "clustered", "duplicated", "constant")
DIMENSIONS = {
    "x+y": ({"x": "min", "y": "max"}, [(lambda r: r["x"], "min"), (lambda r: r["y"], "max")]),
    "abs(y)+x": ({"abs(y)": "max", "x": "max"},
                 [(lambda r: None if r["y"] is None else abs(r["y"]), "max"), (lambda r: r["x"], "max")]),
    "y": ({"y": "min"}, [(lambda r: r["y"], "min")]),
}  # fmt: skip


def pair(k, window, dimensions="x+y", algorithm="auto", on=None, late=None, **rest):
    """The query and its oracle. ``dimensions``: a name, or how many columns x0, x1, … there are."""
    spec = WINDOWS[window] if isinstance(window, str) else window
    time, extent, every = spec.get("time", False), spec["extent"], spec.get("every")
    if time:
        on, late = "ts", streams.LATE if late is None else late
    span = (lambda length: f"{length} microseconds") if time else int
    last = sb.last(span(extent), every=None if every is None else span(every), on=on,
                   late=None if late is None else span(late))  # fmt: skip
    if isinstance(dimensions, int):
        names = {f"x{j}": "max" if j % 3 == 2 else "min" for j in range(dimensions)}
        of_row = [((lambda r, n=n: r[n]), sense) for n, sense in names.items()]
    else:
        names, of_row = DIMENSIONS[dimensions]
    query = sb.TopKDominating(k=k, dimensions=names, window=last, algorithm=algorithm,
                              **{("partition_by" if n == "partition" else n): v for n, v in rest.items()})  # fmt: skip
    where = {None: None, "y > 0": lambda r: r["y"] is not None and r["y"] > 0}[rest.pop("where", None)]
    return query, TopKDominating(k, of_row, extent, every=every, time=time, on=on, late=late, where=where, **rest)


def points(kind, n, d, seed=0):
    """n points of d dimensions; those of "max" dimensions are turned, so that the kind is what it says."""
    rng = np.random.default_rng([seed, n, d])
    if kind == "constant":
        x = np.ones((n, d))
    elif kind == "duplicated":
        x = rng.integers(0, 3, (n, d)).astype(float)
    elif kind == "clustered":
        x = rng.random((3, d))[rng.integers(3, size=n)] + rng.normal(0, 0.05, (n, d))
    elif kind == "correlated":
        x = rng.random((n, 1)) + rng.normal(0, 0.03, (n, d))
    elif kind == "anticorrelated":
        x = rng.random((n, d))
        x += (d / 2 + rng.normal(0, 0.05, (n, 1)) - x.sum(axis=1, keepdims=True)) / d
    else:
        x = rng.random((n, d))
    return x * np.array([-1.0 if j % 3 == 2 else 1.0 for j in range(d)])


def table(x):
    n = x.shape[0]
    times = pa.array(np.arange(n) * streams.SECOND // 2, "timestamp[us]")
    return pa.table({"id": range(n), "ts": times, **{f"x{j}": column for j, column in enumerate(x.T)}})


def one_of(choices, *case):
    return choices[zlib.crc32("/".join(map(str, case)).encode()) % len(choices)]


CASES = [(a, w, s) for a in EXACT for w in WINDOWS for s in streams.STREAMS if one_of(range(6), a, w, s) == 0]


@pytest.mark.parametrize(("algorithm", "window", "stream"), CASES)
def test_equals_the_oracle(algorithm, window, stream):
    k, ties = one_of(list(itertools.product((1, 3, 50), ("newest", "all"))), algorithm, window, stream)
    dimensions = one_of(list(DIMENSIONS), window, stream, algorithm)
    query, model = pair(k, window, dimensions, algorithm, ties=ties)
    follow(sb.Monitor(query), model, streams.cut(streams.make(stream, size=None if stream in SMALL else 60), pieces=5))


SMALL = ("tiny", "empty", "duplicates")


@pytest.mark.parametrize(("algorithm", "kind"), list(itertools.product(EXACT, DATA)))
@pytest.mark.parametrize("d", range(1, 7))
def test_kinds_of_data(algorithm, kind, d):
    """Every arrival, or every slide: the whole answer at each of them."""
    window = dict(extent=40) if d % 2 else dict(extent=40, every=7)
    k, ties = one_of([(4, "newest"), (9, "newest"), (4, "all")], algorithm, kind, d)
    query, model = pair(k, window, d, algorithm, ties=ties)
    follow(sb.Monitor(query), model, streams.cut(table(points(kind, 90, d)), pieces=3), top=False)


def naive(x, low, high, k):
    part = x[low:high]
    score = ((part[:, None] <= part).all(axis=2) & (part[:, None] < part).any(axis=2)).sum(axis=1)
    order = np.lexsort((np.arange(part.shape[0]), score))[::-1][:k]
    return [(int(low + i), float(score[i])) for i in order]


@pytest.mark.parametrize("algorithm", EXACT)
@pytest.mark.parametrize(("kind", "d"), [("independent", 3), ("anticorrelated", 4), ("duplicated", 2)])
def test_longer_streams(algorithm, kind, d):
    """Windows large enough for a grid of many cells; snapshots at every hundredth arrival."""
    x = points(kind, 1200, d) * np.array([-1.0 if j % 3 == 2 else 1.0 for j in range(d)])
    query = sb.TopKDominating(k=12, dimensions={f"x{j}": "min" for j in range(d)}, window=sb.last(500),
                              select=("id",), algorithm=algorithm)  # fmt: skip
    monitor, shown = sb.Monitor(query), set()
    for start in range(0, 1200, 100):
        for row in monitor.push(
            table(x[start : start + 100]).set_column(0, "id", [range(start, start + 100)])
        ).to_pylist():
            (shown.add if row["op"] == "+" else shown.remove)(row["id"])
        expected = naive(x, max(0, start + 100 - 500), start + 100, 12)
        assert [(r["id"], r["score"]) for r in monitor.top().to_pylist()] == expected
        assert shown == {number for number, _ in expected}
        if start % 500 == 0:
            monitor.check()
        if start == 600:
            monitor = sb.Monitor.loads(monitor.dumps())


@pytest.mark.parametrize(("algorithm", "window"), list(itertools.product(EXACT, ONE_OF_EACH)))
def test_partitions(algorithm, window):
    stream = one_of(("random", "tied", "jittered_tied", "broken"), algorithm, window)
    query, model = pair(2, window, algorithm=algorithm, partition=("g",), where="y > 0")
    follow(sb.Monitor(query), model, streams.cut(streams.make(stream), 1))


@pytest.mark.parametrize(("algorithm", "window"), list(itertools.product(EXACT, ["count-7-3", "arrivals-13"])))
def test_sequence_column(algorithm, window):
    query, model = pair(3, window, algorithm=algorithm, on="seq", partition=("h",))
    follow(sb.Monitor(query), model, streams.cut(streams.numbered(streams.make("tied"), ("h",), 9)))


@pytest.mark.parametrize(("algorithm", "window"), list(itertools.product(EXACT, ONE_OF_EACH)))
def test_snapshots_and_saving(algorithm, window):
    query, model = pair(4, window, algorithm=algorithm, partition=("g",))
    monitor = sb.Monitor(query)
    for batch in streams.cut(streams.make("jittered_tied"), 3, 6):
        assert oracle.rows(monitor.push(batch)) == model.push(batch)
        monitor = sb.Monitor.loads(monitor.dumps())
        monitor.check()
        for k, part in itertools.product((1, 4), (1, 2, 3)):
            span = query.window.extent // part
            last = f"{span} microseconds" if query.window.time else span
            assert oracle.rows(monitor.top(k=k, last=last)) == model.top(k, span)
    assert oracle.rows(monitor.flush()) == model.flush()


@pytest.mark.parametrize(("algorithm", "window"), list(itertools.product(EXACT, ONE_OF_EACH)))
def test_memory_stays_bounded(algorithm, window):
    query, _ = pair(3, window, algorithm=algorithm)
    monitor, sizes = sb.Monitor(query), []
    for batch in streams.cut(streams.make("jittered", size=1200), 5, 60):
        monitor.push(batch)
        sizes.append(sum(array.nbytes for _, array in monitor.arrays()))
    assert max(sizes[30:]) <= 2 * max(sizes[:30])


@pytest.mark.parametrize(("algorithm", "window"), list(itertools.product(sorted(ALGORITHMS), ONE_OF_EACH)))
def test_what_is_held_is_counted(algorithm, window):
    """Candidates are those of the state, and what the last batch left there is told without a walk over the window."""
    query, _ = pair(3, window, algorithm=algorithm, partition=("g",))
    monitor = sb.Monitor(query)
    (pipeline,) = monitor.pipelines
    for batch in streams.cut(streams.make("jittered_tied"), 7):
        first = pipeline.intake.accepted
        monitor.push(batch)
        held = pipeline.algorithm.held().tolist()
        assert held == sorted(set(held)) and monitor.stats.candidates == len(held)
        assert pipeline.algorithm.held(first).tolist() == [number for number in held if number >= first]
        assert sum(array.nbytes for _, array in pipeline.algorithm.arrays()) <= pipeline.algorithm.nbytes
        monitor.check()


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_arrivals_may_be_numbered_anew(algorithm):
    """Each part of the state says which of its columns hold arrival numbers."""
    query, _ = pair(3, dict(extent=50), 2, algorithm)
    plain, numbered = (FAMILIES["dominating"].algorithms()[query.algorithm](query) for _ in range(2))
    x, shift = points("independent", 200, 2), 1000
    for low in range(0, 200, 20):
        arrival = np.arange(low, low + 20)
        rows = Rows(np.zeros(20), arrival, NOTHING, arrival, 0, 0, x[low : low + 20])
        (expected,) = plain.update(rows, 0)
        (told,) = numbered.update(rows._replace(arrival=arrival if low <= 100 else arrival + shift), 0)
        later = shift * (low > 100)
        assert told.arrival.tolist() == (expected.arrival + later).tolist()
        assert told.trigger.tolist() == (expected.trigger + later).tolist()
        assert (told.op == expected.op).all() and (told.score == expected.score).all()
        if low == 100:
            numbered.states[0] = renumbered(numbered.states[0], ARRIVAL, np.arange(200) + shift)
        numbered.check()
    assert numbered.held().tolist() == (plain.held() + shift).tolist()


def moving(kind, n, d=3):
    x, age = np.random.default_rng(4).random((n, d)), np.arange(n)[:, None]
    return {"rising": x + age, "falling": x - age, "leaping": x + age // 1_000 % 2 * 9, "constant": x * 0,
            "duplicated": np.round(2 * x)}[kind]  # fmt: skip


def watched(algorithm, n, d=3, **rest):
    return sb.Monitor(sb.TopKDominating(k=8, dimensions={f"x{j}": "min" for j in range(d)}, window=sb.last(n),
                                        select=("id",), algorithm=algorithm, **rest))  # fmt: skip


@pytest.mark.parametrize(("kind", "most"), [("rising", 2_000), ("falling", 2_500), ("constant", 500),
                                            ("duplicated", 500)])  # fmt: skip
def test_comparisons_per_arrival(kind, most):
    """The grid follows the points, and equal points are counted once: no stream makes every arrival a scan."""
    n = 4_000
    monitor, rows = watched("cla", n), table(moving(kind, 4 * n))
    for low in range(0, 4 * n, n // 4):
        if low == 2 * n:
            monitor.pipelines[0].algorithm.work[:] = 0
        monitor.push(rows.slice(low, n // 4))
    assert monitor.pipelines[0].algorithm.work[0].comparisons <= most * 2 * n


@pytest.mark.parametrize("algorithm", EXACT)
@pytest.mark.parametrize("kind", ["rising", "falling", "leaping", "constant"])
@pytest.mark.parametrize("pieces", [1, 60])
def test_the_grid_follows(algorithm, kind, pieces):
    """Streams that leave the grid behind, in one batch that is many windows long or in many: the grid is laid anew."""
    n, total = 400, 2_500
    monitor, x = watched(algorithm, n), moving(kind, total)
    shown, at = set(), 0
    for batch in streams.cut(table(x), pieces=pieces):
        changes = monitor.push(batch).to_pylist()
        at += batch.num_rows
        for row in changes:
            (shown.add if row["op"] == "+" else shown.remove)(row["id"])
        expected = naive(x, max(0, at - n), at, 8)
        assert [(r["id"], r["score"]) for r in monitor.top().to_pylist()] == expected
        assert shown == {number for number, _ in expected}
    monitor.check()
    cells = monitor.pipelines[0].algorithm.states[0].space.cells
    assert pieces == 1 or kind == "constant" or cells.members.max() <= 0.75 * n


def test_many_dimensions():
    """The grid has no more cells than points, whatever the number of dimensions."""
    x = np.random.default_rng(0).random((300, 30)).cumsum(axis=0) % 1.0
    for algorithm in EXACT:
        query, model = pair(3, dict(extent=80, every=40), 30, algorithm)
        follow(sb.Monitor(query), model, [table(x)], top=False)


def test_columns_with_odd_names():
    rows = {"odd name": [1.0, 2.0], "a-b": [2.0, 1.0], "a": [5.0, 7.0], "select": [1.0, 1.0]}
    query = sb.TopKDominating(k=1, dimensions={"odd name": "min", "a-b": "max", "select": "min", "a - 1": "min"},
                              window=sb.last(2, every=2), select=("a",))  # fmt: skip
    assert sb.Monitor(query).push(rows).to_pylist() == [
        {"window_start": 0, "window_end": 2, "rank": 1, "score": 1.0, "a": 5.0}
    ]
    with pytest.raises(sb.QueryError, match="odd name"):
        sb.Monitor(query).push({"a": [1.0]})


@pytest.mark.parametrize("wrong", [dict(dimensions={}), dict(dimensions={"x": "least"}), dict(dimensions=["x"]),
                                   dict(dimensions={3: "min"}), dict(policy="quick"), dict(algorithm="nope"),
                                   dict(algorithm="bfa(cells=3)")])  # fmt: skip
def test_bad_queries(wrong):
    with pytest.raises(sb.QueryError):
        sb.Monitor(sb.TopKDominating(**{"k": 1, "dimensions": {"x": "min"}, "window": sb.last(3), **wrong}))


def test_the_local_step():
    """The k-skyband of a union is that of the union of k-skybands, and holds the top k dominating."""
    rng = np.random.default_rng(3)
    for d, k in itertools.product((1, 2, 4), (1, 3, 10)):
        x = rng.integers(0, 20, (200, d)).astype(float)
        dominated = (x[:, None] <= x).all(axis=2) & (x[:, None] < x).any(axis=2)
        band = k_skyband(x, k)
        assert band.tolist() == np.flatnonzero(dominated.sum(axis=0) < k).tolist()
        assert count_dominated(x[band], x).tolist() == dominated.sum(axis=1)[band].tolist()
        assert set(np.argsort(-dominated.sum(axis=1), kind="stable")[:k]) <= set(band)
        halves = np.concatenate([k_skyband(x[:90], k), 90 + k_skyband(x[90:], k)])
        assert halves[k_skyband(x[halves], k)].tolist() == band.tolist()
        age = np.arange(200)
        before = dominated | (x[:, None] == x).all(axis=2) & (age[:, None] > age)
        newest = k_skyband(x, k, age)
        assert newest.tolist() == np.flatnonzero(before.sum(axis=0) < k).tolist()
        assert {number for number, _ in naive(x, 0, 200, k)} <= set(newest)
        halves = np.concatenate([k_skyband(x[:90], k, age[:90]), 90 + k_skyband(x[90:], k, age[90:])])
        assert halves[k_skyband(x[halves], k, age[halves])].tolist() == newest.tolist()

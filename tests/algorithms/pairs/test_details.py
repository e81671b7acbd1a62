"""What is particular to top-k pairs: their scores, plans, shared skybands, colours that come and go, and errors."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.algorithms.pairs.compiler import compiled
from skyband.algorithms.pairs.monotone import recognised
from skyband.kernels.pairs.two_colours import fill
from tests.support import oracle, streams
from tests.support.cases import ONE_OF_EACH, follow, run
from tests.support.pair_cases import ALGORITHMS, COMPILED, CONDITIONS, make, pair

REAL = "abs(a.ts - b.ts) / (abs(a.temp - b.temp) * abs(a.humidity - b.humidity))"


def gathered(query, table, batches=3):
    return run(sb.Monitor(query), streams.cut(table, 1, batches))


@pytest.mark.parametrize("order_by", COMPILED)
@pytest.mark.parametrize("where", [None, "a.id < b.id AND a.g <> b.g", "a.y BETWEEN b.y AND 2 OR a.z > b.z"])
def test_programs_equal_expressions(monkeypatch, order_by, where):
    query, _ = pair(5, "arrivals-13", order_by, where)
    rng = np.random.default_rng(5)
    table = pa.table({
        "id": rng.permutation(60), "g": rng.choice(["u", "v", None], 60),
        "x": rng.normal(size=60), "y": rng.integers(-2, 3, 60), "z": rng.choice([0.1, 0.7, np.inf, -1e300], 60),
    })  # fmt: skip
    assert compiled(query.terms.fit(table.schema)) is not None
    program = gathered(query, table)
    monkeypatch.setattr("skyband.algorithms.pairs.base.compiled", lambda fitted: None)
    assert gathered(query, table) == program


def random_score(rng, depth=3):
    """A random expression as text, and what it means."""
    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.2:
            value = float(rng.integers(1, 9)) / 4
            return str(value), lambda a, b: value
        side, name = rng.choice(["a", "b"]), str(rng.choice(["x", "z"]))
        return f"{side}.{name}", lambda a, b: (a if side == "a" else b)[name]
    (left, x), (right, y) = random_score(rng, depth - 1), random_score(rng, depth - 1)
    return [
        (f"({left} + {right})", lambda a, b: x(a, b) + y(a, b)),
        (f"({left} - {right})", lambda a, b: x(a, b) - y(a, b)),
        (f"({left} * {right})", lambda a, b: x(a, b) * y(a, b)),
        (f"abs({left} - {right})", lambda a, b: abs(x(a, b) - y(a, b))),
        (f"greatest({left}, {right})", lambda a, b: max(x(a, b), y(a, b))),
        (f"({left} / {right})", lambda a, b: quotient(x(a, b), y(a, b))),
    ][rng.integers(6 if depth == 3 else 5)]


def quotient(x, y):
    return None if y == 0 else x / y


@pytest.mark.filterwarnings("ignore::skyband.DataWarning")  # some of the streams are mostly broken
@pytest.mark.parametrize("seed", range(25))
def test_random_functions(seed):
    rng = np.random.default_rng(seed)
    text, meaning = random_score(rng)
    query, model = pair(3, "arrivals-13" if seed % 2 else "time-7-3", algorithm="scase")
    used = [name for name in ("x", "z") if f".{name}" in text]
    model.pair_score, model.smaller = meaning, seed % 3 > 0
    model.score = lambda row: None if any(oracle.bad(row[name]) for name in used) else 0.0
    monitor = sb.Monitor(query.but(order_by=f"{text} {'ASC' if seed % 3 else 'DESC'}"))
    follow(monitor, model, streams.cut(make(["jittered", "jittered_tied", "broken"][seed % 3], seed, 45)))


def test_python_functions():
    text, _ = pair(3, "time-7-3", "abs(a.x - b.x) + abs(a.y - b.y) DESC", "a.id < b.id")
    table = make("random")
    table = table.set_column(table.column_names.index("y"), "y", table["y"].cast(pa.float64()).fill_null(0.0))
    function = text.but(order_by=(lambda a, b: abs(a["x"] - b["x"]) + abs(a["y"] - b["y"]), "desc"))
    assert gathered(function, table) == gathered(text, table)
    with pytest.raises(sb.QueryError, match="there is no column 'w'"):
        sb.Monitor(text.but(order_by=lambda a, b: a["w"])).push(table)


def test_the_papers_real_function():
    """No pair where temperature or humidity agree; timestamps count in seconds."""
    at = [datetime.datetime(2004, 2, 28, 0, 0, second) for second in (0, 1, 2, 4)]
    table = pa.table({"id": range(4), "ts": at, "temp": [20.0, 20.0, 22.0, 21.0], "humidity": [1.0, 3.0, 2.0, 2.0]})
    query = sb.TopKPairs(k=9, order_by=REAL, window=sb.last("1 hour"), select=("a.id", "b.id"))
    monitor = sb.Monitor(query)
    monitor.push(table)
    found = {(row["a_id"], row["b_id"]): row["score"] for row in monitor.top().to_pylist()}
    assert found == {(1, 2): 0.5, (0, 2): 1.0, (1, 3): 3.0, (0, 3): 4.0}
    assert monitor.stats.invalid == 0


def test_rows_without_a_number_that_the_score_needs_are_invalid():
    query = sb.TopKPairs(k=3, order_by="a.x - b.x", window=sb.last(9), where="a.z < b.z")
    monitor = sb.Monitor(query)
    monitor.push({"x": [1.0, None, float("nan"), 2.0], "z": pa.array([None, 1, 2, 3], pa.int64())})
    assert monitor.stats.invalid == 2 and monitor.top().num_rows == 0


@pytest.mark.parametrize(("where", "holds", "more"), [
    ("a.id < b.id", lambda x, y: x < y, pa.array([-(2**63), 2**63 - 1], pa.int64())),
    ("a.id < b.id", lambda x, y: x < y, pa.array([2**63 + 1, 2**64 - 1, 2**63], pa.uint64())),
    (f"a.id > {2**53} AND b.id <= {2**53}", lambda x, y: y <= 2**53 < x, pa.array([], pa.int64())),
])  # fmt: skip
def test_large_integers_are_compared_exactly(where, holds, more):
    ids = [2**53 + 1, 2**53, 2**62 + 1, 2**62, *more.to_pylist()]
    query = sb.TopKPairs(k=99, order_by="a.n - b.n", window=sb.last(9), where=where, select=("a.n", "b.n"))
    monitor = sb.Monitor(query)
    monitor.push({"id": pa.array(ids, more.type), "n": list(range(len(ids)))})
    pairs = {(row["a_n"], row["b_n"]) for row in monitor.top().to_pylist()}
    assert pairs == {(i, j) for i, x in enumerate(ids) for j, y in enumerate(ids) if holds(x, y)}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_k_beyond_all_pairs_takes_no_room(algorithm):
    query = sb.TopKPairs(k=10**9, order_by="abs(a.x - b.x)", window=sb.last(4), algorithm=algorithm)
    monitor = sb.Monitor(query)
    monitor.push({"x": np.arange(50.0)})
    assert monitor.top().num_rows == 6 and monitor.stats.bytes < 1_000_000


@pytest.mark.parametrize("windows", [("arrivals-13", "arrivals-1"), ("count-7-3", "count-20-5"),
                                     ("time-7-3", "time-10-2"), ("arrival-time-9", "arrival-time-1")])  # fmt: skip
@pytest.mark.parametrize("ties", ["newest", "all"])
def test_queries_share_a_skyband(windows, ties):
    pairs = [pair(k, window, ties=ties, name=f"{window}/{k}") for window in windows for k in (1, 4)]
    monitor = sb.Monitor([query for query, _ in pairs])
    assert len(monitor.pipelines) == 1 and monitor.pipelines[0].algorithm.name == "scase"
    for batch in [*streams.cut(make("jittered_tied", 1, 60)), None]:
        table = monitor.flush() if batch is None else monitor.push(batch)
        monitor.check()
        for query, model in pairs:
            mine = [row[1:] for row in oracle.rows(table) if row[0] == query.name]
            assert mine == (model.flush() if batch is None else model.push(batch))


@pytest.mark.parametrize("window", ONE_OF_EACH)
def test_what_is_new_is_found_where_it_is(window):
    """Also where rows are late, and of several partitions; and what has expired is not saved."""
    query, _ = pair(3, window, partition_by=("h",), algorithm="scase")
    monitor, first = sb.Monitor(query), 0
    for batch in streams.cut(make("jittered", 3, 200), 2, 9):
        monitor.push(batch)
        algorithm, held = monitor.pipelines[0].algorithm, monitor.pipelines[0].algorithm.held()
        assert algorithm.held(first).tolist() == held[held >= first].tolist()
        assert algorithm.candidates == held.size
        saved = {name: array.size for name, array in algorithm.arrays()}
        assert saved["state.window.arrival"] + saved["waiting.arrival"] == held.size
        first = monitor.pipelines[0].intake.accepted


def test_colours_that_are_no_longer_in_use_are_forgotten():
    query, model = pair(3, dict(extent=20), different=("g",), same=("h",))
    rng = np.random.default_rng(2)
    n = 6000
    table = pa.table({"id": np.arange(n), "x": rng.random(n), "y": rng.random(n), "g": np.arange(n) // 3,
                      "h": np.arange(n) // 50})  # fmt: skip
    monitor = sb.Monitor(query)
    for start in range(0, n, 250):
        monitor.push(table.slice(start, 250))
        monitor.check()
    assert sum(map(len, monitor.pipelines[0].intake.tags)) < 1500
    assert monitor.stats.candidates == 20
    model.push(table.slice(n - 20, 20))
    assert oracle.rows(monitor.top()) == model.top()


@pytest.mark.parametrize("chromatic", [dict(same=("g",)), dict(different=("g",)), dict(same=("g",), different=("h",)),
                                       dict(different=("g", "h"))], ids=str)  # fmt: skip
def test_colours_that_are_rare_frequent_and_in_runs(chromatic):
    """Windows of several blocks, in which objects of a colour are picked out, or taken with all that lie between."""
    rng = np.random.default_rng(7)
    n = 700
    colour = np.concatenate([rng.integers(2, size=300), np.repeat([0, 2, 1], 60), rng.geometric(0.2, n - 480)])
    table = pa.table({"id": np.arange(n), "x": rng.random(n).round(3), "y": rng.random(n).round(3), "g": colour,
                      "h": rng.integers(3, size=n)})  # fmt: skip
    query, model = pair(4, dict(extent=250, every=150), **chromatic)
    follow(sb.Monitor(query), model, streams.cut(table))


@pytest.mark.parametrize("window", [*ONE_OF_EACH, "arrivals-500"])
@pytest.mark.parametrize("more", [dict(), dict(where="a.id > b.id"), dict(different=("c", "g"), ties="all")], ids=str)
def test_two_colours_apart(monkeypatch, window, more):
    """Objects of two colours, each side by side, as in large windows; late ones, which end that, and none too."""
    monkeypatch.setattr("skyband.algorithms.pairs.scase.SEVERAL", 0)
    monkeypatch.setattr("skyband.algorithms.pairs.scase.RUN", 2)
    laid_out = []
    monkeypatch.setattr(
        "skyband.algorithms.pairs.scase.fill", lambda sides, window: laid_out.append(fill(sides, window))
    )
    for stream in ("jittered_tied", "random"):
        table = make(stream, 1, 70)
        table = table.append_column("c", pa.array(np.random.default_rng(4).choice(["u", "v"], table.num_rows)))
        query, model = pair(3, window, **{"different": ("c",), **more}, algorithm="scase")
        follow(sb.Monitor(query), model, streams.cut(table))
    assert laid_out


@pytest.mark.parametrize("order_by", ["abs(a.x - b.x)", "-2 * abs(a.x - b.x) * abs(a.y - b.y) DESC",
                                      "sqrt(power(a.x - b.x, 2) + (a.y - b.y) * (a.y - b.y))",
                                      "abs(a.x - b.x) - 3 * abs(a.y - b.y)", "abs(a.ts - b.ts) / abs(a.x - b.x)",
                                      "power(abs(b.x - a.x), 3) + power(abs(2 * (a.y - b.y)), 3)",
                                      "greatest(abs(a.x - b.x) / 2, 0.5 * abs(a.y - b.y)) DESC"])  # fmt: skip
def test_global_functions_are_recognised(order_by):
    query = sb.TopKPairs(k=1, order_by=order_by, window=sb.last(100_000))
    assert "algorithm: ta, because the score rises or falls" in sb.explain(query)
    assert "algorithm: scase" in sb.explain(query.but(window=sb.last(100)))
    assert "algorithm: scase" in sb.explain(query.but(different="g"))


@pytest.mark.parametrize("order_by", ["a.x - b.x", "abs(a.x - b.y)", "abs(a.x - b.x) - abs(a.x - b.x) / 2", "a.x * b.x",
                                      "abs(a.x - b.x) * (abs(a.y - b.y) - 1)", "1 - exp(abs(a.x - b.x))",
                                      "1 / (abs(a.x - b.x) - abs(a.y - b.y))", "2 / (1 - abs(a.x - b.x))",
                                      "least(-abs(a.x - b.x), abs(a.y - b.y))", "power(a.x - b.x, 3)"])  # fmt: skip
def test_other_functions_are_not(order_by):
    query = sb.TopKPairs(k=1, order_by=order_by, window=sb.last(100_000))
    assert "algorithm: scase" in sb.explain(query)
    assert recognised(query.terms.fit(pa.schema({"x": pa.float64(), "y": pa.float64()}))) is None


def random_global(rng, depth):
    """A random expression of which many are global: constants and signs of all kinds, operations that jump."""
    if depth == 0:
        name = rng.choice(["x", "y", "z"])
        gap = f"a.{name} - b.{name}"
        gaps = [f"abs({gap})", f"abs({gap}) / 4", f"power({gap}, 2)", f"({gap}) * ({gap})", f"abs(3 * ({gap}))"]
        return str(rng.choice([*gaps, *gaps, *gaps, "2", "0.5", "-1", "0"]))
    left, right = random_global(rng, depth - 1), random_global(rng, depth - 1)
    return str(rng.choice([f"({left} + {right})", f"({left} - {right})", f"({left} * {right})", f"({left} / {right})",
                           f"- ({left})", f"sqrt({left})", f"power({left}, 3)", f"greatest({left}, {right})",
                           f"least({left}, {right})", f"2 / ({left} - {right})"]))  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_what_is_recognised_is_global(seed):
    """TA gives the rows of SCase, with infinite and tied values too."""
    rng = np.random.default_rng(seed)
    n, schema = 2000, pa.schema({"id": pa.int64(), **dict.fromkeys("xyz", pa.float64())})
    while True:
        order_by = random_global(rng, int(rng.integers(1, 4))) + str(rng.choice(["", " DESC"]))
        query = sb.TopKPairs(k=3, order_by=order_by, window=sb.last(700), select=("a.id", "b.id"))
        fitted = query.terms.fit(schema)
        if recognised(fitted) is not None and compiled(fitted) is not None:
            break
    numbers = {name: rng.random(n).round(int(rng.integers(1, 9))) - 0.5 for name in "xyz"}
    numbers["x"][rng.random(n) < 0.02] = np.inf
    numbers["y"][rng.random(n) < 0.02] = -np.inf
    table = pa.table({"id": np.arange(n), **numbers}, schema)
    rows = [gathered(query.but(algorithm=name), table) for name in ("ta", "scase")]
    assert rows[0] == rows[1], order_by


def test_bounds_point_the_right_way():
    query = sb.TopKPairs(k=1, order_by="abs(a.x - b.x) - 3 * abs(a.y - b.y)", window=sb.last(9))
    found = recognised(query.terms.fit(pa.schema({"x": pa.float64(), "y": pa.float64()})))
    assert found.furthest.tolist() == [False, True]


@pytest.mark.parametrize(("fields", "message"), [
    (dict(order_by="x - b.x"), "x: say whose column it is: a.x or b.x"),
    (dict(order_by="a.x - c.x"), "c.x: say whose column it is"),
    (dict(order_by=3), "order_by=3 must be an SQL expression"),
    (dict(where="a.x <"), "where='a.x <' is not an SQL expression"),
    (dict(where=lambda a, b: a), "must be an SQL condition"),
    (dict(same=("a.x",)), "same='a.x' names a column of the stream"),
    (dict(same="x", different=("y", "x")), "no pair can agree and differ"),
    (dict(different=(1,)), "different=.* must be names"),
    (dict(select=("x",)), "say whose column it is"),
    (dict(select=("a.x + b.x",)), "needs a name"),
    (dict(k=0), "k=0 must be a whole number"),
    (dict(ties="some"), "ties='some' is unknown"),
])  # fmt: skip
def test_bad_queries(fields, message):
    with pytest.raises(sb.QueryError, match=message):
        sb.TopKPairs(**{"k": 1, "order_by": "abs(a.x - b.x)", "window": sb.last(5), **fields})


@pytest.mark.parametrize(("fields", "message"), [
    (dict(order_by="a.w - b.x"), "there is no column 'a.w'"),
    (dict(order_by="a.g"), "a score must be a number"),
    (dict(where="a.x + b.x"), "a condition must be true or false"),
    (dict(same="w"), "there is no column 'w'"),
    (dict(algorithm="ta", order_by="a.x * b.x"), "algorithm='ta' takes scores that rise or fall"),
    (dict(algorithm="basic", where="a.g LIKE 'x%'"), "algorithm='basic' takes scores that are arithmetic"),
])  # fmt: skip
def test_queries_that_do_not_fit_the_stream(fields, message):
    query = sb.TopKPairs(**{"k": 1, "order_by": "abs(a.x - b.x)", "window": sb.last(5), **fields})
    with pytest.raises(sb.QueryError, match=message):
        sb.Monitor(query).push({"x": [1.0, 2.0], "g": ["u", "v"]})


def test_names_in_any_case_and_odd_ones():
    query = sb.TopKPairs(k=1, order_by='abs(A.X - b."odd name")', window=sb.last(5), select=('a."odd name"', "B.x"))
    answer = sb.Monitor(query).push({"x": [1.0, 2.0], "odd name": [5.0, 3.0]})
    assert answer.column_names == ["at", "op", "score", "a_odd name", "b_x"] and answer["score"].to_pylist() == [2.0]


@pytest.mark.filterwarnings("ignore::skyband.DataWarning")  # some of the streams are mostly broken
def test_conditions_are_covered():
    assert {"a.h = b.h", "lower(a.g) < b.g"} <= set(CONDITIONS)
    query, model = pair(2, "arrivals-13", where="a.h = b.h", partition_by=("g",))
    follow(sb.Monitor(query), model, streams.cut(make("broken", 3, 60)))

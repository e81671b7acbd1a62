"""Every algorithm over pairs equals brute force, at every slide and every arrival."""

import itertools
import zlib

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from tests.support import oracle, streams
from tests.support.cases import ONE_OF_EACH, WINDOWS, agree, follow, kind, run
from tests.support.pair_cases import ALGORITHMS, COMPILED, CONDITIONS, NOT_GLOBAL, ORDERS, make, pair

# Streams that lose many rows are among those that are tried.
pytestmark = pytest.mark.filterwarnings("ignore::skyband.DataWarning")

TIES = ("newest", "all")
NAMES = sorted(ALGORITHMS)


def served(algorithm, windows=None):
    """Those of the windows that an algorithm serves."""
    return [w for w in windows or SHORT if kind(WINDOWS[w]) in ALGORITHMS[algorithm].serves]


SHORT = [name for name in WINDOWS if "500" not in name and "600" not in name]


def one_of(choices, *case):
    """One of the choices, which are thus spread evenly over the cases: not every case needs all of them."""
    return choices[zlib.crc32("/".join(map(str, case)).encode()) % len(choices)]


@pytest.mark.parametrize("stream", streams.STREAMS)
@pytest.mark.parametrize("algorithm", NAMES)
def test_equals_brute_force(algorithm, stream):
    window = one_of(served(algorithm), algorithm, stream)
    k, ties = one_of(list(itertools.product((1, 3, 50), TIES)), algorithm, window, stream)
    query, model = pair(k, window, ties=ties, algorithm=algorithm)
    follow(sb.Monitor(query), model, streams.cut(make(stream, size=60)))


@pytest.mark.parametrize("order_by", COMPILED)
@pytest.mark.parametrize("algorithm", NAMES)
def test_scoring_functions(algorithm, order_by):
    window = one_of(served(algorithm), algorithm, order_by)
    query, model = pair(3, window, order_by, algorithm=algorithm)
    stream = one_of(("jittered", "jittered_tied", "broken"), order_by, algorithm)
    if algorithm == "ta" and order_by in NOT_GLOBAL:
        with pytest.raises(sb.QueryError, match="algorithm='ta' takes scores that rise or fall"):
            sb.Monitor(query).push(make(stream))
        return
    follow(sb.Monitor(query), model, streams.cut(make(stream, 1, 50)))


@pytest.mark.parametrize("order_by", [order for order in COMPILED if order not in NOT_GLOBAL])
@pytest.mark.parametrize("ties", TIES)
def test_global_functions_on_longer_streams(order_by, ties):
    """Long enough that TA builds its lists several times, and stops before it has met all pairs."""
    rows = {}
    for algorithm in ("scase", "ta"):
        query, _ = pair(5, dict(extent=700), order_by, ties=ties, algorithm=algorithm)
        rng = np.random.default_rng(1)
        numbers = {name: rng.random(2000).round(2 if ties == "all" else 9) for name in "xyz"}
        monitor = sb.Monitor(query)
        rows[algorithm] = run(monitor, streams.cut(pa.table({"id": np.arange(2000), **numbers})))
        monitor.check()
    assert rows["ta"] == rows["scase"]


@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions(where):
    for order_by in ORDERS:
        window = one_of(SHORT, order_by, where)
        query, model = pair(3, window, order_by, where, algorithm="scase")
        follow(sb.Monitor(query), model, streams.cut(make("jittered_tied", 2, 40)))


@pytest.mark.parametrize("window", SHORT)
@pytest.mark.parametrize("chromatic", [("g", ()), ((), "g"), ("h", "g"), ((), "gh"), ("gh", ())], ids=str)
def test_chromatic(window, chromatic):
    same, different = map(tuple, chromatic)
    for algorithm in (name for name in NAMES if served(name, [window])):
        query, model = pair(3, window, same=same, different=different, algorithm=algorithm)
        follow(sb.Monitor(query), model, streams.cut(make("jittered", 3, 50)))


@pytest.mark.parametrize(("algorithm", "window"), [(a, w) for a in NAMES for w in served(a, ONE_OF_EACH)])
def test_partitions_and_all_columns(algorithm, window):
    query, model = pair(2, window, partition_by=("g", "h"), select=None, algorithm=algorithm)
    follow(sb.Monitor(query), model, streams.cut(make("jittered_tied", 4, 60)))


@pytest.mark.parametrize(("algorithm", "window"), [(a, w) for a in NAMES for w in served(a, SHORT)])
def test_snapshots_of_fewer_and_of_shorter_windows(algorithm, window):
    query, model = pair(4, window, ties=one_of(TIES, algorithm, window), algorithm=algorithm)
    monitor, extent = sb.Monitor(query), query.window.extent
    for batch in streams.cut(make("jittered_tied", 5, 50), 3, 5):
        monitor.push(batch)
        model.push(batch)
        for k, span in itertools.product((1, 4), sorted({1, (extent + 1) // 2, extent})):
            last = f"{span} microseconds" if query.window.time else span
            agree(monitor.top(k=k, last=last), model.top(k, span), model.top_header(batch.column_names))


@pytest.mark.parametrize(("algorithm", "window"), [(a, w) for a in NAMES for w in served(a, ONE_OF_EACH)])
def test_cuts_saving_and_loading_do_not_matter(algorithm, window):
    query, _ = pair(3, window, different=("g",), partition_by=("h",), algorithm=algorithm)
    table = make("jittered", 6, 60)
    whole = run(sb.Monitor(query), [table])
    assert whole
    assert run(sb.Monitor(query), streams.one_by_one(table)) == whole
    moves, emitted = sb.Monitor(query), []
    for batch in streams.cut(table, 7):
        stays, moves = moves, sb.Monitor.loads(moves.dumps())
        assert moves.dumps() == stays.dumps()
        emitted += oracle.rows(moves.push(batch))
        moves.check()
    assert emitted + oracle.rows(moves.flush()) == whole


@pytest.mark.parametrize(
    ("algorithm", "window"), [(a, w) for a in NAMES for w in served(a, ["count-7-3", "arrivals-13"])]
)
def test_sequence_column(algorithm, window):
    query, model = pair(3, window, on="seq", algorithm=algorithm)
    table = streams.numbered(make("tied", 8, 50), (), 9)
    follow(sb.Monitor(query), model, streams.cut(table.filter([n % 11 != 3 for n in table["seq"].to_pylist()])))

"""SLA's sorted lists: the Threshold Algorithm finds the best, and the view is filled by it and tunes itself."""

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.kernels.groups.lists import threshold_algorithm
from skyband.kernels.groups.view import ViewMeta
from skyband.storage.blocks import plain
from tests.support import streams
from tests.support.cases import follow
from tests.support.groups_cases import AGGREGATES, NAMES, SUMMED, pair


def table_of(n, x, objects=80, seed=0):
    rng = np.random.default_rng(seed)
    names = pa.array(np.array(NAMES)[rng.integers(0, 3, n)])
    return pa.table({"o": rng.integers(0, objects, n), "x": x(rng, n), "s": names})


def whole_of(monitor):
    algorithm = monitor.pipelines[0].algorithm
    return algorithm.states[0]


@pytest.mark.parametrize(("how", "occurrences"), [
    *((how, "once") for how in AGGREGATES if how != "function"), *((how, "many") for how in SUMMED),
])  # fmt: skip
def test_the_threshold_algorithm_misses_nobody_above_its_bar(how, occurrences):
    low = 0 if how == "product" else -1
    query, _ = pair(3, dict(extent=250), how, occurrences, "sla")
    monitor, stopped = sb.Monitor(query), 0
    for batch in streams.cut(table_of(900, lambda rng, n: rng.uniform(low, 1, n)), 3, 9):
        monitor.push(batch)
        state, spec = whole_of(monitor), monitor.pipelines[0].algorithm.spec
        view, lists = state.view, state.lists
        for wanted in (1, 4, 30, 500):
            found, bar = threshold_algorithm(lists, spec, view.score, view.alive, wanted)
            assert np.unique(found).size == found.size and (view.alive[found] > 0).all()
            outside = np.setdiff1d(np.flatnonzero(view.alive > 0), found)
            assert (view.score[outside] <= bar).all()
            assert found.size >= wanted or bar == -np.inf
            stopped += bar > -np.inf
    assert stopped or how in ("min", "product", "count")  # there, too many tie to stop early


def falling(rng, n):
    return np.arange(n, 0, -1) / 8.0


def test_a_view_that_runs_low_is_filled():
    """Scores fall, so that every best object is an old one: the view loses them and is filled again and again."""
    query, model = pair(3, dict(extent=200), "sum", "once", "sla")
    monitor = sb.Monitor(query)
    follow(monitor, model, streams.cut(table_of(900, falling, objects=600), 1, 8), flush=False)
    assert plain(ViewMeta, whole_of(monitor).view.meta).fills > 5


def test_the_view_grows_where_filling_it_is_dear():
    query, _ = pair(1, dict(extent=2000), "sum", "once", "sla")
    monitor = sb.Monitor(query)
    begins_with = 9  # k + 8
    table = table_of(6000, falling)
    for batch in streams.cut(table.set_column(0, "o", pa.array(np.arange(6000))), 1, 5):
        monitor.push(batch)
        monitor.check()
    assert plain(ViewMeta, whole_of(monitor).view.meta).kmax > 4 * begins_with

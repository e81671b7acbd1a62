"""An algorithm goes on where one for a larger k or a longer window has stopped, as if it had seen all the rows."""

import itertools

import numpy as np
import pytest

import skyband as sb
from skyband.algorithms.contract import Changes, Rows
from tests.support.cases import ALGORITHMS, EXACT

SERVED = [(name, kind) for name in EXACT for kind in sorted(ALGORITHMS[name].takes_over)]
SMALLER = [(6, 24), (2, 24), (6, 12), (2, 8)]  # than k = 6 and an extent of 24


def test_what_takes_over():
    """Only what holds all that a smaller query can ask for; an approximate algorithm has thrown some of it away."""
    assert {("mintopk", "hopping"), ("scase", "arrival"), ("rapf", "arrival")} <= {*SERVED}
    assert all(algorithm.takes_over <= algorithm.serves for algorithm in ALGORITHMS.values())


@pytest.mark.parametrize(("k", "extent"), SMALLER)
@pytest.mark.parametrize("time", [False, True], ids=["count", "time"])
@pytest.mark.parametrize("ties", ["newest", "all"])
@pytest.mark.parametrize(("algorithm", "kind"), SERVED)
def test_as_from_the_start(algorithm, kind, ties, time, k, extent):
    rng = np.random.default_rng([k, extent, time])
    span = (lambda length: f"{length} us") if time else int
    every = span(4) if kind == "hopping" else None

    def made(k, extent):
        window = sb.last(span(extent), every=every)
        query = sb.TopK(k, "x DESC", window, partition_by=("g",), ties=ties, algorithm=algorithm)
        return ALGORITHMS[algorithm](query)

    larger, always = made(6, 24), made(k, extent)
    score, partition = rng.integers(0, 9, 300).astype(float), rng.integers(0, 3, 300)
    position = np.array([np.count_nonzero(partition[:i] == g) for i, g in enumerate(partition)])
    position = np.sort(rng.integers(0, 250, 300)) if time else position
    for low, high in itertools.pairwise([0, 40, 90, 91, 150]):
        for one in (larger, always):
            push(one, score, position, partition, low, high)
    takes = made(k, extent)
    takes.take_over(larger)
    takes.check()
    agree(takes.result(takes.query, k), always.result(always.query, k))
    for low, high in itertools.pairwise([150, 151, 151, 200, 230, 300]):
        (got,), (expected,) = (push(one, score, position, partition, low, high) for one in (takes, always))
        agree(got, expected)
        takes.check()
        agree(takes.result(takes.query, k), always.result(always.query, k))
    rows = takes.held_rows()
    assert (np.diff(rows.arrival) > 0).all() and set(rows.arrival.tolist()) <= set(takes.held().tolist())


def push(algorithm, score, position, partition, low, high):
    part = slice(low, high)
    rows = Rows(score[part], position[part], partition[part], np.arange(low, high))
    return algorithm.update(rows if high > low else Rows(np.empty(0)), int(position[:high].max()))


def agree(got, expected):
    for name, column, other in zip(got._fields, got, expected, strict=True):
        assert column.tolist() == other.tolist(), name


def test_changes_between_rankings():
    """Between the answers of two queries as between those of one query at two moments."""
    window = sb.last(10)
    monitor = sb.Monitor(sb.TopK(3, "x DESC", window, partition_by=("g",)))
    (pipeline,) = monitor.pipelines
    rng, shown = np.random.default_rng(1), set()
    before = pipeline.algorithm.result(pipeline.queries[0], 3)
    for _ in range(20):
        monitor.push({"x": rng.integers(0, 9, 7).astype(float), "g": rng.integers(0, 2, 7)})
        after = pipeline.algorithm.result(pipeline.queries[0], 3)
        changes = Changes.between(before, after)
        assert (np.diff(changes.partition) >= 0).all()
        left, entered = (set(changes.take(changes.op == op).arrival.tolist()) for op in (-1, 1))
        assert left <= shown and not entered & shown
        shown = (shown - left) | entered
        assert shown == set(after.arrival.tolist())
        before = after

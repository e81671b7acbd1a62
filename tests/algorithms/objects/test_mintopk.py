"""MinTopk and PreTopk hold exactly the minimal set, by its definition, and about as many objects as theory says."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.algorithms.contract import Rows
from skyband.algorithms.objects.mintopk import MinTopk
from skyband.algorithms.objects.pretopk import PreTopk

STREAMS = {
    "random": lambda rng, n: rng.random(n),
    "rising": lambda rng, n: np.sort(rng.random(n)),
    "falling": lambda rng, n: np.sort(rng.random(n))[::-1].copy(),
    "constant": lambda rng, n: np.ones(n),
    "tied": lambda rng, n: rng.integers(0, 4, n).astype(float),
}


def predicted(objects, k, ties, ends, extent):
    """Theorem 3.1: the union of the (predicted) top k of these windows, of objects given as (score, time, number)."""
    found = set()
    for end in ends:
        alive = sorted((o for o in objects if end - extent <= o[1] < end), reverse=True)
        found |= {o[2] for i, o in enumerate(alive) if i < k or (ties and o[0] == alive[k - 1][0])}
    return found


@pytest.mark.parametrize("ties", ["newest", "all"])
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize(("k", "extent", "every"), [(1, 6, 2), (3, 12, 4), (2, 7, 3), (5, 30, 1), (4, 4, 4)])
def test_holds_exactly_the_minimal_set(stream, k, extent, every, ties):
    rng = np.random.default_rng(7)
    scores = STREAMS[stream](rng, 90)
    algorithm = MinTopk(sb.TopK(k=k, order_by="x DESC", window=sb.last(extent, every=every), ties=ties))
    pane = algorithm.window.pane
    for start in range(0, scores.size, pane):  # whole panes, so that no row is still open
        algorithm.update(Rows(scores[start : start + pane], first_position=start, first_arrival=start), 0)
        seen = min(start + pane, scores.size)
        if algorithm.state.open.arrival.size:
            continue
        objects = [(scores[i], i, i) for i in range(seen)]
        present = -(-seen // every) * every
        ends = range(present, seen + extent + every, every)  # the present window, and all that will see these objects
        assert set(algorithm.held().tolist()) == predicted(objects, k, ties == "all", ends, extent)


@pytest.mark.parametrize("ties", ["newest", "all"])
@pytest.mark.parametrize("stream", STREAMS)
def test_pretopk_holds_no_other_objects(stream, ties):
    scores = STREAMS[stream](np.random.default_rng(8), 88)  # whole panes
    query = sb.TopK(k=3, order_by="x DESC", window=sb.last(12, every=4), ties=ties)
    minimal, many = MinTopk(query), PreTopk(query)
    for start in range(0, scores.size, 4):
        for algorithm in (minimal, many):
            algorithm.update(Rows(scores[start : start + 4], first_position=start, first_arrival=start), 0)
        assert many.held().tolist() == minimal.held().tolist()


@pytest.mark.parametrize("ties", ["newest", "all"])
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("unit", ["", " microseconds"])
def test_short_and_long_lists(unit, stream, ties):
    """Partitions of a handful and of a thousand objects, a few and many windows a batch, beside SMA."""
    rng = np.random.default_rng([*stream.encode(), *unit.encode(), *ties.encode()])
    n = 2500
    rows = pa.table({"x": STREAMS[stream](rng, n), "g": np.minimum(rng.zipf(1.4, n), 40),
                     "ts": pa.array(np.sort(rng.integers(0, 4000, n)), pa.timestamp("us"))})  # fmt: skip
    extent, every, k = (40, 5, 3) if not unit else (900, 150, 30)
    window = sb.last(f"{extent}{unit}" if unit else extent, every=f"{every}{unit}" if unit else every)
    query = sb.TopK(k=k, order_by="x DESC", window=window, ties=ties, partition_by=("g",))
    monitors = [sb.Monitor(query.but(algorithm=name)) for name in ("mintopk", "sma")]
    cuts = np.unique(np.append(rng.integers(0, n, 9), [0, n]))
    for low, high in itertools.pairwise(cuts):
        answers = [monitor.push(rows.slice(low, high - low)) for monitor in monitors]
        assert answers[0].equals(answers[1])
        monitors[0].pipelines[0].algorithm.check()
    answers = [monitor.flush() for monitor in monitors]
    assert answers[0].equals(answers[1])


def test_time_windows_with_uneven_arrivals_hold_the_minimal_set():
    rng = np.random.default_rng(3)
    times = np.sort(np.concatenate([rng.integers(0, 100, 30), rng.integers(400, 420, 60), rng.integers(420, 900, 30)]))
    scores = rng.random(times.size)
    window = sb.last("60 microseconds", every="20 microseconds")
    algorithm = MinTopk(sb.TopK(k=3, order_by="x DESC", window=window))
    for end in range(20, 960, 20):
        inside = (times >= end - 20) & (times < end)
        numbers = np.flatnonzero(inside)
        algorithm.update(Rows(scores[inside], times[inside], arrival=numbers), end)
        objects = [(scores[i], int(times[i]), int(i)) for i in np.flatnonzero(times < end)]
        expected = predicted(objects, 3, False, range(end + 20, end + 100, 20), 60)
        assert set(algorithm.held().tolist()) == expected


@pytest.mark.parametrize("overlap", [10, 100])
def test_size_on_uniform_scores(overlap):
    """About k·H(win/slide) objects, as measured and derived; not 2k as Theorem 3.2 says."""
    k, slide = 20, 1000
    query = sb.TopK(k=k, order_by="x DESC", window=sb.last(slide * overlap, every=slide))
    sizes = []
    for seed in range(5):
        monitor = sb.Monitor(query)
        scores = np.random.default_rng(seed).random(3 * slide * overlap)
        for start in range(0, scores.size, slide * overlap // 5):
            monitor.push({"x": scores[start : start + slide * overlap // 5]})
            if start >= slide * overlap:
                sizes.append(monitor.stats.candidates)
    harmonic = sum(1 / i for i in range(1, overlap + 1))
    assert np.mean(sizes) == pytest.approx(k * harmonic, rel=0.05)

"""The algorithms for windows that move with every arrival, against brute force; and SMA on hopping windows.

Scores are goodness here (larger is better), as inside the engine. Objects are (score, time, number).
"""

import os
from itertools import pairwise, product

import numpy as np
import pytest

import skyband as sb
from skyband.algorithms.contract import FOREVER, NOTHING, Rows
from skyband.algorithms.objects.filtered import RAPF, RARF, RASF, SAPF, SARF, SASF
from skyband.algorithms.objects.limits import guaranteed_limit, limit
from skyband.algorithms.objects.na import NA
from skyband.algorithms.objects.pa import PA
from skyband.algorithms.objects.ra import RA
from skyband.algorithms.objects.sa import SA
from skyband.algorithms.objects.sma import SMA
from skyband.algorithms.objects.tma import TMA
from skyband.errors import QueryError
from skyband.query import TopK
from skyband.query.windows import last

BUFFERED = (SASF, SARF, SAPF, RASF, RARF, RAPF)
EXACT = (NA, SA, RA, *BUFFERED, TMA, SMA)
RELAXED = (RA, SARF, RASF, RARF, RAPF)

SCORES = {
    "random": lambda rng, n: rng.random(n),
    "rising": lambda rng, n: np.arange(n, dtype=float),
    "falling": lambda rng, n: -np.arange(n, dtype=float),
    "constant": lambda rng, n: np.ones(n),
    "tied": lambda rng, n: rng.integers(0, 4, n).astype(float),
    "saw": lambda rng, n: np.arange(n) % 7.0,
    "extreme": lambda rng, n: rng.choice([np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 5e-324], n),
}
TIMES = {
    "count": lambda rng, n: np.arange(n),
    "steady": lambda rng, n: np.cumsum(rng.integers(0, 3, n)),
    "bursty": lambda rng, n: np.cumsum(rng.choice([0, 0, 0, 0, 0, 1, 5, 40], n)),
    "still": lambda rng, n: np.zeros(n, np.int64),
    "jittered": lambda rng, n: np.cumsum(rng.integers(0, 3, n)) - rng.integers(0, 8, n),
    "straggling": lambda rng, n: np.cumsum(rng.integers(0, 3, n)) - rng.choice([0, 0, 0, 50], n),
}
SHAPES = ((1, 1), (1, 6), (3, 2), (2, 15), (9, 33), (40, 20), (5, 1000))  # k, extent


def top(objects, k, ties):
    ranked = sorted(objects, key=lambda o: (-o[0], -o[1], -o[2]))
    return [o for i, o in enumerate(ranked) if i < k or (ties and o[0] == ranked[k - 1][0])]


def brute_force(scores, times, k, extent, ties):
    """All changes, as (trigger, at, op, number, score), and the objects of the last window."""
    changes, before, window, now = [], [], [], -(10**18)
    for number, (score, time) in enumerate(zip(scores.tolist(), times.tolist())):
        now = max(now, time)
        window = [o for o in [*window, (score, time, number)] if o[1] > now - extent]
        after = top(window, k, ties)
        changes += [(number, time, -1, o[2], o[0]) for o in before if o not in after]
        changes += [(number, time, +1, o[2], o[0]) for o in after if o not in before]
        before = after
    return changes, window


def query(k, extent, time=False, ties=False, every=None, late=0, error=0.0):
    span = (lambda length: f"{length} microseconds") if time else int
    window = last(span(extent), every=every and span(every), late=span(late) if time else None)
    return TopK(k=k, order_by="x DESC", window=window, ties="all" if ties else "newest", error=error)


def needed(kind, counted):
    """The options without which an algorithm refuses a window."""
    return {"fewest": 20, "most": 60} if kind is PA and not counted else {}


def pieces(rng, size, most):
    cuts = [0]
    while cuts[-1] < size:
        cuts.append(min(size, cuts[-1] + int(rng.integers(1, most + 1))))
    return pairwise(cuts)


def rows_of(scores, times, low, high, counted):
    if counted:
        return Rows(scores[low:high], first_position=low, first_arrival=low)
    return Rows(scores[low:high], times[low:high], first_arrival=low)


def run(algorithm, scores, times, counted, rng, most=40):
    changes = []
    for low, high in pieces(rng, scores.size, most):
        (event,) = algorithm.update(rows_of(scores, times, low, high, counted), 0)
        algorithm.check()
        changes += listed(event)
    return changes


def listed(event):
    columns = (event.trigger, event.at, event.op, event.arrival, event.score)
    return list(zip(*(column.tolist() for column in columns)))


def options_for(algorithm, rng, extent, counted):
    """Those that make a difference, now and then."""
    options = {}
    if algorithm in BUFFERED and rng.integers(2):
        options["buffer"] = int(rng.integers(1, (extent + 1) // 2 + 1 if counted else 30))
    if algorithm in RELAXED and rng.integers(2):
        options["gamma"] = float(rng.choice([0, 0.5, 3]))
    if algorithm in (TMA, SMA) and rng.integers(2):
        options["cells"] = int(rng.choice([1, 5]))
    return options


@pytest.mark.parametrize("ties", [False, True], ids=["newest", "all"])
@pytest.mark.parametrize("clock", TIMES)
@pytest.mark.parametrize("stream", SCORES)
def test_equals_brute_force(stream, clock, ties):
    rng = np.random.default_rng([ties, *stream.encode(), *clock.encode()])
    counted = clock == "count"
    for k, extent in SHAPES:
        scores, times = SCORES[stream](rng, 70), TIMES[clock](rng, 70).astype(np.int64)
        changes, window = brute_force(scores, times, k, extent, ties)
        for kind in EXACT:
            options = options_for(kind, rng, extent, counted)
            algorithm = kind(query(k, extent, not counted, ties), **options)
            assert run(algorithm, scores, times, counted, rng) == changes, (kind.name, k, extent, options)
            assert set(algorithm.held().tolist()) <= {o[2] for o in window}
            for wanted, span in ((k, None), (1, None), (k, max(1, extent // 2)), (1, max(1, extent // 3))):
                inside = [o for o in window if o[1] > times.max() - (span or extent)]
                block = algorithm.result(algorithm.query, wanted, span)
                assert block.arrival.tolist() == [o[2] for o in top(inside, wanted, ties)], (kind.name, k, extent)
                assert block.end.tolist() == [times.max() + 1]


@pytest.mark.parametrize("clock", ["count", "bursty", "straggling"])
@pytest.mark.parametrize("kind", [*EXACT, PA])
def test_the_way_a_stream_is_cut_and_saving_in_between_do_not_matter(kind, clock):
    rng = np.random.default_rng(7)
    scores, times = np.round(rng.normal(size=300), 1), TIMES[clock](rng, 300).astype(np.int64)
    asked, options = query(4, 60, clock != "count"), needed(kind, clock == "count")
    whole = kind(asked, **options)
    expected = listed(whole.update(rows_of(scores, times, 0, 300, clock == "count"), 0)[0])
    assert expected
    running, changes = kind(asked, **options), []
    for low, high in pieces(rng, 300, 30):
        (event,) = running.update(rows_of(scores, times, low, high, clock == "count"), 0)
        changes += listed(event)
        arrays = {name: array.copy() for name, array in running.arrays()}
        assert all(array.ndim == 1 for array in arrays.values())
        running = kind(asked, **options)
        running.restore(arrays)
        running.check()
    assert changes == expected
    assert kind in RELAXED or running.held().tolist() == whole.held().tolist()


@pytest.mark.parametrize("kind", [*EXACT, PA])
def test_implied_and_spelled_out_rows_are_the_same(kind):
    scores = np.random.default_rng(3).random(500)
    implied, spelled = (
        Rows(scores, first_position=0, first_arrival=0),
        Rows(scores, first_position=0, first_arrival=0).spelled_out(),
    )
    assert listed(kind(query(3, 50)).update(implied, 0)[0]) == listed(kind(query(3, 50)).update(spelled, 0)[0])


@pytest.mark.parametrize("kind", EXACT)
def test_partitions_do_not_meet(kind):
    rng = np.random.default_rng(4)
    scores, key = rng.random(300), rng.integers(0, 3, 300)
    times = np.zeros(300, np.int64)
    for g in range(3):
        times[key == g] = np.arange((key == g).sum())
    (event,) = kind(query(2, 20)).update(Rows(scores, times, key, np.arange(300)), 0)
    for g in range(3):
        number = np.flatnonzero(key == g)
        changes, _ = brute_force(scores[number], times[number], 2, 20, False)
        expected = [(number[t], at, op, number[n], s) for t, at, op, n, s in changes]
        assert [row for row, of in zip(listed(event), event.partition.tolist()) if of == g] == expected


@pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="too long without the JIT")
@pytest.mark.parametrize("stream", ["random", "walk", "wave"])
@pytest.mark.parametrize("k", [1, 9, 80])
@pytest.mark.parametrize("counted", [True, False], ids=["count", "time"])
def test_large_windows_agree(stream, k, counted):
    """Algorithms that have no structure in common: what they agree on is right."""
    rng, n = np.random.default_rng(k), 40_000
    noise = rng.normal(size=n)
    scores = {"random": noise, "walk": np.cumsum(noise), "wave": np.sin(np.arange(n) / 3000) + noise / 10}[stream]
    times = np.cumsum(rng.integers(0, 3, n)) - rng.choice([0, 0, 0, 1000], n) * rng.integers(0, 3, n)
    answers = []
    for kind in (RAPF, TMA, SMA, RA, SAPF):
        algorithm = kind(query(k, 3000, not counted))
        answers.append(run(algorithm, scores, times, counted, rng, most=15_000))
    assert all(answer == answers[0] for answer in answers)
    assert len(answers[0]) > 10 * k


@pytest.mark.parametrize("ties", [False, True], ids=["newest", "all"])
@pytest.mark.parametrize("clock", ["count", "steady", "straggling"])
def test_sa_holds_the_k_skyband_and_nothing_else(clock, ties):
    rng = np.random.default_rng(11)
    scores, times = rng.integers(0, 60, 400).astype(float), TIMES[clock](rng, 400).astype(np.int64)
    algorithm = SA(query(3, 90, clock != "count", ties))
    for i in range(400):
        algorithm.update(rows_of(scores, times, i, i + 1, clock == "count"), 0)
        if i % 20 == 0:
            _, window = brute_force(scores[: i + 1], times[: i + 1], 3, 90, ties)
            band = [o[2] for o in window if sum(
                p[1:] > o[1:] and (p[0] > o[0] or (p[0] == o[0] and not ties)) for p in window) < 3]  # fmt: skip
            assert algorithm.held().tolist() == sorted(band)


def test_what_is_held_stays_near_the_k_skyband():
    scores = np.random.default_rng(5).random(30_000 if not os.environ.get("NUMBA_DISABLE_JIT") else 3000)
    held = {}
    for kind in (SA, RA, SASF, RAPF):
        algorithm = kind(query(9, 1000), **({"buffer": 100} if kind in BUFFERED else {}))
        for low, high in pieces(np.random.default_rng(6), scores.size, 500):
            algorithm.update(Rows(scores[low:high], first_position=low, first_arrival=low), 0)
        held[kind] = algorithm.candidates
    assert held[SA] <= held[RA] <= 1.2 * held[SA] + 1
    assert held[SASF] <= held[SA] + 100
    assert held[RAPF] <= 1.2 * held[SA] + 100


def test_pa_is_exact_when_its_limit_covers_the_window():
    rng = np.random.default_rng(8)
    for scores, (k, extent) in product((rng.random(100), -np.arange(100.0)), ((5, 8), (9, 4), (1, 1))):
        changes, _ = brute_force(scores, np.arange(100), k, extent, False)
        assert run(PA(query(k, extent)), scores, np.arange(100), True, rng) == changes


def test_pa_takes_its_limit_from_the_rule_or_from_the_promise():
    scores = np.random.default_rng(9).random(5000)
    for error, expected in ((0.0, limit(1000, 100, 0.001)), (0.01, guaranteed_limit(1000, 100, 0.01))):
        algorithm = PA(query(100, 1000, error=error))
        algorithm.update(Rows(scores), 0)
        algorithm.check()
        assert 100 < algorithm.candidates <= 100 + expected
    for sigma, additional in ((0.2, 0), (0.0001, 7)):
        band = PA(query(3, 50), sigma=sigma, additional=additional).band()
        assert band.meta[0].capacity == 3 + limit(50, 3, sigma) + additional


def busy_and_quiet(rng, extent):
    """Positions whose rate changes twentyfold between one stretch and the next, each about as long as the window."""
    lengths = rng.integers(extent // 2, 2 * extent, 80)
    gaps = [np.full(length // gap, gap) for length, gap in zip(lengths, [1, 20] * 40)]
    return np.cumsum(rng.integers(0, 2, sum(map(len, gaps))) * 2 * np.concatenate(gaps))


@pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="too long without the JIT")
@pytest.mark.parametrize("k", [1, 9])
@pytest.mark.parametrize("sigma", [0.05, 0.5])
def test_pa_keeps_its_promise_in_time_windows_whose_rate_varies(k, sigma):
    extent, missed, lengths = 3000, 0, 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        times = busy_and_quiet(rng, extent)
        scores, ends = rng.random(times.size), np.searchsorted(times, times + extent, "right")
        inside = times + extent <= times[-1]
        most = int((np.arange(times.size) + 1 - np.searchsorted(times, times - extent, "right")).max())
        fewest = int((ends - np.searchsorted(times, times, "right"))[inside].min())
        assert most > 10 * fewest
        exact = RAPF(query(k, extent, time=True))
        near = PA(query(k, extent, time=True, error=sigma), fewest=fewest, most=most)
        entered = [
            set(e.arrival[e.op > 0].tolist()) for (e,) in (a.update(Rows(scores, times), 0) for a in (exact, near))
        ]
        missed, lengths = missed + len(entered[0] - entered[1]), lengths + (times[-1] - times[0]) / extent
        assert near.band().meta[0].capacity < most / 2  # it does leave some out
    assert missed < sigma * lengths


@pytest.mark.parametrize("options", ["", "(fewest=5)", "(most=5)", "(fewest=9, most=5)", "(fewest=0.5, most=2)"])
def test_pa_refuses_time_windows_that_may_hold_any_number_of_objects(options):
    asked = query(3, 10, time=True).but(algorithm=f"pa{options}")
    for refuses in (sb.Monitor, sb.explain):
        with pytest.raises(QueryError, match="how many objects any stretch"):
            refuses(asked)
    with pytest.raises(QueryError, match="for time windows"):
        sb.Monitor(query(3, 10).but(algorithm="pa(fewest=5, most=9)"))


@pytest.mark.parametrize(("asked", "says"), [
    (query(3, 10, error=0.2), ["algorithm: pa", "below 0.2 a window length if the stream is in random order"]),
    (query(3, 10).but(algorithm="pa(sigma=0.01)"), ["of about 0.01 a window length"]),
    (query(3, 10).but(algorithm="pa"), ["of about 0.001 a window length"]),
    (query(3, 10, time=True).but(algorithm="pa(fewest=5, most=9, sigma=0.01)"),
     ["below 0.01", "the last 10 microseconds always hold from 5 to 9 objects"]),
    (query(3, 10, time=True, error=0.2), ["algorithm: rapf", "an error of 0.2 is allowed, but", "answers: exact"]),
    (query(3, 10, time=True, error=0.2, late=5), ["algorithm: scase", "an error of 0.2 is allowed, but"]),
])  # fmt: skip
def test_what_is_promised_is_said(asked, says):
    text = sb.explain(asked)
    assert all(words in text for words in says), text


@pytest.mark.parametrize("kind", BUFFERED)
def test_buffers(kind):
    assert kind(query(3, 101)).buffer == 51
    assert kind(query(3, 100_000)).buffer == kind(query(3, 10, time=True)).buffer == 2000
    assert kind(query(3, 101), buffer=51).buffer == 51
    with pytest.raises(QueryError, match=r"buffer=52 must be at most 51"):
        kind(query(3, 101), buffer=52)


@pytest.mark.parametrize(("kind", "options"), [
    (RAPF, {"buffer": 0}), (RAPF, {"buffer": 2.5}), (RA, {"gamma": -0.1}), (RA, {"gamma": np.inf}), (PA, {"sigma": 0}),
    (PA, {"sigma": 1}), (PA, {"additional": -1}), (SMA, {"cells": 0}), (SA, {"gamma": 0.2}), (NA, {"buffer": 9}),
])  # fmt: skip
def test_bad_options_are_refused(kind, options):
    with pytest.raises(QueryError, match=next(iter(options))):
        kind(query(3, 10), **options)


# Hopping windows: SMA


def rankings(objects, k, ties, every, extent, upto):
    """All windows that hold an object and end at or before ``upto``: (end, numbers, scores)."""
    ends = {end for o in objects for end in range((o[1] // every + 1) * every, o[1] + extent + 1, every)}
    answer = []
    for end in sorted(e for e in ends if e <= upto):
        best = top([o for o in objects if end - extent <= o[1] < end], k, ties)
        answer.append((end, [o[2] for o in best], [o[0] for o in best]))
    return answer


def blocks(event):
    parts = [slice(low, high) for low, high in pairwise(event.offset.tolist())]
    return [(end, event.arrival[p].tolist(), event.score[p].tolist()) for end, p in zip(event.end.tolist(), parts)]


@pytest.mark.parametrize("ties", [False, True], ids=["newest", "all"])
@pytest.mark.parametrize("clock", ["count", "steady", "bursty", "still", "jittered"])
@pytest.mark.parametrize("stream", SCORES)
def test_sma_closes_hopping_windows(stream, clock, ties):
    rng = np.random.default_rng([ties, *stream.encode(), *clock.encode()])
    counted = clock == "count"
    for k, extent, every in ((1, 1, 1), (2, 7, 3), (3, 20, 5), (9, 30, 30), (2, 15, 1), (50, 12, 4)):
        scores, times = SCORES[stream](rng, 80), TIMES[clock](rng, 80).astype(np.int64)
        objects = list(zip(scores.tolist(), times.tolist(), range(80)))
        algorithm = SMA(query(k, extent, not counted, ties, every, late=8))
        got, seen, frontier = [], [], 0
        for low, high in pieces(rng, 80, 30):
            frontier = int(times[:high].max()) - 8 if not counted else 0
            (event,) = algorithm.update(rows_of(scores, times, low, high, counted), frontier)
            algorithm.check()
            got += blocks(event)
            seen = objects[:high]
            if counted:
                assert event.trigger.tolist() == [end - 1 for end in event.end.tolist()]
            newest = max(o[1] for o in seen)
            end = -(-(newest + 1) // every) * every if counted else (newest // every + 1) * every
            for span in (extent, max(1, extent // 2)):
                inside = [o for o in seen if end - span <= o[1] < end]
                block = algorithm.result(algorithm.query, k, span)
                assert block.arrival.tolist() == [o[2] for o in top(inside, k, ties)]
                assert block.end.tolist() == [end][: len(inside)]
        (event,) = algorithm.finish()
        got += blocks(event)
        assert got == rankings(objects, k, ties, every, extent, 80 if counted else FOREVER), (k, extent, every)
        assert counted or algorithm.held().size == 0


def test_sma_leaps_over_empty_stretches():
    algorithm = SMA(query(1, 10, True, every=1))
    times = np.array([0, 10**15, 2 * 10**15])
    (event,) = algorithm.update(Rows(np.arange(3.0), times), int(times[-1]))
    assert event.end.tolist() == [*range(1, 11), *range(10**15 + 1, 10**15 + 11)]
    assert algorithm.update(Rows(np.empty(0), NOTHING), 3 * 10**15)[0].arrival.tolist() == [2] * 10
    assert algorithm.candidates == 0 and algorithm.partitions().size == 0

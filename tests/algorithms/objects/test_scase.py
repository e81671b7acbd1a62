"""SCase against brute force: every kind of window, stream, tie rule and batch split; and the facts of its paper."""

import itertools
import math

import numpy as np
import pytest

from skyband.algorithms.contract import Changes, Rows
from skyband.algorithms.objects.scase import SCase
from skyband.errors import QueryError
from skyband.kernels.common import staircase
from skyband.kernels.objects import pst
from skyband.query import TopK
from skyband.query.windows import last
from skyband.storage.blocks import empty, resized

LATE = 6
KINDS = [(time, hopping) for time in (False, True) for hopping in (False, True)]
KIND_IDS = ["count-arrival", "count-hopping", "time-arrival", "time-hopping"]


# Streams: scores, and event times no more than LATE behind the newest before them


SCORES = {
    "random": lambda rng, n: rng.random(n),
    "rising": lambda rng, n: np.arange(n) * 1.0,
    "falling": lambda rng, n: np.arange(n) * -1.0,
    "constant": lambda rng, n: np.ones(n),
    "tied": lambda rng, n: rng.integers(0, 4, n) * 1.0,
    "infinite": lambda rng, n: rng.choice([np.inf, -np.inf, 0.0, 1.0], n),
    "saw": lambda rng, n: np.arange(n) % 9 * -1.0,
}
TIMES = {
    "steady": lambda rng, n: np.arange(n) - n // 2,
    "bursty": lambda rng, n: np.cumsum(rng.choice([0, 0, 0, 0, 1, 7, 150], n)),
    "jittered": lambda rng, n: np.maximum.accumulate(np.cumsum(rng.integers(0, 3, n))) - rng.integers(0, LATE + 1, n),
    "still": lambda rng, n: np.full(n, 12),
}


def stream(scores, times, n, seed):
    """Objects (score, time, number), in arrival order; ``times`` None counts them."""
    rng = np.random.default_rng(seed)
    time = np.arange(n) if times is None else TIMES[times](rng, n)
    return list(zip(SCORES[scores](rng, n).tolist(), time.tolist(), range(n)))


# Brute force


def top(objects, k, ties):
    ranked = sorted(objects, key=lambda o: (-o[0], -o[1], -o[2]))
    if ties == "all" and len(ranked) > k:
        return [o for o in ranked if o[0] >= ranked[k - 1][0]]
    return ranked[:k]


def arrivals(objects, query):
    """(trigger, at, op, number, score) of every change."""
    out, before, seen = [], [], []
    for score, time, number in objects:
        seen.append((score, time, number))
        now = max(o[1] for o in seen)
        seen = [o for o in seen if o[1] > now - 300]
        after = top([o for o in seen if o[1] > now - query.window.extent], query.k, query.ties)
        out += [(number, time, -1, o[2], o[0]) for o in before if o not in after]
        out += [(number, time, +1, o[2], o[0]) for o in after if o not in before]
        before = after
    return out


def hops(objects, query):
    """(end, trigger, numbers, scores) of every window of a stream that has ended."""
    window, out = query.window, []
    ends = {e for _, t, _ in objects for e in range(window.first_end(t), window.last_end(t) + 1, window.slide)}
    for end in sorted(ends):
        best = top([o for o in objects if end - window.extent <= o[1] < end], query.k, query.ties)
        if window.time:
            out.append((end, 0, [o[2] for o in best], [o[0] for o in best]))
        elif end <= len(objects):
            out.append((end, end - 1, [o[2] for o in best], [o[0] for o in best]))
    return out


def plain(emission):
    if isinstance(emission, Changes):
        return list(zip(*(c.tolist() for c in (emission.trigger, emission.at, emission.op, emission.arrival,
                                               emission.score))))  # fmt: skip
    cuts = list(itertools.pairwise(emission.offset.tolist()))
    return [(end, trigger, emission.arrival[a:b].tolist(), emission.score[a:b].tolist())
            for end, trigger, (a, b) in zip(emission.end.tolist(), emission.trigger.tolist(), cuts)]  # fmt: skip


# The queries and how they are run


def query(k, extent, slide, ties, time, hopping):
    span = (lambda length: f"{length} us") if time else int
    window = last(span(extent), every=span(slide) if hopping else None, late=span(LATE) if time else None)
    return TopK(k=k, order_by="x DESC", window=window, ties=ties)


def rows_of(objects, implied):
    score, time, number = (np.array(c, t) for c, t in zip(zip(*objects), (float, np.int64, np.int64)))
    if implied:
        return Rows(score, first_position=int(time[0]), first_arrival=int(number[0]))
    return Rows(score, time, np.zeros(score.size, np.int64), number)


def batches(objects, rng, most):
    at = 0
    while at < len(objects):
        size = int(rng.integers(1, most + 1))
        yield objects[at : at + size]
        at += size


def filling(objects, q, span):
    """Where the present window ends, and the objects in it."""
    newest = max(o[1] for o in objects)
    end = q.window.first_end(newest) if q.window.hopping else newest + 1
    return end, [o for o in objects if end - span <= o[1] < end]


def compare_snapshots(algorithm, objects, rng):
    K, N = max(q.k for q in algorithm.queries), max(q.window.extent for q in algorithm.queries)
    for q in algorithm.queries:
        for k, span in ((q.k, None), (int(rng.integers(1, K + 1)), int(rng.integers(1, N + 1))), (K, N)):
            end, inside = filling(objects, q, q.window.extent if span is None else span)
            ranking = algorithm.result(q, k, span)
            expected = top(inside, k, q.ties)
            assert ranking.arrival.tolist() == [o[2] for o in expected]
            assert ranking.end.tolist() == [end] * bool(expected)


def follow(queries, objects, seed=0, most=40, snapshots=True):
    """Run the queries over the stream in random batches; everything must be as brute force says."""
    time, hopping = queries[0].window.time, queries[0].window.hopping
    algorithm, rng = SCase(*queries), np.random.default_rng(seed)
    emitted, done, newest = [[] for _ in queries], 0, -math.inf
    for batch in batches(objects, rng, most):
        newest, done = max(newest, max(o[1] for o in batch)), done + len(batch)
        events = algorithm.update(rows_of(batch, implied=not time), newest - LATE if time else 0)
        for part, event in zip(emitted, events, strict=True):
            part += plain(event)
        algorithm.check()
        if rng.random() < 0.3:
            arrays = {name: array.copy() for name, array in algorithm.arrays()}
            algorithm = SCase(*queries)
            algorithm.restore(arrays)
        if snapshots and rng.random() < 0.4:
            compare_snapshots(algorithm, objects[:done], rng)
            algorithm.check()
    for part, event in zip(emitted, algorithm.finish(), strict=True):
        part += plain(event)
    for q, part in zip(queries, emitted, strict=True):
        assert part == (hops if hopping else arrivals)(objects, q)
    return algorithm


def some_queries(rng, count, ties, time, hopping):
    for _ in range(count):
        extent = int(rng.choice([1, 3, 10, 40, 90]))
        slide = int(rng.integers(1, extent + 1))
        yield query(int(rng.choice([1, 2, 5, 30])), extent, slide, str(rng.choice(ties)), time, hopping)


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize(("time", "hopping"), KINDS, ids=KIND_IDS)
def test_one_query(time, hopping, scores):
    for seed, times in enumerate(TIMES if time else (None, None)):
        rng = np.random.default_rng([seed, len(scores)])
        for ties in ("newest", "all"):
            follow(list(some_queries(rng, 1, [ties], time, hopping)), stream(scores, times, 160, seed), seed)


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize(("time", "hopping"), KINDS, ids=KIND_IDS)
def test_several_queries_at_once(time, hopping, scores):
    for seed, times in enumerate(TIMES if time else (None, None)):
        rng = np.random.default_rng([seed, len(scores), 1])
        for ties in (["newest"], ["newest", "all"]):
            queries = list(some_queries(rng, int(rng.integers(2, 6)), ties, time, hopping))
            follow(queries, stream(scores, times, 160, seed), seed)


@pytest.mark.parametrize("most", [1, 3, 1000])
@pytest.mark.parametrize(("time", "hopping"), KINDS, ids=KIND_IDS)
def test_the_way_a_stream_is_cut_does_not_matter(time, hopping, most):
    queries = [query(3, 40, 7, "newest", time, hopping), query(5, 25, 5, "all", time, hopping)]
    follow(queries, stream("tied", "jittered" if time else None, 120, 3), most=most)
    follow(queries[:1], stream("falling", "bursty" if time else None, 120, 3), most=most)


@pytest.mark.parametrize("scores", ["random", "falling", "tied", "saw"])
@pytest.mark.parametrize("ties", ["newest", "all"])
def test_short_windows_read_from_the_tree(scores, ties):
    """A long window beside short ones, whose answers are so often found anew that it pays to build the tree."""
    queries = [query(k, n, 1, ties, False, False) for k, n in ((2, 200), (4, 60), (1, 17), (3, 9))]
    planted, algorithm = 0, SCase(*queries)
    objects = stream(scores, None, 420, 5)
    emitted = [[] for _ in queries]
    for batch in batches(objects, np.random.default_rng(5), 9):
        for part, event in zip(emitted, algorithm.update(rows_of(batch, True), 0)):
            part += plain(event)
        algorithm.check()
        planted += bool(algorithm.states[0].skyband.tree.meta[0].nodes)
    assert emitted == [arrivals(objects, q) for q in queries]
    assert planted or scores != "falling"


def test_snapshots_of_every_k_and_length():
    K, N = 6, 50
    algorithm = SCase(query(K, N, 1, "newest", False, False))
    objects, planted = stream("random", None, 300, 11), 0
    for done in range(60, 301, 60):
        algorithm.update(rows_of(objects[done - 60 : done], True), 0)
        for k, n in itertools.product(range(1, K + 1), range(1, N + 1)):
            expected = top(objects[max(0, done - n) : done], k, "newest")
            assert algorithm.result(algorithm.query, k, n).arrival.tolist() == [o[2] for o in expected]
        planted += bool(algorithm.states[0].skyband.tree.meta[0].nodes)
        algorithm.check()
    assert planted


def test_partitions_and_the_window_that_fills():
    """The hopping window that fills is the same one for all partitions, though some lag behind."""
    q = query(2, 20, 5, "newest", True, True)
    algorithm, objects = SCase(q), {0: [], 1: [], 2: []}
    rng, number, newest, closed = np.random.default_rng(1), 0, 0, [[], [], []]
    for step in range(40):
        fresh = []
        for _ in range(int(rng.integers(1, 6))):
            key = int(rng.choice(3, p=[0.7, 0.2, 0.1]))
            fresh.append((float(rng.random()), step * 3 + int(rng.integers(0, 3)), key, number))
            objects[key].append((fresh[-1][0], fresh[-1][1], number))
            number += 1
        newest = max(newest, *(row[1] for row in fresh))
        score, time, key, numbers = map(np.array, zip(*fresh))
        (event,) = algorithm.update(Rows(score, time, key, numbers), newest - LATE)
        for which, row in zip(event.partition.tolist(), plain(event)):
            closed[which].append(row)
        algorithm.check()
        end = q.window.first_end(newest)
        shown = algorithm.result(q, 2)
        expected = {k: top([o for o in part if end - 20 <= o[1]], 2, "newest") for k, part in objects.items()}
        assert shown.partition.tolist() == [k for k in expected if expected[k]]
        assert shown.arrival.tolist() == [o[2] for part in expected.values() for o in part]
    (event,) = algorithm.finish()
    for which, row in zip(event.partition.tolist(), plain(event)):
        closed[which].append(row)
    assert closed == [hops(part, q) for part in objects.values()]
    assert algorithm.states == {}


def test_long_silences_cost_nothing():
    q = query(2, 10, 1, "newest", True, True)
    far = 10**15
    algorithm = SCase(q)
    first = algorithm.update(Rows(np.array([1.0]), np.array([-far]), np.zeros(1, np.int64), np.array([0])), -far)
    second = algorithm.update(Rows(np.array([2.0]), np.array([far]), np.zeros(1, np.int64), np.array([1])), far - LATE)
    third = algorithm.finish()
    ends = [end for (event,) in (first, second, third) for end in event.end.tolist()]
    assert ends == [*range(-far + 1, -far + 11), *range(far + 1, far + 11)]


def test_numbers_that_no_object_has():
    """A sequence with holes: windows close by number, those without an object are not shown."""
    algorithm = SCase(query(2, 4, 2, "newest", False, True))
    state, emitted = algorithm.fresh(), []
    for numbers, frontier in (([0, 1], 3), ([5], 6), ([15, 17], 21)):
        time = np.array(numbers)
        state, (event,) = algorithm.advance(state, Rows(time * 1.0, time, time * 0, time), frontier)
        emitted += [(end, best) for end, _, best, _ in plain(event)]
        algorithm.verify(state)
    assert emitted == [(2, [1, 0]), (4, [1, 0]), (6, [5]), (8, [5]), (16, [15]), (18, [17, 15]), (20, [17])]
    end, numbers, _ = algorithm.snapshot(state, Rows(np.empty(0)), algorithm.query, 2, None)
    assert (end, numbers.tolist()) == (22, [])


def test_more_than_the_skyband_can_answer_is_refused():
    algorithm = SCase(query(3, 10, 1, "newest", False, False))
    with pytest.raises(QueryError, match="k=4 exceeds 3"):
        algorithm.result(algorithm.query, 4)
    with pytest.raises(QueryError, match="last=11 exceeds 10"):
        algorithm.result(algorithm.query, 3, 11)


# The paper


@pytest.mark.parametrize(("K", "N"), [(1, 1000), (5, 1000), (20, 5000)])
def test_average_size_of_the_skyband(K, N):
    """Theorem 2 for objects: one of age x is in the K-skyband with probability min(1, K/x)."""
    algorithm, rng, sizes = SCase(query(K, N, 1, "newest", False, False)), np.random.default_rng(K), []
    rounds = 600 if K == 1 else 150
    for step in range(rounds):
        at = step * N // 2
        algorithm.update(Rows(rng.random(N // 2), first_position=at, first_arrival=at), 0)
        sizes.append(algorithm.candidates)
    expected = K * (1 + sum(1 / x for x in range(K + 1, N + 1)))
    assert np.mean(sizes[3:]) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("strict", [False, True], ids=["newest", "all"])
@pytest.mark.parametrize("K", [1, 2, 7])
def test_the_staircase_stands_for_the_skyband(K, strict):
    """An object is dominated by a step if and only if K objects dominate it (section 5.1.1)."""
    rng = np.random.default_rng(K)
    for size in (1, 5, 40):
        ranked = top(list(zip(rng.integers(0, 9, size) * 1.0, rng.integers(0, 20, size), range(size))), size, "newest")
        score, time, number = (np.array(column) for column in zip(*ranked))
        stairs = resized(empty(staircase.Stairs), "points", size)
        kept = staircase.climb(staircase.Objects(score, time, number), size, stairs, K, 0, strict)

        def dominators(of, ranked=ranked):
            above = [o for o in ranked if o[1] >= of[1] and (o[0] > of[0] if strict else o > of)]
            return len(above)

        assert [o[2] for o in ranked if dominators(o) < K] == number[:kept].tolist()
        for of in itertools.product(range(-1, 10), range(-1, 21), (-1, size // 2 + 0.5, size)):
            assert staircase.dominated(stairs, of, strict) == (dominators(of) >= K)


def test_the_tree_gives_what_sorting_gives():
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 10, 100):
        ranked = top(
            list(zip(rng.integers(0, size, size) * 1.0, rng.integers(0, 30, size), range(size))), size, "newest"
        )
        tree = resized(empty(pst.Tree), "objects", size)
        pst.build(tree, staircase.Objects(*(np.array(column) for column in zip(*ranked))), size)
        nodes = list(zip(*(column.tolist() for column in tree[:3])))
        assert sorted(nodes) == sorted(ranked)
        for k, start in itertools.product((1, 2, 5, size, 200), (0, 7, 20, 29, 30)):
            live = [o for o in ranked if o[1] >= start]
            found = [nodes[i] for i in pst.candidates(tree, k, start)]
            assert top(found, k, "newest") == live[:k]
            assert len(found) <= k + math.log2(size) + 1
            least = rng.integers(0, size) * 1.0
            reached = [nodes[i] for i in pst.reaching(tree, least, start)]
            assert sorted(reached) == sorted(o for o in live if o[0] >= least)


def test_put_off_makes_the_cost_least():
    """Section 6.2: no other x is cheaper, counted in whole objects."""
    for size, K in itertools.product((400, 5000), (1, 9, 100)):

        def cost(x, size=size, K=K):
            return staircase.M * (x + size) + (x + size) * (staircase.C + math.log2(K)) / x

        x = staircase.put_off(size, K)
        assert x in (staircase.LEAST, K) or cost(x) == pytest.approx(min(map(cost, range(1, 4 * x))), rel=1e-3)

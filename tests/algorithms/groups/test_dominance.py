"""EAA holds the k dominance set and nothing else, and the answers stay exact when the promise is kept."""

import math

import numpy as np
import pytest

import skyband as sb
from skyband import datasets
from tests.support import streams
from tests.support.cases import follow
from tests.support.groups_cases import AGGREGATES, BOUNDS, NAMES, SUMMED, declared, instances, pair, promised


@pytest.mark.parametrize(("how", "occurrences", "most"), [
    *((how, "once", 1) for how in AGGREGATES),
    *((how, "many", most) for how in (*SUMMED, "function") for most in (1, 3)),
])  # fmt: skip
@pytest.mark.parametrize("window", ["count-20-5", "time-10-2", "arrivals-60", "arrival-time-20"])
def test_exact_while_the_promise_is_kept(how, occurrences, most, window):
    if window == "arrivals-60":
        window = dict(extent=60)
    elif window == "arrival-time-20":
        window = dict(time=True, extent=20 * streams.SECOND)
    for k, ties in ((1, "all"), (4, "newest")):
        query, model = pair(k, window, how, occurrences, "eaa", ties=ties, **declared(how, most))
        follow(sb.Monitor(query), model, streams.cut(promised(240, most, k), k))


class Definition:
    """The k dominance set by its definition, over all instances that were not dropped before.

    ``drops``: whether rows are forgotten that no instance takes into account; if not, this is the set as the paper
    defines it, with everything known that ever was said.
    """

    def __init__(self, k, extent, how, many, most, drops):
        self.k, self.extent, self.how, self.many, self.most, self.drops = k, extent, how, many, most, drops
        self.rows, self.seen = [], {}

    def score(self, values):
        if self.how == "mean":
            return sum(values) / 3
        return {"sum": sum, "max": max, "min": min, "product": math.prod}[self.how](values)

    def arrive(self, number, obj, stream, value):
        self.rows = [row for row in self.rows if row[0] > number - self.extent]
        alive = {row[1] for row in self.rows}
        self.seen = {o: counts for o, counts in self.seen.items() if o in alive}
        self.rows.append((number, obj, stream, value))
        self.seen.setdefault(obj, dict.fromkeys(NAMES, 0))[stream] += 1
        instances = [(row, *self.interval(row)) for row in self.rows]
        free = [row for row, _, best in instances if self.dominators(row, best, instances) < self.k]
        if self.drops:
            first = {}
            for time, o, *_ in free:
                first[o] = min(first.get(o, time), time)
            self.rows = [row for row in self.rows if row[1] in first and row[0] >= first[row[1]]]
        return {row[0] for row in free}

    def interval(self, row):
        current, best = [], []
        for stream in NAMES:
            values = [v for t, o, s, v in self.rows if o == row[1] and s == stream and t >= row[0]]
            left = max(0, self.most - self.seen[row[1]][stream])
            current.append(sum(values))
            best.append(sum(values) + left)
        return self.score(current), self.score(best)

    def dominators(self, row, best, instances):
        return len({p[1] for p, current, _ in instances if p[0] >= row[0] and current > best and p[1] != row[1]})


@pytest.mark.parametrize(("how", "occurrences", "most"), [
    *((how, "once", 1) for how in ("sum", "mean", "max", "min", "product")), ("sum", "many", 2),
])  # fmt: skip
def test_holds_exactly_the_k_dominance_set(how, occurrences, most):
    k, extent = 2, 40
    query, _ = pair(k, dict(extent=extent), how, occurrences, "eaa", **declared(how, most))
    monitor = sb.Monitor(query)
    dropping, paper = (Definition(k, extent, how, occurrences == "many", most, drops) for drops in (True, False))
    table = promised(220, most, 5)
    dropped = 0
    for number, row in enumerate(table.to_pylist()):
        monitor.push(table.slice(number, 1))
        algorithm = monitor.pipelines[0].algorithm
        whole = algorithm.states[0]
        rows, gone = algorithm.dominance(whole)
        numbers = whole.parts.arrival[rows]
        expected = dropping.arrive(number, row["o"], row["s"], row["x"])
        assert set(numbers[~gone].tolist()) == expected
        assert sorted(numbers.tolist()) == sorted(r[0] for r in dropping.rows)
        assert paper.arrive(number, row["o"], row["s"], row["x"]) <= expected
        assert monitor.stats.candidates == len(dropping.rows)
        dropped += len(dropping.rows) < min(extent, number + 1)
    assert dropped > 100 or most > 1  # with more to hope for, little can be dropped


def test_instances_that_no_object_returns_to_are_those_of_the_paper():
    """Where nobody comes again after having been dropped, the two definitions are the same set."""
    rng = np.random.default_rng(1)
    dropping, paper = (Definition(2, 30, "sum", False, 1, drops) for drops in (True, False))
    for number in range(200):
        row = (number, number // 3, NAMES[number % 3], float(rng.integers(0, 17)) / 16)
        assert dropping.arrive(*row) == paper.arrive(*row)


@pytest.mark.parametrize("fields", [{}, {"most": 1, "streams": NAMES}, {"bounds": BOUNDS, "most": 1},
                                    {"bounds": BOUNDS, "streams": NAMES},
                                    {"bounds": BOUNDS, "streams": NAMES, "most": 2}])  # fmt: skip
def test_nothing_is_dropped_without_a_promise(fields):
    query, _ = pair(1, dict(extent=50), "sum", "once", "eaa", **fields)
    monitor = sb.Monitor(query)
    monitor.push(promised(200))
    assert monitor.stats.candidates == 50


def test_saving_and_loading_in_mid_stream():
    query, _ = pair(3, dict(extent=50), "sum", "once", "eaa", **declared("sum"))
    table = promised(300)
    one, other = sb.Monitor(query), sb.Monitor(query)
    for start in range(0, 300, 30):
        other = sb.Monitor.loads(other.dumps())
        assert one.push(table.slice(start, 30)).equals(other.push(table.slice(start, 30)))
        assert one.dumps() == other.dumps()
        one.check()


# Streams and k, and the size of EAA: Haghani et al., Tables 1 and 2.
SIZES = {(3, 10): 345.3, (4, 10): 450, (6, 10): 495, (3, 20): 396.3, (3, 50): 450, (3, 100): 481.7}


@pytest.mark.parametrize(("d", "k"), SIZES)
def test_sizes_of_the_paper(d, k):
    """A reading that fits: windows hold W/2 = 500 tuples, where its sizes level off; streams look 150 tuples back."""
    found = []
    for seed in (20, 21):
        table = datasets.scattered(4000, d, 0.5, 150, seed)
        monitor = sb.Monitor(sb.TopKGroups(k=k, id="id", stream="stream", value="value", window=sb.last(500),
                                               streams=d, bounds=BOUNDS, most=1, algorithm="eaa"))  # fmt: skip
        for start in range(0, 4000, 100):
            monitor.push(table.slice(start, 100))
            if start >= 1000:
                found.append(instances(monitor))
    assert 0.85 * SIZES[d, k] <= np.mean(found) <= SIZES[d, k]

"""Rows that come pruned, without Spark: the best of each pane of several tasks, and frontiers of many partitions."""

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.algorithms.contract import FOREVER, FromPanes, Rows
from skyband.algorithms.objects.sequence import Counts, Sequence
from skyband.engine.planner import plan_for
from skyband.families import FAMILIES
from tests.support import oracle

ALGORITHMS = sorted(
    name for name, algorithm in FAMILIES["objects"].algorithms().items() if issubclass(algorithm, FromPanes)
)
WINDOWS = [(12, 4), (7, 3), (6, 6), (30, 2), (5, 1)]
COLUMNS = ("g", "x", "at", "id")


def stream(rng, size, partitions, tied):
    """Rows as a dict of columns; ``at`` is the event time, in order but for a few places."""
    at = np.sort(rng.integers(0, size // 3, size)) - rng.choice([0, 1, 12], size)
    score = rng.integers(0, 4, size).astype(float) if tied else rng.normal(size=size)
    return {"g": rng.integers(0, partitions, size), "x": score, "at": at, "id": np.arange(size)}


def where(rows, mask):
    return {name: column[mask] for name, column in rows.items()}


def naive_pruning(rows, k, ties, pane, rng, tasks=3):
    """What tasks send of their share of the rows: in no order, the k best of each partition and pane."""
    sent = []
    for share in np.array_split(rng.permutation(rows["x"].size), tasks):
        panes = {}
        for i in share:
            panes.setdefault((rows["g"][i], rows["at"][i] // pane), []).append(i)
        for some in panes.values():
            some.sort(key=lambda i: (rows["x"][i], rows["at"][i], rows["id"][i]), reverse=True)
            bar = rows["x"][some[min(k, len(some)) - 1]]
            sent += [i for rank, i in enumerate(some) if rank < k or (ties == "all" and rows["x"][i] == bar)]
    return where(rows, rng.permutation(np.array(sent, np.int64)))


class Keeper:
    """Hands rows on to an algorithm, and knows its objects by their numbers, which mean nothing but the order of ties.

    In between objects are numbered anew, with gaps or with none, and the state is saved and restored.
    """

    def __init__(self, query, rng, partitioned=True):
        self.query, self.rng, self.partitioned = query, rng, partitioned
        self.algorithm = self.fresh()
        self.ids = np.empty(0, np.int64)  # by number

    def fresh(self):
        chosen = plan_for((self.query,))
        return chosen.algorithm(*chosen.queries, **chosen.options)

    def fold(self, rows, frontier):
        """Windows that closed, as rows of the end, the partition, the rank, the score and the id."""
        held = self.algorithm.held_rows()
        assert (np.diff(held.arrival) > 0).all() and (held.arrival == self.algorithm.held()).all()
        former = self.ids[held.arrival]
        number = {id: i for i, id in enumerate(np.sort(np.append(former, rows["id"])).tolist())}
        gap = int(self.rng.integers(1, 4))
        new = np.full(self.ids.size, -1)
        new[held.arrival] = [gap * number[id] for id in former.tolist()]
        self.algorithm.renumber(new)
        arrival = np.array([gap * number[id] for id in rows["id"].tolist()], np.int64)
        self.ids = np.full(gap * len(number), -1)
        self.ids[gap * np.arange(len(number))] = list(number)
        partition = rows["g"] if self.partitioned else np.empty(0, np.int64)
        (event,) = self.algorithm.fold(Rows(rows["x"], rows["at"], partition, arrival), frontier)
        self.algorithm.check()
        answer = []
        for block, (end, partition) in enumerate(zip(event.end.tolist(), event.partition.tolist(), strict=True)):
            part = slice(event.offset[block], event.offset[block + 1])
            both = zip(event.score[part].tolist(), self.ids[event.arrival[part]].tolist(), strict=True)
            answer += [(end, partition, rank, score, id) for rank, (score, id) in enumerate(both, 1)]
        if self.rng.integers(2):
            self.ids = self.ids[self.algorithm.compact()]
            assert (self.algorithm.held() == np.arange(self.ids.size)).all()
        if self.rng.integers(2):
            saved, self.algorithm = dict(self.algorithm.arrays()), self.fresh()
            self.algorithm.restore({name: array.copy() for name, array in saved.items()})
            self.algorithm.check()
            again = dict(self.algorithm.arrays())
            assert saved.keys() == again.keys() and all((saved[name] == again[name]).all() for name in saved)
        return answer


def expected(rows, k, ties, extent, every, time):
    """All windows that rows which are not late bring about, by the oracle: end, partition, rank, score, id."""
    late = 10**9 if time else None
    model = oracle.TopK(k, lambda row: row["x"], extent, every, time=time, on="at", late=late, partition=("g",),
                        select=("id",), ties=ties)  # fmt: skip
    order = np.lexsort((rows["id"], rows["at"]))
    table = pa.table({name: rows[name][order] for name in COLUMNS})
    return [row[1:] for row in model.push(table) + model.flush()]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("ties", ["newest", "all"])
@pytest.mark.parametrize("tied", [False, True], ids=["random", "tied"])
@pytest.mark.parametrize("partitions", [1, 3, 60])
@pytest.mark.parametrize(("extent", "every"), WINDOWS)
def test_event_time(extent, every, partitions, tied, ties, algorithm):
    """Late rows are left out pane by pane; every window comes out when the frontier has reached its end."""
    rng = np.random.default_rng([extent, every, partitions, tied])
    k, late = int(rng.choice([1, 3, 8])), 2
    window = sb.last(f"{extent} us", every=f"{every} us", on="at", late=f"{late} us")
    query = sb.TopK(k, "x DESC", window, partition_by=("g",), ties=ties, algorithm=algorithm)
    keeper, pane, frontier = Keeper(query, rng, partitioned=partitions > 1), query.window.pane, -FOREVER
    rows = stream(rng, 300, partitions, tied)
    kept, got = [], []
    for share in np.array_split(np.arange(300), 12):
        batch = where(rows, share)
        batch = where(batch, batch["at"] >= frontier // pane * pane)
        kept.append(batch)
        before, frontier = frontier, max(frontier, int(rows["at"][: share[-1] + 1].max()) - late)
        answer = keeper.fold(naive_pruning(batch, k, ties, pane, rng), np.array([frontier]))
        assert all(before < end <= frontier for end, *_ in answer)
        got += answer
    got += keeper.fold(where(rows, []), np.array([FOREVER]))
    kept = {name: np.concatenate([batch[name] for batch in kept]) for name in COLUMNS}
    assert 0 < 300 - kept["x"].size < 150
    assert sorted(got) == sorted(expected(kept, k, ties, extent, every, time=True))
    assert not keeper.algorithm.held().size and not keeper.algorithm.partitions().size


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("late", [None, 0, 20])
@pytest.mark.parametrize("ties", ["newest", "all"])
@pytest.mark.parametrize("partitions", [1, 3, 40])
@pytest.mark.parametrize(("extent", "every"), WINDOWS)
def test_sequences(extent, every, partitions, ties, late, algorithm):
    """Numbers come in any order, some are no objects: each partition has a frontier of its own."""
    rng = np.random.default_rng([extent, every, partitions, late or 0])
    k, size = int(rng.choice([1, 3, 8])), 400
    window = sb.last(extent, every=every, on="at", late=late)
    query = sb.TopK(k, "x DESC", window, partition_by=("g",), ties=ties, algorithm=algorithm)
    rows = stream(rng, size, partitions, tied=True)
    rows["at"] = np.array([np.count_nonzero(rows["g"][:i] == g) for i, g in enumerate(rows["g"])])
    rows["valid"] = rng.random(size) < 0.8
    rows = where(rows, np.argsort(np.arange(size) + rng.integers(0, 40 * every, size), kind="stable"))
    keeper, sequence, pane = Keeper(query, rng, partitioned=partitions > 1), Sequence(window), query.window.pane
    numbers, kept, got = np.empty((0, 3), np.int64), [], []
    complete, known = np.zeros(partitions, np.int64), 0
    for share in np.array_split(np.arange(size), 10):
        batch = where(rows, share)
        on_time = batch["at"] >= complete[batch["g"]]
        known = max(known, int(batch["g"].max()) + 1)
        told = counts_of(batch, pane)
        too_late = sequence.take_in(told, known)
        assert told.come[too_late].sum() == np.count_nonzero(~on_time)
        sequence.check()
        batch = where(batch, on_time)
        numbers = np.append(numbers, np.stack([batch[name] for name in ("g", "at", "valid")], axis=1), axis=0)
        complete, frontier = naive_frontiers(numbers, partitions, pane, late, complete)
        assert (sequence.complete == complete[:known]).all() and (sequence.frontier == frontier[:known]).all()
        kept.append(where(batch, batch["valid"]))
        got += keeper.fold(naive_pruning(kept[-1], k, ties, pane, rng), sequence.frontier)
        again = Sequence(window)
        again.restore(dict(sequence.arrays()))
        sequence = again
        kept_now = {name: np.concatenate([batch[name] for batch in kept]) for name in COLUMNS}
        sure = [row for row in expected(kept_now, k, ties, extent, every, time=False) if row[0] <= frontier[row[1]]]
        assert sorted(got) == sorted(sure)
    sequence.end()
    got += keeper.fold(where(rows, []), sequence.frontier)
    kept = {name: np.concatenate([batch[name] for batch in kept]) for name in COLUMNS}
    assert sorted(got) == sorted(expected(kept, k, ties, extent, every, time=False))


def counts_of(rows, pane):
    """As two tasks would tell them, so that a pane may be there twice."""
    told = []
    for share in np.array_split(np.arange(rows["at"].size), 2):
        part = where(rows, share)
        groups, which = np.unique(np.stack([part["g"], part["at"] // pane]), axis=1, return_inverse=True)
        for i, (partition, number) in enumerate(groups.T.tolist()):
            some = where(part, which.ravel() == i)
            last = some["at"][some["valid"]].max(initial=-1)
            told.append((partition, number, some["at"].size, some["at"].max(), last))
    return Counts._make(np.array(told, np.int64).reshape(-1, 5).T)


def naive_frontiers(numbers, partitions, pane, late, complete):
    """Up to where all numbers have come, in whole panes, or are not waited for; and up to where windows can close."""
    complete, frontier = complete.copy(), np.zeros(partitions, np.int64)
    for partition in range(partitions):
        of_it = numbers[numbers[:, 0] == partition]
        come = set(of_it[:, 1].tolist())
        if late is not None and come:
            complete[partition] = max(complete[partition], (max(come) - late) // pane * pane)
        while set(range(complete[partition], complete[partition] + pane)) <= come:
            complete[partition] += pane
        objects = of_it[(of_it[:, 2] > 0) & (of_it[:, 1] < complete[partition]), 1]
        frontier[partition] = min(complete[partition], objects.max(initial=-1) + 1)
    return complete, frontier


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_partitions_are_numbered_anew(algorithm):
    """Between any two batches, and those that hold nothing any more get no number."""
    rng = np.random.default_rng(5)
    window = sb.last("12 us", every="4 us", on="at")
    query = sb.TopK(2, "x DESC", window, partition_by=("g",), algorithm=algorithm)
    keeper, rows = Keeper(query, rng), stream(rng, 400, 50, tied=True)
    rows["at"], rows["g"] = np.sort(rows["at"]), rows["g"] // 4 + np.arange(400) // 8
    got, names = [], np.empty(0, np.int64)  # what each partition is called
    for share in np.array_split(np.arange(400), 20):
        batch = where(rows, share)
        names = np.append(names, np.setdiff1d(batch["g"], names))
        place = {name: i for i, name in enumerate(names.tolist())}
        frontier = int(batch["at"].max())
        pruned = naive_pruning(batch, 2, "newest", query.window.pane, rng)
        pruned["g"] = np.array([place[name] for name in pruned["g"].tolist()])
        got += [(end, names[g], *rest) for end, g, *rest in keeper.fold(pruned, np.array([frontier]))]
        alive = rng.permutation(keeper.algorithm.partitions())
        code = np.full(names.size, -1)
        code[alive] = np.arange(alive.size)
        keeper.algorithm.rekey(code)
        keeper.algorithm.check()
        names = names[alive]
    got += [(end, names[g], *rest) for end, g, *rest in keeper.fold(where(rows, []), np.array([FOREVER]))]
    assert sorted(got) == sorted(expected(rows, 2, "newest", 12, 4, time=True))

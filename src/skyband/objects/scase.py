"""SCase: one K-skyband, kept with a K-staircase, for every k and every window of a scoring function."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skyband.errors import QueryError
from skyband.kernels import scase as kernel
from skyband.kernels.answers import Answers, no_answers
from skyband.kernels.pst import Tree, middle
from skyband.kernels.staircase import LATEST, Objects, Stairs
from skyband.objects.base import NOTHING, Changes, Emission, Floats, Ints, PerKey, Rankings, Rows, best
from skyband.order import ranking
from skyband.queries import TopK


class State(NamedTuple):
    """The parts of :class:`skyband.kernels.scase.Skyband`, the answers of arrival queries, the ends of hopping ones."""

    score: Floats
    time: Ints
    number: Ints
    stair_score: Floats
    stair_time: Ints
    stair_number: Ints
    stair_corner: Ints
    tree_score: Floats
    tree_time: Ints
    tree_number: Ints
    tree_split: Floats
    top_score: Floats
    top_time: Ints
    top_number: Ints
    top_base: Ints
    top_size: Ints
    top_oldest: Ints
    ends: Ints
    meta: Ints

    @classmethod
    def of(cls, skyband: kernel.Skyband, answers: Answers, ends: Ints) -> "State":
        return cls(*skyband.objects, *skyband.stairs, *skyband.tree, *answers, ends, skyband.meta)

    @property
    def skyband(self) -> kernel.Skyband:
        return kernel.Skyband(Objects(*self[:3]), Stairs(*self[3:7]), Tree(*self[7:11]), self.meta)

    @property
    def answers(self) -> Answers:
        return Answers(*self[11:17])

    def live(self) -> Rows:
        """The objects of S that have not expired, in rank order."""
        used = np.flatnonzero(self.time[: self.meta[kernel.SIZE]] >= self.meta[kernel.FLOOR])
        return Rows(self.score[used], self.time[used], np.zeros(used.size, np.int64), self.number[used])


class SCase(PerKey[State]):
    """SCase of Shen et al., *A Generic Framework for Top-k Pairs and Top-k Objects Queries over Sliding Windows*
    (TKDE 2014): top-k objects, section 6.2.

    For all queries of a scoring function one set S holds the K-skyband in the plane of score and age, K being the
    largest k and N the longest window. It answers every k ≤ K and n ≤ N (Theorem 1). On random streams it holds
    K(1 + H_N − H_K) objects: one of age x is dominated by fewer than K newer ones with probability min(1, K/x).

    - A row that comes out of order is tested against the K-staircase, in O(log |S|), and left out if K objects
      dominate it (sections 5.1.2, 6.1). A row that is newer than all others needs no test.
    - Pruning waits until x objects more than the skyband are in S (Algorithm 6), x being the optimum of section 6.2
      with C + log K for log K, so that it holds for K = 1 too. A batch as long as S ends with the skyband alone.
    - Every arrival: each query keeps its answer in rank order; only when it runs short is it found anew
      (section 4.2): for n = N as the first k live objects of S (the paper's *No-PST*), else by Algorithm 2.
    - Hopping windows: all windows, of all queries, that close between two rows are answered in one pass over S
      (Algorithm 7).

    Deviations:

    - The priority search tree is not updated. Objects that come after it was built lie behind it and are tried one
      by one; it is built only when the objects that answers had to pass over or to try would have paid for it, and
      let go when Algorithm 4 runs. Until there is one, answers are read down S, past those outside the window.
    - Expired objects are not looked up by age: they are passed over, and leave when Algorithm 4 runs, at the latest
      when as many have been passed over as S holds. They do not count as held.
    - Equal ages do not shield from dominance: the better of two objects of one time dominates the other. With
      ``ties="all"`` in any query only a better score does (for all queries, since S is shared), and Algorithm 2 is
      followed by a search for the objects that tie with the k-th.

    Where the newest objects are always the worst, S is the whole window, and every arrival runs the answer short.
    """

    name = "scase"
    serves = frozenset({"hopping", "arrival"})
    several = True
    State = State

    def __init__(self, *queries: TopK, **options: float) -> None:
        super().__init__(*queries, **options)
        windows = [query.window for query in queries]
        k, extent = (np.array(column) for column in ([q.k for q in queries], [w.extent for w in windows]))
        ties = np.array([query.ties == "all" for query in queries])
        longest = int(extent.max())
        slide = np.array([w.slide for w in windows] if self.window.hopping else [], np.int64)
        self._spec = kernel.Spec(k, extent, slide, ties, int(k.max()), longest, bool(ties.any()), self.window.time)
        # Rows ripen by the pane that all queries share.
        pane = math.gcd(*(w.pane for w in windows)) if self.window.hopping else None
        self.window = replace(self.window, extent=longest, every=pane)
        self._newest = 0

    def fresh(self) -> State:
        count = len(self.queries)
        return State.of(kernel.no_skyband(self._spec.K), no_answers(count), np.full(count, LATEST))

    def advance(self, state: State, rows: Rows, frontier: int) -> tuple[State, tuple[Emission, ...]]:
        # A read-only array is another type to the compiler.
        rows = Rows(*(np.require(column, requirements="CW") for column in rows[:4]), rows.t0, rows.n0)
        if self.window.hopping:
            skyband, out = kernel.hop(state.skyband, state.ends, self._spec, rows, frontier)
            emission: Emission = Rankings.of(out)
            answers = state.answers
        else:
            skyband, answers, log = kernel.arrive(state.skyband, state.answers, self._spec, rows)
            query, trigger, at, op, number, score = (column[: log.count[0]] for column in log[:6])
            emission = Changes(trigger, at, query, op, number, score)
        return State.of(skyband, answers, state.ends), _apart(emission, len(self.queries))

    def result(self, query: TopK, k: int, last: int | None = None) -> Rankings:
        if k > self._spec.K:
            raise QueryError(f"k={k} exceeds {self._spec.K}, the largest k of the queries that share this skyband")
        if last is not None and last > self._spec.N:
            raise QueryError(f"last={last} exceeds {self._spec.N}, the longest window of the queries that share this "
                             "skyband")  # fmt: skip
        for key, state in self.states.items():
            self.states[key] = State.of(kernel.repay(state.skyband, self._spec), state.answers, state.ends)
        self._newest = max(
            [int(state.meta[kernel.NEWEST]) for state in self.states.values()]
            + [int(rows.time.max()) for rows in self.waiting.values()],
            default=0,
        )
        return super().result(query, k, last)

    def snapshot(
        self, state: State, waiting: Rows, query: TopK, k: int, last: int | None
    ) -> tuple[int, Ints, Floats]:
        window, ties = query.window, query.ties == "all"
        # The hopping time window that is filling is the same one for all partitions.
        newest = self._newest if window.hopping and window.time else int(state.meta[kernel.NEWEST])
        end = window.first_end(newest) if window.hopping else newest + 1
        start = end - (window.extent if last is None else last)
        score, time, number = kernel.snapshot(state.skyband, k, ties, start)
        rows = Rows(score, time, np.zeros(score.size, np.int64), number)
        if waiting.score.size:
            rows = rows.join(waiting.take(np.flatnonzero(waiting.time >= start)))
        return end, *best(rows, k, ties)

    def numbers(self, state: State) -> Ints:
        return state.live().number

    def verify(self, state: State) -> None:
        meta = state.meta
        objects = Objects(*(column[: meta[kernel.SIZE]] for column in state[:3]))
        assert (ranking(*objects) == np.arange(meta[kernel.SIZE])).all(), "S is not in rank order"
        assert meta[kernel.BAND] <= meta[kernel.SIZE] <= meta[kernel.LIMIT], "Algorithm 4 is overdue"
        _verify_skyband(objects, Stairs(*(column[: meta[kernel.STEPS]] for column in state[3:7])),
                        self._spec, pruned=meta[kernel.BAND] == meta[kernel.SIZE])  # fmt: skip
        if meta[kernel.NODES]:
            _verify_tree(state.skyband.tree, int(meta[kernel.NODES]))
            assert np.isin(objects.number, state.tree_number[: meta[kernel.USED]]).all(), "not in the tree nor behind it"
        if self.window.hopping:
            assert meta[kernel.DUE] == state.ends.min() or meta[kernel.NEWEST] < meta[kernel.FLOOR], "a window is missed"
        else:
            self._verify_answers(state)

    def _verify_answers(self, state: State) -> None:
        live, answers = state.live(), state.answers
        for q, query in enumerate(self.queries):
            start = state.meta[kernel.NEWEST] - query.window.extent + 1
            number, _ = best(live.take(np.flatnonzero(live.time >= start)), query.k, query.ties == "all")
            part = slice(answers.base[q], answers.base[q] + answers.size[q])
            assert (answers.number[part].tolist() == number.tolist()), f"the answer of query {q} is wrong"
            assert answers.oldest[q] <= answers.time[part].min(initial=LATEST), "an object may expire unnoticed"


def _apart(emission: Emission, queries: int) -> tuple[Emission, ...]:
    """One emission a query; until now the query stands where the partition will stand."""
    if queries == 1:
        return (emission,)
    if isinstance(emission, Changes):
        return tuple(Changes(*(column[emission.key == q] for column in emission)) for q in range(queries))
    parts, length = [], np.diff(emission.offset)
    for q in range(queries):
        blocks = emission.key == q
        rows = np.repeat(blocks, length)
        offset = np.concatenate([NOTHING, [0], np.cumsum(length[blocks])])
        parts.append(Rankings(*(column[blocks] for column in emission[:3]), offset,
                              *(column[rows] for column in emission[4:])))  # fmt: skip
    return tuple(parts)


def _verify_skyband(objects: Objects, stairs: Stairs, spec: kernel.Spec, pruned: bool) -> None:
    """``pruned`` says that S is as Algorithm 4 left it, so that it is the K-skyband and the staircase is its own."""
    score, time, _ = objects
    for i in range(score.size if pruned else 0):
        above = time[:i][score[:i] > score[i]] if spec.strict else time[:i]
        assert np.count_nonzero(above >= time[i]) < spec.K, "S holds an object that K others dominate"
    assert (np.diff(stairs.corner) > 0).all(), "the staircase does not rise"
    for step in zip(*stairs, strict=True):
        rank = kernel.place(*objects, (0, score.size), step[:3])
        above = time[: rank + 1]
        assert np.count_nonzero(above >= step[3]) >= spec.K, "the staircase cuts off too much"
        assert not pruned or np.count_nonzero(above > step[3]) < spec.K, "the staircase cuts off too little"


def _verify_tree(tree: Tree, nodes: int) -> None:
    rank = np.empty(nodes, np.int64)
    rank[ranking(tree.score[:nodes], tree.time[:nodes], tree.number[:nodes])] = np.arange(nodes)
    stack = [(0, nodes)]
    while stack:
        low, high = stack.pop()
        right = min(middle(low, high), high)
        assert tree.time[low] == tree.time[low:high].max(), "the tree is no heap by time"
        if right < high:
            assert rank[low + 1 : right].max() < rank[right:high].min(), "the tree is no search tree by rank"
            assert tree.split[low] == tree.score[right:high].max(), "a split value is wrong"
        stack += [part for part in ((low + 1, right), (right, high)) if part[0] < part[1]]

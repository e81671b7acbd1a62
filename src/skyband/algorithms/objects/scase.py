"""SCase: one K-skyband, kept with a K-staircase, for every k and every window of a scoring function."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import NOTHING, Changes, Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.partitioned import PerKey, best
from skyband.errors import QueryError
from skyband.kernels.common.output import no_output
from skyband.kernels.common.staircase import EARLIEST, LATEST, Objects, Stairs, place, put_off
from skyband.kernels.objects import skyband as kernel
from skyband.kernels.objects.answers import Answers, no_answers, no_log, with_room
from skyband.kernels.objects.pst import Tree, middle
from skyband.order import ranking
from skyband.query import Query


class State(NamedTuple):
    """The parts of :class:`skyband.kernels.objects.skyband.Skyband`; answers at every arrival; the ends of windows."""

    score: Floats
    position: Ints
    arrival: Ints
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

    @property
    def skyband(self) -> kernel.Skyband:
        return kernel.Skyband(Objects._make(self[:3]), Stairs._make(self[3:7]), Tree._make(self[7:11]), self.meta)

    @property
    def answers(self) -> Answers:
        return Answers._make(self[11:17])

    @property
    def size(self) -> int:
        """How many objects are in S."""
        return int(self.meta[kernel.SIZE])

    def fitted(self, capacity: int, tree: bool, room: Ints) -> "State":
        """The same with so much room in S, in the tree or not, and for the answer of each query."""
        columns = [_sized(column, capacity) for column in self[:7]]
        columns += [_sized(column, capacity if tree else 0) for column in self[7:11]]
        return State._make([*columns, *with_room(self.answers, room), self.ends, self.meta])

    def live(self) -> Rows:
        """The objects of S that have not expired, in rank order."""
        used = np.flatnonzero(self.position[: self.size] >= self.meta[kernel.FLOOR])
        return Rows(self.score[used], self.position[used], np.zeros(used.size, np.int64), self.arrival[used])


class SCase(PerKey[State]):
    """SCase of Shen et al., *A Generic Framework for Top-k Pairs and Top-k Objects Queries over Sliding Windows*
    (TKDE 2014): top-k objects, section 6.2.

    For all queries of a scoring function one set S holds the K-skyband in the plane of score and age, K being the
    largest k and N the longest window. It answers every k ≤ K and n ≤ N (Theorem 1). On random streams it holds
    K(1 + H_N − H_K) objects: one of age x is dominated by fewer than K newer ones with probability min(1, K/x).

    - A row that comes out of order is tested against the K-staircase, in O(log |S|), and left out if K objects
      dominate it (sections 5.1.2, 6.1). A row that is newer than all others needs no test.
    - Pruning waits until x objects more than the skyband are in S (Algorithm 6). A batch that is as long as S ends
      with the skyband alone.
    - Every arrival: each query keeps its answer in rank order; only when it runs short is it found anew
      (section 4.2): for n = N as the first k live objects of S (the paper's *No-PST*), else by Algorithm 2.
    - Hopping windows: all windows, of all queries, that close between two rows are answered in one pass over S
      (Algorithm 7).

    Deviations:

    - S is an array: to insert an object moves those behind it. The x of section 6.2 is the optimum for that cost, with
      C + log K for log K, so that it holds for K = 1 too. The paper's x, for a tree, is 4 times (K = 9) to 40 times
      (K = 1000) as large.
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
    state_type = State

    def __init__(self, *queries: Query, **options: float) -> None:
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
        self._tree = not self.window.hopping and bool((extent < longest).any())

    def fresh(self) -> State:
        count, none, nobody = len(self.queries), np.empty(0), NOTHING
        meta = np.zeros(kernel.ENTRIES, np.int64)
        meta[kernel.LIMIT] = put_off(0, self._spec.K)
        meta[[kernel.NEWEST, kernel.FLOOR, kernel.DUE]] = EARLIEST
        skyband = [none, nobody, nobody, none, nobody, nobody, nobody, none, nobody, nobody, none]
        return State._make([*skyband, *no_answers(count), np.full(count, LATEST), meta])

    def advance(self, state: State, rows: Rows, frontier: int) -> tuple[State, tuple[Emission, ...]]:
        # A read-only array is another type to the compiler.
        rows = Rows._make([*(np.require(column, requirements=["C", "W"]) for column in rows[:4]), *rows[4:]])
        state, emission = self._hop(state, rows, frontier) if self.window.hopping else self._arrive(state, rows)
        if rows.score.size >= state.size:  # it costs no more than the batch did
            kernel.tidy(state.skyband, self._spec)
            state = self._fit(state, state.size, self._tree)
        return state, _apart(emission, len(self.queries))

    def _arrive(self, state: State, rows: Rows) -> tuple[State, Emission]:
        done, parts = 0, list[Changes]()
        while not parts or done < rows.score.size:
            state = self._roomy(state, rows.score.size - done)
            log = no_log(1000 + 4 * state.top_number.size)
            done = kernel.arrive(state.skyband, state.answers, log, self._spec, rows, done)
            used = log.used[0]
            parts.append(Changes(log.trigger[:used], log.at[:used], log.query[:used], log.op[:used],
                                 log.arrival[:used], log.score[:used]))  # fmt: skip
        return state, Changes._make(np.concatenate(column) for column in zip(*parts, strict=True))

    def _hop(self, state: State, rows: Rows, frontier: int) -> tuple[State, Emission]:
        done, out = 0, no_output()
        while True:
            state = self._roomy(state, rows.score.size - done)
            done, out = kernel.hop(state.skyband, state.ends, out, self._spec, rows, done, frontier)
            if done == rows.score.size:
                return state, Rankings.of(out)

    def _roomy(self, state: State, rows: int) -> State:
        """The same with room for an object more, and for so many if they can all be in S."""
        if state.size < state.score.size:
            return state
        capacity = max(2 * state.size, min(int(state.meta[kernel.LIMIT]), state.size + rows)) + 1
        return self._fit(state, capacity, self._tree or state.tree_score.size > 0)

    def _fit(self, state: State, capacity: int, tree: bool) -> State:
        # A list holds no more than S does, and for a moment one object more than it should.
        room = np.where(self._spec.ties, capacity, np.minimum(self._spec.k, capacity)) + 1
        return state.fitted(capacity, tree, room * (not self.window.hopping))

    def result(self, query: Query, k: int, last: int | None = None) -> Rankings:
        if k > self._spec.K:
            raise QueryError(f"k={k} exceeds {self._spec.K}, the largest k of the queries that share this skyband")
        if last is not None and last > self._spec.N:
            raise QueryError(f"last={last} exceeds {self._spec.N}, the longest window of the queries that share this "
                             "skyband")  # fmt: skip
        if last is not None and last < self._spec.N:  # room for a tree, should it pay to build one
            for partition, state in self.states.items():
                if state.tree_score.size == 0:
                    self.states[partition] = self._fit(state, state.score.size, True)
        return super().result(query, k, last)

    def snapshot(self, state: State, waiting: Rows, query: Query, k: int, last: int | None) -> tuple[int, Ints, Floats]:
        window, ties = query.window, query.ties == "all"
        newest = self.newest if window.hopping and window.time else int(state.meta[kernel.NEWEST])
        end = window.first_end(newest) if window.hopping else newest + 1
        start = end - (window.extent if last is None else last)
        answers = with_room(no_answers(1), np.array([1 + (state.size if ties else min(k, state.size))]))
        kernel.answer(state.skyband, answers, 0, k, ties, start)
        kernel.repay(state.skyband)
        size = answers.size[0]
        rows = Rows(answers.score[:size], answers.position[:size], np.zeros(size, np.int64), answers.arrival[:size])
        if waiting.score.size:
            rows = rows.join(waiting.take(np.flatnonzero(waiting.position >= start)))
        return end, *best(rows, k, ties)

    def arrivals(self, state: State) -> Ints:
        return state.live().arrival

    def verify(self, state: State) -> None:
        meta = state.meta
        objects = Objects._make(column[: state.size] for column in state[:3])
        assert (ranking(*objects) == np.arange(state.size)).all(), "S is not in rank order"
        assert meta[kernel.BAND] <= state.size <= meta[kernel.LIMIT], "Algorithm 4 is overdue"
        steps = np.flatnonzero(state.stair_corner[: meta[kernel.STEPS]] >= meta[kernel.FLOOR])
        stairs = Stairs._make(column[steps] for column in state[3:7])
        _verify_skyband(objects, stairs, self._spec, pruned=meta[kernel.BAND] == state.size)
        if meta[kernel.NODES]:
            _verify_tree(state.skyband.tree, int(meta[kernel.NODES]))
            known = state.tree_number[: meta[kernel.USED]]
            assert np.isin(objects.arrival, known).all(), "an object is neither in the tree nor behind it"
        if self.window.hopping:
            seen = meta[kernel.NEWEST] > EARLIEST
            assert meta[kernel.DUE] == state.ends.min() or not seen, "a window may close too late"
        else:
            self._verify_answers(state)

    def _verify_answers(self, state: State) -> None:
        live, answers = state.live(), state.answers
        for q, query in enumerate(self.queries):
            start = state.meta[kernel.NEWEST] - query.window.extent + 1
            arrival, _ = best(live.take(np.flatnonzero(live.position >= start)), query.k, query.ties == "all")
            part = slice(answers.base[q], answers.base[q] + answers.size[q])
            assert answers.arrival[part].tolist() == arrival.tolist(), f"the answer of query {q} is wrong"
            assert answers.oldest[q] <= answers.position[part].min(initial=LATEST), "an object may expire unnoticed"


def _sized(column: NDArray[Any], size: int) -> NDArray[Any]:
    """The column cut off, or with zeros behind it."""
    sized = np.zeros(size, column.dtype)
    sized[: min(size, column.size)] = column[:size]
    return sized


def _apart(emission: Emission, queries: int) -> tuple[Emission, ...]:
    """One emission a query; until now the query stands where the partition will stand."""
    if queries == 1:
        return (emission,)
    if isinstance(emission, Changes):
        return tuple(emission.take(emission.partition == q) for q in range(queries))
    parts, length = [], np.diff(emission.offset)
    for q in range(queries):
        blocks = emission.partition == q
        rows = np.repeat(blocks, length)
        offset = np.concatenate([NOTHING, [0], np.cumsum(length[blocks])])
        parts.append(Rankings(emission.end[blocks], emission.partition[blocks], emission.trigger[blocks], offset,
                              emission.arrival[rows], emission.score[rows]))  # fmt: skip
    return tuple(parts)


def _verify_skyband(objects: Objects, stairs: Stairs, spec: kernel.Spec, pruned: bool) -> None:
    """``pruned`` says that S is as Algorithm 4 left it, so that it is the K-skyband and the staircase is its own."""
    score, position, _ = objects
    for i in range(score.size if pruned else 0):
        above = position[:i][score[:i] > score[i]] if spec.strict else position[:i]
        assert np.count_nonzero(above >= position[i]) < spec.K, "S holds an object that K others dominate"
    assert (np.diff(stairs.corner) > 0).all(), "the staircase does not rise"
    for step in zip(*stairs, strict=True):
        rank = place(*objects, 0, score.size, step[:3])
        above = position[: rank + 1]
        assert np.count_nonzero(above >= step[3]) >= spec.K, "the staircase cuts off too much"
        assert not pruned or np.count_nonzero(above > step[3]) < spec.K, "the staircase cuts off too little"


def _verify_tree(tree: Tree, nodes: int) -> None:
    rank = np.empty(nodes, np.int64)
    rank[ranking(tree.score[:nodes], tree.position[:nodes], tree.arrival[:nodes])] = np.arange(nodes)
    stack = [(0, nodes)]
    while stack:
        low, high = stack.pop()
        right = min(middle(low, high), high)
        assert tree.position[low] == tree.position[low:high].max(), "the tree is no heap by time"
        if right < high:
            assert rank[low + 1 : right].max() < rank[right:high].min(), "the tree is no search tree by rank"
            assert tree.split[low] == tree.score[right:high].max(), "a split value is wrong"
        stack += [part for part in ((low + 1, right), (right, high)) if part[0] < part[1]]

"""SCase: one K-skyband, kept with a K-staircase, for every k and every window of a scoring function."""

import math
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import NOTHING, Changes, Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.objects.arrival import changes_of
from skyband.algorithms.partitioned import PerKey, best, by_arrival
from skyband.errors import QueryError
from skyband.kernels.common.output import no_output
from skyband.kernels.common.rows import Objects
from skyband.kernels.common.staircase import EARLIEST, LATEST, place, put_off
from skyband.kernels.objects import skyband as kernel
from skyband.kernels.objects.answers import Answers, no_answers, with_room
from skyband.kernels.objects.log import new_log
from skyband.kernels.objects.pst import Tree, middle
from skyband.kernels.objects.skyband import Skyband
from skyband.order import ranking
from skyband.query import Query
from skyband.storage.blocks import block, column, copied, empty, resized, size


@block(version=1)
class State(NamedTuple):
    """The K-skyband of all queries; their answers (every arrival) or where their windows end next (hopping)."""

    skyband: Skyband
    answers: Answers
    ends: Annotated[Ints, column("queries")]

    @property
    def held(self) -> int:
        """How many objects are in S."""
        return int(self.skyband.meta["held"][0])

    def live(self) -> Rows:
        """The objects of S that have not expired, in rank order."""
        score, position, arrival, *_ = self.skyband
        used = np.flatnonzero(position[: self.held] >= self.skyband.meta["floor"])
        return Rows(score[used], position[used], np.zeros(used.size, np.int64), arrival[used])


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
    takes_over = frozenset({"arrival"})
    several = True
    state_type = State

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        windows = [query.window for query in queries]
        k, extent = (np.array(column) for column in ([q.k for q in queries], [w.extent for w in windows]))
        ties = np.array([query.ties == "all" for query in queries])
        longest = int(extent.max())
        slide = np.array([w.slide for w in windows] if self.window.hopping else [], np.int64)
        self._asked = kernel.Queries(k, extent, slide, ties, int(k.max()), longest, bool(ties.any()), self.window.time)
        # Rows ripen by the pane that all queries share.
        pane = math.gcd(*(w.pane for w in windows)) if self.window.hopping else None
        self.window = replace(self.window, extent=longest, every=pane)
        self._tree = not self.window.hopping and bool((extent < longest).any())
        skyband = empty(Skyband, limit=put_off(0, self._asked.K))
        self._nothing = State(skyband, no_answers(len(queries)), np.full(len(queries), LATEST))

    def fresh(self) -> State:
        return copied(self._nothing)

    def advance(self, state: State, rows: Rows, frontier: int) -> tuple[State, tuple[Emission, ...]]:
        # A read-only array is another type to the compiler.
        rows = Rows._make([*(np.require(column, requirements=["C", "W"]) for column in rows[:4]), *rows[4:]])
        state, emission = self._hop(state, rows, frontier) if self.window.hopping else self._arrive(state, rows)
        if rows.score.size >= state.held:  # it costs no more than the batch did
            kernel.tidy(state.skyband, self._asked)
            state = self._fit(state, state.held, self._tree)
        return state, _apart(emission, len(self.queries))

    def _arrive(self, state: State, rows: Rows) -> tuple[State, Emission]:
        done, parts = 0, list[Changes]()
        while not parts or done < rows.score.size:
            state = self._roomy(state, rows.score.size - done)
            log = new_log(1000 + 4 * state.answers.arrival.size)
            done = kernel.arrive(state.skyband, state.answers, log, self._asked, rows, done)
            parts.append(changes_of(log))
        if len(parts) == 1:
            return state, parts[0]
        return state, Changes._make(np.concatenate(column) for column in zip(*parts, strict=True))

    def _hop(self, state: State, rows: Rows, frontier: int) -> tuple[State, Emission]:
        done, out = 0, no_output()
        while True:
            state = self._roomy(state, rows.score.size - done)
            done, out = kernel.hop(state.skyband, state.ends, out, self._asked, rows, done, frontier)
            if done == rows.score.size:
                return state, Rankings.of(out)

    def _roomy(self, state: State, rows: int) -> State:
        """The same with room for an object more, and for so many if they can all be in S."""
        skyband, held = state.skyband, state.held
        if held < size(skyband, "objects"):
            return state
        capacity = max(2 * held, min(int(skyband.meta["limit"][0]), held + rows)) + 1
        return self._fit(state, capacity, self._tree or size(skyband.tree, "objects") > 0)

    def _fit(self, state: State, capacity: int, tree: bool) -> State:
        """The same with so much room in S, in the tree or not, and for the answer of each query."""
        skyband = resized(state.skyband, "objects", capacity)
        # Staircase and tree may stand for objects that have left S since.
        steps, known = int(skyband.stairs.meta["steps"][0]), int(skyband.tree.meta["held"][0])
        stairs = resized(skyband.stairs, "points", max(capacity, steps))
        nodes = resized(skyband.tree, "objects", max(capacity, known) if tree else 0)
        skyband = skyband._replace(stairs=stairs, tree=nodes)
        # A list holds no more than S does, and for a moment one object more than it should.
        room = np.where(self._asked.ties, capacity, np.minimum(self._asked.k, capacity)) + 1
        return state._replace(skyband=skyband, answers=with_room(state.answers, room * (not self.window.hopping)))

    def result(self, query: Query, k: int, last: int | None = None) -> Rankings:
        if k > self._asked.K:
            raise QueryError(f"k={k} exceeds {self._asked.K}, the largest k of the queries that share this skyband")
        if last is not None and last > self._asked.N:
            raise QueryError(f"last={last} exceeds {self._asked.N}, the longest window of the queries that share this "
                             "skyband")  # fmt: skip
        if last is not None and last < self._asked.N:  # room for a tree, should it pay to build one
            for partition, state in self.states.items():
                room = size(state.skyband, "objects")
                if size(state.skyband.tree, "objects") < room:
                    self.states[partition] = self._fit(state, room, True)
        return super().result(query, k, last)

    def snapshot(self, state: State, waiting: Rows, query: Query, k: int, last: int | None) -> tuple[int, Ints, Floats]:
        window, ties = query.window, query.ties == "all"
        newest = self.newest if window.hopping and window.time else int(state.skyband.meta[0].newest)
        end = window.first_end(newest) if window.hopping else newest + 1
        start = end - (window.extent if last is None else last)
        answers = with_room(no_answers(1), np.array([1 + (state.held if ties else min(k, state.held))]))
        kernel.answer(state.skyband, answers, 0, k, ties, start)
        kernel.repay(state.skyband)
        held = answers.held[0]
        rows = Rows(answers.score[:held], answers.position[:held], np.zeros(held, np.int64), answers.arrival[:held])
        if waiting.score.size:
            rows = rows.join(waiting.take(np.flatnonzero(waiting.position >= start)))
        return end, *best(rows, k, ties)

    def arrivals(self, state: State) -> Ints:
        return state.live().arrival

    def held_rows(self) -> Rows:
        return by_arrival((partition, state.live()) for partition, state in self.states.items())

    def count(self, state: State) -> int:
        return int(np.count_nonzero(state.skyband.position[: state.held] >= state.skyband.meta["floor"]))

    def verify(self, state: State) -> None:
        skyband, meta = state.skyband, state.skyband.meta[0]
        objects = Objects._make(column[: state.held] for column in skyband[:3])
        assert (ranking(*objects) == np.arange(state.held)).all(), "S is not in rank order"
        assert meta.pruned <= state.held <= meta.limit, "Algorithm 4 is overdue"
        stairs, steps = skyband.stairs, skyband.stairs.meta[0].steps
        steps = np.flatnonzero(stairs.corner[:steps] >= meta.floor)
        points = tuple(column[steps] for column in stairs[:4])
        _verify_skyband(objects, points, self._asked, pruned=meta.pruned == state.held)
        if skyband.tree.meta[0].nodes:
            _verify_tree(skyband.tree)
            known = skyband.tree.arrival[: skyband.tree.meta[0].held]
            assert np.isin(objects.arrival, known).all(), "an object is neither in the tree nor behind it"
        if self.window.hopping:
            seen = meta.newest > EARLIEST
            assert meta.due == state.ends.min() or not seen, "a window may close too late"
        else:
            self._verify_answers(state)

    def _verify_answers(self, state: State) -> None:
        live, answers = state.live(), state.answers
        for q, query in enumerate(self.queries):
            start = state.skyband.meta[0].newest - query.window.extent + 1
            arrival, _ = best(live.take(np.flatnonzero(live.position >= start)), query.k, query.ties == "all")
            part = slice(answers.base[q], answers.base[q] + answers.held[q])
            assert answers.arrival[part].tolist() == arrival.tolist(), f"the answer of query {q} is wrong"
            assert answers.oldest[q] <= answers.position[part].min(initial=LATEST), "an object may expire unnoticed"


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


def _verify_skyband(objects: Objects, points: tuple[NDArray[Any], ...], asked: kernel.Queries, pruned: bool) -> None:
    """``points`` are the columns of the staircase, the corners last. ``pruned`` says that S is as Algorithm 4 left it,
    so that it is the K-skyband and the staircase is its own."""
    score, position, _ = objects
    for i in range(score.size if pruned else 0):
        above = position[:i][score[:i] > score[i]] if asked.strict else position[:i]
        assert np.count_nonzero(above >= position[i]) < asked.K, "S holds an object that K others dominate"
    assert (np.diff(points[3]) > 0).all(), "the staircase does not rise"
    for step in zip(*points, strict=True):
        rank = place(*objects, 0, score.size, step[:3])
        above = position[: rank + 1]
        assert np.count_nonzero(above >= step[3]) >= asked.K, "the staircase cuts off too much"
        assert not pruned or np.count_nonzero(above > step[3]) < asked.K, "the staircase cuts off too little"


def _verify_tree(tree: Tree) -> None:
    nodes = int(tree.meta[0].nodes)
    rank = np.empty(nodes, np.int64)
    rank[ranking(tree.score[:nodes], tree.position[:nodes], tree.arrival[:nodes])] = np.arange(nodes)
    stack = [(0, nodes)]
    while stack:
        low, high = stack.pop()
        right = min(middle(low, high), high)
        assert tree.position[low] == tree.position[low:high].max(), "the tree is no heap by position"
        if right < high:
            assert rank[low + 1 : right].max() < rank[right:high].min(), "the tree is no search tree by rank"
            assert tree.split[low] == tree.score[right:high].max(), "a split value is wrong"
        stack += [part for part in ((low + 1, right), (right, high)) if part[0] < part[1]]

"""SCase: one K-skyband of pairs, kept with a K-staircase, for every k and every window of a scoring function."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.algorithms.contract import Floats, Ints
from skyband.algorithms.pairs.base import OverPairs
from skyband.kernels.pairs.answers import is_full, renew
from skyband.kernels.pairs.program import BLOCK, Program
from skyband.kernels.pairs.scan import Bar, Newcomer, scan_scored
from skyband.kernels.pairs.state import Batch, PairState
from skyband.kernels.pairs.two_colours import TwoColours, fill, no_colours
from skyband.kernels.pairs.upkeep import arrive, settle, step_on, tidy
from skyband.kernels.pairs.window import enter, place_of
from skyband.query.sides import DIFFERENT, SAME, Fitted

SEVERAL = 2  # blocks of objects: where there are fewer, to lay them out by colour gains nothing
RUN = 32  # objects that come: before, all the others are laid out


class SCase(OverPairs):
    """The best pairs for any score and any window, kept exactly by looking at each new pair once.

    SCase of Shen et al., *A Generic Framework for Top-k Pairs and Top-k Objects Queries over Sliding Windows* (TKDE
    2014), Algorithms 3 and 4.

    For all queries of a scoring function one set S holds the K-skyband of pairs in the plane of score and age, K being
    the largest k and N the longest window; the age of a pair is that of its older object. It answers every k ≤ K and
    n ≤ N (Theorem 1) and holds about 2K(ln N − ln √K) pairs where scores do not depend on age: twice what Theorem 2
    says, and what the paper's Tables 2 and 3 show.

    - A new object is paired with all others, O(N), which no algorithm for arbitrary scores can avoid. A pair that the
      K-staircase dominates is dropped (Algorithm 3); O(K) are left (Lemma 2).
    - Rows out of order take their place by time, and their pairs are tested as all others (section 6.1).
    - Every arrival: each query keeps its answer, and reads it from S again only when a pair in it expires or a new
      pair may enter (section 4.2). Hopping windows that close together are answered in one pass (Algorithm 7).
    - Colours (``same``, ``different``, and conditions such as ``a.seller <> b.seller``): of the lists of section 6.4
      only the homochromatic one is kept, in the order of age; pairs of one colour are met along it.

    Better than the paper:

    - New pairs are met from the youngest to the oldest, so that the step of the staircase to test against only moves
      one way, and is the same for long runs. The search of O(log |SKB|) for each pair becomes one comparison with a
      constant, for a block of pairs at once, some hundred times cheaper with 300 steps (``benchmarks/pairs.py``, part
      *staircase*). The cost of an object is O(N + |SKB| log K) instead of O(N log |SKB|).
    - Algorithm 4 runs when S has grown by an eighth, as Algorithm 6 has it for objects, and at the end of a batch.

    Deviations:

    - No priority search tree (Algorithms 1 and 2): a snapshot is read down S, in O(|SKB|) at worst where the tree takes
      O(log |SKB| + k). The tree would cost O(K log |SKB|) for each object, asked for or not; S is there anyway.
    - Of two pairs of one score and one age neither dominates the other by the paper's definition; here the one that
      ranks before does. With ``ties="all"`` in any query it takes a better score (for all queries, since S is shared).
    - Where objects that fit are many, as with ``different``, no list is followed: pairs are evaluated side by side,
      valid or not, and of the few that pass the staircase the invalid ones are dropped, which costs less than to pick
      out the valid ones first. Runs of objects that do not fit are passed over. Objects of two colours are laid out by
      colour for each batch, so that only valid pairs are evaluated: in large windows, and in the cells of a grid.
    - Of an expired object the pairs in S are not looked up: they are passed over until Algorithm 4 runs.
    """

    name = "scase"
    several = True
    needs_program = False

    def fit(self, fitted: Fitted, program: Program | None) -> None:
        super().fit(fitted, program)
        self._together = no_colours(len(fitted.values), 0)

    def take_in(self, state: PairState, batch: Batch, first: int) -> int:
        if not self.compiled:
            return self._one_by_one(state, batch, first)
        return arrive(state, batch, first, self._apart(state, batch, first))

    def _apart(self, state: PairState, batch: Batch, first: int) -> TwoColours:
        """The objects colour by colour, where that pays: two colours that must differ, and a run of objects comes."""
        window, coming = state.window, batch.newcomers.position.size - first
        two = window.last.size == 2 and bool((self.scoring.kinds == DIFFERENT).all())
        if not two or coming < RUN or self.count(state) < SEVERAL * BLOCK:
            return self._together
        apart = no_colours(window.values.shape[0], self.count(state) + coming)
        fill(apart, window)
        return apart

    def _one_by_one(self, state: PairState, batch: Batch, first: int) -> int:
        """The loop of :func:`arrive` with scores that Python computes."""
        newcomers, queries, _, log, scratch, moves = batch
        window, band, stairs, meta = state.window, state.band, state.stairs, state.window.meta[0]
        arrivals = np.union1d(self.arrivals(state), newcomers.arrival)
        table = self.look_up(arrivals)
        for i in range(first, newcomers.position.size):
            if is_full(log, state.answers):
                return i
            position, arrival = int(newcomers.position[i]), int(newcomers.arrival[i])
            if not step_on(window, queries, position, moves):
                continue
            new = Newcomer(position, arrival, newcomers.values[i], newcomers.colours[i], place_of(window, position))
            score, swapped = self._scores(state, new, arrivals, table)
            scan_scored(window, new, Bar(stairs, int(stairs.meta[0].steps), queries.strict), scratch, score, swapped)
            if band.meta[0].held + scratch.found.meta[0].held > band.score.size:
                return i
            enter(window, new.at, newcomers, i)
            best = settle(state, queries, scratch)
            renew(state.answers, log, queries, band, (int(meta.newest), position, arrival), best)
        tidy(state, queries)
        return int(newcomers.position.size)

    def _scores(self, state: PairState, new: Newcomer, arrivals: Ints, table: pa.Table
                ) -> tuple[Floats, NDArray[np.bool_]]:  # fmt: skip
        """The goodness of the pairs of a newcomer with all objects, oldest first, and which of them are swapped."""
        window, start, stop = state.window, int(state.window.meta[0].start), int(state.window.meta[0].stop)
        others = np.searchsorted(arrivals, window.arrival[start:stop])
        mine = np.full(others.size, np.searchsorted(arrivals, new.arrival))
        newer = np.arange(start, stop) >= new.at
        fits = np.ones(others.size, bool)
        for kind, colours, own in zip(self.scoring.kinds, window.colours, new.colours, strict=True):
            fits &= (colours[start:stop] == own) == (kind == SAME)
        score, swapped = np.full(others.size, np.nan), np.zeros(others.size, bool)
        todo = np.flatnonzero(fits)
        for turned in (False, True):
            if todo.size:
                first = np.where(newer[todo] != turned, mine[todo], others[todo])
                second = np.where(newer[todo] != turned, others[todo], mine[todo])
                goodness, holds = self.fitted.evaluate(table.take(pa.array(first)), table.take(pa.array(second)))
                score[todo[holds]] = goodness[holds]
                swapped[todo[holds]] = turned
                todo = todo[~holds]
        return score, swapped

    def verify(self, state: PairState) -> None:
        super().verify(state)
        self._verify_skyband(state)

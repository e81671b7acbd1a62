"""SCase: one K-skyband of pairs, kept with a K-staircase, for every k and every window of a scoring function."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.algorithms.contract import Floats, Ints
from skyband.algorithms.pairs.base import Batch, OverPairs
from skyband.algorithms.pairs.state import State
from skyband.kernels.pairs.answers import renew
from skyband.kernels.pairs.program import BLOCK
from skyband.kernels.pairs.scan import Bar, Newcomer, scan_scored
from skyband.kernels.pairs.sides import Sides, fill, no_sides
from skyband.kernels.pairs.skyband import arrive, settle, step_on, tidy
from skyband.kernels.pairs.window import NEWEST, START, STEPS, STOP, enter, place_of
from skyband.query.sides import DIFFERENT, SAME

SEVERAL = 2  # blocks of objects: where there are fewer, to lay them out by colour gains nothing
RUN = 32  # objects that come: before, all the others are laid out


class SCase(OverPairs):
    """SCase of Shen et al., *A Generic Framework for Top-k Pairs and Top-k Objects Queries over Sliding Windows*
    (TKDE 2014), Algorithms 3 and 4, with the chromatic lists of section 6.4.

    For all queries of a scoring function one set S holds the K-skyband of pairs in the plane of score and age, K being
    the largest k and N the longest window; the age of a pair is that of its older object. It answers every k ≤ K and
    n ≤ N (Theorem 1) and holds about 2K(ln N − ln √K) pairs where scores do not depend on age.

    - A new object is paired with all others, O(N), which no algorithm for arbitrary scores can avoid. A pair that the
      K-staircase dominates is dropped (Algorithm 3); of those of a window of 10⁴ about a dozen are left at K = 20.
    - Rows out of order take their place by time, and their pairs are tested as all others (section 6.1).
    - Every arrival: each query keeps its answer, and reads it from S again only when a pair in it expires or a new
      pair may enter (section 4.2). Hopping windows that close together are answered in one pass (Algorithm 7).
    - Colours (``same``, ``different``, and conditions such as ``a.seller <> b.seller``): one list links the objects of
      a colour, and homochromatic pairs are met along it.

    Better than the paper:

    - New pairs are met from the youngest to the oldest, so that the step of the staircase to test against only moves
      one way, and is the same for long runs. The search of O(log |SKB|) for each pair becomes one comparison with a
      constant, for a block of pairs at once: 0.13 ns a pair instead of 11 ns with 300 steps, beside 0.6 ns for a score
      of three differences. The cost of an object is O(N + |SKB| log K) instead of O(N log |SKB|): at N = 10⁴ and K = 20
      1.2–1.4 times that of the supreme algorithm, which only computes scores and ages, and 2.0–2.3 times that of the
      scores alone (``benchmarks/pairs.py``).
    - Algorithm 4 runs when S has grown by an eighth, as Algorithm 6 has it for objects, and at the end of a batch.

    Deviations:

    - No priority search tree (Algorithms 1 and 2): snapshots are read down S. At N = 10⁴ that takes 0.03–0.14 µs for
      K = 20 (some 300 pairs) and at most 9 µs for K = 1000 (11,750 pairs), where the tree takes 0.2 and 0.2–3.6 µs; but
      to build the tree, which every new pair in S makes necessary, takes 5 and 340 µs.
    - Equal ages do not shield from dominance: the better of two pairs of one age dominates the other. With
      ``ties="all"`` in any query only a better score does (for all queries, since S is shared).
    - Where objects that fit are many, as with ``different``, no list is followed: pairs are evaluated side by side,
      valid or not, and of the few that pass the staircase the invalid ones are dropped. At 10⁴ objects that takes as
      long as without colours (17 µs an object); to pick out the valid pairs takes 35–67 µs. Runs of objects that do
      not fit are passed over. Objects of two colours are laid out by colour for each batch, so that only valid pairs
      are evaluated: half of the time in large windows, and in the cells of a grid.
    - Of an expired object the pairs in S are not looked up: they are passed over until Algorithm 4 runs.
    """

    name = "scase"
    several = True
    needs_program = False

    def take_in(self, state: State, batch: Batch, first: int) -> tuple[State, int]:
        if not self.compiled:
            return state, self._one_by_one(state, batch, first)
        done = arrive(state.window, state.band, state.stairs, state.answers, batch.log, batch.queries, self.program,
                      self.kinds, batch.objects, first, batch.moves, batch.scratch, self._sides(state, batch, first)
                      )  # fmt: skip
        return state, done

    def _sides(self, state: State, batch: Batch, first: int) -> Sides:
        """The objects colour by colour, where that pays: two colours that must differ, and a run of objects comes."""
        window, coming = state.window, batch.objects.position.size - first
        live, width = int(state.meta[STOP] - state.meta[START]), window.values.shape[0]
        two = window.last.size == 2 and self.kinds.size > 0 and self.kinds[0] == DIFFERENT
        if not two or live < SEVERAL * BLOCK or coming < RUN:
            return no_sides(width, 0)
        sides = no_sides(width, live + coming)
        fill(sides, window)
        return sides

    def _one_by_one(self, state: State, batch: Batch, first: int) -> int:
        """The loop of :func:`arrive` with scores that Python computes."""
        objects, queries, log, moves, scratch = batch
        window, band, stairs, meta = state.window, state.band, state.stairs, state.meta
        arrivals = np.union1d(window.arrival[meta[START] : meta[STOP]], objects.arrival)
        table = self.look_up(arrivals)
        for i in range(first, objects.position.size):
            if log.used[0] > log.score.size - 2 * state.top_score.size:
                return i
            position, arrival = int(objects.position[i]), int(objects.arrival[i])
            if not step_on(window, queries, position, moves):
                continue
            new = Newcomer(position, arrival, objects.values[i], objects.colours[i], place_of(window, position))
            score, swapped = self._scores(state, new, arrivals, table)
            scan_scored(window, new, Bar(stairs, int(meta[STEPS]), queries.strict), scratch, score, swapped)
            if state.size + scratch.done[0] > band.score.size:
                return i
            enter(window, new.at, objects, i)
            best = settle(window, band, stairs, queries, scratch)
            renew(state.answers, log, queries, band, state.size, (int(meta[NEWEST]), position, arrival), best)
        return int(objects.position.size)

    def _scores(self, state: State, new: Newcomer, arrivals: Ints, table: pa.Table) -> tuple[Floats, NDArray[np.bool_]]:
        """The goodness of the pairs of a newcomer with all objects, oldest first, and which of them are swapped."""
        assert self.fitted is not None
        window, start, stop = state.window, int(state.meta[START]), int(state.meta[STOP])
        others = np.searchsorted(arrivals, window.arrival[start:stop])
        mine = np.full(others.size, np.searchsorted(arrivals, new.arrival))
        newer = np.arange(start, stop) >= new.at
        fits = np.ones(others.size, bool)
        for kind, colours, own in zip(self.kinds, window.colours, new.colours, strict=True):
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

    def tidy(self, state: State) -> None:
        tidy(state.window, state.band, state.stairs, self._spec)

    def verify(self, state: State) -> None:
        super().verify(state)
        self._verify_skyband(state)

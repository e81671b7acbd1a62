"""Naive: the K best pairs of each object by itself."""

import numpy as np

from skyband.algorithms.contract import Ints, Rankings, Rows
from skyband.algorithms.pairs.base import Batch, OverPairs
from skyband.algorithms.pairs.scase import SCase
from skyband.algorithms.pairs.state import State
from skyband.kernels.pairs.answers import Queries, reach
from skyband.kernels.pairs.band import Pairs
from skyband.kernels.pairs.naive import arrive_naive, put_in_order, refill
from skyband.kernels.pairs.window import FLOOR, NEWEST, START, STOP, expire
from skyband.query import Query


class Naive(OverPairs):
    """The competitor *naive* of Shen et al., *A Generic Framework for Top-k Pairs and Top-k Objects Queries over
    Sliding Windows* (TKDE 2014, section 7.1.2).

    Of each object the K best pairs with objects that came before it are kept, O(KN) pairs in all, sorted. When an
    object expires, the list of every object that was paired with it is computed anew. A snapshot of a shorter window,
    or of a hopping one, is computed from all objects in it.
    """

    name = "naive"

    def take_in(self, state: State, batch: Batch, first: int) -> tuple[State, int]:
        done = arrive_naive(state.window, state.band, state.stairs, state.answers, batch.log, batch.queries,
                            self.program, self.kinds, batch.objects, first, batch.moves, batch.scratch)  # fmt: skip
        return state, done

    def _widened(self, state: State, more: int, queries: Queries) -> State:
        objects = state.position.size
        room = objects * (objects if queries.strict else min(queries.K, objects) + 1)
        return super()._widened(state, max(0, room - state.size), queries)

    def tidy(self, state: State) -> None:
        put_in_order(state.band, state.size)

    def _close(self, state: State, blocks: list[list[Rankings]], bound: int, closer: tuple[int, int, int]) -> None:
        """Answer one window after the other: the lists are those of one window."""
        last = min(bound, int(state.meta[NEWEST]) + self._spec.N)
        while (end := int(state.ends[0])) <= last:
            state.meta[FLOOR] = end - self._spec.N
            expire(state.window)
            refill(state.window, state.band, state.stairs, self._spec, self.program, self.kinds,
                   self._scratch(int(state.meta[STOP] - state.meta[START])))  # fmt: skip
            super()._close(state, blocks, end, closer)
        super()._close(state, blocks, bound, closer)

    def standing(self, state: State, query: Query, k: int, last: int | None) -> tuple[int, Pairs, Ints]:
        start, end = self.present(state, query, last)
        if not self.window.hopping and last in (None, query.window.extent):
            return super().standing(state, query, k, last)
        other = SCase(query)
        other.fitted, other.program, other.kinds = self.fitted, self.program, self.kinds
        other.compiled, other.tag_columns = True, list(range(self.kinds.size))
        window, part = state.window, slice(int(state.meta[START]), int(state.meta[STOP]))
        size = part.stop - part.start
        rows = Rows(np.zeros(size), window.position[part], np.zeros(size, np.int64), window.arrival[part], 0, 0,
                    window.values[:, part].T, window.colours[:, part].T)  # fmt: skip
        rows = rows.take(np.flatnonzero(rows.position >= start))
        one = other._fold(other.fresh(), rows, other._silent, False, [])
        one.meta[NEWEST] = state.meta[NEWEST]
        stop, _ = reach(one.band, one.size, k, query.ties == "all", start)
        return end, one.band, np.arange(stop)

"""Naive: the K best pairs of each object by itself."""

import numpy as np

from skyband.algorithms.contract import Ints, Rankings
from skyband.algorithms.pairs.base import Between, OverPairs
from skyband.algorithms.pairs.scase import SCase
from skyband.kernels.pairs.answers import Queries, reach
from skyband.kernels.pairs.band import Pairs, PairsMeta
from skyband.kernels.pairs.naive import arrive_naive, refill
from skyband.kernels.pairs.state import Batch, PairState
from skyband.kernels.pairs.window import Newcomers, WindowMeta, expire
from skyband.query import Query
from skyband.storage.blocks import plain


class Naive(OverPairs):
    """The best pairs in the plainest way, to measure others against.

    The competitor *naive* of Shen et al., *A Generic Framework for Top-k Pairs and Top-k Objects Queries over
    Sliding Windows* (TKDE 2014, section 7.1.2).

    Of each object the K best pairs with objects that came before it are kept, O(KN) pairs in all, sorted. When an
    object expires, the list of every object that was paired with it is computed anew. A snapshot of a shorter window,
    or of a hopping one, is computed from all objects in it.
    """

    name = "naive"

    def take_in(self, state: PairState, batch: Batch, first: int) -> int:
        return arrive_naive(state, batch, first)

    def with_pairs(self, state: PairState, more: int, queries: Queries) -> PairState:
        objects = state.window.position.size
        room = objects * (objects if queries.strict else min(queries.K, objects) + 1)
        return super().with_pairs(state, max(0, room - plain(PairsMeta, state.band.meta).held), queries)

    def _close(self, state: PairState, closed: list[list[Rankings]], bound: int, between: Between) -> None:
        """Answer one window after the other: the lists are those of one window."""
        window = state.window
        last = min(bound, plain(WindowMeta, window.meta).newest + self.asked.N)
        while (end := int(state.ends.min())) <= last:
            window.meta["floor"] = end - self.asked.N
            expire(window)
            refill(state, self.asked, self.scoring, self.scratch(self.count(state)))
            super()._close(state, closed, end, between)
        super()._close(state, closed, bound, between)

    def standing(self, state: PairState, query: Query, k: int, last: int | None) -> tuple[int, Pairs, Ints]:
        start, end = self.present(state, query, last)
        if not self.window.hopping and last in (None, query.window.extent):
            return super().standing(state, query, k, last)
        other, window = SCase(query), state.window
        other.fit(self.fitted, self.scoring.program)
        low, high, *_ = plain(WindowMeta, window.meta)
        which = low + np.flatnonzero(window.position[low:high] >= start)
        values, colours = (
            np.array(window.values[:, which].T, order="C"),
            np.array(window.colours[:, which].T, order="C"),
        )
        newcomers = Newcomers(window.position[which], window.arrival[which], values, colours)
        one, _ = other.fold(other.fresh(), newcomers, other.silent, moves=False)
        stop, _ = reach(one.band, k, query.ties == "all", start)
        return end, one.band, np.arange(stop)

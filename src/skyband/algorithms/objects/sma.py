"""SMA: the skyband monitoring algorithm."""

import numpy as np

from skyband.algorithms.contract import FOREVER, Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.objects.arrival import batch_of
from skyband.algorithms.objects.tma import TMA, GridState, held_of
from skyband.algorithms.partitioned import best
from skyband.kernels.objects.arrivals import NOW
from skyband.kernels.objects.bands import PRUNE, Band, empty_band
from skyband.kernels.objects.grid import FLOOR, FRONTIER, hop
from skyband.query import Query


class SMA(TMA):
    """The *skyband monitoring algorithm* of Mouratidis et al. (SIGMOD 2006), the baseline of topkw and mintopk.

    As TMA, but what it holds beside the grid is a k-skyband: of the objects that have come since the top k were last
    computed from scratch and score at least what the k-th scored then. Only when fewer than k of them are left are
    they computed again. (topkw's SNN is the same for nearest neighbours.)

    It serves hopping windows too: rows are taken in one by one, expiry is dealt with as a window closes.

    Options and deviation: as :class:`skyband.algorithms.objects.tma.TMA`.
    """

    name = "sma"
    serves = frozenset({"arrival", "hopping"})

    def band(self) -> Band:
        return empty_band(PRUNE, self.query.k, self.ties)

    def clock(self) -> Ints:
        clock = super().clock()
        if self.window.hopping:
            no_window = clock[NOW] + self.window.extent + 1
            clock = np.concatenate([clock, [self.window.slide, no_window, clock[NOW], clock[NOW]]])
        return clock

    def advance(self, state: GridState, rows: Rows, frontier: int) -> tuple[GridState, tuple[Emission, ...]]:
        if not self.window.hopping:
            return super().advance(state, rows, frontier)
        window, clock = self.window, state.clock
        # The window that fills is the next to close, or for count windows the last closed until another object comes.
        filling = window.first_end(frontier if window.time else frontier - 1)
        clock[FRONTIER] = max(clock[FRONTIER], frontier)
        clock[FLOOR] = max(clock[FLOOR], filling - window.extent - 1)
        held, out = hop(held_of(state), clock, batch_of(rows))
        return GridState._make((*held.band, *held.grid, clock)), (Rankings.of(out),)

    def snapshot(
        self, state: GridState, waiting: Rows, query: Query, k: int, last: int | None
    ) -> tuple[int, Ints, Floats]:
        window = self.window
        if not window.hopping:
            return super().snapshot(state, waiting, query, k, last)
        rows = self.objects(state)
        if waiting.score.size:
            rows = rows.join(waiting)
        newest = int(rows.position.max(initial=state.clock[NOW]))
        if window.time:
            if state.clock[FRONTIER] < FOREVER:  # other partitions may be ahead of this one
                newest = max(newest, int(state.clock[FRONTIER]) + (window.late or 0))
            end = window.first_end(newest)
        else:
            end = -(-(newest + 1) // window.slide) * window.slide
        return end, *best(rows.take(rows.position >= end - (last or window.extent)), k, self.ties)

    def dead(self, state: GridState) -> int:
        return int(state.clock[FLOOR]) if self.window.hopping else super().dead(state)

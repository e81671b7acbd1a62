"""SMA: the skyband monitoring algorithm."""

from skyband.algorithms.contract import Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.objects.arrival import batch_of
from skyband.algorithms.objects.tma import TMA
from skyband.algorithms.partitioned import best
from skyband.kernels.common.output import no_output
from skyband.kernels.objects.bands import PRUNE, Band, empty_band
from skyband.kernels.objects.grid import Watch, hop
from skyband.query import Query


class SMA(TMA):
    """The *skyband monitoring algorithm* of Mouratidis et al. (SIGMOD 2006), the baseline of topkw and mintopk.

    As TMA, but what it holds beside the grid is a k-skyband: of the objects that have come since the top k were last
    computed from scratch and score at least what the k-th scored then. Only when fewer than k of them are left are
    they computed again.

    It serves hopping windows too: rows are taken in one by one, expiry is dealt with as a window closes.

    Options: as :class:`skyband.algorithms.objects.tma.TMA`. Deviations: its grid, and that the threshold rises between
    computations. The k-th score becomes the threshold when there are first k objects, and again whenever the k-skyband
    has three more objects to each of the top k: the threshold is then too low, most likely one from the days when the
    window was young. What is below the new one leaves; it is in the grid, should it be wanted.
    """

    name = "sma"
    serves = frozenset({"arrival", "hopping"})

    def band(self) -> Band:
        return empty_band(PRUNE, self.query.k, self.ties)

    def fresh(self) -> Watch:
        state = super().fresh()
        if self.window.hopping:
            clock, hops = state.clock[0], state.hops[0]
            no_window = clock.now + self.window.extent + 1
            hops.slide, hops.end, hops.frontier, hops.floor = self.window.slide, no_window, clock.now, clock.now
        return state

    def advance(self, state: Watch, rows: Rows, frontier: int) -> tuple[Watch, tuple[Emission, ...]]:
        if not self.window.hopping:
            return super().advance(state, rows, frontier)
        window, hops = self.window, state.hops[0]
        # The window that fills is the next to close, or for count windows the last closed until another object comes.
        filling = window.first_end(frontier if window.time else frontier - 1)
        hops.frontier = max(hops.frontier, frontier)
        hops.floor = max(hops.floor, filling - window.extent - 1)
        state, out = hop(state, batch_of(rows), no_output())
        return state, (Rankings.of(out),)

    def snapshot(self, state: Watch, waiting: Rows, query: Query, k: int, last: int | None) -> tuple[int, Ints, Floats]:
        window = self.window
        if not window.hopping:
            return super().snapshot(state, waiting, query, k, last)
        rows = self.objects(state)
        if waiting.score.size:
            rows = rows.join(waiting)
        if window.time:
            end = window.first_end(self.newest)
        else:
            newest = int(rows.position.max(initial=int(state.clock[0].now)))
            end = window.first_end(newest)
        return end, *best(rows.take(rows.position >= end - (last or window.extent)), k, self.ties)

    def dead(self, state: Watch) -> int:
        return int(state.hops["floor"][0]) if self.window.hopping else super().dead(state)

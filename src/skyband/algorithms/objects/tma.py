"""TMA: the top-k monitoring algorithm."""

from typing import ClassVar

import numpy as np

from skyband.algorithms.contract import Emission, Ints, Rows
from skyband.algorithms.objects.arrival import EveryArrival, band_arrivals, batch_of, changes_of
from skyband.kernels.objects.bands import CAP, Band, empty_band
from skyband.kernels.objects.grid import Watch, cells_of, empty_grid, watch
from skyband.storage.blocks import empty


class TMA(EveryArrival[Watch]):
    """The *top-k monitoring algorithm* of Mouratidis et al. (SIGMOD 2006), a baseline of topkw (section 2).

    It holds the top k alone. An arrival better than the k-th takes its place; when one of the k expires, they are
    computed from scratch, and for this every object of the window is held in a grid whose cells are visited best first.

    Options:
        cells: how many cells the grid has (default 1024).

    Deviation: the grid divides the range of the scores, not of the attributes, since scoring functions are arbitrary
    here; it is laid out anew as the range moves.
    """

    name = "tma"
    options: ClassVar[dict[str, float]] = {"cells": 1024}
    state_type = Watch

    def band(self) -> Band:
        """The band to begin with."""
        return empty_band(CAP, self.query.k, self.ties)

    def fresh(self) -> Watch:
        return empty(Watch, band=self.band(), grid=empty_grid(int(self.parameters["cells"])), extent=self.window.extent)

    def advance(self, state: Watch, rows: Rows, frontier: int) -> tuple[Watch, tuple[Emission, ...]]:
        state, log = watch(state, batch_of(rows))
        return state, (changes_of(log),)

    def objects(self, state: Watch) -> Rows:
        return self._in_grid(state, 0, int(state.grid.meta["held"][0]))

    def arrived(self, state: Watch, since: int) -> Ints:
        held = int(state.grid.meta["held"][0])
        arrival = self._in_grid(state, max(0, held - int(state.clock["brought"][0])), held).arrival
        return arrival[arrival >= since]

    def count(self, state: Watch) -> int:
        # Of those that came in order since, none is dead: it would have been taken out.
        held = int(state.grid.meta["held"][0])
        before = max(0, held - int(state.grid.meta["ordered"][0]))
        return held - before + self._in_grid(state, 0, before).arrival.size

    def _in_grid(self, state: Watch, first: int, stop: int) -> Rows:
        """The objects of the window from the first to before the last of these, in the order of arrival."""
        grid = state.grid
        turn = (int(grid.meta["front"][0]) + np.arange(first, stop)) % max(grid.score.size, 1)
        turn = turn[grid.position[turn] > self.dead(state)]
        return Rows(grid.score[turn], grid.position[turn], np.zeros(turn.size, np.int64), grid.arrival[turn])

    def verify(self, state: Watch) -> None:
        super().verify(state)
        band, grid = state.band, state.grid
        rows = self.objects(state)
        assert np.unique(rows.arrival).size == rows.arrival.size, "an object is in the grid twice"
        assert np.isin(band_arrivals(band), rows.arrival).all(), "the band holds what is not in the grid"
        threshold = band.meta[0].threshold
        assert not np.isnan(threshold) or rows.arrival.size < self.query.k, "objects have passed without a threshold"
        chained, cells = 0, cells_of(grid, grid.score)
        for cell, slot in enumerate(grid.head):
            while slot >= 0:
                assert cells[slot] == cell, "an object is in the wrong cell"
                chained, slot = chained + 1, grid.after[slot]
        assert chained == grid.meta[0].held, "an object is in no cell"

"""TMA: the top-k monitoring algorithm."""

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import Emission, Floats, Ints, Rows
from skyband.algorithms.objects.arrival import EveryArrival, batch_of, changes_of
from skyband.kernels.objects.arrivals import new_clock
from skyband.kernels.objects.bands import CAP, THRESHOLD, Band, empty_band
from skyband.kernels.objects.grid import Grid, Watch, cells_of, empty_grid, grid_order, watch


class GridState(NamedTuple):
    """The band of the query, the grid of all objects of the window, and the clock."""

    score: Floats
    position: Ints
    arrival: Ints
    shown: NDArray[np.int8]
    meta: Ints
    real: Floats
    grid_score: Floats
    grid_time: Ints
    grid_number: Ints
    grid_after: Ints
    grid_head: Ints
    grid_tail: Ints
    grid_meta: Ints
    grid_axis: Floats
    clock: Ints


class TMA(EveryArrival[GridState]):
    """The *top-k monitoring algorithm* of Mouratidis et al. (SIGMOD 2006), a baseline of topkw (section 2).

    It holds the top k alone. An arrival better than the k-th takes its place; when one of the k expires, they are
    computed from scratch, and for this every object of the window is held in a grid whose cells are visited best first.

    Options:
        cells: how many cells the grid has (default 1024).

    Deviation: the grid divides the range of the scores, not of the attributes, since scoring functions are arbitrary
    here; it is laid out anew as the range moves. (topkw's CPM/w is the same for nearest neighbours.)
    """

    name = "tma"
    options: ClassVar[dict[str, float]] = {"cells": 1024}
    state_type = GridState

    def band(self) -> Band:
        """The band to begin with."""
        return empty_band(CAP, self.query.k, self.ties)

    def clock(self) -> Ints:
        """The clock to begin with."""
        return new_clock(self.window.extent)

    def fresh(self) -> GridState:
        return GridState._make((*self.band(), *empty_grid(int(self.parameters["cells"])), self.clock()))

    def advance(self, state: GridState, rows: Rows, frontier: int) -> tuple[GridState, tuple[Emission, ...]]:
        held, log = watch(held_of(state), state.clock, batch_of(rows))
        return GridState._make((*held.band, *held.grid, state.clock)), (changes_of(log),)

    def objects(self, state: GridState) -> Rows:
        grid = held_of(state).grid
        turn = grid_order(grid)
        turn = turn[grid.position[turn] > self.dead(state)]
        return Rows(grid.score[turn], grid.position[turn], np.zeros(turn.size, np.int64), grid.arrival[turn])

    def verify(self, state: GridState) -> None:
        super().verify(state)
        band, grid = held_of(state)
        rows = self.objects(state)
        assert np.unique(rows.arrival).size == rows.arrival.size, "an object is in the grid twice"
        assert np.isin(band.arrival, rows.arrival).all(), "the band holds what is not in the grid"
        threshold = band.real[THRESHOLD]
        assert not np.isnan(threshold) or rows.arrival.size < self.query.k, "objects have passed without a threshold"
        chained, cells = 0, cells_of(grid, grid.score)
        for cell, slot in enumerate(grid.head):
            while slot >= 0:
                assert cells[slot] == cell, "an object is in the wrong cell"
                chained, slot = chained + 1, grid.after[slot]
        assert chained == grid_order(grid).size, "an object is in no cell"


def held_of(state: GridState) -> Watch:
    """The state as the kernels take it."""
    return Watch(Band(*state[:6]), Grid(*state[6:14]))

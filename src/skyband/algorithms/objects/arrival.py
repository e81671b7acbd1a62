"""What the algorithms for windows that move with every arrival have in common."""

from abc import abstractmethod
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import NOTHING, Changes, Emission, Floats, Ints, Rows
from skyband.algorithms.partitioned import PerKey, best
from skyband.errors import QueryError
from skyband.kernels.objects import bands
from skyband.kernels.objects.arrivals import EXTENT, NOW, Batch, new_clock, process
from skyband.kernels.objects.bands import Band, Log
from skyband.order import ranking
from skyband.query import Query

MOST = 1 << 40  # objects: more than any machine holds
MOST_CELLS = 1 << 20  # they are laid out whether or not there are objects in them


class BandState(NamedTuple):
    """A band (see :class:`skyband.kernels.objects.bands.Band`) and its clock."""

    score: Floats
    position: Ints
    arrival: Ints
    shown: NDArray[np.int8]
    meta: Ints
    real: Floats
    clock: Ints


S = TypeVar("S", bound=tuple[NDArray[Any], ...])


class EveryArrival(PerKey[S]):
    """An algorithm whose state begins with the band of the query and ends with a clock."""

    serves = frozenset({"arrival"})

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        self.ties = self.query.ties == "all"
        self._check_options()

    @abstractmethod
    def objects(self, state: S) -> Rows:
        """All objects held, each once; those out of the window left out."""

    def snapshot(self, state: S, waiting: Rows, query: Query, k: int, last: int | None) -> tuple[int, Ints, Floats]:
        now = int(state[-1][NOW])
        rows = self.objects(state)
        rows = rows.take(rows.position > now - (last or self.window.extent))
        return now + 1, *best(rows, k, self.ties)

    def arrivals(self, state: S) -> Ints:
        return self.objects(state).arrival

    def verify(self, state: S) -> None:
        band = Band(*state[:6])
        verify_band(band)
        assert state[-1][EXTENT] == self.window.extent
        assert (band.position > self.dead(state)).all(), "an object is out of the window"

    def dead(self, state: S) -> int:
        """The newest time that is out of the window."""
        return int(state[-1][NOW] - state[-1][EXTENT])

    def _check_options(self) -> None:
        """Refuses options that make no sense; every algorithm has some of these."""
        given = self.parameters
        whole = {"buffer": (1, MOST), "additional": (0, MOST), "cells": (1, MOST_CELLS)}
        for option, (least, most) in whole.items():
            if option in given and (given[option] != int(given[option]) or not least <= given[option] <= most):
                raise QueryError(f"{option}={given[option]:g} must be a whole number from {least} to {most}")
        if "gamma" in given and not 0 <= given["gamma"] < np.inf:
            raise QueryError(f"gamma={given['gamma']:g} must be at least 0: the share of dominated objects to tolerate")
        if "sigma" in given and not 0 < given["sigma"] < 1:
            raise QueryError(f"sigma={given['sigma']:g} must lie between 0 and 1: it is a probability of error")


class OneBand(EveryArrival[BandState]):
    """An algorithm that holds one band and nothing else."""

    state_type = BandState

    @abstractmethod
    def band(self) -> Band:
        """The band to begin with."""

    def fresh(self) -> BandState:
        return BandState(*self.band(), new_clock(self.window.extent))

    def advance(self, state: BandState, rows: Rows, frontier: int) -> tuple[BandState, tuple[Emission, ...]]:
        band, log = process(Band(*state[:6]), state.clock, batch_of(rows))
        return BandState(*band, state.clock), (changes_of(log),)

    def objects(self, state: BandState) -> Rows:
        return band_rows(Band(*state[:6]))


def batch_of(rows: Rows) -> Batch:
    """The rows as the kernels take them: always read-only, so that one compiled version serves all."""
    columns = [np.ascontiguousarray(column).view() for column in (rows.score, rows.position, rows.arrival)]
    for column in columns:
        column.flags.writeable = False
    return Batch._make((*columns, rows.first_position, rows.first_arrival))


def band_rows(band: Band) -> Rows:
    """The objects of a band that is at rest."""
    return Rows(band.score, band.position, np.zeros_like(band.position), band.arrival)


def changes_of(log: Log) -> Changes:
    """What a kernel logged."""
    count = log.used[0]
    return Changes(log.trigger[:count], log.at[:count], NOTHING, log.op[:count], log.arrival[:count], log.score[:count])


def verify_band(band: Band) -> None:
    """Asserts the invariants of a band that is at rest."""
    meta, size = band.meta, band.score.size
    assert meta[bands.START] == 0
    assert meta[bands.SIZE] == size == band.position.size == band.arrival.size == band.shown.size
    assert (ranking(band.score, band.position, band.arrival) == np.arange(size)).all(), "a band is not in order"
    assert np.unique(band.arrival).size == size, "an object is in a band twice"
    k, top = meta[bands.K], meta[bands.TOP]
    wanted = min(k, size)
    if meta[bands.TIES] and size > k:
        wanted = np.count_nonzero(band.score >= band.score[k - 1])
    assert top == wanted, "the top k is not settled"
    assert band.shown[:top].all() and not band.shown[top:].any()
    tracked = slice(None) if meta[bands.KIND] == bands.CAP else slice(top)
    oldest = min(zip(band.position[tracked].tolist(), band.arrival[tracked].tolist(), strict=True), default=None)
    assert oldest is None or oldest >= (meta[bands.OLDEST_TIME], meta[bands.OLDEST_NUMBER]), "an expiry would be missed"
    threshold = band.real[bands.THRESHOLD]
    if meta[bands.KIND] == bands.CAP:
        assert size <= max(meta[bands.CAPACITY], top)
        assert np.isnan(threshold) or not size or threshold <= band.score[min(size, meta[bands.CAPACITY]) - 1]
    elif meta[bands.LIMIT] > 0:
        assert size - top < meta[bands.LIMIT], "pruning is overdue"
    elif meta[bands.KIND] == bands.PRUNE:
        assert (dominators(band) < k).all(), "a dominated object is held"


def dominators(band: Band) -> Ints:
    """How many objects of the band dominate each of its objects."""
    newer = (band.position[:, None] > band.position) | (band.position[:, None] == band.position) & (
        band.arrival[:, None] > band.arrival
    )
    better = np.arange(band.score.size)[:, None] < np.arange(band.score.size)
    if band.meta[bands.TIES]:
        better = band.score[:, None] > band.score
    count: Ints = np.count_nonzero(newer & better, axis=0)
    return count

"""What the algorithms for windows that move with every arrival have in common."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import NO_CHANGES, NOTHING, Changes, Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.partitioned import PerKey, best, by_arrival
from skyband.errors import QueryError
from skyband.kernels.objects import bands
from skyband.kernels.objects.arrivals import Banded, Batch, process
from skyband.kernels.objects.bands import Band
from skyband.kernels.objects.log import Log
from skyband.kernels.objects.many import process_all
from skyband.order import ranking
from skyband.query import Query
from skyband.storage.blocks import empty, straight
from skyband.storage.memory import read_only
from skyband.storage.pools import Pool

MOST = 1 << 40  # objects: more than any machine holds
MOST_CELLS = 1 << 20  # they are laid out whether or not there are objects in them

S = TypeVar("S", bound=tuple[Any, ...])


class EveryArrival(PerKey[S]):
    """An algorithm whose state has the ``band`` of the query and a ``clock``."""

    serves = frozenset({"arrival"})
    takes_over = frozenset({"arrival"})

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        self.ties = self.query.ties == "all"
        self._check_options()

    @abstractmethod
    def objects(self, state: S) -> Rows:
        """All objects held, each once; those out of the window left out."""

    def snapshot(self, state: S, waiting: Rows, query: Query, k: int, last: int | None) -> tuple[int, Ints, Floats]:
        now = int(_clock(state)["now"][0])
        rows = self.objects(state)
        rows = rows.take(rows.position > now - (last or self.window.extent))
        return now + 1, *best(rows, k, self.ties)

    def arrivals(self, state: S) -> Ints:
        return self.objects(state).arrival

    def held_rows(self) -> Rows:
        return by_arrival((partition, self.objects(state)) for partition, state in self.states.items())

    def verify(self, state: S) -> None:
        band: Band = state.band  # type: ignore[attr-defined]
        verify_band(band)
        assert _clock(state)["extent"][0] == self.window.extent
        assert self.count(state) == self.arrivals(state).size, "what is held is counted wrong"
        assert (band_rows(band).position > self.dead(state)).all(), "an object is out of the window"

    def dead(self, state: S) -> int:
        """The newest position that is out of the window."""
        return int(_clock(state)["now"][0]) - self.window.extent

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


class OneBand(EveryArrival[Banded]):
    """An algorithm that holds one band and nothing else. The bands of all partitions lie in one pool."""

    state_type = Banded

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        self.pool = Pool(self.fresh())
        self.states = self.pool  # type: ignore[assignment]  # nothing is put into it but by the kernel
        self._first: int | None = None  # the first arrival of the last batch, and those of it that are held
        self._fresh: Ints = NOTHING

    @abstractmethod
    def band(self) -> Band:
        """The band to begin with."""

    def fresh(self) -> Banded:
        return empty(Banded, band=self.band(), extent=self.window.extent)

    def update(self, rows: Rows, frontier: int) -> tuple[Emission, ...]:
        self._first, self._fresh = rows.first_arrival, NOTHING
        if not rows.score.size:
            return (NO_CHANGES,)
        if rows.arrival.size:
            self._first = int(rows.arrival.min())
        partition = rows.partition
        if (partition.size and not (partition == partition[0]).all()) or partition.any():
            rows = rows.spelled_out().take(_stable_order(partition))
        self.pool.make_room(int(rows.partition.max(initial=0)) + 1)
        changes = self._alone(rows, self._first) if len(self.pool) == 1 else self._together(rows, self._first)
        self._fresh = np.sort(self._fresh)
        return (changes.take(_stable_order(changes.trigger - self._first)) if rows.partition.size else changes,)

    def _together(self, rows: Rows, first: int) -> Changes:
        """The bands of all partitions advance, each by its rows."""
        (places,), partition = self.pool.places, read_only(rows.partition)
        self.pool.all, log, self._fresh = process_all(self.pool.all, places, batch_of(rows), partition, first)
        self.pool.tidy()
        return changes_of(log)

    def _alone(self, rows: Rows, first: int) -> Changes:
        """There is but one partition: its band has the columns of the pool for itself."""
        pool, (places,) = self.pool, self.pool.places
        pool.all.band.meta["start"] = places.start[0]
        pool.all, log = process(pool.all, batch_of(rows))
        band, room = pool.all.band, pool.all.band.score.size
        start, held = int(band.meta["start"][0]), int(band.meta["held"][0])
        places.start[0], places.room[0], places.meta[0] = start, room - start, (room, held)
        band.meta["start"] = 0
        arrival = band.arrival[start : start + held]
        self._fresh = arrival[arrival >= first]
        return changes_of(log)

    def advance(self, state: Banded, rows: Rows, frontier: int) -> tuple[Banded, tuple[Emission, ...]]:
        raise AssertionError("all partitions advance together")

    def result(self, query: Query, k: int, last: int | None = None) -> Rankings:
        rows, now = self._everything(), self.pool.all.clock["now"]
        rows = rows.take(rows.position > now[rows.partition] - (last or self.window.extent))
        order = ranking(rows.score, rows.position, rows.arrival)
        rows = rows.take(order[np.argsort(rows.partition[order], kind="stable")])
        partition, first, size = np.unique(rows.partition, return_index=True, return_counts=True)
        bar = rows.score[first + np.minimum(size, k) - 1]
        best = np.arange(rows.score.size) - np.repeat(first, size) < k
        rows = rows.take(best | (rows.score == np.repeat(bar, size)) if self.ties else best)
        offset = np.append(np.searchsorted(rows.partition, partition), rows.score.size)
        return Rankings(now[partition] + 1, partition, partition * 0, offset, rows.arrival, rows.score)

    def held(self, since: int = 0) -> Ints:
        if self._first is not None and since >= self._first:
            return self._fresh[self._fresh >= since]
        arrival = self.pool.all.band.arrival[self.pool.rows()]
        return np.sort(arrival[arrival >= since])

    @property
    def candidates(self) -> int:
        return self.pool.held

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        yield "partitions", (partitions := self.partitions())
        yield from self.pool.saved(partitions, "state.")

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.pool.restore(arrays, arrays["partitions"], "state.")
        self._first = None

    @property
    def nbytes(self) -> int:
        return self.pool.nbytes

    def partitions(self) -> Ints:
        return np.flatnonzero(self.pool.all.clock["newest"] >= 0)

    def rekey(self, code: Ints) -> None:
        self.pool.rekey(code)
        self._first = None

    def objects(self, state: Banded) -> Rows:
        return band_rows(state.band)

    def arrivals(self, state: Banded) -> Ints:
        return band_arrivals(state.band)

    def count(self, state: Banded) -> int:
        return int(state.band.meta["held"][0])

    def _everything(self) -> Rows:
        """The objects of all partitions, one partition after another."""
        places, band = self.pool.rows(), self.pool.all.band
        partition = np.repeat(np.arange(len(self.pool)), self.pool.counts())
        return Rows(band.score[places], band.position[places], partition, band.arrival[places])


def _stable_order(values: Ints) -> Ints:
    """The order of numbers that are not negative and not large, those that are equal as they come.

    Numbers alone are sorted several times as fast as their indices.
    """
    bits = int(values.size).bit_length()
    if int(values.max(initial=0)).bit_length() + bits > 62:
        return np.argsort(values, kind="stable")
    order: Ints = np.sort(values << bits | np.arange(values.size)) & ((1 << bits) - 1)
    return order


def batch_of(rows: Rows) -> Batch:
    """The rows as the kernels take them: always read-only, so that one compiled version serves all."""
    columns = map(read_only, (rows.score, rows.position, rows.arrival))
    return Batch._make((*columns, rows.first_position, rows.first_arrival))


def band_rows(band: Band) -> Rows:
    """The objects of a band, best first."""
    band, held = straight(band, "objects"), int(band.meta["held"][0])
    return Rows(band.score[:held], band.position[:held], np.zeros(held, np.int64), band.arrival[:held])


def band_arrivals(band: Band) -> Ints:
    """The arrival numbers of the objects of a band, best first."""
    start, held = int(band.meta["start"][0]), int(band.meta["held"][0])
    return band.arrival[start : start + held]


def changes_of(log: Log) -> Changes:
    """What a kernel logged; until the partition is known, the query stands in its place."""
    (count,) = log.used[0].item()
    return Changes(log.trigger[:count], log.at[:count], log.query[:count], log.op[:count], log.arrival[:count],
                   log.score[:count])  # fmt: skip


def verify_band(band: Band) -> None:
    """Asserts the invariants of a band between batches."""
    band, meta = straight(band, "objects"), band.meta[0]
    held, k, top = meta.held, meta.k, meta.top
    score, position, arrival, shown = band.score[:held], band.position[:held], band.arrival[:held], band.shown[:held]
    assert (ranking(score, position, arrival) == np.arange(held)).all(), "a band is not in order"
    assert np.unique(arrival).size == held, "an object is in a band twice"
    wanted = min(k, held)
    if meta.ties and held > k:
        wanted = np.count_nonzero(score >= score[k - 1])
    assert top == wanted, "the top k is not settled"
    assert shown[:top].all() and not shown[top:].any()
    tracked = slice(None) if meta.kind == bands.CAP else slice(top)
    oldest = min(zip(position[tracked].tolist(), arrival[tracked].tolist(), strict=True), default=None)
    assert oldest is None or oldest >= (meta.oldest_position, meta.oldest_arrival), "an expiry would be missed"
    if meta.kind == bands.CAP:
        assert held <= max(meta.capacity, top)
        assert np.isnan(meta.threshold) or not held or meta.threshold <= score[min(held, meta.capacity) - 1]
    elif meta.limit > 0:
        assert held - top < meta.limit, "pruning is overdue"
    elif meta.kind == bands.PRUNE:
        assert (dominators(band_rows(band), bool(meta.ties)) < k).all(), "a dominated object is held"


def dominators(rows: Rows, ties: bool) -> Ints:
    """How many objects of a ranked list dominate each of its objects."""
    position, arrival = rows.position, rows.arrival
    newer = (position[:, None] > position) | (position[:, None] == position) & (arrival[:, None] > arrival)
    better = rows.score[:, None] > rows.score if ties else np.tri(position.size, k=-1, dtype=bool).T
    count: Ints = np.count_nonzero(newer & better, axis=0)
    return count


def _clock(state: Any) -> Any:
    return state.clock

"""SASF, SARF, SAPF, RASF, RARF and RAPF: strict and relaxed k-skybands behind a filter of recent objects."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import Emission, Ints, Rows
from skyband.algorithms.objects.arrival import EveryArrival, band_arrivals, band_rows, batch_of, changes_of, verify_band
from skyband.algorithms.objects.limits import limit
from skyband.errors import QueryError
from skyband.kernels.objects.arrivals import Buffer, Sieved, process_filtered
from skyband.kernels.objects.bands import CAP, PRUNE, empty_band
from skyband.query import Query
from skyband.storage.blocks import empty


class Filtered(EveryArrival[Sieved]):
    """A k-skyband behind a *query filter*, in all combinations of topkw, section 5.

    A FIFO buffer holds the most recent objects; the filter is a strict, relaxed or probabilistic k-skyband of what is
    in it. An object is tried twice for the query's k-skyband: when it enters the buffer, where it must be among the k
    best of the filter, and when it leaves, where fewer than k objects of the filter may be better. So the query's
    k-skyband sees only about one arrival in b/k.

    Why this is exact, whatever subset of the buffer the filter holds (Theorem 5.1, for time windows too): an object
    stays in the buffer while it is among the ``buffer`` newest and less than half an extent old, which for count
    windows is b ≤ (n + 1)/2. Let o be refused at time t by k better objects of the buffer. They are newer than
    t - extent/2, and o leaves the buffer before t + extent/2; as long as it is there, they are in the window, and o is
    not in the top k. When o leaves and is refused for good, the k better objects of the filter are also newer than o:
    they dominate it (Theorem 3.7). This holds for every object that leaves, held by the filter or not.

    A row that comes out of event-time order bypasses buffer and filter: any object may be put into the k-skyband.

    Options:
        buffer: the size b of the buffer (default 2000, as in Table IX, or (n + 1)/2 if that is less).
        gamma: the pruning coefficient of a relaxed k-skyband or filter, see :class:`skyband.algorithms.objects.ra.RA`.
        sigma: the σ of a probabilistic filter, see :class:`skyband.algorithms.objects.pa.PA`; costs no exactness here

    When objects expire, the threshold of a probabilistic filter falls by the difference of its last two scores, and is
    lifted only when fewer than two candidates are left (section 6.1).
    """

    state_type = Sieved
    options: ClassVar[dict[str, float]] = {"buffer": 2000}
    relaxed: ClassVar[bool]  # the query's k-skyband
    filter_kind: ClassVar[int]
    filter_relaxed: ClassVar[bool] = False

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        self.buffer = int(self.parameters["buffer"])
        most = (self.window.extent + 1) // 2
        if not self.window.time and self.buffer > most:
            if "buffer" in options:
                raise QueryError(f"buffer={self.buffer} must be at most {most}, half of the window, or an object could "
                                 "become one of the top k unseen")  # fmt: skip
            self.buffer = most

    def fresh(self) -> Sieved:
        k, gamma = self.query.k, self.parameters.get("gamma", 0.0)
        band = empty_band(PRUNE, k, self.ties, gamma=gamma if self.relaxed else 0.0)
        if self.filter_kind == CAP:
            sieve = empty_band(CAP, k, limit=limit(self.buffer, k, self.parameters["sigma"]), floor=2, step=1.0)
        else:
            sieve = empty_band(PRUNE, k, gamma=gamma if self.filter_relaxed else 0.0)
        buffer = empty(Buffer, room=self.buffer)
        return empty(Sieved, band=band, sieve=sieve, buffer=buffer, extent=self.window.extent)

    def advance(self, state: Sieved, rows: Rows, frontier: int) -> tuple[Sieved, tuple[Emission, ...]]:
        state, log = process_filtered(state, batch_of(rows))
        return state, (changes_of(log),)

    def objects(self, state: Sieved) -> Rows:
        recent, sent = _buffered(state.buffer)
        return band_rows(state.band).join(recent.take(~sent))

    def arrivals(self, state: Sieved) -> Ints:
        return np.union1d(band_arrivals(state.band), _buffered(state.buffer)[0].arrival)

    def arrived(self, state: Sieved, since: int) -> Ints:
        arrival = band_arrivals(state.band)
        recent = _buffered(state.buffer, int(state.clock["brought"][0]))[0].arrival
        return np.union1d(arrival[arrival >= since], recent[recent >= since])

    def count(self, state: Sieved) -> int:
        buffer = state.buffer.meta
        return int(state.band.meta["held"][0] + buffer["held"][0] - buffer["shared"][0])

    def verify(self, state: Sieved) -> None:
        super().verify(state)
        verify_band(state.sieve)
        buffer, (recent, sent) = state.buffer.meta[0], _buffered(state.buffer)
        assert recent.arrival.size <= buffer.room == self.buffer
        order = np.lexsort((recent.arrival, recent.position))
        assert (order == np.arange(order.size)).all(), "the buffer is not in order"
        assert (2 * (state.clock[0].now - recent.position) < self.window.extent).all(), "an object stays too long"
        sieved, banded = (band_arrivals(band) for band in (state.sieve, state.band))
        assert np.isin(sieved, recent.arrival).all(), "the filter holds what is not in the buffer"
        assert not np.isin(banded, recent.arrival[~sent]).any(), "an object would be sent twice"
        gone = (buffer.gone_position, buffer.gone_arrival)
        assert not recent.arrival.size or gone < (recent.position[0], recent.arrival[0])


class SASF(Filtered):
    """*Strict candidate pruning algorithm with strict filter*: Böhm et al. (ICDE 2007)."""

    name = "sasf"
    relaxed = False
    filter_kind = PRUNE


class SARF(Filtered):
    """*Strict candidate pruning algorithm with relaxed filter*."""

    name = "sarf"
    options: ClassVar[dict[str, float]] = {"buffer": 2000, "gamma": 0.2}
    relaxed = False
    filter_kind = PRUNE
    filter_relaxed = True


class SAPF(Filtered):
    """*Strict candidate pruning algorithm with probabilistic filter*."""

    name = "sapf"
    options: ClassVar[dict[str, float]] = {"buffer": 2000, "sigma": 0.001}
    relaxed = False
    filter_kind = CAP


class RASF(Filtered):
    """*Relaxed candidate pruning algorithm with strict filter*."""

    name = "rasf"
    options: ClassVar[dict[str, float]] = {"buffer": 2000, "gamma": 0.2}
    relaxed = True
    filter_kind = PRUNE


class RARF(Filtered):
    """*Relaxed candidate pruning algorithm with relaxed filter*."""

    name = "rarf"
    options: ClassVar[dict[str, float]] = {"buffer": 2000, "gamma": 0.2}
    relaxed = True
    filter_kind = PRUNE
    filter_relaxed = True


class RAPF(Filtered):
    """*Relaxed candidate pruning algorithm with probabilistic filter*: the fastest exact one of topkw."""

    name = "rapf"
    options: ClassVar[dict[str, float]] = {"buffer": 2000, "gamma": 0.2, "sigma": 0.001}
    relaxed = True
    filter_kind = CAP


def _buffered(buffer: Buffer, last: int | None = None) -> tuple[Rows, NDArray[np.bool_]]:
    """What is in the buffer (or the last so many of it), oldest first, and which of it the query's band was given."""
    front, held = int(buffer.meta["front"][0]), int(buffer.meta["held"][0])
    first = 0 if last is None else max(0, held - last)
    turn = (front + np.arange(first, held)) % max(buffer.score.size, 1)
    rows = Rows(buffer.score[turn], buffer.position[turn], np.zeros(turn.size, np.int64), buffer.arrival[turn])
    return rows, buffer.sent[turn] == 1

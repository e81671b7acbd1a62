"""SASF, SARF, SAPF, RASF, RARF and RAPF: strict and relaxed k-skybands behind a filter of recent objects."""

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import Emission, Floats, Ints, Rows
from skyband.algorithms.objects.arrival import EveryArrival, band_rows, batch_of, changes_of, verify_band
from skyband.algorithms.objects.limits import limit
from skyband.errors import QueryError
from skyband.kernels.objects import arrivals
from skyband.kernels.objects.arrivals import Buffer, Held, empty_buffer, new_clock, process_filtered
from skyband.kernels.objects.bands import CAP, PRUNE, Band, empty_band
from skyband.query import Query


class FilteredState(NamedTuple):
    """The query's band, the filter's band, the buffer of recent objects, and the clock."""

    score: Floats
    position: Ints
    arrival: Ints
    shown: NDArray[np.int8]
    meta: Ints
    real: Floats
    filter_score: Floats
    filter_time: Ints
    filter_number: Ints
    filter_shown: NDArray[np.int8]
    filter_meta: Ints
    filter_real: Floats
    buffer_score: Floats
    buffer_time: Ints
    buffer_number: Ints
    buffer_sent: NDArray[np.int8]
    buffer_meta: Ints
    clock: Ints


class Filtered(EveryArrival[FilteredState]):
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

    state_type = FilteredState
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

    def fresh(self) -> FilteredState:
        k, gamma = self.query.k, self.parameters.get("gamma", 0.0)
        band = empty_band(PRUNE, k, self.ties, gamma=gamma if self.relaxed else 0.0)
        if self.filter_kind == CAP:
            sieve = empty_band(CAP, k, limit=limit(self.buffer, k, self.parameters["sigma"]), floor=2, step=1.0)
        else:
            sieve = empty_band(PRUNE, k, gamma=gamma if self.filter_relaxed else 0.0)
        return FilteredState(*band, *sieve, *empty_buffer(self.buffer), new_clock(self.window.extent))

    def advance(self, state: FilteredState, rows: Rows, frontier: int) -> tuple[FilteredState, tuple[Emission, ...]]:
        held, log = process_filtered(_held(state), state.clock, batch_of(rows))
        return FilteredState(*held.band, *held.sieve, *held.buffer, state.clock), (changes_of(log),)

    def objects(self, state: FilteredState) -> Rows:
        held = _held(state)
        recent, sent = _buffered(held.buffer)
        return band_rows(held.band).join(recent.take(~sent))

    def arrivals(self, state: FilteredState) -> Ints:
        held = _held(state)
        return np.union1d(held.band.arrival, _buffered(held.buffer)[0].arrival)

    def verify(self, state: FilteredState) -> None:
        super().verify(state)
        band, sieve, buffer = _held(state)
        verify_band(sieve)
        recent, sent = _buffered(buffer)
        assert recent.arrival.size <= buffer.meta[arrivals.ROOM] == self.buffer
        order = np.lexsort((recent.arrival, recent.position))
        assert (order == np.arange(order.size)).all(), "the buffer is not in order"
        assert (2 * (state.clock[arrivals.NOW] - recent.position) < self.window.extent).all(), (
            "an object stays too long"
        )
        assert np.isin(sieve.arrival, recent.arrival).all(), "the filter holds what is not in the buffer"
        assert not np.isin(band.arrival, recent.arrival[~sent]).any(), "an object would be sent twice"
        gone = (buffer.meta[arrivals.GONE_TIME], buffer.meta[arrivals.GONE_NUMBER])
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


def _held(state: FilteredState) -> Held:
    return Held(Band(*state[:6]), Band(*state[6:12]), Buffer(*state[12:17]))


def _buffered(buffer: Buffer) -> tuple[Rows, NDArray[np.bool_]]:
    """What is in the buffer, oldest first, and which of it the query's band has been given."""
    turn = (buffer.meta[arrivals.FRONT] + np.arange(buffer.meta[arrivals.COUNT])) % max(buffer.score.size, 1)
    rows = Rows(buffer.score[turn], buffer.position[turn], np.zeros(turn.size, np.int64), buffer.arrival[turn])
    return rows, buffer.sent[turn] == 1

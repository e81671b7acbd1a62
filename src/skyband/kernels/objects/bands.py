"""Bands: the sorted set of objects that can still reach the top k of a window, kept in arrays.

A band holds its objects best first in ``[START, START + SIZE)`` of its arrays, with room on both sides, so that an
insertion or a removal moves the shorter side and sorted and reverse-sorted streams cost O(1). Its first ``TOP``
objects are the top k; they alone are sure to be in the window. What it does with the others depends on its kind:

* ``KEEP`` keeps every object of the window;
* ``PRUNE`` keeps a superset of the k-skyband (topkw, Definitions 3.8 and 4.7): once its candidates reach ``LIMIT``,
  dominated and expired objects go;
* ``CAP`` keeps the best ``CAPACITY`` objects, and refuses scores below ``THRESHOLD`` (Definition 4.5).

An object is dead when it is no newer than the pair (time, number) called ``dead`` here. A threshold that is NaN
refuses nothing: no score is ever less than it.
"""

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import in_place, inner
from skyband.kernels.common.order import better, newer
from skyband.kernels.common.output import grow

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

KEEP, PRUNE, CAP = range(3)
ALWAYS = np.iinfo(np.int64).max  # later than any position or arrival number

START, SIZE, TOP, LIMIT, OLDEST_TIME, OLDEST_NUMBER, K, TIES, KIND, CAPACITY, FLOOR = range(11)
THRESHOLD, GAMMA, STEP = range(3)


class Band(NamedTuple):
    """The objects of a band and the figures that go with them."""

    score: Floats
    position: Ints
    arrival: Ints
    shown: NDArray[np.int8]  # whether the object is in the top k as last reported
    meta: Ints
    real: Floats


class Log(NamedTuple):
    """The changes of the top k, ``used[0]`` of them so far; see :class:`skyband.algorithms.objects.base.Changes`."""

    trigger: Ints
    at: Ints
    op: NDArray[np.int8]
    arrival: Ints
    score: Floats
    used: Ints


class Heap(NamedTuple):
    """Room for the k newest objects met while pruning, the oldest of them on top."""

    position: Ints
    arrival: Ints


def empty_band(kind: int, k: int, ties: bool = False, gamma: float = 0.0, limit: int = 0, additional: int = 0,
               floor: int = 0, step: float = 0.5) -> Band:  # fmt: skip
    """A band without objects.

    Args:
        kind: ``KEEP``, ``PRUNE`` or ``CAP``.
        ties: whether the top k is every object whose score is no worse than the k-th's; an object then dominates only
            those of strictly worse scores.
        gamma: the pruning coefficient of ``PRUNE``; 0 prunes at every insertion. ``KEEP`` drops expired objects by it.
        limit, additional: what ``CAP`` holds beside the top k.
        floor, step: when objects of ``CAP`` expire, its threshold falls by ``step`` times the difference of its last
            two scores, or to nothing if fewer than ``floor`` candidates are left.
    """
    meta = np.zeros(11, np.int64)
    meta[OLDEST_TIME] = meta[OLDEST_NUMBER] = ALWAYS
    meta[LIMIT] = 4 * k if gamma > 0 else 0
    meta[K], meta[TIES], meta[KIND] = k, ties, kind
    meta[CAPACITY], meta[FLOOR] = k + limit + additional, floor
    real = np.array([np.nan, gamma, step])
    return Band(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int8), meta, real)


@in_place
def cramped(band: Band, inserts: int) -> bool:
    """Whether it must be :func:`widened` before so many insertions."""
    start = band.meta[START]
    return bool(min(start, band.score.size - start - band.meta[SIZE]) < inserts)


@inner
def widened(band: Band, inserts: int) -> Band:
    """The band in the middle of arrays that have room for so many insertions, and for as many objects as it has."""
    if not cramped(band, inserts):
        return band
    size, old = band.meta[SIZE], band.meta[START]
    start = size + 2 * inserts + 2
    capacity = size + 2 * start
    wide = Band(np.empty(capacity), np.empty(capacity, np.int64), np.empty(capacity, np.int64),
                np.empty(capacity, np.int8), band.meta, band.real)  # fmt: skip
    wide.score[start : start + size] = band.score[old : old + size]
    wide.position[start : start + size] = band.position[old : old + size]
    wide.arrival[start : start + size] = band.arrival[old : old + size]
    wide.shown[start : start + size] = band.shown[old : old + size]
    band.meta[START] = start
    return wide


@inner
def packed(band: Band, dead_time: int, dead_number: int) -> Band:
    """The band without dead objects, in arrays of just its size: how it waits for the next batch."""
    size, start = living(band, dead_time, dead_number), band.meta[START]
    tight = Band(np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int8),
                 band.meta, band.real)  # fmt: skip
    to = 0
    for i in range(start, start + band.meta[SIZE]):
        if newer(band.position[i], band.arrival[i], dead_time, dead_number):
            tight.score[to], tight.position[to], tight.arrival[to] = band.score[i], band.position[i], band.arrival[i]
            tight.shown[to] = band.shown[i]
            to += 1
    band.meta[START], band.meta[SIZE] = 0, size
    return tight


@inner
def new_log() -> Log:
    """An empty log."""
    return Log(np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int8), np.empty(64, np.int64),
               np.empty(64), np.zeros(1, np.int64))  # fmt: skip


@in_place
def short(log: Log, band: Band, inserts: int) -> bool:
    """Whether settling the band after so many insertions may log more than there is room for."""
    return bool(log.used[0] + 2 * (band.meta[SIZE] + inserts) > log.at.size)


@inner
def roomy(log: Log, band: Band, inserts: int) -> Log:
    """The log with room to settle the band after so many insertions."""
    if not short(log, band, inserts):
        return log
    size = log.used[0] + 2 * (band.meta[SIZE] + inserts)
    return Log(grow(log.trigger, size), grow(log.at, size), grow(log.op, size), grow(log.arrival, size),
               grow(log.score, size), log.used)  # fmt: skip


@inner
def new_heap(k: int) -> Heap:
    """Room for k dominators."""
    return Heap(np.empty(k, np.int64), np.empty(k, np.int64))


@in_place
def insert(band: Band, score: float, position: int, arrival: int) -> bool:
    """Puts an object where it belongs, and says whether the top k must be settled. There must be room on both sides."""
    meta = band.meta
    start, size, k = meta[START], meta[SIZE], meta[K]
    rank = _rank(band, score, position, arrival)
    if 2 * rank < size:
        start -= 1
        meta[START] = start
        for i in range(start, start + rank):
            _move(band, i + 1, i)
    else:
        for i in range(start + size, start + rank, -1):
            _move(band, i - 1, i)
    at = start + rank
    band.score[at], band.position[at], band.arrival[at], band.shown[at] = score, position, arrival, 0
    meta[SIZE] = size + 1
    top = meta[TOP]
    enters = bool(rank < top or top < k or (meta[TIES] == 1 and score == band.score[start + k - 1]))
    if (enters or meta[KIND] == CAP) and newer(meta[OLDEST_TIME], meta[OLDEST_NUMBER], position, arrival):
        meta[OLDEST_TIME], meta[OLDEST_NUMBER] = position, arrival
    return enters


@in_place
def expired(band: Band, dead_time: int, dead_number: int) -> bool:
    """Whether an object whose expiry matters may be dead.

    These are the top k, for in a k-skyband an object that is next to expire is one of them (Lemma 4.8); in ``CAP``,
    all. ``OLDEST`` is no newer than any of them; it may lag behind, since settling finds it anew.
    """
    return not newer(band.meta[OLDEST_TIME], band.meta[OLDEST_NUMBER], dead_time, dead_number)


@in_place
def living(band: Band, dead_time: int, dead_number: int) -> int:
    """How many objects of the band are alive."""
    count = 0
    for i in range(band.meta[START], band.meta[START] + band.meta[SIZE]):
        count += newer(band.position[i], band.arrival[i], dead_time, dead_number)
    return count


@in_place
def loosen(band: Band, dead_time: int, dead_number: int) -> None:
    """Lowers the threshold of ``CAP`` before its dead objects go (Algorithm 2, lines 13–17)."""
    live, tail, next_to_tail = 0, np.nan, np.nan
    for i in range(band.meta[START], band.meta[START] + band.meta[SIZE]):
        if newer(band.position[i], band.arrival[i], dead_time, dead_number):
            live, next_to_tail, tail = live + 1, tail, band.score[i]
    if live - band.meta[K] < band.meta[FLOOR]:
        band.real[THRESHOLD] = np.nan
    else:
        band.real[THRESHOLD] -= band.real[STEP] * (next_to_tail - tail)


@in_place
def settle(band: Band, dead_time: int, dead_number: int, log: Log | None, trigger: int, at: int) -> None:
    """Brings the top k up to date and logs the net change, if a log is given.

    One walk down the ranks meets who leaves (expired or displaced), who stays and who comes up, so that an object that
    would be promoted and displaced by the same arrival never shows. Dead objects on the way are dropped, as in
    Algorithm 5. The log must not be :func:`short`.
    """
    meta = band.meta
    start, k, ties = meta[START], meta[K], meta[TIES] == 1
    end = start + meta[SIZE]
    everywhere = meta[KIND] == CAP and expired(band, dead_time, dead_number)
    oldest_time, oldest_number = ALWAYS, ALWAYS
    top, dropped, shown, kth = 0, 0, meta[TOP], 0.0
    i = start
    while i < end:
        alive = newer(band.position[i], band.arrival[i], dead_time, dead_number)
        inside = alive and (top < k or (ties and band.score[i] == kth))
        if alive and not inside and shown == 0 and not everywhere:
            break
        if band.shown[i]:
            shown -= 1
            if not inside:
                band.shown[i] = 0
                if log is not None:
                    _write(log, band, i, -1, trigger, at)
        if inside:
            top, kth = top + 1, band.score[i]
        if not alive:
            dropped += 1
        elif newer(oldest_time, oldest_number, band.position[i], band.arrival[i]) and (inside or everywhere):
            oldest_time, oldest_number = band.position[i], band.arrival[i]
        i += 1
    if dropped:
        _close_gaps(band, i, dropped, dead_time, dead_number)
        start = meta[START]
    for j in range(start, start + top):
        if not band.shown[j]:
            band.shown[j] = 1
            if log is not None:
                _write(log, band, j, 1, trigger, at)
    meta[TOP] = top
    if meta[KIND] != CAP or everywhere:
        meta[OLDEST_TIME], meta[OLDEST_NUMBER] = oldest_time, oldest_number


@in_place
def tidy(band: Band, dead_time: int, dead_number: int, heap: Heap) -> None:
    """Holds the band to its size after an insertion has been settled."""
    meta = band.meta
    if meta[KIND] == CAP:
        meta[SIZE] = min(meta[SIZE], max(meta[CAPACITY], meta[TOP]))
        if meta[SIZE] >= meta[CAPACITY]:
            band.real[THRESHOLD] = band.score[meta[START] + meta[SIZE] - 1]
    elif meta[SIZE] - meta[TOP] >= meta[LIMIT]:
        _prune(band, dead_time, dead_number, heap)
        gamma = band.real[GAMMA]
        # The second term is not in the paper. A stream of rising scores leaves no candidates, and a limit of 0 would
        # prune at every arrival; with γk more of them pruning is paid for whatever the stream.
        meta[LIMIT] = max(ceil((1 + gamma) * (meta[SIZE] - meta[TOP])), ceil(gamma * meta[K])) if gamma > 0 else 0


@in_place
def _prune(band: Band, dead_time: int, dead_number: int, heap: Heap) -> None:
    """Drops dead objects and, unless the band keeps all, those dominated by k others (Algorithm 4)."""
    meta = band.meta
    start, size, k = meta[START], meta[SIZE], meta[K]
    dominance, ties = meta[KIND] == PRUNE, meta[TIES] == 1
    kept, met = start, start  # objects kept so far, and those of them that have gone into the heap
    for i in range(start, start + size):
        position, arrival = band.position[i], band.arrival[i]
        if not newer(position, arrival, dead_time, dead_number):
            continue
        if dominance:
            # Among equal scores the newer one dominates; with all ties wanted, neither does.
            while met < kept and not (ties and band.score[met] == band.score[i]):
                _meet(heap, met - start, k, band.position[met], band.arrival[met])
                met += 1
            if met - start >= k and newer(heap.position[0], heap.arrival[0], position, arrival):
                continue
        if kept < i:
            _move(band, i, kept)
        kept += 1
    meta[SIZE] = kept - start


@in_place
def _meet(heap: Heap, count: int, k: int, position: int, arrival: int) -> None:
    """Puts the ``count``-th object into a heap of the k newest."""
    if count < k:
        hole = count
        while hole > 0 and newer(heap.position[(hole - 1) // 2], heap.arrival[(hole - 1) // 2], position, arrival):
            heap.position[hole], heap.arrival[hole] = heap.position[(hole - 1) // 2], heap.arrival[(hole - 1) // 2]
            hole = (hole - 1) // 2
    elif newer(heap.position[0], heap.arrival[0], position, arrival):
        return
    else:
        hole = 0
        while 2 * hole + 1 < k:
            child = 2 * hole + 1
            if child + 1 < k and newer(heap.position[child], heap.arrival[child],
                                       heap.position[child + 1], heap.arrival[child + 1]):  # fmt: skip
                child += 1
            if newer(heap.position[child], heap.arrival[child], position, arrival):
                break
            heap.position[hole], heap.arrival[hole] = heap.position[child], heap.arrival[child]
            hole = child
    heap.position[hole], heap.arrival[hole] = position, arrival


@in_place
def holds(band: Band, score: float, position: int, arrival: int) -> bool:
    """Whether the object is in the band."""
    rank = _rank(band, score, position, arrival)
    return bool(rank > 0 and band.arrival[band.meta[START] + rank - 1] == arrival)


@in_place
def _rank(band: Band, score: float, position: int, arrival: int) -> int:
    """How many objects rank before this one: doubling steps from the worst end, where most arrivals belong, then
    halving ones."""
    start, low, high = band.meta[START], 0, band.meta[SIZE]
    step = 1
    while low < high:
        middle = max(high - step, low) if step else (low + high) // 2
        i = start + middle
        if better(score, position, arrival, band.score[i], band.position[i], band.arrival[i]):
            high, step = middle, 2 * step
        else:
            low, step = middle + 1, 0
    return low


@in_place
def _close_gaps(band: Band, end: int, dropped: int, dead_time: int, dead_number: int) -> None:
    """Drops the dead objects before ``end`` by moving those alive towards it."""
    to = end - 1
    for i in range(end - 1, band.meta[START] - 1, -1):
        if newer(band.position[i], band.arrival[i], dead_time, dead_number):
            if to != i:
                _move(band, i, to)
            to -= 1
    band.meta[START] += dropped
    band.meta[SIZE] -= dropped


@in_place
def _move(band: Band, source: int, target: int) -> None:
    band.score[target] = band.score[source]
    band.position[target] = band.position[source]
    band.arrival[target] = band.arrival[source]
    band.shown[target] = band.shown[source]


@in_place
def _write(log: Log, band: Band, i: int, op: int, trigger: int, at: int) -> None:
    n = log.used[0]
    log.trigger[n], log.at[n], log.op[n], log.arrival[n], log.score[n] = trigger, at, op, band.arrival[i], band.score[i]
    log.used[0] = n + 1

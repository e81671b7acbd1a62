"""Bands: the sorted set of objects that can still reach the top k of a window, kept in arrays.

A band holds its objects best first, ``held`` of them from ``start`` on, with room on both sides, so that an insertion
or a removal moves the shorter side and sorted and reverse-sorted streams cost O(1). Its first ``top`` objects are the
top k; they alone are sure to be in the window. What it does with the others depends on its kind:

* ``KEEP`` keeps every object of the window;
* ``PRUNE`` keeps a superset of the k-skyband (topkw, Definitions 3.8 and 4.7): once its candidates, the objects beside
  the top k, reach ``limit``, dominated and expired objects go;
* ``CAP`` keeps the best ``capacity`` objects, and refuses scores below ``threshold`` (Definition 4.5).

An object is dead when it is no newer than the position and arrival called ``dead`` here. A threshold that is NaN
refuses nothing: no score is ever less than it.
"""

from math import ceil
from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inner
from skyband.kernels.common.order import better, newer
from skyband.kernels.objects.log import ENTERED, LEFT, Log, lacks, note
from skyband.storage.blocks import ARRIVAL, Bytes, Floats, Ints, Record, block, column, empty, scalars

KEEP, PRUNE, CAP = range(3)
ALWAYS = np.iinfo(np.int64).max  # later than any position or arrival number
LARGE = 4096  # objects: so many wait for the next batch where they are; fewer are moved into arrays of just their size


class BandMeta(NamedTuple):
    """The figures of a band, and what was asked of it (from ``k`` on)."""

    start: int = 0
    held: int = 0
    top: int = 0
    limit: int = 0
    oldest_position: int = ALWAYS  # no later than any object whose expiry matters
    oldest_arrival: int = ALWAYS
    threshold: float = np.nan
    k: int = 1
    ties: int = 0
    kind: int = KEEP
    capacity: int = 0
    floor: int = 0
    gamma: float = 0.0
    step: float = 0.5


@block(version=1)
class Band(NamedTuple):
    """The objects of a band and the figures that go with them."""

    score: Annotated[Floats, column("objects", used="held", first="start")]
    position: Annotated[Ints, column("objects", used="held", first="start")]
    arrival: Annotated[Ints, column("objects", used="held", first="start", holds=ARRIVAL)]
    # Whether it is in the top k as last reported:
    shown: Annotated[Bytes, column("objects", used="held", first="start")]
    meta: Annotated[Record, scalars(BandMeta)]


class Heap(NamedTuple):
    """Room for the k newest objects met while pruning, the oldest of them on top."""

    position: Ints
    arrival: Ints


def empty_band(kind: int, k: int, ties: bool = False, gamma: float = 0.0, limit: int = 0, additional: int = 0,
               floor: int = 0, step: float = 0.5) -> Band:  # fmt: skip
    """A band without objects.

    Args:
        kind: ``KEEP``, ``PRUNE`` or ``CAP``.
        k: how many the top k are.
        ties: whether the top k is every object whose score is no worse than the k-th's; an object then dominates only
            those of strictly worse scores.
        gamma: the pruning coefficient of ``PRUNE``; 0 prunes at every insertion. ``KEEP`` drops expired objects by it.
        limit, additional: what ``CAP`` holds beside the top k.
        floor, step: when objects of ``CAP`` expire, its threshold falls by ``step`` times the difference of its last
            two scores, or to nothing if fewer than ``floor`` candidates are left.
    """
    return empty(Band, kind=kind, k=k, ties=int(ties), gamma=gamma, limit=4 * k if gamma > 0 else 0,
                 capacity=k + limit + additional, floor=floor, step=step)  # fmt: skip


@in_place
def cramped(band: Band, inserts: int) -> bool:
    """Whether it must be :func:`widened` before so many insertions."""
    meta = band.meta[0]
    return bool(min(meta.start, band.score.size - meta.start - meta.held) < inserts)


@inner
def widened(band: Band, inserts: int) -> Band:
    """The band in the middle of arrays that have room for so many insertions, and for as many objects as it has."""
    if not cramped(band, inserts):
        return band
    meta = band.meta[0]
    start = meta.held + 2 * inserts + 2
    return _moved(band, start, meta.held + 2 * start)


@in_place
def bury(band: Band, dead_position: int, dead_arrival: int) -> None:
    """Drops all dead objects."""
    meta = band.meta[0]
    kept = meta.start
    for i in range(meta.start, meta.start + meta.held):
        if newer(band.position[i], band.arrival[i], dead_position, dead_arrival):
            if kept < i:
                _move(band, i, kept)
            kept += 1
    meta.held = kept - meta.start


@inner
def rested(band: Band, dead_position: int, dead_arrival: int) -> Band:
    """The band without dead objects, as it waits for the next batch: in arrays of just its size, unless it is large."""
    bury(band, dead_position, dead_arrival)
    meta = band.meta[0]
    if meta.held == band.score.size or (meta.held > LARGE and band.score.size < 4 * meta.held):
        return band
    return _moved(band, 0, meta.held)


@inner
def _moved(band: Band, start: int, capacity: int) -> Band:
    """The band in other arrays, from ``start`` on."""
    meta = band.meta[0]
    old, held = meta.start, meta.held
    moved = Band(np.empty(capacity), np.empty(capacity, np.int64), np.empty(capacity, np.int64),
                 np.empty(capacity, np.int8), band.meta)  # fmt: skip
    moved.score[start : start + held] = band.score[old : old + held]
    moved.position[start : start + held] = band.position[old : old + held]
    moved.arrival[start : start + held] = band.arrival[old : old + held]
    moved.shown[start : start + held] = band.shown[old : old + held]
    meta.start = start
    return moved


@in_place
def changes_at_most(band: Band, inserts: int) -> int:
    """The most entries that settling the band after so many insertions may log."""
    return int(2 * (band.meta[0].held + inserts))


@in_place
def short(log: Log, band: Band, inserts: int) -> bool:
    """Whether settling the band after so many insertions may log more than there is room for."""
    return lacks(log, changes_at_most(band, inserts))


@inner
def new_heap(k: int) -> Heap:
    """Room for k dominators."""
    return Heap(np.empty(k, np.int64), np.empty(k, np.int64))


@in_place
def insert(band: Band, score: float, position: int, arrival: int) -> bool:
    """Puts an object where it belongs, and says whether the top k must be settled. There must be room on both sides."""
    meta = band.meta[0]
    start, size, k = meta.start, meta.held, meta.k
    rank = _rank(band, score, position, arrival)
    if 2 * rank < size:
        start -= 1
        meta.start = start
        for i in range(start, start + rank):
            _move(band, i + 1, i)
    else:
        for i in range(start + size, start + rank, -1):
            _move(band, i - 1, i)
    at = start + rank
    band.score[at], band.position[at], band.arrival[at], band.shown[at] = score, position, arrival, 0
    meta.held = size + 1
    top = meta.top
    enters = bool(rank < top or top < k or (meta.ties == 1 and score == band.score[start + k - 1]))
    if (enters or meta.kind == CAP) and newer(meta.oldest_position, meta.oldest_arrival, position, arrival):
        meta.oldest_position, meta.oldest_arrival = position, arrival
    return enters


@in_place
def expired(band: Band, dead_position: int, dead_arrival: int) -> bool:
    """Whether an object whose expiry matters may be dead.

    These are the top k, for in a k-skyband an object that is next to expire is one of them (Lemma 4.8); in ``CAP``,
    all. The oldest one on record is no newer than any of them; it may lag behind, since settling finds it anew.
    """
    meta = band.meta[0]
    return not newer(meta.oldest_position, meta.oldest_arrival, dead_position, dead_arrival)


@in_place
def living(band: Band, dead_position: int, dead_arrival: int) -> int:
    """How many objects of the band are alive."""
    meta, count = band.meta[0], 0
    for i in range(meta.start, meta.start + meta.held):
        count += newer(band.position[i], band.arrival[i], dead_position, dead_arrival)
    return count


@in_place
def loosen(band: Band, dead_position: int, dead_arrival: int) -> None:
    """Lowers the threshold of ``CAP`` before its dead objects go (Algorithm 2, lines 13–17)."""
    meta = band.meta[0]
    live, tail, next_to_tail = 0, np.nan, np.nan
    for i in range(meta.start, meta.start + meta.held):
        if newer(band.position[i], band.arrival[i], dead_position, dead_arrival):
            live, next_to_tail, tail = live + 1, tail, band.score[i]
    if live - meta.k < meta.floor:
        meta.threshold = np.nan
    else:
        meta.threshold -= meta.step * (next_to_tail - tail)


@in_place
def settle(band: Band, dead_position: int, dead_arrival: int, log: Log | None, trigger: int, at: int) -> None:
    """Brings the top k up to date and logs the net change, if a log is given.

    One walk down the ranks meets who leaves (expired or displaced), who stays and who comes up, so that an object that
    would be promoted and displaced by the same arrival never shows. Dead objects on the way are dropped, as in
    Algorithm 5. The log must not be :func:`short`.
    """
    meta = band.meta[0]
    start, k, ties = meta.start, meta.k, meta.ties == 1
    end = start + meta.held
    everywhere = meta.kind == CAP and expired(band, dead_position, dead_arrival)
    oldest_position, oldest_arrival = ALWAYS, ALWAYS
    top, dropped, shown, kth = 0, 0, meta.top, 0.0
    i = start
    while i < end:
        alive = newer(band.position[i], band.arrival[i], dead_position, dead_arrival)
        inside = alive and (top < k or (ties and band.score[i] == kth))
        if alive and not inside and shown == 0 and not everywhere:
            break
        if band.shown[i]:
            shown -= 1
            if not inside:
                band.shown[i] = 0
                if log is not None:
                    note(log, 0, trigger, at, LEFT, band.arrival[i], band.score[i])
        if inside:
            top, kth = top + 1, band.score[i]
        if not alive:
            dropped += 1
        elif newer(oldest_position, oldest_arrival, band.position[i], band.arrival[i]) and (inside or everywhere):
            oldest_position, oldest_arrival = band.position[i], band.arrival[i]
        i += 1
    if dropped:
        _close_gaps(band, i, dropped, dead_position, dead_arrival)
        start = meta.start
    for j in range(start, start + top):
        if not band.shown[j]:
            band.shown[j] = 1
            if log is not None:
                note(log, 0, trigger, at, ENTERED, band.arrival[j], band.score[j])
    meta.top = top
    if meta.kind != CAP or everywhere:
        meta.oldest_position, meta.oldest_arrival = oldest_position, oldest_arrival


@in_place
def tidy(band: Band, dead_position: int, dead_arrival: int, heap: Heap) -> None:
    """Holds the band to its size after an insertion has been settled."""
    meta = band.meta[0]
    if meta.kind == CAP:
        meta.held = min(meta.held, max(meta.capacity, meta.top))
        if meta.held >= meta.capacity:
            meta.threshold = band.score[meta.start + meta.held - 1]
    elif meta.held - meta.top >= meta.limit:
        _prune(band, dead_position, dead_arrival, heap)
        gamma = meta.gamma
        # The second term is not in the paper. A stream of rising scores leaves no candidates, and a limit of 0 would
        # prune at every arrival; with γk more of them pruning is paid for whatever the stream.
        meta.limit = max(ceil((1 + gamma) * (meta.held - meta.top)), ceil(gamma * meta.k)) if gamma > 0 else 0


@in_place
def _prune(band: Band, dead_position: int, dead_arrival: int, heap: Heap) -> None:
    """Drops dead objects and, unless the band keeps all, those dominated by k others (Algorithm 4)."""
    meta = band.meta[0]
    start, size, k = meta.start, meta.held, meta.k
    dominance, ties = meta.kind == PRUNE, meta.ties == 1
    kept, met = start, start  # objects kept so far, and those of them that have gone into the heap
    for i in range(start, start + size):
        position, arrival = band.position[i], band.arrival[i]
        if not newer(position, arrival, dead_position, dead_arrival):
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
    meta.held = kept - start


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
    return bool(rank > 0 and band.arrival[band.meta[0].start + rank - 1] == arrival)


@in_place
def _rank(band: Band, score: float, position: int, arrival: int) -> int:
    """How many objects rank before this one: doubling steps from the worst end, where most arrivals belong, then
    halving ones."""
    meta = band.meta[0]
    start, low, high = meta.start, 0, meta.held
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
def _close_gaps(band: Band, end: int, dropped: int, dead_position: int, dead_arrival: int) -> None:
    """Drops the dead objects before ``end`` by moving those alive towards it."""
    meta, to = band.meta[0], end - 1
    for i in range(end - 1, meta.start - 1, -1):
        if newer(band.position[i], band.arrival[i], dead_position, dead_arrival):
            if to != i:
                _move(band, i, to)
            to -= 1
    meta.start += dropped
    meta.held -= dropped


@in_place
def _move(band: Band, source: int, target: int) -> None:
    band.score[target] = band.score[source]
    band.position[target] = band.position[source]
    band.arrival[target] = band.arrival[source]
    band.shown[target] = band.shown[source]

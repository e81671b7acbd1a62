"""Panes: the top k of each partition's slice between two neighbouring window bounds.

An object of a window's top k is among the top k of its own pane, so everything else can go at once. The same kernel
prunes a batch in the engine and a partition of the data in Spark.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.jit import inner, outer
from skyband.kernels.output import grow
from skyband.kernels.sorting import newest_first

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BLOCK = 128  # rows looked at together: one vectorised count says whether any of them passes


class Columns(NamedTuple):
    """Rows as the kernels see them; ``key`` is empty where there is one partition only."""

    key: Ints
    score: Floats
    time: Ints
    number: Ints


@inner
def _same(rows: Columns, a: int, b: int) -> bool:
    return bool(rows.time[a] == rows.time[b]) and bool(rows.number[a] == rows.number[b])


@inner
def _best(index: Ints, size: int, rows: Columns, k: int, ties: bool) -> tuple[int, float]:
    """Cuts the first ``size`` of ``index`` down to the k best rows, in place; returns how many stay, and the bar."""
    score = np.empty(size)
    for i in range(size):
        score[i] = rows.score[index[i]]
    bar = np.partition(score, size - k)[size - k]
    above, level = 0, 0
    for i in range(size):
        above += score[i] > bar
        level += score[i] == bar
    room = level if ties else k - above
    keep = np.ones(size, np.bool_)
    if room < level:
        equal = np.empty(level, np.int64)
        j = 0
        for i in range(size):
            if score[i] == bar:
                equal[j] = i
                j += 1
        if rows.time.size:
            newest = newest_first(equal, rows.time[index[:size]], rows.number[index[:size]])
        else:  # consecutive numbers: the later row is the newer one
            newest = equal[::-1]
        while room < level and rows.time.size and _same(rows, index[newest[room - 1]], index[newest[room]]):
            room += 1  # equal in everything that ranks: which one stays is not for this batch to say
        keep[newest[room:]] = False
    kept = 0
    for i in range(size):
        if score[i] >= bar and keep[i]:
            index[kept] = index[i]
            kept += 1
    return kept, bar


@inner
def _passing(score: Floats, bar: float) -> int:
    """How many reach the bar. A block's length is a constant, so that the loop is compiled to vector instructions."""
    count = np.int64(0)
    if score.size == BLOCK:
        for i in range(BLOCK):
            count += np.int64(score[i] >= bar)
    else:
        for value in score:
            count += np.int64(value >= bar)
    return int(count)


@inner
def top_of_slice(rows: Columns, lo: int, hi: int, k: int, ties: bool) -> Ints:
    """Indices of the k best rows of ``rows[lo:hi]``, in no order; with ``ties``, all that equal the k-th."""
    if hi - lo <= k:
        return np.arange(lo, hi)
    score = rows.score
    most = 2 * k + BLOCK // 8  # candidates before the bar is raised: few enough to keep it high
    index = np.empty(most + BLOCK, np.int64)
    size = min(most, hi - lo)
    index[:size] = np.arange(lo, lo + size)
    i = lo + size
    size, bar = _best(index, size, rows, k, ties)
    while i < hi:
        stop = min(i + BLOCK, hi)
        passing = _passing(score[i:stop], bar)
        if passing:
            for j in range(i, stop):
                if score[j] >= bar:
                    index[size] = j
                    size += 1
            if size > most:
                size, bar = _best(index, size, rows, k, ties)
                if size > most:  # only ties can leave so many
                    most = 2 * size
                    index = grow(index, most + BLOCK)
        i = stop
    if size > k:
        size, bar = _best(index, size, rows, k, ties)
    return index[:size]


@outer
def order_by_key_and_pane(rows: Columns, keys: int, pane: int) -> Ints:
    """A stable order by partition and pane; empty where the rows have it already."""
    size = rows.score.size
    if rows.key.size:
        start = np.zeros(keys + 1, np.int64)
        for key in rows.key:
            start[key + 1] += 1
        start = np.cumsum(start)
        order = np.empty(size, np.int64)
        place = start[:-1].copy()
        for i in range(size):
            order[place[rows.key[i]]] = i
            place[rows.key[i]] += 1
    else:
        start = np.array([0, size])
        order = np.empty(0, np.int64)
    for key in range(start.size - 1):
        ordered = True
        for i in range(start[key] + 1, start[key + 1]):
            a, b = (order[i - 1], order[i]) if order.size else (i - 1, i)
            if rows.time[b] < rows.time[a] and rows.time[b] // pane < rows.time[a] // pane:
                ordered = False
                break
        if not ordered:
            if not order.size:
                order = np.arange(size)
            part = order[start[key] : start[key + 1]].copy()
            order[start[key] : start[key + 1]] = part[np.argsort(rows.time[part] // pane, kind="mergesort")]
    return order


@outer
def count_runs(key: Ints, time: Ints, pane: int) -> tuple[Ints, Ints]:
    """First indices and lengths of the runs of equal partition and pane; ``key`` may be empty."""
    first, length = np.empty(64, np.int64), np.empty(64, np.int64)
    count, lo = 0, 0
    while lo < time.size:
        start = time[lo] // pane * pane
        hi = lo + 1
        while hi < time.size and start <= time[hi] < start + pane and (key.size == 0 or key[hi] == key[lo]):
            hi += 1
        if count == first.size:
            first, length = grow(first, 0), grow(length, 0)
        first[count], length[count] = lo, hi - lo
        count += 1
        lo = hi
    return first[:count], length[:count]


@outer
def prune(rows: Columns, pane: int, k: int, ties: bool) -> Ints:
    """Indices of the k best rows of every run of equal partition and pane; wants them in that order."""
    first, length = count_runs(rows.key, rows.time, pane)
    kept = np.empty(min(rows.score.size, 4096), np.int64)
    count = 0
    for run in range(first.size):
        lo, hi = first[run], first[run] + length[run]
        best = top_of_slice(rows, lo, hi, k, ties) if length[run] > k else kept[:0]
        need = best.size if length[run] > k else length[run]
        if count + need > kept.size:
            kept = grow(kept, count + need)
        if length[run] > k:
            kept[count : count + need] = best
        else:  # no array for each of a million short runs
            for i in range(need):
                kept[count + i] = lo + i
        count += need
    return kept[:count]


def survivors(rows: Columns, keys: int, pane: int, k: int, ties: bool) -> Ints:
    """Indices of the k best rows of every partition and pane, in the order of partition and pane."""
    order = order_by_key_and_pane(rows, keys, pane)
    if not order.size:
        return prune(rows, pane, k, ties)
    key = rows.key[order] if rows.key.size else rows.key
    kept = prune(Columns(key, rows.score[order], rows.time[order], rows.number[order]), pane, k, ties)
    return order[kept]


@outer
def prune_numbered(score: Floats, t0: int, pane: int, k: int, ties: bool) -> Ints:
    """:func:`prune` for one partition of consecutive object numbers t0, t0 + 1, …, none of them written down."""
    size = score.size
    if pane <= k:
        return np.arange(size)
    rows = Columns(np.empty(0, np.int64), score, np.empty(0, np.int64), np.empty(0, np.int64))
    parts = [np.empty(0, np.int64) for _ in range(0)]
    count, lo = 0, 0
    while lo < size:
        hi = min(size, lo + pane - (t0 + lo) % pane)
        best = top_of_slice(rows, lo, hi, k, ties)
        parts.append(best)
        count += best.size
        lo = hi
    kept = np.empty(count, np.int64)
    place = 0
    for best in parts:
        kept[place : place + best.size] = best
        place += best.size
    return kept


@outer
def crossings(rows: Columns, newest: Ints, slide: int) -> tuple[Ints, Ints, Ints]:
    """The count windows that a batch completes: partition, end, and the arrival number of the object that does it.

    A window is complete when an object with number end - 1 or higher has come. ``newest``, the newest number of each
    partition, is brought up to date.
    """
    keys, ends, numbers = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    count = 0
    for i in range(rows.time.size):
        k = rows.key[i] if rows.key.size else 0
        end = (newest[k] + 1) // slide * slide + slide
        while end <= rows.time[i] + 1:
            if count == keys.size:
                keys, ends, numbers = np.append(keys, keys), np.append(ends, ends), np.append(numbers, numbers)
            keys[count], ends[count], numbers[count] = k, end, rows.number[i]
            count += 1
            end += slide
        newest[k] = rows.time[i]
    return keys[:count], ends[:count], numbers[:count]

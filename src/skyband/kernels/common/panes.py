"""Panes, the equal slices that windows are made of: the top k of each partition in each of them.

An object of a window's top k is among the top k of its own pane, so everything else can go at once. The same kernel
prunes a batch in the engine and a partition of the data in Spark.
"""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.common.output import grow
from skyband.kernels.common.sorting import newest_first
from skyband.storage.blocks import ARRIVAL, PARTITION, Floats, Ints, block, column

BLOCK = 128  # rows looked at together: one vectorised count says whether any of them passes


@block(version=1)
class Columns(NamedTuple):
    """Rows as the kernels see them; in a batch ``partition`` is empty where there is one partition only."""

    partition: Annotated[Ints, column("rows", holds=PARTITION)]
    score: Annotated[Floats, column("rows")]
    position: Annotated[Ints, column("rows")]
    arrival: Annotated[Ints, column("rows", holds=ARRIVAL)]


@inner
def _same(rows: Columns, a: int, b: int) -> bool:
    return bool(rows.position[a] == rows.position[b]) and bool(rows.arrival[a] == rows.arrival[b])


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
        if rows.position.size:
            newest = newest_first(equal, rows.position[index[:size]], rows.arrival[index[:size]])
        else:  # consecutive numbers: the later row is the newer one
            newest = equal[::-1]
        while room < level and rows.position.size and _same(rows, index[newest[room - 1]], index[newest[room]]):
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
def order_by_partition_and_pane(rows: Columns, partitions: int, pane: int) -> Ints:
    """A stable order by partition and pane; empty where the rows have it already."""
    size = rows.score.size
    if rows.partition.size:
        start = np.zeros(partitions + 1, np.int64)
        for partition in rows.partition:
            start[partition + 1] += 1
        start = np.cumsum(start)
        order = np.empty(size, np.int64)
        place = start[:-1].copy()
        for i in range(size):
            order[place[rows.partition[i]]] = i
            place[rows.partition[i]] += 1
    else:
        start = np.array([0, size])
        order = np.empty(0, np.int64)
    for partition in range(start.size - 1):
        ordered = True
        for i in range(start[partition] + 1, start[partition + 1]):
            a, b = (order[i - 1], order[i]) if order.size else (i - 1, i)
            if rows.position[b] < rows.position[a] and rows.position[b] // pane < rows.position[a] // pane:
                ordered = False
                break
        if not ordered:
            if not order.size:
                order = np.arange(size)
            part = order[start[partition] : start[partition + 1]].copy()
            order[start[partition] : start[partition + 1]] = part[
                np.argsort(rows.position[part] // pane, kind="mergesort")
            ]
    return order


@outer
def count_runs(partition: Ints, position: Ints, pane: int) -> tuple[Ints, Ints]:
    """First indices and lengths of the runs of equal partition and pane; ``partition`` may be empty."""
    first, length = np.empty(64, np.int64), np.empty(64, np.int64)
    count, lo = 0, 0
    while lo < position.size:
        start = position[lo] // pane * pane
        hi = lo + 1
        while (
            hi < position.size
            and start <= position[hi] < start + pane
            and (partition.size == 0 or partition[hi] == partition[lo])
        ):
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
    first, length = count_runs(rows.partition, rows.position, pane)
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


def survivors(rows: Columns, partitions: int, pane: int, k: int, ties: bool) -> Ints:
    """Indices of the k best rows of every partition and pane, in the order of partition and pane."""
    order = order_by_partition_and_pane(rows, partitions, pane)
    if not order.size:
        return prune(rows, pane, k, ties)
    partition = rows.partition[order] if rows.partition.size else rows.partition
    kept = prune(Columns(partition, rows.score[order], rows.position[order], rows.arrival[order]), pane, k, ties)
    return order[kept]


@outer
def prune_numbered(score: Floats, first_position: int, pane: int, k: int, ties: bool) -> Ints:
    """:func:`prune` for one partition of consecutive positions t0, t0 + 1, …, none of them written down."""
    size = score.size
    if pane <= k:
        return np.arange(size)
    rows = Columns(np.empty(0, np.int64), score, np.empty(0, np.int64), np.empty(0, np.int64))
    parts = [np.empty(0, np.int64) for _ in range(0)]
    count, lo = 0, 0
    while lo < size:
        hi = min(size, lo + pane - (first_position + lo) % pane)
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

    A window is complete when an object at position end - 1 or higher has come. ``newest``, the newest position of each
    partition, is brought up to date.
    """
    partitions, ends, arrivals = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    count = 0
    for i in range(rows.position.size):
        partition = rows.partition[i] if rows.partition.size else 0
        end = (newest[partition] + 1) // slide * slide + slide
        while end <= rows.position[i] + 1:
            if count == partitions.size:
                partitions, ends, arrivals = grow(partitions, 0), grow(ends, 0), grow(arrivals, 0)
            partitions[count], ends[count], arrivals[count] = partition, end, rows.arrival[i]
            count += 1
            end += slide
        newest[partition] = rows.position[i]
    return partitions[:count], ends[:count], arrivals[:count]

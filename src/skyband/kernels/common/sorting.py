"""Sorting rows into the total order of :mod:`skyband.order`."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.storage.blocks import Floats, Ints

BITS = 11
DIGITS = 1 << BITS
FEW = 128  # below this a comparison sort is faster


@inner
def by_rank(score: Floats, position: Ints, arrival: Ints) -> Ints:
    """Indices in the total order, best first."""
    order = np.argsort(-score) if score.size < FEW else _descending(score)
    lo = 0
    while lo < order.size:
        hi = lo + 1
        while hi < order.size and score[order[hi]] == score[order[lo]]:
            hi += 1
        if hi - lo > 1:
            order[lo:hi] = newest_first(order[lo:hi].copy(), position, arrival)
        lo = hi
    return order


@inner
def newest_first(group: Ints, position: Ints, arrival: Ints) -> Ints:
    """Some indices in the order of position and then arrival, newest first."""
    for i in range(1, group.size):
        a, b = group[i - 1], group[i]
        if position[b] < position[a] or (position[b] == position[a] and arrival[b] < arrival[a]):
            group = group[np.argsort(arrival[group])]
            return group[np.argsort(position[group], kind="mergesort")][::-1].copy()
    return group[::-1].copy()


@inner
def _descending(score: Floats) -> Ints:
    """A stable radix sort: linear, and several times as fast as comparing."""
    size = score.size
    values = (score + 0.0).view(np.int64)  # + 0.0 makes -0 and 0 the same
    bits, index = np.empty(size, np.uint64), np.empty(size, np.int64)
    for i in range(size):
        # Flipped so that unsigned order is descending order of the scores.
        bits[i] = np.uint64(values[i] if values[i] < 0 else ~values[i] ^ (np.int64(1) << 63))
        index[i] = i
    other_bits, other_index = np.empty(size, np.uint64), np.empty(size, np.int64)
    start = np.empty(DIGITS + 1, np.int64)
    for shift in range(0, 64, BITS):
        start[:] = 0
        for i in range(size):
            start[np.int64((bits[i] >> np.uint64(shift)) & np.uint64(DIGITS - 1)) + 1] += 1
        if start.max() == size:
            continue
        for i in range(DIGITS):
            start[i + 1] += start[i]
        for i in range(size):
            digit = np.int64((bits[i] >> np.uint64(shift)) & np.uint64(DIGITS - 1))
            other_bits[start[digit]], other_index[start[digit]] = bits[i], index[i]
            start[digit] += 1
        bits, other_bits = other_bits, bits
        index, other_index = other_index, index
    return index


@outer
def tied(partition: Ints, score: Floats, position: Ints) -> NDArray[np.bool_]:
    """Which rows have the partition, score and position of another one. Without partitions ``partition`` is empty."""
    found = np.zeros(score.size, np.bool_)
    bits = 4
    while 1 << bits < 2 * score.size:
        bits += 1
    row = np.full(1 << bits, -1, np.int32)  # open addressing
    values = (score + 0.0).view(np.int64)  # + 0.0 makes -0 and 0 the same
    for i in range(score.size):
        part = partition[i] if partition.size else 0
        mixed = np.uint64(values[i]) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(part)
        mixed = (mixed ^ (mixed >> np.uint64(32))) + np.uint64(position[i])
        slot = np.int64((mixed * np.uint64(0xD1B54A32D192ED03)) >> np.uint64(64 - bits))
        while row[slot] >= 0:
            other = row[slot]
            if (
                score[other] == score[i]
                and position[other] == position[i]
                and (not partition.size or partition[other] == part)
            ):
                found[i] = found[other] = True
                break
            slot = (slot + 1) & (row.size - 1)
        else:
            row[slot] = i
    return found

"""Instances of objects, their score intervals, and who is dominated (Haghani et al., CIKM 2009, section 3.2)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.groups.assemble import Parts, Spec
from skyband.storage.blocks import Floats, Ints

Flags = NDArray[np.bool_]

MARGIN = 1e-12  # how far two scores may be off by rounding: nobody is dropped for less


@outer
def counting_rows(parts: Parts, many: bool) -> Ints:
    """The rows that count, oldest first: each begins an instance of its object."""
    meta = parts.meta[0]
    rows = np.empty(meta.rows - meta.head, np.int64)
    count = 0
    for i in range(meta.head, meta.rows):
        if many or parts.last[parts.cell[i]] == parts.arrival[i]:
            rows[count] = i
            count += 1
    return rows[:count]


class Hope(NamedTuple):
    """What may still come, for each object and stream, and how probably it does if the whole window is left.

    ``fades``: the probability shrinks as an instance ages.
    """

    most: Floats  # two-dimensional
    odds: Floats
    fades: bool


@inner
def _in_time(odds: float, left: float, many: bool) -> float:
    """The probability that something still comes in what is left of a window, if it is as likely at any moment.

    What comes but once has not come yet: that speaks against it too.
    """
    return odds * left if many or odds >= 1.0 else odds * left / (1.0 - odds * (1.0 - left))


@outer
def intervals(parts: Parts, rows: Ints, hope: Hope, now: int, spec: Spec) -> tuple[Floats, Floats]:
    """What each stream says of each instance now, and the most it may come to say: two vectors for each of ``rows``.

    An instance takes only those rows of its object into account that are no older than itself.
    """
    width = hope.most.shape[1]
    current, best = np.full((rows.size, width), spec.low), np.full((rows.size, width), spec.low)
    value, within = np.zeros(parts.owner.size), np.zeros(parts.owner.size, np.bool_)
    stop = rows.size
    while stop > 0:
        start = stop
        while start > 0 and parts.position[rows[start - 1]] == parts.position[rows[stop - 1]]:
            start -= 1
            c = parts.cell[rows[start]]
            value[c] = value[c] + parts.value[rows[start]] if spec.many else parts.value[rows[start]]
            within[c] = True
        left = 1.0
        if hope.fades:
            left = min(max(1.0 - (now - parts.position[rows[stop - 1]]) / spec.extent, 0.0), 1.0)
        for i in range(start, stop):  # rows of one moment expire together
            slot = parts.owner[parts.cell[rows[i]]]
            for s in range(width):
                if hope.most[slot, s] > spec.low:
                    best[i, s] += _in_time(hope.odds[slot, s], left, spec.many) * (hope.most[slot, s] - spec.low)
            c = parts.first[slot]
            while c >= 0:
                s = parts.stream[c]
                if within[c]:
                    current[i, s] = value[c]
                if spec.many:
                    more = _in_time(hope.odds[slot, s], left, True) * hope.most[slot, s]
                    best[i, s] = max(current[i, s], value[c] * within[c] + more)
                elif hope.most[slot, s] <= spec.low:
                    # Seen once: it does not come again, and what is older than the instance does not count.
                    best[i, s] = current[i, s]
                c = parts.following[c]
        stop = start
    return current, best


@outer
def dominated(position: Ints, owner: Ints, current: Floats, best: Floats, enough: Ints) -> Flags:
    """Which instances are dominated by enough distinct objects: no older, and now better than they can ever become.

    ``position`` ascends. Going back in time, the k largest scores of distinct objects are at hand in ``top``, for the
    largest k that is asked for; the counter of an instance reaches its own k exactly if the k-th of them is above its
    best score.
    """
    result = np.zeros(position.size, np.bool_)
    k = enough.max() if enough.size else 1
    top, who, size = np.empty(k), np.empty(k, np.int64), 0
    stop = position.size
    while stop > 0:
        start = stop
        while start > 0 and position[start - 1] == position[stop - 1]:
            start -= 1
            score, at = current[start], size
            if size == k and score <= top[k - 1]:
                continue
            for i in range(size):
                if who[i] == owner[start]:
                    at = i
                    break
            if at < size and top[at] >= score:
                continue
            if at == size:
                if size < k:
                    size += 1
                else:
                    at = k - 1
            while at > 0 and top[at - 1] < score:
                top[at], who[at] = top[at - 1], who[at - 1]
                at -= 1
            top[at], who[at] = score, owner[start]
        for i in range(start, stop):
            if size >= enough[i]:
                bar = top[enough[i] - 1]
                result[i] = bar > best[i] + MARGIN * (abs(bar) + abs(best[i]))
        stop = start
    return result


@outer
def needed(owner: Ints, gone: Flags, objects: int) -> Flags:
    """Which rows stay: those from the first instance of their object that is not dominated."""
    result, begun = np.zeros(owner.size, np.bool_), np.zeros(objects, np.bool_)
    for i in range(owner.size):
        if not gone[i]:
            begun[owner[i]] = True
        result[i] = begun[owner[i]]
    return result

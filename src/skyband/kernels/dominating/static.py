"""Dominance among the points of a set that does not change. Smaller is better in every dimension."""

import numpy as np

from skyband.kernels.common.jit import outer
from skyband.kernels.common.order import newer
from skyband.storage.blocks import Floats, Ints


def skyband(points: Floats, k: int, position: Ints, arrival: Ints) -> Ints:
    """The rows, ascending, of the points (n × d) that fewer than k others dominate, or equal while they are newer.

    >>> some, none = np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0], [2.0, 1.0]]), np.zeros(4, np.int64)
    >>> skyband(some, 1, none, none), skyband(some, 1, none, np.arange(4))
    (array([0, 1, 3]), array([0, 3]))
    """
    rank = np.zeros(points.shape[0], np.int64)  # smaller for what dominates; sums of coordinates would be rounded
    for column in points.T:
        rank += np.unique(column, return_inverse=True)[1]
    order = np.lexsort((-arrival, -position, rank))
    return np.sort(order[_skyband(np.ascontiguousarray(points[order]), k, position[order], arrival[order])])


@outer
def _skyband(points: Floats, k: int, position: Ints, arrival: Ints) -> Ints:
    """The same of points in an order in which none comes before what dominates it, or equals it and is newer."""
    n, d = points.shape
    kept, size = np.empty(n, np.int64), 0
    for i in range(n):
        before = 0
        for r in range(size):
            other = kept[r]
            below, strict = True, False
            for j in range(d):
                value = points[other, j]
                if value > points[i, j]:
                    below = False
                    break
                strict |= value < points[i, j]
            if below and (strict or newer(position[other], arrival[other], position[i], arrival[i])):
                before += 1
                if before == k:
                    break
        if before < k:
            kept[size] = i
            size += 1
    return kept[:size]


@outer
def count_dominated(candidates: Floats, points: Floats) -> Ints:
    """How many of the points (n × d) each of the candidates (m × d) dominates."""
    m, d = candidates.shape
    found = np.zeros(m, np.int64)
    for low in range(0, points.shape[0], 512):  # a block of points stays in the cache for all candidates
        high = min(low + 512, points.shape[0])
        for c in range(m):
            count = 0
            for i in range(low, high):
                above, strict = True, False
                for j in range(d):
                    above &= points[i, j] >= candidates[c, j]
                    strict |= points[i, j] > candidates[c, j]
                count += above and strict
            found[c] += count
    return found

"""Dominance among the points of a set that does not change. Smaller is better in every dimension."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.jit import outer

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def skyband(points: Floats, k: int) -> Ints:
    """The rows, ascending, of the points (n × d) that fewer than k others dominate: the k-skyband.

    The top k dominating points of a set are among them, since each of its dominators scores higher than a point does.
    The k-skyband of a union of sets is that of the union of their k-skybands.

    >>> skyband(np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0], [3.0, 3.0]]), 1)
    array([0, 1])
    """
    rank = np.zeros(points.shape[0], np.int64)  # smaller for what dominates; sums of coordinates would be rounded
    for column in points.T:
        rank += np.unique(column, return_inverse=True)[1]
    order = np.argsort(rank, kind="stable")
    return np.sort(order[_skyband(np.ascontiguousarray(points[order]), k)])


@outer
def _skyband(points: Floats, k: int) -> Ints:
    """The same of points in an order in which none comes before its dominators."""
    n, d = points.shape
    kept, size = np.empty(n, np.int64), 0
    for i in range(n):
        dominators = 0
        for r in range(size):
            below, strict = True, False
            for j in range(d):
                value = points[kept[r], j]
                if value > points[i, j]:
                    below = False
                    break
                strict |= value < points[i, j]
            if below and strict:
                dominators += 1
                if dominators == k:
                    break
        if dominators < k:
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

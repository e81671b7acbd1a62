"""Sets of points: their k-skyband, and how many points others dominate. The pieces that a spread window is made of."""

import numpy as np

from skyband.algorithm import Floats, Ints
from skyband.kernels.dominance import count_dominated, few_dominators

_LARGE = 1e150  # stands for infinity in sums, so that none is NaN


def k_skyband(points: Floats, k: int) -> Ints:
    """Indices, ascending, of the points that fewer than k others dominate; smaller is better in every dimension.

    >>> k_skyband(np.array([[1.0, 2.0], [2.0, 3.0], [2.0, 1.0], [3.0, 4.0]]), 2)
    array([0, 2])
    >>> k_skyband(np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 9.0]]), 1)
    array([0, 1, 2])
    """
    # Rounding is monotone, so that no sum is larger than that of a point dominated; equal sums fall back on the points.
    sums = np.clip(points, -_LARGE, _LARGE).sum(axis=1)
    order = np.lexsort((*points.T[::-1], sums))
    return np.sort(order[few_dominators(np.ascontiguousarray(points[order]), k)])


def dominated(points: Floats, among: Floats) -> Ints:
    """How many of ``among`` each point dominates.

    >>> dominated(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [1.0, 3.0], [0.0, 9.0]]))
    array([1])
    """
    return count_dominated(np.ascontiguousarray(points), np.ascontiguousarray(among))

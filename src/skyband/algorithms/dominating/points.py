"""Sets of points: their k-skyband, and how many points others dominate. The pieces that a spread window is made of."""

import numpy as np

from skyband.algorithms.contract import Floats, Ints
from skyband.kernels.dominating.static import count_dominated, skyband


def k_skyband(points: Floats, k: int, position: Ints | None = None, arrival: Ints | None = None) -> Ints:
    """Indices, ascending, of the points that fewer than k others dominate; smaller is better in every dimension.

    The top k dominating points of a set are among them, since each of its dominators scores higher than a point does.
    With times and arrival numbers, newer points that equal a point count as well: they rank before it, unless all that
    tie are wanted. The k-skyband of a union of sets is that of the union of their k-skybands.

    >>> k_skyband(np.array([[1.0, 2.0], [2.0, 3.0], [2.0, 1.0], [3.0, 4.0]]), 2)
    array([0, 2])
    >>> k_skyband(np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 9.0]]), 1)
    array([0, 1, 2])
    >>> k_skyband(np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 9.0]]), 1, np.array([7, 8, 9]))
    array([1, 2])
    """
    none = np.zeros(points.shape[0], np.int64)
    return skyband(points, k, none if position is None else position, none if arrival is None else arrival)


def dominated(points: Floats, among: Floats) -> Ints:
    """How many of ``among`` each point dominates.

    >>> dominated(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [1.0, 3.0], [0.0, 9.0]]))
    array([1])
    """
    found: Ints = count_dominated(np.ascontiguousarray(points), np.ascontiguousarray(among))
    return found

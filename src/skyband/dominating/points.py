"""Sets of points: their k-skyband, and how many points others dominate. The pieces that a spread window is made of."""

import numpy as np

from skyband.algorithm import Floats, Ints
from skyband.kernels.dominating.static import count_dominated, skyband


def k_skyband(points: Floats, k: int) -> Ints:
    """Indices, ascending, of the points that fewer than k others dominate; smaller is better in every dimension.

    >>> k_skyband(np.array([[1.0, 2.0], [2.0, 3.0], [2.0, 1.0], [3.0, 4.0]]), 2)
    array([0, 2])
    >>> k_skyband(np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 9.0]]), 1)
    array([0, 1, 2])
    """
    return skyband(points, k)


def dominated(points: Floats, among: Floats) -> Ints:
    """How many of ``among`` each point dominates.

    >>> dominated(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [1.0, 3.0], [0.0, 9.0]]))
    array([1])
    """
    found: Ints = count_dominated(np.ascontiguousarray(points), np.ascontiguousarray(among))
    return found

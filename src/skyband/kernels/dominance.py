"""Dominance among points: smaller is better in every dimension; equal points do not dominate each other."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@njit(cache=True)
def dominates(a: Floats, b: Floats) -> bool:
    """Whether point a is nowhere worse than point b, and better somewhere."""
    better = False
    for i in range(a.size):
        if a[i] > b[i]:
            return False
        better |= a[i] < b[i]
    return better


@njit(cache=True)
def count_dominated(points: Floats, among: Floats) -> Ints:
    """How many of ``among`` each point dominates."""
    counts = np.zeros(len(points), np.int64)
    for i in range(len(points)):
        for j in range(len(among)):
            counts[i] += dominates(points[i], among[j])
    return counts


@njit(cache=True)
def few_dominators(points: Floats, k: int) -> Ints:
    """Which points have fewer than k dominators; every point must come after its dominators.

    Only points found so far are asked: who has k dominators has k among those that have fewer.
    """
    found = np.empty(len(points), np.int64)
    size = 0
    for i in range(len(points)):
        dominators = 0
        for j in range(size):
            dominators += dominates(points[found[j]], points[i])
            if dominators == k:
                break
        if dominators < k:
            found[size] = i
            size += 1
    return found[:size]

"""Full windows without the way there: the K-skyband of the pairs of many points, for the scores s1 … s4 of *pairs*.

To fill a window of 10⁶ objects one by one takes minutes; here it takes seconds. A pair is as old as its older object,
so it can be in the K-skyband only if it is among the K best of the objects that are not older. Going back in time, the
K-th best of the newest m is a bound for what the next m older ones may bring, and only pairs within it are looked for.
"""

from collections.abc import Iterator

import numpy as np

from skyband.algorithms.pairs.room import with_objects
from skyband.kernels.pairs.state import PairState
from skyband.kernels.pairs.upkeep import tidy

FEW = 64


def goodness(points: np.ndarray, score: str, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Of the pairs of points i and j: larger is better."""
    distance = np.abs(points[i] - points[j])
    value = distance[:, 0]
    for column in distance.T[1:]:
        value = value + column if score in ("s1", "s2") else value * column
    return -value if score in ("s1", "s3") else value


def all_pairs(which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i, j = np.triu_indices(which.size, 1)
    return which[i], which[j]


def close(columns: np.ndarray, distance: float, product: float = np.inf) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All pairs that are not further apart in the first column, and in the product of all columns."""
    order = np.argsort(columns[0])
    ranked, shift = columns[:, order], 1
    while shift < order.size:
        apart = ranked[:, shift:] - ranked[:, :-shift]
        if apart[0].min() > distance:
            return
        near = apart[0] <= distance
        if product < np.inf:
            near &= np.abs(np.prod(apart, axis=0)) <= product
        at = np.flatnonzero(near)
        yield order[at], order[at + shift]
        shift += 1


def likely(points: np.ndarray, score: str, bound: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of points in the unit cube, among which are all whose goodness is ``bound`` or more."""
    if score == "s1":  # near in the first two columns: side by side in strips of twice the distance
        for offset in (0.0, -bound):
            strip = np.floor((points[:, 0] + offset) / (-2 * bound))
            yield from close((3 * strip + points[:, 1])[None], -bound)
    elif score == "s3":  # near in one column at least
        d = points.shape[1]
        for column in range(d):
            columns = np.roll(points.T, -column, axis=0)
            yield from close(columns, (-bound) ** (1 / d), -bound * 1.0001)
    else:  # both points are near a corner
        reach = np.maximum(points, 1 - points)
        most = reach.sum(axis=1) if score == "s2" else reach.prod(axis=1)
        yield all_pairs(np.flatnonzero(most >= bound))


def candidates(points: np.ndarray, score: str, K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs among which is the K-skyband of points, the oldest of which come first: goodness, older and newer one."""
    n, m = points.shape[0], FEW
    older, newer = all_pairs(np.arange(max(0, n - m), n))
    while m < n:
        bound = np.partition(goodness(points, score, older, newer), -K)[-K]
        first, m = max(0, n - 2 * m), 2 * m
        some = [(older, newer)]
        for i, j in likely(points[first:], score, bound):
            within = goodness(points[first:], score, i, j) >= bound
            some.append((first + np.minimum(i, j)[within], first + np.maximum(i, j)[within]))
        older, newer = np.unique(np.concatenate(some, axis=1), axis=1)  # a pair may be met several times
    return goodness(points, score, older, newer), older, newer


def filled(algorithm, points: np.ndarray, score: str) -> PairState:
    """What SCase keeps of a count window that holds all the points, numbered from 0."""
    n = len(points)
    good, older, newer = candidates(points, score, algorithm.asked.K)
    order = np.lexsort((newer, older, good))[::-1]
    state = algorithm.with_pairs(with_objects(algorithm.fresh(), n, 0), good.size, algorithm.asked)
    window, band, meta = state.window, state.band, state.window.meta[0]
    window.position[:n] = window.arrival[:n] = np.arange(n)
    window.values[:, :n] = points.T
    meta.stop, meta.newest, meta.floor = n, n - 1, n - algorithm.asked.N
    for column, values in ((band.score, good), (band.position, older), (band.older, older),
                           (band.newer_position, newer), (band.newer, newer)):  # fmt: skip
        column[: good.size] = values[order]
    band.swapped[: good.size] = 0
    band.meta[0].held = good.size
    tidy(state, algorithm.asked)
    return state

"""Points in the unit cube, as arrays of n rows and d columns: data for nearest, dominating and closest points."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def independent(n: int, d: int = 2, seed: int = 0) -> Floats:
    """n points spread evenly over the unit cube of d dimensions.

    >>> independent(1000, d=3).shape
    (1000, 3)
    """
    return np.random.default_rng(seed).random((n, d))


def clustered(n: int, d: int = 2, clusters: int = 2, variance: float = 0.1, seed: int = 0) -> Floats:
    """n points in Gaussian clusters around random centres, cut off at the bounds of the unit cube.

    The defaults (two centres, variance 0.1 in each dimension) are those of Pripužić, Podnar Žarko and Aberer (TODS
    2015, section 8). The paper does not say how it keeps the points within [0, 1]; here a coordinate that falls
    outside is drawn again.

    >>> points = clustered(1000, variance=0.001)
    >>> bool(points.min() >= 0), bool(points.max() <= 1)
    (True, True)
    """
    rng = np.random.default_rng(seed)
    centres = rng.random((clusters, d))[rng.integers(clusters, size=n)]
    points = rng.normal(centres, np.sqrt(variance))
    while (outside := (points < 0) | (points > 1)).any():
        points[outside] = rng.normal(centres[outside], np.sqrt(variance))
    return points


def correlated(n: int, d: int = 2, spread: float = 0.05, seed: int = 0) -> Floats:
    """n points near the diagonal of the unit cube: a point that is good in one dimension is good in the others.

    These are the *correlated* points of Börzsönyi, Kossmann and Stocker (*The Skyline Operator*, ICDE 2001), who do
    not say how far from the diagonal the points may lie.

    >>> points = correlated(1000, d=3)
    >>> bool(np.corrcoef(points.T)[0, 1] > 0.5), bool(points.min() >= 0)
    (True, True)
    """
    return _around_the_diagonal(n, d, seed, lambda rng, m: (rng.random(m), rng.normal(0, spread, (m, d))))


def anticorrelated(n: int, d: int = 2, spread: float = 0.05, seed: int = 0) -> Floats:
    """n points near a plane across the unit cube: a point that is good in one dimension is bad in others.

    These are the *anti-correlated* points of Börzsönyi, Kossmann and Stocker (*The Skyline Operator*, ICDE 2001). For
    each point a plane at right angles to the diagonal is drawn, close to the middle of the cube, and then a point at
    random on it.

    >>> points = anticorrelated(1000, d=3)
    >>> bool(np.corrcoef(points.T)[0, 1] < -0.2), bool(points.min() >= 0)
    (True, True)
    """

    def on_a_plane(rng: np.random.Generator, m: int) -> tuple[Floats, Floats]:
        x = rng.random((m, d))
        return rng.normal(0.5, spread, m), x - x.mean(axis=1, keepdims=True)

    return _around_the_diagonal(n, d, seed, on_a_plane)


def _around_the_diagonal(
    n: int, d: int, seed: int, draw: Callable[[np.random.Generator, int], tuple[Floats, Floats]]
) -> Floats:
    """Points on the diagonal, each moved a little at random; those that fall outside the unit cube are drawn again."""
    rng, points = np.random.default_rng(seed), np.empty((0, d))
    while points.shape[0] < n:
        centre, away = draw(rng, 2 * (n - points.shape[0]) + 64)
        some = centre[:, None] + away
        points = np.concatenate([points, some[((some >= 0) & (some <= 1)).all(axis=1)]])
    return points[:n]

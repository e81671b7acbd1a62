"""Points of the unit cube, in arrival order, as (n, d) arrays: what :class:`skyband.Nearest` is asked about."""

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

    The defaults are those of Pripužić, Podnar Žarko and Aberer (TODS 2015, section 8): two centres, variance 0.1 in
    each dimension. The paper does not say how it keeps the points within [0, 1]; here a coordinate that falls outside
    is drawn again.

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

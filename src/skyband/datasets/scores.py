"""Scores of generated streams, in the order of arrival: easy, hard and awkward cases for a sliding window."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def uniform(n: int, seed: int = 0) -> Floats:
    """n independent scores in [0, 1): a random-order stream, the average case of every paper.

    >>> uniform(3).round(3)
    array([0.637, 0.27 , 0.041])
    """
    return np.random.default_rng(seed).random(n)


def random_walk(n: int, seed: int = 0) -> Floats:
    """n scores, each a standard normal step from the one before: neighbours in time are neighbours in score.

    >>> random_walk(3).round(3)
    array([ 0.126, -0.006,  0.634])
    """
    return np.cumsum(np.random.default_rng(seed).standard_normal(n))


def rising(n: int, seed: int = 0) -> Floats:
    """Uniform scores from the smallest to the largest.

    Ranked ``DESC``, each object beats all before it, so only the newest k matter. Ranked ``ASC``, this is the worst
    case, like :func:`falling` ranked ``DESC``.
    """
    return np.sort(uniform(n, seed))


def falling(n: int, seed: int = 0) -> Floats:
    """Uniform scores from the largest to the smallest.

    Ranked ``DESC``, this is the worst case: each object outlives all that beat it, so the whole window must be kept.
    """
    return rising(n, seed)[::-1].copy()


def constant(n: int, value: float = 0.0) -> Floats:
    """The same score n times: age alone decides the ranking, and with ``ties="all"`` every object is in it."""
    return np.full(n, value)


def tied(n: int, values: int = 10, seed: int = 0) -> Floats:
    """n scores drawn from the whole numbers below ``values``: about n / ``values`` objects share each.

    >>> tied(8, values=3, seed=1)
    array([1., 1., 2., 2., 0., 0., 2., 2.])
    """
    return np.random.default_rng(seed).integers(values, size=n).astype(np.float64)

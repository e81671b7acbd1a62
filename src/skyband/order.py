"""The total order of objects: written once here, compiled by the kernels, used by every merge.

Inside the engine a score is a *goodness*, of which larger is better: a score that is ordered ``ASC`` is negated on its
way in and on its way out. The object with the larger goodness comes first; of two with equal goodness the newer one, by
event time and then by arrival number. Arrival numbers are unique, so the order is total.
"""

import numpy as np
from numpy.typing import NDArray


def newer(position_a: int, arrival_a: int, position_b: int, arrival_b: int) -> bool:
    """Whether object a is newer than object b, and so leaves every sliding window no earlier than b."""
    if position_a != position_b:
        return position_a > position_b
    return arrival_a > arrival_b


def better(score_a: float, position_a: int, arrival_a: int, score_b: float, position_b: int, arrival_b: int) -> bool:
    """Whether object a ranks before object b.

    >>> better(2.0, 1, 1, 1.0, 9, 9), better(1.0, 2, 1, 1.0, 1, 2), better(1.0, 1, 1, 1.0, 1, 2)
    (True, True, False)
    """
    if score_a != score_b:
        return score_a > score_b
    if position_a != position_b:
        return position_a > position_b
    return arrival_a > arrival_b


def ranking(score: NDArray[np.float64], position: NDArray[np.int64], arrival: NDArray[np.int64]) -> NDArray[np.intp]:
    """Indices that put the objects in order, best first.

    >>> ranking(np.array([1.0, 3.0, 3.0]), np.array([0, 1, 2]), np.array([0, 1, 2]))
    array([2, 1, 0])
    """
    return np.lexsort((arrival, position, score))[::-1]

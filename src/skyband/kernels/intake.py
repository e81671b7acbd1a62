"""What every batch goes through before an algorithm sees it."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.jit import outer


@outer
def count_nan(values: NDArray[np.float64]) -> int:
    """How many are NaN, in one vectorised pass that allocates nothing."""
    count = 0
    for value in values:
        count += value != value
    return count


@outer
def number_objects(key: NDArray[np.int64], seen: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each object in its partition; ``seen``, the objects of each partition so far, goes on."""
    number = np.empty(key.size, np.int64)
    for i in range(key.size):
        number[i] = seen[key[i]]
        seen[key[i]] += 1
    return number

"""What every batch goes through before an algorithm sees it."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import outer


@outer
def count_nan(values: NDArray[np.float64]) -> int:
    """How many are NaN, in one vectorised pass that allocates nothing."""
    count = 0
    for value in values:
        count += value != value
    return count


@outer
def number_objects(partition: NDArray[np.int64], seen: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each object in its partition; ``seen``, the objects of each partition so far, goes on."""
    arrival = np.empty(partition.size, np.int64)
    for i in range(partition.size):
        arrival[i] = seen[partition[i]]
        seen[partition[i]] += 1
    return arrival

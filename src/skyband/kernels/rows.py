"""Rows of many partitions side by side, as kernels for hopping windows take and give them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Lists(NamedTuple):
    """Rows of all partitions, partition by partition: those of ``key`` are ``[offset[key] : offset[key + 1]]``."""

    offset: Ints
    score: Floats
    time: Ints
    number: Ints


class Closings(NamedTuple):
    """Where each partition stands: windows up to ``closed`` are done, those up to ``frontier`` are to be closed now.

    For count windows ``end`` and ``number`` list the windows that close and the object whose arrival closes each,
    partition by partition as in :class:`Lists`; they are empty for time windows.
    """

    closed: Ints
    frontier: Ints
    offset: Ints
    end: Ints
    number: Ints

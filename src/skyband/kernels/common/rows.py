"""Rows of many partitions side by side, as kernels for hopping windows take and give them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Lists(NamedTuple):
    """Rows of all partitions, one partition after another: ``[offset[partition] : offset[partition + 1]]``."""

    offset: Ints
    score: Floats
    position: Ints
    arrival: Ints


class Closings(NamedTuple):
    """Where each partition stands: windows up to ``closed`` are done, those up to ``frontier`` are to be closed now.

    For count windows ``end`` and ``arrival`` list the windows that close and the object whose arrival closes each,
    partition by partition as in :class:`Lists`; they are empty for time windows.
    """

    closed: Ints
    frontier: Ints
    offset: Ints
    end: Ints
    arrival: Ints

"""Gets memory for answers from Arrow's pool, which is faster than ``malloc`` for large arrays that live shortly."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray


def empty(size: int, dtype: DTypeLike) -> NDArray[Any]:
    """An array like that of ``numpy.empty``, in memory that Arrow's pool uses again once the answer is gone.

    ``malloc`` would give the memory of an answer back to the system, and ask for it again page by page. That takes
    longer than writing the answer.
    """
    return np.frombuffer(pa.allocate_buffer(size * np.dtype(dtype).itemsize), dtype)

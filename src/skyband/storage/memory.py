"""Memory for answers, from Arrow's pool."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray


def empty(size: int, dtype: DTypeLike) -> NDArray[Any]:
    """An array as of ``numpy.empty``, in memory that Arrow's pool hands out again once the answer is gone.

    Answers are large and short-lived. ``malloc`` gives such memory back to the system and then asks for it again page
    by page, which takes longer than to write the answer.
    """
    return np.frombuffer(pa.allocate_buffer(size * np.dtype(dtype).itemsize), dtype)

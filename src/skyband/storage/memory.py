"""Arrays for answers in the memory of Arrow's pool, which is faster than ``malloc`` there, and read-only arrays."""

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


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The array as kernels take it from outside: in one piece, and never to be written to.

    Arrow's arrays are read-only, and to the compiler that is another type. So one compiled version serves all.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view

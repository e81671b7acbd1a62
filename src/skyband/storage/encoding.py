"""Writes arrays in few bytes, without loss.

States have many small numbers in wide types, many columns of even steps, and many arrays that occur twice.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FEW = 64  # an array of at most this size is not compared with others
TRIES = 8  # with how many others of its size an array is compared, at most
Note = list[Any]
"""What the header says about an array: its name, dtype and size, and how it was written:

- ``"plain"``: as it is;
- ``"same"``, name: equal to the array of that name;
- ``"even"``, first, step: numbers at even steps;
- ``"narrow"``, base, dtype: the differences from a base, in a narrower type."""


def encode(arrays: Mapping[str, Array]) -> Iterator[tuple[Note, bytes]]:
    """Encodes one-dimensional arrays; gives for each a note for the header, and its bytes."""
    seen: dict[int, list[tuple[str, Array]]] = {}  # by size
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        alike = seen.setdefault(array.size, []) if array.itemsize == 8 and array.size > FEW else []
        how, data = _encoded(array, alike[-TRIES:])
        alike.append((name, array))
        yield [name, array.dtype.str, array.size, *how], data


def decode(notes: list[Note], data: memoryview) -> dict[str, Array]:
    """The inverse of :func:`encode`; the arrays may be written to."""
    arrays: dict[str, Array] = {}
    offset = 0
    for name, dtype, size, how, *rest in notes:
        if how == "same":
            arrays[name] = arrays[rest[0]].view(dtype).copy()
        elif how == "even":
            first, step = rest
            arrays[name] = np.arange(size, dtype=dtype) * step + first
        else:
            base, stored = rest or (0, dtype)
            array = np.frombuffer(data, stored, size, offset)
            offset += array.nbytes
            arrays[name] = array.astype(dtype)
            if base:
                arrays[name] += base
    return arrays


def _encoded(array: Array, alike: list[tuple[str, Array]]) -> tuple[Note, bytes]:
    for name, other in alike:
        if _equal(array.view(np.int64), other.view(np.int64)):
            return ["same", name], b""
    if array.dtype in (np.int64, np.int32) and array.size > 1:
        step = int(array[1]) - int(array[0])
        if abs(step) < 1 << 31 and _equal(np.diff(array), np.broadcast_to(array.dtype.type(step), array.size - 1)):
            return ["even", int(array[0]), step], b""
        low, high = int(array.min()), int(array.max())
        for dtype in (np.uint8, np.uint16, np.uint32):
            if np.dtype(dtype).itemsize < array.itemsize and high - low <= np.iinfo(dtype).max:
                return ["narrow", low, np.dtype(dtype).str], (array - low).astype(dtype).tobytes()
    return ["plain"], array.tobytes()


def _equal(one: Array, other: Array) -> bool:
    """Whether two arrays of one size are equal. The beginning is compared first: mostly it shows that they are not."""
    return bool(np.array_equal(one[:16], other[:16]) and np.array_equal(one, other))

"""Growing arrays, and in them the rankings that a kernel emits."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.storage import memory
from skyband.storage.blocks import Floats, Ints, Record, record_type


class Used(NamedTuple):
    """How much of an output is in use."""

    blocks: int = 0
    rows: int = 0


USED = record_type(Used)


class Output(NamedTuple):
    """Closed windows, block by block; a block is the ranking of one partition in one window."""

    end: Ints
    partition: Ints
    trigger: Ints
    offset: Ints
    arrival: Ints
    score: Floats
    used: Record


@inner
def grow(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array with at least twice its length, and room for ``size``."""
    grown = np.empty(max(2 * array.size, size), array.dtype)
    grown[: array.size] = array
    return grown


@outer
def no_output(rows: int = 1024) -> Output:
    """An output to begin with, with room for so many rows (memory that is not written costs nothing)."""
    return Output(
        np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64), np.zeros(65, np.int64),
        np.empty(rows, np.int64), np.empty(rows, np.float64), np.zeros(1, USED),
    )  # fmt: skip


def roomy_output(rows: int) -> Output:
    """:func:`no_output` in memory that is used again for the next answer."""
    return no_output(0)._replace(arrival=memory.empty(rows, np.int64), score=memory.empty(rows, np.float64))


@inner
def emit(out: Output, partition: int, end: int, trigger: int, arrival: Ints, score: Floats) -> Output:
    """Adds a block: the ranking of one partition in the window that ends at ``end``."""
    used, size = out.used[0], arrival.size
    block, row = used.blocks, used.rows
    if block == out.end.size:
        out = Output(grow(out.end, 0), grow(out.partition, 0), grow(out.trigger, 0), grow(out.offset, 2 * block + 1),
                     out.arrival, out.score, out.used)  # fmt: skip
    if row + size > out.arrival.size:
        out = Output(out.end, out.partition, out.trigger, out.offset,
                     grow(out.arrival, row + size), grow(out.score, row + size), out.used)  # fmt: skip
    out.end[block], out.partition[block], out.trigger[block] = end, partition, trigger
    out.arrival[row : row + size] = arrival
    out.score[row : row + size] = score
    out.offset[block + 1] = row + size
    used.blocks, used.rows = block + 1, row + size
    return out

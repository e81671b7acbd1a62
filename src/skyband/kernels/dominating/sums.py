"""Sums and least values over the cells that a cell dominates, or that dominate it, for all cells at once."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner
from skyband.kernels.dominating.space import SHAPE, STRIDE, Space

Ints = NDArray[np.int64]


@inner
def upward(space: Space, values: Ints) -> Ints:
    """For each cell the sum over the cells that are nowhere below it, itself included."""
    sums = values.copy()
    for j in range(space.axes.shape[1]):
        g, stride = space.axes[SHAPE, j], space.axes[STRIDE, j]
        for block in range(0, sums.size, g * stride):
            for c in range(block + (g - 1) * stride - 1, block - 1, -1):
                sums[c] += sums[c + stride]
    return sums


@inner
def downward(space: Space, values: Ints) -> Ints:
    """For each cell the sum over the cells that are nowhere above it, itself included."""
    sums = values.copy()
    for j in range(space.axes.shape[1]):
        g, stride = space.axes[SHAPE, j], space.axes[STRIDE, j]
        for block in range(0, sums.size, g * stride):
            for c in range(block + stride, block + g * stride):
                sums[c] += sums[c - stride]
    return sums


@inner
def least(space: Space, values: Ints) -> Ints:
    """For each cell the least value over the cells that are nowhere above it, itself included."""
    lows = values.copy()
    for j in range(space.axes.shape[1]):
        g, stride = space.axes[SHAPE, j], space.axes[STRIDE, j]
        for block in range(0, lows.size, g * stride):
            for c in range(block + stride, block + g * stride):
                lows[c] = min(lows[c], lows[c - stride])
    return lows


@inner
def beyond(space: Space, cell: int, by: int) -> int:
    """The cell one further (``by`` = 1) or nearer (-1) in every dimension, or -1."""
    found = cell
    for j in range(space.axes.shape[1]):
        at = cell // space.axes[STRIDE, j] % space.axes[SHAPE, j] + by
        if at < 0 or at >= space.axes[SHAPE, j]:
            return -1
        found += by * space.axes[STRIDE, j]
    return int(found)

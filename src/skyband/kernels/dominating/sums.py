"""Sums and least values over the cells that a cell dominates, or that dominate it, for all cells at once."""

from skyband.kernels.common.jit import in_place, inner
from skyband.kernels.dominating.space import Grid
from skyband.storage.blocks import Ints


@inner
def upward(grid: Grid, values: Ints) -> Ints:
    """For each cell the sum over the cells that are nowhere below it, itself included."""
    sums = values.copy()
    for j in range(grid.shape.size):
        g, stride = grid.shape[j], grid.stride[j]
        for block in range(0, sums.size, g * stride):
            for c in range(block + (g - 1) * stride - 1, block - 1, -1):
                sums[c] += sums[c + stride]
    return sums


@inner
def downward(grid: Grid, values: Ints) -> Ints:
    """For each cell the sum over the cells that are nowhere above it, itself included."""
    sums = values.copy()
    for j in range(grid.shape.size):
        g, stride = grid.shape[j], grid.stride[j]
        for block in range(0, sums.size, g * stride):
            for c in range(block + stride, block + g * stride):
                sums[c] += sums[c - stride]
    return sums


@inner
def least(grid: Grid, values: Ints) -> Ints:
    """For each cell the least value over the cells that are nowhere above it, itself included."""
    lows = values.copy()
    for j in range(grid.shape.size):
        g, stride = grid.shape[j], grid.stride[j]
        for block in range(0, lows.size, g * stride):
            for c in range(block + stride, block + g * stride):
                lows[c] = min(lows[c], lows[c - stride])
    return lows


@in_place
def beyond(grid: Grid, cell: int, by: int) -> int:
    """The cell one further (``by`` = 1) or nearer (-1) in every dimension, or -1."""
    found = cell
    for j in range(grid.shape.size):
        at = cell // grid.stride[j] % grid.shape[j] + by
        if at < 0 or at >= grid.shape[j]:
            return -1
        found += by * grid.stride[j]
    return int(found)

"""The total order of :mod:`skyband.order`, compiled: the same functions, so that it is still written once."""

from numba import njit

from skyband import order

newer = njit(cache=True)(order.newer)
better = njit(cache=True)(order.better)

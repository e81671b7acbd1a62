"""The total order of :mod:`skyband.order`, compiled: the same functions, so that it is still written once."""

from skyband import order
from skyband.kernels.common.jit import inner

newer = inner(order.newer)
better = inner(order.better)

"""Partial sums of groups by pane: a small pure function that merges them, wherever they were made."""

import numpy as np

from skyband.algorithm import Ints
from skyband.kernels.incomplete.panes import Partials, reduce

__all__ = ["Partials", "merged"]


def merged(parts: Partials) -> Partials:
    """One partial sum for each group and pane, in the order of pane and group.

    Merging is associative: rows may be merged in parts, on several machines, and the parts again.

    >>> ints, floats = np.array([7, 7, 5]), np.array([0.1, 0.2, 1.0])
    >>> one = merged(Partials(np.array([1, 1, 0]), np.array([3, 3, 3]), floats, floats * 0, ints, ints))
    >>> one.group.tolist(), one.pane.tolist(), one.hi.tolist(), one.time.tolist()
    ([0, 1], [3, 3], [1.0, 0.30000000000000004], [5, 7])
    """
    if not parts.group.size:
        return parts
    place, size = _places(parts.group, parts.pane)
    return reduce(parts, place, size)


def _places(group: Ints, pane: Ints) -> tuple[Ints, int]:
    """For each row its place among the distinct (pane, group), in order; and how many there are."""
    groups = int(group.max()) + 1
    span = int(pane.max()) - int(pane.min()) + 1
    if span > (1 << 62) // groups:  # panes far apart: numbered by rank
        pane = np.unique(pane, return_inverse=True)[1].astype(np.int64)
        span = int(pane.max()) + 1
    code = (pane - pane.min()) * groups + group
    if span * groups > 8 * code.size + 4096:
        distinct, place = np.unique(code, return_inverse=True)
        return place.astype(np.int64), distinct.size
    used = np.zeros(span * groups, bool)
    used[code] = True
    rank = np.cumsum(used) - 1
    return rank[code], int(rank[-1]) + 1

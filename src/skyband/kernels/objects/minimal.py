"""The minimal set of candidates (mintopk, Theorem 3.1), found in one pass, for MinTopk."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import outer
from skyband.kernels.common.rows import Lists
from skyband.storage.blocks import Floats, Ints


class Asked(NamedTuple):
    """A query over hopping windows, as numbers."""

    k: int
    ties: bool
    extent: int
    slide: int
    pane: int
    timed: bool  # positions are event times


@outer
def window_marks(position: Ints, asked: Asked, first: int) -> Ints:
    """The ending window mark of each object, counted from window ``first``; below 0: it is in no window any more.

    Where there would be far more windows than objects, the marks are the ranks of the windows instead: only their
    order matters.
    """
    mark = (position + asked.extent) // asked.slide - first
    if asked.extent // asked.slide > 16 * position.size + 1024:
        order = np.argsort(mark)
        rank, previous = -1, -1
        for i in order:
            if mark[i] < 0:
                continue
            if mark[i] != previous:
                previous = mark[i]
                rank += 1
            mark[i] = rank
    return mark


@outer
def minimal(score: Floats, mark: Ints, k: int, ties: bool) -> NDArray[np.bool_]:
    """Which objects of a list, best first, are in the predicted top k of some window: the minimal set (Theorem 3.1).

    One pass instead of a walk over the windows for each object (Figure 6, UpdateSuperTopk): windows fill up in the
    order of their ends (Lemma 4.2), so a single frontier, the first window that has not got its k objects yet, is the
    starting window mark of the next object; the object at which a window fills is its lower bound pointer.
    """
    keep = np.zeros(score.size, np.bool_)
    alive = np.zeros(max(0, mark.max() + 2) if mark.size else 0, np.int64)  # objects so far, by ending mark
    frontier, count, start = 0, 0, 0
    for i in range(score.size):
        if not ties or i == 0 or score[i] != score[i - 1]:
            start = frontier
        if mark[i] < start:
            continue
        keep[i] = True
        alive[mark[i]] += 1
        count += mark[i] >= frontier
        while count >= k:
            count -= alive[frontier]
            frontier += 1
    return keep


@outer
def minimal_lists(lists: Lists, asked: Asked, first: Ints) -> NDArray[np.bool_]:
    """:func:`minimal` for the lists of all partitions, each with its own present window."""
    keep = np.zeros(lists.score.size, np.bool_)
    for partition in range(first.size):
        lo, hi = lists.offset[partition], lists.offset[partition + 1]
        mark = window_marks(lists.position[lo:hi], asked, first[partition])
        keep[lo:hi] = minimal(lists.score[lo:hi], mark, asked.k, asked.ties)
    return keep

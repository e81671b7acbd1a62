"""The answers of several windows in one pass over a K-skyband (pairs, section 6.3)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import outer
from skyband.kernels.common.output import grow
from skyband.kernels.common.rows import Objects
from skyband.storage.blocks import Ints


class Windows(NamedTuple):
    """Windows to be answered together, the longest first."""

    query: Ints
    end: Ints
    start: Ints
    k: Ints
    ties: NDArray[np.bool_]


@outer
def batch(objects: Objects, size: int, windows: Windows) -> tuple[Ints, Ints, int]:
    """Batch (Algorithm 7): positions in S of the answers of several windows, in one pass.

    Those of window w are ``member[offset[w] : offset[w + 1]]``; the last value is how many objects served no window.
    """
    start, k, ties = windows.start, windows.k, windows.ties
    count = start.size
    follow = np.arange(1, count + 2)  # the window after each that is still to be filled; that after ``count`` is first
    follow[count] = 0
    held, kth = np.zeros(count, np.int64), np.zeros(count)
    window, member = np.empty(256, np.int64), np.empty(256, np.int64)
    found = passed = 0
    for i in range(size):
        before, w = count, follow[count]
        if w == count:
            break
        passed += objects.position[i] < start[w]
        while w < count and objects.position[i] >= start[w]:
            filled = held[w] >= k[w] and objects.score[i] != kth[w]
            if not filled:
                if found == window.size:
                    window, member = grow(window, 0), grow(member, 0)
                window[found], member[found] = w, i
                found += 1
                held[w] += 1
                kth[w] = objects.score[i]
                filled = held[w] == k[w] and not ties[w]
            if filled:
                follow[before] = follow[w]
            else:
                before = w
            w = follow[w]
    offset = np.zeros(count + 1, np.int64)
    for w in range(count):
        offset[w + 1] = offset[w] + held[w]
    place, sorted_member = offset.copy(), np.empty(found, np.int64)
    for i in range(found):
        sorted_member[place[window[i]]] = member[i]
        place[window[i]] += 1
    return offset, sorted_member, passed

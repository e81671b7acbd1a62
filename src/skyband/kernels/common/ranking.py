"""The k best of many, without sorting them all."""

import numpy as np

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.common.order import better
from skyband.kernels.common.sorting import by_rank
from skyband.storage.blocks import Floats, Ints


@outer
def k_best(score: Floats, position: Ints, arrival: Ints, k: int, ties: bool) -> Ints:
    """Indices of the k best (and of all that tie with the k-th if ``ties``), best first."""
    if score.size <= k:
        return by_rank(score, position, arrival)
    heap = np.arange(k)  # the worst on top
    for i in range(k // 2 - 1, -1, -1):
        _sift(heap, i, score, position, arrival)
    for i in range(k, score.size):
        root = heap[0]
        if better(score[i], position[i], arrival[i], score[root], position[root], arrival[root]):
            heap[0] = i
            _sift(heap, 0, score, position, arrival)
    if ties:
        heap = np.flatnonzero(score >= score[heap[0]])
    return heap[by_rank(score[heap], position[heap], arrival[heap])]


@inner
def _sift(heap: Ints, i: int, score: Floats, position: Ints, arrival: Ints) -> None:
    while True:
        worst = i
        for child in (2 * i + 1, 2 * i + 2):
            if child < heap.size:
                a, b = heap[worst], heap[child]
                if better(score[a], position[a], arrival[a], score[b], position[b], arrival[b]):
                    worst = child
        if worst == i:
            return
        heap[i], heap[worst] = heap[worst], heap[i]
        i = worst

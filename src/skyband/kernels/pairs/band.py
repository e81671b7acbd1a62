"""Pairs in rank order, their K-skyband and K-staircase (pairs, section 5.1).

The age of a pair is that of its older object. A pair ranks before another one if its score is better; of equal scores,
if its older object is newer, and of equal older objects, if the other object is. It *dominates* the other if it ranks
before it and stays in every sliding window at least as long; the *strict* form, for answers with all ties, asks for a
better score. The K-skyband is what fewer than K pairs dominate.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner
from skyband.kernels.common.staircase import EARLIEST, replace_top

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Pair = tuple[float, int, int, int, int]

FEW = 32  # pairs that are sorted faster by insertion


class Pairs(NamedTuple):
    """A list of pairs; how many of its entries are in use is counted beside it."""

    score: Floats
    position: Ints  # of the older object
    older: Ints  # its number
    late: Ints  # the time of the newer object
    newer: Ints  # twice its number, and one more where it is a and the older object b


class Stairs(NamedTuple):
    """Staircase points: ``corner`` is the K-th newest age among the pairs down to this rank."""

    score: Floats
    position: Ints
    older: Ints
    late: Ints
    newer: Ints
    corner: Ints


@inner
def precedes(x: Pair, y: Pair) -> bool:
    """Whether a pair ranks before another one."""
    if x[0] != y[0]:
        return x[0] > y[0]
    if x[1] != y[1]:
        return x[1] > y[1]
    if x[2] != y[2]:
        return x[2] > y[2]
    if x[3] != y[3]:
        return x[3] > y[3]
    return x[4] > y[4]


@inner
def pair_at(pairs: Pairs, i: int) -> Pair:
    return pairs.score[i], pairs.position[i], pairs.older[i], pairs.late[i], pairs.newer[i]


@inner
def copy(source: Pairs, i: int, target: Pairs, j: int) -> None:
    """Make pair j of one list pair i of another."""
    target.score[j], target.position[j], target.older[j] = source.score[i], source.position[i], source.older[i]
    target.late[j], target.newer[j] = source.late[i], source.newer[i]


@inner
def shielded(stairs: Stairs, step: int, steps: int, of: Pair, strict: bool) -> bool:
    """Whether the staircase dominates a pair, ``step`` being the first whose corner is not older than it."""
    if step == steps or stairs.score[step] != of[0]:
        return step < steps and stairs.score[step] > of[0]
    if strict:
        return False
    corner = (stairs.score[step], stairs.position[step], stairs.older[step], stairs.late[step], stairs.newer[step])
    return precedes(corner, of)


@inner
def sort(pairs: Pairs, size: int, spare: Pairs) -> None:
    """Put the first ``size`` pairs in rank order, through another list of the same room.

    Pairs of one score come in rank order as a rule, so that few of them move.
    """
    if size <= FEW:
        for i in range(size):
            copy(pairs, i, spare, i)
    else:
        order = np.argsort(-pairs.score[:size], kind="mergesort")
        for i in range(size):
            copy(pairs, order[i], spare, i)
    for i in range(size):
        one, j = pair_at(spare, i), i
        while j > 0 and precedes(one, pair_at(pairs, j - 1)):
            copy(pairs, j - 1, pairs, j)
            j -= 1
        copy(spare, i, pairs, j)


@inner
def merge(pairs: Pairs, size: int, more: Pairs, count: int) -> None:
    """Put ``count`` pairs in rank order into the first ``size`` of a list, where there must be room."""
    i, j = size - 1, count - 1
    while j >= 0:
        if i >= 0 and precedes(pair_at(more, j), pair_at(pairs, i)):
            copy(pairs, i, pairs, i + j + 1)
            i -= 1
        else:
            copy(more, j, pairs, i + j + 1)
            j -= 1


@inner
def climb(pairs: Pairs, size: int, stairs: Stairs, K: int, floor: int, strict: bool) -> tuple[int, int]:
    """UpdateSkybandAndStaircase (Algorithm 4), in place: how many pairs stay, and how many steps there are.

    Pairs before ``floor`` have expired and go first. The heap holds the K newest ages met so far; it begins full of
    ages before any other, which saves the case ``|H| < K``.
    """
    heap = np.full(min(K, size + 1), EARLIEST)
    bar = EARLIEST  # the K-th newest age among the pairs that may dominate the one at hand
    kept = steps = 0
    last = np.nan
    for i in range(size):
        position = pairs.position[i]
        if position < floor:
            continue
        if not strict or pairs.score[i] != last:
            bar = heap[0]
        if position <= bar:
            continue
        last = pairs.score[i]
        if kept < i:
            copy(pairs, i, pairs, kept)
        if position > heap[0]:
            replace_top(heap, position)
            if heap[0] > EARLIEST and (steps == 0 or heap[0] > stairs.corner[steps - 1]):
                stairs.score[steps], stairs.position[steps], stairs.older[steps] = last, position, pairs.older[i]
                stairs.late[steps], stairs.newer[steps] = pairs.late[i], pairs.newer[i]
                stairs.corner[steps] = heap[0]
                steps += 1
        kept += 1
    return kept, steps

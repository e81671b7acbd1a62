"""Pairs in rank order, their K-skyband and K-staircase (pairs, section 5.1).

The age of a pair is that of its older object. A pair ranks before another one if its score is better; of equal scores,
if its older object is newer, and of equal older objects, if the other object is. It *dominates* the other if it ranks
before it and stays in every sliding window at least as long; the *strict* form, for answers with all ties, asks for a
better score. The K-skyband is what fewer than K pairs dominate.
"""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inner
from skyband.kernels.common.staircase import EARLIEST, replace_top
from skyband.storage.blocks import ARRIVAL, Bytes, Floats, Ints, Record, block, column, scalars

FEW = 32  # pairs that are sorted faster by insertion


class Pair(NamedTuple):
    """What the rank of a pair depends on, in this order."""

    score: float
    position: int  # of the older object
    older: int  # its arrival number
    newer_position: int
    newer: int


class PairsMeta(NamedTuple):
    held: int = 0  # how many pairs are in the list


@block(version=1)
class Pairs(NamedTuple):
    """A list of pairs."""

    score: Annotated[Floats, column("pairs", used="held")]
    position: Annotated[Ints, column("pairs", used="held")]
    older: Annotated[Ints, column("pairs", used="held", holds=ARRIVAL)]
    newer_position: Annotated[Ints, column("pairs", used="held")]
    newer: Annotated[Ints, column("pairs", used="held", holds=ARRIVAL)]
    swapped: Annotated[Bytes, column("pairs", used="held")]  # 1 where the newer object is a, and the older one b
    meta: Annotated[Record, scalars(PairsMeta)]


class StairsMeta(NamedTuple):
    steps: int = 0
    limit: int = 0  # when the skyband has grown beyond so many pairs, Algorithm 4 runs


@block(version=1)
class PairStairs(NamedTuple):
    """The K-staircase: ``corner`` is the K-th newest age among the pairs of the skyband down to this rank."""

    score: Annotated[Floats, column("steps", used="steps")]
    position: Annotated[Ints, column("steps", used="steps")]
    older: Annotated[Ints, column("steps", used="steps", holds=ARRIVAL)]
    newer_position: Annotated[Ints, column("steps", used="steps")]
    newer: Annotated[Ints, column("steps", used="steps", holds=ARRIVAL)]
    corner: Annotated[Ints, column("steps", used="steps")]
    meta: Annotated[Record, scalars(StairsMeta)]


@in_place
def precedes(x: Pair, y: Pair) -> bool:
    """Whether a pair ranks before another one."""
    if x.score != y.score:
        return x.score > y.score
    if x.position != y.position:
        return x.position > y.position
    if x.older != y.older:
        return x.older > y.older
    if x.newer_position != y.newer_position:
        return x.newer_position > y.newer_position
    return x.newer > y.newer


@in_place
def pair_at(pairs: Pairs, i: int) -> Pair:
    return Pair(pairs.score[i], pairs.position[i], pairs.older[i], pairs.newer_position[i], pairs.newer[i])


@in_place
def put(pairs: Pairs, i: int, one: Pair, swapped: int) -> None:
    """Write a pair at a place of a list."""
    pairs.score[i], pairs.position[i], pairs.older[i] = one.score, one.position, one.older
    pairs.newer_position[i], pairs.newer[i], pairs.swapped[i] = one.newer_position, one.newer, swapped


@in_place
def copy(source: Pairs, i: int, target: Pairs, j: int) -> None:
    """Make pair j of one list pair i of another."""
    target.score[j], target.position[j], target.older[j] = source.score[i], source.position[i], source.older[i]
    target.newer_position[j], target.newer[j] = source.newer_position[i], source.newer[i]
    target.swapped[j] = source.swapped[i]


@inner
def room_for(pairs: int, like: Pairs) -> Pairs:
    """An empty list with room for so many pairs."""
    meta = like.meta.copy()
    meta[0].held = 0
    return Pairs(np.empty(pairs), np.empty(pairs, np.int64), np.empty(pairs, np.int64), np.empty(pairs, np.int64),
                 np.empty(pairs, np.int64), np.empty(pairs, np.int8), meta)  # fmt: skip


@in_place
def shielded(stairs: PairStairs, step: int, steps: int, of: Pair, strict: bool) -> bool:
    """Whether the staircase dominates a pair, ``step`` being the first whose corner is not older than it."""
    if step == steps or stairs.score[step] != of.score:
        return step < steps and stairs.score[step] > of.score
    if strict:
        return False
    point = Pair(stairs.score[step], stairs.position[step], stairs.older[step], stairs.newer_position[step],
                 stairs.newer[step])  # fmt: skip
    return precedes(point, of)


@inner
def sort(pairs: Pairs) -> None:
    """Put a list in rank order. Pairs of one score come in rank order as a rule, so that few of them move."""
    size = pairs.meta[0].held
    if size > FEW:
        spare, order = room_for(size, pairs), np.argsort(-pairs.score[:size], kind="mergesort")
        for i in range(size):
            copy(pairs, i, spare, i)
        for i in range(size):
            copy(spare, order[i], pairs, i)
    for i in range(1, size):
        one, swapped, j = pair_at(pairs, i), pairs.swapped[i], i
        while j > 0 and precedes(one, pair_at(pairs, j - 1)):
            copy(pairs, j - 1, pairs, j)
            j -= 1
        if j < i:
            put(pairs, j, one, swapped)


@in_place
def merge(pairs: Pairs, more: Pairs) -> None:
    """Put the pairs of one list into another one, which has room for them; both are in rank order."""
    i, j = pairs.meta[0].held - 1, more.meta[0].held - 1
    pairs.meta[0].held += more.meta[0].held
    while j >= 0:
        if i >= 0 and precedes(pair_at(more, j), pair_at(pairs, i)):
            copy(pairs, i, pairs, i + j + 1)
            i -= 1
        else:
            copy(more, j, pairs, i + j + 1)
            j -= 1


@inner
def climb(pairs: Pairs, stairs: PairStairs, K: int, floor: int, strict: bool) -> None:
    """UpdateSkybandAndStaircase (Algorithm 4), in place: ranked pairs become the skyband, with its staircase.

    Pairs before ``floor`` have expired and go first. The heap holds the K newest ages met so far; it begins full of
    ages before any other, which saves the case ``|H| < K``.
    """
    size = pairs.meta[0].held
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
                stairs.newer_position[steps], stairs.newer[steps] = pairs.newer_position[i], pairs.newer[i]
                stairs.corner[steps] = heap[0]
                steps += 1
        kept += 1
    pairs.meta[0].held, stairs.meta[0].steps = kept, steps

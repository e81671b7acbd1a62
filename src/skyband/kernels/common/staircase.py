"""A K-skyband sorted by rank, and its K-staircase (pairs, sections 5.1 and 6.2), for SCase.

Object a *dominates* b if a ranks before b and stays in every sliding window at least as long: its position is
no smaller. The *strict* form, for answers with all ties, asks for a better score instead of a better rank. The
K-skyband is what fewer than K objects dominate.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.common.order import better
from skyband.kernels.common.rows import Objects as Objects
from skyband.storage.blocks import ARRIVAL, Floats, Ints, Record, block, column, scalars

Object = tuple[float, int, int]  # score, position, arrival

EARLIEST = -(2**62)  # before and after any position, with room to add an extent
LATEST = 2**62
C = 1.0  # the constant of section 6.2, in the unit of one step of the heap
M = 0.03  # in the same unit, to move an object aside
LEAST = 16  # the shortest put-off: below it the calls cost more than the steps


class StairsMeta(NamedTuple):
    """How much of a staircase is in use."""

    steps: int = 0


@block(version=1)
class Stairs(NamedTuple):
    """Staircase points: ``corner`` is the K-th newest position among the objects down to this rank."""

    score: Annotated[Floats, column("points", used="steps")]
    position: Annotated[Ints, column("points", used="steps")]
    arrival: Annotated[Ints, column("points", used="steps", holds=ARRIVAL)]
    corner: Annotated[Ints, column("points", used="steps")]
    meta: Annotated[Record, scalars(StairsMeta)]


@outer
def place(score: Floats, position: Ints, arrival: Ints, low: int, high: int, of: Object) -> int:
    """The first position in ``[low, high)`` of a ranked list whose object does not rank before this one."""
    while low < high:
        middle = (low + high) // 2
        if better(score[middle], position[middle], arrival[middle], of[0], of[1], of[2]):
            low = middle + 1
        else:
            high = middle
    return low


@inner
def put(score: Floats, position: Ints, arrival: Ints, low: int, high: int, of: Object) -> None:
    """Put an object into the ranked list at ``[low, high)``, which becomes one longer."""
    at = place(score, position, arrival, low, high, of)
    _shift(score[at : high + 1])
    _shift(position[at : high + 1])
    _shift(arrival[at : high + 1])
    score[at], position[at], arrival[at] = of


@inner
def _shift(array: NDArray[Any]) -> None:
    """Move all entries one place down, over the last one."""
    source, target = array[:-1], array[1:]
    for i in range(source.size):
        j = np.uint64(source.size - 1 - i)  # unsigned, hence no negative index to allow for: six times as fast
        target[j] = source[j]


@inner
def sift(source: Objects, size: int, start: int, target: Objects) -> int:
    """Copy those of the first ``size`` objects that are not before ``start``, perhaps in place; returns how many."""
    kept = 0
    for i in range(size):
        if source.position[i] >= start:
            target.score[kept], target.position[kept] = source.score[i], source.position[i]
            target.arrival[kept] = source.arrival[i]
            kept += 1
    return kept


@outer
def dominated(stairs: Stairs, of: Object, strict: bool) -> bool:
    """Whether the K-staircase, hence K objects, dominate this one (section 5.1.2, *Checking dominance*).

    Corners rise from step to step, so the last step that ranks before the object decides.
    """
    first = (of[0], LATEST, LATEST) if strict else of  # nothing of this score ranks before such an object
    step = place(stairs.score, stairs.position, stairs.arrival, 0, stairs.meta[0].steps, first)
    return step > 0 and stairs.corner[step - 1] >= of[1]


@outer
def climb(objects: Objects, size: int, stairs: Stairs, K: int, floor: int, strict: bool) -> int:
    """UpdateSkybandAndStaircase (Algorithm 4), in place; returns how many objects stay.

    Objects before ``floor`` have expired and go first. The heap holds the K newest positions met so far; it begins full
    of positions before any other, which saves the case ``|H| < K``.
    """
    score, position, arrival = objects
    heap = np.full(min(K, size + 1), EARLIEST)
    bar = EARLIEST  # the K-th newest position among the objects that may dominate the one at hand
    kept = steps = 0
    for i in range(size):
        if position[i] < floor:
            continue
        if not strict or kept == 0 or score[i] != score[kept - 1]:
            bar = heap[0]
        if position[i] <= bar:
            continue
        score[kept], position[kept], arrival[kept] = score[i], position[i], arrival[i]
        if position[i] > heap[0]:
            replace_top(heap, position[i])
            if heap[0] > EARLIEST and (steps == 0 or heap[0] > stairs.corner[steps - 1]):
                stairs.score[steps], stairs.position[steps], stairs.arrival[steps] = score[i], position[i], arrival[i]
                stairs.corner[steps] = heap[0]
                steps += 1
        kept += 1
    stairs.meta[0].steps = steps
    return kept


@inner
def replace_top(heap: Ints, position: int) -> None:
    """Take the oldest position out of the heap, and put a newer one in."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= heap.size:
            break
        if child + 1 < heap.size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= position:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = position


@outer
def put_off(size: int, K: int) -> int:
    """How many objects more than the K-skyband's ``size`` are let in before Algorithm 4 runs again.

    The x that makes the cost of an arrival least (section 6.2): M(x + size) to insert it, and its share in the next
    run, (x + size)(C + log K)/x. At least K, since nothing is dominated among K objects.
    """
    return max(LEAST, K, int(math.sqrt(size * (C + math.log2(K)) / M)))

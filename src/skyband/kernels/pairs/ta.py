"""TA for pairs (pairs, Algorithm 5), object by object. See :mod:`skyband.algorithms.pairs.ta`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.pairs.answers import Answers, Log, Queries, renew
from skyband.kernels.pairs.band import Pairs, Stairs, copy, shielded, sort
from skyband.kernels.pairs.program import BLOCK, Program, evaluate, run
from skyband.kernels.pairs.scan import FIRST_BLOCK, Bar, Newcomer, Scratch, gather, offer, passing, scan
from skyband.kernels.pairs.skyband import settle, step_on
from skyband.kernels.pairs.window import NEWEST, SIZE, START, STEPS, STOP, Objects, Window, enter, place_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DEPTH = 16  # objects taken from each end of a list in the first round; then twice as many each time
MOST = 128
# What the entries of ``Lists.meta`` are.
LENGTH = 0  # of the lists; 0: there are none
LISTED = 1  # objects from this place on are in no list
SINCE = 2  # objects that have come since they were built


class Lists(NamedTuple):
    """The objects of a window by the values of some columns, ascending: for each, the places and the values."""

    place: Ints  # two-dimensional
    value: Floats  # two-dimensional
    column: Ints
    furthest: NDArray[np.bool_]
    meta: Ints


class Front(NamedTuple):
    """How far the lists have been read: what is next to the left and to the right, and the local scores there."""

    left: Ints
    right: Ints
    local: Floats  # two-dimensional, one column: what a program for a bound takes


@outer
def overdue(meta: Ints, objects: int) -> bool:
    """Whether so many objects have come since the lists were built that they should be built anew."""
    return bool(meta[SINCE] > objects // 16 + 256)


@inner
def open_lists(lists: Lists, new: Newcomer, front: Front) -> None:
    """Begin where the best pairs of a newcomer are: at its value, or at both ends."""
    n = lists.meta[LENGTH]
    for c in range(lists.column.size):
        if lists.furthest[c]:
            front.left[c], front.right[c] = 0, n - 1
        else:
            front.right[c] = np.searchsorted(lists.value[c, :n], new.values[lists.column[c]])
            front.left[c] = front.right[c] - 1


@inner
def left_over(lists: Lists, new: Newcomer, front: Front) -> bool:
    """Set the local scores to the best that is left in each list; False if one has been read to its end."""
    n = lists.meta[LENGTH]
    for c in range(lists.column.size):
        x, value, left, right = new.values[lists.column[c]], lists.value[c], front.left[c], front.right[c]
        if lists.furthest[c]:
            if left > right:
                return False
            front.local[c, 0] = max(abs(value[left] - x), abs(value[right] - x))
        else:
            if left < 0 and right >= n:
                return False
            below = abs(value[left] - x) if left >= 0 else np.inf
            above = abs(value[right] - x) if right < n else np.inf
            front.local[c, 0] = min(below, above)
    return True


@inner
def read_on(lists: Lists, new: Newcomer, front: Front, c: int, count: int, bounds: tuple[int, int], place: Ints,
            m: int) -> int:  # fmt: skip
    """Read ``count`` objects on in a list, best local scores first; those within bounds are added to ``place``."""
    n, value, x = lists.meta[LENGTH], lists.value[c], new.values[lists.column[c]]
    left, right = front.left[c], front.right[c]
    for _ in range(count):
        if lists.furthest[c]:
            if left > right:
                break
            if abs(value[left] - x) >= abs(value[right] - x):
                at = left
                left += 1
            else:
                at = right
                right -= 1
        else:
            if left < 0 and right >= n:
                break
            if right >= n or (left >= 0 and abs(value[left] - x) <= abs(value[right] - x)):
                at = left
                left -= 1
            else:
                at = right
                right += 1
        where = lists.place[c, at]
        if bounds[0] <= where < bounds[1]:
            place[m] = where
            m += 1
    front.left[c], front.right[c] = left, right
    return m


@inner
def take_gathered(window: Window, new: Newcomer, bar: Bar, scratch: Scratch, m: int) -> None:
    """Take those of ``m`` gathered pairs, of any age, that the staircase does not dominate."""
    score, place, found, corner = scratch.register[0], scratch.place, scratch.found, bar.stairs.corner
    for i in range(m):
        if score[i] != score[i]:
            continue
        other = place[i]
        of = (
            score[i],
            window.position[other],
            window.arrival[other],
            new.position,
            2 * new.arrival + scratch.swapped[i],
        )
        step = np.searchsorted(corner[: bar.steps], of[1])
        if not shielded(bar.stairs, step, bar.steps, of, bar.strict):
            count = scratch.done[0]
            found.score[count], found.position[count], found.older[count], found.late[count], found.newer[count] = of
            scratch.done[0] = count + 1


@inner
def search(window: Window, program: Program, bound: Program, kinds: Ints, lists: Lists, new: Newcomer, bar: Bar,
           scratch: Scratch, front: Front) -> None:  # fmt: skip
    """Algorithm 5, lines 2–10, for a newcomer that is newer than all others: by age in blocks, and by local scores."""
    position, values, low, at = window.position, window.values, window.meta[START], new.at
    register, swapped, place = scratch.register, scratch.swapped, scratch.place
    corner, height = bar.stairs.corner, bar.stairs.score
    steps = step = bar.steps
    scratch.done[0] = 0
    swapped[:] = False
    size, depth, opened = FIRST_BLOCK, DEPTH, False
    while at > low:
        high, at = at, max(low, at - size)
        evaluate(program, values, at, high, new.values, False, register, swapped)
        scratch.done[1] += high - at
        while step > 0 and corner[step - 1] >= position[high - 1]:
            step -= 1
        if passing(register[0, : high - at], height[step] if step < steps else -np.inf) > 0:
            step = offer(window, kinds, new, bar, scratch, at, high - at, step)
        size = min(2 * size, BLOCK)
        if at > lists.meta[LISTED] or at == low:
            continue
        if not opened:
            open_lists(lists, new, front)
            opened = True
        while step > 0 and corner[step - 1] >= position[at - 1]:
            step -= 1
        # The dummy pair: as young as any that is unseen, and as good.
        if not left_over(lists, new, front):
            return
        if step < steps:
            run(bound, front.local, 0, 1, front.local[:, 0], False, register)
            if register[0, 0] < height[step]:
                return
        m = 0
        for c in range(lists.column.size):
            m = read_on(lists, new, front, c, min(depth, BLOCK // lists.column.size), (low, at), place, m)
        if m > 0:
            gather(values, place, m, scratch.gathered)
            evaluate(program, scratch.gathered, 0, m, new.values, False, register, swapped)
            scratch.done[1] += m
            if passing(register[0, :m], height[step] if step < steps else -np.inf) > 0:
                take_gathered(window, new, bar, scratch, m)
        depth = min(2 * depth, MOST)


@inner
def distinct(found: Pairs, count: int) -> int:
    """Drop what has been found several times from a ranked list; returns how many are left."""
    kept = 0
    for i in range(count):
        if kept == 0 or found.older[i] != found.older[kept - 1] or found.newer[i] != found.newer[kept - 1]:
            copy(found, i, found, kept)
            kept += 1
    return kept


@outer
def arrive_ta(
    window: Window, band: Pairs, stairs: Stairs, answers: Answers, log: Log, queries: Queries, program: Program,
    bound: Program, lists: Lists, objects: Objects, first: int, moves: bool, scratch: Scratch, front: Front,
) -> int:  # fmt: skip
    """As :func:`skyband.kernels.pairs.skyband.arrive`, without colours; also stops when lists are to be built."""
    meta = window.meta
    most = log.score.size - 2 * answers.score.size
    nothing = np.empty(0, np.int64)
    for i in range(first, objects.position.size):
        if log.used[0] > most or overdue(lists.meta, meta[STOP] - meta[START]):
            return i
        position = objects.position[i]
        if not step_on(window, queries, position, moves):
            continue
        new = Newcomer(position, objects.arrival[i], objects.values[i], objects.colours[i], place_of(window, position))
        bar = Bar(stairs, meta[STEPS], queries.strict)
        if new.at < meta[STOP]:  # late: places move, and the lists with them
            lists.meta[LENGTH] = 0
        if lists.meta[LENGTH] == 0:
            scan(window, program, nothing, new, bar, scratch)
        else:
            search(window, program, bound, nothing, lists, new, bar, scratch, front)
            sort(scratch.found, scratch.done[0], scratch.spare)
            scratch.done[0] = distinct(scratch.found, scratch.done[0])
        if meta[SIZE] + scratch.done[0] > band.score.size:
            return i
        enter(window, new.at, objects, i)
        lists.meta[SINCE] += 1
        best = settle(window, band, stairs, queries, scratch)
        renew(answers, log, queries, band, meta[SIZE], (meta[NEWEST], position, new.arrival), best)
    return int(objects.position.size)

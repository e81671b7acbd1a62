"""TA for pairs (pairs, Algorithm 5), object by object. See :mod:`skyband.algorithms.pairs.ta`."""

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.pairs.answers import is_full, renew
from skyband.kernels.pairs.band import Pair, Pairs, copy, put, shielded, sort
from skyband.kernels.pairs.program import BLOCK, SCORE, Program, evaluate, run
from skyband.kernels.pairs.scan import FIRST_BLOCK, Bar, Newcomer, Scoring, Scratch, gather, offer, passing, scan
from skyband.kernels.pairs.state import Batch, PairState
from skyband.kernels.pairs.upkeep import settle, step_on, tidy
from skyband.kernels.pairs.window import WindowObjects, enter, place_of
from skyband.storage.blocks import Floats, Ints, Record, block, column, scalars

DEPTH = 16  # objects taken from each end of a list in the first round; then twice as many each time
MOST = 128


class GlobalScore(NamedTuple):
    """What TA needs to know of a score that rises or falls with the difference of each column."""

    column: Ints  # of each difference: among the values of a row
    furthest: NDArray[np.bool_]  # whether goodness rises with it
    bound: Program  # the goodness from the differences, as columns of a


class ListsMeta(NamedTuple):
    """How old sorted lists are."""

    length: int = 0  # 0: there are none
    listed: int = 0  # objects from this place on are in no list
    since: int = 0  # objects that have come since they were built


@block(version=1)
class SortedLists(NamedTuple):
    """The objects of a window by the values of some columns, ascending: for each, the places and the values."""

    place: Annotated[Ints, column("objects", wide=True)]
    value: Annotated[Floats, column("objects", wide=True)]
    meta: Annotated[Record, scalars(ListsMeta)]


class Front(NamedTuple):
    """How far the lists have been read: what is next to the left and to the right, and the best difference there."""

    left: Ints
    right: Ints
    gap: Floats


@outer
def overdue(lists: SortedLists, objects: int) -> bool:
    """Whether so many objects have come since the lists were built that they should be built anew."""
    return bool(lists.meta[0].since > objects // 16 + 256)


@in_place
def open_lists(lists: SortedLists, goal: GlobalScore, new: Newcomer, front: Front) -> None:
    """Begin where the best pairs of a newcomer are: at its value, or at both ends."""
    n = lists.meta[0].length
    for c in range(goal.column.size):
        if goal.furthest[c]:
            front.left[c], front.right[c] = 0, n - 1
        else:
            front.right[c] = np.searchsorted(lists.value[c, :n], new.values[goal.column[c]])
            front.left[c] = front.right[c] - 1


@in_place
def left_over(lists: SortedLists, goal: GlobalScore, new: Newcomer, front: Front) -> bool:
    """Set the differences to the best that is left in each list; False if one has been read to its end."""
    n = lists.meta[0].length
    for c in range(goal.column.size):
        x, value, left, right = new.values[goal.column[c]], lists.value[c], front.left[c], front.right[c]
        if goal.furthest[c]:
            if left > right:
                return False
            front.gap[c] = max(abs(value[left] - x), abs(value[right] - x))
        else:
            if left < 0 and right >= n:
                return False
            below = abs(value[left] - x) if left >= 0 else np.inf
            above = abs(value[right] - x) if right < n else np.inf
            front.gap[c] = min(below, above)
    return True


@in_place
def read_on(lists: SortedLists, goal: GlobalScore, new: Newcomer, front: Front, c: int, count: int,
            bounds: tuple[int, int], place: Ints, m: int) -> int:  # fmt: skip
    """Read ``count`` objects on in a list, best differences first; those within bounds are added to ``place``."""
    n, value, x, (low, high) = lists.meta[0].length, lists.value[c], new.values[goal.column[c]], bounds
    left, right = front.left[c], front.right[c]
    for _ in range(count):
        if goal.furthest[c]:
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
        if low <= where < high:
            place[m] = where
            m += 1
    front.left[c], front.right[c] = left, right
    return m


@inner
def take_gathered(window: WindowObjects, new: Newcomer, bar: Bar, scratch: Scratch, m: int) -> None:
    """Take those of ``m`` gathered pairs, of any age, that the staircase does not dominate."""
    score, place, found, corner = scratch.register[SCORE, :m], scratch.place, scratch.found, bar.stairs.corner
    count = found.meta[0].held
    for i in range(m):
        if score[i] != score[i]:
            continue
        other = place[i]
        of = Pair(score[i], window.position[other], window.arrival[other], new.position, new.arrival)
        step = int(np.searchsorted(corner[: bar.steps], of.position))
        if not shielded(bar.stairs, step, bar.steps, of, bar.strict):
            put(found, count, of, scratch.swapped[i])
            count += 1
    found.meta[0].held = count


@inner
def search(window: WindowObjects, scoring: Scoring, goal: GlobalScore, lists: SortedLists, new: Newcomer, bar: Bar,
           scratch: Scratch, front: Front) -> None:  # fmt: skip
    """Algorithm 5, lines 2–10, for a newcomer that is newer than all others: by age in blocks, and by differences."""
    position, values, low, at = window.position, window.values, window.meta[0].start, new.at
    register, swapped, place, program = scratch.register, scratch.swapped, scratch.place, scoring.program
    corner, height, columns = bar.stairs.corner, bar.stairs.score, goal.column.size
    steps = step = bar.steps
    scratch.found.meta[0].held = 0
    swapped[:] = False
    size, depth, opened = FIRST_BLOCK, DEPTH, False
    while at > low:
        high, at = at, max(low, at - size)
        evaluate(program, values, at, high, new.values, False, register, swapped)
        while step > 0 and corner[step - 1] >= position[high - 1]:
            step -= 1
        if passing(register[SCORE, : high - at], height[step] if step < steps else -np.inf) > 0:
            step = offer(window, scoring.kinds, new, bar, scratch, at, high - at, step)
        size = min(2 * size, BLOCK)
        if at > lists.meta[0].listed or at == low:
            continue
        if not opened:
            open_lists(lists, goal, new, front)
            opened = True
        while step > 0 and corner[step - 1] >= position[at - 1]:
            step -= 1
        # The dummy pair: as young as any that is unseen, and as good.
        if not left_over(lists, goal, new, front):
            return
        if step < steps:
            run(goal.bound, front.gap.reshape(-1, 1), 0, 1, front.gap, False, register)
            if register[SCORE, 0] < height[step]:
                return
        m = 0
        for c in range(columns):
            m = read_on(lists, goal, new, front, c, min(depth, BLOCK // columns), (low, at), place, m)
        if m > 0:
            gather(values, place, m, scratch.gathered)
            evaluate(program, scratch.gathered, 0, m, new.values, False, register, swapped)
            if passing(register[SCORE, :m], height[step] if step < steps else -np.inf) > 0:
                take_gathered(window, new, bar, scratch, m)
        depth = min(2 * depth, MOST)


@in_place
def drop_repeated(found: Pairs) -> None:
    """Drop what has been found several times from a ranked list."""
    kept = 0
    for i in range(found.meta[0].held):
        if kept == 0 or found.older[i] != found.older[kept - 1] or found.newer[i] != found.newer[kept - 1]:
            copy(found, i, found, kept)
            kept += 1
    found.meta[0].held = kept


@outer
def arrive_ta(state: PairState, batch: Batch, first: int, goal: GlobalScore, lists: SortedLists, front: Front) -> int:
    """As :func:`skyband.kernels.pairs.upkeep.arrive`, without colours; also stops when lists are to be built."""
    window, band, newcomers, queries, scratch = state.window, state.band, batch.newcomers, batch.queries, batch.scratch
    meta = window.meta[0]
    for i in range(first, newcomers.position.size):
        if is_full(batch.log, state.answers) or overdue(lists, meta.stop - meta.start):
            return i
        position, arrival = newcomers.position[i], newcomers.arrival[i]
        if not step_on(window, queries, position, batch.moves):
            continue
        new = Newcomer(position, arrival, newcomers.values[i], newcomers.colours[i], place_of(window, position))
        bar = Bar(state.stairs, state.stairs.meta[0].steps, queries.strict)
        if new.at < meta.stop:  # late: places move, and the lists with them
            lists.meta[0].length = 0
        if lists.meta[0].length == 0:
            scan(window, batch.scoring, new, bar, scratch)
        else:
            search(window, batch.scoring, goal, lists, new, bar, scratch, front)
            sort(scratch.found)
            drop_repeated(scratch.found)
        if band.meta[0].held + scratch.found.meta[0].held > band.score.size:
            return i
        enter(window, new.at, newcomers, i)
        lists.meta[0].since += 1
        best = settle(state, queries, scratch)
        renew(state.answers, batch.log, queries, band, (meta.newest, position, arrival), best)
    tidy(state, queries)
    return int(newcomers.position.size)

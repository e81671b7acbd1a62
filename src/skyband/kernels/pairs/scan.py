"""The new pairs of an object, from the youngest to the oldest (pairs, Algorithm 3, lines 2–4).

In age order the step of the staircase that a pair must be held against only ever moves to a better one, and is the
same for long runs of pairs: the test of the paper, a search in O(log |SKB|) for every pair, becomes one comparison
with a constant, which is made for a whole block at once.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.pairs.band import Pair, Pairs, PairStairs, put, shielded
from skyband.kernels.pairs.program import BLOCK, SCORE, Program, evaluate
from skyband.kernels.pairs.window import WindowObjects
from skyband.query.sides import SAME
from skyband.storage.blocks import Floats, Ints

FIRST_BLOCK = 64  # the bar rises fast among the youngest pairs: blocks begin short, and double
AHEAD, CROWDED = 8, 4  # objects of a colour that lie closer than CROWDED, over AHEAD of them, are not picked out


class Scoring(NamedTuple):
    """What makes two objects a pair, and the score of it."""

    program: Program
    kinds: Ints  # of each colour: whether the objects must agree or differ in it


class Scratch(NamedTuple):
    """Room to work in, of no meaning between two objects."""

    register: Floats  # two-dimensional: those of a program
    swapped: NDArray[np.bool_]  # of a block
    gathered: Floats  # two-dimensional: the values of a block of objects that do not lie side by side
    place: Ints  # where they lie
    found: Pairs


class Newcomer(NamedTuple):
    """An object that is about to take its place in the window."""

    position: int
    arrival: int
    values: Floats
    colours: Ints
    at: int  # its place


class Bar(NamedTuple):
    """The staircase that new pairs must pass; ``steps`` is 0 where all do."""

    stairs: PairStairs
    steps: int
    strict: bool


@inner
def scan(window: WindowObjects, scoring: Scoring, new: Newcomer, bar: Bar, scratch: Scratch) -> None:
    """Find the pairs of a newcomer that the staircase does not dominate, youngest first."""
    # What a block needs is taken out of the tuples once: to hand those over costs more than to evaluate a block.
    position, values, start, stop = window.position, window.values, window.meta[0].start, window.meta[0].stop
    register, swapped, place, apart = scratch.register, scratch.swapped, scratch.place, False
    corner, height, program, kinds = bar.stairs.corner, bar.stairs.score, scoring.program, scoring.kinds
    steps = step = bar.steps
    scratch.found.meta[0].held = 0
    swapped[:] = False
    for first in (True, False):  # with the newer objects it is the older one, a
        low, at = (new.at, stop) if first else (start, new.at)
        listed = _newest(window, new.colours[0], at) if kinds.size > 0 else -1
        size = FIRST_BLOCK
        while at > low:
            if kinds.size == 0:
                high, at = at, max(low, at - size)
                n = high - at
            else:
                at, listed, n, apart = next_block(window, kinds, new, place, (low, at), listed, size)
                if n == 0:
                    continue
            if apart:
                gather(values, place, n, scratch.gathered)
                evaluate(program, scratch.gathered, 0, n, new.values, first, register, swapped)
            else:
                evaluate(program, values, at, at + n, new.values, first, register, swapped)
            youngest = new.position if first else position[place[0] if apart else at + n - 1]
            while step > 0 and corner[step - 1] >= youngest:
                step -= 1
            if passing(register[SCORE, :n], height[step] if step < steps else -np.inf) > 0:
                step = offer(window, kinds, new, bar, scratch, -1 if apart else at, n, step)
            size = min(2 * size, BLOCK)


@in_place
def passing(score: Floats, least: float) -> int:
    """How many scores are not below a bar; NaN is."""
    count = 0
    for i in range(score.size):
        count += score[i] >= least
    return count


@in_place
def next_block(window: WindowObjects, kinds: Ints, new: Newcomer, place: Ints, bounds: tuple[int, int], listed: int,
               size: int) -> tuple[int, int, int, bool]:  # fmt: skip
    """The next objects within ``bounds`` among which are those that the newcomer may pair with, newest first.

    Objects of one colour that are few are picked out by their list, and ``place`` tells where they lie. Otherwise the
    objects lie side by side, and what does not fit is left out by :func:`offer`: to evaluate a pair in vain costs less
    than to pass over it. Returns where to go on, the newest object of the newcomer's first colour below that, how many
    objects there are, and whether they lie apart.
    """
    low, high = bounds
    colours, link = window.colours, window.link  # to hand over the tuples for each object would take longest
    first, own = colours[0], new.colours[0]
    if kinds[0] == SAME:
        if listed < low:
            return low, listed, 0, False
        if not _crowded(link, listed, low):
            n = 0
            while listed >= low and n < size:
                if kinds.size == 1 or fits(colours, kinds, new.colours, listed):
                    place[n] = listed
                    n += 1
                listed = link[listed]
            return max(low, listed + 1), listed, n, True
        high = listed + 1
    else:
        while high > low and first[high - 1] == own:
            high -= 1
    begin = max(low, high - size)
    if kinds[0] == SAME:
        listed = begin - 1
        while listed >= low and first[listed] != own:
            listed -= 1
    return begin, listed, high - begin, False


@in_place
def _crowded(link: Ints, listed: int, low: int) -> bool:
    """Whether the next objects of a colour lie close together."""
    at = listed
    for _ in range(AHEAD):
        at = link[at]
        if at < low:
            return False
    return listed - at < AHEAD * CROWDED


@in_place
def offer(window: WindowObjects, kinds: Ints, new: Newcomer, bar: Bar, scratch: Scratch, at: int, n: int,
          step: int) -> int:  # fmt: skip
    """Take the pairs of a block that pass, youngest first; returns the step that the last was held against.

    The block begins ``at`` a place, or its objects lie apart (-1). They may not fit the newcomer. ``step`` is that of
    its youngest pair.
    """
    score, position, stairs, found = scratch.register[SCORE, :n], window.position, bar.stairs, scratch.found
    least, count = stairs.score[step] if step < bar.steps else -np.inf, found.meta[0].held
    for j in range(n):
        i = j if at < 0 else n - 1 - j
        if not score[i] >= least:
            continue
        other = scratch.place[i] if at < 0 else at + i
        if kinds.size > 0 and not fits(window.colours, kinds, new.colours, other):
            continue
        if other >= new.at:
            of = Pair(score[i], new.position, new.arrival, position[other], window.arrival[other])
        else:
            of = Pair(score[i], position[other], window.arrival[other], new.position, new.arrival)
        while step > 0 and stairs.corner[step - 1] >= of.position:
            step -= 1
        if step == bar.steps or not shielded(stairs, step, bar.steps, of, bar.strict):
            put(found, count, of, scratch.swapped[i])
            count += 1
    found.meta[0].held = count
    return step


@in_place
def gather(columns: Floats, place: Ints, n: int, target: Floats) -> None:
    """The values of the objects at some places, side by side."""
    for c in range(columns.shape[0]):
        column, side = columns[c], target[c]
        for i in range(n):
            side[i] = column[place[i]]


@in_place
def _newest(window: WindowObjects, colour: int, below: int) -> int:
    """The newest object of a colour before a place."""
    at = window.last[colour]
    while at >= below:
        at = window.link[at]
    return int(at)


@in_place
def fits(colours: Ints, kinds: Ints, own: Ints, at: int) -> bool:
    """Whether an object agrees and differs with a newcomer in its colours as it should."""
    for c in range(kinds.size):  # noqa: SIM110 - the compiler knows no all()
        if (colours[c, at] == own[c]) != (kinds[c] == SAME):
            return False
    return True


@outer
def scan_scored(window: WindowObjects, new: Newcomer, bar: Bar, scratch: Scratch, score: Floats,
                swapped: NDArray[np.bool_]) -> None:  # fmt: skip
    """The same where the scores of all pairs, oldest first, have been computed elsewhere; NaN: no pair."""
    start, high, fitting = window.meta[0].start, window.meta[0].stop, np.empty(0, np.int64)
    scratch.found.meta[0].held = 0
    step, size = bar.steps, FIRST_BLOCK
    while high > start:
        low = max(new.at if high > new.at else start, high - size)
        scratch.register[SCORE, : high - low] = score[low - start : high - start]
        scratch.swapped[: high - low] = swapped[low - start : high - start]
        youngest = min(new.position, window.position[high - 1])
        while step > 0 and bar.stairs.corner[step - 1] >= youngest:
            step -= 1
        step = offer(window, fitting, new, bar, scratch, low, high - low, step)
        high, size = low, min(2 * size, BLOCK)

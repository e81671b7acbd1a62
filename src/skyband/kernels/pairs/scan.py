"""The new pairs of an object, from the youngest to the oldest (pairs, Algorithm 3, lines 2–4).

In age order the step of the staircase that a pair must be held against only ever moves to a better one, and is the
same for long runs of pairs: the test of the paper, a search in O(log |SKB|) for every pair, becomes one comparison
with a constant, which is made for a whole block at once.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skyband.kernels.pairs.band import Pairs, Stairs, shielded
from skyband.kernels.pairs.program import BLOCK, Program, evaluate
from skyband.kernels.pairs.window import START, STOP, Window

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SAME, DIFFERENT = 0, 1
FIRST_BLOCK = 32  # the bar rises fast among the youngest pairs: blocks begin short, and double
GAP = 24  # shorter runs between objects of a colour are gathered, longer ones are taken as they lie


class Scratch(NamedTuple):
    """Room to work in, of no meaning between two objects."""

    register: Floats  # two-dimensional: those of a program
    score: Floats  # of a block
    swapped: NDArray[np.bool_]
    gathered: Floats  # two-dimensional: the values of a block of objects that do not lie side by side
    place: Ints  # where they lie
    found: Pairs
    spare: Pairs
    done: Ints  # pairs found, pairs evaluated


class Newcomer(NamedTuple):
    """An object that is about to take its place in the window."""

    time: int
    number: int
    values: Floats
    colours: Ints
    at: int  # its place


class Bar(NamedTuple):
    """The staircase that new pairs must pass; ``steps`` is 0 where all do."""

    stairs: Stairs
    steps: int
    strict: bool


@njit(cache=True)
def scan(window: Window, program: Program, kinds: Ints, new: Newcomer, bar: Bar, scratch: Scratch) -> None:
    """Find the pairs of a newcomer that the staircase does not dominate, youngest first."""
    start, stop = window.meta[START], window.meta[STOP]
    scratch.done[0] = 0
    if kinds.size > 0 and kinds[0] == SAME:
        step = _along(window, program, kinds, new, bar, scratch, stop, new.at, bar.steps)
        _along(window, program, kinds, new, bar, scratch, new.at, start, step)
    elif kinds.size > 0:
        step = _between(window, program, kinds, new, bar, scratch, stop, new.at, bar.steps)
        _between(window, program, kinds, new, bar, scratch, new.at, start, step)
    else:
        step = _run(window, program, new, bar, scratch, new.at, stop, bar.steps)
        _run(window, program, new, bar, scratch, start, new.at, step)


@njit(cache=True)
def _run(window: Window, program: Program, new: Newcomer, bar: Bar, scratch: Scratch, low: int, high: int,
         step: int) -> int:  # fmt: skip
    """The pairs with the objects ``[low, high)``, which are all newer than the newcomer or all older."""
    size, first = FIRST_BLOCK, low >= new.at
    while high > low:
        begin = max(low, high - size)
        evaluate(program, window.values, begin, high, new.values, first, scratch.register, scratch.score,
                 scratch.swapped)  # fmt: skip
        step = offer(window, new, bar, scratch, begin, high, step)
        high, size = begin, min(2 * size, BLOCK)
    return step


@njit(cache=True)
def offer(window: Window, new: Newcomer, bar: Bar, scratch: Scratch, low: int, high: int, step: int) -> int:
    """Take the pairs of a block that pass; returns the step that its oldest pair was held against."""
    score, stairs = scratch.score, bar.stairs
    newer = low >= new.at
    scratch.done[1] += high - low
    step = _down(stairs, step, new.time if newer else window.time[high - 1])
    least = stairs.score[step] if step < bar.steps else -np.inf
    if _passing(score[: high - low], least) == 0:
        return step
    for i in range(high - 1, low - 1, -1):
        if score[i - low] >= least:
            step = _take(window, new, bar, scratch, i, score[i - low], scratch.swapped[i - low], step)
    return step


@njit(cache=True)
def _passing(score: Floats, least: float) -> int:
    count = 0
    for i in range(score.size):
        count += score[i] >= least
    return count


@njit(cache=True)
def _down(stairs: Stairs, step: int, time: int) -> int:
    """The first step whose corner is not older than ``time``, if that is at or before ``step``."""
    while step > 0 and stairs.corner[step - 1] >= time:
        step -= 1
    return step


@njit(cache=True)
def _take(window: Window, new: Newcomer, bar: Bar, scratch: Scratch, at: int, score: float, swapped: bool,
          step: int) -> int:  # fmt: skip
    """Add the pair with the object at a place, unless the staircase dominates it."""
    time, number = window.time[at], window.number[at]
    if at >= new.at:
        of = (score, new.time, new.number, time, 2 * number + swapped)
    else:
        of = (score, time, number, new.time, 2 * new.number + swapped)
    step = _down(bar.stairs, step, of[1])
    if not shielded(bar.stairs, step, bar.steps, of, bar.strict):
        found, n = scratch.found, scratch.done[0]
        found.score[n], found.time[n], found.older[n], found.late[n], found.newer[n] = of
        scratch.done[0] = n + 1
    return step


# ---- colours (section 6.4)


@njit(cache=True)
def _newest(window: Window, colour: int, below: int) -> int:
    """The newest object of a colour before a place."""
    at = window.last[colour]
    while at >= below:
        at = window.link[at]
    return int(at)


@njit(cache=True)
def _along(window: Window, program: Program, kinds: Ints, new: Newcomer, bar: Bar, scratch: Scratch, high: int,
           low: int, step: int) -> int:  # fmt: skip
    """The pairs with the objects ``[low, high)`` that have the newcomer's first colour: along its list."""
    at, n = _newest(window, new.colours[0], high), 0
    while at >= low:
        if _fits(window, kinds, new, at):
            scratch.place[n] = at
            n += 1
            if n == BLOCK:
                step = _gathered(window, program, new, bar, scratch, n, step)
                n = 0
        at = window.link[at]
    return _gathered(window, program, new, bar, scratch, n, step)


@njit(cache=True)
def _between(window: Window, program: Program, kinds: Ints, new: Newcomer, bar: Bar, scratch: Scratch, high: int,
             low: int, step: int) -> int:  # fmt: skip
    """The pairs with the objects ``[low, high)`` of other first colours: the runs between those of its list."""
    at, n = _newest(window, new.colours[0], high), 0
    while high > low:
        begin = max(low, at + 1)
        if high - begin >= GAP and kinds.size == 1:
            step = _gathered(window, program, new, bar, scratch, n, step)
            n = 0
            step = _run(window, program, new, bar, scratch, begin, high, step)
        else:
            for i in range(high - 1, begin - 1, -1):
                if _fits(window, kinds, new, i):
                    scratch.place[n] = i
                    n += 1
                    if n == BLOCK:
                        step = _gathered(window, program, new, bar, scratch, n, step)
                        n = 0
        high = at
        at = window.link[at] if at >= low else -1
    return _gathered(window, program, new, bar, scratch, n, step)


@njit(cache=True)
def _fits(window: Window, kinds: Ints, new: Newcomer, at: int) -> bool:
    """Whether an object agrees and differs with the newcomer in the other colours as it should."""
    for c in range(1, kinds.size):  # noqa: SIM110 - the compiler knows no all()
        if (window.colours[c, at] == new.colours[c]) != (kinds[c] == SAME):
            return False
    return True


@njit(cache=True)
def _gathered(window: Window, program: Program, new: Newcomer, bar: Bar, scratch: Scratch, n: int,
              step: int) -> int:  # fmt: skip
    """The pairs with the ``n`` objects whose places have been gathered, newest first."""
    if n == 0:
        return step
    place = scratch.place
    for c in range(window.values.shape[0]):
        column, target = window.values[c], scratch.gathered[c]
        for i in range(n):
            target[i] = column[place[i]]
    evaluate(program, scratch.gathered, 0, n, new.values, place[0] >= new.at, scratch.register, scratch.score,
             scratch.swapped)  # fmt: skip
    scratch.done[1] += n
    for i in range(n):
        if scratch.score[i] == scratch.score[i]:
            step = _take(window, new, bar, scratch, place[i], scratch.score[i], scratch.swapped[i], step)
    return step


@njit(cache=True)
def scan_scored(window: Window, new: Newcomer, bar: Bar, scratch: Scratch, score: Floats,
                swapped: NDArray[np.bool_]) -> None:  # fmt: skip
    """The same where the scores of all pairs, oldest first, have been computed elsewhere; NaN: no pair."""
    start, high = window.meta[START], window.meta[STOP]
    scratch.done[0], step, size = 0, bar.steps, FIRST_BLOCK
    while high > start:
        low = max(new.at if high > new.at else start, high - size)
        scratch.score[: high - low] = score[low - start : high - start]
        scratch.swapped[: high - low] = swapped[low - start : high - start]
        step = offer(window, new, bar, scratch, low, high, step)
        high, size = low, min(2 * size, BLOCK)

"""The objects of a window colour by colour, where two objects must differ and there are two colours.

A newcomer then pairs with half of the objects. In the window they lie mixed, and to evaluate all costs less than to
pick out those that fit; here they lie side by side a second time. So it is in a cell of a grid, which pairs the objects
of one group with those of another. With three colours and more too little is saved: a newcomer meets the youngest of
each, where the bar is low, before the older ones of the next.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.pairs.program import BLOCK, Program, evaluate
from skyband.kernels.pairs.scan import FIRST_BLOCK, Bar, Newcomer, Scratch, offer, passing
from skyband.kernels.pairs.window import START, STOP, Window

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Sides(NamedTuple):
    """Of each colour the objects, newest first, at ``[first, end)``; there is room for more before them."""

    values: Floats  # three-dimensional: colour, column, object
    place: Ints  # two-dimensional: colour, object; where in the window it is
    first: Ints
    end: Ints


def no_sides(width: int, room: int) -> Sides:
    """Without an object."""
    return Sides(np.empty((2, width, room)), np.empty((2, room), np.int64), np.full(2, room), np.full(2, room))


@outer
def fill(sides: Sides, window: Window) -> None:
    """Take all objects of the window in."""
    for at in range(window.meta[START], window.meta[STOP]):
        join(sides, window, at)


@inner
def join(sides: Sides, window: Window, at: int) -> None:
    """Take in the newest object of the window, which is at this place."""
    colour = window.colours[0, at]
    sides.first[colour] -= 1
    sides.place[colour, sides.first[colour]] = at
    sides.values[colour, :, sides.first[colour]] = window.values[:, at]


@inner
def scan_sides(window: Window, program: Program, kinds: Ints, new: Newcomer, bar: Bar, scratch: Scratch,
               sides: Sides) -> None:  # fmt: skip
    """As :func:`skyband.kernels.pairs.scan.scan` for a newcomer that is newer than all others."""
    register, swapped, corner, height = scratch.register, scratch.swapped, bar.stairs.corner, bar.stairs.score
    other = 1 - new.colours[0]
    values, place, at, end = sides.values[other], sides.place[other], sides.first[other], sides.end[other]
    while end > at and place[end - 1] < window.meta[START]:
        end -= 1
    sides.end[other] = end
    scratch.done[0], step, size = 0, bar.steps, FIRST_BLOCK
    swapped[:] = False
    while at < end:
        n = min(size, end - at)
        evaluate(program, values, at, at + n, new.values, False, register, swapped)
        scratch.done[1] += n
        youngest = window.position[place[at]]
        while step > 0 and corner[step - 1] >= youngest:
            step -= 1
        if passing(register[0, :n], height[step] if step < bar.steps else -np.inf) > 0:
            scratch.place[:n] = place[at : at + n]
            step = offer(window, kinds, new, bar, scratch, -1, n, step)
        at += n
        size = min(2 * size, BLOCK)

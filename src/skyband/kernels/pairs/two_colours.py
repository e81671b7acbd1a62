"""The objects of a window colour by colour, where two objects must differ and there are two colours.

A newcomer then pairs with half of the objects. In the window they lie mixed, and to evaluate all costs less than to
pick out those that fit; here they lie side by side a second time. So it is in a cell of a grid, which pairs the objects
of one group with those of another. With three colours and more too little is saved: a newcomer meets the youngest of
each, where the bar is low, before the older ones of the next.
"""

from typing import NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.pairs.program import BLOCK, SCORE, evaluate
from skyband.kernels.pairs.scan import FIRST_BLOCK, Bar, Newcomer, Scoring, Scratch, offer, passing
from skyband.kernels.pairs.window import WindowObjects
from skyband.storage.blocks import Floats, Ints


class TwoColours(NamedTuple):
    """Of each colour the objects, newest first, at ``[first, end)``; there is room for more before them."""

    values: Floats  # three-dimensional: colour, column, object
    place: Ints  # two-dimensional: colour, object; where in the window it is
    first: Ints
    end: Ints


def no_colours(width: int, room: int) -> TwoColours:
    """Without an object."""
    return TwoColours(np.empty((2, width, room)), np.empty((2, room), np.int64), np.full(2, room), np.full(2, room))


@outer
def fill(apart: TwoColours, window: WindowObjects) -> None:
    """Take all objects of the window in."""
    for at in range(window.meta[0].start, window.meta[0].stop):
        join(apart, window, at)


@in_place
def join(apart: TwoColours, window: WindowObjects, at: int) -> None:
    """Take in the newest object of the window, which is at this place."""
    colour = window.colours[0, at]
    first = apart.first[colour] - 1
    apart.first[colour], apart.place[colour, first] = first, at
    for c in range(window.values.shape[0]):
        apart.values[colour, c, first] = window.values[c, at]


@inner
def scan_other_colour(window: WindowObjects, scoring: Scoring, new: Newcomer, bar: Bar, scratch: Scratch,
                      apart: TwoColours) -> None:  # fmt: skip
    """As :func:`skyband.kernels.pairs.scan.scan` for a newcomer that is newer than all others."""
    register, swapped, corner, height = scratch.register, scratch.swapped, bar.stairs.corner, bar.stairs.score
    other, start, program = 1 - new.colours[0], window.meta[0].start, scoring.program
    values, place, at, end = apart.values[other], apart.place[other], apart.first[other], apart.end[other]
    while end > at and place[end - 1] < start:
        end -= 1
    apart.end[other] = end
    step, size = bar.steps, FIRST_BLOCK
    scratch.found.meta[0].held = 0
    swapped[:] = False
    while at < end:
        n = min(size, end - at)
        evaluate(program, values, at, at + n, new.values, False, register, swapped)
        youngest = window.position[place[at]]
        while step > 0 and corner[step - 1] >= youngest:
            step -= 1
        if passing(register[SCORE, :n], height[step] if step < bar.steps else -np.inf) > 0:
            scratch.place[:n] = place[at : at + n]
            step = offer(window, scoring.kinds, new, bar, scratch, -1, n, step)
        at += n
        size = min(2 * size, BLOCK)

"""The objects of a window in the order of their time, with a list for each colour (pairs, sections 3.2 and 6.4)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# What the entries of ``Window.meta`` are.
START = 0  # the objects are at [START, STOP)
STOP = 1
NEWEST = 2  # the newest position seen
FLOOR = 3  # objects before it have expired
SIZE = 4  # pairs in S
STEPS = 5  # of the staircase
LIMIT = 6  # when S holds more than this many pairs, Algorithm 4 runs
ENTRIES = 7


class Window(NamedTuple):
    """The objects, oldest first; the columns of ``values`` and ``colours`` are rows here, so that a run is contiguous.

    ``link`` leads from each object to the one before it that has the same first colour, ``last`` from each colour to
    its newest object; what lies before the window counts as nothing.
    """

    position: Ints
    arrival: Ints
    values: Floats
    colours: Ints
    link: Ints
    last: Ints
    meta: Ints


class Objects(NamedTuple):
    """A batch of objects as rows."""

    position: Ints
    arrival: Ints
    values: Floats
    colours: Ints


@inner
def find(position: Ints, low: int, high: int, of: int) -> int:
    """The first position in ``[low, high)`` of ascending times that is after ``of``."""
    while low < high:
        middle = (low + high) // 2
        if position[middle] <= of:
            low = middle + 1
        else:
            high = middle
    return low


@outer
def place_of(window: Window, position: int) -> int:
    """Where an object of this time goes: behind all that are not newer."""
    start, stop = window.meta[START], window.meta[STOP]
    if start == stop or window.position[stop - 1] <= position:
        return int(stop)
    return find(window.position, start, stop, position)


@outer
def expire(window: Window) -> None:
    """Objects before the floor leave."""
    meta = window.meta
    while meta[START] < meta[STOP] and window.position[meta[START]] < meta[FLOOR]:
        meta[START] += 1


@outer
def enter(window: Window, at: int, objects: Objects, i: int) -> None:
    """Put object i of a batch at its place; there must be room."""
    meta = window.meta
    stop = meta[STOP]
    if at < stop:
        _part(window, at, stop)
    window.position[at], window.arrival[at] = objects.position[i], objects.arrival[i]
    window.values[:, at] = objects.values[i]
    window.colours[:, at] = objects.colours[i]
    meta[STOP] = stop + 1
    if window.colours.shape[0] > 0:
        colour = objects.colours[i, 0]
        newer, older = -1, window.last[colour]
        while older > at:
            newer, older = older, window.link[older]
        window.link[at] = older
        if newer < 0:
            window.last[colour] = at
        else:
            window.link[newer] = at


@inner
def _move_on(column: NDArray[Any], at: int, stop: int) -> None:
    """What is at ``[at, stop)`` moves on by one; upwards, that is faster than downwards."""
    before = column[at]
    for j in range(at + 1, stop + 1):
        before, column[j] = column[j], before


@inner
def _part(window: Window, at: int, stop: int) -> None:
    """Make room at a place: what is behind it moves on by one."""
    _move_on(window.position, at, stop)
    _move_on(window.arrival, at, stop)
    for column in window.values:
        _move_on(column, at, stop)
    if window.colours.shape[0] > 0:
        for colours in window.colours:
            _move_on(colours, at, stop)
        _move_on(window.link, at, stop)
        for j in range(at + 1, stop + 1):
            window.link[j] += window.link[j] >= at
        for colour in range(window.last.size):
            window.last[colour] += window.last[colour] >= at


@outer
def relink(window: Window) -> None:
    """Build the lists of the colours anew."""
    window.last[:] = -1
    if window.colours.shape[0] > 0:
        for at in range(window.meta[START], window.meta[STOP]):
            colour = window.colours[0, at]
            window.link[at] = window.last[colour]
            window.last[colour] = at

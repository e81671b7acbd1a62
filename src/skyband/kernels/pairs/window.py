"""The objects of a window in the order of their time, with a list for each colour (pairs, sections 3.2 and 6.4)."""

from typing import Annotated, Any, NamedTuple

from numpy.typing import NDArray

from skyband.kernels.common.jit import in_place, outer
from skyband.kernels.common.staircase import EARLIEST
from skyband.storage.blocks import ARRIVAL, Floats, Ints, Record, block, column, scalars


class WindowMeta(NamedTuple):
    """Where in its arrays a window lies, and how far it has come."""

    start: int = 0  # the objects are at [start, stop)
    stop: int = 0
    touched: int = 0  # no object of the last batch is before this place
    newest: int = EARLIEST  # the newest position seen
    floor: int = EARLIEST  # objects before this position have expired


@block(version=1)
class WindowObjects(NamedTuple):
    """The objects of a window, oldest first.

    ``link`` leads from each object to the one before it that has the same first colour, ``last`` from each colour to
    its newest object; what lies before the window counts as nothing.
    """

    position: Annotated[Ints, column("objects", used="stop")]
    arrival: Annotated[Ints, column("objects", used="stop", holds=ARRIVAL)]
    values: Annotated[Floats, column("objects", used="stop", wide=True)]
    colours: Annotated[Ints, column("objects", used="stop", wide=True)]
    link: Annotated[Ints, column("objects", used="stop")]
    last: Annotated[Ints, column("palette", fill=-1)]
    meta: Annotated[Record, scalars(WindowMeta)]


class Newcomers(NamedTuple):
    """A batch of objects as rows."""

    position: Ints
    arrival: Ints
    values: Floats
    colours: Ints


@in_place
def _first_after(position: Ints, low: int, high: int, of: int) -> int:
    """The first place in ``[low, high)`` of ascending positions that is after ``of``."""
    while low < high:
        middle = (low + high) // 2
        if position[middle] <= of:
            low = middle + 1
        else:
            high = middle
    return low


@outer
def place_of(window: WindowObjects, position: int) -> int:
    """Where an object of this position goes: behind all that are not newer."""
    meta = window.meta[0]
    if meta.start == meta.stop or window.position[meta.stop - 1] <= position:
        return int(meta.stop)
    return _first_after(window.position, meta.start, meta.stop, position)


@outer
def expire(window: WindowObjects) -> None:
    """Objects before the floor leave."""
    meta = window.meta[0]
    start = meta.start
    while start < meta.stop and window.position[start] < meta.floor:
        start += 1
    meta.start = start


@outer
def enter(window: WindowObjects, at: int, newcomers: Newcomers, i: int) -> None:
    """Put object i of a batch at its place; there must be room."""
    meta = window.meta[0]
    stop = meta.stop
    if at < stop:
        _part(window, at, stop)
    window.position[at], window.arrival[at] = newcomers.position[i], newcomers.arrival[i]
    window.values[:, at] = newcomers.values[i]
    window.colours[:, at] = newcomers.colours[i]
    meta.stop = stop + 1
    meta.touched = min(meta.touched, at)
    if window.colours.shape[0] > 0:
        colour = newcomers.colours[i, 0]
        newer, older = -1, window.last[colour]
        while older > at:
            newer, older = older, window.link[older]
        window.link[at] = older
        if newer < 0:
            window.last[colour] = at
        else:
            window.link[newer] = at


@in_place
def _move_on(column: NDArray[Any], at: int, stop: int) -> None:
    """What is at ``[at, stop)`` moves on by one; upwards, that is faster than downwards."""
    before = column[at]
    for j in range(at + 1, stop + 1):
        before, column[j] = column[j], before


@in_place
def _part(window: WindowObjects, at: int, stop: int) -> None:
    """Make room at a place: what is behind it moves on by one."""
    _move_on(window.position, at, stop)
    _move_on(window.arrival, at, stop)
    for values in window.values:
        _move_on(values, at, stop)
    if window.colours.shape[0] > 0:
        for colours in window.colours:
            _move_on(colours, at, stop)
        _move_on(window.link, at, stop)
        for j in range(at + 1, stop + 1):
            window.link[j] += window.link[j] >= at
        for colour in range(window.last.size):
            window.last[colour] += window.last[colour] >= at


@outer
def relink(window: WindowObjects) -> None:
    """Build the lists of the colours anew."""
    meta = window.meta[0]
    window.last[:] = -1
    if window.colours.shape[0] > 0:
        for at in range(meta.start, meta.stop):
            colour = window.colours[0, at]
            window.link[at] = window.last[colour]
            window.last[colour] = at

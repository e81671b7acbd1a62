"""The points of a window, in order of age and in the cells of a grid (dominating, section 3).

A point lives in a *slot*, a number that stays the same for as long as it is in the window. The coordinates of the
points of a cell lie side by side, so that counting in a cell is a scan; where they lie, a point's *place*, may change.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.common.order import newer

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

HEAD, TAIL, FREE, USED, ROOM, LAID, LOOK = range(7)  # of ``Space.meta``
TIME, NUMBER, PLACE, CELL, TURN, ORDER, FREED = range(7)  # rows of ``Space.slots``
START, COUNT, SPACE = range(3)  # rows of ``Space.cells``
SHAPE, STRIDE, CROWD = range(3)  # rows of ``Space.axes``
MOST_CELLS = 1 << 18
SAMPLE = 1 << 14  # points that the edges of the grid are taken from


class Space(NamedTuple):
    """Points and grid; few arrays, since each argument of a kernel costs time to compile.

    Row ORDER of ``slots`` is a ring: the slots from the oldest point, at turn ``meta[HEAD]``, up to the newest. Row
    FREED is a stack of ``meta[FREE]`` free slots. Along dimension j the grid has ``axes[SHAPE, j]`` cells, parted by
    ``edge[j * width : j * width + axes[SHAPE, j] - 1]``. When it was laid out for ``meta[LAID]`` points, no more than
    ``axes[CROWD, j]`` in a thousand of them were level with each other in that dimension; by turn ``meta[LOOK]`` it is
    time to see whether it is still so (:func:`stale`).
    """

    x: Floats  # by dimension and place
    owner: Ints  # by place: the slot
    slots: Ints  # by slot: time, arrival number, place, cell, turn
    cells: Ints  # by cell: its first place, the points in it, and the places it has
    axes: Ints  # by dimension
    edge: Floats
    meta: Ints


class Points(NamedTuple):
    """Rows to come, in order of arrival."""

    x: Floats  # by row and dimension
    position: Ints
    arrival: Ints


def shape_for(n: int, d: int, per_cell: int = 32) -> Ints:
    """How many cells along each dimension for n points: so that a cell has some points, and memory stays bounded.

    >>> shape_for(2_000_000, 4), shape_for(2_000_000, 20).prod()
    (array([16, 16, 16, 15]), np.int64(49152))
    """
    budget, shape = min(n // per_cell, MOST_CELLS), np.ones(d, np.int64)
    j, refused = 0, 0
    while refused < d:
        if shape.prod() // shape[j] * (shape[j] + 1) <= budget:
            shape[j], refused = shape[j] + 1, 0
        else:
            refused += 1
        j = (j + 1) % d
    return shape


def empty_space(d: int) -> Space:
    """A space without points."""
    return laid_out(np.empty((0, d)), np.empty(0, np.int64), np.empty(0, np.int64), 0, np.empty((0, d)))


def laid_out(x: Floats, position: Ints, arrival: Ints, room: int, coming: Floats, per_cell: int = 32) -> Space:
    """A space of these points, oldest first, with room for so many, and a grid that suits them and those to come."""
    n, d = x.shape
    room = max(room, n, 1)
    known = np.concatenate([x, coming])
    shape = shape_for(min(known.shape[0], room), d, per_cell)
    stride = np.append(np.cumprod(shape[:0:-1])[::-1], 1)
    width, cells = int(shape.max()), int(shape.prod())
    edge, crowd = np.full(d * width, np.inf), np.full(d, 1000)
    if width > 1:
        some = np.sort(known[:: max(1, known.shape[0] // SAMPLE)], axis=0)
        for j, g in enumerate(shape):
            parts = some[np.arange(1, g) * some.shape[0] // g, j]
            edge[j * width : j * width + g - 1] = parts
            level = np.diff(np.searchsorted(some[:, j], parts), prepend=0, append=some.shape[0])
            crowd[j] = 1000 * level.max() // some.shape[0]
    slots = np.zeros((7, room), np.int64)
    slots[FREED] = np.arange(room)[::-1]
    places = 2 * room + 4 * cells + 8
    space = Space(
        np.zeros(d * places), np.full(places, -1), slots, np.zeros((3, cells), np.int64),
        np.stack([shape, stride, crowd]), edge, np.array([0, 0, room, 0, places, n + coming.shape[0], 0]),
    )  # fmt: skip
    fill(space, np.ascontiguousarray(x), position, arrival)
    space.meta[LOOK] = n + _pause(n + coming.shape[0])
    return space


def _pause(n: int) -> int:
    """How many arrivals between two looks at the grid."""
    return max(256, n // 8)


def stale(space: Space) -> bool:
    """Whether the points have moved away from where the grid has its edges: many more of them are level than were."""
    meta, shape = space.meta, space.axes[SHAPE]
    n = int(meta[TAIL] - meta[HEAD])
    if meta[TAIL] < meta[LOOK] or n == 0:
        return False
    meta[LOOK] = meta[TAIL] + _pause(n)
    count = space.cells[COUNT].reshape(shape)
    most = np.array([count.sum(axis=tuple(i for i in range(shape.size) if i != j)).max() for j in range(shape.size)])
    expected = space.axes[CROWD] * n / 1000
    return bool((most > 1.5 * expected + 4 * np.sqrt(expected)).any())


@inner
def live(space: Space) -> int:
    """How many points there are."""
    return int(space.meta[TAIL] - space.meta[HEAD])


@inner
def locate(space: Space, p: Floats) -> int:
    """The cell of a point: along each dimension, the number of edges that it is not below."""
    width, cell = space.edge.size // space.axes.shape[1], 0
    for j in range(space.axes.shape[1]):
        low, high = 0, space.axes[SHAPE, j] - 1
        while low < high:
            middle = (low + high) // 2
            if space.edge[j * width + middle] <= p[j]:
                low = middle + 1
            else:
                high = middle
        cell += low * space.axes[STRIDE, j]
    return cell


@inner
def point(space: Space, slot: int, out: Floats) -> None:
    """Copies the coordinates of a point."""
    places = space.owner.size
    for j in range(out.size):
        out[j] = space.x[j * places + space.slots[PLACE, slot]]


@inner
def insert(space: Space, p: Floats, position: int, arrival: int) -> int:
    """Takes a point in, there must be a free slot; returns the slot."""
    meta = space.meta
    meta[FREE] -= 1
    slot = space.slots[FREED, meta[FREE]]
    cell = locate(space, p)
    space.slots[TIME, slot], space.slots[NUMBER, slot], space.slots[CELL, slot] = position, arrival, cell
    if space.cells[COUNT, cell] == space.cells[SPACE, cell]:
        _make_room(space, cell)
    place = space.cells[START, cell] + space.cells[COUNT, cell]
    space.cells[COUNT, cell] += 1
    space.owner[place], space.slots[PLACE, slot] = slot, place
    for j in range(p.size):
        space.x[j * space.owner.size + place] = p[j]
    _queue(space, slot)
    return int(slot)


@outer
def fill(space: Space, x: Floats, position: Ints, arrival: Ints) -> None:
    """Takes points in, oldest first."""
    for i in range(position.size):
        insert(space, x[i], position[i], arrival[i])


@inner
def _queue(space: Space, slot: int) -> None:
    """Puts a slot in its turn; one that comes out of order moves the newer ones on."""
    slots, order, turn = space.slots, space.slots[ORDER], space.meta[TAIL]
    space.meta[TAIL] += 1
    while turn > space.meta[HEAD]:
        other = order[(turn - 1) % order.size]
        if newer(slots[TIME, slot], slots[NUMBER, slot], slots[TIME, other], slots[NUMBER, other]):
            break
        order[turn % order.size] = other
        space.slots[TURN, other] = turn
        turn -= 1
    order[turn % order.size] = slot
    space.slots[TURN, slot] = turn


@inner
def oldest(space: Space) -> int:
    """The slot of the oldest point; there must be one."""
    return int(space.slots[ORDER, space.meta[HEAD] % space.slots.shape[1]])


@inner
def drop_oldest(space: Space) -> None:
    """Takes the oldest point out."""
    meta = space.meta
    slot = oldest(space)
    meta[HEAD] += 1
    cell, place = space.slots[CELL, slot], space.slots[PLACE, slot]
    space.cells[COUNT, cell] -= 1
    last = space.cells[START, cell] + space.cells[COUNT, cell]
    if last != place:
        mover = space.owner[last]
        space.owner[place], space.slots[PLACE, mover] = mover, place
        for j in range(space.axes.shape[1]):
            space.x[j * space.owner.size + place] = space.x[j * space.owner.size + last]
    space.owner[last] = -1
    space.slots[CELL, slot] = -1
    space.slots[FREED, meta[FREE]] = slot
    meta[FREE] += 1


@inner
def _make_room(space: Space, cell: int) -> None:
    """Moves the points of a cell to a larger stretch of places; if there is none, all are packed anew."""
    size, start = space.cells[COUNT, cell], space.cells[START, cell]
    wanted = 2 * size + 4
    if space.meta[USED] + wanted > space.meta[ROOM]:
        _pack(space)
        if space.cells[COUNT, cell] < space.cells[SPACE, cell]:
            return
        size, start = space.cells[COUNT, cell], space.cells[START, cell]
        wanted = size + 2
    target = space.meta[USED]
    places = space.owner.size
    for i in range(size):
        slot = space.owner[start + i]
        space.owner[target + i], space.owner[start + i] = slot, -1
        space.slots[PLACE, slot] = target + i
    for j in range(space.axes.shape[1]):
        for i in range(size):
            space.x[j * places + target + i] = space.x[j * places + start + i]
    space.cells[START, cell], space.cells[SPACE, cell] = target, wanted
    space.meta[USED] += wanted


@inner
def _pack(space: Space) -> None:
    """Lays the cells side by side again, each with some room."""
    places, x, owner = space.owner.size, space.x.copy(), space.owner.copy()
    spare = (places - live(space)) // 2 // max(1, space.cells.shape[1])
    space.owner[:] = -1
    used = 0
    for cell in range(space.cells.shape[1]):
        start, size = space.cells[START, cell], space.cells[COUNT, cell]
        for i in range(size):
            slot = owner[start + i]
            space.owner[used + i] = slot
            space.slots[PLACE, slot] = used + i
        for j in range(space.axes.shape[1]):
            for i in range(size):
                space.x[j * places + used + i] = x[j * places + start + i]
        space.cells[START, cell], space.cells[SPACE, cell] = used, size + min(spare, 2 + size // 4)
        used += space.cells[SPACE, cell]
    space.meta[USED] = used


def all_points(space: Space) -> tuple[Ints, Floats]:
    """The slots, oldest first, and the coordinates as (n, d)."""
    turns = np.arange(space.meta[HEAD], space.meta[TAIL])
    slots = space.slots[ORDER, turns % space.slots.shape[1]]
    return slots, np.ascontiguousarray(space.x.reshape(space.axes.shape[1], -1)[:, space.slots[PLACE, slots]].T)

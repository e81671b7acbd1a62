"""The points of a window, in order of age and in the cells of a grid (Kontaki et al., TKDE 2012, section 3).

A point lives in a *slot*, a number that stays the same for as long as it is in the window. The coordinates of the
points of a cell lie side by side, so that counting in a cell is a scan; where they lie, a point's *place*, may change.
A point's *turn* tells how many points of the window had gone or were older when it took its place in the order of age.
"""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inlined, inner, outer
from skyband.kernels.common.order import newer
from skyband.storage.blocks import ARRIVAL, Floats, Ints, Record, block, column, empty, plain, resized, scalars

MOST_CELLS = 1 << 18
SAMPLE = 1 << 14  # points that the edges of the grid are taken from


class SpaceMeta(NamedTuple):
    """How far a window has come, and when its grid is to be looked after."""

    head: int = 0  # the turn of the oldest point
    tail: int = 0  # the turn that the next point has if it is the newest
    touched: int = 0  # no point of the last batch has a turn before this one
    free: int = 0  # slots without a point
    given: int = 0  # places that were given to cells: the first ones
    laid: int = 0  # the points that the grid was laid out for
    look: int = 0  # at this turn it is time to see whether the grid still suits the points


@block(version=1)
class Slots(NamedTuple):
    """The points by slot; and, as long as these, two lists of slots."""

    position: Annotated[Ints, column("slots")]
    arrival: Annotated[Ints, column("slots", holds=ARRIVAL, fill=-1)]  # -1 in a free slot
    place: Annotated[Ints, column("slots")]
    cell: Annotated[Ints, column("slots", fill=-1)]  # -1 in a free slot
    turn: Annotated[Ints, column("slots")]
    ring: Annotated[Ints, column("slots")]  # a list: the slot of the point with turn t is at t modulo its length
    spare: Annotated[Ints, column("slots")]  # a list, as a stack: the free slots


@block(version=1)
class Cells(NamedTuple):
    """Which places belong to which cell."""

    begin: Annotated[Ints, column("cells")]  # the first place
    members: Annotated[Ints, column("cells")]  # the points, which are at the first of its places
    room: Annotated[Ints, column("cells")]  # the places


@block(version=1)
class Grid(NamedTuple):
    """How space is cut into cells. Along dimension j there are ``shape[j]``, parted by the first edges of ``edge[j]``.

    Cells are numbered by rows: a step along dimension j adds ``stride[j]``. When the grid was laid out, no more than
    ``crowd[j]`` in a thousand points were level with each other in dimension j.
    """

    shape: Annotated[Ints, column("dimensions")]
    stride: Annotated[Ints, column("dimensions")]
    crowd: Annotated[Ints, column("dimensions")]
    edge: Annotated[Floats, column("edges", wide=True, fill=np.inf)]  # a row for each dimension


@block(version=1)
class Space(NamedTuple):
    """The points of a window and the grid over them."""

    x: Annotated[Floats, column("places", wide=True)]  # a row for each dimension
    owner: Annotated[Ints, column("places", fill=-1)]  # the slot whose point is here
    slots: Slots
    cells: Cells
    grid: Grid
    meta: Annotated[Record, scalars(SpaceMeta)]


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
    grid = _grid(np.concatenate([x, coming]), room, per_cell)
    cells = resized(empty(Cells), "cells", int(grid.shape.prod()))
    slots = resized(empty(Slots), "slots", room)
    slots.spare[:] = np.arange(room)[::-1]
    space = empty(Space, wide={"x": d}, slots=slots, cells=cells, grid=grid, free=room, laid=n + coming.shape[0])
    space = resized(space, "places", 2 * room + 4 * cells.begin.size + 8)
    fill(space, np.ascontiguousarray(x), position, arrival)
    space.meta["look"] = n + _pause(n + coming.shape[0])
    return space


def _grid(known: Floats, room: int, per_cell: int) -> Grid:
    """A grid for a window of so many points, some of which are known."""
    n, d = known.shape
    shape = shape_for(min(n, room), d, per_cell)
    grid = resized(resized(empty(Grid, wide={"edge": d}), "dimensions", d), "edges", int(shape.max()))
    grid.shape[:], grid.stride[:], grid.crowd[:] = shape, np.append(np.cumprod(shape[:0:-1])[::-1], 1), 1000
    if shape.max() > 1:
        some = np.sort(known[:: max(1, n // SAMPLE)], axis=0)
        for j, g in enumerate(shape):
            parts = some[np.arange(1, g) * some.shape[0] // g, j]
            grid.edge[j, : g - 1] = parts
            level = np.diff(np.searchsorted(some[:, j], parts), prepend=0, append=some.shape[0])
            grid.crowd[j] = 1000 * level.max() // some.shape[0]
    return grid


def _pause(n: int) -> int:
    """How many arrivals between two looks at the grid."""
    return max(256, n // 8)


def stale(space: Space) -> bool:
    """Whether the points have moved away from where the grid has its edges: many more of them are level than were."""
    meta, shape = plain(SpaceMeta, space.meta), space.grid.shape
    n = meta.tail - meta.head
    if meta.tail < meta.look or n == 0:
        return False
    space.meta["look"] = meta.tail + _pause(n)
    members = space.cells.members.reshape(shape)
    most = np.array([members.sum(axis=tuple(i for i in range(shape.size) if i != j)).max() for j in range(shape.size)])
    expected = space.grid.crowd * n / 1000
    return bool((most > 1.5 * expected + 4 * np.sqrt(expected)).any())


@in_place
def live(space: Space) -> int:
    """How many points there are."""
    return int(space.meta[0].tail - space.meta[0].head)


@in_place
def locate(grid: Grid, p: Floats) -> int:
    """The cell of a point: along each dimension, the number of edges that it is not below."""
    cell = 0
    for j in range(p.size):
        low, high = 0, grid.shape[j] - 1
        while low < high:
            middle = (low + high) // 2
            if grid.edge[j, middle] <= p[j]:
                low = middle + 1
            else:
                high = middle
        cell += low * grid.stride[j]
    return int(cell)


@in_place
def point(space: Space, slot: int, into: Floats) -> None:
    """Copies the coordinates of the point in a slot."""
    place = space.slots.place[slot]
    for j in range(into.size):
        into[j] = space.x[j, place]


@inlined
def insert(space: Space, p: Floats, position: int, arrival: int) -> int:
    """Takes a point in; there must be a free slot. Returns the slot."""
    cell = locate(space.grid, p)
    if space.cells.members[cell] == space.cells.room[cell]:
        _make_room(space, cell)
    return _put(space, cell, p, position, arrival)


@in_place
def _put(space: Space, cell: int, p: Floats, position: int, arrival: int) -> int:
    """Takes a point into a cell that has a place for it."""
    slots, cells, meta = space.slots, space.cells, space.meta[0]
    meta.free -= 1
    slot = slots.spare[meta.free]
    place = cells.begin[cell] + cells.members[cell]
    cells.members[cell] += 1
    slots.position[slot], slots.arrival[slot], slots.place[slot], slots.cell[slot] = position, arrival, place, cell
    space.owner[place] = slot
    for j in range(p.size):
        space.x[j, place] = p[j]
    _queue(space, slot)
    return int(slot)


@outer
def fill(space: Space, x: Floats, position: Ints, arrival: Ints) -> None:
    """Takes points in, oldest first."""
    for i in range(position.size):
        insert(space, x[i], position[i], arrival[i])


@in_place
def _queue(space: Space, slot: int) -> None:
    """Puts a slot in its turn; one that comes out of order moves the newer ones on."""
    slots, ring, meta = space.slots, space.slots.ring, space.meta[0]
    turn = meta.tail
    meta.tail += 1
    while turn > meta.head:
        other = ring[(turn - 1) % ring.size]
        if newer(slots.position[slot], slots.arrival[slot], slots.position[other], slots.arrival[other]):
            break
        ring[turn % ring.size] = other
        slots.turn[other] = turn
        turn -= 1
    ring[turn % ring.size] = slot
    slots.turn[slot] = turn
    meta.touched = min(meta.touched, turn)


@in_place
def oldest(space: Space) -> int:
    """The slot of the oldest point; there must be one."""
    ring = space.slots.ring
    return int(ring[space.meta[0].head % ring.size])


@in_place
def expired(space: Space, floor: int) -> bool:
    """Whether there is a point, and the oldest one is at ``floor`` or before."""
    meta, ring = space.meta[0], space.slots.ring
    return bool(meta.head < meta.tail and space.slots.position[ring[meta.head % ring.size]] <= floor)


@in_place
def drop_oldest(space: Space) -> None:
    """Takes the oldest point out."""
    slots, cells, meta = space.slots, space.cells, space.meta[0]
    slot = oldest(space)
    meta.head += 1
    cell, place = slots.cell[slot], slots.place[slot]
    cells.members[cell] -= 1
    last = cells.begin[cell] + cells.members[cell]
    if last != place:
        mover = space.owner[last]
        space.owner[place], slots.place[mover] = mover, place
        for j in range(space.x.shape[0]):
            space.x[j, place] = space.x[j, last]
    space.owner[last] = -1
    slots.cell[slot] = slots.arrival[slot] = -1
    slots.spare[meta.free] = slot
    meta.free += 1


@inner
def _make_room(space: Space, cell: int) -> None:
    """Moves the points of a cell to a larger stretch of places; if there is none, all are packed anew."""
    cells, owner, meta = space.cells, space.owner, space.meta[0]
    held, begin = cells.members[cell], cells.begin[cell]
    wanted = 2 * held + 4
    if meta.given + wanted > owner.size:
        _pack(space)
        if cells.members[cell] < cells.room[cell]:
            return
        held, begin = cells.members[cell], cells.begin[cell]
        wanted = held + 2
    target = meta.given
    for i in range(held):
        slot = owner[begin + i]
        owner[target + i], owner[begin + i] = slot, -1
        space.slots.place[slot] = target + i
    for j in range(space.x.shape[0]):
        for i in range(held):
            space.x[j, target + i] = space.x[j, begin + i]
    cells.begin[cell], cells.room[cell] = target, wanted
    meta.given += wanted


@inner
def _pack(space: Space) -> None:
    """Lays the cells side by side again, each with some room."""
    cells, x, owner = space.cells, space.x.copy(), space.owner.copy()
    spare = (owner.size - live(space)) // 2 // max(1, cells.begin.size)
    space.owner[:] = -1
    given = 0
    for cell in range(cells.begin.size):
        begin, held = cells.begin[cell], cells.members[cell]
        for i in range(held):
            slot = owner[begin + i]
            space.owner[given + i] = slot
            space.slots.place[slot] = given + i
        for j in range(x.shape[0]):
            for i in range(held):
                space.x[j, given + i] = x[j, begin + i]
        cells.begin[cell], cells.room[cell] = given, held + min(spare, 2 + held // 4)
        given += cells.room[cell]
    space.meta[0].given = given


def in_turn(space: Space, first: int) -> Ints:
    """The slots of the points from a turn on, oldest first."""
    meta, ring = plain(SpaceMeta, space.meta), space.slots.ring
    found: Ints = ring[np.arange(max(first, meta.head), meta.tail) % ring.size]
    return found


def all_points(space: Space) -> tuple[Ints, Floats]:
    """The slots, oldest first, and the coordinates as (n, d)."""
    slots = in_turn(space, 0)
    return slots, np.ascontiguousarray(space.x[:, space.slots.place[slots]].T)

"""What an algorithm over pairs keeps of one partition."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import Floats, Ints
from skyband.kernels.common.staircase import EARLIEST, LATEST
from skyband.kernels.pairs.answers import Answers, no_answers
from skyband.kernels.pairs.band import Pairs, Stairs
from skyband.kernels.pairs.window import ENTRIES, FLOOR, NEWEST, SIZE, START, STOP, Window, relink

LEAST = 16  # room to begin with


class State(NamedTuple):
    """The parts of :class:`Window`, of S and its staircase and of :class:`Answers`; the ends of hopping windows."""

    position: Ints
    arrival: Ints
    values: Floats  # column after column
    colours: Ints  # likewise
    link: Ints
    last: Ints
    meta: Ints
    pair_score: Floats
    pair_time: Ints
    pair_older: Ints
    pair_late: Ints
    pair_newer: Ints
    stair_score: Floats
    stair_time: Ints
    stair_older: Ints
    stair_late: Ints
    stair_newer: Ints
    stair_corner: Ints
    top_score: Floats
    top_time: Ints
    top_older: Ints
    top_late: Ints
    top_newer: Ints
    top_base: Ints
    top_size: Ints
    top_oldest: Ints
    ends: Ints

    @classmethod
    def fresh(cls, queries: int, width: int, colours: int) -> "State":
        """Nothing seen yet."""
        ints: list[NDArray[Any]] = [np.zeros(LEAST, np.int64) for _ in range(3)]
        meta = np.zeros(ENTRIES, np.int64)
        meta[[NEWEST, FLOOR]] = EARLIEST
        pairs = [np.zeros(LEAST), *(np.zeros(LEAST, np.int64) for _ in range(4))]
        stairs = [column.copy() for column in (*pairs, pairs[1])]
        columns = [*ints[:2], np.zeros(LEAST * width), np.zeros(LEAST * colours, np.int64), ints[2]]
        columns += [np.empty(0, np.int64), meta, *pairs, *stairs, *no_answers(queries), np.full(queries, LATEST)]
        return cls._make(columns)

    @property
    def window(self) -> Window:
        room = self.position.size
        values, colours = self.values.reshape(-1, room), self.colours.reshape(-1, room)
        return Window(self.position, self.arrival, values, colours, self.link, self.last, self.meta)

    @property
    def band(self) -> Pairs:
        return Pairs._make(self[7:12])

    @property
    def stairs(self) -> Stairs:
        return Stairs._make(self[12:18])

    @property
    def answers(self) -> Answers:
        return Answers._make(self[18:26])

    @property
    def size(self) -> int:
        """How many pairs are in S."""
        return int(self.meta[SIZE])

    @property
    def part(self) -> slice:
        """Where the objects are that have not expired."""
        start, stop = int(self.meta[START]), int(self.meta[STOP])
        return slice(start + int(np.searchsorted(self.position[start:stop], self.meta[FLOOR])), stop)

    def copied(self) -> "State":
        return State._make(column.copy() for column in self)

    def roomy(self, objects: int, codes: int) -> "State":
        """The same with room for so many objects more, and for colours below ``codes``."""
        start, stop = int(self.meta[START]), int(self.meta[STOP])
        state = self
        if stop + objects > self.position.size:
            live = stop - start
            room = max(2 * live, live + objects, LEAST)
            columns = {name: _moved(getattr(self, name).reshape(-1, self.position.size), start, stop, room)
                       for name in ("position", "arrival", "values", "colours", "link")}  # fmt: skip
            state = self._replace(**columns)
            state.meta[START], state.meta[STOP] = 0, live
            relink(state.window)
        if codes > state.last.size:
            more = np.full(max(codes, 2 * state.last.size) - state.last.size, -1, np.int64)
            state = state._replace(last=np.concatenate([state.last, more]))
        return state

    def wider(self, pairs: int, room: Ints) -> "State":
        """The same with room for so many pairs in S, and for ``room`` of them in the answer of each query."""
        state = self
        if pairs > self.pair_score.size:
            columns = [_sized(column, pairs) for column in self[7:18]]
            state = State._make([*self[:7], *columns, *self[18:]])
        return state if (np.diff(self.top_base) >= room).all() else state._with_answers(room)

    def _with_answers(self, room: Ints) -> "State":
        base = np.zeros(room.size + 1, np.int64)
        np.cumsum(room, out=base[1:])
        lists = [np.zeros(base[-1], column.dtype) for column in self[18:23]]
        for q, size in enumerate(self.top_size):
            for old, new in zip(self[18:23], lists, strict=True):
                new[base[q] : base[q] + size] = old[self.top_base[q] : self.top_base[q] + size]
        return State._make([*self[:18], *lists, base, *self[24:]])


def _moved(columns: NDArray[Any], start: int, stop: int, room: int) -> NDArray[Any]:
    moved = np.zeros((columns.shape[0], room), columns.dtype)
    moved[:, : stop - start] = columns[:, start:stop]
    return moved.ravel()


def _sized(column: NDArray[Any], size: int) -> NDArray[Any]:
    sized = np.zeros(size, column.dtype)
    sized[: column.size] = column
    return sized

"""Pools: the states of many partitions as one block, so that a kernel can go through all of them in one call.

A pool has the type of the state. Its columns hold the rows of all partitions, each in a place of its own with room to
grow; its scalars are record arrays with an entry for each partition. So what a kernel takes for one partition is a
slice of each. Saving, restoring, numbering anew and bytes held follow from the declaration, as for single blocks, and a
pool is saved as the blocks in it would be (:func:`skyband.storage.blocks.saved`).

>>> from typing import Annotated
>>> from skyband.storage.blocks import Floats, Record, block, column, empty, saved, scalars
>>> class Counts(NamedTuple):
...     held: int = 0
>>> @block(version=1)
... class Queue(NamedTuple):
...     score: Annotated[Floats, column("objects", used="held")]
...     meta: Annotated[Record, scalars(Counts)]
>>> pool = Pool(empty(Queue))
>>> one, two = (empty(Queue, held=len(rows))._replace(score=np.array(rows)) for rows in ([7.0], [8.0, 9.0]))
>>> pool.restore(dict(saved(Queue, [one, two])), np.array([0, 2]))
>>> len(pool), pool[2].score.tolist(), pool[1].score.tolist()
(3, [8.0, 9.0], [])
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from skyband.errors import StateError
from skyband.storage.blocks import Array, Ints, Record, declaration, in_this_version, mark, record_type

S = TypeVar("S", bound=tuple[Any, ...])

LOST = 4  # rows of room for each partition that are no reason to bring the others together
SMALL = 1024  # rows and partitions: so many wait for the next batch in arrays of just their size


class PlacesMeta(NamedTuple):
    """How much of the columns is taken, and how much of that is in use."""

    end: int = 0  # behind the last place
    held: int = 0  # rows of all partitions


PLACES = record_type(PlacesMeta)


class Places(NamedTuple):
    """Where the rows of each partition lie in the columns of a row group."""

    start: Ints
    room: Ints
    meta: Record


class Pool(Mapping[int, S]):
    """The states of all partitions from 0 on; as a mapping it hands out copies.

    Args:
        blank: the state of a partition of which nothing has been seen. In each of its row groups a scalar counts the
            rows in use, which begin where the place does; a scalar that tells where they begin is 0 between batches.
    """

    def __init__(self, blank: S) -> None:
        self._blank = blank
        self._clear()

    def _clear(self) -> None:
        self.all: S = _none_of(self._blank)
        self.places = [
            Places(np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(1, PLACES)) for _ in _blocks(self.all)
        ]

    def __len__(self) -> int:
        return int(self.places[0].start.size)

    @property
    def held(self) -> int:
        """Rows in the first row group, of all partitions."""
        return int(self.places[0].meta["held"][0])

    @property
    def nbytes(self) -> int:
        """Bytes in the columns, the scalars, and the places of all partitions."""
        return _nbytes(self.all) + sum(place.start.nbytes + place.room.nbytes for place in self.places)

    def make_room(self, partitions: int) -> None:
        """Blank states for partitions that are new, so that there are so many, and some more where they are many."""
        new = partitions - len(self)
        if new > 0:
            new = new if partitions <= SMALL else max(new, len(self) // 2)
            self.all = _more(self.all, self._blank, new)
            nothing = np.zeros(new, np.int64)
            self.places = [Places(np.append(place.start, nothing), np.append(place.room, nothing), place.meta)
                           for place in self.places]  # fmt: skip

    def tidy(self) -> None:
        """Brings the rows together where much room is lost."""
        for place in self.places:
            end, held = place.meta[0].item()
            if end > 2 * held + LOST * len(self):
                self._lay_out(np.arange(len(self)))
                return

    def __getitem__(self, partition: int) -> S:
        if not 0 <= partition < len(self):
            raise KeyError(partition)
        state: S = self._state(self.all, iter(self.places), partition)
        return state

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def counts(self) -> Ints:
        """How many rows of the first row group each partition has in use."""
        return _counts(*next(_blocks(self.all)))

    def rows(self) -> Ints:
        """Where they lie, one partition after another."""
        return _spread(self.places[0].start, self.counts())

    def rekey(self, code: Ints) -> None:
        """Partitions are numbered anew: what was ``p`` is now ``code[p]``; those with -1 are forgotten."""
        kept = np.flatnonzero(code[: len(self)] >= 0)
        former = kept[np.argsort(code[kept])]
        self._lay_out(former)

    def saved(self, which: Ints, prefix: str = "") -> Iterator[tuple[str, Array]]:
        """The states of these partitions as named arrays: see :func:`skyband.storage.blocks.saved`."""
        yield from self._saved(self.all, iter(self.places), which, prefix)

    def restore(self, arrays: Mapping[str, Array], which: Ints, prefix: str = "") -> None:
        """Takes back what :meth:`saved` gave; other partitions are blank."""
        self._clear()
        self.make_room(int(which.max(initial=-1)) + 1)
        self.all = self._restored(self.all, iter(self.places), arrays, which, prefix)

    def _lay_out(self, former: Ints) -> None:
        """The partitions that were ``former``, from 0 on, their rows one after another."""
        arrays = dict(self.saved(former))
        self.restore(arrays, np.arange(former.size))

    def _state(self, value: Any, places: Iterator[Places], partition: int) -> Any:
        declared, fields = declaration(type(value)), dict[str, Any]()
        for group, names in declared.groups.items():
            start, count = next(places).start[partition], _counts(value, group)[partition]
            fields |= {name: getattr(value, name)[start : start + count].copy() for name in names}
        fields |= {name: getattr(value, name)[partition : partition + 1].copy() for name in declared.scalars}
        fields |= {name: self._state(getattr(value, name), places, partition) for name in declared.blocks}
        return value._replace(**fields)

    def _saved(self, value: Any, places: Iterator[Places], which: Ints, prefix: str) -> Iterator[tuple[str, Array]]:
        declared = declaration(type(value))
        yield mark(declared, prefix)
        for group, names in declared.groups.items():
            count = _counts(value, group)[which]
            rows = _spread(next(places).start[which], count)
            yield prefix + group, count
            yield from ((prefix + name, getattr(value, name)[rows]) for name in names)
        for name, record in declared.scalars.items():
            yield from ((f"{prefix}{name}.{field}", getattr(value, name)[field][which]) for field in record.names)
        for name in declared.blocks:
            yield from self._saved(getattr(value, name), places, which, f"{prefix}{name}.")

    def _restored(self, value: Any, places: Iterator[Places], arrays: Mapping[str, Array], which: Ints, prefix: str
                  ) -> Any:  # fmt: skip
        declared, fields = declaration(type(value)), dict[str, Any]()
        arrays = in_this_version(declared, arrays, prefix)
        for group, names in declared.groups.items():
            place, count = next(places), arrays[prefix + group]
            # Where they are many, each has room for some more, so that not all of them must move at once.
            room = count if count.sum() + len(self) <= SMALL else count + count // 4 + 2
            start, end = np.cumsum(room) - room, int(room.sum())
            place.start[which], place.room[which] = start, room
            place.meta["end"], place.meta["held"] = end, count.sum()
            rows = _spread(start, count)
            for name in names:
                if arrays[prefix + name].size != rows.size:
                    raise StateError(f"the saved state is damaged: {prefix}{name} does not have as many rows as its "
                                     "group")  # fmt: skip
                fields[name] = np.empty(end, getattr(value, name).dtype)
                fields[name][rows] = arrays[prefix + name]
        for name, record in declared.scalars.items():
            fields[name] = getattr(value, name)
            for field in record.names:
                fields[name][field][which] = arrays[f"{prefix}{name}.{field}"]
        for name in declared.blocks:
            fields[name] = self._restored(getattr(value, name), places, arrays, which, f"{prefix}{name}.")
        return value._replace(**fields)


def _none_of(blank: Any) -> Any:
    """A pool of no partitions."""
    return type(blank)._make(_none_of(field) if isinstance(field, tuple) else field[:0].copy() for field in blank)


def _more(value: Any, blank: Any, new: int) -> Any:
    """The pool with so many blank states behind the others."""
    declared, fields = declaration(type(value)), {}
    for name in declared.scalars:
        fields[name] = np.concatenate([getattr(value, name), np.repeat(getattr(blank, name), new)])
    for name in declared.blocks:
        fields[name] = _more(getattr(value, name), getattr(blank, name), new)
    return value._replace(**fields)


def _blocks(value: Any) -> Iterator[tuple[Any, str]]:
    """The blocks that have rows, with the names of their row groups."""
    declared = declaration(type(value))
    yield from ((value, group) for group in declared.groups)
    for name in declared.blocks:
        yield from _blocks(getattr(value, name))


def _counts(value: Any, group: str) -> Ints:
    """How many rows of a row group each partition has in use."""
    declared = declaration(type(value))
    used = declared.columns[declared.groups[group][0]][1].used
    (name,) = (name for name, record in declared.scalars.items() if used in record.names)
    counts: Ints = getattr(value, name)[used]
    return counts


def _spread(start: Ints, count: Ints) -> Ints:
    """The numbers from each start on, as many as are counted."""
    place: Ints = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count - start, count)
    return place


def _nbytes(value: Any) -> int:
    return sum(_nbytes(field) if isinstance(field, tuple) else int(field.nbytes) for field in value)

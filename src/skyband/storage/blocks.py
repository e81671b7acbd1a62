"""Blocks: the parts of a state, declared once, so that growing, copying, saving and restoring need no further code.

A *block* is a NamedTuple of arrays, which is what kernels take. Its annotations declare which columns grow together (a
*row group*), how many of their rows are in use, which columns hold arrival numbers, partitions or tags, and which
scalars there are. From the declaration follow allocation, growth, taking rows, numbering anew, copies, bytes held,
saving, restoring, and checks of sizes. A state is a tree of blocks.

>>> class Counts(NamedTuple):
...     held: int = 0
...     bar: float = np.nan
>>> @block(version=1)
... class Queue(NamedTuple):
...     score: Annotated[Floats, column("objects", used="held")]
...     arrival: Annotated[Ints, column("objects", used="held", holds=ARRIVAL)]
...     meta: Annotated[Record, scalars(Counts)]
>>> queue = grown(empty(Queue, bar=2.5), "objects", 4)
>>> queue.arrival[:2], queue.meta[0].held = [7, 9], 2
>>> queue.score.size, int(queue.meta[0].held), float(queue.meta[0].bar), nbytes(queue)
(4, 2, 2.5, 88)
>>> renumbered(queue, ARRIVAL, np.arange(10) - 7).arrival[:2].tolist()
[0, 2]
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from skyband import __version__
from skyband.errors import StateError

Array = NDArray[Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bytes = NDArray[np.int8]
Record = NDArray[Any]  # one entry with named fields: ``block.meta[0].held``

B = TypeVar("B", bound=tuple[Any, ...])
N = TypeVar("N", bound=tuple[Any, ...])
Holds = Literal["", "arrival", "partition", "tag"]
ARRIVAL: Holds = "arrival"
PARTITION: Holds = "partition"
TAG: Holds = "tag"

_DTYPES: dict[Any, np.dtype[Any]] = {Ints: np.dtype(np.int64), Floats: np.dtype(np.float64), Bytes: np.dtype(np.int8)}
_TAKEN = frozenset(name for name in dir(np.record) if not name.startswith("_"))  # methods, which would hide a field


class Column(NamedTuple):
    """How a column is declared: see :func:`column`."""

    group: str
    used: str
    first: str
    holds: Holds
    fill: float
    wide: bool


class Scalars(NamedTuple):
    """How scalars are declared: see :func:`scalars`."""

    names: tuple[str, ...]
    defaults: tuple[Any, ...]
    dtype: np.dtype[Any]


Reader = Callable[[dict[str, Array]], dict[str, Array]]
"""Turns the arrays that a block was saved as in one version into those of the next one."""


class Declaration(NamedTuple):
    """What a block is made of: columns, scalars and inner blocks, each by the name of its field."""

    name: str
    version: int
    older: dict[int, "Reader"]
    columns: dict[str, tuple[np.dtype[Any], Column]]
    scalars: dict[str, Scalars]
    blocks: dict[str, type[Any]]
    groups: dict[str, list[str]]  # the columns of each row group


def column(
    group: str, *, used: str = "", first: str = "", holds: Holds = "", fill: float = 0, wide: bool = False
) -> Column:
    """Declares a column of a row group.

    Args:
        group: the name of the group; its columns have the same length and grow together.
        used: the scalar that says how many rows are in use; all of them if not given.
        first: the scalar that says at which row those in use begin, for a ring: they go on from the end to row 0. If
            not given, they begin at row 0.
        holds: what the numbers in the column stand for, if they may be numbered anew: :data:`ARRIVAL`,
            :data:`PARTITION` or :data:`TAG`. Negative numbers stand for nothing, and stay.
        fill: the value in rows that are not in use yet.
        wide: whether the array has two dimensions; each of its rows is then a column of the group.
    """
    return Column(group, used, first, holds, fill, wide)


def scalars(names: type[Any]) -> Scalars:
    """Declares named scalars: the fields of a NamedTuple, integers or floats, with their defaults (0 if not given)."""
    hints = get_type_hints(names)
    if bad := sorted(_TAKEN & set(hints)):
        raise TypeError(f"{names.__name__}: NumPy's records have a method {bad[0]!r}; call the scalar otherwise")
    defaults = getattr(names, "_field_defaults", {})
    fields = [(name, np.float64 if kind is float else np.int64) for name, kind in hints.items()]
    return Scalars(tuple(hints), tuple(defaults.get(name, 0) for name in hints), np.dtype((np.record, fields)))


def record_type(names: type[Any]) -> np.dtype[Any]:
    """The NumPy type of named scalars, with which kernels make a record of their own: ``np.zeros(1, TYPE)``."""
    return scalars(names).dtype


def block(version: int, older: Mapping[int, Reader] | None = None) -> Callable[[type[B]], type[B]]:
    """Declares a NamedTuple to be a block.

    Args:
        version: goes up with every change of what is saved.
        older: how states saved in older versions are read: for each of them, what turns the arrays of that version
            into those of the next one. Versions from which no chain of readers leads to the present one are refused.
    """

    def declare(kind: type[B]) -> type[B]:
        kind.block_version, kind.block_older = version, dict(older or {})  # type: ignore[attr-defined]
        declaration(kind)  # so that what cannot be saved is told where it is declared
        return kind

    return declare


def declaration(kind: Any) -> Declaration:
    """The declaration of a type of block."""
    return _declaration(kind)


@cache
def _declaration(kind: Any) -> Declaration:
    columns: dict[str, tuple[np.dtype[Any], Column]] = {}
    records: dict[str, Scalars] = {}
    blocks: dict[str, type[Any]] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is not Annotated:
            blocks[name] = hint
            continue
        array, said = get_args(hint)
        if isinstance(said, Column):
            columns[name] = _DTYPES[array], said
        else:
            records[name] = said
    groups: dict[str, list[str]] = {}
    for name, (_, said) in columns.items():
        if said.group in columns:  # they are saved under their names
            raise TypeError(f"{kind.__name__} has a column and a row group that are both called {said.group!r}")
        groups.setdefault(said.group, []).append(name)
    if taken := sorted(groups.keys() & set(kind._fields)):
        raise TypeError(f"{kind.__name__}: a row group and a field are both called {taken[0]!r}, and so would be what "
                        "is saved of them; call one of them otherwise")  # fmt: skip
    return Declaration(kind.__name__, kind.block_version, kind.block_older, columns, records, blocks, groups)


def empty(kind: type[B], /, wide: Mapping[str, int] | None = None, **values: Any) -> B:
    """A block without rows.

    ``values`` gives scalars that differ from their defaults, and inner blocks; ``wide`` the width of wide columns.
    """
    declared = declaration(kind)
    fields: dict[str, Any] = {}
    for name, (dtype, said) in declared.columns.items():
        fields[name] = np.empty(((wide or {}).get(name, 0), 0) if said.wide else 0, dtype)
    for name, record in declared.scalars.items():
        given = [values.pop(field, default) for field, default in zip(record.names, record.defaults, strict=True)]
        fields[name] = np.array([tuple(given)], record.dtype)
    for name, inner in declared.blocks.items():
        fields[name] = values.pop(name) if name in values else empty(inner)
    if values:
        raise TypeError(f"{declared.name} has no {', '.join(values)}")
    return kind(**fields)


def size(value: Any, group: str) -> int:
    """For how many rows of a group there is room."""
    return int(getattr(value, declaration(type(value)).groups[group][0]).shape[-1])


def used(value: Any, group: str) -> int:
    """How many rows of a group are in use."""
    declared = declaration(type(value))
    scalar = declared.columns[declared.groups[group][0]][1].used
    return _scalar(value, scalar) if scalar else size(value, group)


def grown(value: B, group: str, room: int) -> B:
    """The block with room for at least this many rows of a group; if it has to grow, by half or more."""
    have = size(value, group)
    return value if room <= have else resized(value, group, max(room, have + have // 2))


def straight(value: B, group: str) -> B:
    """The block with the rows of a group moved so that those in use begin at row 0.

    >>> class Places(NamedTuple):
    ...     held: int = 0
    ...     front: int = 0
    >>> @block(version=1)
    ... class Ring(NamedTuple):
    ...     score: Annotated[Floats, column("objects", used="held", first="front")]
    ...     meta: Annotated[Record, scalars(Places)]
    >>> ring = empty(Ring, held=2, front=2)._replace(score=np.array([7.0, 0, 6]))
    >>> straight(ring, "objects").score.tolist(), dict(saved(Ring, [ring]))["score"].tolist()
    ([6.0, 7.0, 0.0], [6.0, 7.0])
    """
    declared = declaration(type(value))
    names = declared.groups[group]
    scalar = declared.columns[names[0]][1].first
    if not scalar or not _scalar(value, scalar):
        return value
    turn = (_scalar(value, scalar) + np.arange(size(value, group))) % size(value, group)
    changed = {name: getattr(value, name)[..., turn] for name in names}
    for name, record in declared.scalars.items():
        if scalar in record.names:
            changed[name] = getattr(value, name).copy()
            changed[name][scalar] = 0
    return value._replace(**changed)  # type: ignore[attr-defined,no-any-return]


def resized(value: B, group: str, room: int) -> B:
    """The block with room for exactly this many rows of a group: rows are cut off, or filled up."""
    have = size(value, group)
    if room == have:
        return value
    fields, kept = list(straight(value, group)), min(room, have)
    for place, fill in _fills(type(value), group):
        old = fields[place]
        fields[place] = new = np.empty((*old.shape[:-1], room), old.dtype)
        new[..., :kept] = old[..., :kept]
        if kept < room:
            new[..., kept:] = fill
    return type(value)._make(fields)  # type: ignore[attr-defined,no-any-return]


def taken(value: B, group: str, which: Array | slice) -> B:
    """The block with only some rows of a group, in the given order, and no room for more.

    These rows and the scalars are copies: to change them changes nothing in ``value``.
    """
    value, declared = straight(value, group), declaration(type(value))
    names = declared.groups[group]
    # In one piece, wide columns too: in any other order they are of another type to the compiler.
    own = {name: getattr(value, name)[..., which].copy() for name in names}
    own |= {name: getattr(value, name).copy() for name in declared.scalars}
    return value._replace(**own)  # type: ignore[attr-defined,no-any-return]


def copied(value: B) -> B:
    """A copy of the block in memory of its own."""
    fields = [copied(field) if isinstance(field, tuple) else field.copy() for field in value]
    return type(value)._make(fields)  # type: ignore[attr-defined,no-any-return]


def renumbered(value: B, holds: Holds, new: Ints) -> B:
    """The block with arrivals, partitions or tags numbered anew: in all rows in use, ``n`` becomes ``new[n]``."""
    declared, changed = declaration(type(value)), dict[str, Any]()
    for group in declared.groups:
        value = straight(value, group)
    for name, (_, said) in declared.columns.items():
        if said.holds == holds:
            numbers = getattr(value, name).copy()
            part = numbers[..., : used(value, said.group)]
            part[part >= 0] = new[part[part >= 0]]
            changed[name] = numbers
    for name in declared.blocks:
        changed[name] = renumbered(getattr(value, name), holds, new)
    return value._replace(**changed)  # type: ignore[attr-defined,no-any-return]


def nbytes(value: Any) -> int:
    """Bytes of memory in the arrays of a block, unused room included, and of the sizes that are saved with them."""
    declared = declaration(type(value))
    sizes = len(declared.groups) + sum(said.wide for _, said in declared.columns.values())
    return 8 * sizes + sum(nbytes(field) if isinstance(field, tuple) else field.nbytes for field in value)


def check(value: Any) -> None:
    """Asserts that the columns of each group have the same length, and that no more rows are in use than there are."""
    declared = declaration(type(value))
    for group, names in declared.groups.items():
        lengths = {getattr(value, name).shape[-1] for name in names}
        assert len(lengths) == 1, f"{declared.name}: the columns of {group!r} have the lengths {sorted(lengths)}"
        assert 0 <= used(value, group) <= lengths.pop(), (
            f"{declared.name}: more {group!r} in use than there is room for"
        )
    for name, (dtype, _) in declared.columns.items():
        assert getattr(value, name).dtype == dtype, f"{declared.name}.{name} is of type {getattr(value, name).dtype}"
    for name in declared.blocks:
        check(getattr(value, name))


def saved(kind: type[Any], values: Sequence[Any], prefix: str = "") -> Iterator[tuple[str, Array]]:
    """Many blocks of one type as named one-dimensional arrays, to be saved.

    However many blocks there are, the number of arrays is the same. Of wide columns, which are as wide in every block,
    the width is among them. The first array is empty: its name holds the name and the version of the block.
    """
    declared = declaration(kind)
    yield mark(declared, prefix)
    for group in declared.groups:
        values = [straight(value, group) for value in values]
    for group, names in declared.groups.items():
        counts = [used(value, group) for value in values]
        yield f"{prefix}{group}", np.array(counts, np.int64)
        for name in names:
            dtype, said = declared.columns[name]
            parts = [getattr(value, name)[..., :count].ravel() for value, count in zip(values, counts, strict=True)]
            yield prefix + name, np.concatenate([np.empty(0, dtype), *parts])
            if said.wide:
                yield (
                    f"{prefix}{name}.width",
                    np.array([getattr(value, name).shape[0] for value in values[:1]], np.int64),
                )
    for name, record in declared.scalars.items():
        together = np.concatenate([np.empty(0, record.dtype), *(getattr(value, name) for value in values)])
        for field in record.names:
            yield f"{prefix}{name}.{field}", together[field]
    for name, inner in declared.blocks.items():
        yield from saved(inner, [getattr(value, name) for value in values], f"{prefix}{name}.")


def restored(kind: type[B], arrays: Mapping[str, Array], prefix: str = "") -> list[B]:
    """The inverse of :func:`saved`: the blocks, with no room beside what is in use.

    Raises :class:`StateError` where they were saved in a version that cannot be read.
    """
    declared, fields = declaration(kind), dict[str, list[Any]]()
    arrays = in_this_version(declared, arrays, prefix)
    for group, names in declared.groups.items():
        counts = arrays[prefix + group]
        for name in names:
            wide, width = declared.columns[name][1].wide, 1
            if wide:
                width = int(arrays[f"{prefix}{name}.width"].max(initial=0))
            ends = np.cumsum(counts * width)
            if arrays[prefix + name].size != (ends[-1] if ends.size else 0):
                raise StateError(f"the saved state is damaged: {prefix}{name} does not have as many rows as its group")
            parts = np.split(arrays[prefix + name], ends[:-1]) if ends.size else []
            fields[name] = [part.reshape((width, count) if wide else count).copy()
                            for part, count in zip(parts, counts, strict=True)]  # fmt: skip
    for name, record in declared.scalars.items():
        together = np.empty(arrays[f"{prefix}{name}.{record.names[0]}"].size, record.dtype)
        for field in record.names:
            together[field] = arrays[f"{prefix}{name}.{field}"]
        fields[name] = [together[i : i + 1].copy() for i in range(together.size)]
    for name, inner in declared.blocks.items():
        fields[name] = restored(inner, arrays, f"{prefix}{name}.")
    names = kind._fields  # type: ignore[attr-defined]
    return [kind(*values) for values in zip(*(fields[name] for name in names), strict=True)]


def mark(declared: Declaration, prefix: str) -> tuple[str, Array]:
    """An empty array, whose name says which block was saved, and in which version."""
    return f"{prefix}@{declared.name}.{declared.version}", np.empty(0, np.int8)


def in_this_version(declared: Declaration, arrays: Mapping[str, Array], prefix: str) -> Mapping[str, Array]:
    """The saved arrays as this version of a block would have saved them."""
    marks = [name.removeprefix(f"{prefix}@") for name in arrays if name.startswith(f"{prefix}@")]
    name, _, number = marks[0].rpartition(".") if marks else ("", "", "0")
    if name != declared.name:
        raise StateError(f"the saved state has {name or 'nothing'} where {declared.name} was expected: another version "
                         "of skyband saved it; replay the stream to build it anew")  # fmt: skip
    version = int(number)
    if version == declared.version:
        return arrays
    steps = range(version, declared.version)
    if not steps or any(step not in declared.older for step in steps):
        oldest = declared.version
        while oldest - 1 in declared.older:
            oldest -= 1
        read = f"version {oldest}" if oldest == declared.version else f"versions {oldest} to {declared.version}"
        raise StateError(f"the saved state holds {name} in version {version}, and this skyband ({__version__}) reads "
                         f"{read} of it: replay the stream to build it anew")  # fmt: skip
    part = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
    for step in steps:
        part = declared.older[step](part)
    return {prefix + key: array for key, array in part.items()}


@cache
def _fills(kind: Any, group: str) -> tuple[tuple[int, float], ...]:
    """For each column of a group its place in the block, and the value of rows that are not in use."""
    declared = declaration(kind)
    return tuple((kind._fields.index(name), declared.columns[name][1].fill) for name in declared.groups[group])


def plain(names: type[N], record: Record) -> N:
    """All named scalars of a record as Python numbers; it takes no longer than reading a single one by its name.

    >>> class Counts(NamedTuple):
    ...     held: int = 0
    ...     bar: float = np.nan
    >>> plain(Counts, np.array([(3, 2.5)], scalars(Counts).dtype))
    Counts(held=3, bar=2.5)
    """
    return names(*record.item())


def _scalar(value: Any, scalar: str) -> int:
    for name, record in declaration(type(value)).scalars.items():
        if scalar in record.names:
            return int(getattr(value, name)[scalar][0])
    raise TypeError(f"{type(value).__name__} declares no scalar {scalar!r}")

"""Writes answers as Arrow tables: the columns of rankings, changes and snapshots."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband import families
from skyband.algorithms.contract import NO_VALUES, NOTHING, Changes, Floats, Ints
from skyband.errors import QueryError
from skyband.expressions import scoring
from skyband.query import Query
from skyband.query.positions import position_type, spelled
from skyband.storage import memory

_OPS = pa.array(["-", "+"])


class Written(NamedTuple):
    """Rankings in the order in which they are written, one after another."""

    end: Ints  # of each ranking: the end of its window
    partitions: pa.Table | None  # of each row: the partition columns
    size: Ints  # of each ranking: how many rows it has
    arrival: Ints  # of each row: the object
    score: Floats
    other: Ints = NOTHING  # of each row, for pairs: the second object
    values: Floats = NO_VALUES  # of each row: the columns that the algorithm computed


class Layout:
    """The form of the answer of one query over a stream with given columns."""

    def __init__(self, query: Query, schema: pa.Schema, columns: Sequence[str] | None = None) -> None:
        """``columns``: those that the answer shows if the query has no ``select``; by default all of the stream."""
        self.query = query
        self._sign = 1.0 if query.descending else -1.0
        family = families.of(query)
        empty = family.row([schema.empty_table()] * family.size)
        self._items = _items(query, schema.names if columns is None else columns)
        for item in self._items:
            item.evaluate(empty)
        needed = {name for item in self._items for name in item.needs(empty.column_names)}
        self.columns = {name for name in schema.names if needed & family.spellings(name)}
        on = query.window.on
        self._position = position_type(schema.field(on).type if on else None, query.window)

    def rankings(self, written: Written, rows: pa.Table) -> pa.Table:
        """The table of closed windows: ``window_start, window_end, <partition…>, rank, score, <columns…>``."""
        window, size = self.query.window, written.size
        start = written.end - window.extent
        start = start if window.time else np.maximum(start, 0)
        head = {"window_start": self._bound(start, size), "window_end": self._bound(written.end, size)}
        return self._table(head, written, rows)

    def snapshot(self, written: Written, rows: pa.Table) -> pa.Table:
        """The table of a ranking as it stands: ``<partition…>, rank, score, <columns…>``."""
        return self._table({}, written, rows)

    def changes(self, changes: Changes, rows: pa.Table, partitions: pa.Table | None) -> pa.Table:
        """The table of changes: ``at, op, <partition…>, score, <columns…>``."""
        op = _OPS.take(pa.array((changes.op > 0).astype(np.int8)))
        return pa.table({"at": self._spelled(changes.at), "op": op, **_columns(partitions),
                         "score": self._score(changes.score), **self._payload(rows),
                         **self._computed(changes.values)})  # fmt: skip

    def _table(self, head: dict[str, pa.Array], written: Written, rows: pa.Table) -> pa.Table:
        return pa.table({**head, **_columns(written.partitions), "rank": _ranks(written.size),
                         "score": self._score(written.score), **self._payload(rows),
                         **self._computed(written.values)})  # fmt: skip

    def _computed(self, values: Floats) -> dict[str, pa.Array]:
        """The columns that the algorithm computed, in the order in which they are shown; NaN becomes NULL."""
        listed = values.reshape(len(values), len(self.query.computed)) if values.size else None
        made = {name: pa.array([] if listed is None else listed[:, i], pa.float64(), from_pandas=True).cast(kind)
                for i, (name, kind) in enumerate(self.query.computed)}  # fmt: skip
        return {name: made[name] for name in self.query.shown}

    def _payload(self, rows: pa.Table) -> dict[str, pa.ChunkedArray]:
        return {item.name: item.evaluate(rows) for item in self._items}

    def _score(self, score: Floats) -> NDArray[np.float64]:
        if self._sign > 0:
            return score
        negative: NDArray[np.float64] = np.subtract(0.0, score, out=memory.empty(score.size, np.float64))
        return negative  # 0.0 - x and not -x, which would turn 0 into -0

    def _bound(self, position: Ints, size: Ints) -> pa.Array:
        """A bound of the window of each row: converted once for each ranking, then repeated for its rows."""
        bound = self._spelled(position)
        plain = bound.cast(pa.int64()) if pa.types.is_timestamp(bound.type) else bound
        return pa.array(_spread(plain.to_numpy(), size)).cast(bound.type)

    def _spelled(self, position: Ints) -> pa.Array:
        return spelled(position, self._position, self.query.window.time)


def _spread(values: NDArray[Any], size: Ints) -> NDArray[Any]:
    """Repeats each value for the rows of its ranking; several times as fast if all have one size, the usual case."""
    if size.size and (size == size[0]).all():
        spread = memory.empty(values.size * int(size[0]), values.dtype)
        spread.reshape(values.size, -1)[:] = values[:, None]
        return spread
    return np.repeat(values, size)


def _ranks(size: Ints) -> NDArray[np.int32]:
    """1, 2, 3, … in each ranking."""
    if size.size and (size == size[0]).all():
        ranks = memory.empty(size.size * int(size[0]), np.int32)
        ranks.reshape(size.size, -1)[:] = np.arange(1, size[0] + 1, dtype=np.int32)
        return ranks
    first = np.cumsum(size) - size
    return (np.arange(1, size.sum() + 1) - np.repeat(first, size)).astype(np.int32)


def _items(query: Query, names: Sequence[str]) -> list[scoring.Item]:
    """The columns of the answer that come from the columns of its objects."""
    own = [*(("window_start", "window_end") if query.window.hopping else ("at", "op")), "rank", "score"]
    if taken := [name for name in query.partition_by if name in own]:
        raise QueryError(f"partition_by={taken[0]!r}: the answer has a column {taken[0]!r} of its own; "
                         "give the column another name")  # fmt: skip
    items: list[scoring.Item] = []
    for item in query.items([name for name in names if name not in query.partition_by]):
        if item.plain and item.name in query.repeated() and item.source.columns == (item.name,):
            continue  # the answer shows this column already
        if item.name in own or item.name in query.partition_by:
            raise QueryError(f"the answer has a column {item.name!r} of its own; give this one another name with "
                             f"select=('{item.name} AS other_name', ...), or leave it out of select")  # fmt: skip
        if any(item.name == other.name for other in items):
            raise QueryError(f"select={query.select!r}: two columns of the answer would be called {item.name!r}; give "
                             "one of them another name with AS")  # fmt: skip
        items.append(item)
    return items


def _columns(table: pa.Table | None) -> dict[str, pa.ChunkedArray]:
    return {} if table is None else dict(zip(table.column_names, table.columns, strict=True))

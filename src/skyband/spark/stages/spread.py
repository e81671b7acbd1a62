"""One ranking spread over several shards: which rows go where, and how what the shards tell becomes one answer.

Rows fall into groups by hash. A shard, here a *cell*, gets the rows of one or two groups and works on them with the
engine as if they were the whole stream; what it finds best in a window it tells with the whole rows. All cells close
the same windows in the same micro-batch, so that their answers can be merged without any more state.
"""

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
import pyarrow as pa

from skyband.algorithms.contract import NO_VALUES, Floats, Ints
from skyband.engine.partitions import Keys
from skyband.engine.writer import Layout, Written
from skyband.query import Query
from skyband.query.sides import SIDES
from skyband.spark.stages.ties import in_order

# Columns of what a cell tells; the last one begins the names of those that the algorithm made.
END, GOODNESS, VALUE = "_skyband_end", "_skyband_goodness", "_skyband_value_"


def cells(family: str, groups: int) -> list[tuple[int, ...]]:
    """The groups whose rows each cell gets; pairs meet in exactly one cell.

    >>> cells("pairs", 2)
    [(0,), (0, 1), (1,)]
    """
    if family != "pairs":
        return [(group,) for group in range(groups)]
    return [tuple(sorted({i, j})) for i, j in combinations_with_replacement(range(groups), 2)]


def groups_for(family: str, shards: int) -> int:
    """How many groups of rows give each of so many tasks a cell, or more than one.

    >>> [groups_for("pairs", shards) for shards in (1, 2, 3, 4, 8, 200)]
    [1, 2, 2, 3, 4, 20]
    """
    return shards if family != "pairs" else math.ceil((math.sqrt(8 * shards + 1) - 1) / 2)


class Local(Layout):
    """What a cell tells of a window that closed: its end, and the goodness and the whole rows of the best."""

    def __init__(self, query: Query, schema: pa.Schema) -> None:
        super().__init__(query, schema)
        self.columns = set(schema.names)

    def rankings(self, written: Written, rows: pa.Table) -> pa.Table:
        own = {END: np.repeat(written.end, written.size), GOODNESS: written.score}
        values = written.values if written.values.size else np.empty((0, len(self.query.computed)))
        own |= {f"{VALUE}{i}": column for i, column in enumerate(values.T)}
        return pa.table({**own, **dict(zip(rows.column_names, rows.columns, strict=True))})


def gathered(query: Query, layout: Layout, told: Sequence[pa.Table], time: str, tie: str) -> pa.Table:
    """The answer: of each window the best of all that the cells told."""
    table = pa.concat_tables(told).combine_chunks()
    end, goodness = table.column(END).to_numpy(), table.column(GOODNESS).to_numpy()
    made = [name for name in table.column_names if name.startswith(VALUE)]
    values = np.stack([table.column(name).to_numpy() for name in made], axis=1) if made else NO_VALUES
    rows = table.drop_columns([END, GOODNESS, *made])
    order = np.lexsort((*_newness(rows, query.family, time, tie), goodness, end))[::-1]
    order = order[_best(end[order], goodness[order], query.k, query.ties == "all")]
    order = order[np.argsort(end[order], kind="stable")]
    ends, size = np.unique(end[order], return_counts=True)
    written = Written(ends, None, size, order, goodness[order], values=values[order] if made else values)
    return layout.rankings(written, rows.take(pa.array(order)))


def _best(end: Ints, goodness: Floats, k: int, ties: bool) -> Ints:
    """Which rows, given in the order of their window and rank, are among the k best of their window."""
    first = np.flatnonzero(np.append(True, np.diff(end) != 0)) if end.size else end
    size = np.diff(np.append(first, end.size))
    wanted = np.arange(end.size) - np.repeat(first, size) < k
    if ties:
        wanted |= goodness == np.repeat(goodness[first + np.minimum(size, k) - 1], size)
    return np.flatnonzero(wanted)


def _newness(rows: pa.Table, family: str, time: str, tie: str) -> list[Ints]:
    """Sort keys, the last one first in rank, that put newer objects or pairs above older ones."""
    if family != "pairs":
        return [_rank(rows, time, tie)]
    sides = [rows.select([name for name in rows.column_names if name.startswith(side)]) for side in SIDES]
    names = [name.removeprefix(SIDES[0]) for name in sides[0].column_names]
    both = _rank(pa.concat_tables([side.rename_columns(names) for side in sides]), time, tie)
    first, second = both[: rows.num_rows], both[rows.num_rows :]
    return [np.maximum(first, second), np.minimum(first, second)]


def _rank(rows: pa.Table, time: str, tie: str) -> Ints:
    """Where each row stands by time, tie and content; equal rows stand at the same place."""
    plain = {name: pa.array(map(repr, column.to_pylist())) if pa.types.is_nested(column.type) else column
             for name, column in zip(rows.column_names, rows.columns, strict=True)}  # fmt: skip
    distinct = Keys(pa.table(plain).slice(0, 0))
    code = distinct.encode(pa.table(plain))
    order = in_order(distinct.rows, *(distinct.rows.column(name).cast(pa.int64()).to_numpy() for name in (tie, time)))
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    placed: Ints = rank[code]
    return placed

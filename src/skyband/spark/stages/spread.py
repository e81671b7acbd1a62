"""Gathers one ranking that is spread over several shards: how the shards' answers become one answer.

Rows are divided into groups by hash. A shard is here called a *cell*: it gets the rows of one or more groups (the
family says which) and ranks them with the engine as if they were the whole stream. For each window it sends its best,
with all columns of their rows. All cells close the same windows in the same micro-batch, so their answers can be merged
without further state.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skyband.algorithms.contract import NO_VALUES, Floats, Ints
from skyband.engine.partitions import Keys
from skyband.engine.writer import Layout, Written
from skyband.families import Family
from skyband.query import Query
from skyband.spark.stages.ties import in_order

# Columns of a cell's answer; the last is a prefix, for columns that the algorithm computed.
END, GOODNESS, VALUE = "_skyband_end", "_skyband_goodness", "_skyband_value_"


class Local(Layout):
    """The form of a cell's answer: for its best in each closed window the window's end, the goodness and whole rows."""

    def __init__(self, query: Query, schema: pa.Schema) -> None:
        super().__init__(query, schema)
        self.columns = set(schema.names)

    def rankings(self, written: Written, rows: pa.Table) -> pa.Table:
        own = {END: np.repeat(written.end, written.size), GOODNESS: written.score}
        values = written.values if written.values.size else np.empty((0, len(self.query.computed)))
        own |= {f"{VALUE}{i}": column for i, column in enumerate(values.T)}
        return pa.table({**own, **dict(zip(rows.column_names, rows.columns, strict=True))})


def gathered(family: Family, query: Query, layout: Layout, told: Sequence[pa.Table], time: str, tie: str) -> pa.Table:
    """The answer to the query: for each window the best of the cells' answers."""
    table = pa.concat_tables(told).combine_chunks()
    end, goodness = table.column(END).to_numpy(), table.column(GOODNESS).to_numpy()
    made = [name for name in table.column_names if name.startswith(VALUE)]
    values = np.stack([table.column(name).to_numpy() for name in made], axis=1) if made else NO_VALUES
    rows = table.drop_columns([END, GOODNESS, *made])
    order = np.lexsort((*_newness(family.objects(rows), time, tie), goodness, end))[::-1]
    order = order[_best(end[order], goodness[order], query.k, query.ties == "all")]
    order = order[np.argsort(end[order], kind="stable")]
    ends, size = np.unique(end[order], return_counts=True)
    written = Written(ends, None, size, order, goodness[order], values=values[order] if made else values)
    return layout.rankings(written, rows.take(pa.array(order)))


def _best(end: Ints, goodness: Floats, k: int, ties: bool) -> Ints:
    """Which rows are among the k best of their window; the rows are ordered by window and rank."""
    first = np.flatnonzero(np.append(True, np.diff(end) != 0)) if end.size else end
    size = np.diff(np.append(first, end.size))
    wanted = np.arange(end.size) - np.repeat(first, size) < k
    if ties:
        wanted |= goodness == np.repeat(goodness[first + np.minimum(size, k) - 1], size)
    return np.flatnonzero(wanted)


def _newness(objects: list[pa.Table], time: str, tie: str) -> list[Ints]:
    """Sort keys, the most important one last, by which newer rows of the answer rank before older ones.

    ``objects`` are the objects that each row is made of. If they are several, the older one is compared first.
    """
    rank = _rank(pa.concat_tables(objects), time, tie).reshape(len(objects), -1)
    return [*np.sort(rank, axis=0)[::-1]]


def _rank(rows: pa.Table, time: str, tie: str) -> Ints:
    """The rank of each row by time, tie and content; equal rows have the same rank."""
    plain = {name: pa.array(map(repr, column.to_pylist())) if pa.types.is_nested(column.type) else column
             for name, column in zip(rows.column_names, rows.columns, strict=True)}  # fmt: skip
    distinct = Keys(pa.table(plain).slice(0, 0))
    code = distinct.encode(pa.table(plain))
    order = in_order(distinct.rows, *(distinct.rows.column(name).cast(pa.int64()).to_numpy() for name in (tie, time)))
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    placed: Ints = rank[code]
    return placed

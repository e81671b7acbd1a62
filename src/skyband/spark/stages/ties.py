"""Orders objects that tie in score and event time: by a column, then by content, as Spark has no order of arrival."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.algorithms.contract import Floats, Ints
from skyband.kernels.common.sorting import tied


def in_order(table: pa.Table, *by: NDArray[np.int64] | NDArray[np.float64]) -> Ints:
    """The order of rows by these values, the most important one last; rows equal in all go by their content."""
    order = np.lexsort(by)
    if order.size < 2:
        return order
    equal = np.ones(order.size - 1, bool)
    for values in by:
        equal &= values[order][1:] == values[order][:-1]
    if equal.any():
        among = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        content = np.zeros(order.size, np.int64)
        content[order[among]] = _content_rank(table.take(pa.array(order[among])))
        order = np.lexsort((content, *by))
    return order


def number(table: pa.Table, key: Ints, score: Floats, time: Ints, tie: Ints) -> Ints:
    """For each number the row that gets it, such that of objects that tie the newer one gets the higher number.

    Rows that tie with no other, which mostly are all, keep their place.
    """
    order = np.arange(score.size)
    among = np.flatnonzero(tied(key, score, time))
    if not among.size:
        return order
    by = [column[among] for column in (tie, time, score, key) if column.size]
    turn = in_order(table.take(pa.array(among)), *by)
    new_group = np.zeros(turn.size, np.int64)
    for column in by[1:]:
        new_group[1:] |= column[turn][1:] != column[turn][:-1]
    group = np.cumsum(new_group)
    rows = among[turn]
    order[rows[np.lexsort((rows, group))]] = rows  # the places of tied rows are given to them in their order
    return order


def _content_rank(table: pa.Table) -> Ints:
    """The rank of each row when rows are sorted by all their columns."""
    columns = {
        str(i): pa.array(map(repr, column.to_pylist())) if pa.types.is_nested(column.type) else column
        for i, column in enumerate(table.columns)
    }
    rank = np.zeros(table.num_rows, np.int64)
    if columns:
        order = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns])
        rank[order.to_numpy()] = np.arange(rank.size)
    return rank

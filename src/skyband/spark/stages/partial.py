"""Amounts that add up need not travel one by one: each task sends what the rows of an object in a pane add up to."""

import numpy as np
import pyarrow as pa

from skyband.algorithms.contract import Floats, Ints
from skyband.algorithms.groups.partials import SUMS, amounts, merged
from skyband.engine.partitions import Keys
from skyband.engine.planner import plan_for
from skyband.query import Query, TopKGroups
from skyband.query.asked import LARGEST


def summable(query: Query) -> bool:
    """Whether rows of one group and pane may be replaced by their sum: windows are then made of whole panes.

    Streams that are only counted must be seen, and are told by rows.
    """
    if not isinstance(query, TopKGroups) or query.asked is None or isinstance(query.streams, int):
        return False
    sums = query.asked.alone and query.aggregate in ("sum", "count")
    return sums and query.window.time and plan_for((query,)).algorithm.name == "panes"


def over_sums(query: Query, amount: str) -> Query:
    """The query over rows that carry an amount, in which the weights of streams are contained already."""
    return query.but(value=f'"{amount}"', aggregate="sum", stream=None, streams=None, weights={}, bounds=None)


def sums(table: pa.Table, amount: Floats, time: Ints, tie: Ints, pane: int) -> tuple[pa.Table, Floats, Ints, Ints]:
    """One row for each combination of values in ``table`` and pane: the sum of its amounts, its newest time and tie.

    A sum that takes more than a double is told in two rows, so that nothing is lost.
    """
    objects = Keys(table.slice(0, 0))
    code = objects.encode(table)
    least = int(tie.min(initial=0))
    parts = merged(amounts(code, time // pane, amount, time.copy(), tie - least), SUMS)
    _, high, low = parts.sums.T
    if np.abs(high).max(initial=0) > LARGEST:  # no amount that a row may have
        return table, amount, time, tie
    rest = np.flatnonzero(low)
    rows = np.concatenate([np.arange(high.size), rest])
    told = np.concatenate([high, low[rest]])
    return objects.rows.take(pa.array(parts.group[rows])), told, parts.position[rows], parts.arrival[rows] + least

"""Helpers for testing your own queries; those that need Spark are in :mod:`skyband.spark.testing`.

>>> import skyband as sb
>>> query = sb.TopK(k=1, order_by="price DESC", window=sb.last(2, every=2), select=("id",))
>>> answer(query, [{"id": [1, 2], "price": [3.0, 5.0]}, {"id": [3], "price": [9.0]}]).to_pylist()
[{'window_start': 0, 'window_end': 2, 'rank': 1, 'score': 5.0, 'id': 2}]
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from skyband.engine.columns import Batch
from skyband.engine.monitor import Monitor
from skyband.query import Query


def answer(query: Query | Sequence[Query], batches: Iterable[Batch], flush: bool = True) -> pa.Table:
    """Everything that a monitor returns for a query over some batches, as one table.

    Args:
        query: one query, or a list of them.
        batches: the batches, each as :meth:`skyband.Monitor.push` takes it.
        flush: whether to end the stream after them, which closes the windows of time that are still open.
    """
    monitor = Monitor(query)
    tables = [monitor.push(batch) for batch in batches]
    return pa.concat_tables([*tables, monitor.flush()] if flush else tables, promote_options="permissive")


def assert_same_rows(got: pa.Table, expected: pa.Table) -> None:
    """Raises an ``AssertionError`` unless two tables have the same columns and the same rows, in any order.

    >>> assert_same_rows(pa.table({"x": [1, 2]}), pa.table({"x": [2, 1]}))
    >>> assert_same_rows(pa.table({"x": [1, 2]}), pa.table({"x": [2, 2]}))
    Traceback (most recent call last):
    AssertionError: 1 row missing, such as {'x': 2}; 1 row too many, such as {'x': 1}
    """
    if got.column_names != expected.column_names:
        raise AssertionError(f"the columns are {got.column_names}, not {expected.column_names}")
    ours, theirs = _counted(got), _counted(expected)
    if ours != theirs:
        wrong = [_some(theirs - ours, "missing"), _some(ours - theirs, "too many")]
        raise AssertionError("; ".join(filter(None, wrong)))


def _counted(table: pa.Table) -> Counter[str]:
    return Counter(str({name: _plain(value) for name, value in row.items()}) for row in table.to_pylist())


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, float) else value  # NaN equals itself, and 0 is not -0


def _some(rows: Counter[str], what: str) -> str:
    return f"{rows.total()} row{'s' * (rows.total() > 1)} {what}, such as {next(iter(rows))}" if rows else ""

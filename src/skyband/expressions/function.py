"""Python functions of the columns, in the place of an expression."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from skyband.errors import QueryError
from skyband.expressions.expression import find_column
from skyband.expressions.values import floats

Function = Callable[[Mapping[str, NDArray[Any]]], ArrayLike]


class _UnknownColumn(KeyError):
    """A function asked for a column that is not there."""


class Columns(Mapping[str, NDArray[Any]]):
    """The columns of a table as arrays, each converted when it is first asked for; NULL becomes NaN or None."""

    def __init__(self, table: pa.Table | pa.RecordBatch) -> None:
        self._table = table
        self._arrays: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            if name not in self._table.schema.names:
                raise _UnknownColumn(name)
            column = self._table.column(name)
            if isinstance(column, pa.ChunkedArray):
                column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            self._arrays[name] = column.to_numpy(zero_copy_only=False)
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.schema.names)

    def __len__(self) -> int:
        return len(self._table.schema.names)


def call(function: Callable[..., ArrayLike], *tables: pa.Table | pa.RecordBatch) -> NDArray[np.float64]:
    """The scores that a function gives to the rows of a table, or to the rows of several that stand side by side.

    None, NaN and masked values are NaN.
    """
    table = tables[0]
    label = f"order_by={getattr(function, '__qualname__', repr(function))}"
    try:
        result = function(*map(Columns, tables))
    except _UnknownColumn as error:
        try:
            find_column(error.args[0], table.schema.names, quoted=True)
        except QueryError as unknown:
            raise QueryError(f"{label}: {unknown}") from error
        raise
    scores = _array(result, label)
    if scores.shape != (table.num_rows,):
        raise QueryError(f"{label} must return a number for each of the {table.num_rows} rows; "
                         f"it returned an array of shape {scores.shape}")  # fmt: skip
    return scores


def _array(result: Any, label: str) -> NDArray[np.float64]:
    if isinstance(result, np.ndarray) and not isinstance(result, np.ma.MaskedArray) and result.dtype.kind in "iuf":
        scores: NDArray[np.float64] = result.astype(np.float64, copy=False)
        return scores
    try:
        array = result if isinstance(result, pa.Array | pa.ChunkedArray) else pa.array(result, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        raise QueryError(f"{label} must return an array of numbers; it returned {type(result).__name__}") from None
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    found: NDArray[np.float64] = floats(array, label)
    return found

"""Calls Python functions that stand in the place of an expression."""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from skyband.errors import QueryError
from skyband.expressions.expression import find_column
from skyband.expressions.values import floats, normal

Function = Callable[[Mapping[str, NDArray[Any]]], ArrayLike]


class _UnknownColumn(KeyError):
    """A function asked for a column that does not exist; the second argument is the message for the user."""


class Columns(Mapping[str, NDArray[Any]]):
    """The columns of a table as NumPy arrays, each converted when a function first asks for it.

    Numbers are int64 or float64 as in SQL, whatever their width in the table, so that they overflow no sooner than
    there. NULL shows as NaN in numbers, which are then float64, as NaT in times, and as None in other columns.
    """

    def __init__(self, table: pa.Table | pa.RecordBatch) -> None:
        self._table = table
        self.arrays: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.arrays:
            if name not in self._table.schema.names:
                raise _UnknownColumn(name, _unknown(name, self._table.schema.names))
            column = self._table.column(name)
            if isinstance(column, pa.ChunkedArray):
                column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            if pa.types.is_null(column.type):  # only NULLs so far: most likely they will be numbers
                column = pa.nulls(len(column), pa.float64())
            number = column if column.type == pa.uint64() else normal(column)  # a uint64 may not fit into an int64
            self.arrays[name] = number.to_numpy(zero_copy_only=False)
        return self.arrays[name]

    def read(self) -> list[str]:
        """The columns that were asked for so far, with their types."""
        return [f"{name} ({array.dtype})" for name, array in self.arrays.items()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.schema.names)

    def __len__(self) -> int:
        return len(self._table.schema.names)


def call(function: Callable[..., ArrayLike], *tables: pa.Table | pa.RecordBatch) -> NDArray[np.float64]:
    """The scores that a function gives to the rows of a table; of several tables, to their rows side by side.

    None and masked values become NaN. Without rows the function is not called.
    """
    return _called(function, [Columns(table) for table in tables], tables[0].num_rows)


def columns_read(function: Callable[..., ArrayLike], *tables: pa.Table) -> list[str]:
    """The columns that a function uses, found out by calling it with these rows.

    The result of the call is ignored, and so is an error: the rows may be some that the function would never be given.
    """
    arguments = [Columns(table) for table in tables]
    with np.errstate(all="ignore"), suppress(QueryError):
        _called(function, arguments, tables[0].num_rows)
    return [name for name in tables[0].schema.names if any(name in columns.arrays for columns in arguments)]


def _called(function: Callable[..., ArrayLike], arguments: Sequence[Columns], count: int) -> NDArray[np.float64]:
    def given() -> str:
        read = dict.fromkeys(column for columns in arguments for column in columns.read())
        what = "row" if len(arguments) == 1 else "pair"
        return f"{count} {what}{'s' if count > 1 else ''}, and had read {', '.join(read) or 'no column'}"

    return scores_of(function, "order_by", arguments, count, given)


def scores_of(
    function: Callable[..., ArrayLike], field: str, arguments: Sequence[Any], size: int, given: Callable[[], str]
) -> NDArray[np.float64]:
    """Calls a user's function and returns a number for each row; an error in it becomes a ``QueryError``.

    Args:
        function: the function. It is not called if there are no rows.
        field: the argument of the query that holds it.
        arguments: the arguments of the call.
        size: how many rows they have.
        given: says in words what the function was given, for errors.

    >>> import math
    >>> scores_of(math.sqrt, "aggregate", [-1], 1, lambda: "the number -1")
    Traceback (most recent call last):
    skyband.errors.QueryError: aggregate=sqrt raised ValueError: math domain error. It was given the number -1
    """
    if not size:
        return np.empty(0)
    label = f"{field}={getattr(function, '__qualname__', repr(function))}"
    try:
        result = function(*arguments)
    except _UnknownColumn as error:
        raise QueryError(f"{label}: {error.args[1]}") from error
    except Exception as error:
        what = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise QueryError(f"{label} raised {what}{_place(error)}. It was given {given()}") from error
    found = _array(result, label, size)
    if found.shape != (size,):
        raise QueryError(f"{label} must return a number for each of the {size} rows; "
                         f"it returned an array of shape {found.shape}")  # fmt: skip
    return found


def _place(error: Exception) -> str:
    """The line of the user's function that failed. It is part of the message, since Spark cuts tracebacks off."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    if not frames:
        return ""
    return f' in line {frames[0].lineno} of "{frames[0].filename}"' + (f": {frames[0].line}" if frames[0].line else "")


def _unknown(name: Any, names: Sequence[str]) -> str:
    """The message that there is no such column."""
    if not isinstance(name, str):
        return f"columns are asked for by name, not by {name!r}. The columns are {', '.join(names) or 'none'}"
    try:
        return find_column(name, names, quoted=True)
    except QueryError as unknown:
        return str(unknown)


def _array(result: Any, label: str, size: int) -> NDArray[np.float64]:
    if isinstance(result, np.ndarray) and not isinstance(result, np.ma.MaskedArray) and result.dtype.kind in "iuf":
        numbers: NDArray[np.float64] = result.astype(np.float64, copy=False)
        return numbers
    try:
        array = result if isinstance(result, pa.Array | pa.ChunkedArray) else pa.array(result, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise QueryError(f"{label} must return an array of numbers, one for each of the {size} rows; it returned "
                         f"{type(result).__name__}") from None  # fmt: skip
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    converted: NDArray[np.float64] = floats(array, label)
    return converted

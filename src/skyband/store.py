"""The columns of the rows that an algorithm holds, found by arrival number."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class RowStore:
    """Rows in the order of their arrival numbers. Rows that nothing holds any more are dropped now and then."""

    def __init__(self, table: pa.Table, number: Ints) -> None:
        self.table = table
        self.number = number

    def take(self, number: Ints, batch: pa.Table, first: int) -> pa.Table:
        """The rows with these arrival numbers; those from ``first`` on are the rows of ``batch``, in order."""
        if not self.table.num_columns:
            return batch.slice(0, 0)
        old = number < first
        if not old.any():
            return batch.take(pa.array(number - first))
        place = np.where(old, self._find(number), self.number.size + number - first)
        return pa.concat_tables([self.table, batch]).take(pa.array(place))

    def keep(self, number: Ints, batch: pa.Table, first: int) -> None:
        """Adds those rows of ``batch`` whose arrival number is among ``number`` (ascending, from ``first`` on)."""
        if number.size:
            self.table = pa.concat_tables([self.table, batch.take(pa.array(number - first))])
            self.number = np.concatenate([self.number, number])
            if self.table.num_columns and self.table.column(0).num_chunks > 16:
                self.table = self.table.combine_chunks()

    def drop_all_but(self, number: Ints) -> None:
        """Forgets every row whose arrival number is not among ``number`` (ascending)."""
        place = np.searchsorted(self.number, number)
        self.table = self.table.take(pa.array(place)).combine_chunks()
        self.number = number

    @property
    def nbytes(self) -> int:
        """Bytes in the columns and the arrival numbers."""
        return int(self.table.nbytes + self.number.nbytes)

    def _find(self, number: Ints) -> Ints:
        span = int(self.number[-1] - self.number[0]) + 1 if self.number.size else 0
        if number.size * 8 < self.number.size or span > 16 * self.number.size:
            return np.searchsorted(self.number, number)
        # Many look-ups in a dense range: a table of places beats a search for each.
        place = np.empty(span, np.int64)
        place[self.number - self.number[0]] = np.arange(self.number.size)
        found: Ints = place[np.clip(number - self.number[0], 0, span - 1)]
        return found


def table_to_bytes(table: pa.Table) -> NDArray[np.uint8]:
    """A table in Arrow's stream format, as an array for :func:`skyband.state.pack`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), np.uint8)


def table_from_bytes(data: NDArray[np.uint8]) -> pa.Table:
    """The inverse of :func:`table_to_bytes`."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


def table_to_arrays(table: pa.Table, prefix: str) -> dict[str, NDArray[Any]]:
    """A table as arrays: numbers and times one by one, so that they can be encoded; the rest in Arrow's format."""
    table = table.combine_chunks()
    plain = [i for i, column in enumerate(table.columns) if _is_plain(column)]
    arrays = {f"{prefix}.{i}": _bits(table.column(i)) for i in plain}
    rest = table.select([i for i in range(table.num_columns) if i not in plain])
    blobs = {"schema": table.schema.empty_table(), "rest": rest}
    return arrays | {f"{prefix}.{name}": table_to_bytes(part) for name, part in blobs.items()}


def table_from_arrays(arrays: Mapping[str, NDArray[Any]], prefix: str) -> pa.Table:
    """The inverse of :func:`table_to_arrays`."""
    schema = table_from_bytes(arrays[f"{prefix}.schema"]).schema
    rest = iter(table_from_bytes(arrays[f"{prefix}.rest"]).columns)
    columns = []
    for i, field in enumerate(schema):
        array = arrays.get(f"{prefix}.{i}")
        if array is None:
            columns.append(next(rest))
        else:
            columns.append(pa.Array.from_buffers(field.type, array.size, [None, pa.py_buffer(array)]))
    return pa.table(columns, schema=schema)


def _is_plain(column: pa.ChunkedArray) -> bool:
    kind = column.type
    number = kind in (pa.int32(), pa.int64(), pa.float64())
    return bool(column.null_count == 0 and (number or pa.types.is_timestamp(kind) or pa.types.is_duration(kind)))


def _bits(column: pa.ChunkedArray) -> NDArray[Any]:
    whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    number = pa.types.is_integer(whole.type) or pa.types.is_floating(whole.type)
    dtype = np.dtype(whole.type.to_pandas_dtype() if number else np.int64)
    if not len(whole):
        return np.empty(0, dtype)
    return np.frombuffer(whole.buffers()[1], dtype, len(whole), whole.offset * dtype.itemsize)

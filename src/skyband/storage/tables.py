"""Turns tables into bytes or arrays, to be saved with a state, and back."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def table_to_bytes(table: pa.Table) -> NDArray[np.uint8]:
    """A table in Arrow's stream format, as an array for :func:`skyband.storage.codec.pack`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), np.uint8)


def table_from_bytes(data: NDArray[np.uint8]) -> pa.Table:
    """The inverse of :func:`table_to_bytes`."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


def table_to_arrays(table: pa.Table, prefix: str) -> dict[str, NDArray[Any]]:
    """A table as arrays: one for each column of numbers or times, which can be encoded; the rest as Arrow bytes."""
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

"""Packs tables into bytes, for their way between tasks and for the state."""

import pyarrow as pa

from skyband.storage import codec as state
from skyband.storage.tables import table_from_arrays, table_to_arrays


def packed(table: pa.Table) -> bytes:
    """A table in few bytes: between Python and Java, copying bytes again and again is what costs most."""
    return state.pack({}, table_to_arrays(table, "table"))


def unpacked(data: bytes) -> pa.Table:
    """The inverse of :func:`packed`."""
    return table_from_arrays(state.unpack(data)[1], "table")

"""Tables on their way between tasks, and in the state, as bytes."""

import pyarrow as pa

from skyband.storage import codec as state
from skyband.storage.tables import table_from_arrays, table_to_arrays


def packed(table: pa.Table) -> bytes:
    """A table in few bytes: what costs most between Python and Java is to copy them, again and again."""
    return state.pack({}, table_to_arrays(table, "table"))


def unpacked(data: bytes) -> pa.Table:
    """The inverse of :func:`packed`."""
    return table_from_arrays(state.unpack(data)[1], "table")

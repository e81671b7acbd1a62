"""Partitions as dense numbers: each combination of values of the partition columns gets a code, from 0."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Codes:
    """Codes for the values of one column, in the order in which they first came. NULL is a value."""

    def __init__(self, type: pa.DataType) -> None:
        self.values: pa.Array = pa.array([], type)

    def encode(self, column: pa.Array) -> Ints:
        """The code of every value; new values get the next codes."""
        batch = pc.dictionary_encode(column, null_encoding="encode")
        known = pc.index_in(batch.dictionary, value_set=self.values)
        codes = known.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        new = np.flatnonzero(codes < 0)
        if new.size:
            codes[new] = np.arange(len(self.values), len(self.values) + new.size)
            self.values = pa.concat_arrays([self.values, batch.dictionary.take(pa.array(new))])
        coded: Ints = codes[batch.indices.to_numpy(zero_copy_only=False)]
        return coded


class Keys:
    """Codes for combinations of values of the partition columns."""

    def __init__(self, rows: pa.Table) -> None:
        """Begins with the combinations in ``rows``, which have the codes 0, 1, …"""
        types = [field.type for field in rows.schema]
        self._columns = [Codes(type) for type in types]
        self._pairs = [Codes(pa.int64()) for _ in types[1:]]
        self.rows = rows.slice(0, 0)
        self._rank: Ints | None = None
        self.encode(rows)

    def encode(self, table: pa.Table) -> Ints:
        """The code of each row; combinations not seen before get the next codes."""
        table = table.select(self.rows.column_names)
        code = self._columns[0].encode(_whole(table.column(0)))
        for codes, pairs, column in zip(self._columns[1:], self._pairs, table.columns[1:], strict=True):
            # Two codes below 2**31 make one number, which is a value like any other.
            code = pairs.encode(pa.array(code << 32 | codes.encode(_whole(column))))
        known = self.rows.num_rows
        if code.size and (new := int(code.max()) + 1 - known) > 0:
            first = np.full(new, -1)
            fresh = np.flatnonzero(code >= known)[::-1]
            first[code[fresh] - known] = fresh
            self.rows = pa.concat_tables([self.rows, table.take(pa.array(first))]).combine_chunks()
            self._rank = None
        return code

    def only(self, codes: Ints) -> tuple["Keys", Ints]:
        """Some of the combinations, coded anew, and the new code of every old one (-1: left out)."""
        code = np.full(len(self), -1)
        code[codes] = np.arange(codes.size)
        return Keys(self.rows.take(pa.array(codes))), code

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def rank(self) -> Ints:
        """Where each code stands when the partitions are sorted by their values, NULL last."""
        if self._rank is None:
            order = pc.sort_indices(self.rows, sort_keys=[(name, "ascending") for name in self.rows.column_names])
            self._rank = np.empty(len(self), np.int64)
            self._rank[order.to_numpy()] = np.arange(len(self))
        return self._rank

    @property
    def nbytes(self) -> int:
        """Bytes in the tables behind the codes."""
        return int(self.rows.nbytes + sum(codes.values.nbytes for codes in self._columns + self._pairs))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)

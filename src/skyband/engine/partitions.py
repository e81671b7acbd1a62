"""Numbers partitions and tags: each combination of values of some columns gets a code 0, 1, 2, …"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyband.engine.rows import RowStore

Ints = NDArray[np.int64]

FEW = 64  # values that are looked up one by one, so that they do not cost what has been seen before
SHARE = 16  # of the codes: where fewer are to be ranked, only they are sorted


class Codes:
    """Gives a code to each value of one column, in the order in which the values first came. NULL is a value too."""

    def __init__(self, type: pa.DataType) -> None:
        self._values: pa.Array = pa.array([], type)
        self._new: list[Any] = []  # those that came one by one since
        self._code: dict[Any, int] = {}  # of the first values; the others are added when they are next needed
        self._plain = any(kind(type) for kind in (pa.types.is_integer, pa.types.is_boolean, pa.types.is_string,
                                                  pa.types.is_large_string, pa.types.is_binary))  # fmt: skip

    def encode(self, column: pa.Array) -> Ints:
        """The code of every value; new values get the next codes."""
        if self._plain and 0 < len(column) <= FEW:
            return self._one_by_one(column.to_pylist())
        batch = pc.dictionary_encode(column, null_encoding="encode")
        known = pc.index_in(batch.dictionary, value_set=self.values)
        codes = known.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        new = np.flatnonzero(codes < 0)
        if new.size:
            codes[new] = np.arange(len(self.values), len(self.values) + new.size)
            self._values = pa.concat_arrays([self.values, batch.dictionary.take(pa.array(new))])
        coded: Ints = codes[batch.indices.to_numpy(zero_copy_only=False)]
        return coded

    @property
    def values(self) -> pa.Array:
        """The values, in the order of their codes."""
        if self._new:
            self._values = pa.concat_arrays([self._values, pa.array(self._new, self._values.type)])
            self._new = []
        return self._values

    def _one_by_one(self, values: list[Any]) -> Ints:
        code = self._code
        if len(code) < len(self._values):
            code |= zip(self._values.slice(len(code)).to_pylist(), range(len(code), len(self._values)), strict=True)
        for value in values:
            if value not in code:
                code[value] = len(code)
                self._new.append(value)
        return np.array([code[value] for value in values])


class Keys:
    """Gives a code to each combination of values of some columns."""

    def __init__(self, rows: pa.Table) -> None:
        """Begins with the combinations in ``rows``, which have the codes 0, 1, …"""
        types = [field.type for field in rows.schema]
        self._columns = [Codes(type) for type in types]
        self._pairs = [Codes(pa.int64()) for _ in types[1:]]
        self._rows = RowStore(rows.slice(0, 0), np.empty(0, np.int64))
        self._rank: Ints | None = None
        self.encode(rows)

    def encode(self, table: pa.Table) -> Ints:
        """The code of each row; combinations not seen before get the next codes."""
        table = table.select(self._rows.names)
        code = self._columns[0].encode(_whole(table.column(0)))
        for codes, pairs, column in zip(self._columns[1:], self._pairs, table.columns[1:], strict=True):
            # Two codes below 2**31 are packed into one number, which is then coded as a value like any other.
            code = pairs.encode(pa.array(code << 32 | codes.encode(_whole(column))))
        known = len(self)
        if code.size and (new := int(code.max()) + 1 - known) > 0:
            first = np.full(new, -1)
            fresh = np.flatnonzero(code >= known)[::-1]
            first[code[fresh] - known] = fresh
            self._rows.keep(np.arange(known, known + new), table.take(pa.array(first)), known)
            self._rank = None
        return code

    def only(self, codes: Ints) -> tuple["Keys", Ints]:
        """A copy with only some of the combinations, which get new codes; and the new code of each old one, or -1."""
        code = np.full(len(self), -1)
        code[codes] = np.arange(codes.size)
        return Keys(self.rows.take(pa.array(codes))), code

    def __len__(self) -> int:
        return self._rows.size

    @property
    def rows(self) -> pa.Table:
        """All combinations, in the order of their codes."""
        return self._rows.table

    def take(self, codes: Ints) -> pa.Table:
        """The combinations that have these codes."""
        return self._rows.take(codes, self._rows.empty, len(self))

    def rank(self, codes: Ints) -> Ints:
        """Numbers in the order in which the combinations of these codes are sorted by their values, NULL last."""
        if self._rank is None and codes.size * SHARE < len(self):
            some, place = np.unique(codes, return_inverse=True)
            return _sorted(self.take(some))[place]
        if self._rank is None:
            self._rank = _sorted(self.rows)
        return self._rank[codes]

    @property
    def nbytes(self) -> int:
        """Bytes in the tables behind the codes."""
        return self._rows.nbytes + sum(int(codes.values.nbytes) for codes in self._columns + self._pairs)


def _sorted(rows: pa.Table) -> Ints:
    """Where each row stands when they are sorted, NULL last."""
    order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in rows.column_names])
    rank = np.empty(rows.num_rows, np.int64)
    rank[order.to_numpy()] = np.arange(rows.num_rows)
    return rank


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)

"""What a query over groups takes from each row: its amount, its stream, and values that are counted once."""

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import QueryError
from skyband.expressions import find_column, scoring
from skyband.query.asked import LARGEST, Input, Reader
from skyband.query.measures import Floats, Measure, Measured

if TYPE_CHECKING:
    from skyband.query.groups import TopKGroups

VALUE = "skyband: value"  # the column of values for count_distinct; users' columns cannot have such a name


class AmountMeasure(Measure):
    """Takes from each row its amount, multiplied by the weight of its stream, and tags for its group and stream.

    The tags are codes for the group (within its partition), for the stream, and for each ``count_distinct`` for the
    group together with the value. What is in the columns of ``values`` depends on the query:

    - streams given by name: the place of the row's stream among them, instead of a tag;
    - approximate answers: a hash of the id, as the last column;
    - several aggregates: what each of them needs from the row, NaN for none. The score is then 0, or NaN for a row that
      is invalid.
    """

    def __init__(self, query: "TopKGroups") -> None:
        self.query = query
        self.named = isinstance(query.streams, tuple)
        objects = tuple(dict.fromkeys((*query.partition_by, *query.ids)))
        self.tags = (objects, *(((query.stream,),) if query.stream and not self.named else ()))
        counted, asked = query.aggregate in ("count", "count_distinct"), query.asked
        self.value = None
        if query.value is not None:
            ranked = Input(query.value, not counted, bool(query.weights))
            self.value = Reader(ranked, f"value={query.value!r}")
        self.number = None  # the value that must be within the bounds
        if query.value is not None and query.bounds is not None:
            self.number = scoring.compile_number(query.value, f"value={query.value!r}, with bounds,")
        self.inputs = [] if asked is None or asked.alone else [self._reader(wanted) for wanted in asked.inputs]
        self.distinct = [] if asked is None else [self._reader(Input(of, False, False)) for of in asked.distinct]

    def evaluate(self, table: pa.Table) -> Measured:
        query, asked = self.query, self.query.asked
        refused = self._refused(table)
        place = None
        if self.named:
            place = self._places(table, cast(tuple[str, ...], query.streams))
            refused |= place < 0
        if asked is not None and not asked.alone:
            columns = [self._weighted(reader.read(table), table) if wanted.weighted else reader.read(table)
                       for wanted, reader in zip(asked.inputs, self.inputs, strict=True)]  # fmt: skip
            values = np.stack([*columns], axis=1) if columns else np.empty((table.num_rows, 0))
            if not asked.of_rows:  # a row with no value for any aggregate is invalid
                refused |= np.isnan(values).all(axis=1)
            return Measured(np.where(refused, np.nan, 0.0), values)
        amount = np.ones(table.num_rows) if self.value is None else self.value.read(table)
        if query.weights:
            amount = self._weighted(amount, table)
        beside = [place] if place is not None else []
        if query.sketched:
            beside.append(self._hashes(table))
        values = np.stack(beside, axis=1).astype(np.float64) if beside else np.empty((amount.size, 0))
        return Measured(np.where(refused, np.nan, amount) if refused.any() else amount, values)

    def tagged(self, table: pa.Table) -> list[pa.Table]:
        coded = super().tagged(table)
        return [*coded, *(coded[0].append_column(VALUE, reader.known(table)) for reader in self.distinct)]

    def check(self, table: pa.Table, measured: Measured, before: Callable[[], list[pa.Table]]) -> None:
        """Counts the streams, if their number is declared, and refuses more of them."""
        declared = self.query.streams
        if not isinstance(declared, int):
            return
        ((name,),) = self.tags[1:]
        name = find_column(name, table.schema.names)
        known = [rows.column(name) for rows in before() if name in rows.column_names]
        coming = table.column(name).filter(pa.array(~np.isnan(measured.score)))
        found = dict.fromkeys(stream for column in (*known, coming) for stream in pc.unique(column).to_pylist())
        if len(found) > declared:
            listed = ", ".join("NULL" if name is None else str(name) for name in list(found)[:20])
            more = f" and {len(found) - 20} others" if len(found) > 20 else ""
            raise QueryError(f"streams={declared}, but rows of {len(found)} streams have come ({self.query.stream}: "
                             f"{listed}{more}); say how many there are, or name those that are meant: "
                             "streams=(...)")  # fmt: skip

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        found = [find_column(name, names) for group in self.tags for name in group]
        found += [find_column(self.query.stream, names)] if self.query.stream else []
        for reader in (*([self.value] if self.value else ()), *self.inputs, *self.distinct):
            found += reader.needs(names)
        return tuple(dict.fromkeys(found))

    def _reader(self, wanted: Input) -> Reader:
        own = self.query.value is not None and wanted.of == scoring.compile_number(self.query.value, "value").sql
        return Reader(
            wanted, f"value={self.query.value!r}" if own else f"outputs= or having=: an aggregate of {wanted.of}"
        )

    def _refused(self, table: pa.Table) -> Any:
        """Which rows have a value outside the bounds; for a product over streams, a value below 0."""
        query = self.query
        if self.number is not None:
            assert query.bounds is not None
            amount = self.number.evaluate(table)
            return (amount < query.bounds[0]) | (amount > query.bounds[1])
        if query.aggregate == "product" and query.asked is None and self.value is not None:
            return self.value.read(table) < 0
        return np.zeros(table.num_rows, bool)

    def _weighted(self, amount: Floats, table: pa.Table) -> Floats:
        place = self._places(table, tuple(self.query.weights))
        amount = amount * np.array([*self.query.weights.values(), 1.0])[place]  # -1, no weight given, is the last: 1
        return np.where(np.abs(amount) <= LARGEST, amount, np.nan)

    def _hashes(self, table: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
        """48 bits of each id, the same on every machine and in every run."""
        codes, before = np.zeros(table.num_rows, np.int64), [""]
        for name in self.query.ids:  # with several columns, the hash of one goes into that of the next
            column = table.column(find_column(name, table.schema.names)).combine_chunks()
            plain = pa.types.is_dictionary(column.type)
            coded = column if plain else pc.dictionary_encode(column, null_encoding="encode")
            texts = [*map(repr, coded.dictionary.to_pylist()), ""]
            pairs = codes * len(texts) + np.asarray(pc.fill_null(coded.indices, len(texts) - 1), np.int64)
            distinct, codes = np.unique(pairs, return_inverse=True)
            both = (before[pair // len(texts)] + texts[pair % len(texts)] for pair in distinct.tolist())
            before = [hashlib.blake2b(text.encode(), digest_size=6).hexdigest() for text in both]
        return np.array([int(digest, 16) for digest in before], np.int64)[codes]

    def _places(self, table: pa.Table, listed: tuple[str, ...]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The place of each row's stream in a list of names; -1 if it is not there."""
        assert self.query.stream is not None
        column = table.column(find_column(self.query.stream, table.schema.names))
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        text = column.cast(kind).cast(pa.string())
        found = pc.index_in(text, value_set=pa.array(listed, pa.string()))
        return np.asarray(pc.fill_null(found, -1), np.int64)

"""Turns a user's batch into an Arrow table with the columns and types of the stream, and settles these types.

The type of a column is given from the start, or settled by its first value that is not NULL; until then it is *open*.
After that integers may widen to larger ones and to floats, decimals to larger decimals, and times to finer units, as
long as nothing is lost. Every other change is refused, and nothing is parsed from text.

Dictionaries are decoded and views become plain arrays here, so that no other code has to know of these encodings.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import QueryError
from skyband.expressions import RESERVED

# Whatever has the Arrow PyCapsule interface, a pandas.DataFrame, or a Mapping[str, ArrayLike].
Batch = Any
Types = Any  # pa.Schema | Mapping[str, pa.DataType | str]

_ONE_TYPE = "bring the column to one type before it is pushed"


def as_table(batch: Batch) -> pa.Table:
    """Any batch as an Arrow table; plain numeric arrays are not copied."""
    if isinstance(batch, pa.Table):
        return batch
    try:
        if isinstance(batch, Mapping):
            return pa.table({name: _array(name, values) for name, values in batch.items()})
        if hasattr(batch, "iloc") and hasattr(batch, "columns"):  # pandas, without its index
            for name in batch.columns:
                _check_zones(name, batch[name])
            return pa.Table.from_pandas(batch, preserve_index=False)
        if hasattr(batch, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(batch).read_all()
        if hasattr(batch, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(batch)])
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise QueryError(f"the batch cannot be read as a table: {error}") from None
    if hasattr(batch, "collect"):
        raise QueryError(f"a {type(batch).__name__} is a plan, not rows: push what its collect() gives")
    raise QueryError("a batch is an Arrow table, record batch or reader, a DataFrame of pandas or polars, a relation "
                     "of DuckDB, anything else with the Arrow PyCapsule interface, or a dict of arrays; not "
                     f"{type(batch).__name__}")  # fmt: skip


def _array(name: str, values: Any) -> Any:
    """An Arrow array of any values; if Arrow refuses them, once more with pandas' missing values replaced by None."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if hasattr(values, "__arrow_c_stream__") and not hasattr(values, "iloc"):
        return pa.chunked_array(values)
    _check_zones(name, values)
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError) as error:
        with suppress(pa.ArrowException, TypeError, ValueError):
            if hasattr(values, "__len__"):  # an iterator has been used up
                return pa.array(values, from_pandas=True)
        raise QueryError(f"column {name!r} of a batch cannot be read: {error}; {_ONE_TYPE}") from None


def _check_zones(name: Any, values: Any) -> None:
    """Refuses a column of Python times of which some have a zone and some have none: Arrow would mix them up."""
    if not isinstance(values, list | tuple) and str(getattr(values, "dtype", "")) != "object":
        return
    first = next((value for value in values if value is not None and value == value), None)
    if not isinstance(first, datetime):
        return
    zones = {value.tzinfo is None for value in values if isinstance(value, datetime) and value == value}
    if len(zones) > 1:
        raise QueryError(f"column {name!r} of a batch has times with a zone and without one; {_ONE_TYPE}")


@dataclass(frozen=True)
class Columns:
    """The columns of a stream, as far as its batches have shown them.

    Attributes:
        schema: the names and types; None before the first batch. An open column has the type of its NULLs.
        open: the columns of which no value has come yet.
        given: the types that were given from the start.
    """

    schema: pa.Schema | None = None
    open: frozenset[str] = frozenset()
    given: Mapping[str, pa.DataType] = field(default_factory=dict)

    def fit(self, table: pa.Table) -> tuple[pa.Table, "Columns"]:
        """A batch with the columns and types of the stream, and the columns of the stream after this batch."""
        if self.schema is not None and not self.open and table.schema.equals(self.schema):
            return table.replace_schema_metadata(), self
        names = self._names(table.column_names)
        fitted = [self._fitted(name, _plain(table.column(name), name)) for name in names]
        schema = pa.schema([(name, column.type) for name, (column, _) in zip(names, fitted, strict=True)])
        still_open = frozenset(name for name, (_, settled) in zip(names, fitted, strict=True) if not settled)
        table = pa.Table.from_arrays([column for column, _ in fitted], schema=schema)
        if self.schema is not None and schema.equals(self.schema) and still_open == self.open:
            return table, self
        return table, Columns(schema, still_open, self.given)

    def untyped(self, table: pa.Table) -> tuple[pa.Table, "Columns"]:
        """The same batch and columns, but open columns have no type at all (Arrow's null type)."""
        for i, name in enumerate(table.column_names):
            if name in self.open:
                table = table.set_column(i, name, pa.chunked_array([pa.nulls(table.num_rows)]))
        return table, Columns(table.schema, self.open, self.given)

    def _names(self, found: list[str]) -> list[str]:
        check_distinct(found)
        if self.schema is None:
            check_free(found)
            if missing := [name for name in self.given if name not in found]:
                raise QueryError(f"the first batch has no column {missing[0]!r}, which schema= names; it has {found}")
            return found
        if missing := [name for name in self.schema.names if name not in found]:
            raise QueryError(f"a batch has no column {missing[0]!r}; the first batch had {self.schema.names}")
        return list(self.schema.names)

    def _fitted(self, name: str, column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, bool]:
        """A column of a batch, cast to the type that it has from now on, and whether that type is settled."""
        given = self.given.get(name)
        known = given if given is not None else None if self.schema is None else self.schema.field(name).type
        if column.null_count == len(column):
            kind = column.type if known is None or pa.types.is_null(known) else known
            settled = given is not None or (self.schema is not None and name not in self.open)
            return (column if column.type == kind else pa.chunked_array([pa.nulls(len(column), kind)])), settled
        if known is None or column.type == known or (given is None and name in self.open):
            return column, True
        wider = _common(known, column.type)
        if wider is None:
            raise QueryError(f"column {name!r} of a batch is of type {column.type}; {self._was(name, known)}"
                             f"{_advice(known, column.type)}")  # fmt: skip
        kind = wider if given is None else given
        try:
            return column.cast(kind), True
        except pa.ArrowException as error:
            raise QueryError(f"column {name!r} of a batch is of type {column.type}; {self._was(name, known)}, and not "
                             f"all of it can be written as {kind} without loss ({error}): {_ONE_TYPE}"
                             ) from None  # fmt: skip

    def _was(self, name: str, known: pa.DataType) -> str:
        return f"schema= gives it {known}" if name in self.given else f"it was of type {known} before"


def check_distinct(names: Sequence[str]) -> None:
    """Refuses two columns of the same name."""
    if len(set(names)) != len(names):
        raise QueryError(f"a column name occurs twice among {[*names]}")


def check_free(names: Sequence[str]) -> None:
    """Refuses columns with names that are reserved for skyband's own columns, which travel beside the user's."""
    if taken := [name for name in names if name.lower().startswith(RESERVED)]:
        begin = " or ".join(map(repr, RESERVED))
        raise QueryError(f"column {taken[0]!r}: names that begin with {begin} are kept for columns that skyband adds "
                         "to those of the stream; give the column another name")  # fmt: skip


def given_types(schema: Types | None) -> dict[str, pa.DataType]:
    """The argument ``schema`` of a monitor as plain types by name.

    >>> given_types({"x": "float64", "tag": pa.dictionary(pa.int8(), pa.string())})
    {'x': DataType(double), 'tag': DataType(string)}
    """
    if schema is None:
        return {}
    if not isinstance(schema, pa.Schema | Mapping):
        raise QueryError(f"schema={schema!r} must be a pyarrow.Schema, or map the names of columns to Arrow types such "
                         'as "int64"')  # fmt: skip
    pairs = [(f.name, f.type) for f in schema] if isinstance(schema, pa.Schema) else [*schema.items()]
    check_distinct([name for name, _ in pairs])
    types = {}
    for name, kind in pairs:
        try:
            types[name] = _plain_type(pa.type_for_alias(kind) if isinstance(kind, str) else pa.field(name, kind).type)
        except (ValueError, TypeError):
            raise QueryError(f"schema: column {name!r} is given {kind!r}, which is no Arrow type; write for instance "
                             '"int64", "float64", "string" or pyarrow.timestamp("us", "UTC")') from None  # fmt: skip
    return types


def retyped(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows that are held, cast to the types that the columns of the stream have now; other columns stay unchanged."""
    for i, old in enumerate(table.schema):
        if old.name not in schema.names or old.type == (kind := schema.field(old.name).type):
            continue
        column = table.column(i)
        try:
            void = column.null_count == len(column)
            column = pa.chunked_array([pa.nulls(len(column), kind)]) if void else column.cast(kind)
        except pa.ArrowException as error:
            raise QueryError(f"column {old.name!r} of a batch is of type {kind}; it was of type {old.type} before, and "
                             f"not all rows that are kept can be written as {kind} without loss ({error}): {_ONE_TYPE}"
                             ) from None  # fmt: skip
        table = table.set_column(i, pa.field(old.name, kind), column)
    return table


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the same values without dictionaries and views."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain_type(kind.value_type), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind):
        return pa.large_list(_plain_type(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([(child.name, _plain_type(child.type)) for child in kind])
    return kind


def _plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """The same values without dictionaries and views."""
    kind = _plain_type(column.type)
    if kind == column.type:
        return column
    try:
        return pa.chunked_array([_plain_array(chunk, kind) for chunk in column.chunks], kind)
    except pa.ArrowException as error:
        raise QueryError(f"column {name!r} is of type {column.type}, which cannot be turned into {kind} ({error}): "
                         "leave the column out, or turn it into plain values before it is pushed"
                         ) from None  # fmt: skip


def _plain_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_dictionary(array.type):  # of views too, whose dictionaries Arrow does not decode itself
        return _plain_array(array.dictionary, kind).take(array.indices)
    return array.cast(kind)


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of two types without loss, if these are of one kind."""
    if _kind(one) != _kind(other):
        return None
    if pa.types.is_timestamp(other) and other.tz != one.tz:  # the same moments, read on another clock
        other = pa.timestamp(other.unit, one.tz)
    schemas = [pa.schema([("", kind)]) for kind in (one, other)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return None


def _kind(kind: pa.DataType) -> str:
    """A name for the kind of a type: types of one kind may have a common type."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "number"
    if pa.types.is_decimal(kind):
        return "decimal"
    if _is_text(kind):
        return "text"
    if pa.types.is_timestamp(kind):
        return "moment" if kind.tz else "time without a zone"
    return "any"


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _advice(before: pa.DataType, now: pa.DataType) -> str:
    """Advice for the user about a change of type that was refused."""
    if pa.types.is_timestamp(before) and pa.types.is_timestamp(now):
        return ": times with a zone and without one are never mixed; give all of them one, or none, which means UTC"
    return f"; nothing is parsed from text: {_ONE_TYPE}" if _is_text(before) or _is_text(now) else f": {_ONE_TYPE}"

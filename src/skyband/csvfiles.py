"""Reads CSV files, by the same rules in this process and in Spark's workers.

- The first row of a file names its columns; the files of one table have the same names, in any order. A file of no
  bytes has no rows.
- Fields are separated by the delimiter. One in double quotes may hold it, line ends, and quotes written twice.
- An empty field is NULL, quoted or not. So are ``NA``, ``N/A``, ``NULL``, ``NaN`` and the like in columns of numbers,
  times and booleans; in columns of text they are text. Empty lines are left out.
- Types are those that every value of the files fits when reading begins: whole numbers, else numbers, else booleans,
  dates, timestamps (to the microsecond), else text. Whole numbers beyond 64 bits are decimals, so that none is
  rounded. A directory ``name=value`` gives its files a column.
- A row with more or fewer fields than the header, a value that does not fit the type of its column, and text that is
  not UTF-8 are refused, with the file and the row. Nothing is dropped.
- Where the event time is text, each value is read by itself, and one that is no time is NULL: its row is invalid.
"""

import csv as plain
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import compute, csv

from skyband.errors import SkybandError

# The first that all values fit is taken; Arrow guesses from the beginning of a file where to start.
_LONG = pa.decimal128(38, 0)  # for whole numbers beyond 64 bits
_TYPES = (pa.null(), pa.int64(), _LONG, pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("s"), pa.timestamp("ns"),
          pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC"), pa.string())  # fmt: skip
_MISFIT = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?.*?(?:(?:invalid value|string|converting) ('.*').*)?$",
                     re.DOTALL)  # fmt: skip
_BROKEN = re.compile(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+): (.*)$", re.DOTALL)
_INTEGER = re.compile(r"-?\d{1,18}")
_LONG_INTEGER = re.compile(r"'-?\d{19,38}'")
_TIMES = (pa.timestamp("us"), pa.timestamp("us", "UTC"))  # without a zone, and with one


class File(NamedTuple):
    """One of the CSV files that make up a table.

    Attributes:
        name: what messages call it.
        source: its path, or the bytes in it.
        below: its path within the directory that was named; parts of it may be ``name=value``.
    """

    name: str
    source: str | bytes
    below: str = ""

    @property
    def parts(self) -> dict[str, str]:
        """The columns that its directories ``name=value`` give it.

        >>> File("a.csv", "/trades/day=3/a.csv", "day=3/a.csv").parts
        {'day': '3'}
        """
        pairs = (part.partition("=") for part in PurePath(self.below).parts[:-1])
        return {name: value for name, sign, value in pairs if sign and name}

    def open(self) -> pa.NativeFile:
        return pa.BufferReader(self.source) if isinstance(self.source, bytes) else pa.input_stream(self.source)


@dataclass(frozen=True)
class Reader:
    """Reads files that have the same columns; :func:`reader` finds these and builds it.

    Attributes:
        delimiter: the character between fields.
        fields: the columns in the files, with the types as which their values are read.
        schema: the columns of the rows: those in the files, and those that directories give.
    """

    delimiter: str
    fields: pa.Schema
    schema: pa.Schema

    def read(self, file: File) -> Iterator[pa.RecordBatch]:
        """The rows of one file, as batches."""
        parts = file.parts
        if [*self.fields.names, *parts] != self.schema.names:
            raise SkybandError(f"{file.name}: its directories give the columns {list(parts)}; those of the other files "
                               f"give {self.schema.names[len(self.fields) :]}")  # fmt: skip
        for batch in _batches(file, self.delimiter, {field.name: field.type for field in self.fields}):
            _agree(file, batch.schema.names, self.fields.names)
            columns = [_column(batch[name], self.schema.field(name).type) for name in self.fields.names]
            given = ((value, self.schema.field(name).type) for name, value in parts.items())
            columns += [pa.repeat(pa.scalar(value).cast(kind), batch.num_rows) for value, kind in given]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def reader(files: Sequence[File], delimiter: str = ",", time: str | None = None) -> Reader:
    """Builds a reader for some files and others like them, after reading these to find the types of their columns.

    Args:
        files: at least one.
        delimiter: the character between fields.
        time: the event-time column; if it is text, it is turned into timestamps.
    """
    if not (filled := [file for file in files if _header(file, delimiter)]):
        raise SkybandError(f"{files[0].name} is empty: its first row must name its columns")
    files = filled
    types: dict[str, pa.DataType] = {}
    names: list[str] = []
    place = 0
    while place < len(files):
        if found := _fits(files[place], delimiter, types):
            names = names or found
            _agree(files[place], found, names)
            place += 1
        else:  # the new type must fit the files before, too
            place = 0
    fields = pa.schema([(name, types.get(name, pa.string())) for name in names])
    shown = {field.name: _shown(field.type) for field in fields}
    for name in files[0].parts:
        whole = all(_INTEGER.fullmatch(file.parts.get(name, "")) for file in files)
        shown[name] = pa.int64() if whole else pa.string()
    if time is not None and shown.get(time) == pa.string():
        text = Reader(delimiter, fields, pa.schema(shown.items()))
        shown[time] = time_type((batch[time] for file in files for batch in text.read(file)), time)
    return Reader(delimiter, fields, pa.schema(shown.items()))


def time_type(columns: Iterable[pa.Array | pa.ChunkedArray], name: str) -> pa.DataType:
    """The timestamp type of a column of text: with a zone or without, as in the first text that is a time."""
    other = None
    for column in columns:
        for text in column.unique().drop_null().to_pylist():
            for kind in _TIMES:
                if _time(text, kind) is not None:
                    return kind
            other = other or text
    if other is None:
        return _TIMES[0]
    raise SkybandError(f"{name} = {other!r} is not a time; write times as 2024-12-31 23:59:59.5, or name the column "
                       "that has them with on=")  # fmt: skip


def times(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """A column of text as times of this type; NULL where a text is no time."""
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        texts = column.unique()
        values = pa.array([None if text is None else _time(text, kind) for text in texts.to_pylist()], kind)
        return values.take(compute.index_in(column, texts))


def _time(text: str, kind: pa.DataType) -> Any:
    try:
        return pa.scalar(text).cast(kind)
    except pa.ArrowInvalid:
        return None


def _fits(file: File, delimiter: str, types: dict[str, pa.DataType]) -> list[str]:
    """The names of a file's columns if all its values fit the types; no names if not, and one type is then made wider.

    A column that has no type yet, because it had no value in the files before, gets its type from this file.
    """
    names: list[str] = []
    try:
        for batch in _batches(file, delimiter, types):
            names = batch.schema.names
            if guessed := [
                field.name for field in batch.schema if field.type == pa.float64() and field.name not in types
            ]:
                types.update(dict.fromkeys(guessed, pa.int64()))  # they may be whole numbers beyond 64 bits
                return []
            for field in batch.schema:
                if field.type not in _TYPES:  # times of day, and text that is not UTF-8
                    types[field.name] = pa.string()
                    return []
                if field.type != pa.null():
                    types.setdefault(field.name, field.type)
    except _MisfitError as misfit:
        if misfit.type not in _TYPES[:-1]:
            raise
        wider = _TYPES[_TYPES.index(misfit.type) + 1]
        if wider == _LONG and not _LONG_INTEGER.fullmatch(misfit.value or ""):
            wider = pa.float64()
        types[misfit.column] = wider
        return []
    return names


class _MisfitError(SkybandError):
    """A value does not fit the type of its column."""

    def __init__(self, sentence: str, column: str, type: pa.DataType, value: str | None) -> None:
        super().__init__(sentence)
        self.column = column
        self.type = type
        self.value = value


def _batches(file: File, delimiter: str, types: dict[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    """The rows of a file, after an empty batch that shows its columns; types that are not given are guessed."""
    names = _header(file, delimiter)
    if not names:
        return
    kinds = types
    try:
        stream = csv.open_csv(
            file.open(),
            csv.ReadOptions(use_threads=False),  # or errors would not tell the row
            csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            csv.ConvertOptions(column_types=types),
        )
        kinds = {field.name: field.type for field in stream.schema}
        yield pa.RecordBatch.from_pylist([], stream.schema)
        yield from stream
    except pa.ArrowInvalid as error:
        if broken := _BROKEN.match(str(error)):
            row, expected, got, text = broken.groups()
            raise SkybandError(f"{file.name}{_at(row)}: {got} fields where the header has {expected}: {text}") from None
        if misfit := _MISFIT.match(str(error)):
            column, row, value = misfit.groups()
            name = names[int(column)]
            kind = kinds.get(name, pa.string())
            wrong = f"{value or 'a value'} does not fit the type of the column, {kind}"
            if "UTF8" in str(error):
                wrong = "the text is not UTF-8"
            raise _MisfitError(f"{file.name}{_at(row)}: {name} = {wrong}", name, kind, value) from None
        raise SkybandError(f"{file.name} cannot be read as CSV: {error}") from None


def _header(file: File, delimiter: str) -> list[str]:
    """The names of a file's columns; none in an empty file."""
    text = io.TextIOWrapper(file.open(), "utf-8-sig", errors="replace", newline="")
    names = next(filter(None, plain.reader(text, delimiter=delimiter)), [])
    if twice := [name for name in names if names.count(name) > 1]:
        raise SkybandError(f"{file.name}: the first row, which names the columns, has {twice[0]!r} twice")
    return names


def _at(row: str | None) -> str:
    return f", row {row} (the header is row 1)" if row else ""


def _agree(file: File, names: Sequence[str], expected: Sequence[str]) -> None:
    if missing := [name for name in expected if name not in names]:
        raise SkybandError(f"{file.name} has no column {missing[0]!r}; the other files have {', '.join(expected)}")
    if more := [name for name in names if name not in expected]:
        raise SkybandError(f"{file.name} has a column {more[0]!r}; the other files have {', '.join(expected)}")


def _shown(kind: pa.DataType) -> pa.DataType:
    """The type of a column in the rows: times to the microsecond, as in the engine and in Spark."""
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


def _column(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_string(column.type):
        return column.cast(kind, safe=False)  # but for times of a nanosecond nothing is lost
    column = compute.if_else(compute.equal(column, ""), None, column)
    return column if pa.types.is_string(kind) else times(column, kind)

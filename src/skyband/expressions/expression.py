"""SQL expressions that are evaluated over the columns of a table, a block of rows at a time."""

import difflib
from collections.abc import Iterator, Sequence

import pyarrow as pa
from sqlglot import exp

from skyband.errors import QueryError
from skyband.expressions.frame import Frame, Reference, reference
from skyband.expressions.plain import Plain
from skyband.expressions.spark import spark_text
from skyband.expressions.tree import parse
from skyband.expressions.values import Value

BLOCK = 1 << 17  # rows in a block: so few that intermediate results stay in the cache and their memory is reused


RESERVED = ("skyband: ", "_skyband_")  # prefixes of skyband's own columns, which stand beside the user's


def find_column(name: str, names: Sequence[str], quoted: bool = False, field: str = "") -> str:
    """The column among ``names`` that a name means: the one that is equal, or else the only one that differs in case.

    A quoted name must be equal. Errors mention the ``field`` of the query that the name stands in.

    >>> find_column("Price", ["price", "volume"])
    'price'
    >>> find_column("pirce", ["price", "volume"])
    Traceback (most recent call last):
    skyband.errors.QueryError: there is no column 'pirce'; did you mean 'price'? The columns are price, volume
    """
    found = [other for other in names if other == name]
    if not found and not quoted:
        found = [other for other in names if other.lower() == name.lower()]
    label = f"{field}: " if field else ""
    if len(found) > 1:
        raise QueryError(
            f"{label}{name!r} may mean {len(found)} columns ({', '.join(found)}); give each a name of its own"
        )
    if not found:
        hint = f"; did you mean {close!r}?" if (close := close_to(name, names)) else "."
        raise QueryError(f"{label}there is no column {name!r}{hint} The columns are {', '.join(names) or 'none'}")
    return found[0]


def close_to(name: str, names: Sequence[str]) -> str | None:
    """The one of ``names`` that is most similar to a name, if any is; for hints in errors."""
    close = difflib.get_close_matches(name.lower(), [other.lower() for other in names], 1)
    return next((other for other in names if other.lower() in close), None)


class Expression:
    """An SQL expression that was parsed and uses allowed constructs only.

    Args:
        text: the SQL text.
        label: what errors call it: the field of the query, and what was given.
        sides: for an expression over several rows, their names: with ``a`` and ``b``, ``a.x`` is the column "a.x".
    """

    def __init__(self, text: str, label: str, sides: tuple[str, ...] = ()) -> None:
        self.label = label
        self.tree = parse(text, label, sides)
        self._plain = Plain.of(self.tree)
        # Each column once, in the order in which they are written.
        columns = self.tree.find_all(exp.Column, bfs=False)
        self.references = tuple(dict.fromkeys(reference(column) for column in columns))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it needs, spelled as in the text."""
        return tuple(dict.fromkeys(name for name, _ in self.references))

    @property
    def sql(self) -> str:
        """The normalised text."""
        return self.tree.sql(comments=False)

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns that it needs, spelled as in ``names``; one for each reference in the text."""
        try:
            return tuple(find_column(name, names, quoted) for name, quoted in self.references)
        except QueryError as error:
            raise QueryError(f"{self.label}: {error}") from None

    def blocks(self, table: pa.Table | pa.RecordBatch, widen: bool) -> Iterator[tuple[int, Value]]:
        """Evaluates it over the table, block by block; gives the number of rows and the value of each block.

        With ``widen``, rows in which an integer overflows are evaluated in doubles. Without, they are NULL, and the
        type of the result follows from the types of the columns alone.
        """
        names = self.needs(table.schema.names)
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        if not names or not table.num_rows:
            nothing = pa.RecordBatch.from_pylist([], table.schema)
            yield table.num_rows, self._evaluate(self._columns(nothing, names), widen)
            return
        for batch in table.select(list(dict.fromkeys(names))).to_batches(max_chunksize=BLOCK):
            yield batch.num_rows, self._evaluate(self._columns(batch, names), widen)

    def spark_sql(self, schema: pa.Schema, widen: bool) -> str:
        """The same expression for Spark SQL, over columns of these types; it is right in ANSI mode and out of it."""
        names = self.needs(schema.names)
        columns = self._columns(pa.RecordBatch.from_pylist([], schema), names)
        self._evaluate(columns, widen)  # refuses wrong types with the usual message
        try:
            return spark_text(self.tree, dict(zip(self.references, names, strict=True)), columns, widen)
        except RecursionError:
            raise QueryError(f"{self.label} is nested too deeply for Spark") from None

    def _columns(self, batch: pa.RecordBatch, names: tuple[str, ...]) -> dict[Reference, pa.Array]:
        return {key: batch.column(name) for key, name in zip(self.references, names, strict=True)}

    def _evaluate(self, columns: dict[Reference, pa.Array], widen: bool) -> Value:
        if self._plain is not None and self._plain.takes(columns):
            return self._plain.evaluate(columns)
        try:
            return Frame(columns).evaluate(self.tree, widen)
        except QueryError as error:
            raise QueryError(f"{self.label}: {error}") from None
        except pa.ArrowException as error:
            raise QueryError(f"{self.label} cannot be evaluated: {error}") from error

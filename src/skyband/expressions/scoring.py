"""Compiles the fields of a query (``order_by``, ``where``, ``select``) into objects that evaluate tables.

``compile_order``, ``compile_condition`` and ``compile_item`` parse a field once, refuse what cannot be answered, and
return an object whose ``evaluate`` takes a table and whose ``spark_sql`` writes the same for Spark. What expressions
mean is said in :mod:`skyband.expressions`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from numpy.typing import NDArray
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from skyband.errors import QueryError
from skyband.expressions import Expression, Function, call, distance, find_column
from skyband.expressions.values import floats

__all__ = ["Condition", "Direction", "Function", "Item", "Labelled", "OrderBy", "Score", "compile_condition",
           "compile_item", "compile_number", "compile_order", "distance", "find_column", "listed", "quoted",
           "split_order"]  # fmt: skip

OrderBy = str | Function | tuple[Function, str]
Direction = Literal["ASC", "DESC"]


class Labelled(str):
    """An expression from another field than ``order_by``, with the label that errors use for it.

    >>> compile_order(Labelled("x +", "value='x +'"))
    Traceback (most recent call last):
    skyband.errors.QueryError: value='x +' is not an SQL expression: cannot be read at '+', character 3
    """

    label: str

    def __new__(cls, text: str, label: str = "") -> "Labelled":
        labelled = super().__new__(cls, text)
        labelled.label = label
        return labelled


@overload
def split_order(order_by: str) -> tuple[str, Direction]: ...
@overload
def split_order(order_by: Function | tuple[Function, str]) -> tuple[Function, Direction]: ...
def split_order(order_by: OrderBy) -> tuple[str | Function, Direction]:
    """Splits ``order_by`` into an expression or function and the direction, which is ``ASC`` if none is given.

    >>> split_order("price * volume desc")
    ('price * volume', 'DESC')
    """
    if isinstance(order_by, str):
        return _split_text(order_by, _label(order_by))
    if callable(order_by):
        return order_by, "ASC"
    if isinstance(order_by, tuple) and len(order_by) == 2 and callable(order_by[0]):
        function, word = order_by
        if isinstance(word, str) and word.strip().upper() in ("ASC", "DESC"):
            return function, "DESC" if word.strip().upper() == "DESC" else "ASC"
    raise QueryError(f"order_by={order_by!r} must be an SQL expression such as \"price * volume DESC\", a function of "
                     'the columns, or a pair (function, "ASC" or "DESC")')  # fmt: skip


def _label(order_by: str) -> str:
    return order_by.label if isinstance(order_by, Labelled) else f"order_by={order_by!r}"


def _split_text(text: str, label: str) -> tuple[str, Direction]:
    tokens = _tokens(text, label)
    if [token.text.upper() for token in tokens[-2:]] in (["NULLS", "FIRST"], ["NULLS", "LAST"]):
        raise QueryError(f"{label}: NULLS {tokens[-1].text.upper()} has no use here, since a row whose score "
                         "is NULL is in no ranking; leave it out")  # fmt: skip
    if any(_commas(tokens)):
        raise QueryError(f"{label} has several terms; give one score, for instance a weighted sum")
    if tokens and tokens[-1].token_type in (TokenType.ASC, TokenType.DESC):
        word = tokens.pop()
        text = text[: word.start]
        return text.strip(), "DESC" if word.token_type == TokenType.DESC else "ASC"
    return text.strip(), "ASC"


def _tokens(text: str, label: str) -> list[Any]:
    try:
        return sqlglot.tokenize(text)
    except SqlglotError:
        raise QueryError(f"{label} cannot be read: is a quote left open?") from None


def _commas(tokens: Sequence[Any]) -> Iterator[Any]:
    """The commas outside of brackets."""
    depth = 0
    for token in tokens:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if token.token_type == TokenType.COMMA and depth == 0:
            yield token


@dataclass(frozen=True)
class Score:
    """``order_by``, ready to be evaluated.

    Attributes:
        descending: whether larger is better.
        columns: the columns that it needs, spelled as in the text; None for a function, which may need any.
        sql: the normalised expression, without the direction; None for a function.
        source: the expression, or the function.
    """

    descending: bool
    columns: tuple[str, ...] | None
    sql: str | None
    source: Expression | Function

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns needed, as they are called among ``names``."""
        return tuple(dict.fromkeys(self.source.needs(names))) if isinstance(self.source, Expression) else tuple(names)

    def evaluate(self, table: pa.Table | pa.RecordBatch) -> NDArray[np.float64]:
        """A score for each row, NaN where there is none. It may share memory with the table: do not write to it.

        >>> compile_order("price * volume DESC").evaluate(pa.table({"price": [1.5, None], "volume": [2, 3]}))
        array([ 3., nan])
        """
        if not isinstance(self.source, Expression):
            return call(self.source, table)
        if isinstance(self.source.tree, exp.Column):
            column = table.column(*self.source.needs(table.schema.names))
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            if pa.types.is_float64(column.type) and len(chunks) == 1 and not column.null_count:
                shared: NDArray[np.float64] = chunks[0].to_numpy()
                return shared
        result, start = np.empty(table.num_rows), 0
        for size, value in self.source.blocks(table, widen=True):
            result[start : start + size] = floats(value, self.source.label)
            start += size
        return result

    def spark_sql(self, schema: pa.Schema) -> str | None:
        """The expression for Spark, a DOUBLE, over columns of these (Arrow) types; None for a function.

        >>> compile_order("price / volume").spark_sql(pa.schema({"price": pa.float64(), "volume": pa.int32()}))
        'CAST(TRY_DIVIDE(`price`, CAST(`volume` AS BIGINT)) AS DOUBLE)'
        """
        if not isinstance(self.source, Expression):
            return None
        self.evaluate(schema.empty_table())  # refuses what is not a number
        return f"CAST({self.source.spark_sql(schema, widen=True)} AS DOUBLE)"


@dataclass(frozen=True)
class _Compiled:
    source: Expression

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns needed, as written."""
        return self.source.columns

    @property
    def sql(self) -> str:
        """The normalised expression."""
        return self.source.sql

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns needed, as they are called among ``names``."""
        return tuple(dict.fromkeys(self.source.needs(names)))


@dataclass(frozen=True)
class Condition(_Compiled):
    """``where``, ready to be evaluated."""

    def evaluate(self, table: pa.Table | pa.RecordBatch) -> NDArray[np.bool_]:
        """Whether the condition is true for each row; NULL counts as not true.

        >>> compile_condition("x > 1 OR y = 'b'").evaluate(pa.table({"x": [2, None, 1], "y": ["a", "b", None]}))
        array([ True,  True, False])
        """
        result, start = np.empty(table.num_rows, np.bool_), 0
        for size, value in self.source.blocks(table, widen=True):
            if not (pa.types.is_boolean(value.type) or pa.types.is_null(value.type)):
                raise QueryError(f"{self.source.label} is of type {value.type}; a condition must be true or false")
            known = pc.coalesce(value.cast(pa.bool_()), pa.scalar(False))
            result[start : start + size] = known.as_py() if isinstance(known, pa.Scalar) else known
            start += size
        return result

    def spark_sql(self, schema: pa.Schema) -> str:
        """The condition for Spark, over columns of these (Arrow) types."""
        self.evaluate(schema.empty_table())  # refuses what is not a condition
        return self.source.spark_sql(schema, widen=True)


@dataclass(frozen=True)
class Item(_Compiled):
    """One of the columns of the answer, ready to be evaluated.

    Attributes:
        name: what the column is called in the answer.
    """

    name: str

    @property
    def plain(self) -> bool:
        """Whether it is simply a column, which may be of any type."""
        return isinstance(self.source.tree, exp.Column)

    def evaluate(self, table: pa.Table | pa.RecordBatch) -> pa.ChunkedArray | pa.Array:
        """The column. Its type follows from the types of the table alone, so an integer that does not fit is NULL.

        >>> compile_item("price * 2 AS twice").evaluate(pa.table({"price": [1, 2]})).to_pylist()
        [2, 4]
        """
        if self.plain:
            return table.column(*self.needs(table.schema.names))
        blocks = self.source.blocks(table, widen=False)
        return pa.chunked_array(
            [pa.repeat(value, size) if isinstance(value, pa.Scalar) else value for size, value in blocks]
        )

    def spark_sql(self, schema: pa.Schema) -> str:
        """The expression for Spark, without the name, over columns of these (Arrow) types."""
        if self.plain:
            (name,) = self.needs(schema.names)
            return exp.to_identifier(name, quoted=True).sql("spark")
        return self.source.spark_sql(schema, widen=False)


def compile_order(order_by: OrderBy, sides: tuple[str, ...] = ()) -> Score:
    """Compiles ``order_by``; for ``sides`` see :class:`skyband.expressions.Expression`.

    >>> score = compile_order("abs(x - 0.5) * weight DESC")
    >>> score.sql, score.columns, score.descending
    ('ABS(x - 0.5) * weight', ('x', 'weight'), True)
    """
    if isinstance(order_by, str):
        text, direction = split_order(order_by)
        source = Expression(text, _label(order_by), sides)
        return Score(direction == "DESC", source.columns, source.sql, source)
    function, direction = split_order(order_by)
    return Score(direction == "DESC", None, None, function)


def compile_number(text: str, label: str) -> Score:
    """Compiles an expression that gives a number for each row."""
    source = Expression(text, label)
    return Score(True, source.columns, source.sql, source)


def compile_condition(where: str, sides: tuple[str, ...] = ()) -> Condition:
    """Compiles ``where``."""
    if not isinstance(where, str):
        raise QueryError(f'where={where!r} must be an SQL condition such as "price > 10"')
    return Condition(Expression(where, f"where={where!r}", sides))


def compile_item(text: str, sides: tuple[str, ...] = ()) -> Item:
    """Compiles an item of ``select``: a column (in double quotes if it is no plain word), or ``expression AS name``.

    >>> [compile_item(text).name for text in ("price", '"odd name"', "price * 2 AS twice")]
    ['price', 'odd name', 'twice']
    >>> compile_item("a.price", ("a", "b")).name
    'a_price'
    """
    label = f"select={text!r}"
    tokens = _tokens(text, label)
    name = None
    if len(tokens) > 2 and tokens[-2].token_type == TokenType.ALIAS:
        name = tokens[-1].text
        text = text[: tokens[-2].start]
    source = Expression(text, label, sides)
    if name is None:
        if not isinstance(source.tree, exp.Column):
            raise QueryError(f"{label} needs a name: write {text} AS name")
        name = f"{source.tree.table.lower()}_{source.tree.name}" if sides else source.tree.name
    return Item(source, name)


def listed(text: str, label: str) -> tuple[str, ...]:
    """The items of a list with commas; commas within brackets and quotes do not count.

    >>> listed('a, greatest(b, c) AS d, "e, f"', "select")
    ('a', 'greatest(b, c) AS d', '"e, f"')
    """
    cuts = [-1, *(comma.start for comma in _commas(_tokens(text, label))), len(text)]
    return tuple(text[a + 1 : b].strip() for a, b in pairwise(cuts))


def quoted(name: str) -> str:
    """A column's name as an SQL expression, quoted if need be.

    >>> quoted("odd name")
    '"odd name"'
    """
    return '"' + name.replace('"', '""') + '"'

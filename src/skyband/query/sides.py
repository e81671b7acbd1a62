"""The score and the condition of a query over pairs: parsed, adapted to the types of the columns, and evaluated.

A query over pairs speaks of two rows, its *sides*, ``a`` and ``b``. :class:`Terms` is what it says, :class:`Fitted` the
same for columns of given types.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from skyband.errors import QueryError
from skyband.expressions import Expression, call, columns_read, find_column, scoring
from skyband.expressions.values import floats

Floats = NDArray[np.float64]

NAMES = ("a", "b")
SIDES = ("a.", "b.")  # what the names of a pair's columns begin with
SECOND = 1_000_000
SAME, DIFFERENT = 0, 1


def beside(first: pa.Table, second: pa.Table) -> pa.Table:
    """Two tables side by side, row by row: column ``x`` of the first is called ``a.x``, that of the second ``b.x``."""
    names = [side + name for side in SIDES for name in first.column_names]
    return pa.table([*first.columns, *second.columns], names)


class Value(NamedTuple):
    """A column of ``Rows.values``, and the column of the stream that it is made from.

    Attributes:
        column: the column of the stream.
        part: ``number``: its value as a double; ``high`` and ``low``: the halves of a 64-bit integer, which as one
            double might be rounded; ``known``: 0 where it has a value and NaN where it is NULL.
    """

    column: str
    part: Literal["number", "high", "low", "known"]


class Colour(NamedTuple):
    """A column of ``Rows.tags`` in which the objects of a pair must agree or differ."""

    tag: int
    kind: int  # SAME or DIFFERENT


class Fitted:
    """The score and the condition of a query over pairs, for columns of given types.

    A timestamp or date counts as seconds since the epoch, as a double. The difference of two of them is exact: it is
    taken in microseconds, and only then becomes a double.

    Attributes:
        score, condition: those of the query, with times turned into seconds.
        plain: the columns that count as numbers, with their types.
        values: the numbers that each row carries for compiled scores and conditions.
        required: for each of these, whether the score uses it; if so, it must not be NaN.
        colours: the columns in which the objects must agree or differ, from ``same``, ``different`` and ``where``.
        rest: the condition without those parts that became colours.
    """

    def __init__(self, terms: "Terms", schema: pa.Schema) -> None:
        self.schema = schema
        pair = [side + name for side in SIDES for name in schema.names]
        self.plain = {field.name: field.type for field in schema if _is_plain(field.type)}
        self.score = scoring.compile_order(self._seconds(terms.score, terms.order_by, pair), NAMES)
        self.condition: scoring.Condition | None = None
        if terms.condition is not None:
            text = self._rewritten(terms.condition.source, pair)
            self.condition = scoring.Condition(Expression(text, terms.condition.source.label, NAMES))
        self.colours, self.rest = self._lifted(terms, pair)
        ranks = self._mentioned(self.score.source, pair) if isinstance(self.score.source, Expression) else []
        filters = [] if self.rest is None else self._mentioned(self.rest, pair)
        values = [Value(name, "number") for name in dict.fromkeys([*ranks, *filters]) if name in self.plain]
        wide = [name for name in dict.fromkeys(filters) if _is_wide(self.plain.get(name))]
        values += [Value(name, part) for name in wide for part in ("high", "low")]
        values += [Value(name, "known") for name in self.known]
        self.values = tuple(values)
        self._read: list[str] | None = None  # the numbers that a Python function uses, once we know
        self.required = np.array([value.part == "number" and value.column in ranks for value in values], bool)

    def numbers(self, table: pa.Table) -> Floats:
        """The values of each row."""
        columns = [_value(table.column(value.column), value.part) for value in self.values]
        return np.stack(columns, axis=1) if columns else np.empty((table.num_rows, 0))

    def lacking(self, table: pa.Table, numbers: Floats) -> NDArray[np.bool_]:
        """Whether each row lacks a number that the score uses; ``numbers`` are its values."""
        source = self.score.source
        if isinstance(source, Expression):
            return np.asarray(np.isnan(numbers[:, self.required]).any(axis=1))
        lacking = np.zeros(table.num_rows, bool)
        if self._read is None and table.num_rows:
            first = table.slice(0, 1)
            self._read = [name for name in columns_read(source, first, first) if name in self.plain]
        for name in self._read or ():
            lacking |= np.isnan(_value(table.column(name), "number"))
        return lacking

    def evaluate(self, a: pa.Table, b: pa.Table) -> tuple[Floats, NDArray[np.bool_]]:
        """For each pair of rows its goodness (NaN: none) and whether ``where`` holds.

        A Python function is called only with pairs for which it holds.
        """
        first, second = self._ready(a), self._ready(b)
        both = beside(first, second)
        holds = np.ones(a.num_rows, bool) if self.condition is None else self.condition.evaluate(both)
        source = self.score.source
        if isinstance(source, Expression):
            score = self.score.evaluate(both)
        else:
            score = np.full(a.num_rows, np.nan)
            score[holds] = call(source, *(side if holds.all() else side.filter(pa.array(holds)) for side in (a, b)))
        return score if self.score.descending else 0.0 - score, holds

    def _ready(self, table: pa.Table) -> pa.Table:
        """The table with its times as microseconds, which is what the rewritten expressions expect."""
        for i, field in enumerate(table.schema):
            if _is_time(field.type):
                table = table.set_column(i, field.name, _microseconds(table.column(i)))
        return table

    def _seconds(self, score: scoring.Score, order_by: scoring.OrderBy, pair: list[str]) -> scoring.OrderBy:
        if not isinstance(score.source, Expression):
            return order_by
        return f"{self._rewritten(score.source, pair)} {'DESC' if score.descending else 'ASC'}"

    def _rewritten(self, source: Expression, pair: list[str]) -> str:
        """The expression with every time, and every difference of two times, divided into seconds.

        Its columns will hold microseconds.
        """
        source.needs(pair)

        def is_time(node: exp.Expr | None) -> bool:
            return isinstance(node, exp.Column) and _is_time(self.plain.get(self._column(node, pair)))

        def seconds(node: exp.Expr) -> exp.Expr:
            both = isinstance(node, exp.Sub) and is_time(node.this) and is_time(node.expression)
            if not both and not is_time(node):
                return node
            inner = exp.Paren(this=node.copy())
            return exp.Paren(this=exp.Div(this=inner, expression=exp.Literal.number(f"{SECOND}.0")))

        return source.tree.transform(seconds).sql(comments=False)

    def _column(self, node: exp.Column, pair: list[str]) -> str:
        name = f"{node.table.lower()}.{node.name}"
        return find_column(name, pair, bool(node.this.args.get("quoted")))[2:]

    def _is_float(self, name: str) -> bool:
        return bool(pa.types.is_floating(self.schema.field(name).type))

    def _mentioned(self, source: Expression, pair: list[str]) -> list[str]:
        return list(dict.fromkeys(name[2:] for name in source.needs(pair)))

    def _lifted(self, terms: "Terms", pair: list[str]) -> tuple[tuple[Colour, ...], Expression | None]:
        """The columns in which objects must agree or differ, and what is left of ``where`` without such conditions.

        ``a.x = b.x`` and ``a.x <> b.x`` compare the codes of values rather than the values, which is faster; not so for
        floats. Codes know NULL as a value like any other, but these conditions are not true of it. So such columns are
        listed in ``known``, by which rows with NULL are told apart.
        """
        colours = [Colour(tag, kind) for tag, kind in enumerate(terms.kinds)]
        self.known: list[str] = []
        if self.condition is None:
            return tuple(colours), None
        rest = []
        for conjunct in conjuncts(self.condition.source.tree):
            kind, column = chromatic(conjunct)
            text = "" if column is None else column.sql()
            if column is None or text not in terms.lifted or self._is_float(name := self._column(column, pair)):
                rest.append(conjunct.sql(comments=False))
                continue
            colours.append(Colour(terms.lifted[text], kind))
            self.known.append(name)
        text = " AND ".join(f"({part})" for part in rest)
        return tuple(colours), Expression(text, self.condition.source.label, NAMES) if rest else None


class Terms:
    """The score and the condition of a query over pairs, as they are written.

    Attributes:
        tags: groups of columns that are only compared for equality: first those of ``same`` and ``different``, then
            columns that ``where`` compares.
        kinds: SAME or DIFFERENT for each of the first groups, those of ``same`` and ``different``.
        lifted: the place in ``tags`` of each column that ``where`` compares, by the text of the comparison's left side.
    """

    def __init__(self, order_by: scoring.OrderBy, where: str | None, same: Sequence[str], different: Sequence[str]):
        self.order_by = order_by
        self.score = scoring.compile_order(order_by, NAMES)
        self.condition = None if where is None else scoring.compile_condition(where, NAMES)
        groups = [tuple(same)] if same else []
        self.kinds = (*(SAME for _ in groups), *(DIFFERENT for _ in different))
        groups += [(name,) for name in different]
        self.lifted: dict[str, int] = {}
        for conjunct in conjuncts(self.condition.source.tree) if self.condition else ():
            _, column = chromatic(conjunct)
            if column is not None and column.sql() not in self.lifted:
                self.lifted[column.sql()] = len(groups)
                groups.append((column.name,))
        self.tags = tuple(groups)
        self._fitted: Fitted | None = None

    def needs(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns that are needed, spelled as in ``names``."""
        tags = [find_column(name, names) for group in self.tags for name in group]
        if not isinstance(self.score.source, Expression):
            return tuple(names)
        pair = [side + name for side in SIDES for name in names]
        sources = [self.score.source, *([self.condition.source] if self.condition else [])]
        return tuple(dict.fromkeys([name[2:] for source in sources for name in source.needs(pair)] + tags))

    def fit(self, schema: pa.Schema) -> Fitted:
        """The same for columns of these types; refuses what cannot be evaluated over them."""
        if self._fitted is None or not self._fitted.schema.equals(schema):
            self._check_colours(schema.names)
            fitted = Fitted(self, schema)
            fitted.evaluate(schema.empty_table(), schema.empty_table())
            self._fitted = fitted
        return self._fitted

    def _check_colours(self, names: Sequence[str]) -> None:
        """Refuses a column that is in both ``same`` and ``different``, even if its name is spelled in two ways."""
        alike: set[str] = set()
        unlike: set[str] = set()
        for group, kind in zip(self.tags, self.kinds, strict=False):  # further groups are those of where
            (alike if kind == SAME else unlike).update(find_column(name, names) for name in group)
        if both := alike & unlike:
            raise QueryError(f"same and different both name {min(both)!r}: no pair can agree and differ in it")


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that AND joins at the top level of a condition: the whole is true if all of them are."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        yield from conjuncts(tree.this)
        yield from conjuncts(tree.expression)
    else:
        yield tree


def chromatic(tree: exp.Expr) -> tuple[int, exp.Column | None]:
    """SAME or DIFFERENT and the column, for a condition ``a.x = b.x`` or ``a.x <> b.x``; no column for any other."""
    if isinstance(tree, exp.EQ | exp.NEQ):
        left, right = tree.this, tree.expression
        sides = {side.table.lower() for side in (left, right) if isinstance(side, exp.Column)}
        if sides == {"a", "b"} and left.this == right.this:
            return SAME if isinstance(tree, exp.EQ) else DIFFERENT, left
    return SAME, None


def _is_time(kind: pa.DataType | None) -> bool:
    return kind is not None and (pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _is_wide(kind: pa.DataType | None) -> bool:
    return kind is not None and pa.types.is_integer(kind) and kind.bit_width == 64


def _is_plain(kind: pa.DataType) -> bool:
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(number or pa.types.is_null(kind) or _is_time(kind))  # all NULL so far: numbers may still come


def _microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = pa.timestamp("us", getattr(column.type, "tz", None))
    return column.cast(kind, safe=False).cast(pa.int64())


def _value(column: pa.ChunkedArray, part: str) -> Floats:
    if part == "known":
        return np.where(column.is_null().to_numpy(), np.nan, 0.0)
    if part == "number":
        column = _microseconds(column) if _is_time(column.type) else column
        column = column.cast(pa.float64(), safe=False) if pa.types.is_integer(column.type) else column
        number: Floats = floats(column.combine_chunks(), "a column")
        return number
    whole = pc.fill_null(column, pa.scalar(0, column.type)).to_numpy()
    half = whole >> 32 if part == "high" else whole & 0xFFFFFFFF
    return np.where(column.is_null().to_numpy(), np.nan, half.astype(np.float64))

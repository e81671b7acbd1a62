"""What ``order_by`` and ``where`` say of two rows: read, fitted to the columns of a stream, evaluated on tables."""

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
SIDES = ("a.", "b.")  # begin the names of the columns of a pair
SECOND = 1_000_000
SAME, DIFFERENT = 0, 1


def beside(first: pa.Table, second: pa.Table) -> pa.Table:
    """Pairs of rows: the columns of the one, called ``a.x``, and those of the other, called ``b.x``."""
    names = [side + name for side in SIDES for name in first.column_names]
    return pa.table([*first.columns, *second.columns], names)


class Value(NamedTuple):
    """A column of ``Rows.values``, made from a column of the stream.

    ``number``: as a double; ``high`` and ``low``: the halves of a 64-bit integer, which a double might round;
    ``known``: 0, or NaN where it is NULL.
    """

    column: str
    part: Literal["number", "high", "low", "known"]


class Colour(NamedTuple):
    """A column of ``Rows.tags`` in which the objects of a pair must agree or differ."""

    tag: int
    kind: int  # SAME or DIFFERENT


class Fitted:
    """``order_by`` and ``where`` over columns of these types.

    A timestamp or date counts as seconds since the epoch, in doubles; the difference of two of them is taken before it
    is rounded.

    Attributes:
        score, condition: as the query has them, but for that.
        plain: the columns that count as numbers, with their types.
        values: what the rows carry for compiled scores.
        required: which of these must not be NaN: those of the score.
        colours: conditions that two objects agree or differ in a column, taken out of ``where`` and from the query.
        rest: what is then left of ``where``.
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
        self._read: list[str] | None = None  # the numbers that a Python function looks at, once it is known
        self.required = np.array([value.part == "number" and value.column in ranks for value in values], bool)

    def numbers(self, table: pa.Table) -> Floats:
        """The values of each row."""
        columns = [_value(table.column(value.column), value.part) for value in self.values]
        return np.stack(columns, axis=1) if columns else np.empty((table.num_rows, 0))

    def lacking(self, table: pa.Table, numbers: Floats) -> NDArray[np.bool_]:
        """For each row whether a number is missing that the score uses; ``numbers`` are the values of the rows."""
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
        """The goodness of each pair of rows (NaN: none), and whether ``where`` holds; a function sees only those."""
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
        """Timestamps as microseconds, which the rewritten expressions expect."""
        for i, field in enumerate(table.schema):
            if _is_time(field.type):
                table = table.set_column(i, field.name, _microseconds(table.column(i)))
        return table

    def _seconds(self, score: scoring.Score, order_by: scoring.OrderBy, pair: list[str]) -> scoring.OrderBy:
        if not isinstance(score.source, Expression):
            return order_by
        return f"{self._rewritten(score.source, pair)} {'DESC' if score.descending else 'ASC'}"

    def _rewritten(self, source: Expression, pair: list[str]) -> str:
        """The text with every timestamp, and every difference of two, brought from microseconds to seconds."""
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
        """Equality of a column other than a float is one of codes; NULLs, which are then equal, are sorted out."""
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
    """``order_by`` and ``where`` of a query over pairs, as written.

    Attributes:
        tags: groups of columns whose values are compared for equality only.
        kinds: SAME or DIFFERENT, for the groups that the query names with ``same`` and ``different``.
        lifted: the groups behind them: columns that ``where`` compares, by the text of the comparison's left side.
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
        """The columns that are looked at, as they are called among ``names``."""
        tags = [find_column(name, names) for group in self.tags for name in group]
        if not isinstance(self.score.source, Expression):
            return tuple(names)
        pair = [side + name for side in SIDES for name in names]
        sources = [self.score.source, *([self.condition.source] if self.condition else [])]
        return tuple(dict.fromkeys([name[2:] for source in sources for name in source.needs(pair)] + tags))

    def fit(self, schema: pa.Schema) -> Fitted:
        """The same over columns of these types; refuses what cannot be evaluated there."""
        if self._fitted is None or not self._fitted.schema.equals(schema):
            self._check_colours(schema.names)
            fitted = Fitted(self, schema)
            fitted.evaluate(schema.empty_table(), schema.empty_table())
            self._fitted = fitted
        return self._fitted

    def _check_colours(self, names: Sequence[str]) -> None:
        """Refuses a column that the objects of a pair are to agree and to differ in, however it is written."""
        alike: set[str] = set()
        unlike: set[str] = set()
        for group, kind in zip(self.tags, self.kinds, strict=False):  # further groups are those of where
            (alike if kind == SAME else unlike).update(find_column(name, names) for name in group)
        if both := alike & unlike:
            raise QueryError(f"same and different both name {min(both)!r}: no pair can agree and differ in it")


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that must all be true for the whole to be."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        yield from conjuncts(tree.this)
        yield from conjuncts(tree.expression)
    else:
        yield tree


def chromatic(tree: exp.Expr) -> tuple[int, exp.Column | None]:
    """Whether a condition says that two rows agree or differ in a column, and in which."""
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
    return bool(number or pa.types.is_null(kind) or _is_time(kind))  # nothing but NULL may turn out to be numbers


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

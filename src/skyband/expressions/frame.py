"""Evaluates the tree of an expression over the rows of a batch."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from skyband.errors import QueryError
from skyband.expressions.operators import ARITHMETIC, OPERATORS, equal, from_text, to_integer
from skyband.expressions.values import (
    BOOL,
    DOUBLE,
    FALSE,
    INT,
    NULL,
    TEXT,
    Mismatch,
    Value,
    alike,
    choose,
    double,
    doubles,
    is_null_type,
    normal,
    numbers,
    texts,
    truths,
    unless,
)

Reference = tuple[str, bool]  # a column's name as written, and whether it was quoted

# The types that a CAST may name: each with the type here and, for integers, the bound for absolute values.
CASTS: dict[str, tuple[Any, float]] = {
    "BIGINT": (INT, 2.0**63),
    "DOUBLE": (DOUBLE, 2.0**63),
    "INT": (INT, 2.0**31),
    "TEXT": (TEXT, 2.0**63),
    "VARCHAR": (TEXT, 2.0**63),
}


def reference(column: exp.Expr) -> Reference:
    side = column.args.get("table")
    name = f"{side.name.lower()}.{column.name}" if side else column.name
    return name, bool(column.this.args.get("quoted"))


class Frame:
    """The columns of one batch, over which trees are evaluated.

    Args:
        columns: the array for each reference to a column.
        wide: whether every integer is taken as a double.
    """

    def __init__(self, columns: dict[Reference, Value], wide: bool = False) -> None:
        self.columns = columns
        self.wide = wide
        self.overflow: Value = FALSE  # the rows in which an integer did not fit into 64 bits
        self._loaded: dict[Reference, Value] = {}

    def evaluate(self, tree: exp.Expr, widen: bool) -> Value:
        """The value of a tree. With ``widen``, rows in which an integer did not fit are evaluated again in doubles."""
        value = self.value(tree)
        if widen and self.overflow is not FALSE and pc.any(self.overflow).as_py():
            return choose(self.overflow, *alike(Frame(self.columns, wide=True).value(tree), value))
        return value

    def value(self, node: exp.Expr) -> Value:
        """The value of a tree; an integer that does not fit is NULL, and ``overflow`` marks its row."""
        # The tree of a sum of many terms is deep on its left side, so that side is walked without recursion.
        spine = []
        while isinstance(node, exp.Binary) and type(node) not in FORMS:
            spine.append(node)
            node = node.this
        try:
            if spine:
                result = self.value(node)
            elif type(node) in FORMS:
                result = FORMS[type(node)](self, node)
            else:
                result = self.apply(node, *(self.value(child) for child in node.iter_expressions()))
            while spine:
                node = spine.pop()
                result = self.apply(node, result, self.value(node.expression))
        except Mismatch as mismatch:
            raise QueryError(f"{node.sql(comments=False)} takes {mismatch}") from None
        return double(result) if self.wide and result.type == INT else result

    def apply(self, node: exp.Expr, *values: Value) -> Value:
        """The value of an operator, given the values of its operands."""
        name = ARITHMETIC.get(type(node))
        return OPERATORS[type(node)](*values) if name is None else self._arithmetic(name, numbers(*values))

    def _arithmetic(self, name: str, values: list[Value]) -> Value:
        if values[0].type == DOUBLE:
            return pc.call_function(name, values)
        if self.wide:
            return pc.call_function(name, [double(value) for value in values])
        try:
            return pc.call_function(f"{name}_checked", values)
        except pa.ArrowInvalid:
            wrapped = pc.call_function(name, values)
            rough = pc.call_function(name, [double(value) for value in values])
            # A result that wrapped around is wrong by a multiple of 2⁶⁴; any other differs only by rounding.
            off = pc.greater(pc.abs(pc.subtract(rough, double(wrapped))), pa.scalar(2.0**62))
            return self._unless_overflow(off, wrapped)

    def _unless_overflow(self, overflow: Value, value: Value) -> Value:
        self.overflow = pc.or_(self.overflow, pc.coalesce(overflow, FALSE))
        return unless(overflow, value)

    def _column(self, node: exp.Expr) -> Value:
        key = reference(node)
        if key not in self._loaded:
            array = self.columns[key]
            if array.type == pa.uint64():
                too_large = pc.greater(array, pa.scalar((1 << 63) - 1, array.type))
                array = double(array) if self.wide else self._unless_overflow(too_large, array)
            self._loaded[key] = normal(array)
        return self._loaded[key]

    def _literal(self, node: exp.Expr) -> Value:
        return pa.scalar(node.name) if node.is_string else literal(node.name)

    def _boolean(self, node: exp.Expr) -> Value:
        return pa.scalar(bool(node.this))

    def _null(self, node: exp.Expr) -> Value:
        return NULL

    def _case(self, node: exp.Expr) -> Value:
        subject = self.value(node.this) if node.this else None
        conditions, values = [], []
        for branch in node.args["ifs"]:
            condition = self.value(branch.this)
            conditions += truths(condition) if subject is None else [equal(subject, condition)]
            values.append(self.value(branch.args["true"]))
        default = node.args.get("default")
        *values, result = alike(*values, self.value(default) if default else NULL)
        for condition, value in zip(reversed(conditions), reversed(values), strict=True):
            result = choose(condition, value, result)
        return result

    def _like(self, node: exp.Expr) -> Value:
        result = pc.match_like(*texts(self.value(node.this)), node.expression.name)
        return pc.invert(result) if node.args.get("negate") else result

    def _cast(self, node: exp.Expr) -> Value:
        """CAST: NULL for values that cannot be converted; a number that becomes an integer loses its fraction."""
        value = self.value(node.this)
        kind, bound = CASTS[node.args["to"].sql()]
        if kind == TEXT:
            if self.wide and value.type == DOUBLE:
                value = to_integer(value, bound)
            if value.type not in (INT, BOOL, TEXT) and not is_null_type(value):  # engines do not write these alike
                raise Mismatch(f"integers, conditions or text, not {value.type}")
            return value.cast(TEXT)
        if value.type == TEXT:
            value = from_text(value, kind)
        if value.type == BOOL:
            return value.cast(kind)
        return doubles(value)[0] if kind == DOUBLE else to_integer(numbers(value)[0], bound)


@lru_cache(256)
def literal(text: str) -> Value:
    """A number as it is written in an expression."""
    return pa.scalar(int(text) if text.isdigit() and int(text) < 1 << 63 else float(text))


FORMS: dict[type[exp.Expr], Callable[[Frame, exp.Expr], Value]] = {
    exp.Column: Frame._column,
    exp.Literal: Frame._literal,
    exp.Boolean: Frame._boolean,
    exp.Null: Frame._null,
    exp.Case: Frame._case,
    exp.Cast: Frame._cast,
    exp.TryCast: Frame._cast,
    exp.Like: Frame._like,
}

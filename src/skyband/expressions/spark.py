"""Translates the tree of an expression into text that means the same to Spark SQL, in ANSI mode and out of it.

Where Spark would raise an error (division by zero, overflow, a CAST that fails), its ``try_`` functions are used, which
give NULL as here. Where Spark would compute in a narrower type or in decimals, columns and constants are first cast to
BIGINT or DOUBLE.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
from sqlglot import exp

from skyband.expressions.frame import Frame, Reference, reference
from skyband.expressions.operators import ARITHMETIC, SMALL_POWERS
from skyband.expressions.values import DOUBLE, INT, NULL, Value


def spark_text(tree: exp.Expr, names: dict[Reference, str], columns: dict[Reference, pa.Array], widen: bool) -> str:
    """The text of a tree.

    Args:
        tree: the expression.
        names: the name of the column for each reference in it.
        columns: for each reference an empty array of the column's type.
        widen: whether rows in which an integer overflows are evaluated in doubles, or are NULL.
    """
    narrow = _Writer(tree, names, columns, wide=False)
    result = narrow.write(tree)
    if widen and narrow.overflows:
        result = _case(exp.or_(*narrow.overflows), _Writer(tree, names, columns, wide=True).write(tree), result)
    return result.sql("spark", comments=False)


class _TypedFrame(Frame):
    """A frame that remembers the type of each part of a tree."""

    def __init__(self, columns: dict[Reference, Value], wide: bool) -> None:
        super().__init__(columns, wide)
        self.types: dict[int, Any] = {}

    def value(self, node: exp.Expr) -> Value:
        result = super().value(node)
        self.types[id(node)] = result.type
        return result

    def apply(self, node: exp.Expr, *values: Value) -> Value:
        result = super().apply(node, *values)
        self.types[id(node)] = result.type
        return result


class _Writer:
    """Writes a tree for Spark such that each part has the type there that it has here."""

    def __init__(
        self, tree: exp.Expr, names: dict[Reference, str], columns: dict[Reference, Value], wide: bool
    ) -> None:
        self.names = names
        self.frame = _TypedFrame(columns, wide)
        self.frame.value(tree)
        self.overflows: list[exp.Expr] = []  # the conditions under which an integer did not fit

    def write(self, node: exp.Expr) -> exp.Expr:
        # As in evaluation, the deep tree of a sum of many terms is walked without recursion.
        spine = []
        while isinstance(node, exp.Add | exp.Sub | exp.Mul) and self.type(node) == DOUBLE:
            spine.append(node)
            node = node.this
        special = _SPECIAL.get(type(node))
        result = special(self, node) if special else self._plain(node)
        while spine:
            node = spine.pop()
            result = type(node)(this=result, expression=self.write(node.expression))
        return result

    def type(self, node: exp.Expr) -> Any:
        return self.frame.types[id(node)]

    def _plain(self, node: exp.Expr) -> exp.Expr:
        """The same construct, with its parts translated."""
        parts = {
            key: [self.write(part) for part in value] if isinstance(value, list)
            else self.write(value) if isinstance(value, exp.Expr) else value
            for key, value in node.args.items()
        }  # fmt: skip
        return type(node)(**parts)

    def _arithmetic(self, node: exp.Expr) -> exp.Expr:
        if self.type(node) == DOUBLE:
            return self._plain(node)
        operands: list[exp.Expr] = []
        result = self._integer(node, operands)
        if not isinstance(result, exp.Literal | exp.Neg):
            present = (exp.not_(_is_null(operand)) for operand in operands)
            self.overflows.append(exp.and_(_is_null(result), *present))
        return result

    def _integer(self, node: exp.Expr, operands: list[exp.Expr]) -> exp.Expr:
        """Integer arithmetic that is NULL if one of its steps overflows; its operands are added to ``operands``."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Literal):
            return self.write(node)
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
            return exp.Neg(this=self.write(node.this))
        if type(node) not in ARITHMETIC:
            operands.append(self.write(node))
            return operands[-1].copy()
        parts = [self._integer(part, operands) for part in node.iter_expressions()]
        if isinstance(node, exp.Abs):
            negative = exp.LT(this=parts[0], expression=_ZERO.copy())
            return _case(negative, _call("try_subtract", _ZERO, parts[0]), parts[0].copy())
        if isinstance(node, exp.Neg):
            return _call("try_subtract", _ZERO, *parts)
        return _call(f"try_{ARITHMETIC[type(node)]}", *parts)

    def _column(self, node: exp.Expr) -> exp.Expr:
        key = reference(node)
        column = exp.column(exp.to_identifier(self.names[key], quoted=True))
        kind = self.type(node)
        return column if self.frame.columns[key].type == kind else _number(column, kind)

    def _literal(self, node: exp.Expr) -> exp.Expr:
        if node.is_string:
            return node.copy()
        value = self.frame.value(node).as_py()
        return exp.Literal.number(f"{value}L" if isinstance(value, int) else f"{value!r}D")

    def _divide(self, node: exp.Expr) -> exp.Expr:
        return _call("try_divide", self.write(node.this), self.write(node.expression))

    def _remainder(self, node: exp.Expr) -> exp.Expr:
        return _call("try_mod", self.write(node.this), self.write(node.expression))

    def _power(self, node: exp.Expr) -> exp.Expr:
        exponent = self.frame.value(node.expression)
        if not isinstance(exponent, pa.Scalar) or exponent.as_py() not in SMALL_POWERS:
            return self._plain(node)
        base = _number(self.write(node.this), DOUBLE)
        factors = (base.copy() for _ in range(int(exponent.as_py())))
        return exp.Paren(this=reduce(lambda left, right: exp.Mul(this=left, expression=right), factors))

    def _log(self, node: exp.Expr) -> exp.Expr:
        operands = [self.write(part) for part in node.iter_expressions()]
        base = self.frame.value(node.this) if len(operands) == 2 else pa.scalar(None)
        if isinstance(base, pa.Scalar) and base.as_py() in (2, 10):
            return _call(f"log{base.as_py():.0f}", operands[1])
        return _call("ln" if len(operands) == 1 else "log", *operands)

    def _whole(self, node: exp.Expr) -> exp.Expr:
        value = exp.Paren(this=self.write(node.this))
        if self.type(node) == INT:
            return value
        if isinstance(node, exp.Round):
            return exp.Round(this=value, decimals=node.args.get("decimals"))
        # Spark's result is a BIGINT, which cannot be NaN or infinite. Beyond 2⁵² every double is whole anyway.
        small = exp.LT(this=exp.Abs(this=value), expression=exp.Literal.number("4503599627370496D"))
        return _case(small, _number(type(node)(this=value), DOUBLE), value)

    def _length(self, node: exp.Expr) -> exp.Expr:
        return _number(self._plain(node), self.type(node))

    def _if(self, node: exp.Expr) -> exp.Expr:
        no = node.args.get("false")
        return _case(self._condition(node.this), self.write(node.args["true"]), self.write(no) if no else None)

    def _choice(self, node: exp.Expr) -> exp.Expr:
        default = node.args.get("default")
        condition = self.write if node.this else self._condition
        return exp.Case(
            this=self.write(node.this) if node.this else None,
            ifs=[
                exp.If(this=condition(branch.this), true=self.write(branch.args["true"])) for branch in node.args["ifs"]
            ],
            default=self.write(default) if default else None,
        )

    def _condition(self, node: exp.Expr) -> exp.Expr:
        """The condition of a choice; a NULL without a type, which Spark does not take there, becomes FALSE."""
        return exp.false() if self.type(node) == NULL.type else self.write(node)

    def _cast(self, node: exp.Expr) -> exp.Expr:
        value, source, target = self.write(node.this), self.type(node.this), node.args["to"].sql()
        if target in ("TEXT", "VARCHAR"):
            return _try_cast(_to_bigint(value) if source == DOUBLE else value, "STRING")
        if target == "BIGINT" and source == DOUBLE:
            return _number(_to_bigint(value), self.type(node))
        return _number(_try_cast(value, target), self.type(node))


_ZERO = exp.Literal.number("0L")


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def _case(condition: exp.Expr, yes: exp.Expr, no: exp.Expr | None) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition, true=yes)], default=no)


def _is_null(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=exp.Paren(this=node.copy()), expression=exp.Null())


def _try_cast(node: exp.Expr, target: str) -> exp.Expr:
    return exp.TryCast(this=node, to=exp.DataType.build(target), safe=True)


def _to_bigint(node: exp.Expr) -> exp.Expr:
    """A DOUBLE cast to BIGINT; NULL for 2⁶³, which Spark would turn into 2⁶³ - 1."""
    return _try_cast(exp.Nullif(this=node, expression=exp.Literal.number("9223372036854775808D")), "BIGINT")


def _number(node: exp.Expr, kind: Any) -> exp.Expr:
    """A number cast to BIGINT or DOUBLE."""
    return exp.Cast(this=node, to=exp.DataType.build("DOUBLE" if kind == DOUBLE else "BIGINT"))


_SPECIAL: dict[type[exp.Expr], Callable[[_Writer, exp.Expr], exp.Expr]] = {
    exp.Add: _Writer._arithmetic,
    exp.Sub: _Writer._arithmetic,
    exp.Mul: _Writer._arithmetic,
    exp.Neg: _Writer._arithmetic,
    exp.Abs: _Writer._arithmetic,
    exp.Column: _Writer._column,
    exp.Literal: _Writer._literal,
    exp.Div: _Writer._divide,
    exp.Mod: _Writer._remainder,
    exp.Pow: _Writer._power,
    exp.Ln: _Writer._log,
    exp.Log: _Writer._log,
    exp.Floor: _Writer._whole,
    exp.Ceil: _Writer._whole,
    exp.Round: _Writer._whole,
    exp.Length: _Writer._length,
    exp.If: _Writer._if,
    exp.Case: _Writer._choice,
    exp.Cast: _Writer._cast,
    exp.TryCast: _Writer._cast,
}

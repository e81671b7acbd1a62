"""From the expressions of a query to a program for :mod:`skyband.kernels.pairs.program`, where there is one.

A program computes in doubles and knows one kind of nothing, NaN. So it takes arithmetic, ABS, SQRT, the powers 2, 3 and
4, GREATEST and LEAST of what is never NULL, and in conditions comparisons, BETWEEN, AND and OR: there its result is
that of the expression, to the last digit (integers beyond 2⁵³ excepted, which are rounded; comparisons of two integer
columns are exact). All else is left to the vectorised expression.
"""

from dataclasses import dataclass, field

import numpy as np
from sqlglot import exp

from skyband.expressions import Expression
from skyband.expressions.operators import SMALL_POWERS
from skyband.kernels.pairs import program as ops
from skyband.kernels.pairs.program import Program
from skyband.query.sides import Fitted, Value

EXACT = 2**53  # smaller integers are doubles, and no larger one is rounded to them

_BINARY: dict[type[exp.Expr], int] = {
    exp.Add: ops.ADD, exp.Sub: ops.SUBTRACT, exp.Mul: ops.MULTIPLY, exp.Div: ops.DIVIDE, exp.Mod: ops.REMAINDER,
}  # fmt: skip
_UNARY: dict[type[exp.Expr], int] = {exp.Neg: ops.NEGATE, exp.Abs: ops.ABSOLUTE, exp.Sqrt: ops.SQUARE_ROOT}
_COMPARISONS: dict[type[exp.Expr], int] = {
    exp.LT: ops.LESS, exp.LTE: ops.AT_MOST, exp.EQ: ops.EQUAL, exp.NEQ: ops.UNEQUAL,
}  # fmt: skip
_TURNED: dict[type[exp.Expr], int] = {exp.GT: ops.LESS, exp.GTE: ops.AT_MOST}


class Uncompilable(Exception):
    """An expression says something that a program cannot."""


@dataclass
class Code:
    """A program in the making, over some columns of values."""

    values: tuple[Value, ...]
    lines: list[tuple[int, int, int, int]] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    registers: int = 2

    def emit(self, what: int, to: int, x: int = 0, y: int = 0) -> int:
        self.lines.append((what, to, x, y))
        self.registers = max(self.registers, to + 1)
        return to

    def constant(self, value: float, to: int) -> int:
        self.constants.append(value)
        return self.emit(ops.CONSTANT, to, len(self.constants) - 1)

    def column(self, node: exp.Expr, part: str = "number") -> int:
        names = {value.column: i for i, value in enumerate(self.values) if value.part == part}
        found = [names[node.name]] if node.name in names else [
            i for name, i in names.items() if name.lower() == node.name.lower()
        ]  # fmt: skip
        if not found:
            raise Uncompilable
        return found[0]

    def number(self, node: exp.Expr, to: int) -> int:
        """The value of a tree in register ``to``; those behind it are free."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Column):
            return self.emit(ops.OF_A if node.table.lower() == "a" else ops.OF_B, to, self.column(node))
        if isinstance(node, exp.Literal) and not node.is_string:
            if node.is_int and int(node.name) >= EXACT:  # to compare with it asks for integers
                raise Uncompilable
            return self.constant(float(node.name), to)
        if (columns := self.difference(node)) is not None:
            return self.emit(ops.DIFFERENCE, to, *columns)
        if (columns := self.distance(node)) is not None:
            return self.emit(ops.DISTANCE, to, *columns)
        if type(node) in _UNARY:
            return self.emit(_UNARY[type(node)], to, self.number(node.this, to))
        if isinstance(node, exp.Add | exp.Mul) and (columns := self.distance(node.expression)) is not None:
            self.number(node.this, to)
            return self.emit(ops.PLUS_DISTANCE if isinstance(node, exp.Add) else ops.TIMES_DISTANCE, to, *columns)
        if type(node) in _BINARY:
            return self.emit(_BINARY[type(node)], to, *self.operands(node.this, node.expression, to))
        if isinstance(node, exp.Pow):
            return self.power(node, to)
        if isinstance(node, exp.Greatest | exp.Least):
            return self.extreme(node, to)
        raise Uncompilable

    def operands(self, x: exp.Expr, y: exp.Expr, to: int) -> tuple[int, int]:
        return self.number(x, to), self.number(y, to + 1)

    def difference(self, node: exp.Expr) -> tuple[int, int] | None:
        """The columns of ``a.x - b.y``, which is one instruction."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Sub):
            return None
        x, y = node.this, node.expression
        if not (isinstance(x, exp.Column) and isinstance(y, exp.Column)):
            return None
        return (self.column(x), self.column(y)) if (x.table.lower(), y.table.lower()) == ("a", "b") else None

    def distance(self, node: exp.Expr) -> tuple[int, int] | None:
        """The columns of ``abs(a.x - b.y)``."""
        while isinstance(node, exp.Paren):
            node = node.this
        return self.difference(node.this) if isinstance(node, exp.Abs) else None

    def power(self, node: exp.Expr, to: int) -> int:
        exponent = node.expression
        if not isinstance(exponent, exp.Literal) or float(exponent.name) not in SMALL_POWERS:
            raise Uncompilable
        self.number(node.this, to + 1)
        self.emit(ops.MULTIPLY, to, to + 1, to + 1)
        for _ in range(int(float(exponent.name)) - 2):
            self.emit(ops.MULTIPLY, to, to, to + 1)
        return to

    def extreme(self, node: exp.Expr, to: int) -> int:
        if any(_may_be_null(part) for part in node.find_all(exp.Div, exp.Mod)):
            raise Uncompilable
        what = ops.GREATEST if isinstance(node, exp.Greatest) else ops.LEAST
        self.number(node.this, to)
        for other in node.expressions:
            self.emit(what, to, to, self.number(other, to + 1))
        return to

    def condition(self, node: exp.Expr, to: int) -> int:
        """1 or 0 in register ``to``, as the condition is true or not."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.And | exp.Or):
            self.condition(node.this, to)
            self.condition(node.expression, to + 1)
            return self.emit(ops.AND if isinstance(node, exp.And) else ops.OR, to, to, to + 1)
        if isinstance(node, exp.Between):
            low, high = node.args["low"], node.args["high"]
            self.compare(ops.AT_MOST, low, node.this, to)
            return self.emit(ops.AND, to, to, self.compare(ops.AT_MOST, node.this, high, to + 1))
        if type(node) in _COMPARISONS:
            return self.compare(_COMPARISONS[type(node)], node.this, node.expression, to)
        if type(node) in _TURNED:
            return self.compare(_TURNED[type(node)], node.expression, node.this, to)
        raise Uncompilable

    def compare(self, what: int, x: exp.Expr, y: exp.Expr, to: int) -> int:
        try:
            return self.exact(what, x, y, to)
        except Uncompilable:
            return self.emit(what, to, *self.operands(x, y, to))

    def exact(self, what: int, x: exp.Expr, y: exp.Expr, to: int) -> int:
        """Two 64-bit columns by their halves: a double may hold two neighbours for one."""
        if not (isinstance(x, exp.Column) and isinstance(y, exp.Column)):
            raise Uncompilable
        sides = [ops.OF_A if column.table.lower() == "a" else ops.OF_B for column in (x, y)]
        high, low = ([self.column(column, part) for column in (x, y)] for part in ("high", "low"))

        def halves(what: int, which: list[int], to: int) -> int:
            for register, (side, column) in enumerate(zip(sides, which, strict=True), to):
                self.emit(side, register, column)
            return self.emit(what, to, to, to + 1)

        if what in (ops.EQUAL, ops.UNEQUAL):
            halves(what, high, to)
            return self.emit(ops.AND if what == ops.EQUAL else ops.OR, to, to, halves(what, low, to + 1))
        halves(ops.LESS, high, to)
        halves(ops.EQUAL, high, to + 1)
        self.emit(ops.AND, to + 1, to + 1, halves(what, low, to + 2))
        return self.emit(ops.OR, to, to, to + 1)


def _may_be_null(quotient: exp.Expr) -> bool:
    divisor = quotient.expression
    return not isinstance(divisor, exp.Literal) or divisor.is_string or float(divisor.name) == 0


def compiled(fitted: Fitted) -> Program | None:
    """The program for the goodness of pairs; None where the expressions say what a program cannot."""
    if not isinstance(fitted.score.source, Expression):
        return None
    code = Code(fitted.values)
    known = [i for i, value in enumerate(fitted.values) if value.part == "known"]
    try:
        code.number(fitted.score.source.tree, 0)
        if not fitted.score.descending:
            code.emit(ops.NEGATE, 0, 0)
        if fitted.rest is not None:
            code.condition(fitted.rest.tree, 1)
    except Uncompilable:
        return None
    for n, i in enumerate(known):
        to = 1 if n == 0 and fitted.rest is None else 2
        code.emit(ops.OF_A, to, i)
        code.emit(ops.OF_B, to + 1, i)
        code.emit(ops.EQUAL, to, to, to + 1)
        if to > 1:
            code.emit(ops.AND, 1, 1, to)
    conditional = fitted.rest is not None or bool(known)
    return Program(np.array(code.lines, np.int64), np.array(code.constants), code.registers, conditional)

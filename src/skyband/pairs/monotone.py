"""Global scoring functions, recognised from the expression: monotone in the differences of single columns.

A score is *global* (pairs, section 5.2) if its columns occur only as differences of one column, ``abs(a.x - b.x)`` or
an even power of ``a.x - b.x``, and it rises with each of them or falls with each: sums and products, weighted or not,
closest in some columns and furthest in others, Lp distances, ratios. Rounding is monotone too, so that a bound that is
computed by the same operations holds to the last digit.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from skyband.expressions import Expression
from skyband.kernels.pairs import program as ops
from skyband.kernels.pairs.program import Program
from skyband.pairs.compiler import Code, Uncompilable
from skyband.queries.paired import Fitted, Value


class Global(NamedTuple):
    """What TA needs to know of a score."""

    column: NDArray[np.int64]  # of each local score: among the values of a row
    furthest: NDArray[np.bool_]  # whether goodness rises with the difference
    bound: Program  # the goodness from the differences, as columns of a


class NotGlobal(Exception):
    """An expression that is not known to be monotone."""


@dataclass
class _Reader:
    """Walks an expression; ``rises`` tells of each column whether goodness rises with its difference."""

    code: Code
    rises: dict[str, bool] = field(default_factory=dict)

    def leaf(self, node: exp.Expr, rises: bool) -> exp.Expr:
        """A difference, perhaps times or over a number, with its distance in the place of the difference."""
        node = _bare(node)
        if isinstance(node, exp.Div | exp.Mul) and isinstance(_bare(node.expression), exp.Literal):
            return type(node)(this=self.leaf(node.this, rises), expression=node.expression.copy())
        columns = self.code.difference(node)
        if columns is None or columns[0] != columns[1]:
            raise NotGlobal
        name = str(columns[0])
        if self.rises.setdefault(name, rises) != rises:
            raise NotGlobal
        return exp.column(name, "a", quoted=True)

    def read(self, node: exp.Expr, rises: bool) -> exp.Expr:
        """The same over distances; goodness rises with the value of the node if ``rises``, else it falls."""
        node = _bare(node)
        match node:
            case exp.Literal():
                return node.copy()
            case exp.Abs():
                return exp.Abs(this=self.leaf(node.this, rises))
            case exp.Pow() if float(node.expression.name) in (2, 4):
                return exp.Pow(this=self.leaf(node.this, rises), expression=node.expression.copy())
            case exp.Mul() if _bare(node.this) == _bare(node.expression) and sign(node.this) == 0:
                return exp.Mul(this=self.leaf(node.this, rises), expression=self.leaf(node.expression, rises))
            case exp.Add() | exp.Greatest() | exp.Least():
                parts = {"this": self.read(node.this, rises)}
                if isinstance(node, exp.Add):
                    return exp.Add(**parts, expression=self.read(node.expression, rises))
                return type(node)(**parts, expressions=[self.read(part, rises) for part in node.expressions])
            case exp.Sub():
                return exp.Sub(this=self.read(node.this, rises), expression=self.read(node.expression, not rises))
            case exp.Neg():
                return exp.Neg(this=self.read(node.this, not rises))
            case exp.Mul() | exp.Div():
                x, y = sign(node.this), sign(node.expression)
                if not x * y and not (_constant(node.this) or _constant(node.expression)):
                    raise NotGlobal
                with_y = (x > 0) == rises if isinstance(node, exp.Mul) else (x > 0) != rises
                constant = isinstance(_bare(node.expression), exp.Literal)
                other = node.expression.copy() if constant else self.read(node.expression, with_y)
                return type(node)(this=self.read(node.this, (y > 0) == rises), expression=other)
            case exp.Sqrt() if sign(node.this) > 0:
                return exp.Sqrt(this=self.read(node.this, rises))
        raise NotGlobal


def sign(node: exp.Expr) -> int:
    """1 for what is never negative, -1 for what is never positive, 0 for what is not known."""
    node = _bare(node)
    match node:
        case exp.Literal() | exp.Abs() | exp.Sqrt():
            return 1
        case exp.Neg():
            return -sign(node.this)
        case exp.Pow():
            return 1 if float(node.expression.name) in (2, 4) else sign(node.this)
        case exp.Mul() | exp.Div():
            return 1 if _bare(node.this) == _bare(node.expression) else sign(node.this) * sign(node.expression)
        case exp.Add():
            return sign(node.this) if sign(node.this) == sign(node.expression) else 0
        case exp.Greatest() | exp.Least():
            signs = {sign(part) for part in (node.this, *node.expressions)}
            return signs.pop() if len(signs) == 1 else 0
    return 0


def recognised(fitted: Fitted) -> Global | None:
    """The score as a global function; None where it is not known to be one."""
    source = fitted.score.source
    if not isinstance(source, Expression):
        return None
    reader = _Reader(Code(fitted.values))
    try:
        tree = reader.read(source.tree, fitted.score.descending)
        names = tuple(reader.rises)
        code = Code(tuple(Value(name, "number") for name in names))
        code.number(tree, 0)
    except (NotGlobal, Uncompilable, ValueError):
        return None
    if not names:
        return None
    if not fitted.score.descending:
        code.emit(ops.NEGATE, 0, 0)
    bound = Program(np.array(code.lines, np.int64), np.array(code.constants), code.registers, False)
    return Global(np.array([int(name) for name in names]), np.array([reader.rises[name] for name in names]), bound)


def _constant(node: exp.Expr) -> bool:
    node = _bare(node)
    return isinstance(node.this if isinstance(node, exp.Neg) else node, exp.Literal)


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node

"""Finds out from its expression whether a score of pairs rises or falls with the distance in each of its columns.

What is recognised is a score whose columns occur only as distances in one column: ``abs(a.x - b.x)`` or an even power
of ``a.x - b.x``, the difference perhaps times or over a number. It must rise with each distance or fall with it, all
else being equal: sums, differences and the largest of such terms, weighted or not, closest in some columns and furthest
in others, and products, quotients, roots and other powers of what is never negative, as in Lp distances. These are some
of the *global scoring functions* for which Shen et al. (TKDE 2014, section 5.2) have TA; what else is one they leave to
Cheema et al. (ICDE 2011, section II), and it is not recognised here. Rounding is monotone too, so that a bound that is
computed by the same operations holds to the last digit. Infinite distances do no harm: where one makes a score NaN
there is no pair, and a bound that is NaN ends no search.
"""

from dataclasses import dataclass, field

import numpy as np
from sqlglot import exp

from skyband.algorithms.pairs.compiler import Code, Uncompilable
from skyband.expressions import Expression
from skyband.kernels.pairs import program as ops
from skyband.kernels.pairs.program import Program
from skyband.kernels.pairs.ta import GlobalScore
from skyband.query.sides import Fitted, Value


class NotGlobal(Exception):
    """An expression that is not known to be monotone."""


@dataclass
class _Reader:
    """Walks an expression; ``rises`` tells of each column whether goodness rises with its difference."""

    code: Code
    rises: dict[str, bool] = field(default_factory=dict)

    def leaf(self, node: exp.Expr, rises: bool) -> exp.Expr:
        """A difference, perhaps times or over a number, with the distance in its place."""
        node = _bare(node)
        if isinstance(node, exp.Div | exp.Mul) and isinstance(_bare(node.expression), exp.Literal):
            return type(node)(this=self.leaf(node.this, rises), expression=node.expression.copy())
        if isinstance(node, exp.Mul) and isinstance(_bare(node.this), exp.Literal):
            return exp.Mul(this=node.this.copy(), expression=self.leaf(node.expression, rises))
        name = self.column(node)
        if self.rises.setdefault(name, rises) != rises:
            raise NotGlobal
        return exp.column(name, "a", quoted=True)

    def column(self, node: exp.Expr) -> str:
        """The column of ``a.x - b.x`` or ``b.x - a.x``, by its number."""
        columns = self.code.difference(node)
        if columns is None and isinstance(node, exp.Sub):
            columns = self.code.difference(exp.Sub(this=node.expression.copy(), expression=node.this.copy()))
        if columns is None or len(set(columns)) > 1:
            raise NotGlobal
        return str(min(columns))

    def read(self, node: exp.Expr, rises: bool) -> exp.Expr:
        """The same over distances; goodness rises with the value of the node if ``rises``, else it falls.

        There is no LEAST: it passes over NaN (inf - inf), so that a pair may do better than all its bounds.
        """
        node = _bare(node)
        match node:
            case exp.Literal():
                return node.copy()
            case exp.Abs():
                return exp.Abs(this=self.leaf(node.this, rises))
            case exp.Pow() if sign(node.this) > 0:  # no program takes a negative exponent
                return exp.Pow(this=self.read(node.this, rises), expression=node.expression.copy())
            case exp.Pow() if _even(node.expression):
                return exp.Pow(this=self.leaf(node.this, rises), expression=node.expression.copy())
            case exp.Mul() if _bare(node.this) == _bare(node.expression) and sign(node.this) == 0:
                return exp.Mul(this=self.leaf(node.this, rises), expression=self.leaf(node.expression, rises))
            case exp.Add():
                return exp.Add(this=self.read(node.this, rises), expression=self.read(node.expression, rises))
            case exp.Greatest():
                others = [self.read(part, rises) for part in node.expressions]
                return exp.Greatest(this=self.read(node.this, rises), expressions=others)
            case exp.Sub():
                return exp.Sub(this=self.read(node.this, rises), expression=self.read(node.expression, not rises))
            case exp.Neg():
                return exp.Neg(this=self.read(node.this, not rises))
            case exp.Mul() | exp.Div():
                return self.product(node, rises)
            case exp.Sqrt() if sign(node.this) > 0:
                return exp.Sqrt(this=self.read(node.this, rises))
        raise NotGlobal

    def product(self, node: exp.Mul | exp.Div, rises: bool) -> exp.Expr:
        """A product rises with one side if the other is not negative. A quotient jumps where its divisor changes sign,
        a constant dividend or not."""
        x, y = sign(node.this), sign(node.expression)
        divides = isinstance(node, exp.Div)
        if not x * y and not _constant(node.expression) and (divides or not _constant(node.this)):
            raise NotGlobal
        with_y = (x > 0) != rises if divides else (x > 0) == rises
        constant = isinstance(_bare(node.expression), exp.Literal)
        other = node.expression.copy() if constant else self.read(node.expression, with_y)
        return type(node)(this=self.read(node.this, (y > 0) == rises), expression=other)


def sign(node: exp.Expr) -> int:
    """1 for what is never negative, -1 for what is never positive, 0 for what is not known."""
    node = _bare(node)
    match node:
        case exp.Literal() | exp.Abs() | exp.Sqrt():
            return 1
        case exp.Neg():
            return -sign(node.this)
        case exp.Pow():
            return 1 if _even(node.expression) else sign(node.this)
        case exp.Mul() | exp.Div():
            return 1 if _bare(node.this) == _bare(node.expression) else sign(node.this) * sign(node.expression)
        case exp.Add():
            return sign(node.this) if sign(node.this) == sign(node.expression) else 0
        case exp.Greatest():
            signs = {sign(part) for part in (node.this, *node.expressions)}
            return signs.pop() if len(signs) == 1 else 0
    return 0


def recognised(fitted: Fitted) -> GlobalScore | None:
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
    except (NotGlobal, Uncompilable):
        return None
    if not names:
        return None
    if not fitted.score.descending:
        code.emit(ops.NEGATE, 0, 0)
    bound = Program(np.array(code.lines, np.int64), np.array(code.constants), code.registers, False)
    return GlobalScore(np.array([int(name) for name in names]), np.array([reader.rises[name] for name in names]), bound)


def _even(exponent: exp.Expr) -> bool:
    return isinstance(exponent, exp.Literal) and not exponent.is_string and float(exponent.name) in (2, 4)


def _constant(node: exp.Expr) -> bool:
    node = _bare(node)
    return isinstance(node.this if isinstance(node, exp.Neg) else node, exp.Literal)


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node

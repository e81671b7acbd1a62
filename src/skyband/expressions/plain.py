"""Evaluates plain arithmetic over doubles with NumPy: over few rows, a call of Arrow takes several times as long."""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from skyband.expressions.frame import Reference, literal, reference
from skyband.expressions.operators import SMALL_POWERS
from skyband.expressions.values import DOUBLE

FEW = 4096  # rows: with more, the memory of intermediate results costs more than the calls, and Arrow reuses it

Step = tuple[Callable[..., Any] | None, Any]  # a function and how many operands it takes; or None and an operand

# What gives the same as Arrow to the last bit.
_FUNCTIONS: dict[type[exp.Expr], Callable[..., Any]] = {
    exp.Add: np.add,
    exp.Sub: np.subtract,
    exp.Mul: np.multiply,
    exp.Neg: np.negative,
    exp.Abs: np.absolute,
    exp.Sqrt: np.sqrt,
}


class Plain:
    """A tree of sums, differences, products, small powers, roots and absolute values, ready for columns of doubles."""

    def __init__(self, steps: list[Step]) -> None:
        self._steps = steps  # operands before what takes them

    @classmethod
    def of(cls, tree: exp.Expr) -> "Plain | None":
        """The tree; None if there is something else in it, or arithmetic of constants, which may be of integers."""
        steps: list[Step] = []
        constants: list[float | None] = []  # of the operands that are there by now; None for one that varies
        for node in _upwards(tree):
            kind = type(node)
            if kind is exp.Column:
                steps.append((None, reference(node)))
                constants.append(None)
            elif kind is exp.Literal and not node.is_string:
                number = literal(node.name).as_py()
                constants.append(number)
                steps.append((None, float(number)))
            elif kind is exp.Neg and constants[-1] is not None:
                number = -constants[-1]  # 0 has no sign if it is an integer
                constants[-1], steps[-1] = number, (None, float(number))
            elif kind is exp.Pow and constants[-1] in SMALL_POWERS and constants[-2] is None:
                steps[-1] = partial(_power, int(constants.pop() or 0)), 1
            elif kind in _FUNCTIONS:
                count = 2 if issubclass(kind, exp.Binary) else 1
                if None not in constants[-count:]:
                    return None
                constants[-count:] = [None]
                steps.append((_FUNCTIONS[kind], count))
            elif kind is not exp.Paren:
                return None
        return cls(steps) if constants == [None] else None

    def takes(self, columns: dict[Reference, pa.Array]) -> bool:
        """Whether it can be evaluated over these columns, and should be: doubles without NULL, in few rows."""
        return all(
            len(column) <= FEW and column.type == DOUBLE and not column.null_count for column in columns.values()
        )

    def evaluate(self, columns: dict[Reference, pa.Array]) -> pa.Array:
        """The value in each row."""
        arrays = {key: column.to_numpy() for key, column in columns.items()}
        stack: list[Any] = []
        with np.errstate(all="ignore"):
            for function, what in self._steps:
                if function is None:
                    stack.append(arrays.get(what, what))
                else:
                    stack[-what:] = [function(*stack[-what:])]
        return pa.array(stack[0])


def _power(exponent: int, base: Any) -> Any:
    return reduce(np.multiply, [base] * exponent)


def _upwards(tree: exp.Expr) -> list[exp.Expr]:
    """The nodes of a tree, operands before what takes them; without recursion, as sums of many terms are deep."""
    found, left = [], [tree]
    while left:
        node = left.pop()
        found.append(node)
        if type(node) not in (exp.Column, exp.Literal):
            left.extend(node.iter_expressions())
    return found[::-1]

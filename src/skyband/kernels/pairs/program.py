"""Scores of pairs as small programs over columns: one object beside a run of others, a block at a time.

A program is data, so that no query waits for a compiler. Each instruction is one loop over a block of numbers that
stay in the cache, which the compiler turns into vector instructions: what is left of the cost of interpreting it, some
tens of nanoseconds for each instruction and block, is a tenth of the work or less.

NaN stands for "no number": NULL and NaN alike. Conditions are 1 or 0; a comparison with NaN is 0, hence there is no
NOT.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BLOCK = 512  # numbers in a register

# Instructions: what is put into register ``to``, from registers x and y, columns x of a and y of b, or constant x.
CONSTANT, OF_A, OF_B, DIFFERENCE, DISTANCE = range(5)
ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, GREATEST, LEAST = range(5, 12)
NEGATE, ABSOLUTE, SQUARE_ROOT = range(12, 15)
LESS, AT_MOST, EQUAL, UNEQUAL, AND, OR = range(15, 21)


class Program(NamedTuple):
    """Instructions ``(what, to, x, y)``. The score ends up in register 0, and whether ``where`` holds in register 1."""

    code: Ints  # two-dimensional
    constant: Floats
    registers: int
    conditional: bool  # whether there is a condition


@njit(cache=True)
def run(program: Program, columns: Floats, low: int, high: int, fixed: Floats, first: bool, register: Floats) -> None:
    """Evaluate for the objects ``[low, high)``, at most a block; the ``fixed`` object is a if ``first``, else b."""
    n = high - low
    for at in range(program.code.shape[0]):
        what, to, x, y = program.code[at]
        out = register[to, :n]
        if what in (DISTANCE, DIFFERENCE):
            if first:
                _differ(out, columns[y, low:high], fixed[x], -1.0)
            else:
                _differ(out, columns[x, low:high], fixed[y], 1.0)
            if what == DISTANCE:
                _absolute(out, out)
        elif what == CONSTANT:
            out[:] = program.constant[x]
        elif what in (OF_A, OF_B):
            if (what == OF_A) == first:
                out[:] = fixed[x]
            else:
                out[:] = columns[x, low:high]
        elif what >= LESS:
            _compare(what, out, register[x, :n], register[y, :n])
        elif what >= NEGATE:
            _alter(what, out, register[x, :n])
        else:
            _combine(what, out, register[x, :n], register[y, :n])


@njit(cache=True)
def _differ(out: Floats, x: Floats, y: float, sign: float) -> None:
    if sign > 0:
        for i in range(out.size):
            out[i] = x[i] - y
    else:
        for i in range(out.size):
            out[i] = y - x[i]


@njit(cache=True)
def _absolute(out: Floats, x: Floats) -> None:
    for i in range(out.size):
        out[i] = abs(x[i])


@njit(cache=True)
def _alter(what: int, out: Floats, x: Floats) -> None:
    if what == NEGATE:
        for i in range(out.size):
            out[i] = -x[i]
    elif what == ABSOLUTE:
        _absolute(out, x)
    else:
        for i in range(out.size):
            out[i] = np.sqrt(x[i])


@njit(cache=True)
def _combine(what: int, out: Floats, x: Floats, y: Floats) -> None:
    if what == ADD:
        for i in range(out.size):
            out[i] = x[i] + y[i]
    elif what == SUBTRACT:
        for i in range(out.size):
            out[i] = x[i] - y[i]
    elif what == MULTIPLY:
        for i in range(out.size):
            out[i] = x[i] * y[i]
    elif what == DIVIDE:
        for i in range(out.size):
            out[i] = x[i] / y[i] if y[i] != 0.0 else np.nan
    elif what == REMAINDER:
        for i in range(out.size):
            out[i] = np.fmod(x[i], y[i]) if y[i] != 0.0 else np.nan
    elif what == GREATEST:  # NaN is larger than every number
        for i in range(out.size):
            out[i] = x[i] if x[i] > y[i] or x[i] != x[i] else y[i]
    else:
        for i in range(out.size):
            out[i] = x[i] if x[i] < y[i] or y[i] != y[i] else y[i]


@njit(cache=True)
def _compare(what: int, out: Floats, x: Floats, y: Floats) -> None:
    if what == LESS:
        for i in range(out.size):
            out[i] = 1.0 if x[i] < y[i] else 0.0
    elif what == AT_MOST:
        for i in range(out.size):
            out[i] = 1.0 if x[i] <= y[i] else 0.0
    elif what == EQUAL:
        for i in range(out.size):
            out[i] = 1.0 if x[i] == y[i] else 0.0
    elif what == UNEQUAL:
        for i in range(out.size):
            out[i] = 1.0 if x[i] < y[i] or x[i] > y[i] else 0.0
    elif what == AND:
        for i in range(out.size):
            out[i] = x[i] * y[i]
    else:
        for i in range(out.size):
            out[i] = max(x[i], y[i])


@njit(cache=True)
def evaluate(
    program: Program, columns: Floats, low: int, high: int, fixed: Floats, first: bool,
    register: Floats, score: Floats, swapped: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Scores of the pairs with ``[low, high)``, NaN where there is none; ``swapped`` where ``where`` holds only so."""
    n = high - low
    run(program, columns, low, high, fixed, first, register)
    score[:n] = register[0, :n]
    swapped[:n] = False
    if not program.conditional:
        return
    fails = 0
    for i in range(n):
        if register[1, i] != 1.0:
            score[i] = np.nan
            swapped[i] = True
            fails += 1
    if fails == 0:
        return
    run(program, columns, low, high, fixed, not first, register)
    for i in range(n):
        if swapped[i]:
            if register[1, i] == 1.0:
                score[i] = register[0, i]
            else:
                swapped[i] = False

"""Scores of pairs as small programs over columns: one object beside a run of others, a block at a time.

A program is data, so that no query waits for a compiler. Each instruction is one loop over a block of numbers that
stay in the cache, which the compiler turns into vector instructions: what is left of the cost of interpreting it, some
tens of nanoseconds for each instruction and block, is a tenth of the work or less.

NaN stands for "no number": NULL and NaN alike. Conditions are 1 or 0; a comparison with NaN is 0, hence there is no
NOT.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner
from skyband.storage.blocks import Floats, Ints

BLOCK = 1024  # numbers in a register
SCORE, HOLDS = 0, 1  # the registers that the score ends up in, and whether ``where`` holds

# Instructions: what is put into register ``to``, from registers x and y, columns x of a and y of b, or constant x.
CONSTANT, OF_A, OF_B = range(3)
DIFFERENCE, DISTANCE, PLUS_DISTANCE, TIMES_DISTANCE = range(3, 7)  # of two columns; what is in the register counts too
ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, GREATEST, LEAST = range(7, 14)
NEGATE, ABSOLUTE, SQUARE_ROOT = range(14, 17)
LESS, AT_MOST, EQUAL, UNEQUAL, AND, OR = range(17, 23)


class Program(NamedTuple):
    """Instructions ``(what, to, x, y)``, which leave their results in the registers SCORE and HOLDS."""

    code: Ints  # two-dimensional
    constant: Floats
    registers: int
    conditional: bool  # whether there is a condition


@inner
def run(program: Program, columns: Floats, low: int, high: int, fixed: Floats, first: bool, register: Floats) -> None:
    """Evaluate for the objects ``[low, high)``, at most a block; the ``fixed`` object is a if ``first``, else b."""
    n = high - low
    for at in range(program.code.shape[0]):
        what, to, x, y = program.code[at]
        out = register[to, :n]
        if DIFFERENCE <= what <= TIMES_DISTANCE:
            if first:
                _differ(what, out, columns[y, low:high], fixed[x], -1.0)
            else:
                _differ(what, out, columns[x, low:high], fixed[y], 1.0)
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


@inner
def _differ(what: int, out: Floats, x: Floats, y: float, sign: float) -> None:
    if what == DIFFERENCE:
        for i in range(out.size):
            out[i] = sign * (x[i] - y)
    elif what == DISTANCE:
        for i in range(out.size):
            out[i] = abs(x[i] - y)
    elif what == PLUS_DISTANCE:
        for i in range(out.size):
            out[i] += abs(x[i] - y)
    else:
        for i in range(out.size):
            out[i] *= abs(x[i] - y)


@inner
def _alter(what: int, out: Floats, x: Floats) -> None:
    if what == NEGATE:
        for i in range(out.size):
            out[i] = -x[i]
    elif what == ABSOLUTE:
        for i in range(out.size):
            out[i] = abs(x[i])
    else:
        for i in range(out.size):
            out[i] = np.sqrt(x[i])


@inner
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


@inner
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


@inner
def evaluate(
    program: Program, columns: Floats, low: int, high: int, fixed: Floats, first: bool, register: Floats,
    swapped: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Scores of the pairs with ``[low, high)`` in register SCORE, NaN where there is none.

    Where there is a condition, ``swapped`` tells which pairs it holds for only the other way round.
    """
    run(program, columns, low, high, fixed, first, register)
    if not program.conditional:
        return
    n = high - low
    score, holds, fails = register[SCORE, :n], register[HOLDS, :n], 0
    for i in range(n):
        swapped[i] = holds[i] != 1.0
        fails += swapped[i]
    if fails == 0:
        return
    before = score.copy()
    run(program, columns, low, high, fixed, not first, register)
    for i in range(n):
        if not swapped[i]:
            score[i] = before[i]
        elif holds[i] != 1.0:
            score[i] = np.nan
            swapped[i] = False

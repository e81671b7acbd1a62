"""The supreme algorithm of *pairs* (section 7.1.2): the score and the age of each new pair, and nothing else.

It is no algorithm but a lower bound: an oracle is supposed to know which pairs are in the K-skyband. As in the paper
it is a part of SCase's own code, Algorithm 3, lines 2 and 3.
"""

import numpy as np

from skyband.kernels.jit import outer
from skyband.kernels.pairs.program import BLOCK, evaluate
from skyband.kernels.pairs.scase import step_on
from skyband.kernels.pairs.window import START, enter, place_of


@outer
def supreme(window, queries, program, objects, register, swapped, age):
    """Takes objects in that come in order."""
    total = 0.0
    for i in range(objects.time.size):
        step_on(window, queries, objects.time[i], True)
        at = place_of(window, objects.time[i])
        low, high = window.meta[START], at
        while high > low:
            begin = max(low, high - BLOCK)
            evaluate(program, window.values, begin, high, objects.values[i], False, register, swapped)
            for j in range(high - begin):
                age[j] = objects.time[i] - window.time[begin + j]
            total += register[0, 0] + age[0]  # so that nothing can be left out
            high = begin
        enter(window, at, objects, i)
    return total


def room():
    return np.zeros(BLOCK, np.bool_), np.empty(BLOCK, np.int64)

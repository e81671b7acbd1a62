"""The supreme algorithm of *pairs* (section 7.1.2): the score and the age of each new pair, and nothing else.

It is no algorithm but a lower bound: an oracle is supposed to know which pairs are in the K-skyband. It does lines 2
and 3 of Algorithm 3, which compute score and age. SCase itself never writes ages down, since its pairs are in the order
of age already; so the bound is also measured without them (``ages=False``), which is the stricter one.
"""

import numpy as np

from skyband.kernels.common.jit import outer
from skyband.kernels.pairs.program import BLOCK, SCORE, evaluate
from skyband.kernels.pairs.upkeep import step_on
from skyband.kernels.pairs.window import enter, place_of


@outer
def supreme(window, queries, program, objects, register, swapped, age):
    """Takes objects in that come in order."""
    total = 0.0
    for i in range(objects.position.size):
        step_on(window, queries, objects.position[i], True)
        at = place_of(window, objects.position[i])
        low, high = window.meta[0].start, at
        while high > low:
            begin = max(low, high - BLOCK)
            evaluate(program, window.values, begin, high, objects.values[i], False, register, swapped)
            for j in range(high - begin if age.size else 0):
                age[j] = objects.position[i] - window.position[begin + j]
            total += register[SCORE, 0]  # so that nothing can be left out
            total += age[0] if age.size else 0.0
            high = begin
        enter(window, at, objects, i)
    return total


def room(ages):
    return np.zeros(BLOCK, np.bool_), np.empty(BLOCK if ages else 0, np.int64)

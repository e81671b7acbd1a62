"""The top-k lists of continuous queries over pairs, and the log of who entered and left them (pairs, section 4.2)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.common.staircase import LATEST
from skyband.kernels.pairs.band import Pair, Pairs, copy, pair_at, precedes

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ENTERED, LEFT = 1, -1


class Answers(NamedTuple):
    """A list for each query q, best first: ``size[q]`` pairs from ``base[q]`` on, with room up to ``base[q + 1]``."""

    score: Floats
    position: Ints
    older: Ints
    late: Ints
    newer: Ints
    base: Ints
    size: Ints
    oldest: Ints  # the age of the oldest pair in the list

    @property
    def pairs(self) -> Pairs:
        return Pairs(*self[:5])


class Log(NamedTuple):
    """What happened to the answers, in order; ``used[0]`` entries so far."""

    query: Ints
    trigger: Ints
    at: Ints
    op: NDArray[np.int8]
    first: Ints  # the number of a
    second: Ints  # of b
    score: Floats
    used: Ints


class Queries(NamedTuple):
    """The queries, and what they have in common."""

    k: Ints
    extent: Ints
    ties: NDArray[np.bool_]
    K: int  # the largest k
    N: int  # the longest extent
    strict: bool  # whether dominance asks for a better score


def no_answers(queries: int) -> Answers:
    """Empty lists, with no room."""
    none, nobody = np.empty(0), np.empty(0, np.int64)
    sizes = np.zeros(queries, np.int64)
    return Answers(none, nobody, nobody, nobody, nobody, np.zeros(queries + 1, np.int64), sizes,
                   np.full(queries, LATEST))  # fmt: skip


def no_log(room: int) -> Log:
    """An empty log for so many entries."""
    query, trigger, at, first, second = (np.empty(room, np.int64) for _ in range(5))
    return Log(query, trigger, at, np.empty(room, np.int8), first, second, np.empty(room), np.zeros(1, np.int64))


@outer
def reach(pairs: Pairs, size: int, k: int, ties: bool, start: int) -> tuple[int, int]:
    """How far down a ranked list the k best pairs reach that are not before ``start``, and how many there are."""
    held, end, kth = 0, 0, 0.0
    while end < size and (held < k or (ties and pairs.score[end] == kth)):
        if pairs.position[end] >= start:
            held += 1
            kth = pairs.score[end]
        end += 1
    return end, held


@outer
def renew(answers: Answers, log: Log, queries: Queries, pairs: Pairs, size: int, moment: tuple[int, int, int],
          best: float) -> None:  # fmt: skip
    """Bring the lists up to date with S, in which the best of the new pairs has the score ``best`` (NaN: none new).

    ``moment``: the newest position, and the position and number of the object that came.
    """
    lists = Pairs(answers.score, answers.position, answers.older, answers.late, answers.newer)
    for q in range(queries.k.size):
        start, k = moment[0] - queries.extent[q] + 1, queries.k[q]
        base, before = answers.base[q], answers.size[q]
        enters = best == best and (before < k or best >= lists.score[base + before - 1])
        if not enters and answers.oldest[q] >= start:
            continue
        end, held = reach(pairs, size, k, queries.ties[q], start)
        _note(log, q, moment, LEFT, lists, base, base + before, pairs, 0, end, start)
        _note(log, q, moment, ENTERED, pairs, 0, end, lists, base, base + before, start)
        at, oldest = base, LATEST
        for i in range(end):
            if pairs.position[i] >= start:
                copy(pairs, i, lists, at)
                oldest = min(oldest, pairs.position[i])
                at += 1
        answers.size[q], answers.oldest[q] = held, oldest


@inner
def _note(log: Log, q: int, moment: tuple[int, int, int], op: int, these: Pairs, low: int, high: int, those: Pairs,
          begin: int, end: int, start: int) -> None:  # fmt: skip
    """Add an entry for each pair of one ranked list that is not in the other; those before ``start`` are in neither.

    A pair that leaves because it expired is noted, hence ``start`` counts only for pairs of S.
    """
    j = begin
    for i in range(low, high):
        one = pair_at(these, i)
        if op == ENTERED and one[1] < start:
            continue
        while j < end and precedes(pair_at(those, j), one):
            j += 1
        if j < end and _equal(pair_at(those, j), one) and one[1] >= start:
            j += 1
        else:
            n = log.used[0]
            log.query[n], log.at[n], log.trigger[n], log.op[n], log.score[n] = q, moment[1], moment[2], op, one[0]
            swapped = one[4] & 1
            log.first[n] = one[4] >> 1 if swapped else one[2]
            log.second[n] = one[2] if swapped else one[4] >> 1
            log.used[0] = n + 1


@inner
def _equal(x: Pair, y: Pair) -> bool:
    return x[2] == y[2] and x[4] == y[4]

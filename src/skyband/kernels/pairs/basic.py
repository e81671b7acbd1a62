"""The basic algorithm for pairs (pairs, section 7.1.4): Algorithm 3 with dominance counters and without a staircase."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.pairs.answers import Answers, Log, Queries, renew
from skyband.kernels.pairs.band import Pair, Pairs, Stairs, copy, pair_at, precedes
from skyband.kernels.pairs.program import Program
from skyband.kernels.pairs.scan import Bar, Newcomer, Scratch, scan
from skyband.kernels.pairs.skyband import step_on
from skyband.kernels.pairs.window import FLOOR, NEWEST, SIZE, Objects, Window, enter, place_of

Ints = NDArray[np.int64]


@inner
def admit(band: Pairs, counter: Ints, size: int, of: Pair, K: int, strict: bool) -> int:
    """Put a pair into S unless K pairs there dominate it, and drop what K then dominate; returns the size of S."""
    at = count = 0
    while at < size and precedes(pair_at(band, at), of):
        if band.position[at] >= of[1] and (not strict or band.score[at] > of[0]):
            count += 1
            if count == K:
                return size
        at += 1
    for j in range(size, at, -1):
        copy(band, j - 1, band, j)
        counter[j] = counter[j - 1]
    band.score[at], band.position[at], band.older[at], band.late[at], band.newer[at] = of
    counter[at] = count
    kept = at + 1
    for j in range(at + 1, size + 1):
        counter[j] += band.position[j] <= of[1] and (not strict or band.score[j] < of[0])
        if counter[j] < K:
            copy(band, j, band, kept)
            counter[kept] = counter[j]
            kept += 1
    return kept


@inner
def drop_expired(band: Pairs, counter: Ints, size: int, floor: int) -> int:
    kept = 0
    for j in range(size):
        if band.position[j] >= floor:
            copy(band, j, band, kept)
            counter[kept] = counter[j]
            kept += 1
    return kept


@outer
def arrive_basic(
    window: Window, band: Pairs, stairs: Stairs, answers: Answers, log: Log, queries: Queries, program: Program,
    kinds: Ints, objects: Objects, first: int, moves: bool, scratch: Scratch,
) -> int:  # fmt: skip
    """As :func:`skyband.kernels.pairs.skyband.arrive`; the counters lie where the staircase has its corners."""
    meta, counter = window.meta, stairs.corner
    most = log.score.size - 2 * answers.score.size
    for i in range(first, objects.position.size):
        if log.used[0] > most:
            return i
        position = objects.position[i]
        if not step_on(window, queries, position, moves):
            continue
        new = Newcomer(position, objects.arrival[i], objects.values[i], objects.colours[i], place_of(window, position))
        scan(window, program, kinds, new, Bar(stairs, 0, queries.strict), scratch)
        if meta[SIZE] + scratch.done[0] > band.score.size:
            return i
        enter(window, new.at, objects, i)
        size, best = drop_expired(band, counter, meta[SIZE], meta[FLOOR]), np.nan
        for j in range(scratch.done[0]):
            size = admit(band, counter, size, pair_at(scratch.found, j), queries.K, queries.strict)
            best = scratch.found.score[j] if j == 0 else max(best, scratch.found.score[j])
        meta[SIZE] = size
        renew(answers, log, queries, band, size, (meta[NEWEST], position, new.arrival), best)
    return int(objects.position.size)

"""SCase for pairs (pairs, Algorithms 3 and 4), object by object. See :mod:`skyband.algorithms.pairs.scase`."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import outer
from skyband.kernels.pairs.answers import Answers, Log, Queries, renew
from skyband.kernels.pairs.band import Pairs, Stairs, climb, merge, sort
from skyband.kernels.pairs.program import Program
from skyband.kernels.pairs.scan import Bar, Newcomer, Scratch, scan
from skyband.kernels.pairs.sides import Sides, join, scan_sides
from skyband.kernels.pairs.window import (
    FLOOR,
    LIMIT,
    NEWEST,
    SIZE,
    STEPS,
    STOP,
    Objects,
    Window,
    enter,
    expire,
    place_of,
)

Ints = NDArray[np.int64]

SLACK = 8  # by what part of itself the skyband may grow before it is pruned: the staircase grows old meanwhile


@outer
def step_on(window: Window, queries: Queries, position: int, moves: bool) -> bool:
    """The window moves on with an object, if ``moves``; whether the object is in it."""
    meta = window.meta
    if position > meta[NEWEST]:
        meta[NEWEST] = position
        if moves:
            meta[FLOOR] = position - queries.N + 1
            expire(window)
    return bool(position >= meta[FLOOR])


@outer
def settle(window: Window, band: Pairs, stairs: Stairs, queries: Queries, scratch: Scratch) -> float:
    """Algorithm 3, lines 5–6: the pairs found enter S; Algorithm 4 runs when they are many. Returns the best score."""
    meta, count = window.meta, scratch.done[0]
    if count == 0:
        return float(np.nan)
    sort(scratch.found, count, scratch.spare)
    merge(band, meta[SIZE], scratch.found, count)
    meta[SIZE] += count
    if meta[SIZE] > meta[LIMIT]:
        tidy(window, band, stairs, queries)
    return float(scratch.found.score[0])


@outer
def tidy(window: Window, band: Pairs, stairs: Stairs, queries: Queries) -> None:
    """Bring S down to the K-skyband, and renew the staircase."""
    meta = window.meta
    meta[SIZE], meta[STEPS] = climb(band, meta[SIZE], stairs, queries.K, meta[FLOOR], queries.strict)
    meta[LIMIT] = meta[SIZE] + max(16, meta[SIZE] // SLACK)


@outer
def arrive(
    window: Window, band: Pairs, stairs: Stairs, answers: Answers, log: Log, queries: Queries, program: Program,
    kinds: Ints, objects: Objects, first: int, moves: bool, scratch: Scratch, sides: Sides,
) -> int:  # fmt: skip
    """Objects one after the other; returns the one before which room ran out in S or in the log, or their number.

    ``sides``: all objects once more, colour by colour; or no room for any.
    """
    meta, aside = window.meta, sides.place.size > 0
    most = log.score.size - 2 * answers.score.size
    for i in range(first, objects.position.size):
        if log.used[0] > most:
            return i
        position = objects.position[i]
        if not step_on(window, queries, position, moves):
            continue
        new = Newcomer(position, objects.arrival[i], objects.values[i], objects.colours[i], place_of(window, position))
        bar = Bar(stairs, meta[STEPS], queries.strict)
        aside = aside and new.at == meta[STOP]  # late: places move
        if aside:
            scan_sides(window, program, kinds, new, bar, scratch, sides)
        else:
            scan(window, program, kinds, new, bar, scratch)
        if meta[SIZE] + scratch.done[0] > band.score.size:
            return i
        enter(window, new.at, objects, i)
        if aside:
            join(sides, window, new.at)
        best = settle(window, band, stairs, queries, scratch)
        renew(answers, log, queries, band, meta[SIZE], (meta[NEWEST], position, new.arrival), best)
    return int(objects.position.size)

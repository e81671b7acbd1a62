"""How SCase brings the K-skyband of pairs up to date, object by object (pairs, Algorithms 3 and 4).

See :mod:`skyband.algorithms.pairs.scase`.
"""

import numpy as np

from skyband.kernels.common.jit import outer
from skyband.kernels.pairs.answers import Queries, is_full, renew
from skyband.kernels.pairs.band import climb, merge, sort
from skyband.kernels.pairs.scan import Bar, Newcomer, Scratch, scan
from skyband.kernels.pairs.state import Batch, PairState
from skyband.kernels.pairs.two_colours import TwoColours, join, scan_other_colour
from skyband.kernels.pairs.window import WindowObjects, enter, expire, place_of

SLACK = 8  # by what part of itself the skyband may grow before it is pruned: the staircase grows old meanwhile


@outer
def step_on(window: WindowObjects, queries: Queries, position: int, moves: bool) -> bool:
    """The window moves on with an object, if ``moves``; whether the object is in it."""
    meta = window.meta[0]
    if position > meta.newest:
        meta.newest = position
        if moves:
            meta.floor = position - queries.N + 1
            expire(window)
    return bool(position >= meta.floor)


@outer
def settle(state: PairState, queries: Queries, scratch: Scratch) -> float:
    """Algorithm 3, lines 5–6: the pairs found enter S; Algorithm 4 runs when they are many. Returns the best score."""
    found = scratch.found
    if found.meta[0].held == 0:
        return float(np.nan)
    sort(found)
    merge(state.band, found)
    if state.band.meta[0].held > state.stairs.meta[0].limit:
        tidy(state, queries)
    return float(found.score[0])


@outer
def tidy(state: PairState, queries: Queries) -> None:
    """Bring S down to the K-skyband, and renew the staircase."""
    climb(state.band, state.stairs, queries.K, state.window.meta[0].floor, queries.strict)
    held = state.band.meta[0].held
    state.stairs.meta[0].limit = held + max(16, held // SLACK)


@outer
def arrive(state: PairState, batch: Batch, first: int, apart: TwoColours) -> int:
    """Objects one after the other; returns the one before which room ran out in S or in the log, or their number.

    ``apart``: all objects once more, colour by colour; or no room for any.
    """
    window, band, newcomers, queries, scratch = state.window, state.band, batch.newcomers, batch.queries, batch.scratch
    meta, by_colour = window.meta[0], apart.place.size > 0
    for i in range(first, newcomers.position.size):
        if is_full(batch.log, state.answers):
            return i
        position, arrival = newcomers.position[i], newcomers.arrival[i]
        if not step_on(window, queries, position, batch.moves):
            continue
        new = Newcomer(position, arrival, newcomers.values[i], newcomers.colours[i], place_of(window, position))
        bar = Bar(state.stairs, state.stairs.meta[0].steps, queries.strict)
        by_colour = by_colour and new.at == meta.stop  # late: places move
        if by_colour:
            scan_other_colour(window, batch.scoring, new, bar, scratch, apart)
        else:
            scan(window, batch.scoring, new, bar, scratch)
        if band.meta[0].held + scratch.found.meta[0].held > band.score.size:
            return i
        enter(window, new.at, newcomers, i)
        if by_colour:
            join(apart, window, new.at)
        best = settle(state, queries, scratch)
        renew(state.answers, batch.log, queries, band, (meta.newest, position, arrival), best)
    tidy(state, queries)
    return int(newcomers.position.size)

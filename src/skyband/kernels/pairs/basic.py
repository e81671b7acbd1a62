"""The basic algorithm for pairs (pairs, section 7.1.4): Algorithm 3 with dominance counters and without a staircase."""

import numpy as np

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.pairs.answers import is_full, renew
from skyband.kernels.pairs.band import Pair, Pairs, copy, pair_at, precedes, put
from skyband.kernels.pairs.scan import Bar, Newcomer, scan
from skyband.kernels.pairs.state import Batch, PairState
from skyband.kernels.pairs.upkeep import step_on
from skyband.kernels.pairs.window import enter, place_of
from skyband.storage.blocks import Ints


@inner
def dominators(band: Pairs, strict: bool) -> Ints:
    """How many pairs of S dominate each of them."""
    counter = np.zeros(band.score.size + 1, np.int64)
    for j in range(band.meta[0].held):
        for i in range(j):
            counter[j] += band.position[i] >= band.position[j] and (not strict or band.score[i] > band.score[j])
    return counter


@in_place
def admit(band: Pairs, counter: Ints, of: Pair, swapped: int, K: int, strict: bool) -> None:
    """Put a pair into S unless K pairs there dominate it, and drop what K then dominate."""
    at, count, size = 0, 0, band.meta[0].held
    while at < size and precedes(pair_at(band, at), of):
        if band.position[at] >= of.position and (not strict or band.score[at] > of.score):
            count += 1
            if count == K:
                return
        at += 1
    for j in range(size, at, -1):
        copy(band, j - 1, band, j)
        counter[j] = counter[j - 1]
    put(band, at, of, swapped)
    counter[at] = count
    kept = at + 1
    for j in range(at + 1, size + 1):
        counter[j] += band.position[j] <= of.position and (not strict or band.score[j] < of.score)
        if counter[j] < K:
            copy(band, j, band, kept)
            counter[kept] = counter[j]
            kept += 1
    band.meta[0].held = kept


@in_place
def drop_expired(band: Pairs, counter: Ints, floor: int) -> None:
    kept = 0
    for j in range(band.meta[0].held):
        if band.position[j] >= floor:
            copy(band, j, band, kept)
            counter[kept] = counter[j]
            kept += 1
    band.meta[0].held = kept


@outer
def arrive_basic(state: PairState, batch: Batch, first: int) -> int:
    """As :func:`skyband.kernels.pairs.upkeep.arrive`, with a counter of each pair."""
    window, band, newcomers, queries, found = (
        state.window,
        state.band,
        batch.newcomers,
        batch.queries,
        batch.scratch.found,
    )
    meta, found, counter = window.meta[0], batch.scratch.found, dominators(band, queries.strict)
    for i in range(first, newcomers.position.size):
        if is_full(batch.log, state.answers):
            return i
        position, arrival = newcomers.position[i], newcomers.arrival[i]
        if not step_on(window, queries, position, batch.moves):
            continue
        new = Newcomer(position, arrival, newcomers.values[i], newcomers.colours[i], place_of(window, position))
        scan(window, batch.scoring, new, Bar(state.stairs, 0, queries.strict), batch.scratch)
        if band.meta[0].held + found.meta[0].held > band.score.size:
            return i
        enter(window, new.at, newcomers, i)
        drop_expired(band, counter, meta.floor)
        best = np.nan
        for j in range(found.meta[0].held):
            admit(band, counter, pair_at(found, j), found.swapped[j], queries.K, queries.strict)
            best = found.score[j] if j == 0 else max(best, found.score[j])
        renew(state.answers, batch.log, queries, band, (meta.newest, position, arrival), best)
    return int(newcomers.position.size)

"""The naive algorithm for pairs (pairs, section 7.1.2): the K best pairs of each object by itself."""

import numpy as np

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.pairs.answers import Queries, is_full, renew
from skyband.kernels.pairs.band import Pairs, copy, merge, pair_at, precedes, room_for, sort
from skyband.kernels.pairs.scan import Bar, Newcomer, Scoring, Scratch, scan
from skyband.kernels.pairs.state import Batch, PairState
from skyband.kernels.pairs.upkeep import step_on
from skyband.kernels.pairs.window import enter, place_of
from skyband.storage.blocks import Ints


@in_place
def owner(pairs: Pairs, i: int, moves: bool) -> int:
    """Whose list a pair is in: that of the object taken in last. Where the window does not move, that is the newer."""
    return int(max(pairs.older[i], pairs.newer[i]) if moves else pairs.newer[i])


@inner
def not_below(found: Pairs, K: int, among: int) -> None:
    """Keep the pairs that are not worse than the K-th best of the first ``among`` of them."""
    least, kept = np.partition(found.score[:among], among - K)[among - K], 0
    for j in range(found.meta[0].held):
        if found.score[j] >= least:
            copy(found, j, found, kept)
            kept += 1
    found.meta[0].held = kept


@inner
def list_best(scratch: Scratch, arrival: int, queries: Queries, moves: bool, listed: Pairs) -> None:
    """Add the K best of the pairs found, with objects that came before, to a list of lists."""
    K, found, kept = queries.K, scratch.found, 0
    for j in range(found.meta[0].held):
        if owner(found, j, moves) == arrival and found.older[j] != found.newer[j]:  # not with itself
            copy(found, j, found, kept)
            kept += 1
    found.meta[0].held = kept
    if found.meta[0].held > 16 * K:  # a few of them tell that most are not among the best
        not_below(found, K, 8 * K)
    if found.meta[0].held > K:
        not_below(found, K, found.meta[0].held)
    sort(found)
    count, size = found.meta[0].held, listed.meta[0].held
    kept = min(count, K)
    while queries.strict and 0 < kept < count and found.score[kept] == found.score[kept - 1]:
        kept += 1
    for j in range(kept):
        copy(found, j, listed, size + j)
    listed.meta[0].held = size + kept


@in_place
def drop_lists(band: Pairs, owners: Ints, moves: bool) -> None:
    """Drop the lists of some objects, whose arrival numbers ascend, from S."""
    if owners.size == 0:
        return
    kept = 0
    for j in range(band.meta[0].held):
        arrival = owner(band, j, moves)
        at = np.searchsorted(owners, arrival)
        if at == owners.size or owners[at] != arrival:
            copy(band, j, band, kept)
            kept += 1
    band.meta[0].held = kept


@inner
def drop_expired(band: Pairs, floor: int, moves: bool) -> Ints:
    """Drop the pairs that have expired; returns whose lists they were in."""
    size, expired, kept = band.meta[0].held, 0, 0
    for j in range(size):
        expired += band.position[j] < floor
    owners = np.empty(expired, np.int64)
    if expired == 0:
        return owners
    for j in range(size):
        if band.position[j] >= floor:
            copy(band, j, band, kept)
            kept += 1
        else:
            owners[j - kept] = owner(band, j, moves)
    band.meta[0].held = kept
    return np.unique(owners)


@inner
def relist(state: PairState, queries: Queries, scoring: Scoring, moves: bool, scratch: Scratch) -> Pairs:
    """Take the lists that an expired pair was in out of S, and compute them anew; there is room for one more list."""
    window, meta, bar = state.window, state.window.meta[0], Bar(state.stairs, 0, queries.strict)
    short = drop_expired(state.band, meta.floor, moves)
    drop_lists(state.band, short, moves)
    objects = meta.stop - meta.start + 1
    listed = room_for((short.size + 1) * (objects if queries.strict else min(queries.K, objects)), state.band)
    for at in range(meta.start, meta.stop if short.size > 0 else meta.start):
        arrival = window.arrival[at]
        place = np.searchsorted(short, arrival)
        if place < short.size and short[place] == arrival:
            values, colours = window.values[:, at].copy(), window.colours[:, at].copy()
            scan(window, scoring, Newcomer(window.position[at], arrival, values, colours, at), bar, scratch)
            list_best(scratch, arrival, queries, moves, listed)
    return listed


@outer
def refill(state: PairState, queries: Queries, scoring: Scoring, scratch: Scratch) -> None:
    """Make all lists complete after objects have left a window that does not move with each object."""
    listed = relist(state, queries, scoring, False, scratch)
    sort(listed)
    merge(state.band, listed)


@inner
def put_in_order(band: Pairs) -> None:
    """Rank S, if it is not ranked."""
    for j in range(1, band.meta[0].held):
        if precedes(pair_at(band, j), pair_at(band, j - 1)):
            sort(band)
            return


@outer
def arrive_naive(state: PairState, batch: Batch, first: int) -> int:
    """As :func:`skyband.kernels.pairs.upkeep.arrive`; there must be room in S for all lists.

    Where no answers are kept, S is ranked only in the end.
    """
    window, band, newcomers, queries, scratch = state.window, state.band, batch.newcomers, batch.queries, batch.scratch
    meta, bar = window.meta[0], Bar(state.stairs, 0, queries.strict)
    for i in range(first, newcomers.position.size):
        if is_full(batch.log, state.answers):
            return i
        position, arrival = newcomers.position[i], newcomers.arrival[i]
        if not step_on(window, queries, position, batch.moves):
            continue
        listed = relist(state, queries, batch.scoring, batch.moves, scratch)
        new = Newcomer(position, arrival, newcomers.values[i], newcomers.colours[i], place_of(window, position))
        scan(window, batch.scoring, new, bar, scratch)
        enter(window, new.at, newcomers, i)
        list_best(scratch, arrival, queries, batch.moves, listed)
        if queries.k.size == 0:
            for j in range(listed.meta[0].held):
                copy(listed, j, band, band.meta[0].held + j)
            band.meta[0].held += listed.meta[0].held
            continue
        sort(listed)
        merge(band, listed)
        best = band.score[0] if band.meta[0].held > 0 else np.nan  # lists that were filled up may bring any pair
        renew(state.answers, batch.log, queries, band, (meta.newest, position, arrival), best)
    put_in_order(band)
    return int(newcomers.position.size)

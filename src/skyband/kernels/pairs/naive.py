"""The naive algorithm for pairs (pairs, section 7.1.2): the K best pairs of each object by itself."""

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.pairs.answers import Answers, Log, Queries, renew
from skyband.kernels.pairs.band import Pairs, Stairs, copy, merge, pair_at, precedes, sort
from skyband.kernels.pairs.program import Program
from skyband.kernels.pairs.scan import Bar, Newcomer, Scratch, scan
from skyband.kernels.pairs.skyband import step_on
from skyband.kernels.pairs.window import FLOOR, NEWEST, SIZE, START, STOP, Objects, Window, enter, place_of

Ints = NDArray[np.int64]


@inner
def owner(pairs: Pairs, i: int, moves: bool) -> int:
    """Whose list a pair is in: that of the object taken in last. Where the window does not move, that is the newer."""
    return int(max(pairs.older[i], pairs.newer[i] >> 1) if moves else pairs.newer[i] >> 1)


@inner
def not_below(found: Pairs, size: int, K: int, among: int) -> int:
    """Keep the pairs that are not worse than the K-th best of the first ``among`` of them."""
    least, kept = np.partition(found.score[:among], among - K)[among - K], 0
    for j in range(size):
        if found.score[j] >= least:
            copy(found, j, found, kept)
            kept += 1
    return kept


@inner
def list_best(scratch: Scratch, arrival: int, queries: Queries, moves: bool, listed: Pairs, size: int) -> int:
    """Add the K best of the pairs found, with objects that came before, to a list of lists; returns its size."""
    K, strict = queries.K, queries.strict
    found, count = scratch.found, 0
    for j in range(scratch.done[0]):
        if owner(found, j, moves) == arrival and found.older[j] != found.newer[j] >> 1:  # not with itself
            copy(found, j, found, count)
            count += 1
    if count > 16 * K:  # a few of them tell that most are not among the best
        count = not_below(found, count, K, 8 * K)
    if count > K:
        count = not_below(found, count, K, count)
    sort(found, count, scratch.spare)
    kept = min(count, K)
    while strict and 0 < kept < count and found.score[kept] == found.score[kept - 1]:
        kept += 1
    for j in range(kept):
        copy(found, j, listed, size + j)
    return size + kept


@inner
def without(band: Pairs, size: int, lists: Ints, moves: bool) -> int:
    """Drop the lists of some objects, whose numbers ascend, from S."""
    kept = 0
    for j in range(size):
        arrival = owner(band, j, moves)
        at = np.searchsorted(lists, arrival)
        if at == lists.size or lists[at] != arrival:
            copy(band, j, band, kept)
            kept += 1
    return kept


@inner
def room_for(pairs: int) -> Pairs:
    return Pairs(np.empty(pairs), np.empty(pairs, np.int64), np.empty(pairs, np.int64), np.empty(pairs, np.int64),
                 np.empty(pairs, np.int64))  # fmt: skip


@inner
def drop_expired(band: Pairs, size: int, floor: int, moves: bool) -> tuple[int, Ints]:
    """Drop the pairs that have expired; returns how many are left, and whose lists the others were in."""
    expired = kept = 0
    for j in range(size):
        expired += band.position[j] < floor
    lists = np.empty(expired, np.int64)
    if expired == 0:
        return size, lists
    for j in range(size):
        if band.position[j] >= floor:
            copy(band, j, band, kept)
            kept += 1
        else:
            lists[j - kept] = owner(band, j, moves)
    return kept, np.unique(lists)


@inner
def relist(window: Window, band: Pairs, queries: Queries, program: Program, kinds: Ints, bar: Bar,
           moves: bool, scratch: Scratch) -> tuple[Pairs, int]:  # fmt: skip
    """Take the lists that an expired pair was in out of S, and compute them anew; there is room for one more list."""
    meta = window.meta
    meta[SIZE], short = drop_expired(band, meta[SIZE], meta[FLOOR], moves)
    if short.size > 0:
        meta[SIZE] = without(band, meta[SIZE], short, moves)
    objects = meta[STOP] - meta[START] + 1
    listed, size = room_for((short.size + 1) * (objects if queries.strict else min(queries.K, objects))), 0
    for at in range(meta[START], meta[STOP] if short.size > 0 else meta[START]):
        arrival = window.arrival[at]
        place = np.searchsorted(short, arrival)
        if place < short.size and short[place] == arrival:
            again = Newcomer(
                window.position[at], arrival, window.values[:, at].copy(), window.colours[:, at].copy(), at
            )
            scan(window, program, kinds, again, bar, scratch)
            size = list_best(scratch, arrival, queries, moves, listed, size)
    return listed, size


@outer
def refill(window: Window, band: Pairs, stairs: Stairs, queries: Queries, program: Program, kinds: Ints,
           scratch: Scratch) -> None:  # fmt: skip
    """Make all lists complete after objects have left a window that does not move with each object."""
    listed, size = relist(window, band, queries, program, kinds, Bar(stairs, 0, queries.strict), False, scratch)
    sort(listed, size, room_for(size))
    merge(band, window.meta[SIZE], listed, size)
    window.meta[SIZE] += size


@outer
def put_in_order(band: Pairs, size: int) -> None:
    """Rank S, if it is not ranked."""
    for j in range(1, size):
        if precedes(pair_at(band, j), pair_at(band, j - 1)):
            sort(band, size, room_for(size))
            return


@outer
def arrive_naive(
    window: Window, band: Pairs, stairs: Stairs, answers: Answers, log: Log, queries: Queries, program: Program,
    kinds: Ints, objects: Objects, first: int, moves: bool, scratch: Scratch,
) -> int:  # fmt: skip
    """As :func:`skyband.kernels.pairs.skyband.arrive`; there must be room in S for all lists.

    Where no answers are kept, S is not ranked.
    """
    meta, bar = window.meta, Bar(stairs, 0, queries.strict)
    most = log.score.size - 2 * answers.score.size
    for i in range(first, objects.position.size):
        if log.used[0] > most:
            return i
        position = objects.position[i]
        if not step_on(window, queries, position, moves):
            continue
        listed, size = relist(window, band, queries, program, kinds, bar, moves, scratch)
        new = Newcomer(position, objects.arrival[i], objects.values[i], objects.colours[i], place_of(window, position))
        scan(window, program, kinds, new, bar, scratch)
        enter(window, new.at, objects, i)
        size = list_best(scratch, new.arrival, queries, moves, listed, size)
        if queries.k.size == 0:
            for j in range(size):
                copy(listed, j, band, meta[SIZE] + j)
            meta[SIZE] += size
            continue
        sort(listed, size, room_for(size))
        merge(band, meta[SIZE], listed, size)
        meta[SIZE] += size
        best = band.score[0] if meta[SIZE] > 0 else np.nan  # lists that were filled up may bring any pair
        renew(answers, log, queries, band, meta[SIZE], (meta[NEWEST], position, new.arrival), best)
    return int(objects.position.size)

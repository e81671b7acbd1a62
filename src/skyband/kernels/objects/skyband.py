"""One K-skyband that serves several top-k queries (pairs, sections 4, 6.2 and 6.3), for SCase.

:func:`arrive` and :func:`hop` drive rows through it, for windows that move with every arrival and for hopping ones.
They work in place and stop where room is short, for the caller to make some and to call again: no tuple of arrays is
built on the way, which would cost more than the algorithm.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.common.output import Output, emit
from skyband.kernels.common.staircase import Object, Objects, Stairs, climb, dominated, put, put_off, sift
from skyband.kernels.objects.answers import (
    ENTERED,
    LEFT,
    Answers,
    Log,
    clear,
    expire,
    insert,
    listed,
    note,
    note_missing,
    read,
    takes,
)
from skyband.kernels.objects.batch import Windows, batch
from skyband.kernels.objects.pst import Tree, build, candidates, reaching

Ints = NDArray[np.int64]

# What the entries of ``Skyband.meta`` are.
SIZE = 0  # objects in S
BAND = 1  # how many the last run of Algorithm 4 left there; 0 if some have been taken out since
LIMIT = 2  # when there are more than this many, it runs again
STEPS = 3  # of the staircase
NODES = 4  # of the priority search tree, 0 if there is none
USED = 5  # the nodes, and behind them the objects that came after the tree was built
NEWEST = 6  # the newest position seen
FLOOR = 7  # objects before it have expired
DUE = 8  # hopping windows: the end of the window that closes next
PASSED = 9  # objects passed over in S because they had expired, since they were last dropped
DEBT = 10  # objects passed over, or tried one by one, for want of a (newer) priority search tree
ENTRIES = 11


class Skyband(NamedTuple):
    """A K-skyband with a few dominated objects more, its K-staircase and perhaps a priority search tree.

    The arrays of the staircase are as long as those of S; those of the tree too, or empty if there is never one.
    """

    objects: Objects  # S, best first
    stairs: Stairs
    tree: Tree
    meta: Ints


class Spec(NamedTuple):
    """The queries, and what they have in common."""

    k: Ints
    extent: Ints
    slide: Ints  # hopping windows
    ties: NDArray[np.bool_]
    K: int  # the largest k
    N: int  # the longest extent
    strict: bool  # whether dominance asks for a better score
    position: bool


@outer
def tidy(skyband: Skyband, spec: Spec) -> None:
    """Algorithm 6, lines 6–7: bring S down to the K-skyband, renew the staircase, let the tree go."""
    objects, stairs, _, meta = skyband
    kept, steps = climb(objects, meta[SIZE], stairs, spec.K, meta[FLOOR], spec.strict)
    meta[SIZE] = meta[BAND] = kept
    meta[STEPS] = steps
    meta[LIMIT] = kept + put_off(kept, spec.K)
    meta[NODES] = meta[USED] = meta[PASSED] = meta[DEBT] = 0


@inner
def plant(skyband: Skyband) -> None:
    """Build the priority search tree of all objects in S."""
    objects, _, tree, meta = skyband
    build(tree, objects, meta[SIZE])
    meta[NODES] = meta[USED] = meta[SIZE]
    meta[DEBT] = 0


@inner
def admit(skyband: Skyband, spec: Spec, of: Object) -> None:
    """Algorithm 6, lines 4–7, for an object that is not dominated."""
    objects, _, tree, meta = skyband
    size, used = meta[SIZE], meta[USED]
    put(objects.score, objects.position, objects.arrival, 0, size, of)
    meta[SIZE] = size + 1
    if size == meta[LIMIT]:
        tidy(skyband, spec)
    elif meta[NODES] > 0 and used == tree.score.size:
        plant(skyband)
    elif meta[NODES] > 0:
        tree.score[used], tree.position[used], tree.arrival[used] = of
        meta[USED] = used + 1


@outer
def repay(skyband: Skyband) -> None:
    """Where so many objects were passed over that it would have paid to do so, drop the expired or build the tree."""
    objects, _, tree, meta = skyband
    if meta[PASSED] > meta[SIZE]:
        meta[SIZE] = sift(objects, meta[SIZE], meta[FLOOR], objects)
        meta[BAND] = meta[PASSED] = 0
    if tree.score.size > 0 and meta[DEBT] > meta[SIZE] * math.log2(meta[SIZE] + 1):
        plant(skyband)


@outer
def answer(skyband: Skyband, answers: Answers, q: int, k: int, ties: bool, start: int) -> None:
    """List q anew: the k best objects with ``time >= start``, through the tree if there is one, else down S."""
    objects, _, tree, meta = skyband
    if meta[NODES] == 0 or start <= meta[FLOOR]:
        passed = read(answers, q, k, ties, start, objects, meta[SIZE])
        meta[PASSED if start <= meta[FLOOR] else DEBT] += passed
        return
    clear(answers, q)
    _offer(answers, q, k, ties, tree, candidates(tree, meta[NODES], k, start))
    if ties and answers.size[q] >= k:
        least = answers.score[answers.base[q] + k - 1]
        clear(answers, q)
        _offer(answers, q, k, ties, tree, reaching(tree, meta[NODES], least, start))
    later = meta[NODES] + np.flatnonzero(tree.position[meta[NODES] : meta[USED]] >= start)
    _offer(answers, q, k, ties, tree, later)
    meta[DEBT] += meta[USED] - meta[NODES]


@inner
def _offer(answers: Answers, q: int, k: int, ties: bool, tree: Tree, which: Ints) -> None:
    """Put into list q what belongs there of the objects at these positions of the tree."""
    for i in which:
        of = (tree.score[i], tree.position[i], tree.arrival[i])
        if takes(answers, q, k, ties, of):
            insert(answers, q, k, ties, of)


@outer
def arrive(skyband: Skyband, answers: Answers, log: Log, spec: Spec, rows: Any, first: int) -> int:
    """Windows that move with every arrival: Algorithm 6 and the answers of all queries, row by row.

    Returns the row before which room ran out in S or in the log, or the number of rows.
    """
    meta = skyband.meta
    most = log.arrival.size - 2 * answers.arrival.size  # before a row: it adds no more than what left and what entered
    for i in range(first, rows.score.size):
        if meta[SIZE] == skyband.objects.score.size or log.used[0] > most:
            return i
        position = rows.position[i] if rows.position.size else rows.first_position + i
        of = (rows.score[i], position, rows.arrival[i] if rows.arrival.size else rows.first_arrival + i)
        if position > meta[NEWEST]:
            meta[NEWEST] = position
            meta[FLOOR] = position - spec.N + 1
        elif position < meta[FLOOR] or dominated(skyband.stairs, meta[STEPS], of, spec.strict):
            continue
        admit(skyband, spec, of)
        for q in range(spec.k.size):
            start = meta[NEWEST] - spec.extent[q] + 1
            enters = position >= start and takes(answers, q, spec.k[q], spec.ties[q], of)
            if answers.oldest[q] < start:
                _renew(skyband, answers, log, spec, q, of, enters)
            elif enters:
                _enter(answers, log, spec, q, of)
    return int(rows.score.size)


@inner
def _enter(answers: Answers, log: Log, spec: Spec, q: int, of: Object) -> None:
    """Section 4.2, *Handling new pairs*: the new object enters list q, and what no longer belongs there leaves."""
    last = answers.base[q] + answers.size[q]
    insert(answers, q, spec.k[q], spec.ties[q], of)
    for i in range(answers.base[q] + answers.size[q], last + 1):
        note(log, q, of, LEFT, answers.arrival[i], answers.score[i])
    note(log, q, of, ENTERED, of[2], of[0])


@inner
def _renew(skyband: Skyband, answers: Answers, log: Log, spec: Spec, q: int, of: Object, enters: bool) -> None:
    """Section 4.2, *Handling pairs expired*: if list q runs short, it is found anew. The log gets the net difference.

    ``enters`` is judged by the list as it was: an object outside a full list is known to be worse than its k-th only.
    """
    k, ties, start = spec.k[q], spec.ties[q], skyband.meta[NEWEST] - spec.extent[q] + 1
    size = answers.size[q]
    score, position, arrival = listed(answers, q, size)
    before = Objects(score.copy(), position.copy(), arrival.copy())
    expire(answers, q, start)
    if enters:
        insert(answers, q, k, ties, of)
    if answers.size[q] < k <= size:
        answer(skyband, answers, q, k, ties, start)
        repay(skyband)
    after = listed(answers, q, answers.size[q])
    note_missing(log, q, of, LEFT, before, after)
    note_missing(log, q, of, ENTERED, after, before)


@outer
def hop(
    skyband: Skyband, ends: Ints, out: Output, spec: Spec, rows: Any, first: int, frontier: int
) -> tuple[int, Output]:
    """Hopping windows: rows in event-time order, and before each the windows that end there or earlier.

    Returns the row before which room ran out in S, or the number of rows, after which the windows that end by
    ``frontier`` are closed.
    """
    meta, size = skyband.meta, rows.score.size
    i = first
    while True:
        i = _pour(skyband, spec, rows, i)
        if i < size and rows.position[i] < meta[DUE]:
            return i, out
        bound = rows.position[i] if i < size else frontier
        if bound >= meta[DUE]:
            # A count window is closed by the first object numbered end - 1 or higher.
            reached = rows.position[i - 1] + 1 if i > 0 else meta[NEWEST] + 1
            before, after = rows.arrival[max(0, i - 1)] if size > 0 else 0, rows.arrival[i] if i < size else 0
            out = _close(skyband, ends, out, spec, bound, (reached, before, after))
        if i == size:
            meta[FLOOR] = _floor(spec, frontier)
            if not spec.position:  # a sequence may end in numbers that no object has
                meta[NEWEST] = max(meta[NEWEST], frontier - 1)
            return i, out


@inner
def _pour(skyband: Skyband, spec: Spec, rows: Any, first: int) -> int:
    """Take rows in, up to one before which a window closes or for which there is no room; returns which."""
    meta = skyband.meta
    for i in range(first, rows.score.size):
        of = (rows.score[i], rows.position[i], rows.arrival[i])
        if of[1] >= meta[DUE] or meta[SIZE] == skyband.objects.score.size:
            return i
        if of[1] > meta[NEWEST] or not dominated(skyband.stairs, meta[STEPS], of, spec.strict):
            meta[NEWEST] = of[1]
            admit(skyband, spec, of)
    return int(rows.score.size)


@inner
def _floor(spec: Spec, bound: int) -> int:
    """The first position that a window can still hold once those that end by ``bound`` are closed.

    A count window that has just closed is still the present one, until the next object comes.
    """
    position = bound if spec.position else bound - 1
    end = (position // spec.slide[0] + 1) * spec.slide[0]
    for slide in spec.slide:
        end = min(end, (position // slide + 1) * slide)
    return int(end - spec.N)


@inner
def _close(skyband: Skyband, ends: Ints, out: Output, spec: Spec, bound: int, closer: tuple[int, int, int]) -> Output:
    """Emit the windows that end by ``bound`` and hold an object; the query stands for the key in the output.

    ``closer``: up to which end the object before has closed them, its number, and that of the object after.
    """
    objects, _, _, meta = skyband
    windows = _due(ends, spec, bound, meta[NEWEST])
    if windows.end.size > 0:
        offset, member, passed = batch(objects, meta[SIZE], windows)
        for w in range(windows.end.size):
            part = member[offset[w] : offset[w + 1]]
            if part.size > 0:
                trigger = closer[1] if windows.end[w] <= closer[0] else closer[2]
                out = emit(out, windows.query[w], windows.end[w], 0 if spec.position else trigger,
                           objects.arrival[part], objects.score[part])  # fmt: skip
        meta[PASSED] += passed
    for q in range(ends.size):
        ends[q] = (bound // spec.slide[q] + 1) * spec.slide[q]
    meta[DUE] = ends.min()
    meta[FLOOR] = _floor(spec, bound)
    repay(skyband)
    return out


@inner
def _due(ends: Ints, spec: Spec, bound: int, newest: int) -> Windows:
    """The windows that end by ``bound``, the longest first; those after the last that holds ``newest`` are empty."""
    next_end, count = ends.copy(), 0
    last = np.empty_like(ends)
    for q in range(ends.size):
        slide = spec.slide[q]
        last[q] = min(bound, (newest + spec.extent[q]) // slide * slide)
        count += max(0, (last[q] - ends[q]) // slide + 1)
    windows = Windows(np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64),
                      np.empty(count, np.int64), np.empty(count, np.bool_))  # fmt: skip
    for w in range(count):
        longest = -1
        for q in range(ends.size):
            start = next_end[q] - spec.extent[q]
            if next_end[q] <= last[q] and (longest < 0 or start < windows.start[w]):
                longest, windows.query[w], windows.end[w], windows.start[w] = q, q, next_end[q], start
        windows.k[w], windows.ties[w] = spec.k[longest], spec.ties[longest]
        next_end[longest] += spec.slide[longest]
    return windows

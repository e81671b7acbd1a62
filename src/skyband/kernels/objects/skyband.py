"""One K-skyband that serves several top-k queries (pairs, sections 4, 6.2 and 6.3), for SCase.

:func:`arrive` and :func:`hop` drive rows through it, for windows that move with every arrival and for hopping ones.
They work in place and stop where room is short, for the caller to make some and to call again: no tuple of arrays is
built on the way, which would cost more than the algorithm.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.common.output import Output, emit
from skyband.kernels.common.rows import Objects
from skyband.kernels.common.staircase import EARLIEST, Object, Stairs, climb, dominated, put, put_off, sift
from skyband.kernels.objects.answers import (
    Answers,
    clear,
    expire,
    insert,
    listed,
    note_missing,
    read,
    takes,
)
from skyband.kernels.objects.batch import Windows, batch
from skyband.kernels.objects.log import ENTERED, LEFT, Log, lacks, note
from skyband.kernels.objects.pst import Tree, build, candidates, reaching
from skyband.storage.blocks import ARRIVAL, Floats, Ints, Record, block, column, scalars


class SkybandMeta(NamedTuple):
    """The figures of a K-skyband."""

    held: int = 0  # objects in S
    pruned: int = 0  # how many the last run of Algorithm 4 left there; 0 if some have been taken out since
    limit: int = 0  # when there are more than this many, it runs again
    newest: int = EARLIEST  # the newest position seen
    floor: int = EARLIEST  # objects before it have expired
    due: int = EARLIEST  # hopping windows: the end of the window that closes next
    passed: int = 0  # objects passed over in S because they had expired, since they were last dropped
    debt: int = 0  # objects passed over, or tried one by one, for want of a (newer) priority search tree


@block(version=1)
class Skyband(NamedTuple):
    """A K-skyband S, best first, with a few dominated objects more, its K-staircase and perhaps a priority search tree.

    The staircase needs as much room as S; so does the tree, unless there is never one and it has none.
    """

    score: Annotated[Floats, column("objects", used="held")]
    position: Annotated[Ints, column("objects", used="held")]
    arrival: Annotated[Ints, column("objects", used="held", holds=ARRIVAL)]
    stairs: Stairs
    tree: Tree
    meta: Annotated[Record, scalars(SkybandMeta)]


class Queries(NamedTuple):
    """The queries, as numbers, and what they have in common."""

    k: Ints
    extent: Ints
    slide: Ints  # hopping windows
    ties: NDArray[np.bool_]
    K: int  # the largest k
    N: int  # the longest extent
    strict: bool  # whether dominance asks for a better score
    timed: bool  # positions are event times


@inner
def objects_of(skyband: Skyband) -> Objects:
    """The objects of S."""
    return Objects(skyband.score, skyband.position, skyband.arrival)


@outer
def tidy(skyband: Skyband, queries: Queries) -> None:
    """Algorithm 6, lines 6–7: bring S down to the K-skyband, renew the staircase, let the tree go."""
    meta, tree = skyband.meta[0], skyband.tree.meta[0]
    kept = climb(objects_of(skyband), meta.held, skyband.stairs, queries.K, meta.floor, queries.strict)
    meta.held = meta.pruned = kept
    meta.limit = kept + put_off(kept, queries.K)
    tree.nodes = tree.held = meta.passed = meta.debt = 0


@inner
def plant(skyband: Skyband) -> None:
    """Build the priority search tree of all objects in S, for which it must have room."""
    meta = skyband.meta[0]
    build(skyband.tree, objects_of(skyband), meta.held)
    meta.debt = 0


@inner
def admit(skyband: Skyband, queries: Queries, of: Object) -> None:
    """Algorithm 6, lines 4–7, for an object that is not dominated."""
    meta, tree, rooted = skyband.meta[0], skyband.tree, skyband.tree.meta[0]
    size, used = meta.held, rooted.held
    put(skyband.score, skyband.position, skyband.arrival, 0, size, of)
    meta.held = size + 1
    if size == meta.limit:
        tidy(skyband, queries)
    elif rooted.nodes > 0 and used == tree.score.size:
        plant(skyband)
    elif rooted.nodes > 0:
        tree.score[used], tree.position[used], tree.arrival[used] = of
        rooted.held = used + 1


@outer
def repay(skyband: Skyband) -> None:
    """Where so many objects were passed over that it would have paid to do so, drop the expired or build the tree."""
    meta = skyband.meta[0]
    if meta.passed > meta.held:
        objects = objects_of(skyband)
        meta.held = sift(objects, meta.held, meta.floor, objects)
        meta.pruned = meta.passed = 0
    if skyband.tree.score.size >= meta.held > 0 and meta.debt > meta.held * math.log2(meta.held + 1):
        plant(skyband)


@outer
def answer(skyband: Skyband, answers: Answers, q: int, k: int, ties: bool, start: int) -> None:
    """List q anew: the k best objects with ``position >= start``, through the tree if there is one, else down S."""
    meta, tree, rooted = skyband.meta[0], skyband.tree, skyband.tree.meta[0]
    if rooted.nodes == 0 or start <= meta.floor:
        passed = read(answers, q, k, ties, start, objects_of(skyband), meta.held)
        if start <= meta.floor:
            meta.passed += passed
        else:
            meta.debt += passed
        return
    clear(answers, q)
    _offer(answers, q, k, ties, tree, candidates(tree, k, start))
    if ties and answers.held[q] >= k:
        least = answers.score[answers.base[q] + k - 1]
        clear(answers, q)
        _offer(answers, q, k, ties, tree, reaching(tree, least, start))
    later = rooted.nodes + np.flatnonzero(tree.position[rooted.nodes : rooted.held] >= start)
    _offer(answers, q, k, ties, tree, later)
    meta.debt += rooted.held - rooted.nodes


@inner
def _offer(answers: Answers, q: int, k: int, ties: bool, tree: Tree, which: Ints) -> None:
    """Put into list q what belongs there of the objects at these positions of the tree."""
    for i in which:
        of = (tree.score[i], tree.position[i], tree.arrival[i])
        if takes(answers, q, k, ties, of):
            insert(answers, q, k, ties, of)


@outer
def arrive(skyband: Skyband, answers: Answers, log: Log, queries: Queries, rows: Any, first: int) -> int:
    """Windows that move with every arrival: Algorithm 6 and the answers of all queries, row by row.

    Returns the row before which room ran out in S or in the log, or the number of rows.
    """
    meta = skyband.meta[0]
    most = 2 * answers.arrival.size  # entries of a row: what left and what entered
    for i in range(first, rows.score.size):
        if meta.held == skyband.score.size or lacks(log, most):
            return i
        position = rows.position[i] if rows.position.size else rows.first_position + i
        of = (rows.score[i], position, rows.arrival[i] if rows.arrival.size else rows.first_arrival + i)
        if position > meta.newest:
            meta.newest = position
            meta.floor = position - queries.N + 1
        elif position < meta.floor or dominated(skyband.stairs, of, queries.strict):
            continue
        admit(skyband, queries, of)
        for q in range(queries.k.size):
            start = meta.newest - queries.extent[q] + 1
            enters = position >= start and takes(answers, q, queries.k[q], queries.ties[q], of)
            if answers.oldest[q] < start:
                _renew(skyband, answers, log, queries, q, of, enters)
            elif enters:
                _enter(answers, log, queries, q, of)
    return int(rows.score.size)


@inner
def _enter(answers: Answers, log: Log, queries: Queries, q: int, of: Object) -> None:
    """Section 4.2, *Handling new pairs*: the new object enters list q, and what no longer belongs there leaves."""
    last = answers.base[q] + answers.held[q]
    insert(answers, q, queries.k[q], queries.ties[q], of)
    for i in range(answers.base[q] + answers.held[q], last + 1):
        note(log, q, of[2], of[1], LEFT, answers.arrival[i], answers.score[i])
    note(log, q, of[2], of[1], ENTERED, of[2], of[0])


@inner
def _renew(skyband: Skyband, answers: Answers, log: Log, queries: Queries, q: int, of: Object, enters: bool) -> None:
    """Section 4.2, *Handling pairs expired*: if list q runs short, it is found anew. The log gets the net difference.

    ``enters`` is judged by the list as it was: an object outside a full list is known to be worse than its k-th only.
    """
    k, ties, start = queries.k[q], queries.ties[q], skyband.meta[0].newest - queries.extent[q] + 1
    size = answers.held[q]
    score, position, arrival = listed(answers, q, size)
    before = Objects(score.copy(), position.copy(), arrival.copy())
    expire(answers, q, start)
    if enters:
        insert(answers, q, k, ties, of)
    if answers.held[q] < k <= size:
        answer(skyband, answers, q, k, ties, start)
        repay(skyband)
    after = listed(answers, q, answers.held[q])
    note_missing(log, q, of, LEFT, before, after)
    note_missing(log, q, of, ENTERED, after, before)


@outer
def hop(
    skyband: Skyband, ends: Ints, out: Output, queries: Queries, rows: Any, first: int, frontier: int
) -> tuple[int, Output]:
    """Hopping windows: rows in event-time order, and before each the windows that end there or earlier.

    Returns the row before which room ran out in S, or the number of rows, after which the windows that end by
    ``frontier`` are closed.
    """
    meta, size = skyband.meta[0], rows.score.size
    i = first
    while True:
        i = _pour(skyband, queries, rows, i)
        if i < size and rows.position[i] < meta.due:
            return i, out
        bound = rows.position[i] if i < size else frontier
        if bound >= meta.due:
            # A count window is closed by the first object numbered end - 1 or higher.
            reached = rows.position[i - 1] + 1 if i > 0 else meta.newest + 1
            before, after = rows.arrival[max(0, i - 1)] if size > 0 else 0, rows.arrival[i] if i < size else 0
            out = _close(skyband, ends, out, queries, bound, (reached, before, after))
        if i == size:
            meta.floor = _floor(queries, frontier)
            if not queries.timed:  # a sequence may end in numbers that no object has
                meta.newest = max(meta.newest, frontier - 1)
            return i, out


@inner
def _pour(skyband: Skyband, queries: Queries, rows: Any, first: int) -> int:
    """Take rows in, up to one before which a window closes or for which there is no room; returns which."""
    meta = skyband.meta[0]
    for i in range(first, rows.score.size):
        of = (rows.score[i], rows.position[i], rows.arrival[i])
        if of[1] >= meta.due or meta.held == skyband.score.size:
            return i
        if of[1] > meta.newest or not dominated(skyband.stairs, of, queries.strict):
            meta.newest = of[1]
            admit(skyband, queries, of)
    return int(rows.score.size)


@inner
def _floor(queries: Queries, bound: int) -> int:
    """The first position that a window can still hold once those that end by ``bound`` are closed.

    A count window that has just closed is still the present one, until the next object comes.
    """
    position = bound if queries.timed else bound - 1
    end = (position // queries.slide[0] + 1) * queries.slide[0]
    for slide in queries.slide:
        end = min(end, (position // slide + 1) * slide)
    return int(end - queries.N)


@inner
def _close(
    skyband: Skyband, ends: Ints, out: Output, queries: Queries, bound: int, closer: tuple[int, int, int]
) -> Output:
    """Emit the windows that end by ``bound`` and hold an object; the query stands for the partition in the output.

    ``closer``: up to which end the object before has closed them, its number, and that of the object after.
    """
    meta, objects = skyband.meta[0], objects_of(skyband)
    windows = _due(ends, queries, bound, meta.newest)
    if windows.end.size > 0:
        offset, member, passed = batch(objects, meta.held, windows)
        for w in range(windows.end.size):
            part = member[offset[w] : offset[w + 1]]
            if part.size > 0:
                trigger = closer[1] if windows.end[w] <= closer[0] else closer[2]
                out = emit(out, windows.query[w], windows.end[w], 0 if queries.timed else trigger,
                           objects.arrival[part], objects.score[part])  # fmt: skip
        meta.passed += passed
    for q in range(ends.size):
        ends[q] = (bound // queries.slide[q] + 1) * queries.slide[q]
    meta.due = ends.min()
    meta.floor = _floor(queries, bound)
    repay(skyband)
    return out


@inner
def _due(ends: Ints, queries: Queries, bound: int, newest: int) -> Windows:
    """The windows that end by ``bound``, the longest first; those after the last that holds ``newest`` are empty."""
    next_end, count = ends.copy(), 0
    last = np.empty_like(ends)
    for q in range(ends.size):
        slide = queries.slide[q]
        last[q] = min(bound, (newest + queries.extent[q]) // slide * slide)
        count += max(0, (last[q] - ends[q]) // slide + 1)
    windows = Windows(np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64),
                      np.empty(count, np.int64), np.empty(count, np.bool_))  # fmt: skip
    for w in range(count):
        longest = -1
        for q in range(ends.size):
            start = next_end[q] - queries.extent[q]
            if next_end[q] <= last[q] and (longest < 0 or start < windows.start[w]):
                longest, windows.query[w], windows.end[w], windows.start[w] = q, q, next_end[q], start
        windows.k[w], windows.ties[w] = queries.k[longest], queries.ties[longest]
        next_end[longest] += queries.slide[longest]
    return windows

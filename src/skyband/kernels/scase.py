"""One K-skyband that serves several top-k queries (pairs, sections 4, 6.2 and 6.3). See :mod:`skyband.objects.scase`.

:func:`arrive` and :func:`hop` drive a batch through it, for windows that move with every arrival and for hopping ones.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skyband.kernels.answers import (
    ENTERED, LEFT, Answers, Log, clear, expire, listed, no_answers, no_log, note, note_missing, offer, takes,
)  # fmt: skip
from skyband.kernels.output import Output, emit, grow, no_output
from skyband.kernels.pst import Tree, build, candidates, reaching
from skyband.kernels.staircase import (
    EARLIEST, LATEST, Objects, Stairs, climb, dominated, place, put, put_off, roomy, sweep,
)  # fmt: skip

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# What the entries of ``Skyband.meta`` are.
SIZE = 0  # objects in S
BAND = 1  # how many of them were left by the last run of Algorithm 4
LIMIT = 2  # when there are more than this many, it runs again
STEPS = 3  # of the staircase
NODES = 4  # of the priority search tree, 0 if there is none
USED = 5  # the nodes, and the objects that came after the tree was built
NEWEST = 6  # the newest position seen
FLOOR = 7  # objects before it have expired
DUE = 8  # hopping windows: the end of the window that closes next
PASSED = 9  # objects passed over in S because they had expired, since Algorithm 4 ran
DEBT = 10  # objects passed over, or tried one by one, for want of a (newer) priority search tree
ENTRIES = 11


class Skyband(NamedTuple):
    """A K-skyband with at most x dominated objects more, its K-staircase and perhaps a priority search tree."""

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
    time: bool


class Windows(NamedTuple):
    """Windows to be answered together, the longest first."""

    query: Ints
    end: Ints
    start: Ints


@njit(cache=True)
def no_skyband(K: int) -> Skyband:
    """The skyband of no objects."""
    meta = np.zeros(ENTRIES, np.int64)
    meta[LIMIT] = put_off(0, K)
    meta[NEWEST] = meta[FLOOR] = meta[DUE] = EARLIEST
    none, nobody = np.zeros(0), np.zeros(0, np.int64)
    return Skyband(Objects(none, nobody, nobody), Stairs(none, nobody, nobody, nobody), _no_tree(), meta)


@njit(cache=True)
def _no_tree() -> Tree:
    return Tree(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


@njit(cache=True)
def tidy(skyband: Skyband, spec: Spec) -> Skyband:
    """Algorithm 6, lines 6–7: bring S down to the K-skyband, renew the staircase, let the tree go."""
    objects, meta = skyband.objects, skyband.meta
    kept, stairs, steps = climb(objects, meta[SIZE], spec.K, meta[FLOOR], spec.strict)
    meta[SIZE] = meta[BAND] = kept
    meta[LIMIT] = kept + put_off(kept, spec.K)
    meta[STEPS] = steps
    meta[NODES] = meta[USED] = meta[PASSED] = meta[DEBT] = 0
    return Skyband(objects, stairs, _no_tree(), meta)


@njit(cache=True)
def settle(skyband: Skyband, spec: Spec, rows: int) -> Skyband:
    """At the end of a batch that was longer than S, so that it costs nothing: the K-skyband alone, in tight arrays."""
    if rows < skyband.meta[SIZE]:
        return skyband
    objects, stairs, tree, meta = tidy(skyband, spec)
    size, steps = meta[SIZE], meta[STEPS]
    objects = Objects(objects.score[:size].copy(), objects.time[:size].copy(), objects.number[:size].copy())
    stairs = Stairs(stairs.score[:steps].copy(), stairs.time[:steps].copy(), stairs.number[:steps].copy(),
                    stairs.corner[:steps].copy())  # fmt: skip
    return Skyband(objects, stairs, tree, meta)


@njit(cache=True)
def plant(skyband: Skyband) -> Skyband:
    """Build the priority search tree of all objects in S."""
    objects, stairs, _, meta = skyband
    meta[NODES] = meta[USED] = meta[SIZE]
    meta[DEBT] = 0
    return Skyband(objects, stairs, build(objects, meta[SIZE]), meta)


@njit(cache=True, inline="always")
def admit(skyband: Skyband, spec: Spec, of: tuple[float, int, int]) -> Skyband:
    """Algorithm 6, lines 4–7, for an object that is not dominated."""
    meta = skyband.meta
    size = meta[SIZE]
    if size == skyband.objects.score.size:
        skyband = Skyband(roomy(skyband.objects, size + 1), skyband.stairs, skyband.tree, meta)
    score, time, number = skyband.objects
    put(score, time, number, (place(score, time, number, (0, size), of), size), of)
    meta[SIZE] = size + 1
    if meta[NODES] > 0:
        skyband = _append(skyband, of)
    if size + 1 > meta[LIMIT]:
        skyband = tidy(skyband, spec)
    return skyband


@njit(cache=True)
def _append(skyband: Skyband, of: tuple[float, int, int]) -> Skyband:
    """Put an object behind the nodes of the tree."""
    objects, stairs, tree, meta = skyband
    i = meta[USED]
    if i == tree.score.size:
        tree = Tree(grow(tree.score, 0), grow(tree.time, 0), grow(tree.number, 0), tree.split)
    tree.score[i], tree.time[i], tree.number[i] = of
    meta[USED] = i + 1
    return Skyband(objects, stairs, tree, meta)


@njit(cache=True)
def answer(skyband: Skyband, answers: Answers, q: int, k: int, ties: bool, start: int) -> Answers:
    """List q anew: the k best objects with ``time >= start``, through the tree if there is one, else down S."""
    objects, _, tree, meta = skyband
    clear(answers, q)
    if meta[NODES] == 0 or start <= meta[FLOOR]:
        passed = 0
        for i in range(meta[SIZE]):
            if objects.time[i] < start:
                passed += 1
                continue
            of = (objects.score[i], objects.time[i], objects.number[i])
            if not takes(answers, q, k, ties, of):
                break
            answers = offer(answers, q, k, ties, of)
            if answers.size[q] == k and not ties:
                break
        meta[PASSED if start <= meta[FLOOR] else DEBT] += passed
        return answers
    for i in candidates(tree, meta[NODES], k, start):
        answers = offer(answers, q, k, ties, (tree.score[i], tree.time[i], tree.number[i]))
    if ties and answers.size[q] >= k:
        least = answers.score[answers.base[q] + k - 1]
        clear(answers, q)
        for i in reaching(tree, meta[NODES], least, start):
            answers = offer(answers, q, k, ties, (tree.score[i], tree.time[i], tree.number[i]))
    for i in range(meta[NODES], meta[USED]):
        if tree.time[i] >= start:
            answers = offer(answers, q, k, ties, (tree.score[i], tree.time[i], tree.number[i]))
    meta[DEBT] += meta[USED] - meta[NODES]
    return answers


@njit(cache=True)
def repay(skyband: Skyband, spec: Spec) -> Skyband:
    """Where so many objects were passed over that it would have paid to do so, drop the expired or build the tree."""
    meta = skyband.meta
    if meta[PASSED] > meta[SIZE]:
        meta[SIZE] = sweep(skyband.objects, meta[SIZE], meta[FLOOR])
        meta[BAND] = min(meta[BAND], meta[SIZE])
        meta[PASSED] = 0
    if meta[DEBT] > meta[SIZE] * math.log2(meta[SIZE] + 1):
        skyband = plant(skyband)
    return skyband


@njit(cache=True)
def snapshot(skyband: Skyband, k: int, ties: bool, start: int) -> Objects:
    """The k best objects with ``time >= start``, best first."""
    answers = answer(skyband, no_answers(1), 0, k, ties, start)
    return listed(answers, 0, answers.size[0])


@njit(cache=True)
def arrive(skyband: Skyband, answers: Answers, spec: Spec, rows: Any) -> tuple[Skyband, Answers, Log]:
    """Windows that move with every arrival: Algorithm 6 and the answers of all queries, row by row."""
    log = no_log()
    meta = skyband.meta
    for i in range(rows.score.size):
        time = rows.time[i] if rows.time.size else rows.t0 + i
        of = (rows.score[i], time, rows.number[i] if rows.number.size else rows.n0 + i)
        if time <= meta[NEWEST]:
            if time < meta[FLOOR] or dominated(skyband.stairs, meta[STEPS], of, spec.strict):
                continue
        else:
            meta[NEWEST] = time
            meta[FLOOR] = time - spec.N + 1
        skyband = admit(skyband, spec, of)
        for q in range(spec.k.size):
            start = meta[NEWEST] - spec.extent[q] + 1
            enters = time >= start and takes(answers, q, spec.k[q], spec.ties[q], of)
            if answers.oldest[q] < start:
                skyband, answers, log = _renew(skyband, answers, log, spec, q, of, enters)
            elif enters:
                answers, log = _enter(answers, log, spec, q, of)
    return settle(skyband, spec, rows.score.size), answers, log


@njit(cache=True)
def _enter(answers: Answers, log: Log, spec: Spec, q: int, of: tuple[float, int, int]) -> tuple[Answers, Log]:
    """Section 4.2, *Handling new pairs*: the new object enters list q, and what no longer belongs there leaves."""
    size, cause = answers.size[q], (of[2], of[1])
    answers = offer(answers, q, spec.k[q], spec.ties[q], of)
    after = listed(answers, q, size + 1)
    for i in range(answers.size[q], size + 1):
        log = note(log, q, cause, LEFT, after.number[i], after.score[i])
    return answers, note(log, q, cause, ENTERED, of[2], of[0])


@njit(cache=True)
def _renew(
    skyband: Skyband, answers: Answers, log: Log, spec: Spec, q: int, of: tuple[float, int, int], enters: bool
) -> tuple[Skyband, Answers, Log]:
    """Section 4.2, *Handling pairs expired*: if list q runs short, it is found anew. The log gets the net difference.

    ``enters`` is judged by the list as it was: what is not in a list of k is known to be worse than its k-th only.
    """
    k, ties, start = spec.k[q], spec.ties[q], skyband.meta[NEWEST] - spec.extent[q] + 1
    size, cause = answers.size[q], (of[2], of[1])
    score, time, number = listed(answers, q, size)
    before = Objects(score.copy(), time.copy(), number.copy())
    expire(answers, q, start)
    if enters:
        answers = offer(answers, q, k, ties, of)
    if answers.size[q] < k <= size:
        answers = answer(skyband, answers, q, k, ties, start)
        skyband = repay(skyband, spec)
    after = listed(answers, q, answers.size[q])
    log = note_missing(log, q, cause, LEFT, before, after)
    log = note_missing(log, q, cause, ENTERED, after, before)
    return skyband, answers, log


@njit(cache=True)
def hop(skyband: Skyband, ends: Ints, spec: Spec, rows: Any, frontier: int) -> tuple[Skyband, Output]:
    """Hopping windows: rows in event-time order, and before each the windows that end there or earlier."""
    out = no_output()
    meta = skyband.meta
    last = 0
    for i in range(rows.score.size):
        of = (rows.score[i], rows.time[i], rows.number[i])
        if of[1] >= meta[DUE]:
            skyband, out = _close(skyband, ends, spec, out, of[1], last)
        last = of[2]
        if of[1] == meta[NEWEST] and dominated(skyband.stairs, meta[STEPS], of, spec.strict):
            continue
        meta[NEWEST] = of[1]
        skyband = admit(skyband, spec, of)
    if meta[DUE] <= frontier:
        skyband, out = _close(skyband, ends, spec, out, frontier, last)
    meta[FLOOR] = _floor(spec, frontier)
    return settle(skyband, spec, rows.score.size), out


@njit(cache=True)
def _floor(spec: Spec, bound: int) -> int:
    """The first position that a window can still hold once those that end by ``bound`` are closed.

    A count window that has just closed is still the present one, until the next object comes.
    """
    position = bound if spec.time else bound - 1
    return ((position // spec.slide + 1) * spec.slide).min() - spec.N


@njit(cache=True)
def _close(
    skyband: Skyband, ends: Ints, spec: Spec, out: Output, bound: int, last: int
) -> tuple[Skyband, Output]:
    """Emit the windows that end by ``bound`` and hold an object; the query stands for the key in the output."""
    objects, _, _, meta = skyband
    # Windows later than that of the newest object are empty, however many there are.
    latest = np.minimum(bound, (meta[NEWEST] + spec.extent) // spec.slide * spec.slide)
    count = np.maximum(0, (latest - ends) // spec.slide + 1)
    windows = _due(ends, spec, count)
    if windows.end.size > 0:
        offset, member, passed = batch(objects, meta[SIZE], windows, spec)
        for w in range(windows.end.size):
            part = member[offset[w] : offset[w + 1]]
            out = emit(out, windows.query[w], windows.end[w], 0 if spec.time else last,
                       objects.number[part], objects.score[part])  # fmt: skip
        meta[PASSED] += passed
    ends[:] = (bound // spec.slide + 1) * spec.slide
    meta[DUE] = ends.min()
    meta[FLOOR] = _floor(spec, bound)
    return repay(skyband, spec), out


@njit(cache=True)
def _due(ends: Ints, spec: Spec, count: Ints) -> Windows:
    """The next ``count`` windows of each query, the longest first."""
    query, end = np.empty(count.sum(), np.int64), np.empty(count.sum(), np.int64)
    w = 0
    for q in range(count.size):
        for i in range(count[q]):
            query[w], end[w] = q, ends[q] + i * spec.slide[q]
            w += 1
    start = end - spec.extent[query]
    order = np.argsort(start, kind="mergesort")
    return Windows(query[order], end[order], start[order])


@njit(cache=True)
def batch(objects: Objects, size: int, windows: Windows, spec: Spec) -> tuple[Ints, Ints, int]:
    """Batch (Algorithm 7): positions in S of the answers of several windows, in one pass.

    Those of window w are ``member[offset[w] : offset[w + 1]]``; the last value is how many objects served no window.
    """
    k, ties = spec.k[windows.query], spec.ties[windows.query]
    count = k.size
    follow = np.arange(1, count + 2)  # the window after each that is still to be filled; that after ``count`` is first
    follow[count] = 0
    held, kth = np.zeros(count, np.int64), np.zeros(count)
    window, member = np.empty(256, np.int64), np.empty(256, np.int64)
    found = passed = 0
    for i in range(size):
        before, w = count, follow[count]
        if w == count:
            break
        passed += objects.time[i] < windows.start[w]
        while w < count and objects.time[i] >= windows.start[w]:
            if held[w] < k[w] or objects.score[i] == kth[w]:
                if found == window.size:
                    window, member = grow(window, 0), grow(member, 0)
                window[found], member[found] = w, i
                found += 1
                held[w] += 1
                kth[w] = objects.score[i]
                filled = held[w] == k[w] and not ties[w]
            else:
                filled = True
            if filled:
                follow[before] = follow[w]
            else:
                before = w
            w = follow[w]
    offset = np.zeros(count + 1, np.int64)
    offset[1:] = np.cumsum(held)
    position = offset[:-1].copy()
    sorted_member = np.empty(found, np.int64)
    for i in range(found):
        sorted_member[position[window[i]]] = member[i]
        position[window[i]] += 1
    return offset, sorted_member, passed

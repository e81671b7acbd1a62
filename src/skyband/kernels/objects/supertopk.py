"""The super-top-k lists of MinTopk: fold panes in, close windows on the way."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.common.order import better
from skyband.kernels.common.output import Output, emit, grow
from skyband.kernels.common.rows import Closings, Lists
from skyband.kernels.common.sorting import by_rank
from skyband.kernels.objects import shortlist
from skyband.kernels.objects.minimal import Spec, minimal, window_marks

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NEVER = np.iinfo(np.int64).max
FEW = 24
MANY = 16  # rows that enter a top k one by one; more are cheaper to merge in one pass


class Work(NamedTuple):
    """One partition at work: the top k, the rest of the super-top-k list, and rows that were not sorted in yet.

    ``size`` counts what is in use: of top, from where and up to where in rest, of fresh. Then come a flag, whether
    the top k is stale and must be built anew before it is shown, a time no later than the oldest in the top k, how
    many rows have entered the top k since the list was minimal, and whether the arrays of rest may be written to.
    """

    top: Lists
    rest: Lists
    fresh: Lists
    spare: Lists  # memory for the next merge
    size: Ints  # top, start of rest, end of rest, fresh, stale, oldest, entered, own
    best: Floats  # no score in fresh is higher


@inner
def _room(rows: int) -> Lists:
    return Lists(np.zeros(1, np.int64), np.empty(rows), np.empty(rows, np.int64), np.empty(rows, np.int64))


@inner
def _oldest(position: Ints) -> int:
    return position.min() if position.size else NEVER


@inner
def _merge_part(old: Lists, lo: int, hi: int, new: Lists, j: int, out: Lists) -> int:
    """Merges ``old[lo:hi]`` and those rows of ``new``, from ``j`` on, that come before its last; both best first."""
    n = out.offset[0]
    for i in range(lo, hi):
        while j < new.score.size and better(
            new.score[j], new.position[j], new.arrival[j], old.score[i], old.position[i], old.arrival[i]
        ):
            out.score[n], out.position[n], out.arrival[n] = new.score[j], new.position[j], new.arrival[j]
            n += 1
            j += 1
        out.score[n], out.position[n], out.arrival[n] = old.score[i], old.position[i], old.arrival[i]
        n += 1
    out.offset[0] = n
    return j


@inner
def _sorted(rows: Lists, count: int) -> Lists:
    """The first ``count`` rows, best first. A few are sorted where they are, which costs no memory."""
    score, position, arrival = rows.score[:count], rows.position[:count], rows.arrival[:count]
    if count > FEW:
        order = by_rank(score, position, arrival)
        return Lists(rows.offset, score[order], position[order], arrival[order])
    for i in range(1, count):
        s, t, n = score[i], position[i], arrival[i]
        j = i
        while j > 0 and better(s, t, n, score[j - 1], position[j - 1], arrival[j - 1]):
            score[j], position[j], arrival[j] = score[j - 1], position[j - 1], arrival[j - 1]
            j -= 1
        score[j], position[j], arrival[j] = s, t, n
    return Lists(rows.offset, score, position, arrival)


@inner
def _head(work: Work, spec: Spec, lo: int, hi: int) -> Work:
    """Takes the top k from the head of the rest, which is ``rest[lo:hi]``."""
    top, rest, fresh, spare, size, best = work
    tops = min(hi - lo, spec.k)
    while spec.ties and 0 < tops < hi - lo and rest.score[lo + tops] == rest.score[lo + tops - 1]:
        tops += 1
    if tops > top.score.size:
        top = Lists(top.offset, grow(top.score, tops), grow(top.position, tops), grow(top.arrival, tops))
    size[5] = NEVER
    for i in range(tops):
        top.score[i], top.position[i], top.arrival[i] = rest.score[lo + i], rest.position[lo + i], rest.arrival[lo + i]
        size[5] = min(size[5], top.position[i])
    size[0], size[1], size[2], size[4], size[6] = tops, lo + tops, hi, 0, 0
    return Work(top, rest, fresh, spare, size, best)


@inner
def _merge(work: Work, spec: Spec, first: int) -> Work:
    """Sorts the fresh rows in, drops what no window from ``first`` on can show, and takes the top k from the head."""
    top, rest, fresh, out, size, best = work
    tops, lo, hi, count = size[0], size[1], size[2], size[3]
    total = tops + hi - lo + count
    if total > out.score.size:
        out = _room(2 * total)
    score, position, arrival = out.score, out.position, out.arrival
    new = _sorted(fresh, count)
    out.offset[0] = 0
    j = _merge_part(top, 0, tops, new, 0, out)  # the top k, stale or not, comes before the rest
    j = _merge_part(rest, lo, hi, new, j, out)
    score[total - count + j : total], position[total - count + j : total] = new.score[j:], new.position[j:]
    arrival[total - count + j : total] = new.arrival[j:]
    keep = minimal(score[:total], window_marks(position[:total], spec, first), spec.k, spec.ties)
    total = 0
    for n in range(keep.size):
        if keep[n]:
            score[total], position[total], arrival[total] = score[n], position[n], arrival[n]
            total += 1
    spare = rest if size[7] else _room(0)
    size[3], size[7] = 0, 1
    return _head(Work(top, out, fresh, spare, size, best), spec, 0, total)


@inner
def _reserve(work: Work, rows: int) -> Work:
    """Room for ``rows`` more rows, and for what they may displace from the top k."""
    top, rest, fresh, spare, size, best = work
    if size[0] + MANY > top.score.size:
        need = size[0] + MANY
        top = Lists(top.offset, grow(top.score, need), grow(top.position, need), grow(top.arrival, need))
    if size[3] + rows + size[0] + MANY > fresh.score.size:
        need = size[3] + rows + size[0] + MANY
        fresh = Lists(fresh.offset, grow(fresh.score, need), grow(fresh.position, need), grow(fresh.arrival, need))
    return Work(top, rest, fresh, spare, size, best)


@inner
def _set_aside(work: Work, score: float, position: int, arrival: int) -> None:
    fresh, n = work.fresh, work.size[3]
    fresh.score[n], fresh.position[n], fresh.arrival[n] = score, position, arrival
    if n == 0 or score > work.best[0]:
        work.best[0] = score
    work.size[3] = n + 1


@inner
def _set_all_aside(work: Work, rows: Lists, lo: int, hi: int) -> None:
    score, position, arrival = work.fresh.score, work.fresh.position, work.fresh.arrival
    n = work.size[3]
    best = work.best[0] if n else rows.score[lo]
    for i in range(lo, hi):
        score[n], position[n], arrival[n] = rows.score[i], rows.position[i], rows.arrival[i]
        best = max(best, rows.score[i])
        n += 1
    work.best[0] = best
    work.size[3] = n


@inner
def _enter(work: Work, spec: Spec, score: float, position: int, arrival: int) -> None:
    """Puts one row into the top k; what it displaces is set aside again."""
    top, i = work.top, work.size[0]
    while i > 0 and better(score, position, arrival, top.score[i - 1], top.position[i - 1], top.arrival[i - 1]):
        top.score[i], top.position[i], top.arrival[i] = top.score[i - 1], top.position[i - 1], top.arrival[i - 1]
        i -= 1
    top.score[i], top.position[i], top.arrival[i] = score, position, arrival
    work.size[5] = min(work.size[5], position)
    work.size[6] += 1
    n = work.size[0] + 1
    while n > spec.k and not (spec.ties and top.score[n - 1] == top.score[spec.k - 1]):
        n -= 1
        _set_aside(work, top.score[n], top.position[n], top.arrival[n])
    work.size[0] = n


@inner
def _fold(work: Work, spec: Spec, rows: Lists, lo: int, hi: int, first: int) -> Work:
    """Takes in the rows of a pane (UpdateSuperTopk of Figure 6, for a whole pane)."""
    work = _reserve(work, hi - lo)
    entering = MANY + 1
    if work.size[0] >= spec.k:
        bar = work.top.score[spec.k - 1]
        entering = 0
        for i in range(lo, hi):
            entering += rows.score[i] >= bar
    if entering > MANY:
        work.size[4] = 1
    if work.size[4] or entering == 0:
        _set_all_aside(work, rows, lo, hi)
    else:
        for i in range(lo, hi):
            if rows.score[i] >= work.top.score[spec.k - 1]:
                _enter(work, spec, rows.score[i], rows.position[i], rows.arrival[i])
            else:
                _set_aside(work, rows.score[i], rows.position[i], rows.arrival[i])
    if work.size[3] > max(2 * (work.size[2] - work.size[1]), 4 * spec.k, 256):
        work = _merge(work, spec, first)
    return work


@inner
def _best_fresh(work: Work, start: int) -> int:
    """Where the best fresh row is, or -1; drops those before ``start``."""
    score, position, arrival = work.fresh.score, work.fresh.position, work.fresh.arrival
    count, found, i = work.size[3], -1, 0
    while i < count:
        if position[i] < start:
            count -= 1
            score[i], position[i], arrival[i] = score[count], position[count], arrival[count]
            continue
        if found < 0 or (
            score[i] >= score[found]
            and better(score[i], position[i], arrival[i], score[found], position[found], arrival[found])
        ):
            found = i
        i += 1
    work.size[3] = count
    if found >= 0:
        work.best[0] = score[found]
    return found


@inner
def _refill(work: Work, spec: Spec, start: int) -> Work:
    """Drops expired objects from the top k and moves the best of the others up; where many of those are fresh, the
    top k is stale."""
    top, rest, fresh, spare, size, best = work
    kept, tries = 0, 0
    for i in range(size[0]):
        if top.position[i] >= start:
            top.score[kept], top.position[kept], top.arrival[kept] = top.score[i], top.position[i], top.arrival[i]
            kept += 1
    while True:
        while size[1] < size[2] and rest.position[size[1]] < start:
            size[1] += 1
        i, j = size[1], -1
        more = i < size[2]
        wanted = kept < spec.k or (spec.ties and best[0] >= top.score[spec.k - 1])
        if size[3] and wanted and not (more and rest.score[i] > best[0]):
            if tries == MANY:
                size[4] = 1
                break
            tries += 1
            j = _best_fresh(work, start)
        if j >= 0 and not (
            more
            and better(
                rest.score[i], rest.position[i], rest.arrival[i], fresh.score[j], fresh.position[j], fresh.arrival[j]
            )
        ):
            score, position, arrival = fresh.score[j], fresh.position[j], fresh.arrival[j]
        elif more:
            j = -1
            score, position, arrival = rest.score[i], rest.position[i], rest.arrival[i]
        else:
            break
        if kept >= spec.k and not (spec.ties and score == top.score[spec.k - 1]):
            break
        if kept == top.score.size:
            top = Lists(top.offset, grow(top.score, kept), grow(top.position, kept), grow(top.arrival, kept))
        top.score[kept], top.position[kept], top.arrival[kept] = score, position, arrival
        kept += 1
        if j < 0:
            size[1] += 1
        else:
            last = size[3] - 1
            fresh.score[j], fresh.position[j], fresh.arrival[j] = (
                fresh.score[last],
                fresh.position[last],
                fresh.arrival[last],
            )
            size[3] = last
            size[6] += 1
    size[0], size[5] = kept, _oldest(top.position[:kept])
    return Work(top, rest, fresh, spare, size, best)


@inner
def _current(work: Work, spec: Spec, end: int) -> Work:
    """Brings the top k up to the window that ends at ``end`` (PurgeExpiredWindow of Figure 6)."""
    start = end - spec.extent
    if not work.size[4] and work.size[5] < start:
        work = _refill(work, spec, start)
    if work.size[4]:
        work = _merge(work, spec, end // spec.slide)
    return work


@inner
def _close(out: Output, work: Work, spec: Spec, partition: int, end: int, bound: int, closings: Closings
           ) -> tuple[Output, Work, int]:  # fmt: skip
    """Closes the windows from ``end`` up to ``bound``; returns the end of the first one that stays open."""
    place = 0
    if closings.offset.size:
        lo, hi = closings.offset[partition], closings.offset[partition + 1]
        place = lo + np.searchsorted(closings.end[lo:hi], end)
    while end <= bound:
        work = _current(work, spec, end)
        if work.size[0] == 0:  # nothing is alive, so no window up to the bound holds an object
            return out, work, bound // spec.slide * spec.slide + spec.slide
        trigger = 0
        if closings.offset.size:
            while closings.end[place] < end:
                place += 1
            trigger = closings.arrival[place]
        out = emit(out, partition, end, trigger, work.top.arrival[: work.size[0]], work.top.score[: work.size[0]])
        end += spec.slide
    return out, work, end


@inner
def _save(work: Work, spec: Spec, first: int, out: Lists, n: int) -> int:
    """Writes what is in window ``first`` or a later one to ``out`` from ``n`` on; returns where it ends."""
    start = first * spec.slide - spec.extent
    for part, lo, hi in ((work.top, 0, work.size[0]), (work.rest, work.size[1], work.size[2])):
        for i in range(lo, hi):
            if part.position[i] >= start:
                out.score[n], out.position[n], out.arrival[n] = part.score[i], part.position[i], part.arrival[i]
                n += 1
    return n


@outer
def slide_lists(lists: Lists, rows: Lists, spec: Spec, closings: Closings, out: Output) -> tuple[Lists, Output]:
    """Folds ``rows`` (by partition and pane) into the super-top-k lists and closes the windows that are due."""
    partitions = lists.offset.size - 1
    offset = np.zeros(partitions + 1, np.int64)
    capacity = lists.score.size + rows.score.size
    score, position, arrival = np.empty(capacity), np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    kept = Lists(offset, score, position, arrival)
    few, top, fresh, spare = _room(shortlist.OBJECTS), _room(64), _room(64), _room(0)
    size, best = np.zeros(8, np.int64), np.zeros(1)
    for partition in range(partitions):
        a, b = lists.offset[partition], lists.offset[partition + 1]
        lo, stop = rows.offset[partition], rows.offset[partition + 1]
        n = offset[partition]
        closed, frontier = (
            closings.closed[partition % closings.closed.size],
            closings.frontier[partition % closings.closed.size],
        )
        end = (closed // spec.slide + 1) * spec.slide
        # A count window that closed with the last object is still the present one until the next object comes.
        present = -(-frontier // spec.slide) if closings.offset.size else end // spec.slide
        if lo == stop and (a == b or (frontier < end and present <= -(-closed // spec.slide))):  # nothing to do: copy
            score[n : n + b - a], position[n : n + b - a] = lists.score[a:b], lists.position[a:b]
            arrival[n : n + b - a] = lists.arrival[a:b]
            offset[partition + 1] = n + b - a
            continue
        if b - a + stop - lo <= shortlist.OBJECTS:
            count = shortlist.join(few, lists, a, b, rows, lo, stop)
            start, last = shortlist.windows(few, count, spec, end, frontier)
            if last - start < shortlist.WINDOWS * spec.slide:
                out = shortlist.close(out, few, count, top, spec, partition, start, last, closings)
                end = max(end, frontier // spec.slide * spec.slide + spec.slide)
                first = present if closings.offset.size else end // spec.slide
                offset[partition + 1] = shortlist.save(few, count, spec, first, kept, n)
                continue
        size[3] = size[7] = 0
        work = _head(Work(top, lists, fresh, spare, size, best), spec, a, b)
        while lo < stop:
            pane = rows.position[lo] // spec.pane * spec.pane
            hi = lo + 1
            while hi < stop and rows.position[hi] < pane + spec.pane:
                hi += 1
            out, work, end = _close(out, work, spec, partition, end, pane, closings)
            work = _fold(work, spec, rows, lo, hi, end // spec.slide)
            lo = hi
        out, work, end = _close(out, work, spec, partition, end, frontier, closings)
        first = present if closings.offset.size else end // spec.slide
        if work.size[3] or work.size[6]:
            work = _merge(work, spec, first)
        top, fresh, spare = work.top, work.fresh, work.rest if size[7] else work.spare
        offset[partition + 1] = _save(work, spec, first, kept, n)
    n = offset[partitions]
    return Lists(offset, score[:n].copy(), position[:n].copy(), arrival[:n].copy()), out

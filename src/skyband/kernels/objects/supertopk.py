"""The super-top-k lists of MinTopk: fold panes in, close windows on the way."""

from typing import NamedTuple

import numpy as np

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.common.order import better
from skyband.kernels.common.output import Output, emit, grow
from skyband.kernels.common.rows import Closings, Lists, Objects
from skyband.kernels.common.sorting import by_rank
from skyband.kernels.objects import shortlist
from skyband.kernels.objects.minimal import Asked, minimal, window_marks
from skyband.storage.blocks import Ints, Record, record_type

NEVER = np.iinfo(np.int64).max
FEW = 24
MANY = 16  # rows that enter a top k one by one; more are cheaper to merge in one pass


class WorkMeta(NamedTuple):
    """How a partition at work stands."""

    top: int = 0  # objects in the top k
    start: int = 0  # of what is in use of the rest
    stop: int = 0
    fresh: int = 0  # rows that were not sorted in yet
    stale: int = 0  # the top k must be built anew before it is shown
    oldest: int = 0  # a position no later than any in the top k
    entered: int = 0  # rows that have entered the top k since the list was minimal
    own: int = 0  # the arrays of the rest may be written to
    bar: float = 0.0  # no score of a fresh row is higher


WORK = record_type(WorkMeta)


class Work(NamedTuple):
    """One partition at work: the top k, the rest of the super-top-k list, and rows that were not sorted in yet."""

    top: Objects
    rest: Objects
    fresh: Objects
    spare: Objects  # memory for the next merge
    meta: Record


@inner
def _room(rows: int) -> Objects:
    return Objects(np.empty(rows), np.empty(rows, np.int64), np.empty(rows, np.int64))


@inner
def _roomy(rows: Objects, size: int) -> Objects:
    """The rows with room for so many."""
    if size <= rows.score.size:
        return rows
    return Objects(grow(rows.score, size), grow(rows.position, size), grow(rows.arrival, size))


@inner
def _oldest(position: Ints) -> int:
    return position.min() if position.size else NEVER


@inner
def _merge_part(old: Objects, lo: int, hi: int, new: Objects, j: int, out: Objects, n: int) -> tuple[int, int]:
    """Merges ``old[lo:hi]`` and those rows of ``new``, from ``j`` on, that come before its last; both best first.

    They are written to ``out`` from ``n`` on; returns where the new rows go on, and what is written.
    """
    for i in range(lo, hi):
        while j < new.score.size and better(
            new.score[j], new.position[j], new.arrival[j], old.score[i], old.position[i], old.arrival[i]
        ):
            out.score[n], out.position[n], out.arrival[n] = new.score[j], new.position[j], new.arrival[j]
            n += 1
            j += 1
        out.score[n], out.position[n], out.arrival[n] = old.score[i], old.position[i], old.arrival[i]
        n += 1
    return j, n


@inner
def _sorted(rows: Objects, count: int) -> Objects:
    """The first ``count`` rows, best first. A few are sorted where they are, which costs no memory."""
    score, position, arrival = rows.score[:count], rows.position[:count], rows.arrival[:count]
    if count > FEW:
        order = by_rank(score, position, arrival)
        return Objects(score[order], position[order], arrival[order])
    for i in range(1, count):
        s, t, n = score[i], position[i], arrival[i]
        j = i
        while j > 0 and better(s, t, n, score[j - 1], position[j - 1], arrival[j - 1]):
            score[j], position[j], arrival[j] = score[j - 1], position[j - 1], arrival[j - 1]
            j -= 1
        score[j], position[j], arrival[j] = s, t, n
    return Objects(score, position, arrival)


@inner
def _head(work: Work, asked: Asked, lo: int, hi: int) -> Work:
    """Takes the top k from the head of the rest, which is ``rest[lo:hi]``."""
    rest, meta = work.rest, work.meta[0]
    tops = min(hi - lo, asked.k)
    while asked.ties and 0 < tops < hi - lo and rest.score[lo + tops] == rest.score[lo + tops - 1]:
        tops += 1
    top = _roomy(work.top, tops)
    meta.oldest = NEVER
    for i in range(tops):
        top.score[i], top.position[i], top.arrival[i] = rest.score[lo + i], rest.position[lo + i], rest.arrival[lo + i]
        meta.oldest = min(meta.oldest, top.position[i])
    meta.top, meta.start, meta.stop, meta.stale, meta.entered = tops, lo + tops, hi, 0, 0
    return Work(top, rest, work.fresh, work.spare, work.meta)


@inner
def _merge(work: Work, asked: Asked, first: int) -> Work:
    """Sorts the fresh rows in, drops what no window from ``first`` on can show, and takes the top k from the head."""
    top, rest, fresh, out, record = work
    meta = record[0]
    tops, lo, hi, count = meta.top, meta.start, meta.stop, meta.fresh
    total = tops + hi - lo + count
    if total > out.score.size:
        out = _room(2 * total)
    score, position, arrival = out.score, out.position, out.arrival
    new = _sorted(fresh, count)
    j, n = _merge_part(top, 0, tops, new, 0, out, 0)  # the top k, stale or not, comes before the rest
    j, n = _merge_part(rest, lo, hi, new, j, out, n)
    score[total - count + j : total], position[total - count + j : total] = new.score[j:], new.position[j:]
    arrival[total - count + j : total] = new.arrival[j:]
    keep = minimal(score[:total], window_marks(position[:total], asked, first), asked.k, asked.ties)
    total = 0
    for n in range(keep.size):
        if keep[n]:
            score[total], position[total], arrival[total] = score[n], position[n], arrival[n]
            total += 1
    spare = rest if meta.own else _room(0)
    meta.fresh, meta.own = 0, 1
    return _head(Work(top, out, fresh, spare, record), asked, 0, total)


@inner
def _reserve(work: Work, rows: int) -> Work:
    """Room for ``rows`` more rows, and for what they may displace from the top k."""
    meta = work.meta[0]
    top = _roomy(work.top, meta.top + MANY)
    return Work(top, work.rest, _roomy(work.fresh, meta.fresh + rows + meta.top + MANY), work.spare, work.meta)


@inner
def _set_aside(work: Work, score: float, position: int, arrival: int) -> None:
    fresh, meta = work.fresh, work.meta[0]
    n = meta.fresh
    fresh.score[n], fresh.position[n], fresh.arrival[n] = score, position, arrival
    if n == 0 or score > meta.bar:
        meta.bar = score
    meta.fresh = n + 1


@inner
def _set_all_aside(work: Work, rows: Lists, lo: int, hi: int) -> None:
    score, position, arrival = work.fresh
    meta = work.meta[0]
    n = meta.fresh
    best = meta.bar if n else rows.score[lo]
    for i in range(lo, hi):
        score[n], position[n], arrival[n] = rows.score[i], rows.position[i], rows.arrival[i]
        best = max(best, rows.score[i])
        n += 1
    meta.bar, meta.fresh = best, n


@inner
def _enter(work: Work, asked: Asked, score: float, position: int, arrival: int) -> None:
    """Puts one row into the top k; what it displaces is set aside again."""
    top, meta = work.top, work.meta[0]
    i = meta.top
    while i > 0 and better(score, position, arrival, top.score[i - 1], top.position[i - 1], top.arrival[i - 1]):
        top.score[i], top.position[i], top.arrival[i] = top.score[i - 1], top.position[i - 1], top.arrival[i - 1]
        i -= 1
    top.score[i], top.position[i], top.arrival[i] = score, position, arrival
    meta.oldest = min(meta.oldest, position)
    meta.entered += 1
    n = meta.top + 1
    while n > asked.k and not (asked.ties and top.score[n - 1] == top.score[asked.k - 1]):
        n -= 1
        _set_aside(work, top.score[n], top.position[n], top.arrival[n])
    meta.top = n


@inner
def _fold(work: Work, asked: Asked, rows: Lists, lo: int, hi: int, first: int) -> Work:
    """Takes in the rows of a pane (UpdateSuperTopk of Figure 6, for a whole pane)."""
    work = _reserve(work, hi - lo)
    meta, entering = work.meta[0], MANY + 1
    if meta.top >= asked.k:
        bar = work.top.score[asked.k - 1]
        entering = 0
        for i in range(lo, hi):
            entering += rows.score[i] >= bar
    if entering > MANY:
        meta.stale = 1
    if meta.stale or entering == 0:
        _set_all_aside(work, rows, lo, hi)
    else:
        for i in range(lo, hi):
            if rows.score[i] >= work.top.score[asked.k - 1]:
                _enter(work, asked, rows.score[i], rows.position[i], rows.arrival[i])
            else:
                _set_aside(work, rows.score[i], rows.position[i], rows.arrival[i])
    if meta.fresh > max(2 * (meta.stop - meta.start), 4 * asked.k, 256):
        work = _merge(work, asked, first)
    return work


@inner
def _best_fresh(work: Work, start: int) -> int:
    """Where the best fresh row is, or -1; drops those before ``start``."""
    score, position, arrival = work.fresh
    meta = work.meta[0]
    count, found, i = meta.fresh, -1, 0
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
    meta.fresh = count
    if found >= 0:
        meta.bar = score[found]
    return found


@inner
def _refill(work: Work, asked: Asked, start: int) -> Work:
    """Drops expired objects from the top k and moves the best of the others up; where many of those are fresh, the
    top k is stale."""
    top, rest, fresh, spare, record = work
    meta, kept, tries = record[0], 0, 0
    for i in range(meta.top):
        if top.position[i] >= start:
            top.score[kept], top.position[kept], top.arrival[kept] = top.score[i], top.position[i], top.arrival[i]
            kept += 1
    while True:
        while meta.start < meta.stop and rest.position[meta.start] < start:
            meta.start += 1
        i, j = meta.start, -1
        more = i < meta.stop
        wanted = kept < asked.k or (asked.ties and meta.bar >= top.score[asked.k - 1])
        if meta.fresh and wanted and not (more and rest.score[i] > meta.bar):
            if tries == MANY:
                meta.stale = 1
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
        if kept >= asked.k and not (asked.ties and score == top.score[asked.k - 1]):
            break
        if kept == top.score.size:
            top = _roomy(top, kept + 1)
        top.score[kept], top.position[kept], top.arrival[kept] = score, position, arrival
        kept += 1
        if j < 0:
            meta.start += 1
        else:
            last = meta.fresh - 1
            fresh.score[j], fresh.position[j] = fresh.score[last], fresh.position[last]
            fresh.arrival[j] = fresh.arrival[last]
            meta.fresh = last
            meta.entered += 1
    meta.top, meta.oldest = kept, _oldest(top.position[:kept])
    return Work(top, rest, fresh, spare, record)


@inner
def _current(work: Work, asked: Asked, end: int) -> Work:
    """Brings the top k up to the window that ends at ``end`` (PurgeExpiredWindow of Figure 6)."""
    start = end - asked.extent
    meta = work.meta[0]
    if not meta.stale and meta.oldest < start:
        work = _refill(work, asked, start)
    if meta.stale:
        work = _merge(work, asked, end // asked.slide)
    return work


@inner
def _close(out: Output, work: Work, asked: Asked, partition: int, end: int, bound: int, closings: Closings
           ) -> tuple[Output, Work, int]:  # fmt: skip
    """Closes the windows from ``end`` up to ``bound``; returns the end of the first one that stays open."""
    place = 0
    if closings.offset.size:
        lo, hi = closings.offset[partition], closings.offset[partition + 1]
        place = lo + np.searchsorted(closings.end[lo:hi], end)
    while end <= bound:
        work = _current(work, asked, end)
        top = work.meta[0].top
        if top == 0:  # nothing is alive, so no window up to the bound holds an object
            return out, work, bound // asked.slide * asked.slide + asked.slide
        trigger = 0
        if closings.offset.size:
            while closings.end[place] < end:
                place += 1
            trigger = closings.arrival[place]
        out = emit(out, partition, end, trigger, work.top.arrival[:top], work.top.score[:top])
        end += asked.slide
    return out, work, end


@inner
def _save(work: Work, asked: Asked, first: int, out: Lists, n: int) -> int:
    """Writes what is in window ``first`` or a later one to ``out`` from ``n`` on; returns where it ends."""
    meta, start = work.meta[0], first * asked.slide - asked.extent
    for part, lo, hi in ((work.top, 0, meta.top), (work.rest, meta.start, meta.stop)):
        for i in range(lo, hi):
            if part.position[i] >= start:
                out.score[n], out.position[n], out.arrival[n] = part.score[i], part.position[i], part.arrival[i]
                n += 1
    return n


@outer
def slide_lists(lists: Lists, rows: Lists, asked: Asked, closings: Closings, out: Output) -> tuple[Lists, Output]:
    """Folds ``rows`` (by partition and pane) into the super-top-k lists and closes the windows that are due."""
    partitions = lists.offset.size - 1
    offset = np.zeros(partitions + 1, np.int64)
    capacity = lists.score.size + rows.score.size
    score, position, arrival = np.empty(capacity), np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    kept = Lists(offset, score, position, arrival)
    few, top, fresh, spare = _room(shortlist.OBJECTS), _room(64), _room(64), _room(0)
    record = np.zeros(1, WORK)
    meta, rest = record[0], Objects(lists.score, lists.position, lists.arrival)
    for partition in range(partitions):
        a, b = lists.offset[partition], lists.offset[partition + 1]
        lo, stop = rows.offset[partition], rows.offset[partition + 1]
        n = offset[partition]
        closed, frontier = (
            closings.closed[partition % closings.closed.size],
            closings.frontier[partition % closings.closed.size],
        )
        end = (closed // asked.slide + 1) * asked.slide
        # A count window that closed with the last object is still the present one until the next object comes.
        present = -(-frontier // asked.slide) if closings.offset.size else end // asked.slide
        if lo == stop and (a == b or (frontier < end and present <= -(-closed // asked.slide))):  # nothing to do: copy
            score[n : n + b - a], position[n : n + b - a] = lists.score[a:b], lists.position[a:b]
            arrival[n : n + b - a] = lists.arrival[a:b]
            offset[partition + 1] = n + b - a
            continue
        if b - a + stop - lo <= shortlist.OBJECTS:
            count = shortlist.join(few, lists, a, b, rows, lo, stop)
            start, last = shortlist.windows(few, count, asked, end, frontier)
            if last - start < shortlist.WINDOWS * asked.slide:
                out = shortlist.close(out, few, count, top, asked, partition, start, last, closings)
                end = max(end, frontier // asked.slide * asked.slide + asked.slide)
                first = present if closings.offset.size else end // asked.slide
                offset[partition + 1] = shortlist.save(few, count, asked, first, kept, n)
                continue
        meta.fresh = meta.own = 0
        work = _head(Work(top, rest, fresh, spare, record), asked, a, b)
        while lo < stop:
            pane = rows.position[lo] // asked.pane * asked.pane
            hi = lo + 1
            while hi < stop and rows.position[hi] < pane + asked.pane:
                hi += 1
            out, work, end = _close(out, work, asked, partition, end, pane, closings)
            work = _fold(work, asked, rows, lo, hi, end // asked.slide)
            lo = hi
        out, work, end = _close(out, work, asked, partition, end, frontier, closings)
        first = present if closings.offset.size else end // asked.slide
        if meta.fresh or meta.entered:
            work = _merge(work, asked, first)
        top, fresh, spare = work.top, work.fresh, work.rest if meta.own else work.spare
        offset[partition + 1] = _save(work, asked, first, kept, n)
    n = offset[partitions]
    return Lists(offset, score[:n].copy(), position[:n].copy(), arrival[:n].copy()), out

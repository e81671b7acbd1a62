"""Super-top-k lists of partitions with few objects and few windows to close: a million of them is what costs."""

from skyband.kernels.jit import inner
from skyband.kernels.minimal import Spec
from skyband.kernels.order import better
from skyband.kernels.output import Output, emit
from skyband.kernels.rows import Closings, Lists

OBJECTS = 48  # in a list, with the rows that come
WINDOWS = 8  # to close


@inner
def windows(all: Lists, n: int, spec: Spec, end: int, frontier: int) -> tuple[int, int]:
    """The ends of the first and of the last window from ``end`` up to the frontier that may hold an object."""
    oldest = newest = all.time[0]
    for i in range(1, n):
        oldest, newest = min(oldest, all.time[i]), max(newest, all.time[i])
    first = max(end, (oldest // spec.slide + 1) * spec.slide)
    return first, min(frontier, newest + spec.extent) // spec.slide * spec.slide


@inner
def join(all: Lists, lists: Lists, a: int, b: int, rows: Lists, lo: int, hi: int) -> int:
    """Puts a list, and the rows sorted in, into ``all``; returns how many there are."""
    score, time, number = all.score, all.time, all.number
    n = b - a
    for i in range(n):
        score[i], time[i], number[i] = lists.score[a + i], lists.time[a + i], lists.number[a + i]
    for i in range(lo, hi):
        s, t, m, j = rows.score[i], rows.time[i], rows.number[i], n
        while j > 0 and better(s, t, m, score[j - 1], time[j - 1], number[j - 1]):
            score[j], time[j], number[j] = score[j - 1], time[j - 1], number[j - 1]
            j -= 1
        score[j], time[j], number[j] = s, t, m
        n += 1
    return n


@inner
def close(out: Output, all: Lists, n: int, top: Lists, spec: Spec, key: int, end: int, last: int, closings: Closings
          ) -> Output:  # fmt: skip
    """Closes the windows from ``end`` to ``last``: the first k of the objects that are in each."""
    place = closings.offset[key] if closings.offset.size else 0
    while end <= last:
        size = 0
        for i in range(n):
            if end - spec.extent <= all.time[i] < end:
                if size >= spec.k and not (spec.ties and all.score[i] == top.score[size - 1]):
                    break
                top.score[size], top.number[size] = all.score[i], all.number[i]
                size += 1
        if size:
            trigger = 0
            if closings.offset.size:
                while closings.end[place] < end:
                    place += 1
                trigger = closings.number[place]
            out = emit(out, key, end, trigger, top.number[:size], top.score[:size])
        end += spec.slide
    return out


@inner
def save(all: Lists, n: int, spec: Spec, first: int, out: Lists, start: int) -> int:
    """Writes the minimal set (Theorem 3.1) for the windows from ``first`` on; returns where it ends.

    The window in which the fewest better objects are with an object is its last: it stays if there are fewer than k.
    """
    for i in range(n):
        mark, ahead = (all.time[i] + spec.extent) // spec.slide, 0
        for j in range(i):
            if all.time[j] + spec.extent >= mark * spec.slide and not (spec.ties and all.score[j] == all.score[i]):
                ahead += 1
        if mark >= first and ahead < spec.k:
            out.score[start], out.time[start], out.number[start] = all.score[i], all.time[i], all.number[i]
            start += 1
    return start

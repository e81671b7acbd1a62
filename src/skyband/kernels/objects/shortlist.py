"""Super-top-k lists of partitions with few objects and few windows to close: a million of them is what costs."""

from skyband.kernels.common.jit import inner
from skyband.kernels.common.order import better
from skyband.kernels.common.output import Output, emit
from skyband.kernels.common.rows import Closings, Lists, Objects
from skyband.kernels.objects.minimal import Asked

OBJECTS = 48  # in a list, with the rows that come
WINDOWS = 8  # to close


@inner
def windows(all: Objects, n: int, asked: Asked, end: int, frontier: int) -> tuple[int, int]:
    """The ends of the first and of the last window from ``end`` up to the frontier that may hold an object."""
    oldest = newest = all.position[0]
    for i in range(1, n):
        oldest, newest = min(oldest, all.position[i]), max(newest, all.position[i])
    first = max(end, (oldest // asked.slide + 1) * asked.slide)
    return first, min(frontier, newest + asked.extent) // asked.slide * asked.slide


@inner
def join(all: Objects, lists: Lists, a: int, b: int, rows: Lists, lo: int, hi: int) -> int:
    """Puts a list, and the rows sorted in, into ``all``; returns how many there are."""
    score, position, arrival = all.score, all.position, all.arrival
    n = b - a
    for i in range(n):
        score[i], position[i], arrival[i] = lists.score[a + i], lists.position[a + i], lists.arrival[a + i]
    for i in range(lo, hi):
        s, t, m, j = rows.score[i], rows.position[i], rows.arrival[i], n
        while j > 0 and better(s, t, m, score[j - 1], position[j - 1], arrival[j - 1]):
            score[j], position[j], arrival[j] = score[j - 1], position[j - 1], arrival[j - 1]
            j -= 1
        score[j], position[j], arrival[j] = s, t, m
        n += 1
    return n


@inner
def close(
    out: Output, all: Objects, n: int, top: Objects, asked: Asked, partition: int, end: int, last: int, stand: Closings
) -> Output:
    """Closes the windows from ``end`` to ``last``: the first k of the objects that are in each."""
    place = stand.offset[partition] if stand.offset.size else 0
    while end <= last:
        size = 0
        for i in range(n):
            if end - asked.extent <= all.position[i] < end:
                if size >= asked.k and not (asked.ties and all.score[i] == top.score[size - 1]):
                    break
                top.score[size], top.arrival[size] = all.score[i], all.arrival[i]
                size += 1
        if size:
            trigger = 0
            if stand.offset.size:
                while stand.end[place] < end:
                    place += 1
                trigger = stand.arrival[place]
            out = emit(out, partition, end, trigger, top.arrival[:size], top.score[:size])
        end += asked.slide
    return out


@inner
def save(all: Objects, n: int, asked: Asked, first: int, out: Lists, start: int) -> int:
    """Writes the minimal set (Theorem 3.1) for the windows from ``first`` on; returns where it ends.

    The window in which the fewest better objects are with an object is its last: it stays if there are fewer than k.
    """
    for i in range(n):
        mark, ahead = (all.position[i] + asked.extent) // asked.slide, 0
        for j in range(i):
            if all.position[j] + asked.extent >= mark * asked.slide and not (
                asked.ties and all.score[j] == all.score[i]
            ):
                ahead += 1
        if mark >= first and ahead < asked.k:
            out.score[start], out.position[start], out.arrival[start] = all.score[i], all.position[i], all.arrival[i]
            start += 1
    return start

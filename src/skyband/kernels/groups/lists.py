"""One list a stream, sorted by value, and the Threshold Algorithm over them (Fagin, Lotem, Naor, JCSS 2003).

The lists are one array in the order of stream and value, with a small buffer beside it in the same order that is merged
in when it is full. An entry is out of date when its stamp is not the newest one of its cell; such entries are passed
over, and dropped when the buffer is merged in.
"""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, outer
from skyband.kernels.groups.assemble import MAX, MEAN, MIN, PRODUCT, Events, Spec
from skyband.storage.blocks import Floats, Ints, Record, block, column, scalars

MARGIN = 1e-12  # how far a threshold may be off by rounding


@block(version=1)
class Sorted(NamedTuple):
    """Entries in the order of stream, and then of value, largest first."""

    stream: Annotated[Ints, column("entries")]
    value: Annotated[Floats, column("entries")]
    cell: Annotated[Ints, column("entries")]
    stamp: Annotated[Ints, column("entries")]


class ListsMeta(NamedTuple):
    buffered: int = 0  # entries in the buffer
    cells: int = 0  # cells that had an entry ever


@block(version=1)
class Lists(NamedTuple):
    """The lists; of each cell its newest stamp and its object."""

    main: Sorted
    buffer: Sorted
    stamp: Annotated[Ints, column("cells", used="cells")]
    owner: Annotated[Ints, column("cells", used="cells")]
    meta: Annotated[Record, scalars(ListsMeta)]


@in_place
def _before(stream: int, value: float, entries: Sorted, i: int) -> bool:
    """Whether something comes before an entry."""
    if stream != entries.stream[i]:
        return bool(stream < entries.stream[i])
    return bool(value > entries.value[i])


@outer
def with_buffer(lists: Lists) -> Sorted:
    """The lists with the buffer merged in, and what is out of date dropped. The buffer is then empty."""
    main, buffer, buffered = lists.main, lists.buffer, lists.meta[0].buffered
    size = main.stream.size + buffered
    merged = Sorted(np.empty(size, np.int64), np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64))
    i, j, n = 0, 0, 0
    while i < main.stream.size or j < buffered:
        from_buffer = i == main.stream.size or (j < buffered and _before(buffer.stream[j], buffer.value[j], main, i))
        source, place = (buffer, j) if from_buffer else (main, i)
        if from_buffer:
            j += 1
        else:
            i += 1
        cell = source.cell[place]
        if source.stamp[place] == lists.stamp[cell]:
            merged.stream[n], merged.value[n] = source.stream[place], source.value[place]
            merged.cell[n], merged.stamp[n] = cell, source.stamp[place]
            n += 1
    lists.meta[0].buffered = 0
    return Sorted(merged.stream[:n].copy(), merged.value[:n].copy(), merged.cell[:n].copy(), merged.stamp[:n].copy())


@in_place
def note(lists: Lists, events: Events, i: int) -> None:
    """A cell has a new value, or is gone. Wants room in the buffer."""
    cell, stream, value, meta = events.cell[i], events.stream[i], events.value[i], lists.meta[0]
    meta.cells = max(meta.cells, cell + 1)
    lists.stamp[cell] += 1
    lists.owner[cell] = events.slot[i]
    if np.isnan(value):
        return
    buffer, j = lists.buffer, meta.buffered
    while j > 0 and _before(stream, value, buffer, j - 1):
        buffer.stream[j], buffer.value[j] = buffer.stream[j - 1], buffer.value[j - 1]
        buffer.cell[j], buffer.stamp[j] = buffer.cell[j - 1], buffer.stamp[j - 1]
        j -= 1
    buffer.stream[j], buffer.value[j], buffer.cell[j], buffer.stamp[j] = stream, value, cell, lists.stamp[cell]
    meta.buffered += 1


@in_place
def _skip(entries: Sorted, place: int, stop: int, stamp: Ints) -> int:
    """The next entry that is up to date."""
    while place < stop and entries.stamp[place] != stamp[entries.cell[place]]:
        place += 1
    return place


@in_place
def threshold(head: Floats, spec: Spec) -> float:
    """The best score that an object can have which no list has shown yet; ``head``: the next value of each list."""
    low = -np.inf if spec.how == MAX else spec.low
    bound, size, total = 0.0, 0.0, 1.0
    least, most = np.inf, -np.inf
    for s in range(head.size):
        value = max(head[s], low)
        bound += value
        size += abs(value)
        total *= value
        least, most = min(least, value), max(most, value)
    if spec.how == MAX:
        return most
    if spec.how == MIN:
        return least if head.size >= spec.width else min(least, spec.low)
    if spec.how == PRODUCT:
        return total * (1 + MARGIN) if head.size >= spec.width else np.inf
    bound += MARGIN * size
    return bound / spec.width if spec.how == MEAN else bound


@outer
def threshold_algorithm(lists: Lists, spec: Spec, score: Floats, alive: Ints, wanted: int) -> tuple[Ints, float]:
    """At least ``wanted`` objects, all that score more than the bar that is returned; -inf: there are no others.

    Sorted access goes round the lists; the score of an object that one of them shows is at hand by random access.
    """
    main, buffer, stamp, used = lists.main, lists.buffer, lists.stamp, lists.meta[0].buffered
    streams = 0
    if main.stream.size:
        streams = main.stream[-1] + 1
    if used:
        streams = max(streams, buffer.stream[used - 1] + 1)
    bounds = np.arange(streams + 1)
    left, right = np.searchsorted(main.stream, bounds), np.searchsorted(buffer.stream[:used], bounds)
    at, along = left[:-1].copy(), right[:-1].copy()
    head = np.empty(streams)
    seen = np.zeros(alive.size, np.bool_)
    found, count, turn, ask = np.empty(alive.size, np.int64), 0, 0, wanted
    while True:
        going = False
        for s in range(streams):
            at[s] = _skip(main, at[s], left[s + 1], stamp)
            along[s] = _skip(buffer, along[s], right[s + 1], stamp)
            a = main.value[at[s]] if at[s] < left[s + 1] else -np.inf
            b = buffer.value[along[s]] if along[s] < right[s + 1] else -np.inf
            head[s] = max(a, b)
            if at[s] == left[s + 1] and along[s] == right[s + 1]:
                continue
            going = True
            from_main = along[s] == right[s + 1] or (at[s] < left[s + 1] and a >= b)
            slot = lists.owner[main.cell[at[s]] if from_main else buffer.cell[along[s]]]
            if from_main:
                at[s] += 1
            else:
                along[s] += 1
            if not seen[slot] and alive[slot] > 0:
                seen[slot] = True
                found[count] = slot
                count += 1
        if not going:
            return found[:count], -np.inf
        turn += 1
        if count >= ask:  # now and then: how many are above the threshold
            bar = threshold(head, spec)
            above = found[:count][score[found[:count]] > bar]
            if above.size >= wanted:
                return above, bar
            ask = count + max(16, count // 4)

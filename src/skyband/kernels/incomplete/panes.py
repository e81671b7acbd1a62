"""Windows as differences of panes: what enters is added to the sums of its groups, what leaves is taken away."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.incomplete.exact import add
from skyband.kernels.incomplete.ranking import k_best
from skyband.kernels.jit import inner, outer
from skyband.kernels.output import Output, emit, no_output

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Partials(NamedTuple):
    """What single rows, or all rows of a group in a pane, add up to: ``hi + lo``; and the newest of them."""

    group: Ints
    pane: Ints
    hi: Floats
    lo: Floats
    time: Ints
    number: Ints


class Groups(NamedTuple):
    """The sums of the panes that are in the window, by group."""

    key: Ints  # the partition; -1: nothing is known of the group
    hi: Floats
    lo: Floats
    parts: Ints  # partial sums in the window; 0: the group is not in it
    time: Ints  # of the newest row
    number: Ints
    lossy: Ints  # an addition was not exact: to be computed anew


class Spec(NamedTuple):
    """What is asked for."""

    k: int
    ties: bool
    extent: int
    slide: int
    pane: int
    divisor: float  # of every sum; 1 unless a mean is asked for


class Due(NamedTuple):
    """The windows to close: all ends after ``closed`` up to ``frontier``, both by partition."""

    closed: Ints
    frontier: Ints
    offset: Ints  # count windows: their ends in ``end``, by partition
    end: Ints
    trigger: Ints


@outer
def reduce(parts: Partials, place: Ints, size: int) -> Partials:
    """Adds up the partial sums that share a place in the result."""
    group, pane = np.empty(size, np.int64), np.empty(size, np.int64)
    hi, lo = np.zeros(size), np.zeros(size)
    time, number = np.empty(size, np.int64), np.full(size, -1)
    for i in range(place.size):
        p = place[i]
        group[p], pane[p] = parts.group[i], parts.pane[i]
        hi[p], lo[p], _ = add(hi[p], lo[p], parts.hi[i], parts.lo[i])
        if number[p] < 0 or parts.time[i] > time[p] or (parts.time[i] == time[p] and parts.number[i] > number[p]):
            time[p], number[p] = parts.time[i], parts.number[i]
    return Partials(group, pane, hi, lo, time, number)


@inner
def _enter(groups: Groups, parts: Partials, i: int) -> None:
    g = parts.group[i]
    groups.hi[g], groups.lo[g], exact = add(groups.hi[g], groups.lo[g], parts.hi[i], parts.lo[i])
    if not exact:
        groups.lossy[g] = 1
    if groups.parts[g] == 0 or parts.time[i] > groups.time[g] or (
        parts.time[i] == groups.time[g] and parts.number[i] > groups.number[g]
    ):  # fmt: skip
        groups.time[g], groups.number[g] = parts.time[i], parts.number[i]
    groups.parts[g] += 1


@inner
def _leave(groups: Groups, parts: Partials, i: int) -> None:
    g = parts.group[i]
    groups.parts[g] -= 1
    if groups.parts[g] == 0:
        groups.hi[g], groups.lo[g], groups.lossy[g] = 0.0, 0.0, 0
        return
    groups.hi[g], groups.lo[g], exact = add(groups.hi[g], groups.lo[g], -parts.hi[i], -parts.lo[i])
    if not exact:
        groups.lossy[g] = 1


@inner
def _drop(groups: Groups, parts: Partials, first: int, front: int, start: int, pane: int) -> int:
    """Takes the panes before ``start`` away; returns the first that stays."""
    while first < front and parts.pane[first] * pane < start:
        _leave(groups, parts, first)
        first += 1
    return first


@inner
def _anew(groups: Groups, parts: Partials, first: int, last: int) -> None:
    """Adds up anew the groups with a sum that lost something, from the panes that are in the window."""
    for i in range(first, last):
        g = parts.group[i]
        if groups.lossy[g] == 1:
            groups.hi[g], groups.lo[g], groups.lossy[g] = 0.0, 0.0, 2
    for i in range(first, last):
        g = parts.group[i]
        if groups.lossy[g] >= 2:
            groups.hi[g], groups.lo[g], exact = add(groups.hi[g], groups.lo[g], parts.hi[i], parts.lo[i])
            if not exact:
                groups.lossy[g] = 3  # amounts too far apart for 106 bits: anew again after the next change
    for i in range(first, last):
        g = parts.group[i]
        if groups.lossy[g] >= 2:
            groups.lossy[g] -= 2


@inner
def _rank(out: Output, groups: Groups, members: Ints, spec: Spec, key: int, end: int, trigger: int) -> Output:
    live = members[groups.parts[members] > 0]
    if not live.size:
        return out
    score = groups.hi[live] / spec.divisor
    best = k_best(score, groups.time[live], groups.number[live], spec.k, spec.ties)
    return emit(out, key, end, trigger, groups.number[live[best]], score[best])


@outer
def slide_panes(
    groups: Groups, parts: Partials, offset: Ints, members: Ints, start: Ints, spec: Spec, due: Due
) -> tuple[Output, Ints]:
    """Closes what is due; returns the rankings, and of each partition where the partial sums begin that stay.

    ``parts`` are in the order of partition and pane, those of partition ``key`` at ``[offset[key] : offset[key + 1]]``;
    its groups are ``members[start[key] : start[key + 1]]``.
    """
    out, first = no_output(), offset[:-1].copy()
    for key in range(first.size):
        begin, stop = offset[key], offset[key + 1]
        mine = members[start[key] : start[key + 1]]
        closed = due.closed[key] // spec.slide * spec.slide
        front = begin + np.searchsorted(parts.pane[begin:stop], closed // spec.pane)  # the first not in the sums yet
        listed = due.offset[key] if due.offset.size else 0
        end = closed + spec.slide
        while end <= due.frontier[key]:
            first[key] = _drop(groups, parts, first[key], front, end - spec.extent, spec.pane)
            if first[key] == front:  # nothing in the window: on to the next that holds something
                if front == stop:
                    break
                following = (parts.pane[front] * spec.pane // spec.slide + 1) * spec.slide
                end = max(end, following)
                if end > due.frontier[key]:
                    break
            lossy = False
            while front < stop and (parts.pane[front] + 1) * spec.pane <= end:
                _enter(groups, parts, front)
                front += 1
            for g in mine:
                lossy |= groups.lossy[g] == 1
            if lossy:
                _anew(groups, parts, first[key], front)
            trigger = 0
            if due.offset.size:
                while due.end[listed] < end:
                    listed += 1
                trigger = due.trigger[listed]
            out = _rank(out, groups, mine, spec, key, end, trigger)
            end += spec.slide
        # What no later window needs. A count window is over only with the first object after it.
        following = (due.frontier[key] - (due.offset.size > 0)) // spec.slide * spec.slide + spec.slide
        first[key] = _drop(groups, parts, first[key], front, following - spec.extent, spec.pane)
    return out, first

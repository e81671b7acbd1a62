"""The predicted top k of every window, each in a list of its own. See :mod:`skyband.objects.pretopk`."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skyband.kernels.order import better
from skyband.kernels.output import Output, emit, no_output

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Predicted(NamedTuple):
    """Lists, best first, of the windows that a row can be in: slot ``end // slide % windows``, ``width`` entries each.

    ``meta`` holds the ends of the windows that are closed next and emptied next, and the newest position.
    """

    size: Ints
    score: Floats
    time: Ints
    number: Ints
    meta: Ints


class Spec(NamedTuple):
    k: int
    ties: bool
    extent: int
    slide: int
    time: bool


@njit(cache=True)
def _widen(lists: Predicted) -> Predicted:
    slots = lists.size.size
    old = lists.score.size // slots
    new = 2 * old
    score, time, number = np.empty(slots * new), np.empty(slots * new, np.int64), np.empty(slots * new, np.int64)
    for slot in range(slots):
        for i in range(lists.size[slot]):
            score[slot * new + i] = lists.score[slot * old + i]
            time[slot * new + i] = lists.time[slot * old + i]
            number[slot * new + i] = lists.number[slot * old + i]
    return Predicted(lists.size, score, time, number, lists.meta)


@njit(cache=True)
def _insert(lists: Predicted, spec: Spec, slot: int, row: tuple[float, int, int]) -> Predicted:
    """Into one predicted top k, dropping what falls out of it."""
    score, time, number = row
    size = lists.size[slot]
    width = lists.score.size // lists.size.size
    if size == width:
        last = slot * width + size - 1
        if size >= spec.k and (
            score < lists.score[last]
            if spec.ties
            else not better(score, time, number, lists.score[last], lists.time[last], lists.number[last])
        ):
            return lists
        lists = _widen(lists)
        width *= 2
    base = slot * width
    i = size
    while i > 0 and better(
        score, time, number, lists.score[base + i - 1], lists.time[base + i - 1], lists.number[base + i - 1]
    ):
        lists.score[base + i] = lists.score[base + i - 1]
        lists.time[base + i] = lists.time[base + i - 1]
        lists.number[base + i] = lists.number[base + i - 1]
        i -= 1
    lists.score[base + i], lists.time[base + i], lists.number[base + i] = score, time, number
    size += 1
    while size > spec.k and not (spec.ties and lists.score[base + size - 1] == lists.score[base + spec.k - 1]):
        size -= 1
    lists.size[slot] = size
    return lists


@njit(cache=True)
def _purge(lists: Predicted, spec: Spec, bound: int) -> None:
    """Empties the lists of the windows that end at ``bound`` or before."""
    slots = lists.size.size
    for _ in range(slots):
        end = lists.meta[1]
        if end > bound:
            return
        lists.size[end // spec.slide % slots] = 0
        lists.meta[1] = end + spec.slide
    lists.meta[1] = max(lists.meta[1], bound // spec.slide * spec.slide + spec.slide)


@njit(cache=True)
def _close(lists: Predicted, spec: Spec, out: Output, bound: int, trigger: int) -> Output:
    """Emits the windows that end at ``bound`` or before; empty ones are passed over."""
    slots = lists.size.size
    width = lists.score.size // slots
    for _ in range(slots):
        end = lists.meta[0]
        if end > bound:
            return out
        _purge(lists, spec, end - slots * spec.slide)  # the slot may still hold the window that had it before
        slot = end // spec.slide % slots
        size = lists.size[slot]
        if size:
            rows = slice(slot * width, slot * width + size)
            out = emit(out, 0, end, trigger, lists.number[rows], lists.score[rows])
        lists.meta[0] = end + spec.slide
    # No list is left that could hold anything.
    lists.meta[0] = max(lists.meta[0], bound // spec.slide * spec.slide + spec.slide)
    return out


@njit(cache=True)
def predict(lists: Predicted, score: Floats, time: Ints, number: Ints, frontier: int, spec: Spec
            ) -> tuple[Predicted, Output]:  # fmt: skip
    """Adds rows, in the order of their time, to every window they are in, and closes windows on the way."""
    out = no_output(1024)
    slots = lists.size.size
    for i in range(score.size):
        _purge(lists, spec, lists.meta[0] - spec.slide)  # what is closed already is not the present window any more
        out = _close(lists, spec, out, time[i], number[i])
        _purge(lists, spec, time[i])
        end = time[i] // spec.slide * spec.slide + spec.slide
        while end - spec.extent <= time[i]:
            lists = _insert(lists, spec, end // spec.slide % slots, (score[i], time[i], number[i]))
            end += spec.slide
        lists.meta[2] = max(lists.meta[2], time[i])
        if not spec.time:
            out = _close(lists, spec, out, time[i] + 1, number[i])
    if spec.time:
        out = _close(lists, spec, out, frontier, 0)
        _purge(lists, spec, frontier)
    return lists, out

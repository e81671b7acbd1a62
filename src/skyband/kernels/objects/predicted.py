"""The predicted top k of every window, each in a list of its own. See :mod:`skyband.algorithms.objects.pretopk`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.common.order import better
from skyband.kernels.common.output import Output, emit, no_output

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Predicted(NamedTuple):
    """Lists, best first, of the windows that a row can be in: slot ``end // slide % windows``, ``width`` entries each.

    ``meta`` holds the ends of the windows that are closed next and emptied next, and the newest position.
    """

    size: Ints
    score: Floats
    position: Ints
    arrival: Ints
    meta: Ints


class Spec(NamedTuple):
    k: int
    ties: bool
    extent: int
    slide: int
    position: bool


@inner
def _widen(lists: Predicted) -> Predicted:
    slots = lists.size.size
    old = lists.score.size // slots
    new = 2 * old
    score, position, arrival = np.empty(slots * new), np.empty(slots * new, np.int64), np.empty(slots * new, np.int64)
    for slot in range(slots):
        for i in range(lists.size[slot]):
            score[slot * new + i] = lists.score[slot * old + i]
            position[slot * new + i] = lists.position[slot * old + i]
            arrival[slot * new + i] = lists.arrival[slot * old + i]
    return Predicted(lists.size, score, position, arrival, lists.meta)


@inner
def _refuses(lists: Predicted, spec: Spec, slot: int, score: float, position: int, arrival: int) -> bool:
    """Whether a predicted top k is full, and of objects that are better."""
    size = lists.size[slot]
    if size < spec.k:
        return False
    last = slot * (lists.score.size // lists.size.size) + size - 1
    if spec.ties:
        return bool(score < lists.score[last])
    return not better(score, position, arrival, lists.score[last], lists.position[last], lists.arrival[last])


@inner
def _insert(lists: Predicted, spec: Spec, slot: int, score: float, position: int, arrival: int) -> None:
    """Into one predicted top k, which has room for one more, dropping what falls out of it."""
    size, base = lists.size[slot], slot * (lists.score.size // lists.size.size)
    i = base + size
    while i > base and better(
        score, position, arrival, lists.score[i - 1], lists.position[i - 1], lists.arrival[i - 1]
    ):
        lists.score[i], lists.position[i], lists.arrival[i] = (
            lists.score[i - 1],
            lists.position[i - 1],
            lists.arrival[i - 1],
        )
        i -= 1
    lists.score[i], lists.position[i], lists.arrival[i] = score, position, arrival
    size += 1
    while size > spec.k and not (spec.ties and lists.score[base + size - 1] == lists.score[base + spec.k - 1]):
        size -= 1
    lists.size[slot] = size


@inner
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


@inner
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
            out = emit(out, 0, end, trigger, lists.arrival[rows], lists.score[rows])
        lists.meta[0] = end + spec.slide
    # No list is left that could hold anything.
    lists.meta[0] = max(lists.meta[0], bound // spec.slide * spec.slide + spec.slide)
    return out


@outer
def predict(lists: Predicted, score: Floats, position: Ints, arrival: Ints, frontier: int, spec: Spec
            ) -> tuple[Predicted, Output]:  # fmt: skip
    """Adds rows, in the order of their time, to every window they are in, and closes windows on the way."""
    out = no_output(1024)
    slots, meta = lists.size.size, lists.meta
    for i in range(score.size):
        if meta[0] <= position[i] or meta[1] <= max(position[i], meta[0] - spec.slide):
            _purge(lists, spec, meta[0] - spec.slide)  # what is closed already is not the present window any more
            out = _close(lists, spec, out, position[i], arrival[i])
            _purge(lists, spec, position[i])
        first, last = position[i] // spec.slide + 1, (position[i] + spec.extent) // spec.slide
        slot = last % slots
        for _ in range(first, last + 1):  # from the youngest window back
            if _refuses(lists, spec, slot, score[i], position[i], arrival[i]):
                break
            if lists.size[slot] == lists.score.size // slots:
                lists = _widen(lists)
            _insert(lists, spec, slot, score[i], position[i], arrival[i])
            slot = slot - 1 if slot else slots - 1
        meta[2] = max(meta[2], position[i])
        if not spec.position and meta[0] <= position[i] + 1:
            out = _close(lists, spec, out, position[i] + 1, arrival[i])
    if spec.position:
        out = _close(lists, spec, out, frontier, 0)
        _purge(lists, spec, frontier)
    return lists, out

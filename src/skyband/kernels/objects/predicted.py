"""The predicted top k of every window, each in a list of its own. See :mod:`skyband.algorithms.objects.pretopk`."""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import inner, outer
from skyband.kernels.common.order import better
from skyband.kernels.common.output import Output, emit
from skyband.kernels.objects.minimal import Asked
from skyband.storage.blocks import ARRIVAL, Floats, Ints, Record, block, column, scalars


class PredictedMeta(NamedTuple):
    """Where the windows stand."""

    closes: int = 0  # the end of the window that closes next
    empties: int = 0  # the end of the window whose list is emptied next
    newest: int = 0  # the newest position
    objects: int = 0  # different ones in the lists
    first: int = 0  # the first position of the last batch


@block(version=1)
class Predicted(NamedTuple):
    """Lists, best first, of the windows that a row can be in: that of the window ``end`` is ``end // slide % windows``.

    An object is in the list of the youngest window that holds it, if it is in any: the k that keep it out of there are
    in its older windows too. So that is where objects are counted.
    """

    held: Annotated[Ints, column("windows")]
    score: Annotated[Floats, column("places", wide=True)]
    position: Annotated[Ints, column("places", wide=True)]
    arrival: Annotated[Ints, column("places", wide=True, holds=ARRIVAL, fill=-1)]
    meta: Annotated[Record, scalars(PredictedMeta)]


@inner
def _widen(lists: Predicted) -> Predicted:
    """Twice as many places in every list."""
    slots, width = lists.score.shape
    score, position = np.zeros((slots, 2 * width)), np.zeros((slots, 2 * width), np.int64)
    arrival = np.full((slots, 2 * width), -1)
    score[:, :width], position[:, :width], arrival[:, :width] = lists.score, lists.position, lists.arrival
    return Predicted(lists.held, score, position, arrival, lists.meta)


@inner
def _counts(lists: Predicted, asked: Asked, slot: int, i: int) -> bool:
    """Whether an entry is counted: the list is that of the object's youngest window."""
    return bool((lists.position[slot, i] + asked.extent) // asked.slide % lists.held.size == slot)


@inner
def _refuses(lists: Predicted, asked: Asked, slot: int, score: float, position: int, arrival: int) -> bool:
    """Whether a predicted top k is full, and of objects that are better."""
    last = lists.held[slot] - 1
    if last + 1 < asked.k:
        return False
    if asked.ties:
        return bool(score < lists.score[slot, last])
    return not better(
        score, position, arrival, lists.score[slot, last], lists.position[slot, last], lists.arrival[slot, last]
    )


@inner
def _insert(
    lists: Predicted, asked: Asked, slot: int, score: float, position: int, arrival: int, youngest: bool
) -> None:
    """Into one predicted top k, which has room for one more, dropping what falls out of it."""
    scores, positions, arrivals = lists.score[slot], lists.position[slot], lists.arrival[slot]
    size = lists.held[slot]
    i = size
    while i > 0 and better(score, position, arrival, scores[i - 1], positions[i - 1], arrivals[i - 1]):
        scores[i], positions[i], arrivals[i] = scores[i - 1], positions[i - 1], arrivals[i - 1]
        i -= 1
    scores[i], positions[i], arrivals[i] = score, position, arrival
    meta = lists.meta[0]
    meta.objects += youngest
    size += 1
    while size > asked.k and not (asked.ties and scores[size - 1] == scores[asked.k - 1]):
        size -= 1
        meta.objects -= _counts(lists, asked, slot, size)
    lists.held[slot] = size


@inner
def _purge(lists: Predicted, asked: Asked, bound: int) -> None:
    """Empties the lists of the windows that end at ``bound`` or before."""
    slots, meta = lists.held.size, lists.meta[0]
    for _ in range(slots):
        end = meta.empties
        if end > bound:
            return
        slot = end // asked.slide % slots
        for i in range(lists.held[slot]):
            meta.objects -= _counts(lists, asked, slot, i)
        lists.held[slot] = 0
        meta.empties = end + asked.slide
    meta.empties = max(meta.empties, bound // asked.slide * asked.slide + asked.slide)


@inner
def _close(lists: Predicted, asked: Asked, out: Output, bound: int, trigger: int) -> Output:
    """Emits the windows that end at ``bound`` or before; empty ones are passed over."""
    slots, meta = lists.held.size, lists.meta[0]
    for _ in range(slots):
        end = meta.closes
        if end > bound:
            return out
        _purge(lists, asked, end - slots * asked.slide)  # the slot may still hold the window that had it before
        slot = end // asked.slide % slots
        size = lists.held[slot]
        if size:
            out = emit(out, 0, end, trigger, lists.arrival[slot, :size], lists.score[slot, :size])
        meta.closes = end + asked.slide
    # No list is left that could hold anything.
    meta.closes = max(meta.closes, bound // asked.slide * asked.slide + asked.slide)
    return out


@outer
def predict(
    lists: Predicted, score: Floats, position: Ints, arrival: Ints, frontier: int, asked: Asked, out: Output
) -> tuple[Predicted, Output]:
    """Adds rows, in the order of their positions, to every window they are in, and closes windows on the way."""
    slots, meta = lists.held.size, lists.meta[0]
    meta.first = position[0] if position.size else frontier
    for i in range(score.size):
        if meta.closes <= position[i] or meta.empties <= max(position[i], meta.closes - asked.slide):
            _purge(lists, asked, meta.closes - asked.slide)  # what is closed already is not the present window any more
            out = _close(lists, asked, out, position[i], arrival[i])
            _purge(lists, asked, position[i])
        first, last = position[i] // asked.slide + 1, (position[i] + asked.extent) // asked.slide
        slot = last % slots
        for window in range(last, first - 1, -1):
            if _refuses(lists, asked, slot, score[i], position[i], arrival[i]):
                break
            if lists.held[slot] == lists.score.shape[1]:
                lists = _widen(lists)
            _insert(lists, asked, slot, score[i], position[i], arrival[i], window == last)
            slot = slot - 1 if slot else slots - 1
        meta.newest = max(meta.newest, position[i])
        if not asked.timed and meta.closes <= position[i] + 1:
            out = _close(lists, asked, out, position[i] + 1, arrival[i])
    if asked.timed:
        out = _close(lists, asked, out, frontier, 0)
        _purge(lists, asked, frontier)
    return lists, out

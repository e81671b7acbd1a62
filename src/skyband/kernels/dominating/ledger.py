"""Points whose exact scores are kept up to date, the best of them in rank order."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inner
from skyband.kernels.common.order import better
from skyband.kernels.dominating.space import NUMBER, PLACE, TIME, Space, point

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SIZE, TOP, GONE, SHOWN, DIMENSIONS, CHANGES = range(6)  # of ``Ledger.meta``
SCORE, WHEN, WHO, SLOT, SHOWS, LISTED, RANK = range(7)  # rows of ``Ledger.data``


class Ledger(NamedTuple):
    """``meta[SIZE]`` entries. Row RANK of ``data`` lists the ``meta[TOP]`` best, best first, once they are settled.

    The coordinates of an entry are kept here too, side by side, so that what an arriving point means for all of them is
    a few scans. SHOWS is the score with which an entry is shown as part of the answer, -1 if it is not; ``gone`` tells
    of those that were shown and left the ledger since.
    """

    x: Floats  # by dimension and entry
    data: Ints  # by entry: score, time, arrival number, slot, as what it is shown, whether it is listed
    entry: Ints  # by slot: the entry, or -1
    gone: Ints  # score shown, time, arrival number
    meta: Ints


def empty_ledger(d: int) -> Ledger:
    """A ledger without entries."""
    none = np.empty((7, 0), np.int64)
    return Ledger(np.empty(0), none, np.full(1, -1), none[:3].copy(), np.array([0, 0, 0, 0, d, 0]))


def with_slots(ledger: Ledger, slots: int) -> Ledger:
    """The ledger for a space of so many slots, none of which it lists."""
    return ledger._replace(entry=np.full(slots, -1))


@inner
def wider(table: Ints, room: int) -> Ints:
    """The table with more columns."""
    wide = np.zeros((table.shape[0], room), np.int64)
    for r in range(table.shape[0]):
        for i in range(table.shape[1]):
            wide[r, i] = table[r, i]
    return wide


@inner
def _grown(ledger: Ledger) -> Ledger:
    """The ledger with room for more entries."""
    old, d = ledger.data.shape[1], ledger.meta[DIMENSIONS]
    room = 2 * old + 16
    x = np.zeros(d * room)
    for j in range(d):
        for i in range(old):
            x[j * room + i] = ledger.x[j * old + i]
    return Ledger(x, wider(ledger.data, room), ledger.entry, ledger.gone, ledger.meta)


@inner
def add(ledger: Ledger, space: Space, slot: int, score: int) -> Ledger:
    """Enters the point of a slot."""
    if ledger.meta[SIZE] == ledger.data.shape[1]:
        ledger = _grown(ledger)
    i, room = ledger.meta[SIZE], ledger.data.shape[1]
    ledger.meta[SIZE] += 1
    for j in range(ledger.meta[DIMENSIONS]):
        ledger.x[j * room + i] = space.x[j * space.owner.size + space.slots[PLACE, slot]]
    data = ledger.data
    data[SCORE, i], data[WHEN, i], data[WHO, i] = score, space.slots[TIME, slot], space.slots[NUMBER, slot]
    data[SLOT, i], data[SHOWS, i], data[LISTED, i] = slot, -1, 0
    ledger.entry[slot] = i
    return ledger


@inner
def remove(ledger: Ledger, i: int) -> Ledger:
    """Strikes out entry i; the last one takes its place."""
    if ledger.data[SHOWS, i] >= 0:
        ledger = _note_gone(ledger, i)
    meta, room = ledger.meta, ledger.data.shape[1]
    meta[SIZE] -= 1
    last = meta[SIZE]
    if ledger.data[LISTED, i]:
        _unlist(ledger, i)
    if ledger.data[LISTED, last]:
        ledger.data[RANK, _rank_of(ledger, last)] = i
    ledger.entry[ledger.data[SLOT, i]] = -1
    if last != i:
        for j in range(meta[DIMENSIONS]):
            ledger.x[j * room + i] = ledger.x[j * room + last]
        for r in range(RANK):
            ledger.data[r, i] = ledger.data[r, last]
        ledger.entry[ledger.data[SLOT, i]] = i
    return ledger


@inner
def _note_gone(ledger: Ledger, i: int) -> Ledger:
    g = ledger.meta[GONE]
    if g == ledger.gone.shape[1]:
        ledger = Ledger(ledger.x, ledger.data, ledger.entry, wider(ledger.gone, 2 * g + 8), ledger.meta)
    ledger.gone[0, g], ledger.gone[1, g] = ledger.data[SHOWS, i], ledger.data[WHEN, i]
    ledger.gone[2, g] = ledger.data[WHO, i]
    ledger.meta[GONE] += 1
    ledger.meta[SHOWN] -= 1
    return ledger


@inner
def _rank_of(ledger: Ledger, i: int) -> int:
    r = 0
    while ledger.data[RANK, r] != i:
        r += 1
    return r


@inner
def _unlist(ledger: Ledger, i: int) -> None:
    ledger.data[LISTED, i] = 0
    for r in range(_rank_of(ledger, i), ledger.meta[TOP] - 1):
        ledger.data[RANK, r] = ledger.data[RANK, r + 1]
    ledger.meta[TOP] -= 1
    ledger.meta[CHANGES] += 1  # who is listed has changed


@inner
def account(ledger: Ledger, p: Floats, by: int, work: Ints) -> None:
    """A point came (``by`` = 1) or went (-1): the scores of the entries that dominate it."""
    size, room = ledger.meta[SIZE], ledger.data.shape[1]
    below, above = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    for j in range(p.size):
        value, column = p[j], ledger.x[j * room : j * room + size]
        for i in range(size):
            below[i] &= column[i] <= value
            above[i] |= column[i] < value
    score = ledger.data[SCORE]
    for i in range(size):
        score[i] += by * np.int64(below[i] & above[i])
    work[0] += size * p.size


@inner
def twin(ledger: Ledger, p: Floats) -> int:
    """An entry that equals p, and so has its score, or -1."""
    room = ledger.data.shape[1]
    for i in range(ledger.meta[SIZE]):
        j = 0
        while j < p.size and ledger.x[j * room + i] == p[j]:
            j += 1
        if j == p.size:
            return i
    return -1


@inner
def beats(ledger: Ledger, a: int, b: int) -> bool:
    """Whether entry a ranks before entry b."""
    data = ledger.data
    return better(data[SCORE, a], data[WHEN, a], data[WHO, a], data[SCORE, b], data[WHEN, b], data[WHO, b])


@inner
def settle(ledger: Ledger, k: int, ties: bool) -> None:
    """Brings the list of the k best (with ``ties`` all that tie with the k-th) up to date."""
    meta, rank = ledger.meta, ledger.data[RANK]
    _sort(ledger)
    if meta[TOP] < min(k, meta[SIZE]):
        _refill(ledger, k)
    top = meta[TOP]
    if top < meta[SIZE]:
        data, bar = ledger.data, rank[k - 1]
        least, score, listed = data[SCORE, bar], data[SCORE], data[LISTED]
        for i in range(meta[SIZE]):
            if score[i] >= least and not listed[i] and (score[i] > least or ties or beats(ledger, i, bar)):
                rank[meta[TOP]], listed[i] = i, 1
                meta[TOP] += 1
    if meta[TOP] > top:
        meta[CHANGES] += 1
        _sort(ledger)
    while meta[TOP] > k and not (ties and ledger.data[SCORE, rank[meta[TOP] - 1]] == ledger.data[SCORE, rank[k - 1]]):
        meta[TOP] -= 1
        ledger.data[LISTED, rank[meta[TOP]]] = 0


@inner
def _refill(ledger: Ledger, k: int) -> None:
    """Lists all that may be among the k best, where the list is too short to tell."""
    meta = ledger.meta
    least = -1
    if meta[SIZE] > 4 * k:
        least = kth(ledger.data[SCORE, : meta[SIZE]].copy(), k)
    for i in range(meta[SIZE]):
        if ledger.data[SCORE, i] >= least and not ledger.data[LISTED, i]:
            ledger.data[RANK, meta[TOP]], ledger.data[LISTED, i] = i, 1
            meta[TOP] += 1
    meta[CHANGES] += 1
    _sort(ledger)


@inner
def kth(values: Ints, k: int) -> int:
    """The k-th largest; changes the order of the values."""
    low, high = 0, values.size - 1
    while low < high:
        pivot, i, j = values[(low + high) // 2], low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    return int(values[k - 1])


@inner
def _sort(ledger: Ledger) -> None:
    """Puts the list in order: by insertion, as most of it is, or by merging if that takes too long."""
    rank, top = ledger.data[RANK], ledger.meta[TOP]
    moves = 0
    for r in range(1, top):
        i, at = rank[r], r
        while at > 0 and beats(ledger, i, rank[at - 1]):
            rank[at] = rank[at - 1]
            at -= 1
        rank[at] = i
        moves += r - at
        if moves > 8 * top + 64:
            _merge_sort(ledger)
            return


@inner
def _merge_sort(ledger: Ledger) -> None:
    top = ledger.meta[TOP]
    here, there = ledger.data[RANK, :top].copy(), np.empty(top, np.int64)
    width = 1
    while width < top:
        for low in range(0, top, 2 * width):
            middle, high = min(low + width, top), min(low + 2 * width, top)
            a, b = low, middle
            for at in range(low, high):
                if a < middle and (b >= high or beats(ledger, here[a], here[b])):
                    there[at] = here[a]
                    a += 1
                else:
                    there[at] = here[b]
                    b += 1
        here, there = there, here
        width *= 2
    for r in range(top):
        ledger.data[RANK, r] = here[r]


@inner
def strike(ledger: Ledger, space: Space, slot: int, p: Floats) -> Ledger:
    """Copies the point of a slot that is about to go to ``p``, and strikes it out if it is an entry."""
    point(space, slot, p)
    return remove(ledger, ledger.entry[slot]) if ledger.entry[slot] >= 0 else ledger

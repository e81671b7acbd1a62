"""The ledger: points whose exact scores are kept up to date, the best of them in rank order."""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inlined, inner
from skyband.kernels.common.order import better
from skyband.kernels.common.output import grow
from skyband.kernels.dominating.space import Space, point
from skyband.storage.blocks import ARRIVAL, Bytes, Floats, Ints, Record, block, column, empty, resized, scalars, taken


class LedgerMeta(NamedTuple):
    """How much of a ledger is in use, and how it stands."""

    held: int = 0  # entries
    top: int = 0  # entries in the list of the best
    gone: int = 0  # points that were shown and left the ledger since the answer was told
    shown: int = 0  # entries that are shown
    changes: int = 0  # how often the list of the best has changed


@block(version=1)
class Ledger(NamedTuple):
    """The entries. The first of ``rank`` list the best of them, best first, once they are settled.

    The coordinates of an entry are kept here too, side by side, so that what an arriving point means for all of them is
    a few scans. What the answer shows may be older than the ledger: it is what was last told.
    """

    x: Annotated[Floats, column("entries", used="held", wide=True)]  # a row for each dimension
    score: Annotated[Ints, column("entries", used="held")]
    position: Annotated[Ints, column("entries", used="held")]
    arrival: Annotated[Ints, column("entries", used="held", holds=ARRIVAL)]
    slot: Annotated[Ints, column("entries", used="held")]
    shows: Annotated[Ints, column("entries", used="held")]  # the score that the answer shows of it, -1 if it is not in
    listed: Annotated[Bytes, column("entries", used="held")]  # whether it is in the list of the best
    rank: Annotated[Ints, column("entries", used="held")]  # a list: the best entries
    entry: Annotated[Ints, column("slots", fill=-1)]  # of the point in a slot, negative if it has none
    # Points that were shown and left the ledger since: none between batches, only room for them.
    gone_shows: Annotated[Ints, column("gone")]
    gone_position: Annotated[Ints, column("gone")]
    gone_arrival: Annotated[Ints, column("gone")]
    meta: Annotated[Record, scalars(LedgerMeta)]


def empty_ledger(d: int, slots: int = 1) -> Ledger:
    """A ledger without entries for a space of so many slots."""
    return resized(empty(Ledger, wide={"x": d}), "slots", slots)


def for_slots(ledger: Ledger, slots: int) -> Ledger:
    """The ledger for a space of so many slots, none of which it knows."""
    return resized(taken(ledger, "slots", slice(0)), "slots", slots)


@inner
def _roomy(ledger: Ledger) -> Ledger:
    """The ledger with room for more entries."""
    x, score = ledger.x, grow(ledger.score, 16)
    wide = np.empty((x.shape[0], score.size))
    for j in range(x.shape[0]):  # a slice of two dimensions would take seconds to compile
        for i in range(x.shape[1]):
            wide[j, i] = x[j, i]
    return Ledger(
        wide, score, grow(ledger.position, 16), grow(ledger.arrival, 16), grow(ledger.slot, 16), grow(ledger.shows, 16),
        grow(ledger.listed, 16), grow(ledger.rank, 16), ledger.entry, ledger.gone_shows, ledger.gone_position,
        ledger.gone_arrival, ledger.meta,
    )  # fmt: skip


@inner
def room_to_go(ledger: Ledger, shown: int) -> Ledger:
    """The ledger with room to tell of so many shown points that they are gone."""
    return Ledger(
        ledger.x, ledger.score, ledger.position, ledger.arrival, ledger.slot, ledger.shows, ledger.listed, ledger.rank,
        ledger.entry, grow(ledger.gone_shows, shown), grow(ledger.gone_position, shown),
        grow(ledger.gone_arrival, shown), ledger.meta,
    )  # fmt: skip


@inner
def add(ledger: Ledger, space: Space, slot: int, score: int) -> Ledger:
    """Enters the point of a slot; makes room if need be."""
    if ledger.meta[0].held == ledger.score.size:
        ledger = _roomy(ledger)
    enter(ledger, space, slot, score)
    return ledger


@in_place
def enter(ledger: Ledger, space: Space, slot: int, score: int) -> None:
    """Enters the point of a slot; there must be room."""
    i, slots = ledger.meta[0].held, space.slots
    ledger.meta[0].held = i + 1
    for j in range(ledger.x.shape[0]):
        ledger.x[j, i] = space.x[j, slots.place[slot]]
    ledger.score[i], ledger.position[i], ledger.arrival[i] = score, slots.position[slot], slots.arrival[slot]
    ledger.slot[i], ledger.shows[i], ledger.listed[i] = slot, -1, 0
    ledger.entry[slot] = i


@in_place
def remove(ledger: Ledger, i: int) -> None:
    """Strikes out entry i; the last one takes its place."""
    meta = ledger.meta[0]
    if ledger.shows[i] >= 0:
        _note_gone(ledger, i)
    meta.held -= 1
    last = meta.held
    if ledger.listed[i]:
        _unlist(ledger, i)
    if ledger.listed[last]:
        ledger.rank[_rank_of(ledger.rank, last)] = i
    ledger.entry[ledger.slot[i]] = -1
    if last != i:
        for j in range(ledger.x.shape[0]):
            ledger.x[j, i] = ledger.x[j, last]
        ledger.score[i], ledger.position[i], ledger.arrival[i] = (
            ledger.score[last], ledger.position[last], ledger.arrival[last],
        )  # fmt: skip
        ledger.slot[i], ledger.shows[i], ledger.listed[i] = ledger.slot[last], ledger.shows[last], ledger.listed[last]
        ledger.entry[ledger.slot[i]] = i


@in_place
def _note_gone(ledger: Ledger, i: int) -> None:
    meta = ledger.meta[0]
    g = meta.gone
    ledger.gone_shows[g], ledger.gone_position[g] = ledger.shows[i], ledger.position[i]
    ledger.gone_arrival[g] = ledger.arrival[i]
    meta.gone += 1
    meta.shown -= 1


@in_place
def _rank_of(rank: Ints, i: int) -> int:
    r = 0
    while rank[r] != i:
        r += 1
    return r


@in_place
def _unlist(ledger: Ledger, i: int) -> None:
    meta, rank = ledger.meta[0], ledger.rank
    ledger.listed[i] = 0
    for r in range(_rank_of(rank, i), meta.top - 1):
        rank[r] = rank[r + 1]
    meta.top -= 1
    meta.changes += 1


@inner
def account(x: Floats, score: Ints, p: Floats, by: int) -> None:
    """A point came (``by`` = 1) or went (-1): the scores of the entries that dominate it.

    ``x`` and ``score`` are those of the entries, ``score`` without the room beside it: two arrays rather than a ledger,
    since this is called twice an update.
    """
    below, above = np.ones(score.size, np.uint8), np.zeros(score.size, np.uint8)
    for j in range(p.size):
        value, values = p[j], x[j]
        for i in range(score.size):
            below[i] &= values[i] <= value
            above[i] |= values[i] < value
    for i in range(score.size):
        score[i] += by * np.int64(below[i] & above[i])


@in_place
def twin(ledger: Ledger, p: Floats) -> int:
    """An entry that equals p, and so has its score, or -1."""
    for i in range(ledger.meta[0].held):
        j = 0
        while j < p.size and ledger.x[j, i] == p[j]:
            j += 1
        if j == p.size:
            return i
    return -1


@in_place
def beats(ledger: Ledger, a: int, b: int) -> bool:
    """Whether entry a ranks before entry b."""
    return better(ledger.score[a], ledger.position[a], ledger.arrival[a],
                  ledger.score[b], ledger.position[b], ledger.arrival[b])  # fmt: skip


@inlined
def settle(ledger: Ledger, k: int, ties: bool) -> None:
    """Brings the list of the k best (with ``ties`` all that tie with the k-th) up to date."""
    if not _settled(ledger, k, ties):
        _settle(ledger, k, ties)


@in_place
def _settled(ledger: Ledger, k: int, ties: bool) -> bool:
    """Settles the top k in place if few entries have changed; False if it is left to :func:`_settle`."""
    if not _insertion_sort(ledger) or ledger.meta[0].top < min(k, ledger.meta[0].held):
        return False
    if _list_more(ledger, k, ties) and not _insertion_sort(ledger):
        return False
    _cut(ledger, k, ties)
    return True


@inner
def _settle(ledger: Ledger, k: int, ties: bool) -> None:
    """Settles the top k from all entries."""
    _sort(ledger)
    if ledger.meta[0].top < min(k, ledger.meta[0].held):
        _refill(ledger, k)
    if _list_more(ledger, k, ties):
        _sort(ledger)
    _cut(ledger, k, ties)


@in_place
def _list_more(ledger: Ledger, k: int, ties: bool) -> bool:
    """Appends what ranks before the k-th of the list, or is level with it, and is not there yet; whether it did."""
    meta, rank, score, listed = ledger.meta[0], ledger.rank, ledger.score, ledger.listed
    top, held = meta.top, meta.held
    if top == held:
        return False
    bar = rank[k - 1]
    least, end = score[bar], top
    for i in range(held):
        if score[i] >= least and not listed[i] and (score[i] > least or ties or beats(ledger, i, bar)):
            rank[end], listed[i] = i, 1
            end += 1
    meta.top = end
    meta.changes += end > top
    return bool(end > top)


@in_place
def _cut(ledger: Ledger, k: int, ties: bool) -> None:
    """Ends the list behind the k-th, or behind what ties with it."""
    meta, rank, score = ledger.meta[0], ledger.rank, ledger.score
    while meta.top > k and not (ties and score[rank[meta.top - 1]] == score[rank[k - 1]]):
        meta.top -= 1
        ledger.listed[rank[meta.top]] = 0


@inner
def _refill(ledger: Ledger, k: int) -> None:
    """Lists all that may be among the k best, where the list is too short to tell."""
    meta, rank = ledger.meta[0], ledger.rank
    least = -1
    if meta.held > 4 * k:
        least = kth(ledger.score[: meta.held].copy(), k)
    for i in range(meta.held):
        if ledger.score[i] >= least and not ledger.listed[i]:
            rank[meta.top], ledger.listed[i] = i, 1
            meta.top += 1
    meta.changes += 1
    _sort(ledger)


@in_place
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
    """Puts the list in order: by insertion, or by merging if that takes too long."""
    if not _insertion_sort(ledger):
        _merge_sort(ledger)


@in_place
def _insertion_sort(ledger: Ledger) -> bool:
    """Puts the list in order, as most of it is; gives up, and says so, if that takes too long."""
    rank, top = ledger.rank, ledger.meta[0].top
    moves = 0
    for r in range(1, top):
        i, at = rank[r], r
        while at > 0 and beats(ledger, i, rank[at - 1]):
            rank[at] = rank[at - 1]
            at -= 1
        rank[at] = i
        moves += r - at
        if moves > 8 * top + 64:
            return False
    return True


@inner
def _merge_sort(ledger: Ledger) -> None:
    top = ledger.meta[0].top
    here, there = ledger.rank[:top].copy(), np.empty(top, np.int64)
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
        ledger.rank[r] = here[r]


@in_place
def strike(ledger: Ledger, space: Space, slot: int, p: Floats) -> None:
    """Copies the point of a slot that is about to go to ``p``, and strikes it out if it is an entry."""
    point(space, slot, p)
    if ledger.entry[slot] >= 0:
        remove(ledger, ledger.entry[slot])


@in_place
def listed_score(ledger: Ledger, rank: int) -> int:
    """The score of the entry of that rank, the best one being 0; the list must reach so far."""
    return int(ledger.score[ledger.rank[rank]])

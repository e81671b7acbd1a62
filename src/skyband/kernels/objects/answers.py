"""The top-k lists of continuous queries (pairs, section 4.2)."""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.kernels.common.jit import inlined, inner
from skyband.kernels.common.order import better
from skyband.kernels.common.rows import Objects
from skyband.kernels.common.staircase import LATEST, Object, put, sift
from skyband.kernels.objects.log import Log, note
from skyband.storage.blocks import ARRIVAL, Floats, Ints, block, column, empty, resized


@block(version=1)
class Answers(NamedTuple):
    """A list for each query q, best first: ``held[q]`` objects from ``base[q]`` on, with room up to ``base[q + 1]``.

    ``oldest[q]`` is not after the oldest position in the list: while it is inside the window, nothing expires.
    """

    score: Annotated[Floats, column("objects")]
    position: Annotated[Ints, column("objects")]
    arrival: Annotated[Ints, column("objects", holds=ARRIVAL, fill=-1)]
    base: Annotated[Ints, column("bounds")]
    held: Annotated[Ints, column("queries")]
    oldest: Annotated[Ints, column("queries", fill=LATEST)]


def no_answers(queries: int) -> Answers:
    """Empty lists, with no room."""
    return resized(resized(empty(Answers), "bounds", queries + 1), "queries", queries)


def with_room(answers: Answers, room: Ints) -> Answers:
    """The same with so much room in each list."""
    base = np.zeros(room.size + 1, np.int64)
    np.cumsum(room, out=base[1:])
    if (base == answers.base).all():
        return answers
    wide = resized(resized(answers, "objects", 0), "objects", int(base[-1]))._replace(base=base)
    for q, held in enumerate(answers.held):
        old, new = slice(answers.base[q], answers.base[q] + held), slice(base[q], base[q] + held)
        wide.score[new], wide.position[new] = answers.score[old], answers.position[old]
        wide.arrival[new] = answers.arrival[old]
    return wide


@inner
def listed(answers: Answers, q: int, size: int) -> Objects:
    """The first ``size`` entries of list q, as they lie."""
    part = slice(answers.base[q], answers.base[q] + size)
    return Objects(answers.score[part], answers.position[part], answers.arrival[part])


@inlined
def takes(answers: Answers, q: int, k: int, ties: bool, of: Object) -> bool:
    """Whether an object belongs in list q, as far as the list knows."""
    size = answers.held[q]
    if size < k:
        return True
    last = answers.base[q] + size - 1
    if better(of[0], of[1], of[2], answers.score[last], answers.position[last], answers.arrival[last]):
        return True
    return ties and of[0] == answers.score[last]


@inner
def insert(answers: Answers, q: int, k: int, ties: bool, of: Object) -> None:
    """Put an object that belongs there into list q; what then falls out stays behind the list's end."""
    score, base, size = answers.score, answers.base[q], answers.held[q]
    put(score, answers.position, answers.arrival, base, base + size, of)
    size += 1
    while size > k and not (ties and score[base + size - 1] == score[base + k - 1]):
        size -= 1
    answers.held[q] = size
    answers.oldest[q] = min(answers.oldest[q], of[1])


@inner
def read(answers: Answers, q: int, k: int, ties: bool, start: int, objects: Objects, size: int) -> int:
    """List q anew, read off objects in rank order; returns how many before ``start`` were passed over on the way."""
    held, end, kth = 0, 0, 0.0
    while end < size and (held < k or (ties and objects.score[end] == kth)):
        if objects.position[end] >= start:
            held += 1
            kth = objects.score[end]
        end += 1
    _keep(answers, q, start, objects, end)
    return end - held


@inner
def expire(answers: Answers, q: int, start: int) -> None:
    """Take the objects before ``start`` out of list q."""
    size = answers.held[q]
    _keep(answers, q, start, listed(answers, q, size), size)


@inner
def clear(answers: Answers, q: int) -> None:
    """Empty list q."""
    answers.held[q] = 0
    answers.oldest[q] = LATEST


@inner
def _keep(answers: Answers, q: int, start: int, objects: Objects, size: int) -> None:
    """Make list q those of the first ``size`` objects that are not before ``start``."""
    answers.held[q] = sift(objects, size, start, listed(answers, q, size))
    answers.oldest[q] = LATEST
    for position in listed(answers, q, answers.held[q]).position:
        answers.oldest[q] = min(answers.oldest[q], position)


@inner
def note_missing(log: Log, q: int, of: Object, op: int, these: Objects, those: Objects) -> None:
    """Add an entry for each object of one ranked list that is not in the other, best first."""
    j = 0
    for i in range(these.score.size):
        score, position, arrival = these.score[i], these.position[i], these.arrival[i]
        while (
            j < those.score.size
            and those.arrival[j] != arrival
            and better(those.score[j], those.position[j], those.arrival[j], score, position, arrival)
        ):
            j += 1
        if j < those.score.size and those.arrival[j] == arrival:
            j += 1
        else:
            note(log, q, of[2], of[1], op, arrival, score)

"""The top-k lists of continuous queries, and the log of who entered and left them (pairs, section 4.2)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import inlined, inner
from skyband.kernels.common.order import better
from skyband.kernels.common.staircase import LATEST, Object, Objects, put, sift

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ENTERED, LEFT = 1, -1


class Answers(NamedTuple):
    """A list for each query q, best first: ``size[q]`` objects from ``base[q]`` on, with room up to ``base[q + 1]``.

    ``oldest[q]`` is not after the oldest time in the list: while it is inside the window, nothing expires.
    """

    score: Floats
    position: Ints
    arrival: Ints
    base: Ints
    size: Ints
    oldest: Ints


class Log(NamedTuple):
    """What happened to the answers, in order; ``used[0]`` entries so far."""

    query: Ints
    trigger: Ints
    at: Ints
    op: NDArray[np.int8]
    arrival: Ints
    score: Floats
    used: Ints


def no_answers(queries: int) -> Answers:
    """Empty lists, with no room."""
    none, nobody = np.empty(0), np.empty(0, np.int64)
    sizes = np.zeros(queries, np.int64)
    return Answers(none, nobody, nobody, np.zeros(queries + 1, np.int64), sizes, np.full(queries, LATEST))


def with_room(answers: Answers, room: Ints) -> Answers:
    """The same with so much room in each list."""
    base = np.zeros(room.size + 1, np.int64)
    np.cumsum(room, out=base[1:])
    score, position, arrival = np.zeros(base[-1]), np.zeros(base[-1], np.int64), np.zeros(base[-1], np.int64)
    for q, size in enumerate(answers.size):
        old, new = slice(answers.base[q], answers.base[q] + size), slice(base[q], base[q] + size)
        score[new], position[new], arrival[new] = answers.score[old], answers.position[old], answers.arrival[old]
    return answers._replace(score=score, position=position, arrival=arrival, base=base)


def no_log(room: int) -> Log:
    """An empty log for so many entries."""
    query, trigger, at, arrival = (np.empty(room, np.int64) for _ in range(4))
    return Log(query, trigger, at, np.empty(room, np.int8), arrival, np.empty(room), np.zeros(1, np.int64))


@inner
def listed(answers: Answers, q: int, size: int) -> Objects:
    """The first ``size`` entries of list q, as they lie."""
    part = slice(answers.base[q], answers.base[q] + size)
    return Objects(answers.score[part], answers.position[part], answers.arrival[part])


@inlined
def takes(answers: Answers, q: int, k: int, ties: bool, of: Object) -> bool:
    """Whether an object belongs in list q, as far as the list knows."""
    size = answers.size[q]
    if size < k:
        return True
    last = answers.base[q] + size - 1
    if better(of[0], of[1], of[2], answers.score[last], answers.position[last], answers.arrival[last]):
        return True
    return ties and of[0] == answers.score[last]


@inner
def insert(answers: Answers, q: int, k: int, ties: bool, of: Object) -> None:
    """Put an object that belongs there into list q; what then falls out stays behind the list's end."""
    score, base, size = answers.score, answers.base[q], answers.size[q]
    put(score, answers.position, answers.arrival, base, base + size, of)
    size += 1
    while size > k and not (ties and score[base + size - 1] == score[base + k - 1]):
        size -= 1
    answers.size[q] = size
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
    size = answers.size[q]
    _keep(answers, q, start, listed(answers, q, size), size)


@inner
def clear(answers: Answers, q: int) -> None:
    """Empty list q."""
    answers.size[q] = 0
    answers.oldest[q] = LATEST


@inner
def _keep(answers: Answers, q: int, start: int, objects: Objects, size: int) -> None:
    """Make list q those of the first ``size`` objects that are not before ``start``."""
    answers.size[q] = sift(objects, size, start, listed(answers, q, size))
    answers.oldest[q] = LATEST
    for position in listed(answers, q, answers.size[q]).position:
        answers.oldest[q] = min(answers.oldest[q], position)


@inner
def note(log: Log, q: int, of: Object, op: int, arrival: int, score: float) -> None:
    """Add an entry, brought about by the arrival of an object."""
    i = log.used[0]
    log.query[i], log.trigger[i], log.at[i] = q, of[2], of[1]
    log.op[i], log.arrival[i], log.score[i] = op, arrival, score
    log.used[0] = i + 1


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
            note(log, q, of, op, arrival, score)

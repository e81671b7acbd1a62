"""The top-k lists of continuous queries, and the log of who entered and left them (pairs, section 4.2)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.jit import inlined, inner
from skyband.kernels.order import better
from skyband.kernels.staircase import LATEST, Object, Objects, put, sift

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ENTERED, LEFT = 1, -1


class Answers(NamedTuple):
    """A list for each query q, best first: ``size[q]`` objects from ``base[q]`` on, with room up to ``base[q + 1]``.

    ``oldest[q]`` is not after the oldest time in the list: while it is inside the window, nothing expires.
    """

    score: Floats
    time: Ints
    number: Ints
    base: Ints
    size: Ints
    oldest: Ints


class Log(NamedTuple):
    """What happened to the answers, in order; ``used[0]`` entries so far."""

    query: Ints
    trigger: Ints
    at: Ints
    op: NDArray[np.int8]
    number: Ints
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
    score, time, number = np.zeros(base[-1]), np.zeros(base[-1], np.int64), np.zeros(base[-1], np.int64)
    for q, size in enumerate(answers.size):
        old, new = slice(answers.base[q], answers.base[q] + size), slice(base[q], base[q] + size)
        score[new], time[new], number[new] = answers.score[old], answers.time[old], answers.number[old]
    return answers._replace(score=score, time=time, number=number, base=base)


def no_log(room: int) -> Log:
    """An empty log for so many entries."""
    query, trigger, at, number = (np.empty(room, np.int64) for _ in range(4))
    return Log(query, trigger, at, np.empty(room, np.int8), number, np.empty(room), np.zeros(1, np.int64))


@inner
def listed(answers: Answers, q: int, size: int) -> Objects:
    """The first ``size`` entries of list q, as they lie."""
    part = slice(answers.base[q], answers.base[q] + size)
    return Objects(answers.score[part], answers.time[part], answers.number[part])


@inlined
def takes(answers: Answers, q: int, k: int, ties: bool, of: Object) -> bool:
    """Whether an object belongs in list q, as far as the list knows."""
    size = answers.size[q]
    if size < k:
        return True
    last = answers.base[q] + size - 1
    if better(of[0], of[1], of[2], answers.score[last], answers.time[last], answers.number[last]):
        return True
    return ties and of[0] == answers.score[last]


@inner
def insert(answers: Answers, q: int, k: int, ties: bool, of: Object) -> None:
    """Put an object that belongs there into list q; what then falls out stays behind the list's end."""
    score, base, size = answers.score, answers.base[q], answers.size[q]
    put(score, answers.time, answers.number, base, base + size, of)
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
        if objects.time[end] >= start:
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
    for time in listed(answers, q, answers.size[q]).time:
        answers.oldest[q] = min(answers.oldest[q], time)


@inner
def note(log: Log, q: int, of: Object, op: int, number: int, score: float) -> None:
    """Add an entry, brought about by the arrival of an object."""
    i = log.used[0]
    log.query[i], log.trigger[i], log.at[i] = q, of[2], of[1]
    log.op[i], log.number[i], log.score[i] = op, number, score
    log.used[0] = i + 1


@inner
def note_missing(log: Log, q: int, of: Object, op: int, these: Objects, those: Objects) -> None:
    """Add an entry for each object of one ranked list that is not in the other, best first."""
    j = 0
    for i in range(these.score.size):
        score, time, number = these.score[i], these.time[i], these.number[i]
        while (
            j < those.score.size
            and those.number[j] != number
            and better(those.score[j], those.time[j], those.number[j], score, time, number)
        ):
            j += 1
        if j < those.score.size and those.number[j] == number:
            j += 1
        else:
            note(log, q, of, op, number, score)

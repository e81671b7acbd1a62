"""The top-k lists of continuous queries, and the log of who entered and left them (pairs, section 4.2)."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skyband.kernels.order import better
from skyband.kernels.output import grow
from skyband.kernels.staircase import LATEST, Objects, place, put

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
    """What happened to the answers, in order; the first ``count[0]`` entries are in use."""

    query: Ints
    trigger: Ints
    at: Ints
    op: NDArray[np.int8]
    number: Ints
    score: Floats
    count: Ints


@njit(cache=True)
def no_answers(queries: int) -> Answers:
    """Empty lists."""
    return Answers(
        np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64),
        np.zeros(queries + 1, np.int64), np.zeros(queries, np.int64), np.full(queries, LATEST),
    )  # fmt: skip


@njit(cache=True)
def no_log() -> Log:
    """A log to begin with."""
    return Log(
        np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int8),
        np.empty(64, np.int64), np.empty(64), np.zeros(1, np.int64),
    )  # fmt: skip


@njit(cache=True, inline="always")
def takes(answers: Answers, q: int, k: int, ties: bool, of: tuple[float, int, int]) -> bool:
    """Whether an object belongs in the list of query q, as far as the list knows."""
    size = answers.size[q]
    if size < k:
        return True
    last = answers.base[q] + size - 1
    if better(of[0], of[1], of[2], answers.score[last], answers.time[last], answers.number[last]):
        return True
    return ties and of[0] == answers.score[last]


@njit(cache=True)
def offer(answers: Answers, q: int, k: int, ties: bool, of: tuple[float, int, int]) -> Answers:
    """Put an object into the list of query q if it belongs there; what then falls out stays behind the list's end."""
    if not takes(answers, q, k, ties, of):
        return answers
    base, size = answers.base[q], answers.size[q]
    if base + size == answers.base[q + 1]:
        answers = _widen(answers, q)
    score, time, number = answers.score, answers.time, answers.number
    at = place(score, time, number, (base, base + size), of)
    put(score, time, number, (at, base + size), of)
    size += 1
    while size > k and not (ties and score[base + size - 1] == score[base + k - 1]):
        size -= 1
    answers.size[q] = size
    answers.oldest[q] = min(answers.oldest[q], of[1])
    return answers


@njit(cache=True)
def clear(answers: Answers, q: int) -> None:
    """Empty the list of query q."""
    answers.size[q] = 0
    answers.oldest[q] = LATEST


@njit(cache=True)
def expire(answers: Answers, q: int, start: int) -> None:
    """Take the objects before ``start`` out of the list of query q."""
    base, kept, oldest = answers.base[q], answers.base[q], LATEST
    for i in range(base, base + answers.size[q]):
        if answers.time[i] >= start:
            answers.score[kept], answers.time[kept] = answers.score[i], answers.time[i]
            answers.number[kept] = answers.number[i]
            oldest = min(oldest, answers.time[i])
            kept += 1
    answers.size[q] = kept - base
    answers.oldest[q] = oldest


@njit(cache=True)
def listed(answers: Answers, q: int, size: int) -> Objects:
    """The first ``size`` entries of the list of query q, as they lie."""
    part = slice(answers.base[q], answers.base[q] + size)
    return Objects(answers.score[part], answers.time[part], answers.number[part])


@njit(cache=True)
def note(log: Log, q: int, cause: tuple[int, int], op: int, number: int, score: float) -> Log:
    """Adds an entry; ``cause`` is the arrival's number and position."""
    i = log.count[0]
    if i == log.query.size:
        log = Log(grow(log.query, 0), grow(log.trigger, 0), grow(log.at, 0), grow(log.op, 0),
                  grow(log.number, 0), grow(log.score, 0), log.count)  # fmt: skip
    log.query[i], log.trigger[i], log.at[i] = q, cause[0], cause[1]
    log.op[i], log.number[i], log.score[i] = op, number, score
    log.count[0] = i + 1
    return log


@njit(cache=True)
def note_missing(log: Log, q: int, cause: tuple[int, int], op: int, these: Objects, those: Objects) -> Log:
    """Adds an entry for each object of one ranked list that is not in the other, best first."""
    j = 0
    for i in range(these.score.size):
        score, time, number = these.score[i], these.time[i], these.number[i]
        while j < those.score.size and those.number[j] != number and better(
            those.score[j], those.time[j], those.number[j], score, time, number
        ):
            j += 1
        if j < those.score.size and those.number[j] == number:
            j += 1
        else:
            log = note(log, q, cause, op, number, score)
    return log


@njit(cache=True)
def _widen(answers: Answers, q: int) -> Answers:
    """The lists with twice the room for that of query q."""
    old = answers.base[q + 1]
    more = max(8, old - answers.base[q])
    score, time, number = answers.score, answers.time, answers.number
    gap, gaps = np.zeros(more), np.zeros(more, np.int64)
    answers.base[q + 1 :] += more
    return Answers(
        np.concatenate((score[:old], gap, score[old:])),
        np.concatenate((time[:old], gaps, time[old:])),
        np.concatenate((number[:old], gaps, number[old:])),
        answers.base, answers.size, answers.oldest,
    )  # fmt: skip

"""The top-k lists of continuous queries over pairs, and the log of who entered and left them (pairs, section 4.2)."""

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.kernels.common.jit import in_place, outer
from skyband.kernels.common.staircase import LATEST
from skyband.kernels.pairs.band import Pairs, copy, pair_at, precedes
from skyband.storage.blocks import ARRIVAL, Bytes, Floats, Ints, Record, block, column, scalars

ENTERED, LEFT = 1, -1


@block(version=1)
class Answers(NamedTuple):
    """A list for each query q, best first: ``held[q]`` pairs from place ``first[q]`` of ``lists`` on."""

    lists: Pairs
    first: Annotated[Ints, column("queries")]
    room: Annotated[Ints, column("queries")]  # how long the list may become
    held: Annotated[Ints, column("queries")]
    oldest: Annotated[Ints, column("queries", fill=LATEST)]  # the age of the oldest pair in the list


class LogMeta(NamedTuple):
    held: int = 0  # entries so far


@block(version=1)
class AnswerLog(NamedTuple):
    """What happened to the answers, in order."""

    query: Annotated[Ints, column("entries", used="held")]
    trigger: Annotated[Ints, column("entries", used="held", holds=ARRIVAL)]
    at: Annotated[Ints, column("entries", used="held")]
    op: Annotated[Bytes, column("entries", used="held")]
    first: Annotated[Ints, column("entries", used="held", holds=ARRIVAL)]  # the arrival number of a
    second: Annotated[Ints, column("entries", used="held", holds=ARRIVAL)]  # of b
    score: Annotated[Floats, column("entries", used="held")]
    meta: Annotated[Record, scalars(LogMeta)]


class Queries(NamedTuple):
    """The queries that share a state, and what they have in common."""

    k: Ints
    extent: Ints
    ties: NDArray[np.bool_]
    K: int  # the largest k
    N: int  # the longest extent
    strict: bool  # whether dominance asks for a better score


@outer
def is_full(log: AnswerLog, answers: Answers) -> bool:
    """Whether what the next object does might not fit: every pair of every list may leave, and as many enter."""
    return bool(log.meta[0].held + 2 * answers.lists.score.size > log.score.size)


@outer
def reach(pairs: Pairs, k: int, ties: bool, start: int) -> tuple[int, int]:
    """How far down a ranked list the k best pairs reach that are not before ``start``, and how many there are."""
    size = pairs.meta[0].held
    held, end, kth = 0, 0, 0.0
    while end < size and (held < k or (ties and pairs.score[end] == kth)):
        if pairs.position[end] >= start:
            held += 1
            kth = pairs.score[end]
        end += 1
    return end, held


@outer
def renew(answers: Answers, log: AnswerLog, queries: Queries, band: Pairs, moment: tuple[int, int, int],
          best: float) -> None:  # fmt: skip
    """Bring the lists up to date with the skyband, in which the best new pair has the score ``best`` (NaN: none new).

    ``moment``: the newest position, and the position and arrival number of the object that came.
    """
    lists, (newest, _, _) = answers.lists, moment
    for q in range(queries.k.size):
        start, k = newest - queries.extent[q] + 1, queries.k[q]
        first, before = answers.first[q], answers.held[q]
        enters = best == best and (before < k or best >= lists.score[first + before - 1])
        if not enters and answers.oldest[q] >= start:
            continue
        end, held = reach(band, k, queries.ties[q], start)
        _note(log, q, moment, LEFT, lists, first, first + before, band, 0, end, start)
        _note(log, q, moment, ENTERED, band, 0, end, lists, first, first + before, start)
        at, oldest = first, LATEST
        for i in range(end):
            if band.position[i] >= start:
                copy(band, i, lists, at)
                oldest = min(oldest, band.position[i])
                at += 1
        answers.held[q], answers.oldest[q] = held, oldest


@in_place
def _note(log: AnswerLog, q: int, moment: tuple[int, int, int], op: int, these: Pairs, low: int, high: int,
          those: Pairs, begin: int, end: int, start: int) -> None:  # fmt: skip
    """Add an entry for each pair of one ranked list that is not in the other; those before ``start`` are in neither.

    A pair that leaves because it expired is noted, hence ``start`` counts only for pairs of the skyband.
    """
    j, n, (_, position, arrival) = begin, log.meta[0].held, moment
    for i in range(low, high):
        one = pair_at(these, i)
        if op == ENTERED and one.position < start:
            continue
        while j < end and precedes(pair_at(those, j), one):
            j += 1
        if j < end and those.older[j] == one.older and those.newer[j] == one.newer and one.position >= start:
            j += 1
        else:
            log.query[n], log.at[n], log.trigger[n], log.op[n], log.score[n] = q, position, arrival, op, one.score
            swapped = these.swapped[i] == 1
            log.first[n] = one.newer if swapped else one.older
            log.second[n] = one.older if swapped else one.newer
            n += 1
    log.meta[0].held = n

"""The log of who entered and left the top k, for windows that move with every arrival."""

from typing import NamedTuple

import numpy as np

from skyband.kernels.common.jit import in_place, inner, outer
from skyband.kernels.common.output import grow
from skyband.storage.blocks import Bytes, Floats, Ints, Record, record_type

ENTERED, LEFT = 1, -1


class Used(NamedTuple):
    """How much of a log is in use."""

    entries: int = 0


USED = record_type(Used)


class Log(NamedTuple):
    """What happened to the answers of queries, in order; see :class:`skyband.algorithms.contract.Changes`."""

    query: Ints
    trigger: Ints
    at: Ints
    op: Bytes
    arrival: Ints
    score: Floats
    used: Record


@outer
def new_log(room: int) -> Log:
    """An empty log with room for so many entries."""
    return Log(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int8),
               np.empty(room, np.int64), np.empty(room), np.zeros(1, USED))  # fmt: skip


@in_place
def lacks(log: Log, entries: int) -> bool:
    """Whether there may be no room for so many more entries."""
    return bool(log.used[0].entries + entries > log.at.size)


@inner
def roomy(log: Log, entries: int) -> Log:
    """The log with room for so many more entries."""
    if not lacks(log, entries):
        return log
    size = log.used[0].entries + entries
    return Log(grow(log.query, size), grow(log.trigger, size), grow(log.at, size), grow(log.op, size),
               grow(log.arrival, size), grow(log.score, size), log.used)  # fmt: skip


@in_place
def note(log: Log, query: int, trigger: int, at: int, op: int, arrival: int, score: float) -> None:
    """Adds an entry: an object entered or left, brought about by the arrival ``trigger`` at the position ``at``."""
    used = log.used[0]
    i = used.entries
    log.query[i], log.trigger[i], log.at[i] = query, trigger, at
    log.op[i], log.arrival[i], log.score[i] = op, arrival, score
    used.entries = i + 1

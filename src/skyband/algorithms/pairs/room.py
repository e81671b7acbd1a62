"""Room in the state of an algorithm over pairs: how it grows, and how what has expired makes way."""

import numpy as np

from skyband.kernels.pairs.answers import Answers, Queries
from skyband.kernels.pairs.band import Pairs, PairsMeta
from skyband.kernels.pairs.state import PairState
from skyband.kernels.pairs.window import WindowMeta, WindowObjects, relink
from skyband.storage.blocks import Ints, declaration, empty, plain, resized, taken

LEAST = 16  # room to begin with


def fresh_state(queries: int, values: int, colours: int) -> PairState:
    """The state of a partition of which nothing has been seen."""
    window = empty(WindowObjects, wide={"values": values, "colours": colours})
    answers = resized(empty(Answers), "queries", queries)
    return resized(empty(PairState, window=window, answers=answers), "queries", queries)


def with_objects(state: PairState, more: int, colours: int) -> PairState:
    """The state with room for so many objects more, and for colours below ``colours``."""
    window, where = state.window, plain(WindowMeta, state.window.meta)
    if where.stop + more > window.position.size:
        live = where.stop - where.start
        window = moved_up(window, max(2 * live, live + more, LEAST))
    if colours > window.last.size:
        window = resized(window, "palette", max(colours, 2 * window.last.size))
    return state if window is state.window else state._replace(window=window)


def moved_up(window: WindowObjects, room: int) -> WindowObjects:
    """The window at the beginning of arrays with room for so many objects."""
    start, stop, touched, *_ = plain(WindowMeta, window.meta)
    window = resized(taken(window, "objects", slice(start, stop)), "objects", room)
    window.meta["start"], window.meta["stop"], window.meta["touched"] = 0, stop - start, max(0, touched - start)
    relink(window)
    return window


def with_pairs(state: PairState, more: int, queries: Queries) -> PairState:
    """The state with room for so many more pairs, and in the answers of queries for what they may hold of them."""
    room, needed = state.band.score.size, plain(PairsMeta, state.band.meta).held + more
    if needed > room:
        room = max(2 * room, needed, LEAST)
    elif state.stairs.corner.size == room and (state.answers.lists.score.size or not queries.k.size):
        return state
    band, stairs, answers = resized(state.band, "pairs", room), resized(state.stairs, "steps", room), state.answers
    if queries.k.size:
        answers = with_lists(answers, np.where(queries.ties, room, np.minimum(queries.k, room)))
    return state._replace(band=band, stairs=stairs, answers=answers)


def with_lists(answers: Answers, room: Ints) -> Answers:
    """The answers with room for so many pairs in the list of each query."""
    first, total = np.cumsum(room) - room, int(room.sum())
    lists = resized(empty(Pairs, held=total), "pairs", total)
    for source, target, held in zip(answers.first, first, answers.held, strict=True):
        for name in declaration(Pairs).columns:
            getattr(lists, name)[target : target + held] = getattr(answers.lists, name)[source : source + held]
    return answers._replace(lists=lists, first=first, room=room)

"""What the algorithms over pairs have in common: the window, the answers, and the way through a batch."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyband.algorithms.contract import NO_CHANGES, NO_RANKINGS, Changes, Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.pairs.compiler import compiled
from skyband.algorithms.pairs.room import fresh_state, moved_up, with_objects, with_pairs
from skyband.algorithms.partitioned import PerKey, join_rankings
from skyband.errors import QueryError
from skyband.kernels.common.staircase import EARLIEST, LATEST
from skyband.kernels.common.staircase import Objects as Ranked
from skyband.kernels.objects.batch import Windows, batch
from skyband.kernels.pairs.answers import AnswerLog, LogMeta, Queries, reach
from skyband.kernels.pairs.band import Pairs, PairsMeta
from skyband.kernels.pairs.program import BLOCK, Program
from skyband.kernels.pairs.scan import Scoring, Scratch
from skyband.kernels.pairs.state import Batch, PairState
from skyband.kernels.pairs.window import Newcomers, WindowMeta, expire, relink
from skyband.query import Query, TopKPairs
from skyband.query.sides import Fitted
from skyband.storage import blocks
from skyband.storage.blocks import copied, empty, plain, resized

CHUNK = 256  # rows that are taken in at once, or as many as the window holds
NO_PROGRAM = Program(np.empty((0, 4), np.int64), np.empty(0), 1, False)


class Between(NamedTuple):
    """The two objects between whose arrivals windows close."""

    reached: int  # one more than the position of the first
    before: int  # its arrival number
    after: int  # that of the second, or of the first if no other has come


class OverPairs(PerKey[PairState]):
    """An algorithm over pairs. A subclass says how a batch of objects is taken in.

    The scores come from a program (:mod:`skyband.algorithms.pairs.compiler`) where the query's expressions can be made
    one, and else, if the subclass can do without, from the vectorised expressions or the Python function.

    Cells of a grid: pairs between two groups of objects are the pairs that differ in the column that names the group.
    So the cell (i < j) of a g × g grid is this algorithm with the group column added to ``different``, given the
    objects of both groups; the cell (i, i) is this algorithm as it is, given the objects of group i. Positions are
    those of the whole stream: windows are cut by them, whatever objects a cell does not see.
    """

    serves = frozenset({"hopping", "arrival"})
    state_type = PairState
    needs_program = True  # whether it takes scores from programs only

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        windows = [query.window for query in queries]
        k, extent = (np.array(column) for column in ([q.k for q in queries], [w.extent for w in windows]))
        ties = np.array([query.ties == "all" for query in queries])
        self.asked = Queries(k, extent, ties, int(k.max()), int(extent.max()), bool(ties.any()))
        self.silent = self.asked._replace(k=k[:0], extent=extent[:0], ties=ties[:0])  # the same with no answers kept
        self._windows = windows
        # Rows ripen by the pane that all queries share.
        pane = math.gcd(*(w.pane for w in windows)) if self.window.hopping else None
        self.window = replace(self.window, extent=self.asked.N, every=pane)
        self._log = empty(AnswerLog)

    def meet(self, schema: pa.Schema, look_up: Callable[[Ints], pa.Table]) -> None:
        assert isinstance(self.query, TopKPairs)
        self.look_up = look_up
        fitted = self.query.terms.fit(schema)
        program = compiled(fitted)
        if program is None and self.needs_program:
            raise QueryError(f"algorithm={self.name!r} takes scores that are arithmetic over numbers, not "
                             f"order_by={self.query.order_by!r} where={self.query.where!r}; take algorithm='scase'"
                             )  # fmt: skip
        self.fit(fitted, program)

    def fit(self, fitted: Fitted, program: Program | None) -> None:
        """Be ready for rows that carry these values and colours."""
        self.fitted, self.compiled = fitted, program is not None
        width, colours = len(fitted.values), sorted(fitted.colours, key=lambda colour: colour.kind)
        # Those that must be the same come first: their lists are the shortest.
        self.tag_columns = [colour.tag for colour in colours]
        self.scoring = Scoring(program or NO_PROGRAM, np.array([colour.kind for colour in colours], np.int64))
        self._blank = fresh_state(len(self.queries), width, len(colours))
        register, gathered = (np.empty((rows, BLOCK)) for rows in (self.scoring.program.registers, width))
        self._scratch = Scratch(register, np.zeros(BLOCK, np.bool_), gathered, np.empty(BLOCK, np.int64), empty(Pairs))

    @abstractmethod
    def take_in(self, state: PairState, batch: Batch, first: int) -> int:
        """Take objects in from ``first`` on; returns how far it got before room ran out, for pairs or in the log."""

    def fresh(self) -> PairState:
        return copied(self._blank)

    def advance(self, state: PairState, rows: Rows, frontier: int) -> tuple[PairState, tuple[Emission, ...]]:
        newcomers = self.newcomers(rows.spelled_out())
        state.window.meta["touched"] = _live(state).stop
        if self.window.hopping:
            return self._hop(state, newcomers, frontier)
        state, logs = self.fold(state, newcomers, self.asked, moves=True)
        return state, tuple(_changes(logs, q) for q in range(len(self.queries)))

    def newcomers(self, rows: Rows) -> Newcomers:
        """Rows as the kernels see them."""
        size = rows.score.size
        values = rows.values if rows.values.size else np.empty((size, 0))
        tags = rows.tags[:, self.tag_columns] if rows.tags.size else np.empty((size, 0), np.int64)
        # A read-only array, or one in another order, is another type to the compiler.
        return Newcomers._make(np.array(column, order="C") for column in (rows.position, rows.arrival, values, tags))

    def fold(self, state: PairState, newcomers: Newcomers, queries: Queries, moves: bool
             ) -> tuple[PairState, list[AnswerLog]]:  # fmt: skip
        """Take objects in, a chunk at a time; returns also what that did to the answers."""
        logs, done, total = [], 0, newcomers.position.size
        while done < total:
            live = self.count(state)
            size = min(total - done, max(CHUNK, live))
            chunk = _part(newcomers, done, done + size) if size < total else newcomers
            state = with_objects(state, size, int(chunk.colours.max(initial=-1)) + 1 if self.tag_columns else 0)
            scratch, first, more = self.scratch(live + size), 0, 0
            while first < size:
                state = self.with_pairs(state, more, queries)
                log = self._empty_log(state)
                first = self.take_in(state, Batch(chunk, queries, self.scoring, log, scratch, moves), first)
                if held := plain(LogMeta, log.meta).held:
                    logs.append(copied(blocks.taken(log, "entries", slice(held))))
                more = plain(PairsMeta, scratch.found.meta).held if first < size else 0
            done += size
        return state, logs

    def with_pairs(self, state: PairState, more: int, queries: Queries) -> PairState:
        """The state with room for so many pairs more, and in the answers for what they may hold of them."""
        return with_pairs(state, more, queries)

    def scratch(self, objects: int) -> Scratch:
        """Room to work in for a newcomer to a window of so many objects."""
        scratch = self._scratch
        if scratch.found.score.size < objects:
            self._scratch = scratch = scratch._replace(found=blocks.grown(scratch.found, "pairs", objects))
        scratch.found.meta["held"] = 0
        return scratch

    def _empty_log(self, state: PairState) -> AnswerLog:
        room = 1024 + 4 * state.answers.lists.score.size
        if self._log.score.size < room:
            self._log = resized(self._log, "entries", room)
        self._log.meta["held"] = 0
        return self._log

    # Hopping windows: rows come in event-time order, and before each the windows close that end there or earlier

    def _hop(self, state: PairState, newcomers: Newcomers, frontier: int) -> tuple[PairState, tuple[Emission, ...]]:
        closed: list[list[Rankings]] = [[] for _ in self.queries]
        position, arrival, at = newcomers.position, newcomers.arrival, 0
        if position.size and state.ends.max() == LATEST:
            state.ends[:] = [window.first_end(int(position[0])) for window in self._windows]
            state.window.meta["floor"] = min(state.ends - self.asked.extent)
        while True:
            cut = at + int(np.searchsorted(position[at:], state.ends.min()))
            if cut > at:
                state, _ = self.fold(state, _part(newcomers, at, cut), self.silent, moves=False)
            at = cut
            bound = int(position[at]) if at < position.size else frontier
            if bound >= state.ends.min():
                # A count window is closed by the first object numbered end - 1 or higher.
                reached = int(position[at - 1] if at else plain(WindowMeta, state.window.meta).newest) + 1
                before = int(arrival[max(0, at - 1)]) if position.size else 0
                between = Between(reached, before, int(arrival[at]) if at < position.size else before)
                self._close(state, closed, bound, between)
            if at == position.size:
                self._raise_floor(state, bound)
                return state, tuple(join_rankings(some) if some else NO_RANKINGS for some in closed)

    def _close(self, state: PairState, closed: list[list[Rankings]], bound: int, between: Between) -> None:
        """Answer the windows that end by ``bound`` in one pass over S (Algorithm 7)."""
        newest, held, asked = plain(WindowMeta, state.window.meta).newest, _held(state.band), self.asked
        due = [(end - window.extent, end, q) for q, window in enumerate(self._windows)
               for end in range(int(state.ends[q]), min(bound, window.last_end(newest)) + 1, window.slide)]  # fmt: skip
        if due and held:
            start, end, query = (np.array(column) for column in zip(*sorted(due), strict=True))
            windows = Windows(query, end, start, asked.k[query], asked.ties[query])
            band = state.band
            offset, member, _ = batch(Ranked(band.score, band.position, band.older), held, windows)
            for w in range(end.size):
                which = member[offset[w] : offset[w + 1]]
                if which.size:
                    closer = between.before if end[w] <= between.reached else between.after
                    ranking = _ranking(band, which, int(end[w]), 0 if self.window.time else closer)
                    closed[query[w]].append(ranking)
        state.ends[:] = [window.first_end(bound) for window in self._windows]

    def _raise_floor(self, state: PairState, bound: int) -> None:
        """Objects leave that no window can hold once those that end by ``bound`` are closed.

        A count window that has just closed is still the present one, until the next object comes.
        """
        position, floor = bound if self.window.time else bound - 1, plain(WindowMeta, state.window.meta).floor
        starts = (window.first_end(position) - window.extent for window in self._windows)
        state.window.meta["floor"] = max(floor, min(starts))
        expire(state.window)

    # Snapshots

    def result(self, query: Query, k: int, last: int | None = None) -> Rankings:
        rankings = []
        for partition in sorted(self.states):
            state = self.states[partition]
            if partition in self.waiting:
                waiting = self.newcomers(self.waiting[partition])
                state, _ = self.fold(copied(state), waiting, self.silent, moves=False)
            end, band, which = self.standing(state, query, k, last)
            if which.size:
                rankings.append(_ranking(band, which, end, 0)._replace(partition=np.array([partition])))
        return join_rankings(rankings)

    def snapshot(self, state: PairState, waiting: Rows, query: Query, k: int, last: int | None
                 ) -> tuple[int, Ints, Floats]:  # fmt: skip
        raise AssertionError("pairs are answered by result")

    def present(self, state: PairState, query: Query, last: int | None) -> tuple[int, int]:
        """The bounds of the present window of a query, or of a shorter one that ends with it."""
        window = query.window
        newest = self.newest if window.hopping and window.time else plain(WindowMeta, state.window.meta).newest
        end = window.first_end(newest) if window.hopping else newest + 1
        return end - (window.extent if last is None else last), end

    def standing(self, state: PairState, query: Query, k: int, last: int | None) -> tuple[int, Pairs, Ints]:
        """Where the present window ends, and the k best pairs, as places in a ranked list: S, as a rule."""
        start, end = self.present(state, query, last)
        stop, _ = reach(state.band, k, query.ties == "all", start)
        return end, state.band, np.flatnonzero(state.band.position[:stop] >= start)

    # The rest of the contract

    def arrivals(self, state: PairState) -> Ints:
        return state.window.arrival[_live(state)]

    def arrived(self, state: PairState, since: int) -> Ints:
        where = plain(WindowMeta, state.window.meta)
        arrivals = state.window.arrival[max(where.start, where.touched) : where.stop]
        return arrivals[arrivals >= since]

    def count(self, state: PairState) -> int:
        where = plain(WindowMeta, state.window.meta)
        return where.stop - where.start

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        for partition, state in self.states.items():  # what has expired need not be saved
            self.states[partition] = state._replace(window=moved_up(state.window, self.count(state)))
        return super().arrays()

    def tags(self) -> tuple[Ints, ...]:
        if not self.tag_columns:
            return ()
        count = len(self.query.measure().tags)
        used: list[list[Ints]] = [[np.empty(0, np.int64)] for _ in range(count)]
        for state in self.states.values():
            for column, colours in zip(self.tag_columns, state.window.colours, strict=True):
                used[column].append(colours[_live(state)])
        for rows in self.waiting.values():
            for column in range(count):
                used[column].append(rows.tags[:, column])
        return tuple(np.unique(np.concatenate(some)) for some in used)

    def retag(self, codes: tuple[Ints, ...]) -> None:
        for partition, state in self.states.items():
            window, live = state.window, _live(state)
            for column, colours in zip(self.tag_columns, window.colours, strict=True):
                colours[live] = codes[column][colours[live]]
            first_colour = next(iter(window.colours))
            window = window._replace(last=np.full(first_colour[live].max(initial=-1) + 1, -1, np.int64))
            relink(window)
            self.states[partition] = state._replace(window=window)
        for partition, rows in self.waiting.items():
            tags = np.stack([code[column] for code, column in zip(codes, rows.tags.T, strict=True)], axis=1)
            self.waiting[partition] = rows._replace(tags=tags)

    def verify(self, state: PairState) -> None:
        window, band, live = state.window, _used(state.band), _live(state)
        meta = plain(WindowMeta, window.meta)
        order = np.lexsort((window.arrival[live], window.position[live]))
        assert (order == np.arange(order.size)).all(), "objects are not in the order of their time"
        assert (window.position[live] >= meta.floor).all(), "an object has expired and is still there"
        order = np.lexsort([band.newer, band.newer_position, band.older, band.position, band.score])[::-1]
        assert (order == np.arange(order.size)).all(), "S is not in rank order"
        members, fresh = set(window.arrival[live].tolist()), band.position >= meta.floor
        assert members.issuperset([*band.older[fresh].tolist(), *band.newer[fresh].tolist()]), (
            "S holds a pair of which an object is gone"
        )
        assert meta.newest == EARLIEST or self.window.hopping or meta.floor == meta.newest - self.asked.N + 1
        if self.tag_columns:
            self._verify_links(state)
        if not self.window.hopping:
            self._verify_answers(state)

    def _verify_links(self, state: PairState) -> None:
        window, live = state.window, _live(state)
        colours = next(iter(window.colours))[live]
        for colour in np.unique(colours):
            at, listed = int(window.last[colour]), []
            while at >= live.start:
                listed.append(at)
                at = int(window.link[at])
            members = live.start + np.flatnonzero(colours == colour)
            assert listed == members[::-1].tolist(), "the list of a colour is wrong"

    def _verify_answers(self, state: PairState) -> None:
        answers = state.answers
        for q, query in enumerate(self.queries):
            _, band, which = self.standing(state, query, query.k, None)
            held = slice(answers.first[q], answers.first[q] + answers.held[q])
            assert answers.lists.older[held].tolist() == band.older[which].tolist(), f"the answer of query {q} is wrong"
            assert answers.lists.newer[held].tolist() == band.newer[which].tolist(), f"the answer of query {q} is wrong"

    def _verify_skyband(self, state: PairState) -> None:
        """S holds no pair that K others of it dominate."""
        band = _used(state.band)
        band = blocks.taken(band, "pairs", band.position >= plain(WindowMeta, state.window.meta).floor)
        for i, (score, position) in enumerate(zip(band.score, band.position, strict=True)):
            above = band.position[:i][band.score[:i] > score] if self.asked.strict else band.position[:i]
            assert np.count_nonzero(above >= position) < self.asked.K, "S holds a pair that K others dominate"


def _live(state: PairState) -> slice:
    """Where the objects of the window are."""
    where = plain(WindowMeta, state.window.meta)
    return slice(where.start, where.stop)


def _held(pairs: Pairs) -> int:
    """How many pairs a list holds."""
    return plain(PairsMeta, pairs.meta).held


def _used(pairs: Pairs) -> Pairs:
    """A list without the room beside it."""
    return blocks.taken(pairs, "pairs", slice(_held(pairs)))


def _part(newcomers: Newcomers, low: int, high: int) -> Newcomers:
    """Some of them."""
    return Newcomers._make(column[low:high] for column in newcomers)


def _ranking(band: Pairs, which: Ints, end: int, trigger: int) -> Rankings:
    """The ranking of one window: pairs by their places in a ranked list."""
    older, newer, swapped = band.older[which], band.newer[which], band.swapped[which] == 1
    first, second = np.where(swapped, newer, older), np.where(swapped, older, newer)
    one = np.array([end]), np.array([0]), np.array([trigger]), np.array([0, which.size])
    return Rankings(*one, first, band.score[which], second)


def _changes(logs: list[AnswerLog], q: int) -> Changes:
    """What happened to the answer of a query."""
    parts = [blocks.taken(log, "entries", log.query == q) for log in logs]
    if not parts:
        return NO_CHANGES
    changes = [Changes(log.trigger, log.at, log.query, log.op, log.first, log.score, log.second) for log in parts]
    return Changes._make(np.concatenate(column) for column in zip(*changes, strict=True))

"""What the algorithms over pairs have in common: the window, the answers, and the way through a batch."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skyband.algorithms.contract import NO_RANKINGS, Changes, Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.pairs.compiler import compiled
from skyband.algorithms.pairs.state import State
from skyband.algorithms.partitioned import PerKey, join_rankings
from skyband.errors import QueryError
from skyband.kernels.common.staircase import EARLIEST, LATEST
from skyband.kernels.common.staircase import Objects as Ranked
from skyband.kernels.objects.batch import Windows, batch
from skyband.kernels.pairs.answers import Log, Queries, no_log, reach
from skyband.kernels.pairs.band import Pairs
from skyband.kernels.pairs.program import BLOCK, Program
from skyband.kernels.pairs.scan import Scratch
from skyband.kernels.pairs.window import FLOOR, NEWEST, START, STOP, Objects, expire, relink
from skyband.query import Query, TopKPairs
from skyband.query.sides import Fitted

CHUNK = 256  # rows that are taken in at once, or as many as the window holds
NO_PROGRAM = Program(np.empty((0, 4), np.int64), np.empty(0), 1, False)


class Batch(NamedTuple):
    """What an algorithm needs to take in objects."""

    objects: Objects
    queries: Queries
    log: Log
    moves: bool  # whether the window moves on with each object
    scratch: Scratch


class OverPairs(PerKey[State]):
    """An algorithm over pairs. A subclass says how a batch of objects is taken in.

    The scores come from a program (:mod:`skyband.algorithms.pairs.compiler`) where the query's expressions can be made
    one, and else, if the subclass can do without, from the vectorised expressions or the Python function.

    Cells of a grid: pairs between two groups of objects are the pairs that differ in the column that names the group.
    So the cell (i < j) of a g × g grid is this algorithm with the group column added to ``different``, given the
    objects of both groups; the cell (i, i) is this algorithm as it is, given the objects of group i. Positions are
    those of the whole stream: windows are cut by them, whatever objects a cell does not see.
    """

    serves = frozenset({"hopping", "arrival"})
    state_type = State
    needs_program = True  # whether it takes scores from programs only

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        windows = [query.window for query in queries]
        k, extent = (np.array(column) for column in ([q.k for q in queries], [w.extent for w in windows]))
        ties = np.array([query.ties == "all" for query in queries])
        self._spec = Queries(k, extent, ties, int(k.max()), int(extent.max()), bool(ties.any()))
        self._silent = self._spec._replace(k=k[:0], extent=extent[:0], ties=ties[:0])  # the same with no answers kept
        self._slides = [window.slide for window in windows] if self.window.hopping else []
        # Rows ripen by the pane that all queries share.
        pane = math.gcd(*(w.pane for w in windows)) if self.window.hopping else None
        self.window = replace(self.window, extent=self._spec.N, every=pane)
        self.fitted: Fitted | None = None
        self.program: Program = NO_PROGRAM
        self.kinds: Ints = np.empty(0, np.int64)

    def meet(self, schema: pa.Schema, look_up: Callable[[Ints], pa.Table]) -> None:
        assert isinstance(self.query, TopKPairs)
        self.look_up = look_up
        self.fitted = self.query.terms.fit(schema)
        program = compiled(self.fitted)
        if program is None and self.needs_program:
            raise QueryError(f"algorithm={self.name!r} takes scores that are arithmetic over numbers, not "
                             f"order_by={self.query.order_by!r} where={self.query.where!r}; take algorithm='scase'"
                             )  # fmt: skip
        self.compiled = program is not None
        self.program = program or NO_PROGRAM
        # Those that must be the same come first: their lists are the shortest.
        self.tag_columns = [c.tag for c in sorted(self.fitted.colours, key=lambda colour: colour.kind)]
        self.kinds = np.array(sorted(c.kind for c in self.fitted.colours), np.int64)

    @abstractmethod
    def take_in(self, state: State, batch: Batch, first: int) -> tuple[State, int]:
        """Take objects in from ``first`` on; returns how far it got before room ran out, in S or in the log."""

    def fresh(self) -> State:
        assert self.fitted is not None
        return State.fresh(len(self.queries), len(self.fitted.values), self.kinds.size)

    def advance(self, state: State, rows: Rows, frontier: int) -> tuple[State, tuple[Emission, ...]]:
        rows = rows.spelled_out()
        return self._hop(state, rows, frontier) if self.window.hopping else self._arrive(state, rows)

    def _arrive(self, state: State, rows: Rows) -> tuple[State, tuple[Emission, ...]]:
        logs: list[Log] = []
        state = self._fold(state, rows, self._spec, True, logs)
        return state, tuple(_changes(logs, q) for q in range(len(self.queries)))

    def _fold(self, state: State, rows: Rows, queries: Queries, moves: bool, logs: list[Log]) -> State:
        """Take rows in, a chunk at a time."""
        done, total = 0, rows.score.size
        while done < total:
            live = int(state.meta[STOP] - state.meta[START])
            size = min(total - done, max(CHUNK, live))
            objects = self._objects(rows.take(np.arange(done, done + size)))
            state = state.roomy(size, int(objects.colours.max(initial=-1)) + 1)
            scratch = self._scratch(live + size)
            first = 0
            while first < size:
                state = self._widened(state, int(scratch.done[0]), queries)
                log = no_log(1024 + 4 * state.top_score.size)
                state, first = self.take_in(state, Batch(objects, queries, log, moves, scratch), first)
                logs.append(log)
            done += size
        self.tidy(state)
        return state

    def tidy(self, state: State) -> None:
        """Drop what has been put off dropping; called at the end of a batch."""

    def _widened(self, state: State, more: int, queries: Queries) -> State:
        """With room for so many more pairs in S, and in the answers for what they may hold of it."""
        pairs = state.pair_score.size
        if state.size + more > pairs:
            pairs = max(2 * pairs, state.size + more)
        most = np.where(queries.ties, pairs, np.minimum(queries.k, pairs))
        room = most if queries.k.size else np.zeros(len(self.queries), np.int64)
        return state.wider(pairs, room)

    def _objects(self, rows: Rows) -> Objects:
        assert self.fitted is not None
        size, width = rows.score.size, len(self.fitted.values)
        values = np.ascontiguousarray(rows.values) if width else np.empty((size, 0))
        tags = (
            np.ascontiguousarray(rows.tags[:, self.tag_columns]) if self.kinds.size else np.empty((size, 0), np.int64)
        )
        # A read-only array, or one in another order, is another type to the compiler.
        columns = (
            np.require(column, requirements=["C", "W"]) for column in (rows.position, rows.arrival, values, tags)
        )
        return Objects._make(columns)

    def _scratch(self, objects: int) -> Scratch:
        assert self.fitted is not None
        found, spare = (Pairs(np.empty(objects), *(np.empty(objects, np.int64) for _ in range(4))) for _ in range(2))
        register, gathered = (np.empty((rows, BLOCK)) for rows in (self.program.registers, len(self.fitted.values)))
        return Scratch(register, np.zeros(BLOCK, np.bool_), gathered, np.empty(BLOCK, np.int64), found,
                       spare, np.zeros(2, np.int64))  # fmt: skip

    # Hopping windows: rows come in event-time order, and before each the windows close that end there or earlier

    def _hop(self, state: State, rows: Rows, frontier: int) -> tuple[State, tuple[Emission, ...]]:
        blocks: list[list[Rankings]] = [[] for _ in self.queries]
        at, size = 0, rows.score.size
        if size and state.ends[0] == LATEST:
            state.ends[:] = [(int(rows.position[0]) // slide + 1) * slide for slide in self._slides]
            state.meta[FLOOR] = min(state.ends - self._spec.extent)
        while True:
            cut = at + int(np.searchsorted(rows.position[at:], state.ends.min()))
            state = self._fold(state, rows.take(np.arange(at, cut)), self._silent, False, [])
            at = cut
            bound = int(rows.position[at]) if at < size else frontier
            if bound >= state.ends.min():
                # A count window is closed by the first object numbered end - 1 or higher.
                before = int(rows.arrival[max(0, at - 1)]) if size else 0
                closer = int(rows.position[at - 1]) + 1 if at else int(state.meta[NEWEST]) + 1
                self._close(state, blocks, bound, (closer, before, int(rows.arrival[at]) if at < size else before))
            if at == size:
                self._raise_floor(state, bound)
                return state, tuple(join_rankings(some) if some else NO_RANKINGS for some in blocks)

    def _close(self, state: State, blocks: list[list[Rankings]], bound: int, closer: tuple[int, int, int]) -> None:
        """Answer the windows that end by ``bound`` in one pass over S (Algorithm 7)."""
        newest, spec = int(state.meta[NEWEST]), self._spec
        due = [(end - int(extent), end, q)
               for q, (extent, slide) in enumerate(zip(spec.extent, self._slides, strict=True))
               for end in range(int(state.ends[q]), min(bound, (newest + int(extent)) // slide * slide) + 1, slide)
               ]  # fmt: skip
        if due and state.size:
            start, end, query = (np.array(column) for column in zip(*sorted(due), strict=True))
            windows = Windows(query, end, start, spec.k[query], spec.ties[query])
            band = state.band
            offset, member, _ = batch(Ranked(band.score, band.position, band.older), state.size, windows)
            for w in range(end.size):
                which = member[offset[w] : offset[w + 1]]
                if which.size:
                    trigger = 0 if self.window.time else closer[1] if end[w] <= closer[0] else closer[2]
                    blocks[query[w]].append(_block(band, which, int(end[w]), trigger))
        state.ends[:] = [(bound // slide + 1) * slide for slide in self._slides]

    def _raise_floor(self, state: State, bound: int) -> None:
        """Objects leave that no window can hold once those that end by ``bound`` are closed.

        A count window that has just closed is still the present one, until the next object comes.
        """
        position = bound if self.window.time else bound - 1
        starts = ((position // slide + 1) * slide - int(extent)
                  for slide, extent in zip(self._slides, self._spec.extent, strict=True))  # fmt: skip
        state.meta[FLOOR] = max(int(state.meta[FLOOR]), min(starts))
        expire(state.window)

    # Snapshots

    def result(self, query: Query, k: int, last: int | None = None) -> Rankings:
        blocks = []
        for partition in sorted(self.states):
            state = self.states[partition]
            if partition in self.waiting:
                state = self._fold(state.copied(), self.waiting[partition], self._silent, False, [])
            end, band, which = self.standing(state, query, k, last)
            if which.size:
                blocks.append(_block(band, which, end, 0)._replace(partition=np.array([partition])))
        return join_rankings(blocks)

    def snapshot(self, state: State, waiting: Rows, query: Query, k: int, last: int | None) -> tuple[int, Ints, Floats]:
        raise AssertionError("pairs are answered by result")

    def present(self, state: State, query: Query, last: int | None) -> tuple[int, int]:
        """The bounds of the present window of a query, or of a shorter one that ends with it."""
        window = query.window
        newest = self.newest if window.hopping and window.time else int(state.meta[NEWEST])
        end = window.first_end(newest) if window.hopping else newest + 1
        return end - (window.extent if last is None else last), end

    def standing(self, state: State, query: Query, k: int, last: int | None) -> tuple[int, Pairs, Ints]:
        """Where the present window ends, and the k best pairs, as places in a ranked list: S, as a rule."""
        start, end = self.present(state, query, last)
        stop, _ = reach(state.band, state.size, k, query.ties == "all", start)
        return end, state.band, np.flatnonzero(state.pair_time[:stop] >= start)

    # The rest of the contract

    def arrivals(self, state: State) -> Ints:
        return state.arrival[state.part]

    def tags(self) -> tuple[Ints, ...]:
        if not self.kinds.size:
            return ()
        assert self.fitted is not None
        count = len(self.query.measure().tags)
        used: list[list[Ints]] = [[np.empty(0, np.int64)] for _ in range(count)]
        for state in self.states.values():
            for column, colours in zip(self.tag_columns, state.window.colours, strict=True):
                used[column].append(colours[state.part])
        for rows in self.waiting.values():
            for column in range(count):
                used[column].append(rows.tags[:, column])
        return tuple(np.unique(np.concatenate(some)) for some in used)

    def retag(self, codes: tuple[Ints, ...]) -> None:
        for partition, state in self.states.items():
            window = state.window
            state.meta[START] = state.part.start
            for column, colours in zip(self.tag_columns, window.colours, strict=True):
                colours[state.part] = codes[column][colours[state.part]]
            most = int(window.colours[0, state.part].max(initial=-1)) + 1
            self.states[partition] = state = state._replace(last=np.full(most, -1, np.int64))
            relink(state.window)
        for partition, rows in self.waiting.items():
            tags = np.stack([code[column] for code, column in zip(codes, rows.tags.T, strict=True)], axis=1)
            self.waiting[partition] = rows._replace(tags=tags)

    def verify(self, state: State) -> None:
        part, band, meta = state.part, state.band, state.meta
        order = np.lexsort((state.arrival[part], state.position[part]))
        assert (order == np.arange(order.size)).all(), "objects are not in the order of their time"
        order = np.lexsort([column[: state.size] for column in reversed(band)])[::-1]
        assert (order == np.arange(state.size)).all(), "S is not in rank order"
        members = set(state.arrival[part].tolist())
        live = band.position[: state.size] >= meta[FLOOR]
        ends = [*band.older[: state.size][live].tolist(), *(band.newer[: state.size][live] >> 1).tolist()]
        assert members.issuperset(ends), "S holds a pair of which an object is gone"
        assert meta[NEWEST] == EARLIEST or self.window.hopping or meta[FLOOR] == meta[NEWEST] - self._spec.N + 1
        if self.kinds.size:
            self._verify_lists(state)
        if not self.window.hopping:
            self._verify_answers(state)

    def _verify_lists(self, state: State) -> None:
        window, part = state.window, state.part
        for colour in np.unique(window.colours[0, part]):
            at, listed = int(window.last[colour]), []
            while at >= part.start:
                listed.append(at)
                at = int(window.link[at])
            members = part.start + np.flatnonzero(window.colours[0, part] == colour)
            assert listed == members[::-1].tolist(), "the list of a colour is wrong"

    def _verify_answers(self, state: State) -> None:
        for q, query in enumerate(self.queries):
            _, band, which = self.standing(state, query, query.k, None)
            held = slice(state.top_base[q], state.top_base[q] + state.top_size[q])
            assert state.top_older[held].tolist() == band.older[which].tolist(), f"the answer of query {q} is wrong"
            assert state.top_newer[held].tolist() == band.newer[which].tolist(), f"the answer of query {q} is wrong"

    def _verify_skyband(self, state: State) -> None:
        """S holds no pair that K others of it dominate."""
        live = np.flatnonzero(state.pair_time[: state.size] >= state.meta[FLOOR])
        score, position = state.pair_score[live], state.pair_time[live]
        for i in range(live.size):
            above = position[:i][score[:i] > score[i]] if self._spec.strict else position[:i]
            assert np.count_nonzero(above >= position[i]) < self._spec.K, "S holds a pair that K others dominate"


def _block(band: Pairs, which: Ints, end: int, trigger: int) -> Rankings:
    older, newer = band.older[which], band.newer[which]
    swapped = (newer & 1).astype(bool)
    first, second = np.where(swapped, newer >> 1, older), np.where(swapped, older, newer >> 1)
    one = np.array([end]), np.array([0]), np.array([trigger]), np.array([0, which.size])
    return Rankings(*one, first, band.score[which], second)


def _changes(logs: list[Log], q: int) -> Changes:
    parts = []
    for log in logs or [no_log(0)]:
        mine = np.flatnonzero(log.query[: log.used[0]] == q)
        parts.append(Changes(log.trigger[mine], log.at[mine], log.query[mine], log.op[mine], log.first[mine],
                             log.score[mine], log.second[mine]))  # fmt: skip
    return Changes._make(np.concatenate(column) for column in zip(*parts, strict=True))

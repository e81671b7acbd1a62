"""Tally: aggregates of groups at every arrival."""

from typing import Annotated, NamedTuple

import numpy as np

from skyband.algorithms.contract import FOREVER, NO_CHANGES, NOTHING, Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.groups import books, places
from skyband.algorithms.groups import parts as states
from skyband.algorithms.groups.base import OverGroups, changes_of
from skyband.algorithms.groups.partials import Partials
from skyband.algorithms.partitioned import join_rankings
from skyband.kernels.common.ranking import k_best
from skyband.kernels.groups.arrivals import TallyMeta, arrive
from skyband.kernels.groups.assemble import FUNCTION, Events, EventsMeta, Spec, no_events, with_room
from skyband.kernels.groups.lists import Lists
from skyband.kernels.groups.places import Places
from skyband.kernels.groups.tally import Book, PoolMeta, newest_of
from skyband.kernels.groups.view import View, ViewMeta, no_log
from skyband.query import Query
from skyband.storage.blocks import Record, block, copied, empty, plain, scalars

STRETCH = 4096  # rows that are taken in together
NO_SPEC = Spec(FUNCTION, True, 0, 0.0, 0, 0, False)  # nothing is assembled


@block(version=1)
class TallyState(NamedTuple):
    """All that is known of one partition; groups and cells stand at places of their own."""

    book: Book
    view: View
    groups: Places
    cells: Places
    meta: Annotated[Record, scalars(TallyMeta)]


class Tally(OverGroups[TallyState]):
    """Keeps the aggregates of groups up to date at every arrival; of no paper, but our own.

    Every row that comes, and every one that expires, changes the aggregates of one group, at a cost that does not
    depend on how many rows it has (:mod:`skyband.kernels.groups.tally`). All these changes are written down first;
    score and condition are then worked out for all of them at once; and a view of the k_max best groups follows them,
    which is filled anew from all groups when it has run low.

    Holds every row of the window: its amounts, not its columns. Rounding is as with :class:`Panes`.
    """

    name = "tally"
    serves = frozenset({"arrival"})
    state_type = TallyState

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        query = self.groups
        self.asked = books.asked_of(query, self.name)
        self.program = books.program_of(self.asked)
        self.ties = query.ties == "all"
        width = len(self.asked.calls)
        view = states.no_view(query.k, self.ties, False, width)
        self._blank = empty(TallyState, book=books.no_book(self.program), view=view)
        self._events, self._log = no_events(width), no_log(width)
        self._lists = empty(Lists)  # none are kept

    def fresh(self) -> TallyState:
        return copied(self._blank)

    def advance(self, state: TallyState, rows: Rows, frontier: int) -> tuple[TallyState, tuple[Emission, ...]]:
        rows = rows.spelled_out()
        state.meta["touched"], self._log.meta["held"] = FOREVER, 0
        for begin in range(0, rows.score.size, STRETCH):
            some = rows if rows.score.size <= STRETCH else rows.take(slice(begin, begin + STRETCH))
            state, parts = self._placed(state, books.partials_of(some, some.position.copy(), self.asked, self.program))
            events = with_room(self._events, books.held(state.book) + 3 * parts.group.size)
            self._events = events
            arrive(state.book, parts, self.window.extent, state.meta, self.program, events)
            self._score(events)
            self._log = states.followed(state.view, self._lists, NO_SPEC, events, self._log)
            state = self._settled(state)
        told = states.told(self._log)
        if told is None:
            return state, (NO_CHANGES,)
        return state, (changes_of(told._replace(values=self.asked.shown(told.values.T).T)),)

    def result(self, query: Query, k: int, last: int | None = None) -> Rankings:
        blocks = []
        for partition in sorted(self.states):
            book = self.states[partition].book
            now = plain(TallyMeta, self.states[partition].meta).now
            inside, _ = books.inside(book)
            recent = inside.pane > now - (self.window.extent if last is None else last)
            told = books.told(books.some(inside, recent), self.program)
            goodness = self._goodness(told.values)
            ranked = np.flatnonzero(~np.isnan(goodness))
            best = ranked[k_best(goodness[ranked], told.position[ranked], told.arrival[ranked], k, self.ties)]
            if best.size:
                one = np.array([now + 1]), np.array([partition]), np.array([0]), np.array([0, best.size])
                shown = self.asked.shown(told.values[best])
                blocks.append(Rankings(*one, told.arrival[best], goodness[best], values=shown))
        return join_rankings(blocks)

    def snapshot(
        self, state: TallyState, waiting: Rows, query: Query, k: int, last: int | None
    ) -> tuple[int, Ints, Floats]:
        raise AssertionError("result() ranks the groups, with what is told beside the score")

    def arrivals(self, state: TallyState) -> Ints:
        return state.book.totals.arrival[books.alive(state.book)]

    def arrived(self, state: TallyState, since: int) -> Ints:
        arrival = newest_of(state.book, plain(TallyMeta, state.meta).touched)
        return arrival[arrival >= since]

    def count(self, state: TallyState) -> int:
        return books.held(state.book)

    def tags(self) -> tuple[Ints, ...]:
        groups, cells = [NOTHING], [NOTHING]
        for state in self.states.values():
            groups.append(state.groups.code[books.alive(state.book)])
            cells.append(state.cells.code[np.flatnonzero(state.book.live)])
        used = np.unique(np.concatenate(groups))
        return used, *self.streams.tags(self.groups), *books.cells_in_use(np.concatenate(cells), self.program)

    def retag(self, codes: tuple[Ints, ...]) -> None:
        of_cells = books.cell_codes(codes[len(codes) - self.program.cells :])
        for partition, state in self.states.items():
            state = self._compacted(state)
            groups, cells = places.retagged(state.groups, codes[0]), places.retagged(state.cells, of_cells)
            self.states[partition] = state._replace(groups=groups, cells=cells)

    def verify(self, state: TallyState) -> None:
        book, view, groups, cells, meta = state
        ranking, now = plain(ViewMeta, view.meta), plain(TallyMeta, meta).now
        books.check(book, self.program)
        places.check(groups)
        places.check(cells)
        size = places.held(groups)
        inside, _ = books.inside(book)
        assert (inside.pane > now - self.window.extent).all() and (inside.pane <= now).all()
        told = books.told(inside, self.program)
        goodness = np.full(size, np.nan)
        goodness[told.group] = self._goodness(told.values)
        ranked = np.flatnonzero(~np.isnan(goodness))
        assert (np.flatnonzero(view.alive[:size] > 0) == ranked).all(), "a group is ranked that should not be"
        assert (view.score[ranked] == goodness[ranked]).all(), "a score is out of date"
        order = view.order[: ranking.ranked]
        assert (view.alive[order] > 0).all() and np.unique(order).size == order.size
        best = k_best(view.score[order], view.position[order], view.arrival[order], order.size, False)
        assert (best == np.arange(order.size)).all(), "the view is out of order"
        outside = np.setdiff1d(ranked, order)
        assert not outside.size or not ranking.whole, "a group is missing from a view that holds all"
        if order.size and outside.size:
            assert goodness[outside].max() <= view.score[order[-1]], "a group outside is better than one inside"

    def _goodness(self, values: Floats) -> Floats:
        score = self.asked.scores(values)
        return np.ascontiguousarray(score) if self.query.descending else 0.0 - score

    def _score(self, events: Events) -> None:
        """Scores the events; groups that are not to be ranked are not alive."""
        held = plain(EventsMeta, events.meta).held
        goodness = self._goodness(events.vector[:, :held].T)
        ranked = goodness == goodness  # not NaN
        events.alive[:held] *= ranked
        events.score[:held] = np.where(ranked, goodness, -np.inf)

    def _placed(self, state: TallyState, parts: Partials) -> tuple[TallyState, Partials]:
        """The state with room for the rows, and the rows with the places of their groups and cells."""
        book, view, groups, cells, meta = state
        groups, place = places.placed(groups, parts.group)
        if self.program.cells:
            cells, cell = places.placed(cells, parts.cells.ravel())
            parts = parts._replace(cells=cell.reshape(parts.cells.shape))
        book = books.with_room(book, place.size, places.held(groups), places.held(cells))
        view = states.view_for(view, places.held(groups))
        return TallyState(book, view, groups, cells, meta), parts._replace(group=place)

    def _settled(self, state: TallyState) -> TallyState:
        """The state with the places of what is gone given up, once they are the most."""
        used = places.held(state.groups) + places.held(state.cells)
        if used < 64 + 64 * self.program.cells:
            return state
        counted = plain(PoolMeta, state.book.pool.meta)
        return self._compacted(state) if used > 2 * (counted.groups + counted.cells) + 64 else state

    def _compacted(self, state: TallyState) -> TallyState:
        book, view, groups, cells, meta = state
        inside, partition = books.inside(book)
        alive, live = books.alive(book), np.flatnonzero(book.live)
        to_group = states.ranks(alive, places.held(groups))
        parts = books.recoded(inside, to_group, states.ranks(live, places.held(cells)))
        book = books.book_of(parts, partition, self.program, alive.size, live.size)
        view = states.compacted_view(view, alive, to_group)
        return TallyState(book, view, places.kept(groups, alive), places.kept(cells, live), meta)

"""Tally: aggregates of groups at every arrival."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import FOREVER, NOTHING, Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.groups import books
from skyband.algorithms.groups import parts as states
from skyband.algorithms.groups.assembled import changes_of
from skyband.algorithms.groups.partials import Partials
from skyband.algorithms.partitioned import ByHand, join_rankings
from skyband.kernels.common.ranking import k_best
from skyband.kernels.groups import view as views
from skyband.kernels.groups.arrivals import arrive
from skyband.kernels.groups.assemble import CHANGED, FUNCTION, Events, Spec, no_events
from skyband.kernels.groups.tally import Book
from skyband.kernels.groups.view import Log, View, follow, longer, no_log
from skyband.query import Query, TopKGroups

STRETCH = 4096  # rows that are taken in together


class Places(NamedTuple):
    """Codes that have come, by place, and the places in the order of their codes."""

    code: Ints
    order: Ints


class State(NamedTuple):
    """All that is known of one partition; groups and cells stand at places of their own."""

    book: Book
    view: View
    groups: Places
    cells: tuple[Places, ...]  # for each sort of values that are told apart
    now: Ints  # the newest position


class Tally(ByHand[State]):
    """Aggregates over all rows of a group in a window that moves with every arrival; of no paper, but our own.

    Every row that comes, and every one that expires, changes the aggregates of one group, at a cost that does not
    depend on how many rows it has (:mod:`skyband.kernels.groups.tally`). All these changes are written down first;
    score and condition are then worked out for all of them at once; and a view of the k_max best groups follows them,
    which is filled anew from all groups when it has run low.

    Holds every row of the window: its amounts, not its columns. Rounding is as with :class:`Panes`.
    """

    name = "tally"
    serves = frozenset({"arrival"})

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        query = cast(TopKGroups, self.query)
        self.asked = books.asked_of(query, self.name)
        self.program = books.program_of(self.asked)
        self.ties = query.ties == "all"
        self.coded = query.stream is not None and not isinstance(query.streams, tuple)
        self.streams = 0  # codes of streams given out so far: they are never forgotten
        self.lists = states.lists_of(
            states.no_parts(), Spec(FUNCTION, True, 0, 0.0, 0, 0, False), False
        )  # none are kept

    def fresh(self) -> State:
        nothing = Places(NOTHING, NOTHING)
        view = states.no_view(self.query.k, self.ties, False, len(self.asked.calls))
        return State(books.no_book(self.program), view, nothing, (nothing,) * self.program.cells, np.array([-FOREVER]))

    def update(self, rows: Rows, frontier: int) -> tuple[Emission, ...]:
        if self.coded and rows.score.size:
            self.streams = max(self.streams, int(rows.tags[:, 1].max()) + 1)
        return super().update(rows, frontier)

    def advance(self, state: State, rows: Rows, frontier: int) -> tuple[State, tuple[Emission, ...]]:
        rows = rows.spelled_out()
        log = no_log(256, len(self.asked.calls))
        for begin in range(0, rows.score.size, STRETCH):
            some = rows.take(np.arange(begin, min(begin + STRETCH, rows.score.size)))
            state, parts = self._placed(state, books.partials_of(some, some.position, self.asked, self.program))
            held = books.held(state.book)
            events = no_events(held + 3 * parts.group.size, len(self.asked.calls))
            arrive(state.book, parts, self.window.extent, state.now, self.program, events)
            self._score(events)
            log = self._followed(state.view, events, log)
            state = self._settled(state)
        told = Log._make(column[: log.used[0]] for column in log)
        return state, (changes_of(told._replace(values=self.asked.shown(told.values))),)

    def result(self, query: Query, k: int, last: int | None = None) -> Rankings:
        blocks = []
        for partition in sorted(self.states):
            book, now = self.states[partition].book, int(self.states[partition].now[0])
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

    def snapshot(self, state: State, waiting: Rows, query: Query, k: int, last: int | None) -> tuple[int, Ints, Floats]:
        raise AssertionError("result() ranks the groups, with what is told beside the score")

    def arrivals(self, state: State) -> Ints:
        return state.book.totals.arrival[books.alive(state.book)]

    def held(self, since: int = 0) -> Ints:
        found = [self.arrivals(state) for state in self.states.values()]
        return np.sort(np.concatenate([NOTHING, *(part[part >= since] for part in found)]))

    @property
    def candidates(self) -> int:
        return sum(books.held(state.book) for state in self.states.values())

    @property
    def nbytes(self) -> int:
        size = 0
        for state in self.states.values():
            arrays = (*state.view, *state.groups, *(array for places in state.cells for array in places))
            size += books.nbytes(state.book) + sum(array.nbytes for array in arrays)
        return size

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Of the rows in the window what cannot be worked out again."""
        yield "streams", np.array([self.streams])
        for partition in sorted(self.states):
            book, view, groups, cells, now = self.states[partition]
            inside, _ = books.inside(book)
            yield f"{partition}.now", now
            for name in books.SAVED:
                yield f"{partition}.{name}", getattr(inside, name).ravel()
            for i, places in enumerate((groups, *cells)):
                yield f"{partition}.code.{i}", places.code
            yield from (
                (f"{partition}.{name}", getattr(book.totals, name)[: groups.code.size])
                for name in ("position", "arrival")
            )
            used = {"order": int(view.meta[views.SIZE]), "shown": int(view.meta[views.TOP])}
            used |= dict.fromkeys(states.SLOT_FIELDS, groups.code.size)
            for name, array in view._asdict().items():
                yield f"{partition}.view.{name}", array[: used.get(name, array.size)].ravel()

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.streams, self.states = int(arrays["streams"][0]), {}
        partitions = sorted({int(head) for head, dot, _ in (name.partition(".") for name in arrays) if dot})
        for partition in partitions:
            mine = {
                name.removeprefix(f"{partition}."): array
                for name, array in arrays.items()
                if name.startswith(f"{partition}.")
            }
            codes = [mine[f"code.{i}"] for i in range(1 + self.program.cells)]
            groups, *cells = (Places(code.copy(), np.argsort(code)) for code in codes)
            position, arrival = mine["position"], mine["arrival"]
            known = {name: mine[name] for name in books.SAVED}
            parts = books.shaped(
                self.program, **known, position=position[known["group"]], arrival=arrival[known["group"]]
            )
            width, size = len(self.asked.calls), groups.code.size
            fields = {name: mine[f"view.{name}"].copy() for name in View._fields}
            fields |= {name: fields[name].reshape(size, width) for name in ("values", "told")}
            view = states.view_for(View(**fields), size, 0, size)
            book = self._book(parts, groups, tuple(cells), position, arrival)
            self.states[partition] = State(book, view, groups, tuple(cells), mine["now"].copy())

    def tags(self) -> tuple[Ints, ...]:
        found: list[list[Ints]] = [[NOTHING] for _ in range(1 + self.program.cells)]
        for book, _, groups, cells, _ in self.states.values():
            found[0].append(groups.code[books.alive(book)])
            for d, places in enumerate(cells):
                found[d + 1].append(places.code[np.flatnonzero(book.live[: places.code.size, d])])
        used = [np.unique(np.concatenate(some)) for some in found]
        return (used[0], *([np.arange(self.streams)] if self.coded else []), *used[1:])

    def retag(self, codes: tuple[Ints, ...]) -> None:
        for partition, state in self.states.items():
            book, view, groups, cells, now = self._compacted(state)
            new = codes[len(codes) - self.program.cells :]
            groups = groups._replace(code=codes[0][groups.code])
            cells = tuple(each._replace(code=code[each.code]) for each, code in zip(cells, new, strict=True))
            self.states[partition] = State(book, view, groups, cells, now)

    def verify(self, state: State) -> None:
        book, view, groups, cells, now = state
        books.check(book, self.program)
        size = groups.code.size
        for places in (groups, *cells):
            assert (np.diff(places.code[places.order]) > 0).all(), "codes are out of order"
        inside, _ = books.inside(book)
        assert (inside.pane > now[0] - self.window.extent).all() and (inside.pane <= now[0]).all()
        told = books.told(inside, self.program)
        goodness = np.full(size, np.nan)
        goodness[told.group] = self._goodness(told.values)
        ranked = np.flatnonzero(~np.isnan(goodness))
        assert (np.flatnonzero(view.alive[:size] > 0) == ranked).all(), "a group is ranked that should not be"
        assert (view.score[ranked] == goodness[ranked]).all(), "a score is out of date"
        order = view.order[: view.meta[views.SIZE]]
        assert (view.alive[order] > 0).all() and np.unique(order).size == order.size
        best = k_best(view.score[order], view.position[order], view.arrival[order], order.size, False)
        assert (best == np.arange(order.size)).all(), "the view is out of order"
        outside = np.setdiff1d(ranked, order)
        assert not outside.size or not view.meta[views.WHOLE], "a group is missing from a view that holds all"
        if order.size and outside.size:
            assert goodness[outside].max() <= view.score[order[-1]], "a group outside is better than one inside"

    def _goodness(self, values: Floats) -> Floats:
        score = self.asked.scores(values)
        return np.ascontiguousarray(score) if self.query.descending else 0.0 - score

    def _score(self, events: Events) -> None:
        """Scores the events; groups that are not to be ranked are not alive."""
        used, width = int(events.used[0]), len(self.asked.calls)
        changed = np.flatnonzero(events.kind[:used] == CHANGED)
        goodness = self._goodness(events.vector.reshape(-1, width)[changed])
        events.alive[changed] *= ~np.isnan(goodness)
        events.score[changed] = np.where(np.isnan(goodness), -np.inf, goodness)

    def _followed(self, view: View, events: Events, log: Log) -> Log:
        """The log with what the events bring about."""
        event = follow(view, self.lists, events, 0, log)
        while event < events.used[0]:
            log = longer(log, 4 * int(view.meta[views.SIZE] + view.meta[views.TOP]))
            event = follow(view, self.lists, events, event, log)
        return log

    def _placed(self, state: State, parts: Partials) -> tuple[State, Partials]:
        """The state with room for the rows, and the rows with the places of their groups and cells."""
        book, view, groups, cells, now = state
        first = groups.code.size
        place, groups = _introduced(groups, parts.group)
        cell, places = parts.cells.copy(), list(cells)
        for d in range(self.program.cells):
            some = np.flatnonzero(cell[:, d] >= 0)
            cell[some, d], places[d] = _introduced(places[d], cell[some, d])
        most = max((each.code.size for each in places), default=0)
        book = books.with_room(book, self.program, place.size, groups.code.size, most)
        view = states.view_for(view, first, groups.code.size - first, book.totals.position.size)
        return State(book, view, groups, tuple(places), now), parts._replace(group=place, cells=cell)

    def _settled(self, state: State) -> State:
        """The state with the places of what is gone given up, once they are the most."""
        used = sum(each.code.size for each in (state.groups, *state.cells))
        if used < 64 + 64 * self.program.cells:
            return state
        live = books.alive(state.book).size + int(np.count_nonzero(state.book.live))
        return self._compacted(state) if used > 2 * live + 64 else state

    def _compacted(self, state: State) -> State:
        book, view, groups, cells, now = state
        inside, _ = books.inside(book)
        kept = books.alive(book)
        stay = [np.flatnonzero(book.live[: each.code.size, d]) for d, each in enumerate(cells)]
        to_group = states.ranks(kept, groups.code.size)
        to_cell = tuple(states.ranks(some, each.code.size) for some, each in zip(stay, cells, strict=True))
        parts = books.recoded(inside, to_group, to_cell)
        groups = _some(groups, kept, to_group)
        cells = tuple(_some(*each) for each in zip(cells, stay, to_cell, strict=True))
        book = self._book(parts, groups, cells, book.totals.position[kept], book.totals.arrival[kept])
        return State(book, states.compacted_view(view, kept, to_group), groups, cells, now)

    def _book(self, parts: Partials, groups: Places, cells: tuple[Places, ...], position: Ints, arrival: Ints) -> Book:
        """The book of these rows, in the order of leaving, with what is known of the groups that are gone."""
        most = max((each.code.size for each in cells), default=0)
        book = books.book_of(parts, np.zeros(parts.group.size, np.int64), self.program, groups.code.size, most)
        book.totals.position[: position.size], book.totals.arrival[: arrival.size] = position, arrival
        return book


def _introduced(places: Places, codes: Ints) -> tuple[Ints, Places]:
    """The place of each code; codes that are new get the next ones."""
    place, fresh, order = states.places(places.code, places.order, codes, places.code.size)
    return place, Places(np.append(places.code, fresh), order)


def _some(places: Places, kept: Ints, rank: Ints) -> Places:
    """Some of the places, numbered anew."""
    order = rank[places.order]
    return Places(places.code[kept], order[order >= 0])

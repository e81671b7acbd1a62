"""Panes: aggregates of groups over hopping windows, for all partitions and groups at once."""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import FOREVER, NO_RANKINGS, NOTHING, Algorithm, Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.groups import books
from skyband.algorithms.groups.base import Streams
from skyband.algorithms.groups.partials import Partials, merged
from skyband.algorithms.partitioned import join_rankings
from skyband.kernels.common.panes import Columns, crossings
from skyband.kernels.groups.panes import Due, Found, FoundMeta, Spec, no_found, rank_blocks, slide_panes
from skyband.query import Query, TopKGroups
from skyband.storage.blocks import (
    ARRIVAL,
    PARTITION,
    block,
    column,
    empty,
    nbytes,
    plain,
    resized,
    restored,
    saved,
)

BLOCK = 1 << 16  # groups of closed windows that are looked at together


@block(version=1)
class Inside(NamedTuple):
    """Of the partials in the window what cannot be worked out again, in the order of leaving."""

    group: Annotated[Ints, column("partials")]
    pane: Annotated[Ints, column("partials")]
    cells: Annotated[Ints, column("partials", wide=True)]
    sums: Annotated[Floats, column("partials", wide=True)]
    folds: Annotated[Floats, column("partials", wide=True)]


@block(version=1)
class PanesState(NamedTuple):
    """What is saved, of all partitions together."""

    inside: Inside
    ahead: Partials
    partition: Annotated[Ints, column("groups", holds=PARTITION)]
    position: Annotated[Ints, column("groups")]  # of the newest row of a group in the window
    arrival: Annotated[Ints, column("groups", holds=ARRIVAL)]
    closed: Annotated[Ints, column("frontiers")]
    newest: Annotated[Ints, column("frontiers")]
    streams: Streams


class Panes(Algorithm):
    """Keeps the aggregates of groups over hopping windows; no algorithm of a paper, but our own.

    A batch is first brought down to one *partial* for each group and pane (and each value, where different values are
    counted); when a window closes, the panes that enter it are brought into the aggregates of their groups and those
    that leave it are taken out again. So a row costs the same however far windows overlap, and a group is forgotten
    when its last pane leaves. How a minimum, a maximum or a product lets go of what leaves is told in
    :mod:`skyband.kernels.groups.tally`; a value is one of the different ones as long as a pane holds it.

    Rounding: sums are kept to 106 bits, and a sum that would lose even one of them is computed anew from its panes. So
    it is the correctly rounded sum of its amounts, as ``math.fsum`` gives it, whatever order they came in, unless
    the amounts of one group in one pane lie further apart than 106 bits reach. Products are kept to 104 bits.
    """

    name = "panes"
    serves = frozenset({"hopping"})
    any_last = False

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        self.asked = books.asked_of(self.groups, self.name)
        self.program = books.program_of(self.asked)
        window = self.window
        query, ranks = self.query, self.asked.having is None
        sign = 1.0 if query.descending else -1.0
        self.spec = Spec(window.extent, window.slide, window.pane, query.k * ranks, query.ties == "all", sign)
        self.book = books.no_book(self.program)  # of windows that closed, by code of the group
        self.ahead = books.no_partials(self.program)  # in no closed window yet: in the order of pane and group
        self.partition: Ints = NOTHING  # of each group its partition; -1: nothing is known of it
        start = np.full(1 if window.time else 0, -FOREVER)
        self.closed: Ints = start  # windows up to here are closed: one position (time) or one a partition (count)
        self.newest: Ints = start  # the newest position seen, likewise
        self.streams = empty(Streams)
        self._found = no_found(BLOCK >> 4, BLOCK, len(self.asked.calls))
        self._ended = False  # whether the last batch has ended a window

    def update(self, rows: Rows, frontier: int) -> tuple[Emission, ...]:
        rows = rows.spelled_out()
        self.streams.see(self.groups, rows)
        parts = books.partials_of(rows, self.window.pane_of(rows.position), self.asked, self.program)
        if self.window.time:
            self.newest = np.maximum(self.newest, rows.position.max(initial=-FOREVER))
            return self._fold(parts, rows.partition, frontier)
        new = int(rows.partition.max(initial=-1)) + 1 - self.newest.size
        if new > 0:
            self.closed = np.append(self.closed, np.zeros(new, np.int64))
            self.newest = np.append(self.newest, np.full(new, -1))
        listed = crossings(
            Columns(rows.partition, rows.score, rows.position, rows.arrival), self.newest, self.window.slide
        )
        return self._fold(parts, rows.partition, self.newest + 1, listed)

    def finish(self) -> tuple[Emission, ...]:
        if not self.window.time:
            return (NO_RANKINGS,)
        return self._fold(books.no_partials(self.program), NOTHING, FOREVER)

    def look_ahead(self, newest: int) -> None:
        self.newest = np.maximum(self.newest, newest)

    def result(self, query: Query, k: int, last: int | None = None) -> Rankings:
        window = self.window
        everything = books.join(books.inside(self.book)[0], self.ahead)
        end = window.first_end(self.newest)
        start = end - (window.extent if last is None else last)
        told = books.told(books.some(everything, everything.pane * window.pane >= start[self._place(everything.group)]),
                          self.program)  # fmt: skip
        partition = self.partition[told.group]
        order = np.argsort(partition, kind="stable")
        codes, size = np.unique(partition, return_counts=True)
        ends = end[codes] if end.size > 1 else np.full(codes.size, end)
        event = Rankings(ends, codes, codes * 0, np.append(0, np.cumsum(size)), told.arrival[order], NO_SCORE)
        return self._ranked(event, told.position[order], told.values[order], k)

    def held(self, since: int = 0) -> Ints:
        if since and not self._ended:  # what has come since is in no window yet
            return np.sort(self.ahead.arrival[self.ahead.arrival >= since])
        arrival = np.append(self.book.totals.arrival[books.alive(self.book)], self.ahead.arrival)
        return np.sort(arrival[arrival >= since])  # no row is there twice

    @property
    def candidates(self) -> int:
        return books.held(self.book) + self.ahead.group.size

    @property
    def nbytes(self) -> int:
        frontiers = self.partition.nbytes + self.closed.nbytes + self.newest.nbytes
        return nbytes(self.book) + nbytes(self.ahead) + frontiers

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        inside, groups = books.inside(self.book)[0], books.alive(self.book)
        rows = np.zeros((2, self.partition.size), np.int64)
        rows[:, groups] = self.book.totals.position[groups], self.book.totals.arrival[groups]
        kept = Inside(inside.group, inside.pane, inside.cells, inside.sums, inside.folds)
        position, arrival = rows
        state = PanesState(kept, self.ahead, self.partition, position, arrival, self.closed, self.newest, self.streams)
        yield from saved(PanesState, [state])

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        (state,) = restored(PanesState, arrays)
        self.partition, self.closed, self.newest, self.ahead = state.partition, state.closed, state.newest, state.ahead
        self.streams, self._ended = state.streams, False
        group, pane, cells, sums, folds = state.inside
        self._rebuild(Partials(group, pane, state.position[group], state.arrival[group], cells, sums, folds))

    def partitions(self) -> Ints:
        if not self.window.time:
            return np.flatnonzero(self.newest >= 0)
        return np.unique(self.partition[self._objects()])

    def rekey(self, code: Ints) -> None:
        known, inside = self._objects(), books.inside(self.book)[0]
        self.partition[known] = code[self.partition[known]]
        order = np.lexsort((inside.pane, self.partition[inside.group]))
        self._rebuild(books.some(inside, order))

    def tags(self) -> tuple[Ints, ...]:
        parts = books.join(books.inside(self.book)[0], self.ahead)
        return (
            self._objects(),
            *self.streams.tags(self.groups),
            *books.cells_in_use(parts.cells[parts.cells >= 0], self.program),
        )

    def retag(self, codes: tuple[Ints, ...]) -> None:
        self.partition = self.partition[np.flatnonzero(codes[0] >= 0)]  # codes keep their order
        cells = books.cell_codes(codes[len(codes) - self.program.cells :])
        self.ahead = books.recoded(self.ahead, codes[0], cells)
        self._rebuild(books.recoded(books.inside(self.book)[0], codes[0], cells))

    def check(self) -> None:
        books.check(self.book, self.program)
        inside, partition = books.inside(self.book)
        assert (self.partition[inside.group] == partition).all(), "a partial is in another partition"
        alive = np.zeros(self.partition.size, bool)
        alive[inside.group], alive[self.ahead.group] = True, True
        assert (np.flatnonzero(alive) == self._objects()).all(), "a group is forgotten too early or too late"
        pane, closed = self.window.pane, self.window.last_closed(self.closed)
        ends = closed[self._place(inside.group)]
        assert ((inside.pane + 1) * pane <= ends).all(), "a pane is in the aggregates before its window has closed"
        reach = self._present(self.closed)[self._place(inside.group)] - self.window.extent
        assert (inside.pane * pane >= reach).all(), "a pane is out of every window"
        assert ((self.ahead.pane + 1) * pane > closed[self._place(self.ahead.group)]).all(), "a pane was left out"

    def _fold(
        self, parts: Partials, partition: Ints, frontier: int | Ints, listed: tuple[Ints, Ints, Ints] | None = None
    ) -> tuple[Emission, ...]:
        """Takes in partials of the partitions ``partition``, and closes the windows that end by ``frontier``.

        Count windows: ``listed`` are the windows that were completed (partition, end and the number of the object that
        did it) and ``frontier`` is an array.
        """
        self._introduce(parts.group, partition)
        self.ahead = merged(books.join(self.ahead, merged(parts, self.program)), self.program)
        before, window = self.closed, self.window
        self.closed = np.maximum(before, frontier)
        over = window.last_closed(self.closed)
        same = (over == window.last_closed(before)) & (self._present(self.closed) == self._present(before))
        self._ended = not same.all()
        if not self._ended or not self.candidates:
            return (NO_RANKINGS,)
        ripe = (self.ahead.pane + 1) * window.pane <= over[self._place(self.ahead.group)]
        coming, self.ahead = books.some(self.ahead, ripe), books.some(self.ahead, ~ripe)
        partitions = int(self.partition.max()) + 1 if self.window.time else self.closed.size
        mine = self.partition[coming.group]
        if partitions > 1:
            order = np.lexsort((coming.pane, mine))
            coming, mine = books.some(coming, order), mine[order]
        cells = int(coming.cells.max(initial=-1)) + 1
        self.book = books.with_room(self.book, coming.group.size, self.partition.size, cells, partitions)
        events = self._closed(self._due(coming, mine, partitions, before, listed))
        self._forget()
        return (events,)

    def _closed(self, due: Due) -> Rankings:
        """The rankings of the windows that are due."""
        most = int(np.diff(due.start).max(initial=0))
        if most > self._found.position.size:
            self._found = resized(self._found, "rows", most)
        self._found.meta["partition"] = 0
        parts, done = [], False
        while not done:
            done = slide_panes(self.book, due, self.spec, self.program, self._found)
            parts.append(self._rankings(self._found))
        return join_rankings(parts) if len(parts) > 1 else parts[0]

    def _rankings(self, found: Found) -> Rankings:
        windows, rows, _ = plain(FoundMeta, found.meta)
        event = Rankings(found.end[:windows], found.partition[:windows], found.trigger[:windows],
                         np.append(0, found.stop[:windows]), found.arrival[:rows], NO_SCORE)  # fmt: skip
        return self._ranked(event, found.position[:rows], found.values[:, :rows].T, self.query.k)

    def _ranked(self, event: Rankings, position: Ints, values: Floats, k: int) -> Rankings:
        """Of each block the k best."""
        score = self.asked.scores(values)
        goodness = np.ascontiguousarray(score) if self.query.descending else 0.0 - score
        first, best = rank_blocks(event.offset, goodness, position, event.arrival, k, self.query.ties == "all")
        some = np.flatnonzero(np.diff(first))  # of the others no group passes the condition
        return Rankings(event.end[some], event.partition[some], event.trigger[some], np.append(0, first[some + 1]),
                        event.arrival[best], goodness[best], values=self.asked.shown(values[best]))  # fmt: skip

    def _due(
        self, coming: Partials, partition: Ints, partitions: int, before: Ints, listed: tuple[Ints, Ints, Ints] | None
    ) -> Due:
        """What is to be closed, given the partials that enter and their partitions, in this order."""
        every = np.arange(partitions)
        seen = self.book.totals.newest[: self.partition.size] >= 0
        seen[coming.group] = True
        members = np.flatnonzero(seen)
        if partitions > 1:
            members = members[np.argsort(self.partition[members], kind="stable")]
        start = np.searchsorted(self.partition[members], np.arange(partitions + 1))
        closed = ends = trigger = NOTHING
        if listed is not None:
            order = np.argsort(listed[0], kind="stable")
            closed = np.append(0, np.cumsum(np.bincount(listed[0], minlength=partitions)))[:-1]
            ends, trigger = listed[1][order], listed[2][order]
        end = np.full(partitions, self.window.first_end(before))
        return Due(end, np.full(partitions, self.closed), coming, np.searchsorted(partition, every),
                   np.searchsorted(partition, every, "right"), members, start, closed, ends, trigger)  # fmt: skip

    def _introduce(self, group: Ints, partition: Ints) -> None:
        """Notes the partitions of groups, with room for those that are new."""
        new = int(group.max(initial=-1)) + 1 - self.partition.size
        if new > 0:
            self.partition = np.append(self.partition, np.full(max(new, self.partition.size // 8), -1))
        self.partition[group] = partition

    def _objects(self) -> Ints:
        """The codes of the groups that are held, ascending."""
        return np.flatnonzero(self.partition >= 0)

    def _forget(self) -> None:
        """Drops the groups that have no pane left."""
        gone = self.book.totals.newest[: self.partition.size] < 0
        gone[self.ahead.group] = False
        self.partition[gone] = -1

    def _rebuild(self, inside: Partials) -> None:
        """The book anew, of the partials in the window in the order of leaving, partition by partition."""
        partitions = int(self.partition.max(initial=0)) + 1 if self.window.time else max(1, self.closed.size)
        cells = int(inside.cells.max(initial=-1)) + 1
        self.book = books.book_of(
            inside, self.partition[inside.group], self.program, self.partition.size, cells, partitions
        )

    @property
    def groups(self) -> TopKGroups:
        """The query."""
        return cast(TopKGroups, self.query)

    def _present(self, closed: Ints) -> Ints:
        """The end of the first window that is not over; a count window is over with the first object after it."""
        return self.window.first_end(closed - (not self.window.time))

    def _place(self, group: Ints) -> Ints:
        """Where the position of the partition of each group is found in ``closed`` and ``newest``."""
        return np.zeros_like(group) if self.window.time else self.partition[group]


NO_SCORE: Floats = np.empty(0)

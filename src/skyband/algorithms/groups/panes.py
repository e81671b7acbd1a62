"""Panes: aggregates of groups over hopping windows, for all partitions and groups at once."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import FOREVER, NO_RANKINGS, NOTHING, Algorithm, Emission, Floats, Ints, Rankings, Rows
from skyband.algorithms.groups import books
from skyband.algorithms.groups.partials import Partials, merged
from skyband.algorithms.partitioned import join_rankings
from skyband.kernels.common.panes import Columns, crossings
from skyband.kernels.groups.panes import BLOCKS, ROWS, Due, Found, Spec, no_found, rank_blocks, slide_panes
from skyband.query import Query, TopKGroups

BLOCK = 1 << 16  # groups of closed windows that are looked at together


class Panes(Algorithm):
    """Aggregates over all rows of a group in hopping windows; no algorithm of a paper, but our own.

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
        self.asked = books.asked_of(cast(TopKGroups, self.query), self.name)
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
        self.streams = 0  # codes of streams given out so far: they are never forgotten

    def update(self, rows: Rows, frontier: int) -> tuple[Emission, ...]:
        rows = rows.spelled_out()
        if self._coded and rows.score.size:
            self.streams = max(self.streams, int(rows.tags[:, 1].max()) + 1)
        parts = books.partials_of(rows, rows.position // self.window.pane, self.asked, self.program)
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
        end = self.newest // window.slide * window.slide + window.slide
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
        arrival = np.append(self.book.totals.arrival[books.alive(self.book)], self.ahead.arrival)
        return np.sort(arrival[arrival >= since])  # no row is there twice

    @property
    def candidates(self) -> int:
        return books.held(self.book) + self.ahead.group.size

    @property
    def nbytes(self) -> int:
        arrays = (*self.ahead, self.partition, self.closed, self.newest)
        return books.nbytes(self.book) + sum(array.nbytes for array in arrays)

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Of the partials in the window what cannot be worked out again."""
        inside, groups = books.inside(self.book)[0], books.alive(self.book)
        yield from (("closed", self.closed), ("newest", self.newest), ("streams", np.array([self.streams])))
        yield from (("partition", self.partition), ("position", self.book.totals.position[groups]))
        yield "arrival", self.book.totals.arrival[groups]
        yield from ((f"inside.{name}", getattr(inside, name).ravel()) for name in books.SAVED)
        yield from ((f"ahead.{name}", array.ravel()) for name, array in self.ahead._asdict().items())

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.closed, self.newest, self.streams = arrays["closed"], arrays["newest"], int(arrays["streams"][0])
        self.partition = arrays["partition"].copy()
        known = {name: arrays[f"inside.{name}"] for name in books.SAVED}
        times = np.zeros((2, self.partition.size), np.int64)
        times[:, np.unique(known["group"])] = arrays["position"], arrays["arrival"]
        self.ahead = books.shaped(self.program, **{name: arrays[f"ahead.{name}"] for name in Partials._fields})
        self._rebuild(
            books.shaped(self.program, **known, position=times[0][known["group"]], arrival=times[1][known["group"]])
        )

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
        used = (np.unique(cells[cells >= 0]) for cells in parts.cells.T)
        return (self._objects(), *([np.arange(self.streams)] if self._coded else []), *used)

    def retag(self, codes: tuple[Ints, ...]) -> None:
        self.partition = self.partition[np.flatnonzero(codes[0] >= 0)]  # codes keep their order
        inside, self.ahead = (books.recoded(part, codes[0], codes[len(codes) - self.program.cells :])
                              for part in (books.inside(self.book)[0], self.ahead))  # fmt: skip
        self._rebuild(inside)

    def check(self) -> None:
        books.check(self.book, self.program)
        inside, partition = books.inside(self.book)
        assert (self.partition[inside.group] == partition).all(), "a partial is in another partition"
        alive = np.zeros(self.partition.size, bool)
        alive[inside.group], alive[self.ahead.group] = True, True
        assert (np.flatnonzero(alive) == self._objects()).all(), "a group is forgotten too early or too late"
        slide, pane = self.window.slide, self.window.pane
        closed = self.closed // slide * slide
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
        before, slide = self.closed, self.window.slide
        self.closed = np.maximum(before, frontier)
        same = (self.closed // slide == before // slide) & (self._present(self.closed) == self._present(before))
        if same.all() or not self.candidates:
            return (NO_RANKINGS,)
        ripe = (self.ahead.pane + 1) * self.window.pane <= (self.closed // slide * slide)[self._place(self.ahead.group)]
        coming, self.ahead = books.some(self.ahead, ripe), books.some(self.ahead, ~ripe)
        partitions = int(self.partition.max()) + 1 if self.window.time else self.closed.size
        mine = self.partition[coming.group]
        if partitions > 1:
            order = np.lexsort((coming.pane, mine))
            coming, mine = books.some(coming, order), mine[order]
        cells = int(coming.cells.max(initial=-1)) + 1
        self.book = books.with_room(self.book, self.program, coming.group.size, self.partition.size, cells, partitions)
        events = self._closed(self._due(coming, mine, partitions, before, listed))
        self._forget()
        return (events,)

    def _closed(self, due: Due) -> Rankings:
        """The rankings of the windows that are due."""
        most = int(np.diff(due.start).max(initial=0))
        found = no_found(BLOCK >> 4, max(BLOCK, most), len(self.asked.calls))
        parts, done = [], False
        while not done:
            done = slide_panes(self.book, due, self.spec, self.program, found)
            parts.append(self._rankings(found))
        return join_rankings(parts) if len(parts) > 1 else parts[0]

    def _rankings(self, found: Found) -> Rankings:
        blocks, rows = int(found.meta[BLOCKS]), int(found.meta[ROWS])
        event = Rankings(
            found.end[:blocks],
            found.partition[:blocks],
            found.trigger[:blocks],
            found.offset[: blocks + 1],
            found.arrival[:rows],
            NO_SCORE,
        )
        return self._ranked(event, found.position[:rows], found.values[:rows], self.query.k)

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
        slide, every = self.window.slide, np.arange(partitions)
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
        end = np.full(partitions, before // slide * slide + slide)
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
    def _coded(self) -> bool:
        """Whether the streams of rows are among their tags."""
        query = cast(TopKGroups, self.query)
        return query.stream is not None and not isinstance(query.streams, tuple)

    def _present(self, closed: Ints) -> Ints:
        """The end of the first window that is not over; a count window is over with the first object after it."""
        slide = self.window.slide
        return (closed - (not self.window.time)) // slide * slide + slide

    def _place(self, group: Ints) -> Ints:
        """Where the position of the partition of each group is found in ``closed`` and ``newest``."""
        return np.zeros_like(group) if self.window.time else self.partition[group]


NO_SCORE: Floats = np.empty(0)

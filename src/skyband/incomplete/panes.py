"""Panes: hopping windows with sums and counts, the fast way, for all partitions and objects at once."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from skyband.algorithm import FOREVER, NO_RANKINGS, NOTHING, Algorithm, Emission, Ints, Rankings, Rows
from skyband.errors import QueryError
from skyband.incomplete.partials import Partials, merged
from skyband.kernels.incomplete.panes import Due, Groups, Spec, slide_panes
from skyband.kernels.incomplete.ranking import k_best
from skyband.kernels.panes import Columns, crossings
from skyband.queries import Query, TopKIncomplete

_NONE = np.empty(0)
NO_PARTIALS = Partials(NOTHING, NOTHING, _NONE, _NONE, NOTHING, NOTHING)
NO_GROUPS = Groups(NOTHING, _NONE, _NONE, NOTHING, NOTHING, NOTHING, NOTHING)


class Panes(Algorithm):
    """Sums, counts and means of amounts that add up, over hopping windows: windows as differences of panes.

    A batch is first brought down to one partial sum for each object and pane; when a window closes, the panes that
    enter it are added to the sums of their objects and those that leave it are taken away. So a row costs the same
    however far windows overlap, and an object is forgotten when its last pane leaves.

    This is *many occurrences* (Haghani et al., CIKM 2009, section 5) for the case that scores are wanted at the ends of
    hopping windows only, where no list has to be kept in order; it is no algorithm of the paper.

    Rounding: sums are kept to 106 bits, and a sum that would lose even one of them is computed anew from its panes. So
    a score is the correctly rounded sum of its amounts, as ``math.fsum`` gives it, whatever order they came in, unless
    the amounts of one object in one pane lie further apart than 106 bits reach.
    """

    name = "panes"
    serves = frozenset({"hopping"})
    any_last = False

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        query = cast(TopKIncomplete, self.query)
        if (query.occurrences, query.aggregate) not in [("many", how) for how in ("sum", "count", "mean")]:
            raise QueryError(f"algorithm='panes' serves sums, counts and means with occurrences='many', not aggregate="
                             f"{query.aggregate!r} with occurrences={query.occurrences!r}; take 'sla'")  # fmt: skip
        window = self.window
        divisor = float(query.width or 1) if query.aggregate == "mean" else 1.0
        self._spec = Spec(query.k, query.ties == "all", window.extent, window.slide, window.pane, divisor)
        self.groups = NO_GROUPS  # by code of the object
        self.inside = NO_PARTIALS  # in the sums: in the order of partition and pane
        self.ahead = NO_PARTIALS  # in no closed window yet: in the order of pane and object
        start = np.full(1 if window.time else 0, -FOREVER)
        self.closed: Ints = start  # windows up to here are closed: one position (time) or one a partition (count)
        self.newest: Ints = start  # the newest position seen, likewise
        self.streams = 0  # codes of streams given out so far: they are never forgotten

    def update(self, rows: Rows, frontier: int) -> tuple[Emission, ...]:
        rows = rows.spelled_out()
        if rows.score.size and rows.tags.shape[1] > 1:
            self.streams = max(self.streams, int(rows.tags[:, 1].max()) + 1)
        # Copies: a batch may be read-only or not, and each would be compiled by itself.
        parts = Partials(rows.tags[:, 0].copy() if rows.tags.size else NOTHING, rows.time // self.window.pane,
                         rows.score.copy(), np.zeros(rows.score.size), rows.time.copy(), rows.number)  # fmt: skip
        if self.window.time:
            self.newest = np.maximum(self.newest, rows.time.max(initial=-FOREVER))
            return self.fold(merged(parts), rows.key, parts.group, frontier)
        keys = int(rows.key.max(initial=-1)) + 1
        new = keys - self.newest.size
        if new > 0:
            self.closed = np.append(self.closed, np.zeros(new, np.int64))
            self.newest = np.append(self.newest, np.full(new, -1))
        listed = crossings(Columns(rows.key, rows.score, rows.time, rows.number), self.newest, self.window.slide)
        return self.fold(merged(parts), rows.key, parts.group, self.newest + 1, listed)

    def fold(
        self, parts: Partials, key: Ints, group: Ints, frontier: int | Ints,
        listed: tuple[Ints, Ints, Ints] | None = None,
    ) -> tuple[Emission, ...]:  # fmt: skip
        """Takes in partial sums, and closes the windows that end by ``frontier``.

        ``group`` and ``key`` introduce the objects: their code and their partition. Count windows: ``listed`` are the
        windows that were completed (partition, end and the number of the object that did it) and ``frontier`` is an
        array.
        """
        self._introduce(group, key)
        self.ahead = merged(_join(self.ahead, parts))
        before, slide = self.closed, self.window.slide
        self.closed = np.maximum(before, frontier)
        same = (self.closed // slide == before // slide) & (self._present(self.closed) == self._present(before))
        if same.all() or not self.candidates:
            return (NO_RANKINGS,)
        ripe = (self.ahead.pane + 1) * self.window.pane <= (self.closed // slide * slide)[self._place(self.ahead)]
        everything = _join(self.inside, _some(self.ahead, ripe))
        self.ahead = _some(self.ahead, ~ripe)
        keys = int(self.groups.key.max()) + 1 if self.window.time else self.closed.size
        mine = self.groups.key[everything.group]
        if keys > 1:
            order = np.lexsort((everything.pane, mine))
            everything, mine = _some(everything, order), mine[order]
        offset, members, start = self._by_partition(mine, everything.group, keys)
        due = Due(np.full(keys, before), np.full(keys, self.closed), *_listed(listed, keys))
        out, first = slide_panes(self.groups, everything, offset, members, start, self._spec, due)
        self.inside = _some(everything, np.arange(mine.size) >= first[mine])
        self._forget()
        return (Rankings.of(out),)

    def finish(self) -> tuple[Emission, ...]:
        if not self.window.time:
            return (NO_RANKINGS,)
        return self.fold(NO_PARTIALS, NOTHING, NOTHING, FOREVER)

    def look_ahead(self, newest: int) -> None:
        self.newest = np.maximum(self.newest, newest)

    def result(self, query: Query, k: int, last: int | None = None) -> Rankings:
        window = self.window
        everything = _join(self.inside, self.ahead)
        end = self.newest // window.slide * window.slide + window.slide
        start = end - (window.extent if last is None else last)
        parts = _some(everything, everything.pane * window.pane >= start[self._place(everything)])
        parts = merged(parts._replace(pane=np.zeros_like(parts.pane)))
        key, score = self.groups.key[parts.group], parts.hi / self._spec.divisor
        order = np.argsort(key, kind="stable")
        codes, first = np.unique(key[order], return_index=True)
        best = [mine[k_best(score[mine], parts.time[mine], parts.number[mine], k, self._spec.ties)]
                for mine in np.split(order, first[1:]) if mine.size]  # fmt: skip
        if not best:
            return NO_RANKINGS
        chosen = np.concatenate(best)
        offset = np.append(0, np.cumsum([some.size for some in best]))
        ends = end[codes] if end.size > 1 else np.full(codes.size, end)
        return Rankings(ends, codes, codes * 0, offset, parts.number[chosen], score[chosen])

    def held(self, since: int = 0) -> Ints:
        number = np.append(self.inside.number, self.ahead.number)
        return np.sort(number[number >= since])

    @property
    def candidates(self) -> int:
        return self.inside.group.size + self.ahead.group.size

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        yield from (("closed", self.closed), ("newest", self.newest), ("streams", np.array([self.streams])))
        for name in ("groups", "inside", "ahead"):
            yield from ((f"{name}.{field}", array) for field, array in getattr(self, name)._asdict().items())

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.closed, self.newest, self.streams = arrays["closed"], arrays["newest"], int(arrays["streams"][0])
        self.groups = Groups(*(arrays[f"groups.{field}"].copy() for field in Groups._fields))  # written to
        self.inside, self.ahead = (Partials(*(arrays[f"{name}.{field}"].copy() for field in Partials._fields))
                                   for name in ("inside", "ahead"))  # fmt: skip

    def keys(self) -> Ints:
        if not self.window.time:
            return np.flatnonzero(self.newest >= 0)
        return np.unique(self.groups.key[self._objects()])

    def rekey(self, code: Ints) -> None:
        known = self._objects()
        self.groups.key[known] = code[self.groups.key[known]]

    def tags(self) -> tuple[Ints, ...]:
        query = cast(TopKIncomplete, self.query)
        coded = query.stream is not None and not isinstance(query.streams, tuple)
        return (self._objects(), *([np.arange(self.streams)] if coded else []))

    def retag(self, codes: tuple[Ints, ...]) -> None:
        code = codes[0]
        kept = np.flatnonzero(code >= 0)
        self.groups = Groups._make(column[kept] for column in self.groups)  # codes keep their order
        self.inside, self.ahead = (part._replace(group=code[part.group]) for part in (self.inside, self.ahead))

    def check(self) -> None:
        groups, known = self.groups, self._objects()
        count = np.bincount(self.inside.group, minlength=groups.parts.size)
        assert (count == groups.parts).all(), "panes in the window were miscounted"
        assert (groups.hi[count == 0] == 0).all() and (groups.lo[count == 0] == 0).all(), "an old sum was left over"
        alive = count > 0
        alive[self.ahead.group] = True
        assert (np.flatnonzero(alive) == known).all(), "an object is forgotten too early or too late"
        slide, pane = self.window.slide, self.window.pane
        closed = self.closed // slide * slide
        ends = closed[self._place(self.inside)]
        assert ((self.inside.pane + 1) * pane <= ends).all(), "a pane is in the sums before its window has closed"
        reach = self._present(self.closed)[self._place(self.inside)] - self.window.extent
        assert (self.inside.pane * pane >= reach).all(), "a pane is out of every window"
        assert ((self.ahead.pane + 1) * pane > closed[self._place(self.ahead)]).all(), "a pane was left out"
        together = merged(self.inside._replace(pane=np.zeros_like(self.inside.pane)))
        exact = groups.lossy[together.group] == 0
        assert (together.hi[exact] == groups.hi[together.group][exact]).all(), "a sum is not that of its panes"

    def _introduce(self, group: Ints, key: Ints) -> None:
        """Makes room for the objects, and notes the partition of those that are new."""
        groups = self.groups
        new = int(group.max(initial=-1)) + 1 - groups.key.size
        if new > 0:
            room = max(new, groups.key.size // 8)
            zeros = np.zeros(room, np.int64), np.zeros(room)
            more = Groups(zeros[0] - 1, zeros[1], zeros[1], zeros[0], zeros[0], zeros[0],
                          np.zeros(room, np.int8))  # fmt: skip
            groups = Groups._make(np.concatenate(pair) for pair in zip(groups, more, strict=True))
        groups.key[group] = key
        self.groups = groups

    def _objects(self) -> Ints:
        """The codes of the objects that are held, ascending."""
        return np.flatnonzero(self.groups.key >= 0)

    def _forget(self) -> None:
        """Drops the objects that have no pane left."""
        gone = self.groups.parts == 0
        gone[self.ahead.group] = False
        self.groups.key[gone] = -1

    def _by_partition(self, key: Ints, group: Ints, keys: int) -> tuple[Ints, Ints, Ints]:
        """Where the partial sums of each partition begin; its groups, and where they begin."""
        seen = np.zeros(self.groups.key.size, bool)
        seen[group] = True
        members = np.flatnonzero(seen)
        if keys > 1:
            members = members[np.argsort(self.groups.key[members], kind="stable")]
        every = np.arange(keys + 1)
        return np.searchsorted(key, every), members, np.searchsorted(self.groups.key[members], every)

    def _present(self, closed: Ints) -> Ints:
        """The end of the first window that is not over; a count window is over with the first object after it."""
        slide = self.window.slide
        return (closed - (not self.window.time)) // slide * slide + slide

    def _place(self, parts: Partials) -> Ints:
        """Where the position of each partition is found in ``closed`` and ``newest``."""
        return np.zeros_like(parts.group) if self.window.time else self.groups.key[parts.group]


def _listed(listed: tuple[Ints, Ints, Ints] | None, keys: int) -> tuple[Ints, Ints, Ints]:
    """Windows by partition: where those of each begin, their ends, and who completed them."""
    if listed is None:
        return NOTHING, NOTHING, NOTHING
    key, end, number = listed
    order = np.argsort(key, kind="stable")
    return np.append(0, np.cumsum(np.bincount(key, minlength=keys))), end[order], number[order]


def _join(parts: Partials, more: Partials) -> Partials:
    return Partials._make(np.concatenate(pair) for pair in zip(parts, more, strict=True))


def _some(parts: Partials, which: NDArray[Any]) -> Partials:
    return Partials._make(column[which] for column in parts)

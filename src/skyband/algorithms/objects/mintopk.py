"""MinTopk: the minimal set of candidates for hopping windows, of all partitions at once."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import FOREVER, NOTHING, Algorithm, Emission, Floats, Ints, Rankings, Rows
from skyband.kernels.common import panes
from skyband.kernels.common.output import roomy_output
from skyband.kernels.common.rows import Closings, Lists
from skyband.kernels.objects import supertopk
from skyband.kernels.objects.minimal import Spec, minimal, window_marks
from skyband.order import ranking
from skyband.query import Query


class State(NamedTuple):
    """The super-top-k lists of all partitions, and the rows whose pane is still open.

    The list of ``partition`` is ``[offset[partition] : offset[partition + 1]]``, best first; the open rows are in the
    order of partition and pane, at most k (and ties) of each pane.
    """

    offset: Ints
    score: Floats
    position: Ints
    arrival: Ints
    open_key: Ints
    open_score: Floats
    open_time: Ints
    open_number: Ints
    closed: Ints  # windows up to here are closed: one position for time windows, one a partition for count windows
    newest: Ints  # the newest position seen, as ``closed``


class MinTopk(Algorithm):
    """MinTopk of Yang et al., *An Optimal Strategy for Monitoring Top-k Queries in Streaming Windows* (EDBT 2011).

    One *super-top-k list*, best first, holds the objects that are in the predicted top k of the present or of any
    future window, and no other (Theorem 3.1). Its first k are the answer of the window that closes next (Lemma 4.4).

    Deviations from Figure 6, which takes objects one by one and walks over all windows that each one enters:

    - A pane is folded in as a whole, after everything but its own top k has been dropped (lines 1–2 of
      UpdateSuperTopk with the lower bound of the youngest window, which sees this pane only).
    - The ending window mark of an object follows from its time; the starting marks and lower bound pointers are found
      for all windows in one pass over the list (:func:`skyband.kernels.objects.minimal.minimal`), O(|list| + windows)
      instead of O(windows) for each object. The pass is put off until twice as much as the list has been added
      or the answer needs it; after every update the set is minimal again.
    - All partitions live in one columnar state.

    Errata: the list holds about k·H(win/slide) objects on uniform scores, not 2k as Theorem 3.2 says; with a slide
    shorter than k every arrival enters it, since the youngest window is not full.
    """

    name = "mintopk"
    serves = frozenset({"hopping"})
    any_last = False

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        window = self.window
        self._ties = self.query.ties == "all"
        self._spec = Spec(self.query.k, self._ties, window.extent, window.slide, window.pane)
        none = np.empty(0)
        start = np.full(1 if window.time else 0, -FOREVER)
        self.state = State(np.zeros(1, np.int64), none, NOTHING, NOTHING, NOTHING, none, NOTHING, NOTHING, start, start)

    def update(self, rows: Rows, frontier: int | Ints) -> tuple[Emission, ...]:
        self.make_room(int(rows.partition.max()) + 1 if rows.partition.size else min(rows.score.size, 1))
        closings, closed, newest = self._closings(rows, frontier)
        ripe, still_open = self._ripe(self._pruned(rows), closings)
        state = self.state
        lists = Lists(state.offset, state.score, state.position, state.arrival)
        out = roomy_output(self._most(lists, ripe, closings, int(newest.max(initial=-FOREVER))))
        lists, out = supertopk.slide_lists(lists, ripe, self._spec, closings, out)
        self.state = State(*lists, *still_open, closed, newest)
        return (Rankings.of(out),)

    def finish(self) -> tuple[Emission, ...]:
        return self.update(Rows(np.empty(0)), FOREVER if self.window.time else 0)

    def look_ahead(self, newest: int) -> None:
        self.state = self.state._replace(newest=np.maximum(self.state.newest, newest))

    def result(self, query: Query, k: int, last: int | None = None) -> Rankings:
        rows = self._everything()
        window = self.window
        end = self.state.newest // window.slide * window.slide + window.slide
        end = np.broadcast_to(end, self._keys)
        start = end - (window.extent if last is None else last)
        rows = _select(rows, rows.position >= start[rows.partition])
        order = ranking(rows.score, rows.position, rows.arrival)
        rows = _select(rows, order[np.argsort(rows.partition[order], kind="stable")])
        partition, first, size = np.unique(rows.partition, return_index=True, return_counts=True)
        bar = rows.score[first + np.minimum(size, k) - 1]
        best = np.arange(rows.partition.size) - np.repeat(first, size) < k
        rows = _select(rows, best | (rows.score == np.repeat(bar, size)) if self._ties else best)
        first = np.searchsorted(rows.partition, partition)
        return Rankings(
            end[partition], partition, partition * 0, np.append(first, rows.partition.size), rows.arrival, rows.score
        )

    def held(self, since: int = 0) -> Ints:
        arrival = np.concatenate([self.state.arrival, self.state.open_number])
        return np.sort(arrival[arrival >= since])

    @property
    def candidates(self) -> int:
        return self.state.arrival.size + self.state.open_number.size

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        return iter(self.state._asdict().items())

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.state = State(**arrays)

    def partitions(self) -> Ints:
        if not self.window.time:
            return np.flatnonzero(self.state.newest >= 0)
        alive = np.diff(self.state.offset) > 0
        alive[self.state.open_key] = True
        return np.flatnonzero(alive)

    def rekey(self, code: Ints) -> None:
        state = self.state
        listed = np.repeat(code[: self._keys], np.diff(state.offset))
        order = np.argsort(listed, kind="stable")
        partitions = int(code.max(initial=-1)) + 1
        offset = np.concatenate([[0], np.cumsum(np.bincount(listed, minlength=partitions))])
        still = code[state.open_key]
        turn = np.argsort(still, kind="stable")
        closed, newest = state.closed, state.newest
        if not self.window.time:
            closed, newest = np.zeros(partitions, np.int64), np.full(partitions, -1)
            kept = code[: self._keys] >= 0
            closed[code[: self._keys][kept]], newest[code[: self._keys][kept]] = state.closed[kept], state.newest[kept]
        self.state = State(offset, state.score[order], state.position[order], state.arrival[order], still[turn],
                           state.open_score[turn], state.open_time[turn], state.open_number[turn],
                           closed, newest)  # fmt: skip

    def renumber(self, arrival: Ints) -> None:
        """Objects are numbered anew, in the same order: what was ``n`` is now ``number[n]``."""
        state = self.state
        self.state = state._replace(arrival=arrival[state.arrival], open_number=arrival[state.open_number])

    def make_room(self, partitions: int) -> None:
        """Empty lists for partitions that are new, so that there are ``partitions`` of them."""
        state, new = self.state, partitions - self._keys
        if new > 0:
            offset = np.append(state.offset, np.full(new, state.offset[-1]))
            closed, newest = state.closed, state.newest
            if not self.window.time:
                closed, newest = np.append(closed, np.zeros(new, np.int64)), np.append(newest, np.full(new, -1))
            self.state = state._replace(offset=offset, closed=closed, newest=newest)

    def check(self) -> None:
        state, spec = self.state, self._spec
        assert state.offset[0] == 0
        assert state.offset[-1] == state.score.size == state.position.size == state.arrival.size
        for partition in range(self._keys):
            part = slice(state.offset[partition], state.offset[partition + 1])
            score, position, arrival = state.score[part], state.position[part], state.arrival[part]
            assert (ranking(score, position, arrival) == np.arange(score.size)).all(), "a list is not in order"
            closed = int(state.closed[partition % state.closed.size])
            present = closed // spec.slide + 1 if self.window.time else -(-closed // spec.slide)
            marks = window_marks(position, spec, present)
            assert minimal(score, marks, spec.k, self._ties).all(), "a list is not minimal"
        assert np.unique(self.held()).size == self.held().size, "an object is held twice"

    @property
    def _keys(self) -> int:
        return self.state.offset.size - 1

    def _pruned(self, rows: Rows) -> panes.Columns:
        """The top k of every partition and pane of the batch."""
        if rows.position.size or rows.partition.size:
            return self._top_of_panes(_columns(rows))
        kept = panes.prune_numbered(rows.score, rows.first_position, self.window.pane, self.query.k, self._ties)
        arrival = rows.arrival[kept] if rows.arrival.size else kept + rows.first_arrival
        return panes.Columns(NOTHING, rows.score[kept], kept + rows.first_position, arrival)

    def _top_of_panes(self, rows: panes.Columns) -> panes.Columns:
        kept = panes.survivors(rows, self._keys, self.window.pane, self.query.k, self._ties)
        return _select(rows, kept)

    def _closings(self, rows: Rows, frontier: int | Ints) -> tuple[Closings, Ints, Ints]:
        """Which windows are due, and where every partition stands afterwards."""
        state = self.state
        if self.window.time:
            newest = np.maximum(state.newest, rows.position.max(initial=-FOREVER))
            due = np.maximum(state.closed, frontier)
            return Closings(state.closed, due, NOTHING, NOTHING, NOTHING), due, newest
        newest = state.newest.copy()
        if isinstance(frontier, np.ndarray):
            return self._closings_by_number(rows, frontier, newest)
        if rows.score.size and not rows.position.size and not rows.partition.size:
            partition, end, arrival = self._crossings(rows, newest)
        else:
            partition, end, arrival = panes.crossings(_columns(rows), newest, self.window.slide)
        order = np.argsort(partition, kind="stable")
        offset = np.concatenate([[0], np.cumsum(np.bincount(partition, minlength=self._keys))])
        closings = Closings(state.closed, newest + 1, offset, end[order], arrival[order])
        return closings, newest + 1, newest

    def _closings_by_number(self, rows: Rows, frontier: Ints, newest: Ints) -> tuple[Closings, Ints, Ints]:
        """Rows of a sequence in any order, pruned already: windows close as far as all their numbers have come."""
        if rows.score.size:
            full = rows.spelled_out()
            np.maximum.at(newest, full.partition, full.position)
        due = np.maximum(self.state.closed, frontier)
        slides = due // self.window.slide - self.state.closed // self.window.slide
        offset = np.append(0, np.cumsum(slides))
        end = np.arange(offset[-1]) - np.repeat(offset[:-1], slides) + 1
        end = (end + np.repeat(self.state.closed // self.window.slide, slides)) * self.window.slide
        return Closings(self.state.closed, due, offset, end, end * 0), due, newest

    def _crossings(self, rows: Rows, newest: Ints) -> tuple[Ints, Ints, Ints]:
        """:func:`panes.crossings` for one partition of consecutive numbers, by arithmetic."""
        slide = self.window.slide
        end = np.arange((rows.first_position // slide + 1) * slide, rows.first_position + rows.score.size + 1, slide)
        newest[0] = rows.first_position + rows.score.size - 1
        place = end - 1 - rows.first_position
        return np.zeros_like(end), end, rows.arrival[place] if rows.arrival.size else place + rows.first_arrival

    def _ripe(self, rows: panes.Columns, closings: Closings) -> tuple[Lists, panes.Columns]:
        """Joins the open rows; splits off those whose pane is closed now, as lists by partition."""
        state = self.state
        partition = rows.partition if rows.partition.size else np.zeros(rows.score.size, np.int64)
        rows = rows._replace(partition=partition)
        if state.open_key.size:
            both = zip((state.open_key, state.open_score, state.open_time, state.open_number), rows, strict=True)
            rows = self._top_of_panes(panes.Columns._make(np.concatenate(pair) for pair in both))
        frontier = closings.frontier[0] if self.window.time else closings.frontier[rows.partition]
        ripe = rows.position // self.window.pane * self.window.pane + self.window.pane <= frontier
        if ripe.all():
            closed, still_open = rows, _select(rows, slice(0, 0))
        else:
            closed, still_open = _select(rows, ripe), _select(rows, ~ripe)
        offset = np.concatenate([[0], np.cumsum(np.bincount(closed.partition, minlength=self._keys))])
        return Lists(offset, closed.score, closed.position, closed.arrival), still_open

    def _most(self, lists: Lists, ripe: Lists, closings: Closings, newest: int) -> int:
        """Rows that will come out, about or at most: room that is not used costs nothing."""
        objects = lists.arrival.size + ripe.arrival.size
        if not objects:
            return 0
        slide, extent = self.window.slide, self.window.extent
        windows = closings.end.size
        if self.window.time:
            oldest = int(min(lists.position.min(initial=FOREVER), ripe.position.min(initial=FOREVER)))
            first = max(int(closings.closed[0]), oldest)
            windows = self._keys * max(0, min(int(closings.frontier[0]), newest + extent) // slide - first // slide)
        rows = min(windows * min(self.query.k, objects), objects * (extent // slide + 1))
        return min(rows, 1 << 24)

    def _everything(self) -> panes.Columns:
        state = self.state
        partition = np.concatenate([np.repeat(np.arange(self._keys), np.diff(state.offset)), state.open_key])
        order = np.argsort(partition, kind="stable")
        columns = panes.Columns(
            partition,
            np.concatenate([state.score, state.open_score]),
            np.concatenate([state.position, state.open_time]),
            np.concatenate([state.arrival, state.open_number]),
        )
        return _select(columns, order)


def _columns(rows: Rows) -> panes.Columns:
    full = rows.spelled_out()
    return panes.Columns(rows.partition, full.score, full.position, full.arrival)


def _select(rows: panes.Columns, which: Any) -> panes.Columns:
    partition = rows.partition[which] if rows.partition.size else rows.partition
    return panes.Columns(partition, rows.score[which], rows.position[which], rows.arrival[which])

"""MinTopk: the minimal set of candidates for hopping windows, of all partitions at once."""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import FOREVER, NOTHING, Algorithm, Emission, Floats, FromPanes, Ints, Rankings, Rows
from skyband.kernels.common import panes
from skyband.kernels.common.output import roomy_output
from skyband.kernels.common.rows import Closings, Lists
from skyband.kernels.common.sorting import tied
from skyband.kernels.objects import supertopk
from skyband.kernels.objects.minimal import Asked, minimal_lists
from skyband.order import ranking
from skyband.query import Query
from skyband.storage import blocks
from skyband.storage.blocks import ARRIVAL, PARTITION, block, column


@block(version=1)
class Stand(NamedTuple):
    """Where the windows stand: one entry for all partitions for time windows, one for each for count windows."""

    closed: Annotated[Ints, column("partitions")]  # windows up to here are closed
    newest: Annotated[Ints, column("partitions", fill=-1)]  # the newest position seen


@block(version=1)
class State(NamedTuple):
    """The super-top-k lists of all partitions, best first, and the rows whose pane is still open.

    The open rows are in the order of partition and pane, at most k (and ties) of each pane.
    """

    lists: Lists
    open: panes.Columns
    stand: Stand


@block(version=1)
class Saved(NamedTuple):
    """:class:`State` as it is saved: score and position by arrival number, in the order of the rows kept beside it.

    They are mostly among their columns, and what is equal is written once (:mod:`skyband.storage.encoding`).
    """

    size: Annotated[Ints, column("partitions")]  # objects in each list
    listed: Annotated[Ints, column("lists", holds=ARRIVAL)]
    open_partition: Annotated[Ints, column("open", holds=PARTITION)]
    open_arrival: Annotated[Ints, column("open", holds=ARRIVAL)]
    score: Annotated[Floats, column("objects")]
    position: Annotated[Ints, column("objects")]
    stand: Stand


class MinTopk(FromPanes):
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
    takes_over = frozenset({"hopping"})

    def __init__(self, *queries: Query, **options: float) -> None:
        super().__init__(*queries, **options)
        window = self.window
        self._ties = self.query.ties == "all"
        self._asked = Asked(self.query.k, self._ties, window.extent, window.slide, window.pane, window.time)
        start = np.full(1 if window.time else 0, -FOREVER)
        self.state = blocks.empty(State, stand=Stand(start, start),
                                  lists=blocks.empty(Lists)._replace(offset=np.zeros(1, np.int64)))  # fmt: skip
        self._touched: Ints = NOTHING  # the partitions of the rows of the last batch

    def update(self, rows: Rows, frontier: int) -> tuple[Emission, ...]:
        self._make_room(rows, 0)
        return self._advance(rows, *(self._until(rows, frontier) if self.window.time else self._crossed(rows)))

    def fold(self, rows: Rows, frontier: Ints) -> tuple[Emission, ...]:
        time = self.window.time
        self._make_room(rows, 0 if time else frontier.size)
        return self._advance(rows, *(self._until(rows, int(frontier[0])) if time else self._reached(rows, frontier)))

    def finish(self) -> tuple[Emission, ...]:
        return self.update(Rows(np.empty(0)), FOREVER if self.window.time else 0)

    def look_ahead(self, newest: int) -> None:
        stand = self.state.stand
        self.state = self.state._replace(stand=stand._replace(newest=np.maximum(stand.newest, newest)))

    def result(self, query: Query, k: int, last: int | None = None) -> Rankings:
        rows = self._everything()
        window = self.window
        end = window.first_end(self.state.stand.newest)
        end = np.broadcast_to(end, self._partitions)
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
        lists = self.state.lists
        listed = lists.arrival
        if since and 2 * self._touched.size < self._partitions:
            listed = listed[_places(lists.offset, np.unique(self._touched))]
        arrival = np.concatenate([listed, self.state.open.arrival])
        return np.sort(arrival[arrival >= since])

    @property
    def candidates(self) -> int:
        return self.state.lists.arrival.size + self.state.open.arrival.size

    def held_rows(self) -> Rows:
        rows = self._everything()
        partition, score, position, arrival = _select(rows, _by_number(rows.arrival))
        return Rows(score, position, partition, arrival)

    def take_over(self, other: Algorithm) -> None:
        assert isinstance(other, MinTopk)
        self.state = blocks.copied(other.state)
        lists, still_open, stand = self.state
        keep = minimal_lists(lists, self._asked, self._present())
        offset = np.append(0, np.cumsum(keep))[lists.offset]
        lists = blocks.taken(lists, "objects", keep)._replace(offset=offset)
        self.state = State(lists, self._top_of_panes(still_open), stand)

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        return blocks.saved(Saved, [_to_save(self.state)])

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        (saved,) = blocks.restored(Saved, arrays)
        self.state = _from_saved(saved)
        self._touched = NOTHING

    @property
    def nbytes(self) -> int:
        return blocks.nbytes(self.state)

    def partitions(self) -> Ints:
        if not self.window.time:
            return np.flatnonzero(self.state.stand.newest >= 0)
        alive = np.diff(self.state.lists.offset) > 0
        alive[self.state.open.partition] = True
        return np.flatnonzero(alive)

    def rekey(self, code: Ints) -> None:
        lists, still_open, stand = self.state
        partitions = int(code.max(initial=-1)) + 1
        listed = np.repeat(code[: self._partitions], np.diff(lists.offset))
        offset = np.append(0, np.cumsum(np.bincount(listed, minlength=partitions)))
        lists = blocks.taken(lists, "objects", np.argsort(listed, kind="stable"))._replace(offset=offset)
        still_open = blocks.renumbered(still_open, PARTITION, code)
        still_open = blocks.taken(still_open, "rows", np.argsort(still_open.partition, kind="stable"))
        if not self.window.time:
            former, kept = np.zeros(partitions, np.int64), np.flatnonzero(code >= 0)
            former[code[kept]] = kept
            stand = blocks.taken(blocks.resized(stand, "partitions", code.size), "partitions", former)
        self.state = State(lists, still_open, stand)
        touched = code[self._touched]
        self._touched = touched[touched >= 0]

    def renumber(self, arrival: Ints) -> None:
        self.state = blocks.renumbered(self.state, ARRIVAL, arrival)

    def compact(self) -> Ints:
        # From the back of the lists on, since ties lie newest first in them: the newer of two that tie keeps the higher
        # number. Numbers that are consecutive then take a few bytes.
        lists, still_open, _ = self.state
        last = still_open.arrival
        if tied(still_open.partition, still_open.score, still_open.position).any():
            last = np.sort(last)
        former = np.append(lists.arrival[::-1], last)
        new = np.zeros(former.max(initial=-1) + 1, np.int64)
        new[former] = np.arange(former.size)
        self.renumber(new)
        return former

    def check(self) -> None:
        blocks.check(self.state)
        lists = self.state.lists
        assert lists.offset[0] == 0
        assert lists.offset[-1] == lists.score.size
        for partition in range(self._partitions):
            part = slice(lists.offset[partition], lists.offset[partition + 1])
            score, position, arrival = lists.score[part], lists.position[part], lists.arrival[part]
            assert (ranking(score, position, arrival) == np.arange(score.size)).all(), "a list is not in order"
        assert minimal_lists(lists, self._asked, self._present()).all(), "a list is not minimal"
        assert np.unique(self.held()).size == self.held().size, "an object is held twice"

    @property
    def _partitions(self) -> int:
        return self.state.lists.offset.size - 1

    def _present(self) -> Ints:
        """The present window of each partition: its end, in slides."""
        closed, slide = self.state.stand.closed, self.window.slide
        present: Ints = closed // slide + 1 if self.window.time else -(-closed // slide)
        return np.broadcast_to(present, self._partitions).copy()

    def _make_room(self, rows: Rows, partitions: int) -> None:
        """Empty lists for partitions that are new: those of the rows, and so many at least."""
        lists, still_open, stand = self.state
        of_rows = int(rows.partition.max()) + 1 if rows.partition.size else min(rows.score.size, 1)
        new = max(partitions, of_rows) - self._partitions
        if new > 0:
            lists = lists._replace(offset=np.append(lists.offset, np.full(new, lists.offset[-1])))
            stand = stand if self.window.time else blocks.resized(stand, "partitions", self._partitions + new)
            self.state = State(lists, still_open, stand)

    def _advance(self, rows: Rows, closings: Closings, stand: Stand) -> tuple[Emission, ...]:
        self._touched = rows.partition if rows.partition.size else np.arange(min(rows.score.size, 1))
        ripe, still_open = self._ripe(self._pruned(rows), closings)
        lists, out = self.state.lists, roomy_output(self._most(ripe, closings, int(stand.newest.max(initial=-FOREVER))))
        if ripe.score.size or self._moves(closings):
            lists, out = supertopk.slide_lists(lists, ripe, self._asked, closings, out)
        self.state = State(lists, still_open, stand)
        return (Rankings.of(out),)

    def _pruned(self, rows: Rows) -> panes.Columns:
        """The top k of every partition and pane of the batch."""
        if rows.position.size or rows.partition.size:
            return self._top_of_panes(_columns(rows))
        kept = panes.prune_numbered(rows.score, rows.first_position, self.window.pane, self.query.k, self._ties)
        arrival = rows.arrival[kept] if rows.arrival.size else kept + rows.first_arrival
        return panes.Columns(NOTHING, rows.score[kept], kept + rows.first_position, arrival)

    def _top_of_panes(self, rows: panes.Columns) -> panes.Columns:
        kept = panes.survivors(rows, self._partitions, self.window.pane, self.query.k, self._ties)
        return _select(rows, kept)

    def _until(self, rows: Rows, frontier: int) -> tuple[Closings, Stand]:
        """Which windows over event time are due, and where they stand afterwards."""
        stand = self.state.stand
        newest = np.maximum(stand.newest, rows.position.max(initial=-FOREVER))
        due = np.maximum(stand.closed, frontier)
        return Closings(stand.closed, due, NOTHING, NOTHING, NOTHING), Stand(due, newest)

    def _crossed(self, rows: Rows) -> tuple[Closings, Stand]:
        """The same for windows of count whose rows come in order: those that the newest rows end."""
        stand = self.state.stand
        newest = stand.newest.copy()
        if rows.score.size and not rows.position.size and not rows.partition.size:
            partition, end, arrival = self._crossings(rows, newest)
        else:
            partition, end, arrival = panes.crossings(_columns(rows), newest, self.window.slide)
        order = np.argsort(partition, kind="stable")
        offset = np.concatenate([[0], np.cumsum(np.bincount(partition, minlength=self._partitions))])
        return Closings(stand.closed, newest + 1, offset, end[order], arrival[order]), Stand(newest + 1, newest)

    def _reached(self, rows: Rows, frontier: Ints) -> tuple[Closings, Stand]:
        """The same for windows of count whose rows come in any order: those that the frontiers have reached."""
        newest = self.state.stand.newest.copy()
        if rows.score.size:
            full = rows.spelled_out()
            np.maximum.at(newest, full.partition, full.position)
        closed, slide = self.state.stand.closed, self.window.slide
        due = np.maximum(closed, frontier)
        slides = due // slide - closed // slide
        offset = np.append(0, np.cumsum(slides))
        end = np.arange(offset[-1]) - np.repeat(offset[:-1], slides) + 1
        end = (end + np.repeat(closed // slide, slides)) * slide
        return Closings(closed, due, offset, end, end * 0), Stand(due, newest)

    def _moves(self, closings: Closings) -> bool:
        """Whether a window closes, or the present window of a partition is another one than before."""
        slide, closed, frontier = self.window.slide, closings.closed, closings.frontier
        if self.window.time:
            return bool((frontier // slide > closed // slide).any())
        return bool(closings.end.size or (-(-frontier // slide) > -(-closed // slide)).any())

    def _crossings(self, rows: Rows, newest: Ints) -> tuple[Ints, Ints, Ints]:
        """:func:`panes.crossings` for one partition of consecutive positions, by arithmetic."""
        slide = self.window.slide
        end = np.arange(self.window.first_end(rows.first_position), rows.first_position + rows.score.size + 1, slide)
        newest[0] = rows.first_position + rows.score.size - 1
        place = end - 1 - rows.first_position
        return np.zeros_like(end), end, rows.arrival[place] if rows.arrival.size else place + rows.first_arrival

    def _ripe(self, rows: panes.Columns, closings: Closings) -> tuple[Lists, panes.Columns]:
        """Joins the open rows; splits off those whose pane is closed now, as lists by partition."""
        partition = rows.partition if rows.partition.size else np.zeros(rows.score.size, np.int64)
        rows = rows._replace(partition=partition)
        if self.state.open.partition.size:
            both = zip(self.state.open, rows, strict=True)
            rows = self._top_of_panes(panes.Columns._make(np.concatenate(pair) for pair in both))
        frontier = closings.frontier[0] if self.window.time else closings.frontier[rows.partition]
        ripe = (self.window.pane_of(rows.position) + 1) * self.window.pane <= frontier
        if ripe.all():
            closed, still_open = rows, _select(rows, slice(0, 0))
        else:
            closed, still_open = _select(rows, ripe), _select(rows, ~ripe)
        offset = np.concatenate([[0], np.cumsum(np.bincount(closed.partition, minlength=self._partitions))])
        return Lists(offset, closed.score, closed.position, closed.arrival), still_open

    def _most(self, ripe: Lists, closings: Closings, newest: int) -> int:
        """Rows that will come out, about or at most: room that is not used costs nothing."""
        lists = self.state.lists
        objects = lists.arrival.size + ripe.arrival.size
        if not objects:
            return 0
        slide, extent = self.window.slide, self.window.extent
        windows = closings.end.size
        if self.window.time:
            oldest = int(min(lists.position.min(initial=FOREVER), ripe.position.min(initial=FOREVER)))
            first = max(int(closings.closed[0]), oldest)
            windows = self._partitions * max(
                0, min(int(closings.frontier[0]), newest + extent) // slide - first // slide
            )
        rows = min(windows * min(self.query.k, objects), objects * (extent // slide + 1))
        return min(rows, 1 << 24)

    def _everything(self) -> panes.Columns:
        """The objects of the lists, partition by partition, and then the open rows."""
        lists, still_open = self.state.lists, self.state.open
        listed = np.repeat(np.arange(self._partitions), np.diff(lists.offset))
        both = zip((listed, lists.score, lists.position, lists.arrival), still_open, strict=True)
        return panes.Columns._make(np.concatenate(pair) for pair in both)


def _to_save(state: State) -> Saved:
    lists, still_open, stand = state
    order = _by_number(np.append(lists.arrival, still_open.arrival))
    score, position = np.append(lists.score, still_open.score), np.append(lists.position, still_open.position)
    return Saved(np.diff(lists.offset), lists.arrival, still_open.partition, still_open.arrival, score[order],
                 position[order], stand)  # fmt: skip


def _from_saved(saved: Saved) -> State:
    arrival, listed = np.append(saved.listed, saved.open_arrival), saved.listed.size
    place = arrival if _dense(arrival) else np.argsort(np.argsort(arrival))
    score, position = saved.score[place], saved.position[place]
    lists = Lists(np.append(0, np.cumsum(saved.size)), score[:listed], position[:listed], saved.listed)
    still_open = panes.Columns(saved.open_partition, score[listed:], position[listed:], saved.open_arrival)
    return State(lists, still_open, saved.stand)


def _dense(arrival: Ints) -> bool:
    """Whether numbers, of which each is there once, are 0, 1, … in some order."""
    return bool(arrival.max(initial=-1) < arrival.size)


def _by_number(arrival: Ints) -> Ints:
    """An order by arrival number."""
    if not _dense(arrival):
        return np.argsort(arrival)
    order = np.empty(arrival.size, np.int64)
    order[arrival] = np.arange(arrival.size)
    return order


def _places(offset: Ints, partitions: Ints) -> Ints:
    """Where the lists of some partitions lie."""
    size = offset[partitions + 1] - offset[partitions]
    place: Ints = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size) + np.repeat(offset[partitions], size)
    return place


def _columns(rows: Rows) -> panes.Columns:
    full = rows.spelled_out()
    return panes.Columns(rows.partition, full.score, full.position, full.arrival)


def _select(rows: panes.Columns, which: Any) -> panes.Columns:
    partition = rows.partition[which] if rows.partition.size else rows.partition
    return panes.Columns(partition, rows.score[which], rows.position[which], rows.arrival[which])

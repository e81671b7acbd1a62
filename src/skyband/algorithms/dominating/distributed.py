"""Exact top-k dominating points of windows whose rows lie in several parts, in three rounds of messages.

A part is a task that holds some of the rows of a stream: any rows, as long as each is in one part. When a hopping
window closes, in all parts at the same position,

1. each part *proposes* the k-skyband of its own rows in the window (:class:`Proposing`): a point that k others dominate
   is not among the top k, since each of these dominates one point more than it does;
2. each part *counts*, for the proposals of all parts, how many of its own points each of them dominates
   (:class:`Counting`);
3. the counts of a proposal, one from each part, are added up (:func:`totals`): that is its score, since every point is
   in one part. The best k of all that were proposed are the answer.

A part keeps its rows pane by pane, since a window is a run of whole panes. Of a pane that is closed the first round
keeps the k-skyband, which is all that later windows need; the second round keeps the points, and no other column.

This is ours. Kontaki, Papadopoulos and Manolopoulos (TKDE 2012) know one stream and one machine; that the top k lie in
the k-skyband, and that k-skybands can be merged, is shown in :mod:`.points`.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from skyband.algorithms.contract import FOREVER, Floats, Ints
from skyband.algorithms.dominating.points import dominated, k_skyband
from skyband.algorithms.rounds import Count, Panes, Points, Proposal, Scored
from skyband.query import Query


class Asked:
    """What all parts must know; makes the parts (:class:`skyband.algorithms.rounds.Rounds`).

    Args:
        query: a ranking of dominating points over hopping windows of event time, not partitioned.
        position: the column of the rows that tells their position, as whole numbers.
        tie: the one that tells the newer of two rows of one position.
    """

    def __init__(self, query: Query, position: str, tie: str) -> None:
        self.k, self.ties, self.window, self.measure = query.k, query.ties == "all", query.window, query.measure()
        self.position, self.tie = position, tie

    def proposing(self, part: int, panes: Panes, frontier: int = -FOREVER) -> "Proposing":
        """The first round of a part; ``frontier`` says where it stands: no row before it is taken in any more."""
        return Proposing(self, part, panes, frontier)

    def counting(self, part: int, panes: Panes) -> "Counting":
        """The second round of a part."""
        return Counting(self, part, panes)

    def totals(self, counts: Iterable[Count]) -> list[Scored]:
        """The third round."""
        return totals(counts)

    def positions(self, rows: pa.Table) -> Ints:
        """Of rows or of points."""
        return _whole(rows, self.position)

    def points(self, rows: pa.Table) -> Floats:
        """Smaller is better in every dimension."""
        return self.measure.evaluate(rows).values

    def skyband(self, rows: pa.Table) -> pa.Table:
        """The rows that can be among the top k of any rows that they are part of."""
        age = () if self.ties else (self.positions(rows), _whole(rows, self.tie))
        return rows.take(pa.array(k_skyband(self.points(rows), self.k, *age)))

    def ends(self, panes: Iterable[int], closed: int, frontier: int) -> list[int]:
        """The ends of the windows that hold one of these panes and close when the frontier moves."""
        window, ends = self.window, set[int]()
        for pane in panes:
            first = max(window.first_end(pane * window.pane), window.first_end(closed))
            last = min(window.last_end(pane * window.pane), window.last_closed(frontier))
            ends.update(range(first, last + 1, window.slide))
        return sorted(ends)


class Part:
    """The panes of a part: what both rounds do with them."""

    def __init__(self, asked: Asked, part: int, panes: Panes) -> None:
        self.asked, self.part, self.panes = asked, part, panes

    def _add(self, rows: pa.Table) -> None:
        pane = self.asked.window.pane_of(self.asked.positions(rows))
        for one in np.unique(pane).tolist():
            new = rows.filter(pa.array(pane == one))
            self.panes.put(one, pa.concat_tables([self.panes.get(one), new]) if one in self.panes.sizes else new)

    def _panes_of(self, end: int) -> list[int]:
        """The panes of a window."""
        window = self.asked.window
        first, last = window.pane_of(end - window.extent), window.pane_of(end)
        return sorted(pane for pane in self.panes.sizes if first <= pane < last)

    def _forget(self, frontier: int) -> None:
        """Drops the panes that lie before all windows that are still open."""
        window = self.asked.window
        floor = window.first_end(frontier) - window.extent
        for pane in [pane for pane in self.panes.sizes if (pane + 1) * window.pane <= floor]:
            self.panes.drop(pane)


class Proposing(Part):
    """The first round of a part.

    Args:
        frontier: where it stands: no row before it is taken in any more.

    Attributes:
        late: how many rows came too late.
    """

    def __init__(self, asked: Asked, part: int, panes: Panes, frontier: int = -FOREVER) -> None:
        super().__init__(asked, part, panes)
        self.frontier, self.late = frontier, 0

    def take(self, rows: pa.Table) -> Points:
        """Takes rows in, in any order; the columns are the same each time."""
        on_time = self.asked.positions(rows) >= self.frontier
        self.late += int((~on_time).sum())
        rows = rows.filter(pa.array(on_time))
        self._add(rows)
        columns = {str(i): column for i, column in enumerate(self.asked.points(rows).T)}
        return Points(self.part, pa.table({self.asked.position: self.asked.positions(rows), **columns}))

    def advance(self, frontier: int) -> Iterator[Proposal]:
        """Moves the frontier; closes windows as the proposals are read, and is done when all of them were."""
        best = dict[int, pa.Table]()  # the k-skyband of each pane that closes now, or has closed before
        for end in self.asked.ends(self.panes.sizes, self.frontier, frontier):
            panes = self._panes_of(end)
            best |= {pane: self.asked.skyband(self.panes.get(pane)) for pane in panes if pane not in best}
            yield Proposal(end, self.part, self.asked.skyband(pa.concat_tables([best[pane] for pane in panes])))
        for pane, rows in best.items():
            if rows.num_rows < self.panes.sizes[pane]:
                self.panes.put(pane, rows)
        self.frontier = max(self.frontier, frontier)
        self._forget(self.frontier)


class Counting(Part):
    """The second round of a part."""

    def take(self, points: Points) -> None:
        """Takes in what the first round of this part sends, before what it proposes with it."""
        assert points.part == self.part
        self._add(points.rows)

    def count(self, proposals: Iterable[Proposal], frontier: int) -> Iterator[Count]:
        """Answers what all parts proposed up to this frontier, and is done when all answers were read.

        The proposals may come in any order; in that of their windows each pane is read once.
        """
        read = dict[int, Floats]()  # the points of the panes of the present window
        for end, part, rows in proposals:
            read = {pane: read[pane] if pane in read else self._points(pane) for pane in self._panes_of(end)}
            points = self.asked.points(rows)
            counts = sum((dominated(points, held) for held in read.values()), np.zeros(len(points), np.int64))
            yield Count(end, part, counts, rows if part == self.part else None)
        self._forget(frontier)

    def _points(self, pane: int) -> Floats:
        columns = self.panes.get(pane).drop_columns([self.asked.position]).columns
        return np.stack([column.to_numpy() for column in columns], axis=1)


def totals(counts: Iterable[Count]) -> list[Scored]:
    """The third round, given the counts of all parts, in any order."""
    scores, rows = dict[tuple[int, int], Ints](), dict[tuple[int, int], pa.Table]()
    for end, part, some, proposed in counts:
        scores[end, part] = scores[end, part] + some if (end, part) in scores else some
        if proposed is not None:
            rows[end, part] = proposed
    return [Scored(end, proposed, scores[end, part]) for (end, part), proposed in rows.items()]


def _whole(rows: pa.Table, name: str) -> Ints:
    numbers: Ints = rows.column(name).to_numpy()
    return numbers

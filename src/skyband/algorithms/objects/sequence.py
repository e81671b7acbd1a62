"""Which numbers of a sequence have come, so that count windows over rows in any order know when they are complete."""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import Ints
from skyband.query.windows import Window
from skyband.storage import blocks
from skyband.storage.blocks import PARTITION, block, column


class Counts(NamedTuple):
    """Numbers that have come, by partition and pane."""

    partition: Ints
    pane: Ints
    come: Ints
    highest: Ints  # the highest of them
    last: Ints  # the highest of them that is an object; -1 if none is

    def take(self, which: NDArray[np.bool_]) -> "Counts":
        """Some of the counts."""
        return Counts._make(column[which] for column in self)


@block(version=1)
class Come(NamedTuple):
    """The numbers that have come: how far each partition is, and the panes that are not complete.

    The panes are in the order of partition and pane.
    """

    complete: Annotated[Ints, column("partitions")]  # every number below has come, or is not waited for any more
    highest: Annotated[Ints, column("partitions", fill=-1)]  # number that has come
    last: Annotated[Ints, column("partitions", fill=-1)]  # object below ``complete``
    partition: Annotated[Ints, column("panes", holds=PARTITION)]
    pane: Annotated[Ints, column("panes")]
    come: Annotated[Ints, column("panes")]  # how many numbers
    newest: Annotated[Ints, column("panes")]  # the last of them that is an object


class Sequence:
    """Tells the frontiers for :meth:`skyband.algorithms.contract.FromPanes.fold`. Each number must come once."""

    def __init__(self, window: Window) -> None:
        self.pane = window.pane
        self.late = window.late
        self.state = blocks.empty(Come)

    @property
    def complete(self) -> Ints:
        """Of each partition: every number below it has come, or is not waited for any more."""
        return self.state.complete

    @property
    def frontier(self) -> Ints:
        """Of each partition: windows up to here can be closed. One closes with an object, and not with a hole."""
        return np.minimum(self.state.complete, self.state.last + 1)

    def take_in(self, counts: Counts, partitions: int) -> NDArray[np.bool_]:
        """Takes in the counts of a batch, after which there are so many partitions; says which came too late."""
        if partitions > self.state.complete.size:
            self.state = blocks.resized(self.state, "partitions", partitions)
        late = counts.pane * self.pane < self.state.complete[counts.partition]
        self._add(counts.take(~late))
        return late

    def end(self) -> None:
        """No number comes any more."""
        self._complete(self.state.highest + 1)
        self._leave(self.state.pane >= 0)

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        return blocks.saved(Come, [self.state])

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        (self.state,) = blocks.restored(Come, arrays)

    def check(self) -> None:
        """Asserts that no pane is complete, and that they are in order."""
        blocks.check(self.state)
        state = self.state
        assert (np.lexsort((state.pane, state.partition)) == np.arange(state.pane.size)).all(), "panes are not in order"
        waiting = state.pane - state.complete[state.partition] // self.pane
        assert (waiting >= 0).all(), "a pane is kept that is complete"
        assert (state.come <= self.pane).all() and (state.come[waiting == 0] < self.pane).all(), "a pane is overfull"
        assert (state.complete % self.pane == 0)[state.partition].all(), "a pane is complete in part"

    def _add(self, counts: Counts) -> None:
        state = self.state
        highest = state.highest.copy()
        np.maximum.at(highest, counts.partition, counts.highest)
        partition, pane = np.append(state.partition, counts.partition), np.append(state.pane, counts.pane)
        order = np.lexsort((pane, partition))
        partition, pane = partition[order], pane[order]
        first = np.append(True, (np.diff(partition) != 0) | (np.diff(pane) != 0))[: order.size]
        come, newest = np.append(state.come, counts.come)[order], np.append(state.newest, counts.last)[order]
        if order.size:
            come = np.add.reduceat(come, np.flatnonzero(first))
            newest = np.maximum.reduceat(newest, np.flatnonzero(first))
        self.state = Come(state.complete, highest, state.last, partition[first], pane[first], come, newest)
        if self.late is not None:  # numbers that are not waited for any more
            self._complete(np.maximum(state.complete, (highest - self.late) // self.pane * self.pane))
        self._advance()

    def _advance(self) -> None:
        """Moves ``complete`` over the full panes that follow it without a gap."""
        self._leave(self.state.pane * self.pane < self.state.complete[self.state.partition])
        state = self.state
        start = np.searchsorted(state.partition, state.partition)
        rank = np.arange(state.partition.size) - start
        gap = (state.pane - rank != state.complete[state.partition] // self.pane) | (state.come < self.pane)
        gaps = np.cumsum(gap)
        full = gaps == (gaps - gap)[start] if gap.size else gap
        complete = state.complete.copy()
        np.maximum.at(complete, state.partition[full], (state.pane[full] + 1) * self.pane)
        self._complete(complete)
        self._leave(full)

    def _complete(self, complete: Ints) -> None:
        self.state = self.state._replace(complete=complete)

    def _leave(self, which: NDArray[np.bool_]) -> None:
        """These panes lie below ``complete`` now."""
        last = self.state.last.copy()
        np.maximum.at(last, self.state.partition[which], self.state.newest[which])
        self.state = blocks.taken(self.state._replace(last=last), "panes", ~which)

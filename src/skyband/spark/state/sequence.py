"""Counts which numbers of a sequence column have come, to know when a count window is complete."""

import numpy as np
from numpy.typing import NDArray

from skyband.algorithms.contract import NOTHING, Ints
from skyband.query.windows import Window


class Sequence:
    """Counts the numbers that came, by partition and pane. Each number must come once.

    Attributes:
        complete: for each partition: every number below this has come, or is no longer waited for.
        highest: for each partition: the highest number that has come.
        last: for each partition: the last object below ``complete``. (Not every number is an object, and a window
            closes only with an object.)
    """

    def __init__(self, window: Window) -> None:
        self.pane = window.pane
        self.late = window.late
        self.complete: Ints = NOTHING
        self.highest: Ints = NOTHING
        self.last: Ints = NOTHING
        self._key: Ints = NOTHING  # of panes that are not complete, in the order of partition and pane
        self._pane: Ints = NOTHING
        self._count: Ints = NOTHING  # numbers that have come
        self._last: Ints = NOTHING  # the last of them that is an object

    def make_room(self, keys: int) -> None:
        """Partitions that are new, so that there are ``partitions`` of them."""
        new = max(0, keys - self.complete.size)
        self.complete = np.append(self.complete, np.zeros(new, np.int64))
        self.highest = np.append(self.highest, np.full(new, -1))
        self.last = np.append(self.last, np.full(new, -1))

    @property
    def frontier(self) -> Ints:
        """For each partition: the position up to which windows can be closed."""
        return np.minimum(self.complete, self.last + 1)

    def take_in(self, key: Ints, pane: Ints, count: Ints, highest: Ints, last: Ints) -> None:
        """Adds the counts of a batch; they must not be of panes below ``complete``."""
        np.maximum.at(self.highest, key, highest)
        key, pane = np.append(self._key, key), np.append(self._pane, pane)
        order = np.lexsort((pane, key))
        first = np.append(True, (np.diff(key[order]) != 0) | (np.diff(pane[order]) != 0))[: order.size]
        self._key, self._pane = key[order][first], pane[order][first]
        if order.size:
            self._count = np.add.reduceat(np.append(self._count, count)[order], np.flatnonzero(first))
            self._last = np.maximum.reduceat(np.append(self._last, last)[order], np.flatnonzero(first))
        if self.late is not None:  # smaller numbers are no longer waited for
            self.complete = np.maximum(self.complete, (self.highest - self.late) // self.pane * self.pane)
        self._advance()

    def end(self) -> None:
        """Ends the stream: missing numbers are no longer waited for."""
        self.complete = self.highest + 1
        self._leave(self._pane >= 0)

    def arrays(self) -> dict[str, Ints]:
        return {"complete": self.complete, "highest": self.highest, "last": self.last, "open.key": self._key,
                "open.pane": self._pane, "open.count": self._count, "open.last": self._last}  # fmt: skip

    def restore(self, arrays: dict[str, NDArray[np.int64]]) -> None:
        self.complete, self.highest, self.last = arrays["complete"], arrays["highest"], arrays["last"]
        self._key, self._pane = arrays["open.key"], arrays["open.pane"]
        self._count, self._last = arrays["open.count"], arrays["open.last"]

    def _advance(self) -> None:
        """Moves ``complete`` over the full panes that follow it without a gap."""
        self._leave(self._pane * self.pane < self.complete[self._key])
        key, pane = self._key, self._pane
        start = np.searchsorted(key, key)
        rank = np.arange(key.size) - start
        gap = (pane - rank != self.complete[key] // self.pane) | (self._count < self.pane)
        gaps = np.cumsum(gap)
        full = gaps == (gaps - gap)[start] if key.size else gap
        np.maximum.at(self.complete, key[full], (pane[full] + 1) * self.pane)
        self._leave(full)

    def _leave(self, which: NDArray[np.bool_]) -> None:
        """Forgets panes, which lie below ``complete`` now."""
        np.maximum.at(self.last, self._key[which], self._last[which])
        self._key, self._pane = self._key[~which], self._pane[~which]
        self._count, self._last = self._count[~which], self._last[~which]

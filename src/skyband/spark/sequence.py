"""Which numbers of a sequence have come, so that count windows over rows in any order know when they are complete."""

import numpy as np
from numpy.typing import NDArray

from skyband.objects.base import NOTHING, Ints
from skyband.windows import Window


class Sequence:
    """Counts of the numbers that came, by partition and pane. Each number must come once.

    Attributes:
        complete: of each partition: every number below it has come, or is not waited for any more.
        highest: of each partition: the highest number that has come.
    """

    def __init__(self, window: Window) -> None:
        self.pane = window.pane
        self.late = window.late
        self.complete: Ints = NOTHING
        self.highest: Ints = NOTHING
        self._key: Ints = NOTHING  # of panes that are not complete, in the order of partition and pane
        self._pane: Ints = NOTHING
        self._count: Ints = NOTHING

    def make_room(self, keys: int) -> None:
        """Partitions that are new, so that there are ``keys`` of them."""
        new = max(0, keys - self.complete.size)
        self.complete = np.append(self.complete, np.zeros(new, np.int64))
        self.highest = np.append(self.highest, np.full(new, -1))

    def take_in(self, key: Ints, pane: Ints, count: Ints, highest: Ints) -> None:
        """Counts of a batch, without those of panes below ``complete``."""
        np.maximum.at(self.highest, key, highest)
        key, pane = np.append(self._key, key), np.append(self._pane, pane)
        order = np.lexsort((pane, key))
        first = np.append(True, (np.diff(key[order]) != 0) | (np.diff(pane[order]) != 0))[: order.size]
        self._key, self._pane = key[order][first], pane[order][first]
        count = np.append(self._count, count)[order]
        self._count = np.add.reduceat(count, np.flatnonzero(first)) if count.size else count
        if self.late is not None:  # numbers that are not waited for any more
            self.complete = np.maximum(self.complete, (self.highest - self.late) // self.pane * self.pane)
        self._advance()

    def end(self) -> None:
        """No number comes any more."""
        self.complete = self.highest + 1

    def arrays(self) -> dict[str, Ints]:
        return {"complete": self.complete, "highest": self.highest, "key": self._key, "pane": self._pane,
                "count": self._count}  # fmt: skip

    def restore(self, arrays: dict[str, NDArray[np.int64]]) -> None:
        self.complete, self.highest = arrays["complete"], arrays["highest"]
        self._key, self._pane, self._count = arrays["key"], arrays["pane"], arrays["count"]

    def _advance(self) -> None:
        """Moves ``complete`` over the full panes that follow it without a gap."""
        self._keep(self._pane * self.pane >= self.complete[self._key])
        key, pane = self._key, self._pane
        start = np.searchsorted(key, key)
        rank = np.arange(key.size) - start
        gap = (pane - rank != self.complete[key] // self.pane) | (self._count < self.pane)
        gaps = np.cumsum(gap)
        full = gaps == (gaps - gap)[start] if key.size else gap
        np.maximum.at(self.complete, key[full], (pane[full] + 1) * self.pane)
        self._keep(~full)

    def _keep(self, which: NDArray[np.bool_]) -> None:
        self._key, self._pane, self._count = self._key[which], self._pane[which], self._count[which]

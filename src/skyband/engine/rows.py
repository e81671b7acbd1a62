"""The columns of the rows that an algorithm holds, found by arrival number."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class RowStore:
    """Rows in the order of their arrival numbers. Rows that nothing holds any more are dropped now and then."""

    def __init__(self, table: pa.Table, arrival: Ints) -> None:
        self.table = table
        self.arrival = arrival

    def take(self, arrival: Ints, batch: pa.Table, first: int) -> pa.Table:
        """The rows with these arrival numbers; those from ``first`` on are the rows of ``batch``, in order."""
        if not self.table.num_columns:
            return batch.slice(0, 0)
        old = arrival < first
        if not old.any():
            return batch.take(pa.array(arrival - first))
        place = np.where(old, self._find(arrival), self.arrival.size + arrival - first)
        return pa.concat_tables([self.table, batch]).take(pa.array(place))

    def keep(self, arrival: Ints, batch: pa.Table, first: int) -> None:
        """Adds those rows of ``batch`` whose arrival number is among ``arrival`` (ascending, from ``first`` on)."""
        if arrival.size:
            self.table = pa.concat_tables([self.table, batch.take(pa.array(arrival - first))])
            self.arrival = np.concatenate([self.arrival, arrival])
            if self.table.num_columns and self.table.column(0).num_chunks > 16:
                self.table = self.table.combine_chunks()

    def drop_all_but(self, arrival: Ints) -> None:
        """Forgets every row whose arrival number is not among ``arrival`` (ascending)."""
        place = np.searchsorted(self.arrival, arrival)
        self.table = self.table.take(pa.array(place)).combine_chunks()
        self.arrival = arrival

    @property
    def nbytes(self) -> int:
        """Bytes in the columns and the arrival numbers."""
        return int(self.table.nbytes + self.arrival.nbytes)

    def _find(self, arrival: Ints) -> Ints:
        span = int(self.arrival[-1] - self.arrival[0]) + 1 if self.arrival.size else 0
        if arrival.size * 8 < self.arrival.size or span > 16 * self.arrival.size:
            return np.searchsorted(self.arrival, arrival)
        # Many look-ups in a dense range: a table of places beats a search for each.
        place = np.empty(span, np.int64)
        place[self.arrival - self.arrival[0]] = np.arange(self.arrival.size)
        found: Ints = place[np.clip(arrival - self.arrival[0], 0, span - 1)]
        return found

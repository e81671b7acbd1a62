"""Keeps the columns of the rows that an algorithm holds; the algorithm knows rows only by their arrival numbers."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]

RUN = 16  # parts of about one length that are made one
LARGE = 1 << 30  # bytes: larger parts are left as they are, since a column of text may not be larger than twice that
FEW = 8  # a share of the rows in which they are looked up part by part; for more, one search in all of them is cheaper


class Part(NamedTuple):
    """Some of the rows, in memory of their own."""

    arrival: Ints
    rows: pa.RecordBatch


class RowStore:
    """Rows in the order of their arrival numbers. Rows that nothing holds any more are dropped now and then.

    They lie in parts, the longer ones first as a rule. Where there are sixteen of about one length, or shorter ones
    before a longer one, they become one part. So a row is moved once each time that what is held has become sixteen
    times as much, and there are never many parts.
    """

    def __init__(self, table: pa.Table, arrival: Ints) -> None:
        self.empty = table.slice(0, 0)
        self.names: list[str] = table.column_names
        self._nothing = pa.RecordBatch.from_pylist([], self.empty.schema)
        self._parts: list[Part] = []
        self.size = 0  # how many rows there are
        self._append(arrival, table.to_batches())

    def take(self, arrival: Ints, batch: pa.Table, first: int) -> pa.Table:
        """The rows with these arrival numbers; those from ``first`` on are the rows of ``batch``, in order."""
        if not self.names or not arrival.size:
            return batch.slice(0, 0)
        old = arrival < first
        if not old.any():
            return batch.take(pa.array(arrival - first))
        if arrival.size * FEW > self.size:
            table, held = self.table, self.arrival
            place = np.where(old, _find(held, arrival), held.size + arrival - first)
            return pa.concat_tables([table, batch]).take(pa.array(place))
        starts = np.array([part.arrival[0] for part in self._parts] + [first])
        which = np.searchsorted(starts, arrival, "right") - 1
        order = np.argsort(which, kind="stable")
        parts, cuts = np.unique(which[order], return_index=True)
        numbers = np.split(arrival[order], cuts[1:])
        table = pa.concat_tables(
            self._taken(part, some, batch, first) for part, some in zip(parts.tolist(), numbers, strict=True)
        )
        if (np.diff(order) == 1).all():
            return table
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        return table.take(pa.array(back))

    def keep(self, arrival: Ints, batch: pa.Table, first: int) -> None:
        """Adds those rows of ``batch`` whose arrival number is among ``arrival`` (ascending, from ``first`` on)."""
        if not arrival.size:
            return
        if arrival.size < batch.num_rows:
            self._append(arrival, batch.take(pa.array(arrival - first)).to_batches())
        else:
            # The rows as they came may lie in arrays that their owner goes on to write to.
            parts = batch.to_batches() if self.names else []
            self._append(arrival, [pa.concat_batches([rows, self._nothing]) for rows in parts])
        self._tidy()

    def drop_all_but(self, arrival: Ints) -> None:
        """Forgets every row whose arrival number is not among ``arrival`` (ascending)."""
        table = self.table.take(pa.array(np.searchsorted(self.arrival, arrival))) if self.names else self.empty
        self._parts, self.size = [], 0
        self._append(arrival, table.to_batches())

    @property
    def table(self) -> pa.Table:
        """All rows, which are one part from then on."""
        self._unite(len(self._parts))
        return pa.Table.from_batches([part.rows for part in self._parts], self.empty.schema)

    @property
    def arrival(self) -> Ints:
        """The arrival numbers of all rows, ascending."""
        numbers = [part.arrival for part in self._parts]
        return numbers[0] if len(numbers) == 1 else np.concatenate([np.empty(0, np.int64), *numbers])

    @property
    def nbytes(self) -> int:
        """Bytes in the columns and the arrival numbers."""
        return sum(int(part.rows.nbytes + part.arrival.nbytes) for part in self._parts)

    def _taken(self, part: int, arrival: Ints, batch: pa.Table, first: int) -> pa.Table:
        """Rows of one of the parts, or of the batch behind them."""
        if part == len(self._parts):
            return batch.take(pa.array(arrival - first))
        numbers, rows = self._parts[part]
        dense = numbers[-1] - numbers[0] < numbers.size
        place = arrival - numbers[0] if dense else np.searchsorted(numbers, arrival)
        return pa.Table.from_batches([rows.take(pa.array(place))])

    def _append(self, arrival: Ints, parts: Sequence[pa.RecordBatch]) -> None:
        """Adds rows that are newer than all others."""
        self.size += arrival.size
        if not self.names and arrival.size:
            self._parts.append(Part(arrival, self._nothing))
            return
        start = 0
        for rows in parts:
            if rows.num_rows:
                self._parts.append(Part(arrival[start : start + rows.num_rows], rows))
            start += rows.num_rows

    def _tidy(self) -> None:
        """Makes one part of the last ones, as long as there are sixteen that are no longer than the last or little."""
        while len(self._parts) >= RUN:
            most = RUN ** ((self._parts[-1].arrival.size.bit_length() + 3) // 4)
            run = 0
            while run < len(self._parts) and self._parts[-run - 1].arrival.size < most:
                run += 1
            if run < RUN or not self._unite(run):
                return

    def _unite(self, run: int) -> bool:
        """Makes one part of the last ones, unless they are too large."""
        last = self._parts[len(self._parts) - run :]
        if run < 2 or sum(part.rows.nbytes for part in last) > LARGE:
            return False
        rows = pa.concat_batches([part.rows for part in last]) if self.names else self._nothing
        self._parts[-run:] = [Part(np.concatenate([part.arrival for part in last]), rows)]
        return True


def _find(held: Ints, arrival: Ints) -> Ints:
    """Where among the ascending numbers that are held these are."""
    span = int(held[-1] - held[0]) + 1 if held.size else 0
    if arrival.size * FEW < held.size or span > 16 * held.size:
        return np.searchsorted(held, arrival)
    # Many look-ups in a dense range: a table of places beats a search for each.
    place = np.empty(span, np.int64)
    place[held - held[0]] = np.arange(held.size)
    found: Ints = place[np.clip(arrival - held[0], 0, span - 1)]
    return found

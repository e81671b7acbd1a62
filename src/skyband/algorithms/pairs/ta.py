"""TA: the K-skyband of pairs for global scoring functions, without looking at all new pairs."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from skyband.algorithms.contract import Ints
from skyband.algorithms.pairs.monotone import recognised
from skyband.algorithms.pairs.scase import SCase
from skyband.errors import QueryError
from skyband.kernels.pairs.program import BLOCK
from skyband.kernels.pairs.scan import Scratch
from skyband.kernels.pairs.state import Batch, PairState
from skyband.kernels.pairs.ta import Front, SortedLists, arrive_ta, overdue
from skyband.storage.blocks import empty


class TA(SCase):
    """The best pairs of large windows, without looking at all new pairs, where the score allows it.

    TA of Shen et al., *A Generic Framework for Top-k Pairs and Top-k Objects Queries over Sliding Windows* (TKDE 2014),
    Algorithm 5, for scores that are monotone in the differences of single columns:
    :mod:`skyband.algorithms.pairs.monotone` tells which are. The pairs of a new object are met
    in the order of their age and, column by column, of their distance; when the staircase dominates the best that can
    still come, the search ends. All else is as in :class:`SCase`.

    Deviations:

    - The lists are sorted arrays that are built anew after one sixteenth of the window has come, instead of being
      kept up to date. Objects that have come since are in no list: they are the youngest, which are met by age anyway.
    - Objects are met in blocks, up to 1024 by age for up to 128 from each list: those by age lie side by side and cost
      a tenth as much.
    - A pair that is met several times is evaluated again, and dropped when the new pairs are sorted.
    - After an object that came out of order all pairs are looked at, as in SCase, until the lists are built again;
      and always where two objects must agree or differ in a column,
      or ``where`` is no arithmetic over numbers.
    """

    name = "ta"
    several = False

    def meet(self, schema: pa.Schema, look_up: Callable[[Ints], pa.Table]) -> None:
        super().meet(schema, look_up)
        found = recognised(self.fitted)
        if found is None:
            raise QueryError(f"algorithm='ta' takes scores that rise or fall with the difference of each column, not "
                             f"order_by={self.query.spec()['order_by']!r}; take algorithm='scase'")  # fmt: skip
        self.goal = found
        registers = max(self.scoring.program.registers, found.bound.registers)
        self._scratch = self._scratch._replace(register=np.empty((registers, BLOCK)))
        self._lists: dict[int, tuple[Ints, SortedLists]] = {}

    def scratch(self, objects: int) -> Scratch:
        return super().scratch(objects * (self.goal.column.size + 1))  # what is found may be found again in every list

    def take_in(self, state: PairState, batch: Batch, first: int) -> int:
        if self.tag_columns or not self.compiled:
            return super().take_in(state, batch, first)
        columns = self.goal.column.size
        front = Front(np.zeros(columns, np.int64), np.zeros(columns, np.int64), np.zeros(columns))
        return arrive_ta(state, batch, first, self.goal, self._sorted(state), front)

    def _sorted(self, state: PairState) -> SortedLists:
        """The objects sorted by each column; kept while their places stay the same, and not for too long."""
        window, meta = state.window, state.window.meta[0]
        start, stop = int(meta.start), int(meta.stop)
        position, lists = self._lists.get(id(window.position), (None, None))
        if position is window.position and lists is not None and not overdue(lists, stop - start):
            return lists
        values = window.values[self.goal.column, start:stop]
        order = np.argsort(values, axis=1)
        lists = empty(SortedLists, length=stop - start, listed=stop)
        lists = lists._replace(place=order + start, value=np.take_along_axis(values, order, axis=1))
        if len(self._lists) > 2 * len(self.states):  # of arrays that are no more
            self._lists.clear()
        self._lists[id(window.position)] = window.position, lists
        return lists

"""TA: the K-skyband of pairs for global scoring functions, without looking at all new pairs."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from skyband.algorithms.contract import Ints
from skyband.algorithms.pairs.base import Batch
from skyband.algorithms.pairs.monotone import recognised
from skyband.algorithms.pairs.scase import SCase
from skyband.algorithms.pairs.state import State
from skyband.errors import QueryError
from skyband.kernels.pairs.scan import Scratch
from skyband.kernels.pairs.ta import Front, Lists, arrive_ta, overdue
from skyband.kernels.pairs.window import START, STOP


class TA(SCase):
    """TA of Shen et al., *A Generic Framework for Top-k Pairs and Top-k Objects Queries over Sliding Windows* (TKDE
    2014), Algorithm 5.

    For scores that are monotone in the differences of single columns (:mod:`skyband.algorithms.pairs.monotone` tells
    which are). The pairs of a new object are met in the order of their age and, column by column, of local scores; when
    the staircase dominates the best that can still come, the search ends. All else is as in :class:`SCase`.

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
        assert self.fitted is not None
        found = recognised(self.fitted)
        if found is None:
            raise QueryError(f"algorithm='ta' takes scores that rise or fall with the difference of each column, not "
                             f"order_by={self.query.spec()['order_by']!r}; take algorithm='scase'")  # fmt: skip
        self.score = found
        self._kept: dict[int, tuple[Ints, Lists]] = {}

    def _scratch(self, objects: int) -> Scratch:
        # What is found may be found again in every list.
        scratch = super()._scratch(objects * (self.score.column.size + 1))
        registers = max(self.program.registers, self.score.bound.registers)
        return scratch._replace(register=np.empty((registers, scratch.register.shape[1])))

    def take_in(self, state: State, batch: Batch, first: int) -> tuple[State, int]:
        if self.kinds.size or not self.compiled:
            return super().take_in(state, batch, first)
        lists, count = self._lists(state), self.score.column.size
        front = Front(np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros((count, 1)))
        done = arrive_ta(state.window, state.band, state.stairs, state.answers, batch.log, batch.queries, self.program,
                         self.score.bound, lists, batch.objects, first, batch.moves, batch.scratch, front
                         )  # fmt: skip
        return state, done

    def _lists(self, state: State) -> Lists:
        """The objects sorted by each column; kept while their places stay the same, and not for too long."""
        window, part = state.window, slice(int(state.meta[START]), int(state.meta[STOP]))
        position, lists = self._kept.get(id(state.position), (None, None))
        if position is state.position and lists is not None and not overdue(lists.meta, part.stop - part.start):
            return lists
        values = window.values[self.score.column, part]
        order = np.argsort(values, axis=1)
        meta = np.array([part.stop - part.start, part.stop, 0])
        sorted_values = np.take_along_axis(values, order, axis=1)
        lists = Lists(order + part.start, sorted_values, self.score.column, self.score.furthest, meta)
        if len(self._kept) > 2 * len(self.states):  # of arrays that are no more
            self._kept.clear()
        self._kept[id(state.position)] = state.position, lists
        return lists
